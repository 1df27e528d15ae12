"""The mark of a row: a line from the lowest to the highest judge with a dot for each, over the bands of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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


def band_head(bands: Bands, scale: Scale, names: tuple[str, str, str]) -> str:
    """The names of the bands and where the upper two begin, above all strips; it brings the hatch that they use.

    ``names`` are those of weak, mixed and strong.
    """
    mixed, strong = scale(bands.mixed), scale(bands.strong)
    weak_name, mixed_name, strong_name = names
    parts: list[svg.Element] = [
        hatch(_HATCH),
        label((scale.left + mixed) / 2, 12, weak_name, "tk", "middle"),
        label((mixed + strong) / 2, 12, mixed_name, "tk", "middle"),
        label((strong + scale.right) / 2, 12, strong_name, "tk", "middle"),
        label(mixed, 27, str(bands.mixed), "tk", "middle"),
        label(strong, 27, str(bands.strong), "tk", "middle"),
    ]
    return row_mark(parts, WIDTH, 32)


@dataclass(frozen=True, slots=True, order=True)
class JudgedPoints:
    """The points that one judge gave, and the judge's place in the panel."""

    points: float
    judge: int | None = None


def band_strip(bands: Bands, scale: Scale, level: Level, points: Sequence[JudgedPoints]) -> str:
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
    kind = _KIND[level]
    values = [one.points for one in points]
    low, high = min(values), max(values)
    if high > low:
        parts.append(line(scale(low), 14, scale(high), 14, f"{kind}s"))
    dot = "open mns dot" if level == "no-claim" else f"{kind} gap"
    parts += [
        svg.Circle(cx=num(scale(one.points)), cy=14, r=4.5, class_=[*dot.split(), *judge_class(one.judge)])
        for one in points
    ]
    return row_mark(parts, WIDTH, 28)


# Parts of an axis as several judges graded them: a line from lowest to highest, and a dot a judge.
#
# A line is the range of the judges and no interval, so it is thin.


_TOP: Final = 28.0


@dataclass(frozen=True, slots=True)
class PartRow:
    """One part: its title, its weight, and the points of each judge.

    ``given`` are points that a judge gave and the numeric ledger lowered, each with what counted. ``judges`` are the
    places of the judges in the panel, one for each of the points.
    """

    title: str
    weight: str
    points: tuple[float, ...]
    straddles: bool
    given: tuple[tuple[float, float], ...] = ()
    judges: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PartAxis:
    """Where the two upper bands begin, in points, and what the bands are called from low to high."""

    mixed: int
    strong: int
    bands: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Box:
    """Where things stand: the axis, the height of a row, and the room for titles beside the marks or above them."""

    width: float
    left: float
    row: float
    above: bool

    @property
    def scale(self) -> Scale:
        return Scale(0.0, 100.0, self.left, self.width - 14)


_WIDE_BOX: Final = _Box(float(HALF), 228.0, 24.0, above=False)
_NARROW_BOX: Final = _Box(float(NARROW), 10.0, 36.0, above=True)


def part_figure(name: str, rows: Sequence[PartRow], axis: PartAxis, title: str, desc: str) -> tuple[str, str]:
    """The figure for half a screen and for a phone, where titles stand above their marks."""
    wide = _figure(f"{name}-w", rows, axis, (title, desc), _WIDE_BOX)
    return wide, _figure(f"{name}-n", rows, axis, (title, desc), _NARROW_BOX)


def _figure(name: str, rows: Sequence[PartRow], axis: PartAxis, words: tuple[str, str], box: _Box) -> str:
    scale = box.scale
    bottom = _TOP + box.row * len(rows)
    parts: list[svg.Element] = [hatch(f"{name}-h"), *_bands(name, axis, scale, bottom)]
    for at, row in enumerate(rows):
        parts += _row(row, box, _TOP + box.row * at)
    for mark in (0, axis.mixed, axis.strong, 100):
        parts.append(label(scale(mark), bottom + 18, str(mark), "tk", "middle"))
    return frame(name, *words, (box.width, bottom + 24), parts, "narrow" if box.above else "wide")


def _bands(name: str, axis: PartAxis, scale: Scale, bottom: float) -> list[svg.Element]:
    """The bands as hatched, grey and plain ground, with their names above where these fit."""
    mixed, strong, height = scale(axis.mixed), scale(axis.strong), bottom - _TOP
    found: list[svg.Element] = [
        rect(scale.left, _TOP, mixed - scale.left, height, "novoid", f"url(#{name}-h)"),
        rect(mixed, _TOP, strong - mixed, height, "panel"),
        line(mixed, _TOP, mixed, bottom, "axis"),
        line(strong, _TOP, strong, bottom, "axis"),
    ]
    ends = ((scale.left, mixed), (mixed, strong), (strong, scale.right))
    if all(text_width(text, 12) <= high - low + 10 for text, (low, high) in zip(axis.bands, ends, strict=True)):
        for text, (low, high) in zip(axis.bands, ends, strict=True):
            found.append(label((low + high) / 2, _TOP - 10, text, "tk", "middle"))
    return found


def _row(row: PartRow, box: _Box, top: float) -> list[svg.Element]:
    scale = box.scale
    if box.above:
        y, text, right = top + 32.0, top + 18.5, scale.right - 4
        start, kinds = scale.left + 4, ("halo", "tk halo")
    else:
        y = top + box.row / 2
        text, right, start, kinds = y + 4.5, box.left - 14, 0.0, ("", "tk")
    room = right - start - text_width(row.weight, 12) - 10
    found: list[svg.Element] = [
        label(start, text, fit(row.title, room, 13), kinds[0]),
        label(right, text, row.weight, kinds[1], "end"),
        line(scale.left, y, scale.right, y, "hair"),
    ]
    if not row.points:
        return [*found, rect(scale.left + 1, y - 7, scale.right - scale.left - 2, 14, "void")]
    for given, counted in row.given:
        found.append(line(scale(counted), y, scale(given), y, "capped"))
        found.append(svg.Circle(cx=num(scale(given)), cy=num(y), r=3.5, class_=["open", "ring"]))
    low, high = min(row.points), max(row.points)
    if high > low:
        found.append(line(scale(low), y, scale(high), y, "judges"))
    for one, judge in zip_longest(row.points, row.judges):
        found.append(svg.Circle(cx=num(scale(one)), cy=num(y), r=3.5, class_=["judge", *judge_class(judge)]))
    return found
