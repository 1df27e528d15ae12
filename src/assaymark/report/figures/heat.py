"""Permitted gaps between agents: one tinted cell for each order that may be said, a hatch where none may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.report.figures.canvas import NARROW, frame, hatch, label, path, rect
from assaymark.report.formats import fit, number, shortened, text_width

TINTS: Final = (1.0, 2.0, 4.0)
"""Where one tint ends and the next begins, in units of the detectable effect."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """An order that may be said: how large the gap is in units of the detectable effect, and whether Holm marks it."""

    size: float | None
    significant: bool


def heat(
    name: str,
    agents: Sequence[str],
    cells: Mapping[tuple[int, int], HeatCell],
    never: Sequence[tuple[int, int]],
    title: str,
    desc: str,
) -> str:
    """One dimension at phone width; three stand side by side on a screen.

    ``cells`` are keyed by (row, column): the agent of the row scores above that of the column. A pair without a cell
    either way is hatched; those in ``never`` have no common question and stay empty.
    """
    size = len(agents)
    names = min(128.0, 36 + max((text_width(agent, 12) for agent in agents), default=0))
    side = min((NARROW - names) / max(size, 1), 52.0)
    top = 22.0
    drawn = {*cells, *((c, r) for r, c in cells), *never, *((c, r) for r, c in never)}
    kept = [(r, c) for r in range(size) for c in range(size) if r != c and (r, c) not in drawn]
    hatched = "".join(_box(names, top, side, r, c) for r, c in kept)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    if hatched:
        parts.append(svg.Path(class_=["novoid"], fill=f"url(#{name}-h)", extra={"d": hatched}))
    for tint in range(len(TINTS) + 1):
        moves = "".join(_box(names, top, side, r, c) for (r, c), cell in sorted(cells.items()) if _tint(cell) == tint)
        if moves:
            parts.append(path(moves, f"tint{tint + 1}"))
    for (r, c), cell in sorted(cells.items()):
        parts += _text(cell, names + (c + 0.5) * side, top + (r + 0.5) * side, side)
    for at, agent in enumerate(shortened(list(agents), names - 26, 12)):
        parts += [
            label(names - 6, top + (at + 0.5) * side + 4, f"{agent} {at + 1}", "tk", "end"),
            label(names + (at + 0.5) * side, 14, str(at + 1), "tk", "middle"),
        ]
    parts.append(rect(names, top, size * side, size * side, "grid"))
    return frame(name, title, desc, (NARROW, top + size * side + 2), parts, "both")


def _tint(cell: HeatCell) -> int:
    return 0 if cell.size is None else sum(cell.size >= cut for cut in TINTS)


def _box(left: float, top: float, side: float, row: int, column: int) -> str:
    inner = side - 2
    return f"M{left + column * side + 1:.1f} {top + row * side + 1:.1f}h{inner:.1f}v{inner:.1f}h{-inner:.1f}z"


def _text(cell: HeatCell, x: float, y: float, side: float) -> list[svg.Element]:
    """The size in the cell, and a dot below it where the contrast is significant after Holm."""
    parts: list[svg.Element] = []
    if cell.size is not None:
        digits = 1 if cell.size < 9.95 else 0
        text = number(cell.size, digits)
        parts.append(label(x, y + 2.5, fit(text, side, 12), "tk ink", "middle"))
    if cell.significant:
        parts.append(path(f"M{x:.1f} {y + side / 2 - 3.2:.1f}h0", "holm"))
    return parts
