"""A ledger in PostgreSQL, which several workers share: connecting, creating it, and errors in plain words.

The database, or the schema that ``?options=-csearch_path=NAME`` in the URL names, must be empty or hold one ledger.
Every object lives in its table, since the workers share no folder, and every time comes from the clock of the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import ArgumentError

from assaymark.engine import database
from assaymark.engine.objects import Packed
from assaymark.engine.tables import traffic
from assaymark.errors import LedgerError

EXAMPLE: Final = "postgresql+psycopg://USER@HOST/DATABASE"
"""How such a ledger is named."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_MOST_BYTES = 1 << 29  # PostgreSQL takes up to 1 GB in a value, and twice as much text while it reads one
_CONNECT_S = 15
_CREATING = 0x6173_7361_796D  # the lock that whoever makes the tables holds: any number that nobody else uses
_NOW = sa.select(sa.func.extract("epoch", sa.func.clock_timestamp()).cast(sa.Double))


def is_url(where: str | Path) -> bool:
    """Whether this names a database and not a file.

    >>> is_url("postgresql+psycopg://ledgers.example/study"), is_url("run/ledger.db")
    (True, False)

    Raises
    ------
    LedgerError
        It is a URL of something that cannot hold a ledger.
    """
    found = _URL.match(where) if isinstance(where, str) else None
    if found is not None and found[1] not in _SCHEMES:
        raise LedgerError(f"a ledger is a file or a database {EXAMPLE} (got a URL of {found[1]!r})")
    return found is not None


class PostgresStore:
    """One database, or one schema of it."""

    shared = True
    wrote = False

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        # Neither the password nor anything else of the query: it can hold one too.
        self.name = f"postgresql://{parsed.host or 'local'}/{parsed.database or ''}"
        _check_driver(self.name)
        arguments = {} if "connect_timeout" in parsed.query else {"connect_timeout": _CONNECT_S}
        self.engine = sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=arguments
        )
        sa.event.listen(self.engine, "connect", _see_to_durability)

    def prepare(self, *, create: bool) -> None:
        """Check that a ledger of this version is here, or make one where there are no tables yet."""
        if database.has_no_tables(self.engine):
            if not create:
                raise LedgerError(f"{self.name}: there is no ledger here; import records first, or name another one")
            with database.writing(self.engine) as connection:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
                if not sa.inspect(connection).get_table_names():
                    database.make_tables(connection)
                    traffic.create_all(connection)
        database.check_version(self.engine, self.name)

    def exclusive(self) -> AbstractContextManager[None]:
        """Nothing to hold: each call is held by its lease."""
        return nullcontext()

    def check_structure(self, connection: sa.Connection) -> None:
        """Nothing to look at: the server watches over its pages, and a damaged index of it is not ours to find."""

    def inline(self, item: Packed) -> bool:
        """Every object lives in the table."""
        del item
        return True

    def keep(self, packed: Iterable[Packed]) -> None:
        """Refuse what no table can hold."""
        for item in packed:
            if len(item.data) > _MOST_BYTES:
                raise LedgerError(f"{self.name}: an object of {len(item.data)} bytes is too large for a database")

    def read(self, sha256: str) -> bytes:
        """No object lives outside the table."""
        raise LedgerError(f"object {sha256} is damaged: its bytes are gone; restore the ledger from a copy")

    def insert_new(self, table: sa.Table) -> sa.Insert:
        """An insertion that leaves rows alone which are there already."""
        return _insert_new(table)

    def now(self, connection: sa.Connection) -> float:
        """The clock of the server."""
        return float(connection.execute(_NOW).scalar_one())


@lru_cache
def _insert_new(table: sa.Table) -> sa.Insert:
    return postgresql.insert(table).on_conflict_do_nothing()


def _parsed(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except (ArgumentError, ValueError):
        problem = "cannot be read (not shown: it may hold a password); a port is a number, '@' in a password is %40"
        raise LedgerError(f"the URL of the ledger {problem}; it looks like {EXAMPLE}") from None


def _check_driver(name: str) -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as exc:
        advice = "pip install 'assaymark[postgres]'"
        raise LedgerError(f"{name}: a ledger in PostgreSQL needs the package psycopg ({exc}): {advice}") from None


def _see_to_durability(connection: Any, _record: object) -> None:
    """A commit is on the disk of the server when it returns, or we do not work there."""
    with _of_its_own(connection) as cursor:
        cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
        fsync, waits = cursor.fetchone()
        if fsync != "on":
            raise LedgerError("the PostgreSQL server runs with fsync = off and can lose commits; switch it on")
        if waits == "off":
            cursor.execute("SET synchronous_commit = on")


@contextmanager
def _of_its_own(connection: Any) -> Iterator[Any]:
    with connection.cursor() as cursor:
        yield cursor
    connection.commit()
