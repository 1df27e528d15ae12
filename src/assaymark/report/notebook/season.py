"""A season in a notebook: supported claims, the table of its agents, and their net asset values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from assaymark.claims.messages import Catalogue, english
from assaymark.display import MARKS, Folded, Grid, Heading, Note, Part, Said
from assaymark.report.formats import NBSP, NOT_SHOWN, clean
from assaymark.report.notebook.drawing import drawing
from assaymark.report.notebook.study import withheld_grid
from assaymark.report.season.inputs import SeasonRun
from assaymark.report.season.leaderboard import BoardRow, board_view
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.model_book import ModelBook, ModelWords
from assaymark.report.season.model_earned import earned_view
from assaymark.report.season.said import said_levels, tally

_DRAWN: Final = 6


def season_parts(run: SeasonRun, catalogue: Catalogue | None = None) -> Iterator[Part]:
    """The first page of the site, and the account of each of the first six agents by name.

    ``catalogue`` is the language; English without one.
    """
    book, words = SeasonLookup.of(run), ModelWords(catalogue or english())
    yield Heading(f"{clean(run.title or run.name, 120)}: supported claims")
    yield Note(" · ".join(f"{MARKS[level]} {n} {what}" for level, n, what in tally(book, words)))
    for view in said_levels(book, words):
        yield from (Said(view.level, one.quote, one.condition) for one in view.shown)
        if view.more:
            more = tuple(Said(view.level, one.quote, one.condition) for one in view.more)
            yield Folded(f"{words.count(len(more))} more", more)
        if groups := (*view.groups, *view.more_groups):
            yield Folded(view.title, (withheld_grid(groups),))
    table = board_view(book, words)
    yield Heading("The agents")
    heads = ("Agent", "Rank", "Total", "Judges", *table.columns, "Return", "Verdict")
    yield Grid(heads, tuple(map(_row, table.rows)))
    yield from (Note(note) for note in filter(None, (table.unranked, *table.design, *table.notes)))
    if accounts := tuple(_accounts(book, words)):
        yield Folded("Net asset value of each agent", accounts)


def _row(row: BoardRow) -> tuple[str, ...]:
    cells = (cell.text for _, cell in row.cells)
    return (
        row.agent, row.places or NOT_SHOWN, row.total or NOT_SHOWN, row.band, *cells, row.returned.text,
        f"{MARKS[row.level]}{NBSP}{row.tag}",
    )  # fmt: skip


def _accounts(book: SeasonLookup, said: ModelWords) -> Iterator[Part]:
    for name, agent in list(book.agents.items())[:_DRAWN]:
        view = earned_view(ModelBook(book, said, agent, book.pages[name]))
        if view.figure is not None:
            yield drawing(replace(view.figure, title=f"{clean(name, 60)}: {view.figure.title}"), "season-model.css")
