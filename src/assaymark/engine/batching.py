"""Sending calls in provider batches: half the price, a reply within a day, resumable after interruptions."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

from assaymark.engine.calls import CallSpec, Reply
from assaymark.engine.ledger import Batch, BatchStatus, Ledger
from assaymark.engine.loop import on_signals
from assaymark.engine.providers.batches import BatchMaker, BatchRefused, BatchState, RemoteBatches, lane_of
from assaymark.engine.rate_limits import RESUME, check_options, provider_of
from assaymark.engine.runner import Failure, Progress
from assaymark.engine.schema import Attempt, End
from assaymark.errors import LedgerError, ModelError, UnknownNameError
from assaymark.records import canonical_json

Say = Callable[[str], None]
"""Called with a line about what happens to a batch."""

_SUBMIT_LEASE_S: Final = 900.0
_LEASE_S: Final = 50 * 3600.0  # longer than any provider processes a batch
_ENDS_A_COMMIT: Final = 1000
_CHARS_A_COMMIT: Final = 50_000_000  # of bodies, so that long replies do not add up in memory
_KEPT_S: Final = 48 * 3600.0
"""Every provider keeps a batch for this long; a younger one that is unknown was sent with another key or address."""
_LONGEST_WAIT_S: Final = 300.0


class BatchRun:
    """The state and the counts of one `run_batches`, with its options. Must be closed."""

    def __init__(
        self, ledger: Ledger, asked: Mapping[str, CallSpec], pending: Sequence[str], makers: Mapping[str, BatchMaker],
        progress: Progress | None = None, say: Say | None = None, poll_s: float = 60.0, most_items: int = 10_000,
        attempts: int = 3, deadline_s: float | None = None, settle_s: float = 30.0,
    ) -> None:  # fmt: skip
        check_options({"most_items": most_items, "attempts": attempts}, 1)
        check_options({"settle_s": settle_s}, 0)
        check_options({"poll_s": poll_s, "deadline_s": deadline_s})
        self._poll_s, self._most_items, self._attempts = poll_s, most_items, attempts
        self._deadline_s, self._settle_s = deadline_s, settle_s
        self._ledger, self._batches, self._leases = ledger, ledger.batches, ledger.leases
        self._asked, self._makers = asked, makers
        self._progress, self._say = progress, say or (lambda _: None)
        self._already = len(asked) - len(pending)
        self._waiting = dict.fromkeys(pending)
        self._tries: Counter[str] = Counter()
        self._providers: dict[str, RemoteBatches] = {}
        self._full: set[str] = set()  # lanes that take no more until one of their batches ends
        self._paused_until: dict[str, float] = {}  # until when no batch is submitted to a lane
        self._missed: dict[str, float] = {}  # when a batch was first searched without success
        self._states: dict[str, BatchState] = {}
        self._stopping = threading.Event()
        self._since = self._batches.now() if self._leases else 0.0
        self.made = self.submitted = self.lost = 0
        self.failed: dict[str, Failure] = {}
        self.halted: dict[str, str] = {}
        self.notes: list[str] = []
        self.interrupted = False

    def close(self) -> None:
        """Close the connections to the providers."""
        for provider in self._providers.values():
            provider.close()

    def stop(self) -> None:
        """Submit no more batches and stop waiting; batches at the providers continue."""
        self.interrupted = True
        self._stopping.set()

    def work(self) -> None:
        """Poll the open batches, submit the waiting calls and pause, until nothing is left or time is up."""
        until = None if self._deadline_s is None else time.monotonic() + self._deadline_s
        for batch in self._batches.under_way():
            self._lease(batch)
        for key, _ in self._batches.attempts_under_way():
            self._waiting.pop(key, None)
        while not self._stopping.is_set():
            for batch in self._open_batches():
                self._poll(batch)
            if not self._stopping.is_set():
                lanes: dict[str, list[str]] = {}
                for key in self._waiting:
                    lane = lane_of(self._asked[key])
                    if _account(lane) not in self.halted:
                        lanes.setdefault(lane, []).append(key)
                for lane, keys in lanes.items():
                    if lane in self._full or self._is_paused(lane):
                        continue
                    for group in self._groups(lane, keys):
                        if self._stopping.is_set() or _account(lane) in self.halted:
                            break
                        self._submit(lane, group)
                        if lane in self._full or self._is_paused(lane):
                            break
            # seconds until the next look, unless there is nothing to look for, or no time
            batches = self._open_batches()
            if not batches and not any(_account(lane_of(self._asked[key])) not in self.halted for key in self._waiting):
                return
            pause = self._poll_s
            if any(batch.remote is None for batch in batches):
                pause = min(pause, max(self._settle_s, 0.001))
            wait = pause if until is None else until - time.monotonic()
            if wait <= 0 or self._stopping.wait(min(pause, wait)):
                return

    def cancel(self) -> int:
        """Ask the providers to stop every batch whose id is certain. Returns how many were stopped."""
        stopped = 0
        for batch in self._batches.under_way():
            if batch.remote is None or not batch.certain:
                self._say(f"{_model(batch)}: batch {batch.label} has no id that is surely its own; it is left alone")
                continue
            provider = self._provider(batch)
            try:
                if provider is not None:
                    provider.cancel(batch.remote)
                    stopped += 1
                    self._say(f"{_model(batch)}: batch {batch.remote} is being stopped")
            except ModelError as exc:
                self._report(batch, exc)
        return stopped

    def under_way(self) -> int:
        """The number of unanswered calls of this run that are in an open batch."""
        inside = {key for key, _ in self._batches.attempts_under_way()}
        return len(self._ledger.pending(inside & self._asked.keys()))

    def _open_batches(self) -> list[Batch]:
        """The open batches whose provider has not been halted."""
        return [batch for batch in self._batches.under_way() if _account(batch.lane) not in self.halted]

    def _poll(self, batch: Batch) -> None:
        provider = None if self._stopping.is_set() else self._provider(batch)
        if provider is None:
            return
        try:
            if batch.remote is None:
                # its submission was cut off: either the provider has it, or it never got there
                if self._is_paused(batch.lane):
                    return
                attempts = self._batches.attempts(batch.label)
                remote = provider.find(batch.label, frozenset(attempts), batch.begun_at, self._batches.remotes())
                if remote is not None:
                    self._lease(self._batches.submitted(batch.label, remote, certain=provider.keeps_labels))
                    self._full.discard(batch.lane)
                    guess = "" if provider.keeps_labels else " (the newest of its size, until its results say more)"
                    self._say(f"{_model(batch)}: batch {remote} had been handed over before the interruption{guess}")
                    return
                if time.monotonic() - self._missed.setdefault(batch.label, time.monotonic()) < self._settle_s:
                    return
                if provider.keeps_labels:
                    reason = "the batch never reached its provider"
                    self._fail([(attempt, reason, True) for attempt in self._open(attempts).values()])
                    self._end(batch, "lost", reason)
                else:
                    self._give_up(batch, attempts, "no batch of its size is at its provider")
                return
            state = provider.state(batch.remote)
            if state.status in ("ended", "cancelled"):
                self._collect(batch, batch.remote, provider)
            elif state.status == "refused":
                self._refused(batch, f"the provider refused the batch: {state.reason}", retryable=state.retryable)
            elif state.status == "gone" and self._too_old(batch):
                self._give_up(batch, self._batches.attempts(batch.label), state.reason)
            elif state.status == "gone":  # another account is asked than has it
                advice = "set the key and the address that it was handed over with"
                self._halt(_account(batch.lane), f"{state.reason}, which is at most {_KEPT_S / 3600:g} h old; {advice}")
            elif self._states.get(batch.label) != state:
                self._states[batch.label] = state
                n = self._batches.size(batch.label)
                self._say(f"{_model(batch)}: batch {batch.remote}: {state.done} of {n} done, {state.failed} failed")
        except ModelError as exc:
            self._report(batch, exc)

    def _collect(self, batch: Batch, remote: str, provider: RemoteBatches) -> None:
        """Record the results of a batch: for each call the first reply, or a failure if there is no reply."""
        attempts = self._batches.attempts(batch.label)
        open_, failed, answered = self._open(attempts), dict[str, ModelError](), set[str]()
        ends, size, again, unread, strange, unknown = list[End](), 0, 0, 0, 0, list[str]()
        try:
            for key, result in provider.results(remote):
                if not key:
                    unread += 1
                elif key not in attempts:
                    strange += 1
                    unknown = [*unknown, key[:64]][:3]
                elif key in answered or (isinstance(result, Reply) and key not in open_):
                    again += key in answered
                    answered.add(key)  # of those answered before this reading, the first comes as expected
                elif isinstance(result, Reply):
                    answered.add(key)
                    ends.append(End(open_.pop(key), "replied", reply=result))
                    size += len(result.raw or "")
                    if len(ends) == _ENDS_A_COMMIT or size > _CHARS_A_COMMIT:
                        self._commit(ends)
                        ends, size = [], 0
                else:
                    failed.setdefault(key, result)
        except ModelError as exc:
            if exc.retryable or exc.quota or not self._too_old(batch):
                raise
            self._give_up(batch, attempts, str(exc))
            return
        finally:
            self._commit(ends)  # when the file broke off, too: it is read again from its start, and these are ignored
        if not batch.certain and not (answered or failed):
            self._give_up(batch, attempts, f"batch {remote} belongs to another client")
            return
        last = ModelError("the batch ended without a result for this call", retryable=True)
        errors = ((attempt, failed.get(key, last)) for key, attempt in open_.items())
        self._fail([(attempt, str(error), error.retryable) for attempt, error in errors])
        words = [f"{len(attempts) - len(open_)} replies", f"{len(open_)} without one"]
        words += [f"{again} results arrived twice and were ignored"] if again else []
        words += [f"{strange} results for unknown calls were ignored (such as {', '.join(unknown)})"] if strange else []
        words += [f"{unread} lines could not be read"] if unread else []
        if len(words) > 2:
            self.notes.append(f"{_model(batch)}: batch {remote}: {'; '.join(words)}")
        self._end(batch, "ended", "; ".join(words))

    def _too_old(self, batch: Batch) -> bool:
        return self._batches.now() - batch.begun_at > _KEPT_S

    def _open(self, attempts: Mapping[str, Attempt]) -> dict[str, Attempt]:
        """The attempts whose call has no reply."""
        return {key: attempts[key] for key in self._ledger.pending(attempts)}

    def _refused(self, batch: Batch, reason: str, *, retryable: bool) -> None:
        """Record a batch that the provider refused. If others of its lane are open, it is tried again after them."""
        attempts = self._batches.attempts(batch.label)
        others = any(other.lane == batch.lane and other.label != batch.label for other in self._open_batches())
        if retryable and others:
            self._tries.subtract(attempts.keys())
        self._fail([(attempt, reason, retryable) for attempt in attempts.values()])
        self._end(batch, "refused", reason)
        if retryable and others:
            self._full.add(batch.lane)
        elif retryable:
            self._pause(batch.lane, self._poll_s)

    def _give_up(self, batch: Batch, attempts: Mapping[str, Attempt], reason: str) -> None:
        """Mark a batch as lost: no results will come, though it may have been paid."""
        open_ = self._open(attempts)
        self.lost += len(open_)
        self._end(batch, "lost", reason, lost=open_.values())
        for attempt in open_.values():
            self._requeue(attempt.key, reason, retryable=True)

    def _end(self, batch: Batch, status: BatchStatus, note: str, *, lost: Iterable[Attempt] = ()) -> None:
        self._batches.end(batch.label, status, note)
        self._batches.mark_lost(lost)
        self._full.discard(batch.lane)
        if self._leases is not None:
            self._leases.release(batch.label)
        self._say(f"{_model(batch)}: batch {batch.remote or batch.label} {status}: {note}")

    def _fail(self, failures: Iterable[tuple[Attempt, str, bool]]) -> None:
        """Record that attempts of a batch failed, and queue the retryable ones again."""
        ends: list[End] = []
        for attempt, reason, retryable in failures:
            final = not self._requeue(attempt.key, reason, retryable)
            ends.append(End(attempt, "failed", reason, final=final))
        self._commit(ends)

    def _requeue(self, key: str, reason: str, retryable: bool) -> bool:
        """Queue a call again if it has attempts left. Returns False if it failed for good; True for calls of others."""
        if key not in self._asked:
            return True
        if retryable and self._tries[key] < self._attempts:
            self._waiting[key] = None
            return True
        self._waiting.pop(key, None)
        self.failed[key] = Failure(key, self._asked[key].model, self._tries[key], reason)
        return False

    def _commit(self, ends: Sequence[End]) -> None:
        for start in range(0, len(ends), _ENDS_A_COMMIT):
            group = ends[start : start + _ENDS_A_COMMIT]
            self._ledger.commit(ends=group)
            replied = [end.attempt.key for end in group if end.reply is not None and end.attempt.key in self._asked]
            self.made += len(replied)
            for key in replied:
                self._waiting.pop(key, None)
            if replied and self._progress is not None:
                self._progress(self._already + self.made, len(self._asked))

    def _groups(self, lane: str, keys: Sequence[str]) -> Iterator[list[str]]:
        """Split the calls of a lane into batches; a call that the provider cannot take fails here."""
        provider = self._provider_of(lane, self._asked[keys[0]])
        if provider is None:
            return
        most, group, room = min(provider.most_items, self._most_items), list[str](), provider.most_bytes
        for key in keys:
            try:
                size = provider.size(key, self._asked[key])
            except ModelError as exc:
                self._requeue(key, str(exc), retryable=False)
                continue
            if group and (len(group) == most or size > room):
                yield group
                group, room = [], provider.most_bytes
            group.append(key)
            room -= size
        if group:
            yield group

    def _submit(self, lane: str, keys: Sequence[str]) -> None:
        label = f"assaymark-{token_hex(12)}"
        begins: list[tuple[str, int | None]] = [(key, None) for key in keys]
        if self._leases is not None:
            claims, _ = self._leases.claim(label, len(keys), _SUBMIT_LEASE_S, keys, self._since)
            begins = list(claims)
        begun = [attempt for attempt in self._batches.begin(label, lane, begins) if attempt] if begins else []
        for key in keys:  # those that others hold are theirs to answer
            del self._waiting[key]
        if not begins:
            return
        batch, provider = self._batches.batch(label), self._providers[lane]
        if not begun:
            self._end(batch, "lost", "others took all of its calls")
            return
        self._tries.update(attempt.key for attempt in begun)
        try:
            remote = provider.submit([(attempt.key, self._asked[attempt.key]) for attempt in begun], label=label)
        except ModelError as exc:
            if exc.retryable:
                self._pause(batch.lane, exc.retry_after or 0.0)
            if isinstance(exc, BatchRefused) and exc.retryable:
                self._refused(batch, f"the provider refused the batch: {exc}", retryable=True)
            elif exc.retryable:  # it may have arrived: it is searched, and nothing else is sent meanwhile
                self._full.add(batch.lane)
                self._report(batch, exc)
            else:
                if exc.quota:
                    self._report(batch, exc)
                    self._tries.subtract(attempt.key for attempt in begun)
                self._fail([(attempt, str(exc), exc.quota) for attempt in begun])
                self._end(batch, "refused", str(exc))
            return
        batch = self._batches.submitted(label, remote)
        self._lease(batch)
        self.submitted += 1
        self._say(f"{_model(batch)}: batch {remote} of {len(begun)} calls handed over")

    def _pause(self, lane: str, seconds: float) -> None:
        until = time.monotonic() + min(seconds, _LONGEST_WAIT_S)
        self._paused_until[lane] = max(until, self._paused_until.get(lane, 0.0))

    def _is_paused(self, lane: str) -> bool:
        return time.monotonic() < self._paused_until.get(lane, 0.0)

    def _lease(self, batch: Batch) -> None:
        """In a shared ledger, extend the lease on the calls of a batch so that no other worker sends them."""
        if self._leases is not None:
            self._leases.renew(batch.label, _LEASE_S)

    def _provider(self, batch: Batch) -> RemoteBatches | None:
        if batch.lane in self._providers:
            return self._providers[batch.lane]
        key = next(iter(self._batches.attempts(batch.label)), None)
        if key is None:
            raise LedgerError(f"{self._ledger.name}: batch {batch.label} has no calls; restore the call log")
        return self._provider_of(batch.lane, self._asked[key] if key in self._asked else self._ledger.call(key))

    def _provider_of(self, lane: str, like: CallSpec) -> RemoteBatches | None:
        name = provider_of(like.model)
        if lane not in self._providers:
            if name not in self._makers:
                self._halt(_account(lane), f"{name}: accepts no batches, but some are in progress; they are left alone")
                return None
            try:
                self._providers[lane] = self._makers[name](like)
            except ModelError as exc:
                self._halt(_account(lane), str(exc))
                return None
        return self._providers[lane]

    def _report(self, batch: Batch, exc: ModelError) -> None:
        if exc.quota or not exc.retryable:
            self._halt(_account(batch.lane), str(exc))
        else:
            self._say(f"{_model(batch)}: {exc}; checking again in {self._poll_s:g} s")

    def _halt(self, endpoint: str, reason: str) -> None:
        line = f"{reason}; {RESUME}"
        if self.halted.setdefault(endpoint, line) is line:
            self._say(line)


def _model(batch: Batch) -> str:
    return str(json.loads(batch.lane)[0])


def _account(lane: str) -> str:
    """The provider, address and key of a lane: a halt there stops the calls of every model served by it."""
    model, place = json.loads(lane)
    return canonical_json([provider_of(model), place])


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """Counts of a run of batches: ``planned = already + made + len(failed) + under_way + left``."""

    planned: int
    already: int
    made: int
    failed: tuple[Failure, ...]
    batches: int
    under_way: int
    paid_again_bound: int
    orphaned: int
    interrupted: bool
    notes: tuple[str, ...]
    stopped: tuple[str, ...]

    @property
    def left(self) -> int:
        """Calls that have no reply and are in no batch: the run was interrupted, or a provider stopped."""
        return self.planned - self.already - self.made - len(self.failed) - self.under_way


def run_batches(
    ledger: Ledger, calls: Iterable[CallSpec], providers: Mapping[str, BatchMaker], *, poll_s: float = 60.0,
    most_items: int = 10_000, attempts: int = 3, deadline_s: float | None = None, settle_s: float = 30.0,
    progress: Progress | None = None, say: Say | None = None,
) -> BatchSummary:  # fmt: skip
    """Send every call that has no reply yet in batches, and wait for the results.

    Batches of earlier runs are collected first. A call with a retryable failure, or one whose batch ended without a
    result for it, goes into the next batch (at most ``attempts`` times in this run). SIGINT and SIGTERM end the waiting
    only: batches stay open at their provider and the next run collects them. ``providers`` maps the part of a model's
    name before its first slash to a client for batches. ``poll_s`` is the time between two polls; after ``deadline_s``
    the function returns even if batches are open; a batch whose submission was cut off counts as never received after
    ``settle_s``. ``progress`` is called with ``(replied, planned)`` after each commit, ``say`` with a line for each
    event of a batch. Raises `UnknownNameError` if the provider of a call takes no batches and `LedgerError` if another
    run holds the ledger, both before anything is sent.
    """
    asked = {call.key: call for call in calls}
    for call in asked.values():
        if provider_of(call.model) not in providers:
            raise UnknownNameError("provider of batches", provider_of(call.model), list(providers))
    with ledger.exclusive(), ledger.batches.exclusive():
        ledger.check_structure()
        ledger.batches.prepare()
        orphaned = 0 if ledger.leases else len(ledger.mark_lost())
        ledger.plan(asked.values())
        pending = ledger.pending(asked)
        options = poll_s, most_items, attempts, deadline_s, settle_s
        run = BatchRun(ledger, asked, pending, providers, progress, say, *options)
        with on_signals(run.stop), closing(run):
            run.work()
    return BatchSummary(
        len(asked), len(asked) - len(pending), run.made, tuple(run.failed.values()), run.submitted, run.under_way(),
        run.lost, orphaned, run.interrupted, tuple(run.notes), tuple(run.halted.values()),
    )  # fmt: skip


def cancel_batches(ledger: Ledger, providers: Mapping[str, BatchMaker], *, say: Say | None = None) -> int:
    """Ask the providers to stop every open batch whose id is certain. Returns how many were stopped."""
    with (
        ledger.exclusive(),
        ledger.batches.exclusive(),
        closing(BatchRun(ledger, {}, [], providers, None, say)) as run,
    ):
        return run.cancel()
