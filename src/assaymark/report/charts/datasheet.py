"""Figures of judges: stacked pair counts, values on one axis, ladder curves, maps, and two operating points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import Box, Drawn, Element, Scale, Spot, judge_marks, label, line, num, path, rect
from assaymark.report.charts.intervals import AxisRow
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import count, percent

# Markers of judges differ in shape and hue, pair classes in pattern and grey, so that no colour is needed.

Ends = tuple[float, float] | None
Shape = Literal["circle", "square", "triangle", "diamond", "wedge"]
_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "diamond", "wedge")
_HUES: Final = ("k2", "k3", "k4")

PARTS: Final = (
    ("stable", "stable", "grey"), ("positional", "positional", "solid"), ("one_sided", "one-sided", "lines"),
    ("other_pairs", "other", "cross"), ("no_preference", "no preference", "empty"),
)  # fmt: skip
"""The classes of pairs: suffix of the measurement name, word, and fill."""


def marker_style(at: int) -> tuple[Shape, str]:
    """Shape and hue of the judge at an index; only the first, which the page is about, has hue ``k1``."""
    return _SHAPES[at % len(_SHAPES)], _HUES[(at - 1) % len(_HUES)] if at else "k1"


def mark(x: float, y: float, at: int, size: float = 6.0, empty: bool = False) -> Element:
    """The marker of a judge, with a thin gap around it that separates markers; an empty one is only outlined."""
    shape, hue = marker_style(at)
    kind = f"open {hue}l" if empty else f"{hue} gap"
    if shape == "circle":
        return c.circle(x, y, num(size), kind)
    if shape == "square":
        r = size * 0.9
        return path(f"M{x - r:.1f} {y - r:.1f}h{2 * r:.1f}v{2 * r:.1f}h{-2 * r:.1f}z", kind)
    if shape == "diamond":
        r = size * 1.25
        return path(f"M{x:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f} {r:.1f}l{-r:.1f} {-r:.1f}z", kind)
    r = size * 1.1 if shape == "triangle" else -size * 1.1
    return path(f"M{x:.1f} {y - r:.1f}l{r:.1f} {1.8 * r:.1f}h{-2 * r:.1f}z", kind)


# --- outcomes of pairs shown in both orders: one stacked bar per judge, in greys and patterns, with pair counts -------


StackRow = tuple[str, tuple[int, ...], str, int]
"""A judge: its name, its pairs by class in the order of `PARTS`, the words above its bar, and its index."""


def stacks(rows: Sequence[StackRow], name: str, width: float, *, focus: bool = False) -> Drawn:
    """One stacked bar of all pairs per judge. With ``focus`` the page is about the first."""

    def block(x: float, y: float, wide: float, height: float, fill: str) -> Element:
        hatched = fill in ("lines", "cross")
        kind = "pb" if hatched else f"pb p-{fill}"
        return rect(x, y, wide, height, kind, f"url(#{name}-{fill})" if hatched else None)

    patterns = [c.stripes(f"{name}-lines", "pl", 5), c.stripes(f"{name}-cross", "pl", 5, 2)]
    parts, x, y = list[Element]([c.element("defs", patterns)]), 0.0, 0.0
    for _, word, fill in PARTS:  # the legend, on as many lines as it needs
        room = 18 + text_width(word, 12) + 12
        if x + room - 12 > width:
            x, y = 0.0, y + 20
        parts += [block(x + 0.5, y + 4.5, 12, 11, fill), label(x + 18, y + 14, word, "tk")]
        x += room
    y += 30
    room = width - max((text_width(head, 12) for _, _, head, _ in rows), default=0.0) - 12
    for (_, pairs, head, place), title in zip(rows, shortened([row[0] for row in rows], room, 13), strict=True):
        bar, counts, x = list[Element](), list[tuple[float, str]](), 0.5
        for (_, _, fill), n in zip(PARTS, pairs, strict=True):
            if n:
                size = (width - 1) * n / sum(pairs)
                bar.append(block(x, y + 20, size, 28.0, fill))
                counts.append((x + size / 2, count(n)))
                x += size
        centres = c.spread_labels([at for at, _ in counts], [text_width(text, 12) + 6 for _, text in counts], width)
        bar += [label(at, y + 63, text, "tk", "middle") for at, (_, text) in zip(centres, counts, strict=True)]
        strong = "k1t" if focus and not place else "tb"
        columns = [label(0, y + 14, title, strong), label(width, y + 14, head, "tk", "end")]
        parts += judge_marks(place, [*columns, *bar])
        y += 68.0
    return parts, y + 4


# --- values with their intervals, one below the other on one axis: shares, scores, slopes and differences -------------


def dots(rows: Sequence[AxisRow], _: str, width: float, *, shares: bool = False, against: float | None = None) -> Drawn:
    """Rows of values on one axis: title and numbers above (on two lines if needed), a marker below, and a reference
    line at ``against``. A row without a value shows the reason."""
    first, last, step = value_axis(rows, shares, against)
    scale, parts, y = Scale(first * step, last * step, 8, width - 8), list[Element](), 0.0
    for row in rows:
        parts.append(label(0, y + 14, fit(row.title, width, 13)))
        if text_width(row.title, 13) + text_width(row.shown, 12) + 12 > width:
            y += 17.0
        parts.append(label(width, y + 14, fit(row.shown, width, 12), "tk", "end"))
        middle = y + 28
        if row.value is None:
            parts.append(rect(scale.left, middle - 7, scale.right - scale.left, 14, "void"))
        else:
            parts.append(line(scale.left, middle, scale.right, middle, "hair"))
            if against is not None:
                parts.append(line(scale(against), middle - 9, scale(against), middle + 9, "gs"))
            if row.bounds:
                parts.append(line(scale(row.bounds[0]), middle, scale(row.bounds[1]), middle, "k1b"))
            parts.append(mark(scale(row.value), middle, 0, 5.5, row.mark == "mn"))
        y += 46.0
    ticks = [(at, percent(at) if shares else text) for at, text in c.tick_labels(first, last, step)]
    return [*parts, *c.axis(scale, y - 2, ticks, width)], y + 24


def value_axis(rows: Sequence[AxisRow], shares: bool = False, against: float | None = None) -> tuple[int, int, float]:
    """The first and the last step of an axis, and the step size: it holds every interval. An axis of shares runs from 0
    to the next tenth, any other between round ends that include ``against``.

    >>> value_axis([AxisRow("a", "", value=0.12, bounds=(0.08, 0.19))], shares=True)
    (0, 4, 0.05)
    >>> value_axis([AxisRow("a", "", value=1.0, bounds=(1.0, 1.0))])
    (49, 51, 0.02)
    """
    ends = [end for row in rows for end in (*(row.bounds or ()), *(() if row.value is None else (row.value,)))]
    if shares:
        high = min(1.0, max(0.2, math.ceil(max(ends, default=1.0) * 10 - 1e-9) / 10))
        high = high if high <= 0.5 else 1.0
        step = 0.05 if high <= 0.2 else 0.1 if high <= 0.5 else 0.25
        return 0, round(high / step), step
    ends += [] if against is None else [against]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    step = c.step_size(max(high - low, 0.1), (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0), 6)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # Not empty even if all rows have the same value.
    return (first, last, step) if first < last else (first - 1, last + 1, step)


# --- the ladder: the share of calls that pick the better text at each step --------------------------------------------


TARGET: Final = 0.75
BARRED: Final = 3
"""Maximum number of judges for which all intervals are drawn; with more, only those of the first."""
_TOP, _FOOT = 54.0, 44.0
_OFFSETS: Final = (0.0, -5.0, 5.0, -8.0, 8.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's curve: the share of calls that pick the better text at each step, as (step, share, interval)."""

    name: str
    points: tuple[tuple[float, float, Ends], ...]
    at: int
    # Its threshold, if drawn: value, interval, the side on which it is censored, and its words.
    foot: tuple[float, Ends, Literal["left", "right"] | None, str] | None = None


def curves(lines: Sequence[Curve], _: str, width: float) -> Drawn:
    """All judges on one pair of axes. The first is drawn bold; the others thin, dashed and slightly offset."""
    deltas, height = {delta for curve in lines for delta, *_ in curve.points}, 330.0
    across, up = Scale(0, max(deltas, default=5.0), 44, width - 18), Scale(0, 1, height - _FOOT, _TOP)
    floor = height - _FOOT
    parts: list[Element] = [label(0, 16, "↑ Calls that pick the better text (ties count as misses)", "tk")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        kind = "axis" if share == 0 else "gd" if share == TARGET else "hair"
        parts.append(line(44, up(share), width - 10, up(share), kind))
        parts.append(label(38, up(share) + 4, f"{100 * share:.0f} %", "tb12" if share == TARGET else "tk", "end"))
    for step in sorted({0.0, *deltas}):
        parts.append(line(across(step), floor, across(step), floor + 5, "axis"))
        parts.append(label(across(step), floor + 19, "½" if step == 0.5 else f"{step:g}", "tk", "middle"))
    parts.append(label(width - 10, height - 8, "Requirements the better text has and the other lacks →", "tk", "end"))
    occupied = [Box(44, up(TARGET) - 2, width, up(TARGET) + 2)]
    for curve in lines:
        if not curve.foot:
            continue
        # The line from the 75 % level to the axis, the interval on the axis, and the words above it.
        value, ends, censored, words = curve.foot
        hue, x, foot, size = marker_style(curve.at)[1], across(value), list[Element](), text_width(words, 13)
        if ends:
            foot.append(rect(across(ends[0]), floor - 6, across(ends[1]) - across(ends[0]), 6, f"{hue}f"))
        if censored != "right":
            foot.append(line(x, up(TARGET), x, floor, f"{hue}l"))
        if censored:
            turn = -1 if censored == "left" else 1
            start = x if turn < 0 else x - 14
            arrow = f"M{start:.1f} {floor - 9:.1f}h{turn * 14}m{-turn * 5} -4l{turn * 5} 4l{-turn * 5} 4"
            foot.append(path(arrow, f"{hue}l"))
        fits = x + 10 + size < across.right + 10
        at = x + 10 if fits else x - 10
        foot.append(label(at, floor - 14, words, f"{hue}t halo", "start" if fits else "end"))
        occupied.append(Box(at - size * (not fits), floor - 26, at + size * fits, floor - 10))
        parts += judge_marks(curve.at, foot)
    for curve in reversed(lines):
        drawn = _curve(curve, across, up, curve is lines[0], len(lines) <= BARRED, occupied)
        parts += judge_marks(curve.at, drawn)
    shown = [curve for curve in lines if curve.points]
    if len(shown) < 2:  # a single curve needs no name
        return parts, height
    names, requests = shortened([curve.name for curve in shown], width * 0.34, 13), list[c.Request]()
    for curve, name in zip(shown, names, strict=True):
        spots: list[Spot] = []
        for dy in (0.0, 16.0, 32.0):
            for delta, share, _ends in curve.points[1:-1] or curve.points:
                x, y = across(delta), up(share)
                spots += [(x + 10, y + 17 + dy, "start"), (x, y - 12 - dy, "middle"), (x, y + 21 + dy, "middle"),
                          (x - 10, y - 6 - dy, "end")]  # fmt: skip
        requests.append(((name,), spots))
    places = c.place_labels(requests, occupied, Box(44, _TOP - 28, width, up(0) - 22))
    for curve, name, (x, y, anchor) in zip(shown, names, places, strict=True):
        parts += judge_marks(curve.at, [label(x, y, name, f"{marker_style(curve.at)[1]}t halo", anchor)])
    return parts, height


def small_curve(curve: Curve, width: float, height: float) -> list[Element]:
    """One judge in a grid of judges: its curve with intervals and markers, and the 75 % line."""
    across, up, parts = Scale(0, 5, 30, width - 8), Scale(0, 1, height - 22, 8), list[Element]()
    for share, text, kind in ((0, "0", "axis"), (TARGET, "75", "gd"), (1, "100", "hair")):
        parts += [line(30, up(share), width - 8, up(share), kind), label(26, up(share) + 4, text, "tk", "end")]
    parts += [label(across(step), height - 6, str(step), "tk", "middle") for step in range(1, 6)]
    return [*parts, *_curve(curve, across, up, strong=True, bars=True, occupied=[])]


def _curve(
    curve: Curve, across: Scale, up: Scale, strong: bool, bars: bool, occupied: list[Box]
) -> list[Element]:  # fmt: skip
    hue, shift = marker_style(curve.at)[1], 0.0 if strong else _OFFSETS[curve.at % len(_OFFSETS)]
    spots = [(across(delta) + shift, up(share)) for delta, share, _ in curve.points]
    parts: list[Element] = []
    if len(spots) > 1:
        parts.append(path("M" + "L".join(f"{num(x)} {num(y)}" for x, y in spots), f"{hue}c" if strong else f"{hue}d"))
    for (x, y), (_, _, ends) in zip(spots, curve.points, strict=True):
        if ends and (strong or bars):
            parts.append(line(x, up(ends[1]), x, up(ends[0]), f"{hue}l" if strong else f"{hue}h"))
            occupied.append(Box(x - 2, up(ends[1]), x + 2, up(ends[0])))
        parts.append(mark(x, y, curve.at, 5.5 if strong else 4.0))
        occupied.append(Box(x - 6, y - 6, x + 6, y + 6))
    for (x1, y1), (x2, y2) in pairwise(spots):
        for k in range(1, 8):  # a line occupies small pieces, not its bounding box
            x, y = x1 + (x2 - x1) * k / 8, y1 + (y2 - y1) * k / 8
            occupied.append(Box(x - 4, y - 3, x + 4, y + 3))
    return parts


# --- two shares on two axes with crosses of intervals, and two operating points of one judge, joined (not an ROC curve)


_TOP_MAP: Final = 34.0


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A judge or a prompt on a map: two shares in [0, 1] with intervals, its index, and a second line of its label."""

    name: str
    x: float
    y: float
    ends_x: Ends
    ends_y: Ends
    at: int = 0
    note: str = ""


Arms = tuple[float, float, Ends, Ends]
"""The pixel position of a point, and the ends of its intervals in both directions."""


def _arms(point: MapPoint, across: Scale, up: Scale) -> Arms:
    ends_x = (across(point.ends_x[0]), across(point.ends_x[1])) if point.ends_x else None
    ends_y = (up(point.ends_y[1]), up(point.ends_y[0])) if point.ends_y else None
    return across(point.x), up(point.y), ends_x, ends_y


def _cross(arms: Arms, kind: str, occupied: list[Box]) -> list[Element]:
    """The intervals of a point in both directions, without caps; their boxes are added to ``occupied``."""
    (x, y, ends_x, ends_y), elements = arms, list[Element]()
    if ends_x:
        elements.append(line(ends_x[0], y, ends_x[1], y, kind))
        occupied.append(Box(ends_x[0], y - 2, ends_x[1], y + 2))
    if ends_y:
        elements.append(line(x, ends_y[0], x, ends_y[1], kind))
        occupied.append(Box(x - 2, ends_y[0], x + 2, ends_y[1]))
    return elements


def share_map(
    points: Sequence[MapPoint], titles: tuple[str, str], _: str, width: float, *, height: float = 320.0
) -> Drawn:
    """All judges on two axes from 0 with the same scale; ``titles`` are the axis titles."""
    # The end of both axes: every interval fits.
    ends = [end for p in points for pair in (p.ends_x, p.ends_y) if pair for end in pair]
    most = max([0.2, *(p.x for p in points), *(p.y for p in points), *ends])
    top = min(1.0, math.ceil(most * 10 - 1e-9) / 10) if most <= 0.5 else min(1.0, math.ceil(most * 5 - 1e-9) / 5)
    step = 0.1 if top <= 0.5 else 0.2
    across, up = Scale(0, top, 38, width - 14), Scale(0, top, height - _FOOT, _TOP_MAP)
    parts: list[Element] = [label(0, 16, f"↑ {fit(titles[1], width - 20, 12)}", "tk")]
    for k in range(round(top / step) + 1):
        x, y, text = across(k * step), up(k * step), f"{k * step:.1f}".replace("0.0", "0").replace("1.0", "1")
        parts.append(line(38, y, width - 14, y, "hair" if k else "axis"))
        parts += [label(32, y + 4, text, "tk", "end"), label(x, height - _FOOT + 18, text, "tk", "middle")]
    parts.append(label(width - 14, height - 8, f"{fit(titles[0], width - 40, 12)} →", "tk", "end"))
    crosses, marks, occupied = list[Element](), list[Element](), list[Box]()
    for point in reversed(points):  # the judge of the page is drawn last, on top
        arms = _arms(point, across, up)
        x, y = arms[:2]
        occupied.append(Box(x - 7, y - 7, x + 7, y + 7))
        crosses += judge_marks(point.at, _cross(arms, f"{marker_style(point.at)[1]}l", occupied))
        marks += judge_marks(point.at, [mark(x, y, point.at)])
    names, requests = shortened([point.name for point in points], width * 0.42, 13), list[c.Request]()
    for point, name in zip(points, names, strict=True):
        # Around the mark, beyond the ends of the cross, and just above and below its arms.
        x, y, ends_x, ends_y = _arms(point, across, up)
        spots: list[Spot] = [*c.spots_around(x, y)]
        spots += [(ends_x[1] + 6, y + 4, "start")] if ends_x else []
        spots += [(x, ends_y[0] - 6, "middle")] if ends_y else []
        spots += [(x + 9, y - 8, "start"), (x + 9, y + 17, "start"), (x - 9, y - 8, "end")]
        requests.append(((name, point.note) if point.note else (name,), spots))
    parts += [*crosses, *marks]
    places = c.place_labels(requests, occupied, Box(30, _TOP_MAP - 14, width, up(0) - 2))
    for point, name, (right, below, anchor) in zip(points, names, places, strict=True):
        x, y, texts = across(point.x), up(point.y), list[Element]()
        if abs(below - 4 - y) > 30 or abs(right - x) > max(60.0, text_width(name, 13)):
            away = 9.0 / math.hypot(right - x, below - 4 - y)  # a leader begins beside its mark, not on it
            texts.append(line(x + away * (right - x), y + away * (below - 4 - y), right, below - 4, "hair"))
        texts.append(label(right, below, name, f"{marker_style(point.at)[1]}t halo", anchor))
        if point.note:
            texts.append(label(right, below + 15, point.note, "tk halo", anchor))
        parts += judge_marks(point.at, texts)
    return parts, height


def segment(base: MapPoint, strict: MapPoint, _: str, width: float) -> Drawn:
    """From the base prompt (filled) to the strict one (empty), both with their intervals."""
    height = 320.0
    xs = [end for p in (base, strict) for end in (p.x, *(p.ends_x or ()))]
    ys = [end for p in (base, strict) for end in (p.y, *(p.ends_y or ()))]
    right = min(1.0, max(0.2, math.ceil(max(xs) * 10 - 1e-9) / 10))
    right = right if right <= 0.6 else math.ceil(right * 5 - 1e-9) / 5
    low = round(min(0.8, max(0.0, math.floor(min(ys) * 5 + 1e-9) / 5)) * 5)
    across, up, floor = Scale(0, right, 44, width - 24), Scale(low / 5, 1, height - _FOOT, _TOP_MAP), height - _FOOT
    parts: list[Element] = [label(0, 16, "↑ Picks the better text, one requirement apart", "tk")]
    rungs = [(k / 5, f"{20 * k} %", "hair" if k > low else "axis") for k in range(low, 6)]
    parts += c.grid_lines(up, 44, width - 14, rungs)
    step = 0.1 if right <= 0.6 else 0.2
    for k in range(round(right / step) + 1):
        x = across(k * step)
        parts += [line(x, floor, x, floor + 5, "axis"),
                  label(x, floor + 19, f"{100 * k * step:.0f} %", "tk", "middle")]  # fmt: skip
    head = fit("False preference between equal texts", width - 60, 12)
    parts.append(label(width - 14, height - 8, f"{head} →", "tk", "end"))
    (x1, y1), (x2, y2) = spots = [(across(p.x), up(p.y)) for p in (base, strict)]
    occupied = [Box(x - 8, y - 8, x + 8, y + 8) for x, y in spots]
    parts += _arrow(spots[0], spots[1])
    for k in range(1, 10):
        x, y = x1 + (x2 - x1) * k / 10, y1 + (y2 - y1) * k / 10
        occupied.append(Box(x - 5, y - 5, x + 5, y + 5))
    for point in (base, strict):
        parts += _cross(_arms(point, across, up), f"{marker_style(0)[1]}l", occupied)
    parts += [mark(x, y, 0, 6.5, empty=k == 1) for k, (x, y) in enumerate(spots)]
    texts, requests = [(p.name, f"{percent(p.x)} and {percent(p.y)}") for p in (base, strict)], list[c.Request]()
    for lines, (x, y) in zip(texts, spots, strict=True):
        requests.append((lines, ((x + 10, y - 22, "start"), (x + 10, y + 18, "start"), *c.spots_around(x, y))))
    places = c.place_labels(requests, occupied, Box(46, _TOP_MAP - 14, width, up(up.low) - 2))
    for (name, numbers), (x, y, anchor) in zip(texts, places, strict=True):
        parts += [label(x, y, name, "tb halo", anchor), label(x, y + 15, numbers, "tk halo", anchor)]
    return parts, height


def small_segment(base: MapPoint, strict: MapPoint, at: int, width: float, height: float) -> list[Element]:
    """The same for a grid of judges: both axes from 0 to 100 %."""
    across, up, parts = Scale(0, 1, 30, width - 8), Scale(0, 1, height - 22, 8), list[Element]()
    for share in (0, 0.5, 1):
        text = f"{100 * share:.0f}"
        parts.append(line(30, up(share), width - 8, up(share), "hair" if share else "axis"))
        parts.append(label(26, up(share) + 4, text, "tk", "end"))
        parts.append(label(across(share), height - 6, text, "tk", "end" if share == 1 else "middle"))
    spots = [(across(p.x), up(p.y)) for p in (base, strict)]
    parts += _arrow(spots[0], spots[1])
    for k, (point, (x, y)) in enumerate(zip((base, strict), spots, strict=True)):
        parts += [*_cross(_arms(point, across, up), f"{marker_style(at)[1]}h", []), mark(x, y, at, 5.0, empty=k == 1)]
    return parts


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> list[Element]:
    """A line with its arrowhead in the middle, where no marker hides it; no head or no line for close points."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    if length < 24:
        return [line(x1, y1, x2, y2, "gs")] if length > 0.5 else []
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    x, y = (x1 + x2) / 2 + 5 * ux, (y1 + y2) / 2 + 5 * uy
    left, right = (x - 9 * ux - 5 * uy, y - 9 * uy + 5 * ux), (x - 9 * ux + 5 * uy, y - 9 * uy - 5 * ux)
    head = f"M{x:.1f} {y:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z"
    return [line(x1, y1, x2, y2, "gs"), path(head, "ink")]
