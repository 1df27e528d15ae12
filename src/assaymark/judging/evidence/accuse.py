"""When a number may be called contradicted. Everything here is a reason not to."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from functools import lru_cache

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.extract import Number
from assaymark.judging.evidence.match import CellHit, is_full, readings, significant, sized
from assaymark.judging.evidence.material import Cells, Material
from assaymark.judging.evidence.statement import is_plain_statement
from assaymark.judging.evidence.words import narrow

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
    """What the last digit of a stored value is worth: it may have been rounded there before the agent saw it.

    >>> _stored_step(3.1), _stored_step(2100.0)
    (0.1, 1.0)
    """
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
