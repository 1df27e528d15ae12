"""Making calls: each is asked once, every attempt has a deadline, and whatever happens the ledger stays right."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from assaymark.engine.calls import CallSpec, Model, Reply
from assaymark.engine.journal import Journal
from assaymark.engine.ledger import Ledger
from assaymark.engine.rows import End, Outcome
from assaymark.errors import ModelError, UnknownNameError

Progress = Callable[[int, int], None]
"""Told how many calls have their reply, and of how many, whenever a group is committed."""

_LONGEST_BACKOFF_S = 300.0
_GRACE_S = 1.0  # for an attempt to close its connection after its deadline; then it is left behind


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a reply after so many attempts, and the last reason. The next run asks it again."""

    key: str
    model: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did: ``planned = already + made + len(failed) + left``.

    ``in_flight_bound`` is how many calls can have been under way at once: after a hard kill no more than these are
    paid for a second time. ``orphaned`` counts the attempts that an earlier run had under way when it died.
    """

    planned: int
    already: int
    made: int
    failed: tuple[Failure, ...]
    retried: int
    interrupted: bool
    in_flight_bound: int
    orphaned: int

    @property
    def left(self) -> int:
        """Calls that were not tried to the end, because the run was interrupted."""
        return self.planned - self.already - self.made - len(self.failed)


def run_calls(
    ledger: Ledger,
    calls: Iterable[CallSpec],
    models: Mapping[str, Model],
    *,
    concurrency: int = 64,
    deadline_s: float = 120.0,
    attempts: int = 4,
    backoff_s: float = 1.0,
    progress: Progress | None = None,
) -> RunSummary:
    """Ask every call that has no reply yet, and write down what comes back.

    A call that fails in a way that may pass (`ModelError` with ``retryable``, or the deadline) is tried again after
    a pause that doubles; other failures are written down and the run goes on. SIGINT and SIGTERM let what is under
    way finish and start nothing new; a second signal acts as usual. Call it from outside any event loop.

    Parameters
    ----------
    ledger : Ledger
        Where everything is written. It is held exclusively meanwhile.
    calls : iterable of CallSpec
        What to ask. Calls with equal keys are one call.
    models : mapping of model name to Model
        Who answers; every ``call.model`` needs an entry.
    concurrency : int
        Calls under way at once, for each model.
    deadline_s : float
        Seconds that one attempt may take. A model that blocks the thread instead of awaiting cannot be stopped.
    attempts : int
        Most attempts at one call in this run.
    backoff_s : float
        Seconds before the second attempt, give or take half (fixed by the key), at most 300 later on.
    progress : callable, optional
        Told ``(replied, planned)`` after each commit.

    Raises
    ------
    UnknownNameError
        A call names a model that is not in ``models``. Nothing was sent.
    LedgerError
        Another run holds the ledger, or it cannot be written. What was committed is safe.
    Exception
        Whatever a model raised that is no `ModelError`: a defect. What was under way was finished and written down.
    """
    _check_no_loop()
    limits = _Limits(concurrency, deadline_s, attempts, backoff_s)
    asked = {call.key: call for call in calls}
    _check_models(asked.values(), models)
    with ledger.exclusive():
        ledger.check_structure()
        orphaned = len(ledger.mark_lost())
        ledger.plan(asked.values())
        pending = ledger.pending(asked)
        run = _Run(ledger, limits, planned=len(asked), already=len(asked) - len(pending), progress=progress)
        if pending:
            _on_own_loop(run.ask([(key, asked[key]) for key in pending], models))
    return RunSummary(
        planned=len(asked),
        already=len(asked) - len(pending),
        made=run.made,
        failed=tuple(run.failed),
        retried=run.retried,
        interrupted=run.interrupted,
        in_flight_bound=run.in_flight_bound,
        orphaned=orphaned,
    )


@dataclass(frozen=True, slots=True)
class _Limits:
    """How calls are made; see `run_calls`."""

    concurrency: int
    deadline_s: float
    attempts: int
    backoff_s: float

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("attempts", 1), ("backoff_s", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least} (got {getattr(self, name)})")
        if not self.deadline_s > 0:
            raise ValueError(f"deadline_s must be positive (got {self.deadline_s})")

    def pause(self, key: str, failures: int) -> float:
        """Seconds before the next attempt: doubling, and spread by the key so that retries do not come in step."""
        spread = 0.5 + (int(key[:8], 16) >> (failures % 8)) % 1024 / 1024
        return min(_LONGEST_BACKOFF_S, self.backoff_s * 2.0 ** (failures - 1) * spread)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """An attempt that brought no reply."""

    outcome: Outcome
    reason: str
    retryable: bool = False
    defect: BaseException | None = None


class _Run:
    """One run: its workers, its journal and its tally."""

    def __init__(
        self, ledger: Ledger, limits: _Limits, *, planned: int, already: int, progress: Progress | None
    ) -> None:
        self._ledger, self._limits, self._progress = ledger, limits, progress
        self._planned, self._already = planned, already
        self._stopping = asyncio.Event()
        self._left_behind: set[asyncio.Task[Reply]] = set()
        self._defect: BaseException | None = None
        self.made = self.retried = self.in_flight_bound = 0
        self.failed: list[Failure] = []
        self.interrupted = False

    async def ask(self, pending: Iterable[tuple[str, CallSpec]], models: Mapping[str, Model]) -> None:
        """Ask every pending call; returns when each has ended, or after a drain."""
        waiting: dict[str, deque[tuple[str, CallSpec]]] = {}
        for key, call in pending:
            waiting.setdefault(call.model, deque()).append((key, call))
        with ThreadPoolExecutor(1, "ledger") as thread, _on_signals(self._interrupt):
            self._journal = Journal(self._ledger, thread, self._committed)
            workers = [
                asyncio.create_task(self._work(models[name], queue))
                for name, queue in waiting.items()
                for _ in range(min(self._limits.concurrency, len(queue)))
            ]
            self.in_flight_bound = len(workers)
            await self._see_through(workers, asyncio.create_task(self._journal.run()))
        if self._defect is not None:
            raise self._defect

    async def _see_through(self, workers: list[asyncio.Task[None]], writer: asyncio.Task[None]) -> None:
        crew = asyncio.gather(*workers)
        both: set[asyncio.Future[Any]] = {crew, writer}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if writer.done():  # it cannot write: nobody may send anything more
            crew.cancel()
            await asyncio.gather(crew, return_exceptions=True)  # its end is expected, and taken note of here
        self._journal.close()
        await writer
        await crew

    async def _work(self, model: Model, waiting: deque[tuple[str, CallSpec]]) -> None:
        while waiting and not self._stopping.is_set():
            key, call = waiting.popleft()
            await self._answer(model, key, call)

    async def _answer(self, model: Model, key: str, call: CallSpec) -> None:
        for number in range(1, self._limits.attempts + 1):
            attempt = await self._journal.begin(key)
            result = await self._attempt(model, call)
            if isinstance(result, Reply):
                self._journal.end(End(attempt, "replied", reply=result))
                return
            self._journal.end(End(attempt, result.outcome, result.reason))
            if result.defect is not None:
                self._halt(result.defect)
            if not result.retryable or number == self._limits.attempts:
                self.failed.append(Failure(key, call.model, number, result.reason))
                return
            if not await self._paused(self._limits.pause(key, number)):
                return
            self.retried += 1

    async def _attempt(self, model: Model, call: CallSpec) -> Reply | _Trouble:
        started = time.perf_counter()
        # A task of its own: a model that does not heed its cancellation must not hold up the worker.
        task = asyncio.create_task(_complete(model, call))
        try:
            done, _ = await asyncio.wait((task,), timeout=self._limits.deadline_s)
            if not done:
                await self._let_go(task)
                return _Trouble("timeout", f"no reply within {self._limits.deadline_s:g} s", retryable=True)
        except asyncio.CancelledError:
            task.cancel()
            raise
        return _result(task, time.perf_counter() - started)

    async def _let_go(self, task: asyncio.Task[Reply]) -> None:
        self._left_behind.add(task)
        task.add_done_callback(_look_away)
        task.cancel()
        await asyncio.wait((task,), timeout=_GRACE_S)

    async def _paused(self, seconds: float) -> bool:
        """Wait; False when the run is stopping instead."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return not self._stopping.is_set()
        return False

    def _committed(self, ends: list[End]) -> None:
        self.made += sum(end.reply is not None for end in ends)
        if self._progress is not None and ends:
            try:
                self._progress(self._already + self.made, self._planned)
            except Exception as exc:
                self._halt(exc)

    def _interrupt(self) -> None:
        self.interrupted = True
        self._stopping.set()

    def _halt(self, defect: BaseException) -> None:
        """Start nothing more; the first defect is raised when what is under way has ended."""
        self._defect = self._defect or defect
        self._stopping.set()


async def _complete(model: Model, call: CallSpec) -> Reply:
    reply = await model.complete(call)
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        raise TypeError(f"model {call.model!r} must return a Reply with a text (got {type(reply).__name__})")
    if not isinstance(reply.raw, str | None):
        raise TypeError(f"model {call.model!r} must return its raw response as text (got {type(reply.raw).__name__})")
    return reply


def _result(task: asyncio.Task[Reply], seconds: float) -> Reply | _Trouble:
    if task.cancelled():
        return _Trouble("failed", "the model cancelled its own attempt", retryable=True)
    error = task.exception()
    if error is None:
        reply = task.result()
        return replace(reply, seconds=seconds) if reply.seconds is None else reply
    if isinstance(error, ModelError):
        return _Trouble("failed", str(error), retryable=error.retryable)
    return _Trouble("defect", f"{type(error).__name__}: {error}", defect=error)


def _look_away(task: asyncio.Task[Reply]) -> None:
    """Take note of how an abandoned attempt ended, which is of no interest to anybody any more."""
    if not task.cancelled():
        task.exception()


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "run_calls has an event loop of its own; from inside one, await asyncio.to_thread(run_calls, ...)"
    )


def _check_models(calls: Iterable[CallSpec], models: Mapping[str, Model]) -> None:
    for name in {call.model for call in calls}:
        if name not in models:
            raise UnknownNameError("model", name, list(models))


@contextmanager
def _on_signals(act: Callable[[], None]) -> Iterator[None]:
    """Do ``act`` at the first SIGINT or SIGTERM, after which they act as they did before."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers; whoever runs us elsewhere has the signals
        return
    loop = asyncio.get_running_loop()
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}

    def restore() -> None:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def first() -> None:
        restore()
        act()

    for number in before:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        restore()


def _on_own_loop(main: Coroutine[Any, Any, None]) -> None:
    """Like `asyncio.run`, but an attempt that does not heed its cancellation is left behind, not waited for."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
