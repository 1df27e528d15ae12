"""How the reference agents write numbers and lists. Every printed figure is the stored one, rounded for display."""

from __future__ import annotations

from collections.abc import Sequence

_COUNTS = (
    "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip


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


def move(ratio: float) -> str:
    """A return in words: the direction, and the size unless it rounds to nothing.

    >>> move(0.0421), move(-0.031), move(0.0001)
    ('up 4.2%', 'down 3.1%', 'unchanged')
    """
    size = percent(abs(ratio))
    if size == "0.0%":
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


def opening(text: str) -> str:
    """``text`` with a capital first letter.

    >>> opening("all rise")
    'All rise'
    """
    return text[:1].upper() + text[1:]
