"""A figure of a datasheet before it has a width: its words, its drawing, and the same numbers as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assaymark.report.datasheet.figures import Panel
from assaymark.report.figures.canvas import HALF, NARROW
from assaymark.report.figures.judges import JudgeWords
from assaymark.report.tables import Figure, Table

Draw = Callable[[str, float], Panel]


@dataclass(frozen=True, slots=True)
class Plot:
    """One figure: ``draw`` takes a name for its patterns and a width.

    ``desc`` says what is to be seen for those who cannot see it, ``note`` what has to be read with it. ``judges`` are
    the judges whose marks it holds, where there are several.
    """

    name: str
    title: str
    caption: str
    desc: str
    draw: Draw
    table: Table
    note: str = ""
    judges: tuple[JudgeWords, ...] = ()

    @property
    def figure(self) -> Figure:
        """The figure for half a screen and for a phone."""
        wide, narrow = f"{self.name}-w", f"{self.name}-n"
        return Figure(
            self.title,
            self.caption,
            self.draw(wide, HALF).framed(wide, self.title, self.desc, "wide"),
            self.draw(narrow, NARROW).framed(narrow, self.title, self.desc, "narrow"),
            self.judges,
            self.note,
            self.table,
        )


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure that cannot be drawn: its question, and in words why there is no answer."""

    title: str
    why: str
