"""What happens to the order when one judge family is left out: two columns, one line an agent.

Only an agent whose place a verdict permits has a line. Lines without names would be no less telling: how they cross
says which of the agents beside the figure stands where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.records import Level
from assaymark.report.figures.canvas import NARROW, Scale, frame, label, line, rect
from assaymark.report.formats import fit, shortened, text_width

_LEFT, _RIGHT, _TOP, _STEP = 118.0, 234.0, 50.0, 28.0


@dataclass(frozen=True, slots=True)
class SlopeEnd:
    """One agent with a permitted place: where it stands with the full panel and without the family, from 1."""

    name: str
    full: int
    without: int
    level: Level


@dataclass(frozen=True, slots=True)
class Slope:
    """One chart of ``size`` agents. ``classes`` are runs of places that no verdict opens, as (first, last, words)."""

    family: str
    rho: str
    fails: bool
    size: int
    ends: tuple[SlopeEnd, ...]
    classes: tuple[tuple[int, int, str], ...]
    left: str
    right: str


def slope(name: str, chart: Slope, title: str, desc: str) -> str:
    """The chart at phone width; three stand side by side on a screen."""
    bottom = _TOP + _STEP * (chart.size - 1) + 20
    high = max(2.0, float(chart.size))
    scale = Scale(1, high, _TOP, _TOP + _STEP * (high - 1))
    names = [end.name for end in chart.ends]
    number_room = text_width(f" {chart.size}", 13)
    strong = "tb" if chart.fails else "tk"
    parts: list[svg.Element] = [
        label(_LEFT, 16, fit(chart.left, _LEFT - 4, 12), "tk", "end"),
        label((_LEFT + _RIGHT) / 2, 16, chart.rho, strong, "middle"),
        label(_RIGHT, 16, fit(chart.right, NARROW - _RIGHT, 12), strong),
        line(_LEFT, 30, _LEFT, bottom, "hair"),
        line(_RIGHT, 30, _RIGHT, bottom, "hair"),
    ]
    for first, last, words in chart.classes:
        parts += _class_box(scale, first, last, words)
    left = dict(zip(names, shortened(names, _LEFT - 16 - number_room, 13), strict=True))
    right = dict(zip(names, shortened(names, NARROW - _RIGHT - 16 - number_room, 13), strict=True))
    for end in sorted(chart.ends, key=lambda e: e.full):
        parts += _end(end, scale, left[end.name], right[end.name])
    return frame(name, title, desc, (NARROW, bottom), parts, "both")


def _class_box(scale: Scale, first: int, last: int, words: str) -> list[svg.Element]:
    top, height = scale(first) - 11, scale(last) - scale(first) + 22
    middle = (scale(first) + scale(last)) / 2
    lines = words.split("|")
    parts: list[svg.Element] = [rect(_LEFT - 9, top, 18, height, "void")]
    for at, text in enumerate(lines):
        y = middle + 4 + 16 * (at - (len(lines) - 1) / 2)
        parts.append(label(_LEFT - 16, y, fit(text, _LEFT - 18, 12), "tk", "end"))
    return parts


def _end(end: SlopeEnd, scale: Scale, left: str, right: str) -> list[svg.Element]:
    y1, y2 = scale(end.full), scale(end.without)
    kind = "mh" if end.level == "headline" else "mq"
    text = "tb"
    return [
        line(_LEFT, y1, _RIGHT, y2, f"{kind}s3"),
        _dot(_LEFT, y1, kind),
        _dot(_RIGHT, y2, kind),
        label(_LEFT - 14, y1 + 4.5, f"{left} {end.full}", text, "end"),
        label(_RIGHT + 14, y2 + 4.5, f"{end.without} {right}", text),
    ]


def _dot(x: float, y: float, kind: str) -> svg.Circle:
    return svg.Circle(cx=x, cy=y, r=5, class_=[kind] if kind == "mh" else ["open", "mqs"])


def places(order: Sequence[str]) -> dict[str, int]:
    """Place of each name in an order, counted from 1.

    >>> places(["b", "a"])
    {'b': 1, 'a': 2}
    """
    return {name: place for place, name in enumerate(order, 1)}
