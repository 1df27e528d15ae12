"""Whether a claim about agents has evidence and survives leaving out each judge family."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Directed, Index
from assaymark.claims.levels import Rules, threshold
from assaymark.claims.orders import Orders, Standing, length_floor, orders_of
from assaymark.claims.words import agent_words, counted, interval_words, listing, measure_words, number, p_words, signed
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
    OwnFamilyState,
    PairState,
    StabilityFinding,
    StabilityStatus,
)
from assaymark.text import NBSP, percent

ONE_FAMILY = "All judges are of one family, so nothing shows that an order holds without any one of them."
UNTESTED = "significance not tested, as the tables came without contrasts"

_GAP = "{gap}"

_WORST: tuple[StabilityStatus, ...] = ("judge-dependent", "not tested", "tie-class", "stable")
_WORST_STATE = ("not-measurable", "reversed-without", "rests-on", "stable")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What supports a claim about agents: its status, why, and the pairs that it compares.

    ``published`` says which runs of the order procedure publish it. ``gap`` is the difference in words, which only a
    supported claim may show. ``tested`` is False for tables that came without contrasts.
    """

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
        shown = self.gap if level != "no-claim" else ""
        return self.reason.replace(_GAP, shown)


def evidence_of(claim: Claim, known: Index, rules: Rules) -> Evidence:
    """The evidence of a claim about agents.

    An order needs a difference that the order procedure publishes (on the larger p of the contrast and of the one with
    judges standing aside for their own family) and that survives leaving out each judge family by sign and
    significance. Where a drop reverses it, the outside judge decides between a tie and a dependence on the judges.
    """
    if not known.tested(claim.dimension):
        return _by_levels(claim, known)
    orders = orders_of(known, rules)
    kind = kind_of(claim)
    if kind == "first":
        return _first(claim, orders, known, rules)
    pair = orders.pair(claim.dimension, *claim.subjects)
    return _within(claim, pair, known, rules) if kind == "within" else _above(claim, pair, orders, known, rules)


# --- pairs ----------------------------------------------------------------------------------------------------------


def _above(claim: Claim, pair: Standing, orders: Orders, known: Index, rules: Rules) -> Evidence:
    status, reason = _pair_status(claim.dimension, pair, orders, known)
    return Evidence(
        status,
        reason,
        _rests([pair], claim.dimension, known),
        (pair,),
        pair.published,
        pair.stability if pair.published else None,
        pair.state,
        pair.row.p.get(rules.test, 1.0),
        pair.gated,
        pair.headline,
        gap=_gap_words(claim.dimension, pair, known),
    )


def _pair_status(dimension: str, pair: Standing, orders: Orders, known: Index) -> tuple[StabilityStatus, str]:
    high, low = pair.row.high, pair.row.low
    if not known.families:
        return "judge-dependent", ONE_FAMILY
    if not pair.row.testable:
        one, other = sorted((high, low))
        return "not tested", f"{one} and {other}: {known.contrast(dimension, high, low).measurement.state}."
    level = orders.level(dimension)
    if not pair.published & {"plain", "gated"}:
        return "tie-class", f"The difference is not resolved: {p_words(pair.plain)} adjusted, {threshold(level)}."
    lead = f"The difference{_GAP} is significant: {p_words(pair.plain)} adjusted"
    status, told = _survival(dimension, pair, known)
    return status, f"{lead}, {told}."


def _gap_words(dimension: str, pair: Standing, known: Index) -> str:
    item = known.contrast(dimension, pair.row.high, pair.row.low).measurement
    return f" ({signed(item.value or 0.0)} points{interval_words(item.low, item.high)} over {item.n} common cycles)"


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
    words = probe_words(probe)
    status: StabilityStatus = "tie-class" if zero else "judge-dependent"
    return status, f"but it turns without judge family {families}. {words}"


def _within(claim: Claim, pair: Standing, known: Index, rules: Rules) -> Evidence:
    """Whether two agents are shown to score within the margin of each other, also without each judge family."""
    row = pair.row
    one, other = sorted((row.high, row.low))
    rests = _rests([pair], claim.dimension, known)
    numbers = (row.within(rules.margin), pair.p_within)
    if not known.families:
        return Evidence("judge-dependent", ONE_FAMILY, rests, (pair,), state=pair.state, p=numbers[0])
    if not row.testable:
        why = known.contrast(claim.dimension, row.high, row.low).measurement.state
        return Evidence("not tested", f"{one} and {other}: {why}.", rests, (pair,), state=pair.state, p=numbers[0])
    tail = f"{p_words(pair.p_within)} after Holm over all pairs, {threshold(rules.alpha)}"
    if not pair.within:
        reason = f"The two are not shown to score within {rules.margin:g} of each other: {tail}."
        return Evidence("tie-class", reason, rests, (pair,), state=pair.state, p=numbers[0], p_adjusted=numbers[1])
    kept = [_drop_within(claim.dimension, family, row.high, row.low, known, rules) for family in known.families]
    lost = [family for family, stays in zip(known.families, kept, strict=True) if not stays]
    status: StabilityStatus = "tie-class" if lost else "stable"
    told = f"but without {listing(lost)} they are further apart" if lost else "also without any one judge family"
    reason = f"The two score within {rules.margin:g} of each other ({tail}), {told}."
    return Evidence(status, reason, rests, (pair,), frozenset({"gated"}), state=pair.state, p=numbers[0],
                    p_adjusted=numbers[1])  # fmt: skip


def _drop_within(dimension: str, family: str, high: str, low: str, known: Index, rules: Rules) -> bool:
    item = known.drops.get((dimension, family, frozenset((high, low))))
    return item is not None and item.value is not None and abs(item.value) < rules.margin


# --- first places ---------------------------------------------------------------------------------------------------


def _first(claim: Claim, orders: Orders, known: Index, rules: Rules) -> Evidence:
    agent, dimension = claim.subjects[0], claim.dimension
    pairs = orders.of(dimension, agent)
    rests = _rests(pairs, dimension, known)
    published = frozenset(which for which in ("plain", "gated", "headline") if orders.leader(dimension, which) == agent)
    ahead = [pair for pair in pairs if pair.row.high == agent]
    p: dict[str, Any] = {
        name: max(values)
        for name, values in {
            "p": [pair.row.p.get(rules.test, 1.0) if pair in ahead else 1.0 for pair in pairs],
            "p_adjusted": [pair.gated if pair in ahead else 1.0 for pair in pairs],
            "p_adjusted_headline": [pair.headline if pair in ahead else 1.0 for pair in pairs],
        }.items()
        if values
    }
    if not known.families:
        return Evidence("judge-dependent", ONE_FAMILY, rests, tuple(pairs), published, None, None, **p)
    untested = [pair for pair in pairs if not pair.row.testable]
    if untested:
        status, reason = _not_first(agent, pairs, untested)
        return Evidence(status, reason, rests, tuple(pairs), frozenset(), None, None, **p)
    if not published & {"plain", "gated"}:
        needed = threshold(orders.level(dimension))
        reason = f"A lead over every other agent is not resolved (adjusted p-values of all its pairs; {needed})."
        if not pairs:
            reason = "There is no other agent."
        return Evidence("tie-class", reason, rests, tuple(pairs), published, None, None, **p)
    each = [_survival(dimension, pair, known)[0] for pair in pairs]
    status = min(each, key=_WORST.index)
    weakest = min(pairs, key=lambda pair: _WORST_STATE.index(pair.stability.state))
    worst = p_words(max(pair.plain for pair in pairs))
    lead = f"The lead over each of the other {counted(len(pairs), 'agent')} is significant ({worst} adjusted, at most)"
    told = _survival(dimension, weakest, known)[1]
    about = "" if weakest.stability.state == "stable" else f" (against {weakest.row.low})"
    finding = StabilityFinding(
        state=weakest.stability.state,
        families=tuple(sorted({name for pair in pairs for name in pair.stability.families})),
    )
    return Evidence(status, f"{lead}, {told}{about}.", rests, tuple(pairs), published, finding, None, **p)


def _not_first(agent: str, pairs: Sequence[Standing], untested: Sequence[Standing]) -> tuple[StabilityStatus, str]:
    """An agent with pairs that cannot be tested is not first, whatever the others say."""
    others = sorted(pair.row.low if pair.row.high == agent else pair.row.high for pair in untested)
    why = f"{agent} and {listing(others)} cannot be compared: too few common clusters"
    tested = [pair for pair in pairs if pair.row.testable]
    if tested and all("gated" in pair.published and pair.row.high == agent and pair.stability.state == "stable"
                      for pair in tested):  # fmt: skip
        return "not tested", f"{agent} is ahead of each of the {agent_words(len(tested))} it was compared with. {why}."
    return "not tested", f"{why}."


# --- the outside judge ------------------------------------------------------------------------------------------------


def contains_zero(probe: Directed | None) -> bool | None:
    """Whether the interval of a probe contains 0; None where there is no interval to look at."""
    if probe is None or probe.low is None or probe.high is None:
        return None
    return probe.low <= TOLERANCE and probe.high >= -TOLERANCE


def probe_words(probe: Directed) -> str:
    """What the held-out judge said of a pair, without the direction that is not supported."""
    judge = probe.measurement.detail.get("judge")
    who = f"The held-out judge {judge}" if judge else "The held-out judge"
    if contains_zero(probe):
        return f"{who} was asked; its interval contains 0"
    p = probe.measurement.detail.get("p")
    tested = f" ({p_words(float(p))})" if isinstance(p, (int, float)) else ""
    return f"{who} was asked; it finds a difference{tested}"


def _rests(pairs: Sequence[Standing], dimension: str, known: Index) -> tuple[str, ...]:
    """The measurements that the standing of some pairs follows from."""
    found: list[str] = []
    for pair in pairs:
        key = ("rests", dimension, pair.row.high, pair.row.low)
        if key not in known.memo:
            known.memo[key] = _rests_of(pair.row.high, pair.row.low, dimension, known)
        found += known.memo[key]
    return tuple(dict.fromkeys(found))


def _rests_of(high: str, low: str, dimension: str, known: Index) -> list[str]:
    names: list[Measurement | None] = [known.contrast(dimension, high, low).measurement]
    names += [known.get(f"{kind}.contrast", dimension=dimension, high=high, low=low)
              for kind in ("recusal", "length", "judges")]  # fmt: skip
    names += [known.drops.get((dimension, family, frozenset((high, low)))) for family in known.families]
    probe = known.directed("probe.contrast", dimension, high, low)
    names += [] if probe is None else [probe.measurement]
    return [item.id for item in names if item is not None]


# --- tables without contrasts -----------------------------------------------------------------------------------------


def _by_levels(claim: Claim, known: Index) -> Evidence:
    """What levels say where nobody tested their differences: a better level with all judges and without each family."""
    dimension = claim.dimension
    if kind_of(claim) == "within":
        return Evidence("tie-class", f"Nothing was tested: {UNTESTED}.", (), tested=False)
    high = claim.subjects[0]
    others = [claim.subjects[1]] if len(claim.subjects) > 1 else [name for name in known.agents if name != high]
    ids = [
        item.id
        for family in (None, *known.families)
        for name in (high, *others)
        if (item := known.level(dimension, name, family)) is not None
    ]
    behind = _not_below(dimension, high, others, None, known)
    if behind is None or behind:
        who = "some agent has no level" if behind is None else f"{listing(behind)} comes before it or level with it"
        return Evidence("tie-class", f"{high} is not ahead: {who} ({UNTESTED}).", tuple(ids), tested=False)
    turned = [family for family in known.families if _not_below(dimension, high, others, family, known) != []]
    if not known.families:
        reason = f"{high} has the higher level ({UNTESTED}), but no judge family was left out."
        return Evidence("judge-dependent", reason, tuple(ids), tested=False)
    if not turned:
        reason = f"{high} has the higher level ({UNTESTED}), also without any one judge family."
        return Evidence("stable", reason, tuple(ids), tested=False)
    probes = [known.directed("probe.contrast", dimension, high, other) for other in others]
    asked = [probe for probe in probes if contains_zero(probe) is not None]
    tie = bool(asked) and all(contains_zero(probe) for probe in asked)
    reason = f"{high} has the higher level ({UNTESTED}), but not without {listing(turned)}."
    return Evidence("tie-class" if tie else "judge-dependent", reason, tuple(ids), tested=False)


def _not_below(dimension: str, agent: str, others: Sequence[str], family: str | None, known: Index) -> list[str] | None:
    """Agents with a level at or above that of ``agent``; None where one has no level."""
    levels = {name: item.value if (item := known.level(dimension, name, family)) else None for name in (agent, *others)}
    own = levels[agent]
    if own is None or any(value is None for value in levels.values()):
        return None
    return sorted(name for name in others if (levels[name] or 0.0) >= own)


# What else may explain an order: judges' own families, length, an overall impression, these judges and no others.


FEW_CLUSTERS = 5
FEW_CONSECUTIVE = 24
_OVERLAP = 0.2
_SHOWN = 0.005  # points; less reads as 0.00


@dataclass(frozen=True, slots=True)
class Finding:
    """What one test of a bias found about a claim, and the highest level that it leaves (None: any).

    ``values`` are what its sentence is made of, for those who word it in another language.
    """

    field: str
    state: str
    cap: Level | None = None
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measurements: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def own_family_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the order rests on judges that share a family with one of the agents."""
    if unknown := known.families_unknown:
        text = f"Families of {unknown} are not given."
        return Finding("own_family", "unknown", "qualified", conditions=(Condition(id="families-unknown", text=text),))
    items = _items("recusal.contrast", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    if any(item.value is None for item in items):
        text = (
            "Every judge shares its family with one of the two; no one without an interest has judged this pair."
            if len(evidence.pairs) == 1
            else "Of some pairs every judge shares its family with one of the two; no one without an interest has "
            "judged them."
        )
        return Finding("own_family", "no-disinterested-judge", "qualified",
                       conditions=(Condition(id="own-family", text=text),), measurements=ids)  # fmt: skip
    if "plain" not in evidence.published or "gated" in evidence.published or kind_of(claim) == "within":
        return Finding("own_family", "clear", measurements=ids)
    turned = [item for item in items if _excludes_zero_below(item)]
    worst = max((pair.gated for pair in evidence.pairs), default=1.0)
    level = orders_of(known, rules).level(claim.dimension)
    if turned:
        why = "The order turns without the judges from the agents' own makers."
    else:
        numbers = f"{p_words(worst)} ({threshold(level)})"
        own = "The order rests on judges from the agents' own makers: without them"
        # No judge has an interest in these pairs, but the steps of the correction count on pairs where one has.
        others = "Where judges stand aside for agents of their own makers, orders that this one waits for do not hold:"
        why = f"{own if items else others} {numbers}."
    state: OwnFamilyState = "turns-without-own-family" if turned else "rests-on-own-family"
    return Finding("own_family", state, "no-claim", (why,), (), ids, {"p": worst, "needed": level})


def length_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the length of the texts may explain a difference: caps an order at qualified, never lower."""
    items = _items("length.contrast", claim.dimension, evidence.pairs, known)
    if not items and known.in_parts:
        text = "Whether length explains the difference was not tested: the table was read in parts."
        return Finding("length", "not-tested", "qualified", (), (Condition(id="length", text=text),))
    if not items:
        return Finding("length", "not-tested")
    ids = tuple(item.id for item in items)
    overlap = min((float(item.detail.get("overlap", 1.0)) for item in items), default=1.0)
    beside = (
        (Condition(id="overlap", text="Their lengths hardly overlap; the adjustment is extrapolated."),)
        if overlap < _OVERLAP
        else ()
    )
    if kind_of(claim) == "within":
        return _length_within(claim, items, beside, rules)
    if "headline" in evidence.published:
        return Finding("length", "clear", None, (), beside, ids)
    words = [(str(item.detail.get("word", "may be length")).replace(" ", "-"), item) for item in items]
    held = [(word, item) for word, item in words if length_floor(item) > 0 and item.value is not None]
    # A family of tests may fail where each of its contrasts would pass alone.
    raised = [("may-be-length" if word == "clear" else word, item) for word, item in held]
    order = get_args(LengthState)
    if "gated" not in evidence.published:
        state = max((word for word, _ in words), key=order.index)
        if state == "clear" or "plain" not in evidence.published:
            return Finding("length", state, None if state == "clear" else "qualified", (), (), ids)
    elif not raised and (rules.any_judges or not all(pair.row.disinterested for pair in evidence.pairs)):
        return Finding("length", "clear", None, (), beside, ids)  # another field names what fails
    elif not raised:
        # The two write equally much, but the order needs the others' p-values as they are before length is held equal.
        p = p_words(max(pair.headline for pair in evidence.pairs))
        needed = threshold(orders_of(known, rules).level(claim.dimension))
        text = f"It may be length: with all agents at equal length the order is not resolved ({p} adjusted; {needed})."
        return Finding("length", "may-be-length", "qualified", (), (Condition(id="length", text=text), *beside), ids)
    word, item = max(raised or words, key=lambda found: (order.index(found[0]), found[1].detail.get("p", 0.0)))
    said = (Condition(id="length", text=_length_words(word, item)), *beside)
    return Finding("length", word, "qualified", (), said, ids, {"item": item})


def _length_within(claim: Claim, items: Sequence[Measurement], beside: tuple[Condition, ...], rules: Rules) -> Finding:
    """Equal at equal length, too? A gap that length hides is no equivalence."""
    (item,) = items
    ids = (item.id,)
    near = item.detail.get("p_equivalence_at", {})
    p = float(near.get(f"{rules.margin:g}", item.detail.get("p_equivalence", 1.0)))
    if length_floor(item) == 0.0 or p <= rules.alpha + LEVEL_SLACK:
        return Finding("length", "clear", None, (), beside, ids)
    one, other = sorted(claim.subjects)
    text = f"At equal length {one} and {other} are not shown to score within {rules.margin:g} of each other."
    return Finding("length", "may-be-length", "qualified", (), (Condition(id="length", text=text), *beside), ids)


def _length_words(word: str, item: Measurement) -> str:
    high, low, detail = item.labels["high"], item.labels["low"], item.detail
    gap, slope, raw = (float(detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    covariates = detail.get("covariates", ["log2"])
    what = "length" if covariates == ["log2"] else "style"
    lead = f"It is {what}" if word == "length" else f"It may be {what}"
    if slope == 0.0 and what == "length":
        return f"{lead}: each agent always writes the same length."
    explained = (
        sum(a * b for a, b in zip(detail["slopes"], detail["gaps"], strict=True)) if "slopes" in detail else slope * gap
    )
    longer, other, times = (high, low, 2**gap) if gap > 0 else (low, high, 2**-gap)
    writes = (
        f"{longer} writes {times:.1f} times as much as {other}" if "log2" in covariates else "texts differ in style"
    )
    if explained < _SHOWN:
        p = p_words(float(detail["p"]))
        return f"{lead}: {writes}, and at equal {what} the difference is not resolved ({p})."
    if "slopes" in detail:
        return f"{lead}: {writes}, and differences in {what} would explain {number(explained)} of {number(raw)}."
    return (
        f"{lead}: {writes}, and {number(slope)} points a doubling would explain {number(explained)} of {number(raw)}."
    )


def distinct_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges tell a dimension from their overall impression, and whether the difference is more than that."""
    if claim.dimension == AGGREGATE or len(known.dimensions) < 2:
        return Finding("distinct", "not-applicable")
    item = known.get("dimension.distinct", dimension=claim.dimension)
    if item is None or item.state.startswith("not measurable"):
        if known.in_parts:
            text = "Whether judges tell the dimensions apart was not tested: the table was read in parts."
            said = (Condition(id="not-told-apart", text=text),)
            return Finding("distinct", "not-tested", "qualified", (), said, () if item is None else (item.id,))
        return Finding("distinct", "not-tested", measurements=() if item is None else (item.id,))
    where, ids = measure_words(claim.dimension), (item.id,)
    p = item.detail.get("p_holm")
    if p is None or float(p) > rules.alpha + LEVEL_SLACK:
        if item.value is None:
            text = f"Judges share nothing on {where}."
        else:
            ends = "" if item.low is None or item.high is None else f" [{number(item.low)}, {number(item.high)}]"
            text = f"Judges do not tell {where} from the overall impression (phi {number(item.value)}{ends})."
        condition = Condition(id="not-told-apart", text=text)
        return Finding("distinct", "not-told-apart", "qualified", (), (condition,), ids)
    gaps = [known.contrast(claim.dimension, pair.row.high, pair.row.low).measurement for pair in evidence.pairs]
    sided = [pair for pair in gaps if pair.value is not None and "others" in pair.detail]
    if any((pair.value or 0.0) < float(pair.detail["others"]) - TOLERANCE for pair in sided):
        text = "The difference is smaller than on the other dimensions: it may be spill-over."
        spill = [Condition(id="smaller", text=text)] if evidence.published else []
        return Finding("distinct", "smaller", "qualified", (), tuple(spill), ids)
    specific = sided and all(float(pair.detail["p_specific"]) <= rules.alpha for pair in sided)
    more = [Condition(id="specific", text=f"In particular on {where}.")] if specific else []
    return Finding("distinct", "passed", None, (), tuple(more), ids)


def other_judges_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges like these would see the same order."""
    items = _items("judges.contrast", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    tested = [item for item in items if item.value is not None]
    state: OtherJudgesState = "not-tested"
    if items and len(tested) == len(evidence.pairs):
        yes = all((item.value or 0.0) > 0 and float(item.detail["p"]) <= rules.alpha + LEVEL_SLACK for item in tested)
        state = "yes" if yes else "no"
    if not rules.any_judges or "headline" in evidence.published or "gated" not in evidence.published:
        return Finding("other_judges", state, measurements=ids)
    text = "It is not shown to hold for other judges."
    return Finding("other_judges", state, "qualified", (), (Condition(id="other-judges", text=text),), ids)


def missing_of(known: Index, rules: Rules) -> Finding:
    """Replies that are missing: orders of the judges that are left, where one was left out, are qualified."""
    items = [item for item in known.named("missing.share") if "judge" in item.labels and item.value]
    if not items:
        return Finding("missing_replies", "none")
    text, ids = " ".join(missing_words(items, rules.alpha)), tuple(item.id for item in items)
    said = (Condition(id="missing-replies", text=text),)
    if any(item.detail.get("left_out") for item in items):
        return Finding("missing_replies", "left-out", "qualified", (), said, ids)
    return Finding("missing_replies", "tolerated", None, (text,), said, ids)


def missing_words(items: Sequence[Measurement], alpha: float) -> list[str]:
    """Who was left out, what the others lack of the records they were asked about, and of whom more than of others.

    ``items`` are ``missing.share`` of judges.
    """
    found = []
    for item in items:
        judge, lacking = item.labels["judge"], item.detail.get("lacking", {})
        if item.detail.get("left_out"):
            found.append(f"Judge {judge} was left out: {item.detail['left_out']}.")
            continue
        n, of = sum(int(no) for no, _ in lacking.values()), item.detail.get("records")
        share = percent(item.value or 0.0, 1).replace(NBSP, " ")
        found.append(f"Judge {judge} gave no usable score on {n} of {of} decisions ({share}).")
        more = item.detail.get("p_more", {})
        for agent, (no, asked) in lacking.items():
            if (p := float(more.get(agent, 1.0))) <= alpha:
                found.append(
                    f"It left out {agent} ({no} of {asked}) more often than the others "
                    f"({n - no} of {of - asked}; {p_words(p)}): what is missing may not be any text."
                )
    return found


def flagged_of(evidence: Evidence, known: Index) -> Finding:
    """Texts of the agents compared that address the judge: said with a claim, and no limit of its level."""
    agents = {name for pair in evidence.pairs for name in (pair.row.high, pair.row.low)}
    items = [one for one in known.named("agent.flagged_texts") if one.value and one.labels["agent"] in agents]
    if not items:
        return Finding("flagged_texts", "none")
    counts = listing([f"{one.detail['count']} of {one.n} of {one.labels['agent']}" for one in items])
    text = f"Texts address the judge or imitate its prompt ({counts}); they were scored like any other."
    said = (Condition(id="flagged-texts", text=text),)
    return Finding("flagged_texts", "flagged", None, (), said, tuple(one.id for one in items))


def clusters_of(claim: Claim, evidence: Evidence, known: Index) -> list[Finding]:
    """Few clusters, and clusters that follow each other in time."""
    found: list[Finding] = []
    counts = [_clusters(claim.dimension, pair, known) for pair in evidence.pairs if pair.row.testable]
    if not counts:
        return found
    item = known.get("order.autocorrelation", dimension=claim.dimension)
    serial = item is not None and item.detail.get("order") == "consecutive"
    few = min(counts)
    if few <= FEW_CLUSTERS:
        text = f"Few clusters ({few}): this rests on normal errors."
        said = (Condition(id="few-clusters", text=text),)
        found.append(Finding("clusters", "few", conditions=said, values={"n": few}))
    if serial and few < FEW_CONSECUTIVE:
        worth = min(_effective(claim.dimension, pair, known) for pair in evidence.pairs)
        text = f"{few} clusters that follow each other count as about {worth:.0f}."
        said = (Condition(id="consecutive", text=text),)
        values = {"n": few, "worth": worth}
        found.append(Finding("clusters", "consecutive", "qualified", conditions=said, values=values))
    elif not serial and item is not None and item.detail.get("flagged") and claim.asserts_order:
        text = (
            f"Clusters were declared exchangeable, but follow each other (autocorrelation {number(item.value or 0)})."
        )
        said, values = (Condition(id="autocorrelated", text=text),), {"value": item.value or 0.0}
        found.append(
            Finding("clusters", "autocorrelated", "qualified", (), said, measurements=(item.id,), values=values)
        )
    return found


def scope_words(state: str, judges: int) -> str:
    """Whose scores a sentence is about: these judges', unless it holds for others like them.

    >>> scope_words("no", 3), scope_words("yes", 3)
    (' in the scores of these 3 judges', '')
    """
    if state == "yes":
        return ""
    return f" in the scores of {'this judge' if judges == 1 else f'these {judges} judges'}"


def _items(name: str, dimension: str, pairs: Sequence[Standing], known: Index) -> list[Measurement]:
    found = (known.get(name, dimension=dimension, high=pair.row.high, low=pair.row.low) for pair in pairs)
    return [item for item in found if item is not None]


def _excludes_zero_below(item: Measurement) -> bool:
    """Whether an interval lies on the other side of zero."""
    return item.value is not None and item.value < 0 and item.high is not None and item.high < 0


def _clusters(dimension: str, pair: Standing, known: Index) -> int:
    return int(
        known.contrast(dimension, pair.row.high, pair.row.low).measurement.detail.get("clusters", FEW_CLUSTERS + 1)
    )


def _effective(dimension: str, pair: Standing, known: Index) -> float:
    detail = known.contrast(dimension, pair.row.high, pair.row.low).measurement.detail
    return float(detail.get("effective") or detail.get("clusters", 0.0))
