"""A stretch of days read off a figure of paths: what the script ``brush.js`` is told.

The script reads returns and falls from these numbers and never from pixels. They are the values themselves to seven
digits, and it says a tenth of a percent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.figures.canvas import rect
from assaymark.report.figures.nav_paths import Floats

_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Brush:
    """Paths on one axis of days: the day of each value as it is read, and every line's name with its values.

    ``lines`` are in seven digits, the point left out: only their ratios are read.
    """

    days: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]

    @property
    def last(self) -> int:
        """The number of the last day; the first is 0."""
        return len(self.days) - 1

    @property
    def joined(self) -> str:
        """The days as one text, with bars between them."""
        return "|".join(day.replace("|", "/") for day in self.days)


def brush_of(days: Sequence[str], lines: Sequence[tuple[str, Floats]]) -> Brush | None:
    """What can be brushed, or None where a path has fewer than two days.

    Every path has a value for each day and stays above zero.

    >>> import numpy as np
    >>> brush_of(["start", "1 May"], [("Alder", np.array([100.0, 98.5]))])
    Brush(days=('start', '1 May'), lines=(('Alder', '1000000 985000'),))
    """
    if len(days) < 2 or not all(len(nav) == len(days) and float(nav.min()) > 0 for _, nav in lines):
        return None
    return Brush(tuple(days), tuple((name, _whole(nav)) for name, nav in lines))


def _whole(nav: Floats) -> str:
    """Values as whole numbers, the largest with seven digits."""
    unit = 10.0 ** (_DIGITS - len(str(int(nav.max())))) if nav.max() >= 1 else 10.0**_DIGITS
    return " ".join(str(round(float(value) * unit)) for value in nav)


def selection(left: float, right: float, width: float, top: float, bottom: float) -> svg.Rect:
    """The mark of a chosen stretch, empty until the script widens it; it carries where the days lie, in percent."""
    found = rect(0, top, 0, bottom - top, "sel")
    found.extra = {"data-x": f"{100 * left / width:.3f} {100 * (right - left) / width:.3f}"}
    return found
