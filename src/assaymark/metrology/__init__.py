"""How good the judges are: agreement, stability, inference over clusters, and what a design can conclude.

Pure functions from arrays to numbers (`weighted_kappa`, `cluster_t`, `holm` ...), a table of scores from judgments
(`score_table`), and one call that makes every measurement of a study (`analyse`). `assaymark.metrology.datasheet` has
one judge as an instrument; its functions of plain sequences are here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.metrology.analysis import analyse, analyse_sums
    from assaymark.metrology.bootstrap import Interval, bootstrap_kappa, jackknife_kappa, wilson
    from assaymark.metrology.columns import (
        measurements_from_arrow,
        measurements_to_arrow,
        read_scores,
        table_from_arrow,
    )
    from assaymark.metrology.comparisons import PanelScores, cluster_differences, panel_scores
    from assaymark.metrology.contrasts import Contrast, bootstrap_contrast, cluster_t, holm, sign_flip
    from assaymark.metrology.controls import (
        Cell,
        CellAgreement,
        CellShift,
        cell_agreement,
        cell_equivalent,
        cell_measurements,
    )
    from assaymark.metrology.datasheet import Decomposition, Threshold, d_prime, decompose, detection_threshold
    from assaymark.metrology.design import (
        Components,
        Preflight,
        Reach,
        minimum_detectable_effect,
        preflight,
        variance_components,
    )
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
        averaging,
        fleiss_kappa,
        gated,
        kappa_of_table,
        leave_one_family_out,
        mean_correlation,
        mean_pairwise_kappa,
        repetition_stability,
        round_half_up,
        weighted_kappa,
    )
    from assaymark.metrology.length import (
        LengthAdjusted,
        LengthRecused,
        headline_p,
        length_adjusted,
        length_matched_contrasts,
        length_p,
        length_recused,
        length_rule,
        style_measurements,
    )
    from assaymark.metrology.measure_panel import (
        Conduct,
        conduct_measurements,
        flagged_measurements,
        missing_measurements,
    )
    from assaymark.metrology.moderated import (
        ModeratedContrasts,
        SerialContrast,
        autocorrelations,
        minimum_detectable_gap,
        moderated_contrasts,
        serial_contrasts,
        table_contrasts,
        trigamma_inverse,
    )
    from assaymark.metrology.orders import (
        OrderAnalysis,
        PairTest,
        PublishedOrders,
        ScaleInfo,
        attainable_equalities,
        equivalence_p,
        order_analysis,
        publish_orders,
        rank_intervals,
        shaffer,
        shaffer_pooled,
        stability_state,
        tiers,
    )
    from assaymark.metrology.panel import AgentEffects, agent_effects
    from assaymark.metrology.probes import (
        ProbePlan,
        anchor_measurements,
        contamination_measurements,
        contested,
        effective_judges,
        known_measurements,
        oracle_measurements,
        probe_measurements,
        stratified,
    )
    from assaymark.metrology.recusal import (
        OwnFamily,
        RecusalContrast,
        RecusalTest,
        SelfPreference,
        own_family,
        recusal_contrast,
        recusal_p,
        self_preference,
    )
    from assaymark.metrology.reliability import (
        AlphaReport,
        Discriminant,
        DistinctDimension,
        DStudy,
        Icc,
        RandomJudges,
        alpha_report,
        discriminant,
        dstudy,
        dstudy_variance,
        generalizability,
        icc,
        judge_agent_variance,
        krippendorff_alpha,
        multitrait_multimethod,
        random_judges,
        specific_contrast,
    )
    from assaymark.metrology.scores import Calls, Grades, ScoreTable, score_table
    from assaymark.metrology.simulation import Truth, simulate_scores
    from assaymark.metrology.streaming import score_sums
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

__getattr__ = exported(__name__)
