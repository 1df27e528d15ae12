"""What orders of a season's agents rest on: differences over periods, and how far judges agree on bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assaymark.claims.season_index import SPAN
from assaymark.claims.season_panel import CONSTANT, MISSING, SINGLE
from assaymark.errors import NotMeasurableError
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scores import band
from assaymark.metrology import bootstrap_kappa, jackknife_kappa, kappa_of_table, mean_pairwise_kappa
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.measure_agreement import alpha_measurements, variance_measurements
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.order_tests import OrderPlan
from assaymark.plan import BiasRules, ClusterOrder, OrderRules
from assaymark.records import AGGREGATE, JSON, Measurement
from assaymark.workflow.season_measure_scores import SeasonScores
from assaymark.workflow.season_measure_table import POINTS, SeasonTotals

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

    Parameters
    ----------
    families : mapping of agent to family
    tokens : mapping of (agent, period) to float
    inference, claims : OrderRules, BiasRules
        Of the plan; ``alpha`` is the share of the error rate that orders have.
    order : "consecutive" or "exchangeable"
        Whether periods follow each other in time.
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
