"""The tables of a ledger that batches of calls are written down in. Their rows carry a `seal` like all of the record.

A ledger made before there were batches gets them when it first has one; nothing else of it changes.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, ForeignKey, ForeignKeyConstraint, Integer, String, Table, Text

from assaymark.engine.tables import attempts, metadata

batches = Table(
    "batches",
    metadata,
    Column("label", String(64), primary_key=True),
    Column("lane", Text, nullable=False),  # see models.batch_parts.lane_of
    Column("status", String(12), nullable=False),
    Column("remote", Text),  # the id that the provider gave it
    Column("certain", Integer, nullable=False),  # 0: the id was guessed at
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
    Column("fence", BigInteger),  # of the claim it is asked under, where workers share the ledger
    Column("seal", String(64), nullable=False),
    ForeignKeyConstraint(["key", "number"], [attempts.c.key, attempts.c.number]),
)

ALL = (batches, batch_calls)
"""Both of them."""
