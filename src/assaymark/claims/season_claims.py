"""Decide the claims about a season: rankings of its agents, bands of their totals, and returns against a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

from assaymark.claims import findings as bias
from assaymark.claims import levels as rule
from assaymark.claims.certification import Rank
from assaymark.claims.findings import Fields, store_human_p, with_human_test
from assaymark.claims.levels import SPAN, Finding, Rules, SeasonGates, panel_finding
from assaymark.claims.messages import Phrase, Value, english, phrase
from assaymark.claims.orders import ClaimEvidence, orders_of, tiers_and_ranks
from assaymark.claims.verdicts import ORDERS, ComparisonClaim, candidate_claims, count_text, decimals, ends_text, p_text
from assaymark.metrology.contrasts import holm
from assaymark.metrology.measure_people import FEWEST_LABELLED, NOT_DRAWN
from assaymark.protocol import Claims
from assaymark.records import (
    AGGREGATE,
    IDENTICAL,
    AdversarialStatus,
    Claim,
    Condition,
    Level,
    Measurement,
    Verdict,
    measurement_id,
    weakest,
)
from assaymark.text import gate_digits

SeasonClaimKind = Literal["first", "above", "within", "band", "beats"]
"""The kinds of claim about a season.

``first``: an agent ranks first. ``above``: one agent scores above another. ``within``: two agents score within the
margin of each other. ``band``: the band of an agent's total. ``beats``: an agent earned more than a baseline.
"""


@dataclass(frozen=True, slots=True)
class SeasonVerdict:
    """A verdict with its statement, reasons and conditions as messages that can be translated."""

    kind: SeasonClaimKind
    verdict: Verdict
    statement: Phrase
    reasons: tuple[Phrase, ...]
    condition: tuple[Phrase, ...] = ()
    withheld: Phrase | None = None


@dataclass(frozen=True, slots=True)
class SeasonVerdicts:
    """All verdicts in display order, the tiers, and the rows of the table."""

    verdicts: tuple[SeasonVerdict, ...]
    tiers: tuple[tuple[str, ...], ...]
    places: tuple[Rank[Phrase], ...]

    def place(self, agent: str) -> Rank[Phrase]:
        """Return the table row of an agent."""
        return {place.agent: place for place in self.places}[agent]


SINGLE = "not defined: one judge"
"""State of a season's kappa if there is only one judge."""
CONSTANT = "not defined: two judges gave one band throughout"
"""State of a season's kappa if two judges gave the same band throughout."""
MISSING = "not defined: no period was graded by all judges"
"""State of a season's kappa if no period has grades of all judges."""

_SHOWN: Final = 0.05  # points; less reads as 0.0
_ALL: Final = Claims(dimensions=(AGGREGATE,))

_Keyed = tuple[str, Phrase]
"""A condition: the name of its kind, and its message."""
_Panel = tuple[Finding, Finding, Finding, tuple[Phrase, ...], tuple[_Keyed, ...]]
"""The panel's part of every verdict that depends on grades: agreement, adversarial status, datasheet gates, and their
reasons and conditions."""


class SeasonClaims:
    """Decides the claims of one season from its measurements and rules."""

    def __init__(self, measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> None:
        self.gates, self.plan_hash = gates, plan_hash
        self.totals = {item.labels["agent"]: item for item in measurements if item.name == rule.TOTAL}
        graded = sorted(name for name, measurement in self.totals.items() if measurement.value is not None)
        dropped = sorted({item.labels["dropped"] for item in measurements if item.name == "lofo.contrast"})
        self.known = rule.index(measurements, agents=graded, families=dropped)
        for pair in combinations(self.known.agents, 2):
            self.known.contrast(AGGREGATE, *pair)
        self.excess = [item for item in self.known.named(rule.EXCESS) if item.labels["baseline"] == gates.baseline]
        # Rankings and comparisons with the baseline are two test families that split alpha; this is the rankings' part.
        self.alpha = gates.alpha / (1 + (bool(self.excess) and len(graded) > 1))
        self.rules = Rules(
            gates.publish, gates.halt, self.alpha, gates.kappa, gates.test, margin=gates.margin,
            any_judges=gates.any_judges, on_failure=gates.on_failure, preregistered=gates.preregistered, span=SPAN,
        )  # fmt: skip
        self.kappa = next(iter(self.known.named(rule.KAPPA)), None)

    @property
    def stop_reason(self) -> str:
        """The reason that no claim may rest on the grades, as the last part of a message key; empty if claims may."""
        agreement, _, instruments, reasons, _ = self.panel(self.rules)
        if agreement.state == "halt":
            return "single" if reasons[0].key.endswith(".single") else "halt"
        return "datasheets" if instruments.cap == "no-claim" else ""

    def without_value(self, name: str, agents: Iterable[str]) -> tuple[str, ...]:
        """Return those of the agents whose measurement ``name`` has no value."""
        empty = {measurement.labels["agent"] for measurement in self.known.named(name) if measurement.value is None}
        return tuple(sorted(empty.intersection(agents)))

    def panel(self, rules: Rules) -> _Panel:
        """Return agreement, adversarial status and datasheet gates of the panel under ``rules``; cached."""
        key = "panel", rules.publish, rules.halt, rules.kappa
        if key in self.known.memo:
            cached: _Panel = self.known.memo[key]
            return cached
        item, instruments = self.kappa, rule.datasheet_finding(self.known, rules.on_failure)
        ids = () if item is None else (item.id,)
        conditions: list[_Keyed] = []
        if item is None or item.value is None:
            undefined = {SINGLE: "single", CONSTANT: "constant"}.get("" if item is None else item.state, "missing")
            agreement = panel_finding("agreement", "halt", ids)
            reasons = [phrase(f"claim.reason.agreement.{undefined}")]
        else:
            gated = item.value if rules.kappa == "point" or item.low is None else item.low
            agreed = rules.status(gated)
            agreement, cut = panel_finding("agreement", agreed, ids), rules.halt if agreed == "halt" else rules.publish
            kappa = decimals(item.value, gate_digits(item.value, rules.halt, rules.publish))
            values: dict[str, Value] = {"kappa": kappa, "cut": cut}
            reasons = [phrase(f"claim.reason.agreement.{agreed}", ends=ends_text(item, "ends"), **values)]
            conditions += [("agreement", phrase("claim.condition.weak", **values))] if agreed == "methodology" else []
        status: AdversarialStatus = "passed"
        if instruments.state == "not-required":
            status = "not tested"
            conditions.append(("controls", phrase("claim.condition.not_tested")))
        elif instruments.state == "kept":
            reasons.append(phrase("claim.reason.datasheets.kept"))
        else:
            sheets = sorted(self.known.named("datasheet.gate"), key=lambda measurement: measurement.id)
            broken = [sheet for sheet in sheets if sheet.value]
            status = "construct-sensitive" if broken else "not tested"
            for sheet in broken:
                limits = "; ".join(map(str, sheet.detail.get("failed", ())))
                reasons.append(phrase("claim.reason.datasheets.failed", judge=sheet.labels["judge"], limits=limits))
            absent = (sheet for sheet in sheets if sheet.value is None)
            reasons += [phrase("claim.reason.datasheets.absent", judge=gate.labels["judge"]) for gate in absent]
            text = phrase("claim.condition.datasheets", judges=instruments.values["judges"])
            conditions.append(("judge-limits", text))
        informed = [probe for probe in self.known.named(rule.PROBE) if probe.detail.get("state") == rule.ABOVE_CHANCE]
        informed.sort(key=lambda measurement: measurement.id)
        if informed:
            judges = tuple(measurement.labels["judge"] for measurement in informed)
            status = "construct-sensitive"
            conditions.append(("controls", phrase("claim.condition.probe", len(judges), judges=judges)))
        adversarial = panel_finding("adversarial", status, tuple(measurement.id for measurement in informed))
        parts = agreement, adversarial, instruments, tuple(reasons), tuple(conditions)
        self.known.memo[key] = parts
        return parts

    def fields(self, claim: Claim, evidence: ClaimEvidence, rules: Rules, findings: Iterable[Finding]) -> Fields:
        """Return the fields of a claim that depends on grades."""
        agreement, adversarial, instruments, *_ = self.panel(rules)
        complete = (*findings, *(_finding("hindsight", text, "qualified") for text in self.gates.hindsight))
        return Fields(claim, agreement, evidence, adversarial, instruments, complete, rules.preregistered)

    def variants(self, kind: ComparisonClaim | None) -> dict[str, Rules]:
        """Return the other rules for the sensitivity analysis; ``kind`` is None for bands, which have no test."""
        others = {"kappa cut-offs 0.5 and 0.25": replace(self.rules, publish=0.5, halt=0.25)}
        if self.kappa is not None and self.kappa.low is not None:
            others["lower bound of kappa"] = replace(self.rules, kappa="lower")
        measured = self.known.measured_tests()
        return others if kind is None else others | kind.other_rules(self.rules, measured, dimensions=False)

    def verdict(
        self, kind: SeasonClaimKind, fields: Fields, statement: Phrase, withheld: Phrase, reasons: Iterable[Phrase],
        conditions: Iterable[_Keyed], fragility: Mapping[str, Level],
    ) -> SeasonVerdict:  # fmt: skip
        """Build a verdict from its fields, with its texts in English and as messages."""
        supported, words = fields.level != "no-claim", english().render
        late = () if fields.preregistered else (("not-preregistered", phrase("claim.condition.not_preregistered")),)
        told_reasons = (*reasons, *(text for _, text in late))
        shown = (*conditions, *late) if supported else ()
        worded = [Condition(name, words(text)) for name, text in shown]
        verdict = fields.verdict(self.plan_hash, words(statement), map(words, told_reasons), worded, fragility)
        texts = tuple(text for _, text in shown)
        return SeasonVerdict(kind, verdict, statement, told_reasons, texts, None if supported else withheld)

    # Rankings: first ranks, pairs, and pairs within the margin

    def orders(self) -> list[SeasonVerdict]:
        """Decide first ranks, pairs, and pairs within the margin, each by name."""
        index, rules, verdicts = self.known, self.rules, list[SeasonVerdict]()
        claims = candidate_claims(_ALL, index, rules, cells=False) if len(index.agents) > 1 else []
        if index.named("human.contrast"):
            store_human_p((self.judge_fields(claim, rules) for claim in claims), index)
        judges, alike = index.get("panel.families"), self.without_value(rule.OUTCOME, index.agents) == index.agents
        for claim in claims:
            kind = ORDERS[claim.id.partition("[")[0]]
            fields = with_human_test(self.judge_fields(claim, rules), index, rules)
            # A ranking is about these judges' scores, unless it generalises to other judges.
            ours = judges is not None and judges.n and fields.state("other_judges") != "yes"
            scope = phrase("claim.scope", judges.n) if ours and judges is not None else ""
            statement, withheld, cause = kind.season(claim, fields, index, rules, scope)
            causes = [cause, *_bias_reasons(fields)]
            if alike:
                causes.append(phrase("claim.reason.outcomes_none"))  # the same for all totals: no condition
            # A reason that stops every claim comes first, unless the judges contradict this claim.
            *_, shared, narrow = self.panel(rules)
            gate_first = self.stop_reason and fields.evidence.status != "judge-dependent"
            conditions = [*(narrow if fields.level == "qualified" else ()), *_conditions(fields, rules)]
            fragility: dict[str, Level] = {}
            for name, other in self.variants(kind).items():
                # People's agreement is compared with the plan's cut-offs under every rule.
                people = replace(other, publish=rules.publish, halt=rules.halt)
                fragility[name] = with_human_test(self.judge_fields(claim, other), index, people).level
            reasons = (*shared, *causes) if gate_first else (*causes, *shared)
            verdicts.append(self.verdict(kind.head, fields, statement, withheld, reasons, conditions, fragility))
        return verdicts

    def judge_fields(self, claim: Claim, rules: Rules) -> Fields:
        """Return the fields of a ranking claim from the judges' scores, without people's grades."""
        index, evidence = self.known, ORDERS[claim.id.partition("[")[0]].evidence(claim, self.known, rules)
        names = tuple(sorted(evidence.compared.union(claim.subjects)))
        findings = [bias.own_family(claim, evidence, index, rules), bias.length_bias(claim, evidence, index, rules)]
        if claim.asserts_order:
            findings.append(bias.other_judges_finding(claim, evidence, index, rules))
            # Agents whose totals have other components than those they are compared with
            for key, name in (("outcome", rule.OUTCOME), ("timing", rule.EFFICIENCY)):
                lacking = self.without_value(name, names)
                if lacking and len(lacking) < len(names):
                    text = phrase(f"claim.condition.{key}", agents=lacking)
                    findings.append(_finding("different-totals", text, "qualified"))
            findings += self.partly_graded(names)
            # Agents whose replicates are all identical, so that their noise is unknown
            flat = (item for item in index.named(rule.NOISE) if item.state == IDENTICAL and item.n_of == "replicates")
            if same := tuple(sorted({measurement.labels["of"] for measurement in flat}.intersection(names))):
                findings.append(_finding("noise", phrase("claim.condition.identical", agents=same), "qualified"))
            findings += self.missing_replies()
        findings += [*bias.cluster_findings(claim, evidence, index), *self.flagged_texts(names)]
        return self.fields(claim, evidence, rules, findings)

    def partly_graded(self, agents: Iterable[str]) -> Iterator[Finding]:
        """Report agents that a judge did not grade."""
        if part := self.without_value(rule.COMPOSITE, agents):
            yield _finding("missing-replies", phrase("claim.condition.part", agents=part), "qualified")

    def missing_replies(self) -> Iterator[Finding]:
        """Report judges left out for missing replies, missing replies of the others, and agents with more of them."""
        named = self.known.named(rule.INVALID)
        items = {item.labels["judge"]: item.detail for item in named if item.detail.get("lacking")}
        if gone := tuple(judge for judge, detail in items.items() if detail["left_out"]):
            yield _finding("missing-replies", phrase("claim.condition.left_out", judges=gone), "qualified")
        for judge, detail in items.items():
            if judge in gone:
                continue
            n = sum(no for no, _ in detail["lacking"].values())
            yield _finding("missing-replies", phrase("claim.condition.missing", n, judge=judge, of=detail["records"]))
            for agent, p in detail["p_more"].items():
                if p <= self.gates.alpha:
                    no, asked = detail["lacking"][agent]
                    text = phrase("claim.condition.uneven", no, judge=judge, agent=agent, of=asked)
                    yield _finding("missing-replies", text)

    def flagged_texts(self, agents: Iterable[str]) -> Iterator[Finding]:
        """Report texts of the compared agents that address the judge: a condition of the claim without a cap."""
        items = {other.labels["agent"]: other for other in self.known.named(rule.FLAGGED) if other.value}
        for agent in sorted(items.keys() & {*agents}):
            item = items[agent]
            text = phrase("claim.condition.flagged", int(item.detail["count"]), agent=agent, of=item.n)
            yield replace(_finding("flagged-texts", text), measurements=(item.id,))

    # Bands of totals, and returns against a baseline

    def bands(self) -> Iterator[SeasonVerdict]:
        """Decide for every graded agent whether its band may be claimed."""
        for agent in self.known.agents:
            item = self.totals[agent]
            detail, judges = item.detail, int(item.detail["judges"])
            # The total itself is not stated: rankings decide whether it may be shown.
            numbers = {name: float(detail[name]) for name in ("low", "high", "margin")}
            reach = None if detail.get("reach") is None else float(detail["reach"])
            agreed = detail["state"] == "agreed" and detail["graded"] == [detail["band"]] * 2
            lowest, highest, band = (phrase(f"claim.band.{name}") for name in (*detail["graded"], detail["band"]))
            key, more = "contested", dict[str, Value]({"lowest": lowest, "highest": highest})
            if agreed:
                key, more = ("agreed_unknown", {}) if reach is None else ("agreed", {"reach": reach})
            elif lowest == highest:
                key, more = "efficiency", {"band": band}
            causes = [phrase(f"claim.reason.band.{key}", **more, **numbers)] if judges > 1 else []
            # Noise that reaches a band boundary or is unknown, and missing grades
            findings: list[Finding] = []
            if reach is None:
                findings.append(_finding("noise", phrase("claim.condition.band_unknown"), "qualified"))
            elif reach >= numbers["margin"]:
                text = phrase("claim.condition.band_noise", reach=reach, margin=numbers["margin"])
                findings.append(_finding("noise", text, "qualified"))
            findings += [*self.partly_graded([agent]), *self.missing_replies(), *self.flagged_texts([agent])]
            claim = _claim("band", (agent,), {}, AGGREGATE)
            evidence = ClaimEvidence("stable" if agreed else "judge-dependent", "", (item.id,))
            fields, others = self.fields(claim, evidence, self.rules, findings), self.variants(None).items()
            fragility = {name: self.fields(claim, evidence, rules, findings).level for name, rules in others}
            *_, shared, narrow = self.panel(self.rules)
            conditions = list(narrow) if fields.level == "qualified" else []
            conditions += [finding.values["said"] for finding in fields.findings]
            reasons = (*shared, *causes) if self.stop_reason and agreed else (*causes, *shared)
            by = phrase("claim.judges.one" if judges == 1 else "claim.judges.both")
            by = by if judges < 3 else phrase("claim.judges.all", count=count_text(judges))
            statement = phrase("claim.says.band", agent=agent, band=band, judges=by)
            withheld = phrase("claim.withheld.band", agent=agent)
            yield self.verdict("band", fields, statement, withheld, reasons, conditions, fragility)

    def returns(self) -> list[SeasonVerdict]:
        """Decide which agents earned more than the baseline: one verdict each, and one for all the others."""
        gates, alpha, items = self.gates, self.alpha, sorted(self.excess, key=lambda measurement: measurement.id)
        if not items:
            return []
        adjusted = holm([1.0 if measurement.value is None else float(measurement.detail["p"]) for measurement in items])
        # Holm-adjusted p of the differences whose interval lies above 0.
        above = {
            one.id: float(p)
            for one, p in zip(items, adjusted, strict=True)
            if one.value is not None and one.value > 0 and one.low is not None and one.low > 0
        }
        others = {"an error rate that rankings do not share": gates.alpha, "half of the error rate": alpha / 2}
        key = f"claim.baseline.{gates.baseline.replace(' ', '_').replace('/', '_')}"
        baseline: Phrase | str = phrase(key) if key in english().texts else gates.baseline

        def verdict(
            items: Sequence[Measurement], form: str, reason: Phrase, findings: Sequence[Finding], **subjects: str
        ) -> SeasonVerdict:
            # Depends on no grade; without findings it is not supported.
            ids = tuple(measurement.id for measurement in items)
            claim = _claim("beats", tuple(one.labels["agent"] for one in items), {"baseline": gates.baseline}, "return")
            evidence = ClaimEvidence("stable" if findings else "tie-class", "", ids)
            fields = Fields.unjudged(claim, evidence, findings, gates.preregistered)
            # The level of "one of these earned more" under other rules, at most qualified.
            fragility: dict[str, Level] = {
                name: "qualified" if any(above.get(one, 2.0) <= other for one in ids) else "no-claim"
                for name, other in others.items()
            }
            statement = phrase(f"claim.says.{form}", baseline=baseline, **subjects)
            withheld = statement if subjects else phrase(f"claim.withheld.{form}", baseline=baseline)
            conditions = [finding.values["said"] for finding in findings]
            return self.verdict("beats", fields, statement, withheld, (reason,), conditions, fragility)

        verdicts, cleared = list[SeasonVerdict](), [one for one in items if above.get(one.id, 2.0) <= alpha]
        for item in cleared:
            numbers = {"value": item.value, "low": item.low, "high": item.high, "whole": item.detail["whole"]}
            shares = {name: 100 * float(value or 0.0) for name, value in numbers.items()}
            reason = phrase("claim.reason.beats.cleared", p=p_text(above[item.id]), **shares)
            notes = [("one-path", phrase("claim.condition.path", days=item.n))]
            notes += [("hindsight", text) for text in gates.hindsight]
            findings = [_finding(name, text, "qualified") for name, text in notes]
            verdicts.append(verdict([item], "beats", reason, findings, agent=item.labels["agent"]))
        if rest := [measurement for measurement in items if measurement not in cleared]:
            # The claim that no (other) agent is shown to have earned more.
            days = max(measurement.n for measurement in rest)
            reason = phrase("claim.reason.beats.no_days", days=days)
            if any(measurement.value is not None for measurement in rest):
                agents = tuple(measurement.labels["agent"] for measurement in rest)
                reason = phrase("claim.reason.beats.any", days=days, agents=agents)
            verdicts.append(verdict(rest, "beats_other" if verdicts else "beats_any", reason, ()))
        return verdicts


def decide_season(measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> SeasonVerdicts:
    """Decide every claim about a season (``docs/scoring.md``, "Claims")."""
    season = SeasonClaims(measurements, gates, plan_hash)
    orders, agents, places = season.orders(), season.known.agents, list[Rank[Phrase]]()
    first = [order for order in orders if order.kind == "first"]
    rest = [order for order in orders if order.kind != "first"]
    pairs = [order.verdict for order in orders if order.kind == "above"]
    levels = {frozenset(verdict.claim.subjects): verdict.publication_level for verdict in pairs}
    claimed = [(one.claim.subjects[0], one.claim.subjects[1]) for one in pairs if one.publication_level != "no-claim"]
    tiers, ranks = tiers_and_ranks(agents, claimed)
    for tier in tiers:
        around = [levels[frozenset((name, other))] for name in tier for other in agents if other not in tier]
        level = weakest(around)
        if season.stop_reason or len(agents) == 1:
            reason = season.stop_reason or "only"
        elif len(tier) == 1:
            reason = "ranked_outcome" if season.without_value(rule.OUTCOME, tier) else "ranked"
        else:
            decided = orders_of(season.known, season.rules)
            inside = [decided.pair(AGGREGATE, *pair).row for pair in combinations(tier, 2)]
            unknown = all(row.unresolved == "noise-unknown" for row in inside)
            reason = "unknown" if unknown else "tier"
            reason = reason if any(row.testable for row in inside) else "periods"
        shown, note = len(tier) == 1 and level != "no-claim", phrase(f"claim.why.{reason}")
        places += [Rank(agent, *ranks[agent], shown, level, note) for agent in tier]
    for agent, total in sorted(season.totals.items()):
        if total.value is None:
            note = phrase(f"claim.why.{'silent' if total.state == rule.SILENT else 'ungraded'}")
            places.append(Rank(agent, None, None, False, "no-claim", note))
    return SeasonVerdicts((*first, *season.bands(), *season.returns(), *rest), tiers, tuple(places))


def _finding(name: str, text: Phrase, cap: Level | None = None) -> Finding:
    """Make a finding from a condition; with a ``cap`` it limits the level of the claim."""
    return Finding("score", name, cap, values={"said": (name, text)})


def _claim(kind: SeasonClaimKind, subjects: tuple[str, ...], labels: Mapping[str, str], dimension: str) -> Claim:
    """Make a claim of a kind that only seasons have; its statement is filled in by the verdict."""
    beats, name = kind == "beats", measurement_id(f"season.{kind}", {"agents": "+".join(subjects), **labels})
    scope: Literal["benchmark", "aggregate-ranking"] = "benchmark" if beats else "aggregate-ranking"
    return Claim(name, scope, "", subjects, dimension, asserts_order=beats)


def _bias_reasons(fields: Fields) -> Iterator[Phrase]:
    """Yield messages on bias tests, also if another field already stops the claim; never with a difference."""
    for result in fields.findings:
        if result.state == "rests-on-own-family":
            yield phrase("claim.reason.own_family.rests", p=p_text(result.values["p"]), needed=result.values["needed"])
        elif result.state == "turns-without-own-family":
            yield phrase("claim.reason.own_family.turns")
        elif result.state == "no-disinterested-judge":
            yield phrase("claim.condition.own_family", len(fields.evidence.pairs))
        elif result.field == "human_anchor" and result.reasons:
            yield _human_message(result)
        elif _may_be_length(result) and (fields.claim.asserts_order or fields.evidence.published):
            yield _length_message(result, fields, sized=False)


def _conditions(fields: Fields, rules: Rules) -> Iterator[_Keyed]:
    """Yield the conditions of a supported claim in a fixed order."""
    for finding in fields.findings:
        free = fields.lifts and finding.lifted
        if free and finding.cap == "no-claim":
            yield from (("own-family", text) for text in _bias_reasons(replace(fields, findings=(finding,))))
        elif finding.state == "no-disinterested-judge" and not free:
            yield "own-family", phrase("claim.condition.own_family", len(fields.evidence.pairs))
        elif finding.field == "length":
            if _may_be_length(finding) and not free:
                yield "length", _length_message(finding, fields, sized=True)
            if any(condition.id == "overlap" for condition in finding.conditions):
                yield "overlap", phrase("claim.condition.overlap")
        elif finding.field == "human_anchor" and finding.conditions:
            yield "people", _human_message(finding)
        elif finding.field == "other_judges" and finding.cap is not None:
            yield "other-judges", phrase("claim.condition.other_judges")
        elif finding.field == "clusters":
            name = finding.conditions[0].id
            numbers = {"periods" if key == "n" else key: value for key, value in finding.values.items()}
            yield name, phrase(f"claim.condition.{name.replace('-', '_')}", **numbers)
        elif finding.field == "score":
            yield finding.values["said"]
    if fields.evidence.state == "ordered-by-less-than-the-margin" and fields.claim.asserts_order:
        yield "small-gap", phrase("claim.condition.small_gap", margin=rules.margin)


def _human_message(finding: Finding) -> Phrase:
    """Return the message on what people's grades show for a ranking, or why they do not test it."""
    numbers = finding.values
    if finding.state == "not-tested":
        sample: Measurement = numbers["drawn"]
        refused = "refused" if sample.state.startswith(NOT_DRAWN) else "part"
        return phrase(f"claim.reason.people.{'few' if sample.value is not None else refused}", least=FEWEST_LABELLED)
    n, labelled = numbers["n"], numbers["labelled"]
    if finding.state == "contradicts":
        return phrase("claim.reason.people.contradicts", n)
    if finding.state == "undecided":
        more = phrase(f"claim.condition.people.{numbers['more']}", needed=numbers["needed"])
        return phrase("claim.condition.people.undecided", periods=labelled, more=more)
    difference: Phrase | str = ""
    if len(numbers["seen"]) == 1:
        (item,) = numbers["seen"]
        difference = phrase("claim.condition.people.gap", value=item.value or 0.0, ends=ends_text(item, "points"))
    agreed = numbers["agreed"]
    weak = "unmeasured" if agreed is None else "weak"
    lacks = phrase(f"claim.condition.people.{weak}", kappa=agreed or 0.0, needed=numbers["publish"])
    values: dict[str, Value] = {"gap": difference, "periods": labelled, "tail": "" if numbers["lifts"] else lacks}
    if numbers["anyone"]:
        return phrase("claim.condition.people.anyone", **values)
    return phrase("claim.condition.people.confirms", n, **values)


def _may_be_length(finding: Finding) -> bool:
    return finding.field == "length" and any(condition.id == "length" for condition in finding.conditions)


def _length_message(finding: Finding, fields: Fields, *, sized: bool) -> Phrase:
    """Return the message on length bias; ``sized`` names who writes longer, which would reveal an unsupported order."""
    if not fields.claim.asserts_order:
        return phrase("claim.condition.length.within", agents=tuple(sorted(fields.claim.subjects)))
    item: Measurement | None = finding.values.get("item")
    if item is None:
        return phrase("claim.condition.length.all", p=p_text(max(pair.headline for pair in fields.evidence.pairs)))
    lead = phrase(f"claim.condition.length.{'is' if finding.state == 'length' else 'may'}")
    gap, slope, raw = (float(item.detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    if slope == 0.0 or not sized:
        return phrase(f"claim.condition.length.{'same' if slope == 0.0 else 'unsized'}", lead=lead)
    high, low = item.labels["high"], item.labels["low"]
    longer, other = (high, low) if gap > 0 else (low, high)
    style: dict[str, Value] = {"lead": lead, "longer": longer, "other": other, "times": 2.0 ** abs(gap)}
    if slope * gap < _SHOWN:
        return phrase("claim.condition.length.unresolved", p=p_text(float(item.detail["p"])), **style)
    return phrase("claim.condition.length.explains", slope=slope, explained=slope * gap, raw=raw, **style)
