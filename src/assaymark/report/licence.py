"""Which places a set of verdicts permits, and which agents stay one class.

An order between two agents may be shown only where a verdict above no-claim carries it. Take an arrow from the higher
to the lower agent for each permitted pair, arrows both ways for each other pair, and the strongly connected parts of
that graph stand in one order: every pair across two parts is permitted, in one direction. A part of one agent has a
place. A part of several has a run of places; where pairs inside it are permitted, each member has the shorter run that
its own pairs leave open. An agent whose run is the whole table has no place at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from assaymark.records import Level, Verdict
from assaymark.report.book import Book
from assaymark.report.kinds import kind_of

_RANK: Mapping[Level, int] = {"no-claim": 0, "qualified": 1, "headline": 2}


@dataclass(frozen=True, slots=True)
class Standing:
    """One agent, or a class of agents in alphabetical order, with the places that the verdicts leave open to it.

    ``places`` is None when no verdict permits any. ``part`` is the run of places of the whole class that it stands in.
    ``level`` is the weakest verdict that the places rest on.
    """

    agents: tuple[str, ...]
    places: tuple[int, int] | None
    part: tuple[int, int]
    level: Level

    @property
    def single(self) -> bool:
        """Whether this is one agent with one place: only then may a score of its own be shown."""
        return len(self.agents) == 1 and self.places is not None and self.places[0] == self.places[1]


def weakest(levels: Iterable[Level]) -> Level:
    """The level that binds; no levels at all permit nothing.

    >>> weakest(["headline", "qualified"]), weakest([])
    ('qualified', 'no-claim')
    """
    return min(levels, key=_RANK.__getitem__, default="no-claim")


def standings(book: Book, dimension: str) -> tuple[Standing, ...]:
    """The places that the verdicts on a dimension permit: parts best first, inside a part in alphabetical order."""
    verdicts = book.on(dimension)
    permitted = permitted_orders(book, dimension)
    found: list[Standing] = []
    place = 1
    for part in _without_denied_first(_ordered_parts(book.agents, permitted), verdicts):
        found += _inside(part, (place, place + len(part) - 1), book.agents, permitted)
        place += len(part)
    return tuple(found)


def _inside(
    part: tuple[str, ...], run: tuple[int, int], agents: Sequence[str], permitted: Mapping[tuple[str, str], Level]
) -> list[Standing]:
    """The members of one part: as a class if nothing between them is permitted, else one by one."""
    inner = any(pair in permitted for pair in permutations(part, 2))
    if not inner and len(part) < len(agents):
        levels = [permitted[pair] for agent in part for pair in _pairs_with(agent, agents) if pair in permitted]
        return [Standing(part, run, run, weakest(levels))]
    return [_alone(agent, run, agents, permitted) for agent in part]


def _alone(
    agent: str, run: tuple[int, int], agents: Sequence[str], permitted: Mapping[tuple[str, str], Level]
) -> Standing:
    above = sum((other, agent) in permitted for other in agents)
    below = sum((agent, other) in permitted for other in agents)
    if not above and not below:
        return Standing((agent,), None, run, "no-claim")
    places = (1 + above, len(agents) - below)
    if places[0] >= places[1] and run[0] < run[1]:
        places = run  # its pairs contradict each other, or its own first place was refused
    level = weakest(permitted[pair] for pair in _pairs_with(agent, agents) if pair in permitted)
    return Standing((agent,), places, run, level)


def _pairs_with(agent: str, agents: Sequence[str]) -> list[tuple[str, str]]:
    return [pair for other in agents if other != agent for pair in ((agent, other), (other, agent))]


def permitted_orders(book: Book, dimension: str) -> dict[tuple[str, str], Level]:
    """(higher, lower) to the best level at which that order may be said, for every pair that any verdict orders."""
    found: dict[tuple[str, str], Level] = {}
    for verdict in book.on(dimension):
        level = verdict.publication_level
        if level == "no-claim" or not verdict.claim.asserts_order:
            continue
        for pair in _pairs_of(book, verdict):
            if _RANK[level] > _RANK[found.get(pair, "no-claim")]:
                found[pair] = level
    return found


def _pairs_of(book: Book, verdict: Verdict) -> list[tuple[str, str]]:
    """The orders that a claim carries: each pair of its subjects, or its first agent above all that it met."""
    subjects = verdict.claim.subjects
    if kind_of(verdict.claim) != "first":
        return list(combinations(subjects, 2))
    first = book.one("first.p_holm", dimension=verdict.claim.dimension, agent=subjects[0])
    never = set() if first is None else set(first.detail.get("never_met", ()))
    return [(subjects[0], other) for other in book.agents if other != subjects[0] and other not in never]


def _ordered_parts(agents: Sequence[str], permitted: Mapping[tuple[str, str], Level]) -> list[tuple[str, ...]]:
    """Strongly connected parts, best first. The graph is semicomplete, so reach alone orders them.

    >>> _ordered_parts("abc", {("b", "a"): "headline", ("b", "c"): "headline"})
    [('b',), ('a', 'c')]
    """
    below = {a: {b for b in agents if b != a and ((a, b) in permitted or (b, a) not in permitted)} for a in agents}
    reach = {agent: _reach(agent, below) for agent in agents}
    parts = {agent: tuple(sorted(b for b in agents if b in reach[agent] and agent in reach[b])) for agent in agents}
    return sorted(set(parts.values()), key=lambda part: (-len(reach[part[0]]), part))


def _reach(start: str, below: Mapping[str, set[str]]) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        new = below[todo.pop()] - seen
        seen |= new
        todo.extend(new)
    return seen


def _without_denied_first(parts: list[tuple[str, ...]], verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """A leader whose own "ranks first" was refused joins the class behind it: pairs alone do not give a first place."""
    if len(parts) < 2 or len(parts[0]) != 1:
        return parts
    firsts = [v.publication_level for v in verdicts if kind_of(v.claim) == "first" and v.claim.subjects == parts[0]]
    if firsts and weakest(firsts) == "no-claim":
        return [tuple(sorted(parts[0] + parts[1])), *parts[2:]]
    return parts
