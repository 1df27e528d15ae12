"""The table of a season and what stands behind each of its rows: totals, composites, axes, and noise floors."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from statistics import median
from typing import Any, Final

from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scoring import DecisionTime, band
from assaymark.judging.season.table import (
    Contestant,
    NoiseFloor,
    SeasonRow,
    SeasonTable,
    gap_floor,
    noise_floor,
    season_table,
)
from assaymark.records import Measurement
from assaymark.workflow.tracks.season_measure import SeasonScores

PANEL: Final = "panel"
AXES: Final = ("reasoning", "evidence", "process")
POINTS: Final = "points"

_STILL: Final = NoiseFloor(None, 1, 2, 1, "identical repetitions")
"""Of a boundary, which does not move."""


@dataclass(frozen=True, slots=True, eq=False)
class SeasonTotals:
    """The table of a season with the noise that it was made with."""

    scores: SeasonScores
    plan: ScoringPlan
    times: Mapping[str, DecisionTime]
    table: SeasonTable
    agents: Mapping[str, NoiseFloor]
    silent: Collection[str]
    panel: NoiseFloor
    single: NoiseFloor
    trials: int

    @property
    def heard(self) -> SeasonScores:
        """The grades of agents that gave a usable answer."""
        return self.scores.without(self.silent)

    def row(self, agent: str) -> SeasonRow:
        """The row of an agent."""
        return next(row for row in self.table.rows if row.contestant == agent)

    def without(self, judges: Collection[str]) -> dict[str, float]:
        """The totals that the other judges make; agents without one of them are left out."""
        table = season_table(self._contestants(judges), judges=self.panel, plan=self.plan)
        return {row.contestant: row.total for row in table.rows if row.total is not None}

    def floor(self, one: str, two: str) -> float | None:
        """The gap that noise alone of two totals stays below."""
        return gap_floor(self.agents[one], self.agents[two], self.panel, level=self.plan.ties.level)

    def reach(self, agent: str) -> float | None:
        """How far noise alone moves one judge's composite of an agent, at the level of the plan."""
        return gap_floor(self.agents[agent], self.single, _STILL, level=self.plan.ties.level)

    def _contestants(self, gone: Collection[str] = ()) -> list[Contestant]:
        return _contestants(self.scores, self.times, self.agents, self.silent, gone)


def season_totals(
    scores: SeasonScores, times: Mapping[str, DecisionTime], plan: ScoringPlan, *, silent: Collection[str] = ()
) -> SeasonTotals:
    """The table of a season, with noise floors from replicate decisions and repeated gradings."""
    floors = {agent: noise_floor([scores.repeated(agent)]) for agent in scores.agents}
    heard = scores.without(silent)
    trials = min((len(trials) for row in heard.whole.values() for trials in row.values()), default=1)
    panel = _published(noise_floor([heard.gradings(agent) for agent in heard.agents]), trials)
    each = [[one.composite for one in trials.values()] for row in heard.whole.values() for trials in row.values()]
    table = season_table(_contestants(scores, times, floors, silent), judges=panel, plan=plan)
    single = _published(noise_floor(each), trials)
    return SeasonTotals(scores, plan, times, table, floors, silent, panel, single, trials)


def _contestants(
    scores: SeasonScores, times: Mapping[str, DecisionTime], floors: Mapping[str, NoiseFloor],
    silent: Collection[str], gone: Collection[str] = (),
) -> list[Contestant]:  # fmt: skip
    return [
        Contestant(
            agent, {judge: points for judge, points in row.items() if judge not in gone}, times[agent].seconds,
            floors[agent], agent not in silent,
        )
        for agent, row in scores.composites.items()
    ]  # fmt: skip


def _published(floor: NoiseFloor, trials: int) -> NoiseFloor:
    return floor if floor.value is None else replace(floor, value=floor.value / math.sqrt(trials))


def table_measurements(totals: SeasonTotals) -> Iterator[Measurement]:
    """``season.total``, ``.composite``, ``.axis``, ``.outcome``, ``.efficiency``, ``.without`` and ``.noise``."""
    for agent in totals.scores.agents:
        row = totals.row(agent)
        found = Measurement(
            name="season.total", labels={"agent": agent}, value=row.total, n=len(totals.scores.whole[agent]),
            n_of="judges",
            method=f"scoring plan {totals.plan.version}: median of the judges' composites, and efficiency",
            state="ok" if row.total is not None else row.state, unit=POINTS, inputs=totals.table.plan,
        )  # fmt: skip
        yield (found if row.total is None else replace(found, detail=_detail(totals, row)))
        yield from _composites(totals.scores, agent, totals.plan)
        for axis in AXES:
            points = totals.scores.axis(agent, axis)
            yield _median("season.axis", {"agent": agent, "axis": axis}, points, "not graded")
        state = "unresolved" if totals.scores.whole[agent] else "not graded"
        yield _median("season.outcome", {"agent": agent}, totals.scores.outcomes(agent), state)
        yield _efficiency(totals, agent)
        yield _noise(
            {"of": agent, "kind": "agent"} if agent == PANEL else {"of": agent}, totals.agents[agent], "replicates", {}
        )
    yield from _without(totals)
    value = totals.panel.value
    once = None if value is None else value * math.sqrt(totals.trials)
    yield _noise({"of": PANEL}, totals.panel, "gradings", {"trials": totals.trials, "one_grading": once})


def _detail(totals: SeasonTotals, row: SeasonRow) -> dict[str, Any]:
    agreement, standing = row.agreement, row.standing
    assert agreement is not None
    assert standing is not None
    assert row.total is not None
    return {
        "low": agreement.low,
        "median": agreement.median,
        "high": agreement.high,
        "judges": agreement.judges,
        "absent": [judge for judge in totals.scores.judges if judge not in totals.scores.whole[row.contestant]],
        "efficiency": row.efficiency,
        "band": standing.band,
        "lowest": standing.lowest,
        "highest": standing.highest,
        "state": standing.state,
        "graded": [agreement.standing.lowest, agreement.standing.highest],
        "margin": min(
            min(abs(points - (bound - 0.5)) for bound in (totals.plan.bands.strong, totals.plan.bands.mixed))
            for points in (agreement.low, agreement.high, row.total)
        ),
        "reach": totals.reach(row.contestant),
        "first": row.first,
        "last": row.last,
    }


def _composites(scores: SeasonScores, agent: str, plan: ScoringPlan) -> Iterator[Measurement]:
    for judge in scores.judges:
        trials = scores.whole[agent].get(judge, {})
        points = scores.composites[agent].get(judge)
        state = "ok" if points is not None else scores.states.get((agent, judge), "not asked")
        yield Measurement(
            name="season.composite",
            labels={"agent": agent, "judge": judge},
            value=points,
            n=len(trials),
            n_of="gradings",
            method="mean over trials of the judge's composite",
            state=state,
            unit=POINTS,
            detail={}
            if points is None
            else {"band": band(points, plan=plan), "trials": [one.composite for one in trials.values()]},
        )


def _median(name: str, labels: Mapping[str, str], points: Mapping[str, float], state: str) -> Measurement:
    """The panel's median of something, with its lowest and highest judge."""
    found = list(points.values())
    return Measurement(
        name=name, labels=labels, value=float(median(found)) if found else None, n=len(found), n_of="judges",
        method="median over judges of the mean over trials", state="ok" if found else state, unit=POINTS,
        detail={"low": min(found), "high": max(found)} if found else {},
    )  # fmt: skip


_EFFICIENCY: Final = {
    "absolute": "panel median, reduced in proportion where the median seconds of a decision exceed {reference:g}",
    "relative": "panel median over the median seconds of a decision, the best of the season being 100",
}


def _efficiency(totals: SeasonTotals, agent: str) -> Measurement:
    row, time = totals.row(agent), totals.times[agent]
    state = "ok"
    if row.efficiency is None:
        state = row.state if row.total is None else "no timing" if time.seconds is None else "not in this plan"
    return Measurement(
        name="season.efficiency", labels={"agent": agent}, value=row.efficiency, n=time.measured, n_of="decisions",
        method=_EFFICIENCY[totals.plan.efficiency.scale].format(reference=totals.plan.efficiency.reference_s),
        state=state, unit=POINTS, detail={"seconds": time.seconds, "left_out": time.left_out},
    )  # fmt: skip


def _without(totals: SeasonTotals) -> Iterator[Measurement]:
    left = {judge: totals.without([judge]) for judge in totals.scores.judges}
    for agent, judge in product(totals.scores.agents, totals.scores.judges):
        value = left[judge].get(agent)
        others = [one for one in totals.scores.whole[agent] if one != judge]
        yield Measurement(
            name="season.without", labels={"agent": agent, "judge": judge}, value=value, n=len(others), n_of="judges",
            method="total without one judge", state=_without_state(totals, agent, value), unit=POINTS,
        )  # fmt: skip


def _without_state(totals: SeasonTotals, agent: str, value: float | None) -> str:
    if value is not None:
        return "ok"
    state = totals.row(agent).state
    return "no other judge" if state in ("graded", "graded by part of the panel") else state


def _noise(labels: Mapping[str, str], floor: NoiseFloor, what: str, detail: Mapping[str, Any]) -> Measurement:
    return Measurement(
        name="season.noise", labels=labels, value=floor.value, n=floor.replicates, n_of=what,
        method="pooled standard deviation of totals between repetitions", state=floor.state, unit=POINTS,
        detail={"freedom": floor.freedom, "groups": floor.groups, **detail},
    )  # fmt: skip


def judge_noise(scores: SeasonScores) -> Iterator[Measurement]:
    """``season.judge_noise``: how far one judge's composites of the same record lie apart."""
    for judge in scores.judges:
        rows = [scores.whole[agent].get(judge, {}).values() for agent in scores.agents]
        floor = noise_floor([[one.composite for one in row] for row in rows])
        yield replace(_noise({"judge": judge}, floor, "gradings", {}), name="season.judge_noise")
