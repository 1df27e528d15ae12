"""What a ledger keeps of computations: the result of each chunk under the chunk's key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa
from sqlalchemy import Column, Double, ForeignKey, String, Table, Text

from assaymark.engine import commits, database, rows, tables
from assaymark.engine.commits import KEYS_A_QUERY, groups
from assaymark.engine.database import Store
from assaymark.engine.objects import pack
from assaymark.engine.tables import metadata, seal
from assaymark.errors import LedgerError

RESULT: Final = "chunk"
"""Kind of the objects that hold results of chunks."""

chunks = Table(
    "chunks",
    metadata,
    Column("key", String(64), primary_key=True),  # no chunk has two results
    Column("function", Text, nullable=False),
    Column("object", String(64), ForeignKey(tables.objects.c.sha256), nullable=False),
    Column("finished_at", Double, nullable=False),
    Column("seal", String(64), nullable=False),
)

_HELD = (
    sa.select(chunks, tables.objects.c.codec, tables.objects.c.size, tables.objects.c.bytes)
    .outerjoin(tables.objects, chunks.c.object == tables.objects.c.sha256)
    .where(chunks.c.key.in_(sa.bindparam("keys", expanding=True)))
)


class ChunkBook:
    """The finished chunks of one ledger; see `Ledger.chunks`. A ledger made before there were any gets its table."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def held(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The results of those of these chunks that are finished.

        Raises
        ------
        LedgerError
            A stored result is damaged.
        """
        found: dict[str, bytes] = {}
        with database.plainly(self._store.name), self._store.engine.connect() as connection:
            if not sa.inspect(connection).has_table(chunks.name):
                return {}
            for group in groups(keys, KEYS_A_QUERY):
                for row in connection.execute(_HELD, {"keys": group}).mappings():
                    _check(row)
                    if row["codec"] is None:
                        raise LedgerError(f"object {row['object']}, the result of a chunk, is gone; restore the ledger")
                    found[row["key"]] = rows.object_of(row["object"], row, self._store.read)
        return found

    def put(self, key: str, function: str, data: bytes) -> None:
        """Write down the result of a chunk; it is on the disk when this returns. One that has a result keeps it."""
        store, packed = self._store, pack(data)
        with database.plainly(store.name):
            store.keep([packed])
            with database.writing(store.engine) as connection:
                chunks.create(connection, checkfirst=True)
                now = store.now(connection)
                row = {"key": key, "function": function, "object": packed.sha256, "finished_at": now}
                objects = [commits.object_row(store, packed, RESULT)]
                database.execute_many(connection, store.insert_new(tables.objects), objects)
                sealed = {**row, "seal": seal(key, function, packed.sha256, now)}
                database.execute_many(connection, store.insert_new(chunks), [sealed])


def _check(row: rows.Row) -> None:
    fields = (row["key"], row["function"], row["object"], row["finished_at"])
    # Damage can turn any value into bytes, which no seal is over.
    if any(isinstance(field, bytes) for field in fields) or seal(*fields) != row["seal"]:
        raise LedgerError(f"chunk {row['key']} has changed since it was written; restore the ledger from a copy")


CHECKS: Final = {chunks: _check}
"""What raises `LedgerError` at a row on chunks that has changed."""
