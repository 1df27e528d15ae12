"""Calls in batches, for studies whose plan asks for them: half the price, within a day."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.engine import CallSpec, Ledger, provider_of
from assaymark.engine.batching import BatchSummary, run_batches
from assaymark.engine.models.batches import batch_providers
from assaymark.errors import ModelError, StoppedError
from assaymark.protocol import EngineChoice
from assaymark.workflow.progress import Progress, saying


def ask_in_batches(
    ledger: Ledger, calls: Sequence[CallSpec], engine: EngineChoice, *, what: str, progress: Progress
) -> None:
    """Ask the calls whose provider takes batches in batches, and wait for them; the others are left to be asked alone.

    Raises
    ------
    ModelError
        Calls failed, are still with their provider, or a provider could not be asked to the end. Nothing of it is asked
        alone instead: that would cost twice as much without anybody having said so.
    StoppedError
        The waiting was asked to stop; the batches go on.
    """
    takers = batch_providers()
    batched = batched_calls(calls)
    if not batched:
        return
    say = saying(progress)
    if waiting := len(ledger.pending({call.key for call in batched})):
        say(
            f"{what}: {waiting:,} calls without a reply go in batches, looked at every {engine.batch_poll_s:g} s; this "
            "can take a day. Stop it whenever you like: the same command finds its batches again"
        )
    summary = run_batches(
        ledger,
        batched,
        takers,
        poll_s=engine.batch_poll_s,
        attempts=engine.attempts,
        progress=lambda done, total: progress(f"{what} in batches", done, total),
        say=say,
    )
    if waiting:
        say(f"{what}: {summary.made:,} replies collected from batches, {waiting - summary.made:,} calls without one")
    if problem := _unfinished(summary):
        raise StoppedError(problem) if summary.interrupted else ModelError(problem, retryable=True)


def batched_calls(calls: Sequence[CallSpec]) -> list[CallSpec]:
    """Those of ``calls`` whose provider takes batches."""
    takers = batch_providers()
    return [call for call in calls if provider_of(call.model) in takers]


def _unfinished(summary: BatchSummary) -> str | None:
    """Why not every batched call has its reply, in words; None if each has."""
    kept = "every reply so far is kept, and the same command collects the rest"
    if summary.stopped:
        return "; ".join(summary.stopped)
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        return f"{len(summary.failed)} calls in batches failed (first: {first.key[:12]}..., {first.reason}); {kept}"
    if summary.under_way or summary.left:
        return f"stopped waiting: {summary.under_way} calls are in batches that go on without us; {kept}"
    return None
