"""The records of a benchmark: a page for every episode, every answer to a question, and what leads to their calls.

Replies of models are hostile input: they pass `block`, are cut to a length, and are escaped by the template.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement, content_id
from assaymark.report.blocks import (
    Beside,
    Block,
    Group,
    Inline,
    Items,
    Linked,
    Passage,
    Row,
    Section,
    Table,
    Text,
    bold,
    only,
    row_filters,
    small,
)
from assaymark.report.page import Frame, file_stems, paged
from assaymark.report.portbench.book import STAGES, BenchmarkIndex
from assaymark.report.portbench.inputs import AskedQuestion, DateTrace, EpisodeTrace, StageTrace
from assaymark.report.records.answers import AnswerRow, each_answer_page
from assaymark.report.records.judgments import PAGE, page_paths
from assaymark.report.text import counted, moment
from assaymark.text import clean, count, number, span, visible

_BY: Final = ("template", "condition", "regime", "kind")


@dataclass(frozen=True, slots=True)
class BenchTrail:
    """Where the answers of a benchmark and its episodes stand; ``episodes`` come with the place of each date."""

    asked: Sequence[AskedQuestion]
    pages: Mapping[str, tuple[tuple[str, tuple[AnswerRow, ...]], ...]]
    places: Mapping[tuple[str, str, str], str]
    episodes: Sequence[tuple[EpisodeTrace, Sequence[str]]]

    @classmethod
    def of(cls, asked: Sequence[AskedQuestion], episodes: Sequence[tuple[EpisodeTrace, Sequence[str]]]) -> BenchTrail:
        """Plan the pages of answers; ``episodes`` come with the place of each of their dates."""
        by_model: defaultdict[str, list[AskedQuestion]] = defaultdict(list)
        for one in sorted(asked, key=lambda one: (one.model, one.template, one.condition, one.question)):
            by_model[one.model].append(one)
        pages: dict[str, tuple[tuple[str, tuple[AnswerRow, ...]], ...]] = {}
        places: dict[tuple[str, str, str], str] = {}
        stems = file_stems("answers", [(model,) for model in by_model])
        for (model, mine), stem in zip(by_model.items(), stems, strict=True):
            rows = []
            for one in mine:
                state = "" if one.state == "ok" else f", {clean(one.state, 200)}"
                rows.append(AnswerRow(
                    anchor=f"q{content_id([one.model, one.question, one.condition])[:12]}",
                    key=clean(one.template, 12), title=clean(one.question, 80),
                    about=f"{clean(one.template, 12)}, {clean(one.kind, 24)}, {clean(one.regime, 40)}",
                    asked=f"{clean(one.condition, 24)} condition", trial="1",
                    answer=f"{number(one.score, 3)}{state}", usable=one.state == "ok", call_key=one.key,
                ))  # fmt: skip
            pages[model] = page_paths(stem, paged(rows, PAGE))
            anchors = {row.anchor: f"{path}#{row.anchor}" for path, part in pages[model] for row in part}
            for one, row in zip(mine, rows, strict=True):
                places[model, one.condition, one.question] = anchors[row.anchor]
        return cls([one for rows in by_model.values() for one in rows], pages, places, episodes)

    def uses(self) -> dict[str, list[Linked]]:
        """What rests on each call, by its key: stages of episodes, then answers."""
        found: defaultdict[str, list[Linked]] = defaultdict(list)
        for episode, dates in self.episodes:
            for date, place in zip(episode.dates, dates, strict=True):
                for stage in date.stages:
                    if stage.key:
                        who = f"{episode.model}, {episode.profile}, {episode.window}"
                        found[stage.key].append(Linked(f"{who}: {stage.stage} on {date.day}", place))
        for one in self.asked:
            words = f"{one.model} on {one.question}, {one.condition}"
            found[one.key].append(Linked(words, self.places[one.model, one.condition, one.question]))
        return found

    def rests(self, item: Measurement) -> tuple[Linked, ...]:
        """What a measurement of a benchmark was computed from."""
        if item.name == "bench.question":
            return self._answers(item)
        wanted = {key: item.labels[key] for key in ("model", "profile", "window") if key in item.labels}
        found = [
            dates
            for episode, dates in self.episodes
            if all(value in ("all", getattr(episode, key)) for key, value in wanted.items())
        ]
        if not found or "model" not in item.labels:
            return ()
        if len(found) == 1 and found[0]:
            return (Linked("1 episode", found[0][0].partition("#")[0]),)
        if len(found) == sum(episode.model == item.labels["model"] for episode, _ in self.episodes):
            return (Linked(counted(len(found), "episode"), f"episodes.html#{only(clean(item.labels['model'], 60))}"),)
        return (Linked(f"{count(len(found))} among the episodes", "episodes.html"),)

    def _answers(self, item: Measurement) -> tuple[Linked, ...]:
        wanted = {key: item.labels[key] for key in _BY if key in item.labels}
        if " less " in wanted.get("condition", ""):
            del wanted["condition"]
        mine = [one for one in self.asked if one.model == item.labels.get("model")]
        found = [one for one in mine if all(getattr(one, key) == value for key, value in wanted.items())]
        if not found:
            return ()
        first, pages, said = found[0], self.pages[found[0].model], counted(len(found), "answer")
        if len(found) == len(mine):
            return (Linked(said, pages[0][0]),)
        if len(pages) == 1 and found == [one for one in mine if one.template == first.template]:
            return (Linked(said, f"{pages[0][0]}#{only(clean(first.template, 12))}"),)
        place = self.places[first.model, first.condition, first.question]
        return (Linked(f"{count(len(found))} among the answers", place),)

    def answer_pages(self, frame: Frame, calls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The pages of answers, one at a time, as path and HTML."""
        lead = (
            "Every question with its score and the state of its reply. Rows are sorted by template. Means: ",
            Linked("measurements", "measurements.html"),
        )
        heads = ("Question", "What it is", "Asked", "Score", "Call")
        yield from each_answer_page(lead, heads, "questions", self.pages, frame, calls)


def block(text: str, limit: int) -> str:
    """A text with its lines and no character unseen, cut where it is too long.

    >>> block("a\\r\\nb\\u202ec", 10)
    'a\\nb[U+202E]c'
    >>> block("x" * 12, 5)
    'xxxxx\\n[7 more characters are not shown]'
    """
    safe, left = visible(text[:limit].replace("\r\n", "\n").replace("\r", "\n")), len(text) - limit
    return safe if left <= 0 else f"{safe}\n[{count(left)} more characters are not shown]"


def talk(asked: str, said: str) -> Beside:
    """A prompt beside its reply."""
    texts = (
        (Group(name, (Passage(text or "(empty)", style=""),)),) for name, text in (("Prompt", asked), ("Reply", said))
    )
    return Beside(tuple(texts), "talk")


# --- a page for every episode, in the manner of figures 28 to 30: what was asked, said, true, and how it was scored ---


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
    return file_stems("episodes", [(episode.model, episode.profile, episode.window) for episode in episodes])


def date_section(at: int, trace: DateTrace, calls: Mapping[str, str], *, opened: bool) -> Section:
    """One decision date: its scores, then every stage with prompt, reply, truth and arithmetic."""
    words = "; ".join(f"{clean(stage.stage, 8)} {_state(stage)}" for stage in trace.stages if stage.state != "ok")
    scores = ", ".join(f"{clean(stage.stage, 8)} {number(stage.score)}" for stage in trace.stages)
    lead: list[Inline] = [f"CEPS {number(trace.ceps, 3)}, alignment {number(trace.pas, 3)}. {scores}."]
    lead += [" ", bold(words)] if words else []
    stages = tuple(_stage(stage, calls) for stage in trace.stages)
    group = Group("The stages of this date", stages, folded="open" if opened else "closed")
    return Section(f"d{at}", moment(trace.day), tuple(lead), (group,))


def _state(trace: StageTrace) -> str:
    return STATES.get(trace.state, clean(trace.state, 40))


def _stage(trace: StageTrace, calls: Mapping[str, str]) -> Group:
    columns = tuple(clean(column, 60) for column in trace.columns[:_COLUMNS])
    rows = tuple(
        tuple(clean(cell, _CELL) for cell in row[:_COLUMNS]) + ("",) * (len(columns) - len(row))
        for row in trace.rows[:_ROWS]
    )
    name, state, reason, blocks = clean(trace.stage, 8), _state(trace), clean(trace.reason, 400), list[Block]()
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


def episodes_table(book: BenchmarkIndex, paths: Sequence[str]) -> Table:
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
            Linked(model, f"{path}.html"), clean(one.profile, 40), book.window(one.window), count(len(one.dates)),
            span(min(scores), max(scores)) if scores else "no score" if one.dates else "no date",
            count(troubled) if troubled else "none",
        )  # fmt: skip
        rows.append(Row(cells, key=model))
    heads = ("Episode", "Profile", "Window", "Dates", "CEPS of a date", "Stages not read as asked")
    filters = row_filters(sorted(row.key for row in rows))
    return Table(heads, tuple(rows), frozenset((3, 4, 5)), "", stacked=True, id="episode-rows", filters=filters,
                 what="episodes")  # fmt: skip
