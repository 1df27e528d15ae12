"""The material of a context as the text that agents and judges read, and that text read back into a context."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.records import Constraint, Context, Decision, Fact, Instrument, Portfolio, Series, sha256_text
from assaymark.text import code_points

# The syntax of a prompt: fences that their content cannot close, and rows of cells inside them

_BEGIN = re.compile(r"^<<<BEGIN ([a-z]+) ([0-9a-f]{16})>>>\n", re.MULTILINE)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPE = re.compile(r"[\\\t\n\r]")
_ESCAPE_BESIDE_TAB = re.compile(r"[\\\n\r]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPES = {"t": "\t", "n": "\n", "r": "\r"}


@dataclass(frozen=True, slots=True)
class Section:
    """What stands between one pair of fences."""

    label: str
    content: str


def nonce(label: str, content: str) -> str:
    """16 hex digits of sha256 over label and content."""
    return hashlib.sha256(f"{label}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fence(label: str, content: str) -> str:
    """``content`` between two lines that name it and carry its nonce."""
    content = code_points(content)
    mark = f"{label} {nonce(label, content)}"
    return f"<<<BEGIN {mark}>>>\n{content}\n<<<END {mark}>>>"


def sections(text: str) -> tuple[Section, ...]:
    """The outermost fenced sections of a prompt, in order. What looks like a fence inside of one is content."""
    found = []
    at = 0
    while begin := _BEGIN.search(text, at):
        label, mark = begin.groups()
        end = f"\n<<<END {label} {mark}>>>"
        # One character back, because an empty content shares its two line ends.
        stop = text.find(end, begin.end() - 1)
        content = text[begin.end() : max(stop, begin.end())]
        if stop < 0 or nonce(label, content) != mark:
            raise InputError("prompt", [Problem(f"section {label}", "its fence is not closed or was tampered with")])
        found.append(Section(label, content))
        at = stop + len(end)
    return tuple(found)


def row(cells: Iterable[str]) -> str:
    """Cells as one line, separated by tabs; a tab or line end in a cell is written as an escape."""
    found = list(cells)
    line = "\t".join(found)
    if line.count("\t") == len(found) - 1 and not _ESCAPE_BESIDE_TAB.search(line):
        return line
    return "\t".join(_ESCAPE.sub(lambda match: _ESCAPES[match.group()], cell) for cell in found)


def cells(line: str) -> list[str]:
    """The cells of a line, as they were before `row`."""
    if "\\" not in line:
        return line.split("\t")
    return [_ESCAPED.sub(lambda m: _UNESCAPES.get(m.group(1), m.group(1)), cell) for cell in line.split("\t")]


_PART: Final = re.compile(r"^=== ([A-Za-z0-9_]+) ===\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class PromptTemplate:
    """A prompt template: its file name, its text with the sha256 of it, and its parts by name."""

    name: str
    text: str
    sha256: str
    parts: Mapping[str, Template]

    @classmethod
    def of(cls, name: str, text: str) -> PromptTemplate:
        """The template in a text, part by part."""
        _, *found = _PART.split(text)
        parts = {key: Template(part.rstrip("\n")) for key, part in zip(found[::2], found[1::2], strict=True)}
        return cls(name, text, sha256_text(text), parts)

    def part(self, name: str) -> str:
        """One part as it stands, with nothing filled in."""
        return self.parts[name].template

    def filled(self, part: str, **values: object) -> str:
        """One part with its values; a value too few is a `KeyError`."""
        return self.parts[part].substitute(values)


@cache
def prompt_template(package: str, name: str) -> PromptTemplate:
    """The template ``name`` of a package, from its folder ``templates``."""
    return PromptTemplate.of(name, (files(package) / "templates" / name).read_text(encoding="utf-8"))


# When a fact became available is left out on purpose: it is not later than the decision, or rendering is refused.

Block = tuple[str, str]
"""A section's label and content."""

Column = tuple[str, str, str]
"""The field, unit and note that the facts in one column of a table share."""

Placed = tuple[Column, Fact]

_MOST_SHOWN = 5
_DENSE = 0.5


@lru_cache(maxsize=4096)
def moment(when: datetime) -> str:
    """A time in UTC, RFC 3339."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def refuse_future(decision: Decision, context: Context) -> None:
    """Refuse a context that holds anything from after the decision."""
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
    pairs = [("cutoff", moment(context.cutoff)), ("completeness", context.completeness)]
    if context.profile:
        pairs.append(("profile", context.profile))
    positions: Mapping[str, float] = {}
    if held := context.portfolio:
        positions = held.positions
        pairs += [("currency", held.currency), ("cash", number_text(held.cash)), ("nav", number_text(held.nav))]
    limits = [(one.kind, number_text(one.limit), one.unit, one.scope) for one in context.constraints]
    instruments = [
        (one.id, one.symbol or "", one.name, one.asset_class, one.group, "; ".join(one.aliases))
        for one in context.instruments
    ]
    units = [(instrument, number_text(positions[instrument])) for instrument in sorted(positions)]
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        ("constraints", ("kind", "limit", "unit", "scope"), limits),
        ("instruments", ("instrument", "symbol", "name", "class", "group", "also called"), instruments),
        ("holdings", ("instrument", "units"), units),
    ]
    blocks = [("situation", "\n".join(map(row, pairs)))]
    blocks += [(label, "\n".join(map(row, [head, *rows])) if rows else "") for label, head, rows in tables]
    blocks.append(("facts", _facts(context.facts)))
    blocks += [("series", "\n".join(map(_series, context.series))), ("prompt", context.prompt)]
    return [(label, content) for label, content in blocks if content]


def number_text(value: float | None) -> str:
    """A number with every digit it has; nothing for None."""
    return "" if value is None else repr(float(value))


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
        if any(note for (_, _, note), _ in found):
            # A note must be that of most of its column.
            members = Counter(column for column, _ in found)
            enough = max(2.0, _DENSE * len({fact.instrument for _, fact in found}))
            found = [(column, fact) for column, fact in found if not fact.note or members[column] >= enough]
        for column, fact in found:
            grid.setdefault(fact.instrument, {}).setdefault(column, fact)
        columns = list(dict.fromkeys(column for of_row in grid.values() for column in of_row))
        count = sum(map(len, grid.values()))
        if count > 1 and count >= _DENSE * len(grid) * len(columns):
            tables.append(_table(source, moment(as_of) if as_of else "", columns, grid))
            shown.update(id(fact) for of_row in grid.values() for fact in of_row.values())
    rest = [fact for fact in facts if id(fact) not in shown]
    return "\n".join([*tables, *_single_facts(rest)])


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


_COLUMN = re.compile(r"(.*) \[(.*)\]", re.DOTALL)


def read_material(found: Sequence[Section]) -> Context:
    """The material of a prompt as a context. Facts are numbered, and count as available at the cutoff."""
    content = {section.label: section.content for section in reversed(found)}
    situation = dict(pair for line in lines_of(content.get("situation", "")) if len(pair := cells(line)) == 2)
    if "cutoff" not in situation:
        raise InputError("prompt", ["holds no material"])
    cutoff = datetime.fromisoformat(situation["cutoff"])

    def body(label: str) -> list[list[str]]:  # the rows of a table below its head
        return [cells(line) for line in lines_of(content.get(label, ""))[1:]]

    portfolio: Portfolio | None = None
    if "nav" in situation:
        cash, nav = float(situation["cash"]), float(situation["nav"])
        positions = {instrument: float(units) for instrument, units in body("holdings")}
        portfolio = Portfolio(currency=situation["currency"], cash=cash, nav=nav, positions=positions)
    instruments = [
        Instrument(
            id=name, symbol=symbol or None, name=words, asset_class=asset_class, group=group,
            aliases=tuple(alias for alias in aliases.split("; ") if alias),
        )
        for name, symbol, words, asset_class, group, aliases in body("instruments")
    ]  # fmt: skip
    return Context(
        completeness="complete" if situation["completeness"] == "complete" else "partial",
        cutoff=cutoff,
        cutoff_source="prompt",
        prompt=content.get("prompt", ""),
        facts=_read_facts(content.get("facts", ""), cutoff),
        series=tuple(_read_series(content.get("series", ""))),
        instruments=tuple(instruments),
        portfolio=portfolio,
        constraints=tuple(
            Constraint(kind=kind, limit=float(limit), unit=unit, scope=scope)
            for kind, limit, unit, scope in body("constraints")
        ),
        profile=situation.get("profile"),
    )


def lines_of(text: str) -> list[str]:
    """The lines of a section; none of an empty one."""
    return text.split("\n") if text else []


def _read_facts(text: str, cutoff: datetime) -> tuple[Fact, ...]:
    """Every fact, in the order of the prompt."""
    lines = iter(lines_of(text))
    facts: list[Fact] = []
    note = ""

    def add(instrument: str, field: str, value: float | str, unit: str, as_of: str, source: str, said: str) -> None:
        fact = Fact(
            id=f"f{len(facts) + 1}", instrument=instrument, field=field, value=value, unit=unit, available_at=cutoff,
            as_of=_moment(as_of), source=source, note=said,
        )  # fmt: skip
        facts.append(fact)

    for line in lines:
        kind, *found = cells(line)
        if kind == "note":
            note = found[0]
        elif kind in ("fact", "text"):
            instrument, field, written, unit, as_of, source = found
            add(instrument, field, float(written) if kind == "fact" else written, unit, as_of, source, note)
        elif kind == "table":
            count, source, as_of, *noted = found
            heads = [_COLUMN.fullmatch(head) for head in cells(next(lines))[1:]]
            notes = cells(next(lines))[1:] if noted else [""] * len(heads)
            columns = [(*match.groups(), said) for match, said in zip(heads, notes, strict=True) if match]
            for _ in range(int(count)):
                instrument, *values = cells(next(lines))
                for (field, unit, said), value in zip(columns, values, strict=True):
                    if value:
                        add(instrument, field, float(value), unit, as_of, source, said)
    return tuple(facts)


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
