"""One net asset value against baselines, and the fall from the peak below: start = 100, names at the line ends.

There is one path per line, so no band is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import svg

from assaymark.report.figures.brush import selection
from assaymark.report.figures.canvas import NARROW, WIDE, Scale, apart, frame, label, line, num, path
from assaymark.report.figures.nav_paths import Floats, drawn, falls, steps, thinned
from assaymark.report.formats import fit, shortened, text_width

Role = Literal["own", "first", "other"]
"""Whose line it is: the one that the figure is about, the baseline it is held against first, or another baseline."""

_LINE: Final = 17.0
_OTHERS: Final = ("nvo dash", "nvo dots2", "nvo dash2")


@dataclass(frozen=True, slots=True, eq=False)
class NavLine:
    """Net asset value from the start (its first entry) to the last day, in any unit; ``end`` is said beside it."""

    name: str
    nav: Floats
    end: str
    role: Role


@dataclass(frozen=True, slots=True)
class NavWords:
    """What the figure says beside the lines' own names; ``ticks`` sets the numbers of the axes."""

    start: str
    fall: str
    deepest: str
    ticks: Callable[[float], str]


@dataclass(frozen=True, slots=True, eq=False)
class NavChart:
    """Lines of one length, the one that the figure is about among them; ``name`` is unique on its page."""

    name: str
    lines: tuple[NavLine, ...]
    words: NavWords

    @property
    def days(self) -> int:
        """Days after the start."""
        return len(self.lines[0].nav) - 1

    @property
    def fallen(self) -> tuple[NavLine, ...]:
        """The lines whose falls are drawn, the one that the figure is about last."""
        order = ("first", "own")
        return tuple(sorted((one for one in self.lines if one.role in order), key=lambda one: order.index(one.role)))


@dataclass(frozen=True, slots=True)
class _Box:
    """Where things stand: the axis of days, both panels, how many points a line has, and room for names."""

    left: float
    right: float
    width: float
    nav: tuple[float, float]
    fall: tuple[float, float]
    points: int

    @property
    def room(self) -> float:
        """For the words at the right."""
        return self.width - self.right - 14


_WIDE_BOX: Final = _Box(36.0, 914.0, WIDE, (14.0, 236.0), (268.0, 348.0), 280)
_NARROW_BOX: Final = _Box(34.0, 214.0, NARROW, (14.0, 176.0), (208.0, 268.0), 150)


def nav_figure(chart: NavChart, title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone."""
    return (
        frame(f"{chart.name}-w", title, desc, (WIDE, 376.0), _drawn(chart, _WIDE_BOX), "wide"),
        frame(f"{chart.name}-n", title, desc, (NARROW, 296.0), _drawn(chart, _NARROW_BOX), "narrow"),
    )


def _drawn(chart: NavChart, box: _Box) -> list[svg.Element]:
    chosen = selection(box.left, box.right, box.width, box.nav[0], box.fall[1])
    return [chosen, *_values(chart, box), *_falls(chart, box), *_days(chart, box)]


# --- the upper panel --------------------------------------------------------------------------------------------------


def _values(chart: NavChart, box: _Box) -> list[svg.Element]:
    navs = [100 * one.nav / one.nav[0] for one in chart.lines]
    marks = steps(min(float(nav.min()) for nav in navs), max(float(nav.max()) for nav in navs), most=6)
    up = Scale(marks[0], marks[-1], box.nav[1], box.nav[0])
    found: list[svg.Element] = []
    for mark in marks:
        found.append(line(box.left, up(mark), box.right, up(mark), "axis" if mark == 100 else "hair"))
        found.append(label(box.left - 6, up(mark) + 4, chart.words.ticks(mark), "tk", "end"))
    styles = _styles(chart.lines)
    # The line that the figure is about is drawn last, on top of the others.
    for at in sorted(range(len(navs)), key=lambda k: chart.lines[k].role == "own"):
        found.append(path(_moves(chart.lines[at].nav, navs[at], up, box), styles[at]))
    return [*found, *_ends(chart, [up(float(nav[-1])) for nav in navs], box)]


def _styles(lines: Sequence[NavLine]) -> list[str]:
    """A class for each line; baselines beyond the first differ in their dashes."""
    found, others = [], 0
    for one in lines:
        if one.role == "other":
            found.append(_OTHERS[others % len(_OTHERS)])
            others += 1
        else:
            found.append("nav" if one.role == "own" else "nv1")
    return found


def _ends(chart: NavChart, heights: Sequence[float], box: _Box) -> list[svg.Element]:
    """Names and returns at the line ends, moved apart, with a hairline to what they name.

    Where a name does not fit beside its return it stands above it, as long as there is room for all of them.
    """
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    bottom = box.nav[1] + _LINE / 2
    wide = any(text_width(f"{one.name} {one.end}", 13) > box.room - 6 for one in chart.lines)
    two = wide and 2 * _LINE * len(order) <= bottom
    places = apart([heights[k] for k in order], [_LINE * (1 + two)] * len(order), bottom)
    beside = 0.0 if two else max(text_width(f" {one.end}", 13) for one in chart.lines)
    # An ellipsis is wider than other characters are taken to be.
    names = shortened([one.name for one in chart.lines], box.room - beside - 6, 13)
    found: list[svg.Element] = []
    for k, y in zip(order, places, strict=True):
        one = chart.lines[k]
        kind = {"own": "tb th", "first": "tb", "other": "t2"}[one.role]
        if abs(y - heights[k]) > 2:
            found.append(path(f"M{num(box.right + 1)} {num(heights[k])}L{num(box.right + 11)} {num(y)}", "hair lead"))
        if two:
            found.append(label(box.right + 14, y - 3, names[k], kind))
            found.append(label(box.right + 14, y + 12, one.end, kind))
        else:
            found.append(label(box.right + 14, y + 4.5, f"{names[k]} {one.end}", kind))
    return found


# --- the lower panel --------------------------------------------------------------------------------------------------


def fall_steps(deepest: float) -> tuple[float, ...]:
    """Two or three round falls in percent that hold the deepest, from 0.

    >>> fall_steps(4.3), fall_steps(0.0), fall_steps(61)
    ((0.0, 4.0, 8.0), (0.0, 1.0), (0.0, 40.0, 80.0))
    """
    step = next((s for s in (1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 40.0, 50.0) if deepest <= 2 * s), 100.0)
    return (0.0, step) if deepest <= step else (0.0, step, 2 * step)


def _falls(chart: NavChart, box: _Box) -> list[svg.Element]:
    lines = chart.fallen
    fallen = [-100 * falls(one.nav) for one in lines]
    marks = fall_steps(max(float(fall.max()) for fall in fallen))
    down = Scale(0.0, marks[-1], *box.fall)
    found: list[svg.Element] = [label(box.left, box.fall[0] - 8, chart.words.fall, "tk")]
    for mark in marks:
        found.append(line(box.left, down(mark), box.right, down(mark), "hair"))
        found.append(label(box.left - 6, down(mark) + 4, chart.words.ticks(-mark), "tk", "end"))
    own = lines[-1]
    moves = _moves(own.nav, fallen[-1], down, box)
    zero = num(down(0))
    found.append(path(f"M{num(box.left)} {zero}{moves[moves.index('l') :]}V{zero}z", "fall"))
    found += [path(_moves(one.nav, fall, down, box), "nv1 thin") for one, fall in zip(lines, fallen, strict=True)][:-1]
    found += [path(moves, "nav thin"), line(box.left, down(0), box.right, down(0), "axis")]
    at = int(fallen[-1].argmax())
    x, y = box.left + at / max(chart.days, 1) * (box.right - box.left), down(float(fallen[-1][at]))
    found.append(svg.Circle(cx=num(x), cy=num(y), r=3, class_=["mh"]))
    beside = min(max(y, box.fall[0] + 8), box.fall[1])
    found.append(label(box.right + 14, beside + 4.5, fit(chart.words.deepest, box.room, 13), "tb th"))
    return found


# --- days -------------------------------------------------------------------------------------------------------------


def day_ticks(days: int) -> tuple[int, ...]:
    """The start, some round days and the last one.

    >>> day_ticks(61), day_ticks(1), day_ticks(250)
    ((0, 20, 40, 61), (0, 1), (0, 50, 100, 150, 200, 250))
    """
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if days / s <= 5), max(days // 4, 1))
    between = [day for day in range(step, days, step) if days - day > 0.6 * step]
    return (0, *between, days) if days else (0,)


def _days(chart: NavChart, box: _Box) -> list[svg.Element]:
    found: list[svg.Element] = []
    taken = box.left + text_width(chart.words.start, 12) + 8
    for day in day_ticks(chart.days):
        x = box.left + day / max(chart.days, 1) * (box.right - box.left)
        found.append(line(x, box.fall[1], x, box.fall[1] + 4, "axis"))
        text = chart.words.ticks(day) if day else chart.words.start
        if day and x - text_width(text, 12) / 2 < taken:
            continue
        found.append(label(x, box.fall[1] + 20, text, "tk", "middle" if day else "start"))
    return found


def _moves(nav: Floats, values: Floats, scale: Scale, box: _Box) -> str:
    """A path through values on the axis of days, thinned to what can be seen."""
    kept = thinned(nav, box.points)
    xs = box.left + kept / max(len(nav) - 1, 1) * (box.right - box.left)
    return drawn(xs, np.array([scale(float(values[at])) for at in kept]))
