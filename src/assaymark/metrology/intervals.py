"""Intervals: what they look like, and the ones that follow from a formula."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends and how they were found. ``method`` says ``exact`` where every resample was enumerated.

    >>> print(Interval(0.25, 0.5, "by hand"))
    [0.2500, 0.5000] (by hand)
    """

    low: float
    high: float
    method: str

    def __str__(self) -> str:
        return f"[{self.low:.4f}, {self.high:.4f}] ({self.method})"


def wilson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a share.

    Both ends lie in 0..1, and a share of 0 or 1 has an interval of sensible width.

    Parameters
    ----------
    successes, n : int
        How many, out of how many.
    level : float
        Coverage aimed at, strictly between 0 and 1.

    Returns
    -------
    (low, high) : shares

    Raises
    ------
    NotMeasurableError
        ``n`` is 0.
    InputError
        Not whole numbers with 0 <= successes <= n.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.

    Examples
    --------
    >>> low, high = wilson(211, 250)
    >>> f"{low:.3f} {high:.3f}"
    '0.794 0.884'
    """
    total = checks.whole("wilson", "n", n, least=0)
    hits = checks.whole("wilson", "successes", successes, least=0)
    checks.probability("wilson", "level", level)
    if hits > total:
        checks.fail("wilson", "successes", f"must not exceed n = {total} (got {hits})")
    if total == 0:
        raise NotMeasurableError("a share of no items is undefined (n = 0)")
    z = normal_quantile(0.5 + level / 2)
    share, spread = hits / total, z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    # At the edges the formula gives exactly 0 or 1, floats only almost.
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == total else centre + half)


def normal_quantile(p: float) -> float:
    """The value that a standard normal variable stays below with probability ``p``."""
    return float(special.ndtri(p))


def t_quantile(p: float, df: float) -> float:
    """The value that Student's t with ``df`` degrees of freedom stays below with probability ``p``."""
    return float(special.stdtrit(df, p))


def inverse_distribution(values: Floats, mass: Floats | None, q: float) -> float:
    """The smallest value whose cumulative mass reaches the share ``q``; without ``mass`` all values weigh the same.

    The 1e-9 keeps a boundary that is hit exactly (0.025 of 1,000) from being missed by a float.

    >>> inverse_distribution(np.array([3.0, 1.0, 2.0, 4.0]), None, 0.5)
    2.0
    """
    if mass is None:
        rank = max(0, math.ceil(q * values.size - 1e-9) - 1)
        return float(np.partition(values, rank)[rank])
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(mass[order])
    place = int(np.searchsorted(reached, (q - 1e-9) * reached[-1]))
    return float(values[order[min(place, values.size - 1)]])
