"""The 183 invented instruments of the embedded market, in six asset classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np

from assaymark.records import Instrument

if TYPE_CHECKING:
    from assaymark.market.synthetic import Window


AssetClass = Literal["EQ", "BO", "CO", "CR", "RE", "CA"]

CLASSES: tuple[AssetClass, ...] = ("EQ", "BO", "CO", "CR", "RE", "CA")
"""The six asset classes, in the order of every table and matrix over classes."""

CLASS_NAMES: dict[AssetClass, str] = {
    "EQ": "equity",
    "BO": "bond",
    "CO": "commodity",
    "CR": "crypto",
    "RE": "real_estate",
    "CA": "cash",
}
"""The class names that records carry."""

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
"""Sub-sectors of each class with their numbers of instruments: 126, 15, 16, 12, 10 and 4."""

FIRST_DAY = date(2015, 1, 1)
LAST_DAY = date(2025, 12, 31)

_FIRST = ("Al", "Bre", "Cor", "Dun", "El", "Fen", "Gar", "Hol", "Is", "Jor", "Kel", "Lum", "Mor", "Nev")
_SECOND = ("bix", "dro", "fam", "gul", "hes", "kov", "lep", "mir", "nux", "pod", "quo", "ruv", "sib", "tav")
_LAST_WORD: dict[AssetClass, str] = {
    "EQ": "Equity Fund",
    "BO": "Bond Fund",
    "CO": "Commodity Note",
    "CR": "Coin",
    "RE": "Property Trust",
    "CA": "Cash Fund",
}


# By class and place in it.
_DELISTED = {("EQ", 25): date(2019, 6, 28), ("EQ", 88): date(2023, 9, 15), ("CR", 9): date(2024, 11, 22)}
_KINDS = frozenset(("equity", "etf", "mutualfund", "index", "cryptocurrency", "future", "spot", "not stated"))
"""What sources say an instrument is, in the place of its sub-sector."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One instrument and when it could be held."""

    id: str
    asset_class: AssetClass
    sub: str
    name: str
    listed: date
    delisted: date | None = None

    @property
    def sector(self) -> str:
        """The sub-sector, where the source says one; nothing where it says what kind of thing the instrument is."""
        return "" if self.sub.lower() in _KINDS else self.sub

    @property
    def calendar(self) -> str:
        """The days on which it trades."""
        return "daily" if self.asset_class == "CR" else "weekdays"

    def trades_on(self, day: date) -> bool:
        """Whether it is listed on ``day`` and not delisted before it."""
        return self.listed <= day and (self.delisted is None or day <= self.delisted)

    def seen_from(self, day: date) -> Listing:
        """The listing as it reads on ``day``: a delisting that lies ahead is not in it."""
        return replace(self, delisted=None) if self.delisted is not None and self.delisted > day else self

    def as_row(self, currency: str | None) -> dict[str, object]:
        """The row of a snapshot's table of instruments."""
        return {
            "id": self.id, "class": self.asset_class, "sub": self.sub, "name": self.name, "currency": currency,
            "listed": self.listed, "delisted": self.delisted, "calendar": self.calendar,
        }  # fmt: skip

    def as_record(self) -> Instrument:
        """The instrument as contexts carry it."""
        return Instrument(
            id=self.id, symbol=self.id, name=self.name, asset_class=CLASS_NAMES[self.asset_class], group=self.sub
        )


@lru_cache(maxsize=1)
def universe() -> tuple[Listing, ...]:
    """The 183 invented instruments, by class in the order of `CLASSES` (PortBench sections 2.1 and B)."""
    stems = (first + second for second, first in product(_SECOND, _FIRST))
    found: list[Listing] = []
    for asset_class, subs in SUBSECTORS.items():
        place = 0
        for sub, count in subs.items():
            for _ in range(count):
                stem, listed = next(stems), FIRST_DAY
                if asset_class == "EQ" and place % 7 == 3:
                    listed = FIRST_DAY + timedelta(days=200 + 130 * (place // 7))
                elif asset_class == "CR" and place > 0:
                    listed = date(2017, 1, 2) + timedelta(days=110 * place)
                name = f"{stem} {sub.title()} {_LAST_WORD[asset_class]}"
                gone = _DELISTED.get((asset_class, place))
                found.append(Listing(stem.upper(), asset_class, sub, name, listed, gone))
                place += 1
    return tuple(found)


def class_members(listings: Iterable[Listing]) -> dict[AssetClass, np.ndarray]:
    """The column numbers of each class, for every class that has any."""
    of = np.array([one.asset_class for one in listings])
    return {one: np.flatnonzero(of == one) for one in CLASSES if (of == one).any()}


MEETING_EVERY = 32
"""Weekdays from one meeting to the next, about eight a year."""


def policy_rate(rng: np.random.Generator, days: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """The policy rate in percent on each day, shape (n_days,); it changes at meetings, by quarters of a point."""
    _, pandemic, tightening = windows
    rate, floor = 0.5, 0.25
    found = np.empty(days.size)
    first = int(rng.integers(5, MEETING_EVERY))
    meetings = set(range(first, days.size, MEETING_EVERY))
    meetings |= {pandemic.first + 8, pandemic.first + 16}  # meetings called early
    for day in range(days.size):
        if day in meetings:
            step = 0.0
            if pandemic.first <= day <= pandemic.last:
                step = -1.0 if rate > 1.0 else -0.5
            elif day < pandemic.first:
                step = 0.25 if rng.random() < 0.3 and rate < 2.5 else 0.0
            elif tightening.first - 60 <= day <= tightening.last:
                step = float(rng.choice([0.5, 0.75]))
            elif day > tightening.last + 220:
                step = -0.25 if rng.random() < 0.5 and rate > 2.5 else 0.0
            rate = max(rate + step, floor)
        found[day] = rate
    return found
