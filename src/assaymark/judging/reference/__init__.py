"""Reference judges: rubric graders with stated viewpoints and planted, documented errors."""

from __future__ import annotations

from assaymark.judging.reference.features import Features
from assaymark.judging.reference.judges import (
    PLANTED,
    Planted,
    ReferenceJudge,
    argument_problems,
    reference_judges,
)
from assaymark.judging.reference.views import VIEWS, Term

__all__ = ["PLANTED", "VIEWS", "Features", "Planted", "ReferenceJudge", "Term", "argument_problems", "reference_judges"]
