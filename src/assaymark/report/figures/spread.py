"""Where scores lie on the scale: a box for honest records, one dot a text for a control cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.report.figures.canvas import HALF, NARROW, Scale, frame, hatch, label, line, num, path, rect
from assaymark.report.formats import fit, text_width

_ROW: Final = 66
DOTS: Final = 60
"""The most dots of one row; more texts are thinned evenly, so that the shape stays and the page small."""


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """One distribution on the scale 1 to 5: ``values`` are dots, ``box`` its quartiles with the median between.

    Neither: the row is withheld or not measured, and ``note`` says which.
    """

    title: str
    shown: str
    note: str
    box: tuple[float, float, float] | None
    values: tuple[float, ...] = ()


def spreads(name: str, rows: Sequence[SpreadRow], title: str, desc: str) -> tuple[str, str]:
    """The figure for half a screen and for a phone."""
    wide = _spreads(f"{name}-w", rows, title, desc, float(HALF), "wide")
    return wide, _spreads(f"{name}-n", rows, title, desc, float(NARROW), "narrow")


def _spreads(name: str, rows: Sequence[SpreadRow], title: str, desc: str, width: float, kind: str) -> str:
    scale = Scale(1, 5, 10, width - 10)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    y = 0.0
    for row in rows:
        room = width - text_width(row.shown, 12) - 12
        parts += [
            label(0, y + 14, fit(row.title, room, 13), "tb"),
            label(width, y + 14, row.shown, "tk", "end"),
            label(0, y + 57, fit(row.note, width, 12), "tk"),
        ]
        parts += _marks(name, row, scale, y + 31, width)
        y += _ROW
    parts.append(line(scale.left, y + 2, scale.right, y + 2, "axis"))
    for mark in range(1, 6):
        x = scale(mark)
        parts += [line(x, y + 2, x, y + 7, "axis"), label(x, y + 21, str(mark), "tk", "middle")]
    return frame(name, title, desc, (width, y + 26), parts, kind)


def _marks(name: str, row: SpreadRow, scale: Scale, y: float, width: float) -> list[svg.Element]:
    if row.box is None and not row.values:
        return [rect(1, y - 10, width - 2, 20, "void", f"url(#{name}-h)")]
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "hair")]
    if row.values:
        # One path for all dots of a cell keeps the page small; equal scores are spread over five heights.
        dots = "".join(f"M{num(scale(v))} {num(y - 6 + 3 * (at % 5))}h0" for at, v in enumerate(thinned(row.values)))
        parts.append(path(dots, "dots"))
    if row.box is not None:
        low, middle, high = (scale(value) for value in row.box)
        if not row.values:
            parts.append(rect(low, y - 8, high - low, 16, "quart"))
        parts.append(line(middle, y - 11, middle, y + 11, "gs"))
    return parts


def thinned(values: Sequence[float]) -> Sequence[float]:
    """At most so many dots, evenly from the sorted scores."""
    if len(values) <= DOTS:
        return values
    return [values[at * len(values) // DOTS] for at in range(DOTS)]
