"""The same verdicts for a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assaymark.records import Level
from assaymark.report.agreement import agreement_view
from assaymark.report.board import BoardRow, board
from assaymark.report.book import Book
from assaymark.report.formats import clean, count, short_hash
from assaymark.report.inputs import AssayRun
from assaymark.report.levels import LEVELS, TALLY, ClaimView, LevelView, level_views
from assaymark.report.plan import plan_view

# Shapes carry the level where colour is missing: filled, half, open.
_SIGNS: dict[Level, str] = {"headline": "[x]", "qualified": "[/]", "no-claim": "[-]"}
_STYLES: dict[Level, str] = {"headline": "bold blue", "qualified": "yellow", "no-claim": "dim"}


def terminal_summary(run: AssayRun) -> RenderableType:
    """The supported claims, the board and the judges' agreement, for `rich.console.Console.print`.

    Texts from records are printed as they are: markup in them has no effect and control characters are replaced.
    """
    book = Book.of(run)
    plan = plan_view(book)
    parts: list[RenderableType] = [Text("Supported claims", style="bold"), Text(plan.study_line)]
    if plan.reference:
        parts.append(Text(f"Reference panel. {plan.reference}", style="italic"))
    parts += [Text(said, style="bold") for said in (book.untestable, plan.seen_before) if said]
    parts += [Text(), _tally(run), *(_level(view) for view in level_views(book)), Text(), _board(book), Text()]
    parts += [_agreement(book), Text(), Text(f"Plan {short_hash(clean(run.plan_hash))}", style="dim")]
    return Group(*parts)


def _tally(run: AssayRun) -> Text:
    levels = [verdict.publication_level for verdict in run.verdicts]
    text = Text()
    for level in LEVELS:
        text.append(f"{_SIGNS[level]} {count(levels.count(level))} {TALLY[level]}   ", style=_STYLES[level])
    return text


def _level(view: LevelView) -> RenderableType:
    parts: list[RenderableType] = [
        Text(),
        Text(f"{_SIGNS[view.level]} {view.title} ({view.of})", style=_STYLES[view.level]),
    ]
    if not view.total:
        parts.append(_indented(Text(view.empty)))
    parts += [_claim(claim) for claim in view.shown]
    for group in view.groups:
        parts.append(_indented(Text(group.text)))
        parts.append(_indented(Text("".join(text for text, _ in group.why).strip(), style="dim"), 8))
    rest = len(view.more) + view.rest + len(view.more_groups)
    if rest:
        parts.append(_indented(Text(f"and {count(rest)} more in the report", style="dim")))
    return Group(*parts)


def _claim(claim: ClaimView) -> RenderableType:
    text = Text(f"“{claim.quote}”")
    if claim.condition:
        text.append(f"\nSay also: {claim.condition}")
    return _indented(text)


def _indented(text: Text, by: int = 4) -> RenderableType:
    return Padding(text, (0, 0, 0, by))


def _board(book: Book) -> Table:
    table = Table(title="Who is ahead?", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("Rank", no_wrap=True)
    table.add_column("Agent", overflow="fold")
    table.add_column("Score, 1 to 5", overflow="fold")
    table.add_column("Verdict", no_wrap=True)
    for row in board(book).rows:
        table.add_row(Text(row.ranks), Text(_names(row)), Text(score_cell(row)), _verdict(row))
    return table


def _names(row: BoardRow) -> str:
    names = [f"{name} (rank {ranks})" if ranks else name for name, _, ranks, _ in row.agents]
    return "\n".join([*names, *([row.note] if row.note else [])])


def score_cell(row: BoardRow) -> str:
    """A tier's score in one line."""
    return "no range" if row.score is None else f"{row.score} {row.bounds}".strip()


def _verdict(row: BoardRow) -> Text:
    return Text(f"{_SIGNS[row.level]} {row.tag}", style=_STYLES[row.level])


def _agreement(book: Book) -> Table:
    table = Table(title="Do the judges agree?", title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("Score", overflow="fold")
    table.add_column("kappa", justify="right", overflow="fold")
    table.add_column("jackknife", justify="right", no_wrap=True)
    table.add_column("bootstrap", justify="right", no_wrap=True)
    table.add_column("agreement", overflow="fold")
    for row in agreement_view(book).rows:
        gate = f"{row.gate}, {row.by}" if row.by else row.gate
        table.add_row(*(Text(cell) for cell in (row.title, row.kappa, row.interval, row.bootstrap, gate)))
    return table
