"""Differences on one axis through zero: interval, point, and for control cells the band and lines of their rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import svg

from assaymark.records import AgreementStatus
from assaymark.report.charts.canvas import (
    HALF,
    NARROW,
    WIDE,
    Scale,
    frame,
    hatch,
    label,
    line,
    num,
    path,
    rect,
    row_mark,
    scale_ticks,
)
from assaymark.report.text import AGREES, fit, shortened, text_width
from assaymark.text import MINUS, number, span

Mark = Literal["mh", "mq", "mn"]
_ROW: Final = 66
_PAD: Final = 10


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One difference. ``value`` is None where ``note`` says why it has no number, or that it is withheld. ``band`` is
    the range that the rule calls no difference, ``cut`` a line with its label beyond which it fails; ``shown`` are the
    numbers at the right, ``note`` the words below the mark."""

    title: str
    shown: str
    note: str
    value: float | None
    bounds: tuple[float, float] | None
    mark: Mark
    zero: str
    band: tuple[float, float] | None = None
    cut: float | None = None


def deltas(name: str, rows: Sequence[DeltaRow], title: str, desc: str) -> tuple[str, str]:
    """The figure for half a screen and for a phone: one axis in rubric points for all rows."""
    wide = _deltas(f"{name}-w", rows, title, desc, float(HALF), "wide")
    return wide, _deltas(f"{name}-n", rows, title, desc, float(NARROW), "narrow")


def _deltas(name: str, rows: Sequence[DeltaRow], title: str, desc: str, width: float, kind: str) -> str:
    low, high, step = _axis_of(rows)
    scale = Scale(low, high, _PAD, width - _PAD)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    y = 0.0
    for row in rows:
        parts += _row(name, row, scale, y, width)
        y += _ROW
    axis_y = y + 2
    axis_parts: list[svg.Element] = [line(scale.left, axis_y, scale.right, axis_y, "axis")]
    for at in range(round(scale.low / step), round(scale.high / step) + 1):
        x = scale(at * step)
        text = number(at * step, 2 if step < 0.1 else 1)
        half = text_width(text, 12) / 2
        anchor_x = min(max(x, half), scale.right + _PAD - half)
        axis_parts += [line(x, axis_y, x, axis_y + 5, "axis"), label(anchor_x, axis_y + 19, text, "tk", "middle")]
    parts += axis_parts
    return frame(name, title, desc, (width, y + 26), parts, kind)


def _axis_of(rows: Sequence[DeltaRow]) -> tuple[float, float, float]:
    """The ends of the axis and its step: every number drawn, zero, and the bands and lines of the rules."""
    ends = [0.0]
    for row in rows:
        ends += [value for pair in (row.bounds, row.band) if pair for value in pair]
        ends += [value for value in (row.value, row.cut) if value is not None]
    low, high = min(ends), max(ends)
    reach = max(high - low, 0.1)
    step = next((s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 6), reach)
    first, last = math.floor(low / step - 0.1), math.ceil(high / step + 0.1)
    return first * step, last * step, step


def _row(name: str, row: DeltaRow, scale: Scale, y: float, width: float) -> list[svg.Element]:
    room = width - text_width(row.shown, 12) - 12
    parts: list[svg.Element] = [
        label(0, y + 14, fit(row.title, room, 13), "tb"),
        label(width, y + 14, row.shown, "tk", "end"),
        label(0, y + 57, fit(row.note, width, 12), "tk"),
    ]
    if row.value is None:
        return [*parts, rect(1, y + 21, width - 2, 20, "void", f"url(#{name}-h)")]
    middle = y + 31
    if row.band:
        parts.append(rect(scale(row.band[0]), y + 20, scale(row.band[1]) - scale(row.band[0]), 22, "panel"))
    parts.append(line(scale(0), y + 19, scale(0), y + 43, "gs"))
    if row.cut is not None:
        parts.append(line(scale(row.cut), y + 19, scale(row.cut), y + 43, "gd"))
    parts.append(line(scale.left, middle, scale.right, middle, "hair"))
    if row.bounds:
        parts.append(line(scale(row.bounds[0]), middle, scale(row.bounds[1]), middle, f"{row.mark}b"))
    return parts + square(scale(row.value), middle, row.mark)


def square(x: float, y: float, mark: Mark) -> list[svg.Element]:
    """A point whose fill is its permission: solid, left half filled, dashed."""
    whole, half = f"M{x - 5:.1f} {y - 5:.1f}h10v10h-10z", f"M{x - 5:.1f} {y - 5:.1f}h5v10h-5z"
    if mark == "mh":
        return [path(whole, "mh gap")]
    if mark == "mq":
        return [path(whole, "open gap"), path(whole, "open mqs"), path(half, "mq")]
    return [path(whole, "open gap"), path(whole, "open mns")]


# Agreement by dimension: point, two intervals and the gates they are measured against.


_KIND: Final = {"publish": "mh", "methodology": "mq", "halt": "mn"}
_FOREST_ROW: Final = 36
_TOP: Final = 64
_COLUMNS: Final = (708, 756, 868, 980)
_NOTE: Final = 16


@dataclass(frozen=True, slots=True)
class Gates:
    """The cut-offs below which agreement is too little for any claim, and from which it is enough for a headline."""

    halt: float
    publish: float
    sign: str = "κ"


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One dimension. ``value`` is None where ``state`` says why; ``pooled`` marks the aggregate, drawn as a diamond.
    Where a format of its own decides the gate, ``by`` says its kappa and name and ``gating`` is that kappa. ``within``
    are the kappas within all formats that have a gate."""

    title: str
    value: float | None
    interval: tuple[float, float] | None
    bootstrap: tuple[float, float] | None
    status: AgreementStatus | None
    state: str
    pooled: bool = False
    by: str = ""
    gating: float | None = None
    within: tuple[float, ...] = ()

    @property
    def kind(self) -> str:
        """The mark's class: solid, half, dashed."""
        return _KIND[self.status or "halt"]


def forest(name: str, rows: Sequence[ForestRow], gates: Gates, title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone. Thick bar: the jackknife; thin line below: the bootstrap."""
    wide_name = f"{name}-w"
    scale = Scale(_low_end(rows), 1.0, 196, 676)
    bottom = _TOP + _FOREST_ROW * len(rows) + (12 if (len(rows) > 1 and any(row.pooled for row in rows)) else 0)
    parts: list[svg.Element] = [
        hatch(f"{wide_name}-h"),
        *_bands(wide_name, scale, gates, _TOP, bottom),
        *_gate_heads(scale, gates),
    ]
    heads = (gates.sign, "jackknife", "bootstrap", "agreement")
    parts += [label(x, 44, text, "tk") for x, text in zip(_COLUMNS, heads, strict=True)]
    y = _TOP + _FOREST_ROW / 2
    for row in rows:
        parts += [label(0, y + 4.5, fit(row.title, 186, 13), "tb" if row.pooled else ""), *_mark(row, scale, y, 7)]
        numbers_y = y + 4.5
        if row.value is None:
            numbers = [label(_COLUMNS[0], numbers_y, "no number", "tk"), *_gate(row, numbers_y, "tb")]
        else:
            texts = (number(row.value), _range(row.interval), _range(row.bootstrap))
            numbers_parts: list[svg.Element] = [
                label(x, numbers_y, text, "tb" if row.pooled and not at else ("" if not at else "t2"))
                for at, (x, text) in enumerate(zip(_COLUMNS, texts, strict=False))
            ]
            gate = {"mh": "tb" if row.pooled else "", "mq": "tq", "mn": "tn"}[row.kind]
            numbers = [*numbers_parts, *_gate(row, numbers_y, gate)]
        parts += numbers
        y += _FOREST_ROW
        if row.pooled and len(rows) > 1:
            parts.append(line(0, y - 12, WIDE, y - 12, "hair"))
            y += 12
    parts += _forest_axis(scale, bottom)
    return frame(wide_name, title, desc, (WIDE, bottom + 26), parts, "wide"), _narrow(
        f"{name}-n", rows, gates, title, desc
    )


def _low_end(rows: Sequence[ForestRow]) -> float:
    ends = [0.0]
    for row in rows:
        ends += [value for pair in (row.interval, row.bootstrap) if pair for value in pair]
        ends += [value for value in (row.value, row.gating, *row.within) if value is not None]
    return max(math.floor(min(ends) * 5) / 5, -1.0)


def _narrow(name: str, rows: Sequence[ForestRow], gates: Gates, title: str, desc: str) -> str:
    scale = Scale(_low_end(rows), 1.0, 13, 342)
    parts: list[svg.Element] = [hatch(f"{name}-h"), *_gate_heads(scale, gates, short=True)]
    y = 50.0
    for row in rows:
        if row.value is None:
            figures = "no number"
        else:
            shown = number(row.value) + (f" ({span(*row.interval)})" if row.interval else "")
            figures = shown if row.status == "publish" or row.by else f"{shown} {_word(row)}"
        parts += [
            label(0, y + 13, fit(row.title, 340 - 7 * len(figures), 13), "tb" if row.pooled else ""),
            label(NARROW, y + 13, figures, "tk", "end"),
        ]
        if row.by:
            y += _NOTE
            parts.append(label(NARROW, y + 12, fit(f"{_word(row)}: {row.by}", NARROW, 12), "tk", "end"))
        parts += [*_bands(name, scale, gates, y + 20, y + 42), *_mark(row, scale, y + 31, 6)]
        y += 54
    parts += _forest_axis(scale, y - 4)
    return frame(name, title, desc, (NARROW, y + 22), parts, "narrow")


def _bands(name: str, scale: Scale, gates: Gates, top: float, bottom: float) -> list[svg.Element]:
    halt, publish = scale(gates.halt), scale(gates.publish)
    return [
        rect(scale.left, top, halt - scale.left, bottom - top, "", f"url(#{name}-h)"),
        rect(halt, top, publish - halt, bottom - top, "panel"),
        line(halt, top, halt, bottom, "gd"),
        line(publish, top, publish, bottom, "gs"),
    ]


def _gate_heads(scale: Scale, gates: Gates, *, short: bool = False) -> list[svg.Element]:
    halt, publish = scale(gates.halt), scale(gates.publish)
    return [
        label((scale.left + halt) / 2, 24 if short else 30, AGREES["halt"], "tk", "middle"),
        label((halt + publish) / 2, 24 if short else 30, AGREES["methodology"], "tk", "middle"),
        label((publish + scale.right) / 2, 24 if short else 30, AGREES["publish"], "tk", "middle"),
        label(halt, 42 if short else 52, f"{gates.halt:g}", "tb", "middle"),
        label(publish, 42 if short else 52, f"{gates.publish:g}", "tb", "middle"),
    ]


def _forest_axis(scale: Scale, y: float) -> list[svg.Element]:
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "axis")]
    for step in range(round(scale.low * 5), 6):
        x = scale(step / 5)
        parts += [line(x, y, x, y + 5, "axis"), label(x, y + 19, f"{step / 5:g}".replace("-", MINUS), "tk", "middle")]
    return parts


def _mark(row: ForestRow, scale: Scale, y: float, size: float) -> list[svg.Element]:
    if row.value is None:
        middle, width = (scale.left + scale.right) / 2, scale.right - scale.left
        box = rect(scale.left + 4, y - 10, width - 8, 20, "void")
        return [box, label(middle, y + 4, fit(row.state, width - 20, 12), "tk halo", "middle")]
    parts: list[svg.Element] = []
    if row.bootstrap:
        below = y + size + 4
        parts.append(line(scale(row.bootstrap[0]), below, scale(row.bootstrap[1]), below, f"{row.kind}l"))
    if row.interval:
        parts.append(line(scale(row.interval[0]), y, scale(row.interval[1]), y, f"{row.kind}b"))
    parts += [svg.Circle(cx=num(scale(kappa)), cy=num(y), r=3.5, class_=["open", "ring"]) for kappa in row.within]
    if row.gating is not None:
        x = scale(row.gating)
        parts += [line(x, y - 9, x, y + 9, "gap"), line(x, y - 8, x, y + 8, f"{row.kind}l")]
    point_x = scale(row.value)
    if row.pooled:
        r = size + 1.5
        whole = f"M{point_x:.1f} {y - r:.1f}l{r} {r}l{-r} {r}l{-r} {-r}z"
        half = f"M{point_x:.1f} {y - r:.1f}v{2 * r}l{-r} {-r}z"
    else:
        r = size - 1
        whole = f"M{point_x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z"
        half = f"M{point_x - r:.1f} {y - r:.1f}h{r}v{2 * r}h{-r}z"
    if row.kind == "mh":
        point = [path(whole, "mh gap")]
    elif row.kind == "mq":
        point = [path(whole, "open gap"), path(whole, "open mqs"), path(half, "mq")]
    else:
        point = [path(whole, "open gap"), path(whole, "open mns")]
    return parts + point


def _word(row: ForestRow) -> str:
    return AGREES[row.status] if row.status else "not measured"


def _gate(row: ForestRow, y: float, kind: str) -> list[svg.Element]:
    """The gate's word, and below it the kappa that decides where that is not the one of the row."""
    word = _word(row)
    if not row.by:
        return [label(_COLUMNS[3], y, word, kind)]
    note = shortened((row.by,), WIDE - _COLUMNS[3], 12)[0]
    return [label(_COLUMNS[3], y - 7, word, kind), label(_COLUMNS[3], y + 8, note, "tk")]


def _range(pair: tuple[float, float] | None) -> str:
    return span(*pair) if pair else "none"


# Where scores lie on the scale: a box for honest records, one dot a text for a control cell.

DOTS: Final = 60
"""The most dots of one row; more texts are thinned evenly, so that the shape stays and the page small."""


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """One distribution on the scale: ``values`` are dots, ``box`` its quartiles with the median between. Neither: the
    row is withheld or not measured, and ``note`` says which."""

    title: str
    shown: str
    note: str
    box: tuple[float, float, float] | None
    values: tuple[float, ...] = ()


def spreads(
    name: str, rows: Sequence[SpreadRow], title: str, desc: str, *, ends: tuple[float, float] = (1, 5)
) -> tuple[str, str]:
    """The figure for half a screen and for a phone."""
    wide = _spreads(f"{name}-w", rows, ends, (title, desc), float(HALF), "wide")
    return wide, _spreads(f"{name}-n", rows, ends, (title, desc), float(NARROW), "narrow")


def _spreads(
    name: str, rows: Sequence[SpreadRow], ends: tuple[float, float], words: tuple[str, str], width: float, kind: str
) -> str:
    scale = Scale(*ends, 10, width - 10)
    parts: list[svg.Element] = [hatch(f"{name}-h")]
    y = 0.0
    for row in rows:
        room = width - text_width(row.shown, 12) - 12
        parts += [
            label(0, y + 14, fit(row.title, room, 13), "tb"),
            label(width, y + 14, row.shown, "tk", "end"),
            label(0, y + 57, fit(row.note, width, 12), "tk"),
        ]
        marks_y = y + 31
        if row.box is None and not row.values:
            parts.append(rect(1, marks_y - 10, width - 2, 20, "void", f"url(#{name}-h)"))
        else:
            parts.append(line(scale.left, marks_y, scale.right, marks_y, "hair"))
            if row.values:
                # One path for all dots of a cell keeps the page small; equal scores are spread over five heights.
                heights = (marks_y - 6 + 3 * (at % 5) for at in range(DOTS))
                dots = zip(thinned(row.values), heights, strict=False)
                parts.append(path("".join(f"M{num(scale(v))} {num(at)}h0" for v, at in dots), "dots"))
            if row.box is not None:
                low, middle, high = (scale(value) for value in row.box)
                if not row.values:
                    parts.append(rect(low, marks_y - 8, high - low, 16, "quart"))
                parts.append(line(middle, marks_y - 11, middle, marks_y + 11, "gs"))
        y += _ROW
    parts.append(line(scale.left, y + 2, scale.right, y + 2, "axis"))
    for mark in scale_ticks(*ends):
        x, text = scale(mark), f"{mark:g}".replace("-", MINUS)
        parts += [line(x, y + 2, x, y + 7, "axis"), label(x, y + 21, text, "tk", "middle")]
    return frame(name, *words, (width, y + 26), parts, kind)


def thinned(values: Sequence[float]) -> Sequence[float]:
    """At most so many dots, evenly from the sorted scores."""
    if len(values) <= DOTS:
        return values
    return [values[at * len(values) // DOTS] for at in range(DOTS)]


# The board's score marks: a bar with a square, a hatched box for a tier, a dashed hatch where there is no value.


STRIP = 260
_SCORE_PAD = 18


@dataclass(frozen=True, slots=True)
class ScoreAxis:
    """The common axis of all strips, made from scores that may be shown; ``ticks`` is empty when there are none."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int

    @property
    def scale(self) -> Scale:
        """Where values lie on a strip."""
        return Scale(self.low, self.high, _SCORE_PAD, STRIP - _SCORE_PAD)


def score_axis(values: Sequence[float]) -> ScoreAxis:
    """An axis with three to six round ticks that holds the values.

    >>> score_axis([3.91, 4.38]).ticks
    (3.8, 4.0, 4.2, 4.4)
    >>> score_axis([]).ticks
    ()
    """
    if not values:
        return ScoreAxis(0.0, 1.0, (), 0)
    low, high = min(values), max(values)
    reach = max(high - low, 0.05)
    step = next(s for s in (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, reach) if reach / s <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(at * step, 6) for at in range(first, max(last, first + 1) + 1))
    return ScoreAxis(ticks[0], ticks[-1], ticks, 2 if step < 0.1 else 1)


def score_head(axis: ScoreAxis) -> str:
    """The tick labels above the strips; empty without an axis."""
    if not axis.ticks:
        return ""
    parts: list[svg.Element] = [
        label(axis.scale(tick), 13, number(tick, axis.digits), "tb", "middle") for tick in axis.ticks
    ]
    return row_mark(parts, STRIP, 18)


# One judge among several: marks that belong to a judge, and what it says of each of them in words.
#
# The style sheet ``judges.css`` keeps the marks of the judge that is pointed at, in every figure of a page, and dims
# those of the others. A list of the judges below a figure does the same for a keyboard and a finger, and shows the
# values in words. It takes no script.


POINTED: Final = 12
"""How many judges of a page can be pointed at; the style sheet has a rule for each."""


@dataclass(frozen=True, slots=True)
class JudgeWords:
    """A judge below a figure: its place among the judges of the page, its name, and its values in words."""

    at: int
    name: str
    said: str

    @property
    def pointed(self) -> bool:
        """Whether the style sheet knows it."""
        return self.at < POINTED


def told(judges: Sequence[JudgeWords]) -> str:
    """All judges with their values: the text alternative of a figure that compares them.

    >>> told([JudgeWords(0, "anvil", "2 of 3"), JudgeWords(1, "bellows", "1 of 3")])
    'anvil: 2 of 3; bellows: 1 of 3'
    """
    return "; ".join(f"{judge.name}: {judge.said}" for judge in judges)


ALL: Final = ("j", "jx")
"""The classes of a mark of all judges together: it steps back from the marks of any one."""


def judge_class(at: int | None) -> list[str]:
    """The classes of one mark of the judge at a place; none for a mark of nobody.

    >>> judge_class(2), judge_class(None)
    (['j', 'j2'], [])
    """
    return [] if at is None or at >= POINTED else ["j", f"j{at}"]


def judge_marks(at: int, marks: Sequence[svg.Element]) -> list[svg.Element]:
    """The marks as those of the judge at a place, the same place in every figure of a page.

    >>> from assaymark.report.charts.canvas import line
    >>> print(*judge_marks(2, [line(0, 0, 4, 0, "gs")]))
    <g class="j j2"><line class="gs" x1="0" y1="0" x2="4" y2="0"/></g>
    >>> judge_marks(0, [])
    []
    """
    kinds = judge_class(at)
    return [svg.G(class_=kinds, elements=list(marks))] if marks and kinds else list(marks)


# An interval on the common axis of a leaderboard; a point only where the position may be claimed.


def interval_strip(axis: ScoreAxis, low: float | None, high: float | None, point: float | None) -> str:
    """One row's mark, hidden from screen readers because its row says the same in numbers.

    >>> "h10v10" in interval_strip(ScoreAxis(0, 1, (0.0, 1.0), 1), 0.4, 0.6, None)
    False
    """
    scale = axis.scale
    parts: list[svg.Element] = [line(0, 14, STRIP, 14, "hair")]
    parts += [line(scale(tick), 10, scale(tick), 18, "hair") for tick in axis.ticks]
    if low is not None and high is not None:
        parts.append(line(scale(low), 14, max(scale(high), scale(low) + 1), 14, "span"))
    if point is not None:
        parts.append(path(f"M{scale(point) - 5:.1f} 9h10v10h-10z", "ink gap"))
    return svg.SVG(
        xmlns=None,
        class_=["strip"],
        viewBox=svg.ViewBoxSpec(0, 0, STRIP, 28),
        width=STRIP,
        height=28,
        elements=parts,
        extra={"aria-hidden": "true", "focusable": "false"},
    ).as_str()
