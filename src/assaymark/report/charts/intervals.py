"""Differences on one axis through zero, agreement against its gates, strips of scores, and the markers of levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.records import AGGREGATE, AgreementStatus, Measurement
from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import NARROW, WIDE, Drawn, Element, Scale, hatch, label, line, path, rect
from assaymark.report.text import (
    AGREES,
    bootstrap_of,
    bounds_of,
    fit,
    known,
    shortened,
    state_words,
    text_width,
    with_ends,
)  # fmt: skip
from assaymark.text import MINUS, number, span

LevelMark = Literal["mh", "mq", "mn"]
Ends = tuple[float, float]
DOTS: Final = 60
"""Maximum number of dots in a row; more scores are thinned evenly, which keeps the shape and limits the page size."""


@dataclass(frozen=True, slots=True)
class AxisRow:
    """A row on one axis: a value, or a distribution as dots and quartiles; without both, its words say why."""

    title: str
    shown: str  # the numbers at the right
    note: str = ""  # the words below the mark
    value: float | None = None
    bounds: Ends | None = None
    mark: LevelMark = "mn"
    band: Ends | None = None  # differences that its rule ignores
    cut: float | None = None  # beyond this it fails
    box: tuple[float, float, float] | None = None  # quartiles with the median between
    values: tuple[float, ...] = ()


def axis_rows(rows: Sequence[AxisRow], called: str, width: float, *, ends: Ends | None = None) -> Drawn:
    """Differences in rubric points on an axis that holds all of them, or with ``ends`` distributions on that scale."""
    if ends is not None:
        low, high = ends
        ticks = [(mark, f"{mark:g}".replace("-", MINUS)) for mark in c.scale_ticks(*ends)]
    else:
        drawn = [0.0, *(end for row in rows for pair in (row.bounds, row.band) if pair for end in pair)]
        drawn += [value for row in rows for value in (row.value, row.cut) if value is not None]
        step = c.step_size(max(max(drawn) - min(drawn), 0.1), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0), 6)
        first, last = math.floor(min(drawn) / step - 0.1), math.ceil(max(drawn) / step + 0.1)
        low, high, ticks = first * step, last * step, c.tick_labels(first, last, step)

    def mark(row: AxisRow, scale: Scale, y: float) -> list[Element]:
        parts: list[Element] = []
        if ends is None:
            if row.band:
                parts.append(rect(scale(row.band[0]), y - 11, scale(row.band[1]) - scale(row.band[0]), 22, "panel"))
            parts.append(line(scale(0), y - 12, scale(0), y + 12, "gs"))
            if row.cut is not None:
                parts.append(line(scale(row.cut), y - 12, scale(row.cut), y + 12, "gd"))
            parts.append(line(scale.left, y, scale.right, y, "hair"))
            if row.bounds:
                parts.append(line(scale(row.bounds[0]), y, scale(row.bounds[1]), y, f"{row.mark}b"))
            return parts + point(scale(row.value or 0.0), y, row.mark)
        parts.append(line(scale.left, y, scale.right, y, "hair"))
        if row.values:
            # One path for all dots of a cell keeps the page small; equal scores are spread over five heights.
            dots = zip(thinned(row.values), (y - 6 + 3 * (at % 5) for at in range(DOTS)), strict=False)
            parts.append(path("".join(f"M{c.num(scale(v))} {c.num(at)}h0" for v, at in dots), "dots"))
        if row.box is not None:
            first, middle, last = (scale(value) for value in row.box)
            parts += [] if row.values else [rect(first, y - 8, last - first, 16, "quart")]
            parts.append(line(middle, y - 11, middle, y + 11, "gs"))
        return parts

    scale, y, parts = Scale(low, high, 10, width - 10), 0.0, list[Element]([hatch(f"{called}-h")])
    for row in rows:
        parts.append(label(0, y + 14, fit(row.title, width - text_width(row.shown, 12) - 12, 13), "tb"))
        parts.append(label(width, y + 14, row.shown, "tk", "end"))
        parts.append(label(0, y + 57, fit(row.note, width, 12), "tk"))
        if row.value is None and row.box is None and not row.values:
            parts.append(rect(1, y + 21, width - 2, 20, "void", f"url(#{called}-h)"))
        else:
            parts += mark(row, scale, y + 31)
        y += 66
    return [*parts, *c.axis(scale, y + 2, ticks, None if ends else width)], y + 26


def described(rows: Sequence[AxisRow]) -> str:
    """The words of all rows: the text alternative of their figure."""
    return "; ".join(f"{row.title}: {', '.join(filter(None, (row.shown, row.note)))}" for row in rows)


def thinned(values: Sequence[float]) -> Sequence[float]:
    """At most ``DOTS`` values, taken evenly from sorted scores."""
    return values if len(values) <= DOTS else [values[at * len(values) // DOTS] for at in range(DOTS)]


def point(x: float, y: float, mark: LevelMark, r: float = 5, *, diamond: bool = False) -> list[Element]:
    """A square or a diamond whose fill shows its level: solid, left half filled, dashed."""
    if diamond:
        whole = f"M{x:.1f} {y - r:.1f}l{r} {r}l{-r} {r}l{-r} {-r}z"
        half = f"M{x:.1f} {y - r:.1f}v{2 * r}l{-r} {-r}z"
    else:
        whole = f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z"
        half = f"M{x - r:.1f} {y - r:.1f}h{r}v{2 * r}h{-r}z"
    if mark == "mh":
        return [path(whole, "mh gap")]
    return [path(whole, "open gap"), path(whole, f"open {mark}s"), *([path(half, "mq")] if mark == "mq" else [])]


# --- agreement by dimension: point, two intervals and the gates they are compared with --------------------------------


ForestRow = tuple[str, Measurement, AgreementStatus | None, str, float | None, tuple[float, ...]]
"""The title of a score; its kappa (a diamond for the aggregate); its agreement status; if a format decides the gate,
that kappa in words and as a number; and the kappas within all formats that have a gate."""


def forest(rows: Sequence[ForestRow], gates: tuple[float, float], sign: str, called: str, width: float) -> Drawn:
    """Agreement by dimension, for a screen and for a phone. Thick bar: jackknife interval; thin line below: bootstrap.
    Below the first of the ``gates`` agreement is too weak for a claim, from the second on enough for a headline."""
    both = [ends for _, item, *_ in rows for ends in (bounds_of(item), bootstrap_of(item)) if ends]
    drawn = [0.0, *(end for ends in both for end in ends)]
    drawn += [end for _, item, _, _, *gate, within in rows for end in (item.value, *gate, *within) if end is not None]
    low = max(math.floor(min(drawn) * 5) / 5, -1.0)
    ticks = [(at / 5, f"{at / 5:g}".replace("-", MINUS)) for at in range(round(low * 5), 6)]
    split = len(rows) > 1 and any(_pooled(item) for _, item, *_ in rows)
    roomy = width == WIDE
    scale = Scale(low, 1.0, *((196, 676) if roomy else (13, 342)))
    halt, publish = map(scale, gates)
    y, below = (30.0, 52.0) if roomy else (24.0, 42.0)

    def bands(top: float, bottom: float) -> list[Element]:
        return [
            rect(scale.left, top, halt - scale.left, bottom - top, "", f"url(#{called}-h)"),
            rect(halt, top, publish - halt, bottom - top, "panel"),
            line(halt, top, halt, bottom, "gd"), line(publish, top, publish, bottom, "gs"),
        ]  # fmt: skip

    bottom = 64.0 + 36 * len(rows) + 12 * split
    parts: list[Element] = [hatch(f"{called}-h"), *(bands(64, bottom) if roomy else ())]
    middles = (("halt", scale.left + halt), ("methodology", halt + publish), ("publish", publish + scale.right))
    parts += [label(at / 2, y, AGREES[status], "tk", "middle") for status, at in middles]  # type: ignore[index]
    parts += [label(scale(cut), below, f"{cut:g}", "tb", "middle") for cut in gates]
    if roomy:
        columns = (sign, "jackknife", "bootstrap", "agreement")
        parts += [label(x, 44, text, "tk") for x, text in zip(_COLUMNS, columns, strict=True)]
    y = 82.0 if roomy else 50.0
    for row in rows:
        words, item, status, by, *_ = row
        bold, word = "tb" if _pooled(item) else "", AGREES[status] if status else "not measured"
        if roomy:
            parts += _wide_row(row, scale, y)
            y += 36
            if _pooled(item) and len(rows) > 1:
                parts.append(line(0, y - 12, WIDE, y - 12, "hair"))
                y += 12
            continue
        figures = "no number"
        if known(item):
            figures = with_ends(item) + ("" if status == "publish" or by else f" {word}")
        parts.append(label(0, y + 13, fit(words, 340 - 7 * len(figures), 13), bold))
        parts.append(label(NARROW, y + 13, figures, "tk", "end"))
        if by:
            y += 16
            parts.append(label(NARROW, y + 12, fit(f"{word}: {by}", NARROW, 12), "tk", "end"))
        parts += [*bands(y + 20, y + 42), *_kappa(row, scale, y + 31, 6)]
        y += 54
    bottom = bottom if roomy else y - 4
    return [*parts, *c.axis(scale, bottom, ticks)], bottom + 26


_COLUMNS: Final = (708, 756, 868, 980)


def _pooled(item: Measurement) -> bool:
    return item.labels.get("dimension") == AGGREGATE


def _wide_row(row: ForestRow, scale: Scale, y: float) -> list[Element]:
    """A row of the wide figure: its title, marker, numbers, agreement status, and the deciding kappa below it."""
    title, item, status, by, *_ = row
    bold, style = "tb" if _pooled(item) else "", "tb"
    parts: list[Element] = [label(0, y + 4.5, fit(title, 186, 13), bold), *_kappa(row, scale, y, 7)]
    if item.value is None:
        parts.append(label(_COLUMNS[0], y + 4.5, "no number", "tk"))
    else:
        ends = (span(*pair) if pair else "none" for pair in (bounds_of(item), bootstrap_of(item)))
        parts.append(label(_COLUMNS[0], y + 4.5, number(item.value), bold))
        parts += [label(x, y + 4.5, text, "t2") for x, text in zip(_COLUMNS[1:3], ends, strict=True)]
        style = {"publish": bold, "methodology": "tq"}.get(status or "", "tn")
    word = AGREES[status] if status else "not measured"
    parts.append(label(_COLUMNS[3], y + (-2.5 if by else 4.5), word, style))
    (by,) = shortened((by,), WIDE - _COLUMNS[3], 12)
    return [*parts, label(_COLUMNS[3], y + 12.5, by, "tk")] if by else parts


def _kappa(row: ForestRow, scale: Scale, y: float, size: float) -> list[Element]:
    _, item, status, _, gating, within = row
    if item.value is None:
        middle, width = (scale.left + scale.right) / 2, scale.right - scale.left
        box = rect(scale.left + 4, y - 10, width - 8, 20, "void")
        return [box, label(middle, y + 4, fit(state_words(item), width - 20, 12), "tk halo", "middle")]
    kind: LevelMark = "mh" if status == "publish" else "mq" if status == "methodology" else "mn"
    parts: list[Element] = []
    for ends, at, thick in ((bootstrap_of(item), y + size + 4, "l"), (bounds_of(item), y, "b")):
        parts += [line(scale(ends[0]), at, scale(ends[1]), at, kind + thick)] if ends else []
    parts += [c.circle(scale(kappa), y, 3.5, "open ring") for kappa in within]
    if gating is not None:
        x = scale(gating)
        parts += [line(x, y - 9, x, y + 9, "gap"), line(x, y - 8, x, y + 8, f"{kind}l")]
    pooled = _pooled(item)
    return parts + point(scale(item.value), y, kind, size + 1.5 if pooled else size - 1, diamond=pooled)


# --- score strips of the leaderboard: intervals on a common axis, with a point only if the rank is supported ----------


STRIP = 260

Axis = tuple[Scale, tuple[tuple[float, str], ...]]
"""The shared axis of all strips, from scores that may be shown, and its ticks; no ticks without scores."""


def score_axis(values: Sequence[float]) -> Axis:
    """An axis with three to six round ticks that holds the values.

    >>> score_axis([3.91, 4.38])[1], score_axis([])[1]
    (((3.8, '3.8'), (4.0, '4.0'), (4.2, '4.2'), (4.4, '4.4')), ())
    """
    if not values:
        return Scale(0.0, 1.0, 18, STRIP - 18), ()
    low, high = min(values), max(values)
    step = c.step_size(max(high - low, 0.05), (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple((round(at, 6), text) for at, text in c.tick_labels(first, max(last, first + 1), step))
    return Scale(ticks[0][0], ticks[-1][0], 18, STRIP - 18), ticks


def score_head(axis: Axis) -> str:
    """The tick labels above the strips; empty without ticks."""
    texts = [label(axis[0](tick), 13, text, "tb", "middle") for tick, text in axis[1]]
    return c.row_mark(texts, STRIP, 18) if texts else ""


def interval_strip(axis: Axis, ends: Ends | None, point: float | None = None) -> str:
    """The small drawing of one row, hidden from screen readers because the row has the same numbers."""
    (scale, ticks), parts = axis, list[Element]([line(0, 14, STRIP, 14, "hair")])
    parts += [line(scale(tick), 10, scale(tick), 18, "hair") for tick, _ in ticks]
    if ends is not None:
        parts.append(line(scale(ends[0]), 14, max(scale(ends[1]), scale(ends[0]) + 1), 14, "span"))
    if point is not None:
        parts.append(path(f"M{scale(point) - 5:.1f} 9h10v10h-10z", "ink gap"))
    return c.row_mark(parts, STRIP, 28)
