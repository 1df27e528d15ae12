"""Stress windows: where they lie, and how the class legs in them are pinned (PortBench section C.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.market.instruments import AssetClass
from assaymark.market.targets import STRESS, StressPlan

# Direction of the shock that all classes share in a window, in the order of CLASSES, and its share of their factor.
_TOGETHER = np.array([1.0, -0.6, 0.9, 0.8, 1.0, 0.0])
_SHARE = 0.30


@dataclass(frozen=True, slots=True)
class Window:
    """One stress window: its name and the rows of its first and last day, both included."""

    name: str
    first: int
    last: int
    plan: StressPlan

    @property
    def rows(self) -> slice:
        """The rows of the window."""
        return slice(self.first, self.last + 1)


def draw_windows(rng: np.random.Generator, days: np.ndarray) -> tuple[Window, ...]:
    """The three windows, each first day drawn evenly between the bounds of its plan."""
    found = []
    for plan in STRESS:
        low, high = np.searchsorted(days, np.array([plan.earliest, plan.latest], dtype="datetime64[D]"))
        first = int(rng.integers(low, high + 1))
        found.append(Window(plan.name, first, first + plan.days - 1, plan))
    return tuple(found)


def calm_days(windows: Sequence[Window], n: int) -> np.ndarray:
    """Which of n days lie in no window, bool array of shape (n,)."""
    calm = np.ones(n, dtype=bool)
    for window in windows:
        calm[window.rows] = False
    return calm


def stress_factors(rng: np.random.Generator, factors: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """Class factors with the shared shock and the higher volatility of the windows, shape (n_days, 6)."""
    found = factors.copy()
    for window in windows:
        shared = rng.standard_normal((window.plan.days, 1)) * _TOGETHER
        weight = np.abs(_TOGETHER) * _SHARE
        mixed = np.sqrt(1 - weight) * found[window.rows] + np.sqrt(_SHARE) * shared * np.sqrt(np.abs(_TOGETHER))
        found[window.rows] = mixed * _scaled(window.plan.common)
    return found


def stress_own(own: np.ndarray, class_of: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """What instruments have alone, with the higher volatility of the windows, shape (n_days, n_instruments)."""
    found = own.copy()
    for window in windows:
        found[window.rows] *= _scaled(window.plan.own)[class_of]
    return found


def _scaled(multiple: float) -> np.ndarray:
    """The multiplier of each class: crypto, wild already, and cash take a part of it."""
    part = np.array([1.0, 0.7, 1.0, 0.3, 1.0, 0.5])
    return 1.0 + (multiple - 1.0) * part


def pin_legs(
    log_returns: np.ndarray,
    volatility: np.ndarray,
    members: Mapping[AssetClass, np.ndarray],
    alive: np.ndarray,
    windows: Sequence[Window],
) -> np.ndarray:
    """Log returns whose class means add up to the pinned legs of every window, shape (n_days, n_instruments).

    Between two knots one constant is added to each day, larger for instruments that move more; the mean over the
    instruments alive on a day moves by just that constant. Cash has no leg: it earns the policy rate.
    """
    found = log_returns.copy()
    for window in windows:
        for name, knots in window.plan.legs.items():
            columns = members[name]
            start, level = window.first, 0.0
            for share, target in knots:
                stop = window.first + max(round(share * window.plan.days), 1)
                rows = slice(start, stop)
                here = alive[rows][:, columns]
                weight = here * volatility[columns]
                weight = weight / (weight.sum(axis=1) / here.sum(axis=1))[:, None]
                mean = (found[rows][:, columns] * here).sum(axis=1) / here.sum(axis=1)
                found[rows, columns] += weight * ((target - level - mean.sum()) / (stop - start))
                start, level = stop, target
    return found
