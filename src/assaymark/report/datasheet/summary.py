"""The summary of a datasheet as one picture that stands alone, reads at 1120 px and prints in greyscale."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

import svg

from assaymark.report.datasheet.figures import Panel
from assaymark.report.datasheet.plots import Missing, Plot
from assaymark.report.datasheet.profile import plain, profile_of
from assaymark.report.datasheet.quiet import axes_plot, flip_note, near_plot, parts_plot, scatter_plot
from assaymark.report.datasheet.reading import Opened
from assaymark.report.datasheet.seeing import curve_plot, segment_plot
from assaymark.report.figures.canvas import HALF, WIDE, label, line, num, rect
from assaymark.report.formats import clean, count, counted, fit, short_hash, text_width

_PEERS: Final = 4
_COLUMNS: Final = (0.0, float(WIDE - HALF))
_HEAD: Final = 44.0
_MARGIN: Final = 24.0
_TOKEN: Final = re.compile(r"--([a-z0-9]+):(#[0-9a-f]{3,6})")


def summary_svg(sheet: Opened, peers: Sequence[Opened], marks: str, page: str) -> str:
    """The picture: profile, axes map, curve, decomposition, operating points, scatter, nearly equal texts.

    ``marks`` is the style of the figures and ``page`` the light colours and text styles; colours are written out,
    since not every reader of SVG knows CSS variables.
    """
    plots = _plots(sheet, (sheet, *peers[:_PEERS]))
    parts: list[svg.Element] = [
        svg.Style(text=_plain_style(page, marks)),
        rect(-_MARGIN, -_MARGIN, 9999, 9999, "paper"),
    ]
    y = _title(sheet, parts)
    told = []
    for left, right in zip(plots[::2], plots[1::2], strict=True):
        heights = []
        lines = max(len(_caption(plot)) for _, plot in (left, right))
        for x, (key, plot) in zip(_COLUMNS, (left, right), strict=True):
            heights.append(_place(key, plot, x, y, lines, parts))
            told.append(f"{plot.title}: {plot.desc if isinstance(plot, Plot) else plot.why}")
        y += max(heights) + 28
    foot = (
        "Crosses and bars are intervals; peers are drawn for scale. It describes this judge; it does not rank judges."
    )
    parts += [line(0, y, WIDE, y, "hair"), label(0, y + 22, foot, "tk")]
    width, height = WIDE + 2 * _MARGIN, y + 36 + 2 * _MARGIN
    title = f"{sheet.name}: summary of its datasheet"
    return svg.SVG(
        class_=["fig"],
        viewBox=svg.ViewBoxSpec(num(-_MARGIN), num(-_MARGIN), num(width), num(height)),
        width=num(width),
        height=num(height),
        elements=[svg.Title(id="t", text=escape(title)), svg.Desc(id="d", text=escape(". ".join(told))), *parts],
        extra={"role": "img", "aria-labelledby": "t d"},
    ).as_str()


def _plots(sheet: Opened, drawn: Sequence[Opened]) -> list[tuple[str, Plot | Missing]]:
    """An even number of figures; what a log cannot give is not among them."""
    found = [
        ("axes", axes_plot(drawn)),
        ("curve", curve_plot(drawn)),
        ("parts", parts_plot(drawn)),
        ("segment", segment_plot(sheet)),
        ("scatter", scatter_plot(drawn)),
        ("near", near_plot(sheet)),
    ]
    return [(key, plot) for key, plot in found if not sheet.is_log or key in ("parts", "scatter")]


def _title(sheet: Opened, parts: list[svg.Element]) -> float:
    """Name, instrument and profile; the height below them."""
    record = sheet.sheet
    facts = [
        clean(record.model, 60),
        counted(record.tasks, "question" if sheet.is_log else "task"),
        f"{count(record.calls.get('all', 0))} calls, {count(record.calls.get('invalid', 0))} unusable",
        f"texts {short_hash(clean(record.manifest))}" if record.manifest else "",
    ]
    parts += [
        label(0, 24, fit(sheet.name, WIDE * 0.9, 26), "big"),
        label(0, 46, fit(" · ".join(filter(None, facts)), WIDE, 13), "t2"),
    ]
    y = 72.0
    profile = profile_of(sheet)
    said = [plain(sentence) for sentence in profile.sentences]
    said.append("; ".join(chip.text for chip in profile.chips) or profile.no_chips)
    said.append(flip_note(sheet))
    for text in filter(None, said):
        for row in _wrapped(text, WIDE, 15):
            parts.append(label(0, y, row, "say"))
            y += 20
    return y + 14


def _place(key: str, plot: Plot | Missing, x: float, y: float, lines: int, parts: list[svg.Element]) -> float:
    """A figure with its head at a place, below as many lines of caption as its neighbour needs; its height."""
    parts += [line(x, y, x + HALF, y, "rule2"), label(x, y + 20, fit(plot.title, HALF, 15), "head")]
    if isinstance(plot, Missing):
        parts.append(rect(x + 1, y + 34, HALF - 2, 60, "void"))
        for at, row in enumerate(_wrapped(plot.why, HALF - 32, 13)[:3]):
            parts.append(label(x + 16, y + 58 + 17 * at, row, "t2"))
        return 110.0
    parts += [label(x, y + 38 + 16 * at, row, "tk") for at, row in enumerate(_caption(plot))]
    panel: Panel = plot.draw(f"s-{key}", HALF)
    head = _HEAD + 16 * lines - 10
    parts.append(svg.G(transform=[svg.Translate(num(x), num(y + head))], elements=list(panel.parts)))
    return panel.height + head


def _caption(plot: Plot | Missing) -> list[str]:
    return _wrapped(plot.caption, HALF, 12) if isinstance(plot, Plot) else []


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines that fit.

    >>> _wrapped("one two three", 60, 13)
    ['one two', 'three']
    """
    rows: list[str] = []
    for word in text.split(" "):
        if rows and text_width(f"{rows[-1]} {word}", size) <= width:
            rows[-1] = f"{rows[-1]} {word}"
        else:
            rows.append(fit(word, width, size))
    return rows


def _plain_style(page: str, marks: str) -> str:
    """The styles with every colour written out."""
    # Dark and forced colours are for pages: a picture keeps its paper.
    light = re.sub(r"@media[^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", f"{page}\n{marks}")
    tokens = dict(_TOKEN.findall(light))
    style = re.sub(r":root\{[^}]*\}", "", light)
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda found: tokens[found[1]], style)
