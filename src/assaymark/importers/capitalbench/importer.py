"""CapitalBench: frozen-input allocation rounds, from two files to records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assaymark.errors import InputError
from assaymark.importers.capitalbench.decisions import (
    CLOCK_CONFLICT,
    RECORDS,
    Record,
    Times,
    decision_of,
    faults,
    format_of,
    outcome_of,
    record_id,
    times_of,
)
from assaymark.importers.capitalbench.rounds import Round, RoundReader
from assaymark.importers.read import json_lines, json_object, require, shaped
from assaymark.importers.report import NO_TEXT, Imported, Tally
from assaymark.records import Context, Decision, Outcome, Provenance

Progress = Callable[[str, int, int], None]

DECISIONS, CONTEXTS = "decisions.jsonl", "contexts.jsonl"
"""The two files, each plain or as ``.gz``."""

PROVENANCE = Provenance(source="ishtiaqrahman/capitalbench", licence="CC BY 4.0")
"""Where the records come from unless the caller knows more (a commit, another mirror)."""


def import_capitalbench(
    files: Mapping[str, bytes],
    *,
    keep_going: bool = False,
    progress: Progress | None = None,
    provenance: Provenance = PROVENANCE,
) -> Imported:
    """CapitalBench's decisions, the contexts they were made in, and the outcomes as a table of their own.

    A round's contexts are always ``partial``: the rendered appendix that the agents saw was not kept. Prices that
    scored a round never enter a context. A decision whose call started before the cutoff is kept and flagged
    ``clock-conflict``.

    Parameters
    ----------
    files : mapping of name to bytes
        ``decisions.jsonl`` and ``contexts.jsonl``, plain or gzip.
    keep_going : bool
        Import what is good although something is not; the report counts both.
    progress : callable, optional
        Told (what, done, total) as rounds and decisions are read.
    provenance : Provenance
        Source, commit and licence to stamp on every decision; the path comes from the record.

    Raises
    ------
    InputError
        A file is missing or damaged; or, unless ``keep_going``, anything in them is wrong: all of it at once.
    """
    tally = Tally()
    importer = _Import(tally, provenance, progress or _silent)
    importer.read_rounds(*require(files, CONTEXTS))
    importer.read_decisions(*require(files, DECISIONS))
    if tally.problems and not keep_going:
        raise InputError("capitalbench", tally.problems)
    return importer.result()


def _silent(what: str, done: int, total: int) -> None:
    """Tells nobody."""


class _Import:
    """The state of one import."""

    def __init__(self, tally: Tally, provenance: Provenance, progress: Progress) -> None:
        self.tally = tally
        self.provenance = provenance
        self.progress = progress
        self.rounds: dict[str, Round] = {}
        self.broken: dict[str, int] = {}
        self.unknown: dict[str, list[str]] = {}
        self.decisions: dict[str, Decision] = {}
        self.places: dict[str, str] = {}
        self.outcomes: list[Outcome] = []
        self.bad = 0

    def read_rounds(self, name: str, data: bytes) -> None:
        reader = RoundReader(self.tally)
        lines = list(json_lines(data))
        for done, (number, line) in enumerate(lines, start=1):
            self._read_round(reader, name, number, line)
            self.progress("rounds", done, len(lines))
        if not lines:
            self.tally.problem(name, "holds no round: no line with anything in it")

    def _read_round(self, reader: RoundReader, name: str, number: int, line: bytes) -> None:
        try:
            files = json_object(line)
        except ValueError as exc:
            self.tally.problem(f"{name} line {number}", str(exc))
            return
        wrong = [key for key, value in files.items() if not isinstance(value, str)]
        for key in wrong:
            self.tally.problem(f"{name} line {number}, {key}", f"must be text (got {type(files[key]).__name__})")
        round_id = files.get("round_id")
        if not wrong and round_id in self.rounds:
            self.tally.problem(f"{name} line {number}, round_id", f"stands twice (got {round_id!r})")
            return
        made = None if wrong else reader.read(name, number, files)
        if made is not None:
            self.rounds[made.id] = made
        elif isinstance(round_id, str):
            self.broken[round_id] = 0

    def read_decisions(self, name: str, data: bytes) -> None:
        lines = list(json_lines(data))
        for done, (number, line) in enumerate(lines, start=1):
            before = len(self.tally.problems)
            if not self._read_decision(f"{name} line {number}", line):
                self.bad += 1
            elif len(self.tally.problems) > before:
                raise AssertionError("a record with problems was imported")
            self.progress("decisions", done, len(lines))
        self._tell_left_out(name)

    def _tell_left_out(self, name: str) -> None:
        """Says once of each round that is broken or not there how many decisions that concerns."""
        for round_id, places in self.unknown.items() if self.rounds or self.broken else ():
            more = f" and {len(places) - 1} more decisions" if len(places) > 1 else ""
            what = f"a record without a context: no such round (got {round_id!r}){more}"
            self.tally.problem(f"{places[0]}, round_id", what)
        for round_id, left_out in self.broken.items():
            if left_out:
                self.tally.problem(
                    f"{name}, {round_id}", f"{left_out} decisions without a context: their round is broken"
                )

    def _read_decision(self, place: str, line: bytes) -> bool:
        """Whether the record in ``line`` was imported; problems are noted."""
        read = self._record(place, line)
        if read is None:
            return False
        record, shape = read
        if record.round_id in self.broken:
            self.broken[record.round_id] += 1
            return False
        of = self.rounds.get(record.round_id)
        if of is None:
            self.unknown.setdefault(record.round_id, []).append(place)
            return False
        name = record_id(record)
        found = faults(record, shape, of.options)
        if name in self.places:
            first = self.places[name]
            found.append(f"submission.model_id: named twice on one round with one replicate (first at {first})")
        try:
            times = times_of(record)
            decision = decision_of(record, shape, of, times, self.provenance)
            outcome = outcome_of(record.outcome, name, of)
        except ValueError as exc:
            found.append(str(exc))
        for what in found:
            self.tally.problem(*_split(place, what))
        if found:
            return False
        self.places[name] = place
        self._keep(decision, outcome, of, times)
        return True

    def _record(self, place: str, line: bytes) -> tuple[Record[Any], str] | None:
        """The line in the shape that it has."""
        try:
            tree = json_object(line)
        except ValueError as exc:
            self.tally.problem(place, str(exc))
            return None
        submission = tree.get("submission")
        if not isinstance(submission, dict):
            self.tally.problem(f"{place}, submission", f"must be an object (got {type(submission).__name__})")
            return None
        shape = format_of(submission)
        record = shaped(RECORDS[shape], line, place, self.tally)
        return None if record is None else (record, shape)

    def _keep(self, decision: Decision, outcome: Outcome | None, of: Round, times: Times) -> None:
        self.decisions[decision.record_id] = decision
        for what in decision.missing:
            if what != NO_TEXT:  # the report has a line of its own for these
                self.tally.missing(what, decision.record_id)
        if outcome is None:
            self.tally.missing("outcome", decision.record_id)
        else:
            self.outcomes.append(outcome)
        if times.started > of.deadline:
            self.tally.counts["calls started after the round's deadline"] += 1

    def result(self) -> Imported:
        decisions = tuple(self.decisions.values())
        used = {decision.context_id for decision in decisions}
        contexts: dict[str, Context] = {
            of.context_id: of.context for of in self.rounds.values() if of.context_id in used
        }
        counts = {
            "decisions": len(decisions),
            "contexts": len(contexts),
            "agents": len({decision.agent.id for decision in decisions}),
            "clusters": len({decision.cluster for decision in decisions}),
            "outcomes": len(self.outcomes),
            "facts": sum(len(context.facts) for context in contexts.values()),
        }
        late = dict(self.tally.counts)
        self.tally.counts.clear()
        self.tally.counts.update(counts | late)
        report = self.tally.report("capitalbench", decisions, bad=self.bad, notes=_notes(decisions))
        return Imported(decisions=decisions, contexts=contexts, outcomes=tuple(self.outcomes), report=report)


def _notes(decisions: tuple[Decision, ...]) -> tuple[str, ...]:
    """What a reader has to know before using these records."""
    conflicts = sum(CLOCK_CONFLICT in decision.flags for decision in decisions)
    notes = ["entry and exit prices are left out of every context: they scored the rounds"]
    if conflicts:
        notes.append(f"{conflicts} calls started before their material's cutoff: kept, flagged {CLOCK_CONFLICT}")
    return tuple(notes)


def _split(place: str, what: str) -> tuple[str, str]:
    """Field and message of a fault that begins with its field."""
    where, _, rest = what.partition(": ")
    return f"{place}, {where}", rest
