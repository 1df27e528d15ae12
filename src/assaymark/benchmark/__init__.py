"""PortBench: questions with exact answers, five pipeline stages, the oracle, scores, profiles, stress windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.benchmark.profiles import (
        AGGRESSIVE,
        BALANCED,
        CLASS_NAMES,
        CONSERVATIVE,
        PROFILES,
        RISK_SAFE,
        STRESS_SCENARIOS,
        ClassName,
        Profile,
        adaptation_score,
        exposures,
        profile_alignment,
        profile_named,
        risk_safe,
        stress_gate,
        stress_score,
    )
    from assaymark.benchmark.scores import (
        CONVENTIONS,
        SIGNALS,
        STAGES,
        Answers,
        Convention,
        DateResult,
        EpisodeResult,
        Signal,
        Stage,
        StageState,
        Truths,
        ceps,
        inter_class_score,
        intra_class_score,
        s1_score,
        s2_score,
        s3_score,
        s4_score,
        s5_score,
        weight_accuracy,
    )

__all__ = [
    "AGGRESSIVE", "BALANCED", "CLASS_NAMES", "CONSERVATIVE", "CONVENTIONS", "PROFILES", "RISK_SAFE", "SIGNALS",
    "STAGES", "STRESS_SCENARIOS", "Answers", "ClassName", "Convention", "DateResult", "EpisodeResult", "Profile",
    "Signal", "Stage", "StageState", "Truths", "adaptation_score", "ceps", "exposures", "inter_class_score",
    "intra_class_score", "profile_alignment", "profile_named", "risk_safe", "s1_score", "s2_score", "s3_score",
    "s4_score", "s5_score", "stress_gate", "stress_score", "weight_accuracy",
]  # fmt: skip

__getattr__ = exported(__name__)
