"""How numbers, scores and lists read in a sentence about a claim."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.records import AGGREGATE

_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def measure_words(dimension: str) -> str:
    """How a sentence calls the score of a dimension.

    >>> measure_words("aggregate"), measure_words("position_sizing")
    ('the overall score', 'position sizing')
    """
    return "the overall score" if dimension == AGGREGATE else dimension.replace("_", " ")


def count_words(count: int) -> str:
    """Small numbers as words, others as digits.

    >>> count_words(5), count_words(40)
    ('five', '40')
    """
    return _SMALL[count] if count < len(_SMALL) else str(count)


def counted(count: int, noun: str) -> str:
    """So many of something, in words.

    >>> counted(5, "agent"), counted(1, "agent")
    ('five agents', 'one agent')
    """
    return f"{count_words(count)} {noun}{'' if count == 1 else 's'}"


def agent_words(count: int) -> str:
    """So many agents, in words.

    >>> agent_words(5), agent_words(1)
    ('five agents', 'one agent')
    """
    return counted(count, "agent")


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    >>> listing(["a", "b", "c"]), listing(["a"])
    ('a, b and c', 'a')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def number(value: float) -> str:
    """A statistic with two decimals and a true minus.

    >>> number(-0.231), number(0.7168)
    ('−0.23', '0.72')
    """
    return f"{value:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign, three decimals.

    >>> signed(0.0182), signed(-2.81)
    ('+0.018', '−2.810')
    """
    return f"{value:+.3f}".replace("-", "−")


def interval_words(low: float | None, high: float | None) -> str:
    """An interval behind a difference, or nothing.

    >>> interval_words(-0.01, 0.09), interval_words(None, None)
    (' (−0.010 to +0.090)', '')
    """
    return "" if low is None or high is None else f" ({signed(low)} to {signed(high)})"


def share_words(share: float) -> str:
    """A share of records in percent.

    >>> share_words(0.844), share_words(1.0)
    ('84.4 %', '100.0 %')
    """
    return f"{100 * share:.1f} %"


def p_words(p: float) -> str:
    """A p-value as it is read.

    >>> p_words(0.00002), p_words(0.0412), p_words(1.0)
    ('p < .001', 'p = .041', 'p = 1')
    """
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p >= 0.9995 else f"p = {p:.3f}".replace("0.", ".", 1)
