"""The event loop of a run: its thread, its signal handlers, its end, and single attempts with a deadline."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType
from typing import Any, Final, TypeVar

from assaymark.engine.calls import CallSpec, Model, Reply, refusal_of
from assaymark.engine.schema import Outcome
from assaymark.errors import ModelError

T = TypeVar("T")

GRACE_S = 1.0
"""Seconds for an attempt to close its connection after its deadline; then it is abandoned."""


def run_outside_loop(work: Callable[[], T], give_up: Callable[[], object] = lambda: None) -> T:
    """Run ``work`` outside any event loop: in this thread, or in a new one if this one has a running loop."""
    if asyncio._get_running_loop() is None:  # which raises nothing that would become the context of every later error
        return work()
    with ThreadPoolExecutor(1, "outside the event loop") as thread:
        working = thread.submit(work)
        try:
            return working.result()
        finally:
            if not working.done():
                give_up()


@contextmanager
def on_signals(act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` at the first SIGINT or SIGTERM and restore the previous handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; in another thread, the caller handles signals
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def first(_number: int, _frame: FrameType | None) -> None:
        restore()
        act()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()


def run_in_new_loop(main: Coroutine[Any, Any, None], interrupt: Callable[[], object]) -> None:
    """Like `asyncio.run`, but a task that ignores its cancellation is abandoned after `GRACE_S`."""
    loop = asyncio.new_event_loop()
    # wakes the loop, which may be waiting. Its own add_signal_handler visits all signals each time, which would be slow
    # for a season: a few calls a day for a year
    in_loop = loop.call_soon_threadsafe

    def end() -> None:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    try:
        with on_signals(partial(in_loop, interrupt)):
            run_outside_loop(partial(loop.run_until_complete, main), partial(in_loop, loop.stop))
    finally:
        run_outside_loop(end)


# Only a few large replies are in memory at a time, from their first megabyte until they are durable.
# A run has up to hundreds of attempts in flight, and a hostile answer to each may have the maximum length. So the
# reader of a body acquires a slot when it passes `LARGE_BYTES`; the run releases the slot when the reply is committed
# or the attempt has failed.


MOST_KEPT_BYTES: Final = 64_000_000
"""Maximum length of a stored body; a longer one is cut to this length."""

LARGE_BYTES: Final = 1_000_000
"""A longer body needs a slot. No answer in the requested form comes near this length."""

PLACES: Final = 2
"""The number of large bodies in memory at once, in one run. Each may be copied several times while it is stored."""


class Slot:
    """The slot of one attempt for a large body; it acquires the semaphore ``free`` only when it is needed."""

    def __init__(self, free: asyncio.Semaphore) -> None:
        self._free = free
        self._over = False
        self.acquired = False

    async def acquire(self) -> None:
        """Wait for a free slot. Idempotent."""
        if self.acquired or self._over:
            return
        await self._free.acquire()
        self.acquired = True
        if self._over:  # the attempt was abandoned while it waited
            self.release()

    def release(self) -> None:
        """Release the slot if it was acquired, and acquire none from now on."""
        self._over = True
        if self.acquired:
            self.acquired = False
            self._free.release()


_PLACE: ContextVar[Slot | None] = ContextVar("assaymark_place", default=None)


def current_slot() -> Slot | None:
    """Return the slot of the attempt that this task makes; None outside of a run."""
    return _PLACE.get()


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt without a reply. ``defect`` is an exception of the model other than `ModelError`."""

    outcome: Outcome
    error: ModelError
    defect: BaseException | None = None


class Attempts:
    """Makes attempts within a deadline, and keeps references to those that ignore their cancellation."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._left_behind: set[asyncio.Task[Reply]] = set()

    async def at(self, model: Model, call: CallSpec, place: Slot) -> Reply | FailedAttempt:
        """Send ``call`` to ``model`` once. The time is added to the reply unless the model has measured it."""

        async def complete() -> Reply:
            _PLACE.set(place)
            reply = await model.complete(call)
            if not isinstance(reply, Reply) or not isinstance(reply.text, str):
                raise TypeError(f"model {call.model!r} must return a Reply with a text (got {type(reply).__name__})")
            if reply.raw is not None and not isinstance(reply.raw, str):
                wanted = f"must return its raw response as text (got {type(reply.raw).__name__})"
                raise TypeError(f"model {call.model!r} {wanted}")
            return reply

        started = time.perf_counter()
        # A separate task: a model that ignores its cancellation must not block the worker.
        task = asyncio.create_task(complete())
        try:
            done, _ = await asyncio.wait((task,), timeout=self._deadline_s)
            if not done:
                self._left_behind.add(task)
                task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # not needed any more
                task.cancel()
                await asyncio.wait((task,), timeout=GRACE_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        seconds = time.perf_counter() - started
        result: Reply | FailedAttempt
        if not done:
            late = ModelError(f"no reply within {self._deadline_s:g} s", retryable=True)
            result = FailedAttempt("timeout", late)
        elif task.cancelled():
            result = FailedAttempt("failed", ModelError("the model cancelled its own attempt", retryable=True))
        elif (error := task.exception()) is None:
            reply = task.result()
            result = replace(reply, seconds=seconds) if reply.seconds is None else reply
        elif isinstance(error, ModelError):
            refused = error.refused == "content"
            result = refusal_of(error, call.model) if refused else FailedAttempt(
                "lost" if error.lost else "failed", error
            )  # fmt: skip
        else:
            defect = ModelError(f"{type(error).__name__}: {error}", retryable=False)
            result = FailedAttempt("defect", defect, defect=error)
        if not isinstance(result, Reply):
            place.release()
        return result
