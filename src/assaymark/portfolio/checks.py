"""What the arithmetic demands of its input: every problem at once, with the value seen and what is allowed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, Problem
from assaymark.portfolio.solution import Bools, Floats

SLACK = 1e-9
"""How far a sum of weights, or the symmetry of a matrix, may be off (relative)."""

SUM_TOLERANCE = 1e-4
"""Weights whose sum is this near to 1 were rounded: they are divided by it. Eighty of six decimals miss 1 by 4e-5."""

_INDEFINITE = 1e-8  # an eigenvalue below minus this, on the scale of correlations, is not rounding


class Findings:
    """Problems of one call, collected so that all can be told at once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def add(self, where: str, what: str) -> None:
        """Note one problem."""
        self.problems.append(Problem(where, what))

    def settle(self) -> None:
        """Raise what was found, if anything was."""
        if self.problems:
            raise InputError(self.source, self.problems)

    def none_of(self, bad: Bools, where: str, what: str, values: Floats) -> bool:
        """Note how many entries are bad, and the first of them; True if none is."""
        if not bad.any():
            return True
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = at[0] if len(at) == 1 else at
        self.add(where, f"{what} ({int(bad.sum())} value(s), first at index {place}: {values[at]!s})")
        return False

    def array(self, where: str, values: ArrayLike, ndim: tuple[int, ...]) -> Floats | None:
        """``values`` as floats with one of the numbers of axes and at least one element; None if it is not that."""
        try:
            raw: NDArray[np.generic] = np.asarray(values)
        except ValueError:
            self.add(where, "rows have unequal lengths; give a rectangular array")
            return None
        if raw.dtype.kind not in "iuf":
            self.add(where, f"must be numbers (got {raw.dtype.name})")
            return None
        if raw.ndim not in ndim or not raw.size:
            wanted = " or ".join(str(axes) for axes in ndim)
            self.add(where, f"must have {wanted} axes and at least one value (got shape {raw.shape})")
            return None
        return np.asarray(raw, dtype=np.float64)

    def number(self, where: str, value: float, low: float, high: float, wanted: str) -> None:
        """Note a number that is not within low <= value < high."""
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            self.add(where, f"must be {wanted} (got {value!r})")
        elif not (np.isfinite(value) and low <= value < high):
            self.add(where, f"must be {wanted} (got {float(value)!r})")

    def covariance(self, cov: ArrayLike) -> Floats | None:
        """A square, finite, symmetric matrix with no negative variance."""
        matrix = self.array("cov", cov, (2,))
        if matrix is None:
            return None
        if matrix.shape[0] != matrix.shape[1]:
            self.add("cov", f"must be square (got shape {matrix.shape})")
            return None
        if not self.none_of(~np.isfinite(matrix), "cov", "must be finite", matrix):
            return None
        self.none_of(np.diag(matrix) < 0, "cov", "variances must not be negative", np.diag(matrix))
        if not np.array_equal(matrix, matrix.T):
            apart = np.abs(matrix - matrix.T)
            self.none_of(
                apart > SLACK * np.abs(matrix).max(), "cov", "must be symmetric; |cov - cov.T| is not 0", apart
            )
            matrix = (matrix + matrix.T) / 2
        return matrix

    def weights(self, where: str, weights: Floats, *, rows: Bools | None = None, least: float = 1.0) -> Floats:
        """Finite weights, none negative, whose rows sum to between ``least`` and 1, divided by sums that were rounded.

        Only ``rows`` are looked at.
        """
        weights = brought_to_one(weights)
        # Most rows of a schedule hold, so the others are taken out before anything is looked at.
        used = weights if rows is None else weights[rows]
        if not used.size:
            return weights
        totals = np.asarray(used.sum(axis=-1), dtype=np.float64)
        if (
            np.isfinite(totals).all()
            and used.min() >= 0
            and least - SLACK <= totals.min()
            and totals.max() <= 1 + SLACK
        ):
            return weights
        apart = weights if rows is None else np.where(rows[..., None], weights, 0.0)
        if not self.none_of(~np.isfinite(apart), where, "weights must be finite", apart):
            return weights
        self.none_of(apart < 0, where, "weights must not be negative", apart)
        totals = np.asarray(apart.sum(axis=-1), dtype=np.float64)
        wanted = "must sum to 1" if least == 1.0 else "must sum to at most 1; the rest is cash"
        self.none_of((totals > 1 + SLACK) | (totals < least - SLACK), where, f"weights {wanted}", totals)
        return weights


def brought_to_one(weights: Floats) -> Floats:
    """Weights divided by their sum where rounding alone keeps it from 1 (within `SUM_TOLERANCE`); others as they are.

    >>> float(brought_to_one(np.array([0.333334, 0.333334, 0.333334])).sum()), brought_to_one(np.array([0.9])).tolist()
    (1.0, [0.9])
    """
    totals = np.asarray(weights.sum(axis=-1, keepdims=True))
    off = np.abs(totals - 1.0)
    rounded = (off > SLACK) & (off <= SUM_TOLERANCE)
    return np.divide(weights, totals, out=weights.copy(), where=rounded) if rounded.any() else weights


def covariance_of(source: str, cov: ArrayLike) -> Floats:
    """``cov`` as a symmetric matrix, or an InputError with everything that is wrong with it."""
    found = Findings(source)
    matrix = found.covariance(cov)
    found.settle()
    assert matrix is not None
    return matrix


def volatilities(cov: Floats) -> Floats:
    """Square roots of the variances; exactly 0 where there is only rounding (below 1e-12 of the largest)."""
    sizes = np.sqrt(np.diag(cov))
    sizes[sizes <= 1e-12 * sizes.max()] = 0.0
    return np.asarray(sizes)


def correlations(source: str, cov: Floats, sizes: Floats) -> Floats:
    """The covariance matrix on the scale of correlations.

    Raises
    ------
    InputError
        It is not positive semidefinite, as a pairwise-complete matrix often is not.
    """
    matrix: Floats = cov / sizes / sizes[:, None]
    np.fill_diagonal(matrix, 1.0)
    shifted = matrix.copy()
    np.fill_diagonal(shifted, 1.0 + _INDEFINITE)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        low = float(np.linalg.eigvalsh(matrix)[0])
        what = f"must be positive semidefinite (smallest eigenvalue of its correlations: {low:.3g})"
        hint = "a pairwise-complete matrix often is not; estimate on common days"
        raise InputError(source, [Problem("cov", f"{what}; {hint}")]) from None
    return matrix


def simple_returns(prices: ArrayLike) -> Floats:
    """Simple returns of prices; a missing price (NaN) makes the two returns that need it missing.

    Parameters
    ----------
    prices : float array of shape (n_days, n_assets)
        Adjusted closes, greater than 0; NaN where there is none.

    Returns
    -------
    float array of shape (n_days, n_assets)
        Row t is the return from the close of t-1 to the close of t; row 0 is NaN.

    Raises
    ------
    InputError
        A price is 0, negative or infinite.

    Examples
    --------
    >>> simple_returns([[100.0], [110.0], [99.0]]).ravel().round(3).tolist()
    [nan, 0.1, -0.1]
    """
    found = Findings("simple_returns")
    table = found.array("prices", prices, (2,))
    if table is not None:
        found.none_of(np.isinf(table), "prices", "must be finite, or NaN where there is none", table)
        found.none_of(table <= 0, "prices", "must be greater than 0", table)
    found.settle()
    assert table is not None
    returns = np.full_like(table, np.nan)
    returns[1:] = table[1:] / table[:-1] - 1.0
    return returns
