"""The runner of calls: each call is answered once, every attempt has a deadline, and the ledger stays consistent."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from assaymark.engine.calls import CallSpec, Model, Reply, Text, one_line, refusal_of
from assaymark.engine.database import KEYS_A_QUERY
from assaymark.engine.ledger import Ledger, WriteQueue
from assaymark.engine.loop import PLACES, Attempts, FailedAttempt, Slot, run_in_new_loop
from assaymark.engine.prices import SpendLimit
from assaymark.engine.rate_limits import (
    KEPT,
    CircuitBreakerPolicy,
    Endpoint,
    Leases,
    PendingCall,
    Throttle,
    check_options,
    endpoint_of,
    lane_of_call,
    requested_wait_s,
)
from assaymark.engine.schema import Attempt, Committed, End
from assaymark.errors import LedgerError, ModelError, UnknownNameError
from assaymark.protocol import ProviderLimits
from assaymark.records import canonical_json, grouped

Unusable = Callable[[CallSpec, Reply], tuple[str, str] | None]
"""Returns the model and the reason why a reply is unusable, in words; None if it is usable."""

FIRST: Final = 20
"""A model is stopped if none of its first replies, this many, is usable."""

_LINE_CHARS: Final = 100


class Watch:
    """Stops a model with given arguments when its calls always fail or its first replies are all unusable."""

    def __init__(self, unusable: Unusable | None = None) -> None:
        self._unusable = unusable
        self._first: dict[str, list[str]] = {}
        self._good: set[str] = set()
        self._stopped: dict[str, str] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each stopped model."""
        return tuple(dict.fromkeys(self._stopped.values()))

    def stopped(self, call: CallSpec) -> bool:
        """True if a call must not be sent any more."""
        return bool(self._stopped) and _model_key(call) in self._stopped

    def failed(self, call: CallSpec, error: ModelError) -> None:
        """Record a final failure of a call."""
        if error.always:
            self._stopped.setdefault(_model_key(call), f"{error}; {KEPT}")

    def replied(self, call: CallSpec, reply: Reply) -> None:
        """Record a reply."""
        if self._unusable is None:
            return
        manner = _model_key(call)
        if manner in self._good or manner in self._stopped:
            return
        problem = self._unusable(call, reply)
        if problem is None:
            self._good.add(manner)
            return
        first = self._first.setdefault(manner, [])
        first.append(first_line(reply.text))
        if len(first) == FIRST:
            reason = f"none of its first {FIRST} replies is usable ({problem[1]}; the first: {first[0]})"
            self._stopped[manner] = f"{problem[0]}: {reason}; {KEPT}"


def first_line(text: str) -> str:
    """Return the first line of a reply: printable, shortened and quoted."""
    line = next((line.strip() for line in text[: 40 * _LINE_CHARS].splitlines() if line.strip()), "")
    shown = one_line(line, _LINE_CHARS)
    return repr(shown) if shown else "an empty reply"


def _model_key(call: CallSpec) -> str:
    """Model and arguments of a call, without its texts."""
    return f"{call.model} {canonical_json([call.args, call.effort, call.temperature, call.schema is None])}"


T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with the number of answered calls and the number of all calls, after each commit."""

OnReply = Callable[[str, Reply], None]
"""Called with the model and its reply once the reply is durable."""

_LOG = logging.getLogger(__name__)
_LONGEST_BACKOFF_S = 300.0
_MOST_PUT_OFF = 30  # times that a provider may ask to wait before a call is given up
_ANSWERS = 4  # a model that answers at least so many calls for each rejected one refuses; below, the calls are wrong
_KNOWN_TEXTS = 10_000
_LOOK_AGAIN_S = (0.02, 1.0)  # first and longest pause while other workers hold the remaining calls


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that has no reply after ``attempts`` attempts, and the last error. The next run sends it again."""

    key: str
    model: str
    attempts: int
    reason: str
    refused: bool = False


RunConfig = tuple[int, float, int, float, float, CircuitBreakerPolicy, Mapping[str, ProviderLimits]]
"""Options of a run: concurrency, deadline, attempts, first pause, lease, circuit breaker, limits; see `run_calls`."""

Lanes = Mapping[str, tuple[int, Sequence[CallSpec] | None]]
"""By lane (`lane_of_call`), the number of its calls, and the calls; None: the open ones of a model, as planned."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Counts of a run: ``planned = already + made + elsewhere + len(failed) + left``."""

    planned: int
    already: int
    made: int
    failed: tuple[Failure, ...]
    retried: int
    interrupted: bool
    in_flight_bound: int
    orphaned: int
    deferred: int = 0
    stopped: tuple[str, ...] = ()
    elsewhere: int = 0

    @property
    def left(self) -> int:
        """Calls not finished: the run was interrupted, a provider stopped, or other workers gave them up."""
        return self.planned - self.already - self.made - self.elsewhere - len(self.failed)


class CallRun:
    """One run of calls: its workers, gates, write queue and counts."""

    def __init__(
        self, ledger: Ledger, lanes: Lanes, manner: RunConfig, planned: int, already: int, progress: Progress | None,
        budget: SpendLimit | None = None, on_reply: OnReply | None = None, watch: Watch | None = None,
    ) -> None:  # fmt: skip
        self.watch = watch
        self._on_reply, self._under_way = on_reply, 0
        self.ledger, self._lanes, self._progress = ledger, lanes, progress
        self._concurrency, deadline_s, self._tries, self._backoff_s, lease_s, self._patience, self._limits = manner
        self.leases, self.worker, self.lost, self.lease_s = ledger.leases, uuid4().hex, 0, lease_s
        self.since = 0.0 if self.leases is None else ledger.batches.now()
        self.texts: dict[str, Text] = {}
        """Texts that many calls share, of those loaded from the ledger."""
        self.budget = budget
        self._planned, self._already = planned, already
        self._attempts, self._room = Attempts(deadline_s), asyncio.Semaphore(PLACES)
        self._gates: dict[Endpoint, Throttle] = {}
        self.over = asyncio.Event()
        self._defect: BaseException | None = None
        self.made = self.retried = self.deferred = self.in_flight_bound = 0
        self.failed: list[Failure] = []
        self.rejected: dict[str, tuple[Attempt, ModelError]] = {}
        """The last attempts at calls that the provider rejected for good, by key."""
        self.interrupted = False

    @property
    def stopped(self) -> tuple[str, ...]:
        """One line for each provider or model that was stopped, and one for an exhausted budget."""
        lines = [*(gate.stopped for gate in self._gates.values()), *(self.watch.lines if self.watch else ())]
        if self.budget is not None:
            lines.append(self.budget.stopped)
        return tuple(line for line in lines if line is not None)

    async def ask(self, models: Mapping[str, Model]) -> None:
        """Send every call; return when each has ended, or when calls in flight have ended after a stop."""

        async def work_on(lane: _Lane) -> None:
            try:
                while (due := await lane.next()) is not None:
                    await self._answer(lane, due, models[due.call.model])
                await lane.give_back()
            except Exception as exc:
                self._halt(exc)

        with ThreadPoolExecutor(1, "ledger") as thread:
            self._journal = WriteQueue(self.ledger, thread, self._committed)
            workers: list[asyncio.Task[None]] = []
            for name, (size, calls) in self._lanes.items():
                n = min(self._concurrency, size)
                lane = _Lane(self, thread, name, n, calls)
                workers += [asyncio.create_task(work_on(lane)) for _ in range(n)]
            self.in_flight_bound = len(workers)

            async def renew(leases: Leases) -> None:
                while True:
                    await asyncio.sleep(self.lease_s / 3)
                    try:
                        await _run_in(thread, leases.renew, self.worker, self.lease_s)
                    except LedgerError as exc:
                        self._halt(exc)
                        return

            renewing = None if self.leases is None else asyncio.create_task(renew(self.leases))
            try:
                writer = asyncio.create_task(self._journal.run())
                crew = asyncio.gather(*workers)
                crew.add_done_callback(lambda done: done.cancelled() or done.exception())  # reported below
                both: set[asyncio.Future[Any]] = {crew, writer}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if writer.done():  # it failed: nothing more may be sent
                    crew.cancel()
                    await asyncio.gather(crew, return_exceptions=True)  # the cancellation is expected
                self._journal.close()
                await writer
                await crew
            finally:
                if renewing is not None:
                    renewing.cancel()
                if self.leases is not None:
                    with suppress(LedgerError):  # leases that cannot be released expire
                        await _run_in(thread, self.leases.release, self.worker)
        if self._defect is not None:
            raise self._defect

    async def _answer(self, lane: _Lane, due: PendingCall, model: Model) -> None:
        gate, sent, deferrals = lane.gate(due), 0, 0
        while (settle := await self._admit(gate, due)) is not None:
            attempt = await self._journal.begin(due)
            if attempt is None:
                settle(None, None)
                return
            self.retried += sent > 0
            sent += 1
            place = Slot(self._room)
            self._under_way += 1
            result = await self._attempts.at(model, due.call, place)
            self._under_way -= 1
            settle(attempt, result)
            if isinstance(result, Reply):
                if self.watch is not None:
                    self.watch.replied(due.call, result)
                self._journal.end(End(attempt, "replied", reply=result), partial(self._replied, place, due, result))
                return
            # a request to wait is not a failure, but their number is limited
            asked_to_wait = result.error.retryable and result.error.retry_after is not None
            deferrals += asked_to_wait
            patient = sent - deferrals < self._tries and deferrals <= _MOST_PUT_OFF
            again = result.error.retryable and patient
            self._journal.end(End(attempt, result.outcome, str(result.error), final=not again))
            if not again:
                _LOG.info("%s: a call is given up after %d attempts (%s)", due.call.model, sent, result.error)
                refused = result.error.refused is not None
                if refused:
                    self.rejected[due.key] = attempt, result.error
                self.failed.append(Failure(due.key, due.call.model, sent, str(result.error), refused))
                if self.watch is not None:
                    self.watch.failed(due.call, result.error)
                if result.defect is not None:
                    self._halt(result.defect)
                return
            self.deferred += asked_to_wait
            # exponential, with jitter from the key so that retries are not synchronised
            spread = 0.5 + (int(due.key[:8], 16) >> (sent % 8)) % 1024 / 1024
            pause_s = min(_LONGEST_BACKOFF_S, self._backoff_s * 2.0 ** (sent - 1) * spread)
            pause_s = max(requested_wait_s(result.error), pause_s)
            _LOG.info(
                "%s: attempt %d at a call failed (%s); again in %.1f s", due.call.model, sent, result.error, pause_s
            )
            if not await gate.pause(pause_s):
                break
        lane.aside.append(due)

    async def _admit(
        self, gate: Throttle, due: PendingCall
    ) -> Callable[[Attempt | None, Reply | FailedAttempt | None], None] | None:
        """Wait until budget and gate admit an attempt. Returns the callback for its end; None: they never will."""
        budget, hold = self.budget, None
        if budget is not None:
            hold = await budget.take(due.call, lambda: gate.shut)
            if hold is None:
                if budget.stopped is not None:
                    self._stop()
                return None
        permit = await gate.enter(due.call)

        def settle(attempt: Attempt | None, result: Reply | FailedAttempt | None) -> None:
            if permit is not None:
                gate.release(permit, result.error if isinstance(result, FailedAttempt) else result)
            if budget is not None and hold is not None:
                budget.settle(hold, due.call, attempt, result)

        if permit is not None:
            return settle
        settle(None, None)
        return None

    def gate(self, thread: Executor, call: CallSpec) -> Throttle:
        """Return the gate of a call's endpoint, made when it is first needed."""
        at = endpoint_of(call)
        if at not in self._gates:
            limits = self._limits.get(at.provider)
            reserve = None if limits is None else partial(_run_in, thread, self.ledger.reserve, at.provider, limits)
            self._gates[at] = Throttle(str(at), self._patience, reserve)
            if self.over.is_set():
                self._gates[at].close()
        return self._gates[at]

    def _committed(self, committed: Committed, ends: list[End]) -> None:
        self.made += committed[1]
        if self._progress is not None and ends:
            try:
                self._progress(self._already + self.made, self._planned)
            except Exception as exc:
                self._halt(exc)

    def _replied(self, place: Slot, due: PendingCall, reply: Reply) -> None:
        place.release()
        if self._on_reply is not None:
            self._on_reply(due.call.model, reply)

    def record_refusals(self) -> None:
        """Record rejected calls as refusals if their model answers nearly all others."""
        count = Counter(failure.model for failure in self.failed if failure.key in self.rejected)
        answered = self.ledger.answer_counts() if count else {}
        few = {model for model, n in count.items() if answered[model][1] >= _ANSWERS * n}
        refused = {one.key: one.model for one in self.failed if one.key in self.rejected and one.model in few}
        ends = []
        for key, model in refused.items():
            attempt, error = self.rejected[key]
            ends.append(End(attempt, "replied", str(error), refusal_of(error, model)))
        if ends:
            self.ledger.commit(ends=ends)
        self.made += len(ends)
        self.failed = [failure for failure in self.failed if failure.key not in refused]

    def summary(self, orphaned: int, open_: int) -> RunSummary:
        """Return the counts of the run. ``open_``: in a shared ledger, the number of its calls without a reply now."""
        elsewhere = 0
        if self.leases is not None:
            orphaned = self.lost
            elsewhere = max(0, self._planned - self._already - self.made - max(open_, len(self.failed)))
        return RunSummary(
            self._planned, self._already, self.made, tuple(self.failed), self.retried, self.interrupted,
            self.in_flight_bound, orphaned, self.deferred, self.stopped, elsewhere,
        )  # fmt: skip

    def interrupt(self) -> None:
        """Let calls in flight finish and start no new ones."""
        if not self.over.is_set():
            _LOG.warning(
                "stopping: no new calls are sent; waiting for %d in progress; press Ctrl-C again to stop at once",
                self._under_way,
            )
        self.interrupted = True
        self._stop()

    def _halt(self, defect: BaseException) -> None:
        """Start no new calls; the first exception is raised when calls in flight have ended."""
        self._defect = self._defect or defect
        self._stop()

    def _stop(self) -> None:
        self.over.set()
        for gate in self._gates.values():
            gate.close()
        if self.budget is not None:
            self.budget.wake()


class _Lane:
    """The calls of one lane, of which more are fetched from the ledger when its workers have run out.

    The calls of a shared ledger are leased before they are sent, since other workers may have the same ones to send.
    """

    def __init__(self, run: CallRun, thread: Executor, name: str, n: int, calls: Sequence[CallSpec] | None) -> None:
        self._run, self._thread, self._name, self._n = run, thread, name, n
        self._dues: deque[PendingCall] = deque()
        self._calls: dict[str, CallSpec] = {}  # those of the run, to be leased
        self._todo: list[str] = []  # keys of calls to fetch, the next one last
        self._later: list[str] = []  # keys of calls that other workers held when they were to be leased
        if calls is None:
            self._todo = run.ledger.pending_of(name)[::-1] if run.leases is None else []
        elif run.leases is None:
            self._dues.extend(PendingCall(call.key, call) for call in calls)
        else:
            self._calls = {call.key: call for call in calls}
            self._todo = [*self._calls][::-1]
        self.aside: list[PendingCall] = []  # kept leased until the end, so that they are not fetched again
        self._gates: set[Throttle] = set()
        self._fetching = asyncio.Lock()
        self._empty = False

    @property
    def _shut(self) -> bool:
        """True if nothing more may be sent: the run is stopping, or all gates of its calls so far are shut."""
        return self._run.over.is_set() or (bool(self._gates) and all(gate.shut for gate in self._gates))

    def gate(self, due: PendingCall) -> Throttle:
        """Return the gate of a call."""
        gate = self._run.gate(self._thread, due.call)
        self._gates.add(gate)
        return gate

    async def next(self) -> PendingCall | None:
        """Return the next call whose gate is open; None if no call is left or nothing more may be sent."""
        while not self._shut:
            if not self._dues:
                async with self._fetching:  # one worker fetches, the others wait for it
                    if not self._dues and not await self._fetch():
                        return None
                continue
            due = self._dues.popleft()
            if not self.gate(due).shut and not (self._run.watch and self._run.watch.stopped(due.call)):
                return due
            self.aside.append(due)
        return None

    async def give_back(self) -> None:
        """Release the calls set aside to other workers, and all waiting ones if nothing more may be sent."""
        dues, self.aside = self.aside, []
        if self._shut:
            dues += self._dues
            self._dues.clear()
        if dues and (leases := self._run.leases) is not None:
            await _run_in(self._thread, leases.release, self._run.worker, [due.key for due in dues])

    async def _fetch(self) -> bool:
        run, wait = self._run, _LOOK_AGAIN_S[0]
        while not self._empty and not self._shut:
            dues = await _run_in(self._thread, self._more)
            self._empty = dues is None
            self._dues.extend(dues or ())
            if dues:
                if run.budget is not None and run.leases is not None:  # count spending of other workers
                    run.budget.load_spend(await _run_in(self._thread, run.budget.read, run.ledger))
                return True
            if dues is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(run.over.wait(), min(wait, run.lease_s / 3))
                wait = min(2 * wait, _LOOK_AGAIN_S[1])
        return False

    def _more(self) -> list[PendingCall] | None:
        """Fetch more calls. Empty: other workers hold the rest, try again; None: none is left."""
        run, leases, n = self._run, self._run.leases, self._n
        if leases is None:
            return self._loaded({self._todo.pop(): None for _ in range(min(n, len(self._todo)))}) or None
        if not self._calls:
            claimed = self._claim(leases, n, self._name)
            left = claimed or leases.any_left(self._name, run.since, run.worker)
            return self._loaded(claimed) if left else None
        while self._todo:
            keys = [self._todo.pop() for _ in range(min(len(self._todo), n, KEYS_A_QUERY))]
            claimed = self._claim(leases, len(keys), keys)
            self._later += [key for key in keys if key not in claimed]
            if claimed:
                return [PendingCall(key, self._calls[key], claimed[key]) for key in keys if key in claimed]
        open_ = leases.open_keys(self._later, run.since)
        self._todo = [key for key in reversed(self._later) if key in open_]
        self._later.clear()
        return [] if self._todo else None

    def _claim(self, leases: Leases, n: int, of: str | Sequence[str]) -> dict[str, int]:
        """Lease calls of a model or with these keys; return their fencing tokens."""
        claims, lost = leases.claim(self._run.worker, n, self._run.lease_s, of, self._run.since)
        self._run.lost += lost
        return dict(claims)

    def _loaded(self, fences: Mapping[str, int | None]) -> list[PendingCall]:
        """Load calls by their keys; texts that many of them share are cached."""
        texts = self._run.texts
        if len(texts) > _KNOWN_TEXTS:
            texts.clear()
        calls = self._run.ledger.load(list(fences), texts)
        return [PendingCall(key, call, fences[key]) for key, call in zip(fences, calls, strict=True)]


async def _run_in(thread: Executor, work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *args)


def run_calls(
    ledger: Ledger, calls: Iterable[CallSpec] | None, models: Mapping[str, Model], *, concurrency: int = 64,
    deadline_s: float = 120.0, attempts: int = 4, backoff_s: float = 1.0, lease_s: float = 60.0,
    patience: CircuitBreakerPolicy | None = None, limits: Mapping[str, ProviderLimits] | None = None,
    budget: SpendLimit | None = None, progress: Progress | None = None, on_reply: OnReply | None = None,
    watch: Watch | None = None,
) -> RunSummary:  # fmt: skip
    """Send every call that has no reply yet, and record the replies.

    A call with a transient failure (`ModelError` with ``retryable``, or no reply within ``deadline_s``) is retried, up
    to ``attempts`` attempts, after a pause of ``backoff_s`` that doubles; other failures are recorded and the run
    continues. A call that the provider rejected for good gets a reply that ended in ``refusal`` if a content filter was
    the reason, or if the model answers at least four calls for each rejected one. If a provider asks to wait, this run
    waits, at most 300 seconds, and does not count that as a failure. A provider that fails repeatedly or has no credit
    left gets no more calls (``patience``); the others continue. On SIGINT or SIGTERM, calls in flight finish and no new
    ones start; a second signal acts as usual. The function has its own event loop and can be called from within one, as
    in a notebook.

    A ledger in a file is locked meanwhile. In a database, other workers may process the same calls, each under a lease
    of ``lease_s``; the function returns when no call is left that any worker could still answer. ``concurrency`` holds
    per model (and address and key), ``limits`` per minute and provider, over all workers on this ledger. When the next
    call does not fit ``budget``, nothing more is sent. ``progress`` is called with ``(replied, planned)``
    after each commit, ``on_reply`` with ``(model, reply)`` when a reply is durable. Raises, before any call,
    `PlanError` (a budget is set and a call has no price), `UnknownNameError` (a model is not in ``models``) or
    `LedgerError` (another run holds the ledger, or calls are in batches); later, once calls in flight are recorded,
    any exception of a model other than `ModelError`.
    """
    check_options({"concurrency": concurrency, "attempts": attempts}, 1)
    check_options({"backoff_s": backoff_s}, 0)
    check_options({"deadline_s": deadline_s, "lease_s": lease_s})
    manner = concurrency, deadline_s, attempts, backoff_s, lease_s, patience or CircuitBreakerPolicy(), limits or {}
    with ledger.exclusive():
        asked: dict[str, CallSpec] = {}
        pending: dict[str, CallSpec] | None = None
        with ThreadPoolExecutor(1, "looking over") as thread:
            # check the ledger's structure in parallel, before anything is written or paid for
            sound = None if ledger.verified else thread.submit(ledger.check_structure)
            if calls is not None:
                asked = {call.key: call for call in calls}
                for name in {call.model for call in asked.values()} - models.keys():
                    raise UnknownNameError("model", name, list(models))
                pending = {key: asked[key] for key in ledger.pending(asked)}
                lanes: Lanes = {name: (len(of), of) for name, of in grouped(pending.values(), lane_of_call).items()}
            else:
                lanes = {name: (n, None) for name, n in _sizes(ledger, models).items()}
            # Refuse to send calls that are in an open batch. In a shared ledger, the leases prevent that.
            if ledger.leases is None:
                inside = {key for key, _ in ledger.batches.attempts_under_way()}
                if n := len(inside if pending is None else inside.intersection(pending)):
                    advice = "collect the batches or cancel them first"
                    raise LedgerError(f"{ledger.name}: {n} of the planned calls are in batches in progress; {advice}")
            if sound is not None:
                sound.result()
            ledger.verified = True
        orphaned = 0 if ledger.leases else len(ledger.mark_lost())
        ledger.plan((pending or {}).values())
        waiting = sum(n for n, _ in lanes.values())
        planned = waiting if pending is None else len(asked)
        run = CallRun(ledger, lanes, manner, planned, planned - waiting, progress, budget, on_reply, watch)
        if lanes:
            if budget is not None:
                some = [key for name in (lanes if pending is None else ()) for key in ledger.pending_of(name)[:1]]
                budget.check(ledger.load(some, {}) if pending is None else pending.values())
                budget.begin(ledger)
            run_in_new_loop(run.ask(models), run.interrupt)
            run.record_refusals()
        unanswered = 0
        if ledger.leases:
            unanswered = sum(_sizes(ledger, models).values()) if pending is None else len(ledger.pending(pending))
        return run.summary(orphaned, unanswered)


def run_worker(ledger: Ledger, models: Mapping[str, Model], **manner: Any) -> RunSummary:
    """Send the planned calls of a ledger until each has a reply; ``manner`` holds the options of `run_calls`.

    With a ledger in a database, any number of workers may run, on any number of machines; with a file, one at a time.
    Calls of models that are not in ``models`` are left to other workers, and so are calls that another worker gave up
    during this run. ``planned`` of the summary is the number of calls without a reply at the start.
    """
    return run_calls(ledger, None, models, **manner)


def _sizes(ledger: Ledger, models: Mapping[str, Model]) -> dict[str, int]:
    return {model: n for model, n in ledger.pending_models().items() if model in models}
