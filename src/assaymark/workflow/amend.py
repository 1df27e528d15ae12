"""`assaymark amend`: change a locked plan in the open, before the judging or where no verdict can depend on it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, PlanError, Problem
from assaymark.judging import PARSER, plan_calls
from assaymark.notebook import Told
from assaymark.protocol import parse_study
from assaymark.records import JSON
from assaymark.workflow.amendments import Amendment, changed_fields, record_amendment, undo_unfinished
from assaymark.workflow.lock import check_plan, open_locked, probe_keys, stored_lock, write_plan
from assaymark.workflow.run_folder import RunFolder, read_text, write_lock
from assaymark.workflow.study_calls import Desk, of_people, parsed
from assaymark.workflow.tables import DECISIONS, JUDGMENTS, Store
from assaymark.workflow.track import Progress, silent

if TYPE_CHECKING:
    from assaymark.workflow.lock import Locked


# Plans and choices written as TOML, so that a person can read and change them.


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT_FORM: Final = 0xFFFF  # the longest code that four digits hold


def toml_text(table: Mapping[str, Any]) -> str:
    """A table as a TOML document: in each table its own values come first, then the tables inside it."""
    return "\n".join(_lines(table, ())) + "\n"


def toml_value(value: object) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, (int, float)) else _quoted(str(value))


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"{_key(name)} = {toml_value(value)}" for name, value in table.items() if not _is_table(value)]
    for name, value in table.items():
        inner = (*path, _key(name))
        if isinstance(value, dict) and value:
            lines += ["", f"[{'.'.join(inner)}]", *_lines(value, inner)]
        elif _is_table(value) and isinstance(value, list):
            for item in value:
                lines += ["", f"[[{'.'.join(inner)}]]", *_lines(item, inner)]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A string on one line, with every character that cannot be seen written as its number."""
    return '"' + "".join(_numbered(char) if char in '"\\' or not char.isprintable() else char for char in text) + '"'


def _numbered(char: str) -> str:
    code = ord(char)
    if char in '"\\':
        return f"\\{char}"
    return f"\\u{code:04x}" if code <= _SHORT_FORM else f"\\U{code:08x}"


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
    _refuse_afterthoughts(folder, locked, fields, source)
    checked = check_plan(folder, study, source, models)
    fields |= _parser_field(locked)
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


@dataclass(frozen=True, slots=True, repr=False)
class Reparsed(Told):
    """What reading stored replies again came to: the amendment, and lines for whoever called."""

    amendment: Amendment
    lines: tuple[str, ...]


def reparse(folder: RunFolder, *, now: datetime, progress: Progress = silent) -> Reparsed:
    """Read the stored replies of judges again by this version's parser, and record that as an amendment."""
    locked, store = open_locked(folder), Store(folder)
    if not _parser_field(locked):
        raise PlanError(f"{folder.path}: its replies were read by this version's parser ({PARSER}); nothing to reparse")
    if store.digest(JUDGMENTS) is None:
        raise PlanError(f"{folder.path}: nothing was judged yet; run: assaymark judge {folder.path}")
    before = {(one.judge, one.trajectory, one.trial) for one in store.read(JUDGMENTS) if one.status == "ok"}
    desk = Desk(folder, locked, {}, progress)
    planned = plan_calls(desk.decisions, {}, locked.study, locked.rubric, shown=desk.shown)
    with Ledger.open(folder.ledger, create=False) as ledger:
        found = parsed(planned, ledger, locked.rubric)
    digests = record_amendment(
        folder,
        locked.amendments,
        now=now,
        reason=f"replies are read by parser {PARSER} of this version",
        fields=_parser_field(locked),
        before=locked.plan_hash,
        after=(locked.plan_hash, read_text(folder.plan, "plan")),
    )
    write_lock(folder, {**stored_lock(folder), "amendments": list(digests), "parser": PARSER})
    locked = open_locked(folder)
    store.write(JUDGMENTS, [*found, *of_people(desk)], locked.reading)
    changed = [
        one.status for one in found if (one.status == "ok") != ((one.judge, one.trajectory, one.trial) in before)
    ]
    gained = changed.count("ok")
    line = f"{len(found):,} replies reparsed: {gained:,} more have scores, {len(changed) - gained:,} lost theirs"
    again = f"run: assaymark judge {folder.path}, then measure, claim and report"
    return Reparsed(locked.amendments[-1], (line, again))


def _parser_field(locked: Locked) -> dict[str, dict[str, JSON]]:
    """That the replies of a run are read by another parser from now on."""
    return {} if locked.parser == PARSER else {"parser": {"from": locked.parser, "to": PARSER}}


def _refuse_afterthoughts(folder: RunFolder, locked: Locked, fields: Mapping[str, object], source: str) -> None:
    """No field that a verdict rests on may change once any agent or judge of the study has been asked."""
    study = locked.study
    if not asking_begun(folder, beside=probe_keys(study)):
        return
    late = [name for name in fields if not f"{name}.".startswith(tuple(f"{part}." for part in AFTER_JUDGING))]
    judges = {judge.name: (f"judges.{judge.name}.model.", f"judges.{judge.name}.args.") for judge in study.model_judges}
    asked = {judge for judge, parts in judges.items() if any(f"{name}.".startswith(parts) for name in late)}
    free = tuple(part for judge in asked - _usable(folder, locked, asked) for part in judges[judge])
    if late := [name for name in late if not f"{name}.".startswith(free)]:
        begun = "asking" if study.agents else "judging"
        raise PlanError(
            f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
            f"only {', '.join(AFTER_JUDGING)} can still be amended, and the model and args of a judge that has no "
            "usable reply. Lock the new plan in a new run folder"
        )


def _usable(folder: RunFolder, locked: Locked, judges: Collection[str]) -> set[str]:
    """Those of some judges that gave a usable reply to anything."""
    store = Store(folder)
    if not judges or store.digest(DECISIONS) is None or not folder.has_ledger:
        return set()
    desk = Desk(folder, locked, {}, silent)
    specs = [one for one in locked.study.model_judges if one.name in judges]
    planned = plan_calls(desk.decisions, {}, locked.study, locked.rubric, judges=specs, shown=desk.shown)
    with Ledger.open(folder.ledger, create=False) as ledger:
        pending = set(ledger.pending([one.call.key for one in planned]))
        found = parsed([one for one in planned if one.call.key not in pending], ledger, locked.rubric)
    return {one.judge for one in found if one.status == "ok"}


def asking_begun(folder: RunFolder, *, beside: Collection[str] = ()) -> bool:
    """Whether any agent or judge of a run was asked; ``beside`` are the keys of calls that do not count."""
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(beside=beside)
