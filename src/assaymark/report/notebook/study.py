"""A study in a notebook: the three levels, the board, and how far the judges agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assaymark.display import MARKS, Folded, Grid, Heading, Note, Part, Said
from assaymark.report.agreement import agreement_view
from assaymark.report.board import BoardRow, board
from assaymark.report.book import Book
from assaymark.report.formats import NBSP, count
from assaymark.report.inputs import AssayRun
from assaymark.report.levels import LEVELS, TALLY, LevelView, level_views
from assaymark.report.notebook.drawing import drawing
from assaymark.report.plan import plan_view
from assaymark.report.terminal import score_cell
from assaymark.report.withheld import WithheldGroup


def study_parts(run: AssayRun) -> Iterator[Part]:
    """What the first screen of the page says, and the figure of agreement."""
    book = Book.of(run)
    plan = plan_view(book)
    yield Heading("Supported claims")
    yield Note(plan.study_line)
    if plan.reference:
        yield Note(f"Reference panel. {plan.reference}")
    for said in (book.untestable, plan.seen_before):
        if said:
            yield Note(said)
    levels = [verdict.publication_level for verdict in run.verdicts]
    yield Note(" · ".join(f"{MARKS[one]} {count(levels.count(one))} {TALLY[one]}" for one in LEVELS))
    for view in level_views(book):
        yield from level_parts(view)
    yield Heading("Who is ahead?")
    yield _board(board(book).rows)
    agreement = agreement_view(book)
    if agreement.forest is not None:
        yield Heading("Do the judges agree?")
        yield Note(agreement.answer)
        yield drawing(agreement.forest)


def level_parts(view: LevelView) -> Iterator[Part]:
    """The claims of one level, or what is not supported; most of it folded."""
    said = tuple(Said(view.level, one.quote or "", one.condition or "") for one in view.shown)
    more = tuple(Said(view.level, one.quote or "", one.condition or "") for one in view.more)
    yield from said
    if more:
        yield Folded(f"{count(len(more))} more", more)
    if view.groups:
        yield Folded(f"{view.title} ({view.of})", (withheld_grid((*view.groups, *view.more_groups)),))
    if view.rest:
        yield Note(f"{count(view.rest)} more on the page.")


def withheld_grid(groups: Sequence[WithheldGroup]) -> Grid:
    """What is not supported, with its reasons."""
    rows = ((group.text, "".join(text for text, _ in group.why).strip(), count(group.covers)) for group in groups)
    return Grid(("Not supported", "Why", "Claims"), tuple(rows), frozenset({2}))


def _board(rows: Sequence[BoardRow]) -> Grid:
    cells = (
        (
            ", ".join(f"{name} (rank {ranks})" if ranks else name for name, _, ranks, _ in row.agents),
            f"{row.ranks}, {row.note}" if row.note else row.ranks,
            score_cell(row),
            f"{MARKS[row.level]}{NBSP}{row.tag}",
            row.why,
        )
        for row in rows
    )
    return Grid(("Agent", "Rank", "Score, 1 to 5", "Verdict", "Why"), tuple(cells))
