"""Logs of pairwise verdicts that were made elsewhere: from a CSV file of any tool to checked columns of codes.

`read_verdicts` reads a file, `parse_verdict_map` and `verdict_map` say which of its columns is what, and the result is
a `VerdictLog`; `to_pair_calls` turns a small one into records. Such a log does not say which text is better, so
nothing read from it is about sensitivity.
"""

from __future__ import annotations

from assaymark.importers.verdicts.importer import (
    LABELS,
    SPELLINGS,
    VerdictMap,
    parse_verdict_map,
    read_verdicts,
    verdict_map,
)
from assaymark.importers.verdicts.log import CALLS_CONDITION, VERDICTS, OrderCounts, VerdictLog, to_pair_calls

__all__ = [
    "CALLS_CONDITION",
    "LABELS",
    "SPELLINGS",
    "VERDICTS",
    "OrderCounts",
    "VerdictLog",
    "VerdictMap",
    "parse_verdict_map",
    "read_verdicts",
    "to_pair_calls",
    "verdict_map",
]
