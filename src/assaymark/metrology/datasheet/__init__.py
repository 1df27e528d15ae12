"""The datasheet of a judge: its verdicts on null pairs, on texts of equal quality and on known differences.

From `PairCall` records to measurements (`datasheet_measurements`), a summary by fixed rules (`sketch`), a record with
a JSON round trip (`datasheet_of`), and a comparison with an earlier datasheet (`compare`). `decompose`,
`detection_threshold` and `d_prime` take plain sequences, `pointwise_measurements` arrays of scores; `decompose_arrays`
and `agreement_arrays` take columns of codes, for logs of millions of verdicts. After Judge Datasheet, sections 3 and A.
"""

# ruff: noqa: I001  # packed, because it is a list

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.metrology.datasheet.calls import (
        JointOutcomes, JointOutcomes as Agreement,  # noqa: F401  # its name in 0.1
        BASE, CLASS_OF, CLASSES, CODES, OUTCOME_OF, OUTCOMES, PREFERENCES, STRICT, VERDICTS, CallTable, Decomposition,
        VerdictCounts, agreement_arrays, call_table, decompose, decompose_arrays, decomposition_of, pair_class,
    )  # fmt: skip
    from assaymark.metrology.datasheet.estimates import (
        Estimator, ShareInterval, TaskBootstrap, between_kappa, cohen_kappas, decomposition_measurements, dispersion,
        kappa_measurement, share_interval, widened,
    )  # fmt: skip
    from assaymark.metrology.datasheet.estimates import Estimator as Recorder  # noqa: F401  # its name in 0.1
    from assaymark.metrology.datasheet.ladder import (
        Threshold, d_prime, detection_threshold, isotonic, pointwise_measurements, thresholds,
    )  # fmt: skip
    from assaymark.metrology.datasheet.sheet import (
        COMPARED, NON_CLAIMS, RULES, AnchorPair, Chip, Datasheet, anchored_calls, chip_words, compare,
        datasheet_measurements, datasheet_of, difference_interval, limit_measurements, sketch, table_measurements,
    )  # fmt: skip

__all__ = [
    "BASE", "CLASSES", "CLASS_OF", "CODES", "COMPARED", "NON_CLAIMS", "OUTCOMES", "OUTCOME_OF", "PREFERENCES", "RULES",
    "STRICT", "VERDICTS", "AnchorPair", "CallTable", "Chip", "Datasheet", "Decomposition", "Estimator", "JointOutcomes",
    "ShareInterval", "TaskBootstrap", "Threshold", "VerdictCounts", "agreement_arrays", "anchored_calls",
    "between_kappa", "call_table", "chip_words", "cohen_kappas", "compare", "d_prime", "datasheet_measurements",
    "datasheet_of", "decompose", "decompose_arrays", "decomposition_measurements", "decomposition_of",
    "detection_threshold", "difference_interval", "dispersion", "isotonic", "kappa_measurement", "limit_measurements",
    "pair_class", "pointwise_measurements", "share_interval", "sketch", "table_measurements", "thresholds", "widened",
]  # fmt: skip

__getattr__ = exported(__name__)
