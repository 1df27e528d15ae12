"""Records and plain values to JSON and back: one form, the same bytes on every machine, strict on the way in."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from assaymark.errors import InputError, LedgerError
from assaymark.problems import problems_of

JSON = Any  # a value that json.dumps accepts; recursive aliases cost more than they tell here
T = TypeVar("T")


def to_json(value: Any) -> JSON:
    """``value`` as plain JSON types: records become objects, datetimes RFC 3339 in UTC, tuples lists."""
    if type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value)):
        return value  # as most details are
    return json.loads(canonical_json(value))


def canonical_json(value: Any) -> str:
    """``value`` as JSON with sorted keys and no spaces: the same bytes on every machine."""
    try:
        return _ENCODER.encode(value)
    except ValueError as exc:
        raise ValueError(f"no JSON form: {exc}") from None


_FIELDS: dict[type, tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]] | None] = {}


def _plain(value: Any) -> JSON:
    """What the encoder does not know itself, one level deep. The getter of a record takes all its fields at once."""
    kind = type(value)
    if kind not in _FIELDS:
        names = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
        getter = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
        _FIELDS[kind] = (names, getter) if dataclasses.is_dataclass(kind) else None
    if (fields := _FIELDS[kind]) is not None:
        names, values = fields
        return dict(zip(names, values(value), strict=True))
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def as_object(value: Any) -> dict[str, JSON] | None:
    """A record or mapping as the fields or entries that it has in JSON, themselves as they are; None for the rest."""
    if isinstance(value, dict):
        return value
    known = isinstance(value, Mapping) or dataclasses.is_dataclass(type(value))
    return _plain(value) if known else None


# The standard encoder walks everything in C and asks _plain only for records and times: four times as fast as walking
# a context of a thousand facts here. Records cannot be circular, so looking for circles is left out.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False, default=_plain
)


@lru_cache(maxsize=4096)
def _utc(moment: datetime) -> str:
    """A time in UTC. Cached, because all facts of a context share a few."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def content_id(value: Any) -> str:
    """sha256 of the canonical JSON of a record, as 64 hex digits. This is how contexts are named."""
    return sha256_text(canonical_json(value))


def sha256_text(text: str) -> str:
    """sha256 of a text in UTF-8. Lone surrogates, which UTF-8 cannot carry, are hashed by their escapes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def parse(kind: type[T], text: str | bytes, source: str = "record") -> T:
    """One record from JSON: types are strict, unknown keys are refused, and every problem is named at once."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    try:
        found: T = _ADAPTERS[kind].validate_json(text)
    except ValidationError as exc:
        raise InputError(source, problems_of(exc, kind)) from None
    return found


# Files that a reader sees whole or not at all, also after a power cut.


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees the old bytes or the new ones, never a part: temp, fsync, rename."""
    raw = data.encode() if isinstance(data, str) else data
    with suppress(OSError):
        if path.stat().st_size == len(raw) and path.read_bytes() == raw:
            return
    # Named by process, so that two that write one file do not write into each other's.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            handle.write(raw)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        with suppress(OSError):
            temporary.unlink()
        raise LedgerError(f"cannot write {path}: {exc.strerror or exc}") from None


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable; needed on POSIX, where a directory entry is a write of its own."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
