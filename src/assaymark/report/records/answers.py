"""Pages of answers: what a judge that was measured as an instrument said of each pair of texts, and of single texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from assaymark.records import Judgment, Measurement, PairCall, content_id
from assaymark.report.blocks import Inline, Linked, Page, Row, Table, bold, row_bytes, row_filters
from assaymark.report.datasheet.reading import arm_words, condition_words, step_words, variant_words
from assaymark.report.page import JUDGES, Frame, beside, file_stems, paged
from assaymark.report.records.calls import ReadCalls, call_pages
from assaymark.report.records.judgments import PAGE, call_cell, page_paths
from assaymark.report.records.texts import BELOW
from assaymark.report.text import counted
from assaymark.text import clean, count

FOLDER: Final = "answers"
CALLS: Final = "asked"

_ROW: Final = 290
_SINGLE: Final = "single texts"
_VERDICTS: Final = {"1": "the first", "2": "the second", "tie": "a tie", "abstain": "no choice"}
_CONDITIONS: Final[Mapping[str, str]] = {
    "dark_current": "vacuum",
    "graded_vacuum": "graded_vacuum",
    "sensitivity": "ladder",
    "tie_rate": "ladder",
    "wrong_rate": "ladder",
    "conditional_accuracy": "ladder",
    "miss_by_tie": "ladder",
    "d_prime": "ladder",
    "threshold": "ladder",
    "filler.preference": "filler",
}


@dataclass(frozen=True, slots=True)
class Answers:
    """What judges answered for their datasheets: about pairs, and about single texts, by judge."""

    pairs: Mapping[str, Sequence[PairCall]] = field(default_factory=dict)
    texts: Mapping[str, Sequence[Judgment]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.pairs.values()) or any(self.texts.values())


class _Kind(NamedTuple):
    """What pairs have in common that a measurement is about."""

    prompt: str
    condition: str
    delta: float
    variant: str


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer, ready to show."""

    anchor: str
    key: str
    title: str
    about: str
    asked: str
    trial: str
    answer: str
    usable: bool
    call_key: str

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        return row_bytes(_ROW, (self.title, self.about, self.asked, self.answer, self.key))


@dataclass(frozen=True, slots=True)
class Booklet:
    """The answers of each judge, planned as pages: ``pages`` are path and rows, by judge."""

    answers: Answers
    pages: Mapping[str, tuple[tuple[str, tuple[AnswerRow, ...]], ...]]
    counts: Mapping[str, Counter[_Kind]]
    first: Mapping[tuple[str, _Kind], str]
    singles: Mapping[str, Linked]

    @classmethod
    def of(cls, answers: Answers) -> Booklet:
        """Plan the pages of all judges."""
        judges = sorted({*answers.pairs, *answers.texts})
        pages: dict[str, tuple[tuple[str, tuple[AnswerRow, ...]], ...]] = {}
        counts: dict[str, Counter[_Kind]] = {}
        first: dict[tuple[str, _Kind], str] = {}
        singles: dict[str, Linked] = {}
        for judge, stem in zip(judges, file_stems(FOLDER, [(judge,) for judge in judges]), strict=True):
            pairs = sorted(answers.pairs.get(judge, ()), key=_place)
            texts = sorted(answers.texts.get(judge, ()), key=lambda one: (one.trajectory, one.trial))
            rows = [*(_pair_row(pair) for pair in pairs), *(_text_row(text) for text in texts)]
            pages[judge] = page_paths(stem, paged(rows, PAGE))
            places = {row.anchor: f"{path}#{row.anchor}" for path, part in pages[judge] for row in part}
            counts[judge] = Counter(map(_kind, pairs))
            for one in pairs:
                first.setdefault((judge, _kind(one)), places[_pair_anchor(one)])
            if texts:
                singles[judge] = Linked(counted(len(texts), "answer"), places[_text_anchor(texts[0])])
        return cls(answers, pages, counts, first, singles)

    def rests(self, item: Measurement) -> tuple[Linked, ...]:
        """The answers that a measurement of a datasheet was computed from; nothing where none are kept."""
        judges = [item.labels[key] for key in ("judge", "a", "b") if key in item.labels]
        return tuple(ref for judge in judges for ref in self._of(item, judge, named=len(judges) > 1))

    def _of(self, item: Measurement, judge: str, *, named: bool) -> Iterator[Linked]:
        by = f" by {clean(judge, 60)}" if named else ""
        if item.name.startswith("point."):
            if judge in self.singles:
                yield Linked(self.singles[judge] + by, self.singles[judge].href)
            return
        kinds = [kind for kind in self.counts.get(judge, ()) if _is_about(item, kind)]
        if kinds and not item.name.startswith("drift"):
            total = sum(self.counts[judge][kind] for kind in kinds)
            yield Linked(counted(total, "answer") + by, self.first[judge, min(kinds)])

    def keys(self) -> dict[str, list[Linked]]:
        """What was asked in each call, by its key, in the order of the pages."""
        found: defaultdict[str, list[Linked]] = defaultdict(list)
        for judge, pages in self.pages.items():
            for path, rows in pages:
                for row in rows:
                    if row.call_key:
                        found[row.call_key].append(Linked(f"{judge} on {row.title}", f"{path}#{row.anchor}"))
        return found


def answer_pages(book: Booklet, frame: Frame, read: ReadCalls | None) -> Iterator[tuple[str, str]]:
    """Every page of answers, one at a time, as path and HTML, after those of their calls where there is a ledger."""
    calls: dict[str, str] = {}
    if read is not None:
        uses = book.keys()
        yield from call_pages(read(list(uses)), uses, frame, calls, folder=CALLS)
    lead = ("One row an answer, by instruction and kind of pair. See also: ", Linked("datasheets", "datasheets.html"))
    heads = ("Texts", "What they are", "Asked", "Trial", "Answer", "Call")
    yield from each_answer_page(lead, heads, JUDGES, book.pages, frame, calls)


def each_answer_page(
    lead: Inline,
    heads: tuple[str, ...],
    here: str,
    books: Mapping[str, Sequence[tuple[str, Sequence[AnswerRow]]]],
    frame: Frame,
    calls: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """The pages of everybody who answered, one at a time, as path and HTML; without a head "Trial" none is shown."""
    for who, pages in books.items():
        for path, rows, parts in beside(pages):
            shown = tuple(
                Row(
                    (
                        *(row.title, row.about, row.asked),
                        *([row.trial] if "Trial" in heads else []),
                        row.answer if row.usable else bold(row.answer),
                        call_cell(row.call_key, calls),
                    ),
                    row.anchor,
                    row.key,
                )
                for row in rows
            )
            table = Table(
                heads,
                shown,
                frozenset((3,)),
                summary="",
                stacked=True,
                id="answer-rows",
                filters=row_filters(sorted(row.key for row in rows)),
                what="answers",
            )
            page = Page(path, f"Answers of {clean(who, 80)}", lead, (), (table,), parts, here=here)
            yield path, frame.page(replace(page, styles=BELOW["styles"]))


def _kind(one: PairCall) -> _Kind:
    return _Kind(one.prompt, one.condition, one.delta, one.variant)


def _place(one: PairCall) -> tuple[_Kind, str, str, int]:
    return _kind(one), one.pair, one.order, one.trial


def _is_about(item: Measurement, kind: _Kind) -> bool:
    """Whether answers about pairs of a kind went into a measurement, as its name and labels say."""
    labels = item.labels
    condition = labels.get("condition", _CONDITIONS.get(item.name))
    return (
        labels.get("prompt", kind.prompt) == kind.prompt
        and condition in (None, kind.condition)
        and labels.get("variant", kind.variant) == kind.variant
        and ("delta" not in labels or labels["delta"] == f"{kind.delta:g}")
    )


def _pair_anchor(one: PairCall) -> str:
    return f"p{content_id([one.judge, one.prompt, one.pair, one.order, one.trial])[:12]}"


def _text_anchor(one: Judgment) -> str:
    return f"s{content_id([one.judge, one.rubric, one.trajectory, one.trial])[:12]}"


def _pair_row(one: PairCall) -> AnswerRow:
    apart = f", {step_words(f'{one.delta:g}')} apart" if one.delta else ""
    variant = f": {variant_words(one.variant)}" if one.variant else ""
    return AnswerRow(
        anchor=_pair_anchor(one),
        key=condition_words(one.condition),
        title=clean(one.pair, 80),
        about=f"{condition_words(one.condition)}{variant}{apart}",
        asked=f"{arm_words(one.prompt)}, {one.order[0]} first",
        trial=count(one.trial),
        answer=_said(one),
        usable=one.verdict != "invalid",
        call_key=one.call_key,
    )


def _said(one: PairCall) -> str:
    """The answer, and whether it is the text that meets more requirements."""
    if one.verdict == "invalid":
        return f"invalid: {clean(one.reason or 'no reason was kept', 200)}"
    said = _VERDICTS[one.verdict]
    if one.verdict not in ("1", "2"):
        return said
    chosen = one.order[int(one.verdict) - 1]
    right = "" if one.better is None else ", the better one" if chosen == one.better else ", not the better one"
    return f"{said} ({chosen}){right}"


def _text_row(one: Judgment) -> AnswerRow:
    scores = ", ".join(f"{clean(name.replace('_', ' '), 40)} {value:g}" for name, value in sorted(one.scores.items()))
    return AnswerRow(
        anchor=_text_anchor(one),
        key=_SINGLE,
        title=clean(one.trajectory, 80),
        about=_SINGLE,
        asked=f"rubric {clean(one.rubric, 60)}",
        trial=count(one.trial),
        answer=scores if one.status == "ok" else f"{one.status}: {clean(one.reason or 'no reason was kept', 200)}",
        usable=one.status == "ok",
        call_key=one.call_key,
    )
