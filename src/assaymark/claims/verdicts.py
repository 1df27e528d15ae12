"""From measurements to verdicts: each candidate claim through agreement, evidence, biases and controls to its level."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from assaymark.claims import levels as rule
from assaymark.claims.findings import NO_CONTROLS, Fields, Finding
from assaymark.claims.kinds import candidate_claims, kind
from assaymark.claims.levels import Index, Rules
from assaymark.claims.messages import interval_words, listing, number, signed
from assaymark.claims.orders import tiers_and_ranks
from assaymark.metrology import anchor_status, holm
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.protocol import AGREEMENT, Study
from assaymark.records import AnchorState, Claim, Condition, Measurement, Verdict

NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."
SMALL_GAP: Final = Condition(id="small-gap", text="The difference is smaller than the margin that counts as none.")
UNTESTED_CONDITION = "Significance was not tested: the tables came without contrasts."
PUT: Final = "put to people"
"""Where an index keeps the one-sided p of every claim that is put to people, by the claim's id."""

_ORDER: Final[tuple[AnchorState, ...]] = ("contradicts", "not-tested", "undecided", "confirms")

# What people's grades say of an order


def put_to_people(each: Iterable[Fields], known: Index) -> None:
    """Note the family of claims that people's grades are asked about: Holm runs over all of them."""
    tested = {one.claim.id: _people(one, known)[1] for one in each if is_put(one)}
    known.memo[PUT] = {name: p for name, p in tested.items() if p is not None}


def is_put(fields: Fields) -> bool:
    """Whether an order is put to people: the judges let it through, or stop it by the recusal contrast alone."""
    if not fields.claim.asserts_order or not fields.evidence.tested:
        return False
    rest = tuple(finding for finding in fields.findings if finding.field != "own_family")
    return fields.level != "no-claim" or replace(fields, findings=rest).level != "no-claim"


def with_people(fields: Fields, known: Index, rules: Rules) -> Fields:
    """The same fields with what people's grades say of the claim; unchanged where nobody graded."""
    if (found := _people_finding(fields, known, rules)) is None:
        return fields
    at = next((k for k, one in enumerate(fields.findings) if one.field == "other_judges"), len(fields.findings))
    return replace(fields, findings=(*fields.findings[:at], found, *fields.findings[at:]))


def _people(fields: Fields, known: Index) -> tuple[list[Measurement], float | None]:
    """What people see of the pairs of a claim in its direction, and the largest one-sided p if all were tested."""
    claim, items = fields.claim, list[Measurement]()
    for row in (pair.row for pair in fields.evidence.pairs):
        item = known.by_pair.get(("human.contrast", claim.dimension, row.high, row.low))
        if item is not None and row.high == claim.subjects[0]:
            items.append(item)
    whole = bool(items) and len(items) == len(fields.evidence.pairs) and all(item.value is not None for item in items)
    return items, max(float(item.detail["p"]) for item in items) if whole else None


def _people_finding(fields: Fields, known: Index, rules: Rules) -> Finding | None:
    sample = known.get("human.sample", dimension=fields.claim.dimension)
    if sample is None or not fields.claim.asserts_order or rules.source or not fields.evidence.tested:
        return None
    if not is_put(fields):
        return Finding("human_anchor", "not-tested", None, (), (sample.id,))
    there, p = _people(fields, known)
    ids = (sample.id, *(item.id for item in there))
    if p is None:
        tested = [item for item in there if item.value is None]
        why = sample.state if sample.value is None else tested[0].state if tested else "no pair has labels"
        said = f"People's grades do not test it: {why.removeprefix('not tested: ')}."
        return Finding("human_anchor", "not-tested", None, (), ids, (said,), {"drawn": sample})
    family = {**known.memo.get(PUT, {}), fields.claim.id: p}
    p_holm = float(holm(list(family.values()))[list(family).index(fields.claim.id)])
    states: list[AnchorState] = []
    for item in there:
        # What people say of one pair, the judges' own contrast on these cycles being what they are held against
        judged, record = item.detail.get("judges"), {"estimate": item.value, "high": item.high}
        states.append("undecided")
        if judged is not None and float(judged) > 0:
            found = anchor_status(record, float(judged), min(1.0, p_holm), rules.alpha)
            states[-1] = "not-tested" if found == "not tested" else found
    state, graders = min(states, key=_ORDER.index), len(sample.detail["graders"])
    who = f"the {graders} human graders of this study" if graders > 1 else "the human grader of this study"
    n = min(item.n for item in there)
    cycles, known_by = f"{n} labelled cycles", {"n": graders, "labelled": n}
    if state == "contradicts":
        said = f"People's grades contradict it: {who} see less than half of the difference that the judges see."
        return Finding("human_anchor", state, "no-claim", (), ids, (said,), known_by)
    if state == "undecided":
        needed = [item.detail.get("needed") for item in there]
        most = max((int(one) for one in needed if one is not None), default=0)
        more = f"; about {most} labelled cycles would be needed" if most > n else f", though {most} often suffice"
        more = "; more clusters are needed" if None in needed else more
        condition = Condition(id="people", text=f"People's grades on {cycles} leave it undecided{more}.")
        more = "clusters" if None in needed else "about" if most > n else "suffices"
        values = {**known_by, "more": more, "needed": most}
        return Finding("human_anchor", state, None, (condition,), ids, (), values)
    agreed = known.get("human.agreement", dimension=fields.claim.dimension)
    status = None if agreed is None else rule.agreement_status(agreed.value, publish=rules.publish, halt=rules.halt)
    lifts, ids, gap = status == "publish", ids if agreed is None else (*ids, agreed.id), ""
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
    kappa = None if agreed is None else agreed.value
    values = {**known_by, "lifts": lifts, "anyone": anyone, "seen": there, "agreed": kappa, "publish": rules.publish}
    return Finding("human_anchor", "confirms", None, (Condition(id="people", text=text),), ids, (), values)


# Claims of a study


def decide_claims(
    measurements: Sequence[Measurement], study: Study, plan_hash: str, amended: Sequence[str] = (), *,
    preregistered: bool = True, variants: bool = True,
) -> tuple[Verdict, ...]:  # fmt: skip
    """The verdict on every candidate claim of a study (ValueBlindBench section 3.8).

    Without ``variants`` no verdict has its levels under other rules, which take most of the time.
    """
    known, rules = rule.index(measurements), Rules.of(study, preregistered=preregistered)
    claims = candidate_claims(study.claims, known, rules)
    ask_people(study, known, rules)
    return tuple(decide(claim, known, rules, plan_hash, amended, variants) for claim in claims)


def decide(
    claim: Claim, known: Index, rules: Rules, plan_hash: str, amended: Sequence[str] = (), variants: bool = True
) -> Verdict:
    """The verdict on one claim, with its level under the other rules beside it."""
    own = kind(claim)
    fields, touched = with_people(own.fields(claim, known, rules), known, rules), own.amended(amended)
    reasons = [fields.agreement.reason, fields.evidence.reason_at(fields.level), *fields.adversarial.reasons]
    reasons += [fields.instruments.reason] if fields.instruments.reason else []
    for finding in fields.findings:
        # What a bias says is a reason also where another field already stops the claim.
        reasons += [*finding.reasons, *([] if finding.cap is None else [one.text for one in finding.conditions])]
    reasons += [] if fields.preregistered else [NOT_PREREGISTERED]
    reasons += [f"Amended after the lock: {listing(touched)}."] if touched else []
    fragility = {
        name: with_people(own.fields(claim, known, other, for_level=True), known, other).level
        for name, other in (own.variants(claim, known, rules) if variants else {}).items()
    }
    says, said = own.says(claim, fields, known), () if fields.level == "no-claim" else _conditions(fields)
    return fields.verdict(plan_hash, says, reasons, said, fragility, touched)


def ask_people(study: Study, known: Index, rules: Rules) -> None:
    """Note in an index which claims of a study are put to people's grades, once; nothing where nobody graded."""
    if known.named("human.contrast") and PUT not in known.memo:
        claims = candidate_claims(study.claims, known, rules, cells=False)
        put_to_people((kind(one).fields(one, known, rules) for one in claims if one.asserts_order), known)


def _conditions(fields: Fields) -> Iterator[Condition]:
    """What must be said with a claim, in a fixed order; with a headline only what narrows it."""
    agreement = fields.agreement
    if fields.level == "qualified":
        controls = fields.adversarial.conditions
        if agreement.status == "methodology" and agreement.kappa is not None:
            tail = ", and no control texts were graded." if controls == (NO_CONTROLS,) else "."
            symbol = "κ" if agreement.word == AGREEMENT["kappa"] else agreement.word
            text = f"The judges agree only weakly here ({symbol} {number(agreement.kappa)}){tail}"
            yield Condition(id="agreement", text=agreement.reason if fields.claim.scope == "adversarial-cell" else text)
            controls = () if controls == (NO_CONTROLS,) else controls
        if not fields.evidence.tested:
            yield Condition(id="not-tested", text=UNTESTED_CONDITION)
        for text in controls:
            yield Condition(id="terse" if "of the rationales of" in text else "controls", text=text)
        if failing := ", ".join(fields.instruments.failing):
            text = f"Not every judge keeps the limits that the plan sets for them: {failing}."
            yield Condition(id="judge-limits", text=text)
        if not fields.preregistered:
            yield Condition(id="not-preregistered", text=NOT_PREREGISTERED)
    for cap in fields.caps:
        if cap.lifted and cap.level == "no-claim":
            reasons = (one for finding in fields.findings if finding.field == cap.field for one in finding.reasons)
            yield Condition(id="own-family", text=" ".join(reasons))
    for finding in fields.findings:
        for condition in finding.conditions:
            # What people's confirmation lifts need not be said.
            if not (fields.lifts and finding.lifted) or condition.id in ("overlap", "specific"):
                yield condition
    if fields.evidence.state == "ordered-by-less-than-the-margin" and fields.claim.asserts_order:
        yield SMALL_GAP


# What follows from all verdicts


@dataclass(frozen=True, slots=True)
class Summary:
    """What follows from all verdicts, by scale: tiers, possible ranks, the top set, and pairs within the margin."""

    tiers: Mapping[str, tuple[tuple[str, ...], ...]]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    top_set: Mapping[str, tuple[str, ...]]
    within_margin: Mapping[str, tuple[tuple[str, ...], ...]]


def summary_of(
    verdicts: Sequence[Verdict], agents: Sequence[str], unranked: Mapping[str, Collection[str]] = MappingProxyType({})
) -> Summary:
    """Tiers and rank intervals from the orders that may be claimed; they add no error of their own."""
    claimed: dict[str, list[tuple[str, str]]] = {}
    within: dict[str, list[tuple[str, ...]]] = {}
    ranked: dict[str, list[str]] = {}
    for verdict in verdicts:
        claim, head, scale = verdict.claim, verdict.claim.id.partition("[")[0], verdict.claim.dimension
        supported = verdict.publication_level != "no-claim"
        if head in ("first", "above"):
            names = ranked.setdefault(scale, [agent for agent in agents if agent not in unranked.get(scale, ())])
            others = claim.subjects[1:] or [agent for agent in names if agent != claim.subjects[0]]
            claimed.setdefault(scale, []).extend((claim.subjects[0], other) for other in others if supported)
        elif head == "within":
            within.setdefault(scale, []).extend([tuple(sorted(claim.subjects))] if supported else [])
    found = {scale: tiers_and_ranks(names, claimed[scale]) for scale, names in ranked.items() if len(names) > 1}
    return Summary(
        {scale: tiers for scale, (tiers, _) in found.items()},
        {scale: ranks for scale, (_, ranks) in found.items()},
        {scale: tuple(a for a, (best, _) in ranks.items() if best == 1) for scale, (_, ranks) in found.items()},
        {scale: tuple(pairs) for scale, pairs in within.items()},
    )
