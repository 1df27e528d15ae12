"""Do judges tell one dimension of the rubric from their overall impression, and is a difference in particular on it?

A trait measured by several methods should agree with itself across methods more than with other traits (Campbell and
Fiske 1959). Here dimensions are the traits and judges the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import holm
from assaymark.metrology.kappa import (
    Estimate,
    cluster_codes,
    cluster_mean,
    jackknife_estimate,
    leave_out,
    neighbour_blocks,
    scores_of,
    undefined,
)

DISTINCT = 0.95
"""A correlation with the overall impression from which on a dimension counts as the same thing."""

_NOTHING = 1e-12  # a covariance up to this is float noise
_TOO_FEW = "not measurable: needs two judges, two dimensions and three clusters"


@dataclass(frozen=True, slots=True)
class DistinctDimension:
    """How far one dimension is the overall impression under another name; see `discriminant`.

    ``phi`` is its correlation with the judges' mean of the other dimensions, corrected for disagreement (1: the same
    thing; it may exceed 1), with an interval from ``low`` to ``high``. ``p`` is one-sided, against "at least the
    cutoff"; ``distinct`` says that ``p_holm`` rejects that. Where the judges share nothing on the dimension or on the
    others, ``phi`` is None and ``p`` 1.
    """

    phi: float | None
    low: float | None
    high: float | None
    p: float
    state: str
    p_holm: float
    distinct: bool


@dataclass(frozen=True, slots=True)
class Discriminant:
    """One `DistinctDimension` for each dimension where ``state`` is "ok", else none."""

    state: str
    dimensions: tuple[DistinctDimension, ...] = ()


def discriminant(
    S: ArrayLike,
    cluster: Sequence[Any] | NDArray[Any],
    *,
    distinct: float = DISTINCT,
    alpha: float = 0.05,
    level: float = 0.95,
    consecutive: bool = False,
) -> Discriminant:
    """Discriminant validity of each dimension: is it told from the overall impression?

    With r a judge's mean of the other dimensions, phi is the covariance of d as one judge scores it with r as another
    does, over the geometric mean of what judges share on d and on r. Covariances are between judges only, so that
    noise and style within a judge do not enter; scores are centred within cluster, judge and dimension. phi is the
    heterotrait-monotrait ratio of Henseler, Ringle and Sarstedt (2015) with judges as methods. A dimension is distinct
    where phi at or above ``distinct`` is rejected: one-sided t on ``distinct sqrt(C_dd C_rr) - C_dr``, which has no
    ratio in it, with its delete-one-cluster jackknife, and Holm over dimensions.

    Parameters
    ----------
    S : float array [N, J, D]
        Score of each record, judge and dimension; a record with a missing score (None or NaN) is left out.
    cluster : sequence of N names or whole numbers
        The cluster of each record.
    distinct : float
        Cutoff of phi, between 0 and 1.
    alpha : float
        Level over all dimensions together.
    level : float
        Coverage of the intervals.
    consecutive : bool
        The clusters follow each other in time, as they first occur: the jackknife leaves out blocks of neighbours.

    Returns
    -------
    Discriminant
        Not measurable with fewer than two judges, two dimensions or three clusters.

    Raises
    ------
    InputError
        Shapes that do not go together, infinite scores, a level or cutoff outside 0..1.

    References
    ----------
    Campbell, D. T. and Fiske, D. W. (1959). Convergent and discriminant validation by the multitrait-multimethod
    matrix. Psychological Bulletin 56(2), 81-105.
    Henseler, J., Ringle, C. M. and Sarstedt, M. (2015). A new criterion for assessing discriminant validity in
    variance-based structural equation modeling. J. Acad. Mark. Sci. 43, 115-135.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> impression, quality = rng.normal(size=(80, 1, 1)), rng.normal(size=(80, 1, 3))
    >>> noise, weeks = rng.normal(0, 0.5, (80, 3, 3)), np.repeat(np.arange(8), 10)
    >>> for scores in (impression + noise, impression + quality + noise):
    ...     print([f"{d.phi:.2f} {d.distinct}" for d in discriminant(scores, weeks).dimensions])
    ['0.98 False', '1.01 False', '1.01 False']
    ['0.39 True', '0.46 True', '0.47 True']
    """
    for name, value in (("distinct", distinct), ("alpha", alpha), ("level", level)):
        checks.probability("discriminant", name, value)
    products, counts, (judges, dimensions) = _products("discriminant", S, cluster)
    if judges < 2 or dimensions < 2 or counts.size < 3:
        return Discriminant(_TOO_FEW)
    covariances = leave_out(products, consecutive) / leave_out(counts, consecutive)[:, None, None]
    if len(covariances) == 1:
        return Discriminant("not measurable: clusters that follow each other make one block, needs two")
    own, rest, cross = _shared(covariances, judges, dimensions)
    known = np.asarray((np.minimum(own, rest) > _NOTHING).all(axis=0))
    middle = np.sqrt(np.where(known, own * rest, 1.0))
    phi, margin = cross / middle, distinct * middle - cross
    tests = [jackknife_estimate(margin[0, d], margin[1:, d]).p_up if known[d] else 1.0 for d in range(dimensions)]
    found = []
    for d, (p, p_holm) in enumerate(zip(tests, holm(tests).tolist(), strict=True)):
        if known[d]:
            one = jackknife_estimate(float(phi[0, d]), phi[1:, d], level=level)
            passed = p_holm <= alpha + 1e-9
            found.append(DistinctDimension(one.estimate, one.low, one.high, p, one.state, p_holm, passed))
        else:
            state = "undefined: judges share nothing on it, or on the other dimensions"
            found.append(DistinctDimension(None, None, None, 1.0, state, p_holm, False))
    return Discriminant("ok", tuple(found))


def multitrait_multimethod(S: ArrayLike, cluster: Sequence[Any] | NDArray[Any]) -> Floats:
    """Correlations between all judges' scores on all dimensions: the matrix of Campbell and Fiske (1959).

    Agreement on a dimension (same dimension, other judge) should exceed what different dimensions have in common,
    between judges and within one.

    Parameters
    ----------
    S, cluster
        As for `discriminant`; scores are centred within cluster, judge and dimension.

    Returns
    -------
    float array [J, D, J, D]
        In -1..1.

    Raises
    ------
    NotMeasurableError
        A judge's scores of a dimension do not vary within clusters.
    InputError
        As for `discriminant`.

    Examples
    --------
    >>> scores = [[[1, 2], [2, 2]], [[3, 3], [4, 5]], [[5, 3], [5, 4]]]
    >>> matrix = multitrait_multimethod(scores, [0, 0, 0])
    >>> round(float(matrix[0, 0, 1, 0]), 3), round(float(matrix[0, 0, 0, 1]), 3)
    (0.982, 0.866)
    """
    products, _, (judges, dimensions) = _products("multitrait_multimethod", S, cluster)
    covariance = products.sum(axis=0)
    spread = np.sqrt(np.diagonal(covariance))
    if not spread.size or (spread <= 1e-9).any():
        raise NotMeasurableError("correlations are undefined: a judge gives a dimension one score per cluster")
    return np.asarray((covariance / np.outer(spread, spread)).reshape(judges, dimensions, judges, dimensions))


def specific_contrast(
    cycle_delta: ArrayLike,
    cluster: Sequence[Any] | NDArray[Any],
    d: int,
    *,
    level: float = 0.95,
    consecutive: bool = False,
) -> Estimate:
    """How much larger a difference of two agents is on one dimension than on the others.

    Under a halo every dimension shows some of a difference on one of them, and each that has none of its own shows less
    than the others. "In particular on d" may be said where ``p_up`` is significant; where the estimate is negative, the
    difference on d may be spill-over.

    Parameters
    ----------
    cycle_delta : float array [N, D]
        Difference of each common cycle on each dimension, in the direction of the claim; a cycle with a missing value
        (None or NaN) is left out.
    cluster : sequence of N names or whole numbers
        The cluster of each cycle.
    d : int
        The dimension.
    level : float
        Coverage of the interval.
    consecutive : bool
        The clusters follow each other in time, as they first occur: the jackknife leaves out blocks of neighbours.

    Returns
    -------
    Estimate
        Mean over cycles of the difference on d less its mean on the other dimensions, with a cluster t. Not measurable
        with one dimension, or without a complete cycle.

    Raises
    ------
    InputError
        Shapes that do not go together, infinite values, a dimension that does not exist.

    Examples
    --------
    >>> found = specific_contrast([[0.9, 0.1, 0.3], [0.7, 0.2, 0.2], [0.8, 0.4, 0.2]], ["w1", "w2", "w3"], 0)
    >>> f"{found.estimate:.2f}, p={found.p_up:.3f}"
    '0.57, p=0.007'
    """
    deltas = scores_of("specific_contrast", "cycle_delta", cycle_delta, 2)
    codes = cluster_codes("specific_contrast", cluster, deltas.shape[0])
    checks.probability("specific_contrast", "level", level)
    dimensions = deltas.shape[1]
    if checks.whole("specific_contrast", "d", d, least=0) >= dimensions:
        checks.fail("specific_contrast", "d", f"must be one of the dimensions 0..{dimensions - 1} (got {d})")
    whole = ~np.isnan(deltas).any(axis=1)
    if dimensions < 2 or not whole.any():
        return undefined("not measurable: needs two dimensions and a cycle that has both")
    deltas = deltas[whole]
    _, units = np.unique(codes[whole], return_inverse=True)
    if consecutive:
        units = neighbour_blocks(int(units.max()) + 1)[units]
    others = (deltas.sum(axis=1) - deltas[:, d]) / (dimensions - 1)
    return cluster_mean(deltas[:, d] - others, units, level=level)


def _products(source: str, S: ArrayLike, cluster: Sequence[Any] | NDArray[Any]) -> tuple[Floats, Ints, tuple[int, int]]:
    """Cross products [G, J*D, J*D] of each cluster's scores, centred within it; its records [G]; J and D."""
    scores = scores_of(source, "S", S, 3)
    records, judges, dimensions = scores.shape
    codes = cluster_codes(source, cluster, records)
    columns = scores.reshape(records, judges * dimensions)
    whole = np.flatnonzero(~np.isnan(columns).any(axis=1))
    order = whole[np.argsort(codes[whole], kind="stable")]
    _, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
    parts = [columns[order[start : start + count]] for start, count in zip(starts, counts, strict=True)]
    centred = [part - part.mean(axis=0) for part in parts]
    products = np.array([part.T @ part for part in centred]).reshape(counts.size, columns.shape[1], columns.shape[1])
    return products, counts.astype(np.int64), (judges, dimensions)


def _shared(products: Floats, judges: int, dimensions: int) -> tuple[Floats, Floats, Floats]:
    """Sums over judge pairs of covariances [L, D]: of d, of the mean of the other dimensions, between the two."""
    table = products.reshape(-1, judges, dimensions, judges, dimensions)
    between = table.sum(axis=(1, 3)) - np.einsum("ljdje->lde", table)
    own = np.diagonal(between, axis1=1, axis2=2)
    row, total = between.sum(axis=2), between.sum(axis=(1, 2))
    others = dimensions - 1
    return own, (total[:, None] - 2 * row + own) / others**2, (row - own) / others
