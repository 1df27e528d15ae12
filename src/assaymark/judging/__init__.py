"""Judging: rubrics, blinding, prompts and replies, built-in judges, and the fact-check of stated numbers.

A judge receives one rendered prompt: the rubric, the context and a decision. `plan_calls` makes the calls of a study,
`judgment` turns each reply into a record. In a season whole trajectories are graded (`horizon_of`, `horizon_tasks`);
`composite`, `total_score` and `band` turn their grades into scores. No function here can access data from after a
decision.
"""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.judging.arithmetic_oracle import reconcile
    from assaymark.judging.blinding import Anonymised, anonymise, blinding_names
    from assaymark.judging.evidence import numeric_ledger
    from assaymark.judging.prompts import (
        PARSER, Graded, PlannedCall, PlannedGrade, eligible, judgment, left_out, plan_calls, plan_texts, rubric_form,
        user_messages,
    )  # fmt: skip
    from assaymark.judging.reference.judges import (
        ORACLE, PLANTED, ConstraintOracle, argument_problems, asked_alike, oracle_scores, reference_judges,
        reference_season_judges,
    )  # fmt: skip
    from assaymark.judging.rubric import Rubric, find_rubric, load_rubric, parse_rubric, rubric_names, rubric_of
    from assaymark.judging.season.calls import (
        GradedPart, HorizonGrades, HorizonLedger, HorizonScore, OutcomeGrade, horizon_ledgers, horizon_score,
        horizon_tasks, outcome_calls, outcome_grade, probe_calls,
    )  # fmt: skip
    from assaymark.judging.season.plans import ScoringPlan, load_scoring, parse_scoring, scoring_names
    from assaymark.judging.season.record import Horizon, StepRecord, horizon_of
    from assaymark.judging.season.scoring import (
        Contestant, DecisionTime, JudgeScore, NoiseFloor, SeasonRow as SeasonRow, band, composite, contested_band,
        decision_time, efficiency, gap_floor, judge_score, noise_floor, process_score, season_table,
        thrashing, tie_classes, total_score, weighted_axis,
    )  # fmt: skip
    from assaymark.prompting import judged_text, style_counts, token_count

__all__ = [
    "ORACLE", "PARSER", "PLANTED", "Anonymised", "ConstraintOracle", "Contestant", "DecisionTime", "Graded",
    "GradedPart", "Horizon", "HorizonGrades", "HorizonLedger", "HorizonScore", "JudgeScore", "NoiseFloor",
    "OutcomeGrade", "PlannedCall", "PlannedGrade", "Rubric", "ScoringPlan",
    "StepRecord", "anonymise", "argument_problems", "asked_alike", "band",
    "blinding_names", "composite", "contested_band", "decision_time", "efficiency", "eligible", "find_rubric",
    "gap_floor", "horizon_ledgers", "horizon_of", "horizon_score", "horizon_tasks",
    "judge_score", "judged_text", "judgment", "left_out", "load_rubric", "load_scoring", "noise_floor",
    "numeric_ledger", "oracle_scores", "outcome_calls", "outcome_grade", "parse_rubric", "parse_scoring", "plan_calls",
    "plan_texts", "probe_calls", "process_score", "reconcile", "reference_judges", "reference_season_judges",
    "rubric_form", "rubric_names", "rubric_of", "scoring_names", "season_table", "style_counts", "thrashing",
    "tie_classes", "token_count", "total_score", "user_messages", "weighted_axis",
]  # fmt: skip

__getattr__ = exported(__name__)
