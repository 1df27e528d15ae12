"""How good the judges are: agreement, stability, inference over clusters, and what a design can conclude.

Pure functions from arrays to numbers (`weighted_kappa`, `cluster_t`, `holm` ...), a table of scores from judgments
(`score_table`), and one call that makes every measurement of a study (`analyse`). `assaymark.metrology.datasheet` has
one judge as an instrument; its functions of plain sequences are here too.
"""

from __future__ import annotations

from assaymark.metrology.analysis import analyse, analyse_sums
from assaymark.metrology.bootstrap import Interval, bootstrap_kappa, jackknife_kappa, wilson
from assaymark.metrology.columns import measurements_from_arrow, measurements_to_arrow, read_scores, table_from_arrow
from assaymark.metrology.comparisons import PanelScores, cluster_differences, panel_scores
from assaymark.metrology.components import Components, variance_components
from assaymark.metrology.contrasts import Contrast, bootstrap_contrast, cluster_t, holm, sign_flip
from assaymark.metrology.control_agreement import CellAgreement, CellShift, cell_agreement, cell_equivalent
from assaymark.metrology.controls import Cell, cell_measurements
from assaymark.metrology.datasheet import Decomposition, Threshold, d_prime, decompose, detection_threshold
from assaymark.metrology.decision_study import DStudy, dstudy, dstudy_variance, generalizability
from assaymark.metrology.design import Preflight, Reach, minimum_detectable_effect, preflight
from assaymark.metrology.dimensions import (
    Discriminant,
    DistinctDimension,
    discriminant,
    multitrait_multimethod,
    specific_contrast,
)
from assaymark.metrology.effects import AgentEffects, agent_effects
from assaymark.metrology.estimates import Estimate
from assaymark.metrology.human_anchor import (
    AnchorContrast,
    JudgeAgainstHumans,
    anchor_contrast,
    anchor_needed,
    anchor_response,
    anchor_status,
    judge_against_humans,
)
from assaymark.metrology.kappa import (
    fleiss_kappa,
    kappa_of_table,
    mean_correlation,
    mean_pairwise_kappa,
    round_half_up,
    weighted_kappa,
)
from assaymark.metrology.length import (
    LengthAdjusted,
    LengthRecused,
    headline_p,
    length_adjusted,
    length_p,
    length_recused,
    length_rule,
)
from assaymark.metrology.measure_panel import Conduct, conduct_measurements, flagged_measurements, missing_measurements
from assaymark.metrology.moderated import (
    ModeratedContrasts,
    minimum_detectable_gap,
    moderated_contrasts,
    table_contrasts,
    trigamma_inverse,
)
from assaymark.metrology.oracle import effective_judges, known_measurements, oracle_measurements
from assaymark.metrology.order_tests import (
    PublishedOrders,
    attainable_equalities,
    publish_orders,
    shaffer,
    shaffer_pooled,
)
from assaymark.metrology.orders import (
    OrderAnalysis,
    PairTest,
    ScaleInfo,
    equivalence_p,
    order_analysis,
    rank_intervals,
    stability_state,
    tiers,
)
from assaymark.metrology.probes import (
    ProbePlan,
    anchor_measurements,
    contamination_measurements,
    contested,
    probe_measurements,
    stratified,
)
from assaymark.metrology.recusal import OwnFamily, RecusalContrast, RecusalTest, own_family, recusal_contrast, recusal_p
from assaymark.metrology.reliability import (
    AlphaReport,
    Icc,
    RandomJudges,
    alpha_report,
    icc,
    judge_agent_variance,
    krippendorff_alpha,
    random_judges,
)
from assaymark.metrology.scores import Calls, Grades, ScoreTable, score_table
from assaymark.metrology.self_preference import SelfPreference, self_preference
from assaymark.metrology.serial import SerialContrast, autocorrelations, serial_contrasts
from assaymark.metrology.simulation import Truth, simulate_scores
from assaymark.metrology.stability import averaging, gated, leave_one_family_out, repetition_stability
from assaymark.metrology.streaming import score_sums
from assaymark.metrology.style import length_matched_contrasts, style_measurements
from assaymark.metrology.sums import ScoreSums

__all__ = [
    "AgentEffects", "AlphaReport", "AnchorContrast", "Calls", "Cell", "CellAgreement", "CellShift", "Components",
    "Conduct", "Contrast", "DStudy", "Decomposition", "Discriminant", "DistinctDimension", "Estimate", "Grades", "Icc",
    "Interval", "JudgeAgainstHumans", "LengthAdjusted", "LengthRecused", "ModeratedContrasts", "OrderAnalysis",
    "OwnFamily", "PairTest", "PanelScores", "Preflight", "ProbePlan", "PublishedOrders", "RandomJudges", "Reach",
    "RecusalContrast", "RecusalTest", "ScaleInfo", "ScoreSums", "ScoreTable", "SelfPreference", "SerialContrast",
    "Threshold", "Truth", "agent_effects", "alpha_report", "analyse", "analyse_sums", "anchor_contrast",
    "anchor_measurements", "anchor_needed", "anchor_response", "anchor_status", "attainable_equalities",
    "autocorrelations", "averaging", "bootstrap_contrast", "bootstrap_kappa", "cell_agreement", "cell_equivalent",
    "cell_measurements", "cluster_differences", "cluster_t", "conduct_measurements", "contamination_measurements",
    "contested", "d_prime", "decompose", "detection_threshold", "discriminant", "dstudy", "dstudy_variance",
    "effective_judges", "equivalence_p", "flagged_measurements", "fleiss_kappa", "gated", "generalizability",
    "headline_p", "holm", "icc", "jackknife_kappa", "judge_against_humans", "judge_agent_variance", "kappa_of_table",
    "known_measurements", "krippendorff_alpha", "leave_one_family_out", "length_adjusted", "length_matched_contrasts",
    "length_p", "length_recused", "length_rule", "mean_correlation", "mean_pairwise_kappa", "measurements_from_arrow",
    "measurements_to_arrow", "minimum_detectable_effect", "minimum_detectable_gap", "missing_measurements",
    "moderated_contrasts", "multitrait_multimethod", "oracle_measurements", "order_analysis", "own_family",
    "panel_scores", "preflight", "probe_measurements", "publish_orders", "random_judges", "rank_intervals",
    "read_scores", "recusal_contrast", "recusal_p", "repetition_stability", "round_half_up", "score_sums",
    "score_table", "self_preference", "serial_contrasts", "shaffer", "shaffer_pooled", "sign_flip", "simulate_scores",
    "specific_contrast", "stability_state", "stratified", "style_measurements", "table_contrasts", "table_from_arrow",
    "tiers", "trigamma_inverse", "variance_components", "weighted_kappa", "wilson",
]  # fmt: skip
