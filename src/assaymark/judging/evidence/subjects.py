"""Which instrument a piece of text speaks of: an index of names, and the mentions found with it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from assaymark.judging.evidence.lexicon import STOP, word_set
from assaymark.judging.evidence.words import CJK, Words, canonical, is_horizon, lower_of, word_at, words_of
from assaymark.records import Instrument

_LONGEST_NAME = 200
_UNSPACED = re.compile(f"[{CJK}]")
_GENERIC = word_set(
    """
    sector etf etfs fund funds index equity equities stock stocks shares us u.s the cash like broad total trust and
    other market markets bond bonds do not invest large small mid cap factor term short long intermediate grade value
    growth developed government yield high low volatility quality momentum active stable real
    """
)


@dataclass(frozen=True, slots=True)
class Mention:
    """One place where an instrument is named: the span, and its row in the subject index."""

    start: int
    end: int
    row: int


@dataclass(frozen=True, slots=True)
class Subjects:
    """Instruments by every name a text may use for them. Build it with `index_subjects`.

    ``phrases`` maps a first word to the phrases that start with it, longest first; ``symbols`` count only where they
    are written as tickers, since IT or ALL are words as well. ``unspaced`` are the names in scripts that put no blank
    between words; they are looked for inside other words too.
    """

    ids: tuple[str, ...]
    phrases: Mapping[str, tuple[tuple[tuple[str, ...], int], ...]]
    symbols: Mapping[str, int]
    words: tuple[frozenset[str], ...]
    rows: Mapping[str, int]
    unspaced: Mapping[str, int]

    def mentions(self, text: str, words: Words) -> list[Mention]:
        """The instruments that these words of ``text`` name, leftmost longest, in order."""
        found = []
        phrases, symbols, forms, lowers = self.phrases, self.symbols, words.forms, words.lowers
        at, stop = 0, len(forms)
        while at < stop:
            if forms[at] not in phrases and lowers[at] not in symbols:
                at += 1
                continue
            length, row = self._longest(text, words, at, stop)
            if length:
                found.append(Mention(words.starts[at], words.end(at + length - 1), row))
            at += length or 1
        return self._with_unspaced(text, words, found) if self.unspaced and words.starts else found

    def _with_unspaced(self, text: str, words: Words, found: list[Mention]) -> list[Mention]:
        """``found`` and the names in scripts without blanks, which stand in the midst of other words."""
        start, end = words.starts[0], words.end(len(words.starts) - 1)
        inside = [
            Mention(match.start(), match.end(), self.unspaced[lower_of(match.group())])
            for match in _unspaced_pattern(tuple(self.unspaced)).finditer(text, start, end)
        ]
        kept = [one for one in found if not any(one.start < other.end and other.start < one.end for other in inside)]
        return sorted(kept + inside, key=lambda mention: mention.start)

    def first(self, text: str, position: int) -> Mention | None:
        """The instrument that the word at ``position`` begins to name, if it does."""
        head = word_at(text, position)
        if canonical(head) not in self.phrases and head not in self.symbols and head.isascii():
            return None
        line_end = text.find("\n", position, position + _LONGEST_NAME)
        part = text[position : line_end if line_end >= 0 else position + _LONGEST_NAME]
        found = self.mentions(part, words_of(part))
        if not found or found[0].start:
            return None
        return Mention(position, position + found[0].end, found[0].row)

    def alone(self, word: str) -> int:
        """The row whose whole name, symbol or id is this one canonical word, or -1."""
        for phrase, row in self.phrases.get(word, ()):
            if phrase == (word,):
                return row
        return self.symbols.get(word, -1)

    def _longest(self, text: str, words: Words, at: int, stop: int) -> tuple[int, int]:
        """How many words from ``at`` on name which instrument; (0, -1) for none."""
        for phrase, row in self.phrases.get(words.forms[at], ()):
            if at + len(phrase) <= stop and tuple(words.forms[at : at + len(phrase)]) == phrase:
                return len(phrase), row
        row = self.symbols.get(words.lowers[at], -1)
        return (1, row) if row >= 0 and _as_symbol(text, words, at) else (0, -1)


def _as_symbol(text: str, words: Words, at: int) -> bool:
    """Whether a word is written as a ticker: in capitals, within a column name, or with a horizon behind it."""
    start, end = words.starts[at], words.end(at)
    if text[start:end].isupper() or text[end : end + 1] == "_":
        return True
    return at + 1 < len(words.forms) and is_horizon(words.forms[at + 1])


@lru_cache(maxsize=256)
def index_subjects(instruments: tuple[Instrument, ...]) -> Subjects:
    """An index of the names of ``instruments``: ids, symbols, names, aliases, and words that only one of them uses.

    Of two instruments that share a whole name, neither is found by it: a shared name names nobody.

    >>> gold = Instrument(id="GOLD", symbol="IAU", name="Gold Trust")
    >>> found = index_subjects((gold,))
    >>> text = "Gold rose, IAU too"
    >>> [(text[m.start : m.end], found.ids[m.row]) for m in found.mentions(text, words_of(text))]
    [('Gold', 'GOLD'), ('IAU', 'GOLD')]
    """
    owners: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        for phrase in _names(instrument):
            owners[phrase].add(row)
    for word, row in _single_words(instruments):
        owners.setdefault((word,), {row})
    by_first: dict[str, list[tuple[tuple[str, ...], int]]] = defaultdict(list)
    for phrase in sorted(owners, key=lambda p: (-len(p), p)):
        if len(owners[phrase]) == 1:
            by_first[phrase[0]].append((phrase, next(iter(owners[phrase]))))
    symbols = _unique(instrument.id.lower() for instrument in instruments)
    symbols |= _unique((instrument.symbol or "").lower() for instrument in instruments)
    return Subjects(
        ids=tuple(instrument.id for instrument in instruments),
        phrases=MappingProxyType({first: tuple(phrases) for first, phrases in by_first.items()}),
        symbols=MappingProxyType(symbols),
        words=tuple(_words(instrument) for instrument in instruments),
        rows=MappingProxyType({instrument.id: row for row, instrument in enumerate(instruments)}),
        unspaced=MappingProxyType(_unspaced(instruments)),
    )


def _unspaced(instruments: Sequence[Instrument]) -> dict[str, int]:
    """Names with a character of a script without blanks, lower case, that one instrument alone uses."""
    users: dict[str, set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        for name in (instrument.id, instrument.name, *instrument.aliases):
            if len(name) > 1 and _UNSPACED.search(name):
                users[lower_of(name[:_LONGEST_NAME])].add(row)
    return {name: next(iter(rows)) for name, rows in users.items() if len(rows) == 1}


@lru_cache(maxsize=256)
def _unspaced_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the names, the longest first; where one begins or ends in a Latin letter or digit, so does the word."""
    parts = []
    for name in sorted(names, key=lambda one: (-len(one), one)):
        before = "(?<![A-Za-z0-9])" if name[0].isascii() else ""
        after = "(?![A-Za-z0-9])" if name[-1].isascii() else ""
        parts.append(f"{before}{re.escape(name)}{after}")
    return re.compile("|".join(parts), re.IGNORECASE)


def _unique(names: Iterable[str]) -> dict[str, int]:
    """Rows by name, for the names that occur once."""
    listed = list(names)
    counts = Counter(listed)
    return {name: row for row, name in enumerate(listed) if name and counts[name] == 1}


def _phrase(text: str) -> tuple[str, ...]:
    return tuple(words_of(text[:_LONGEST_NAME]).forms)


def _names(instrument: Instrument) -> set[tuple[str, ...]]:
    """Whole names of an instrument as canonical words; the name is also known without its generic last words."""
    found = {_phrase(instrument.id), _phrase(instrument.id.replace("_", "")), _phrase(instrument.name)}
    symbol = (instrument.symbol or "").lower()
    found |= {_phrase(alias) for alias in instrument.aliases if alias.lower() != symbol}
    name = words_of(instrument.name[:_LONGEST_NAME]).forms
    while len(name) > 1 and name[-1] in _GENERIC:
        name.pop()
        found.add(tuple(name))
    return {phrase for phrase in found if phrase and not _too_common(phrase)}


def _too_common(phrase: tuple[str, ...]) -> bool:
    """Whether a name consists of one word that prose uses for other things."""
    return len(phrase) == 1 and (phrase[0] in _GENERIC or phrase[0] in STOP) and phrase[0] != "cash"


def _single_words(instruments: Sequence[Instrument]) -> Iterable[tuple[str, int]]:
    """Words of names that exactly one instrument uses, such as Korea for South Korea."""
    users: dict[str, set[int]] = defaultdict(set)
    for row, instrument in enumerate(instruments):
        for word in _words(instrument) - {canonical((instrument.symbol or "").lower())}:
            users[word].add(row)
    for word in sorted(users):
        if len(users[word]) == 1 and word not in _GENERIC and len(word) > 2:
            yield word, next(iter(users[word]))


def _words(instrument: Instrument) -> frozenset[str]:
    """Content words of an instrument's names, which can tie a sentence about it to free text."""
    text = " ".join((instrument.id, instrument.symbol or "", instrument.name, *instrument.aliases))
    return frozenset(form for form in words_of(text[:400]).forms if len(form) > 1 and form not in STOP)
