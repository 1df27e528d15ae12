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
        rows = _contestants(self.scores, self.times, self.agents, self.silent, judges)
        table = season_table(rows, judges=self.panel, plan=self.plan)
        return {row.contestant: row.total for row in table.rows if row.total is not None}

    def floor(self, one: str, two: str) -> float | None:
        """The gap that noise alone of two totals stays below."""
        return gap_floor(self.agents[one], self.agents[two], self.panel, level=self.plan.ties.level)

    def reach(self, agent: str) -> float | None:
        """How far noise alone moves one judge's composite of an agent, at the level of the plan."""
        return gap_floor(self.agents[agent], self.single, _STILL, level=self.plan.ties.level)


def season_totals(
    scores: SeasonScores, times: Mapping[str, DecisionTime], plan: ScoringPlan, *, silent: Collection[str] = ()
) -> SeasonTotals:
    """The table of a season, with noise floors from replicate decisions and repeated gradings."""
    floors = {agent: noise_floor([scores.repeated(agent)]) for agent in scores.agents}
    heard = scores.without(silent)
    graded = [trials for row in heard.whole.values() for trials in row.values()]
    least = min(map(len, graded), default=1)
    panel, single = (
        floor if floor.value is None else replace(floor, value=floor.value / math.sqrt(least))
        for floor in (
            noise_floor([heard.gradings(agent) for agent in heard.agents]),
            noise_floor([[one.composite for one in trials.values()] for trials in graded]),
        )
    )
    table = season_table(_contestants(scores, times, floors, silent), judges=panel, plan=plan)
    return SeasonTotals(scores, plan, times, table, floors, silent, panel, single, least)


def _contestants(
    scores: SeasonScores, times: Mapping[str, DecisionTime], floors: Mapping[str, NoiseFloor],
    silent: Collection[str], gone: Collection[str] = (),
) -> list[Contestant]:  # fmt: skip
    found = []
    for agent, row in scores.composites.items():
        kept = {judge: points for judge, points in row.items() if judge not in gone}
        found.append(Contestant(agent, kept, times[agent].seconds, floors[agent], agent not in silent))
    return found


def table_measurements(totals: SeasonTotals) -> Iterator[Measurement]:
    """``season.total``, ``.composite``, ``.axis``, ``.outcome``, ``.efficiency``, ``.without`` and ``.noise``."""
    scores, plan = totals.scores, totals.plan
    for agent in scores.agents:
        row, labels, whole = totals.row(agent), {"agent": agent}, scores.whole[agent]
        yield Measurement(
            name="season.total", labels=labels, value=row.total, n=len(whole), n_of="judges",
            method=f"scoring plan {plan.version}: median of the judges' composites, and efficiency",
            state="ok" if row.total is not None else row.state, unit=POINTS, inputs=totals.table.plan,
            detail={} if row.total is None else _detail(totals, row),
        )  # fmt: skip
        for judge in scores.judges:
            trials, points = whole.get(judge, {}), scores.composites[agent].get(judge)
            each: dict[str, Any] = {}
            if points is not None:
                each = {"band": band(points, plan=plan), "trials": [one.composite for one in trials.values()]}
            yield Measurement(
                name="season.composite", labels={**labels, "judge": judge}, value=points, n=len(trials),
                n_of="gradings", method="mean over trials of the judge's composite", unit=POINTS, detail=each,
                state="ok" if points is not None else scores.states.get((agent, judge), "not asked"),
            )  # fmt: skip
        for axis in AXES:
            yield _median("season.axis", {**labels, "axis": axis}, scores.axis(agent, axis), "not graded")
        yield _median("season.outcome", labels, scores.outcomes(agent), "unresolved" if whole else "not graded")
        time, state = totals.times[agent], "ok"
        if row.efficiency is None:
            state = row.state if row.total is None else "no timing" if time.seconds is None else "not in this plan"
        yield Measurement(
            name="season.efficiency", labels=labels, value=row.efficiency, n=time.measured, n_of="decisions",
            method=_EFFICIENCY[plan.efficiency.scale].format(reference=plan.efficiency.reference_s), state=state,
            unit=POINTS, detail={"seconds": time.seconds, "left_out": time.left_out},
        )  # fmt: skip
        of = {"of": agent, "kind": "agent"} if agent == PANEL else {"of": agent}
        yield _noise(of, totals.agents[agent], "replicates", {})
    left = {judge: totals.without([judge]) for judge in scores.judges}
    for agent, judge in product(scores.agents, scores.judges):
        value, state = left[judge].get(agent), totals.row(agent).state
        if value is None and state in ("graded", "graded by part of the panel"):
            state = "no other judge"
        yield Measurement(
            name="season.without", labels={"agent": agent, "judge": judge}, value=value,
            n=len([one for one in scores.whole[agent] if one != judge]), n_of="judges",
            method="total without one judge", state="ok" if value is not None else state, unit=POINTS,
        )  # fmt: skip
    value = totals.panel.value
    once = None if value is None else value * math.sqrt(totals.trials)
    yield _noise({"of": PANEL}, totals.panel, "gradings", {"trials": totals.trials, "one_grading": once})


def _detail(totals: SeasonTotals, row: SeasonRow) -> dict[str, Any]:
    agreement, standing, bands = row.agreement, row.standing, totals.plan.bands
    assert agreement is not None
    assert standing is not None
    assert row.total is not None
    points = (agreement.low, agreement.high, row.total)
    return {
        **{name: getattr(agreement, name) for name in ("low", "median", "high", "judges")},
        "absent": [judge for judge in totals.scores.judges if judge not in totals.scores.whole[row.contestant]],
        "efficiency": row.efficiency,
        **{name: getattr(standing, name) for name in ("band", "lowest", "highest", "state")},
        "graded": [agreement.standing.lowest, agreement.standing.highest],
        "margin": min(abs(one - (bound - 0.5)) for one in points for bound in (bands.strong, bands.mixed)),
        "reach": totals.reach(row.contestant),
        "first": row.first,
        "last": row.last,
    }


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
