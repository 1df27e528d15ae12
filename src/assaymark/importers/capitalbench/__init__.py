"""CapitalBench records: shapes, rounds, briefings and tables, and the importer that puts them together."""

from __future__ import annotations

from assaymark.importers.capitalbench.importer import PROVENANCE, import_capitalbench

__all__ = ["PROVENANCE", "import_capitalbench"]
