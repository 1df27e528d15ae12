"""Net asset values over days: a figure with labelled lines, small panels, price charts, and data for the brush."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import MID, NARROW, WIDE, Drawn, Element, Scale, label, line, num, path, rect
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import number, percent

Floats = NDArray[np.float64]


def drawdowns(nav: Floats) -> Floats:
    """The drawdown from the highest value so far, as a share: 0 or negative."""
    return np.asarray(nav / np.maximum.accumulate(nav) - 1.0)


def nav_ticks(low: float, high: float, most: int = 4) -> tuple[float, ...]:
    """Round values that enclose 100, ``low`` and ``high``, in at most ``most`` + 2 steps.

    >>> nav_ticks(88.2, 109.0), nav_ticks(99.5, 100.2)
    ((80.0, 90.0, 100.0, 110.0), (99.0, 100.0, 101.0))
    >>> nav_ticks(97.9, 105.4, most=6)
    (96.0, 98.0, 100.0, 102.0, 104.0, 106.0)
    """
    low, high = min(low, 100.0), max(high, 100.0)
    reach = max(high - low, 1e-6)
    step = c.step_size(reach, (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0), most, 10.0 ** math.ceil(math.log10(reach)))
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(step * at for at in range(first, max(last, first + 1) + 1))


def path_data(xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> str:
    """A path through points, in tenths of a pixel and relative moves, as short as possible.

    >>> path_data([0, 10, 20], [5, 4.7, 6.2])
    'M0 5l10-.3 10 1.5'
    """

    tenths = np.rint(10 * np.column_stack((xs, ys))).astype(int)
    x, y = (_tenths(start).strip() for start in tenths[0].tolist())
    return f"M{x} {y}l{''.join(map(_tenths, np.diff(tenths, axis=0).ravel().tolist())).strip() or '0 0'}"


@cache
def _tenths(value: int) -> str:
    """Some tenths of a pixel, after a space if there is no minus that sets them apart."""
    text = f"{abs(value) / 10:g}"
    return ("-" if value < 0 else " ") + (text.removeprefix("0") if text.startswith("0.") else text)


# --- the data with which ``brush.js`` reads a range of days off a figure, instead of from pixels ----------------------


@dataclass(frozen=True, slots=True)
class Brush:
    """Data for the brush: the days, and each line's name and its values as seven-digit integers (only ratios count)."""

    days: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


def brush_of(days: Sequence[str], lines: Sequence[tuple[str, Floats]]) -> Brush | None:
    """The brush of some lines, or None if a line has fewer than two days, lacks a day or is not positive.

    >>> import numpy as np
    >>> brush_of(["start", "1 May"], [("Alder", np.array([100.0, 98.5]))])
    Brush(days=('start', '1 May'), lines=(('Alder', '1000000 985000'),))
    """
    if len(days) < 2 or not all(len(nav) == len(days) and float(nav.min()) > 0 for _, nav in lines):
        return None
    wholes: list[tuple[str, str]] = []
    for name, nav in lines:
        unit = 10.0 ** (7 - len(str(int(nav.max())))) if nav.max() >= 1 else 10.0**7
        wholes.append((name, " ".join(str(round(float(value) * unit)) for value in nav)))
    return Brush(tuple(day.replace("|", "/") for day in days), tuple(wholes))  # the page joins them with bars


# --- one net asset value against baselines, with its drawdown below; one path per line, so no band is drawn -----------


Role = Literal["own", "agent", "first", "other"]
"""The role of a line: the subject of the figure, one of several agents, the reference baseline, or another."""

_LINE: Final = 17.0
_OTHERS: Final = ("nvo dash", "nvo dots2", "nvo dash2")

NavLine = tuple[str, Floats, str, Role, str]
"""A name, its net asset values from the start on, the label beside it, its role, and its drawdown label."""

NavWords = tuple[str, str, str, Callable[[float], str], Sequence[str]]
"""Labels: of the start, the drawdown panel and the maximum drawdown; a function that formats the axes; and the short
names of the days after the start (numbered if empty)."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a figure: the axis of days, both panels, and the maximum points of a line."""

    left: float
    right: float
    width: float
    nav: tuple[float, float]
    fall: tuple[float, float]
    points: int

    def selection(self) -> Element:
        """The rectangle of the brush, empty until the script widens it, with the axis of days in percent."""
        share = 100 * self.left / self.width, 100 * (self.right - self.left) / self.width
        return rect(0, self.nav[0], 0, self.fall[1] - self.nav[0], "sel", data_x=f"{share[0]:.3f} {share[1]:.3f}")

    def moves(self, nav: Floats, values: Floats, scale: Scale) -> str:
        """A path through values, thinned to the visible points: both ends and the maximum drawdown always included."""
        points = np.arange(len(nav))
        if len(nav) > self.points:
            chosen = np.linspace(0, len(nav) - 1, self.points).round().astype(int).tolist()
            points = np.array(sorted({*chosen, int(drawdowns(nav).argmin())}))
        xs = self.left + points / max(len(nav) - 1, 1) * (self.right - self.left)
        share = (values[points].clip(scale.low, scale.high) - scale.low) / (scale.high - scale.low)
        return path_data(xs, scale.left + share * (scale.right - scale.left))


_WIDE_PLANE: Final = _Layout(36.0, 914.0, WIDE, (14.0, 210.0), (242.0, 312.0), 280)
_MID_PLANE: Final = _Layout(36.0, 480.0, MID, (14.0, 210.0), (242.0, 312.0), 70)
_NARROW_PLANE: Final = _Layout(34.0, 214.0, NARROW, (14.0, 176.0), (208.0, 268.0), 90)
_HISTORY: Final = _Layout(34.0, 262.0, 262.0, (8.0, 90.0), (106.0, 158.0), 150)


def nav_figure(lines: Sequence[NavLine], words: NavWords, _: str, width: float, *, log: bool = False) -> Drawn:
    """Net asset values and drawdowns; with ``log`` a second, hidden panel has a logarithmic axis."""
    # A class for each line; baselines beyond the first differ in their dashes.
    roles, styles, (start, _, _, ticks, names) = [role for *_, role, _ in lines], list[str](), words
    for at, role in enumerate(roles):
        nth = roles[:at].count(role)
        styles.append({
            "own": "nav", "first": "nv1", "other": _OTHERS[nth % len(_OTHERS)],
            "agent": f"k{nth % 4 + 1}l{' dash' if nth >= 4 else ''}",
        }[role])  # fmt: skip
    navs, days = [100 * nav / nav[0] for _, nav, *_ in lines], len(lines[0][1]) - 1
    low = min(float(nav.min()) for nav in navs)
    marks = nav_ticks(low, max(float(nav.max()) for nav in navs), most=6)
    box = {WIDE: _WIDE_PLANE, MID: _MID_PLANE}.get(int(width), _NARROW_PLANE)
    rungs = [(mark, ticks(mark), "axis" if mark == 100 else "hair") for mark in marks]
    values = _values_on(lines, styles, box, navs, rungs, Scale(marks[0], marks[-1], *box.nav[::-1]))
    if log and low > 0:
        ends = math.log(marks[0] if marks[0] > 0 else 0.98 * low), math.log(marks[-1])
        logs = [np.array([*map(math.log, nav.tolist())]) for nav in navs]
        above = [(math.log(mark), text, kind) for mark, text, kind in rungs if mark > 0]
        logged = _values_on(lines, styles, box, logs, above, Scale(*ends, *box.nav[::-1]))
        values = [c.element("g", values, class_="lin"), c.element("g", logged, class_="log")]
    elements: list[Element] = [box.selection(), *values, *_lower_panel(lines, styles, words, box)]
    # The last day's label ends at its tick, beside the line labels; labels that would overlap are omitted.
    words_of = {day: (names[day - 1] if names else ticks(day)) if day else start for day in day_ticks(days)}
    first, last = box.left + text_width(start, 12) + 8, box.right - text_width(words_of[days], 12)
    for day, text in words_of.items():
        x, half = box.left + day / max(days, 1) * (box.right - box.left), text_width(text, 12) / 2
        elements.append(line(x, box.fall[1], x, box.fall[1] + 4, "axis"))
        if not day or (last >= first if day == days else x - half >= first and x + half + 8 <= last):
            anchor: c.Anchor = "end" if day == days > 0 else "middle" if day else "start"
            elements.append(label(x, box.fall[1] + 20, text, "tk", anchor))
    return elements, 340.0 if width > NARROW else 296.0


def _values_on(
    lines: Sequence[NavLine], styles: Sequence[str], box: _Layout, navs: Sequence[Floats],
    rungs: Sequence[tuple[float, str, str]], up: Scale,
) -> list[Element]:  # fmt: skip
    """The lines with their axis, and their names and returns at the line ends, moved apart, with a hairline."""
    parts = c.grid_lines(up, box.left, box.right, rungs)
    # The line that the figure is about is drawn last, on top of the others.
    for at in sorted(range(len(navs)), key=lambda k: lines[k][3] == "own"):
        parts.append(path(box.moves(lines[at][1], navs[at], up), styles[at]))
    heights, bottom, room = [up(float(nav[-1])) for nav in navs], box.nav[1] + _LINE / 2, box.width - box.right - 20
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    # A name that does not fit beside its return is set above it, if there is room for all.
    two = {k for k in order if text_width(f"{lines[k][0]} {lines[k][2]}", 13) > room}
    two = two if _LINE * (len(order) + len(two)) <= bottom else set()
    pitch = min(_LINE, bottom / len(order))  # many names stand closer
    places = c.spread_labels([heights[k] for k in order], [pitch * (1 + (k in two)) for k in order], bottom)
    beside = 0.0 if two else max(text_width(f" {end}", 13) for _, _, end, *_ in lines)
    # An ellipsis is wider than the width estimated for other characters.
    names = shortened([name for name, *_ in lines], room - beside, 13)
    for k, y in zip(order, places, strict=True):
        _, _, end, role, _ = lines[k]
        kind = {"own": "tb th", "first": "tb", "other": "t2"}.get(role, styles[k].split()[0].replace("l", "t"))
        if abs(y - heights[k]) > 2:
            parts.append(path(f"M{num(box.right + 1)} {num(heights[k])}L{num(box.right + 11)} {num(y)}", "hair lead"))
        texts = ((y - 3, names[k]), (y + 12, end)) if k in two else ((y + 4.5, f"{names[k]} {end}"),)
        parts += [label(box.right + 14, at, text, kind) for at, text in texts]
    return parts


def drawdown_ticks(deepest: float) -> tuple[float, ...]:
    """Two or three round drawdowns in percent, from 0, that include the deepest.

    >>> drawdown_ticks(4.3), drawdown_ticks(0.0), drawdown_ticks(61)
    ((0.0, 4.0, 8.0), (0.0, 1.0), (0.0, 40.0, 80.0))
    """
    step = c.step_size(deepest, (1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 40.0, 50.0), 2, 100.0)
    return (0.0, step) if deepest <= step else (0.0, step, 2 * step)


def _lower_panel(lines: Sequence[NavLine], styles: Sequence[str], words: NavWords, box: _Layout) -> list[Element]:
    """The lower panel: drawdowns of the subject and its baseline, or of several agents with the maximum of each."""
    order, (_, of_fall, deepest, ticks, _) = ("first", "agent", "own"), words
    styled = sorted((row for row in zip(lines, styles, strict=True) if row[0][3] in order),
                    key=lambda row: order.index(row[0][3]))  # fmt: skip
    fallen, last = [-100 * drawdowns(nav) for (_, nav, *_), _ in styled], styled[-1][0][3]
    marks, room = drawdown_ticks(max(float(fall.max()) for fall in fallen)), box.width - box.right - 14
    down = Scale(0.0, marks[-1], *box.fall)
    elements: list[Element] = [label(box.left, box.fall[0] - 8, of_fall, "tk")]
    elements += c.grid_lines(down, box.left, box.right, [(mark, ticks(-mark), "hair") for mark in marks])
    moves = [box.moves(nav, fall, down) for ((_, nav, *_), _), fall in zip(styled, fallen, strict=True)]
    zero = line(box.left, down(0), box.right, down(0), "axis")
    if last == "agent":
        elements += [path(move, f"{style} thin") for move, (_, style) in zip(moves, styled, strict=True)]
        ends = [(down(float(fall[-1])), text, style.split()[0].replace("l", "t"))  # the class of a text about a line
                for ((*_, role, text), style), fall in zip(styled, fallen, strict=True) if role == "agent"]  # fmt: skip
        ends.sort(key=lambda end: end[0])
        if _LINE * len(ends) <= box.fall[1] - box.fall[0] + 2 * _LINE:
            places = c.spread_labels([y for y, *_ in ends], [_LINE] * len(ends), box.fall[1] + _LINE)
            elements += [label(box.right + 14, y + 4.5, fit(text, room, 13), kind)
                      for (_, text, kind), y in zip(ends, places, strict=True)]  # fmt: skip
        return [*elements, zero]
    floor, subject, at = num(down(0)), moves[-1], int(fallen[-1].argmax())
    elements.append(path(f"M{num(box.left)} {floor}{subject[subject.index('l') :]}V{floor}z", "fall"))
    elements += [*(path(move, "nv1 thin") for move in moves[:-1]), path(subject, "nav thin"), zero]
    x, y = box.left + at / max(len(fallen[-1]) - 1, 1) * (box.right - box.left), down(float(fallen[-1][at]))
    elements.append(c.circle(x, y, 3, "mh"))
    beside = min(max(y, box.fall[0] + 8), box.fall[1])
    return [*elements, label(box.right + 14, beside + 4.5, fit(deepest, room, 13), "tb th")]


def day_ticks(days: int) -> tuple[int, ...]:
    """The start, some round days and the last day.

    >>> day_ticks(61), day_ticks(1), day_ticks(250)
    ((0, 20, 40, 61), (0, 1), (0, 50, 100, 150, 200, 250))
    """
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if days / s <= 5), max(days // 4, 1))
    between = [day for day in range(step, days, step) if days - day > 0.6 * step]
    return (0, *between, days) if days else (0,)


def price_chart(closes: Sequence[float], ends: tuple[str, str], _: str, width: float) -> Drawn:
    """The closes of one asset, with the lowest and the highest labelled."""
    low, high, top, bottom, height = min(closes), max(closes), 12.0, 104.0, 128.0
    # As many decimals as it takes to tell the lowest from the highest, at least two.
    digits = next((digits for digits in (2, 3) if high - low >= 2 * 10.0**-digits), 4)
    texts = [number(low, digits), number(high, digits)]
    left, slack = max(text_width(text, 12) for text in texts) + 8, (high - low) * 0.04 or 1.0
    up, across = Scale(low - slack, high + slack, bottom, top), Scale(0, len(closes) - 1, left, width - 8)
    parts: list[Element] = []
    for value, text in zip((low, high), texts, strict=True) if high > low else ((low, texts[0]),):
        parts.append(line(left, up(value), width - 8, up(value), "hair"))
        parts.append(label(left - 8, up(value) + 4, text, "tk", "end"))
    points = [(round(across(at), 1), round(up(price), 1)) for at, price in enumerate(closes)]
    moves = (f"{num(x - before_x)} {num(y - before_y)}" for (before_x, before_y), (x, y) in pairwise(points))
    parts.append(path(f"M{points[0][0]:g} {points[0][1]:g}l" + " ".join(moves), "curve"))
    parts.append(path(f"M{points[-1][0]:g} {points[-1][1]:g}h0", "now"))
    parts += [label(left, height - 6, ends[0], "tk"), label(width - 8, height - 6, ends[1], "tk", "end")]
    return parts, height


def history_panels(
    name: str, histories: Sequence[tuple[str, Floats]], baseline: Floats | None, tolerance: float
) -> tuple[str, tuple[str, ...]]:
    """The equal-weight line, once for all panels, and a panel per model: net asset value, from 1.0, and drawdown."""
    box = _HISTORY
    left, right = box.left, box.right
    navs = [nav for _, nav in histories] + ([] if baseline is None else [baseline])
    marks = nav_ticks(100 * min(float(nav.min()) for nav in navs), 100 * max(float(nav.max()) for nav in navs))
    up = Scale(marks[0], marks[-1], *box.nav[::-1])
    down = Scale(0.0, max(*(-float(drawdowns(nav).min()) for _, nav in histories), tolerance), *box.fall)
    zero, edge, shared, panels = down(0), down(tolerance), "", []
    if baseline is not None:
        moves = box.moves(baseline, 100 * baseline, up)
        shared = f'<svg class="sprite" aria-hidden="true"><path id="{name}-b" d="{moves}"/></svg>'
    for at, (model, nav) in enumerate(histories, 1):
        fall, parts = drawdowns(nav), list[Element]([box.selection()])
        rungs = [(mark, number(mark, 0), "axis" if mark == 100 else "hair") for mark in marks]
        parts += c.grid_lines(up, left, right, rungs)
        parts += [] if baseline is None else [c.element("use", href=f"#{name}-b", class_="eqw")]
        parts.append(path(box.moves(nav, 100 * nav, up), "nav"))
        # The number is below the deepest point, and below the limit if it would overlap its line.
        lowest, moves = int(fall.argmin()), box.moves(nav, -fall, down)
        text = f"{number(100 * min(float(fall[lowest]), 0.0), 1)}\u00a0%"
        x, half = left + lowest / max(len(fall) - 1, 1) * (right - left), text_width(text, 12) / 2
        y = down(-float(fall[lowest])) + 14
        y = edge + 14 if edge - 3 < y < edge + 14 else y
        start = f"M{left:g} {zero:g}V{num(down(-fall[0]))}"
        parts += [
            path(f"{start}{moves[moves.index('l') :]}V{zero:g}z", "fall"), path(moves, "nav thin"),
            line(left, zero, right, zero, "axis"), line(left, edge, right, edge, "gd"),
            label(left - 6, zero + 4, "0", "tk", "end"),
            label(left - 6, edge + 4, number(-100 * tolerance, 0), "tb tk", "end"),
            label(min(max(x, left + half + 4), right - half), y, text, "tb tk halo", "middle"),
        ]  # fmt: skip
        desc = f"Ends at {number(100 * float(nav[-1]), 1)} of 100; maximum drawdown {text}, limit {percent(tolerance)}"
        if baseline is not None:
            desc += f"; equal weight ends at {number(100 * float(baseline[-1]), 1)}"
        title = f"{model}: net asset value and fall from the peak"
        panels.append(c.frame(f"{name}-{at}", title, f"{desc}.", (box.width, 176.0), parts, "both"))
    return shared, tuple(panels)
