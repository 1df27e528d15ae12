"""Control cells: decisions and texts whose right treatment is known, made from a context or an honest decision.

ValueBlindBench sections 3.5 and 5.5 ask for two, verbose but wrong and terse but right; section 7 for three more, made
from an honest decision: other words, one number changed, another length. A generator hands out nothing that
`admissible` refuses, and `admissible` does not ask who wrote what it reads.
"""

from __future__ import annotations

from assaymark.agents.cells.admissibility import admissible, checked, is_admissible
from assaymark.agents.cells.composed import CELL_KINDS, DERIVED_KINDS, AdmissibilityCheck, Change, Composed, failed
from assaymark.agents.cells.decisions import CONTROL, cell_decision, cell_decisions
from assaymark.agents.cells.flip import fact_flip
from assaymark.agents.cells.length import length_matched
from assaymark.agents.cells.paraphrase import paraphrase
from assaymark.agents.cells.terse import terse_right
from assaymark.agents.cells.verbose import verbose_wrong

__all__ = [
    "CELL_KINDS",
    "CONTROL",
    "DERIVED_KINDS",
    "AdmissibilityCheck",
    "Change",
    "Composed",
    "admissible",
    "cell_decision",
    "cell_decisions",
    "checked",
    "fact_flip",
    "failed",
    "is_admissible",
    "length_matched",
    "paraphrase",
    "terse_right",
    "verbose_wrong",
]
