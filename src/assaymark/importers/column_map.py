"""The column map of a generic import: a TOML file that says which column of yours is what."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from assaymark.importers.read import round_width
from assaymark.plan import read_model
from assaymark.records import Completeness

_AFTERWARDS = "outcomes?|exit|reali[sz]ed|future|forward|fwd|pnl|resolved|resolution|after|next"
_OUTCOME = re.compile(rf"(?:^|[_\s.-])(?:{_AFTERWARDS})(?:$|[_\s.-]|\d)", re.I)


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


def names_later(name: str) -> bool:
    """Whether a file or column name says that it holds what happened afterwards: exit_prices.csv, fwd_return."""
    return bool(_OUTCOME.search(name))


def names_outcome(field: str) -> bool:
    """Whether the name of a fact says that it happened afterwards: exit_price, realized_return_1w, returnAfter1w."""
    words = {word.lower() for word in _WORDS.findall(field)}
    if words & {"outcome", "outcomes"} or ("exit" in words and words & (_MEASURES | {"value", "nav", "date"})):
        return True
    return bool(words & _LATER and words & _MEASURES) and not words & _BEFOREHAND


Column = Annotated[str, Field(min_length=1)]


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
    """Columns of the decisions file; the first five are needed, ``episode`` only without ``round``."""

    agent: Column
    family: Column
    decided_at: Column
    context: Column
    episode: Column | None = None
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
    leverage: Column | None = None
    stop: Column | None = None
    target: Column | None = None
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
    decided_at: Column | None = None
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
    known_scale: tuple[float, float] = Field(default=(1, 5), description="of the known scores")
    known_scores: dict[str, str] = Field(default_factory=dict, description="column of a known score -> dimension")
    weight_unit: Literal["fraction", "percent"] = "fraction"
    completeness: Completeness = "partial"
    round: str | None = Field(default=None, description="how long a round lasts: 15min, 1h, 1d, 1w")
    time_zone: str | None = Field(default=None, description="of times that say none")
    facts: FactColumns = FactColumns()
    constraints: ConstraintColumns = ConstraintColumns()
    outcomes: OutcomeColumns = OutcomeColumns()

    @field_validator("round")
    @classmethod
    def _is_a_length(cls, text: str | None) -> str | None:
        if text is not None:
            round_width(text)
        return text

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str | None) -> str | None:
        try:
            return name if name is None else ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"must be a time zone such as Europe/Berlin or UTC (got {name!r:.40})") from None

    @model_validator(mode="after")
    def _one_rule_of_rounds(self) -> ColumnMap:
        if self.round is None and self.columns.episode is None:
            raise ValueError('columns.episode is missing; name the column of the question, or say round = "1h"')
        if self.round is not None and self.columns.step is not None:
            raise ValueError("columns.step goes with columns.episode; round numbers the decisions of an agent itself")
        if self.round is not None and self.files.outcomes and self.outcomes.decided_at is None:
            raise ValueError("outcomes.decided_at is needed with round: which column has the time of the decision")
        return self

    @model_validator(mode="after")
    def _no_outcome_in_context(self) -> ColumnMap:
        shown = [self.columns.prompt, self.columns.context]
        for part in (self.rationales, self.facts, self.constraints):
            for named in part.model_dump().values():
                shown += [named] if isinstance(named, str) else list(named or ())
        found = [name for name in shown if name and names_later(name)]
        if found:
            raise ValueError(
                f"column {found[0]!r} names an outcome: what happened afterwards is never context or rationale; "
                "give it in files.outcomes"
            )
        for part_name, name in (("facts", self.files.facts), ("constraints", self.files.constraints)):
            if name and names_later(name.rsplit("/", 1)[-1]):
                raise ValueError(f"files.{part_name}: {name!r} names outcomes; give it in files.outcomes")
        return self


def parse_map(text: str, *, source: str = "map.toml") -> ColumnMap:
    """A column map from its TOML."""
    return read_model(ColumnMap, text, source)


def template() -> str:
    """A commented map to start from, with example lines of each file; it parses as it stands."""
    return (files("assaymark.importers") / "column_map.toml").read_text(encoding="utf-8")
