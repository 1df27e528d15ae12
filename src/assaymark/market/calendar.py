"""The common calendar: weekdays, seven-day series sampled on them, and the rule for gaps (PortBench section B.3).

Holidays carry the last price like any short gap, because PortBench's own results imply about 261 returns a year.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np

from assaymark.errors import InputError

GAP_LIMIT = 5
"""Gaps of up to so many days take the last price; a longer gap stays missing as a whole."""


def weekdays(first: date, last: date) -> np.ndarray:
    """Monday to Friday from ``first`` to ``last``, both included, as days (datetime64[D]).

    >>> weekdays(date(2024, 3, 1), date(2024, 3, 5)).astype(str).tolist()
    ['2024-03-01', '2024-03-04', '2024-03-05']
    """
    days = all_days(first, last)
    return days[np.is_busday(days)]


def all_days(first: date, last: date) -> np.ndarray:
    """Every calendar day from ``first`` to ``last``, both included, as days (datetime64[D])."""
    return np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)


def sample_on(days: np.ndarray, source_days: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The rows of ``values`` on ``days``; missing (NaN) where the source has no such day.

    Nothing is carried here, so that the gap rule sees every gap.

    Parameters
    ----------
    days : datetime64[D] array of shape (n,)
        The days wanted.
    source_days : datetime64[D] array of shape (m,)
        The days of the rows, increasing.
    values : float array of shape (m, ...)

    Returns
    -------
    float array of shape (n, ...)

    Examples
    --------
    >>> week = all_days(date(2024, 3, 1), date(2024, 3, 4))
    >>> sample_on(weekdays(date(2024, 3, 1), date(2024, 3, 4)), week, np.arange(4.0)).tolist()
    [0.0, 3.0]
    """
    if source_days.size and not (np.diff(source_days).astype(int) > 0).all():
        raise InputError("calendar", ["the days of a series must increase, each day once"])
    found = np.full((days.size, *values.shape[1:]), np.nan)
    if source_days.size:
        at = np.minimum(np.searchsorted(source_days, days), source_days.size - 1)
        there = source_days[at] == days
        found[there] = values[at[there]]
    return found


def fill_gaps(prices: np.ndarray, *, limit: int = GAP_LIMIT) -> np.ndarray:
    """Prices with gaps of up to ``limit`` days carried forward and longer gaps left missing whole.

    A limit on plain forward filling fills the first five days of a long gap; this rule fills none of them. What comes
    before the first price is no gap and stays missing. A gap at the end counts as long as it is so far, so apply the
    rule after cutting at the as-of time: the length of a gap that is still open is not known yet.

    Parameters
    ----------
    prices : float array of shape (n_days, n_instruments)
        NaN where there is no price.

    Returns
    -------
    float array of the same shape
        A new array.

    Examples
    --------
    >>> gap = np.array([[1.0], [np.nan], [3.0], [np.nan], [np.nan], [6.0]])
    >>> fill_gaps(gap, limit=1)[:, 0].tolist()
    [1.0, 1.0, 3.0, nan, nan, 6.0]
    """
    n = prices.shape[0]
    missing = np.isnan(prices)
    if not missing.any():
        return prices.copy()
    rows = np.arange(n)[:, None]
    before = np.maximum.accumulate(np.where(missing, -1, rows), axis=0)
    after = np.minimum.accumulate(np.where(missing, n, rows)[::-1], axis=0)[::-1]
    fill = missing & (before >= 0) & (after - before - 1 <= limit)
    row, column = np.nonzero(fill)
    filled = prices.copy()
    filled[row, column] = prices[before[row, column], column]
    return filled


def simple_returns(prices: np.ndarray) -> np.ndarray:
    """Simple returns from each row to the next, shape (n_days - 1, n_instruments); NaN where either price is missing.

    >>> simple_returns(np.array([[100.0], [110.0]])).round(4).tolist()
    [[0.1]]
    """
    found: np.ndarray = prices[1:] / prices[:-1] - 1.0
    return found


def instant(moment: datetime) -> int:
    """Seconds since 1970 in UTC of a time that has a zone."""
    if moment.tzinfo is None:
        raise InputError("time", [f"an as-of time needs a time zone (got {moment.isoformat()})"])
    # integer arithmetic: a float timestamp may round a microsecond up over a release time
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND


def known_from(moment: datetime) -> int:
    """The first whole second, since 1970 in UTC, at which something that came out at ``moment`` is known.

    Rounded up where `instant` rounds down, so that nothing is known early.

    >>> known_from(datetime(1970, 1, 1, 0, 0, 1, 500, tzinfo=UTC))
    2
    """
    down = instant(moment)
    return down + (moment.microsecond > 0)


_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)
