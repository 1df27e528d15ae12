"""Differences on one axis through zero: interval, point, and for control cells the band and lines of their rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import svg

from assaymark.report.figures.canvas import HALF, NARROW, Scale, frame, hatch, label, line, path, rect
from assaymark.report.formats import fit, number, text_width

Mark = Literal["mh", "mq", "mn"]
_ROW: Final = 66
_PAD: Final = 10


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One difference. ``value`` is None where ``note`` says why it has no number, or that it is withheld.

    ``band`` is the range that the rule calls no difference, ``cut`` a line with its label beyond which it fails;
    ``shown`` are the numbers at the right, ``note`` the words below the mark.
    """

    title: str
    shown: str
    note: str
    value: float | None
    bounds: tuple[float, float] | None
    mark: Mark
    zero: str
    band: tuple[float, float] | None = None
    cut: float | None = None


def deltas(name: str, rows: Sequence[DeltaRow], title: str, desc: str) -> tuple[str, str]:
    """The figure for half a screen and for a phone: one axis in rubric points for all rows."""
    wide = _deltas(f"{name}-w", rows, title, desc, float(HALF), "wide")
    return wide, _deltas(f"{name}-n", rows, title, desc, float(NARROW), "narrow")


def _deltas(name: str, rows: Sequence[DeltaRow], title: str, desc: str, width: float, kind: str) -> str:
    low, high, step = _axis_of(rows)
    scale = Scale(low, high, _PAD, width - _PAD)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    y = 0.0
    for row in rows:
        parts += _row(name, row, scale, y, width)
        y += _ROW
    parts += _axis(scale, step, y + 2)
    return frame(name, title, desc, (width, y + 26), parts, kind)


def _axis_of(rows: Sequence[DeltaRow]) -> tuple[float, float, float]:
    """The ends of the axis and its step: every number drawn, zero, and the bands and lines of the rules."""
    ends = [0.0]
    for row in rows:
        ends += [value for pair in (row.bounds, row.band) if pair for value in pair]
        ends += [value for value in (row.value, row.cut) if value is not None]
    low, high = min(ends), max(ends)
    reach = max(high - low, 0.1)
    step = next((s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 6), reach)
    first, last = math.floor(low / step - 0.1), math.ceil(high / step + 0.1)
    return first * step, last * step, step


def _axis(scale: Scale, step: float, y: float) -> list[svg.Element]:
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "axis")]
    for at in range(round(scale.low / step), round(scale.high / step) + 1):
        x = scale(at * step)
        text = number(at * step, 2 if step < 0.1 else 1)
        half = text_width(text, 12) / 2
        anchor_x = min(max(x, half), scale.right + _PAD - half)
        parts += [line(x, y, x, y + 5, "axis"), label(anchor_x, y + 19, text, "tk", "middle")]
    return parts


def _row(name: str, row: DeltaRow, scale: Scale, y: float, width: float) -> list[svg.Element]:
    room = width - text_width(row.shown, 12) - 12
    parts: list[svg.Element] = [
        label(0, y + 14, fit(row.title, room, 13), "tb"),
        label(width, y + 14, row.shown, "tk", "end"),
        label(0, y + 57, fit(row.note, width, 12), "tk"),
    ]
    if row.value is None:
        return [*parts, rect(1, y + 21, width - 2, 20, "void", f"url(#{name}-h)")]
    middle = y + 31
    if row.band:
        parts.append(rect(scale(row.band[0]), y + 20, scale(row.band[1]) - scale(row.band[0]), 22, "panel"))
    parts.append(line(scale(0), y + 19, scale(0), y + 43, "gs"))
    if row.cut is not None:
        parts.append(line(scale(row.cut), y + 19, scale(row.cut), y + 43, "gd"))
    parts.append(line(scale.left, middle, scale.right, middle, "hair"))
    if row.bounds:
        parts.append(line(scale(row.bounds[0]), middle, scale(row.bounds[1]), middle, f"{row.mark}b"))
    return parts + square(scale(row.value), middle, row.mark)


def square(x: float, y: float, mark: Mark) -> list[svg.Element]:
    """A point whose fill is its permission: solid, left half filled, dashed."""
    whole, half = f"M{x - 5:.1f} {y - 5:.1f}h10v10h-10z", f"M{x - 5:.1f} {y - 5:.1f}h5v10h-5z"
    if mark == "mh":
        return [path(whole, "mh gap")]
    if mark == "mq":
        return [path(whole, "open gap"), path(whole, "open mqs"), path(half, "mq")]
    return [path(whole, "open gap"), path(whole, "open mns")]
