"""Where one pair of agents stands: its evidence, the drops that reverse it, and what the outside judge says of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from assaymark.claims.evidence import Directed, Index
from assaymark.claims.leaders import leader_of
from assaymark.claims.rules import Rules
from assaymark.claims.words import interval_words, listing, signed
from assaymark.metrology.cell_rules import TOLERANCE

Resolution = Literal["stable", "no evidence", "never met", "tied", "opposed", "open"]
"""How far the order of a pair is resolved.

``stable``: significant, and no drop reverses it. ``no evidence``: not significant. ``never met``: no common question.
The others are significant but reversed by a drop: ``tied`` if the outside judge's interval contains 0, ``opposed`` if
it does not, ``open`` if there is none.
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair on one dimension, in the direction the panel saw.

    ``p`` is Holm-adjusted, None where nothing was tested. ``lost`` holds each judge family without which the difference
    is not positive, with the difference that is left (None: not measured).
    """

    high: str
    low: str
    difference: float | None
    p: float | None
    n: int
    lost: tuple[tuple[str, float | None], ...]
    probe: Directed | None
    resolution: Resolution
    measurements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TieClass:
    """Agents that are linked by pairs without an established order; ``established`` are the orders within it.

    ``probed`` are its pairs, linked or not, in which the outside judge's interval contains 0.
    """

    agents: tuple[str, ...]
    established: tuple[tuple[str, str], ...]
    probed: tuple[tuple[str, str], ...]


def pair_of(dimension: str, one: str, other: str, known: Index, rules: Rules) -> Pair:
    """The state of a pair under ``rules``, whichever of the two is named first."""
    key: Hashable = ("pair", dimension, frozenset((one, other)), rules.evidence)
    if key not in known.memo:
        make = _tested if known.tested(dimension) else _untested
        known.memo[key] = make(dimension, one, other, known, rules)
    found: Pair = known.memo[key]
    return found


def direction(dimension: str, one: str, other: str, known: Index) -> tuple[str, str]:
    """Which of two agents the panel saw higher: by their contrast, or by their levels where there is none."""
    if known.tested(dimension):
        contrast = known.contrast(dimension, one, other)
        return contrast.high, contrast.low
    gap = _gap(dimension, one, other, None, known)
    first, second = sorted((one, other))
    if gap is None or gap == 0:
        return first, second
    return (one, other) if gap > 0 else (other, one)


def classes_of(dimension: str, known: Index, rules: Rules) -> tuple[TieClass, ...]:
    """The classes of agents on a dimension, by their first agent's name.

    A class is a connected component of pairs whose order is not established. Pairs that never met link nothing, since
    nothing was measured between them; nor does an agent whose first place stands.
    """
    return _grouped(dimension, frozenset({"no evidence", "tied", "opposed", "open"}), known, rules)


def probed_class(dimension: str, one: str, other: str, known: Index, rules: Rules) -> TieClass | None:
    """The connected component of unresolved pairs that holds this pair, if the outside judge ties one of its pairs.

    A pair to which the outside judge gave an order is not unresolved, and links nothing here.
    """
    if dimension not in known.probed:
        return None
    groups = _grouped(dimension, frozenset({"no evidence", "tied", "open"}), known, rules)
    return next((group for group in groups if {one, other} <= set(group.agents) and group.probed), None)


def contains_zero(probe: Directed | None) -> bool | None:
    """Whether the interval of a probe contains 0; None where there is no interval to look at."""
    if probe is None or probe.low is None or probe.high is None:
        return None
    return probe.low <= TOLERANCE and probe.high >= -TOLERANCE


def probe_words(high: str, low: str, probe: Directed) -> str:
    """What the outside judge said of a pair."""
    judge = probe.measurement.detail.get("judge")
    who = f"The outside judge {judge}" if judge else "The outside judge"
    value = signed(probe.value or 0.0)
    tail = "which contains 0" if contains_zero(probe) else "which excludes 0"
    return f"{who} sees {value}{interval_words(probe.low, probe.high)} between {high} and {low}, {tail}"


def lost_words(lost: Sequence[tuple[str, float | None]]) -> str:
    """What is left of a difference without each family that reverses it."""
    parts = (f"without {family} it is {'not measured' if left is None else signed(left)}" for family, left in lost)
    return "; ".join(parts)


def inherited_words(group: TieClass) -> str:
    """How a pair that was not put to the outside judge stands by its class."""
    asked = listing([f"{high} and {low}" for high, low in group.probed])
    return (
        f"This pair was not put to the outside judge: it stands in one class ({listing(group.agents)}) "
        f"with {asked}, which the outside judge cannot tell apart"
    )


def _tested(dimension: str, one: str, other: str, known: Index, rules: Rules) -> Pair:
    contrast = known.contrast(dimension, one, other)
    high, low, difference = contrast.high, contrast.low, contrast.difference
    rests = [contrast.measurement.id]
    probe = known.directed("probe.contrast", dimension, high, low)
    if difference is None:
        return Pair(high, low, None, 1.0, 0, (), probe, "never met", tuple(rests))
    p = known.adjusted(dimension, high, low, rules.test)
    lost = []
    for family in known.families:
        drop = _drop(dimension, family, high, low, known)
        rests += [] if drop is None else [drop.measurement.id]
        left = None if drop is None else drop.value
        if left is None or left <= 0:
            lost.append((family, left))
    evidence = p <= rules.alpha and difference > 0
    n = contrast.measurement.n
    return _resolved(high, low, difference, p, n, lost, probe, rests, evidence=evidence, known=known)


def _untested(dimension: str, one: str, other: str, known: Index, rules: Rules) -> Pair:
    del rules  # nothing was tested, so there is nothing to hold against a level
    high, low = direction(dimension, one, other, known)
    rests = [item.id for agent in (high, low) if (item := known.level(dimension, agent)) is not None]
    difference = _gap(dimension, high, low, None, known)
    probe = known.directed("probe.contrast", dimension, high, low)
    if difference is None:
        return Pair(high, low, None, None, 0, (), probe, "never met", tuple(rests))
    lost = []
    for family in known.families:
        levels = (known.level(dimension, agent, family) for agent in (high, low))
        rests += [item.id for item in levels if item is not None]
        left = _gap(dimension, high, low, family, known)
        if left is None or left <= 0:
            lost.append((family, left))
    return _resolved(high, low, difference, None, 0, lost, probe, rests, evidence=difference > 0, known=known)


def _resolved(
    high: str,
    low: str,
    difference: float,
    p: float | None,
    n: int,
    lost: Sequence[tuple[str, float | None]],
    probe: Directed | None,
    rests: Sequence[str],
    *,
    evidence: bool,
    known: Index,
) -> Pair:
    zero = contains_zero(probe)
    resolution: Resolution
    if not evidence:
        resolution = "no evidence"
    elif not lost and known.families:
        resolution = "stable"
    else:
        resolution = "open" if zero is None else "tied" if zero else "opposed"
    ids = (*rests, *(() if probe is None else (probe.measurement.id,)))
    return Pair(high, low, difference, p, n, tuple(lost), probe, resolution, ids)


def _drop(dimension: str, family: str, high: str, low: str, known: Index) -> Directed | None:
    """The difference without a judge family, in the direction of the whole panel."""
    found = known.drops.get((dimension, family, frozenset((high, low))))
    if found is None:
        return None
    turn = 1.0 if found.labels["high"] == high else -1.0
    return Directed(found, None if found.value is None else turn * found.value, None, None)


def _gap(dimension: str, high: str, low: str, family: str | None, known: Index) -> float | None:
    upper, lower = (known.level(dimension, agent, family) for agent in (high, low))
    if upper is None or lower is None or upper.value is None or lower.value is None:
        return None
    return upper.value - lower.value


def _grouped(dimension: str, links: frozenset[Resolution], known: Index, rules: Rules) -> tuple[TieClass, ...]:
    """Components of the graph whose links are the pairs with one of these resolutions.

    An agent whose first place stands links nothing: a class with it would deny a claim that may be made.
    """
    key: Hashable = ("grouped", dimension, links, rules.evidence)
    if key not in known.memo:
        pairs = [pair_of(dimension, *two, known, rules) for two in combinations(known.agents, 2)]
        leader = leader_of(dimension, known, rules)
        linked = [pair for pair in pairs if pair.resolution in links and leader not in (pair.high, pair.low)]
        groups = _components([(pair.high, pair.low) for pair in linked])
        known.memo[key] = tuple(_class(sorted(group), pairs) for group in groups)
    found: tuple[TieClass, ...] = known.memo[key]
    return found


def _class(agents: Sequence[str], pairs: Sequence[Pair]) -> TieClass:
    inside = [pair for pair in pairs if pair.high in agents and pair.low in agents]
    established = tuple((pair.high, pair.low) for pair in inside if pair.resolution == "stable")
    probed = tuple(
        (pair.high, pair.low) for pair in inside if pair.resolution != "stable" and contains_zero(pair.probe)
    )
    return TieClass(tuple(agents), established, probed)


def _components(links: Sequence[tuple[str, str]]) -> list[set[str]]:
    """Connected components of a graph given by its links, in the order of their first names."""
    groups: list[set[str]] = []
    for link in links:
        touched = [group for group in groups if group & set(link)]
        groups = [group for group in groups if group not in touched] + [set(link).union(*touched)]
    return sorted(groups, key=min)
