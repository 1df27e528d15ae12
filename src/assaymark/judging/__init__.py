"""Who grades: rubrics, blinding, prompts and replies, reference judges, and the evidence ledger.

A judge is shown one rendered prompt: the rubric, the material of a context, a decision. `plan_calls` makes the calls of
a study, `judgment` turns each reply into a record. Nothing here can reach what happened after a decision.
"""

from __future__ import annotations

from assaymark.judging.blinding import Anonymised, anonymise, blinding_names
from assaymark.judging.evidence import numeric_ledger
from assaymark.judging.oracle import Reconciliation, reconcile
from assaymark.judging.prompts import PlannedCall, eligible, left_out, plan_calls, plan_texts, user_messages
from assaymark.judging.reference import (
    ORACLE,
    PLANTED,
    ConstraintOracle,
    Planted,
    ReferenceJudge,
    argument_problems,
    asked_alike,
    oracle_scores,
    reference_judges,
)
from assaymark.judging.replies import Invalid, Parsed, judgment, parse_reply, reply_schema
from assaymark.judging.rubric import Dimension, Rubric, load_rubric, rubric_names
from assaymark.prompting.texts import judged_text, token_count

__all__ = [
    "ORACLE",
    "PLANTED",
    "Anonymised",
    "ConstraintOracle",
    "Dimension",
    "Invalid",
    "Parsed",
    "PlannedCall",
    "Planted",
    "Reconciliation",
    "ReferenceJudge",
    "Rubric",
    "anonymise",
    "argument_problems",
    "asked_alike",
    "blinding_names",
    "eligible",
    "judged_text",
    "judgment",
    "left_out",
    "load_rubric",
    "numeric_ledger",
    "oracle_scores",
    "parse_reply",
    "plan_calls",
    "plan_texts",
    "reconcile",
    "reference_judges",
    "reply_schema",
    "rubric_names",
    "token_count",
    "user_messages",
]
