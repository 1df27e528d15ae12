"""The journal of a season: one line a day, each sealed with the digest of all before it.

A replay writes a line in a few milliseconds and syncs once a second, because what a kill takes away is made again
from the replies in the ledger, to the same bytes. What a kill leaves of a line is cut off when the journal is opened.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assaymark.durable import sync_folder
from assaymark.errors import LedgerError
from assaymark.records import canonical_json
from assaymark.workflow.folder import RunFolder

_SYNC_S: Final = 1.0
_START: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One day: its record, the JSON of what all agents were shown, and the seconds that the decisions took.

    The times are sealed by no digest of the chain, for they are measured: two replays have the same chain.
    """

    record: dict[str, Any]
    facts: str = "[]"
    instruments: str = "[]"
    series: str = "[]"
    times: dict[str, float | None] | None = None

    @property
    def day(self) -> str:
        """The day, as YYYY-MM-DD."""
        return str(self.record["day"])


class Journal:
    """The journal of a run folder. Open it with `Journal.open`, which lets only one work on it."""

    def __init__(self, path: Path, entries: list[Entry], digest: str, size: int) -> None:
        self.entries = entries
        self.digest = digest
        self._path = path
        self._file = path.open("ab")
        self._file.truncate(size)
        self._synced = time.monotonic()

    @classmethod
    @contextmanager
    def open(cls, folder: RunFolder) -> Iterator[Journal]:
        """The journal, held until the block ends.

        Raises
        ------
        LedgerError
            Another step of this season is at work, or the journal is damaged.
        """
        path = journal_path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        with not_stepping(folder):
            entries, digest, size = _read(path)
            journal = cls(path, entries, digest, size)
            try:
                yield journal
            finally:
                journal.close()

    def append(self, entry: Entry) -> None:
        """Write a day down."""
        body = "\t".join([canonical_json(entry.record), entry.facts, entry.instruments, entry.series])
        self.digest = _chained(self.digest, body)
        line = f"{self.digest}\t{body}\t{canonical_json(entry.times or {})}\n"
        try:
            self._file.write(line.encode("utf-8", "surrogatepass"))
            self._file.flush()
        except OSError as exc:
            raise LedgerError(f"cannot write {self._path}: {exc.strerror or exc}") from None
        self.entries.append(entry)
        if time.monotonic() - self._synced > _SYNC_S:
            self.sync()

    def sync(self) -> None:
        """Have everything on the disk."""
        os.fsync(self._file.fileno())
        sync_folder(self._path.parent)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and let go."""
        try:
            self._file.flush()
            self.sync()
        finally:
            self._file.close()


def journal_path(folder: RunFolder) -> Path:
    """Where the journal of a run folder lies."""
    return folder.path / "season" / "days.journal"


def read_journal(folder: RunFolder) -> tuple[list[Entry], str]:
    """The days that are done and the digest of them all, for who only looks.

    Raises
    ------
    LedgerError
        The journal is damaged.
    """
    entries, digest, _ = _read(journal_path(folder))
    return entries, digest


def _read(path: Path) -> tuple[list[Entry], str, int]:
    """The whole lines of a journal, the digest of the last, and how many bytes they are."""
    if not path.is_file():
        return [], _START, 0
    try:
        raw = path.read_bytes()
    except OSError as exc:
        raise LedgerError(f"cannot read {path}: {exc.strerror or exc}") from None
    entries: list[Entry] = []
    digest, size = _START, 0
    for number, line in enumerate(raw.split(b"\n")[:-1], start=1):
        try:
            parts = line.decode("utf-8", "surrogatepass").split("\t")
        except UnicodeDecodeError:
            parts = []
        body = "\t".join(parts[1:5])
        if len(parts) != 6 or parts[0] != _chained(digest, body):
            raise LedgerError(f"{path} is damaged at line {number}; restore it from a copy, or replay in a new folder")
        digest, size = parts[0], size + len(line) + 1
        entries.append(_entry(path, number, parts))
    return entries, digest, size


def _entry(path: Path, number: int, parts: list[str]) -> Entry:
    try:
        return Entry(json.loads(parts[1]), parts[2], parts[3], parts[4], json.loads(parts[5]))
    except json.JSONDecodeError as exc:
        raise LedgerError(f"{path} is damaged at line {number} ({exc.msg})") from None


def _chained(before: str, body: str) -> str:
    whole = hashlib.sha256(before.encode())
    whole.update(body.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def not_stepping(folder: RunFolder) -> AbstractContextManager[None]:
    """Hold the right to step, so that the tables stay as they are meanwhile.

    Raises
    ------
    LedgerError
        Another step of this season is at work.
    """
    return alone(journal_path(folder).with_suffix(".lock"), f"{folder.path}: another step of this season is at work")


@contextmanager
def alone(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock file. The operating system lets go of it when we die.

    Raises
    ------
    LedgerError
        Somebody else holds it: ``busy`` says what that one does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerError(f"{busy}; nothing was done, run this again later") from None
        yield
    finally:
        os.close(handle)
