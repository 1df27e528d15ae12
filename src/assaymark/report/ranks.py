"""Which ranks are possible? Simultaneous rank intervals on every score, and the ranks that resampled clusters give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assaymark.records import AGGREGATE, Level, Measurement
from assaymark.report.book import Book
from assaymark.report.figures import RankRow, binned, place_heads, rank_bars
from assaymark.report.formats import (
    NOT_SHOWN,
    clean,
    count,
    count_of,
    listing,
    ordinal_span,
    percent,
)
from assaymark.report.licence import ranked_alone
from assaymark.report.tables import Figure, Table


class Placed(NamedTuple):
    """An agent alone in its tier, its rank, and how often the clusters give it each rank."""

    agent: str
    place: int
    shares: tuple[float, ...]
    level: Level


@dataclass(frozen=True, slots=True)
class RanksView:
    """The section: possible ranks on every score, and the figure of resampled ranks with its numbers."""

    answer: str
    possible: Table | None
    figure: Figure | None
    table: Table | None


def ranks_view(book: Book) -> RanksView:
    """The whole section. An agent that shares its tier has no share of resamples anywhere on the page."""
    found = [m for m in book.every("rank.first", dimension=AGGREGATE) if m.value is not None]
    rows = _rows(book)
    drawn = bool(found) and any(row.shares is not None for row in rows)
    return RanksView(
        _answer(book), _possible(book), _figure(book, rows, found) if drawn else None,
        _table(book, rows) if drawn else None,
    )  # fmt: skip


def _answer(book: Book) -> str:
    top = [clean(agent, 80) for agent in book.summary.top_set.get(AGGREGATE, ())]
    if not top:
        return "No ranks follow: no order was put to a test."
    if len(top) == 1:
        return f"On the overall score only {top[0]} can rank first."
    every = len(top) == len(book.agents) and len(top) > 2
    return f"On the overall score {'every agent' if every else f'any of {listing(top)}'} can rank first."


def _possible(book: Book) -> Table | None:
    """The ranks that the supported orders leave to each agent; agents alphabetical, ranks as lowest to highest."""
    scores = [d for d in book.dimensions if d in book.summary.ranks]
    if not scores or len(book.agents) < 2:
        return None
    rows = tuple(
        (clean(agent, 60), *(ordinal_span(*book.summary.ranks[d][agent]) for d in scores))
        for agent in sorted(book.summary.ranks[scores[0]])
    )
    return Table((f"Rank of {count(len(rows))}", *(book.title(d) for d in scores)), rows)


def placed_agents(book: Book) -> tuple[Placed, ...]:
    """The agents alone in their tier with measured shares, from high to low."""
    found = []
    for agent, tier in ranked_alone(book, AGGREGATE).items():
        item = book.one("rank.first", dimension=AGGREGATE, agent=agent)
        if item is not None and item.value is not None:
            found.append(Placed(agent, tier.ranks[0], shares_of(item), tier.level))
    return tuple(found)


def shares_of(item: Measurement) -> tuple[float, ...]:
    """How often an agent takes each rank; where only the first was measured, that one."""
    shares = item.detail.get("shares")
    if isinstance(shares, (list, tuple)) and shares:
        return tuple(float(share) for share in shares)
    return (float(item.value or 0.0),)


def draws_words(items: Sequence[Measurement]) -> str:
    """How many resamples there were, of how many clusters, and whether they were all of them."""
    item = items[0]
    draws = item.detail.get("resamples")
    clusters = count_of(item.n, item.n_of)
    if not isinstance(draws, int):
        return f"resamples of {clusters}"
    return f"{'all ' if item.detail.get('exact') else ''}{count(draws)} resamples of {clusters}"


def _rows(book: Book) -> tuple[RankRow, ...]:
    """Agents alone in their tier from high to low, then everyone else in alphabetical order without a number."""
    placed = {found.agent: found for found in placed_agents(book)}
    rows = [RankRow(clean(p.agent, 60), p.shares, p.place, p.level) for p in placed.values()]
    return (*rows, *(RankRow(clean(agent, 60), None) for agent in book.agents if agent not in placed))


def _figure(book: Book, rows: Sequence[RankRow], found: Sequence[Measurement]) -> Figure:
    places = len(book.agents)
    kept = [row.title for row in rows if row.shares is None]
    said = [f"{row.title}: {_said(row, places)}" for row in rows if row.shares is not None]
    desc = "; ".join(said) + (f"; not ranked: {listing(kept)}" if kept else "")
    wide, narrow = rank_bars("ranks", rows, places, "Share of resamples in which an agent takes each rank", desc)
    caption = (
        f"Share of {draws_words(found)} in which an agent takes each rank; ties share their ranks. The filled bar is "
        "the supported rank. A dashed row is an agent that shares its tier."
    )
    return Figure("Would other clusters change the ranks?", caption, wide, narrow)


def _said(row: RankRow, places: int) -> str:
    pairs = zip(place_heads(places), binned(row.shares or (), places), strict=True)
    return ", ".join(f"rank {head} in {percent(share)}" for head, share in pairs if share > 0)


def _table(book: Book, rows: Sequence[RankRow]) -> Table:
    places = len(book.agents)
    heads = place_heads(places)
    body = []
    named = {clean(agent, 60): agent for agent in book.agents}
    for row in rows:
        cells = [NOT_SHOWN] * len(heads)
        if row.shares is not None:
            first, *others = [percent(s) for s in binned(row.shares, places)]
            item = book.one("rank.first", dimension=AGGREGATE, agent=named[row.title])
            cells = [book.to(item, first), *others]
        body.append((row.title, *cells))
    return Table(("Agent", *(f"Rank {head}" for head in heads)), tuple(body), frozenset(range(1, len(heads) + 1)))
