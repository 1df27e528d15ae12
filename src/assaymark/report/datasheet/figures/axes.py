"""Two measured shares on two axes: each judge a point with a cross of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.datasheet.figures.marks import Panel, cross, mark, series
from assaymark.report.datasheet.figures.placing import Box, Request, Spot, around, placed
from assaymark.report.figures.canvas import Scale, label, line
from assaymark.report.figures.judges import judge_marks
from assaymark.report.formats import fit, shortened, text_width

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
    top = _limit(points)
    step = 0.1 if top <= 0.5 else 0.2
    across, up = Scale(0, top, 38, width - 14), Scale(0, top, height - _FOOT, _TOP)
    parts: list[svg.Element] = [label(0, 16, f"↑ {fit(heads.y, width - 20, 12)}", "tk")]
    for k in range(round(top / step) + 1):
        x, y, text = across(k * step), up(k * step), f"{k * step:.1f}".replace("0.0", "0").replace("1.0", "1")
        parts.append(line(38, y, width - 14, y, "hair" if k else "axis"))
        parts += [label(32, y + 4, text, "tk", "end"), label(x, height - _FOOT + 18, text, "tk", "middle")]
    parts.append(label(width - 14, height - 8, f"{fit(heads.x, width - 40, 12)} →", "tk", "end"))
    parts += _points(points, across, up, width)
    return Panel(width, height, tuple(parts))


def _limit(points: Sequence[MapPoint]) -> float:
    """The end of both axes: every interval fits."""
    ends = [end for p in points for pair in (p.ends_x, p.ends_y) if pair for end in pair]
    most = max([0.2, *(p.x for p in points), *(p.y for p in points), *ends])
    return min(1.0, math.ceil(most * 10 - 1e-9) / 10) if most <= 0.5 else min(1.0, math.ceil(most * 5 - 1e-9) / 5)


def _points(points: Sequence[MapPoint], across: Scale, up: Scale, width: float) -> list[svg.Element]:
    crosses: list[svg.Element] = []
    marks: list[svg.Element] = []
    taken: list[Box] = []
    for point in reversed(points):  # the judge of the page is drawn last, on top
        x, y = across(point.x), up(point.y)
        ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
        ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
        crosses += judge_marks(point.at, cross(x, y, ends_x, ends_y, f"{series(point.at)[1]}l"))
        marks += judge_marks(point.at, mark(x, y, point.at))
        taken.append(Box(x - 7, y - 7, x + 7, y + 7))
        taken += [Box(ends_x[0], y - 2, ends_x[1], y + 2)] if ends_x else []
        taken += [Box(x - 2, ends_y[0], x + 2, ends_y[1])] if ends_y else []
    names = shortened([point.name for point in points], width * 0.42, 13)
    requests = []
    for point, name in zip(points, names, strict=True):
        spots = [*around(across(point.x), up(point.y)), *_past_arms(point, across, up)]
        requests.append(Request((name, point.note) if point.note else (name,), tuple(spots)))
    found = placed(requests, taken, Box(30, _TOP - 14, width, up(0) - 2))
    texts: list[svg.Element] = []
    for point, name, spot in zip(points, names, found, strict=True):
        texts += judge_marks(point.at, _label(point, name, spot, across(point.x), up(point.y)))
    return [*crosses, *marks, *texts]


def _past_arms(point: MapPoint, across: Scale, up: Scale) -> list[Spot]:
    """Spots beyond the ends of the cross, and just above and below its arms."""
    x, y = across(point.x), up(point.y)
    found = []
    if point.ends_x:
        found.append(Spot(across(point.ends_x[1]) + 6, y + 4, "start"))
    if point.ends_y:
        found.append(Spot(x, up(point.ends_y[1]) - 6, "middle"))
    return [*found, Spot(x + 9, y - 8, "start"), Spot(x + 9, y + 17, "start"), Spot(x - 9, y - 8, "end")]


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
