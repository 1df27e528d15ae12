"""Half of a run, and its resumption: ``python resume_run.py half|rest CALLS LEDGER``.

``half`` answers every other call of a new ledger. ``rest`` runs all of them, prints the seconds to the first call that
reaches the model, and is killed there as by ``kill -9``. The clock starts after Python's imports: making the calls,
opening the ledger and all that `run_calls` does before it asks are in it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from assaymark.engine import CallSpec, End, Ledger, Reply, run_calls
from make_calls import JUDGES, judge_calls

GROUP_SIZE = 5000


class Deadly:
    """A model that kills the process at its first call."""

    def __init__(self, started: float) -> None:
        self._started = started

    async def complete(self, call: CallSpec) -> NoReturn:
        print(time.perf_counter() - self._started, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(call)


def half(where: Path, n: int) -> None:
    calls = list(judge_calls(n))
    keys = [call.key for call in calls][::2]
    with Ledger.open(where) as ledger:
        ledger.plan(calls)
        for start in range(0, len(keys), GROUP_SIZE):
            begun, _ = ledger.commit([(key, None) for key in keys[start : start + GROUP_SIZE]])
            ledger.commit(ends=[End(at, "replied", reply=Reply(text=f"to {at.key}", model="m")) for at in begun if at])


def rest(where: Path, n: int) -> None:
    model = Deadly(time.perf_counter())
    with Ledger.open(where) as ledger:
        run_calls(ledger, judge_calls(n), {f"reference/judge{judge}": model for judge in range(JUDGES)})


if __name__ == "__main__":
    what, n, where = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    half(where, n) if what == "half" else rest(where, n)
