"""What a study that makes its own records will decide, as far as its plan knows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from assaymark.agents.llm import Place
from assaymark.market.cycles import NEUTRAL_NOW, CycleKey
from assaymark.protocol import Study
from assaymark.records import Agent, Decision, Derivation, Provenance


def planned_decisions(study: Study, cycles: Sequence[CycleKey]) -> list[Decision]:
    """What will be decided, as far as the plan can know it: who, on which cycle, in which cluster.

    The preflight needs no more, so that a study can be locked before any agent is asked.
    """
    found = []
    for key in cycles:
        place = Place(study.name, key.regime, key.number, key.context_id)
        found += [_planned(place, spec.name, spec.family, Derivation()) for spec in study.agents]
    for kind, count in study.controls.wanted.items():
        for number, key in enumerate(islice(cycle(cycles), count), start=1):
            place = Place(study.name, key.regime, key.number, key.context_id)
            name = f"{kind}-{number}"
            found.append(_planned(place, name, study.controls.family, Derivation(kind=kind)))
    return found


def _planned(place: Place, agent: str, family: str, derivation: Derivation) -> Decision:
    return Decision(
        record_id=place.record_id(agent),
        episode_id=place.episode,
        step=1,
        cluster=place.regime,
        decided_at=NEUTRAL_NOW,
        agent=Agent(id=agent if derivation.kind == "honest" else "control", family=family),
        context_id=place.context_id,
        actions=(),
        rationales=(),
        format="planned",
        provenance=Provenance(source="the plan"),
        derivation=derivation,
    )
