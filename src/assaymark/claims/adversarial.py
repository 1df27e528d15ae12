"""What the control cells and the length of the rationales mean for a claim about agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.claims.candidates import kind_of
from assaymark.claims.cells import CellState, cell_states
from assaymark.claims.evidence import Index
from assaymark.claims.rules import Rules
from assaymark.claims.words import listing, measure_words, number, share_words
from assaymark.metrology.cell_rules import TOLERANCE
from assaymark.records import AdversarialStatus, Claim

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
    """The adversarial field of a claim about agents (ValueBlindBench sections 3.5, 3.8 and 5.3).

    *contaminated*: confident but wrong rationales are not scored below the honest bottom quartile. Else
    *construct-sensitive*: brevity alone moves the score, style alone moves it, a changed number goes unnoticed, or
    the claim compares an agent whose rationales are mostly terse. Else *not tested* where cell A or cell B was not
    judged or stayed open. Else *passed*.

    Parameters
    ----------
    claim : Claim
        Any claim but one about a control cell.
    known : Index
        From `index`.
    rules : Rules
        ``rules.cells`` has the cut-offs.

    Returns
    -------
    Adversarial
    """
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
