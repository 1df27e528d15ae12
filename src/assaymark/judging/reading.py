"""A rendered decision read back: all that a reference judge knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assaymark.prompting.fences import Section, cells
from assaymark.prompting.material_reading import lines_of
from assaymark.prompting.texts import JUDGED_KINDS
from assaymark.records import Action, ActionKind, Rationale

Cell = float | str


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
    lines = [cells(line) for line in lines_of(text)]
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
    lines = iter(lines_of(text))
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
