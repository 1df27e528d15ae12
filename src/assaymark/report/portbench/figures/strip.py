"""An interval on the common axis of a leaderboard; a point only where the position may be claimed."""

from __future__ import annotations

import svg

from assaymark.report.figures.canvas import line, path
from assaymark.report.figures.score import STRIP, ScoreAxis


def interval_strip(axis: ScoreAxis, low: float | None, high: float | None, point: float | None) -> str:
    """One row's mark, hidden from screen readers because its row says the same in numbers.

    >>> "h10v10" in interval_strip(ScoreAxis(0, 1, (0.0, 1.0), 1), 0.4, 0.6, None)
    False
    """
    scale = axis.scale
    parts: list[svg.Element] = [line(0, 14, STRIP, 14, "hair")]
    parts += [line(scale(tick), 10, scale(tick), 18, "hair") for tick in axis.ticks]
    if low is not None and high is not None:
        parts.append(line(scale(low), 14, max(scale(high), scale(low) + 1), 14, "span"))
    if point is not None:
        parts.append(path(f"M{scale(point) - 5:.1f} 9h10v10h-10z", "ink gap"))
    return svg.SVG(
        xmlns=None,
        class_=["strip"],
        viewBox=svg.ViewBoxSpec(0, 0, STRIP, 28),
        width=STRIP,
        height=28,
        elements=parts,
        extra={"aria-hidden": "true", "focusable": "false"},
    ).as_str()
