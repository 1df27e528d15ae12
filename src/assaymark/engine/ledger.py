"""The ledger: what was asked, every attempt, every reply, and the bytes of it all. Nothing acknowledged is ever lost.

Every method that writes does so in transactions that are on the disk when it returns. Whoever has many results hands
them over as one group, which costs one sync.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from assaymark.engine import audit, database, rows, tables
from assaymark.engine.calls import CallSpec, Reply, Text
from assaymark.engine.objects import ObjectFiles, Packed, bytes_text, pack, text_bytes
from assaymark.engine.rows import Attempt, End, Outcome, Source
from assaymark.errors import LedgerError

T = TypeVar("T")
PackedReply = tuple[Packed, Packed | None]

_CALLS_A_GROUP = 50_000  # keys are hashes: small groups would write the whole index again and again
_KEYS_A_QUERY = 500
_KNOWN_TEXTS = 200_000  # digests remembered while planning, about 25 MB

_HELD = sa.select(tables.replies.c.key).where(tables.replies.c.key.in_(sa.bindparam("keys", expanding=True)))
_OBJECTS_HELD = sa.select(tables.objects.c.sha256).where(
    tables.objects.c.sha256.in_(sa.bindparam("keys", expanding=True))
)
_OBJECTS = sa.select(tables.objects).where(tables.objects.c.sha256.in_(sa.bindparam("keys", expanding=True)))
_REPLIES = (
    sa.select(tables.replies, tables.objects.c.codec, tables.objects.c.size, tables.objects.c.bytes)
    .outerjoin(tables.objects, tables.replies.c.object == tables.objects.c.sha256)
    .where(tables.replies.c.key.in_(sa.bindparam("keys", expanding=True)))
)
_ATTEMPTS = sa.select(tables.attempts).where(tables.attempts.c.key.in_(sa.bindparam("keys", expanding=True)))
_LAST_NUMBERS = (
    sa.select(tables.attempts.c.key, sa.func.max(tables.attempts.c.number))
    .where(tables.attempts.c.key.in_(sa.bindparam("keys", expanding=True)))
    .group_by(tables.attempts.c.key)
)
_END_ATTEMPT = (
    sa.update(tables.attempts)
    .where(tables.attempts.c.key == sa.bindparam("at_key"), tables.attempts.c.number == sa.bindparam("at_number"))
    .values({name: sa.bindparam(name) for name in ("ended_at", "outcome", "error", "seal")})
)
_NEW_ATTEMPT = sa.insert(tables.attempts)
_NEW_REPLY = sa.insert(tables.replies)
_NEW = {  # what may be there already stays as it is
    table.name: sqlite.insert(table).on_conflict_do_nothing()
    for table in (tables.objects, tables.calls, tables.sources)
}


class Ledger:
    """Calls, attempts, replies and objects of one study, in one file. Open it with `Ledger.open`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
    ...     sha256 = ledger.put_object(b"as it came", kind="source")
    ...     ledger.get_object(sha256)
    b'as it came'
    """

    def __init__(self, path: Path, engine: sa.Engine) -> None:
        self.path = path
        self._engine = engine
        self._files = ObjectFiles(path.parent / "objects")

    # --- opening and closing ---

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True) -> Self:
        """The ledger at ``path``; an empty one is made there unless ``create`` is false.

        Raises
        ------
        LedgerError
            The file is no ledger, of another schema version, absent, or cannot be opened.
        """
        path = Path(path).absolute()
        engine = database.connect(path)
        try:
            with database.plainly(path):
                database.prepare(engine, path, create=create)
        except BaseException:
            engine.dispose()
            raise
        return cls(path, engine)

    def close(self) -> None:
        """Let go of the file. The last to close it folds the write-ahead log back into it."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the right to run calls; a second holder is refused with a `LedgerError`. Reading needs no right."""
        return database.exclusive(self.path)

    def check_structure(self) -> None:
        """Raise `LedgerError` unless the file hangs together; a reply behind a damaged index would look unpaid.

        Takes about half a second for 100 MB. `run_calls` does it before it pays for anything.
        """
        with database.plainly(self.path), self._engine.connect() as connection:
            audit.check_structure(connection, self.path)

    def verify(self) -> int:
        """Go over everything: the structure, each row and each object. Returns how many rows were found right.

        Raises
        ------
        LedgerError
            Something has changed since it was written; the first such thing is named.
        """
        self.check_structure()
        with database.plainly(self.path), self._engine.connect() as connection:
            return audit.check_rows(connection, self._files)

    # --- what is to be asked ---

    def plan(self, calls: Iterable[CallSpec]) -> int:
        """Write down calls to be made, and each text they show once. Calls already planned are left as they are.

        Returns
        -------
        int
            How many of them were new.
        """
        known: set[str] = set()
        with database.plainly(self.path):
            return sum(self._plan_group(group, known) for group in _groups(calls, _CALLS_A_GROUP))

    def pending(self, keys: Iterable[str]) -> list[str]:
        """Those of ``keys`` that have no reply yet, in the order given."""
        found: list[str] = []
        for group in _groups(keys, _KEYS_A_QUERY):
            held = {row["key"] for row in self._read(_HELD, keys=group)}
            found += [key for key in group if key not in held]
        return found

    def call(self, key: str) -> CallSpec:
        """The planned call with this key, with all of its texts.

        Raises
        ------
        LedgerError
            No such call was planned, or what is stored of it is damaged.
        """
        found = self._read(sa.select(tables.calls.c.spec).where(tables.calls.c.key == key))
        if not found:
            raise LedgerError(f"{self.path}: no call {key} was planned")
        return rows.call_of(key, found[0]["spec"], lambda digest: bytes_text(self.get_object(digest)))

    # --- what happened ---

    def commit(self, begin: Sequence[str] = (), ends: Sequence[End] = ()) -> list[Attempt]:
        """Write down, all or nothing, how some attempts ended and that others are about to be sent.

        A call that has a reply keeps it: a second one is not stored, and its attempt is marked ``superseded``.

        Returns
        -------
        list of Attempt
            The attempts begun, in the order of ``begin``. They may be sent once this returns.
        """
        packed = [None if end.reply is None else _pack_reply(end.reply) for end in ends]
        with database.plainly(self.path):
            self._files.write(item for answer in packed if answer for item in answer if item and not item.inline)
            with database.writing(self._engine) as connection:
                if ends:
                    _end(connection, ends, packed)
                return _begin(connection, begin) if begin else []

    def begin(self, keys: Sequence[str]) -> list[Attempt]:
        """Write down that these calls are about to be sent."""
        return self.commit(begin=keys)

    def finish(self, results: Iterable[tuple[Attempt, Reply]]) -> None:
        """Write down the replies to these attempts."""
        self.commit(ends=[End(attempt, "replied", reply=reply) for attempt, reply in results])

    def fail(self, failures: Iterable[tuple[Attempt, Outcome, str]]) -> None:
        """Write down that these attempts ended without a reply, and why."""
        self.commit(ends=[End(attempt, outcome, error) for attempt, outcome, error in failures])

    def reply(self, key: str) -> Reply:
        """The reply to one call.

        Raises
        ------
        LedgerError
            There is none, or what is stored of it is damaged.
        """
        for _, reply in self.replies([key]):
            return reply
        raise LedgerError(f"{self.path}: call {key} has no reply")

    def replies(self, keys: Iterable[str]) -> Iterator[tuple[str, Reply]]:
        """The replies to these calls, in the order given; calls without one are passed over.

        Raises
        ------
        LedgerError
            A stored reply is damaged.
        """
        for group in _groups(keys, _KEYS_A_QUERY):
            found = {row["key"]: (row, rows.facts_of(row)) for row in self._read(_REPLIES, keys=group)}
            raws = self._raws({facts.raw for _, facts in found.values() if facts.raw is not None})
            for key in group:
                if key in found:
                    row, facts = found[key]
                    yield key, rows.reply_of(row, facts, raws.get(facts.raw), self._files.read)

    def attempt_counts(self, keys: Iterable[str]) -> dict[str, int]:
        """How often each of these calls was sent, over all runs. A call never sent is absent."""
        counts: dict[str, int] = {}
        for group in _groups(keys, _KEYS_A_QUERY):
            for row in self._read(_ATTEMPTS, keys=group):
                attempt = rows.attempt_of(row)
                counts[attempt.key] = counts.get(attempt.key, 0) + 1
        return counts

    def begun(self, *, beside: Collection[str] = ()) -> bool:
        """Whether any call was ever attempted, beside those with the given keys."""
        if not beside:
            return bool(self._read(sa.select(tables.attempts.c.key).limit(1)))
        return not {row.key for row in self._read(sa.select(tables.attempts.c.key).distinct())} <= set(beside)

    def orphaned(self) -> list[Attempt]:
        """Attempts that never ended: they were under way when something died, and may have been paid for nothing."""
        found = self._read(sa.select(tables.attempts).where(tables.attempts.c.ended_at.is_(None)))
        return [rows.attempt_of(row) for row in found]

    def mark_lost(self) -> list[Attempt]:
        """Mark attempts that are still open as ``lost``. Only for whoever holds the ledger exclusively.

        Returns
        -------
        list of Attempt
            Those newly marked, as they were.
        """
        lost = [attempt for attempt in self.orphaned() if attempt.outcome is None]
        with database.plainly(self.path):
            if lost:
                with database.writing(self._engine) as connection:
                    marked = [rows.attempt_end(attempt, None, "lost", None) for attempt in lost]
                    database.execute_many(connection, _END_ATTEMPT, marked)
        return lost

    # --- bytes ---

    def put_object(self, data: bytes, kind: str) -> str:
        """Store bytes under their sha256, which is returned. ``kind`` says in a word what they are."""
        packed = pack(data)
        with database.plainly(self.path):
            self._store([packed], kind)
        return packed.sha256

    def get_object(self, sha256: str) -> bytes:
        """The bytes with this sha256.

        Raises
        ------
        LedgerError
            There are none, or they are damaged.
        """
        found = self._read(_OBJECTS, keys=[sha256])
        if not found:
            raise self._no_object(sha256)
        return rows.object_of(sha256, found[0], self._files.read)

    def add_source(self, path: str, data: bytes, format: str) -> str:
        """Store the bytes of an imported file, and that it was imported. Returns their sha256; twice is once."""
        packed = pack(data)
        row = rows.source_row(path, packed.sha256, format, time.time())
        with database.plainly(self.path):
            self._store([packed], "source", [(tables.sources, [row])])
        return packed.sha256

    def sources(self) -> list[Source]:
        """The imported files, in the order they were added."""
        found = self._read(sa.select(tables.sources).order_by(tables.sources.c.id))
        return [rows.source_of(row) for row in found]

    # --- private ---

    def _read(self, statement: sa.Executable, **parameters: Any) -> Sequence[sa.RowMapping]:
        with database.plainly(self.path), self._engine.connect() as connection:
            return connection.execute(statement, parameters).mappings().all()

    def _raws(self, digests: Collection[str]) -> dict[str | None, str]:
        """The response bodies with these digests."""
        if not digests:
            return {}
        found = {row["sha256"]: row for row in self._read(_OBJECTS, keys=list(digests))}
        for digest in digests - found.keys():
            raise self._no_object(digest)
        return {digest: bytes_text(rows.object_of(digest, row, self._files.read)) for digest, row in found.items()}

    def _no_object(self, sha256: str) -> LedgerError:
        return LedgerError(f"{self.path}: there is no object {sha256}")

    def _plan_group(self, group: Sequence[CallSpec], known: set[str]) -> int:
        now = time.time()
        planned = sorted([rows.call_row(call, now) for call in group], key=itemgetter("key"))
        texts = _texts(group, known)
        packed = [_pack_text(text) for text in self._missing(texts)]
        new = self._store(packed, "prompt", [(tables.calls, planned)])
        if len(known) > _KNOWN_TEXTS:
            known.clear()
        known.update(texts)
        return new

    def _missing(self, texts: Mapping[str, Text]) -> Iterator[Text]:
        for group in _groups(texts, _KEYS_A_QUERY):
            held = {row["sha256"] for row in self._read(_OBJECTS_HELD, keys=group)}
            yield from (texts[digest] for digest in group if digest not in held)

    def _store(
        self, packed: Sequence[Packed], kind: str, others: Sequence[tuple[sa.Table, list[dict[str, Any]]]] = ()
    ) -> int:
        """Objects and the rows that name them, in one transaction. Returns how many of the other rows were new."""
        self._files.write(item for item in packed if not item.inline)
        with database.writing(self._engine) as connection:
            database.execute_many(connection, _NEW[tables.objects.name], [_object_row(item, kind) for item in packed])
            return sum(database.execute_many(connection, _NEW[table.name], new) for table, new in others)


def _texts(group: Sequence[CallSpec], known: set[str]) -> dict[str, Text]:
    """The texts of these calls that are not known, by digest."""
    found: dict[str, Text] = {}
    seen: tuple[object, object] = (None, None)
    for call in group:
        shown = (call.messages, call.schema)
        if shown[0] is seen[0] and shown[1] is seen[1]:
            continue  # neighbours mostly share their whole prompt
        seen = shown
        found.update({text.sha256: text for text in call.texts if text.sha256 not in known})
    return found


def _begin(connection: sa.Connection, keys: Sequence[str]) -> list[Attempt]:
    last: dict[str, int] = {}
    for group in _groups(keys, _KEYS_A_QUERY):
        last.update({row[0]: row[1] for row in connection.execute(_LAST_NUMBERS, {"keys": group})})
    now = time.time()
    begun = [Attempt(key, last.get(key, 0) + 1, now) for key in keys]
    database.execute_many(connection, _NEW_ATTEMPT, [rows.attempt_row(attempt) for attempt in begun])
    return begun


def _end(connection: sa.Connection, ends: Sequence[End], packed: Sequence[PackedReply | None]) -> None:
    now = time.time()
    held: set[str] = set()
    for group in _groups((end.attempt.key for end in ends if end.reply is not None), _KEYS_A_QUERY):
        held.update(connection.scalars(_HELD, {"keys": group}))
    texts, answers, closed = [], [], []
    for end, item in zip(ends, packed, strict=True):
        outcome = end.outcome
        if end.reply is not None and item is not None:
            if end.attempt.key in held:
                outcome = "superseded"
            else:
                held.add(end.attempt.key)
                text, raw = item
                texts.append(_object_row(text, "reply"))
                if raw is not None:
                    texts.append(_object_row(raw, audit.RAW))
                answers.append(rows.reply_row(end, end.reply, text.sha256, raw.sha256 if raw else None, now))
        closed.append(rows.attempt_end(end.attempt, now, outcome, end.error))
    database.execute_many(connection, _END_ATTEMPT, closed)
    database.execute_many(connection, _NEW[tables.objects.name], texts)
    database.execute_many(connection, _NEW_REPLY, answers)


def _object_row(item: Packed, kind: str) -> dict[str, Any]:
    data = item.data if item.inline else None
    return {"sha256": item.sha256, "kind": kind, "codec": item.codec, "size": item.size, "bytes": data}


def _pack_reply(reply: Reply) -> PackedReply:
    return pack(text_bytes(reply.text)), None if reply.raw is None else pack(text_bytes(reply.raw))


def _pack_text(text: Text) -> Packed:
    packed = pack(text_bytes(text.text))
    if packed.sha256 != text.sha256:
        raise LedgerError(
            f"a prompt part is named {text.sha256} but its text has the sha256 {packed.sha256}; use Text.of"
        )
    return packed


def _groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    waiting = iter(items)
    while group := list(islice(waiting, size)):
        yield group
