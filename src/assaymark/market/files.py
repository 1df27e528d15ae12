"""Prices from CSV and Parquet files: a long table of bars, or a wide table of days by instruments."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
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

from assaymark.errors import InputError, Problem, table_problem
from assaymark.market.history import FIELDS, History, closing_times, known_at_close
from assaymark.market.instruments import AssetClass, Limits, Listing, mixed_snapshots, price_findings
from assaymark.market.open import history_of
from assaymark.market.snapshot import SCHEMAS, Origin, Snapshot, content_digest, table_of, with_texts
from assaymark.records import canonical_json, duplicates, sha256_text

DATE_NAMES = ("event_date", "date", "day")
"""Accepted names of the column of days, case-insensitive."""

LARGEST_FILE = 2 << 30
"""Maximum size of a file in bytes."""


def history_from_file(
    path: Path, listings: Sequence[Listing] = (), *, limits: Limits | None = None, strict: bool = True
) -> tuple[History, list[Problem]]:
    """Read a price store from one file, with its problems; ``strict`` raises `InputError` if there are any."""
    bars = _read(path, sampled=False)
    names, event, known_at = (bars.columns[name] for name in ("instrument", "event_date", "known_at"))
    days = np.unique(bars.days)
    row = np.searchsorted(days, event)
    ids = tuple(dict.fromkeys(names.tolist()))
    at = {name: column for column, name in enumerate(ids)}
    column = np.array([at[name] for name in names.tolist()], dtype=np.int64)
    tables = {name: np.full((days.size, len(ids)), np.nan) for name in FIELDS if name in bars.columns}
    times = known_at_close(days, len(ids))
    times[row, column] = known_at
    for name, table in tables.items():
        table[row, column] = bars.columns[name]
    problems: list[Problem] = [*price_findings(days, ids, tables["close"], limits)]
    problems += [Problem(name, "has no price at all") for name in bars.empty]
    counts = Counter(zip(names.tolist(), event.tolist(), strict=True))
    refused = [Problem(f"{key}, {day}", "the bar is there more than once") for (key, day), n in counts.items() if n > 1]
    if (early := int((known_at < closing_times(event)).sum())) > 0:
        refused.append(Problem("known_at", f"{early} bars are known before their day has closed"))
    if refused or (strict and problems):
        raise InputError(path.name, [*refused, *problems])
    # An instrument without a description is listed from its first price, and an equity if no class is named.
    by_id, firsts = {one.id: one for one in listings}, days[np.isfinite(tables["close"]).argmax(axis=0)].astype(object)
    described = tuple(
        by_id.get(name) or Listing(name, bars.classes.get(name, "EQ"), "", name, first)
        for name, first in zip(ids, firsts, strict=True)
    )
    snapshot = bars.snapshot or path.stem
    return History(described, days, tables, times, source=f"file {path.name}", snapshot=snapshot), problems


def read_price_table(path: Path) -> Any:
    """Read a CSV or Parquet file as an Arrow table. Raises `InputError`."""
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(path.name, [f"is too large: {size} bytes, the limit is {LARGEST_FILE}"])
        with path.open("rb") as handle:
            start = handle.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if start.startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")):
            raise InputError(path.name, ["is a web page (HTML), no table of prices: an error page that was saved?"])
        if path.suffix == ".parquet":
            with pa.parquet.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read()
        else:
            # In one block if possible: types are inferred from the first block, where a late listing is still empty.
            table = pa.csv.read_csv(
                path,
                read_options=pa.csv.ReadOptions(block_size=min(max(size, 1 << 20), 1 << 28)),
                parse_options=pa.csv.ParseOptions(newlines_in_values=True),
                convert_options=pa.csv.ConvertOptions(strings_can_be_null=True),
            )
    except (OSError, pa.ArrowException) as exc:
        raise InputError(path.name, [table_problem(exc, first_bytes(path))]) from None
    twice = duplicates(table.column_names)
    if twice:
        raise InputError(path.name, [Problem(name, "the column is there more than once") for name in twice])
    if table.num_rows == 0:
        raise InputError(path.name, ["has no rows"])
    return table


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file; empty if it cannot be read."""
    with suppress(OSError), path.open("rb") as handle:
        return handle.read(8)
    return b""


def day_column(path: Path, table: Any, names: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """Return the name and the values of the column of days. Raises `InputError` if there is none."""
    for wanted in DATE_NAMES:
        if wanted in names:
            column = names[wanted]
            try:
                days = table[column].cast(pa.timestamp("s"), safe=False).to_numpy().astype("datetime64[D]")
            except pa.ArrowException:
                message = "contains a value that is not a day such as 2024-03-01"
                raise InputError(path.name, [Problem(column, message)]) from None
            if np.isnat(days).any():
                raise InputError(path.name, [Problem(column, f"{int(np.isnat(days).sum())} rows have no day")])
            return column, days
    raise InputError(path.name, [f"needs a column of days; one of {', '.join(DATE_NAMES)}"])


def float_columns(path: Path, table: Any, columns: Sequence[str]) -> list[np.ndarray]:
    """Return columns as floats, NaN if empty. Raises `InputError` that names every column with other values."""
    arrays, problems = [], []
    for name in columns:
        try:
            values = table[name].cast(pa.float64()).to_numpy()
            arrays.append(np.where(np.isinf(values), np.nan, values))
            if np.isinf(values).any():
                problems.append(Problem(name, "holds an infinite number"))
        except (pa.ArrowException, ValueError):
            problems.append(Problem(name, "contains a value that is not a number"))
    if problems:
        raise InputError(path.name, problems)
    return arrays


def parse_times(path: Path, values: Sequence[object]) -> np.ndarray:
    """Convert times with a zone to seconds since 1970 in UTC, rounded up so that no bar is known early."""
    seconds, wrong = np.zeros(len(values), dtype=np.int64), []
    for row, value in enumerate(values):
        try:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            wrong.append(Problem(f"row {row + 1}, known_at", f"must be a time with a zone (got {value!r})"))
        else:
            seconds[row] = -int(-moment.timestamp() // 1)
    if wrong:
        raise InputError(path.name, wrong)
    return seconds


PREFIXES: Final[Mapping[str, AssetClass]] = {
    "equities": "EQ", "bonds": "BO", "commodities": "CO", "real_estate": "RE", "cryptocurrency": "CR", "cash": "CA",
}  # fmt: skip
"""Prefix of the columns of each class in PortBench's market file, as in ``equities_SPY_close``."""

PORTBENCH_NOTES: Final[tuple[str, ...]] = (
    "price levels are winsorised over the whole sample: highs and lows are cut to percentiles that later days decide",
    "short gaps were carried forward before the levels were cut, so some days repeat a price of the day before",
    "whether dividends are in the closes is not stated",
)
"""Caveats about PortBench's market file, in addition to the columns that were left out."""

_ACTIONS: Final = ("split", "dividend")
_FIELD: Final = re.compile(r"(?P<name>.+)_(?P<field>open|high|low|close|volume)", re.IGNORECASE)
_RETURN: Final = re.compile(r".+_(?:log_?)?returns?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _FileBars:
    """Bars read from a file: its columns of a snapshot's table of bars, with the classes of instruments and notes."""

    columns: Mapping[str, Any]
    classes: Mapping[str, AssetClass]
    days: np.ndarray
    notes: tuple[str, ...] = ()
    portbench: bool = False
    currency: str = ""
    snapshot: str = ""
    empty: Sequence[str] = ()


def snapshot_from_file(
    path: Path, now: datetime, *, listings: Sequence[Listing] = (), licence: str = "not stated", currency: str = "",
    asset_class: AssetClass = "EQ", symbols: Sequence[str] = (), start: date | None = None, end: date | None = None,
    limits: Limits | None = None,
) -> Snapshot:  # fmt: skip
    """Read a price file as a snapshot, whose id is derived from its contents. Raises `InputError`."""
    bars = _read(path)
    ids, days = bars.columns["instrument"], bars.columns["event_date"]
    if unknown := sorted(set(symbols) - set(ids.tolist())):
        raise InputError(path.name, [Problem(name, "the file has no such instrument") for name in unknown])
    chosen = np.isin(ids, list(symbols)) if symbols else np.ones(ids.size, dtype=bool)
    chosen &= (days >= np.datetime64(start or date.min)) & (days <= np.datetime64(end or date.max))
    if not chosen.any():
        raise InputError(path.name, [f"has no bar from {start or 'the first day'} to {end or 'the last'}"])
    columns = {name: column[chosen] for name, column in bars.columns.items()}
    classes = {**dict.fromkeys(columns["instrument"].tolist(), asset_class), **bars.classes}
    bars = replace(bars, columns=columns, classes=classes)
    if currency and bars.currency and bars.currency != currency:
        raise InputError(path.name, [Problem("currency", f"the file says {bars.currency} (asked for {currency})")])
    tables = _snapshot_tables(bars, {listing.id: listing for listing in listings}, currency or bars.currency, path.name)
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    query = {"file": path.name, "sha256": digest, "symbols": sorted(symbols)}
    query |= {name: day.isoformat() for name, day in (("start", start), ("end", end)) if day is not None}
    contents = {kind: content_digest(table) for kind, table in tables.items()}
    name = f"files-{path.stem}-{sha256_text(canonical_json(contents))[:12]}"
    origin = Origin("files", now, query, licence, bars.notes)
    snapshot = Snapshot(name, origin, {**tables, "bars": with_texts(tables["bars"], snapshot=name)})
    # refused if prices are not positive or a day is incomplete
    history = history_of(snapshot)
    listed, last = [listing.id for listing in history.listings], str(history.days[-1]) if history.days.size else ""
    groups = [listing.asset_class for listing in history.listings]
    findings = price_findings(history.days, listed, history.bars["close"], limits, groups)
    wrong: list[Problem] = [finding for finding in findings if finding.kind == "sign"]
    names, event = bars.columns["instrument"], bars.columns["event_date"]
    for kind in (field for field in ("open", "high", "low") if field in bars.columns):  # orders fill at opens
        prices = bars.columns[kind]
        wrong += [Problem(f"{names[at]}, {event[at]}, {kind}", f"a price must be positive (got {prices[at]:g})")
                  for at in np.flatnonzero(prices <= 0).tolist()]  # fmt: skip
    # PortBench fills gaps forward before it writes the file, so only its last day can be incomplete.
    wrong += [one for one in findings if one.kind == "half day" and (not bars.portbench or one.where == last)]
    if wrong:
        raise InputError(path.name, wrong)
    return snapshot


def _read(path: Path, *, sampled: bool = True) -> _FileBars:
    """Read the bars of a file of either layout; ``sampled`` drops Saturdays and Sundays of a wide one."""
    table = read_price_table(path)
    names = {name.strip().lower(): name for name in table.column_names}
    if not {"instrument", "close"} <= names.keys():
        return _read_wide(path, table, names, sampled)
    _, days = day_column(path, table, names)
    fields = [name for name in (*FIELDS, "adj_factor", *_ACTIONS) if name in names]
    values = dict(zip(fields, float_columns(path, table, [names[name] for name in fields]), strict=True))
    ids = [None if cell is None else str(cell).strip() for cell in table[names["instrument"]].to_pylist()]
    if nameless := [row + 1 for row, name in enumerate(ids) if not name]:
        raise InputError(path.name, [Problem(f"row {row}, instrument", "is empty") for row in nameless])
    of = np.array(ids, dtype=object)
    times = closing_times(days)
    if "known_at" in names:
        times = parse_times(path, table[names["known_at"]].to_pylist())
    snapshots = table[names["snapshot"]].to_pylist() if "snapshot" in names else [""]
    if len(set(snapshots)) > 1:
        raise InputError(path.name, mixed_snapshots(snapshots, of, days, values["close"], "one file"))
    currencies: list[str] = []
    if "currency" in names:
        currencies = sorted({str(cell).strip() for cell in table[names["currency"]].to_pylist() if cell is not None})
    if len(currencies) > 1:
        message = "a snapshot holds one, and there are no exchange rates here"
        message += f" (got {', '.join(currencies)}); make one a currency"
        raise InputError(path.name, [Problem("currency", message)])
    columns = {"instrument": of, "event_date": days, "known_at": times, **values}
    return _FileBars(columns, {}, days, currency="".join(currencies), snapshot=str(snapshots[0] or ""))


def _read_wide(path: Path, table: Any, names: Mapping[str, str], sampled: bool) -> _FileBars:
    """Read the bars of a wide table, with one row per day."""
    day_name, days = day_column(path, table, names)
    others = [name for name in table.column_names if name != day_name]
    returns = [name for name in others if _RETURN.fullmatch(name)]
    # The instruments (id, class, columns by field); the names of PortBench's columns have a class as prefix
    fields: dict[str, dict[str, str]] = {}
    plain = [name for name in others if name not in returns]
    for name in plain:
        if named := _FIELD.fullmatch(name):
            fields.setdefault(named["name"], {})[named["field"].lower()] = name
    fields = {name: columns for name, columns in fields.items() if "close" in columns}
    split: dict[str, tuple[str, AssetClass | None]] = {}
    for name in fields:
        prefix = next((prefix for prefix in PREFIXES if name.lower().startswith(f"{prefix}_")), None)
        split[name] = (name, None) if prefix is None else (name[len(prefix) + 1 :], PREFIXES[prefix])
    tickers = Counter(ticker for ticker, _ in split.values())
    # A ticker may occur in two classes; then the class stays in the name.
    series = [
        (name if tickers[split[name][0]] > 1 else split[name][0], split[name][1], columns)
        for name, columns in fields.items()
    ] or [(name.strip(), None, {"close": name}) for name in plain]
    portbench = bool(fields) and all(asset_class is not None for _, asset_class in split.values())
    if not series:
        raise InputError(path.name, ["has no instrument beside its days"])
    used = [column for _, _, by_field in series for column in by_field.values()]
    chosen = np.is_busday(days) if sampled else np.ones(days.size, dtype=bool)
    values = {name: column[chosen] for name, column in zip(used, float_columns(path, table, used), strict=True)}
    notes: tuple[str, ...] = PORTBENCH_NOTES if portbench else ()
    if returns:
        are = "hold log returns, which are not simple ones" if portbench else "are not said to be simple returns"
        message = f"columns ending in _return are left out: they {are}; returns are made from the closes"
        notes += (f"{len(returns)} {message}",)
    if rest := len(others) - len(returns) - len(used):
        message = "of macro series and texts, which lack a time of publication," if portbench else "that are not prices"
        notes += (f"{rest} columns {message} are left out",)
    if weekend := int((~chosen).sum()):
        notes += (f"{weekend} Saturdays and Sundays are left out: days are sampled to weekdays",)
    days, missing = days[chosen], np.full(int(chosen.sum()), np.nan)
    parts, empty = [], []
    for name, asset_class, by_field in series:
        there = np.isfinite(values[by_field["close"]])  # a day without a close has no bar
        if not there.any():
            empty.append(name)
            continue
        times = closing_times(days) if asset_class != "CR" else (days.astype(np.int64) + 1) * 86_400
        columns = {"instrument": np.full(days.size, name, dtype=object), "event_date": days, "known_at": times}
        columns |= {field: values[by_field[field]] if field in by_field else missing for field in FIELDS}
        parts.append({field: column[there] for field, column in columns.items()})
    if empty:
        notes += (f"{len(empty)} instruments without any close are left out: {', '.join(empty[:5])}",)
    if not parts:
        raise InputError(path.name, ["has no close on any weekday"])
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    classes = {name: asset_class for name, asset_class, _ in series if asset_class}
    return _FileBars(whole, classes, days, notes, portbench, empty=empty)


def _snapshot_tables(bars: _FileBars, listings: Mapping[str, Listing], currency: str, source: str) -> dict[str, Any]:
    """Return bars, instruments and corporate actions as tables of a snapshot."""
    size = bars.columns["instrument"].size
    data = {**bars.columns, "known_at": bars.columns["known_at"] * 1_000_000}
    actions: dict[str, Any] = {}
    if set(_ACTIONS) & set(data):
        split, dividend = data.get("split", np.ones(size)), data.get("dividend", np.zeros(size))
        splits = np.where(np.isnan(split) | (split == 0.0), 1.0, split)  # some files write 0 for no split
        paid = np.nan_to_num(dividend)
        # the table of actions; splits of 1 and dividends of 0 are not actions
        acted = np.flatnonzero((splits != 1.0) | (paid != 0.0))
        wrong = [Problem(f"row {row + 1}, split", "must be above 0") for row in acted.tolist() if not splits[row] > 0]
        wrong += [Problem(f"row {row + 1}, dividend", "must be 0 or more") for row in acted.tolist() if paid[row] < 0]
        if wrong:
            raise InputError(source, wrong)
        # With several versions of a bar, the action is known from the first version on.
        acted = acted[np.argsort(data["known_at"][acted], kind="stable")]
        firsts = {(data["instrument"][row], data["event_date"][row]): row for row in acted[::-1].tolist()}
        places = np.array(sorted(firsts.values()), dtype=np.int64)
        whole = {"instrument": data["instrument"], "ex_date": data["event_date"], "known_at": data["known_at"],
                 "split": splits, "dividend": paid}  # fmt: skip
        actions["actions"] = table_of("actions", {field: column[places] for field, column in whole.items()})
        if "adj_factor" not in data:
            # factors that run back from each instrument's last bar, as data vendors compute them
            factors = data["adj_factor"] = np.ones(size)
            later: dict[Any, tuple[int, float]] = {}
            for row in np.lexsort((data["known_at"], data["event_date"]))[::-1].tolist():
                symbol = data["instrument"][row]
                if symbol in later:
                    next_row, factor = later[symbol]
                    if data["event_date"][row] != data["event_date"][next_row]:
                        before = data["close"][row] / splits[next_row]
                        factor *= (1.0 - paid[next_row] / before) / splits[next_row]
                    factors[row] = factor
                later[symbol] = (row, factors[row])
    instruments, days = bars.columns["instrument"], bars.columns["event_date"]
    # From the last row to the first, so that the row of the first day is kept.
    order = np.argsort(days, kind="stable")[::-1]
    first = dict(zip(instruments[order].tolist(), days[order].astype(object).tolist(), strict=True))
    described = (
        listings.get(name) or Listing(name, bars.classes[name], "", name, first[name])
        for name in dict.fromkeys(instruments.tolist())
    )
    rows = [listing.as_row(currency or None) for listing in described]
    return {
        "bars": table_of("bars", {**data, "source": f"file {source}"}),
        "instruments": pa.Table.from_pylist(rows, schema=SCHEMAS["instruments"]),
        **actions,
    }
