"""A briefing as facts: one per number of its tables and sentences, each with the row or sentence it stands in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ConfigDict

from assaymark.errors import Problem
from assaymark.importers.capitalbench.numbers import Number, numbers
from assaymark.importers.read import csv_rows, day, midnight, object_as_shape
from assaymark.importers.report import ShapeError
from assaymark.records import Fact

_ESCAPE = re.compile(r"\\([\\&\-.>~*_|+#$()\[\]])")
_EMPHASIS = re.compile(r"\*\*|__|`")
_RULE = re.compile(r"^\|?[\s:|-]+\|?$")
_CELLS = re.compile(r"(?<!\\)\|")
# "U.S. Treasury" is one sentence: a capital before the stop ends nothing.
_SENTENCE = re.compile(r"(?<=[a-z0-9%)\"]\.)\s+(?=[A-Z\"(*])")
_WORD = re.compile(r"[^\s,;:()\"]+")
_ASIDE = re.compile(
    r"date|period|source|status|publisher|_id$|^id$|note|missing|comparison_type|window|entity|deadline|cutoff", re.I
)

_OPTION_COLUMNS = ("option_id", "asset proxy", "symbol", "option")
_LABEL_WORDS = 6
_LABEL_LENGTH = 60

# One endless line with a number in every word must not cost its length squared.
_REACH = 200
_NOTE_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Stated:
    """One number of a briefing, before it is given an id and a time."""

    instrument: str
    label: str
    value: float
    unit: str
    note: str


def briefing_facts(text: str, options: Mapping[str, str], available_at: datetime) -> tuple[Fact, ...]:
    """The facts a briefing states, in its order."""
    return tuple(
        Fact(
            id=f"b{number}",
            instrument=one.instrument,
            field=one.label,
            value=one.value,
            unit=one.unit,
            available_at=available_at,
            source="briefing.md",
            note=one.note,
        )
        for number, one in enumerate(_stated(text, options), start=1)
    )


def _stated(text: str, options: Mapping[str, str]) -> Iterator[Stated]:
    """Every number, block by block."""
    header: tuple[str, ...] | None = None
    heading = ""
    lines = [_plain(line) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if line.startswith("|"):
            if _RULE.match(line):
                continue
            if header is None and number + 1 < len(lines) and _RULE.match(lines[number + 1]):
                header = _row(line)
            else:
                yield from _of_row(_row(line), header or (), options)
            continue
        header = None
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
        else:
            yield from _of_prose(line.lstrip("-*• \t"), heading)


def _plain(line: str) -> str:
    """A line without Markdown's escapes and emphasis; escaped bars stay escaped for the cells."""
    line = line.strip()
    if "\\" in line:
        line = _ESCAPE.sub(lambda m: m[0] if m[1] == "|" else m[1], line)
    # Looked for first: most lines have none, and the search for three marks at once is slow.
    return _EMPHASIS.sub("", line) if "**" in line or "__" in line or "`" in line else line


def _row(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip().strip("|")))


def _of_row(cells: tuple[str, ...], header: tuple[str, ...], options: Mapping[str, str]) -> Iterator[Stated]:
    """The numbers of one table row; a unit column gives the bare ones their unit."""
    note = " | ".join(cells)[:_NOTE_LENGTH]
    subject = _subject(cells, header, options)
    stated_unit = next((cell for cell, name in zip(cells, header, strict=False) if name.lower().startswith("unit")), "")
    for place, cell in enumerate(cells[1:], start=1):
        name = header[place] if place < len(header) else ""
        if _ASIDE.search(name) or name.lower().startswith("unit"):
            continue
        for found in numbers(cell):
            value, unit = _in_unit(found, cell, stated_unit)
            label = name if subject else f"{cells[0]}, {name}".strip(", ")
            yield Stated(subject, label[:_LABEL_LENGTH], value, unit, note)


def _subject(cells: tuple[str, ...], header: tuple[str, ...], options: Mapping[str, str]) -> str:
    """The option a row is about, where its table is one of options: a macro row called "Gold" is not about a fund."""
    if not header or header[0].lower() not in _OPTION_COLUMNS:
        return ""
    return next((options[cell.upper()] for cell in cells[:2] if cell.upper() in options), "")


def _in_unit(found: Number, cell: str, unit: str) -> tuple[float, str]:
    """A table number in the unit of its row, unless the cell itself says one."""
    printed = cell[found.start : found.end]
    if not unit or found.unit not in ("index", "count") or re.search(r"[a-z%]", printed, re.I):
        return found.value, found.unit
    words = unit.lower()
    factor = next((f for w, f in _FACTORS if w in words), 1.0)
    return found.value * factor, _unit_word(words, found.unit, factor)


_FACTORS = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6), ("thousand", 1e3))


def _unit_word(words: str, default: str, factor: float) -> str:
    """Our word for the unit that a table names."""
    for mark, unit in _UNITS:
        if mark in words:
            return unit
    return "count" if factor != 1.0 else default


_UNITS = (
    ("basis point", "bps"),
    ("bps", "bps"),
    ("percent", "percent"),
    ("%", "percent"),
    ("$", "usd"),
    ("usd", "usd"),
    ("dollar", "usd"),
    ("ratio", "multiple"),
    ("multiple", "multiple"),
    ("index", "index"),
    ("point", "index"),
)


def _of_prose(line: str, heading: str) -> Iterator[Stated]:
    """The numbers of running text, sentence by sentence."""
    for sentence in _SENTENCE.split(line):
        for found in numbers(sentence):
            before = _WORD.findall(sentence, max(found.start - _REACH, 0), found.start)[-_LABEL_WORDS:]
            label = " ".join(before) or heading
            note = (
                sentence if len(sentence) <= _NOTE_LENGTH else sentence[max(found.start - _REACH, 0) :][:_NOTE_LENGTH]
            )
            yield Stated("", label[-_LABEL_LENGTH:].strip(), found.value, found.unit, note)


# A round's market tables as facts: every number that stands in a cell, and none for an empty cell.


RETURNS, DECISION, QUALITY = (
    "universe_trailing_returns.csv",
    "universe_decision_context.csv",
    "universe_quality_evidence.json",
)
"""The three market files of a round that hold facts."""

_TABLES_UNITS: tuple[tuple[str, str], ...] = (
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
_TABLES_ASIDE = frozenset({
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
    """The facts of one market CSV, all available at the cutoff."""
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
        if name in _TABLES_ASIDE or name.startswith("price_date_"):
            continue
        unit = (
            "text" if name in _TEXTS else next((unit for start, unit in _TABLES_UNITS if name.startswith(start)), None)
        )
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
    """The facts of the quality evidence: five ranks and scores an option, in 0..1."""
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
