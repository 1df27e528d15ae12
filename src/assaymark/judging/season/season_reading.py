"""A rendered horizon read back: all that a reference judge of a season knows of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assaymark.errors import InputError, Problem
from assaymark.prompting.fences import cells, sections
from assaymark.prompting.texts import JUDGED_KINDS

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step as a judge sees it: its tables by name, a mapping of column to cell for each row, and its texts.

    ``cash`` is None where no book is shown.
    """

    number: int
    day: str
    tables: Mapping[str, tuple[Row, ...]]
    cash: float | None = None
    texts: tuple[tuple[str, str], ...] = ()
    outcomes: tuple[Row, ...] = ()

    @property
    def text(self) -> str:
        """The judged texts as one."""
        return "\n\n".join(text for _, text in self.texts)

    def rows(self, table: str) -> tuple[Row, ...]:
        """The rows of a table; none where it is not shown."""
        return self.tables.get(table, ())

    @property
    def positions(self) -> dict[str, float] | None:
        """Units by symbol after the step; None where no book is shown."""
        return None if self.cash is None else {one["symbol"]: float(one["units"]) for one in self.rows("book")}


@dataclass
class _Open:
    """A step as its sections come."""

    tables: Mapping[str, tuple[Row, ...]]
    number: int
    day: str
    cash: float | None
    texts: list[tuple[str, str]] = field(default_factory=list)
    outcomes: tuple[Row, ...] = ()

    def closed(self) -> ShownStep:
        return ShownStep(self.number, self.day, self.tables, self.cash, tuple(self.texts), self.outcomes)


def read_steps(text: str) -> tuple[ShownStep, ...]:
    """The steps of a user message.

    Raises
    ------
    InputError
        A fence is damaged, or a step is not in the form in which this package renders it.
    """
    steps: list[_Open] = []
    for section in sections(text):
        if section.label == "step":
            steps.append(_opened(section.content.split("\n")))
        elif steps and section.label == "outcomes":
            steps[-1].outcomes = _tables(section.content.split("\n")).get("outcomes", ())
        elif steps and section.label in JUDGED_KINDS:
            steps[-1].texts.append((section.label, section.content))
    return tuple(step.closed() for step in steps)


def _opened(lines: Sequence[str]) -> _Open:
    """A step from the lines of its first section."""
    head = cells(lines[0])
    if len(head) != 3 or head[0] != "step" or not head[1].isdecimal():
        raise InputError("prompt", [Problem("step", f"its first line is not a step's (got {lines[0][:60]!r})")])
    cash = [float(line.partition("\t")[2]) for line in lines if line.startswith("cash\t")]
    return _Open(_tables(lines[1:]), int(head[1]), head[2], cash[0] if cash else None)


def _tables(lines: Sequence[str]) -> dict[str, tuple[Row, ...]]:
    """The tables among some lines, by name."""
    found: dict[str, tuple[Row, ...]] = {}
    at = 0
    while at < len(lines):
        if lines[at].startswith("table\t"):
            _, size, name = cells(lines[at])
            head = cells(lines[at + 1])
            body = lines[at + 2 : at + 2 + int(size)]
            found[name] = tuple(dict(zip(head, cells(line), strict=True)) for line in body)
            at += 1 + int(size)
        at += 1
    return found
