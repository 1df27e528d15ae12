"""Control cells: decisions and texts whose right treatment is known, made from a context or an honest decision.

ValueBlindBench sections 3.5 and 5.5 ask for two, verbose but wrong and terse but right; section 7 for three more, made
from an honest decision: other words, one number changed, another length. A generator hands out nothing that
`admissible` refuses, and `admissible` does not ask who wrote what it reads.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from assaymark.agents.controls.checks import CELL_KINDS, DERIVED_KINDS, Composed, admissible, failed
from assaymark.agents.controls.compose import (
    CONTROL, MADE_HERE, cell_decision, cell_decisions, checked, fact_flip, length_matched, paraphrase, terse_right,
    verbose_wrong,
)  # fmt: skip

__all__ = [
    "CELL_KINDS", "CONTROL", "DERIVED_KINDS", "MADE_HERE", "Composed", "admissible", "cell_decision", "cell_decisions",
    "checked", "fact_flip", "failed", "length_matched", "paraphrase", "terse_right", "verbose_wrong",
]  # fmt: skip
