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
        days = {one.astype(object) for one in weekdays(self.first, last)} | set(self._traded(last))
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

    def _traded(self, last: date) -> list[date]:
        days = self.history.days.astype("datetime64[D]")
        rows = np.flatnonzero((days >= np.datetime64(self.first)) & (days <= np.datetime64(last)))
        there = np.isfinite(self.history.bars["close"][rows][:, self._columns]).any(axis=1)
        return [days[row].astype(object) for row in rows[there]]

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
        bars = {name: _of(one.values, columns, zero=name == "volume") for name, one in whole.items()}
        factors = bars.pop(FACTOR, None)
        there = closes.days.size and closes.days[-1] == np.datetime64(day)
        quotes = self._quotes(bars, factors) if there else {}
        gone = frozenset(name for name in self.universe if name in places) - frozenset(view.held())
        actions = view.actions()
        bars = _as_of_now(bars, factors, self.universe, closes.days, actions)
        return Day(day, moment, self.universe, view, quotes, closes.days, bars, gone, actions)

    def _quotes(self, bars: Mapping[str, np.ndarray], factors: np.ndarray | None) -> dict[str, Quote]:
        """The last row of every price, as it was traded; of a field that the store does not have nothing is known."""
        nothing = np.full(len(self.universe), np.nan)
        rows = [bars[name][-1] if name in bars else nothing for name in _PRICES]
        if factors is not None:
            # A price that was adjusted and is divided again is off in its last digits; no source has as many.
            rows = [np.array([float(f"{price:.12g}") for price in (one / factors[-1]).tolist()]) for one in rows]
        return {
            name: Quote(*map(_known, values))
            for name, *values in zip(self.universe, *(one.tolist() for one in rows), strict=True)
            if math.isfinite(values[-1])
        }


_PRICES: Final = FIELDS[:4]


def _as_of_now(
    bars: Mapping[str, np.ndarray],
    factors: np.ndarray | None,
    universe: Sequence[str],
    days: np.ndarray,
    actions: Mapping[str, Sequence[CorporateAction]],
) -> dict[str, np.ndarray]:
    """Adjusted prices on the level of each instrument's last bar, and volumes in units of that day."""
    found = dict(bars)
    if factors is not None:
        rows = np.where(np.isfinite(factors), np.arange(days.size)[:, None], -1).max(axis=0, initial=-1)
        level = np.where(rows >= 0, factors[rows, np.arange(rows.size)], np.nan)
        found = {name: one if name == "volume" else one / level for name, one in bars.items()}
    if "volume" in bars and actions:
        found["volume"] = bars["volume"].copy()
        for at, name in enumerate(universe):
            for one in actions.get(name, ()):
                found["volume"][days < np.datetime64(one.ex_date), at] *= one.split
    return found


def _of(table: np.ndarray, columns: np.ndarray, *, zero: bool = False) -> np.ndarray:
    """Some columns of a table of bars, -1 for what is not listed yet; what cannot be is missing, as is a price of 0."""
    padded = np.hstack([table, np.full((table.shape[0], 1), np.nan)])[:, columns]
    found: np.ndarray = np.where(np.isfinite(padded) & ((padded > 0) | (zero & (padded == 0))), padded, np.nan)
    return found


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def shown_prices(values: np.ndarray) -> np.ndarray:
    """Prices to six significant digits, or to whole units where they have more: as they are shown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        places = np.clip(_DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0, 22)
        scale = 10.0 ** np.where(np.isfinite(places), places, 0)
    found: np.ndarray = np.round(values * scale) / scale
    return found
