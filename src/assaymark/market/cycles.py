"""Decision cycles: an hour of minute bars, sanitised, with features, a random portfolio and random limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy

from assaymark.errors import InputError, NotMeasurableError, Problem, check_known
from assaymark.market.history import PriceSlice
from assaymark.market.instruments import CLASS_NAMES
from assaymark.market.macro import class_index, regimes
from assaymark.market.synthetic import SyntheticMarket, synthetic_market
from assaymark.records import Constraint, Context, Fact, Instrument, Portfolio, Series, record

# One-minute bars on demand, from a counter-based generator keyed by (seed, instrument, day); they are not stored

SESSION = 390
"""Minutes of a trading day, ending at the close; crypto trades for all 1,440."""

_CLOSE = 21 * 3600
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one instrument, oldest first: ``times`` (int64, seconds since 1970 in UTC), float prices and volume."""

    instrument: str
    times: np.ndarray
    open: np.ndarray
    high: np.ndarray
    low: np.ndarray
    close: np.ndarray
    volume: np.ndarray

    def part(self, rows: slice) -> Bars:
        """Return the bars of some rows."""
        columns = (self.times, self.open, self.high, self.low, self.close, self.volume)
        return Bars(self.instrument, *(column[rows] for column in columns))


def minute_bars(market: SyntheticMarket, instrument: str, day: np.datetime64) -> Bars:
    """Draw one-minute bars that start at the day's open, end at its close, and span exactly its high and low."""
    row = int(np.searchsorted(market.days, day))
    if row == market.days.size or market.days[row] != day:
        raise InputError("minutes", [f"the market has no day {day}"])
    column = next((at for at, listing in enumerate(market.listings) if listing.id == instrument), None)
    if column is None:
        raise InputError("minutes", [f"the market has no instrument {instrument!r}"])
    first, top, bottom, last, volume = (
        float(table[row, column]) for table in (market.open, market.high, market.low, market.close, market.volume)
    )
    if not np.isfinite(last):
        raise InputError("minutes", [f"{instrument} has no bar on {day}"])
    whole_day = market.listings[column].asset_class == "CR"
    n = 1440 if whole_day else SESSION
    # the generator of one instrument and day: Philox, keyed by a hash of seed, instrument and day
    key = hashlib.sha256(f"{market.seed}|{instrument}|{day.astype('datetime64[D]')}".encode()).digest()[:16]
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
    rush = np.ones(n) if whole_day else 0.6 + 1.6 * (2 * np.abs(np.arange(n) / (n - 1) - 0.5)) ** 2
    # A random walk pinned at both ends, of about the day's range, reflected at its edges to stay inside.
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
    return Bars(instrument, times, opens, highs, lows, closes, np.diff(sold, prepend=0.0))


_PRICES: Final = ("open", "high", "low", "close")
_MINUTE: Final = 60
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True, eq=False)
class FileMinutes:
    """Minute bars from a file, with the days of each regime. Made by `minutes_from_file`."""

    bars: Mapping[str, Bars]
    classes: Mapping[str, str]
    windows: Mapping[str, tuple[date, date]]

    def days_of(self, regime: str) -> np.ndarray:
        """Return the days of a regime on which any instrument has a bar (datetime64[D])."""
        check_known("regime", self.windows, regime)
        first, last = (np.datetime64(day, "D") for day in self.windows[regime])
        days = np.unique(np.concatenate([bar.times // _DAY for bar in self.bars.values()])).astype("datetime64[D]")
        span: np.ndarray = days[(days >= first) & (days <= last)]
        if not span.size:
            raise InputError("substrate.windows", [Problem(regime, f"contains no bar ({first} to {last})")])
        return span

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """Return the unbroken run of minutes at the end of a day; None if there is none."""
        bars = self.bars[instrument]
        start = int(day.astype("datetime64[D]").astype(np.int64)) * _DAY
        low, high = np.searchsorted(bars.times, [start, start + _DAY])
        if high - low < 2:
            return None
        breaks = np.flatnonzero(np.diff(bars.times[low:high]) != _MINUTE)
        return bars.part(slice(int(low) + (int(breaks[-1]) + 1 if breaks.size else 0), int(high)))

    def ranges(self) -> tuple[PriceSlice, PriceSlice]:
        """Compute the daily lows and highs."""
        days = np.unique(np.concatenate([bar.times // _DAY for bar in self.bars.values()]))
        low, high = (np.full((days.size, len(self.bars)), np.nan) for _ in range(2))
        for column, bars in enumerate(self.bars.values()):
            of, starts = np.unique(bars.times // _DAY, return_index=True)
            row = np.searchsorted(days, of)
            low[row, column] = np.minimum.reduceat(bars.low, starts)
            high[row, column] = np.maximum.reduceat(bars.high, starts)
        shown = days.astype("datetime64[D]"), tuple(self.bars)
        return PriceSlice(*shown, low), PriceSlice(*shown, high)


def minutes_from_file(path: Path, windows: Mapping[str, tuple[date, date]]) -> FileMinutes:
    """Read minute bars from a CSV or Parquet file: time, instrument, open, high, low, close, volume; class optional."""
    from assaymark.market.files import float_columns, read_price_table

    table = read_price_table(path)
    if missing := [name for name in ("time", "instrument", *_PRICES, "volume") if name not in table.column_names]:
        raise InputError(path.name, [Problem(name, "this column is needed") for name in missing])
    kind = table["time"].type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise InputError(path.name, [Problem("time", f"must be times with a zone (got {kind})")])
    seconds = np.asarray(table["time"].cast(pa.timestamp("s", tz="UTC"), safe=False).to_numpy())
    times = seconds.astype("datetime64[s]").astype(np.int64)
    columns = dict(zip((*_PRICES, "volume"), float_columns(path, table, (*_PRICES, "volume")), strict=True))
    names = np.array(table["instrument"].cast(pa.string()).to_pylist(), dtype=object)
    wrong = [
        (name, ~np.isfinite(columns[name]) | (columns[name] <= 0), "prices are not positive and finite")
        for name in _PRICES
    ]
    volume, low, high = columns["volume"], columns["low"], columns["high"]
    wrong.append(("volume", ~np.isfinite(volume) | (volume < 0), "values are negative or not finite"))
    inner = np.minimum(columns["open"], columns["close"]), np.maximum(columns["open"], columns["close"])
    outside = (low > inner[0] + 1e-9) | (high < inner[1] - 1e-9)
    wrong.append(("high, low", outside, "bars do not hold their own open and close"))
    if problems := [Problem(name, f"{int(bad.sum())} {rule}") for name, bad, rule in wrong if bad.any()]:
        raise InputError(path.name, problems)
    kinds = table["class"].cast(pa.string()).to_pylist() if "class" in table.column_names else None
    bars: dict[str, Bars] = {}
    classes: dict[str, str] = {}
    faults: list[Problem] = []
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        rows = rows[np.argsort(times[rows], kind="stable")]
        if (np.diff(times[rows]) <= 0).any():
            faults.append(Problem(str(name), "has two bars at one time"))
        bars[str(name)] = Bars(str(name), times[rows], *(columns[field][rows] for field in (*_PRICES, "volume")))
        classes[str(name)] = "equity" if kinds is None else str(kinds[rows[0]])
    labels = tuple(CLASS_NAMES.values())
    faults += [Problem(name, f"class must be one of {', '.join(labels)} (got {kind!r})")
              for name, kind in classes.items() if kind not in labels]  # fmt: skip
    if faults:
        raise InputError(path.name, faults)
    return FileMinutes(bars, classes, dict(windows))


def sanitise(
    bars: Sequence[Bars], rng: np.random.Generator, *, base: float = 100.0
) -> tuple[tuple[Bars, ...], Mapping[str, str]]:
    """Rebase bars, replace times by offsets and names by neutral ones in random order; map new names to old ones."""
    problems = [Problem(path.instrument, "has bars missing inside the period")
                for path in bars if not np.isfinite(path.close).all()]  # fmt: skip
    problems += [Problem(path.instrument, "has other times than the first series")
                 for path in bars if not np.array_equal(path.times, bars[0].times)]  # fmt: skip
    if not bars or problems:
        raise InputError("sanitising", problems or ["no instrument has a price in the period"])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # for neutral names
    names = ["Asset " + (letters[i // 26 - 1] if i >= 26 else "") + letters[i % 26] for i in range(len(bars))]
    drawn = [bars[int(place)] for place in rng.permutation(len(bars))]
    rebased = []
    for name, path in zip(names, drawn, strict=True):
        # Without level, date and name. Rounded, so that the last digits do not reveal the level.
        scale, mean = base / path.close[0], float(path.volume.mean())
        opened, high, low, close = (np.round(p * scale, 4) for p in (path.open, path.high, path.low, path.close))
        volume = np.round(path.volume / mean if mean > 0 else path.volume, 3)
        rebased.append(Bars(name, path.times - path.times[-1], opened, high, low, close, volume))
    return tuple(rebased), {name: bars.instrument for name, bars in zip(names, drawn, strict=True)}


@dataclass(frozen=True, slots=True)
class ProbeMatch:
    """The best match of a series in a history; ``found`` if its correlation reaches the limit."""

    column: int
    row: int
    correlation: float
    runner_up: float
    found: bool


def date_probe(closes: np.ndarray, history: np.ndarray, *, limit: float = 0.95) -> ProbeMatch:
    """Search a series in a history: correlate its returns with those at every row of every column."""
    if closes.size < 10 or not np.isfinite(closes).all() or np.ptp(closes) == 0:
        raise NotMeasurableError("the date probe needs at least 10 prices without holes that move")
    # Correlation of the wanted returns with every window of every column, shape (n_windows, n_instruments).
    wanted, moves = np.diff(np.log(closes)), np.diff(np.log(history), axis=0)
    scores = np.empty((0, moves.shape[1]))
    if moves.shape[0] >= wanted.size:
        standard = (wanted - wanted.mean()) / (wanted.std() * wanted.size)
        places = np.lib.stride_tricks.sliding_window_view(moves, wanted.size, axis=0)
        spread = places.std(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(spread > 1e-12, (places @ standard) / spread, np.nan)
    if not np.isfinite(scores).any():
        raise NotMeasurableError(f"the history has no complete stretch of {closes.size} prices that move")
    ranked = np.where(np.isfinite(scores), scores, -np.inf)
    row, column = np.unravel_index(int(ranked.argmax()), ranked.shape)
    best = float(ranked[row, column])
    ranked[row, column] = -np.inf
    other = float(ranked.max())
    return ProbeMatch(int(column), int(row), best, other if np.isfinite(other) else 0.0, best >= limit)


PROBES: Final = {"mechanical": "date-leakage check by price ranges", "model": "date-leakage check by a model"}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Hits of a date-leakage check: how often it named the right day (or month), on sanitised bars and on a control."""

    probe: str
    asked: int
    hits: int
    control_asked: int
    control_hits: int
    chance: float
    p: float
    alpha: float
    control: float

    @property
    def can_date(self) -> bool:
        """True if the check dates enough of the unsanitised control cycles to have any power."""
        return self.control_hits >= self.control * self.control_asked - 1e-9

    @property
    def passed(self) -> bool:
        """True if the sanitised cycles may be used: the check has power and is not better than chance on them."""
        return self.can_date and self.p >= self.alpha

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        return (
            f"{PROBES.get(self.probe, self.probe)}: {verdict}. It dated {self.hits} of {self.asked} sanitised cycles "
            f"(chance {self.chance:.2g}, p = {self.p:.2g}) and {self.control_hits} of {self.control_asked} "
            "unsanitised ones"
        )


def probe_result(
    probe: str, hits: Sequence[bool], control_hits: Sequence[bool], chance: float, alpha: float, control: float
) -> ProbeResult:
    """Compute the result of a date-leakage check: ``p`` of the hits under the binomial rate ``chance``."""
    if not hits or not control_hits:
        raise NotMeasurableError(f"the {probe} date probe was asked about nothing")
    count = sum(map(bool, hits))
    p = 1.0 if not count else float(scipy.special.bdtrc(count - 1, len(hits), chance))
    of_control = sum(map(bool, control_hits))
    return ProbeResult(probe, len(hits), count, len(control_hits), of_control, chance, p, alpha, control)


def day_of(bars: Sequence[Bars], lows: PriceSlice, highs: PriceSlice) -> np.datetime64 | None:
    """Return the day whose daily ranges contain the bars of most instruments, the tightest of several; or None."""
    if unknown := [bar.instrument for bar in bars if bar.instrument not in lows.ids]:
        raise InputError("date probe", [f"no history of {', '.join(unknown)}"])
    inside = np.zeros(lows.days.size)
    slack = np.zeros(lows.days.size)
    for series in bars:
        low, high = (prices.values[:, prices.ids.index(series.instrument)] for prices in (lows, highs))
        fits = (low <= series.low.min() + 1e-9) & (high >= series.high.max() - 1e-9)
        inside += fits
        with np.errstate(invalid="ignore"):
            slack += np.where(fits, np.log(high / low), 0.0)
    best = np.flatnonzero((inside == inside.max()) & (inside > 0))
    return None if not best.size else lows.days[best[int(slack[best].argmin())]]


NEUTRAL_NOW: Final = datetime(2000, 1, 3, 12, 0, tzinfo=UTC)
"""The neutral cutoff time of every sanitised context, which reveals no date."""

REGIMES: Final = ("liquidity", "pandemic", "expansion", "tightening", "recent")
"""Regimes of the synthetic market: three stress windows, the calm period with most bull days, the last half year."""

_TRADED: Final = (("EQ", "large caps"), ("EQ", "technology"), ("BO", "government"), ("CO", "precious metals"),
                  ("CR", "major coins"), ("CR", "platforms"))  # fmt: skip
_RECENT, _ADVANCE = 130, 120
_TRIES: Final = 200
_BOOK: Final = 100_000.0


class MinuteSource(Protocol):
    """A source of minute bars: its instruments, the days of each regime, and the bars of an instrument on a day."""

    @property
    def classes(self) -> Mapping[str, str]:
        """Class names by instrument, for all instruments of the source."""
        ...

    def days_of(self, regime: str) -> np.ndarray:
        """Return the days of a regime (datetime64[D]). Raises `UnknownNameError` for an unknown regime."""
        ...

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """Return the bars of one instrument on one day, oldest first; None if it did not trade."""
        ...

    def ranges(self) -> tuple[PriceSlice, PriceSlice]:
        """Return the daily lows and highs, which anyone with the daily history has."""
        ...


@dataclass(frozen=True, slots=True)
class SyntheticMinutes:
    """Minute bars of the synthetic market: six instruments of four classes, one of which lists late."""

    market: SyntheticMarket

    @property
    def classes(self) -> dict[str, str]:
        """Class names by instrument: the first of each sub-sector; of the platforms the last to list."""
        kinds = {}
        for asset_class, sub in _TRADED:
            members = [
                listing for listing in self.market.listings if (listing.asset_class, listing.sub) == (asset_class, sub)
            ]
            trading = [member for member in members if member.delisted is None]
            chosen = max(trading, key=lambda listing: listing.listed) if sub == "platforms" else trading[0]
            kinds[chosen.id] = CLASS_NAMES[chosen.asset_class]
        return kinds

    def days_of(self, regime: str) -> np.ndarray:
        """Return the weekdays of one of `REGIMES`."""
        check_known("regime", REGIMES, regime)
        days = self.market.days
        if regime == "recent":
            return days[-_RECENT:]
        if regime == "expansion":
            # The calm period before `recent` with the most bull days of equities. Regimes look back only, so the
            # label of a day has no look-ahead.
            closes = np.where(np.isfinite(self.market.close), self.market.close, np.nan)
            label = regimes(class_index(closes, self.market.listings)["EQ"])
            good = np.where(self.market.calm, (label == "bull") * 1.0, -np.inf)[:-_RECENT]
            first = int(np.convolve(np.maximum(good, -1e6), np.ones(_ADVANCE), mode="valid").argmax())
            return days[first : first + _ADVANCE]
        return next(days[window.rows] for window in self.market.windows if window.name == regime)

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """Return the last `SESSION` minutes of a day; None without a daily bar."""
        try:
            minutes = minute_bars(self.market, instrument, day)
        except InputError:
            return None
        return minutes.part(slice(-SESSION, None))  # the minutes that all classes share

    def ranges(self) -> tuple[PriceSlice, PriceSlice]:
        """Return the daily lows and highs of the six instruments."""
        market, offered = self.market, self.classes
        columns = {listing.id: column for column, listing in enumerate(market.listings) if listing.id in offered}
        shown, of = (market.days, tuple(columns)), [*columns.values()]
        return PriceSlice(*shown, market.low[:, of]), PriceSlice(*shown, market.high[:, of])


@record
class CycleKey:
    """The origin of a sanitised context: source, period and real names. Never shown to an agent or a judge."""

    context_id: str
    regime: str
    number: int
    source: str
    first_bar: datetime
    last_bar: datetime
    names: Mapping[str, str]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cycle:
    """One decision cycle: its regime and number, the sanitised context, its raw bars, and the real names."""

    regime: str
    number: int
    context: Context
    raw: tuple[Bars, ...]
    names: Mapping[str, str]
    left_out: tuple[str, ...]


def synthetic_minutes(seed: int) -> SyntheticMinutes:
    """Return the minute bars of the synthetic market of a seed."""
    return SyntheticMinutes(synthetic_market(seed))


def cycles_of(
    source: MinuteSource, wanted: Sequence[str], cycles: int, bars: int, seed: int, *, prompt: str = ""
) -> Iterator[Cycle]:
    """Yield the cycles of a study, regime after regime. Raises `NotMeasurableError` without complete bars."""
    for regime in wanted:
        days = source.days_of(regime)
        for number in range(1, cycles + 1):
            # The number of a regime depends on its name alone.
            rng = np.random.default_rng([seed, int.from_bytes(regime.encode(), "big") % (2**61 - 1), number])
            # A complete hour on a random day; another day is drawn if bars are missing in it.
            for _ in range(_TRIES):
                day = days[int(rng.integers(days.size))]
                drawn = {name: source.day(name, day) for name in source.classes}
                there = {name: feed for name, feed in drawn.items() if feed is not None and feed.times.size >= bars}
                if len(there) < 2:
                    continue
                end = int(rng.integers(bars, min(bars.times.size for bars in there.values()) + 1))
                cut = [feed.part(slice(end - bars, end)) for feed in there.values()]
                first = cut[0].times
                if all(np.array_equal(bars.times, first) and np.isfinite(bars.close).all() for bars in cut):
                    break
            else:
                message = f"no complete stretch of {bars} minutes of two instruments was found"
                raise NotMeasurableError(f"regime {regime}: {message}")
            shown, names = sanitise(cut, rng)
            classes = {neutral: source.classes[real] for neutral, real in names.items()}
            absent = tuple(sorted(name for name in drawn if name not in there))
            yield Cycle(regime, number, context_of(shown, classes, rng, prompt), tuple(cut), names, absent)


def key_of(cycle: Cycle, context_id: str, source: str) -> CycleKey:
    """Return the origin of a cycle's context."""
    times = cycle.raw[0].times
    first, last = (datetime.fromtimestamp(int(at), UTC) for at in (times[0], times[-1]))
    origin = (context_id, cycle.regime, cycle.number, source)
    return CycleKey(*origin, first, last, dict(cycle.names), cycle.left_out)


def context_of(shown: Sequence[Bars], classes: Mapping[str, str], rng: np.random.Generator, prompt: str) -> Context:
    """Make the context of sanitised bars: bars, features, a random portfolio and random limits, with neutral times."""
    if unknown := [bar.instrument for bar in shown if bar.instrument not in classes]:
        raise InputError("cycle", [Problem(name, "has no asset class") for name in unknown])
    # Limits drawn from short lists, so that agents must compute compliance and cannot rely on habit.
    weight, cash, leverage, orders, short, fee = (
        float(rng.choice(values))
        for values in ((0.30, 0.35, 0.40), (0.02, 0.05, 0.08), (1.0, 1.2, 1.5), (2, 3), (0, 1), (5, 8, 10))
    )
    limits = (
        Constraint(kind="max_weight", limit=weight, unit="nav", scope="holding"),
        Constraint(kind="min_cash", limit=cash, unit="nav"),
        Constraint(kind="max_leverage", limit=leverage, unit="multiple"),
        Constraint(kind="max_orders", limit=orders, unit="count"),
        Constraint(kind="allow_short", limit=short, unit="count"),
        Constraint(kind="fee", limit=fee, unit="bps", scope="order"),
    )
    facts: list[Fact] = []
    for bars in shown:  # features that an agent may cite without calculating
        close, whole, n = bars.close, float(bars.volume.mean()), bars.close.size
        low, high = float(bars.low.min()), float(bars.high.max())
        values = {
            "price": ("price", round(float(close[-1]), 4)),
            "return_5m": ("ratio", float(close[-1] / close[-6] - 1)),
            "return_15m": ("ratio", float(close[-1] / close[-16] - 1)),
            f"return_{n}m": ("ratio", float(close[-1] / close[0] - 1)),
            f"volatility_{n}m": ("ratio", float((np.diff(close) / close[:-1]).std(ddof=1) * np.sqrt(n))),
            f"range_{n}m": ("ratio", (float(close[-1]) - low) / (high - low) if high > low else 0.5),
            "volume_15m": ("multiple", float(bars.volume[-15:].mean()) / whole if whole > 0 else 1.0),
        }
        facts += [
            Fact(f"{bars.instrument}.{field}", bars.instrument, field, round(value, 6) + 0.0, unit, NEUTRAL_NOW,
                 NEUTRAL_NOW, source="bars")
            for field, (unit, value) in values.items()
        ]  # fmt: skip
    prices = {bar.instrument: round(float(bar.close[-1]), 4) for bar in shown}
    # A portfolio within its limits: two or three positions below the weight cap, and cash.
    names = sorted(prices)
    picks = rng.choice(names, size=int(rng.integers(2, min(3, len(names)) + 1)), replace=False)
    shares = rng.uniform(0.4, 0.95, picks.size) * min(weight, 0.9 / picks.size)
    positions = {
        str(name): round(float(_BOOK * share / prices[str(name)]), 4) for name, share in zip(picks, shares, strict=True)
    }
    cash_left = round(_BOOK - sum(units * prices[name] for name, units in positions.items()), 2)
    worth = cash_left + sum(units * prices[name] for name, units in positions.items())
    return Context(
        completeness="complete", cutoff=NEUTRAL_NOW, cutoff_source="neutral clock", prompt=prompt, facts=tuple(facts),
        series=tuple(
            Series(
                bar.instrument, interval_s=60,
                times=tuple(NEUTRAL_NOW + timedelta(seconds=int(at)) for at in bar.times),
                **{name: tuple(getattr(bar, name).tolist()) for name in (*_PRICES, "volume")},
            ) for bar in shown
        ),
        instruments=tuple(
            Instrument(id=bar.instrument, name=bar.instrument, asset_class=classes[bar.instrument]) for bar in shown
        ),
        portfolio=Portfolio(
            currency="USD", cash=cash_left, nav=round(worth, 2), positions=dict(sorted(positions.items())),
        ),
        constraints=limits,
    )  # fmt: skip
