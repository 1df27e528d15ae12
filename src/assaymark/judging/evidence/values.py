"""Stored numbers in the two readings that texts use, and look-up among them by size."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RATES = {"ratio": 1.0, "percent": 0.01, "pct": 0.01, "bps": 1e-4, "fraction": 1.0, "nav": 1.0}


class Sizes:
    """Absolute values that numbers are looked up in: by place, and among all of them in order of size.

    A look-up reads a few dozen values at most, where plain lists and bisection are many times faster than arrays.
    """

    __slots__ = ("_order", "_sorted", "sizes")

    def __init__(self, sizes: Floats) -> None:
        self.sizes: list[float] = sizes.tolist()
        self._sorted: list[float] | None = None
        self._order: list[int] = []

    def near(self, size: float, half: float, part: slice) -> list[int]:
        """The places in ``part`` whose value is within ``half`` of ``size``; NaN never is.

        >>> Sizes(np.array([1.0, 2.0, math.nan, 2.1])).near(2.0, 0.2, slice(0, 4))
        [1, 3]
        """
        return [at for at, own in enumerate(self.sizes[part], part.start) if -half <= own - size <= half]

    def all_near(self, size: float, half: float) -> list[int]:
        """The same among all places, by bisection.

        >>> Sizes(np.array([2.0, math.nan, 1.0, 2.1])).all_near(2.0, 0.2)
        [0, 3]
        """
        if self._sorted is None:
            self._sort()
        ordered = self._sorted or []
        # the window is a little too wide; what the subtraction says decides
        reach = half + (size + half) * 1e-12
        first, last = bisect_left(ordered, size - reach), bisect_right(ordered, size + reach)
        return sorted(at for at in self._order[first:last] if -half <= self.sizes[at] - size <= half)

    def _sort(self) -> None:
        known = [at for at, own in enumerate(self.sizes) if not math.isnan(own)]
        self._order = sorted(known, key=self.sizes.__getitem__)
        self._sorted = [self.sizes[at] for at in self._order]


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers in the two readings that texts use, aligned: index i is one number.

    ``rate`` is the value as a fraction (0.05 is five percent), NaN where it is no rate; ``plain`` is the value as it
    would be printed without a unit sign, ``printed`` the same as a list. ``rate_size`` and ``plain_size`` are their
    absolute values, ``unmarked`` the absolute value of what is no rate, else NaN.
    """

    rate: Floats
    plain: Floats
    printed: list[float]
    rate_size: Sizes
    plain_size: Sizes
    unmarked: Sizes

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, str]]) -> Values:
        """The readings of (value, unit) pairs."""
        plain = np.array([value for value, _ in pairs], dtype=np.float64)
        rate = plain * np.array([rate_factor(unit) for _, unit in pairs], dtype=np.float64)
        size = np.abs(plain)
        unmarked = np.where(np.isnan(rate), size, np.nan)
        return cls(rate, plain, plain.tolist(), Sizes(np.abs(rate)), Sizes(size), Sizes(unmarked))


@lru_cache(maxsize=1024)
def rate_factor(unit: str) -> float:
    """What a value in ``unit`` is multiplied with to become a fraction; NaN for what is no rate.

    >>> rate_factor("percent"), rate_factor("% YoY"), rate_factor("price")
    (0.01, 0.01, nan)
    """
    return _RATES.get(unit, 0.01 if "%" in unit else math.nan)
