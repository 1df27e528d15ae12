"""The board's score marks: a bar with a square, a hatched box for a tier, a dashed hatch where there is no value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.records import Level
from assaymark.report.figures.canvas import Scale, hatch, label, line, path, rect, row_mark
from assaymark.report.formats import number

STRIP = 260
_PAD = 18


@dataclass(frozen=True, slots=True)
class ScoreAxis:
    """The common axis of all strips, made from scores that may be shown; ``ticks`` is empty when there are none."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int

    @property
    def scale(self) -> Scale:
        """Where values lie on a strip."""
        return Scale(self.low, self.high, _PAD, STRIP - _PAD)


def score_axis(values: Sequence[float]) -> ScoreAxis:
    """An axis with three to six round ticks that holds the values.

    >>> score_axis([3.91, 4.38]).ticks
    (3.8, 4.0, 4.2, 4.4)
    >>> score_axis([]).ticks
    ()
    """
    if not values:
        return ScoreAxis(0.0, 1.0, (), 0)
    low, high = min(values), max(values)
    reach = max(high - low, 0.05)
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, reach) if reach / s <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(at * step, 6) for at in range(first, max(last, first + 1) + 1))
    return ScoreAxis(ticks[0], ticks[-1], ticks, 2 if step < 0.1 else 1)


def score_head(axis: ScoreAxis) -> str:
    """The tick labels above the strips; empty without an axis."""
    if not axis.ticks:
        return ""
    parts: list[svg.Element] = [
        label(axis.scale(tick), 13, number(tick, axis.digits), "tb", "middle") for tick in axis.ticks
    ]
    return row_mark(parts, STRIP, 18)


def score_strip(
    name: str, axis: ScoreAxis, level: Level, point: float | None, bounds: tuple[float, float] | None
) -> str:
    """One row's mark. No point and no bounds draw a hatch without an axis."""
    if bounds is None and point is None:
        mark: list[svg.Element] = [hatch(f"{name}-h"), rect(1, 5, STRIP - 2, 18, "void", f"url(#{name}-h)")]
        return row_mark(mark, STRIP, 28)
    scale = axis.scale
    parts: list[svg.Element] = [line(0, 14, STRIP, 14, "hair")]
    parts += [line(scale(tick), 10, scale(tick), 18, "hair") for tick in axis.ticks]
    kind = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}[level]
    if point is None and bounds is not None:
        low, high = scale(bounds[0]), scale(bounds[1])
        parts += [hatch(f"{name}-h", f"{kind}l"), rect(low, 5, high - low, 18, f"{kind}s box", f"url(#{name}-h)")]
        return row_mark(parts, STRIP, 28)
    if bounds is not None:
        parts.append(line(scale(bounds[0]), 14, scale(bounds[1]), 14, f"{kind}b"))
    x = scale(point or 0.0)
    whole, half = f"M{x - 5:.1f} 9h10v10h-10z", f"M{x - 5:.1f} 9h5v10h-5z"
    if kind == "mh":
        return row_mark([*parts, path(whole, "mh gap")], STRIP, 28)
    return row_mark([*parts, path(whole, "open gap"), path(whole, "open mqs"), path(half, "mq")], STRIP, 28)
