"""The stated arithmetic of a text held against a book: cash less cost, exposure over equity, values against limits.

ValueBlindBench section 5.6 makes constraint awareness measurable as "cash X less trade cost Y = residual Z; exposure W
over equity E = P%; leverage within its cap". Here each of these is worked out, and looked for in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.judging.evidence.extract import Number
from assaymark.judging.oracle.figures import Figure, figures, sentences
from assaymark.portfolio.orders import Settlement
from assaymark.records import Constraint

Verdict = Literal["right", "wrong", "absent"]

QUANTITIES: Final = (
    "cash", "cost", "residual", "exposure", "equity", "leverage", "largest", "cash_share", "orders", "shorting",
    "leverage_cap", "weight_cap", "cash_floor", "orders_cap",
)  # fmt: skip
"""What a text can state: amounts, shares of equity, counts, that nothing is short, and the limits themselves.

``leverage`` is exposure over equity however it is printed (82.8%, 0.83x, levered 0.83).
"""

PAIRED: Final[Mapping[str, str]] = {
    "leverage": "leverage_cap",
    "largest": "weight_cap",
    "cash_share": "cash_floor",
    "orders": "orders_cap",
}
"""A value and the limit it is held against."""

_LIMITS: Final[Mapping[str, str]] = {
    "leverage_cap": "max_leverage",
    "weight_cap": "max_weight",
    "cash_floor": "min_cash",
    "orders_cap": "max_orders",
}
LIMITS: Final = frozenset(_LIMITS)
"""The quantities that are limits of the task."""

_SLACK = 1e-9
_MOST_QUOTES = 5
_NOT_SHORT = re.compile(
    r"\b(?:no|nothing|none|neither|never|not|without|zero)\b(?:\W+\w+){0,3}\W+short(?:s|ed|ing)?\b"
    r"|\blong[- ]only\b|\bno (?:position|holding|weight)s? (?:is |are |goes? )?below (?:zero|0)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One quantity: whether the text states it, and whether what it states is so.

    ``quotes`` are the first passages that state it, the wrong ones first. ``expected`` is its value in the book, a
    share for what is of equity; None where the task has no such limit. ``numbers`` are the right numbers as printed.
    Wrong is one wrong statement, whatever else is right.
    """

    quantity: str
    verdict: Verdict
    expected: float | None
    quotes: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Every quantity of `QUANTITIES` in their order, each right, wrong or absent."""

    parts: tuple[Part, ...]

    @property
    def right(self) -> frozenset[str]:
        """The quantities that are stated, and rightly so."""
        return frozenset(part.quantity for part in self.parts if part.verdict == "right")

    @property
    def wrong(self) -> frozenset[str]:
        """The quantities of which something wrong is stated."""
        return frozenset(part.quantity for part in self.parts if part.verdict == "wrong")

    @property
    def share(self) -> float | None:
        """The right quantities among those that are stated; None if none is."""
        stated = len(self.right) + len(self.wrong)
        return len(self.right) / stated if stated else None

    def part(self, quantity: str) -> Part:
        """One quantity by name."""
        return self.parts[QUANTITIES.index(quantity)]


def reconcile(
    text: str, settlement: Settlement, constraints: Iterable[Constraint], *, names: Sequence[str] = ()
) -> Reconciliation:
    """Which quantities of a book a text states, and which of them rightly.

    A number is right if the value of the book lies within half of its last printed digit. Shares may be of the equity
    after the orders or before their fees. A cost may be the whole, without fees, or what was bought or sold. A number
    that two readings could claim is read in the one that holds.

    Parameters
    ----------
    text : str
        Any text, from anybody; beyond `figures.MOST_CHARACTERS` it is not read. Sentences that suppose something, and
        what is dressed up as a section of a prompt, state nothing.
    settlement : Settlement
        The book after the orders.
    constraints : iterable of Constraint
        The limits of the task.
    names : sequence of str
        Further names of instruments besides those held.

    Returns
    -------
    Reconciliation

    Examples
    --------
    >>> from assaymark.portfolio.orders import settle
    >>> from assaymark.records import Action, Portfolio
    >>> book = Portfolio(currency="USD", cash=1000.0, nav=1000.0)
    >>> after = settle(book, {"A": 50.0}, [Action(instrument="A", kind="buy", quantity=10.0)])
    >>> cap = Constraint(kind="max_leverage", limit=1.2, unit="multiple")
    >>> text = "Cash 1,000.00 less cost 500.00 leaves 400.00. Levered 0.5x against a cap of 1.2x."
    >>> found = reconcile(text, after, [cap])
    >>> sorted(found.right), sorted(found.wrong)
    (['cash', 'cost', 'leverage', 'leverage_cap'], ['residual'])
    """
    book = _Book.of(settlement, constraints)
    right: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    wrong: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    numbers: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    for figure in figures(text, tuple(dict.fromkeys((*settlement.positions, *names)))):
        known = [reading for reading in figure.readings if book.accepted[reading]]
        held = next((reading for reading in known if book.bears_out(reading, figure)), None)
        if held is not None:
            right[held].append(figure.quote)
            numbers[held].append(figure.number.quote)
        elif known and figure.certain and known[0] == figure.readings[0]:
            wrong[known[0]].append(figure.quote)
    (right if book.none_short else wrong)["shorting"] += _not_short(text)
    return Reconciliation(tuple(_part(name, book, right[name], wrong[name], numbers[name]) for name in QUANTITIES))


def _part(name: str, book: _Book, right: list[str], wrong: list[str], numbers: list[str]) -> Part:
    """One quantity with its verdict."""
    verdict: Verdict = "wrong" if wrong else "right" if right else "absent"
    quotes = tuple(dict.fromkeys([*wrong, *right]))[:_MOST_QUOTES]
    return Part(name, verdict, next(iter(book.accepted[name]), None), quotes, tuple(numbers))


def _not_short(text: str) -> list[str]:
    """The claims that nothing is sold short."""
    return [match.group() for sentence in sentences(text) for match in _NOT_SHORT.finditer(sentence)]


@dataclass(frozen=True, slots=True)
class _Book:
    """The values that each quantity may be stated with, the exact one first; none where the task has no such limit."""

    accepted: Mapping[str, tuple[float, ...]]
    largest: frozenset[str]
    none_short: bool

    @classmethod
    def of(cls, after: Settlement, constraints: Iterable[Constraint]) -> _Book:
        """The values of a settlement, and the limits it is held against."""
        equities = tuple(dict.fromkeys(one for one in (after.equity, after.equity + after.fees) if one > 0))
        sizes = {name: abs(weight) for name, weight in after.weights.items() if math.isfinite(weight)}
        top = max(sizes.values(), default=0.0)
        limits = {rule.kind: rule.limit for rule in constraints}
        accepted = {
            "cash": (after.cash,),
            "cost": (after.cost, after.cost - after.fees, after.bought, after.sold, after.bought + after.sold),
            "residual": (after.residual,),
            "exposure": (after.exposure,),
            "equity": (after.equity, after.equity + after.fees),
            "leverage": tuple(after.exposure / equity for equity in equities),
            "largest": (*(top * after.equity / equity for equity in equities), top * after.equity),
            "cash_share": tuple(after.residual / equity for equity in equities),
            "orders": (float(after.orders),),
            "shorting": (float(sum(units < 0 for units in after.positions.values())),),
            **{name: (limits[kind],) if kind in limits else () for name, kind in _LIMITS.items()},
        }
        finite = {name: tuple(filter(math.isfinite, values)) for name, values in accepted.items()}
        largest = frozenset(name for name, size in sizes.items() if size >= top - _SLACK)
        return cls(finite, largest, all(units >= 0 for units in after.positions.values()))

    def bears_out(self, quantity: str, figure: Figure) -> bool:
        """Whether a figure is right as a statement of a quantity."""
        if quantity == "largest" and figure.names and not self.largest.intersection(figure.names):
            return False
        return any(_agrees(figure.number, value, signed=quantity != "cost") for value in self.accepted[quantity])


def _agrees(number: Number, value: float, *, signed: bool) -> bool:
    """Whether a value lies within half of the last printed digit of a number; a cost is a size."""
    factor = 0.01 if number.unit == "percent" else 1.0
    stated, half = number.value * factor, number.step * factor / 2
    away = abs(stated - value) if signed else abs(abs(stated) - abs(value))
    return away <= half * (1 + _SLACK) + abs(value) * 1e-12
