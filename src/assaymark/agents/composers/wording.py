"""How the reference agents write numbers, lists and the arithmetic of a book. Printed figures are the true ones."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.agents.composers.observation import Observation
from assaymark.portfolio.orders import Settlement
from assaymark.records import Action

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_VERBS = {"buy": "buy", "sell": "sell", "short": "short", "cover": "cover", "close": "close"}


def percent(ratio: float, digits: int = 1) -> str:
    """A ratio as percent, without a negative zero.

    >>> percent(0.0421), percent(-0.0004), percent(0.05, 0)
    ('4.2%', '0.0%', '5%')
    """
    text = f"{ratio * 100:.{digits}f}"
    return f"{text.lstrip('-') if float(text) == 0 else text}%"


def plain(number: float) -> str:
    """A dimensionless number to two places, without a negative zero.

    >>> plain(0.834), plain(-0.001)
    ('0.83', '0.00')
    """
    return f"{round(number, 2) + 0.0:.2f}"


def money(amount: float) -> str:
    """An amount with two places and separators.

    >>> money(25310.0)
    '25,310.00'
    """
    return f"{round(amount, 2) + 0.0:,.2f}"


def move(ratio: float, digits: int = 2) -> str:
    """A return in words: the direction, and the size unless it rounds to nothing.

    >>> move(0.0042), move(-0.0031), move(0.00001)
    ('up 0.42%', 'down 0.31%', 'unchanged')
    """
    size = percent(abs(ratio), digits)
    if float(size[:-1]) == 0:
        return "unchanged"
    return f"{'up' if ratio > 0 else 'down'} {size}"


def count(number: int) -> str:
    """A small count as a word.

    >>> count(3), count(40)
    ('three', '40')
    """
    return _COUNTS[number] if 0 <= number < len(_COUNTS) else str(number)


def listing(items: Sequence[str]) -> str:
    """Items as a list in a sentence.

    >>> listing(["A"]), listing(["A", "B"]), listing(["A", "B", "C"])
    ('A', 'A and B', 'A, B and C')
    """
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def spoken(action: Action) -> str:
    """An order as a phrase.

    >>> spoken(Action(instrument="Asset A", kind="buy", quantity=12.5))
    'buy 12.5 units of Asset A'
    """
    if action.kind == "close":
        return f"close {action.instrument}"
    return f"{_VERBS.get(action.kind, action.kind)} {action.quantity:g} units of {action.instrument}"


def reconciliation(seen: Observation, after: Settlement) -> list[str]:
    """The arithmetic of the book after its orders, one sentence a limit."""
    largest = max(after.weights, key=lambda name: after.weights[name], default="")
    found = [
        f"Cash {money(after.cash)} less cost {money(after.cost)} leaves {money(after.residual)}.",
        f"Exposure {money(after.exposure)} on equity of {money(after.equity)} is {percent(after.leverage)}.",
        f"Leverage {plain(after.leverage)} against a cap of {plain(seen.limit('max_leverage', 1.0))}.",
    ]
    if largest:
        share, cap = percent(after.weights[largest]), percent(seen.limit("max_weight", 1.0))
        found.append(f"Largest position {largest} at {share} against a cap of {cap}.")
    floor = percent(seen.limit("min_cash", 0.0))
    found.append(f"Cash is {percent(after.residual / after.equity)} of equity against a floor of {floor}.")
    return found
