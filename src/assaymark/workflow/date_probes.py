"""The date probes of a lock: sanitised material must not say when it was (ValueBlindBench section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from assaymark.agents.date_probe import date_call, read_date
from assaymark.engine import Model, Reply
from assaymark.errors import PlanError
from assaymark.market.cycles import Cycle
from assaymark.market.level_probe import ProbeResult, day_of, probe_result
from assaymark.market.sanitise import Bars
from assaymark.protocol import Study, Substrate
from assaymark.records import Series
from assaymark.workflow.asking import ask
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.substrates import cut, source_of, unsanitised


def probe_dates(
    folder: RunFolder, study: Study, models: Mapping[str, Model] | None, *, progress: Progress = silent
) -> tuple[ProbeResult, ...]:
    """The mechanical probe, and the model probe if the plan names a model that is at hand.

    Raises
    ------
    PlanError
        A probe dates the sanitised cycles, or cannot date anything: the lock is refused.
    ModelError
        The probe model did not answer.
    """
    substrate = study.substrate
    if substrate is None:
        return ()
    cycles = sample_of(substrate)
    found = [mechanical(cycles, substrate)]
    if substrate.date_probe.model is not None and models is not None:
        found.append(by_model(folder, cycles, study, models, progress=progress))
    if failed := [str(one) for one in found if not one.passed]:
        raise PlanError(
            f"{'; '.join(failed)}. Material that says when it is from cannot be locked; take out what gives it away, "
            "or use a probe that can date anything"
        )
    return tuple(found)


def probe_keys(study: Study) -> frozenset[str]:
    """The keys of every call that the model probe of a study makes."""
    if study.substrate is None or study.substrate.date_probe.model is None:
        return frozenset()
    cycles, model = sample_of(study.substrate), study.substrate.date_probe.model
    shown = [*(one.context for one in cycles), *(unsanitised(one) for one in cycles)]
    return frozenset(date_call(model, context).key for context in shown)


def sample_of(substrate: Substrate) -> list[Cycle]:
    """The cycles that are probed: the first of every regime, as many as the plan says."""
    each = -(-substrate.date_probe.sample // len(substrate.regimes))
    found = cut(substrate, cycles=each)
    return found[: max(substrate.date_probe.sample, len(substrate.regimes))]


def mechanical(cycles: Sequence[Cycle], substrate: Substrate) -> ProbeResult:
    """Look for the day by its price ranges, in the sanitised bars under their true names and in the raw ones."""
    ranges, columns = source_of(substrate).ranges()
    hits, control = [], []
    for cycle in cycles:
        true = _day(cycle)
        shown = [_renamed(one, cycle) for one in cycle.context.series]
        hits.append(bool(day_of(shown, columns, ranges) == true))
        control.append(bool(day_of(cycle.raw, columns, ranges) == true))
    wanted = substrate.date_probe
    chance = 1.0 / ranges.days.size
    return probe_result("mechanical", hits, control, chance=chance, alpha=wanted.alpha, control=wanted.control)


def _renamed(series: Series, cycle: Cycle) -> Bars:
    """A shown series under its true name: the probe is given more than an agent could know."""
    columns = (np.array(getattr(series, name)) for name in ("open", "high", "low", "close", "volume"))
    return Bars(cycle.names[series.instrument], np.arange(len(series.times)), *columns)


def _day(cycle: Cycle) -> np.datetime64:
    return np.datetime64(datetime.fromtimestamp(int(cycle.raw[0].times[-1]), UTC).date(), "D")


def by_model(
    folder: RunFolder,
    cycles: Sequence[Cycle],
    study: Study,
    models: Mapping[str, Model],
    *,
    progress: Progress = silent,
) -> ProbeResult:
    """Ask a model for the month of the sanitised cycles, and of the same cycles with everything left in."""
    substrate = study.substrate
    assert substrate is not None
    wanted = substrate.date_probe
    assert wanted.model is not None
    shown = [*(cycle.context for cycle in cycles), *(unsanitised(cycle) for cycle in cycles)]
    calls = [date_call(wanted.model, context) for context in shown]
    replies = ask(
        folder, calls, models, judge=wanted.model, what="asking for dates", progress=progress, engine=study.engine
    )
    right = [_is_right(replies[call.key], cycle) for call, cycle in zip(calls, [*cycles, *cycles], strict=True)]
    hits, control = right[: len(cycles)], right[len(cycles) :]
    months = source_of(substrate).ranges()[0].days.astype("datetime64[M]")
    chance = 1.0 / np.unique(months).size
    return probe_result("model", hits, control, chance=chance, alpha=wanted.alpha, control=wanted.control)


def _is_right(reply: Reply, cycle: Cycle) -> bool:
    """Whether a reply names the month that a cycle was cut from."""
    true = datetime.fromtimestamp(int(cycle.raw[0].times[-1]), UTC)
    said = read_date(reply)
    return said is not None and (said.year, said.month) == (true.year, true.month)
