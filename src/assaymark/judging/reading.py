"""A rendered prompt read back into records: all that a reference judge knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from assaymark.errors import InputError
from assaymark.judging.fences import Section, cells
from assaymark.judging.texts import JUDGED_KINDS
from assaymark.records import (
    Action,
    ActionKind,
    Completeness,
    Constraint,
    Context,
    Fact,
    Instrument,
    Portfolio,
    Rationale,
    Series,
)

Cell = float | str
_COLUMN = re.compile(r"(.*) \[(.*)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A decision as a judge sees it. ``tables`` holds stated lists, a mapping of column to cell for each entry."""

    actions: tuple[Action, ...]
    values: Mapping[str, Cell]
    tables: Mapping[str, tuple[Mapping[str, Cell], ...]]
    texts: tuple[Rationale, ...]

    @property
    def confidence(self) -> float | None:
        """The confidence of the whole decision, 0..1; None where the venue set it and not the agent."""
        value = self.values.get("confidence")
        return value if isinstance(value, float) and self.values.get("confidence_by") != "arena" else None


# --- the material ---------------------------------------------------------------------------------------------------


def read_material(found: Sequence[Section]) -> Context:
    """The material of a prompt as a context. Facts are numbered, and count as available at the cutoff.

    Raises
    ------
    InputError
        There is no material in these sections.
    """
    content = {section.label: section.content for section in reversed(found)}
    situation = dict(pair for line in _split(content.get("situation", "")) if len(pair := cells(line)) == 2)
    if "cutoff" not in situation:
        raise InputError("prompt", ["holds no material"])
    cutoff = datetime.fromisoformat(situation["cutoff"])
    facts = _read_facts(content.get("facts", ""), cutoff)
    return Context(
        completeness=_completeness(situation["completeness"]),
        cutoff=cutoff,
        cutoff_source="prompt",
        prompt=content.get("prompt", ""),
        facts=facts,
        series=tuple(_read_series(content.get("series", ""))),
        instruments=tuple(_read_instrument(line) for line in _body(content.get("instruments", ""))),
        portfolio=_read_portfolio(situation, content.get("holdings", "")),
        constraints=tuple(_read_constraint(line) for line in _body(content.get("constraints", ""))),
        profile=situation.get("profile"),
    )


def _split(text: str) -> list[str]:
    """The lines of a section; none of an empty one."""
    return text.split("\n") if text else []


def _body(text: str) -> list[list[str]]:
    """The rows of a table below its head."""
    return [cells(line) for line in _split(text)[1:]]


def _completeness(word: str) -> Completeness:
    return "complete" if word == "complete" else "partial"


def _read_instrument(found: list[str]) -> Instrument:
    name, symbol, words, asset_class, group, aliases = found
    return Instrument(
        id=name,
        symbol=symbol or None,
        name=words,
        asset_class=asset_class,
        group=group,
        aliases=tuple(alias for alias in aliases.split("; ") if alias),
    )


def _read_constraint(found: list[str]) -> Constraint:
    kind, limit, unit, scope = found
    return Constraint(kind=kind, limit=float(limit), unit=unit, scope=scope)


def _read_portfolio(situation: Mapping[str, str], holdings: str) -> Portfolio | None:
    if "nav" not in situation:
        return None
    positions = {instrument: float(units) for instrument, units in _body(holdings)}
    return Portfolio(
        currency=situation["currency"],
        cash=float(situation["cash"]),
        nav=float(situation["nav"]),
        positions=positions,
    )


def _read_facts(text: str, cutoff: datetime) -> tuple[Fact, ...]:
    """Every fact, in the order of the prompt."""
    lines = iter(_split(text))
    facts: list[Fact] = []
    note = ""
    for line in lines:
        found = cells(line)
        if found[0] == "table":
            facts += _read_table(found, lines, len(facts), cutoff)
        elif found[0] == "note":
            note = found[1]
        elif found[0] in ("fact", "text"):
            facts.append(_read_single(found, note, f"f{len(facts) + 1}", cutoff))
    return tuple(facts)


def _read_table(said: list[str], lines: Iterator[str], before: int, cutoff: datetime) -> list[Fact]:
    """The facts of one wide table, ``before`` having come first; the iterator is left behind its last row."""
    _, count, source, moment, *noted = said
    as_of = _moment(moment)
    heads = [_COLUMN.fullmatch(head) for head in cells(next(lines))[1:]]
    notes = cells(next(lines))[1:] if noted else [""] * len(heads)
    columns = [(*match.groups(), note) for match, note in zip(heads, notes, strict=True) if match]
    facts: list[Fact] = []
    for _ in range(int(count)):
        instrument, *values = cells(next(lines))
        for (field, unit, note), value in zip(columns, values, strict=True):
            if value:
                fact = Fact(
                    id=f"f{before + len(facts) + 1}",
                    instrument=instrument,
                    field=field,
                    value=float(value),
                    unit=unit,
                    available_at=cutoff,
                    as_of=as_of,
                    source=source,
                    note=note,
                )
                facts.append(fact)
    return facts


def _read_single(found: list[str], note: str, name: str, cutoff: datetime) -> Fact:
    """One fact from its line."""
    kind, instrument, field, written, unit, as_of, source = found
    return Fact(
        id=name,
        instrument=instrument,
        field=field,
        value=float(written) if kind == "fact" else written,
        unit=unit,
        available_at=cutoff,
        as_of=_moment(as_of),
        source=source,
        note=note,
    )


def _read_series(text: str) -> Iterator[Series]:
    """The bars of every instrument."""
    lines = iter(_split(text))
    for line in lines:
        _, count, instrument, interval = cells(line)
        names = cells(next(lines))[1:]
        rows = [cells(next(lines)) for _ in range(int(count))]
        columns = {name: tuple(float(found[at]) for found in rows) for at, name in enumerate(names, start=1)}
        times = tuple(datetime.fromisoformat(found[0]) for found in rows)
        yield Series(instrument=instrument, interval_s=int(interval), times=times, **{"close": (), **columns})


@lru_cache(maxsize=4096)
def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# --- the decision ---------------------------------------------------------------------------------------------------


def read_decision(found: Sequence[Section]) -> Shown:
    """The decision of a prompt."""
    content = {section.label: section.content for section in reversed(found)}
    values, tables = _read_stated(content.get("stated", ""))
    texts = tuple(
        Rationale(text=section.content, kind=section.label) for section in found if section.label in JUDGED_KINDS
    )
    return Shown(_read_actions(content.get("actions", "")), values, tables, texts)


def _read_actions(text: str) -> tuple[Action, ...]:
    """The actions, from their table."""
    lines = [cells(line) for line in _split(text)]
    return tuple(_read_action(lines[0], line) for line in lines[1:])


def _read_action(head: list[str], found: list[str]) -> Action:
    """One action; empty cells are absent values."""
    cells_by_name = dict(zip(head, found, strict=True))
    numbers: dict[str, Any] = {name: float(cell) for name, cell in list(cells_by_name.items())[2:] if cell}
    return Action(instrument=found[0], kind=cast(ActionKind, found[1]), **numbers)


def _read_stated(text: str) -> tuple[dict[str, Cell], dict[str, tuple[Mapping[str, Cell], ...]]]:
    """Stated single values and tables, by path."""
    values: dict[str, Cell] = {}
    tables: dict[str, tuple[Mapping[str, Cell], ...]] = {}
    lines = iter(_split(text))
    for line in lines:
        kind, second, third = cells(line)
        if kind == "value":
            values[second] = _cell(third)
        else:
            head = cells(next(lines))
            rows = [cells(next(lines)) for _ in range(int(second))]
            tables[third] = tuple({k: _cell(v) for k, v in zip(head, found, strict=True) if v} for found in rows)
    return values, tables


def _cell(text: str) -> Cell:
    """A number where the cell is one, else its word."""
    try:
        return float(text)
    except ValueError:
        return text
