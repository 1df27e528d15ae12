"""How good the judges are: agreement, stability, inference over clusters, and what a design can conclude.

Pure functions from arrays to numbers (`weighted_kappa`, `cluster_t`, `holm` ...), a table of scores from judgments
(`score_table`), and one call that makes every measurement of a study (`analyse`). `assaymark.metrology.datasheet` has
one judge as an instrument; its functions of plain sequences are here too.
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
from assaymark.metrology.anchor import anchor_measurements, stratified
from assaymark.metrology.arrow import measurements_from_arrow, measurements_to_arrow, table_from_arrow
from assaymark.metrology.cells import Cell, cell_measurements
from assaymark.metrology.columns import read_scores
from assaymark.metrology.components import Components, variance_components
from assaymark.metrology.conduct import Conduct, conduct_measurements
from assaymark.metrology.contamination import contamination_measurements
from assaymark.metrology.contrasts import Contrast, bootstrap_contrast, cluster_t, gating_test, holm
from assaymark.metrology.datasheet import Decomposition, Threshold, d_prime, decompose, detection_threshold
from assaymark.metrology.effects import AgentEffects, agent_effects
from assaymark.metrology.flips import sign_flip
from assaymark.metrology.intervals import Interval, wilson
from assaymark.metrology.known import effective_judges, known_measurements
from assaymark.metrology.oracle import oracle_measurements
from assaymark.metrology.planning import (
    ErrorRate,
    Preflight,
    minimum_detectable_effect,
    preflight,
    simulate_error_rate,
)
from assaymark.metrology.pooled import analyse_sums
from assaymark.metrology.probe import ProbePlan, contested, probe_measurements
from assaymark.metrology.resampling import bootstrap_kappa, jackknife_kappa
from assaymark.metrology.self_preference import SelfPreference, self_preference
from assaymark.metrology.simulation import Truth, simulate_scores
from assaymark.metrology.stability import averaging, gated, leave_one_family_out, repetition_stability
from assaymark.metrology.streaming import score_sums
from assaymark.metrology.style import length_matched_contrasts, style_measurements
from assaymark.metrology.sums import ScoreSums
from assaymark.metrology.table import Calls, ScoreTable, score_table

__all__ = [
    "AgentEffects",
    "Calls",
    "Cell",
    "Components",
    "Conduct",
    "Contrast",
    "Decomposition",
    "ErrorRate",
    "Interval",
    "Preflight",
    "ProbePlan",
    "ScoreSums",
    "ScoreTable",
    "SelfPreference",
    "Threshold",
    "Truth",
    "agent_effects",
    "analyse",
    "analyse_sums",
    "anchor_measurements",
    "averaging",
    "bootstrap_contrast",
    "bootstrap_kappa",
    "cell_measurements",
    "cluster_t",
    "conduct_measurements",
    "contamination_measurements",
    "contested",
    "d_prime",
    "decompose",
    "detection_threshold",
    "effective_judges",
    "fleiss_kappa",
    "gated",
    "gating_test",
    "holm",
    "jackknife_kappa",
    "kappa_of_table",
    "known_measurements",
    "leave_one_family_out",
    "length_matched_contrasts",
    "mean_correlation",
    "mean_pairwise_kappa",
    "measurements_from_arrow",
    "measurements_to_arrow",
    "minimum_detectable_effect",
    "oracle_measurements",
    "preflight",
    "probe_measurements",
    "read_scores",
    "repetition_stability",
    "round_half_up",
    "score_sums",
    "score_table",
    "self_preference",
    "sign_flip",
    "simulate_error_rate",
    "simulate_scores",
    "stratified",
    "style_measurements",
    "table_from_arrow",
    "variance_components",
    "weighted_kappa",
    "wilson",
]
