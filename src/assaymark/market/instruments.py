"""Instruments: the 183 synthetic ones of the embedded market, corporate actions, calendar and checks of prices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product
from typing import Final, Literal

import numpy as np

from assaymark.errors import InputError, Problem
from assaymark.notebook import Grid, Heading, Part, Result
from assaymark.records import Instrument, duplicates
from assaymark.text import count

AssetClass = Literal["EQ", "BO", "CO", "CR", "RE", "CA"]

CLASSES: tuple[AssetClass, ...] = ("EQ", "BO", "CO", "CR", "RE", "CA")
"""The six asset classes, in the order of every table and matrix over classes."""

CLASS_NAMES: dict[AssetClass, str] = {
    "EQ": "equity", "BO": "bond", "CO": "commodity", "CR": "crypto", "RE": "real_estate", "CA": "cash",
}  # fmt: skip
"""The class names used in records."""

# fmt: off
SUBSECTORS: dict[AssetClass, dict[str, int]] = {
    "EQ": dict.fromkeys(
        ("large caps", "small caps", "growth", "value", "technology", "health care", "financials", "energy companies",
         "industrials", "staples", "discretionary", "utilities", "developed abroad", "emerging"), 9),
    "BO": {"government": 6, "corporate": 5, "inflation-linked": 2, "mortgage": 2},
    "CO": {"energy": 4, "precious metals": 4, "industrial metals": 4, "agriculture": 4},
    "CR": {"major coins": 4, "platforms": 4, "payments": 4},
    "RE": {"diversified": 4, "residential": 3, "commercial": 3},
    "CA": {"bills": 2, "money market": 2},
}
# fmt: on
"""Sub-sectors of each class with their numbers of instruments; the classes have 126, 15, 16, 12, 10 and 4."""

FIRST_DAY = date(2015, 1, 1)
LAST_DAY = date(2025, 12, 31)

_FIRST = ("Al", "Bre", "Cor", "Dun", "El", "Fen", "Gar", "Hol", "Is", "Jor", "Kel", "Lum", "Mor", "Nev")
_SECOND = ("bix", "dro", "fam", "gul", "hes", "kov", "lep", "mir", "nux", "pod", "quo", "ruv", "sib", "tav")
_LAST_WORD: dict[AssetClass, str] = {
    "EQ": "Equity Fund", "BO": "Bond Fund", "CO": "Commodity Note", "CR": "Coin", "RE": "Property Trust",
    "CA": "Cash Fund",
}  # fmt: skip


# By class and position in it.
_DELISTED = {("EQ", 25): date(2019, 6, 28), ("EQ", 88): date(2023, 9, 15), ("CR", 9): date(2024, 11, 22)}
_KINDS = frozenset(("equity", "etf", "mutualfund", "index", "cryptocurrency", "future", "spot", "not stated"))
"""Kinds of instruments that sources give in place of a sub-sector."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One instrument, with the period in which it could be held."""

    id: str
    asset_class: AssetClass
    sub: str
    name: str
    listed: date
    delisted: date | None = None

    @property
    def sector(self) -> str:
        """The sub-sector; empty if the source gives a kind of instrument in its place."""
        return "" if self.sub.lower() in _KINDS else self.sub

    @property
    def calendar(self) -> str:
        """The days on which it trades."""
        return "daily" if self.asset_class == "CR" else "weekdays"

    def trades_on(self, day: date) -> bool:
        """True if it is listed by ``day`` and not delisted before it."""
        return self.listed <= day and (self.delisted is None or day <= self.delisted)

    def as_row(self, currency: str | None) -> dict[str, object]:
        """Return the row of a snapshot's table of instruments."""
        return {
            "id": self.id, "class": self.asset_class, "sub": self.sub, "name": self.name, "currency": currency,
            "listed": self.listed, "delisted": self.delisted, "calendar": self.calendar,
        }  # fmt: skip

    def as_record(self) -> Instrument:
        """Return the instrument in the form of contexts."""
        return Instrument(self.id, self.id, self.name, asset_class=CLASS_NAMES[self.asset_class], group=self.sub)


@lru_cache(maxsize=1)
def universe() -> tuple[Listing, ...]:
    """Return the 183 synthetic instruments, by class in the order of `CLASSES` (PortBench sections 2.1 and B)."""
    stems = (first + second for second, first in product(_SECOND, _FIRST))
    listings: list[Listing] = []
    for asset_class, subs in SUBSECTORS.items():
        place = 0
        for sub, how_many in subs.items():
            for _ in range(how_many):
                stem, listed = next(stems), FIRST_DAY
                if asset_class == "EQ" and place % 7 == 3:
                    listed = FIRST_DAY + timedelta(days=200 + 130 * (place // 7))
                elif asset_class == "CR" and place > 0:
                    listed = date(2017, 1, 2) + timedelta(days=110 * place)
                name = f"{stem} {sub.title()} {_LAST_WORD[asset_class]}"
                gone = _DELISTED.get((asset_class, place))
                listings.append(Listing(stem.upper(), asset_class, sub, name, listed, gone))
                place += 1
    return tuple(listings)


def class_members(listings: Iterable[Listing]) -> dict[AssetClass, np.ndarray]:
    """Return the column numbers of each class that has any."""
    of = np.array([listing.asset_class for listing in listings])
    return {name: np.flatnonzero(of == name) for name in CLASSES if (of == name).any()}


_NOISE: Final = 1e-6
"""A relative change of the factor up to this is rounding of the source."""

_NEAR: Final = 1e-4
_LEAST_SPLIT: Final = 1.25
"""Exchanges treat a distribution of a quarter and more as a split; a smaller one counts as a dividend."""

_BESIDE: Final = 0.02
"""Largest remainder of a split that counts as a dividend of the same day: more than companies usually pay at once."""


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """A split, a dividend, or both, effective from the open of ``ex_date``."""

    instrument: str
    ex_date: date
    split: float = 1.0
    dividend: float = 0.0
    since: date | None = None

    def __str__(self) -> str:
        parts = [f"split of {self.split:.6g} for 1"] if self.split != 1.0 else []
        parts += [f"dividend of {self.dividend:.6g} a unit"] if self.dividend else []
        return f"{self.instrument}: {' and '.join(parts)}, ex-date {self.ex_date}"


def _implied_split(ratio: float) -> float:
    """Return the split in a change of the factor; 1.0 if there is none."""
    large = max(ratio, 1.0 / ratio)
    if 1.0 <= ratio < _LEAST_SPLIT:
        return 1.0
    for parts in (1, 2, 3, 4):
        whole = round(large * parts)
        if abs(whole / parts / large - 1.0) <= _NEAR:
            return whole / parts if ratio > 1.0 else parts / whole
    for parts in (1, 2, 3, 4):  # with a dividend on the same day, which adds to the ratio
        whole = math.floor(large * parts) if ratio > 1.0 else math.ceil(large * parts)
        if whole / parts >= _LEAST_SPLIT and abs(whole / parts / large - 1.0) <= _BESIDE:
            return whole / parts if ratio > 1.0 else parts / whole
    if ratio < 1.0:
        return ratio  # no dividend is negative, so it is a split of any size
    return float(math.floor(ratio)) if ratio >= 2.0 else 1.0


def implied_action(instrument: str, ex_date: date, ratio: float, before: float) -> CorporateAction | None:
    """Return the action implied by a change of the adjustment factor, or None if the change is rounding."""
    if abs(ratio - 1.0) <= _NOISE:
        return None
    split = _implied_split(ratio)
    rest = ratio / split
    paid = before / split * (1.0 - 1.0 / rest) if rest > 1.0 + _NEAR or (split == 1.0 and rest > 1.0) else 0.0
    return CorporateAction(instrument, ex_date, split, float(f"{paid:.12g}"))  # the amount, without float noise


def implied_actions(
    instrument: str, days: np.ndarray, closes: np.ndarray, factors: np.ndarray, listed: Sequence[CorporateAction]
) -> tuple[CorporateAction, ...]:
    """Return the actions of one instrument over its bars, oldest first: listed ones, else those implied by factors."""
    rows = np.flatnonzero(np.isfinite(closes))
    ratios = factors[rows[1:]] / factors[rows[:-1]]
    actions = list(listed)
    for at in np.flatnonzero(np.abs(ratios - 1.0) > _NOISE).tolist():
        early, late = days[rows[at]].astype(object), days[rows[at + 1]].astype(object)
        if any(early < action.ex_date <= late for action in listed):
            continue
        action = implied_action(instrument, late, float(ratios[at]), float(closes[rows[at]]))
        actions += [replace(action, since=early)] if action else []
    return tuple(sorted(actions, key=lambda action: action.ex_date))


# The common calendar: weekdays, sampling of seven-day series, and the gap rule (PortBench section B.3)

GAP_LIMIT = 5
"""Gaps of up to this many days take the last price; a longer gap stays missing as a whole."""


def weekdays(first: date, last: date) -> np.ndarray:
    """Return Monday to Friday from ``first`` to ``last``, both included, as days (datetime64[D])."""
    days = all_days(first, last)
    return days[np.is_busday(days)]


def all_days(first: date, last: date) -> np.ndarray:
    """Return every calendar day from ``first`` to ``last``, both included, as days (datetime64[D])."""
    return np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)


def sample_on(days: np.ndarray, source_days: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the rows of ``values`` on ``days``; NaN on days that the source lacks."""
    if source_days.size and not (np.diff(source_days).astype(int) > 0).all():
        raise InputError("calendar", ["the days of a series must increase, each day once"])
    sample = np.full((days.size, *values.shape[1:]), np.nan)
    if source_days.size:
        at = np.minimum(np.searchsorted(source_days, days), source_days.size - 1)
        there = source_days[at] == days
        sample[there] = values[at[there]]
    return sample


def fill_gaps(prices: np.ndarray, *, limit: int = GAP_LIMIT) -> np.ndarray:
    """Fill gaps of up to ``limit`` days with the last price; longer gaps stay missing as a whole. Returns a copy."""
    n = prices.shape[0]
    missing = np.isnan(prices)
    if not missing.any():
        return prices.copy()
    rows = np.arange(n)[:, None]
    before = np.maximum.accumulate(np.where(missing, -1, rows), axis=0)
    after = np.minimum.accumulate(np.where(missing, n, rows)[::-1], axis=0)[::-1]
    fill = missing & (before >= 0) & (after - before - 1 <= limit)
    row, column = np.nonzero(fill)
    filled = prices.copy()
    filled[row, column] = prices[before[row, column], column]
    return filled


def simple_returns(prices: np.ndarray) -> np.ndarray:
    """Compute simple returns from each row to the next, shape (n_days - 1, n_instruments)."""
    return np.asarray(prices[1:] / prices[:-1] - 1.0)


def instant(moment: datetime) -> int:
    """Convert a time with a zone to whole seconds since 1970 in UTC, rounded down."""
    if moment.tzinfo is None:
        raise InputError("time", [f"an as-of time needs a time zone (got {moment.isoformat()})"])
    # integer arithmetic: a float timestamp may round a microsecond up over a release time
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // _DAY_SECOND


def known_from(moment: datetime) -> int:
    """Return the first whole second since 1970 (UTC) at which something published at ``moment`` is known."""
    down = instant(moment)
    return down + (moment.microsecond > 0)


_DAY_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds from which a finding in a price table is reported."""

    stale_days: int = 10
    jump: float = 5.0
    fall: float = 0.95
    gap_days: int = GAP_LIMIT
    half_day: float = 0.5


FindingKind = Literal["order", "empty", "sign", "gap", "stale", "frozen", "return", "half day"]
"""The kinds of findings in a price table."""


@dataclass(frozen=True, slots=True)
class PriceFinding(Problem):
    """One possible error in a price table, with its kind, its length in days (0 if none) and its column."""

    kind: FindingKind
    days: int = 0
    column: int = -1


def price_findings(
    days: np.ndarray, ids: Sequence[str], closes: np.ndarray, limits: Limits | None = None,
    groups: Sequence[object] | None = None,
) -> list[PriceFinding]:  # fmt: skip
    """Return all possible errors in a table of closes; ``groups`` (such as classes) for incomplete days."""
    limit, findings = limits or Limits(), list[PriceFinding]()
    unique, times = np.unique(days, return_counts=True)
    findings += [PriceFinding(str(day), "the day is in the table more than once", "order") for day in unique[times > 1]]
    for row in np.flatnonzero(np.diff(days).astype(int) < 0):
        findings.append(PriceFinding(str(days[row + 1]), f"comes after {days[row]}: days must increase", "order"))
    for name in duplicates(ids):
        findings.append(PriceFinding(name, "the instrument is in the table more than once", "order"))
    for column, name in enumerate(ids):
        there = np.flatnonzero(np.isfinite(closes[:, column]))
        if not there.size:
            findings.append(PriceFinding(name, "has no price at all", "empty", 0, column))
            continue
        for row in np.flatnonzero(closes[:, column] <= 0):
            text = f"a price must be positive (got {closes[row, column]:g})"
            findings.append(PriceFinding(f"{name}, {days[row]}", text, "sign", 0, column))
        holes = np.diff(there) - 1
        for place in np.flatnonzero(holes > limit.gap_days):
            text = f"{holes[place]} days in a row are missing (up to {limit.gap_days} are carried)"
            findings.append(PriceFinding(f"{name}, {days[there[place] + 1]}", text, "gap", int(holes[place]), column))
        if (behind := days.size - 1 - int(there[-1])) > limit.gap_days:
            text = f"is stale: its last price is of {days[there[-1]]}, {behind} days before the table ends"
            findings.append(PriceFinding(name, text, "stale", behind, column))
        prices = closes[there, column]
        for start, stop in pairwise(np.flatnonzero(np.concatenate([[True], np.diff(prices) != 0, [True]])).tolist()):
            if (length := stop - start) >= limit.stale_days:
                text = f"is frozen: {length} equal closes in a row"
                findings.append(PriceFinding(f"{name}, {days[there[start]]}", text, "frozen", length, column))
        both = (prices[1:] > 0) & (prices[:-1] > 0)
        moves = np.where(both, prices[1:] / np.where(both, prices[:-1], 1.0) - 1.0, 0.0)
        for place in np.flatnonzero((moves > limit.jump) | (moves < -limit.fall)):
            text = f"a return of {100 * moves[place]:+.0f} % cannot be believed"
            findings.append(PriceFinding(f"{name}, {days[there[place + 1]]}", text, "return", 0, column))
    # Days on which many instruments of a group are missing that trade before and after: an incomplete download
    rows = np.arange(days.size)[:, None]
    for kind in list(dict.fromkeys(groups or ())) or [None]:
        priced = np.isfinite(closes[:, [groups is None or groups[column] == kind for column in range(len(ids))]])
        first = np.where(priced, rows, days.size).min(axis=0, initial=days.size)
        last = np.where(priced, rows, -1).max(axis=0, initial=-1)
        # In the last row, a price is expected of all instruments with a price the day before: it is often incomplete.
        due = (rows >= first) & ((rows <= last) | (rows == last + 1))
        expected, present = due.sum(axis=1), priced.sum(axis=1)
        for row in np.flatnonzero((present > 0) & (present < limit.half_day * expected)):
            text = f"only {present[row]} of {expected[row]} instruments have a price: half a day?"
            findings.append(PriceFinding(str(days[row]), text, "half day"))
    return findings


def snapshot_problems(snapshots: Sequence[tuple[str, str, np.ndarray, np.ndarray]]) -> list[Problem]:
    """Return the overlaps in instruments and days between snapshots, with the number of days that differ."""
    problems = []
    by_instrument: dict[str, list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for snapshot, instrument, days, closes in snapshots:
        for other, other_days, other_closes in by_instrument.setdefault(instrument, []):
            _, first, second = np.intersect1d(days, other_days, return_indices=True)
            if first.size:
                differ = int((closes[first] != other_closes[second]).sum())
                text = f"snapshots {other} and {snapshot} overlap on {first.size} days and differ on {differ}"
                problems.append(Problem(instrument, f"{text}; a store holds one snapshot"))
        by_instrument[instrument].append((snapshot, days, closes))
    return problems


def mixed_snapshots(
    snapshots: Sequence[object], instruments: np.ndarray, days: np.ndarray, closes: np.ndarray, owner: str = "a store"
) -> list[Problem]:
    """Return the problem that rows come from several snapshots, with their overlaps."""
    of, kinds = np.array(snapshots, dtype=object), sorted(set(snapshots), key=str)
    series = [
        (str(kind), str(name), days[at], closes[at]) for kind in kinds
        for name in sorted(set(instruments[of == kind]), key=str) if (at := (of == kind) & (instruments == name)).any()
    ]  # fmt: skip
    named = f"{owner} holds one snapshot (got {', '.join(map(str, kinds))})"
    return [Problem("snapshot", named), *snapshot_problems(series)]


class ShownHistory(Result):
    """Notebook display of a price store: instruments by class, and days."""

    __slots__ = ()
    listings: tuple[Listing, ...]
    days: np.ndarray

    def _name(self) -> str:
        return "Market"

    def _parts(self) -> Iterator[Part]:
        yield Heading(self._name())
        days = f"{self.days[0]} to {self.days[-1]}" if self.days.size else "no day"
        yield f"{count(len(self.listings))} instruments, {count(self.days.size)} days: {days}"
        counts = Counter(listing.asset_class for listing in self.listings)
        rows = tuple((CLASS_NAMES[name], count(counts[name])) for name in CLASS_NAMES if name in counts)
        yield Grid(("Class", "Instruments"), rows, frozenset({1}))
