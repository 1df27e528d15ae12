"""Quantiles of the normal and of Student's distribution, and the interval of a share that follows from the first.

Formulas only: who calls them has checked what goes in.
"""

from __future__ import annotations

import math

import scipy


def normal_quantile(p: float) -> float:
    """The value that a standard normal variable stays below with probability ``p``."""
    return float(scipy.special.ndtri(p))


def t_quantile(p: float, df: float) -> float:
    """The value that Student's t with ``df`` degrees of freedom stays below with probability ``p``."""
    return float(scipy.special.stdtrit(df, p))


def wilson_ends(share: float, n: float, level: float) -> tuple[float, float]:
    """Both ends of Wilson's score interval for a share of ``n``, which need not be a whole number."""
    z = normal_quantile(0.5 + level / 2)
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    # At the edges the formula gives exactly 0 or 1, floats only almost.
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)
