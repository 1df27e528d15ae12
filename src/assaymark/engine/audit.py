"""Going over a whole ledger: does its structure hold together, and is every row and object what was written?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from assaymark.engine import rows, tables
from assaymark.engine.objects import ObjectFiles
from assaymark.errors import LedgerError

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
    checks: dict[sa.Table, Callable[[rows.Row], object]] = {
        tables.objects: lambda row: rows.object_of(row["sha256"], row, files.read),
        tables.calls: lambda row: rows.check_call(row["key"], row["spec"]),
        tables.attempts: rows.attempt_of,
        tables.replies: rows.check_reply,
        tables.sources: rows.source_of,
    }
    checked = 0
    for table, check in checks.items():
        found = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(sa.select(table)).mappings()
        for row in found:
            check(row)
            checked += 1
    return checked
