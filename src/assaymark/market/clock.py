"""A clock over a store: trading days in order, each as the view that could be had at its hour of decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Final

import numpy as np

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.market.actions import CorporateAction
from assaymark.market.calendar import instant, weekdays
from assaymark.market.history import FACTOR, FIELDS, AsOf, History

_REACH: Final = 40  # rows beyond the bars asked for, so that an instrument with holes still has that many
_DIGITS: Final = 6  # significant, of prices as they are shown


@dataclass(frozen=True, slots=True)
class Quote:
    """One day's bar of one instrument as it was traded, known at the hour of decision. What is not known is None."""

    open: float | None
    high: float | None
    low: float | None
    close: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Day:
    """One trading day: the view at ``moment``, the bars of the day, and the bars up to it."""

    date: date
    moment: datetime
    universe: tuple[str, ...]
    view: AsOf
    quotes: dict[str, Quote]
    days: np.ndarray
    bars: Mapping[str, np.ndarray]
    gone: frozenset[str]
    actions: Mapping[str, tuple[CorporateAction, ...]] = field(default_factory=dict)

    @property
    def closes(self) -> np.ndarray:
        """The closes of ``bars``."""
        return self.bars["close"]

    @property
    def has_data(self) -> bool:
        """Whether any instrument of the universe traded."""
        return bool(self.quotes)


class Clock:
    """Hands out the days of a season."""

    def __init__(
        self,
        history: History,
        universe: Sequence[str],
        first: date,
        last: date,
        *,
        at: time = time(21, 30),
        bars: int = 30,
    ) -> None:
        ids = {one.id: column for column, one in enumerate(history.listings)}
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
        for name in universe:
            if name not in ids:
                raise UnknownNameError("instrument", name, list(ids))
        self.history, self.universe = history, tuple(universe)
        self.first, self.last, self.at, self.bars = first, last, at, bars
        self._columns = np.array([ids[name] for name in universe])

    @property
    def reached(self) -> date | None:
        """The last day of which the store has anything of the universe; None where there is none."""
        there = np.flatnonzero(np.isfinite(self.history.bars["close"][:, self._columns]).any(axis=1))
        if not there.size:
            return None
        found: date = self.history.days[there[-1]].astype(object)
        return found

    def moment(self, day: date) -> datetime:
        """The hour of decision of a day."""
        return datetime.combine(day, self.at, UTC)

    def due(self, after: date | None, *, now: datetime | None = None) -> tuple[date, ...]:
        """The trading days after ``after`` that the store reaches, in order."""
        reached = self.reached
        last = None if reached is None else min(self.last, reached)
        if last is None or last < self.first:
            return ()
        rows = self.history.days.astype("datetime64[D]")
        inside = np.flatnonzero((rows >= np.datetime64(self.first)) & (rows <= np.datetime64(last)))
        there = np.isfinite(self.history.bars["close"][inside][:, self._columns]).any(axis=1)
        days = {one.astype(object) for one in (*weekdays(self.first, last), *rows[inside[there]])}
        found = sorted(day for day in days if after is None or day > after)
        if now is None:
            return tuple(found)
        if now.tzinfo is None:
            raise InputError("clock", [f"a time needs a zone (got {now.isoformat()})"])
        return tuple(day for day in found if self.moment(day) <= now)

    def knows(self, day: date) -> bool:
        """Whether a bar of the universe of that day is known at its hour of decision."""
        row = int(np.searchsorted(self.history.days, np.datetime64(day)))
        if row >= self.history.days.size or self.history.days[row] != np.datetime64(day):
            return False
        known = self.history.known_at[row, self._columns] <= instant(self.moment(day))
        return bool((known & np.isfinite(self.history.bars["close"][row, self._columns])).any())

    def day(self, day: date, *, after: date | None = None) -> Day:
        """A day as it could be seen at its hour of decision."""
        if after is not None and day <= after:
            raise InputError("clock", [f"{day} does not lie after {after}, the last day that was done"])
        if not self.first <= day <= self.last:
            raise InputError("clock", [f"{day} lies outside of the season ({self.first} to {self.last})"])
        moment = self.moment(day)
        view = self.history.as_of(moment)
        whole = {name: view.prices(self.bars + _REACH, field=name, filled=False) for name in self.history.bars}
        closes = whole["close"]
        places = {name: place for place, name in enumerate(closes.ids)}
        columns = np.array([places.get(name, -1) for name in self.universe])
        bars = {}
        for name, one in whole.items():
            # What is not listed yet has column -1; what cannot be is missing, as is a price of 0.
            table = np.hstack([one.values, np.full((one.values.shape[0], 1), np.nan)])[:, columns]
            usable = np.isfinite(table) & ((table >= 0) if name == "volume" else (table > 0))
            bars[name] = np.where(usable, table, np.nan)
        factors = bars.pop(FACTOR, None)
        quotes: dict[str, Quote] = {}
        if closes.days.size and closes.days[-1] == np.datetime64(day):
            # The last row of every price, as it was traded; of a field that the store does not have nothing is known.
            nothing = np.full(len(self.universe), np.nan)
            rows = [(bars[name][-1] if name in bars else nothing).tolist() for name in FIELDS[:4]]
            if factors is not None:
                # A price that was adjusted and is divided again is off in its last digits; no source has as many.
                level = factors[-1].tolist()
                rows = [[float(f"{a / b:.12g}") for a, b in zip(row, level, strict=True)] for row in rows]
            quotes = {
                name: Quote(*(value if math.isfinite(value) else None for value in values))
                for name, *values in zip(self.universe, *rows, strict=True)
                if math.isfinite(values[-1])
            }
        gone = frozenset(name for name in self.universe if name in places) - frozenset(view.held())
        actions = view.actions()
        if factors is not None:
            # Adjusted prices on the level of each instrument's last bar.
            last = np.where(np.isfinite(factors), np.arange(closes.days.size)[:, None], -1).max(axis=0, initial=-1)
            levels = np.where(last >= 0, factors[last, np.arange(last.size)], np.nan)
            bars = {name: one if name == "volume" else one / levels for name, one in bars.items()}
        if "volume" in bars and actions:
            # Volumes in units of that day.
            bars["volume"] = bars["volume"].copy()
            for at, name in enumerate(self.universe):
                for action in actions.get(name, ()):
                    bars["volume"][closes.days < np.datetime64(action.ex_date), at] *= action.split
        return Day(day, moment, self.universe, view, quotes, closes.days, bars, gone, actions)


def shown_prices(values: np.ndarray) -> np.ndarray:
    """Prices to six significant digits, or to whole units where they have more: as they are shown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        places = np.clip(_DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0, 22)
        scale = 10.0 ** np.where(np.isfinite(places), places, 0)
    found: np.ndarray = np.round(values * scale) / scale
    return found
