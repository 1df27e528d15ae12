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

SUBSECTORS: dict[AssetClass, dict[str, int]] = {
    "EQ": {
        "large caps": 9,
        "small caps": 9,
        "growth": 9,
        "value": 9,
        "technology": 9,
        "health care": 9,
        "financials": 9,
        "energy companies": 9,
        "industrials": 9,
        "staples": 9,
        "discretionary": 9,
        "utilities": 9,
        "developed abroad": 9,
        "emerging": 9,
    },
    "BO": {"government": 6, "corporate": 5, "inflation-linked": 2, "mortgage": 2},
    "CO": {"energy": 4, "precious metals": 4, "industrial metals": 4, "agriculture": 4},
    "CR": {"major coins": 4, "platforms": 4, "payments": 4},
    "RE": {"diversified": 4, "residential": 3, "commercial": 3},
    "CA": {"bills": 2, "money market": 2},
}
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
                stem = next(stems)
                listed, delisted = _life(asset_class, place)
                name = f"{stem} {sub.title()} {_LAST_WORD[asset_class]}"
                found.append(Listing(stem.upper(), asset_class, sub, name, listed, delisted))
                place += 1
    return tuple(found)


def _life(asset_class: AssetClass, place: int) -> tuple[date, date | None]:
    """First and last trading day of the instrument at this place of its class."""
    listed, delisted = FIRST_DAY, None
    if asset_class == "EQ" and place % 7 == 3:
        listed = FIRST_DAY + timedelta(days=200 + 130 * (place // 7))
    elif asset_class == "CR" and place > 0:
        listed = date(2017, 1, 2) + timedelta(days=110 * place)
    if (asset_class, place) in {("EQ", 25), ("EQ", 88)}:
        delisted = date(2019, 6, 28) if place == 25 else date(2023, 9, 15)
    elif (asset_class, place) == ("CR", 9):
        delisted = date(2024, 11, 22)
    return listed, delisted


def class_members(listings: Iterable[Listing]) -> dict[AssetClass, np.ndarray]:
    """The column numbers of each class, for every class that has any."""
    of = np.array([one.asset_class for one in listings])
    return {one: np.flatnonzero(of == one) for one in CLASSES if (of == one).any()}


# The policy rate of the synthetic market: steps at meetings, tied to the stress windows.


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
            rate = max(rate + _step(rng, day, rate, pandemic, tightening), floor)
        found[day] = rate
    return found


def _step(rng: np.random.Generator, day: int, rate: float, pandemic: Window, tightening: Window) -> float:
    """What one meeting decides."""
    if pandemic.first <= day <= pandemic.last:
        return -1.0 if rate > 1.0 else -0.5
    if day < pandemic.first:
        return 0.25 if rng.random() < 0.3 and rate < 2.5 else 0.0
    if tightening.first - 60 <= day <= tightening.last:
        return float(rng.choice([0.5, 0.75]))
    if day > tightening.last + 220:
        return -0.25 if rng.random() < 0.5 and rate > 2.5 else 0.0
    return 0.0
