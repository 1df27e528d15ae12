"""Whether a claim about agents has evidence and survives leaving out each judge family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Directed, Index
from assaymark.claims.orders import Orders, Standing, orders_of
from assaymark.claims.rules import Rules, threshold
from assaymark.claims.words import agent_words, counted, interval_words, listing, p_words, signed
from assaymark.metrology.cell_rules import TOLERANCE
from assaymark.records import Claim, Level, Measurement, PairState, StabilityFinding, StabilityStatus

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
