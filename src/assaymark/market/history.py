"""The price store in memory: bars with the instant at which each became known, macro series, news and fundamentals."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem, check_known
from assaymark.market.instruments import (
    CLASS_NAMES,
    GAP_LIMIT,
    AssetClass,
    CorporateAction,
    Listing,
    ShownHistory,
    fill_gaps,
    implied_actions,
    instant,
    known_from,
    mixed_snapshots,
    simple_returns,
    weekdays,
)
from assaymark.market.macro import (
    Filing,
    Fundamentals,
    MacroReading,
    MacroSeries,
    News,
    class_index,
    linked_macro,
    read_series,
    regimes,
    synthetic_fundamentals,
    templated_news,
)
from assaymark.market.synthetic import synthetic_market
from assaymark.notebook import Grid, Heading, Part, Result
from assaymark.records import Bar, grouped
from assaymark.text import clean, count


@dataclass(frozen=True, slots=True, eq=False)
class Restated:
    """Later versions of bars in the order in which they became known. Arrays are of shape (n,)."""

    rows: np.ndarray
    columns: np.ndarray
    known_at: np.ndarray
    values: Mapping[str, np.ndarray]

    @staticmethod
    def none() -> Restated:
        """Return an empty table: no bar was restated."""
        empty = np.empty(0, dtype=np.int64)
        return Restated(empty, empty, empty, {})

    def apply(self, table: np.ndarray, field: str, start: int, at: int) -> None:
        """Write every version known at ``at`` into ``table``, whose first row is row ``start`` of the store."""
        count = int(np.searchsorted(self.known_at, at, side="right"))
        if not count:
            return
        rows = self.rows[:count] - start
        inside = (rows >= 0) & (rows < table.shape[0])
        values = self.values.get(field)
        # With several versions of one bar the last assignment wins, and they are in the order of their times.
        table[rows[inside], self.columns[:count][inside]] = np.nan if values is None else values[:count][inside]

    def problems(self, first_known: np.ndarray, fields: Sequence[str]) -> list[Problem]:
        """Return the problems of these versions, given when the first ones were known (n_days, n_instruments)."""
        sizes = {array.size for array in (self.rows, self.columns, self.known_at, *self.values.values())}
        if len(sizes) != 1:
            return [Problem("restated", f"its arrays must be of one length (got {sorted(sizes)})")]
        if other := sorted(set(self.values) - set(fields)):
            return [Problem("restated", f"has fields that the bars have not: {', '.join(other)}")]
        shape = first_known.shape
        if not self.rows.size:
            return []
        if (self.rows < 0).any() or (self.columns < 0).any():
            return [Problem("restated", "rows and columns must be 0 or more")]
        if self.rows.max() >= shape[0] or self.columns.max() >= shape[1]:
            return [Problem("restated", f"names a bar outside of the table of shape {shape}")]
        if (np.diff(self.known_at) < 0).any():
            return [Problem("restated", "versions must come in the order in which they became known")]
        early = int((self.known_at < first_known[self.rows, self.columns]).sum())
        return [Problem("restated", f"{early} versions are known before the first version of their bar")] * bool(early)


_PRICES = ("open", "high", "low", "close")
_MOST: Final = 12  # instruments of a view that are displayed
_SHOWN = 5  # places named in a problem that occurs at many


@dataclass(frozen=True, slots=True, eq=False)
class WideBars:
    """The bars of a `History`: ``days`` (n_days,), ``bars`` and ``known_at`` (n_days, n_instruments), ``restated``."""

    days: np.ndarray
    bars: dict[str, np.ndarray]
    known_at: np.ndarray
    unstated: np.ndarray
    restated: Restated = field(default_factory=Restated.none)


def wide_bars(table: Any, ids: Sequence[str]) -> WideBars:
    """Spread a snapshot's long table into wide ones: adjusted prices on weekdays, columns in the order of ``ids``."""
    factor = _floats(table, "adj_factor")
    days = table["event_date"].to_numpy().astype("datetime64[D]")
    problems = [
        Problem(name, f"is missing in {count} rows")
        for name in ("instrument", "event_date", "known_at")
        if (count := table[name].null_count)
    ]
    if unknown := sorted(set(table["instrument"].unique().to_pylist()) - set(ids) - {None}):
        problems.append(_summary_problem(unknown, "instruments have bars and are not in the table of instruments"))
    if wrong := int(((factor <= 0) | np.isinf(factor)).sum()):
        problems.append(Problem("adj_factor", f"must be positive and finite ({wrong} rows are not)"))
    infinite = [name for name in (*_PRICES, "volume") if np.isinf(_floats(table, name)).any()]
    problems += [Problem(name, "holds an infinite number") for name in infinite]
    if len(table["snapshot"].unique()) > 1:
        names = np.array(table["instrument"].to_pylist(), dtype=object)
        problems += mixed_snapshots(table["snapshot"].to_pylist(), names, days, _floats(table, "close"))
    if problems:
        raise InputError("bars", problems)
    chosen = np.is_busday(days) if days.size else np.empty(0, bool)
    stated = np.where(np.isnan(factor), 1.0, factor)
    values = {name: _floats(table, name) * stated for name in _PRICES}
    values["volume"] = _floats(table, "volume")
    if (stated != 1.0).any():
        values[FACTOR] = stated
    values = {name: bar[chosen] for name, bar in values.items() if name == "close" or np.isfinite(bar).any()}
    place = {name: at for at, name in enumerate(ids)}
    coded = table["instrument"].combine_chunks().dictionary_encode()
    of = np.array([place[name] for name in coded.dictionary.to_pylist()], dtype=np.int64)
    columns = (of[coded.indices.to_numpy(zero_copy_only=False)] if len(of) else np.empty(0, np.int64))[chosen]
    days, micros = days[chosen], table["known_at"].cast(pa.int64()).to_numpy()[chosen]
    unstated = np.isin(np.arange(len(ids)), np.unique(columns[np.isnan(factor)[chosen]]))
    order = np.lexsort((micros, columns, days))
    day, column, micros = days[order], columns[order], micros[order]
    same = (np.diff(day).astype(int) == 0) & (np.diff(column) == 0)
    if twice := np.flatnonzero(same & (np.diff(micros) == 0)).tolist():
        named = [f"{ids[column[at]]}, {day[at]}" for at in twice]
        raise InputError("bars", [_summary_problem(named, "bars are there more than once with one known_at")])
    grid = weekdays(day[0].astype(object), day[-1].astype(object)) if day.size else np.empty(0, "datetime64[D]")
    row, known_at = np.searchsorted(grid, day), seconds_up(micros)
    first = np.concatenate([[True], ~same]) if day.size else np.empty(0, bool)
    values = {name: bar[order] for name, bar in values.items()}
    # First versions in tables. A missing bar never counts as known, since it may still arrive; so a day without any
    # bar is not visible.
    shape = (grid.size, len(ids))
    times = np.full(shape, np.iinfo(np.int64).max)
    times[row[first], column[first]] = known_at[first]
    bars = {name: np.full(shape, np.nan) for name in values}
    for name, bar in values.items():
        bars[name][row[first], column[first]] = bar[first]
    # Later versions in a separate table, in the order of their times.
    later = np.flatnonzero(~first)
    later = later[np.argsort(known_at[later], kind="stable")]
    restated = Restated(row[later], column[later], known_at[later], {name: bar[later] for name, bar in values.items()})
    return WideBars(grid, bars, times, unstated, restated if later.size else Restated.none())


def seconds_up(micros: np.ndarray) -> np.ndarray:
    """Convert microseconds to whole seconds, rounded up so that nothing is known early."""
    return np.asarray(-(-micros // 1_000_000))


def _floats(table: Any, name: str) -> np.ndarray:
    """Return a column as floats, NaN if missing."""
    return np.asarray(table[name].to_numpy().astype(float))


def _summary_problem(names: Sequence[str], text: str) -> Problem:
    """Return one problem for many places, with their number and the first of them."""
    return Problem(first_names(names), f"{len(names)} {text}")


def first_names(names: Sequence[str]) -> str:
    """Return the first names and the number of the others, as text."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


# The gap rule and every other computation over days is applied after the cut at a time, because the length of a gap is
# itself only known from later days.
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class PriceSlice:
    """A table of days by instruments, oldest first; NaN for values that were not known."""

    days: np.ndarray
    ids: tuple[str, ...]
    values: np.ndarray


class AsOf(Result):
    """Point-in-time view: the market as it was known at ``t``. Made by `History.as_of`."""

    __slots__ = ("_at", "_begin", "_columns", "_end", "_history", "_names", "t")

    def __init__(self, history: History, t: datetime) -> None:
        self.t = t
        self._history = history
        self._at = instant(t)
        # Days that have closed by t: no later row was known.
        self._end = int(np.searchsorted(history.closes_at, self._at, side="right"))
        # Leading days without any known bar exist only because their bars arrived later.
        visible = history.row_known[: self._end] <= self._at
        self._begin = int(visible.argmax()) if visible.any() else self._end
        # Not even the name of an instrument is known before it is listed.
        self._columns = np.flatnonzero(history.listed_on <= self.today)
        self._names = tuple(history.listings[column].id for column in self._columns.tolist())

    def _parts(self) -> Iterator[Part]:
        yield Heading(f"As of {self.t.astimezone(UTC):%Y-%m-%d %H:%M} UTC, knowing nothing later")
        tradable = set(self.held())
        listed = [instrument for instrument in self.instruments if instrument.id in tradable]
        macro, news = len(self.all_macro()), len(self.news())
        yield f"{count(len(listed))} instruments, {count(macro)} macro series, {count(news)} news items in 30 days"
        last = self.prices(1)
        if last.days.size and listed:
            closes = dict(zip(last.ids, last.values[-1], strict=True))
            shown = {name: f"{close:,.2f}" if np.isfinite(close) else "not known" for name, close in closes.items()}
            rows = (
                (clean(listing.id, 24), clean(listing.name, 60), CLASS_NAMES[listing.asset_class], shown[listing.id])
                for listing in listed[:_MOST]
            )
            yield Grid(("Instrument", "Name", "Class", f"Close of {last.days[-1]}"), tuple(rows), frozenset({3}))
            if len(listed) > _MOST:
                yield f"{_MOST} of {count(len(listed))} instruments"

    @property
    def today(self) -> np.datetime64:
        """The calendar day of ``t`` in UTC."""
        return np.datetime64(self._at // _DAY, "D")

    @property
    def instruments(self) -> tuple[Listing, ...]:
        """Instruments listed by now, delisted ones included; a future delisting is hidden."""
        day = self.today.astype(object)
        listed = (self._history.listings[column] for column in self._columns)
        return tuple(replace(asset, delisted=None) if (asset.delisted or day) > day else asset for asset in listed)

    def held(self) -> tuple[str, ...]:
        """Return the ids that can be held today: listed and not delisted."""
        day = self.today.astype(object)
        return tuple(instrument.id for instrument in self.instruments if instrument.trades_on(day))

    def prices(self, days: int = 60, *, field: str = "close", filled: bool = True) -> PriceSlice:
        """Return the last ``days`` closed days of one field for all `instruments`; ``filled`` applies the gap rule."""
        if days < 1:
            raise InputError("prices", [f"days must be at least 1 (got {days})"])
        check_known("field", self._history.bars, field)
        # A gap that is short enough to be filled may begin before the slice.
        start = max(self._end - days - GAP_LIMIT, self._begin)
        values = self._known(field, start)
        dates = self._history.days[start : self._end]
        if filled and field == "close":
            values = fill_gaps(values)
        if dates.size:
            values[dates[:, None] > self._history.gone_after[self._columns]] = np.nan
        length = min(days, dates.size)
        return PriceSlice(dates[dates.size - length :], self._names, values[dates.size - length :])

    def _known(self, field: str, start: int) -> np.ndarray:
        """Return raw values from row ``start`` on as a new array, NaN if not known yet."""
        rows = slice(start, self._end)
        table: np.ndarray = np.where(self._history.known_at[rows] <= self._at, self._history.bars[field][rows], np.nan)
        self._history.restated.apply(table, field, start, self._at)
        return table if self._columns.size == table.shape[1] else table[:, self._columns]

    def actions(self, days: int = 260) -> dict[str, tuple[CorporateAction, ...]]:
        """Return the splits and dividends of the last ``days`` closed days by instrument, oldest first."""
        today, store = self.today.astype(object), self._history
        if not store.actions and "adj_factor" not in store.bars:
            return {}
        closes = self.prices(days, filled=False)
        first = closes.days[0].astype(object) if closes.days.size else today
        known = (action for moment, action in store.actions if moment <= self._at and first <= action.ex_date <= today)
        listed = grouped(known, lambda action: action.instrument)
        if "adj_factor" not in store.bars:
            return {name: tuple(sorted(actions, key=lambda action: action.ex_date)) for name, actions in listed.items()}
        factors = self.prices(days, field="adj_factor", filled=False).values
        traded = closes.values / factors
        recent = {
            name: implied_actions(name, closes.days, traded[:, at], factors[:, at], listed.get(name, ()))
            for at, name in enumerate(closes.ids)
        }
        return {name: actions for name, actions in recent.items() if actions}

    def returns(self, days: int = 60) -> PriceSlice:
        """Compute simple returns of the last ``days`` closed days from closes after the gap rule."""
        prices = self.prices(days + 1)
        return PriceSlice(prices.days[1:], prices.ids, simple_returns(prices.values))

    def regimes(self, *, band: float = 0.05) -> dict[AssetClass, str]:
        """Compute the regime of each class on the last closed day (`assaymark.market.macro`)."""
        if self._begin == self._end:
            raise InputError("regimes", [f"no day had closed by {self.t.isoformat()}"])
        # 252 days for the peak; the averages need fewer.
        index = class_index(self.prices(252).values, self.instruments)
        return {name: str(regimes(path, band=band)[-1]) for name, path in index.items()}

    def macro(self, name: str) -> MacroReading:
        """Return the current reading of one macro series."""
        by_id = {series.id: series for series in self._history.macro}
        check_known("macro series", by_id, name)
        return read_series(by_id[name], self._at)

    def all_macro(self) -> tuple[MacroReading, ...]:
        """Return the current reading of every macro series."""
        return tuple(read_series(series, self._at) for series in self._history.macro)

    def news(self, days: int = 30, instrument: str | None = None) -> tuple[News, ...]:
        """Return the news of the last ``days`` days, oldest first; with ``instrument``, only items about it."""
        first, last = np.searchsorted(self._history.published, [self._at - days * _DAY, self._at], side="right")
        recent = self._history.news[int(first) : int(last)]
        return tuple(item for item in recent if instrument is None or instrument in item.instruments)

    def fundamentals(self, instrument: str) -> tuple[Filing, ...]:
        """Return the filings of one instrument so far, by period and field, in their newest version."""
        check_known("instrument", self._names, instrument)
        return self._history.fundamentals.known(instrument, self._at)

    def digest(self) -> str:
        """Return the sha256 over everything that can be read from this view: equal views have equal digests."""
        whole = hashlib.sha256()
        whole.update(self._history.days[self._begin : self._end].tobytes())
        for name in sorted(self._history.bars):
            whole.update(name.encode())
            whole.update(self._known(name, self._begin).tobytes())
        for part in (self.instruments, self.held(), self.all_macro(), self.news(100_000)):
            whole.update(repr(part).encode())
        filed = self._history.fundamentals
        count = int(np.searchsorted(filed.known_at, self._at, side="right"))
        whole.update(filed.known_at[:count].tobytes())
        whole.update(filed.values[:count].tobytes())
        keys = ("\0".join((item.instrument, item.period, item.field, item.unit)) for item in filed.filings[:count])
        whole.update("\n".join(keys).encode("utf-8", "surrogatepass"))
        if self._history.actions:
            whole.update(repr([action for moment, action in self._history.actions if moment <= self._at]).encode())
        return whole.hexdigest()


FIELDS = ("open", "high", "low", "close", "volume")
"""The fields of a bar."""

FACTOR = "adj_factor"
"""The name of the adjustment factor, a further field of a bar."""

CLOSE_OF_DAY = 21 * 3600
"""Seconds after midnight UTC at which a day's bars are complete."""


@dataclass(frozen=True, slots=True, repr=False)
class History(ShownHistory):
    """Price store: first versions of daily bars as tables (n_days, n_instruments), later versions, and other data."""

    listings: tuple[Listing, ...]
    days: np.ndarray
    bars: dict[str, np.ndarray]
    known_at: np.ndarray
    macro: tuple[MacroSeries, ...] = ()
    news: tuple[News, ...] = ()
    source: str = ""
    snapshot: str = ""
    restated: Restated = field(default_factory=Restated.none)
    fundamentals: Fundamentals = field(default_factory=lambda: Fundamentals.of(()))
    actions: tuple[tuple[int, CorporateAction], ...] = ()
    unstated: frozenset[str] = frozenset()
    closes_at: np.ndarray = field(init=False)
    row_known: np.ndarray = field(init=False)
    published: np.ndarray = field(init=False)
    listed_on: np.ndarray = field(init=False)
    gone_after: np.ndarray = field(init=False)

    def _name(self) -> str:
        return clean(f"{self.source} {self.snapshot}", 80) or "Market"

    def __post_init__(self) -> None:
        problems, shape = [], (self.days.size, len(self.listings))
        closes_at = closing_times(self.days)
        if "close" not in self.bars:
            problems.append(Problem("bars", "the field 'close' is needed"))
        for name, values in {**self.bars, "known_at": self.known_at}.items():
            if name not in ("known_at", FACTOR, *FIELDS):
                problems.append(Problem(name, f"is not a field of a bar; fields are {', '.join(FIELDS)}"))
            if values.shape != shape:
                problems.append(Problem(name, f"must have the shape {shape} (got {values.shape})"))
        if self.days.size and not (np.diff(self.days).astype(int) > 0).all():
            problems.append(Problem("days", "must increase"))
        if self.known_at.shape == shape and (self.known_at < closes_at[:, None]).any():
            problems.append(Problem("known_at", "a bar cannot be known before its day has closed"))
        problems = problems or self.restated.problems(self.known_at, tuple(self.bars))
        if problems:
            raise InputError(self.source or "history", problems)
        news = tuple(sorted(self.news, key=lambda item: item.published_at))
        last = [listing.delisted or date.max for listing in self.listings]
        derived: dict[str, Any] = {
            "closes_at": closes_at, "row_known": self.known_at.min(axis=1) if self.listings else closes_at,
            "news": news, "published": np.array([known_from(item.published_at) for item in news], dtype=np.int64),
            "listed_on": np.array([listing.listed for listing in self.listings], dtype="datetime64[D]"),
            "gone_after": np.array(last, dtype="datetime64[D]"),
        }  # fmt: skip
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def as_of(self, t: datetime) -> AsOf:
        """Return the view of the market as it was known at ``t``, which has a time zone."""
        return AsOf(self, t)

    def at_close(self, day: np.datetime64) -> AsOf:
        """Return the view of the market at the close of a day."""
        return self.as_of(datetime.combine(day.astype(object), time(), UTC) + timedelta(seconds=CLOSE_OF_DAY))


def closing_times(days: np.ndarray) -> np.ndarray:
    """Return the time at which the bars of each day are complete, int64 seconds since 1970 in UTC, shape (n_days,)."""
    return np.asarray(days.astype("datetime64[D]").astype(np.int64) * 86_400 + CLOSE_OF_DAY)


def known_at_close(days: np.ndarray, instruments: int) -> np.ndarray:
    """Return the `History.known_at` of bars that are all known at the close of their day."""
    return np.repeat(closing_times(days)[:, None], instruments, axis=1)


@lru_cache(maxsize=2)
def synthetic_history(seed: int = 0) -> History:
    """Return the embedded market of a seed as a store, with its macro series, news and fundamentals."""
    market = synthetic_market(seed)
    bars = {name: getattr(market, name) for name in FIELDS}
    macro = linked_macro(market)
    known_at = known_at_close(market.days, len(market.listings))
    known_at.setflags(write=False)
    news = templated_news(market, macro, closing_times(market.days))
    filed = synthetic_fundamentals(market)
    return History(
        market.listings, market.days, bars, known_at, macro, news, "synthetic", f"seed-{seed}", fundamentals=filed
    )


_REACH: Final = 40  # further rows, so that an instrument with missing bars still has the number asked for
_DIGITS: Final = 6  # significant digits of displayed prices


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """One trading day: the view at ``moment``, the day's quotes at traded prices, and the adjusted bars up to it."""

    date: date
    moment: datetime
    universe: tuple[str, ...]
    view: AsOf
    quotes: dict[str, Bar]
    days: np.ndarray
    bars: Mapping[str, np.ndarray]
    gone: frozenset[str]
    actions: Mapping[str, tuple[CorporateAction, ...]] = field(default_factory=dict)


class Clock:
    """The trading days of a season from ``first`` to ``last``, each with its decision time ``at`` (UTC)."""

    def __init__(
        self, history: History, universe: Sequence[str], first: date, last: date, *, at: time = time(21, 30),
        bars: int = 30,
    ) -> None:  # fmt: skip
        ids = {listing.id: column for column, listing in enumerate(history.listings)}
        problems = []
        if at.tzinfo is not None:
            problems.append(Problem("at", f"is a time of day in UTC and takes no zone (got {at.isoformat()})"))
        elif at < time(21):
            problems.append(Problem("at", f"must be from 21:00 on, when bars are complete (got {at.isoformat()})"))
        if not universe:
            problems.append(Problem("universe", "needs at least one instrument (got 0)"))
        if first > last:
            problems.append(Problem("first", f"must not be later than last (got {first} and {last})"))
        if problems:
            raise InputError("clock", problems)
        check_known("instrument", ids, *universe)
        self.history, self.universe = history, tuple(universe)
        self.first, self.last, self.at, self.bars = first, last, at, bars
        self._columns = np.array([ids[name] for name in universe])

    @property
    def reached(self) -> date | None:
        """The last day on which the store has a close of the universe; None if there is none."""
        there = np.flatnonzero(np.isfinite(self.history.bars["close"][:, self._columns]).any(axis=1))
        if not there.size:
            return None
        latest: date = self.history.days[there[-1]].astype(object)
        return latest

    def moment(self, day: date) -> datetime:
        """Return the decision time of a day."""
        return datetime.combine(day, self.at, UTC)

    def due(self, after: date | None, now: datetime | None = None) -> tuple[date, ...]:
        """Return the trading days after ``after`` that the store covers, in order; with ``now``, those due by then."""
        reached = self.reached
        last = None if reached is None else min(self.last, reached)
        if last is None or last < self.first:
            return ()
        rows = self.history.days.astype("datetime64[D]")
        inside = np.flatnonzero((rows >= np.datetime64(self.first)) & (rows <= np.datetime64(last)))
        there = np.isfinite(self.history.bars["close"][inside][:, self._columns]).any(axis=1)
        days = {day.astype(object) for day in (*weekdays(self.first, last), *rows[inside[there]])}
        dates = sorted(day for day in days if after is None or day > after)
        if now is None:
            return tuple(dates)
        if now.tzinfo is None:
            raise InputError("clock", [f"a time needs a zone (got {now.isoformat()})"])
        return tuple(day for day in dates if self.moment(day) <= now)

    def knows(self, day: date) -> bool:
        """True if a bar of the universe on that day is known at its decision time."""
        row = int(np.searchsorted(self.history.days, np.datetime64(day)))
        if row >= self.history.days.size or self.history.days[row] != np.datetime64(day):
            return False
        visible = self.history.known_at[row, self._columns] <= instant(self.moment(day))
        return bool((visible & np.isfinite(self.history.bars["close"][row, self._columns])).any())

    def day(self, day: date, *, after: date | None = None) -> Day:
        """Return a day as it was known at its decision time. Raises `InputError` unless it is after ``after``."""
        if after is not None and day <= after:
            raise InputError("clock", [f"{day} does not lie after {after}, the last day that was done"])
        if not self.first <= day <= self.last:
            raise InputError("clock", [f"{day} is outside the season ({self.first} to {self.last})"])
        moment = self.moment(day)
        view = self.history.as_of(moment)
        whole = {name: view.prices(self.bars + _REACH, field=name, filled=False) for name in self.history.bars}
        closes = whole["close"]
        places = {name: place for place, name in enumerate(closes.ids)}
        columns = np.array([places.get(name, -1) for name in self.universe])
        bars = {}
        for name, prices in whole.items():
            # Instruments not listed yet have column -1; impossible values, such as a price of 0, are missing.
            table = np.hstack([prices.values, np.full((prices.values.shape[0], 1), np.nan)])[:, columns]
            usable = np.isfinite(table) & ((table >= 0) if name == "volume" else (table > 0))
            bars[name] = np.where(usable, table, np.nan)
        factors = bars.pop(FACTOR, None)
        quotes: dict[str, Bar] = {}
        if closes.days.size and closes.days[-1] == np.datetime64(day):
            # The last row of every price at traded levels; a field that the store lacks is missing.
            nothing = np.full(len(self.universe), np.nan)
            rows = [(bars[name][-1] if name in bars else nothing).tolist() for name in FIELDS[:4]]
            if factors is not None:
                # Dividing an adjusted price by its factor changes the last digits, which no source has.
                level = factors[-1].tolist()
                rows = [[float(f"{a / b:.12g}") for a, b in zip(row, level, strict=True)] for row in rows]
            cells = [[value if math.isfinite(value) else None for value in row] for row in rows]
            quotes = {
                name: Bar(opened, high, low, close)
                for name, opened, high, low, close in zip(self.universe, *cells, strict=True)
                if close is not None
            }
        gone = frozenset(name for name in self.universe if name in places) - frozenset(view.held())
        actions = view.actions()
        if factors is not None:
            # Adjusted prices at the level of each instrument's last bar.
            last = np.where(np.isfinite(factors), np.arange(closes.days.size)[:, None], -1).max(axis=0, initial=-1)
            levels = np.where(last >= 0, factors[last, np.arange(last.size)], np.nan)
            bars = {name: array if name == "volume" else array / levels for name, array in bars.items()}
        if "volume" in bars and actions:
            # Volumes in units of the last day.
            bars["volume"] = bars["volume"].copy()
            for at, name in enumerate(self.universe):
                for action in actions.get(name, ()):
                    bars["volume"][closes.days < np.datetime64(action.ex_date), at] *= action.split
        return Day(day, moment, self.universe, view, quotes, closes.days, bars, gone, actions)


def shown_prices(values: np.ndarray) -> np.ndarray:
    """Round prices for display: to six significant digits, or to whole units if those are more."""
    with np.errstate(invalid="ignore", divide="ignore"):
        places = np.clip(_DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0, 22)
        scale = 10.0 ** np.where(np.isfinite(places), places, 0)
    return np.asarray(np.round(values * scale) / scale)
