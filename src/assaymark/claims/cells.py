"""What each control cell showed: its outcome, the number behind it, and the sentence about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assaymark.claims.words import interval_words, p_words, signed
from assaymark.protocol import Cells
from assaymark.records import Measurement

if TYPE_CHECKING:
    from assaymark.claims.evidence import Index


WORDS: Final[Mapping[str, str]] = {
    "cell_a": "confident but wrong rationales",
    "cell_b": "terse but correct rationales",
    "red_team": "red-team rationales",
    "paraphrase": "paraphrases with the same facts",
    "fact_flip": "rationales with one number changed",
    "length_matched": "rationales brought to one length",
}
"""How a sentence calls the texts of each gated cell."""

_STATEMENTS: Final[Mapping[str, str]] = {
    "passed": "The panel scores {texts} below the bottom quartile of honest ones.",
    "failed": "The panel does not score {texts} below the bottom quartile of honest ones.",
    "substance": "The panel scores {texts} within {substance:g} points of honest ones.",
    "verbosity-bias": "The panel scores {texts} more than {verbosity:g} points below honest ones.",
    "terse-favoured": "The panel scores {texts} more than {substance:g} points above honest ones.",
    "invariant": "The panel scores {texts} within {substance:g} points of their originals.",
    "style-sensitive": "The panel scores {texts} more than {substance:g} points away from their originals.",
    "noticed": "The panel scores {texts} below their originals.",
    "not noticed": "The panel does not score {texts} below their originals.",
    "inconclusive": "What the panel makes of {texts} stays open.",
}


@dataclass(frozen=True, slots=True)
class CellState:
    """One control cell: the outcome of its rule and the number behind it."""

    cell: str
    outcome: str
    gate: Measurement
    halo: Measurement | None
    family: str | None
    drops: Mapping[str, Measurement]

    @property
    def texts(self) -> str:
        """How a sentence calls the cell's texts."""
        return cell_words(self.cell)

    @property
    def value(self) -> float | None:
        """The number that the rule looks at, in rubric points, without the in-family judges where that is primary."""
        primary = self.drops.get(self.family) if self.family is not None else None
        return self.gate.value if primary is None else primary.value

    @property
    def numbers(self) -> str:
        """The number with its interval and its p-value, in words."""
        if self.value is None:
            return self.gate.state
        whole = self.value == self.gate.value
        interval = interval_words(self.gate.low, self.gate.high) if whole else ""
        p = self.gate.detail.get("p_holm" if self.cell in ("cell_b", "paraphrase", "length_matched") else "p")
        tail = f", {p_words(float(p))}" if whole and p is not None else ""
        return f"{signed(self.value)} points{interval}{tail}"

    @property
    def measurements(self) -> tuple[str, ...]:
        """What the outcome rests on."""
        primary = () if self.family is None else (self.drops[self.family].id,)
        return (self.gate.id, *(() if self.halo is None else (self.halo.id,)), *primary)


def cell_words(cell: str) -> str:
    """How a sentence calls the texts of a cell."""
    return WORDS.get(cell, f"records of {cell.replace('_', ' ')}")


def cell_states(known: Index) -> dict[str, CellState]:
    """The state of every gated cell that was judged, by its name."""
    if "cells" in known.memo:
        found: dict[str, CellState] = known.memo["cells"]
        return found
    known.memo["cells"] = found = {}
    for cell in known.cells:
        gate, halo = known.get("cell.gate", cell=cell), known.get("cell.halo", cell=cell)
        if gate is None:
            continue
        drops = {one.labels["dropped"]: one for one in known.named("cell.drop") if one.labels["cell"] == cell}
        family = str(halo.detail.get("family")) if halo is not None and halo.detail.get("triggered") else None
        # The drop stands in for the gate only where the gate was not already computed without the family.
        if family not in drops or gate.detail.get("primary") == f"without {family}":
            family = None
        outcome = outcome_of(gate if family is None else drops[family])
        found[cell] = CellState(cell, outcome, gate, halo, family, drops)
    return found


def cell_statement(state: CellState, limits: Cells) -> str:
    """The sentence about a cell, for its outcome."""
    text = _STATEMENTS.get(state.outcome, "How the panel treats {texts} was not tested.")
    return text.format(texts=state.texts, substance=limits.substance, verbosity=limits.verbosity)


def outcome_of(item: Measurement) -> str:
    """The outcome of a gate, or of a gate without one judge family; what has no number was not tested."""
    outcome = item.detail.get("outcome")
    shown = outcome in _STATEMENTS and (item.value is not None or outcome == "inconclusive")
    return str(outcome) if shown else "not tested"
