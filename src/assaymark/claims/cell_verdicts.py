"""The verdict on a control cell's own sentence: agreement inside the cell, its outcome under drops, and the halo."""

from __future__ import annotations

from assaymark.claims.adversarial import Adversarial
from assaymark.claims.agreement import Agreement
from assaymark.claims.cells import CellState, cell_states
from assaymark.claims.evidence import Index
from assaymark.claims.gates import agreement_status
from assaymark.claims.rules import Rules
from assaymark.claims.standing import Evidence
from assaymark.claims.words import number, signed
from assaymark.errors import NotMeasurableError
from assaymark.records import AgreementStatus, Claim, Measurement


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
    """How far the judges agree on the cell's difference from honest records.

    All texts of a cell deserve one score, so agreement inside it is near zero whatever the judges do. What is asked is
    whether every judge family sees the difference, and kappa over the cell and the honest records together.
    """
    item = known.get("cell.agreement", cell=state.cell)
    if item is None or item.value is None:
        why = "" if item is None else f" ({item.state})"
        return Agreement("halt", None, f"Agreement on {state.texts} was not measured{why}.", _ids(item))
    kappa = item.value
    held = agreement_status(kappa, publish=rules.publish, halt=rules.halt)
    unanimous, left_out = bool(item.detail["unanimous"]), bool(item.detail["leave_one_out"])
    status: AgreementStatus = "halt"
    if unanimous and held == "publish":
        status = "publish"
    elif left_out and held != "halt":
        status = "methodology"
    seen = {
        "publish": "every judge family sees the difference",
        "methodology": "every panel without one family sees the difference, but not every family alone",
    }.get(status, "not every panel without one judge family sees the difference, or kappa is below the cut-off")
    reason = f"On {state.texts} {seen}; kappa over these and the honest records {number(kappa)}."
    return Agreement(status, kappa, reason, (item.id,), item.id)


def cell_evidence(state: CellState, known: Index) -> Evidence:
    """Whether every panel without one judge family shows what the cell's sentence says."""
    item = known.get("cell.agreement", cell=state.cell)
    ids = (*state.measurements, *(one.id for one in state.drops.values()), *_ids(item))
    tested = state.gate.detail.get("p") is not None
    found = f"The number behind it is {state.numbers}: {state.outcome}"
    if item is None or item.value is None:
        reason = f"{found}; whether it holds without any one judge family was not measured."
        return Evidence("judge-dependent", reason, ids, tested=tested)
    if not item.detail["leave_one_out"]:
        reason = f"{found}, but not every panel without one judge family shows it."
        return Evidence("judge-dependent", reason, ids, tested=tested)
    reason = f"{found}, and it holds without any one judge family."
    return Evidence("stable", reason, ids, published=frozenset({"gated"}), tested=tested)


def _ids(item: Measurement | None) -> tuple[str, ...]:
    return () if item is None else (item.id,)


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
