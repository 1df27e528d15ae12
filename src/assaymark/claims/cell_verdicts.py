"""The verdict on a control cell's own sentence: agreement inside the cell, its outcome under drops, and the halo."""

from __future__ import annotations

from assaymark.claims.adversarial import Adversarial
from assaymark.claims.agreement import Agreement, agreement_on
from assaymark.claims.cells import CellState, cell_states, outcome_of
from assaymark.claims.evidence import Index
from assaymark.claims.rules import Rules
from assaymark.claims.standing import Standing
from assaymark.claims.words import signed
from assaymark.errors import NotMeasurableError
from assaymark.records import AGGREGATE, Claim


def cell_state(claim: Claim, known: Index) -> CellState:
    """The state of the cell that a claim is about.

    Raises
    ------
    NotMeasurableError
        No gate of it was measured.
    """
    state = cell_states(known).get(claim.subjects[0])
    if state is None:
        raise NotMeasurableError(f"no gate of the control cell {claim.subjects[0]} was measured")
    return state


def cell_agreement(state: CellState, known: Index, rules: Rules) -> Agreement:
    """How far the judges agree inside the cell, held against the cut-offs of every other claim."""
    kappa = known.get("cell.kappa", cell=state.cell, dimension=AGGREGATE)
    return agreement_on(kappa, state.texts, known, rules)


def cell_standing(state: CellState) -> Standing:
    """Whether the cell's outcome is the same without each judge family."""
    ids = (*state.measurements, *(item.id for item in state.drops.values()))
    tested = state.gate.detail.get("p") is not None
    found = f"The number behind it is {state.numbers}: {state.outcome}"
    if not state.drops:
        return Standing("judge-dependent", f"{found}; no judge family was left out.", ids, tested)
    moved = [
        f"without {family} it is {'not measured' if item.value is None else signed(item.value)}: {outcome_of(item)}"
        for family, item in state.drops.items()
        if outcome_of(item) != state.outcome
    ]
    if moved:
        return Standing("judge-dependent", f"{found}; it depends on the judges: {'; '.join(moved)}.", ids, tested)
    return Standing("stable", f"{found}, and it survives the loss of each judge family.", ids, tested)


def cell_adversarial(state: CellState) -> Adversarial:
    """The halo: whether the composer's own judges move the cell's score."""
    halo = state.halo
    if halo is None or halo.value is None:
        why = "" if halo is None else f" ({halo.state})"
        told = f"Whether the composer's own judges favour these texts was not measured{why}."
        return Adversarial("not tested", (told,), (told,), ())
    family = halo.detail.get("family")
    if family is None:
        told = "No judge shares a family with the composer of these texts, so there is no halo to look for."
        return Adversarial("passed", (told,), (), ())
    moved = f"The judges of family {family}, which wrote these texts, move the number by {signed(halo.value)} points"
    if halo.detail.get("triggered"):
        told = f"{moved}: a halo, so the number without them is primary."
        return Adversarial("construct-sensitive", (told,), (told,), ())
    return Adversarial("passed", (f"{moved}: no halo.",), (), ())
