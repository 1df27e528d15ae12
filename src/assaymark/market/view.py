"""What was knowable at one time: every read filters by when a thing became known.

The gap rule and everything else that looks along the days is applied after the cut, because whether a gap is short
or long is itself something that only later days tell.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from assaymark.errors import InputError, UnknownNameError
from assaymark.market.actions import CorporateAction, implied_actions
from assaymark.market.calendar import GAP_LIMIT, fill_gaps, instant, simple_returns
from assaymark.market.fundamentals import Filing
from assaymark.market.instruments import AssetClass, Listing
from assaymark.market.macro import MacroReading, read
from assaymark.market.news import News
from assaymark.market.regimes import class_index, regimes
from assaymark.market.shown import ShownView

if TYPE_CHECKING:
    from assaymark.market.history import History

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class PriceSlice:
    """A table of days by instruments, oldest first; NaN where nothing was known.

    ``days`` (datetime64[D]) are the rows of ``values`` and ``ids`` its columns.
    """

    days: np.ndarray
    ids: tuple[str, ...]
    values: np.ndarray


class AsOf(ShownView):
    """The market as it could be known at ``t``. Made by `History.as_of`.

    Bars, restatements of bars, macro values, news and filings that became known later than ``t`` are not in it, nor is
    a delisting that lies ahead. Something known exactly at ``t`` is.
    """

    __slots__ = ("_at", "_begin", "_columns", "_end", "_history", "t")

    def __init__(self, history: History, t: datetime) -> None:
        self.t = t
        self._history = history
        self._at = instant(t)
        # Days that have closed by t: later rows can hold nothing that was known.
        self._end = int(np.searchsorted(history.closes_at, self._at, side="right"))
        # First days of which nothing is known yet are there only because their bars came later.
        known = history.row_known[: self._end] <= self._at
        self._begin = int(known.argmax()) if known.any() else self._end
        # Even the name of an instrument is not known before it lists.
        self._columns = np.flatnonzero(history.listed_on <= self.today)

    @property
    def today(self) -> np.datetime64:
        """The calendar day of ``t`` in UTC."""
        return np.datetime64(self._at // _DAY, "D")

    @property
    def instruments(self) -> tuple[Listing, ...]:
        """Instruments listed by now, the delisted ones included; a delisting that lies ahead does not show."""
        day = self.today.astype(object)
        return tuple(self._history.listings[column].seen_from(day) for column in self._columns)

    def held(self) -> tuple[str, ...]:
        """The ids that can be held today: listed and not delisted."""
        day = self.today.astype(object)
        return tuple(one.id for one in self.instruments if one.trades_on(day))

    def prices(self, days: int = 60, *, field: str = "close", filled: bool = True) -> PriceSlice:
        """The last ``days`` closed days of one field; the columns are `instruments`, those listed by now.

        Parameters
        ----------
        days : int
            At least 1; fewer rows come back where the store does not reach as far.
        field : str
            open, high, low, close or volume; adj_factor where the store has factors.
        filled : bool
            Carry closes over gaps of up to five days; the other fields are never carried.

        Raises
        ------
        InputError
            ``days`` is not positive.
        UnknownNameError
            The store has no such field.
        """
        if days < 1:
            raise InputError("prices", [f"days must be at least 1 (got {days})"])
        if field not in self._history.bars:
            raise UnknownNameError("field", field, list(self._history.bars))
        # A gap of the length that is still carried may begin before the slice.
        start = max(self._end - days - GAP_LIMIT, self._begin)
        values = self._known(field, start)
        dates = self._history.days[start : self._end]
        if filled and field == "close":
            values = fill_gaps(values)
        if dates.size:
            values[dates[:, None] > self._history.gone_after[self._columns]] = np.nan
        kept = min(days, dates.size)
        ids = tuple(self._history.listings[column].id for column in self._columns)
        return PriceSlice(dates[dates.size - kept :], ids, values[dates.size - kept :])

    def _known(self, field: str, start: int) -> np.ndarray:
        """Raw values from row ``start`` on, missing where they were not known yet. A new array."""
        rows = slice(start, self._end)
        found: np.ndarray = np.where(self._history.known_at[rows] <= self._at, self._history.bars[field][rows], np.nan)
        self._history.restated.apply(found, field, start, self._at)
        return found if self._columns.size == found.shape[1] else found[:, self._columns]

    def actions(self, days: int = 260) -> dict[str, tuple[CorporateAction, ...]]:
        """The splits and dividends of the last ``days`` closed days by instrument, oldest first; see `CorporateAction`.

        What the source lists counts, else what its adjustment factors imply. Instruments without any are left out.
        """
        today, store = self.today.astype(object), self._history
        if not store.actions and "adj_factor" not in store.bars:
            return {}
        closes = self.prices(days, filled=False)
        listed: dict[str, list[CorporateAction]] = {}
        first = closes.days[0].astype(object) if closes.days.size else today
        for known, one in store.actions:
            if known <= self._at and first <= one.ex_date <= today:
                listed.setdefault(one.instrument, []).append(one)
        if "adj_factor" not in store.bars:
            return {name: tuple(sorted(ones, key=lambda one: one.ex_date)) for name, ones in listed.items()}
        factors = self.prices(days, field="adj_factor", filled=False).values
        traded = closes.values / factors
        found = {
            name: implied_actions(name, closes.days, traded[:, at], factors[:, at], listed.get(name, ()))
            for at, name in enumerate(closes.ids)
        }
        return {name: ones for name, ones in found.items() if ones}

    def returns(self, days: int = 60) -> PriceSlice:
        """Simple returns of the last ``days`` closed days, from closes after the gap rule."""
        prices = self.prices(days + 1)
        return PriceSlice(prices.days[1:], prices.ids, simple_returns(prices.values))

    def regimes(self, *, band: float = 0.05) -> dict[AssetClass, str]:
        """The regime of each class on the last closed day (`assaymark.market.regimes`)."""
        if self._begin == self._end:
            raise InputError("regimes", [f"no day had closed by {self.t.isoformat()}"])
        # 252 days for the peak; the averages need fewer.
        index = class_index(self.prices(252).values, self.instruments)
        return {name: str(regimes(path, band=band)[-1]) for name, path in index.items()}

    def macro(self, name: str) -> MacroReading:
        """One macro series as it reads now.

        Raises
        ------
        UnknownNameError
            The store has no such series.
        """
        for series in self._history.macro:
            if series.id == name:
                return read(series, self._at)
        raise UnknownNameError("macro series", name, [series.id for series in self._history.macro])

    def all_macro(self) -> tuple[MacroReading, ...]:
        """Every macro series as it reads now."""
        return tuple(read(series, self._at) for series in self._history.macro)

    def news(self, days: int = 30, *, instrument: str | None = None) -> tuple[News, ...]:
        """News published in the last ``days`` days, oldest first; with ``instrument``, only what is about it."""
        first, last = np.searchsorted(self._history.published, [self._at - days * _DAY, self._at], side="right")
        found = self._history.news[int(first) : int(last)]
        return tuple(one for one in found if instrument is None or instrument in one.instruments)

    def fundamentals(self, instrument: str) -> tuple[Filing, ...]:
        """What had been filed about one instrument, by period and field; of a filing that was corrected, the newest.

        Raises
        ------
        UnknownNameError
            No such instrument is listed by now.
        """
        listings = self._history.listings
        if all(listings[column].id != instrument for column in self._columns):
            raise UnknownNameError("instrument", instrument, [listings[column].id for column in self._columns])
        return self._history.fundamentals.known(instrument, self._at)

    def digest(self) -> str:
        """sha256 over everything that can be read from this view: two views are equal where their digests are."""
        whole = hashlib.sha256()
        whole.update(self._history.days[self._begin : self._end].tobytes())
        for field in sorted(self._history.bars):
            whole.update(field.encode())
            whole.update(self._known(field, self._begin).tobytes())
        for part in (self.instruments, self.held(), self.all_macro(), self.news(100_000)):
            whole.update(repr(part).encode())
        self._history.fundamentals.digest_into(whole, self._at)
        if self._history.actions:
            whole.update(repr([one for known, one in self._history.actions if known <= self._at]).encode())
        return whole.hexdigest()
