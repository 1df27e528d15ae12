"""The viewpoints: for each judge and dimension, which features count, how much, and what a value is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from assaymark.judging.reference.features import Features

MIDDLE = 3.0
"""The score where a prompt gives nothing to go by."""


@dataclass(frozen=True, slots=True)
class Term:
    """One reason for a score: a feature, what its values are worth, and how much it counts.

    ``worth`` holds (value, score) knots with rising values; between knots the score is interpolated, beyond them flat.
    """

    feature: str
    worth: tuple[tuple[float, float], ...]
    weight: float = 1.0

    def score(self, features: Features) -> float | None:
        """What the feature is worth in this decision; None if it could not be noticed.

        >>> steps = ((0.0, 1.0), (0.5, 3.0))
        >>> Term("grounded", steps).worth == steps
        True
        """
        value = getattr(features, self.feature)
        return None if value is None else interpolate(float(value), self.worth)


def interpolate(value: float, knots: tuple[tuple[float, float], ...]) -> float:
    """Piecewise linear through the knots, flat beyond them.

    >>> interpolate(0.25, ((0.0, 1.0), (0.5, 3.0))), interpolate(9.0, ((0.0, 1.0), (0.5, 3.0)))
    (2.0, 3.0)
    """
    if value <= knots[0][0]:
        return knots[0][1]
    for (x0, y0), (x1, y1) in pairwise(knots):
        if value <= x1:
            return y0 + (y1 - y0) * (value - x0) / (x1 - x0)
    return knots[-1][1]


def opinion(terms: tuple[Term, ...], features: Features) -> float:
    """The weighted mean of the terms that could be noticed, 1..5; `MIDDLE` if none could."""
    found = [(term.weight, score) for term in terms if (score := term.score(features)) is not None]
    total = sum(weight for weight, _ in found)
    return sum(weight * score for weight, score in found) / total if total else MIDDLE


# An auditor's tolerance for numbers that cannot be found is small; a half that can be is poor work.
_GROUNDED = ((0.3, 1.0), (0.6, 2.0), (0.8, 3.0), (0.92, 4.0), (1.0, 5.0))
_LEGAL = ((0.80, 1.0), (0.99, 1.5), (1.0, 5.0))
_ORDER = ((0.2, 1.0), (0.5, 2.0), (0.8, 3.5), (1.0, 5.0))
_ARITHMETIC = ((0.3, 1.0), (0.67, 2.5), (1.0, 5.0))

AUDITOR: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER, 2.0),
        Term("edge", ((0.5, 1.0), (0.8, 3.0), (1.0, 4.5))),
        Term("grounded", _GROUNDED, 2.0),
    ),
    "risk_alignment": (
        Term("risk_numbers", ((0.0, 1.5), (1.0, 3.0), (3.0, 5.0))),
        Term("grounded", _GROUNDED, 2.0),
    ),
    "uncertainty_handling": (
        Term("ranges", ((0.5, 1.0), (0.9, 3.0), (1.0, 5.0))),
        Term("confidence", ((0.50, 5.0), (0.60, 3.8), (0.70, 2.5), (0.90, 1.0))),
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0))),
        Term("grounded", _GROUNDED),
    ),
    "position_sizing": (
        Term("arithmetic", _ARITHMETIC, 2.0),
        Term("order", _ORDER),
        Term("sizes_cited", ((0.0, 1.5), (0.5, 3.0), (1.5, 5.0))),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 3.0),
        Term("used", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (6.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL, 1.0),
        Term("rules_cited", ((0.0, 1.5), (1.0, 3.5), (3.0, 5.0)), 2.0),
    ),
}
"""Is it true? Numbers against the material, sums, order of forecasts and sizes, limits kept."""

READER: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("named", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0)), 2.0),
        Term("alternatives", ((0.0, 1.5), (2.0, 3.0), (6.0, 5.0))),
    ),
    "risk_alignment": (
        Term("risk_rate", ((0.5, 1.0), (2.0, 2.0), (4.0, 3.5), (7.0, 5.0)), 2.0),
        Term("named", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
    ),
    "uncertainty_handling": (
        Term("hedge_rate", ((0.0, 1.0), (1.0, 2.0), (2.5, 3.5), (5.0, 5.0)), 2.0),
        Term("condition_rate", ((0.0, 1.0), (0.8, 2.5), (2.0, 4.0), (4.0, 5.0)), 2.0),
        Term("contrast_rate", ((0.0, 1.5), (1.0, 3.0), (2.5, 5.0))),
    ),
    "position_sizing": (
        Term("size_rate", ((0.0, 1.0), (0.5, 2.0), (1.5, 3.5), (3.0, 5.0)), 2.0),
        Term("explained", ((0.2, 1.0), (0.6, 2.5), (1.0, 4.5))),
    ),
    "information_use": (
        Term("number_rate", ((0.0, 1.0), (2.0, 2.0), (5.0, 3.5), (10.0, 5.0)), 2.0),
        Term("catalyst_rate", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (5.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("constraint_rate", ((0.0, 1.0), (0.3, 2.5), (0.8, 4.0), (1.5, 5.0)), 2.0),
        Term("size_rate", ((0.0, 1.0), (0.5, 2.0), (1.5, 3.5), (3.0, 5.0))),
    ),
}
"""Is it explained? What is named and reasoned, and words of risk, doubt, events, limits and size per 100 words."""

_VOLATILITY = ((0.25, 5.0), (0.50, 3.8), (0.75, 2.3), (0.95, 1.0))
_CONFIDENCE = ((0.45, 5.0), (0.55, 4.0), (0.65, 3.0), (0.75, 2.0), (0.90, 1.0))

ALLOCATOR: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER, 2.0),
        Term("grounded", _GROUNDED),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0))),
    ),
    "risk_alignment": (
        Term("volatility", _VOLATILITY, 2.0),
        Term("groups", ((1.0, 1.0), (2.0, 2.3), (3.0, 3.5), (4.5, 5.0))),
        Term("risk_rate", ((0.5, 1.0), (2.0, 2.0), (4.0, 3.5), (7.0, 5.0))),
    ),
    "uncertainty_handling": (
        Term("confidence", _CONFIDENCE, 2.0),
        Term("effective", ((1.0, 1.0), (2.0, 2.3), (3.5, 3.6), (5.0, 5.0))),
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0))),
    ),
    "position_sizing": (
        Term("effective", ((1.0, 1.0), (2.0, 2.3), (3.5, 3.6), (5.0, 5.0)), 2.0),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("volatility", _VOLATILITY),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 2.0),
        Term("used", ((0.0, 1.0), (1.0, 2.5), (3.0, 4.0), (6.0, 5.0))),
        Term("explained", ((0.2, 1.0), (0.6, 3.0), (1.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("groups", ((1.0, 1.0), (2.0, 2.3), (3.0, 3.5), (4.5, 5.0))),
    ),
}
"""Is it prudent? Spread, stated volatility of what is held, confidence, limits kept, and numbers that hold."""

SKEPTIC: Mapping[str, tuple[Term, ...]] = {
    "action_coherence": (
        Term("order", _ORDER),
        Term("alternatives", ((0.0, 1.0), (2.0, 2.5), (5.0, 4.0), (8.0, 5.0)), 2.0),
        Term("grounded", _GROUNDED),
    ),
    "risk_alignment": (
        Term("contrast_rate", ((0.0, 1.0), (1.0, 2.5), (2.5, 4.0), (4.0, 5.0))),
        Term("risk_numbers", ((0.0, 1.5), (1.0, 3.0), (3.0, 5.0))),
        Term("volatility", _VOLATILITY),
    ),
    "uncertainty_handling": (
        Term("checkable", ((0.0, 1.0), (0.5, 2.5), (1.0, 3.5), (2.0, 5.0)), 2.0),
        Term("confidence", _CONFIDENCE),
        Term("condition_rate", ((0.0, 1.0), (0.8, 2.5), (2.0, 4.0), (4.0, 5.0))),
    ),
    "position_sizing": (
        Term("sizes_cited", ((0.0, 1.5), (0.5, 3.0), (1.5, 5.0))),
        Term("largest", ((0.20, 5.0), (0.30, 3.8), (0.50, 2.3), (1.0, 1.0))),
        Term("arithmetic", _ARITHMETIC),
    ),
    "information_use": (
        Term("grounded", _GROUNDED, 2.0),
        Term("number_rate", ((0.0, 1.0), (2.0, 2.0), (5.0, 3.5), (10.0, 5.0))),
        Term("alternatives", ((0.0, 1.0), (2.0, 2.5), (5.0, 4.0), (8.0, 5.0))),
    ),
    "constraint_awareness": (
        Term("legality", _LEGAL),
        Term("rules_cited", ((0.0, 1.5), (1.0, 3.5), (3.0, 5.0))),
        Term("constraint_rate", ((0.0, 1.0), (0.3, 2.5), (0.8, 4.0), (1.5, 5.0))),
    ),
}
"""Would it persuade a doubter? Alternatives, counter-arguments, checkable conditions, numbers. For an outside judge."""

RECONCILED: tuple[Term, ...] = (
    Term("legality", _LEGAL),
    Term("rules_cited", ((0.0, 1.0), (1.0, 3.0), (2.0, 4.0), (3.0, 5.0)), 2.0),
    Term("arithmetic", _ARITHMETIC),
)
"""What every judge looks for where the anchors of constraint awareness ask for arithmetic."""

VIEWS: Mapping[str, Mapping[str, tuple[Term, ...]]] = {
    "reference/auditor": AUDITOR,
    "reference/reader": READER,
    "reference/allocator": ALLOCATOR,
    "reference/skeptic": SKEPTIC,
}
"""The viewpoints by model name. A rubric dimension that is not among them is scored `MIDDLE`."""
