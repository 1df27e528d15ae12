"""Words around a number: canonical forms, stop words, direction words, horizons, and the pieces a text falls into."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache

from assaymark.judging.evidence.lexicon import STOP, SYNONYMS

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Kana, Han and Hangul, as the inside of a character class: scripts that put no blank between words."""

# a run of one of these scripts is a word of its own, so that a Latin name or a figure beside it stays whole
_TOKEN = re.compile(rf"[^\W_{CJK}]+(?:&[^\W_{CJK}]+)*|[{CJK}]+")
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
# 3月 is March and 2025年 a year, and neither is a span; nor is the 2日 of a date
_CJK_HORIZON = re.compile(r"(?<![A-Za-z0-9.,月])([0-9]{1,4})(?:个?(?:交易)?([日天周季])|个(月)|(?<![0-9]{3})(年))")
SPELLED = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "twenty": "20", "thirty": "30", "sixty": "60", "ninety": "90",
}  # fmt: skip
_SPAN_UNITS = {"d": "d", "s": "d", "w": "w", "m": "m", "y": "y"}
_CJK_UNITS = {"日": (1, "d"), "天": (1, "d"), "周": (1, "w"), "月": (1, "m"), "季": (3, "m"), "年": (1, "y")}
_WIDE = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
_WIDE |= {ord(wide): ord(narrow) for wide, narrow in zip("％．＋－＄＆", "%.+-$&", strict=True)}
_WIDE_COMMA = re.compile("(?<=[0-9０-９])，(?=[０-９]{3})")
_SPAN_LETTERS = ("d", "w", "m", "y")
_WIDEST_SENTENCE = 300
_WIDEST_CLAUSE = 120
_LONGEST_WORD = 40
_NONE: frozenset[str] = frozenset()


def narrow(text: str) -> str:
    """The text with full-width digits, letters and number signs in their usual form; no offset moves.

    >>> narrow("３.１％ of ＢＲＩＡＲ，１，２００")
    '3.1% of BRIAR，1,200'
    """
    if text.isascii():
        return text
    return _WIDE_COMMA.sub(",", text).translate(_WIDE)


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


def lower_of(text: str) -> str:
    """The text in lower case, letter for letter: a few letters change their length, and offsets must not move."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def words_of(text: str) -> Words:
    """The words of ``text`` with their canonical forms, in order.

    >>> words_of("XLE: +5% in 21 sessions").forms
    ['xle', '5', 'in', '21', 'session']
    """
    return words_in(lower_of(text), 0, len(text))


def words_in(lower: str, start: int, end: int) -> Words:
    """The words of ``lower[start:end]``, a lower-case text, with their places in the whole of it."""
    found = [(match.start(), match.group()) for match in _TOKEN.finditer(lower, start, end)]
    lowers = [word for _, word in found]
    return Words([place for place, _ in found], lowers, [canonical(word) for word in lowers])


def word_at(text: str, position: int) -> str:
    """The lower-case word that begins at a position of ``text``, empty where none does."""
    match = _TOKEN.match(text, position)
    return match.group().lower() if match else ""


class SpokenHorizons:
    """Horizons of a text that are written in two words: 5 sessions, six months, 52-week, 21日, 3个月.

    >>> sorted(SpokenHorizons("over five sessions and 52-week").within(0, 30))
    ['52w', '5d']
    """

    __slots__ = ("_ends", "_found", "_starts")

    def __init__(self, text: str, start: int = 0, end: int | None = None) -> None:
        stop = len(text) if end is None else end
        found = []
        for match in _SPACED_HORIZON.finditer(text, start, stop):
            count = SPELLED.get(match[1].lower(), match[1])
            if count.isascii() and count.isdigit():
                found.append((match.start(), match.end(), count + _SPAN_UNITS[match[2][0].lower()]))
        if not text.isascii():
            for match in _CJK_HORIZON.finditer(text, start, stop):
                times, unit = _CJK_UNITS[match[2] or match[3] or match[4]]
                found.append((match.start(), match.end(), f"{int(match[1]) * times}{unit}"))
            found.sort()
        self._starts = [one[0] for one in found]
        self._ends = [one[1] for one in found]
        self._found = [one[2] for one in found]

    def within(self, start: int, end: int) -> frozenset[str]:
        """Those that stand wholly in ``start:end``."""
        return frozenset(name for _, _, name in self.spans(start, end)) if self._found else _NONE

    def spans(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """Start, end and name of those that stand wholly in ``start:end``."""
        first, last = bisect_left(self._starts, start), bisect_right(self._ends, end)
        return list(zip(self._starts[first:last], self._ends[first:last], self._found[first:last], strict=True))


NO_HORIZONS = SpokenHorizons("")
SPAN_WORDS = frozenset(
    ("day", "days", "d", "session", "sessions", "week", "weeks", "wk", "wks", "month", "months", "mo", "mos", "year",
     "years", "yr", "yrs")
)  # fmt: skip
"""The words without one of which a text in a script with blanks has no spoken horizon."""


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
    """A text cut into sentences, found by position; no piece is wider than a few hundred characters."""

    __slots__ = ("_ends", "_last", "_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._last = (0, -1, 0)
        self._starts: list[int] = [0]
        self._ends: list[int] = []
        for match in _SENTENCE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    def whole(self, position: int) -> tuple[int, int]:
        """The sentence around ``position``, however long."""
        start, stop, end = self._last
        if not start <= position < stop:
            at = bisect_right(self._starts, position) - 1
            start, end = self._starts[at], self._ends[at]
            stop = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.text) + 1
            self._last = start, stop, end
        return start, max(end, position)

    def sentence(self, position: int) -> tuple[int, int]:
        """The sentence around ``position``, at most 300 characters to either side."""
        start, end = self.whole(position)
        return max(start, position - _WIDEST_SENTENCE), min(end, position + _WIDEST_SENTENCE)

    def beside(self, position: int) -> tuple[str, str]:
        """The sentences before and after the one around ``position``, their near 300 characters."""
        at = bisect_right(self._starts, position) - 1
        before = self.text[max(self._starts[at - 1], self._ends[at - 1] - _WIDEST_SENTENCE) : self._ends[at - 1]]
        if at == 0:
            before = ""
        if at + 1 == len(self._starts):
            return before, ""
        start = self._starts[at + 1]
        return before, self.text[start : min(self._ends[at + 1], start + _WIDEST_SENTENCE)]


class Breaks:
    """The commas, brackets and conjunctions of a stretch of text, which cut it into clauses."""

    __slots__ = ("_found",)

    def __init__(self, text: str, start: int, end: int) -> None:
        self._found = [match.span() for match in _BREAK.finditer(text, start, end)]

    def clause(self, start: int, end: int, sentence: tuple[int, int]) -> tuple[int, int]:
        """The piece of ``sentence`` around the span that no comma, bracket or conjunction interrupts."""
        found = self._found
        at = bisect_left(found, (start, start))
        left = max(sentence[0], start - _WIDEST_CLAUSE)
        if at and found[at - 1][1] > left:
            left = found[at - 1][1]
        right = min(sentence[1], end + _WIDEST_CLAUSE)
        while at < len(found) and found[at][0] < end:
            at += 1
        if at < len(found) and found[at][0] < right:
            right = found[at][0]
        return left, right
