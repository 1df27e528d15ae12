"""Going over a whole ledger: is every row and object what was written?"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from assaymark.engine import rows, tables
from assaymark.engine.batch_book import check_batches
from assaymark.engine.chunk_book import check_chunks
from assaymark.engine.notes import check_notes
from assaymark.errors import LedgerError

_ROWS_AT_ONCE = 100  # rows of objects hold up to a MiB each


def check_rows(connection: sa.Connection, stored: Callable[[str], bytes]) -> int:
    """Raise `LedgerError` at the first row or object that has changed; the number of rows if there is none.

    ``stored`` reads the packed bytes of an object that does not live in its table.
    """
    raws: list[str | None] = []
    checks: dict[sa.Table, Callable[[rows.Row], object]] = {
        tables.objects: lambda row: rows.object_of(row["sha256"], row, stored),
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
    return checked + check_batches(connection) + check_chunks(connection) + check_notes(connection)


def _check_held(connection: sa.Connection, digests: set[str]) -> None:
    """Raise `LedgerError` unless every response body that a reply names is there; no foreign key says so."""
    held = set(connection.scalars(sa.select(tables.objects.c.sha256).where(tables.objects.c.kind == tables.RAW)))
    for digest in sorted(digests - held):
        if connection.scalar(sa.select(tables.objects.c.sha256).where(tables.objects.c.sha256 == digest)) is None:
            raise LedgerError(f"object {digest}, the response body of a reply, is gone; restore the ledger from a copy")
