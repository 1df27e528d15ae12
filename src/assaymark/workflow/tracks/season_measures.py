"""Everything that is measured of a judged season, from its tables: numbers with their denominators and intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import fmean, median
from typing import Any, Final

import numpy as np

from assaymark.agents.llm import NOT_USABLE
from assaymark.claims.levels import SPAN, SeasonGates
from assaymark.claims.season_claims import CONSTANT, MISSING, SINGLE
from assaymark.claims.season_plan import period_of
from assaymark.errors import NotMeasurableError
from assaymark.judging import token_count
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scoring import band, decision_time
from assaymark.judging.season.table import SeasonTable, gap_floor
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
from assaymark.records import AGGREGATE, JSON, CallFacts, Measurement
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_measure import (
    POINTS,
    SeasonScores,
    SeasonTotals,
    agent_measurements,
    judge_noise,
    ledger_measurements,
    measured,
    replies_lacking,
    return_measurements,
    season_scores,
    season_totals,
    table_measurements,
)
from assaymark.workflow.tracks.season_records import SeasonGuess, SeasonJudgments

BASELINE: Final = SeasonGates().baseline
LEVEL: Final = 0.95
"""Coverage of the intervals. Tests of claims go by the plan's alpha."""


def season_findings(
    material: SeasonMaterial, judged: SeasonJudgments, sheets: Sequence[Datasheet] = (), *, rng: np.random.Generator,
    people: Labels | None = None,
) -> tuple[list[Measurement], SeasonTable]:  # fmt: skip
    """The measurements of a judged season, with ``people`` also of its judges beside them, and its table."""
    season, plan, order = material.season, material.scoring, material.season.cluster_order
    agreement, returns, rows = rng.spawn(3)
    names = [one.name for one in season.agents]
    lacking, left_out = replies_lacking(judged.grades, names, season.missing)
    grades = [grade for grade in judged.grades if grade.judge not in left_out]
    scores = season_scores(judged.grades, names, left_out)
    times, flagged = {}, []
    silent = set()
    for agent in scores.agents:
        steps = material.steps.get(agent, ())
        usable = [one.decision for one in steps if not {*NOT_USABLE} & {*one.decision.flags}]
        if not usable:
            silent.add(agent)
        seconds = [material.seconds.get(one.record_id) for one in usable]
        times[agent] = decision_time(
            CallFacts(seconds=second, timing_source="absent" if second is None else "measured") for second in seconds
        )
        for step in steps:
            period = period_of(step.day, season.judging.period)
            flagged.append((agent, period, INSTRUCTION_LIKE in step.decision.flags))
    totals = season_totals(scores, times, plan, silent)
    families, tokens = {one.name: one.family for one in season.agents}, written(material)
    earned = [*return_measurements(material, level=LEVEL, rng=returns)]
    compared = len([row for row in totals.table.rows if row.total is not None]) > 1
    # As in `decide_season`: orders share the error rate with the comparisons with a baseline.
    shared = compared and any(one.name == "season.excess" and one.labels["baseline"] == BASELINE for one in earned)
    inference = season.inference.model_copy(update={"alpha": season.inference.alpha / (1 + shared)})
    orders = [*season_orders(totals, families, tokens, inference, season.claims, order, level=LEVEL)]
    found = [
        *table_measurements(totals),
        *orders,
        kappa_measurement(totals.heard, plan, LEVEL, agreement, order),
        *judge_measurements(totals, families, tokens, LEVEL, order),
        *judge_noise(totals.heard),
        *probe_measurements(judged.guesses, level=LEVEL),
        *_invalid(judged, lacking),
        *agent_measurements(material, grades),
        *earned,
        *ledger_measurements(material, judged.evidence, grades, rng=rows),
        *flagged_measurements(flagged, level=LEVEL),
    ]
    if people is not None:
        pass_mark = season.human.passed_from(0.0, SPAN)
        found += season_people(totals, families, orders, people, plan, inference, order, pass_mark=pass_mark)
    if season.datasheets is not None:
        found += limit_measurements({sheet.judge: sheet for sheet in sheets}, season)
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
            found[agent, period].append(sum(token_count(rationale.text) for rationale in step.decision.rationales))
    return {key: fmean(counts) for key, counts in found.items()}


Tokens = Mapping[tuple[str, str], float]
"""How many words an agent wrote for each decision of a period: by agent and period."""

_CODES = {"weak": 1, "mixed": 2, "strong": 3}
_ZERO = 1e-9  # points; sums of floats


def season_orders(
    totals: SeasonTotals,
    families: Mapping[str, str],
    tokens: Tokens,
    inference: OrderRules,
    claims: BiasRules | None = None,
    order: ClusterOrder = "consecutive",
    *,
    level: float = 0.95,
) -> Iterator[Measurement]:
    """Differences of graded agents over periods and all that orders rest on, as in a study (`order_measurements`)."""
    given = BiasRules() if claims is None else claims
    # Of the properties of texts only their length is known by period.
    known = "log2" in given.covariates
    rules = given.model_copy(update={"length": "log2" if known else "off"})
    plan = OrderPlan(inference, rules, level, span=SPAN, unit=POINTS, dimensions=False, cycle="period")
    found = season_comparisons(totals, families, tokens if known else {}, order)

    def make(**parts: Any) -> Measurement:
        if parts["name"] == "panel.alpha":
            parts["n_of"] = "agents' periods"
        made = Measurement(**parts)
        if made.name != "contrast":
            return made
        high, low = made.labels["high"], made.labels["low"]
        gap = (totals.row(high).total or 0.0) - (totals.row(low).total or 0.0)
        floor = gap_floor(totals.agents[high], totals.agents[low], totals.panel, totals.plan.ties.level)
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
    scores: SeasonScores, plan: ScoringPlan, level: float, rng: np.random.Generator,
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
    periods, size = [period for period, _ in items], len(_CODES)
    detail: dict[str, Any] = {"judges": judges, "periods": len(set(periods))}
    method, count = "mean pairwise quadratic-weighted kappa on bands", (len(items), "agents' periods")
    kappa = partial(measured, "season.kappa", {}, count=count, detail=detail)
    if len(scores.judges) < 2 or len(judges) < 2 or not items:
        return kappa(None, method=method, state=SINGLE if len(scores.judges) < 2 else MISSING)
    ratings = np.array([codes for _, codes in items])
    detail |= {"pairs": {}, "tables": {}}
    for one, other in combinations(range(len(judges)), 2):
        cells = np.zeros((size, size), dtype=np.int64)
        np.add.at(cells, (ratings[:, one] - 1, ratings[:, other] - 1), 1)
        pair = f"{judges[one]}|{judges[other]}"
        detail["tables"][pair], detail["pairs"][pair] = cells.tolist(), None
        with suppress(NotMeasurableError):
            detail["pairs"][pair] = kappa_of_table(cells)
    try:
        value = mean_pairwise_kappa(ratings, categories=size)
    except NotMeasurableError:
        return kappa(None, method=method, state=CONSTANT)
    with suppress(NotMeasurableError):
        boot = bootstrap_kappa(ratings, periods, categories=size, level=level, rng=rng)
        detail["bootstrap"] = {"low": boot.low, "high": boot.high, "method": boot.method}
    try:
        ends = jackknife_kappa(ratings, periods, size, level, consecutive=order == "consecutive")
    except NotMeasurableError as exc:
        return kappa(value, method=f"{method}; {exc}")
    return kappa(value, method=f"{method}; {ends.method}", ends=(ends.low, ends.high), level=level)


def judge_measurements(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, level: float,
    order: ClusterOrder = "consecutive",
) -> Iterator[Measurement]:  # fmt: skip
    """``season.self_preference``, ``.alone`` and ``.verbosity`` of every judge.

    Self-preference is over the periods of agents that every judge has graded; over whole records where there are too
    few periods.
    """
    scores = totals.heard
    alone_state = "one judge" if len(scores.judges) < 2 else "no agent graded by all judges"

    def preferred(
        rows: Sequence[tuple[str, str, Mapping[str, float]]], consecutive: bool
    ) -> tuple[dict[str, SelfPreference], int]:
        """What a judge gives its own family, over how many periods; rows are (period, agent, composites)."""
        judges = [judge for judge in scores.judges if any(judge in row for _, _, row in rows)]
        complete = [one for one in rows if set(judges) <= set(one[2])]
        if len(judges) < 2 or not complete:
            return {}, 0
        periods = [period for period, _, _ in complete]
        found = self_preference(
            [[row[judge] for judge in judges] for _, _, row in complete], [families[who] for _, who, _ in complete],
            [scores.families[judge] for judge in judges], judges=judges, level=level,
            clusters=periods if any(periods) else None, consecutive=consecutive,
        )  # fmt: skip
        return {one.judge: one for one in found}, len(set(periods))

    over, count = preferred(
        [(name, who, row) for name, agents in scores.periods.items() for who, row in agents.items()],
        order == "consecutive",
    )
    whole, _ = preferred([("", who, row) for who, row in scores.composites.items()], False)
    for judge in scores.judges:
        one, once, n = over.get(judge), whole.get(judge), count
        if one is None or not (once is None or one.state in ("ok", "no spread")):
            one, n = once, 0
        preference = partial(measured, "season.self_preference", {"judge": judge})
        if one is None:
            yield preference(None, (0, "agents of its family"), "", state=alone_state)
            continue
        detail: dict[str, JSON] = {name: getattr(one, name) for name in ("own", "others", "n_own", "n_others", "state")}
        if n:
            detail["agents"] = sum(families[agent] == scores.families[judge] for agent in scores.agents)
            detail |= {} if once is None else {"whole": once.gap}
        yield preference(
            one.gap, (n or one.n_own, "periods" if n else "agents of its family"), one.method, state=one.state,
            ends=(one.low, one.high), level=one.level, unit=POINTS, detail=detail,
        )  # fmt: skip
    for judge in totals.scores.judges:
        # how the ranking that one judge would make goes with that of the panel, over the agents that it graded
        others = [one for one in totals.scores.judges if one != judge]
        alone = totals.without(others) if others else {}
        agents = sorted(alone)
        ranked = {name: at for at, name in enumerate(sorted(agents, key=lambda name: (-alone[name], name)), start=1)}
        rho, method, state = None, "", "one judge" if not others else "fewer than two agents"
        if len(agents) > 1:
            panel = [totals.row(agent).total or 0.0 for agent in agents]
            (rho,) = spearman_columns(np.array([[alone[agent]] for agent in agents]), np.array(panel)[:, None])
            state = "all totals are equal"
            method = (
                "Spearman's rank correlation of the totals that this judge alone would make with those of the panel"
            )
        detail = {"places": ranked} if others else {}
        yield measured(
            "season.alone", {"judge": judge}, rho, (len(agents), "agents"), method, state=state, detail=detail
        )
        yield _verbosity(scores, judge, tokens, level)


def _verbosity(scores: SeasonScores, judge: str, tokens: Tokens, level: float) -> Measurement:
    items = [
        (agent, period, row[judge], median(points for name, points in row.items() if name != judge))
        for period, agents in scores.periods.items()
        for agent, row in agents.items()
        if judge in row and len(row) > 1
    ]
    verbosity = partial(measured, "season.verbosity", {"judge": judge})
    if not items:
        state = "one judge" if len(scores.judges) < 2 else "not graded"
        return verbosity(None, (0, "agents' periods"), "", state=state)
    spoken = [item for item in items if tokens.get(item[:2], 0) >= 1]
    count, alike = (len(spoken) or len(items), "agents' periods"), "lengths do not differ"
    if not spoken:
        return verbosity(None, count, "", state=alike)
    agents, periods, own, others = zip(*spoken, strict=True)
    try:
        found = season_verbosity(own, others, [tokens[one[:2]] for one in spoken], agents, periods, level)
    except NotMeasurableError:
        return verbosity(None, count, "", state=alike)
    return verbosity(
        found.slope, (found.items, "agents' periods"), found.method, ends=(found.low, found.high), level=level,
        unit="points per doubling", detail={"periods": found.periods},
    )  # fmt: skip


def probe_measurements(guesses: Iterable[SeasonGuess], *, level: float) -> Iterator[Measurement]:
    """``season.author_probe`` of every judge that was asked: how often it named the author, against chance."""
    rows: dict[str, list[SeasonGuess]] = defaultdict(list)
    for guess in guesses:
        rows[guess.judge].append(guess)
    for judge, asked in sorted(rows.items()):
        usable = [one for one in asked if one.guess is not None]
        right = [one.guess == one.author for one in usable]
        chance = fmean(1 / one.options for one in asked)
        detail: dict[str, JSON] = {"asked": len(asked), "guesses": len(usable), "hits": sum(right), "chance": chance}
        probe = partial(measured, "season.author_probe", {"judge": judge})
        if not usable:
            yield probe(None, (0, "guesses"), "", state="no guess", detail={**detail, "state": "no guess"})
            continue
        low, high = wilson(sum(right), len(right), level=level)
        over = cluster_t(np.array(right, dtype=float), [one.author for one in usable], level)
        if over.low is not None and over.high is not None:
            low, high = max(0.0, min(low, over.low)), min(1.0, max(high, over.high))
        counts = Counter(one.author for one in usable)
        hits = Counter(one.author for one in usable if one.guess == one.author)
        detail["by"] = {author: [hits[author], counts[author]] for author in sorted(counts)}
        detail["state"] = "above chance" if low > chance else "not above chance"
        yield probe(
            sum(right) / len(right), (len(right), "guesses"),
            "share of right guesses; the wider of Wilson's interval and of cluster-t over authors", ends=(low, high),
            level=level, detail=detail,
        )  # fmt: skip


def _invalid(judged: SeasonJudgments, lacking: Mapping[str, Mapping[str, JSON]]) -> Iterator[Measurement]:
    """``season.invalid``: the share of a judge's replies that are no answer, with the counts of each kind."""
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for grade in judged.grades:
        states[grade.judge].update([grade.score.grades.state])
        if grade.score.outcome is not None:
            states[grade.judge].update([grade.score.outcome.state])
    for guess in judged.guesses:
        states[guess.judge].update([guess.state])
    for judge, counts in sorted(states.items()):
        kinds = {kind: counts[kind] for kind in ("invalid", "refused", "truncated", "failed")}
        yield measured(
            "season.invalid", {"judge": judge}, sum(kinds.values()) / counts.total(), (counts.total(), "replies"),
            "share of replies that are no answer in the form that was asked for",
            detail=kinds | dict(lacking.get(judge, {})),
        )  # fmt: skip
