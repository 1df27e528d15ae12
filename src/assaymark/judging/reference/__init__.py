"""Built-in judges for rubrics and seasons, with documented viewpoints and planted errors."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.reference.features import Features, notice
    from assaymark.judging.reference.judges import (
        PlantedJudge, PlantedJudge as Planted,  # noqa: F401  # its name in 0.1
        MIDDLE, ORACLE, PLANTED, VIEWS, ConstraintOracle, ReferenceJudge, Term, argument_problems, asked_alike, opinion,
        oracle_scores, reference_judges,
    )  # fmt: skip

__all__ = [
    "MIDDLE", "ORACLE", "PLANTED", "VIEWS", "ConstraintOracle", "Features", "PlantedJudge", "ReferenceJudge", "Term",
    "argument_problems", "asked_alike", "notice", "opinion", "oracle_scores", "reference_judges",
]  # fmt: skip

__getattr__ = exported(__name__)
