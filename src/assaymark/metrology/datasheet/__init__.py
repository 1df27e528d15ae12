"""The datasheet of a judge: what an instrument does with nothing, with equal texts and with a known difference.

From `PairCall` records to measurements (`datasheet_measurements`), a sketch by stated rules (`sketch`), a record with
a JSON round trip (`datasheet_of`), and a comparison with an earlier one (`compare`). `decompose`,
`detection_threshold` and `d_prime` take plain sequences, `pointwise_measurements` arrays of scores; `decompose_arrays`
and `agreement_arrays` read columns of codes for logs of millions of verdicts. After Judge Datasheet, sections 3 and A.
"""

from __future__ import annotations

from assaymark.metrology.datasheet.calls import (
    BASE,
    CLASSES,
    CODES,
    OUTCOMES,
    STRICT,
    VERDICTS,
    Agreement,
    CallTable,
    Decomposition,
    VerdictCounts,
    agreement_arrays,
    call_table,
    decompose,
    decompose_arrays,
)
from assaymark.metrology.datasheet.estimates import (
    Recorder,
    ShareInterval,
    TaskBootstrap,
    between_kappa,
    decomposition_measurements,
    kappa_measurement,
    share_interval,
)
from assaymark.metrology.datasheet.ladder import Threshold, d_prime, detection_threshold, pointwise_measurements
from assaymark.metrology.datasheet.sheet import (
    COMPARED,
    NON_CLAIMS,
    RULES,
    AnchorPair,
    Chip,
    Datasheet,
    anchored_calls,
    compare,
    datasheet_measurements,
    datasheet_of,
    limit_measurements,
    sketch,
    table_measurements,
)

__all__ = [
    "BASE", "CLASSES", "CODES", "COMPARED", "NON_CLAIMS", "OUTCOMES", "RULES", "STRICT", "VERDICTS", "Agreement",
    "AnchorPair", "CallTable", "Chip", "Datasheet", "Decomposition", "Recorder", "ShareInterval", "TaskBootstrap",
    "Threshold", "VerdictCounts", "agreement_arrays", "anchored_calls", "between_kappa", "call_table", "compare",
    "d_prime", "datasheet_measurements", "datasheet_of", "decompose", "decompose_arrays", "decomposition_measurements",
    "detection_threshold", "kappa_measurement", "limit_measurements", "pointwise_measurements", "share_interval",
    "sketch", "table_measurements",
]  # fmt: skip
