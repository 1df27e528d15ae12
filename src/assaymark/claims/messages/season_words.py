"""Season verdicts from fields and sentences by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assaymark.claims.fields import LEVELS, Fields
from assaymark.claims.messages import Said, english, said
from assaymark.claims.season_types import SeasonClaimKind, SeasonVerdict
from assaymark.records import AGGREGATE, Claim, Condition, Level, Scope, measurement_id

_LARGEST_WORD = 12

NOT_PREREGISTERED = ("not-preregistered", said("claim.condition.not_preregistered"))
"""The condition of claims whose plan was locked after scores had been seen."""


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
    if p < 0.001 or p >= 0.9995:
        return said("claim.reason.p_small" if p < 0.001 else "claim.reason.p_one")
    return said("claim.reason.p", p=p)


def claim_of(
    kind: SeasonClaimKind,
    statement: Said,
    subjects: Sequence[str],
    *,
    scope: Scope = "aggregate-ranking",
    dimension: str = AGGREGATE,
    asserts_order: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Claim:
    """A claim that only seasons make, with its statement in English."""
    return Claim(
        id=measurement_id(f"season.{kind}", labels or {"agents": "+".join(subjects)}),
        scope=scope,
        statement=english().render(statement),
        subjects=tuple(subjects),
        dimension=dimension,
        asserts_order=asserts_order,
    )


def season_verdict(
    kind: SeasonClaimKind,
    fields: Fields,
    statement: Said,
    plan_hash: str,
    *,
    reasons: Iterable[Said],
    conditions: Iterable[tuple[str, Said]],
    withheld: Said,
    fragility: Mapping[str, Level] | None = None,
) -> SeasonVerdict:
    """The verdict of some fields, worded in English and by key; ``conditions`` are left out of an unsupported claim."""
    supported = fields.level != "no-claim"
    told = tuple(reasons) if fields.preregistered else (*reasons, NOT_PREREGISTERED[1])
    more = [] if fields.preregistered else [NOT_PREREGISTERED]
    kept = [*conditions, *more] if supported else []
    verdict = fields.verdict(
        plan_hash,
        reasons=tuple(map(english().render, told)),
        conditions=[Condition(id=name, text=english().render(text)) for name, text in kept],
        fragility=fragility or {},
    )
    return SeasonVerdict(
        kind, verdict, statement, told, tuple(text for _, text in kept), None if supported else withheld
    )


def weakest(levels: Iterable[Level]) -> Level:
    """The lowest of some levels; a headline of none."""
    return min(levels, key=LEVELS.index, default="headline")
