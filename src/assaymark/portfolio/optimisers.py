"""Maximum Sharpe ratio and minimum variance, long only and fully invested."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.portfolio.checks import Findings, correlations, covariance_of, volatilities
from assaymark.portfolio.kernel import Minimum, minimise
from assaymark.portfolio.solution import Bools, Floats, Solution, Status, spread

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
        - ``unbounded``: a mix of assets has no variance that can be told from rounding, and earns more than ``rf``: the
          ratio is infinite; the mix is returned.
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
    means, matrix, mask = _checked(mu, cov, rf, allowed)
    n = means.size
    if not mask.any():
        return Solution(spread(n, np.arange(n)), "empty", None, 0, "equal weight")
    excess = means - rf
    # A cash account that earns rf up to rounding must not look like an arbitrage.
    excess[np.abs(excess) <= 1e-12 * max(abs(rf), float(np.abs(means).max()))] = 0.0
    sizes = volatilities(matrix)
    live = mask & (sizes > 0)
    if live.any():
        scaled = correlations("max_sharpe", matrix[np.ix_(live, live)], sizes[live])
    riskless = mask & (sizes == 0) & (excess > 0)
    if riskless.any():
        return Solution(spread(n, riskless & (excess == excess[riskless].max())), "zero-variance", None, 0, "corner")
    if not (excess[live] > 0).any():
        ratio = np.where(live, excess / np.where(sizes > 0, sizes, 1.0), -np.inf)
        ratio = ratio if live.any() else np.where(mask, excess, -np.inf)
        corner = np.flatnonzero(ratio == ratio.max())[:1]
        return Solution(spread(n, corner), "no-positive-excess", None, 0, "corner")
    found = minimise(scaled, excess[live] / sizes[live])
    return _solution(found, live, sizes, scaled, excess, "unbounded")


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
        says more about the sample than about the risk.

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
        return Solution(spread(sizes.size, ~live), "zero-variance", None, 0, "corner")
    found = minimise(scaled, 1.0 / sizes)
    return _solution(found, live, sizes, scaled, np.ones(sizes.size), "zero-variance")


def _checked(mu: ArrayLike, cov: ArrayLike, rf: float, allowed: ArrayLike | None) -> tuple[Floats, Floats, Bools]:
    """The three arrays in one size, or an InputError with everything that is wrong with them."""
    found = Findings("max_sharpe")
    means, matrix = found.array("mu", mu, (1,)), found.covariance(cov)
    found.number("rf", rf, -np.inf, np.inf, "a finite number")
    if means is not None:
        found.none_of(~np.isfinite(means), "mu", "must be finite", means)
        if matrix is not None and matrix.shape[0] != means.size:
            found.add("mu", f"must have one entry per asset of cov (got {means.size} for {matrix.shape[0]})")
    count = 0 if means is None else means.size
    mask = np.ones(count, dtype=np.bool_) if allowed is None else np.asarray(allowed)
    if mask.dtype != np.bool_ or mask.shape != (count,):
        found.add("allowed", f"must be one bool per asset (got {mask.dtype.name} of shape {mask.shape})")
    found.settle()
    assert means is not None
    assert matrix is not None
    return means, matrix, mask


def _solution(
    found: Minimum, live: Bools, sizes: Floats, scaled: Floats, linear: Floats, otherwise: Status
) -> Solution:
    """The minimiser as weights of all assets; weight is shared between twins of held assets."""
    amounts = found.point / sizes[live]
    shared = _share(amounts, scaled, sizes[live], linear[live]) if found.bounded else False
    weights = np.zeros(live.size)
    weights[live] = amounts / amounts.sum()
    status: Status = "duplicates" if shared else "optimal"
    return Solution(weights, status if found.bounded else otherwise, found.residual, found.iterations, ACTIVE_SET)


def _share(amounts: Floats, scaled: Floats, sizes: Floats, linear: Floats) -> bool:
    """Split the amount of each held asset equally with its twins, in place; True if one has twins.

    Equal parts are the one rule that does not depend on the order of the assets.
    """
    held = np.flatnonzero(amounts)
    twins = scaled[held] >= 1.0 - _SAME
    if int(np.count_nonzero(twins)) == held.size:
        return False
    twins &= np.abs(sizes - sizes[held, None]) <= _SAME * sizes
    twins &= np.abs(linear - linear[held, None]) <= _SAME * float(np.abs(linear).max())
    shared = False
    for row in twins:
        if np.count_nonzero(row) > 1:
            amounts[row] = amounts[row].mean()
            shared = True
    return shared
