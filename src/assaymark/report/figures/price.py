"""A small chart of one instrument's closes: a line between its lowest and highest, with both named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import svg

from assaymark.report.figures.canvas import NARROW, Scale, frame, label, line, num, path
from assaymark.report.formats import number, text_width

_TOP, _BOTTOM = 12.0, 104.0
_HEIGHT = 128.0


def price_chart(name: str, closes: Sequence[float], ends: tuple[str, str], title: str, desc: str) -> str:
    """The chart at phone width; three stand side by side on a screen.

    Parameters
    ----------
    name : str
        Unique on the page.
    closes : sequence of float
        At least two prices, oldest first.
    ends : tuple of str
        What stands under the first and the last of them.
    title, desc : str
        What is said to those who cannot see it.
    """
    low, high = min(closes), max(closes)
    digits = _digits(low, high)
    texts = [number(low, digits), number(high, digits)]
    left = max(text_width(text, 12) for text in texts) + 8
    slack = (high - low) * 0.04 or 1.0
    up, across = Scale(low - slack, high + slack, _BOTTOM, _TOP), Scale(0, len(closes) - 1, left, NARROW - 8)
    parts: list[svg.Element] = []
    for value, text in zip((low, high), texts, strict=True) if high > low else ((low, texts[0]),):
        parts += [
            line(left, up(value), NARROW - 8, up(value), "hair"),
            label(left - 8, up(value) + 4, text, "tk", "end"),
        ]
    points = [(round(across(at), 1), round(up(price), 1)) for at, price in enumerate(closes)]
    parts += [
        path(_moves(points), "curve"),
        path(f"M{points[-1][0]:g} {points[-1][1]:g}h0", "now"),
        label(left, _HEIGHT - 6, ends[0], "tk"),
        label(NARROW - 8, _HEIGHT - 6, ends[1], "tk", "end"),
    ]
    return frame(name, title, desc, (NARROW, _HEIGHT), parts, "both")


def _digits(low: float, high: float) -> int:
    """As many decimals as it takes to tell the lowest from the highest, at least two."""
    return next((digits for digits in (2, 3) if high - low >= 2 * 10.0**-digits), 4)


def _moves(points: Sequence[tuple[float, float]]) -> str:
    """A line in steps from point to point, which is shorter than in places."""
    steps = (f"{num(x - before_x)} {num(y - before_y)}" for (before_x, before_y), (x, y) in pairwise(points))
    return f"M{points[0][0]:g} {points[0][1]:g}l" + " ".join(steps)
