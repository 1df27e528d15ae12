"""A run in a process of its own, whose model sends a bill before it answers. Started by test_kill.py, often killed.

Arguments: ledger, file of bills, number of calls, and a point to die at: ``none``, or ``before-commit``,
``after-commit`` or ``before-plan`` with the number of commits to survive. The last line printed is the summary.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys

from engine_calls import calls

from assaymark.engine import Ledger, Reply, run_calls


class Billing:
    """Bills each call by its key; the bill is out before the reply is."""

    def __init__(self, path):
        self.bills = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.rng = random.Random(os.getpid())

    async def complete(self, call):
        os.write(self.bills, f"{call.key}\n".encode())
        await asyncio.sleep(self.rng.uniform(0.001, 0.006))
        return Reply(text=f"reply to {call.key}" + "!" * self.rng.randrange(3_000), model="billing-1")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal(Ledger):
    """Dies at a named point."""

    point, survived = "none", 0

    def commit(self, begin=(), ends=()):
        Mortal.survived -= 1
        if self.point == "before-commit" and self.survived < 0:
            die()
        begun = super().commit(begin, ends)
        if self.point == "after-commit" and self.survived < 0:
            die()
        return begun

    def plan(self, asked):
        if self.point == "before-plan":
            die()
        return super().plan(asked)


def main(ledger, bills, n, point, survived):
    Mortal.point, Mortal.survived = point, int(survived)
    with Mortal.open(ledger) as opened:
        summary = run_calls(opened, calls(int(n)), {"reference/echo": Billing(bills)}, concurrency=8, backoff_s=0.01)
    figures = [summary.already, summary.made, summary.interrupted, summary.orphaned, summary.in_flight_bound]
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
