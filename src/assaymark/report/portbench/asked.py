"""The static questions: scores by template, by kind and by regime, and some of the questions themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Group, Inline, Linked, Row, Share, Table, Text, bold, small
from assaymark.report.portbench.book import BenchBook, why_none
from assaymark.report.portbench.inputs import QUESTIONS, QuestionTrace
from assaymark.report.portbench.levels import BenchClaim, claim_of, said_words, withheld_words
from assaymark.report.portbench.records import block, talk
from assaymark.report.portbench.stages import GroupHead, design_note, group_heads, stage_cell, unscored_heads
from assaymark.report.text import counted, interval, signed
from assaymark.text import clean, number, span

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


@dataclass(frozen=True, slots=True)
class QuestionsView:
    """The section: supported claims on questions against the pipeline, the tables, and their notes."""

    claims: tuple[BenchClaim, ...]
    tables: tuple[Group, ...]
    more: tuple[Group, ...]
    notes: tuple[str, ...]
    traces: str


def questions_view(book: BenchBook) -> QuestionsView | None:
    """The section; None where no question was asked."""
    if not book.has_questions:
        return None
    items = book.by_name["bench.question"]
    order = ("full", "restricted", DIFFERENCE)
    found = sorted({item.labels["condition"] for item in items})
    conditions = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    tables = {
        key: [_table(book, f"by-{key}-{at}", condition, key) for at, condition in enumerate(conditions, 1)]
        for key in ("template", "kind", "regime")
    }
    said = [verdict for verdict in book.of_kind("dissociation") if verdict.publication_level != "no-claim"]
    shown_traces = len(book.run.questions)
    return QuestionsView(
        claims=tuple(claim_of(book, verdict) for verdict in said),
        tables=tuple(table for table in tables["template"] if table is not None),
        more=tuple(table for key in ("kind", "regime") for table in tables[key] if table is not None),
        notes=tuple(_notes(book, items)),
        traces=f"{counted(shown_traces, 'question')} as asked, answered and scored" if shown_traces else "",
    )


def _table(book: BenchBook, name: str, condition: str, key: str) -> Group | None:
    """One condition; only what was asked under it has a column."""
    by = {"template": "template", "kind": "formula or judgment", "regime": "market regime"}[key]
    asked = [item for item in book.every("bench.question", condition=condition) if key in item.labels]
    values = sorted({item.labels[key] for item in asked})
    whole = key == "template" and any(set(i.labels) == {"model", "condition"} for i in _of(book, condition))
    title = f"By {by}, {clean(condition, 24)} condition"
    if key == "template" and condition in _WORDS:
        title = f"By template, {_WORDS[condition]}"
    elif condition == DIFFERENCE:
        title = f"By {by}, {_WORDS[DIFFERENCE]}"
    board = next((one for one in book.run.leaderboards if one.board.name == QUESTIONS), None)
    heads: list[GroupHead | None] = [None]
    if whole and condition == "full" and board is not None and {*board.models, *board.unscored} == set(book.names):
        heads = [*group_heads(book, board), *unscored_heads(book, board)]
    if not values:
        return None
    rows: list[Row] = []
    for head in heads:
        rows += [] if head is None else [Row((head.shown,))]
        for model in book.names if head is None else head.members:
            labels = {"model": model, "condition": condition}
            items = [book.one("bench.question", **labels, **{key: value}) for value in values]
            cells = [_signed(book, item) if condition == DIFFERENCE else stage_cell(book, item) for item in items]
            note = "" if head is None else head.ranks.get(model, "")
            item = book.one("bench.question", **labels)
            every = (book.to(item, _whole(item, licensed=head is not None and head.licensed)),) if whole else ()
            rows.append(Row(((clean(model, 60), small(note) if note else ""), *cells, *every)))
    named = (((f"{clean(value, 24)} "), small(TEMPLATES.get(value, ""))) for value in values)
    columns = ("", *("hc",) * len(values), *("iv",) * whole)
    style = "heat q few" if len(values) < 5 else "heat q"
    table = Table(
        ("Model", *named, *(("All, interval",) if whole else ())),
        tuple(rows),
        summary="",
        style=style,
        label=title,
        columns=columns,
    )
    return Group(title, (table,), name)


def _of(book: BenchBook, condition: str) -> Iterator[Measurement]:
    return book.every("bench.question", condition=condition)


def _signed(book: BenchBook, item: Measurement | None) -> Share:
    """A difference with its sign; it is no share of 1, so it has no tint."""
    cell = stage_cell(book, item)
    return (
        cell
        if item is None or item.value is None
        else replace(cell, share=0.0, value=book.to(item, signed(item.value)))
    )


def _whole(item: Measurement | None, *, licensed: bool) -> str:
    """The range over all questions; a point only where the rank is supported."""
    if item is None or item.value is None:
        return why_none(item)
    if item.low is None or item.high is None:
        return "no interval"
    return interval(item.value, item.low, item.high) if licensed else span(item.low, item.high)


def _notes(book: BenchBook, items: Sequence[Measurement]) -> Iterator[str]:
    sizes = sorted({item.n for item in items if "template" in item.labels})
    methods = sorted({clean(item.method, 120) for item in items if item.low is not None})
    if sizes:
        each = number(sizes[0], 0) if sizes[0] == sizes[-1] else f"{number(sizes[0], 0)} to {number(sizes[-1], 0)}"
        yield f"{each} questions a cell. Intervals: {'; '.join(methods) or 'none can be given'}."
    if note := design_note(book, QUESTIONS):
        yield note
    total = sum(book.run.answers.values())
    lost = total - book.run.answers.get("ok", 0)
    if total:
        yield (
            f"Of {counted(total, 'answer')} {'all' if not lost else number(total - lost, 0)} could be read as asked"
            + ("." if not lost else f"; the other {number(lost, 0)} are scored as the plan says, not left out.")
        )
    if not book.has_pipeline:
        yield f"Questions cannot be compared with the pipeline. {book.missing('pipeline')}"
    for verdict in book.of_kind("dissociation"):
        if verdict.publication_level == "no-claim":
            yield f"Not supported: {withheld_words(book, verdict)} {' '.join(map(said_words, verdict.reasons))}"
    if book.has_pipeline and not book.of_kind("dissociation"):
        yield "Comparing the rankings of questions and pipeline needs three models or more."


def question_cards(book: BenchBook, calls: Mapping[str, str]) -> tuple[Group, ...]:
    """Questions as they were asked, answered and scored, by template, condition and model."""
    ordered = sorted(book.run.questions, key=lambda q: (q.template, q.condition, q.model, q.regime, q.prompt))
    return tuple(_card(trace, calls) for trace in ordered)


def _card(trace: QuestionTrace, calls: Mapping[str, str]) -> Group:
    template = clean(trace.template, 12)
    title = f"{template}, {TEMPLATES[template]}" if template in TEMPLATES else template
    who = clean(trace.model, 60), f"{clean(trace.condition, 24)} condition", clean(trace.regime, 24)
    about: list[Inline] = [", ".join(who)]
    about += [] if trace.state == "ok" else [". ", bold(f"Reply: {clean(trace.state, 200)}")]
    truth: list[Inline] = [bold("True: "), block(trace.truth, 600)]
    truth += [" ", Linked("Whole call", calls[trace.key])] if calls.get(trace.key) else []
    asked = talk(block(trace.prompt, _TEXT), block(trace.reply, _TEXT))
    return Group(
        (title, small(f"Score {number(trace.score, 3)}")),
        (
            Text(tuple(about), "cap"),
            Group("Question and reply", (asked,), folded="closed"),
            Text(tuple(truth), "sum"),
        ),
        key=template,
        style="stage",
        level=2,
    )
