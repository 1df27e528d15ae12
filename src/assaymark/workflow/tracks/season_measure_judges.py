"""The judges of a season as instruments: whom they favour, what they like, how they stand alone, what they returned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assaymark.claims.evidence import SPAN
from assaymark.claims.season_types import CONSTANT, MISSING, SINGLE
from assaymark.errors import NotMeasurableError
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scoring import band
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
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.measure_panel import alpha_measurements, variance_measurements
from assaymark.metrology.order_tests import OrderPlan
from assaymark.metrology.stability import spearman_columns
from assaymark.metrology.style import season_verbosity
from assaymark.plan import BiasRules, ClusterOrder, OrderRules
from assaymark.records import AGGREGATE, JSON, Measurement
from assaymark.workflow.tracks.season_measure import SeasonReplies, SeasonScores
from assaymark.workflow.tracks.season_measure_table import POINTS, SeasonTotals
from assaymark.workflow.tracks.season_record_tables import SeasonGrade, SeasonGuess

# What orders of a season's agents rest on: differences over periods, and how far judges agree on bands.


Tokens = Mapping[tuple[str, str], float]
"""How many words an agent wrote for each decision of a period: by agent and period."""

_CODES = {"weak": 1, "mixed": 2, "strong": 3}
_ZERO = 1e-9  # points; sums of floats


def season_orders(
    totals: SeasonTotals,
    families: Mapping[str, str],
    tokens: Tokens,
    inference: OrderRules,
    *,
    claims: BiasRules | None = None,
    order: ClusterOrder = "consecutive",
    level: float = 0.95,
) -> Iterator[Measurement]:
    """Differences of graded agents over periods and all that orders rest on, as in a study (`order_measurements`).

    Beside them Krippendorff's alpha and variance components of the composites, with periods as clusters.

    The score of an agent's period is the mean over judges of their composites; where a judge has no grade of it, the
    severity of judges is taken out first. A contrast's ``detail`` also has the difference of the totals, the noise
    floor that it has to exceed, and under ``unresolved`` why it is no order in spite of its p-value.
    """
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
        return replace(made, detail={**made.detail, **_beside_totals(totals, labels["high"], labels["low"])})

    yield from order_measurements(found, plan, make)
    yield from alpha_measurements(found, level, make)
    yield from variance_measurements(found, make)


def season_comparisons(
    totals: SeasonTotals, families: Mapping[str, str], tokens: Tokens, order: ClusterOrder
) -> Comparisons:
    """The composites of graded agents' periods: each period is a cycle and a cluster."""
    scores = totals.heard
    # Without any graded period there is an empty one, in which no pair can be compared.
    periods = scores.periods or {"": {}}
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
        names=(AGGREGATE,),
        agents=agents,
        judges=judges,
        families=tuple(scores.families[judge] for judge in judges),
        agent_families={agent: families[agent] for agent in agents},
        clusters=tuple(periods),
        cluster=np.arange(places),
        weight=np.ones(places, dtype=np.int64),
        cells=np.array(cells, dtype=float).reshape(places, len(agents), len(judges), 1),
        lengths=np.log2(np.maximum(words, 1.0)).reshape(places, len(agents), 1) if tokens else None,
        order=order,
    )


def _beside_totals(totals: SeasonTotals, high: str, low: str) -> dict[str, JSON]:
    """What the totals say of a difference over periods; a gap that noise makes, or the other way round, is no order."""
    gap = (totals.row(high).total or 0.0) - (totals.row(low).total or 0.0)
    floor = totals.floor(high, low)
    state = ""
    if floor is None:
        state = "noise-unknown"
    elif abs(gap) <= floor + _ZERO:
        state = "within-noise"
    elif gap < 0:
        state = "opposite-totals"
    return {"totals_gap": gap, "noise_floor": floor, "unresolved": state}


def kappa_measurement(
    scores: SeasonScores,
    plan: ScoringPlan,
    *,
    level: float,
    rng: np.random.Generator,
    order: ClusterOrder = "consecutive",
) -> Measurement:
    """``season.kappa``: mean pairwise quadratic-weighted kappa of the judges on the bands of agents' periods.

    Items are the agents' periods that every judge has graded; judges without any period grade are left out of it. The
    interval is a jackknife over periods, since what happens in one touches all agents: over blocks of neighbours where
    periods follow each other in time (``order``). The narrower bootstrap over periods is in ``detail``.
    """
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
    found = replace(found, detail={**detail, **_by_pair(judges, ratings)})
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


def _by_pair(judges: Sequence[str], ratings: NDArray[np.int64]) -> dict[str, JSON]:
    """The contingency table of every two judges over the bands, and its kappa, by "ONE|OTHER"."""
    tables: dict[str, JSON] = {}
    kappas: dict[str, JSON] = {}
    for one, other in combinations(range(len(judges)), 2):
        cells = np.zeros((len(_CODES), len(_CODES)), dtype=np.int64)
        np.add.at(cells, (ratings[:, one] - 1, ratings[:, other] - 1), 1)
        pair = f"{judges[one]}|{judges[other]}"
        tables[pair] = cells.tolist()
        with suppress(NotMeasurableError):
            kappas[pair] = kappa_of_table(cells)
    return {"pairs": {pair: kappas.get(pair) for pair in tables}, "tables": tables}


def judge_measurements(
    totals: SeasonTotals,
    families: Mapping[str, str],
    tokens: Tokens,
    *,
    level: float,
    order: ClusterOrder = "consecutive",
) -> Iterator[Measurement]:
    """``season.self_preference``, ``.alone`` and ``.verbosity`` of every judge."""
    yield from _preferences(totals.heard, families, level, consecutive=order == "consecutive")
    for judge in totals.scores.judges:
        yield _alone(totals, judge)
        yield _verbosity(totals.heard, judge, tokens, level)


def _preferences(
    scores: SeasonScores, families: Mapping[str, str], level: float, *, consecutive: bool
) -> Iterator[Measurement]:
    """Over the periods of agents that every judge has graded; over whole records where there are too few periods."""
    periods = [(name, agent, row) for name, agents in scores.periods.items() for agent, row in agents.items()]
    over, count = _preferred(periods, scores, families, level, consecutive=consecutive)
    whole, _ = _preferred([("", agent, row) for agent, row in scores.composites.items()], scores, families, level)
    for judge in scores.judges:
        one, once = over.get(judge), whole.get(judge)
        if one is not None and (once is None or one.state in ("ok", "no spread")):
            yield _preference(scores, one, families, periods=count, whole=once)
        elif once is not None:
            yield _preference(scores, once, families)
        else:
            state = "one judge" if len(scores.judges) < 2 else "no agent graded by all judges"
            yield Measurement(
                name="season.self_preference", labels={"judge": judge}, value=None, n=0, n_of="agents of its family",
                method="", state=state,
            )  # fmt: skip


def _preferred(
    rows: Sequence[tuple[str, str, Mapping[str, float]]],
    scores: SeasonScores,
    families: Mapping[str, str],
    level: float,
    *,
    consecutive: bool = False,
) -> tuple[dict[str, SelfPreference], int]:
    """What each judge with a grade gives its own family, over how many periods; rows are (period, agent, composites).

    Without periods the agents are the units.
    """
    judges = [judge for judge in scores.judges if any(judge in row for _, _, row in rows)]
    complete = [one for one in rows if set(judges) <= set(one[2])]
    if len(judges) < 2 or not complete:
        return {}, 0
    periods = [period for period, _, _ in complete]
    found = self_preference(
        [[row[judge] for judge in judges] for _, _, row in complete],
        [families[agent] for _, agent, _ in complete],
        [scores.families[judge] for judge in judges],
        judges=judges,
        level=level,
        clusters=periods if any(periods) else None,
        consecutive=consecutive,
    )
    return {one.judge: one for one in found}, len(set(periods))


def _preference(
    scores: SeasonScores,
    one: SelfPreference,
    families: Mapping[str, str],
    *,
    periods: int = 0,
    whole: SelfPreference | None = None,
) -> Measurement:
    """What one judge gives its own family, over ``n`` periods or agents of its family."""
    mine = sum(families[agent] == scores.families[one.judge] for agent in scores.agents)
    detail: dict[str, JSON] = {
        "own": one.own,
        "others": one.others,
        "n_own": one.n_own,
        "n_others": one.n_others,
        "state": one.state,
    }
    detail |= {"agents": mine} if periods else {}
    detail |= {} if whole is None else {"whole": whole.gap}
    return Measurement(
        name="season.self_preference",
        labels={"judge": one.judge},
        value=one.gap,
        n=periods or one.n_own,
        n_of="periods" if periods else "agents of its family",
        method=one.method,
        state="ok" if one.gap is not None else one.state,
        low=one.low,
        high=one.high,
        level=None if one.low is None else one.level,
        unit=POINTS,
        detail=detail,
    )


def _alone(totals: SeasonTotals, judge: str) -> Measurement:
    """How the order that one judge would make goes with that of the panel, over the agents that it graded."""
    scores = totals.scores
    others = [one for one in scores.judges if one != judge]
    alone = totals.without(others) if others else {}
    agents = sorted(alone)
    places = {name: at for at, name in enumerate(sorted(agents, key=lambda name: (-alone[name], name)), start=1)}
    found = Measurement(
        name="season.alone", labels={"judge": judge}, value=None, n=len(agents), n_of="agents", method="",
        state="one judge",
    )  # fmt: skip
    if not others:
        return found
    found = replace(found, detail={"places": places}, state="fewer than two agents")
    if len(agents) < 2:
        return found
    panel = [totals.row(agent).total or 0.0 for agent in agents]
    (rho,) = spearman_columns(np.array([[alone[agent]] for agent in agents]), np.array(panel)[:, None])
    method = "Spearman's rank correlation of the totals that this judge alone would make with those of the panel"
    state = "ok" if rho is not None else "all totals are equal"
    return replace(found, value=rho, state=state, method=method)


def _verbosity(scores: SeasonScores, judge: str, tokens: Tokens, level: float) -> Measurement:
    """What a judge gives for length beyond what the others give."""
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
        empty,
        value=found.slope,
        n=found.items,
        state="ok",
        method=found.method,
        low=found.low,
        high=found.high,
        level=None if found.low is None else level,
        unit="points per doubling",
        detail={"periods": found.periods},
    )


# --- blinding ---------------------------------------------------------------------------------------------------------


def probe_measurements(guesses: Iterable[SeasonGuess], *, level: float) -> Iterator[Measurement]:
    """``season.author_probe`` of every judge that was asked: how often it named the author, against chance.

    Guesses at one author hang together: a judge that takes birch for ash does so every week. So the interval is the
    wider one of Wilson's and that over authors, and only where all of it lies above chance a judge can tell.
    """
    rows: dict[str, list[SeasonGuess]] = defaultdict(list)
    for one in guesses:
        rows[one.judge].append(one)
    for judge in sorted(rows):
        yield _probe(judge, rows[judge], level)


def _probe(judge: str, rows: Sequence[SeasonGuess], level: float) -> Measurement:
    usable = [one for one in rows if one.guess is not None]
    right = [one.guess == one.author for one in usable]
    chance = fmean(1 / one.options for one in rows)
    asked = {"asked": len(rows), "guesses": len(usable), "hits": sum(right), "chance": chance}
    if not usable:
        return Measurement(
            name="season.author_probe", labels={"judge": judge}, value=None, n=0, n_of="guesses", method="",
            state="no guess", detail={**asked, "state": "no guess"},
        )  # fmt: skip
    low, high = wilson(sum(right), len(right), level=level)
    over = cluster_t(np.array(right, dtype=float), [one.author for one in usable], level=level)
    if over.low is not None and over.high is not None:
        low, high = max(0.0, min(low, over.low)), min(1.0, max(high, over.high))
    counts, hits = (
        Counter(one.author for one in usable),
        Counter(one.author for one in usable if one.guess == one.author),
    )
    by = {author: [hits[author], counts[author]] for author in sorted(counts)}
    state = "above chance" if low > chance else "not above chance"
    return Measurement(
        name="season.author_probe",
        labels={"judge": judge},
        value=sum(right) / len(right),
        n=len(right),
        n_of="guesses",
        method="share of right guesses; the wider of Wilson's interval and of cluster-t over authors",
        low=low,
        high=high,
        level=level,
        detail={**asked, "state": state, "by": by},
    )


# --- replies ----------------------------------------------------------------------------------------------------------


def reply_measurements(
    grades: Iterable[SeasonGrade], guesses: Iterable[SeasonGuess], replies: SeasonReplies
) -> Iterator[Measurement]:
    """``season.invalid``: the share of a judge's replies that are no answer, with the counts of each kind.

    Where grades are missing, the detail says of whom, and why a judge was left out for it.
    """
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
