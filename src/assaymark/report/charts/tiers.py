"""Scores by tier, and small strips: a value and its interval beside the threshold it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

import svg

from assaymark.records import Level
from assaymark.report.charts.canvas import Scale, frame, hatch, label, line, num, path, rect, row_mark, scale_ticks
from assaymark.report.charts.intervals import Mark, square
from assaymark.report.text import fit, text_width
from assaymark.text import MINUS

KINDS: Final[dict[Level, Mark]] = {"headline": "mh", "qualified": "mq", "no-claim": "mn"}
STRIP_WIDTH: Final = 180
_LINE: Final = 24
_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier: its names, the level of what separates it, its score from end to end, and what is written beside it.
    Only an agent that is alone in its tier has a ``point``."""

    names: tuple[str, ...]
    level: Level
    ends: tuple[float, float] | None
    point: float | None
    shown: str
    said: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The names as they are drawn; of a long tier the first ones, and how many more."""
        more = len(self.names) - _NAMES
        return self.names if more <= 1 else (*self.names[:_NAMES], f"and {more} more")


def tier_chart(
    name: str, rows: Sequence[TierRow], axis: tuple[float, float], title: str, desc: str, width: float, *,
    kind: str, why: Sequence[str] = (),
) -> str:  # fmt: skip
    """The tiers of one score from high to low on a common axis. ``why`` are the lines that say why nothing may be
    shown: then the whole plot is hatched and holds names alone."""
    roomy = width > 600
    longest = max((text_width(one, 13) for row in rows for one in row.lines), default=0) + 12
    beside = max((text_width(row.said, 13) for row in rows), default=0) + 18
    left, right = (min(max(160.0, longest), 270.0), width - min(max(190.0, beside), 270.0)) if roomy else (
        min(max(104.0, longest), 132.0), width - 8
    )  # fmt: skip
    scale, parts, y = Scale(*axis, left, right), list[svg.Element]([hatch(f"{name}-h")]), 6.0
    for level in dict.fromkeys(row.level for row in rows):
        parts.append(hatch(f"{name}-{KINDS[level]}", f"{KINDS[level]}l"))
    why = [part for one in why for part in wrap(one, int((right - left - 20) / 7.4))]
    names = sum(len(row.lines) for row in rows)
    bottom = max(y + _LINE * names + 10 * len(rows), 18.0 * len(why) + 24)
    ticks = scale_ticks(*axis)
    parts += [line(scale(tick), 0, scale(tick), bottom, "hair") for tick in ticks]
    for at, row in enumerate(rows):
        height = _LINE * len(row.lines)
        style = "tn" if why else "tb"
        parts += [label(0, y + 17 + _LINE * k, fit(one, left - 12, 13), style) for k, one in enumerate(row.lines)]
        if not why:
            parts += _tier(name, row, scale, y + 2, height - 4, roomy)
            if at + 1 < len(rows):
                parts.append(line(0, y + height + 5, right, y + height + 5, "hair"))
        y += height + 10
    if why:
        parts.append(rect(left, 2, right - left, bottom - 4, "void", f"url(#{name}-h)"))
        middle, top = (left + right) / 2, bottom / 2 - 9 * len(why)
        room = max(text_width(one, 13) for one in why) + 16
        parts.append(rect(middle - room / 2, top - 4, room, 18 * len(why) + 8, "open"))
        parts += [label(middle, top + 13 + 18 * k, one, "" if k else "tb", "middle") for k, one in enumerate(why)]
    parts += [label(scale(tick), bottom + 14, f"{tick:g}".replace("-", MINUS), "tk", "middle") for tick in ticks]
    return frame(name, title, desc, (width, bottom + 20), parts, kind)


def _tier(name: str, row: TierRow, scale: Scale, y: float, height: float, roomy: bool) -> list[svg.Element]:
    """The mark of a tier: a square with its interval, or a hatched box from end to end."""
    kind, middle, parts = KINDS[row.level], y + height / 2, list[svg.Element]()
    if row.ends is None:
        parts.append(rect(scale.left, y, scale.right - scale.left, height, "void", f"url(#{name}-h)"))
    elif row.point is None:
        low, high = scale(row.ends[0]), scale(row.ends[1])
        parts.append(rect(low, y, max(high - low, 3), height, f"{kind}s box", f"url(#{name}-{kind})"))
    else:
        parts.append(line(scale(row.ends[0]), middle, scale(row.ends[1]), middle, f"{kind}b"))
        parts += square(scale(row.point), middle, kind)
    if roomy:
        parts.append(label(scale.right + 14, middle + 4.5, row.said, "t2"))
        if row.ends is not None:
            room, (low, high) = text_width(row.shown, 13) + 12, (scale(end) for end in row.ends)
            if low - room > scale.left:
                parts.append(label(low - 12, middle + 4.5, row.shown, "t2", "end"))
            elif high + room <= scale.right + 8:
                parts.append(label(high + 12, middle + 4.5, row.shown, "t2"))
            else:  # a box from end to end: its words stand inside, on paper
                words = text_width(row.shown, 13) + 12
                parts.append(rect((low + high - words) / 2, middle - 11, words, 22, "open"))
                parts.append(label((low + high) / 2, middle + 4.5, row.shown, "t2", "middle"))
    return parts


@dataclass(frozen=True, slots=True)
class Strip:
    """Values on an axis beside labelled thresholds: ``cuts`` are (value, label, dashed), ``points`` (value, low, high).
    ``marks`` are the kinds of the points: ``p`` passes, ``q`` conditions, ``n`` fails. ``band`` is where values
    pass."""

    axis: tuple[float, float]
    cuts: tuple[tuple[float, str, bool], ...]
    points: tuple[tuple[float, float | None, float | None], ...]
    marks: str
    band: tuple[float | None, float | None] | None = None

    def svg(self) -> str:
        """The strip as a picture; the words beside it say the same."""
        scale = Scale(*self.axis, 8, STRIP_WIDTH - 8)
        parts: list[svg.Element] = []
        if self.band is not None:
            low, high = self.band
            start = scale.left if low is None else scale(low)
            parts.append(rect(start, 1, (scale.right if high is None else scale(high)) - start, 20, "panel2"))
        parts.append(line(scale.left, 11, scale.right, 11, "rule"))
        for at, words, dashed in self.cuts:
            x = scale(at)
            half = text_width(words, 12) / 2
            parts.append(line(x, 2, x, 20, "gd" if dashed else "gs"))
            if words:
                parts.append(label(min(max(x, half), STRIP_WIDTH - half), 33, words, "tk", "middle"))
        for (value, low, high), mark in zip(self.points, self.marks, strict=True):
            if low is not None and high is not None:
                parts.append(line(scale(low), 11, scale(high), 11, "now"))
            x = scale(value)
            if mark == "p":
                parts.append(path(f"M{num(x - 4)},7h8v8h-8z", "ink"))
            else:
                kind = "mq" if mark == "q" else "mn"
                parts.append(path(f"M{num(x - 4.5)},6.5h9v9h-9z", f"open {kind}s"))
                if mark == "q":
                    parts.append(path(f"M{num(x - 4.5)},6.5h4.5v9h-4.5z", "mq"))
        return row_mark(parts, STRIP_WIDTH, 37 if any(words for _, words, _ in self.cuts) else 22)


def strip_axis(values: Sequence[float], *cuts: float) -> tuple[float, float]:
    """An axis that holds the values and the thresholds with room at both ends.

    >>> strip_axis([0.5], 0.0)
    (-0.075, 0.575)
    """
    low, high = min((*values, *cuts)), max((*values, *cuts))
    room = (high - low) * 0.15 or 0.1
    return round(low - room, 4), round(high + room, 4)
