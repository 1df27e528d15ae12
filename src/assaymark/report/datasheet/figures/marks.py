"""Marks of judges and patterns of pair classes: shape beside hue, pattern beside grey, so that no colour is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import svg

from assaymark.report.figures.canvas import frame, line, num, path, rect

Shape = Literal["circle", "square", "triangle", "diamond", "wedge"]
_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "diamond", "wedge")
_HUES: Final = ("k2", "k3", "k4")

PARTS: Final = (
    ("stable", "stable", "grey"),
    ("positional", "positional", "solid"),
    ("one_sided", "one-sided", "lines"),
    ("other_pairs", "other", "cross"),
    ("no_preference", "no preference", "empty"),
)
"""The classes of pairs: name of the measurement, word, and fill."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawn figure without its frame, so that it can stand on a page or be part of a larger picture."""

    width: float
    height: float
    parts: tuple[svg.Element, ...]

    def framed(self, name: str, title: str, desc: str, kind: str) -> str:
        """The figure as a page shows it."""
        return frame(name, title, desc, (self.width, self.height), self.parts, kind)


def series(at: int) -> tuple[Shape, str]:
    """Shape and hue of the judge at a place; the first has a hue of its own: it is the one that a page is about.

    >>> series(0), series(1), len({series(at) for at in range(15)})
    (('circle', 'k1'), ('square', 'k2'), 15)
    """
    return _SHAPES[at % len(_SHAPES)], _HUES[(at - 1) % len(_HUES)] if at else "k1"


def mark(x: float, y: float, at: int, size: float = 6.0, *, empty: bool = False) -> list[svg.Element]:
    """The mark of a judge, with a thin gap around it that keeps marks apart; an empty one is outlined."""
    shape, hue = series(at)
    kind = f"open {hue}l" if empty else f"{hue} gap"
    if shape == "circle":
        return [svg.Circle(cx=num(x), cy=num(y), r=num(size), class_=kind.split())]
    return [path(_outline(shape, x, y, size), kind)]


def _outline(shape: Shape, x: float, y: float, size: float) -> str:
    if shape == "square":
        side = size * 0.9
        return f"M{x - side:.1f} {y - side:.1f}h{2 * side:.1f}v{2 * side:.1f}h{-2 * side:.1f}z"
    if shape == "diamond":
        r = size * 1.25
        return f"M{x:.1f} {y - r:.1f}l{r:.1f} {r:.1f}l{-r:.1f} {r:.1f}l{-r:.1f} {-r:.1f}z"
    r = size * 1.1 if shape == "triangle" else -size * 1.1
    return f"M{x:.1f} {y - r:.1f}l{r:.1f} {1.8 * r:.1f}h{-2 * r:.1f}z"


def patterns(name: str) -> svg.Defs:
    """The two patterns of pair classes, as ``url(#name-lines)`` and ``url(#name-cross)``."""
    return svg.Defs(elements=[_pattern(f"{name}-lines", 1), _pattern(f"{name}-cross", 2)])


def _pattern(name: str, directions: int) -> svg.Pattern:
    strokes: list[svg.Element] = [svg.Line(x1=0, y1=0, x2=0, y2=5, class_=["pl"])]
    if directions == 2:
        strokes.append(svg.Line(x1=0, y1=0, x2=5, y2=0, class_=["pl"]))
    return svg.Pattern(
        id=name,
        width=5,
        height=5,
        patternUnits="userSpaceOnUse",
        patternTransform=[svg.Rotate(45)],
        elements=strokes,
    )


def block(name: str, x: float, y: float, width: float, height: float, fill: str) -> list[svg.Element]:
    """A rectangle of a pair class: grey, solid, lines, crossed lines, or empty."""
    if fill in ("lines", "cross"):
        return [rect(x, y, width, height, "pb", f"url(#{name}-{fill})")]
    return [rect(x, y, width, height, f"pb p-{fill}")]


def cross(
    x: float, y: float, ends_x: tuple[float, float] | None, ends_y: tuple[float, float] | None, kind: str
) -> list[svg.Element]:
    """The intervals of a point in both directions, without caps."""
    found: list[svg.Element] = []
    if ends_x:
        found.append(line(ends_x[0], y, ends_x[1], y, kind))
    if ends_y:
        found.append(line(x, ends_y[0], x, ends_y[1], kind))
    return found
