"""What every attempt at a provider passes first: its limits a minute, the wait it asked for, and a circuit breaker.

The breaker opens on a row of failures, or at once where no call can succeed.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.database import Store
from assaymark.engine.schema import plain, windows
from assaymark.errors import ModelError

# How many requests and tokens a minute a provider may get, from all who work on one ledger together.
#
# Before an attempt is sent, a request and its tokens are written into the ledger, into a row for the second they are
# reserved in. No minute, wherever it starts, gets more than the limit: what was reserved counts for a minute and two
# seconds, because an attempt is sent a moment after its reservation.


_WINDOW_S = 60.0
_SLACK_S = 2.0  # between a reservation and the arrival of its request
_BUCKET_S = 1.0
_GATE = -1  # the bucket that stands for none
_CHARS_A_TOKEN = 3  # English has about 4, JSON and numbers fewer
_TOKENS_OUT = 1024

_HERE = windows.c.provider == sa.bindparam("at")
_LOCK = sa.select(windows.c.bucket).where(_HERE, windows.c.bucket == _GATE).with_for_update()
_USED = sa.select(windows).where(_HERE, windows.c.bucket != _GATE).order_by(windows.c.bucket)
_PAST = sa.delete(windows).where(
    _HERE,
    windows.c.bucket != _GATE,
    # Rows of the future are of a clock that was set back since: they would block everybody until it is there again.
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


def at_least(owner: object, **limits: float) -> None:
    """Raise `ValueError` unless these fields of a record are None or as large as this."""
    for name, least in limits.items():
        value = getattr(owner, name)
        if value is not None and not value >= least:
            raise ValueError(f"{name} must be at least {least} (got {value})")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one provider may get in any 60 seconds; None sets no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        at_least(self, requests_per_minute=1, tokens_per_minute=1)


@dataclass(frozen=True, slots=True)
class Grant:
    """The first ``granted`` of those that asked may be sent, booked in ``bucket``; the rest ask again in ``wait_s``."""

    granted: int
    bucket: int
    wait_s: float


def tokens_expected(call: CallSpec) -> int:
    """A guess at the tokens of a call before it is made: a third of its characters, and the most it may answer.

    The most is ``max_tokens`` or ``max_output_tokens`` of its arguments, otherwise 1024.
    """
    characters = sum(len(text.text) for text in call.texts)
    allowed = [call.args.get(name) for name in ("max_tokens", "max_output_tokens", "max_completion_tokens")]
    out = max((n for n in allowed if isinstance(n, int)), default=_TOKENS_OUT)
    return math.ceil(characters / _CHARS_A_TOKEN) + out


def reserve(
    connection: sa.Connection,
    store: Store,
    provider: str,
    limits: Limits,
    tokens: Sequence[int],
    corrections: Mapping[int, int],
) -> Grant:
    """Book as many requests as the limits leave room for, in the order given."""
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
    wanted = [min(n, limits.tokens_per_minute or n) for n in tokens]
    requests, taken, granted = sum(row["requests"] for row in used), sum(row["tokens"] for row in used), 0
    for more in wanted:
        requests, taken = requests + 1, taken + more
        if requests > (limits.requests_per_minute or math.inf) or taken > (limits.tokens_per_minute or math.inf):
            break
        granted += 1
    booked = {"more_requests": granted, "more_tokens": sum(wanted[:granted])}
    if granted and connection.execute(_ADD, {**at, "now": now, **booked}).rowcount == 0:
        new = {"requests": booked["more_requests"], "tokens": booked["more_tokens"]}
        connection.execute(sa.insert(windows), {"provider": at["at"], "bucket": now, **new})
    oldest = used[0]["bucket"] if used else now
    return Grant(granted, now, max(0.0, (oldest + behind) * _BUCKET_S - clock) + _BUCKET_S / 10)


KEPT = "stopped asking it; every reply so far is kept, run the same command to go on"
_WITH_ADDRESS = ("http", "https")
_LONGEST_WAIT_S = 300.0
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:_\[\]-]+(/[A-Za-z0-9._~/-]*)?")


def provider_of(model: str) -> str:
    """Who answers for a model: what comes before the first slash; of external agents, which of them it is."""
    provider, _, rest = model.partition("/")
    if provider in _WITH_ADDRESS:
        return f"{provider}/{rest.partition('/')[0]}"
    return model if provider == "python" else provider


class Door(NamedTuple):
    """Where calls go and with which key: what fails behind one door says nothing about another of the same provider."""

    provider: str
    address: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        if self.address is None:
            return self.provider
        # An address that is none may hold a secret.
        return f"{self.provider} at {self.address if _ADDRESS.fullmatch(self.address) else 'another address'}"


def door_of(call: CallSpec) -> Door:
    """The door of a call: its provider, with the ``base_url`` and ``api_key_env`` that its arguments name."""
    address, key = call.args.get("base_url"), call.args.get("api_key_env")
    return Door(provider_of(call.model), None if address is None else str(address), None if key is None else str(key))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run bears with a provider that fails.

    After ``failures`` failed attempts in a row that another attempt might have helped, over all of its calls, nothing
    is sent for ``cool_down_s`` seconds. Then one attempt is made: if it fails too, the provider is not asked again.
    """

    failures: int = 20
    cool_down_s: float = 60.0

    def __post_init__(self) -> None:
        at_least(self, failures=1, cool_down_s=0)


class Breaker:
    """What a run knows about the health of one provider. Times are seconds of one monotonic clock, handed in."""

    def __init__(self, provider: str, patience: Patience) -> None:
        self.stopped: str | None = None
        """Why this provider is not asked any more, in one line; None while it is."""
        self._provider, self._patience = provider, patience
        self._failures = 0
        self._open_until: float | None = None
        self._trial = False
        self._hold_until = -math.inf

    def wait_s(self, now: float) -> float:
        """Seconds until it is worth asking `take` again; 0: now; infinite: when something has changed."""
        if self.stopped is not None or self._trial:
            return math.inf
        until = self._hold_until if self._open_until is None else max(self._hold_until, self._open_until)
        return max(0.0, until - now)

    def take(self, now: float) -> bool | None:
        """Leave to send one attempt: None is no leave, and True says that it is the one that is tried out."""
        if self.wait_s(now) > 0:
            return None
        self._trial = self._open_until is not None
        return self._trial

    def give_back(self, *, trial: bool) -> None:
        """The attempt was not sent after all."""
        self._trial = self._trial and not trial

    def answered(self) -> None:
        """An attempt brought a reply, or a refusal that is no sign of bad health."""
        self._failures, self._open_until, self._trial = 0, None, False

    def failed(self, error: ModelError, *, trial: bool, now: float) -> None:
        """An attempt failed. ``trial`` is what `take` said of it."""
        self.give_back(trial=trial)
        name = f"{self._provider.partition(' ')[0]}: "  # most models of providers say it, and where they asked
        if error.quota:
            self._stop(str(error) if str(error).startswith(name) else f"{self._provider}: {error}")
        elif not error.retryable:
            self.answered()
        elif error.retry_after is not None:  # it is there and says when to come back
            self._hold_until = max(self._hold_until, now + asked_wait_s(error))
        else:
            self._failures += 1
            if trial:
                last = str(error).removeprefix(name)
                self._stop(f"{self._provider}: {self._failures} calls in a row failed (last: {last})")
            elif self._failures >= self._patience.failures and self._open_until is None:
                self._open_until = now + self._patience.cool_down_s

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or f"{why}; {KEPT}"


def asked_wait_s(error: ModelError) -> float:
    """The seconds that a provider asked to wait, between 0 and 300; 0 if it asked for none."""
    asked = error.retry_after or 0.0
    return min(max(asked, 0.0), _LONGEST_WAIT_S) if math.isfinite(asked) else _LONGEST_WAIT_S


Reserve = Callable[[Sequence[int], Mapping[int, int]], Awaitable[Grant]]
"""Books requests with so many tokens each, after corrections to what was booked; see `limits.reserve`."""

Booking = tuple[int, int]
"""The bucket that an attempt was booked in, and with how many tokens."""

_LOOK_AGAIN_S = 5.0  # replies that took fewer tokens than expected make room earlier
_LONGEST_S = 3600.0


class Permit(NamedTuple):
    """Leave to send one attempt, to be handed back to its gate with what came of it."""

    trial: bool
    booking: Booking | None


class Gate:
    """What every attempt at one provider passes first. One for each `Door` of a run."""

    def __init__(self, provider: str, patience: Patience, reserve: Reserve | None) -> None:
        self._breaker = Breaker(provider, patience)
        self._throttle = None if reserve is None else _Throttle(reserve, self)
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def stopped(self) -> str | None:
        """Why nothing is sent to this provider any more; None while it is asked."""
        return self._breaker.stopped

    @property
    def shut(self) -> bool:
        """Whether no attempt will be sent any more, for whatever reason."""
        return self._closed or self._breaker.stopped is not None

    def close(self) -> None:
        """Let nothing more through: the run is stopping."""
        self._closed = True
        self._wake()

    async def enter(self, call: CallSpec) -> Permit | None:
        """Wait until an attempt at ``call`` may be sent. None: it may not, now or later in this run."""
        while not self.shut:
            if (wait := self._breaker.wait_s(time.monotonic())) > 0:
                await self._until(wait)
                continue
            booking = None if self._throttle is None else await self._throttle.book(tokens_expected(call))
            trial = None if self.shut else self._breaker.take(time.monotonic())
            if trial is not None:
                return Permit(trial, booking)
        return None

    async def pause(self, seconds: float) -> bool:
        """Wait before another attempt; False when there will be none."""
        until = time.monotonic() + seconds
        while not self.shut and (left := until - time.monotonic()) > 0:
            await self._until(left)
        return not self.shut

    def back(self, permit: Permit, result: Reply | ModelError | None) -> None:
        """Take note of how an attempt ended; None: it was not sent."""
        if result is None:
            self._breaker.give_back(trial=permit.trial)
        elif isinstance(result, ModelError):
            self._breaker.failed(result, trial=permit.trial, now=time.monotonic())
        else:
            self._breaker.answered()
            if self._throttle is not None and permit.booking is not None:
                self._throttle.correct(permit.booking, result)
        self._wake()

    async def _until(self, seconds: float) -> None:
        """Wait so long, or until something has changed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, _LONGEST_S)):
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _Throttle:
    """Books attempts in the ledger: all who wait at the same time in one transaction, first come first served."""

    def __init__(self, reserve: Reserve, gate: Gate) -> None:
        self._reserve, self._gate = reserve, gate
        self._waiting: deque[tuple[int, asyncio.Future[int | None]]] = deque()
        self._corrections: dict[int, int] = {}
        self._server: asyncio.Task[None] | None = None

    async def book(self, tokens: int) -> Booking | None:
        """Wait for room for one attempt; None when the gate was shut meanwhile."""
        mine: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tokens, mine))
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        bucket = await mine
        return None if bucket is None else (bucket, tokens)

    async def _serve(self) -> None:
        """Book for all who wait, until nobody does."""
        try:
            while self._waiting and not self._gate.shut:
                corrections, self._corrections = self._corrections, {}
                asked = [tokens for tokens, _ in self._waiting]
                grant = await self._reserve(asked, corrections)
                self._tell(grant.bucket, grant.granted)
                if grant.granted < len(asked):  # those that came meanwhile have not been refused
                    await self._gate.pause(min(grant.wait_s, _LOOK_AGAIN_S))
            self._tell(None, len(self._waiting))
        except Exception as exc:
            while self._waiting:
                _, waiting = self._waiting.popleft()
                if not waiting.done():
                    waiting.set_exception(exc)

    def _tell(self, bucket: int | None, n: int) -> None:
        for _ in range(n):
            _, waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(bucket)

    def correct(self, booking: Booking, reply: Reply) -> None:
        """The next booking takes account of what a reply says it took."""
        bucket, tokens = booking
        if reply.input_tokens is not None and reply.output_tokens is not None:
            more = reply.input_tokens + reply.output_tokens - tokens
            self._corrections[bucket] = self._corrections.get(bucket, 0) + more
