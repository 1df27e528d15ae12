"""What stands around a number: its clause, the horizon and field words in it, its direction, and who it is about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from assaymark.judging.evidence.numbers import Number
from assaymark.judging.evidence.words import (
    CJK,
    CONDITION,
    DOWN,
    NO_HORIZONS,
    SPAN_WORDS,
    UP,
    Breaks,
    Pieces,
    SpokenHorizons,
    Subjects,
    is_content,
    is_horizon,
    lower_of,
    words_in,
)

_HEADER_END = re.compile(r"\s{0,2}(?:[:|\[]|\(|[\-–—]\s|\Z|\n)")
_LINE_HEAD = re.compile(r"^(?P<lead>(?:[^\w\n]|_){0,3})(?=[^\W_])", re.MULTILINE)
_UNSPACED = re.compile(f"[{CJK}]")
_MARGIN = 64
_DIRECTION_REACH = 4
_TRAIL_REACH = 4
_CONDITION_REACH = 3
_LEVEL = frozenset(("to", "at", "near", "versus", "vs", "from", "is", "was", "than"))
_SPAN_WORD = re.compile(r"[0-9]|(?:the|last|past|prior|one|two|three|four|five|six|ten|twelve|twenty)\Z")
_SEGMENT_END = re.compile(r"[;()|，、]|,(?![0-9])")
_JOINED = re.compile(r"[\s\-–—/:.%]{0,4}\Z")


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of one number.

    ``words`` are the canonical words of its clause, ``lead`` and ``trail`` its lower-case words before and after the
    number, ``horizons`` those named there. ``named`` are the instruments that the clause names (nearest first),
    ``rows`` all that the number can be about in order of preference, ``default`` the one that the line is about (or
    -1). ``direction`` is -1, 0 or 1 as the printed sign or the words of movement say. What few numbers need is
    computed when asked for.
    """

    number: Number
    words: frozenset[str]
    lead: list[str]
    trail: list[str]
    horizons: frozenset[str]
    named: tuple[int, ...]
    rows: tuple[int, ...]
    default: int
    direction: int
    place: Place

    @property
    def lower(self) -> frozenset[str]:
        """The lower-case words of the clause."""
        return frozenset(without_spans(self.lead) + without_spans(self.trail))

    @property
    def wide(self) -> frozenset[str]:
        """The content words of the whole sentence."""
        words = self.place.read.sentence_at(self.number.start).words
        return frozenset(filter(is_content, words.forms[slice(*words.within(*self.place.sentence))]))

    @property
    def conditional(self) -> bool:
        """Whether the number is a level that something may cross, rather than a report."""
        before = self.place.read.text[max(0, self.number.start - 2) : self.number.start].strip()
        return before[-1:] in ("<", ">", "≥", "≤") or not CONDITION.isdisjoint(
            without_spans(self.lead)[-_CONDITION_REACH:]
        )

    @property
    def rivals(self) -> frozenset[int]:
        """The instruments of the sentence, without those of other segments that have a number of their own."""
        read, (start, end) = self.place.read, self.place.sentence
        here = _segment(read.text, self.number.start, start, end)
        sentence = read.sentence_at(self.number.start)
        found = set()
        for mention in sentence.mentions[bisect_left(sentence.starts, start) : bisect_left(sentence.starts, end)]:
            there = _segment(read.text, mention.start, start, end)
            if there == here or not _near(read.numbers, *there):
                found.add(mention.row)
        return frozenset(found)

    @property
    def crowd(self) -> int:
        """How many numbers the clause holds, counted no further than three."""
        left, right = self.place.clause
        near = self.place.read.numbers[max(0, self.place.at - 1) : self.place.at + 2]
        return sum(left <= other.start and other.end <= right for other in near)


class Place(NamedTuple):
    """The place of a number: its text, its index there, and the spans around it."""

    read: Reading
    at: int
    sentence: tuple[int, int]
    clause: tuple[int, int]


class _Sentence:
    """One sentence that holds a number: its words, breaks, horizons and the instruments it names."""

    __slots__ = ("breaks", "end", "mentions", "spoken", "start", "starts", "words")

    def __init__(self, text: str, lower: str, subjects: Subjects, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.words = words_in(lower, start, end)
        self.breaks = Breaks(text, start, end)
        # the search is dear and few sentences have one
        told = bool(_UNSPACED.search(text, start, end)) or not SPAN_WORDS.isdisjoint(self.words.lowers)
        self.spoken = SpokenHorizons(text, start, end) if told else NO_HORIZONS
        self.mentions = subjects.mentions(text, self.words)
        self.starts = [mention.start for mention in self.mentions]


class Reading:
    """One text with its numbers. Only the sentences with a number in them are read, each when it is reached."""

    __slots__ = ("_last", "_lower", "_subjects", "headers", "numbers", "pieces", "text")

    def __init__(self, text: str, numbers: Sequence[Number], subjects: Subjects, owner: int) -> None:
        self.text = text
        self.numbers = numbers
        self.pieces = Pieces(text)
        self.headers = Headers(text, subjects, owner)
        self._lower = lower_of(text)
        self._subjects = subjects
        self._last: _Sentence | None = None

    def sentence_at(self, position: int) -> _Sentence:
        """The sentence around a position; the one last asked for is kept."""
        last = self._last
        if last is None or not last.start <= position < last.end:
            last = self._last = _Sentence(self.text, self._lower, self._subjects, *self.pieces.whole(position))
        return last

    def near(self, start: int, end: int) -> Sequence[Number]:
        """The numbers that start in a span."""
        return _near(self.numbers, start, end)

    def key(self, at: int) -> tuple[object, ...]:
        """What the surroundings of number ``at`` depend on: where two keys are equal, so are the findings."""
        number, text = self.numbers[at], self.text
        first, stop = self.pieces.whole(number.start)
        start, end = self.pieces.sentence(number.start)
        before = self.numbers[at - 1].end - start if at else -1
        after = self.numbers[at + 1].start if at + 1 < len(self.numbers) else end
        return (
            text[max(first, start - _MARGIN) : min(stop, end + _MARGIN)],
            start - first if start - first < _MARGIN else _MARGIN,
            text[max(0, number.start - 2) : number.start],
            number.start - start,
            number.end - number.start,
            max(before, -1),
            min(after, end) - start,
            self.headers.row_at(number.start),
            number.unit,
            number.value,
            number.step,
            number.bare,
        )

    def around(self, at: int) -> Around | None:
        """The surroundings of number ``at``; None where its digits are part of a name, such as Nikkei 225."""
        numbers, text = self.numbers, self.text
        number = numbers[at]
        sentence = self.sentence_at(number.start)
        words, mentions, starts = sentence.words, sentence.mentions, sentence.starts
        if mentions:
            last = bisect_right(starts, number.start) - 1
            if last >= 0 and number.end <= mentions[last].end:
                return None
        window = self.pieces.sentence(number.start)
        clause = left, right = sentence.breaks.clause(number.start, number.end, window)
        # The clause goes up to the numbers beside this one, unless nothing but a dash or slash stands between.
        if at and numbers[at - 1].end > left and not _JOINED.match(text, numbers[at - 1].end, number.start):
            left = numbers[at - 1].end
        following = numbers[at + 1].start if at + 1 < len(numbers) else right
        if following < right and not _JOINED.match(text, number.end, following):
            right = following
        first, last = words.within(left, right)
        before = bisect_left(words.starts, number.start, first, last)
        after = bisect_left(words.starts, number.end, before, last)
        forms = frozenset(words.forms[first:before] + words.forms[after:last])
        lead, trail = words.lowers[first:before], words.lowers[after:last]
        named: tuple[int, ...] = ()
        if mentions:
            inside = mentions[bisect_left(starts, left) : bisect_left(starts, right)]
            if len(inside) > 1:
                start, end = number.start, number.end
                inside = sorted(inside, key=lambda m: (min(abs(start - m.end), abs(m.start - end)), m.start))
            named = tuple(dict.fromkeys(mention.row for mention in inside))
        # The number can be about the clause's own names, else the last one before it; and the line's owner.
        rows = named
        if not rows and starts:
            nearest = bisect_left(starts, number.start) - 1
            if nearest >= 0 and starts[nearest] >= window[0]:
                rows = (mentions[nearest].row,)
        default = self.headers.row_at(number.start)
        return Around(
            number=number,
            words=forms,
            lead=lead,
            trail=trail,
            horizons=frozenset([form for form in forms if form[0] <= "9" and is_horizon(form)])
            | sentence.spoken.within(left, right),
            named=named,
            rows=rows if default < 0 or default in rows else (*rows, default),
            default=default,
            direction=_direction(number, lead, trail),
            place=Place(self, at, window, clause),
        )


def without_spans(words: list[str]) -> list[str]:
    """Words without the "over" of "over 5d" and "over the last month", which compares nothing."""
    if "over" not in words:
        return words
    return [word for word, after in pairwise([*words, ""]) if word != "over" or not _SPAN_WORD.match(after)]


def _segment(text: str, position: int, start: int, end: int) -> tuple[int, int]:
    """The piece of ``text[start:end]`` around a position that no comma, semicolon or bracket interrupts."""
    left = start
    for mark in _SEGMENT_END.finditer(text, start, end):
        if mark.start() >= position:
            return left, mark.start()
        left = mark.end()
    return left, end


def _near(numbers: Sequence[Number], start: int, end: int) -> Sequence[Number]:
    """The numbers that start in a span."""
    first = bisect_left(numbers, start, key=lambda number: number.start)
    return numbers[first : bisect_left(numbers, end, key=lambda number: number.start)]


def _direction(number: Number, lead: Sequence[str], trail: Sequence[str]) -> int:
    """-1 or 1 from the printed sign, else from the nearest word of movement; 0 for a level or neither."""
    if number.signed:
        return -1 if any(dash in number.quote[:4] for dash in "-−–－") else 1
    if lead and lead[-1] in _LEVEL:
        return 0
    for word in (*reversed(lead[-_DIRECTION_REACH:]), *trail[:_TRAIL_REACH]):
        if word in DOWN:
            return -1
        if word in UP:
            return 1
    return 0


class Headers:
    """Who a line is about, from its beginning: ``GOLD: ...``, ``XLE (selected): ...``. Later lines inherit it."""

    __slots__ = ("_rows", "_starts")

    def __init__(self, text: str, subjects: Subjects, owner: int) -> None:
        self._starts = [0]
        self._rows = [owner]
        for match in _LINE_HEAD.finditer(text):
            named = subjects.first(text, match.end())
            if named is not None and _HEADER_END.match(text, named.end):
                self._starts.append(match.start("lead"))
                self._rows.append(named.row)

    def row_at(self, position: int) -> int:
        """The row that a position's line belongs to, -1 for nobody's."""
        return self._rows[bisect_right(self._starts, position) - 1]
