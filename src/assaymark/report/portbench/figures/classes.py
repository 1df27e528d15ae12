"""The histories of one asset class: every instrument thin, the equal-weight index bold, both from 100 on a log axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import svg

from assaymark.report.figures.canvas import NARROW, Scale, frame, label, line, path, rect
from assaymark.report.figures.nav_paths import Floats, drawn
from assaymark.report.formats import count

_TOP, _BOTTOM, _LEFT, _HEIGHT = 10.0, 168.0, 46.0, 192.0


def class_panel(
    name: str, lines: Floats, index: Floats, years: Sequence[float], shaded: Sequence[tuple[float, float]],
    title: str, desc: str,
) -> str:  # fmt: skip
    """A panel at phone width; three stand side by side on a screen.

    Parameters
    ----------
    name : str
        Unique on its page.
    lines : float array of shape (n_points, n_instruments)
        Above 0; NaN where there is no price.
    index : float array of shape (n_points,)
    years : sequence of n_points float
        When, as a year with its fraction.
    shaded : sequence of (first, last)
        Times that are marked, such as stress windows.
    title, desc : str
        What is said to those who cannot see it.
    """
    ends = np.log10(np.concatenate([lines[np.isfinite(lines)], index, [100.0]]))
    up = Scale(float(ends.min()) - 0.02, float(ends.max()) + 0.02, _BOTTOM, _TOP)
    across = Scale(years[0], years[-1], _LEFT, NARROW - 8)
    parts: list[svg.Element] = [
        rect(across(first), _TOP, across(last) - across(first), _BOTTOM - _TOP, "shade") for first, last in shaded
    ]
    for value in _ticks(10 ** float(ends.min()), 10 ** float(ends.max())):
        y = up(math.log10(value))
        parts.append(line(_LEFT, y, NARROW - 8, y, "axis" if value == 100 else "hair"))
        parts.append(label(_LEFT - 6, y + 4, count(round(value)), "tk", "end"))
    xs = np.array([across(year) for year in years])
    thin = [_moves(xs, column, up) for column in lines.T]
    parts += [path("".join(thin), "eqw"), path(_moves(xs, index, up), "nav")]
    first, last = math.ceil(years[0]), math.floor(years[-1])
    for year in {first, (first + last) // 2, last}:
        parts.append(label(across(year), _HEIGHT - 6, str(year), "tk", "middle" if year < last - 1 else "end"))
    return frame(name, title, desc, (NARROW, _HEIGHT), parts, "both")


def _moves(xs: Floats, values: Floats, up: Scale) -> str:
    there = np.flatnonzero(np.isfinite(values))
    return drawn(xs[there], [up(math.log10(value)) for value in values[there].tolist()]) if there.size > 1 else ""


def _ticks(low: float, high: float) -> list[float]:
    """Round values on a log axis, 100 among them and at most six.

    >>> _ticks(40, 900), _ticks(0.5, 40000)
    ([50, 100, 200, 500], [1, 10, 100, 1000, 10000])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.2, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        found = [step * 10**decade for decade in decades for step in steps if low <= step * 10**decade <= high]
        if len({*found, 100}) <= 6:
            break
    return sorted({*found, 100})
