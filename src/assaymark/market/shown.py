"""How a market shows itself in a notebook: what a snapshot or a history holds, and what could be known at one time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from assaymark.display import Grid, Heading, Note, Part, Result
from assaymark.market.instruments import CLASS_NAMES, Listing
from assaymark.typography import clean, count

_MOST: Final = 12


class ShownSnapshot(Result):
    """What a snapshot shows: where it is from, the traps to know, and how much there is of what."""

    __slots__ = ()
    id: str
    origin: Any
    tables: Mapping[str, Any]

    def _parts(self) -> Iterator[Part]:
        yield Heading(clean(self.id, 80))
        yield Note(f"from {clean(self.origin.source, 60)}, asked {self.origin.retrieved_at:%Y-%m-%d %H:%M}")
        yield Note(f"licence: {clean(self.origin.licence, 200)}")
        yield from (Note(f"note: {clean(note, 300)}") for note in self.origin.notes)
        rows = tuple((name, count(table.num_rows)) for name, table in self.tables.items())
        yield Grid(("Table", "Rows"), rows, frozenset({1}))


class ShownHistory(Result):
    """What a store of bars shows: its instruments by class, and its days."""

    __slots__ = ()
    listings: tuple[Listing, ...]
    days: np.ndarray

    def _name(self) -> str:
        return "Market"

    def _parts(self) -> Iterator[Part]:
        yield Heading(self._name())
        days = f"{self.days[0]} to {self.days[-1]}" if self.days.size else "no day"
        yield Note(f"{count(len(self.listings))} instruments, {count(self.days.size)} days: {days}")
        found = Counter(one.asset_class for one in self.listings)
        rows = tuple((CLASS_NAMES[name], count(found[name])) for name in CLASS_NAMES if name in found)
        yield Grid(("Class", "Instruments"), rows, frozenset({1}))


class ShownView(Result):
    """What a view shows: the last closes of the first instruments that can be held, and how much else was known."""

    __slots__ = ()
    t: datetime

    def _parts(self) -> Iterator[Part]:
        view: Any = self
        yield Heading(f"As of {self.t.astimezone(UTC):%Y-%m-%d %H:%M} UTC, knowing nothing later")
        held = set(view.held())
        listed = [one for one in view.instruments if one.id in held]
        macro, news = len(view.all_macro()), len(view.news())
        said = f"{count(len(listed))} instruments, {count(macro)} macro series, {count(news)} news items in 30 days"
        yield Note(said)
        last = view.prices(1)
        if last.days.size and listed:
            closes = dict(zip(last.ids, last.values[-1], strict=True))
            rows = (
                (clean(one.id, 24), clean(one.name, 60), CLASS_NAMES[one.asset_class], _close(closes[one.id]))
                for one in listed[:_MOST]
            )
            yield Grid(("Instrument", "Name", "Class", f"Close of {last.days[-1]}"), tuple(rows), frozenset({3}))
            if len(listed) > _MOST:
                yield Note(f"{_MOST} of {count(len(listed))} instruments")


def _close(value: float) -> str:
    return f"{value:,.2f}" if np.isfinite(value) else "not known"
