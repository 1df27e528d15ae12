"""A snapshot in a folder: one Parquet file a table and ``snapshot.json``, which names the bytes of each.

Files are written whole or not at all, ``snapshot.json`` last, so a folder without it holds nothing yet. What is read
is checked against it first.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from assaymark.durable import write_atomic
from assaymark.errors import InputError, LedgerError
from assaymark.market.snapshot import OPTIONAL, SCHEMAS, Origin, Snapshot
from assaymark.records import canonical_json, content_id, parse, record

FORMAT: Final = 1
"""Version of the folder's layout. A folder of another version is refused, never converted in place."""

MANIFEST: Final = "snapshot.json"
_LARGEST_MANIFEST: Final = 1 << 20


@record
class FileEntry:
    """One file of a snapshot: sha256 of its bytes, of its rows whatever library wrote them, and how many rows."""

    sha256: str
    content: str
    rows: int


@record
class Manifest:
    """``snapshot.json``: what the folder holds. ``files`` has an entry for each table but empty `OPTIONAL` ones."""

    format: int
    id: str
    origin: Origin
    files: Mapping[str, FileEntry]

    @property
    def digest(self) -> str:
        """sha256 over id, origin and rows: two snapshots are the same where this is, whenever each was asked for."""
        origin = [self.origin.source, self.origin.query, self.origin.licence, self.origin.notes]
        return content_id([self.id, origin, {name: entry.content for name, entry in self.files.items()}])


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A snapshot as it will lie in a folder."""

    manifest: Manifest
    files: Mapping[str, bytes]


def write_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write a snapshot into a folder, which is made if it is not there.

    A folder holds one snapshot. The same one again changes nothing, except that a file which was lost or damaged
    since is written anew; another one is refused.

    Raises
    ------
    InputError
        The folder holds another snapshot.
    LedgerError
        What the folder holds cannot be read, or the file system refuses.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from tempfile import TemporaryDirectory
    >>> origin = Origin(source="nobody", retrieved_at=datetime(2026, 1, 1, tzinfo=UTC))
    >>> with TemporaryDirectory() as place:
    ...     write_snapshot(Path(place), Snapshot("empty", origin))
    ...     read_snapshot(Path(place)).id
    'empty'
    """
    encoded = _encode(snapshot)
    if (folder / MANIFEST).exists():
        there = read_manifest(folder)
        if there.digest != encoded.manifest.digest:
            raise InputError(str(folder), [_other(there, encoded.manifest)])
        if not any(_damage(folder, name, entry) for name, entry in there.files.items()):
            return
    for name, data in encoded.files.items():
        write_atomic(_file(folder, name), data)
    write_atomic(folder / MANIFEST, _text(encoded.manifest))


def read_snapshot(folder: Path) -> Snapshot:
    """The snapshot of a folder, after its bytes, pages and columns were checked.

    Raises
    ------
    InputError
        The folder holds no snapshot.
    LedgerError
        A file is missing, damaged or cut off; all of them are named.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return Snapshot(manifest.id, manifest.origin, {name: read_table(folder, name, manifest) for name in manifest.files})


def read_manifest(folder: Path) -> Manifest:
    """What a folder says it holds. The tables are not looked at.

    Raises
    ------
    InputError
        There is no snapshot.
    LedgerError
        ``snapshot.json`` is damaged or of another version.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(str(folder), ["holds no market snapshot; make one with: assaymark data synth --out FOLDER"])
    try:
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise LedgerError(f"{path} is damaged: it is larger than {_LARGEST_MANIFEST} bytes")
        text = path.read_bytes()
        version = json.loads(text).get("format")
        if version != FORMAT:
            raise LedgerError(f"{path} has format {version!r}; this version of assaymark reads format {FORMAT}")
        found = parse(Manifest, text, source=str(path))
    except OSError as exc:
        raise LedgerError(f"cannot read {path}: {exc.strerror or exc}") from None
    except (ValueError, AttributeError, RecursionError, InputError) as exc:
        raise LedgerError(f"{path} is damaged ({exc}); fetch the snapshot again into a new folder") from None
    if not set(SCHEMAS) - OPTIONAL <= set(found.files) <= set(SCHEMAS):
        names = f"{', '.join(SCHEMAS)} (got {', '.join(sorted(found.files))})"
        raise LedgerError(f"{path} is damaged: it must name the tables {names}")
    return found


def check_files(folder: Path, manifest: Manifest) -> None:
    """Compare every file of a snapshot with its digest.

    Raises
    ------
    LedgerError
        Files are missing or damaged; each is named.
    """
    wrong = [what for name, entry in manifest.files.items() if (what := _damage(folder, name, entry))]
    if wrong:
        again = "fetch the snapshot again: the same one puts back what is damaged"
        raise LedgerError(f"{folder}: {'; '.join(wrong)}; {again}")


def read_table(folder: Path, name: str, manifest: Manifest) -> Any:
    """One table of a snapshot, its page checksums verified. Call `check_files` before.

    Raises
    ------
    LedgerError
        It cannot be read, or has other columns or rows than it should.
    """
    path = _file(folder, name)
    try:
        # Not read_table: it reads through datasets, which bring pandas in where there is one.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if file.metadata.num_rows != manifest.files[name].rows:
                raise LedgerError(f"{path} has {file.metadata.num_rows} rows, not {manifest.files[name].rows}")
            return file.read().cast(SCHEMAS[name])
    except (OSError, ValueError, pa.ArrowException) as exc:
        raise LedgerError(f"{path} is damaged: {exc}") from None


def content_digest(table: Any) -> str:
    """sha256 of the rows of a table, the same whatever version of a library wrote their bytes."""
    whole = hashlib.sha256(canonical_json([[field.name, str(field.type)] for field in table.schema]).encode())
    for column in table.columns:
        _hash_column(whole, column.combine_chunks())
    return whole.hexdigest()


def _hash_column(whole: Any, column: Any) -> None:
    """Add the values of one column and where they are missing."""
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


def _encode(snapshot: Snapshot) -> _Encoded:
    """The bytes of every file."""
    files, entries = {}, {}
    for name, table in snapshot.tables.items():
        if name in OPTIONAL and not table.num_rows:
            continue
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        files[name] = sink.getvalue()
        digest = hashlib.sha256(files[name]).hexdigest()
        entries[name] = FileEntry(sha256=digest, content=content_digest(table), rows=table.num_rows)
    return _Encoded(Manifest(format=FORMAT, id=snapshot.id, origin=snapshot.origin, files=entries), files)


def _text(manifest: Manifest) -> bytes:
    """The manifest as a person can read it."""
    return (json.dumps(json.loads(canonical_json(manifest)), indent=1, ensure_ascii=False) + "\n").encode()


def _other(there: Manifest, new: Manifest) -> str:
    """Why a snapshot is not written over the one that is there."""
    if there.id != new.id:
        what = f"holds the snapshot {there.id!r} of {there.origin.source}"
    else:
        what = f"holds another snapshot that is also called {there.id!r}, with other rows or another origin"
    return f"{what}; a folder holds one snapshot and none is mixed into another: give a new folder for {new.id!r}"


def _damage(folder: Path, name: str, entry: FileEntry) -> str:
    """What is wrong with a file, or nothing."""
    path = _file(folder, name)
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


def _file(folder: Path, name: str) -> Path:
    """Where a table lies."""
    return folder / f"{name}.parquet"
