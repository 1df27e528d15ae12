"""The policy rate of the synthetic market: steps at meetings, tied to the stress windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assaymark.market.stress import Window

MEETING_EVERY = 32
"""Weekdays from one meeting to the next, about eight a year."""


def policy_rate(rng: np.random.Generator, days: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """The policy rate in percent on each day, shape (n_days,); it changes at meetings, by quarters of a point.

    Slow rises before the pandemic window, a cut to the floor in it, fast rises through the tightening window, a rest
    and then slow cuts.
    """
    _, pandemic, tightening = windows
    rate, floor = 0.5, 0.25
    found = np.empty(days.size)
    first = int(rng.integers(5, MEETING_EVERY))
    meetings = set(range(first, days.size, MEETING_EVERY))
    meetings |= {pandemic.first + 8, pandemic.first + 16}  # meetings called early
    for day in range(days.size):
        if day in meetings:
            rate = max(rate + _step(rng, day, rate, pandemic, tightening), floor)
        found[day] = rate
    return found


def _step(rng: np.random.Generator, day: int, rate: float, pandemic: Window, tightening: Window) -> float:
    """What one meeting decides."""
    if pandemic.first <= day <= pandemic.last:
        return -1.0 if rate > 1.0 else -0.5
    if day < pandemic.first:
        return 0.25 if rng.random() < 0.3 and rate < 2.5 else 0.0
    if tightening.first - 60 <= day <= tightening.last:
        return float(rng.choice([0.5, 0.75]))
    if day > tightening.last + 220:
        return -0.25 if rng.random() < 0.5 and rate > 2.5 else 0.0
    return 0.0
