"""Labels beside their marks, without overlaps: each takes the first of its places that is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assaymark.report.figures.canvas import Anchor
from assaymark.report.formats import text_width

_LINE = 15.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: Box) -> float:
        """The area that two boxes share.

        >>> Box(0, 0, 2, 2).shared(Box(1, 1, 3, 3)), Box(0, 0, 1, 1).shared(Box(5, 5, 6, 6))
        (1, 0)
        """
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0) * max(down, 0)


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a label may stand: the baseline of its first line, and how it is anchored."""

    x: float
    y: float
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Request:
    """The lines of a label and its spots, the best first."""

    lines: tuple[str, ...]
    spots: tuple[Spot, ...]


def placed(requests: Sequence[Request], taken: Sequence[Box], inside: Box) -> list[Spot]:
    """A spot for each request, in order. Where none is free, the one that covers least.

    >>> two = [Request(("ab",), tuple(around(20, 20))) for _ in range(2)]
    >>> a, b = placed(two, [], Box(0, 0, 100, 100))
    >>> (a.x, a.y) != (b.x, b.y)
    True
    """
    boxes = list(taken)
    found = []
    for request in requests:
        best = min(
            request.spots,
            key=lambda spot: (_cost(request, spot, boxes, inside), request.spots.index(spot)),
        )
        boxes.append(_box(request, best))
        found.append(best)
    return found


def around(x: float, y: float, gap: float = 11.0, rows: int = 8) -> Iterator[Spot]:
    """Spots about a point: beside it, above and below, then further up and down beside it."""
    yield Spot(x + gap, y + 4, "start")
    yield Spot(x, y - gap, "middle")
    yield Spot(x, y + gap + 9, "middle")
    yield Spot(x - gap, y + 4, "end")
    for step in range(1, rows + 1):
        for turn in (-1, 1):
            yield Spot(x + gap, y + 4 + turn * step * 16, "start")
            yield Spot(x - gap, y + 4 + turn * step * 16, "end")


def _cost(request: Request, spot: Spot, boxes: Sequence[Box], inside: Box) -> float:
    box = _box(request, spot)
    area = (box.right - box.left) * (box.bottom - box.top)
    outside = area - box.shared(inside)
    return sum(box.shared(other) for other in boxes) + 100 * max(outside, 0)


def _box(request: Request, spot: Spot) -> Box:
    width = max(text_width(text, 13) for text in request.lines)
    left = {"start": spot.x, "middle": spot.x - width / 2, "end": spot.x - width}[spot.anchor]
    return Box(left - 2, spot.y - 12, left + width + 2, spot.y + 4 + _LINE * (len(request.lines) - 1))
