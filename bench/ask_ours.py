"""Calls of `make_calls` through `run_calls`: ``python ask_ours.py CALLS CONCURRENCY`` prints its seconds."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from assaymark.engine import CallSpec, Ledger, run_calls
from make_calls import Instant, one_judge

JUDGE = "reference/judge"


def seconds(calls: list[CallSpec], concurrency: int) -> float:
    """Seconds of one run, with a ledger in a file that is new."""
    with tempfile.TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        started = time.perf_counter()
        done = run_calls(ledger, calls, {JUDGE: Instant()}, concurrency=concurrency)
        taken = time.perf_counter() - started
    assert done.made == len(calls)
    return taken


if __name__ == "__main__":
    n, concurrency = map(int, sys.argv[1:])
    calls = one_judge(n, JUDGE)
    seconds(one_judge(20, JUDGE), concurrency)
    print(seconds(calls, concurrency))
