"""Words around a number: canonical forms, stop words, direction words, horizons, and the segmentation of a text."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from assaymark.records import Instrument

_TABLES = tomllib.loads((files("assaymark.judging.evidence") / "lexicon.toml").read_text(encoding="utf-8"))
LISTS: dict[str, frozenset[str]] = {name: frozenset(words.split()) for name, words in _TABLES["words"].items()}
"""The closed word lists by name."""

SYNONYMS: dict[str, str] = _TABLES["synonyms"]

STOP = LISTS["stop"]

DOWN = LISTS["down"]
UP = LISTS["up"]
SPREAD = LISTS["spread"]
CHANGE = LISTS["change"]
CONDITION = LISTS["condition"]

CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Kana, Han and Hangul, as the content of a character class: scripts without spaces between words."""

# a run of one of these scripts is a separate word, so that an adjacent Latin name or figure is not merged with it
_TOKEN = re.compile(rf"[^\W_{CJK}]+(?:&[^\W_{CJK}]+)*|[{CJK}]+")
_HORIZON = re.compile(r"([0-9]{1,4})([a-z]+)\Z")
_SPACED_HORIZON = re.compile(
    r"(?<![A-Za-z0-9.,])([0-9]{1,4}|[A-Za-z]{3,9})[ \-](?:trading[ \-])?"
    r"(days?|d|sessions?|weeks?|wks?|months?|mos?|years?|yrs?)(?![A-Za-z0-9])",
    re.IGNORECASE,
)
# 3月 is March and 2025年 a year; neither is a time span, nor is the 2日 of a date
_CJK_HORIZON = re.compile(r"(?<![A-Za-z0-9.,月])([0-9]{1,4})(?:个?(?:交易)?([日天周季])|个(月)|(?<![0-9]{3})(年))")
SPELLED = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "twelve": "12", "twenty": "20", "thirty": "30", "sixty": "60", "ninety": "90",
}  # fmt: skip
_SPAN_UNITS = {"d": "d", "s": "d", "w": "w", "m": "m", "y": "y"}
_CJK_UNITS = {"日": (1, "d"), "天": (1, "d"), "周": (1, "w"), "月": (1, "m"), "季": (3, "m"), "年": (1, "y")}
_WIDE = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}
_WIDE |= {ord(wide): ord(narrow) for wide, narrow in zip("％．＋－＄＆", "%.+-$&", strict=True)}
_WIDE_ANY = re.compile(f"[{''.join(map(chr, _WIDE))}]")
_WIDE_COMMA = re.compile("(?<=[0-9０-９])，(?=[０-９]{3})")
_SPAN_LETTERS = ("d", "w", "m", "y")
_WIDEST_CLAUSE = 120
_LONGEST_WORD = 40
_NONE: frozenset[str] = frozenset()


def normalise_width(text: str) -> str:
    """Replace full-width digits, letters and number signs by their usual forms; all offsets stay."""
    if text.isascii() or not _WIDE_ANY.search(text):
        return text
    return _WIDE_COMMA.sub(",", text).translate(_WIDE)


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of a text in order: the start, the lower-case form and the canonical form of each."""

    starts: list[int]
    lowers: list[str]
    forms: list[str]

    def end(self, at: int) -> int:
        """Return the end offset of word ``at``."""
        return self.starts[at] + len(self.lowers[at])

    def within(self, start: int, end: int) -> tuple[int, int]:
        """Return the index range of the words that start in ``start:end``."""
        first = bisect_left(self.starts, start)
        return first, bisect_left(self.starts, end, first)


@lru_cache(maxsize=1 << 14)
def canonical(lower: str) -> str:
    """Return a lower-case word in its form for comparison: synonyms joined, plural s dropped, horizons as ``5d``."""
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
    """Return True if a canonical word is a horizon such as ``5d`` or ``52w``."""
    return word[-1:] in _SPAN_LETTERS and word[:-1].isascii() and word[:-1].isdigit()


def lower_text(text: str) -> str:
    """Lower-case a text letter by letter, so that letters whose lower case is longer do not shift offsets."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def words_of(text: str) -> TextWords:
    """Split ``text`` into words with their canonical forms, in order."""
    return words_in(lower_text(text), 0, len(text))


def words_in(lower: str, start: int, end: int) -> TextWords:
    """Split ``lower[start:end]``, a lower-case text, into words with their offsets in the whole text."""
    tokens = list(_TOKEN.finditer(lower, start, end))
    lowers = [token[0] for token in tokens]
    return TextWords([token.start() for token in tokens], lowers, list(map(canonical, lowers)))


class SpokenHorizons:
    """Horizons that a text writes as number and unit: 5 sessions, six months, 52-week, 21日, 3个月."""

    __slots__ = ("_ends", "_found", "_starts")

    def __init__(self, text: str, start: int = 0, end: int | None = None) -> None:
        stop = len(text) if end is None else end
        spans = []
        for match in _SPACED_HORIZON.finditer(text, start, stop):
            count = SPELLED.get(match[1].lower(), match[1])
            if count.isascii() and count.isdigit():
                spans.append((match.start(), match.end(), count + _SPAN_UNITS[match[2][0].lower()]))
        if not text.isascii():
            for match in _CJK_HORIZON.finditer(text, start, stop):
                times, unit = _CJK_UNITS[match[2] or match[3] or match[4]]
                spans.append((match.start(), match.end(), f"{int(match[1]) * times}{unit}"))
            spans.sort()
        self._starts = [span[0] for span in spans]
        self._ends = [span[1] for span in spans]
        self._found = [span[2] for span in spans]

    def within(self, start: int, end: int) -> frozenset[str]:
        """Return the names of the horizons that lie wholly in ``start:end``."""
        return frozenset(name for _, _, name in self.spans(start, end)) if self._found else _NONE

    def spans(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """Return start, end and name of each horizon that lies wholly in ``start:end``."""
        first, last = bisect_left(self._starts, start), bisect_right(self._ends, end)
        return list(zip(self._starts[first:last], self._ends[first:last], self._found[first:last], strict=True))


NO_HORIZONS = SpokenHorizons("")
SPAN_WORDS = frozenset(
    ("day", "days", "d", "session", "sessions", "week", "weeks", "wk", "wks", "month", "months", "mo", "mos", "year",
     "years", "yr", "yrs")
)  # fmt: skip
"""Unit words of spoken horizons; a text in a script with spaces that has none of them has no spoken horizon."""


@lru_cache(maxsize=1 << 14)
def content_words(text: str) -> frozenset[str]:
    """Return a text's canonical words that can name a subject: no stop words, no figures but maturities (``10y``)."""
    spoken = {horizon for horizon in SpokenHorizons(text).within(0, len(text)) if horizon[-1] == "y"}
    words = map(canonical, set(_TOKEN.findall(text.lower())))
    return frozenset(filter(is_content, words)) | spoken


@lru_cache(maxsize=1 << 14)
def is_content(word: str) -> bool:
    """Return True if a canonical word can name a subject."""
    if word[:1].isdigit():
        return word[-1:] == "y" and is_horizon(word)
    return len(word) > 1 and word not in STOP


BREAK = re.compile(
    r"[,;()|，、]|\s[\-–—/]\s|(?<![A-Za-z0-9])(?:and|but|while|whereas|versus|vs|though|although|despite|after|with|plus"
    r"|against|compared)(?![A-Za-z0-9])"
)
"""The commas, brackets and conjunctions that separate clauses."""


def clause_in(breaks: Sequence[tuple[int, int]], start: int, end: int, sentence: tuple[int, int]) -> tuple[int, int]:
    """Return the part of ``sentence`` around a span that contains no break."""
    at = bisect_left(breaks, (start, start))
    left = max(sentence[0], start - _WIDEST_CLAUSE)
    if at and breaks[at - 1][1] > left:
        left = breaks[at - 1][1]
    right = min(sentence[1], end + _WIDEST_CLAUSE)
    while at < len(breaks) and breaks[at][0] < end:
        at += 1
    if at < len(breaks) and breaks[at][0] < right:
        right = breaks[at][0]
    return left, right


_LONGEST_NAME = 200
_UNSPACED = re.compile(f"[{CJK}]")
_GENERIC = LISTS["generic"]

_COMMON = (_GENERIC | STOP) - {"cash"}


class SubjectMention(NamedTuple):
    """One mention of an instrument: its span, and the instrument's row in the subject index."""

    start: int
    end: int
    row: int


@dataclass(frozen=True, slots=True)
class Subjects:
    """Instruments by every name that a text may use for them, built by `index_subjects`."""

    ids: tuple[str, ...]
    phrases: Mapping[str, tuple[tuple[tuple[str, ...], int], ...]]
    symbols: Mapping[str, int]
    words: tuple[frozenset[str], ...]
    rows: Mapping[str, int]
    unspaced: Mapping[str, int]

    def mentions(self, text: str, words: TextWords) -> list[SubjectMention]:
        """Return the instruments that these words of ``text`` name, leftmost longest match, in order."""
        hits = []
        phrases, symbols, forms, lowers = self.phrases, self.symbols, words.forms, words.lowers
        at, stop = 0, len(forms)
        while at < stop:
            if forms[at] not in phrases and lowers[at] not in symbols:
                at += 1
                continue
            length, row = self._longest(text, words, at, stop)
            if length:
                hits.append(SubjectMention(words.starts[at], words.end(at + length - 1), row))
            at += length or 1
        if not self.unspaced or not words.starts:
            return hits
        # Names in scripts without spaces occur inside other words.
        start, end = words.starts[0], words.end(len(words.starts) - 1)
        inside = [
            SubjectMention(match.start(), match.end(), self.unspaced[lower_text(match.group())])
            for match in _unspaced_pattern(tuple(self.unspaced)).finditer(text, start, end)
        ]
        outside = [hit for hit in hits if not any(hit.start < other.end and other.start < hit.end for other in inside)]
        return sorted(outside + inside, key=lambda mention: mention.start)

    def first(self, text: str, position: int) -> SubjectMention | None:
        """Return the instrument whose name begins at ``position``, if any."""
        match = _TOKEN.match(text, position)
        head = match.group().lower() if match else ""
        if canonical(head) not in self.phrases and head not in self.symbols and head.isascii():
            return None
        line_end = text.find("\n", position, position + _LONGEST_NAME)
        part = text[position : line_end if line_end >= 0 else position + _LONGEST_NAME]
        mentions = self.mentions(part, words_of(part))
        if not mentions or mentions[0].start:
            return None
        return SubjectMention(position, position + mentions[0].end, mentions[0].row)

    def row_named(self, word: str) -> int:
        """Return the row whose whole name, symbol or id is this one canonical word, or -1."""
        for phrase, row in self.phrases.get(word, ()):
            if phrase == (word,):
                return row
        return self.symbols.get(word, -1)

    def _longest(self, text: str, words: TextWords, at: int, stop: int) -> tuple[int, int]:
        """Return the number of words from ``at`` on that name an instrument, and its row; (0, -1) if none do."""
        for phrase, row in self.phrases.get(words.forms[at], ()):
            if at + len(phrase) <= stop and tuple(words.forms[at : at + len(phrase)]) == phrase:
                return len(phrase), row
        row = self.symbols.get(words.lowers[at], -1)
        if row < 0:
            return 0, -1
        # A symbol counts if it is written as a ticker: in capitals, in a column name, or followed by a horizon.
        start, end = words.starts[at], words.end(at)
        written = text[start:end].isupper() or text[end : end + 1] == "_"
        return (1, row) if written or (at + 1 < len(words.forms) and is_horizon(words.forms[at + 1])) else (0, -1)


@lru_cache(maxsize=256)
def index_subjects(instruments: tuple[Instrument, ...]) -> Subjects:
    """Index the names of ``instruments``: ids, symbols, names, aliases, and words that only one of them uses."""
    owners: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        # Whole names of an instrument as canonical words; a name also counts without its generic last words.
        forms = {_phrase(instrument.id), _phrase(instrument.id.replace("_", "")), _phrase(instrument.name)}
        symbol = (instrument.symbol or "").lower()
        forms |= {_phrase(alias) for alias in instrument.aliases if alias.lower() != symbol}
        names_name = words_of(instrument.name[:_LONGEST_NAME]).forms
        while len(names_name) > 1 and names_name[-1] in _GENERIC:
            names_name.pop()
            forms.add(tuple(names_name))
        for phrase in {phrase for phrase in forms if phrase and not (len(phrase) == 1 and phrase[0] in _COMMON)}:
            owners[phrase].add(row)
    # Words in the names of exactly one instrument, such as Korea for South Korea.
    texts = (" ".join((item.id, item.symbol or "", item.name, *item.aliases)) for item in instruments)
    words = tuple(
        frozenset(form for form in words_of(text[:400]).forms if len(form) > 1 and form not in STOP) for text in texts
    )
    users: dict[str, set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        for word in words[row] - {canonical((instrument.symbol or "").lower())}:
            users[word].add(row)
    for word in sorted(users):
        if len(users[word]) == 1 and word not in _GENERIC and len(word) > 2:
            owners.setdefault((word,), users[word])
    unspaced: dict[str, set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        for name in (instrument.id, instrument.name, *instrument.aliases):
            if len(name) > 1 and _UNSPACED.search(name):
                unspaced[lower_text(name[:_LONGEST_NAME])].add(row)
    by_first: dict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
    for phrase in sorted(owners, key=lambda p: (-len(p), p)):
        if len(owners[phrase]) == 1:
            by_first[phrase[0]].append((phrase, next(iter(owners[phrase]))))
    symbols = _unique_rows(instrument.id.lower() for instrument in instruments)
    symbols |= _unique_rows((instrument.symbol or "").lower() for instrument in instruments)
    return Subjects(
        ids=tuple(instrument.id for instrument in instruments),
        phrases=MappingProxyType({first: tuple(phrases) for first, phrases in by_first.items()}),
        symbols=MappingProxyType(symbols),
        words=words,
        rows=MappingProxyType({instrument.id: row for row, instrument in enumerate(instruments)}),
        unspaced=MappingProxyType({name: next(iter(rows)) for name, rows in unspaced.items() if len(rows) == 1}),
    )


@lru_cache(maxsize=256)
def _unspaced_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern of the names, longest first, with a word boundary at a Latin letter or digit."""
    parts = []
    for name in sorted(names, key=lambda name: (-len(name), name)):
        before = "(?<![A-Za-z0-9])" if name[0].isascii() else ""
        after = "(?![A-Za-z0-9])" if name[-1].isascii() else ""
        parts.append(f"{before}{re.escape(name)}{after}")
    return re.compile("|".join(parts), re.IGNORECASE)


def _unique_rows(names: Iterable[str]) -> dict[str, int]:
    """Map each name that occurs exactly once to its row."""
    listed = list(names)
    counts = Counter(listed)
    return {name: row for row, name in enumerate(listed) if name and counts[name] == 1}


def _phrase(text: str) -> tuple[str, ...]:
    return tuple(words_of(text[:_LONGEST_NAME]).forms)
