"""Planned calls through the ledger and back as judgments: what every kind of judging does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assaymark.engine import Ledger, Model, RunSummary, run_calls
from assaymark.errors import LedgerError, ModelError
from assaymark.judging import PlannedCall, Rubric, judgment
from assaymark.protocol import EngineChoice
from assaymark.records import Judgment
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress


def grade(
    folder: RunFolder,
    planned: Sequence[PlannedCall],
    models: Mapping[str, Model],
    rubric: Rubric,
    engine: EngineChoice,
    *,
    what: str,
    progress: Progress,
) -> tuple[list[Judgment], RunSummary]:
    """Ask for every planned call that has no reply yet, and parse all replies strictly.

    Raises
    ------
    ModelError
        Calls failed for good, or the run was asked to stop; what was answered is kept, and the same command goes on.
    LedgerError
        A recorded reply cannot be found.
    """
    with Ledger.open(folder.ledger) as ledger:
        ledger.plan(item.call for item in planned)
        summary = run_calls(
            ledger,
            [item.call for item in planned],
            models,
            concurrency=engine.concurrency,
            deadline_s=engine.deadline_s,
            attempts=engine.attempts,
            backoff_s=engine.backoff_s,
            progress=lambda done, total: progress(what, done, total),
        )
        _complete(summary, folder)
        return _parsed(planned, ledger, rubric), summary


def _complete(summary: RunSummary, folder: RunFolder) -> None:
    """Stop here unless every call has its reply."""
    again = f"run it again to go on: assaymark judge {folder.path}"
    if summary.interrupted:
        raise ModelError(f"stopped as asked; every reply so far is kept. To go on: {again}", retryable=True)
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        raise ModelError(
            f"{len(summary.failed)} of {summary.planned} judge calls failed (first: {first.key[:12]}..., "
            f"{first.reason}); "
            f"every reply so far is kept, {again}",
            retryable=True,
        )


def _parsed(planned: Sequence[PlannedCall], ledger: Ledger, rubric: Rubric) -> list[Judgment]:
    replies = dict(ledger.replies([item.call.key for item in planned]))
    missing = sum(item.call.key not in replies for item in planned)
    if missing:
        raise LedgerError(f"{missing} replies that were recorded cannot be found in the ledger; it is damaged")
    return [judgment(item, replies[item.call.key], rubric) for item in planned]
