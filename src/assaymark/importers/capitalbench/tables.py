"""A round's market tables as facts: every number that stands in a cell, and none for an empty cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from assaymark.errors import Problem
from assaymark.importers.source import csv_rows, day, midnight, object_as_shape
from assaymark.importers.wording import ShapeError
from assaymark.records import Fact

RETURNS, DECISION, QUALITY = (
    "universe_trailing_returns.csv",
    "universe_decision_context.csv",
    "universe_quality_evidence.json",
)
"""The three market files of a round that hold facts."""

_UNITS: tuple[tuple[str, str], ...] = (
    ("rank_", "rank"),
    ("path_observations", "count"),
    ("as_of_adj_close", "price"),
    ("corr_", "correlation"),
    ("beta_", "beta"),
    ("volume_zscore", "zscore"),
    ("return_", "ratio"),
    ("active_return_", "ratio"),
    ("prior_", "ratio"),
    ("volatility_", "ratio"),
    ("max_drawdown_", "ratio"),
    ("up_day_share_", "ratio"),
    ("distance_", "ratio"),
)
_TEXTS = ("economic_exposure_cluster",)
_ASIDE = frozenset({
    "option_id", "symbol", "name", "asset_class", "category", "option_group", "risk_bucket", "status", "message",
    "as_of_date_requested", "as_of_price_date",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityRow:
    """One row of the quality evidence: percentile ranks within the universe, and their weighted sum."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    option_id: str
    low_volatility_rank: float
    prior_active_rank: float
    quality_evidence_score: float
    recent_active_reversal_rank: float
    shallow_drawdown_rank: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The quality evidence file; only its rows are facts about instruments."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    as_of_date_requested: str
    complete_options: int
    coverage: float
    methodology_version: str
    minimum_required_coverage: float
    profile: str
    rows: list[QualityRow]
    total_active_options: int
    version: str
    weights: dict[str, float]


def table_facts(name: str, text: str, options: Mapping[str, Any], cutoff: datetime) -> tuple[Fact, ...]:
    """The facts of one market CSV, all available at the cutoff.

    Raises
    ------
    ValueError
        Not such a table, a row about something that is not an option, or a row from after the cutoff.
    """
    short = "ret" if name == RETURNS else "ctx"
    facts: list[Fact] = []
    columns: tuple[_Column, ...] | None = None
    seen: set[str] = set()
    wrong: list[Problem] = []
    for line, row in csv_rows(text, lambda number, what: wrong.append(Problem(f"line {number}", what))):
        columns = columns or _columns(row)
        option = row.get("option_id", "")
        if option not in options:
            raise ValueError(f"line {line}, option_id: is none of the round's options (got {option!r})")
        if option in seen:
            raise ValueError(f"line {line}, option_id: stands twice (got {option!r})")
        seen.add(option)
        as_of = _as_of(row, line, cutoff)
        facts.extend(
            Fact(
                id=f"{short}:{option}.{column.name}",
                instrument=option,
                field=column.name,
                value=row[column.name] if column.unit == "text" else _number(row[column.name], line, column.name),
                unit=column.unit,
                available_at=cutoff,
                as_of=as_of,
                source=name,
                note=f"since {row[column.since]}" if column.since else "",
            )
            for column in columns
            if row[column.name]
        )
    if wrong:
        raise ShapeError(wrong)
    return tuple(facts)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that holds facts; ``since`` names the column with the first day of its span."""

    name: str
    unit: str
    since: str


def _columns(row: Mapping[str, str]) -> tuple[_Column, ...]:
    """The columns that hold facts; an unknown one is refused, for its unit would be a guess."""
    found = []
    for name in row:
        if name in _ASIDE or name.startswith("price_date_"):
            continue
        unit = "text" if name in _TEXTS else next((unit for start, unit in _UNITS if name.startswith(start)), None)
        if unit is None:
            raise ValueError(f"unknown column {name!r}")
        since = f"price_date_{name.rsplit('_', 1)[-1]}" if name.startswith("return_") else ""
        found.append(_Column(name, unit, since if since in row else ""))
    return tuple(found)


def _as_of(row: Mapping[str, str], line: int, cutoff: datetime) -> datetime | None:
    """The row's price date; a row from after the cutoff could not have been shown."""
    if not row.get("as_of_price_date"):
        return None
    as_of = midnight(day(row["as_of_price_date"]))
    if as_of > cutoff:
        raise ValueError(
            f"line {line}: a fact from the future (as of {as_of:%Y-%m-%d}, cutoff {cutoff:%Y-%m-%d %H:%M})"
        )
    return as_of


def _number(cell: str, line: int, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"line {line}, {column}: must be a finite number or empty (got {cell[:40]!r})")
    return value


def quality_facts(text: str, options: Mapping[str, Any], cutoff: datetime) -> tuple[Fact, ...]:
    """The facts of the quality evidence: five ranks and scores an option, in 0..1.

    Raises
    ------
    ValueError
        Not such a file, or a row about something that is not an option.
    """
    quality = object_as_shape(Quality, text)
    _refuse_unknown([row.option_id for row in quality.rows], options)
    as_of = midnight(day(quality.as_of_date_requested))
    return tuple(
        Fact(
            id=f"qual:{row.option_id}.{column}",
            instrument=row.option_id,
            field=column,
            value=getattr(row, column),
            unit="score" if column.endswith("score") else "rank",
            available_at=cutoff,
            as_of=as_of,
            source=QUALITY,
        )
        for row in quality.rows
        for column in _RANKS
    )


_RANKS = (
    "quality_evidence_score",
    "prior_active_rank",
    "recent_active_reversal_rank",
    "low_volatility_rank",
    "shallow_drawdown_rank",
)


def _refuse_unknown(found: Sequence[str], options: Mapping[str, Any]) -> None:
    unknown = [option for option in found if option not in options]
    if unknown:
        raise ValueError(f"rows.option_id: is none of the round's options (got {unknown[0]!r})")
    twice = [option for option in found if found.count(option) > 1]
    if twice:
        raise ValueError(f"rows.option_id: stands twice (got {twice[0]!r})")
