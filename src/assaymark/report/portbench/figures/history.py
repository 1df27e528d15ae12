"""Histories as small multiples: net asset value above, fall from the peak below, one panel a model, one scale for all.

There is one history per model, so no band is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import svg
from numpy.typing import NDArray

from assaymark.report.figures.canvas import Scale, frame, label, line, num, path
from assaymark.report.formats import number, percent, text_width

Floats = NDArray[np.float64]

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


def falls(nav: Floats) -> Floats:
    """The fall from the highest value so far, as a share: 0 or negative.

    >>> falls(np.array([1.0, 1.2, 0.9])).round(2).tolist()
    [0.0, 0.0, -0.25]
    """
    return np.asarray(nav / np.maximum.accumulate(nav) - 1.0)


def history_panels(found: HistorySet) -> tuple[str, tuple[str, ...]]:
    """The line of equal weight, once for all panels, and a panel for each model."""
    navs = [one.nav for one in found.histories] + ([] if found.baseline is None else [found.baseline])
    steps = _steps(100 * min(float(nav.min()) for nav in navs), 100 * max(float(nav.max()) for nav in navs))
    up = Scale(steps[0], steps[-1], _NAV[1], _NAV[0])
    deepest = max(*(-float(falls(one.nav).min()) for one in found.histories), found.tolerance)
    down = Scale(0.0, deepest, *_FALL)
    shared = ""
    if found.baseline is not None:
        moves = _moves(found.baseline, 100 * found.baseline, up)
        shared = f'<svg class="sprite" aria-hidden="true"><path id="{found.name}-b" d="{moves}"/></svg>'
    panels = tuple(
        _panel(f"{found.name}-{at}", one, found, steps, (up, down)) for at, one in enumerate(found.histories, 1)
    )
    return shared, panels


def _panel(name: str, one: History, found: HistorySet, steps: Sequence[float], scales: tuple[Scale, Scale]) -> str:
    up, down = scales
    fall = falls(one.nav)
    parts: list[svg.Element] = []
    for step in steps:
        parts.append(line(_LEFT, up(step), _WIDTH, up(step), "axis" if step == 100 else "hair"))
        parts.append(label(_LEFT - 6, up(step) + 4, number(step, 0), "tk", "end"))
    if found.baseline is not None:
        parts.append(svg.Use(href=f"#{found.name}-b", class_=["eqw"]))
    parts.append(path(_moves(one.nav, 100 * one.nav, up), "nav"))
    zero, edge = down(0), down(found.tolerance)
    drawn = _moves(one.nav, -fall, down)
    parts += [
        path(f"M{_LEFT:g} {zero:g}V{num(down(-fall[0]))}{drawn[drawn.index('l') :]}V{zero:g}z", "fall"),
        path(drawn, "nav thin"),
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


def percent_fall(fall: float) -> str:
    """A fall in percent with one decimal.

    >>> percent_fall(-0.0812).replace(chr(160), " "), percent_fall(0.0).replace(chr(160), " ")
    ('−8.1 %', '0.0 %')
    """
    return f"{number(100 * min(fall, 0.0), 1)}\u00a0%"


def _desc(one: History, found: HistorySet) -> str:
    end, deepest = 100 * float(one.nav[-1]), float(falls(one.nav).min())
    said = f"Ends at {number(end, 1)} of 100; deepest fall {percent_fall(deepest)}, limit {percent(found.tolerance)}"
    if found.baseline is not None:
        said += f"; equal weight ends at {number(100 * float(found.baseline[-1]), 1)}"
    return said + "."


def _steps(low: float, high: float) -> tuple[float, ...]:
    """Two to six round values that hold all of 100, the lowest and the highest.

    >>> _steps(88.2, 109.0), _steps(99.5, 100.2)
    ((80.0, 90.0, 100.0, 110.0), (99.0, 100.0, 101.0))
    """
    low, high = min(low, 100.0), max(high, 100.0)
    reach = max(high - low, 1e-6)
    step = next(
        (s for s in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0) if reach / s <= 4), 10.0 ** math.ceil(math.log10(reach))
    )
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(step * at for at in range(first, max(last, first + 1) + 1))


def _moves(nav: Floats, values: Floats, scale: Scale) -> str:
    """A path through values, thinned to what can be seen; the deepest fall is always kept."""
    kept = np.arange(len(nav))
    if len(nav) > _POINTS:
        chosen = {*np.linspace(0, len(nav) - 1, _POINTS).round().astype(int).tolist(), int(falls(nav).argmin())}
        kept = np.array(sorted(chosen))
    xs = _LEFT + kept / max(len(nav) - 1, 1) * (_WIDTH - _LEFT)
    tenths = [(round(10 * float(x)), round(10 * scale(float(values[at])))) for x, at in zip(xs, kept, strict=True)]
    return f"M{_tenth(tenths[0][0])} {_tenth(tenths[0][1])}l{''.join(_relative(tenths))}"


def _relative(tenths: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Moves from point to point, as short as a path can be written."""
    for at in range(1, len(tenths)):
        for place in (0, 1):
            text = _tenth(tenths[at][place] - tenths[at - 1][place])
            first = at == 1 and place == 0
            yield text if first or text.startswith("-") else f" {text}"
    if len(tenths) == 1:
        yield "0 0"


def _tenth(value: int) -> str:
    """A number of tenths without zeros that nobody needs.

    >>> _tenth(-3), _tenth(120), _tenth(15)
    ('-.3', '12', '1.5')
    """
    text = f"{abs(value) / 10:g}"
    return ("-" if value < 0 else "") + (text.removeprefix("0") if text.startswith("0.") else text)
