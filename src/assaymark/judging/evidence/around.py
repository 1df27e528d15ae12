"""What stands around a number: its clause, the horizon and field words in it, its direction, and who it is about."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assaymark.judging.evidence.extract import Number
from assaymark.judging.evidence.lexicon import CONDITION, DOWN, UP
from assaymark.judging.evidence.subjects import Mention, Subjects
from assaymark.judging.evidence.words import Pieces, SpokenHorizons, is_content, is_horizon, words_of

_HEADER_END = re.compile(r"\s{0,2}(?:[:|\[]|\(|[\-–—]\s|\Z|\n)")
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
    place: _Place

    @property
    def lower(self) -> frozenset[str]:
        """The lower-case words of the clause."""
        return frozenset(without_spans(self.lead) + without_spans(self.trail))

    @property
    def wide(self) -> frozenset[str]:
        """The content words of the whole sentence."""
        words = self.place.read.words
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
        found = set()
        for mention in read.mentions[bisect_left(read.starts, start) : bisect_left(read.starts, end)]:
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a number stands: its text, its index there, and the spans around it."""

    read: _Text
    at: int
    sentence: tuple[int, int]
    clause: tuple[int, int]


class _Text:
    """One text, read once: its words, pieces, mentions and headers."""

    __slots__ = ("headers", "mentions", "numbers", "pieces", "spoken", "starts", "text", "words")

    def __init__(self, text: str, numbers: Sequence[Number], subjects: Subjects, owner: int) -> None:
        self.text = text
        self.numbers = numbers
        self.words = words_of(text)
        self.pieces = Pieces(text)
        self.spoken = SpokenHorizons(text)
        self.mentions = subjects.mentions(text, self.words)
        self.starts = [mention.start for mention in self.mentions]
        self.headers = Headers(text, self.mentions, owner)


def without_spans(words: list[str]) -> list[str]:
    """Words without the "over" of "over 5d" and "over the last month", which compares nothing.

    >>> without_spans(["return", "over", "5d", "over", "spy"])
    ['return', '5d', 'over', 'spy']
    """
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


def surroundings(
    text: str, numbers: Sequence[Number], subjects: Subjects, owners: Mapping[str, int]
) -> Iterator[Around]:
    """The surroundings of each number of ``text``; ``owners`` maps whole texts to the row they are about."""
    read = _Text(text, numbers, subjects, owners.get(text.strip(), -1))
    for at, number in enumerate(numbers):
        if not _in_name(read, number):
            yield _around(read, at)


def _in_name(read: _Text, number: Number) -> bool:
    """Whether the digits belong to an instrument's name, such as Nikkei 225."""
    at = bisect_right(read.starts, number.start) - 1
    return at >= 0 and number.end <= read.mentions[at].end


def _around(read: _Text, at: int) -> Around:
    number = read.numbers[at]
    sentence = read.pieces.sentence(number.start)
    clause = read.pieces.clause(number.start, number.end, sentence)
    left, right = _cut_at_neighbours(read, at, *clause)
    words = read.words
    first, last = words.within(left, right)
    before = words.within(left, number.start)[1]
    after = min(words.within(number.start, number.end)[1], last)
    forms = frozenset(words.forms[first:before] + words.forms[after:last])
    lead, trail = words.lowers[first:before], words.lowers[after:last]
    named = _nearest_first(read.mentions[bisect_left(read.starts, left) : bisect_left(read.starts, right)], number)
    default = read.headers.row_at(number.start)
    return Around(
        number=number,
        words=forms,
        lead=lead,
        trail=trail,
        horizons=frozenset(filter(is_horizon, forms)) | read.spoken.within(left, right),
        named=named,
        rows=_rows(read, named, number, sentence[0], default),
        default=default,
        direction=_direction(number, lead, trail),
        place=_Place(read, at, sentence, clause),
    )


def _cut_at_neighbours(read: _Text, at: int, left: int, right: int) -> tuple[int, int]:
    """The clause up to the numbers beside this one, unless nothing but a dash or slash stands between."""
    numbers, text = read.numbers, read.text
    number = numbers[at]
    if at and numbers[at - 1].end > left and not _JOINED.match(text, numbers[at - 1].end, number.start):
        left = numbers[at - 1].end
    following = numbers[at + 1].start if at + 1 < len(numbers) else right
    if following < right and not _JOINED.match(text, number.end, following):
        right = following
    return left, right


def _nearest_first(inside: Sequence[Mention], number: Number) -> tuple[int, ...]:
    """Instruments by their distance to the number."""
    if len(inside) < 2:
        return tuple(mention.row for mention in inside)
    ordered = sorted(inside, key=lambda m: (min(abs(number.start - m.end), abs(m.start - number.end)), m.start))
    return tuple(dict.fromkeys(mention.row for mention in ordered))


def _rows(read: _Text, named: tuple[int, ...], number: Number, start: int, default: int) -> tuple[int, ...]:
    """Whom the number can be about: the clause's own names, else the last one before it; and the line's owner."""
    rows = list(named)
    if not rows:
        at = bisect_left(read.starts, number.start) - 1
        if at >= 0 and read.starts[at] >= start:
            rows.append(read.mentions[at].row)
    if default >= 0:
        rows.append(default)
    return tuple(dict.fromkeys(rows))


def _direction(number: Number, lead: Sequence[str], trail: Sequence[str]) -> int:
    """-1 or 1 from the printed sign, else from the nearest word of movement; 0 for a level or neither."""
    if number.signed:
        return -1 if any(dash in number.quote[:4] for dash in "-−–") else 1
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

    def __init__(self, text: str, mentions: Sequence[Mention], owner: int) -> None:
        self._starts = [0]
        self._rows = [owner]
        for mention in mentions:
            line = _line_start(text, mention.start)
            if line >= 0 and _HEADER_END.match(text, mention.end):
                self._starts.append(line)
                self._rows.append(mention.row)

    def row_at(self, position: int) -> int:
        """The row that a position's line belongs to, -1 for nobody's."""
        return self._rows[bisect_right(self._starts, position) - 1]


def _line_start(text: str, position: int) -> int:
    """Where the line starts, if nothing but a mark and blanks stands before ``position``; else -1."""
    before = text[max(0, position - 4) : position]
    lead = before.rsplit("\n", 1)[-1]
    at_start = "\n" in before or position <= 4
    return position - len(lead) if at_start and not any(c.isalnum() for c in lead) else -1
