"""Results for notebooks: the supported claims first, then the tables and figures of the pages. Each function gives
parts for `assaymark.notebook`, which renders them as HTML and as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from assaymark.claims.messages import Catalogue, english
from assaymark.metrology.datasheet import Datasheet
from assaymark.notebook import MARKS, Collapsed, Drawing, Grid, Heading, Part, Quote, display_parts
from assaymark.records import Measurement, Rows, sha256_text
from assaymark.report import blocks as b
from assaymark.report.blocks import ClaimQuote, Figure, Table, WithheldGroup
from assaymark.report.blocks import plain as in_words
from assaymark.report.datasheet.pages import NO_SKETCH, chips, judge_figures, profile_lines
from assaymark.report.datasheet.reading import comparable, index_sheets
from assaymark.report.datasheet.sections import flip_note
from assaymark.report.inputs import AssayRun, RunIndex
from assaymark.report.levels import board_rows, study_levels
from assaymark.report.page import asset, used_rules
from assaymark.report.portbench import index as bench
from assaymark.report.portbench.index import BenchmarkIndex, BenchRun
from assaymark.report.season import leaderboard as agents
from assaymark.report.season.decisions import account_figure
from assaymark.report.season.index import Language, SeasonIndex, SeasonRun
from assaymark.report.season.levels import season_levels
from assaymark.report.season.levels import season_tally as levels_tally
from assaymark.report.study.agreement import agreement_words, kappa_figure
from assaymark.report.study.overview import top_finding
from assaymark.report.study.plan import NOT_PREREGISTERED, study_line
from assaymark.report.text import NOT_SHOWN, TAGS, counted, tally
from assaymark.text import NBSP, clean, count

__all__ = ["bench_parts", "drawing", "judges_parts", "season_parts", "study_parts"]


# --- a figure of the pages, with unique ids and only the styles that it uses ------------------------------------------

_NAMES: Final = re.compile(r'(\b(?:id|aria-labelledby)="|="url\(#)([^")]+)')


def drawing(figure: Figure, *sheets: str) -> Drawing:
    """A figure for a notebook; ``sheets`` are the style sheets of its page in addition to ``page.css``."""
    mark = f"a{sha256_text(figure.wide + figure.narrow)[:8]}-"
    # A notebook may hold two such figures. Quotes in texts are escaped, so that the pattern finds only attributes.
    wide, narrow = (
        _NAMES.sub(lambda match: match[1] + " ".join(mark + name for name in match[2].split()), svg)
        for svg in (figure.wide, figure.narrow)
    )
    rules = used_rules(("page.css", *sheets), wide + narrow, ".assay-fig ")
    caption = f"{figure.caption} {figure.note}".strip()
    return Drawing(figure.title, caption, wide, narrow, (*rules, asset("notebook.css")))


# --- a study ----------------------------------------------------------------------------------------------------------


def study_parts(run: AssayRun) -> Iterator[Part]:
    """The claims of the first page, the leaderboard, and the figure of agreement."""
    index = RunIndex.of(run)
    front, levels = top_finding(index), [verdict.publication_level for verdict in run.verdicts]
    if front.notice[0]:
        yield " ".join(front.notice)
    if front.verdict is None:
        yield Heading(front.title)
        yield front.also
    else:
        yield Quote(front.verdict.publication_level, front.title, front.also)
    yield study_line(index)
    if front.second:
        yield front.second
    if not index.preregistered:
        yield NOT_PREREGISTERED
    yield " · ".join(f"{MARKS[level]} {n} {noun}" for level, n, noun in tally(levels))
    yield from _levels(study_levels(index), f" of {counted(len(run.verdicts), 'claim')}")
    yield Heading("Who is ahead?")
    cells = (
        (
            ", ".join(f"{name} (rank {ranks})" if ranks else name for name, _, ranks, _ in agents),
            tier.rank if tier.ranked else f"{tier.rank}, cannot be ranked",
            "no range" if score is None else f"{score} {bounds}".strip(),
            f"{MARKS[tier.level]}{NBSP}{TAGS[tier.level]}",
            reason,
        )
        for tier, agents, score, bounds, reason in board_rows(index)
    )
    yield Grid(("Agent", "Rank", f"Score, {index.run.study.scale_text}", "Verdict", "Why"), tuple(cells))
    if (figure := kappa_figure(index)) is not None:
        yield Heading("Do the judges agree?")
        yield agreement_words(index)
        yield drawing(figure)


def _levels(views: Iterable[b.ClaimList], of: str = "", amount: Callable[[int], str] = count) -> Iterator[Part]:
    """The claims of each level, or the unsupported groups, mostly folded. ``of`` states the total number of claims."""
    for view in views:
        shown, more = (
            tuple(Quote(view.level, claim.sentence, claim.condition) for claim in part if isinstance(claim, ClaimQuote))
            for part in (view.claims, view.more)
        )
        groups = [claim for claim in (*view.claims, *view.more) if isinstance(claim, WithheldGroup)]
        yield from shown
        if more:
            yield Collapsed(f"{amount(len(more))} more", more)
        if groups:
            title = f"{view.title} ({count(sum(group.covers for group in groups))}{of})" if of else view.title
            rows = (
                (group.text, "".join(text for text, _ in group.why).strip(), count(group.covers)) for group in groups
            )
            yield Collapsed(title, (Grid(("Not supported", "Why", "Claims"), tuple(rows), frozenset({2})),))
        if of and view.rest:
            yield in_words(view.rest)


# --- a benchmark, judges, a season ------------------------------------------------------------------------------------


def bench_parts(run: BenchRun) -> Iterator[Part]:
    """The claims of the first page, and every leaderboard of the pipeline."""
    index = BenchmarkIndex.of(run)
    yield Heading(f"{clean(run.title, 120)}: supported claims")
    yield bench.bench_lede(index)
    levels = tally(verdict.publication_level for verdict in run.verdicts)
    yield " · ".join(f"{MARKS[level]} {n} {noun}" for level, n, noun in levels)
    yield from _levels(bench.bench_levels(index))
    grids = []
    for table in (block for group in bench.stage_tables(index) for block in group.blocks if isinstance(block, Table)):
        rows = (tuple(map(in_words, row.cells)) + ("",) * (len(table.columns) - len(row.cells)) for row in table.lines)
        grids.append(Grid(tuple(map(in_words, table.columns)), tuple(rows)))
    if grids:
        yield from (Heading(bench.board_title(bench.pipeline_boards(run)[0].board.name)), grids[0])
    if grids[1:]:
        yield Collapsed("By profile", tuple(grids[1:]))


_DRAWN, _SEASON_DRAWN = 4, 6
_STYLES: Final = ("datasheet.css", "datasheet-marks.css")


def judges_parts(sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = ()) -> Iterator[Part]:
    """Every judge by name: profile, summary, and folded figures, which only the first four judges have."""
    for at, sheet in enumerate(sorted(sheets, key=lambda sheet: sheet.judge)):
        others = [peer for peer in sheets if peer.judge != sheet.judge and comparable(sheet, peer)]
        this = index_sheets([sheet])[0]
        yield Heading(f"{this.name}, {'measured from a log' if this.is_log else 'judge datasheet'}")
        yield " ".join(map(in_words, profile_lines(this)))
        sketch = chips(this)
        summary = " · ".join(word for word, _ in sketch) or (NO_SKETCH if this.is_log else "")
        yield from filter(None, (summary, flip_note(this)))
        if rules := tuple((word, rule) for word, rule in sketch if rule):
            yield Collapsed("By which rules", (Grid(("Axis", "Rule"), rules),))
        plots = chain(*judge_figures(this, index_sheets(others))) if at < _DRAWN else ()
        figures: tuple[Part, ...] = tuple(
            drawing(plot, *_STYLES) if plot.wide else f"{plot.title} {plot.caption}" for plot in plots
        )
        if len(sheets) == 1:
            yield from figures
        elif figures:
            yield Collapsed(f"Figures of {this.name}", figures)
    if agreement:
        yield Heading("How far every two of them agree")
        yield from display_parts(Rows(agreement))


def season_parts(run: SeasonRun, catalogue: Catalogue | None = None) -> Iterator[Part]:
    """The claims of the first page, the leaderboard, and the accounts of the first six agents, in one language."""
    words = Language(catalogue or english())
    index = SeasonIndex.of(run, words)
    yield Heading(f"{clean(run.plan.title or run.plan.name, 120)}: supported claims")
    yield " · ".join(f"{MARKS[level]} {n} {noun}" for level, n, noun in levels_tally(index))
    yield from _levels(season_levels(index), "", words.amount)
    rows = tuple(
        (
            clean(place.agent, 60), agents.ranks_words(place, words) or NOT_SHOWN,
            agents.total_words(index, place) or NOT_SHOWN,
            agents.band_words(index.rows.get(place.agent), words, place.shown),
            *(cell for _, cell in agents.judged_cells(index, place)), agents.account_facts(index, place.agent)[0],
            f"{MARKS[place.level]}{NBSP}{words(f'level.{place.level}.tag')}",
        )
        for place in agents.board_places(index)
    )  # fmt: skip
    yield Heading("The agents")
    yield Grid(("Agent", "Rank", "Total", "Judges", *agents.axis_heads(index), "Return", "Verdict"), rows)
    yield from (
        note for note in (agents.unranked_words(index), *agents.design_words(index), *agents.board_notes(index)) if note
    )
    drawn = ((name, account_figure(index, name)) for name in list(index.agents)[:_SEASON_DRAWN])
    titled = (replace(account[0], title=f"{clean(name, 60)}: {account[0].title}") for name, account in drawn if account)
    accounts = tuple(drawing(figure, "season.css", "season-agent.css", "brush.css") for figure in titled)
    if accounts:
        yield Collapsed("Net asset value of each agent", accounts)
