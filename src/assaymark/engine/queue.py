"""Who asks which call, where several workers share a ledger: claims with a lease, numbered so that a late one is known.

A claim is the right to ask one call until its lease ends, by the clock of the server. Every claim of a call has a
higher number than the last (its fence). Nothing begins and no reply is kept under a claim that is not the last, so a
worker that was away longer than its lease can do no harm when it is back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import sqlalchemy as sa

from assaymark.engine import commits
from assaymark.engine import schema as rows
from assaymark.engine import schema as tables
from assaymark.engine.calls import CallSpec, Text
from assaymark.engine.database import KEYS_A_QUERY, Store, groups
from assaymark.engine.rate_limits import door_of
from assaymark.engine.schema import Attempt, Claim, Committed, End

if TYPE_CHECKING:
    from assaymark.engine.ledger import Ledger


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
        """Take up to ``n`` calls that nobody holds. An attempt that its last holder left open is marked ``lost``."""
        which: dict[str, Any] = {} if model is None else {"model": rows.plain(model)}
        statement = _CLAIM_ANY if model is None else _CLAIM_OF_MODEL
        if keys is not None:
            which, statement = {"keys": list(keys)}, _CLAIM_OF_KEYS
        with self._store.writing() as connection:
            found = connection.execute(
                statement, {"worker": worker, "n": n, "lease_s": lease_s, "since": since, **which}
            ).all()
            claims = sorted([Claim(row.key, row.fence) for row in found], key=lambda claim: claim.key)
            lost: list[Attempt] = []
            for group in groups([claim.key for claim in claims if claim.fence > 1], KEYS_A_QUERY):
                lost += map(rows.attempt_of, connection.execute(_OPEN_ATTEMPTS, {"keys": group}).mappings())
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
        return {row["key"] for row in self._store.rows_among(_NOT_GIVEN_UP, keys, since=since)}

    def any_left(self, model: str, since: float, *, worker: str | None = None) -> bool:
        """Whether a call of this model has no reply, was not given up at ``since`` or later, and is not held by us."""
        (found,) = self._store.rows(_ANY_LEFT, model=rows.plain(model), since=since, worker=worker)
        return bool(found["any_left"])

    def now(self) -> float:
        """The time of the server, in seconds since 1970."""
        return self._store.clock()

    def enqueue(self, connection: sa.Connection, planned: Sequence[Mapping[str, Any]]) -> int:
        """Write down planned calls, and queue those that are new. Returns how many they were."""
        new = 0
        for group in groups(planned, _CALLS_A_STATEMENT):
            columns = {"keys": "key", "models": "model", "specs": "spec", "times": "planned_at"}
            values = {name: [row[column] for row in group] for name, column in columns.items()}
            new += connection.execute(_ENQUEUE, values).rowcount
        return new

    def _change(self, statement: sa.TextClause, **parameters: Any) -> int:
        with self._store.writing() as connection:
            return connection.execute(statement, parameters).rowcount


_KNOWN_TEXTS = 10_000
_KEYS_A_CLAIM = 500


@dataclass(frozen=True, slots=True)
class Due:
    """A call to be asked now. ``fence`` is that of the claim it is held by, None where no claim is needed."""

    key: str
    call: CallSpec
    fence: int | None = None


class Work:
    """Calls to be asked, and what becomes of them: in this class, of a ledger that the run holds alone.

    Methods that read or write the ledger are called in its thread. ``sizes`` is how many calls each lane has, at most:
    each model, or each model behind each door where that is known. `renew` is called every ``renew_every_s`` seconds.
    """

    renew_every_s: float | None = None

    def __init__(self, ledger: Ledger, sizes: Mapping[str, int]) -> None:
        self._ledger, self.sizes = ledger, sizes
        self._texts: dict[str, Text] = {}

    def at_hand(self, lane: str) -> list[Due]:
        """The calls of a lane that need not be fetched."""
        del lane
        return []

    def more(self, lane: str, n: int) -> list[Due] | None:
        """Some more calls of a lane, about ``n``. Empty: others hold them, look again; None: nothing is left."""

    def commit(self, begins: Sequence[Due], ends: Sequence[End]) -> Committed:
        """Write down how attempts ended and which begin."""
        begun = self._ledger.commit([due.key for due in begins], ends)
        return Committed(list(begun), sum(end.reply is not None for end in ends))

    def renew(self) -> None:
        """Keep what is held."""

    def put_back(self, dues: Collection[Due]) -> None:
        """These are not asked after all: others may."""

    def close(self) -> None:
        """Let go of everything that is still held."""

    def _load(self, keys: Sequence[str]) -> list[CallSpec]:
        """Planned calls; the texts that many of them show are remembered."""
        if len(self._texts) > _KNOWN_TEXTS:
            self._texts.clear()
        return self._ledger.load(keys, self._texts)


class Listed(Work):
    """Calls that are at hand, in the order given."""

    def __init__(self, ledger: Ledger, calls: Mapping[str, CallSpec]) -> None:
        super().__init__(ledger, sizes_of(calls.values()))
        self._dues: dict[str, list[Due]] = {}
        for key, call in calls.items():
            self._dues.setdefault(_lane(call), []).append(Due(key, call))

    def at_hand(self, lane: str) -> list[Due]:
        """All of them."""
        return self._dues.pop(lane)


class Planned(Work):
    """Planned calls without a reply, in the order of their keys, read from the ledger bit by bit."""

    def __init__(self, ledger: Ledger, sizes: Mapping[str, int]) -> None:
        super().__init__(ledger, sizes)
        self._keys = {model: iter(ledger.pending_of(model)) for model in sizes}

    def more(self, lane: str, n: int) -> list[Due] | None:
        """See `Work`."""
        for keys in groups(self._keys[lane], n):
            return [Due(key, call) for key, call in zip(keys, self._load(keys), strict=True)]
        return None


class Shared(Work):
    """Calls of a ledger that others work on too: each is held by a lease of ``lease_s`` seconds while it is asked."""

    def __init__(
        self,
        ledger: Ledger,
        leases: Leases,
        lease_s: float,
        *,
        sizes: Mapping[str, int],
        calls: Mapping[str, CallSpec] | None = None,
    ) -> None:
        super().__init__(ledger, sizes)
        self._leases, self._lease_s, self._calls = leases, lease_s, calls
        self.worker = uuid4().hex
        self.since = leases.now()
        self.lost = 0
        self.renew_every_s = lease_s / 3
        self._todo: dict[str, list[str]] = {}
        self._later: dict[str, list[str]] = {}
        for key, call in (calls or {}).items():
            self._todo.setdefault(_lane(call), []).append(key)
        for keys in self._todo.values():
            keys.reverse()  # taken from the end

    def more(self, lane: str, n: int) -> list[Due] | None:
        """See `Work`."""
        if self._calls is not None:
            return self._listed(lane, n, self._calls)
        claims = self._claim(n, model=lane)
        if claims:
            calls = self._load([claim.key for claim in claims])
            return [Due(claim.key, call, claim.fence) for claim, call in zip(claims, calls, strict=True)]
        return [] if self._leases.any_left(lane, self.since, worker=self.worker) else None

    def commit(self, begins: Sequence[Due], ends: Sequence[End]) -> Committed:
        """See `Work`."""
        return self._leases.commit([Claim(due.key, due.fence or 0) for due in begins], ends)

    def renew(self) -> None:
        """See `Work`."""
        self._leases.renew(self.worker, self._lease_s)

    def put_back(self, dues: Collection[Due]) -> None:
        """See `Work`."""
        self._leases.release(self.worker, [due.key for due in dues])

    def close(self) -> None:
        """See `Work`."""
        self._leases.release(self.worker)

    def _listed(self, lane: str, n: int, calls: Mapping[str, CallSpec]) -> list[Due] | None:
        todo, later = self._todo.get(lane, []), self._later.setdefault(lane, [])
        while todo:
            keys = [todo.pop() for _ in range(min(len(todo), max(n, 1), _KEYS_A_CLAIM))]
            claims = self._claim(len(keys), keys=keys)
            taken = {claim.key: claim.fence for claim in claims}
            later += [key for key in keys if key not in taken]
            if taken:
                return [Due(key, calls[key], taken[key]) for key in keys if key in taken]
        open_ = self._leases.open_keys(later, self.since)
        todo += [key for key in reversed(later) if key in open_]
        later.clear()
        return [] if todo else None

    def _claim(self, n: int, *, keys: Sequence[str] | None = None, model: str | None = None) -> list[Claim]:
        claims, lost = self._leases.claim(self.worker, n, self._lease_s, keys=keys, model=model, since=self.since)
        self.lost += lost
        return claims


def sizes_of(calls: Iterable[CallSpec]) -> Mapping[str, int]:
    """How many calls there are in each lane."""
    return Counter(_lane(call) for call in calls)


def _lane(call: CallSpec) -> str:
    """The model and the door of a call: calls of one model that go elsewhere must not wait for each other."""
    door = door_of(call)
    return call.model if door.address is None and door.key is None else f"{call.model} {door.address} {door.key}"
