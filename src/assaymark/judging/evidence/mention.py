"""Linguistic context of a number in a text: its clause, horizons, field words, direction and subject."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assaymark.judging.evidence.words import (
    BREAK,
    CJK,
    CONDITION,
    DOWN,
    LISTS,
    NO_HORIZONS,
    SPAN_WORDS,
    UP,
    SpokenHorizons,
    Subjects,
    clause_in,
    is_content,
    is_horizon,
    lower_text,
    normalise_width,
    words_in,
)

Floats = NDArray[np.float64]

_RATES = {"ratio": 1.0, "percent": 0.01, "pct": 0.01, "bps": 1e-4, "fraction": 1.0, "nav": 1.0}


class Sizes:
    """Absolute values for look-ups of numbers, by index range or among all of them by bisection."""

    __slots__ = ("_order", "_sorted", "sizes")

    def __init__(self, sizes: Floats) -> None:
        self.sizes: list[float] = sizes.tolist()
        self._sorted: list[float] | None = None
        self._order: list[int] = []

    def near(self, size: float, half: float, part: slice) -> list[int]:
        """Return the indices in ``part`` whose value is within ``half`` of ``size``; NaN never is."""
        return [at for at, value in enumerate(self.sizes[part], part.start) if -half <= value - size <= half]

    def all_near(self, size: float, half: float) -> list[int]:
        """Return the same among all indices, by bisection."""
        if self._sorted is None:
            places = [at for at, value in enumerate(self.sizes) if not math.isnan(value)]
            self._order = sorted(places, key=self.sizes.__getitem__)
            self._sorted = [self.sizes[at] for at in self._order]
        ordered = self._sorted
        # the window is slightly too wide; the exact difference decides
        reach = half + (size + half) * 1e-12
        first, last = bisect_left(ordered, size - reach), bisect_right(ordered, size + reach)
        return sorted(at for at in self._order[first:last] if -half <= self.sizes[at] - size <= half)


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers in the two readings that texts use, as aligned arrays: index i is one number."""

    rate: Floats
    plain: Floats
    printed: list[float]
    rate_size: Sizes
    plain_size: Sizes
    unmarked: Sizes

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, str]]) -> Values:
        """Compute the readings of (value, unit) pairs."""
        plain = np.array([value for value, _ in pairs], dtype=np.float64)
        rate = plain * np.array([rate_factor(unit) for _, unit in pairs], dtype=np.float64)
        size = np.abs(plain)
        unmarked = np.where(np.isnan(rate), size, np.nan)
        return cls(rate, plain, plain.tolist(), Sizes(np.abs(rate)), Sizes(size), Sizes(unmarked))

    def sizes(self, reading: UnitReading, *, money: bool = False) -> Sizes:
        """Return the absolute values that a reading is compared with; an amount of money is no rate."""
        return self.unmarked if money else self.rate_size if reading.as_rate else self.plain_size


@lru_cache(maxsize=1024)
def rate_factor(unit: str) -> float:
    """Return the factor that converts a value in ``unit`` to a fraction; NaN if the unit is not a rate."""
    return _RATES.get(unit, 0.01 if "%" in unit else math.nan)


Unit = Literal["percent", "bps", "usd", "price", "ratio", "count", "multiple", "none"]

MAX_INTEGER_DIGITS = 15
MAX_FRACTION_DIGITS = 25
_WINDOW = 40
_FAR = 12  # length of the longest word before a token that shows it is not a number, months excepted

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)"
)
_SPAN = (
    r"(?:(?:trading|calendar|business)[- ])?(?:days?|weeks?|wks?|months?|mos?|mths?|years?|yrs?|sessions?|sess"
    r"|quarters?|qtrs?|hours?|hrs?|minutes?|mins?|seconds?|bars?)(?![A-Za-z0-9])"
)

_TOKEN = re.compile(
    r"(?=[0-9+\-−–$€£¥.UCAH])(?<![A-Za-z0-9_])(?<![0-9][.,])"
    r"(?P<sign>[+\-−–])?(?P<cur>(?:US|C|A|HK)?[$€£¥](?P<sign2>[+\-−])?)?"
    r"(?P<int>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)?"
    r"(?P<frac>\.[0-9]+|,[0-9]{1,2}(?=\s?%))?"
    r"(?<=[0-9])"
    r"(?P<tail>[ \-]?(?P<scale>thousand|million|billion|trillion|mn|bn|trn|tn|mln|m{1,2}b(?:bls?|/d|pd|d)?)"
    r"(?![A-Za-z0-9])"
    r"|(?P<letter>[kKMBT])(?![A-Za-z0-9])"
    r"|\s?[%％](?:[ \-]?(?:points?|pts?)(?![A-Za-z0-9]))?"
    r"|[ \-]?(?P<word>percent(?:age)?(?:[ \-]points?)?|pct|ppts?|pps?|bps?|basis[ \-]points?|points?|pts?)"
    r"(?![A-Za-z0-9])"
    r"|(?P<times>[x×])(?![A-Za-z0-9]))?"
)
_DIGIT = re.compile("[0-9]")
_HEAD = 6  # characters before the first digit of a token, as in -US$+.5
_SCALES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12, "thousand": 1e3, "million": 1e6, "mn": 1e6, "mln": 1e6}
_SCALES |= {"billion": 1e9, "bn": 1e9, "trillion": 1e12, "trn": 1e12, "tn": 1e12}

_INDEX_SIZES = LISTS["index_sizes"]
_INDEX_BEFORE = re.compile(
    r"(?:S\s?&\s?P|\bSP|Russell|Nasdaq|NASDAQ|NDX|Nikkei|FTSE|CSI|STOXX|Stoxx|DAX|CAC|IBEX|ASX|TSX|Dow|DJIA?|MSCI|SSE"
    r"|KOSPI|Kospi|Hang Seng|Wilshire|Fortune|Cap|Topix|TOPIX|Jones|Composite)[ \-]?\Z"
)
_MONTH_BEFORE = re.compile(
    rf"\b{_MONTH}\.?[ \-](?:the )?"
    r"(?:[0-9]{1,2}(?:st|nd|rd|th)?(?:\s?[\-–—/&,]\s?|,?\s(?:and|to|or|through)\s)){0,3}\Z"
)
_MONTH_AFTER = re.compile(rf"(?:\s?[\-–—]\s?[0-9]{{1,2}})?(?:st|nd|rd|th)?[ \-](?:of )?{_MONTH}(?![A-Za-z])")
_SLASH_AFTER = re.compile(r"/[0-9]{1,2}(?:/[0-9]{2,4})?(?![0-9.%/])")
_SLASH_BEFORE = re.compile(r"(?<![0-9.])[0-9]{1,2}/(?:[0-9]{1,2}[/\-])?\Z")
_ISO_BEFORE = re.compile(r"(?:19|20)[0-9]{2}[\-/](?:[0-9]{2}[\-/])?\Z")
_TIME_AFTER = re.compile(r":[0-9]{2}|\s?[ap]\.?m\b", re.IGNORECASE)
_TIME_BEFORE = re.compile(r"[0-9]:\Z")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}\Z")
_YEAR_BEFORE = re.compile(r"(?:(?:19|20)[0-9]{2}[\-–/]|\b(?:FY|CY|fiscal|Q[1-4]|H[12])[ \-]?'?|')\Z")
_QUARTER_AFTER = re.compile(r"[QH](?:[ \-]?'?[0-9]{2,4})?(?![A-Za-z0-9])")
_SPAN_AFTER = re.compile(rf"(?:-?/?\s?(?:[\-–/,]|to|or|and)\s?[0-9]{{1,4}}){{0,2}}-?/?[\-– ]?{_SPAN}", re.IGNORECASE)
_LETTER_SPAN_AFTER = re.compile(
    r"(?:\s?[\-–/]\s?[0-9]{1,4})?-?(?:[dDwWyYsSmMhH]|m(?:o|th)s?|[wW]ks?|[yY]rs?|YR)(?![A-Za-z0-9])|个?(?:交易)?[日天周月年季]|小时"
)
_CAPITAL_DASH_BEFORE = re.compile(r"(?<![A-Za-z])[A-Z][A-Za-z]{0,12}-\Z")
_LABEL_BEFORE = re.compile(
    r"\b(?:Section|Rule|Form|Level|Phase|Tier|Type|Title|Article|Chapter|Basel|Model|Step|Item|Appendix|Table|Route|Area"
    r"|Version|Mk|Proposition|Prop|Part|No\.|Stage|Gen|Magnificent|Mag|Day|Week|Round|GPT|[Tt]op)[ \-]?\Z|#\Z|\[\Z"
)
_ELLIPSIS_BEFORE = re.compile(r"\b(?:over(?: the (?:last|past|prior))?|last) \Z")
_ELLIPSIS_AFTER = re.compile(r"\s?(?:[;,.)\n]|\Z|and\b|vs\b)")
_LINE_BEFORE = re.compile(r"(?:\A|\n)[ \t]{0,6}[(\[]?\Z")
_ENUMERATOR_AFTER = re.compile(r"[.)\]](?=\s)")
_VERSION_AFTER = re.compile(r"\.[0-9]")
_LETTER_AFTER = re.compile(r"[A-Za-z_]|-[A-Z](?![a-z])")
_SHARES_AFTER = re.compile(r"[ -]?(?:shares?|units|coins)(?![A-Za-z])|\s?股", re.IGNORECASE)
_JOIN = re.compile(r"\s?(?:[\-–—/]|to)\s?\Z")
_BETWEEN = re.compile(r"\b(?:between|from)\s\Z", re.IGNORECASE)
HALF = 0.5 + 1e-9  # half of the last printed digit, with tolerance for float arithmetic


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """One number as printed; ``text[start:end] == quote``."""

    start: int
    end: int
    quote: str
    value: float
    unit: Unit
    step: float
    decimals: int
    scale: float
    signed: bool
    bare: bool
    held: bool = False


@dataclass(frozen=True, slots=True)
class UnitReading:
    """One reading of a number, as a rate (fraction) or plain: its absolute value, and the unit of its last digit."""

    as_rate: bool
    size: float
    step: float

    @property
    def half(self) -> float:
        """Half of the last printed digit, with tolerance for float arithmetic."""
        return self.step * HALF + self.size * 1e-12


def extract_numbers(text: str) -> list[PrintedNumber]:
    """Extract the numbers of ``text`` in order, with units, without dates, horizons, index names and identifiers."""
    plain = normalise_width(text)
    read: list[PrintedNumber] = []
    at = 0
    # Jump from digit to digit, because the pattern would otherwise be tried at every letter.
    while (digit := _DIGIT.search(plain, at)) and (match := _TOKEN.search(plain, max(at, digit.start() - _HEAD))):
        at = match.end()
        parts = match.group("int", "frac", "sign", "cur", "sign2", "tail", "letter")
        whole, fraction, sign, currency, sign2, tail, letter = parts
        whole, fraction = whole or "", fraction or ""
        digits = whole.replace(",", "")
        if len(digits) > MAX_INTEGER_DIGITS or len(fraction) > MAX_FRACTION_DIGITS:
            continue
        # most tokens have a unit, and a token with a unit is a number whatever its surroundings
        of_shares = False
        if not (currency or (tail and letter != "M")):
            start, end = match.start("int" if whole else "frac"), match.end("frac" if fraction else "int")
            before, after = plain[max(0, start - _WINDOW) : start], plain[end : end + _WINDOW]
            if _is_no_number(whole, fraction, letter, before, after):
                continue
            of_shares = bool(_SHARES_AFTER.match(after))
        sign = sign2 or sign
        unit, scale = _unit_of(match, whole, fraction)
        value = float(digits + fraction.replace(",", ".")) * scale
        decimals = max(len(fraction) - 1, 0)
        read.append(
            PrintedNumber(
                match.start(), match.end(), match.group(), -value if sign and sign != "+" else value, unit,
                scale * 10.0**-decimals, decimals, scale, bool(sign),
                not (sign or fraction or tail or currency or digits != whole), of_shares,
            )
        )  # fmt: skip
    # In a range, the first number takes the unit of the second, and the second takes the currency of the first
    for i in range(len(read) - 2, -1, -1):
        first, second = read[i], read[i + 1]
        if second.start - first.end > 6 or not _is_range(plain, first, second):
            continue
        if first.unit == "usd" and second.unit in ("none", "count"):
            shared = max(first.scale, second.scale)
            read[i], read[i + 1] = _with_unit(first, "usd", shared), _with_unit(second, "usd", shared)
        elif first.unit == "none" and second.unit != "none":
            read[i] = _with_unit(first, second.unit, second.scale)
    return read if plain is text else [replace(number, quote=text[number.start : number.end]) for number in read]


def _unit_of(match: re.Match[str], whole: str, fraction: str) -> tuple[Unit, float]:
    """Return unit and scale of a token, from its currency sign and the text after its digits."""
    currency, tail, big, letter, word, times = match.group("cur", "tail", "scale", "letter", "word", "times")
    name = (big or letter or "").lower()
    # mb, mbd and mmbbl are all millions of barrels
    scale = _SCALES.get(name, 1e6 if name.startswith("m") else 1.0)
    if currency:
        return "usd", scale
    if scale != 1.0:
        return "count", scale
    if not tail:
        return "none", 1.0
    if word and word.startswith(("bp", "basis")):
        return "bps", 1.0
    if word and word.startswith(("point", "pts", "pt")):
        # index points are in the hundreds, percentage points are not
        return ("percent" if len(whole) <= 2 and (fraction or len(whole) < 2) else "none"), 1.0
    return ("multiple" if times else "percent"), 1.0


@lru_cache(maxsize=1 << 14)
def _is_no_number(whole: str, fraction: str, letter: str | None, before: str, after: str) -> bool:
    """Return True if a unitless token is a date, time, horizon, part of a name, enumerator or identifier."""
    if letter == "M":  # 6M is six months, 1.4M and 57M are millions
        return not fraction and len(whole) <= 2 and int(whole) <= 24
    start, last = max(0, len(before) - _FAR), before[-1:]  # searching the whole text before would be slow
    if fraction:
        return bool(_VERSION_AFTER.match(after) or _SPAN_AFTER.match(after) or _ISO_BEFORE.search(before, start))
    if "," in whole:
        return bool(_SPAN_AFTER.match(after))
    days = len(whole) <= 2
    return bool(
        # days of a month, years, quarters, ISO and slashed dates, clock times
        (days and ((not last.isalnum() and _MONTH_BEFORE.search(before)) or _MONTH_AFTER.match(after)))
        or _ISO_BEFORE.search(before, start)
        or _YEAR_BEFORE.search(before, start)
        or (_YEAR.match(whole) and not before.endswith(("+", "-", "−")))
        or (days and (_SLASH_AFTER.match(after) or _SLASH_BEFORE.search(before, start)))
        or _TIME_AFTER.match(after)
        or _TIME_BEFORE.search(before, start)
        or _QUARTER_AFTER.match(after)
        # horizons such as 30d, 52-week, 1 to 3 months, and the elliptic second one in "over 5d, ... over 21"
        or (len(whole) <= 4 and (_SPAN_AFTER.match(after) or _LETTER_SPAN_AFTER.match(after)))
        or (len(whole) <= 4 and _ELLIPSIS_AFTER.match(after) and _ELLIPSIS_BEFORE.search(before))
        # index names, sections and versions, list numbers, codes with letters in them
        or (whole in _INDEX_SIZES and _INDEX_BEFORE.search(before))
        or _LABEL_BEFORE.search(before, start)
        or (last == "-" and _CAPITAL_DASH_BEFORE.search(before))
        or (_ENUMERATOR_AFTER.match(after) and _LINE_BEFORE.search(before))
        or _LETTER_AFTER.match(after)
    )


def _is_range(text: str, first: PrintedNumber, second: PrintedNumber) -> bool:
    """Return True if two neighbouring numbers form a range or are entries of a slash-separated list."""
    between = text[first.end : second.start]
    if between in ("", " "):
        return bool(second.quote[:1] in "-–" and first.end == second.start)
    if between == " and ":
        return bool(_BETWEEN.search(text[max(0, first.start - 12) : first.start]))
    return bool(_JOIN.match(between))


def _with_unit(number: PrintedNumber, unit: Unit, scale: float) -> PrintedNumber:
    """Return ``number`` with the unit and scale of its range."""
    ratio = scale / number.scale
    return replace(number, unit=unit, scale=scale, value=number.value * ratio, step=number.step * ratio, bare=False)


_HEADER_END = re.compile(r"\s{0,2}(?:[:|\[]|\(|[\-–—]\s|\Z|\n)")
_LINE_HEAD = re.compile(r"^(?P<lead>(?:[^\w\n]|_){0,3})(?=[^\W_])", re.MULTILINE)
# begins with a character class, because that makes the search fast
_SENTENCE_END = re.compile(r"[.!?;\s。；！？](?:(?<=[.!?;])(?=\s|\Z)\s*|(?<=\n)\n*|(?<=[。；！？])|(?<=\s)\|\s)")
_UNSPACED = re.compile(f"[{CJK}]")
_WIDEST_SENTENCE = 300
_MARGIN = 64
_DIRECTION_REACH = 4
_TRAIL_REACH = 4
_CONDITION_REACH = 3
# a condition that ends the decision, or "may rise by" just before the number; May with a capital is a month
_POSSIBLE = re.compile(r"\A\W*[Ii]nvalidat|\b(?:may|might)\s+(?:\w+\s+){1,3}\W*\Z")
_LEVEL = frozenset(("to", "at", "near", "versus", "vs", "from", "is", "was", "than"))
_SPAN_WORD = re.compile(r"[0-9]|(?:the|last|past|prior|one|two|three|four|five|six|ten|twelve|twenty)\Z")
_SEGMENT_END = re.compile(r"[;()|，、]|,(?![0-9])")
_JOINED = re.compile(r"[\s\-–—/:.%]{0,4}\Z")


@dataclass(frozen=True, slots=True)
class NumberContext:
    """The linguistic context of one number, and its place: its index in a text, and spans of sentence and clause."""

    number: PrintedNumber
    words: frozenset[str]
    lead: list[str]
    trail: list[str]
    horizons: frozenset[str]
    rows: tuple[int, ...]
    default: int
    direction: int
    read: ParsedText
    at: int
    sentence: tuple[int, int]
    clause: tuple[int, int]

    @property
    def lower(self) -> frozenset[str]:
        """The lower-case words of the clause."""
        return frozenset(without_spans(self.lead) + without_spans(self.trail))

    @property
    def wide(self) -> frozenset[str]:
        """The content words of the whole sentence."""
        words = self.read.sentence_at(self.number.start).words
        return frozenset(filter(is_content, words.forms[slice(*words.within(*self.sentence))]))

    @property
    def conditional(self) -> bool:
        """True if the number is a threshold or a possibility, not a reported value."""
        start = self.number.start
        before = self.read.text[max(self.read.uncut(start)[0], start - _WIDEST_SENTENCE) : start]
        return (
            before.rstrip().endswith(("<", ">", "≥", "≤"))
            or bool(_POSSIBLE.search(before))
            or not CONDITION.isdisjoint(without_spans(self.lead)[-_CONDITION_REACH:])
        )

    @property
    def nearby(self) -> frozenset[int]:
        """The instruments named in the sentence, except those in other segments that contain another number."""
        read, (start, end) = self.read, self.sentence
        here = _segment(read.text, self.number.start, start, end)
        sentence = read.sentence_at(self.number.start)
        rows = set()
        for mention in sentence.mentions[bisect_left(sentence.starts, start) : bisect_left(sentence.starts, end)]:
            there = _segment(read.text, mention.start, start, end)
            if there == here or not numbers_in(read.numbers, *there):
                rows.add(mention.row)
        return frozenset(rows)

    @property
    def numbers_in_clause(self) -> int:
        """The number of numbers in the clause, counted up to three."""
        left, right = self.clause
        neighbours = self.read.numbers[max(0, self.at - 1) : self.at + 2]
        return sum(left <= other.start and other.end <= right for other in neighbours)


class _NumberSentence:
    """One sentence that contains a number: its words, breaks, horizons and the instruments it names."""

    __slots__ = ("breaks", "end", "mentions", "spoken", "start", "starts", "words")

    def __init__(self, text: str, lower: str, subjects: Subjects, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.words = words_in(lower, start, end)
        self.breaks = [match.span() for match in BREAK.finditer(text, start, end)]
        # the search is slow and few sentences have a spoken horizon
        has_spans = bool(_UNSPACED.search(text, start, end)) or not SPAN_WORDS.isdisjoint(self.words.lowers)
        self.spoken = SpokenHorizons(text, start, end) if has_spans else NO_HORIZONS
        self.mentions = subjects.mentions(text, self.words)
        self.starts = [mention.start for mention in self.mentions]


class ParsedText:
    """One text with its numbers, and its sentences and lines by position. Only sentences with a number are parsed."""

    __slots__ = (
        "_ends", "_heads", "_last", "_lower", "_owners", "_starts", "_subjects", "_uncut", "numbers", "text",
    )  # fmt: skip

    def __init__(self, text: str, numbers: Sequence[PrintedNumber], subjects: Subjects, owner: int) -> None:
        self.text = text
        self.numbers = numbers
        self._lower = lower_text(text)
        self._subjects = subjects
        self._last: _NumberSentence | None = None
        self._uncut = (0, -1, 0)
        ends = [match.span() for match in _SENTENCE_END.finditer(text)]
        self._starts: list[int] = [0, *(stop for _, stop in ends)]
        self._ends: list[int] = [*(start for start, _ in ends), len(text)]
        # The subject of each line, named at its start: "GOLD: ...", "XLE (selected): ...". Later lines inherit it.
        self._heads = [0]
        self._owners = [owner]
        for match in _LINE_HEAD.finditer(text):
            named = subjects.first(text, match.end())
            if named is not None and _HEADER_END.match(text, named.end):
                self._heads.append(match.start("lead"))
                self._owners.append(named.row)

    def owner_at(self, position: int) -> int:
        """Return the instrument row that the line at a position is about, -1 if it has none."""
        return self._owners[bisect_right(self._heads, position) - 1]

    def uncut(self, position: int) -> tuple[int, int]:
        """Return the whole sentence around a position, of any length."""
        start, stop, end = self._uncut
        if not start <= position < stop:
            at = bisect_right(self._starts, position) - 1
            start, end = self._starts[at], self._ends[at]
            stop = self._starts[at + 1] if at + 1 < len(self._starts) else len(self.text) + 1
            self._uncut = start, stop, end
        return start, max(end, position)

    def sentence(self, position: int) -> tuple[int, int]:
        """Return the sentence around a position, at most 300 characters to either side."""
        start, end = self.uncut(position)
        return max(start, position - _WIDEST_SENTENCE), min(end, position + _WIDEST_SENTENCE)

    def adjacent_sentences(self, position: int) -> tuple[str, str]:
        """Return the sentences before and after the one around a position, up to 300 adjacent characters each."""
        at, before, after = bisect_right(self._starts, position) - 1, "", ""
        if at:
            before = self.text[max(self._starts[at - 1], self._ends[at - 1] - _WIDEST_SENTENCE) : self._ends[at - 1]]
        if at + 1 < len(self._starts):
            start = self._starts[at + 1]
            after = self.text[start : min(self._ends[at + 1], start + _WIDEST_SENTENCE)]
        return before, after

    def sentence_at(self, position: int) -> _NumberSentence:
        """Return the sentence around a position; the last result is cached."""
        last = self._last
        if last is None or not last.start <= position < last.end:
            last = self._last = _NumberSentence(self.text, self._lower, self._subjects, *self.uncut(position))
        return last

    def key(self, at: int) -> tuple[object, ...]:
        """Return the cache key of number ``at``: numbers with equal keys get equal rulings."""
        number, text = self.numbers[at], self.text
        first, stop = self.uncut(number.start)
        start, end = self.sentence(number.start)
        before = self.numbers[at - 1].end - start if at else -1
        after = self.numbers[at + 1].start if at + 1 < len(self.numbers) else end
        return (
            text[max(first, start - _MARGIN) : min(stop, end + _MARGIN)],
            start - first if start - first < _MARGIN else _MARGIN, text[max(0, number.start - 2) : number.start],
            number.start - start, number.end - number.start, max(before, -1), min(after, end) - start,
            self.owner_at(number.start), number.unit, number.value, number.step, number.bare,
        )  # fmt: skip

    def around(self, at: int) -> NumberContext | None:
        """Return the context of number ``at``; None if its digits are part of a name, such as Nikkei 225."""
        numbers, text = self.numbers, self.text
        number = numbers[at]
        sentence = self.sentence_at(number.start)
        words, mentions, starts = sentence.words, sentence.mentions, sentence.starts
        if mentions:
            last = bisect_right(starts, number.start) - 1
            if last >= 0 and number.end <= mentions[last].end:
                return None
        window = self.sentence(number.start)
        clause = left, right = clause_in(sentence.breaks, number.start, number.end, window)
        # The clause ends at the neighbouring numbers, unless only a dash or slash separates them from this one.
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
        # Possible subjects: the names in the clause, else the last name before it, and the line's owner.
        rows: tuple[int, ...] = ()
        if mentions:
            inside = mentions[bisect_left(starts, left) : bisect_left(starts, right)]
            if len(inside) > 1:
                start, end = number.start, number.end
                inside = sorted(inside, key=lambda m: (min(abs(start - m.end), abs(m.start - end)), m.start))
            rows = tuple(dict.fromkeys(mention.row for mention in inside))
        if not rows and starts:
            nearest = bisect_left(starts, number.start) - 1
            if nearest >= 0 and starts[nearest] >= window[0]:
                rows = (mentions[nearest].row,)
        default = self.owner_at(number.start)
        rows = rows if default < 0 or default in rows else (*rows, default)
        horizons = frozenset([form for form in forms if form[0] <= "9" and is_horizon(form)])
        horizons |= sentence.spoken.within(left, right)
        direction = _direction(number, lead, trail)
        return NumberContext(
            number, forms, lead, trail, horizons, rows, default, direction, self, at, window, clause
        )  # fmt: skip


def without_spans(words: list[str]) -> list[str]:
    """Drop the "over" of "over 5d" and "over the last month", which is not a comparison."""
    if "over" not in words:
        return words
    return [word for word, after in pairwise([*words, ""]) if word != "over" or not _SPAN_WORD.match(after)]


def _segment(text: str, position: int, start: int, end: int) -> tuple[int, int]:
    """Return the part of ``text[start:end]`` around a position without a comma, semicolon or bracket."""
    left = start
    for mark in _SEGMENT_END.finditer(text, start, end):
        if mark.start() >= position:
            return left, mark.start()
        left = mark.end()
    return left, end


def numbers_in(numbers: Sequence[PrintedNumber], start: int, end: int) -> Sequence[PrintedNumber]:
    """Return the numbers that start in a span."""
    first = bisect_left(numbers, start, key=lambda number: number.start)
    return numbers[first : bisect_left(numbers, end, key=lambda number: number.start)]


def _direction(number: PrintedNumber, lead: Sequence[str], trail: Sequence[str]) -> int:
    """Return -1 or 1 by the printed sign, else by the nearest word of movement; 0 for a level or for neither."""
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
