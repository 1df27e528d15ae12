"""PortBench: questions with exact answers, five pipeline stages, the oracle, scores, profiles, stress windows."""

# ruff: noqa: F401, I001  # what is not in __all__ is for tests

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.benchmark.episode import (
        BASELINES, BaselineResult, EpisodeState, MarketWindow, Scene, ahead_of, baseline_weights,
        equal_start, hold, oracle_weights, risk_of, run_baselines, scene_on, signals_of, trade,
        turnover_between, views_of,
    )  # fmt: skip
    from assaymark.benchmark.market import (
        HORIZONS, SEED_WINDOWS, AssetLine, BenchMarket, MarketState, Universe, Window, choose_universe,
        decision_rows, is_index, own_regimes, window_named, windows_of, MarketState as Known,
    )  # fmt: skip
    from assaymark.benchmark.plan import BenchPlan, Market, Pipeline, Questions, parse_plan
    from assaymark.benchmark.plan import (
        AGGRESSIVE, BALANCED, CLASS_NAMES, CONSERVATIVE, PROFILES, RISK_SAFE, STRESS_SCENARIOS, ClassName, Profile,
        adaptation_score, exposures, profile_alignment, profile_named, risk_safe, stress_gate, stress_score,
    )  # fmt: skip
    from assaymark.benchmark.reference import ReferenceBenchmarkModel, reference_benchmark_models
    from assaymark.benchmark.replies import (
        ANSWER_SCHEMA, ASKED, COLUMNS, MOST_CHARACTERS, THRESHOLD, market_numbers, market_text, outside_call,
        parse_signals, parse_views, parse_weights, rationale_of, reply_schema, reply_text, stage_template, stage_texts,
    )  # fmt: skip
    from assaymark.benchmark.scores import (
        CONVENTIONS, SIGNALS, STAGES, Answers, CallExcerpt, Convention, DateResult, EpisodeResult, Pace, Position,
        Risk, Signal, Stage, StageState, Truths, ceps, inter_class_score, intra_class_score, s1_score, s2_score,
        s3_score, s4_score, s5_score, weight_accuracy, CallExcerpt as Heard,
    )  # fmt: skip

__all__ = [
    "AGGRESSIVE", "ANSWER_SCHEMA", "ASKED", "BALANCED", "BASELINES", "CLASS_NAMES", "COLUMNS", "CONSERVATIVE",
    "CONVENTIONS", "HORIZONS", "MOST_CHARACTERS", "PROFILES", "RISK_SAFE", "SEED_WINDOWS", "SIGNALS", "STAGES",
    "STRESS_SCENARIOS", "THRESHOLD", "Answers", "BenchMarket", "BenchPlan", "ClassName", "Convention", "DateResult",
    "EpisodeResult", "EpisodeState", "Market", "MarketState", "MarketWindow", "Pace", "Pipeline", "Position", "Profile",
    "Questions", "ReferenceBenchmarkModel", "Risk", "Scene", "Signal", "Stage", "StageState", "Truths", "Window",
    "adaptation_score", "ahead_of", "baseline_weights", "ceps", "choose_universe", "decision_rows", "equal_start",
    "exposures", "hold", "inter_class_score", "intra_class_score", "is_index", "market_numbers", "market_text",
    "oracle_weights", "outside_call", "own_regimes", "parse_plan", "parse_signals", "parse_views", "parse_weights",
    "profile_alignment", "profile_named", "rationale_of", "reference_benchmark_models", "reply_schema", "reply_text",
    "risk_of", "risk_safe", "run_baselines", "s1_score", "s2_score", "s3_score", "s4_score", "s5_score", "scene_on",
    "signals_of", "stage_template", "stage_texts", "stress_gate", "stress_score", "trade", "turnover_between",
    "views_of", "weight_accuracy", "window_named", "windows_of",
]  # fmt: skip

__getattr__ = exported(__name__)
