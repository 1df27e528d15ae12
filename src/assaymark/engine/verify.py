"""Going over a whole ledger: is every row and object what was written, and which came after its last clean close?

A clean close of a file seals its rows: for each table how many there are, the number of the last, and two sums over the
digests of what never changes in them, one of which counts each digest as often as the number of its row says. Their
differences name the one row that was changed or taken away. A later close reads the rows that came since, and no more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from assaymark.engine import batches as batch_book
from assaymark.engine import compute as chunk_book
from assaymark.engine import schema as batch_tables
from assaymark.engine import schema as rows
from assaymark.engine import schema as tables
from assaymark.engine.database import NOTES, Store, check_note, get_note, put_note
from assaymark.errors import LedgerError

_ROWS_AT_ONCE: Final = 100  # rows of objects hold up to a MiB each
_NOTE: Final = "seal"
_RECORD: Final = (
    tables.objects,
    tables.calls,
    tables.attempts,
    tables.replies,
    tables.sources,
    *batch_tables.ALL,
    chunk_book.chunks,
)
_CHANGING: Final[Mapping[sa.Table, tuple[str, ...]]] = {
    tables.attempts: ("ended_at", "outcome", "error", "seal"),
    batch_tables.batches: ("status", "remote", "certain", "ended_at", "note", "seal"),
}
"""What changes in a row after it was written; the seal that the row carries is over it."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What going over a ledger found.

    ``differences`` name what is not as it was written; none, and ``rows`` rows are. ``since`` says which rows came
    after the last clean close, which a run leaves that was killed; None where there was no such close yet.
    """

    rows: int
    differences: tuple[str, ...] = ()
    since: tuple[str, ...] | None = None


class _Sum(NamedTuple):
    """The rows of one table: how many, the number of the last, and the sums of their digests."""

    rows: int = 0
    last: int = 0
    plain: int = 0
    weighted: int = 0


def look_over(connection: sa.Connection, stored: Callable[[str], bytes]) -> Audit:
    """Check every row and object, then hold them against the seal of the last clean close.

    ``stored`` reads the packed bytes of an object that does not live in its table.
    """
    raws: list[str | None] = []
    checks: dict[sa.Table, Callable[[rows.Row], object]] = {
        tables.objects: lambda row: rows.object_of(row["sha256"], row, stored),
        tables.calls: rows.check_planned,
        tables.attempts: rows.attempt_of,
        tables.replies: lambda row: raws.append(rows.facts_of(row)[1]),
        tables.sources: rows.source_of,
        **batch_book.CHECKS,
        **chunk_book.CHECKS,
        tables.meta: check_note,
    }
    found: list[str] = []
    checked = 0
    for table in _there(connection, checks):
        wanted = NOTES if table is tables.meta else sa.select(table)
        for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(wanted).mappings():
            checked += 1
            try:
                checks[table](row)
            except LedgerError as exc:
                found.append(str(exc))
    found += _gone(connection, {raw for raw in raws if raw is not None})
    try:
        sealed = _sealed(connection)
    except LedgerError:  # named above
        return Audit(checked, tuple(found))
    if sealed is None:
        return Audit(checked, tuple(found))
    since: list[str] = []
    for table in _there(connection, _RECORD):
        before = sealed.get(table.name, _Sum())
        found += _changed(connection, table, before)
        later = _summed(connection, table, before)
        if later.rows > before.rows:
            since.append(f"{table.name}, rows {before.last + 1:,} to {later.last:,}")
    return Audit(checked, tuple(found), tuple(since))


def seal_rows(connection: sa.Connection, store: Store) -> None:
    """Seal the rows of a file, in a transaction that writes; those that were sealed before are not read again."""
    before = _sealed(connection) or {}
    sums = {one.name: _summed(connection, one, before.get(one.name, _Sum())) for one in _there(connection, _RECORD)}
    if (now := {name: found for name, found in sums.items() if found.rows}) != before:
        put_note(connection, store, _NOTE, json.dumps(now))


def _sealed(connection: sa.Connection) -> dict[str, _Sum] | None:
    """What the last clean close sealed; None if there was none."""
    text = get_note(connection, _NOTE)
    return None if text is None else {name: _Sum(*numbers) for name, numbers in json.loads(text).items()}


def _there(connection: sa.Connection, wanted: Mapping[sa.Table, object] | tuple[sa.Table, ...]) -> list[sa.Table]:
    """Those tables that there are: a ledger gets those of batches and chunks when it first has some."""
    there = set(sa.inspect(connection).get_table_names())
    return [table for table in wanted if table.name in there]


def _summed(connection: sa.Connection, table: sa.Table, before: _Sum, last: int | None = None) -> _Sum:
    """The sums of a table: those over its rows up to ``before``, and the rows that come then."""
    count, at, plain, weighted = before
    for at, digest in _digests(connection, table, before.last, last):
        count, plain, weighted = count + 1, plain + digest, weighted + at * digest
    return _Sum(count, at, plain, weighted)


def _digests(connection: sa.Connection, table: sa.Table, after: int, last: int | None) -> Iterator[tuple[int, int]]:
    """Number and digest of each row in this stretch. Contents are left out: they are named by their own sha256."""
    changing = _CHANGING.get(table, ())
    kept = [one.name for one in table.c if one.name not in changing and not isinstance(one.type, sa.LargeBinary)]
    wanted = f"SELECT rowid, {', '.join(kept)} FROM {table.name} WHERE rowid > ? AND rowid <= ? ORDER BY rowid"
    # From the driver itself: rows of Core cost more than their digests.
    driver: Any = connection.connection.driver_connection
    for row in driver.execute(wanted, (after, 2**63 - 1 if last is None else last)):
        yield row[0], int.from_bytes(hashlib.sha256(ascii(row).encode()).digest())


def _changed(connection: sa.Connection, table: sa.Table, sealed: _Sum) -> list[str]:
    """What differs between the rows of a table and those that were sealed, if anything does."""
    found = _summed(connection, table, _Sum(), sealed.last)
    if found._replace(last=sealed.last) == sealed:
        return []
    plain, weighted = found.plain - sealed.plain, found.weighted - sealed.weighted
    number = 0 if not plain or weighted % plain else weighted // plain
    if not 0 < number <= sealed.last:
        return [f"several rows of {table.name} have changed since they were sealed; restore the ledger from a copy"]
    key = next(iter(table.primary_key)).name
    row = connection.exec_driver_sql(f"SELECT {key} FROM {table.name} WHERE rowid = ?", (number,)).first()
    what = "is gone" if row is None else f"({key} {row[0]}) has changed"
    return [f"row {number:,} of {table.name} {what} since it was sealed; restore the ledger from a copy"]


def _gone(connection: sa.Connection, digests: set[str]) -> list[str]:
    """The response bodies that replies name and that are not there; no foreign key says so."""
    held = set(connection.scalars(sa.select(tables.objects.c.sha256).where(tables.objects.c.kind == tables.RAW)))
    return [
        f"object {digest}, the response body of a reply, is gone; restore the ledger from a copy"
        for digest in sorted(digests - held)
        if connection.scalar(sa.select(tables.objects.c.sha256).where(tables.objects.c.sha256 == digest)) is None
    ]
