"""How often each agent takes each rank when the clusters are drawn again: small bars with their percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import svg

from assaymark.records import Level
from assaymark.report.figures.canvas import HALF, NARROW, frame, hatch, label, line, path, rect
from assaymark.report.formats import percent, shortened

PLACES = 8
_BAR = 30.0


@dataclass(frozen=True, slots=True)
class RankRow:
    """One agent: the share of resamples in which it takes each rank, the first one first; None where not shown.

    ``place`` is the supported rank, whose bar is filled as its ``level`` says.
    """

    title: str
    shares: tuple[float, ...] | None
    place: int = 0
    level: Level = "no-claim"


def rank_bars(name: str, rows: Sequence[RankRow], places: int, title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone. All bars share one scale; a full bar is 100 %."""
    return _bars(f"{name}-w", rows, places, title, desc, wide=True), _bars(
        f"{name}-n", rows, places, title, desc, wide=False
    )


def place_heads(places: int) -> tuple[str, ...]:
    """The places as column heads; past the eighth they share a column.

    >>> place_heads(3), place_heads(10)[-2:]
    (('1', '2', '3'), ('7', '8 to 10'))
    """
    if places <= PLACES:
        return tuple(str(at) for at in range(1, places + 1))
    return (*(str(at) for at in range(1, PLACES)), f"{PLACES} to {places}")


def binned(shares: Sequence[float], places: int) -> tuple[float, ...]:
    """Shares in the columns of `place_heads`.

    >>> binned([0.5, 0.5], 2)
    (0.5, 0.5)
    """
    given = [*shares, *([0.0] * places)][:places]
    if places <= PLACES:
        return tuple(given)
    return (*given[: PLACES - 1], sum(given[PLACES - 1 :]))


def _bars(name: str, rows: Sequence[RankRow], places: int, title: str, desc: str, *, wide: bool) -> str:
    width, left = (float(HALF), 124.0) if wide else (float(NARROW), 0.0)
    heads = place_heads(places)
    slot = (width - left) / len(heads)
    step = 56.0 if wide else 74.0
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    parts += [label(left + (at + 0.5) * slot, 14, head, "tk", "middle") for at, head in enumerate(heads)]
    titles = shortened([row.title for row in rows], 112 if wide else NARROW, 13)
    y = 22.0
    for row, text in zip(rows, titles, strict=True):
        base = y + step - 8
        parts.append(label(0, base - 6 if wide else y + 16, text, "tb" if row.place else ""))
        parts += _row(name, row, places, (left, width, slot, base))
        y += step
    return frame(name, title, desc, (width, y + 4), parts, "wide" if wide else "narrow")


def _row(name: str, row: RankRow, places: int, at: tuple[float, float, float, float]) -> list[svg.Element]:
    left, width, slot, base = at
    if row.shares is None:
        return [rect(left + 1, base - 24, width - left - 2, 22, "void", f"url(#{name}-h)")]
    bar = min(slot - 6, 46.0)
    parts: list[svg.Element] = [line(left, base, width, base, "hair")]
    for place, share in enumerate(binned(row.shares, places), 1):
        if share <= 0:
            continue
        middle = left + (place - 0.5) * slot
        height = max(_BAR * share, 1.5)
        kind = ("mh" if row.level == "headline" else "mq") if place == row.place else "bar2"
        box = f"M{middle - bar / 2:.1f} {base:.1f}v{-height:.1f}h{bar:.1f}V{base:.1f}z"
        strong = "tb" if place == row.place else "tk"
        parts += [path(box, kind), label(middle, base - height - 4, percent(share), strong, "middle")]
    return parts
