"""What the control cells and the length of the rationales mean for a claim about agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims.candidates import kind_of
from assaymark.claims.cells import CellState, cell_states
from assaymark.claims.evidence import Index
from assaymark.claims.levels import Rules, agreement_status
from assaymark.claims.standing import Evidence
from assaymark.claims.words import listing, measure_words, number, share_words, signed
from assaymark.errors import NotMeasurableError
from assaymark.metrology.controls import TOLERANCE
from assaymark.records import AdversarialStatus, AgreementStatus, Claim, Measurement

NO_CONTROLS: Final = "No control texts were graded, so nothing shows that the panel rewards substance over style."

_CONTAMINATING: Final = ("cell_a", "red_team")
_REQUIRED: Final = ("cell_a", "cell_b")
_WORST_FIRST: Final[tuple[AdversarialStatus, ...]] = ("contaminated", "construct-sensitive", "not tested", "passed")


@dataclass(frozen=True, slots=True)
class Adversarial:
    """Whether the claim's construct is clean, why, and what has to be said with the claim if it is not."""

    status: AdversarialStatus
    reasons: tuple[str, ...]
    conditions: tuple[str, ...]
    measurements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Finding:
    """One thing that bears on the claim; ``condition`` is what a reader has to be told."""

    status: AdversarialStatus
    reason: str
    condition: str | None = None
    measurements: tuple[str, ...] = ()


def adversarial_of(claim: Claim, known: Index, rules: Rules) -> Adversarial:
    """The adversarial field of a claim about agents (ValueBlindBench sections 3.5, 3.8 and 5.3)."""
    states = cell_states(known)
    findings = [_cell_finding(state, claim.dimension, rules) for state in states.values()]
    if not states:
        findings.append(_Finding("not tested", NO_CONTROLS, NO_CONTROLS))
    else:
        findings += [_unrun(cell) for cell in _REQUIRED if cell not in states]
    findings += _terse(claim, known, rules)
    findings.sort(key=lambda finding: _WORST_FIRST.index(finding.status))
    return Adversarial(
        status=findings[0].status,
        reasons=tuple(finding.reason for finding in findings),
        conditions=tuple(finding.condition for finding in findings if finding.condition is not None),
        measurements=tuple(dict.fromkeys(name for finding in findings for name in finding.measurements)),
    )


def _cell_finding(state: CellState, dimension: str, rules: Rules) -> _Finding:
    status, reason, condition = _reading(state, dimension, rules)
    if state.halo is not None and state.halo.detail.get("triggered"):
        reason += f" The number is without the judges of family {state.halo.detail.get('family')}, who favour it."
    return _Finding(status, reason, condition, state.measurements)


def _reading(state: CellState, dimension: str, rules: Rules) -> tuple[AdversarialStatus, str, str | None]:
    texts = state.texts[:1].upper() + state.texts[1:]
    outcome, numbers = state.outcome, state.numbers
    if state.cell in _CONTAMINATING:
        return _wrong(state, texts, dimension, rules)
    if outcome in ("verbosity-bias", "terse-favoured"):
        verb = "lose" if outcome == "verbosity-bias" else "gain"
        moved = f"{texts} {verb} {number(abs(state.value or 0.0))} points under this rubric"
        return "construct-sensitive", f"{moved}: {numbers}, {outcome}.", f"{moved}."
    if outcome == "style-sensitive":
        moved = f"{texts} score {number(abs(state.value or 0.0))} points away from their originals"
        return "construct-sensitive", f"{moved}: {numbers}.", f"{moved}."
    if outcome == "not noticed":
        told = f"{texts} do not score below their originals"
        return "construct-sensitive", f"{told}: {numbers}.", f"{told}."
    if outcome in ("inconclusive", "not tested"):
        told = f"What the panel makes of {state.texts} stays open"
        status: AdversarialStatus = "not tested" if state.cell in _REQUIRED else "passed"
        return status, f"{told}: {numbers}.", f"{told}." if status == "not tested" else None
    return "passed", f"{texts}: {numbers}, {outcome}.", None


def _wrong(state: CellState, texts: str, dimension: str, rules: Rules) -> tuple[AdversarialStatus, str, str | None]:
    """Cell A, and red-team cells as cell A: rationales that are wrong have to score low."""
    if state.outcome == "passed":
        return "passed", f"{texts} score below the honest bottom quartile: {state.numbers}.", None
    if state.outcome != "failed":
        told = f"Whether {state.texts} score low enough stays open"
        status: AdversarialStatus = "not tested" if state.cell in _REQUIRED else "passed"
        return status, f"{told}: {state.numbers}.", f"{told}." if status == "not tested" else None
    told = f"{texts} do not score below the honest bottom quartile"
    narrowed = rules.cells.contaminates
    if narrowed is None or dimension in narrowed:
        return "contaminated", f"{told}, so the score is contaminated: {state.numbers}.", None
    only = listing([measure_words(name) for name in narrowed]) or "no score"
    return "passed", f"{told}: {state.numbers}; the plan lets this touch {only} only.", f"{told}."


def _unrun(cell: str) -> _Finding:
    what = {"cell_a": "confident but wrong", "cell_b": "terse but correct"}[cell]
    told = f"No {what} rationales were graded."
    return _Finding("not tested", told, told)


# --- terse agents ---------------------------------------------------------------------------------------------------


def _terse(claim: Claim, known: Index, rules: Rules) -> list[_Finding]:
    """One finding for each mostly terse agent that the claim compares without a length-matched rerun to bear it."""
    found = []
    pairs = _compared(claim, known)
    for agent in sorted({name for pair in pairs for name in pair}):
        share = known.get("terse.share", agent=agent)
        if share is None or share.value is None or share.value <= rules.cells.terse_share + TOLERANCE:
            continue
        mine = [pair for pair in pairs if agent in pair]
        reruns = [known.directed("length_matched.contrast", claim.dimension, *pair) for pair in mine]
        ids = (share.id, *(rerun.measurement.id for rerun in reruns if rerun is not None))
        lost = [pair for pair in mine if not _kept(claim.dimension, pair, known, rules)]
        told = (
            f"{share_words(share.value)} of the rationales of {agent} have fewer than {rules.cells.terse_tokens} tokens"
        )
        if not lost:
            kept = "the comparison keeps its sign and significance at equal length"
            found.append(_Finding("passed", f"{told}, and {kept}.", None, ids))
            continue
        why = "no rerun at equal length" if all(rerun is None for rerun in reruns) else "the rerun at equal length"
        verb = "bears the comparison" if why.startswith("no") else "does not bear the comparison"
        against = listing(sorted({other for pair in lost for other in pair if other != agent}))
        reason = f"{told}, and {why} {verb} with {against}."
        found.append(_Finding("construct-sensitive", reason, f"{told}.", ids))
    return found


def _compared(claim: Claim, known: Index) -> list[tuple[str, str]]:
    """The pairs that an order claim compares, in the direction it states; one without an order compares none."""
    kind = kind_of(claim)
    if kind == "pair":
        return [(claim.subjects[0], claim.subjects[1])]
    if kind == "first":
        agent = claim.subjects[0]
        return [
            (agent, other) for other in known.agents if other != agent and _met(claim.dimension, agent, other, known)
        ]
    return []


def _met(dimension: str, one: str, other: str, known: Index) -> bool:
    """Whether two agents were compared; all were where nothing was paired."""
    return not known.tested(dimension) or known.contrast(dimension, one, other).difference is not None


def _kept(dimension: str, pair: tuple[str, str], known: Index, rules: Rules) -> bool:
    """Whether the length-matched rerun keeps the sign and the significance of a contrast."""
    rerun = known.directed("length_matched.contrast", dimension, *pair)
    if rerun is None or rerun.value is None:
        return False
    p = rerun.measurement.detail.get("p_holm")
    return rerun.value > 0 and p is not None and float(p) <= rules.alpha


# The agreement that gates a claim: which kappa governs, and what it permits.


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement that governs a dimension: the lowest of the pooled and the gated within-format kappas."""

    status: AgreementStatus
    kappa: float | None
    reason: str
    measurements: tuple[str, ...]
    governing: str | None = None


def governing_agreement(dimension: str, known: Index, rules: Rules) -> Agreement:
    """The agreement that gates a dimension. Where formats are gated on their own, the lowest kappa governs."""
    key = ("agreement", dimension, rules)
    if key not in known.memo:
        known.memo[key] = _lowest(known.agreements.get(dimension, ()), measure_words(dimension), known, rules)
    found: Agreement = known.memo[key]
    return found


def _lowest(gated: Sequence[Measurement], about: str, known: Index, rules: Rules) -> Agreement:
    if not gated:
        return Agreement("halt", None, f"Agreement on {about} was not measured.", ())
    values = {item.id: _gate_value(item, known, rules) for item in gated}
    lowest = min(gated, key=lambda item: (values[item.id], item.id))
    value = None if values[lowest.id] == float("-inf") else values[lowest.id]
    status = agreement_status(value, publish=rules.publish, halt=rules.halt)
    ids = tuple(item.id for item in gated)
    return Agreement(status, value, _reason(lowest, value, status, about, rules), ids, lowest.id)


def _gate_value(item: Measurement, known: Index, rules: Rules) -> float:
    """The number that is held against the cut-offs; an undefined kappa is below all of them."""
    if item.value is None:
        return float("-inf")
    if rules.kappa == "other-ddof":
        other = known.get("kappa.other_ddof", **item.labels)
        if other is not None and other.value is None and other.state.startswith("undefined"):
            return float("-inf")
        return item.value if other is None or other.value is None else other.value
    if rules.kappa == "lower":
        return float("-inf") if item.low is None else item.low
    half_even = item.detail.get("half_even")
    return float(half_even) if rules.kappa == "half-even" and half_even is not None else item.value


def _reason(item: Measurement, value: float | None, status: AgreementStatus, about: str, rules: Rules) -> str:
    within = f" within format {item.labels['format']}" if "format" in item.labels else ""
    if value is None or item.value is None:
        return f"Agreement on {about}{within} is not defined ({item.state}); undefined agreement halts."
    interval = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    rule = {
        "publish": f"at or above the cut-off {number(rules.publish)}",
        "methodology": f"below {number(rules.publish)}: a finding about the judges, not a headline",
        "halt": f"below {number(rules.halt)}: no ranking",
    }[status]
    return f"The judges agree on {about}{within} at kappa {_shown(item.value, rules)}{interval}, {rule}."


def _shown(kappa: float, rules: Rules) -> str:
    """A kappa with two decimals, or three where two would lift it over a cut-off that it misses."""
    lifted = any(kappa < cut <= round(kappa, 2) for cut in (rules.halt, rules.publish))
    return f"{kappa:.3f}".replace("-", "−") if lifted else number(kappa)


# The verdict on a control cell's own sentence: agreement inside the cell, its outcome under drops, and the halo.


def cell_state(claim: Claim, known: Index) -> CellState:
    """The state of the cell that a claim is about."""
    state = cell_states(known).get(claim.subjects[0])
    if state is None:
        raise NotMeasurableError(f"no gate of the control cell {claim.subjects[0]} was measured")
    return state


def cell_agreement(state: CellState, known: Index, rules: Rules) -> Agreement:
    """How far the judges agree on the cell's difference from honest records."""
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
