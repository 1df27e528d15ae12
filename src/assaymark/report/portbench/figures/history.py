"""Histories as small multiples: net asset value above, fall from the peak below, one panel a model, one scale for all.

There is one history per model, so no band is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.report.figures.brush import selection
from assaymark.report.figures.canvas import Scale, frame, label, line, num, path
from assaymark.report.figures.nav_paths import Floats, drawn, falls, percent_fall, steps, thinned
from assaymark.report.formats import number, percent, text_width

_WIDTH, _HEIGHT, _LEFT = 262.0, 176.0, 34.0
_NAV: Final = (8.0, 90.0)
_FALL: Final = (106.0, 158.0)
_POINTS = 150
"""As many points as the eye can tell on a panel of this width."""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Net asset value of one model on each trading day, 1.0 on the first."""

    model: str
    nav: Floats


@dataclass(frozen=True, slots=True, eq=False)
class HistorySet:
    """The histories of one window and profile; ``name`` is unique on its page, ``tolerance`` a positive share."""

    name: str
    histories: tuple[History, ...]
    baseline: Floats | None
    tolerance: float


def history_panels(found: HistorySet) -> tuple[str, tuple[str, ...]]:
    """The line of equal weight, once for all panels, and a panel for each model."""
    navs = [one.nav for one in found.histories] + ([] if found.baseline is None else [found.baseline])
    lines = steps(100 * min(float(nav.min()) for nav in navs), 100 * max(float(nav.max()) for nav in navs))
    up = Scale(lines[0], lines[-1], _NAV[1], _NAV[0])
    deepest = max(*(-float(falls(one.nav).min()) for one in found.histories), found.tolerance)
    down = Scale(0.0, deepest, *_FALL)
    shared = ""
    if found.baseline is not None:
        moves = _moves(found.baseline, 100 * found.baseline, up)
        shared = f'<svg class="sprite" aria-hidden="true"><path id="{found.name}-b" d="{moves}"/></svg>'
    panels = tuple(
        _panel(f"{found.name}-{at}", one, found, lines, (up, down)) for at, one in enumerate(found.histories, 1)
    )
    return shared, panels


def _panel(name: str, one: History, found: HistorySet, lines: Sequence[float], scales: tuple[Scale, Scale]) -> str:
    up, down = scales
    fall = falls(one.nav)
    parts: list[svg.Element] = [selection(_LEFT, _WIDTH, _WIDTH, _NAV[0], _FALL[1])]
    for step in lines:
        parts.append(line(_LEFT, up(step), _WIDTH, up(step), "axis" if step == 100 else "hair"))
        parts.append(label(_LEFT - 6, up(step) + 4, number(step, 0), "tk", "end"))
    if found.baseline is not None:
        parts.append(svg.Use(href=f"#{found.name}-b", class_=["eqw"]))
    parts.append(path(_moves(one.nav, 100 * one.nav, up), "nav"))
    zero, edge = down(0), down(found.tolerance)
    moves = _moves(one.nav, -fall, down)
    parts += [
        path(f"M{_LEFT:g} {zero:g}V{num(down(-fall[0]))}{moves[moves.index('l') :]}V{zero:g}z", "fall"),
        path(moves, "nav thin"),
        line(_LEFT, zero, _WIDTH, zero, "axis"),
        line(_LEFT, edge, _WIDTH, edge, "gd"),
        label(_LEFT - 6, zero + 4, "0", "tk", "end"),
        label(_LEFT - 6, edge + 4, number(-100 * found.tolerance, 0), "tb tk", "end"),
        _deepest(fall, down, edge),
    ]
    title = f"{one.model}: net asset value and fall from the peak"
    return frame(name, title, _desc(one, found), (_WIDTH, _HEIGHT), parts, "both")


def _deepest(fall: Floats, down: Scale, edge: float) -> svg.Element:
    """The number below the deepest point, and below the limit where it would stand on its line."""
    at = int(fall.argmin())
    text = percent_fall(float(fall[at]))
    x = _LEFT + at / max(len(fall) - 1, 1) * (_WIDTH - _LEFT)
    half = text_width(text, 12) / 2
    y = down(-float(fall[at])) + 14
    if edge - 3 < y < edge + 14:
        y = edge + 14
    return label(min(max(x, _LEFT + half + 4), _WIDTH - half), y, text, "tb tk halo", "middle")


def _desc(one: History, found: HistorySet) -> str:
    end, deepest = 100 * float(one.nav[-1]), float(falls(one.nav).min())
    said = f"Ends at {number(end, 1)} of 100; deepest fall {percent_fall(deepest)}, limit {percent(found.tolerance)}"
    if found.baseline is not None:
        said += f"; equal weight ends at {number(100 * float(found.baseline[-1]), 1)}"
    return said + "."


def _moves(nav: Floats, values: Floats, scale: Scale) -> str:
    """A path through values, thinned to what can be seen."""
    kept = thinned(nav, _POINTS)
    xs = _LEFT + kept / max(len(nav) - 1, 1) * (_WIDTH - _LEFT)
    return drawn(xs, [scale(float(values[at])) for at in kept])
