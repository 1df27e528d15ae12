"""Argmin over y >= 0 of y'Cy/2 - b'y by an active set, exact also where C is singular.

One kernel for two problems: with b = excess returns the minimiser is the tangency portfolio, with b = 1 the book of
minimum variance (both up to scale). Fewer days than assets is the normal case here, so C is singular and the held
assets can come to span its rank. Then the newcomer's Schur complement is about 0: there is a direction along which
the risk does not change at all, and the objective falls along it in a straight line. The step goes on until a held
asset leaves; only if none ever does is the problem unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from assaymark.errors import NotMeasurableError
from assaymark.portfolio.solution import Floats

Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where the quadratic is least, or a ray along which it falls without end.

    Attributes
    ----------
    point : float array of shape (n,)
        The minimiser; if not ``bounded`` a direction d >= 0 with Cd = 0 and b'd > 0.
    bounded : bool
        Whether there is a minimum.
    residual : float
        Largest violation of the optimality conditions (C y >= b, and equality where y > 0), relative to max |b|.
    iterations : int
        How often an asset was taken in.
    """

    point: Floats
    bounded: bool
    residual: float
    iterations: int


class Support:
    """The held assets in the order they came, with the Cholesky factor U'U = C of their block."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix
        self.held: Indices = np.empty(0, dtype=np.intp)
        self._upper = np.zeros(matrix.shape, order="F")

    def column(self, j: int) -> tuple[Floats, float]:
        """The newcomer's column of the factor, and its Schur complement."""
        column = self._back(self.matrix[self.held, j], 1)
        return column, float(self.matrix[j, j] - column @ column)

    def null_direction(self, column: Floats, schur: float) -> Floats | None:
        """How the held assets move against one unit of the newcomer without changing risk; None if risk changes."""
        if schur > 1e-6:
            return None
        moves = -self._back(column, 0)
        # Rounding in the block reaches the Schur complement multiplied by the size of the direction.
        slack = 16 * self.matrix.shape[0] * _EPS * (1.0 + float(moves @ moves))
        return moves if schur <= slack else None

    def add(self, j: int, column: Floats, schur: float) -> None:
        """Take in an asset whose Schur complement is positive."""
        k = self.held.size
        self._upper[:k, k] = column
        self._upper[k, k] = np.sqrt(schur)
        self.held = np.append(self.held, j)

    def keep(self, held: Indices) -> None:
        """Hold exactly these; one that the earlier ones already span is left out."""
        while True:
            factor, info = lapack.dpotrf(self.matrix[np.ix_(held, held)], lower=0)
            if info == 0:
                break
            held = np.delete(held, info - 1)
        self.held = held
        self._upper[: held.size, : held.size] = factor

    def solve(self, values: Floats) -> Floats:
        """The unconstrained minimiser over the held assets."""
        return self._back(self._back(values, 1), 0)

    def _back(self, values: Floats, transposed: int) -> Floats:
        k = self.held.size
        if k == 0:
            return np.empty(0)
        found: Floats = lapack.dtrtrs(self._upper[:k, :k], values, trans=transposed)[0]
        return found


def minimise(matrix: Floats, linear: Floats, *, limit: int | None = None) -> Minimum:
    """Argmin over y >= 0 of y'Cy/2 - b'y.

    Parameters
    ----------
    matrix : float array of shape (n, n)
        C: symmetric, positive semidefinite, with ones on the diagonal (scale y to make it so).
    linear : float array of shape (n,)
        b, not all 0.
    limit : int, optional
        Most newcomers allowed; by default 50 times n, which no problem has come near.

    Raises
    ------
    NotMeasurableError
        The limit was reached.

    Examples
    --------
    >>> minimise(np.eye(2), np.array([1.0, -1.0])).point.tolist()
    [1.0, 0.0]
    """
    scale = float(np.abs(linear).max())
    b = linear / scale
    n = b.size
    y = np.zeros(n)
    support = Support(matrix)
    barred = np.zeros(n, dtype=np.bool_)
    most = 50 * n if limit is None else limit
    for iteration in range(most + 1):
        slope = b - matrix @ y
        slope[support.held] = -np.inf
        slope[barred] = -np.inf
        j = int(np.argmax(slope))
        if slope[j] <= 1e-12 + 8 * _EPS * float(y.sum()):
            return _polished(support, y, b, scale, iteration)
        if iteration == most:
            break
        column, schur = support.column(j)
        moves = support.null_direction(column, schur)
        if moves is None:
            support.add(j, column, schur)
        elif not _slide(support, y, j, moves):
            ray = np.zeros(n)
            ray[support.held], ray[j] = np.maximum(moves, 0.0), 1.0
            return Minimum(ray, False, float(np.abs(matrix @ ray).max()), iteration + 1)
        _descend(support, y, b)
        # Rounding can throw a newcomer straight out again: it is tried again once something else has changed.
        if y[j] > 0:
            barred[:] = False
        else:
            barred[j] = True
    raise NotMeasurableError(f"the active set did not settle within {most} steps on {n} assets")


def _slide(support: Support, y: Floats, j: int, moves: Floats) -> bool:
    """Go along the direction without risk until a held asset is used up, and let it go; False if none ever is."""
    falling = np.flatnonzero(moves < -1e-10 * max(1.0, float(np.abs(moves).max())))
    if falling.size == 0:
        return False
    held = support.held
    reach = y[held[falling]] / -moves[falling]
    first = int(np.argmin(reach))
    step = float(reach[first])
    after = y[held] + step * moves
    after[falling[first]] = 0.0
    staying = after > 0
    y[held] = np.where(staying, after, 0.0)
    y[j] = step
    support.keep(np.append(held[staying], j))
    return True


def _descend(support: Support, y: Floats, b: Floats) -> None:
    """Go to the minimiser over the held assets; on the way let go of every asset whose weight would turn negative."""
    while support.held.size:
        held = support.held
        goal = support.solve(b[held])
        if goal.min() > 0:
            y[:] = 0.0
            y[held] = goal
            return
        now = y[held]
        falling = np.flatnonzero(goal <= 0)
        reach = now[falling] / (now[falling] - goal[falling])
        first = int(np.argmin(reach))
        after = now + float(reach[first]) * (goal - now)
        after[falling[first]] = 0.0
        staying = after > 0
        y[held] = np.where(staying, after, 0.0)
        support.keep(held[staying])


def _polished(support: Support, y: Floats, b: Floats, scale: float, iterations: int) -> Minimum:
    """The minimiser after one round of iterative refinement, with what it leaves of the conditions."""
    held = support.held
    better = y[held] + support.solve(b[held] - support.matrix[held] @ y)
    if held.size and better.min() > 0:
        y[held] = better
    slope = b - support.matrix @ y
    violations = np.maximum(slope, 0.0)
    violations[held] = np.abs(slope[held])
    return Minimum(y * scale, True, float(violations.max()), iterations)
