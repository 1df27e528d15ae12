"""Tables of a ledger and conversion between their rows and records; each row is verified when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from assaymark.engine.calls import CallSpec, Message, Reply, bytes_text, damaged, seal, text_bytes, unpack
from assaymark.engine.calls import Text as PromptText

# The tables of a ledger. Every row of the record can be checked against a sha256, so that damage is detected.
#
# ``calls.key`` is the sha256 of ``calls.spec`` and ``objects.sha256`` that of the unpacked bytes; the rows of the other
# tables carry a `seal` over their fields. ``queue`` and ``windows`` are not part of the record: they hold the current
# work of the workers, change all the time, and carry no seal.


SCHEMA = "1"
"""Version of these tables. A ledger of another version is refused, never converted in place."""

RAW = "raw"
"""Kind of the objects that hold response bodies."""

metadata = MetaData()

meta = Table("meta", metadata, Column("name", String(40), primary_key=True), Column("value", Text, nullable=False))

objects = Table(
    "objects",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("codec", String(8), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("bytes", LargeBinary),  # NULL: in a file, see SqliteStore.keep
)

calls = Table(
    "calls",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("model", Text, nullable=False),
    Column("spec", LargeBinary, nullable=False),  # bytes, because text columns cannot hold every Python string
    Column("planned_at", Double, nullable=False),
)

attempts = Table(
    "attempts", metadata, Column("key", String(64), ForeignKey(calls.c.key), primary_key=True),
    Column("number", Integer, primary_key=True), Column("started_at", Double, nullable=False),
    Column("ended_at", Double), Column("outcome", String(12)), Column("error", Text),
    Column("seal", String(64), nullable=False),
)  # fmt: skip

replies = Table(
    "replies",
    metadata,
    Column("key", String(64), primary_key=True),  # the constraint behind "no key ever has two results"
    Column("number", Integer, nullable=False),
    Column("object", String(64), ForeignKey(objects.c.sha256), nullable=False),
    Column("facts", LargeBinary, nullable=False),  # JSON; bytes for the same reason as above
    Column("finished_at", Double, nullable=False),
    Column("seal", String(64), nullable=False),
    ForeignKeyConstraint(["key", "number"], [attempts.c.key, attempts.c.number]),
)

sources = Table(
    "sources", metadata, Column("id", Integer, primary_key=True), Column("path", Text, nullable=False),
    Column("sha256", String(64), ForeignKey(objects.c.sha256), nullable=False),
    Column("format", String(40), nullable=False), Column("added_at", Double, nullable=False),
    Column("seal", String(64), nullable=False), UniqueConstraint("path", "sha256", "format"),
)  # fmt: skip

traffic = MetaData()
"""Tables outside the record. Only shared ledgers have `queue`; `windows` is created when needed."""

queue = Table(
    "queue",
    traffic,
    Column("key", String(64), primary_key=True),  # a row for each planned call without a reply
    Column("model", Text, nullable=False),
    Column("fence", BigInteger, nullable=False, server_default="0"),  # fencing token: the number of claims so far
    Column("worker", String(64)),
    Column("expires_at", Double, nullable=False, server_default="0"),
    Column("failed_at", Double),
    Index("queue_by_model", "model", "key"),
)

windows = Table(
    "windows",
    traffic,
    Column("provider", Text, primary_key=True),
    Column("bucket", BigInteger, primary_key=True),  # a second; -1: the row that reservations lock
    Column("requests", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)


def sealed(table: Table, *fields: str | int | float | None) -> dict[str, Any]:
    """Return the row of a table whose last column is the seal over the others."""
    return dict(zip(table.c.keys(), (*fields, seal(*fields)), strict=True))


def check_sealed(table: Table, row: Row, name: str) -> list[Any]:
    """Return the fields of a sealed row. Raises `LedgerError` if it has changed since it was written."""
    fields = [row[column] for column in table.c.keys()[:-1]]
    _check(row, name, *fields)
    return fields


# The tables of batches of calls. Their rows carry a `seal` like all of the record.
#
# A ledger without them gets them with its first batch; nothing else of it changes.


batches = Table(
    "batches",
    metadata,
    Column("label", String(64), primary_key=True),
    Column("lane", Text, nullable=False),  # see providers.batches.lane_of
    Column("status", String(12), nullable=False),
    Column("remote", Text),  # the id that the provider gave it
    Column("certain", Integer, nullable=False),  # 0: the id is a guess
    Column("begun_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("note", Text),
    Column("seal", String(64), nullable=False),
)

batch_calls = Table(
    "batch_calls",
    metadata,
    Column("label", String(64), ForeignKey(batches.c.label), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("fence", BigInteger),  # of its lease, in a shared ledger
    Column("seal", String(64), nullable=False),
    ForeignKeyConstraint(["key", "number"], [attempts.c.key, attempts.c.number]),
)

ALL = (batches, batch_calls)
"""The two tables of batches."""

CHANGING: Mapping[Table, tuple[str, ...]] = {
    attempts: ("ended_at", "outcome", "error", "seal"),
    batches: ("status", "remote", "certain", "ended_at", "note", "seal"),
}
"""The columns of each table that change after a row was written; only the seal of the row itself covers them."""


def change_of(table: Table) -> sa.Update:
    """Return the update of the columns that change in a row; a column of its key has the parameter ``at_NAME``."""
    where = [column == sa.bindparam(f"at_{column.name}") for column in table.primary_key]
    return sa.update(table).where(*where).values({name: sa.bindparam(name) for name in CHANGING[table]})


def among(column: Column[str]) -> sa.ColumnElement[bool]:
    """The condition that a column is one of the keys of a query (``:keys``)."""
    return column.in_(sa.bindparam("keys", expanding=True))


Outcome = Literal["replied", "failed", "timeout", "defect", "superseded", "lost"]
Row = sa.RowMapping

_ERROR_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a call, recorded before it is sent. ``number`` counts from 1 over all runs."""

    key: str
    number: int
    started_at: float
    ended_at: float | None = None
    outcome: Outcome | None = None
    error: str | None = None
    fence: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt: its reply, or its outcome and error. ``final``: the call is given up in this run."""

    attempt: Attempt
    outcome: Outcome
    error: str | None = None
    reply: Reply | None = None
    final: bool = False


Committed = tuple[list[Attempt | None], int]
"""The result of a commit: the attempts begun (None: its lease was lost) and the number of new replies."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """An imported file; its bytes are the object ``sha256``. ``added_at`` is in seconds since 1970, UTC."""

    path: str
    sha256: str
    format: str
    added_at: float


def attempt_end(attempt: Attempt, ended_at: float | None, outcome: Outcome, error: str | None) -> dict[str, Any]:
    """Return the columns that change when an attempt ends; ``at_key`` and ``at_number`` identify its row."""
    error = None if error is None else plain(error)[:_ERROR_CHARS]
    return {
        "at_key": attempt.key, "at_number": attempt.number, "ended_at": ended_at, "outcome": outcome, "error": error,
        "seal": seal(attempt.key, attempt.number, attempt.started_at, ended_at, outcome, error),
    }  # fmt: skip


def attempt_of(row: Row) -> Attempt:
    """Return the attempt in a row of ``attempts``. Raises `LedgerError` if the row has changed."""
    return Attempt(*check_sealed(attempts, row, f"attempt {row['number']} of call {row['key']}"))


_FACTS = (
    "model", "fingerprint", "finish", "input_tokens", "output_tokens", "seconds", "reasoning_tokens", "cached_tokens",
)  # fmt: skip
"""The fields of a reply other than its texts, in the order of the JSON list in its row; the sha256 of the object that
holds the response body comes last. Ledgers of earlier versions have the first six."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A reply without its texts, the key and model of its call, and the time of its record, in seconds since 1970."""

    key: str
    number: int
    model: str
    reply: Reply
    finished_at: float


def reply_row(end: End, reply: Reply, sha256: str, raw: str | None, now: float) -> dict[str, Any]:
    """Return the row of a reply whose text is the object ``sha256`` and whose response body is the object ``raw``."""
    facts = [*(getattr(reply, name) for name in _FACTS), raw]
    written = json.dumps(facts, ensure_ascii=False)  # escapes would merge two lone surrogates into one character
    key, number = end.attempt.key, end.attempt.number
    return {
        "key": key, "number": number, "object": sha256, "facts": text_bytes(written), "finished_at": now,
        "seal": seal(key, number, sha256, written, now),
    }  # fmt: skip


def facts_of(row: Row) -> tuple[dict[str, Any], str | None]:
    """Return the facts of a reply and the sha256 of its response body. Raises `LedgerError` if its row has changed."""
    name = f"the reply to call {row['key']}"
    try:
        written = bytes_text(row["facts"])
    except (UnicodeDecodeError, AttributeError):
        raise damaged(name, "its facts are not text") from None
    _check(row, name, row["key"], row["number"], row["object"], written, row["finished_at"])
    facts = json.loads(written)
    return dict(zip(_FACTS, facts, strict=False)), facts[len(_FACTS)] if len(facts) > len(_FACTS) else None


def reply_of(row: Row, facts: Mapping[str, Any], raw: str | None, stored: Callable[[str], bytes]) -> Reply:
    """Return the reply in a row of ``replies`` joined with its object; ``stored`` reads objects outside the table."""
    if row["codec"] is None:
        raise damaged(f"the reply to call {row['key']}", f"its object {row['object']} is gone")
    return Reply(text=bytes_text(object_of(row["object"], row, stored)), raw=raw, **facts)


def object_of(sha256: str, row: Row, stored: Callable[[str], bytes]) -> bytes:
    """Return the bytes of an object from its ``codec``, ``size`` and ``bytes`` (None: in a file)."""
    data = stored(sha256) if row["bytes"] is None else row["bytes"]
    return unpack(sha256, row["codec"], row["size"], data)


def source_of(row: Row) -> ImportedFile:
    """Return the source in a row of ``sources``. Raises `LedgerError` if the row has changed."""
    fields = (row["path"], row["sha256"], row["format"], row["added_at"])
    _check(row, f"source {row['path']}", *fields)
    return ImportedFile(*fields)


def spec_of(key: str, spec: bytes) -> dict[str, Any]:
    """Return the fields of the call planned as ``spec``, with digests for texts; ``key`` must be the sha256 of it."""
    if not isinstance(spec, bytes) or hashlib.sha256(spec).hexdigest() != key:
        raise damaged(f"planned call {key}", "its row has changed")
    return dict(json.loads(bytes_text(spec)))


def call_of(raw: Mapping[str, Any], texts: Mapping[str, PromptText]) -> CallSpec:
    """Return the call with the fields of `spec_of`; ``texts`` holds its texts by digest."""
    messages = tuple(Message(role, tuple(texts[digest] for digest in digests)) for role, digests in raw["messages"])
    schema = None if raw["schema"] is None else texts[raw["schema"]]
    return CallSpec(**{**raw, "messages": messages, "schema": schema})


def check_planned(row: Row) -> None:
    """Raise `LedgerError` if a row of ``calls`` has changed since it was written."""
    if row["model"] != plain(spec_of(row["key"], row["spec"])["model"]):
        raise damaged(f"planned call {row['key']}", "it is of another model")


@lru_cache(maxsize=256)
def plain(text: str) -> str:
    """Return ``text`` in a form that any database stores: other characters become visible escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def _check(row: Row, name: str, *fields: str | int | float | None) -> None:
    # Damage can turn any value into bytes, which `seal` does not take.
    if any(isinstance(field, bytes) for field in fields) or seal(*fields) != row["seal"]:
        raise damaged(name, "its row does not match its seal")
