"""Content-addressed bytes: packed small, checked whenever they are read, in a file of their own when large."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import zstandard

from assaymark.encoding import sync_folder
from assaymark.errors import LedgerError

Codec = Literal["raw", "zstd"]

INLINE_BYTES = 1 << 20
"""Packed objects up to this size live in the ledger's table, larger ones in a file beside it."""

_WORTH_PACKING = 256  # below this the zstd frame costs about what it saves
_LEVEL = 3


@dataclass(frozen=True, slots=True)
class Packed:
    """An object as it is stored: ``size`` counts the bytes before packing, which ``sha256`` is the digest of."""

    sha256: str
    codec: Codec
    size: int
    data: bytes


def pack(data: bytes) -> Packed:
    """``data`` with its digest, compressed where that saves room."""
    digest = hashlib.sha256(data).hexdigest()
    if len(data) >= _WORTH_PACKING:
        packed = _ZSTD.compressor.compress(data)
        if len(packed) < len(data):
            return Packed(digest, "zstd", len(data), packed)
    return Packed(digest, "raw", len(data), data)


def unpack(sha256: str, codec: str, size: int, data: bytes) -> bytes:
    """The bytes that were packed."""
    if codec not in ("raw", "zstd"):
        raise LedgerError(f"object {sha256}: unknown codec {codec!r} (known: raw, zstd)")
    if not isinstance(data, bytes):
        raise _damaged(sha256, f"it is stored as {type(data).__name__}")
    plain = _decompressed(sha256, size, data) if codec == "zstd" else data
    found = hashlib.sha256(plain).hexdigest()
    if found != sha256 or len(plain) != size:
        raise _damaged(sha256, f"it holds {len(plain)} bytes with the sha256 {found} where {size} were stored")
    return plain


def text_bytes(text: str) -> bytes:
    """``text`` in UTF-8. Lone surrogates, which models do send, survive the round trip through `bytes_text`."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(data: bytes) -> str:
    """The text that `text_bytes` turned into ``data``."""
    return data.decode("utf-8", "surrogatepass")


class ObjectFiles:
    """The folder of objects too large for the table. A file is complete and synced before any row names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, packed: Iterable[Packed]) -> None:
        """Put each object under its digest: temporary file, fsync, rename, fsync of the folder."""
        items = list(packed)
        if items and not self.folder.exists():
            self.folder.mkdir(exist_ok=True)
            sync_folder(self.folder.parent)
        for item in items:
            self._write(item)
        if items:
            sync_folder(self.folder)

    def read(self, sha256: str) -> bytes:
        """The packed bytes of one object."""
        try:
            return self._path(sha256).read_bytes()
        except OSError as exc:
            raise _damaged(sha256, f"its file {self._path(sha256)} cannot be read ({exc.strerror})") from exc

    def _path(self, sha256: str) -> Path:
        return self.folder / sha256

    def _write(self, item: Packed) -> None:
        handle, name = tempfile.mkstemp(dir=self.folder, prefix="writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(item.data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path(item.sha256))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


class _Zstd(threading.local):
    """One compressor and decompressor per thread: making them costs more than packing a reply."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTD = _Zstd()


def _decompressed(sha256: str, size: int, data: bytes) -> bytes:
    try:
        # A damaged frame header may announce any size, and the decompressor would reserve it.
        announced = zstandard.frame_content_size(data)
        if announced != size:
            raise _damaged(sha256, f"its frame announces {announced} bytes where {size} were stored")
        return _ZSTD.decompressor.decompress(data)
    except zstandard.ZstdError as exc:
        raise _damaged(sha256, f"it does not unpack ({exc})") from exc


def _damaged(sha256: str, how: str) -> LedgerError:
    return LedgerError(f"object {sha256} is damaged: {how}; restore the ledger from a copy")
