"""A rendered material read back into a context: all that a reference agent or judge knows of the market."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from assaymark.errors import InputError
from assaymark.prompting.fences import Section, cells
from assaymark.records import Completeness, Constraint, Context, Fact, Instrument, Portfolio, Series

_COLUMN = re.compile(r"(.*) \[(.*)\]", re.DOTALL)


def read_material(found: Sequence[Section]) -> Context:
    """The material of a prompt as a context. Facts are numbered, and count as available at the cutoff.

    Raises
    ------
    InputError
        There is no material in these sections.
    """
    content = {section.label: section.content for section in reversed(found)}
    situation = dict(pair for line in lines_of(content.get("situation", "")) if len(pair := cells(line)) == 2)
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


def lines_of(text: str) -> list[str]:
    """The lines of a section; none of an empty one."""
    return text.split("\n") if text else []


def _body(text: str) -> list[list[str]]:
    """The rows of a table below its head."""
    return [cells(line) for line in lines_of(text)[1:]]


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
    lines = iter(lines_of(text))
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
    lines = iter(lines_of(text))
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
