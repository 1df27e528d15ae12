"""Where every measurement of a season stands: rows by kind and name, on pages that are the same in every language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from assaymark.records import Measurement
from assaymark.report.measured import MeasuredRow, rows_of
from assaymark.report.paging import in_parts, paged_by

ROWS: Final = 500
"""Rows on one page: so many in every language, so that a page has its translation."""

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "scores": ("total", "composite", "axis", "outcome", "efficiency", "without"),
    "orders": ("contrast", "kappa", "noise", "judge_noise"),
    "judges": ("self_preference", "verbosity", "alone", "author_probe", "invalid"),
    "records": ("ledger", "reliability", "lookahead", "thrash", "decisions"),
    "books": ("return", "drawdown", "excess"),
}
"""What the buttons above the rows show together, in the order of the rows."""


def measured_pages(measurements: Iterable[Measurement]) -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows of every page, by its name; at least one page, which may be empty.

    Kinds and groups go by their names: `worded_rows` puts them into a language.

    >>> list(measured_pages(()))
    ['measurements.html']
    """
    names = [f"season.{name}" for kinds in _GROUPS.values() for name in kinds]
    groups = {f"season.{name}": group for group, kinds in _GROUPS.items() for name in kinds} | {"datasheet": "judges"}
    rows = rows_of(measurements, {name: name for name in names}, groups=groups)
    return in_parts("measurements", paged_by(rows, lambda _: 1, ROWS))
