"""Agreement by dimension: point, two intervals and the gates they are measured against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import svg

from assaymark.records import AgreementStatus
from assaymark.report.figures.canvas import NARROW, WIDE, Scale, frame, hatch, label, line, num, path, rect
from assaymark.report.formats import AGREES, MINUS, fit, number, shortened, span

_KIND: Final = {"publish": "mh", "methodology": "mq", "halt": "mn"}
_ROW: Final = 36
_TOP: Final = 64
_COLUMNS: Final = (708, 756, 868, 980)
_NOTE: Final = 16


@dataclass(frozen=True, slots=True)
class Gates:
    """The cut-offs below which agreement is too little for any claim, and from which it is enough for a headline."""

    halt: float
    publish: float


@dataclass(frozen=True, slots=True)
class ForestRow:
    """One dimension. ``value`` is None where ``state`` says why; ``pooled`` marks the aggregate, drawn as a diamond.

    Where a format of its own decides the gate, ``by`` says its kappa and name and ``gating`` is that kappa. ``within``
    are the kappas within all formats that have a gate.
    """

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
    return _wide(f"{name}-w", rows, gates, title, desc), _narrow(f"{name}-n", rows, gates, title, desc)


def _low_end(rows: Sequence[ForestRow]) -> float:
    ends = [0.0]
    for row in rows:
        ends += [value for pair in (row.interval, row.bootstrap) if pair for value in pair]
        ends += [value for value in (row.value, row.gating, *row.within) if value is not None]
    return max(math.floor(min(ends) * 5) / 5, -1.0)


def _wide(name: str, rows: Sequence[ForestRow], gates: Gates, title: str, desc: str) -> str:
    scale = Scale(_low_end(rows), 1.0, 196, 676)
    bottom = _TOP + _ROW * len(rows) + (12 if _has_pool(rows) else 0)
    parts: list[svg.Element] = [
        hatch(f"{name}-h"),
        *_bands(name, scale, gates, _TOP, bottom),
        *_gate_heads(scale, gates),
    ]
    heads = ("κ", "jackknife", "bootstrap", "agreement")
    parts += [label(x, 44, text, "tk") for x, text in zip(_COLUMNS, heads, strict=True)]
    y = _TOP + _ROW / 2
    for row in rows:
        parts += [label(0, y + 4.5, fit(row.title, 186, 13), "tb" if row.pooled else ""), *_mark(row, scale, y, 7)]
        parts += _numbers(row, y + 4.5)
        y += _ROW
        if row.pooled and len(rows) > 1:
            parts.append(line(0, y - 12, WIDE, y - 12, "hair"))
            y += 12
    parts += _axis(scale, bottom)
    return frame(name, title, desc, (WIDE, bottom + 26), parts, "wide")


def _narrow(name: str, rows: Sequence[ForestRow], gates: Gates, title: str, desc: str) -> str:
    scale = Scale(_low_end(rows), 1.0, 13, 342)
    parts: list[svg.Element] = [hatch(f"{name}-h"), *_gate_heads(scale, gates, short=True)]
    y = 50.0
    for row in rows:
        figures = _short_numbers(row)
        parts += [
            label(0, y + 13, fit(row.title, 340 - 7 * len(figures), 13), "tb" if row.pooled else ""),
            label(NARROW, y + 13, figures, "tk", "end"),
        ]
        if row.by:
            y += _NOTE
            parts.append(label(NARROW, y + 12, fit(f"{_word(row)}: {row.by}", NARROW, 12), "tk", "end"))
        parts += [*_bands(name, scale, gates, y + 20, y + 42), *_mark(row, scale, y + 31, 6)]
        y += 54
    parts += _axis(scale, y - 4)
    return frame(name, title, desc, (NARROW, y + 22), parts, "narrow")


def _has_pool(rows: Sequence[ForestRow]) -> bool:
    return len(rows) > 1 and any(row.pooled for row in rows)


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


def _axis(scale: Scale, y: float) -> list[svg.Element]:
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
    return parts + _point(row, scale(row.value), y, size)


def _point(row: ForestRow, x: float, y: float, size: float) -> list[svg.Element]:
    if row.pooled:
        r = size + 1.5
        whole = f"M{x:.1f} {y - r:.1f}l{r} {r}l{-r} {r}l{-r} {-r}z"
        half = f"M{x:.1f} {y - r:.1f}v{2 * r}l{-r} {-r}z"
    else:
        r = size - 1
        whole = f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z"
        half = f"M{x - r:.1f} {y - r:.1f}h{r}v{2 * r}h{-r}z"
    if row.kind == "mh":
        return [path(whole, "mh gap")]
    if row.kind == "mq":
        return [path(whole, "open gap"), path(whole, "open mqs"), path(half, "mq")]
    return [path(whole, "open gap"), path(whole, "open mns")]


def _numbers(row: ForestRow, y: float) -> list[svg.Element]:
    if row.value is None:
        return [label(_COLUMNS[0], y, "no number", "tk"), *_gate(row, y, "tb")]
    texts = (number(row.value), _range(row.interval), _range(row.bootstrap))
    parts: list[svg.Element] = [
        label(x, y, text, "tb" if row.pooled and not at else ("" if not at else "t2"))
        for at, (x, text) in enumerate(zip(_COLUMNS, texts, strict=False))
    ]
    gate = {"mh": "tb" if row.pooled else "", "mq": "tq", "mn": "tn"}[row.kind]
    return [*parts, *_gate(row, y, gate)]


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


def _short_numbers(row: ForestRow) -> str:
    if row.value is None:
        return "no number"
    shown = number(row.value) + (f" ({span(*row.interval)})" if row.interval else "")
    return shown if row.status == "publish" or row.by else f"{shown} {_word(row)}"
