"""Commands that are stopped: what they say is kept is kept, and nothing of them is left."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_records import STUDY

from assaymark.engine import Ledger

CTRL_C = b"\x03"
SLOW = Path(__file__).with_name("slow_command.py")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATIENCE_S = 120.0


class Terminal:
    """One command on a terminal of 100 columns, as a ``with`` block; whatever it started is ended with it.
    Its models answer ``quick`` calls at once, and each of the others after ``slow_s`` seconds."""

    def __init__(self, *words: object, quick: int = 0, slow_s: float = 0.0) -> None:
        self._keys, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        command = [sys.executable, str(SLOW), str(quick), str(slow_s), *map(str, words)]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self._shown = b""
        self._until = time.monotonic() + _PATIENCE_S

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.left():
            one.kill()
        self.process.wait()
        os.close(self._keys)

    @property
    def shown(self) -> str:
        """The output so far, without colours and cursor movements."""
        return _STYLE.sub("", self._shown.decode(errors="replace"))

    def until(self, words: str) -> None:
        while words not in self.shown:
            assert self._read(), f"{words!r} was not shown: {self.shown[-2000:]}"

    def press(self, keys: bytes) -> None:
        os.write(self._keys, keys)

    def ended(self) -> int:
        while self._read():
            pass
        return self.process.wait(max(0.0, self._until - time.monotonic()))

    def left(self, patience_s: float = 0.0) -> list[psutil.Process]:
        """Processes of it that are there, after so long at most: some hear of its end a moment later."""
        until = time.monotonic() + patience_s
        while (found := list(filter(self._runs, psutil.process_iter()))) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def _runs(self, one: psutil.Process) -> bool:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            return os.getsid(one.pid) == self.process.pid and one.status() != psutil.STATUS_ZOMBIE
        return False

    def _read(self) -> bool:
        """Read some more; False when it shows nothing any more."""
        assert time.monotonic() < self._until, f"it takes too long: {self.shown[-2000:]}"
        ready, _, _ = select.select([self._keys], [], [], 0.1)
        try:
            more = os.read(self._keys, 65536) if ready else None
        except OSError:  # how a terminal says that nobody holds its other end
            return False
        self._shown += more or b""
        return more != b""


QUESTIONS = ("bench", "qa", "--model", "reference/portbench-steady", "--per-template", "2", "--out")
"""Asks 18 questions."""


@pytest.mark.usefixtures("few_questions")
@pytest.mark.parametrize("stop", [lambda one: one.press(CTRL_C), lambda one: one.process.terminate()])
def test_a_run_that_is_stopped_says_how_many_replies_are_kept_and_goes_on(tmp_path, ran, stop):
    run = tmp_path / "run"
    with Terminal(*QUESTIONS, run, quick=5, slow_s=1.5) as terminal:
        terminal.until(" of 18")  # on a terminal there is progress
        stop(terminal)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    told = re.search(r"assaymark: stopped: (\d+) of 18 calls are answered and kept in ", terminal.shown)
    assert told is not None, terminal.shown
    assert "no new calls are sent" in terminal.shown
    assert "Traceback" not in terminal.shown
    with Ledger.open(run / "ledger.db", create=False) as ledger:
        assert len(list(ledger.answered())) == int(told[1])
    assert f"in all 18 calls, {told[1]} answered already" in ran(*QUESTIONS, run, "--dry-run")


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    with Terminal(*QUESTIONS, tmp_path / "run", quick=5, slow_s=600) as terminal:
        terminal.until(" of 18")
        terminal.press(CTRL_C)
        terminal.until("no new calls are sent")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    assert re.search(r"stopped at questions \(\d+ of 18\): .*; run the same command to resume", terminal.shown)
    assert "Traceback" not in terminal.shown


def test_an_end_while_a_connection_is_closed_leaves_no_traceback(tmp_path, ran, caplog, monkeypatch):
    def close(_, connection: object) -> None:
        connection.close()
        raise KeyboardInterrupt

    monkeypatch.setattr("sqlalchemy.engine.default.DefaultDialect.do_close", close)
    assert ran(*QUESTIONS, tmp_path / "run", status=130).count("\n") == 1
    assert caplog.records == []


def test_processes_end_with_the_command_that_started_them(tmp_path):
    """Also while they are loaded: they never hear of it, so they leave no traceback on the terminal."""
    for part in range(60):
        rows = [(f"{part}-{n}-{agent}", agent, f"{part}-{n}", f"w{part}", judge, judge, float(1 + n % 5))
                for n in range(20) for agent in "ab" for judge in "xyz"]  # fmt: skip
        names = ("trajectory", "agent", "cycle", "cluster", "judge", "family", "score.one")
        columns = {name: pa.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        pq.write_table(pa.table(columns), tmp_path / f"part-{part:02}.parquet")
    with Terminal("measure", "--judgments", tmp_path, "--compute", "processes", "--workers", "2") as terminal:
        terminal.until("summing partitions")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.left(10) == []
    assert "nothing was written" in terminal.shown.splitlines()[-1]
    assert "Traceback" not in terminal.shown


def test_a_study_without_verdicts_has_a_page_of_how_far_it_is(imported, ran):
    """No name of an agent, no agreement and no difference is on it, and the command that it names finishes the run."""
    ran("lock", STUDY, "--out", imported)
    found = json.loads(ran("report", imported, "--json"))
    assert found["verdicts"] is None
    page = (imported / "report/index.html").read_text(encoding="utf-8")
    assert "Not decided yet" in page
    assert f"<code>assaymark run {imported}/plan.toml --out {imported}</code>" in page
    assert not re.search("κ|kappa|scores above|ranks first", page)
    ran("report", imported, "--language", "de")
    assert "Noch nicht entschieden" in (imported / "report/de/index.html").read_text(encoding="utf-8")
