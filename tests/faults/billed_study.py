"""A ledger, and a provider that writes down every bill beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from billed_run import LEASE_S
from engine_calls import calls

from assaymark.engine import Ledger

_LINE = 74  # bytes of a bill: key, process, end


def say(server: subprocess.Popen[str], job: object) -> int:
    """Give a job to the process that does them in forks; its answer."""
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


class Study:
    """A ledger, the bills of the provider beside it, and a process that runs it in forks (``billed_run.py``)."""

    def __init__(self, folder: Path, ledger: str, n: int, server: subprocess.Popen[str]) -> None:
        self.ledger, self.bills, self.told = ledger, folder / "bills", folder / "told"
        self.n, self.keys, self.server = n, [spec.key for spec in calls(n)], server
        self.kind = "PostgreSQL" if "://" in ledger else "SQLite"
        self.bills.touch()

    def billed(self) -> list[str]:
        return [line.partition(" ")[0] for line in self.bills.read_text().split("\n")[:-1]]

    def billed_by(self, process: int) -> int:
        """Return the number of bills that one process got."""
        return self.bills.read_text().count(f" {process:08d}\n")

    def answered(self) -> set[str]:
        with Ledger.open(self.ledger) as ledger:
            replies = dict(ledger.replies(self.keys))
        assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
        return set(replies)

    def start(
        self, point: str = "none", survived: int = 0, shift: float = 0.0, slow: float = 1.0, worker: bool = False,
        lease_s: float = LEASE_S,
    ) -> int:  # fmt: skip
        """Start a run; the number of its process."""
        files = {name: str(getattr(self, name)) for name in ("ledger", "bills", "told")}
        manner = {
            "point": point, "survived": survived, "shift": shift, "slow": slow, "worker": worker, "lease_s": lease_s,
        }  # fmt: skip
        return say(self.server, {**files, "n": self.n, **manner})

    def wait(self, process: int) -> int:
        return say(self.server, {"wait": process})

    def signal_after(self, bills: int, number: signal.Signals) -> int:
        """Start a run and send it a signal when it has sent so many bills; its status."""
        until = self.bills.stat().st_size + _LINE * bills
        process, deadline = self.start(), time.monotonic() + 20
        while self.bills.stat().st_size < until and time.monotonic() < deadline:
            time.sleep(0.0005)
        os.kill(process, number)
        return self.wait(process)

    def summary(self) -> dict[str, int]:
        return json.loads(self.told.read_text())
