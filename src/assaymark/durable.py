"""Files that a reader sees whole or not at all, also after a power cut."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from assaymark.errors import LedgerError


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file so that a reader sees the old bytes or the new ones, never a part: temp, fsync, rename.

    A file that holds these bytes is left alone, so that what is finished can be read where nothing can be written.

    Raises
    ------
    LedgerError
        The file system refused (no room, no permission); the old file is untouched.
    """
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
