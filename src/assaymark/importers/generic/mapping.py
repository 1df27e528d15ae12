"""The column map of a generic import: a TOML file that says which column of yours is what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError, UnknownNameError
from assaymark.importers.read import Row, Sheet, midnight
from assaymark.importers.report import ShapeError, Tally, as_shape
from assaymark.plan import read_toml
from assaymark.records import Completeness, Constraint, Context, Fact, Instrument, content_id

Column = Annotated[str, Field(min_length=1)]

_AFTERWARDS = "outcomes?|exit|reali[sz]ed|future|forward|fwd|pnl|resolved|resolution|after|next"
_OUTCOME = re.compile(rf"(?:^|[_\s.-])(?:{_AFTERWARDS})(?:$|[_\s.-]|\d)", re.I)


def looks_like_outcome(name: str) -> bool:
    """Whether a file or column name says that it holds what happened afterwards.

    >>> [name for name in ("return_7d", "exit_prices.csv", "return_after_1w", "fwd_return") if looks_like_outcome(name)]
    ['exit_prices.csv', 'return_after_1w', 'fwd_return']
    """
    return bool(_OUTCOME.search(name))


_MEASURES = frozenset({
    "return", "returns", "ret", "price", "prices", "close", "pnl", "alpha", "performance", "change", "move",
})  # fmt: skip
_LATER = frozenset({"after", "forward", "fwd", "next", "future", "subsequent", "realized", "realised", "resolved"})
# What was known before although it speaks of afterwards: estimates, ratios on them, trading after hours.
_BEFOREHAND = frozenset({
    "expected", "forecast", "forecasts", "estimate", "estimated", "estimates", "consensus", "target", "implied",
    "guidance", "projected", "to", "earnings", "ratio", "pe", "tax", "hours", "market", "vol", "volatility",
    "variance", "correlation",
})  # fmt: skip
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def names_outcome(field: str) -> bool:
    """Whether the name of a fact says that it happened afterwards.

    Narrower than `looks_like_outcome`: facts are rightly called next_meeting, forward_pe or realized_volatility.

    >>> fields = ("exit_price", "realized_return_1w", "outcome_7d", "returnAfter1w", "forward_pe", "expected_return")
    >>> [field for field in fields if names_outcome(field)]
    ['exit_price', 'realized_return_1w', 'outcome_7d', 'returnAfter1w']
    """
    words = {word.lower() for word in _WORDS.findall(field)}
    if words & {"outcome", "outcomes"}:
        return True
    if "exit" in words and words & (_MEASURES | {"value", "nav", "date"}):
        return True
    return bool(words & _LATER and words & _MEASURES) and not words & _BEFOREHAND


class Part(BaseModel):
    """Base of the parts of a map: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Files(Part):
    """The files, beside the map."""

    decisions: str
    facts: str | None = None
    constraints: str | None = None
    outcomes: str | None = None


class Source(Part):
    """Where the records come from, for every record's provenance."""

    source: Annotated[str, Field(min_length=1)]
    licence: str | None = None
    commit: str | None = None


class Columns(Part):
    """Columns of the decisions file; the first five are needed."""

    agent: Column
    family: Column
    episode: Column
    decided_at: Column
    context: Column
    step: Column | None = None
    replicate: Column | None = None
    cluster: Column | None = None
    model: Column | None = None
    prompt: Column | None = None
    cutoff: Column | None = None
    confidence: Column | None = None
    seconds: Column | None = None
    instrument: Column | None = None
    action: Column | None = None
    weight: Column | None = None
    quantity: Column | None = None
    price: Column | None = None
    derivation: Column | None = None
    parent: Column | None = None


class Texts(Part):
    """Columns with the agent's reasons, by kind; several columns of one kind are kept in order."""

    summary: tuple[Column, ...] = ()
    portfolio: tuple[Column, ...] = ()
    risk: tuple[Column, ...] = ()
    candidate: tuple[Column, ...] = ()
    holding: tuple[Column, ...] = ()
    stage: tuple[Column, ...] = ()
    arena: tuple[Column, ...] = ()


class FactColumns(Part):
    """Columns of the facts file."""

    context: Column = "context"
    instrument: Column = "instrument"
    field: Column = "field"
    value: Column = "value"
    unit: Column = "unit"
    available_at: Column = "available_at"
    as_of: Column | None = None
    source: Column | None = None
    note: Column | None = None


class ConstraintColumns(Part):
    """Columns of the constraints file: the numeric rules that the agents were given."""

    context: Column = "context"
    kind: Column = "kind"
    limit: Column = "limit"
    unit: Column = "unit"
    scope: Column | None = None


class OutcomeColumns(Part):
    """Columns of the outcomes file."""

    agent: Column = "agent"
    episode: Column = "episode"
    value: Column = "value"
    horizon: Column = "horizon"
    step: Column | None = None
    replicate: Column | None = None
    benchmark: Column | None = None
    resolved_at: Column | None = None


class ColumnMap(Part):
    """A whole map."""

    version: Literal["1"] = "1"
    files: Files
    provenance: Source
    columns: Columns
    rationales: Texts = Texts()
    weights: dict[str, str] = Field(default_factory=dict, description="column of a weight -> instrument")
    known_scores: dict[str, str] = Field(default_factory=dict, description="column of a known score -> dimension")
    weight_unit: Literal["fraction", "percent"] = "fraction"
    completeness: Completeness = "partial"
    facts: FactColumns = FactColumns()
    constraints: ConstraintColumns = ConstraintColumns()
    outcomes: OutcomeColumns = OutcomeColumns()

    @model_validator(mode="after")
    def _no_outcome_in_context(self) -> ColumnMap:
        shown = [self.columns.prompt, self.columns.context, *_columns(self.rationales)]
        shown += [*_columns(self.facts), *_columns(self.constraints)]
        found = [name for name in shown if name and looks_like_outcome(name)]
        if found:
            raise ValueError(
                f"column {found[0]!r} names an outcome: what happened afterwards is never context or rationale; "
                "give it in files.outcomes"
            )
        for part, name in (("facts", self.files.facts), ("constraints", self.files.constraints)):
            if name and looks_like_outcome(name.rsplit("/", 1)[-1]):
                raise ValueError(f"files.{part}: {name!r} names outcomes; give it in files.outcomes")
        return self


def _columns(part: Part) -> list[str]:
    """Every column a part names."""
    named: list[str] = []
    for value in part.model_dump().values():
        named += [value] if isinstance(value, str) else list(value or ())
    return named


def parse_map(text: str, *, source: str = "map.toml") -> ColumnMap:
    """A column map from its TOML.

    Raises
    ------
    InputError
        Not TOML, or fields that are wrong, missing or unknown: all of them at once.
    """
    raw = read_toml(text, source=source)
    try:
        made: ColumnMap = as_shape(ColumnMap, raw)
    except ShapeError as exc:
        raise InputError(source, exc.problems) from None
    return made


def template() -> str:
    """A commented map to start from, with example lines of each file; it parses as it stands.

    >>> parse_map(template()).files.decisions
    'decisions.csv'
    """
    return _TEMPLATE


_TEMPLATE = """\
# Which column of yours is what. Save as map.toml beside your files, then: assaymark import generic FOLDER --out RUN
# On the left stand our names, on the right yours. Times need a zone (2026-05-01T13:30:00Z). Lines with # are optional.
version = "1"

# "complete" only if prompt and facts below are everything the agent saw; otherwise nothing can be called contradicted.
completeness = "partial"

# Weights are fractions of net asset value ("fraction": 0.25) or "percent" (25).
weight_unit = "fraction"

[files]
# CSV with a header, or JSONL with one object a line; both also as .gz.
decisions = "decisions.csv"
# facts = "facts.csv"         # what could be seen, with the time it became known
# constraints = "rules.csv"   # the numeric rules the agents were given
# outcomes = "outcomes.csv"   # what happened afterwards: a table of its own, never shown to a judge

[provenance]
source = "my agents"
# licence = "CC BY 4.0"
# commit = "0000000"

# decisions.csv:
#   round,time,agent,maker,seen,prompt,ticker,order,size,sure,thesis,risks
#   r1,2026-05-01T13:30:00Z,alpha,acme,r1,"Pick one of A and B.",A,buy,1.0,0.6,"A grew 4 percent.","A may fall."
[columns]
episode = "round"             # decisions of one episode (and step) answered the same question
decided_at = "time"
agent = "agent"
family = "maker"              # agents and judges of one maker have a conflict of interest
context = "seen"              # decisions with the same value saw the same material
prompt = "prompt"             # the material as it was put to the agent
# cutoff = "known_until"      # the last moment the material speaks of; default: decided_at
# step = "step"               # a whole number; default 0
# replicate = "run"           # a whole number from 1; default 1
# cluster = "week"            # what inference resamples; default: the ISO week of decided_at
# model = "model"
# seconds = "latency"
confidence = "sure"           # 0 to 1
instrument = "ticker"
action = "order"              # buy sell short cover hold close target_weight no_trade; default target_weight
weight = "size"
# quantity = "units"
# price = "limit"
# derivation = "made"         # honest cell_a cell_b ladder vacuum paraphrase fact_flip length_matched red_team;
                              # default honest: the rest is never ranked, and judged only as a control cell
# parent = "made_from"        # the agent's honest record that it was made from, as episode/agent (episode/step/agent);
                              # default: the same agent's honest answer to the same question

# The agent's own reasons, by kind. A judge reads summary, portfolio, risk and candidate, in this order.
# Text that somebody else wrote is "arena": kept, never judged.
[rationales]
summary = ["thesis"]
risk = ["risks"]
# portfolio = []
# candidate = []
# holding = []
# arena = []

# Instead of instrument and weight, one column per instrument:
# [weights]
# w_gold = "GOLD"

# Control cells whose construction fixes what a faultless judge gives, one column per dimension or for "aggregate":
# [known_scores]
# true_sizing = "position_sizing"

# facts.csv:
#   seen,instrument,field,value,unit,known_at
#   r1,A,revenue_growth,0.04,ratio,2026-04-30T20:00:00Z
# [facts]
# context = "seen"
# available_at = "known_at"

# outcomes.csv:
#   agent,round,horizon,value
#   alpha,r1,one week,0.012
# [outcomes]
# episode = "round"
# replicate = "run"           # default 1

# rules.csv:
#   seen,kind,limit,unit
#   r1,max_weight,0.5,nav
# [constraints]
# context = "seen"
# scope = "scope"             # portfolio, holding, ...; default: portfolio
"""


# What the decisions of a generic import saw: facts, rules and prompts by context, and what of it was lost.


_Cell = tuple[str, ...]


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
        self._facts: dict[str, list[tuple[str, Fact]]] = {}
        self._rules: dict[str, list[tuple[str, Constraint]]] = {}
        self._later: dict[str, list[tuple[str, str, datetime]]] = {}
        self._lost: dict[str, list[str]] = {}
        self._lost_anywhere: list[str] = []
        self._early: dict[tuple[str, str, str], list[str]] = {}
        self._made: dict[tuple[str, datetime, str], str] = {}

    # --- the files --------------------------------------------------------------------------------------------------

    def read_facts(self, name: str, sheet: Sheet) -> None:
        """Every row of the facts file as a fact of its context, or as a loss."""
        named = self.map.facts
        if not self._readable(name, sheet, named):
            return
        outcomes: dict[str, list[str]] = {}
        for row in sheet.rows:
            before, key = len(self.tally.problems), row.text(named.context, needed=True)
            field = row.text(named.field, needed=True)
            if named_so := names_outcome(field):
                outcomes.setdefault(field, []).append(row.place)
            fact = self._fact(row, field, len(self._facts.get(key, ())))
            good = fact is not None and not named_so and len(self.tally.problems) == before
            if fact is not None and good:
                self._facts.setdefault(key, []).append((row.place, fact))
            else:
                what = "refused" if named_so or len(self.tally.problems) > before else "no value"
                self._lose(key, f"{_subject(field, row.text(named.instrument))}: {what}")
            # A good fact's own time is checked as such; of a bad one even that may show it to be an outcome.
            skip = {named.value, named.note, named.available_at if good else None}
            self._later.setdefault(key, []).extend(_dates(row, skip))
        for field, places in outcomes.items():
            what = f"outcome offered as context: {field!r} names what happened afterwards ({len(places)} rows)"
            hint = "give it in files.outcomes, or another name if it was known by then"
            self.tally.problem(f"{places[0]}, {named.field}", f"{what}; {hint}")
        self._refuse_double_facts()

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
            cells = [((rule.kind, rule.scope), f"{rule.limit:g} {rule.unit}", place) for place, rule in rules]
            for cell, (first, second) in _doubles(cells):
                self.tally.problem(f"{second[1]}, {named.limit}", _double(cell[0], key, first, second))
                self._lose(key, f"constraint {cell[0]}: two values")
                self._rules[key] = [(p, r) for p, r in self._rules[key] if (r.kind, r.scope) != cell]

    def _readable(self, name: str, sheet: Sheet, named: Part) -> bool:
        """Whether the file has its columns, none of which may hold outcomes; notes what of it was lost."""
        held = sheet.columns
        absent = sorted({column for column in named.model_dump().values() if column} - set(held)) if sheet.rows else []
        outcomes = [column for column in held if looks_like_outcome(column)]
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
            id=f"f{number + 1}",
            instrument=row.text(named.instrument),
            field=field,
            value=value,
            unit=unit,
            available_at=available_at,
            as_of=row.time(named.as_of),
            source=row.text(named.source) or self.map.files.facts or "",
            note=row.text(named.note),
        )

    def _refuse_double_facts(self) -> None:
        """Two values for one cell: neither is known. Texts are no cells; a day has many headlines."""
        for key, facts in self._facts.items():
            cells = [(_cell(fact), f"{fact.value} {fact.unit}", place) for place, fact in facts if fact.unit != "text"]
            double = dict(_doubles(cells))
            for cell, (first, second) in double.items():
                subject = _subject(cell[0], cell[1])
                hint = "one is wrong, or they need an as_of each (facts.as_of in the map)"
                where = f"{second[1]}, {self.map.facts.value}"
                self.tally.problem(where, f"{_double(subject, key, first, second)}; {hint}")
                self._lose(key, f"{subject}: two values")
            if double:
                self._facts[key] = [(p, fact) for p, fact in facts if fact.unit == "text" or _cell(fact) not in double]

    def _lose(self, key: str, what: str) -> None:
        """Notes something that a context should hold and does not."""
        if key:
            self._lost.setdefault(key, []).append(what)
        else:
            self._lost_anywhere.append(f"{what} (of no named context)")

    def tell_unknown(self, unread: int) -> None:
        """Facts and rules of contexts that no decision names are problems: who saw them is not known.

        ``unread`` is how many rows of the decisions could not be read; their contexts are not known either.
        """
        files = self.map.files
        for name, named, held in (
            (files.facts, self.map.facts.context, self._facts),
            (files.constraints, self.map.constraints.context, self._rules),
        ):
            unknown = {key: items for key, items in held.items() if items and key not in self.prompts}
            if unread and unknown:
                what = f"rows of {len(unknown)} contexts that no readable decision names"
                self.tally.problem(name or "", f"{what}; {unread} rows of {files.decisions} were unreadable")
                continue
            for key, items in unknown.items():
                said = UnknownNameError("context", key, list(self.prompts))
                self.tally.problem(f"{items[0][0]}, {named}", f"no decision saw this ({len(items)} rows): {said}")

    # --- what a decision saw ----------------------------------------------------------------------------------------

    def see(self, rows: Iterable[Row]) -> set[str]:
        """The prompt of each context and the first time it was used; the places of rows with a second prompt."""
        columns, other = self.map.columns, set()
        for row in rows:
            key, prompt, at = (
                row.quiet.text(columns.context),
                row.quiet.text(columns.prompt),
                row.quiet.time(columns.decided_at),
            )
            first = self.prompts.get(key, "")
            if prompt and first and prompt != first:
                row.problem(columns.context, f"{key!r} already stands for another prompt; give this one its own value")
                other.add(row.place)
            self.prompts[key] = first or prompt
            if at is not None:
                self.used[key] = min(at, self.used.get(key, at))
        return other

    def holds(self, key: str) -> bool:
        """Whether there is anything that the decision can have seen."""
        return bool(self.prompts.get(key) or self._facts.get(key))

    def losses(self, key: str) -> tuple[str, ...]:
        """What a context should hold and does not."""
        return tuple(dict.fromkeys([*self._lost.get(key, ()), *self._lost_anywhere]))

    def after(self, key: str, decided_at: datetime, place: str) -> bool:
        """Whether anything in the context lies after the decision; kept until `tell_early` says each thing once."""
        found = [
            (
                f"{where}, {fact.field}",
                f"a fact from the future: available {fact.available_at.isoformat()}, used by",
                "",
            )
            for where, fact in self._facts.get(key, ())
            if fact.available_at > decided_at
        ]
        found += [
            (f"{where}, {column}", f"dated {at:%Y-%m-%d}, after", ": an outcome is never context; see files.outcomes")
            for where, column, at in self._later.get(key, ())
            if at > decided_at
        ]
        for one in found:
            self._early.setdefault(one, []).append(f"the decision of {decided_at.isoformat()} ({place})")
        return bool(found)

    def tell_early(self) -> None:
        """Says each thing that lies after decisions once, with the first of these and how many more there are."""
        for (where, what, hint), used in self._early.items():
            more = f" and {len(used) - 1} more" if len(used) > 1 else ""
            self.tally.problem(where, f"{what} {used[0]}{more}{hint}")

    def context(self, key: str, cutoff: datetime | None) -> str:
        """The id of what a decision saw. The cutoff is as stated, else the latest fact's time, else the first use."""
        facts = self._facts.get(key, [])
        at, source = cutoff or self.used[key], f"column {self.map.columns.cutoff}"
        if cutoff is None and facts:
            at, source = max(fact.available_at for _, fact in facts), "latest available_at of its facts"
        elif cutoff is None:
            source = f"column {self.map.columns.decided_at} of its first use"
        if (key, at, source) not in self._made:
            lost = self.losses(key)
            context = Context(
                completeness="partial" if lost else self.map.completeness,
                cutoff=at,
                cutoff_source=source,
                prompt=self.prompts.get(key, ""),
                facts=tuple(fact for _, fact in facts),
                instruments=tuple(Instrument(id=name, aliases=(name,)) for name in self._instruments(facts)),
                constraints=tuple(rule for _, rule in self._rules.get(key, ())),
                missing=lost,
            )
            name = content_id(context)
            self.contexts[name] = context
            self._made[key, at, source] = name
        return self._made[key, at, source]

    def _instruments(self, facts: Iterable[tuple[str, Fact]]) -> list[str]:
        named = [fact.instrument for _, fact in facts if fact.instrument]
        return list(dict.fromkeys([*named, *self.map.weights.values()]))


def _subject(field: str, instrument: str) -> str:
    return f"{field or '(unnamed)'} of {instrument}" if instrument else field or "(unnamed)"


def _cell(fact: Fact) -> _Cell:
    """What one value belongs to."""
    return fact.field, fact.instrument, fact.as_of.isoformat() if fact.as_of else ""


def _doubles(
    cells: Iterable[tuple[_Cell, str, str]],
) -> Iterator[tuple[_Cell, tuple[tuple[str, str], tuple[str, str]]]]:
    """The cells with more than one value: the first (value, place) and the first that differs from it."""
    seen: dict[_Cell, dict[str, str]] = {}
    for cell, value, place in cells:
        seen.setdefault(cell, {}).setdefault(value, place)
    for cell, values in seen.items():
        if len(values) > 1:
            first, second, *_rest = values.items()
            yield cell, (first, second)


def _double(subject: str, key: str, first: tuple[str, str], second: tuple[str, str]) -> str:
    return f"two values for {subject} in {key!r} (got {second[0]!r:.60}, and {first[0]!r:.60} at {first[1]})"


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
