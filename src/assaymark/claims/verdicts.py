"""From measurements to verdicts: each candidate claim through agreement, stability and controls to its level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from assaymark.claims.candidates import agent_words, candidate_claims, measure_words
from assaymark.claims.evidence import Index, Test, index
from assaymark.claims.gates import agreement_status, publication_level
from assaymark.protocol import Study
from assaymark.records import (
    AdversarialStatus,
    AgreementStatus,
    Claim,
    Level,
    Measurement,
    StabilityStatus,
    Verdict,
)

NO_CONTROLS: Final = "No control texts were graded, so nothing shows that the panel rewards substance over style."


@dataclass(frozen=True, slots=True)
class Rules:
    """The decision rules of one plan; `FRAGILITY` varies them one at a time."""

    publish: float
    halt: float
    alpha: float
    kappa: Literal["point", "lower", "half-even"] = "point"
    test: Test = "gating"

    @classmethod
    def of(cls, study: Study) -> Rules:
        """The rules that a study locked."""
        return cls(study.gates.publish, study.gates.halt, study.claim_alpha)


def _variants(rules: Rules, locked: frozenset[str]) -> Mapping[str, Rules]:
    """The other rules under which a claim is decided again; a test that the plan locked for it is no other rule."""
    found = {
        "kappa cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        "lower bound of kappa": replace(rules, kappa="lower"),
        "half-even rounding": replace(rules, kappa="half-even"),
    }
    if locked != {"cluster-t"}:
        found["cluster t"] = replace(rules, test="cluster-t")
    if locked != {"bootstrap"}:
        found["percentile bootstrap"] = replace(rules, test="bootstrap")
    return found


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement that governs a dimension: the lowest of the pooled and the gated within-format kappas."""

    status: AgreementStatus
    kappa: float | None
    reason: str
    measurements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the claim holds beyond noise and without any one judge family."""

    status: StabilityStatus
    reason: str
    measurements: tuple[str, ...]


def decide_claims(measurements: Sequence[Measurement], study: Study, plan_hash: str) -> tuple[Verdict, ...]:
    """The verdict on every candidate claim of a study (ValueBlindBench section 3.8).

    Parameters
    ----------
    measurements : sequence of Measurement
        One analysis of one panel, as `assaymark.metrology.analyse` makes it.
    study : Study
        Gates, alpha and the list of candidates are read from it.
    plan_hash : str
        Stamped on every verdict.

    Returns
    -------
    tuple of Verdict
        In the order of `candidate_claims`. Each carries its reasons in words, the ids of the measurements it rests
        on, and its level under each rule that the plan did not lock.
    """
    known = index(measurements)
    directions = [(dimension, item.high, item.low) for (dimension, _), item in known.contrasts.items()]
    claims = candidate_claims(study.claims, known.agents, known.dimensions, directions)
    rules = Rules.of(study)
    return tuple(decide(claim, known, rules, plan_hash) for claim in claims)


def decide(claim: Claim, known: Index, rules: Rules, plan_hash: str) -> Verdict:
    """The verdict on one claim, with its level under the other rules beside it."""
    verdict = _decide(claim, known, rules, plan_hash)
    locked = known.gating_tests(claim.dimension)
    others = {name: _decide(claim, known, other, plan_hash) for name, other in _variants(rules, locked).items()}
    return replace(verdict, fragility={name: other.publication_level for name, other in others.items()})


def _decide(claim: Claim, known: Index, rules: Rules, plan_hash: str) -> Verdict:
    agreement = governing_agreement(claim.dimension, known, rules)
    standing = standing_of(claim, known, rules)
    adversarial: AdversarialStatus = "not tested"
    level = publication_level(agreement.status, standing.status, adversarial, asserts_order=claim.asserts_order)
    return Verdict(
        claim=_limited(claim, known),
        agreement_status=agreement.status,
        stability_status=standing.status,
        adversarial_status=adversarial,
        publication_level=level,
        reasons=(agreement.reason, standing.reason, NO_CONTROLS),
        binding=_binding(level, agreement.status, standing.status, adversarial),
        measurements=(*agreement.measurements, *standing.measurements),
        plan_hash=plan_hash,
        condition=_condition(level, agreement),
    )


# --- agreement ------------------------------------------------------------------------------------------------------


def governing_agreement(dimension: str, known: Index, rules: Rules) -> Agreement:
    """The agreement that gates a dimension. Where formats are gated on their own, the lowest kappa governs."""
    gated = known.agreements.get(dimension, ())
    if not gated:
        return Agreement("halt", None, f"Agreement on {measure_words(dimension)} was not measured.", ())
    lowest = min(gated, key=lambda item: (_gate_value(item, rules), item.id))
    value = None if lowest.value is None else _gate_value(lowest, rules)
    status = agreement_status(value, publish=rules.publish, halt=rules.halt)
    return Agreement(status, value, _agreement_reason(lowest, status, rules), tuple(item.id for item in gated))


def _gate_value(item: Measurement, rules: Rules) -> float:
    """The number that is held against the cut-offs; an undefined kappa is below all of them."""
    if item.value is None:
        return float("-inf")
    other = {"lower": item.low, "half-even": item.detail.get("half_even")}.get(rules.kappa)
    return item.value if other is None else float(other)


def _agreement_reason(item: Measurement, status: AgreementStatus, rules: Rules) -> str:
    within = f" within format {item.labels['format']}" if "format" in item.labels else ""
    about = measure_words(item.labels["dimension"])
    if item.value is None:
        return f"Agreement on {about}{within} is not defined ({item.state}); undefined agreement halts."
    interval = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    rule = {
        "publish": f"at or above the cut-off {number(rules.publish)}",
        "methodology": f"below {number(rules.publish)}: a finding about the judges, not a headline",
        "halt": f"below {number(rules.halt)}: no ranking",
    }[status]
    return f"The judges agree on {about}{within} at kappa {number(item.value)}{interval}, {rule}."


# --- stability ------------------------------------------------------------------------------------------------------


def standing_of(claim: Claim, known: Index, rules: Rules) -> Standing:
    """Whether the claim has evidence after Holm and survives the loss of each judge family.

    An order claim needs both: with equal agents a leader survives every drop in most simulated studies, so a contrast
    that is not significant makes the claim a tie class whatever the drops say.
    """
    if len(claim.subjects) == 1:
        return _first_standing(claim.dimension, claim.subjects[0], known, rules)
    return _pair_standing(claim.dimension, claim.subjects[0], claim.subjects[1], known, rules)


def _pair_standing(dimension: str, high: str, low: str, known: Index, rules: Rules) -> Standing:
    contrast = known.contrast(dimension, high, low)
    rests = [contrast.measurement.id]
    if contrast.difference is None:
        reason = f"{high} and {low} never answered the same question, and no order goes through third agents."
        return Standing("tie-class", reason, tuple(rests))
    p = known.adjusted(dimension, high, low, rules.test)
    gap = f"{signed(contrast.difference)} points over {contrast.measurement.n} common cycles"
    if p > rules.alpha or contrast.difference <= 0:
        reason = f"The gap ({gap}) is not significant: {p_words(p)} after Holm, {threshold(rules)}."
        return Standing("tie-class", reason, tuple(rests))
    reversed_by, moved = [], []
    for family in known.families:
        drop = known.get("lofo.contrast", dimension=dimension, dropped=family, high=contrast.high, low=contrast.low)
        if drop is not None:
            rests.append(drop.id)
        if drop is None or drop.value is None or drop.value <= 0:
            reversed_by.append(family)
            moved.append(f"without {family} it is {_drop_words(drop)}")
    return _after_drops(f"The gap ({gap}) is significant: {p_words(p)} after Holm", reversed_by, moved, rests)


def _first_standing(dimension: str, agent: str, known: Index, rules: Rules) -> Standing:
    adjusted = known.first_adjusted(dimension, agent, rules.test)
    met = {other for other in adjusted if known.contrast(dimension, agent, other).difference is not None}
    rests = [known.contrast(dimension, agent, other).measurement.id for other in sorted(adjusted)]
    if not met:
        return Standing("tie-class", f"{agent} met no other agent on a common question.", tuple(rests))
    unresolved = sorted(other for other in met if adjusted[other] > rules.alpha)
    if unresolved:
        return Standing("tie-class", _unresolved_reason(dimension, agent, unresolved, met, known), tuple(rests))
    lost, moved = [], []
    for family in (None, *known.families):
        ahead = _levels_above(dimension, agent, met, family, known)
        if family is not None:
            rests += _level_ids(dimension, sorted({agent, *met}), family, known)
        if ahead is None or ahead:
            lost.append(family or "nobody")
            moved.append(f"without {family or 'nobody'} {_ahead_words(ahead)}")
    worst = max(adjusted[other] for other in met)
    lead = f"Its lead over {'every agent' if len(met) == len(adjusted) else 'each agent that it met'} is significant"
    return _after_drops(f"{lead}: {p_words(worst)} after Holm", lost, moved, rests)


def threshold(rules: Rules) -> str:
    """The level a family is tested at, in words.

    >>> threshold(Rules(0.4, 0.2, 0.025))
    'tested at .025'
    """
    return f"tested at {rules.alpha:.3g}".replace("0.", ".", 1)


def _after_drops(lead: str, lost: Sequence[str], moved: Sequence[str], rests: Sequence[str]) -> Standing:
    if lost:
        reason = f"{lead}, but it depends on the judges: {'; '.join(moved)}, and no outside judge was asked."
        return Standing("judge-dependent", reason, tuple(rests))
    return Standing("stable", f"{lead}, and it survives the loss of each judge family.", tuple(rests))


def _drop_words(drop: Measurement | None) -> str:
    return "not measured" if drop is None or drop.value is None else f"{signed(drop.value)}"


def _ahead_words(ahead: Sequence[str] | None) -> str:
    return "its place is not measured" if ahead is None else f"{', '.join(ahead)} comes before it"


def _unresolved_reason(dimension: str, agent: str, unresolved: Sequence[str], met: set[str], known: Index) -> str:
    ahead = [other for other in unresolved if known.contrast(dimension, agent, other).high != agent]
    against = f", and {len(ahead)} of them {'scores' if len(ahead) == 1 else 'score'} higher" if ahead else ""
    of = f"{len(unresolved)} of the {len(met)} agents" if len(met) > 1 else "the one agent"
    return f"Its difference from {of} that it met is not a significant lead after Holm{against}."


def _levels_above(dimension: str, agent: str, met: set[str], family: str | None, known: Index) -> list[str] | None:
    """Agents with a level at or above that of ``agent``, with all judges or without ``family``; None if unknown."""
    levels = {name: _level(dimension, name, family, known) for name in {agent, *met}}
    own = levels[agent]
    if own is None or any(value is None for value in levels.values()):
        return None
    return sorted(name for name, value in levels.items() if name != agent and value is not None and value >= own)


def _level(dimension: str, agent: str, family: str | None, known: Index) -> float | None:
    if family is None:
        item = known.get("score.effect", dimension=dimension, agent=agent)
    else:
        item = known.get("lofo.effect", dimension=dimension, dropped=family, agent=agent)
    return None if item is None else item.value


def _level_ids(dimension: str, agents: Sequence[str], family: str, known: Index) -> list[str]:
    found = (known.get("lofo.effect", dimension=dimension, dropped=family, agent=agent) for agent in agents)
    return [item.id for item in found if item is not None]


# --- words ----------------------------------------------------------------------------------------------------------


def _limited(claim: Claim, known: Index) -> Claim:
    """The claim, its statement limited to the agents that were met where some were not."""
    if len(claim.subjects) != 1:
        return claim
    agent = claim.subjects[0]
    others = [name for name in known.agents if name != agent]
    met = [name for name in others if known.contrast(claim.dimension, agent, name).difference is not None]
    if len(met) == len(others):
        return claim
    where = measure_words(claim.dimension)
    return replace(claim, statement=f"{agent} ranks first among the {agent_words(len(met))} that it met, on {where}.")


def _binding(level: Level, agreement: str, stability: str, adversarial: str) -> tuple[str, ...]:
    """The fields of the tuple that keep the claim from the next better level."""
    stops = {
        "agreement": agreement == "halt",
        "stability": stability in ("judge-dependent", "tie-class"),
        "adversarial": adversarial == "contaminated",
    }
    reserves = {
        "agreement": agreement == "methodology",
        "stability": stability == "tie-class",
        "adversarial": adversarial in ("construct-sensitive", "not tested"),
    }
    chosen = stops if level == "no-claim" else reserves
    return tuple(name for name, bound in chosen.items() if bound) if level != "headline" else ()


def _condition(level: Level, agreement: Agreement) -> str | None:
    if level != "qualified":
        return None
    if agreement.status == "methodology" and agreement.kappa is not None:
        return f"The judges agree only weakly here (κ {number(agreement.kappa)}), and no control texts were graded."
    return NO_CONTROLS


def number(value: float) -> str:
    """A statistic with two decimals and a true minus.

    >>> number(-0.231), number(0.7168)
    ('−0.23', '0.72')
    """
    return f"{value:.2f}".replace("-", "−")


def signed(value: float) -> str:
    """A difference with its sign, three decimals.

    >>> signed(0.0182), signed(-2.81)
    ('+0.018', '−2.810')
    """
    return f"{value:+.3f}".replace("-", "−")


def p_words(p: float) -> str:
    """A p-value as it is read.

    >>> p_words(0.00002), p_words(0.0412), p_words(1.0)
    ('p < .001', 'p = .041', 'p = 1')
    """
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p >= 0.9995 else f"p = {p:.3f}".replace("0.", ".", 1)
