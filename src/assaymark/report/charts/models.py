"""Figures of models and of tiers of agents: scores, two conventions, drawdowns against a limit, and small strips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from assaymark.records import Level
from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import WIDE, Box, Drawn, Element, Scale, Spot, hatch, label, line, path, rect
from assaymark.report.charts.intervals import Ends, LevelMark, point
from assaymark.report.text import KnownValue, bounds_of, fit, shortened, text_width
from assaymark.text import MINUS, NBSP, number

KINDS: Final[dict[Level, LevelMark]] = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}
STRIP_WIDTH: Final = 180
_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier: its names, its level, its range of scores; ``point`` only for an agent alone in its tier."""

    names: tuple[str, ...]
    level: Level
    ends: Ends | None
    point: float | None
    shown: str
    remark: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The names as drawn; for a long tier the first ones, and the number of the others."""
        more = len(self.names) - _NAMES
        return self.names if more <= 1 else (*self.names[:_NAMES], f"and {more} more")


def tier_chart(rows: Sequence[TierRow], axis: Ends, name: str, width: float, *, reasons: Sequence[str] = ()) -> Drawn:
    """The tiers of one score from high to low; with ``reasons`` nothing may be shown and the plot is hatched."""
    roomy, deep = width > 600, 24
    longest = max((text_width(name_line, 13) for row in rows for name_line in row.lines), default=0) + 12
    beside = max((text_width(row.remark, 13) for row in rows), default=0) + 18
    left, right = min(max(104.0, longest), 132.0), width - 8
    if roomy:
        left, right = min(max(160.0, longest), 270.0), width - min(max(190.0, beside), 270.0)
    scale, parts, y, ticks = (
        Scale(*axis, left, right), list[Element]([hatch(f"{name}-h")]), 6.0, c.scale_ticks(*axis),
    )  # fmt: skip
    for level in dict.fromkeys(row.level for row in rows):
        parts.append(hatch(f"{name}-{KINDS[level]}", f"{KINDS[level]}l"))
    reasons = [part for reason in reasons for part in wrap(reason, int((right - left - 20) / 7.4))]
    bottom = max(y + deep * sum(len(row.lines) for row in rows) + 10 * len(rows), 18.0 * len(reasons) + 24)
    parts += [line(scale(tick), 0, scale(tick), bottom, "hair") for tick in ticks]
    for at, row in enumerate(rows):
        height = deep * len(row.lines)
        for k, text in enumerate(row.lines):
            parts.append(label(0, y + 17 + deep * k, fit(text, left - 12, 13), "tn" if reasons else "tb"))
        if not reasons:
            # The mark of a tier: a square with its interval, or a hatched box from end to end.
            mark, top, middle = KINDS[row.level], y + 2, y + 2 + (height - 4) / 2
            low, high = (scale(end) for end in row.ends or axis)
            if row.ends is None:
                parts.append(rect(left, top, right - left, height - 4, "void", f"url(#{name}-h)"))
            elif row.point is None:
                parts.append(rect(low, top, max(high - low, 3), height - 4, f"{mark}s box", f"url(#{name}-{mark})"))
            else:
                parts += [line(low, middle, high, middle, f"{mark}b"), *point(scale(row.point), middle, mark)]
            if roomy:
                parts.append(label(right + 14, middle + 4.5, row.remark, "t2"))
            if roomy and row.ends is not None:
                room = text_width(row.shown, 13) + 12
                x, anchor = ((low - 12, "end") if low - room > left else (high + 12, "start")
                             if high + room <= right + 8 else ((low + high) / 2, "middle"))  # fmt: skip
                if anchor == "middle":  # words inside a box that spans the axis, on paper
                    parts.append(rect((low + high - room) / 2, middle - 11, room, 22, "open"))
                parts.append(label(x, middle + 4.5, row.shown, "t2", anchor))  # type: ignore[arg-type]
            if at + 1 < len(rows):
                parts.append(line(0, y + height + 5, right, y + height + 5, "hair"))
        y += height + 10
    if reasons:
        parts.append(rect(left, 2, right - left, bottom - 4, "void", f"url(#{name}-h)"))
        middle, top = (left + right) / 2, bottom / 2 - 9 * len(reasons)
        room = max(text_width(part, 13) for part in reasons) + 16
        parts.append(rect(middle - room / 2, top - 4, room, 18 * len(reasons) + 8, "open"))
        parts += [label(middle, top + 13 + 18 * k, part, "" if k else "tb", "middle") for k, part in enumerate(reasons)]
    parts += [label(scale(tick), bottom + 14, f"{tick:g}".replace("-", MINUS), "tk", "middle") for tick in ticks]
    return parts, bottom + 20


@dataclass(frozen=True, slots=True)
class Strip:
    """Values on an axis with thresholds; in ``marks``, ``p`` passes, ``q`` is conditional, and ``n`` fails."""

    axis: Ends
    cuts: tuple[tuple[float, str, bool], ...]  # value, label, dashed
    points: tuple[tuple[float, float | None, float | None], ...]  # value, low, high
    marks: str
    band: tuple[float | None, float | None] | None = None  # where values pass

    def svg(self) -> str:
        """The strip as a picture, which repeats the words beside it."""
        scale, parts = Scale(*self.axis, 8, STRIP_WIDTH - 8), list[Element]()
        if self.band is not None:
            low, high = self.band
            start = scale.left if low is None else scale(low)
            parts.append(rect(start, 1, (scale.right if high is None else scale(high)) - start, 20, "panel2"))
        parts.append(line(scale.left, 11, scale.right, 11, "rule"))
        for at, words, dashed in self.cuts:
            x, half = scale(at), text_width(words, 12) / 2
            parts.append(line(x, 2, x, 20, "gd" if dashed else "gs"))
            if words:
                parts.append(label(min(max(x, half), STRIP_WIDTH - half), 33, words, "tk", "middle"))
        for (value, low, high), mark in zip(self.points, self.marks, strict=True):
            if low is not None and high is not None:
                parts.append(line(scale(low), 11, scale(high), 11, "now"))
            x = scale(value)
            if mark == "p":
                parts.append(path(f"M{c.num(x - 4)},7h8v8h-8z", "ink"))
                continue
            parts.append(path(f"M{c.num(x - 4.5)},6.5h9v9h-9z", f"open {'mq' if mark == 'q' else 'mn'}s"))
            parts += [path(f"M{c.num(x - 4.5)},6.5h4.5v9h-4.5z", "mq")] if mark == "q" else []
        return c.row_mark(parts, STRIP_WIDTH, 37 if any(words for _, words, _ in self.cuts) else 22)


def strip_axis(values: Sequence[float], *cuts: float) -> Ends:
    """An axis that holds the values and the thresholds with a margin at both ends.

    >>> strip_axis([0.5], 0.0)
    (-0.075, 0.575)
    """
    low, high = min((*values, *cuts)), max((*values, *cuts))
    room = (high - low) * 0.15 or 0.1
    return round(low - room, 4), round(high + room, 4)


# --- one row per model ------------------------------------------------------------------------------------------------


_ROW, _HEAD, _ROOM = 22, 42, 44

Bar = tuple[Ends | None, str]
"""The interval of a value, if it has one, and the value in words."""

ScoreBars = tuple[str, str, tuple[Bar | None, ...], float | None]
"""One score: its name and subtitle, the bar of every row (None is hatched), and its maximum as a dotted line."""


def column_chart(rows: Sequence[str], columns: Sequence[ScoreBars], called: str, width: float) -> Drawn:
    """Intervals on columns from 0 to 1, side by side, or stacked on a phone. Bars have no point estimate."""
    tall, names = _HEAD + _ROW * len(rows), 104.0
    stacked, parts = width < 600, list[Element]([hatch(f"{called}-h")])
    step = 0.0 if stacked else (width - names) / max(len(columns), 1)
    for at, (title, subtitle, bars, best) in enumerate(columns):
        top, left = at * (tall + 18.0) if stacked else 0.0, names + at * step + 8
        scale = Scale(0.0, 1.0, left, width - _ROOM if stacked else left + step - 8 - _ROOM)
        parts += [label(left, top + 13, title, "tb"), label(left + 26, top + 13, subtitle, "t2")]
        for tick, words in ((0.0, "0"), (0.5, ".5"), (1.0, "1")):
            parts.append(label(scale(tick), top + 32, words, "tk", "middle"))
            parts.append(line(scale(tick), top + 37, scale(tick), top + tall, "hair"))
        if best is not None:
            parts.append(line(scale(best), top + 37, scale(best), top + tall, "gd"))
        for row, (model, bar) in enumerate(zip(rows, bars, strict=True)):
            y = top + _HEAD + _ROW * row + _ROW / 2
            if stacked or not at:
                style = "tb" if all(bars_of[row] is not None for _, _, bars_of, _ in columns) else "t2"
                parts.append(label(0, y + 4.5, fit(model, names - 8, 13), style))
                parts.append(line(0, y + _ROW / 2, width, y + _ROW / 2, "hair"))
            if bar is None:
                parts.append(rect(left, y - 8, scale.right - left, 16, "void", f"url(#{called}-h)"))
                continue
            if bar[0] is not None:
                low, high = map(scale, bar[0])
                parts.append(rect(low, y - 3, max(high - low, 3.0), 6, "ink"))
            parts.append(label(scale.right + 6, y + 4.5, bar[1], "t2"))
    return parts, ((tall + 18.0) * len(columns) - 18 if stacked else tall) + 4


ConventionRow = tuple[str, Bar, Bar | None, str, bool]
"""A model with two intervals: its name, both bars, the style of the first, and whether a line is drawn above it."""


def convention_chart(rows: Sequence[ConventionRow], _: str, width: float) -> Drawn:
    """Every model with a filled and an outlined interval on a common axis."""
    ends = [end for _, *bars, _, _ in rows for bar in bars if isinstance(bar, tuple) for end in bar[0] or ()]
    low, high = int(min(ends, default=0.0) * 10) / 10, min(1.0, int(max(ends, default=1.0) * 10 + 1) / 10)
    tall, bottom = 36.0, 24 + 36.0 * len(rows)
    scale, parts = Scale(low, high, 108, width - 96), list[Element]()
    for tick in c.scale_ticks(low, high):
        parts.append(label(scale(tick), 13, f"{tick:g}", "tk", "middle"))
        parts.append(line(scale(tick), 20, scale(tick), bottom, "hair"))
    for at, (model, first, other, kind, cut) in enumerate(rows):
        y = 24 + tall * at
        parts += [line(0, y, width, y, "gd")] if cut else []
        parts.append(label(0, y + tall / 2 + 4.5, fit(model, 100, 13), "tb"))
        for bar, middle, style in ((first, y + 11, kind), (other, y + 26, "open rule")):
            if bar is not None:
                left, right = map(scale, bar[0] or (low, low))
                parts += [rect(left, middle - 3, max(right - left, 3.0), 6, style)] if bar[0] else []
                parts.append(label(width, middle + 4.5, bar[1], "tk" if bar is other else "", "end"))
    return parts, bottom + 2


DrawdownRow = tuple[str, float, bool]
"""A name, its maximum drawdown as a share, and whether that is within the limit."""


def limit_chart(rows: Sequence[DrawdownRow], limit: float, called: str, width: float) -> Drawn:
    """The maximum drawdown of every model as a line to a marker; values beyond the limit are hatched."""
    most, bottom = max([limit, *(fall for _, fall, _ in rows)]) * 1.04, 24.0 + _ROW * len(rows)
    scale, parts = Scale(0.0, most, 108, width - 56), list[Element]([hatch(f"{called}-h")])
    edge = scale(limit)
    parts.append(rect(edge, 22, scale.right - edge, bottom - 22, "novoid", f"url(#{called}-h)"))
    parts.append(label(edge, 13, f"limit {100 * limit:g}{NBSP}%", "tk", "middle"))
    parts.append(line(edge, 18, edge, bottom, "gs"))
    for at, (model, fall, within) in enumerate(rows):
        x, y = scale(fall), 24 + _ROW * at + _ROW / 2
        parts += [label(0, y + 4.5, fit(model, 100, 13), "tb"), line(scale.left, y, x, y, "rule")]
        parts.append(c.element("circle", class_="ink" if within else "open ringed", cx=round(x, 1), cy=y, r=5))
        parts += [] if within else [path(f"M{x - 2.6:.1f},{y - 2.6}l5.2,5.2m0,-5.2l-5.2,5.2", "ringed")]
        parts.append(label(width, y + 4.5, f"{100 * fall:.1f}{NBSP}%", "t2", "end"))
    return parts, bottom + 2


# --- calm returns against stressed losses: Sharpe ratio with its interval, maximum drawdown, the limit as a region ----


StressPoint = tuple[str, KnownValue, float, bool | None, bool]
"""A name, its Sharpe ratio, its maximum drawdown as a positive share, whether it kept the limit (None: undecided), and
whether it is a baseline."""


def stress_scatter(points: Sequence[StressPoint], tolerance: float, window: str, called: str, width: float) -> Drawn:
    """Sharpe ratios against drawdowns under stress, for a screen and for a phone."""
    height = 400.0 if width == WIDE else 440.0
    # Both ends of the axis of Sharpe ratios, and the shallowest and the deepest percent of the other, with steps.
    ends = [end for _, item, *_ in points for end in (item.low, item.high, item.value) if end is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    pad, most = max(0.06 * (high - low), 0.1), 8 if width == WIDE else 5
    reach = high - low + 2 * pad
    step = c.step_size(reach, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0), most, reach / most)
    low, high = low - pad, high + pad
    depths = [100 * tolerance, *(100 * fall for _, _, fall, *_ in points)]
    room = max(0.12 * (max(depths) - min(depths)), 1.5)
    top, bottom = max(min(depths) - room, 0.0), max(depths) + room
    depth = c.step_size(bottom - top, (1.0, 2.0, 5.0, 10.0, 20.0), 6, 25.0)
    left, right, floor = 42.0, width - 6, height - 46.0
    across, down = Scale(low, high, left, right), Scale(top, bottom, 44.0, floor)
    edge = down(100 * tolerance)
    parts: list[Element] = [
        hatch(f"{called}-h"), label(0, 14, "↑ Shallower", "tk"),
        label(0, 31, fit("Maximum drawdown under stress, %", width, 12), "tk"),
        rect(left, edge, right - left, floor - edge, "region", f"url(#{called}-h)"),
    ]  # fmt: skip
    for tick in (depth * at for at in range(math.ceil(top / depth - 1e-9), math.floor(bottom / depth + 1e-9) + 1)):
        if abs(tick - 100 * tolerance) > depth / 4:
            parts.append(line(left, down(tick), right, down(tick), "hair"))
            if abs(down(tick) - edge) > 13:
                parts.append(label(left - 6, down(tick) + 4, number(-tick, 0), "tk", "end"))
    parts += [
        line(left, edge, right, edge, "gs"), label(left - 6, edge + 4, number(-100 * tolerance, 0), "tb tk", "end"),
        label(width - 8, edge - 8, "passes", "tk halo", "end"),
        label(width - 8, edge + 16, "fails", "tb tk halo", "end"), line(left, floor, right, floor, "axis"),
        label(right, height - 6, f"{fit(f'Sharpe ratio, {window}', width - 60, 12)} →", "tk", "end"),
    ]  # fmt: skip
    occupied = [Box(width - 54, edge - 18, right, edge - 2), Box(width - 54, edge + 4, right, edge + 20)]
    for tick in (step * at for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)):
        parts.append(label(across(tick), floor + 18, number(tick, 0 if step >= 1 else 1), "tk", "middle"))
        parts.append(line(across(tick), floor, across(tick), floor + 4, "axis"))
    parts += [line(across(0), 44.0, across(0), floor, "hair")] if low < 0 < high else []
    return [*parts, *_stressed(points, across, down, occupied, Box(left, 34.0, right, floor - 2), width)], height


def _stressed(
    points: Sequence[StressPoint], across: Scale, down: Scale, occupied: list[Box], inside: Box, width: float
) -> list[Element]:
    """Whiskers, markers and names: filled passes, a cross fails, an empty ring is undecided; baselines are diamonds."""
    lines, marks, texts, requests = list[Element](), list[Element](), list[Element](), list[c.Request]()
    names, spotted = shortened([name for name, *_ in points], width * 0.3, 13), list[tuple[float, ...]]()
    for _, sharpe, fall, passes, baseline in points:
        x, y = across(sharpe.value), down(100 * fall)
        left, right = (x if end is None else across(end) for end in (sharpe.low, sharpe.high))
        spotted.append((y, left, right))
        if bounds_of(sharpe):
            lines.append(line(left, y, right, y, "wsk dash" if baseline else "wsk"))
            occupied.append(Box(left, y - 1.5, right, y + 1.5))
        if baseline:
            r, kind = 6.5, "bar1 gap" if passes else "open dia"
            marks.append(path(f"M{x:.1f} {y - r:.1f}l{r} {r}l-{r} {r}l-{r}-{r}z", kind))
        else:
            marks.append(c.circle(x, y, 6, "mh gap" if passes else "open mhs"))
            if passes is False:
                marks.append(path(f"M{x - 2.6:.1f} {y - 2.6:.1f}l5.2 5.2m0-5.2l-5.2 5.2", "mhs"))
        occupied.append(Box(x - 7, y - 7, x + 7, y + 7))
        # Beyond the ends of the whisker, then beside the mark, then further up and down.
        spots: list[Spot] = [(right + 8, y + 4, "start"), (left - 8, y + 4, "end")][:: -1 if baseline else 1]  # type: ignore[assignment]
        spots += [(x, y - 10, "middle"), (x, y + 20, "middle"), (x + 14, y - 8, "start"), (x - 14, y - 8, "end")]
        for turn in (sign * step for step in range(1, 9) for sign in (-1, 1)):
            shift = 4 + turn * 14
            spots += [(right + 8, y + shift, "start"), (left - 8, y + shift, "end"), (x - 14, y + shift, "end")]
            spots.append((x, y + shift + (6 if turn > 0 else -6), "middle"))
        requests.append(((names[len(requests)],), spots))
    places = c.place_labels(requests, occupied, inside)
    for (*_, baseline), name, (height, left, right), (x, y, anchor) in zip(points, names, spotted, places, strict=True):
        if abs(y - 4 - height) > 14:
            lines.append(line(right if anchor == "start" else left, height, x, y - 4, "hair"))
        texts.append(label(x, y, name, "tk halo" if baseline else "tb halo", anchor))
    return [*lines, *marks, *texts]
