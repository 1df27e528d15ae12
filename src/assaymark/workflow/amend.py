"""`assaymark amend`: change a locked plan in the open, before the judging or where no verdict can depend on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, PlanError, Problem
from assaymark.judging import PARSER, plan_calls
from assaymark.notebook import Told
from assaymark.protocol import parse_study
from assaymark.records import JSON
from assaymark.workflow.lock import Locked, check_plan, open_locked, probe_keys, stored_lock, write_plan
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import (
    Amendment,
    RunFolder,
    changed_fields,
    read_text,
    record_amendment,
    undo_unfinished,
    write_lock,
)
from assaymark.workflow.study_calls import Desk, of_people, parsed
from assaymark.workflow.tables import DECISIONS, JUDGMENTS, Store

AFTER_JUDGING: Final = ("title", "engine", "anchor_probe", "human.grades")
"""The parts of a plan that no verdict rests on, or that come after the judging: these may be changed even then."""


def amend(
    folder: RunFolder, study_text: str, source: str, *, reason: str, now: datetime,
    models: Mapping[str, Model] | None = None,
) -> Amendment:  # fmt: skip
    """Replace the locked plan of a run folder by another, and keep what was changed, when and why."""
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
    if asking_begun(folder, beside=probe_keys(locked.study)):
        _refuse_afterthoughts(folder, locked, fields, source)
    checked = check_plan(folder, study, source, models)
    digests = record_amendment(
        folder, locked.amendments, now=now, reason=reason.strip(), fields=fields | _parser_field(locked),
        before=locked.plan_hash, after=(checked.plan_hash, study_text),
    )  # fmt: skip
    write_plan(
        folder, study_text, checked, locked_at=locked.locked_at, amendments=digests, probes=locked.date_probes,
        preregistered=locked.preregistered,
    )  # fmt: skip
    return open_locked(folder).amendments[-1]


def amendment_lines(made: Amendment) -> list[str]:
    """What `assaymark amend` prints."""
    changes = []
    for name, part in made.fields.items():
        before, after = ("not set" if part[at] is None else part[at] for at in ("from", "to"))
        changes.append(f"{name}: {before} -> {after}")
    return [f"amendment {made.number} of {made.date}: {made.reason}", *changes, f"plan hash {made.plan_after}"]


@dataclass(frozen=True, slots=True, repr=False)
class Reparsed(Told):
    """What reading stored replies again came to: the amendment, and lines for whoever called."""

    amendment: Amendment
    lines: tuple[str, ...]


def reparse(folder: RunFolder, *, now: datetime, progress: Progress = silent) -> Reparsed:
    """Read the stored replies of judges again by this version's parser, and record that as an amendment."""
    locked, store = open_locked(folder), Store(folder)
    if not (fields := _parser_field(locked)):
        raise PlanError(f"{folder.path}: its replies were read by this version's parser ({PARSER}); nothing to reparse")
    if store.digest(JUDGMENTS) is None:
        raise PlanError(f"{folder.path}: nothing was judged yet; run: assaymark judge {folder.path}")
    before = {(one.judge, one.trajectory, one.trial) for one in store.read(JUDGMENTS) if one.status == "ok"}
    desk = Desk(folder, locked, {}, progress)
    planned = plan_calls(desk.decisions, {}, locked.study, locked.rubric, shown=desk.shown)
    with Ledger.open(folder.ledger, create=False) as ledger:
        found = parsed(planned, ledger, locked.rubric)
    digests = record_amendment(
        folder, locked.amendments, now=now, reason=f"replies are read by parser {PARSER} of this version",
        fields=fields, before=locked.plan_hash, after=(locked.plan_hash, read_text(folder.plan, "plan")),
    )  # fmt: skip
    write_lock(folder, {**stored_lock(folder), "amendments": list(digests), "parser": PARSER})
    locked = open_locked(folder)
    store.write(JUDGMENTS, [*found, *of_people(desk)], locked.reading)
    now_ok = {(one.judge, one.trajectory, one.trial) for one in found if one.status == "ok"}
    lost = sum(one.status != "ok" and (one.judge, one.trajectory, one.trial) in before for one in found)
    line = f"{len(found):,} replies reparsed: {len(now_ok - before):,} more have scores, {lost:,} lost theirs"
    again = f"run: assaymark judge {folder.path}, then measure, claim and report"
    return Reparsed(locked.amendments[-1], (line, again))


def _parser_field(locked: Locked) -> dict[str, dict[str, JSON]]:
    """That the replies of a run are read by another parser from now on."""
    return {} if locked.parser == PARSER else {"parser": {"from": locked.parser, "to": PARSER}}


def _refuse_afterthoughts(folder: RunFolder, locked: Locked, fields: Mapping[str, object], source: str) -> None:
    """No field that a verdict rests on may change once any agent or judge of the study has been asked."""
    study, store = locked.study, Store(folder)
    late = [name for name in fields if not f"{name}.".startswith(tuple(f"{part}." for part in AFTER_JUDGING))]
    judges = {judge.name: (f"judges.{judge.name}.model.", f"judges.{judge.name}.args.") for judge in study.model_judges}
    free = {judge for judge, parts in judges.items() if any(f"{name}.".startswith(parts) for name in late)}
    if free and store.digest(DECISIONS) is not None and folder.has_ledger:
        # Only a judge of whom no reply is usable may get another model or other arguments.
        desk = Desk(folder, locked, {}, silent)
        specs = [one for one in study.model_judges if one.name in free]
        planned = plan_calls(desk.decisions, {}, study, locked.rubric, judges=specs, shown=desk.shown)
        with Ledger.open(folder.ledger, create=False) as ledger:
            pending = set(ledger.pending([one.call.key for one in planned]))
            found = parsed([one for one in planned if one.call.key not in pending], ledger, locked.rubric)
        free -= {one.judge for one in found if one.status == "ok"}
    parts = tuple(part for judge in free for part in judges[judge])
    if late := [name for name in late if not f"{name}.".startswith(parts)]:
        begun = "asking" if study.agents else "judging"
        raise PlanError(
            f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
            f"only {', '.join(AFTER_JUDGING)} can still be amended, and the model and args of a judge that has no "
            "usable reply. Lock the new plan in a new run folder"
        )


def asking_begun(folder: RunFolder, *, beside: Collection[str] = ()) -> bool:
    """Whether any agent or judge of a run was asked; ``beside`` are the keys of calls that do not count."""
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(beside=beside)
