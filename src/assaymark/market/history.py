"""The price store in memory: bars with the instant at which each became known, macro series, news and fundamentals.

Nothing is read from it directly: `History.as_of` gives the view at one time, and the view filters every read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.market.actions import CorporateAction
from assaymark.market.calendar import known_from
from assaymark.market.fundamentals import Fundamentals, synthetic_fundamentals
from assaymark.market.instruments import Listing
from assaymark.market.macro import MacroSeries, linked_macro
from assaymark.market.news import News, templated_news
from assaymark.market.restated import Restated
from assaymark.market.shown import ShownHistory
from assaymark.market.synthetic import synthetic_market
from assaymark.market.view import AsOf
from assaymark.typography import clean

FIELDS = ("open", "high", "low", "close", "volume")
"""What a bar has."""

FACTOR = "adj_factor"
"""The adjustment factor, beside the fields of a bar."""

CLOSE_OF_DAY = 21 * 3600
"""Seconds after midnight UTC at which a day's bars are complete."""


@dataclass(frozen=True, slots=True, repr=False)
class History(ShownHistory):
    """Daily bars of many instruments: first versions in one table of days by instruments, and the later versions.

    Parameters
    ----------
    listings : tuple of n_instruments listings
    days : datetime64[D] array of shape (n_days,)
        Increasing.
    bars : dict of field to float array of shape (n_days, n_instruments)
        Fields of `FIELDS`; NaN where there is no bar. ``close`` is needed, and is a total-return price: what a source
        calls the close, times its adjustment factor. `FACTOR` is there where a factor is not 1: a price divided by it
        is the price as it was traded.
    known_at : int64 array of shape (n_days, n_instruments)
        Seconds since 1970 in UTC at which the bar became known; where there is none, at which that was known.
    macro, news : tuples
    source, snapshot : str
        Where the prices are from.
    restated : Restated
        Later versions of bars. A view shows the first version until the time of the next, and that one from then on.
    fundamentals : Fundamentals
    actions : tuple of (int, CorporateAction)
        Those that the source lists, each with the second since 1970 in UTC at which it became known.
    unstated : frozenset of ids
        Instruments whose source does not say whether their prices are adjusted.

    Raises
    ------
    InputError
        Shapes differ, days do not increase, or a bar is known before its day; every problem at once.
    """

    listings: tuple[Listing, ...]
    days: np.ndarray
    bars: dict[str, np.ndarray]
    known_at: np.ndarray
    macro: tuple[MacroSeries, ...] = ()
    news: tuple[News, ...] = ()
    source: str = ""
    snapshot: str = ""
    restated: Restated = field(default_factory=Restated.none)
    fundamentals: Fundamentals = field(default_factory=Fundamentals.none)
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
        problems = list(_problems(self))
        if problems:
            raise InputError(self.source or "history", problems)
        object.__setattr__(self, "closes_at", closing_times(self.days))
        first = self.known_at.min(axis=1) if self.listings else self.closes_at
        object.__setattr__(self, "row_known", first)
        ordered = tuple(sorted(self.news, key=lambda one: one.published_at))
        object.__setattr__(self, "news", ordered)
        published = [known_from(one.published_at) for one in ordered]
        object.__setattr__(self, "published", np.array(published, dtype=np.int64))
        last = [one.delisted or date.max for one in self.listings]
        object.__setattr__(self, "listed_on", np.array([one.listed for one in self.listings], dtype="datetime64[D]"))
        object.__setattr__(self, "gone_after", np.array(last, dtype="datetime64[D]"))

    def as_of(self, t: datetime) -> AsOf:
        """What was knowable at ``t`` (with a time zone).

        Raises
        ------
        InputError
            The time has no zone.
        """
        return AsOf(self, t)


def closing_times(days: np.ndarray) -> np.ndarray:
    """When the bars of each day are complete, int64 seconds since 1970 in UTC, shape (n_days,)."""
    found: np.ndarray = days.astype("datetime64[D]").astype(np.int64) * 86_400 + CLOSE_OF_DAY
    return found


def known_at_close(days: np.ndarray, instruments: int) -> np.ndarray:
    """The `History.known_at` of bars that are all known when their day closes."""
    return np.repeat(closing_times(days)[:, None], instruments, axis=1)


def _problems(history: History) -> Sequence[Problem]:
    """What keeps the parts from being one table."""
    found, shape = [], (history.days.size, len(history.listings))
    if "close" not in history.bars:
        found.append(Problem("bars", "the field 'close' is needed"))
    for name, values in {**history.bars, "known_at": history.known_at}.items():
        if name not in ("known_at", FACTOR, *FIELDS):
            found.append(Problem(name, f"is no field of a bar; fields are {', '.join(FIELDS)}"))
        if values.shape != shape:
            found.append(Problem(name, f"must have the shape {shape} (got {values.shape})"))
    if history.days.size and not (np.diff(history.days).astype(int) > 0).all():
        found.append(Problem("days", "must increase"))
    if history.known_at.shape == shape and (history.known_at < closing_times(history.days)[:, None]).any():
        found.append(Problem("known_at", "a bar cannot be known before its day has closed"))
    if not found:
        found += history.restated.problems(history.known_at, tuple(history.bars))
    return found


@lru_cache(maxsize=2)
def synthetic_history(seed: int = 0) -> History:
    """The embedded market of a seed as a store, with its macro series, news and fundamentals.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> view = synthetic_history(7).as_of(datetime(2024, 3, 1, 22, tzinfo=UTC))
    >>> view.prices(60).values.shape
    (60, 183)
    """
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
