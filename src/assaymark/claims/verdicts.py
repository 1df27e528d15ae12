"""From measurements to verdicts: each candidate claim through agreement, stability and controls to its level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assaymark.claims.adversarial import NO_CONTROLS, Adversarial, adversarial_of
from assaymark.claims.agreement import Agreement, governing_agreement
from assaymark.claims.amendments import amended_for, amended_words
from assaymark.claims.candidates import claims_of, kind_of
from assaymark.claims.cell_verdicts import cell_adversarial, cell_agreement, cell_standing, cell_state
from assaymark.claims.cells import cell_states
from assaymark.claims.evidence import Index, index
from assaymark.claims.gates import publication_level
from assaymark.claims.instruments import Instruments, instruments_of
from assaymark.claims.leaders import met_by
from assaymark.claims.rules import Rules, other_kappas, other_tests
from assaymark.claims.standing import Standing, standing_of
from assaymark.claims.words import agent_words, measure_words, number
from assaymark.protocol import Study
from assaymark.records import Claim, Level, Measurement, Verdict

__all__ = ["Rules", "decide", "decide_claims", "governing_agreement", "variants_of"]

CLASS_CONDITION = "The class is the finding: no order inside it may be read from the scores."
UNTESTED_CONDITION = "Significance not tested: the tables came without contrasts."


@dataclass(frozen=True, slots=True)
class _Fields:
    """The parts from which one claim's verdict follows."""

    agreement: Agreement
    standing: Standing
    adversarial: Adversarial
    instruments: Instruments


def decide_claims(
    measurements: Sequence[Measurement], study: Study, plan_hash: str, *, amended: Sequence[str] = ()
) -> tuple[Verdict, ...]:
    """The verdict on every candidate claim of a study (ValueBlindBench section 3.8).

    Parameters
    ----------
    measurements : sequence of Measurement
        One analysis of one panel, as `assaymark.metrology.analyse` makes it, with what was measured of control cells,
        an outside judge and the length of rationales. What is absent was not tested.
    study : Study
        Gates, alpha, cut-offs and the list of candidates are read from it.
    plan_hash : str
        Stamped on every verdict.
    amended : sequence of str
        Plan fields changed after the lock; each verdict names those that it was made under.

    Returns
    -------
    tuple of Verdict
        In the order of `candidate_claims`. Each carries its reasons in words, the ids of the measurements it rests
        on, and its level under each rule that the plan did not lock.

    Raises
    ------
    NotMeasurableError
        The measurements are not of one analysis: one is there twice, or some contrasts of a dimension are missing.
    """
    known = index(measurements)
    rules = Rules.of(study)
    claims = claims_of(study.claims, known, rules, tuple(cell_states(known).values()))
    return tuple(decide(claim, known, rules, plan_hash, amended=amended) for claim in claims)


def decide(claim: Claim, known: Index, rules: Rules, plan_hash: str, *, amended: Sequence[str] = ()) -> Verdict:
    """The verdict on one claim, with its level under the other rules beside it.

    Parameters
    ----------
    claim : Claim
        A candidate claim.
    known : Index
        From `index`.
    rules : Rules
        From `Rules.of`.
    plan_hash : str
        Stamped on the verdict.
    amended : sequence of str
        Plan fields changed after the lock, of any kind; those that do not touch the claim are left out.

    Raises
    ------
    NotMeasurableError
        A contrast that the claim rests on is missing, or the claim is of no known kind.
    """
    about_agents = kind_of(claim) != "cell"
    adversarial = adversarial_of(claim, known, rules) if about_agents else None
    instruments = instruments_of(known.by_id.values(), rules.on_failure)
    fields = _fields(claim, known, rules, adversarial, instruments)
    level = _level(claim, fields)
    touched = amended_for(claim, amended)
    told = (fields.agreement.reason, fields.standing.reason, *fields.adversarial.reasons)
    told = (*told, instruments.reason) if instruments.reason else told
    others = variants_of(claim, known, rules)
    return Verdict(
        claim=limited(claim, known) if about_agents else claim,
        agreement_status=fields.agreement.status,
        stability_status=fields.standing.status,
        adversarial_status=fields.adversarial.status,
        publication_level=level,
        reasons=(*told, amended_words(touched)) if touched else told,
        binding=_binding(claim, level, fields),
        measurements=_measurements(fields),
        plan_hash=plan_hash,
        condition=_condition(level, fields),
        fragility={
            name: _level(claim, _fields(claim, known, other, adversarial, instruments))
            for name, other in others.items()
        },
        amended=touched,
    )


def variants_of(claim: Claim, known: Index, rules: Rules) -> Mapping[str, Rules]:
    """The other rules under which a claim is decided again; tests say nothing about a control cell."""
    if kind_of(claim) == "cell":
        return other_kappas(rules, other_ddof=False)
    other_ddof = known.get("kappa.other_ddof", dimension=claim.dimension) is not None
    found = other_kappas(rules, other_ddof=other_ddof)
    if known.tested(claim.dimension):
        gating, measured = known.gating_tests(claim.dimension), known.measured_tests(claim.dimension)
        found |= other_tests(rules, gating=gating, measured=measured)
    return found


def limited(claim: Claim, known: Index) -> Claim:
    """A claim of a first place, its statement limited to the agents that were met where some were not."""
    if kind_of(claim) != "first" or not known.tested(claim.dimension):
        return claim
    agent = claim.subjects[0]
    met = met_by(claim.dimension, agent, known)
    if len(met) == len(known.agents) - 1:
        return claim
    where = measure_words(claim.dimension)
    return replace(claim, statement=f"{agent} ranks first among the {agent_words(len(met))} that it met, on {where}.")


def _fields(
    claim: Claim, known: Index, rules: Rules, adversarial: Adversarial | None, instruments: Instruments
) -> _Fields:
    """The three fields of a claim under ``rules``; the adversarial one does not depend on what the variants change."""
    if adversarial is not None:
        agreement = governing_agreement(claim.dimension, known, rules)
        return _Fields(agreement, standing_of(claim, known, rules), adversarial, instruments)
    state = cell_state(claim, known)
    return _Fields(cell_agreement(state, known, rules), cell_standing(state), cell_adversarial(state), instruments)


def _level(claim: Claim, fields: _Fields) -> Level:
    return fields.instruments.capped(_uncapped(claim, fields))


def _uncapped(claim: Claim, fields: _Fields) -> Level:
    """The level before the judges' own datasheets are looked at."""
    return publication_level(
        fields.agreement.status,
        fields.standing.status,
        fields.adversarial.status,
        asserts_order=claim.asserts_order,
        significance_tested=fields.standing.tested,
    )


def _measurements(fields: _Fields) -> tuple[str, ...]:
    parts = (fields.agreement, fields.standing, fields.adversarial, fields.instruments)
    return tuple(dict.fromkeys(name for part in parts for name in part.measurements))


def _binding(claim: Claim, level: Level, fields: _Fields) -> tuple[str, ...]:
    """The fields of the tuple that keep the claim from the next better level."""
    agreement, stability, adversarial = (
        fields.agreement.status,
        fields.standing.status,
        fields.adversarial.status,
    )
    stops = {
        "agreement": agreement == "halt",
        "stability": stability == "judge-dependent" or (stability == "tie-class" and claim.asserts_order),
        "adversarial": adversarial == "contaminated",
    }
    reserves = {
        "agreement": agreement == "methodology",
        "stability": stability == "tie-class" or not fields.standing.tested,
        "adversarial": adversarial in ("construct-sensitive", "not tested"),
    }
    failing = bool(fields.instruments.failing)
    stops["datasheets"] = failing and fields.instruments.most == "no-claim"
    reserves["datasheets"] = failing
    chosen = stops if level == "no-claim" else reserves
    return tuple(name for name, bound in chosen.items() if bound) if level != "headline" else ()


def _condition(level: Level, fields: _Fields) -> str | None:
    """What must be said with a qualified claim."""
    if level != "qualified":
        return None
    agreement, conditions = fields.agreement, fields.adversarial.conditions
    weak = agreement.status == "methodology" and agreement.kappa is not None
    lead = (
        f"The judges agree only weakly here (κ {number(agreement.kappa)}"
        if weak and agreement.kappa is not None
        else ""
    )
    if lead and conditions == (NO_CONTROLS,):
        first, conditions = [f"{lead}), and no control texts were graded."], ()
    else:
        first = [f"{lead})."] if lead else []
    if not fields.standing.tested:
        first.append(UNTESTED_CONDITION)
    if fields.standing.status == "tie-class":
        first.append(CLASS_CONDITION)
    return " ".join(filter(None, [*first, *conditions, fields.instruments.condition])) or None
