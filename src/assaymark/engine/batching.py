"""Asking calls in batches: for half the price, within a day, and through any number of interruptions.

Every step is in the ledger before the next one is taken. A batch and its calls are written down before they are sent,
the id that the provider gives it before it is watched, and each result with the rules of all replies: no call has two.
So a run can end at any moment, even by a power cut, and the next one goes on from where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assaymark.engine.batch_run import BatchRun, Say, Terms
from assaymark.engine.calls import CallSpec
from assaymark.engine.ledger import Ledger
from assaymark.engine.loop import on_signals
from assaymark.engine.providers.batches import BatchMaker
from assaymark.engine.rate_limits import provider_of
from assaymark.engine.runner import Failure, Progress
from assaymark.errors import UnknownNameError

__all__ = ["BatchSummary", "cancel_batches", "run_batches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """What a run of batches did: ``planned = already + made + len(failed) + under_way + left``.

    ``batches`` is how many were handed over. ``under_way`` counts the calls that are in batches which their provider
    still works on: run again to collect them. ``paid_again_bound`` is how many calls at most were paid without a
    result, because their batch was lost; they are asked again. ``notes`` says what came that nobody asked for, and
    ``stopped`` has a line for each provider that could not be asked to the end.
    """

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
    ledger: Ledger,
    calls: Iterable[CallSpec],
    providers: Mapping[str, BatchMaker],
    *,
    poll_s: float = 60.0,
    most_items: int = 10_000,
    attempts: int = 3,
    deadline_s: float | None = None,
    settle_s: float = 30.0,
    progress: Progress | None = None,
    say: Say | None = None,
) -> BatchSummary:
    """Ask every call that has no reply yet in batches, and wait for what comes back.

    Batches of earlier runs are collected first. A call that fails in a way that may pass, or whose batch ends before
    its turn, is in the next batch. SIGINT and SIGTERM end the waiting, not the batches: they stay with their provider,
    and the next run collects them. Call it from outside any event loop.

    Parameters
    ----------
    ledger : Ledger
        Where everything is written. A file is held exclusively meanwhile; in a database others may go on asking.
    calls : iterable of CallSpec
        What to ask. Calls with equal keys are one call.
    providers : mapping of provider to maker
        Who takes batches, by the part of a model's name before its first slash; see `batch_providers`.
    poll_s : float
        Seconds between two looks at the batches.
    most_items : int
        Most calls in one batch; a provider may take fewer.
    attempts : int
        Most batches that one call is in during this run.
    deadline_s : float, optional
        Seconds after which it returns, whatever is still under way. Without it, it stays to the end.
    settle_s : float
        Seconds that a provider gets to show a batch whose submission was cut off, before it counts as never arrived.
    progress : callable, optional
        Told ``(replied, planned)`` after each commit.
    say : callable, optional
        Told in a line what happens to each batch.

    Raises
    ------
    UnknownNameError
        The provider of a call takes no batches. Nothing was sent.
    LedgerError
        Another run holds the ledger or its batches, or it cannot be written. What was committed is safe.
    ValueError
        A number is out of its range.
    """
    terms = Terms(poll_s=poll_s, most_items=most_items, attempts=attempts, deadline_s=deadline_s, settle_s=settle_s)
    asked = {call.key: call for call in calls}
    for call in asked.values():
        if provider_of(call.model) not in providers:
            raise UnknownNameError("provider of batches", provider_of(call.model), list(providers))
    with ledger.exclusive(), ledger.batches.alone():
        ledger.check_structure()
        ledger.batches.prepare()
        orphaned = 0 if ledger.leases else len(ledger.mark_lost())
        ledger.plan(asked.values())
        pending = ledger.pending(asked)
        run = BatchRun(ledger, asked, pending, providers, terms, progress=progress, say=say)
        with on_signals(run.stop), run:
            run.work()
    return BatchSummary(
        planned=len(asked),
        already=len(asked) - len(pending),
        made=run.made,
        failed=tuple(run.failed.values()),
        batches=run.submitted,
        under_way=run.under_way(),
        paid_again_bound=run.lost,
        orphaned=orphaned,
        interrupted=run.interrupted,
        notes=tuple(run.notes),
        stopped=tuple(run.halted.values()),
    )


def cancel_batches(ledger: Ledger, providers: Mapping[str, BatchMaker], *, say: Say | None = None) -> int:
    """Ask the providers to stop every batch under way. What is done is paid: run again to collect it.

    A batch whose id was guessed at is left alone, since it may be somebody else's.

    Returns
    -------
    int
        How many were stopped.
    """
    with ledger.exclusive(), ledger.batches.alone():
        run = BatchRun(ledger, {}, [], providers, Terms(), say=say)
        with run:
            return run.cancel()
