"""The measurements of a judged season, computed from its tables, with denominators and intervals."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, product
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

import assaymark.metrology as metrology
from assaymark.agents.llm import is_unanswered
from assaymark.claims.levels import SPAN, SeasonGates
from assaymark.claims.season_claims import CONSTANT, MISSING, SINGLE
from assaymark.claims.season_plan import period_of
from assaymark.errors import LedgerError, NotMeasurableError
from assaymark.judging import token_count
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scoring import (
    Contestant,
    DecisionTime,
    JudgeScore,
    NoiseFloor,
    SeasonRow,
    band,
    decision_time,
    gap_floor,
    noise_floor,
    season_table,
)
from assaymark.metrology import measure_orders, measure_panel, measure_people
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.estimates import excess_replies, missing_shares
from assaymark.metrology.kappa import contingency, spearman_columns
from assaymark.metrology.length import season_verbosity
from assaymark.metrology.orders import OrderPlan
from assaymark.plan import BiasRules, ClusterOrder, MissingLimits, OrderRules
from assaymark.prompting import INSTRUCTION_LIKE, ReplyState
from assaymark.records import AGGREGATE, JSON, Measurement, grouped
from assaymark.workflow.tracks.season_facts import (
    LEVEL,
    SeasonMaterial,
    agent_measurements,
    ledger_measurements,
    measured,
    return_measurements,
)  # fmt: skip
from assaymark.workflow.tracks.season_records import SeasonGrade, SeasonGuess, SeasonJudgments

if TYPE_CHECKING:
    from assaymark.metrology.datasheet import Datasheet

Composites = Mapping[str, Mapping[str, float]]
"""The composite by agent and judge; judges without a usable grade are left out."""

Tokens = Mapping[tuple[str, str], float]
"""Words per decision, by agent and period."""

PANEL: Final = "panel"
AXES: Final = ("reasoning", "evidence", "process")
POINTS: Final = "points"
_CODES: Final = {"weak": 1, "mixed": 2, "strong": 3}
_ZERO: Final = 1e-9  # points; tolerance for sums of floats
_EFFICIENCY: Final = {
    "absolute": "panel median, reduced in proportion where the median seconds of a decision exceed {reference:g}",
    "relative": "panel median over the median seconds of a decision, the best of the season being 100",
}


def season_findings(
    material: SeasonMaterial, judged: SeasonJudgments, rng: np.random.Generator, sheets: Sequence[Datasheet] = (),
    people: measure_people.Labels | None = None,
) -> tuple[list[Measurement], tuple[SeasonRow, ...]]:  # fmt: skip
    """Compute all measurements of a judged season (with ``people``, also judges against people), and its table."""
    season, plan, order = material.season, material.scoring, material.season.cluster_order
    agreement, returns, rows = rng.spawn(3)
    names = [agent.name for agent in season.agents]
    lacking, left_out = replies_lacking(judged.grades, names, season.missing)
    grades = [grade for grade in judged.grades if grade.judge not in left_out]
    times, flagged, active = {}, [], []
    for agent in names:
        steps = material.steps.get(agent, ())
        seconds = [step.seconds for step in steps if not is_unanswered(step.decision)]
        active += [agent] if seconds else []  # agreement on an empty record says nothing about judges
        times[agent] = decision_time(seconds)
        for step in steps:
            period = period_of(step.day, season.judging.period)
            flagged.append((agent, period, INSTRUCTION_LIKE in step.decision.flags))
    scores, of_active = (season_scores(judged.grades, some, left_out) for some in (names, active))
    totals = season_totals(scores, times, plan, of_active)
    families, tokens = {agent.name: agent.family for agent in season.agents}, words_written(material)
    earned = [*return_measurements(material, returns)]
    compared = len([row for row in totals.table if row.total is not None]) > 1
    # As in `decide_season`: rankings and comparisons with a baseline share the error rate.
    baseline = SeasonGates().baseline
    shared = compared and any(item.name == "season.excess" and item.labels["baseline"] == baseline for item in earned)
    inference = season.inference.model_copy(update={"alpha": season.inference.alpha / (1 + shared)})
    orders = [*season_orders(totals, families, tokens, inference, season.claims, order)]
    items = [
        *table_measurements(totals),
        *orders,
        kappa_measurement(totals.active, plan, agreement, order),
        *judge_measurements(totals, families, tokens, order),
        *judge_noise(totals.active),
        *probe_measurements(judged.guesses),
    ]
    states: dict[str, Counter[str]] = defaultdict(Counter)  # by judge, the states of its replies
    for grade in judged.grades:
        outcome = grade.score.outcome
        states[grade.judge].update([grade.score.grades.state, *([] if outcome is None else [outcome.state])])
    for guess in judged.guesses:
        states[guess.judge].update([guess.state])
    for judge, counts in sorted(states.items()):
        kinds = {kind: counts[kind] for kind in ("invalid", "refused", "truncated", "failed")}
        items.append(measured(
            "season.invalid", {"judge": judge}, sum(kinds.values()) / counts.total(), (counts.total(), "replies"),
            "share of replies that are no answer in the form that was asked for",
            detail=kinds | dict(lacking.get(judge, {})),
        ))  # fmt: skip
    items += [*agent_measurements(material, grades), *earned]
    items += ledger_measurements(material, judged.evidence, grades, rows)
    items += measure_panel.flagged_measurements(flagged, level=LEVEL)
    if people is not None:
        pass_mark = season.human.passed_from(0.0, SPAN)
        items += season_people(totals, families, orders, people, plan, inference, order, pass_mark)
    if season.datasheets is not None:
        from assaymark.metrology.datasheet import limit_measurements

        items += limit_measurements({sheet.judge: sheet for sheet in sheets}, season)
    return items, totals.table


def replies_lacking(
    grades: Iterable[SeasonGrade], agents: Sequence[str], missing: MissingLimits
) -> tuple[dict[str, dict[str, JSON]], dict[str, str]]:
    """Return the missing replies of each judge by agent, and the judges that lack too many, with the reason."""
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
    left_out = excess_replies(*shares, missing.per_judge, missing.per_agent)
    if left_out and missing.on_excess == "stop":
        words = "; ".join(f"judge {judge}: {reason}" for judge, reason in left_out.items())
        raise LedgerError(f"too many replies are missing: {words}")
    if len(left_out) == len(judges):  # if every judge is over a limit, none is left out
        left_out = {}
    lacking: dict[str, dict[str, JSON]] = {
        judge: {**measure_panel.lacking_records(tuple(agents), replies, at), "left_out": left_out.get(judge, "")}
        for at, judge in enumerate(judges)
        if replies[at, :, 1].any()
    }
    return lacking, left_out


@dataclass(frozen=True, eq=False)
class SeasonScores:
    """The scores of a season's judges by agent, and then by judge, trial, period or replicate."""

    agents: tuple[str, ...]
    families: Mapping[str, str]
    records: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]
    periods: Mapping[str, Composites]
    replicates: Mapping[str, Mapping[int, Mapping[str, float]]]
    states: Mapping[tuple[str, str], ReplyState | Literal["left out"]] = field(default_factory=dict)

    @property
    def judges(self) -> tuple[str, ...]:
        """The names of the judges."""
        return tuple(self.families)

    @cached_property
    def composites(self) -> Composites:
        """The composite of every agent by every judge, averaged over trials."""
        return {
            agent: {judge: fmean(trial.composite for trial in trials.values()) for judge, trials in row.items()}
            for agent, row in self.records.items()
        }


def season_scores(grades: Iterable[SeasonGrade], agents: Sequence[str], left_out: Collection[str] = ()) -> SeasonScores:
    """Arrange the grades of ``agents`` as scores; judges in ``left_out`` have none."""
    records: dict[str, dict[str, dict[int, JudgeScore]]] = {agent: defaultdict(dict) for agent in agents}
    points: dict[tuple[str, Any, Any, str], list[float]] = defaultdict(list)  # scope, two keys within it, and judge
    states: dict[tuple[str, str], ReplyState | Literal["left out"]] = {}
    families: dict[str, str] = {}
    for entry in sorted(grades, key=lambda grade: (grade.judge, grade.trial, grade.period, grade.agent)):
        families[entry.judge] = entry.family
        if entry.agent not in records:
            continue
        score, out = entry.score.score, entry.judge in left_out
        if entry.scope == "whole":
            state = entry.score.grades.state
            states.setdefault((entry.agent, entry.judge), "left out" if out and state == "ok" else state)
        if score is None or out:
            continue
        if entry.scope == "whole":
            records[entry.agent][entry.judge][entry.trial] = score
        else:
            keys = (entry.period, entry.agent) if entry.scope == "period" else (entry.agent, entry.replicate)
            points[entry.scope, *keys, entry.judge].append(score.composite)
    means: dict[str, dict[Any, dict[Any, dict[str, float]]]] = {"period": {}, "replicate": {}}
    for (scope, outer, inner, judge), given in points.items():
        means[scope].setdefault(outer, {}).setdefault(inner, {})[judge] = fmean(given)
    states = {key: state for key, state in states.items() if key[1] not in records[key[0]]}
    periods = dict(sorted(means["period"].items()))
    return SeasonScores(tuple(agents), families, records, periods, means["replicate"], states)


def words_written(material: SeasonMaterial) -> Tokens:
    """Return the words of rationale per decision, by agent and period: a short period is not a terse one."""
    words: dict[tuple[str, str], list[int]] = defaultdict(list)
    for agent, steps in material.steps.items():
        for step in steps:
            period = period_of(step.day, material.season.judging.period)
            words[agent, period].append(sum(token_count(rationale.text) for rationale in step.decision.rationales))
    return {key: fmean(counts) for key, counts in words.items()}


# --- The table of a season: totals, composites, axes, and noise floors ------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeasonTotals:
    """Totals of a season with the noise floors for comparing them; ``active`` are scores without silent agents."""

    scores: SeasonScores
    active: SeasonScores
    plan: ScoringPlan
    times: Mapping[str, DecisionTime]
    floors: Mapping[str, NoiseFloor]
    panel: NoiseFloor
    single: NoiseFloor
    trials: int

    def table_without(self, gone: Collection[str] = ()) -> tuple[SeasonRow, ...]:
        """Return the season table without the judges in ``gone``."""
        rows = [
            Contestant(
                agent, {judge: points for judge, points in row.items() if judge not in gone}, self.times[agent].seconds,
                self.floors[agent], agent in self.active.agents,
            )
            for agent, row in self.scores.composites.items()
        ]  # fmt: skip
        return season_table(rows, self.panel, self.plan)

    @cached_property
    def table(self) -> tuple[SeasonRow, ...]:
        """The table of the season."""
        return self.table_without()

    def row(self, agent: str) -> SeasonRow:
        """Return the row of an agent."""
        return next(row for row in self.table if row.contestant == agent)

    def without(self, judges: Collection[str]) -> dict[str, float]:
        """Return the totals without these judges; agents without a total are left out."""
        return {row.contestant: row.total for row in self.table_without(judges) if row.total is not None}


def season_totals(
    scores: SeasonScores, times: Mapping[str, DecisionTime], plan: ScoringPlan, active: SeasonScores | None = None
) -> SeasonTotals:
    """Compute the totals of a season, with noise floors from replicate decisions and repeated gradings."""
    active, floors = active or scores, {}
    for agent in scores.agents:  # the panel's median in each replicate that all judges of the agent graded
        runs = scores.replicates.get(agent, {})
        panel = {judge for row in runs.values() for judge in row}
        floors[agent] = noise_floor([[median(row.values()) for _, row in sorted(runs.items()) if set(row) == panel]])
    gradings = []  # the panel's median of an agent's whole record, in each trial that all its judges have
    for row in active.records.values():
        common = set.intersection(*map(set, row.values())) if row else set()
        gradings.append([median(trials[at].composite for trials in row.values()) for at in sorted(common)])
    graded = [trials for row in active.records.values() for trials in row.values()]
    singles = [[trial.composite for trial in trials.values()] for trials in graded]
    least = min(map(len, graded), default=1)
    together, single = (
        floor if floor.value is None else replace(floor, value=floor.value / math.sqrt(least))
        for floor in map(noise_floor, (gradings, singles))
    )
    return SeasonTotals(scores, active, plan, times, floors, together, single, least)


def table_measurements(totals: SeasonTotals) -> Iterator[Measurement]:
    """Yield ``season.total``, ``.composite``, ``.axis``, ``.outcome``, ``.efficiency``, ``.without`` and ``.noise``."""
    scores, plan = totals.scores, totals.plan
    for agent in scores.agents:
        row, labels, by_judge, detail = totals.row(agent), {"agent": agent}, scores.records[agent], dict[str, Any]()
        if row.total is not None:
            agreement, standing, bands = row.agreement, row.standing, plan.bands
            assert agreement is not None
            assert standing is not None
            points = (agreement.low, agreement.high, row.total)
            # how far noise alone moves one judge's composite past a fixed boundary
            still = NoiseFloor(None, 1, 2, 1, "identical repetitions")
            detail = {
                **{name: getattr(agreement, name) for name in ("low", "median", "high")},
                "judges": agreement.judges,
                "absent": [judge for judge in scores.judges if judge not in by_judge],
                "efficiency": row.efficiency,
                **{name: getattr(standing, name) for name in ("band", "lowest", "highest", "state")},
                "graded": [agreement.lowest, agreement.highest],
                "margin": min(abs(point - (bound - 0.5)) for point in points for bound in (bands.strong, bands.mixed)),
                "reach": gap_floor(totals.floors[agent], totals.single, still, plan.ties.level),
                "first": row.first,
                "last": row.last,
            }
        yield measured(
            "season.total", labels, row.total, (len(by_judge), "judges"),
            f"scoring plan {plan.version}: median of the judges' composites, and efficiency", row.state, detail,
            unit=POINTS, inputs=totals.plan.digest,
        )  # fmt: skip
        for judge in scores.judges:
            trials, composite = by_judge.get(judge, {}), scores.composites[agent].get(judge)
            each: dict[str, Any] = {}
            if composite is not None:
                each = {"band": band(composite, plan), "trials": [trial.composite for trial in trials.values()]}
            yield measured(
                "season.composite", {**labels, "judge": judge}, composite, (len(trials), "gradings"),
                "mean over trials of the judge's composite", scores.states.get((agent, judge), "not asked"), each,
                unit=POINTS,
            )  # fmt: skip
        for name in (*AXES, "outcome"):  # the panel's median, with its lowest and highest judge
            given = ([getattr(trial, name) for trial in trials.values()] for trials in by_judge.values())
            means = [fmean(some) for some in ([value for value in each if value is not None] for each in given) if some]
            axis = {} if name == "outcome" else {"axis": name}
            yield measured(
                "season.axis" if axis else "season.outcome", labels | axis, median(means) if means else None,
                (len(means), "judges"), "median over judges of the mean over trials",
                "not graded" if axis or not by_judge else "unresolved",
                {"low": min(means), "high": max(means)} if means else {}, unit=POINTS,
            )  # fmt: skip
        time = totals.times[agent]
        untimed = "no timing" if time.seconds is None else "not in this plan"
        yield measured(
            "season.efficiency", labels, row.efficiency, (time.measured, "decisions"),
            _EFFICIENCY[plan.efficiency.scale].format(reference=plan.efficiency.reference_s),
            row.state if row.total is None else untimed, {"seconds": time.seconds, "left_out": time.left_out},
            unit=POINTS,
        )  # fmt: skip
        subject = {"of": agent, "kind": "agent"} if agent == PANEL else {"of": agent}
        yield _noise_item("season.noise", subject, totals.floors[agent], "replicates")
    remaining = {judge: totals.without([judge]) for judge in scores.judges}
    for agent, judge in product(scores.agents, scores.judges):
        graded, others = totals.row(agent).state, [name for name in scores.records[agent] if name != judge]
        state = "no other judge" if graded in ("graded", "graded by part of the panel") else graded
        labels, count = {"agent": agent, "judge": judge}, (len(others), "judges")
        yield measured(
            "season.without", labels, remaining[judge].get(agent), count, "total without one judge", state, unit=POINTS
        )
    once = None if totals.panel.value is None else totals.panel.value * math.sqrt(totals.trials)
    more = {"trials": totals.trials, "one_grading": once}
    divided = ", divided by the square root of the trials of a grading"
    yield _noise_item("season.noise", {"of": PANEL}, totals.panel, "gradings", more, divided)


def _noise_item(
    name: str, labels: Mapping[str, str], floor: NoiseFloor, unit: str, more: Mapping[str, Any] | None = None,
    divided: str = "",
) -> Measurement:  # fmt: skip
    method = f"pooled standard deviation of totals between repetitions{divided}"
    detail = {"freedom": floor.freedom, "groups": floor.groups, **(more or {})}
    return measured(name, labels, floor.value, (floor.replicates, unit), method, floor.state, detail, unit=POINTS)


def judge_noise(scores: SeasonScores) -> Iterator[Measurement]:
    """Yield ``season.judge_noise``: the spread of one judge's composites of the same record."""
    for judge in scores.judges:
        rows = [scores.records[agent].get(judge, {}).values() for agent in scores.agents]
        floor = noise_floor([[score.composite for score in row] for row in rows])
        yield _noise_item("season.judge_noise", {"judge": judge}, floor, "gradings")


# --- Rankings of agents, and properties of judges ---------------------------------------------------------------------


def season_orders(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, inference: OrderRules,
    claims: BiasRules | None = None, order: ClusterOrder = "consecutive",
) -> Iterator[Measurement]:  # fmt: skip
    """Yield differences of graded agents over periods and the other inputs of rankings, as `order_measurements`."""
    base = BiasRules() if claims is None else claims
    # Of the covariates of texts, only length is known by period.
    by_length = "log2" in base.covariates
    rules = base.model_copy(update={"length": "log2" if by_length else "off"})
    plan = OrderPlan(inference, rules, LEVEL, span=SPAN, unit=POINTS, dimensions=False, cycle="period")
    comparisons = season_comparisons(totals, families, tokens if by_length else {}, order)

    def make(**parts: Any) -> Measurement:
        if parts["name"] == "panel.alpha":
            parts["n_of"] = "agents' periods"
        item = Measurement(**parts)
        if item.name != "contrast":
            return item
        high, low = item.labels["high"], item.labels["low"]
        lead = (totals.row(high).total or 0.0) - (totals.row(low).total or 0.0)
        floor = gap_floor(totals.floors[high], totals.floors[low], totals.panel, totals.plan.ties.level)
        state = ""
        if floor is None:
            state = "noise-unknown"
        elif abs(lead) <= floor + _ZERO:
            state = "within-noise"
        elif lead < 0:
            state = "opposite-totals"
        return replace(item, detail={**item.detail, "totals_gap": lead, "noise_floor": floor, "unresolved": state})

    yield from measure_orders.order_measurements(comparisons, plan, make)
    yield from measure_panel.alpha_measurements(comparisons, LEVEL, make)
    yield from measure_panel.variance_measurements(comparisons, make)


def season_people(
    totals: SeasonTotals, families: Mapping[str, str], orders: Iterable[Measurement], people: measure_people.Labels,
    plan: ScoringPlan, inference: OrderRules, order: ClusterOrder = "consecutive", pass_mark: float = 0.625 * SPAN,
) -> Iterator[Measurement]:  # fmt: skip
    """Yield judges, bands and rankings compared with people's grades (`people_measurements`), on the periods that could
    be drawn."""
    comparisons = season_comparisons(totals, families, {}, order, within=() if people.refused else people.pi)
    contrasts = [measurement for measurement in orders if measurement.name == "contrast"]
    yield from measure_people.people_measurements(
        comparisons, people, contrasts, Measurement, np.array([]), OrderPlan(inference, level=LEVEL, unit=POINTS),
        (0.0, SPAN), pass_mark, cuts=(plan.bands.mixed, plan.bands.strong),
    )  # fmt: skip


def season_comparisons(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, order: ClusterOrder,
    within: Collection[str] = (),
) -> Comparisons:  # fmt: skip
    """Return composites by period for comparing agents (only periods in ``within``); each period is its own cluster."""
    scores = totals.active
    # Without graded periods, use one empty period, in which no pair can be compared.
    periods = {name: row for name, row in scores.periods.items() if not within or name in within} or {"": {}}
    graded = {judge for agents in periods.values() for row in agents.values() for judge in row} or {*scores.judges}
    judges = tuple(judge for judge in scores.judges if judge in graded)
    agents = tuple(sorted(row.contestant for row in totals.table if row.total is not None))
    cells = [
        [[points.get(agent, {}).get(judge, np.nan) for judge in judges] for agent in agents]
        for points in periods.values()
    ]
    places = len(periods)
    words = np.array([[tokens.get((agent, period), np.nan) for agent in agents] for period in periods])
    return Comparisons(
        names=(AGGREGATE,), agents=agents, judges=judges, families=tuple(scores.families[judge] for judge in judges),
        agent_families={agent: families[agent] for agent in agents}, cycles=tuple(periods),
        clusters=tuple(periods), cluster=np.arange(places), weight=np.ones(places, dtype=np.int64),
        cells=np.array(cells, dtype=float).reshape(places, len(agents), len(judges), 1),
        lengths=np.log2(np.maximum(words, 1.0)).reshape(places, len(agents), 1) if tokens else None, order=order,
    )  # fmt: skip


def kappa_measurement(
    scores: SeasonScores, plan: ScoringPlan, rng: np.random.Generator, order: ClusterOrder = "consecutive"
) -> Measurement:
    """Return ``season.kappa``: mean pairwise quadratic-weighted kappa of the judges on the bands of agents' periods."""
    graded = {judge for agents in scores.periods.values() for row in agents.values() for judge in row}
    judges = [judge for judge in scores.judges if judge in graded]
    items = [
        (period, [_CODES[band(row[judge], plan)] for judge in judges])
        for period, agents in scores.periods.items()
        for row in agents.values()
        if graded == set(row)
    ]
    periods, size = [period for period, _ in items], len(_CODES)
    detail: dict[str, Any] = {"judges": judges, "periods": len(set(periods))}
    method = "mean pairwise quadratic-weighted kappa on bands"
    kappa = partial(measured, "season.kappa", {}, count=(len(items), "agents' periods"), detail=detail)
    if len(scores.judges) < 2 or len(judges) < 2 or not items:
        return kappa(None, method=method, state=SINGLE if len(scores.judges) < 2 else MISSING)
    ratings = np.array([codes for _, codes in items])
    detail |= {"pairs": {}, "tables": {}}
    for (at, first), (beside, other) in combinations(enumerate(judges), 2):
        pair, table = f"{first}|{other}", contingency(ratings[:, at], ratings[:, beside], size)
        detail["tables"][pair], detail["pairs"][pair] = table.tolist(), None
        with suppress(NotMeasurableError):
            detail["pairs"][pair] = metrology.kappa_of_table(table)
    try:
        value = metrology.mean_pairwise_kappa(ratings, categories=size)
    except NotMeasurableError:
        return kappa(None, method=method, state=CONSTANT)
    with suppress(NotMeasurableError):
        boot = metrology.bootstrap_kappa(ratings, periods, categories=size, level=LEVEL, rng=rng)
        detail["bootstrap"] = {"low": boot.low, "high": boot.high, "method": boot.method}
    try:
        ends = metrology.jackknife_kappa(ratings, periods, size, LEVEL, consecutive=order == "consecutive")
    except NotMeasurableError as exc:
        return kappa(value, method=f"{method}; {exc}")
    return kappa(value, method=f"{method}; {ends.method}", ends=(ends.low, ends.high), level=LEVEL)


def judge_measurements(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, order: ClusterOrder = "consecutive"
) -> Iterator[Measurement]:
    """Yield ``season.self_preference``, ``.alone`` and ``.verbosity`` of every judge.

    Self-preference is over the periods graded by every judge, or over whole records if those are too few.
    """
    scores, one_judge = totals.active, len(totals.active.judges) < 2

    def preferred(
        rows: Sequence[tuple[str, str, Mapping[str, float]]], consecutive: bool
    ) -> tuple[dict[str, metrology.SelfPreference], int]:
        """Estimate self-preference by judge, with the number of periods; rows are (period, agent, composites)."""
        judges = [judge for judge in scores.judges if any(judge in row for _, _, row in rows)]
        complete = [row for row in rows if set(judges) <= set(row[2])]
        if len(judges) < 2 or not complete:
            return {}, 0
        periods = [period for period, _, _ in complete]
        estimates = metrology.self_preference(
            [[row[judge] for judge in judges] for _, _, row in complete], [families[agent] for _, agent, _ in complete],
            [scores.families[judge] for judge in judges], judges=judges, level=LEVEL,
            clusters=periods if any(periods) else None, consecutive=consecutive,
        )  # fmt: skip
        return {estimate.judge: estimate for estimate in estimates}, len(set(periods))

    by_period = [(name, author, row) for name, agents in scores.periods.items() for author, row in agents.items()]
    over, count = preferred(by_period, order == "consecutive")
    overall, _ = preferred([("", author, row) for author, row in scores.composites.items()], False)
    for judge in scores.judges:
        one, once, n = over.get(judge), overall.get(judge), count
        if one is None or not (once is None or one.state in ("ok", "no spread")):
            one, n = once, 0
        preference = partial(measured, "season.self_preference", {"judge": judge})
        if one is None:
            state = "one judge" if one_judge else "no agent graded by all judges"
            yield preference(None, (0, "agents of its family"), "", state)
            continue
        detail: dict[str, JSON] = {name: getattr(one, name) for name in ("own", "others", "n_own", "n_others", "state")}
        if n:
            detail["agents"] = sum(families[agent] == scores.families[judge] for agent in scores.agents)
            detail |= {} if once is None else {"whole": once.gap}
        yield preference(
            one.gap, (n or one.n_own, "periods" if n else "agents of its family"), one.method, one.state, detail,
            (one.low, one.high), one.level, POINTS,
        )  # fmt: skip
    for judge in totals.scores.judges:
        # rank correlation of the totals by this judge alone with the panel's, over the agents that it graded
        others = [other for other in totals.scores.judges if other != judge]
        alone = totals.without(others) if others else {}
        agents, rho, method = sorted(alone), None, ""
        ranked = {name: at for at, name in enumerate(sorted(agents, key=lambda name: (-alone[name], name)), start=1)}
        state = "one judge" if not others else "fewer than two agents"
        if len(agents) > 1:
            panel = [totals.row(agent).total or 0.0 for agent in agents]
            (rho,) = spearman_columns(np.array([[alone[agent]] for agent in agents]), np.array(panel)[:, None])
            state, method = "all totals are equal", "Spearman's rank correlation of the totals that this judge alone"
            method += " would make with those of the panel"
        places: dict[str, JSON] = {"places": ranked} if others else {}
        yield measured("season.alone", {"judge": judge}, rho, (len(agents), "agents"), method, state, places)
        items = [
            (agent, period, row[judge], median(points for name, points in row.items() if name != judge))
            for period, agent, row in by_period
            if judge in row and len(row) > 1
        ]
        verbosity = partial(measured, "season.verbosity", {"judge": judge})
        if not items:
            yield verbosity(None, (0, "agents' periods"), "", "one judge" if one_judge else "not graded")
            continue
        spoken = [item for item in items if tokens.get(item[:2], 0) >= 1]
        with suppress(NotMeasurableError):
            if spoken:
                authors, periods, points, rest = zip(*spoken, strict=True)
                slope = season_verbosity(points, rest, [tokens[item[:2]] for item in spoken], authors, periods, LEVEL)
                yield verbosity(
                    slope.estimate, (len(spoken), "agents' periods"),
                    "points per doubling of the length, within agents, against the median of the other judges; "
                    "jackknife over periods", ends=(slope.low, slope.high), level=LEVEL, unit="points per doubling",
                    detail={"periods": len(set(periods))},
                )  # fmt: skip
                continue
        yield verbosity(None, (len(spoken) or len(items), "agents' periods"), "", "lengths do not differ")


def probe_measurements(guesses: Iterable[SeasonGuess]) -> Iterator[Measurement]:
    """Yield ``season.author_probe`` of every judge probed: its share of correct author guesses, against chance."""
    for judge, judged in sorted(grouped(guesses, lambda guess: guess.judge).items()):
        usable = [guess for guess in judged if guess.guess is not None]
        right = [guess.guess == guess.author for guess in usable]
        chance = fmean(1 / guess.options for guess in judged)
        detail: dict[str, JSON] = {"asked": len(judged), "guesses": len(usable), "hits": sum(right), "chance": chance}
        probe = partial(measured, "season.author_probe", {"judge": judge})
        if not usable:
            yield probe(None, (0, "guesses"), "", "no guess", {**detail, "state": "no guess"})
            continue
        low, high = metrology.wilson(sum(right), len(right), level=LEVEL)
        over = metrology.cluster_t(np.array(right, dtype=float), [guess.author for guess in usable], LEVEL)
        if over.low is not None and over.high is not None:
            low, high = max(0.0, min(low, over.low)), min(1.0, max(high, over.high))
        counts = Counter(guess.author for guess in usable)
        hits = Counter(guess.author for guess in usable if guess.guess == guess.author)
        detail["by"] = {author: [hits[author], counts[author]] for author in sorted(counts)}
        detail["state"] = "above chance" if low > chance else "not above chance"
        yield probe(
            sum(right) / len(right), (len(right), "guesses"),
            "share of right guesses; the wider of Wilson's interval and of cluster-t over authors", ends=(low, high),
            level=LEVEL, detail=detail,
        )  # fmt: skip
