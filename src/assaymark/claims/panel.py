"""What agreement, control cells and the grades of people mean for a claim, and the fields that decide it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assaymark.claims.evidence import Index
from assaymark.claims.levels import (
    CellState,
    Instruments,
    Rules,
    agreement_status,
    cell_states,
    coefficient_words,
    kind_of,
    publication_level,
)
from assaymark.claims.messages import interval_words, listing, measure_words, number, share_words, signed
from assaymark.claims.standing import Evidence, Finding
from assaymark.errors import NotMeasurableError
from assaymark.metrology import anchor_status, holm
from assaymark.metrology.controls import TOLERANCE
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.protocol import AGREEMENT
from assaymark.records import (
    AdversarialStatus,
    AgreementStatus,
    AnchorState,
    Cap,
    Claim,
    Condition,
    Level,
    Measurement,
    Verdict,
)

NO_CONTROLS: Final = "No control texts were graded, so nothing shows that the panel rewards substance over style."

_CONTAMINATING: Final = ("cell_a", "red_team")
_REQUIRED: Final = {"cell_a": "confident but wrong", "cell_b": "terse but correct"}
_WORST_FIRST: Final[tuple[AdversarialStatus, ...]] = ("contaminated", "construct-sensitive", "not tested", "passed")

_Bearing = tuple[AdversarialStatus, str, str | None, tuple[str, ...]]
"""What bears on a claim: the status it leaves, why, the condition if a reader needs one, and its measurements."""


@dataclass(frozen=True, slots=True)
class Adversarial:
    """Whether the claim's construct is clean, why, and what has to be said with the claim if it is not."""

    status: AdversarialStatus
    reasons: tuple[str, ...]
    conditions: tuple[str, ...]
    measurements: tuple[str, ...]


def adversarial_of(claim: Claim, known: Index, rules: Rules) -> Adversarial:
    """The adversarial field of a claim about agents (ValueBlindBench sections 3.5, 3.8 and 5.3)."""
    states = cell_states(known)
    found: list[_Bearing] = []
    for state in states.values():
        status, reason, condition = _cell_words(state, claim.dimension, rules)
        if state.halo is not None and state.halo.detail.get("triggered"):
            reason += f" The number is without the judges of family {state.halo.detail.get('family')}, who favour it."
        found.append((status, reason, condition, state.measurements))
    unrun = [f"No {texts} rationales were graded." for cell, texts in _REQUIRED.items() if cell not in states]
    found += [("not tested", told, told, ()) for told in (unrun if states else [NO_CONTROLS])]
    found += _terse(claim, known, rules)
    found.sort(key=lambda one: _WORST_FIRST.index(one[0]))
    return Adversarial(
        found[0][0],
        tuple(reason for _, reason, _, _ in found),
        tuple(condition for _, _, condition, _ in found if condition is not None),
        tuple(dict.fromkeys(name for _, _, _, ids in found for name in ids)),
    )


def _cell_words(state: CellState, dimension: str, rules: Rules) -> tuple[AdversarialStatus, str, str | None]:
    """The status, reason and condition of one cell; wrong rationales (cell A, red-team cells) have to score low."""
    texts = state.texts[:1].upper() + state.texts[1:]
    outcome, numbers = state.outcome, state.numbers
    wrong = state.cell in _CONTAMINATING
    if wrong and outcome == "passed":
        return "passed", f"{texts} score below the honest bottom quartile: {numbers}.", None
    if wrong and outcome == "failed":
        told, narrowed = f"{texts} do not score below the honest bottom quartile", rules.cells.contaminates
        if narrowed is None or dimension in narrowed:
            return "contaminated", f"{told}, so the score is contaminated: {numbers}.", None
        only = listing([measure_words(name) for name in narrowed]) or "no score"
        return "passed", f"{told}: {numbers}; the plan lets this touch {only} only.", f"{told}."
    if wrong or outcome in ("inconclusive", "not tested"):
        told = f"Whether {state.texts} score low enough stays open"
        told = told if wrong else f"What the panel makes of {state.texts} stays open"
        status: AdversarialStatus = "not tested" if state.cell in _REQUIRED else "passed"
        return status, f"{told}: {numbers}.", f"{told}." if status == "not tested" else None
    points = f"{number(abs(state.value or 0.0))} points"
    moved = {
        "verbosity-bias": (f"{texts} lose {points} under this rubric", f", {outcome}"),
        "terse-favoured": (f"{texts} gain {points} under this rubric", f", {outcome}"),
        "style-sensitive": (f"{texts} score {points} away from their originals", ""),
        "not noticed": (f"{texts} do not score below their originals", ""),
    }.get(outcome)
    if moved is not None:
        return "construct-sensitive", f"{moved[0]}: {numbers}{moved[1]}.", f"{moved[0]}."
    return "passed", f"{texts}: {numbers}, {outcome}.", None


def _terse(claim: Claim, known: Index, rules: Rules) -> list[_Bearing]:
    """One finding for each mostly terse agent that the claim compares without a length-matched rerun to bear it."""
    dimension, kind = claim.dimension, kind_of(claim)
    pairs: list[tuple[str, ...]] = [claim.subjects] if kind == "pair" else []
    if kind == "first":
        agent = claim.subjects[0]
        pairs = [
            (agent, other)
            for other in known.agents
            if other != agent
            and (not known.tested(dimension) or known.contrast(dimension, agent, other).difference is not None)
        ]
    found: list[_Bearing] = []
    for agent in sorted({name for pair in pairs for name in pair}):
        share = known.get("terse.share", agent=agent)
        if share is None or share.value is None or share.value <= rules.cells.terse_share + TOLERANCE:
            continue
        ids, lost = [share.id], set()
        for high, low in (pair for pair in pairs if agent in pair):
            rerun = known.directed("length_matched.contrast", dimension, high, low)
            p = None if rerun is None else rerun.measurement.detail.get("p_holm")
            ids += [] if rerun is None else [rerun.measurement.id]
            if p is None or rerun is None or (rerun.value or 0.0) <= 0 or float(p) > rules.alpha:
                lost.add(low if high == agent else high)
        told = (
            f"{share_words(share.value)} of the rationales of {agent} have fewer than {rules.cells.terse_tokens} words"
        )
        if not lost:
            kept = "the comparison keeps its sign and significance at equal length"
            found.append(("passed", f"{told}, and {kept}.", None, tuple(ids)))
            continue
        why = "no rerun at equal length bears the comparison"
        why = why if len(ids) == 1 else "the rerun at equal length does not bear the comparison"
        reason = f"{told}, and {why} with {listing(sorted(lost))}."
        found.append(("construct-sensitive", reason, f"{told}.", tuple(ids)))
    return found


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement that governs a dimension: the lowest of the pooled and the gated within-format kappas."""

    status: AgreementStatus
    kappa: float | None
    reason: str
    measurements: tuple[str, ...]
    governing: str | None = None
    word: str = AGREEMENT["kappa"]


def governing_agreement(dimension: str, known: Index, rules: Rules) -> Agreement:
    """The agreement that gates a dimension. Where formats are gated on their own, the lowest kappa governs."""

    def held(item: Measurement) -> float:
        # The number that is held against the cut-offs; an undefined kappa is below all of them.
        other = known.get("kappa.other_ddof", **item.labels) if rules.kappa == "other-ddof" else None
        if item.value is None or (other is not None and other.value is None and other.state.startswith("undefined")):
            return float("-inf")
        if rules.kappa == "lower":
            return float("-inf") if item.low is None else item.low
        if rules.kappa == "half-even" and item.detail.get("half_even") is not None:
            return float(item.detail["half_even"])
        return item.value if other is None or other.value is None else other.value

    def governing() -> Agreement:
        gated, about = known.agreements.get(dimension, ()), measure_words(dimension)
        if not gated:
            return Agreement("halt", None, f"Agreement on {about} was not measured.", ())
        values = {item.id: held(item) for item in gated}
        item = min(gated, key=lambda item: (values[item.id], item.id))
        value = None if values[item.id] == float("-inf") else values[item.id]
        status = agreement_status(value, publish=rules.publish, halt=rules.halt)
        within = f"{about} within format {item.labels['format']}" if "format" in item.labels else about
        if value is None or item.value is None:
            reason = f"Agreement on {within} is not defined ({item.state}); undefined agreement halts."
        else:
            interval = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
            rule = {
                "publish": f"at or above the cut-off {number(rules.publish)}",
                "methodology": f"below {number(rules.publish)}: a finding about the judges, not a headline",
                "halt": f"below {number(rules.halt)}: no ranking",
            }[status]
            # Three decimals where two would lift it over a cut-off that it misses.
            lifted = any(item.value < cut <= round(item.value, 2) for cut in (rules.halt, rules.publish))
            kappa = f"{item.value:.3f}".replace("-", "−") if lifted else number(item.value)
            reason = f"The judges agree on {within} at {coefficient_words(item)} {kappa}{interval}, {rule}."
        return Agreement(status, value, reason, tuple(one.id for one in gated), item.id, coefficient_words(item))

    return known.once(("agreement", dimension, rules), governing)


# The claim about a control cell: agreement inside the cell, its outcome under drops, and the halo.


def cell_state(claim: Claim, known: Index) -> CellState:
    """The state of the cell that a claim is about."""
    state = cell_states(known).get(claim.subjects[0])
    if state is None:
        raise NotMeasurableError(f"no gate of the control cell {claim.subjects[0]} was measured")
    return state


def cell_fields(claim: Claim, known: Index, rules: Rules) -> tuple[Agreement, Evidence, Adversarial]:
    """How far judges agree on the cell's difference, whether every drop shows it, and whether a halo moves it."""
    state = cell_state(claim, known)
    item = known.get("cell.agreement", cell=state.cell)
    ids = () if item is None else (item.id,)
    rests = (*state.measurements, *(drop.id for drop in state.drops.values()), *ids)
    found, tested = f"The number behind it is {state.numbers}: {state.outcome}", state.gate.detail.get("p") is not None
    if item is None or item.value is None:
        why = "" if item is None else f" ({item.state})"
        agreement = Agreement("halt", None, f"Agreement on {state.texts} was not measured{why}.", ids)
        reason = f"{found}; whether it holds without any one judge family was not measured."
        return agreement, Evidence("judge-dependent", reason, rests, tested=tested), _halo(state)
    held = agreement_status(item.value, publish=rules.publish, halt=rules.halt)
    status: AgreementStatus = "halt"
    word = coefficient_words(item)
    seen = f"not every panel without one judge family sees the difference, or {word} is below the cut-off"
    if item.detail["unanimous"] and held == "publish":
        status, seen = "publish", "every judge family sees the difference"
    elif item.detail["leave_one_out"] and held != "halt":
        seen = "every panel without one family sees the difference, but not every family alone"
        status = "methodology"
    reason = f"On {state.texts} {seen}; {word} over these and the honest records {number(item.value)}."
    agreement = Agreement(status, item.value, reason, ids, item.id, word)
    evidence = Evidence("stable", f"{found}, and it holds without any one judge family.", rests,
                        published=frozenset({"gated"}), tested=tested)  # fmt: skip
    if not item.detail["leave_one_out"]:
        reason = f"{found}, but not every panel without one judge family shows it."
        evidence = Evidence("judge-dependent", reason, rests, tested=tested)
    return agreement, evidence, _halo(state)


def _halo(state: CellState) -> Adversarial:
    """Whether the composer's own judges move the cell's score."""
    halo = state.halo
    if halo is None or halo.value is None:
        why = "" if halo is None else f" ({halo.state})"
        told = f"Whether the composer's own judges favour these texts was not measured{why}."
        return Adversarial("not tested", (told,), (told,), ())
    family = halo.detail.get("family")
    if family is None:
        told = "No judge shares a family with the composer of these texts, so there is no halo to look for."
        return Adversarial("passed", (told,), (), ())
    moved = f"The judges of family {family}, which wrote these texts, move the number by {signed(halo.value)} points"
    if halo.detail.get("triggered"):
        told = f"{moved}: a halo, so the number without them is primary."
        return Adversarial("construct-sensitive", (told,), (told,), ())
    return Adversarial("passed", (f"{moved}: no halo.",), (), ())


# The fields that decide a claim, of a study, a season or a benchmark, and the level that they leave

LEVELS: Final[tuple[Level, ...]] = ("no-claim", "qualified", "headline")
"""From the lowest."""

NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."
SMALL_GAP: Final = Condition(id="small-gap", text="The difference is smaller than the margin that counts as none.")


def weakest(levels: Iterable[Level]) -> Level:
    """The lowest of some levels; a headline of none."""
    return min(levels, key=LEVELS.index, default="headline")


@dataclass(frozen=True, slots=True)
class Fields:
    """The parts from which one claim's verdict follows."""

    claim: Claim
    agreement: Agreement
    evidence: Evidence
    adversarial: Adversarial
    instruments: Instruments = field(default_factory=Instruments)
    findings: tuple[Finding, ...] = ()
    preregistered: bool = True

    @classmethod
    def unjudged(cls, claim: Claim, evidence: Evidence, findings: Sequence[Finding], preregistered: bool) -> Fields:
        """Of a claim that rests on no grade."""
        agreement, adversarial = Agreement("not judged", None, "", ()), Adversarial("not judged", (), (), ())
        return cls(claim, agreement, evidence, adversarial, Instruments(), tuple(findings), preregistered)

    def state(self, name: str) -> str:
        """What a bias test found, in one word."""
        return next((finding.state for finding in self.findings if finding.field == name), "not-applicable")

    def without(self, name: str) -> Fields:
        """The same without what one bias test found."""
        return replace(self, findings=tuple(finding for finding in self.findings if finding.field != name))

    @property
    def lifts(self) -> bool:
        """Whether people confirm the order and agree with each other, which lifts what biases of judges cap."""
        return any(finding.field == "human_anchor" and bool(finding.values.get("lifts")) for finding in self.findings)

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

    @property
    def level(self) -> Level:
        """The lowest of what the three statuses permit and every cap."""
        caps = self.caps()
        # People lift "no claim" of the recusal contrast to qualified, and every other cap that they lift wholly.
        found: list[Level] = [cap.level for cap in caps if not cap.lifted]
        found += ["qualified" for cap in caps if cap.lifted and cap.level == "no-claim"]
        if self.agreement.status != "not judged":
            free = any(cap.field == "adversarial" and cap.lifted for cap in caps)
            found.append(
                publication_level(
                    self.agreement.status,
                    self.evidence.status,
                    "passed" if free else self.adversarial.status,
                    asserts_order=self.claim.asserts_order,
                    significance_tested=self.evidence.tested,
                )
            )
        return weakest(found)

    def verdict(
        self,
        plan_hash: str,
        claim: Claim,
        reasons: Sequence[str],
        conditions: Sequence[Condition],
        fragility: Mapping[str, Level],
        amended: Sequence[str] = (),
    ) -> Verdict:
        """The verdict in these words; ``claim`` has the statement with its scope."""
        level, caps, evidence = self.level, self.caps(), self.evidence
        states = {name: self.state(name) for name in ("own_family", "length", "distinct", "other_judges")}
        anchor = self.state("human_anchor")
        states["human_anchor"] = "not-tested" if anchor == "not-applicable" else anchor
        looked_at = [self.agreement.measurements, evidence.measurements, self.adversarial.measurements]
        looked_at += [self.instruments.measurements, *(finding.measurements for finding in self.findings)]
        limits = [(cap.field, "qualified" if cap.lifted else cap.level) for cap in caps
                  if not cap.lifted or cap.level == "no-claim"]  # fmt: skip
        binding = [] if level == "headline" else [name for name, most in limits if most == level]
        numbers = ("p", "p_adjusted", "p_adjusted_headline", "stability")
        return Verdict(
            claim=claim,
            agreement_status=self.agreement.status,
            stability_status=evidence.status,
            adversarial_status=self.adversarial.status,
            publication_level=level,
            reasons=tuple(reasons),
            binding=tuple(dict.fromkeys(binding)),
            measurements=tuple(dict.fromkeys(name for names in looked_at for name in names)),
            plan_hash=plan_hash,
            condition=" ".join(condition.text for condition in conditions) or None,
            fragility=fragility,
            amended=tuple(amended),
            conditions=tuple(conditions),
            caps=caps,
            pair_state=evidence.state,
            preregistered=self.preregistered,
            **{name: getattr(evidence, name) for name in numbers},
            **states,  # type: ignore[arg-type]  # each state is a word of its own list
        )


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
