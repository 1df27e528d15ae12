"""Who grades: rubrics, blinding, prompts and replies, reference judges, and the evidence ledger.

A judge is shown one rendered prompt: the rubric, the material of a context, a decision. `plan_calls` makes the calls of
a study, `judgment` turns each reply into a record; `composite`, `total_score` and `band` turn the grades of a season
into scores. Nothing here can reach what happened after a decision.
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
from assaymark.judging.season.noise import NoiseFloor, noise_floor, tie_classes
from assaymark.judging.season.plans import ScoringPlan, load_scoring, parse_scoring, scoring_names
from assaymark.judging.season.scores import (
    BandStanding,
    JudgeScore,
    band,
    composite,
    contested_band,
    efficiency,
    judge_score,
    process_score,
    total_score,
    weighted_axis,
)
from assaymark.judging.season.table import AgreementRow, Contestant, SeasonRow, SeasonTable, agreement_row, season_table
from assaymark.judging.season.thrash import RoundTrip, Thrashing, thrashing
from assaymark.judging.season.timing import DecisionTime, decision_time
from assaymark.prompting.texts import judged_text, token_count

__all__ = [
    "ORACLE",
    "PLANTED",
    "AgreementRow",
    "Anonymised",
    "BandStanding",
    "ConstraintOracle",
    "Contestant",
    "DecisionTime",
    "Dimension",
    "Invalid",
    "JudgeScore",
    "NoiseFloor",
    "Parsed",
    "PlannedCall",
    "Planted",
    "Reconciliation",
    "ReferenceJudge",
    "RoundTrip",
    "Rubric",
    "ScoringPlan",
    "SeasonRow",
    "SeasonTable",
    "Thrashing",
    "agreement_row",
    "anonymise",
    "argument_problems",
    "asked_alike",
    "band",
    "blinding_names",
    "composite",
    "contested_band",
    "decision_time",
    "efficiency",
    "eligible",
    "judge_score",
    "judged_text",
    "judgment",
    "left_out",
    "load_rubric",
    "load_scoring",
    "noise_floor",
    "numeric_ledger",
    "oracle_scores",
    "parse_reply",
    "parse_scoring",
    "plan_calls",
    "plan_texts",
    "process_score",
    "reconcile",
    "reference_judges",
    "reply_schema",
    "rubric_names",
    "scoring_names",
    "season_table",
    "thrashing",
    "tie_classes",
    "token_count",
    "total_score",
    "user_messages",
    "weighted_axis",
]
