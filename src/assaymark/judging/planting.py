"""What reference judges share: arguments that override planted properties, and draws that are fixed by a name."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from statistics import NormalDist
from typing import Final

from assaymark.prompting.styles import SIGNATURES

_STANDARD: Final = NormalDist()
_PRINTED: Final = 1e9  # a whole number beyond it may have more digits than can be printed
_SHOWN_CHARS: Final = 80


def uniform(name: str) -> float:
    """A number between 0 and 1 that is fixed by a name.

    >>> round(uniform("ash"), 4)
    0.0136
    """
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") + 0.5) / 2**56


def standard_normal(name: str) -> float:
    """A standard normal number that is fixed by a name."""
    return _STANDARD.inv_cdf(uniform(name))


def knob_problem(
    key: str, value: object, knobs: Sequence[str], *, most: float, never_negative: Collection[str] = ()
) -> str | None:
    """What is wrong with an argument that overrides a planted property: ``kin`` is a style, every other a number.

    >>> knob_problem("noise", -0.5, ["noise"], most=1e9, never_negative=["noise"])
    'argument noise must be at least 0 (got -0.5)'
    """
    if key not in knobs:
        return f"argument {key} is unknown (allowed: {', '.join(knobs)})"
    if key == "kin":
        known = isinstance(value, str) and value in SIGNATURES
        return None if known else f"argument kin must be one of {', '.join(SIGNATURES)} (got {value_words(value)})"
    if not is_number(value, -most, most):
        return f"argument {key} must be a finite number of at most {most:g} in size (got {value_words(value)})"
    if key in never_negative and not is_number(value, 0.0, most):
        return f"argument {key} must be at least 0 (got {value!r})"
    return None


def is_number(value: object, low: float, high: float) -> bool:
    """Whether a value is a number in a range; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high


def value_words(value: object) -> str:
    """A value for a message, cut short; a huge number would not print."""
    return "a huge number" if isinstance(value, int) and abs(value) > _PRINTED else f"{value!r:.{_SHOWN_CHARS}}"
