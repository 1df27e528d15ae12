"""The static questions: scores by template, by kind and by regime, and some of the questions themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Group, Inline, Items, Linked, Row, Section, Table, Text, bold, notes, small
from assaymark.report.portbench.book import BenchmarkIndex, range_words
from assaymark.report.portbench.inputs import QUESTIONS
from assaymark.report.portbench.levels import said_claim, said_words, withheld_words
from assaymark.report.portbench.records import block, talk
from assaymark.report.portbench.stages import GroupHead, design_note, group_heads, stage_cell, unscored_heads
from assaymark.report.text import counted, interval, signed
from assaymark.text import clean, number

TEMPLATES: Final = {
    "T1": "direction",
    "T2": "value at risk",
    "T3": "position size",
    "T4": "two assets",
    "T5": "best mix",
    "T6": "rebalance",
    "T7": "regime",
}
DIFFERENCE: Final = "full less restricted"
"""The condition under which the cost of taking context out is measured."""

_WORDS: Final = {
    "full": "full condition: everything that is needed stands in the question",
    "restricted": "restricted condition: covariances are taken out",
    DIFFERENCE: "full less restricted: what the covariances are worth",
}
_TEXT = 6_000


def questions_section(book: BenchmarkIndex) -> Section:
    """Supported claims on questions against the pipeline, the tables with their notes, and a link to the questions."""
    heading = "What does it know without a portfolio?"
    if not book.has_questions:
        return Section("questions", heading, book.missing("qa"))
    items, order = book.by_name["bench.question"], list(_WORDS)
    found = sorted({item.labels["condition"] for item in items})
    conditions = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    first, *others = (
        [_table(book, f"by-{key}-{at}", condition, key) for at, condition in enumerate(conditions, 1)]
        for key in ("template", "kind", "regime")
    )
    rest = tuple(table for tables in others for table in tables if table is not None)
    more = (Group("Formula against judgment, and by market regime", rest, folded="closed"),) if rest else ()
    said = tuple(said_claim(book, one) for one in book.of_kind("dissociation") if one.publication_level != "no-claim")
    claims = (Items(said, f"claims {said[0].level}"),) if said else ()
    shown = f"{counted(len(book.run.questions), 'question')} as asked, answered and scored"
    traces = (Text(Linked(shown, "questions.html")),) if book.run.questions else ()
    lead = (
        "Mean scores on static questions, T1 to T7, each asked in its own call. Models of a tier are in alphabetical "
        "order."
    )
    tables = (table for table in first if table is not None)
    return Section("questions", heading, lead, (*claims, *tables, *more, *notes(tuple(_notes(book, items))), *traces))


def _table(book: BenchmarkIndex, name: str, condition: str, key: str) -> Group | None:
    """One condition; only what was asked under it has a column."""
    by = {"template": "template", "kind": "formula or judgment", "regime": "market regime"}[key]
    asked = list(book.every("bench.question", condition=condition))
    values = sorted({item.labels[key] for item in asked if key in item.labels})
    if not values:
        return None
    whole = key == "template" and any(set(item.labels) == {"model", "condition"} for item in asked)
    known = condition in _WORDS and (key == "template" or condition == DIFFERENCE)
    title = f"By {by}, {_WORDS[condition] if known else f'{clean(condition, 24)} condition'}"
    board, heads = book.board(QUESTIONS), list[GroupHead | None]([None])
    if whole and condition == "full" and board is not None and {*board.models, *board.unscored} == set(book.names):
        heads = [*group_heads(book, board), *unscored_heads(book, board)]
    rows: list[Row] = []
    for head in heads:
        rows += [] if head is None else [Row((head.shown,))]
        for model in book.names if head is None else head.members:
            labels, cells = {"model": model, "condition": condition}, []
            for value in values:
                item = book.one("bench.question", **labels, **{key: value})
                cell = stage_cell(book, item)
                if condition == DIFFERENCE and item is not None and item.value is not None:
                    # A difference has its sign; it is no share of 1, so it has no tint.
                    cell = replace(cell, share=0.0, value=book.to(item, signed(item.value)))
                cells.append(cell)
            note = "" if head is None else head.ranks.get(model, "")
            item, every = book.one("bench.question", **labels), ""
            if whole:  # a point only where the rank is supported
                every = range_words(item)
                if item is not None and item.value is not None and item.low is not None and head and head.licensed:
                    every = interval(item.value, item.low, item.high)
                every = book.to(item, every)
            cells_of = (clean(model, 60), small(note) if note else ""), *cells, *((every,) if whole else ())
            rows.append(Row(cells_of))
    named = (((f"{clean(value, 24)} "), small(TEMPLATES.get(value, ""))) for value in values)
    table = Table(
        ("Model", *named, *(("All, interval",) if whole else ())), tuple(rows), summary="",
        style="heat q few" if len(values) < 5 else "heat q", label=title,
        columns=("", *("hc",) * len(values), *("iv",) * whole),
    )  # fmt: skip
    return Group(title, (table,), name)


def _notes(book: BenchmarkIndex, items: Sequence[Measurement]) -> Iterator[str]:
    sizes = sorted({item.n for item in items if "template" in item.labels})
    methods = sorted({clean(item.method, 120) for item in items if item.low is not None})
    if sizes:
        each = number(sizes[0], 0) if sizes[0] == sizes[-1] else f"{number(sizes[0], 0)} to {number(sizes[-1], 0)}"
        yield f"{each} questions a cell. Intervals: {'; '.join(methods) or 'none can be given'}."
    yield design_note(book, QUESTIONS)
    total = sum(book.run.answers.values())
    lost = total - book.run.answers.get("ok", 0)
    if total:
        read = f"Of {counted(total, 'answer')} {'all' if not lost else number(total - lost, 0)} could be read as asked"
        yield read + (f"; the other {number(lost, 0)} are scored as the plan says, not left out." if lost else ".")
    if not book.has_pipeline:
        yield f"Questions cannot be compared with the pipeline. {book.missing('pipeline')}"
    compared = book.of_kind("dissociation")
    for verdict in compared:
        if verdict.publication_level == "no-claim":
            yield f"Not supported: {withheld_words(book, verdict)} {' '.join(map(said_words, verdict.reasons))}"
    if book.has_pipeline and not compared:
        yield "Comparing the rankings of questions and pipeline needs three models or more."


def template_words(name: str) -> str:
    """A template with what it asks for."""
    name = clean(name, 12)
    return f"{name}, {TEMPLATES[name]}" if name in TEMPLATES else name


def question_cards(book: BenchmarkIndex, calls: Mapping[str, str]) -> Iterator[Group]:
    """Questions as they were asked, answered and scored, by template, condition and model."""
    for trace in sorted(book.run.questions, key=lambda q: (q.template, q.condition, q.model, q.regime, q.prompt)):
        who = clean(trace.model, 60), f"{clean(trace.condition, 24)} condition", clean(trace.regime, 24)
        about: list[Inline] = [", ".join(who)]
        about += [] if trace.state == "ok" else [". ", bold(f"Reply: {clean(trace.state, 200)}")]
        truth: list[Inline] = [bold("True: "), block(trace.truth, 600)]
        truth += [" ", Linked("Whole call", calls[trace.key])] if calls.get(trace.key) else []
        asked = talk(block(trace.prompt, _TEXT), block(trace.reply, _TEXT))
        yield Group(
            (template_words(trace.template), small(f"Score {number(trace.score, 3)}")),
            (Text(tuple(about), "cap"), Group("Question and reply", (asked,), folded="closed"),
             Text(tuple(truth), "sum")),
            key=clean(trace.template, 12), style="stage", level=2,
        )  # fmt: skip
