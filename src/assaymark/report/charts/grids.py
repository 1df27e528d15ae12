"""Correlations as a map: one cell a pair below the diagonal, tinted by size, negative ones hatched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import svg

from assaymark.records import Level
from assaymark.report.charts.canvas import HALF, NARROW, WIDE, Scale, both, frame, hatch, label, line, num, path, rect
from assaymark.report.charts.intervals import judge_marks
from assaymark.report.charts.paths import Floats, drawn
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import count, number, percent

# Supported orders of agents: one filled cell for each, a hatch where there is none.


_MARKS: Final[Mapping[Level, tuple[str, str]]] = {"headline": ("S", "tint4"), "qualified": ("C", "tint2")}
"""The letter and the tint of each level."""


def heat(name: str, agents: Sequence[str], cells: Mapping[tuple[int, int], Level], title: str, desc: str) -> str:
    """One score at phone width; three stand side by side on a screen. ``cells`` are levels by (row, column): the agent
    of the row scores above that of the column. A pair without a cell either way is hatched."""
    size = len(agents)
    names = min(128.0, 36 + max((text_width(agent, 12) for agent in agents), default=0))
    side = min((NARROW - names) / max(size, 1), 52.0)
    top = 22.0
    drawn = {*cells, *((c, r) for r, c in cells)}
    kept = [(r, c) for r in range(size) for c in range(size) if r != c and (r, c) not in drawn]
    hatched = "".join(_box(names, top, side, r, c) for r, c in kept)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    if hatched:
        parts.append(svg.Path(class_=["novoid"], fill=f"url(#{name}-h)", extra={"d": hatched}))
    for level, (letter, tint) in _MARKS.items():
        found = sorted(place for place, reached in cells.items() if reached == level)
        if found:
            parts.append(path("".join(_box(names, top, side, r, c) for r, c in found), tint))
        parts += [
            label(names + (c + 0.5) * side, top + (r + 0.5) * side + 4, letter, "tk ink", "middle") for r, c in found
        ]
    for at, agent in enumerate(shortened(list(agents), names - 26, 12)):
        parts += [
            label(names - 6, top + (at + 0.5) * side + 4, f"{agent} {at + 1}", "tk", "end"),
            label(names + (at + 0.5) * side, 14, str(at + 1), "tk", "middle"),
        ]
    parts.append(rect(names, top, size * side, size * side, "grid"))
    return frame(name, title, desc, (NARROW, top + size * side + 2), parts, "both")


def _box(left: float, top: float, side: float, row: int, column: int) -> str:
    inner = side - 2
    return f"M{left + column * side + 1:.1f} {top + row * side + 1:.1f}h{inner:.1f}v{inner:.1f}h{-inner:.1f}z"


# Shares in a table of bars: one row a group, one column a state, the percent beside each bar.


_ROW = 26


@dataclass(frozen=True, slots=True)
class BarCell:
    """A share in [0, 1] and the text beside its bar."""

    share: float
    text: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """A group: its name, how many it counts (as text), and one cell a state. ``total`` stands first and bold."""

    title: str
    n: str
    cells: tuple[BarCell, ...]
    total: bool = False


def bar_table(
    name: str, columns: Sequence[str], rows: Sequence[BarRow], title: str, desc: str, of: str = "numbers"
) -> tuple[str, str]:
    """The figure for a screen, and for a phone with two panels side by side, one a state. All bars share one scale, a
    full column is 100 %; rows count ``of``."""

    def draw(_: str, screen: float) -> tuple[list[svg.Element], float]:
        return _wide_bars(columns, rows, of) if screen == WIDE else _narrow_bars(columns, rows)

    return both(name, title, desc, draw)


def _wide_bars(columns: Sequence[str], rows: Sequence[BarRow], of: str) -> tuple[list[svg.Element], float]:
    left, y = 250.0, 24.0
    width = (WIDE - left) / max(len(columns), 1)
    parts: list[svg.Element] = [label(left - 24, 14, of, "tk", "end")]
    parts += [label(left + at * width, 14, fit(text, width - 4, 13), "tb") for at, text in enumerate(columns)]
    for words, row in zip(shortened([row.title for row in rows], 180, 13), rows, strict=True):
        parts += [label(0, y + 18, words, "tb" if row.total else ""), label(left - 24, y + 18, row.n, "t2", "end")]
        for at, cell in enumerate(row.cells):
            parts += _bar(left + at * width, y + 6, width - 14.0 - 48, cell, row.total)
        y += _ROW
        parts.append(line(0, y, WIDE, y, "rule" if row.total else "hair"))
        y += 4 if row.total else 0
    parts += [line(left + at * width, 24, left + at * width, y, "hair") for at in range(len(columns))]
    return parts, y + 4


def _narrow_bars(columns: Sequence[str], rows: Sequence[BarRow]) -> tuple[list[svg.Element], float]:
    panel, room, height, parts = 167.0, 92.0, 0.0, list[svg.Element]()
    titles = shortened([row.title for row in rows], room, 13)
    for at, column in enumerate(columns):
        x, y = (at % 2) * (panel + 16), (at // 2) * (len(rows) * 20 + 40.0)
        parts += [label(x, y + 16, fit(column, panel, 13), "tb"), line(x, y + 24, x + panel, y + 24, "hair")]
        for place, row in enumerate(rows):
            top = y + 28 + 20 * place
            parts.append(label(x, top + 14, titles[place], "tb" if row.total else "t2"))
            parts += _bar(x + room + 4, top + 2, 32.0, row.cells[at], row.total)
        bottom = y + 28 + 20 * len(rows)
        parts.append(line(x + room + 4, y + 28, x + room + 4, bottom, "hair"))
        height = max(height, bottom)
    return parts, height + 8


def _bar(x: float, y: float, reach: float, cell: BarCell, total: bool) -> list[svg.Element]:
    width = reach * cell.share
    bar = [rect(x, y + 1, max(width, 1.5), 13, "bar1" if total else "bar2")] if cell.share > 0 else []
    return [*bar, label(x + max(width, 0) + 6, y + 12, cell.text, "tk")]


# How often each agent takes each rank when the clusters are drawn again: small bars with their percent.


PLACES = 8
_BAR = 30.0


@dataclass(frozen=True, slots=True)
class RankRow:
    """One agent: the share of resamples in which it takes each rank, the first one first; None where not shown.
    ``place`` is the supported rank, whose bar is filled as its ``level`` says."""

    title: str
    shares: tuple[float, ...] | None
    place: int = 0
    level: Level = "no-claim"


def rank_bars(name: str, rows: Sequence[RankRow], places: int, title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone. All bars share one scale; a full bar is 100 %."""
    heads = place_heads(places)

    def draw(called: str, width: float) -> tuple[list[svg.Element], float]:
        wide = width == HALF
        left, step, y = 124.0 if wide else 0.0, 56.0 if wide else 74.0, 22.0
        slot = (width - left) / len(heads)
        parts: list[svg.Element] = [hatch(f"{called}-h")]
        parts += [label(left + (at + 0.5) * slot, 14, head, "tk", "middle") for at, head in enumerate(heads)]
        titles = shortened([row.title for row in rows], 112 if wide else NARROW, 13)
        for row, text in zip(rows, titles, strict=True):
            base = y + step - 8
            parts.append(label(0, base - 6 if wide else y + 16, text, "tb" if row.place else ""))
            y += step
            if row.shares is None:
                parts.append(rect(left + 1, base - 24, width - left - 2, 22, "void", f"url(#{called}-h)"))
                continue
            bar = min(slot - 6, 46.0)
            parts.append(line(left, base, width, base, "hair"))
            for place, share in enumerate(binned(row.shares, places), 1):
                if share <= 0:
                    continue
                middle, height, own = left + (place - 0.5) * slot, max(_BAR * share, 1.5), place == row.place
                kind = ("mh" if row.level == "headline" else "mq") if own else "bar2"
                box = f"M{middle - bar / 2:.1f} {base:.1f}v{-height:.1f}h{bar:.1f}V{base:.1f}z"
                words = label(middle, base - height - 4, percent(share), "tb" if own else "tk", "middle")
                parts += [path(box, kind), words]
        return parts, y + 4

    return both(name, title, desc, draw, HALF)


def place_heads(places: int) -> tuple[str, ...]:
    """The places as column heads; past the eighth they share a column.

    >>> place_heads(3), place_heads(10)[-2:]
    (('1', '2', '3'), ('7', '8 to 10'))
    """
    if places <= PLACES:
        return tuple(str(at) for at in range(1, places + 1))
    return (*(str(at) for at in range(1, PLACES)), f"{PLACES} to {places}")


def binned(shares: Sequence[float], places: int) -> tuple[float, ...]:
    """Shares in the columns of `place_heads`.

    >>> binned([0.5, 0.5], 2)
    (0.5, 0.5)
    """
    given = [*shares, *([0.0] * places)][:places]
    if places <= PLACES:
        return tuple(given)
    return (*given[: PLACES - 1], sum(given[PLACES - 1 :]))


# How each judge used the marks of the scale: five small bars a judge and dimension.


_HEIGHT = 28.0


Shares = tuple[float, ...] | None
"""The share of each mark of a judge, the lowest mark first; None where it is not known."""


def scale_use(
    name: str, judges: Sequence[str], rows: Sequence[tuple[str, Sequence[Shares]]], title: str, desc: str,
    marks: Sequence[str] = ("1", "2", "3", "4", "5"),
) -> tuple[str, str]:  # fmt: skip
    """The figure for a screen and for a phone; ``rows`` are dimensions with the shares of every judge. One height scale
    for all; each cell’s tallest bar has its percent."""
    tallest = max(share for _, found in rows for shares in found if shares for share in shares)

    def draw(_: str, width: float) -> tuple[list[svg.Element], float]:
        wide = width == WIDE
        left, step = 196.0 if wide else 0.0, 50.0 if wide else 70.0
        cell = (width - left) / max(len(judges), 1)
        inner = cell - (28 if wide else 12)
        tops = [22.0 + step * at for at in range(len(rows) + 1)]
        parts: list[svg.Element] = [
            label(0, y + (38 if wide else 18), fit(words, 186 if wide else NARROW, 13))
            for (words, _), y in zip(rows, tops, strict=False)
        ]
        for at, judge in enumerate(shortened(judges, inner, 13)):
            x = left + at * cell
            column: list[svg.Element] = [label(x, 14, judge, "tb")]
            for (_, found), y in zip(rows, tops, strict=False):
                column += _cell(x, y + step - 8, inner, found[at], tallest)
            foot, slot = tops[-1] + 8, inner / len(marks)
            if slot < 9 * max(map(len, marks)):
                column += [label(x, foot, marks[0], "tk"), label(x + inner, foot, marks[-1], "tk", "end")]
            else:
                column += [label(x + (k + 0.5) * slot, foot, mark, "tk", "middle") for k, mark in enumerate(marks)]
            parts += judge_marks(at, column)
        return parts, tops[-1] + 16

    return both(name, title, desc, draw)


def _cell(x: float, base: float, width: float, shares: Shares, tallest: float) -> list[svg.Element]:
    if shares is None:
        return [label(x, base - 4, "no marks", "tk")]
    slot = width / len(shares)
    # One path for all bars of a cell keeps the page small.
    bars = "".join(
        f"M{num(x + at * slot + 1)} {num(base)}v{num(-max(_HEIGHT * share / tallest, 1))}h{num(slot - 2)}V{num(base)}"
        for at, share in enumerate(shares)
        if share > 0
    )
    top = max(range(len(shares)), key=lambda at: shares[at])
    parts: list[svg.Element] = [line(x, base, x + width, base, "axis"), path(bars, "bar2")]
    if slot >= 17:
        y = base - _HEIGHT * shares[top] / tallest - 4
        text = percent(shares[top])
        half = text_width(text, 12) / 2
        middle = min(max((top + 0.5) * slot, half), max(width - half, half))
        parts.append(label(x + middle, y, text, "tk", "middle"))
    return parts


# The stylometric scan: how far apart scores are on the two sides of each length, and where they part most.


_TOP, _BOTTOM = 34.0, 190.0


def scan_line(
    name: str, points: Sequence[tuple[float, float]], chosen: float, terse: float, title: str, desc: str
) -> tuple[str, str]:
    """The figure for half a screen and for a phone. ``points`` are (words, difference), by words. A solid line marks
    the chosen split, a dashed one the length below which the plan calls a text terse."""
    lengths, gaps = [terse, chosen, *(x for x, _ in points)], [0.0, *(y for _, y in points)]
    reach = max(max(gaps) - min(gaps), 0.1)
    step = next((s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 5), reach)
    first, last = math.floor(min(gaps) / step), math.ceil(max(gaps) / step)
    up = Scale(first * step, last * step, _BOTTOM, _TOP)

    def draw(_: str, width: float) -> tuple[list[svg.Element], float]:
        across = Scale(min(lengths) - 1, max(lengths) + 1, 44, width - 12)
        parts: list[svg.Element] = []
        for at in range(first, last + 1):
            y = up(at * step)
            parts.append(line(44, y, width - 12, y, "axis" if at == 0 else "hair"))
            parts.append(label(38, y + 4, number(at * step, 2 if step < 0.1 else 1), "tk", "end"))
        parts += [
            line(across(terse), _TOP - 4, across(terse), _BOTTOM, "gd"),
            line(across(chosen), _TOP - 4, across(chosen), _BOTTOM, "gs"),
            path("M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points), "curve"),
        ]
        # The two lines' names on two heights, so that they stay apart however close the lines are.
        for value, y, text, kind in (
            (chosen, 12, f"split at {count(round(chosen))}", "tb"),
            (terse, 27, f"terse below {count(round(terse))}", "tk"),
        ):
            half = text_width(text, 13) / 2
            parts.append(label(min(max(across(value), half), width - half), y, text, kind, "middle"))
        for share in (0.0, 0.5, 1.0):
            x = across.left + share * (across.right - across.left)
            text = count(round(across.low + share * (across.high - across.low)))
            middle = min(x, width - text_width(text, 12) / 2)
            parts += [line(x, _BOTTOM, x, _BOTTOM + 5, "axis"), label(middle, _BOTTOM + 19, text, "tk", "middle")]
        parts.append(label(width - 12, _BOTTOM + 37, "words", "tk", "end"))
        return parts, _BOTTOM + 42

    return both(name, title, desc, draw, HALF)


# The histories of one asset class: every instrument thin, the equal-weight index bold, both from 100 on a log axis.


_CLASSES_TOP, _CLASSES_BOTTOM, _LEFT, _CLASSES_HEIGHT = 10.0, 168.0, 46.0, 192.0


def class_panel(
    name: str, lines: Floats, index: Floats, years: Sequence[float], shaded: Sequence[tuple[float, float]],
    title: str, desc: str,
) -> str:  # fmt: skip
    """A panel at phone width; three stand side by side on a screen."""
    ends = np.log10(np.concatenate([lines[np.isfinite(lines)], index, [100.0]]))
    up = Scale(float(ends.min()) - 0.02, float(ends.max()) + 0.02, _CLASSES_BOTTOM, _CLASSES_TOP)
    across = Scale(years[0], years[-1], _LEFT, NARROW - 8)
    parts: list[svg.Element] = [
        rect(across(first), _CLASSES_TOP, across(last) - across(first), _CLASSES_BOTTOM - _CLASSES_TOP, "shade")
        for first, last in shaded
    ]
    # Round values on a log axis, 100 among them and at most six.
    low = 10 ** float(ends.min())
    high = 10 ** float(ends.max())
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.2, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        found = [step * 10**decade for decade in decades for step in steps if low <= step * 10**decade <= high]
        if len({*found, 100}) <= 6:
            break
    for value in sorted({*found, 100}):
        y = up(math.log10(value))
        parts.append(line(_LEFT, y, NARROW - 8, y, "axis" if value == 100 else "hair"))
        parts.append(label(_LEFT - 6, y + 4, count(round(value)), "tk", "end"))
    xs = np.array([across(year) for year in years])
    thin = [_moves(xs, column, up) for column in lines.T]
    parts += [path("".join(thin), "eqw"), path(_moves(xs, index, up), "nav")]
    first, last = math.ceil(years[0]), math.floor(years[-1])
    for year in {first, (first + last) // 2, last}:
        parts.append(label(across(year), _CLASSES_HEIGHT - 6, str(year), "tk", "middle" if year < last - 1 else "end"))
    return frame(name, title, desc, (NARROW, _CLASSES_HEIGHT), parts, "both")


def _moves(xs: Floats, values: Floats, up: Scale) -> str:
    there = np.flatnonzero(np.isfinite(values))
    return drawn(xs[there], [up(math.log10(value)) for value in values[there].tolist()]) if there.size > 1 else ""


BINS: Final = (-0.3, -0.1, 0.1, 0.3, 0.5, 0.7)
"""Where one tint ends and the next begins; nothing is drawn around 0."""

_KINDS: Final = ("r-2", "r-1", "", "r1", "r2", "r3", "r4")
_HATCHED: Final = "r-1"
_CORRELATION_TOP: Final = 6.0


def correlation_map(
    name: str, groups: Sequence[tuple[str, int]], values: Floats, title: str, desc: str, *, numbers: bool = False
) -> tuple[str, str]:
    """The map for half a screen and for a phone."""

    def draw(called: str, width: float) -> tuple[list[svg.Element], float]:
        size, room = values.shape[0], max(text_width(one, 12) for one, _ in groups) + 8
        side = min((width - room) / size, 58.0)
        parts: list[svg.Element] = [hatch(f"{called}-h", "r-1l")]
        parts += _cells(called, values, side, 0 if numbers else 1)
        told = ((r, c) for r in range(size) for c in range(r + 1) if numbers and np.isfinite(values[r, c]))
        for row, column in told:
            x, y = (column + 0.5) * side, _CORRELATION_TOP + (row + 0.5) * side + 4
            parts.append(label(x, y, number(float(values[row, column])), "tk ink on", "middle"))
        start, bottom = 0, _CORRELATION_TOP + size * side
        for one, wide in groups:
            ends, top = (start + wide) * side, _CORRELATION_TOP + start * side
            if size > len(groups):
                below = top + wide * side
                parts += [line(0, below, ends, below, "axis"), line(ends, below, ends, bottom, "axis")]
            parts.append(label(ends + 6, top + wide * side / 2 + 4, fit(one, room, 12), "tk"))
            start += wide
        # The tints with the values that they begin at.
        y, step = bottom + 14, width / len(_KINDS)
        words = [f"< {number(BINS[0], 1)}", *(number(low, 1) for low in BINS)]
        for at, (kind, text) in enumerate(zip(_KINDS, words, strict=True)):
            fill = f"url(#{called}-h)" if kind == _HATCHED else None
            parts += [rect(at * step, y, step - 3, 12, kind or "r0", fill), label(at * step, y + 27, text, "tk")]
        return parts, bottom + 46

    return both(name, title, desc, draw, HALF)


def tint_of(value: float) -> str:
    """The class of the tint of a correlation; empty around 0.

    >>> tint_of(-0.35), tint_of(0.05), tint_of(0.7)
    ('r-2', '', 'r4')
    """
    return _KINDS[int(np.searchsorted(BINS, value, side="right"))]


def _cells(name: str, values: Floats, side: float, first: int) -> Iterator[svg.Element]:
    """One path a tint: neighbours of one tint in a row are one box."""
    moves: dict[str, list[str]] = {kind: [] for kind in _KINDS if kind}
    for row in range(values.shape[0]):
        kinds = [tint_of(values[row, at]) if np.isfinite(values[row, at]) else "" for at in range(row + 1 - first)]
        at = 0
        for kind, run in groupby(kinds):
            length = len(list(run))
            if kind:
                width = num(length * side)
                moves[kind].append(
                    f"M{num(at * side)} {num(_CORRELATION_TOP + row * side)}h{width}v{num(side)}h-{width}z"
                )
            at += length
    for kind, found in moves.items():
        if found:
            fill = f"url(#{name}-h)" if kind == _HATCHED else None
            yield svg.Path(class_=[kind], fill=fill, extra={"d": "".join(found)})
