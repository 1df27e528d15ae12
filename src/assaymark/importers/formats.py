"""The import formats by name, and the files of a folder that each one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.importers import aitrader, arenas, capitalbench
from assaymark.importers.generic import import_generic
from assaymark.importers.read import Progress
from assaymark.importers.report import Imported, RecordedTrack
from assaymark.records import Provenance


class ImportFunction(Protocol):
    """Signature of an import function: from the bytes of files to records, without side effects."""

    def __call__(
        self, files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None
    ) -> Imported:
        """Return the records in ``files``, and the report on them."""
        ...


@dataclass(frozen=True, slots=True)
class Importer:
    """One format: its title, the file names it reads, the default provenance, and the import function."""

    name: str
    title: str
    patterns: tuple[str, ...]
    provenance: Provenance
    read: ImportFunction
    track: Callable[[Mapping[str, bytes], str], RecordedTrack] | None = None

    def wanted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the file names that this format reads, sorted."""
        return tuple(sorted(n for n in names if any(fnmatchcase(n.removesuffix(".gz"), p) for p in self.patterns)))

    def files(self, path: Path) -> tuple[str, ...]:
        """Return the names of the files in folder ``path`` that ``read`` needs; the files are not opened."""
        if not path.is_dir():
            what = "is not a folder" if path.exists() else "does not exist"
            raise InputError(str(path), [Problem("", f"{what}; give the folder that holds {', '.join(self.patterns)}")])
        names = self.wanted(entry.name for entry in path.iterdir() if entry.is_file())
        if not names:
            sheets = sorted(file.name for file in path.iterdir() if file.suffix in (".xlsx", ".xls", ".ods"))
            more = f"; {', '.join(sheets)}: save each sheet as CSV (UTF-8)" if sheets else ""
            what = f"contains no file for {self.name}: {', '.join(self.patterns)}{more}"
            raise InputError(str(path), [Problem("", what)])
        return names


_ALL = (
    Importer("aitrader", "AI-Trader: logs of agents that traded by the hour or day",
             ("decisions.jsonl", "prices_*.csv"),
             aitrader.PROVENANCE, aitrader.import_aitrader, aitrader.season_aitrader),
    Importer("capitalbench", "CapitalBench: allocation rounds with frozen inputs",
             ("contexts.jsonl", "decisions.jsonl"), capitalbench.PROVENANCE, capitalbench.import_capitalbench),
    Importer("deepfund", "DeepFund: an SQLite file of runs that decide on one ticker at a time", (arenas.DATABASE,),
             arenas.DEEPFUND, arenas.import_deepfund),
    Importer("generic", "your own agent: CSV or JSONL with a column map",
             ("*.toml", "*.csv", "*.json", "*.jsonl", "*.ndjson"), Provenance(source="generic"), import_generic),
    Importer("nof1", "Alpha Arena: conversations in which a model decides on several coins at once",
             ("conv*.json", arenas.TRADES), arenas.NOF1, arenas.import_nof1),
)  # fmt: skip
IMPORTERS: Mapping[str, Importer] = MappingProxyType({importer.name: importer for importer in _ALL})
"""All formats by name."""


def importer(name: str) -> Importer:
    """Return the format ``name``; raises `UnknownNameError` with suggestions."""
    if name not in IMPORTERS:
        raise UnknownNameError("format", name, tuple(IMPORTERS))
    return IMPORTERS[name]
