"""The records of a benchmark: a page for every episode, every answer to a question, and what leads to their calls.

Replies of models are hostile input: they pass `block`, are cut to a length, and are escaped by the template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.benchmark.questions.answers import EXCERPT, FORMULA, JUDGMENT, Scored
from assaymark.benchmark.questions.published import answer_text
from assaymark.records import Measurement, content_id
from assaymark.report import blocks as b
from assaymark.report.page import Frame, file_stems
from assaymark.report.portbench import book as bench
from assaymark.report.portbench import levels
from assaymark.report.portbench.book import QUESTIONS, STAGES, BenchmarkIndex, DateTrace, EpisodeTrace
from assaymark.report.records.answers import Pages, answer_parts, answer_row, each_answer_page
from assaymark.report.text import block, counted, interval, moment, signed
from assaymark.text import clean, count, number, span

Answer = tuple[str, Scored]
"""The name of a model, and one of its answers."""


def _labels(one: Scored) -> dict[str, str]:
    """What a measurement of questions may be labelled by."""
    template = one.question.template
    kind = "formula" if template in FORMULA else "judgment" if template in JUDGMENT else ""
    return {"template": template, "condition": one.condition, "regime": one.question.regime, "kind": kind}


@dataclass(frozen=True, slots=True)
class BenchTrail:
    """Where the answers of a benchmark and its episodes stand; ``episodes`` come with the place of each date."""

    asked: Sequence[Answer]
    pages: Mapping[str, Pages]
    places: Mapping[tuple[str, str, str], str]
    episodes: Sequence[tuple[EpisodeTrace, Sequence[str]]]

    @classmethod
    def of(
        cls, answers: Mapping[str, Sequence[Scored]], episodes: Sequence[tuple[EpisodeTrace, Sequence[str]]]
    ) -> BenchTrail:
        """Plan the pages of answers."""
        by_model = {
            model: sorted(mine, key=lambda one: (one.question.template, one.condition, one.question.id))
            for model, mine in sorted(answers.items())
            if mine
        }
        pages: dict[str, Pages] = {}
        places: dict[tuple[str, str, str], str] = {}
        stems = file_stems("answers", [(model,) for model in by_model])
        for (model, mine), stem in zip(by_model.items(), stems, strict=True):
            rows = []
            for one in mine:
                labels, usable = _labels(one), one.score.state == "ok"
                about = f"{labels['template']}, {labels['kind']}, {clean(labels['regime'], 40)}"
                said = f"{number(one.score.score, 3)}{'' if usable else f', {clean(one.score.state, 200)}'}"
                cells = (clean(one.question.id, 80), about, f"{clean(one.condition, 24)} condition", said)
                anchor = f"q{content_id([model, one.question.id, one.condition])[:12]}"
                rows.append(answer_row(anchor, labels["template"], cells, usable, one.key))
            pages[model] = answer_parts(stem, rows)
            anchors = {row.id: f"{path}#{row.id}" for path, part in pages[model] for row, _ in part}
            for one, (row, _) in zip(mine, rows, strict=True):
                places[model, one.condition, one.question.id] = anchors[row.id]
        return cls([(model, one) for model, mine in by_model.items() for one in mine], pages, places, episodes)

    def uses(self) -> dict[str, list[b.Linked]]:
        """What rests on each call, by its key: stages of episodes, then answers."""
        found: defaultdict[str, list[b.Linked]] = defaultdict(list)
        for episode, dates in self.episodes:
            who = f"{episode.model}, {episode.profile}, {episode.window}"
            for date, place in zip(episode.dates, dates, strict=True):
                for stage in date.stages:
                    if stage.heard.key:
                        found[stage.heard.key].append(b.Linked(f"{who}: {stage.stage} on {date.day}", place))
        for model, one in self.asked:
            words = f"{model} on {one.question.id}, {one.condition}"
            found[one.key].append(b.Linked(words, self.places[model, one.condition, one.question.id]))
        return found

    def rests(self, item: Measurement) -> tuple[b.Linked, ...]:
        """What a measurement of a benchmark was computed from."""
        model = item.labels.get("model", "")
        if item.name == "bench.question":
            wanted = {key: value for key, value in item.labels.items() if key != "model"}
            if " less " in wanted.get("condition", ""):
                del wanted["condition"]
            mine = [one for name, one in self.asked if name == model]
            answers = [one for one in mine if wanted.items() <= _labels(one).items()]
            if not answers:
                return ()
            first, pages, said = answers[0].question.template, self.pages[model], counted(len(answers), "answer")
            if len(answers) == len(mine):
                return (b.Linked(said, pages[0][0]),)
            if len(pages) == 1 and answers == [one for one in mine if one.question.template == first]:
                return (b.Linked(said, f"{pages[0][0]}#{b.only(first)}"),)
            place = self.places[model, answers[0].condition, answers[0].question.id]
            return (b.Linked(f"{count(len(answers))} among the answers", place),)
        wanted = {key: item.labels[key] for key in ("model", "profile", "window") if key in item.labels}
        found = [
            dates
            for episode, dates in self.episodes
            if all(value in ("all", getattr(episode, key)) for key, value in wanted.items())
        ]
        if not found or "model" not in item.labels:
            return ()
        if len(found) == 1 and found[0]:
            return (b.Linked("1 episode", found[0][0].partition("#")[0]),)
        if len(found) == sum(episode.model == model for episode, _ in self.episodes):
            return (b.Linked(counted(len(found), "episode"), f"episodes.html#{b.only(clean(model, 60))}"),)
        return (b.Linked(f"{count(len(found))} among the episodes", "episodes.html"),)

    def answer_pages(self, frame: Frame, calls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The pages of answers, one at a time, as path and HTML."""
        lead = (
            "Every question with its score and the state of its reply. Rows are sorted by template. Means: ",
            b.Linked("measurements", "measurements.html"),
        )
        heads = ("Question", "What it is", "Asked", "Score", "Call")
        yield from each_answer_page(lead, heads, "questions", self.pages, frame, calls)


def _talk(asked: str, said: str) -> b.Beside:
    """A prompt beside its reply."""
    texts = (("Prompt", asked), ("Reply", said))
    return b.Beside(tuple((b.Group(name, (b.Passage(text or "(empty)", style=""),)),) for name, text in texts), "talk")


# --- a page for every episode, in the manner of figures 28 to 30: what was asked, said, true, and how it was scored ---


_STATES: Final[Mapping[str, str]] = {
    "ok": "", "partial": "read in part", "invalid": "could not be read", "refused": "refused", "truncated": "cut off",
}  # fmt: skip
_TEXT, _ROWS, _CELL, _LINES, _COLUMNS, _QUESTION = 4_000, 400, 120, 40, 12, 6_000


def episode_paths(episodes: Sequence[EpisodeTrace]) -> tuple[str, ...]:
    """Where the pages of episodes lie, without their ending: safe as file names everywhere, and no two alike."""
    return file_stems("episodes", [(episode.model, episode.profile, episode.window) for episode in episodes])


def date_section(at: int, trace: DateTrace, calls: Mapping[str, str], *, opened: bool) -> b.Section:
    """One decision date: its scores, then every stage with prompt, reply, truth and arithmetic."""
    words, stages = [], []
    for one in trace.stages:
        name, reason, blocks = clean(one.stage, 8), clean(one.state.reason, 400), list[b.Block]()
        if state := _STATES.get(one.state.state, clean(one.state.state, 40)):
            words.append(f"{name} {state}")
            blocks.append(b.Text(b.bold(f"{state[:1].upper()}{state[1:]}{f': {reason}' if reason else ''}"), "state"))
        heard = one.heard
        if heard.prompt or heard.reply:
            blocks.append(_talk(block(heard.prompt, _TEXT), block(heard.reply, _TEXT)))
        else:
            blocks.append(b.Text("Computed from the weights; the model is not asked.", "cap"))
        cut = heard.cut or max(len(heard.prompt), len(heard.reply)) > _TEXT
        if calls.get(heard.key):
            blocks.append(b.Text(("Excerpts. " if cut else "", b.Linked("Whole call", calls[heard.key]))))
        elif cut:
            where = f" under the key {clean(heard.key, 80)}" if heard.key else ""
            blocks.append(b.Text(f"Excerpts. The whole call is in the ledger{where}."))
        columns = tuple(clean(column, 60) for column in one.columns[:_COLUMNS])
        rows = tuple(
            tuple(clean(cell, _CELL) for cell in row[:_COLUMNS]) + ("",) * (len(columns) - len(row))
            for row in one.rows[:_ROWS]
        )
        blocks += [b.Table(columns, rows, summary="", style="tall")] if rows else []
        left = len(one.rows) - len(rows)
        blocks += [b.Text(f"{counted(left, 'more row')} are not shown.")] if left > 0 else []
        arithmetic = tuple(clean(line, 400) for line in one.arithmetic[:_LINES])
        blocks += [b.Items(arithmetic, "sum")] if arithmetic else []
        title = f"{name}: {STAGES[name][1]}" if name in STAGES else name
        head = (title, b.small(f"Score {number(one.score, 3)}"))
        stages.append(b.Group(head, tuple(blocks), style="stage"))
    scores = ", ".join(f"{clean(stage.stage, 8)} {number(stage.score)}" for stage in trace.stages)
    lead: list[b.Inline] = [f"CEPS {number(trace.ceps, 3)}, alignment {number(trace.pas, 3)}. {scores}."]
    lead += [" ", b.bold("; ".join(words))] if words else []
    group = b.Group("The stages of this date", tuple(stages), folded="open" if opened else "closed")
    return b.Section(f"d{at}", moment(trace.day), tuple(lead), (group,))


def episodes_table(book: BenchmarkIndex, paths: Sequence[str]) -> b.Table:
    """The list of episodes, by model, profile and window in the order of the plan."""
    profiles = {profile.name: at for at, profile in enumerate(book.run.profiles)}
    windows = {window.name: at for at, window in enumerate(book.run.windows)}

    def place(pair: tuple[EpisodeTrace, str]) -> tuple[str, int, int, str]:
        one, path = pair
        return one.model, profiles.get(one.profile, len(profiles)), windows.get(one.window, len(windows)), path

    rows, unscored = [], {name for board in bench.pipeline_boards(book.run) for name in board.unscored}
    for one, path in sorted(zip(book.run.episodes, paths, strict=True), key=place):
        troubled = sum(stage.state.state != "ok" for trace in one.dates for stage in trace.stages)
        scores = [] if one.model in unscored else [trace.ceps for trace in one.dates]
        model = clean(one.model, 60)
        cells = (
            b.Linked(model, f"{path}.html"), clean(one.profile, 40), book.window(one.window), count(len(one.dates)),
            span(min(scores), max(scores)) if scores else "no score" if one.dates else "no date",
            count(troubled) if troubled else "none",
        )  # fmt: skip
        rows.append(b.Row(cells, key=model))
    heads = ("Episode", "Profile", "Window", "Dates", "CEPS of a date", "Stages not read as asked")
    filters = b.row_filters(sorted(row.key for row in rows))
    return b.Table(heads, tuple(rows), frozenset((3, 4, 5)), "", stacked=True, id="episode-rows", filters=filters,
                   what="episodes")  # fmt: skip


# --- questions --------------------------------------------------------------------------------------------------------


TEMPLATES: Final = {
    "T1": "direction", "T2": "value at risk", "T3": "position size", "T4": "two assets", "T5": "best mix",
    "T6": "rebalance", "T7": "regime",
}  # fmt: skip
DIFFERENCE: Final = "full less restricted"
"""The condition under which the cost of taking context out is measured."""

_WORDS: Final = {
    "full": "full condition: everything that is needed stands in the question",
    "restricted": "restricted condition: covariances are taken out",
    DIFFERENCE: "full less restricted: what the covariances are worth",
}


def questions_section(book: BenchmarkIndex) -> b.Section:
    """Supported claims on questions against the pipeline, the tables with their notes, and a link to the questions."""
    heading = "What does it know without a portfolio?"
    if "bench.question" not in book.by_name:
        return b.Section("questions", heading, book.missing("qa"))
    items, order = book.by_name["bench.question"], list(_WORDS)
    found = sorted({item.labels["condition"] for item in items})
    conditions = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    first, *others = (
        [_table(book, f"by-{key}-{at}", condition, key) for at, condition in enumerate(conditions, 1)]
        for key in ("template", "kind", "regime")
    )
    rest = tuple(table for tables in others for table in tables if table is not None)
    more = (b.Group("Formula against judgment, and by market regime", rest, folded="closed"),) if rest else ()
    compared = book.of_kind("dissociation")
    said = tuple(levels.said_claim(book, one) for one in compared if one.publication_level != "no-claim")
    claims = (b.Items(said, f"claims {said[0].level}"),) if said else ()
    some = f"{counted(len(shown_answers(book)), 'question')} as asked, answered and scored"
    traces = (b.Text(b.Linked(some, "questions.html")),) if any(book.run.answers.values()) else ()
    # Denominators, methods, unread replies, and how questions compare with the pipeline.
    notes = list[str]()
    sizes = sorted({item.n for item in items if "template" in item.labels})
    methods = sorted({clean(item.method, 120) for item in items if item.low is not None})
    if sizes:
        each = number(sizes[0], 0) if sizes[0] == sizes[-1] else f"{number(sizes[0], 0)} to {number(sizes[-1], 0)}"
        notes.append(f"{each} questions a cell. Intervals: {'; '.join(methods) or 'none can be given'}.")
    notes.append(levels.design_note(book, QUESTIONS))
    states = [one.score.state for mine in book.run.answers.values() for one in mine]
    total, lost = len(states), len(states) - states.count("ok")
    if total:
        read = f"Of {counted(total, 'answer')} {'all' if not lost else number(total - lost, 0)} could be read as asked"
        rest_of = f"; the other {number(lost, 0)} are scored as the plan says, not left out." if lost else "."
        notes.append(read + rest_of)
    if not book.has_pipeline:
        notes.append(f"Questions cannot be compared with the pipeline. {book.missing('pipeline')}")
    for verdict in compared:
        if verdict.publication_level == "no-claim":
            why = " ".join(map(levels.said_words, verdict.reasons))
            notes.append(f"Not supported: {levels.withheld_words(book, verdict)} {why}")
    if book.has_pipeline and not compared:
        notes.append("Comparing the rankings of questions and pipeline needs three models or more.")
    lead = (
        "Mean scores on static questions, T1 to T7, each asked in its own call. Models of a tier are in alphabetical "
        "order."
    )
    tables = (table for table in first if table is not None)
    return b.Section("questions", heading, lead, (*claims, *tables, *more, *b.notes(tuple(notes)), *traces))


def _table(book: BenchmarkIndex, name: str, condition: str, key: str) -> b.Group | None:
    """One condition; only what was asked under it has a column."""
    by = {"template": "template", "kind": "formula or judgment", "regime": "market regime"}[key]
    asked = list(book.every("bench.question", condition=condition))
    values = sorted({item.labels[key] for item in asked if key in item.labels})
    if not values:
        return None
    whole = key == "template" and any(set(item.labels) == {"model", "condition"} for item in asked)
    known = condition in _WORDS and (key == "template" or condition == DIFFERENCE)
    title = f"By {by}, {_WORDS[condition] if known else f'{clean(condition, 24)} condition'}"
    board, heads, rows = book.board(QUESTIONS), list[levels.GroupHead | None]([None]), list[b.Row]()
    if whole and condition == "full" and board is not None and {*board.models, *board.unscored} == set(book.names):
        heads = [*levels.group_heads(book, board), *levels.unscored_heads(book, board)]
    for head in heads:
        rows += [] if head is None else [b.Row((head.shown,))]
        for model in book.names if head is None else head.members:
            labels, cells = {"model": model, "condition": condition}, []
            for value in values:
                item = book.one("bench.question", **labels, **{key: value})
                cell = levels.stage_cell(book, item)
                if condition == DIFFERENCE and item is not None and item.value is not None:
                    # A difference has its sign; it is no share of 1, so it has no tint.
                    cell = replace(cell, share=0.0, value=book.to(item, signed(item.value)))
                cells.append(cell)
            note = "" if head is None else head.ranks.get(model, "")
            item, every = book.one("bench.question", **labels), ""
            if whole:  # a point only where the rank is supported
                every = bench.range_words(item)
                if item is not None and item.value is not None and item.low is not None and head and head.licensed:
                    every = interval(item.value, item.low, item.high)
                every = book.to(item, every)
            who = clean(model, 60), b.small(note) if note else ""
            rows.append(b.Row((who, *cells, *((every,) if whole else ()))))
    named = (((f"{clean(value, 24)} "), b.small(TEMPLATES.get(value, ""))) for value in values)
    table = b.Table(
        ("Model", *named, *(("All, interval",) if whole else ())), tuple(rows), summary="",
        style="heat q few" if len(values) < 5 else "heat q", label=title,
        columns=("", *("hc",) * len(values), *("iv",) * whole),
    )  # fmt: skip
    return b.Group(title, (table,), name)


def template_words(name: str) -> str:
    """A template with what it asks for."""
    name = clean(name, 12)
    return f"{name}, {TEMPLATES[name]}" if name in TEMPLATES else name


def question_cards(book: BenchmarkIndex, calls: Mapping[str, str]) -> Iterator[b.Group]:
    """Questions as they were asked, answered and scored, by template, condition and model."""

    def place(one: Answer) -> tuple[str, ...]:
        model, said = one
        return said.question.template, said.condition, model, said.question.regime, said.question.prompt(said.condition)

    for model, one in sorted(shown_answers(book), key=place):
        question, score = one.question, one.score
        about: list[b.Inline] = [f"{clean(model, 60)}, {one.condition} condition, {clean(question.regime, 24)}"]
        state = score.state if not score.reason else f"{score.state}: {score.reason}"
        about += [] if state == "ok" else [". ", b.bold(f"Reply: {clean(state, 200)}")]
        truth: list[b.Inline] = [b.bold("True: "), block(answer_text(question.answer), 600)]
        truth += [" ", b.Linked("Whole call", calls[one.key])] if calls.get(one.key) else []
        asked = _talk(block(question.prompt(one.condition)[:EXCERPT], _QUESTION), block(one.reply, _QUESTION))
        yield b.Group(
            (template_words(question.template), b.small(f"Score {number(score.score, 3)}")),
            (b.Text(tuple(about), "cap"), b.Group("Question and reply", (asked,), folded="closed"),
             b.Text(tuple(truth), "sum")),
            key=question.template, style="stage", level=2,
        )  # fmt: skip


def shown_answers(book: BenchmarkIndex) -> list[Answer]:
    """The worst and the best answered question of each model, template and condition."""
    found: list[Answer] = []
    for model, mine in book.run.answers.items():
        groups: defaultdict[tuple[str, str], list[Scored]] = defaultdict(list)
        for one in mine:
            groups[one.question.template, one.condition].append(one)
        for some in groups.values():
            ranked = sorted(some, key=lambda one: (one.score.score, one.question.id))
            found += [(model, ranked[at]) for at in sorted({0, len(ranked) - 1})]
    return found
