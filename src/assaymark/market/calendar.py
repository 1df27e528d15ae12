"""The common calendar: weekdays, seven-day series sampled on them, and the rule for gaps (PortBench section B.3)."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np

from assaymark.errors import InputError

GAP_LIMIT = 5
"""Gaps of up to so many days take the last price; a longer gap stays missing as a whole."""


def weekdays(first: date, last: date) -> np.ndarray:
    """Monday to Friday from ``first`` to ``last``, both included, as days (datetime64[D])."""
    days = all_days(first, last)
    return days[np.is_busday(days)]


def all_days(first: date, last: date) -> np.ndarray:
    """Every calendar day from ``first`` to ``last``, both included, as days (datetime64[D])."""
    return np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)


def sample_on(days: np.ndarray, source_days: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The rows of ``values`` on ``days``; missing (NaN) where the source has no such day."""
    if source_days.size and not (np.diff(source_days).astype(int) > 0).all():
        raise InputError("calendar", ["the days of a series must increase, each day once"])
    found = np.full((days.size, *values.shape[1:]), np.nan)
    if source_days.size:
        at = np.minimum(np.searchsorted(source_days, days), source_days.size - 1)
        there = source_days[at] == days
        found[there] = values[at[there]]
    return found


def fill_gaps(prices: np.ndarray, *, limit: int = GAP_LIMIT) -> np.ndarray:
    """Prices with gaps of up to ``limit`` days carried forward and longer gaps left missing whole."""
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
    """Simple returns from each row to the next, shape (n_days - 1, n_instruments); NaN where either price is
    missing."""
    found: np.ndarray = prices[1:] / prices[:-1] - 1.0
    return found


def instant(moment: datetime) -> int:
    """Seconds since 1970 in UTC of a time that has a zone."""
    if moment.tzinfo is None:
        raise InputError("time", [f"an as-of time needs a time zone (got {moment.isoformat()})"])
    # integer arithmetic: a float timestamp may round a microsecond up over a release time
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND


def known_from(moment: datetime) -> int:
    """The first whole second, since 1970 in UTC, at which something that came out at ``moment`` is known."""
    down = instant(moment)
    return down + (moment.microsecond > 0)


_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)
