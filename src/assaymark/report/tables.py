"""What a figure shows, again as a table: the same numbers for those who cannot see it, or want to copy them."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.report.figures.brush import Brush
from assaymark.report.figures.judges import JudgeWords


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under their heads. The first cell of a row names it; ``right`` are the columns of numbers.

    ``summary`` is what it is folded under, where it stands behind a figure.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    summary: str = "The same as a table"

    @property
    def all_right(self) -> bool:
        """Whether every column but the first holds numbers, so that the page says it once."""
        return self.right >= frozenset(range(1, len(self.heads)))


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure at both widths, with the question it answers and its caption.

    ``judges`` are the judges whose marks it holds, where there are several; ``note`` is what has to be read with it,
    and ``table`` holds the numbers that it draws, where they do not stand beside it. A figure of paths has a ``brush``
    that reads a stretch of days, and a link to a file of ``data``.
    """

    title: str
    caption: str
    wide: str
    narrow: str
    judges: tuple[JudgeWords, ...] = ()
    note: str = ""
    table: Table | None = None
    brush: Brush | None = None
    data: str = ""
