"""What every figure of a net asset value is drawn with: falls from the peak, round steps, and short paths."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from assaymark.report.formats import number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def falls(nav: Floats) -> Floats:
    """The fall from the highest value so far, as a share: 0 or negative.

    >>> falls(np.array([1.0, 1.2, 0.9])).round(2).tolist()
    [0.0, 0.0, -0.25]
    """
    return np.asarray(nav / np.maximum.accumulate(nav) - 1.0)


def percent_fall(fall: float) -> str:
    """A fall in percent with one decimal.

    >>> percent_fall(-0.0812).replace(chr(160), " "), percent_fall(0.0).replace(chr(160), " ")
    ('−8.1 %', '0.0 %')
    """
    return f"{number(100 * min(fall, 0.0), 1)}\u00a0%"


def steps(low: float, high: float, most: int = 4) -> tuple[float, ...]:
    """Round values that hold all of 100, the lowest and the highest, in at most ``most`` steps and two more.

    >>> steps(88.2, 109.0), steps(99.5, 100.2)
    ((80.0, 90.0, 100.0, 110.0), (99.0, 100.0, 101.0))
    >>> steps(97.9, 105.4, most=6)
    (96.0, 98.0, 100.0, 102.0, 104.0, 106.0)
    """
    low, high = min(low, 100.0), max(high, 100.0)
    reach = max(high - low, 1e-6)
    step = next(
        (s for s in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0) if reach / s <= most), 10.0 ** math.ceil(math.log10(reach))
    )
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(step * at for at in range(first, max(last, first + 1) + 1))


def thinned(nav: Floats, points: int) -> Integers:
    """Which days of a history are drawn: as many as can be seen, the ends and the deepest fall always among them.

    >>> thinned(np.array([1.0, 0.9, 1.0, 1.1, 1.2]), 3).tolist()
    [0, 1, 2, 4]
    """
    if len(nav) <= points:
        return np.arange(len(nav))
    chosen = {*np.linspace(0, len(nav) - 1, points).round().astype(int).tolist(), int(falls(nav).argmin())}
    return np.array(sorted(chosen))


def drawn(xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> str:
    """A path through points, in tenths of a pixel and relative moves, as short as it can be written.

    >>> drawn([0, 10, 20], [5, 4.7, 6.2])
    'M0 5l10-.3 10 1.5'
    """
    tenths = [(round(10 * float(x)), round(10 * float(y))) for x, y in zip(xs, ys, strict=True)]
    return f"M{_tenth(tenths[0][0])} {_tenth(tenths[0][1])}l{''.join(_relative(tenths))}"


def _relative(tenths: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Moves from point to point."""
    for at in range(1, len(tenths)):
        for place in (0, 1):
            text = _tenth(tenths[at][place] - tenths[at - 1][place])
            first = at == 1 and place == 0
            yield text if first or text.startswith("-") else f" {text}"
    if len(tenths) == 1:
        yield "0 0"


def _tenth(value: int) -> str:
    """A number of tenths without zeros that nobody needs.

    >>> _tenth(-3), _tenth(120), _tenth(15)
    ('-.3', '12', '1.5')
    """
    text = f"{abs(value) / 10:g}"
    return ("-" if value < 0 else "") + (text.removeprefix("0") if text.startswith("0.") else text)
