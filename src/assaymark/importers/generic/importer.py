"""Anyone's own agent: CSV or JSONL with a column map, into records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

from assaymark.errors import InputError, Problem
from assaymark.importers.generic.mapping import ColumnMap, Columns, Material, parse_map
from assaymark.importers.read import Row, Sheet, read_sheet, text_of, unpack
from assaymark.importers.report import NAME, NO_NAME, NO_TEXT, Imported, Tally, has_text
from assaymark.records import (
    Action,
    ActionKind,
    Agent,
    CallFacts,
    Decision,
    Derivation,
    DerivationKind,
    Outcome,
    Provenance,
    Rationale,
    RationaleKind,
)

_Answer = tuple[str, int, str, int]
Progress = Callable[[str, int, int], None]

MOST = 10.0
"""The largest weight, and sum of weights without their signs, in net asset values: beyond what leverage allows."""

_PERCENT = 'if your weights are in percent, say weight_unit = "percent" in the map'

FROM_AN_HONEST_RECORD: tuple[DerivationKind, ...] = ("paraphrase", "fact_flip", "length_matched")
"""The control cells that are made from one honest record each and held against it."""

KINDS: tuple[RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "holding", "stage", "arena")
"""The order in which rationales are stored: what a judge reads first."""


def import_generic(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None
) -> Imported:
    """Decisions, contexts and outcomes from files of your own, read through a column map.

    Nothing that happened after a decision can enter its context: a fact that became available later, a dated row from
    later, an outcome offered as facts are problems, not warnings. So are facts of a context that no decision names. A
    context that lost a fact to a problem, or holds one
    without a value, is ``partial`` whatever the map says.

    Parameters
    ----------
    files : mapping of name to bytes
        One ``*.toml`` map and the files that it names, plain or gzip.
    keep_going : bool
        Import what is good although something is not; the report counts both.
    progress : callable, optional
        Told (what, done, total) at the end of each file.

    Raises
    ------
    InputError
        The map or a file it names is missing or wrong; or, unless ``keep_going``, any record is: all of it at once.
    """
    columns = _map(files)
    tally = Tally()
    build = _Build(columns, tally)
    tell = progress or _silent
    for what, name, read in (
        ("facts", columns.files.facts, build.material.read_facts),
        ("constraints", columns.files.constraints, build.material.read_constraints),
        ("decisions", columns.files.decisions, build.read_decisions),
        ("outcomes", columns.files.outcomes, build.read_outcomes),
    ):
        if name is not None:
            sheet = read_sheet(name, _named(files, name), tally)
            read(name, sheet)
            tell(what, len(sheet.rows), len(sheet.rows))
    if tally.problems and not keep_going:
        raise InputError("generic", tally.problems)
    return build.result()


def _silent(what: str, done: int, total: int) -> None:
    """Tells nobody."""


def _map(files: Mapping[str, bytes]) -> ColumnMap:
    """The one map among the files."""
    maps = sorted(name for name in files if name.endswith(".toml"))
    if len(maps) != 1:
        held = ", ".join(maps) or "none"
        what = f"one column map is needed (got {held}); `assaymark import template` prints one"
        raise InputError("map.toml", [Problem("", what)])
    return parse_map(text_of(maps[0], files[maps[0]]), source=maps[0])


def _named(files: Mapping[str, bytes], name: str) -> bytes:
    """The bytes of a file the map names."""
    for held in (name, f"{name}.gz"):
        if held in files:
            return unpack(held, files[held])
    raise InputError(name, [f"missing, though the map names it (got {', '.join(sorted(files))})"])


class _Build:
    """The state of one import."""

    def __init__(self, columns: ColumnMap, tally: Tally) -> None:
        self.map = columns
        self.tally = tally
        self.material = Material(columns, tally)
        self.decisions: list[Decision] = []
        self.asked: dict[str, str] = {}
        self.records: dict[_Answer, str] = {}
        self.left_out: set[_Answer] = set()
        self.unread = 0
        self.none_read = False
        self.robbed = 0
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.bad = 0

    # --- decisions --------------------------------------------------------------------------------------------------

    def read_decisions(self, name: str, sheet: Sheet) -> None:
        """Every row as a decision, or as one left out; what concerns many of them is said once."""
        columns, rows = self.map.columns, sheet.rows
        self.unread = sheet.lost
        if not self._readable(name, sheet):
            self.none_read, self.bad = True, len(rows) + sheet.lost
            return
        refused = self.material.see(rows) | self._two_families(rows)
        for row in rows:
            before = len(self.tally.problems)
            made = self._decision(row, columns)
            if made is None or row.place in refused or len(self.tally.problems) > before:
                self.left_out.add(_answer(row, columns.episode, columns.step, columns.agent, columns.replicate))
                continue
            self.decisions.append(made)
            if made.derivation.kind == "honest":
                self.records[made.episode_id, made.step, made.agent.id, made.replicate] = made.record_id
        self._leave_orphans_out()
        self.bad = len(rows) + sheet.lost - len(self.decisions)
        self.material.tell_early()
        self.material.tell_unknown(sheet.lost)
        if self.robbed:
            what = (
                f"{self.robbed} decisions without a context: no prompt, and their facts were refused or without value"
            )
            self.tally.problem(name, what)

    def _leave_orphans_out(self) -> None:
        """Takes out control records whose honest record is not there: they cannot be held against it."""
        known = {decision.record_id for decision in self.decisions if decision.derivation.kind == "honest"}
        kept = []
        for decision in self.decisions:
            parent = decision.derivation.parent
            if parent is None or parent in known:
                kept.append(decision)
                continue
            what = f"made from an honest record that was not imported (got {parent!r:.80})"
            self.tally.problem(f"{decision.provenance.path}, {self.map.columns.parent or 'parent'}", what)
        self.decisions = kept

    def _readable(self, name: str, sheet: Sheet) -> bool:
        """Whether the file has rows, and every column that the map names."""
        if not sheet.rows:
            if not (sheet.broken or sheet.lost):
                self.tally.problem(name, "holds no decision: no row below the header")
            return False
        wanted = {c for c in self.map.columns.model_dump().values() if c}
        wanted |= set(self.map.weights) | set(self.map.known_scores)
        wanted |= {c for group in self.map.rationales.model_dump().values() for c in group}
        absent = sorted(wanted - set(sheet.columns))
        for column in absent:
            self.tally.problem(name, f"no column {column!r} (got {', '.join(sheet.columns)}); see the map")
        return not absent

    def _two_families(self, rows: Sequence[Row]) -> set[str]:
        """The places of all decisions of agents that have two families: who is in conflict with them is not known."""
        columns = self.map.columns
        places: dict[str, list[str]] = {}
        families: dict[str, dict[str, str]] = {}
        for row in rows:
            agent, family = row.quiet.text(columns.agent), row.quiet.text(columns.family)
            if agent and family:
                families.setdefault(agent, {}).setdefault(family, row.place)
                places.setdefault(agent, []).append(row.place)
        refused: set[str] = set()
        for agent, found in families.items():
            if len(found) > 1:
                (first, at), (second, place), *_rest = found.items()
                what = f"{agent!r} is of two families (got {second!r}, and {first!r} at {at})"
                self.tally.problem(f"{place}, {columns.family}", f"{what}; an agent has one in all of its decisions")
                refused.update(places[agent])
        return refused

    def _decision(self, row: Row, columns: Columns) -> Decision | None:
        episode, agent, family, key = (
            row.text(column, needed=True)
            for column in (columns.episode, columns.agent, columns.family, columns.context)
        )
        decided_at = row.time(columns.decided_at, needed=True)
        step, replicate = row.whole(columns.step, 0, 0), row.whole(columns.replicate, 1, 1)
        if decided_at is None or not all((episode, agent, family, key)):
            return None
        name = f"{episode}/{step}/{agent}" if columns.step else f"{episode}/{agent}"
        derivation = self._derivation(row, columns, name)
        name = name if replicate == 1 else f"{name}/r{replicate}"
        name = name if derivation.kind == "honest" else f"{name}~{derivation.kind}"
        self._check_name(row, agent, name)
        context_id = self._context(row, key, decided_at)
        year, week, _ = decided_at.isocalendar()
        seconds = row.number(columns.seconds, 0, 1e9)
        source = self.map.provenance
        rationales = self._rationales(row)
        made = Decision(
            record_id=name,
            episode_id=episode,
            step=step,
            cluster=row.text(columns.cluster, needed=bool(columns.cluster)) or f"{year}-W{week:02d}",
            decided_at=decided_at,
            agent=Agent(id=agent, family=family, model=row.text(columns.model)),
            context_id=context_id or "",
            actions=self._actions(row, columns),
            rationales=rationales,
            format="generic",
            provenance=Provenance(
                source=source.source, path=row.place, commit=source.commit, licence=source.licence
            ),
            confidence=row.number(columns.confidence, 0, 1),
            call=CallFacts(seconds=seconds, timing_source="absent" if seconds is None else "measured"),
            replicate=replicate,
            derivation=derivation,
            missing=() if has_text(rationales) else (NO_TEXT,),
        )  # fmt: skip
        return made if context_id else None

    def _derivation(self, row: Row, columns: Columns, honest: str) -> Derivation:
        """How the record came about; ``honest`` is the id of the same agent's honest answer to the same question."""
        kind: Any = row.text(columns.derivation) or "honest"
        if kind not in get_args(DerivationKind):
            row.problem(
                columns.derivation or "", f"must be one of {', '.join(get_args(DerivationKind))} (got {kind!r:.60})"
            )
            return Derivation()
        known = {name: row.number(column, 1, 5) for column, name in self.map.known_scores.items()}
        scores = {name: value for name, value in known.items() if value is not None}
        if kind == "honest":
            if scores:
                row.problem(next(iter(self.map.known_scores)), "an honest record has no known score")
            return Derivation()
        parent = row.text(columns.parent) or (honest if kind in FROM_AN_HONEST_RECORD else None)
        return Derivation(kind=kind, parent=parent, known_scores=scores)

    def _check_name(self, row: Row, agent: str, name: str) -> None:
        """Notes an agent that cannot be named, or that is named twice on one question."""
        if not re.fullmatch(NAME, agent):
            row.problem(self.map.columns.agent, f"{NO_NAME} (got {agent!r:.60})")
        if name in self.asked:
            what = f"{agent!r} is named twice in one cycle (first at {self.asked[name]})"
            row.problem(self.map.columns.agent, what)
        self.asked.setdefault(name, row.place)

    def _context(self, row: Row, key: str, decided_at: datetime) -> str | None:
        """The id of what the decision saw; None where it saw nothing, or something from after it."""
        columns = self.map.columns
        if self.material.after(key, decided_at, row.place):
            return None
        if not self.material.holds(key):
            if self.material.losses(key):
                self.robbed += 1
            else:
                row.problem(columns.context, f"a record without a context: no prompt, and no facts for {key!r}")
            return None
        cutoff = row.time(columns.cutoff)
        if cutoff is not None and cutoff > decided_at:
            row.problem(columns.cutoff or "", f"the cutoff is after the decision ({cutoff.isoformat()})")
        return self.material.context(key, cutoff)

    def _rationales(self, row: Row) -> tuple[Rationale, ...]:
        texts = self.map.rationales.model_dump()
        return tuple(
            Rationale(text=text, kind=kind) for kind in KINDS for column in texts[kind] for text in row.texts(column)
        )

    def _actions(self, row: Row, columns: Columns) -> tuple[Action, ...]:
        actions = []
        for column, instrument in self.map.weights.items():
            weight = self._weight(row, column)
            if weight:
                actions.append(Action(instrument=instrument, kind="target_weight", weight=weight))
        instrument = row.text(columns.instrument)
        kind: Any = row.text(columns.action) or "target_weight"
        if kind not in get_args(ActionKind):
            row.problem(columns.action or "", f"must be one of {', '.join(get_args(ActionKind))} (got {kind!r:.60})")
        elif instrument:
            actions.append(
                Action(
                    instrument=instrument,
                    kind=kind,
                    weight=self._weight(row, columns.weight),
                    quantity=row.number(columns.quantity),
                    price=row.number(columns.price),
                )
            )
        total = sum(abs(action.weight or 0.0) for action in actions)
        if total > MOST:
            row.problem(
                "", f"weights of {total:g} times net asset value (allowed at most {MOST:g}){self._advice('; ')}"
            )
        return tuple(actions)

    def _weight(self, row: Row, column: str | None) -> float | None:
        """The weight of a cell as a fraction of net asset value."""
        scale = 100.0 if self.map.weight_unit == "percent" else 1.0
        weight = row.number(column, -MOST * scale, MOST * scale, self._advice())
        return None if weight is None else weight / scale

    def _advice(self, before: str = "") -> str:
        return f"{before}{_PERCENT}" if self.map.weight_unit == "fraction" else ""

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def read_outcomes(self, name: str, sheet: Sheet) -> None:
        """Every row as the outcome of a decision; those of decisions that were left out are counted."""
        named = self.map.outcomes
        wanted = {column for column in named.model_dump().values() if column}
        absent = sorted(wanted - set(sheet.columns)) if sheet.rows else []
        if absent:
            self.tally.problem(name, f"no column {absent[0]!r} (got {', '.join(sheet.columns)}); see the map")
            return
        told: dict[tuple[str, str], str] = {}
        orphans: list[tuple[Row, _Answer]] = []
        for row in sheet.rows:
            before = len(self.tally.problems)
            key = _answer(row, named.episode, named.step, named.agent, named.replicate, quiet=False)
            record = self.records.get(key)
            outcome = self._outcome(row, record or "", name)
            if len(self.tally.problems) > before:
                continue
            if record is None:
                orphans.append((row, key))
            elif outcome is None:
                self.tally.missing("outcome", record)
            else:
                self._keep(row, outcome, told)
        self._tell_orphans(orphans)

    def _outcome(self, row: Row, record: str, name: str) -> Outcome | None:
        named = self.map.outcomes
        value, benchmark = row.number(named.value), row.number(named.benchmark)
        resolved_at = row.time(named.resolved_at)
        if value is None:
            return None
        return Outcome(
            record_id=record,
            horizon=row.text(named.horizon, needed=True),
            value=value,
            benchmark=benchmark,
            resolved_at=resolved_at,
            source=name,
        )

    def _keep(self, row: Row, outcome: Outcome, told: dict[tuple[str, str], str]) -> None:
        """Keeps an outcome; of one that is told twice neither is kept, for which is meant is not known."""
        key = (outcome.record_id, outcome.horizon)
        if key in told:
            what = f"a second outcome of {key[0]!r} for {key[1]!r} (first at {told[key]})"
            row.problem(self.map.outcomes.horizon, f"{what}; each decision has one a horizon")
            self.outcomes.pop(key, None)
        else:
            told[key] = row.place
            self.outcomes[key] = outcome

    def _tell_orphans(self, orphans: Sequence[tuple[Row, _Answer]]) -> None:
        """Outcomes of nothing are problems; those that only follow from another problem are not told one by one."""
        followers = [key for _, key in orphans if self.none_read or key in self.left_out]
        if followers:
            self.tally.counts["outcomes of decisions that were left out"] += len(followers)
        unknown = [(row, key) for row, key in orphans if not self.none_read and key not in self.left_out]
        if unknown and self.unread:
            row, key = unknown[0]
            what = f"{len(unknown)} outcomes of no imported decision (the first has {_asked(key)})"
            self.tally.problem(row.place, f"{what}; {self.unread} rows of {self.map.files.decisions} were unreadable")
            return
        for row, key in unknown:
            row.problem("", f"an outcome of no imported decision (got {_asked(key)})")

    def result(self) -> Imported:
        """The records and the report."""
        decisions = tuple(self.decisions)
        used = {decision.context_id for decision in decisions}
        contexts = {name: context for name, context in self.material.contexts.items() if name in used}
        counts = {
            "decisions": len(decisions),
            "contexts": len(contexts),
            "agents": len({decision.agent.id for decision in decisions}),
            "clusters": len({decision.cluster for decision in decisions}),
            "outcomes": len(self.outcomes),
            "facts": sum(len(context.facts) for context in contexts.values()),
        }
        lossy = sum(bool(context.missing) for context in contexts.values())
        if lossy:
            counts["contexts that lost something"] = lossy
        self.tally.counts = Counter(counts | dict(self.tally.counts))
        report = self.tally.report("generic", decisions, bad=self.bad)
        outcomes = tuple(self.outcomes.values())
        return Imported(decisions=decisions, contexts=contexts, outcomes=outcomes, report=report)


def _answer(
    row: Row, episode: str | None, step: str | None, agent: str | None, replicate: str | None, *, quiet: bool = True
) -> _Answer:
    """Which answer to which question a row is about."""
    row = row.quiet if quiet else row
    return (
        row.text(episode, needed=True),
        row.whole(step, 0, 0),
        row.text(agent, needed=True),
        row.whole(replicate, 1, 1),
    )


def _asked(key: _Answer) -> str:
    return f"episode {key[0]!r:.60}, agent {key[2]!r:.60}"
