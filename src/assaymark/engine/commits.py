"""One commit: how some attempts ended and which ones begin, in a transaction that is all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from assaymark.engine import database
from assaymark.engine import schema as rows
from assaymark.engine import schema as tables
from assaymark.engine.blobs import Packed, pack, text_bytes
from assaymark.engine.database import KEYS_A_QUERY, Store, groups
from assaymark.engine.schema import Attempt, Committed, End

Begin = tuple[str, int | None]
"""The key of a call to be sent, and the fence of the claim it is sent under (None: no claim is needed)."""

HELD = sa.select(tables.replies.c.key).where(tables.replies.c.key.in_(sa.bindparam("keys", expanding=True)))
"""Those of some keys that have a reply."""

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
_LOCK = (
    sa.select(tables.queue.c.key, tables.queue.c.fence)
    .where(tables.queue.c.key.in_(sa.bindparam("keys", expanding=True)))
    .order_by(tables.queue.c.key)  # everybody in the same order: no two wait for each other
    .with_for_update()
)
_ANSWERED = sa.delete(tables.queue).where(tables.queue.c.key.in_(sa.bindparam("keys", expanding=True)))
_GIVEN_UP = (
    sa.update(tables.queue)
    .where(tables.queue.c.key.in_(sa.bindparam("keys", expanding=True)))
    .values(worker=None, expires_at=0, failed_at=sa.bindparam("at"))
)


def commit(store: Store, begins: Sequence[Begin], ends: Sequence[End]) -> Committed:
    """Write down, all or nothing, how some attempts ended and that others are about to be sent.

    A call that has a reply keeps it: a second one is not stored, and its attempt is marked ``superseded``. The same
    happens to a reply that comes under a claim which is not the call's last; and under such a claim nothing begins.
    """
    texts = [None if end.reply is None else (end.reply.text, end.reply.raw) for end in ends]
    packed = [[pack(text_bytes(text)) for text in both or () if text is not None] for both in texts]
    with database.plainly(store.name):
        store.keep(item for answer in packed for item in answer)
    with store.writing() as connection:
        fences = locked(connection, begins, ends) if store.shared else None
        now = store.now(connection)
        answered = _end(connection, store, ends, packed, fences, now) if ends else 0
        return Committed(begin(connection, begins, fences, now) if begins else [], answered)


def mark_lost(connection: sa.Connection, lost: Iterable[Attempt]) -> None:
    """Mark attempts as ``lost``: whoever sent them died before they ended."""
    marked = [rows.attempt_end(attempt, None, "lost", None) for attempt in lost]
    database.execute_many(connection, _END_ATTEMPT, marked)


def object_row(store: Store, item: Packed, kind: str) -> dict[str, Any]:
    """The row of an object; its bytes are in it unless they are in a file."""
    data = item.data if store.inline(item) else None
    return {"sha256": item.sha256, "kind": kind, "codec": item.codec, "size": item.size, "bytes": data}


def locked(connection: sa.Connection, begins: Sequence[Begin], ends: Sequence[End]) -> dict[str, int]:
    """The fence of each call that is still open; nobody else can claim or answer these until we are through."""
    keys = sorted({key for key, _ in begins} | {end.attempt.key for end in ends})
    fences: dict[str, int] = {}
    for group in groups(keys, KEYS_A_QUERY):
        fences.update({row[0]: row[1] for row in connection.execute(_LOCK, {"keys": group})})
    return fences


def _stale(key: str, fence: int | None, fences: dict[str, int] | None) -> bool:
    """Whether a claim is no longer the last one of its call, or the call has its reply."""
    return fence is not None and fences is not None and fences.get(key) != fence


def begin(
    connection: sa.Connection, begins: Sequence[Begin], fences: dict[str, int] | None, now: float
) -> list[Attempt | None]:
    """Write down that calls are about to be sent; None in place of an attempt whose claim is lost."""
    last: dict[str, int] = {}
    for group in groups([key for key, _ in begins], KEYS_A_QUERY):
        last.update({row[0]: row[1] for row in connection.execute(_LAST_NUMBERS, {"keys": group})})
    begun = [
        None if _stale(key, fence, fences) else Attempt(key, last.get(key, 0) + 1, now, fence=fence)
        for key, fence in begins
    ]
    database.execute_many(connection, _NEW_ATTEMPT, [rows.attempt_row(attempt) for attempt in begun if attempt])
    return begun


def _end(
    connection: sa.Connection,
    store: Store,
    ends: Sequence[End],
    packed: Sequence[Sequence[Packed]],
    fences: dict[str, int] | None,
    now: float,
) -> int:
    held: set[str] = set()
    for group in groups((end.attempt.key for end in ends if end.reply is not None), KEYS_A_QUERY):
        held.update(connection.scalars(HELD, {"keys": group}))
    objects, answers, closed = [], [], []
    given_up: list[str] = []
    for end, items in zip(ends, packed, strict=True):
        outcome, key = end.outcome, end.attempt.key
        stale = _stale(key, end.attempt.fence, fences)
        if end.reply is not None:
            if stale or key in held:
                outcome = "superseded"
            else:
                held.add(key)
                # its text, and its response body if there is one
                objects += [object_row(store, *one) for one in zip(items, ("reply", tables.RAW), strict=False)]
                raw = items[1].sha256 if len(items) > 1 else None
                answers.append(rows.reply_row(end, end.reply, items[0].sha256, raw, now))
        elif end.final and not stale:
            given_up.append(key)
        closed.append(rows.attempt_end(end.attempt, now, outcome, end.error))
    if store.shared:
        objects.sort(key=itemgetter("sha256"))  # two that store the same objects must not wait for each other
    database.execute_many(connection, _END_ATTEMPT, closed)
    database.execute_many(connection, store.insert_new(tables.objects), objects)
    database.execute_many(connection, _NEW_REPLY, answers)
    if store.shared:
        for group in groups([answer["key"] for answer in answers], KEYS_A_QUERY):
            connection.execute(_ANSWERED, {"keys": group})
        for group in groups(given_up, KEYS_A_QUERY):
            connection.execute(_GIVEN_UP, {"keys": group, "at": now})
    return len(answers)
