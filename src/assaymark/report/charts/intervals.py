"""Differences on one axis through zero: interval, point, and for control cells the band and lines of their rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import svg

from assaymark.records import AgreementStatus
from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import axis, both
from assaymark.report.text import AGREES, fit, shortened, text_width
from assaymark.text import MINUS, number, span

Mark = Literal["mh", "mq", "mn"]
Ends = tuple[float, float]
_ROW: Final = 66
_PAD: Final = 10
DOTS: Final = 60
"""The most dots of one row; more texts are thinned evenly, so that the shape stays and the page small."""


@dataclass(frozen=True, slots=True)
class AxisRow:
    """A row of a figure on one axis: ``shown`` are the numbers at the right, ``note`` the words below the mark. Drawn
    is a difference, its ``value`` with ``bounds``, the ``band`` that its rule calls no difference and a line ``cut``
    beyond which it fails; or a distribution, ``values`` as dots and ``box``, its quartiles with the median between. A
    row with neither is withheld or not measured, and ``note`` says which."""

    title: str
    shown: str
    note: str
    value: float | None = None
    bounds: Ends | None = None
    mark: Mark = "mn"
    band: Ends | None = None
    cut: float | None = None
    box: tuple[float, float, float] | None = None
    values: tuple[float, ...] = ()


def axis_rows(name: str, rows: Sequence[AxisRow], title: str, desc: str, ends: Ends | None = None) -> tuple[str, str]:
    """Rows on one axis for half a screen and for a phone: differences in rubric points, or with ``ends`` distributions
    on that scale. Its own axis holds every number drawn, zero, and the bands and lines of the rules."""
    if ends is not None:
        low, high = ends
        ticks = [(mark, f"{mark:g}".replace("-", MINUS)) for mark in c.scale_ticks(*ends)]
    else:
        drawn = [0.0, *(end for row in rows for pair in (row.bounds, row.band) if pair for end in pair)]
        drawn += [one for row in rows for one in (row.value, row.cut) if one is not None]
        reach = max(max(drawn) - min(drawn), 0.1)
        step = next((s for s in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if reach / s <= 6), reach)
        first, last = math.floor(min(drawn) / step - 0.1), math.ceil(max(drawn) / step + 0.1)
        low, high = first * step, last * step
        ticks = [(at * step, number(at * step, 2 if step < 0.1 else 1)) for at in range(first, last + 1)]

    def draw(called: str, width: float) -> tuple[list[svg.Element], float]:
        scale, y = c.Scale(low, high, _PAD, width - _PAD), 0.0
        parts: list[svg.Element] = [c.hatch(f"{called}-h")]
        for row in rows:
            parts += [
                c.label(0, y + 14, fit(row.title, width - text_width(row.shown, 12) - 12, 13), "tb"),
                c.label(width, y + 14, row.shown, "tk", "end"),
                c.label(0, y + 57, fit(row.note, width, 12), "tk"),
            ]
            if row.value is None and row.box is None and not row.values:
                parts.append(c.rect(1, y + 21, width - 2, 20, "void", f"url(#{called}-h)"))
            else:
                parts += _difference(row, scale, y + 31) if ends is None else _distribution(row, scale, y + 31)
            y += _ROW
        return [*parts, *axis(scale, y + 2, ticks, None if ends else width)], y + 26

    return both(name, title, desc, draw, c.HALF)


def _difference(row: AxisRow, scale: c.Scale, y: float) -> list[svg.Element]:
    parts: list[svg.Element] = []
    if row.band:
        parts.append(c.rect(scale(row.band[0]), y - 11, scale(row.band[1]) - scale(row.band[0]), 22, "panel"))
    parts.append(c.line(scale(0), y - 12, scale(0), y + 12, "gs"))
    if row.cut is not None:
        parts.append(c.line(scale(row.cut), y - 12, scale(row.cut), y + 12, "gd"))
    parts.append(c.line(scale.left, y, scale.right, y, "hair"))
    if row.bounds:
        parts.append(c.line(scale(row.bounds[0]), y, scale(row.bounds[1]), y, f"{row.mark}b"))
    return parts + point(scale(row.value or 0.0), y, row.mark)


def _distribution(row: AxisRow, scale: c.Scale, y: float) -> list[svg.Element]:
    parts: list[svg.Element] = [c.line(scale.left, y, scale.right, y, "hair")]
    if row.values:
        # One path for all dots of a cell keeps the page small; equal scores are spread over five heights.
        dots = zip(thinned(row.values), (y - 6 + 3 * (at % 5) for at in range(DOTS)), strict=False)
        parts.append(c.path("".join(f"M{c.num(scale(v))} {c.num(at)}h0" for v, at in dots), "dots"))
    if row.box is not None:
        low, middle, high = (scale(value) for value in row.box)
        parts += [] if row.values else [c.rect(low, y - 8, high - low, 16, "quart")]
        parts.append(c.line(middle, y - 11, middle, y + 11, "gs"))
    return parts


def thinned(values: Sequence[float]) -> Sequence[float]:
    """At most so many dots, evenly from the sorted scores."""
    return values if len(values) <= DOTS else [values[at * len(values) // DOTS] for at in range(DOTS)]


def point(x: float, y: float, mark: Mark, r: float = 5, *, diamond: bool = False) -> list[svg.Element]:
    """A square or a diamond whose fill is its permission: solid, left half filled, dashed."""
    if diamond:
        whole = f"M{x:.1f} {y - r:.1f}l{r} {r}l{-r} {r}l{-r} {-r}z"
        half = f"M{x:.1f} {y - r:.1f}v{2 * r}l{-r} {-r}z"
    else:
        whole = f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z"
        half = f"M{x - r:.1f} {y - r:.1f}h{r}v{2 * r}h{-r}z"
    if mark == "mh":
        return [c.path(whole, "mh gap")]
    return [c.path(whole, "open gap"), c.path(whole, f"open {mark}s"), *([c.path(half, "mq")] if mark == "mq" else [])]


# Agreement by dimension: point, two intervals and the gates they are measured against.


_KIND: Final[dict[AgreementStatus | None, Mark]] = {"publish": "mh", "methodology": "mq"}
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
    interval: Ends | None
    bootstrap: Ends | None
    status: AgreementStatus | None
    state: str
    pooled: bool = False
    by: str = ""
    gating: float | None = None
    within: tuple[float, ...] = ()

    @property
    def kind(self) -> Mark:
        """The mark's class: solid, half, dashed."""
        return _KIND.get(self.status, "mn")

    @property
    def word(self) -> str:
        """The agreement in words."""
        return AGREES[self.status] if self.status else "not measured"


def forest(name: str, rows: Sequence[ForestRow], gates: Gates, title: str, desc: str) -> tuple[str, str]:
    """The figure for a screen and for a phone. Thick bar: the jackknife; thin line below: the bootstrap."""
    drawn = [0.0, *(end for row in rows for pair in (row.interval, row.bootstrap) if pair for end in pair)]
    drawn += [one for row in rows for one in (row.value, row.gating, *row.within) if one is not None]
    low = max(math.floor(min(drawn) * 5) / 5, -1.0)
    ticks = [(at / 5, f"{at / 5:g}".replace("-", MINUS)) for at in range(round(low * 5), 6)]

    def draw(called: str, width: float) -> tuple[list[svg.Element], float]:
        roomy = width == c.WIDE
        scale = c.Scale(low, 1.0, *((196, 676) if roomy else (13, 342)))
        parts, bottom = (_wide if roomy else _narrow)(called, rows, gates, scale)
        return [c.hatch(f"{called}-h"), *parts, *axis(scale, bottom, ticks)], bottom + 26

    return both(name, title, desc, draw)


def _wide(name: str, rows: Sequence[ForestRow], gates: Gates, scale: c.Scale) -> tuple[list[svg.Element], float]:
    apart = len(rows) > 1
    bottom = _TOP + _FOREST_ROW * len(rows) + (12 if apart and any(row.pooled for row in rows) else 0)
    parts = [*_bands(name, scale, gates, _TOP, bottom), *_gate_heads(scale, gates, 30, 52)]
    heads = (gates.sign, "jackknife", "bootstrap", "agreement")
    parts += [c.label(x, 44, text, "tk") for x, text in zip(_COLUMNS, heads, strict=True)]
    y = _TOP + _FOREST_ROW / 2
    for row in rows:
        parts += [c.label(0, y + 4.5, fit(row.title, 186, 13), "tb" if row.pooled else ""), *_mark(row, scale, y, 7)]
        if row.value is None:
            parts.append(c.label(_COLUMNS[0], y + 4.5, "no number", "tk"))
            kind = "tb"
        else:
            ends = (span(*pair) if pair else "none" for pair in (row.interval, row.bootstrap))
            parts.append(c.label(_COLUMNS[0], y + 4.5, number(row.value), "tb" if row.pooled else ""))
            parts += [c.label(x, y + 4.5, text, "t2") for x, text in zip(_COLUMNS[1:3], ends, strict=True)]
            kind = {"mh": "tb" if row.pooled else "", "mq": "tq", "mn": "tn"}[row.kind]
        # The gate's word, and below it the kappa that decides where that is not the one of the row.
        parts.append(c.label(_COLUMNS[3], y + (-2.5 if row.by else 4.5), row.word, kind))
        if row.by:
            parts.append(c.label(_COLUMNS[3], y + 12.5, shortened((row.by,), c.WIDE - _COLUMNS[3], 12)[0], "tk"))
        y += _FOREST_ROW
        if row.pooled and apart:
            parts.append(c.line(0, y - 12, c.WIDE, y - 12, "hair"))
            y += 12
    return parts, bottom


def _narrow(name: str, rows: Sequence[ForestRow], gates: Gates, scale: c.Scale) -> tuple[list[svg.Element], float]:
    parts, y = _gate_heads(scale, gates, 24, 42), 50.0
    for row in rows:
        figures = "no number"
        if row.value is not None:
            figures = number(row.value) + (f" ({span(*row.interval)})" if row.interval else "")
            figures += "" if row.status == "publish" or row.by else f" {row.word}"
        parts += [
            c.label(0, y + 13, fit(row.title, 340 - 7 * len(figures), 13), "tb" if row.pooled else ""),
            c.label(c.NARROW, y + 13, figures, "tk", "end"),
        ]
        if row.by:
            y += _NOTE
            parts.append(c.label(c.NARROW, y + 12, fit(f"{row.word}: {row.by}", c.NARROW, 12), "tk", "end"))
        parts += [*_bands(name, scale, gates, y + 20, y + 42), *_mark(row, scale, y + 31, 6)]
        y += 54
    return parts, y - 4


def _bands(name: str, scale: c.Scale, gates: Gates, top: float, bottom: float) -> list[svg.Element]:
    halt, publish = scale(gates.halt), scale(gates.publish)
    return [
        c.rect(scale.left, top, halt - scale.left, bottom - top, "", f"url(#{name}-h)"),
        c.rect(halt, top, publish - halt, bottom - top, "panel"),
        c.line(halt, top, halt, bottom, "gd"),
        c.line(publish, top, publish, bottom, "gs"),
    ]


def _gate_heads(scale: c.Scale, gates: Gates, y: float, below: float) -> list[svg.Element]:
    halt, publish = scale(gates.halt), scale(gates.publish)
    ends: tuple[tuple[AgreementStatus, float], ...] = (
        ("halt", scale.left + halt), ("methodology", halt + publish), ("publish", publish + scale.right),
    )  # fmt: skip
    words: list[svg.Element] = [c.label(both / 2, y, AGREES[status], "tk", "middle") for status, both in ends]
    return words + [c.label(scale(cut), below, f"{cut:g}", "tb", "middle") for cut in (gates.halt, gates.publish)]


def _mark(row: ForestRow, scale: c.Scale, y: float, size: float) -> list[svg.Element]:
    if row.value is None:
        middle, width = (scale.left + scale.right) / 2, scale.right - scale.left
        box = c.rect(scale.left + 4, y - 10, width - 8, 20, "void")
        return [box, c.label(middle, y + 4, fit(row.state, width - 20, 12), "tk halo", "middle")]
    parts: list[svg.Element] = []
    if row.bootstrap:
        below = y + size + 4
        parts.append(c.line(scale(row.bootstrap[0]), below, scale(row.bootstrap[1]), below, f"{row.kind}l"))
    if row.interval:
        parts.append(c.line(scale(row.interval[0]), y, scale(row.interval[1]), y, f"{row.kind}b"))
    parts += [svg.Circle(cx=c.num(scale(kappa)), cy=c.num(y), r=3.5, class_=["open", "ring"]) for kappa in row.within]
    if row.gating is not None:
        x = scale(row.gating)
        parts += [c.line(x, y - 9, x, y + 9, "gap"), c.line(x, y - 8, x, y + 8, f"{row.kind}l")]
    r = size + 1.5 if row.pooled else size - 1
    return parts + point(scale(row.value), y, row.kind, r, diamond=row.pooled)


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
    def scale(self) -> c.Scale:
        """Where values lie on a strip."""
        return c.Scale(self.low, self.high, _SCORE_PAD, STRIP - _SCORE_PAD)


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
    return c.row_mark(
        [c.label(axis.scale(tick), 13, number(tick, axis.digits), "tb", "middle") for tick in axis.ticks], STRIP, 18
    )


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
    parts: list[svg.Element] = [c.line(0, 14, STRIP, 14, "hair")]
    parts += [c.line(scale(tick), 10, scale(tick), 18, "hair") for tick in axis.ticks]
    if low is not None and high is not None:
        parts.append(c.line(scale(low), 14, max(scale(high), scale(low) + 1), 14, "span"))
    if point is not None:
        parts.append(c.path(f"M{scale(point) - 5:.1f} 9h10v10h-10z", "ink gap"))
    return c.row_mark(parts, STRIP, 28)
