"""Whether a claim has evidence and survives without any one judge family; what the outside judge decides where not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from assaymark.claims.candidates import kind_of, tie_claim
from assaymark.claims.evidence import Index
from assaymark.claims.leaders import levels_above, met_by
from assaymark.claims.pairs import (
    Pair,
    TieClass,
    classes_of,
    contains_zero,
    inherited_words,
    lost_words,
    pair_of,
    probe_words,
    probed_class,
)
from assaymark.claims.rules import Rules, threshold
from assaymark.claims.words import counted, listing, p_words, signed
from assaymark.records import Claim, StabilityStatus

UNTESTED = "significance not tested, as the tables came without contrasts"


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the claim holds beyond noise and without any one judge family.

    ``tested`` is False for tables that came without contrasts.
    """

    status: StabilityStatus
    reason: str
    measurements: tuple[str, ...]
    tested: bool = True


def standing_of(claim: Claim, known: Index, rules: Rules) -> Standing:
    """Whether the claim has evidence after Holm, survives the loss of each judge family, or forms a class.

    An order claim needs both evidence and drops: with equal agents a leader survives every drop in most simulated
    studies, so a contrast that is not significant makes the claim a tie class whatever the drops say. Where it is
    significant and a drop moves it, the outside judge decides: an interval that contains 0 makes a tie class, also for
    pairs that are linked to the probed one by unresolved pairs; no interval, or one that excludes 0, leaves the claim
    dependent on the judges.
    """
    key: Hashable = ("standing", claim.id, claim.statement, rules.evidence)
    if key not in known.memo:
        known.memo[key] = _standing(claim, known, rules)
    found: Standing = known.memo[key]
    return found


def _standing(claim: Claim, known: Index, rules: Rules) -> Standing:
    kind = kind_of(claim)
    if kind == "pair":
        return _pair(claim.dimension, claim.subjects[0], claim.subjects[1], known, rules)
    if kind == "first":
        make = _first if known.tested(claim.dimension) else _first_untested
        return make(claim.dimension, claim.subjects[0], known, rules)
    if kind == "ranking":
        return _ranking(claim.dimension, claim.subjects, known, rules)
    return _tie(claim, known, rules)


# --- pairs ----------------------------------------------------------------------------------------------------------


def _pair(dimension: str, high: str, low: str, known: Index, rules: Rules) -> Standing:
    pair = pair_of(dimension, high, low, known, rules)
    tested = known.tested(dimension)
    if pair.difference is None:
        return Standing("tie-class", _apart(pair, tested), pair.measurements, tested)
    if pair.resolution == "no evidence" or pair.high != high:
        beside = _beside(dimension, pair, known, rules)
        rests = _with_class(dimension, pair, known, rules)
        reason = f"{_gap_words(pair, tested)} is not significant: {_p_words(pair, rules)}{beside}."
        return Standing("tie-class", reason, rests, tested)
    lead = (
        f"{_gap_words(pair, tested)} is significant: {p_words(pair.p)} after Holm"
        if pair.p is not None
        else (f"{_gap_words(pair, tested)} holds with all judges ({UNTESTED})")
    )
    if pair.resolution == "stable":
        return Standing("stable", f"{lead}, and it survives the loss of each judge family.", pair.measurements, tested)
    moved = lost_words(pair.lost) or "no judge family was left out"
    status, told = _by_probe(dimension, [(high, low)], known, rules)
    reason = f"{lead}, but it depends on the judges: {moved}{told}."
    return Standing(status, reason, _with_class(dimension, pair, known, rules), tested)


def _apart(pair: Pair, tested: bool) -> str:
    if tested:
        return f"{pair.high} and {pair.low} never answered the same question, and no order goes through third agents."
    return f"One of {pair.high} and {pair.low} has no level."


def _gap_words(pair: Pair, tested: bool) -> str:
    gap = signed(pair.difference or 0.0)
    return f"The gap ({gap} points over {pair.n} common cycles)" if tested else f"The gap ({gap} points)"


def _p_words(pair: Pair, rules: Rules) -> str:
    return "the levels are equal" if pair.p is None else f"{p_words(pair.p)} after Holm, {threshold(rules)}"


def _beside(dimension: str, pair: Pair, known: Index, rules: Rules) -> str:
    """What drops and the outside judge add for a pair without evidence."""
    parts = [lost_words(pair.lost)] if pair.lost and known.families else []
    group = probed_class(dimension, pair.high, pair.low, known, rules)
    if contains_zero(pair.probe) is not None and pair.probe is not None:
        parts.append(probe_words(pair.high, pair.low, pair.probe))
    elif group is not None:
        parts.append(inherited_words(group))
    return "".join(f". {part[:1].upper()}{part[1:]}" for part in parts)


def _with_class(dimension: str, pair: Pair, known: Index, rules: Rules) -> tuple[str, ...]:
    """The measurements of a pair, and of the probed pairs whose class it stands in."""
    group = probed_class(dimension, pair.high, pair.low, known, rules)
    asked = [] if group is None else [pair_of(dimension, *two, known, rules) for two in group.probed]
    probes = [two.probe.measurement.id for two in asked if two.probe is not None]
    return tuple(dict.fromkeys([*pair.measurements, *probes]))


def _by_probe(
    dimension: str, contested: Sequence[tuple[str, str]], known: Index, rules: Rules
) -> tuple[StabilityStatus, str]:
    """What the outside judge makes of the pairs that a drop reversed: (status, words to add to the reason)."""
    told, open_pairs, opposed = [], [], False
    for high, low in contested:
        probe = known.directed("probe.contrast", dimension, high, low)
        zero = contains_zero(probe)
        group = probed_class(dimension, high, low, known, rules)
        if probe is not None and zero is not None:
            told.append(probe_words(high, low, probe))
            opposed |= not zero
        elif group is not None:
            told.append(inherited_words(group))
        else:
            open_pairs.append(f"{high} and {low}")
    if open_pairs:
        about = "" if len(contested) == 1 else f" about {listing(open_pairs)}"
        told.append(f"no outside judge was asked{about}")
    status: StabilityStatus = "judge-dependent" if opposed or open_pairs else "tie-class"
    words = "".join(f", and {part}" if part.startswith("no ") else f". {part}" for part in told)
    return status, words


# --- first places ---------------------------------------------------------------------------------------------------


def _first(dimension: str, agent: str, known: Index, rules: Rules) -> Standing:
    adjusted = known.first_adjusted(dimension, agent, rules.test)
    met = met_by(dimension, agent, known)
    rests = [known.contrast(dimension, agent, other).measurement.id for other in sorted(adjusted)]
    if not met:
        return Standing("tie-class", f"{agent} met no other agent on a common question.", tuple(rests))
    unresolved = sorted(other for other in met if adjusted[other] > rules.alpha)
    if unresolved:
        return Standing("tie-class", _unresolved_reason(dimension, agent, unresolved, met, known), tuple(rests))
    worst = max(adjusted[other] for other in met)
    lead = f"Its lead over {'every agent' if len(met) == len(adjusted) else 'each agent that it met'} is significant"
    return _first_drops(dimension, agent, met, f"{lead}: {p_words(worst)} after Holm", rests, known, rules)


def _first_untested(dimension: str, agent: str, known: Index, rules: Rules) -> Standing:
    others = met_by(dimension, agent, known)
    ahead = levels_above(dimension, agent, others, None, known)
    rests = _level_ids(dimension, sorted({agent, *others}), None, known)
    if ahead is None or ahead:
        reason = f"With all judges {_ahead_words(ahead)}; {UNTESTED}."
        return Standing("tie-class", reason, tuple(rests), tested=False)
    lead = f"Its level is the highest ({UNTESTED})"
    return _first_drops(dimension, agent, others, lead, rests, known, rules)


def _first_drops(
    dimension: str, agent: str, met: set[str], lead: str, rests: list[str], known: Index, rules: Rules
) -> Standing:
    tested = known.tested(dimension)
    moved, contested, unknown = [], dict[str, None](), not known.families
    for family in (None, *known.families):
        ahead = levels_above(dimension, agent, met, family, known)
        rests += _level_ids(dimension, sorted({agent, *met}), family, known)
        if ahead is None or ahead:
            moved.append(f"without {family or 'nobody'} {_ahead_words(ahead)}")
            contested |= dict.fromkeys(ahead or ())
            unknown |= ahead is None
    ids = tuple(dict.fromkeys(rests))
    if not moved and not unknown:
        return Standing("stable", f"{lead}, and it survives the loss of each judge family.", ids, tested)
    about = "; ".join(moved) or "no judge family was left out"
    status, told = _by_probe(dimension, [(agent, other) for other in contested], known, rules)
    if unknown:
        status = "judge-dependent"
        told = told or ", and no outside judge was asked"
    probes = _probe_ids(dimension, [(agent, other) for other in contested], known, rules)
    return Standing(status, f"{lead}, but it depends on the judges: {about}{told}.", (*ids, *probes), tested)


def _probe_ids(dimension: str, contested: Sequence[tuple[str, str]], known: Index, rules: Rules) -> tuple[str, ...]:
    pairs = [pair_of(dimension, *two, known, rules) for two in contested]
    ids = [name for pair in pairs for name in _with_class(dimension, pair, known, rules)]
    return tuple(name for name in dict.fromkeys(ids) if name.startswith("probe."))


def _ahead_words(ahead: Sequence[str] | None) -> str:
    return "its place is not measured" if ahead is None else f"{', '.join(ahead)} comes before it"


def _unresolved_reason(dimension: str, agent: str, unresolved: Sequence[str], met: set[str], known: Index) -> str:
    ahead = [other for other in unresolved if known.contrast(dimension, agent, other).high != agent]
    against = f", and {len(ahead)} of them {'scores' if len(ahead) == 1 else 'score'} higher" if ahead else ""
    of = f"{len(unresolved)} of the {len(met)} agents" if len(met) > 1 else "the one agent"
    return f"Its difference from {of} that it met is not a significant lead after Holm{against}."


def _level_ids(dimension: str, agents: Sequence[str], family: str | None, known: Index) -> list[str]:
    found = (known.level(dimension, agent, family) for agent in agents)
    return [item.id for item in found if item is not None]


# --- rankings and classes -------------------------------------------------------------------------------------------


def _ranking(dimension: str, order: Sequence[str], known: Index, rules: Rules) -> Standing:
    """A whole order stands on the contrasts between neighbours, and on its own survival under every drop."""
    tested = known.tested(dimension)
    steps = list(pairwise(order))
    pairs = [pair_of(dimension, *step, known, rules) for step in steps]
    rests = [name for pair in pairs for name in pair.measurements]
    rests += [name for family in (None, *known.families) for name in _level_ids(dimension, order, family, known)]
    weak = [
        step
        for step, pair in zip(steps, pairs, strict=True)
        if pair.resolution in ("no evidence", "never met") or (pair.high, pair.low) != step
    ]
    if weak:
        return Standing("tie-class", _weak_words(weak, len(steps), tested), tuple(dict.fromkeys(rests)), tested)
    lead = f"Each of the {counted(len(steps), 'step')} between neighbours is significant after Holm"
    if not tested:
        lead = f"The levels are in this order ({UNTESTED})"
    contested, moved, unknown = dict[tuple[str, str], None](), [], not known.families
    for family in known.families:
        levels = [known.level(dimension, agent, family) for agent in order]
        values = [None if item is None else item.value for item in levels]
        turned = [
            step
            for step, upper, lower in zip(steps, values, values[1:], strict=False)
            if upper is None or lower is None or upper <= lower
        ]
        if turned:
            moved.append(f"without {family} {listing([f'{low} comes before {high}' for high, low in turned])}")
            contested |= dict.fromkeys(turned)
        unknown |= any(value is None for value in values)
    if not moved and not unknown:
        reason = f"{lead}, and the order survives the loss of each judge family."
        return Standing("stable", reason, tuple(dict.fromkeys(rests)), tested)
    status, told = _by_probe(dimension, list(contested), known, rules)
    about = "; ".join(moved) or "no judge family was left out"
    if unknown:
        status, told = "judge-dependent", told or ", and no outside judge was asked"
    ids = tuple(dict.fromkeys([*rests, *_probe_ids(dimension, list(contested), known, rules)]))
    return Standing(status, f"{lead}, but the order depends on the judges: {about}{told}.", ids, tested)


def _weak_words(weak: Sequence[tuple[str, str]], steps: int, tested: bool) -> str:
    what = "significant after Holm" if tested else f"a step down ({UNTESTED})"
    return (
        f"{len(weak)} of the {counted(steps, 'step')} between neighbours "
        f"{'is' if len(weak) == 1 else 'are'} not {what}: {listing([f'{high} over {low}' for high, low in weak])}."
    )


def _tie(claim: Claim, known: Index, rules: Rules) -> Standing:
    """A class stands as long as exactly these agents form it, with exactly these orders established inside."""
    tested = known.tested(claim.dimension)
    group = next((one for one in classes_of(claim.dimension, known, rules) if one.agents == claim.subjects), None)
    if group is None or tie_claim(claim.dimension, group).statement != claim.statement:
        return Standing("judge-dependent", "Under this rule they do not form this class.", (), tested)
    pairs = [pair_of(claim.dimension, *two, known, rules) for two in combinations(group.agents, 2)]
    rests = dict.fromkeys(name for pair in pairs for name in pair.measurements)
    return Standing("tie-class", _tie_words(group, pairs, tested), tuple(rests), tested)


def _tie_words(group: TieClass, pairs: Sequence[Pair], tested: bool) -> str:
    count = {name: sum(pair.resolution == name for pair in pairs) for name in ("no evidence", "never met", "stable")}
    moved = sum(pair.resolution in ("tied", "opposed", "open") for pair in pairs)
    what = "not significant after Holm" if tested else "without a difference in level"
    parts = [f"{count['no evidence']} {what}"] if count["no evidence"] else []
    parts += [f"{moved} depending on the judges"] if moved else []
    parts += [f"{count['never met']} never compared"] if count["never met"] else []
    parts += [f"{count['stable']} established"] if count["stable"] else []
    told = f"Pairs among them: {listing(parts)}."
    asked = [pair for pair in pairs if (pair.high, pair.low) in group.probed and pair.probe is not None]
    for pair in asked:
        told += f" {probe_words(pair.high, pair.low, pair.probe)}." if pair.probe is not None else ""
    if asked and len(asked) < len(pairs):
        told += " The pairs that were not put to it stand in one class with those that were."
    return told if tested else f"{told} Here {UNTESTED}."
