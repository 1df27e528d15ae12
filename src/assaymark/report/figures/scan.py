"""The stylometric scan: how far apart scores are on the two sides of each length, and where they part most."""

from __future__ import annotations

import math
from collections.abc import Sequence

import svg

from assaymark.report.figures.canvas import HALF, NARROW, Scale, frame, label, line, path
from assaymark.report.formats import count, number, text_width

_TOP, _BOTTOM = 34.0, 190.0


def scan_line(
    name: str, points: Sequence[tuple[float, float]], chosen: float, terse: float, title: str, desc: str
) -> tuple[str, str]:
    """The figure for half a screen and for a phone. ``points`` are (words, difference), by words.

    A solid line marks the chosen split, a dashed one the length below which the plan calls a text terse.
    """
    wide = _scan(f"{name}-w", points, chosen, terse, (title, desc), float(HALF), "wide")
    return wide, _scan(f"{name}-n", points, chosen, terse, (title, desc), float(NARROW), "narrow")


def _scan(
    name: str,
    points: Sequence[tuple[float, float]],
    chosen: float,
    terse: float,
    words: tuple[str, str],
    width: float,
    kind: str,
) -> str:
    lengths, gaps = [x for x, _ in points], [y for _, y in points]
    across = Scale(min(*lengths, terse, chosen) - 1, max(*lengths, terse, chosen) + 1, 44, width - 12)
    low, high, step = _ends(gaps)
    up = Scale(low, high, _BOTTOM, _TOP)
    parts: list[svg.Element] = []
    for at in range(round(low / step), round(high / step) + 1):
        y = up(at * step)
        parts.append(line(44, y, width - 12, y, "axis" if at == 0 else "hair"))
        parts.append(label(38, y + 4, number(at * step, 2 if step < 0.1 else 1), "tk", "end"))
    parts += [
        line(across(terse), _TOP - 4, across(terse), _BOTTOM, "gd"),
        line(across(chosen), _TOP - 4, across(chosen), _BOTTOM, "gs"),
        path("M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in points), "curve"),
        *_heads(across, chosen, terse, width),
    ]
    for share in (0.0, 0.5, 1.0):
        x = across.left + share * (across.right - across.left)
        text = count(round(across.low + share * (across.high - across.low)))
        middle = min(x, width - text_width(text, 12) / 2)
        parts += [line(x, _BOTTOM, x, _BOTTOM + 5, "axis"), label(middle, _BOTTOM + 19, text, "tk", "middle")]
    parts.append(label(width - 12, _BOTTOM + 37, "words", "tk", "end"))
    return frame(name, *words, (width, _BOTTOM + 42), parts, kind)


def _heads(across: Scale, chosen: float, terse: float, width: float) -> list[svg.Element]:
    """The two lines' names on two heights, so that they stay apart however close the lines are."""
    found: list[svg.Element] = []
    for x, y, text, kind in (
        (across(chosen), 12, f"split at {count(round(chosen))}", "tb"),
        (across(terse), 27, f"terse below {count(round(terse))}", "tk"),
    ):
        half = text_width(text, 13) / 2
        found.append(label(min(max(x, half), width - half), y, text, kind, "middle"))
    return found


def _ends(values: Sequence[float]) -> tuple[float, float, float]:
    low, high = min(0.0, *values), max(0.0, *values)
    reach = max(high - low, 0.1)
    step = next((s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 5), reach)
    return math.floor(low / step) * step, math.ceil(high / step) * step, step
