"""Import records of other projects: one importer per format, which returns records and a report on missing data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.importers.aitrader import Audit, audit_aitrader, import_aitrader, season_aitrader
    from assaymark.importers.capitalbench import CLOCK_CONFLICT, import_capitalbench
    from assaymark.importers.formats import IMPORTERS, Importer, importer
    from assaymark.importers.generic import import_generic
    from assaymark.importers.human import import_human, import_labels
    from assaymark.importers.read import parse_map, template
    from assaymark.importers.report import (
        CASH,
        EQUAL_WEIGHT,
        NEXT,
        REPLAYED,
        WHOLE,
        Imported,
        ImportReport,
        Missing,
        RecordedTrack,
    )
    from assaymark.importers.report import context_id as context_id
    from assaymark.importers.roles import Wanted
    from assaymark.importers.scores import ScoresRead, read_scores
    from assaymark.importers.tables import FORMATS, read_rows
    from assaymark.importers.verdict_log import CALLS_CONDITION, VERDICTS, VerdictLog, to_pair_calls
    from assaymark.importers.verdicts import (
        LABELS,
        SPELLINGS,
        VerdictMap,
        parse_verdict_map,
        read_verdicts,
        verdict_map,
    )

__all__ = [
    "CALLS_CONDITION", "CASH", "CLOCK_CONFLICT", "EQUAL_WEIGHT", "FORMATS", "IMPORTERS", "LABELS", "NEXT", "REPLAYED",
    "SPELLINGS", "VERDICTS", "WHOLE", "Audit", "ImportReport", "Imported", "Importer", "Missing",
    "RecordedTrack", "ScoresRead", "VerdictLog", "VerdictMap", "Wanted", "audit_aitrader",
    "import_aitrader", "import_capitalbench", "import_generic", "import_human", "import_labels", "importer",
    "parse_map", "parse_verdict_map", "read_rows", "read_scores", "read_verdicts", "season_aitrader", "template",
    "to_pair_calls", "verdict_map",
]  # fmt: skip

__getattr__ = exported(__name__)
