"""What the engine itself costs.

In-process path: plan, attempt, reply and commit of 5,500 calls to a model that answers at once. Ledger alone: durable
records, each a reply with the attempt that was begun for it, in groups of 64.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from assaymark.engine import End, Ledger, Reply, run_calls
from make_calls import Instant, judge_calls

CALLS, GROUP_SIZE = 5500, 64
BUDGET_MS, PLANNED = 0.25, 100_000


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of ``work``."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def path(folder: Path) -> tuple[float, float]:
    calls = list(judge_calls(CALLS))
    models = {call.model: Instant() for call in calls}
    with Ledger.open(folder / "path.db") as ledger:
        return timed(lambda: run_calls(ledger, calls, models))


def records(folder: Path) -> tuple[float, float]:
    calls = list(judge_calls(CALLS))
    keys = [call.key for call in calls]
    with Ledger.open(folder / "records.db") as ledger:
        ledger.plan(calls)

        def write() -> None:
            ends: list[End] = []
            for start in range(0, CALLS, GROUP_SIZE):
                begun = ledger.commit(keys[start : start + GROUP_SIZE], ends)
                ends = [End(a, "replied", reply=Reply(text=f'{{"score": "{a.key}"}}', model="m")) for a in begun]
            ledger.commit(ends=ends)

        return timed(write)


def planning(folder: Path, n: int) -> tuple[float, float]:
    with Ledger.open(folder / "plan.db") as ledger:
        return timed(lambda: ledger.plan(judge_calls(n)))


def test_in_process_path(tmp_path: Path, note: Callable[..., None]) -> None:
    cpu, wall = path(tmp_path)
    each = cpu / CALLS * 1e3
    what = f"one reference call through plan, attempt, reply and commit (of {CALLS:,}), judge excluded"
    note(what, "CPU time", f"{each:.3f} ms ({CALLS / wall:,.0f} calls/s)", f"<= {BUDGET_MS} ms")
    assert each <= BUDGET_MS


def test_ledger_alone(tmp_path: Path, note: Callable[..., None]) -> None:
    _, wall = records(tmp_path)
    note("durable records in the ledger, groups of 64", "wall clock", f"{CALLS / wall:,.0f} a second", "none set")


def test_planning(tmp_path: Path, note: Callable[..., None]) -> None:
    _, wall = planning(tmp_path, PLANNED)
    note(f"planning {PLANNED:,} calls", "wall clock", f"{wall:.1f} s", "none set")
