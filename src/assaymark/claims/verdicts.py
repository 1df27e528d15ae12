"""From measurements to verdicts: each candidate claim through agreement, evidence, biases and controls to its level."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

from assaymark.claims import levels as rule
from assaymark.claims.findings import (
    NO_CONTROLS,
    Adversarial,
    Agreement,
    Finding,
    adversarial_of,
    cell_fields,
    clusters_of,
    distinct_of,
    flagged_of,
    governing_agreement,
    length_of,
    missing_of,
    other_judges_of,
    own_family_of,
)
from assaymark.claims.levels import Index, Instruments, Rules, kind_of, publication_level
from assaymark.claims.messages import counted, interval_words, listing, measure_words, number, signed
from assaymark.claims.orders import Evidence, evidence_of, tiers_and_ranks
from assaymark.metrology import anchor_status, holm
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.protocol import AGREEMENT, Study
from assaymark.records import AnchorState, Cap, Claim, Condition, Level, Measurement, Verdict

LEVELS: Final[tuple[Level, ...]] = ("no-claim", "qualified", "headline")
"""From the lowest."""
NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."
SMALL_GAP: Final = Condition(id="small-gap", text="The difference is smaller than the margin that counts as none.")
UNTESTED_CONDITION = "Significance was not tested: the tables came without contrasts."
LIFTED: Final[Mapping[str, tuple[str, ...]]] = {
    "own_family": ("rests-on-own-family", "no-disinterested-judge"),
    "length": ("length", "may-be-length"),
    "distinct": ("not-told-apart", "smaller"),
}
"""The states of bias tests whose caps a confirmation by people lifts; of the control texts it lifts their style."""
PUT: Final = "put to people"
"""Where an index keeps the one-sided p of every claim that is put to people, by the claim's id."""

_ORDER: Final[tuple[AnchorState, ...]] = ("contradicts", "not-tested", "undecided", "confirms")

# The fields that decide a claim, of a study, a season or a benchmark, and the level that they leave


def weakest(levels: Iterable[Level]) -> Level:
    """The lowest of some levels; a headline of none."""
    return min(levels, key=LEVELS.index, default="headline")


def lifted(finding: Finding) -> bool:
    """Whether people's confirmation lifts the cap of a finding."""
    return finding.state in LIFTED.get(finding.field, ())


@dataclass(frozen=True)
class Fields:
    """The parts from which one claim's verdict follows; what follows from them is worked out once."""

    claim: Claim
    agreement: Agreement
    evidence: Evidence
    adversarial: Adversarial
    instruments: Instruments
    findings: tuple[Finding, ...] = ()
    preregistered: bool = True

    @classmethod
    def unjudged(cls, claim: Claim, evidence: Evidence, findings: Iterable[Finding], preregistered: bool) -> Fields:
        """Of a claim that rests on no grade."""
        none = Agreement("not judged"), evidence, Adversarial("not judged"), Instruments()
        return cls(claim, *none, tuple(findings), preregistered)

    def state(self, name: str) -> str:
        """What a bias test found, in one word."""
        return next((finding.state for finding in self.findings if finding.field == name), "not-applicable")

    @cached_property
    def lifts(self) -> bool:
        """Whether people confirm the order and agree with each other, which lifts what biases of judges cap."""
        return any(finding.field == "human_anchor" and bool(finding.values.get("lifts")) for finding in self.findings)

    @cached_property
    def caps(self) -> tuple[Cap, ...]:
        """Every field that limits the level, lowest first, and whether people's grades lift it."""
        agreement, evidence, adversarial = self.agreement.status, self.evidence.status, self.adversarial.status
        found: list[tuple[str, Level]] = []
        if agreement in ("halt", "methodology"):
            found.append(("agreement", "no-claim" if agreement == "halt" else "qualified"))
        if evidence != "stable":
            stops = evidence == "judge-dependent" or self.claim.asserts_order or not self.evidence.published
            stops = stops and not (evidence == "tie-class" and self.claim.scope == "adversarial-cell")
            found.append(("stability", "no-claim" if stops and evidence != "rule-dependent" else "qualified"))
        if not self.evidence.tested:
            found.append(("stability", "qualified"))
        if adversarial not in ("passed", "not judged"):
            found.append(("adversarial", "no-claim" if adversarial == "contaminated" else "qualified"))
        found += [(finding.field, finding.cap) for finding in self.findings if finding.cap is not None]
        found += [("datasheets", self.instruments.most)] if self.instruments.failing else []
        found += [] if self.preregistered else [("preregistration", "qualified")]
        found.sort(key=lambda cap: (LEVELS.index(cap[1]), cap[0]))
        free = {finding.field for finding in self.findings if lifted(finding)} if self.lifts else set()
        free |= {"adversarial"} if self.lifts and adversarial == "construct-sensitive" else set()
        return tuple(Cap(field=name, level=level, lifted=name in free) for name, level in found)

    @cached_property
    def level(self) -> Level:
        """The lowest of what the three statuses permit and every cap."""
        caps, stated = self.caps, (self.agreement.status, self.evidence.status)
        # People lift "no claim" of the recusal contrast to qualified, and every other cap that they lift wholly.
        found: list[Level] = [cap.level for cap in caps if not cap.lifted]
        found += ["qualified" for cap in caps if cap.lifted and cap.level == "no-claim"]
        if self.agreement.status != "not judged":
            free = any(cap.field == "adversarial" and cap.lifted for cap in caps)
            construct, tested = "passed" if free else self.adversarial.status, self.evidence.tested
            order = self.claim.asserts_order
            found.append(publication_level(*stated, construct, asserts_order=order, significance_tested=tested))
        return weakest(found)

    def verdict(
        self, plan_hash: str, statement: str, reasons: Iterable[str], conditions: Iterable[Condition],
        fragility: Mapping[str, Level], amended: tuple[str, ...] = (),
    ) -> Verdict:  # fmt: skip
        """The verdict in these words, the ``statement`` with its scope."""
        level, caps, evidence, said = self.level, self.caps, self.evidence, tuple(conditions)
        states = {name: self.state(name) for name in ("own_family", "length", "distinct", "other_judges")}
        anchor = self.state("human_anchor")
        looked_at = [self.agreement.measurements, evidence.measurements, self.adversarial.measurements]
        looked_at += [self.instruments.measurements, *(finding.measurements for finding in self.findings)]
        limits = [(cap.field, "qualified" if cap.lifted else cap.level) for cap in caps
                  if not cap.lifted or cap.level == "no-claim"]  # fmt: skip
        binding = [] if level == "headline" else [name for name, most in limits if most == level]
        return Verdict(
            claim=self.claim if statement == self.claim.statement else replace(self.claim, statement=statement),
            agreement_status=self.agreement.status,
            stability_status=evidence.status,
            adversarial_status=self.adversarial.status,
            publication_level=level,
            reasons=tuple(reasons),
            binding=tuple(dict.fromkeys(binding)),
            measurements=tuple(dict.fromkeys(name for names in looked_at for name in names)),
            plan_hash=plan_hash,
            condition=" ".join(condition.text for condition in said) or None,
            fragility=fragility,
            amended=amended,
            conditions=said,
            caps=caps,
            pair_state=evidence.state,
            preregistered=self.preregistered,
            human_anchor="not-tested" if anchor == "not-applicable" else anchor,  # type: ignore[arg-type]
            **{name: getattr(evidence, name) for name in ("p", "p_adjusted", "p_adjusted_headline", "stability")},
            **states,  # type: ignore[arg-type]  # each state is a word of its own list
        )


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
        turned = kind_of(claim) == "first" and row.high != claim.subjects[0]
        item = known.by_pair.get(("human.contrast", claim.dimension, row.high, row.low))
        if item is not None and not turned:
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
    known = rule.index(measurements)
    rules = Rules.of(study, preregistered=preregistered)
    claims = rule.claims_of(study.claims, known, rules, tuple(rule.cell_states(known).values()))
    ask_people(study, known, rules)
    return tuple(decide(claim, known, rules, plan_hash, amended, variants) for claim in claims)


def decide(
    claim: Claim, known: Index, rules: Rules, plan_hash: str, amended: Sequence[str] = (), variants: bool = True
) -> Verdict:
    """The verdict on one claim, with its level under the other rules beside it."""
    rests = _rests(claim, known, rules)
    fields = with_people(_fields(claim, known, rules, *rests), known, rules)
    touched, reasons = rule.amended_for(claim, amended), [fields.agreement.reason]
    reasons += [fields.evidence.reason_at(fields.level), *fields.adversarial.reasons]
    reasons += [fields.instruments.reason] if fields.instruments.reason else []
    for finding in fields.findings:
        # What a bias says is a reason also where another field already stops the claim.
        reasons += [*finding.reasons, *([] if finding.cap is None else [one.text for one in finding.conditions])]
    reasons += [] if fields.preregistered else [NOT_PREREGISTERED]
    reasons += [f"Amended after the lock: {listing(touched)}."] if touched else []
    fragility = {
        name: with_people(_fields(claim, known, other, *rests, for_level=True), known, other).level
        for name, other in (variants_of(claim, known, rules) if variants else {}).items()
    }
    # The sentence with its scope: whose scores it is about, and what these judges do not tell apart
    kind, where, says, scope = kind_of(claim), measure_words(claim.dimension), claim.statement, ""
    if claim.asserts_order and fields.evidence.tested:
        judges = sum(len(item.detail["own"]) for item in known.named("panel.families"))
        if judges and fields.state("other_judges") != "yes":
            scope = f" in the scores of {'this judge' if judges == 1 else f'these {judges} judges'}"
        apart = fields.state("distinct") == "not-told-apart"
        told = f" on {where}{scope}"
        told = f"{scope} on {where}, which these judges do not tell from the overall impression" if apart else told
        what = f"ranks first of the {counted(len(known.agents), 'agent')}"
        what = f"scores above {claim.subjects[-1]}" if kind == "pair" else what
        says = f"{claim.subjects[0]} {what}{told}."
    elif kind == "within" and fields.evidence.tested and fields.level != "no-claim":
        says = with_gap(claim, known)
    conditions = () if fields.level == "no-claim" else _conditions(fields)
    return fields.verdict(plan_hash, says, reasons, conditions, fragility, touched)


def _rests(claim: Claim, known: Index, rules: Rules) -> tuple[Adversarial | None, Instruments]:
    """What control texts and datasheets say, which no other rule changes."""
    adversarial = None if kind_of(claim) == "cell" else adversarial_of(claim, known, rules)
    return adversarial, rule.instruments_of(known, rules.on_failure)


def ask_people(study: Study, known: Index, rules: Rules) -> None:
    """Note in an index which claims of a study are put to people's grades, once; nothing where nobody graded."""
    if known.named("human.contrast") and PUT not in known.memo:
        orders = (one for one in rule.claims_of(study.claims, known, rules, ()) if one.asserts_order)
        put_to_people((_fields(order, known, rules, *_rests(order, known, rules)) for order in orders), known)


def variants_of(claim: Claim, known: Index, rules: Rules) -> Mapping[str, Rules]:
    """The other rules under which a claim is decided again; a rule that cannot change it is not listed."""
    kind = kind_of(claim)
    if kind == "cell":
        return {}
    measured = known.agreements.get(claim.dimension, ())
    word = rule.coefficient_words(measured[0]) if measured else AGREEMENT["kappa"]
    found = rule.other_kappas(rules, known.get("kappa.other_ddof", dimension=claim.dimension) is not None, word)
    if not known.tested(claim.dimension):
        return found
    if kind == "within":
        return found | rule.other_margins(rules)
    return found | rule.other_tests(rules, rejecting(known, rules), dimensions=len(known.dimensions) > 1)


def rejecting(known: Index, rules: Rules) -> frozenset[str]:
    """The tests that could reject something in this design: a sign flip cannot with few clusters."""
    if known.tests is not None:
        return known.tests
    measured, contrasts = known.once("tests", known.measured_tests), known.contrasts.values()
    most = known.once("most", lambda: max((int(one.detail.get("clusters", 0)) for one in contrasts), default=0))
    pairs = max(1, len(known.agents) * (len(known.agents) - 1) // 2)
    return measured - {"p_sign_flip"} if most and 2.0 ** (1 - most) * pairs > rules.alpha else measured


def _fields(
    claim: Claim, known: Index, rules: Rules, adversarial: Adversarial | None, instruments: Instruments, *,
    for_level: bool = False,
) -> Fields:  # fmt: skip
    """The fields of a claim under ``rules``; the adversarial one does not depend on what the variants change.

    Biases only lower a level: for the level alone they are not asked where there is nothing to lower.
    """
    if adversarial is None:
        return Fields(claim, *cell_fields(claim, known, rules), instruments, (), rules.preregistered)
    agreement, evidence = governing_agreement(claim.dimension, known, rules), evidence_of(claim, known, rules)
    bare = Fields(claim, agreement, evidence, adversarial, instruments, (), rules.preregistered)
    if rules.source or not evidence.tested or (for_level and bare.level == "no-claim"):
        return bare
    findings = [one(claim, evidence, known, rules) for one in (own_family_of, length_of, distinct_of)]
    if claim.asserts_order:
        findings += [other_judges_of(claim, evidence, known, rules), missing_of(known, rules)]
    findings += [flagged_of(evidence, known), *clusters_of(claim, evidence, known)]
    return Fields(claim, agreement, evidence, adversarial, instruments, tuple(findings), rules.preregistered)


def with_gap(claim: Claim, known: Index) -> str:
    """The sentence of an equivalence with its difference, from the first name to the second, and its interval."""
    gap = rule.equivalence_gap(known.contrast(claim.dimension, *claim.subjects))
    if gap is None:
        return claim.statement
    value, level, low, high = gap
    interval = interval_words(low, high).strip(" ()")
    return f"{claim.statement[:-1]} (gap {signed(value)}, {level:g} % interval {interval})."


def _conditions(fields: Fields) -> Iterator[Condition]:
    """What must be said with a claim, in a fixed order; with a headline only what narrows it."""
    agreement = fields.agreement
    if fields.level == "qualified":
        controls = fields.adversarial.conditions
        if agreement.status == "methodology" and agreement.kappa is not None:
            tail = ", and no control texts were graded." if controls == (NO_CONTROLS,) else "."
            symbol = "κ" if agreement.word == AGREEMENT["kappa"] else agreement.word
            text = f"The judges agree only weakly here ({symbol} {number(agreement.kappa)}){tail}"
            yield Condition(id="agreement", text=agreement.reason if kind_of(fields.claim) == "cell" else text)
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
            if not (fields.lifts and lifted(finding)) or condition.id in ("overlap", "specific"):
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
