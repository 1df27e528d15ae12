"""One-minute bars on demand: drawn from a counter keyed by (seed, instrument, day), stored nowhere.

The same key gives the same bars at any time and in any order, and the minutes of a day agree with its daily bar.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from assaymark.errors import InputError
from assaymark.market.synthetic import SyntheticMarket

SESSION = 390
"""Minutes of a trading day, ending at the close; crypto trades all 1,440."""

_CLOSE = 21 * 3600
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class MinuteBars:
    """The bars of one instrument on one day, oldest first.

    ``times`` (int64, seconds since 1970 in UTC) are bar closes; the others are float arrays of the same length.
    """

    instrument: str
    day: np.datetime64
    times: np.ndarray
    open: np.ndarray
    high: np.ndarray
    low: np.ndarray
    close: np.ndarray
    volume: np.ndarray


def generator(seed: int, instrument: str, day: np.datetime64) -> np.random.Generator:
    """The generator of one instrument and day: Philox, whose key is a hash of the three."""
    key = hashlib.sha256(f"{seed}|{instrument}|{day.astype('datetime64[D]')}".encode()).digest()[:16]
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))


def minute_bars(market: SyntheticMarket, instrument: str, day: np.datetime64) -> MinuteBars:
    """One-minute bars that open at the day's open, close at its close, and span exactly its high and low.

    A bridge of t steps with the usual rush at both ends of a session, folded back into the day's range. Minutes of one
    day tell that day's close: a reader at t may be shown only those whose time is not after t.

    Raises
    ------
    InputError
        No such instrument, or no bar on that day (a weekend, a gap, not listed).

    Examples
    --------
    >>> from assaymark.market.synthetic import synthetic_market
    >>> market = synthetic_market(0)
    >>> bars = minute_bars(market, market.listings[0].id, market.days[1000])
    >>> bars.close.size, bool(bars.close[-1] == market.close[1000, 0])
    (390, True)
    """
    row, column = _place(market, instrument, day)
    first, top, bottom, last, volume = (
        float(table[row, column]) for table in (market.open, market.high, market.low, market.close, market.volume)
    )
    if not np.isfinite(last):
        raise InputError("minutes", [f"{instrument} has no bar on {day}"])
    whole_day = market.listings[column].asset_class == "CR"
    n = 1440 if whole_day else SESSION
    rng = generator(market.seed, instrument, day)
    rush = np.ones(n) if whole_day else 0.6 + 1.6 * (2 * np.abs(np.arange(n) / (n - 1) - 0.5)) ** 2
    path = _bridge(rng, np.log([first, last]), np.log(top / bottom), rush)
    closes = np.round(np.exp(_fold(path, np.log(bottom), np.log(top))), _DECIMALS)
    closes[0], closes[-1] = first, last
    opens, closes = closes[:-1], closes[1:]
    reach = rng.random((2, n)) * 0.3 * np.log(top / bottom) / np.sqrt(n)
    highs = np.minimum(np.round(np.maximum(opens, closes) * np.exp(reach[0]), _DECIMALS), top)
    lows = np.maximum(np.round(np.minimum(opens, closes) * np.exp(-reach[1]), _DECIMALS), bottom)
    highs[highs.argmax()], lows[lows.argmin()] = top, bottom
    share = rng.gamma(2.0, 1.0, n) * rush
    sold = np.floor(volume * np.cumsum(share) / share.sum() + 0.5)
    times = _times(day, n)
    return MinuteBars(instrument, day, times, opens, highs, lows, closes, np.diff(sold, prepend=0.0))


def _place(market: SyntheticMarket, instrument: str, day: np.datetime64) -> tuple[int, int]:
    """Row and column of a bar in the daily table."""
    row = int(np.searchsorted(market.days, day))
    if row == market.days.size or market.days[row] != day:
        raise InputError("minutes", [f"the market has no day {day}"])
    for column, one in enumerate(market.listings):
        if one.id == instrument:
            return row, column
    raise InputError("minutes", [f"the market has no instrument {instrument!r}"])


def _times(day: np.datetime64, n: int) -> np.ndarray:
    """Bar closes: the last n minutes up to the close of the daily bar."""
    close = int(day.astype("datetime64[D]").astype(np.int64)) * 86_400 + _CLOSE
    return close - 60 * np.arange(n - 1, -1, -1, dtype=np.int64)


def _bridge(rng: np.random.Generator, ends: np.ndarray, span: float, rush: np.ndarray) -> np.ndarray:
    """A walk of len(rush) steps pinned at both ends, shape (len(rush) + 1,), of about the day's range."""
    n = rush.size
    steps = rng.standard_t(5, n) * rush
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    passed = np.concatenate([[0.0], np.cumsum(rush**2)]) / (rush**2).sum()
    walk -= passed * walk[-1]
    width = float(np.ptp(walk))
    found: np.ndarray = ends[0] + passed * (ends[1] - ends[0]) + walk * (0.8 * span / width if width > 0 else 0.0)
    return found


def _fold(path: np.ndarray, low: float, high: float) -> np.ndarray:
    """The path reflected at the edges of the range until it lies inside."""
    span = high - low
    if span <= 0:
        return np.full_like(path, low)
    there = np.mod(path - low, 2 * span)
    found: np.ndarray = low + np.minimum(there, 2 * span - there)
    return found
