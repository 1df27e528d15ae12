"""A page for every episode, in the manner of figures 28 to 30: what was asked, said, true, and how it was scored.

Replies of models are hostile input: they pass `block`, are cut to a length, and are escaped by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from assaymark.report.blocks import (
    Block,
    Group,
    Inline,
    Items,
    Linked,
    Row,
    Section,
    Table,
    Text,
    bold,
    row_filters,
    small,
)
from assaymark.report.page import file_stems
from assaymark.report.portbench.book import STAGES, BenchBook
from assaymark.report.portbench.inputs import DateTrace, EpisodeTrace, StageTrace
from assaymark.report.portbench.records import block, talk
from assaymark.report.text import counted, moment
from assaymark.text import clean, count, number, span

STATES: Final[Mapping[str, str]] = {
    "ok": "",
    "partial": "read in part",
    "invalid": "could not be read",
    "refused": "refused",
    "truncated": "cut off",
}
_TEXT, _ROWS, _CELL, _LINES, _COLUMNS = 4_000, 400, 120, 40, 12


def episode_paths(episodes: Sequence[EpisodeTrace]) -> tuple[str, ...]:
    """Where the pages of episodes lie, without their ending: safe as file names everywhere, and no two alike.

    >>> one = EpisodeTrace(model="a", profile="b-c", window="d", dates=())
    >>> two = EpisodeTrace(model="a-b", profile="c", window="d", dates=())
    >>> first, second = episode_paths([one, two])
    >>> first != second, episode_paths([one])
    (True, ('episodes/a-b-c-d',))
    """
    return file_stems("episodes", [(one.model, one.profile, one.window) for one in episodes])


def date_section(at: int, trace: DateTrace, calls: Mapping[str, str], *, opened: bool) -> Section:
    """One decision date: its scores, then every stage with prompt, reply, truth and arithmetic."""
    troubled = [stage for stage in trace.stages if stage.state != "ok"]
    words = "; ".join(
        f"{clean(stage.stage, 8)} {STATES.get(stage.state, clean(stage.state, 40))}" for stage in troubled
    )
    scores = ", ".join(f"{clean(stage.stage, 8)} {number(stage.score)}" for stage in trace.stages)
    lead: list[Inline] = [f"CEPS {number(trace.ceps, 3)}, alignment {number(trace.pas, 3)}. {scores}."]
    lead += [" ", bold(words)] if words else []
    stages = tuple(_stage(stage, calls) for stage in trace.stages)
    group = Group("The stages of this date", stages, folded="open" if opened else "closed")
    return Section(f"d{at}", moment(trace.day), tuple(lead), (group,))


def _stage(trace: StageTrace, calls: Mapping[str, str]) -> Group:
    name = clean(trace.stage, 8)
    columns = tuple(clean(column, 60) for column in trace.columns[:_COLUMNS])
    rows = tuple(
        tuple(clean(cell, _CELL) for cell in row[:_COLUMNS]) + ("",) * (len(columns) - len(row))
        for row in trace.rows[:_ROWS]
    )
    state, reason = STATES.get(trace.state, clean(trace.state, 40)), clean(trace.reason, 400)
    blocks: list[Block] = []
    if state:
        blocks.append(Text(bold(f"{state[:1].upper()}{state[1:]}{f': {reason}' if reason else ''}"), "state"))
    if trace.prompt or trace.reply:
        blocks.append(talk(block(trace.prompt, _TEXT), block(trace.reply, _TEXT)))
    else:
        blocks.append(Text("Computed from the weights; the model is not asked.", "cap"))
    cut = trace.cut or max(len(trace.prompt), len(trace.reply)) > _TEXT
    if calls.get(trace.key):
        blocks.append(Text(("Excerpts. " if cut else "", Linked("Whole call", calls[trace.key]))))
    elif cut:
        where = f" under the key {clean(trace.key, 80)}" if trace.key else ""
        blocks.append(Text(f"Excerpts. The whole call is in the ledger{where}."))
    blocks += [Table(columns, rows, summary="", style="tall")] if rows else []
    left = len(trace.rows) - len(rows)
    blocks += [Text(f"{counted(left, 'more row')} are not shown.")] if left > 0 else []
    arithmetic = tuple(clean(line, 400) for line in trace.arithmetic[:_LINES])
    blocks += [Items(arithmetic, "sum")] if arithmetic else []
    title = f"{name}: {STAGES[name][1]}" if name in STAGES else name
    return Group((title, small(f"Score {number(trace.score, 3)}")), tuple(blocks), style="stage")


def episodes_table(book: BenchBook, paths: Sequence[str]) -> Table:
    """The list of episodes, by model, profile and window in the order of the plan."""
    profiles = [profile.name for profile in book.run.profiles]
    windows = [window.name for window in book.run.windows]

    def place(pair: tuple[EpisodeTrace, str]) -> tuple[str, int, int, str]:
        one, path = pair
        at = profiles.index(one.profile) if one.profile in profiles else len(profiles)
        when = windows.index(one.window) if one.window in windows else len(windows)
        return one.model, at, when, path

    rows = []
    for one, path in sorted(zip(book.run.episodes, paths, strict=True), key=place):
        troubled = sum(stage.state != "ok" for trace in one.dates for stage in trace.stages)
        scores = [] if one.model in book.unscored else [trace.ceps for trace in one.dates]
        model = clean(one.model, 60)
        cells = (
            Linked(model, f"{path}.html"),
            clean(one.profile, 40),
            book.window(one.window),
            count(len(one.dates)),
            span(min(scores), max(scores)) if scores else "no score" if one.dates else "no date",
            count(troubled) if troubled else "none",
        )
        rows.append(Row(cells, key=model))
    return Table(
        ("Episode", "Profile", "Window", "Dates", "CEPS of a date", "Stages not read as asked"),
        tuple(rows),
        frozenset((3, 4, 5)),
        "",
        stacked=True,
        id="episode-rows",
        filters=row_filters(sorted(row.key for row in rows)),
        what="episodes",
    )
