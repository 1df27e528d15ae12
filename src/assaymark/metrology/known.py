"""How many judges is a panel worth? From their errors on items whose quality is known."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats
from assaymark.metrology.panel import state_of
from assaymark.metrology.table import ScoreTable
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Measurement

_NOTHING = "not measurable: no items of known quality"
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
    """``panel.effective_judges`` of the aggregate and every dimension, from all items whose quality is known.

    Items are the scored trajectories of all tables (honest records, cells, ladders) that have a known score; each name
    uses those that have one for it. Where every dimension of an item is known, its known aggregate is their weighted
    mean, unless it is given.

    Parameters
    ----------
    tables : sequence of ScoreTable
        With the same judges and dimensions, and trials treated alike (see `gated`).
    known : mapping of trajectory to {dimension or "aggregate": score}
        What a faultless judge gives.
    study : Study
        For the judges, and the names in the weights of its rubric, when nothing was scored.

    Yields
    ------
    Measurement

    Raises
    ------
    InputError
        Tables of different judges, dimensions or weights, or a known score that is not finite.
    """
    scored = [table for table in tables if table.n]
    _same(scored)
    names = scored[0].names if scored else (AGGREGATE, *sorted(study.rubric.weights or {}))
    judges = len(scored[0].judges) if scored else len(study.judges)
    digest = _digest(tables, known)
    for k, name in enumerate(names):
        errors = np.concatenate([np.empty((0, judges)), *(_errors(table, known, k) for table in scored)])
        yield _effective(name, errors, digest)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What must be the same in all tables."""

    judges: tuple[str, ...]
    dimensions: tuple[str, ...]
    weights: tuple[float, ...]


def _same(tables: Sequence[ScoreTable]) -> None:
    kinds = {_Kind(table.judges, table.dimensions, tuple(table.weights.tolist())) for table in tables}
    if len(kinds) > 1:
        listed = "; ".join(sorted(f"{', '.join(kind.judges)} on {', '.join(kind.dimensions)}" for kind in kinds))
        raise InputError(
            "known_measurements", [Problem("tables", f"must have the same judges and names (got {listed})")]
        )


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
    value, r, state = None, None, _NOTHING
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


def _digest(tables: Sequence[ScoreTable], known: Mapping[str, Mapping[str, float]]) -> str:
    """Sixteen hex digits over the tables and what is known."""
    scores = sorted((key, sorted(parts.items())) for key, parts in known.items())
    return hashlib.sha256(repr(([table.digest for table in tables], scores)).encode()).hexdigest()[:16]
