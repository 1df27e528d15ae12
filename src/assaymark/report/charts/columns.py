"""One row a model: scores in columns with intervals, two conventions beside each other, and losses against a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.charts.canvas import Scale, frame, hatch, label, line, path, rect, scale_ticks
from assaymark.report.text import fit
from assaymark.text import NBSP

_ROW, _HEAD, _ROOM = 22, 42, 44

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A value in words with its interval, of which one may be missing."""

    ends: Ends | None
    shown: str


@dataclass(frozen=True, slots=True)
class Column:
    """One score of every row; a row without one is None and hatched. ``best`` is dotted: the most that is possible."""

    name: str
    words: str
    bars: tuple[Bar | None, ...]
    best: float | None


def column_chart(
    name: str, rows: Sequence[str], columns: Sequence[Column], title: str, desc: str, width: float, *, kind: str
) -> str:
    """Columns from 0 to 1 beside each other, or below each other where there is no room. No bar has a point."""
    stacked, names = width < 600, 104.0
    step = 0.0 if stacked else (width - names) / max(len(columns), 1)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    tall = _HEAD + _ROW * len(rows)
    for at, column in enumerate(columns):
        top = at * (tall + 18.0) if stacked else 0.0
        left = names + at * step + 8
        scale = Scale(0.0, 1.0, left, width - _ROOM if stacked else left + step - 8 - _ROOM)
        bottom = top + tall
        parts += [label(left, top + 13, column.name, "tb"), label(left + 26, top + 13, column.words, "t2")]
        for tick, words in ((0.0, "0"), (0.5, ".5"), (1.0, "1")):
            parts.append(label(scale(tick), top + 32, words, "tk", "middle"))
            parts.append(line(scale(tick), top + 37, scale(tick), bottom, "hair"))
        if column.best is not None:
            parts.append(line(scale(column.best), top + 37, scale(column.best), bottom, "gd"))
        for row, (who, bar) in enumerate(zip(rows, column.bars, strict=True)):
            y = top + _HEAD + _ROW * row + _ROW / 2
            if stacked or not at:
                style = "tb" if all(one.bars[row] is not None for one in columns) else "t2"
                parts.append(label(0, y + 4.5, fit(who, names - 8, 13), style))
                parts.append(line(0, y + _ROW / 2, width, y + _ROW / 2, "hair"))
            if bar is None:
                parts.append(rect(left, y - 8, scale.right - left, 16, "void", f"url(#{name}-h)"))
                continue
            if bar.ends is not None:
                parts.append(_bar(scale, bar.ends, y, "ink"))
            parts.append(label(scale.right + 6, y + 4.5, bar.shown, "t2"))
    size = (tall + 18.0) * len(columns) - 18 if stacked else tall
    return frame(name, title, desc, (width, size + 4), parts, kind)


@dataclass(frozen=True, slots=True)
class Twice:
    """A row with two intervals; ``cut`` draws a line above it."""

    name: str
    first: Bar
    other: Bar | None
    kind: str
    cut: bool = False


def convention_chart(name: str, rows: Sequence[Twice], title: str, desc: str, width: float, kind: str) -> str:
    """Every model with a filled bar and an outlined one on a common axis."""
    known = [one for row in rows for bar in (row.first, row.other) if bar and bar.ends for one in bar.ends]
    low, high = int(min(known, default=0.0) * 10) / 10, min(1.0, int(max(known, default=1.0) * 10 + 1) / 10)
    scale, parts, tall = Scale(low, high, 108, width - 96), list[svg.Element](), 36.0
    bottom = 24 + tall * len(rows)
    for tick in scale_ticks(low, high):
        parts.append(label(scale(tick), 13, f"{tick:g}", "tk", "middle"))
        parts.append(line(scale(tick), 20, scale(tick), bottom, "hair"))
    for at, row in enumerate(rows):
        y = 24 + tall * at
        parts += [line(0, y, width, y, "gd")] if row.cut else []
        parts.append(label(0, y + tall / 2 + 4.5, fit(row.name, 100, 13), "tb"))
        for bar, middle, style in ((row.first, y + 11, row.kind), (row.other, y + 26, "open rule")):
            if bar is not None:
                parts += [_bar(scale, bar.ends, middle, style)] if bar.ends else []
                parts.append(label(width, middle + 4.5, bar.shown, "tk" if bar is row.other else "", "end"))
    return frame(name, title, desc, (width, bottom + 2), parts, kind)


def _bar(scale: Scale, ends: Ends, y: float, style: str) -> svg.Element:
    low, high = scale(ends[0]), scale(ends[1])
    return rect(low, y - 3, max(high - low, 3.0), 6, style)


Fall = tuple[str, float, bool]
"""A name, its largest drawdown as a share, and whether that is within the limit."""


def limit_chart(
    name: str, rows: Sequence[Fall], limit: float, title: str, desc: str, width: float, *, kind: str
) -> str:
    """The largest drawdown of every model as a line to a mark; what lies beyond the limit is hatched."""
    scale = Scale(0.0, max([limit, *(fall for _, fall, _ in rows)]) * 1.04, 108, width - 56)
    bottom, at, parts = 24.0 + _ROW * len(rows), 0.0, list[svg.Element]([hatch(f"{name}-h")])
    edge = scale(limit)
    parts.append(rect(edge, 22, scale.right - edge, bottom - 22, "novoid", f"url(#{name}-h)"))
    parts.append(label(edge, 13, f"limit {100 * limit:g}{NBSP}%", "tk", "middle"))
    parts.append(line(edge, 18, edge, bottom, "gs"))
    for at, (who, fall, kept) in enumerate(rows):
        x, y = scale(fall), 24 + _ROW * at + _ROW / 2
        parts.append(label(0, y + 4.5, fit(who, 100, 13), "tb"))
        parts.append(line(scale.left, y, x, y, "rule"))
        parts.append(svg.Circle(cx=round(x, 1), cy=y, r=5, class_=["ink"] if kept else ["open", "ringed"]))
        parts += [] if kept else [path(f"M{x - 2.6:.1f},{y - 2.6}l5.2,5.2m0,-5.2l-5.2,5.2", "ringed")]
        parts.append(label(width, y + 4.5, f"{100 * fall:.1f}{NBSP}%", "t2", "end"))
    return frame(name, title, desc, (width, bottom + 2), parts, kind)
