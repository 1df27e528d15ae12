"""Which places a set of verdicts permits, and which agents stay one class.

An order between two agents may be shown only where a verdict above no-claim carries it. Take an arrow from the higher
to the lower agent for each permitted pair, arrows both ways for each other pair, and the strongly connected parts of
that graph stand in one order: every pair across two parts is permitted, in one direction. A part of one agent has a
place; a part of several is a class; a single part that holds everyone means that no place may be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from assaymark.records import Level, Verdict
from assaymark.report.book import Book

_RANK: Mapping[Level, int] = {"no-claim": 0, "qualified": 1, "headline": 2}


@dataclass(frozen=True, slots=True)
class Standing:
    """One agent, or a class of agents in alphabetical order, with the places it holds together.

    ``places`` is None when no verdict permits any. ``level`` is the weakest verdict that the places rest on.
    """

    agents: tuple[str, ...]
    places: tuple[int, int] | None
    level: Level

    @property
    def single(self) -> bool:
        """Whether this is one agent with one place."""
        return self.places is not None and self.places[0] == self.places[1]


def weakest(levels: Iterable[Level]) -> Level:
    """The level that binds; no levels at all permit nothing.

    >>> weakest(["headline", "qualified"]), weakest([])
    ('qualified', 'no-claim')
    """
    return min(levels, key=_RANK.__getitem__, default="no-claim")


def standings(book: Book, dimension: str) -> tuple[Standing, ...]:
    """The places that the verdicts on a dimension permit, best first; without permission alphabetical, one by one."""
    agents = book.agents
    verdicts = book.on(dimension)
    permitted = _permitted(book, verdicts)
    parts = _ordered_parts(agents, permitted)
    parts = _without_denied_first(parts, verdicts)
    if len(parts) < 2:
        return tuple(Standing((agent,), None, "no-claim") for agent in agents)
    found, place = [], 1
    for part in parts:
        rest = set(agents) - set(part)
        level = weakest(permitted[pair] for a in part for b in rest for pair in ((a, b), (b, a)) if pair in permitted)
        found.append(Standing(part, (place, place + len(part) - 1), level))
        place += len(part)
    return tuple(found)


def _permitted(book: Book, verdicts: Sequence[Verdict]) -> dict[tuple[str, str], Level]:
    """(higher, lower) to the best level at which that order may be said."""
    found: dict[tuple[str, str], Level] = {}
    for verdict in verdicts:
        level = verdict.publication_level
        if level == "no-claim" or not verdict.claim.asserts_order:
            continue
        for pair in _pairs_of(book, verdict):
            if _RANK[level] > _RANK[found.get(pair, "no-claim")]:
                found[pair] = level
    return found


def _pairs_of(book: Book, verdict: Verdict) -> list[tuple[str, str]]:
    """The orders that a claim carries: its pair, or its first agent above all that it met."""
    subjects = verdict.claim.subjects
    if len(subjects) != 1:
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
    firsts = [v.publication_level for v in verdicts if v.claim.subjects == parts[0]]
    if firsts and weakest(firsts) == "no-claim":
        return [tuple(sorted(parts[0] + parts[1])), *parts[2:]]
    return parts
