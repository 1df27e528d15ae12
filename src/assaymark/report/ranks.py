"""Would other clusters change the places? How often each agent takes each place when the clusters are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.book import Book
from assaymark.report.figures import RankRow, binned, place_heads, rank_bars
from assaymark.report.formats import WITHHELD, clean, count, count_of, listing, percent, plural, sentence, state_words
from assaymark.report.licence import standings
from assaymark.report.tables import Figure, Table


class Placed(NamedTuple):
    """An agent whose one place a verdict permits, and how often the clusters give it each place."""

    agent: str
    place: int
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RanksView:
    """The section: an answer that follows from permitted places, the figure, and its numbers."""

    answer: str
    figure: Figure | None
    table: Table | None


def ranks_view(book: Book) -> RanksView:
    """The section on the aggregate score. An agent without a place of its own has no share anywhere on the page."""
    found = list(book.every("rank.first", dimension=AGGREGATE))
    if not any(item.value is not None for item in found):
        state = state_words(found[0]) if found else "not measured: the clusters were not drawn again for places"
        return RanksView(sentence(state), None, None)
    rows = _rows(book)
    placed = placed_agents(book)
    return RanksView(_answer(placed, found), _figure(book, rows, found), _table(book, rows))


def placed_agents(book: Book) -> tuple[Placed, ...]:
    """The agents with one permitted place of their own and with measured shares, best first."""
    found = []
    for standing in standings(book, AGGREGATE):
        item = book.one("rank.first", dimension=AGGREGATE, agent=standing.agents[0])
        if standing.single and standing.places and item is not None and item.value is not None:
            found.append(Placed(standing.agents[0], standing.places[0], shares_of(item)))
    return tuple(found)


def shares_of(item: Measurement) -> tuple[float, ...]:
    """How often an agent takes each place; where only the first was measured, that one."""
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
    """Permitted places best first, then everyone else in alphabetical order without a number."""
    placed = {found.agent: found for found in placed_agents(book)}
    levels = {s.agents[0]: s.level for s in standings(book, AGGREGATE) if s.single}
    rows = [RankRow(clean(p.agent, 60), p.shares, p.place, levels[p.agent]) for p in placed.values()]
    return (*rows, *(RankRow(clean(agent, 60), None) for agent in book.agents if agent not in placed))


def _answer(placed: Sequence[Placed], found: Sequence[Measurement]) -> str:
    firsts = [p for p in placed if p.place == 1]
    drawn = draws_words(found)
    if firsts:
        return f"{clean(firsts[0].agent, 80)} ranks first in {percent(firsts[0].shares[0])} of {drawn}."
    if placed:
        return f"{plural(len(placed), 'place').capitalize()} may be shown, and how often {drawn} give it."
    return f"No place may be shown, so no share of {drawn} is."


def _figure(book: Book, rows: Sequence[RankRow], found: Sequence[Measurement]) -> Figure | None:
    if all(row.shares is None for row in rows):
        return None
    places = len(book.agents)
    kept = [row.title for row in rows if row.shares is None]
    said = [f"{row.title}: {_said(row, places)}" for row in rows if row.shares is not None]
    desc = "; ".join(said) + (f"; {WITHHELD}: {listing(kept)}" if kept else "")
    wide, narrow = rank_bars("ranks", rows, places, "Share of resamples in which an agent takes each place", desc)
    caption = (
        f"Share of {draws_words(found)} in which an agent takes each place; ties share their places. "
        "The filled bar is the place that a verdict permits. A dashed row has no permitted place."
    )
    return Figure("How often does each agent take its place?", caption, wide, narrow)


def _said(row: RankRow, places: int) -> str:
    pairs = zip(place_heads(places), binned(row.shares or (), places), strict=True)
    return ", ".join(f"place {head} in {percent(share)}" for head, share in pairs if share > 0)


def _table(book: Book, rows: Sequence[RankRow]) -> Table | None:
    places = len(book.agents)
    heads = place_heads(places)
    if all(row.shares is None for row in rows):
        return None
    body = []
    named = {clean(agent, 60): agent for agent in book.agents}
    for row in rows:
        cells = [WITHHELD] * len(heads)
        if row.shares is not None:
            first, *others = [percent(s) for s in binned(row.shares, places)]
            item = book.one("rank.first", dimension=AGGREGATE, agent=named[row.title])
            cells = [book.to(item, first), *others]
        body.append((row.title, *cells))
    return Table(("Agent", *(f"Place {head}" for head in heads)), tuple(body), frozenset(range(1, len(heads) + 1)))
