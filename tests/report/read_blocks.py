"""Read the tables, notes and words of sections of blocks, without markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from assaymark.report import Block, Columns, Figure, Group, Items, Page, Prose, Section, Table, Terms, plain


def blocks_of(part: Page | Section | Group | Iterable[Block]) -> Iterator[Block]:
    """Every block of a part, those of its groups and columns too."""
    found = part.blocks if isinstance(part, Page | Section | Group) else part
    for block in (*found, *(part.sections if isinstance(part, Page) else ())):
        if isinstance(block, Section):
            yield from blocks_of(block)
            continue
        yield block
        if isinstance(block, Group):
            yield from blocks_of(block)
        elif isinstance(block, Columns):
            for column in block.columns:
                yield from blocks_of(column)
        elif isinstance(block, Figure) and block.table is not None:
            yield block.table


def tables(part: Any) -> dict[str, Table]:
    """The tables of a part by their first head."""
    found: dict[str, Table] = {}
    for block in blocks_of(part):
        if isinstance(block, Table):
            found.setdefault(plain(block.columns[0]), block)
    return found


def rows(table: Table) -> list[tuple[str, ...]]:
    """The rows of a table in plain words."""
    return [tuple(plain(cell) for cell in line.cells) for line in table.lines]


def notes(part: Any) -> list[str]:
    """The paragraphs of a part in plain words."""
    return [plain(block.body) for block in blocks_of(part) if isinstance(block, Prose)]


def facts(part: Any) -> dict[str, str]:
    """The facts of a part, each with its note."""
    return {term: plain(value) for one in blocks_of(part) if isinstance(one, Terms) for term, value in one.rows}


def words(part: Any) -> str:
    """Everything that a part says."""
    said = [plain(part.lead)] if isinstance(part, Page | Section) else []
    for block in blocks_of(part):
        if isinstance(block, Prose):
            said.append(plain(block.body))
        elif isinstance(block, Items):
            said += [plain(one) for one in block.items]  # type: ignore[arg-type]
        elif isinstance(block, Table):
            said += [plain(head) for head in block.columns]
            said += [cell for row in rows(block) for cell in row]
        elif isinstance(block, Group):
            said.append(plain(block.heading))
        elif isinstance(block, Figure):
            said += [block.title, block.caption, block.note]
    return " ".join(said)
