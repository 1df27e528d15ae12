"""Going over a whole ledger: does its structure hold together, and is every row and object what was written?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from assaymark.engine import rows, tables
from assaymark.engine.objects import ObjectFiles
from assaymark.errors import LedgerError

RAW = "raw"
"""Kind of the objects that hold response bodies."""

_ROWS_AT_ONCE = 100  # rows of objects hold up to a MiB each


def check_structure(connection: sa.Connection, path: Path) -> None:
    """Raise `LedgerError` unless pages and indexes hang together. A damaged index would make a reply look missing."""
    for pragma in ("integrity_check(1)", "foreign_key_check"):
        found = connection.exec_driver_sql(f"PRAGMA {pragma}").first()
        if found is not None and found[0] != "ok":
            said = " ".join(str(value) for value in found)
            raise LedgerError(f"{path}: is damaged ({pragma}: {said}); restore it from a copy")


def check_rows(connection: sa.Connection, files: ObjectFiles) -> int:
    """Raise `LedgerError` at the first row or object that has changed; the number of rows if there is none."""
    raws: list[str | None] = []
    checks: dict[sa.Table, Callable[[rows.Row], object]] = {
        tables.objects: lambda row: rows.object_of(row["sha256"], row, files.read),
        tables.calls: lambda row: rows.check_call(row["key"], row["spec"]),
        tables.attempts: rows.attempt_of,
        tables.replies: lambda row: raws.append(rows.facts_of(row).raw),
        tables.sources: rows.source_of,
    }
    checked = 0
    for table, check in checks.items():
        found = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(sa.select(table)).mappings()
        for row in found:
            check(row)
            checked += 1
    _check_held(connection, {raw for raw in raws if raw is not None})
    return checked


def _check_held(connection: sa.Connection, digests: set[str]) -> None:
    """Raise `LedgerError` unless every response body that a reply names is there; no foreign key says so."""
    held = set(connection.scalars(sa.select(tables.objects.c.sha256).where(tables.objects.c.kind == RAW)))
    for digest in sorted(digests - held):
        if connection.scalar(sa.select(tables.objects.c.sha256).where(tables.objects.c.sha256 == digest)) is None:
            raise LedgerError(f"object {digest}, the response body of a reply, is gone; restore the ledger from a copy")
