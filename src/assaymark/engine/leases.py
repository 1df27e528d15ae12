"""Who asks which call, where several workers share a ledger: claims with a lease, numbered so that a late one is known.

A claim is the right to ask one call until its lease ends, by the clock of the server. Every claim of a call has a
higher number than the last (its fence). Nothing begins and no reply is kept under a claim that is not the last, so a
worker that was away longer than its lease can do no harm when it is back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from assaymark.engine import commits, database, rows, tables
from assaymark.engine.commits import KEYS_A_QUERY, groups
from assaymark.engine.database import Store
from assaymark.engine.rows import Attempt, Claim, Committed, End

_SERVER_NOW: Final = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_FREE: Final = f"expires_at < {_SERVER_NOW} AND (failed_at IS NULL OR failed_at < :since)"

# The row that is locked is the row that changes: so one that was claimed meanwhile is seen to be, and passed over.
_CLAIM: Final = f"""
WITH free AS (
    SELECT key FROM queue WHERE {{which}} AND {_FREE} ORDER BY key LIMIT :n FOR UPDATE SKIP LOCKED
)
UPDATE queue SET worker = :worker, fence = queue.fence + 1, expires_at = {_SERVER_NOW} + :lease_s, failed_at = NULL
FROM free WHERE queue.key = free.key RETURNING queue.key, queue.fence
"""
_CLAIM_OF_KEYS: Final = sa.text(_CLAIM.format(which="key = ANY(:keys)"))
_CLAIM_OF_MODEL: Final = sa.text(_CLAIM.format(which="model = :model"))
_CLAIM_ANY: Final = sa.text(_CLAIM.format(which="true"))

_MINE: Final = "SELECT key FROM queue WHERE worker = :worker ORDER BY key FOR UPDATE"
_RENEW: Final = sa.text(
    f"WITH mine AS ({_MINE}) UPDATE queue SET expires_at = {_SERVER_NOW} + :lease_s "
    "FROM mine WHERE queue.key = mine.key"
)
_RELEASE: Final = sa.text(
    f"WITH mine AS ({_MINE}) UPDATE queue SET expires_at = 0, worker = NULL "
    "FROM mine WHERE queue.key = mine.key AND (CAST(:keys AS text[]) IS NULL OR queue.key = ANY(:keys))"
)
_NOT_GIVEN_UP: Final = sa.text(
    "SELECT key FROM queue WHERE key = ANY(:keys) AND (failed_at IS NULL OR failed_at < :since)"
)
_ANY_LEFT: Final = sa.text(
    "SELECT EXISTS (SELECT 1 FROM queue WHERE model = :model AND worker IS DISTINCT FROM :worker "
    "AND (failed_at IS NULL OR failed_at < :since)) AS any_left"
)
# One statement for the call and its place in the queue: a call that has its reply never gets a place again.
_ENQUEUE: Final = sa.text("""
WITH new AS (
    INSERT INTO calls (key, model, spec, planned_at)
    SELECT * FROM unnest(CAST(:keys AS text[]), CAST(:models AS text[]), CAST(:specs AS bytea[]),
                         CAST(:times AS double precision[]))
    ON CONFLICT DO NOTHING RETURNING key, model
)
INSERT INTO queue (key, model) SELECT key, model FROM new
""")
_CALLS_A_STATEMENT = 5000

_OPEN_ATTEMPTS = sa.select(tables.attempts).where(
    tables.attempts.c.key.in_(sa.bindparam("keys", expanding=True)),
    tables.attempts.c.ended_at.is_(None),
    tables.attempts.c.outcome.is_(None),
)


class Leases:
    """The queue of a ledger that workers share: a row for each planned call without a reply. See `Ledger.leases`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(
        self,
        worker: str,
        n: int,
        lease_s: float,
        *,
        keys: Sequence[str] | None = None,
        model: str | None = None,
        since: float = math.inf,
    ) -> tuple[list[Claim], int]:
        """Take up to ``n`` calls that nobody holds. An attempt that its last holder left open is marked ``lost``.

        Parameters
        ----------
        worker : str
            Who asks; up to 64 characters, different for every run.
        n : int
            At most so many.
        lease_s : float
            Seconds until somebody else may take them, unless the lease is renewed.
        keys, model : optional
            Only these calls, or only those of this model.
        since : float
            Calls that were given up at this time of the server or later are left alone.

        Returns
        -------
        claims, lost
            The claims in the order of their keys, and how many attempts were lost.
        """
        which: dict[str, Any] = {} if model is None else {"model": rows.plain(model)}
        statement = _CLAIM_ANY if model is None else _CLAIM_OF_MODEL
        if keys is not None:
            which, statement = {"keys": list(keys)}, _CLAIM_OF_KEYS
        with database.plainly(self._store.name), database.writing(self._store.engine) as connection:
            found = connection.execute(
                statement, {"worker": worker, "n": n, "lease_s": lease_s, "since": since, **which}
            ).all()
            claims = sorted([Claim(row.key, row.fence) for row in found], key=lambda claim: claim.key)
            lost = _left_open(connection, [claim.key for claim in claims if claim.fence > 1])
            commits.mark_lost(connection, lost)
        return claims, len(lost)

    def commit(self, begins: Sequence[Claim], ends: Sequence[End]) -> Committed:
        """`Ledger.commit` for attempts that are made under claims."""
        return commits.commit(self._store, [(claim.key, claim.fence) for claim in begins], ends)

    def renew(self, worker: str, lease_s: float) -> int:
        """Let every lease of this worker run for ``lease_s`` seconds from now. Returns how many it has."""
        return self._change(_RENEW, worker=worker, lease_s=lease_s)

    def release(self, worker: str, keys: Collection[str] | None = None) -> int:
        """Let go of what this worker holds, or of these calls only. Returns how many they were."""
        return self._change(_RELEASE, worker=worker, keys=None if keys is None else list(keys))

    def open_keys(self, keys: Sequence[str], since: float) -> set[str]:
        """Those of these calls that have no reply and were not given up at ``since`` or later."""
        found: set[str] = set()
        for group in groups(keys, KEYS_A_QUERY):
            found.update(row["key"] for row in self._read(_NOT_GIVEN_UP, keys=group, since=since))
        return found

    def any_left(self, model: str, since: float, *, worker: str | None = None) -> bool:
        """Whether a call of this model has no reply, was not given up at ``since`` or later, and is not held by us."""
        (found,) = self._read(_ANY_LEFT, model=rows.plain(model), since=since, worker=worker)
        return bool(found["any_left"])

    def now(self) -> float:
        """The time of the server, in seconds since 1970."""
        with database.plainly(self._store.name), self._store.engine.connect() as connection:
            return self._store.now(connection)

    def enqueue(self, connection: sa.Connection, planned: Sequence[Mapping[str, Any]]) -> int:
        """Write down planned calls, and queue those that are new. Returns how many they were."""
        new = 0
        for group in groups(planned, _CALLS_A_STATEMENT):
            columns = {"keys": "key", "models": "model", "specs": "spec", "times": "planned_at"}
            values = {name: [row[column] for row in group] for name, column in columns.items()}
            new += connection.execute(_ENQUEUE, values).rowcount
        return new

    def _read(self, statement: sa.Executable, **parameters: Any) -> Sequence[rows.Row]:
        with database.plainly(self._store.name), self._store.engine.connect() as connection:
            return connection.execute(statement, parameters).mappings().all()

    def _change(self, statement: sa.TextClause, **parameters: Any) -> int:
        with database.plainly(self._store.name), database.writing(self._store.engine) as connection:
            return connection.execute(statement, parameters).rowcount


def _left_open(connection: sa.Connection, keys: Sequence[str]) -> list[Attempt]:
    found: list[Attempt] = []
    for group in groups(keys, KEYS_A_QUERY):
        found += [rows.attempt_of(row) for row in connection.execute(_OPEN_ATTEMPTS, {"keys": group}).mappings()]
    return found
