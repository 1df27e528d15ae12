"""When a number may be called contradicted. Everything here is a reason not to."""

from __future__ import annotations

import numpy as np

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.lexicon import SPREAD, word_set
from assaymark.judging.evidence.match import CellHit, is_full, readings
from assaymark.judging.evidence.material import Cells, Material
from assaymark.judging.evidence.words import is_content, is_horizon

_HEDGES = word_set(
    """
    if would could should may might will expect expected forecast target assume scenario roughly about around nearly
    almost approximately least most than over under above below between sub estimate estimated case likely potential
    toward towards another further combined average total versus vs
    """
)


_MEASURES = word_set(
    "rank score relative active quality index rate level price value total change growth market figure"
)


def accusation(material: Material, around: Around) -> CellHit | None:
    """The one cell that an unmatched number misstates, or None where any condition of an accusation fails.

    The conditions: one instrument, named in the clause or owning the text, and no other beside it; the only number of
    its clause; no hedge, comparison or further noun there; a field named in all its words with its horizon; exactly one
    stored value of that field; a unit in which the two can be compared; and a difference of more than one last
    printed digit, which neither rounding nor truncation, nor rounding a rounded display, can make.
    """
    row = _only_subject(material, around)
    if row is None or around.crowd != 1 or not _HEDGES.isdisjoint(around.lower):
        return None
    cell = _only_cell(material.cells, around, row)
    if cell is None or not _differs(material.cells, around, cell):
        return None
    kinds = material.cells.labels[material.cells.label[cell]].kinds
    if not (SPREAD - kinds).isdisjoint(around.lower) or _other_words(material, around, kinds):
        return None
    if material.benchmark in around.rivals - {row} and not kinds & material.subjects.words[material.benchmark]:
        return None
    return CellHit(cell, row, 3)


def _other_words(material: Material, around: Around, kinds: frozenset[str]) -> bool:
    """Whether the clause says more than subject, field and horizon: another noun makes it another quantity."""
    names = frozenset().union(*(material.subjects.words[row] for row in around.rows))
    return any(
        word not in kinds and word not in names and not is_horizon(word) and (is_content(word) or word in _MEASURES)
        for word in around.words
    )


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
