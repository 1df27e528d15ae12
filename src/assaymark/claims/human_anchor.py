"""People as the anchor of orders: which claims are put to their grades, what they say, and the caps that they lift."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Index
from assaymark.claims.levels import Rules, agreement_status
from assaymark.claims.messages import interval_words, number, signed
from assaymark.claims.standing import Finding
from assaymark.metrology import anchor_status, holm
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.records import AnchorState, Condition, Measurement

if TYPE_CHECKING:
    from assaymark.claims.panel import Fields

PUT: Final = "put to people"
"""Where an index keeps the one-sided p of every claim that is put to people, by the claim's id."""

_ORDER: Final[tuple[AnchorState, ...]] = ("contradicts", "not-tested", "undecided", "confirms")
_OTHERS: Final = "other "


def put_to_people(each: Iterable[Fields], known: Index) -> None:
    """Note the family of claims that people's grades are asked about: Holm runs over all of them."""
    tested = {one.claim.id: _p(one, known) for one in each if is_put(one)}
    known.memo[PUT] = {name: p for name, p in tested.items() if p is not None}


def stated_family(others: Sequence[float]) -> dict[str, float]:
    """The family of a certificate, which names the p-values of the claims beside its own."""
    return {f"{_OTHERS}{at}": p for at, p in enumerate(others)}


def others_of(claim_id: str, known: Index) -> list[float]:
    """The p-values of the claims beside one that are put to people."""
    return [p for name, p in known.memo.get(PUT, {}).items() if name != claim_id]


def is_put(fields: Fields) -> bool:
    """Whether an order is put to people: the judges let it through, or stop it by the recusal contrast alone."""
    if not fields.claim.asserts_order or not fields.evidence.tested:
        return False
    return fields.level != "no-claim" or fields.without("own_family").level != "no-claim"


def with_people(fields: Fields, known: Index, rules: Rules) -> Fields:
    """The same fields with what people's grades say of the claim; unchanged where nobody graded."""
    sample = known.get("human.sample", dimension=fields.claim.dimension)
    if sample is None or not fields.claim.asserts_order or rules.source or not fields.evidence.tested:
        return fields
    found = _finding(fields, sample, known, rules)
    at = next((k for k, one in enumerate(fields.findings) if one.field == "other_judges"), len(fields.findings))
    return replace(fields, findings=(*fields.findings[:at], found, *fields.findings[at:]))


def _items(fields: Fields, known: Index) -> list[Measurement | None]:
    """What people see of each pair of a claim, in the claim's direction."""
    claim = fields.claim
    leader = claim.subjects[0] if kind_of(claim) == "first" else None
    items = []
    for pair in fields.evidence.pairs:
        row = pair.row
        turned = leader is not None and row.high != leader
        items.append(None if turned else known.get("human.contrast", dimension=claim.dimension, high=row.high,
                                                   low=row.low))  # fmt: skip
    return items


def _p(fields: Fields, known: Index) -> float | None:
    """The largest one-sided p of the pairs of a claim; None where one was not tested."""
    items = _items(fields, known)
    if not items or any(item is None or item.value is None for item in items):
        return None
    return max(float(item.detail["p"]) for item in items if item is not None)


def _finding(fields: Fields, sample: Measurement, known: Index, rules: Rules) -> Finding:
    items, p = _items(fields, known), _p(fields, known)
    ids = (sample.id, *(item.id for item in items if item is not None))
    graders = [str(name) for name in sample.detail["graders"]]
    if not is_put(fields):
        return Finding("human_anchor", "not-tested", measurements=(sample.id,))
    if p is None:
        tested = [item for item in items if item is not None and item.value is None]
        why = sample.state if sample.value is None else tested[0].state if tested else "no pair has labels"
        said = f"People's grades do not test it: {why.removeprefix('not tested: ')}."
        return Finding("human_anchor", "not-tested", None, (said,), (), ids, {"drawn": sample})
    there = [item for item in items if item is not None]
    family = {**known.memo.get(PUT, {}), fields.claim.id: p}
    p_holm = float(holm(list(family.values()))[list(family).index(fields.claim.id)])
    states: list[AnchorState] = []
    for item in there:
        # What people say of one pair, the judges' own contrast on these cycles being what they are held against
        judged, record = item.detail.get("judges"), {"estimate": item.value, "high": item.high}
        state: AnchorState = "undecided"
        if judged is not None and float(judged) > 0:
            found = anchor_status(record, float(judged), min(1.0, p_holm), rules.alpha)
            state = "not-tested" if found == "not tested" else found
        states.append(state)
    state = min(states, key=_ORDER.index)
    who = f"the {len(graders)} human graders of this study" if len(graders) > 1 else "the human grader of this study"
    n = min(item.n for item in there)
    cycles, known_by = f"{n} labelled cycles", {"n": len(graders), "labelled": n}
    if state == "contradicts":
        said = f"People's grades contradict it: {who} see less than half of the difference that the judges see."
        return Finding("human_anchor", state, "no-claim", (said,), (), ids, known_by)
    if state == "undecided":
        needed = [item.detail.get("needed") for item in there]
        most = max((int(one) for one in needed if one is not None), default=0)
        more = f"; about {most} labelled cycles would be needed" if most > n else f", though {most} often suffice"
        text = (
            f"People's grades on {cycles} leave it undecided{'; more clusters are needed' if None in needed else more}."
        )
        more = "clusters" if None in needed else "about" if most > n else "suffices"
        return Finding("human_anchor", state, None, (), (Condition(id="people", text=text),), ids,
                       {**known_by, "more": more, "needed": most})  # fmt: skip
    agreed = known.get("human.agreement", dimension=fields.claim.dimension)
    lifts = agreed is not None and agreement_status(agreed.value, publish=rules.publish, halt=rules.halt) == "publish"
    ids = ids if agreed is None else (*ids, agreed.id)
    gap = ""
    if len(there) == 1:
        gap = f": {signed(there[0].value or 0.0)} points{interval_words(there[0].low, there[0].high)}"
    # The same order in people's places as other judges would have it in those of judges.
    anyone = all(float(item.detail.get("p_graders", 1.0)) <= rules.alpha + LEVEL_SLACK for item in there)
    text = f"It is ordered as {'human graders' if anyone else who} would order it{gap} ({cycles})."
    if not lifts:
        how = "agreement among the graders was not measured"
        if agreed is not None and agreed.value is not None:
            how = f"the graders agree at {number(agreed.value)}, {number(rules.publish)} needed"
        elif agreed is not None:
            how = f"{how} ({agreed.state.partition(': ')[2]})"
        text = f"{text[:-1]}, which lifts no other limit: {how}."
    conditions = (Condition(id="people", text=text),)
    values = {
        **known_by,
        "lifts": lifts,
        "anyone": anyone,
        "seen": there,
        "agreed": None if agreed is None else agreed.value,
        "publish": rules.publish,
    }
    return Finding("human_anchor", "confirms", None, (), conditions, ids, values)


LIFTED: Final[Mapping[str, frozenset[str]]] = {
    "own_family": frozenset({"rests-on-own-family", "no-disinterested-judge"}),
    "length": frozenset({"length", "may-be-length"}),
    "distinct": frozenset({"not-told-apart", "smaller"}),
}
"""The states of bias tests whose caps a confirmation by people lifts; of the control texts it lifts their style."""


def lifted(finding: Finding) -> bool:
    """Whether people's confirmation lifts the cap of a finding."""
    return finding.state in LIFTED.get(finding.field, ())


def kept(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings whose conditions still have to be said, once people have confirmed the order."""
    return tuple(
        dataclasses.replace(finding, conditions=tuple(c for c in finding.conditions if c.id in ("overlap", "specific")))
        if lifted(finding)
        else finding
        for finding in findings
    )
