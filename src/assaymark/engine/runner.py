"""Making calls: each is asked once, every attempt has a deadline, and whatever happens the ledger stays right."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from assaymark.engine.calls import CallSpec, Model, Reply, one_line, refusal_of
from assaymark.engine.ledger import Journal, Ledger
from assaymark.engine.loop import PLACES, Attempts, Slot, Trouble, on_own_loop
from assaymark.engine.prices import Reservation, SpendLimit
from assaymark.engine.rate_limits import (
    KEPT,
    CircuitBreakerPolicy,
    Endpoint,
    Gate,
    PendingCall,
    Work,
    asked_wait_s,
    endpoint_of,
    lane_of_call,
)
from assaymark.engine.schema import Attempt, Committed, End
from assaymark.errors import LedgerError, ModelError, UnknownNameError
from assaymark.protocol import ProviderLimits
from assaymark.records import canonical_json

Unusable = Callable[[CallSpec, Reply], tuple[str, str] | None]
"""Who was asked, and why nothing can be made of the reply, in words; None if something can."""

FIRST: Final = 20
"""So many replies without a usable one among them, and a model is asked no further."""

_LINE_CHARS: Final = 100


class Watch:
    """Stops calls of one model, asked with the same arguments, that can bring nothing; others go on."""

    def __init__(self, unusable: Unusable | None = None) -> None:
        self._unusable = unusable
        self._first: dict[str, list[str]] = {}
        self._good: set[str] = set()
        self._stopped: dict[str, str] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each model that is asked no further."""
        return tuple(dict.fromkeys(self._stopped.values()))

    def stopped(self, call: CallSpec) -> bool:
        """Whether a call is not to be sent any more."""
        return bool(self._stopped) and _manner(call) in self._stopped

    def failed(self, call: CallSpec, error: ModelError) -> None:
        """An attempt failed for good."""
        if error.always:
            self._stopped.setdefault(_manner(call), f"{error}; {KEPT}")

    def replied(self, call: CallSpec, reply: Reply) -> None:
        """A reply came."""
        if self._unusable is None:
            return
        manner = _manner(call)
        if manner in self._good or manner in self._stopped:
            return
        problem = self._unusable(call, reply)
        if problem is None:
            self._good.add(manner)
            return
        first = self._first.setdefault(manner, [])
        first.append(first_line(reply.text))
        if len(first) == FIRST:
            why = f"none of its first {FIRST} replies is usable ({problem[1]}; the first: {first[0]})"
            self._stopped[manner] = f"{problem[0]}: {why}; {KEPT}"


def first_line(text: str) -> str:
    """The first line of a reply, printable, cut short and quoted."""
    line = next((line.strip() for line in text[: 40 * _LINE_CHARS].splitlines() if line.strip()), "")
    shown = one_line(line, _LINE_CHARS)
    return repr(shown) if shown else "an empty reply"


def _manner(call: CallSpec) -> str:
    """Everything about a call but its texts."""
    return f"{call.model} {canonical_json([call.args, call.effort, call.temperature, call.schema is None])}"


T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with how many calls have their reply, and of how many, whenever a group is committed."""

OnReply = Callable[[str, Reply], None]
"""Called with which model was asked and what it replied, when the reply is on the disk."""

_LOG = logging.getLogger(__name__)
_LONGEST_BACKOFF_S = 300.0
_MOST_PUT_OFF = 30  # times that a provider may ask to wait before one call is given up
_ANSWERS = 4  # for each call that it turns away, at least, where a model refuses and is not asked wrongly
_LOOK_AGAIN_S = (0.02, 1.0)  # while others hold what is left: at first, and at most


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a reply after so many attempts, and the last reason. The next run asks it again."""

    key: str
    model: str
    attempts: int
    reason: str
    refused: bool = False


Manner = tuple[int, float, int, float, CircuitBreakerPolicy, Mapping[str, ProviderLimits]]
"""How calls are made: concurrency, deadline, attempts, the first pause, patience and limits; see `run_calls`."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a run did: ``planned = already + made + elsewhere + len(failed) + left``."""

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
        """Calls that were not tried to the end: the run was interrupted, a provider stopped, or others gave them up."""
        return self.planned - self.already - self.made - self.elsewhere - len(self.failed)


class Run:
    """One run: its workers, its gates, its journal and its tally."""

    def __init__(
        self, ledger: Ledger, work: Work, manner: Manner, planned: int, already: int, progress: Progress | None,
        purse: SpendLimit | None = None, on_reply: OnReply | None = None, watch: Watch | None = None,
    ) -> None:  # fmt: skip
        self.watch = watch
        self._on_reply, self._under_way = on_reply, 0
        self.ledger, self.work, self._progress = ledger, work, progress
        self._concurrency, deadline_s, self._tries, self._backoff_s, self._patience, self._limits = manner
        self.purse = purse
        self._planned, self._already = planned, already
        self._attempts, self._room = Attempts(deadline_s), asyncio.Semaphore(PLACES)
        self._gates: dict[Endpoint, Gate] = {}
        self.over = asyncio.Event()
        self._defect: BaseException | None = None
        self.made = self.retried = self.deferred = self.in_flight_bound = 0
        self.failed: list[Failure] = []
        self.rate_limited: dict[str, tuple[Attempt, ModelError]] = {}
        """The last attempts at failed calls that the provider turned away for good, by key."""
        self.interrupted = False

    @property
    def stopped(self) -> tuple[str, ...]:
        """One line for each provider or model that was not asked to the end, and one for a budget that is used up."""
        lines = [*(gate.stopped for gate in self._gates.values()), *(self.watch.lines if self.watch else ())]
        if self.purse is not None:
            lines.append(self.purse.stopped)
        return tuple(line for line in lines if line is not None)

    async def ask(self, models: Mapping[str, Model]) -> None:
        """Ask every call there is; returns when each has ended, or after a drain."""

        async def work_on(feed: _Feed) -> None:
            try:
                while (due := await feed.next()) is not None:
                    await self._answer(feed, due, models[due.call.model])
                await feed.requeue()
            except Exception as exc:
                self._halt(exc)

        with ThreadPoolExecutor(1, "ledger") as thread:
            self._journal = Journal(self.work, thread, self._committed)
            workers: list[asyncio.Task[None]] = []
            for name, size in self.work.sizes.items():
                n = min(self._concurrency, size)
                feed = _Feed(self, thread, name, n)
                workers += [asyncio.create_task(work_on(feed)) for _ in range(n)]
            self.in_flight_bound = len(workers)

            async def renew(every_s: float) -> None:
                while True:
                    await asyncio.sleep(every_s)
                    try:
                        await _in(thread, self.work.renew)
                    except LedgerError as exc:
                        self._halt(exc)
                        return

            every_s = self.work.renew_every_s
            renewing = None if every_s is None else asyncio.create_task(renew(every_s))
            try:
                writer = asyncio.create_task(self._journal.run())
                crew = asyncio.gather(*workers)
                crew.add_done_callback(lambda done: done.cancelled() or done.exception())  # told by whoever ended it
                both: set[asyncio.Future[Any]] = {crew, writer}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if writer.done():  # it cannot write: nobody may send anything more
                    crew.cancel()
                    await asyncio.gather(crew, return_exceptions=True)  # its end is expected, and taken note of here
                self._journal.close()
                await writer
                await crew
            finally:
                if renewing is not None:
                    renewing.cancel()
                with suppress(LedgerError):  # leases that cannot be given back end by themselves
                    await _in(thread, self.work.requeue)
        if self._defect is not None:
            raise self._defect

    async def _answer(self, feed: _Feed, due: PendingCall, model: Model) -> None:
        gate, sent, deferrals = feed.gate(due), 0, 0
        while (leave := await self._leave(gate, due)) is not None:
            attempt = await self._journal.begin(due)
            if attempt is None:
                leave(None, None)
                return
            self.retried += sent > 0
            sent += 1
            place = Slot(self._room)
            self._under_way += 1
            result = await self._attempts.at(model, due.call, place)
            self._under_way -= 1
            leave(attempt, result)
            if isinstance(result, Reply):
                if self.watch is not None:
                    self.watch.replied(due.call, result)
                self._journal.end(End(attempt, "replied", reply=result), partial(self._replied, place, due, result))
                return
            # being asked to wait is no failure, but not without end either
            asked_to_wait = result.error.retryable and result.error.retry_after is not None
            deferrals += asked_to_wait
            patient = sent - deferrals < self._tries and deferrals <= _MOST_PUT_OFF
            again = result.error.retryable and patient
            self._journal.end(End(attempt, result.outcome, str(result.error), final=not again))
            if not again:
                _LOG.info("%s: a call is given up after %d attempts (%s)", due.call.model, sent, result.error)
                refused = result.error.refused is not None
                if refused:
                    self.rate_limited[due.key] = attempt, result.error
                self.failed.append(Failure(due.key, due.call.model, sent, str(result.error), refused))
                if self.watch is not None:
                    self.watch.failed(due.call, result.error)
                if result.defect is not None:
                    self._halt(result.defect)
                return
            self.deferred += asked_to_wait
            # doubling, and spread by the key so that retries do not come in step
            spread = 0.5 + (int(due.key[:8], 16) >> (sent % 8)) % 1024 / 1024
            pause_s = min(_LONGEST_BACKOFF_S, self._backoff_s * 2.0 ** (sent - 1) * spread)
            pause_s = max(asked_wait_s(result.error), pause_s)
            _LOG.info(
                "%s: attempt %d at a call failed (%s); again in %.1f s", due.call.model, sent, result.error, pause_s
            )
            if not await gate.pause(pause_s):
                break
        feed.aside.append(due)

    async def _leave(
        self, gate: Gate, due: PendingCall
    ) -> Callable[[Attempt | None, Reply | Trouble | None], None] | None:
        """Wait until an attempt may be paid and sent. None: it may not, now or later in this run."""
        hold: Reservation | None = None
        if self.purse is not None:
            hold = await self.purse.take(due.call, lambda: gate.shut)
            if hold is None:
                if self.purse.stopped is not None:
                    self._stop()
                return None
        permit = await gate.enter(due.call)
        if permit is None:
            if hold is not None:
                hold.done(None, None)
            return None

        def done(attempt: Attempt | None, result: Reply | Trouble | None) -> None:
            gate.back(permit, result.error if isinstance(result, Trouble) else result)
            if hold is not None:
                hold.done(attempt, result)

        return done

    def gate(self, thread: Executor, call: CallSpec) -> Gate:
        """What every attempt at a call passes first."""
        door = endpoint_of(call)
        if door not in self._gates:
            limits = self._limits.get(door.provider)
            reserve = None if limits is None else partial(_in, thread, self.ledger.reserve, door.provider, limits)
            self._gates[door] = Gate(str(door), self._patience, reserve)
            if self.over.is_set():
                self._gates[door].close()
        return self._gates[door]

    def _committed(self, committed: Committed, ends: list[End]) -> None:
        self.made += committed[1]
        if self._progress is not None and ends:
            try:
                self._progress(self._already + self.made, self._planned)
            except Exception as exc:
                self._halt(exc)

    def _replied(self, place: Slot, due: PendingCall, reply: Reply) -> None:
        place.leave()
        if self._on_reply is not None:
            self._on_reply(due.call.model, reply)

    def take_as_refusals(self) -> None:
        """Record as refused what a model that answers nearly all calls turned away for good."""
        count = Counter(failure.model for failure in self.failed if failure.key in self.rate_limited)
        answered = self.ledger.standing() if count else {}
        few = {model for model, n in count.items() if answered[model][1] >= _ANSWERS * n}
        refused = {one.key: one.model for one in self.failed if one.key in self.rate_limited and one.model in few}
        ends = []
        for key, model in refused.items():
            attempt, error = self.rate_limited[key]
            ends.append(End(attempt, "replied", str(error), refusal_of(error, model)))
        if ends:
            self.ledger.commit(ends=ends)
        self.made += len(ends)
        self.failed = [failure for failure in self.failed if failure.key not in refused]

    def summary(self, orphaned: int, open_: int) -> RunSummary:
        """What it did. ``open_``: of its calls, how many have no reply now, where others answer some too."""
        elsewhere = 0
        if self.work.leases is not None:
            orphaned = self.work.lost
            elsewhere = max(0, self._planned - self._already - self.made - max(open_, len(self.failed)))
        return RunSummary(
            self._planned, self._already, self.made, tuple(self.failed), self.retried, self.interrupted,
            self.in_flight_bound, orphaned, self.deferred, self.stopped, elsewhere,
        )  # fmt: skip

    def interrupt(self) -> None:
        """Let what is under way finish, and start nothing new."""
        if not self.over.is_set():
            _LOG.warning(
                "stopping: calls under way end first (%d left), nothing more is sent; a second Ctrl-C does not wait",
                self._under_way,
            )
        self.interrupted = True
        self._stop()

    def _halt(self, defect: BaseException) -> None:
        """Start nothing more; the first defect is raised when what is under way has ended."""
        self._defect = self._defect or defect
        self._stop()

    def _stop(self) -> None:
        self.over.set()
        for gate in self._gates.values():
            gate.close()
        if self.purse is not None:
            self.purse.wake()


class _Feed:
    """The calls of one lane, fetched when its workers have run out of them."""

    def __init__(self, run: Run, thread: Executor, lane: str, n: int) -> None:
        self._run, self._thread, self._lane, self._n = run, thread, lane, n
        self._dues = deque(run.work.ready(lane))
        self.aside: list[PendingCall] = []  # held, so that they do not come again, until nothing more is asked
        self._gates: set[Gate] = set()
        self._fetching = asyncio.Lock()
        self._empty = False

    @property
    def _shut(self) -> bool:
        """Whether nothing more may be sent, as far as the doors of its calls are known."""
        return self._run.over.is_set() or (bool(self._gates) and all(gate.shut for gate in self._gates))

    def gate(self, due: PendingCall) -> Gate:
        """What an attempt at a call passes first."""
        gate = self._run.gate(self._thread, due.call)
        self._gates.add(gate)
        return gate

    async def next(self) -> PendingCall | None:
        """The next call whose door is not shut; None when there is none left, or nothing more may be sent."""
        while not self._shut:
            if not self._dues:
                async with self._fetching:  # one fetches, the others wait for what it brings
                    if not self._dues and not await self._fetch():
                        return None
                continue
            due = self._dues.popleft()
            if not self.gate(due).shut and not (self._run.watch and self._run.watch.stopped(due.call)):
                return due
            self.aside.append(due)
        return None

    async def requeue(self) -> None:
        """What was set aside is for others to ask; and when nothing more may be sent, what waits is too."""
        given_back, self.aside = self.aside, []
        if self._shut:
            given_back += self._dues
            self._dues.clear()
        if given_back:
            await _in(self._thread, self._run.work.requeue, given_back)

    async def _fetch(self) -> bool:
        wait = _LOOK_AGAIN_S[0]
        while not self._empty and not self._shut:
            due = await _in(self._thread, self._run.work.more, self._lane, self._n)
            self._empty = due is None
            self._dues.extend(due or ())
            if due:
                run = self._run
                if run.purse is not None and run.work.renew_every_s is not None:  # see what others have paid
                    run.purse.load_spend(await _in(self._thread, run.purse.read, run.ledger))
                return True
            if due is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._run.over.wait(), min(wait, self._run.work.renew_every_s or wait))
                wait = min(2 * wait, _LOOK_AGAIN_S[1])
        return False


async def _in(thread: Executor, work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *args)


def run_calls(
    ledger: Ledger, calls: Iterable[CallSpec] | None, models: Mapping[str, Model], *, concurrency: int = 64,
    deadline_s: float = 120.0, attempts: int = 4, backoff_s: float = 1.0, lease_s: float = 60.0,
    patience: CircuitBreakerPolicy | None = None, limits: Mapping[str, ProviderLimits] | None = None,
    purse: SpendLimit | None = None, progress: Progress | None = None, on_reply: OnReply | None = None,
    watch: Watch | None = None,
) -> RunSummary:  # fmt: skip
    """Ask every call that has no reply yet, and write down what comes back.

    A call that fails in a way that may pass (`ModelError` with ``retryable``, or ``deadline_s``) is tried again,
    ``attempts`` times at most, after a pause of ``backoff_s`` that doubles; other failures are written down and the run
    goes on. A call that the provider turned away for good is answered by that: it has a reply that ended in
    ``refusal``, if a content filter said so, or if the model answers at least four calls for each that it turns away. A
    provider that asks to wait is not asked by this run until then, at most 300 seconds, and that counts as no failure.
    One that fails again and again, or has no money left, is not asked any more (``patience``); the others are. SIGINT
    and SIGTERM let what is under way finish and start nothing new; a second signal acts as usual. It has its own event
    loop, and can be called inside of one, as in a notebook.

    A file is held exclusively meanwhile. In a database other workers may go through the same calls, each held by a
    lease of ``lease_s``; this returns when no call is left that anybody could still answer. ``concurrency`` is for each
    model (behind each address and key), ``limits`` a minute for each provider, kept by all who work on this ledger.
    When the next call does not fit the ``purse``, nothing more is sent. ``progress`` is called with ``(replied,
    planned)`` after each commit, ``on_reply`` with ``(model, reply)`` when a reply is on the disk. Before any call it
    raises `PlanError` (a budget, and a call without a price), `UnknownNameError` (a model that is not in ``models``)
    or `LedgerError` (another run holds the ledger, or calls are in batches); later what a model raised that is no
    `ModelError`, after what was under way is written down.
    """
    for name, value, least in (("concurrency", concurrency, 1), ("attempts", attempts, 1), ("backoff_s", backoff_s, 0)):
        if not value >= least:
            raise ValueError(f"{name} must be at least {least} (got {value})")
    for name, value in (("deadline_s", deadline_s), ("lease_s", lease_s)):
        if not value > 0:
            raise ValueError(f"{name} must be positive (got {value})")
    manner = concurrency, deadline_s, attempts, backoff_s, patience or CircuitBreakerPolicy(), limits or {}
    with ledger.exclusive():
        asked: dict[str, CallSpec] = {}
        pending: dict[str, CallSpec] | None = None
        with ThreadPoolExecutor(1, "looking over") as thread:
            # beside the work of the block, see that the ledger is sound: before anything is written or paid for
            sound = None if ledger.looked_over else thread.submit(ledger.check_structure)
            if calls is not None:
                asked = {call.key: call for call in calls}
                for name in {call.model for call in asked.values()} - models.keys():
                    raise UnknownNameError("model", name, list(models))
                pending = {key: asked[key] for key in ledger.pending(asked)}
            sizes = _sizes(ledger, models) if pending is None else Counter(map(lane_of_call, pending.values()))
            # Refuse to ask what a provider has in a batch. Where workers share a ledger, leases keep them from it.
            if ledger.leases is None:
                inside = {key for key, _ in ledger.batches.attempts_under_way()}
                if n := len(inside if pending is None else inside.intersection(pending)):
                    advice = "collect the batches or cancel them first"
                    raise LedgerError(f"{ledger.name}: {n} of the calls to be asked are in batches under way; {advice}")
            if sound is not None:
                sound.result()
            ledger.looked_over = True
        orphaned = 0 if ledger.leases else len(ledger.mark_lost())
        ledger.plan((pending or {}).values())
        waiting = sum(sizes.values())
        planned = waiting if pending is None else len(asked)
        work = Work(ledger, sizes, lease_s, pending)
        run = Run(ledger, work, manner, planned, planned - waiting, progress, purse, on_reply, watch)
        some = (
            [] if purse is None or pending is not None else [key for one in sizes for key in ledger.pending_of(one)[:1]]
        )
        if work.sizes:  # if the prices of these are known where there is a budget
            if purse is not None:
                purse.check(ledger.load(some, {}) if pending is None else pending.values())
                purse.begin(ledger)
            on_own_loop(run.ask(models), run.interrupt)
            run.take_as_refusals()
        left = 0
        if ledger.leases:
            left = sum(_sizes(ledger, models).values()) if pending is None else len(ledger.pending(pending))
        return run.summary(orphaned, left)


def run_worker(ledger: Ledger, models: Mapping[str, Model], **manner: Any) -> RunSummary:
    """Ask the calls that others have planned, until none is left without a reply; ``manner`` is as in `run_calls`.

    Start as many of these as you like, on as many machines, with a ledger in a database. A ledger in a file has one
    at a time. Calls of a model that is not in ``models`` are left to others, and so is what others gave up while this
    worker was there. ``planned`` of the summary counts what had no reply at the start.
    """
    return run_calls(ledger, None, models, **manner)


def _sizes(ledger: Ledger, models: Mapping[str, Model]) -> dict[str, int]:
    return {model: n for model, n in ledger.pending_models().items() if model in models}
