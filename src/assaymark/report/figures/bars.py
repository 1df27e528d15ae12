"""Shares in a table of bars: one row a group, one column a state, the percent beside each bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.figures.canvas import NARROW, WIDE, frame, label, line, rect
from assaymark.report.formats import fit, shortened

_ROW = 26


@dataclass(frozen=True, slots=True)
class BarCell:
    """A share in [0, 1] and the text beside its bar."""

    share: float
    text: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """A group: its name, how many it counts (as text), and one cell a state. ``total`` stands first and bold."""

    title: str
    n: str
    cells: tuple[BarCell, ...]
    total: bool = False


def bar_table(
    name: str, columns: Sequence[str], rows: Sequence[BarRow], title: str, desc: str, of: str = "numbers"
) -> tuple[str, str]:
    """The figure for a screen and for a phone. All bars share one scale, a full column is 100 %; rows count ``of``."""
    return _wide(f"{name}-w", columns, rows, title, desc, of), _narrow(f"{name}-n", columns, rows, title, desc)


def _wide(name: str, columns: Sequence[str], rows: Sequence[BarRow], title: str, desc: str, of: str) -> str:
    left, gap = 250.0, 14.0
    width = (WIDE - left) / max(len(columns), 1)
    reach = width - gap - 48
    parts: list[svg.Element] = [label(left - 24, 14, of, "tk", "end")]
    parts += [label(left + at * width, 14, fit(text, width - 4, 13), "tb") for at, text in enumerate(columns)]
    y = 24.0
    titles = shortened([row.title for row in rows], 180, 13)
    for words, row in zip(titles, rows, strict=True):
        kind = "tb" if row.total else ""
        parts += [label(0, y + 18, words, kind), label(left - 24, y + 18, row.n, "t2", "end")]
        for at, cell in enumerate(row.cells):
            parts += _bar(left + at * width, y + 6, reach, cell, row.total)
        y += _ROW
        parts.append(line(0, y, WIDE, y, "rule" if row.total else "hair"))
        y += 4 if row.total else 0
    parts += [line(left + at * width, 24, left + at * width, y, "hair") for at in range(len(columns))]
    return frame(name, title, desc, (WIDE, y + 4), parts, "wide")


def _narrow(name: str, columns: Sequence[str], rows: Sequence[BarRow], title: str, desc: str) -> str:
    """Two panels side by side, one a state, each with all rows."""
    panel, room, reach = 167.0, 92.0, 32.0
    titles = shortened([row.title for row in rows], room, 13)
    parts: list[svg.Element] = []
    height = 0.0
    for at, column in enumerate(columns):
        x, y = (at % 2) * (panel + 16), (at // 2) * (len(rows) * 20 + 40.0)
        parts.append(label(x, y + 16, fit(column, panel, 13), "tb"))
        parts.append(line(x, y + 24, x + panel, y + 24, "hair"))
        for place, row in enumerate(rows):
            top = y + 28 + 20 * place
            parts.append(label(x, top + 14, titles[place], "tb" if row.total else "t2"))
            parts += _bar(x + room + 4, top + 2, reach, row.cells[at], row.total)
        bottom = y + 28 + 20 * len(rows)
        parts.append(line(x + room + 4, y + 28, x + room + 4, bottom, "hair"))
        height = max(height, bottom)
    return frame(name, title, desc, (NARROW, height + 8), parts, "narrow")


def _bar(x: float, y: float, reach: float, cell: BarCell, total: bool) -> list[svg.Element]:
    width = reach * cell.share
    bar = [rect(x, y + 1, max(width, 1.5), 13, "bar1" if total else "bar2")] if cell.share > 0 else []
    return [*bar, label(x + max(width, 0) + 6, y + 12, cell.text, "tk")]
