"""Other people's records into ours: one importer per format, from bytes to records and a report of what is missing.

Outcomes leave an importer as a table of their own. Nothing that happened after a decision enters its context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assaymark.lazy import exported

if TYPE_CHECKING:
    from assaymark.importers.aitrader import Audit, audit_aitrader, import_aitrader
    from assaymark.importers.capitalbench import import_capitalbench
    from assaymark.importers.column_map import template
    from assaymark.importers.formats import IMPORTERS, Importer, importer
    from assaymark.importers.generic import import_generic
    from assaymark.importers.human import import_human
    from assaymark.importers.report import Imported, ImportReport, Missing, RecordedBook, RecordedTrack

__all__ = [
    "IMPORTERS", "Audit", "ImportReport", "Imported", "Importer", "Missing", "RecordedBook", "RecordedTrack",
    "audit_aitrader", "import_aitrader", "import_capitalbench", "import_generic", "import_human", "importer",
    "template",
]  # fmt: skip

__getattr__ = exported(__name__)
