"""The control cells as rows of the claim map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assaymark.records import AGGREGATE
from assaymark.report.book import Book
from assaymark.report.controls import Control, controls, gate_words, tested_words
from assaymark.report.formats import clean, count, count_of, number, signed
from assaymark.report.kinds import CELLS
from assaymark.report.levels import TAGS
from assaymark.report.map_rows import MapRow

_TESTS: Final = {
    "cell_a": ("Cell A", "Are long, confident and wrong texts refused?"),
    "cell_b": ("Cell B", "Are short and correct texts accepted?"),
}
_ABSENT: Final = {
    "cell_a": "Nothing shows that the panel does not reward confidence and length.",
    "cell_b": "Nothing shows that the panel does not punish brevity.",
}
_CONCLUSIONS: Final[Mapping[str, str]] = {
    "passed": "The panel does not simply reward length and confidence.",
    "failed": "The scores are contaminated: no claim under this rubric is supported.",
    "substance": "The panel scores substance: brevity alone costs nothing that matters.",
    "verbosity-bias": "The rubric is sensitive to style: short, correct texts are marked down; claims are qualified.",
    "terse-favoured": "The rubric is sensitive to style: short texts are marked up; claims are qualified.",
    "inconclusive": "Neither substance nor a bias is shown; claims stay qualified.",
    "invariant": "Other words for the same facts score alike.",
    "style-sensitive": "Other words for the same facts score differently: the score is sensitive to style.",
    "noticed": "A changed number is noticed.",
    "not noticed": "A changed number goes unnoticed.",
    "not tested": "It could not be tested; claims stay qualified.",
}


def cell_row(book: Book, cell: str) -> MapRow:
    """Cell A or cell B."""
    title, tests = _TESTS[cell]
    row = MapRow(title, tests, "index.html#controls", "Do the controls hold?")
    found = next((c for c in controls(book) if c.cell == cell), None)
    if found is None or (found.gate is None and found.score is None):
        return row.not_run(_ABSENT[cell])
    ids = tuple(m.id for m in (found.gate, found.score) if m is not None)
    return row.run(_result(book, found), _conclusion(found), *ids)


def _result(book: Book, control: Control) -> str:
    honest, score = book.one("cell.honest", dimension=AGGREGATE), control.score
    parts = []
    if score is not None and score.value is not None:
        mean = f"Panel mean {number(score.value)}"
        parts.append(mean + (f" against honest {number(honest.value)}" if honest and honest.value is not None else ""))
    if control.gate is not None:
        parts.append(f"difference by its rule {gate_words(control)}")
        parts += [tested_words(control.gate)] if tested_words(control.gate) else []
    n = score or control.gate
    return ", ".join(parts) + (f"; n = {count_of(n.n, n.n_of)}" if n is not None else "")


def _conclusion(control: Control) -> str:
    said = _CONCLUSIONS.get(control.outcome, "Its rule came to no outcome; claims stay qualified.")
    if control.turned:
        whole = f"{said} " if control.said.startswith(control.outcome) else ""
        said = f"{whole}It depends on the judges: {control.said}."
    if not control.supported:
        return f"{said} No claim about this cell is supported."
    return said if control.level is None else f"{said} Verdict: {TAGS[control.level].lower()}."


def other_cells_row(book: Book) -> MapRow:
    """Every cell beside A and B that was graded."""
    row = MapRow(
        "Other cells",
        "Do paraphrase, changed numbers, length and red-team texts move the score as they should?",
        "index.html#controls",
        "Do the controls hold?",
    )
    found = [c for c in controls(book) if c.cell not in _TESTS and (c.gate is not None or c.score is not None)]
    if not found:
        return row.not_run("Whether the judges notice a changed number, or only the words, is not known.")
    said = [f"{_name(c)}: {_short(book, c)}" for c in found]
    ends = [f"{_name(c)}: {_conclusion(c)}" for c in found if c.gate is not None] or ["They have no rule of their own."]
    return row.run("; ".join(said), " ".join(ends), *(m.id for c in found if (m := c.gate or c.score) is not None))


def _name(control: Control) -> str:
    known = {str(kind): words[0] for kind, words in CELLS.items()}
    return known.get(control.cell, control.title)


def _short(book: Book, control: Control) -> str:
    if control.gate is None:
        return _result(book, control)
    return f"{gate_words(control)}, {control.said} (n = {count(control.gate.n)})"


def halo_row(book: Book) -> MapRow:
    """What judges add to the cells that their own family composed."""
    row = MapRow(
        "Self-preference on control texts",
        "Does a judge family favour the control texts that its own family composed?",
        "index.html#controls",
        "Do the controls hold?",
    )
    found = [m for m in book.by_name.get("cell.halo", ()) if m.value is not None]
    if not found:
        return row.not_run("A control cell may pass or fail by the taste of the family that wrote it.")
    cut = book.run.study.cells.halo
    said = [f"{_cell(m.labels.get('cell', ''))} {signed(m.value or 0.0)} points ({_family(m.detail)})" for m in found]
    over = [_cell(m.labels.get("cell", "")) for m in found if m.detail.get("triggered")]
    conclusion = (
        f"{', '.join(over)}: the score without that family is primary."
        if over
        else f"No cell moves by {number(cut, 1)} or more: what the cells show is the panel’s, not one family’s."
    )
    result = "; ".join(said) + (f"; n = {count_of(found[0].n, found[0].n_of)}" if found else "")
    return row.run(result, conclusion, *(m.id for m in found))


def _cell(cell: str) -> str:
    return {str(kind): words[0] for kind, words in CELLS.items()}.get(cell, clean(cell, 40))


def _family(detail: Mapping[str, object]) -> str:
    family = detail.get("family")
    return f"judge family {clean(str(family), 40)}" if family else "no judge shares its family"
