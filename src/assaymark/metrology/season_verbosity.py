"""Does a judge of a season grade longer records higher than the rest of its panel does?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.quantiles import t_quantile

_FLAT = 1e-9


@dataclass(frozen=True, slots=True)
class Verbosity:
    """How many points a judge gives for a record that is twice as long, beyond what the others give for it.

    ``low`` and ``high`` are None where fewer than three periods are left to tell how firm it is.
    """

    slope: float
    low: float | None
    high: float | None
    items: int
    periods: int
    level: float
    method: str


def season_verbosity(
    own: ArrayLike,
    others: ArrayLike,
    tokens: ArrayLike,
    agents: Sequence[str],
    periods: Sequence[str],
    *,
    level: float = 0.95,
) -> Verbosity:
    """Slope of a judge's distance from the others on the length of the record, within agents.

    The distance is from the median of the *other* judges: the panel's own median would follow the judge and hide part
    of what it does. It is taken within agents, so that a judge that likes an agent, which happens to write much, is not
    called verbose for it. What all judges give for length does not show; that is for their datasheets.

    The interval is from a jackknife over periods on Student's t.

    Parameters
    ----------
    own, others : float arrays of shape (n,)
        Composite by the judge, and median of the other judges, of each agent in each period; points.
    tokens : float array of shape (n,)
        Length of what the agent wrote in that period, 1 or more.
    agents, periods : sequences of n names
    level : float

    Returns
    -------
    Verbosity
        In points per doubling of the length.

    Raises
    ------
    NotMeasurableError
        No agent's records differ in length, or there are fewer than two periods.
    InputError
        Values that are not finite, lengths that differ, fewer than 1 token.

    Examples
    --------
    >>> found = season_verbosity([60, 64, 68, 50, 54, 58], [60, 60, 60, 50, 50, 50], [100, 200, 400, 50, 100, 200],
    ...                          ["a"] * 3 + ["b"] * 3, ["1", "2", "3"] * 2)
    >>> round(found.slope, 6), found.items
    (4.0, 6)
    """
    source = "season_verbosity"
    lengths = checks.finite(source, "tokens", tokens)
    above = checks.finite(source, "own", own) - checks.finite(source, "others", others)
    if above.size != lengths.size or (lengths < 1).any():
        checks.fail(source, "tokens", f"must be 1 or more for each of the {above.size} items (got {lengths.size})")
    checks.probability(source, "level", level)
    _, who = checks.labels(source, "agents", agents, lengths.size)
    names, when = checks.labels(source, "periods", periods, lengths.size)
    doublings = np.log2(lengths)
    slope = _slope(above, doublings, who)
    if slope is None or len(names) < 2:
        raise NotMeasurableError("verbosity is undefined: no agent's records differ in length")
    low, high = _interval(above, doublings, who, when, len(names), slope, level)
    return Verbosity(
        slope=slope,
        low=low,
        high=high,
        items=int(lengths.size),
        periods=len(names),
        level=level,
        method="points per doubling of the length, within agents, against the median of the other judges; "
        "jackknife over periods",
    )


def _slope(above: Floats, doublings: Floats, who: Ints) -> float | None:
    """Least squares within agents; None where no length varies."""
    x, y = _within(doublings, who), _within(above, who)
    squares = float(x @ x)
    return float(x @ y) / squares if squares > _FLAT else None


def _within(values: Floats, who: Ints) -> Floats:
    """Values less the mean of their agent."""
    counts = np.bincount(who)
    means = np.bincount(who, weights=values) / np.maximum(counts, 1)
    return np.asarray(values - means[who])


def _interval(
    above: Floats, doublings: Floats, who: Ints, when: Ints, periods: int, slope: float, level: float
) -> tuple[float | None, float | None]:
    """Ends from the slopes without each period; none where a slope hangs on one period."""
    left = []
    for gone in range(periods):
        kept = when != gone
        without = _slope(above[kept], doublings[kept], who[kept]) if kept.any() else None
        if without is None:
            return None, None
        left.append(without)
    spread = np.array(left) - np.mean(left)
    error = float(np.sqrt((periods - 1) / periods * (spread @ spread)))
    half = t_quantile(0.5 + level / 2, periods - 1) * error
    return slope - half, slope + half
