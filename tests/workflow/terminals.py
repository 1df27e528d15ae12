"""A command on a terminal of its own, where keys can be pressed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import psutil

CTRL_C = b"\x03"
SLOW = Path(__file__).with_name("slow_command.py")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATIENCE_S = 120.0


class Terminal:
    """One command on a terminal of 100 columns, as a ``with`` block; whatever it started is ended with it.

    Its models answer ``quick`` calls at once, and each of the others after ``slow_s`` seconds.
    """

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
        """What it has shown so far, without colours and movements."""
        return _STYLE.sub("", self._shown.decode(errors="replace"))

    def until(self, words: str) -> None:
        """Wait until it has shown these words."""
        while words not in self.shown:
            assert self._read(), f"{words!r} was not shown: {self.shown[-2000:]}"

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._keys, keys)

    def ended(self) -> int:
        """Its exit status, when it is over."""
        while self._read():
            pass
        return self.process.wait(max(0.0, self._until - time.monotonic()))

    def left(self, patience_s: float = 0.0) -> list[psutil.Process]:
        """Processes of it that are there, after so long at most: some hear of its end a moment later."""
        until = time.monotonic() + patience_s
        while (found := self._processes()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def _processes(self) -> list[psutil.Process]:
        found = []
        for one in psutil.process_iter():
            try:
                if os.getsid(one.pid) == self.process.pid and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue
        return found

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


def stop(terminal: Terminal, how: str) -> None:
    """Stop a command in one of the ways."""
    if how == "Ctrl-C":
        terminal.press(CTRL_C)
    else:
        terminal.process.send_signal(signal.SIGTERM)
