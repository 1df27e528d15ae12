"""`assaymark amend`: change a locked plan in the open, before the judging or where no verdict can depend on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, PlanError, Problem
from assaymark.protocol import Study, parse_study
from assaymark.workflow.amendments import Amendment, changed_fields, record_amendment, undo_unfinished
from assaymark.workflow.date_probes import probe_keys
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.locking import check_plan, open_locked, stored_lock, write_plan
from assaymark.workflow.tables import JUDGMENTS, Store

AFTER_JUDGING: Final = ("title", "engine", "anchor_probe", "human.grades")
"""The parts of a plan that no verdict rests on, or that come after the judging: these may be changed even then."""


def amend(
    folder: RunFolder,
    study_text: str,
    source: str,
    *,
    reason: str,
    now: datetime,
    models: Mapping[str, Model] | None = None,
) -> Amendment:
    """Replace the locked plan of a run folder by another, and keep what was changed, when and why.

    Before anything was judged every field may change, and each verdict says under which changed fields it was made.
    Afterwards a threshold, a test or a candidate claim would be chosen with the result in sight: that is refused.

    Raises
    ------
    PlanError
        Nothing is locked, nothing changed, or the judging has begun and a verdict would depend on the change.
    InputError
        No reason, or a study that is wrong; every problem at once.
    """
    if not reason.strip():
        raise InputError("--reason", [Problem("", "an amendment needs a reason that a reader can weigh (got none)")])
    if folder.lock.is_file():
        undo_unfinished(folder, stored_lock(folder))
    locked = open_locked(folder)
    study = parse_study(study_text, source=source)
    fields = changed_fields(locked.study, study)
    if not fields:
        raise PlanError(f"{source} is the plan that is locked in {folder.path}; there is nothing to amend")
    if study.substrate != locked.study.substrate:
        raise PlanError(
            f"{source}: the cycles are cut already, and [substrate] cannot be amended; use a new run folder"
        )
    _refuse_afterthoughts(folder, locked.study, fields, source)
    checked = check_plan(folder, study, source, models)
    digests = record_amendment(
        folder,
        locked.amendments,
        now=now,
        reason=reason.strip(),
        fields=fields,
        before=locked.plan_hash,
        after=(checked.plan_hash, study_text),
    )
    write_plan(
        folder,
        study_text,
        checked,
        locked_at=locked.locked_at,
        amendments=digests,
        probes=locked.date_probes,
        preregistered=locked.preregistered,
    )
    return open_locked(folder).amendments[-1]


def amendment_lines(made: Amendment) -> list[str]:
    """What `assaymark amend` prints."""
    shown = {
        name: ["not set" if part[at] is None else part[at] for at in ("from", "to")]
        for name, part in made.fields.items()
    }
    changes = [f"{name}: {before} -> {after}" for name, (before, after) in shown.items()]
    return [f"amendment {made.number} of {made.date}: {made.reason}", *changes, f"plan hash {made.plan_after}"]


def _refuse_afterthoughts(folder: RunFolder, study: Study, fields: Mapping[str, object], source: str) -> None:
    """No field that a verdict rests on may change once any agent or judge of the study has been asked."""
    if not asking_begun(folder, beside=probe_keys(study)):
        return
    late = [name for name in fields if not f"{name}.".startswith(tuple(f"{part}." for part in AFTER_JUDGING))]
    if late:
        begun = "asking" if study.agents else "judging"
        raise PlanError(
            f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
            f"only {', '.join(AFTER_JUDGING)} can still be amended. Lock the new plan in a new run folder"
        )


def asking_begun(folder: RunFolder, *, beside: Collection[str] = ()) -> bool:
    """Whether any agent or judge of a run was asked; ``beside`` are the keys of calls that do not count."""
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(beside=beside)
