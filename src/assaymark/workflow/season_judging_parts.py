"""What of a season is graded: whole records, their periods, and the decisions of replicates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from assaymark.judging.season.author_probe import PlannedProbe, probe_calls
from assaymark.judging.season.horizon import horizon_of
from assaymark.judging.season.horizon_ledger import HorizonLedger, horizon_ledgers
from assaymark.judging.season.horizon_prompts import HorizonTask, horizon_tasks
from assaymark.judging.season.horizon_types import Horizon, StepRecord
from assaymark.judging.season.plans import ScoringPlan
from assaymark.protocol import JudgeSpec
from assaymark.workflow.season_file import Season
from assaymark.workflow.season_material import SeasonMaterial
from assaymark.workflow.season_periods import period_of
from assaymark.workflow.season_records import GradeScope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeasonPart:
    """A part of a season that is graded on its own; the fields are those of `SeasonGrade`.

    ``ledger`` is the numeric one of its steps.
    """

    agent: str
    scope: GradeScope
    period: str
    replicate: int
    first: str
    last: str
    horizon: Horizon
    ledger: HorizonLedger


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of the blinding, and the period that it shows; empty for a whole record."""

    planned: PlannedProbe
    period: str


def asked_judges(season: Season) -> tuple[JudgeSpec, ...]:
    """The judges of the panel that are models."""
    return tuple(one for one in season.panel if not one.human)


def season_horizons(material: SeasonMaterial) -> dict[str, Horizon]:
    """The whole record of each agent, blinded as its judges see it."""
    return {name: _horizon(material, name, steps) for name, steps in material.steps.items()}


def season_parts(material: SeasonMaterial) -> list[SeasonPart]:
    """Everything that is graded: whole records first, then periods in order, then replicates.

    A record is blinded once, and its periods are cut from it. Periods are those of the season file; a replicate is its
    decisions alone, since only the first one trades.
    """
    shown: dict[tuple[str, int], Sequence[StepRecord]] = {(name, 0): ones for name, ones in material.steps.items()}
    shown |= material.replicates
    horizons = {key: _horizon(material, key[0], steps) for key, steps in shown.items()}
    decisions = [step.decision for steps in shown.values() for step in steps]
    ledgers = horizon_ledgers(list(horizons.values()), decisions, material.contexts)
    whole: list[SeasonPart] = []
    periods: list[SeasonPart] = []
    replicates: list[SeasonPart] = []
    for (key, horizon), ledger in zip(horizons.items(), ledgers, strict=True):
        days = [step.day for step in shown[key]]
        if key[1]:
            replicates.append(_part(key[0], "replicate", "", key[1], days, horizon, ledger))
        else:
            whole.append(_part(key[0], "whole", "", 1, days, horizon, ledger))
            periods += _periods(material, key[0], days, horizon, ledger)
    return [*whole, *sorted(periods, key=lambda one: one.period), *replicates]


def season_tasks(
    parts: Sequence[SeasonPart], judges: Sequence[JudgeSpec], plan: ScoringPlan, *, budget: int
) -> list[tuple[SeasonPart, HorizonTask]]:
    """Every part before every judge: whole records in as many trials as the judge has, all else in one.

    Repeated trials of whole records show the noise of a judge. Periods are many, and their spread shows it too.
    """
    once = [one.model_copy(update={"trials": 1}) for one in judges]
    return [
        (part, task)
        for part in parts
        for task in horizon_tasks(
            {part.agent: part.horizon}, judges if part.scope == "whole" else once, plan, budget=budget
        )
    ]


def season_probes(parts: Sequence[SeasonPart], judges: Sequence[JudgeSpec], *, budget: int) -> list[Probe]:
    """Who made it: asked of every whole record, and of every period in which all agents decided.

    Among fewer agents a guess would be another question. A period that is the whole season is asked about once, and a
    season of one agent is not.
    """
    once = [one.model_copy(update={"trials": 1}) for one in judges]
    found: dict[tuple[str, str], Probe] = {}
    agents = {one.agent for one in parts}
    for period, ones in _by_period(parts).items():
        horizons = {one.agent: one.horizon for one in ones}
        if set(horizons) != agents or len(agents) < 2:
            continue
        for probe in probe_calls(horizons, once if period else judges, budget=budget):
            found.setdefault((probe.author, probe.call.key), Probe(probe, period))
    return list(found.values())


def _by_period(parts: Sequence[SeasonPart]) -> Mapping[str, list[SeasonPart]]:
    """Whole records under an empty name, then the periods."""
    found: dict[str, list[SeasonPart]] = {}
    for one in parts:
        if one.scope != "replicate":
            found.setdefault(one.period, []).append(one)
    return found


def _horizon(material: SeasonMaterial, agent: str, steps: Sequence[StepRecord]) -> Horizon:
    return horizon_of(
        steps,
        material.contexts,
        agents=material.agents,
        keep=material.universe,
        mandate=material.season.told(agent).strip(),
    )


def _periods(
    material: SeasonMaterial, agent: str, days: Sequence[str], horizon: Horizon, ledger: HorizonLedger
) -> Iterator[SeasonPart]:
    """One agent's record, period by period."""
    length = material.season.judging.period
    numbered = enumerate(days, start=1)
    for period, steps in groupby(numbered, key=lambda one: period_of(one[1], length)):
        within = list(steps)
        first, last = within[0][0], within[-1][0]
        shown = [day for _, day in within]
        yield _part(agent, "period", period, 1, shown, horizon.between(first, last), ledger.between(first, last))


def _part(
    agent: str,
    scope: GradeScope,
    period: str,
    replicate: int,
    days: Sequence[str],
    horizon: Horizon,
    ledger: HorizonLedger,
) -> SeasonPart:
    return SeasonPart(
        agent=agent,
        scope=scope,
        period=period,
        replicate=replicate,
        first=days[0],
        last=days[-1],
        horizon=horizon,
        ledger=ledger,
    )
