"""What the report shows of a study that makes its own records: its cycles, its date probes, one cycle, its agents."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from assaymark.agents.composers.planted import planted_words
from assaymark.errors import InputError, LedgerError
from assaymark.market.cycles import CycleKey
from assaymark.protocol import Study
from assaymark.records import JSON, canonical_json, parse
from assaymark.report import PlantedView
from assaymark.report.substrate_views import CycleView, DateProbeView, RegimeView, SubstrateView
from assaymark.workflow.locking import Locked
from assaymark.workflow.tables import CYCLES, DECISIONS, Store

_PROBE: Final = tuple(item.name for item in dataclasses.fields(DateProbeView))


def substrate_view(locked: Locked, store: Store) -> SubstrateView | None:
    """What a study showed its agents; None for a study whose records are imported.

    Raises
    ------
    LedgerError
        The cycles are not there, or the lock is damaged.
    """
    substrate = locked.study.substrate
    if substrate is None:
        return None
    keys = sorted(store.read(CYCLES), key=lambda key: key.number)
    by_regime = {name: [key for key in keys if key.regime == name] for name in substrate.regimes}
    first = next((found[0] for found in by_regime.values() if found), None)
    return SubstrateView(
        source=PurePath(substrate.source).name,
        bars=substrate.bars,
        regimes=tuple(_regime(name, found) for name, found in by_regime.items() if found),
        probes=tuple(_probe(found) for found in locked.date_probes),
        example=None if first is None else _example(first, store),
    )


def _regime(name: str, keys: Sequence[CycleKey]) -> RegimeView:
    left_out = Counter(instrument for key in keys for instrument in key.left_out)
    return RegimeView(
        name=name,
        cycles=len(keys),
        first=min(key.first_bar for key in keys),
        last=max(key.last_bar for key in keys),
        left_out=dict(sorted(left_out.items())),
    )


def _probe(found: Mapping[str, JSON]) -> DateProbeView:
    """A probe as the lock holds it.

    Raises
    ------
    LedgerError
        Something of it is missing: the lock was written by hand, or is damaged.
    """
    try:
        return parse(DateProbeView, canonical_json({name: found[name] for name in _PROBE}), source="date probe")
    except (KeyError, InputError) as exc:
        raise LedgerError(f"the lock holds a date probe that cannot be read ({exc}); lock a new run folder") from None


def _example(key: CycleKey, store: Store) -> CycleView | None:
    """One cycle with the honest decisions on it, agents in alphabetical order."""
    context = next((context for name, context in store.each_context() if name == key.context_id), None)
    if context is None:
        return None
    on_it = (one for one in store.read(DECISIONS) if one.context_id == key.context_id)
    honest = [one for one in on_it if one.derivation.kind == "honest" and one.replicate == 1]
    return CycleView(
        regime=key.regime,
        number=key.number,
        first=key.first_bar,
        last=key.last_bar,
        names=dict(key.names),
        context=context,
        decisions=tuple(sorted(honest, key=lambda one: one.agent.id)),
        left_out=key.left_out,
    )


def planted_agents(study: Study) -> tuple[PlantedView, ...]:
    """What is planted in the reference agents of a study; empty when it has none."""
    return tuple(_planted(study))


def _planted(study: Study) -> Iterator[PlantedView]:
    for agent in study.agents:
        found = planted_words(agent.model, agent.args)
        if found is not None:
            yield PlantedView(name=agent.name, family=agent.family, question=found.rule, planted=found.properties)
