"""Anyone's own agent: CSV or JSONL with a column map, into records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, get_args

from assaymark.errors import InputError, Problem
from assaymark.importers.generic.cells import Row, read_rows
from assaymark.importers.generic.mapping import ColumnMap, Columns, looks_like_outcome, parse_map
from assaymark.importers.report import Imported, Tally, refusal
from assaymark.importers.source import NAME, midnight, text_of, unpack
from assaymark.records import (
    Action,
    ActionKind,
    Agent,
    CallFacts,
    Context,
    Decision,
    Fact,
    Instrument,
    Outcome,
    Provenance,
    Rationale,
    RationaleKind,
    content_id,
)

Progress = Callable[[str, int, int], None]

KINDS: tuple[RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "holding", "stage", "arena")
"""The order in which rationales are stored: what a judge reads first."""


def import_generic(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None
) -> Imported:
    """Decisions, contexts and outcomes from files of your own, read through a column map.

    Nothing that happened after a decision can enter its context: a fact that became available later, a dated row from
    later, an outcome offered as facts are problems, not warnings.

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
        ("facts", columns.files.facts, build.read_facts),
        ("decisions", columns.files.decisions, build.read_decisions),
        ("outcomes", columns.files.outcomes, build.read_outcomes),
    ):
        if name is not None:
            rows = list(read_rows(name, _named(files, name), tally))
            read(name, rows)
            tell(what, len(rows), len(rows))
    if tally.problems and not keep_going:
        raise refusal("generic", tally.problems)
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
        self.facts: dict[str, list[tuple[str, Fact]]] = {}
        self.later: dict[str, list[tuple[str, str, datetime]]] = {}
        self.prompts: dict[str, str] = {}
        self.used: dict[str, datetime] = {}
        self.contexts: dict[str, Context] = {}
        self.decisions: list[Decision] = []
        self.asked: dict[str, str] = {}
        self.records: dict[tuple[str, int, str], str] = {}
        self.outcomes: list[Outcome] = []
        self.bad = 0

    # --- facts ------------------------------------------------------------------------------------------------------

    def read_facts(self, name: str, rows: list[Row]) -> None:
        named = self.map.facts
        wanted = {column for column in named.model_dump().values() if column}
        if rows and not self._has(name, rows[0], wanted):
            return
        for row in rows:
            key = row.text(named.context, needed=True)
            before = len(self.tally.problems)
            fact = self._fact(row, named.model_dump(), len(self.facts.get(key, ())))
            good = fact is not None and len(self.tally.problems) == before
            if fact is not None and good:
                self.facts.setdefault(key, []).append((row.place, fact))
            # A good fact's own time is checked as such; of a bad one even that may show it to be an outcome.
            skip = {named.value, named.note, named.available_at if good else None}
            self.later.setdefault(key, []).extend(_dates(row, skip))

    def _has(self, name: str, row: Row, wanted: Iterable[str]) -> bool:
        """Whether the file has the columns, none of which may hold outcomes."""
        absent = sorted(set(wanted) - set(row.cells))
        if absent:
            self.tally.problem(name, f"no column {absent[0]!r} (got {', '.join(row.cells)}); see the map")
        outcomes = [column for column in row.cells if looks_like_outcome(column)]
        if outcomes:
            what = f"column {outcomes[0]!r} names an outcome; outcomes are declared in files.outcomes, never as facts"
            self.tally.problem(name, what)
        return not absent and not outcomes

    def _fact(self, row: Row, named: Mapping[str, Any], number: int) -> Fact | None:
        field, unit = row.text(named["field"], needed=True), row.text(named["unit"], needed=True)
        available_at = row.time(named["available_at"], needed=True)
        value: float | str | None
        value = row.text(named["value"]) or None if unit in ("text", "date") else row.number(named["value"])
        if value is None and row.cells.get(named["value"]) in (None, ""):
            self.tally.missing("fact value", row.place)
        if value is None or available_at is None:
            return None
        return Fact(
            id=f"f{number + 1}",
            instrument=row.text(named["instrument"]),
            field=field,
            value=value,
            unit=unit,
            available_at=available_at,
            as_of=row.time(named["as_of"]),
            source=row.text(named["source"]) or self.map.files.facts or "",
            note=row.text(named["note"]),
        )

    # --- decisions --------------------------------------------------------------------------------------------------

    def read_decisions(self, name: str, rows: list[Row]) -> None:
        columns = self.map.columns
        wanted = {c for c in columns.model_dump().values() if c} | set(self.map.weights)
        wanted |= {c for group in self.map.rationales.model_dump().values() for c in group}
        absent = sorted(wanted - {column for row in rows for column in row.cells})
        if absent:
            held = ", ".join(rows[0].cells) if rows else "no rows"
            for column in absent:
                self.tally.problem(name, f"no column {column!r} (got {held}); see the map")
            self.bad = len(rows)
            return
        self._material(rows, columns)
        for row in rows:
            before = len(self.tally.problems)
            made = self._decision(row, columns)
            if made is None or len(self.tally.problems) > before:
                self.bad += 1
                continue
            self.decisions.append(made)
            self.records[made.episode_id, made.step, made.agent.id] = made.record_id

    def _material(self, rows: Iterable[Row], columns: Columns) -> None:
        """The prompt of each context and the first time it was used; a second prompt is a problem."""
        for row in rows:
            quiet = Row(row.place, row.cells, Tally())
            key, prompt, at = quiet.text(columns.context), quiet.text(columns.prompt), quiet.time(columns.decided_at)
            first = self.prompts.get(key, "")
            if prompt and first and prompt != first:
                row.problem(columns.context, f"{key!r} already stands for another prompt; give this one its own value")
            self.prompts[key] = first or prompt
            if at is not None:
                self.used[key] = min(at, self.used.get(key, at))

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
        name = name if replicate == 1 else f"{name}/r{replicate}"
        if not re.fullmatch(NAME, agent):
            row.problem(columns.agent, f"cannot be a name: no control characters and none of []=,| (got {agent!r:.60})")
        if name in self.asked:
            row.problem(columns.agent, f"{agent!r} is named twice in one cycle (first at {self.asked[name]})")
        self.asked.setdefault(name, row.place)
        context_id = self._context(row, key, decided_at)
        year, week, _ = decided_at.isocalendar()
        seconds = row.number(columns.seconds, 0, 1e9)
        source = self.map.provenance
        return Decision(
            record_id=name,
            episode_id=episode,
            step=step,
            cluster=row.text(columns.cluster, needed=bool(columns.cluster)) or f"{year}-W{week:02d}",
            decided_at=decided_at,
            agent=Agent(id=agent, family=family, model=row.text(columns.model)),
            context_id=context_id or "",
            actions=self._actions(row, columns),
            rationales=self._rationales(row),
            format="generic",
            provenance=Provenance(
                source=source.source, path=row.place, commit=source.commit, licence=source.licence
            ),
            confidence=row.number(columns.confidence, 0, 1),
            call=CallFacts(seconds=seconds, timing_source="absent" if seconds is None else "measured"),
            replicate=replicate,
        )  # fmt: skip

    def _rationales(self, row: Row) -> tuple[Rationale, ...]:
        texts = self.map.rationales.model_dump()
        return tuple(
            Rationale(text=text, kind=kind) for kind in KINDS for column in texts[kind] for text in row.texts(column)
        )

    def _actions(self, row: Row, columns: Columns) -> tuple[Action, ...]:
        scale = 100.0 if self.map.weight_unit == "percent" else 1.0
        actions = []
        for column, instrument in self.map.weights.items():
            weight = row.number(column, -100 * scale, 100 * scale)
            if weight:
                actions.append(Action(instrument=instrument, kind="target_weight", weight=weight / scale))
        instrument = row.text(columns.instrument)
        kind: Any = row.text(columns.action) or "target_weight"
        if kind not in get_args(ActionKind):
            row.problem(columns.action or "", f"must be one of {', '.join(get_args(ActionKind))} (got {kind!r:.60})")
        elif instrument:
            weight = row.number(columns.weight, -100 * scale, 100 * scale)
            actions.append(
                Action(
                    instrument=instrument,
                    kind=kind,
                    weight=None if weight is None else weight / scale,
                    quantity=row.number(columns.quantity),
                    price=row.number(columns.price),
                )
            )
        return tuple(actions)

    # --- contexts ---------------------------------------------------------------------------------------------------

    def _context(self, row: Row, key: str, decided_at: datetime) -> str | None:
        """The id of what the decision saw; None after its problems were noted."""
        columns = self.map.columns
        facts, prompt = self.facts.get(key, []), self.prompts.get(key, "")
        self._refuse_future(row, key, decided_at)
        if not prompt and not facts:
            row.problem(columns.context, f"a record without a context: no prompt, and no facts for {key!r}")
            return None
        cutoff = self._cutoff(row, facts, self.used[key])
        if cutoff[0] > decided_at:
            row.problem(
                columns.cutoff or columns.context, f"the cutoff is after the decision ({cutoff[0].isoformat()})"
            )
        context = Context(
            completeness=self.map.completeness,
            cutoff=cutoff[0],
            cutoff_source=cutoff[1],
            prompt=prompt,
            facts=tuple(fact for _, fact in facts),
            instruments=tuple(Instrument(id=name, aliases=(name,)) for name in self._instruments(facts)),
        )
        name = content_id(context)
        self.contexts[name] = context
        return name

    def _cutoff(self, row: Row, facts: list[tuple[str, Fact]], used: datetime) -> tuple[datetime, str]:
        """As stated, else the latest fact's time, else when the material was first used; with where it was read."""
        given = row.time(self.map.columns.cutoff)
        if given is not None:
            return given, f"column {self.map.columns.cutoff}"
        if facts:
            return max(fact.available_at for _, fact in facts), "latest available_at of its facts"
        return used, f"column {self.map.columns.decided_at} of its first use"

    def _instruments(self, facts: Iterable[tuple[str, Fact]]) -> list[str]:
        named = [fact.instrument for _, fact in facts if fact.instrument]
        return list(dict.fromkeys([*named, *self.map.weights.values()]))

    def _refuse_future(self, row: Row, key: str, decided_at: datetime) -> None:
        """Notes every fact of the context that lies after the decision."""
        for place, fact in self.facts.get(key, ()):
            if fact.available_at > decided_at:
                what = f"a fact from the future: available {fact.available_at.isoformat()}, used by the decision of"
                self.tally.problem(f"{place}, {fact.field}", f"{what} {decided_at.isoformat()} ({row.place})")
        for place, column, at in self.later.get(key, ()):
            if at > decided_at:
                what = f"dated {at:%Y-%m-%d}, after the decision of {decided_at.isoformat()} ({row.place})"
                self.tally.problem(f"{place}, {column}", f"{what}: an outcome is never context; see files.outcomes")

    # --- outcomes ---------------------------------------------------------------------------------------------------

    def read_outcomes(self, name: str, rows: list[Row]) -> None:
        named = self.map.outcomes
        wanted = {column for column in named.model_dump().values() if column}
        absent = sorted(wanted - set(rows[0].cells)) if rows else []
        if absent:
            self.tally.problem(name, f"no column {absent[0]!r} (got {', '.join(rows[0].cells)}); see the map")
            return
        for row in rows:
            key = (
                row.text(named.episode, needed=True),
                row.whole(named.step, 0, 0),
                row.text(named.agent, needed=True),
            )
            value, benchmark = row.number(named.value), row.number(named.benchmark)
            resolved_at = row.time(named.resolved_at)
            record = self.records.get(key)
            if record is None:
                row.problem("", f"an outcome of no imported decision (got episode {key[0]!r}, agent {key[2]!r})")
            elif value is None:
                self.tally.missing("outcome", record)
            else:
                self.outcomes.append(
                    Outcome(
                        record_id=record,
                        horizon=row.text(named.horizon, needed=True),
                        value=value,
                        benchmark=benchmark,
                        resolved_at=resolved_at,
                        source=name,
                    )
                )

    def result(self) -> Imported:
        decisions = tuple(self.decisions)
        used = {decision.context_id for decision in decisions}
        contexts = {name: context for name, context in self.contexts.items() if name in used}
        self.tally.counts.update(
            {
                "decisions": len(decisions),
                "contexts": len(contexts),
                "agents": len({decision.agent.id for decision in decisions}),
                "clusters": len({decision.cluster for decision in decisions}),
                "outcomes": len(self.outcomes),
                "facts": sum(len(context.facts) for context in contexts.values()),
            }
        )
        report = self.tally.report("generic", decisions, bad=self.bad)
        return Imported(decisions=decisions, contexts=contexts, outcomes=tuple(self.outcomes), report=report)


def _dates(row: Row, skip: Iterable[str | None]) -> list[tuple[str, str, datetime]]:
    """The cells of a facts row that are dates as a whole: a row dated after the decision is an outcome."""
    found = []
    for column, cell in row.cells.items():
        if column in skip or not isinstance(cell, str):
            continue
        try:
            found.append((row.place, column, midnight(datetime.fromisoformat(cell).date())))
        except ValueError:
            continue
    return found
