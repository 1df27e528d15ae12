"""Whether a claim about agents has evidence, holds without each judge family, and what else may explain it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from assaymark.claims.evidence import Index, SignedDifference
from assaymark.claims.levels import Rules, kind_of, threshold
from assaymark.claims.messages import (
    agent_words,
    counted,
    interval_words,
    listing,
    measure_words,
    number,
    p_words,
    signed,
)
from assaymark.claims.orders import Orders, Standing, length_floor, orders_of
from assaymark.metrology.controls import TOLERANCE
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.records import (
    AGGREGATE,
    Claim,
    Condition,
    LengthState,
    Level,
    Measurement,
    OtherJudgesState,
    PairState,
    StabilityFinding,
    StabilityStatus,
)
from assaymark.text import NBSP, percent

ONE_FAMILY = "All judges are of one family, so nothing shows that an order holds without any one of them."
UNTESTED = "significance not tested, as the tables came without contrasts"
FEW_CLUSTERS = 5
FEW_CONSECUTIVE = 24

_GAP = "{gap}"
_WORST: tuple[StabilityStatus, ...] = ("judge-dependent", "not tested", "tie-class", "stable")
_WORST_STATE = ("not-measurable", "reversed-without", "rests-on", "stable")
_OVERLAP = 0.2
_SHOWN = 0.005  # points; less reads as 0.00


@dataclass(frozen=True, slots=True)
class Evidence:
    """What supports a claim about agents: its status, why, and the pairs that it compares."""

    status: StabilityStatus
    reason: str
    measurements: tuple[str, ...]
    pairs: tuple[Standing, ...] = ()
    published: frozenset[str] = frozenset()
    stability: StabilityFinding | None = None
    state: PairState | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_adjusted_headline: float | None = None
    gap: str = ""
    tested: bool = True

    def reason_at(self, level: Level) -> str:
        """The reason, with the difference where the claim is supported."""
        return self.reason.replace(_GAP, self.gap if level != "no-claim" else "")

    @property
    def compared(self) -> frozenset[str]:
        """The agents of the pairs."""
        return frozenset(name for pair in self.pairs for name in (pair.row.high, pair.row.low))


def evidence_of(claim: Claim, known: Index, rules: Rules) -> Evidence:
    """The evidence of a claim about agents."""
    if not known.tested(claim.dimension):
        return _by_levels(claim, known)
    orders, dimension, kind = orders_of(known, rules), claim.dimension, kind_of(claim)
    pairs = orders.of(dimension, claim.subjects[0]) if kind == "first" else [orders.pair(dimension, *claim.subjects)]
    found: list[str] = []  # the measurements that the standing of these pairs follows from
    for pair in pairs:
        names = pair.row.high, pair.row.low
        found += known.once(("rests", dimension, *names), lambda pair=pair: _rests(pair, dimension, known))  # type: ignore[misc]
    rests = tuple(dict.fromkeys(found))
    if kind == "first":
        return _first(claim, pairs, rests, orders, known, rules)
    (pair,) = pairs
    row, within, published = pair.row, kind == "within", pair.published
    item = known.contrast(dimension, row.high, row.low).measurement
    p, adjusted, headline = row.p.get(rules.test, 1.0), pair.gated, pair.headline
    status: StabilityStatus
    if not known.families:
        status, reason = "judge-dependent", ONE_FAMILY
    elif not row.testable:
        status, reason = "not tested", f"{' and '.join(sorted((row.high, row.low)))}: {item.state}."
    elif within:
        tail = f"{p_words(pair.p_within)} after Holm over all pairs, {threshold(rules.alpha)}"
        lost = further_apart(pair, dimension, known, rules)
        status = "tie-class" if lost or not pair.within else "stable"
        told = f"but without {listing(lost)} they are further apart" if lost else "also without any one judge family"
        reason = f"The two score within {rules.margin:g} of each other ({tail}), {told}."
        if not pair.within:
            reason = f"The two are not shown to score within {rules.margin:g} of each other: {tail}."
    elif not published & {"plain", "gated"}:
        status = "tie-class"
        reason = (
            f"The difference is not resolved: {p_words(pair.plain)} adjusted, {threshold(orders.level(dimension))}."
        )
    else:
        status, told = _survival(dimension, pair, known)
        reason = f"The difference{_GAP} is significant: {p_words(pair.plain)} adjusted, {told}."
    if within:
        # Equivalence is a family of its own.
        shown = frozenset({"gated"}) if status in ("stable", "tie-class") and pair.within else frozenset[str]()
        whole = pair.p_within if status in ("stable", "tie-class") else None
        return Evidence(status, reason, rests, (pair,), shown, None, pair.state, row.within(rules.margin), whole)
    gap = f" ({signed(item.value or 0.0)} points{interval_words(item.low, item.high)} over {item.n} common cycles)"
    stability = pair.stability if published else None
    return Evidence(status, reason, rests, (pair,), published, stability, pair.state, p, adjusted, headline, gap)


def further_apart(pair: Standing, dimension: str, known: Index, rules: Rules) -> list[str]:
    """The judge families without which two agents are not within the margin of each other."""
    drops = {family: known.drop(dimension, family, pair.row.high, pair.row.low) for family in known.families}
    return [
        family
        for family, item in drops.items()
        if item is None or item.value is None or abs(item.value) >= rules.margin
    ]


def _survival(dimension: str, pair: Standing, known: Index) -> tuple[StabilityStatus, str]:
    """What leaving out each family does to a published order, in words that follow "is significant"."""
    found, families = pair.stability, listing(list(pair.stability.families))
    if found.state == "stable":
        return "stable", "and holds without any one judge family"
    if found.state == "rests-on":
        return "judge-dependent", f"but the order needs judge family {families} to be seen"
    probe = known.directed("probe.contrast", dimension, pair.row.high, pair.row.low)
    zero = contains_zero(probe)
    if probe is None or zero is None:
        return "judge-dependent", f"but it turns without judge family {families}, and no held-out judge was asked"
    # What the held-out judge said, without the direction that is not supported.
    judge, p = (probe.measurement.detail.get(name) for name in ("judge", "p"))
    who = f"The held-out judge {judge}" if judge else "The held-out judge"
    tested = f" ({p_words(float(p))})" if isinstance(p, (int, float)) else ""
    words = "its interval contains 0" if zero else f"it finds a difference{tested}"
    told = f"but it turns without judge family {families}. {who} was asked; {words}"
    return "tie-class" if zero else "judge-dependent", told


def _first(
    claim: Claim, pairs: Sequence[Standing], rests: tuple[str, ...], orders: Orders, known: Index, rules: Rules
) -> Evidence:
    agent, dimension = claim.subjects[0], claim.dimension
    published = frozenset(
        which for which in ("plain", "gated", "headline") if orders.leaders.get((dimension, which)) == agent
    )
    each = [
        (one.row.p.get(rules.test, 1.0), one.gated, one.headline) if one.row.high == agent else (1.0, 1.0, 1.0)
        for one in pairs
    ]
    p, p_adjusted, p_headline = map(max, zip(*each, strict=True)) if each else (None, None, None)
    tested = [pair for pair in pairs if pair.row.testable]
    finding: StabilityFinding | None = None
    status: StabilityStatus
    if not known.families:
        status, reason = "judge-dependent", ONE_FAMILY
    elif len(tested) < len(pairs):
        # An agent with pairs that cannot be tested is not first, whatever the others say.
        status, published = "not tested", frozenset()
        others = sorted(one.row.low if one.row.high == agent else one.row.high for one in pairs if one not in tested)
        reason = f"{agent} and {listing(others)} cannot be compared: too few common clusters."
        if tested and all(pair.ordered and pair.row.high == agent for pair in tested):
            with_each = agent_words(len(tested))
            reason = f"{agent} is ahead of each of the {with_each} it was compared with. {reason}"
    elif not published & {"plain", "gated"}:
        needed, status = threshold(orders.level(dimension)), "tie-class"
        reason = f"A lead over every other agent is not resolved (adjusted p-values of all its pairs; {needed})."
        reason = reason if pairs else "There is no other agent."
    else:
        status = min((_survival(dimension, pair, known)[0] for pair in pairs), key=_WORST.index)
        weakest = min(pairs, key=lambda pair: _WORST_STATE.index(pair.stability.state))
        lead = f"The lead over each of the other {counted(len(pairs), 'agent')} is significant"
        worst = p_words(max(pair.plain for pair in pairs))
        about = "" if weakest.stability.state == "stable" else f" (against {weakest.row.low})"
        reason = f"{lead} ({worst} adjusted, at most), {_survival(dimension, weakest, known)[1]}{about}."
        families = tuple(sorted({name for pair in pairs for name in pair.stability.families}))
        finding = StabilityFinding(state=weakest.stability.state, families=families)
    return Evidence(status, reason, rests, tuple(pairs), published, finding, None, p, p_adjusted, p_headline)


def contains_zero(probe: SignedDifference | None) -> bool | None:
    """Whether the interval of a probe contains 0; None where there is no interval to look at."""
    if probe is None or probe.low is None or probe.high is None:
        return None
    return probe.low <= TOLERANCE and probe.high >= -TOLERANCE


def _rests(pair: Standing, dimension: str, known: Index) -> list[str]:
    names = pair.row.high, pair.row.low
    items = [known.contrast(dimension, *names).measurement]
    for kind in ("recusal", "length", "judges"):
        items += _items(kind, dimension, [pair], known)
    drops = (known.drop(dimension, family, *names) for family in known.families)
    items += [item for item in drops if item is not None]
    probe = known.directed("probe.contrast", dimension, *names)
    return [item.id for item in items] + ([] if probe is None else [probe.measurement.id])


def _by_levels(claim: Claim, known: Index) -> Evidence:
    """What levels say where nobody tested their differences: a better level with all judges and without each family."""
    dimension = claim.dimension
    if kind_of(claim) == "within":
        return Evidence("tie-class", f"Nothing was tested: {UNTESTED}.", (), tested=False)
    high = claim.subjects[0]
    others = [claim.subjects[1]] if len(claim.subjects) > 1 else [name for name in known.agents if name != high]
    items = {
        family: {name: known.level(dimension, name, family) for name in (high, *others)}
        for family in (None, *known.families)
    }
    ids = tuple(item.id for by_name in items.values() for item in by_name.values() if item is not None)

    def not_below(family: str | None) -> list[str] | None:
        # Agents with a level at or above that of the first; None where one has no level.
        levels = {name: item.value for name, item in items[family].items() if item is not None}
        values = [levels.get(name) for name in (high, *others)]
        own = values[0]
        if own is None or None in values:
            return None
        return sorted(name for name in others if (levels[name] or 0.0) >= own)

    behind = not_below(None)
    status: StabilityStatus = "judge-dependent"
    if behind is None or behind:
        who = "some agent has no level" if behind is None else f"{listing(behind)} comes before it or level with it"
        return Evidence("tie-class", f"{high} is not ahead: {who} ({UNTESTED}).", ids, tested=False)
    tail = "but no judge family was left out"
    if known.families:
        turned = [family for family in known.families if not_below(family) != []]
        status, tail = "stable", "also without any one judge family"
        if turned:
            probes = [known.directed("probe.contrast", dimension, high, other) for other in others]
            asked = [zero for probe in probes if (zero := contains_zero(probe)) is not None]
            status, tail = (
                "tie-class" if asked and all(asked) else "judge-dependent",
                f"but not without {listing(turned)}",
            )
    return Evidence(status, f"{high} has the higher level ({UNTESTED}), {tail}.", ids, tested=False)


# What else may explain an order: judges' own families, length, an overall impression, these judges and no others.


@dataclass(frozen=True, slots=True)
class Finding:
    """What one test of a bias found about a claim, and the highest level that it leaves (None: any)."""

    field: str
    state: str
    cap: Level | None = None
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measurements: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def _condition(name: str, text: str) -> tuple[Condition, ...]:
    return (Condition(id=name, text=text),)


def own_family_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the order rests on judges that share a family with one of the agents."""
    if unknown := known.panel.get("unknown"):
        said = _condition("families-unknown", f"Families of {unknown} are not given.")
        return Finding("own_family", "unknown", "qualified", conditions=said)
    items = _items("recusal", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    if any(item.value is None for item in items):
        text = "Every judge shares its family with one of the two; no one without an interest has judged this pair."
        if len(evidence.pairs) > 1:
            text = ("Of some pairs every judge shares its family with one of the two; "
                    "no one without an interest has judged them.")  # fmt: skip
        said = _condition("own-family", text)
        return Finding("own_family", "no-disinterested-judge", "qualified", conditions=said, measurements=ids)
    if "plain" not in evidence.published or "gated" in evidence.published or kind_of(claim) == "within":
        return Finding("own_family", "clear", measurements=ids)
    worst = max((pair.gated for pair in evidence.pairs), default=1.0)
    level = orders_of(known, rules).level(claim.dimension)
    values = {"p": worst, "needed": level}
    if any(item.value is not None and item.value < 0 and item.high is not None and item.high < 0 for item in items):
        why = "The order turns without the judges from the agents' own makers."
        return Finding("own_family", "turns-without-own-family", "no-claim", (why,), (), ids, values)
    # Where no judge has an interest in these pairs, the steps of the correction count on pairs where one has.
    why = "The order rests on judges from the agents' own makers: without them" if items else (
        "Where judges stand aside for agents of their own makers, orders that this one waits for do not hold:"
    )  # fmt: skip
    why = f"{why} {p_words(worst)} ({threshold(level)})."
    return Finding("own_family", "rests-on-own-family", "no-claim", (why,), (), ids, values)


def length_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the length of the texts may explain a difference: caps an order at qualified, never lower."""
    items = _items("length", claim.dimension, evidence.pairs, known)
    if not items and known.panel.get("in_parts"):
        text = "Whether length explains the difference was not tested: the table was read in parts."
        return Finding("length", "not-tested", "qualified", (), _condition("length", text))
    if not items:
        return Finding("length", "not-tested")
    ids = tuple(item.id for item in items)
    beside: tuple[Condition, ...] = ()
    if min(float(item.detail.get("overlap", 1.0)) for item in items) < _OVERLAP:
        beside = _condition("overlap", "Their lengths hardly overlap; the adjustment is extrapolated.")
    clear = Finding("length", "clear", None, (), beside, ids)
    if kind_of(claim) == "within":
        # Equal at equal length, too? A gap that length hides is no equivalence.
        (item,) = items
        near = item.detail.get("p_equivalence_at", {})
        p = float(near.get(f"{rules.margin:g}", item.detail.get("p_equivalence", 1.0)))
        if length_floor(item) == 0.0 or p <= rules.alpha + LEVEL_SLACK:
            return clear
        both = " and ".join(sorted(claim.subjects))
        text = f"At equal length {both} are not shown to score within {rules.margin:g} of each other."
        return Finding("length", "may-be-length", "qualified", (), (*_condition("length", text), *beside), ids)
    if "headline" in evidence.published:
        return clear
    words = [(str(item.detail.get("word", "may be length")).replace(" ", "-"), item) for item in items]
    # A family of tests may fail where each of its contrasts would pass alone.
    raised = [("may-be-length" if word == "clear" else word, item) for word, item in words
              if length_floor(item) > 0 and item.value is not None]  # fmt: skip
    order = get_args(LengthState)
    if "gated" not in evidence.published:
        state = max((word for word, _ in words), key=order.index)
        if state == "clear" or "plain" not in evidence.published:
            return Finding("length", state, None if state == "clear" else "qualified", (), (), ids)
    elif not raised and (rules.any_judges or not all(pair.row.disinterested for pair in evidence.pairs)):
        return clear  # another field names what fails
    elif not raised:
        # The two write equally much, but the order needs the others' p-values as they are before length is held equal.
        p_all = p_words(max(pair.headline for pair in evidence.pairs))
        needed = threshold(orders_of(known, rules).level(claim.dimension))
        text = f"with all agents at equal length the order is not resolved ({p_all} adjusted; {needed})."
        said = (*_condition("length", f"It may be length: {text}"), *beside)
        return Finding("length", "may-be-length", "qualified", (), said, ids)
    word, item = max(raised or words, key=lambda found: (order.index(found[0]), found[1].detail.get("p", 0.0)))
    said = (*_condition("length", _length_words(word, item)), *beside)
    return Finding("length", word, "qualified", (), said, ids, {"item": item})


def _length_words(word: str, item: Measurement) -> str:
    high, low, detail = item.labels["high"], item.labels["low"], item.detail
    gap, slope, raw = (float(detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    covariates = detail.get("covariates", ["log2"])
    what = "length" if covariates == ["log2"] else "style"
    lead = f"It is {what}" if word == "length" else f"It may be {what}"
    if slope == 0.0 and what == "length":
        return f"{lead}: each agent always writes the same length."
    longer, other, times = (high, low, 2**gap) if gap > 0 else (low, high, 2**-gap)
    writes = f"{longer} writes {times:.1f} times as much as {other}"
    writes = writes if "log2" in covariates else "texts differ in style"
    explained, why = slope * gap, f"{number(slope)} points a doubling"
    if "slopes" in detail:
        explained = sum(a * b for a, b in zip(detail["slopes"], detail["gaps"], strict=True))
        why = f"differences in {what}"
    if explained < _SHOWN:
        p = p_words(float(detail["p"]))
        return f"{lead}: {writes}, and at equal {what} the difference is not resolved ({p})."
    return f"{lead}: {writes}, and {why} would explain {number(explained)} of {number(raw)}."


def distinct_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges tell a dimension from their overall impression, and whether the difference is more than that."""
    if claim.dimension == AGGREGATE or len(known.dimensions) < 2:
        return Finding("distinct", "not-applicable")
    item = known.get("dimension.distinct", dimension=claim.dimension)
    ids = () if item is None else (item.id,)
    if item is None or item.state.startswith("not measurable"):
        if not known.panel.get("in_parts"):
            return Finding("distinct", "not-tested", measurements=ids)
        text = "Whether judges tell the dimensions apart was not tested: the table was read in parts."
        return Finding("distinct", "not-tested", "qualified", (), _condition("not-told-apart", text), ids)
    where, p = measure_words(claim.dimension), item.detail.get("p_holm")
    if p is None or float(p) > rules.alpha + LEVEL_SLACK:
        text = f"Judges share nothing on {where}."
        if item.value is not None:
            ends = "" if item.low is None or item.high is None else f" [{number(item.low)}, {number(item.high)}]"
            text = f"Judges do not tell {where} from the overall impression (phi {number(item.value)}{ends})."
        return Finding("distinct", "not-told-apart", "qualified", (), _condition("not-told-apart", text), ids)
    gaps = [known.contrast(claim.dimension, pair.row.high, pair.row.low).measurement for pair in evidence.pairs]
    sided = [pair for pair in gaps if pair.value is not None and "others" in pair.detail]
    if any((pair.value or 0.0) < float(pair.detail["others"]) - TOLERANCE for pair in sided):
        text = "The difference is smaller than on the other dimensions: it may be spill-over."
        said = _condition("smaller", text) if evidence.published else ()
        return Finding("distinct", "smaller", "qualified", (), said, ids)
    specific = sided and all(float(pair.detail["p_specific"]) <= rules.alpha for pair in sided)
    more = _condition("specific", f"In particular on {where}.") if specific else ()
    return Finding("distinct", "passed", None, (), more, ids)


def other_judges_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges like these would see the same order."""
    items = _items("judges", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    tested = [item for item in items if item.value is not None]
    state: OtherJudgesState = "not-tested"
    if items and len(tested) == len(evidence.pairs):
        yes = all((item.value or 0.0) > 0 and float(item.detail["p"]) <= rules.alpha + LEVEL_SLACK for item in tested)
        state = "yes" if yes else "no"
    if not rules.any_judges or "headline" in evidence.published or "gated" not in evidence.published:
        return Finding("other_judges", state, measurements=ids)
    said = _condition("other-judges", "It is not shown to hold for other judges.")
    return Finding("other_judges", state, "qualified", (), said, ids)


def missing_of(known: Index, rules: Rules) -> Finding:
    """Replies that are missing: orders of the judges that are left, where one was left out, are qualified."""
    items = [item for item in known.named("missing.share") if "judge" in item.labels and item.value]
    if not items:
        return Finding("missing_replies", "none")
    text, ids = " ".join(missing_words(items, rules.alpha)), tuple(item.id for item in items)
    said = _condition("missing-replies", text)
    if any(item.detail.get("left_out") for item in items):
        return Finding("missing_replies", "left-out", "qualified", (), said, ids)
    return Finding("missing_replies", "tolerated", None, (text,), said, ids)


def missing_words(items: Sequence[Measurement], alpha: float) -> list[str]:
    """Who was left out, what the others lack of the records they were asked about, and of whom more than of others."""
    found, several = [], sum(not item.detail.get("left_out") for item in items) > 2
    lacks = list[str]()
    for item in items:
        judge, lacking = item.labels["judge"], item.detail.get("lacking", {})
        if item.detail.get("left_out"):
            found.append(f"Judge {judge} was left out: {item.detail['left_out']}.")
            continue
        n, of = sum(int(no) for no, _ in lacking.values()), item.detail.get("records")
        share = percent(item.value or 0.0, 1).replace(NBSP, " ")
        lacks.append(f"{judge} {n} of {of}")
        if not several:
            found.append(f"Judge {judge} gave no usable score on {n} of {of} decisions ({share}).")
        more = item.detail.get("p_more", {})
        for agent, (no, asked) in lacking.items():
            if (p := float(more.get(agent, 1.0))) <= alpha:
                rest = f"({n - no} of {of - asked}; {p_words(p)}): what is missing may not be any text."
                who = f"Judge {judge}" if several else "It"
                found.append(f"{who} left out {agent} ({no} of {asked}) more often than the others {rest}")
    return [f"Judges gave no usable score on some decisions: {listing(lacks)}.", *found] if several else found


def flagged_of(evidence: Evidence, known: Index) -> Finding:
    """Texts of the agents compared that address the judge: said with a claim, and no limit of its level."""
    named = known.named("agent.flagged_texts")
    items = [one for one in named if one.value and one.labels["agent"] in evidence.compared]
    if not items:
        return Finding("flagged_texts", "none")
    counts = listing([f"{item.detail['count']} of {item.n} of {item.labels['agent']}" for item in items])
    text = f"Texts address the judge or imitate its prompt ({counts}); they were scored like any other."
    ids = tuple(item.id for item in items)
    return Finding("flagged_texts", "flagged", None, (), _condition("flagged-texts", text), ids)


def clusters_of(claim: Claim, evidence: Evidence, known: Index) -> list[Finding]:
    """Few clusters, and clusters that follow each other in time."""
    found: list[Finding] = []
    details = [
        (pair, known.contrast(claim.dimension, pair.row.high, pair.row.low).measurement.detail)
        for pair in evidence.pairs
    ]
    counts = [int(detail.get("clusters", FEW_CLUSTERS + 1)) for pair, detail in details if pair.row.testable]
    if not counts:
        return found
    item = known.get("order.autocorrelation", dimension=claim.dimension)
    serial = item is not None and item.detail.get("order") == "consecutive"
    few = min(counts)
    if few <= FEW_CLUSTERS:
        said = _condition("few-clusters", f"Few clusters ({few}): this rests on normal errors.")
        found.append(Finding("clusters", "few", conditions=said, values={"n": few}))
    if serial and few < FEW_CONSECUTIVE:
        worth = min(float(detail.get("effective") or detail.get("clusters", 0.0)) for _, detail in details)
        said = _condition("consecutive", f"{few} clusters that follow each other count as about {worth:.0f}.")
        values = {"n": few, "worth": worth}
        found.append(Finding("clusters", "consecutive", "qualified", conditions=said, values=values))
    elif not serial and item is not None and item.detail.get("flagged") and claim.asserts_order:
        value = item.value or 0.0
        text = "Clusters are counted as independent, but neighbours resemble each other"
        text = f"{text} (autocorrelation {number(value)})."
        said, ids = _condition("autocorrelated", text), (item.id,)
        found.append(Finding("clusters", "autocorrelated", "qualified", (), said, ids, {"value": value}))
    return found


def _items(kind: str, dimension: str, pairs: Sequence[Standing], known: Index) -> list[Measurement]:
    """The contrasts of one kind of some pairs, as far as they were measured."""
    labels = ({"dimension": dimension, "high": pair.row.high, "low": pair.row.low} for pair in pairs)
    return [item for label in labels if (item := known.get(f"{kind}.contrast", **label)) is not None]
