"""Findings on a claim from adversarial controls, bias tests and people's grades, and the fields of its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final, Self, get_args

from assaymark.claims.levels import (
    Finding,
    Index,
    Rules,
    cell_states,
    cell_words,
    panel_finding,
    publication_level,
    threshold,
)
from assaymark.claims.messages import interval_words, listing, measure_words, number, p_words, signed
from assaymark.claims.orders import ClaimEvidence, contrasts_of, length_floor, orders_of
from assaymark.metrology import anchor_status, holm
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.plan import FEW_CONSECUTIVE, NOT_PREREGISTERED, TOLERANCE
from assaymark.records import (
    AGGREGATE,
    RANK,
    AdversarialStatus,
    AnchorState,
    Cap,
    Claim,
    Condition,
    LengthState,
    Level,
    Measurement,
    OtherJudgesState,
    Verdict,
    weakest,
)
from assaymark.text import NBSP, percent

FEW_CLUSTERS = 5
SMALL_GAP: Final = Condition("small-gap", "The difference is smaller than the margin that counts as none.")
UNTESTED: Final = "Significance was not tested: the tables came without contrasts."
NO_CONTROLS: Final = "No control texts were graded, so nothing shows that the panel rewards substance over style."

_OVERLAP = 0.2
_SHOWN = 0.005  # points; less reads as 0.00


def _condition(name: str, text: str) -> tuple[Condition, ...]:
    return (Condition(name, text),)


def own_family(claim: Claim, evidence: ClaimEvidence, index: Index, rules: Rules) -> Finding:
    """Test whether the ranking depends on judges of the same family as one of the agents (self-preference)."""
    if unknown := index.panel.get("unknown"):
        condition = _condition("families-unknown", f"Families of {unknown} are not given.")
        return Finding("own_family", "unknown", "qualified", condition)
    items = contrasts_of("recusal", claim.dimension, evidence.pairs, index)
    ids = tuple(item.id for item in items)
    if any(item.value is None for item in items):
        text = "Every judge shares its family with one of the two; no one without an interest has judged this pair."
        if len(evidence.pairs) > 1:
            text = ("Of some pairs every judge shares its family with one of the two; "
                    "no one without an interest has judged them.")  # fmt: skip
        return Finding("own_family", "no-disinterested-judge", "qualified", _condition("own-family", text), ids)
    if "plain" not in evidence.published or "gated" in evidence.published or not claim.asserts_order:
        return Finding("own_family", "clear", None, (), ids)
    worst = max((pair.gated for pair in evidence.pairs), default=1.0)
    level = orders_of(index, rules).level(claim.dimension)
    state, reason = "turns-without-own-family", "The ranking reverses without the judges from the agents' own makers."
    if not any(item.value is not None and item.value < 0 and item.high is not None and item.high < 0 for item in items):
        # Without a same-family judge for these pairs, the step-down correction depends on other pairs that have one.
        reason = "The ranking rests on judges from the agents' own makers: without them" if items else (
            "Where judges stand aside for agents of their own makers, rankings that this one depends on do not hold:"
        )  # fmt: skip
        state, reason = "rests-on-own-family", f"{reason} {p_words(worst)} ({threshold(level)})."
    return Finding("own_family", state, "no-claim", (), ids, (reason,), {"p": worst, "needed": level})


def length_bias(claim: Claim, evidence: ClaimEvidence, index: Index, rules: Rules) -> Finding:
    """Test whether the length of the texts may explain a difference; caps a ranking at qualified, never lower."""
    items = contrasts_of("length", claim.dimension, evidence.pairs, index)
    if not items and index.panel.get("in_parts"):
        text = "Whether length explains the difference was not tested: the table was read in parts."
        return Finding("length", "not-tested", "qualified", _condition("length", text))
    if not items:
        return Finding("length", "not-tested")
    ids, beside = tuple(item.id for item in items), tuple[Condition, ...]()
    if min(float(item.detail.get("overlap", 1.0)) for item in items) < _OVERLAP:
        beside = _condition("overlap", "Their lengths hardly overlap; the adjustment is extrapolated.")
    clear = Finding("length", "clear", None, beside, ids)
    if not claim.asserts_order:
        # Equivalence must also hold at equal length, or length may hide a difference.
        (item,) = items
        p_values = item.detail.get("p_equivalence_at", {})
        p = float(p_values.get(f"{rules.margin:g}", item.detail.get("p_equivalence", 1.0)))
        if length_floor(item) == 0.0 or p <= rules.alpha + LEVEL_SLACK:
            return clear
        both = " and ".join(sorted(claim.subjects))
        text = f"At equal length {both} are not shown to score within {rules.margin:g} of each other."
        return Finding("length", "may-be-length", "qualified", (*_condition("length", text), *beside), ids)
    reruns = [_at_one_length(index, claim.dimension, pair.row.high, pair.row.low, rules) for pair in evidence.pairs]
    confirmed = "gated" in evidence.published and all(holds for _, holds in reruns)
    if "headline" in evidence.published or confirmed:
        return replace(clear, measurements=(*ids, *chain(*(one for one, _ in reruns)))) if confirmed else clear
    words = [(str(item.detail.get("word", "may be length")).replace(" ", "-"), item) for item in items]
    # A family of tests may fail where each of its contrasts would pass alone.
    raised = [("may-be-length" if word == "clear" else word, item) for word, item in words
              if length_floor(item) > 0 and item.value is not None]  # fmt: skip
    order = get_args(LengthState)
    if "gated" not in evidence.published:
        state = max((word for word, _ in words), key=order.index)
        if state == "clear" or "plain" not in evidence.published:
            return Finding("length", state, None if state == "clear" else "qualified", (), ids)
    elif not raised and (rules.any_judges or not all(pair.row.disinterested for pair in evidence.pairs)):
        return clear  # another field reports the failure
    elif not raised:
        # The two write equally much, but the ranking relies on other pairs whose p-values rise at equal length.
        p_all = p_words(max(pair.headline for pair in evidence.pairs))
        needed = threshold(orders_of(index, rules).level(claim.dimension))
        text = f"with all agents at equal length the ranking is not resolved ({p_all} adjusted; {needed})."
        conditions = _condition("length", f"It may be length: {text}")
        return Finding("length", "may-be-length", "qualified", (*conditions, *beside), ids)
    word, item = max(raised or words, key=lambda pair: (order.index(pair[0]), pair[1].detail.get("p", 0.0)))
    conditions = (*_condition("length", _length_words(word, item)), *beside)
    return Finding("length", word, "qualified", conditions, ids, (), {"item": item})


def _length_words(word: str, item: Measurement) -> str:
    high, low, detail = item.labels["high"], item.labels["low"], item.detail
    gap, slope, raw = (float(detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    covariates = detail.get("covariates", ["log2"])
    style = "length" if covariates == ["log2"] else "style"
    lead = f"It is {style}" if word == "length" else f"It may be {style}"
    if slope == 0.0 and style == "length":
        return f"{lead}: each agent always writes the same length."
    longer, other, times = (high, low, 2**gap) if gap > 0 else (low, high, 2**-gap)
    writes = f"{longer} writes {times:.1f} times as much as {other}"
    writes = writes if "log2" in covariates else "texts differ in style"
    explained, cause = slope * gap, f"{number(slope)} points a doubling"
    if "slopes" in detail:
        explained = sum(a * b for a, b in zip(detail["slopes"], detail["gaps"], strict=True))
        cause = f"differences in {style}"
    if explained < _SHOWN:
        p = p_words(float(detail["p"]))
        return f"{lead}: {writes}, and at equal {style} the difference is not resolved ({p})."
    return f"{lead}: {writes}, and {cause} would explain {number(explained)} of {number(raw)}."


def distinctness(claim: Claim, evidence: ClaimEvidence, index: Index, rules: Rules) -> Finding:
    """Test whether judges distinguish a dimension from their overall impression, and whether it has more than that."""
    if claim.dimension == AGGREGATE or len(index.dimensions) < 2:
        return Finding("distinct", "not-applicable")
    item = index.get("dimension.distinct", claim.dimension)
    ids = () if item is None else (item.id,)
    if item is None or item.state.startswith("not measurable"):
        if not index.panel.get("in_parts"):
            return Finding("distinct", "not-tested", None, (), ids)
        text = "Whether judges tell the dimensions apart was not tested: the table was read in parts."
        return Finding("distinct", "not-tested", "qualified", _condition("not-told-apart", text), ids)
    score, p = measure_words(claim.dimension), item.detail.get("p_holm")
    if p is None or float(p) > rules.alpha + LEVEL_SLACK:
        text = f"Judges share nothing on {score}."
        if item.value is not None:
            ends = "" if item.low is None or item.high is None else f" [{number(item.low)}, {number(item.high)}]"
            text = f"Judges do not tell {score} from the overall impression (phi {number(item.value)}{ends})."
        return Finding("distinct", "not-told-apart", "qualified", _condition("not-told-apart", text), ids)
    gaps = [index.contrast(claim.dimension, pair.row.high, pair.row.low) for pair in evidence.pairs]
    sided = [pair for pair in gaps if pair.value is not None and "others" in pair.detail]
    if any((pair.value or 0.0) < float(pair.detail["others"]) - TOLERANCE for pair in sided):
        text = "The difference is smaller than on the other dimensions: it may be spill-over."
        conditions = _condition("smaller", text) if evidence.published else ()
        return Finding("distinct", "smaller", "qualified", conditions, ids)
    specific = sided and all(float(pair.detail["p_specific"]) <= rules.alpha for pair in sided)
    more = _condition("specific", f"In particular on {score}.") if specific else ()
    return Finding("distinct", "passed", None, more, ids)


def other_judges_finding(claim: Claim, evidence: ClaimEvidence, index: Index, rules: Rules) -> Finding:
    """Test whether the ranking generalises to other judges from the same population."""
    items = contrasts_of("judges", claim.dimension, evidence.pairs, index)
    ids = tuple(item.id for item in items)
    tested = [item for item in items if item.value is not None]
    state: OtherJudgesState = "not-tested"
    if items and len(tested) == len(evidence.pairs):
        yes = all((item.value or 0.0) > 0 and float(item.detail["p"]) <= rules.alpha + LEVEL_SLACK for item in tested)
        state = "yes" if yes else "no"
    if not rules.any_judges or "headline" in evidence.published or "gated" not in evidence.published:
        return Finding("other_judges", state, None, (), ids)
    condition = _condition("other-judges", "It is not shown to hold for other judges.")
    return Finding("other_judges", state, "qualified", condition, ids)


def missing_finding(index: Index, rules: Rules) -> Finding:
    """Report missing replies; if a judge was left out for them, rankings are capped at qualified."""
    items = [item for item in index.named("missing.share") if "judge" in item.labels and item.value]
    if not items:
        return Finding("missing_replies", "none")
    text, ids = " ".join(describe_missing(items, rules.alpha)), tuple(item.id for item in items)
    condition = _condition("missing-replies", text)
    if any(item.detail.get("left_out") for item in items):
        return Finding("missing_replies", "left-out", "qualified", condition, ids)
    return Finding("missing_replies", "tolerated", None, condition, ids, (text,))


def describe_missing(items: Sequence[Measurement], alpha: float) -> list[str]:
    """Describe missing replies: judges left out, counts of the others, and agents with significantly more of them."""
    lines, several = [], sum(not item.detail.get("left_out") for item in items) > 2
    lacks = list[str]()
    for item in items:
        judge, lacking = item.labels["judge"], item.detail.get("lacking", {})
        if item.detail.get("left_out"):
            lines.append(f"Judge {judge} was left out: {item.detail['left_out']}.")
            continue
        n, of = sum(int(no) for no, _ in lacking.values()), item.detail.get("records")
        share = percent(item.value or 0.0, 1).replace(NBSP, " ")
        lacks.append(f"{judge} {n} of {of}")
        if not several:
            lines.append(f"Judge {judge} gave no usable score on {n} of {of} decisions ({share}).")
        more = item.detail.get("p_more", {})
        for agent, (no, asked) in lacking.items():
            if (p := float(more.get(agent, 1.0))) <= alpha:
                rest = f"({n - no} of {of - asked}; {p_words(p)}): what is missing may not be any text."
                subject = f"Judge {judge}" if several else "It"
                lines.append(f"{subject} left out {agent} ({no} of {asked}) more often than the others {rest}")
    return [f"Judges gave no usable score on some decisions: {listing(lacks)}.", *lines] if several else lines


def flagged_finding(evidence: ClaimEvidence, index: Index) -> Finding:
    """Report texts of the compared agents that address the judge: a condition of the claim without a cap."""
    named = index.named("agent.flagged_texts")
    items = [item for item in named if item.value and item.labels["agent"] in evidence.compared]
    if not items:
        return Finding("flagged_texts", "none")
    counts = listing([f"{item.detail['count']} of {item.n} of {item.labels['agent']}" for item in items])
    text = f"Texts address the judge or imitate its prompt ({counts}); they were scored like any other."
    ids = tuple(item.id for item in items)
    return Finding("flagged_texts", "flagged", None, _condition("flagged-texts", text), ids)


def cluster_findings(claim: Claim, evidence: ClaimEvidence, index: Index) -> list[Finding]:
    """Report few clusters, and clusters that are consecutive or autocorrelated in time."""
    findings: list[Finding] = []
    details = [(pair, index.contrast(claim.dimension, pair.row.high, pair.row.low).detail) for pair in evidence.pairs]
    counts = [int(detail.get("clusters", FEW_CLUSTERS + 1)) for pair, detail in details if pair.row.testable]
    if not counts:
        return findings
    item = index.get("order.autocorrelation", claim.dimension)
    serial = item is not None and item.detail.get("order") == "consecutive"
    few = min(counts)
    if few <= FEW_CLUSTERS:
        note = _condition("few-clusters", f"Few clusters ({few}): this rests on normal errors.")
        findings.append(Finding("clusters", "few", None, note, values={"n": few}))
    if serial and few < FEW_CONSECUTIVE:
        worth = min(float(detail.get("effective") or detail.get("clusters", 0.0)) for _, detail in details)
        note = _condition("consecutive", f"{few} clusters that follow each other count as about {worth:.0f}.")
        findings.append(Finding("clusters", "consecutive", "qualified", note, values={"n": few, "worth": worth}))
    elif not serial and item is not None and item.detail.get("flagged") and claim.asserts_order:
        value = item.value or 0.0
        text = "Clusters are counted as independent, but neighbours resemble each other"
        note = _condition("autocorrelated", f"{text} (autocorrelation {number(value)}).")
        findings.append(Finding("clusters", "autocorrelated", "qualified", note, (item.id,), values={"value": value}))
    return findings


_CONTAMINATING: Final = ("cell_a", "red_team")
_REQUIRED: Final = {"cell_a": "confident but wrong", "cell_b": "terse but correct"}
_WORST_FIRST: Final[tuple[AdversarialStatus, ...]] = ("contaminated", "construct-sensitive", "not tested", "passed")
_Bearing = tuple[AdversarialStatus, str, tuple[Condition, ...], tuple[str, ...]]
"""One influence on the adversarial status: the status, its reason, its conditions, and measurement ids."""


def controls_finding(claim: Claim, index: Index, rules: Rules) -> Finding:
    """Test a claim about agents against the control texts (ValueBlindBench sections 3.5, 3.8 and 5.3)."""
    states = cell_states(index)
    bearings: list[_Bearing] = []
    for state in states.values():
        # Wrong rationales (cell A, red-team cells) should score low.
        called, outcome, numbers = cell_words(state.cell), state.outcome, state.numbers
        wrong = state.cell in _CONTAMINATING
        texts, points = called[:1].upper() + called[1:], f"{number(abs(state.value or 0.0))} points"
        status: AdversarialStatus = "passed"
        condition = ""
        moved = {
            "verbosity-bias": (f"{texts} lose {points} under this rubric", f", {outcome}"),
            "terse-favoured": (f"{texts} gain {points} under this rubric", f", {outcome}"),
            "style-sensitive": (f"{texts} score {points} away from their originals", ""),
            "not noticed": (f"{texts} do not score below their originals", ""),
        }.get(outcome)
        if wrong and outcome == "passed":
            reason = f"{texts} score below the honest bottom quartile: {numbers}."
        elif wrong and outcome == "failed":
            text, narrowed = f"{texts} do not score below the honest bottom quartile", rules.cells.contaminates
            if narrowed is None or claim.dimension in narrowed:
                status, reason = "contaminated", f"{text}, so the score is contaminated: {numbers}."
            else:
                only = listing([measure_words(name) for name in narrowed]) or "no score"
                reason, condition = f"{text}: {numbers}; the plan lets this touch {only} only.", f"{text}."
        elif wrong or outcome in ("inconclusive", "not tested"):
            text = f"Whether the panel scores {called} as it should is unresolved"
            text = f"Whether {called} score low enough is unresolved" if wrong else text
            reason = f"{text}: {numbers}."
            if state.cell in _REQUIRED:
                status, condition = "not tested", f"{text}."
        elif moved is not None:
            status, reason, condition = "construct-sensitive", f"{moved[0]}: {numbers}{moved[1]}.", f"{moved[0]}."
        else:
            reason = f"{texts}: {numbers}, {outcome}."
        if state.halo is not None and state.halo.detail.get("triggered"):
            reason += f" The number is without the judges of family {state.halo.detail.get('family')}, who favour it."
        conditions = _condition("controls", condition) if condition else ()
        bearings.append((status, reason, conditions, state.measurements))
    unrun = [f"No {texts} rationales were graded." for cell, texts in _REQUIRED.items() if cell not in states]
    for text in unrun if states else [NO_CONTROLS]:
        bearings.append(("not tested", text, _condition("controls", text), ()))
    bearings += _terse_bearings(claim, index, rules)
    bearings.sort(key=lambda bearing: _WORST_FIRST.index(bearing[0]))
    statuses, reasons, conditions_of, ids_of = zip(*bearings, strict=True)
    ids = tuple(dict.fromkeys(chain(*ids_of)))
    return panel_finding("adversarial", statuses[0], ids, reasons, tuple(chain(*conditions_of)))


def _terse_bearings(claim: Claim, index: Index, rules: Rules) -> list[_Bearing]:
    """Return one finding per mostly terse agent in the claim: passed only if length-matched reruns confirm it."""
    dimension, (agent, *others) = claim.dimension, claim.subjects
    if not others:  # a first rank is above every agent
        others = [name for name in index.agents if name != agent and (
            not index.tested(dimension) or index.contrast(dimension, agent, name).value is not None)]  # fmt: skip
    reruns = {other: _at_one_length(index, dimension, agent, other, rules) for other in others if claim.asserts_order}
    bearings: list[_Bearing] = []
    for terse in sorted({agent, *reruns}) if reruns else ():
        share = index.get("terse.share", agent=terse)
        if share is None or share.value is None or share.value <= rules.cells.terse_share + TOLERANCE:
            continue
        compared = reruns if terse == agent else {agent: reruns[terse]}
        ids = share.id, *chain(*(one for one, _ in compared.values()))
        lost = sorted(name for name, (_, holds) in compared.items() if not holds)
        fewer = f"have fewer than {rules.cells.terse_tokens} words"
        text = f"{100 * share.value:.1f} % of the rationales of {terse} {fewer}"
        if not lost:
            unchanged = "the comparison keeps its sign and significance at equal length"
            bearings.append(("passed", f"{text}, and {unchanged}.", (), ids))
            continue
        cause = "no rerun at equal length bears the comparison"
        cause = cause if len(ids) == 1 else "the rerun at equal length does not bear the comparison"
        reason = f"{text}, and {cause} with {listing(lost)}."
        bearings.append(("construct-sensitive", reason, _condition("terse", f"{text}."), ids))
    return bearings


def _at_one_length(index: Index, dimension: str, high: str, low: str, rules: Rules) -> tuple[list[str], bool]:
    """Return the id of a pair's rerun on texts of one length, if any, and whether sign and significance remain."""
    rerun = index.directed("length_matched.contrast", dimension, high, low)
    if rerun is None:
        return [], False
    p = rerun[0].detail.get("p_holm")
    return [rerun[0].id], p is not None and (rerun[1] or 0.0) > 0 and float(p) <= rules.alpha


HUMAN_P: Final = "put to people"
"""Key of ``Index.memo`` with the one-sided p-values, by claim id, of the claims that are tested on people's grades."""
_ANCHORS: Final[tuple[AnchorState, ...]] = ("contradicts", "not-tested", "undecided", "confirms")


@dataclass(frozen=True)
class Fields:
    """The inputs of one claim's verdict; derived properties are cached.

    ``agreement``, ``adversarial`` and ``instruments`` are findings on the panel, ``findings`` those of the bias tests.
    """

    claim: Claim
    agreement: Finding
    evidence: ClaimEvidence
    adversarial: Finding
    instruments: Finding
    findings: tuple[Finding, ...] = ()
    preregistered: bool = True

    @classmethod
    def unjudged(cls, claim: Claim, evidence: ClaimEvidence, findings: Iterable[Finding], preregistered: bool) -> Self:
        """Return the fields of a claim that depends on no judge score."""
        agreement, adversarial = (panel_finding(field, "not judged") for field in ("agreement", "adversarial"))
        instruments = Finding("datasheets", "not-required")
        return cls(claim, agreement, evidence, adversarial, instruments, tuple(findings), preregistered)

    @property
    def every(self) -> tuple[Finding, ...]:
        """All findings, those on the panel first."""
        return self.agreement, self.adversarial, self.instruments, *self.findings

    def state(self, name: str) -> str:
        """Return the state of a bias test, or "not-applicable"."""
        return next((finding.state for finding in self.findings if finding.field == name), "not-applicable")

    @cached_property
    def lifts(self) -> bool:
        """True if people confirm the ranking and agree with each other, which removes caps for judge biases."""
        return any(finding.field == "human_anchor" and bool(finding.values.get("lifts")) for finding in self.findings)

    @cached_property
    def caps(self) -> tuple[Cap, ...]:
        """Every field that limits the level, lowest first, and whether people's grades remove the limit."""
        evidence = self.evidence.status
        levels = [(finding.field, finding.cap) for finding in self.every if finding.cap is not None]
        if evidence != "stable":
            stops = evidence == "judge-dependent" or self.claim.asserts_order or not self.evidence.published
            stops = stops and not (evidence == "tie-class" and self.claim.scope == "adversarial-cell")
            levels.append(("stability", "no-claim" if stops and evidence != "rule-dependent" else "qualified"))
        if not self.evidence.tested:
            levels.append(("stability", "qualified"))
        levels += [] if self.preregistered else [("preregistration", "qualified")]
        levels.sort(key=lambda cap: (RANK[cap[1]], cap[0]))
        free = {finding.field for finding in self.every if finding.lifted} if self.lifts else set()
        return tuple(Cap(name, level, name in free) for name, level in levels)

    @cached_property
    def level(self) -> Level:
        """The lowest level permitted by the three statuses and the caps."""
        caps, stated = self.caps, (self.agreement.state, self.evidence.status)
        # A confirmation by people raises the recusal contrast's "no claim" to qualified, and removes other caps.
        levels: list[Level] = ["headline", *(cap.level for cap in caps if not cap.lifted)]
        levels += ["qualified" for cap in caps if cap.lifted and cap.level == "no-claim"]
        if self.agreement.state != "not judged":
            free = any(cap.field == "adversarial" and cap.lifted for cap in caps)
            construct, tested = "passed" if free else self.adversarial.state, self.evidence.tested
            order = self.claim.asserts_order
            levels.append(publication_level(*stated, construct, asserts_order=order, significance_tested=tested))
        return weakest(levels)

    def verdict(
        self, plan_hash: str, statement: str, reasons: Iterable[str], conditions: Iterable[Condition],
        fragility: Mapping[str, Level], amended: tuple[str, ...] = (),
    ) -> Verdict:  # fmt: skip
        """Return the verdict with these texts; ``statement`` includes the scope of the claim."""
        level, caps, evidence, stated = self.level, self.caps, self.evidence, tuple(conditions)
        states = {name: self.state(name) for name in ("own_family", "length", "distinct", "other_judges")}
        anchor = self.state("human_anchor")
        agreement, *others = (finding.measurements for finding in self.every)
        limits = [(cap.field, "qualified" if cap.lifted else cap.level) for cap in caps
                  if not cap.lifted or cap.level == "no-claim"]  # fmt: skip
        binding = [] if level == "headline" else [name for name, most in limits if most == level]
        return Verdict(
            claim=self.claim if statement == self.claim.statement else replace(self.claim, statement=statement),
            agreement_status=self.agreement.state,  # type: ignore[arg-type]  # a word of its own list
            stability_status=evidence.status,
            adversarial_status=self.adversarial.state,  # type: ignore[arg-type]
            publication_level=level,
            reasons=tuple(reasons),
            binding=tuple(dict.fromkeys(binding)),
            measurements=tuple(dict.fromkeys(chain(agreement, evidence.measurements, *others))),
            plan_hash=plan_hash,
            condition=" ".join(condition.text for condition in stated) or None,
            fragility=fragility,
            amended=amended,
            conditions=stated,
            caps=caps,
            pair_state=evidence.state,
            preregistered=self.preregistered,
            human_anchor="not-tested" if anchor == "not-applicable" else anchor,  # type: ignore[arg-type]
            **{name: getattr(evidence, name) for name in ("p", "p_adjusted", "p_adjusted_headline", "stability")},
            **states,  # type: ignore[arg-type]  # each state is a word of its own list
        )

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions of a study's claim in a fixed order; for a headline only those that narrow it."""
        if self.level == "qualified":
            agreement, controls = self.agreement.conditions, self.adversarial.conditions
            if agreement and controls == _condition("controls", NO_CONTROLS):
                text = agreement[0].text.removesuffix(".")
                agreement, controls = _condition("agreement", f"{text}, and no control texts were graded."), ()
            yield from agreement
            if not self.evidence.tested:
                yield Condition("not-tested", UNTESTED)
            yield from controls
            yield from self.instruments.conditions
            if not self.preregistered:
                yield Condition("not-preregistered", NOT_PREREGISTERED)
        for cap in self.caps:
            if cap.lifted and cap.level == "no-claim":
                reasons = (one for finding in self.findings if finding.field == cap.field for one in finding.reasons)
                yield Condition("own-family", " ".join(reasons))
        for finding in self.findings:
            for condition in finding.conditions:
                # A limit that people's confirmation removes needs no condition.
                if not (self.lifts and finding.lifted) or condition.id in ("overlap", "specific"):
                    yield condition
        if self.evidence.state == "ordered-by-less-than-the-margin" and self.claim.asserts_order:
            yield SMALL_GAP


def store_human_p(each: Iterable[Fields], index: Index) -> None:
    """Store the p-values of all claims that are tested on people's grades, the family of the Holm correction."""
    tested = {fields.claim.id: _human_contrasts(fields, index)[1] for fields in each if has_human_test(fields)}
    index.memo[HUMAN_P] = {name: p for name, p in tested.items() if p is not None}


def has_human_test(fields: Fields) -> bool:
    """True if a ranking is tested on people's grades: supported by judges, or stopped by the recusal test alone."""
    if not fields.claim.asserts_order or not fields.evidence.tested:
        return False
    rest = tuple(finding for finding in fields.findings if finding.field != "own_family")
    return fields.level != "no-claim" or replace(fields, findings=rest).level != "no-claim"


def with_human_test(fields: Fields, index: Index, rules: Rules) -> Fields:
    """Add the finding from people's grades to the fields of a claim; unchanged without human grades."""
    if (finding := _human_finding(fields, index, rules)) is None:
        return fields
    at = next((k for k, finding in enumerate(fields.findings) if finding.field == "other_judges"), len(fields.findings))
    return replace(fields, findings=(*fields.findings[:at], finding, *fields.findings[at:]))


def _human_contrasts(fields: Fields, index: Index) -> tuple[list[Measurement], float | None]:
    """Return the human contrasts of a claim's pairs in its direction, and their largest one-sided p if all have one."""
    claim, items = fields.claim, list[Measurement]()
    for row in (pair.row for pair in fields.evidence.pairs):
        item = index.by_pair.get(("human.contrast", claim.dimension, row.high, row.low))
        if item is not None and row.high == claim.subjects[0]:
            items.append(item)
    whole = bool(items) and len(items) == len(fields.evidence.pairs) and all(item.value is not None for item in items)
    return items, max(float(item.detail["p"]) for item in items) if whole else None


def _human_finding(fields: Fields, index: Index, rules: Rules) -> Finding | None:
    sample = index.get("human.sample", fields.claim.dimension)
    if sample is None or not fields.claim.asserts_order or rules.source or not fields.evidence.tested:
        return None
    if not has_human_test(fields):
        return Finding("human_anchor", "not-tested", None, (), (sample.id,))
    there, p = _human_contrasts(fields, index)
    ids = (sample.id, *(item.id for item in there))
    if p is None:
        tested = [item for item in there if item.value is None]
        reason = sample.state if sample.value is None else tested[0].state if tested else "no pair has labels"
        sentence = f"People's grades do not test it: {reason.removeprefix('not tested: ')}."
        return Finding("human_anchor", "not-tested", None, (), ids, (sentence,), {"drawn": sample})
    family = {**index.memo.get(HUMAN_P, {}), fields.claim.id: p}
    p_holm = float(holm(list(family.values()))[list(family).index(fields.claim.id)])
    states: list[AnchorState] = []
    for item in there:
        # People's result on one pair, compared with the judges' own contrast on the same cycles
        judged, record = item.detail.get("judges"), {"estimate": item.value, "high": item.high}
        states.append("undecided")
        if judged is not None and float(judged) > 0:
            outcome = anchor_status(record, float(judged), min(1.0, p_holm), rules.alpha)
            states[-1] = "not-tested" if outcome == "not tested" else outcome
    state, graders = min(states, key=_ANCHORS.index), len(sample.detail["graders"])
    people = f"the {graders} human graders of this study" if graders > 1 else "the human grader of this study"
    n = min(item.n for item in there)
    cycles, known_by = f"{n} labelled cycles", {"n": graders, "labelled": n}
    if state == "contradicts":
        sentence = f"People's grades contradict it: {people} see less than half of the difference that the judges see."
        return Finding("human_anchor", state, "no-claim", (), ids, (sentence,), known_by)
    if state == "undecided":
        needed = [item.detail.get("needed") for item in there]
        most = max((int(count) for count in needed if count is not None), default=0)
        more = f"; about {most} labelled cycles would be needed" if most > n else f", though {most} often suffice"
        more = "; more clusters are needed" if None in needed else more
        condition = Condition("people", f"People's grades on {cycles} leave it undecided{more}.")
        more = "clusters" if None in needed else "about" if most > n else "suffices"
        values = {**known_by, "more": more, "needed": most}
        return Finding("human_anchor", state, None, (condition,), ids, (), values)
    agreed = index.get("human.agreement", fields.claim.dimension)
    status = None if agreed is None else rules.status(agreed.value)
    lifts, ids, difference = status == "publish", ids if agreed is None else (*ids, agreed.id), ""
    if len(there) == 1:
        difference = f": {signed(there[0].value or 0.0)} points{interval_words(there[0].low, there[0].high)}"
    # The counterpart for graders of generalising to other judges.
    anyone = all(float(item.detail.get("p_graders", 1.0)) <= rules.alpha + LEVEL_SLACK for item in there)
    text = f"This is how {'human graders' if anyone else people} would rank them{difference} ({cycles})."
    if not lifts:
        how = "agreement among the graders was not measured"
        if agreed is not None and agreed.value is not None:
            how = f"the graders agree at {number(agreed.value)}, {number(rules.publish)} needed"
        elif agreed is not None:
            how = f"{how} ({agreed.state.partition(': ')[2]})"
        text = f"{text[:-1]}, which lifts no other limit: {how}."
    kappa = None if agreed is None else agreed.value
    values = {**known_by, "lifts": lifts, "anyone": anyone, "seen": there, "agreed": kappa, "publish": rules.publish}
    return Finding("human_anchor", "confirms", None, (Condition("people", text),), ids, (), values)
