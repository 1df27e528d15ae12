"""From measurements to verdicts: each candidate claim through agreement, evidence, biases and controls to its level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from assaymark.claims.evidence import OUTCOME, SILENT, Index, SeasonGates, equivalence_gap, index
from assaymark.claims.levels import (
    Instruments,
    Rules,
    amended_for,
    cell_states,
    claims_of,
    coefficient_words,
    instruments_of,
    kind_of,
    other_kappas,
    other_margins,
    other_tests,
)
from assaymark.claims.messages import agent_words, interval_words, listing, measure_words, number, said, signed
from assaymark.claims.orders import orders_of, tiers_and_ranks
from assaymark.claims.panel import (
    NO_CONTROLS,
    NOT_PREREGISTERED,
    PUT,
    SMALL_GAP,
    Adversarial,
    Fields,
    adversarial_of,
    cell_fields,
    governing_agreement,
    kept,
    put_to_people,
    weakest,
    with_people,
)
from assaymark.claims.season_claims import (
    Place,
    Season,
    SeasonVerdicts,
    band_verdicts,
    order_verdicts,
    return_verdicts,
)
from assaymark.claims.standing import (
    clusters_of,
    distinct_of,
    evidence_of,
    flagged_of,
    length_of,
    missing_of,
    other_judges_of,
    own_family_of,
)
from assaymark.protocol import AGREEMENT, Study
from assaymark.records import AGGREGATE, Claim, Condition, Level, Measurement, Verdict

UNTESTED_CONDITION = "Significance was not tested: the tables came without contrasts."


def decide_claims(
    measurements: Sequence[Measurement],
    study: Study,
    plan_hash: str,
    amended: Sequence[str] = (),
    *,
    preregistered: bool = True,
    variants: bool = True,
) -> tuple[Verdict, ...]:
    """The verdict on every candidate claim of a study (ValueBlindBench section 3.8).

    Without ``variants`` no verdict has its levels under other rules, which take most of the time.
    """
    known = index(measurements)
    rules = Rules.of(study, preregistered=preregistered)
    claims = claims_of(study.claims, known, rules, tuple(cell_states(known).values()))
    ask_people(study, known, rules)
    return tuple(decide(claim, known, rules, plan_hash, amended, variants) for claim in claims)


def decide(
    claim: Claim, known: Index, rules: Rules, plan_hash: str, amended: Sequence[str] = (), variants: bool = True
) -> Verdict:
    """The verdict on one claim, with its level under the other rules beside it."""
    rests = _rests(claim, known, rules)
    fields = with_people(_fields(claim, known, rules, *rests), known, rules)
    touched, late, reasons = amended_for(claim, amended), [NOT_PREREGISTERED], [fields.agreement.reason]
    reasons += [fields.evidence.reason_at(fields.level), *fields.adversarial.reasons]
    reasons += [fields.instruments.reason] if fields.instruments.reason else []
    for finding in fields.findings:
        # What a bias says is a reason also where another field already stops the claim.
        reasons += [
            *finding.reasons,
            *(() if finding.cap is None else (condition.text for condition in finding.conditions)),
        ]
    reasons += [] if fields.preregistered else late
    reasons += [f"Amended after the lock: {listing(touched)}."] if touched else []
    return fields.verdict(
        plan_hash,
        replace(claim, statement=_statement(fields, known)),
        reasons,
        () if fields.level == "no-claim" else tuple(_conditions(fields)),
        fragility={
            name: with_people(_fields(claim, known, other, *rests, for_level=True), known, other).level
            for name, other in (variants_of(claim, known, rules) if variants else {}).items()
        },
        amended=touched,
    )


def _rests(claim: Claim, known: Index, rules: Rules) -> tuple[Adversarial | None, Instruments]:
    """What control texts and datasheets say, which no other rule changes."""
    adversarial = None if kind_of(claim) == "cell" else adversarial_of(claim, known, rules)
    return adversarial, instruments_of(known.named("datasheet.gate"), rules.on_failure)


def ask_people(study: Study, known: Index, rules: Rules) -> None:
    """Note in an index which claims of a study are put to people's grades, once; nothing where nobody graded."""
    if known.named("human.contrast") and PUT not in known.memo:
        orders = (one for one in claims_of(study.claims, known, rules, ()) if one.asserts_order)
        put_to_people((_fields(order, known, rules, *_rests(order, known, rules)) for order in orders), known)


def variants_of(claim: Claim, known: Index, rules: Rules) -> Mapping[str, Rules]:
    """The other rules under which a claim is decided again; a rule that cannot change it is not listed."""
    kind = kind_of(claim)
    if kind == "cell":
        return {}
    measured = known.agreements.get(claim.dimension, ())
    word = coefficient_words(measured[0]) if measured else AGREEMENT["kappa"]
    found = other_kappas(rules, known.get("kappa.other_ddof", dimension=claim.dimension) is not None, word)
    if not known.tested(claim.dimension):
        return found
    if kind == "within":
        return found | other_margins(rules)
    return found | other_tests(rules, rejecting(known, rules), dimensions=len(known.dimensions) > 1)


def rejecting(known: Index, rules: Rules) -> frozenset[str]:
    """The tests that could reject something in this design: a sign flip cannot with few clusters."""
    if known.tests is not None:
        return known.tests
    measured = known.once("tests", known.measured_tests)
    details = (item.measurement.detail for item in known.contrasts.values())
    most = known.once("most clusters", lambda: max((int(detail.get("clusters", 0)) for detail in details), default=0))
    pairs = max(1, len(known.agents) * (len(known.agents) - 1) // 2)
    return measured - {"p_sign_flip"} if most and 2.0 ** (1 - most) * pairs > rules.alpha else measured


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
    return replace(bare, findings=tuple(findings))


def _statement(fields: Fields, known: Index) -> str:
    """The sentence with its scope: whose scores it is about, and what these judges do not tell apart."""
    claim = fields.claim
    kind, where = kind_of(claim), measure_words(claim.dimension)
    if kind == "cell" or not fields.evidence.tested:
        return claim.statement
    judges = sum(len(item.detail["own"]) for item in known.named("panel.families"))
    scope = ""
    if claim.asserts_order and judges and fields.state("other_judges") != "yes":
        scope = f" in the scores of {'this judge' if judges == 1 else f'these {judges} judges'}"
    apart = f"{scope} on {where}, which these judges do not tell from the overall impression"
    tail = apart if fields.state("distinct") == "not-told-apart" else f" on {where}{scope}"
    if kind == "pair":
        high, low = claim.subjects
        return f"{high} scores above {low}{tail}."
    if kind == "first":
        count = agent_words(len(known.agents))
        return f"{claim.subjects[0]} ranks first of the {count}{tail}."
    if fields.level == "no-claim":
        return claim.statement
    return with_gap(claim, known.contrast(claim.dimension, *claim.subjects).measurement)


def with_gap(claim: Claim, item: Measurement) -> str:
    """The sentence of an equivalence with its difference, from the first name to the second, and its interval."""
    gap = equivalence_gap(item)
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
            text = agreement.reason if kind_of(fields.claim) == "cell" else text
            yield Condition(id="agreement", text=text)
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
    for cap in fields.caps():
        if cap.lifted and cap.level == "no-claim":
            why = " ".join(
                text for finding in fields.findings if finding.field == cap.field for text in finding.reasons
            )
            yield Condition(id="own-family", text=why)
    for one in kept(fields.findings) if fields.lifts else fields.findings:
        yield from one.conditions
    if fields.evidence.state == "ordered-by-less-than-the-margin" and fields.claim.asserts_order:
        yield SMALL_GAP


def decide_season(measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> SeasonVerdicts:
    """Decide every claim about a season (``docs/scoring.md``, "Claims")."""
    season = Season(measurements, gates, plan_hash)
    orders, agents, places = order_verdicts(season), season.known.agents, list[Place]()
    first = [order for order in orders if order.kind == "first"]
    rest = [order for order in orders if order.kind != "first"]
    pairs = [order.verdict for order in orders if order.kind == "above"]
    levels = {frozenset(one.claim.subjects): one.publication_level for one in pairs}
    claimed = [(one.claim.subjects[0], one.claim.subjects[1]) for one in pairs if one.publication_level != "no-claim"]
    tiers, ranks = tiers_and_ranks(agents, claimed)
    for tier in tiers:
        around = [levels[frozenset((one, other))] for one in tier for other in agents if other not in tier]
        level: Level = weakest(around) if around else "no-claim"
        if season.closed or len(agents) == 1:
            why = season.closed or "only"
        elif len(tier) == 1:
            why = "ranked_outcome" if season.lacking(OUTCOME, tier) else "ranked"
        else:
            found = orders_of(season.known, season.rules)
            inside = [found.pair(AGGREGATE, *pair).row for pair in combinations(tier, 2)]
            unknown = all(row.unresolved == "noise-unknown" for row in inside)
            why = "unknown" if unknown else "tier"
            why = why if any(row.testable for row in inside) else "periods"
        shown, note = len(tier) == 1 and level != "no-claim", said(f"claim.why.{why}")
        places += [Place(agent, *ranks[agent], shown, level, note) for agent in tier]
    for agent, total in sorted(season.totals.items()):
        if total.value is None:
            note = said(f"claim.why.{'silent' if total.state == SILENT else 'ungraded'}")
            places.append(Place(agent, None, None, False, "no-claim", note))
    return SeasonVerdicts((*first, *band_verdicts(season), *return_verdicts(season), *rest), tiers, tuple(places))
