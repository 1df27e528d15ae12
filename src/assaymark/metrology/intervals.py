"""What an interval looks like, and the interval of a share."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.quantiles import wilson_ends


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
    return wilson_ends(hits / total, total, level=level)
