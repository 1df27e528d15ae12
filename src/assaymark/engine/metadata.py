"""What whoever plans calls leaves in the ledger for those who work on it: short texts under names."""

from __future__ import annotations

import json
from typing import Final

import sqlalchemy as sa

from assaymark.engine import database
from assaymark.engine.database import Store
from assaymark.engine.schema import Row, meta, seal
from assaymark.errors import LedgerError

_PREFIX: Final = "note "  # beside these, the table says what kind of ledger it is

ALL: Final = sa.select(meta).where(meta.c.name.not_in(("kind", "schema")))
"""Every note; the other two rows are looked at whenever the ledger is opened."""


class Notes:
    """The notes of one ledger; see `Ledger.notes`. Each is sealed: one that was damaged is not read as another."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, name: str) -> str | None:
        """The note of this name; None if nobody left one."""
        with database.plainly(self._store.name), self._store.engine.connect() as connection:
            return get(connection, name)

    def leave(self, name: str, text: str) -> str:
        """Leave a note unless there is one of this name; the one that is there."""
        row = {"name": _PREFIX + name, "value": _sealed(name, text)}
        with database.plainly(self._store.name), database.writing(self._store.engine) as connection:
            connection.execute(self._store.insert_new(meta), row)
            value = connection.scalar(sa.select(meta.c.value).where(meta.c.name == _PREFIX + name))
        return _opened(name, value)

    def replace(self, name: str, text: str) -> None:
        """Leave a note in place of the one that may be there."""
        if self.read(name) == text:
            return
        with database.plainly(self._store.name), database.writing(self._store.engine) as connection:
            put(connection, self._store, name, text)


def get(connection: sa.Connection, name: str) -> str | None:
    """The note of this name, as `Notes.read` gives it."""
    value = connection.scalar(sa.select(meta.c.value).where(meta.c.name == _PREFIX + name))
    return None if value is None else _opened(name, value)


def put(connection: sa.Connection, store: Store, name: str, text: str) -> None:
    """Leave a note in place of the one that may be there, in a transaction that is under way."""
    row = {"name": _PREFIX + name, "value": _sealed(name, text)}
    if not database.execute_many(connection, store.insert_new(meta), [row]):
        connection.execute(sa.update(meta).where(meta.c.name == row["name"]).values(value=row["value"]))


def check_row(row: Row) -> None:
    """Raise `LedgerError` unless a row of ``meta`` is a note as it was left."""
    name = row["name"]
    if not isinstance(name, str) or not name.startswith(_PREFIX):
        raise LedgerError(f"the note {name!r} of the ledger is damaged; restore the ledger from a copy")
    _opened(name.removeprefix(_PREFIX), row["value"])


def _sealed(name: str, text: str) -> str:
    return json.dumps([text, seal(name, text)])


def _opened(name: str, value: object) -> str:
    try:
        text, found = json.loads(str(value))
    except (TypeError, ValueError):
        text, found = "", ""
    if not isinstance(text, str) or found != seal(name, text):
        raise LedgerError(f"the note {name!r} of the ledger is damaged; restore the ledger from a copy")
    return text
