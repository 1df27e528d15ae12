"""Judges against an oracle: how far each one's score of a dimension is from what rules alone give.

The oracle of constraint awareness recomputes the arithmetic of a decision (ValueBlindBench section 5.6), so that on
this dimension the error of a judge is known item by item, and not only how far judges agree with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import bootstrap_kappa, jackknife_kappa
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.kappa import weighted_kappa
from assaymark.metrology.measure_kappa import categories_of
from assaymark.metrology.panel import state_of
from assaymark.metrology.scores import SCALE, ScoreTable
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, JSON, Measurement

ORACLE_DIMENSION: Final = "constraint_awareness"
"""The dimension that the oracle knows."""

_RESAMPLES = 10_000
_NOTHING = "not measurable: no scored item has an oracle score"
_N_OF = "items with an oracle score"
_KAPPA = "quadratic-weighted kappa with the oracle; trials averaged, halves rounded up, clipped to 1..5"
_ERROR = "mean of score minus oracle score"


def oracle_measurements(
    tables: Sequence[ScoreTable],
    oracle: Mapping[str, float],
    study: Study,
    *,
    dimension: str = ORACLE_DIMENSION,
    rng: np.random.Generator | None = None,
) -> Iterator[Measurement]:
    """``oracle.kappa`` and ``oracle.error`` of every judge, and without a label of the panel's mean over its judges."""
    scored = [table for table in tables if table.n]
    # One panel, and oracle scores that are points of the scale.
    problems = []
    if len({(table.judges, table.dimensions) for table in scored}) > 1:
        problems.append(Problem("tables", "must have the same judges and dimensions"))
    bad = {key: value for key, value in oracle.items() if value not in range(int(SCALE[0]), int(SCALE[1]) + 1)}
    problems += [Problem(key, f"must be a whole number from 1 to 5 (got {bad[key]})") for key in sorted(bad)[:9]]
    if problems:
        raise InputError("oracle_measurements", problems)
    items = _Items.of(scored, oracle, dimension, study)
    rng = np.random.default_rng(study.seed) if rng is None else rng
    whole = items.scores.mean(axis=1)
    columns: list[tuple[dict[str, str], Floats]] = [({}, whole)]
    columns += [({"judge": judge}, items.scores[:, j]) for j, judge in enumerate(items.judges)]
    for labels, scores in columns:
        yield _kappa(labels, scores, items, study, rng)
        yield _error(labels, scores, items, study)


@dataclass(frozen=True, slots=True, eq=False)
class _Items:
    """Scores [n, J] of the items with an oracle score, that score [n], and each cluster; or why there are none."""

    judges: tuple[str, ...]
    scores: Floats
    truth: Floats
    clusters: tuple[str, ...]
    missing: str | None
    digest: str

    @classmethod
    def of(cls, tables: Sequence[ScoreTable], oracle: Mapping[str, float], dimension: str, study: Study) -> _Items:
        judges = tables[0].judges if tables else tuple(sorted(judge.name for judge in study.judges))
        asked = bool(tables) and dimension in tables[0].dimensions
        scores, truth, clusters = [np.empty((0, len(judges)))], [], []
        for table in tables if asked else ():
            rows = [row for row, key in enumerate(table.trajectories) if key in oracle]
            scores.append(table.scores[rows][:, :, table.dimensions.index(dimension)])
            truth += [float(oracle[table.trajectories[row]]) for row in rows]
            clusters += [table.clusters[table.cluster[row]] for row in rows]
        missing = None if truth else _NOTHING
        if tables and not asked:
            missing = f"not measurable: the rubric does not ask for {dimension}"
        digest = hashlib.sha256(
            repr(([table.digest for table in tables], sorted(oracle.items()))).encode()
        ).hexdigest()[:16]
        return cls(judges, np.concatenate(scores), np.array(truth), tuple(clusters), missing, digest)

    @property
    def known(self) -> Ints:
        """The oracle's scores as ratings."""
        return self.truth.astype(np.int64)


def _kappa(
    labels: dict[str, str], scores: Floats, items: _Items, study: Study, rng: np.random.Generator
) -> Measurement:
    """Agreement of one column of scores with the oracle."""
    ratings = np.column_stack([categories_of(scores), items.known]) if scores.size else np.empty((0, 2), dtype=np.int64)
    value, state, detail = None, items.missing, dict[str, JSON]()
    low = high = None
    if state is None:
        try:
            value, state = weighted_kappa(ratings[:, 0], ratings[:, 1]), "ok"
            low, high, detail = _ends(ratings, items, study, rng)
        except NotMeasurableError as exc:
            state = state_of(exc)
        table = np.zeros((5, 5), dtype=np.int64)
        np.add.at(table, (ratings[:, 0] - 1, ratings[:, 1] - 1), 1)
        detail |= {"r": _pearson(scores, items.truth), "table": list(table.tolist())}
    return _measurement("oracle.kappa", labels, items, study, value, state or "ok", (low, high), _KAPPA, detail)


def _ends(
    ratings: Ints, items: _Items, study: Study, rng: np.random.Generator
) -> tuple[float | None, float | None, dict[str, JSON]]:
    """Jackknife ends of a kappa, or the reason that there are none, and its narrower bootstrap ends in the detail."""
    level, resamples = study.inference.level, study.inference.resamples or _RESAMPLES
    detail: dict[str, JSON] = {"bootstrap": None}
    with suppress(NotMeasurableError):
        boot = bootstrap_kappa(ratings, items.clusters, level=level, resamples=resamples, rng=rng)
        detail["bootstrap"] = {"low": boot.low, "high": boot.high, "method": boot.method}
    names = sorted(set(items.clusters), key=natural)
    line = np.argsort([names.index(name) for name in items.clusters], kind="stable")
    consecutive = study.inference.order_of(names) == "consecutive"
    try:
        jack = jackknife_kappa(
            ratings[line], [items.clusters[k] for k in line.tolist()], level=level, consecutive=consecutive
        )
    except NotMeasurableError as exc:
        return None, None, detail | {"interval_method": str(exc)}
    return jack.low, jack.high, detail | {"interval_method": jack.method}


def _error(labels: dict[str, str], scores: Floats, items: _Items, study: Study) -> Measurement:
    """Mean error of one column of scores with its cluster t interval."""
    if items.missing is not None:
        return _measurement("oracle.error", labels, items, study, None, items.missing, (None, None), _ERROR, {})
    found = cluster_t(scores - items.truth, items.clusters, level=study.inference.level)
    detail: dict[str, JSON] = {"p": found.p, "clusters": found.clusters, "spread": float(np.std(scores - items.truth))}
    ends, method = (found.low, found.high), f"{_ERROR}; {found.method}"
    return _measurement("oracle.error", labels, items, study, found.difference, "ok", ends, method, detail)


def _measurement(
    name: str,
    labels: dict[str, str],
    items: _Items,
    study: Study,
    value: float | None,
    state: str,
    ends: tuple[float | None, float | None],
    method: str,
    detail: dict[str, JSON],
) -> Measurement:
    """A measurement against the oracle; an interval has a level only where there is one."""
    low, high = ends
    return Measurement(
        name=name,
        labels=labels,
        value=value,
        n=int(items.truth.size),
        n_of=_N_OF,
        method=method,
        state=state,
        low=low,
        high=high,
        level=None if low is None else study.inference.level,
        unit="rubric points" if name == "oracle.error" else "",
        inputs=items.digest,
        detail=detail,
    )


def _pearson(scores: Floats, truth: Floats) -> float | None:
    """Correlation of the scores with the oracle's; None where one of them is constant."""
    if np.ptp(scores) <= 1e-9 or np.ptp(truth) <= 1e-9:
        return None
    return float(np.clip(np.corrcoef(scores, truth)[0, 1], -1, 1))


# How many judges is a panel worth? From their errors on items whose quality is known.


_KNOWN_NOTHING = "not measurable: no items of known quality"
_METHOD = "J / (1 + (J-1) r), r the mean correlation of judges' errors against known scores"
_ZERO = 1e-9


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
    """``panel.effective_judges`` of the aggregate and every dimension, from all items whose quality is known."""
    scored = [table for table in tables if table.n]
    kinds = {_Kind(table.judges, table.dimensions, tuple(table.weights.tolist())) for table in scored}
    if len(kinds) > 1:
        listed = "; ".join(sorted(f"{', '.join(kind.judges)} on {', '.join(kind.dimensions)}" for kind in kinds))
        raise InputError(
            "known_measurements", [Problem("tables", f"must have the same judges and names (got {listed})")]
        )
    names = scored[0].names if scored else (AGGREGATE, *sorted(study.rubric.weights or {}))
    judges = len(scored[0].judges) if scored else len(study.judges)
    scores = sorted((key, sorted(parts.items())) for key, parts in known.items())
    digest = hashlib.sha256(repr(([table.digest for table in tables], scores)).encode()).hexdigest()[:16]
    for k, name in enumerate(names):
        errors = np.concatenate([np.empty((0, judges)), *(_errors(table, known, k) for table in scored)])
        yield _effective(name, errors, digest)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What must be the same in all tables."""

    judges: tuple[str, ...]
    dimensions: tuple[str, ...]
    weights: tuple[float, ...]


def _errors(table: ScoreTable, known: Mapping[str, Mapping[str, float]], column: int) -> Floats:
    """Scores minus known scores [m, J] of the trajectories whose score under this name is known."""
    found = [(row, _known(table, known.get(key, {}), column)) for row, key in enumerate(table.trajectories)]
    rows = [row for row, score in found if score is not None]
    truth = np.array([score for _, score in found if score is not None], dtype=np.float64)
    if not np.isfinite(truth).all():
        bad = table.trajectories[rows[int(np.argmin(np.isfinite(truth)))]]
        raise InputError("known_measurements", [Problem(bad, "known scores must be finite")])
    return np.asarray(table.stacked[rows][:, :, column] - truth[:, None])


def _known(table: ScoreTable, scores: Mapping[str, float], column: int) -> float | None:
    """The known score of one item under one name."""
    name = table.names[column]
    if name in scores or column:
        return scores.get(name)
    if table.dimensions and all(dimension in scores for dimension in table.dimensions):
        return float(np.array([scores[dimension] for dimension in table.dimensions]) @ table.weights)
    return None


def _effective(name: str, errors: Floats, digest: str) -> Measurement:
    judges = errors.shape[1]
    value, r, state = None, None, _KNOWN_NOTHING
    if len(errors) and judges < 2:
        state = "not measurable: one judge, needs two"
    elif len(errors):
        try:
            r = error_correlation(errors)
            value, state = _worth(judges, r), "ok"
        except NotMeasurableError as exc:
            state = state_of(exc)
    return Measurement(
        name="panel.effective_judges",
        labels={"dimension": name},
        value=value,
        n=len(errors),
        n_of="items of known quality",
        method=_METHOD,
        state=state,
        unit="judges",
        inputs=digest,
        detail={"judges": judges, "r": r},
    )
