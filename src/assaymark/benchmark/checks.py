"""What the scores demand of their input beside the checks of `assaymark.portfolio`."""

from __future__ import annotations

import numpy as np

from assaymark.benchmark.stages import CONVENTIONS
from assaymark.errors import UnknownNameError
from assaymark.portfolio.checks import Findings
from assaymark.portfolio.solution import Floats

# Findings takes half-open ranges.
_ABOVE_ONE = float(np.nextafter(1.0, 2.0))
_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))


def known_convention(convention: str) -> None:
    """Refuse the name of a convention that is none."""
    if convention not in CONVENTIONS:
        raise UnknownNameError("convention", convention, CONVENTIONS)


def share(found: Findings, where: str, value: float) -> None:
    """Note a number that is not within 0 and 1."""
    found.number(where, value, 0.0, _ABOVE_ONE, "from 0 to 1")


def positive_share(found: Findings, where: str, value: float) -> None:
    """Note a number that is not above 0 and at most 1."""
    found.number(where, value, _ABOVE_ZERO, _ABOVE_ONE, "above 0 and at most 1")


def same_length(found: Findings, where: str, said: Floats | None, true: Floats | None) -> None:
    """Note answers that are not as many as their truths."""
    if said is not None and true is not None and said.size != true.size:
        found.add(where, f"must be as many as the truths (got {said.size} and {true.size})")


def clipped(value: float) -> float:
    """``value`` cut to [0, 1]."""
    return min(1.0, max(0.0, float(value)))
