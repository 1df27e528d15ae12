"""The pages of every measurement of a run: value, interval, denominator and method, the same for all kinds of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from assaymark.records import Measurement, sha256_text
from assaymark.report.blocks import Inline, Linked, Page, Row, Table, row_bytes, row_filters, spaced
from assaymark.report.page import Frame, beside
from assaymark.report.records.calls import Rests
from assaymark.report.text import listing, state_words
from assaymark.text import bounds, clean, count_of, number

STYLES: Final = ("measured.css",)
"""The style of pages of measurements, beside that of every page."""

_ROW_BYTES, _REF_BYTES, _LABEL_CHARS = 240, 20, 80
_KEYS: Final = {"dropped": "without judge family", "family": "judge family", "part": "component"}
"""Labels by other words: agents may be called as a judge family is."""


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """One measurement, ready to show: its place in a page, the words of its filter button, its cells, and in ``rests``
    the records that it was computed from, where they have pages."""

    id: str
    anchor: str
    group: str
    title: str
    about: str
    value: str
    interval: str
    n: str
    method: str
    rests: tuple[Linked, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes the row will take on a page."""
        texts = [self.title, self.about, self.value, self.interval, self.n, self.method]
        texts += [text for ref in self.rests for text in (ref, ref.href)]
        return row_bytes(_ROW_BYTES + _REF_BYTES * len(self.rests), texts)


def rows_of(
    measurements: Iterable[Measurement],
    titles: Mapping[str, str],
    shown: Callable[[str, str], str] = lambda _, value: clean(value, _LABEL_CHARS),
    rests: Rests = lambda _: (),
    groups: Mapping[str, str] = MappingProxyType({}),
    hidden: Callable[[Measurement], str] = lambda _: "",
) -> tuple[MeasuredRow, ...]:
    """Measurements by kind, in the order of the titles, and then by what they are about; never by value."""
    order, seen, rows = {name: at for at, name in enumerate(titles)}, Counter[str](), list[MeasuredRow]()

    def undirected(item: Measurement) -> str:
        """An id without the higher of two agents: neither place nor link may show an order that is not supported."""
        pair = sorted(value for key, value in item.labels.items() if key in ("high", "low"))
        others = sorted(f"{key}={value}" for key, value in item.labels.items() if key not in ("high", "low"))
        return f"{item.name}[{','.join((*others, *pair))}]"

    for item in sorted(measurements, key=lambda m: (order.get(m.name, len(order)), undirected(m), m.id)):
        anchor, why, labels = f"m{sha256_text(undirected(item))[:10]}", hidden(item), item.labels
        seen[anchor] += 1
        kept = ("high", "low") if why else ()
        words = [f"{_KEYS.get(key) or clean(key, 30)} {shown(key, labels[key])}" for key in sorted(labels)
                 if key not in kept]  # fmt: skip
        if names := sorted(clean(labels[key], _LABEL_CHARS) for key in kept if key in labels):
            words.append(f"agents {listing(names)}")
        title, value = titles.get(item.name, clean(item.name, 60)), why
        if not why:
            known = f"{number(item.value or 0.0, 3)} {clean(item.unit, 24)}".rstrip()
            value = state_words(item) if item.value is None else known
        rows.append(MeasuredRow(
            item.id, anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}",
            groups.get(item.name) or groups.get(item.name.partition(".")[0], title), title,
            "; ".join(words) or "the whole run", value,
            "" if why else bounds(item.low, item.high, item.level), count_of(item.n, item.n_of),
            clean(item.method, 200), rests(item),
        ))  # fmt: skip
    return tuple(rows)


def measured_links(pages: Mapping[str, Sequence[MeasuredRow]]) -> dict[str, str]:
    """Where each measurement is: its id to the page and row that show it."""
    return {row.id: f"{name}#{row.anchor}" for name, rows in pages.items() for row in rows}


def measurement_pages(frame: Frame, pages: Mapping[str, Sequence[MeasuredRow]]) -> Iterator[tuple[str, str]]:
    """The pages of measurements, one at a time, as path and HTML; ``pages`` are their rows by path."""
    lead = (
        "Whether a value supports a claim is decided on the ", Linked("first page", "index.html"),
        ". Rows are sorted by kind and name, never by value.",
    )  # fmt: skip
    for path, rows, parts in beside(pages.items()):
        resting = any(row.rests for row in rows)
        heads = ("Measurement", "About", "Value", "Interval", "n", "Method", *(["Rests on"] if resting else []))
        table = Table(
            heads, tuple(measured_row(row, resting) for row in rows), frozenset({2, 3, 4}), "", stacked=True,
            id="measured-rows", filters=row_filters([row.group for row in rows]), what="measurements",
        )  # fmt: skip
        page = Page(path, "Every measurement", lead, (), (table,), parts, here="measurements", styles=STYLES)
        yield path, frame.page(page)


def measured_row(row: MeasuredRow, resting: bool) -> Row:
    """A measurement as a row of a table; ``resting`` is whether its last column is what a value rests on."""
    cells: list[Inline] = [row.title, row.about, row.value, row.interval, row.n, row.method]
    return Row((*cells, *([spaced(row.rests)] if resting else [])), row.anchor, row.group)
