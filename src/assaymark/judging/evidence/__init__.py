"""Deterministic fact-check of numbers: every number in a rationale, checked against the agent's own context.

`numeric_ledger` makes the first of a season's two evidence ledgers (season methodology v0.3 and v0.4; a judge makes the
other). Its core, `audit_texts` with a `ContextIndex`, needs no record, so a judge with only a prompt can use it too.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.evidence.context_index import (
        ContextIndex, ContextIndex as Material, DecisionNumbers, DecisionNumbers as OwnNumbers,  # noqa: F401
        own_numbers,
    )  # fmt: skip
    from assaymark.judging.evidence.ledger import (
        BORNE_OUT, ROW_RULES, audit_texts, chance_corrected, evidence_summary, forecast_mismatches, numeric_ledger,
    )  # fmt: skip
    from assaymark.judging.evidence.mention import extract_numbers

__all__ = [
    "BORNE_OUT", "ROW_RULES", "ContextIndex", "DecisionNumbers", "audit_texts", "chance_corrected", "evidence_summary",
    "extract_numbers", "forecast_mismatches", "numeric_ledger", "own_numbers",
]  # fmt: skip

__getattr__ = exported(__name__)
