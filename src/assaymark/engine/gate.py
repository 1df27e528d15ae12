"""Before an attempt is sent: is the provider well, is the wait it asked for over, and do its limits leave room?"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from assaymark.engine.breaker import Breaker, Patience
from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.limits import Grant, tokens_expected
from assaymark.errors import ModelError

Reserve = Callable[[Sequence[int], Mapping[int, int]], Awaitable[Grant]]
"""Books requests with so many tokens each, after corrections to what was booked; see `limits.reserve`."""

Booking = tuple[int, int]
"""The bucket that an attempt was booked in, and with how many tokens."""

_LOOK_AGAIN_S = 5.0  # replies that took fewer tokens than expected make room earlier
_LONGEST_S = 3600.0


class Gate:
    """What every attempt at one provider passes first. One for each `Door` of a run.

    Parameters
    ----------
    provider : str
        Its name.
    patience : Patience
        When it is not asked any more.
    reserve : callable, optional
        Books an attempt in the ledger; without it there is no limit.
    """

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
                return Permit(self, trial, booking)
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


class Permit:
    """Leave to send one attempt; `done` hands it back with what came of it."""

    __slots__ = ("_gate", "booking", "trial")

    def __init__(self, gate: Gate, trial: bool, booking: Booking | None) -> None:
        self._gate, self.trial, self.booking = gate, trial, booking

    def done(self, result: Reply | ModelError | None) -> None:
        """How the attempt ended; None: it was not sent."""
        self._gate.back(self, result)


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
