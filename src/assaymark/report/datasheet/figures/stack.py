"""What becomes of a pair shown in both orders: one stacked bar a judge, in greys and patterns, with pair counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.report.datasheet.figures.marks import PARTS, Panel, block, patterns
from assaymark.report.figures.canvas import apart, label
from assaymark.report.figures.judges import judge_marks
from assaymark.report.formats import count, shortened, text_width

_BAR, _ROW = 28.0, 68.0


@dataclass(frozen=True, slots=True)
class StackRow:
    """A judge: its pairs by class, in the order of `PARTS`, the words above its bar, and its place among the judges.

    ``strong`` if it is the judge of the page.
    """

    name: str
    pairs: tuple[int, ...]
    head: str
    strong: bool = False
    at: int = 0


def stacks(name: str, rows: Sequence[StackRow], width: float) -> Panel:
    """All judges, one bar each; every bar is all pairs of that judge."""
    parts: list[svg.Element] = [patterns(name)]
    y = _legend(name, width, parts)
    room = width - max((text_width(row.head, 12) for row in rows), default=0.0) - 12
    names = shortened([row.name for row in rows], room, 13)
    for row, title in zip(rows, names, strict=True):
        drawn = [
            label(0, y + 14, title, "k1t" if row.strong else "tb"),
            label(width, y + 14, row.head, "tk", "end"),
            *_bar(name, row.pairs, y + 20, width),
        ]
        parts += judge_marks(row.at, drawn)
        y += _ROW
    return Panel(width, y + 4, tuple(parts))


def _legend(name: str, width: float, parts: list[svg.Element]) -> float:
    """Boxes with their words, on as many lines as they need; the height below them."""
    x, y = 0.0, 0.0
    for _, word, fill in PARTS:
        room = 18 + text_width(word, 12) + 12
        if x + room - 12 > width:
            x, y = 0.0, y + 20
        parts += [*block(name, x + 0.5, y + 4.5, 12, 11, fill), label(x + 18, y + 14, word, "tk")]
        x += room
    return y + 30


def _bar(name: str, pairs: Sequence[int], y: float, width: float) -> list[svg.Element]:
    total = sum(pairs)
    if not total:
        return []
    parts: list[svg.Element] = []
    labels: list[tuple[float, str]] = []
    x = 0.5
    for (_, _, fill), n in zip(PARTS, pairs, strict=True):
        size = (width - 1) * n / total
        if n:
            parts += block(name, x, y, size, _BAR, fill)
            labels.append((x + size / 2, count(n)))
        x += size
    centres = apart([at for at, _ in labels], [text_width(text, 12) + 6 for _, text in labels], width)
    parts += [label(at, y + _BAR + 15, text, "tk", "middle") for at, (_, text) in zip(centres, labels, strict=True)]
    return parts
