"""Matching rules for numbers, and the conditions under which a number may be called contradicted."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np

from assaymark.judging.evidence.context_index import ContextIndex, DecisionNumbers, FactCells, FieldLabel, FreeFacts
from assaymark.judging.evidence.mention import HALF, NumberContext, PrintedNumber, UnitReading, Values, numbers_in
from assaymark.judging.evidence.words import (
    CHANGE,
    LISTS,
    SPAN_WORDS,
    SPELLED,
    SPREAD,
    canonical,
    is_content,
    is_horizon,
    lower_text,
    normalise_width,
    words_in,
)
from assaymark.records import EvidenceState

_PLAIN = LISTS["plain"]
_BEHIND = LISTS["behind"]
_WINDOW = LISTS["window"]
_SPAN = SPAN_WORDS | SPELLED.keys() | {"trading"}
_OPENERS = LISTS["openers"]
_TURNS = LISTS["turns"]
# exact synonyms only; a gain or a momentum may be measured in another way
_SAME = {
    "vol": "volatility", "vols": "volatility", "dd": "drawdown", "corr": "correlation", "returned": "return",
}  # fmt: skip
_POINTS = re.compile(r"p(?:oin)?ts?\b|pps?\b|[kKMBTx×]\Z", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\s'’`:=_\-–—|•·#]|\*\*)*\Z")
_LEFT_OVER_BESIDE = re.compile(r"(?:[\s'’`:=_\-–—|•·#,;()]|\*\*)*\Z")

_ELSEWHEN = LISTS["elsewhen"]
_DISPUTED = LISTS["disputed"]
_OTHER_BASIS = LISTS["other_basis"]
_BESIDE = _ELSEWHEN | _DISPUTED | _OTHER_BASIS
_DOUBT = _BESIDE | LISTS["doubt"]
_EARLIER = re.compile(r"\blast (?:year|month|quarter|week|season|time)\b")


@lru_cache(maxsize=1 << 12)
def is_doubted(before: str, after: str) -> bool:
    """Return True if a neighbouring sentence sets another time or basis, is hypothetical, quotes or retracts."""
    for text in (before, after):
        lower = lower_text(text)
        if not _BESIDE.isdisjoint(words_in(lower, 0, len(lower)).lowers) or _EARLIER.search(lower):
            return True
    return False


class _Token(NamedTuple):
    """A word, name, horizon or number in a sentence."""

    start: int
    end: int
    lower: str
    kind: str


def is_plain_statement(material: ContextIndex, around: NumberContext, label: FieldLabel) -> bool:
    """Return True if the sentence around a number only states that this field of the subject equals the number."""
    read, (start, end), (left, right) = around.read, around.sentence, around.clause
    text = read.text
    if read.uncut(around.number.start) != (start, end) or text[end : end + 1] in ("?", "？"):
        return False
    # Only the words of a horizon may follow the number.
    if not all(word in _BEHIND or word in _WINDOW or word in _SPAN or word[0].isdigit() for word in around.trail):
        return False
    if _POINTS.search(around.number.quote) or not around.horizons <= {label.horizon}:
        return False
    tokens = _tokens(around)
    printed = _forms(label.printed)

    def within(first: int, last: int) -> list[_Token]:
        return [token for token in tokens if first <= token.start < last]

    def behind(part: Sequence[_Token]) -> bool:
        return all(token.kind == "horizon" or token.lower in _BEHIND for token in part)

    def nothing_else(first: int, last: int, allowed: re.Pattern[str]) -> bool:
        # Only harmless marks may occur between the tokens: a ~, a quotation mark or a € makes the statement unclear.
        at = first
        for token in within(first, last):
            if not allowed.match(_LEFT_OUT.sub("", text[at : token.start])):
                return False
            at = max(at, token.end)
        return bool(allowed.match(_LEFT_OUT.sub("", text[at:last])))

    lead = within(left, around.number.start)
    for token in lead:
        if token.kind == "word" and token.lower not in _PLAIN and _plain_form(token.lower) not in printed:
            return False
    # Every word of the field precedes the number, except the benchmark in "beta to SPY", which is a name token.
    words = {_plain_form(token.lower) for token in lead if token.kind == "word"}
    wanted = {_plain_form(word) for word in label.printed if canonical(word) in label.kinds}
    missing = wanted - words
    named = any(token.kind == "name" for token in lead)
    if not words & wanted or (missing and not (named and len(missing) == 1 and len(wanted) > 1)):
        return False
    if not behind(within(around.number.end, right)) or not nothing_else(left, right, _LEFT_OVER):
        return False
    # The text before must not add a condition: only names, or other figures stated as plainly.
    before = within(start, left)
    if any(token.kind == "number" for token in before):
        fields = frozenset().union(*(_forms(label.printed) for label in material.cells.labels))
        plain = (t.kind != "word" or t.lower in _PLAIN | _TURNS or _plain_form(t.lower) in fields for t in before)
        if not all(plain):
            return False
    elif not all(token.kind == "name" or token.lower in _PLAIN for token in before):
        return False
    # The text after must not retract: only a conclusion ("so ...", "and I ..."), or other figures.
    after = within(right, end)
    opening = [token.lower for token in after[:2]]
    if opening and opening[0] in _TURNS:
        opening = opening[1:]
    concludes = bool(opening) and opening[0] in _OPENERS
    if concludes or (any(token.kind == "number" for token in after) and after[0].kind != "number"):
        if not _DOUBT.isdisjoint(token.lower for token in after):
            return False
    elif not behind(after):
        return False
    return nothing_else(start, left, _LEFT_OVER_BESIDE) and (concludes or nothing_else(right, end, _LEFT_OVER_BESIDE))


def _tokens(around: NumberContext) -> list[_Token]:
    """Split the sentence into names, horizons, numbers and single words, in order."""
    start, end = around.sentence
    sentence = around.read.sentence_at(around.number.start)
    tokens = [_Token(number.start, number.end, "", "number") for number in numbers_in(around.read.numbers, start, end)]
    tokens += [
        _Token(mention.start, mention.end, "", "name") for mention in sentence.mentions if start <= mention.start < end
    ]
    tokens += [_Token(first, last, "", "horizon") for first, last, _ in sentence.spoken.spans(start, end)]
    words = sentence.words
    for at in range(*words.within(start, end)):
        first, last = words.starts[at], words.end(at)
        if not any(token.start < last and first < token.end for token in tokens):
            kind = "horizon" if is_horizon(words.forms[at]) else "word"
            tokens.append(_Token(first, last, words.lowers[at], kind))
    tokens.sort(key=lambda token: token.start)
    kinds = [*(token.kind for token in tokens[1:]), ""]
    return [
        token
        for at, (token, following) in enumerate(zip(tokens, kinds, strict=False))
        if not (token.lower in _WINDOW and following == "horizon")
        and not (token.lower == "to" and following == "name" and at and tokens[at - 1].lower == "beta")
    ]


@lru_cache(maxsize=1 << 12)
def _forms(printed: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_plain_form, printed))


def _plain_form(lower: str) -> str:
    """Return a word without its plural; only exact synonyms share a form."""
    if lower in _SAME:
        return _SAME[lower]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else lower


_LEFT_OUT = re.compile(r"\b(?:last|past|trailing|latest|to)\b", re.IGNORECASE)


def readings(number: PrintedNumber, *, percent_of_plain: bool = False) -> tuple[UnitReading, ...]:
    """Return the readings of a number in the order of trial."""
    size = abs(number.value)
    if number.unit == "percent":
        return (UnitReading(True, size / 100, number.step / 100),)
    if number.unit == "bps":
        return (UnitReading(True, size / 1e4, number.step / 1e4),)
    plain: tuple[UnitReading, ...] = (UnitReading(False, size, number.step),)
    if number.scale != 1.0:
        plain += (UnitReading(False, size / number.scale, number.step / number.scale),)
    if percent_of_plain and number.unit == "none":
        plain += (UnitReading(True, size / 100, number.step / 100),)
    return plain


@lru_cache(maxsize=1 << 12)
def significant(quote: str) -> int:
    """Count the significant digits of a printed number."""
    return len("".join(c for c in normalise_width(quote) if c in "0123456789").lstrip("0")) or 1


def sign_fits(around: NumberContext, value: float, signed: bool, depth: bool) -> bool:
    """Return True if a stored sign agrees with the printed sign or with the words of movement."""
    if value == 0 or (depth and not (around.number.signed and around.direction > 0)):
        return True
    if around.direction < 0:
        return value < 0 or (not around.number.signed and not signed)
    return value > 0


def tier_of(label: FieldLabel, around: NumberContext, horizons: frozenset[str]) -> int:
    """Grade a label's match with the clause: 3 named in full, 2 in part, 1 not at all, 0 another horizon is named."""
    named = around.horizons & horizons
    if label.horizon and named and label.horizon not in named:
        return 0
    if is_full(label, around):
        return 3
    return 2 if label.kinds & around.words or (label.horizon and label.horizon in named) else 1


def is_full(label: FieldLabel, around: NumberContext) -> bool:
    """Return True if the clause names the field with all of its words and, if it has one, its horizon."""
    return bool(label.kinds) and label.kinds <= around.words and (not label.horizon or label.horizon in around.horizons)


_ROW_RULES = ("row-other-horizon", "row-unlabelled", "row-part-labelled", "row-labelled")
_LEAST_DIGITS = (3, 2, 1, 1)  # of a match by chance: one digit agrees with some cell of most rows


def match_cell(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Find the best-labelled cell of the nearest possible instrument that agrees with the number, or None."""
    cells, ruling, best = material.cells, None, -1
    money, values = around.number.unit == "usd", cells.values
    read = readings(around.number, percent_of_plain=True)
    for row in around.rows:
        part = cells.parts[row]
        for order, reading in enumerate(read if part.start < part.stop else ()):
            for cell in values.sizes(reading, money=money).near(reading.size, reading.half, part):
                label = cells.of_cell[cell]
                if not sign_fits(around, values.printed[cell], label.signed, label.depth):
                    continue
                tier = tier_of(label, around, cells.horizons[row])
                if (around.number.bare or order > 0) and not label.kinds & around.words:
                    continue
                if tier > best and max(significant(around.number.quote), around.number.decimals) >= _LEAST_DIGITS[tier]:
                    state: EvidenceState = "supported" if tier else "in_context"
                    best, ruling = tier, Ruling(state, _ROW_RULES[tier], (cells.ids[cell],), row)
    return ruling


def match_free(free: FreeFacts, around: NumberContext, words: frozenset[str]) -> int | None:
    """Find the free fact that agrees with the number and its direction and shares most of ``words``, or None."""
    if not free.ids:
        return None
    best, most = None, 0
    for reading in readings(around.number):
        for at in _sized_or_unmarked(free.values, reading, around):
            shared = len(free.words[at] & words)
            if shared <= most:
                continue
            if direction_fits(free, at, around):
                best, most = at, shared
    return best


def direction_fits(free: FreeFacts, at: int, around: NumberContext) -> bool:
    """Return True if a free fact agrees with a number's direction; a printed minus needs a decrease in the note."""
    direction = int(free.direction[at])
    if around.direction < 0 and around.number.signed:
        return direction < 0 or (direction == 0 and bool(free.falling[at]))
    return not around.direction or direction != -around.direction


def _sized_or_unmarked(values: Values, reading: UnitReading, around: NumberContext) -> list[int]:
    """Find values that match a reading's size, and values without a unit that equal a percentage as printed."""
    hits = values.sizes(reading, money=around.number.unit == "usd").all_near(reading.size, reading.half)
    if reading.as_rate:
        hits += values.unmarked.all_near(reading.size * 100, reading.half * 100)
    return hits


def match_bag(
    bag: DecisionNumbers, around: NumberContext, words: frozenset[str], subjects: frozenset[str] | None
) -> int | None:
    """Find the entry that equals the number and shares enough words; with ``subjects``, one about any of these."""
    if not bag.ids:
        return None
    for reading in readings(around.number, percent_of_plain=True):
        for at in _sized_or_unmarked(bag.values, reading, around):
            fits = len(bag.words[at] & words) >= bag.needed[at] if subjects is None else bag.subjects[at] in subjects
            if fits and (around.direction < 0 or bag.values.printed[at] >= 0):
                return at
    return None


def subject_words(around: NumberContext) -> frozenset[str]:
    """Return the words of a clause that can name a subject, including maturities."""
    return frozenset(word for word in around.words | around.horizons if is_content(word))


_MOST_PARTS = 24
_MOST_NOTES = 12
_MOST_PAIRS = 6
_RELATIVE = frozenset(("active", "relative", "excess", "vs", "alpha", "rank", "correlation", "corr"))
_SESSIONS_A_YEAR = 252
_MOST_PRICES = 6
_MOST_DIGITS = 99
_PRICES = frozenset(("price", "close"))
_MOVED = CHANGE | {"return", "returns", "returned", "performance", "move", "moved"}
_FINE = 3
_DAY_S = 86_400


class Ruling(NamedTuple):
    """The result of one rule: the state of a number, the rule, the facts used, and the row of its subject."""

    state: EvidenceState
    rule: str
    facts: tuple[str, ...] = ()
    row: int = -1


def derive(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Return the first derivation of the number from visible facts, or None."""
    if around.number.bare:
        return None
    ruling = _match_spread(material, around) or _match_combined(material.free, around) or _match_bars(material, around)
    if ruling is not None or not _is_movement(around):
        return ruling
    # The change between two prices of an instrument, such as from the entry price to the last
    cells = material.cells
    for row in around.rows:
        part = cells.parts[row]
        prices = [at for at in range(part.start, part.stop) if not cells.of_cell[at].kinds.isdisjoint(_PRICES)]
        for at, base in permutations(prices[:_MOST_PRICES], 2):
            value, before = float(cells.values.plain[at]), float(cells.values.plain[base])
            if before > 0 and _is_difference(around, (value / before - 1, value - before), ordered=True):
                return Ruling("derivable", "change-in-row", (cells.ids[at], cells.ids[base]), row)
    return None


def _match_spread(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Match the difference between two instruments in one field, if the clause is a comparison."""
    if SPREAD.isdisjoint(around.lower):
        return None
    cells = material.cells
    rows = list(dict.fromkeys((*around.rows, material.benchmark)))
    pairs = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if min(a, b) >= 0]
    for pair in pairs[:_MOST_PAIRS]:
        # differences are measured against the benchmark, never the other way round
        first, other = sorted(pair, key=lambda row: row == material.benchmark)
        left, right = cells.parts[first], cells.parts[other]
        place = {int(label): right.start + i for i, label in enumerate(cells.label[right])}
        for at in range(left.start, left.stop):
            label = cells.of_cell[at]
            there = place.get(int(cells.label[at]))
            if there is None or label.kinds & _RELATIVE:
                continue
            tier = tier_of(label, around, cells.horizons[first])
            if tier == 0 or (tier == 1 and significant(around.number.quote) < 3):
                continue
            rate, plain = cells.values.rate, cells.values.plain
            difference = float(rate[at] - rate[there]), float(plain[at] - plain[there])
            if _is_difference(around, difference, ordered=other == material.benchmark):
                return Ruling("derivable", "difference-of-rows", (cells.ids[at], cells.ids[there]), first)
    return None


def _is_difference(around: NumberContext, difference: tuple[float, float], *, ordered: bool) -> bool:
    """Return True if the number is this (rate, plain) difference; the sign must agree if the order is ``ordered``."""
    if ordered and around.direction and difference[1] and (around.direction > 0) != (difference[1] > 0):
        return False
    return any(
        abs(abs(difference[0] if reading.as_rate else difference[1]) - reading.size) <= reading.half
        for reading in readings(around.number)
    )


def _match_combined(free: FreeFacts, around: NumberContext) -> Ruling | None:
    """Match a sum, difference, ratio or relative change of two numbers in one note about the clause's subject."""
    lower = around.lower
    if not free.ids or (CHANGE.isdisjoint(lower) and SPREAD.isdisjoint(lower)):
        return None
    words = subject_words(around)
    if not words or (significant(around.number.quote) < 2 and around.number.unit != "bps"):
        return None
    edges = np.flatnonzero(np.diff(free.note, prepend=-1, append=-2)).tolist()
    shown = 0
    for start, end in pairwise(edges):
        if end - start < 2 or len(free.words[start] & words) < min(2, len(words)):
            continue
        part = slice(start, min(end, start + _MOST_PARTS))
        rate, plain = free.values.rate[part], free.values.plain[part]
        for reading in readings(around.number):
            with np.errstate(all="ignore"):
                level = np.where(np.isnan(rate), plain, np.nan)
                values = rate if reading.as_rate else level
                quotient = level[:, None] / level[None, :]
                last = ("relative-change", np.abs(quotient - 1)) if reading.as_rate else ("ratio", np.abs(quotient))
                distance, total = np.abs(values[:, None] - values[None, :]), np.abs(values[:, None] + values[None, :])
                for rule, table in (("difference", distance), ("sum", total), last):
                    np.fill_diagonal(table, np.nan)
                    hits = np.argwhere(np.abs(table - reading.size) <= reading.half)
                    if len(hits):
                        facts = free.ids[start + int(hits[0][0])], free.ids[start + int(hits[0][1])]
                        return Ruling("derivable", f"{rule}-in-note", facts)
        shown += 1
        if shown == _MOST_NOTES:
            return None
    return None


def _match_bars(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Match a return, volatility or drawdown of the instrument over the named horizon, or a return over all bars."""
    for row in around.rows if material.series else ():
        series = material.series.get(material.subjects.ids[row])
        if series is None or len(series.close) < 2:
            continue
        used = (f"series:{series.instrument}",)
        if not around.horizons and around.number.unit != "usd" and _is_movement(around):
            # to the last bar from the first or, for a number with three or more digits, from any
            starts = series.close[:-1] if significant(around.number.quote) >= _FINE else series.close[:1]
            gaps = (series.close[-1] / start - 1 for start in starts if start > 0)
            if any(_is_difference(around, (change, change), ordered=True) for change in gaps):
                return Ruling("derivable", "return-shown", used, row)
        for horizon in sorted(around.horizons):
            # The statistic that the words name; the horizon counts bars and, if different, calendar days.
            count, unit, last = int(horizon[:-1]), horizon[-1], len(series.close) - 1
            days = {"d": 1.0, "w": 7.0, "m": 365.25 / 12, "y": 365.25}[unit] * count
            begin = bisect_right(series.times, series.times[-1] - timedelta(days=min(days, 36_500))) - 1
            for first in dict.fromkeys(([last - count] if unit == "d" else []) + [begin]):
                close = np.asarray(series.close[max(first, 0) :], dtype=np.float64)
                if not 0 <= first < last or (close <= 0).any():
                    continue
                rule, value = "return", float(close[-1] / close[0] - 1)
                if "volatility" in around.words:
                    moves = np.diff(close) / close[:-1]
                    if moves.size < 2:
                        continue
                    bars_a_day = max(1.0, _DAY_S / series.interval_s if series.interval_s < _DAY_S else 1.0)
                    rule = "volatility"
                    value = float(moves.std(ddof=1)) * math.sqrt(_SESSIONS_A_YEAR * bars_a_day)
                elif "drawdown" in around.words:
                    rule, value = "drawdown", float((close / np.maximum.accumulate(close) - 1).min())
                if math.isfinite(value) and _is_difference(around, (value, value), ordered=rule == "return"):
                    return Ruling("derivable", f"{rule}-{horizon}", used, row)
    return None


def _is_movement(around: NumberContext) -> bool:
    """Return True if the number describes a movement and has enough digits: two for a rate, three for an amount."""
    least = {"percent": 2, "bps": 2, "usd": 3}.get(around.number.unit, _MOST_DIGITS)
    moved = around.direction != 0 or not around.lower.isdisjoint(_MOVED)
    return moved and significant(around.number.quote) >= least


_FACTORS = (1.0, 100.0, 0.01)
_COARSEST_RATE = 0.01
_RATE_UNITS = ("percent", "bps", "none")
_CLOSE = 0.1
_PRINTED = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]{1,25})?")
_LONGEST_PRINTED = 40


def contradiction(material: ContextIndex, around: NumberContext) -> Ruling | None:
    """Rule that a number contradicts the one cell that it is about; None if any condition for that is not met."""
    # The benchmark may be named along with the instrument, as in "beta to SPY", if the field's name contains it.
    candidates = set(around.nearby) | ({around.default} if around.default >= 0 else set())
    if len(candidates) == 2:
        candidates.discard(material.benchmark)
    if len(candidates) != 1 or around.numbers_in_clause != 1:
        return None
    row = candidates.pop()
    cells = material.cells
    part = cells.parts[row]
    named = [at for at in range(part.start, part.stop) if is_full(cells.of_cell[at], around)]
    widest = max((len(cells.of_cell[at].kinds) for at in named), default=0)
    # "active return" names that field, not "return", whose only word it contains
    closest = [at for at in named if len(cells.of_cell[at].kinds) == widest]
    if len(closest) != 1 or not _differs(cells, around, closest[0]):
        return None
    label = cells.of_cell[closest[0]]
    if not is_plain_statement(material, around, label):
        return None
    if material.benchmark in around.nearby - {row} and not label.kinds & material.subjects.words[material.benchmark]:
        return None
    # Nor if the number occurs in the prompt or in a free fact, about any subject.
    number, free = around.number, material.free.values
    read = readings(number, percent_of_plain=True)
    if any(free.sizes(reading).all_near(reading.size, reading.half) for reading in read):
        return None
    size = abs(number.value) / number.scale
    half = number.step / number.scale * HALF if significant(number.quote) >= _FINE else 0.0
    for truth in {size * factor for factor in _FACTORS}:
        reach = (half * truth / size if size else 0.0) + truth * 1e-12
        for printed in map(_printed_sizes, material.prompts):
            at = bisect_left(printed, truth - reach)
            if at < len(printed) and printed[at] <= truth + reach:
                return None
    return Ruling("contradicted", "one-cell-differs", (cells.ids[closest[0]],), row)


def _differs(cells: FactCells, around: NumberContext, cell: int) -> bool:
    """Return True if no reading of the number, rounded or truncated, with or without sign, can be the stored value."""
    rate, plain = float(cells.values.rate[cell]), float(cells.values.plain[cell])
    number = around.number
    if not math.isnan(rate) and number.unit not in _RATE_UNITS:
        return False
    # The unit of a stored value's last digit: the value may have been rounded there before the agent saw it.
    digits = repr(abs(plain))
    if "e" in digits:
        step = abs(plain) * 1e-15 if abs(plain) < 1 else 1.0
    else:
        fraction = digits.partition(".")[2].rstrip("0")
        step = float(10.0 ** -len(fraction))
    comparable = False
    for reading in readings(number, percent_of_plain=True):
        value = rate if reading.as_rate else plain
        if math.isnan(value):
            continue
        comparable = True
        loose = not number.signed or not cells.of_cell[cell].signed or value == 0
        sign = 1.0 if loose or (around.direction > 0) == (value > 0) else -1.0
        unit = value / plain if plain else 1.0
        grain = min(step * unit, _COARSEST_RATE) if reading.as_rate else step
        for factor in _FACTORS if not math.isnan(rate) else _FACTORS[:1]:
            size = reading.size * factor
            reach = max(reading.step * factor, grain)
            # the other scale counts only if it is close; with a wide tolerance it would match anything
            reach = reach if factor == 1.0 else min(reach, size * _CLOSE)
            if abs(abs(value) - sign * size) <= reach * (1 + 1e-6) + size * 1e-12:
                return False
    return comparable


@lru_cache(maxsize=64)
def _printed_sizes(text: str) -> tuple[float, ...]:
    """Return every number that a text prints, including dates and horizons, sorted by size."""
    hits = _PRINTED.finditer(normalise_width(text))
    return tuple(sorted({float(hit.group().replace(",", "")) for hit in hits if len(hit.group()) < _LONGEST_PRINTED}))
