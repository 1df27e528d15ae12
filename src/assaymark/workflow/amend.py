"""Changes of a locked plan, each on the record: `assaymark amend`, stored replies parsed again, and control texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from assaymark.agents.controls import CONTROL, cell_decisions
from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, PlanError, Problem, UnknownNameError
from assaymark.judging import PARSER
from assaymark.notebook import Note, Part, Result, Told
from assaymark.plan import toml_text
from assaymark.protocol import Study, parse_study
from assaymark.records import JSON, DerivationKind
from assaymark.text import clean
from assaymark.workflow import run_folder as runs
from assaymark.workflow.lock import STUDY, Locked, check_plan, open_locked, probe_calls, write_plan
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import Amendment, RunFolder
from assaymark.workflow.study_calls import JudgingSession, parsed
from assaymark.workflow.tables import CONTEXTS, DECISIONS, JUDGMENTS, Store

AFTER_JUDGING: Final = ("title", "engine", "anchor_probe", "human.grades")
"""The parts of a plan that no verdict rests on, or that come after the judging: these may be changed even then."""

KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "fact_flip")
"""Verbose and wrong, terse and right, and one number changed: controls that need no words from anybody."""

_SHOWN: Final = 4  # reasons that are said


def amend(
    folder: RunFolder, study_text: str, source: str, reason: str, now: datetime,
    models: Mapping[str, Model] | None = None,
) -> Amendment:  # fmt: skip
    """Replace the locked plan of a run folder by another, and keep what was changed, when and why."""
    if not reason.strip():
        raise InputError("--reason", [Problem("", "an amendment needs a reason that a reader can weigh (got none)")])
    if folder.lock.is_file():
        runs.undo_unfinished(folder, STUDY.stored(folder))
    locked = open_locked(folder)
    study = parse_study(study_text, source)
    fields = runs.changed_fields(locked.study, study)
    if not fields:
        raise PlanError(f"{source} is the plan that is locked in {folder.path}; there is nothing to amend")
    if study.substrate != locked.study.substrate:
        raise PlanError(
            f"{source}: the cycles are cut already, and [substrate] cannot be amended; use a new run folder"
        )
    if asking_begun(folder, beside={call.key for call in probe_calls(locked.study)}):
        # No field that a verdict rests on may change once any agent or judge of the study has been asked.
        old, store = locked.study, Store(folder)
        late = [name for name in fields if not f"{name}.".startswith(tuple(f"{part}." for part in AFTER_JUDGING))]
        judges = {
            judge.name: (f"judges.{judge.name}.model.", f"judges.{judge.name}.args.") for judge in old.model_judges
        }
        free = {judge for judge, parts in judges.items() if any(f"{name}.".startswith(parts) for name in late)}
        if free and store.digest(DECISIONS) is not None and folder.has_ledger:
            # Only a judge of whom no reply is usable may get another model or other arguments.
            desk = JudgingSession(folder, locked, {})
            specs = [one for one in old.model_judges if one.name in free]
            planned = desk.plan(locked.rubric, specs)
            with Ledger.open(folder.ledger, create=False) as ledger:
                pending = set(ledger.pending([one.call.key for one in planned]))
                found = parsed([one for one in planned if one.call.key not in pending], ledger)
            free -= {one.judge for one in found if one.status == "ok"}
        parts = tuple(part for judge in free for part in judges[judge])
        if late := [name for name in late if not f"{name}.".startswith(parts)]:
            begun = "asking" if old.agents else "judging"
            raise PlanError(
                f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
                f"only {', '.join(AFTER_JUDGING)} can still be amended, and the model and args of a judge that has no "
                "usable reply. Lock the new plan in a new run folder"
            )
    return _amended(folder, locked, study, study_text, source, models, fields | _parser_field(locked), reason, now)


def _amended(
    folder: RunFolder, locked: Locked, study: Study, text: str, source: str, models: Mapping[str, Model] | None,
    fields: Mapping[str, Mapping[str, JSON]], reason: str, now: datetime,
) -> Amendment:  # fmt: skip
    checked, earlier = check_plan(folder, study, source, models), locked.amendments
    after = (checked["plan_hash"], text)
    digests = runs.record_amendment(folder, earlier, now, reason.strip(), fields, locked.plan_hash, after)
    write_plan(folder, text, checked, locked.locked_at, locked.date_probes, digests, locked.preregistered)
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


def reparse(folder: RunFolder, now: datetime) -> Reparsed:
    """Read the stored replies of judges again by this version's parser, and record that as an amendment."""
    locked, store = open_locked(folder), Store(folder)
    if not (fields := _parser_field(locked)):
        raise PlanError(f"{folder.path}: its replies were read by this version's parser ({PARSER}); nothing to reparse")
    if store.digest(JUDGMENTS) is None:
        raise PlanError(f"{folder.path}: nothing was judged yet; run: assaymark judge {folder.path}")
    before = {
        (judgment.judge, judgment.trajectory, judgment.trial)
        for judgment in store.read(JUDGMENTS)
        if judgment.status == "ok"
    }
    desk = JudgingSession(folder, locked, {})
    planned = desk.plan(locked.rubric)
    with Ledger.open(folder.ledger, create=False) as ledger:
        found = parsed(planned, ledger)
    reason, after = f"replies are read by parser {PARSER} of this version", runs.read_text(folder.plan, "plan")
    plan = locked.plan_hash
    digests = runs.record_amendment(folder, locked.amendments, now, reason, fields, plan, (plan, after))
    runs.write_lock(folder, {**STUDY.stored(folder), "amendments": list(digests), "parser": PARSER})
    locked = open_locked(folder)
    store.write(JUDGMENTS, [*found, *desk.of_people()], locked.reading)
    now_ok = {(one.judge, one.trajectory, one.trial) for one in found if one.status == "ok"}
    lost = sum(one.status != "ok" and (one.judge, one.trajectory, one.trial) in before for one in found)
    line = f"{len(found):,} replies reparsed: {len(now_ok - before):,} more have scores, {lost:,} lost theirs"
    again = f"run: assaymark judge {folder.path}, then measure, claim and report"
    return Reparsed(locked.amendments[-1], (line, again))


def _parser_field(locked: Locked) -> dict[str, dict[str, JSON]]:
    """That the replies of a run are read by another parser from now on."""
    return {} if locked.parser == PARSER else {"parser": {"from": locked.parser, "to": PARSER}}


def asking_begun(folder: RunFolder, *, beside: Collection[str] = ()) -> bool:
    """Whether any agent or judge of a run was asked; ``beside`` are the keys of calls that do not count."""
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(beside=beside)


@dataclass(frozen=True, slots=True, repr=False)
class MadeControls(Result):
    """How many control texts were added, of each kind, and why others could not be made: reason to sources."""

    made: dict[DerivationKind, int]
    wanted: int
    sources: dict[DerivationKind, int]
    reasons: dict[DerivationKind, dict[str, int]]
    amendment: Amendment | None = None

    def _parts(self) -> Iterator[Part]:
        yield from (Note(clean(line)) for line in self.lines())

    def lines(self) -> Iterator[str]:
        """What `assaymark controls` prints."""
        for kind, count in self.made.items():
            of = "records" if kind == "fact_flip" else "contexts"
            yield f"{kind}: {count} of {self.wanted} made, from {self.sources[kind]} {of}"
            reasons = sorted(self.reasons[kind].items(), key=lambda item: (-item[1], item[0]))
            yield from (f"  {count} {of} gave none: {why}" for why, count in reasons[:_SHOWN])
            if len(reasons) > _SHOWN:
                yield f"  and {len(reasons) - _SHOWN} more reasons"
        if self.amendment is not None:
            yield f"amendment {self.amendment.number}: {self.amendment.reason}"
        elif there := [kind for kind, count in self.made.items() if count]:
            names = ", ".join(f'"{kind}"' for kind in ("honest", *there))
            yield f"have them judged: [records] derivations = [{names}] in the study, then lock it"


def make_controls(
    folder: RunFolder, now: datetime, count: int = 30, kinds: Sequence[str] = KINDS, seed: int = 0,
) -> MadeControls:  # fmt: skip
    """Add control texts to the imported records of a run, of which no judge was asked yet."""
    folder.require()
    runs.read_lock(folder)
    if unknown := [name for name in kinds if name not in KINDS]:
        raise UnknownNameError("kind of control", unknown[0], KINDS)
    if count < 1:
        raise InputError("--count", [Problem("", f"must be at least 1 (got {count})")])
    locked, store = open_locked(folder) if folder.lock.is_file() else None, Store(folder)
    if locked is not None and locked.study.substrate is not None:
        raise PlanError(f"{folder.path} makes its own records; its plan asks for controls with [controls]")
    if asking_begun(folder):
        raise PlanError(f"{folder.path}: judges were asked already; controls come before judging, in a new run folder")
    decisions = list(store.read(DECISIONS))
    if any(decision.agent.id == CONTROL for decision in decisions):
        raise PlanError(f"{folder.path} has controls already; import the records into a new run folder for others")
    honest = [decision for decision in decisions if decision.derivation.kind == "honest"]
    used = {one.context_id: one.cluster for one in sorted(honest, key=lambda one: one.record_id)}
    material = [(name, context, used[name]) for name, context in store.each_context(used)]
    found, made = list(decisions), MadeControls({}, count, {}, {})
    wanted = [kind for kind in KINDS if kind in kinds]
    for at, kind in enumerate(wanted):
        note("making controls", at, len(wanted))
        why: dict[str, str] = {}
        cells = cell_decisions(material, kind, count, seed, CONTROL, "plain", honest=honest, reasons=why)
        found += cells
        made.made[kind], made.sources[kind] = len(cells), len(honest if kind == "fact_flip" else material)
        made.reasons[kind] = dict(Counter(filter(None, why.values())))
    note("making controls", len(wanted), len(wanted))
    if len(found) == len(decisions):
        said = "; ".join(f"{kind}: {max(one, key=one.__getitem__)}" for kind, one in made.reasons.items() if one)
        raise InputError(str(folder.path), [Problem("", f"no control could be made from these records ({said})")])
    store.write(DECISIONS, found, {"contexts": store.content(CONTEXTS), "controls": "assaymark controls"})
    if locked is None:
        return made
    added, records = [kind for kind, one in made.made.items() if one], locked.study.records
    derivations = tuple(dict.fromkeys((*records.derivations, *added)))
    study = locked.study.model_copy(update={"records": records.model_copy(update={"derivations": derivations})})
    text, fields = toml_text(study.model_dump(mode="json", exclude_none=True)), runs.changed_fields(locked.study, study)
    reason = "controls made from the records: " + ", ".join(added)
    return replace(made, amendment=_amended(folder, locked, study, text, str(folder.plan), None, fields, reason, now))
