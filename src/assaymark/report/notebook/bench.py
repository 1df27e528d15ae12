"""A benchmark in a notebook: what may be said, and its standings in groups."""

from __future__ import annotations

from collections.abc import Iterator

from assaymark.display import MARKS, Folded, Grid, Heading, Note, Part, Said
from assaymark.report.formats import NBSP, WITHHELD, clean, count
from assaymark.report.levels import LEVELS, TALLY
from assaymark.report.notebook.study import withheld_grid
from assaymark.report.portbench.book import STAGES, BenchBook
from assaymark.report.portbench.inputs import BenchRun
from assaymark.report.portbench.said import said_levels, tally
from assaymark.report.portbench.stages import StageGroup, StageRow, StageTable, lede, stage_tables


def bench_parts(run: BenchRun) -> Iterator[Part]:
    """What the first screen of the page says, and every leaderboard of the pipeline."""
    book = BenchBook.of(run)
    yield Heading(f"{clean(run.title or run.name, 120)}: what may be said")
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
        yield from _standings(first)
    if others:
        yield Folded("By profile", tuple(part for table in others if table is not None for part in _standings(table)))


def _standings(table: StageTable) -> Iterator[Part]:
    yield Heading(table.title)
    if table.empty:
        yield Note(table.empty)
        return
    heads = ("Model", "Place", *STAGES, "Score", "Interval", table.gate, "Verdict")
    yield Grid(heads, tuple(_row(group, row) for group in table.groups for row in group.rows))


def _row(group: StageGroup, row: StageRow) -> tuple[str, ...]:
    cells = (f"{cell.value} {cell.half}".rstrip() for cell in row.cells)
    level = group.tag if group.level is None else f"{MARKS[group.level]}{NBSP}{group.tag}"
    return row.model, group.places, *cells, row.point or WITHHELD, row.interval, row.gate.word, level
