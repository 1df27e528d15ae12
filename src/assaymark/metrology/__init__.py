"""Measurement of judges: agreement, stability, inference over clusters, and the power of a design.

Pure functions from arrays to numbers (`weighted_kappa`, `cluster_t`, `holm` ...), a table of scores from judgments
(`score_table`), and one call that makes every measurement of a study (`analyse`). `assaymark.metrology.datasheet`
measures a single judge; its functions of plain sequences are exported here too.
"""

# ruff: noqa: I001  # packed, because it is a list

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.metrology.analysis import (
        analyse, analyse as analyse_sums, analyse_orders,  # noqa: F401  # its name in 0.1
    )  # fmt: skip
    from assaymark.metrology.bootstrap import (
        Interval, all_resamples, block_length, bootstrap_kappa, daily_excess, intraclass, jackknife_kappa,
        percentile_ends, sharpe_ratios, wilson,
    )  # fmt: skip
    from assaymark.metrology.columns import (
        ScoreColumns, ScoreColumns as Columns,  # noqa: F401  # its name in 0.1
        measurements_from_arrow, measurements_to_arrow, read_scores, score_table_of, table_from_arrow,
    )  # fmt: skip
    from assaymark.metrology.comparisons import Comparisons, PanelScores, cluster_differences, panel_scores
    from assaymark.metrology.contrasts import (
        Contrast, ModeratedContrasts, SerialContrast, autocorrelations, bootstrap_contrast, bootstrap_tests, cluster_t,
        effective_size, effective_t, flip_tests, holm, holm_rows, minimum_detectable_gap, moderated_contrasts,
        noncentral_tail, pair_differences, pairs_of, serial_contrasts, sign_flip, t_test, table_contrasts,
        trigamma_inverse,
    )  # fmt: skip
    from assaymark.metrology.controls import (
        CellAgreement, CellShift, ControlCell, ControlCell as Cell,  # noqa: F401  # its name in 0.1
        cell_agreement, cell_b_outcome, cell_equivalent, cell_measurements, kappa_of_records,
    )  # fmt: skip
    from assaymark.metrology.datasheet import Decomposition, Threshold, d_prime, decompose, detection_threshold
    from assaymark.metrology.design import (
        Components, DStudy, Preflight, Reach, detectable_levels, dstudy, minimum_detectable_effect, preflight,
        variance_components,
    )  # fmt: skip
    from assaymark.metrology.estimates import (
        Estimate, cluster_mean, jackknife_estimate, neighbour_blocks, student_estimate,
    )  # fmt: skip
    from assaymark.metrology.kappa import (
        average_ranks, averaging, contingency, fleiss_kappa, gated, kappa_of_table, leave_one_family_out,
        mean_pairwise_kappa, repetition_stability, round_half_up, spearman, spearman_columns, weighted_kappa,
    )  # fmt: skip
    from assaymark.metrology.length import (
        LengthAdjusted, LengthRecused, headline_p, judge_slopes, length_adjusted, length_matched_contrasts, length_p,
        length_recused, length_rule, season_verbosity, style_measurements,
    )  # fmt: skip
    from assaymark.metrology.measure_orders import (
        ScoredItems, board_measurements, level_measurements, order_measurements, rank_agreement,
    )  # fmt: skip
    from assaymark.metrology.measure_panel import (
        AgentBehaviour, categories_of, conduct_measurements, flagged_measurements, missing_measurements,
    )  # fmt: skip
    from assaymark.metrology.measure_panel import AgentBehaviour as Conduct  # noqa: F401  # its name in 0.1
    from assaymark.metrology.measure_people import (
        AnchorContrast, JudgeAgainstHumans, Labels, anchor_contrast, anchor_needed, anchor_response, anchor_status,
        judge_against_humans,
    )  # fmt: skip
    from assaymark.metrology.orders import (
        OrderAnalysis, OrderPlan, OrderTests, PublishedOrders, ScaleInfo, attainable_equalities, dimensions_claimed,
        equivalence_p, order_analysis, publish_orders, rank_intervals, shaffer, shaffer_pooled, stability_state, tiers,
    )  # fmt: skip
    from assaymark.metrology.panel import agent_effects
    from assaymark.metrology.probes import (
        ORACLE_DIMENSION, ProbePlan, anchor_measurements, cluster_gap, contamination_measurements, contested,
        effective_judges, error_correlation, known_measurements, oracle_measurements, probe_measurements, stratified,
    )  # fmt: skip
    from assaymark.metrology.recusal import (
        OwnFamily, PairTest, RecusalContrast, RecusalTest, SelfPreference, own_family, recusal_contrast, recusal_p,
        self_preference,
    )  # fmt: skip
    from assaymark.metrology.reliability import (
        AlphaReport, Discriminant, DistinctDimension, Icc, RandomJudges, alpha_report, discriminant, dstudy_variance,
        generalizability, icc, judge_agent_variance, krippendorff_alpha, multitrait_multimethod, random_judges,
        specific_contrast,
    )  # fmt: skip
    from assaymark.metrology.scores import CallCounts, CallCounts as Calls, Grades, ScoreTable, score_table  # noqa: F401
    from assaymark.metrology.simulation import (
        Composer, Panelist, Spread, Truth, drawn_truth, fitted_truth, joined, simulate_scores, with_judge, with_trials,
    )  # fmt: skip
    from assaymark.metrology.streaming import misfits, partition_sums, read_partition, score_sums, sums_of
    from assaymark.metrology.sums import NotStreamableError, ScoreSums, total, whole_weights

__all__ = [
    "ORACLE_DIMENSION", "AgentBehaviour", "AlphaReport", "AnchorContrast", "CallCounts",
    "CellAgreement", "CellShift", "Comparisons", "Components", "Composer", "Contrast", "ControlCell", "DStudy",
    "Decomposition", "Discriminant", "DistinctDimension", "Estimate", "Grades", "Icc", "Interval", "JudgeAgainstHumans",
    "Labels", "LengthAdjusted", "LengthRecused", "ModeratedContrasts", "NotStreamableError", "OrderAnalysis",
    "OrderPlan", "OrderTests", "OwnFamily", "PairTest", "PanelScores", "Panelist", "Preflight", "ProbePlan",
    "PublishedOrders", "RandomJudges", "Reach", "RecusalContrast", "RecusalTest", "ScaleInfo", "ScoreColumns",
    "ScoreSums", "ScoreTable", "ScoredItems", "SelfPreference", "SerialContrast", "Spread", "Threshold", "Truth",
    "agent_effects", "all_resamples", "alpha_report", "analyse", "analyse_orders", "anchor_contrast",
    "anchor_measurements", "anchor_needed", "anchor_response", "anchor_status", "attainable_equalities",
    "autocorrelations", "average_ranks", "averaging", "block_length", "board_measurements", "bootstrap_contrast",
    "bootstrap_kappa", "bootstrap_tests", "categories_of", "cell_agreement", "cell_b_outcome", "cell_equivalent",
    "cell_measurements", "cluster_differences", "cluster_gap", "cluster_mean", "cluster_t", "conduct_measurements",
    "contamination_measurements", "contested", "contingency", "d_prime", "daily_excess", "decompose",
    "detectable_levels", "detection_threshold", "dimensions_claimed", "discriminant", "drawn_truth", "dstudy",
    "dstudy_variance", "effective_judges", "effective_size", "effective_t", "equivalence_p", "error_correlation",
    "fitted_truth", "flagged_measurements", "fleiss_kappa", "flip_tests", "gated", "generalizability", "headline_p",
    "holm", "holm_rows", "icc", "intraclass", "jackknife_estimate", "jackknife_kappa", "joined", "judge_against_humans",
    "judge_agent_variance", "judge_slopes", "kappa_of_records", "kappa_of_table", "known_measurements",
    "krippendorff_alpha", "leave_one_family_out", "length_adjusted", "length_matched_contrasts", "length_p",
    "length_recused", "length_rule", "level_measurements", "mean_pairwise_kappa", "measurements_from_arrow",
    "measurements_to_arrow", "minimum_detectable_effect", "minimum_detectable_gap", "misfits", "missing_measurements",
    "moderated_contrasts", "multitrait_multimethod", "neighbour_blocks", "noncentral_tail", "oracle_measurements",
    "order_analysis", "order_measurements", "own_family", "pair_differences", "pairs_of", "panel_scores",
    "partition_sums", "percentile_ends", "preflight", "probe_measurements", "publish_orders", "random_judges",
    "rank_agreement", "rank_intervals", "read_partition", "read_scores", "recusal_contrast", "recusal_p",
    "repetition_stability", "round_half_up", "score_sums", "score_table", "score_table_of", "season_verbosity",
    "self_preference", "serial_contrasts", "shaffer", "shaffer_pooled", "sharpe_ratios", "sign_flip", "simulate_scores",
    "spearman", "spearman_columns", "specific_contrast", "stability_state", "stratified", "student_estimate",
    "style_measurements", "sums_of", "t_test", "table_contrasts", "table_from_arrow", "tiers", "total",
    "trigamma_inverse", "variance_components", "weighted_kappa", "whole_weights", "wilson", "with_judge", "with_trials",
]  # fmt: skip

__getattr__ = exported(__name__)
