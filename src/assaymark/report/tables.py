"""What a figure shows, again as a table: the same numbers for those who cannot see it, or want to copy them."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.report.figures.judges import JudgeWords


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure at both widths, with the question it answers and its caption.

    ``judges`` are the judges whose marks it holds, where there are several.
    """

    title: str
    caption: str
    wide: str
    narrow: str
    judges: tuple[JudgeWords, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under their heads. The first cell of a row names it; ``right`` are the columns of numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
