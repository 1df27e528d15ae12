"""The records of a season for those who check it: every grade, guess and decision as it came, with its calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from assaymark.records import content_id
from assaymark.report.blocks import Items, Linked, Page, Row, Table, bold, row_bytes, row_filters, spaced
from assaymark.report.page import Frame, beside, in_parts, paged
from assaymark.report.records.calls import PAGE, Below, ReadCalls, call_pages
from assaymark.report.records.judgments import TILDE, call_cell
from assaymark.report.text import counted
from assaymark.text import clean

SEASON_FOLDER: Final = "records"
OVERVIEW: Final = f"{SEASON_FOLDER}/index.html"

RecordKind = Literal["grades", "guesses", "decisions"]
KINDS: Final[Mapping[RecordKind, tuple[str, str]]] = {
    "grades": ("Grades", "What each judge gave each record, refusals and nonsense included."),
    "guesses": ("Author-identification check", "Which agent wrote it, as judges guessed from the blinded text."),
    "decisions": ("Decisions", "What each agent decided on each day, by the call in which it was asked."),
}
_ROW, _LINK = 260, 90
_BELOW: Final[Below] = {"here": "panel", "styles": ("trail.css",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonRecord:
    """One record: whose it is, what it is of, what it says, the keys of its calls, and what it is about."""

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

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        return row_bytes(_ROW + _LINK * len(self.keys), (self.who[:80] * 2, self.of[:120], self.said[:400]))


class SeasonTrail(NamedTuple):
    """The records of a season, and what reads their calls; None where there is no ledger."""

    records: Sequence[SeasonRecord]
    read: ReadCalls | None


Placed = Mapping[RecordKind, Sequence[tuple[str, Sequence[SeasonRecord]]]]


def _placed(records: Sequence[SeasonRecord]) -> Placed:
    """The records of each kind by their pages, by name and day."""
    found = {}
    for kind in KINDS:
        rows = sorted((record for record in records if record.kind == kind), key=lambda record: (record.who, record.of))
        found[kind] = tuple(in_parts(f"{SEASON_FOLDER}/{kind}", paged(rows, PAGE), TILDE).items())
    return found


def _each(placed: Placed) -> Iterator[tuple[SeasonRecord, str]]:
    """Every record with its address."""
    for pages in placed.values():
        yield from ((row, f"{path}#{row.anchor}") for path, rows in pages for row in rows)


def record_places(records: Sequence[SeasonRecord]) -> Mapping[tuple[str, str, str], str]:
    """Where the first record of each kind by somebody stands, and the first of those about an agent or a decision."""
    found: dict[tuple[str, str, str], str] = {}
    for row, place in _each(_placed(records)):
        for about in ("", row.about):
            found.setdefault((row.kind, row.who, about), place)
    return found


def season_record_pages(trail: SeasonTrail, frame: Frame) -> Iterator[tuple[str, str]]:
    """The pages of records, one at a time, as path and HTML, after those of their calls where there is a ledger."""
    placed, calls = _placed(trail.records), dict[str, str]()
    if trail.read is not None:
        uses: defaultdict[str, list[Linked]] = defaultdict(list)
        for row, place in _each(placed):
            for key in row.keys:
                uses[key].append(Linked(f"{row.who}: {row.of}", place))
        yield from call_pages(trail.read(list(uses)), uses, frame, calls)
    shown = [(*KINDS[kind], pages) for kind, pages in placed.items() if pages[0][1]]
    first = Linked("first page", "index.html")
    lead = ("Grades and decisions as they came, with their calls. Supported claims: ", first)
    kinds = tuple(
        (Linked(title, pages[0][0]), f", {counted(sum(len(rows) for _, rows in pages), 'record')}. {said}")
        for title, said, pages in shown
    )
    yield OVERVIEW, frame.page(Page(OVERVIEW, "Records", lead, blocks=(Items(kinds),), **_BELOW))
    for title, said, pages in shown:
        for path, rows, parts in beside(pages):
            lines = []
            for row in rows:
                text, called = clean(row.said, 400), spaced((call_cell(key, calls) for key in row.keys), ", ")
                cells = (clean(row.who, 80), clean(row.of, 120), text if row.usable else bold(text),
                         called or "not kept")  # fmt: skip
                lines.append(Row(cells, row.anchor, clean(row.who, 80)))
            table = Table(
                ("By", "Of", "Content", "Calls"), tuple(lines), summary="", stacked=True, id="record-rows",
                filters=row_filters(sorted(line.key for line in lines)), what="records",
            )  # fmt: skip
            of, up = (f"{said} Rows are sorted by name and day, never by score. ", first), Linked("Records", OVERVIEW)
            yield path, frame.page(Page(path, title, of, blocks=(table,), up=up, parts=parts, **_BELOW))
