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
from assaymark.metrology.estimates import (
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
    """How far one dimension is the overall impression under another name; see `discriminant`."""

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
    S: ArrayLike, cluster: Sequence[Any] | NDArray[Any], *, distinct: float = DISTINCT, alpha: float = 0.05,
    level: float = 0.95, consecutive: bool = False,
) -> Discriminant:  # fmt: skip
    """Discriminant validity of each dimension: is it told from the overall impression? (Campbell 1959, Henseler
    2015)"""
    for name, value in (("distinct", distinct), ("alpha", alpha), ("level", level)):
        checks.probability("discriminant", name, value)
    products, counts, (judges, dimensions) = _products("discriminant", S, cluster)
    if judges < 2 or dimensions < 2 or counts.size < 3:
        return Discriminant(_TOO_FEW)
    covariances = leave_out(products, consecutive) / leave_out(counts, consecutive)[:, None, None]
    if len(covariances) == 1:
        return Discriminant("not measurable: clusters that follow each other make one block, needs two")
    # Sums over judge pairs of covariances [L, D]: of d, of the mean of the other dimensions, between the two.
    table = covariances.reshape(-1, judges, dimensions, judges, dimensions)
    between = table.sum(axis=(1, 3)) - np.einsum("ljdje->lde", table)
    own = np.diagonal(between, axis1=1, axis2=2)
    row, total = between.sum(axis=2), between.sum(axis=(1, 2))
    others = dimensions - 1
    own, rest, cross = own, (total[:, None] - 2 * row + own) / others**2, (row - own) / others
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
    """Correlations between all judges' scores on all dimensions: the matrix of Campbell and Fiske (1959)."""
    products, _, (judges, dimensions) = _products("multitrait_multimethod", S, cluster)
    covariance = products.sum(axis=0)
    spread = np.sqrt(np.diagonal(covariance))
    if not spread.size or (spread <= 1e-9).any():
        raise NotMeasurableError("correlations are undefined: a judge gives a dimension one score per cluster")
    return np.asarray((covariance / np.outer(spread, spread)).reshape(judges, dimensions, judges, dimensions))


def specific_contrast(
    cycle_delta: ArrayLike, cluster: Sequence[Any] | NDArray[Any], d: int, *, level: float = 0.95,
    consecutive: bool = False,
) -> Estimate:  # fmt: skip
    """How much larger a difference of two agents is on one dimension than on the others."""
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
