"""The material of a context as the text that agents and judges read; `material_reading` is the way back.

When a fact became available is left out on purpose: it is not later than the decision, or rendering is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby

from assaymark.errors import InputError, Problem
from assaymark.prompting.fences import row
from assaymark.records import Context, Decision, Fact, Series

Block = tuple[str, str]
"""A section's label and content."""

Column = tuple[str, str, str]
"""The field, unit and note that the facts in one column of a table share."""

Placed = tuple[Column, Fact]

_INSTRUMENT = ("instrument", "symbol", "name", "class", "group", "also called")

_MOST_SHOWN = 5
_DENSE = 0.5


@lru_cache(maxsize=4096)
def moment(when: datetime) -> str:
    """A time in UTC, RFC 3339."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def refuse_future(decision: Decision, context: Context) -> None:
    """Refuse a context that holds anything from after the decision.

    Raises
    ------
    InputError
        A fact was available, or a bar closed, later than ``decided_at``.
    """
    late = [
        Problem(f"fact {fact.id}", f"available at {moment(fact.available_at)}, after the decision")
        for fact in context.facts
        if fact.available_at > decision.decided_at
    ]
    late += [
        Problem(f"series {series.instrument}", f"has a bar of {moment(max(series.times))}, after the decision")
        for series in context.series
        if series.times and max(series.times) > decision.decided_at
    ]
    if late:
        more = [f"and {len(late) - _MOST_SHOWN} more"] if len(late) > _MOST_SHOWN else []
        where = f"record {decision.record_id}, decided at {moment(decision.decided_at)}"
        raise InputError(where, [*late[:_MOST_SHOWN], *more])


def latest(context: Context) -> datetime | None:
    """When the last fact became available or the last bar closed; None without facts and bars."""
    times = [fact.available_at for fact in context.facts]
    times += [max(series.times) for series in context.series if series.times]
    return max(times, default=None)


def material_blocks(context: Context) -> list[Block]:
    """The sections that all decisions of one context share, in their order; empty ones are left out."""
    blocks = [
        ("situation", _situation(context)),
        ("constraints", _lines(("kind", "limit", "unit", "scope"), _constraints(context))),
        (
            "instruments",
            _lines(("instrument", "symbol", "name", "class", "group", "also called"), _instruments(context)),
        ),
        ("holdings", _lines(("instrument", "units"), _positions(context))),
        ("facts", _facts(context.facts)),
        ("series", "\n".join(_series(series) for series in context.series)),
        ("prompt", context.prompt),
    ]
    return [(label, content) for label, content in blocks if content]


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head; nothing if it has no rows."""
    body = [row(cells) for cells in rows]
    return "\n".join([row(head), *body]) if body else ""


def _situation(context: Context) -> str:
    """What the material is, as pairs."""
    pairs = [("cutoff", moment(context.cutoff)), ("completeness", context.completeness)]
    if context.profile:
        pairs.append(("profile", context.profile))
    if context.portfolio:
        held = context.portfolio
        pairs += [("currency", held.currency), ("cash", number_text(held.cash)), ("nav", number_text(held.nav))]
    return "\n".join(row(pair) for pair in pairs)


def number_text(value: float | None) -> str:
    """A number with every digit it has; nothing for None."""
    return "" if value is None else repr(float(value))


def _constraints(context: Context) -> Iterable[Sequence[str]]:
    for limit in context.constraints:
        yield limit.kind, number_text(limit.limit), limit.unit, limit.scope


def _instruments(context: Context) -> Iterable[Sequence[str]]:
    for item in context.instruments:
        yield item.id, item.symbol or "", item.name, item.asset_class, item.group, "; ".join(item.aliases)


def _positions(context: Context) -> Iterable[Sequence[str]]:
    positions = context.portfolio.positions if context.portfolio else {}
    for instrument in sorted(positions):
        yield instrument, number_text(positions[instrument])


def _facts(facts: Sequence[Fact]) -> str:
    """Facts as wide tables where they form one (a row per instrument), the others one by one."""
    wide: dict[tuple[str, datetime | None], list[Placed]] = defaultdict(list)
    for fact in facts:
        if fact.instrument and not isinstance(fact.value, str):
            wide[fact.source, fact.as_of].append(((fact.field, fact.unit, fact.note), fact))
    tables: list[str] = []
    shown: set[int] = set()
    for (source, as_of), found in wide.items():
        grid: dict[str, dict[Column, Fact]] = {}
        for column, fact in _in_columns(found):
            grid.setdefault(fact.instrument, {}).setdefault(column, fact)
        columns = list(dict.fromkeys(column for of_row in grid.values() for column in of_row))
        count = sum(map(len, grid.values()))
        if count > 1 and count >= _DENSE * len(grid) * len(columns):
            tables.append(_table(source, moment(as_of) if as_of else "", columns, grid))
            shown.update(id(fact) for of_row in grid.values() for fact in of_row.values())
    rest = [fact for fact in facts if id(fact) not in shown]
    return "\n".join([*tables, *_single_facts(rest)])


def _in_columns(facts: list[Placed]) -> list[Placed]:
    """The facts of one source and day that may stand in a table: a note must be that of most of its column."""
    members = Counter(column for column, _ in facts)
    if not any(note for _, _, note in members):
        return facts
    enough = max(2.0, _DENSE * len({fact.instrument for _, fact in facts}))
    return [(column, fact) for column, fact in facts if not fact.note or members[column] >= enough]


def _table(source: str, as_of: str, columns: list[Column], grid: Mapping[str, Mapping[Column, Fact]]) -> str:
    """One wide table: a line that says what it is, a head, the notes of the columns if any, a line per instrument."""
    noted = any(note for _, _, note in columns)
    lines = [row(("table", str(len(grid)), source, as_of, *(["notes"] if noted else [])))]
    lines.append(row(("instrument", *(f"{field} [{unit}]" for field, unit, _ in columns))))
    if noted:
        lines.append(row(("note", *(note for _, _, note in columns))))
    for instrument, facts in grid.items():
        found = map(facts.get, columns)
        lines.append(row([instrument, *["" if fact is None else repr(float(fact.value)) for fact in found]]))
    return "\n".join(lines)


def _single_facts(facts: Sequence[Fact]) -> list[str]:
    """Facts one by one, under the sentence they were read from where there is one."""
    if not facts:
        return []
    lines = [row(("kind", "instrument", "field", "value", "unit", "as of", "source"))]
    for note, members in groupby(facts, key=lambda fact: fact.note):
        lines.append(row(("note", note)))
        for fact in members:
            value = fact.value if isinstance(fact.value, str) else number_text(fact.value)
            kind = "text" if isinstance(fact.value, str) else "fact"
            as_of = moment(fact.as_of) if fact.as_of else ""
            lines.append(row((kind, fact.instrument, fact.field, value, fact.unit, as_of, fact.source)))
    return lines


def _series(series: Series) -> str:
    """The bars of one instrument, oldest first."""
    names = [name for name in ("open", "high", "low", "close", "volume") if getattr(series, name)]
    columns = [getattr(series, name) for name in names]
    lines = [row(("bars", str(len(series.times)), series.instrument, str(series.interval_s))), row(("time", *names))]
    lines += [
        row((moment(when), *(number_text(column[at]) for column in columns))) for at, when in enumerate(series.times)
    ]
    return "\n".join(lines)
