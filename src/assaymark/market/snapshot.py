"""Snapshots: the data of one source at one time as long tables with provenance, their folder on disk, and its cache."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assaymark.errors import InputError, LedgerError, Problem
from assaymark.market.history import FACTOR, History, Restated, WideBars, synthetic_history
from assaymark.market.instruments import LAST_DAY
from assaymark.notebook import Grid, Heading, Part, Result
from assaymark.records import JSON, canonical_json, content_id, parse, record, sha256_text, write_atomic
from assaymark.text import clean, count

_INSTANT = pa.timestamp("us", tz="UTC")
_TEXT, _DATE, _FLOAT = pa.string(), pa.date32(), pa.float64()

# fmt: off
SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType({
    "bars": pa.schema({
        "instrument": _TEXT, "event_date": _DATE, "known_at": _INSTANT,
        **dict.fromkeys(("open", "high", "low", "close", "adj_factor", "volume"), _FLOAT),
        "source": _TEXT, "snapshot": _TEXT,
    }),
    "macro": pa.schema({
        "series": _TEXT, "ref_period": _DATE, "value": _FLOAT, "realtime_start": _INSTANT, "realtime_end": _INSTANT,
        "unit": _TEXT, "title": _TEXT, "stale_days": pa.int32(),
    }),
    "instruments": pa.schema({
        **dict.fromkeys(("id", "class", "sub", "name", "currency"), _TEXT),
        "listed": _DATE, "delisted": _DATE, "calendar": _TEXT,
    }),
    "news": pa.schema({
        "id": _TEXT, "published_at": _INSTANT, "instruments": pa.list_(_TEXT), "text": _TEXT, "source": _TEXT,
    }),
    "fundamentals": pa.schema({
        "instrument": _TEXT, "period": _TEXT, "field": _TEXT, "value": _FLOAT, "unit": _TEXT, "filed_at": _INSTANT,
    }),
    "actions": pa.schema({
        "instrument": _TEXT, "ex_date": _DATE, "known_at": _INSTANT, "split": _FLOAT, "dividend": _FLOAT,
    }),
})
# fmt: on
"""The tables of a snapshot and their columns."""

OPTIONAL = frozenset({"actions"})
"""Tables that a folder has only if they have rows; see `assaymark.market.instruments.CorporateAction`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Provenance of a snapshot: source, time of retrieval, query, licence and notes."""

    source: str
    retrieved_at: datetime
    query: Mapping[str, JSON] = field(default_factory=dict)
    licence: str = "not stated"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Snapshot(Result):
    """The long tables of one answer of one source; tables that the source lacks are empty."""

    id: str
    origin: Origin
    tables: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [Problem(name, f"is not a table of a snapshot; tables are {', '.join(SCHEMAS)}")
                    for name in self.tables if name not in SCHEMAS]  # fmt: skip
        problems += [
            Problem(name, f"must have the columns {SCHEMAS[name].names}, in this order and of its types "
                          f"(got {table.schema})")
            for name, table in self.tables.items()
            if name in SCHEMAS and not table.schema.equals(SCHEMAS[name])
        ]  # fmt: skip
        if problems:
            raise InputError(f"snapshot {self.id}", problems)
        whole = {name: self.tables.get(name, schema.empty_table()) for name, schema in SCHEMAS.items()}
        object.__setattr__(self, "tables", MappingProxyType(whole))

    def _parts(self) -> Iterator[Part]:
        yield Heading(clean(self.id, 80))
        yield f"from {clean(self.origin.source, 60)}, asked {self.origin.retrieved_at:%Y-%m-%d %H:%M}"
        yield f"licence: {clean(self.origin.licence, 200)}"
        yield from (f"note: {clean(note, 300)}" for note in self.origin.notes)
        rows = tuple((name, count(table.num_rows)) for name, table in self.tables.items())
        yield Grid(("Table", "Rows"), rows, frozenset({1}))


_NEVER: Final = np.iinfo(np.int64).max


def synthetic_snapshot(seed: int = 0) -> Snapshot:
    """Return the embedded market of a seed as a snapshot, ``synthetic-<seed>``; deterministic."""
    # The time is that of the last close, not of a clock, so that a seed always gives the same snapshot.
    last = datetime(LAST_DAY.year, LAST_DAY.month, LAST_DAY.day, 21, tzinfo=UTC)
    notes = ("every instrument, price, number and text is invented", "gaps and delistings are deliberate")
    origin = Origin("synthetic", last, {"seed": seed}, "made here, free to use", notes)
    return snapshot_of(synthetic_history(seed), f"synthetic-{seed}", origin)


def snapshot_of(history: History, id: str, origin: Origin, *, currency: str = "USD") -> Snapshot:
    """Convert a store to a snapshot, that is, to long tables."""
    macro, later = history.macro, history.restated
    sizes = [series.values.size for series in macro]
    ends = [np.full(series.values.size, _NEVER) if series.until is None else series.until for series in macro]

    attributes = {"series": "id", "unit": "unit", "title": "title", "stale_days": "stale_days"}
    series = table_of("macro", {
        "ref_period": np.concatenate([np.empty(0, "datetime64[D]"), *(series.periods for series in macro)]),
        "value": np.concatenate([np.empty(0), *(series.values for series in macro)]),
        "realtime_start": _timestamps(np.concatenate([np.empty(0, np.int64), *(series.released for series in macro)])),
        "realtime_end": _timestamps(np.concatenate([np.empty(0, np.int64), *ends])),
        **{name: np.repeat(np.array([getattr(series, attribute) for series in macro], dtype=object), sizes)
           for name, attribute in attributes.items()},
    })  # fmt: skip
    # First versions of bars by day and instrument, then the restatements.
    row, column = np.nonzero(np.any([np.isfinite(bar) for bar in history.bars.values()], axis=0))
    rows, columns = np.concatenate([row, later.rows]), np.concatenate([column, later.columns])
    missing = np.full(later.rows.size, np.nan)
    whole = {
        name: np.concatenate([bar[row, column], later.values.get(name, missing)]) for name, bar in history.bars.items()
    }
    factor = whole.pop(FACTOR, np.ones(rows.size))
    values: dict[str, Any] = {}
    for name, array in whole.items():
        # Prices whose product with the factor is exactly the adjusted price, so that reading restores it.
        traded = array if name == "volume" else array / factor
        for step in () if name == "volume" else (np.nextafter(traded, np.inf), np.nextafter(traded, 0.0)):
            traded = np.where(traded * factor == array, traded, step)
        values[name] = traded
    unstated = [at for at, listing in enumerate(history.listings) if listing.id in history.unstated]
    ids = pa.array([listing.id for listing in history.listings], _TEXT)
    values |= {
        "instrument": pa.DictionaryArray.from_arrays(pa.array(columns.astype(np.int32)), ids),
        "event_date": history.days.astype("datetime64[D]")[rows],
        "known_at": _timestamps(np.concatenate([history.known_at[row, column], later.known_at])),
        "adj_factor": np.where(np.isin(columns, unstated) & (factor == 1.0), np.nan, factor),
        "source": history.source, "snapshot": id,
    }  # fmt: skip
    listed: dict[str, list[tuple[object, ...]]] = {
        "instruments": [tuple(listing.as_row(currency).values()) for listing in history.listings],
        "news": [  # an item is named by a digest of its time and text
            (
                sha256_text(f"{item.published_at.isoformat()} {item.source} {item.text}")[:16],
                *(item.published_at, list(item.instruments), item.text, item.source),
            )
            for item in history.news
        ],
        "fundamentals": [
            (one.instrument, one.period, one.field, None if np.isnan(one.value) else one.value, one.unit, one.filed_at)
            for one in history.fundamentals.filings
        ],
        "actions": [
            (one.instrument, one.ex_date, datetime.fromtimestamp(moment, UTC), float(one.split), float(one.dividend))
            for moment, one in history.actions
        ],
    }
    tables = {"bars": table_of("bars", values), "macro": series}
    for name, lines in listed.items():
        schema = SCHEMAS[name]
        records = [dict(zip(schema.names, line, strict=True)) for line in lines]
        tables[name] = pa.Table.from_pylist(records, schema=schema)
    return Snapshot(id, origin, tables)


def table_of(name: str, columns: Mapping[str, Any]) -> Any:
    """Make a table from columns, the first an array; NaN and absent columns become null, one text fills all rows."""
    rows = len(next(iter(columns.values())))

    def as_array(column: Any) -> Any:
        return pa.repeat(column, rows) if isinstance(column, str) else pa.array(column, from_pandas=True)

    arrays = [
        as_array(columns[spec.name]).cast(spec.type) if spec.name in columns else pa.nulls(rows, spec.type)
        for spec in SCHEMAS[name]
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMAS[name])


def with_texts(bars: Any, **texts: str) -> Any:
    """Return bars with one text in all rows of a column, such as the name of their snapshot."""
    for name, text in texts.items():
        place = SCHEMAS["bars"].get_field_index(name)
        bars = bars.set_column(place, SCHEMAS["bars"].field(place), pa.repeat(text, bars.num_rows))
    return bars


def _timestamps(seconds: np.ndarray) -> Any:
    """Convert seconds since 1970 to timestamps, missing for `_NEVER`."""
    open_ended = seconds == _NEVER
    micros = np.where(open_ended, 0, seconds) * 1_000_000
    return pa.array(micros, mask=open_ended).cast(pa.timestamp("us", tz="UTC"))


# A snapshot in a folder: one Parquet file per table and ``snapshot.json``, which has the digest of each.
#
# Files are written atomically, ``snapshot.json`` last, so a folder without it is empty or incomplete. Files are checked
# against it before they are read.


FORMAT: Final = 1
"""Version of the folder's layout. A folder of another version is refused, never converted in place."""

MANIFEST: Final = "snapshot.json"
_LARGEST_MANIFEST: Final = 1 << 20


@record
class FileEntry:
    """One file of a snapshot: sha256 of its bytes, library-independent sha256 of its rows, and number of rows."""

    sha256: str
    content: str
    rows: int


@record
class Manifest:
    """``snapshot.json``, the content of a folder. ``files`` has an entry for each table but empty `OPTIONAL` ones."""

    format: int
    id: str
    origin: Origin
    files: Mapping[str, FileEntry]

    @property
    def digest(self) -> str:
        """sha256 over id, origin and rows, equal for equal snapshots even if they were retrieved at different times."""
        origin = [self.origin.source, self.origin.query, self.origin.licence, self.origin.notes]
        return content_id([self.id, origin, {name: entry.content for name, entry in self.files.items()}])


def write_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write a snapshot into a folder, which is made if needed. Raises `InputError` if it has another snapshot."""
    files, entries = {}, {}
    for name, table in snapshot.tables.items():
        if name in OPTIONAL and not table.num_rows:
            continue
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        files[name] = sink.getvalue()
        digest = hashlib.sha256(files[name]).hexdigest()
        entries[name] = FileEntry(sha256=digest, content=content_digest(table), rows=table.num_rows)
    new = Manifest(format=FORMAT, id=snapshot.id, origin=snapshot.origin, files=entries)
    if (folder / MANIFEST).exists():
        there = read_manifest(folder)
        if there.digest != new.digest:
            detail = f"holds the snapshot {there.id!r} of {there.origin.source}"
            if there.id == new.id:
                detail = f"holds another snapshot that is also called {there.id!r}, with other rows or another origin"
            rule = f"a folder contains one snapshot; use a new folder for {new.id!r}"
            raise InputError(str(folder), [f"{detail}; {rule}"])
        if not any(_file_problem(folder, name, entry) for name, entry in there.files.items()):
            return
    for name, data in files.items():
        write_atomic(folder / f"{name}.parquet", data)
    text = json.dumps(json.loads(canonical_json(new)), indent=1, ensure_ascii=False)
    write_atomic(folder / MANIFEST, (text + "\n").encode())


def read_snapshot(folder: Path) -> Snapshot:
    """Read the snapshot of a folder and check its bytes, pages and columns. Raises `InputError` or `LedgerError`."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return Snapshot(manifest.id, manifest.origin, {name: read_table(folder, name, manifest) for name in manifest.files})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder, without checking the tables. Raises `InputError` or `LedgerError`."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(str(folder), ["contains no market snapshot; make one with: assaymark data synth --out FOLDER"])
    try:
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise LedgerError(f"{path} is damaged: it is larger than {_LARGEST_MANIFEST} bytes")
        text = path.read_bytes()
        version = json.loads(text).get("format")
        if version != FORMAT:
            raise LedgerError(f"{path} has format {version!r}; this version of assaymark reads format {FORMAT}")
        manifest = parse(Manifest, text, source=str(path))
    except OSError as exc:
        raise LedgerError(f"cannot read {path}: {exc.strerror or exc}") from None
    except (ValueError, AttributeError, RecursionError, InputError) as exc:
        raise LedgerError(f"{path} is damaged ({exc}); fetch the snapshot again into a new folder") from None
    if not set(SCHEMAS) - OPTIONAL <= set(manifest.files) <= set(SCHEMAS):
        names = f"{', '.join(SCHEMAS)} (got {', '.join(sorted(manifest.files))})"
        raise LedgerError(f"{path} is damaged: it must name the tables {names}")
    return manifest


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raise `LedgerError` unless every file of a snapshot matches its digest."""
    wrong = [damage for name, entry in manifest.files.items() if (damage := _file_problem(folder, name, entry))]
    if wrong:
        again = "fetch the snapshot again: the same one puts back what is damaged"
        raise LedgerError(f"{folder}: {'; '.join(wrong)}; {again}")


def read_table(folder: Path, name: str, manifest: Manifest) -> Any:
    """Read one table of a snapshot and verify its page checksums. Call `check_files` before."""
    path = folder / f"{name}.parquet"
    try:
        # Not read_table, which reads through datasets and imports pandas if it is installed.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows != manifest.files[name].rows:
                raise LedgerError(f"{path} has {file.metadata.num_rows} rows, not {manifest.files[name].rows}")
            return file.read().cast(SCHEMAS[name])
    except (OSError, ValueError, pa.ArrowException) as exc:
        raise LedgerError(f"{path} is damaged: {exc}") from None


def content_digest(table: Any) -> str:
    """Compute the sha256 of the rows of a table, independent of the library version that wrote the file."""
    whole = hashlib.sha256(canonical_json([[field.name, str(field.type)] for field in table.schema]).encode())
    for column in table.columns:
        _hash_column(whole, column.combine_chunks())
    return whole.hexdigest()


def _hash_column(whole: Any, column: Any) -> None:
    """Add the values and the missing mask of one column to a hash."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    whole.update(len(column).to_bytes(8, "little"))
    whole.update(np.packbits(column.is_null().to_numpy(zero_copy_only=False)).tobytes())
    if pa.types.is_list(column.type):
        whole.update(pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).tobytes())
        _hash_column(whole, pc.list_flatten(column))
    elif pa.types.is_string(column.type):
        coded = column.fill_null("").dictionary_encode()
        whole.update(coded.indices.to_numpy(zero_copy_only=False).tobytes())
        whole.update(canonical_json(coded.dictionary.to_pylist()).encode("utf-8", "surrogatepass"))
    elif pa.types.is_floating(column.type):
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        whole.update(np.where(np.isnan(values), np.nan, values).tobytes())
    else:
        bits = pa.int32() if column.type.bit_width == 32 else pa.int64()
        whole.update(column.cast(bits).fill_null(0).to_numpy(zero_copy_only=False).tobytes())


def _file_problem(folder: Path, name: str, entry: FileEntry) -> str:
    """Return the problem with a file, or an empty text."""
    path = folder / f"{name}.parquet"
    try:
        with path.open("rb") as handle:
            actual = hashlib.file_digest(handle, "sha256").hexdigest()
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as exc:
        return f"{path.name} cannot be read ({exc.strerror or exc})"
    if actual == entry.sha256:
        return ""
    return f"{path.name} is damaged or cut off: its sha256 is {actual[:12]}..., not {entry.sha256[:12]}..."


# Cache: the wide tables of a store as memory-mapped files, made from the Parquet files, which remain the record.
#
# ``cache/index.json`` names the snapshot they were made from and the sha256 of each file. If it or a file does not
# match, the cache is rebuilt; if it cannot be written, the store works without it.


VERSION: Final = 2
"""Version of the cache's layout; part of its key."""

_INDEX: Final = "index.json"


def cached_bars(folder: Path, key: str) -> WideBars | None:
    """Return the cached bars of the snapshot with this digest, memory-mapped and read-only, or None to rebuild them."""
    place = folder / "cache"
    try:
        index = json.loads((place / _INDEX).read_bytes())
        if index["version"] != VERSION or index["key"] != key:
            return None
        parts = {}
        for name, digest in index["files"].items():
            with (place / f"{name}.npy").open("rb") as handle:
                if hashlib.file_digest(handle, "sha256").hexdigest() != digest:
                    return None
            # A plain array view: slicing a memmap object costs more than reading the slice.
            parts[name] = np.asarray(np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False))
        values = {name.removeprefix("later-bar-"): bar for name, bar in parts.items() if name.startswith("later-bar-")}
        bars = {name.removeprefix("bar-"): bar for name, bar in parts.items() if name.startswith("bar-")}
        restated = Restated(parts["later-row"], parts["later-column"], parts["later-known_at"], values)
        days = parts["days"].astype("datetime64[D]")
        return WideBars(days, bars, parts["known_at"], parts["unstated"], restated)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def cache_bars(folder: Path, key: str, bars: WideBars) -> None:
    """Write the cache of a snapshot, or do nothing if the folder cannot be written."""
    place, later = folder / "cache", bars.restated
    parts = {"days": bars.days.astype(np.int64), "known_at": bars.known_at, "unstated": bars.unstated}
    parts |= {f"bar-{name}": bar for name, bar in bars.bars.items()}
    parts |= {"later-row": later.rows, "later-column": later.columns, "later-known_at": later.known_at}
    parts |= {f"later-bar-{name}": bar for name, bar in later.values.items()}
    with suppress(LedgerError):
        files = {}
        for name, array in parts.items():
            sink = io.BytesIO()
            np.save(sink, np.ascontiguousarray(array), allow_pickle=False)
            files[name] = hashlib.sha256(sink.getbuffer()).hexdigest()
            write_atomic(place / f"{name}.npy", sink.getvalue())
        index = {"version": VERSION, "key": key, "files": files}
        # Last, so that files of two snapshots are never read as one cache.
        write_atomic(place / _INDEX, (json.dumps(index, indent=1) + "\n").encode())
