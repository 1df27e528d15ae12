"""Texts of several lines from outside, made safe to show: models write whatever they like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement, content_id
from assaymark.report.blocks import Beside, Group, Linked, Passage, only
from assaymark.report.page import Frame, file_stems, paged
from assaymark.report.portbench.inputs import AskedQuestion, EpisodeTrace
from assaymark.report.records.answers import AnswerRow, each_answer_page
from assaymark.report.records.judgments import PAGE, page_paths
from assaymark.report.text import counted
from assaymark.text import clean, count, number, visible

# The records of a benchmark: every answer to a question, and what leads to the call of an answer or of a stage.


EPISODES_FOLDER: Final = "answers"
_OF_QUESTIONS: Final = "bench.question"
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
        stems = file_stems(EPISODES_FOLDER, [(model,) for model in by_model])
        for (model, rows), stem in zip(by_model.items(), stems, strict=True):
            pages[model] = page_paths(stem, paged([_row(one) for one in rows], PAGE))
            anchors = {row.anchor: f"{path}#{row.anchor}" for path, part in pages[model] for row in part}
            for one in rows:
                places[model, one.condition, one.question] = anchors[_anchor(one)]
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
        if item.name == _OF_QUESTIONS:
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
        found = [
            one
            for one in self.asked
            if one.model == item.labels.get("model") and all(getattr(one, key) == v for key, v in wanted.items())
        ]
        if not found:
            return ()
        first, pages = found[0], self.pages[found[0].model]
        mine = [one for one in self.asked if one.model == first.model]
        if len(found) == len(mine):
            return (Linked(counted(len(found), "answer"), pages[0][0]),)
        if len(pages) == 1 and found == [one for one in mine if one.template == first.template]:
            return (Linked(counted(len(found), "answer"), f"{pages[0][0]}#{only(clean(first.template, 12))}"),)
        return (
            Linked(f"{count(len(found))} among the answers", self.places[first.model, first.condition, first.question]),
        )

    def answer_pages(self, frame: Frame, calls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The pages of answers, one at a time, as path and HTML."""
        lead = (
            "Every question with its score and the state of its reply. Rows are sorted by template. Means: ",
            Linked("measurements", "measurements.html"),
        )
        heads = ("Question", "What it is", "Asked", "Score", "Call")
        yield from each_answer_page(lead, heads, "questions", self.pages, frame, calls)


def _anchor(one: AskedQuestion) -> str:
    return f"q{content_id([one.model, one.question, one.condition])[:12]}"


def _row(one: AskedQuestion) -> AnswerRow:
    state = "" if one.state == "ok" else f", {clean(one.state, 200)}"
    return AnswerRow(
        anchor=_anchor(one),
        key=clean(one.template, 12),
        title=clean(one.question, 80),
        about=f"{clean(one.template, 12)}, {clean(one.kind, 24)}, {clean(one.regime, 40)}",
        asked=f"{clean(one.condition, 24)} condition",
        trial="1",
        answer=f"{number(one.score, 3)}{state}",
        usable=one.state == "ok",
        call_key=one.key,
    )


def block(text: str, limit: int) -> str:
    """A text with its lines and no character unseen, cut where it is too long.

    >>> block("a\\r\\nb\\u202ec", 10)
    'a\\nb[U+202E]c'
    >>> block("x" * 12, 5)
    'xxxxx\\n[7 more characters are not shown]'
    """
    kept = text[:limit].replace("\r\n", "\n").replace("\r", "\n")
    safe = visible(kept)
    left = len(text) - limit
    return safe if left <= 0 else f"{safe}\n[{count(left)} more characters are not shown]"


def talk(asked: str, said: str) -> Beside:
    """A prompt beside its reply."""
    texts = (
        (Group(name, (Passage(text or "(empty)", style=""),)),) for name, text in (("Prompt", asked), ("Reply", said))
    )
    return Beside(tuple(texts), "talk")
