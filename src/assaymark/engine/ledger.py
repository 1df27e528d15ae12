"""The ledger: durable storage of calls, attempts, replies, batches, and the objects that hold their bytes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, dataclass, replace
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

import sqlalchemy as sa

from assaymark.engine import compute as chunk_book
from assaymark.engine import database, schema
from assaymark.engine import rate_limits as limits_
from assaymark.engine.calls import CallSpec, Reply, Text, bytes_text, pack, seal, text_bytes
from assaymark.engine.compute import ChunkStore
from assaymark.engine.database import KEYS_A_QUERY, Begin, LedgerStore, groups
from assaymark.engine.rate_limits import Grant, Leases
from assaymark.engine.schema import (
    Attempt,
    Committed,
    End,
    ImportedFile,
    Row,
    StoredReply,
    among,
    check_sealed,
    sealed,
)
from assaymark.errors import LedgerError

if TYPE_CHECKING:
    from assaymark.engine.rate_limits import PendingCall
    from assaymark.protocol import ProviderLimits


BatchStatus = Literal["submitting", "open", "ended", "refused", "lost"]
"""``submitting``: about to be sent, perhaps sent. ``open``: the provider has it. The others are final."""

_UNDER_WAY: Final = ("submitting", "open")
_NOTE_CHARS: Final = 2000
_ALONE: Final = 0x6261_7463_68  # advisory lock held while working on the batches of a database: any unused number

_B, _C, _A = schema.batches, schema.batch_calls, schema.attempts
_BATCHES = sa.select(_B).order_by(_B.c.begun_at, _B.c.label)
_MEMBERS = sa.select(_C).where(_C.c.label == sa.bindparam("label")).order_by(_C.c.key)
_SIZE = sa.select(sa.func.count().label("n")).where(_C.c.label == sa.bindparam("label"))
_BATCH_ATTEMPTS = (
    sa.select(_A, _C.c.fence)
    .select_from(_C.join(_A, sa.and_(_C.c.key == _A.c.key, _C.c.number == _A.c.number)))
    .where(_C.c.label == sa.bindparam("label"))
)
_UNDER_WAY_ATTEMPTS = (
    sa.select(_C.c.key, _C.c.number).join(_B, _B.c.label == _C.c.label).where(_B.c.status.in_(_UNDER_WAY))
)
_ANSWERED_MEMBERS = (
    sa.select(_C.c.key)
    .join(schema.replies, sa.and_(_C.c.key == schema.replies.c.key, _C.c.number == schema.replies.c.number))
    .where(among(_C.c.key))
)
_CHANGE = schema.change_of(_B)
_NEW_BATCH, _NEW_MEMBER = sa.insert(_B), sa.insert(_C)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: ``label`` is our name for it, ``remote`` the provider's id, ``certain`` False if that is a guess."""

    label: str
    lane: str
    status: BatchStatus
    remote: str | None
    certain: bool
    begun_at: float
    ended_at: float | None = None
    note: str | None = None


class BatchStore:
    """The batches of one ledger; see `Ledger.batches`. Every write is durable when its method returns."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._there = False

    def prepare(self) -> None:
        """Create the tables of batches in a ledger that was made without them."""
        with self._store.writing() as connection:
            schema.metadata.create_all(connection, tables=list(schema.ALL))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock on the batches of a shared ledger; other workers may still send single calls."""
        if not self._store.shared:
            yield  # the run that works on batches in a file holds the whole ledger
            return
        with self._store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_ALONE))):
                raise LedgerError(f"{self._store.name}: another process is collecting its batches; wait, or stop it")
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_ALONE)))

    def begin(self, label: str, lane: str, begins: Sequence[Begin]) -> list[Attempt | None]:
        """Record that a batch of these calls is about to be sent, in one transaction with its attempts."""
        store = self._store
        with store.writing() as connection:
            fences = database.lock_calls(connection, begins, ()) if store.shared else None
            now = store.now(connection)
            begun = database.begin(connection, begins, fences, now)
            batch = Batch(label, schema.plain(lane), "submitting", None, True, now)
            database.execute_many(connection, _NEW_BATCH, [_batch_row(batch)])
            members = [sealed(_C, label, one.key, one.number, one.fence) for one in begun if one is not None]
            database.execute_many(connection, _NEW_MEMBER, members)
        return begun

    def submitted(self, label: str, remote: str, *, certain: bool = True) -> Batch:
        """Record the id that the provider gave a batch."""
        return self._change(label, status="open", remote=schema.plain(remote), certain=certain)

    def mark_lost(self, attempts: Iterable[Attempt]) -> None:
        """Mark attempts as ``lost`` because their batch is lost; it may have been paid."""
        with self._store.writing() as connection:
            database.mark_lost(connection, attempts)

    def end(self, label: str, status: BatchStatus, note: str) -> Batch:
        """Record that a batch has ended, and why."""
        return self._change(label, status=status, note=schema.plain(note)[:_NOTE_CHARS], end=True)

    def now(self) -> float:
        """The time on the clock of the ledger, in seconds since 1970."""
        return self._store.clock()

    def batch(self, label: str) -> Batch:
        """Return the batch with that label. Raises `LedgerError` if there is none."""
        for batch in self.all():
            if batch.label == label:
                return batch
        raise LedgerError(f"{self._store.name}: there is no batch {label}")

    def all(self) -> list[Batch]:
        """Every batch, in the order they were begun."""
        return [_batch_of(row) for row in self._read(_BATCHES)]

    def under_way(self) -> list[Batch]:
        """The batches that may still return results."""
        return [batch for batch in self.all() if batch.status in _UNDER_WAY]

    def attempts_under_way(self) -> set[tuple[str, int]]:
        """Key and number of every attempt in an open batch: not lost, however long it takes."""
        return {(row["key"], row["number"]) for row in self._read(_UNDER_WAY_ATTEMPTS)}

    def remotes(self) -> frozenset[str]:
        """The ids of all batches."""
        return frozenset(batch.remote for batch in self.all() if batch.remote is not None)

    def size(self, label: str) -> int:
        """The number of calls in a batch."""
        return int(self._read(_SIZE, {"label": label})[0]["n"])

    def attempts(self, label: str) -> dict[str, Attempt]:
        """The attempts that a batch consists of, by call key."""
        for row in self._read(_MEMBERS, {"label": label}):
            _check_member(row)
        rows = self._read(_BATCH_ATTEMPTS, {"label": label})
        return {row["key"]: replace(schema.attempt_of(row), fence=row["fence"]) for row in rows}

    def answered_in_batches(self, keys: Collection[str]) -> set[str]:
        """Those of these calls whose reply came in a batch, at the batch price."""
        return {
            row["key"] for group in groups(keys, KEYS_A_QUERY) for row in self._read(_ANSWERED_MEMBERS, {"keys": group})
        }

    def _change(self, label: str, *, end: bool = False, **changes: Any) -> Batch:
        changed = replace(self.batch(label), **changes)
        with self._store.writing() as connection:
            changed = replace(changed, ended_at=self._store.now(connection) if end else None)
            row = _batch_row(changed)
            values = {name: row[name] for name in schema.CHANGING[_B]}
            database.execute_many(connection, _CHANGE, [{"at_label": label, **values}])
        return changed

    def _read(self, statement: sa.Executable, parameters: Mapping[str, Any] | None = None) -> Sequence[Row]:
        with self._store.reading() as connection:
            if not self._there and not sa.inspect(connection).has_table(_B.name):
                return []
            self._there = True
            return connection.execute(statement, parameters or {}).mappings().all()


def _batch_row(batch: Batch) -> dict[str, Any]:
    label, lane, status, remote, certain, *rest = astuple(batch)
    return sealed(_B, label, lane, status, remote, int(certain), *rest)


def _batch_of(row: Row) -> Batch:
    label, lane, status, remote, certain, *rest = check_sealed(_B, row, f"batch {row['label']}")
    return Batch(label, lane, status, remote, bool(certain), *rest)


def _check_member(row: Row) -> None:
    check_sealed(_C, row, f"call {row['key']} of batch {row['label']}")


BATCH_CHECKS: Final = {_B: _batch_of, _C: _check_member}
"""By table, the check that raises `LedgerError` if a row on batches has changed since it was written."""


_ROWS_AT_ONCE: Final = 100  # rows of objects hold up to a MiB each
_NOTE: Final = "seal"
_RECORD: Final = (
    schema.objects, schema.calls, schema.attempts, schema.replies, schema.sources, *schema.ALL, chunk_book.chunks,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerAudit:
    """The result of an audit: rows checked, differences from what was written, and rows after the last clean close."""

    rows: int
    differences: tuple[str, ...] = ()
    since: tuple[str, ...] | None = None


class _Sum(NamedTuple):
    """Checksum of one table: number of rows, number of the last row, and the sums of the rows' digests."""

    rows: int = 0
    last: int = 0
    plain: int = 0
    weighted: int = 0


def _sealed(connection: sa.Connection) -> dict[str, _Sum] | None:
    """The checksum of each table at the last clean close; None if there was none."""
    text = database.get_note(connection, _NOTE)
    return None if text is None else {name: _Sum(*numbers) for name, numbers in json.loads(text).items()}


def _existing(connection: sa.Connection, tables: Mapping[sa.Table, object] | tuple[sa.Table, ...]) -> list[sa.Table]:
    """The tables that exist: those of batches and chunks are created with the first one."""
    there = set(sa.inspect(connection).get_table_names())
    return [table for table in tables if table.name in there]


def _checksum(connection: sa.Connection, table: sa.Table, before: _Sum, last: int | None = None) -> _Sum:
    """Return ``before`` extended by the rows of a table after it, up to row ``last``."""
    count, at, plain, weighted = before
    # Contents are left out: they are named by their own sha256.
    changing = schema.CHANGING.get(table, ())
    names = [col.name for col in table.c if col.name not in changing and not isinstance(col.type, sa.LargeBinary)]
    wanted = f"SELECT rowid, {', '.join(names)} FROM {table.name} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
    # From the driver itself: rows of SQLAlchemy Core cost more than their digests.
    driver: Any = connection.connection.driver_connection
    for row in driver.execute(wanted, (before.last, 2**63 - 1 if last is None else last)):
        at, digest = row[0], int.from_bytes(hashlib.sha256(ascii(row).encode()).digest())
        count, plain, weighted = count + 1, plain + digest, weighted + at * digest
    return _Sum(count, at, plain, weighted)


_CALLS_A_GROUP = 100_000  # keys are hashes: small groups would write the whole index again and again
_KEYS_WORTH_A_SCAN = 10_000
_KNOWN_TEXTS: Final = 200_000  # digests remembered while planning, about 25 MB

_OBJECTS_HELD = sa.select(schema.objects.c.sha256).where(among(schema.objects.c.sha256))
_OBJECTS = sa.select(schema.objects).where(among(schema.objects.c.sha256))
_REPLIES = (
    sa.select(schema.replies, schema.objects.c.codec, schema.objects.c.size, schema.objects.c.bytes)
    .outerjoin(schema.objects, schema.replies.c.object == schema.objects.c.sha256)
    .where(among(schema.replies.c.key))
)
_OPEN = schema.calls.outerjoin(schema.replies, schema.calls.c.key == schema.replies.c.key)
_ANSWER_COUNTS = (
    sa.select(
        schema.calls.c.model, sa.func.count().label("planned"), sa.func.count(schema.replies.c.key).label("answered")
    )
    .select_from(_OPEN)
    .group_by(schema.calls.c.model)
    .order_by(schema.calls.c.model)
)
_PENDING_OF = (
    sa.select(schema.calls.c.key)
    .select_from(_OPEN)
    .where(schema.replies.c.key.is_(None), schema.calls.c.model == sa.bindparam("model"))
    .order_by(schema.calls.c.key)
)
_SPECS = sa.select(schema.calls.c.key, schema.calls.c.spec).where(among(schema.calls.c.key))
_ANSWERED = (
    sa.select(schema.replies, schema.calls.c.model)
    .join(schema.calls, schema.calls.c.key == schema.replies.c.key)
    .where(schema.replies.c.finished_at >= sa.bindparam("since"))
)
_POSSIBLY_PAID = sa.select(schema.attempts.c.key, schema.attempts.c.number).where(
    schema.attempts.c.ended_at.is_(None) | schema.attempts.c.outcome.in_(("timeout", "lost", "superseded", "defect"))
)
_ATTEMPTS = sa.select(schema.attempts).where(among(schema.attempts.c.key))


class Ledger:
    """Calls, attempts, replies and objects of one study, in one file or one database. Open it with `Ledger.open`."""

    def __init__(self, store: database.LedgerStore) -> None:
        self.name = store.name
        self._store = store
        self._engine = store.engine
        self.verified = False
        self.responded: set[str] = set()
        self.leases = Leases(store) if store.shared else None
        self._has_windows = store.shared
        self.batches = BatchStore(store)
        self.notes = database.Metadata(store)

    @property
    def chunks(self) -> ChunkStore:
        """The stored results of computed chunks, for a run that resumes."""
        return ChunkStore(self._store)

    @classmethod
    def open(cls, where: str | Path, *, create: bool = True) -> Self:
        """Open the ledger in the file ``where`` or at a URL ``postgresql+psycopg://USER@HOST/DATABASE``."""
        store: database.LedgerStore = (
            database.PostgresStore(str(where))
            if database.is_url(where)
            else database.SqliteStore(Path(where).absolute())
        )
        try:
            with database.plain_errors(store.name):
                store.prepare(create=create)
        except BaseException:
            store.engine.dispose()
            raise
        return cls(store)

    def close(self) -> None:
        """Seal new rows and close the connections; the last to close a file merges its write-ahead log into it."""
        try:
            if self._store.wrote:
                with self._store.writing() as connection:
                    # Rows that were sealed before are not read again
                    before, there = _sealed(connection) or {}, _existing(connection, _RECORD)
                    sums = {table.name: _checksum(connection, table, before.get(table.name, _Sum())) for table in there}
                    if (now := {name: total for name, total in sums.items() if total.rows}) != before:
                        database.put_note(connection, self._store, _NOTE, json.dumps(now))
                self._store.wrote = False
        finally:
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except LedgerError:
            if error is None:  # otherwise the first error says more, such as that the disk is full
                raise

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the lock for running calls; a second holder gets a `LedgerError`. Reading needs no lock."""
        return self._store.exclusive()

    def check_structure(self) -> None:
        """Raise `LedgerError` if the file is corrupt: behind a damaged index, an answered call looks unanswered."""
        with self._store.reading() as connection:
            self._store.check_structure(connection)

    def verify(self) -> int:
        """Check the structure, each row and each object. Returns the number of rows; raises at the first difference."""
        audit = self.audit()
        if audit.differences:
            raise LedgerError(audit.differences[0])
        return audit.rows

    def audit(self) -> LedgerAudit:
        """Return the differences from what was written and the rows after the last clean close; see `LedgerAudit`."""
        self.check_structure()
        with self._store.reading() as connection:
            # Check every row and object, then compare them with the seal of the last clean close.
            raws: list[str | None] = []
            checks: dict[sa.Table, Callable[[schema.Row], object]] = {
                schema.objects: lambda row: schema.object_of(row["sha256"], row, self._store.read),
                schema.calls: schema.check_planned, schema.attempts: schema.attempt_of,
                schema.replies: lambda row: raws.append(schema.facts_of(row)[1]), schema.sources: schema.source_of,
                **BATCH_CHECKS, **chunk_book.CHECKS, schema.meta: database.check_note,
            }  # fmt: skip
            differences: list[str] = []
            checked = 0
            for table in _existing(connection, checks):
                query = database.NOTES if table is schema.meta else sa.select(table)
                for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query).mappings():
                    checked += 1
                    try:
                        checks[table](row)
                    except LedgerError as exc:
                        differences.append(str(exc))
            # Response bodies that replies name and that are missing: no foreign key covers them
            digests = {raw for raw in raws if raw is not None}
            stored = set(
                connection.scalars(sa.select(schema.objects.c.sha256).where(schema.objects.c.kind == schema.RAW))
            )
            gone = [
                f"object {digest}, the response body of a reply, is gone; restore the call log from a copy"
                for digest in sorted(digests - stored)
                if connection.scalar(sa.select(schema.objects.c.sha256).where(schema.objects.c.sha256 == digest))
                is None
            ]
            differences += gone
            try:
                sealed = _sealed(connection)
            except LedgerError:  # reported above
                return LedgerAudit(checked, tuple(differences))
            if sealed is None:
                return LedgerAudit(checked, tuple(differences))
            since: list[str] = []
            for table in _existing(connection, _RECORD):
                before = sealed.get(table.name, _Sum())
                then = _checksum(connection, table, _Sum(), before.last)
                if then._replace(last=before.last) != before:
                    # the two sums identify a single row that changed
                    plain, weighted = then.plain - before.plain, then.weighted - before.weighted
                    number = 0 if not plain or weighted % plain else weighted // plain
                    text = f"several rows of {table.name} have changed since they were sealed"
                    if 0 < number <= before.last:
                        key = next(iter(table.primary_key)).name
                        at = f"SELECT {key} FROM {table.name} WHERE rowid = ?"
                        now = connection.exec_driver_sql(at, (number,)).first()
                        how = "is gone" if now is None else f"({key} {now[0]}) has changed"
                        text = f"row {number:,} of {table.name} {how} since it was sealed"
                    differences.append(f"{text}; restore the call log from a copy")
                later = _checksum(connection, table, before)
                if later.rows > before.rows:
                    since.append(f"{table.name}, rows {before.last + 1:,} to {later.last:,}")
            return LedgerAudit(checked, tuple(differences), tuple(since))

    def plan(self, calls: Iterable[CallSpec]) -> int:
        """Record calls to be made, and each of their texts once. Returns the number of calls not planned before."""
        waiting, sent, new = iter(calls), set[str](), 0
        last: tuple[object, object] = (None, None)
        while True:
            now, planned, texts = self._store.clock(), list[dict[str, Any]](), dict[str, Text]()
            for call in islice(waiting, _CALLS_A_GROUP):  # no reference to a call is kept once it is a row
                model, spec = schema.plain(call.model), call.canonical
                key = hashlib.sha256(spec).hexdigest()  # of what is stored, without making it once more
                planned.append({"key": key, "model": model, "spec": spec, "planned_at": now})
                if call.messages is not last[0] or call.schema is not last[1]:  # neighbours mostly share their prompt
                    last = (call.messages, call.schema)
                    texts.update({text.sha256: text for text in call.texts if text.sha256 not in sent})
            if not planned:
                return new
            planned.sort(key=itemgetter("key"))
            if len(sent) > _KNOWN_TEXTS:
                sent.clear()
            sent.update(texts)
            stored = {row["sha256"] for row in self._store.rows_among(_OBJECTS_HELD, texts)}
            packed = []
            for digest in texts.keys() - stored:
                packed.append(pack(text_bytes(texts[digest].text)))
                if (sha256 := packed[-1].sha256) != digest:
                    message = f"a prompt part is named {digest} but its text has the sha256 {sha256}; use Text.of"
                    raise LedgerError(message)
            with self._store.adding(packed, "prompt") as connection:
                if self.leases is not None:
                    new += self.leases.enqueue(connection, planned)
                else:
                    new += database.execute_many(connection, self._store.insert_new(schema.calls), planned)

    def pending(self, keys: Iterable[str]) -> list[str]:
        """Return those of ``keys`` that have no reply yet, in the order given."""
        asked = list(keys)
        if len(asked) <= _KEYS_WORTH_A_SCAN:
            answered = {row["key"] for row in self._store.rows_among(database.HELD, asked)}
        else:  # one scan over all replies
            targets = frozenset(asked)
            with self._store.reading() as connection:
                replied = connection.execution_options(yield_per=10_000).scalars(sa.select(schema.replies.c.key))
                answered = {key for key in replied if key in targets}
        return [key for key in asked if key not in answered]

    def pending_models(self) -> dict[str, int]:
        """The number of planned calls of each model that have no reply yet."""
        counts = self.answer_counts()
        return {model: planned - answered for model, (planned, answered) in counts.items() if answered < planned}

    def answer_counts(self) -> dict[str, tuple[int, int]]:
        """For each model, the number of planned calls and the number of those with a reply."""
        return {row["model"]: (row["planned"], row["answered"]) for row in self._store.rows(_ANSWER_COUNTS)}

    def pending_of(self, model: str) -> list[str]:
        """The keys of the planned calls of a model that have no reply yet, in order."""
        return [row["key"] for row in self._store.rows(_PENDING_OF, model=schema.plain(model))]

    def call(self, key: str) -> CallSpec:
        """The planned call with this key, with all of its texts."""
        (call,) = self.load([key], {})
        return call

    def load(self, keys: Sequence[str], texts: dict[str, Text]) -> list[CallSpec]:
        """The planned calls with these keys; see `call`."""
        specs = {row["key"]: row["spec"] for row in self._store.rows_among(_SPECS, keys)}
        if lost := [key for key in keys if key not in specs]:
            raise LedgerError(f"{self.name}: no call {lost[0]} was planned")
        planned = [schema.spec_of(key, specs[key]) for key in keys]
        shown = {digest for raw in planned for _, digests in raw["messages"] for digest in digests}
        shown |= {raw["schema"] for raw in planned if raw["schema"] is not None}
        for digest, data in self._objects(shown - texts.keys()).items():
            texts[digest] = Text(bytes_text(data), digest)
        return [schema.call_of(raw, texts) for raw in planned]

    def commit(self, begins: Sequence[Begin] = (), ends: Sequence[End] = ()) -> Committed:
        """Record the ends of some attempts and the beginnings of others in one transaction."""
        return database.commit(self._store, begins, ends)

    def reply(self, key: str) -> Reply:
        """The reply to one call."""
        for _, reply in self.replies([key]):
            return reply
        raise LedgerError(f"{self.name}: call {key} has no reply")

    def replies(self, keys: Iterable[str]) -> Iterator[tuple[str, Reply]]:
        """Yield the replies to these calls, in the order given; calls without one are skipped."""
        for group in database.groups(keys, database.KEYS_A_QUERY):
            rows = {row["key"]: (row, schema.facts_of(row)) for row in self._store.rows(_REPLIES, keys=group)}
            bodies = self._objects({body for _, (_, body) in rows.values() if body is not None})
            for key in group:
                if key in rows:
                    row, (facts, body) = rows[key]
                    raw = None if body is None else bytes_text(bodies[body])
                    yield key, schema.reply_of(row, facts, raw, self._store.read)

    def answered(self, *, since: float = 0.0, without: Collection[str] = ()) -> Iterator[StoredReply]:
        """Yield every reply recorded at ``since`` (seconds since 1970) or later, without its texts, in no order."""
        with self._store.reading() as connection:
            query = _ANSWERED.where(*(~schema.calls.c.model.startswith(f"{name}/") for name in without))
            rows = connection.execution_options(yield_per=10_000).execute(query, {"since": since}).mappings()
            for row in rows:
                facts = Reply(text="", **schema.facts_of(row)[0])
                yield StoredReply(row["key"], row["number"], row["model"], facts, row["finished_at"])

    def possibly_paid(self) -> list[tuple[str, int]]:
        """Key and number of each attempt that may have been paid and has no reply: under way, cut off, or lost."""
        return [(row["key"], row["number"]) for row in self._store.rows(_POSSIBLY_PAID)]

    def attempt_counts(self, keys: Iterable[str]) -> dict[str, int]:
        """The number of times each of these calls was sent, over all runs. A call never sent is absent."""
        return dict(Counter(schema.attempt_of(row).key for row in self._store.rows_among(_ATTEMPTS, keys)))

    def begun(self, *, apart_from: Collection[str] = ()) -> bool:
        """True if any call other than those with the given keys was ever attempted."""
        if not apart_from:
            return bool(self._store.rows(sa.select(schema.attempts.c.key).limit(1)))
        return not {row.key for row in self._store.rows(sa.select(schema.attempts.c.key).distinct())} <= set(apart_from)

    def orphaned(self) -> list[Attempt]:
        """Attempts that never ended because their process died; they may have been billed without a reply."""
        rows = self._store.rows(sa.select(schema.attempts).where(schema.attempts.c.ended_at.is_(None)))
        waiting = self.batches.attempts_under_way()
        return [schema.attempt_of(row) for row in rows if (row["key"], row["number"]) not in waiting]

    def mark_lost(self) -> list[Attempt]:
        """Mark attempts that are still open as ``lost`` and return them. The caller must hold `exclusive`."""
        lost = [attempt for attempt in self.orphaned() if attempt.outcome is None]
        if lost:
            with self._store.writing() as connection:
                database.mark_lost(connection, lost)
        return lost

    def reserve(
        self, provider: str, limits: ProviderLimits, tokens: Sequence[int], corrections: Mapping[int, int]
    ) -> Grant:
        """Reserve requests to a provider within its limits; see `rate_limits.reserve`."""
        with self._store.writing() as connection:
            if not self._has_windows:  # ledgers without limits do not have them
                schema.windows.create(connection, checkfirst=True)
                self._has_windows = True
            return limits_.reserve(connection, self._store, provider, limits, tokens, corrections)

    def get_object(self, sha256: str) -> bytes:
        """The bytes with this sha256."""
        return self._objects([sha256])[sha256]

    def add_source(self, path: str, data: bytes, format: str) -> str:
        """Store the bytes of an imported file and record the import. Returns their sha256. Idempotent."""
        packed, path, now = pack(data), schema.plain(path), self._store.clock()
        mark = seal(path, packed.sha256, format, now)
        row = {"path": path, "sha256": packed.sha256, "format": format, "added_at": now, "seal": mark}
        with self._store.adding([packed], "source") as connection:
            database.execute_many(connection, self._store.insert_new(schema.sources), [row])
        return packed.sha256

    def sources(self) -> list[ImportedFile]:
        """The imported files, in the order they were added."""
        rows = self._store.rows(sa.select(schema.sources).order_by(schema.sources.c.id))
        return [schema.source_of(row) for row in rows]

    def _objects(self, digests: Collection[str]) -> dict[str, bytes]:
        """The bytes of each of these objects."""
        there = self._store.rows_among(_OBJECTS, sorted(digests))
        blobs = {row["sha256"]: schema.object_of(row["sha256"], row, self._store.read) for row in there}
        for digest in digests:
            if digest not in blobs:
                raise LedgerError(f"{self.name}: there is no object {digest}")
        return blobs


class WriteQueue:
    """Write queue that commits beginnings and ends of attempts in groups, off the event loop."""

    def __init__(self, ledger: Ledger, thread: Executor, committed: Callable[[Committed, list[End]], None]) -> None:
        self._ledger = ledger
        self._thread = thread
        self._committed = committed
        self._begins: list[tuple[PendingCall, asyncio.Future[Attempt | None]]] = []
        self._ends: list[End] = []
        self._afterwards: list[Callable[[], None]] = []
        self._news = asyncio.Event()
        self._closing = False

    async def begin(self, due: PendingCall) -> Attempt | None:
        """Wait until the beginning of this attempt is durable. Returns None if another worker has the call now."""
        begun: asyncio.Future[Attempt | None] = asyncio.get_running_loop().create_future()
        self._begins.append((due, begun))
        self._news.set()
        return await begun

    def end(self, end: End, afterwards: Callable[[], None] | None = None) -> None:
        """Queue the end of an attempt; it is durable before the next `begin` of the caller returns."""
        self._ends.append(end)
        if afterwards is not None:
            self._afterwards.append(afterwards)
        self._news.set()

    def close(self) -> None:
        """Let `run` return once everything queued is committed."""
        self._closing = True
        self._news.set()

    async def run(self) -> None:
        """Commit groups until closed. Raises `LedgerError` when a group cannot be committed."""
        while self._begins or self._ends or not self._closing:
            await self._news.wait()
            self._news.clear()
            if self._begins or self._ends:
                await self._commit()

    async def _commit(self) -> None:
        begins, self._begins = self._begins, []
        ends, self._ends = self._ends, []
        afterwards, self._afterwards = self._afterwards, []
        keys = [(due.key, due.fence) for due, _ in begins]
        loop = asyncio.get_running_loop()
        committed = await loop.run_in_executor(self._thread, self._ledger.commit, keys, ends)
        for (_, begun), attempt in zip(begins, committed[0], strict=True):
            if not begun.cancelled():
                begun.set_result(attempt)
        self._committed(committed, ends)
        for act in afterwards:
            act()
