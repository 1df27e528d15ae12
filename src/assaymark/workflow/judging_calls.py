"""`assaymark judge`: every selected decision before every judge, and every number in its text against its material."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.engine import Ledger, Model, RunSummary, beside, run_calls
from assaymark.errors import LedgerError, ModelError
from assaymark.judging import PlannedCall, judgment, numeric_ledger, plan_calls
from assaymark.judging.evidence.material import Material
from assaymark.protocol import Study
from assaymark.records import Decision, Evidence, Judgment
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import Locked, open_locked
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.selection import select
from assaymark.workflow.tables import DECISIONS, EVIDENCE, JUDGMENTS, Store

_WORTH_A_PROCESS: Final = 300
"""Decisions from which on starting a process costs less than it saves."""


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What judging did: ``summary`` is None when everything was there already."""

    judgments: int
    evidence: int
    summary: RunSummary | None


def judge(folder: RunFolder, models: Mapping[str, Model], *, progress: Progress = silent) -> JudgeResult:
    """Grade every selected decision with every judge of the locked plan, and ledger its numbers.

    A call that has a reply in the ledger is never made again. Replies that do not parse are recorded as invalid.

    Raises
    ------
    ModelError
        Calls failed for good, or the run was asked to stop; what was answered is kept, and the same command goes on.
    """
    locked = open_locked(folder)
    store = Store(folder)
    basis: dict[str, str | None] = {"plan": locked.plan_hash}
    summary = None
    wanted = {table for table in (JUDGMENTS, EVIDENCE) if not store.done(table, basis)}
    if wanted:
        decisions = store.read(DECISIONS)
        both = wanted == {JUDGMENTS, EVIDENCE} and len(decisions) >= _WORTH_A_PROCESS
        with beside(ledger_of, folder, locked.study, processes=both) as evidence:
            if JUDGMENTS in wanted:
                # All decisions, so that the names of agents that the study leaves out are blinded as well.
                planned = plan_calls(decisions, store.contexts(), locked.study, locked.rubric)
                judgments, summary = _grade(folder, locked, planned, models, progress)
                store.write(JUDGMENTS, judgments, basis)
            if EVIDENCE in wanted:
                store.write(EVIDENCE, evidence(), basis)
    return JudgeResult(store.rows(JUDGMENTS), store.rows(EVIDENCE), summary)


def ledger_of(folder: RunFolder, study: Study) -> list[Evidence]:
    """The numeric evidence ledger of the decisions that a study is about; each context is indexed once."""
    store = Store(folder)
    shared: dict[str, list[Decision]] = defaultdict(list)
    for decision in select(store.read(DECISIONS), study).decisions:
        shared[decision.context_id].append(decision)
    found: list[Evidence] = []
    for name, context in store.each_context():
        if name in shared:
            material = Material.of(context)
            for decision in shared[name]:
                found += numeric_ledger(decision, context, material=material)
    return found


def _grade(
    folder: RunFolder,
    locked: Locked,
    planned: Sequence[PlannedCall],
    models: Mapping[str, Model],
    progress: Progress,
) -> tuple[list[Judgment], RunSummary]:
    engine = locked.study.engine
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
            progress=lambda done, total: progress("asking the judges", done, total),
        )
        _complete(summary, folder)
        return _parsed(planned, ledger, locked), summary


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


def _parsed(planned: Sequence[PlannedCall], ledger: Ledger, locked: Locked) -> list[Judgment]:
    replies = dict(ledger.replies([item.call.key for item in planned]))
    missing = sum(item.call.key not in replies for item in planned)
    if missing:
        raise LedgerError(f"{missing} replies that were recorded cannot be found in the ledger; it is damaged")
    return [judgment(item, replies[item.call.key], locked.rubric) for item in planned]
