"""The numbers behind a figure as a file: comma-separated text that lies beside the page."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from assaymark.report.figures.nav_paths import Floats
from assaymark.report.formats import clean

_LONGEST = 200


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Rows under their heads; numbers in full precision, and no text that a spreadsheet takes for a formula.

    >>> print(csv_text(("agent", "value"), [("Alder", 98.5), ("=x", 1.0)]), end="")
    agent,value
    Alder,98.5
    '=x,1.0
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (heads, *rows):
        writer.writerow([_inert(cell) if isinstance(cell, str) else repr(float(cell)) for cell in row])
    return out.getvalue()


def paths_text(head: str, days: Sequence[str], lines: Sequence[tuple[str, Floats]]) -> str:
    """Paths on one axis of days: a row a day, a column a path.

    >>> import numpy as np
    >>> print(paths_text("day", ["start", "2026-05-01"], [("Alder", np.array([100.0, 98.5]))]), end="")
    day,Alder
    start,100.0
    2026-05-01,98.5
    """
    heads = (head, *(name for name, _ in lines))
    return csv_text(heads, ((day, *(float(nav[at]) for _, nav in lines)) for at, day in enumerate(days)))


def _inert(text: str) -> str:
    plain = clean(text, _LONGEST)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain
