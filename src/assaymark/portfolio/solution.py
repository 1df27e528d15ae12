"""What an optimiser answers: weights, and the name of the kind of answer they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Status = Literal["optimal", "duplicates", "no-positive-excess", "zero-variance", "unbounded", "empty"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""Every status: what each means is said by the function that gives it."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Weights and how they were found.

    Attributes
    ----------
    weights : float array of shape (n_assets,)
        At least 0, sum to 1, read-only.
    status : Status
        ``optimal``, or the name of the degenerate case that the weights answer.
    residual : float or None
        Largest violation of the optimality conditions, without unit: for the quadratic problems relative to the
        largest ratio of target to volatility, for equal risk contribution the largest distance of a risk share times
        n_assets from 1. None where no conditions apply (a closed form, a corner, a fallback).
    iterations : int
        Steps of the solver.
    method : str
        The algorithm.
    """

    weights: Floats
    status: Status
    residual: float | None
    iterations: int
    method: str

    def __post_init__(self) -> None:
        self.weights.flags.writeable = False


def spread(n: int, chosen: Bools | NDArray[np.intp]) -> Floats:
    """Equal weights over the chosen of ``n`` assets."""
    weights = np.zeros(n)
    weights[chosen] = 1.0
    return np.asarray(weights / weights.sum())
