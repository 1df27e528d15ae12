"""The nouns of a paper broker: a book, one day's bars, orders, the rules, and what came of the orders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from assaymark.errors import InputError, Problem
from assaymark.records import Action

FillAt = Literal["next_open", "close"]
Excess = Literal["reject", "cut"]
Reason = Literal[
    "bad-order",
    "bad-quantity",
    "unknown-symbol",
    "no-price",
    "stale-price",
    "short-forbidden",
    "not-held",
    "fraction",
    "beyond-holding",
    "beyond-cash",
    "beyond-weight",
    "beyond-exposure",
]

SIDES: Final = ("buy", "sell", "short", "cover", "close", "target")
"""What an order can ask for. ``close`` brings a position to nothing, ``target`` to a weight."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's prices of one symbol; ``age`` is how many days old they are, 0 for today's.

    A price that is not known is None. A held symbol without a bar of today is valued at its last one.
    """

    open: float | None
    high: float | None = None
    low: float | None = None
    close: float | None = None
    age: int = 0

    def at(self, fill: FillAt) -> float | None:
        """The price at which orders fill, or None where there is no positive finite one."""
        return _price(self.open if fill == "next_open" else self.close)


@dataclass(frozen=True, slots=True)
class Book:
    """What is held: cash in the book's currency, and units of each symbol (negative where it is short)."""

    cash: float
    positions: Mapping[str, float] = field(default_factory=dict)

    def nav(self, prices: Mapping[str, float]) -> float:
        """Cash, and the positions at ``prices``; every held symbol needs one."""
        return self.cash + math.fsum(units * prices[symbol] for symbol, units in self.positions.items())

    def acted(self, symbol: str, split: float = 1.0, dividend: float = 0.0) -> Book:
        """The book after a corporate action: ``split`` units for each one, then ``dividend`` in cash for each of them.

        A short position pays the dividend.

        >>> Book(5.0, {"A": 10.0}).acted("A", split=10.0, dividend=0.5)
        Book(cash=55.0, positions={'A': 100.0})
        """
        units = self.positions.get(symbol, 0.0) * split
        if not units:
            return self
        return Book(self.cash + units * dividend, {**self.positions, symbol: units})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a season's broker; each is a field of its plan.

    Attributes
    ----------
    fill
        ``next_open``: orders fill at the open of the bar after they were decided; ``close``: at its close.
    cost_bps
        Cost of each fill, in bps of its value.
    fractional, lot
        Whether any fraction of a unit may be traded; if not, only multiples of ``lot``. Closing a whole position is
        always allowed, for an odd remainder could otherwise never be sold.
    short
        Whether a position may be negative.
    max_weight
        Largest absolute value of one position over NAV after an order that makes it larger.
    max_exposure
        Largest sum of absolute position values over NAV after an order that makes it larger.
    excess
        What happens to an order beyond cash, holding, weight or exposure: it is rejected, or cut to what is allowed.
    max_age
        How many days old a price may be at which an order fills.

    Raises
    ------
    InputError
        A rule makes no sense; all problems at once.
    """

    fill: FillAt = "next_open"
    cost_bps: float = 0.0
    fractional: bool = True
    lot: float = 1.0
    short: bool = False
    max_weight: float | None = None
    max_exposure: float = 1.0
    excess: Excess = "reject"
    max_age: int = 0

    def __post_init__(self) -> None:
        problems = [
            Problem(f"rules.{name}", f"must be {wanted} (got {value!r})")
            for name, value, good, wanted in (
                ("fill", self.fill, self.fill in ("next_open", "close"), "next_open or close"),
                ("cost_bps", self.cost_bps, 0 <= self.cost_bps < 10_000, "from 0 to below 10000"),
                ("lot", self.lot, 0 < self.lot < math.inf, "positive and finite"),
                ("max_weight", self.max_weight, self.max_weight is None or 0 < self.max_weight <= 10, "in (0, 10]"),
                ("max_exposure", self.max_exposure, 0 < self.max_exposure <= 10, "in (0, 10]"),
                ("excess", self.excess, self.excess in ("reject", "cut"), "reject or cut"),
                ("max_age", self.max_age, self.max_age >= 0, "0 or more"),
            )
            if not good
        ]
        if problems:
            raise InputError("broker", problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One wish of an agent: units (``quantity``) or a fraction of NAV (``weight``), not both.

    ``close`` takes neither, ``target`` a weight. Nothing is checked here: an order that makes no sense is rejected
    when it is settled, with a reason that the agent can be shown.
    """

    symbol: str
    side: str
    quantity: float | None = None
    weight: float | None = None

    def __str__(self) -> str:
        size = "" if self.quantity is None else f" {shown(self.quantity)}"
        share = "" if self.weight is None else f" at weight {shown(self.weight)}"
        return f"{self.side!s:.20}{size} {self.symbol!s:.40}{share}"


def orders_of(actions: Iterable[Action]) -> tuple[Order, ...]:
    """The orders among the actions of a decision; ``hold`` and ``no_trade`` are none.

    >>> orders_of([Action(instrument="A", kind="target_weight", weight=0.2), Action(instrument="", kind="no_trade")])
    (Order(symbol='A', side='target', quantity=None, weight=0.2),)
    """
    return tuple(
        Order(
            symbol=one.instrument,
            side="target" if one.kind == "target_weight" else one.kind,
            quantity=one.quantity,
            weight=one.weight,
        )
        for one in actions
        if one.kind not in ("hold", "no_trade")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What was traded for the order at index ``order``: signed units, their price, and the cost in cash."""

    order: int
    symbol: str
    quantity: float
    price: float
    cost: float

    @property
    def cash(self) -> float:
        """What the fill adds to cash; negative for a purchase."""
        return -self.quantity * self.price - self.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was not traded for the order at index ``order``, and why.

    ``quantity`` is the signed units left undone: the whole order, or what was cut off it; None where the order names
    no amount that could be read. ``text`` is the sentence for the agent.
    """

    order: int
    symbol: str
    reason: Reason
    text: str
    quantity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A day's orders, settled. Amounts are in the book's currency, at the prices where orders fill.

    ``nav_before - costs`` equals ``nav`` but for floating-point rounding: a fill at its price moves value, and only its
    cost takes some away. ``stale`` names the held symbols that were valued at a price older than today's.
    """

    book: Book
    fills: tuple[Fill, ...]
    rejections: tuple[Rejection, ...]
    nav_before: float
    nav: float
    costs: float
    stale: tuple[str, ...] = ()


def _price(value: float | None) -> float | None:
    return value if value is not None and 0 < value < math.inf else None


def shown(value: object) -> str:
    """A number as an agent may have written it, which can be anything."""
    if isinstance(value, int) and abs(value) >= 1e15:
        return "a number of more than 15 digits"  # too long for a float, or for text
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else f"{value!r:.40}"
