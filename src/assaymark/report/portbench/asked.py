"""The static questions: scores by template, by kind and by regime, and some of the questions themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement
from assaymark.report.formats import clean, counted, number, shown, span
from assaymark.report.paging import row_bytes
from assaymark.report.portbench.book import BenchBook, kind_of
from assaymark.report.portbench.inputs import QuestionTrace
from assaymark.report.portbench.said import BenchClaim, claim_of
from assaymark.report.portbench.stages import StageCell, stage_cell
from assaymark.report.portbench.texts import block

TEMPLATES: Final = {
    "T1": "direction",
    "T2": "value at risk",
    "T3": "position size",
    "T4": "two assets",
    "T5": "best mix",
    "T6": "rebalance",
    "T7": "regime",
}
_TEXT = 6_000


@dataclass(frozen=True, slots=True)
class QuestionTable:
    """Models in rows; a column for each template, kind or regime."""

    id: str
    title: str
    heads: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, str, tuple[StageCell, ...]], ...]


@dataclass(frozen=True, slots=True)
class QuestionsView:
    """The section: what may be said of questions against pipeline, the tables, and what has to be read with them."""

    claims: tuple[BenchClaim, ...]
    tables: tuple[QuestionTable, ...]
    more: tuple[QuestionTable, ...]
    notes: tuple[str, ...]
    traces: str


@dataclass(frozen=True, slots=True)
class QuestionView:
    """One question as it was asked, answered and scored."""

    key: str
    title: str
    model: str
    about: str
    prompt: str
    reply: str
    truth: str
    score: str
    state: str

    @property
    def size(self) -> int:
        """About how many bytes it will take on a page."""
        return row_bytes(900, (self.title, self.model, self.about, self.prompt, self.reply, self.truth, self.state))


def questions_view(book: BenchBook) -> QuestionsView | None:
    """The section; None where no question was asked."""
    if not book.has_questions:
        return None
    items = book.by_name["bench.question"]
    conditions = sorted({item.labels["condition"] for item in items}, key=lambda name: (name != "full", name))
    templates = _values(items, "template")
    kinds = _values(items, "kind")
    regimes = _values(items, "regime")
    tables = [
        _table(book, f"by-template-{at}", condition, "template", templates, overall=True)
        for at, condition in enumerate(conditions, 1)
    ]
    more = [
        _table(book, f"by-{key}-{at}", condition, key, values, overall=False)
        for key, values in (("kind", kinds), ("regime", regimes))
        if values
        for at, condition in enumerate(conditions, 1)
    ]
    said = [verdict for verdict in book.of_kind("dissociation") if verdict.publication_level != "no-claim"]
    shown_traces = len(book.run.questions)
    return QuestionsView(
        claims=tuple(claim_of(book, verdict) for verdict in said),
        tables=tuple(table for table in tables if table.heads),
        more=tuple(more),
        notes=tuple(_notes(book, items)),
        traces=f"{counted(shown_traces, 'question')} as asked, answered and scored" if shown_traces else "",
    )


def _values(items: Sequence[Measurement], key: str) -> list[str]:
    return sorted({item.labels[key] for item in items if key in item.labels})


def _table(
    book: BenchBook, name: str, condition: str, key: str, values: Sequence[str], *, overall: bool
) -> QuestionTable:
    words = {
        "full": "everything that is needed stands in the question",
        "restricted": "covariances are taken out of T4 and T5",
    }
    by = {"template": "template", "kind": "formula or judgment", "regime": "market regime"}[key]
    heads = [(clean(value, 24), TEMPLATES.get(value, "")) for value in values]
    rows = []
    for model in book.names:
        labels = {"model": model, "condition": condition}
        cells = [stage_cell(book.one("bench.question", **labels, **{key: value})) for value in values]
        whole = book.one("bench.question", **labels)
        rows.append((clean(model, 60), _whole(whole) if overall else "", tuple(cells)))
    title = f"By {by}, {clean(condition, 24)} condition"
    if condition in words and key == "template":
        title += f": {words[condition]}"
    return QuestionTable(name, title, tuple(heads), tuple(rows))


def _whole(item: Measurement | None) -> str:
    """The range over all questions; no point, because models are ordered by verdicts alone."""
    if item is None or item.value is None:
        return shown(item)
    if item.low is None or item.high is None:
        return "single observation"
    return span(item.low, item.high)


def _notes(book: BenchBook, items: Sequence[Measurement]) -> Iterator[str]:
    sizes = sorted({item.n for item in items if "template" in item.labels})
    methods = sorted({clean(item.method, 120) for item in items if item.low is not None})
    if sizes:
        each = number(sizes[0], 0) if sizes[0] == sizes[-1] else f"{number(sizes[0], 0)} to {number(sizes[-1], 0)}"
        yield f"{each} questions a cell. Intervals: {'; '.join(methods) or 'none can be given'}."
    total = sum(book.run.answers.values())
    lost = total - book.run.answers.get("ok", 0)
    if total:
        yield (
            f"Of {counted(total, 'answer')} {'all' if not lost else number(total - lost, 0)} could be read as asked"
            + ("." if not lost else f"; the other {number(lost, 0)} are scored as the plan says, not left out.")
        )
    if not book.has_pipeline:
        yield f"Nothing can be said of questions against the pipeline. {book.missing('pipeline')}"
    elif not any(kind_of(verdict) == "dissociation" for verdict in book.run.verdicts):
        yield "Whether questions and pipeline order the models alike needs three models or more."


def question_views(book: BenchBook) -> tuple[QuestionView, ...]:
    """Question traces by template, condition and model."""
    ordered = sorted(book.run.questions, key=lambda q: (q.template, q.condition, q.model, q.regime, q.prompt))
    return tuple(_question(trace) for trace in ordered)


def _question(trace: QuestionTrace) -> QuestionView:
    template = clean(trace.template, 12)
    title = f"{template}, {TEMPLATES[template]}" if template in TEMPLATES else template
    return QuestionView(
        key=template,
        title=title,
        model=clean(trace.model, 60),
        about=f"{clean(trace.condition, 24)} condition, {clean(trace.regime, 24)}",
        prompt=block(trace.prompt, _TEXT),
        reply=block(trace.reply, _TEXT),
        truth=block(trace.truth, 600),
        score=number(trace.score, 3),
        state="" if trace.state == "ok" else clean(trace.state, 200),
    )
