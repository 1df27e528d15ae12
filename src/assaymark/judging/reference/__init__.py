"""Reference judges: rubric graders with stated viewpoints and planted, documented errors."""

from __future__ import annotations

from assaymark.judging.reference.features import Features
from assaymark.judging.reference.judges import (
    ORACLE,
    PLANTED,
    VIEWS,
    ConstraintOracle,
    Planted,
    ReferenceJudge,
    Term,
    argument_problems,
    asked_alike,
    oracle_scores,
    reference_judges,
)

__all__ = [
    "ORACLE",
    "PLANTED",
    "VIEWS",
    "ConstraintOracle",
    "Features",
    "Planted",
    "ReferenceJudge",
    "Term",
    "argument_problems",
    "asked_alike",
    "oracle_scores",
    "reference_judges",
]
