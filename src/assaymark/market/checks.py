"""What may be wrong with prices from outside: every problem of a table is found and named at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np

from assaymark.errors import Problem
from assaymark.market.instruments import CLASS_NAMES, GAP_LIMIT, Listing
from assaymark.notebook import Grid, Heading, Note, Part, Result
from assaymark.text import clean, count


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on a price table counts as wrong."""

    stale_days: int = 10
    jump: float = 5.0
    fall: float = 0.95
    gap_days: int = GAP_LIMIT
    half_day: float = 0.5


Kind = Literal["order", "empty", "sign", "gap", "stale", "frozen", "return", "half day"]
"""What a finding is about."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that may be wrong: its kind, where, what, and its length in days (0 where it has none)."""

    kind: Kind
    where: str
    what: str
    days: int = 0
    column: int = -1


def price_problems(
    days: np.ndarray, ids: Sequence[str], closes: np.ndarray, limits: Limits | None = None
) -> list[Problem]:
    """Every finding of `price_findings` as a problem."""
    return [Problem(one.where, one.what) for one in price_findings(days, ids, closes, limits)]


def price_findings(
    days: np.ndarray,
    ids: Sequence[str],
    closes: np.ndarray,
    limits: Limits | None = None,
    groups: Sequence[object] | None = None,
) -> list[Finding]:
    """Everything that may be wrong with a table of closes."""
    at = limits or Limits()
    found: list[Finding] = []
    unique, counts = np.unique(days, return_counts=True)
    for day in unique[counts > 1]:
        found.append(Finding("order", str(day), "the day is in the table more than once"))
    for row in np.flatnonzero(np.diff(days).astype(int) < 0):
        found.append(Finding("order", str(days[row + 1]), f"comes after {days[row]}: days must increase"))
    for name in sorted({one for one in ids if list(ids).count(one) > 1}):
        found.append(Finding("order", name, "the instrument is in the table more than once"))
    for column, name in enumerate(ids):
        found += [replace(one, column=column) for one in _series(days, name, closes[:, column], at)]
    kinds = list(dict.fromkeys(groups or ()))
    for kind in kinds or [None]:
        chosen = [groups is None or groups[column] == kind for column in range(len(ids))]
        found += _part_days(days, closes[:, chosen], at)
    return found


def _series(days: np.ndarray, name: str, closes: np.ndarray, at: Limits) -> Iterator[Finding]:
    """The problems of one series."""
    there = np.flatnonzero(np.isfinite(closes))
    if not there.size:
        yield Finding("empty", name, "has no price at all")
        return
    for row in np.flatnonzero(closes <= 0):
        yield Finding("sign", f"{name}, {days[row]}", f"a price must be positive (got {closes[row]:g})")
    holes = np.diff(there) - 1
    for place in np.flatnonzero(holes > at.gap_days):
        first = days[there[place] + 1]
        what = f"{holes[place]} days in a row are missing (up to {at.gap_days} are carried)"
        yield Finding("gap", f"{name}, {first}", what, int(holes[place]))
    if (behind := days.size - 1 - int(there[-1])) > at.gap_days:
        what = f"is stale: its last price is of {days[there[-1]]}, {behind} days before the table ends"
        yield Finding("stale", name, what, behind)
    prices = closes[there]
    for start, stop in pairwise(np.flatnonzero(np.concatenate([[True], np.diff(prices) != 0, [True]])).tolist()):
        if (length := stop - start) >= at.stale_days:
            what = f"is frozen: {length} equal closes in a row"
            yield Finding("frozen", f"{name}, {days[there[start]]}", what, length)
    both = (prices[1:] > 0) & (prices[:-1] > 0)
    moves = np.where(both, prices[1:] / np.where(both, prices[:-1], 1.0) - 1.0, 0.0)
    for place in np.flatnonzero((moves > at.jump) | (moves < -at.fall)):
        day = days[there[place + 1]]
        yield Finding("return", f"{name}, {day}", f"a return of {100 * moves[place]:+.0f} % cannot be believed")


def _part_days(days: np.ndarray, closes: np.ndarray, at: Limits) -> Iterator[Finding]:
    """Days on which many instruments that trade before and after are missing: a download that was cut off."""
    there = np.isfinite(closes)
    rows = np.arange(days.size)[:, None]
    first = np.where(there, rows, days.size).min(axis=0, initial=days.size)
    last = np.where(there, rows, -1).max(axis=0, initial=-1)
    # The last row counts as due for whatever had a price the day before: half a day is mostly today's.
    due = (rows >= first) & ((rows <= last) | (rows == last + 1))
    expected, present = due.sum(axis=1), there.sum(axis=1)
    for row in np.flatnonzero((present > 0) & (present < at.half_day * expected)):
        what = f"only {present[row]} of {expected[row]} instruments have a price: half a day?"
        yield Finding("half day", str(days[row]), what)


def snapshot_problems(snapshots: Sequence[tuple[str, str, np.ndarray, np.ndarray]]) -> list[Problem]:
    """Instruments and days that more than one snapshot has, with whether they agree."""
    found = []
    by_instrument: dict[str, list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for snapshot, instrument, days, closes in snapshots:
        for other, other_days, other_closes in by_instrument.setdefault(instrument, []):
            _, mine, theirs = np.intersect1d(days, other_days, return_indices=True)
            if mine.size:
                differ = int((closes[mine] != other_closes[theirs]).sum())
                what = f"snapshots {other} and {snapshot} overlap on {mine.size} days and differ on {differ}"
                found.append(Problem(instrument, f"{what}; a store holds one snapshot"))
        by_instrument[instrument].append((snapshot, days, closes))
    return found


def mixed_snapshots(
    snapshots: Sequence[object], instruments: np.ndarray, days: np.ndarray, closes: np.ndarray, what: str = "a store"
) -> list[Problem]:
    """That rows are of several snapshots, with where these overlap."""
    of, kinds = np.array(snapshots, dtype=object), sorted(set(snapshots), key=str)
    series = [
        (str(kind), str(name), days[at], closes[at])
        for kind in kinds
        for name in sorted(set(instruments[of == kind]), key=str)
        if (at := (of == kind) & (instruments == name)).any()
    ]
    named = f"{what} holds one snapshot (got {', '.join(map(str, kinds))})"
    return [Problem("snapshot", named), *snapshot_problems(series)]


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
            shown = {name: f"{one:,.2f}" if np.isfinite(one) else "not known" for name, one in closes.items()}
            rows = (
                (clean(one.id, 24), clean(one.name, 60), CLASS_NAMES[one.asset_class], shown[one.id])
                for one in listed[:_MOST]
            )
            yield Grid(("Instrument", "Name", "Class", f"Close of {last.days[-1]}"), tuple(rows), frozenset({3}))
            if len(listed) > _MOST:
                yield Note(f"{_MOST} of {count(len(listed))} instruments")
