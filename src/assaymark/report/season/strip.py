"""What judges gave over the bands of the plan: the mark of an agent, and the parts of an axis, with a dot for each.

A line runs from the lowest to the highest judge. It is their range and no interval, so it is thin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import svg

from assaymark.judging.season.plans import Bands
from assaymark.records import Level
from assaymark.report.charts.canvas import HALF, NARROW, Scale, frame, hatch, label, line, num, rect, row_mark
from assaymark.report.charts.intervals import judge_class
from assaymark.report.text import fit, text_width

WIDTH: Final = 192
_PAD: Final = 5
_ROOM, _NEAR, _STEP = 22.0, 4.0, 5.0
_HATCH: Final = "bands-h"
_KIND: Final = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}

Judged = tuple[float, int | None]
"""The points that a judge gave, and its place in the panel where that may be shown."""

BandNames = tuple[str, str, str]
"""What the bands are called: weak, mixed and strong."""


def band_scale(bands: Bands, points: Iterable[float]) -> Scale:
    """The axis of all strips of a page: both boundaries and every judge's points lie on it, with room for the names.

    >>> from assaymark.judging.season.plans import load_scoring
    >>> scale = band_scale(load_scoring().bands, [33.0, 79.0])
    >>> scale.low, scale.high
    (20.0, 90.0)
    """
    known = list(points)
    low = min((bands.mixed - _ROOM, *(value - _NEAR for value in known)))
    high = max((bands.strong + _ROOM, *(value + _NEAR for value in known)))
    return Scale(max(_STEP * (low // _STEP), 0.0), min(_STEP * -(-high // _STEP), 100.0), _PAD, WIDTH - _PAD)


def _names(bands: Bands, scale: Scale, names: BandNames, y: float) -> list[svg.Element]:
    edges = (scale.left, scale(bands.mixed), scale(bands.strong), scale.right)
    return [
        label((low + high) / 2, y, name, "tk", "middle")
        for name, low, high in zip(names, edges, edges[1:], strict=False)
    ]


def band_head(bands: Bands, scale: Scale, names: BandNames) -> str:
    """The names of the bands and where the upper two begin, above all strips; it brings the hatch that they use."""
    marks = [label(scale(mark), 27, str(mark), "tk", "middle") for mark in (bands.mixed, bands.strong)]
    return row_mark([hatch(_HATCH), *_names(bands, scale, names, 12), *marks], WIDTH, 32)


def band_strip(bands: Bands, scale: Scale, level: Level, points: Sequence[Judged]) -> str:
    """One row. Without a claim the dots are open; without a grade a hatched box stands in their place."""
    mixed, strong = scale(bands.mixed), scale(bands.strong)
    if not points:
        return row_mark([rect(1, 5, WIDTH - 2, 18, "void", f"url(#{_HATCH})")], WIDTH, 28)
    parts: list[svg.Element] = [
        rect(scale.left, 6, mixed - scale.left, 16, "novoid", f"url(#{_HATCH})"),
        rect(mixed, 6, strong - mixed, 16, "panel"),
        line(scale.left, 14, scale.right, 14, "hair"),
        line(mixed, 4, mixed, 24, "axis"),
        line(strong, 4, strong, 24, "axis"),
    ]
    kind, values = _KIND[level], [value for value, _ in points]
    if max(values) > min(values):
        parts.append(line(scale(min(values)), 14, scale(max(values)), 14, f"{kind}s"))
    dot = "open mns dot" if level == "no-claim" else f"{kind} gap"
    parts += [
        svg.Circle(cx=num(scale(value)), cy=14, r=4.5, class_=[*dot.split(), *judge_class(judge)])
        for value, judge in points
    ]
    return row_mark(parts, WIDTH, 28)


_TOP: Final = 28.0

PartRow = tuple[str, str, Sequence[Judged], Sequence[tuple[float, float]]]
"""A part of an axis: its title, its weight, what each judge gave, and what was lowered as (given, counted)."""


def part_figure(
    name: str, rows: Sequence[PartRow], bands: Bands, names: BandNames, title: str, desc: str
) -> tuple[str, str]:
    """The parts of an axis for half a screen and for a phone, where titles stand above their marks."""
    sizes = ((f"{name}-w", float(HALF), 228.0, 24.0), (f"{name}-n", float(NARROW), 10.0, 36.0))
    drawn = []
    for key, width, left, height in sizes:
        above, scale, bottom = left < 228, Scale(0.0, 100.0, left, width - 14), _TOP + height * len(rows)
        mixed, strong = scale(bands.mixed), scale(bands.strong)
        parts: list[svg.Element] = [
            hatch(f"{key}-h"),
            rect(scale.left, _TOP, mixed - scale.left, bottom - _TOP, "novoid", f"url(#{key}-h)"),
            rect(mixed, _TOP, strong - mixed, bottom - _TOP, "panel"),
            line(mixed, _TOP, mixed, bottom, "axis"),
            line(strong, _TOP, strong, bottom, "axis"),
        ]
        room = (mixed - scale.left, strong - mixed, scale.right - strong)
        if all(text_width(text, 12) <= size + 10 for text, size in zip(names, room, strict=True)):
            parts += _names(bands, scale, names, _TOP - 10)
        for at, row in enumerate(rows):
            parts += _part(row, scale, _TOP + height * at, None if above else height / 2)
        for mark in (0, bands.mixed, bands.strong, 100):
            parts.append(label(scale(mark), bottom + 18, str(mark), "tk", "middle"))
        drawn.append(frame(key, title, desc, (width, bottom + 24), parts, "narrow" if above else "wide"))
    return drawn[0], drawn[1]


def _part(row: PartRow, scale: Scale, top: float, middle: float | None) -> list[svg.Element]:
    """A row of the figure; its title stands beside its marks, or above them where there is no ``middle``."""
    title, weight, points, lowered = row
    y, text, right, start, halo = top + 32.0, top + 18.5, scale.right - 4, scale.left + 4, " halo"
    if middle is not None:
        y, right, start, halo = top + middle, scale.left - 14, 0.0, ""
        text = y + 4.5
    found: list[svg.Element] = [
        label(start, text, fit(title, right - start - text_width(weight, 12) - 10, 13), halo.strip()),
        label(right, text, weight, f"tk{halo}", "end"),
        line(scale.left, y, scale.right, y, "hair"),
    ]
    if not points:
        return [*found, rect(scale.left + 1, y - 7, scale.right - scale.left - 2, 14, "void")]
    for given, counted in lowered:
        found.append(line(scale(counted), y, scale(given), y, "capped"))
        found.append(svg.Circle(cx=num(scale(given)), cy=num(y), r=3.5, class_=["open", "ring"]))
    low, high = min(value for value, _ in points), max(value for value, _ in points)
    if high > low:
        found.append(line(scale(low), y, scale(high), y, "judges"))
    for value, judge in points:
        found.append(svg.Circle(cx=num(scale(value)), cy=num(y), r=3.5, class_=["judge", *judge_class(judge)]))
    return found
