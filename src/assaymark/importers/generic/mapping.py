"""The column map of a generic import: a TOML file that says which column of yours is what."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assaymark.errors import InputError
from assaymark.importers.wording import ShapeError, as_shape
from assaymark.plan import read_toml
from assaymark.records import Completeness

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
