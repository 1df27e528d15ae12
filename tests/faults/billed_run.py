"""Runs in processes that may be killed, of calls whose model sends a bill before it answers, and of batches.

Everything is imported once; each job, a line of JSON, is done in a fork, whose number is printed. ``{"wait": NUMBER}``
waits for one and prints its exit status. A job: ``ledger`` (path or URL) and a ``point`` to die at (``none``, or before
or after one of `POINTS`, as in ``after-commit``, with the number that are ``survived``). For calls also ``bills`` and
``told`` (files), ``n`` calls, by how many seconds the clock of its machine is wrong (``shift``), and whether it is a
``worker`` on what is planned and not a run; for batches the folder of their ``house``, and if it keeps ``labels``."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from batch_house import House
from engine_calls import calls

from assaymark.engine import Ledger, Reply, batching, run_batches, run_calls, run_worker
from assaymark.engine import ledger as store
from assaymark.engine.rate_limits import Leases

BOUND, LEASE_S = 8, 1.5
POINTS = {
    "plan": Ledger, "commit": Ledger, "claim": Leases,
    **dict.fromkeys(("begin", "submitted", "end"), store.BatchStore),
    "submit": House, "find": House, "state": House, "outcome": House,
}  # fmt: skip
"""The methods that a run can die at, with their classes."""

IN_BATCHES = calls(12, model="house/one")


class Billing:
    """Bills each call by its key and its process; the bill is out before the reply is."""

    def __init__(self, path, slow):
        self.bills = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.rng, self.slow = random.Random(os.getpid()), slow

    async def complete(self, call):
        os.write(self.bills, f"{call.key} {os.getpid():08d}\n".encode())
        await asyncio.sleep(self.slow * self.rng.uniform(0.001, 0.006))
        return Reply(text=f"reply to {call.key}", model="billing-1", raw=f'"{"!" * self.rng.randrange(3_000)}"')


def die_at(kind, name, when, survived):
    """Let a method of a class kill the process before or after its work, once so many calls of it are survived."""
    real, left = getattr(kind, name), [survived]

    def mortal(self, *args, **more):
        left[0] -= 1
        if when == "before" and left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(self, *args, **more)
        if when == "after" and left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(kind, name, mortal)


def move_clock(shift):
    real = time.time
    time.time = lambda: real() + shift


def work(*, point, survived, **job):
    when, _, name = point.partition("-")
    if name:
        die_at(POINTS[name], name, when, survived)
    (in_batches if "house" in job else directly)(**job)


def in_batches(*, ledger, house, labels):
    batching._ENDS_A_COMMIT = 2
    busy_once = House(Path(house), lambda key, n: "busy" if n == 1 and key < "4" else None, keeps_labels=labels)
    with Ledger.open(ledger) as opened:
        run_batches(opened, IN_BATCHES, {"house": busy_once.maker}, poll_s=0.001, settle_s=0.0, most_items=5)


def directly(*, ledger, bills, told, n, shift, slow, worker, lease_s):
    move_clock(shift)
    models = {"reference/echo": Billing(bills, slow)}
    manner = {"concurrency": BOUND, "backoff_s": 0.01, "lease_s": lease_s}
    with Ledger.open(ledger) as opened:
        summary = run_worker(opened, models, **manner) if worker else run_calls(opened, calls(n), models, **manner)
    figures = ("already", "made", "interrupted", "orphaned", "in_flight_bound")
    Path(told).write_text(json.dumps({name: getattr(summary, name) for name in figures}))


def forked(job):
    """Do a job in a fork; the number of its process."""
    child = os.fork()
    if not child:
        status = 99
        try:
            work(**job)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def say(number):
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for line in sys.stdin:
        job = json.loads(line)
        # Until somebody waits for it, nobody else takes the number of a process that is done.
        say(os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1]) if "wait" in job else forked(job))
