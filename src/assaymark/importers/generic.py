"""Records of your own agent: CSV or JSONL files, read through a column map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args
from zoneinfo import ZoneInfo

from assaymark.errors import InputError, Problem
from assaymark.importers.column_map import (
    ColumnMap,
    Columns,
    OutcomeColumns,
    Part,
    parse_map,
)
from assaymark.importers.generic_material import Material
from assaymark.importers.read import (
    NAME,
    NO_NAME,
    Progress,
    Row,
    Sheet,
    read_sheet,
    round_width,
    rounds_of,
    text_of,
)
from assaymark.importers.report import NO_TEXT, Imported, Tally, has_text
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
from assaymark.rows import unpack

MOST = 10.0
"""The largest weight, and sum of weights without their signs, in net asset values: beyond what leverage allows."""

FROM_AN_HONEST_RECORD: tuple[DerivationKind, ...] = ("paraphrase", "fact_flip", "length_matched")
"""The control cells that are made from one honest record each and held against it."""

KINDS: tuple[RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "holding", "stage", "arena")
"""The order in which rationales are stored: what a judge reads first."""

_PERCENT = 'if your weights are in percent, say weight_unit = "percent" in the map'


_Answer = tuple[str, int, str, int]


def import_generic(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: Progress | None = None
) -> Imported:
    """Decisions, contexts and outcomes from files of your own, read through a column map.

    ``files`` are one ``*.toml`` map and the files that it names, plain or gzip. Nothing that happened after a decision
    can enter its context: a fact that became available later, a dated row from later, an outcome offered as facts are
    problems, not warnings. So are facts of a context that no decision names. A context that lost a fact to a problem,
    or holds one without a value, is ``partial`` whatever the map says. `InputError`: the map or a file it names is
    missing or wrong; or, unless ``keep_going``, all that is wrong in them.
    """
    maps = sorted(name for name in files if name.endswith(".toml"))
    if len(maps) != 1:
        held = ", ".join(maps) or "none"
        what = f"one column map is needed (got {held}); `assaymark import template` prints one"
        raise InputError("map.toml", [Problem("", what)])
    columns = parse_map(text_of(maps[0], files[maps[0]]), source=maps[0])
    tally = Tally()
    build = _Build(columns, tally)
    for what, name, read in (
        ("facts", columns.files.facts, build.material.read_facts),
        ("constraints", columns.files.constraints, build.material.read_constraints),
        ("decisions", columns.files.decisions, build.read_decisions),
        ("outcomes", columns.files.outcomes, build.read_outcomes),
    ):
        if name is None:
            continue
        packed = next((one for one in (name, f"{name}.gz") if one in files), None)
        if packed is None:
            raise InputError(name, [f"missing, though the map names it (got {', '.join(sorted(files))})"])
        used_columns = build.columns_of(what)
        sheet = read_sheet(name, unpack(packed, files[packed]), tally, used_columns, build.zone)
        if unused := [column for column in sheet.columns if column not in used_columns]:
            tally.no_place(f"{', '.join(unused)} of {name}", sheet.rows[0].place, len(sheet.rows))
        read(name, sheet)
        if progress is not None:
            progress(what, len(sheet.rows), len(sheet.rows))
    if tally.problems and not keep_going:
        raise InputError("generic", tally.problems)
    used = {decision.context_id for decision in build.decisions}
    if lossy := sum(bool(one.missing) for name, one in build.material.contexts.items() if name in used):
        tally.counts = Counter({"contexts that lost something": lossy} | dict(tally.counts))
    outcomes = tuple(build.outcomes.values())
    return tally.imported("generic", build.decisions, build.material.contexts, outcomes, bad=build.bad)


class _Build:
    """The decisions and outcomes of one import."""

    def __init__(self, columns: ColumnMap, tally: Tally) -> None:
        self.map = columns
        self.tally = tally
        self.material = Material(columns, tally)
        self.decisions: list[Decision] = []
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.bad = 0
        self._records: dict[_Answer, str] = {}
        self._left_out: set[_Answer] = set()
        self._rounds: dict[tuple[str, datetime], tuple[str, int]] = {}
        self._unread = 0
        self._none_read = False
        self.zone = None if columns.time_zone is None else ZoneInfo(columns.time_zone)

    def columns_of(self, what: str) -> set[str]:
        """The columns of one of the files that the map names."""
        parts: dict[str, tuple[Part, ...]] = {
            "decisions": (self.map.columns, self.map.rationales), "facts": (self.map.facts,),
            "constraints": (self.map.constraints,), "outcomes": (self.map.outcomes,),
        }  # fmt: skip
        named = [column for part in parts[what] for column in part.model_dump().values()]
        found = {name for column in named for name in ([column] if isinstance(column, str) else column or ())}
        if what == "outcomes" and self.map.round is not None and self.map.columns.episode is None:
            found.discard(self.map.outcomes.episode)
        return found | ({*self.map.weights, *self.map.known_scores} if what == "decisions" else set())

    def _question(self, row: Row, columns: Columns | OutcomeColumns) -> tuple[str, int]:
        """Which question a row answers: its episode and step, or its round and how many the agent answered in it."""
        grouped = self.map.columns.episode is not None
        episode = row.text(columns.episode, needed=True) if grouped else ""
        if self.map.round is None:
            return episode, row.whole(columns.step, 0, 0)
        at = row.time(columns.decided_at, needed=True)
        name, nth = (episode, 0) if at is None else self._rounds.get((self._who(row, columns), at), (f"{at}", 0))
        return f"{episode}/{name}" if grouped else name, nth

    def _who(self, row: Row, columns: Columns | OutcomeColumns) -> str:
        """Whose decisions are counted within a round: one run of an agent, honest or of one kind of control."""
        derivation = row.quiet.text(columns.derivation) if isinstance(columns, Columns) else ""
        parts = (columns.episode if self.map.columns.episode else None, columns.agent, columns.replicate)
        return "\n".join([*(str(row.cells.get(column or "", "")) for column in parts), derivation or "honest"])

    def _answer(self, row: Row, columns: Columns | OutcomeColumns) -> _Answer:
        """Which answer to which question a row is about."""
        episode, step = self._question(row, columns)
        return episode, step, row.text(columns.agent, needed=True), row.whole(columns.replicate, 1, 1)

    def read_decisions(self, name: str, sheet: Sheet) -> None:
        """Every row as a decision, or as one left out; what concerns many of them is said once."""
        columns, rows = self.map.columns, sheet.rows
        self._unread = sheet.lost
        absent = sorted(self.columns_of("decisions") - set(sheet.columns)) if rows else []
        for column in absent:
            self.tally.problem(name, f"no column {column!r} (got {', '.join(sheet.columns)}); see the map")
        if not rows and not (sheet.broken or sheet.lost):
            self.tally.problem(name, "holds no decision: no row below the header")
        if absent or not rows:
            self._none_read, self.bad = True, len(rows) + sheet.lost
            return
        refused = self.material.see(rows) | self._two_families(rows)
        if self.map.round is not None:
            asked = [(self._who(row, columns), at) for row in rows if (at := row.quiet.time(columns.decided_at))]
            self._rounds = rounds_of(asked, round_width(self.map.round))
        made: list[Decision] = []
        groups = list(self._groups(rows, refused))
        for group in groups:
            before, row = len(self.tally.problems), group[0]
            one = self._decision(group, columns)
            if one is None or not refused.isdisjoint(r.place for r in group) or len(self.tally.problems) > before:
                self._left_out.add(self._answer(row.quiet, columns))
                continue
            made.append(one)
            if one.derivation.kind == "honest":
                self._records[one.episode_id, one.step, one.agent.id, one.replicate] = one.record_id
        # a control record without its honest record cannot be held against it
        known = {one.record_id for one in made if one.derivation.kind == "honest"}
        for one in made:
            if one.derivation.parent is None or one.derivation.parent in known:
                self.decisions.append(one)
                continue
            what = f"made from an honest record that was not imported (got {one.derivation.parent!r:.80})"
            self.tally.problem(f"{one.provenance.path}, {columns.parent or 'parent'}", what)
        self.bad = len(groups) + sheet.lost - len(self.decisions)
        self.material.finish(sheet.lost)
        if robbed := self.material.robbed:
            why = "no prompt, and their facts were refused or without value"
            self.tally.problem(name, f"{robbed} decisions without a context: {why}")

    def _groups(self, rows: Sequence[Row], refused: set[str]) -> Iterable[list[Row]]:
        """The rows of each decision: a further row of one is a further order, so it needs another instrument."""
        columns = self.map.columns
        found: dict[tuple[_Answer, str], list[Row]] = {}
        for row in rows:
            answer = self._answer(row.quiet, columns)
            group = found.setdefault((answer, row.quiet.text(columns.derivation) or "honest"), [])
            group.append(row)
            instruments = [one.quiet.text(columns.instrument) for one in group]
            first = group[instruments.index(instruments[-1])]
            if answer[2] and (first is not row or not all(instruments)) and len(group) > 1:
                what = f"{answer[2]!r} is named twice in one cycle (first at {first.place})"
                hint = "a further order needs another instrument, a further decision another step or replicate"
                row.problem(columns.agent, f"{what}; {hint}")
                refused.add(row.place)
        return found.values()

    def _agrees(self, row: Row, head: Row, columns: Columns) -> None:
        """Notes where a further order says another thing of its decision than the first one does."""
        shared = ("family", "model", "decided_at", "context", "cutoff", "cluster", "seconds", "parent")
        for column in filter(None, (*(getattr(columns, name) for name in shared), *self.map.known_scores)):
            said, first = row.cells.get(column), head.cells.get(column)
            if said not in (None, "", first):
                what = f"differs from the first order of its decision (got {said!r:.60}, and {first!r:.60}"
                row.problem(column, f"{what} at {head.place}); leave it empty, or give it another step")

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

    def _decision(self, rows: Sequence[Row], columns: Columns) -> Decision | None:
        """One decision from its rows: the first says what it is, each has an order."""
        row, *further = rows
        for one in further:
            self._agrees(one, row, columns)
        family, key = row.text(columns.family, needed=True), row.text(columns.context, needed=True)
        decided_at = row.time(columns.decided_at, needed=True)
        episode, step, agent, replicate = self._answer(row if decided_at else row.quiet, columns)
        if decided_at is None or not all((episode, agent, family, key)):
            return None
        numbered = columns.step or self.map.round
        name = f"{episode}/{step}/{agent}" if numbered else f"{episode}/{agent}"
        derivation = self._derivation(row, columns, name)
        name = name if replicate == 1 else f"{name}/r{replicate}"
        name = name if derivation.kind == "honest" else f"{name}~{derivation.kind}"
        if not re.fullmatch(NAME, agent):
            row.problem(columns.agent, f"{NO_NAME} (got {agent!r:.60})")
        context_id = self.material.context(row, key, decided_at)
        year, week, _ = decided_at.isocalendar()
        seconds = row.number(columns.seconds, 0, 1e9)
        source, texts = self.map.provenance, self.map.rationales.model_dump()
        said = {
            (text, kind): None
            for kind in KINDS for column in texts[kind] for one in rows for text in one.texts(column)
        }  # fmt: skip
        rationales = tuple(Rationale(text=text, kind=kind) for text, kind in said)
        sure = {value for one in rows if (value := one.number(columns.confidence, 0, 1)) is not None}
        actions = [action for one in rows for action in self._actions(one, columns, each=len(sure) > 1)]
        total = sum(abs(action.weight or 0.0) for action in actions)
        if total > MOST:
            what = f"weights of {total:g} times net asset value (allowed at most {MOST:g})"
            row.problem("", what if self.map.weight_unit == "percent" else f"{what}; {_PERCENT}")
        made = Decision(
            record_id=name,
            episode_id=episode,
            step=step,
            cluster=row.text(columns.cluster, needed=bool(columns.cluster)) or f"{year}-W{week:02d}",
            decided_at=decided_at,
            agent=Agent(id=agent, family=family, model=row.text(columns.model)),
            context_id=context_id or "",
            actions=tuple(actions),
            rationales=rationales,
            format="generic",
            provenance=Provenance(
                source=source.source, path=row.place, commit=source.commit, licence=source.licence
            ),
            confidence=next(iter(sure)) if len(sure) == 1 else None,
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
            allowed = ", ".join(get_args(DerivationKind))
            row.problem(columns.derivation, f"must be one of {allowed} (got {kind!r:.60})")
            return Derivation()
        known = {name: row.number(column, *self.map.known_scale) for column, name in self.map.known_scores.items()}
        scores = {name: value for name, value in known.items() if value is not None}
        if kind == "honest":
            if scores:
                row.problem(next(iter(self.map.known_scores)), "an honest record has no known score")
            return Derivation()
        parent = row.text(columns.parent) or (honest if kind in FROM_AN_HONEST_RECORD else None)
        return Derivation(kind=kind, parent=parent, known_scores=scores)

    def _actions(self, row: Row, columns: Columns, *, each: bool) -> tuple[Action, ...]:
        """The orders of one row; ``each`` where orders have confidences of their own."""
        fraction = self.map.weight_unit == "fraction"
        scale, advice = (1.0, _PERCENT) if fraction else (100.0, "")

        def weight_in(column: str | None) -> float | None:
            weight = row.number(column, -MOST * scale, MOST * scale, advice)
            return None if weight is None else weight / scale

        actions = [
            Action(instrument=instrument, kind="target_weight", weight=weight)
            for column, instrument in self.map.weights.items()
            if (weight := weight_in(column))
        ]
        instrument = row.text(columns.instrument)
        kind: Any = row.text(columns.action) or "target_weight"
        if kind not in get_args(ActionKind):
            row.problem(columns.action, f"must be one of {', '.join(get_args(ActionKind))} (got {kind!r:.60})")
        elif instrument:
            actions.append(
                Action(
                    instrument=instrument,
                    kind=kind,
                    weight=weight_in(columns.weight),
                    quantity=row.number(columns.quantity),
                    price=row.number(columns.price),
                    leverage=row.number(columns.leverage, 0, 1000),
                    stop=row.number(columns.stop),
                    target=row.number(columns.target),
                    confidence=row.quiet.number(columns.confidence, 0, 1) if each else None,
                )
            )
        return tuple(actions)

    def read_outcomes(self, name: str, sheet: Sheet) -> None:
        """Every row as the outcome of a decision; those of decisions that were left out are counted."""
        named = self.map.outcomes
        absent = sorted(self.columns_of("outcomes") - set(sheet.columns)) if sheet.rows else []
        if absent:
            self.tally.problem(name, f"no column {absent[0]!r} (got {', '.join(sheet.columns)}); see the map")
            return
        first: dict[tuple[str, str], str] = {}
        unknown: list[tuple[Row, _Answer]] = []
        for row in sheet.rows:
            before = len(self.tally.problems)
            answer = self._answer(row, named)
            record = self._records.get(answer)
            value, benchmark, resolved = (
                row.number(named.value), row.number(named.benchmark), row.time(named.resolved_at)
            )  # fmt: skip
            horizon = "" if value is None else row.text(named.horizon, needed=True)
            if len(self.tally.problems) > before:
                continue
            if record is None:
                # one that only follows from another problem is not said by itself
                if self._none_read or answer in self._left_out:
                    self.tally.counts["outcomes of decisions that were left out"] += 1
                else:
                    unknown.append((row, answer))
            elif value is None:
                self.tally.missing("outcome", record)
            elif (record, horizon) in first:  # which of two is meant is not known
                what = f"a second outcome of {record!r} for {horizon!r} (first at {first[record, horizon]})"
                row.problem(named.horizon, f"{what}; each decision has one a horizon")
                self.outcomes.pop((record, horizon), None)
            else:
                first[record, horizon] = row.place
                self.outcomes[record, horizon] = Outcome(
                    record_id=record,
                    horizon=horizon,
                    value=value,
                    benchmark=benchmark,
                    resolved_at=resolved,
                    source=name,
                )
        asked = [f"episode {answer[0]!r:.60}, agent {answer[2]!r:.60}" for _, answer in unknown]
        if unknown and self._unread:
            what = f"{len(unknown)} outcomes of no imported decision (the first has {asked[0]})"
            why = f"{self._unread} rows of {self.map.files.decisions} were unreadable"
            self.tally.problem(unknown[0][0].place, f"{what}; {why}")
            return
        for (row, _), who in zip(unknown, asked, strict=True):
            row.problem("", f"an outcome of no imported decision (got {who})")
