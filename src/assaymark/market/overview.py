"""What a store holds, class by class and instrument by instrument, as a person would ask for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assaymark.errors import UnknownNameError
from assaymark.market.calendar import GAP_LIMIT, fill_gaps
from assaymark.market.history import History
from assaymark.market.instruments import AssetClass, Listing, class_members
from assaymark.market.regimes import class_index
from assaymark.market.view import AsOf

_BACK = (1, 20, 60)


@dataclass(frozen=True, slots=True)
class ClassOverview:
    """One asset class: how many instruments, their first and last day, and how full their tables are.

    ``bars`` counts closes, ``missing`` the days between an instrument's first and last close without one, ``long_gaps``
    runs of such days that are too long to be carried. ``index`` is the equal-weight index, one value a day.
    """

    asset_class: AssetClass
    instruments: int
    first: np.datetime64
    last: np.datetime64
    bars: int
    missing: int
    long_gaps: int
    index: np.ndarray


@dataclass(frozen=True, slots=True)
class Gap:
    """A run of days without a close, between two closes."""

    first: np.datetime64
    days: int


@dataclass(frozen=True, slots=True)
class Quote:
    """One instrument at one time: its last close, the day of it, and its changes over 1, 20 and 60 days (or None).

    ``path`` holds the last 60 closes after the gap rule.
    """

    listing: Listing
    close: float
    day: np.datetime64
    changes: tuple[float | None, ...]
    path: np.ndarray


def class_overviews(history: History) -> tuple[ClassOverview, ...]:
    """Every class that has a close, in the order of the classes; bars in their first version."""
    closes = history.bars["close"]
    index = class_index(fill_gaps(closes), history.listings) if closes.size else {}
    found = []
    for name, columns in class_members(history.listings).items():
        there = np.isfinite(closes[:, columns])
        rows = np.flatnonzero(there.any(axis=1))
        if rows.size:
            gaps = [gap for column in columns for gap in gaps_of(history, history.listings[column].id)]
            found.append(
                ClassOverview(
                    name,
                    columns.size,
                    history.days[rows[0]],
                    history.days[rows[-1]],
                    int(there.sum()),
                    sum(gap.days for gap in gaps),
                    sum(gap.days > GAP_LIMIT for gap in gaps),
                    index[name],
                )
            )
    return tuple(found)


def gaps_of(history: History, instrument: str) -> tuple[Gap, ...]:
    """The gaps of one instrument, oldest first.

    Raises
    ------
    UnknownNameError
        The store has no such instrument.
    """
    ids = [one.id for one in history.listings]
    if instrument not in ids:
        raise UnknownNameError("instrument", instrument, ids)
    there = np.flatnonzero(np.isfinite(history.bars["close"][:, ids.index(instrument)]))
    holes = np.diff(there) - 1
    return tuple(Gap(history.days[there[at] + 1], int(holes[at])) for at in np.flatnonzero(holes))


def quotes(view: AsOf) -> tuple[Quote, ...]:
    """The instruments that can be held and have a close in the last 60 days, in the order of the store."""
    prices, held = view.prices(max(_BACK) + 1), set(view.held())
    found = []
    for column, listing in enumerate(view.instruments):
        path = prices.values[:, column]
        there = np.flatnonzero(np.isfinite(path))
        if there.size and listing.id in held:
            last = int(there[-1])
            changes = tuple(_change(path, last, back) for back in _BACK)
            found.append(Quote(listing, float(path[last]), prices.days[last], changes, path[1:]))
    return tuple(found)


def _change(path: np.ndarray, last: int, back: int) -> float | None:
    """The simple return over ``back`` days, or None where there is no close so far back."""
    if last < back or not np.isfinite(path[last - back]):
        return None
    return float(path[last] / path[last - back] - 1.0)
