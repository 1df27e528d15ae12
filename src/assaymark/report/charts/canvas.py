"""What every figure is drawn with: escaped text, rounded numbers, hatches, and the frame with its text alternative.
svg.py writes text and attributes as they are given. Nothing from a record may reach it except through `label` and
`frame`, which escape."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Final, Literal

import svg

from assaymark.report.text import text_width
from assaymark.text import clean

if TYPE_CHECKING:
    from assaymark.report.charts.paths import Floats


WIDE = 1120
HALF = 524
NARROW = 350
Anchor = Literal["start", "middle", "end"]
_ANCHORS: Final = {"start": "", "middle": "am", "end": "ae"}


def num(value: float) -> float:
    """A coordinate with one decimal, as short as it can be written.

    >>> num(3.0), num(2.349)
    (3, 2.3)
    """
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def label(x: float, y: float, text: str, kind: str = "", anchor: Anchor = "start") -> svg.Text:
    """A text at a point; ``kind`` and where it is anchored are classes of the style sheet.

    >>> str(label(1, 2, "<b>", "s"))
    '<text class="s" x="1" y="2">&lt;b&gt;</text>'
    """
    kinds = [name for name in (kind, _ANCHORS[anchor]) if name]
    return svg.Text(x=num(x), y=num(y), text=escape(text), class_=kinds or None)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> svg.Line:
    """A straight line of a class."""
    return svg.Line(x1=num(x1), y1=num(y1), x2=num(x2), y2=num(y2), class_=[kind])


def rect(x: float, y: float, width: float, height: float, kind: str, fill: str | None = None) -> svg.Rect:
    """A rectangle of a class; ``fill`` may name a hatch. A void one is empty unless it is hatched."""
    return svg.Rect(
        x=num(x),
        y=num(y),
        width=num(max(width, 0)),
        height=num(max(height, 0)),
        class_=kind.split(),
        fill=fill or ("none" if kind == "void" else None),
    )


def path(moves: str, kind: str) -> svg.Element:
    """A path from its written moves."""
    return svg.Path(class_=kind.split(), extra={"d": moves})


def hatch(name: str, kind: str = "hatch") -> svg.Defs:
    """A diagonal hatch that marks can be filled with as ``url(#name)``. The name must be unique on the page."""
    stroke = svg.Line(x1=0, y1=0, x2=0, y2=6, class_=[kind])
    pattern = svg.Pattern(
        id=name, width=6, height=6, patternUnits="userSpaceOnUse", patternTransform=[svg.Rotate(45)], elements=[stroke]
    )
    return svg.Defs(elements=[pattern])


def frame(
    name: str, title: str, desc: str, size: tuple[float, float], elements: Sequence[svg.Element], kind: str
) -> str:
    """The finished figure: a picture with a title and a description for those who cannot see it. ``kind`` is ``wide``,
    ``narrow`` or ``both``: the style sheet shows one of the first two."""
    width, height = size
    return svg.SVG(
        xmlns=None,
        id=name,
        class_=["fig", kind],
        viewBox=svg.ViewBoxSpec(0, 0, num(width), num(height)),
        width=num(width),
        height=num(height),
        elements=[
            svg.Title(id=f"{name}-t", text=escape(title)),
            svg.Desc(id=f"{name}-d", text=escape(desc)),
            *elements,
        ],
        extra={"role": "img", "aria-labelledby": f"{name}-t {name}-d"},
    ).as_str()


def both(
    name: str,
    title: str,
    desc: str,
    draw: Callable[[str, float], tuple[Sequence[svg.Element], float]],
    wide: float = WIDE,
) -> tuple[str, str]:
    """A figure for a screen, or half of one, and for a phone; ``draw`` gives its marks and how high it is."""
    made = []
    for kind, width in (("wide", wide), ("narrow", NARROW)):
        parts, height = draw(f"{name}-{kind[0]}", float(width))
        made.append(frame(f"{name}-{kind[0]}", title, desc, (width, height), parts, kind))
    return made[0], made[1]


def axis(scale: Scale, y: float, ticks: Iterable[tuple[float, str]], edge: float | None = None) -> list[svg.Element]:
    """An axis with its ticks and their words below, which stay between 0 and an ``edge``."""
    parts: list[svg.Element] = [line(scale.left, y, scale.right, y, "axis")]
    for value, text in ticks:
        x, half = scale(value), text_width(text, 12) / 2
        at = x if edge is None else min(max(x, half), edge - half)
        parts += [line(x, y, x, y + 5, "axis"), label(at, y + 19, text, "tk", "middle")]
    return parts


def row_mark(parts: Sequence[svg.Element], width: int, height: int) -> str:
    """The mark of a table's row. It repeats what its row says in numbers, so it is hidden from screen readers."""
    return svg.SVG(
        xmlns=None,
        class_=["strip"],
        viewBox=svg.ViewBoxSpec(0, 0, width, height),
        width=width,
        height=height,
        elements=list(parts),
        extra={"aria-hidden": "true", "focusable": "false"},
    ).as_str()


def apart(centres: Sequence[float], widths: Sequence[float], width: float) -> list[float]:
    """Centres moved as little as needed so that no two labels touch and none leaves the figure.

    >>> [round(x) for x in apart([5, 8, 90], [10, 10, 10], 100)]
    [5, 15, 90]
    """
    found: list[float] = []
    edge = 0.0
    for centre, size in zip(centres, widths, strict=True):
        at = max(centre, edge + size / 2)
        found.append(at)
        edge = at + size / 2
    edge = width
    for k in range(len(found) - 1, -1, -1):
        found[k] = min(found[k], edge - widths[k] / 2)
        edge = found[k] - widths[k] / 2
    return found


class Scale:
    """A linear axis from data to pixels; values outside are held at its ends."""

    def __init__(self, low: float, high: float, left: float, right: float) -> None:
        self.low, self.high, self.left, self.right = low, high, left, right

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        inside = min(max(value, self.low), self.high)
        return self.left + (inside - self.low) / (self.high - self.low) * (self.right - self.left)


_MOST_TICKS: Final = 6


def scale_ticks(low: float, high: float) -> tuple[float, ...]:
    """Both ends of a part of a scale and round marks between them: every whole point where there are few.

    >>> scale_ticks(1, 5), scale_ticks(0, 100), scale_ticks(0, 0.5)
    ((1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 20.0, 40.0, 60.0, 80.0, 100.0), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    """
    reach = float(high - low)
    size = 10.0 ** math.floor(math.log10(reach))
    step = next(s for s in (size / 10, size / 5, size / 2, size, 2 * size, 5 * size) if reach / s <= _MOST_TICKS)
    step = max(step, 1.0) if reach >= 1 else step
    inside = (k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1))
    ticks = [round(tick, 9) for tick in inside if min(tick - low, high - tick) > step / 3]
    return (float(low), *ticks, float(high))


# The numbers behind a figure as a file: comma-separated text that lies beside the page.


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
        plain = (clean(cell, _LONGEST) if isinstance(cell, str) else repr(float(cell)) for cell in row)
        writer.writerow([f"'{said}" if isinstance(one, str) and said[:1] in ("=", "+", "-", "@") else said
                         for one, said in zip(row, plain, strict=True)])  # fmt: skip
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
