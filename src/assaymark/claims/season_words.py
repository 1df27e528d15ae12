"""How verdicts on a season are put together from sentences by key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assaymark.claims.messages import Said, english, said
from assaymark.claims.season_panel import SeasonPanel
from assaymark.claims.season_types import SeasonClaimKind, SeasonVerdict
from assaymark.records import AGGREGATE, Claim, Level, Scope, StabilityStatus, Verdict, measurement_id

DIMENSION = AGGREGATE
"""What orders and bands of a season are about: its total."""

_LARGEST_WORD = 12


def count(number: int) -> Said | int:
    """A small number as a word, another as digits."""
    return said(f"claim.count.{number}") if 1 <= number <= _LARGEST_WORD else number


def judges_words(number: int) -> Said:
    """All judges of a record."""
    if number < 3:
        return said("claim.judges.one" if number == 1 else "claim.judges.both")
    return said("claim.judges.all", count=count(number))


def p_said(p: float) -> Said:
    """A p-value as it is read."""
    return said("claim.reason.p_small") if p < 0.001 else said("claim.reason.p", p=p)


def claim_of(
    kind: SeasonClaimKind,
    statement: Said,
    subjects: Sequence[str],
    *,
    scope: Scope = "aggregate-ranking",
    dimension: str = DIMENSION,
    asserts_order: bool = False,
    labels: dict[str, str] | None = None,
) -> Claim:
    """A claim with its statement in English."""
    return Claim(
        id=measurement_id(f"season.{kind}", labels or {"agents": "+".join(subjects)}),
        scope=scope,
        statement=english().render(statement),
        subjects=tuple(subjects),
        dimension=dimension,
        asserts_order=asserts_order,
    )


def graded_verdict(
    kind: SeasonClaimKind,
    claim: Claim,
    statement: Said,
    panel: SeasonPanel,
    plan_hash: str,
    *,
    stability: StabilityStatus,
    reasons: Iterable[Said],
    rests: Iterable[str],
    conditions: Iterable[Said] = (),
    reserves: Iterable[Said] = (),
    withheld: Said,
    permitted: bool = True,
) -> SeasonVerdict:
    """The verdict on a claim that rests on grades.

    Parameters
    ----------
    conditions : sentences
        Of what the stability field says; said with a qualified claim.
    reserves : sentences
        Beyond the three fields: with one of them a claim is qualified at best.
    permitted : bool
        False for a claim that nothing in the three fields forbids and that is not to be made all the same.
    """
    reserved = (*reserves, *panel.reserves)
    level = panel.level(stability, asserts_order=claim.asserts_order) if permitted else "no-claim"
    if level == "headline" and reserved:
        level = "qualified"
    binding = panel.binding(level)
    if stability != "stable" and level != "headline":
        binding = (*binding, "stability")
    if (reserved and level == "qualified") or not permitted:
        binding = (*binding, "score")
    said_also = (*reserved, *conditions, *panel.conditions) if level == "qualified" else ()
    # What closes every claim comes first, but for a claim that the judges themselves contradict.
    gate_first = not panel.claimable and stability != "judge-dependent"
    told = (*panel.reasons, *reasons) if gate_first else (*reasons, *panel.reasons)
    verdict = Verdict(
        claim=claim,
        agreement_status=panel.agreement,
        stability_status=stability,
        adversarial_status=panel.adversarial,
        publication_level=level,
        reasons=tuple(map(english().render, told)),
        binding=binding,
        measurements=tuple(dict.fromkeys((*rests, *panel.measurements))),
        plan_hash=plan_hash,
        condition=english().join(said_also) or None,
    )
    return SeasonVerdict(kind, verdict, statement, told, said_also, withheld if level == "no-claim" else None)


def worst(levels: Iterable[Level]) -> Level:
    """The lowest of some levels; a headline of none."""
    found = set(levels)
    if "no-claim" in found:
        return "no-claim"
    return "qualified" if "qualified" in found else "headline"
