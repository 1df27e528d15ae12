"""One ledger for several machines: naming its database in a run folder, and working on its plan from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from assaymark.encoding import write_atomic
from assaymark.engine import Ledger, Model, RunSummary, run_worker
from assaymark.errors import InputError, PlanError, Problem
from assaymark.protocol import EngineChoice
from assaymark.workflow.ask import purse_of, run_options, stored_run_options
from assaymark.workflow.lock import open_locked
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import Amendment, RunFolder, anchor_lock

_PLAN: Final = "plan"


class LockedPlan(Protocol):
    """A locked study, season or benchmark, as far as its ledger has to know it."""

    @property
    def plan_hash(self) -> str:
        """Of the plan as it is."""
        ...

    @property
    def amendments(self) -> Sequence[Amendment]:
        """How it came to be so."""
        ...


def name_ledger(folder: RunFolder, url: str) -> None:
    """Let a run folder keep its ledger in a database from the start. Naming the same one again changes nothing."""
    if check_ledger_name(folder, url):
        with Ledger.open(url):
            write_atomic(folder.ledger_url, url + "\n")


def check_ledger_name(folder: RunFolder, url: str) -> bool:
    """Whether `name_ledger` has anything left to write; raises as it does, but looks at no database."""
    problem = ""
    try:
        parsed = sa.make_url(url)
        if parsed.password or "password" in parsed.query:
            problem = "must not hold a password, it would be written down; set PGPASSWORD, or use a .pgpass file"
    except ArgumentError:
        problem = "is no URL of a database (not shown: it may hold a password)"
    if problem:
        raise InputError("--ledger", [Problem("", problem)])
    if folder.has_ledger and folder.ledger != url:
        raise PlanError(f"{folder.path} has its ledger elsewhere already ({folder.ledger}); use a new run folder")
    return not folder.has_ledger


def hold_ledger(folder: RunFolder, ledger: Ledger, locked: LockedPlan) -> None:
    """Before calls: anchor the lock, and see that a shared ledger is of this plan, which an amended one still is."""
    if ledger.leases is not None:
        plan = locked.amendments[0].plan_before if locked.amendments else locked.plan_hash
        held = ledger.notes.leave(_PLAN, plan)
        if held != plan:
            raise PlanError(
                f"{ledger.name} holds the calls of another plan ({held[:12]}..., this one is {plan[:12]}...); "
                "one ledger is for one plan: name another database, or another schema of it"
            )
    anchor_lock(folder, ledger)


def work(where: RunFolder | str, models: Mapping[str, Model], *, progress: Progress = silent) -> RunSummary:
    """Answer planned calls of a shared ledger until none is left that could be answered here."""
    folder = None if isinstance(where, str) else where
    locked = None if folder is None else open_locked(folder)
    with Ledger.open(where if isinstance(where, str) else where.ledger, create=False) as ledger:
        if folder is not None and locked is not None:
            hold_ledger(folder, ledger, locked)
        engine = stored_run_options(ledger) or (locked.study.engine if locked is not None else None)
        if engine is None and ledger.pending_models():
            raise PlanError(
                f"{ledger.name} does not say how its calls are to be asked, and with which limits: no run has begun to "
                "ask them; start the run, or name its run folder"
            )
        return run_worker(
            ledger, models, purse=purse_of(models),
            progress=lambda done, total: progress("answering calls", done, total),
            **run_options(engine or EngineChoice()),
        )  # fmt: skip


def work_lines(summary: RunSummary) -> list[str]:
    """What `assaymark worker` prints."""
    counts = f"{summary.elsewhere} by others, {len(summary.failed)} failed, {summary.left} left"
    lines = [f"{summary.made} calls answered here, {counts}"]
    if summary.failed:
        first = min(summary.failed, key=lambda failure: failure.key)
        lines.append(f"first failure: {first.key[:12]}..., {first.reason}")
    return [*lines, *summary.stopped]
