"""Everything that is measured of a judged season, from its tables: numbers with their denominators and intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean, median
from typing import Any, Final, Protocol

import numpy as np

from assaymark.agents.llm import NOT_USABLE
from assaymark.claims.evidence import SPAN, SeasonGates
from assaymark.claims.season_claims import CONSTANT, MISSING, SINGLE
from assaymark.errors import NotMeasurableError
from assaymark.judging import token_count
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scoring import band, decision_time
from assaymark.judging.season.table import SeasonTable
from assaymark.metrology import (
    SelfPreference,
    bootstrap_kappa,
    cluster_t,
    jackknife_kappa,
    kappa_of_table,
    mean_pairwise_kappa,
    self_preference,
    wilson,
)
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.datasheet import Datasheet, limit_measurements
from assaymark.metrology.kappa import spearman_columns
from assaymark.metrology.length import season_verbosity
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.measure_panel import alpha_measurements, flagged_measurements, variance_measurements
from assaymark.metrology.measure_people import Labels, people_measurements
from assaymark.metrology.orders import OrderPlan
from assaymark.plan import BiasRules, ClusterOrder, OrderRules
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.protocol import DatasheetLimits, JudgeSpec
from assaymark.records import AGGREGATE, JSON, CallFacts, Evidence, Measurement
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_judge import asked_judges
from assaymark.workflow.tracks.season_measure import (
    POINTS,
    SeasonReplies,
    SeasonScores,
    SeasonTotals,
    agent_measurements,
    judge_noise,
    ledger_measurements,
    return_measurements,
    season_scores,
    season_totals,
    table_measurements,
)
from assaymark.workflow.tracks.season_plan import period_of
from assaymark.workflow.tracks.season_records import SeasonGrade, SeasonGuess

BASELINE: Final = SeasonGates().baseline
LEVEL: Final = 0.95
"""Coverage of the intervals. Tests of claims go by the plan's alpha."""


class Judged(Protocol):
    """What judging left."""

    @property
    def grades(self) -> Sequence[SeasonGrade]:
        """Of whole records, periods and replicates."""
        ...

    @property
    def guesses(self) -> Sequence[SeasonGuess]:
        """At authors."""
        ...

    @property
    def evidence(self) -> Sequence[Evidence]:
        """Every number of the whole records beside its material."""
        ...


@dataclass(frozen=True, slots=True)
class _Demand:
    """What a season asks of its judges' datasheets."""

    datasheets: DatasheetLimits
    model_judges: Sequence[JudgeSpec]


def season_findings(
    material: SeasonMaterial, judged: Judged, sheets: Sequence[Datasheet] = (), *, rng: np.random.Generator,
    people: Labels | None = None,
) -> tuple[list[Measurement], SeasonTable]:  # fmt: skip
    """The measurements of a judged season, with ``people`` also of its judges beside them, and its table."""
    season, plan, order = material.season, material.scoring, material.season.cluster_order
    agreement, returns, rows = rng.spawn(3)
    names = [one.name for one in season.agents]
    replies = SeasonReplies.of(judged.grades, names, season.missing)
    grades = [one for one in judged.grades if one.judge not in replies.left_out]
    scores = season_scores(judged.grades, names, replies.left_out)
    times, flagged = {}, []
    silent = set()
    for agent in scores.agents:
        steps = material.steps.get(agent, ())
        usable = [one.decision for one in steps if not {*NOT_USABLE} & {*one.decision.flags}]
        if not usable:
            silent.add(agent)
        seconds = [material.seconds.get(one.record_id) for one in usable]
        times[agent] = decision_time(
            CallFacts(seconds=one, timing_source="absent" if one is None else "measured") for one in seconds
        )
        for step in steps:
            period = period_of(step.day, season.judging.period)
            flagged.append((agent, period, INSTRUCTION_LIKE in step.decision.flags))
    totals = season_totals(scores, times, plan, silent=silent)
    families, tokens = {one.name: one.family for one in season.agents}, written(material)
    earned = [*return_measurements(material, level=LEVEL, rng=returns)]
    compared = len([row for row in totals.table.rows if row.total is not None]) > 1
    # As in `decide_season`: orders share the error rate with the comparisons with a baseline.
    shared = compared and any(one.name == "season.excess" and one.labels["baseline"] == BASELINE for one in earned)
    inference = season.inference.model_copy(update={"alpha": season.inference.alpha / (1 + shared)})
    orders = [*season_orders(totals, families, tokens, inference, claims=season.claims, order=order, level=LEVEL)]
    found = [
        *table_measurements(totals),
        *orders,
        kappa_measurement(totals.heard, plan, level=LEVEL, rng=agreement, order=order),
        *judge_measurements(totals, families, tokens, level=LEVEL, order=order),
        *judge_noise(totals.heard),
        *probe_measurements(judged.guesses, level=LEVEL),
        *reply_measurements(judged.grades, judged.guesses, replies),
        *agent_measurements(material, grades),
        *earned,
        *ledger_measurements(material, judged.evidence, grades, rng=rows),
        *flagged_measurements(flagged, level=LEVEL),
    ]
    if people is not None:
        pass_mark = season.human.passed_from(0.0, SPAN)
        found += season_people(totals, families, orders, people, plan, inference, order, pass_mark=pass_mark)
    if season.datasheets is not None:
        demand = _Demand(season.datasheets, asked_judges(season))
        found += limit_measurements({one.judge: one for one in sheets}, demand)
    return found, totals.table


def season_people(
    totals: SeasonTotals, families: Mapping[str, str], orders: Iterable[Measurement], people: Labels,
    plan: ScoringPlan, inference: OrderRules, order: ClusterOrder = "consecutive", *, pass_mark: float = 0.625 * SPAN,
) -> Iterator[Measurement]:  # fmt: skip
    """What people's grades say of judges, bands and orders (`people_measurements`), on the periods that could be
    drawn."""
    found = season_comparisons(totals, families, {}, order, within=() if people.refused else people.pi)
    contrasts = [one for one in orders if one.name == "contrast"]
    yield from people_measurements(
        found, people, contrasts, Measurement, weights=np.array([]), scale=(0.0, SPAN), pass_mark=pass_mark,
        alpha=inference.alpha, level=LEVEL, unit=POINTS, cuts=(plan.bands.mixed, plan.bands.strong),
    )  # fmt: skip


def written(material: SeasonMaterial) -> Tokens:
    """How many words of rationale every agent wrote in each period, per decision: a short week is no terse one."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for agent, steps in material.steps.items():
        for step in steps:
            period = period_of(step.day, material.season.judging.period)
            found[agent, period].append(sum(token_count(one.text) for one in step.decision.rationales))
    return {key: fmean(counts) for key, counts in found.items()}


Tokens = Mapping[tuple[str, str], float]
"""How many words an agent wrote for each decision of a period: by agent and period."""

_CODES = {"weak": 1, "mixed": 2, "strong": 3}
_ZERO = 1e-9  # points; sums of floats


def season_orders(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, inference: OrderRules, *,
    claims: BiasRules | None = None, order: ClusterOrder = "consecutive", level: float = 0.95,
) -> Iterator[Measurement]:  # fmt: skip
    """Differences of graded agents over periods and all that orders rest on, as in a study (`order_measurements`)."""
    given = BiasRules() if claims is None else claims
    # Of the properties of texts only their length is known by period.
    known = "log2" in given.covariates
    rules = given.model_copy(update={"length": "log2" if known else "off"})
    plan = OrderPlan(inference, rules, level, span=SPAN, unit=POINTS, dimensions=False, cycle="period")
    found = season_comparisons(totals, families, tokens if known else {}, order)

    def make(name: str, labels: Mapping[str, str], **parts: Any) -> Measurement:
        if name == "panel.alpha":
            parts["n_of"] = "agents' periods"
        made = Measurement(name=name, labels=labels, **parts)
        if name != "contrast":
            return made
        high = labels["high"]
        low = labels["low"]
        gap = (totals.row(high).total or 0.0) - (totals.row(low).total or 0.0)
        floor = totals.floor(high, low)
        state = ""
        if floor is None:
            state = "noise-unknown"
        elif abs(gap) <= floor + _ZERO:
            state = "within-noise"
        elif gap < 0:
            state = "opposite-totals"
        return replace(made, detail={**made.detail, "totals_gap": gap, "noise_floor": floor, "unresolved": state})

    yield from order_measurements(found, plan, make)
    yield from alpha_measurements(found, level, make)
    yield from variance_measurements(found, make)


def season_comparisons(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, order: ClusterOrder,
    within: Collection[str] = (),
) -> Comparisons:  # fmt: skip
    """The composites of graded agents' periods (``within``: of these alone): each period is a cycle and a cluster."""
    scores = totals.heard
    # Without any graded period there is an empty one, in which no pair can be compared.
    periods = {name: row for name, row in scores.periods.items() if not within or name in within} or {"": {}}
    graded = {judge for agents in periods.values() for row in agents.values() for judge in row} or {*scores.judges}
    judges = tuple(judge for judge in scores.judges if judge in graded)
    agents = tuple(sorted(row.contestant for row in totals.table.rows if row.total is not None))
    cells = [
        [[found.get(agent, {}).get(judge, np.nan) for judge in judges] for agent in agents]
        for found in periods.values()
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
    scores: SeasonScores, plan: ScoringPlan, *, level: float, rng: np.random.Generator,
    order: ClusterOrder = "consecutive",
) -> Measurement:  # fmt: skip
    """``season.kappa``: mean pairwise quadratic-weighted kappa of the judges on the bands of agents' periods."""
    graded = {judge for agents in scores.periods.values() for row in agents.values() for judge in row}
    judges = [judge for judge in scores.judges if judge in graded]
    items = [
        (period, [_CODES[band(row[judge], plan=plan)] for judge in judges])
        for period, agents in scores.periods.items()
        for row in agents.values()
        if graded == set(row)
    ]
    detail = {"judges": judges, "periods": len({period for period, _ in items})}
    found = Measurement(
        name="season.kappa", labels={}, value=None, n=len(items), n_of="agents' periods", method="", detail=detail,
        state=MISSING,
    )  # fmt: skip
    method = "mean pairwise quadratic-weighted kappa on bands"
    if len(scores.judges) < 2:
        return replace(found, method=method, state=SINGLE)
    if len(judges) < 2 or not items:
        return replace(found, method=method, state=MISSING)
    ratings = np.array([codes for _, codes in items])
    tables: dict[str, JSON] = {}
    kappas: dict[str, JSON] = {}
    for one, other in combinations(range(len(judges)), 2):
        cells = np.zeros((len(_CODES), len(_CODES)), dtype=np.int64)
        np.add.at(cells, (ratings[:, one] - 1, ratings[:, other] - 1), 1)
        pair = f"{judges[one]}|{judges[other]}"
        tables[pair] = cells.tolist()
        with suppress(NotMeasurableError):
            kappas[pair] = kappa_of_table(cells)
    found = replace(found, detail={**detail, "pairs": {pair: kappas.get(pair) for pair in tables}, "tables": tables})
    try:
        value = mean_pairwise_kappa(ratings, categories=len(_CODES))
    except NotMeasurableError:
        return replace(found, method=method, state=CONSTANT)
    found = replace(found, value=value, state="ok")
    periods, size = [period for period, _ in items], len(_CODES)
    with suppress(NotMeasurableError):
        boot = bootstrap_kappa(ratings, periods, categories=size, level=level, rng=rng)
        drawn = {"low": boot.low, "high": boot.high, "method": boot.method}
        found = replace(found, detail={**found.detail, "bootstrap": drawn})
    try:
        ends = jackknife_kappa(ratings, periods, categories=size, level=level, consecutive=order == "consecutive")
    except NotMeasurableError as exc:
        return replace(found, method=f"{method}; {exc}")
    return replace(found, method=f"{method}; {ends.method}", low=ends.low, high=ends.high, level=level)


def judge_measurements(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, *, level: float,
    order: ClusterOrder = "consecutive",
) -> Iterator[Measurement]:  # fmt: skip
    """``season.self_preference``, ``.alone`` and ``.verbosity`` of every judge.

    Self-preference is over the periods of agents that every judge has graded; over whole records where there are too
    few periods.
    """
    scores = totals.heard
    periods = [(name, agent, row) for name, agents in scores.periods.items() for agent, row in agents.items()]
    whole_rows = [("", agent, row) for agent, row in scores.composites.items()]
    over, count = _preferred(periods, scores, families, level, consecutive=order == "consecutive")
    whole, _ = _preferred(whole_rows, scores, families, level)
    for judge in scores.judges:
        one, once, n = over.get(judge), whole.get(judge), count
        if one is None or not (once is None or one.state in ("ok", "no spread")):
            one, n = once, 0
        if one is None:
            state = "one judge" if len(scores.judges) < 2 else "no agent graded by all judges"
            yield Measurement(
                name="season.self_preference", labels={"judge": judge}, value=None, n=0, n_of="agents of its family",
                method="", state=state,
            )  # fmt: skip
            continue
        detail: dict[str, JSON] = {name: getattr(one, name) for name in ("own", "others", "n_own", "n_others", "state")}
        if n:
            detail["agents"] = sum(families[agent] == scores.families[judge] for agent in scores.agents)
            detail |= {} if once is None else {"whole": once.gap}
        yield Measurement(
            name="season.self_preference", labels={"judge": judge}, value=one.gap, n=n or one.n_own,
            n_of="periods" if n else "agents of its family", method=one.method,
            state="ok" if one.gap is not None else one.state, low=one.low, high=one.high,
            level=None if one.low is None else one.level, unit=POINTS, detail=detail,
        )  # fmt: skip
    for judge in totals.scores.judges:
        yield _alone(totals, judge)
        yield _verbosity(scores, judge, tokens, level)


def _preferred(
    rows: Sequence[tuple[str, str, Mapping[str, float]]], scores: SeasonScores, families: Mapping[str, str],
    level: float, *, consecutive: bool = False,
) -> tuple[dict[str, SelfPreference], int]:  # fmt: skip
    """What a judge with a grade gives its own family, over how many periods; rows are (period, agent, composites)."""
    judges = [judge for judge in scores.judges if any(judge in row for _, _, row in rows)]
    complete = [one for one in rows if set(judges) <= set(one[2])]
    if len(judges) < 2 or not complete:
        return {}, 0
    periods = [period for period, _, _ in complete]
    found = self_preference(
        [[row[judge] for judge in judges] for _, _, row in complete], [families[agent] for _, agent, _ in complete],
        [scores.families[judge] for judge in judges], judges=judges, level=level,
        clusters=periods if any(periods) else None, consecutive=consecutive,
    )  # fmt: skip
    return {one.judge: one for one in found}, len(set(periods))


def _alone(totals: SeasonTotals, judge: str) -> Measurement:
    """How the order that one judge would make goes with that of the panel, over the agents that it graded."""
    others = [one for one in totals.scores.judges if one != judge]
    alone = totals.without(others) if others else {}
    agents = sorted(alone)
    places = {name: at for at, name in enumerate(sorted(agents, key=lambda name: (-alone[name], name)), start=1)}
    rho, state = None, "one judge" if not others else "fewer than two agents"
    if len(agents) > 1:
        panel = [totals.row(agent).total or 0.0 for agent in agents]
        (rho,) = spearman_columns(np.array([[alone[agent]] for agent in agents]), np.array(panel)[:, None])
        state = "ok" if rho is not None else "all totals are equal"
    words = "Spearman's rank correlation of the totals that this judge alone would make with those of the panel"
    return Measurement(
        name="season.alone", labels={"judge": judge}, value=rho, n=len(agents), n_of="agents", state=state,
        method=words if len(agents) > 1 else "", detail={"places": places} if others else {},
    )  # fmt: skip


def _verbosity(scores: SeasonScores, judge: str, tokens: Tokens, level: float) -> Measurement:
    items = [
        (agent, period, row[judge], median(points for name, points in row.items() if name != judge))
        for period, agents in scores.periods.items()
        for agent, row in agents.items()
        if judge in row and len(row) > 1
    ]
    empty = Measurement(
        name="season.verbosity", labels={"judge": judge}, value=None, n=len(items), n_of="agents' periods", method="",
        state="lengths do not differ",
    )  # fmt: skip
    if not items:
        return replace(empty, state="one judge" if len(scores.judges) < 2 else "not graded")
    spoken = [one for one in items if tokens.get(one[:2], 0) >= 1]
    if not spoken:
        return empty
    agents, periods, own, others = zip(*spoken, strict=True)
    length = [tokens[one[:2]] for one in spoken]
    try:
        found = season_verbosity(own, others, length, agents, periods, level=level)
    except NotMeasurableError:
        return replace(empty, n=len(spoken))
    return replace(
        empty, value=found.slope, n=found.items, state="ok", method=found.method, low=found.low, high=found.high,
        level=None if found.low is None else level, unit="points per doubling", detail={"periods": found.periods},
    )  # fmt: skip


def probe_measurements(guesses: Iterable[SeasonGuess], *, level: float) -> Iterator[Measurement]:
    """``season.author_probe`` of every judge that was asked: how often it named the author, against chance."""
    rows: dict[str, list[SeasonGuess]] = defaultdict(list)
    for one in guesses:
        rows[one.judge].append(one)
    for judge, asked in sorted(rows.items()):
        usable = [one for one in asked if one.guess is not None]
        right = [one.guess == one.author for one in usable]
        chance = fmean(1 / one.options for one in asked)
        detail: dict[str, JSON] = {"asked": len(asked), "guesses": len(usable), "hits": sum(right), "chance": chance}
        empty = Measurement(
            name="season.author_probe", labels={"judge": judge}, value=None, n=0, n_of="guesses", method="",
            state="no guess", detail={**detail, "state": "no guess"},
        )  # fmt: skip
        if not usable:
            yield empty
            continue
        low, high = wilson(sum(right), len(right), level=level)
        over = cluster_t(np.array(right, dtype=float), [one.author for one in usable], level=level)
        if over.low is not None and over.high is not None:
            low, high = max(0.0, min(low, over.low)), min(1.0, max(high, over.high))
        counts = Counter(one.author for one in usable)
        hits = Counter(one.author for one in usable if one.guess == one.author)
        detail["by"] = {author: [hits[author], counts[author]] for author in sorted(counts)}
        detail["state"] = "above chance" if low > chance else "not above chance"
        method = "share of right guesses; the wider of Wilson's interval and of cluster-t over authors"
        value, n = sum(right) / len(right), len(right)
        yield replace(
            empty, value=value, n=n, method=method, state="ok", low=low, high=high, level=level, detail=detail
        )


def reply_measurements(
    grades: Iterable[SeasonGrade], guesses: Iterable[SeasonGuess], replies: SeasonReplies
) -> Iterator[Measurement]:
    """``season.invalid``: the share of a judge's replies that are no answer, with the counts of each kind."""
    states: dict[str, list[str]] = defaultdict(list)
    for one in grades:
        states[one.judge].append(one.score.grades.state)
        if one.score.outcome is not None:
            states[one.judge].append(one.score.outcome.state)
    for guess in guesses:
        states[guess.judge].append(guess.state)
    for judge in sorted(states):
        counts = Counter(states[judge])
        kinds = {kind: counts[kind] for kind in ("invalid", "refused", "truncated", "failed")}
        n = len(states[judge])
        yield Measurement(
            name="season.invalid", labels={"judge": judge}, value=sum(kinds.values()) / n, n=n, n_of="replies",
            method="share of replies that are no answer in the form that was asked for",
            detail=kinds | replies.of_judge(judge),
        )  # fmt: skip
