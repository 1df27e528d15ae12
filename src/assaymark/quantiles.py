"""Quantiles of the normal and Student's t distributions, and Wilson's interval for a proportion.

Formulas only: arguments are not checked.
"""

from __future__ import annotations

import math

import scipy


def normal_quantile(p: float) -> float:
    """Return the ``p``-quantile of the standard normal distribution."""
    return float(scipy.special.ndtri(p))


def t_quantile(p: float, df: float) -> float:
    """Return the ``p``-quantile of Student's t distribution with ``df`` degrees of freedom."""
    return float(scipy.special.stdtrit(df, p))


def wilson_ends(share: float, n: float, level: float) -> tuple[float, float]:
    """Return both ends of Wilson's score interval for a proportion of ``n``; ``n`` need not be a whole number."""
    z = normal_quantile(0.5 + level / 2)
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # At 0 and 1 the formula gives exactly 0 or 1, which floats miss by rounding.
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)
