"""Decide claims: each kind is a class with its statement, its evidence, and other rules for sensitivity analysis.

Claims that compare agents also have their messages for seasons here; the texts are in `assaymark.claims.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import ClassVar, Final, Literal, get_args

from assaymark.claims import findings as bias
from assaymark.claims import levels as rule
from assaymark.claims.findings import HUMAN_P, Fields, store_human_p, with_human_test
from assaymark.claims.levels import (
    CELL_STATEMENTS,
    Index,
    Rules,
    cell_states,
    cell_words,
    governing_agreement,
    panel_finding,
    threshold,
)
from assaymark.claims.messages import (
    Phrase,
    Value,
    interval_words,
    listing,
    measure_words,
    number,
    p_words,
    phrase,
    plural,
    signed,
)
from assaymark.claims.orders import GAP, ClaimEvidence, PairResult, contrasts_of, orders_of
from assaymark.errors import NotMeasurableError
from assaymark.plan import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, NOT_PREREGISTERED, TOLERANCE
from assaymark.protocol import AGREEMENT, Claims, Study
from assaymark.records import (
    AGGREGATE,
    AdversarialStatus,
    AgreementStatus,
    Claim,
    Condition,
    Measurement,
    Scope,
    StabilityFinding,
    StabilityStatus,
    Verdict,
    measurement_id,
)
from assaymark.text import count_words, end_digits

OrderHead = Literal["first", "above", "within"]
SeasonTexts = tuple[Phrase, Phrase, Phrase]  # the statement, the phrase if it is unsupported, and the reason
ClaimKind = Literal["first", "pair", "within", "cell"]
KIND_NAMES: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)
"""The kinds of claim, in the order in which the claims about one score are decided."""

ONE_FAMILY = "All judges are of one family, so nothing shows that a ranking holds without any one of them."
UNTESTED = "significance not tested, as the tables came without contrasts"
_LARGEST_WORD: Final = 12
_WORST: tuple[StabilityStatus, ...] = ("judge-dependent", "not tested", "tie-class", "stable")
_WORST_STATE = ("not-measurable", "reversed-without", "rests-on", "stable")

_NO_CLAIM: Final = frozenset((
    "anchor_probe", "contamination", "engine", "human.grades", "title", "inference.mde_power", "inference.mde_sd"
))  # fmt: skip
_OF_ORDERS: Final = frozenset(("cells.terse_share", "cells.terse_tokens", "claims.distinct", "claims.judges"))


class ClaimType:
    """Base of all kinds of claim. The prefix of a claim's id is the ``head`` of its kind."""

    name: ClassVar[ClaimKind]
    head: ClassVar[str]
    subjects: ClassVar[int] = 1
    untouched: ClassVar[frozenset[str]] = frozenset()
    """Plan fields that no claim of this kind depends on, each with its nested fields."""
    withheld: ClassVar[str]
    """Phrase for an unsupported claim: its subject, but neither its statement nor its direction."""

    def amended(self, fields: Sequence[str]) -> tuple[str, ...]:
        """Return the amended plan fields that affect a claim of this kind, in the order given, each once."""
        apart = self.untouched | _NO_CLAIM
        return tuple(
            name for name in dict.fromkeys(fields)
            if not any(name == field or name.startswith(f"{field}.") for field in apart)
        )  # fmt: skip

    def build(self, dimension: str, subjects: Sequence[str], index: Index, rules: Rules) -> Claim:
        """Build the claim about some subjects from the measurements, which decide its direction and outcome."""
        raise NotImplementedError

    def fields(self, claim: Claim, index: Index, rules: Rules, *, for_level: bool = False) -> Fields:
        """Return the fields of a claim under ``rules``; ``for_level`` skips bias tests that cannot lower the level."""
        raise NotImplementedError

    def variants(self, claim: Claim, index: Index, rules: Rules) -> Mapping[str, Rules]:
        """Return the other rules for the sensitivity analysis, without those that cannot change the claim."""
        return {}

    def says(self, claim: Claim, fields: Fields, index: Index) -> str:
        """Return the statement of a decided claim."""
        return claim.statement


class ComparisonClaim(ClaimType):
    """A claim that compares agents, decided from its pairs."""

    head: ClassVar[OrderHead]
    labels: ClassVar[tuple[str, ...]] = ("high", "low")
    asserts_order: ClassVar[bool] = True
    text: ClassVar[str]

    def statement(self, subjects: Sequence[str], size: str) -> str:
        """Return the statement without the score's name; ``size`` is the number of agents, or the margin."""
        return self.text.format(*subjects, both=" and ".join(sorted(subjects)), size=size)

    def claim(self, dimension: str, *subjects: str, size: str = "", on: str = "") -> Claim:
        """Build the claim about these agents; of a pair, the one claimed higher comes first."""
        scope: Scope = "aggregate-ranking" if dimension == AGGREGATE else "dimension-ranking"
        scope = scope if self.subjects == 1 else "pairwise-contrast"
        labels = {"dimension": dimension, **dict(zip(self.labels, subjects, strict=True))}
        text = f"{self.statement(subjects, size)} on {on or measure_words(dimension)}."
        return Claim(measurement_id(self.head, labels), scope, text, subjects, dimension, self.asserts_order)

    def build(self, dimension: str, subjects: Sequence[str], index: Index, rules: Rules) -> Claim:
        if self.subjects == 1:
            return self.claim(dimension, subjects[0], size=plural(len(index.agents), "agent"))
        pair = higher_first(dimension, subjects[0], subjects[1], index)
        return self.claim(dimension if self.asserts_order else AGGREGATE, *pair, size=f"{rules.margin:g}")

    def evidence(self, claim: Claim, index: Index, rules: Rules) -> ClaimEvidence:
        """Return the evidence for a claim: the results of its pairs, or the levels if no difference was tested."""
        dimension = claim.dimension
        if not index.tested(dimension):
            return self.level_evidence(claim, index)
        orders, ids = orders_of(index, rules), list[str]()
        alone = len(claim.subjects) == 1
        pairs = orders.of(dimension, *claim.subjects) if alone else [orders.pair(dimension, *claim.subjects)]
        for pair in pairs:  # the measurements behind the results of these pairs
            names = pair.row.high, pair.row.low
            if (key := ("rests", dimension, *names)) not in index.memo:
                items = [index.contrast(dimension, *names)]
                for name in ("recusal", "length", "judges"):
                    items += contrasts_of(name, dimension, [pair], index)
                items += [drop for family in index.families if (drop := index.drop(dimension, family, *names))]
                items += [] if (probe := index.directed("probe.contrast", dimension, *names)) is None else [probe[0]]
                index.memo[key] = [item.id for item in items]
            ids += index.memo[key]
        return self.tested_evidence(claim, pairs, tuple(dict.fromkeys(ids)), index, rules)

    def tested_evidence(
        self, claim: Claim, pairs: Sequence[PairResult], ids: tuple[str, ...], index: Index, rules: Rules
    ) -> ClaimEvidence:
        """Return the evidence for a claim whose differences were tested."""
        raise NotImplementedError

    def level_evidence(self, claim: Claim, index: Index) -> ClaimEvidence:
        """Return the evidence from untested levels: a higher level with all judges and without each family."""
        if not self.asserts_order:
            return ClaimEvidence("tie-class", f"Nothing was tested: {UNTESTED}.", (), tested=False)
        dimension, high = claim.dimension, claim.subjects[0]
        others = [*claim.subjects[1:]] or [name for name in index.agents if name != high]
        ids: list[str] = []
        behind: dict[str | None, list[str] | None] = {}  # agents at or above the first; None if a level is missing
        for family in (None, *index.families):
            items = [index.levels.get((dimension, family, name)) for name in (high, *others)]
            ids += [item.id for item in items if item is not None]
            level, *values = (None if item is None else item.value for item in items)
            there = [value for value in values if value is not None]
            behind[family] = None
            if level is not None and len(there) == len(others):
                behind[family] = sorted(name for name, value in zip(others, there, strict=True) if value >= level)
        used, tail = tuple(ids), "but no judge family was left out"
        status: StabilityStatus = "judge-dependent"
        if (ahead := behind[None]) != []:
            reason = f"{listing(ahead or [])} comes before it or level with it"
            reason = "some agent has no level" if ahead is None else reason
            return ClaimEvidence("tie-class", f"{high} is not ahead: {reason} ({UNTESTED}).", used, tested=False)
        if index.families:
            reversals = [family for family in index.families if behind[family] != []]
            status, tail = "stable", "also without any one judge family"
            if reversals:
                probes = [index.directed("probe.contrast", dimension, high, other) for other in others]
                asked = [zero for probe in probes if (zero := contains_zero(probe)) is not None]
                status = "tie-class" if asked and all(asked) else "judge-dependent"
                tail = f"but not without {listing(reversals)}"
        return ClaimEvidence(status, f"{high} has the higher level ({UNTESTED}), {tail}.", used, tested=False)

    def fields(self, claim: Claim, index: Index, rules: Rules, *, for_level: bool = False) -> Fields:
        agreement, evidence = governing_agreement(claim.dimension, index, rules), self.evidence(claim, index, rules)
        # Cached, because other rules do not change the result of the controls.
        place = "adversarial", claim.id, rules.cells, rules.alpha
        adversarial = index.once(place, lambda: bias.controls_finding(claim, index, rules))
        instruments = rule.datasheet_finding(index, rules.on_failure)
        bare = Fields(claim, agreement, evidence, adversarial, instruments, (), rules.preregistered)
        if rules.source or not evidence.tested or (for_level and bare.level == "no-claim"):
            return bare
        findings = [
            rule_of(claim, evidence, index, rules) for rule_of in (bias.own_family, bias.length_bias, bias.distinctness)
        ]
        if self.asserts_order:
            findings += [bias.other_judges_finding(claim, evidence, index, rules), bias.missing_finding(index, rules)]
        findings += [bias.flagged_finding(evidence, index), *bias.cluster_findings(claim, evidence, index)]
        return Fields(claim, agreement, evidence, adversarial, instruments, tuple(findings), rules.preregistered)

    def variants(self, claim: Claim, index: Index, rules: Rules) -> Mapping[str, Rules]:
        measured = index.agreements.get(claim.dimension, ())
        word = rule.coefficient_words(measured[0]) if measured else AGREEMENT["kappa"]
        others = rule.other_kappas(rules, index.get("kappa.other_ddof", claim.dimension) is not None, word)
        if not index.tested(claim.dimension):
            return others
        return others | self.other_rules(rules, rule.usable_tests(index, rules), len(index.dimensions) > 1)

    def other_rules(self, rules: Rules, measured: frozenset[str], dimensions: bool) -> dict[str, Rules]:
        """Return rules with other tests and (if ``dimensions``) alpha shares; for equivalence with other margins."""
        orders = self.asserts_order
        return rule.other_tests(rules, measured, dimensions) if orders else rule.other_margins(rules)

    def says(self, claim: Claim, fields: Fields, index: Index) -> str:
        """Return the statement with its scope: the judges whose scores it is about, and a lack of distinctness."""
        scope = scope_words(index.get("panel.families"), fields.state("other_judges"))
        text = self.statement(claim.subjects, plural(len(index.agents), "agent"))
        on = f" on {measure_words(claim.dimension)}"
        if fields.state("distinct") == "not-told-apart":
            return f"{text}{scope}{on}, which these judges do not tell from the overall impression."
        return f"{text}{on}{scope}."

    def season(self, claim: Claim, fields: Fields, index: Index, rules: Rules, scope: Value) -> SeasonTexts:
        """Return the messages of a season's claim: statement, phrase if unsupported, and reason."""
        raise NotImplementedError


class FirstRankClaim(ComparisonClaim):
    """An agent ranks first."""

    name = "first"
    head = "first"
    labels = ("agent",)
    text = "{} ranks first of the {size}"
    withheld = "A first rank for {names} on {score}."
    untouched = frozenset(("inference.margin", "claims.pairs", "claims.within", "claims.cells"))

    def tested_evidence(
        self, claim: Claim, pairs: Sequence[PairResult], ids: tuple[str, ...], index: Index, rules: Rules
    ) -> ClaimEvidence:
        agent, dimension, orders = claim.subjects[0], claim.dimension, orders_of(index, rules)
        leaders = orders.leaders.items()
        published = frozenset(which for (scale, which), leader in leaders if (scale, leader) == (dimension, agent))
        each = [
            (pair.row.p.get(rules.test, 1.0), pair.gated, pair.headline) if pair.row.high == agent else (1.0, 1.0, 1.0)
            for pair in pairs
        ]
        p = tuple(map(max, zip(*each, strict=True))) if each else (None, None, None)
        tested = [pair for pair in pairs if pair.row.testable]
        finding: StabilityFinding | None = None
        status: StabilityStatus
        if not index.families:
            status, reason = "judge-dependent", ONE_FAMILY
        elif len(tested) < len(pairs):
            # An agent with untestable pairs cannot be first, whatever its other pairs show.
            status, published = "not tested", frozenset()
            others = sorted(pair.other(agent) for pair in pairs if pair not in tested)
            reason = f"{agent} and {listing(others)} cannot be compared: too few common clusters."
            if tested and all(pair.ordered and pair.row.high == agent for pair in tested):
                with_each = plural(len(tested), "agent")
                reason = f"{agent} is ahead of each of the {with_each} it was compared with. {reason}"
        elif not published & {"plain", "gated"}:
            needed, status = threshold(orders.level(dimension)), "tie-class"
            reason = f"A lead over every other agent is not resolved (adjusted p-values of all its pairs; {needed})."
            reason = reason if pairs else "There is no other agent."
        else:
            status = min((_drop_status(dimension, pair, index)[0] for pair in pairs), key=_WORST.index)
            weakest = min(pairs, key=lambda pair: _WORST_STATE.index(pair.stability.state))
            lead = f"The lead over each of the other {plural(len(pairs), 'agent')} is significant"
            worst = p_words(max(pair.plain for pair in pairs))
            about = "" if weakest.stability.state == "stable" else f" (against {weakest.row.low})"
            reason = f"{lead} ({worst} adjusted, at most), {_drop_status(dimension, weakest, index)[1]}{about}."
            families = tuple(sorted({name for pair in pairs for name in pair.stability.families}))
            finding = StabilityFinding(weakest.stability.state, families)
        return ClaimEvidence(status, reason, ids, tuple(pairs), published, finding, None, *p)

    def season(self, claim: Claim, fields: Fields, index: Index, rules: Rules, scope: Value) -> SeasonTexts:
        agent, pairs = claim.subjects[0], fields.evidence.pairs
        statement = phrase("claim.says.first", agent=agent, count=count_text(len(index.agents)), scope=scope)
        untested = tuple(sorted(pair.other(agent) for pair in pairs if not pair.row.testable))
        led = [pair for pair in pairs if pair.row.high == agent and not pair.row.unresolved]
        published = all(pair.published & {"plain", "gated"} for pair in led)
        lost = next((pair for pair in pairs if pair.stability.state != "stable"), None)
        if not index.families:
            reason = phrase("claim.reason.one_family")
        elif untested:
            reason = phrase("claim.reason.untested_first", agent=agent, agents=untested)
        elif not fields.evidence.published or len(led) < len(pairs) or not published:
            reason = phrase("claim.reason.no_lead")
        elif lost is not None:
            reason = phrase("claim.reason.against", other=lost.other(agent), why=_drop_message(lost))
        else:
            worst, needed = max(pair.plain for pair in pairs), orders_of(index, rules).level(AGGREGATE)
            reason = phrase("claim.reason.lead", len(pairs), p=p_text(worst), needed=needed)
        return statement, phrase("claim.withheld.first", agent=agent), reason


class AboveClaim(ComparisonClaim):
    """One agent scores above another."""

    name = "pair"
    head = "above"
    subjects = 2
    text = "{} scores above {}"
    withheld = "Any ranking of {names} on {score}."
    untouched = frozenset(("claims.first", "claims.within", "claims.cells"))

    def tested_evidence(
        self, claim: Claim, pairs: Sequence[PairResult], ids: tuple[str, ...], index: Index, rules: Rules
    ) -> ClaimEvidence:
        (pair,), dimension = pairs, claim.dimension
        row, published, item = pair.row, pair.published, index.contrast(dimension, pair.row.high, pair.row.low)
        status, reason = _untested(pair, item, index)
        if not reason and not published & {"plain", "gated"}:
            needed = threshold(orders_of(index, rules).level(dimension))
            reason = f"The difference is not resolved: {p_words(pair.plain)} adjusted, {needed}."
        elif not reason:
            status, text = _drop_status(dimension, pair, index)
            reason = f"The difference{GAP} is significant: {p_words(pair.plain)} adjusted, {text}."
        ends = interval_words(item.low, item.high)
        difference = f" ({signed(item.value or 0.0)} points{ends} over {item.n} common cycles)"
        stability, p = pair.stability if published else None, row.p.get(rules.test, 1.0)
        return ClaimEvidence(status, reason, ids, (pair,), published, stability, pair.state, p, pair.gated,
                             pair.headline, difference)  # fmt: skip

    def season(self, claim: Claim, fields: Fields, index: Index, rules: Rules, scope: Value) -> SeasonTexts:
        (high, low), (pair,) = claim.subjects, fields.evidence.pairs
        row, item = pair.row, index.contrast(AGGREGATE, high, low)
        first, second = sorted((high, low))
        statement, withheld = phrase("claim.says.above", high=high, low=low, scope=scope), (first, second)
        floor = float(item.detail.get("noise_floor") or 0.0)
        numbers: dict[str, Value] = {"p": p_text(pair.plain), "needed": orders_of(index, rules).level(AGGREGATE)}
        if not index.families or not row.testable:
            reason = _untested_message(pair, item, index)
        elif row.unresolved:
            reason = phrase(f"claim.reason.{row.unresolved.replace('-', '_')}", one=first, two=second, floor=floor)
        elif not pair.published & {"plain", "gated"}:
            reason = phrase("claim.reason.unresolved", **numbers)
        elif pair.stability.state != "stable":
            reason = _drop_message(pair)
        elif fields.level == "no-claim":
            reason = phrase("claim.reason.resolved", **numbers)
        else:
            periods, difference = int(item.detail["clusters"]), float(item.detail.get("totals_gap", 0.0))
            reason = phrase("claim.reason.supported", periods=periods, value=item.value or 0.0,
                       ends=ends_text(item, "points"), gap=difference, floor=floor, **numbers)  # fmt: skip
        return statement, phrase("claim.withheld.order", agents=withheld), reason


class EquivalenceClaim(ComparisonClaim):
    """Two agents score within the margin of each other; asserts no order, and has its own test family."""

    name = "within"
    head = "within"
    subjects = 2
    asserts_order = False
    text = "{both} score within {size} of each other"
    withheld = "That {names} score alike on {score}."
    untouched = frozenset(("claims.first", "claims.pairs", "claims.cells")) | _OF_ORDERS

    def tested_evidence(
        self, claim: Claim, pairs: Sequence[PairResult], ids: tuple[str, ...], index: Index, rules: Rules
    ) -> ClaimEvidence:
        (pair,) = pairs
        item = index.contrast(claim.dimension, pair.row.high, pair.row.low)
        status, reason = _untested(pair, item, index)
        if not reason:
            tail = f"{p_words(pair.p_within)} after Holm over all pairs, {threshold(rules.alpha)}"
            lost = _families_apart(pair, claim.dimension, index, rules)
            status = "tie-class" if lost or not pair.within else "stable"
            text = f"but without {listing(lost)} they are further apart"
            text = text if lost else "also without any one judge family"
            reason = f"The two score within {rules.margin:g} of each other ({tail}), {text}."
            if not pair.within:
                reason = f"The two are not shown to score within {rules.margin:g} of each other: {tail}."
        p_value = pair.p_within if status in ("stable", "tie-class") else None
        shown = frozenset({"gated"}) if p_value is not None and pair.within else frozenset[str]()
        return ClaimEvidence(status, reason, ids, (pair,), shown, None, pair.state, pair.row.within(rules.margin),
                             p_value)  # fmt: skip

    def says(self, claim: Claim, fields: Fields, index: Index) -> str:
        """Return the statement with the difference (first name minus second) and its interval."""
        tested = fields.evidence.tested and fields.level != "no-claim"
        ends = rule.equivalence_gap(index.contrast(claim.dimension, *claim.subjects)) if tested else None
        if ends is None:
            return claim.statement
        value, level, low, high = ends
        interval = interval_words(low, high).strip(" ()")
        return f"{claim.statement[:-1]} (gap {signed(value)}, {level:g} % interval {interval})."

    def season(self, claim: Claim, fields: Fields, index: Index, rules: Rules, scope: Value) -> SeasonTexts:
        (pair,), names = fields.evidence.pairs, tuple(sorted(claim.subjects))
        item, margin = index.contrast(AGGREGATE, *claim.subjects), rules.margin
        size: Value = ""
        if fields.level != "no-claim" and (ends := rule.equivalence_gap(item)):
            size = phrase("claim.says.within_gap", **dict(zip(("value", "level", "low", "high"), ends, strict=True)))
        statement = phrase("claim.says.within", one=names[0], two=names[1], margin=margin, gap=size)
        lost = tuple(_families_apart(pair, AGGREGATE, index, rules))
        state = "open" if not pair.within else "lost" if fields.evidence.status != "stable" else "shown"
        cause = phrase(f"claim.reason.within.{state}", len(lost), margin=margin, families=lost,
                       p=p_text(pair.p_within), needed=rules.alpha)  # fmt: skip
        if not index.families or not pair.row.testable:
            cause = _untested_message(pair, item, index)
        return statement, phrase("claim.withheld.within", agents=names), cause


class CellClaim(ClaimType):
    """A claim on how the panel scores one control cell."""

    name = "cell"
    head = "cell"
    withheld = "How the panel scores {texts}."
    untouched = _OF_ORDERS | frozenset((
        "gates.format_min_clusters", "gates.format_min_records", "inference.aggregate_share", "inference.cluster_order",
        "inference.test", "inference.margin", "stability", "cells.contaminates", "claims.length", "claims.first",
        "claims.pairs", "claims.within",
    ))  # fmt: skip

    def build(self, dimension: str, subjects: Sequence[str], index: Index, rules: Rules) -> Claim:
        (cell,) = subjects
        state = cell_states(index).get(cell)
        if state is None:
            raise NotMeasurableError(f"no gate of the control cell {cell} was measured")
        text, limits = CELL_STATEMENTS.get(state.outcome, "How the panel treats {texts} was not tested."), rules.cells
        statement = text.format(texts=cell_words(cell), substance=limits.substance, verbosity=limits.verbosity)
        name = measurement_id("cell", {"cell": cell})
        return Claim(name, "adversarial-cell", statement, (cell,), AGGREGATE, asserts_order=False)

    def fields(self, claim: Claim, index: Index, rules: Rules, *, for_level: bool = False) -> Fields:
        """Return agreement on the cell's difference, its stability without each family, and its self-preference."""
        state = cell_states(index)[claim.subjects[0]]
        halo, item = state.halo, index.get("cell.agreement", cell=state.cell)
        # Self-preference: the effect of judges from the text author's family on the cell's score
        treated: AdversarialStatus = "passed"
        if halo is None or halo.value is None:
            treated, suffix = "not tested", "" if halo is None else f" ({halo.state})"
            text = f"Whether the composer's own judges favour these texts was not measured{suffix}."
        elif (family := halo.detail.get("family")) is None:
            text = "No judge shares a family with the composer of these texts, so self-preference cannot be tested."
        else:
            result = "no self-preference"
            if halo.detail.get("triggered"):
                treated, result = "construct-sensitive", "self-preference, so the number without them is primary"
            points = f"move the number by {signed(halo.value)} points"
            text = f"The judges of family {family}, which wrote these texts, {points}: {result}."
        conditions = () if treated == "passed" else (Condition("controls", text),)
        adversarial = panel_finding("adversarial", treated, (), (text,), conditions)
        ids = () if item is None else (item.id,)
        evidence_ids = (*state.measurements, *(drop.id for drop in state.drops.values()), *ids)
        numbers = f"The number behind it is {state.numbers}: {state.outcome}"
        tested, texts = state.gate.detail.get("p") is not None, cell_words(state.cell)
        status: StabilityStatus = "judge-dependent"
        published = frozenset[str]()
        if item is None or item.value is None:
            suffix = "" if item is None else f" ({item.state})"
            agreement = panel_finding("agreement", "halt", ids, (f"Agreement on {texts} was not measured{suffix}.",))
            reason = f"{numbers}; whether it holds without any one judge family was not measured."
        else:
            reached = rules.status(item.value)
            agreed: AgreementStatus = "halt"
            word = rule.coefficient_words(item)
            sentence = f"not every panel without one judge family sees the difference, or {word} is below the cut-off"
            if item.detail["unanimous"] and reached == "publish":
                agreed, sentence = "publish", "every judge family sees the difference"
            elif item.detail["leave_one_out"] and reached != "halt":
                sentence = "every panel without one family sees the difference, but not every family alone"
                agreed = "methodology"
            reason = f"On {texts} {sentence}; {word} over these and the honest records {number(item.value)}."
            weak = (Condition("agreement", reason),) if agreed == "methodology" else ()
            agreement = panel_finding("agreement", agreed, ids, (reason,), weak)
            reason = f"{numbers}, but not every panel without one judge family shows it."
            if item.detail["leave_one_out"]:
                reason, published = f"{numbers}, and it holds without any one judge family.", frozenset({"gated"})
                status = "stable"
        evidence = ClaimEvidence(status, reason, evidence_ids, published=published, tested=tested)
        instruments = rule.datasheet_finding(index, rules.on_failure)
        return Fields(claim, agreement, evidence, adversarial, instruments, (), rules.preregistered)


FIRST, ABOVE, WITHIN, CELL = FirstRankClaim(), AboveClaim(), EquivalenceClaim(), CellClaim()
ORDERS: Final[Mapping[str, ComparisonClaim]] = {kind.head: kind for kind in (FIRST, ABOVE, WITHIN)}
"""The kinds that compare agents, by the prefix of their claim ids, in the order in which they are decided."""
KINDS: Final[Mapping[str, ClaimType]] = {**ORDERS, "cell": CELL}


def claim_type(claim: Claim) -> ClaimType:
    """Return the kind of a claim by the prefix of its id; the number of subjects would not be unique."""
    head = claim.id.partition("[")[0]
    if head not in KINDS:
        raise NotMeasurableError(f"claim {claim.id!r} is of no known kind ({', '.join(KINDS)})")
    return KINDS[head]


def kind_of(claim: Claim) -> ClaimKind:
    """Return the name of the kind of a claim."""
    return claim_type(claim).name


def scope_words(families: Measurement | None, other_judges: str) -> str:
    """Return the words for the judges whose scores a ranking is about; empty if untested or true of other judges."""
    judges = 0 if families is None else len(families.detail["own"])
    if not judges or other_judges not in ("no", "not-tested"):
        return ""
    return f" in the scores of {'this judge' if judges == 1 else f'these {judges} judges'}"


def suppressed_phrase(claim: Claim) -> str:
    """Return the phrase for an unsupported claim, without its statement or direction."""
    names, score = listing(sorted(claim.subjects)), measure_words(claim.dimension)
    return claim_type(claim).withheld.format(names=names, score=score, texts=cell_words(claim.subjects[0]))


def candidate_claims(wanted: Claims, index: Index, rules: Rules, *, cells: bool = True) -> list[Claim]:
    """Return the candidate claims: by default every first rank, pair, pair within the margin, and control cell."""
    claims, asked = list[Claim](), ((FIRST, wanted.first), (ABOVE, wanted.pairs), (WITHIN, wanted.within))
    for dimension in (AGGREGATE, *index.dimensions) if wanted.dimensions is None else wanted.dimensions:
        for kind, yes in asked:
            if yes and (kind is not WITHIN or dimension == AGGREGATE):
                groups = combinations(index.agents, kind.subjects)
                claims += [kind.build(dimension, subjects, index, rules) for subjects in groups]
    judged = cell_states(index) if cells and wanted.cells else ()
    return claims + [CELL.build(AGGREGATE, (cell,), index, rules) for cell in judged]


def higher_first(dimension: str, first: str, other: str, index: Index) -> tuple[str, str]:
    """Return two agents, the higher-scored first: by their contrast, or by their levels if there is none."""
    if index.tested(dimension):
        labels = index.contrast(dimension, first, other).labels
        return labels["high"], labels["low"]
    items = [index.levels.get((dimension, None, name)) for name in (first, other)]
    values = [None if item is None else item.value for item in items]
    if values[0] is None or values[1] is None or values[0] == values[1]:
        return (first, other) if first < other else (other, first)
    return (first, other) if values[0] > values[1] else (other, first)


def decide_claims(
    measurements: Sequence[Measurement], study: Study, plan_hash: str, amended: Sequence[str] = (), *,
    preregistered: bool = True, variants: bool = True,
) -> tuple[Verdict, ...]:  # fmt: skip
    """Decide every candidate claim of a study (ValueBlindBench section 3.8).

    Without ``variants`` verdicts lack their levels under other rules, which take most of the time.
    """
    index, rules = rule.index(measurements), Rules.of(study, preregistered)
    claims = candidate_claims(study.claims, index, rules)
    prepare_human_tests(study, index, rules)
    return tuple(decide(claim, index, rules, plan_hash, amended, variants) for claim in claims)


def decide(
    claim: Claim, index: Index, rules: Rules, plan_hash: str, amended: Sequence[str] = (), variants: bool = True
) -> Verdict:
    """Decide one claim, also under the other rules."""
    kind = claim_type(claim)
    fields, touched = with_human_test(kind.fields(claim, index, rules), index, rules), kind.amended(amended)
    agreement, *others = fields.every
    reasons = [*agreement.reasons, fields.evidence.reason_at(fields.level)]
    for finding in others:
        # A bias finding is a reason even if another field already stops the claim.
        reasons += finding.reasons or (() if finding.cap is None else [note.text for note in finding.conditions])
    reasons += [] if fields.preregistered else [NOT_PREREGISTERED]
    reasons += [f"Amended after the lock: {listing(touched)}."] if touched else []
    fragility = {
        name: with_human_test(kind.fields(claim, index, other, for_level=True), index, other).level
        for name, other in (kind.variants(claim, index, rules) if variants else {}).items()
    }
    statement, conditions = kind.says(claim, fields, index), () if fields.level == "no-claim" else fields.conditions()
    return fields.verdict(plan_hash, statement, reasons, conditions, fragility, touched)


def prepare_human_tests(study: Study, index: Index, rules: Rules) -> None:
    """Store in an index, once, which claims of a study are tested on people's grades; nothing without grades."""
    if index.named("human.contrast") and HUMAN_P not in index.memo:
        claims = candidate_claims(study.claims, index, rules, cells=False)
        store_human_p((claim_type(claim).fields(claim, index, rules) for claim in claims if claim.asserts_order), index)


def _untested(pair: PairResult, item: Measurement, index: Index) -> tuple[StabilityStatus, str]:
    """Return the status and the reason if a pair cannot be decided; an empty reason if it can."""
    if not index.families:
        return "judge-dependent", ONE_FAMILY
    if not pair.row.testable:
        return "not tested", f"{' and '.join(sorted((pair.row.high, pair.row.low)))}: {item.state}."
    return "tie-class", ""


def _families_apart(pair: PairResult, dimension: str, index: Index, rules: Rules) -> list[str]:
    """Return the judge families without which two agents are not within the margin of each other."""
    drops = {family: index.drop(dimension, family, pair.row.high, pair.row.low) for family in index.families}
    return [
        family
        for family, item in drops.items()
        if item is None or item.value is None or abs(item.value) >= rules.margin
    ]


def _drop_status(dimension: str, pair: PairResult, index: Index) -> tuple[StabilityStatus, str]:
    """Return the status and text (after "is significant") for leaving out each judge family of a published order."""
    stability, families = pair.stability, listing(list(pair.stability.families))
    if stability.state == "stable":
        return "stable", "and holds without any one judge family"
    if stability.state == "rests-on":
        return "judge-dependent", f"but the ranking needs judge family {families} to be seen"
    probe = index.directed("probe.contrast", dimension, pair.row.high, pair.row.low)
    zero = contains_zero(probe)
    if probe is None or zero is None:
        return "judge-dependent", f"but it reverses without judge family {families}, and no held-out judge was asked"
    # The result of the held-out judge, without the unsupported direction.
    judge, p = (probe[0].detail.get(name) for name in ("judge", "p"))
    subject = f"The held-out judge {judge}" if judge else "The held-out judge"
    tested = f" ({p_words(float(p))})" if isinstance(p, (int, float)) else ""
    finding = "its interval contains 0" if zero else f"it finds a difference{tested}"
    text = f"but it reverses without judge family {families}. {subject} was asked; {finding}"
    return "tie-class" if zero else "judge-dependent", text


def contains_zero(probe: rule.Signed | None) -> bool | None:
    """True if the interval of a probe contains 0; None if there is no interval."""
    if probe is None or probe[2] is None or probe[3] is None:
        return None
    return probe[2] <= TOLERANCE and probe[3] >= -TOLERANCE


def p_text(p: float) -> Phrase:
    """Return the message for a p-value."""
    if p < 0.001 or p >= 0.9995:
        return phrase("claim.reason.p_small" if p < 0.001 else "claim.reason.p_one")
    return phrase("claim.reason.p", p=p)


def ends_text(item: Measurement, key: str) -> Phrase | str:
    """Return the message for an interval, by its key; empty if there is none."""
    if item.low is None or item.high is None:
        return ""
    low, high = item.low, item.high
    if key == "ends":
        digits = end_digits(low, high)
        return phrase(f"claim.reason.{key}", low=decimals(low, digits), high=decimals(high, digits))
    return phrase(f"claim.reason.{key}", low=low, high=high)


def decimals(value: float, digits: int) -> Phrase:
    """Return the message for a number with so many decimals, two to nine."""
    return phrase(f"claim.kappa.{count_words(digits)}", value=value)


def count_text(n: int) -> Phrase | int:
    """Return the message for a count as a word; large counts stay numbers."""
    return phrase(f"claim.count.{n}") if n <= _LARGEST_WORD else n


def _untested_message(pair: PairResult, item: Measurement, index: Index) -> Phrase:
    """Return the message on why a pair cannot be tested: one judge family, or too few periods."""
    if not index.families:
        return phrase("claim.reason.one_family")
    (first, second), periods = sorted((pair.row.high, pair.row.low)), int(item.detail.get("clusters", 0))
    serial = index.get("order.autocorrelation", AGGREGATE)
    apart = serial is not None and serial.detail.get("order") != "consecutive"
    fewest = FEWEST_CLUSTERS if apart else FEWEST_CONSECUTIVE
    return phrase("claim.reason.untested", periods, one=first, two=second, needed=fewest)


def _drop_message(pair: PairResult) -> Phrase:
    """Return the message on how leaving out judge families changes an order."""
    families = pair.stability.families
    return phrase(f"claim.reason.{pair.stability.state.replace('-', '_')}", len(families), families=families)
