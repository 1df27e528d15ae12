"""Decision cycles: an hour of minutes, sanitised, with features, a drawn book and drawn limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

import numpy as np

from assaymark.errors import InputError, NotMeasurableError, Problem, UnknownNameError
from assaymark.market.instruments import CLASS_NAMES
from assaymark.market.minutes import SESSION, minute_bars
from assaymark.market.regime import class_index, regimes
from assaymark.market.sanitising import Bars, DailyRanges, Sanitised, sanitise
from assaymark.market.synthetic import SyntheticMarket, synthetic_market
from assaymark.records import Constraint, Context, Fact, Instrument, Portfolio, Series, record

NEUTRAL_NOW: Final = datetime(2000, 1, 3, 12, 0, tzinfo=UTC)
"""The cutoff that every sanitised context shows: a clock that says nothing."""

REGIMES: Final = ("liquidity", "pandemic", "expansion", "tightening", "recent")
"""The regimes of the synthetic market: three stress windows, the longest calm advance, and the last half year."""

_TRADED: Final = (
    ("EQ", "large caps"),
    ("EQ", "technology"),
    ("BO", "government"),
    ("CO", "precious metals"),
    ("CR", "major coins"),
    ("CR", "platforms"),
)
_RECENT, _ADVANCE = 130, 120
_TRIES: Final = 200
_BOOK: Final = 100_000.0


class MinuteSource(Protocol):
    """Where minutes come from: the instruments it offers, the days of each regime, and the bars of one of them."""

    @property
    def classes(self) -> Mapping[str, str]:
        """Class names by instrument, for everything that is offered."""
        ...

    def days_of(self, regime: str) -> np.ndarray:
        """The days of a regime (datetime64[D]); `UnknownNameError` for a regime that it does not have."""
        ...

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """The bars of one instrument on one day, oldest first; None where it did not trade."""
        ...

    def ranges(self) -> tuple[DailyRanges, dict[str, int]]:
        """What whoever owns the daily history knows: lows and highs, and the column of each instrument."""
        ...


@dataclass(frozen=True, slots=True)
class SyntheticMinutes:
    """The minutes of the synthetic market: six instruments of four classes, one of which lists late."""

    market: SyntheticMarket

    @property
    def classes(self) -> dict[str, str]:
        """Class names by instrument: the first of each sub-sector, and of the platforms the one that lists last."""
        found = {}
        for asset_class, sub in _TRADED:
            members = [one for one in self.market.listings if (one.asset_class, one.sub) == (asset_class, sub)]
            trading = [one for one in members if one.delisted is None]
            chosen = max(trading, key=lambda one: one.listed) if sub == "platforms" else trading[0]
            found[chosen.id] = CLASS_NAMES[chosen.asset_class]
        return found

    def days_of(self, regime: str) -> np.ndarray:
        """The weekdays of one of `REGIMES`."""
        if regime not in REGIMES:
            raise UnknownNameError("regime", regime, REGIMES)
        days = self.market.days
        if regime == "recent":
            return days[-_RECENT:]
        if regime == "expansion":
            # The calm stretch before `recent` with the most bull days of equities; regimes look back only, so the
            # label of a day tells nothing that came after it.
            closes = np.where(np.isfinite(self.market.close), self.market.close, np.nan)
            label = regimes(class_index(closes, self.market.listings)["EQ"])
            good = np.where(self.market.calm, (label == "bull") * 1.0, -np.inf)[:-_RECENT]
            first = int(np.convolve(np.maximum(good, -1e6), np.ones(_ADVANCE), mode="valid").argmax())
            return days[first : first + _ADVANCE]
        return next(days[window.rows] for window in self.market.windows if window.name == regime)

    def day(self, instrument: str, day: np.datetime64) -> Bars | None:
        """The last `SESSION` minutes of a day; None without a daily bar."""
        try:
            found = minute_bars(self.market, instrument, day)
        except InputError:
            return None
        columns = (found.times, found.open, found.high, found.low, found.close, found.volume)
        return Bars(found.instrument, *columns).part(slice(-SESSION, None))  # the minutes that all classes share

    def ranges(self) -> tuple[DailyRanges, dict[str, int]]:
        """Daily lows and highs of the market, and the columns of the six instruments."""
        market, offered = self.market, self.classes
        columns = {one.id: column for column, one in enumerate(market.listings) if one.id in offered}
        return DailyRanges(days=market.days, low=market.low, high=market.high), columns


@record
class CycleKey:
    """Where a sanitised context was cut from. Never shown to an agent or a judge."""

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
    """One cycle: its place, what may be shown, the raw bars it was made from, and the way back."""

    regime: str
    number: int
    context: Context
    raw: tuple[Bars, ...]
    names: Mapping[str, str]
    left_out: tuple[str, ...]


def synthetic_minutes(seed: int) -> SyntheticMinutes:
    """The minutes of the synthetic market of a seed."""
    return SyntheticMinutes(synthetic_market(seed))


def cycles_of(
    source: MinuteSource, wanted: Sequence[str], *, cycles: int, bars: int, seed: int, prompt: str = ""
) -> Iterator[Cycle]:
    """The cycles of a study, regime after regime."""
    for regime in wanted:
        days = source.days_of(regime)
        for number in range(1, cycles + 1):
            # The number of a regime depends on its name alone.
            rng = np.random.default_rng([seed, int.from_bytes(regime.encode(), "big") % (2**61 - 1), number])
            cut = _cut(source, regime, days, bars, rng)
            shown, names = sanitise(cut, rng)
            classes = {neutral: source.classes[real] for neutral, real in names.items()}
            context = context_of(shown, classes, rng, prompt=prompt)
            raw = tuple(one for one in cut if np.isfinite(one.close).any())
            yield Cycle(regime, number, context, raw, names, shown.left_out)


def _cut(source: MinuteSource, regime: str, days: np.ndarray, bars: int, rng: np.random.Generator) -> list[Bars]:
    """A complete hour on a drawn day; another day is drawn where bars are missing inside."""
    for _ in range(_TRIES):
        day = days[int(rng.integers(days.size))]
        found = {name: source.day(name, day) for name in source.classes}
        there = {name: one for name, one in found.items() if one is not None and one.times.size >= bars}
        if len(there) < 2:
            continue
        end = int(rng.integers(bars, min(one.times.size for one in there.values()) + 1))
        cut = {name: one.part(slice(end - bars, end)) for name, one in there.items()}
        first = next(iter(cut.values())).times
        if all(np.array_equal(one.times, first) and np.isfinite(one.close).all() for one in cut.values()):
            none = np.full(first.size, np.nan)
            absent = [Bars(name, first, none, none, none, none, none) for name in found if name not in there]
            return [*cut.values(), *absent]
    raise NotMeasurableError(f"regime {regime}: no complete stretch of {bars} minutes of two instruments was found")


def key_of(cycle: Cycle, context_id: str, source: str) -> CycleKey:
    """The way back from a cycle's context to the market."""
    times = cycle.raw[0].times
    return CycleKey(
        context_id=context_id,
        regime=cycle.regime,
        number=cycle.number,
        source=source,
        first_bar=datetime.fromtimestamp(int(times[0]), UTC),
        last_bar=datetime.fromtimestamp(int(times[-1]), UTC),
        names=dict(cycle.names),
        left_out=cycle.left_out,
    )


def context_of(shown: Sanitised, classes: Mapping[str, str], rng: np.random.Generator, *, prompt: str = "") -> Context:
    """The context of sanitised bars: bars, features, a drawn book and drawn limits, on the neutral clock."""
    if unknown := [one.instrument for one in shown.bars if one.instrument not in classes]:
        raise InputError("cycle", [Problem(name, "has no asset class") for name in unknown])
    # Limits drawn from short lists, so that arithmetic and not habit decides whether a book keeps them.
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
    prices = {one.instrument: round(float(one.close[-1]), 4) for one in shown.bars}
    return Context(
        completeness="complete",
        cutoff=NEUTRAL_NOW,
        cutoff_source="neutral clock",
        prompt=prompt,
        facts=tuple(fact for one in shown.bars for fact in _features(one)),
        series=tuple(
            Series(
                instrument=one.instrument,
                interval_s=60,
                times=tuple(NEUTRAL_NOW + timedelta(seconds=int(at)) for at in one.times),
                **{name: tuple(getattr(one, name).tolist()) for name in ("open", "high", "low", "close", "volume")},
            )
            for one in shown.bars
        ),
        instruments=tuple(
            Instrument(id=one.instrument, name=one.instrument, asset_class=classes[one.instrument])
            for one in shown.bars
        ),
        portfolio=_portfolio(prices, weight, rng),
        constraints=limits,
    )


def _features(one: Bars) -> Iterator[Fact]:
    """What an agent may cite without a calculator: the last price, returns, spread, place in the range, volume."""
    close = one.close
    moves = np.diff(close) / close[:-1]
    low, high = float(one.low.min()), float(one.high.max())
    whole = float(one.volume.mean())
    n = close.size
    values = {
        "price": ("price", round(float(close[-1]), 4)),
        "return_5m": ("ratio", float(close[-1] / close[-6] - 1)),
        "return_15m": ("ratio", float(close[-1] / close[-16] - 1)),
        f"return_{n}m": ("ratio", float(close[-1] / close[0] - 1)),
        f"volatility_{n}m": ("ratio", float(moves.std(ddof=1) * np.sqrt(n))),
        f"range_{n}m": ("ratio", (float(close[-1]) - low) / (high - low) if high > low else 0.5),
        "volume_15m": ("multiple", float(one.volume[-15:].mean()) / whole if whole > 0 else 1.0),
    }
    for field, (unit, value) in values.items():
        yield Fact(
            id=f"{one.instrument}.{field}",
            instrument=one.instrument,
            field=field,
            value=round(value, 6) + 0.0,
            unit=unit,
            available_at=NEUTRAL_NOW,
            as_of=NEUTRAL_NOW,
            source="bars",
        )


def _portfolio(prices: Mapping[str, float], cap: float, rng: np.random.Generator) -> Portfolio:
    """A book that keeps its limits: two or three positions within the weight cap, and cash."""
    names = sorted(prices)
    held = rng.choice(names, size=int(rng.integers(2, min(3, len(names)) + 1)), replace=False)
    shares = rng.uniform(0.4, 0.95, held.size) * min(cap, 0.9 / held.size)
    positions = {
        str(name): round(float(_BOOK * share / prices[str(name)]), 4) for name, share in zip(held, shares, strict=True)
    }
    cash = round(_BOOK - sum(units * prices[name] for name, units in positions.items()), 2)
    worth = cash + sum(units * prices[name] for name, units in positions.items())
    return Portfolio(currency="USD", cash=cash, nav=round(worth, 2), positions=dict(sorted(positions.items())))
