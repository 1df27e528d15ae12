"""The market of a benchmark as dense arrays: its instruments, its windows, and point-in-time data of each date.

PortBench, sections 3.1 and B.3 and Appendix F.1. Shares are fractions, not percent. None, never 0, means that a field
is not defined for an asset.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

import numpy as np

from assaymark.benchmark.plan import RISK_SAFE
from assaymark.benchmark.scores import Pace
from assaymark.errors import InputError, Problem, check_known
from assaymark.market import (
    CLASS_NAMES,
    AsOf,
    History,
    Listing,
    MacroReading,
    News,
    class_index,
    group_correlations,
    simple_returns,
    synthetic_market,
)
from assaymark.market.macro import UNDEFINED
from assaymark.portfolio.backtesting import CLASSES
from assaymark.portfolio.optimisers import Bools, Floats
from assaymark.records import duplicates, grouped

DEFAULT_SIZE = 81
"""Default number of instruments, as in figures 28 to 30 of PortBench."""

KEPT = 160
"""Cache size in dates for point-in-time data; the four windows together have fewer, even if weekly."""

LISTED_DAYS = 252
"""Days of prices used on a date: the lookback of the peak in the crisis rule (section B.3)."""

NEWS_DAYS = 30
"""Calendar days of news in a prompt (figure 13)."""

TRAINING_END: Final = np.datetime64("2022-12-31")
"""The last day of the training years (section B.3)."""

HORIZONS: Final[dict[Pace, int]] = {"weekly": 5, "monthly": 21, "quarterly": 63}
"""Horizon of the truths of a decision, in trading days after it."""

_INDEX_NAMES = ("VIX", "VXN", "MOVE", "DXY")
_YIELDS = ("yield_10y", "DGS10")
_END = datetime(9999, 1, 1, tzinfo=UTC)
_YEAR = 252
_FAST, _SLOW = 50, 200
_BAND, _CRISIS = 0.05, 0.15
_FEWEST = 10  # days needed for a slope


@dataclass(frozen=True, slots=True)
class Window:
    """A period of decisions; the ``threshold`` of a stress window is its minimum CEPS from Table 6."""

    name: str
    first: date
    last: date
    kind: Literal["normal", "stress"] = "normal"
    threshold: float | None = None
    title: str = ""


def _stress(name: str, first: date, last: date, title: str) -> Window:
    return Window(name, first, last, "stress", RISK_SAFE[name], title)


SEED_WINDOWS: Final[tuple[Window, ...]] = (
    Window("normal", date(2024, 1, 1), date(2024, 12, 31), title="Normal year 2024"),
    _stress("china-2015", date(2015, 8, 1), date(2016, 2, 29), "2015 China Shock"),
    _stress("covid-2020", date(2020, 2, 1), date(2020, 5, 31), "2020 COVID Crash"),
    _stress("crypto-2022", date(2022, 5, 1), date(2022, 12, 31), "2022 Crypto Collapse"),
)
"""The windows of PortBench, for markets with real dates."""

_EMBEDDED: Final[dict[str, str]] = {"liquidity": "china-2015", "pandemic": "covid-2020", "tightening": "crypto-2022"}
"""Windows of the embedded market and their counterparts in PortBench, with a similar shock and length."""

_SEED = re.compile(r"(?:seed|synthetic)-(\d+)")  # in memory, and as a snapshot on disk


def windows_of(history: History) -> tuple[Window, ...]:
    """Return the four windows of a store: PortBench's dates, or for the embedded market its own stress windows."""
    seed = _SEED.fullmatch(history.snapshot)
    if history.source != "synthetic" or seed is None:
        return SEED_WINDOWS
    market = synthetic_market(int(seed[1]))
    windows = [SEED_WINDOWS[0]]
    for stress in market.windows:
        first, last = (market.days[row].astype(object) for row in (stress.first, stress.last))
        title = f"{stress.name.capitalize()} shock of the embedded market"
        windows.append(_stress(_EMBEDDED[stress.name], first, last, title))
    return tuple(windows)


def window_named(name: str, windows: tuple[Window, ...]) -> Window:
    """Return the window of that name. Raises `UnknownNameError`."""
    by_name = {window.name: window for window in windows}
    check_known("window", by_name, name)
    return by_name[name]


def decision_rows(days: np.ndarray, open_days: np.ndarray, window: Window, pace: Pace) -> np.ndarray:
    """Return the rows of decisions: the window's first trading day, then the first of each week, month or quarter."""
    inside = open_days & (days >= np.datetime64(window.first)) & (days <= np.datetime64(window.last))
    rows = np.flatnonzero(inside)
    if not rows.size:
        there = f"{days[0]} to {days[-1]}" if days.size else "no day at all"
        needs = f"needs trading days from {window.first} to {window.last} (the store has {there})"
        raise InputError(f"window {window.name}", [needs])
    if pace == "weekly":  # weeks begin on Monday
        periods = (days[rows].astype("datetime64[D]").astype(int) + 3) // 7
    else:
        periods = days[rows].astype("datetime64[M]").astype(int) // {"monthly": 1, "quarterly": 3}[pace]
    firsts = rows[np.flatnonzero(np.concatenate([[True], np.diff(periods) != 0]))]
    early = (firsts > firsts[0]) & (firsts - firsts[0] < HORIZONS[pace] / 2)
    return np.asarray(firsts[~early])


@dataclass(frozen=True, slots=True, eq=False)
class Universe:
    """The instruments of a benchmark and their classes, in the order of all arrays."""

    ids: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of instruments, n_assets."""
        return len(self.ids)


def choose_universe(history: History, instruments: int | Sequence[str] = DEFAULT_SIZE) -> Universe:
    """Choose a number of instruments by a fixed rule, or the named ones, in the order of the store."""
    listings, problems = history.listings, []
    if isinstance(instruments, int):
        tradable = [listing for listing in listings if not is_index(listing)]
        # Round-robin over the classes, and within each class over its sub-sectors.
        decks: dict[str, list[Listing]] = {}
        for kind in CLASSES:
            members = (listing for listing in tradable if CLASS_NAMES[listing.asset_class] == kind)
            subs = grouped(members, lambda listing: listing.sub).values()
            # sorted is stable: instruments listed on the same day keep the order of the store
            ordered = [sorted(sub, key=lambda member: member.listed) for sub in subs]
            decks[kind] = [listing for turn in zip_longest(*ordered) for listing in turn if listing is not None]
        turns = (listing for turn in zip_longest(*decks.values()) for listing in turn if listing is not None)
        chosen = [listing for listing, _ in zip(turns, range(instruments), strict=False)]
    else:
        by_id = {listing.id: listing for listing in listings}
        check_known("instrument", by_id, *instruments)
        chosen = [by_id[name] for name in instruments]
        if twice := duplicates(instruments):
            problems.append(Problem("instruments", f"each is named once (twice: {', '.join(twice)})"))
        if indices := [listing.id for listing in chosen if is_index(listing)]:
            problems.append(Problem("instruments", f"an index cannot be held ({', '.join(indices)})"))
    if lacking := _lacking(CLASS_NAMES[listing.asset_class] for listing in chosen):
        message = f"each of {', '.join(CLASSES)} needs an instrument (none of: {', '.join(lacking)})"
        problems.append(Problem("classes", message))
    if isinstance(instruments, int) and not len(CLASSES) <= instruments <= len(tradable):
        allowed = f"from {len(CLASSES)} to {len(tradable)}, all that can be held"
        problems.append(Problem("instruments", f"must be {allowed} (got {instruments})"))
    if problems:
        raise InputError(f"universe ({history.source or 'history'})", problems)
    wanted = {listing.id for listing in chosen}
    selection = [listing for listing in listings if listing.id in wanted]
    names = tuple(CLASS_NAMES[listing.asset_class] for listing in selection)
    return Universe(tuple(listing.id for listing in selection), names)


def is_index(listing: Listing) -> bool:
    """True for an index, such as VIX, that cannot be bought."""
    bare = listing.id.upper().lstrip("^")
    return listing.id.startswith("^") or bare in _INDEX_NAMES or listing.sub == "index"


def _lacking(there: Iterable[str]) -> list[str]:
    present = set(there)
    return [name for name in CLASSES if name not in present]


@dataclass(frozen=True, slots=True)
class AssetLine:
    """Data of one instrument on one date, with the eight fields of figures 13 and 25."""

    ticker: str
    asset_class: str
    close: float
    return_20: float | None
    return_60: float | None
    volatility: float
    max_drawdown: float
    sharpe: float | None
    beta: float | None
    duration: float | None
    regime: str


@dataclass(frozen=True, slots=True, eq=False)
class MarketState:
    """Point-in-time data of the eligible instruments (``part``) at one close; S3 is scored with ``scored_by``.

    ``regimes`` are those of the classes with an eligible instrument, and ``between`` the mean correlations of these
    classes in the same order.
    """

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
    regimes: Mapping[str, str]
    macro: tuple[tuple[str, MacroReading], ...]
    news: tuple[News, ...]

    def spread(self, values: Floats, size: int) -> Floats:
        """Expand values of the eligible instruments to the whole universe, 0 for the others."""
        padded = np.zeros(size)
        padded[self.part] = values
        return padded


class BenchMarket:
    """One store and one universe as arrays, with cached point-in-time data of each date."""

    def __init__(self, history: History, universe: Universe, *, lookback: int = 60, frozen: bool = False) -> None:
        self.history, self.universe, self.lookback = history, universe, lookback
        prices = history.as_of(_END).prices(max(history.days.size, 1), filled=False)
        place = {name: at for at, name in enumerate(prices.ids)}
        check_known("instrument", place, *universe.ids)
        raw = prices.values[:, [place[one] for one in universe.ids]]
        self.days: np.ndarray = prices.days
        if raw.shape[0] <= lookback:
            raise self._too_short(f"needs more than {lookback} days of prices", raw.shape[0])
        there = np.isfinite(raw)
        listed = np.maximum.accumulate(there, axis=0) & np.maximum.accumulate(there[::-1], axis=0)[::-1]
        self.open_days: Bools = 2 * there.sum(axis=1) >= np.maximum(listed.sum(axis=1), 1)
        rows = np.where(there, np.arange(raw.shape[0])[:, None], 0)
        np.maximum.accumulate(rows, axis=0, out=rows)
        self.closes: Floats = np.take_along_axis(raw, rows, axis=0)
        moved = simple_returns(self.closes)
        self.returns: Floats = np.vstack([np.zeros(universe.size), np.where(np.isfinite(moved), moved, 0.0)])
        for array in (self.days, self.open_days, self.closes, self.returns):
            array.setflags(write=False)
        self._frozen: Floats | None = None
        if frozen:
            returns = self.returns[1 : int(np.searchsorted(self.days, TRAINING_END, side="right"))]
            if returns.shape[0] <= lookback:
                need = f"a frozen correlation needs more than {lookback} days up to {TRAINING_END}"
                raise self._too_short(need, returns.shape[0])
            self._frozen = _correlation(returns, np.atleast_2d(np.cov(returns, rowvar=False)))
            self._frozen.setflags(write=False)
        self._yield_id = next((series.id for series in history.macro if series.id in _YIELDS), None)
        self.known = lru_cache(maxsize=KEPT)(self._known)
        self._yield_at = lru_cache(maxsize=4096)(self._read_yield)

    def _too_short(self, need: str, there: int) -> InputError:
        return InputError(self.history.source or "history", [Problem("days", f"{need} (got {there})")])

    def row_of(self, day: date) -> int:
        """Return the row of a day. Raises `InputError` if the market does not have it."""
        row = int(np.searchsorted(self.days, np.datetime64(day)))
        if row == self.days.size or self.days[row] != np.datetime64(day):
            raise InputError("market", [f"{day} is not a weekday from {self.days[0]} to {self.days[-1]}"])
        return row

    def decisions(self, window: Window, pace: Pace) -> np.ndarray:
        """Return the increasing rows of a window's decisions, each with a full lookback before and horizon after it."""
        rows = decision_rows(self.days, self.open_days, window, pace)
        first, last, ahead = int(rows[0]), int(rows[-1]), HORIZONS[pace]
        problems = []
        for short, days, place, got in (
            (first < self.lookback, self.lookback + 1, f"up to {self.days[first]}, the first", first + 1),
            (last + ahead >= self.days.size, ahead, f"after {self.days[last]}, the last", self.days.size - 1 - last),
        ):
            if short:
                problems.append(Problem("history", f"must have {days} days of prices {place} decision (got {got})"))
        if not problems and (lacking := _lacking(self.universe.classes[at] for at in self._part(first)[1].tolist())):
            text = f"needs an instrument of each class with {self.lookback + 1} closes (none of: {', '.join(lacking)})"
            problems.append(Problem(str(self.days[first]), text))
        if problems:
            raise InputError(f"window {window.name}", problems)
        return rows

    def view(self, row: int) -> AsOf:
        """Return the as-of view at the close of a row."""
        return self.history.at_close(self.days[row])

    def _part(self, row: int) -> tuple[AsOf, np.ndarray, Floats, Floats]:
        """Return the view of a date, the eligible instruments, their closes, and the closes of all listed ones."""
        view, day = self.view(row), self.days[row].astype(object)
        prices = view.prices(LISTED_DAYS)
        column = {listing.id: at for at, listing in enumerate(view.instruments) if listing.trades_on(day)}
        places = np.array([at for at, name in enumerate(self.universe.ids) if name in column], dtype=np.intp)
        closes = prices.values[:, [column[self.universe.ids[at]] for at in places.tolist()]]
        whole = np.isfinite(closes[-self.lookback - 1 :]).all(axis=0) & (closes.shape[0] > self.lookback)
        return view, places[whole], closes[:, whole], prices.values

    def _known(self, row: int) -> MarketState:
        view, part, closes, all_closes = self._part(row)
        day, first = self.days[row].astype(object), row - self.lookback
        if not part.size:
            raise InputError("market", [f"no instrument has {self.lookback + 1} closes up to {day}"])
        classes, tickers = (tuple(of[at] for at in part.tolist()) for of in (self.universe.classes, self.universe.ids))
        behind = closes[-self.lookback - 1 :]
        returns = simple_returns(behind)
        covariance = np.atleast_2d(np.cov(returns, rowvar=False))
        correlation = _correlation(returns, covariance)
        names = tuple(name for name in CLASSES if name in classes)
        member = np.array(classes)[:, None] == np.array(names)
        between = group_correlations(correlation, member.astype(float))
        yields = np.full(self.lookback + 1, np.nan)
        for later in range(max(first, 0), row + 1):
            at, value = self._yield_at(later)
            if at >= first:
                yields[at - first] = value
        index = class_index(all_closes, view.instruments)
        labels = own_regimes(np.stack(list(index.values()), axis=1))
        every = {CLASS_NAMES[name]: str(label) for name, label in zip(index, labels, strict=True)}
        titles = {series.id: series.title for series in self.history.macro}
        macro = tuple((titles[reading.id], reading) for reading in view.all_macro())
        shown = set(tickers)
        news = tuple(one for one in view.news(NEWS_DAYS) if not one.instruments or shown.intersection(one.instruments))
        for array in (part, behind, returns, covariance, correlation, between):
            array.setflags(write=False)
        scored_by = correlation if self._frozen is None else self._frozen[np.ix_(part, part)]
        lines = _asset_lines(tickers, classes, closes, returns, np.diff(yields))
        regimes = {name: every.get(name, UNDEFINED) for name in names}
        arrays = self.days[first : row + 1], behind, returns, covariance, correlation, scored_by, between
        return MarketState(row, day, part, tickers, classes, *arrays, lines, regimes, macro, news)

    def _read_yield(self, row: int) -> tuple[int, float]:
        """Return the row of the newest ten-year yield known at the close of a row (-1 if none), and the yield."""
        reading = None if self._yield_id is None else self.view(row).macro(self._yield_id)
        if reading is None or reading.value is None or reading.period is None:
            return -1, np.nan
        return int(np.searchsorted(self.days, reading.period, side="right")) - 1, reading.value


def _correlation(returns: Floats, covariance: Floats) -> Floats:
    """Convert a covariance to correlations; a constant column has 0 with the others and 1 with itself."""
    still = np.ptp(returns, axis=0) == 0
    sizes = np.where(still, 1.0, np.sqrt(np.diag(covariance)))
    matrix = np.clip(covariance / np.outer(sizes, sizes), -1.0, 1.0)
    matrix[still] = 0.0
    matrix[:, still] = 0.0
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(matrix)


def _asset_lines(
    tickers: Sequence[str], classes: Sequence[str], closes: Floats, returns: Floats, yields: Floats
) -> tuple[AssetLine, ...]:
    """Compute the data of the eligible instruments; ``yields`` are the daily changes of the ten-year yield."""
    nav = np.vstack([np.ones(len(tickers)), np.cumprod(1.0 + returns, axis=0)])
    falls = (nav / np.maximum.accumulate(nav, axis=0) - 1.0).min(axis=0)
    means, spreads = returns.mean(axis=0), returns.std(axis=0, ddof=1)
    spreads[np.ptp(returns, axis=0) == 0] = 0.0
    members = np.array(classes) == "equity"
    betas = _slopes(returns, returns[:, members].mean(axis=1) if members.any() else np.full(returns.shape[0], np.nan))
    durations = _slopes(returns, yields)
    labels = own_regimes(closes)
    moved: list[list[float | None]] = []
    for back in (20, 60):
        change = closes[-1] / closes[-1 - back] - 1.0 if closes.shape[0] > back else np.full(len(tickers), np.nan)
        moved.append([float(move) if np.isfinite(move) else None for move in change])
    lines = []
    for at, (ticker, name) in enumerate(zip(tickers, classes, strict=True)):
        interest, slope = name in ("bond", "cash"), durations[at]
        sharpe = float(means[at] / spreads[at] * np.sqrt(_YEAR)) if spreads[at] > 0 else None
        beta = None if interest else betas[at]
        # estimated, because price sources have neither durations nor yields
        duration = -100.0 * slope if interest and slope is not None else None
        risk = float(spreads[at] * np.sqrt(_YEAR)), float(falls[at])
        close = float(closes[-1, at])
        lines.append(
            AssetLine(ticker, name, close, moved[0][at], moved[1][at], *risk, sharpe, beta, duration, str(labels[at]))
        )
    return tuple(lines)


def own_regimes(closes: Floats) -> np.ndarray:
    """Label the regime of each instrument on the last day by applying the rule of `assaymark.market.macro` to it."""
    present = np.isfinite(closes)
    paid = np.where(present, closes, 0.0)
    counts = present[-_SLOW:].sum(axis=0)
    fast = paid[-_FAST:].sum(axis=0) / np.maximum(present[-_FAST:].sum(axis=0), 1)
    slow = paid[-_SLOW:].sum(axis=0) / np.maximum(counts, 1)
    ratio = fast / np.where(slow > 0, slow, 1.0)
    regimes = np.where(ratio > 1 + _BAND, "bull", np.where(ratio < 1 - _BAND, "bear", "sideways"))
    regimes = np.where((closes.shape[0] < _SLOW) | (counts < 0.9 * _SLOW), UNDEFINED, regimes)
    fall = np.round(1.0 - paid[-1] / paid[-LISTED_DAYS:].max(axis=0), 12)
    return np.where(fall > _CRISIS, "crisis", regimes)


def _slopes(returns: Floats, driver: Floats) -> list[float | None]:
    """Compute the regression slope of each column on the driver; None if the driver is constant or too short."""
    there = np.isfinite(driver)
    if there.sum() < _FEWEST or np.ptp(driver[there]) == 0:
        return [None] * returns.shape[1]
    centred = driver[there] - driver[there].mean()
    return [float(slope) for slope in centred @ returns[there] / float(centred @ centred)]
