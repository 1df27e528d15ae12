"""Simulations over many seeds, without paying for the coverage tracer in each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

Result = TypeVar("Result")


def untraced(work: Callable[[], Result]) -> Result:
    """What ``work`` returns, run without the coverage tracer, which doubles the time of plain Python.
    For repetitions of what has been traced once. The tracer is taken off and put back in one frame, so that it sees
    every call together with its return."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return work()
    finally:
        sys.settrace(tracer)


def over_seeds(one: Callable[[int], Result], seeds: Iterable[int]) -> list[Result]:
    """One result for each seed; the tracer sees the first."""
    first, *rest = seeds
    return [one(first), *untraced(lambda: [one(seed) for seed in rest])]
