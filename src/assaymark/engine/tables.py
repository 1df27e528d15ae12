"""The tables of a ledger. Every row of the record can be checked against a sha256: no damage is read as a result.

``calls.key`` is the sha256 of ``calls.spec`` and ``objects.sha256`` that of the unpacked bytes; the rows of the other
tables carry a `seal` over their fields. ``queue`` and ``windows`` are no part of the record: they say who is asking
what just now, change all the time, and carry no seal.
"""

from __future__ import annotations

import hashlib
import json

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

SCHEMA = "1"
"""Version of these tables. A ledger of another version is refused, never converted in place."""

RAW = "raw"
"""Kind of the objects that hold response bodies."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

objects = Table(
    "objects",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("codec", String(8), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("bytes", LargeBinary),  # NULL: in a file, see objects.py
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
    "attempts",
    metadata,
    Column("key", String(64), ForeignKey(calls.c.key), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", String(12)),
    Column("error", Text),
    Column("seal", String(64), nullable=False),
)

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
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    Column("sha256", String(64), ForeignKey(objects.c.sha256), nullable=False),
    Column("format", String(40), nullable=False),
    Column("added_at", Double, nullable=False),
    Column("seal", String(64), nullable=False),
    UniqueConstraint("path", "sha256", "format"),
)

traffic = MetaData()
"""Tables that are not the record. `queue` is only where workers share a ledger; `windows` is made when needed."""

queue = Table(
    "queue",
    traffic,
    Column("key", String(64), primary_key=True),  # a row for each planned call without a reply
    Column("model", Text, nullable=False),
    Column("fence", BigInteger, nullable=False, server_default="0"),  # how often it was claimed
    Column("worker", String(64)),
    Column("expires_at", Double, nullable=False, server_default="0"),
    Column("failed_at", Double),
    Index("queue_by_model", "model", "key"),
)

windows = Table(
    "windows",
    traffic,
    Column("provider", Text, primary_key=True),
    Column("bucket", BigInteger, primary_key=True),  # a stretch of time; -1: the row that reservations queue up at
    Column("requests", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)


def seal(*fields: str | int | float | None) -> str:
    """sha256 over the fields of a row as a JSON list, as 64 hex digits.

    >>> seal("a", 1, None)[:8]
    '30780d0d'
    """
    return hashlib.sha256(json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()
