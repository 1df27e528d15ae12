"""Market and fundamental lines of one step: what its context says about the symbols that matter in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from assaymark.prompting.context import number_text
from assaymark.prompting.fences import row
from assaymark.records import Context, Fact

_LAST = {"open": "price", "high": "price", "low": "price", "close": "price", "volume": "count"}
"""The fields of a last bar that stand beside the facts, with their units."""

ACTION: Final = "action"
"""The source of facts on splits and dividends; ``as_of`` is their ex-date."""


@dataclass(frozen=True, slots=True)
class MarketLines:
    """A table as text: columns are fields with their unit, each row is a symbol and its cells.

    ``words`` are the cells and columns that are not numbers: what blinding has to look at.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[str, ...] = ()
    text: str = field(init=False, repr=False, compare=False)
    """The table as it is shown; empty without rows. A horizon is rendered for many calls, and most of it is this."""

    def __post_init__(self) -> None:
        shown = "\n".join(table_lines("market", ("symbol", *self.columns), self.rows))
        object.__setattr__(self, "text", shown)

    def worded(self, said: Mapping[str, str]) -> MarketLines:
        """The same table with its words replaced."""
        changed = {word: said[word] for word in self.words if said.get(word, word) != word}
        if not changed:
            return self
        return MarketLines(
            tuple(changed.get(column, column) for column in self.columns),
            tuple((line[0], *(changed.get(cell, cell) for cell in line[1:])) for line in self.rows),
            tuple(changed.get(word, word) for word in self.words),
        )


def table_lines(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with its name, size and head, a line for each row; nothing if it has no rows."""
    body = [row(cells) for cells in rows]
    return [row(("table", str(len(body)), name)), row(head), *body] if body else []


NO_MARKET = MarketLines((), ())


def market_lines(context: Context, symbols: Iterable[str]) -> MarketLines:
    """The facts of a context about some symbols, as a table with a row for each symbol that has any.

    ``symbols`` are ids or symbols of instruments. Of a field that a symbol has twice the one of the latest period is
    shown, or the one that became available last; a split or dividend stands on its ex-date alone. The last bar of a
    price series stands beside the facts. Facts about no instrument are left out, and so are sources and notes.

    >>> from datetime import UTC, datetime
    >>> now = datetime(2026, 3, 2, tzinfo=UTC)
    >>> facts = [Fact(id=f, instrument="A", field=f, value=v, unit="ratio", available_at=now) for f, v in
    ...          [("pe", 21.5), ("margin", 0.25)]]
    >>> shown = Context(completeness="partial", cutoff=now, cutoff_source="", prompt="", facts=tuple(facts))
    >>> market_lines(shown, ["A", "B"]).rows
    (('A', '21.5', '0.25'),)
    """
    wanted = set(symbols)
    wanted |= {item.id for item in context.instruments if item.symbol in wanted}
    grid: dict[str, dict[str, Fact]] = {}
    for fact in context.facts:
        if fact.instrument in wanted and not _gone_by(fact, context):
            known = grid.setdefault(fact.instrument, {})
            column = f"{fact.field} [{fact.unit}]"
            if column not in known or _later(fact, known[column]):
                known[column] = fact
    cells = {symbol: {column: _cell(fact) for column, fact in found.items()} for symbol, found in grid.items()}
    for series in context.series:
        if series.instrument in wanted:
            last = {name: getattr(series, name)[-1] for name in _LAST if getattr(series, name)}
            own = cells.setdefault(series.instrument, {}) if last else {}
            own |= {f"last {name} [{_LAST[name]}]": number_text(value) for name, value in last.items()}
    columns = tuple(dict.fromkeys(column for found in cells.values() for column in found))
    rows = tuple((symbol, *(cells[symbol].get(column, "") for column in columns)) for symbol in sorted(cells))
    texts = [fact.value for found in grid.values() for fact in found.values() if isinstance(fact.value, str)]
    return MarketLines(columns, rows, tuple(dict.fromkeys([*columns, *texts])))


def _cell(fact: Fact) -> str:
    return fact.value if isinstance(fact.value, str) else number_text(fact.value)


def _gone_by(fact: Fact, context: Context) -> bool:
    """Whether it is a corporate action of an earlier day: a table of one day cannot say which."""
    return fact.source == ACTION and fact.as_of is not None and fact.as_of.date() < context.cutoff.date()


def _later(one: Fact, other: Fact) -> bool:
    """Whether a fact is the newer of two; by id where both came at once, so that their order does not matter."""
    if one.as_of and other.as_of and one.as_of != other.as_of:
        return one.as_of > other.as_of

    def key(fact: Fact) -> tuple[datetime, str]:
        return fact.available_at, fact.id

    return key(one) > key(other)
