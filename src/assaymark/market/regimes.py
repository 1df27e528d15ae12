"""Bull, bear, sideways or crisis, per asset class and day (PortBench section B.3).

Crisis goes by the drawdown from the trailing 252-day peak; the rest by the 50-day average against the 200-day one.
Without a band no day would be sideways, so the average must lie more than ``band`` away from the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import maximum_filter1d

from assaymark.errors import InputError
from assaymark.market.calendar import simple_returns
from assaymark.market.instruments import AssetClass, Listing, class_members

REGIMES = ("bull", "sideways", "bear", "crisis")
"""The four labels."""

UNDEFINED = "undefined"
"""The label of days with too little history for the slow average, unless the drawdown already says crisis."""


def class_index(closes: np.ndarray, listings: Sequence[Listing]) -> dict[AssetClass, np.ndarray]:
    """Equal-weight index of each class, 100 at the start, from the returns that exist on each day.

    Parameters
    ----------
    closes : float array of shape (n_days, n_instruments)
        Closes after the gap rule; NaN where missing.
    listings : sequence of n_instruments listings

    Returns
    -------
    dict of class to float array of shape (n_days,)
        A day on which no member has a return leaves the index where it was.
    """
    returns = simple_returns(closes)
    there = np.isfinite(returns)
    known = np.where(there, returns, 0.0)
    found: dict[AssetClass, np.ndarray] = {}
    for name, members in class_members(listings).items():
        count = there[:, members].sum(axis=1)
        mean = known[:, members].sum(axis=1) / np.maximum(count, 1)
        found[name] = 100.0 * np.concatenate([[1.0], np.cumprod(1.0 + mean)])
    return found


def drawdown(index: np.ndarray, *, window: int = 252) -> np.ndarray:
    """Fall from the highest value of the last ``window`` days, today included, as a share in [0, 1).

    >>> drawdown(np.array([100.0, 80.0, 90.0])).tolist()
    [0.0, 0.2, 0.1]
    """
    peak = maximum_filter1d(index, window, origin=(window - 1) // 2, mode="nearest")
    found: np.ndarray = np.round(1.0 - index / peak, 12)
    return found


def regimes(
    index: np.ndarray,
    *,
    crisis: float = 0.15,
    window: int = 252,
    fast: int = 50,
    slow: int = 200,
    band: float = 0.05,
) -> np.ndarray:
    """The regime of each day of one class, from that day and earlier days only (PortBench section B.3).

    Crisis: the drawdown from the trailing peak is over ``crisis``. Bull or bear: the fast average is more than
    ``band`` above or below the slow one. Sideways: neither. Days before the slow average exists are `UNDEFINED`.

    Parameters
    ----------
    index : float array of shape (n_days,)
        A price index, positive and without gaps.
    crisis : float
        Share of the peak; 0.15 is PortBench's.
    window, fast, slow : int
        Days of the peak and of the two averages.
    band : float
        Share of the slow average. 0 never says sideways, though PortBench reports mostly sideways days.

    Returns
    -------
    str array of shape (n_days,)

    Raises
    ------
    InputError
        The index has a missing or non-positive value.

    Examples
    --------
    >>> rising = np.linspace(100, 200, 300)
    >>> regimes(rising)[[0, 198, 199, 299]].tolist()
    ['undefined', 'undefined', 'bull', 'bull']
    """
    if not (np.isfinite(index).all() and (index > 0).all()):
        raise InputError("index", ["regimes need a positive index without gaps"])
    found = np.full(index.size, UNDEFINED, dtype="U9")
    if index.size >= slow:
        ratio = _average(index, fast)[slow - fast :] / _average(index, slow)
        found[slow - 1 :] = np.where(ratio > 1 + band, "bull", np.where(ratio < 1 - band, "bear", "sideways"))
    found[drawdown(index, window=window) > crisis] = "crisis"
    return found


def _average(index: np.ndarray, days: int) -> np.ndarray:
    """The mean of each ``days`` values in a row, shape (n - days + 1,)."""
    total = np.concatenate([[0.0], np.cumsum(index)])
    found: np.ndarray = (total[days:] - total[:-days]) / days
    return found
