"""What every figure is drawn with: escaped text, rounded numbers, hatches, frames and labels that stay apart.

`tag` writes text as it is given: nothing from a record may reach it except through `label` and `frame`."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Final, Literal

from assaymark.report.text import text_width
from assaymark.text import clean, number

if TYPE_CHECKING:
    from assaymark.report.charts.paths import Floats

WIDE, HALF, NARROW = 1120, 524, 350
Anchor = Literal["start", "middle", "end"]
Drawn = tuple[Sequence[str], float]
"""The marks of a figure without its frame, and how high it is, so that it can be part of a larger picture."""

ALONE: Final = {"xmlns": "http://www.w3.org/2000/svg"}  # what a picture in a file of its own begins with
_ANCHORS: Final = {"start": "", "middle": "am", "end": "ae"}


def num(value: float) -> float:
    """A coordinate with one decimal, as short as it can be written."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def tag(name: str, inside: str | Iterable[str] = "", **values: object) -> str:
    """An element of a picture, with the attributes that have a value."""
    said = [f' {key.rstrip("_").replace("_", "-")}="{value}"' for key, value in values.items() if value is not None]
    within = "".join(inside)
    return f"<{name}{''.join(said)}{f'>{within}</{name}>' if within else '/>'}"


def label(x: float, y: float, text: str, kind: str = "", anchor: Anchor = "start", size: float | None = None) -> str:
    """A text at a point; ``kind`` and where it is anchored are classes of the style sheet."""
    kinds = " ".join(filter(None, (kind, _ANCHORS[anchor])))
    return tag("text", escape(text), font_size=size, class_=kinds or None, x=num(x), y=num(y))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line of a class."""
    return tag("line", class_=kind, x1=num(x1), y1=num(y1), x2=num(x2), y2=num(y2))


def rect(x: float, y: float, width: float, height: float, kind: str, fill: str | None = None) -> str:
    """A rectangle of a class; ``fill`` may name a hatch. A void one is empty unless it is hatched."""
    wide, high, empty = num(max(width, 0)), num(max(height, 0)), "none" if kind == "void" else None
    return tag("rect", class_=kind, x=num(x), y=num(y), width=wide, height=high, fill=fill or empty)


def path(moves: str, kind: str, fill: str | None = None) -> str:
    """A path from its written moves."""
    return tag("path", class_=kind, fill=fill, d=moves)


def circle(x: float, y: float, r: float, kinds: str | Sequence[str]) -> str:
    """A circle of some classes."""
    return tag("circle", class_=kinds if isinstance(kinds, str) else " ".join(kinds), cx=num(x), cy=num(y), r=r)


def stripes(name: str, kind: str, size: int, strokes: int = 1) -> str:
    """Diagonal stripes, or two directions of them, for marks filled with ``url(#name)``, which is unique on a page."""
    ends = ((0, size), (size, 0))[:strokes]
    return tag("pattern", [line(0, 0, *end, kind) for end in ends], id=name, patternUnits="userSpaceOnUse",
               patternTransform="rotate(45)", width=size, height=size)  # fmt: skip


def hatch(name: str, kind: str = "hatch") -> str:
    """The diagonal hatch of a figure."""
    return tag("defs", stripes(name, kind, 6))


def frame(name: str, title: str, desc: str, size: tuple[float, float], elements: Sequence[str], kind: str) -> str:
    """The finished figure with its title and description; ``kind`` is ``wide``, ``narrow`` or ``both``."""
    head = (tag("title", escape(title), id=f"{name}-t"), tag("desc", escape(desc), id=f"{name}-d"))
    said = {"class_": f"fig {kind}", "role": "img", "aria_labelledby": f"{name}-t {name}-d"}
    return picture(size, [*head, *elements], {"id": name}, 0, **said)


def picture(size: tuple[float, float], parts: Iterable[str], head: dict[str, str], low: float = 0, **said: str) -> str:
    """A picture of a size, whose coordinates begin at ``low``; ``head`` are the attributes before these."""
    low, wide, high = map(num, (low, *size))
    return tag("svg", parts, **head, viewBox=f"{low} {low} {wide} {high}", width=wide, height=high, **said)


def both(name: str, title: str, desc: str, draw: Callable[[str, float], Drawn], wide: float = WIDE) -> tuple[str, str]:
    """A figure for a screen, or half of one, and for a phone; ``draw`` gives its marks and how high it is."""
    made = []
    for kind, width in (("wide", wide), ("narrow", NARROW)):
        parts, height = draw(f"{name}-{kind[0]}", float(width))
        made.append(frame(f"{name}-{kind[0]}", title, desc, (width, height), parts, kind))
    return made[0], made[1]


def row_mark(parts: Sequence[str], width: int, height: int) -> str:
    """The mark of a table's row. It repeats what its row says in numbers, so it is hidden from screen readers."""
    return picture((width, height), parts, {}, class_="strip", aria_hidden="true", focusable="false")


class Scale:
    """A linear axis from data to pixels; values outside are held at its ends."""

    def __init__(self, low: float, high: float, left: float, right: float) -> None:
        self.low, self.high, self.left, self.right = low, high, left, right

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        inside = min(max(value, self.low), self.high)
        return self.left + (inside - self.low) / (self.high - self.low) * (self.right - self.left)


def rungs(
    up: Callable[[float], float], left: float, right: float, marks: Iterable[tuple[float, str, str]]
) -> list[str]:
    """Lines across a figure at some values, each of its kind and with its words at the left."""
    parts: list[str] = []
    for value, text, kind in marks:
        parts += [line(left, up(value), right, up(value), kind), label(left - 6, up(value) + 4, text, "tk", "end")]
    return parts


def axis(scale: Scale, y: float, ticks: Iterable[tuple[float, str]], edge: float | None = None) -> list[str]:
    """An axis with its ticks and their words below, which stay between 0 and an ``edge``."""
    parts: list[str] = [line(scale.left, y, scale.right, y, "axis")]
    for value, text in ticks:
        x, half = scale(value), text_width(text, 12) / 2
        at = x if edge is None else min(max(x, half), edge - half)
        parts += [line(x, y, x, y + 5, "axis"), label(at, y + 19, text, "tk", "middle")]
    return parts


def step_of(reach: float, sizes: Sequence[float], most: float, otherwise: float | None = None) -> float:
    """The first of some sizes of steps of which at most so many cover a reach; else all of it."""
    return next((size for size in sizes if reach / size <= most), reach if otherwise is None else otherwise)


def steps_of(first: int, last: int, step: float) -> list[tuple[float, str]]:
    """The steps from the first to the last, and how each is written below an axis."""
    return [(at * step, number(at * step, 2 if step < 0.1 else 1)) for at in range(first, last + 1)]


def scale_ticks(low: float, high: float) -> tuple[float, ...]:
    """Both ends of a part of a scale and round marks between them: every whole point where there are few.

    >>> scale_ticks(1, 5), scale_ticks(0, 100), scale_ticks(0, 0.5)
    ((1.0, 2.0, 3.0, 4.0, 5.0), (0.0, 20.0, 40.0, 60.0, 80.0, 100.0), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    """
    reach = float(high - low)
    size = 10.0 ** math.floor(math.log10(reach))
    step = step_of(reach, (size / 10, size / 5, size / 2, size, 2 * size, 5 * size), 6)
    step = max(step, 1.0) if reach >= 1 else step
    inside = (k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1))
    return (float(low), *(round(at, 9) for at in inside if min(at - low, high - at) > step / 3), float(high))


# --- labels that stay apart -------------------------------------------------------------------------------------------


def apart(centres: Sequence[float], widths: Sequence[float], width: float) -> list[float]:
    """Centres moved as little as needed so that no two labels touch and none leaves the figure.

    >>> [round(x) for x in apart([5, 8, 90], [10, 10, 10], 100)]
    [5, 15, 90]
    """
    found, edge = list[float](), 0.0
    for centre, size in zip(centres, widths, strict=True):
        found.append(max(centre, edge + size / 2))
        edge = found[-1] + size / 2
    edge = width
    for k in range(len(found) - 1, -1, -1):
        found[k] = min(found[k], edge - widths[k] / 2)
        edge = found[k] - widths[k] / 2
    return found


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area that two boxes share."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0) * max(down, 0)


Spot = tuple[float, float, Anchor]
"""Where a label may stand: the baseline of its first line, and how it is anchored."""

Request = tuple[Sequence[str], Sequence[Spot]]
"""The lines of a label and its spots, the best first."""


def placed(requests: Iterable[Request], taken: Sequence[Box], inside: Box) -> list[Spot]:
    """A spot for each request, in order. Where none is free, the one that covers least."""
    boxes, found = list(taken), list[Spot]()
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
        found.append(best[0])
        boxes.append(best[1])
    return found


def around(x: float, y: float) -> Iterator[Spot]:
    """Spots about a point: beside it, above and below, then further up and down beside it."""
    yield from ((x + 11, y + 4, "start"), (x, y - 11, "middle"), (x, y + 20, "middle"), (x - 11, y + 4, "end"))
    for shift in (turn * step * 16 for step in range(1, 9) for turn in (-1, 1)):
        yield from ((x + 11, y + 4 + shift, "start"), (x - 11, y + 4 + shift, "end"))


# --- the numbers behind a figure as comma-separated text that lies beside the page ------------------------------------


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
        plain = (clean(cell, 200) if isinstance(cell, str) else repr(float(cell)) for cell in row)
        writer.writerow([f"'{said}" if isinstance(one, str) and said[:1] in ("=", "+", "-", "@") else said
                         for one, said in zip(row, plain, strict=True)])  # fmt: skip
    return out.getvalue()


def paths_text(head: str, days: Sequence[str], lines: Sequence[tuple[str, Floats]]) -> str:
    """Paths on one axis of days: a row a day, a column a path."""
    heads = (head, *(name for name, _ in lines))
    return csv_text(heads, ((day, *(float(nav[at]) for _, nav in lines)) for at, day in enumerate(days)))


# --- one judge among several: ``judges.css`` keeps the marks of the judge that is pointed at and dims the others ------


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
    """All judges with their values: the text alternative of a figure that compares them."""
    return "; ".join(f"{judge.name}: {judge.said}" for judge in judges)


def judge_class(at: int | None) -> list[str]:
    """The classes of one mark of the judge at a place; none for a mark of nobody."""
    return [] if at is None or at >= POINTED else ["j", f"j{at}"]


def judge_marks(at: int, marks: Sequence[str]) -> list[str]:
    """The marks as those of the judge at a place, the same place in every figure of a page."""
    kinds = judge_class(at)
    return [tag("g", marks, class_=" ".join(kinds))] if marks and kinds else list(marks)
