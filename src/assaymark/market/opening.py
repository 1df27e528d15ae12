"""From a snapshot to a store that can be asked what was known when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assaymark.errors import InputError, Problem
from assaymark.market.actions import CorporateAction
from assaymark.market.cache import cached_bars, keep_bars
from assaymark.market.fundamentals import Filing, Fundamentals
from assaymark.market.history import History
from assaymark.market.instruments import CLASSES, Listing
from assaymark.market.macro import MacroSeries, released_after
from assaymark.market.news import News
from assaymark.market.snapshot import Snapshot
from assaymark.market.store import check_files, read_manifest, read_table
from assaymark.market.wide import WideBars, seconds_up, wide_bars

SPACINGS: Final = (("day", 4, 1, 10), ("week", 10, 7, 21), ("month", 45, 45, 75), ("quarter", 120, 120, 200))
"""For series without release times: name, largest usual distance of periods, release lag and staleness limit, in days.

A lag counts from the date that names the period. It is on the late side: a month is often named by its first day.
"""

_YEARLY: Final = ("year", 400, 365, 750)
_FOREVER: Final = np.iinfo(np.int64).max


def open_history(folder: Path, *, lags: Mapping[str, int] | None = None, cache: bool = True) -> History:
    """The store of a snapshot's folder.

    The first opening spreads the bars into tables and keeps them under ``cache/``; later ones map those files. Without
    a folder that can be written everything works the same, only slower.

    Parameters
    ----------
    folder : Path
        As `assaymark.market.store.write_snapshot` wrote it.
    lags : mapping of series to days
        When values of macro series without ``realtime_start`` were published, in days after the date of the period;
        the default goes by how far the periods lie apart (`SPACINGS`).
    cache : bool
        Use and write the cache.

    Raises
    ------
    InputError
        No snapshot is there, or its tables do not make a store: every problem of a table at once.
    LedgerError
        Files are damaged.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    tables = {name: read_table(folder, name, manifest) for name in manifest.files if name != "bars"}
    ids = _ids(manifest.id, tables["instruments"])
    bars = cached_bars(folder, manifest.digest) if cache else None
    if bars is None:
        bars = _bars(manifest.id, read_table(folder, "bars", manifest), ids)
        if cache:
            keep_bars(folder, manifest.digest, bars)
    return _store(manifest.id, manifest.origin.source, tables, bars, lags or {})


def history_of(snapshot: Snapshot, *, lags: Mapping[str, int] | None = None) -> History:
    """The store of a snapshot in memory. Parameters and errors as `open_history`."""
    bars = _bars(snapshot.id, snapshot.tables["bars"], _ids(snapshot.id, snapshot.tables["instruments"]))
    return _store(snapshot.id, snapshot.origin.source, snapshot.tables, bars, lags or {})


def _bars(name: str, table: Any, ids: Sequence[str]) -> WideBars:
    """The bars spread into tables; errors carry the name of the snapshot."""
    try:
        return wide_bars(table, ids)
    except InputError as exc:
        where = [Problem(f"{exc.source}, {one.where}" if one.where else exc.source, one.what) for one in exc.problems]
        raise InputError(f"snapshot {name}", where) from None


def _ids(name: str, table: Any) -> list[str]:
    """The names of the columns, if the instruments are those of one store."""
    rows = table.to_pylist()
    ids = [row["id"] or "" for row in rows]
    problems = [
        Problem(one, "the instrument is in the table more than once")
        for one in sorted({one for one in ids if one and ids.count(one) > 1})
    ]
    for number, row in enumerate(rows, start=1):
        if not row["id"]:
            problems.append(Problem(f"instruments, row {number}", "has no id"))
        if row["class"] not in CLASSES:
            what = f"has the class {row['class']!r}; classes are {', '.join(CLASSES)}"
            problems.append(Problem(row["id"] or f"instruments, row {number}", what))
    problems += _currencies(rows)
    if problems:
        raise InputError(f"snapshot {name}", problems)
    return ids


def _store(name: str, source: str, tables: Mapping[str, Any], bars: WideBars, lags: Mapping[str, int]) -> History:
    """Everything put together, or every problem of the other tables."""
    problems = [
        *_listing_problems(tables["instruments"], bars),
        *_missing(tables["macro"], "macro", ("series", "ref_period")),
        *_missing(tables["news"], "news", ("published_at", "text")),
        *_missing(tables["fundamentals"], "fundamentals", ("instrument", "period", "field", "value", "filed_at")),
        *(_action_problems(tables["actions"], tables["instruments"]) if "actions" in tables else ()),
    ]
    if problems:
        raise InputError(f"snapshot {name}", problems)
    try:
        macro, filed = tuple(_macro(tables["macro"], lags)), _fundamentals(tables["fundamentals"])
    except InputError as exc:
        raise InputError(f"snapshot {name}", [Problem(exc.source, one.what) for one in exc.problems]) from None
    listings, news = _listings(tables["instruments"], bars), _news(tables["news"])
    return History(
        *(listings, bars.days, bars.bars, bars.known_at, macro, news, source, name),
        restated=bars.restated,
        fundamentals=filed,
        actions=tuple(_actions(tables["actions"])) if "actions" in tables else (),
        unstated=frozenset(one.id for one, missing in zip(listings, bars.unstated, strict=True) if missing),
    )


def _missing(table: Any, name: str, columns: Sequence[str]) -> Iterator[Problem]:
    """Columns that every row must have."""
    for column in columns:
        if count := table[column].null_count:
            yield Problem(f"{name}, {column}", f"is missing in {count} rows")


def _action_problems(table: Any, instruments: Any) -> Iterator[Problem]:
    """Actions that cannot be: without a day or a time, of strangers, or with an amount that is none."""
    yield from _missing(table, "actions", ("instrument", "ex_date", "known_at"))
    if strangers := sorted(set(table["instrument"].to_pylist()) - set(instruments["id"].to_pylist()) - {None}):
        yield Problem(f"actions, {_some(strangers)}", "is in no table of instruments")
    for name, what in (("split", "must be positive"), ("dividend", "must not be negative")):
        values = table[name].to_numpy().astype(float)
        bad = values <= 0 if name == "split" else values < 0
        if wrong := int((bad | np.isinf(values)).sum()):
            yield Problem(f"actions, {name}", f"{what}, and finite ({wrong} rows are not)")


def _actions(table: Any) -> Iterator[tuple[int, CorporateAction]]:
    """The listed actions, each with the second from which it is known."""
    micros = table["known_at"].cast(pa.int64()).to_numpy()
    for row, known in zip(table.to_pylist(), seconds_up(micros).tolist(), strict=True):
        split, dividend = row["split"] or 1.0, row["dividend"] or 0.0
        yield known, CorporateAction(row["instrument"], row["ex_date"], split, dividend)


def _listing_problems(table: Any, bars: WideBars) -> Iterator[Problem]:
    """Instruments of which nothing says since when they are listed."""
    there = np.isfinite(bars.bars["close"]).any(axis=0)
    for column, row in enumerate(table.to_pylist()):
        if row["listed"] is None and not there[column]:
            yield Problem(str(row["id"]), "has neither a day of listing nor a bar")


def _currencies(rows: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """More than one currency: prices could not be added up, since there are no exchange rates here."""
    of: dict[str, list[str]] = {}
    for row in rows:
        if row["currency"]:
            of.setdefault(row["currency"], []).append(str(row["id"]))
    if len(of) > 1:
        named = "; ".join(f"{currency}: {_some(of[currency])}" for currency in sorted(of))
        what = f"a store holds one, and there are no exchange rates here ({named})"
        yield Problem("currency", f"{what}; make one snapshot a currency")


def _some(names: Sequence[str]) -> str:
    """The first names, and how many more."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _listings(table: Any, bars: WideBars) -> tuple[Listing, ...]:
    """The listings; one without a day of listing is listed from its first bar on."""
    found = []
    for column, row in enumerate(table.to_pylist()):
        listed: date | None = row["listed"]
        if listed is None:
            # The day of the bar that was known first: bars of earlier days that came later were not there yet.
            listed = bars.days[int(bars.known_at[:, column].argmin())].astype(object)
        name = row["name"] or row["id"]
        found.append(Listing(row["id"], row["class"], row["sub"] or "", name, listed, row["delisted"]))
    return tuple(found)


def _macro(table: Any, lags: Mapping[str, int]) -> Iterator[MacroSeries]:
    """The series in the order in which they first appear; rows without a value are left out."""
    rows = table.filter(table["value"].is_valid())
    names = np.array(rows["series"].to_pylist(), dtype=object)
    for name in dict.fromkeys(names.tolist()):
        yield _series(name, rows.filter(pa.array(names == name)), lags.get(name))


def _series(name: str, rows: Any, lag: int | None) -> MacroSeries:
    """One series with its vintages in order."""
    periods = rows["ref_period"].to_numpy().astype("datetime64[D]")
    every, _, usual_lag, usual_limit = _spacing(periods)
    starts = rows["realtime_start"].cast(pa.int64())
    given = starts.is_valid().to_numpy()
    usual = released_after(periods, usual_lag if lag is None else lag)
    released = np.where(given, seconds_up(starts.fill_null(0).to_numpy()), usual)
    ends = rows["realtime_end"].cast(pa.int64())
    until = np.where(ends.is_valid().to_numpy(), seconds_up(ends.fill_null(0).to_numpy()), _FOREVER)
    order = np.lexsort((released, periods))
    first = rows.slice(int(released.argmin()), 1).to_pylist()[0]
    limit = usual_limit if first["stale_days"] is None else first["stale_days"]
    values = rows["value"].to_numpy()
    parts = periods[order], values[order], released[order], until[order]
    return MacroSeries(name, first["title"] or name, first["unit"] or "", every, limit, *parts)


def _spacing(periods: np.ndarray) -> tuple[str, int, int, int]:
    """How far the periods lie apart."""
    kinds = np.unique(periods)
    apart = float(np.median(np.diff(kinds).astype(int))) if kinds.size > 1 else 400.0
    return next((one for one in SPACINGS if apart <= one[1]), _YEARLY)


def _news(table: Any) -> tuple[News, ...]:
    """The items; the facts behind a text are not stored, so they have none."""
    return tuple(
        News(row["published_at"].astimezone(UTC), tuple(row["instruments"] or ()), row["text"], row["source"] or "", ())
        for row in table.to_pylist()
    )


def _fundamentals(table: Any) -> Fundamentals:
    """The filings."""
    return Fundamentals.of(
        [
            Filing(key[0], key[1], key[2], row["value"], row["unit"] or "", row["filed_at"].astimezone(UTC))
            for row in table.to_pylist()
            if (key := (row["instrument"], row["period"], row["field"]))
        ]
    )
