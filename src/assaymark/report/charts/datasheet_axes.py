"""Two operating points of one judge, joined: what a stricter instruction gives and takes. Not an ROC curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.charts.canvas import Scale, label, line, path
from assaymark.report.charts.datasheet_marks import Panel, cross, mark, series
from assaymark.report.charts.intervals import judge_marks
from assaymark.report.charts.scatter import Box, Request, Spot, around, placed
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import percent

# Two measured shares on two axes: each judge a point with a cross of intervals.


_TOP, _FOOT = 34.0, 44.0
_CLEAR = 9.0
Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A judge: two shares in [0, 1] with their intervals. ``note`` is a second line below its name."""

    name: str
    x: float
    y: float
    ends_x: Ends
    ends_y: Ends
    at: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Heads:
    """The titles of the two axes."""

    x: str
    y: str


def share_map(points: Sequence[MapPoint], heads: Heads, width: float, height: float = 320.0) -> Panel:
    """All judges on one pair of axes that start at 0 and have one scale in both directions."""
    # The end of both axes: every interval fits.
    ends = [end for p in points for pair in (p.ends_x, p.ends_y) if pair for end in pair]
    most = max([0.2, *(p.x for p in points), *(p.y for p in points), *ends])
    top = min(1.0, math.ceil(most * 10 - 1e-9) / 10) if most <= 0.5 else min(1.0, math.ceil(most * 5 - 1e-9) / 5)
    step = 0.1 if top <= 0.5 else 0.2
    across, up = Scale(0, top, 38, width - 14), Scale(0, top, height - _FOOT, _TOP)
    parts: list[svg.Element] = [label(0, 16, f"↑ {fit(heads.y, width - 20, 12)}", "tk")]
    for k in range(round(top / step) + 1):
        x, y, text = across(k * step), up(k * step), f"{k * step:.1f}".replace("0.0", "0").replace("1.0", "1")
        parts.append(line(38, y, width - 14, y, "hair" if k else "axis"))
        parts += [label(32, y + 4, text, "tk", "end"), label(x, height - _FOOT + 18, text, "tk", "middle")]
    parts.append(label(width - 14, height - 8, f"{fit(heads.x, width - 40, 12)} →", "tk", "end"))
    crosses: list[svg.Element] = []
    marks: list[svg.Element] = []
    taken: list[Box] = []
    for point in reversed(points):  # the judge of the page is drawn last, on top
        points_x, points_y = across(point.x), up(point.y)
        ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
        ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
        crosses += judge_marks(point.at, cross(points_x, points_y, ends_x, ends_y, f"{series(point.at)[1]}l"))
        marks += judge_marks(point.at, mark(points_x, points_y, point.at))
        taken.append(Box(points_x - 7, points_y - 7, points_x + 7, points_y + 7))
        taken += [Box(ends_x[0], points_y - 2, ends_x[1], points_y + 2)] if ends_x else []
        taken += [Box(points_x - 2, ends_y[0], points_x + 2, ends_y[1])] if ends_y else []
    names = shortened([point.name for point in points], width * 0.42, 13)
    requests = []
    for point, name in zip(points, names, strict=True):
        # Spots beyond the ends of the cross, and just above and below its arms.
        past_arms_x, past_arms_y = across(point.x), up(point.y)
        past_arms_found = []
        if point.ends_x:
            past_arms_found.append(Spot(across(point.ends_x[1]) + 6, past_arms_y + 4, "start"))
        if point.ends_y:
            past_arms_found.append(Spot(past_arms_x, up(point.ends_y[1]) - 6, "middle"))
        spots = [
            *around(across(point.x), up(point.y)),
            *[
                *past_arms_found,
                Spot(past_arms_x + 9, past_arms_y - 8, "start"),
                Spot(past_arms_x + 9, past_arms_y + 17, "start"),
                Spot(past_arms_x - 9, past_arms_y - 8, "end"),
            ],
        ]
        requests.append(Request((name, point.note) if point.note else (name,), tuple(spots)))
    found = placed(requests, taken, Box(30, _TOP - 14, width, up(0) - 2))
    texts: list[svg.Element] = []
    for point, name, spot in zip(points, names, found, strict=True):
        texts += judge_marks(point.at, _label(point, name, spot, across(point.x), up(point.y)))
    parts += [*crosses, *marks, *texts]
    return Panel(width, height, tuple(parts))


def _label(point: MapPoint, name: str, spot: Spot, x: float, y: float) -> list[svg.Element]:
    kind = f"{series(point.at)[1]}t halo"
    parts: list[svg.Element] = []
    width = text_width(name, 13)
    near = {"start": spot.x, "middle": spot.x, "end": spot.x}[spot.anchor]
    if abs(spot.y - 4 - y) > 30 or abs(near - x) > max(60.0, width):
        away = _CLEAR / math.hypot(near - x, spot.y - 4 - y)  # a leader begins beside its mark, not on it
        parts.append(line(x + away * (near - x), y + away * (spot.y - 4 - y), near, spot.y - 4, "hair"))
    parts.append(label(spot.x, spot.y, name, kind, spot.anchor))
    if point.note:
        parts.append(label(spot.x, spot.y + 15, point.note, "tk halo", spot.anchor))
    return parts


_SEGMENT_TOP, _SEGMENT_FOOT = 34.0, 44.0


@dataclass(frozen=True, slots=True)
class Operating:
    """An instruction: false preference between equal texts, and how often the better text is picked."""

    name: str
    x: float
    y: float
    ends_x: Ends
    ends_y: Ends


def segment(base: Operating, strict: Operating, at: int, width: float, height: float = 320.0) -> Panel:
    """From the base instruction (filled) to the strict one (empty), both with their intervals."""
    xs = [end for p in (base, strict) for end in (p.x, *(p.ends_x or ()))]
    ys = [end for p in (base, strict) for end in (p.y, *(p.ends_y or ()))]
    right = min(1.0, max(0.2, math.ceil(max(xs) * 10 - 1e-9) / 10))
    right = right if right <= 0.6 else math.ceil(right * 5 - 1e-9) / 5
    bottom = min(0.8, max(0.0, math.floor(min(ys) * 5 + 1e-9) / 5))
    across, up = Scale(0, right, 44, width - 24), Scale(bottom, 1, height - _SEGMENT_FOOT, _SEGMENT_TOP)
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
            line(x, height - _SEGMENT_FOOT, x, height - _SEGMENT_FOOT + 5, "axis"),
            label(x, height - _SEGMENT_FOOT + 19, f"{100 * k * step:.0f} %", "tk", "middle"),
        ]
    head = fit("False preference between equal texts", width - 60, 12)
    parts.append(label(width - 14, height - 8, f"{head} →", "tk", "end"))
    parts += _segment_points((base, strict), at, across, up, width)
    return Panel(width, height, tuple(parts))


def _segment_points(
    both: tuple[Operating, Operating], at: int, across: Scale, up: Scale, width: float
) -> list[svg.Element]:
    hue = series(at)[1]
    spots = [(across(p.x), up(p.y)) for p in both]
    taken = [Box(x - 8, y - 8, x + 8, y + 8) for x, y in spots]
    parts: list[svg.Element] = [*_arrow(spots[0], spots[1])]
    for k in range(1, 10):
        x, y = (spots[0][axis] + (spots[1][axis] - spots[0][axis]) * k / 10 for axis in (0, 1))
        taken.append(Box(x - 5, y - 5, x + 5, y + 5))
    for point, (x, y) in zip(both, spots, strict=True):
        ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
        ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
        parts += cross(x, y, ends_x, ends_y, f"{hue}l")
        taken += [Box(ends_x[0], y - 2, ends_x[1], y + 2)] if ends_x else []
        taken += [Box(x - 2, ends_y[0], x + 2, ends_y[1])] if ends_y else []
    for k, (x, y) in enumerate(spots):
        parts += mark(x, y, at, 6.5, empty=k == 1)
    texts = [(p.name, f"{percent(p.x)} and {percent(p.y)}") for p in both]
    requests = [
        Request(lines, (Spot(x + 10, y - 22, "start"), Spot(x + 10, y + 18, "start"), *around(x, y)))
        for lines, (x, y) in zip(texts, spots, strict=True)
    ]
    found = placed(requests, taken, Box(46, _SEGMENT_TOP - 14, width, up(up.low) - 2))
    for (name, numbers), spot in zip(texts, found, strict=True):
        parts += [
            label(spot.x, spot.y, name, "tb halo", spot.anchor),
            label(spot.x, spot.y + 15, numbers, "tk halo", spot.anchor),
        ]
    return parts


def small_segment(base: Operating, strict: Operating, at: int, width: float, height: float) -> list[svg.Element]:
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
        ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
        ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
        parts += [*cross(x, y, ends_x, ends_y, f"{hue}h"), *mark(x, y, at, 5.0, empty=k == 1)]
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
