"""A season that somebody else ran, as its log states it: books, fills, baselines, and checks of the one by the other.

An importer's decisions say what was decided and why. A log that states books and has prices gives this beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from assaymark.portfolio.broker import CheckKind

EQUAL_WEIGHT: Final = "equal weight"
CASH: Final = "cash"

BookState = Literal["ok", "not stated"]
"""``not stated``: the log states no book on that day, and the one before it is carried on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFill:
    """One logged action that was carried out: signed units. ``price`` is None where nobody knows it."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBook:
    """The stated book after the last step of a day, and what it was worth then.

    ``stale`` names symbols without a price at that moment, valued at their last known one.
    """

    day: str
    agent: str
    state: BookState
    cash: float
    nav: float
    positions: Mapping[str, float]
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCheck:
    """How many checks of one kind were made of one agent's log, and how many passed.

    ``mismatches`` are (record id, sentence).
    """

    agent: str
    kind: CheckKind
    checks: int
    passed: int
    mismatches: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrack:
    """One track of a log.

    Attributes
    ----------
    capital, currency : float, str
        What each agent began with.
    universe : tuple of str
        The symbols that have prices.
    days : mapping of record id to str
        The day of each decision, where it was made.
    baselines : tuple of RecordedBook
        Books that nobody decided about; ``agent`` is the baseline's name.
    """

    name: str
    capital: float
    currency: str
    universe: tuple[str, ...]
    days: Mapping[str, str]
    fills: tuple[RecordedFill, ...] = ()
    books: tuple[RecordedBook, ...] = ()
    baselines: tuple[RecordedBook, ...] = ()
    checks: tuple[RecordedCheck, ...] = field(default=())


class ReadTrack(Protocol):
    """From the bytes of files to one track; pure. What an import would refuse is left out here."""

    def __call__(self, files: Mapping[str, bytes], track: str) -> RecordedTrack:
        """One track of the log in ``files``."""
        ...
