"""What a ledger knows of batches: which there are, which calls are in them, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any, Final, Literal

import sqlalchemy as sa

from assaymark.engine import database, schema
from assaymark.engine.database import KEYS_A_QUERY, Begin, Store, groups
from assaymark.engine.schema import Attempt, Row, check_sealed, sealed
from assaymark.errors import LedgerError

BatchStatus = Literal["submitting", "open", "ended", "refused", "lost"]
"""``submitting``: about to be sent, perhaps sent. ``open``: the provider has it. The others are the end of it."""

_UNDER_WAY: Final = ("submitting", "open")
_NOTE_CHARS: Final = 2000
_ALONE: Final = 0x6261_7463_68  # the lock that whoever works on the batches of a database holds: any unused number

_B, _C, _A = schema.batches, schema.batch_calls, schema.attempts
_OPEN = sa.select(_B).where(_B.c.status.in_(_UNDER_WAY)).order_by(_B.c.begun_at, _B.c.label)
_OF_LABEL = sa.select(_B).where(_B.c.label == sa.bindparam("label"))
_REMOTES = sa.select(_B.c.remote).where(_B.c.remote.is_not(None))
_MEMBERS = sa.select(_C).where(_C.c.label == sa.bindparam("label")).order_by(_C.c.key)
_SIZE = sa.select(sa.func.count().label("n")).where(_C.c.label == sa.bindparam("label"))
_ATTEMPTS = (
    sa.select(_A, _C.c.fence)
    .select_from(_C.join(_A, sa.and_(_C.c.key == _A.c.key, _C.c.number == _A.c.number)))
    .where(_C.c.label == sa.bindparam("label"))
)
_UNDER_WAY_ATTEMPTS = (
    sa.select(_C.c.key, _C.c.number).join(_B, _B.c.label == _C.c.label).where(_B.c.status.in_(_UNDER_WAY))
)
_ANSWERED = (
    sa.select(_C.c.key)
    .join(schema.replies, sa.and_(_C.c.key == schema.replies.c.key, _C.c.number == schema.replies.c.number))
    .where(_C.c.key.in_(sa.bindparam("keys", expanding=True)))
)
_CHANGE = (
    sa.update(_B)
    .where(_B.c.label == sa.bindparam("at_label"))
    .values({name: sa.bindparam(name) for name in ("status", "remote", "certain", "ended_at", "note", "seal")})
)
_NEW_BATCH, _NEW_MEMBER = sa.insert(_B), sa.insert(_C)


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch: its label, which is ours, and its id, which is the provider's."""

    label: str
    lane: str
    status: BatchStatus
    remote: str | None
    certain: bool
    begun_at: float
    ended_at: float | None = None
    note: str | None = None


class BatchBook:
    """The batches of one ledger; see `Ledger.batches`. Every method that writes is on the disk when it returns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._there = False

    def prepare(self) -> None:
        """Make the tables in a ledger that was made without them."""
        with self._store.writing() as connection:
            schema.metadata.create_all(connection, tables=list(schema.ALL))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one to work on the batches of a ledger that workers share; others may ask single calls."""
        if not self._store.shared:
            yield  # whoever works on batches in a file holds the whole ledger
            return
        with self._store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_ALONE))):
                raise LedgerError(f"{self._store.name}: somebody else is at work on its batches; wait, or stop them")
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_ALONE)))

    def begin(self, label: str, lane: str, begins: Sequence[Begin]) -> list[Attempt | None]:
        """Write down that a batch of these calls is about to be sent, in one transaction with its attempts."""
        store = self._store
        with store.writing() as connection:
            fences = database.locked(connection, begins, ()) if store.shared else None
            now = store.now(connection)
            begun = database.begin(connection, begins, fences, now)
            batch = Batch(label, schema.plain(lane), "submitting", None, True, now)
            database.execute_many(connection, _NEW_BATCH, [_batch_row(batch)])
            members = [sealed(_C, label, one.key, one.number, one.fence) for one in begun if one is not None]
            database.execute_many(connection, _NEW_MEMBER, members)
        return begun

    def submitted(self, label: str, remote: str, *, certain: bool = True) -> Batch:
        """Write down the id that the provider gave a batch."""
        return self._change(label, status="open", remote=schema.plain(remote), certain=certain)

    def mark_lost(self, attempts: Iterable[Attempt]) -> None:
        """Mark attempts as ``lost``: their batch is, and may have been paid."""
        with self._store.writing() as connection:
            database.mark_lost(connection, attempts)

    def end(self, label: str, status: BatchStatus, note: str) -> Batch:
        """Write down that nothing more is expected of a batch, and why."""
        return self._change(label, status=status, note=schema.plain(note)[:_NOTE_CHARS], end=True)

    def now(self) -> float:
        """The time on the clock of the ledger, in seconds since 1970."""
        return self._store.clock()

    def batch(self, label: str) -> Batch:
        """The batch of that label."""
        for row in self._read(_OF_LABEL, {"label": label}):
            return _batch_of(row)
        raise LedgerError(f"{self._store.name}: there is no batch {label}")

    def all(self) -> list[Batch]:
        """Every batch, in the order they were begun."""
        return [_batch_of(row) for row in self._read(sa.select(_B).order_by(_B.c.begun_at, _B.c.label))]

    def under_way(self) -> list[Batch]:
        """The batches that may still bring something."""
        return [_batch_of(row) for row in self._read(_OPEN)]

    def attempts_under_way(self) -> set[tuple[str, int]]:
        """Key and number of every attempt that is in a batch under way: not lost, however long it takes."""
        return {(row["key"], row["number"]) for row in self._read(_UNDER_WAY_ATTEMPTS)}

    def remotes(self) -> frozenset[str]:
        """The ids of all batches."""
        return frozenset(row["remote"] for row in self._read(_REMOTES))

    def size(self, label: str) -> int:
        """How many calls are in a batch."""
        return int(self._read(_SIZE, {"label": label})[0]["n"])

    def attempts(self, label: str) -> dict[str, Attempt]:
        """The attempts that a batch consists of, by call key."""
        for row in self._read(_MEMBERS, {"label": label}):
            _check_member(row)
        found = self._read(_ATTEMPTS, {"label": label})
        return {row["key"]: replace(schema.attempt_of(row), fence=row["fence"]) for row in found}

    def answered_in_batches(self, keys: Collection[str]) -> set[str]:
        """Those of these calls whose reply came in a batch, and was paid as such."""
        return {row["key"] for group in groups(keys, KEYS_A_QUERY) for row in self._read(_ANSWERED, {"keys": group})}

    def _change(self, label: str, *, end: bool = False, **changes: Any) -> Batch:
        changed = replace(self.batch(label), **changes)
        with self._store.writing() as connection:
            changed = replace(changed, ended_at=self._store.now(connection) if end else None)
            row = _batch_row(changed)
            values = {name: value for name, value in row.items() if name not in ("label", "lane", "begun_at")}
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


CHECKS: Final = {_B: _batch_of, _C: _check_member}
"""What raises `LedgerError` at a row on batches that has changed."""
