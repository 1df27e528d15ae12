"""AI-Trader logs: tracks, price files, decisions, and the audit of their books."""

from __future__ import annotations

from assaymark.importers.aitrader.importer import PROVENANCE, import_aitrader
from assaymark.importers.aitrader.season import Audit, audit_aitrader, season_aitrader

__all__ = ["PROVENANCE", "Audit", "audit_aitrader", "import_aitrader", "season_aitrader"]
