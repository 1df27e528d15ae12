"""Import records of a custom agent from CSV or JSON files through a column map."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, get_args
from zoneinfo import ZoneInfo

import assaymark.records as records
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.importers import read
from assaymark.importers.report import Imported, Tally, rationales_of, text_missing, week_of
from assaymark.rows import unpack
from assaymark.text import count_of

MOST = 10.0
"""Largest weight, and largest sum of absolute weights, as multiples of the net asset value."""

FROM_AN_HONEST_RECORD: tuple[records.DerivationKind, ...] = ("paraphrase", "fact_flip", "length_matched")
"""Controls that are derived from one honest record each and compared with it."""

KINDS: tuple[records.RationaleKind, ...] = ("summary", "portfolio", "risk", "candidate", "holding", "stage", "arena")
"""Order in which rationales are stored and shown to a judge."""

_PERCENT = 'if your weights are in percent, say weight_unit = "percent" in the map'

_Answer = tuple[str, int, str, int]


def import_generic(
    files: Mapping[str, bytes], *, keep_going: bool = False, progress: read.Progress | None = None
) -> Imported:
    """Import decisions, contexts and outcomes from custom files through a column map."""
    maps = sorted(name for name in files if name.endswith(".toml"))
    if len(maps) != 1:
        names = ", ".join(maps) or "none"
        kind = f"one column map is needed (got {names}); `assaymark import template` prints one"
        raise InputError("map.toml", [Problem("", kind)])
    columns = read.parse_map(read.text_of(maps[0], files[maps[0]]), source=maps[0])
    tally = Tally()
    build = _DecisionBuilder(columns, tally)
    for kind, name, parse in (
        ("facts", columns.files.facts, build.material.read_facts),
        ("constraints", columns.files.constraints, build.material.read_constraints),
        ("decisions", columns.files.decisions, build.read_decisions),
        ("outcomes", columns.files.outcomes, build.read_outcomes),
    ):
        if name is None:
            continue
        packed = next((file for file in (name, f"{name}.gz") if file in files), None)
        if packed is None:
            raise InputError(name, [f"missing, though the map names it (got {', '.join(sorted(files))})"])
        used_columns = build.columns_of(kind)
        sheet = read.read_sheet(name, unpack(packed, files[packed]), tally, used_columns, build.zone)
        if unused := [column for column in sheet.columns if column not in used_columns]:
            tally.no_place(f"{', '.join(unused)} of {name}", sheet.rows[0].place, len(sheet.rows))
        parse(name, sheet)
        if progress is not None:
            progress(kind, len(sheet.rows), len(sheet.rows))
    tally.refuse("generic", keep_going)
    used = {decision.context_id for decision in build.decisions}
    if lossy := sum(bool(context.missing) for name, context in build.material.contexts.items() if name in used):
        tally.counts = Counter({"contexts that lost something": lossy} | dict(tally.counts))
    outcomes = tuple(build.outcomes.values())
    return tally.imported("generic", build.decisions, build.material.contexts, outcomes, build.bad)


class _DecisionBuilder:
    """Builds the decisions and outcomes of one import."""

    def __init__(self, columns: read.ColumnMap, tally: Tally) -> None:
        self.map = columns
        self.tally = tally
        self.material = ContextBuilder(columns, tally)
        self.decisions: list[records.Decision] = []
        self.outcomes: dict[tuple[str, str], records.Outcome] = {}
        self.bad = 0
        self._records: dict[_Answer, str] = {}
        self._left_out: set[_Answer] = set()
        self._rounds: dict[tuple[str, datetime], tuple[str, int]] = {}
        self._unread = 0
        self._none_read = False
        self.zone = None if columns.time_zone is None else ZoneInfo(columns.time_zone)

    def columns_of(self, file: str) -> set[str]:
        """Return the columns that the map names for one of the files."""
        parts: dict[str, tuple[read.MapPart, ...]] = {
            "decisions": (self.map.columns, self.map.rationales), "facts": (self.map.facts,),
            "constraints": (self.map.constraints,), "outcomes": (self.map.outcomes,),
        }  # fmt: skip
        named = [column for part in parts[file] for column in part.model_dump().values()]
        columns = {name for column in named for name in ([column] if isinstance(column, str) else column or ())}
        if file == "outcomes" and self.map.round is not None and self.map.columns.episode is None:
            columns.discard(self.map.outcomes.episode)
        return columns | ({*self.map.weights, *self.map.known_scores} if file == "decisions" else set())

    def _actor(self, row: read.DataRow, columns: read.DecisionColumns | read.OutcomeColumns) -> str:
        """Return the key by which decisions in a round are numbered: one run of an agent, honest or one control."""
        derivation = row.quiet.text(columns.derivation) if isinstance(columns, read.DecisionColumns) else ""
        parts = (columns.episode if self.map.columns.episode else None, columns.agent, columns.replicate)
        return "\n".join([*(str(row.cells.get(column or "", "")) for column in parts), derivation or "honest"])

    def _decision_key(self, row: read.DataRow, columns: read.DecisionColumns | read.OutcomeColumns) -> _Answer:
        """Return the key of a row's decision: episode and step, or round and number within it; agent and replicate."""
        grouped, step = self.map.columns.episode is not None, 0
        episode = row.text(columns.episode, needed=True, whole=True) if grouped else ""
        if self.map.round is None:
            step = row.integer(columns.step, 0, 0)
        else:
            at = row.time(columns.decided_at, needed=True)
            name, step = (episode, 0) if at is None else self._rounds.get((self._actor(row, columns), at), (f"{at}", 0))
            episode = f"{episode}/{name}" if grouped else name
        return episode, step, row.text(columns.agent, needed=True), row.integer(columns.replicate, 1, 1)

    def read_decisions(self, name: str, sheet: read.ParsedSheet) -> None:
        """Parse the decisions file; invalid decisions are left out, and problems of many rows are noted once."""
        columns, rows = self.map.columns, sheet.rows
        self._unread = sheet.lost
        absent = _missing_columns(name, sheet, self.columns_of("decisions"), self.tally)
        if not rows and not (sheet.broken or sheet.lost):
            self.tally.problem(name, "contains no decision: no row below the header")
        if absent or not rows:
            self._none_read, self.bad = True, len(rows) + sheet.lost
            return
        refused = self.material.read_prompts(rows)
        places: dict[str, list[str]] = {}
        families: dict[str, dict[str, str]] = {}
        for row in rows:
            agent, family = row.quiet.text(columns.agent), row.quiet.text(columns.family)
            if agent and family:
                families.setdefault(agent, {}).setdefault(family, row.place)
                places.setdefault(agent, []).append(row.place)
        alike: dict[str, str] = {}
        for agent, of in families.items():
            folded = " ".join(unicodedata.normalize("NFKC", agent).casefold().split())
            if (first := alike.setdefault(folded, agent)) != agent:  # blinding and readers would take them for one
                message = f"{agent!r} and {first!r} differ in case, spaces or encoding alone; an agent has one name"
                self.tally.problem(f"{places[agent][0]}, {columns.agent}", message)
                refused.update(places[agent])
            if len(of) > 1:  # conflicts of interest with such an agent would be undefined
                (first, there), (second, place), *_rest = of.items()
                message = f"{agent!r} is of two families (got {second!r}, and {first!r} at {there})"
                self.tally.problem(f"{place}, {columns.family}", f"{message}; an agent has one in all of its decisions")
                refused.update(places[agent])
        if self.map.round is not None:
            asked = [(self._actor(row, columns), at) for row in rows if (at := row.quiet.time(columns.decided_at))]
            self._rounds = read.rounds_of(asked, read.round_width(self.map.round))
        decisions: list[records.Decision] = []
        groups = list(self._groups(rows, refused))
        for group in groups:
            before, row = len(self.tally.problems), group[0]
            record = self._decision(group, columns)
            if record is None or not refused.isdisjoint(r.place for r in group) or len(self.tally.problems) > before:
                self._left_out.add(self._decision_key(row.quiet, columns))
                continue
            decisions.append(record)
            if record.derivation.kind == "honest":
                self._records[record.episode_id, record.step, record.agent.id, record.replicate] = record.record_id
        # a control needs the honest record that it was derived from
        honest = {decision.record_id for decision in decisions if decision.derivation.kind == "honest"}
        for record in decisions:
            if record.derivation.parent is None or record.derivation.parent in honest:
                self.decisions.append(record)
                continue
            message = f"made from an honest record that was not imported (got {record.derivation.parent!r:.80})"
            self.tally.problem(f"{record.provenance.path}, {columns.parent or 'parent'}", message)
        self.bad = len(groups) + sheet.lost - len(self.decisions)
        self.material.finish(sheet.lost)
        if robbed := self.material.robbed:
            reason = "no prompt, and their facts were refused or without value"
            self.tally.problem(name, f"{count_of(robbed, 'decisions')} without a context: {reason}")

    def _groups(self, rows: Sequence[read.DataRow], refused: set[str]) -> Iterable[list[read.DataRow]]:
        """Return the rows of each decision; each further row is another order, so it needs another instrument."""
        columns = self.map.columns
        groups: dict[tuple[_Answer, str], list[read.DataRow]] = {}
        for row in rows:
            answer = self._decision_key(row.quiet, columns)
            group = groups.setdefault((answer, row.quiet.text(columns.derivation) or "honest"), [])
            group.append(row)
            instruments = [row.quiet.text(columns.instrument) for row in group]
            first = group[instruments.index(instruments[-1])]
            if answer[2] and (first is not row or not all(instruments)) and len(group) > 1:
                message = f"{answer[2]!r} is named twice in one cycle (first at {first.place})"
                hint = "a further order needs another instrument, a further decision another step or replicate"
                row.problem(columns.agent, f"{message}; {hint}")
                refused.add(row.place)
        return groups.values()

    def _decision(self, rows: Sequence[read.DataRow], columns: read.DecisionColumns) -> records.Decision | None:
        """Build one decision from its rows: the first has its fields, and every row one order."""
        row, *further = rows
        shared = ("family", "model", "decided_at", "context", "cutoff", "cluster", "seconds", "parent")
        for extra in further:
            for column in filter(None, (*(getattr(columns, name) for name in shared), *self.map.known_scores)):
                cell, first = extra.cells.get(column), row.cells.get(column)
                if cell not in (None, "", first):
                    message = f"differs from the first order of its decision (got {cell!r:.60}, and {first!r:.60}"
                    extra.problem(column, f"{message} at {row.place}); leave it empty, or give it another step")
        family, key = row.text(columns.family, needed=True), row.text(columns.context, needed=True, whole=True)
        decided_at = row.time(columns.decided_at, needed=True)
        episode, step, agent, replicate = self._decision_key(row, columns)
        numbered = columns.step or self.map.round
        name = f"{episode}/{step}/{agent}" if numbered else f"{episode}/{agent}"
        derivation = self._derivation(row, columns, name)
        name = name if replicate == 1 else f"{name}/r{replicate}"
        name = name if derivation.kind == "honest" else f"{name}~{derivation.kind}"
        if agent and not re.fullmatch(read.NAME, agent):
            row.problem(columns.agent, f"{read.NO_NAME} (got {agent!r:.60})")
        context_id = self.material.context(row, key, decided_at) if key and decided_at else None
        seconds = row.number(columns.seconds, 0, 1e9)
        source, texts = self.map.provenance, self.map.rationales.model_dump()
        pairs = [(text, kind) for kind in KINDS for column in texts[kind] for row in rows for text in row.texts(column)]
        rationales = rationales_of(dict.fromkeys(pairs))
        sure = {value for row in rows if (value := row.number(columns.confidence, 0, 1)) is not None}
        actions = [action for row in rows for action in self._actions(row, columns, each=len(sure) > 1)]
        total = sum(abs(action.weight or 0.0) for action in actions)
        if total > MOST:
            message = f"weights of {total:g} times net asset value (allowed at most {MOST:g})"
            row.problem("", message if self.map.weight_unit == "percent" else f"{message}; {_PERCENT}")
        cluster, model = row.text(columns.cluster, needed=bool(columns.cluster)), row.text(columns.model)
        if decided_at is None or context_id is None:
            return None
        return records.Decision(
            name, episode, step, cluster or week_of(decided_at),
            decided_at, records.Agent(agent, family, model=model), context_id, tuple(actions),
            rationales, format="generic", provenance=records.Provenance(**source.model_dump(), path=row.place),
            confidence=next(iter(sure)) if len(sure) == 1 else None,
            call=records.CallFacts(seconds, timing_source="absent" if seconds is None else "measured"),
            replicate=replicate, derivation=derivation, missing=text_missing(rationales),
        )  # fmt: skip

    def _derivation(self, row: read.DataRow, columns: read.DecisionColumns, honest: str) -> records.Derivation:
        """Return the origin of a record; ``honest`` is the id of the same agent's honest answer to the question."""
        kind: Any = row.text(columns.derivation) or "honest"
        if kind not in get_args(records.DerivationKind):
            allowed = ", ".join(get_args(records.DerivationKind))
            row.problem(columns.derivation, f"must be one of {allowed} (got {kind!r:.60})")
            return records.Derivation()
        grades = {name: row.number(column, *self.map.known_scale) for column, name in self.map.known_scores.items()}
        scores = {name: value for name, value in grades.items() if value is not None}
        if kind == "honest":
            if scores:
                row.problem(next(iter(self.map.known_scores)), "an honest record has no known score")
            return records.Derivation()
        parent = row.text(columns.parent) or (honest if kind in FROM_AN_HONEST_RECORD else None)
        return records.Derivation(kind, parent, known_scores=scores)

    def _actions(self, row: read.DataRow, columns: read.DecisionColumns, *, each: bool) -> tuple[records.Action, ...]:
        """Return the orders of one row; ``each`` if every order has its own confidence."""
        fraction = self.map.weight_unit == "fraction"
        scale, advice = (1.0, _PERCENT) if fraction else (100.0, "")

        def weight_in(column: str | None) -> float | None:
            weight = row.number(column, -MOST * scale, MOST * scale, advice)
            return None if weight is None else weight / scale

        actions = [
            records.Action(instrument, kind="target_weight", weight=weight)
            for column, instrument in self.map.weights.items()
            if (weight := weight_in(column))
        ]
        instrument = row.text(columns.instrument)
        kind: Any = row.text(columns.action).lower() or "target_weight"
        if kind not in get_args(records.ActionKind):
            row.problem(columns.action, f"must be one of {', '.join(get_args(records.ActionKind))} (got {kind!r:.60})")
        elif instrument:
            actions.append(records.Action(
                instrument, kind, weight=weight_in(columns.weight), quantity=row.number(columns.quantity),
                price=row.number(columns.price), leverage=row.number(columns.leverage, 0, 1000),
                stop=row.number(columns.stop), target=row.number(columns.target),
                confidence=row.quiet.number(columns.confidence, 0, 1) if each else None,
            ))  # fmt: skip
        return tuple(actions)

    def read_outcomes(self, name: str, sheet: read.ParsedSheet) -> None:
        """Parse the outcomes file; outcomes of decisions that were left out are only counted."""
        named = self.map.outcomes
        if _missing_columns(name, sheet, self.columns_of("outcomes"), self.tally):
            return
        first: dict[tuple[str, str], str] = {}
        unknown: list[tuple[read.DataRow, _Answer]] = []
        for row in sheet.rows:
            before = len(self.tally.problems)
            answer = self._decision_key(row, named)
            record = self._records.get(answer)
            value, benchmark = row.number(named.value), row.number(named.benchmark)
            resolved = row.time(named.resolved_at)
            horizon = "" if value is None else row.text(named.horizon, needed=True)
            if len(self.tally.problems) > before:
                continue
            if record is None:
                # a consequence of another problem is counted, not reported
                if self._none_read or answer in self._left_out:
                    self.tally.counts["outcomes of decisions that were left out"] += 1
                else:
                    unknown.append((row, answer))
            elif value is None:
                self.tally.missing("outcome", record)
            elif (record, horizon) in first:  # ambiguous
                message = f"a second outcome of {record!r} for {horizon!r} (first at {first[record, horizon]})"
                row.problem(named.horizon, f"{message}; each decision has one a horizon")
                self.outcomes.pop((record, horizon), None)
            else:
                first[record, horizon] = row.place
                self.outcomes[record, horizon] = records.Outcome(record, horizon, value, benchmark, resolved, name)
        asked = [f"episode {answer[0]!r:.60}, agent {answer[2]!r:.60}" for _, answer in unknown]
        if unknown and self._unread:
            message = f"{len(unknown)} outcomes of no imported decision (the first has {asked[0]})"
            reason = f"{self._unread} rows of {self.map.files.decisions} were unreadable"
            self.tally.problem(unknown[0][0].place, f"{message}; {reason}")
            return
        for (row, _), label in zip(unknown, asked, strict=True):
            row.problem("", f"an outcome of no imported decision (got {label})")


class ContextBuilder:
    """Builds the contexts of one import from the facts and constraints files and the decisions' prompts."""

    def __init__(self, columns: read.ColumnMap, tally: Tally) -> None:
        self.map = columns
        self.tally = tally
        self.prompts: dict[str, str] = {}
        self.used: dict[str, datetime] = {}
        self.contexts: dict[str, records.Context] = {}
        self.robbed = 0
        self._facts: dict[str, list[tuple[str, records.Fact]]] = {}
        self._rules: dict[str, list[tuple[str, records.Constraint]]] = {}
        self._later: dict[str, list[tuple[str, str, datetime]]] = {}
        self._lost: dict[str, list[str]] = {}
        self._lost_anywhere: list[str] = []
        self._early: dict[tuple[str, str, str], list[str]] = {}
        self._made: dict[tuple[str, datetime, str], str] = {}

    def read_facts(self, name: str, sheet: read.ParsedSheet) -> None:
        """Parse the facts file; each row becomes a fact of its context, or is noted as missing from it."""
        named = self.map.facts
        if not self._readable(name, sheet, named):
            return
        outcomes: dict[str, list[str]] = {}
        for row in sheet.rows:
            before, key = len(self.tally.problems), row.text(named.context, needed=True, whole=True)
            field = row.text(named.field, needed=True)
            if afterwards := read.names_outcome(field):
                outcomes.setdefault(field, []).append(row.place)
            unit, available_at = row.text(named.unit, needed=True), row.time(named.available_at, needed=True)
            value: float | str | None
            value = row.text(named.value) or None if unit in ("text", "date") else row.number(named.value)
            if value is None and row.cells.get(named.value) in (None, ""):
                self.tally.missing("fact value", row.place)
            fact = None
            if value is not None and available_at is not None:
                name, of = f"f{len(self._facts.get(key, ())) + 1}", row.text(named.instrument)
                as_of, source = row.time(named.as_of), row.text(named.source) or self.map.files.facts or ""
                fact = records.Fact(name, of, field, value, unit, available_at, as_of, source, row.text(named.note))
            refused = afterwards or len(self.tally.problems) > before
            if fact is not None and not refused:
                self._facts.setdefault(key, []).append((row.place, fact))
            else:
                subject = _subject(field, row.text(named.instrument))
                self._note_lost(key, f"{subject}: {'refused' if refused else 'no value'}")
            # The time of a valid fact is checked elsewhere; that of an invalid one may reveal an outcome.
            skip = {named.value, named.note, named.available_at if fact is not None and not refused else None}
            # a row with a date after the decision is an outcome
            for column, cell in row.cells.items():
                if column not in skip and isinstance(cell, str):
                    try:
                        at = read.midnight(datetime.fromisoformat(cell).date())
                    except ValueError:
                        continue
                    self._later.setdefault(key, []).append((row.place, column, at))
        for field, places in outcomes.items():
            rows = f"({count_of(len(places), 'rows')})"
            message = f"outcome offered as context: {field!r} names what happened afterwards {rows}"
            hint = "give it in files.outcomes, or another name if it was known by then"
            self.tally.problem(f"{places[0]}, {named.field}", f"{message}; {hint}")
        for key, facts in self._facts.items():
            # Two values for one cell: both are dropped. Texts may repeat, since a day has many headlines.
            cells = {
                place: ((fact.field, fact.instrument, fact.as_of), f"{fact.value} {fact.unit}")
                for place, fact in facts
                if fact.unit != "text"
            }
            double = dict(_conflicts(cells))
            for cell, (place, values) in double.items():
                subject = _subject(cell[0], cell[1])
                hint = "one is wrong, or they need an as_of each (facts.as_of in the map)"
                message = f"two values for {subject} in {key!r} {values}; {hint}"
                self.tally.problem(f"{place}, {named.value}", message)
                self._note_lost(key, f"{subject}: two values")
            if double:
                self._facts[key] = [fact for fact in facts if fact[0] not in cells or cells[fact[0]][0] not in double]

    def read_constraints(self, name: str, sheet: read.ParsedSheet) -> None:
        """Parse the constraints file; each row becomes a rule of its context, or is noted as missing from it."""
        named = self.map.constraints
        if not self._readable(name, sheet, named):
            return
        for row in sheet.rows:
            before, key = len(self.tally.problems), row.text(named.context, needed=True, whole=True)
            kind, unit = row.text(named.kind, needed=True), row.text(named.unit, needed=True)
            limit, scope = row.number(named.limit), row.text(named.scope) or "portfolio"
            if limit is None and len(self.tally.problems) == before:
                row.problem(named.limit, "is empty; a value is needed")
            if limit is None or len(self.tally.problems) > before:
                self._note_lost(key, f"constraint {kind or '(unnamed)'}: refused")
            else:
                rule = records.Constraint(kind, limit, unit, scope)
                self._rules.setdefault(key, []).append((row.place, rule))
        for key, rules in self._rules.items():
            cells = {place: ((rule.kind, rule.scope), f"{rule.limit:g} {rule.unit}") for place, rule in rules}
            for cell, (place, values) in _conflicts(cells):
                self.tally.problem(f"{place}, {named.limit}", f"two values for {cell[0]} in {key!r} {values}")
                self._note_lost(key, f"constraint {cell[0]}: two values")
                self._rules[key] = [rule for rule in self._rules[key] if cells[rule[0]][0] != cell]

    def _readable(self, name: str, sheet: read.ParsedSheet, named: read.MapPart) -> bool:
        """Check that a file is readable and has its columns, and no outcome column; unreadable rows are noted."""
        absent = _missing_columns(name, sheet, {column for column in named.model_dump().values() if column}, self.tally)
        outcomes = [column for column in sheet.columns if read.names_later(column)]
        if outcomes:
            text = f"column {outcomes[0]!r} names an outcome; outcomes are declared in files.outcomes, never as facts"
            self.tally.problem(name, text)
        if absent or outcomes or sheet.broken:
            self._lost_anywhere.append(f"{name}: could not be read")
            return False
        if sheet.lost:
            self._lost_anywhere.append(f"{name}: {sheet.lost} unreadable rows")
        return True

    def _note_lost(self, key: str, name: str) -> None:
        """Note something that is missing from a context."""
        if key:
            self._lost.setdefault(key, []).append(name)
        else:
            self._lost_anywhere.append(f"{name} (of no named context)")

    def read_prompts(self, rows: Iterable[read.DataRow]) -> set[str]:
        """Store each context's prompt and its first use; returns the places of rows with a conflicting prompt."""
        columns, other = self.map.columns, set()
        for row in rows:
            before, key = len(self.tally.problems), row.quiet.text(columns.context, whole=True)
            prompt, first = row.text(columns.prompt), self.prompts.get(key, "")
            at = row.quiet.time(columns.decided_at)
            if prompt and first and prompt != first:
                row.problem(columns.context, f"{key!r} already identifies another prompt; give this one another value")
            if len(self.tally.problems) > before:
                other.add(row.place)
            self.prompts[key] = first or prompt
            if at is not None:
                self.used[key] = min(at, self.used.get(key, at))
        return other

    def context(self, row: read.DataRow, key: str, decided_at: datetime) -> str | None:
        """Return the id of a decision's context; None if it is empty, or has information from after the decision."""
        columns, facts = self.map.columns, self._facts.get(key, [])
        early = [
            (
                f"{place}, {fact.field}",
                f"a fact from the future: available {fact.available_at.isoformat()}, used by",
                "",
            )
            for place, fact in facts
            if fact.available_at > decided_at
        ]
        early += [
            (f"{place}, {column}", f"dated {at:%Y-%m-%d}, after", ": an outcome is never context; see files.outcomes")
            for place, column, at in self._later.get(key, ())
            if at > decided_at
        ]
        for piece in early:
            self._early.setdefault(piece, []).append(f"the decision of {decided_at.isoformat()} ({row.place})")
        if early:
            return None
        lost = tuple(dict.fromkeys([*self._lost.get(key, ()), *self._lost_anywhere]))
        if not self.prompts.get(key) and not facts:
            if lost:
                self.robbed += 1
            else:
                row.problem(columns.context, f"a record without a context: no prompt, and no facts for {key!r}")
            return None
        cutoff = row.time(columns.cutoff)
        if cutoff is not None and cutoff > decided_at:
            row.problem(columns.cutoff, f"the cutoff is after the decision ({cutoff.isoformat()})")
        at, source = cutoff or self.used[key], f"column {columns.cutoff}"
        if cutoff is None and facts:
            at, source = max(fact.available_at for _, fact in facts), "latest available_at of its facts"
        elif cutoff is None:
            source = f"column {columns.decided_at} of its first use"
        if (key, at, source) not in self._made:
            instruments = [fact.instrument for _, fact in facts if fact.instrument]
            context = records.Context(
                completeness="partial" if lost else self.map.completeness, cutoff=at, cutoff_source=source,
                prompt=self.prompts.get(key, ""), facts=tuple(fact for _, fact in facts),
                instruments=tuple(
                    records.Instrument(id=name, aliases=(name,))
                    for name in dict.fromkeys([*instruments, *self.map.weights.values()])
                ),
                constraints=tuple(rule for _, rule in self._rules.get(key, ())), missing=lost,
            )  # fmt: skip
            self._made[key, at, source] = records.content_id(context)
            self.contexts[self._made[key, at, source]] = context
        return self._made[key, at, source]

    def finish(self, unread: int) -> None:
        """Note information from after decisions, and facts and rules of contexts that no decision names."""
        for (place, message, hint), used in self._early.items():
            more = f" and {len(used) - 1} more" if len(used) > 1 else ""
            self.tally.problem(place, f"{message} {used[0]}{more}{hint}")
        files = self.map.files
        tables: Sequence[tuple[str | None, str, Mapping[str, list[Any]]]] = (
            (files.facts, self.map.facts.context, self._facts),
            (files.constraints, self.map.constraints.context, self._rules),
        )
        for name, column, by_context in tables:
            unknown = {key: items for key, items in by_context.items() if items and key not in self.prompts}
            if unread and unknown:
                message = f"rows of {len(unknown)} contexts that no readable decision names"
                self.tally.problem(name or "", f"{message}; {unread} rows of {files.decisions} were unreadable")
                continue
            for key, items in unknown.items():
                error = UnknownNameError("context", key, list(self.prompts))
                unseen = f"no decision saw this ({count_of(len(items), 'rows')}): {error}"
                self.tally.problem(f"{items[0][0]}, {column}", unseen)


def _missing_columns(name: str, sheet: read.ParsedSheet, wanted: set[str], tally: Tally) -> list[str]:
    """Return the missing columns of a file with rows, and note each."""
    absent = sorted(wanted - set(sheet.columns)) if sheet.rows else []
    for column in absent:
        tally.problem(name, f"no column {column!r} (got {', '.join(sheet.columns)}); see the map")
    return absent


def _subject(field: str, instrument: str) -> str:
    return f"{field or '(unnamed)'} of {instrument}" if instrument else field or "(unnamed)"


def _conflicts(cells: Mapping[str, tuple[Any, str]]) -> Iterator[tuple[Any, tuple[str, str]]]:
    """Yield the cells with more than one value: the place of the second value, and a text with both."""
    values_of: dict[Any, dict[str, str]] = {}
    for place, (cell, value) in cells.items():
        values_of.setdefault(cell, {}).setdefault(value, place)
    for cell, values in values_of.items():
        if len(values) > 1:
            (first, at), (second, place), *_rest = values.items()
            yield cell, (place, f"(got {second!r:.60}, and {first!r:.60} at {at})")
