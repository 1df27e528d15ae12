"""A snapshot: what one source said at one time, as long tables with their provenance. The unit that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.market.shown import ShownSnapshot
from assaymark.records import JSON

_INSTANT = pa.timestamp("us", tz="UTC")

SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "bars": pa.schema(
            {
                "instrument": pa.string(),
                "event_date": pa.date32(),
                "known_at": _INSTANT,
                "open": pa.float64(),
                "high": pa.float64(),
                "low": pa.float64(),
                "close": pa.float64(),
                "adj_factor": pa.float64(),
                "volume": pa.float64(),
                "source": pa.string(),
                "snapshot": pa.string(),
            }
        ),
        "macro": pa.schema(
            {
                "series": pa.string(),
                "ref_period": pa.date32(),
                "value": pa.float64(),
                "realtime_start": _INSTANT,
                "realtime_end": _INSTANT,
                "unit": pa.string(),
                "title": pa.string(),
                "stale_days": pa.int32(),
            }
        ),
        "instruments": pa.schema(
            {
                "id": pa.string(),
                "class": pa.string(),
                "sub": pa.string(),
                "name": pa.string(),
                "currency": pa.string(),
                "listed": pa.date32(),
                "delisted": pa.date32(),
                "calendar": pa.string(),
            }
        ),
        "news": pa.schema(
            {
                "id": pa.string(),
                "published_at": _INSTANT,
                "instruments": pa.list_(pa.string()),
                "text": pa.string(),
                "source": pa.string(),
            }
        ),
        "fundamentals": pa.schema(
            {
                "instrument": pa.string(),
                "period": pa.string(),
                "field": pa.string(),
                "value": pa.float64(),
                "unit": pa.string(),
                "filed_at": _INSTANT,
            }
        ),
        "actions": pa.schema(
            {
                "instrument": pa.string(),
                "ex_date": pa.date32(),
                "known_at": _INSTANT,
                "split": pa.float64(),
                "dividend": pa.float64(),
            }
        ),
    }
)
"""The tables of a snapshot and their columns. Every read filters ``known_at``, ``realtime_start``, ``published_at`` or
``filed_at``; a value with two rows was restated, and the later one replaces the earlier from its own time on."""

OPTIONAL = frozenset({"actions"})
"""Tables that a folder holds only where they have rows; see `assaymark.market.actions.CorporateAction`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a snapshot is from: the source, when it was asked, what it was asked for, and what may be done with it.

    ``notes`` are the traps a reader must know (prices that are adjusted, levels that are winsorised ...).
    """

    source: str
    retrieved_at: datetime
    query: Mapping[str, JSON] = field(default_factory=dict)
    licence: str = "not stated"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot(ShownSnapshot):
    """The long tables of one answer of one source; a table that the source does not have is empty.

    Raises
    ------
    InputError
        A table is unknown or has other columns than `SCHEMAS`; every problem at once.

    Examples
    --------
    >>> from datetime import UTC
    >>> origin = Origin(source="nobody", retrieved_at=datetime(2026, 1, 1, tzinfo=UTC))
    >>> Snapshot("empty", origin).tables["bars"].num_rows
    0
    """

    id: str
    origin: Origin
    tables: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [Problem(name, f"is no table of a snapshot; tables are {', '.join(SCHEMAS)}")
                    for name in self.tables if name not in SCHEMAS]  # fmt: skip
        problems += [
            Problem(
                name,
                f"must have the columns {SCHEMAS[name].names}, in this order and of its types (got {table.schema})",
            )
            for name, table in self.tables.items()
            if name in SCHEMAS and not table.schema.equals(SCHEMAS[name])
        ]
        if problems:
            raise InputError(f"snapshot {self.id}", problems)
        whole = {name: self.tables.get(name, schema.empty_table()) for name, schema in SCHEMAS.items()}
        object.__setattr__(self, "tables", MappingProxyType(whole))
