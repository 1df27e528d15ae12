"""Verdicts, their file and certificates from measurements, and whether a run is as it was written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from assaymark import __version__
from assaymark.claims import Verification, certificate_name, certificates, decide_claims, index, summary_of, verify
from assaymark.claims.messages import english, stand_ins
from assaymark.engine import Ledger
from assaymark.errors import AssayError, InputError, LedgerError, PlanError, Problem
from assaymark.metrology import contested
from assaymark.notebook import MARKS, Folded, Heading, Note, Part, Result, Said, parts_of
from assaymark.protocol import AgentSpec, Study
from assaymark.records import JSON, Level, Measurement, Rows, Verdict, canonical_json
from assaymark.text import clean, prose
from assaymark.workflow import run_folder as runs
from assaymark.workflow.lock import open_locked
from assaymark.workflow.run_folder import Amendment, RunFolder
from assaymark.workflow.study_calls import probe_basis
from assaymark.workflow.tables import JUDGMENTS, MADE_BY, MEASUREMENTS, PROBE, VERDICTS, Store
from assaymark.workflow.tracks.season_day import journal_path, read_journal, times_of
from assaymark.workflow.tracks.season_records import TIMES

# --- verdicts.json ----------------------------------------------------------------------------------------------------


FORMAT: Final = "assaymark verdicts 2"
_SAID: Final = 6
_PEOPLE: Final = ("human.sample", "human.agreement", "human.judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Who judged: names by family, which of them are reference judges with planted properties, and whether any is."""

    judges: Mapping[str, str]
    reference: bool
    built_in: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLine:
    """One row of a season's table: the ranks that an agent can have, whether its total is shown, and why."""

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictFile(Result):
    """``verdicts.json``: the verdicts of one run and the measurements they rest on.

    ``tiers``, ``ranks``, ``top_set`` and ``within_margin`` follow from the verdicts, by scale. ``missing`` has the
    share of each judge's replies that did not come or could not be read, and of each agent's; ``notes`` say what of a
    table of scores was left out, and what was chosen with the scores at hand. ``agents``, or models of
    a benchmark, are those that claims compare, each with whether it is a rule-based stand-in. Only seasons have
    ``places`` and ``judged_to``, the last day that a judge was shown; their ``rubric`` is the scoring plan.

    It holds no time and no random name: the same records, plan and replies make the same bytes.
    """

    format: str
    software: str
    study: str
    title: str
    plan_hash: str
    rubric: str
    panel: Panel
    agents: Mapping[str, bool] = field(default_factory=dict)
    amendments: tuple[Mapping[str, JSON], ...] = ()
    preregistered: bool = True
    tally: Mapping[str, int]
    tiers: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    ranks: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    top_set: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    within_margin: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    judged_to: str = ""
    places: tuple[PlaceLine, ...] = ()
    verdicts: tuple[Verdict, ...]
    measurements: Mapping[str, Measurement] = field(default_factory=dict)

    def _parts(self) -> Iterator[Part]:
        """The supported claims; what is not supported behind a line, named without its direction."""
        yield Heading(f"{clean(self.title or self.study, 120)}: supported claims")
        yield Note(" · ".join(f"{MARKS[level]} {count} {level}" for level, count in self.tally.items()))
        made_by = "agents" if self.panel.judges else "models"
        for level in ("headline", "qualified"):
            said = []
            for one in (verdict for verdict in self.verdicts if verdict.publication_level == level):
                # What has to be said with a claim: whether judges or agents are built in, and its condition.
                kind = one.claim.id.partition("[")[0]
                judges = {} if kind.endswith(".beats") else self.panel.built_in
                agents = {} if kind == "cell" else self.agents
                built_in = stand_ins(english(), judges, agents, one.claim.subjects, made_by)
                said.append(Said(level, one.said, f"{built_in} {prose(one.condition or '')}".strip()))
            yield from said[:_SAID]
            if more := tuple(said[_SAID:]):
                yield Folded(f"{len(more)} more {level}", more)
        kept = (one for one in self.verdicts if one.publication_level == "no-claim")
        # By what is shown: the ids, and so the order of the file, have the higher of a pair first.
        if withheld := Rows(sorted(kept, key=lambda one: (one.claim.dimension, one.said))):
            yield Folded(f"{len(withheld)} not supported by this evidence", parts_of(withheld))


def tally_of(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many verdicts of each level."""
    found = Counter(verdict.publication_level for verdict in verdicts)
    return {level: found.get(level, 0) for level in ("headline", "qualified", "no-claim")}


def verdict_file(
    study: Study, plan_hash: str, verdicts: Sequence[Verdict], measurements: Sequence[Measurement],
    preregistered: bool = True, amendments: Sequence[Amendment] = (),
) -> VerdictFile:  # fmt: skip
    """The contents of ``verdicts.json``."""
    built_in = {one.name: one.model.startswith("reference/") for one in study.judges}
    judges = {judge.name: judge.family for judge in study.judges}
    lacking = [item for item in measurements if item.name == "missing.share" and item.value]
    return decided_file(
        verdicts, measurements, sorted({item.labels["agent"] for item in measurements if item.name == "score.effect"}),
        study=study.name, title=study.title, plan_hash=plan_hash, rubric=study.rubric.name,
        panel=Panel(judges=judges, reference=any(built_in.values()), built_in=built_in),
        made_by=study.agents, amendments=amendments, preregistered=preregistered,
        missing={item.labels.get("agent") or item.labels["judge"]: item.value for item in lacking},
    )  # fmt: skip


def decided_file(
    verdicts: Sequence[Verdict], measurements: Sequence[Measurement], agents: Sequence[str], *,
    made_by: Sequence[AgentSpec] = (), amendments: Sequence[Amendment] = (),
    unranked: Mapping[str, Collection[str]] = MappingProxyType({}), **given: Any,
) -> VerdictFile:  # fmt: skip
    """The contents of ``verdicts.json`` of a study, a season or a benchmark; ``given`` are its other fields."""
    built_in = {one.name for one in made_by if one.model.startswith("reference/")}
    used = {name for verdict in verdicts for name in verdict.measurements}
    supported = {
        name for verdict in verdicts if verdict.publication_level != "no-claim" for name in verdict.measurements
    }
    return VerdictFile(
        format=FORMAT,
        software=f"assaymark {__version__}",
        tally=tally_of(verdicts),
        **asdict(summary_of(verdicts, agents, unranked)),
        verdicts=tuple(verdicts),
        agents={name: name in built_in for name in sorted({*agents, *(one.name for one in made_by)})},
        amendments=tuple(
            {"number": amendment.number, "reason": amendment.reason, "fields": dict(amendment.fields)}
            for amendment in amendments
        ),
        # The gap of an unsupported pair is in the tables and certificates, and not in this file; how judges stand
        # beside people is.
        measurements={
            item.id: item
            for item in measurements
            if item.id in supported or (item.id in used and "high" not in item.labels) or item.name in _PEOPLE
        },
        **given,
    )


def claim(folder: RunFolder) -> VerdictFile:
    """Decide every candidate claim; writes the table, ``verdicts.json`` and one certificate a verdict."""
    locked = open_locked(folder)
    store, study, plan_hash = Store(folder), locked.study, locked.plan_hash
    measurements = store.read(MEASUREMENTS)
    plan = contested(measurements, study)
    needed = study.stability.probe is not None and plan.needed
    if needed and not store.done(PROBE, probe_basis(locked, store, plan)):
        raise LedgerError(
            f"{folder.path}: leaving a judge family out turns {len(plan.pairs)} pairs, and the outside judge that the "
            f"plan commits was not asked about them; run: assaymark judge {folder.path}, then assaymark measure"
        )
    kept = locked.preregistered
    verdicts = decide_claims(measurements, study, plan_hash, locked.amended, preregistered=kept)
    if foreign := {verdict.plan_hash for verdict in verdicts} - {plan_hash}:
        raise PlanError(f"verdicts of another plan: {', '.join(sorted(foreign))}")
    file = verdict_file(study, plan_hash, verdicts, measurements, kept, locked.amendments)
    basis = {"plan": plan_hash, "judgments": store.digest(JUDGMENTS), "measurements": store.digest(MEASUREMENTS)}
    store.write(VERDICTS, verdicts, basis)
    made = zip(verdicts, certificates(verdicts, index(measurements), study), strict=True)
    runs.replace_files(folder.certificates, {certificate_name(verdict): runs.json_text(one) for verdict, one in made})
    runs.write_json(folder.verdicts, file)
    runs.write_sums(folder)
    return file


_FROM_REPLIES: Final = frozenset(("judgments", "grades", "scores"))
_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
_OBJECT: Final = re.compile(r"object ([0-9a-f]{64})")
_BEFORE: Final = "made by an earlier version"


@dataclass(slots=True)
class VerifiedRun:
    """What going over a run finds: what is as it was written, what differs where, and what nothing can show."""

    root: Path
    same: tuple[str, ...] = ()
    differences: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """What `assaymark verify` prints."""
        differing = [f"DIFFERS  {difference}" for difference in self.differences]
        return [*differing, *(f"same     {text}" for text in self.same), *(f"note     {text}" for text in self.notes)]

    def differs(self, path: Path, what: str) -> None:
        """Note a difference of a file."""
        self.differences += (Problem(self.name(path), what),)

    def name(self, path: Path) -> str:
        """How messages call a file."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    @contextmanager
    def reading(self, path: Path) -> Iterator[None]:
        """What cannot be read is a difference of this file."""
        try:
            yield
        except (AssayError, OSError) as exc:
            said = str(exc)
            self.differs(path, said.removeprefix(str(path)).lstrip("/: ") if said.startswith(str(path)) else said)


def verify_run(folder: RunFolder) -> VerifiedRun:
    """Go over everything that a run folder keeps, and name what is not as it was written; nothing is changed."""
    if not folder.path.is_dir():
        raise runs.missing(folder.path, "run folder")
    if not (folder.lock.is_file() or folder.has_ledger or folder.tables.is_dir() or folder.sums.is_file()):
        raise InputError(str(folder.path), [Problem("", "holds no run: no lock, no ledger and no tables")])
    found = VerifiedRun(folder.path)
    for one in (folder, folder.rationales):
        if one.path.is_dir():
            stored = _check_lock(one, found)
            _check_ledger(one.ledger, found)
            _check_tables(one, stored, found)
            _check_handed_on(one, found)
    if (parts := folder.path / "partitions" / "ledger.db").is_file():
        _check_ledger(parts, found)
    # The journal of a season: its chain, and the measured times, which are in no chain, against their table.
    if (path := journal_path(folder)).is_file():
        store = Store(folder)
        with found.reading(path):
            entries, _ = read_journal(folder)
            kept = set(store.read(TIMES)) if store.digest(TIMES) is not None else set()
            if lost := kept - set(times_of(entries)):
                first, table = min(one.record_id for one in lost), f"{TIMES.name}.parquet"
                found.differs(path, f"lacks {len(lost)} decisions of {table}, or has other seconds ({first})")
            else:
                found.same += (f"{found.name(path)}: {len(entries)} days",)
    return found


def _check_lock(folder: RunFolder, found: VerifiedRun) -> Mapping[str, Any]:
    """The lock, held against the ledger, and the plan, held against the lock; empty if no lock can be read."""
    held: tuple[Mapping[str, Any], ...] = ()
    with suppress(LedgerError):  # a ledger that cannot be read is named where it is looked at
        held = runs.anchored(folder)
    if not folder.lock.is_file():
        if held:
            found.differs(folder.lock, f"is gone; calls were made under it, with the plan hash {held[0]['plan_hash']}")
        return {}
    stored: Mapping[str, Any] = {}
    with found.reading(folder.lock):
        text = runs.read_text(folder.lock, "lock")
        read = runs.read_json(folder.lock, "lock")
        if not isinstance(read, dict):
            found.differs(folder.lock, "is no table of fields")
        elif fields := runs.edited_fields(read, held):
            for name in fields:
                now, then = canonical_json(read.get(name)), canonical_json(held[0].get(name))
                what = f"its {name} was edited after the first call under it: {now:.80}, the ledger says"
                found.differs(folder.lock, f"{what} {then:.80}")
        elif held and text != runs.json_text(read):
            found.differs(folder.lock, "is not written as assaymark writes it, though its fields are the same")
        else:
            stored = read
    if not stored:
        return {}
    if held:
        found.same += (f"{found.name(folder.lock)}: every field, by the ledger",)
    else:
        what = "the ledger does not have it: no call was made under it yet, or it was"
        found.notes += (f"{found.name(folder.lock)}: {what} {_BEFORE}",)
    name, written = found.name(folder.plan), stored.get(runs.PLAN_BYTES)
    with found.reading(folder.plan):
        made = runs.file_sha256(folder.plan)
        if written is None:
            found.notes += (f"{name}: the lock does not hold the sha256 of its bytes; it was {_BEFORE}",)
        elif made != written:
            found.differs(folder.plan, f"was edited: its sha256 is {made}, the lock says {written}")
        else:
            found.same += (f"{name}: every byte, by the lock",)
    with found.reading(folder.amendments):
        if made_since := runs.read_amendments(folder, stored.get("amendments", ())):
            found.same += (f"{found.name(folder.amendments)}: {len(made_since)}, by the lock",)
    return stored


def _check_ledger(where: Path | str, found: VerifiedRun) -> None:
    """Every row and object of a ledger."""
    path = Path(where) if isinstance(where, str) else where
    if isinstance(where, Path) and not where.is_file():
        return
    name = where if isinstance(where, str) else found.name(where)
    with found.reading(path), Ledger.open(where, create=False) as ledger:
        audit = ledger.audit()
        for what in audit.differences:
            named = _OBJECT.match(what)
            file = path.parent / "objects" / named[1] if named else path
            found.differs(file if file.is_file() else path, what)
        if not audit.differences:
            found.same += (f"{name}: {audit.rows:,} rows with all objects",)
        if audit.since is None:
            why = "a database never is" if isinstance(where, str) else "this version has not closed it yet"
            found.notes += (f"{name}: its rows were checked one by one, and are not sealed: {why}",)
        elif audit.since:
            what = f"written after its last clean close, and so not sealed yet: {'; '.join(audit.since)}"
            found.notes += (f"{name}: {what}",)


def _check_tables(folder: RunFolder, stored: Mapping[str, Any], found: VerifiedRun) -> None:
    """Every table against the manifest, and those that the plan was locked on against the lock."""
    manifest, store = folder.tables / "manifest.json", Store(folder)
    if not manifest.is_file():
        return
    before = len(found.differences)
    with found.reading(manifest):
        contents = store.contents
        if runs.read_text(manifest, "manifest") != runs.json_text(runs.read_json(manifest, "manifest")):
            found.differs(manifest, "is not written as assaymark writes it, though it says the same")
        for name in contents:
            with found.reading(path := folder.tables / f"{name}.parquet"):
                if store.digest(name) is None:
                    found.differs(path, f"is not there as it was last written; make it with {MADE_BY[name]}")
        if stored and not folder.has_ledger and (made := _FROM_REPLIES.intersection(contents)):
            found.differs(folder.path / "ledger.db", f"is gone; the replies behind {', '.join(sorted(made))} are in it")
        for name, content in stored.get("tables", {}).items():
            if contents.get(name, content) != content:
                found.differs(folder.tables / f"{name}.parquet", "is not the one that the plan was locked on")
    if len(found.differences) == before:
        found.same += (f"{found.name(folder.tables)}: {len(contents)}, by the manifest",)


def _check_handed_on(folder: RunFolder, found: VerifiedRun) -> None:
    """Verdicts, certificates and datasheets against their sums."""
    before = len(found.differences)
    with found.reading(folder.sums):
        there = runs.handed_on(folder)
        if not folder.sums.is_file():
            if there:
                what = f"{len(there)} files that are handed on have no digest on record"
                found.notes += (f"{found.name(folder.sums)}: is not there; {what}; they were {_BEFORE}, or cut off",)
            return
        said: dict[str, str] = {}
        for number, line in enumerate(runs.read_text(folder.sums, "list of sums").splitlines(), start=1):
            if part := _LINE.fullmatch(line):
                said[part[2]] = part[1]
            else:
                found.differs(folder.sums, f"is damaged at line {number}")
        for name in sorted({*said, *there}):
            if said.get(name) != there.get(name):
                what = "is gone" if name not in there else f"has the sha256 {there[name]}, SHA256SUMS says"
                found.differs(folder.path / name, what if name not in there else f"{what} {said.get(name, 'nothing')}")
    if len(found.differences) == before:
        found.same += (f"{found.name(folder.sums)}: {len(said)} files that are handed on",)


def verify_certificate(path: Path) -> Verification:
    """Recompute the certificate in a file."""
    try:
        return verify(json.loads(runs.read_text(path, "certificate")))
    except (json.JSONDecodeError, RecursionError) as exc:
        where = f"line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
        raise InputError(str(path), [Problem(where, "is not JSON")]) from None
    except InputError as exc:
        raise InputError(str(path), exc.problems) from None


def verification_lines(found: Verification, path: Path) -> list[str]:
    """What `assaymark claim --verify` prints for one certificate."""
    head = f"{path}: {'follows from its own tables' if found.ok else 'does NOT follow from its own tables'}"
    return [head, *(f"  {text}" for text in found.differences), *(f"  note: {text}" for text in found.notes)]
