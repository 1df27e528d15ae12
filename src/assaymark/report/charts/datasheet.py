"""The figures of judges: stacked pairs, values on one axis, curves of a ladder, maps, and two operating points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import svg

from assaymark.report.charts.canvas import Scale, apart, frame, label, line, num, path, rect
from assaymark.report.charts.intervals import judge_marks
from assaymark.report.charts.scatter import Box, Request, Spot, around, placed
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import count, number, percent

# Marks of judges and patterns of pair classes: shape beside hue, pattern beside grey, so that no colour is needed.


Ends = tuple[float, float] | None
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
    ends: Ends
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
class Curve:
    """A judge: the share of calls that pick the better text at each step, as (step, share, interval).

    ``foot`` is its threshold where that is drawn: value, interval, the side on which it is censored, and its words.
    """

    name: str
    points: tuple[tuple[float, float, Ends], ...]
    at: int
    foot: tuple[float, Ends, Literal["left", "right"] | None, str] | None = None


def curves(found: Sequence[Curve], width: float, height: float = 330.0) -> Panel:
    """All judges on one pair of axes. The first is drawn strong; the others thin, dashed and a little aside."""
    most = max((delta for curve in found for delta, *_ in curve.points), default=5.0)
    across, up = Scale(0, most, 44, width - 18), Scale(0, 1, height - _FOOT, _TOP)
    parts: list[svg.Element] = [label(0, 16, "↑ Calls that pick the better text (ties count as misses)", "tk")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        kind = "axis" if share == 0 else "gd" if share == TARGET else "hair"
        bold = "tb12" if share == TARGET else "tk"
        parts += [
            line(44, up(share), width - 10, up(share), kind),
            label(38, up(share) + 4, f"{100 * share:.0f} %", bold, "end"),
        ]
    for step in sorted({0.0, *(delta for curve in found for delta, *_ in curve.points)}):
        x = across(step)
        parts += [
            line(x, height - _FOOT, x, height - _FOOT + 5, "axis"),
            label(x, height - _FOOT + 19, "½" if step == 0.5 else f"{step:g}", "tk", "middle"),
        ]
    parts.append(label(width - 10, height - 8, "Requirements the better text has and the other lacks →", "tk", "end"))
    taken: list[Box] = [Box(44, up(TARGET) - 2, width, up(TARGET) + 2)]
    for curve in found:
        if curve.foot:
            # The line from the 75 % level to the axis, the interval on the axis, and the words above it.
            value, ends, censored, words = curve.foot
            hue, x, floor = series(curve.at)[1], across(value), up(0)
            foot_parts: list[svg.Element] = []
            if ends:
                low, high = across(ends[0]), across(ends[1])
                foot_parts.append(rect(low, floor - 6, high - low, 6, f"{hue}f"))
            if censored != "right":
                foot_parts.append(line(x, up(TARGET), x, floor, f"{hue}l"))
            if censored:
                turn = -1 if censored == "left" else 1
                start = x if turn < 0 else x - 14
                arrow = f"M{start:.1f} {floor - 9:.1f}h{turn * 14}m{-turn * 5} -4l{turn * 5} 4l{-turn * 5} 4"
                foot_parts.append(path(arrow, f"{hue}l"))
            size = text_width(words, 13)
            fits = x + 10 + size < across.right + 10
            spot = Spot(x + 10, floor - 14, "start") if fits else Spot(x - 10, floor - 14, "end")
            foot_parts.append(label(spot.x, spot.y, words, f"{hue}t halo", spot.anchor))
            left = spot.x if spot.anchor == "start" else spot.x - size
            taken.append(Box(left, spot.y - 12, left + size, spot.y + 4))
            parts += judge_marks(curve.at, foot_parts)
    for curve in reversed(found):
        drawn = _curve(curve, across, up, curve is found[0], len(found) <= BARRED, taken)
        parts += judge_marks(curve.at, drawn)
    parts += _names(found, across, up, taken, width)
    return Panel(width, height, tuple(parts))


def small_curve(curve: Curve, width: float, height: float) -> list[svg.Element]:
    """A judge alone, for a grid of judges: the line, its bars and marks, and the 75 % line."""
    across, up = Scale(0, 5, 30, width - 8), Scale(0, 1, height - 22, 8)
    parts: list[svg.Element] = []
    for share, text in ((0, "0 %"), (TARGET, "75 %"), (1, "100 %")):
        kind = "axis" if share == 0 else "gd" if share == TARGET else "hair"
        parts += [line(30, up(share), width - 8, up(share), kind), label(26, up(share) + 4, text[:-2], "tk", "end")]
    parts += [label(across(step), height - 6, str(step), "tk", "middle") for step in range(1, 6)]
    return [*parts, *_curve(curve, across, up, strong=True, bars=True, taken=[], offset=0.0)]


def _curve(
    curve: Curve, across: Scale, up: Scale, strong: bool, bars: bool, taken: list[Box], *, offset: float | None = None
) -> list[svg.Element]:
    hue = series(curve.at)[1]
    shift = (0.0 if strong else _OFFSETS[curve.at % len(_OFFSETS)]) if offset is None else offset
    spots = [(across(delta) + shift, up(share)) for delta, share, _ in curve.points]
    kind = f"{hue}c" if strong else f"{hue}d"
    parts: list[svg.Element] = []
    if len(spots) > 1:
        parts.append(path("M" + "L".join(f"{num(x)} {num(y)}" for x, y in spots), kind))
    for (x, y), (_, _, ends) in zip(spots, curve.points, strict=True):
        if ends and (strong or bars):
            low, high = up(ends[0]), up(ends[1])
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
        for delta, share, _ in curve.points[1:-1] or curve.points:
            x, y = across(delta), up(share)
            found += [
                Spot(x + 10, y + 17 + distance, "start"),
                Spot(x, y - 12 - distance, "middle"),
                Spot(x, y + 21 + distance, "middle"),
                Spot(x - 10, y - 6 - distance, "end"),
            ]
    return found


# Two measured shares on two axes, each judge a point with a cross of intervals; and two operating points of one judge,
# joined: what a stricter instruction gives and takes. Not an ROC curve.


_TOP_MAP: Final = 34.0
_CLEAR = 9.0


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A judge, or one instruction to it: two shares in [0, 1] with their intervals, and a second line below its name.

    ``at`` is the place of the judge on a map.
    """

    name: str
    x: float
    y: float
    ends_x: Ends
    ends_y: Ends
    at: int = 0
    note: str = ""


def _arms(point: MapPoint, across: Scale, up: Scale) -> tuple[float, float, Ends, Ends]:
    """Where a point lies, and the ends of its intervals in both directions."""
    ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
    ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
    return across(point.x), up(point.y), ends_x, ends_y


def _cross(arms: tuple[float, float, Ends, Ends], kind: str, taken: list[Box] | None = None) -> list[svg.Element]:
    """The intervals of a point in both directions, without caps; what they cover is ``taken``."""
    x, y, ends_x, ends_y = arms
    found: list[svg.Element] = []
    boxes = [] if taken is None else taken
    if ends_x:
        found.append(line(ends_x[0], y, ends_x[1], y, kind))
        boxes.append(Box(ends_x[0], y - 2, ends_x[1], y + 2))
    if ends_y:
        found.append(line(x, ends_y[0], x, ends_y[1], kind))
        boxes.append(Box(x - 2, ends_y[0], x + 2, ends_y[1]))
    return found


def share_map(points: Sequence[MapPoint], heads: tuple[str, str], width: float, height: float = 320.0) -> Panel:
    """All judges on one pair of axes that start at 0 and have one scale in both directions; ``heads`` are their
    titles, across and up."""
    # The end of both axes: every interval fits.
    ends = [end for p in points for pair in (p.ends_x, p.ends_y) if pair for end in pair]
    most = max([0.2, *(p.x for p in points), *(p.y for p in points), *ends])
    top = min(1.0, math.ceil(most * 10 - 1e-9) / 10) if most <= 0.5 else min(1.0, math.ceil(most * 5 - 1e-9) / 5)
    step = 0.1 if top <= 0.5 else 0.2
    across, up = Scale(0, top, 38, width - 14), Scale(0, top, height - _FOOT, _TOP_MAP)
    parts: list[svg.Element] = [label(0, 16, f"↑ {fit(heads[1], width - 20, 12)}", "tk")]
    for k in range(round(top / step) + 1):
        x, y, text = across(k * step), up(k * step), f"{k * step:.1f}".replace("0.0", "0").replace("1.0", "1")
        parts.append(line(38, y, width - 14, y, "hair" if k else "axis"))
        parts += [label(32, y + 4, text, "tk", "end"), label(x, height - _FOOT + 18, text, "tk", "middle")]
    parts.append(label(width - 14, height - 8, f"{fit(heads[0], width - 40, 12)} →", "tk", "end"))
    crosses: list[svg.Element] = []
    marks: list[svg.Element] = []
    taken: list[Box] = []
    for point in reversed(points):  # the judge of the page is drawn last, on top
        x, y, *_ = arms = _arms(point, across, up)
        taken.append(Box(x - 7, y - 7, x + 7, y + 7))
        crosses += judge_marks(point.at, _cross(arms, f"{series(point.at)[1]}l", taken))
        marks += judge_marks(point.at, mark(x, y, point.at))
    names = shortened([point.name for point in points], width * 0.42, 13)
    requests = []
    for point, name in zip(points, names, strict=True):
        # Around the mark, beyond the ends of the cross, and just above and below its arms.
        x, y, ends_x, ends_y = _arms(point, across, up)
        spots = [
            *around(x, y),
            *([Spot(ends_x[1] + 6, y + 4, "start")] if ends_x else []),
            *([Spot(x, ends_y[0] - 6, "middle")] if ends_y else []),
            Spot(x + 9, y - 8, "start"),
            Spot(x + 9, y + 17, "start"),
            Spot(x - 9, y - 8, "end"),
        ]
        requests.append(Request((name, point.note) if point.note else (name,), tuple(spots)))
    found = placed(requests, taken, Box(30, _TOP_MAP - 14, width, up(0) - 2))
    texts: list[svg.Element] = []
    for point, name, spot in zip(points, names, found, strict=True):
        texts += judge_marks(point.at, _label(point, name, spot, across(point.x), up(point.y)))
    parts += [*crosses, *marks, *texts]
    return Panel(width, height, tuple(parts))


def _label(point: MapPoint, name: str, spot: Spot, x: float, y: float) -> list[svg.Element]:
    kind = f"{series(point.at)[1]}t halo"
    parts: list[svg.Element] = []
    width = text_width(name, 13)
    if abs(spot.y - 4 - y) > 30 or abs(spot.x - x) > max(60.0, width):
        away = _CLEAR / math.hypot(spot.x - x, spot.y - 4 - y)  # a leader begins beside its mark, not on it
        parts.append(line(x + away * (spot.x - x), y + away * (spot.y - 4 - y), spot.x, spot.y - 4, "hair"))
    parts.append(label(spot.x, spot.y, name, kind, spot.anchor))
    if point.note:
        parts.append(label(spot.x, spot.y + 15, point.note, "tk halo", spot.anchor))
    return parts


def segment(base: MapPoint, strict: MapPoint, at: int, width: float, height: float = 320.0) -> Panel:
    """From the base instruction (filled) to the strict one (empty), both with their intervals."""
    xs = [end for p in (base, strict) for end in (p.x, *(p.ends_x or ()))]
    ys = [end for p in (base, strict) for end in (p.y, *(p.ends_y or ()))]
    right = min(1.0, max(0.2, math.ceil(max(xs) * 10 - 1e-9) / 10))
    right = right if right <= 0.6 else math.ceil(right * 5 - 1e-9) / 5
    bottom = min(0.8, max(0.0, math.floor(min(ys) * 5 + 1e-9) / 5))
    across, up = Scale(0, right, 44, width - 24), Scale(bottom, 1, height - _FOOT, _TOP_MAP)
    parts: list[svg.Element] = [label(0, 16, "↑ Picks the better text, one requirement apart", "tk")]
    low, high = round(up.low * 5), 5
    for k in range(low, high + 1):
        y = up(k / 5)
        parts += [
            line(44, y, width - 14, y, "hair" if k > low else "axis"),
            label(38, y + 4, f"{20 * k} %", "tk", "end"),
        ]
    step = 0.1 if across.high <= 0.6 else 0.2
    for k in range(round(across.high / step) + 1):
        x = across(k * step)
        parts += [
            line(x, height - _FOOT, x, height - _FOOT + 5, "axis"),
            label(x, height - _FOOT + 19, f"{100 * k * step:.0f} %", "tk", "middle"),
        ]
    head = fit("False preference between equal texts", width - 60, 12)
    parts.append(label(width - 14, height - 8, f"{head} →", "tk", "end"))
    parts += _segment_points((base, strict), at, across, up, width)
    return Panel(width, height, tuple(parts))


def _segment_points(
    both: tuple[MapPoint, MapPoint], at: int, across: Scale, up: Scale, width: float
) -> list[svg.Element]:
    hue = series(at)[1]
    spots = [(across(p.x), up(p.y)) for p in both]
    taken = [Box(x - 8, y - 8, x + 8, y + 8) for x, y in spots]
    parts: list[svg.Element] = [*_arrow(spots[0], spots[1])]
    for k in range(1, 10):
        x, y = (spots[0][axis] + (spots[1][axis] - spots[0][axis]) * k / 10 for axis in (0, 1))
        taken.append(Box(x - 5, y - 5, x + 5, y + 5))
    for point in both:
        parts += _cross(_arms(point, across, up), f"{hue}l", taken)
    for k, (x, y) in enumerate(spots):
        parts += mark(x, y, at, 6.5, empty=k == 1)
    texts = [(p.name, f"{percent(p.x)} and {percent(p.y)}") for p in both]
    requests = [
        Request(lines, (Spot(x + 10, y - 22, "start"), Spot(x + 10, y + 18, "start"), *around(x, y)))
        for lines, (x, y) in zip(texts, spots, strict=True)
    ]
    found = placed(requests, taken, Box(46, _TOP_MAP - 14, width, up(up.low) - 2))
    for (name, numbers), spot in zip(texts, found, strict=True):
        parts += [
            label(spot.x, spot.y, name, "tb halo", spot.anchor),
            label(spot.x, spot.y + 15, numbers, "tk halo", spot.anchor),
        ]
    return parts


def small_segment(base: MapPoint, strict: MapPoint, at: int, width: float, height: float) -> list[svg.Element]:
    """The same for a grid of judges: both axes from 0 to 100 %."""
    across, up = Scale(0, 1, 30, width - 8), Scale(0, 1, height - 22, 8)
    hue = series(at)[1]
    spots = [(across(p.x), up(p.y)) for p in (base, strict)]
    parts: list[svg.Element] = []
    for share in (0, 0.5, 1):
        parts += [
            line(30, up(share), width - 8, up(share), "hair" if share else "axis"),
            label(26, up(share) + 4, f"{100 * share:.0f}", "tk", "end"),
            label(across(share), height - 6, f"{100 * share:.0f}", "tk", "end" if share == 1 else "middle"),
        ]
    parts += _arrow(spots[0], spots[1])
    for k, (point, (x, y)) in enumerate(zip((base, strict), spots, strict=True)):
        parts += [*_cross(_arms(point, across, up), f"{hue}h"), *mark(x, y, at, 5.0, empty=k == 1)]
    return parts


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> list[svg.Element]:
    """A line with its head in the middle, so that no mark hides it; none where the points are one."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    if length < 24:
        return [line(x1, y1, x2, y2, "gs")] if length > 0.5 else []
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    x, y = (x1 + x2) / 2 + 5 * ux, (y1 + y2) / 2 + 5 * uy
    left, right = (x - 9 * ux - 5 * uy, y - 9 * uy + 5 * ux), (x - 9 * ux + 5 * uy, y - 9 * uy - 5 * ux)
    head = f"M{x:.1f} {y:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z"
    return [line(x1, y1, x2, y2, "gs"), path(head, "ink")]
