"""Values with their intervals, one below the other on one axis: shares, scores, slopes and differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.datasheet.figures.marks import Panel, mark, series
from assaymark.report.figures.canvas import Scale, label, line, rect
from assaymark.report.formats import fit, number, percent, text_width

_ROW, _NUMBERS = 46.0, 17.0


@dataclass(frozen=True, slots=True)
class DotRow:
    """A value with its interval and its words at the right; ``value`` is None where ``text`` says why."""

    title: str
    value: float | None
    ends: tuple[float, float] | None
    text: str
    empty: bool = False


@dataclass(frozen=True, slots=True)
class DotAxis:
    """The ends of the axis, its step, whether it is in percent, and a line that is read against."""

    low: float
    high: float
    step: float
    percent: bool = False
    line: float | None = None


def dots(rows: Sequence[DotRow], axis: DotAxis, width: float, at: int = 0) -> Panel:
    """All rows: title and numbers on one line where both fit, the mark on its axis below."""
    scale = Scale(axis.low, axis.high, 8, width - 8)
    parts: list[svg.Element] = []
    y = 0.0
    for row in rows:
        parts.append(label(0, y + 14, fit(row.title, width, 13)))
        if text_width(row.title, 13) + text_width(row.text, 12) + 12 > width:
            y += _NUMBERS
        parts.append(label(width, y + 14, fit(row.text, width, 12), "tk", "end"))
        parts += _mark(row, axis, scale, y + 28, at)
        y += _ROW
    parts += _axis(axis, scale, y - 2)
    return Panel(width, y + 24, tuple(parts))


def axis_of(rows: Sequence[DotRow], *, shares: bool = False, line: float | None = None) -> DotAxis:
    """An axis that holds every interval. Shares start at 0 and end at the next tenth, differences hold zero.

    It has a width even where all rows are one value.

    >>> axis_of([DotRow("a", 0.12, (0.08, 0.19), "")], shares=True)
    DotAxis(low=0.0, high=0.2, step=0.05, percent=True, line=None)
    >>> one = axis_of([DotRow("a", 1.0, (1.0, 1.0), "")])
    >>> one.low < 1.0 < one.high
    True
    """
    found = [end for row in rows for end in (*(row.ends or ()), *(() if row.value is None else (row.value,)))]
    if shares:
        high = min(1.0, max(0.2, math.ceil(max(found, default=1.0) * 10 - 1e-9) / 10))
        high = high if high <= 0.5 else 1.0
        return DotAxis(0.0, high, 0.05 if high <= 0.2 else 0.1 if high <= 0.5 else 0.25, True, line)
    found += [] if line is None else [line]
    low, high = min(found, default=0.0), max(found, default=1.0)
    reach = max(high - low, 0.1)
    step = next((s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 6), reach)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if first == last:
        first, last = first - 1, last + 1
    return DotAxis(first * step, last * step, step, False, line)


def _mark(row: DotRow, axis: DotAxis, scale: Scale, y: float, at: int) -> list[svg.Element]:
    if row.value is None:
        return [rect(scale.left, y - 7, scale.right - scale.left, 14, "void")]
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "hair")]
    if axis.line is not None:
        parts.append(line(scale(axis.line), y - 9, scale(axis.line), y + 9, "gs"))
    if row.ends:
        parts.append(line(scale(row.ends[0]), y, scale(row.ends[1]), y, f"{series(at)[1]}b"))
    return [*parts, *mark(scale(row.value), y, at, 5.5, empty=row.empty)]


def _axis(axis: DotAxis, scale: Scale, y: float) -> list[svg.Element]:
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "axis")]
    for k in range(round((axis.high - axis.low) / axis.step) + 1):
        value = axis.low + k * axis.step
        text = percent(value) if axis.percent else number(value, 2 if axis.step < 0.1 else 1)
        half = text_width(text, 12) / 2
        x = scale(value)
        parts += [
            line(x, y, x, y + 5, "axis"),
            label(min(max(x, half), scale.right + 8 - half), y + 19, text, "tk", "middle"),
        ]
    return parts
