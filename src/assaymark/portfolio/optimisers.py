"""Optimisers of long-only, fully invested portfolios, and the checks of their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, NotMeasurableError, Problem

# Argmin over y >= 0 of y'Cy/2 - b'y by an active set, exact also where C is singular

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Status = Literal["optimal", "duplicates", "no-positive-excess", "zero-variance", "unbounded", "empty"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""Every status; the function that returns a status documents its meaning."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Weights from an optimiser, with the method, its status and its residual.

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


def evenly(n: int, chosen: Bools | NDArray[np.intp]) -> Floats:
    """Return equal weights over the chosen of ``n`` assets."""
    weights = np.zeros(n)
    weights[chosen] = 1.0
    return np.asarray(weights / weights.sum())


Indices = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_FLAT = 1e-12  # variance of a direction of length 1 that counts as none; a matrix of correlations has rounding of 1e-15
_HEDGED = 1e-8  # variance of a direction of length 1 that is lost in the rounding of the minimiser
_STEEP = 1e-6  # above this Schur complement no riskless direction is searched for


@dataclass(frozen=True, slots=True, eq=False)
class Minimum:
    """The minimiser of the quadratic, or a ray along which the quadratic decreases without bound."""

    point: Floats
    bounded: bool
    residual: float
    iterations: int


class Support:
    """The held assets in the order of their entry, with the Cholesky factor U'U = C of their block."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix
        self.held: Indices = np.empty(0, dtype=np.intp)
        self._upper = np.zeros(matrix.shape, order="F")

    def column(self, j: int) -> tuple[Floats, float]:
        """Return the entering asset's column of the factor, and its Schur complement."""
        column = self._back(self.matrix[self.held, j], 1)
        return column, float(self.matrix[j, j] - column @ column)

    def moves(self, column: Floats) -> Floats:
        """Return the optimal change of the held assets for one unit of the entering asset."""
        return -self._back(column, 0)

    def add(self, j: int, column: Floats, schur: float) -> None:
        """Add an asset whose Schur complement is positive."""
        k = self.held.size
        self._upper[:k, k] = column
        self._upper[k, k] = np.sqrt(schur)
        self.held = np.append(self.held, j)

    def keep(self, support: Indices) -> None:
        """Hold exactly these assets, except any that the earlier ones already span."""
        from scipy.linalg import lapack  # here, because it takes every command a fifth of a second to load

        while True:
            factor, info = lapack.dpotrf(self.matrix[np.ix_(support, support)], lower=0)
            if info == 0:
                break
            support = np.delete(support, info - 1)
        self.held = support
        self._upper[: support.size, : support.size] = factor

    def solve(self, values: Floats) -> Floats:
        """Return the unconstrained minimiser over the held assets."""
        return self._back(self._back(values, 1), 0)

    def _back(self, values: Floats, transposed: int) -> Floats:
        k = self.held.size
        if k == 0:
            return np.empty(0)
        from scipy.linalg import lapack

        solution: Floats = lapack.dtrtrs(self._upper[:k, :k], values, trans=transposed)[0]
        return solution


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
        # Where the amounts are large (almost no risk), rounding alone makes slopes, and the search would cycle.
        if slope[j] <= _EPS * max(1e4, 64 * float(y.sum())) or stalled > n:
            return _refine(support, y, b, scale, iteration)
        ray = _enter(support, y, j, float(slope[j]))
        if ray is not None:
            return Minimum(ray, False, float(np.abs(matrix @ ray).max()), iteration + 1)
        # Move to the minimiser over the held assets; drop every asset whose weight would turn negative on the way.
        while support.held.size:
            active = support.held
            goal = support.solve(b[active])
            if goal.min() > 0:
                y[:] = 0.0
                y[active] = goal
                break
            now = y[active]
            falling = np.flatnonzero(goal <= 0)
            reach = now[falling] / (now[falling] - goal[falling])
            first = int(np.argmin(reach))
            after = now + float(reach[first]) * (goal - now)
            after[falling[first]] = 0.0
            staying = after > 0
            y[active] = np.where(staying, after, 0.0)
            support.keep(active[staying])
        # Rounding can drop an entering asset at once: it is tried again after another change.
        barred[j] = True
        if y[j] > 0:
            barred[:] = False
        value = -0.5 * float(b @ y)
        stalled = 0 if value < lowest * (1 + 1e-13) else stalled + 1
        lowest = min(lowest, value)
    raise NotMeasurableError(f"the active set did not settle within {most} steps on {n} assets")


def _enter(support: Support, y: Floats, j: int, slope: float) -> Floats | None:
    """Add an asset, replacing a held one if needed; return a ray if the objective decreases along it without bound."""
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
    active = support.held
    after = y[active] + reach * moves
    after[falling[np.argmin(y[active[falling]] / -moves[falling])]] = 0.0
    staying = after > 0
    y[active] = np.where(staying, after, 0.0)
    y[j] = reach
    support.keep(np.append(active[staying], j))
    return None


def _refine(support: Support, y: Floats, b: Floats, scale: float, iterations: int) -> Minimum:
    """Return the minimiser after one step of iterative refinement, with its violation of the optimality conditions."""
    active = support.held
    better = y[active] + support.solve(b[active] - support.matrix[active] @ y)
    if active.size and better.min() > 0:
        y[active] = better
    slope = b - support.matrix @ y
    violations = np.maximum(slope, 0.0)
    violations[active] = np.abs(slope[active])
    residual = float(violations.max())
    if residual > _WORST:
        # Rounding only does this to amounts so large that the mix has almost no risk for its size.
        if y @ support.matrix @ y > _HEDGED * (y @ y):
            raise NotMeasurableError(f"the active set did not settle (conditions violated by {residual:.2g})")
        return Minimum(y / y.max(), False, residual, iterations)
    return Minimum(y * scale, True, residual, iterations)


SLACK = 1e-9
"""Relative tolerance of a sum of weights and of the symmetry of a matrix."""

SUM_TOLERANCE = 1e-4
"""Weights whose sum is within this of 1 count as rounded and are rescaled. Eighty of six decimals miss 1 by 4e-5."""

_INDEFINITE = 1e-8  # an eigenvalue below minus this, on the scale of correlations, is not rounding


class Validator:
    """Problems with the arguments of one call, collected so that all are reported together.

    An argument that is no array of the right shape is returned empty, so that its values have no further problems.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def add(self, argument: str, problem: str) -> None:
        """Add one problem."""
        self.problems.append(Problem(argument, problem))

    def raise_for_errors(self) -> None:
        """Raise an InputError with all problems, if there are any."""
        if self.problems:
            raise InputError(self.source, self.problems)

    def forbid(self, bad: Bools, argument: str, problem: str, values: Floats) -> bool:
        """Add a problem with the number of bad entries and the first of them; True if none is bad."""
        if not bad.any():
            return True
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        place = at[0] if len(at) == 1 else at
        self.add(argument, f"{problem} ({int(bad.sum())} value(s), first at index {place}: {values[at]!s})")
        return False

    def array(self, argument: str, values: ArrayLike, *ndim: int) -> Floats:
        """Return ``values`` as a float array with an allowed number of axes and at least one value, else empty."""
        try:
            raw: NDArray[np.generic] = np.asarray(values)
        except ValueError:
            self.add(argument, "rows have unequal lengths; give a rectangular array")
        else:
            if raw.dtype.kind not in "iuf":
                self.add(argument, f"must be numbers (got {raw.dtype.name})")
            elif raw.ndim not in ndim or not raw.size:
                allowed = " or ".join(map(str, ndim))
                self.add(argument, f"must have {allowed} axes and at least one value (got shape {raw.shape})")
            else:
                return np.asarray(raw, dtype=np.float64)
        return np.empty((0,) * ndim[0])

    def number(self, argument: str, value: float, low: float, high: float, wanted: str) -> None:
        """Add a problem if a number is not within low <= value < high."""
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            self.add(argument, f"must be {wanted} (got {value!r})")
        elif not (np.isfinite(value) and low <= value < high):
            self.add(argument, f"must be {wanted} (got {float(value)!r})")

    def covariance(self, cov: ArrayLike) -> Floats:
        """Return ``cov`` made exactly symmetric, adding a problem for each flaw; empty if not square or not finite."""
        matrix = self.array("cov", cov, 2)
        if matrix.shape[0] != matrix.shape[1]:
            self.add("cov", f"must be square (got shape {matrix.shape})")
            return np.empty((0, 0))
        if not self.forbid(~np.isfinite(matrix), "cov", "must be finite", matrix):
            return np.empty((0, 0))
        self.forbid(np.diag(matrix) < 0, "cov", "variances must not be negative", np.diag(matrix))
        if not np.array_equal(matrix, matrix.T):
            apart = np.abs(matrix - matrix.T)
            self.forbid(apart > SLACK * np.abs(matrix).max(), "cov", "must be symmetric; |cov - cov.T| is not 0", apart)
            matrix = (matrix + matrix.T) / 2
        return matrix

    def one_per_asset(self, argument: str, values: Floats, matrix: Floats) -> None:
        """Add a problem if there is not one value for each asset of a covariance matrix."""
        if values.size and matrix.size and matrix.shape[0] != values.size:
            self.add(argument, f"must have one entry per asset of cov (got {values.size} for {matrix.shape[0]})")

    def weights(self, argument: str, weights: Floats, *, rows: Bools | None = None, least: float = 1.0) -> Floats:
        """Return finite, non-negative weights whose rows sum to ``least`` to 1, rescaled where a sum was rounded."""
        weights = normalise_sums(weights)
        # Most rows of a schedule keep the position (NaN), so only the others are selected and checked.
        used = weights if rows is None else weights[rows]
        if not used.size:
            return weights
        totals = np.asarray(used.sum(axis=-1), dtype=np.float64)
        if (
            np.isfinite(totals).all() and used.min() >= 0 and least - SLACK <= totals.min()
            and totals.max() <= 1 + SLACK
        ):  # fmt: skip
            return weights
        apart = weights if rows is None else np.where(rows[..., None], weights, 0.0)
        if not self.forbid(~np.isfinite(apart), argument, "weights must be finite", apart):
            return weights
        self.forbid(apart < 0, argument, "weights must not be negative", apart)
        totals = np.asarray(apart.sum(axis=-1), dtype=np.float64)
        rule = "must sum to 1" if least == 1.0 else "must sum to at most 1; the rest is cash"
        self.forbid((totals > 1 + SLACK) | (totals < least - SLACK), argument, f"weights {rule}", totals)
        return weights


def normalise_sums(weights: Floats) -> Floats:
    """Divide weights by their sum if only rounding keeps it from 1 (within `SUM_TOLERANCE`)."""
    totals = np.asarray(weights.sum(axis=-1, keepdims=True))
    off = np.abs(totals - 1.0)
    rounded = (off > SLACK) & (off <= SUM_TOLERANCE)
    return np.divide(weights, totals, out=weights.copy(), where=rounded) if rounded.any() else weights


def covariance_of(source: str, cov: ArrayLike) -> Floats:
    """Return ``cov`` as a symmetric matrix, or raise an InputError that lists everything wrong with it."""
    checker = Validator(source)
    matrix = checker.covariance(cov)
    checker.raise_for_errors()
    return matrix


def volatilities(cov: Floats) -> Floats:
    """Return the square roots of the variances; exactly 0 for pure rounding (below 1e-12 of the largest)."""
    sizes = np.sqrt(np.diag(cov))
    sizes[sizes <= 1e-12 * sizes.max()] = 0.0
    return np.asarray(sizes)


def correlations(source: str, cov: Floats, sizes: Floats) -> Floats:
    """Return the correlation matrix of a covariance matrix; raise InputError if not positive semidefinite."""
    matrix: Floats = cov / sizes / sizes[:, None]
    np.fill_diagonal(matrix, 1.0)
    shifted = matrix.copy()
    np.fill_diagonal(shifted, 1.0 + _INDEFINITE)
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        low = float(np.linalg.eigvalsh(matrix)[0])
        problem = f"must be positive semidefinite (smallest eigenvalue of its correlations: {low:.3g})"
        hint = "a pairwise-complete matrix often is not; estimate on common days"
        raise InputError(source, [Problem("cov", f"{problem}; {hint}")]) from None
    return matrix


def simple_returns(prices: ArrayLike) -> Floats:
    """Compute simple returns from prices; a missing price (NaN) makes both returns that use it NaN."""
    checker = Validator("simple_returns")
    table = checker.array("prices", prices, 2)
    checker.forbid(np.isinf(table), "prices", "must be finite, or NaN where there is none", table)
    checker.forbid(table <= 0, "prices", "must be greater than 0", table)
    checker.raise_for_errors()
    returns = np.full_like(table, np.nan)
    returns[1:] = table[1:] / table[:-1] - 1.0
    return returns


_ENOUGH = 1e-12  # stop at this relative error of the risk shares
_WORST = 1e-6  # raise if rounding alone exceeds this: the covariance does not determine the shares
_QUADRATIC = 0.25  # Newton decrement below which the full step is safe for a self-concordant function
_LIMIT = 200


def inverse_volatility(cov: ArrayLike) -> Solution:
    """Weights in proportion to 1 / volatility (RiskPar of PortBench, Appendix C.3); correlations are ignored.

    Parameters
    ----------
    cov : float array of shape (n_assets, n_assets)
        Covariance of the returns; only its diagonal matters.

    Returns
    -------
    Solution
        ``optimal``, or ``zero-variance``: assets without variance, to which the rule gives no weight, are left at 0
        (equal weight if there are no others).

    Raises
    ------
    InputError
        The matrix is not square, finite and symmetric.

    Examples
    --------
    >>> inverse_volatility([[0.04, 0.0], [0.0, 0.01]]).weights.round(4).tolist()
    [0.3333, 0.6667]
    """
    sizes = volatilities(covariance_of("inverse_volatility", cov))
    live = sizes > 0
    if not live.any():
        return Solution(evenly(sizes.size, ~live), "zero-variance", None, 0, "equal weight")
    weights = np.zeros(sizes.size)
    weights[live] = 1.0 / sizes[live]
    return Solution(weights / weights.sum(), "optimal" if live.all() else "zero-variance", None, 0, "closed form")


def equal_risk_contribution(cov: ArrayLike) -> Solution:
    """The long-only portfolio in which every asset contributes the same share of the variance.

    The minimiser of x'Sx/2 - sum(log x), by damped Newton steps; its Hessian S + diag(1/x^2) is positive definite also
    where S is singular (Spinu's form; CovRiskPar of PortBench, Appendix C.3).

    Parameters
    ----------
    cov : float array of shape (n_assets, n_assets)
        Covariance of the returns; positive semidefinite.

    Returns
    -------
    Solution
        With one of these statuses:

        - ``optimal``: the risk shares are 1/n_assets.
        - ``zero-variance``: assets without variance contribute nothing at any weight; they are left at 0, and the
          others contribute equal shares (equal weight if there are no others).
        - ``unbounded``: a long-only mix has no variance (fewer days than assets), so that no portfolio equalises; the
          mix is returned.

    Raises
    ------
    InputError
        The matrix is not square, finite, symmetric and positive semidefinite.
    NotMeasurableError
        Some mix is hedged so fully that rounding alone moves the risk shares by more than 1e-6 of their size.

    References
    ----------
    Spinu, F. (2013). An algorithm for computing risk parity weights. SSRN 2297383.

    Examples
    --------
    >>> equal_risk_contribution([[0.04, 0.0], [0.0, 0.01]]).weights.round(4).tolist()
    [0.3333, 0.6667]
    """
    from scipy.linalg import lapack  # here, because it takes every command a fifth of a second to load

    matrix = covariance_of("equal_risk_contribution", cov)
    sizes = volatilities(matrix)
    live = sizes > 0
    if not live.any():
        return Solution(evenly(sizes.size, ~live), "zero-variance", None, 0, "equal weight")
    scaled = correlations("equal_risk_contribution", matrix[np.ix_(live, live)], sizes[live])
    # The point at which x * (Cx) = 1, and its largest distance from that (infinite: no such point).
    n, absolute, error, steps = scaled.shape[0], np.abs(scaled), np.inf, _LIMIT
    x = np.full(n, np.sqrt(n / max(float(scaled.sum()), 1.0)))  # the best multiple of equal amounts with risk
    for step in range(_LIMIT):
        slope = scaled @ x - 1.0 / x
        now = float(np.abs(x * slope).max())
        # Amounts that hedge each other almost fully are large, and x * (Cx) cannot be computed better than this.
        rounding = 4 * _EPS * float((x * (absolute @ x)).max())
        if rounding > _WORST or now <= max(_ENOUGH, rounding):
            error, steps = np.inf if rounding > _WORST else now, step
            break
        hessian = scaled.copy()
        hessian.flat[:: n + 1] += 1.0 / (x * x)
        move: Floats = lapack.dposv(hessian, slope)[1]
        decrement = float(np.sqrt(max(slope @ move, 0.0)))
        x = x - move / (1.0 if decrement < _QUADRATIC else 1.0 + decrement)
    status: Status = "optimal" if live.all() else "zero-variance"
    if not np.isfinite(error):
        ray = minimise(scaled, np.ones(x.size))
        if ray.bounded:
            raise NotMeasurableError(
                f"the risk shares did not settle: after {steps} steps, rounding is all that is left"
            )
        x, status = ray.point, "unbounded"
    weights = np.zeros(sizes.size)
    weights[live] = x / sizes[live]
    weights /= weights.sum()
    return Solution(weights, status, None if status == "unbounded" else error, steps, "Newton")


def risk_shares(weights: ArrayLike, cov: ArrayLike) -> Floats:
    """Compute the share of the portfolio's variance that each asset contributes: w * (Sw) / w'Sw, which sums to 1."""
    checker = Validator("risk_shares")
    shares, matrix = checker.weights("weights", checker.array("weights", weights, 1)), checker.covariance(cov)
    checker.one_per_asset("weights", shares, matrix)
    checker.raise_for_errors()
    parts = shares * (matrix @ shares)
    total = float(parts.sum())
    if total <= 1e-15 * float(np.diag(matrix).max()):
        raise NotMeasurableError("risk shares are undefined: the portfolio has no variance")
    return np.asarray(parts / total)


ACTIVE_SET = "active set"

_SAME = 64 * float(np.finfo(np.float64).eps)  # two assets are duplicates if they differ by rounding only


def max_sharpe(mu: ArrayLike, cov: ArrayLike, *, rf: float = 0.0, allowed: ArrayLike | None = None) -> Solution:
    """The long-only, fully invested portfolio of largest Sharpe ratio (w'mu - rf) / sqrt(w'Sw).

    Exact by an active set, also where the covariance is singular (PortBench, Appendix C.1, equation 7).

    Parameters
    ----------
    mu : float array of shape (n_assets,)
        Expected returns.
    cov : float array of shape (n_assets, n_assets)
        Covariance of the returns, for the same period as ``mu``; positive semidefinite.
    rf : float
        Risk-free return, for the same period as ``mu``.
    allowed : bool array of shape (n_assets,), optional
        Which assets may be held (PortBench: those with a buy signal); all by default.

    Returns
    -------
    Solution
        With one of these statuses:

        - ``optimal``: the maximum.
        - ``duplicates``: the maximum, but a held asset has an exact twin (same return, no variance between them);
          twins share their weight equally.
        - ``no-positive-excess``: no allowed asset is expected to earn more than ``rf``; the literal maximum is then one
          single asset, the one of largest excess per volatility, and is returned. A benchmark may prefer equal weight.
        - ``zero-variance``: an asset without variance earns more than ``rf``: the ratio is infinite; all is in the best
          such asset.
        - ``unbounded``: a mix of assets has no variance beyond rounding and earns more than ``rf``: the ratio is
          infinite; the mix is returned.
        - ``empty``: nothing is allowed; equal weight over all assets.

    Raises
    ------
    InputError
        Shapes that do not fit, values that are not finite, a matrix that is not symmetric or has negative eigenvalues.

    Examples
    --------
    >>> found = max_sharpe([0.10, 0.05], [[0.04, 0.0], [0.0, 0.01]])
    >>> found.weights.round(4).tolist(), found.status
    ([0.3333, 0.6667], 'optimal')
    >>> max_sharpe([0.01, 0.02], np.eye(2), rf=0.04).status
    'no-positive-excess'
    """
    problems = Validator("max_sharpe")
    means, matrix = problems.array("mu", mu, 1), problems.covariance(cov)
    problems.number("rf", rf, -np.inf, np.inf, "a finite number")
    problems.forbid(~np.isfinite(means), "mu", "must be finite", means)
    problems.one_per_asset("mu", means, matrix)
    n = means.size
    mask: Bools = np.ones(n, dtype=np.bool_) if allowed is None else np.asarray(allowed)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        problems.add("allowed", f"must be one bool per asset (got {mask.dtype.name} of shape {mask.shape})")
    problems.raise_for_errors()
    if not mask.any():
        return Solution(evenly(n, np.arange(n)), "empty", None, 0, "equal weight")
    excess = means - rf
    # A cash account that earns rf up to rounding must not look like an arbitrage.
    excess[np.abs(excess) <= 1e-12 * max(abs(rf), float(np.abs(means).max()))] = 0.0
    sizes = volatilities(matrix)
    live = mask & (sizes > 0)
    if live.any():
        scaled = correlations("max_sharpe", matrix[np.ix_(live, live)], sizes[live])
    riskless = mask & (sizes == 0) & (excess > 0)
    if riskless.any():
        return Solution(evenly(n, riskless & (excess == excess[riskless].max())), "zero-variance", None, 0, "corner")
    if not (excess[live] > 0).any():
        ratio = np.where(live, excess / np.where(sizes > 0, sizes, 1.0), -np.inf)
        ratio = ratio if live.any() else np.where(mask, excess, -np.inf)
        corner = np.flatnonzero(ratio == ratio.max())[:1]
        return Solution(evenly(n, corner), "no-positive-excess", None, 0, "corner")
    minimum = minimise(scaled, excess[live] / sizes[live])
    return _solution(minimum, live, sizes, scaled, excess, "unbounded")


def min_variance(cov: ArrayLike) -> Solution:
    """The long-only, fully invested portfolio of least variance.

    Exact by an active set, also where the covariance is singular (MinVar of PortBench, Appendix C.3).

    Parameters
    ----------
    cov : float array of shape (n_assets, n_assets)
        Covariance of the returns; positive semidefinite.

    Returns
    -------
    Solution
        ``optimal``; ``duplicates`` (optimal, and twins share their weight equally); or ``zero-variance``: an asset has
        no variance (all such assets get equal weight), or a mix has none, which happens with fewer days than assets and
        is a property of the sample rather than of the risk.

    Raises
    ------
    InputError
        The matrix is not square, finite, symmetric and positive semidefinite.

    Examples
    --------
    >>> min_variance([[0.04, 0.0], [0.0, 0.01]]).weights.round(4).tolist()
    [0.2, 0.8]
    """
    matrix = covariance_of("min_variance", cov)
    sizes = volatilities(matrix)
    live = sizes > 0
    scaled = correlations("min_variance", matrix[np.ix_(live, live)], sizes[live]) if live.any() else matrix
    if not live.all():
        return Solution(evenly(sizes.size, ~live), "zero-variance", None, 0, "corner")
    minimum = minimise(scaled, 1.0 / sizes)
    return _solution(minimum, live, sizes, scaled, np.ones(sizes.size), "zero-variance")


def _solution(
    minimum: Minimum, live: Bools, sizes: Floats, scaled: Floats, linear: Floats, otherwise: Status
) -> Solution:
    """Convert the minimiser to weights of all assets; duplicates of a held asset share its weight."""
    amounts, shared = minimum.point / sizes[live], False
    if minimum.bounded:
        # The amount of each held asset is split equally among its duplicates.
        active, scale, wanted = np.flatnonzero(amounts), sizes[live], linear[live]
        twins = scaled[active] >= 1.0 - _SAME
        if int(np.count_nonzero(twins)) > active.size:
            twins &= np.abs(scale - scale[active, None]) <= _SAME * scale
            twins &= np.abs(wanted - wanted[active, None]) <= _SAME * float(np.abs(wanted).max())
            for row in twins[np.count_nonzero(twins, axis=1) > 1]:
                amounts[row], shared = amounts[row].mean(), True
    weights = np.zeros(live.size)
    weights[live] = amounts / amounts.sum()
    status: Status = "duplicates" if shared else "optimal"
    return Solution(weights, status if minimum.bounded else otherwise, minimum.residual, minimum.iterations, ACTIVE_SET)
