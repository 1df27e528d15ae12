"""Recorded changes of a locked plan: amendments, stored replies parsed again, control texts, and rules of version 2."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from assaymark.agents.controls import CONTROL, cell_decisions
from assaymark.benchmark.plan import BenchPlan, bench_hash, parse_plan
from assaymark.claims.season_plan import Season, read_recorded, season_hash
from assaymark.engine import Ledger, Model
from assaymark.errors import InputError, LedgerError, PlanError, UnknownNameError
from assaymark.judging import PARSER, rubric_of
from assaymark.notebook import CommandResult
from assaymark.plan import REPLACED, BiasRules, Frozen, MissingLimits, OrderRules, read_toml, toml_text, toml_value
from assaymark.protocol import Study, parse_study
from assaymark.records import JSON, DerivationKind, content_id, sha256_text, write_atomic
from assaymark.workflow import run_folder as runs
from assaymark.workflow.lock import (
    STUDY,
    Locked,
    check_plan,
    locked_tables,
    open_locked,
    probe_calls,
    study_lock,
    texts_of,
    write_plan,
)
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import Amendment, RunFolder
from assaymark.workflow.study_calls import JudgingSession, parse_judgments
from assaymark.workflow.tables import CONTEXTS, DECISIONS, JUDGMENTS, MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.tracks.benchmark_measure import rationale_study
from assaymark.workflow.tracks.benchmark_plan import BENCHMARK, texts_of_stages
from assaymark.workflow.tracks.season_lock import find_season, season_lock, season_of, synthetic_digest
from assaymark.workflow.tracks.season_lock import text_digests as season_texts

AFTER_JUDGING: Final = ("title", "engine", "anchor_probe", "human.grades")
"""The parts of a plan that do not affect verdicts, or apply after judging: they may be amended at any time."""

KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "fact_flip")
"""The kinds of control made without a model: verbose but wrong, terse but right, and one number changed."""

_SHOWN: Final = 4  # reasons that are printed


def amend(
    folder: RunFolder, study_text: str, source: str, reason: str, now: datetime,
    models: Mapping[str, Model] | None = None,
) -> Amendment:  # fmt: skip
    """Replace the locked plan of a run folder, and record as an amendment which fields changed, when and why."""
    if not reason.strip():
        raise InputError("--reason", ["an amendment needs a reason that a reader can weigh (got none)"])
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
    if asking_begun(folder, apart_from={call.key for call in probe_calls(locked.study)}):
        # No field that affects verdicts may change once any agent or judge of the study was called.
        old, store = locked.study, Store(folder)
        late = [name for name in fields if not f"{name}.".startswith(tuple(f"{part}." for part in AFTER_JUDGING))]
        judges = {
            judge.name: (f"judges.{judge.name}.model.", f"judges.{judge.name}.args.") for judge in old.model_judges
        }
        free = {judge for judge, parts in judges.items() if any(f"{name}.".startswith(parts) for name in late)}
        if free and store.digest(DECISIONS) is not None and folder.has_ledger:
            # Only a judge without any usable reply may get another model or other arguments.
            session = JudgingSession(folder, locked, {})
            specs = [judge for judge in old.model_judges if judge.name in free]
            planned = session.plan(locked.rubric, specs)
            with Ledger.open(folder.ledger, create=False) as ledger:
                pending = set(ledger.pending([call.call.key for call in planned]))
                judgments = parse_judgments([call for call in planned if call.call.key not in pending], ledger)
            free -= {judgment.judge for judgment in judgments if judgment.status == "ok"}
        parts = tuple(part for judge in free for part in judges[judge])
        if late := [name for name in late if not f"{name}.".startswith(parts)]:
            begun = "asking" if old.agents else "judging"
            raise PlanError(
                f"{source}: the {begun} has begun, and {', '.join(late)} would be chosen with the result in sight; "
                f"only {', '.join(AFTER_JUDGING)} can still be amended, and the model and args of a judge that has no "
                "usable reply. Lock the new plan in a new run folder"
            )
    return _apply(folder, locked, study, study_text, source, models, fields | _parser_field(locked), reason, now)


def _apply(
    folder: RunFolder, locked: Locked, study: Study, text: str, source: str, models: Mapping[str, Model] | None,
    fields: Mapping[str, Mapping[str, JSON]], reason: str, now: datetime,
) -> Amendment:  # fmt: skip
    checked, earlier = check_plan(folder, study, source, models), locked.amendments
    after = (checked["plan_hash"], text)
    digests = runs.record_amendment(folder, earlier, now, reason.strip(), fields, locked.plan_hash, after)
    write_plan(folder, text, checked, locked.locked_at, locked.date_probes, digests, locked.preregistered)
    return open_locked(folder).amendments[-1]


def amendment_lines(change: Amendment) -> list[str]:
    """Return the lines that `assaymark amend` prints: number, date, reason, changed fields, new plan hash."""
    changes = []
    for name, part in change.fields.items():
        before, after = ("not set" if part[at] is None else part[at] for at in ("from", "to"))
        changes.append(f"{name}: {before} -> {after}")
    return [f"amendment {change.number} of {change.date}: {change.reason}", *changes, f"plan hash {change.plan_after}"]


def reparse(folder: RunFolder, now: datetime) -> CommandResult[Amendment]:
    """Parse the stored replies of judges with this version's parser, and record that as an amendment."""
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
    session = JudgingSession(folder, locked, {})
    planned = session.plan(locked.rubric)
    with Ledger.open(folder.ledger, create=False) as ledger:
        judged = parse_judgments(planned, ledger)
    reason, after = f"replies are read by parser {PARSER} of this version", runs.read_text(folder.plan, "plan")
    plan = locked.plan_hash
    digests = runs.record_amendment(folder, locked.amendments, now, reason, fields, plan, (plan, after))
    runs.write_lock(folder, {**STUDY.stored(folder), "amendments": list(digests), "parser": PARSER})
    locked = open_locked(folder)
    store.write(JUDGMENTS, [*judged, *session.human_judgments()], locked.reading)
    now_ok = {(judgment.judge, judgment.trajectory, judgment.trial) for judgment in judged if judgment.status == "ok"}
    lost = sum(grade.status != "ok" and (grade.judge, grade.trajectory, grade.trial) in before for grade in judged)
    line = f"{len(judged):,} replies reparsed: {len(now_ok - before):,} more have scores, {lost:,} lost theirs"
    again = f"run: assaymark judge {folder.path}, then measure, claim and report"
    return CommandResult(locked.amendments[-1], (line, again))


def _parser_field(locked: Locked) -> dict[str, dict[str, JSON]]:
    """The change of parser as a field of an amendment; empty if the run uses this version's parser already."""
    return {} if locked.parser == PARSER else {"parser": {"from": locked.parser, "to": PARSER}}


def asking_begun(folder: RunFolder, *, apart_from: Collection[str] = ()) -> bool:
    """True if any agent or judge of a run was called; calls with a key in ``beside`` do not count."""
    if Store(folder).digest(JUDGMENTS) is not None:
        return True
    if not folder.has_ledger:
        return False
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.begun(apart_from=apart_from)


def make_controls(
    folder: RunFolder, now: datetime, count: int = 30, kinds: Sequence[str] = KINDS, seed: int = 0,
) -> CommandResult[dict[str, JSON]]:  # fmt: skip
    """Add control texts to the imported records of a run before any judge is called.

    Returns the counts made by kind, and by kind and reason how many sources gave no control.
    """
    folder.require()
    runs.read_lock(folder)
    if unknown := [name for name in kinds if name not in KINDS]:
        raise UnknownNameError("kind of control", unknown[0], KINDS)
    if count < 1:
        raise InputError("--count", [f"must be at least 1 (got {count})"])
    locked, store = open_locked(folder) if folder.lock.is_file() else None, Store(folder)
    if locked is not None and locked.study.substrate is not None:
        raise PlanError(f"{folder.path} makes its own records; its plan asks for controls with [controls]")
    if asking_begun(folder):
        raise PlanError(f"{folder.path}: judges were asked already; controls come before judging, in a new run folder")
    decisions = list(store.read(DECISIONS))
    if any(decision.agent.id == CONTROL for decision in decisions):
        raise PlanError(f"{folder.path} has controls already; import the records into a new run folder for others")
    honest = [decision for decision in decisions if decision.derivation.kind == "honest"]
    used = {record.context_id: record.cluster for record in sorted(honest, key=lambda record: record.record_id)}
    material = [(name, context, used[name]) for name, context in store.each_context(used)]
    result, wanted, lines = list(decisions), [kind for kind in KINDS if kind in kinds], list[str]()
    made, sources, reasons = dict[str, int](), dict[str, int](), dict[str, dict[str, int]]()
    for at, kind in enumerate(wanted):
        note("making controls", at, len(wanted))
        causes: dict[str, str] = {}
        cells = cell_decisions(material, kind, count, seed, CONTROL, "plain", honest=honest, reasons=causes)
        result += cells
        made[kind], reasons[kind] = len(cells), dict(Counter(filter(None, causes.values())))
        inputs, noun = (honest, "records") if kind == "fact_flip" else (material, "contexts")
        sources[kind] = len(inputs)
        lines.append(f"{kind}: {made[kind]} of {count} made, from {sources[kind]} {noun}")
        ranked = sorted(reasons[kind].items(), key=lambda item: (-item[1], item[0]))
        lines += [f"  {times} {noun} gave none: {reason}" for reason, times in ranked[:_SHOWN]]
        lines += [f"  and {len(ranked) - _SHOWN} more reasons"] if len(ranked) > _SHOWN else []
    note("making controls", len(wanted), len(wanted))
    if len(result) == len(decisions):
        why_not = "; ".join(f"{kind}: {max(count, key=count.__getitem__)}" for kind, count in reasons.items() if count)
        raise InputError(str(folder.path), [f"no control could be made from these records ({why_not})"])
    store.write(DECISIONS, result, {"contexts": store.content(CONTEXTS), "controls": "assaymark controls"})
    value: dict[str, JSON] = {"made": made, "wanted": count, "sources": sources, "reasons": reasons, "amendment": None}
    added = [kind for kind, n in made.items() if n]
    if locked is None:
        names = ", ".join(f'"{kind}"' for kind in ("honest", *added))
        lines.append(f"have them judged: [records] derivations = [{names}] in the study, then lock it")
        return CommandResult(value, tuple(lines))
    records = locked.study.records
    derivations = tuple(dict.fromkeys((*records.derivations, *added)))
    study = locked.study.model_copy(update={"records": records.model_copy(update={"derivations": derivations})})
    text, fields = toml_text(study.model_dump(mode="json", exclude_none=True)), runs.changed_fields(locked.study, study)
    reason = "controls made from the records: " + ", ".join(added)
    value["amendment"] = amendment = _apply(folder, locked, study, text, str(folder.plan), None, fields, reason, now)
    return CommandResult(value, (*lines, f"amendment {amendment.number}: {amendment.reason}"))


# --- Runs of version 1, and the rules of version 2 --------------------------------------------------------------------


ASIDE: Final = "version-1"
"""The folder below a run for the measurements and verdicts of version 1, which no page shows."""

_REASON: Final = "The rules for rankings are those of version 2, because those of version 1 published false rankings."
_SEEN: Final = "Scores of this run had been seen, so its claims are not preregistered."
_UNSEEN: Final = "No model had been called."

_NEW: Final[Mapping[str, tuple[str, ...]]] = {
    "inference": ("test", "aggregate_share", "margin", "cluster_order"),
    "claims": ("length", "distinct", "judges", "within"), "missing": ("per_judge", "per_agent", "on_excess"),
    "human": ("grades", "sample", "pass", "double"),
}  # fmt: skip
"""The fields of a study that version 1 did not have. Its seasons and benchmarks had none of these tables."""

_NEW_IN: Final[Mapping[str, tuple[str, ...]]] = {"calendar": ("late_after_h",)}
"""The fields that version 1 did not have in other tables of a season."""

_PROMPTS: Final[Mapping[str, str]] = {
    "season-v1.txt": "4dc1ac823a4a6a1d2f7df582b9676401d1c4f8bfb4d4299fd49bb352ea28b858",
    "horizon-v1.txt": "6f8d39a1baec2feb0b66a5af4baec90e48f18d4b406393fa653a9c4e10ec49d1",
}
_SCORING: Final[Mapping[str, str]] = {
    "v0.3": "3a7e59d481b67e9fe74fd176f74459666ae64bb675963218667f42e5265516e4",
    "v0.4": "af4da23fbed872fd1d8a4418b9c6bbc89ef4d426ab9a5436b51de231e754a2ad",
}
"""Digests of those prompts and scoring plans of a season that were changed since version 1, as it had them."""

_OLD: Final[Mapping[str, Any]] = {
    "inference.gating_test": "auto", "inference.share_alpha": True, "claims.rankings": True,
}  # fmt: skip
"""The fields of a study that were removed in version 2, with their defaults."""

_WRITTEN: Final[Mapping[str, dict[str, Any]]] = {
    "inference": OrderRules().model_dump(mode="json", exclude={"alpha"}, exclude_none=True),
    "claims": BiasRules().model_dump(mode="json"), "missing": MissingLimits().model_dump(mode="json"),
}  # fmt: skip
"""The fields that are written into every renewed plan, so that its file states the rules for rankings."""

_HEADER: Final = re.compile(r"\s*\[+([^\]]+)\]")
_KEY: Final = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")

Renewed = tuple[Mapping[str, Any], Frozen, str, str, Mapping[str, Any]]
"""A plan of version 1 and its renewal: old fields, new plan, new text, old plan hash, new lock."""


def open_version_1(folder: RunFolder) -> Locked:
    """Open the study of a run folder of version 1, for exporting its calls and replies only."""
    folder.require()
    stored = _lock_1(folder)
    if stored["format"] != "assaymark lock 1":
        raise PlanError(f"{folder.path} contains no study; judges' logs need one")
    text, source = runs.read_text(folder.plan, "plan"), str(folder.plan)
    study = parse_study(renewed_text(text, source), source)
    _require_unchanged(folder, stored, _study_1(folder, stored, study, text, source)[1])
    return Locked(
        study, rubric_of(study.rubric), stored["plan_hash"], stored["locked_at"], stored["preflight"],
        runs.read_amendments(folder, stored.get("amendments", ())), tuple(stored.get("date_probes", ())),
    )  # fmt: skip


def _lock_1(folder: RunFolder) -> Mapping[str, Any]:
    """Read the lock of a run folder of version 1; raises `PlanError` for any other folder."""
    if not folder.lock.is_file():
        raise PlanError(f"{folder.path} has no locked plan, and so no rules that could be amended")
    if not runs.is_version_1(folder):
        raise PlanError(f"{folder.path} is locked under the rules of version 2 already; there is nothing to amend")
    stored = runs.read_json(folder.lock, "lock")
    if not isinstance(stored, dict) or not isinstance(stored.get("plan_hash"), str):
        raise LedgerError(f"{folder.lock} is damaged: it names no plan")
    return stored


def _require_unchanged(folder: RunFolder, stored: Mapping[str, Any], made_hash: str) -> None:
    """Raise `PlanError` if a plan was edited after its lock: an edit must not enter together with the new rules."""
    if made_hash != stored["plan_hash"]:
        raise PlanError(
            f"{folder.plan} was edited after the lock (plan hash {made_hash[:12]}..., locked "
            f"{stored['plan_hash'][:12]}...), or the texts of this version differ from those of 0.1; restore the plan, "
            "or lock it in a new run folder"
        )


def adopt_rules(folder: RunFolder, now: datetime) -> runs.Amendment:
    """Put a run of version 1 under the rules of version 2, and record that as an amendment of its plan."""
    stored = _lock_1(folder)
    runs.undo_unfinished(folder, stored)
    text, source = runs.read_text(folder.plan, "plan"), str(folder.plan)
    renewed, inputs = renewed_text(text, source), dict(stored.get("inputs", {}))
    if stored["format"] == "assaymark season lock 1":
        season = season_of(renewed, stored, source)
        recorded = find_season(folder, read_recorded(renewed, source), source) if season.recorded else None
        before, digests = _without_new(season), season_texts(season)
        hash_before = content_id({"season": _hashed_fields(before), "texts": texts_of_1(season), "inputs": inputs})
        # Whoever opens the season next checks that its market is the one that it was locked on.
        if season.market.source == "synthetic":
            inputs["market"] = synthetic_digest(season.market)  # names the program that generates it, not its prices
        if recorded is not None and recorded.digest != inputs["market"]:
            raise PlanError(f"{folder.path}: its records changed after the lock; restore them")
        fingerprint = season_hash(season, digests, inputs)
        lock = season_lock(season, fingerprint, stored["locked_at"], inputs, stored["universe"], recorded)
        return _adopt(folder, stored, (before, season, renewed, hash_before, lock), now)
    if stored["format"] == "assaymark lock 1":
        return _adopt(folder, stored, _renew_study(folder, stored, text, source, renewed), now)
    plan = parse_plan(renewed, source)
    before, texts = _without_new(plan), texts_of_stages()
    lock = BENCHMARK.new_lock(bench_hash(plan, texts, inputs), stored["locked_at"], inputs=inputs)
    hash_before = content_id({"plan": _hashed_fields(before), "texts": texts, "inputs": inputs})
    _require_unchanged(folder, stored, hash_before)
    if runs.is_version_1(within := folder.rationales):
        # The plan of its panel, a study of its own, is generated from that of the benchmark.
        panel = _lock_1(within)
        runs.undo_unfinished(within, panel)
        panel_text, panel_source = runs.read_text(within.plan, "plan"), str(within.plan)
        _adopt(within, panel, _renew_study(within, panel, panel_text, panel_source, rationale_study(plan)), now)
    return _adopt(folder, stored, (before, plan, renewed, hash_before, lock), now)


def _adopt(folder: RunFolder, stored: Mapping[str, Any], renewed: Renewed, now: datetime) -> runs.Amendment:
    """Write the amendment, then the plan, then the lock: after a kill in between, the run is still one of version 1."""
    before, plan, text, hash_before, lock = renewed
    _require_unchanged(folder, stored, hash_before)
    probes = probe_calls(plan) if isinstance(plan, Study) else ()
    begun = asking_begun(folder, apart_from={probe.key for probe in probes})
    earlier, reason = (
        runs.read_amendments(folder, stored.get("amendments", ())), f"{_REASON} {_SEEN if begun else _UNSEEN}",
    )  # fmt: skip
    fields, after = runs.changed_fields(before, plan), (lock["plan_hash"], text)
    digests = runs.record_amendment(folder, earlier, now, reason, fields, hash_before, after)
    aside = folder.path / ASIDE
    aside.mkdir(exist_ok=True)
    for path in (folder.verdicts, folder.certificates, folder.report):
        if path.exists():
            path.rename(aside / path.name)
    for table in (MEASUREMENTS, VERDICTS):
        Store(folder).move_out(table, aside)
    write_atomic(folder.plan, text)
    runs.write_lock(folder, {**lock, "amendments": list(digests), "preregistered": not begun})
    return runs.read_amendments(folder, digests)[-1]


def _renew_study(folder: RunFolder, stored: Mapping[str, Any], text: str, source: str, renewed: str) -> Renewed:
    study = parse_study(renewed, source)
    before, hash_before = _study_1(folder, stored, parse_study(renewed_text(text, source)), text, source)
    checked = check_plan(folder, study, source, None, refuse_hopeless=False)
    lock = study_lock(checked, stored["locked_at"], stored.get("date_probes", ()))
    return before, study, renewed, hash_before, lock


def _study_1(
    folder: RunFolder, stored: Mapping[str, Any], study: Study, text: str, source: str
) -> tuple[dict[str, Any], str]:
    """Return the fields of a study as version 1 had them, and its plan hash of version 1."""
    if (tables := locked_tables(study, Store(folder))) != stored["tables"]:
        raise PlanError(f"{folder.path}: its records changed after the lock; restore them")
    raw, fields = read_toml(text, source), study.model_dump(mode="json")
    for table, names in _NEW.items():
        if kept_fields := {name: value for name, value in fields.pop(table).items() if name not in names}:
            fields[table] = kept_fields
    for name, default in _OLD.items():
        table, _, field = name.partition(".")
        fields[table][field] = raw.get(table, {}).get(field, default)
    fields["version"] = "1"
    texts = {name: sha256_text(text) for name, text in texts_of(study).items()}
    return fields, content_id({"plan": _hashed_fields(fields), "texts": texts, "tables": tables})


def _without_new(plan: Season | BenchPlan) -> dict[str, Any]:
    """Return the fields of a season or a benchmark as version 1 had them."""
    fields = {name: value for name, value in plan.model_dump(mode="json").items() if name not in (*_NEW, "efficiency")}
    for table, names in _NEW_IN.items():
        if table in fields:
            fields[table] = {name: value for name, value in fields[table].items() if name not in names}
    return fields | {"version": "1"}


def texts_of_1(season: Season) -> dict[str, str]:
    """Return the digests of all texts of a season and of its scoring plan, as version 1 had them."""
    scoring = _SCORING[season.scoring]
    return {**season_texts(season), **_PROMPTS, "scoring": scoring, f"scoring {season.scoring}": scoring}


def _hashed_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a plan hash covers: all but ``engine``, which only sets how calls are made."""
    return {name: value for name, value in fields.items() if name != "engine"}


def renewed_text(text: str, source: str) -> str:
    """Return a plan file of version 1 as one of version 2, with its lines and comments kept where possible."""
    raw = read_toml(text, source)
    wanted: dict[str, Any] = {**raw, "version": "2"}
    for table, fields in _WRITTEN.items():
        wanted[table] = {name: value for name, value in raw.get(table, {}).items() if f"{table}.{name}" not in REPLACED}
        wanted[table] |= fields
    # Edit line by line: new fields go to the head of their tables, new tables to the end.
    pending = {name: [f"{key} = {toml_value(one)}" for key, one in fields.items()] for name, fields in _WRITTEN.items()}
    table, lines = "", [] if "version" in raw else ['version = "2"']
    for line in text.rstrip().split("\n"):
        header, key = _HEADER.match(line), _KEY.match(line)
        table = header[1].strip() if header else table
        name = f"{table}.{key[1]}" if key else ""
        if name not in REPLACED:
            lines.append('version = "2"' if name == ".version" else line)
        lines += pending.pop(table, []) if header else []
    for name, added in pending.items():
        lines += ["", f"[{name}]", *added]
    edited = "\n".join(lines) + "\n"
    with suppress(tomllib.TOMLDecodeError):
        if tomllib.loads(edited) == wanted:
            return edited
    return toml_text(wanted)
