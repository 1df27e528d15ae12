"""How good the judges are: agreement, stability, inference over clusters, and what a design can conclude.

Pure functions from arrays to numbers (`weighted_kappa`, `cluster_t`, `holm` ...), a table of scores from judgments
(`score_table`), and one call that makes every measurement of a study (`analyse`).
"""

from __future__ import annotations

from assaymark.metrology.agreement import (
    fleiss_kappa,
    kappa_of_table,
    mean_correlation,
    mean_pairwise_kappa,
    round_half_up,
    weighted_kappa,
)
from assaymark.metrology.analysis import analyse
from assaymark.metrology.contrasts import Contrast, bootstrap_contrast, cluster_t, gating_test, holm
from assaymark.metrology.effects import AgentEffects, agent_effects
from assaymark.metrology.intervals import Interval, wilson
from assaymark.metrology.planning import (
    ErrorRate,
    Preflight,
    minimum_detectable_effect,
    preflight,
    simulate_error_rate,
)
from assaymark.metrology.resampling import bootstrap_kappa, jackknife_kappa
from assaymark.metrology.stability import leave_one_family_out, repetition_stability
from assaymark.metrology.table import Calls, ScoreTable, score_table

__all__ = [
    "AgentEffects",
    "Calls",
    "Contrast",
    "ErrorRate",
    "Interval",
    "Preflight",
    "ScoreTable",
    "agent_effects",
    "analyse",
    "bootstrap_contrast",
    "bootstrap_kappa",
    "cluster_t",
    "fleiss_kappa",
    "gating_test",
    "holm",
    "jackknife_kappa",
    "kappa_of_table",
    "leave_one_family_out",
    "mean_correlation",
    "mean_pairwise_kappa",
    "minimum_detectable_effect",
    "preflight",
    "repetition_stability",
    "round_half_up",
    "score_table",
    "simulate_error_rate",
    "weighted_kappa",
    "wilson",
]
