"""How numbers, scores and lists read in a sentence about a claim."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.records import AGGREGATE

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def measure_words(dimension: str) -> str:
    """How a sentence calls the score of a dimension."""
    return "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")


def count_words(count: int) -> str:
    """Small numbers as words, others as digits."""
    return _SMALL[count] if count < len(_SMALL) else str(count)


def counted(count: int, noun: str) -> str:
    """So many of something, in words."""
    return f"{count_words(count)} {noun}{'' if count == 1 else 's'}"


def agent_words(count: int) -> str:
    """So many agents, in words."""
    return counted(count, "agent")


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def number(value: float) -> str:
    """A statistic with two decimals and a true minus."""
    return f"{value:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign, three decimals."""
    return f"{value:+.3f}".replace("-", "−")


def interval_words(low: float | None, high: float | None) -> str:
    """An interval behind a difference, or nothing."""
    return "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"


def share_words(share: float) -> str:
    """A share of records in percent."""
    return f"{100 * share:.1f} %"


def p_words(p: float) -> str:
    """A p-value as it is read."""
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p >= 0.9995 else f"p = {p:.3f}".replace("0.", ".", 1)
