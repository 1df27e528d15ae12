"""Rows of every measurement of a season, by kind and name, on pages that are the same in every language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from assaymark.records import Measurement
from assaymark.report.measured import MeasuredRow, rows_of
from assaymark.report.paging import in_parts, paged_by

ROWS: Final = 500
"""Rows on one page: so many in every language, so that a page has its translation."""

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "scores": ("total", "composite", "axis", "outcome", "efficiency", "without"),
    "orders": (
        "contrast",
        "lofo.contrast",
        "recusal.contrast",
        "length.contrast",
        "judges.contrast",
        "judge.own_family",
        "order.autocorrelation",
        "order.detectable",
        "panel.families",
        "panel.alpha",
        "panel.generalizability",
        "panel.variance",
        "kappa",
        "noise",
        "judge_noise",
    ),
    "judges": ("self_preference", "verbosity", "alone", "author_probe", "invalid"),
    "records": ("ledger", "reliability", "lookahead", "thrash", "decisions"),
    "books": ("return", "drawdown", "excess"),
}
"""What the buttons above the rows show together, in the order of the rows."""


def measured_pages(
    measurements: Iterable[Measurement], hidden: Callable[[Measurement], str] = lambda _: ""
) -> Mapping[str, tuple[MeasuredRow, ...]]:
    """The rows of every page, by its name; at least one page, which may be empty.

    Kinds and groups go by their names: `worded_rows` puts them into a language. ``hidden`` is why a value is not shown.

    >>> list(measured_pages(()))
    ['measurements.html']
    """
    found = {_full(name): group for group, kinds in _GROUPS.items() for name in kinds}
    groups = {**found, "datasheet": "judges"}
    rows = rows_of(measurements, {name: name for name in found}, groups=groups, hidden=hidden)
    return in_parts("measurements", paged_by(rows, lambda _: 1, ROWS))


def _full(name: str) -> str:
    """The name of a measurement: those of orders are the same as in studies."""
    return name if "." in name or name == "contrast" else f"season.{name}"
