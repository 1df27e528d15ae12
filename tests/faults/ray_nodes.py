"""Nodes of a Ray cluster on this machine, each a process with processes of its own, and the end of them."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil


class Nodes:
    """A head node and others. ``environment`` is what a process needs to be let in."""

    def __init__(self, folder: Path, temp: Path, paths: list[Path]) -> None:
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        self.environment = {
            "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token), "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
        }  # fmt: skip
        self._folder, self._temp = folder, temp
        self._started: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.address = f"127.0.0.1:{self._port}"

    def head(self) -> int:
        """Start the head node and wait until it is there. Returns its process."""
        return self._start("--head", f"--port={self._port}", f"--temp-dir={self._temp}", "--include-dashboard=false")

    def node(self, **environment: str) -> int:
        """Start another node and wait until it is there. Returns its process."""
        return self._start(f"--address={self.address}", **environment)

    def refused(self, **environment: str) -> str:
        """Start another node that is not let in. Returns what it says."""
        done = self._launch(f"--address={self.address}", **environment)
        done.wait(120)
        assert done.returncode != 0
        return self._log(done).read_text()

    def kill(self, pid: int) -> None:
        """SIGKILL a node: all of its processes, as when its machine loses power."""
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                os.kill(one.pid, signal.SIGKILL)
        for started in self._started:
            if started.pid == pid:
                started.wait(60)
        psutil.wait_procs(family, timeout=60)

    def stop(self) -> None:
        """End every node that was started here."""
        for started in reversed(self._started):
            if started.poll() is None:
                self.kill(started.pid)

    def _start(self, *options: str, **environment: str) -> int:
        started = self._launch(*options, **environment)
        log = self._log(started)
        until = time.monotonic() + 120
        while "Ray runtime started" not in log.read_text():
            assert started.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        return started.pid

    def _launch(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        ray = Path(sys.executable).with_name("ray")
        log = self._folder / f"{len(self._started)}.log"
        with log.open("wb") as file:
            started = subprocess.Popen(
                [str(ray), "start", *options, "--num-cpus=1", "--block"],
                env={**os.environ, **self.environment, **environment}, stdout=file, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._started.append(started)
        return started

    def _log(self, started: subprocess.Popen[bytes]) -> Path:
        return self._folder / f"{self._started.index(started)}.log"


def free_port() -> int:
    """A port that nobody listens at just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
