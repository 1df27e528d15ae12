"""What a claim is about: told by the head of its id, never by how many subjects it has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, get_args

from assaymark.records import Claim, DerivationKind

ClaimKind = Literal["first", "ranking", "tie", "cell", "above", "other"]
KINDS: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)
"""Every kind, in the order in which a page lists the claims on one score."""

ABOUT_AGENTS: Final[tuple[ClaimKind, ...]] = ("first", "ranking", "tie", "above", "other")
"""The kinds whose subjects are agents; the subject of a cell claim is a set of control texts."""

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

_CELL: Final = re.compile(r"(?<==)[a-z_]+(?=[,\]])")


def kind_of(claim: Claim) -> ClaimKind:
    """The kind of a claim.

    >>> from assaymark.records import Claim
    >>> kind_of(Claim(id="tie[dimension=aggregate]", scope="aggregate-ranking", statement="", subjects=("a", "b"),
    ...               dimension="aggregate", asserts_order=False))
    'tie'
    """
    head = claim.id.partition("[")[0]
    found: ClaimKind = next((kind for kind in KINDS if kind == head), "other")
    return "cell" if found == "other" and claim.scope == "adversarial-cell" else found


def cell_of(claim: Claim) -> str:
    """Which control texts a cell claim is about; empty where neither its id nor its subjects name any.

    >>> from assaymark.records import Claim
    >>> cell_of(Claim(id="cell[cell=cell_b]", scope="adversarial-cell", statement="", subjects=(),
    ...               dimension="aggregate", asserts_order=False))
    'cell_b'
    """
    named = (*_CELL.findall(claim.id), *claim.subjects)
    return next((name for name in named if name in CELLS), "")


def cell_title(cell: str) -> str:
    """How a page calls a kind of control text, with what its texts are.

    >>> cell_title("cell_b"), cell_title("another_one")
    ('Cell B: terse and correct', 'Another one')
    """
    known = {str(kind): words for kind, words in CELLS.items()}.get(cell)
    return f"{known[0]}: {known[1]}" if known else cell.replace("_", " ").capitalize()
