"""A store as a snapshot: the long tables of everything in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.market.history import FACTOR, History, synthetic_history
from assaymark.market.instruments import LAST_DAY, Listing
from assaymark.market.macro import MacroSeries
from assaymark.market.news import News
from assaymark.market.snapshot import SCHEMAS, Origin, Snapshot
from assaymark.records import sha256_text

_NEVER: Final = np.iinfo(np.int64).max


def synthetic_snapshot(seed: int = 0) -> Snapshot:
    """The embedded market of a seed as a snapshot, ``synthetic-<seed>``; always the same one.

    Raises
    ------
    InputError
        The seed is negative.

    Examples
    --------
    >>> synthetic_snapshot(7).id
    'synthetic-7'
    """
    # Nobody was asked and no clock is read: the time is that of the last close, so a seed always gives one snapshot.
    origin = Origin(
        source="synthetic",
        retrieved_at=datetime(LAST_DAY.year, LAST_DAY.month, LAST_DAY.day, 21, tzinfo=UTC),
        query={"seed": seed},
        licence="made here, free to use",
        notes=("every instrument, price, number and text is invented", "gaps and delistings are deliberate"),
    )
    return snapshot_of(synthetic_history(seed), f"synthetic-{seed}", origin)


def snapshot_of(history: History, id: str, origin: Origin, *, currency: str = "USD") -> Snapshot:
    """A store as long tables.

    Closes are written as they were traded, with the factors of the store beside them: 1 where it has none. The facts
    behind templated news have no column and stay behind, their texts do not. Days with no field of a bar have no row.

    Parameters
    ----------
    history : History
    id : str
        The name of the snapshot.
    origin : Origin
        Where it is from, and what may be done with it.
    currency : str
        Of all instruments.
    """
    tables = {
        "bars": _bars(history, id),
        "macro": _macro(history.macro),
        "instruments": _instruments(history.listings, currency),
        "news": _news(history.news),
        "fundamentals": _fundamentals(history),
        "actions": _actions(history),
    }
    return Snapshot(id, origin, tables)


def _table(name: str, **columns: Any) -> Any:
    """A table with the columns of its schema; those that are not given are missing everywhere."""
    rows = len(next(iter(columns.values())))
    given = [
        pa.array(columns[one.name]).cast(one.type) if one.name in columns else pa.nulls(rows, one.type)
        for one in SCHEMAS[name]
    ]
    return pa.table(given, schema=SCHEMAS[name])


def _numbers(values: np.ndarray) -> Any:
    """Floats, missing where NaN."""
    return pa.array(values, mask=np.isnan(values))


def _instants(seconds: np.ndarray) -> Any:
    """Seconds since 1970 as instants, missing where there is no end."""
    open_ended = seconds == _NEVER
    micros = np.where(open_ended, 0, seconds) * 1_000_000
    return pa.array(micros, mask=open_ended).cast(pa.timestamp("us", tz="UTC"))


def _repeated(text: str, rows: int) -> Any:
    """One text in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text]).cast(pa.string())


def _bars(history: History, snapshot: str) -> Any:
    """First versions by day and instrument, then the restatements."""
    row, column = np.nonzero(np.any([np.isfinite(one) for one in history.bars.values()], axis=0))
    later = history.restated
    rows, columns = np.concatenate([row, later.rows]), np.concatenate([column, later.columns])
    missing = np.full(later.rows.size, np.nan)
    whole = {
        name: np.concatenate([one[row, column], later.values.get(name, missing)]) for name, one in history.bars.items()
    }
    factor = whole.pop(FACTOR, np.ones(rows.size))
    values = {name: _numbers(one if name == "volume" else _traded(one, factor)) for name, one in whole.items()}
    known_at = np.concatenate([history.known_at[row, column], later.known_at])
    unstated = [at for at, one in enumerate(history.listings) if one.id in history.unstated]
    names = pa.array([one.id for one in history.listings], pa.string())
    return _table(
        "bars",
        instrument=pa.DictionaryArray.from_arrays(pa.array(columns.astype(np.int32)), names).cast(pa.string()),
        event_date=history.days.astype("datetime64[D]")[rows],
        known_at=_instants(known_at),
        adj_factor=_numbers(np.where(np.isin(columns, unstated) & (factor == 1.0), np.nan, factor)),
        source=_repeated(history.source, rows.size),
        snapshot=_repeated(snapshot, rows.size),
        **values,
    )


def _traded(adjusted: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Prices whose product with the factor is the adjusted price to the last bit, so that reading gives it again."""
    found: np.ndarray = adjusted / factor
    for step in (np.nextafter(found, np.inf), np.nextafter(found, 0.0)):
        found = np.where(found * factor == adjusted, found, step)
    return found


def _macro(macro: Sequence[MacroSeries]) -> Any:
    """All series, one after the other."""
    sizes = [one.values.size for one in macro]
    ends = [np.full(one.values.size, _NEVER) if one.until is None else one.until for one in macro]

    def text(values: Sequence[str]) -> Any:
        return pa.array(np.repeat(np.array(values, dtype=object), sizes), pa.string())

    return _table(
        "macro",
        series=text([one.id for one in macro]),
        ref_period=np.concatenate([np.empty(0, "datetime64[D]"), *(one.periods for one in macro)]),
        value=_numbers(np.concatenate([np.empty(0), *(one.values for one in macro)])),
        realtime_start=_instants(np.concatenate([np.empty(0, np.int64), *(one.released for one in macro)])),
        realtime_end=_instants(np.concatenate([np.empty(0, np.int64), *ends])),
        unit=text([one.unit for one in macro]),
        title=text([one.title for one in macro]),
        stale_days=np.repeat(np.array([one.stale_days for one in macro], dtype=np.int32), sizes),
    )


def _instruments(listings: Sequence[Listing], currency: str) -> Any:
    """One row an instrument."""
    rows = [
        {
            "id": one.id,
            "class": one.asset_class,
            "sub": one.sub,
            "name": one.name,
            "currency": currency,
            "listed": one.listed,
            "delisted": one.delisted,
            "calendar": one.calendar,
        }
        for one in listings
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["instruments"])


def _news(news: Sequence[News]) -> Any:
    """One row an item, named by a digest of its time and text."""
    rows = [
        {
            "id": sha256_text(f"{one.published_at.isoformat()} {one.source} {one.text}")[:16],
            "published_at": one.published_at,
            "instruments": list(one.instruments),
            "text": one.text,
            "source": one.source,
        }
        for one in news
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["news"])


def _actions(history: History) -> Any:
    """One row a listed action."""
    return _table(
        "actions",
        instrument=pa.array([one.instrument for _, one in history.actions], pa.string()),
        ex_date=pa.array([one.ex_date for _, one in history.actions], pa.date32()),
        known_at=_instants(np.array([known for known, _ in history.actions], dtype=np.int64)),
        split=np.array([one.split for _, one in history.actions], dtype=float),
        dividend=np.array([one.dividend for _, one in history.actions], dtype=float),
    )


def _fundamentals(history: History) -> Any:
    """One row a filed value."""
    filed = history.fundamentals.filings
    names = ("instrument", "period", "field", "unit")
    return _table(
        "fundamentals",
        **{name: pa.array([getattr(one, name) for one in filed], pa.string()) for name in names},
        value=_numbers(history.fundamentals.values),
        filed_at=pa.array([one.filed_at for one in filed], pa.timestamp("us", tz="UTC")),
    )
