"""Does a printed number agree with a stored one? Readings, tolerances, and look-ups by instrument and in free facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.extract import Number
from assaymark.judging.evidence.material import Bools, Cells, FieldLabel, FreeFacts, Material, NumberBag, Values
from assaymark.judging.evidence.words import is_content

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


def significant(number: Number) -> int:
    """How many significant digits were printed.

    >>> from assaymark.judging.evidence.extract import extract_numbers
    >>> [significant(n) for n in extract_numbers("0.0180 and 7,509.2")]
    [3, 5]
    """
    return len("".join(c for c in number.quote if c in "0123456789").lstrip("0")) or 1


def near(values: Values, reading: Reading, part: slice, *, money: bool = False) -> tuple[Bools, Bools]:
    """Which values of ``part`` equal the reading, and which equal its negative, within half a last digit."""
    stored = values.rate[part] if reading.as_rate else values.plain[part]
    plus = np.abs(stored - reading.size) <= reading.half
    minus = np.abs(stored + reading.size) <= reading.half
    if money:
        no_rate = np.isnan(values.rate[part])
        return plus & no_rate, minus & no_rate
    return plus, minus


def with_sign(plus: Bools, minus: Bools, around: Around, signed: Bools, depth: Bools) -> Bools:
    """The hits whose sign goes with the printed sign or the words of movement."""
    if around.direction > 0:
        return plus | (minus & depth)
    if around.direction < 0:
        return minus | (plus & depth) if around.number.signed else minus | (plus & (~signed | depth))
    return plus | (minus & depth)


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
    number = around.number
    best: CellHit | None = None
    for order, reading in enumerate(readings(number, percent_of_plain=True)):
        plus, minus = near(cells.values, reading, part, money=number.unit == "usd")
        agreed = with_sign(plus, minus, around, cells.signed[part], cells.depth[part])
        if not agreed.any():
            continue
        horizons = row_horizons(cells, part)
        for offset in np.flatnonzero(agreed):
            cell = part.start + int(offset)
            tier = _admitted(cells.labels[int(cells.label[cell])], around, horizons, second_choice=order > 0)
            if tier is not None and (best is None or tier > best.tier):
                best = CellHit(cell, row, tier)
    return best


def row_horizons(cells: Cells, part: slice) -> frozenset[str]:
    """The horizons an instrument has values for."""
    return frozenset(cells.labels[int(label)].horizon for label in cells.label[part]) - {""}


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
    number = around.number
    best, most = None, 0
    for reading in readings(number):
        plus, minus = near(free.values, reading, slice(None), money=number.unit == "usd")
        hits = plus | minus
        if reading.as_rate:
            hits |= _unmarked_percent(free.values, reading)
        if around.direction:
            hits &= free.direction != -around.direction
        for at in np.flatnonzero(hits):
            shared = len(free.words[at] & words)
            if shared > most:
                best, most = int(at), shared
    return best


def _unmarked_percent(values: Values, reading: Reading) -> Bools:
    """Values without a unit that equal a percentage as printed: tables often name the unit elsewhere."""
    close: Bools = np.abs(values.unmarked - reading.size * 100) <= reading.half * 100
    return close


def match_bag(bag: NumberBag, around: Around, words: frozenset[str], rows: frozenset[str] | None) -> int | None:
    """The entry of a bag that equals the number and shares a word with it; with ``rows``, about one of these."""
    if not bag.ids:
        return None
    hits = np.zeros(len(bag.ids), dtype=bool)
    for reading in readings(around.number, percent_of_plain=True):
        plus, minus = near(bag.values, reading, slice(None))
        hits |= _by_direction(plus, minus, around)
        if reading.as_rate:
            hits |= _unmarked_percent(bag.values, reading)
    for at in np.flatnonzero(hits):
        if rows is not None and bag.subjects[at] in rows:
            return int(at)
        if rows is None and bag.words[at] & words:
            return int(at)
    return None


def _by_direction(plus: Bools, minus: Bools, around: Around) -> Bools:
    return plus | minus if around.direction < 0 else plus


def content(around: Around) -> frozenset[str]:
    """The words of a clause that can name a subject, maturities among them."""
    return frozenset(word for word in around.words | around.horizons if is_content(word))
