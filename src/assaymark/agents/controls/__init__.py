"""Adversarial controls: texts whose correct score is known by construction, from a context or an honest decision.

ValueBlindBench sections 3.5 and 5.5 define two, verbose-wrong and terse-right; section 7 defines three more that are
derived from an honest decision: a paraphrase, one number changed, another length. Generators return only texts that
pass `admissible`, which checks texts of any author.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from assaymark.agents.controls.checks import CELL_KINDS, DERIVED_KINDS, Composed, admissible, failed_checks
from assaymark.agents.controls.compose import (
    CONTROL, MADE_HERE, cell_decision, cell_decisions, fact_flip, length_matched, paraphrase, terse_right,
    verbose_wrong, with_checks,
)  # fmt: skip

__all__ = [
    "CELL_KINDS", "CONTROL", "DERIVED_KINDS", "MADE_HERE", "Composed", "admissible", "cell_decision", "cell_decisions",
    "fact_flip", "failed_checks", "length_matched", "paraphrase", "terse_right", "verbose_wrong", "with_checks",
]  # fmt: skip
