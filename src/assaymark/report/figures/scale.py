"""How each judge used the marks of the scale: five small bars a judge and dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.figures.canvas import NARROW, WIDE, frame, label, line, num, path
from assaymark.report.figures.judges import judge_marks
from assaymark.report.formats import fit, percent, shortened, text_width

_HEIGHT = 28.0


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One dimension: for each judge the share of each mark, lowest mark first, or None where it is not known."""

    title: str
    shares: tuple[tuple[float, ...] | None, ...]


def scale_use(name: str, judges: Sequence[str], rows: Sequence[ScaleRow], title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone. One height scale for all; each cell’s tallest bar has its percent."""
    wide = _grid(f"{name}-w", judges, rows, title, desc, wide=True)
    return wide, _grid(f"{name}-n", judges, rows, title, desc, wide=False)


def _grid(name: str, judges: Sequence[str], rows: Sequence[ScaleRow], title: str, desc: str, *, wide: bool) -> str:
    width, left = (WIDE, 196.0) if wide else (NARROW, 0.0)
    cell = (width - left) / max(len(judges), 1)
    inner = cell - (28 if wide else 12)
    step = 50.0 if wide else 70.0
    tallest = max(share for row in rows for shares in row.shares if shares for share in shares)
    tops = [22.0 + step * at for at in range(len(rows) + 1)]
    parts: list[svg.Element] = [
        label(0, y + 38 if wide else y + 18, fit(row.title, 186 if wide else NARROW, 13))
        for row, y in zip(rows, tops, strict=False)
    ]
    for at, judge in enumerate(shortened(judges, inner, 13)):
        x = left + at * cell
        column: list[svg.Element] = [label(x, 14, judge, "tb")]
        for row, y in zip(rows, tops, strict=False):
            column += _cell(x, y + step - 8, inner, row.shares[at], tallest)
        parts += judge_marks(at, [*column, *_marks(x, tops[-1] + 8, inner)])
    return frame(name, title, desc, (width, tops[-1] + 16), parts, "wide" if wide else "narrow")


def _cell(x: float, base: float, width: float, shares: tuple[float, ...] | None, tallest: float) -> list[svg.Element]:
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


def _marks(x: float, y: float, width: float) -> list[svg.Element]:
    slot = width / 5
    if slot < 9:
        return [label(x, y, "1", "tk"), label(x + width, y, "5", "tk", "end")]
    return [label(x + (at + 0.5) * slot, y, str(at + 1), "tk", "middle") for at in range(5)]
