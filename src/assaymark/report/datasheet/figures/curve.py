"""How big a difference a judge notices: joined points with intervals, the 75 % line, the foot of the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import svg

from assaymark.report.datasheet.figures.marks import Panel, mark, series
from assaymark.report.datasheet.figures.placing import Box, Request, Spot, placed
from assaymark.report.figures.canvas import Scale, label, line, num, path, rect
from assaymark.report.figures.judges import judge_marks
from assaymark.report.formats import shortened, text_width

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
            parts += judge_marks(curve.at, _foot(curve.foot, curve.at, across, up, taken))
    for curve in reversed(found):
        drawn = _curve(curve, across, up, strong=curve is found[0], bars=len(found) <= BARRED, taken=taken)
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


def _foot(foot: Foot, at: int, across: Scale, up: Scale, taken: list[Box]) -> list[svg.Element]:
    """The line from the 75 % level to the axis, the interval on the axis, and the words above it."""
    hue, x, floor = series(at)[1], across(foot.value), up(0)
    parts: list[svg.Element] = []
    if foot.ends:
        low, high = across(foot.ends[0]), across(foot.ends[1])
        parts.append(rect(low, floor - 6, high - low, 6, f"{hue}f"))
    if foot.censored != "right":
        parts.append(line(x, up(TARGET), x, floor, f"{hue}l"))
    if foot.censored:
        turn = -1 if foot.censored == "left" else 1
        start = x if turn < 0 else x - 14
        parts.append(
            path(f"M{start:.1f} {floor - 9:.1f}h{turn * 14}m{-turn * 5} -4l{turn * 5} 4l{-turn * 5} 4", f"{hue}l")
        )
    size = text_width(foot.words, 13)
    spot = Spot(x + 10, floor - 14, "start") if x + 10 + size < across.right + 10 else Spot(x - 10, floor - 14, "end")
    parts.append(label(spot.x, spot.y, foot.words, f"{hue}t halo", spot.anchor))
    left = spot.x if spot.anchor == "start" else spot.x - size
    taken.append(Box(left, spot.y - 12, left + size, spot.y + 4))
    return parts


def _curve(
    curve: Curve, across: Scale, up: Scale, *, strong: bool, bars: bool, taken: list[Box], offset: float | None = None
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
