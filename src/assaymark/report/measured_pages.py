"""The pages of every measurement of a run, the same for all kinds of runs that speak English."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from assaymark.report.filters import kind_filters
from assaymark.report.formats import counted
from assaymark.report.frame import Frame
from assaymark.report.measured import MeasuredRow
from assaymark.report.paging import beside

STYLES: Final = ("measured.css",)
"""The style of pages of measurements, beside that of every page."""


def measurement_pages(frame: Frame, pages: Mapping[str, Sequence[MeasuredRow]]) -> Iterator[tuple[str, str]]:
    """The pages of measurements, one at a time, as path and HTML; ``pages`` are their rows by path."""
    for path, rows, parts in beside(pages.items()):
        yield (
            path,
            frame.render(
                "measurements.html",
                "Every measurement",
                here="measurements",
                styles=STYLES,
                rows=rows,
                rests=any(row.rests for row in rows),
                filters=kind_filters(rows),
                total=counted(len(rows), "measurement"),
                pager=parts,
            ),
        )
