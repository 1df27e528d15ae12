"""Calm returns against stressed losses: Sharpe ratio with its interval, deepest fall, and the limit as a region."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import svg

from assaymark.report.charts.canvas import WIDE, Anchor, Scale, both, hatch, label, line, num, path, rect
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import number

# Labels beside their marks, without overlaps: each takes the first of its places that is free.


_LINE = 15.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area that two boxes share.

        >>> Box(0, 0, 2, 2).shared(Box(1, 1, 3, 3)), Box(0, 0, 1, 1).shared(Box(5, 5, 6, 6))
        (1, 0)
        """
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0) * max(down, 0)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a label may stand: the baseline of its first line, and how it is anchored."""

    x: float
    y: float
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Request:
    """The lines of a label and its spots, the best first."""

    lines: tuple[str, ...]
    spots: tuple[Spot, ...]


def placed(requests: Sequence[Request], taken: Sequence[Box], inside: Box) -> list[Spot]:
    """A spot for each request, in order. Where none is free, the one that covers least.

    >>> two = [Request(("ab",), tuple(around(20, 20))) for _ in range(2)]
    >>> a, b = placed(two, [], Box(0, 0, 100, 100))
    >>> (a.x, a.y) != (b.x, b.y)
    True
    """
    boxes = list(taken)
    found = []
    for request in requests:
        best = min(request.spots, key=lambda spot: (_cost(request, spot, boxes, inside), request.spots.index(spot)))
        boxes.append(_box(request, best))
        found.append(best)
    return found


def around(x: float, y: float, gap: float = 11.0, rows: int = 8) -> Iterator[Spot]:
    """Spots about a point: beside it, above and below, then further up and down beside it."""
    yield Spot(x + gap, y + 4, "start")
    yield Spot(x, y - gap, "middle")
    yield Spot(x, y + gap + 9, "middle")
    yield Spot(x - gap, y + 4, "end")
    for step in range(1, rows + 1):
        for turn in (-1, 1):
            yield Spot(x + gap, y + 4 + turn * step * 16, "start")
            yield Spot(x - gap, y + 4 + turn * step * 16, "end")


def _cost(request: Request, spot: Spot, boxes: Sequence[Box], inside: Box) -> float:
    box = _box(request, spot)
    area = (box.right - box.left) * (box.bottom - box.top)
    outside = area - box.shared(inside)
    return sum(box.shared(other) for other in boxes) + 100 * max(outside, 0)


def _box(request: Request, spot: Spot) -> Box:
    width = max(text_width(text, 13) for text in request.lines)
    left = {"start": spot.x, "middle": spot.x - width / 2, "end": spot.x - width}[spot.anchor]
    return Box(left - 2, spot.y - 12, left + width + 2, spot.y + 4 + _LINE * (len(request.lines) - 1))


_LEFT, _TOP, _FOOT = 42.0, 44.0, 46.0


@dataclass(frozen=True, slots=True)
class StressPoint:
    """One model or baseline: its Sharpe ratio with interval, and its deepest fall as a positive share. ``passes`` is
    None where no verdict says whether the limit was kept: it is then drawn without a mark for it."""

    name: str
    sharpe: float
    low: float | None
    high: float | None
    fall: float
    passes: bool | None
    baseline: bool = False


def stress_scatter(
    name: str, points: Sequence[StressPoint], tolerance: float, window: str, title: str, desc: str
) -> tuple[str, str]:
    """The figure for a screen and for a phone."""

    def draw(called: str, width: float) -> tuple[list[svg.Element], float]:
        height = 400.0 if width == WIDE else 440.0
        return _drawn(called, points, tolerance, window, width, height), height

    return both(name, title, desc, draw)


def _drawn(
    name: str, points: Sequence[StressPoint], tolerance: float, window: str, width: float, height: float
) -> list[svg.Element]:
    # Both ends of the axis of Sharpe ratios, and the step of its ticks.
    ends = [end for p in points for end in (p.low, p.high, p.sharpe) if end is not None]
    reach_low, reach_high = min(ends, default=0.0), max(ends, default=1.0)
    pad = max(0.06 * (reach_high - reach_low), 0.1)
    reach = reach_high - reach_low + 2 * pad
    most = 8 if width == WIDE else 5
    step = next((s for s in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0) if reach / s <= most), reach / most)
    low, high = reach_low - pad, reach_high + pad
    # The shallowest and the deepest percent of the axis, and the step of its ticks.
    depths = [100 * tolerance, *(100 * p.fall for p in points)]
    room = max(0.12 * (max(depths) - min(depths)), 1.5)
    top, bottom = max(min(depths) - room, 0.0), max(depths) + room
    depth = next((s for s in (1.0, 2.0, 5.0, 10.0, 20.0) if (bottom - top) / s <= 6), 25.0)
    across, down = Scale(low, high, _LEFT, width - 6), Scale(top, bottom, _TOP, height - _FOOT)
    edge, floor = down(100 * tolerance), height - _FOOT
    parts: list[svg.Element] = [
        hatch(f"{name}-h"),
        label(0, 14, "↑ Shallower", "tk"),
        label(0, 31, fit("Deepest fall under stress, %", width, 12), "tk"),
        rect(_LEFT, edge, width - 6 - _LEFT, floor - edge, "region", f"url(#{name}-h)"),
    ]
    taken: list[Box] = []
    for tick in ticks_of(top, bottom, depth):
        if abs(tick - 100 * tolerance) > depth / 4:
            parts.append(line(_LEFT, down(tick), width - 6, down(tick), "hair"))
            if abs(down(tick) - edge) > 13:
                parts.append(label(_LEFT - 6, down(tick) + 4, number(-tick, 0), "tk", "end"))
    parts += [
        line(_LEFT, edge, width - 6, edge, "gs"),
        label(_LEFT - 6, edge + 4, number(-100 * tolerance, 0), "tb tk", "end"),
        label(width - 8, edge - 8, "passes", "tk halo", "end"),
        label(width - 8, edge + 16, "fails", "tb tk halo", "end"),
        line(_LEFT, floor, width - 6, floor, "axis"),
        label(width - 6, height - 6, f"{fit(f'Sharpe ratio, {window}', width - 60, 12)} →", "tk", "end"),
    ]
    taken += [Box(width - 54, edge - 18, width - 6, edge - 2), Box(width - 54, edge + 4, width - 6, edge + 20)]
    for tick in ticks_of(low, high, step):
        parts.append(label(across(tick), floor + 18, number(tick, 0 if step >= 1 else 1), "tk", "middle"))
        parts.append(line(across(tick), floor, across(tick), floor + 4, "axis"))
    if low < 0 < high:
        parts.append(line(across(0), _TOP, across(0), floor, "hair"))
    parts += _marks(points, across, down, taken, Box(_LEFT, _TOP - 10, width - 6, floor - 2), width)
    return parts


def ticks_of(low: float, high: float, step: float) -> list[float]:
    """Multiples of a step inside a range.

    >>> ticks_of(-1.2, 2.0, 1.0)
    [-1.0, 0.0, 1.0, 2.0]
    """
    return [step * at for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _marks(
    points: Sequence[StressPoint], across: Scale, down: Scale, taken: list[Box], inside: Box, width: float
) -> list[svg.Element]:
    lines: list[svg.Element] = []
    marks: list[svg.Element] = []
    requests = []
    names = shortened([point.name for point in points], width * 0.3, 13)
    for point in points:
        x, y = across(point.sharpe), down(100 * point.fall)
        if point.low is not None and point.high is not None:
            left, right = across(point.low), across(point.high)
            lines.append(line(left, y, right, y, "wsk dash" if point.baseline else "wsk"))
            taken.append(Box(left, y - 1.5, right, y + 1.5))
        # Filled passes; open with a cross fails; a ring alone is undecided. Baselines are diamonds.
        if point.baseline:
            r = 6.5
            kind = "bar1 gap" if point.passes else "open dia"
            mark = [path(f"M{x:.1f} {y - r:.1f}l{r} {r}l-{r} {r}l-{r}-{r}z", kind)]
        else:
            ring = svg.Circle(cx=num(x), cy=num(y), r=6, class_=["mh", "gap"] if point.passes else ["open", "mhs"])
            if point.passes is not False:
                mark = [ring]
            else:
                mark = [ring, path(f"M{x - 2.6:.1f} {y - 2.6:.1f}l5.2 5.2m0-5.2l-5.2 5.2", "mhs")]
        marks += mark
        taken.append(Box(x - 7, y - 7, x + 7, y + 7))
    for point, name in zip(points, names, strict=True):
        requests.append(Request((name,), tuple(_spots(point, across, down))))
    texts: list[svg.Element] = []
    for point, name, spot in zip(points, names, placed(requests, taken, inside), strict=True):
        y = down(100 * point.fall)
        if abs(spot.y - 4 - y) > 14:
            near = across(point.high) if point.high is not None else across(point.sharpe)
            start = near if spot.anchor == "start" else across(point.low if point.low is not None else point.sharpe)
            lines.append(line(start, y, spot.x, spot.y - 4, "hair"))
        texts.append(label(spot.x, spot.y, name, "tk halo" if point.baseline else "tb halo", spot.anchor))
    return [*lines, *marks, *texts]


def _spots(point: StressPoint, across: Scale, down: Scale) -> list[Spot]:
    """Beyond the ends of the whisker, then beside the mark, then further up and down."""
    x, y = across(point.sharpe), down(100 * point.fall)
    right = across(point.high) if point.high is not None else x
    left = across(point.low) if point.low is not None else x
    found = [Spot(right + 8, y + 4, "start"), Spot(left - 8, y + 4, "end")]
    if point.baseline:
        found.reverse()
    found += [
        Spot(x, y - 10, "middle"),
        Spot(x, y + 20, "middle"),
        Spot(x + 14, y - 8, "start"),
        Spot(x - 14, y - 8, "end"),
    ]
    for step in range(1, 9):
        for turn in (-1, 1):
            shift = 4 + turn * step * 14
            found += [Spot(right + 8, y + shift, "start"), Spot(left - 8, y + shift, "end")]
            found += [Spot(x, y + shift + turn * 6, "middle")]
    return found
