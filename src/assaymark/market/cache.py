"""The wide tables of a store as memory-mapped files beside it: made from the Parquet files, and never the record.

``cache/index.json`` names the snapshot they were made from and the sha256 of each file. Where it does not fit, or a
file does not, the cache is not used and made again; where it cannot be written, the store works without it.
"""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from assaymark.durable import write_atomic
from assaymark.errors import LedgerError
from assaymark.market.restated import Restated
from assaymark.market.wide import WideBars

VERSION: Final = 2
"""Version of the cache's layout; part of its key."""

_INDEX: Final = "index.json"


def cached_bars(folder: Path, key: str) -> WideBars | None:
    """The bars that were kept for the snapshot of this digest, memory-mapped and read-only; None: make them again."""
    place = folder / "cache"
    try:
        index = json.loads((place / _INDEX).read_bytes())
        if index["version"] != VERSION or index["key"] != key:
            return None
        arrays = {name: _mapped(place / f"{name}.npy", digest) for name, digest in index["files"].items()}
        return _assembled(arrays)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def keep_bars(folder: Path, key: str, bars: WideBars) -> None:
    """Write the cache of a snapshot; nothing happens where the folder cannot be written."""
    place = folder / "cache"
    with suppress(LedgerError):
        files = {}
        for name, array in _parts(bars).items():
            sink = io.BytesIO()
            np.save(sink, np.ascontiguousarray(array), allow_pickle=False)
            files[name] = hashlib.sha256(sink.getbuffer()).hexdigest()
            write_atomic(place / f"{name}.npy", sink.getvalue())
        index = {"version": VERSION, "key": key, "files": files}
        # Last, so that files of two snapshots are never taken for one cache.
        write_atomic(place / _INDEX, (json.dumps(index, indent=1) + "\n").encode())


def _mapped(path: Path, digest: str) -> np.ndarray:
    """One array, mapped, after its bytes were compared with their digest."""
    with path.open("rb") as handle:
        if hashlib.file_digest(handle, "sha256").hexdigest() != digest:
            raise ValueError(path.name)
    # A plain view of the map: slicing a memmap object costs more than reading the slice.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _parts(bars: WideBars) -> dict[str, np.ndarray]:
    """Every array under the name of its file."""
    later = bars.restated
    found = {"days": bars.days.astype(np.int64), "known_at": bars.known_at, "unstated": bars.unstated}
    found |= {f"bar-{name}": one for name, one in bars.bars.items()}
    found |= {"later-row": later.rows, "later-column": later.columns, "later-known_at": later.known_at}
    return found | {f"later-bar-{name}": one for name, one in later.values.items()}


def _assembled(parts: dict[str, np.ndarray]) -> WideBars:
    """The bars from their arrays."""
    values = {name.removeprefix("later-bar-"): one for name, one in parts.items() if name.startswith("later-bar-")}
    bars = {name.removeprefix("bar-"): one for name, one in parts.items() if name.startswith("bar-")}
    restated = Restated(parts["later-row"], parts["later-column"], parts["later-known_at"], values)
    return WideBars(parts["days"].astype("datetime64[D]"), bars, parts["known_at"], parts["unstated"], restated)
