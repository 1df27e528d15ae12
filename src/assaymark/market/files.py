"""Prices from CSV and Parquet files: a long table of bars, or one table of dates by instruments.

A file is read whole, checked whole, and refused with every problem named. Nothing is repaired on the way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from assaymark.errors import InputError, Problem
from assaymark.market.checks import Limits, price_problems, snapshot_problems
from assaymark.market.history import FIELDS, History, closing_times, known_at_close
from assaymark.market.instruments import AssetClass, Listing
from assaymark.problems import table_problem

DATE_NAMES = ("event_date", "date", "day")
"""Names under which the column of days is recognised, without regard to case."""

LARGEST_FILE = 2 << 30
"""Bytes of the largest file that is read."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A long table: one row for each bar."""

    days: np.ndarray
    ids: np.ndarray
    fields: dict[str, np.ndarray]
    known_at: np.ndarray | None
    snapshot: np.ndarray | None


def history_from_file(
    path: Path, listings: Sequence[Listing] = (), *, limits: Limits | None = None, strict: bool = True
) -> tuple[History, list[Problem]]:
    """A store from one file of prices, and what is wrong with it.

    A file with the columns ``instrument``, a day and ``close`` is a long table; it may carry open, high, low, volume,
    ``known_at`` (a time with a zone) and ``snapshot``. Any other file with a column of days is one table of dates by
    instruments, its closes. Bars without ``known_at`` count as known when their day closed.

    Parameters
    ----------
    path : Path
        ``.csv`` or ``.parquet``.
    listings : sequence of Listing
        What is known about the instruments; one that is not among them is taken as an equity listed on its first day.
    limits : Limits
    strict : bool
        Refuse a file with problems. Without it they are only handed back, except repeated bars, of which no table can
        be made. Rows may come in any order.

    Raises
    ------
    InputError
        The file cannot be read, has no column of days or numbers, or (strict) has problems: all of them at once.
    """
    table = read_price_table(path)
    names = {name.strip().lower(): name for name in table.column_names}
    if "instrument" in names and "close" in names:
        rows = _long(path, table, names)
    else:
        rows = _wide(path, table, names)
    problems = _repeats(rows)
    if problems:
        raise InputError(path.name, [*problems, *_table_problems(rows, limits)])
    days, ids = np.unique(rows.days), tuple(dict.fromkeys(rows.ids.tolist()))
    row, column = np.searchsorted(days, rows.days), _columns(rows.ids, ids)
    bars = {name: _spread(values, row, column, (days.size, len(ids))) for name, values in rows.fields.items()}
    problems = price_problems(days, ids, bars["close"], limits)
    known = known_at_close(days, len(ids))
    if rows.known_at is not None:
        known[row, column] = rows.known_at
    if strict and problems:
        raise InputError(path.name, problems)
    snapshot = str(rows.snapshot[0]) if rows.snapshot is not None and rows.snapshot.size else path.stem
    described = _listings(ids, days, bars["close"], listings)
    return History(described, days, bars, known, source=f"file {path.name}", snapshot=snapshot), problems


def read_price_table(path: Path) -> Any:
    """A CSV or Parquet file as an Arrow table.

    Raises
    ------
    InputError
        It cannot be read, is too large, has no rows or a column twice, or is a web page: what a server sends with an
        error, saved under the name of a table.
    """
    try:
        table = _parsed(path)
    except (OSError, pa.ArrowException) as exc:
        raise InputError(path.name, [table_problem(exc, beginning(path))]) from None
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise InputError(path.name, [Problem(name, "the column is there more than once") for name in repeated])
    if table.num_rows == 0:
        raise InputError(path.name, ["has no rows"])
    return table


def beginning(path: Path) -> bytes:
    """The first bytes of a file; none where it cannot be read."""
    with suppress(OSError), path.open("rb") as handle:
        return handle.read(8)
    return b""


def _parsed(path: Path) -> Any:
    """What the file holds, unchecked."""
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise InputError(path.name, [f"is too large: {size} bytes, the limit is {LARGEST_FILE}"])
    with path.open("rb") as handle:
        start = handle.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")):
        raise InputError(path.name, ["is a web page (HTML), no table of prices: an error page that was saved?"])
    if path.suffix == ".parquet":
        with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            return file.read()
    # One block where that is possible: types are taken from the first block, where a late listing is still empty.
    block = min(max(size, 1 << 20), 1 << 28)
    return pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=block),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(strings_can_be_null=True),
    )


def day_column(path: Path, table: Any, names: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """The column of days and its values; an InputError where there is none."""
    for wanted in DATE_NAMES:
        if wanted in names:
            column = names[wanted]
            try:
                days = table[column].cast(pa.timestamp("s"), safe=False).to_numpy().astype("datetime64[D]")
            except pa.ArrowException:
                said = "holds something that is not a day such as 2024-03-01"
                raise InputError(path.name, [Problem(column, said)]) from None
            if np.isnat(days).any():
                raise InputError(path.name, [Problem(column, f"{int(np.isnat(days).sum())} rows have no day")])
            return column, days
    raise InputError(path.name, [f"needs a column of days; one of {', '.join(DATE_NAMES)}"])


def numbers(path: Path, table: Any, columns: Sequence[str]) -> list[np.ndarray]:
    """Columns as floats, NaN where empty; every column that holds something else is named."""
    found, problems = [], []
    for name in columns:
        try:
            values = table[name].cast(pa.float64()).to_numpy()
            found.append(np.where(np.isinf(values), np.nan, values))
            if np.isinf(values).any():
                problems.append(Problem(name, "holds an infinite number"))
        except (pa.ArrowException, ValueError):
            problems.append(Problem(name, "holds something that is not a number"))
    if problems:
        raise InputError(path.name, problems)
    return found


def _long(path: Path, table: Any, names: Mapping[str, str]) -> _Rows:
    """Rows of a long table."""
    _, days = day_column(path, table, names)
    fields = [name for name in FIELDS if name in names]
    values = numbers(path, table, [names[name] for name in fields])
    named = table[names["instrument"]].to_pylist()
    if nameless := [row + 1 for row, one in enumerate(named) if one is None or not str(one).strip()]:
        raise InputError(path.name, [Problem(f"row {row}, instrument", "is empty") for row in nameless])
    ids = np.array([str(one) for one in named], dtype=object)
    known = None
    if "known_at" in names:
        known = instants(path, table[names["known_at"]].to_pylist())
        if (early := int((known < closing_times(days)).sum())) > 0:
            raise InputError(path.name, [Problem("known_at", f"{early} bars are known before their day has closed")])
    snapshot = np.array(table[names["snapshot"]].to_pylist(), dtype=object) if "snapshot" in names else None
    return _Rows(days, ids, dict(zip(fields, values, strict=True)), known, snapshot)


def instants(path: Path, values: Sequence[object]) -> np.ndarray:
    """Times with a zone as seconds since 1970 in UTC, rounded up: a bar must not be known early."""
    found, wrong = np.zeros(len(values), dtype=np.int64), []
    for row, value in enumerate(values):
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            wrong.append(Problem(f"row {row + 1}, known_at", f"must be a time with a zone (got {value!r})"))
        else:
            found[row] = -int(-moment.timestamp() // 1)
    if wrong:
        raise InputError(path.name, wrong)
    return found


def _wide(path: Path, table: Any, names: Mapping[str, str]) -> _Rows:
    """Rows of one table of dates by instruments."""
    column, days = day_column(path, table, names)
    others = [name for name in table.column_names if name != column]
    if not others:
        raise InputError(path.name, ["has no instrument beside its days"])
    closes = np.stack(numbers(path, table, others), axis=1)
    ids = np.repeat(np.array(others, dtype=object)[None, :], days.size, axis=0).ravel()
    return _Rows(np.repeat(days, len(others)), ids, {"close": closes.ravel()}, None, None)


def _repeats(rows: _Rows) -> list[Problem]:
    """Bars that are there more than once, and snapshots that overlap."""
    found: list[Problem] = []
    if rows.snapshot is not None and len(set(rows.snapshot.tolist())) > 1:
        found.append(Problem("snapshot", f"a store holds one snapshot (got {sorted(map(str, set(rows.snapshot)))})"))
        found += snapshot_problems(
            [
                (str(snapshot), str(name), rows.days[at], rows.fields["close"][at])
                for snapshot in sorted(set(rows.snapshot.tolist()), key=str)
                for name in dict.fromkeys(rows.ids.tolist())
                if (at := (rows.snapshot == snapshot) & (rows.ids == name)).any()
            ]
        )
        return found
    for name in dict.fromkeys(rows.ids.tolist()):
        days, counts = np.unique(rows.days[rows.ids == name], return_counts=True)
        found += [Problem(f"{name}, {day}", "the bar is there more than once") for day in days[counts > 1]]
    return found


def _table_problems(rows: _Rows, limits: Limits | None) -> list[Problem]:
    """The problems of a file with repeated bars, by the last of each."""
    days, ids = np.unique(rows.days), tuple(dict.fromkeys(rows.ids.tolist()))
    place = np.searchsorted(days, rows.days), _columns(rows.ids, ids)
    return price_problems(days, ids, _spread(rows.fields["close"], *place, (days.size, len(ids))), limits)


def _columns(of: np.ndarray, ids: Sequence[str]) -> np.ndarray:
    """The column of each row's instrument."""
    at = {name: column for column, name in enumerate(ids)}
    return np.array([at[name] for name in of.tolist()], dtype=np.int64)


def _spread(values: np.ndarray, row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Values put into a table, missing where none falls."""
    found = np.full(shape, np.nan)
    found[row, column] = values
    return found


def _listings(
    ids: Sequence[str], days: np.ndarray, closes: np.ndarray, given: Sequence[Listing]
) -> tuple[Listing, ...]:
    """The listing of each column; an instrument nobody described is an equity from its first price on."""
    known = {one.id: one for one in given}
    unknown: AssetClass = "EQ"
    found = []
    for column, name in enumerate(ids):
        there = np.flatnonzero(np.isfinite(closes[:, column]))
        first = days[there[0] if there.size else 0].astype("datetime64[D]").astype(object)
        found.append(known.get(name) or Listing(name, unknown, "", name, first))
    return tuple(found)
