"""Pages of answers, each with links to its calls: those of a judge in its own test, to pairs and to single texts, and
the records of a season."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from assaymark.records import Judgment, Measurement, PairCall, content_id
from assaymark.report.blocks import Inline, Items, Linked, Page, PageRow, bold, chained, row_bytes
from assaymark.report.datasheet.reading import arm_words, kind_words, step_words
from assaymark.report.page import JUDGES, Frame, by_file, file_stems, with_pager
from assaymark.report.records.calls import BELOW, PAGE, ReadCalls, call_pages, rows_page
from assaymark.report.records.judgments import TILDE, call_cell
from assaymark.report.text import counted
from assaymark.text import clean, count

_ROW, _CALL = 200, 90
"""Bytes of the markup of a row, and of a link to a call."""

_SINGLE: Final = "single texts"
_VERDICTS: Final = {"1": "the first", "2": "the second", "tie": "a tie", "abstain": "no choice"}
_CONDITIONS: Final[Mapping[str, str]] = {
    "dark_current": "vacuum", "graded_vacuum": "graded_vacuum", "filler.preference": "filler",
    **dict.fromkeys(("sensitivity", "tie_rate", "wrong_rate", "conditional_accuracy", "miss_by_tie", "d_prime",
                     "threshold"), "ladder"),
}  # fmt: skip


class _PairKind(NamedTuple):
    """The properties of pairs that select the calls of a measurement."""

    prompt: str
    condition: str
    delta: float
    variant: str


Answer = tuple[PageRow, tuple[str, ...]]
"""The row of an answer and the keys of its calls, which become the last cell once calls have their pages."""

Pages = tuple[tuple[str, tuple[Answer, ...]], ...]


def answer_row(anchor: str, key: str, cells: tuple[str, ...], usable: bool, *calls: str) -> Answer:
    """The row of an answer; its last cell is the outcome, in bold if the answer is not usable."""
    shown = cells if usable else (*cells[:-1], bold(cells[-1]))
    texts = (*cells[:3], *cells[max(3, len(cells) - 1) :], key)  # without the number of a trial
    return PageRow(shown, anchor, key, size=row_bytes(_ROW + _CALL * len(calls), texts)), calls


@dataclass(frozen=True, slots=True)
class AnswerIndex:
    """The answers of each judge, planned as pages: ``pages`` are path and rows, by judge."""

    pages: Mapping[str, Pages]
    counts: Mapping[str, Counter[_PairKind]]
    first: Mapping[tuple[str, _PairKind], str]
    singles: Mapping[str, Linked]

    @classmethod
    def of(cls, of_pairs: Mapping[str, Sequence[PairCall]], of_texts: Mapping[str, Sequence[Judgment]]) -> AnswerIndex:
        """Plan the pages of all judges from their answers about pairs and about single texts."""
        judges, pages, first = sorted({*of_pairs, *of_texts}), dict[str, Pages](), dict[tuple[str, _PairKind], str]()
        counts, singles = dict[str, Counter[_PairKind]](), dict[str, Linked]()
        for judge, stem in zip(judges, file_stems("answers", [(judge,) for judge in judges]), strict=True):
            pairs = sorted(of_pairs.get(judge, ()), key=lambda call: (_kind(call), call.pair, call.order, call.trial))
            texts = sorted(of_texts.get(judge, ()), key=lambda judgment: (judgment.trajectory, judgment.trial))
            rows = list[Answer]()
            for pair in pairs:  # with whether the chosen text meets more requirements
                apart = f", {step_words(f'{pair.delta:g}')} apart" if pair.delta else ""
                variant = f": {kind_words(pair.variant)}" if pair.variant else ""
                condition, first_text = kind_words(pair.condition), pair.order[0]
                outcome = _VERDICTS.get(pair.verdict, f"invalid: {clean(pair.reason or 'no reason was kept', 200)}")
                if pair.verdict in ("1", "2"):
                    chosen = pair.order[int(pair.verdict) - 1]
                    better = ", the better one" if chosen == pair.better else ", not the better one"
                    outcome = f"{outcome} ({chosen}){'' if pair.better is None else better}"
                place = f"p{content_id([pair.judge, pair.prompt, pair.pair, pair.order, pair.trial])[:12]}"
                cells = (clean(pair.pair, 80), f"{condition}{variant}{apart}",
                         f"{arm_words(pair.prompt)}, {first_text} first", count(pair.trial), outcome)  # fmt: skip
                rows.append(answer_row(place, condition, cells, pair.verdict != "invalid", pair.call_key))
            for text in texts:
                each = (f"{clean(name.replace('_', ' '), 40)} {value:g}" for name, value in sorted(text.scores.items()))
                ok = text.status == "ok"
                outcome = ", ".join(each) if ok else f"{text.status}: {clean(text.reason or 'no reason was kept', 200)}"
                place = f"s{content_id([text.judge, text.rubric, text.trajectory, text.trial])[:12]}"
                asked = f"rubric {clean(text.rubric, 60)}"
                cells = (clean(text.trajectory, 80), _SINGLE, asked, count(text.trial), outcome)
                rows.append(answer_row(place, _SINGLE, cells, ok, text.call_key))
            pages[judge] = answer_parts(stem, rows)
            places = [f"{path}#{row.id}" for path, part in pages[judge] for row, _ in part]
            counts[judge] = Counter(map(_kind, pairs))
            for pair, place in zip(pairs, places, strict=False):
                first.setdefault((judge, _kind(pair)), place)
            if texts:
                singles[judge] = Linked(counted(len(texts), "answer"), places[len(pairs)])
        return cls(pages, counts, first, singles)

    def lineage(self, item: Measurement) -> tuple[Linked, ...]:
        """The answers that a measurement of a datasheet was computed from; empty if no answers are stored."""
        judges, labels = [item.labels[key] for key in ("judge", "a", "b") if key in item.labels], item.labels
        condition, links = labels.get("condition", _CONDITIONS.get(item.name)), list[Linked]()
        for judge in judges:
            by = f" by {clean(judge, 60)}" if len(judges) > 1 else ""
            if item.name.startswith("point."):
                single = self.singles.get(judge)
                links += [] if single is None else [Linked(single + by, single.href)]
                continue
            # Kinds of pairs that went into it, as its name and labels say.
            kinds = [
                kind for kind in self.counts.get(judge, ())
                if labels.get("prompt", kind.prompt) == kind.prompt and condition in (None, kind.condition)
                and labels.get("variant", kind.variant) == kind.variant
                and ("delta" not in labels or labels["delta"] == f"{kind.delta:g}")
            ]  # fmt: skip
            if kinds and not item.name.startswith("drift"):
                total = sum(self.counts[judge][kind] for kind in kinds)
                links.append(Linked(counted(total, "answer") + by, self.first[judge, min(kinds)]))
        return tuple(links)

    def keys(self) -> dict[str, list[Linked]]:
        """Links to the answers of each call, by its key, in the order of the pages."""
        links: defaultdict[str, list[Linked]] = defaultdict(list)
        for judge, (path, rows) in ((judge, page) for judge, pages in self.pages.items() for page in pages):
            for row, keys in rows:
                for key in filter(None, keys):
                    links[key].append(Linked(f"{judge} on {row.cells[0]}", f"{path}#{row.id}"))
        return links


def answer_parts(stem: str, rows: Sequence[Answer]) -> Pages:
    """The answers of one judge or model, split into pages, as path and rows."""
    return tuple(by_file(stem, rows, PAGE, lambda pair: pair[0].size, TILDE).items())


def answer_pages(index: AnswerIndex, frame: Frame, read: ReadCalls | None) -> Iterator[tuple[str, str]]:
    """Every page of answers, one at a time, as path and HTML, after those of their calls if there is a ledger."""
    calls: dict[str, str] = {}
    if read is not None:
        uses = index.keys()
        yield from call_pages(read(list(uses)), uses, frame, calls, folder="asked")
    lead = ("One row an answer, by instruction and kind of pair. See also: ", Linked("datasheets", "datasheets.html"))
    columns = ("Texts", "What they are", "Asked", "Trial", "Answer", "Call")
    yield from each_answer_page(lead, columns, JUDGES, index.pages, frame, calls)


def each_answer_page(
    lead: Inline, header: tuple[str, ...], here: str, books: Mapping[str, Pages], frame: Frame, calls: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The pages of every judge or model that answered, one at a time, as path and HTML."""
    for judge, (path, rows, parts) in ((judge, page) for judge, pages in books.items() for page in with_pager(pages)):
        shown, title = with_calls(rows, calls), f"Answers of {clean(judge, 80)}"
        yield path, frame.page(rows_page(path, title, lead, header, shown, "answers", parts, (3,), here=here))


def with_calls(rows: Sequence[Answer], calls: Mapping[str, str]) -> list[PageRow]:
    """The rows of some answers with their calls as the last cell."""
    shown = []
    for row, keys in rows:
        cells = [call_cell(key, calls) for key in keys]
        called = cells[0] if len(cells) == 1 else chained(cells, ", ") or "not kept"
        shown.append(replace(row, cells=(*row.cells, called)))
    return shown


def _kind(call: PairCall) -> _PairKind:
    return _PairKind(call.prompt, call.condition, call.delta, call.variant)


# --- the records of a season ------------------------------------------------------------------------------------------


SEASON_RECORDS: Final = "records/index.html"

RecordKind = Literal["grades", "guesses", "decisions"]
SEASON_KINDS: Final[Mapping[RecordKind, tuple[str, str]]] = {
    "grades": ("Grades", "What each judge gave each record, refusals and nonsense included."),
    "guesses": ("Author-identification check", "Which agent wrote it, as judges guessed from the blinded text."),
    "decisions": ("Decisions", "What each agent decided on each day, by the call in which it was asked."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonRecord:
    """One record: its author, its subject, its content, the keys of its calls, and what it is about."""

    kind: RecordKind
    who: str
    of: str
    said: str
    usable: bool = True
    keys: tuple[str, ...] = ()
    about: str = ""

    @property
    def anchor(self) -> str:
        """The id of its row."""
        return f"r{content_id([self.kind, self.who, self.of])[:12]}"


class SeasonProvenance(NamedTuple):
    """The records of a season, and a function that reads their calls; None without a ledger."""

    records: Sequence[SeasonRecord]
    read: ReadCalls | None


Placed = list[tuple[SeasonRecord, str]]
"""Records with their addresses."""


def _season_books(records: Sequence[SeasonRecord]) -> tuple[dict[RecordKind, Pages], Placed]:
    """The pages of each kind of record, sorted by name and day, and every record with its address in this order."""
    books, placed = dict[RecordKind, Pages](), Placed()
    by_name = sorted(records, key=lambda record: (record.who, record.of))
    for kind in SEASON_KINDS:
        rows, named = list[Answer](), [record for record in by_name if record.kind == kind]
        for record in named:
            cells = (clean(record.who, 80), clean(record.of, 120), clean(record.said, 400))
            rows.append(answer_row(record.anchor, cells[0], cells, record.usable, *record.keys))
        books[kind] = answer_parts(f"records/{kind}", rows)
        places = (f"{path}#{row.id}" for path, part in books[kind] for row, _ in part)
        placed += zip(named, places, strict=True)
    return books, placed


def record_places(records: Sequence[SeasonRecord]) -> Mapping[tuple[str, str, str], str]:
    """Addresses of the first record by kind and author, and by kind, author and the agent or decision it is about."""
    places: dict[tuple[str, str, str], str] = {}
    for record, place in _season_books(records)[1]:
        for about in ("", record.about):
            places.setdefault((record.kind, record.who, about), place)
    return places


def season_record_pages(trail: SeasonProvenance, frame: Frame) -> Iterator[tuple[str, str]]:
    """The pages of records, one at a time, as path and HTML, after those of their calls if there is a ledger."""
    (books, placed), calls = _season_books(trail.records), dict[str, str]()
    if trail.read is not None:
        uses: defaultdict[str, list[Linked]] = defaultdict(list)
        for record, place in placed:
            for key in record.keys:
                uses[key].append(Linked(f"{record.who}: {record.of}", place))
        yield from call_pages(trail.read(list(uses)), uses, frame, calls)
    shown = [(*SEASON_KINDS[kind], pages) for kind, pages in books.items() if pages[0][1]]
    first, up = Linked("first page", "index.html"), Linked("Records", SEASON_RECORDS)
    lead = ("Grades and decisions as they came, with their calls. Supported claims: ", first)
    kinds = tuple(
        (Linked(title, pages[0][0]), f", {counted(sum(len(rows) for _, rows in pages), 'record')}. {intro}")
        for title, intro, pages in shown
    )
    overview = Page(SEASON_RECORDS, "Records", lead, blocks=(Items(kinds),), **{**BELOW, "here": "panel"})
    yield SEASON_RECORDS, frame.page(overview)
    columns = ("By", "Of", "Content", "Calls")
    for title, intro, pages in shown:
        of = (f"{intro} Rows are sorted by name and day, never by score. ", first)
        for path, rows, parts in with_pager(pages):
            lines = with_calls(rows, calls)
            yield path, frame.page(rows_page(path, title, of, columns, lines, "records", parts, here="panel", up=up))
