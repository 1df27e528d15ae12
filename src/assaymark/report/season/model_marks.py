"""Parts of an axis as several judges graded them: a line from lowest to highest, a dot a judge, a square at the median.

A line is the range of the judges and no interval, so it is thin. The square is open where the judges straddle a band.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.report.figures.canvas import HALF, NARROW, Scale, frame, hatch, label, line, num, path, rect
from assaymark.report.formats import fit, text_width

_ROW: Final = 30.0
_TOP: Final = 28.0


@dataclass(frozen=True, slots=True)
class PartRow:
    """One part: its title, its weight, the points of each judge, and their median (None without a judge).

    ``given`` are points that a judge gave and the numeric ledger lowered, each with what counted.
    """

    title: str
    weight: str
    points: tuple[float, ...]
    median: float | None
    straddles: bool
    given: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class PartAxis:
    """Where the two upper bands begin, in points, and what the bands are called from low to high."""

    mixed: int
    strong: int
    bands: tuple[str, str, str]


def part_figure(name: str, rows: Sequence[PartRow], axis: PartAxis, title: str, desc: str) -> tuple[str, str]:
    """The figure for half a screen and for a phone."""
    wide = _figure(f"{name}-w", rows, axis, (title, desc), (float(HALF), 208.0), "wide")
    return wide, _figure(f"{name}-n", rows, axis, (title, desc), (float(NARROW), 164.0), "narrow")


def _figure(
    name: str, rows: Sequence[PartRow], axis: PartAxis, words: tuple[str, str], size: tuple[float, float], kind: str
) -> str:
    width, left = size
    scale = Scale(0.0, 100.0, left, width - 14)
    bottom = _TOP + _ROW * len(rows)
    parts: list[svg.Element] = [hatch(f"{name}-h"), *_bands(name, axis, scale, bottom)]
    for at, row in enumerate(rows):
        parts += _row(row, scale, _TOP + _ROW * (at + 0.5), left)
    for mark in (0, axis.mixed, axis.strong, 100):
        parts.append(label(scale(mark), bottom + 18, str(mark), "tk", "middle"))
    return frame(name, *words, (width, bottom + 24), parts, kind)


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


def _row(row: PartRow, scale: Scale, y: float, left: float) -> list[svg.Element]:
    weight = left - 14
    room = weight - text_width(row.weight, 12) - 10
    found: list[svg.Element] = [
        label(0, y + 4.5, fit(row.title, room, 13)),
        label(weight, y + 4.5, row.weight, "tk", "end"),
        line(scale.left, y, scale.right, y, "hair"),
    ]
    if row.median is None:
        return [*found, rect(scale.left + 1, y - 7, scale.right - scale.left - 2, 14, "void")]
    for given, counted in row.given:
        found.append(line(scale(counted), y, scale(given), y, "capped"))
        found.append(svg.Circle(cx=num(scale(given)), cy=num(y), r=3.5, class_=["open", "ring"]))
    low, high = min(row.points), max(row.points)
    if high > low:
        found.append(line(scale(low), y, scale(high), y, "judges"))
    found += [svg.Circle(cx=num(scale(one)), cy=num(y), r=3.5, class_=["judge"]) for one in row.points]
    x = scale(row.median)
    square = f"M{x - 5:.1f} {y - 5:.1f}h10v10h-10z"
    found.append(path(square, "gap ink"))
    if row.straddles:
        found.append(path(f"M{x - 3.2:.1f} {y - 3.2:.1f}h6.4v6.4h-6.4z", "open"))
    return found
