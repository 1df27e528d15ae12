"""When a number may be called contradicted. Everything here is a reason not to."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

import numpy as np

from assaymark.judging.evidence.context_index import Cells, FieldLabel, FreeFacts, Material, NumberBag
from assaymark.judging.evidence.mention import Around
from assaymark.judging.evidence.numbers import Floats, Number, Values
from assaymark.judging.evidence.words import (
    CHANGE,
    SPAN_WORDS,
    SPELLED,
    SPREAD,
    canonical,
    is_content,
    is_horizon,
    lower_of,
    narrow,
    word_set,
    words_in,
)
from assaymark.records import Series

# Whether a sentence plainly states one figure: subject, field, horizon, copula, number, and not one word more.


_PLAIN = word_set("is was are of at the a an its s in over for has stands stood sits equals now currently evidence")
_BEHIND = word_set("over in for the now currently")
_WINDOW = word_set("last past trailing latest")
_SPAN = SPAN_WORDS | SPELLED.keys() | {"trading"}
_OPENERS = word_set("so hence therefore thus i we")
_TURNS = word_set("and but")
# words that say the same as another and nothing else; a gain or a momentum may be measured in another way
_SAME = {
    "vol": "volatility", "vols": "volatility", "dd": "drawdown", "corr": "correlation", "returned": "return",
}  # fmt: skip
_POINTS = re.compile(r"p(?:oin)?ts?\b|pps?\b|[kKMBTx×]\Z", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\s'’`:=_\-–—|•·#]|\*\*)*\Z")
_LEFT_OVER_BESIDE = re.compile(r"(?:[\s'’`:=_\-–—|•·#,;()]|\*\*)*\Z")
_ASKS = "?？"

_ELSEWHEN = word_set(
    """
    ago earlier previously formerly historical historically yesterday backtest backtested simulated simulation scenario
    hypothetical hypothetically suppose supposing imagine assume assumed assuming pretend if would could should might
    january february april june july august september october november december
    """
)
_DISPUTED = word_set(
    """
    false wrong incorrect incorrectly untrue mistake mistaken misprint typo claim claims claimed alleged allegedly
    supposedly rumour rumor quote quoted example stale outdated doubt doubtful disagree
    """
)
_OTHER_BASIS = word_set(
    """
    annualised annualized gross net fee fees cost costs tax taxes hedged currency eur euro euros gbp jpy denominated
    excess log median forecast forecasts
    """
)
_BESIDE = _ELSEWHEN | _DISPUTED | _OTHER_BASIS
_DOUBT = _BESIDE | word_set(
    "not no never t without neither nor or instead rather except last prior than before after model usd dollar dollars"
)
_EARLIER = re.compile(r"\blast (?:year|month|quarter|week|season|time)\b")


@lru_cache(maxsize=1 << 12)
def is_doubted(before: str, after: str) -> bool:
    """Whether a neighbouring sentence sets another time or basis, supposes, quotes or takes back."""
    for text in (before, after):
        lower = lower_of(text)
        if not _BESIDE.isdisjoint(words_in(lower, 0, len(lower)).lowers) or _EARLIER.search(lower):
            return True
    return False


def is_plain_statement(material: Material, around: Around, label: FieldLabel) -> bool:
    """Whether the sentence around a number says no more than that this field of the subject is the number.

    Only words of closed lists may stand in it, beside the names, the field and its horizon: any other one (a negator,
    a time, a measure, a peer, a currency) makes it a statement about something else. What follows may be a conclusion
    ("so I buy it"), or a further figure that is stated just as plainly.
    """
    place = around.place
    start, end = place.sentence
    if place.read.pieces.whole(around.number.start) != (start, end) or place.read.text[end : end + 1] in tuple(_ASKS):
        return False
    if not all(map(_may_follow, around.trail)):
        return False
    if _POINTS.search(around.number.quote) or not around.horizons <= {label.horizon}:
        return False
    tokens = _tokens(around)
    left, right = place.clause
    before, behind = around.number.start, around.number.end
    lead = [token for token in tokens if left <= token.start < before]
    trail = [token for token in tokens if behind <= token.start < right]
    rest = _Rest(tokens, material, label)
    return (
        _names_field(lead, label)
        and all(token.kind != "word" or _is_field_word(token.lower, label) or token.lower in _PLAIN for token in lead)
        and all(token.kind == "horizon" or token.lower in _BEHIND for token in trail)
        and _nothing_else(around, tokens, left, right, _LEFT_OVER)
        and rest.leads(start, left)
        and rest.follows(right, end)
        and _nothing_else(around, tokens, start, left, _LEFT_OVER_BESIDE)
        and (rest.concludes(right, end) or _nothing_else(around, tokens, right, end, _LEFT_OVER_BESIDE))
    )


def _may_follow(lower: str) -> bool:
    """Whether a word can stand behind the number at all: as a rule none does but those of a horizon."""
    return lower in _BEHIND or lower in _WINDOW or lower in _SPAN or lower[0].isdigit()


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of the sentence, a name, a horizon or a number."""

    start: int
    end: int
    lower: str
    kind: str


def _tokens(around: Around) -> list[_Token]:
    """The sentence as names, horizons, numbers and single words, in order."""
    place = around.place
    start, end = place.sentence
    sentence = place.read.sentence_at(around.number.start)
    numbers = place.read.near(start, end)
    taken = [_Token(one.start, one.end, "", "number") for one in numbers]
    taken += [_Token(one.start, one.end, "", "name") for one in sentence.mentions if start <= one.start < end]
    taken += [_Token(first, last, "", "horizon") for first, last, _ in sentence.spoken.spans(start, end)]
    words = sentence.words
    for at in range(*words.within(start, end)):
        first, last = words.starts[at], words.end(at)
        if not any(one.start < last and first < one.end for one in taken):
            kind = "horizon" if is_horizon(words.forms[at]) else "word"
            taken.append(_Token(first, last, words.lowers[at], kind))
    taken.sort(key=lambda token: token.start)
    return list(_windows(taken))


def _windows(tokens: Sequence[_Token]) -> Iterator[_Token]:
    """The tokens without the "last" of "the last 21 sessions" and the "to" of "beta to SPY"."""
    for at, token in enumerate(tokens):
        following = tokens[at + 1].kind if at + 1 < len(tokens) else ""
        if token.lower in _WINDOW and following == "horizon":
            continue
        if token.lower == "to" and following == "name" and at and tokens[at - 1].lower == "beta":
            continue
        yield token


def _names_field(lead: Sequence[_Token], label: FieldLabel) -> bool:
    """Whether every word of the field stands before the number, in the field's own words."""
    said = {_plain_form(token.lower) for token in lead if token.kind == "word"}
    wanted = {_plain_form(word) for word in label.printed if canonical(word) in label.kinds}
    names = any(token.kind == "name" for token in lead)
    missing = wanted - said
    # the benchmark in "beta to SPY" is read as a name
    return bool(said & wanted) and (not missing or (names and len(missing) == 1 and len(wanted) > 1))


def _is_field_word(lower: str, label: FieldLabel) -> bool:
    return _plain_form(lower) in _forms(label.printed)


@lru_cache(maxsize=1 << 12)
def _forms(printed: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_plain_form, printed))


def _plain_form(lower: str) -> str:
    """A word without its plural; only words that mean exactly the same are joined."""
    if lower in _SAME:
        return _SAME[lower]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else lower


class _Rest:
    """What stands in the sentence outside the number's own clause."""

    __slots__ = ("_fields", "_label", "_tokens")

    def __init__(self, tokens: Sequence[_Token], material: Material, label: FieldLabel) -> None:
        self._tokens = tokens
        self._label = label
        self._fields = frozenset().union(*(_forms(one.printed) for one in material.cells.labels))

    def leads(self, start: int, end: int) -> bool:
        """Whether what comes first sets no scene: only names, or further figures that are stated as plainly."""
        part = self._within(start, end)
        if any(token.kind == "number" for token in part):
            return self._plain(part)
        return all(token.kind == "name" or token.lower in _PLAIN for token in part)

    def follows(self, start: int, end: int) -> bool:
        """Whether what comes after takes nothing back."""
        part = self._within(start, end)
        if self.concludes(start, end):
            return _DOUBT.isdisjoint(token.lower for token in part)
        if any(token.kind == "number" for token in part) and part[0].kind != "number":
            return _DOUBT.isdisjoint(token.lower for token in part)
        return all(token.kind == "horizon" or token.lower in _BEHIND for token in part)

    def concludes(self, start: int, end: int) -> bool:
        """Whether what comes after is a conclusion: "so ...", "and I ..."."""
        said = [token.lower for token in self._within(start, end)[:2]]
        if said and said[0] in _TURNS:
            said = said[1:]
        return bool(said) and said[0] in _OPENERS

    def _plain(self, part: Sequence[_Token]) -> bool:
        return all(
            token.kind != "word"
            or token.lower in _PLAIN
            or token.lower in _TURNS
            or _plain_form(token.lower) in self._fields
            for token in part
        )

    def _within(self, start: int, end: int) -> list[_Token]:
        return [token for token in self._tokens if start <= token.start < end]


def _nothing_else(around: Around, tokens: Sequence[_Token], start: int, end: int, allowed: re.Pattern[str]) -> bool:
    """Whether nothing but harmless marks stands between the tokens: a ``~``, a quotation mark or a ``€`` is a doubt."""
    at, text = start, around.place.read.text
    for token in tokens:
        if start <= token.start < end:
            if not _is_blank(text[at : token.start], allowed):
                return False
            at = max(at, token.end)
    return _is_blank(text[at:end], allowed)


def _is_blank(text: str, allowed: re.Pattern[str]) -> bool:
    """Whether a stretch holds only allowed marks, and the words that `_windows` leaves out."""
    return bool(allowed.match(_LEFT_OUT.sub("", text)))


_LEFT_OUT = re.compile(r"\b(?:last|past|trailing|latest|to)\b", re.IGNORECASE)


# Does a printed number agree with a stored one? Readings, tolerances, and look-ups by instrument and in free facts.


_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a number: as a rate (fraction) or plainly; its size, and what its last digit is worth."""

    as_rate: bool
    size: float
    step: float

    @property
    def half(self) -> float:
        """Half of the last printed digit, with room for the float arithmetic that led here."""
        return self.step * (0.5 + _SLACK) + self.size * 1e-12


@dataclass(frozen=True, slots=True)
class CellHit:
    """A cell that agrees with a number, and how well its label goes with the words around (3 best, 0 worst)."""

    cell: int
    row: int
    tier: int


def readings(number: Number, *, percent_of_plain: bool = False) -> tuple[Reading, ...]:
    """The readings of a number in the order in which they are tried."""
    size = abs(number.value)
    if number.unit == "percent":
        return (Reading(True, size / 100, number.step / 100),)
    if number.unit == "bps":
        return (Reading(True, size / 1e4, number.step / 1e4),)
    plain: tuple[Reading, ...] = (Reading(False, size, number.step),)
    if number.scale != 1.0:
        plain += (Reading(False, size / number.scale, number.step / number.scale),)
    if percent_of_plain and number.unit == "none":
        plain += (Reading(True, size / 100, number.step / 100),)
    return plain


@lru_cache(maxsize=1 << 12)
def _digits(quote: str) -> int:
    return len("".join(c for c in narrow(quote) if c in "0123456789").lstrip("0")) or 1


def significant(number: Number) -> int:
    """How many significant digits were printed."""
    return _digits(number.quote)


def in_row(values: Values, reading: Reading, part: slice, *, money: bool = False) -> list[int]:
    """The places in ``part`` whose size, sign aside, is the reading's within half a last digit; rates are no money."""
    index = values.unmarked if money else values.rate_size if reading.as_rate else values.plain_size
    return index.near(reading.size, reading.half, part)


def sized(values: Values, reading: Reading, *, money: bool = False) -> list[int]:
    """The same among all values, found without looking at each of them."""
    index = values.unmarked if money else values.rate_size if reading.as_rate else values.plain_size
    return index.all_near(reading.size, reading.half)


def sign_fits(around: Around, value: float, signed: bool, depth: bool) -> bool:
    """Whether a stored sign goes with the printed one or with the words of movement.

    Depths (drawdowns, distances) are stored negative and told without a sign or with a minus. Words of movement near
    a value that is never negative, such as a low volatility, say nothing about its sign.
    """
    if value == 0 or (depth and not (around.number.signed and around.direction > 0)):
        return True
    if around.direction < 0:
        return value < 0 or (not around.number.signed and not signed)
    return value > 0


def tier_of(label: FieldLabel, around: Around, horizons: frozenset[str]) -> int:
    """How a label goes with the clause: 3 named in full, 2 in part, 1 not at all, 0 another horizon is named."""
    named = around.horizons & horizons
    if label.horizon and named and label.horizon not in named:
        return 0
    if is_full(label, around):
        return 3
    return 2 if label.kinds & around.words or (label.horizon and label.horizon in named) else 1


def is_full(label: FieldLabel, around: Around) -> bool:
    """Whether the clause names the field in all of its words and, if it has one, its horizon."""
    return bool(label.kinds) and label.kinds <= around.words and (not label.horizon or label.horizon in around.horizons)


def match_row(material: Material, around: Around, row: int) -> CellHit | None:
    """The cell of one instrument that agrees with the number, the best-labelled first; None if there is none."""
    cells = material.cells
    part = cells.of_row(row)
    if part.start == part.stop:
        return None
    best: CellHit | None = None
    for order, reading in enumerate(readings(around.number, percent_of_plain=True)):
        for cell in in_row(cells.values, reading, part, money=around.number.unit == "usd"):
            label = cells.of_cell[cell]
            if not sign_fits(around, cells.values.printed[cell], label.signed, label.depth):
                continue
            tier = _admitted(label, around, cells.horizons[row], second_choice=order > 0)
            if tier is not None and (best is None or tier > best.tier):
                best = CellHit(cell, row, tier)
    return best


def _admitted(label: FieldLabel, around: Around, horizons: frozenset[str], *, second_choice: bool) -> int | None:
    """The tier of an agreeing cell, or None where the agreement proves too little.

    A bare integer and a second reading need a word of the field; a figure of one or two digits must not be claimed
    for another horizon than the one beside it.
    """
    tier = tier_of(label, around, horizons)
    if (around.number.bare or second_choice) and not label.kinds & around.words:
        return None
    if tier == 0 and significant(around.number) < 3:
        return None
    return tier


def match_free(free: FreeFacts, around: Around, words: frozenset[str]) -> int | None:
    """The free fact that agrees with the number and shares the most of ``words``, or None."""
    if not free.ids:
        return None
    best, most = None, 0
    for reading in readings(around.number):
        hits = sized(free.values, reading, money=around.number.unit == "usd")
        if reading.as_rate:
            hits += _unmarked_percent(free.values, reading)
        for at in hits:
            shared = len(free.words[at] & words)
            if shared > most and _goes_with(around, int(free.direction[at]), bool(free.falling[at])):
                best, most = at, shared
    return best


def _goes_with(around: Around, direction: int, falling: bool) -> bool:
    """Whether a free fact's direction goes with the number's; a printed minus needs a decrease in the note."""
    if around.direction < 0 and around.number.signed:
        return direction < 0 or (direction == 0 and falling)
    return not around.direction or direction != -around.direction


def _unmarked_percent(values: Values, reading: Reading) -> list[int]:
    """Values without a unit that equal a percentage as printed: tables often name the unit elsewhere."""
    return values.unmarked.all_near(reading.size * 100, reading.half * 100)


def match_bag(bag: NumberBag, around: Around, words: frozenset[str], subjects: frozenset[str] | None) -> int | None:
    """The entry of a bag that equals the number and shares enough words; with ``subjects``, about one of these."""
    if not bag.ids:
        return None
    for reading in readings(around.number, percent_of_plain=True):
        hits = sized(bag.values, reading, money=around.number.unit == "usd")
        if reading.as_rate:
            hits += _unmarked_percent(bag.values, reading)
        for at in hits:
            fits = len(bag.words[at] & words) >= bag.needed[at] if subjects is None else bag.subjects[at] in subjects
            if fits and (around.direction < 0 or bag.values.printed[at] >= 0):
                return at
    return None


def content(around: Around) -> frozenset[str]:
    """The words of a clause that can name a subject, maturities among them."""
    return frozenset(word for word in around.words | around.horizons if is_content(word))


# Numbers that are nowhere printed but follow from what is: spreads, sums and ratios, and returns from price bars.


_MOST_PARTS = 24
_MOST_NOTES = 12
_MOST_PAIRS = 6
_RELATIVE = frozenset(("active", "relative", "excess", "vs", "alpha", "rank", "correlation", "corr"))
_SESSIONS_A_YEAR = 252
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Derived:
    """What a number follows from, and how."""

    facts: tuple[str, ...]
    rule: str
    row: int = -1


def derive(material: Material, around: Around) -> Derived | None:
    """The first way in which the number follows from visible facts, or None."""
    if around.number.bare:
        return None
    return _spread(material, around) or _combined(material.free, around) or _recomputed(material, around)


# --- between two instruments ----------------------------------------------------------------------------------------


def _spread(material: Material, around: Around) -> Derived | None:
    """The same field of two instruments, one minus the other, where the clause compares."""
    if SPREAD.isdisjoint(around.lower):
        return None
    rows = list(dict.fromkeys((*around.rows, material.benchmark)))
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if min(a, b) >= 0]
    for pair in pairs[:_MOST_PAIRS]:
        # an agent measures against the benchmark, never the benchmark against something
        one, other = sorted(pair, key=lambda row: row == material.benchmark)
        found = _difference(material, around, one, other)
        if found is not None:
            return Derived(found, "difference-of-rows", one)
    return None


def _difference(material: Material, around: Around, one: int, other: int) -> tuple[str, ...] | None:
    """The two cells of one field whose difference is the number; fields that are differences themselves are none."""
    cells = material.cells
    left, right = cells.of_row(one), cells.of_row(other)
    place = {int(label): right.start + i for i, label in enumerate(cells.label[right])}
    for at in range(left.start, left.stop):
        label = cells.labels[cells.label[at]]
        there = place.get(int(cells.label[at]))
        if there is None or label.kinds & _RELATIVE:
            continue
        tier = tier_of(label, around, cells.horizons[one])
        if tier == 0 or (tier == 1 and significant(around.number) < 3):
            continue
        if _is_gap(around, _gaps(cells, at, there), ordered=other == material.benchmark):
            return cells.ids[at], cells.ids[there]
    return None


def _gaps(cells: Cells, one: int, other: int) -> tuple[float, float]:
    """The difference of two cells as a rate and plainly."""
    return (
        float(cells.values.rate[one] - cells.values.rate[other]),
        float(cells.values.plain[one] - cells.values.plain[other]),
    )


def _is_gap(around: Around, gap: tuple[float, float], *, ordered: bool) -> bool:
    """Whether the number is the difference, with its sign where it is clear what was taken from what."""
    if ordered and around.direction and gap[1] and (around.direction > 0) != (gap[1] > 0):
        return False
    return _equals(around, gap)


def _equals(around: Around, value: tuple[float, float]) -> bool:
    """Whether the number has the size of this (rate, plain) value, up to half a last digit."""
    for reading in readings(around.number):
        size = abs(value[0] if reading.as_rate else value[1])
        if abs(size - reading.size) <= reading.half:
            return True
    return False


# --- within one sentence of the free material -----------------------------------------------------------------------


def _combined(free: FreeFacts, around: Around) -> Derived | None:
    """Sum, difference, ratio or relative change of two numbers of one note that shares the clause's subject."""
    lower = around.lower
    if not free.ids or (CHANGE.isdisjoint(lower) and SPREAD.isdisjoint(lower)):
        return None
    words = content(around)
    if not words or (significant(around.number) < 2 and around.number.unit != "bps"):
        return None
    for start, stop in _notes(free, words):
        part = slice(start, stop)
        for reading in readings(around.number):
            found = _pair(free.values.rate[part], free.values.plain[part], reading)
            if found is not None:
                return Derived((free.ids[start + found[0]], free.ids[start + found[1]]), found[2])
    return None


def _notes(free: FreeFacts, words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The runs of facts of one note that share at least two of the words (or the only one), a dozen at most."""
    needed = min(2, len(words))
    edges = np.flatnonzero(np.diff(free.note, prepend=-1, append=-2))
    shown = 0
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if stop - start < 2 or len(free.words[start] & words) < needed:
            continue
        yield start, min(stop, start + _MOST_PARTS)
        shown += 1
        if shown == _MOST_NOTES:
            return


def _pair(rate: Floats, plain: Floats, reading: Reading) -> tuple[int, int, str] | None:
    """Two values whose difference, sum, relative change or ratio is the reading."""
    with np.errstate(all="ignore"):
        own = rate if reading.as_rate else np.where(np.isnan(rate), plain, np.nan)
        level = np.where(np.isnan(rate), plain, np.nan)
        tables = [("difference", np.abs(own[:, None] - own[None, :])), ("sum", np.abs(own[:, None] + own[None, :]))]
        if reading.as_rate:
            tables.append(("relative-change", np.abs(level[:, None] / level[None, :] - 1)))
        else:
            tables.append(("ratio", np.abs(level[:, None] / level[None, :])))
        for rule, table in tables:
            np.fill_diagonal(table, np.nan)
            hits = np.argwhere(np.abs(table - reading.size) <= reading.half)
            if len(hits):
                return int(hits[0][0]), int(hits[0][1]), f"{rule}-in-note"
    return None


# --- from price bars ------------------------------------------------------------------------------------------------


def _recomputed(material: Material, around: Around) -> Derived | None:
    """A return, volatility or drawdown over the horizon beside the number, from the instrument's own bars."""
    if not material.series or not around.horizons:
        return None
    for row in around.rows:
        series = material.series.get(material.subjects.ids[row])
        if series is None or len(series.close) < 2:
            continue
        for horizon in sorted(around.horizons):
            for rule, value in _statistics(series, horizon, around):
                if math.isfinite(value) and _is_gap(around, (value, value), ordered=rule == "return"):
                    return Derived((f"series:{series.instrument}",), f"{rule}-{horizon}", row)
    return None


def _statistics(series: Series, horizon: str, around: Around) -> Iterator[tuple[str, float]]:
    """What the words ask for over the horizon; bars are counted, and calendar days where the two differ."""
    for first in _starts(series, horizon):
        close = np.asarray(series.close[first:], dtype=np.float64)
        if (close <= 0).any():
            continue
        if "volatility" in around.words:
            moves = np.diff(close) / close[:-1]
            if moves.size > 1:
                yield "volatility", float(moves.std(ddof=1)) * math.sqrt(_per_year(series))
        elif "drawdown" in around.words:
            yield "drawdown", float((close / np.maximum.accumulate(close) - 1).min())
        else:
            yield "return", float(close[-1] / close[0] - 1)


def _per_year(series: Series) -> float:
    return _SESSIONS_A_YEAR * max(1.0, _DAY_S / series.interval_s if series.interval_s < _DAY_S else 1.0)


def _starts(series: Series, horizon: str) -> list[int]:
    """Indices of the bars at which the horizon can have begun."""
    count, unit = int(horizon[:-1]), horizon[-1]
    last = len(series.close) - 1
    found = [last - count] if unit == "d" else []
    days = {"d": 1.0, "w": 7.0, "m": 365.25 / 12, "y": 365.25}[unit] * count
    begin = bisect_right(series.times, series.times[-1] - timedelta(days=min(days, 36_500))) - 1
    found.append(begin)
    return [index for index in dict.fromkeys(found) if 0 <= index < last]


_FACTORS = (1.0, 100.0, 0.01)
_COARSEST_RATE = 0.01
_RATE_UNITS = ("percent", "bps", "none")
_CLOSE = 0.1
_FINE = 3
_PRINTED = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]{1,25})?")
_LONGEST_PRINTED = 40


def accusation(material: Material, around: Around) -> CellHit | None:
    """The one cell that an unmatched number misstates, or None where any condition of an accusation fails.

    The conditions: one instrument, named in the sentence or owning the text, and no other beside it; the only number
    of its clause; a field named in all its own words with its horizon, and exactly one stored value of it; a sentence
    that says nothing else (`is_plain_statement`); a unit in which the two can be compared; a difference that neither
    rounding nor truncation at the printed or the stored precision can make, nor reading a percentage as a ratio; and
    a number that stands nowhere in the prompt or the free facts, whose quotation is never a fabrication.
    """
    row = _only_subject(material, around)
    if row is None or around.crowd != 1:
        return None
    cell = _only_cell(material.cells, around, row)
    if cell is None or not _differs(material.cells, around, cell):
        return None
    label = material.cells.of_cell[cell]
    if not is_plain_statement(material, around, label):
        return None
    if material.benchmark in around.rivals - {row} and not label.kinds & material.subjects.words[material.benchmark]:
        return None
    return None if _is_shown(material, around.number) else CellHit(cell, row, 3)


def _only_subject(material: Material, around: Around) -> int | None:
    """The instrument, where sentence and line agree that it can be no other.

    The benchmark may stand beside it, as in "beta to SPY", as long as the field is one that names the benchmark.
    """
    candidates = set(around.rivals) | ({around.default} if around.default >= 0 else set())
    if len(candidates) == 2:
        candidates.discard(material.benchmark)
    return candidates.pop() if len(candidates) == 1 else None


def _only_cell(cells: Cells, around: Around, row: int) -> int | None:
    """The one stored value of the one field that the clause names in full."""
    part = cells.of_row(row)
    named = [at for at in range(part.start, part.stop) if is_full(cells.of_cell[at], around)]
    widest = max((len(cells.of_cell[at].kinds) for at in named), default=0)
    # "active return" names that field, not the plain return whose words it contains
    closest = [at for at in named if len(cells.of_cell[at].kinds) == widest]
    return closest[0] if len(closest) == 1 else None


def _differs(cells: Cells, around: Around, cell: int) -> bool:
    """Whether no reading of the number, rounded or truncated, with or without its sign, can be the stored value.

    A percentage and the ratio it stands for are one value, whichever of them was printed and stored under which unit.
    """
    rate, plain = float(cells.values.rate[cell]), float(cells.values.plain[cell])
    number = around.number
    if not math.isnan(rate) and number.unit not in _RATE_UNITS:
        return False
    step = _stored_step(plain)
    comparable = False
    for reading in readings(number, percent_of_plain=True):
        value = rate if reading.as_rate else plain
        if math.isnan(value):
            continue
        comparable = True
        sign = 1.0 if _signs_agree(around, value, cells, cell) else -1.0
        unit = value / plain if plain else 1.0
        kept = min(step * unit, _COARSEST_RATE) if reading.as_rate else step
        for factor in _FACTORS if not math.isnan(rate) else _FACTORS[:1]:
            size = reading.size * factor
            reach = max(reading.step * factor, kept)
            # the other scale is a reading only where it comes close; a wide reach would make it equal to anything
            reach = reach if factor == 1.0 else min(reach, size * _CLOSE)
            if abs(abs(value) - sign * size) <= reach * (1 + 1e-6) + size * 1e-12:
                return False
    return comparable


def _stored_step(value: float) -> float:
    """What the last digit of a stored value is worth: it may have been rounded there before the agent saw it."""
    digits = repr(abs(value))
    if "e" in digits:
        return abs(value) * 1e-15 if abs(value) < 1 else 1.0
    fraction = digits.partition(".")[2].rstrip("0")
    return float(10.0 ** -len(fraction))


def _signs_agree(around: Around, value: float, cells: Cells, cell: int) -> bool:
    """Only a printed sign, on a field whose sign means something, can be wrong; words of movement are too loose."""
    if not around.number.signed or not cells.of_cell[cell].signed or value == 0:
        return True
    return (around.direction > 0) == (value > 0)


def _is_shown(material: Material, number: Number) -> bool:
    """Whether the number stands in the prompt or in a free fact, whatever it is said of there."""
    for reading in readings(number, percent_of_plain=True):
        if sized(material.free.values, reading):
            return True
    size = abs(number.value) / number.scale
    step = number.step / number.scale
    half = step * (0.5 + 1e-9) if significant(number) >= _FINE else 0.0
    for known in {size * factor for factor in _FACTORS}:
        slack = half * known / size if size else 0.0
        if any(_holds(text, known, slack + known * 1e-12) for text in material.prompts):
            return True
    return False


def _holds(text: str, size: float, reach: float) -> bool:
    """Whether a text prints a number within reach of a size."""
    printed = _printed(text)
    at = bisect_left(printed, size - reach)
    return at < len(printed) and printed[at] <= size + reach


@lru_cache(maxsize=64)
def _printed(text: str) -> tuple[float, ...]:
    """Every number that a text prints, dates and horizons and all, in order of size."""
    found = _PRINTED.finditer(narrow(text))
    return tuple(sorted({float(one.group().replace(",", "")) for one in found if len(one.group()) < _LONGEST_PRINTED}))
