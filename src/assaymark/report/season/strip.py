"""The mark of a row: a line from the lowest to the highest judge with a dot for each, over the bands of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.judging.season.plans import Bands
from assaymark.records import Level
from assaymark.report.figures.canvas import Scale, hatch, label, line, num, rect, row_mark
from assaymark.report.figures.judges import judge_class

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
