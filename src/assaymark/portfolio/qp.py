"""Argmin over y >= 0 of y'Cy/2 - b'y by an active set, exact also where C is singular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from assaymark.errors import NotMeasurableError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Status = Literal["optimal", "duplicates", "no-positive-excess", "zero-variance", "unbounded", "empty"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""Every status: what each means is said by the function that gives it."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Weights and how they were found.

    Attributes
    ----------
    weights : float array of shape (n_assets,)
        At least 0, sum to 1, read-only.
    status : Status
        ``optimal``, or the name of the degenerate case that the weights answer.
    residual : float or None
        Largest violation of the optimality conditions, without unit: for the quadratic problems relative to the
        largest ratio of target to volatility, for equal risk contribution the largest distance of a risk share times
        n_assets from 1. None where no conditions apply (a closed form, a corner, a fallback).
    iterations : int
        Steps of the solver.
    method : str
        The algorithm.
    """

    weights: Floats
    status: Status
    residual: float | None
    iterations: int
    method: str

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False


def spread(n: int, chosen: Bools | NDArray[np.intp]) -> Floats:
    """Equal weights over the chosen of ``n`` assets."""
    weights = np.zeros(n)
    weights[chosen] = 1.0
    return np.asarray(weights / weights.sum())


Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_FLAT = 1e-12  # variance of a direction of length 1 that counts as none; a matrix of correlations has rounding of 1e-15
_WORST = 1e-6  # no minimum is given whose conditions are violated by more
_HEDGED = 1e-8  # variance of a direction of length 1 that is lost in the rounding of the minimiser
_STEEP = 1e-6  # above this Schur complement nobody looks for a direction without risk


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """Where the quadratic is least, or a ray along which it falls without end."""

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

    def moves(self, column: Floats) -> Floats:
        """How the held assets best make room for one unit of the newcomer."""
        return -self._back(column, 0)

    def add(self, j: int, column: Floats, schur: float) -> None:
        """Take in an asset whose Schur complement is positive."""
        k = self.held.size
        self._upper[:k, k] = column
        self._upper[k, k] = np.sqrt(schur)
        self.held = np.append(self.held, j)

    def keep(self, held: Indices) -> None:
        """Hold exactly these; one that the earlier ones already span is left out."""
        from scipy.linalg import lapack  # here, because it takes every command a fifth of a second to load

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
        from scipy.linalg import lapack

        found: Floats = lapack.dtrtrs(self._upper[:k, :k], values, trans=transposed)[0]
        return found


def minimise(matrix: Floats, linear: Floats, *, limit: int | None = None) -> Minimum:
    """Argmin over y >= 0 of y'Cy/2 - b'y."""
    scale = float(np.abs(linear).max())
    b = linear / scale
    n = b.size
    y = np.zeros(n)
    support = Support(matrix)
    barred = np.zeros(n, dtype=np.bool_)
    most = 50 * n if limit is None else limit
    lowest, stalled = 0.0, 0
    for iteration in range(most):
        slope = b - matrix @ y
        slope[support.held] = -np.inf
        slope[barred] = -np.inf
        j = int(np.argmax(slope))
        # Where the amounts are large (almost no risk), rounding alone makes slopes; they lead round in circles.
        if slope[j] <= _EPS * max(1e4, 64 * float(y.sum())) or stalled > n:
            return _polished(support, y, b, scale, iteration)
        ray = _take_in(support, y, j, float(slope[j]))
        if ray is not None:
            return Minimum(ray, False, float(np.abs(matrix @ ray).max()), iteration + 1)
        _descend(support, y, b)
        # Rounding can throw a newcomer straight out again: it is tried again once something else has changed.
        barred[j] = True
        if y[j] > 0:
            barred[:] = False
        value = -0.5 * float(b @ y)
        stalled = 0 if value < lowest * (1 + 1e-13) else stalled + 1
        lowest = min(lowest, value)
    raise NotMeasurableError(f"the active set did not settle within {most} steps on {n} assets")


def _take_in(support: Support, y: Floats, j: int, slope: float) -> Floats | None:
    """Hold the newcomer, in place of a held asset if need be; a ray if the objective falls along it without end."""
    column, schur = support.column(j)
    if schur > _STEEP:
        support.add(j, column, schur)
        return None
    moves = support.moves(column)
    falling = np.flatnonzero(moves < -1e-10 * max(1.0, float(np.abs(moves).max())))
    reach = float((y[support.held[falling]] / -moves[falling]).min()) if falling.size else np.inf
    # Rounding in the block reaches the Schur complement multiplied by the size of the direction.
    flat = schur <= _FLAT * (1.0 + float(moves @ moves))
    if flat and not falling.size:
        ray = np.zeros(y.size)
        ray[support.held], ray[j] = np.maximum(moves, 0.0), 1.0
        return ray
    if not flat and slope <= reach * schur:
        support.add(j, column, schur)
        return None
    held = support.held
    after = y[held] + reach * moves
    after[falling[np.argmin(y[held[falling]] / -moves[falling])]] = 0.0
    staying = after > 0
    y[held] = np.where(staying, after, 0.0)
    y[j] = reach
    support.keep(np.append(held[staying], j))
    return None


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
    residual = float(violations.max())
    if residual > _WORST:
        # Rounding can only do this to amounts so large that the mix has next to no risk for its size.
        if y @ support.matrix @ y > _HEDGED * (y @ y):
            raise NotMeasurableError(f"the active set did not settle (conditions violated by {residual:.2g})")
        return Minimum(y / y.max(), False, residual, iterations)
    return Minimum(y * scale, True, residual, iterations)
