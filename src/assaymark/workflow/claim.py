"""Verdicts and certificates from measurements; checks of a run against its digests and of certificates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assaymark.claims import Verification, certificate_name, certificates, decide_claims, index, verify
from assaymark.claims.certification import VerdictFile, verdict_file
from assaymark.engine import Ledger
from assaymark.errors import AssayError, InputError, LedgerError, Problem
from assaymark.metrology import contested
from assaymark.records import canonical_json
from assaymark.text import count_of
from assaymark.workflow import run_folder as runs
from assaymark.workflow.lock import open_locked
from assaymark.workflow.measure import measured_from
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.study_calls import probe_basis
from assaymark.workflow.tables import JUDGMENTS, MADE_BY, MEASUREMENTS, PROBE, VERDICTS, Store


def claim(folder: RunFolder) -> VerdictFile:
    """Decide every candidate claim; writes the table, ``verdicts.json`` and one certificate a verdict."""
    locked = open_locked(folder)
    store, study, plan_hash = Store(folder), locked.study, locked.plan_hash
    measurements = store.read(MEASUREMENTS)
    plan = contested(measurements, study)
    needed = study.stability.probe is not None and plan.needed
    if needed and not store.done(PROBE, probe_basis(locked, store, plan)):
        raise LedgerError(
            f"{folder.path}: leaving a judge family out reverses {len(plan.pairs)} pairs, and the plan's held-out "
            f"judge has not judged them; run: assaymark judge {folder.path}, then assaymark measure"
        )
    if not store.done(MEASUREMENTS, measured_from(folder, locked)[0]):
        newer = "judgments, evidence, grades or plan are newer than its measurements"
        raise LedgerError(f"{folder.path}: {newer}; run: assaymark measure {folder.path}")
    planned = locked.preregistered
    verdicts = decide_claims(measurements, study, plan_hash, locked.amended, preregistered=planned)
    stated = [amendment.stated for amendment in locked.amendments]
    file = verdict_file(study, plan_hash, verdicts, measurements, planned, stated)
    basis = {"plan": plan_hash, "judgments": store.digest(JUDGMENTS), "measurements": store.digest(MEASUREMENTS)}
    store.write(VERDICTS, verdicts, basis)
    made = certificates(verdicts, index(measurements), study)
    runs.write_verdicts(folder, file, zip(map(certificate_name, verdicts), made, strict=True))
    return file


_FROM_REPLIES: Final = frozenset(("judgments", "grades", "scores"))
_LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
_OBJECT: Final = re.compile(r"object ([0-9a-f]{64})")
_BEFORE: Final = "made by an earlier version"


@dataclass(slots=True)
class VerifiedRun:
    """The result of checking a run: what is unchanged, differences by file, and notes on what cannot be checked."""

    root: Path
    same: tuple[str, ...] = ()
    differences: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines that `assaymark verify` prints."""
        differing = [f"DIFFERS  {difference}" for difference in self.differences]
        return [*differing, *(f"same     {text}" for text in self.same), *(f"note     {text}" for text in self.notes)]

    def report(self, path: Path, problem: str) -> None:
        """Record a difference of a file."""
        self.differences += (Problem(self.name(path), problem),)

    def name(self, path: Path) -> str:
        """Return the path of a file as messages print it: relative to the run folder."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    @contextmanager
    def guard(self, path: Path) -> Iterator[None]:
        """Record an error while reading as a difference of this file."""
        try:
            yield
        except (AssayError, OSError) as exc:
            text = str(exc)
            self.report(path, text.removeprefix(str(path)).lstrip("/: ") if text.startswith(str(path)) else text)

    def check_lock(self, folder: RunFolder) -> Mapping[str, Any]:
        """Check the lock against the ledger, and the plan against the lock; returns the lock, empty if unreadable."""
        anchors: tuple[Mapping[str, Any], ...] = ()
        with suppress(LedgerError):  # `check_ledger` reports a ledger that cannot be read
            anchors = runs.ledger_locks(folder)
        if not folder.lock.is_file():
            if anchors:
                problem = f"is gone; calls were made under it, with the plan hash {anchors[0]['plan_hash']}"
                self.report(folder.lock, problem)
            return {}
        stored: Mapping[str, Any] = {}
        with self.guard(folder.lock):
            text = runs.read_text(folder.lock, "lock")
            read = runs.read_json(folder.lock, "lock")
            if not isinstance(read, dict):
                self.report(folder.lock, "is not a table of fields")
            elif fields := runs.edited_fields(read, anchors):
                for name in fields:
                    now, then = canonical_json(read.get(name)), canonical_json(anchors[0].get(name))
                    problem = f"its {name} was edited after the first call under it: {now:.80}, the call log says"
                    self.report(folder.lock, f"{problem} {then:.80}")
            elif anchors and text != runs.json_text(read):
                self.report(folder.lock, "is not written as assaymark writes it, though its fields are the same")
            else:
                stored = read
        if not stored:
            return {}
        if anchors:
            self.same += (f"{self.name(folder.lock)}: every field, by the call log",)
        else:
            problem = "the call log does not have it: no call was made under it yet, or it was"
            self.notes += (f"{self.name(folder.lock)}: {problem} {_BEFORE}",)
        name, written = self.name(folder.plan), stored.get(runs.PLAN_BYTES)
        with self.guard(folder.plan):
            sha256 = runs.file_sha256(folder.plan)
            if written is None:
                self.notes += (f"{name}: the lock does not hold the sha256 of its bytes; it was {_BEFORE}",)
            elif sha256 != written:
                self.report(folder.plan, f"was edited: its sha256 is {sha256}, the lock says {written}")
            else:
                self.same += (f"{name}: every byte, by the lock",)
        with self.guard(folder.amendments):
            if made_since := runs.read_amendments(folder, stored.get("amendments", ())):
                self.same += (f"{self.name(folder.amendments)}: {len(made_since)}, by the lock",)
        return stored

    def check_ledger(self, ledger_at: Path | str) -> None:
        """Check every row and object of a ledger."""
        path = Path(ledger_at) if isinstance(ledger_at, str) else ledger_at
        if isinstance(ledger_at, Path) and not ledger_at.is_file():
            return
        name = ledger_at if isinstance(ledger_at, str) else self.name(ledger_at)
        with self.guard(path), Ledger.open(ledger_at, create=False) as ledger:
            audit = ledger.audit()
            for problem in audit.differences:
                match = _OBJECT.match(problem)
                file = path.parent / "objects" / match[1] if match else path
                self.report(file if file.is_file() else path, problem)
            if not audit.differences:
                self.same += (f"{name}: {audit.rows:,} rows with all objects",)
            if audit.since is None:
                reason = "a database never is" if isinstance(ledger_at, str) else "this version has not closed it yet"
                self.notes += (f"{name}: its rows were checked one by one, and are not sealed: {reason}",)
            elif audit.since:
                problem = f"written after its last clean close, and so not sealed yet: {'; '.join(audit.since)}"
                self.notes += (f"{name}: {problem}",)

    def check_files(self, folder: RunFolder, stored: Mapping[str, Any]) -> None:
        """Check the tables against the manifest and the lock, and published files against ``SHA256SUMS``."""
        manifest, store, before = folder.tables / "manifest.json", Store(folder), len(self.differences)
        if manifest.is_file():
            with self.guard(manifest):
                contents = store.contents
                if runs.read_text(manifest, "manifest") != runs.json_text(runs.read_json(manifest, "manifest")):
                    self.report(manifest, "is not written as assaymark writes it, though it says the same")
                for name in contents:
                    with self.guard(path := folder.tables / f"{name}.parquet"):
                        if store.digest(name) is None:
                            self.report(path, f"is not there as it was last written; make it with {MADE_BY[name]}")
                if stored and not folder.has_ledger and (tables := _FROM_REPLIES.intersection(contents)):
                    text = f"is gone; the replies behind {', '.join(sorted(tables))} are in it"
                    self.report(folder.path / "ledger.db", text)
                for name, content in stored.get("tables", {}).items():
                    if contents.get(name, content) != content:
                        self.report(folder.tables / f"{name}.parquet", "is not the one that the plan was locked on")
            if len(self.differences) == before:
                self.same += (f"{self.name(folder.tables)}: {len(contents)}, by the manifest",)
        elif any(folder.tables.glob("*.parquet")) or (stored and folder.verdicts.is_file()):
            self.report(manifest, "is gone, and with it the digests of the tables; restore it from a copy")
        before, listed = len(self.differences), dict[str, str]()
        with self.guard(folder.sums):
            present = runs.published_files(folder)
            if not folder.sums.is_file():
                if present:
                    text = f"{len(present)} files that are handed on have no digest on record"
                    self.notes += (f"{self.name(folder.sums)}: is not there; {text}; they were {_BEFORE}, or cut off",)
                return
            for number, line in enumerate(runs.read_text(folder.sums, "list of sums").splitlines(), start=1):
                if part := _LINE.fullmatch(line):
                    listed[part[2]] = part[1]
                else:
                    self.report(folder.sums, f"is damaged at line {number}")
            for name in sorted({*listed, *present}):
                if listed.get(name) != present.get(name):
                    text = f"has the sha256 {present.get(name)}, SHA256SUMS says {listed.get(name, 'nothing')}"
                    self.report(folder.path / name, text if name in present else "is gone")
        if len(self.differences) == before:
            self.same += (f"{self.name(folder.sums)}: {count_of(len(listed), 'handed-on files')}",)


def verify_run(folder: RunFolder) -> VerifiedRun:
    """Check everything that a run folder stores, and report what differs from its digests; changes nothing."""
    if not folder.path.is_dir():
        raise runs.missing(folder.path, "run folder")
    if not (folder.lock.is_file() or folder.has_ledger or folder.tables.is_dir() or folder.sums.is_file()):
        raise InputError(str(folder.path), ["contains no run: no lock, no call log and no tables"])
    verified = VerifiedRun(folder.path)
    for run in (folder, folder.rationales):
        if run.path.is_dir():
            stored = verified.check_lock(run)
            verified.check_ledger(run.ledger)
            verified.check_files(run, stored)
    if (parts := folder.path / "partitions" / "ledger.db").is_file():
        verified.check_ledger(parts)
    from assaymark.workflow.tracks.season_day import journal_path, read_journal, times_of
    from assaymark.workflow.tracks.season_records import TIMES

    # The journal of a season: its hash chain, and against their table the measured times, which are not in the chain.
    if (path := journal_path(folder)).is_file():
        store = Store(folder)
        with verified.guard(path):
            entries, _ = read_journal(folder)
            stored_times = set(store.stored(TIMES))
            if lost := stored_times - set(times_of(entries)):
                first, table = min(time.record_id for time in lost), f"{TIMES.name}.parquet"
                verified.report(path, f"lacks {len(lost)} decisions of {table}, or has other seconds ({first})")
            else:
                verified.same += (f"{verified.name(path)}: {len(entries)} days",)
    return verified


def verify_certificate(path: Path) -> Verification:
    """Recompute the certificate in a file."""
    try:
        return verify(json.loads(runs.read_text(path, "certificate")))
    except (json.JSONDecodeError, RecursionError) as exc:
        place = f"line {exc.lineno}" if isinstance(exc, json.JSONDecodeError) else ""
        raise InputError(str(path), [Problem(place, "is not JSON")]) from None
    except InputError as exc:
        raise InputError(str(path), exc.problems) from None


def verification_lines(verified: Verification, path: Path) -> list[str]:
    """Return the lines that `assaymark claim --verify` prints for one certificate."""
    head = f"{path}: {'follows from its own tables' if verified.ok else 'does NOT follow from its own tables'}"
    return [head, *(f"  {text}" for text in verified.differences), *(f"  note: {text}" for text in verified.notes)]
