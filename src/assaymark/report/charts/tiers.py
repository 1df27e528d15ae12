"""Scores by tier, small strips (a value and its interval beside its threshold), and rows of models: scores in columns,
two conventions beside each other, and losses against a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

import svg

from assaymark.records import Level
from assaymark.report.charts.canvas import Scale, frame, hatch, label, line, num, path, rect, row_mark, scale_ticks
from assaymark.report.charts.intervals import Ends, Mark, point
from assaymark.report.text import fit, text_width
from assaymark.text import MINUS, NBSP

KINDS: Final[dict[Level, Mark]] = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}
STRIP_WIDTH: Final = 180
_LINE: Final = 24
_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier: its names, the level of what separates it, its score from end to end, and what is written beside it.
    Only an agent that is alone in its tier has a ``point``."""

    names: tuple[str, ...]
    level: Level
    ends: Ends | None
    point: float | None
    shown: str
    said: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The names as they are drawn; of a long tier the first ones, and how many more."""
        more = len(self.names) - _NAMES
        return self.names if more <= 1 else (*self.names[:_NAMES], f"and {more} more")


def tier_chart(
    name: str, rows: Sequence[TierRow], axis: Ends, title: str, desc: str, width: float, *,
    kind: str, why: Sequence[str] = (),
) -> str:  # fmt: skip
    """The tiers of one score from high to low on a common axis. ``why`` are the lines that say why nothing may be
    shown: then the whole plot is hatched and holds names alone."""
    roomy = width > 600
    longest = max((text_width(one, 13) for row in rows for one in row.lines), default=0) + 12
    beside = max((text_width(row.said, 13) for row in rows), default=0) + 18
    left, right = (min(max(160.0, longest), 270.0), width - min(max(190.0, beside), 270.0)) if roomy else (
        min(max(104.0, longest), 132.0), width - 8
    )  # fmt: skip
    scale, parts, y = Scale(*axis, left, right), list[svg.Element]([hatch(f"{name}-h")]), 6.0
    for level in dict.fromkeys(row.level for row in rows):
        parts.append(hatch(f"{name}-{KINDS[level]}", f"{KINDS[level]}l"))
    why = [part for one in why for part in wrap(one, int((right - left - 20) / 7.4))]
    names = sum(len(row.lines) for row in rows)
    bottom = max(y + _LINE * names + 10 * len(rows), 18.0 * len(why) + 24)
    ticks = scale_ticks(*axis)
    parts += [line(scale(tick), 0, scale(tick), bottom, "hair") for tick in ticks]
    for at, row in enumerate(rows):
        height = _LINE * len(row.lines)
        style = "tn" if why else "tb"
        parts += [label(0, y + 17 + _LINE * k, fit(one, left - 12, 13), style) for k, one in enumerate(row.lines)]
        if not why:
            parts += _tier(name, row, scale, y + 2, height - 4, roomy)
            if at + 1 < len(rows):
                parts.append(line(0, y + height + 5, right, y + height + 5, "hair"))
        y += height + 10
    if why:
        parts.append(rect(left, 2, right - left, bottom - 4, "void", f"url(#{name}-h)"))
        middle, top = (left + right) / 2, bottom / 2 - 9 * len(why)
        room = max(text_width(one, 13) for one in why) + 16
        parts.append(rect(middle - room / 2, top - 4, room, 18 * len(why) + 8, "open"))
        parts += [label(middle, top + 13 + 18 * k, one, "" if k else "tb", "middle") for k, one in enumerate(why)]
    parts += [label(scale(tick), bottom + 14, f"{tick:g}".replace("-", MINUS), "tk", "middle") for tick in ticks]
    return frame(name, title, desc, (width, bottom + 20), parts, kind)


def _tier(name: str, row: TierRow, scale: Scale, y: float, height: float, roomy: bool) -> list[svg.Element]:
    """The mark of a tier: a square with its interval, or a hatched box from end to end."""
    kind, middle, parts = KINDS[row.level], y + height / 2, list[svg.Element]()
    if row.ends is None:
        parts.append(rect(scale.left, y, scale.right - scale.left, height, "void", f"url(#{name}-h)"))
    elif row.point is None:
        low, high = scale(row.ends[0]), scale(row.ends[1])
        parts.append(rect(low, y, max(high - low, 3), height, f"{kind}s box", f"url(#{name}-{kind})"))
    else:
        parts.append(line(scale(row.ends[0]), middle, scale(row.ends[1]), middle, f"{kind}b"))
        parts += point(scale(row.point), middle, kind)
    if roomy:
        parts.append(label(scale.right + 14, middle + 4.5, row.said, "t2"))
        if row.ends is not None:
            room, (low, high) = text_width(row.shown, 13) + 12, (scale(end) for end in row.ends)
            if low - room > scale.left:
                parts.append(label(low - 12, middle + 4.5, row.shown, "t2", "end"))
            elif high + room <= scale.right + 8:
                parts.append(label(high + 12, middle + 4.5, row.shown, "t2"))
            else:  # a box from end to end: its words stand inside, on paper
                words = text_width(row.shown, 13) + 12
                parts.append(rect((low + high - words) / 2, middle - 11, words, 22, "open"))
                parts.append(label((low + high) / 2, middle + 4.5, row.shown, "t2", "middle"))
    return parts


@dataclass(frozen=True, slots=True)
class Strip:
    """Values on an axis beside labelled thresholds: ``cuts`` are (value, label, dashed), ``points`` (value, low, high).
    ``marks`` are the kinds of the points: ``p`` passes, ``q`` conditions, ``n`` fails. ``band`` is where values
    pass."""

    axis: Ends
    cuts: tuple[tuple[float, str, bool], ...]
    points: tuple[tuple[float, float | None, float | None], ...]
    marks: str
    band: tuple[float | None, float | None] | None = None

    def svg(self) -> str:
        """The strip as a picture; the words beside it say the same."""
        scale = Scale(*self.axis, 8, STRIP_WIDTH - 8)
        parts: list[svg.Element] = []
        if self.band is not None:
            low, high = self.band
            start = scale.left if low is None else scale(low)
            parts.append(rect(start, 1, (scale.right if high is None else scale(high)) - start, 20, "panel2"))
        parts.append(line(scale.left, 11, scale.right, 11, "rule"))
        for at, words, dashed in self.cuts:
            x = scale(at)
            half = text_width(words, 12) / 2
            parts.append(line(x, 2, x, 20, "gd" if dashed else "gs"))
            if words:
                parts.append(label(min(max(x, half), STRIP_WIDTH - half), 33, words, "tk", "middle"))
        for (value, low, high), mark in zip(self.points, self.marks, strict=True):
            if low is not None and high is not None:
                parts.append(line(scale(low), 11, scale(high), 11, "now"))
            x = scale(value)
            if mark == "p":
                parts.append(path(f"M{num(x - 4)},7h8v8h-8z", "ink"))
            else:
                kind = "mq" if mark == "q" else "mn"
                parts.append(path(f"M{num(x - 4.5)},6.5h9v9h-9z", f"open {kind}s"))
                if mark == "q":
                    parts.append(path(f"M{num(x - 4.5)},6.5h4.5v9h-4.5z", "mq"))
        return row_mark(parts, STRIP_WIDTH, 37 if any(words for _, words, _ in self.cuts) else 22)


def strip_axis(values: Sequence[float], *cuts: float) -> Ends:
    """An axis that holds the values and the thresholds with room at both ends.

    >>> strip_axis([0.5], 0.0)
    (-0.075, 0.575)
    """
    low, high = min((*values, *cuts)), max((*values, *cuts))
    room = (high - low) * 0.15 or 0.1
    return round(low - room, 4), round(high + room, 4)


# One row a model.


_ROW, _HEAD, _ROOM = 22, 42, 44


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
