"""Plan calls in a new ledger: ``python plan_calls.py CALLS LEDGER`` prints the seconds and the peak memory in MB."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from assaymark.engine import Ledger
from make_calls import judge_calls


def peak_mb() -> float:
    """The largest resident memory of this process. Not ru_maxrss: a process inherits that of whoever forked it."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    n, where = int(sys.argv[1]), Path(sys.argv[2])
    started = time.perf_counter()
    with Ledger.open(where) as ledger:
        new = ledger.plan(judge_calls(n))
    seconds = time.perf_counter() - started
    assert new == n
    print(seconds, peak_mb())
