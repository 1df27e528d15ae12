"""Verdicts on the ranking of a season's agents: first ranks, pairs, and pairs within the margin.

The order procedure is that of studies, over the periods of the season. Two things are a season's own. A gap of totals
that noise alone makes, or that points the other way, is no order whatever the p-value over periods. And totals that are
made of different parts are compared with a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

from assaymark.claims.candidates import direction, first_claim, kind_of, pair_claim, within_claim
from assaymark.claims.evidence import COMPOSITE, EFFICIENCY, EXCESS, FLAGGED, INVALID, OUTCOME, SeasonGates, SeasonIndex
from assaymark.claims.fields import Fields
from assaymark.claims.levels import Rules, other_margins, other_tests
from assaymark.claims.messages import Said, Value, english, said
from assaymark.claims.messages.season_words import claim_of, count, judges_words, p_said, season_verdict
from assaymark.claims.orders import Orders, Standing, orders_of
from assaymark.claims.season_panel import SeasonPanel, season_panel
from assaymark.claims.season_types import SeasonVerdict
from assaymark.claims.standing import (
    Evidence,
    Finding,
    clusters_of,
    evidence_of,
    length_of,
    other_judges_of,
    own_family_of,
)
from assaymark.metrology.contrasts import holm
from assaymark.metrology.moderated import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE
from assaymark.records import AGGREGATE, Claim, Level, Measurement

_SHOWN: Final = 0.05  # points; less reads as 0.0


@dataclass(frozen=True, eq=False)
class SeasonCase:
    """A season with the rules that it is decided by; ``alpha`` is the share of the error rate that orders have."""

    known: SeasonIndex
    gates: SeasonGates
    alpha: float
    plan_hash: str

    @cached_property
    def panel(self) -> SeasonPanel:
        """What the panel permits."""
        return season_panel(self.known, self.gates)

    @cached_property
    def rules(self) -> Rules:
        """The rules of the plan."""
        return self.gates.of_orders(self.alpha)

    @cached_property
    def orders(self) -> Orders:
        """Every pair under the rules of the plan."""
        return orders_of(self.known.orders, self.rules)

    def contrast(self, one: str, two: str) -> Measurement:
        """The difference of two agents over periods."""
        return self.known.orders.contrast(AGGREGATE, one, two).measurement

    @cached_property
    def periods(self) -> int:
        """Common periods that a pair needs for a test."""
        item = self.known.orders.get("order.autocorrelation", dimension=AGGREGATE)
        serial = item is None or item.detail.get("order") == "consecutive"
        return FEWEST_CONSECUTIVE if serial else FEWEST_CLUSTERS

    @cached_property
    def judges(self) -> int:
        """How many judges graded periods."""
        item = self.known.orders.get("panel.families")
        return 0 if item is None else item.n

    def variants(self, kind: str) -> Iterator[tuple[str, SeasonGates, Rules]]:
        """The other rules under which a claim is decided again."""
        gates, rules = self.gates, self.rules
        yield "kappa cut-offs 0.5 and 0.25", replace(gates, publish=0.5, halt=0.25), rules
        if self.known.kappa is not None and self.known.kappa.low is not None:
            yield "lower bound of kappa", replace(gates, kappa="lower"), rules
        others: Mapping[str, Rules] = {}
        if kind == "within":
            others = other_margins(rules)
        elif kind != "band":
            others = other_tests(rules, self.known.orders.measured_tests(), dimensions=False)
        for name, other in others.items():
            yield name, gates, other


def order_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """First ranks by name, pairs by name, and pairs within the margin."""
    agents = season.known.orders.agents
    if len(agents) < 2:
        return []
    pairs = [direction(AGGREGATE, *pair, season.known.orders) for pair in combinations(agents, 2)]
    claims = [first_claim(AGGREGATE, agent, len(agents)) for agent in agents]
    claims += [pair_claim(AGGREGATE, *pair) for pair in pairs]
    claims += [within_claim(*pair, season.gates.margin) for pair in pairs]
    return [_verdict(season, claim) for claim in claims]


def _verdict(season: SeasonCase, claim: Claim) -> SeasonVerdict:
    fields = _fields(season, claim, season.gates, season.rules)
    kind = kind_of(claim)
    scope = _scope(season, fields)
    statement, withheld = _statement(season, claim, fields, scope)
    panel = season.panel
    own = [*_evidence_said(season, claim, fields), *_bias_reasons(fields), *_no_outcomes(season.known)]
    # What closes every claim comes first, but for a claim that the judges themselves contradict.
    gate_first = not panel.claimable and fields.evidence.status != "judge-dependent"
    conditions: list[tuple[str, Said]] = [*panel.conditions] if fields.level == "qualified" else []
    conditions += _conditions(season, fields)
    fragility: dict[str, Level] = {
        name: _fields(season, claim, gates, rules).level for name, gates, rules in season.variants(kind)
    }
    return season_verdict(
        "above" if kind == "pair" else kind,  # type: ignore[arg-type]  # orders are of three kinds
        replace(fields, claim=replace(claim, statement=english().render(statement))),
        statement,
        season.plan_hash,
        reasons=(*panel.reasons, *own) if gate_first else (*own, *panel.reasons),
        conditions=conditions,
        withheld=withheld,
        fragility=fragility,
    )


def _fields(season: SeasonCase, claim: Claim, gates: SeasonGates, rules: Rules) -> Fields:
    """The fields of a claim about orders under some rules."""
    orders = season.known.orders
    panel = season.panel if gates is season.gates else season_panel(season.known, gates)
    evidence = evidence_of(claim, orders, rules)
    findings = [own_family_of(claim, evidence, orders, rules), length_of(claim, evidence, orders, rules)]
    if claim.asserts_order:
        findings.append(other_judges_of(claim, evidence, orders, rules))
        findings += reserves(season.known, _compared(claim, evidence))
        findings += missing_replies(season.known, gates)
    findings += clusters_of(claim, evidence, orders)
    findings += flagged_texts(season.known, _compared(claim, evidence))
    findings += hindsight(gates)
    return Fields(
        claim, panel.agreement, evidence, panel.adversarial, panel.instruments, tuple(findings), gates.preregistered
    )


def _compared(claim: Claim, evidence: Evidence) -> tuple[str, ...]:
    """The agents that a claim compares."""
    return tuple(
        sorted({*claim.subjects, *(name for pair in evidence.pairs for name in (pair.row.high, pair.row.low))})
    )


def reserves(known: SeasonIndex, agents: Iterable[str]) -> Iterator[Finding]:
    """Agents whose totals are made of other parts than those they are compared with, or whose noise was not seen."""
    names = tuple(sorted(agents))
    for key, lacking in (
        ("outcome", known.lacking(OUTCOME, names)),
        ("timing", known.lacking(EFFICIENCY, names)),
    ):
        if lacking and len(lacking) < len(names):
            yield reserve("different-totals", said(f"claim.condition.{key}", agents=lacking))
    if part := known.lacking(COMPOSITE, names):
        yield reserve("missing-replies", said("claim.condition.part", agents=part))
    if same := known.unchanging(names):
        yield reserve("noise", said("claim.condition.identical", agents=same))


def missing_replies(known: SeasonIndex, gates: SeasonGates) -> Iterator[Finding]:
    """Judges that were left out because too much is missing, and what the others lack, and of whom more than others."""
    items = {one.labels["judge"]: one.detail for one in known.named(INVALID) if one.detail.get("lacking")}
    if gone := tuple(judge for judge, detail in items.items() if detail["left_out"]):
        yield reserve("missing-replies", said("claim.condition.left_out", judges=gone))
    for judge, detail in items.items():
        if judge in gone:
            continue
        n = sum(no for no, _ in detail["lacking"].values())
        yield _noted(said("claim.condition.missing", judge=judge, n=n, of=detail["records"]))
        for agent, p in detail["p_more"].items():
            if p <= gates.alpha:
                no, asked = detail["lacking"][agent]
                yield _noted(said("claim.condition.uneven", judge=judge, agent=agent, n=no, of=asked))


def flagged_texts(known: SeasonIndex, agents: Iterable[str]) -> Iterator[Finding]:
    """Texts of the agents compared that address the judge: said with a claim, and no limit of its level."""
    items = {one.labels["agent"]: one for one in known.named(FLAGGED) if one.value}
    for agent in sorted(items.keys() & {*agents}):
        item = items[agent]
        text = said("claim.condition.flagged", agent=agent, n=int(item.detail["count"]), of=item.n)
        yield _noted(text, "flagged-texts", item.id)


def _noted(text: Said, name: str = "missing-replies", *ids: str) -> Finding:
    """A condition that limits no level."""
    return Finding("score", name, measurements=ids, values={"said": (name, text)})


def hindsight(gates: SeasonGates) -> Iterator[Finding]:
    """Why authors may have known what came next."""
    for text in gates.hindsight:
        yield reserve("hindsight", text)


def reserve(name: str, text: Said) -> Finding:
    """A condition with which no claim is a headline."""
    return Finding("score", name, "qualified", values={"said": (name, text)})


# --- sentences --------------------------------------------------------------------------------------------------------


def _statement(season: SeasonCase, claim: Claim, fields: Fields, scope: Said | str) -> tuple[Said, Said]:
    """What a claim says, and what it is about where it is not supported."""
    kind, names = kind_of(claim), tuple(sorted(claim.subjects))
    if kind == "first":
        agent, agents = claim.subjects[0], count(len(season.known.orders.agents))
        statement = said("claim.says.first", agent=agent, count=agents, scope=scope)
        return statement, said("claim.withheld.first", agent=agent)
    if kind == "pair":
        high, low = claim.subjects
        return said("claim.says.above", high=high, low=low, scope=scope), said("claim.withheld.order", agents=names)
    one, two = names
    gap = "" if fields.level == "no-claim" else _gap_said(season.contrast(one, two), one)
    statement = said("claim.says.within", one=one, two=two, margin=season.gates.margin, gap=gap)
    return statement, said("claim.withheld.within", agents=names)


def _gap_said(item: Measurement, first: str) -> Said | str:
    """A difference from the first name to the second, with the interval that tests of equivalence go with."""
    ends = item.detail.get("equivalence_interval")
    if item.value is None or ends is None:
        return ""
    turn = 1.0 if item.labels["high"] == first else -1.0
    low, high = sorted(turn * end for end in ends)
    level = 100 * (2 * (item.level or 0.95) - 1)
    return said("claim.says.within_gap", value=turn * item.value, level=level, low=low, high=high)


def _scope(season: SeasonCase, fields: Fields) -> Said | str:
    """Whose scores a ranking is about: these judges', unless it holds for others like them."""
    if fields.state("other_judges") == "yes" or not season.judges:
        return ""
    return said("claim.scope", n=season.judges)


def _evidence_said(season: SeasonCase, claim: Claim, fields: Fields) -> Iterator[Said]:
    """Why a claim has evidence, or what it lacks first."""
    evidence, kind = fields.evidence, kind_of(claim)
    if not season.known.orders.families:
        yield said("claim.reason.one_family")
    elif kind == "within":
        yield _within_said(season, evidence.pairs[0], evidence)
    elif kind == "pair":
        yield _pair_said(season, evidence.pairs[0], supported=fields.level != "no-claim")
    else:
        yield _first_said(season, claim.subjects[0], evidence)


def _pair_said(season: SeasonCase, pair: Standing, *, supported: bool) -> Said:
    item, row = season.contrast(pair.row.high, pair.row.low), pair.row
    numbers: dict[str, Value] = {"p": p_said(pair.plain), "needed": season.orders.level(AGGREGATE)}
    one, two = sorted((row.high, row.low))
    if not row.testable:
        periods = int(item.detail.get("clusters", 0))
        return said("claim.reason.untested", one=one, two=two, n=periods, needed=season.periods)
    if row.unresolved:
        floor = item.detail.get("noise_floor")
        return said(f"claim.reason.{row.unresolved.replace('-', '_')}", one=one, two=two, floor=float(floor or 0.0))
    if not pair.published & {"plain", "gated"}:
        return said("claim.reason.unresolved", **numbers)
    if pair.stability.state != "stable":
        return _dropped_said(pair)
    if not supported:
        return said("claim.reason.resolved", **numbers)
    return said(
        "claim.reason.supported",
        periods=int(item.detail["clusters"]),
        value=item.value or 0.0,
        ends="" if item.low is None or item.high is None else said("claim.reason.points", low=item.low, high=item.high),
        gap=float(item.detail.get("totals_gap", 0.0)),
        floor=float(item.detail.get("noise_floor") or 0.0),
        **numbers,
    )


def _dropped_said(pair: Standing) -> Said:
    """What leaving out a judge family takes away."""
    state = pair.stability.state.replace("-", "_")
    families = pair.stability.families
    return said(f"claim.reason.{state}", families=families, n=len(families))


def _first_said(season: SeasonCase, agent: str, evidence: Evidence) -> Said:
    untested = [pair for pair in evidence.pairs if not pair.row.testable]
    if untested:
        others = tuple(sorted(_other(pair, agent) for pair in untested))
        return said("claim.reason.untested_first", agent=agent, agents=others)
    unresolved = [pair for pair in evidence.pairs if pair.row.unresolved or not pair.published & {"plain", "gated"}]
    behind = [pair for pair in evidence.pairs if pair.row.low == agent]
    if not evidence.published or unresolved or behind:
        return said("claim.reason.no_lead")
    shaken = [pair for pair in evidence.pairs if pair.stability.state != "stable"]
    if shaken:
        return said("claim.reason.against", other=_other(shaken[0], agent), why=_dropped_said(shaken[0]))
    worst = max(pair.plain for pair in evidence.pairs)
    level = season.orders.level(AGGREGATE)
    return said("claim.reason.lead", n=len(evidence.pairs), p=p_said(worst), needed=level)


def _other(pair: Standing, agent: str) -> str:
    return pair.row.low if pair.row.high == agent else pair.row.high


def _within_said(season: SeasonCase, pair: Standing, evidence: Evidence) -> Said:
    if not pair.row.testable:
        return _pair_said(season, pair, supported=False)
    state = "open" if not pair.within else "lost" if evidence.status != "stable" else "shown"
    families = tuple(
        name for name in season.known.orders.families if not _stays_within(season, name, pair.row.high, pair.row.low)
    )
    return said(
        f"claim.reason.within.{state}",
        margin=season.gates.margin,
        p=p_said(pair.p_within),
        needed=season.rules.alpha,
        families=families,
        n=len(families),
    )


def _stays_within(season: SeasonCase, family: str, one: str, two: str) -> bool:
    item = season.known.orders.drops.get((AGGREGATE, family, frozenset((one, two))))
    return item is not None and item.value is not None and abs(item.value) < season.gates.margin


def _bias_reasons(fields: Fields) -> Iterator[Said]:
    """What a bias test found, also where another field already stops the claim; never with the size of a gap."""
    for one in fields.findings:
        if one.state == "rests-on-own-family":
            yield said("claim.reason.own_family.rests", p=p_said(one.values["p"]), needed=one.values["needed"])
        elif one.state == "turns-without-own-family":
            yield said("claim.reason.own_family.turns")
        elif one.state == "no-disinterested-judge":
            yield said("claim.condition.own_family", n=len(fields.evidence.pairs))
        elif _may_be_length(one) and (fields.claim.asserts_order or fields.evidence.published):
            yield _length_said(one, fields, sized=False)


def _conditions(season: SeasonCase, fields: Fields) -> Iterator[tuple[str, Said]]:
    """What has to be said with a supported claim, in a fixed order."""
    for one in fields.findings:
        if one.state == "no-disinterested-judge":
            yield "own-family", said("claim.condition.own_family", n=len(fields.evidence.pairs))
        elif one.field == "length":
            if _may_be_length(one):
                yield "length", _length_said(one, fields, sized=True)
            if any(condition.id == "overlap" for condition in one.conditions):
                yield "overlap", said("claim.condition.overlap")
        elif one.field == "other_judges" and one.cap is not None:
            yield "other-judges", said("claim.condition.other_judges")
        elif one.field == "clusters":
            numbers = {name: value for name, value in one.values.items() if name != "n"}
            periods = {"periods": one.values["n"]} if "n" in one.values else {}
            name = one.conditions[0].id
            yield name, said(f"claim.condition.{name.replace('-', '_')}", **numbers, **periods)
        elif one.field == "score":
            yield one.values["said"]
    if fields.evidence.state == "ordered-by-less-than-the-margin" and fields.claim.asserts_order:
        yield "small-gap", said("claim.condition.small_gap", margin=season.gates.margin)


def _may_be_length(one: Finding) -> bool:
    return one.field == "length" and any(condition.id == "length" for condition in one.conditions)


def _length_said(one: Finding, fields: Fields, *, sized: bool) -> Said:
    """How the length of texts may explain a difference; who writes longer would show an order that is not supported."""
    if kind_of(fields.claim) == "within":
        names = tuple(sorted(fields.claim.subjects))
        return said("claim.condition.length.within", agents=names)
    item: Measurement | None = one.values.get("item")
    if item is None:
        return said("claim.condition.length.all", p=p_said(max(pair.headline for pair in fields.evidence.pairs)))
    lead = said(f"claim.condition.length.{'is' if one.state == 'length' else 'may'}")
    gap, slope, raw = (float(item.detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    if slope == 0.0:
        return said("claim.condition.length.same", lead=lead)
    if not sized:
        return said("claim.condition.length.unsized", lead=lead)
    high, low = item.labels["high"], item.labels["low"]
    longer, other = (high, low) if gap > 0 else (low, high)
    style: dict[str, Value] = {"lead": lead, "longer": longer, "other": other, "times": 2.0 ** abs(gap)}
    if slope * gap < _SHOWN:
        return said("claim.condition.length.unresolved", p=p_said(float(item.detail["p"])), **style)
    return said("claim.condition.length.explains", slope=slope, explained=slope * gap, raw=raw, **style)


def _no_outcomes(known: SeasonIndex) -> tuple[Said, ...]:
    """Where no agent has an outcome all totals are made alike, which is a reason and no condition."""
    none = known.graded and set(known.lacking(OUTCOME, known.graded)) == set(known.graded)
    return (said("claim.reason.outcomes_none"),) if none else ()


# Verdicts on a season's bands, and on returns against a baseline.


RETURN = "return"
"""What comparisons with a baseline are about."""


# --- bands ------------------------------------------------------------------------------------------------------------


def band_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """For every graded agent whether its band may be named.

    It may where all its judges and its total name one band. It is no headline where noise alone reaches a boundary, or
    where the noise is unknown.
    """
    return [_band(season, agent) for agent in sorted(season.known.graded)]


def _band(season: SeasonCase, agent: str) -> SeasonVerdict:
    known, panel = season.known, season.panel
    item = known.totals[agent]
    detail = item.detail
    judges = int(detail["judges"])
    agreed = detail["state"] == "agreed" and detail["graded"] == [detail["band"]] * 2
    statement = said(
        "claim.says.band",
        agent=agent,
        band=said(f"claim.band.{detail['band']}"),
        judges=judges_words(judges),
    )
    claim = claim_of("band", statement, (agent,))
    fields = _band_fields(season, claim, season.gates, agreed=agreed)
    own = (_band_reason(known, agent, agreed=agreed),) if judges > 1 else ()
    conditions = [*panel.conditions] if fields.level == "qualified" else []
    return season_verdict(
        "band",
        fields,
        statement,
        season.plan_hash,
        reasons=(*panel.reasons, *own) if not panel.claimable and agreed else (*own, *panel.reasons),
        conditions=[*conditions, *(one.values["said"] for one in fields.findings)],
        withheld=said("claim.withheld.band", agent=agent),
        fragility={
            name: _band_fields(season, claim, gates, agreed=agreed).level for name, gates, _ in season.variants("band")
        },
    )


def _band_fields(season: SeasonCase, claim: Claim, gates: SeasonGates, *, agreed: bool) -> Fields:
    (agent,) = claim.subjects
    panel = season.panel if gates is season.gates else season_panel(season.known, gates)
    evidence = Evidence("stable" if agreed else "judge-dependent", "", (season.known.totals[agent].id,))
    known = season.known
    findings = (
        *_band_reserves(known, agent),
        *missing_replies(known, gates),
        *flagged_texts(known, [agent]),
        *hindsight(gates),
    )
    return Fields(claim, panel.agreement, evidence, panel.adversarial, panel.instruments, findings, gates.preregistered)


def _band_reason(known: SeasonIndex, agent: str, *, agreed: bool) -> Said:
    detail = known.totals[agent].detail
    # The total itself is not named: whether it may be shown is for the orders to say.
    numbers = {name: known.detail(agent, name) for name in ("low", "high", "margin")}
    if agreed:
        reach = detail.get("reach")
        if reach is None:
            return said("claim.reason.band.agreed_unknown", **numbers)
        return said("claim.reason.band.agreed", reach=float(reach), **numbers)
    lowest, highest = detail["graded"]
    if lowest == highest:
        return said("claim.reason.band.efficiency", band=said(f"claim.band.{detail['band']}"), **numbers)
    words = {"lowest": said(f"claim.band.{lowest}"), "highest": said(f"claim.band.{highest}")}
    return said("claim.reason.band.contested", **numbers, **words)


def _band_reserves(known: SeasonIndex, agent: str) -> list[Finding]:
    """Noise that reaches a boundary or is unknown, and judges that gave no grade."""
    reach, margin = known.totals[agent].detail.get("reach"), known.detail(agent, "margin")
    part = known.lacking(COMPOSITE, [agent])
    missing = [reserve("missing-replies", said("claim.condition.part", agents=part))] if part else []
    if reach is None:
        return [reserve("noise", said("claim.condition.band_unknown")), *missing]
    if float(reach) >= margin:
        return [reserve("noise", said("claim.condition.band_noise", reach=float(reach), margin=margin)), *missing]
    return missing


# --- baselines --------------------------------------------------------------------------------------------------------


def return_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """Which agents earned more than the baseline; all others together in one verdict.

    Grades play no part here, so agreement and controls are not judged. A season is one path, so none is a headline.
    """
    gates, alpha = season.gates, season.alpha
    items = sorted(
        (one for one in season.known.named(EXCESS) if one.labels["baseline"] == gates.baseline), key=lambda one: one.id
    )
    if not items:
        return []
    cleared = _cleared(items, alpha)
    others = {
        "an error rate that rankings do not share": _cleared(items, gates.alpha),
        "half of the error rate": _cleared(items, alpha / 2),
    }
    rest = [one for one in items if one.id not in cleared]
    found = [_beats(season, one, cleared[one.id], _levels([one], others)) for one in items if one.id in cleared]
    return [*found, *([_none_beats(season, rest, _levels(rest, others), other=bool(found))] if rest else [])]


def _cleared(items: Sequence[Measurement], alpha: float) -> dict[str, float]:
    """The differences from a baseline that are above 0 after Holm over all of them, with their adjusted p-values."""
    adjusted = holm([1.0 if one.value is None else float(one.detail["p"]) for one in items])
    return {
        one.id: float(p)
        for one, p in zip(items, adjusted, strict=True)
        if one.value is not None and one.value > 0 and p <= alpha and one.low is not None and one.low > 0
    }


def _levels(items: Sequence[Measurement], others: Mapping[str, Mapping[str, float]]) -> dict[str, Level]:
    """The level of "one of these earned more" under other rules; it is never a headline."""
    return {
        name: "qualified" if any(one.id in cleared for one in items) else "no-claim" for name, cleared in others.items()
    }


def _beats(season: SeasonCase, item: Measurement, p: float, fragility: Mapping[str, Level]) -> SeasonVerdict:
    agent, baseline = item.labels["agent"], season.gates.baseline
    reason = said(
        "claim.reason.beats.cleared",
        value=100 * (item.value or 0.0),
        low=100 * (item.low or 0.0),
        high=100 * (item.high or 0.0),
        p=p_said(p),
        whole=100 * float(item.detail["whole"]),
    )
    path = reserve("one-path", said("claim.condition.path", days=item.n))
    findings = (path, *hindsight(season.gates))
    statement = said("claim.says.beats", agent=agent, baseline=_baseline(baseline))
    return _fact(season, statement, (agent,), reason, [item.id], findings, withheld=statement, fragility=fragility)


def _none_beats(
    season: SeasonCase, items: Sequence[Measurement], fragility: Mapping[str, Level], *, other: bool
) -> SeasonVerdict:
    """That no (other) agent can be said to have earned more."""
    key = "beats_other" if other else "beats_any"
    agents = tuple(one.labels["agent"] for one in items)
    days = max(one.n for one in items)
    reason = said("claim.reason.beats.no_days", days=days)
    if any(one.value is not None for one in items):
        reason = said("claim.reason.beats.any", days=days, agents=agents)
    baseline = _baseline(season.gates.baseline)
    statement, withheld = (said(f"claim.{part}.{key}", baseline=baseline) for part in ("says", "withheld"))
    rests = [one.id for one in items]
    return _fact(season, statement, agents, reason, rests, (), withheld=withheld, fragility=fragility)


def _baseline(name: str) -> Said | str:
    """A baseline in words."""
    key = f"claim.baseline.{name.replace(' ', '_').replace('/', '_')}"
    return said(key) if key in english().texts else name


def _fact(
    season: SeasonCase,
    statement: Said,
    agents: Sequence[str],
    reason: Said,
    rests: Sequence[str],
    findings: Sequence[Finding],
    *,
    withheld: Said,
    fragility: Mapping[str, Level],
) -> SeasonVerdict:
    """A verdict that rests on no grade; without a finding it is not supported."""
    claim = claim_of(
        "beats",
        statement,
        agents,
        scope="benchmark",
        dimension=RETURN,
        asserts_order=True,
        labels={"agents": "+".join(agents), "baseline": season.gates.baseline},
    )
    evidence = Evidence("stable" if findings else "tie-class", "", tuple(rests))
    fields = Fields.unjudged(claim, evidence, findings, preregistered=season.gates.preregistered)
    conditions = [one.values["said"] for one in findings]
    return season_verdict(
        "beats", fields, statement, season.plan_hash, reasons=(reason,), conditions=conditions, withheld=withheld,
        fragility=fragility,
    )  # fmt: skip
