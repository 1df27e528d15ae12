"""The smallest gap that a t test can be expected to find: the noncentral t distribution by quadrature."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from assaymark.metrology import checks
from assaymark.quantiles import t_quantile

_WIDE = 9.0  # a standard normal variable stays within so many standard deviations, to 1e-18
_TAIL = 1e-18

# Double-exponential rule on 0..1, which does not mind a singular density at 0 (one degree of freedom and less).
_STEPS = np.linspace(-4.2, 4.2, 211)
_NODES = special.expit(np.pi * np.sinh(_STEPS))
_WEIGHTS = np.pi * np.cosh(_STEPS) * _NODES * special.expit(-np.pi * np.sinh(_STEPS)) * (_STEPS[1] - _STEPS[0])


def minimum_detectable_gap(se: float, df: float, alpha: float, *, power: float = 0.8) -> float:
    """Smallest true difference that a two-sided t test finds with the stated power.

    ``P(|T'(df, gap / se)| > t(1 - alpha/2, df)) = power`` for the noncentral t, which counts that the standard error is
    estimated too. The normal approximation asks for a third less at four clusters, a tenth less at twelve.

    Parameters
    ----------
    se : float
        Standard error of the difference, above 0: sqrt(variance of a cluster's difference / clusters).
    df : float
        Its degrees of freedom, above 0; clusters - 1 where nothing is borrowed.
    alpha : float
        Two-sided level of the test.
    power : float
        Chance to find a difference of this size, above alpha.

    Returns
    -------
    float
        In the unit of ``se``.

    Raises
    ------
    InputError
        An argument outside its range.

    References
    ----------
    Johnson, N. L. and Welch, B. L. (1940). Applications of the non-central t-distribution. Biometrika 31, 362-389.

    Examples
    --------
    >>> round(minimum_detectable_gap(0.1, 4, 0.05), 4)
    0.3761
    """
    source = "minimum_detectable_gap"
    for name, value in (("se", se), ("df", df)):
        if not (math.isfinite(value) and value > 0):
            checks.fail(source, name, f"must be a finite number above 0 (got {value!r})")
    checks.probability(source, "alpha", alpha)
    checks.probability(source, "power", power)
    if power <= alpha:
        checks.fail(source, "power", f"must lie above alpha, what is found without a difference (got {power!r})")
    return se * _detectable_ratio(float(df), float(alpha), float(power))


@lru_cache(maxsize=1024)
def _detectable_ratio(df: float, alpha: float, power: float) -> float:
    """`minimum_detectable_gap` in standard errors."""
    critical = t_quantile(1 - alpha / 2, df)
    low, high = 0.0, critical * math.sqrt(2 / df * special.gammainccinv(df / 2, _TAIL)) + _WIDE
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if noncentral_tail(critical, df, middle) + noncentral_tail(critical, df, -middle) < power:
            low = middle
        else:
            high = middle
    return high


def noncentral_tail(critical: float, df: float, shift: float) -> float:
    """P(T > critical) of the noncentral t with ``df`` degrees of freedom and noncentrality ``shift``; critical > 0.

    The mean of Phi(shift - critical s) over s = sqrt(chi2(df) / df), integrated where neither factor is 0 or 1.

    >>> round(noncentral_tail(2.776, 4, 2.776), 4)
    0.5569
    """
    half = df / 2
    least = math.sqrt(special.gammaincinv(half, _TAIL) / half)
    most = math.sqrt(special.gammainccinv(half, _TAIL) / half)
    start, stop = max(least, (shift - _WIDE) / critical), min(most, (shift + _WIDE) / critical)
    below = float(special.gammainc(half, half * min(start, most) ** 2))  # where Phi is 1
    if stop <= start:
        return below if shift > 0 else 0.0
    s = start + (stop - start) * _NODES
    log_density = math.log(2) + half * math.log(half) - special.gammaln(half) + (df - 1) * np.log(s) - half * s * s
    return below + (stop - start) * float(_WEIGHTS @ (np.exp(log_density) * special.ndtr(shift - critical * s)))
