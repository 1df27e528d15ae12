"""The market of a benchmark as dense arrays, and what was knowable on each of its dates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import zip_longest
from typing import Final

import numpy as np

from assaymark.benchmark.snapshot import (
    LISTED_DAYS,
    NEWS_DAYS,
    AssetLine,
    ClassLine,
    MacroLine,
    MarketSnapshot,
    PortfolioState,
    asset_lines,
    class_lines,
    class_means,
    class_regimes,
    macro_lines,
)
from assaymark.benchmark.windows import HORIZONS, Pace, Window, decision_rows
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market import CLASS_NAMES, AsOf, History, Listing, News, simple_returns
from assaymark.market.history import CLOSE_OF_DAY
from assaymark.portfolio.backtest import CLASSES
from assaymark.portfolio.qp import Bools, Floats

DEFAULT_SIZE = 81
"""Instruments of figures 28 to 30 of PortBench."""

_INDEX_NAMES = ("VIX", "VXN", "MOVE", "DXY")


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """The instruments of a benchmark, in the order of every array."""

    ids: tuple[str, ...]
    classes: tuple[str, ...]
    codes: np.ndarray

    @property
    def size(self) -> int:
        """n_assets."""
        return len(self.ids)


def choose_universe(history: History, instruments: int | Sequence[str] = DEFAULT_SIZE) -> Universe:
    """So many instruments by a fixed rule, or exactly the named ones, in the order of the store."""
    listings = history.listings
    tradable = [one for one in listings if not is_index(one)]
    if isinstance(instruments, int):
        chosen = _dealt(tradable, instruments)
        problems = [*_missing(chosen), *_sized(instruments, len(tradable))]
    else:
        chosen = _named(listings, instruments)
        problems = [*_repeated(instruments), *_indices(chosen), *_missing(chosen)]
    if problems:
        raise InputError(f"universe ({history.source or 'history'})", problems)
    wanted = {one.id for one in chosen}
    kept = [one for one in listings if one.id in wanted]
    names = tuple(CLASS_NAMES[one.asset_class] for one in kept)
    codes = np.array([CLASSES.index(name) for name in names])
    codes.setflags(write=False)
    return Universe(tuple(one.id for one in kept), names, codes)


def is_index(listing: Listing) -> bool:
    """Whether it is an index such as VIX rather than something that can be bought."""
    bare = listing.id.upper().lstrip("^")
    return listing.id.startswith("^") or bare in _INDEX_NAMES or listing.sub == "index"


def _dealt(listings: Iterable[Listing], count: int) -> list[Listing]:
    """The first ``count`` of all in the order in which places are dealt."""
    decks: dict[str, list[Listing]] = {}
    for name in CLASSES:
        subs: dict[str, list[Listing]] = defaultdict(list)
        for one in listings:
            if CLASS_NAMES[one.asset_class] == name:
                subs[one.sub].append(one)
        # sorted is stable: of two listed on one day the first in the store comes first
        ordered = [sorted(members, key=lambda one: one.listed) for members in subs.values()]
        decks[name] = [one for turn in zip_longest(*ordered) for one in turn if one is not None]
    turns = (one for turn in zip_longest(*decks.values()) for one in turn if one is not None)
    return [one for one, _ in zip(turns, range(count), strict=False)]


def _named(listings: Sequence[Listing], names: Sequence[str]) -> list[Listing]:
    """The named instruments; a name that the store does not have is an error."""
    known = {one.id: one for one in listings}
    for name in names:
        if name not in known:
            raise UnknownNameError("instrument", name, tuple(known))
    return [known[name] for name in names]


def _sized(count: int, there: int) -> list[Problem]:
    if len(CLASSES) <= count <= there:
        return []
    return [Problem("instruments", f"must be from {len(CLASSES)} to {there}, all that can be held (got {count})")]


def _repeated(names: Sequence[str]) -> list[Problem]:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    return [Problem("instruments", f"each is named once (twice: {', '.join(twice)})")] if twice else []


def _indices(chosen: Iterable[Listing]) -> list[Problem]:
    found = [one.id for one in chosen if is_index(one)]
    return [Problem("instruments", f"an index cannot be held ({', '.join(found)})")] if found else []


def _missing(chosen: Iterable[Listing]) -> list[Problem]:
    there = {CLASS_NAMES[one.asset_class] for one in chosen}
    lacking = [name for name in CLASSES if name not in there]
    if not lacking:
        return []
    return [Problem("classes", f"each of {', '.join(CLASSES)} needs an instrument (none of: {', '.join(lacking)})")]


KEPT = 160
"""Dates whose knowable side is kept; the four windows have fewer together, weekly ones included."""

_YIELDS = ("yield_10y", "DGS10")
TRAINING_END: Final = np.datetime64("2022-12-31")
"""The last day of the training years (section B.3)."""

_END = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What could be known at the close of one date about the instruments that take part."""

    row: int
    day: date
    part: np.ndarray
    tickers: tuple[str, ...]
    classes: tuple[str, ...]
    times: np.ndarray
    closes: Floats
    returns: Floats
    covariance: Floats
    correlation: Floats
    scored_by: Floats
    between: Floats
    lines: tuple[AssetLine, ...]
    lines_by_class: tuple[ClassLine, ...]
    macro: tuple[MacroLine, ...]
    news: tuple[News, ...]

    def spread(self, values: Floats, size: int) -> Floats:
        """Values of those that take part as values of the whole universe, 0 for the others."""
        found = np.zeros(size)
        found[self.part] = values
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The view of a date, everything listed in it with its closes, and those of the universe that take part."""

    view: AsOf
    listings: tuple[Listing, ...]
    all_closes: Floats
    places: np.ndarray
    closes: Floats


class BenchMarket:
    """One store and one universe as arrays, with what was knowable on each date kept for every model that asks."""

    def __init__(self, history: History, universe: Universe, *, lookback: int = 60, frozen: bool = False) -> None:
        self.history, self.universe, self.lookback = history, universe, lookback
        prices = history.as_of(_END).prices(max(history.days.size, 1), filled=False)
        place = {name: at for at, name in enumerate(prices.ids)}
        if absent := [one for one in universe.ids if one not in place]:
            raise UnknownNameError("instrument", absent[0], prices.ids)
        columns = [place[one] for one in universe.ids]
        raw = prices.values[:, columns]
        if raw.shape[0] <= lookback:
            need = f"needs more than {lookback} days of prices (got {raw.shape[0]})"
            raise InputError(history.source or "history", [Problem("days", need)])
        self.days: np.ndarray = prices.days
        there = np.isfinite(raw)
        listed = np.maximum.accumulate(there, axis=0) & np.maximum.accumulate(there[::-1], axis=0)[::-1]
        self.open_days: Bools = 2 * there.sum(axis=1) >= np.maximum(listed.sum(axis=1), 1)
        self.closes: Floats = _carried(raw)
        moved = simple_returns(self.closes)
        self.returns: Floats = np.vstack([np.zeros(universe.size), np.where(np.isfinite(moved), moved, 0.0)])
        for one in (self.days, self.open_days, self.closes, self.returns):
            one.setflags(write=False)
        self._frozen = self._training_correlation() if frozen else None
        self._titles = {one.id: one.title for one in history.macro}
        self._yield_id = next((one.id for one in history.macro if one.id in _YIELDS), None)
        self.known = lru_cache(maxsize=KEPT)(self._known)
        self._yield_at = lru_cache(maxsize=4096)(self._read_yield)

    def row_of(self, day: date) -> int:
        """The row of a day."""
        row = int(np.searchsorted(self.days, np.datetime64(day)))
        if row == self.days.size or self.days[row] != np.datetime64(day):
            raise InputError("market", [f"{day} is no weekday from {self.days[0]} to {self.days[-1]}"])
        return row

    def decisions(self, window: Window, pace: Pace) -> np.ndarray:
        """The rows of the decisions of a window, increasing; each has a lookback behind it and a horizon before it."""
        rows = decision_rows(self.days, self.open_days, window, pace)
        first, last = int(rows[0]), int(rows[-1])
        problems = []
        if first < self.lookback:
            what = f"{self.lookback + 1} days of prices up to {self.days[first]}, the first decision"
            problems.append(Problem("history", f"must have {what} (got {first + 1})"))
        ahead = HORIZONS[pace]
        if last + ahead >= self.days.size:
            what = f"{ahead} days of prices after {self.days[last]}, the last decision"
            problems.append(Problem("history", f"must have {what} (got {self.days.size - 1 - last})"))
        if not problems:
            problems = self._lacking(first)
        if problems:
            raise InputError(f"window {window.name}", problems)
        return rows

    def end_of(self, window: Window) -> int:
        """The last row of a window."""
        return int(np.searchsorted(self.days, np.datetime64(window.last), side="right")) - 1

    def snapshot(self, row: int, portfolio: PortfolioState) -> MarketSnapshot:
        """What a model is shown at the close of a row."""
        known = self.known(row)
        return MarketSnapshot(
            known.day,
            self.lookback,
            known.part,
            known.lines,
            known.macro,
            known.lines_by_class,
            known.between,
            portfolio,
            known.news,
        )

    def view(self, row: int) -> AsOf:
        """The as-of view at the close of a row."""
        return self.history.as_of(_close_of(self.days[row]))

    def _lacking(self, row: int) -> list[Problem]:
        there = {self.universe.classes[at] for at in self._part(row).places.tolist()}
        lacking = [name for name in CLASSES if name not in there]
        what = f"needs an instrument of each class with {self.lookback + 1} closes (none of: {', '.join(lacking)})"
        return [Problem(str(self.days[row]), what)] if lacking else []

    def _part(self, row: int) -> _Part:
        view = self.view(row)
        prices, listings = view.prices(LISTED_DAYS), view.instruments
        day = self.days[row].astype(object)
        column = {one.id: at for at, one in enumerate(listings) if one.trades_on(day)}
        places = np.array([at for at, name in enumerate(self.universe.ids) if name in column], dtype=np.intp)
        closes = prices.values[:, [column[self.universe.ids[at]] for at in places.tolist()]]
        whole = np.isfinite(closes[-self.lookback - 1 :]).all(axis=0) & (closes.shape[0] > self.lookback)
        return _Part(view, listings, prices.values, places[whole], closes[:, whole])

    def _known(self, row: int) -> Known:
        """The knowable side of a date, from the as-of view at its close."""
        found = self._part(row)
        view, part, closes = found.view, found.places, found.closes
        day = self.days[row].astype(object)
        if not part.size:
            raise InputError("market", [f"no instrument has {self.lookback + 1} closes up to {day}"])
        classes = tuple(self.universe.classes[at] for at in part.tolist())
        tickers = tuple(self.universe.ids[at] for at in part.tolist())
        behind = closes[-self.lookback - 1 :]
        returns = simple_returns(behind)
        covariance = np.atleast_2d(np.cov(returns, rowvar=False))
        correlation = correlation_of(returns, covariance)
        names, between = class_means(correlation, classes)
        labels = class_regimes(found.all_closes, found.listings)
        shown = set(tickers)
        news = tuple(one for one in view.news(NEWS_DAYS) if not one.instruments or shown.intersection(one.instruments))
        for one in (part, behind, returns, covariance, correlation, between):
            one.setflags(write=False)
        return Known(
            row,
            day,
            part,
            tickers,
            classes,
            self.days[row - self.lookback : row + 1],
            behind,
            returns,
            covariance,
            correlation,
            correlation if self._frozen is None else self._frozen[np.ix_(part, part)],
            between,
            asset_lines(tickers, classes, closes, returns, self._yield_changes(row)),
            class_lines(names, between, classes, labels),
            macro_lines(view, self._titles),
            news,
        )

    def _training_correlation(self) -> Floats:
        returns = self.returns[1 : int(np.searchsorted(self.days, TRAINING_END, side="right"))]
        if returns.shape[0] <= self.lookback:
            need = f"a frozen correlation needs more than {self.lookback} days up to {TRAINING_END}"
            raise InputError(self.history.source or "history", [Problem("days", f"{need} (got {returns.shape[0]})")])
        found = correlation_of(returns, np.atleast_2d(np.cov(returns, rowvar=False)))
        found.setflags(write=False)
        return found

    def _yield_changes(self, row: int) -> Floats:
        """The change of the ten-year yield on each day of the lookback, as known at the close of a row; NaN if not."""
        found = np.full(self.lookback + 1, np.nan)
        first = row - self.lookback
        for later in range(max(first, 0), row + 1):
            at, value = self._yield_at(later)
            if at >= first:
                found[at - first] = value
        return np.diff(found)

    def _read_yield(self, row: int) -> tuple[int, float]:
        """Which row the newest yield at the close of a row is of, and the yield; -1 if there is none."""
        if self._yield_id is None:
            return -1, np.nan
        reading = self.view(row).macro(self._yield_id)
        if reading.value is None or reading.period is None:
            return -1, np.nan
        at = int(np.searchsorted(self.days, reading.period, side="right")) - 1
        return at, reading.value


def correlation_of(returns: Floats, covariance: Floats) -> Floats:
    """Correlations from a covariance; of a column that does not move 0 with the others, and 1 with itself."""
    still = np.ptp(returns, axis=0) == 0
    sizes = np.where(still, 1.0, np.sqrt(np.diag(covariance)))
    found = np.clip(covariance / np.outer(sizes, sizes), -1.0, 1.0)
    found[still] = 0.0
    found[:, still] = 0.0
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _carried(prices: Floats) -> Floats:
    rows = np.where(np.isfinite(prices), np.arange(prices.shape[0])[:, None], 0)
    np.maximum.accumulate(rows, axis=0, out=rows)
    return np.take_along_axis(prices, rows, axis=0)


def _close_of(day: np.datetime64) -> datetime:
    return datetime.combine(day.astype(object), datetime.min.time(), UTC) + timedelta(seconds=CLOSE_OF_DAY)
