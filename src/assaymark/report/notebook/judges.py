"""Datasheets in a notebook: what each judge does, in plain words, and the figures of a few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from assaymark.display import Folded, Grid, Heading, Note, Part, parts_of
from assaymark.metrology.datasheet import Datasheet
from assaymark.records import Measurement, Rows
from assaymark.report.datasheet.plots import Missing, Plot
from assaymark.report.datasheet.profile import plain
from assaymark.report.datasheet.reading import comparable, opened
from assaymark.report.datasheet.sheet_view import SheetView, sheet_view
from assaymark.report.notebook.drawing import drawing

_DRAWN: Final = 4
_STYLES: Final = ("datasheet.css", "datasheet-marks.css")


def judges_parts(sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = ()) -> Iterator[Part]:
    """Every judge by name: its profile, its chips, and its figures behind a line; those of the first four by name."""
    for at, sheet in enumerate(sorted(sheets, key=lambda one: one.judge)):
        others = [one for one in sheets if one.judge != sheet.judge and comparable(sheet, one)]
        view = sheet_view(opened([sheet])[0], opened(others), ())
        yield Heading(view.title)
        yield from _profile(view)
        figures = tuple(_figures([*view.quiet, *view.seeing])) if at < _DRAWN else ()
        if len(sheets) == 1:
            yield from figures
        elif figures:
            yield Folded(f"Figures of {view.title}", figures)
    if agreement:
        yield Heading("How far every two of them agree")
        yield from parts_of(Rows(agreement))


def _profile(view: SheetView) -> Iterator[Part]:
    yield Note(" ".join(plain(sentence) for sentence in view.profile.sentences))
    chips = " · ".join(chip.text for chip in view.profile.chips)
    yield from (Note(words) for words in (chips or view.profile.no_chips, view.profile.flips) if words)
    if rules := tuple((chip.text, chip.rule) for chip in view.profile.chips if chip.rule):
        yield Folded("By which rules", (Grid(("Axis", "Rule"), rules),))


def _figures(plots: Sequence[Plot | Missing]) -> Iterator[Part]:
    for plot in plots:
        if isinstance(plot, Missing):
            yield Note(f"{plot.title} {plot.why}")
        else:
            yield drawing(plot.figure, *_STYLES)
