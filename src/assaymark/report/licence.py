"""Who may be ranked: the tiers and the orders that the verdicts on a score support.

A cut runs where every agent above it has a supported order over every agent below it. What lies between two cuts is a
tier: agents that cannot be ranked. It follows from the verdicts and adds no error of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assaymark.records import Level
from assaymark.report.book import Book

_RANK: Mapping[Level, int] = {"no-claim": 0, "qualified": 1, "headline": 2}


@dataclass(frozen=True, slots=True)
class Tier:
    """Agents between two cuts in alphabetical order, with the ranks that they share.

    ``level`` is the weakest verdict that separates them from the others; no-claim where nothing does.
    """

    agents: tuple[str, ...]
    ranks: tuple[int, int]
    level: Level

    @property
    def alone(self) -> bool:
        """Whether it is one agent: only then may a score of its own be shown."""
        return len(self.agents) == 1


def weakest(levels: Iterable[Level]) -> Level:
    """The level that binds; no levels at all support nothing.

    >>> weakest(["headline", "qualified"]), weakest([])
    ('qualified', 'no-claim')
    """
    return min(levels, key=_RANK.__getitem__, default="no-claim")


def tiers(book: Book, dimension: str) -> tuple[Tier, ...]:
    """The tiers on one score from high to low; a single one where no cut is supported."""
    groups = book.summary.tiers.get(dimension) or ((book.agents,) if book.agents else ())
    orders, found, rank = supported_orders(book, dimension), [], 1
    for group in groups:
        around = [level for pair, level in orders.items() if len(set(pair) & set(group)) == 1]
        found.append(Tier(group, (rank, rank + len(group) - 1), weakest(around if len(groups) > 1 else ())))
        rank += len(group)
    return tuple(found)


def supported_orders(book: Book, dimension: str) -> dict[tuple[str, str], Level]:
    """(higher, lower) to its level, for every pair whose order is supported."""
    return {
        (v.claim.subjects[0], v.claim.subjects[1]): v.publication_level
        for v in book.on(dimension, "pair")
        if v.publication_level != "no-claim"
    }


def judged_range(book: Book, dimension: str, agent: str) -> tuple[float, float] | None:
    """From the lowest to the highest score that a judge alone gives an agent; None for fewer than two judges.

    It stands where agents that cannot be ranked would have a score of their own.
    """
    alone = book.every("single.level", dimension=dimension, agent=agent)
    found = [item.value for item in alone if item.value is not None]
    return (min(found), max(found)) if len(found) > 1 else None


def ranked_alone(book: Book, dimension: str) -> dict[str, Tier]:
    """The tiers of one agent, by agent: what may have a rank and a score of its own."""
    return {tier.agents[0]: tier for tier in tiers(book, dimension) if tier.alone and tier.level != "no-claim"}
