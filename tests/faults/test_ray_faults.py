"""Chunks on two nodes of Ray on this machine: one is killed in their midst, the head is, or nobody lets us in."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

import chunk_functions as functions
import psutil
import pytest
from agent_servers import free_port
from chunk_functions import made

from assaymark.engine import Ledger, map_chunks
from assaymark.errors import AssayError


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


pytest.importorskip("ray", reason="no Ray: pip install 'assaymark[ray]'")

ENGINE = Path(functions.__file__).parent


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """Nodes of which nothing is left behind."""
    temp = Path(tempfile.mkdtemp(prefix="ray-"))  # short: the names of its sockets have to fit
    made = Nodes(tmp_path, temp, [ENGINE])
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    yield made
    made.stop()
    assert [one for one in psutil.Process().children(recursive=True) if "ray" in one.name()] == []
    rmtree(temp, ignore_errors=True)


@pytest.fixture
def only_in_full(long):
    if not long:
        pytest.skip("half a minute of waiting; --long-faults makes it")


@pytest.fixture
def folder(tmp_path) -> Path:
    made = tmp_path / "attempts"
    made.mkdir()
    return made


def squares(n: int) -> list[bytes]:
    return [str(k**2).encode() for k in range(n)]


def test_a_node_that_is_killed(nodes, folder, tmp_path, long, note):
    """All results are right, whichever chunks the node had; each is computed again at most once for each kill."""
    kills, n, rng = (10, 12, random.Random(5)) if long else (1, 6, random.Random(5))
    again, seconds = 0, []
    nodes.head()
    for round_ in range(kills):
        victim = nodes.node()
        attempts = folder / str(round_)
        attempts.mkdir()
        with Ledger.open(tmp_path / f"{round_}.db") as ledger:
            timer = threading.Thread(target=kill_in_the_midst, args=(nodes, victim, attempts, rng.randrange(2, n - 2)))
            timer.start()
            started = time.monotonic()
            found = map_chunks(
                functions.slow, made(attempts, n, seconds=0.5), version="1", how="ray", address=nodes.address,
                deadline_s=60.0, ledger=ledger,
            )  # fmt: skip
            seconds.append(time.monotonic() - started)
            timer.join()
            assert found == squares(n)
            assert ledger.verify() == 2 * n
        counts = Counter(functions.called(attempts))
        assert set(counts) == {str(k) for k in range(n)}
        assert max(counts.values()) <= 2
        again += sum(counts.values()) - n
    note(
        "kill -9 of one of two Ray nodes",
        f"{kills} kills in the midst of {n} chunks of half a second",
        f"all results right and in the ledger; {again} chunks computed twice; "
        f"over within {max(seconds):.0f} s of a deadline of 60 s",
    )


def kill_in_the_midst(nodes: Nodes, victim: int, attempts: Path, after: int) -> None:
    while len(functions.called(attempts)) < after:
        time.sleep(0.02)
    nodes.kill(victim)


@pytest.mark.usefixtures("only_in_full")
def test_a_head_that_is_killed(nodes, folder, tmp_path, note):
    """The job ends with one error within its deadline, what was finished is kept, the rest is computed elsewhere."""
    head, stall_s = nodes.head(), 30.0
    timer = threading.Thread(target=kill_in_the_midst, args=(nodes, head, folder, 3))
    timer.start()
    started = time.monotonic()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        with pytest.raises(AssayError, match=r"head node is gone|within 30 s|given up after") as caught:
            map_chunks(
                functions.slow, made(folder, 40, seconds=0.5), version="1", how="ray", address=nodes.address,
                deadline_s=20.0, stall_s=stall_s, ledger=ledger,
            )  # fmt: skip
        seconds = time.monotonic() - started
        timer.join()
        assert "\n" not in str(caught.value)
        before = Counter(functions.called(folder))
        found = map_chunks(functions.slow, made(folder, 40, seconds=0.0), version="1", ledger=ledger)
    assert found == squares(40)
    counts = Counter(functions.called(folder))
    assert sum(before[key] == counts[key] for key in before) >= 2
    assert seconds < 60 + stall_s
    note(
        "kill -9 of the Ray head node", "1 kill in the midst of 40 chunks, 30 s without any chunk allowed",
        f"one error after {seconds:.0f} s; what was finished was kept, the rest computed by the next run",
    )  # fmt: skip


@pytest.mark.usefixtures("only_in_full")
def test_who_has_no_token_is_not_let_in_and_nobody_may_be_at_the_address(nodes, folder, tmp_path, monkeypatch, note):
    where = f"127.0.0.1:{free_port()}"
    with pytest.raises(AssayError, match=r"did not let us in|cannot be used|has ended"):
        map_chunks(functions.square, made(folder, 1), version="1", how="ray", address=where, stall_s=8.0)
    nodes.head()
    other = tmp_path / "other"
    other.write_text("0" * 64)
    assert "Authentication" in nodes.refused(RAY_AUTH_TOKEN_PATH=str(other))
    assert "Authentication" in nodes.refused(RAY_AUTH_MODE="disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(other))
    with pytest.raises(AssayError, match=r"Ray did not accept the connection within 8 s.*RAY_AUTH_TOKEN_PATH"):
        map_chunks(functions.square, made(folder, 1), version="1", how="ray", address=nodes.address, stall_s=8.0)
    who = "2 nodes and 1 run, without the token of the head node or with another"
    note("Ray without the token", who, "none let in; each ends with an error that says so")
