"""Prices from CSV and Parquet files: a long table of bars, or one table of dates by instruments."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from assaymark.errors import InputError, Problem
from assaymark.market.checks import Limits, price_findings, price_problems, snapshot_problems
from assaymark.market.history import FIELDS, History, closing_times, known_at_close
from assaymark.market.instruments import AssetClass, Listing
from assaymark.market.open import history_of
from assaymark.market.snapshot import SCHEMAS, Origin, Snapshot, content_digest
from assaymark.problems import table_problem
from assaymark.records import canonical_json, sha256_text

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
    """A store from one file of prices, and what is wrong with it."""
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
    """A CSV or Parquet file as an Arrow table."""
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


# The source ``files``: a CSV or Parquet file of prices as a snapshot, long, wide, or PortBench's market file.
#
# A file is refused where it is no table of prices, or only a part of one. What else is odd in it is kept as it is and
# named by ``assaymark data check``.


PREFIXES: Final[Mapping[str, AssetClass]] = {
    "equities": "EQ",
    "bonds": "BO",
    "commodities": "CO",
    "real_estate": "RE",
    "cryptocurrency": "CR",
    "cash": "CA",
}
"""How PortBench's market file begins the columns of each class: ``equities_SPY_close``."""

PORTBENCH_NOTES: Final[tuple[str, ...]] = (
    "price levels are winsorised over the whole sample: highs and lows are cut to percentiles that later days decide",
    "short gaps were carried forward before the levels were cut, so some days repeat a price of the day before",
    "whether dividends are in the closes is not stated",
)
"""What a reader of PortBench's market file must know, beside what was left out of it."""

_ACTIONS: Final = ("split", "dividend")
_FIELD: Final = re.compile(r"(?P<name>.+)_(?P<field>open|high|low|close|volume)", re.IGNORECASE)
_RETURN: Final = re.compile(r".+_(?:log_?)?returns?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Series:
    """One instrument of a wide file: its id, class, and which column is which field."""

    id: str
    asset_class: AssetClass | None
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Bars:
    """The bars of a file: the columns of a snapshot's table that it has, by name, with its instruments and notes."""

    columns: Mapping[str, Any]
    classes: Mapping[str, AssetClass]
    notes: tuple[str, ...]
    portbench: bool = False
    currency: str = ""


def snapshot_from_file(
    path: Path,
    *,
    now: datetime,
    listings: Sequence[Listing] = (),
    licence: str = "not stated",
    currency: str = "",
    asset_class: AssetClass = "EQ",
    symbols: Sequence[str] = (),
    start: date | None = None,
    end: date | None = None,
    limits: Limits | None = None,
) -> Snapshot:
    """A file of prices as a snapshot, named by its contents."""
    bars = _read(path)
    bars = _chosen(path, bars, symbols, start, end)
    described = {one.id: one for one in listings}
    bars = replace(bars, classes={**dict.fromkeys(bars.columns["instrument"].tolist(), asset_class), **bars.classes})
    if currency and bars.currency and bars.currency != currency:
        raise InputError(path.name, [Problem("currency", f"the file says {bars.currency} (asked for {currency})")])
    tables = _tables(bars, described, currency or bars.currency, path.name)
    query = {"file": path.name, "sha256": _sha256(path), "symbols": sorted(symbols)}
    query |= {name: day.isoformat() for name, day in (("start", start), ("end", end)) if day is not None}
    name = sha256_text(canonical_json({kind: content_digest(table) for kind, table in tables.items()}))[:12]
    origin = Origin(source="files", retrieved_at=now, query=query, licence=licence, notes=bars.notes)
    snapshot = Snapshot(f"files-{path.stem}-{name}", origin, _named(tables, f"files-{path.stem}-{name}"))
    _refuse(path, bars, history_of(snapshot), limits)
    return snapshot


def _read(path: Path) -> _Bars:
    """The bars of a file of any layout."""
    table = read_price_table(path)
    names = {name.strip().lower(): name for name in table.column_names}
    if "instrument" in names and "close" in names:
        return _file_source_long(path, table, names)
    return _file_source_wide(path, table, names)


def _file_source_long(path: Path, table: Any, names: Mapping[str, str]) -> _Bars:
    """One row a version of a bar."""
    _, days = day_column(path, table, names)
    fields = [name for name in (*FIELDS, "adj_factor", *_ACTIONS) if name in names]
    values = dict(zip(fields, numbers(path, table, [names[name] for name in fields]), strict=True))
    ids = [None if one is None else str(one).strip() for one in table[names["instrument"]].to_pylist()]
    if nameless := [row + 1 for row, one in enumerate(ids) if not one]:
        raise InputError(path.name, [Problem(f"row {row}, instrument", "is empty") for row in nameless])
    known = closing_times(days)
    if "known_at" in names:
        known = instants(path, table[names["known_at"]].to_pylist())
    if "snapshot" in names and len(kinds := table[names["snapshot"]].unique()) > 1:
        shown = ", ".join(sorted(map(str, kinds.to_pylist())))
        raise InputError(path.name, [Problem("snapshot", f"one file holds one snapshot (got {shown})")])
    columns = {"instrument": np.array(ids, dtype=object), "event_date": days, "known_at": known, **values}
    return _Bars(columns, {}, (), currency=_one_currency(path, table, names))


def _one_currency(path: Path, table: Any, names: Mapping[str, str]) -> str:
    """The currency of a file that names one; nothing for a file that does not."""
    if "currency" not in names:
        return ""
    kinds = sorted({str(one).strip() for one in table[names["currency"]].to_pylist() if one is not None})
    if len(kinds) > 1:
        shown = ", ".join(kinds)
        what = f"a snapshot holds one, and there are no exchange rates here (got {shown}); make one a currency"
        raise InputError(path.name, [Problem("currency", what)])
    return kinds[0] if kinds else ""


def _file_source_wide(path: Path, table: Any, names: Mapping[str, str]) -> _Bars:
    """One row a day."""
    day_name, days = day_column(path, table, names)
    others = [name for name in table.column_names if name != day_name]
    returns = [name for name in others if _RETURN.fullmatch(name)]
    series, portbench = _series([name for name in others if name not in returns])
    if not series:
        raise InputError(path.name, ["has no instrument beside its days"])
    used = [column for one in series for column in one.columns.values()]
    kept = np.is_busday(days)
    values = {name: one[kept] for name, one in zip(used, numbers(path, table, used), strict=True)}
    notes = _notes(len(returns), len(others) - len(returns) - len(used), int((~kept).sum()), portbench)
    empty = [one.id for one in series if np.isnan(values[one.columns["close"]]).all()]
    if empty:
        notes += (f"{len(empty)} instruments without any close are left out: {', '.join(empty[:5])}",)
    parts = [_rows(one, days[kept], values) for one in series if one.id not in empty]
    if not parts:
        raise InputError(path.name, ["has no close on any weekday"])
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _Bars(columns, {one.id: one.asset_class for one in series if one.asset_class}, notes, portbench)


def _series(names: Sequence[str]) -> tuple[list[_Series], bool]:
    """The instruments of a wide file, and whether its columns are named as in PortBench's."""
    fields: dict[str, dict[str, str]] = {}
    for name in names:
        if found := _FIELD.fullmatch(name):
            fields.setdefault(found["name"], {})[found["field"].lower()] = name
    whole = {name: columns for name, columns in fields.items() if "close" in columns}
    if not whole:
        return [_Series(name.strip(), None, {"close": name}) for name in names], False
    split = {name: _class_of(name) for name in whole}
    tickers = [ticker for ticker, _ in split.values()]
    series = [
        # Two classes may list one ticker; then the class stays in the name.
        _Series(name if tickers.count(split[name][0]) > 1 else split[name][0], split[name][1], columns)
        for name, columns in whole.items()
    ]
    return series, all(asset_class is not None for _, asset_class in split.values())


def _class_of(name: str) -> tuple[str, AssetClass | None]:
    """Ticker and class of ``equities_SPY``."""
    for prefix, asset_class in PREFIXES.items():
        if name.lower().startswith(f"{prefix}_"):
            return name[len(prefix) + 1 :], asset_class
    return name, None


def _notes(returns: int, others: int, weekend: int, portbench: bool) -> tuple[str, ...]:
    """What was left out of a wide file and what its numbers are."""
    found: tuple[str, ...] = PORTBENCH_NOTES if portbench else ()
    if returns:
        are = "hold log returns, which are not simple ones" if portbench else "are not said to be simple returns"
        found += (f"{returns} columns ending in _return are left out: they {are}; returns are made from the closes",)
    if others:
        what = "of macro series and texts, which have no time of publication," if portbench else "that are no prices"
        found += (f"{others} columns {what} are left out",)
    if weekend:
        found += (f"{weekend} Saturdays and Sundays are left out: days are sampled to weekdays",)
    return found


def _rows(series: _Series, days: np.ndarray, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The bars of one instrument; a day without a close has none."""
    there = np.isfinite(values[series.columns["close"]])
    known = closing_times(days) if series.asset_class != "CR" else (days.astype(np.int64) + 1) * 86_400
    missing = np.full(days.size, np.nan)
    fields = {name: values[series.columns[name]] if name in series.columns else missing for name in FIELDS}
    ids = np.full(days.size, series.id, dtype=object)
    columns = {"instrument": ids, "event_date": days, "known_at": known, **fields}
    return {name: one[there] for name, one in columns.items()}


def _chosen(path: Path, bars: _Bars, symbols: Sequence[str], start: date | None, end: date | None) -> _Bars:
    """Only the bars that were asked for."""
    ids, days = bars.columns["instrument"], bars.columns["event_date"]
    if unknown := sorted(set(symbols) - set(ids.tolist())):
        raise InputError(path.name, [Problem(name, "the file has no such instrument") for name in unknown])
    kept = np.isin(ids, list(symbols)) if symbols else np.ones(ids.size, dtype=bool)
    kept &= days >= np.datetime64(start or date.min)
    kept &= days <= np.datetime64(end or date.max)
    if not kept.any():
        raise InputError(path.name, [f"has no bar from {start or 'the first day'} to {end or 'the last'}"])
    return replace(bars, columns={name: one[kept] for name, one in bars.columns.items()})


def _tables(bars: _Bars, listings: Mapping[str, Listing], currency: str, name: str) -> dict[str, Any]:
    """Bars and instruments as tables."""
    size = bars.columns["instrument"].size
    given = {**bars.columns, "known_at": bars.columns["known_at"] * 1_000_000}
    actions = _actions(given, name)
    if actions and "adj_factor" not in given:
        given["adj_factor"] = _factors(given)
    given |= {"source": np.full(size, f"file {name}", dtype=object)}
    columns = [
        pa.array(given[one.name], one.type, from_pandas=True) if one.name in given else pa.nulls(size, one.type)
        for one in SCHEMAS["bars"]
    ]
    instruments, days = bars.columns["instrument"], bars.columns["event_date"]
    # From the last row to the first, so that the row of the first day is the one that stays.
    order = np.argsort(days, kind="stable")[::-1]
    first = dict(zip(instruments[order].tolist(), days[order].astype(object).tolist(), strict=True))
    first = {one: first[one] for one in dict.fromkeys(instruments.tolist())}
    rows = [_listing(listings.get(one) or _unknown(one, bars, day), currency) for one, day in first.items()]
    return {
        "bars": pa.Table.from_arrays(columns, schema=SCHEMAS["bars"]),
        "instruments": pa.Table.from_pylist(rows, schema=SCHEMAS["instruments"]),
        **actions,
    }


def _actions(given: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    """The table of actions of a file with columns for them; empty cells, splits of 1 and dividends of 0 are none."""
    if not set(_ACTIONS) & set(given):
        return {}
    splits, dividends = _splits(given), _dividends(given)
    rows = np.flatnonzero((splits != 1.0) | (dividends != 0.0))
    wrong = [Problem(f"row {row + 1}, split", "must be above 0") for row in rows.tolist() if not splits[row] > 0]
    wrong += [Problem(f"row {row + 1}, dividend", "must be 0 or more") for row in rows.tolist() if dividends[row] < 0]
    if wrong:
        raise InputError(name, wrong)
    # Of several versions of a bar the one known first says from when the action is known.
    rows = rows[np.argsort(given["known_at"][rows], kind="stable")]
    first = {(given["instrument"][row], given["event_date"][row]): row for row in rows[::-1].tolist()}
    kept = np.array(sorted(first.values()), dtype=np.int64)
    columns = (given["instrument"][kept], given["event_date"][kept], given["known_at"][kept], splits[kept])
    arrays = zip((*columns, dividends[kept]), SCHEMAS["actions"], strict=True)
    return {"actions": pa.Table.from_arrays([pa.array(one, of.type) for one, of in arrays], schema=SCHEMAS["actions"])}


def _splits(given: Mapping[str, np.ndarray]) -> np.ndarray:
    """The split of each row, 1 where there is none; some files write 0 for that."""
    found = given.get("split", np.ones(given["close"].size))
    return np.where(np.isnan(found) | (found == 0.0), 1.0, found)


def _dividends(given: Mapping[str, np.ndarray]) -> np.ndarray:
    found: np.ndarray = np.nan_to_num(given.get("dividend", np.zeros(given["close"].size)))
    return found


def _factors(given: Mapping[str, np.ndarray]) -> np.ndarray:
    """Factors that count back from each instrument's last bar, as data vendors make them."""
    splits, dividends, factors = _splits(given), _dividends(given), np.ones(given["close"].size)
    later: dict[Any, tuple[int, float]] = {}
    for row in np.lexsort((given["known_at"], given["event_date"]))[::-1].tolist():
        name = given["instrument"][row]
        if name in later:
            next_row, factor = later[name]
            if given["event_date"][row] != given["event_date"][next_row]:
                before = given["close"][row] / splits[next_row]
                factor *= (1.0 - dividends[next_row] / before) / splits[next_row]
            factors[row] = factor
        later[name] = (row, factors[row])
    return factors


def _unknown(name: str, bars: _Bars, first: date) -> Listing:
    """An instrument that nobody described."""
    return Listing(name, bars.classes[name], "", name, first)


def _listing(one: Listing, currency: str) -> dict[str, object]:
    """A row of the table of instruments."""
    return {
        "id": one.id,
        "class": one.asset_class,
        "sub": one.sub,
        "name": one.name,
        "currency": currency or None,
        "listed": one.listed,
        "delisted": one.delisted,
        "calendar": one.calendar,
    }


def _named(tables: Mapping[str, Any], snapshot: str) -> dict[str, Any]:
    """The tables with the name of their snapshot in every bar."""
    bars, place = tables["bars"], SCHEMAS["bars"].get_field_index("snapshot")
    column = pa.array(np.full(bars.num_rows, snapshot, dtype=object), pa.string())
    return {**tables, "bars": bars.set_column(place, SCHEMAS["bars"].field(place), column)}


def _refuse(path: Path, bars: _Bars, history: History, limits: Limits | None) -> None:
    """Raise where prices cannot be prices, or days are cut off."""
    ids, last = [one.id for one in history.listings], str(history.days[-1]) if history.days.size else ""
    groups = [one.asset_class for one in history.listings]
    found = price_findings(history.days, ids, history.bars["close"], limits, groups)
    # PortBench carries gaps forward before it writes the file: only its last day can be one that was cut off.
    half = [one for one in found if one.kind == "half day" and (not bars.portbench or one.where == last)]
    wrong = [Problem(one.where, one.what) for one in found if one.kind == "sign"]
    names, days = bars.columns["instrument"], bars.columns["event_date"]
    for kind in (one for one in ("open", "high", "low") if one in bars.columns):  # orders fill at opens
        prices = bars.columns[kind]
        wrong += [
            Problem(f"{names[at]}, {days[at]}, {kind}", f"a price must be positive (got {prices[at]:g})")
            for at in np.flatnonzero(prices <= 0).tolist()
        ]
    wrong += [Problem(one.where, one.what) for one in half]
    if wrong:
        raise InputError(path.name, wrong)


def _sha256(path: Path) -> str:
    """The digest of the file that was read."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
