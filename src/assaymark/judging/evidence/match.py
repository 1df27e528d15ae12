"""Does a printed number agree with a stored one? Readings, tolerances, and look-ups by instrument and in free facts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.extract import Number
from assaymark.judging.evidence.material import FieldLabel, FreeFacts, Material, NumberBag
from assaymark.judging.evidence.values import Values
from assaymark.judging.evidence.words import is_content, narrow

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
    """The readings of a number in the order in which they are tried.

    >>> from assaymark.judging.evidence.extract import extract_numbers
    >>> readings(extract_numbers("25bps")[0])
    (Reading(as_rate=True, size=0.0025, step=0.0001),)
    """
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
    """How many significant digits were printed.

    >>> from assaymark.judging.evidence.extract import extract_numbers
    >>> [significant(n) for n in extract_numbers("0.0180 and 7,509.2")]
    [3, 5]
    """
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
