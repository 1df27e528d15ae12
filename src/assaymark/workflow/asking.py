"""Calls through the ledger of a run folder: every one has its reply, or the work stops here and can go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assaymark.engine import CallSpec, Ledger, Model, Reply, RunSummary, run_calls
from assaymark.errors import ModelError
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.progress import Progress


def ask(
    folder: RunFolder,
    calls: Sequence[CallSpec],
    models: Mapping[str, Model],
    *,
    judge: str,
    what: str,
    progress: Progress,
) -> dict[str, Reply]:
    """The replies to one judge's calls by key, asking only for those that the ledger does not have.

    Raises
    ------
    ModelError
        Calls failed for good, or the run was asked to stop.
    """
    with Ledger.open(folder.ledger) as ledger:
        ledger.plan(calls)
        summary = run_calls(
            ledger, calls, models, progress=lambda done, total: progress(f"{what} {judge}", done, total)
        )
        require_all(summary, judge, folder)
        return dict(ledger.replies([call.key for call in calls]))


def require_all(summary: RunSummary, judge: str, folder: RunFolder) -> None:
    """Stop here unless every call of a judge has its reply.

    Raises
    ------
    ModelError
        Calls failed for good, or the run was asked to stop; says which came first, and that replies are kept.
    """
    kept = f"every reply so far is kept in {folder.path}, and the same command goes on"
    if summary.interrupted:
        raise ModelError(f"stopped as asked; {kept}", retryable=True)
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        failed = f"{len(summary.failed)} of {summary.planned} calls of {judge} failed"
        raise ModelError(f"{failed} (first: {first.key[:12]}..., {first.reason}); {kept}", retryable=True)
