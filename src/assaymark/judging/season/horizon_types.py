"""The nouns of a horizon: steps as they are recorded, and as judges are shown them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, Protocol

from assaymark.errors import InputError, Problem
from assaymark.judging.season.market_lines import MarketLines
from assaymark.records import Action, Constraint, Decision, Rationale, sha256_text

AuditState = Literal["replaced", "kept"]

BOOK_STAGES: Final = ("holdings", "cash_after")
"""The parts of a decision in which a log states the book after it: units by symbol, and cash."""


ORDER: Final = "order"
"""The kind of a fill that an order asked for."""


class Filled(Protocol):
    """A fill of a broker: signed units, their price where it is known, and the cost in cash."""

    @property
    def symbol(self) -> str:
        """What was traded, or should have been."""
        ...

    @property
    def quantity(self) -> float:
        """Units; below 0 sold."""
        ...

    @property
    def price(self) -> float | None:
        """Per unit; None where the record has none."""
        ...

    @property
    def cost(self) -> float:
        """In cash."""
        ...


class Refused(Protocol):
    """An order that was not carried out, and the word for why."""

    @property
    def symbol(self) -> str:
        """What was traded, or should have been."""
        ...

    @property
    def reason(self) -> str:
        """A word."""
        ...


class Held(Protocol):
    """A book: cash, and units of each symbol."""

    @property
    def cash(self) -> float:
        """In the currency of the book."""
        ...

    @property
    def positions(self) -> Mapping[str, float]:
        """Units by symbol; below 0 short."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step as it was recorded: what was decided, and what the broker made of it. ``book`` is the one after."""

    day: str
    decision: Decision
    fills: Sequence[Filled] = ()
    rejections: Sequence[Refused] = ()
    book: Held | None = None


@dataclass(frozen=True, slots=True)
class HorizonFill:
    """What was traded: signed units, their price where the record has one, and the cost in cash.

    A ``kind`` other than ``order`` is no deed of the agent: a split, a dividend, an instrument that ended.
    """

    symbol: str
    quantity: float
    price: float | None
    cost: float
    kind: str = ORDER


@dataclass(frozen=True, slots=True)
class HorizonRejection:
    """What was not traded, and the word for why."""

    symbol: str
    reason: str


@dataclass(frozen=True, slots=True)
class HorizonBook:
    """Cash, and units of each symbol in alphabetical order.

    Its value is left out: over a horizon that is the result, and results are for the outcome call alone.
    """

    cash: float
    positions: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonStep:
    """One step, blinded. ``number`` counts from 1.

    ``record_id``, ``context_id`` and ``decided_at`` tie it to the records and are never rendered. ``stated`` holds the
    numbers of the decision's structured parts, ``constraints`` the rules it was under.
    """

    number: int
    day: str
    record_id: str
    context_id: str
    decided_at: datetime
    actions: tuple[Action, ...]
    stated: str
    texts: tuple[Rationale, ...]
    fills: tuple[HorizonFill, ...]
    rejections: tuple[HorizonRejection, ...]
    book: HorizonBook | None
    market: MarketLines
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What blinding did with one name: how often it was replaced or kept in this record, and why."""

    name: str
    state: AuditState
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Horizon:
    """One agent's record in order. It does not say whose; `PlannedHorizonCall` does.

    ``mandate`` is the prompt that all agents of the season were given, ``before`` the book before the first step where
    the record shows one. ``audit`` lists what blinding replaced and kept.
    """

    steps: tuple[HorizonStep, ...]
    mandate: str = ""
    before: HorizonBook | None = None
    audit: tuple[AuditLine, ...] = field(default=(), compare=False)

    @property
    def first(self) -> int:
        """The number of the first step."""
        return self.steps[0].number

    @property
    def last(self) -> int:
        """The number of the last step."""
        return self.steps[-1].number

    @property
    def id(self) -> str:
        """sha256 over the records and steps it is made of."""
        return sha256_text("\n".join([self.mandate, *(f"{one.number}\t{one.record_id}" for one in self.steps)]))

    def between(self, first: int, last: int) -> Horizon:
        """The steps ``first`` to ``last``, with the book at the boundary: a week of it, or a part of a long one.

        Raises
        ------
        InputError
            There is no such step.
        """
        chosen = tuple(step for step in self.steps if first <= step.number <= last)
        if not chosen:
            raise InputError(
                "horizon", [Problem("steps", f"none from {first} to {last} (has {self.first}..{self.last})")]
            )
        held = [step.book for step in self.steps if step.number < first and step.book is not None]
        return replace(self, steps=chosen, before=held[-1] if held else self.before)
