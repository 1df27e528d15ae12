"""How big a difference a judge notices: joined points with intervals, the 75 % line, the foot of the threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import svg

from assaymark.report.charts.canvas import Scale, apart, frame, label, line, num, path, rect
from assaymark.report.charts.intervals import judge_marks
from assaymark.report.charts.scatter import Box, Request, Spot, placed
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import count, number, percent

# Marks of judges and patterns of pair classes: shape beside hue, pattern beside grey, so that no colour is needed.


Shape = Literal["circle", "square", "triangle", "diamond", "wedge"]
_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "diamond", "wedge")
_HUES: Final = ("k2", "k3", "k4")

PARTS: Final = (
    ("stable", "stable", "grey"),
    ("positional", "positional", "solid"),
    ("one_sided", "one-sided", "lines"),
    ("other_pairs", "other", "cross"),
    ("no_preference", "no preference", "empty"),
)
"""The classes of pairs: name of the measurement, word, and fill."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawn figure without its frame, so that it can stand on a page or be part of a larger picture."""

    width: float
    height: float
    parts: tuple[svg.Element, ...]

    def framed(self, name: str, title: str, desc: str, kind: str) -> str:
        """The figure as a page shows it."""
        return frame(name, title, desc, (self.width, self.height), self.parts, kind)


def series(at: int) -> tuple[Shape, str]:
    """Shape and hue of the judge at a place; the first has a hue of its own: it is the one that a page is about.

    >>> series(0), series(1), len({series(at) for at in range(15)})
    (('circle', 'k1'), ('square', 'k2'), 15)
    """
    return _SHAPES[at % len(_SHAPES)], _HUES[(at - 1) % len(_HUES)] if at else "k1"


def mark(x: float, y: float, at: int, size: float = 6.0, empty: bool = False) -> list[svg.Element]:
    """The mark of a judge, with a thin gap around it that keeps marks apart; an empty one is outlined."""
    shape, hue = series(at)
    kind = f"open {hue}l" if empty else f"{hue} gap"
    if shape == "circle":
        return [svg.Circle(cx=num(x), cy=num(y), r=num(size), class_=kind.split())]
    if shape == "square":
        side = size * 0.9
        outline = f"M{x - side:.1f} {y - side:.1f}h{2 * side:.1f}v{2 * side:.1f}h{-2 * side:.1f}z"
    elif shape == "diamond":
        r = size * 1.25
        outline = f"M{x:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f} {r:.1f}l{-r:.1f} {-r:.1f}z"
    else:
        r = size * 1.1 if shape == "triangle" else -size * 1.1
        outline = f"M{x:.1f} {y - r:.1f}l{r:.1f} {1.8 * r:.1f}h{-2 * r:.1f}z"
    return [path(outline, kind)]


def patterns(name: str) -> svg.Defs:
    """The two patterns of pair classes, as ``url(#name-lines)`` and ``url(#name-cross)``."""
    return svg.Defs(elements=[_pattern(f"{name}-lines", 1), _pattern(f"{name}-cross", 2)])


def _pattern(name: str, directions: int) -> svg.Pattern:
    strokes: list[svg.Element] = [svg.Line(x1=0, y1=0, x2=0, y2=5, class_=["pl"])]
    if directions == 2:
        strokes.append(svg.Line(x1=0, y1=0, x2=5, y2=0, class_=["pl"]))
    return svg.Pattern(
        id=name, width=5, height=5, patternUnits="userSpaceOnUse", patternTransform=[svg.Rotate(45)], elements=strokes
    )


def block(name: str, x: float, y: float, width: float, height: float, fill: str) -> list[svg.Element]:
    """A rectangle of a pair class: grey, solid, lines, crossed lines, or empty."""
    if fill in ("lines", "cross"):
        return [rect(x, y, width, height, "pb", f"url(#{name}-{fill})")]
    return [rect(x, y, width, height, f"pb p-{fill}")]


def cross(
    x: float, y: float, ends_x: tuple[float, float] | None, ends_y: tuple[float, float] | None, kind: str
) -> list[svg.Element]:
    """The intervals of a point in both directions, without caps."""
    found: list[svg.Element] = []
    if ends_x:
        found.append(line(ends_x[0], y, ends_x[1], y, kind))
    if ends_y:
        found.append(line(x, ends_y[0], x, ends_y[1], kind))
    return found


# What becomes of a pair shown in both orders: one stacked bar a judge, in greys and patterns, with pair counts.


_BAR, _ROW = 28.0, 68.0


@dataclass(frozen=True, slots=True)
class StackRow:
    """A judge: its pairs by class, in the order of `PARTS`, the words above its bar, and its place among the judges.
    ``strong`` if it is the judge of the page."""

    name: str
    pairs: tuple[int, ...]
    head: str
    strong: bool = False
    at: int = 0


def stacks(name: str, rows: Sequence[StackRow], width: float) -> Panel:
    """All judges, one bar each; every bar is all pairs of that judge."""
    parts: list[svg.Element] = [patterns(name)]
    y = _legend(name, width, parts)
    room = width - max((text_width(row.head, 12) for row in rows), default=0.0) - 12
    names = shortened([row.name for row in rows], room, 13)
    for row, title in zip(rows, names, strict=True):
        bar_y = y + 20
        total = sum(row.pairs)
        if not total:
            bar = []
        else:
            bar_parts: list[svg.Element] = []
            labels: list[tuple[float, str]] = []
            x = 0.5
            for (_, _, fill), n in zip(PARTS, row.pairs, strict=True):
                size = (width - 1) * n / total
                if n:
                    bar_parts += block(name, x, bar_y, size, _BAR, fill)
                    labels.append((x + size / 2, count(n)))
                x += size
            centres = apart([at for at, _ in labels], [text_width(text, 12) + 6 for _, text in labels], width)
            bar_parts += [
                label(at, bar_y + _BAR + 15, text, "tk", "middle")
                for at, (_, text) in zip(centres, labels, strict=True)
            ]
            bar = bar_parts
        drawn = [
            label(0, y + 14, title, "k1t" if row.strong else "tb"),
            label(width, y + 14, row.head, "tk", "end"),
            *bar,
        ]
        parts += judge_marks(row.at, drawn)
        y += _ROW
    return Panel(width, y + 4, tuple(parts))


def _legend(name: str, width: float, parts: list[svg.Element]) -> float:
    """Boxes with their words, on as many lines as they need; the height below them."""
    x, y = 0.0, 0.0
    for _, word, fill in PARTS:
        room = 18 + text_width(word, 12) + 12
        if x + room - 12 > width:
            x, y = 0.0, y + 20
        parts += [*block(name, x + 0.5, y + 4.5, 12, 11, fill), label(x + 18, y + 14, word, "tk")]
        x += room
    return y + 30


# Values with their intervals, one below the other on one axis: shares, scores, slopes and differences.


_DOTS_ROW, _NUMBERS = 46.0, 17.0


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
        y += _DOTS_ROW
    axis_y = y - 2
    axis_parts: list[svg.Element] = [line(scale.left, axis_y, scale.right, axis_y, "axis")]
    for k in range(round((axis.high - axis.low) / axis.step) + 1):
        value = axis.low + k * axis.step
        text = percent(value) if axis.percent else number(value, 2 if axis.step < 0.1 else 1)
        half = text_width(text, 12) / 2
        x = scale(value)
        axis_parts += [
            line(x, axis_y, x, axis_y + 5, "axis"),
            label(min(max(x, half), scale.right + 8 - half), axis_y + 19, text, "tk", "middle"),
        ]
    parts += axis_parts
    return Panel(width, y + 24, tuple(parts))


def axis_of(rows: Sequence[DotRow], *, shares: bool = False, line: float | None = None) -> DotAxis:
    """An axis that holds every interval. Shares start at 0 and end at the next tenth, differences hold zero. It has a
    width even where all rows are one value.

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
    return [*parts, *mark(scale(row.value), y, at, 5.5, row.empty)]


TARGET: Final = 0.75
BARRED: Final = 3
"""Up to so many judges all intervals are drawn; with more, those of the first."""
_TOP, _FOOT = 54.0, 44.0
_OFFSETS: Final = (0.0, -5.0, 5.0, -8.0, 8.0)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The share of calls that pick the better text at a step, with its interval."""

    delta: float
    share: float
    ends: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Foot:
    """The threshold on the axis: its value, interval and censoring, and its words."""

    value: float
    ends: tuple[float, float] | None
    censored: Literal["left", "right"] | None
    words: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge: its points by step, and the foot of its threshold where that is drawn."""

    name: str
    points: tuple[CurvePoint, ...]
    at: int
    foot: Foot | None = None


def curves(found: Sequence[Curve], width: float, height: float = 330.0) -> Panel:
    """All judges on one pair of axes. The first is drawn strong; the others thin, dashed and a little aside."""
    most = max((point.delta for curve in found for point in curve.points), default=5.0)
    across, up = Scale(0, most, 44, width - 18), Scale(0, 1, height - _FOOT, _TOP)
    parts: list[svg.Element] = [label(0, 16, "↑ Calls that pick the better text (ties count as misses)", "tk")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        kind = "axis" if share == 0 else "gd" if share == TARGET else "hair"
        bold = "tb12" if share == TARGET else "tk"
        parts += [
            line(44, up(share), width - 10, up(share), kind),
            label(38, up(share) + 4, f"{100 * share:.0f} %", bold, "end"),
        ]
    parts += _steps(found, across, height)
    parts.append(label(width - 10, height - 8, "Requirements the better text has and the other lacks →", "tk", "end"))
    taken: list[Box] = [Box(44, up(TARGET) - 2, width, up(TARGET) + 2)]
    for curve in found:
        if curve.foot:
            # The line from the 75 % level to the axis, the interval on the axis, and the words above it.
            foot = curve.foot
            hue, x, floor = series(curve.at)[1], across(foot.value), up(0)
            foot_parts: list[svg.Element] = []
            if foot.ends:
                low, high = across(foot.ends[0]), across(foot.ends[1])
                foot_parts.append(rect(low, floor - 6, high - low, 6, f"{hue}f"))
            if foot.censored != "right":
                foot_parts.append(line(x, up(TARGET), x, floor, f"{hue}l"))
            if foot.censored:
                turn = -1 if foot.censored == "left" else 1
                start = x if turn < 0 else x - 14
                foot_parts.append(
                    path(
                        f"M{start:.1f} {floor - 9:.1f}h{turn * 14}m{-turn * 5} -4l{turn * 5} 4l{-turn * 5} 4", f"{hue}l"
                    )
                )
            size = text_width(foot.words, 13)
            spot = (
                Spot(x + 10, floor - 14, "start")
                if x + 10 + size < across.right + 10
                else Spot(x - 10, floor - 14, "end")
            )
            foot_parts.append(label(spot.x, spot.y, foot.words, f"{hue}t halo", spot.anchor))
            left = spot.x if spot.anchor == "start" else spot.x - size
            taken.append(Box(left, spot.y - 12, left + size, spot.y + 4))
            parts += judge_marks(curve.at, foot_parts)
    for curve in reversed(found):
        drawn = _curve(curve, across, up, curve is found[0], len(found) <= BARRED, taken)
        parts += judge_marks(curve.at, drawn)
    parts += _names(found, across, up, taken, width)
    return Panel(width, height, tuple(parts))


def small_curve(points: Sequence[CurvePoint], at: int, width: float, height: float) -> list[svg.Element]:
    """A judge alone, for a grid of judges: the line, its bars and marks, and the 75 % line."""
    across, up = Scale(0, 5, 30, width - 8), Scale(0, 1, height - 22, 8)
    parts: list[svg.Element] = []
    for share, text in ((0, "0 %"), (TARGET, "75 %"), (1, "100 %")):
        kind = "axis" if share == 0 else "gd" if share == TARGET else "hair"
        parts += [line(30, up(share), width - 8, up(share), kind), label(26, up(share) + 4, text[:-2], "tk", "end")]
    parts += [label(across(step), height - 6, str(step), "tk", "middle") for step in range(1, 6)]
    whole = Curve("", tuple(points), at)
    return [*parts, *_curve(whole, across, up, strong=True, bars=True, taken=[], offset=0.0)]


def _steps(found: Sequence[Curve], across: Scale, height: float) -> list[svg.Element]:
    """Ticks at zero and at every step that some judge was shown."""
    steps = sorted({0.0, *(point.delta for curve in found for point in curve.points)})
    parts: list[svg.Element] = []
    for step in steps:
        x, text = across(step), "½" if step == 0.5 else f"{step:g}"
        parts += [
            line(x, height - _FOOT, x, height - _FOOT + 5, "axis"),
            label(x, height - _FOOT + 19, text, "tk", "middle"),
        ]
    return parts


def _curve(
    curve: Curve, across: Scale, up: Scale, strong: bool, bars: bool, taken: list[Box], *, offset: float | None = None
) -> list[svg.Element]:
    hue = series(curve.at)[1]
    shift = (0.0 if strong else _OFFSETS[curve.at % len(_OFFSETS)]) if offset is None else offset
    spots = [(across(p.delta) + shift, up(p.share)) for p in curve.points]
    kind = f"{hue}c" if strong else f"{hue}d"
    parts: list[svg.Element] = []
    if len(spots) > 1:
        parts.append(path("M" + "L".join(f"{num(x)} {num(y)}" for x, y in spots), kind))
    for (x, y), point in zip(spots, curve.points, strict=True):
        if point.ends and (strong or bars):
            low, high = up(point.ends[0]), up(point.ends[1])
            parts.append(line(x, high, x, low, f"{hue}l" if strong else f"{hue}h"))
            taken.append(Box(x - 2, high, x + 2, low))
        parts += mark(x, y, curve.at, 5.5 if strong else 4.0)
        taken.append(Box(x - 6, y - 6, x + 6, y + 6))
    for (x1, y1), (x2, y2) in pairwise(spots):
        for k in range(1, 8):  # a line is taken in small pieces, not as the box around it
            x, y = x1 + (x2 - x1) * k / 8, y1 + (y2 - y1) * k / 8
            taken.append(Box(x - 4, y - 3, x + 4, y + 3))
    return parts


def _names(curves: Sequence[Curve], across: Scale, up: Scale, taken: list[Box], width: float) -> list[svg.Element]:
    """Each curve's name beside one of its points; a single curve needs none."""
    shown = [curve for curve in curves if curve.points]
    if len(shown) < 2:
        return []
    names = shortened([curve.name for curve in shown], width * 0.34, 13)
    requests = [Request((name,), tuple(_beside(curve, across, up))) for curve, name in zip(shown, names, strict=True)]
    spots = placed(requests, taken, Box(44, _TOP - 28, width, up(0) - 22))
    found: list[svg.Element] = []
    for curve, name, spot in zip(shown, names, spots, strict=True):
        text = label(spot.x, spot.y, name, f"{series(curve.at)[1]}t halo", spot.anchor)
        found += judge_marks(curve.at, [text])
    return found


def _beside(curve: Curve, across: Scale, up: Scale) -> list[Spot]:
    found = []
    for distance in (0.0, 16.0, 32.0):
        for point in curve.points[1:-1] or curve.points:
            x, y = across(point.delta), up(point.share)
            found += [
                Spot(x + 10, y + 17 + distance, "start"),
                Spot(x, y - 12 - distance, "middle"),
                Spot(x, y + 21 + distance, "middle"),
                Spot(x - 10, y - 6 - distance, "end"),
            ]
    return found
