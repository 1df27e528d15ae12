"""One run at work: its workers take calls, pass the gate of the provider, ask, and hand over what comes back."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from assaymark.engine.budget import Hold, Purse
from assaymark.engine.calls import CallSpec, Model, Reply, refusal_of
from assaymark.engine.ledger import Journal, Ledger
from assaymark.engine.loop import Attempts, Place, Room, Trouble
from assaymark.engine.queue import Due, Work
from assaymark.engine.rate_limits import KEPT, Door, Gate, Limits, Patience, Permit, asked_wait_s, door_of
from assaymark.engine.schema import Attempt, Committed, End
from assaymark.errors import LedgerError, ModelError
from assaymark.records import canonical_json
from assaymark.text import code_points

# When a model is asked no further in a run: nothing that it can be asked in its manner brings anything usable.


Unusable = Callable[[CallSpec, Reply], tuple[str, str] | None]
"""Who was asked, and why nothing can be made of the reply, in words; None if something can."""

FIRST: Final = 20
"""So many replies without a usable one among them, and a model is asked no further."""

_LINE_CHARS: Final = 100


class Watch:
    """Stops calls of one model, asked with the same arguments, that can bring nothing; others go on.

    It stops at once when a provider says that none of them can succeed (`ModelError.always`), and after the first
    `FIRST` replies if all of them are unusable. Replies of earlier runs count when they are told to `replied`.

    >>> watch = Watch(lambda call, reply: ("north", "no JSON object"))
    >>> call = CallSpec(model="openai/m", messages=(), template="")
    >>> for n in range(FIRST):
    ...     watch.replied(call, Reply(text="Four points.", model="m"))
    >>> watch.stopped(call), watch.lines[0][:88]
    (True, "north: none of its first 20 replies is usable (no JSON object; the first: 'Four points.'")
    """

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
        found = self._unusable(call, reply)
        if found is None:
            self._good.add(manner)
            return
        first = self._first.setdefault(manner, [])
        first.append(first_line(reply.text))
        if len(first) == FIRST:
            why = f"none of its first {FIRST} replies is usable ({found[1]}; the first: {first[0]})"
            self._stopped[manner] = f"{found[0]}: {why}; {KEPT}"


def first_line(text: str) -> str:
    """The first line of a reply, printable, cut short and quoted.

    >>> first_line("Sorry,\\nI cannot."), first_line("")
    ("'Sorry,'", 'an empty reply')
    """
    line = next((line.strip() for line in text[: 40 * _LINE_CHARS].splitlines() if line.strip()), "")
    shown = "".join(char if char.isprintable() else " " for char in code_points(line))
    return repr(shown if len(shown) <= _LINE_CHARS else f"{shown[: _LINE_CHARS - 3]}...") if shown else "an empty reply"


def _manner(call: CallSpec) -> str:
    """Everything about a call but its texts."""
    return f"{call.model} {canonical_json([call.args, call.effort, call.temperature, call.schema is None])}"


T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Told how many calls have their reply, and of how many, whenever a group is committed."""

Told = Callable[[str, Reply], None]
"""Told which model was asked and what it replied, when the reply is on the disk."""

_LOG = logging.getLogger(__name__)
_LONGEST_BACKOFF_S = 300.0
_MOST_PUT_OFF = 30  # times that a provider may ask to wait before one call is given up
_ANSWERS = 4  # for each call that it turns away, at least, where a model refuses and is not asked wrongly
_LOOK_AGAIN_S = (0.02, 1.0)  # while others hold what is left: at first, and at most


@dataclass(frozen=True, slots=True)
class Failure:
    """A call without a reply after so many attempts, and the last reason. The next run asks it again.

    ``turned_away`` says that the provider refused this call as a request, which may be about this call alone.
    """

    key: str
    model: str
    attempts: int
    reason: str
    turned_away: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How calls are made; see `run_calls`."""

    concurrency: int = 64
    deadline_s: float = 120.0
    attempts: int = 4
    backoff_s: float = 1.0
    lease_s: float = 60.0
    patience: Patience = field(default_factory=Patience)
    limits: Mapping[str, Limits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("attempts", 1), ("backoff_s", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} must be at least {least} (got {getattr(self, name)})")
        for name in ("deadline_s", "lease_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive (got {getattr(self, name)})")

    def pause(self, key: str, failures: int) -> float:
        """Seconds before the next attempt: doubling, and spread by the key so that retries do not come in step."""
        spread = 0.5 + (int(key[:8], 16) >> (failures % 8)) % 1024 / 1024
        return min(_LONGEST_BACKOFF_S, self.backoff_s * 2.0 ** (failures - 1) * spread)


class Run:
    """One run: its workers, its gates, its journal and its tally."""

    def __init__(
        self,
        ledger: Ledger,
        work: Work,
        manner: Manner,
        *,
        planned: int,
        already: int,
        progress: Progress | None,
        purse: Purse | None = None,
        told: Told | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._told, self._under_way = told, 0
        self._ledger, self._work, self._manner, self._progress = ledger, work, manner, progress
        self._purse = purse
        self._planned, self._already = planned, already
        self._attempts, self._room = Attempts(manner.deadline_s), Room()
        self._gates: dict[Door, Gate] = {}
        self._over = asyncio.Event()
        self._defect: BaseException | None = None
        self.made = self.retried = self.put_off = self.in_flight_bound = 0
        self.failed: list[Failure] = []
        self.turned_away: dict[str, tuple[Attempt, ModelError]] = {}
        """The last attempts at failed calls that the provider turned away for good, by key."""
        self.interrupted = False

    @property
    def stopped(self) -> tuple[str, ...]:
        """One line for each provider or model that was not asked to the end, and one for a budget that is used up."""
        lines = [*(gate.stopped for gate in self._gates.values()), *(self._watch.lines if self._watch else ())]
        if self._purse is not None:
            lines.append(self._purse.stopped)
        return tuple(line for line in lines if line is not None)

    async def ask(self, models: Mapping[str, Model]) -> None:
        """Ask every call there is; returns when each has ended, or after a drain."""
        with ThreadPoolExecutor(1, "ledger") as thread:
            self._journal = Journal(self._work, thread, self._committed)
            workers: list[asyncio.Task[None]] = []
            for name, size in self._work.sizes().items():
                n = min(self._manner.concurrency, size)
                gate_of = partial(self._gate, thread)
                feed = _Feed(self._work, thread, name, n, gate_of, self._over, self._look, self._watch)
                workers += [asyncio.create_task(self._work_on(feed, models)) for _ in range(n)]
            self.in_flight_bound = len(workers)
            renewing = asyncio.create_task(self._renew(thread))
            try:
                await self._see_through(workers, asyncio.create_task(self._journal.run()))
            finally:
                renewing.cancel()
                with suppress(LedgerError):  # leases that cannot be given back end by themselves
                    await _in(thread, self._work.close)
        if self._defect is not None:
            raise self._defect

    async def _see_through(self, workers: list[asyncio.Task[None]], writer: asyncio.Task[None]) -> None:
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

    async def _work_on(self, feed: _Feed, models: Mapping[str, Model]) -> None:
        try:
            while (due := await feed.next()) is not None:
                await self._answer(feed, due, models[due.call.model])
            await feed.put_back()
        except Exception as exc:
            self._halt(exc)

    async def _answer(self, feed: _Feed, due: Due, model: Model) -> None:
        gate, sent, turned_away = feed.gate(due), 0, 0
        while (leave := await self._leave(gate, due)) is not None:
            attempt = await self._journal.begin(due)
            if attempt is None:
                leave.done(None, None)
                return
            self.retried += sent > 0
            sent += 1
            place = self._room.place()
            self._under_way += 1
            result = await self._attempts.at(model, due.call, place)
            self._under_way -= 1
            leave.done(attempt, result)
            if isinstance(result, Reply):
                if self._watch is not None:
                    self._watch.replied(due.call, result)
                self._journal.end(End(attempt, "replied", reply=result), partial(self._replied, place, due, result))
                return
            turned_away += _turned_away(result)
            again = self._again(result, sent - turned_away, turned_away)
            self._journal.end(End(attempt, result.outcome, str(result.error), final=not again))
            if not again:
                self._give_up(due, sent, result)
                if result.error.refused:
                    self.turned_away[due.key] = attempt, result.error
                return
            self.put_off += _turned_away(result)
            pause_s = max(asked_wait_s(result.error), self._manner.pause(due.key, sent))
            _LOG.info(
                "%s: attempt %d at a call failed (%s); again in %.1f s", due.call.model, sent, result.error, pause_s
            )
            if not await gate.pause(pause_s):
                break
        feed.set_aside(due)

    async def _leave(self, gate: Gate, due: Due) -> _Leave | None:
        """Wait until an attempt may be paid and sent. None: it may not, now or later in this run."""
        hold: Hold | None = None
        if self._purse is not None:
            hold = await self._purse.take(due.call, lambda: gate.shut)
            if hold is None:
                if self._purse.stopped is not None:
                    self._stop()
                return None
        permit = await gate.enter(due.call)
        if permit is None:
            if hold is not None:
                hold.done(None, None)
            return None
        return _Leave(permit, hold)

    async def _look(self, thread: Executor) -> None:
        """Where others pay too, see what they have paid."""
        if self._purse is not None and self._work.renew_every_s is not None:
            self._purse.enter_books(await _in(thread, self._purse.read, self._ledger))

    def _again(self, trouble: Trouble, failures: int, turned_away: int) -> bool:
        """Whether a call is tried again. Being asked to wait is no failure, but not without end either."""
        patient = failures < self._manner.attempts and turned_away <= _MOST_PUT_OFF
        return trouble.error.retryable and patient

    def _give_up(self, due: Due, sent: int, trouble: Trouble) -> None:
        _LOG.info("%s: a call is given up after %d attempts (%s)", due.call.model, sent, trouble.error)
        turned_away = trouble.error.refused is not None
        self.failed.append(Failure(due.key, due.call.model, sent, str(trouble.error), turned_away))
        if self._watch is not None:
            self._watch.failed(due.call, trouble.error)
        if trouble.defect is not None:
            self._halt(trouble.defect)

    def _gate(self, thread: Executor, call: CallSpec) -> Gate:
        door = door_of(call)
        if door not in self._gates:
            limits = self._manner.limits.get(door.provider)
            reserve = None if limits is None else partial(_in, thread, self._ledger.reserve, door.provider, limits)
            self._gates[door] = Gate(str(door), self._manner.patience, reserve)
            if self._over.is_set():
                self._gates[door].close()
        return self._gates[door]

    async def _renew(self, thread: Executor) -> None:
        if self._work.renew_every_s is None:
            return
        while True:
            await asyncio.sleep(self._work.renew_every_s)
            try:
                await _in(thread, self._work.renew)
            except LedgerError as exc:
                self._halt(exc)
                return

    def _committed(self, committed: Committed, ends: list[End]) -> None:
        self.made += committed.answered
        if self._progress is not None and ends:
            try:
                self._progress(self._already + self.made, self._planned)
            except Exception as exc:
                self._halt(exc)

    def _replied(self, place: Place, due: Due, reply: Reply) -> None:
        place.leave()
        if self._told is not None:
            self._told(due.call.model, reply)

    def take_as_refusals(self) -> None:
        """Record as refused what a model that answers nearly all calls turned away for good.

        A model that turns many calls away may be asked wrongly, or not be there any more: the next run asks them again.
        """
        count = Counter(one.model for one in self.failed if one.key in self.turned_away)
        answered = self._ledger.standing() if count else {}
        few = {model for model, n in count.items() if answered[model][1] >= _ANSWERS * n}
        refused = {one.key: one.model for one in self.failed if one.key in self.turned_away and one.model in few}
        ends = []
        for key, model in refused.items():
            attempt, error = self.turned_away[key]
            ends.append(End(attempt, "replied", str(error), refusal_of(error, model)))
        if ends:
            self._ledger.commit(ends=ends)
        self.made += len(ends)
        self.failed = [one for one in self.failed if one.key not in refused]

    def interrupt(self) -> None:
        """Let what is under way finish, and start nothing new."""
        if not self._over.is_set():
            _LOG.warning(
                "stopping: %d calls under way end first, nothing more is sent; a second Ctrl-C does not wait for them",
                self._under_way,
            )
        self.interrupted = True
        self._stop()

    def _halt(self, defect: BaseException) -> None:
        """Start nothing more; the first defect is raised when what is under way has ended."""
        self._defect = self._defect or defect
        self._stop()

    def _stop(self) -> None:
        self._over.set()
        for gate in self._gates.values():
            gate.close()
        if self._purse is not None:
            self._purse.wake()


@dataclass(frozen=True, slots=True)
class _Leave:
    """Leave to send one attempt, and the money held back for it."""

    permit: Permit
    hold: Hold | None

    def done(self, attempt: Attempt | None, result: Reply | Trouble | None) -> None:
        """How the attempt ended; None: it was not sent."""
        self.permit.done(result.error if isinstance(result, Trouble) else result)
        if self.hold is not None:
            self.hold.done(attempt, result)


class _Feed:
    """The calls of one lane, fetched when its workers have run out of them; ``look`` is called after each fetch."""

    def __init__(
        self,
        work: Work,
        thread: Executor,
        lane: str,
        n: int,
        gate_of: Callable[[CallSpec], Gate],
        over: asyncio.Event,
        look: Callable[[Executor], Awaitable[None]],
        watch: Watch | None,
    ) -> None:
        self._gate_of, self._over, self._look, self._watch = gate_of, over, look, watch
        self._work, self._thread, self._lane, self._n = work, thread, lane, n
        self._dues = deque(work.at_hand(lane))
        self._aside: list[Due] = []  # held, so that they do not come again, until nothing more is asked
        self._gates: set[Gate] = set()
        self._fetching = asyncio.Lock()
        self._empty = False

    @property
    def _shut(self) -> bool:
        """Whether nothing more may be sent, as far as the doors of its calls are known."""
        return self._over.is_set() or (bool(self._gates) and all(gate.shut for gate in self._gates))

    def gate(self, due: Due) -> Gate:
        """What an attempt at a call passes first."""
        gate = self._gate_of(due.call)
        self._gates.add(gate)
        return gate

    async def next(self) -> Due | None:
        """The next call whose door is not shut; None when there is none left, or nothing more may be sent."""
        while not self._shut:
            if not self._dues:
                async with self._fetching:  # one fetches, the others wait for what it brings
                    if not self._dues and not await self._fetch():
                        return None
                continue
            due = self._dues.popleft()
            if not self.gate(due).shut and not (self._watch and self._watch.stopped(due.call)):
                return due
            self.set_aside(due)
        return None

    def set_aside(self, due: Due) -> None:
        """This call is not asked in this run."""
        self._aside.append(due)

    async def put_back(self) -> None:
        """What was set aside is for others to ask; and when nothing more may be sent, what waits is too."""
        given_back, self._aside = self._aside, []
        if self._shut:
            given_back += self._dues
            self._dues.clear()
        if given_back:
            await _in(self._thread, self._work.put_back, given_back)

    async def _fetch(self) -> bool:
        wait = _LOOK_AGAIN_S[0]
        while not self._empty and not self._shut:
            found = await _in(self._thread, self._work.more, self._lane, self._n)
            self._empty = found is None
            self._dues.extend(found or ())
            if found:
                await self._look(self._thread)
                return True
            if found is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), min(wait, self._work.renew_every_s or wait))
                wait = min(2 * wait, _LOOK_AGAIN_S[1])
        return False


def _turned_away(trouble: Trouble) -> bool:
    return trouble.error.retryable and trouble.error.retry_after is not None


async def _in(thread: Executor, work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work, *args)
