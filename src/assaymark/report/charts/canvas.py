"""Drawing helpers for all figures: escaped text, rounded numbers, hatches, frames and label placement.

Elements are written as they are given: nothing from a record may reach one except through `label` and `frame`."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, Literal, NewType

from assaymark.report.text import text_width
from assaymark.text import clean, number

if TYPE_CHECKING:
    from assaymark.report.charts.paths import Floats

WIDE, MID, HALF, NARROW = 1120, 640, 524, 350
Anchor = Literal["start", "middle", "end"]
Element = NewType("Element", str)
Drawn = tuple[Sequence[Element], float]
"""The elements of a figure without its frame, and its height, so that it can be part of a larger picture."""
Draw = Callable[[str, float], Drawn]

_FORMULA: Final = ("=", "+", "-", "@")
_SVG: Final = "http://www.w3.org/2000/svg"
_ANCHORS: Final = {"start": "", "middle": "am", "end": "ae"}


def num(value: float) -> float:
    """A coordinate rounded to one decimal, without a trailing zero."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def element(name: str, inside: str | Iterable[Element] = "", **attributes: Any) -> Element:
    """An SVG element around escaped text or other elements; an attribute of None is omitted."""
    given = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    start = "".join([name, *(f' {key}="{value}"' for key, value in given)])
    body = inside if isinstance(inside, str) else "".join(inside)
    return Element(f"<{start}>{body}</{name}>" if body else f"<{start}/>")


def label(x: float, y: float, text: str, kind: str = "", anchor: Anchor = "start") -> Element:
    """A text at a point; ``kind`` and ``anchor`` become classes of the style sheet."""
    return element("text", escape(text), class_=f"{kind} {_ANCHORS[anchor]}".strip() or None, x=num(x), y=num(y))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    """A straight line with a class."""
    return Element(f'<line class="{kind}" x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}"/>')


def rect(x: float, y: float, width: float, height: float, kind: str, fill: str | None = None, **more: str) -> Element:
    """A rectangle with classes; ``fill`` may be a hatch. One of kind ``void`` has no fill without a hatch."""
    wide, high, empty = num(max(width, 0)), num(max(height, 0)), "none" if kind == "void" else None
    return element("rect", class_=kind, x=num(x), y=num(y), width=wide, height=high, fill=fill or empty, **more)


def path(moves: str, kind: str, fill: str | None = None) -> Element:
    """A path with given SVG path commands."""
    return element("path", class_=kind, fill=fill, d=moves)


def circle(x: float, y: float, r: float, kind: str) -> Element:
    """A circle with some classes."""
    return element("circle", class_=kind, cx=num(x), cy=num(y), r=r)


def stripes(name: str, kind: str, size: int, strokes: int = 1) -> Element:
    """Diagonal stripes in one or two directions, for fills ``url(#name)``; ``name`` must be unique on a page."""
    ends = ((0, size), (size, 0))[:strokes]
    drawn = [line(0, 0, x, y, kind) for x, y in ends]
    return element("pattern", drawn, id=name, patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
                   width=size, height=size)  # fmt: skip


def hatch(name: str, kind: str = "hatch") -> Element:
    """The diagonal hatch pattern of a figure."""
    return element("defs", stripes(name, kind, 6))


def frame(name: str, title: str, desc: str, size: tuple[float, float], elements: Sequence[Element], kind: str) -> str:
    """The finished figure with its title and description; ``kind`` is ``wide``, ``mid``, ``narrow`` or ``both``."""
    head = element("title", escape(title), id=f"{name}-t"), element("desc", escape(desc), id=f"{name}-d")
    named = f"{name}-t {name}-d"
    return picture((0, 0, *size), [*head, *elements], f"fig {kind}", name, role="img", aria_labelledby=named)


def picture(
    box: tuple[float, float, float, float], parts: Sequence[Element], kind: str | None = None, name: str | None = None,
    *, alone: bool = False, **more: str,
) -> str:  # fmt: skip
    """A drawing with a view box (left, top, width, height), for a page or, with ``alone``, for a file of its own."""
    left, top, width, height = map(num, box)
    return element("svg", parts, id=name, xmlns=_SVG if alone else None, viewBox=f"{left} {top} {width} {height}",
                   width=width, height=height, class_=kind, **more)  # fmt: skip


def view(name: str, title: str, desc: str, draw: Draw, kind: str, width: float) -> str:
    """A figure of one width; one of kind ``both`` is the only one of its name."""
    called = name if kind == "both" else f"{name}-{kind[0]}"
    parts, height = draw(called, float(width))
    return frame(called, title, desc, (width, height), parts, kind)


def views(name: str, title: str, desc: str, draw: Draw, wide: float = WIDE) -> tuple[str, str]:
    """A figure for a screen (or half of one), and for a phone."""
    return view(name, title, desc, draw, "wide", wide), view(name, title, desc, draw, "narrow", NARROW)


def row_mark(parts: Sequence[Element], width: int, height: int) -> str:
    """The small drawing of a table row. It repeats numbers of the row, so it is hidden from screen readers."""
    return picture((0, 0, width, height), parts, "strip", aria_hidden="true", focusable="false")


class Scale:
    """A linear axis from data to pixels; values outside are clipped to its ends."""

    def __init__(self, low: float, high: float, left: float, right: float) -> None:
        self.low, self.high, self.left, self.right = low, high, left, right

    def __call__(self, value: float) -> float:
        """The pixel coordinate of a value."""
        inside = min(max(value, self.low), self.high)
        return self.left + (inside - self.low) / (self.high - self.low) * (self.right - self.left)


def grid_lines(
    up: Callable[[float], float], left: float, right: float, marks: Iterable[tuple[float, str, str]]
) -> list[Element]:
    """Horizontal grid lines at some values, each with its class and its label at the left."""
    parts: list[Element] = []
    for value, text, kind in marks:
        parts += [line(left, up(value), right, up(value), kind), label(left - 6, up(value) + 4, text, "tk", "end")]
    return parts


def axis(scale: Scale, y: float, ticks: Iterable[tuple[float, str]], edge: float | None = None) -> list[Element]:
    """An axis with ticks and labels below; labels are kept between 0 and ``edge``."""
    parts: list[Element] = [line(scale.left, y, scale.right, y, "axis")]
    for value, text in ticks:
        x, half = scale(value), text_width(text, 12) / 2
        at = x if edge is None else min(max(x, half), edge - half)
        parts += [line(x, y, x, y + 5, "axis"), label(at, y + 19, text, "tk", "middle")]
    return parts


def step_size(reach: float, sizes: Sequence[float], most: float, otherwise: float | None = None) -> float:
    """The first step size that divides a range into at most ``most`` steps; else ``otherwise``, or the whole range."""
    return next((size for size in sizes if reach / size <= most), reach if otherwise is None else otherwise)


def tick_labels(first: int, last: int, step: float) -> list[tuple[float, str]]:
    """The ticks from the first to the last multiple of a step, with their labels."""
    return [(at * step, number(at * step, 2 if step < 0.1 else 1)) for at in range(first, last + 1)]


def scale_ticks(low: float, high: float) -> tuple[float, ...]:
    """Both ends of part of a scale and round values between them: every whole point if there are few.

    >>> scale_ticks(1, 5), scale_ticks(0, 100), scale_ticks(0, 0.5)
    ((1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 20.0, 40.0, 60.0, 80.0, 100.0), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    """
    reach = float(high - low)
    size = 10.0 ** math.floor(math.log10(reach))
    step = step_size(reach, (size / 10, size / 5, size / 2, size, 2 * size, 5 * size), 6)
    step = max(step, 1.0) if reach >= 1 else step
    first = low if math.isclose(reach / step, round(reach / step)) else step * math.ceil(low / step)  # in even steps
    inside = (first + k * step for k in range(math.floor((high - first) / step) + 1))
    return (float(low), *(round(at, 9) for at in inside if min(at - low, high - at) > step / 2), float(high))


# --- label placement --------------------------------------------------------------------------------------------------


def spread_labels(centres: Sequence[float], widths: Sequence[float], width: float) -> list[float]:
    """Centres moved as little as needed so that labels do not overlap and stay inside the figure.

    >>> [round(x) for x in spread_labels([5, 8, 90], [10, 10, 10], 100)]
    [5, 15, 90]
    """
    places, edge = list[float](), 0.0
    for centre, size in zip(centres, widths, strict=True):
        places.append(max(centre, edge + size / 2))
        edge = places[-1] + size / 2
    edge = width
    for k in range(len(places) - 1, -1, -1):
        places[k] = min(places[k], edge - widths[k] / 2)
        edge = places[k] - widths[k] / 2
    return places


@dataclass(frozen=True, slots=True)
class Box:
    """An occupied rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area of the overlap of two boxes."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0) * max(down, 0)


Spot = tuple[float, float, Anchor]
"""A candidate position of a label: the baseline of its first line, and its anchor."""

Request = tuple[Sequence[str], Sequence[Spot]]
"""The lines of a label and its candidate positions, the best first."""


def place_labels(requests: Iterable[Request], occupied: Sequence[Box], inside: Box) -> list[Spot]:
    """A position for each label, in order: the first free one, else the one with the least overlap."""
    boxes, chosen = list(occupied), list[Spot]()
    for lines, spots in requests:
        width, best, least = max(text_width(text, 13) for text in lines), (spots[0], inside), math.inf
        for spot in spots:
            x, y, anchor = spot
            left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            box = Box(left - 2, y - 12, left + width + 2, y + 4 + 15.0 * (len(lines) - 1))
            outside = (box.right - box.left) * (box.bottom - box.top) - box.shared(inside)
            cost = sum(box.shared(other) for other in boxes) + 100 * max(outside, 0)
            if cost < least:
                best, least = (spot, box), cost
            if least == 0:
                break
        chosen.append(best[0])
        boxes.append(best[1])
    return chosen


def spots_around(x: float, y: float) -> Iterator[Spot]:
    """Candidate positions around a point: beside, above and below it, then further up and down."""
    yield from ((x + 11, y + 4, "start"), (x, y - 11, "middle"), (x, y + 20, "middle"), (x - 11, y + 4, "end"))
    for shift in (turn * step * 16 for step in range(1, 9) for turn in (-1, 1)):
        yield from ((x + 11, y + 4 + shift, "start"), (x - 11, y + 4 + shift, "end"))


# --- the numbers of a figure as a CSV file beside the page ------------------------------------------------------------


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[str | float]]) -> str:
    """Rows as CSV with a header; numbers in full precision, and no text that a spreadsheet reads as a formula.

    >>> print(csv_text(("agent", "value"), [("Alder", 98.5), ("=x", 1.0)]), end="")
    agent,value
    Alder,98.5
    '=x,1.0
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (columns, *rows):
        plain = [clean(cell, 200) if isinstance(cell, str) else float(cell) for cell in row]
        writer.writerow([f"'{cell}" if isinstance(cell, str) and cell[:1] in _FORMULA else cell for cell in plain])
    return out.getvalue()


def paths_text(head: str, days: Sequence[str], lines: Sequence[tuple[str, Floats]]) -> str:
    """Paths over the same days as CSV: a row per day, a column per path."""
    columns = (head, *(name for name, _ in lines))
    return csv_text(columns, zip(days, *(nav.tolist() for _, nav in lines), strict=True))


# --- one judge among several: ``judges.css`` highlights the judge under the pointer and dims the others ---------------


POINTED: Final = 12
"""The number of judges on a page that can be highlighted; the style sheet has a rule for each."""


@dataclass(frozen=True, slots=True)
class JudgeWords:
    """A judge below a figure: its index among the judges of the page, its name, and its values in words."""

    at: int
    name: str
    values: str

    @property
    def pointed(self) -> bool:
        """True if the style sheet can highlight the judge."""
        return self.at < POINTED


def text_alternative(judges: Sequence[JudgeWords]) -> str:
    """All judges with their values: the text alternative of a figure that compares them."""
    return "; ".join(f"{judge.name}: {judge.values}" for judge in judges)


def judge_class(at: int | None) -> str:
    """The classes of an element of the judge at an index, to be appended to others; empty without a judge."""
    return "" if at is None or at >= POINTED else f" j j{at}"


def judge_marks(at: int, marks: Sequence[Element]) -> list[Element]:
    """Elements grouped under the class of the judge at an index, which is the same in every figure of a page."""
    kinds = judge_class(at)
    return [element("g", marks, class_=kinds.strip())] if marks and kinds else list(marks)
