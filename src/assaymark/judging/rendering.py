"""A decision as the text that a judge reads. Nothing else of the record gets in.

Left out on purpose: who decided, when, in which episode and record, and everything that happened afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from assaymark.prompting.fences import row
from assaymark.prompting.material import Block, number_text
from assaymark.prompting.texts import judged_rationales
from assaymark.records import JSON, Action, Decision

ACTION_NUMBERS = (
    "weight",
    "quantity",
    "price",
    "leverage",
    "stop",
    "target",
    "confidence",
    "expected_return",
)
"""The numeric fields of an action, in the order of their columns; a column appears where any action has a value."""

STATED_WORDS = frozenset(("selected", "rejected", "held", "agent", "arena"))
"""Words of structured parts that are shown beside numbers and instruments."""


def decision_blocks(decision: Decision, known: Collection[str] = ()) -> list[Block]:
    """The sections of one decision: what it does, what it states in numbers, and each judged text.

    Of the structured parts only numbers are shown, and single words that are instruments (``known``) or belong to
    `STATED_WORDS`: anything else there may say who decided, or in which run.
    """
    texts = [(rationale.kind, rationale.text) for rationale in judged_rationales(decision)]
    return [("actions", _actions(decision.actions)), ("stated", _stated(decision, known)), *texts]


def _actions(actions: Sequence[Action]) -> str:
    """A table of the actions with the columns that any of them fills."""
    filled = [name for name in ACTION_NUMBERS if any(getattr(action, name) is not None for action in actions)]
    rows = [
        (action.instrument, action.kind, *(number_text(getattr(action, name)) for name in filled)) for action in actions
    ]
    return "\n".join(row(cells) for cells in [("instrument", "action", *filled), *rows])


def _stated(decision: Decision, known: Collection[str]) -> str:
    """Confidence and the structured parts: single values first, then every list of alike entries as a table."""
    parts = _Parts(known)
    if decision.confidence is not None:
        parts.add("confidence", decision.confidence)
    for name in sorted(decision.stages):
        parts.add(name, decision.stages[name])
    return "\n".join([*parts.values, *parts.tables])


class _Parts:
    """The lines of structured parts as they are collected."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = known
        self.values: list[str] = []
        self.tables: list[str] = []

    def add(self, path: str, value: JSON) -> None:
        """One part: a value, an object of parts, a list of parts, or a list of alike entries."""
        if isinstance(value, Mapping):
            for key in sorted(value):
                self.add(f"{path}.{key}", value[key])
        elif isinstance(value, (list, tuple)):
            self._add_list(path, value)
        elif (cell := self._cell(value)) is not None:
            self.values.append(row(("value", path, cell)))

    def _add_list(self, path: str, items: Sequence[JSON]) -> None:
        """Entries become a table of their numbers and known words, other items are parts of their own."""
        entries = [item for item in items if isinstance(item, Mapping)]
        if len(entries) < len(items):
            for at, item in enumerate(items):
                self.add(f"{path}.{at}", item)
            return
        rows = [{key: cell for key in entry if (cell := self._cell(entry[key])) is not None} for entry in entries]
        columns = list(dict.fromkeys(key for found in rows for key in found))
        if columns:
            body = [row([found.get(key, "") for key in columns]) for found in rows]
            self.tables.append("\n".join([row(("table", str(len(body)), path)), row(columns), *body]))

    def _cell(self, value: JSON) -> str | None:
        """A number or a known word as a cell; None for what is not shown."""
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return number_text(value)
        return value if isinstance(value, str) and (value in self.known or value in STATED_WORDS) else None
