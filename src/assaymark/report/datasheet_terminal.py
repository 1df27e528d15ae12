"""Datasheets in the terminal: one row a judge, the same words as the pages, nothing ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assaymark.metrology.datasheet import BASE, Datasheet
from assaymark.records import AGGREGATE, Measurement, measurement_id
from assaymark.report.formats import clean, number

_Columns = tuple[tuple[str, str, dict[str, str]], ...]

_RUN: Final[_Columns] = (
    ("Dark current", "dark_current", {"prompt": BASE}),
    ("False pref.", "delta0.raw", {"prompt": BASE, "condition": "same_subset"}),
    ("stable", "delta0.stable", {"prompt": BASE, "condition": "same_subset"}),
    ("by place", "delta0.positional", {"prompt": BASE, "condition": "same_subset"}),
    ("Sees 1", "sensitivity", {"prompt": BASE, "delta": "1"}),
    ("Threshold", "threshold", {"prompt": BASE}),
)
_POINTS: Final[_Columns] = (
    ("Score for nothing", "point.vacuum_score", {"dimension": AGGREGATE}),
    ("points a requirement", "point.slope", {"dimension": AGGREGATE}),
    ("steps in order", "point.order", {"dimension": AGGREGATE}),
    ("per 100 filler tokens", "point.verbosity", {"dimension": AGGREGATE}),
)
_LOG: Final[_Columns] = (
    ("stable", "delta0.stable", {"prompt": BASE, "condition": "different_subset"}),
    ("by place", "delta0.positional", {"prompt": BASE, "condition": "different_subset"}),
    ("one-sided", "delta0.one_sided", {"prompt": BASE, "condition": "different_subset"}),
    ("no pref.", "delta0.no_preference", {"prompt": BASE, "condition": "different_subset"}),
    ("flips", "delta0.flip_rate", {"prompt": BASE, "condition": "different_subset"}),
    ("invalid calls", "pair.invalid_share", {"prompt": BASE}),
    ("repeats", "repeat.stability", {}),
)


def datasheet_summary(sheets: Sequence[Datasheet], agreement: Sequence[Measurement]) -> RenderableType:
    """Judges in alphabetical order with what was measured, and how far every two of them agree.

    Parameters
    ----------
    sheets : sequence of Datasheet
        All from runs, or all from one log.
    agreement : sequence of Measurement
        ``between.kappa_content`` and ``between.kappa``, in the order in which they are printed.
    """
    log = all(sheet.source == "log" for sheet in sheets)
    wanted = ((_LOG, ""),) if log else ((_RUN, "dark_current"), (_POINTS, "point.slope"))
    tables = [_table(sheets, columns, head) for columns, head in wanted]
    parts: list[RenderableType] = [table for table in tables if table.row_count]
    if log:
        parts.append(Text("Shares of pairs. A log does not say which text is better: a preference here is no error."))
    else:
        parts += [Text(f"{clean(s.judge, 60)}: {'; '.join(_chips(s))}") for s in sheets if s.sketch]
    parts += [Text(_kappa_words(item)) for item in agreement]
    parts += [Text(_drift_words(s.judge, m)) for s in sheets for m in s.measurements if m.name == "drift.verdict"]
    return Group(*parts)


def _table(sheets: Sequence[Datasheet], columns: _Columns, head: str) -> Table:
    """One row for each judge with a measurement of the name ``head`` (empty: each judge)."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("Judge", overflow="fold")
    for title, _, _ in columns:
        table.add_column(title, justify="right")
    for sheet in sorted(sheets, key=lambda one: one.judge):
        known = {item.id: item for item in sheet.measurements}
        if not head or any(item.name == head for item in sheet.measurements):
            cells = (measurement_id(name, {**labels, "judge": sheet.judge}) for _, name, labels in columns)
            table.add_row(clean(sheet.judge, 60), *(shown(known.get(cell)) for cell in cells))
    return table


def shown(item: Measurement | None) -> str:
    """A measurement in a table cell: its value, the words of a censored threshold, or why there is none."""
    if item is None or item.state.startswith("not measured"):
        return "not measured"
    if item.value is None:
        return "undefined"
    return str(item.detail.get("text", f"{item.value:.3f}"))


def _chips(sheet: Datasheet) -> list[str]:
    """The sketch without its rules, which the page prints."""
    return [chip.partition(" (")[0] for chip in sheet.sketch]


def _kappa_words(item: Measurement) -> str:
    base = "by content, orders averaged" if item.name == "between.kappa_content" else "by position, call by call"
    pair = f"{clean(item.labels['a'], 60)} and {clean(item.labels['b'], 60)} {base}"
    if item.value is None:
        return f"kappa of {pair}: {item.state}"
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    return f"kappa of {pair}: {number(item.value)}{ends}, {item.n:,} {item.n_of}"


def _drift_words(judge: str, item: Measurement) -> str:
    if item.value is None:
        return f"{clean(judge, 60)}: drift {item.detail.get('verdict', 'not comparable')} ({item.state})"
    shifted = ", ".join(item.detail.get("shifted", ())) or "nothing"
    return f"{clean(judge, 60)}: {item.detail['verdict']} ({shifted} shifted in {item.detail['tests']} tests)"
