"""Supported orders of agents: one filled cell for each, a hatch where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import svg

from assaymark.records import Level
from assaymark.report.figures.canvas import NARROW, frame, hatch, label, path, rect
from assaymark.report.formats import shortened, text_width

_MARKS: Final[Mapping[Level, tuple[str, str]]] = {"headline": ("H", "tint4"), "qualified": ("Q", "tint2")}
"""The letter and the tint of each level."""


def heat(name: str, agents: Sequence[str], cells: Mapping[tuple[int, int], Level], title: str, desc: str) -> str:
    """One score at phone width; three stand side by side on a screen.

    ``cells`` are levels by (row, column): the agent of the row scores above that of the column. A pair without a cell
    either way is hatched.
    """
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
