"""Judges against an oracle: how far each one's score is from what rules alone give, and what a panel's errors make it.

The oracle of constraint awareness recomputes the arithmetic of a decision (ValueBlindBench section 5.6), so that on
this dimension the error of a judge is known item by item, and not only how far judges agree with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import bootstrap_kappa, jackknife_kappa
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.estimates import POINTS, Ends, number, state_of
from assaymark.metrology.kappa import contingency, kappa_of_table
from assaymark.metrology.measure_panel import categories_of
from assaymark.metrology.panel import RESAMPLES
from assaymark.metrology.scores import SCALE, ScoreTable
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, JSON, Measurement

ORACLE_DIMENSION: Final = "constraint_awareness"
"""The dimension that the oracle knows."""

_KAPPA = "quadratic-weighted kappa with the oracle; trials averaged, halves rounded up, clipped to 1..5"
_ERROR = "mean of score minus oracle score"
_ZERO = 1e-9


def oracle_measurements(
    tables: Sequence[ScoreTable], oracle: Mapping[str, float], study: Study, *, dimension: str = ORACLE_DIMENSION,
    rng: np.random.Generator | None = None,
) -> Iterator[Measurement]:  # fmt: skip
    """``oracle.kappa`` and ``oracle.error`` of every judge, and without a label of the panel's mean over its judges.

    Tables (honest records and control cells) have the same judges and dimensions, and trials treated alike. ``oracle``
    has a whole score for the trajectories that it could score; others are left out.
    """
    scored = [table for table in tables if table.n]
    problems = []
    if len({(table.judges, table.dimensions) for table in scored}) > 1:
        problems.append(Problem("tables", "must have the same judges and dimensions"))
    bad = {key: value for key, value in oracle.items() if value not in range(int(SCALE[0]), int(SCALE[1]) + 1)}
    problems += [Problem(key, f"must be a whole number from 1 to 5 (got {bad[key]})") for key in sorted(bad)[:9]]
    if problems:
        raise InputError("oracle_measurements", problems)
    rng = np.random.default_rng(study.seed) if rng is None else rng
    judges = scored[0].judges if scored else tuple(sorted(judge.name for judge in study.judges))
    asked = bool(scored) and dimension in scored[0].dimensions
    parts, known, clusters = [np.empty((0, len(judges)))], list[float](), list[str]()
    for table in scored if asked else ():
        rows = [row for row, key in enumerate(table.trajectories) if key in oracle]
        parts.append(table.scores[rows][:, :, table.dimensions.index(dimension)])
        known += [float(oracle[table.trajectories[row]]) for row in rows]
        clusters += [table.clusters[table.cluster[row]] for row in rows]
    scores, truth = np.concatenate(parts), np.array(known)
    missing = None if known else "not measurable: no scored item has an oracle score"
    if scored and not asked:
        missing = f"not measurable: the rubric does not ask for {dimension}"
    common: dict[str, Any] = {"level": study.inference.level, "inputs": _digest(scored, sorted(oracle.items()))}
    count = truth.size, "items with an oracle score"
    columns = [({}, scores.mean(axis=1)), *(({"judge": judge}, scores[:, j]) for j, judge in enumerate(judges))]
    for labels, column in columns:
        if missing is not None:
            yield number(Measurement, "oracle.kappa", labels, None, count, _KAPPA, state=missing, **common)
            yield number(Measurement, "oracle.error", labels, None, count, _ERROR, state=missing, unit=POINTS, **common)
            continue
        table_of = contingency(categories_of(column), truth.astype(np.int64))
        value, state, detail, ends = None, "ok", dict[str, JSON](), None
        try:
            value = kappa_of_table(table_of)
            ends, detail = _ends(np.column_stack([categories_of(column), truth.astype(np.int64)]), clusters, study, rng)
        except NotMeasurableError as exc:
            state = state_of(exc)
        varies = np.ptp(column) > _ZERO and np.ptp(truth) > _ZERO
        r = float(np.clip(np.corrcoef(column, truth)[0, 1], -1, 1)) if varies else None
        yield number(Measurement, "oracle.kappa", labels, value, count, _KAPPA, state=state, ends=ends,
                     detail=detail | {"r": r, "table": table_of.tolist()}, **common)  # fmt: skip
        found = cluster_t(column - truth, clusters, level=study.inference.level)
        yield number(Measurement, "oracle.error", labels, found.difference, count, f"{_ERROR}; {found.method}",
                     ends=(found.low, found.high), unit=POINTS,
                     detail={"p": found.p, "clusters": found.clusters, "spread": float(np.std(column - truth))},
                     **common)  # fmt: skip


def _ends(
    ratings: Any, clusters: Sequence[str], study: Study, rng: np.random.Generator
) -> tuple[Ends | None, dict[str, JSON]]:
    """Jackknife ends of a kappa, or the reason that there are none, and its narrower bootstrap ends in the detail."""
    level, resamples = study.inference.level, study.inference.resamples or RESAMPLES
    detail: dict[str, JSON] = {"bootstrap": None}
    with suppress(NotMeasurableError):
        boot = bootstrap_kappa(ratings, clusters, level=level, resamples=resamples, rng=rng)
        detail["bootstrap"] = {"low": boot.low, "high": boot.high, "method": boot.method}
    names = sorted(set(clusters), key=natural)
    line = np.argsort([names.index(name) for name in clusters], kind="stable")
    order = study.inference.order_of(names) == "consecutive"
    try:
        jack = jackknife_kappa(ratings[line], [clusters[k] for k in line.tolist()], level=level, consecutive=order)
    except NotMeasurableError as exc:
        return None, detail | {"interval_method": str(exc)}
    return (jack.low, jack.high), detail | {"interval_method": jack.method}


def _digest(tables: Sequence[ScoreTable], known: Sequence[Any]) -> str:
    """Sixteen hex digits over the tables and what is known."""
    return hashlib.sha256(repr(([table.digest for table in tables], known)).encode()).hexdigest()[:16]


def effective_judges(errors: ArrayLike) -> float:
    """Number of independent judges that would err as little, averaged, as these do.

    ``J / (1 + (J-1) r)`` with r the mean Pearson correlation of the judges' errors over all pairs. J judges who err
    together are worth little more than one; errors that offset each other make them worth more than J. The errors must
    be against *known* quality: residuals around item means sum to zero over judges, which forces r to -1/(J-1)
    whatever the truth, and the correlation of the scores themselves (redundancy) also contains what the judges rightly
    agree on.

    Parameters
    ----------
    errors : float array of shape (n, J)
        Score minus known score, of n items by J judges, three items and two judges or more.

    Returns
    -------
    float
        Above 0; J for uncorrelated errors, 1 for identical ones.

    Raises
    ------
    NotMeasurableError
        One judge, fewer than three items, a judge with the same error on every item, or errors that offset each other
        completely.
    InputError
        Empty, not two axes, or not finite.

    Examples
    --------
    >>> effective_judges([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])
    2.0
    >>> round(effective_judges([[0.5, 0.4], [-0.5, -0.6], [0.1, 0.0]]), 6)
    1.0
    """
    table = checks.finite("effective_judges", "errors", errors, ndim=2)
    return _worth(table.shape[1], error_correlation(table))


def error_correlation(errors: Floats) -> float:
    """Mean Pearson correlation of errors [n, J] over all pairs of judges; raises as `effective_judges` does."""
    n, judges = errors.shape
    if judges < 2:
        raise NotMeasurableError("effective judges is undefined: one judge, needs two")
    if n < 3:
        raise NotMeasurableError(f"effective judges is undefined: {n} items of known quality, needs three")
    spread = np.ptp(errors, axis=0)
    if spread.min() <= _ZERO:
        worst = int(spread.argmin()) + 1
        raise NotMeasurableError(f"effective judges is undefined: judge {worst} makes one error on all {n} items")
    away = errors - errors.mean(axis=0)
    away /= np.sqrt(np.square(away).sum(axis=0))
    r = float(np.mean([away[:, a] @ away[:, b] for a, b in combinations(range(judges), 2)]))
    return min(1.0, max(-1.0, r))


def _worth(judges: int, r: float) -> float:
    share = 1 + (judges - 1) * r
    if share <= _ZERO:
        raise NotMeasurableError("effective judges is undefined: the errors offset each other completely")
    return judges / share


def known_measurements(
    tables: Sequence[ScoreTable], known: Mapping[str, Mapping[str, float]], study: Study
) -> Iterator[Measurement]:
    """``panel.effective_judges`` of the aggregate and every dimension, from all items whose quality is known.

    Items are the scored trajectories of all tables (honest records, cells, ladders); each name uses those that have a
    known score for it. Where every dimension is known, the known aggregate is their weighted mean, unless it is given.
    """
    source, scored = "known_measurements", [table for table in tables if table.n]
    kinds = {(table.judges, table.dimensions, tuple(table.weights.tolist())) for table in scored}
    if len(kinds) > 1:
        listed = "; ".join(sorted(f"{', '.join(judges)} on {', '.join(names)}" for judges, names, _ in kinds))
        raise InputError(source, [Problem("tables", f"must have the same judges and names (got {listed})")])
    names = scored[0].names if scored else (AGGREGATE, *sorted(study.rubric.weights or {}))
    judges = len(scored[0].judges) if scored else len(study.judges)
    digest = _digest(tables, sorted((key, sorted(parts.items())) for key, parts in known.items()))

    def score(table: ScoreTable, scores: Mapping[str, float], k: int) -> float | None:
        if table.names[k] in scores or k:
            return scores.get(table.names[k])
        if table.dimensions and all(dimension in scores for dimension in table.dimensions):
            return float(np.array([scores[dimension] for dimension in table.dimensions]) @ table.weights)
        return None

    for k, name in enumerate(names):
        parts = [np.empty((0, judges))]
        for table in scored:
            values = [score(table, known.get(key, {}), k) for key in table.trajectories]
            rows = [row for row, value in enumerate(values) if value is not None]
            truth = np.array([values[row] for row in rows], dtype=np.float64)
            if not np.isfinite(truth).all():
                bad = table.trajectories[rows[int(np.argmin(np.isfinite(truth)))]]
                raise InputError(source, [Problem(bad, "known scores must be finite")])
            parts.append(table.stacked[rows][:, :, k] - truth[:, None])
        errors, value, r, state = np.concatenate(parts), None, None, "not measurable: no items of known quality"
        if len(errors) and judges < 2:
            state = "not measurable: one judge, needs two"
        elif len(errors):
            try:
                r = error_correlation(errors)
                value = _worth(judges, r)
            except NotMeasurableError as exc:
                state = state_of(exc)
        method = "J / (1 + (J-1) r), r the mean correlation of judges' errors against known scores"
        yield number(Measurement, "panel.effective_judges", {"dimension": name}, value,
                     (len(errors), "items of known quality"), method, state=state, unit="judges", inputs=digest,
                     detail={"judges": judges, "r": r})  # fmt: skip
