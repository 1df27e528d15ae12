"""The agents of a season in facts: what they earned, what they stated, how they traded, and whether records hold up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from statistics import fmean, median
from typing import Any, Final, Literal, TypeVar

import numpy as np

from assaymark.agents.llm import ABSENT, NOT_USABLE
from assaymark.errors import InputError, LedgerError, NotMeasurableError
from assaymark.judging.evidence import Material, chance_corrected
from assaymark.judging.season.calls import BORNE_OUT
from assaymark.judging.season.plans import ReplyState, ScoringPlan
from assaymark.judging.season.record import Filled, StepRecord
from assaymark.judging.season.scoring import DecisionTime, JudgeScore, band
from assaymark.judging.season.table import (
    Contestant,
    NoiseFloor,
    SeasonRow,
    SeasonTable,
    gap_floor,
    noise_floor,
    season_table,
    thrashing,
)
from assaymark.metrology.bootstrap import daily_excess
from assaymark.metrology.checks import Ints
from assaymark.metrology.measure_panel import lacking_records
from assaymark.metrology.scores import excess_replies, missing_shares
from assaymark.plan import Missing
from assaymark.portfolio import performance
from assaymark.portfolio.broker import RELIABILITY
from assaymark.records import JSON, Evidence, Measurement
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_records import SPLIT, SeasonGrade, SeasonNav

K = TypeVar("K")
V = TypeVar("V")

Composites = Mapping[str, Mapping[str, float]]
"""By agent and then judge; a judge without a usable grade is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class SeasonReplies:
    """What each judge was asked about each agent, with and without a usable grade [J, A, 2], and who lacks too much."""

    judges: tuple[str, ...]
    agents: tuple[str, ...]
    replies: Ints
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, grades: Iterable[SeasonGrade], agents: Sequence[str], missing: Missing) -> SeasonReplies:
        """Count the grades of some agents."""
        usable: dict[tuple[str, str, str, str, int], bool] = {}
        for one in grades:
            if one.agent in agents:
                key = (one.judge, one.agent, one.scope, one.period, one.replicate)
                usable[key] = usable.get(key, False) or one.score.score is not None
        judges = tuple(sorted({key[0] for key in usable}))
        replies = np.zeros((len(judges), len(agents), 2), dtype=np.int64)
        for (judge, agent, *_), ok in usable.items():
            replies[judges.index(judge), agents.index(agent), int(not ok)] += 1
        shares = missing_shares(judges, agents, replies)
        left_out = excess_replies(*shares, per_judge=missing.per_judge, per_agent=missing.per_agent)
        if left_out and missing.on_excess == "stop":
            words = "; ".join(f"judge {judge}: {why}" for judge, why in left_out.items())
            raise LedgerError(f"too many replies are missing: {words}")
        # Where all lack too much it is of some agent, which then has no number; the others keep theirs.
        return cls(judges, tuple(agents), replies, {} if len(left_out) == len(judges) else left_out)

    def of_judge(self, judge: str) -> dict[str, JSON]:
        """What a judge lacks of whom, and why it was left out; empty where nothing is missing."""
        if judge not in self.judges or not self.replies[self.judges.index(judge), :, 1].any():
            return {}
        found = lacking_records(self.agents, self.replies, self.judges.index(judge))
        return {**found, "left_out": self.left_out.get(judge, "")}


@dataclass(frozen=True, slots=True, eq=False)
class SeasonScores:
    """What the judges of a season gave."""

    agents: tuple[str, ...]
    families: Mapping[str, str]
    whole: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]
    composites: Composites
    periods: Mapping[str, Composites]
    replicates: Mapping[str, Mapping[int, Mapping[str, float]]]
    states: Mapping[tuple[str, str], ReplyState | Literal["left out"]]

    @property
    def judges(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.families)

    def without(self, agents: Collection[str]) -> SeasonScores:
        """The grades of all other agents: judges agree on an empty record, and that says nothing about them."""
        if not agents:
            return self
        return replace(
            self, agents=tuple(one for one in self.agents if one not in agents), whole=_but(self.whole, agents),
            composites=_but(self.composites, agents),
            periods={name: _but(row, agents) for name, row in self.periods.items()},
            replicates=_but(self.replicates, agents),
        )  # fmt: skip

    def axis(self, agent: str, name: str) -> dict[str, float]:
        """What judges gave an agent on an axis of the composite, the mean over trials."""
        points = attrgetter(name)
        return {judge: fmean(map(points, trials.values())) for judge, trials in self.whole[agent].items()}

    def outcomes(self, agent: str) -> dict[str, float]:
        """What judges gave an agent's outcome, the mean over trials that have one."""
        found = {}
        for judge, trials in self.whole[agent].items():
            points = [one.outcome for one in trials.values() if one.outcome is not None]
            if points:
                found[judge] = fmean(points)
        return found

    def gradings(self, agent: str) -> list[float]:
        """The panel's median of one agent's whole record in each trial that all its judges have."""
        mine = self.whole[agent].values()
        common = set.intersection(*(set(trials) for trials in mine)) if mine else set()
        return [median(trials[at].composite for trials in mine) for at in sorted(common)]

    def repeated(self, agent: str) -> list[float]:
        """The panel's median of each replicate that all judges of the agent's replicates have graded."""
        mine = self.replicates.get(agent, {})
        panel = {judge for row in mine.values() for judge in row}
        return [median(row.values()) for _, row in sorted(mine.items()) if set(row) == panel]


def season_scores(grades: Iterable[SeasonGrade], agents: Sequence[str], left_out: Collection[str] = ()) -> SeasonScores:
    """The grades of a season without those of agents that are not among ``agents``, and of the judges ``left_out``."""
    rows = sorted(
        (one for one in grades if one.agent in agents), key=lambda one: (one.judge, one.trial, one.period, one.agent)
    )
    whole: dict[str, dict[str, dict[int, JudgeScore]]] = {agent: defaultdict(dict) for agent in agents}
    periods: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    replicates: dict[str, dict[int, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    states: dict[tuple[str, str], ReplyState | Literal["left out"]] = {}
    for one in rows:
        score, out = one.score.score, one.judge in left_out
        if one.scope == "whole":
            state = one.score.grades.state
            states.setdefault((one.agent, one.judge), "left out" if out and state == "ok" else state)
        if score is None or out:
            continue
        if one.scope == "whole":
            whole[one.agent][one.judge][one.trial] = score
        elif one.scope == "period":
            periods[one.period][one.agent][one.judge].append(score.composite)
        else:
            replicates[one.agent][one.replicate][one.judge].append(score.composite)
    return SeasonScores(
        agents=tuple(agents), families={one.judge: one.family for one in rows}, whole=whole,
        composites=mean_composites(whole), periods={name: _means(periods[name]) for name in sorted(periods)},
        replicates={agent: _means(found) for agent, found in replicates.items()},
        states={key: state for key, state in states.items() if key[1] not in whole[key[0]]},
    )  # fmt: skip


def mean_composites(whole: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]) -> Composites:
    """The composite of every agent by every judge, the mean over trials."""
    return {
        agent: {judge: fmean(one.composite for one in trials.values()) for judge, trials in row.items()}
        for agent, row in whole.items()
    }


def _but(rows: Mapping[str, V], agents: Collection[str]) -> dict[str, V]:
    return {agent: row for agent, row in rows.items() if agent not in agents}


def _means(found: Mapping[K, Mapping[str, Collection[float]]]) -> dict[K, dict[str, float]]:
    return {key: {judge: fmean(points) for judge, points in row.items()} for key, row in found.items()}


WITHIN: Final = 5
"""Days within which a trade that takes back an earlier one is a round trip."""

SAMPLED: Final = 60
"""Decisions of one agent, at most, over which chance agreement is found: the material of each is read anew."""


def agent_measurements(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Measurement]:
    """``season.reliability``, ``.lookahead``, ``.thrash`` and ``.decisions`` of every agent."""
    days = sorted({one.day for steps in material.steps.values() for one in steps})
    built_in = {one.name for one in material.season.panel if one.model.startswith("reference/")}
    for agent, steps in material.steps.items():
        labels = {"agent": agent}
        checks = [one for one in material.checks if one.agent == agent]
        counted = [one for one in checks if one.kind in RELIABILITY]
        n, passed = sum(one.checks for one in counted), sum(one.passed for one in counted)
        yield Measurement(
            name="season.reliability", labels=labels, value=100.0 * passed / n if n else None, n=n, n_of="checks",
            state="ok" if n else "nothing could be checked",
            detail={one.kind: [one.passed, one.checks] for one in checks},
            method="100 times the share of fill, cash and position checks that reconcile",
        )  # fmt: skip
        said: dict[str, list[str]] = defaultdict(list)  # a judge says that later data were used if it does in any trial
        for one in grades:
            found = one.score.grades.lookahead_check
            if one.agent == agent and one.scope == "whole" and one.judge not in built_in and found is not None:
                said[one.judge].append(found)  # built-in judges read no tenses
        looked = {judge: "fail" if "fail" in found else "pass" for judge, found in sorted(said.items())}
        yield Measurement(
            name="season.lookahead", labels=labels, n=len(looked), n_of="judges",
            value=float(list(looked.values()).count("fail")) if looked else None,
            state="ok" if looked else "not graded", detail=looked,
            method="judges that say an earlier decision was graded on, or made with, later data",
        )  # fmt: skip
        yield _thrash(agent, steps, days if material.season.has_books else None)
        silent = sum(bool({*NOT_USABLE} & {*step.decision.flags}) for step in steps)
        absent = sum(ABSENT in step.decision.flags for step in steps)
        rejected, n = len(material.rejections.get(agent, ())), len(steps)
        yield Measurement(
            name="season.decisions", labels=labels, value=float(n), n=n, n_of="decisions", method="counted",
            detail={"rejected": rejected, "silent": silent, "absent": absent},
        )  # fmt: skip


def _thrash(agent: str, steps: Sequence[StepRecord], days: Sequence[str] | None) -> Measurement:
    """Round trips over the days of the season, on some of which a log may have several decisions, or none."""
    empty = Measurement(
        name="season.thrash", labels={"agent": agent}, value=None, n=0, n_of="days", state="no fill is recorded",
        method="trades that take back earlier ones of the same name within some days, the latest first",
    )  # fmt: skip
    if days is None:
        return empty
    fills: dict[str, list[Filled]] = {day: [] for day in days}
    for step in steps:
        fills[step.day] += [fill for fill in step.fills if fill.quantity and getattr(fill, "kind", "") != SPLIT]
    found = thrashing(list(fills.values()), within=WITHIN)
    detail = {"within": WITHIN, "trades": found.trades, "by_symbol": found.by_symbol}
    return replace(empty, value=float(len(found.trips)), n=len(days), state="ok", detail=detail)


def return_measurements(material: SeasonMaterial, *, level: float, rng: np.random.Generator) -> Iterator[Measurement]:
    """``season.return`` and ``season.drawdown`` of agents and baselines, and ``season.excess`` of every two of them."""
    capital = material.season.capital
    books = [({"agent": name}, rows) for name, rows in material.navs.items()]
    books += [({"baseline": name}, rows) for name, rows in material.baselines.items()]
    for labels, rows in books:
        state, total, fall = "no days", None, None
        if rows:
            try:
                found = performance([capital, *(one.nav for one in rows)])
                state, total, fall = "ok", found.total_return, found.max_drawdown
            except InputError:
                state = "its value fell to zero"
        for name, value, method in (
            ("season.return", total, "last value over the capital, less 1"),
            ("season.drawdown", fall, "deepest fall below an earlier high, the capital being the first"),
        ):
            yield Measurement(
                name=name, labels=labels, value=value, n=len(rows), n_of="days", method=method, state=state,
                unit="share",
            )  # fmt: skip
    for agent, own in material.navs.items():
        for baseline, other in sorted(material.baselines.items()):
            labels = {"agent": agent, "baseline": baseline}
            yield _excess(labels, own, other, capital, level, rng)


def _excess(
    labels: Mapping[str, str], own: Sequence[SeasonNav], other: Sequence[SeasonNav], capital: float, level: float,
    rng: np.random.Generator,
) -> Measurement:  # fmt: skip
    """The mean daily difference, over the days on which both were valued."""
    base = {one.day: one.nav for one in other if one.state == "ok"}
    days = [one for one in own if one.state == "ok" and one.day in base]
    n = len(days)
    empty = Measurement(
        name="season.excess", labels=labels, value=None, n=n, n_of="days", method="", state="no common days"
    )
    if not n:
        return empty
    paths = [np.array([capital, *values]) for values in ([one.nav for one in days], [base[one.day] for one in days])]
    if any((path <= 0).any() for path in paths):
        return replace(empty, state="its value fell to zero")
    mine, theirs = (path[1:] / path[:-1] - 1.0 for path in paths)
    whole = float(paths[0][-1] / capital - paths[1][-1] / capital)
    try:
        found = daily_excess(mine, theirs, rng=rng, level=level)
    except NotMeasurableError:
        state = "too few days" if n < 10 else "the difference does not vary"
        return replace(empty, state=state, detail={"whole": whole})
    detail = {"p": found.p, "whole": whole, "block": found.block}
    return replace(
        empty, value=found.value, state="ok", method=f"mean daily difference; {found.method}", low=found.low,
        high=found.high, level=level, unit="share a day", detail=detail,
    )  # fmt: skip


def ledger_measurements(
    material: SeasonMaterial, evidence: Iterable[Evidence], grades: Iterable[SeasonGrade], *, rng: np.random.Generator
) -> Iterator[Measurement]:
    """``season.ledger`` of every agent: the share of its numbers that its own material bears out."""
    of = {step.decision.record_id: agent for agent, steps in material.steps.items() for step in steps}
    numbers: dict[str, list[Evidence]] = defaultdict(list)
    for one in evidence:
        if one.decision in of:
            numbers[of[one.decision]].append(one)
    whole = [one for one in grades if one.scope == "whole"]
    for agent, steps in material.steps.items():
        rows = numbers[agent]
        counts = Counter(one.state for one in rows)
        n = len(rows) - counts["own_action"]
        spoken = {one.decision for one in rows}
        given = [one.score.disagreement for one in whole if one.agent == agent]
        compared = [one for one in given if one is not None]
        detail: dict[str, Any] = {
            "counts": dict(sorted(counts.items())),
            "silent": sum(step.decision.record_id not in spoken for step in steps),
            "steps": len(steps),
            "claims": sum(one.claims for one in compared),
            "disagreements": sum(one.overruled + one.strict for one in compared),
            "misquoted": sum(one.misquoted for one in compared),
        }
        # what of the agreement with the right row is more than chance
        chosen = steps[:: math.ceil(len(steps) / SAMPLED)] if steps else steps
        contexts = {step.decision.record_id: step.decision.context_id for step in chosen}
        wanted = {contexts[one.decision] for one in rows if one.decision in contexts}
        known = {name: Material.of(material.contexts[name]) for name in sorted(wanted) if name in material.contexts}
        with suppress(NotMeasurableError):
            found = chance_corrected(rows, known, contexts, rng=rng)
            shares = {"observed": found.observed, "chance": found.chance, "corrected": found.corrected}
            detail |= {**shares, "rows": found.n}
        borne = sum(counts[state] for state in BORNE_OUT)
        yield Measurement(
            name="season.ledger", labels={"agent": agent}, value=borne / n if n else None, n=n, n_of="numbers",
            state="ok" if n else "no number", detail=detail,
            method="share of numbers that the agent's own material bears out",
        )  # fmt: skip


# --- The table of a season and what stands behind each of its rows: totals, composites, axes, and noise floors --------


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
