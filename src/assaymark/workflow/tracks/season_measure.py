"""The agents of a season in facts: what they earned, what they stated, how they traded, and whether records hold up."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from statistics import fmean, median
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

import numpy as np

from assaymark.agents.llm import ABSENT, NOT_USABLE
from assaymark.errors import InputError, LedgerError, NotMeasurableError
from assaymark.judging.evidence import BORNE_OUT, Material, chance_corrected
from assaymark.judging.prompts import ReplyState
from assaymark.judging.season.plans import ScoringPlan
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
from assaymark.metrology.estimates import number
from assaymark.metrology.measure_panel import lacking_records
from assaymark.metrology.scores import excess_replies, missing_shares
from assaymark.plan import Missing
from assaymark.portfolio import performance
from assaymark.portfolio.broker import RELIABILITY
from assaymark.records import JSON, Evidence, Measurement
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_records import SPLIT, SeasonGrade, SeasonNav

V = TypeVar("V")

Composites = Mapping[str, Mapping[str, float]]
"""By agent and then judge; a judge without a usable grade is left out."""


measured = partial(number, Measurement)


def replies_lacking(
    grades: Iterable[SeasonGrade], agents: Sequence[str], missing: Missing
) -> tuple[dict[str, dict[str, JSON]], dict[str, str]]:
    """What each judge lacks of whom, if it lacks anything, and the judges that lack too much, each with the reason."""
    usable: dict[tuple[str, str, str, str, int], bool] = {}
    for grade in grades:
        if grade.agent in agents:
            key = (grade.judge, grade.agent, grade.scope, grade.period, grade.replicate)
            usable[key] = usable.get(key, False) or grade.score.score is not None
    judges = tuple(sorted({key[0] for key in usable}))
    replies = np.zeros((len(judges), len(agents), 2), dtype=np.int64)
    for (judge, agent, *_), ok in usable.items():
        replies[judges.index(judge), agents.index(agent), int(not ok)] += 1
    shares = missing_shares(judges, agents, replies)
    left_out = excess_replies(*shares, per_judge=missing.per_judge, per_agent=missing.per_agent)
    if left_out and missing.on_excess == "stop":
        words = "; ".join(f"judge {judge}: {why}" for judge, why in left_out.items())
        raise LedgerError(f"too many replies are missing: {words}")
    if len(left_out) == len(judges):  # all lack too much of some agent: it has no number
        left_out = {}
    lacking: dict[str, dict[str, JSON]] = {
        judge: {**lacking_records(tuple(agents), replies, at), "left_out": left_out.get(judge, "")}
        for at, judge in enumerate(judges)
        if replies[at, :, 1].any()
    }
    return lacking, left_out


@dataclass(frozen=True, slots=True, eq=False)
class SeasonScores:
    """What the judges of a season gave, by agent, then by judge, trial, period or replicate."""

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


def season_scores(grades: Iterable[SeasonGrade], agents: Sequence[str], left_out: Collection[str] = ()) -> SeasonScores:
    """The grades of a season without those of agents that are not among ``agents``, and of the judges ``left_out``."""
    rows = sorted(
        (grade for grade in grades if grade.agent in agents),
        key=lambda grade: (grade.judge, grade.trial, grade.period, grade.agent),
    )
    whole: dict[str, dict[str, dict[int, JudgeScore]]] = {agent: defaultdict(dict) for agent in agents}
    parts: dict[str, dict[tuple[Any, Any], dict[str, list[float]]]] = {
        scope: defaultdict(lambda: defaultdict(list)) for scope in ("period", "replicate")
    }
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
        else:
            key = (one.period, one.agent) if one.scope == "period" else (one.agent, one.replicate)
            parts[one.scope][key][one.judge].append(score.composite)
    means: dict[str, dict[Any, dict[Any, dict[str, float]]]] = {"period": {}, "replicate": {}}
    for scope, of in parts.items():
        for (outer, inner), row in of.items():
            means[scope].setdefault(outer, {})[inner] = {judge: fmean(points) for judge, points in row.items()}
    return SeasonScores(
        tuple(agents), {one.judge: one.family for one in rows}, whole, mean_composites(whole),
        dict(sorted(means["period"].items())), means["replicate"],
        {key: state for key, state in states.items() if key[1] not in whole[key[0]]},
    )  # fmt: skip


def mean_composites(whole: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]) -> Composites:
    """The composite of every agent by every judge, the mean over trials."""
    return {
        agent: {judge: fmean(trial.composite for trial in trials.values()) for judge, trials in row.items()}
        for agent, row in whole.items()
    }


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
        checks = [check for check in material.checks if check.agent == agent]
        counted = [check for check in checks if check.kind in RELIABILITY]
        n, passed = sum(one.checks for one in counted), sum(one.passed for one in counted)
        yield measured(
            "season.reliability", labels, 100.0 * passed / n if n else None, (n, "checks"),
            "100 times the share of fill, cash and position checks that reconcile", state="nothing could be checked",
            detail={check.kind: [check.passed, check.checks] for check in checks},
        )  # fmt: skip
        said: dict[str, list[str]] = defaultdict(list)  # a judge says that later data were used if it does in any trial
        for grade in grades:
            found = grade.score.grades.lookahead_check
            if grade.agent == agent and grade.scope == "whole" and grade.judge not in built_in and found is not None:
                said[grade.judge].append(found)  # built-in judges read no tenses
        looked = {judge: "fail" if "fail" in found else "pass" for judge, found in sorted(said.items())}
        yield measured(
            "season.lookahead", labels, list(looked.values()).count("fail") if looked else None,
            (len(looked), "judges"), "judges that say an earlier decision was graded on, or made with, later data",
            state="not graded", detail=looked,
        )  # fmt: skip
        trips, across, detail = None, 0, {}
        if material.season.has_books:  # on some days of the season a log may have several decisions, or none
            fills: dict[str, list[tuple[str, float]]] = {day: [] for day in days}
            for step in steps:
                moved = (fill for fill in step.fills if fill.quantity and getattr(fill, "kind", "") != SPLIT)
                fills[step.day] += [(fill.symbol, fill.quantity) for fill in moved]
            found_trips, trades = thrashing(list(fills.values()), WITHIN)
            trips, across = len(found_trips), len(days)
            names = Counter(trip.symbol for trip in found_trips)
            by_symbol = dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))
            detail = {"within": WITHIN, "trades": trades, "by_symbol": by_symbol}
        yield measured(
            "season.thrash", labels, trips, (across, "days"),
            "trades that take back earlier ones of the same name within some days, the latest first",
            state="no fill is recorded", detail=detail,
        )  # fmt: skip
        silent = sum(bool({*NOT_USABLE} & {*step.decision.flags}) for step in steps)
        absent = sum(ABSENT in step.decision.flags for step in steps)
        rejected = len(material.rejections.get(agent, ()))
        detail = {"rejected": rejected, "silent": silent, "absent": absent}
        yield measured("season.decisions", labels, len(steps), (len(steps), "decisions"), "counted", detail=detail)


def return_measurements(material: SeasonMaterial, *, level: float, rng: np.random.Generator) -> Iterator[Measurement]:
    """``season.return`` and ``season.drawdown`` of agents and baselines, and ``season.excess`` of every two of them."""
    capital = material.season.capital
    books = [({"agent": name}, rows) for name, rows in material.navs.items()]
    books += [({"baseline": name}, rows) for name, rows in material.baselines.items()]
    for labels, rows in books:
        state, total, fall = "no days", None, None
        if rows:
            try:
                found = performance([capital, *(row.nav for row in rows)])
                state, total, fall = "ok", found.total_return, found.max_drawdown
            except InputError:
                state = "its value fell to zero"
        for name, value, method in (
            ("season.return", total, "last value over the capital, less 1"),
            ("season.drawdown", fall, "deepest fall below an earlier high, the capital being the first"),
        ):
            yield measured(name, labels, value, (len(rows), "days"), method, state=state, unit="share")
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
    excess = partial(measured, "season.excess", labels, count=(len(days), "days"))
    if not days:
        return excess(None, method="", state="no common days")
    paths = [np.array([capital, *values]) for values in ([day.nav for day in days], [base[one.day] for one in days])]
    if any((path <= 0).any() for path in paths):
        return excess(None, method="", state="its value fell to zero")
    mine, theirs = (path[1:] / path[:-1] - 1.0 for path in paths)
    whole = float(paths[0][-1] / capital - paths[1][-1] / capital)
    try:
        found = daily_excess(mine, theirs, rng, level)
    except NotMeasurableError:
        state = "too few days" if len(days) < 10 else "the difference does not vary"
        return excess(None, method="", state=state, detail={"whole": whole})
    return excess(
        found.value, method=f"mean daily difference; {found.method}", ends=(found.low, found.high), level=level,
        unit="share a day", detail={"p": found.p, "whole": whole, "block": found.block},
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
    whole = [grade for grade in grades if grade.scope == "whole"]
    for agent, steps in material.steps.items():
        rows = numbers[agent]
        counts = Counter(row.state for row in rows)
        n = len(rows) - counts["own_action"]
        spoken = {row.decision for row in rows}
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
        wanted = {contexts[row.decision] for row in rows if row.decision in contexts}
        known = {name: Material.of(material.contexts[name]) for name in sorted(wanted) if name in material.contexts}
        with suppress(NotMeasurableError):
            found = chance_corrected(rows, known, contexts, rng)
            detail |= {name: getattr(found, name) for name in ("observed", "chance", "corrected")} | {"rows": found.n}
        borne = sum(counts[state] for state in BORNE_OUT)
        yield measured(
            "season.ledger", {"agent": agent}, borne / n if n else None, (n, "numbers"),
            "share of numbers that the agent's own material bears out", state="no number", detail=detail,
        )  # fmt: skip


# --- The table of a season and what stands behind each of its rows: totals, composites, axes, and noise floors --------


PANEL: Final = "panel"
AXES: Final = ("reasoning", "evidence", "process")
POINTS: Final = "points"


@dataclass(frozen=True, eq=False)
class SeasonTotals:
    """The totals of a season with the noise that they are told apart by."""

    scores: SeasonScores
    plan: ScoringPlan
    times: Mapping[str, DecisionTime]
    agents: Mapping[str, NoiseFloor]
    silent: Collection[str]
    heard: SeasonScores
    panel: NoiseFloor
    single: NoiseFloor
    trials: int

    def table_without(self, gone: Collection[str] = ()) -> SeasonTable:
        """The table that the other judges make."""
        rows = [
            Contestant(
                agent, {judge: points for judge, points in row.items() if judge not in gone}, self.times[agent].seconds,
                self.agents[agent], agent not in self.silent,
            )
            for agent, row in self.scores.composites.items()
        ]  # fmt: skip
        return season_table(rows, self.panel, self.plan)

    @cached_property
    def table(self) -> SeasonTable:
        """The table of the season."""
        return self.table_without()

    def row(self, agent: str) -> SeasonRow:
        """The row of an agent."""
        return next(row for row in self.table.rows if row.contestant == agent)

    def without(self, judges: Collection[str]) -> dict[str, float]:
        """The totals that the other judges make; agents without one of them are left out."""
        return {row.contestant: row.total for row in self.table_without(judges).rows if row.total is not None}


def season_totals(
    scores: SeasonScores, times: Mapping[str, DecisionTime], plan: ScoringPlan, silent: Collection[str] = ()
) -> SeasonTotals:
    """The totals of a season, with noise floors from replicate decisions and repeated gradings."""
    floors = {}
    for agent in scores.agents:  # the panel's median of each replicate that all judges of the agent's have graded
        mine = scores.replicates.get(agent, {})
        panel = {judge for row in mine.values() for judge in row}
        floors[agent] = noise_floor([[median(row.values()) for _, row in sorted(mine.items()) if set(row) == panel]])

    def heard_of(rows: Mapping[str, V]) -> dict[str, V]:
        return {agent: row for agent, row in rows.items() if agent not in silent}

    # judges agree on an empty record, and that says nothing about them
    heard = scores if not silent else replace(
        scores, agents=tuple(one for one in scores.agents if one not in silent), whole=heard_of(scores.whole),
        composites=heard_of(scores.composites), replicates=heard_of(scores.replicates),
        periods={name: heard_of(row) for name, row in scores.periods.items()},
    )  # fmt: skip
    graded = [trials for row in heard.whole.values() for trials in row.values()]
    least = min(map(len, graded), default=1)
    gradings = []  # the panel's median of one agent's whole record in each trial that all its judges have
    for agent in heard.agents:
        every = heard.whole[agent].values()
        common = set.intersection(*(set(trials) for trials in every)) if every else set()
        gradings.append([median(trials[at].composite for trials in every) for at in sorted(common)])
    together, single = (
        floor if floor.value is None else replace(floor, value=floor.value / math.sqrt(least))
        for floor in (
            noise_floor(gradings), noise_floor([[trial.composite for trial in trials.values()] for trials in graded]),
        )
    )  # fmt: skip
    return SeasonTotals(scores, plan, times, floors, silent, heard, together, single, least)


def table_measurements(totals: SeasonTotals) -> Iterator[Measurement]:
    """``season.total``, ``.composite``, ``.axis``, ``.outcome``, ``.efficiency``, ``.without`` and ``.noise``."""
    scores, plan = totals.scores, totals.plan
    for agent in scores.agents:
        row, labels, whole = totals.row(agent), {"agent": agent}, scores.whole[agent]
        yield measured(
            "season.total", labels, row.total, (len(whole), "judges"),
            f"scoring plan {plan.version}: median of the judges' composites, and efficiency", state=row.state,
            unit=POINTS, inputs=totals.table.plan, detail={} if row.total is None else _detail(totals, row),
        )  # fmt: skip
        for judge in scores.judges:
            trials, points = whole.get(judge, {}), scores.composites[agent].get(judge)
            each: dict[str, Any] = {}
            if points is not None:
                each = {"band": band(points, plan=plan), "trials": [trial.composite for trial in trials.values()]}
            yield measured(
                "season.composite", {**labels, "judge": judge}, points, (len(trials), "gradings"),
                "mean over trials of the judge's composite", unit=POINTS, detail=each,
                state=scores.states.get((agent, judge), "not asked"),
            )  # fmt: skip
        for name in (*AXES, "outcome"):  # the panel's median, with its lowest and highest judge
            given = ([getattr(trial, name) for trial in trials.values()] for trials in whole.values())
            means = [fmean(some) for some in ([one for one in each if one is not None] for each in given) if some]
            axis = {} if name == "outcome" else {"axis": name}
            yield measured(
                "season.axis" if axis else "season.outcome", labels | axis, median(means) if means else None,
                (len(means), "judges"), "median over judges of the mean over trials", unit=POINTS,
                state="not graded" if axis or not whole else "unresolved",
                detail={"low": min(means), "high": max(means)} if means else {},
            )  # fmt: skip
        time = totals.times[agent]
        untimed = "no timing" if time.seconds is None else "not in this plan"
        yield measured(
            "season.efficiency", labels, row.efficiency, (time.measured, "decisions"),
            _EFFICIENCY[plan.efficiency.scale].format(reference=plan.efficiency.reference_s), unit=POINTS,
            state=row.state if row.total is None else untimed,
            detail={"seconds": time.seconds, "left_out": time.left_out},
        )  # fmt: skip
        of = {"of": agent, "kind": "agent"} if agent == PANEL else {"of": agent}
        yield _noise("season.noise", of, totals.agents[agent], "replicates")
    left = {judge: totals.without([judge]) for judge in scores.judges}
    for agent, judge in product(scores.agents, scores.judges):
        state = totals.row(agent).state
        yield measured(
            "season.without", {"agent": agent, "judge": judge}, left[judge].get(agent),
            (len([one for one in scores.whole[agent] if one != judge]), "judges"), "total without one judge",
            state="no other judge" if state in ("graded", "graded by part of the panel") else state, unit=POINTS,
        )  # fmt: skip
    value = totals.panel.value
    once = None if value is None else value * math.sqrt(totals.trials)
    more = {"trials": totals.trials, "one_grading": once}
    yield _noise("season.noise", {"of": PANEL}, totals.panel, "gradings", more)


def _detail(totals: SeasonTotals, row: SeasonRow) -> dict[str, Any]:
    agreement, standing, bands = row.agreement, row.standing, totals.plan.bands
    assert agreement is not None
    assert standing is not None
    assert row.total is not None
    points = (agreement.low, agreement.high, row.total)
    # how far noise alone moves one judge's composite past a boundary, which does not move
    still = NoiseFloor(None, 1, 2, 1, "identical repetitions")
    return {
        **{name: getattr(agreement, name) for name in ("low", "median", "high", "judges")},
        "absent": [judge for judge in totals.scores.judges if judge not in totals.scores.whole[row.contestant]],
        "efficiency": row.efficiency,
        **{name: getattr(standing, name) for name in ("band", "lowest", "highest", "state")},
        "graded": [agreement.standing.lowest, agreement.standing.highest],
        "margin": min(abs(point - (bound - 0.5)) for point in points for bound in (bands.strong, bands.mixed)),
        "reach": gap_floor(totals.agents[row.contestant], totals.single, still, totals.plan.ties.level),
        "first": row.first,
        "last": row.last,
    }


_EFFICIENCY: Final = {
    "absolute": "panel median, reduced in proportion where the median seconds of a decision exceed {reference:g}",
    "relative": "panel median over the median seconds of a decision, the best of the season being 100",
}


def _noise(
    name: str, labels: Mapping[str, str], floor: NoiseFloor, what: str, detail: Mapping[str, Any] = MappingProxyType({})
) -> Measurement:
    method = "pooled standard deviation of totals between repetitions"
    parts = {"freedom": floor.freedom, "groups": floor.groups, **detail}
    return measured(
        name, labels, floor.value, (floor.replicates, what), method, state=floor.state, unit=POINTS, detail=parts
    )


def judge_noise(scores: SeasonScores) -> Iterator[Measurement]:
    """``season.judge_noise``: how far one judge's composites of the same record lie apart."""
    for judge in scores.judges:
        rows = [scores.whole[agent].get(judge, {}).values() for agent in scores.agents]
        floor = noise_floor([[one.composite for one in row] for row in rows])
        yield _noise("season.judge_noise", {"judge": judge}, floor, "gradings")
