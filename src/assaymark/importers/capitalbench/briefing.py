"""A briefing as facts: one per number of its tables and sentences, each with the row or sentence it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from assaymark.importers.capitalbench.numbers import Number, numbers
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
    """The facts a briefing states, in its order.

    Parameters
    ----------
    text : str
        The briefing, Markdown.
    options : mapping of upper-case id or symbol to option id
        Rows of tables that begin with one of these are about that option.
    available_at : datetime
        The round's cutoff.
    """
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
