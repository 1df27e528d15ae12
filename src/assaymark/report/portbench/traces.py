"""A page for every episode, in the manner of figures 28 to 30: what was asked, said, true, and how it was scored.

Replies of models are hostile input: they pass `block`, are cut to a length, and are escaped by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.report.page import file_stems, row_bytes
from assaymark.report.portbench.book import STAGES, BenchBook
from assaymark.report.portbench.inputs import DateTrace, EpisodeTrace, StageTrace
from assaymark.report.portbench.records import block
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


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage on one date, ready to show. ``state`` is empty where the reply could be read as asked."""

    title: str
    score: str
    kind: str
    state: str
    prompt: str
    reply: str
    cut: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: str
    arithmetic: tuple[str, ...]
    key: str = ""

    @property
    def size(self) -> int:
        """About how many bytes it will take on a page."""
        cells = [cell for row in self.rows for cell in row]
        texts = (self.title, self.state, self.prompt, self.reply, self.cut, *self.columns, *cells, *self.arithmetic)
        return row_bytes(900 + 10 * len(cells) + 14 * len(self.rows), texts)


@dataclass(frozen=True, slots=True)
class DateView:
    """One decision date."""

    id: str
    title: str
    ceps: str
    pas: str
    scores: str
    troubled: str
    stages: tuple[StageView, ...]

    @property
    def size(self) -> int:
        """About how many bytes it will take on a page."""
        return 400 + sum(stage.size for stage in self.stages)


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One line of the list of episodes."""

    path: str
    model: str
    profile: str
    window: str
    dates: str
    ceps: str
    troubled: str


def episode_paths(episodes: Sequence[EpisodeTrace]) -> tuple[str, ...]:
    """Where the pages of episodes lie, without their ending: safe as file names everywhere, and no two alike.

    >>> one = EpisodeTrace(model="a", profile="b-c", window="d", dates=())
    >>> two = EpisodeTrace(model="a-b", profile="c", window="d", dates=())
    >>> first, second = episode_paths([one, two])
    >>> first != second, episode_paths([one])
    (True, ('episodes/a-b-c-d',))
    """
    return file_stems("episodes", [(one.model, one.profile, one.window) for one in episodes])


def date_views(episode: EpisodeTrace) -> tuple[DateView, ...]:
    """The dates of an episode in their order."""
    return tuple(_date(trace, at) for at, trace in enumerate(episode.dates, 1))


def _date(trace: DateTrace, at: int) -> DateView:
    troubled = [stage for stage in trace.stages if stage.state != "ok"]
    words = "; ".join(
        f"{clean(stage.stage, 8)} {STATES.get(stage.state, clean(stage.state, 40))}" for stage in troubled
    )
    return DateView(
        id=f"d{at}",
        title=moment(trace.day),
        ceps=number(trace.ceps, 3),
        pas=number(trace.pas, 3),
        scores=", ".join(f"{clean(stage.stage, 8)} {number(stage.score)}" for stage in trace.stages),
        troubled=words,
        stages=tuple(_stage(stage) for stage in trace.stages),
    )


def _stage(trace: StageTrace) -> StageView:
    name = clean(trace.stage, 8)
    rows = tuple(
        tuple(clean(cell, _CELL) for cell in row[:_COLUMNS]) + ("",) * (min(len(trace.columns), _COLUMNS) - len(row))
        for row in trace.rows[:_ROWS]
    )
    left = len(trace.rows) - len(rows)
    state = STATES.get(trace.state, clean(trace.state, 40))
    reason = clean(trace.reason, 400)
    return StageView(
        title=f"{name}: {STAGES[name][1]}" if name in STAGES else name,
        score=number(trace.score, 3),
        kind="" if trace.prompt or trace.reply else "Computed from the weights; the model is not asked.",
        state=f"{state[:1].upper()}{state[1:]}{f': {reason}' if reason else ''}" if state else "",
        prompt=block(trace.prompt, _TEXT),
        reply=block(trace.reply, _TEXT),
        cut=_cut(trace),
        columns=tuple(clean(column, 60) for column in trace.columns[:_COLUMNS]),
        rows=rows,
        left_out=f"{counted(left, 'more row')} are not shown." if left > 0 else "",
        arithmetic=tuple(clean(line, 400) for line in trace.arithmetic[:_LINES]),
        key=trace.key,
    )


def _cut(trace: StageTrace) -> str:
    if not trace.cut and max(len(trace.prompt), len(trace.reply)) <= _TEXT:
        return ""
    where = f" under the key {clean(trace.key, 80)}" if trace.key else ""
    return f"Excerpts. The whole call stands in the ledger{where}."


def episode_rows(book: BenchBook, paths: Sequence[str]) -> tuple[EpisodeRow, ...]:
    """The list of episodes, by model, profile and window in the order of the plan."""
    profiles = [profile.name for profile in book.run.profiles]
    windows = [window.name for window in book.run.windows]

    def place(pair: tuple[EpisodeTrace, str]) -> tuple[str, int, int, str]:
        one, path = pair
        at = profiles.index(one.profile) if one.profile in profiles else len(profiles)
        when = windows.index(one.window) if one.window in windows else len(windows)
        return one.model, at, when, path

    ordered = sorted(zip(book.run.episodes, paths, strict=True), key=place)
    return tuple(_row(book, one, f"{path}.html") for one, path in ordered)


def _row(book: BenchBook, one: EpisodeTrace, path: str) -> EpisodeRow:
    troubled = sum(stage.state != "ok" for trace in one.dates for stage in trace.stages)
    scores = [] if one.model in book.unscored else [trace.ceps for trace in one.dates]
    return EpisodeRow(
        path=path,
        model=clean(one.model, 60),
        profile=clean(one.profile, 40),
        window=book.window(one.window),
        dates=count(len(one.dates)),
        ceps=span(min(scores), max(scores)) if scores else "no score" if one.dates else "no date",
        troubled=count(troubled) if troubled else "none",
    )
