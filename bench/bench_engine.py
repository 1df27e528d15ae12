"""The overhead of the engine, in process, and the throughput of its ledger.

In-process path: plan, attempt, reply and commit of 5,500 calls to a model that answers at once. Ledger alone: durable
records, each a reply with the attempt that was begun for it, in groups of 64.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from assaymark.engine import End, Ledger, Reply, run_calls
from make_calls import JUDGES, Instant, judge_calls

CALLS, GROUP_SIZE = 5500, 64
BUDGET_MS, CALLS_A_S, RECORDS_A_S = 0.25, 2000, 5000
TURNS = 3  # the best counts: nobody else's work is measured


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of ``work``."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def path(where: Path) -> tuple[float, float]:
    calls = list(judge_calls(CALLS))
    models = {call.model: Instant() for call in calls}
    with Ledger.open(where) as ledger:
        return timed(lambda: run_calls(ledger, calls, models))


def records(where: Path) -> tuple[float, float]:
    calls = list(judge_calls(CALLS))
    keys = [call.key for call in calls]
    with Ledger.open(where) as ledger:
        ledger.plan(calls)

        def write() -> None:
            ends: list[End] = []
            for start in range(0, CALLS, GROUP_SIZE):
                begun, _ = ledger.commit([(key, None) for key in keys[start : start + GROUP_SIZE]], ends)
                ends = [End(a, "replied", reply=Reply(text=f'{{"score": "{a.key}"}}', model="m")) for a in begun if a]
            ledger.commit(ends=ends)

        return timed(write)


def test_in_process_path(tmp_path: Path, note: Callable[..., None]) -> None:
    turns = [path(tmp_path / f"path-{turn}.db") for turn in range(TURNS)]
    cpu, wall = (min(side) / CALLS for side in zip(*turns, strict=True))
    what = f"one reference call through plan, attempt, reply and commit (of {CALLS:,}), judge excluded"
    note(what, "CPU time", f"{cpu * 1e3:.3f} ms", f"<= {BUDGET_MS} ms")
    rate = f"{1 / wall:,.0f} a second"
    note(f"the same: durable calls, {JUDGES} judges at once", "wall clock", rate, f">= {CALLS_A_S:,}")
    assert cpu * 1e3 <= BUDGET_MS
    assert 1 / wall >= CALLS_A_S


def test_ledger_alone(tmp_path: Path, note: Callable[..., None]) -> None:
    rate = CALLS / min(records(tmp_path / f"records-{turn}.db")[1] for turn in range(TURNS))
    what = f"durable records in the ledger, groups of {GROUP_SIZE}"
    note(what, "wall clock", f"{rate:,.0f} a second", f">= {RECORDS_A_S:,}")
    assert rate >= RECORDS_A_S
