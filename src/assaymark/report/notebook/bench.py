"""A benchmark in a notebook: supported claims, and its leaderboards tier by tier."""

from __future__ import annotations

from collections.abc import Iterator

from assaymark.display import MARKS, Folded, Grid, Heading, Note, Part, Said
from assaymark.report.formats import NBSP, NOT_SHOWN, clean, count
from assaymark.report.levels import LEVELS, TALLY
from assaymark.report.notebook.study import withheld_grid
from assaymark.report.portbench.book import STAGES, BenchBook
from assaymark.report.portbench.inputs import BenchRun
from assaymark.report.portbench.said import said_levels, tally
from assaymark.report.portbench.stages import StageGroup, StageRow, StageTable, lede, stage_tables


def bench_parts(run: BenchRun) -> Iterator[Part]:
    """The first screen of the page, and every leaderboard of the pipeline."""
    book = BenchBook.of(run)
    yield Heading(f"{clean(run.title or run.name, 120)}: supported claims")
    yield Note(lede(book))
    levels = tally(run.verdicts)
    yield Note(" · ".join(f"{MARKS[level]} {count(levels[level])} {TALLY[level]}" for level in LEVELS))
    for view in said_levels(book):
        yield from (Said(view.level, one.quote or "", one.condition) for one in view.shown)
        if view.more:
            more = tuple(Said(view.level, one.quote or "", one.condition) for one in view.more)
            yield Folded(f"{count(len(more))} more", more)
        if view.groups:
            yield Folded(view.title, (withheld_grid(view.groups),))
    first, *others = stage_tables(book) or (None,)
    if first is not None:
        yield from _leaderboard(first)
    if others:
        yield Folded("By profile", tuple(part for table in others if table is not None for part in _leaderboard(table)))


def _leaderboard(table: StageTable) -> Iterator[Part]:
    yield Heading(table.title)
    if table.empty:
        yield Note(table.empty)
        return
    heads = ("Model", "Rank", *STAGES, "Score", "Interval", table.gate, "Verdict")
    yield Grid(heads, tuple(_row(group, row) for group in table.groups for row in group.rows))


def _row(group: StageGroup, row: StageRow) -> tuple[str, ...]:
    cells = (f"{cell.value} {cell.half}".rstrip() for cell in row.cells)
    level = group.tag if group.level is None else f"{MARKS[group.level]}{NBSP}{group.tag}"
    rank = (row.ranks or group.places).lower().removeprefix("rank ")
    return row.model, rank, *cells, row.point or NOT_SHOWN, row.interval, row.gate.word, level
