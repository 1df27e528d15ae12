"""Making calls: each is asked once, every attempt has a deadline, and whatever happens the ledger stays right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from assaymark.engine.budget import Purse
from assaymark.engine.calls import CallSpec, Model
from assaymark.engine.ledger import Ledger
from assaymark.engine.loop import on_own_loop
from assaymark.engine.queue import Listed, Planned, Shared, Work, sizes_of
from assaymark.engine.rate_limits import Limits, Patience
from assaymark.engine.run import Failure, Manner, Progress, Run, Told, Watch
from assaymark.errors import LedgerError, UnknownNameError

__all__ = ["Failure", "Progress", "RunSummary", "run_calls", "run_worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run did: ``planned = already + made + elsewhere + len(failed) + left``.

    ``in_flight_bound`` is how many calls can have been under way at once: after a hard kill no more than these are
    paid for a second time. ``orphaned`` counts the attempts that somebody had under way when it died. ``put_off``
    counts the attempts that a provider turned away with a time to wait. ``stopped`` has a line for each provider or
    model that was not asked to the end. ``elsewhere`` are the calls that other workers answered meanwhile.
    """

    planned: int
    already: int
    made: int
    failed: tuple[Failure, ...]
    retried: int
    interrupted: bool
    in_flight_bound: int
    orphaned: int
    put_off: int = 0
    stopped: tuple[str, ...] = ()
    elsewhere: int = 0

    @property
    def left(self) -> int:
        """Calls that were not tried to the end: the run was interrupted, a provider stopped, or others gave them up."""
        return self.planned - self.already - self.made - self.elsewhere - len(self.failed)


def run_calls(
    ledger: Ledger,
    calls: Iterable[CallSpec],
    models: Mapping[str, Model],
    *,
    concurrency: int = 64,
    deadline_s: float = 120.0,
    attempts: int = 4,
    backoff_s: float = 1.0,
    lease_s: float = 60.0,
    patience: Patience | None = None,
    limits: Mapping[str, Limits] | None = None,
    purse: Purse | None = None,
    progress: Progress | None = None,
    told: Told | None = None,
    watch: Watch | None = None,
) -> RunSummary:
    """Ask every call that has no reply yet, and write down what comes back.

    A call that fails in a way that may pass (`ModelError` with ``retryable``, or the deadline) is tried again after
    a pause that doubles; other failures are written down and the run goes on. A call that the provider turned away for
    good is answered by that: it has a reply that ended in ``refusal``, if a content filter said so, or if the model
    answers at least four calls for each that it turns away. A provider that asks to wait is not
    asked by anybody of this run until then, at most 300 seconds, and that counts as no failure. One that fails again
    and again, or has no money left, is not asked any more (`Patience`); the others are. SIGINT and SIGTERM let what is
    under way finish and start nothing new; a second signal acts as usual. It has an event loop of its own, and
    can be called inside of one, as in a notebook.

    Parameters
    ----------
    ledger : Ledger
        Where everything is written. A file is held exclusively meanwhile; in a database other workers may go through
        the same calls at the same time, and this returns when no call is left that anybody could still answer.
    calls : iterable of CallSpec
        What to ask. Calls with equal keys are one call.
    models : mapping of model name to Model
        Who answers; every ``call.model`` needs an entry.
    concurrency : int
        Calls under way at once, for each model (behind each address and key, where its calls name several).
    deadline_s : float
        Seconds that one attempt may take. A model that blocks the thread instead of awaiting cannot be stopped.
    attempts : int
        Most attempts at one call in this run.
    backoff_s : float
        Seconds before the second attempt, give or take half (fixed by the key), at most 300 later on.
    lease_s : float
        In a database: seconds until others ask what this run was asking when it died.
    patience : Patience, optional
        When to stop asking a provider; by default after 20 failures in a row and one more a minute later.
    limits : mapping of provider to Limits, optional
        Requests and tokens a minute, kept by all who work on this ledger together; see `provider_of` for the names.
    purse : Purse, optional
        What the calls may cost; when the next one does not fit any more, nothing is sent and ``stopped`` says so.
    progress : callable, optional
        Told ``(replied, planned)`` after each commit.
    told : callable, optional
        Told ``(model, reply)`` of each reply of this run when it is on the disk.
    watch : Watch, optional
        Which models are asked no further because nothing usable comes of it; without it, none.

    Raises
    ------
    PlanError
        There is a budget, and a call without a known price. Nothing was sent.
    UnknownNameError
        A call names a model that is not in ``models``. Nothing was sent.
    LedgerError
        Another run holds the ledger, or it cannot be written, or calls are in batches: they would be paid twice. What
        was committed is safe.
    Exception
        Whatever a model raised that is no `ModelError`: a defect. What was under way was finished and written down.
    """
    manner = Manner(
        concurrency=concurrency,
        deadline_s=deadline_s,
        attempts=attempts,
        backoff_s=backoff_s,
        lease_s=lease_s,
        patience=patience or Patience(),
        limits=limits or {},
    )
    with ledger.exclusive():
        with _looking_over(ledger):
            asked = {call.key: call for call in calls}
            _check_models(asked.values(), models)
            pending = {key: asked[key] for key in ledger.pending(asked)}
            _check_no_batches(ledger, pending)
        orphaned = _mark_lost(ledger)
        ledger.plan(pending.values())
        if purse is not None and pending:
            purse.check(pending.values())
            purse.begin(ledger)
        work: Work
        if ledger.leases is None:
            work = Listed(ledger, pending.items())
        else:
            work = Shared(ledger, ledger.leases, lease_s, sizes=sizes_of(pending.values()), calls=pending)
        already = len(asked) - len(pending)
        run = Run(
            ledger, work, manner, planned=len(asked), already=already, progress=progress, purse=purse, told=told,
            watch=watch,
        )  # fmt: skip
        if pending:
            on_own_loop(run.ask(models), run.interrupt)
            run.take_as_refusals()
        open_ = len(ledger.pending(pending)) if ledger.leases else 0
    return _summary(run, work, planned=len(asked), already=already, orphaned=orphaned, open_=open_)


def run_worker(
    ledger: Ledger,
    models: Mapping[str, Model],
    *,
    concurrency: int = 64,
    deadline_s: float = 120.0,
    attempts: int = 4,
    backoff_s: float = 1.0,
    lease_s: float = 60.0,
    patience: Patience | None = None,
    limits: Mapping[str, Limits] | None = None,
    purse: Purse | None = None,
    progress: Progress | None = None,
    told: Told | None = None,
) -> RunSummary:
    """Ask the calls that somebody else has planned, until none is left without a reply; see `run_calls`.

    Start as many of these as you like, on as many machines, with a ledger in a database. A ledger in a file has one
    at a time. Calls of a model that is not in ``models`` are left to others, and so is what others gave up while this
    worker was there. ``planned`` of the summary counts what had no reply at the start.
    """
    manner = Manner(
        concurrency=concurrency,
        deadline_s=deadline_s,
        attempts=attempts,
        backoff_s=backoff_s,
        lease_s=lease_s,
        patience=patience or Patience(),
        limits=limits or {},
    )
    with ledger.exclusive():
        with _looking_over(ledger):
            sizes = _sizes(ledger, models)
            _check_no_batches(ledger, None)
        orphaned = _mark_lost(ledger)
        work: Work
        if ledger.leases is None:
            work = Planned(ledger, sizes)
        else:
            work = Shared(ledger, ledger.leases, lease_s, sizes=sizes)
        planned = sum(sizes.values())
        if purse is not None and planned:
            purse.check(ledger.load([key for model in sizes for key in ledger.pending_of(model)[:1]], {}))
            purse.begin(ledger)
        run = Run(ledger, work, manner, planned=planned, already=0, progress=progress, purse=purse, told=told)
        if planned:
            on_own_loop(run.ask(models), run.interrupt)
            run.take_as_refusals()
        open_ = sum(_sizes(ledger, models).values()) if ledger.leases else 0
    return _summary(run, work, planned=planned, already=0, orphaned=orphaned, open_=open_)


@contextmanager
def _looking_over(ledger: Ledger) -> Iterator[None]:
    """Beside the work of the block, see that the ledger is sound: before anything is written or paid for.

    Once an opening: whoever asks a few calls at a time would else go over the whole of it for each of them.
    """
    if ledger.looked_over:
        yield
        return
    with ThreadPoolExecutor(1, "looking over") as thread:
        sound = thread.submit(ledger.check_structure)
        yield
        sound.result()
    ledger.looked_over = True


def _mark_lost(ledger: Ledger) -> int:
    """Mark what an earlier run left open; where workers share a ledger, it may be under way."""
    return 0 if ledger.leases else len(ledger.mark_lost())


def _check_no_batches(ledger: Ledger, keys: Collection[str] | None) -> None:
    """Refuse to ask what a provider has in a batch. Where workers share a ledger, leases keep them from it."""
    if ledger.leases is None:
        inside = {key for key, _ in ledger.batches.attempts_under_way()}
        if n := len(inside if keys is None else inside.intersection(keys)):
            advice = "collect the batches or cancel them first"
            raise LedgerError(f"{ledger.name}: {n} of the calls to be asked are in batches under way; {advice}")


def _sizes(ledger: Ledger, models: Mapping[str, Model]) -> dict[str, int]:
    return {model: n for model, n in ledger.pending_models().items() if model in models}


def _summary(run: Run, work: Work, *, planned: int, already: int, orphaned: int, open_: int) -> RunSummary:
    """``open_``: of the calls of this run, how many have no reply now; told where others answer some too."""
    return RunSummary(
        planned=planned,
        already=already,
        made=run.made,
        failed=tuple(run.failed),
        retried=run.retried,
        interrupted=run.interrupted,
        in_flight_bound=run.in_flight_bound,
        orphaned=work.lost if isinstance(work, Shared) else orphaned,
        put_off=run.put_off,
        stopped=run.stopped,
        elsewhere=max(0, planned - already - run.made - max(open_, len(run.failed))) if isinstance(work, Shared) else 0,
    )


def _check_models(calls: Iterable[CallSpec], models: Mapping[str, Model]) -> None:
    for name in {call.model for call in calls}:
        if name not in models:
            raise UnknownNameError("model", name, list(models))
