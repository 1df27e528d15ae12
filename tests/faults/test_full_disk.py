"""A disk with no room: one clear error, what was acknowledged is there, and the work goes on when there is room."""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine_calls import calls
from made_records import OWN

from assaymark.cli import main
from assaymark.engine import Ledger, Reply, run_calls
from assaymark.errors import LedgerError

NAME = "reference/echo"


class Mounted:
    """A file system of 8 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def full(self):
        yield

    def make_room(self) -> None:
        subprocess.run(["mount", "-o", "remount,size=256m", str(self.folder)], check=True)


class Limited(Mounted):
    """Where nothing may be mounted: no file of this process may grow beyond 3 MB."""

    @contextmanager
    def full(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    def make_room(self) -> None:
        """The limit is gone already."""


@pytest.fixture
def small(tmp_path):
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        yield Limited(tmp_path)
        return
    yield Mounted(tmp_path)
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


class Wordy:
    """Replies that nothing packs any smaller."""

    async def complete(self, call):
        rng = random.Random(call.key)
        return Reply(text=f"reply to {call.key}", model="wordy-1", raw=f'"{rng.randbytes(20_000).hex()}"')


def test_a_run_stops_plainly_keeps_what_it_acknowledged_and_goes_on(small, note):
    asked, told = calls(600), [(0, 0)]
    keys = [call.key for call in asked]
    with small.full(), Ledger.open(small.folder / "ledger.db") as ledger, \
            pytest.raises(LedgerError, match=r"the disk is full|disk I/O error|File too large"):  # fmt: skip
        run_calls(ledger, asked, {NAME: Wordy()}, concurrency=8, progress=lambda *now: told.append(now))
    acknowledged = told[-1][0]
    small.make_room()
    with Ledger.open(small.folder / "ledger.db") as ledger:
        kept = dict(ledger.replies(keys))
        assert 0 < acknowledged <= len(kept) < len(keys)
        summary = run_calls(ledger, asked, {NAME: Wordy()}, concurrency=8)
        assert (summary.already, summary.made) == (len(kept), len(keys) - len(kept))
        assert {reply.text for _, reply in ledger.replies(keys)} == {f"reply to {key}" for key in keys}
        assert ledger.verify() > 3 * len(keys)
    note(
        "disk full",
        f"a run of {len(keys)} calls on a disk of 8 MB",
        f"stopped with one error after {acknowledged} acknowledged replies; {len(kept)} recovered; "
        f"went on to {len(keys)}",
    )


def test_the_command_says_so_in_one_line_and_goes_on(small, capsys):
    """The demo's plan needs more than is left."""
    if isinstance(small, Limited):
        pytest.skip("needs a file system of its own: tmpfs cannot be mounted here")
    run, ballast = ["run", str(OWN), "--out", str(small.folder / "run")], small.folder / "ballast"
    ballast.write_bytes(b"x" * 7_000_000)
    assert main(run) == 1
    err = capsys.readouterr().err
    (line,) = (line for line in err.splitlines() if line.startswith("assaymark: "))
    assert re.search("No space left|disk is full", line)
    assert "Traceback" not in err
    ballast.unlink()
    small.make_room()
    assert main(run) == 0
