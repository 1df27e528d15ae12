"""What orders of a season's agents rest on: differences over periods, and how far judges agree on bands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assaymark.claims.season_panel import CONSTANT, MISSING, SINGLE
from assaymark.errors import NotMeasurableError
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scores import band
from assaymark.metrology import bootstrap_kappa, mean_pairwise_kappa
from assaymark.metrology.season_contrasts import drops, period_contrast
from assaymark.records import Measurement
from assaymark.workflow.season_measure_scores import SeasonScores
from assaymark.workflow.season_measure_table import POINTS, SeasonTotals

_CODES = {"weak": 1, "mixed": 2, "strong": 3}


def contrast_measurements(totals: SeasonTotals, *, level: float) -> Iterator[Measurement]:
    """``season.contrast`` of every two graded agents, the one with the higher total first.

    ``detail`` has ``p`` (two-sided, not adjusted), the gap of the totals and the noise floor that it has to exceed, and
    both differences without the judges of each family.
    """
    scores = totals.scores
    judges, families = scores.judges, tuple(scores.families.values())
    left = {label: totals.without(names) for label, names in drops(judges, families).items()}
    ranked = [row.contestant for row in totals.table.rows if row.total is not None]
    for high, low in combinations(ranked, 2):
        gap = (totals.row(high).total or 0.0) - (totals.row(low).total or 0.0)
        without = {label: _gap(found.get(high), found.get(low)) for label, found in left.items()}
        yield _contrast(totals, high, low, gap, without, level)


def _contrast(
    totals: SeasonTotals, high: str, low: str, gap: float, without: dict[str, float | None], level: float
) -> Measurement:
    scores = totals.scores
    labels = {"high": high, "low": low}
    detail = {"gap": gap, "floor": totals.floor(high, low), "totals_without": without}
    try:
        found = period_contrast(
            _table(scores, high), _table(scores, low), scores.judges, tuple(scores.families.values()), level=level
        )
    except NotMeasurableError as exc:
        state, method = "too few periods", f"paired difference over periods: {exc}"
        return Measurement(
            name="season.contrast", labels=labels, value=None, n=_common(scores, high, low), n_of="periods",
            method=method, state=state, unit=POINTS, detail=detail,
        )  # fmt: skip
    return Measurement(
        name="season.contrast",
        labels=labels,
        value=found.difference,
        n=found.periods,
        n_of="periods",
        method=found.method,
        low=found.low,
        high=found.high,
        level=None if found.low is None else level,
        unit=POINTS,
        detail={"p": found.p, "without": dict(found.without), **detail},
    )


def _gap(high: float | None, low: float | None) -> float | None:
    return None if high is None or low is None else high - low


def _table(scores: SeasonScores, agent: str) -> NDArray[np.float64]:
    """Composites of an agent by judge and period, NaN where there is none."""
    rows = [[found.get(agent, {}).get(judge, np.nan) for found in scores.periods.values()] for judge in scores.judges]
    return np.array(rows, dtype=float).reshape(len(scores.judges), len(scores.periods))


def _common(scores: SeasonScores, one: str, two: str) -> int:
    """Periods in which some judge graded both."""
    return sum(bool(set(found.get(one, {})) & set(found.get(two, {}))) for found in scores.periods.values())


def kappa_measurement(
    scores: SeasonScores, plan: ScoringPlan, *, level: float, rng: np.random.Generator
) -> Measurement:
    """``season.kappa``: mean pairwise quadratic-weighted kappa of the judges on the bands of agents' periods.

    Items are the agents' periods that every judge has graded; judges without any period grade are left out of it. The
    interval draws periods, since what happens in one touches all agents.
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
    try:
        value = mean_pairwise_kappa(ratings, categories=len(_CODES))
    except NotMeasurableError:
        return replace(found, method=method, state=CONSTANT)
    found = replace(found, value=value, state="ok")
    try:
        ends = bootstrap_kappa(ratings, [period for period, _ in items], categories=len(_CODES), level=level, rng=rng)
    except NotMeasurableError as exc:
        return replace(found, method=f"{method}; {exc}")
    return replace(found, method=f"{method}; {ends.method}", low=ends.low, high=ends.high, level=level)
