"""Figures on a grid: supported orders, shares as bars, ranks, use of the scale, correlations, and asset classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from assaymark.records import Level
from assaymark.report.charts import canvas
from assaymark.report.charts.canvas import HALF, NARROW, WIDE, Drawn, Scale, hatch, label, line, num, path, rect
from assaymark.report.charts.paths import Floats, path_data
from assaymark.report.text import fit, shortened, text_width
from assaymark.text import count, number, percent


def order_grid(agents: Sequence[str], cells: Mapping[tuple[int, int], Level], name: str, width: float) -> Drawn:
    """A grid of the supported orders of one score: ``cells`` are levels of the row's agent above the column's."""
    size, top = len(agents), 22.0
    names = min(128.0, 36 + max((text_width(agent, 12) for agent in agents), default=0))
    side = min((width - names) / max(size, 1), 52.0)

    def box(row: int, column: int) -> str:
        inner = f"{side - 2:.1f}"
        return f"M{names + column * side + 1:.1f} {top + row * side + 1:.1f}h{inner}v{inner}h-{inner}z"

    filled = {*cells, *((column, row) for row, column in cells)}
    hatched = "".join(box(r, c) for r in range(size) for c in range(size) if r != c and (r, c) not in filled)
    parts: list[canvas.Element] = [hatch(f"{name}-h")]
    parts += [path(hatched, "novoid", f"url(#{name}-h)")] if hatched else []
    for level, letter, tint in (("headline", "S", "tint4"), ("qualified", "C", "tint2")):
        places = sorted(place for place, reached in cells.items() if reached == level)
        parts += [path("".join(box(r, c) for r, c in places), tint)] if places else []
        for r, c in places:
            parts.append(label(names + (c + 0.5) * side, top + (r + 0.5) * side + 4, letter, "tk ink", "middle"))
    for at, agent in enumerate(shortened(list(agents), names - 26, 12)):
        middle = (at + 0.5) * side
        parts.append(label(names - 6, top + middle + 4, f"{agent} {at + 1}", "tk", "end"))
        parts.append(label(names + middle, 14, str(at + 1), "tk", "middle"))
    parts.append(rect(names, top, size * side, size * side, "grid"))
    return parts, top + size * side + 2


# --- shares in a table of bars: one row per group, one column per state, the percent beside each bar ------------------


BarRow = tuple[str, str, tuple[tuple[float, str], ...]]
"""A group: its name, its total count (as text), and for each state a share in [0, 1] and the text beside its bar."""


def bar_table(
    columns: Sequence[str], rows: Sequence[BarRow], _: str, screen: float, *, of: str = "numbers", total: bool = True
) -> Drawn:
    """A table of bars for a screen, and for a phone two panels per line, one per state; rows count ``of``. With
    ``total`` the first row is the total of the others, in bold."""

    def bar(x: float, y: float, reach: float, cell: tuple[float, str], bold: bool) -> list[canvas.Element]:
        share, text = cell
        drawn = [rect(x, y + 1, max(reach * share, 1.5), 13, "bar1" if bold else "bar2")] if share > 0 else []
        return [*drawn, label(x + max(reach * share, 0) + 6, y + 12, text, "tk")]

    parts, names = list[canvas.Element](), [name for name, *_ in rows]
    if screen == WIDE:
        left, y = 250.0, 24.0
        width = (WIDE - left) / max(len(columns), 1)
        parts.append(label(left - 24, 14, of, "tk", "end"))
        parts += [label(left + at * width, 14, fit(text, width - 4, 13), "tb") for at, text in enumerate(columns)]
        for place, (words, (_, n, cells)) in enumerate(zip(shortened(names, 180, 13), rows, strict=True)):
            bold = total and not place
            parts.append(label(0, y + 18, words, "tb" if bold else ""))
            parts.append(label(left - 24, y + 18, n, "t2", "end"))
            for at, cell in enumerate(cells):
                parts += bar(left + at * width, y + 6, width - 14.0 - 48, cell, bold)
            y += 26
            parts.append(line(0, y, WIDE, y, "rule" if bold else "hair"))
            y += 4 if bold else 0
        parts += [line(left + at * width, 24, left + at * width, y, "hair") for at in range(len(columns))]
        return parts, y + 4
    panel, room, height = 169.0, 110.0, 0.0
    titles = shortened(names, room, 12)
    reach = panel - room - 12 - max(text_width(text, 12) for *_, cells in rows for _, text in cells)
    for at, column in enumerate(columns):
        x, y = (at % 2) * (panel + 12), (at // 2) * (len(rows) * 20 + 40.0)
        parts += [label(x, y + 16, fit(column, panel, 13), "tb"), line(x, y + 24, x + panel, y + 24, "hair")]
        for place, (_, _, cells) in enumerate(rows):
            top, bold = y + 28 + 20 * place, total and not place
            parts.append(label(x, top + 14, titles[place], "tb" if bold else "tk"))
            parts += bar(x + room + 4, top + 2, reach, cells[at], bold)
        height = y + 28 + 20 * len(rows)
        parts.append(line(x + room + 4, y + 28, x + room + 4, height, "hair"))
    return parts, height + 8


# --- how often each agent has each rank when the clusters are resampled -----------------------------------------------


PLACES = 8

RankRow = tuple[str, tuple[float, ...] | None, int, Level]
"""An agent: the share of resamples in which it has each rank from the first on (None if not shown), and its supported
rank, whose bar is filled by its level."""


def rank_bars(rows: Sequence[RankRow], places: int, called: str, width: float) -> Drawn:
    """Rank distributions for a screen and for a phone. All bars share one scale; a full bar is 100 %."""
    columns = rank_heads(places)
    left, step, room = (124.0, 56.0, 112.0) if width == HALF else (0.0, 74.0, float(NARROW))
    slot, y, parts = (width - left) / len(columns), 22.0, list[canvas.Element]([hatch(f"{called}-h")])
    parts += [label(left + (at + 0.5) * slot, 14, head, "tk", "middle") for at, head in enumerate(columns)]
    names = shortened([name for name, *_ in rows], room, 13)
    for (_, shares, supported, level), text in zip(rows, names, strict=True):
        base, bar = y + step - 8, min(slot - 6, 46.0)
        parts.append(label(0, base - 6 if width == HALF else y + 16, text, "tb" if supported else ""))
        y += step
        if shares is None:
            parts.append(rect(left + 1, base - 24, width - left - 2, 22, "void", f"url(#{called}-h)"))
            continue
        parts.append(line(left, base, width, base, "hair"))
        for place, share in enumerate(binned(shares, places), 1):
            if share > 0:
                middle, height, is_rank = left + (place - 0.5) * slot, max(30.0 * share, 1.5), place == supported
                kind = ("mh" if level == "headline" else "mq") if is_rank else "bar2"
                parts.append(path(f"M{middle - bar / 2:.1f} {base:.1f}v{-height:.1f}h{bar:.1f}V{base:.1f}z", kind))
                parts.append(label(middle, base - height - 4, percent(share), "tb" if is_rank else "tk", "middle"))
    return parts, y + 4


def rank_heads(places: int) -> tuple[str, ...]:
    """The ranks as column heads; the eighth and later ranks share a column.

    >>> rank_heads(3), rank_heads(10)[-2:]
    (('1', '2', '3'), ('7', '8 to 10'))
    """
    columns = [str(at) for at in range(1, places + 1)]
    return tuple(columns) if places <= PLACES else (*columns[: PLACES - 1], f"{PLACES} to {places}")


def binned(shares: Sequence[float], places: int) -> tuple[float, ...]:
    """Shares added up in the columns of `rank_heads`."""
    padded = [*shares, *([0.0] * places)][:places]
    return tuple(padded) if places <= PLACES else (*padded[: PLACES - 1], sum(padded[PLACES - 1 :]))


Shares = tuple[float, ...] | None
"""The share of each mark of a judge, the lowest mark first; None if it is not known."""


def scale_use(
    judges: Sequence[str], rows: Sequence[tuple[str, Sequence[Shares]]], marks: Sequence[str], _: str, width: float
) -> Drawn:
    """Histograms of each judge's marks by dimension, on one height scale, with the percent of each tallest bar."""
    tallest = max(share for _, cells in rows for shares in cells if shares for share in shares)

    def cell(x: float, base: float, width: float, shares: Shares) -> list[canvas.Element]:
        if shares is None:
            return [label(x, base - 4, fit("no marks", width, 12), "tk")]
        slot, top = width / len(shares), max(range(len(shares)), key=lambda at: shares[at])
        # One path for all bars of a cell keeps the page small.
        bars = "".join(
            f"M{num(x + at * slot + 1)} {num(base)}v{num(-max(28 * share / tallest, 1))}h{num(slot - 2)}V{num(base)}"
            for at, share in enumerate(shares)
            if share > 0
        )
        parts: list[canvas.Element] = [line(x, base, x + width, base, "axis"), path(bars, "bar2")]
        if slot >= 17:
            half = text_width(percent(shares[top]), 12) / 2
            middle = min(max((top + 0.5) * slot, half), max(width - half, half))
            parts.append(label(x + middle, base - 28 * shares[top] / tallest - 4, percent(shares[top]), "tk", "middle"))
        return parts

    left, step, space, room, down = (196.0, 50.0, 28, 186, 38) if width == WIDE else (0.0, 70.0, 12, NARROW, 18)
    size, tops = (width - left) / max(len(judges), 1), [22.0 + step * at for at in range(len(rows) + 1)]
    inner, foot = size - space, tops[-1] + 8
    parts: list[canvas.Element] = [
        label(0, y + down, fit(words, room, 13)) for (words, _), y in zip(rows, tops, strict=False)
    ]
    for at, judge in enumerate(shortened(judges, inner, 13)):
        x, slot = left + at * size, inner / len(marks)
        column: list[canvas.Element] = [label(x, 14, judge, "tb")]
        for (_, cells), y in zip(rows, tops, strict=False):
            column += cell(x, y + step - 8, inner, cells[at])
        if slot < 9 * max(map(len, marks)):
            column += [label(x, foot, marks[0], "tk"), label(x + inner, foot, marks[-1], "tk", "end")]
        else:
            column += [label(x + (k + 0.5) * slot, foot, mark, "tk", "middle") for k, mark in enumerate(marks)]
        parts += canvas.judge_marks(at, column)
    return parts, tops[-1] + 16


def scan_line(points: Sequence[tuple[float, float]], chosen: float, terse: float, _: str, width: float) -> Drawn:
    """The stylometric scan: (words, difference) points, with the ``chosen`` split and the ``terse`` limit in words."""
    lengths, ys, top, bottom = [terse, chosen, *(x for x, _ in points)], [0.0, *(y for _, y in points)], 34.0, 190.0
    step = canvas.step_size(max(max(ys) - min(ys), 0.1), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0), 5)
    first, last = math.floor(min(ys) / step), math.ceil(max(ys) / step)
    up, ticks = Scale(first * step, last * step, bottom, top), canvas.tick_labels(first, last, step)
    across, parts = Scale(min(lengths) - 1, max(lengths) + 1, 44, width - 12), list[canvas.Element]()
    parts += canvas.grid_lines(up, 44, width - 12, [(at, text, "hair" if at else "axis") for at, text in ticks])
    parts += [line(across(x), top - 4, across(x), bottom, kind) for x, kind in ((terse, "gd"), (chosen, "gs"))]
    parts.append(path("M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points), "curve"))
    # The labels of the two lines at two heights, so that they never overlap.
    for value, y, text, kind in ((chosen, 12, f"split at {count(round(chosen))}", "tb"),
                                 (terse, 27, f"terse below {count(round(terse))}", "tk")):  # fmt: skip
        half = text_width(text, 13) / 2
        parts.append(label(min(max(across(value), half), width - half), y, text, kind, "middle"))
    for share in (0.0, 0.5, 1.0):
        x = across.left + share * (across.right - across.left)
        text = count(round(across.low + share * (across.high - across.low)))
        middle = min(x, width - text_width(text, 12) / 2)
        parts += [line(x, bottom, x, bottom + 5, "axis"), label(middle, bottom + 19, text, "tk", "middle")]
    parts.append(label(width - 12, bottom + 37, "words", "tk", "end"))
    return parts, bottom + 42


def class_panel(
    lines: Floats, index: Floats, years: Sequence[float], shaded: Sequence[tuple[float, float]], _: str, width: float
) -> Drawn:
    """The histories of an asset class from 100 on a log axis: instruments thin, the equal-weight index bold."""
    top, bottom, left, height = 10.0, 168.0, 46.0, 192.0
    ends = np.log10(np.concatenate([lines[np.isfinite(lines)], index, [100.0]]))
    least, most = float(ends.min()), float(ends.max())
    up, across = Scale(least - 0.02, most + 0.02, bottom, top), Scale(years[0], years[-1], left, width - 8)
    parts: list[canvas.Element] = [
        rect(across(first), top, across(last) - across(first), bottom - top, "shade") for first, last in shaded
    ]
    # Round values on a log axis, 100 among them and at most six.
    low, high = 10**least, 10**most
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 1.2, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        ticks = [step * 10**decade for decade in decades for step in steps if low <= step * 10**decade <= high]
        if len({*ticks, 100}) <= 6:
            break
    rungs = [(math.log10(at), count(round(at)), "axis" if at == 100 else "hair") for at in sorted({*ticks, 100})]
    parts += canvas.grid_lines(up, left, width - 8, rungs)
    xs, moves = np.array([across(year) for year in years]), list[str]()
    for values in (*lines.T, index):
        there = np.flatnonzero(np.isfinite(values))
        points = [up(math.log10(value)) for value in values[there].tolist()]
        moves.append(path_data(xs[there], points) if there.size > 1 else "")
    parts += [path("".join(moves[:-1]), "eqw"), path(moves[-1], "nav")]
    first, last = math.ceil(years[0]), math.floor(years[-1])
    for year in {first, (first + last) // 2, last}:
        parts.append(label(across(year), height - 6, str(year), "tk", "middle" if year < last - 1 else "end"))
    return parts, height


# --- correlations as a map: one cell per pair below the diagonal, tinted by size, negative ones hatched ---------------


BINS: Final = (-0.3, -0.1, 0.1, 0.3, 0.5, 0.7)
"""Lower bounds of the tints; nothing is drawn around 0."""

_TINTS: Final = ("r-2", "r-1", "", "r1", "r2", "r3", "r4")
_HATCHED: Final = "r-1"


def tint_of(value: float) -> str:
    """The class of the tint of a correlation; empty around 0."""
    return _TINTS[int(np.searchsorted(BINS, value, side="right"))]


def correlation_map(
    groups: Sequence[tuple[str, int]], values: Floats, called: str, width: float, *, numbers: bool = False
) -> Drawn:
    """A map of correlations for half a screen and for a phone, perhaps with their ``numbers``."""
    size, room, top = values.shape[0], max(text_width(group, 12) for group, _ in groups) + 8, 6.0
    side = min((width - room) / size, 58.0)
    parts, moves = [hatch(f"{called}-h", "r-1l")], {kind: list[str]() for kind in _TINTS if kind}
    # One path per tint: neighbours of one tint in a row are one box.
    for row in range(size):
        of = [tint_of(rho) if np.isfinite(rho) else "" for rho in values[row, : row + numbers]]
        at = 0
        for kind, run in groupby(of):
            length = len(list(run))
            if kind:
                wide = num(length * side)
                moves[kind].append(f"M{num(at * side)} {num(top + row * side)}h{wide}v{num(side)}h-{wide}z")
            at += length
    fills = {_HATCHED: f"url(#{called}-h)"}
    parts += [path("".join(boxes), kind, fills.get(kind)) for kind, boxes in moves.items() if boxes]
    for r, c in np.argwhere(np.tril(np.isfinite(values))).tolist() if numbers else ():
        x, y = (c + 0.5) * side, top + (r + 0.5) * side + 4
        parts.append(label(x, y, number(float(values[r, c])), "tk ink on", "middle"))
    start, bottom = 0, top + size * side
    for group, wide in groups:
        ends, above, below = (start + wide) * side, top + start * side, top + start * side + wide * side
        if size > len(groups):
            parts += [line(0, below, ends, below, "axis"), line(ends, below, ends, bottom, "axis")]
        parts.append(label(ends + 6, above + wide * side / 2 + 4, fit(group, room, 12), "tk"))
        start += wide
    # The tints with their lower bounds.
    y, step = bottom + 14, width / len(_TINTS)
    for at, (kind, text) in enumerate(
        zip(_TINTS, (f"< {number(BINS[0], 1)}", *(number(low, 1) for low in BINS)), strict=True)
    ):
        parts += [rect(at * step, y, step - 3, 12, kind or "r0", fills.get(kind)),
                  label(at * step, y + 27, text, "tk")]  # fmt: skip
    return parts, bottom + 46
