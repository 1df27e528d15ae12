"""Runs of batches in forks of one process that has imported everything once. Started by test_batch_kill.py.

Each line of input is a JSON list: ledger, folder of the provider, whether it keeps labels, a point to die at and how
often to pass it unharmed. Each answer is a line: the exit status of the fork."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from batch_house import House
from engine_calls import calls

from assaymark.engine import Ledger, batching, run_batches

ASKED = calls(12, model="house/one")


class Fate:
    """Dies at a named point, after passing it so many times."""

    def __init__(self, point: str, passes: int) -> None:
        self.point, self.passes = point, passes

    def at(self, point: str) -> None:
        if point == self.point:
            self.passes -= 1
            if self.passes < 0:
                os.kill(os.getpid(), signal.SIGKILL)


class MortalHouse(House):
    fate: Fate

    def submit(self, items, *, label):
        self.fate.at("before submit")
        remote = super().submit(items, label=label)
        self.fate.at("after submit")
        return remote

    def find(self, *known):
        self.fate.at("looking for it")
        return super().find(*known)

    def state(self, remote):
        self.fate.at("polling")
        return super().state(remote)

    def results(self, remote) -> Iterator:
        for result in super().results(remote):
            self.fate.at("reading")
            yield result


def mortal(fate: Fate, book: type) -> None:
    """Let the book of batches die around each of its writes."""
    for name in ("begin", "submitted", "end"):
        method = getattr(book, name)

        def dying(self, *args, _name=name, _method=method, **more):
            fate.at(f"before {_name}")
            found = _method(self, *args, **more)
            fate.at(f"after {_name}")
            return found

        setattr(book, name, dying)


def main(ledger: str, folder: str, labels: bool, point: str, passes: int) -> None:
    fate = Fate(point, passes)
    batching._ENDS_A_COMMIT = 2
    house = MortalHouse(
        Path(folder), keeps_labels=labels, verdict=lambda key, n: "busy" if n == 1 and key < "4" else None
    )
    house.fate = fate
    with Ledger.open(ledger) as opened:
        mortal(fate, type(opened.batches))
        run_batches(opened, ASKED, {"house": house.maker}, poll_s=0.001, settle_s=0.0, most_items=5)


def forked(line: str) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 99
    try:
        main(*json.loads(line))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(f"{forked(line)}\n")
        sys.stdout.flush()
