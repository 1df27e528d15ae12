"""The contexts of a generic import: prompts, facts and rules, and what of them was refused or lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from assaymark.errors import UnknownNameError
from assaymark.importers.column_map import ColumnMap, Part, names_later, names_outcome
from assaymark.importers.read import Row, Sheet, midnight
from assaymark.importers.report import Tally
from assaymark.records import Constraint, Context, Fact, Instrument, content_id


class Material:
    """The contexts of one import, put together from the facts and constraints files and the decisions' prompts.

    Whatever is refused, empty or unreadable is noted as a loss of its context (of every context, where the row does
    not say which): a context that lost something is ``partial``, for a number that the agent saw may be gone from it.
    """

    def __init__(self, columns: ColumnMap, tally: Tally) -> None:
        self.map = columns
        self.tally = tally
        self.prompts: dict[str, str] = {}
        self.used: dict[str, datetime] = {}
        self.contexts: dict[str, Context] = {}
        self.robbed = 0
        self._facts: dict[str, list[tuple[str, Fact]]] = {}
        self._rules: dict[str, list[tuple[str, Constraint]]] = {}
        self._later: dict[str, list[tuple[str, str, datetime]]] = {}
        self._lost: dict[str, list[str]] = {}
        self._lost_anywhere: list[str] = []
        self._early: dict[tuple[str, str, str], list[str]] = {}
        self._made: dict[tuple[str, datetime, str], str] = {}

    def read_facts(self, name: str, sheet: Sheet) -> None:
        """Every row of the facts file as a fact of its context, or as a loss."""
        named = self.map.facts
        if not self._readable(name, sheet, named):
            return
        outcomes: dict[str, list[str]] = {}
        for row in sheet.rows:
            before, key = len(self.tally.problems), row.text(named.context, needed=True)
            field = row.text(named.field, needed=True)
            if afterwards := names_outcome(field):
                outcomes.setdefault(field, []).append(row.place)
            fact = self._fact(row, field, len(self._facts.get(key, ())))
            refused = afterwards or len(self.tally.problems) > before
            if fact is not None and not refused:
                self._facts.setdefault(key, []).append((row.place, fact))
            else:
                subject = _subject(field, row.text(named.instrument))
                self._lose(key, f"{subject}: {'refused' if refused else 'no value'}")
            # A good fact's own time is checked as such; of a bad one even that may show it to be an outcome.
            skip = {named.value, named.note, named.available_at if fact is not None and not refused else None}
            # a row with a cell that is a date after the decision is an outcome
            for column, cell in row.cells.items():
                if column not in skip and isinstance(cell, str):
                    try:
                        at = midnight(datetime.fromisoformat(cell).date())
                    except ValueError:
                        continue
                    self._later.setdefault(key, []).append((row.place, column, at))
        for field, places in outcomes.items():
            what = f"outcome offered as context: {field!r} names what happened afterwards ({len(places)} rows)"
            hint = "give it in files.outcomes, or another name if it was known by then"
            self.tally.problem(f"{places[0]}, {named.field}", f"{what}; {hint}")
        for key, facts in self._facts.items():
            # Two values for one cell: neither is known. Texts are no cells; a day has many headlines.
            cells = {
                place: ((fact.field, fact.instrument, fact.as_of), f"{fact.value} {fact.unit}")
                for place, fact in facts
                if fact.unit != "text"
            }
            double = dict(_doubles(cells))
            for cell, (place, values) in double.items():
                subject = _subject(cell[0], cell[1])
                hint = "one is wrong, or they need an as_of each (facts.as_of in the map)"
                what = f"two values for {subject} in {key!r} {values}; {hint}"
                self.tally.problem(f"{place}, {named.value}", what)
                self._lose(key, f"{subject}: two values")
            if double:
                self._facts[key] = [one for one in facts if one[0] not in cells or cells[one[0]][0] not in double]

    def read_constraints(self, name: str, sheet: Sheet) -> None:
        """Every row of the constraints file as a rule of its context, or as a loss."""
        named = self.map.constraints
        if not self._readable(name, sheet, named):
            return
        for row in sheet.rows:
            before, key = len(self.tally.problems), row.text(named.context, needed=True)
            kind, unit = row.text(named.kind, needed=True), row.text(named.unit, needed=True)
            limit, scope = row.number(named.limit), row.text(named.scope) or "portfolio"
            if limit is None and len(self.tally.problems) == before:
                row.problem(named.limit, "is empty; a value is needed")
            if limit is None or len(self.tally.problems) > before:
                self._lose(key, f"constraint {kind or '(unnamed)'}: refused")
            else:
                rule = Constraint(kind=kind, limit=limit, unit=unit, scope=scope)
                self._rules.setdefault(key, []).append((row.place, rule))
        for key, rules in self._rules.items():
            cells = {place: ((rule.kind, rule.scope), f"{rule.limit:g} {rule.unit}") for place, rule in rules}
            for cell, (place, values) in _doubles(cells):
                self.tally.problem(f"{place}, {named.limit}", f"two values for {cell[0]} in {key!r} {values}")
                self._lose(key, f"constraint {cell[0]}: two values")
                self._rules[key] = [one for one in self._rules[key] if cells[one[0]][0] != cell]

    def _readable(self, name: str, sheet: Sheet, named: Part) -> bool:
        """Whether the file has its columns, none of which may hold outcomes; notes what of it was lost."""
        held = sheet.columns
        absent = sorted({column for column in named.model_dump().values() if column} - set(held)) if sheet.rows else []
        outcomes = [column for column in held if names_later(column)]
        if absent:
            self.tally.problem(name, f"no column {absent[0]!r} (got {', '.join(held)}); see the map")
        if outcomes:
            what = f"column {outcomes[0]!r} names an outcome; outcomes are declared in files.outcomes, never as facts"
            self.tally.problem(name, what)
        if absent or outcomes or sheet.broken:
            self._lost_anywhere.append(f"{name}: could not be read")
            return False
        if sheet.lost:
            self._lost_anywhere.append(f"{name}: {sheet.lost} unreadable rows")
        return True

    def _fact(self, row: Row, field: str, number: int) -> Fact | None:
        named = self.map.facts
        unit, available_at = row.text(named.unit, needed=True), row.time(named.available_at, needed=True)
        value: float | str | None
        value = row.text(named.value) or None if unit in ("text", "date") else row.number(named.value)
        if value is None and row.cells.get(named.value) in (None, ""):
            self.tally.missing("fact value", row.place)
        if value is None or available_at is None:
            return None
        return Fact(
            id=f"f{number + 1}", instrument=row.text(named.instrument), field=field, value=value, unit=unit,
            available_at=available_at, as_of=row.time(named.as_of),
            source=row.text(named.source) or self.map.files.facts or "", note=row.text(named.note),
        )  # fmt: skip

    def _lose(self, key: str, what: str) -> None:
        """Notes something that a context should hold and does not."""
        if key:
            self._lost.setdefault(key, []).append(what)
        else:
            self._lost_anywhere.append(f"{what} (of no named context)")

    def see(self, rows: Iterable[Row]) -> set[str]:
        """The prompt of each context and the first time it was used; the places of rows with a second prompt."""
        columns, other = self.map.columns, set()
        for row in rows:
            key, prompt = row.quiet.text(columns.context), row.quiet.text(columns.prompt)
            at, first = row.quiet.time(columns.decided_at), self.prompts.get(key, "")
            if prompt and first and prompt != first:
                row.problem(columns.context, f"{key!r} already stands for another prompt; give this one its own value")
                other.add(row.place)
            self.prompts[key] = first or prompt
            if at is not None:
                self.used[key] = min(at, self.used.get(key, at))
        return other

    def context(self, row: Row, key: str, decided_at: datetime) -> str | None:
        """The id of what the decision saw; None where it saw nothing, or something from after it.

        The cutoff is as stated, else the latest fact's time, else the first use.
        """
        columns, facts = self.map.columns, self._facts.get(key, [])
        early = [
            (
                f"{where}, {fact.field}",
                f"a fact from the future: available {fact.available_at.isoformat()}, used by",
                "",
            )
            for where, fact in facts
            if fact.available_at > decided_at
        ]
        early += [
            (f"{where}, {column}", f"dated {at:%Y-%m-%d}, after", ": an outcome is never context; see files.outcomes")
            for where, column, at in self._later.get(key, ())
            if at > decided_at
        ]
        for one in early:
            self._early.setdefault(one, []).append(f"the decision of {decided_at.isoformat()} ({row.place})")
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
            context = Context(
                completeness="partial" if lost else self.map.completeness, cutoff=at, cutoff_source=source,
                prompt=self.prompts.get(key, ""), facts=tuple(fact for _, fact in facts),
                instruments=tuple(
                    Instrument(id=name, aliases=(name,))
                    for name in dict.fromkeys([*instruments, *self.map.weights.values()])
                ),
                constraints=tuple(rule for _, rule in self._rules.get(key, ())), missing=lost,
            )  # fmt: skip
            self._made[key, at, source] = content_id(context)
            self.contexts[self._made[key, at, source]] = context
        return self._made[key, at, source]

    def finish(self, unread: int) -> None:
        """Notes once each what lies after decisions, and facts and rules of contexts that no decision names.

        ``unread`` is how many rows of the decisions could not be read; their contexts are not known either.
        """
        for (where, what, hint), used in self._early.items():
            more = f" and {len(used) - 1} more" if len(used) > 1 else ""
            self.tally.problem(where, f"{what} {used[0]}{more}{hint}")
        files = self.map.files
        held: Sequence[tuple[str | None, str, Mapping[str, list[Any]]]] = (
            (files.facts, self.map.facts.context, self._facts),
            (files.constraints, self.map.constraints.context, self._rules),
        )
        for name, column, by_context in held:
            unknown = {key: items for key, items in by_context.items() if items and key not in self.prompts}
            if unread and unknown:
                what = f"rows of {len(unknown)} contexts that no readable decision names"
                self.tally.problem(name or "", f"{what}; {unread} rows of {files.decisions} were unreadable")
                continue
            for key, items in unknown.items():
                said = UnknownNameError("context", key, list(self.prompts))
                self.tally.problem(f"{items[0][0]}, {column}", f"no decision saw this ({len(items)} rows): {said}")


def _subject(field: str, instrument: str) -> str:
    return f"{field or '(unnamed)'} of {instrument}" if instrument else field or "(unnamed)"


def _doubles(cells: Mapping[str, tuple[Any, str]]) -> Iterator[tuple[Any, tuple[str, str]]]:
    """The cells with more than one value: the first place that differs from the first, and both values."""
    seen: dict[Any, dict[str, str]] = {}
    for place, (cell, value) in cells.items():
        seen.setdefault(cell, {}).setdefault(value, place)
    for cell, values in seen.items():
        if len(values) > 1:
            (first, at), (second, place), *_rest = values.items()
            yield cell, (place, f"(got {second!r:.60}, and {first!r:.60} at {at})")
