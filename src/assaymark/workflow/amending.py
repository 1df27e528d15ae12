"""`assaymark amend`: change a locked plan in the open, before the judging or where no verdict can depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, PlanError, Problem
from assaymark.protocol import Study, parse_study
from assaymark.records import content_id, to_json
from assaymark.workflow.amendments import FORMAT, Amendment, amendment_path, changed_fields
from assaymark.workflow.date_probes import probe_keys
from assaymark.workflow.folder import RunFolder, read_json, read_text, write_atomic, write_json
from assaymark.workflow.locking import Locked, check_plan, open_locked, stored_lock, write_plan
from assaymark.workflow.tables import JUDGMENTS, Store

AFTER_JUDGING: Final = ("title", "engine", "anchor_probe")
"""The parts of a plan that no verdict rests on: they may be changed when judgments are there already."""


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
    _undo_unfinished(folder)
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
    number = len(locked.amendments) + 1
    previous = locked.amendments[-1].digest if locked.amendments else ""
    raw = {
        "format": FORMAT,
        "number": number,
        "date": to_json(now),
        "reason": reason.strip(),
        "fields": fields,
        "plan_before": {"hash": locked.plan_hash, "text": read_text(folder.plan, "plan")},
        "plan_after": {"hash": checked.plan_hash, "text": study_text},
        "previous": previous,
    }
    write_json(amendment_path(folder, number), raw)
    digests = [*(one.digest for one in locked.amendments), content_id(raw)]
    write_plan(folder, study_text, checked, locked_at=locked.locked_at, amendments=digests, probes=locked.date_probes)
    return open_locked(folder).amendments[-1]


def amendment_lines(made: Amendment, locked: Locked) -> list[str]:
    """What `assaymark amend` prints."""
    changes = [f"{name}: {part['from']} -> {part['to']}" for name, part in made.fields.items()]
    return [f"amendment {made.number} of {made.date}: {made.reason}", *changes, f"plan hash {locked.plan_hash}"]


def _refuse_afterthoughts(folder: RunFolder, study: Study, fields: Mapping[str, object], source: str) -> None:
    """No field that a verdict rests on may change once any agent or judge of the study has been asked."""
    if not _asking_begun(folder, study):
        return
    late = [name for name in fields if name.split(".")[0] not in AFTER_JUDGING]
    if late:
        begun = "asking" if study.agents else "judging"
        raise PlanError(
            f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
            f"only {', '.join(AFTER_JUDGING)} can still be amended. Lock the new plan in a new run folder"
        )


def _asking_begun(folder: RunFolder, study: Study) -> bool:
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(beside=probe_keys(study))


def _undo_unfinished(folder: RunFolder) -> None:
    """Take back an amendment that was killed between its file and the lock."""
    if not folder.lock.is_file():
        return
    known = stored_lock(folder).get("amendments", [])
    path = amendment_path(folder, len(known) + 1)
    if path.is_file():
        before = read_json(path, "amendment")["plan_before"]
        if before["hash"] == stored_lock(folder)["plan_hash"]:
            write_atomic(folder.plan, before["text"])
        path.unlink()
