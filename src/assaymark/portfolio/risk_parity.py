"""Risk parity: inverse volatility, and equal risk contribution by Newton's method."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from assaymark.errors import NotMeasurableError
from assaymark.portfolio.checks import Findings, correlations, covariance_of, volatilities
from assaymark.portfolio.kernel import minimise
from assaymark.portfolio.solution import Floats, Solution, Status, spread

_ENOUGH = 1e-12  # stop at this relative error of the risk shares
_WORST = 1e-6  # and give none whose rounding alone is beyond this: the covariance does not determine them
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
        return Solution(spread(sizes.size, ~live), "zero-variance", None, 0, "equal weight")
    weights = np.zeros(sizes.size)
    weights[live] = 1.0 / sizes[live]
    return Solution(weights / weights.sum(), _status(bool(live.all())), None, 0, "closed form")


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
    matrix = covariance_of("equal_risk_contribution", cov)
    sizes = volatilities(matrix)
    live = sizes > 0
    if not live.any():
        return Solution(spread(sizes.size, ~live), "zero-variance", None, 0, "equal weight")
    scaled = correlations("equal_risk_contribution", matrix[np.ix_(live, live)], sizes[live])
    x, error, steps = _newton(scaled)
    status = _status(bool(live.all()))
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
    """The share of the portfolio's variance that each asset contributes: w * (Sw) / w'Sw, which sums to 1.

    Parameters
    ----------
    weights : float array of shape (n_assets,)
        At least 0, sum to 1 (within 1e-4: they are divided by their sum).
    cov : float array of shape (n_assets, n_assets)
        Covariance of the returns.

    Raises
    ------
    NotMeasurableError
        The portfolio has no variance: there is nothing to share.
    InputError
        Weights that are negative, not finite or do not sum to 1; a matrix that does not fit.

    Examples
    --------
    >>> risk_shares([0.5, 0.5], [[0.03, 0.0], [0.0, 0.01]]).round(4).tolist()
    [0.75, 0.25]
    """
    found = Findings("risk_shares")
    held, matrix = found.array("weights", weights, (1,)), found.covariance(cov)
    if held is not None:
        held = found.weights("weights", held)
        if matrix is not None and matrix.shape[0] != held.size:
            found.add("weights", f"must have one entry per asset of cov (got {held.size} for {matrix.shape[0]})")
    found.settle()
    assert held is not None
    assert matrix is not None
    parts = held * (matrix @ held)
    total = float(parts.sum())
    if total <= 1e-15 * float(np.diag(matrix).max()):
        raise NotMeasurableError("risk shares are undefined: the portfolio has no variance")
    return np.asarray(parts / total)


def _newton(matrix: Floats) -> tuple[Floats, float, int]:
    """The point at which x * (Cx) = 1, how far each is from it at most (infinite: no such point), the steps taken."""
    n = matrix.shape[0]
    sizes = np.abs(matrix)
    # The best multiple of equal amounts, where they have risk.
    x = np.full(n, np.sqrt(n / max(float(matrix.sum()), 1.0)))
    for step in range(_LIMIT):
        slope = matrix @ x - 1.0 / x
        error = float(np.abs(x * slope).max())
        # Amounts that hedge each other almost fully are large, and x * (Cx) cannot be computed better than this.
        rounding = 4 * float(np.finfo(np.float64).eps) * float((x * (sizes @ x)).max())
        if rounding > _WORST:
            return x, np.inf, step
        if error <= max(_ENOUGH, rounding):
            return x, error, step
        hessian = matrix.copy()
        hessian.flat[:: n + 1] += 1.0 / (x * x)
        move: Floats = lapack.dposv(hessian, slope)[1]
        decrement = float(np.sqrt(max(slope @ move, 0.0)))
        x = x - move / (1.0 if decrement < _QUADRATIC else 1.0 + decrement)
    return x, np.inf, _LIMIT


def _status(all_live: bool) -> Status:
    return "optimal" if all_live else "zero-variance"
