"""The database behind a ledger, SQLite or PostgreSQL: transactions, the one-run lock, and errors in plain words."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import sqlite3
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import lru_cache
from itertools import islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from assaymark.engine import schema
from assaymark.engine.calls import INLINE_BYTES, Packed, damaged, pack, seal, text_bytes
from assaymark.engine.schema import SCHEMA, Attempt, Committed, End, Row, among, meta, metadata, traffic
from assaymark.errors import LedgerError
from assaymark.records import sync_folder

BUSY_S = 30.0
"""Seconds that a transaction waits for another process before it fails."""

Statement = sa.Insert | sa.Update
T = TypeVar("T")

_KIND = "assaymark ledger"
_MAGIC = b"SQLite format 3\x00"
_WRITE = "assaymark_write"

_PRAGMAS = (
    "synchronous=FULL",  # a commit is on the disk when it returns
    "foreign_keys=ON",
    "cache_size=-65536",  # KiB
    "wal_autocheckpoint=16000",  # pages; keys are hashes, so each group touches pages all over their index
    "temp_store=MEMORY",
)

_UNREACHABLE = (
    "cannot be reached; check the URL and the server; what was committed is safe: run again when the server is there"
)
_MEANINGS = (
    ("not a database", "is not a call log (its content is not a database); name another file or move this one away"),
    ("codec can't decode", "is damaged (it contains invalid text); restore it from a copy"),
    ("decode to UTF-8", "is damaged (it contains invalid text); restore it from a copy"),
    ("malformed", "is damaged (its pages are inconsistent); restore it from a copy"),
    ("disk is full", "cannot grow, the disk is full; what was committed is safe: make room and run again"),
    ("disk I/O error", "cannot be read or written: the disk is full or failing; check it, and run again"),
    ("No space left", "cannot grow, the disk is full; what was committed is safe: make room and run again"),
    ("readonly", "cannot be written; check the permissions of the file and of its folder"),
    ("Read-only file system", "cannot be written; check the permissions of the file and of its folder"),
    ("Permission denied", "cannot be written; check the permissions of the file and of its folder"),
    ("unable to open", "cannot be opened; check that the folder exists and may be written"),
    ("password authentication failed", "refuses the user or the password; correct them in the URL"),
    *((sign, _UNREACHABLE) for sign in ("connection failed", "closed the connection", "terminating connection")),
    ("deadlock detected", "undid a commit because two workers waited for each other; run again"),
    ("locked", f"is held by another process for more than {BUSY_S:.0f} s; wait for it to end and run again"),
)


class LedgerStore(ABC):
    """A database that can hold a ledger; ``name`` is its name in messages, without a password."""

    name: str
    engine: sa.Engine
    shared: ClassVar[bool]
    """True if several runs may use it at once, each sending the calls that it holds a lease of."""
    inserts: Callable[[Any], Any]
    """The function of its dialect that builds an INSERT."""
    wrote = False
    """True if a file has rows that are not sealed yet. A shared database is never sealed: others may be writing."""

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection; errors of the database become `LedgerError`."""
        with plain_errors(self.name), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Yield a connection that holds the write lock at once: upgrading a read lock can fail half-way."""
        with (
            plain_errors(self.name),
            self.engine.connect().execution_options(**{_WRITE: True}) as connection,
            connection.begin(),
        ):
            yield connection

    def clock(self) -> float:
        """The current time, in seconds since 1970, by the clock of `now`."""
        with self.reading() as connection:
            return self.now(connection)

    def rows(self, statement: sa.Executable, **parameters: Any) -> Sequence[sa.RowMapping]:
        """Return the rows that a statement selects."""
        with self.reading() as connection:
            return connection.execute(statement, parameters).mappings().all()

    def rows_among(self, statement: sa.Executable, keys: Iterable[str], **parameters: Any) -> Iterator[sa.RowMapping]:
        """Yield the rows that a statement selects for the keys (``:keys``), one query for each `KEYS_A_QUERY` keys."""
        for group in groups(keys, KEYS_A_QUERY):
            yield from self.rows(statement, keys=group, **parameters)

    @abstractmethod
    def prepare(self, *, create: bool) -> None:
        """Check that this is a ledger of this version, or make one if nothing exists yet."""

    @abstractmethod
    def now(self, connection: sa.Connection) -> float:
        """Seconds since 1970, by the one clock that all writers share."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the exclusive lock for running calls."""
        return nullcontext()

    def check_structure(self, connection: sa.Connection) -> None:
        """Raise `LedgerError` if the stored structure is corrupt."""
        del connection

    def inline(self, item: Packed) -> bool:
        """True if an object is small enough to be stored in the table."""
        del item
        return True

    def keep(self, packed: Iterable[Packed]) -> None:
        """Write objects that are not stored in the table to disk; refuse those that are too large for a table."""
        for item in packed:
            if len(item.data) > _MOST_BYTES:
                raise LedgerError(f"{self.name}: an object of {len(item.data)} bytes is too large for a database")

    def read(self, sha256: str) -> bytes:
        """The packed bytes of an object that is not stored in the table."""
        raise damaged(f"object {sha256}", "its bytes are gone")

    @contextmanager
    def adding(self, packed: Sequence[Packed], kind: str) -> Iterator[sa.Connection]:
        """Store objects, and yield the connection of their transaction for the rows that name them."""
        with plain_errors(self.name):
            self.keep(packed)
        with self.writing() as connection:
            # two workers that store the same objects must not deadlock
            rows = [object_row(self, item, kind) for item in sorted(packed, key=attrgetter("sha256"))]
            execute_many(connection, self.insert_new(schema.objects), rows)
            yield connection

    def insert_new(self, table: sa.Table) -> sa.Insert:
        """An INSERT that leaves existing rows unchanged."""
        return _insert_new(self.inserts, table)


KEYS_A_QUERY = 500


def groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield ``items`` in lists of at most ``size``."""
    waiting = iter(items)
    while group := list(islice(waiting, size)):
        yield group


class SqliteStore(LedgerStore):
    """A SQLite file, with a folder of large objects beside it."""

    shared = False

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.inserts = path, str(path), sqlite.insert
        self.engine = connect(path)
        sa.event.listen(self.engine, "begin", self._begin)
        self._folder = path.parent / "objects"

    def _begin(self, connection: sa.Connection) -> None:
        writes = bool(connection.get_execution_options().get(_WRITE, False))
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        self.wrote = self.wrote or writes

    def prepare(self, *, create: bool) -> None:
        """Check that the file is a ledger of this version, or make one if nothing exists yet."""
        head, path = b"", self.path
        if path.exists():
            with path.open("rb") as file:
                head = file.read(len(_MAGIC))
            if head and head != _MAGIC:  # refused before SQLite touches it
                raise LedgerError(f"{path}: {_meaning('not a database')}")
        if not head or has_no_tables(self.engine):
            if not create:
                raise LedgerError(f"{path}: there is no call log here; import records first, or name another file")
            # Outside a transaction, and only here: the mode is stored in the file, and other files must not change.
            with closing(self.engine.raw_connection()) as raw:
                raw.cursor().execute("PRAGMA journal_mode=WAL")
            with self.writing() as connection:
                make_tables(connection)
            sync_folder(path.parent)
        check_version(self.engine, path)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the exclusive lock for running calls. The operating system releases it if the process dies."""
        path = self.path
        with plain_errors(path):
            handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                if exc.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise LedgerError(f"{path}: {_meaning(str(exc))}") from exc
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
                text = f"another run is using this call log (process {holder}); wait for it to end, or stop it"
                raise LedgerError(f"{path}: {text}") from None
            with plain_errors(path):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
            yield
        finally:
            os.close(handle)

    def check_structure(self, connection: sa.Connection) -> None:
        """Raise `LedgerError` if pages, indexes or references are corrupt."""
        for pragma in ("integrity_check(1)", "foreign_key_check"):
            row = connection.exec_driver_sql(f"PRAGMA {pragma}").first()
            if row is not None and row[0] != "ok":
                words = " ".join(word for value in row for word in str(value).split())
                raise LedgerError(f"{self.name}: is damaged ({pragma}: {words}); restore it from a copy")

    def inline(self, item: Packed) -> bool:
        """True if an object is small enough to be stored in the table; a larger one has a separate file."""
        return len(item.data) <= INLINE_BYTES

    def keep(self, packed: Iterable[Packed]) -> None:
        """Write each large object to a file named by its digest: temporary file, fsync, rename, fsync of the folder."""
        folder, items = self._folder, [item for item in packed if not self.inline(item)]
        if items and not folder.exists():
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        for item in items:
            handle, name = tempfile.mkstemp(dir=folder, prefix="writing-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(item.data)
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(folder / item.sha256)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        if items:
            sync_folder(folder)

    def read(self, sha256: str) -> bytes:
        """The packed bytes of a large object; its file is complete and synced before any row names it."""
        file = self._folder / sha256
        try:
            return file.read_bytes()
        except OSError as exc:
            raise damaged(f"object {sha256}", f"its file {file} cannot be read ({exc.strerror})") from exc

    def now(self, connection: sa.Connection) -> float:
        """The clock of this machine, on which every user of the file runs."""
        del connection
        return time.time()


@lru_cache
def _insert_new(insert: Callable[[sa.Table], Any], table: sa.Table) -> sa.Insert:
    new: sa.Insert = insert(table).on_conflict_do_nothing()
    return new


def connect(path: Path) -> sa.Engine:
    """Return an engine on the SQLite file ``path`` with the settings that durability needs; read-only if it must be."""
    if not path.exists() or os.access(path.parent, os.W_OK):
        return _engine(sa.URL.create("sqlite", database=str(path)))
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    logged = log.exists() and log.stat().st_size > 0
    if logged and not index.exists():  # SQLite would have to make the index there
        copied = tempfile.TemporaryDirectory(prefix="assaymark-")
        for file in (path, log):
            shutil.copy(file, copied.name)
        engine = _engine(sa.URL.create("sqlite", database=f"{copied.name}/{path.name}"), only_read=True)
        sa.event.listen(engine, "engine_disposed", lambda _: copied.cleanup())
        return engine
    how = {"mode": "ro"} if logged else {"immutable": "1"}  # which ignores a log
    return _engine(sa.URL.create("sqlite", database=path.as_uri(), query={**how, "uri": "true"}), only_read=True)


def _engine(url: sa.URL, *, only_read: bool = False) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_S})

    def configure(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # otherwise sqlite3 begins transactions itself, and later than we ask
        for pragma in (*_PRAGMAS, *(("query_only=ON",) if only_read else ())):
            connection.execute(f"PRAGMA {pragma}")

    sa.event.listen(engine, "connect", configure)
    return engine


def execute_many(connection: sa.Connection, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> int:
    """Execute a statement for each row; rows have equal keys and plain values. Returns the number of rows changed."""
    if not rows:
        return 0
    # SQLAlchemy Core's handling of parameters costs several times what SQLite needs to store the row.
    sql, taking = _compiled(statement, connection.dialect, tuple(rows[0]))
    parameters = list(map(taking, rows)) if taking else list(rows)
    return connection.exec_driver_sql(sql, parameters).rowcount


@lru_cache(maxsize=64)
def _compiled(
    statement: Statement, dialect: sa.Dialect, columns: tuple[str, ...]
) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]] | None]:
    """The SQL of a statement and, for drivers with positional parameters, the function from a row to its parameters."""
    compiled = statement.compile(dialect=dialect, column_keys=list(columns))
    names = tuple(compiled.positiontup or ())
    if len(names) == 1:  # for one name, itemgetter returns no tuple
        return str(compiled), lambda row: (row[names[0]],)
    return str(compiled), itemgetter(*names) if names else None


@contextmanager
def plain_errors(path: Path | str) -> Iterator[None]:
    """Turn errors of the database or the file system into a `LedgerError` with advice."""
    try:
        yield
    except DBAPIError as exc:
        raise LedgerError(f"{path}: {_meaning(str(exc.orig))}") from exc
    except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as exc:
        raise LedgerError(f"{path}: {_meaning(str(exc))}") from exc
    except OSError as exc:
        raise LedgerError(f"{path}: {_meaning(f'{exc.strerror}: {exc.filename}')}") from exc


def has_no_tables(engine: sa.Engine) -> bool:
    """True if the database has no tables, as in a ledger whose creation was cut off after its file was made."""
    with engine.connect() as connection:
        return not sa.inspect(connection).get_table_names()


def make_tables(connection: sa.Connection) -> None:
    """Create the tables of a ledger and record its kind and schema version."""
    metadata.create_all(connection)
    if connection.execute(sa.select(meta.c.name)).first() is None:
        rows = [{"name": "kind", "value": _KIND}, {"name": "schema", "value": SCHEMA}]
        connection.execute(sa.insert(meta), rows)


def check_version(engine: sa.Engine, path: Path | str) -> None:
    """Raise `LedgerError` unless the tables are those of a ledger of this version."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        columns = inspector.get_columns(meta.name) if inspector.has_table(meta.name) else []
        ours = [column["name"] for column in columns] == meta.c.keys()
        rows = connection.execute(sa.select(meta.c.name, meta.c.value)).all() if ours else []
        values = {row.name: row.value for row in rows}
    if values.get("kind") != _KIND:
        raise LedgerError(f"{path}: is a database but not a call log; name another file or move this one away")
    if values.get("schema") != SCHEMA:
        raise LedgerError(
            f"{path}: is a call log of schema {values.get('schema')!r} where this version reads {SCHEMA!r}; "
            "use the version of assaymark that wrote it, or start a new run folder"
        )


def _meaning(message: str) -> str:
    for sign, meaning in _MEANINGS:
        if sign in message:
            return meaning
    return f"the database refused: {' '.join(message.split())}"


# Several workers share a ledger in PostgreSQL. The database, or the schema that ``?options=-csearch_path=NAME`` in the
# URL names, must be empty or hold one ledger. Every object is stored in its table, since the workers share no folder,
# and every time comes from the clock of the server.


EXAMPLE: Final = "postgresql+psycopg://USER@HOST/DATABASE"
"""The form of the URL of a ledger in PostgreSQL."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_MOST_BYTES = 1 << 29  # PostgreSQL takes up to 1 GB in a value, and twice as much text while it reads one
_CONNECT_S = 15
_CREATING = 0x6173_7361_796D  # advisory lock held while tables are created: any unused number
_NOW = sa.select(sa.func.extract("epoch", sa.func.clock_timestamp()).cast(sa.Double))


def is_url(location: str | Path) -> bool:
    """True if this names a database, not a file. Raises `LedgerError` for the URL of any other database."""
    match = _URL.match(location) if isinstance(location, str) else None
    if match is not None and match[1] not in _SCHEMES:
        raise LedgerError(f"a call log is a file or a database {EXAMPLE} (got a URL of {match[1]!r})")
    return match is not None


class PostgresStore(LedgerStore):
    """A ledger in a PostgreSQL database, or in one schema of it."""

    shared = True

    def __init__(self, url: str) -> None:
        try:
            parsed = sa.make_url(url)
        except (ArgumentError, ValueError):
            problem = "cannot be read (not shown: it may hold a password); a port is a number, '@' in a password is %40"
            raise LedgerError(f"the URL of the call log {problem}; it looks like {EXAMPLE}") from None
        # Neither the password nor any of the query, which can hold one too.
        from sqlalchemy.dialects import postgresql  # here, because it takes every command 80 ms to load

        self.inserts, self.name = postgresql.insert, f"postgresql://{parsed.host or 'local'}/{parsed.database or ''}"
        try:
            import psycopg  # noqa: F401
        except ImportError as exc:
            advice = "pip install 'assaymark[postgres]'"
            text = f"a call log in PostgreSQL needs the package psycopg ({exc}): {advice}"
            raise LedgerError(f"{self.name}: {text}") from None
        arguments = {} if "connect_timeout" in parsed.query else {"connect_timeout": _CONNECT_S}
        self.engine = sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=arguments
        )
        sa.event.listen(self.engine, "connect", self.see_to_durability)

    @staticmethod
    def see_to_durability(connection: Any, _record: object) -> None:
        """Make each commit wait for the server's disk; raise `LedgerError` if the server runs without fsync."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')")
            fsync, waits = cursor.fetchone()
            if fsync != "on":
                raise LedgerError("the PostgreSQL server runs with fsync = off and can lose commits; switch it on")
            if waits == "off":
                cursor.execute("SET synchronous_commit = on")
        connection.commit()

    def prepare(self, *, create: bool) -> None:
        """Check that this is a ledger of this version, or make one if there are no tables yet."""
        if has_no_tables(self.engine):
            if not create:
                raise LedgerError(f"{self.name}: there is no call log here; import records first, or name another one")
            with self.writing() as connection:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATING)))
                if not sa.inspect(connection).get_table_names():
                    make_tables(connection)
                    traffic.create_all(connection)
        check_version(self.engine, self.name)

    def now(self, connection: sa.Connection) -> float:
        """The clock of the server."""
        return float(connection.execute(_NOW).scalar_one())


_PREFIX: Final = "note "  # the other rows of the table hold the kind and schema of the ledger

NOTES: Final = sa.select(meta).where(meta.c.name.not_in(("kind", "schema")))
"""Every note; the other two rows are checked whenever the ledger is opened."""


class Metadata:
    """Key-value notes in one ledger; see `Ledger.notes`. Each is sealed, so that damage is detected."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    def get(self, name: str) -> str | None:
        """The note of this name; None if there is none."""
        with self._store.reading() as connection:
            return get_note(connection, name)

    def setdefault(self, name: str, text: str) -> str:
        """Set a note unless one of this name exists. Returns the note that is then stored."""
        row = {"name": _PREFIX + name, "value": json.dumps([text, seal(name, text)])}
        with self._store.writing() as connection:
            connection.execute(self._store.insert_new(meta), row)
            value = connection.scalar(sa.select(meta.c.value).where(meta.c.name == _PREFIX + name))
        return _parse_note(name, value)

    def set(self, name: str, text: str) -> None:
        """Set a note, replacing an earlier one."""
        if self.get(name) == text:
            return
        with self._store.writing() as connection:
            put_note(connection, self._store, name, text)


def get_note(connection: sa.Connection, name: str) -> str | None:
    """Return the note of this name, as `Metadata.get` does."""
    value = connection.scalar(sa.select(meta.c.value).where(meta.c.name == _PREFIX + name))
    return None if value is None else _parse_note(name, value)


def put_note(connection: sa.Connection, store: LedgerStore, name: str, text: str) -> None:
    """Set a note, replacing an earlier one, within an open transaction."""
    row = {"name": _PREFIX + name, "value": json.dumps([text, seal(name, text)])}
    if not execute_many(connection, store.insert_new(meta), [row]):
        connection.execute(sa.update(meta).where(meta.c.name == row["name"]).values(value=row["value"]))


def check_note(row: Row) -> None:
    """Raise `LedgerError` unless a row of ``meta`` is an unchanged note."""
    name = row["name"]
    if not isinstance(name, str) or not name.startswith(_PREFIX):
        raise LedgerError(f"the note {name!r} of the call log is damaged; restore the call log from a copy")
    _parse_note(name.removeprefix(_PREFIX), row["value"])


def _parse_note(name: str, value: object) -> str:
    try:
        text, digest = json.loads(str(value))
    except (TypeError, ValueError):
        text, digest = "", ""
    if not isinstance(text, str) or digest != seal(name, text):
        raise LedgerError(f"the note {name!r} of the call log is damaged; restore the call log from a copy")
    return text


Begin = tuple[str, int | None]
"""The key of a call to be sent, and the fencing token of its claim (None: no claim is needed)."""

HELD = sa.select(schema.replies.c.key).where(among(schema.replies.c.key))
"""The keys among ``:keys`` that have a reply."""

_LAST_NUMBERS = (
    sa.select(schema.attempts.c.key, sa.func.max(schema.attempts.c.number))
    .where(among(schema.attempts.c.key))
    .group_by(schema.attempts.c.key)
)
_END_ATTEMPT = schema.change_of(schema.attempts)
_NEW_ATTEMPT = sa.insert(schema.attempts)
_NEW_REPLY = sa.insert(schema.replies)
_LOCK = (
    sa.select(schema.queue.c.key, schema.queue.c.fence)
    .where(among(schema.queue.c.key))
    .order_by(schema.queue.c.key)  # the same order in every worker: no deadlock
    .with_for_update()
)
_ANSWERED = sa.delete(schema.queue).where(among(schema.queue.c.key))
_GIVEN_UP = (
    sa.update(schema.queue)
    .where(among(schema.queue.c.key))
    .values(worker=None, expires_at=0, failed_at=sa.bindparam("at"))
)


def commit(store: LedgerStore, begins: Sequence[Begin], ends: Sequence[End]) -> Committed:
    """Record the ends of some attempts and the beginnings of others in one transaction."""
    texts = [None if end.reply is None else (end.reply.text, end.reply.raw) for end in ends]
    packed = [[pack(text_bytes(text)) for text in both or () if text is not None] for both in texts]
    with plain_errors(store.name):
        store.keep(item for answer in packed for item in answer)
    with store.writing() as connection:
        fences = lock_calls(connection, begins, ends) if store.shared else None
        now = store.now(connection)
        replied: set[str] = set()
        for group in groups((end.attempt.key for end in ends if end.reply is not None), KEYS_A_QUERY):
            replied.update(connection.scalars(HELD, {"keys": group}))
        objects, answers, closed = [], [], []
        given_up: list[str] = []
        for end, items in zip(ends, packed, strict=True):
            outcome, key, fence = end.outcome, end.attempt.key, end.attempt.fence
            # another worker has claimed the call since, or it has a reply
            stale = fence is not None and fences is not None and fences.get(key) != fence
            if end.reply is not None:
                if stale or key in replied:
                    outcome = "superseded"
                else:
                    replied.add(key)
                    # its text, and its response body if there is one
                    objects += [object_row(store, *item) for item in zip(items, ("reply", schema.RAW), strict=False)]
                    raw = items[1].sha256 if len(items) > 1 else None
                    answers.append(schema.reply_row(end, end.reply, items[0].sha256, raw, now))
            elif end.final and not stale:
                given_up.append(key)
            closed.append(schema.attempt_end(end.attempt, now, outcome, end.error))
        if store.shared:
            objects.sort(key=itemgetter("sha256"))  # two workers that store the same objects must not deadlock
        execute_many(connection, _END_ATTEMPT, closed)
        execute_many(connection, store.insert_new(schema.objects), objects)
        execute_many(connection, _NEW_REPLY, answers)
        if store.shared:
            for group in groups([answer["key"] for answer in answers], KEYS_A_QUERY):
                connection.execute(_ANSWERED, {"keys": group})
            for group in groups(given_up, KEYS_A_QUERY):
                connection.execute(_GIVEN_UP, {"keys": group, "at": now})
        return begin(connection, begins, fences, now) if begins else [], len(answers)


def mark_lost(connection: sa.Connection, lost: Iterable[Attempt]) -> None:
    """Mark attempts as ``lost``: the process that sent them died before they ended."""
    marked = [schema.attempt_end(attempt, None, "lost", None) for attempt in lost]
    execute_many(connection, _END_ATTEMPT, marked)


def object_row(store: LedgerStore, item: Packed, kind: str) -> dict[str, Any]:
    """Return the row of an object, without its bytes if they are in a file."""
    data = item.data if store.inline(item) else None
    return {"sha256": item.sha256, "kind": kind, "codec": item.codec, "size": item.size, "bytes": data}


def lock_calls(connection: sa.Connection, begins: Sequence[Begin], ends: Sequence[End]) -> dict[str, int]:
    """Lock the open calls until the end of the transaction and return the fencing token of each."""
    keys = sorted({key for key, _ in begins} | {end.attempt.key for end in ends})
    fences: dict[str, int] = {}
    for group in groups(keys, KEYS_A_QUERY):
        fences.update({row[0]: row[1] for row in connection.execute(_LOCK, {"keys": group})})
    return fences


def begin(
    connection: sa.Connection, begins: Sequence[Begin], fences: dict[str, int] | None, now: float
) -> list[Attempt | None]:
    """Record that calls are about to be sent; None in place of an attempt whose claim is lost."""
    last: dict[str, int] = {}
    for group in groups([key for key, _ in begins], KEYS_A_QUERY):
        last.update({row[0]: row[1] for row in connection.execute(_LAST_NUMBERS, {"keys": group})})
    begun = [
        None
        if fence is not None and fences is not None and fences.get(key) != fence
        else Attempt(key, last.get(key, 0) + 1, now, fence=fence)
        for key, fence in begins
    ]
    new = [
        schema.sealed(schema.attempts, one.key, one.number, one.started_at, None, None, None) for one in begun if one
    ]
    execute_many(connection, _NEW_ATTEMPT, new)
    return begun
