"""What an agent earned over a baseline a day: what another stretch of the same season might have shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from assaymark.metrology import checks
from assaymark.metrology.block_bootstrap import RESAMPLES, block_length, day_counts
from assaymark.quantiles import t_quantile


@dataclass(frozen=True, slots=True)
class DailyExcess:
    """A mean daily difference with its interval. ``p`` is two-sided, for none; ``block`` is in days."""

    mean: float
    low: float
    high: float
    p: float
    n: int
    block: float
    method: str


def daily_excess(
    returns: ArrayLike,
    baseline: ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> DailyExcess:
    """The mean daily difference of two return series, by the stationary block bootstrap.

    The days hang together, so blocks of random length are drawn; what both share on a day cancels. The bootstrap gives
    the standard error, and Student's t on as many degrees of freedom as there are blocks, less one, the interval. Where
    the share of resampled means beyond 0 would give a p-value, its smallest value is one over the resamples, which
    Holm over many agents multiplies past every threshold. Coverage of 95 % intervals in simulations: 93 to 96 % for 20
    to 250 independent days; where neighbouring days are correlated at .3, 91 % from 60 days on and 87 % at 20.

    Parameters
    ----------
    returns, baseline : float arrays of shape (n,)
        Simple daily returns on the same days, 10 or more.
    rng : Generator
    level : float
    resamples : int

    Returns
    -------
    DailyExcess
        In the unit of the returns.

    Raises
    ------
    NotMeasurableError
        Fewer than 10 days, or differences that do not vary.
    InputError
        Returns that are missing or infinite, or lengths that differ.

    References
    ----------
    Politis, D. and Romano, J. (1994). The stationary bootstrap. JASA 89, 1303-1313.

    Examples
    --------
    >>> rng = np.random.default_rng(4)
    >>> market = rng.normal(0.0005, 0.01, 120)
    >>> found = daily_excess(market + rng.normal(0.001, 0.002, 120), market, rng=rng)
    >>> found.low > 0, found.p < 0.01
    (True, True)
    """
    source = "daily_excess"
    own = checks.finite(source, "returns", returns)
    other = checks.finite(source, "baseline", baseline)
    if own.size != other.size:
        checks.fail(source, "baseline", f"must have one return for each of the {own.size} days (got {other.size})")
    checks.probability(source, "level", level)
    difference = own - other
    block = block_length(difference)
    n = difference.size
    drawn = np.concatenate([counts @ difference / n for counts in day_counts(n, block, resamples, rng)])
    # Resampled means vary about the sample with n in the denominator, as a variance with ddof 0 does.
    error = float(drawn.std()) * math.sqrt(n / (n - 1))
    freedom = max(1.0, n / block - 1)
    mean = float(difference.mean())
    half = t_quantile(0.5 + level / 2, freedom) * error
    p = float(2 * special.stdtr(freedom, -abs(mean) / error))
    method = f"stationary block bootstrap, mean block {block:.3g} days, {resamples} resamples, t({freedom:.3g})"
    return DailyExcess(mean, mean - half, mean + half, p, n, block, method)
