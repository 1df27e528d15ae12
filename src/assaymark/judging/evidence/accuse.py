"""When a number may be called contradicted. Everything here is a reason not to."""

from __future__ import annotations

import numpy as np

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.lexicon import SPREAD, word_set
from assaymark.judging.evidence.match import CellHit, is_full, readings
from assaymark.judging.evidence.material import Cells, Material

_HEDGES = word_set(
    """
    if would could should may might will expect expected forecast target assume scenario roughly about around nearly
    almost approximately least most than over under above below between sub estimate estimated case likely potential
    toward towards another further combined average total versus vs
    """
)


def accusation(material: Material, around: Around) -> CellHit | None:
    """The one cell that an unmatched number misstates, or None where any condition of an accusation fails.

    The conditions: one instrument, named in the clause or owning the text, and no other beside it; the only number of
    its clause; no hedge or comparison in the clause; a field named in all its words with its horizon; exactly one
    stored value of that field; a unit in which the two can be compared; and a difference of more than one last
    printed digit, which neither rounding nor truncation, nor rounding a rounded display, can make.
    """
    row = _only_subject(around)
    if row is None or around.crowd != 1 or not _HEDGES.isdisjoint(around.lower):
        return None
    if len(around.named) != 1 and not SPREAD.isdisjoint(around.lower):
        return None
    cell = _only_cell(material.cells, around, row)
    if cell is None or not _differs(material.cells, around, cell):
        return None
    return CellHit(cell, row, 3)


def _only_subject(around: Around) -> int | None:
    """The instrument, where clause and text agree that it can be no other."""
    candidates = set(around.named) | ({around.default} if around.default >= 0 else set())
    return candidates.pop() if len(candidates) == 1 else None


def _only_cell(cells: Cells, around: Around, row: int) -> int | None:
    """The one stored value of the one field that the clause names in full."""
    part = cells.of_row(row)
    named = [at for at in range(part.start, part.stop) if is_full(cells.labels[int(cells.label[at])], around)]
    widest = max((len(cells.labels[int(cells.label[at])].kinds) for at in named), default=0)
    # "active return" names that field, not the plain return whose words it contains
    closest = [at for at in named if len(cells.labels[int(cells.label[at])].kinds) == widest]
    return closest[0] if len(closest) == 1 else None


def _differs(cells: Cells, around: Around, cell: int) -> bool:
    """Whether no reading of the number, rounded or truncated, with or without its sign, can be the stored value."""
    rate, plain = float(cells.values.rate[cell]), float(cells.values.plain[cell])
    number = around.number
    comparable = False
    for reading in readings(number, percent_of_plain=True):
        value = rate if reading.as_rate else plain
        if np.isnan(value) or (number.unit == "usd" and not np.isnan(rate)):
            continue
        comparable = True
        size = reading.size if _signs_agree(around, value, cells, cell) else -reading.size
        if abs(abs(value) - size) <= reading.step * (1 + 1e-6) + reading.size * 1e-12:
            return False
    return comparable


def _signs_agree(around: Around, value: float, cells: Cells, cell: int) -> bool:
    """Only a printed sign, on a field whose sign means something, can be wrong; words of movement are too loose."""
    if not around.number.signed or not cells.labels[cells.label[cell]].signed or value == 0:
        return True
    return (around.direction > 0) == (value > 0)
