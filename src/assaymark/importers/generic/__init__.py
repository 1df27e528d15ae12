"""The generic importer: a column map in TOML, strictly typed cells, and the records they make."""

from __future__ import annotations

from assaymark.importers.generic.importer import import_generic
from assaymark.importers.generic.mapping import ColumnMap, parse_map, template

__all__ = ["ColumnMap", "import_generic", "parse_map", "template"]
