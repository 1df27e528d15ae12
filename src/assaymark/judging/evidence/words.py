"""Words around a number: canonical forms, stop words, direction words, horizons, and the pieces a text falls into."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

from assaymark.judging.evidence.lexicon import STOP, SYNONYMS

_TOKEN = re.compile(r"[^\W_]+(?:&[^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?;](?=\s|\Z)\s*|\n+|[。；！？]|\s\|\s")
_BREAK = re.compile(
    r"[,;()|，、]|\s[\-–—/]\s|(?<![A-Za-z0-9])(?:and|but|while|whereas|versus|vs|though|although|despite|after|with|plus"
    r"|against|compared)(?![A-Za-z0-9])"
)
_HORIZON = re.compile(r"([0-9]{1,4})([a-z]+)\Z")
_SPACED_HORIZON = re.compile(
    r"(?<![A-Za-z0-9.,])([0-9]{1,4}|[A-Za-z]{3,9})[ \-](?:trading[ \-])?"
    r"(days?|d|sessions?|weeks?|wks?|months?|mos?|years?|yrs?)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SPELLED = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "twenty": "20", "thirty": "30", "sixty": "60", "ninety": "90",
}  # fmt: skip
_SPAN_UNITS = {"d": "d", "s": "d", "w": "w", "m": "m", "y": "y"}
_SPAN_LETTERS = ("d", "w", "m", "y")
_WIDEST_SENTENCE = 300
_WIDEST_CLAUSE = 120
_LONGEST_WORD = 40
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text in order: where each starts, its lower-case form and its canonical form."""

    starts: list[int]
    lowers: list[str]
    forms: list[str]

    def end(self, at: int) -> int:
        """Where word ``at`` ends."""
        return self.starts[at] + len(self.lowers[at])

    def within(self, start: int, end: int) -> tuple[int, int]:
        """The range of the words that start in ``start:end``."""
        first = bisect_left(self.starts, start)
        return first, bisect_left(self.starts, end, first)


@lru_cache(maxsize=1 << 14)
def canonical(lower: str) -> str:
    """The form under which a lower-case word is compared: synonyms joined, plural s dropped, horizons as ``5d``.

    >>> canonical("payrolls"), canonical("sectors"), canonical("5s"), canonical("52wk")
    ('payroll', 'sector', '5d', '52w')
    """
    if len(lower) > _LONGEST_WORD:
        return lower[:_LONGEST_WORD]
    joined = SYNONYMS.get(lower)
    if joined is not None:
        return joined
    span = _HORIZON.match(lower)
    if span and span[2] in ("d", "s", "w", "wk", "wks", "m", "mo", "mos", "y", "yr", "yrs", "day", "session"):
        return span[1] + _SPAN_UNITS[span[2][0]]
    if len(lower) > 3 and lower.endswith("s") and not lower.endswith(("ss", "us", "is")):
        stem = lower[:-1]
        return SYNONYMS.get(stem, stem)
    return lower


def is_horizon(word: str) -> bool:
    """Whether a canonical word is a horizon such as ``5d`` or ``52w``."""
    return word[-1:] in _SPAN_LETTERS and word[:-1].isascii() and word[:-1].isdigit()


def words_of(text: str) -> Words:
    """The words of ``text`` with their canonical forms, in order.

    >>> words_of("XLE: +5% in 21 sessions").forms
    ['xle', '5', 'in', '21', 'session']
    """
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length; offsets must not move
        lower = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    found = [(match.start(), match.group()) for match in _TOKEN.finditer(lower)]
    lowers = [word for _, word in found]
    return Words([start for start, _ in found], lowers, list(map(canonical, lowers)))


class SpokenHorizons:
    """Horizons of a text that are written in two words: 5 sessions, six months, 52-week.

    >>> sorted(SpokenHorizons("over five sessions and 52-week").within(0, 30))
    ['52w', '5d']
    """

    __slots__ = ("_ends", "_found", "_starts")

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._found: list[str] = []
        for match in _SPACED_HORIZON.finditer(text):
            count = _SPELLED.get(match[1].lower(), match[1])
            if count.isascii() and count.isdigit():
                self._starts.append(match.start())
                self._ends.append(match.end())
                self._found.append(count + _SPAN_UNITS[match[2][0].lower()])

    def within(self, start: int, end: int) -> frozenset[str]:
        """Those that stand wholly in ``start:end``."""
        if not self._found:
            return _NONE
        first, last = bisect_left(self._starts, start), bisect_right(self._ends, end)
        return frozenset(self._found[first:last])


@lru_cache(maxsize=1 << 14)
def content_words(text: str) -> frozenset[str]:
    """Canonical words of a text that can name a subject: no stop words, no figures; maturities such as ``10y`` can.

    >>> sorted(content_words("the 10-year Treasury yield rose to 4.63%"))
    ['10y', 'treasury', 'yield']
    """
    spoken = {horizon for horizon in SpokenHorizons(text).within(0, len(text)) if horizon[-1] == "y"}
    words = map(canonical, set(_TOKEN.findall(text.lower())))
    return frozenset(filter(is_content, words)) | spoken


@lru_cache(maxsize=1 << 14)
def is_content(word: str) -> bool:
    """Whether a canonical word can name a subject."""
    if word[:1].isdigit():
        return word[-1:] == "y" and is_horizon(word)
    return len(word) > 1 and word not in STOP


class Pieces:
    """A text cut into sentences and clauses, found by position; no piece is wider than a few hundred characters."""

    __slots__ = ("_breaks", "_ends", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] = [0]
        self._ends: list[int] = []
        for match in _SENTENCE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))
        self._breaks = [(match.start(), match.end()) for match in _BREAK.finditer(text)]

    def sentence(self, position: int) -> tuple[int, int]:
        """The sentence around ``position``, at most 300 characters to either side."""
        at = bisect_right(self._starts, position) - 1
        start, end = self._starts[at], max(self._ends[at], position)
        return max(start, position - _WIDEST_SENTENCE), min(end, position + _WIDEST_SENTENCE)

    def clause(self, start: int, end: int, sentence: tuple[int, int]) -> tuple[int, int]:
        """The piece of ``sentence`` around the span that no comma, bracket or conjunction interrupts."""
        at = bisect_left(self._breaks, (start, start))
        left = self._breaks[at - 1][1] if at else 0
        while at < len(self._breaks) and self._breaks[at][0] < end:
            at += 1
        right = self._breaks[at][0] if at < len(self._breaks) else len(self.text)
        return max(left, sentence[0], start - _WIDEST_CLAUSE), min(right, sentence[1], end + _WIDEST_CLAUSE)
