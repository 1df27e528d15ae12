"""The pages of every measurement of a run: value, interval, denominator and method, the same for all kinds of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from assaymark.records import Measurement, sha256_text
from assaymark.report.blocks import Linked, Page, Row, Table, row_bytes, row_filters, spaced
from assaymark.report.page import PAGE_BYTES, Frame, beside, in_parts, paged_by
from assaymark.report.records.calls import Rests
from assaymark.report.text import listing, state_words
from assaymark.text import bounds, clean, count_of, number

STYLES: Final = ("measured.css",)
"""The style of pages of measurements, beside that of every page."""

_ROW_BYTES, _REF_BYTES, _LABEL_CHARS = 240, 20, 80
_KEYS: Final = {"dropped": "without judge family", "family": "judge family", "part": "component"}
"""Labels by other words: agents may be called as a judge family is."""


Measured = tuple[Measurement, Row]
"""A measurement and its row, whose last cell holds the records that it was computed from, where they have pages."""


def rows_of(
    measurements: Iterable[Measurement],
    titles: Mapping[str, str],
    shown: Callable[[str, str], str] = lambda _, value: clean(value, _LABEL_CHARS),
    rests: Rests = lambda _: (),
    groups: Mapping[str, str] = MappingProxyType({}),
    hidden: Callable[[Measurement], str] = lambda _: "",
) -> tuple[Measured, ...]:
    """Measurements by kind, in the order of the titles, and then by what they are about; never by value."""
    order, seen, rows = {name: at for at, name in enumerate(titles)}, Counter[str](), list[Measured]()

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
        cells = (
            title,
            "; ".join(words) or "the whole run",
            value,
            "" if why else bounds(item.low, item.high, item.level),
            count_of(item.n, item.n_of),
            clean(item.method, 200),
        )
        on = rests(item)
        size = row_bytes(_ROW_BYTES + _REF_BYTES * len(on), [*cells, *(text for ref in on for text in (ref, ref.href))])
        anchor = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
        group = groups.get(item.name) or groups.get(item.name.partition(".")[0], title)
        rows.append((item, Row((*cells, spaced(on)), anchor, group, size=size)))
    return tuple(rows)


def measured_parts(rows: Sequence[Measured]) -> dict[str, tuple[Measured, ...]]:
    """The pages of some rows by their files."""
    return in_parts("measurements", paged_by(rows, lambda one: one[1].size, PAGE_BYTES))


def measured_links(pages: Mapping[str, Sequence[Measured]]) -> dict[str, str]:
    """Where each measurement is: its id to the page and row that show it."""
    return {item.id: f"{name}#{row.id}" for name, rows in pages.items() for item, row in rows}


def measurement_pages(frame: Frame, pages: Mapping[str, Sequence[Measured]]) -> Iterator[tuple[str, str]]:
    """The pages of measurements, one at a time, as path and HTML; ``pages`` are their rows by path."""
    lead = (
        "Whether a value supports a claim is decided on the ", Linked("first page", "index.html"),
        ". Rows are sorted by kind and name, never by value.",
    )  # fmt: skip
    for path, found, parts in beside(pages.items()):
        heads, rows = shown_rows(("Measurement", "About", "Value", "Interval", "n", "Method", "Rests on"), found)
        table = Table(
            heads, rows, frozenset({2, 3, 4}), "", stacked=True, id="measured-rows",
            filters=row_filters([row.key for row in rows]), what="measurements",
        )  # fmt: skip
        page = Page(path, "Every measurement", lead, (), (table,), parts, here="measurements", styles=STYLES)
        yield path, frame.page(page)


def shown_rows(heads: tuple[str, ...], found: Iterable[Measured]) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """The heads and the rows of a page, without the column of records where no row rests on one."""
    rows = tuple(row for _, row in found)
    if any(row.cells[-1] for row in rows):
        return heads, rows
    return heads[:-1], tuple(replace(row, cells=row.cells[:-1]) for row in rows)
