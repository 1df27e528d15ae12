"""Correlations as a map: one cell a pair below the diagonal, tinted by size, negative ones hatched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np
import svg

from assaymark.report.figures.canvas import HALF, NARROW, frame, hatch, label, line, num, rect
from assaymark.report.figures.nav_paths import Floats
from assaymark.report.formats import fit, number, text_width

BINS: Final = (-0.3, -0.1, 0.1, 0.3, 0.5, 0.7)
"""Where one tint ends and the next begins; nothing is drawn around 0."""

_KINDS: Final = ("r-2", "r-1", "", "r1", "r2", "r3", "r4")
_HATCHED: Final = "r-1"
_TOP: Final = 6.0


def correlation_map(
    name: str, groups: Sequence[tuple[str, int]], values: Floats, title: str, desc: str, *, numbers: bool = False
) -> tuple[str, str]:
    """The map for half a screen and for a phone.

    Parameters
    ----------
    name : str
        Unique on its page.
    groups : sequence of (name, size)
        Neighbouring rows that belong together, in order; their sizes sum to n.
    values : float array of shape (n, n)
        Symmetric, NaN where a pair has none. The diagonal is drawn only with ``numbers``.
    title, desc : str
        What is said to those who cannot see it.
    numbers : bool
        Whether each cell has its number.
    """
    wide, narrow = (
        _map(f"{name}-{kind[0]}", groups, values, (title, desc), size, kind, numbers=numbers)
        for size, kind in ((float(HALF), "wide"), (float(NARROW), "narrow"))
    )
    return wide, narrow


def tint_of(value: float) -> str:
    """The class of the tint of a correlation; empty around 0.

    >>> tint_of(-0.35), tint_of(0.05), tint_of(0.7)
    ('r-2', '', 'r4')
    """
    return _KINDS[int(np.searchsorted(BINS, value, side="right"))]


def _map(
    name: str,
    groups: Sequence[tuple[str, int]],
    values: Floats,
    words: tuple[str, str],
    width: float,
    kind: str,
    *,
    numbers: bool,
) -> str:
    size = values.shape[0]
    room = max(text_width(one, 12) for one, _ in groups) + 8
    side = min((width - room) / size, 58.0)
    parts: list[svg.Element] = [hatch(f"{name}-h", "r-1l")]
    parts += _cells(name, values, side, first=0 if numbers else 1)
    if numbers:
        parts += [
            label((c + 0.5) * side, _TOP + (r + 0.5) * side + 4, number(float(values[r, c])), "tk ink on", "middle")
            for r in range(size)
            for c in range(r + 1)
            if np.isfinite(values[r, c])
        ]
    start = 0
    for one, count in groups:
        ends, top = (start + count) * side, _TOP + start * side
        if size > len(groups):
            below, last = top + count * side, _TOP + size * side
            parts += [line(0, below, ends, below, "axis"), line(ends, below, ends, last, "axis")]
        parts.append(label(ends + 6, top + count * side / 2 + 4, fit(one, room, 12), "tk"))
        start += count
    bottom = _TOP + size * side
    return frame(name, *words, (width, bottom + 46), [*parts, *_legend(name, bottom + 14, width)], kind)


def _cells(name: str, values: Floats, side: float, *, first: int) -> Iterator[svg.Element]:
    """One path a tint: neighbours of one tint in a row are one box."""
    moves: dict[str, list[str]] = {kind: [] for kind in _KINDS if kind}
    for row in range(values.shape[0]):
        kinds = [tint_of(values[row, at]) if np.isfinite(values[row, at]) else "" for at in range(row + 1 - first)]
        at = 0
        for kind, run in groupby(kinds):
            length = len(list(run))
            if kind:
                width = num(length * side)
                moves[kind].append(f"M{num(at * side)} {num(_TOP + row * side)}h{width}v{num(side)}h-{width}z")
            at += length
    for kind, found in moves.items():
        if found:
            fill = f"url(#{name}-h)" if kind == _HATCHED else None
            yield svg.Path(class_=[kind], fill=fill, extra={"d": "".join(found)})


def _legend(name: str, y: float, width: float) -> Iterator[svg.Element]:
    """The tints with the values that they begin at."""
    step = width / len(_KINDS)
    words = [f"< {number(BINS[0], 1)}", *(number(low, 1) for low in BINS)]
    for at, (kind, text) in enumerate(zip(_KINDS, words, strict=True)):
        yield rect(at * step, y, step - 3, 12, kind or "r0", f"url(#{name}-h)" if kind == _HATCHED else None)
        yield label(at * step, y + 27, text, "tk")
