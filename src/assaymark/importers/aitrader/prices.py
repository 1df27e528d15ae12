"""A track's price file: bars by step, and what of them was known at a step."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from assaymark.importers.read import csv_rows, text_of
from assaymark.importers.report import Tally
from assaymark.portfolio import Bar
from assaymark.records import Fact, Instrument, Series

if TYPE_CHECKING:
    from assaymark.importers.aitrader.log import Track


COLUMNS = ("symbol", "ts", "open", "high", "low", "close", "volume")

_LARGEST = 1e15  # sums and products of such numbers are still finite

SHOWN = 20
"""How many complete bars of a held or traded symbol a context holds."""


class Prices:
    """The bars of one track; ``steps`` are the local stamps, oldest first."""

    def __init__(self, track: Track, bars: Mapping[datetime, Mapping[str, Bar]], volumes: Mapping[str, float]) -> None:
        self.track = track
        self.steps = sorted(bars)
        self._bars = {step: bars[step] for step in self.steps}
        self._volumes = volumes
        self.symbols = tuple(sorted({symbol for found in bars.values() for symbol in found}))
        self.instruments: tuple[Instrument, ...] = ()
        self.name({})
        self._facts: dict[datetime, tuple[Fact, ...]] = {}

    def name(self, names: Mapping[str, str]) -> None:
        """Give the instruments their names; one without stays known by its symbol."""
        self.instruments = tuple(
            Instrument(id=symbol, symbol=symbol, name=names.get(symbol, ""), asset_class=self.track.asset_class)
            for symbol in self.symbols
        )

    def __contains__(self, step: datetime) -> bool:
        return step in self._bars

    def bars(self, step: datetime) -> Mapping[str, Bar]:
        """The bars stamped with a step. Only their opens were known at it."""
        return self._bars[step]

    def opens(self, step: datetime) -> dict[str, float]:
        """The open of every symbol at a step."""
        return {symbol: bar.open for symbol, bar in self._bars[step].items() if bar.open is not None}

    def last_open(self, symbol: str, step: datetime) -> float | None:
        """The open of a symbol at a step, or the last one before; None where there is none yet."""
        until = bisect_right(self.steps, step)
        found = (self._bars[one].get(symbol) for one in reversed(self.steps[:until]))
        return next((bar.open for bar in found if bar is not None and bar.open is not None), None)

    def facts(self, step: datetime) -> tuple[Fact, ...]:
        """What an agent was shown of prices at a step: every symbol's open, and its close one bar before."""
        if step not in self._facts:
            self._facts[step] = tuple(self._facts_of(step))
        return self._facts[step]

    def series(self, step: datetime, symbols: Iterable[str]) -> tuple[Series, ...]:
        """The last complete bars before a step of each of the symbols that has any."""
        decided = self.track.decided_at(step)
        known = [one for one in self._before(step, SHOWN) if self.track.complete_at(one) <= decided]
        found = []
        for symbol in sorted(set(symbols)):
            bars = [(one, self._bars[one][symbol]) for one in known if _whole(self._bars[one].get(symbol))]
            if bars:
                found.append(self._series(symbol, bars))
        return tuple(found)

    def benchmark(self, start: datetime, end: datetime) -> float | None:
        """The mean return from open to open of the symbols that have both: an equal weight of the universe."""
        one, other = self.opens(start), self.opens(end)
        both = [other[symbol] / price - 1.0 for symbol, price in one.items() if symbol in other]
        return math.fsum(both) / len(both) if both else None

    def _before(self, step: datetime, most: int) -> list[datetime]:
        at = bisect_left(self.steps, step)
        return self.steps[max(at - most, 0) : at]

    def _facts_of(self, step: datetime) -> Iterable[Fact]:
        decided = self.track.decided_at(step)
        source = self.track.prices
        for symbol, price in self.opens(step).items():
            yield Fact(
                id=f"price:{symbol}",
                instrument=symbol,
                field="price",
                value=price,
                unit="price",
                available_at=decided,
                as_of=decided,
                source=source,
            )
        for last in self._before(step, 1):
            known = self.track.complete_at(last)
            for symbol, bar in self._bars[last].items():
                if bar.close is not None and known <= decided:
                    yield Fact(
                        id=f"previous_close:{symbol}",
                        instrument=symbol,
                        field="previous_close",
                        value=bar.close,
                        unit="price",
                        available_at=known,
                        as_of=known,
                        source=source,
                    )

    def _series(self, symbol: str, bars: list[tuple[datetime, Bar]]) -> Series:
        return Series(
            instrument=symbol,
            interval_s=self.track.interval_s,
            times=tuple(self.track.complete_at(step) for step, _ in bars),
            close=tuple(bar.close or 0.0 for _, bar in bars),
            open=tuple(bar.open or 0.0 for _, bar in bars),
            high=tuple(bar.high or 0.0 for _, bar in bars),
            low=tuple(bar.low or 0.0 for _, bar in bars),
            volume=tuple(self._volumes.get(f"{symbol} {step}", 0.0) for step, _ in bars),
        )


def _whole(bar: Bar | None) -> bool:
    return bar is not None and None not in (bar.open, bar.high, bar.low, bar.close)


def read_prices(track: Track, name: str, data: bytes, tally: Tally) -> Prices:
    """The bars in a price file; every problem of it is noted in ``tally``, and the row left out.

    A row may have an open only: that is the newest bar, cut off where the agents saw it.
    """
    before = len(tally.problems)
    bars: dict[datetime, dict[str, Bar]] = {}
    volumes: dict[str, float] = {}
    stamps: dict[str, datetime] = {}

    def wrong(line: int, what: str, column: str = "") -> None:
        tally.problem(f"{name} line {line}" + (f", {column}" if column else ""), what)

    try:
        for line, row in csv_rows(text_of(name, data), wrong):
            if tuple(row) != COLUMNS:
                tally.problem(name, f"must have the columns {', '.join(COLUMNS)} (got {', '.join(row)[:120]})")
                break
            try:
                step = stamps.get(row["ts"]) or stamps.setdefault(row["ts"], track.read(row["ts"]))
                bar, volume = _bar(row)
            except ValueError as exc:
                wrong(line, str(exc))
                continue
            symbol = row["symbol"]
            if not symbol:
                wrong(line, "is empty", "symbol")
            elif symbol in bars.setdefault(step, {}):
                wrong(line, f"{symbol} has two bars at {row['ts']}", "ts")
            else:
                bars[step][symbol] = bar
                volumes[f"{symbol} {step}"] = volume
    except ValueError as exc:
        tally.problem(name, str(exc))
    if not bars and len(tally.problems) == before:
        tally.problem(name, "holds no bar")
    return Prices(track, bars, volumes)


def _bar(row: Mapping[str, str]) -> tuple[Bar, float]:
    """One row's bar and volume."""
    found = {column: _number(column, row[column]) for column in COLUMNS[2:]}
    bar = Bar(open=found["open"], high=found["high"], low=found["low"], close=found["close"])
    if bar.open is None:
        raise ValueError("open: is needed (got nothing)")
    rest = [found[column] for column in ("high", "low", "close")]
    if any(one is None for one in rest) and any(one is not None for one in rest):
        raise ValueError("high, low and close: give all three or none")
    if bar.high is not None and bar.low is not None and bar.close is not None:
        slack = 1e-9 * bar.high
        if not (bar.low - slack <= min(bar.open, bar.close) and max(bar.open, bar.close) <= bar.high + slack):
            raise ValueError(
                f"open and close must lie from low to high "
                f"(got {bar.open:g}, {bar.close:g} and {bar.low:g} to {bar.high:g})"
            )
    return bar, found["volume"] or 0.0


def _number(column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    least = "from 0" if column == "volume" else "above 0"
    if not 0 <= value <= _LARGEST or (value == 0 and column != "volume"):
        raise ValueError(f"{column}: must be a number {least} to {_LARGEST:.0e} (got {text[:40]!r})")
    return value
