"""Checks before each attempt: limits per minute, requested waits and circuit breakers; and the queues of calls."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import sqlalchemy as sa

from assaymark.engine import database, schema
from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.database import KEYS_A_QUERY, LedgerStore, groups
from assaymark.engine.schema import Attempt, among, plain, windows
from assaymark.errors import ModelError

if TYPE_CHECKING:
    from assaymark.protocol import ProviderLimits

# Limits of requests and tokens per minute and provider, shared by all workers on one ledger.
#
# Before an attempt is sent, a request and its tokens are written into the ledger, into a row for the second they are
# reserved in. No minute, wherever it starts, exceeds the limit: a reservation counts for a minute and two seconds,
# because an attempt is sent a moment after its reservation.


_WINDOW_S = 60.0
_SLACK_S = 2.0  # between a reservation and the arrival of its request
_BUCKET_S = 1.0
_GATE = -1  # a row that is locked, not a bucket
_CHARS_A_TOKEN = 3  # English has about 4, JSON and numbers fewer
_TOKENS_OUT = 1024

_HERE = windows.c.provider == sa.bindparam("at")
_LOCK = sa.select(windows.c.bucket).where(_HERE, windows.c.bucket == _GATE).with_for_update()
_USED = sa.select(windows).where(_HERE, windows.c.bucket != _GATE).order_by(windows.c.bucket)
_PAST = sa.delete(windows).where(
    _HERE,
    windows.c.bucket != _GATE,
    # Rows in the future come from a clock that was set back since: they would block all until that time is reached.
    sa.or_(windows.c.bucket <= sa.bindparam("oldest"), windows.c.bucket > sa.bindparam("newest")),
)
_ADD = (
    sa.update(windows)
    .where(_HERE, windows.c.bucket == sa.bindparam("now"))
    .values(
        requests=windows.c.requests + sa.bindparam("more_requests"),
        tokens=windows.c.tokens + sa.bindparam("more_tokens"),
    )
)


def check_options(options: Mapping[str, float | None], least: float | None = None) -> None:
    """Raise `ValueError` unless each option is None or at least ``least``; without it, above 0."""
    for name, value in options.items():
        if value is not None and not (value > 0 if least is None else value >= least):
            raise ValueError(f"{name} must be {'positive' if least is None else f'at least {least}'} (got {value})")


Grant = tuple[int, int, float]
"""The number of requests granted, the bucket they are booked in, and the seconds until the rest should ask again."""


def tokens_expected(call: CallSpec) -> int:
    """Estimate the tokens of a call before it is sent: a third of its characters plus its maximum output tokens."""
    characters = sum(len(text.text) for text in call.texts)
    return math.ceil(characters / _CHARS_A_TOKEN) + call.output_tokens(_TOKENS_OUT)


def reserve(
    connection: sa.Connection, store: LedgerStore, provider: str, limits: ProviderLimits, tokens: Sequence[int],
    corrections: Mapping[int, int],
) -> Grant:  # fmt: skip
    """Book as many requests as the limits allow, in the order given, after ``corrections`` to earlier bookings."""
    at = {"at": plain(provider)}
    gate = {"provider": at["at"], "bucket": _GATE, "requests": 0, "tokens": 0}
    connection.execute(store.insert_new(windows), gate)
    connection.execute(_LOCK, at)
    clock = store.now(connection)
    now = math.floor(clock / _BUCKET_S)
    behind = math.ceil((_WINDOW_S + _SLACK_S) / _BUCKET_S) + 1  # a row counts until its last moment has passed
    connection.execute(_PAST, {**at, "oldest": now - behind, "newest": now + behind})
    for bucket, more in corrections.items():
        connection.execute(_ADD, {**at, "now": bucket, "more_requests": 0, "more_tokens": more})
    used = connection.execute(_USED, at).mappings().all()
    demands = [min(n, limits.tokens_per_minute or n) for n in tokens]
    requests, total, granted = sum(row["requests"] for row in used), sum(row["tokens"] for row in used), 0
    for more in demands:
        requests, total = requests + 1, total + more
        if requests > (limits.requests_per_minute or math.inf) or total > (limits.tokens_per_minute or math.inf):
            break
        granted += 1
    booked = {"more_requests": granted, "more_tokens": sum(demands[:granted])}
    if granted and connection.execute(_ADD, {**at, "now": now, **booked}).rowcount == 0:
        new = {"requests": booked["more_requests"], "tokens": booked["more_tokens"]}
        connection.execute(sa.insert(windows), {"provider": at["at"], "bucket": now, **new})
    oldest = used[0]["bucket"] if used else now
    return granted, now, max(0.0, (oldest + behind) * _BUCKET_S - clock) + _BUCKET_S / 10


RESUME: Final = "every reply so far is kept; run the same command to resume"
KEPT: Final = f"stopped asking it; {RESUME}"
_WITH_ADDRESS = ("http", "https")
_LONGEST_WAIT_S = 300.0
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:_\[\]-]+(/[A-Za-z0-9._~/-]*)?")


@lru_cache(maxsize=256)
def provider_of(model: str) -> str:
    """The provider of a model: the part of its name before the first slash; for external agents, host or callable."""
    provider, _, rest = model.partition("/")
    if provider in _WITH_ADDRESS:
        return f"{provider}/{rest.partition('/')[0]}"
    return model if provider == "python" else provider


class Endpoint(NamedTuple):
    """Provider, address and key of calls: failures at one endpoint say nothing about another of the same provider."""

    provider: str
    address: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        if self.address is None:
            return self.provider
        # A malformed address may hold a secret.
        return f"{self.provider} at {self.address if _ADDRESS.fullmatch(self.address) else 'another address'}"


def endpoint_of(call: CallSpec) -> Endpoint:
    """The endpoint of a call: its provider, with the ``base_url`` and ``api_key_env`` of its arguments."""
    address, key = call.args.get("base_url"), call.args.get("api_key_env")
    return Endpoint(
        provider_of(call.model), None if address is None else str(address), None if key is None else str(key)
    )


@dataclass(frozen=True, slots=True)
class CircuitBreakerPolicy:
    """Number of failures in a row after which a provider gets a pause of ``cool_down_s``, then a last trial call."""

    failures: int = 20
    cool_down_s: float = 60.0

    def __post_init__(self) -> None:
        check_options({"failures": self.failures}, 1)
        check_options({"cool_down_s": self.cool_down_s}, 0)


class Breaker:
    """Circuit breaker of one endpoint. Times are arguments: seconds of one monotonic clock."""

    def __init__(self, provider: str, patience: CircuitBreakerPolicy) -> None:
        self.stopped: str | None = None
        """The reason why no more calls go to this provider, in one line; None while they do."""
        self._provider, self._patience = provider, patience
        self._failures = 0
        self._open_until: float | None = None
        self._trial = False
        self._hold_until = -math.inf

    def wait_s(self, now: float) -> float:
        """Seconds until `take` may succeed; 0: now; infinite: only after a change of state."""
        if self.stopped is not None or self._trial:
            return math.inf
        until = self._hold_until if self._open_until is None else max(self._hold_until, self._open_until)
        return max(0.0, until - now)

    def take(self, now: float) -> bool | None:
        """Ask to send one attempt: None means no, True that it is the trial after a pause, False a normal attempt."""
        if self.wait_s(now) > 0:
            return None
        self._trial = self._open_until is not None
        return self._trial

    def give_back(self, trial: bool) -> None:
        """Return an unused permission: the attempt was not sent."""
        self._trial = self._trial and not trial

    def answered(self) -> None:
        """Record a reply, or a refusal that is no sign of an unhealthy provider."""
        self._failures, self._open_until, self._trial = 0, None, False

    def failed(self, error: ModelError, *, trial: bool, now: float) -> None:
        """Record a failed attempt. ``trial`` is the value that `take` returned for it."""
        self.give_back(trial)
        name = f"{self._provider.partition(' ')[0]}: "  # most messages of providers begin with it
        if error.quota:
            self._stop(str(error) if str(error).startswith(name) else f"{self._provider}: {error}")
        elif not error.retryable:
            self.answered()
        elif error.retry_after is not None:  # the provider is up and says when to retry
            self._hold_until = max(self._hold_until, now + requested_wait_s(error))
        else:
            self._failures += 1
            if trial:
                last = str(error).removeprefix(name)
                self._stop(f"{self._provider}: {self._failures} calls in a row failed (last: {last})")
            elif self._failures >= self._patience.failures and self._open_until is None:
                self._open_until = now + self._patience.cool_down_s

    def _stop(self, reason: str) -> None:
        self.stopped = self.stopped or f"{reason}; {KEPT}"


def requested_wait_s(error: ModelError) -> float:
    """The wait that a provider asked for, in seconds between 0 and 300; 0 if it asked for none."""
    asked = error.retry_after or 0.0
    return min(max(asked, 0.0), _LONGEST_WAIT_S) if math.isfinite(asked) else _LONGEST_WAIT_S


Reserve = Callable[[Sequence[int], Mapping[int, int]], Awaitable[Grant]]
"""Books requests by their numbers of tokens, after corrections to earlier bookings; see `reserve`."""

Booking = tuple[int, int]
"""The bucket in which an attempt was booked, and its number of tokens."""

_LOOK_AGAIN_S = 5.0  # replies that used fewer tokens than expected make room earlier
_LONGEST_S = 3600.0

Permit = tuple[bool, Booking | None]
"""Permission to send one attempt, returned to its gate with the result; True: it is the trial after a pause."""


class Throttle:
    """Admission of attempts to one `Endpoint`: circuit breaker, requested waits and rate limits."""

    def __init__(self, provider: str, patience: CircuitBreakerPolicy, reserve: Reserve | None) -> None:
        self._breaker, self._reserve = Breaker(provider, patience), reserve
        self._waiting: deque[tuple[int, asyncio.Future[int | None]]] = deque()
        self._corrections: dict[int, int] = {}
        self._server: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def stopped(self) -> str | None:
        """The reason why no more calls go to this provider; None while they do."""
        return self._breaker.stopped

    @property
    def shut(self) -> bool:
        """True if no attempt will be sent any more, for any reason."""
        return self._closed or self._breaker.stopped is not None

    def close(self) -> None:
        """Admit nothing more, because the run is stopping."""
        self._closed = True
        self._wake()

    async def enter(self, call: CallSpec) -> Permit | None:
        """Wait until an attempt at ``call`` may be sent. Returns None if it must not be sent in this run."""
        while not self.shut:
            if (wait := self._breaker.wait_s(time.monotonic())) > 0:
                await self._wait(wait)
                continue
            booking = None if self._reserve is None else await self._book(tokens_expected(call))
            trial = None if self.shut else self._breaker.take(time.monotonic())
            if trial is not None:
                return trial, booking
        return None

    async def pause(self, seconds: float) -> bool:
        """Wait before another attempt; False if the gate was shut meanwhile."""
        until = time.monotonic() + seconds
        while not self.shut and (remaining := until - time.monotonic()) > 0:
            await self._wait(remaining)
        return not self.shut

    def release(self, permit: Permit, result: Reply | ModelError | None) -> None:
        """Record the result of an attempt; None: it was not sent."""
        trial, booking = permit
        if result is None:
            self._breaker.give_back(trial)
        elif isinstance(result, ModelError):
            self._breaker.failed(result, trial=trial, now=time.monotonic())
        else:
            self._breaker.answered()
            if booking is not None and result.input_tokens is not None and result.output_tokens is not None:
                bucket, tokens = booking  # the next booking corrects this one by the tokens that the reply reports
                more = result.input_tokens + result.output_tokens - tokens
                self._corrections[bucket] = self._corrections.get(bucket, 0) + more
        self._wake()

    async def _wait(self, seconds: float) -> None:
        """Wait for ``seconds`` or until a change of state."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, _LONGEST_S)):
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _book(self, tokens: int) -> Booking | None:
        """Wait for room for one attempt; None when the gate was shut meanwhile."""
        turn: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, turn))
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        bucket = await turn
        return None if bucket is None else (bucket, tokens)

    async def _serve(self) -> None:
        """Book for all waiting attempts in one transaction, first come first served, until none waits."""

        def tell(bucket: int | None, n: int) -> None:
            for _ in range(n):
                _, waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_result(bucket)

        try:
            while self._waiting and not self.shut and self._reserve is not None:
                corrections, self._corrections = self._corrections, {}
                asked = [tokens for tokens, _ in self._waiting]
                granted, bucket, wait_s = await self._reserve(asked, corrections)
                tell(bucket, granted)
                if granted < len(asked):  # attempts that joined meanwhile were not refused
                    await self.pause(min(wait_s, _LOOK_AGAIN_S))
            tell(None, len(self._waiting))
        except Exception as exc:
            while self._waiting:
                _, waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_exception(exc)


_SERVER_NOW: Final = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_FREE: Final = f"expires_at < {_SERVER_NOW} AND (failed_at IS NULL OR failed_at < :since)"

# The row that is locked is the row that changes, so one that was claimed meanwhile is skipped.
_CLAIM: Final = f"""
WITH free AS (
    SELECT key FROM queue WHERE {{which}} AND {_FREE} ORDER BY key LIMIT :n FOR UPDATE SKIP LOCKED
)
UPDATE queue SET worker = :worker, fence = queue.fence + 1, expires_at = {_SERVER_NOW} + :lease_s, failed_at = NULL
FROM free WHERE queue.key = free.key RETURNING queue.key, queue.fence
"""
_CLAIM_OF_KEYS: Final = sa.text(_CLAIM.format(which="key = ANY(:keys)"))
_CLAIM_OF_MODEL: Final = sa.text(_CLAIM.format(which="model = :model"))

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
# One statement inserts the call and its row in the queue: a call that has its reply is never queued again.
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

_OPEN_ATTEMPTS = sa.select(schema.attempts).where(
    among(schema.attempts.c.key), schema.attempts.c.ended_at.is_(None),
    schema.attempts.c.outcome.is_(None),
)  # fmt: skip


class Leases:
    """The call queue of a shared ledger, with a row for each planned call without a reply. See `Ledger.leases`."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    def claim(
        self, worker: str, n: int, lease_s: float, of: str | Sequence[str], since: float = math.inf
    ) -> tuple[list[tuple[str, int]], int]:
        """Lease up to ``n`` free calls, of a model or with the keys of a list.

        Returns (key, fencing token) of each, and the count of attempts now lost.
        """
        which = {"worker": worker, "n": n, "lease_s": lease_s, "since": since}
        with self._store.writing() as connection:
            if isinstance(of, str):
                rows = connection.execute(_CLAIM_OF_MODEL, {**which, "model": schema.plain(of)}).all()
            else:
                rows = connection.execute(_CLAIM_OF_KEYS, {**which, "keys": list(of)}).all()
            claims = sorted((row.key, row.fence) for row in rows)
            lost: list[Attempt] = []
            for group in groups([key for key, fence in claims if fence > 1], KEYS_A_QUERY):
                lost += map(schema.attempt_of, connection.execute(_OPEN_ATTEMPTS, {"keys": group}).mappings())
            database.mark_lost(connection, lost)
        return claims, len(lost)

    def renew(self, worker: str, lease_s: float) -> int:
        """Extend every lease of this worker to ``lease_s`` seconds from now. Returns their number."""
        return self._change(_RENEW, {"worker": worker, "lease_s": lease_s})

    def release(self, worker: str, keys: Collection[str] | None = None) -> int:
        """Release all leases of this worker, or those on ``keys``. Returns their number."""
        return self._change(_RELEASE, {"worker": worker, "keys": None if keys is None else list(keys)})

    def open_keys(self, keys: Sequence[str], since: float) -> set[str]:
        """Return those of ``keys`` that have no reply and were not given up at ``since`` or later."""
        return {row["key"] for row in self._store.rows_among(_NOT_GIVEN_UP, keys, since=since)}

    def any_left(self, model: str, since: float, worker: str | None = None) -> bool:
        """True if some call of this model has no reply, was not given up since ``since`` and is not leased by us."""
        (row,) = self._store.rows(_ANY_LEFT, model=schema.plain(model), since=since, worker=worker)
        return bool(row["any_left"])

    def enqueue(self, connection: sa.Connection, planned: Sequence[Mapping[str, Any]]) -> int:
        """Record planned calls and queue the new ones. Returns the number of new calls."""
        new = 0
        for group in groups(planned, _CALLS_A_STATEMENT):
            columns = {"keys": "key", "models": "model", "specs": "spec", "times": "planned_at"}
            values = {name: [row[column] for row in group] for name, column in columns.items()}
            new += connection.execute(_ENQUEUE, values).rowcount
        return new

    def _change(self, statement: sa.TextClause, parameters: Mapping[str, Any]) -> int:
        with self._store.writing() as connection:
            return connection.execute(statement, parameters).rowcount


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call to be sent now. ``fence`` is the fencing token of its lease, None if no lease is needed."""

    key: str
    call: CallSpec
    fence: int | None = None


def lane_of_call(call: CallSpec) -> str:
    """The model and endpoint of a call: calls of one model to different endpoints must not wait for each other."""
    place = endpoint_of(call)[1:] if call.args else (None, None)
    return call.model if place == (None, None) else f"{call.model} {place[0]} {place[1]}"
