"""How a page calls the control texts, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assaymark.records import DerivationKind

CELLS: Final[Mapping[DerivationKind, tuple[str, str]]] = {
    "cell_a": ("Cell A", "verbose, confident and wrong"),
    "cell_b": ("Cell B", "terse and correct"),
    "paraphrase": ("Paraphrase", "other words, same facts"),
    "fact_flip": ("Fact flip", "one number changed"),
    "length_matched": ("Length matched", "same content at one length"),
    "red_team": ("Red team", "texts written to deceive"),
    "ladder": ("Ladder", "texts of known quality"),
    "vacuum": ("Vacuum", "texts without content"),
}
"""Each kind of control text: how a page calls it, and what its texts are."""


def cell_title(cell: str) -> str:
    """How a page calls a kind of control text, with what its texts are.

    >>> cell_title("cell_b"), cell_title("another_one")
    ('Cell B: terse and correct', 'Another one')
    """
    known = {str(kind): words for kind, words in CELLS.items()}.get(cell)
    return f"{known[0]}: {known[1]}" if known else cell.replace("_", " ").capitalize()
