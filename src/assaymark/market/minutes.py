"""One-minute bars on demand: drawn from a counter keyed by (seed, instrument, day), stored nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market.files import beginning
from assaymark.market.instruments import CLASS_NAMES
from assaymark.market.sanitising import Bars, DailyRanges
from assaymark.market.synthetic import SyntheticMarket
from assaymark.problems import table_problem

SESSION = 390
"""Minutes of a trading day, ending at the close; crypto trades all 1,440."""

_CLOSE = 21 * 3600
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class MinuteBars:
    """The bars of one instrument on one day, oldest first."""

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
    """One-minute bars that open at the day's open, close at its close, and span exactly its high and low."""
    row = int(np.searchsorted(market.days, day))
    if row == market.days.size or market.days[row] != day:
        raise InputError("minutes", [f"the market has no day {day}"])
    column = next((at for at, one in enumerate(market.listings) if one.id == instrument), None)
    if column is None:
        raise InputError("minutes", [f"the market has no instrument {instrument!r}"])
    first, top, bottom, last, volume = (
        float(table[row, column]) for table in (market.open, market.high, market.low, market.close, market.volume)
    )
    if not np.isfinite(last):
        raise InputError("minutes", [f"{instrument} has no bar on {day}"])
    whole_day = market.listings[column].asset_class == "CR"
    n = 1440 if whole_day else SESSION
    rng = generator(market.seed, instrument, day)
    rush = np.ones(n) if whole_day else 0.6 + 1.6 * (2 * np.abs(np.arange(n) / (n - 1) - 0.5)) ** 2
    # A walk pinned at both ends, of about the day's range, reflected at the edges of the range until it lies inside.
    span = float(np.log(top / bottom))
    ends = np.log([first, last])
    walk = np.concatenate([[0.0], np.cumsum(rng.standard_t(5, n) * rush)])
    passed = np.concatenate([[0.0], np.cumsum(rush**2)]) / (rush**2).sum()
    walk -= passed * walk[-1]
    width = float(np.ptp(walk))
    path = ends[0] + passed * (ends[1] - ends[0]) + walk * (0.8 * span / width if width > 0 else 0.0)
    low, reflected = np.log(bottom), np.log(top) - np.log(bottom)
    if reflected > 0:
        there = np.mod(path - low, 2 * reflected)
        path = low + np.minimum(there, 2 * reflected - there)
    else:
        path = np.full_like(path, low)
    closes = np.round(np.exp(path), _DECIMALS)
    closes[0], closes[-1] = first, last
    opens, closes = closes[:-1], closes[1:]
    reach = rng.random((2, n)) * 0.3 * np.log(top / bottom) / np.sqrt(n)
    highs = np.minimum(np.round(np.maximum(opens, closes) * np.exp(reach[0]), _DECIMALS), top)
    lows = np.maximum(np.round(np.minimum(opens, closes) * np.exp(-reach[1]), _DECIMALS), bottom)
    highs[highs.argmax()], lows[lows.argmin()] = top, bottom
    share = rng.gamma(2.0, 1.0, n) * rush
    sold = np.floor(volume * np.cumsum(share) / share.sum() + 0.5)
    # Bar closes: the last n minutes up to the close of the daily bar.
    close = int(day.astype("datetime64[D]").astype(np.int64)) * 86_400 + _CLOSE
    times = close - 60 * np.arange(n - 1, -1, -1, dtype=np.int64)
    return MinuteBars(instrument, day, times, opens, highs, lows, closes, np.diff(sold, prepend=0.0))


_PRICES: Final = ("open", "high", "low", "close")
_NEEDED: Final = ("time", "instrument", *_PRICES, "volume")
_MOST_BYTES: Final = 2_000_000_000
_MINUTE: Final = 60
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class FileMinutes:
    """Minutes of a file with the days of each regime. Made by `minutes_from_file`."""

    bars: Mapping[str, Bars]
    classes: Mapping[str, str]
    windows: Mapping[str, tuple[date, date]]

    def days_of(self, regime: str) -> np.ndarray:
        """The days of a regime on which any instrument has a bar (datetime64[D])."""
        if regime not in self.windows:
            raise UnknownNameError("regime", regime, tuple(self.windows))
        first, last = (np.datetime64(day, "D") for day in self.windows[regime])
        days = np.unique(np.concatenate([one.times // _DAY for one in self.bars.values()])).astype("datetime64[D]")
        found: np.ndarray = days[(days >= first) & (days <= last)]
        if not found.size:
            raise InputError("substrate.windows", [Problem(regime, f"holds no bar ({first} to {last})")])
        return found

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """The unbroken minutes at the end of a day; None where there are none."""
        one = self.bars[instrument]
        start = int(day.astype("datetime64[D]").astype(np.int64)) * _DAY
        low, high = np.searchsorted(one.times, [start, start + _DAY])
        if high - low < 2:
            return None
        breaks = np.flatnonzero(np.diff(one.times[low:high]) != _MINUTE)
        return one.part(slice(int(low) + (int(breaks[-1]) + 1 if breaks.size else 0), int(high)))

    def ranges(self) -> tuple[DailyRanges, dict[str, int]]:
        """Daily lows and highs, and the column of each instrument."""
        days = np.unique(np.concatenate([one.times // _DAY for one in self.bars.values()]))
        low, high = (np.full((days.size, len(self.bars)), np.nan) for _ in range(2))
        for column, one in enumerate(self.bars.values()):
            of, starts = np.unique(one.times // _DAY, return_index=True)
            row = np.searchsorted(days, of)
            low[row, column] = np.minimum.reduceat(one.low, starts)
            high[row, column] = np.maximum.reduceat(one.high, starts)
        columns = {name: column for column, name in enumerate(self.bars)}
        return DailyRanges(days=days.astype("datetime64[D]"), low=low, high=high), columns


def minutes_from_file(path: Path, windows: Mapping[str, tuple[date, date]]) -> FileMinutes:
    """Minutes from a CSV or Parquet file with the columns time, instrument, open, high, low, close and volume."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(path.name, [f"is larger than {_MOST_BYTES:,} bytes; cut it into windows first"])
        table = pa.parquet.read_table(path) if path.suffix == ".parquet" else pa.csv.read_csv(path)
    except (OSError, pa.ArrowException) as exc:
        raise InputError(path.name, [table_problem(exc, beginning(path))]) from None
    if missing := [name for name in _NEEDED if name not in table.column_names]:
        raise InputError(path.name, [Problem(name, "this column is needed") for name in missing])
    kind = table["time"].type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise InputError(path.name, [Problem("time", f"must be times with a zone (got {kind})")])
    seconds = np.asarray(table["time"].cast(pa.timestamp("s", tz="UTC"), safe=False).to_numpy())
    times = seconds.astype("datetime64[s]").astype(np.int64)
    columns: dict[str, np.ndarray] = {}
    for name in (*_PRICES, "volume"):
        try:
            columns[name] = np.asarray(table[name].cast(pa.float64()).to_numpy(), dtype=np.float64)
        except (pa.ArrowException, ValueError):
            raise InputError(path.name, [Problem(name, "holds something that is not a number")]) from None
    names = np.array(table["instrument"].cast(pa.string()).to_pylist(), dtype=object)
    if problems := _bar_problems(columns):
        raise InputError(path.name, problems)
    kinds = table["class"].cast(pa.string()).to_pylist() if "class" in table.column_names else None
    bars: dict[str, Bars] = {}
    classes: dict[str, str] = {}
    found: list[Problem] = []
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        rows = rows[np.argsort(times[rows], kind="stable")]
        if (np.diff(times[rows]) <= 0).any():
            found.append(Problem(str(name), "has two bars at one time"))
        bars[str(name)] = Bars(str(name), times[rows], *(columns[one][rows] for one in (*_PRICES, "volume")))
        classes[str(name)] = "equity" if kinds is None else str(kinds[rows[0]])
    known = tuple(CLASS_NAMES.values())
    found += [Problem(name, f"class must be one of {', '.join(known)} (got {kind!r})")
              for name, kind in classes.items() if kind not in known]  # fmt: skip
    if found:
        raise InputError(path.name, found)
    return FileMinutes(bars, classes, dict(windows))


def _bar_problems(columns: Mapping[str, np.ndarray]) -> list[Problem]:
    """What makes bars none, with the number of rows."""
    wrong = [
        (name, ~np.isfinite(columns[name]) | (columns[name] <= 0), "prices are not positive and finite")
        for name in _PRICES
    ]
    volume, low, high = columns["volume"], columns["low"], columns["high"]
    wrong.append(("volume", ~np.isfinite(volume) | (volume < 0), "values are negative or not finite"))
    inner = np.minimum(columns["open"], columns["close"]), np.maximum(columns["open"], columns["close"])
    outside = (low > inner[0] + 1e-9) | (high < inner[1] - 1e-9)
    wrong.append(("high, low", outside, "bars do not hold their own open and close"))
    return [Problem(name, f"{int(bad.sum())} {what}") for name, bad, what in wrong if bad.any()]
