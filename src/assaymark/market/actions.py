"""Corporate actions: splits and dividends, as a snapshot lists them or as its adjustment factors imply them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np

_NOISE: Final = 1e-6
"""A change of the factor up to this share is rounding of the source."""

_NEAR: Final = 1e-4
_LEAST_SPLIT: Final = 1.25
"""Exchanges treat a distribution of a quarter and more as a split; a smaller one counts as a dividend."""

_BESIDE: Final = 0.02
"""What may be left above a split as a dividend of the same day: more than companies pay at once, as a rule."""


@dataclass(frozen=True, slots=True)
class CorporateAction:
    """A split, a dividend, or both, in force from the open of ``ex_date``."""

    instrument: str
    ex_date: date
    split: float = 1.0
    dividend: float = 0.0
    since: date | None = None

    def __str__(self) -> str:
        parts = [f"split of {self.split:.6g} for 1"] if self.split != 1.0 else []
        parts += [f"dividend of {self.dividend:.6g} a unit"] if self.dividend else []
        return f"{self.instrument}: {' and '.join(parts)}, ex-date {self.ex_date}"


def implied_action(instrument: str, ex_date: date, ratio: float, before: float) -> CorporateAction | None:
    """The action behind a change of the adjustment factor, or None where the change is rounding."""
    if abs(ratio - 1.0) <= _NOISE:
        return None
    split = _split_in(ratio)
    rest = ratio / split
    dividend = before / split * (1.0 - 1.0 / rest) if rest > 1.0 + _NEAR or (split == 1.0 and rest > 1.0) else 0.0
    return CorporateAction(instrument, ex_date, split, float(f"{dividend:.12g}"))  # the amount, without float noise


def _split_in(ratio: float) -> float:
    """The split in a change of the factor; 1.0 where there is none."""
    large = max(ratio, 1.0 / ratio)
    if 1.0 <= ratio < _LEAST_SPLIT:
        return 1.0
    for parts in (1, 2, 3, 4):
        whole = round(large * parts)
        if abs(whole / parts / large - 1.0) <= _NEAR:
            return whole / parts if ratio > 1.0 else parts / whole
    for parts in (1, 2, 3, 4):  # with a dividend on the same day, which adds to the ratio
        whole = math.floor(large * parts) if ratio > 1.0 else math.ceil(large * parts)
        if whole / parts >= _LEAST_SPLIT and abs(whole / parts / large - 1.0) <= _BESIDE:
            return whole / parts if ratio > 1.0 else parts / whole
    if ratio < 1.0:
        return ratio  # no dividend is negative, so it is a split whatever its size
    return float(math.floor(ratio)) if ratio >= 2.0 else 1.0


def implied_actions(
    instrument: str, days: np.ndarray, closes: np.ndarray, factors: np.ndarray, listed: Sequence[CorporateAction]
) -> tuple[CorporateAction, ...]:
    """The actions of one instrument over its bars, oldest first: those that are listed, else what factors imply."""
    rows = np.flatnonzero(np.isfinite(closes))
    ratios = factors[rows[1:]] / factors[rows[:-1]]
    found = list(listed)
    for at in np.flatnonzero(np.abs(ratios - 1.0) > _NOISE).tolist():
        early, late = days[rows[at]].astype(object), days[rows[at + 1]].astype(object)
        if any(early < one.ex_date <= late for one in listed):
            continue
        action = implied_action(instrument, late, float(ratios[at]), float(closes[rows[at]]))
        found += [replace(action, since=early)] if action else []
    return tuple(sorted(found, key=lambda one: one.ex_date))
