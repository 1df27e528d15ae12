"""The embedded market: seconds and memory of a whole one, and microseconds of a 60-day slice.

Run ``just bench``: prints the numbers, and fails where one is over its promise.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from assaymark.market import (
    fill_gaps,
    open_history,
    pairwise_correlation,
    simple_returns,
    synthetic_history,
    synthetic_market,
    synthetic_snapshot,
    write_snapshot,
)

Note = Callable[[str, str, str, str], None]
NOW = datetime(2024, 3, 1, 22, tzinfo=UTC)

_PEAK = """
def peak():
    # Not ru_maxrss: a process inherits that of whoever forked it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
"""

_WHOLE = (
    _PEAK
    + """
import time
from assaymark.market import synthetic_history
before = peak()
started = time.perf_counter()
history = synthetic_history(0)
print(time.perf_counter() - started, peak(), before)
"""
)


def best(function: Callable[[], object], repeats: int, number: int = 1) -> float:
    """Seconds of one call: the best of ``repeats`` means over ``number`` calls."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(number):
            function()
        found.append((time.perf_counter() - started) / number)
    return min(found)


def test_a_whole_market(note: Note) -> None:
    ran = subprocess.run([sys.executable, "-c", _WHOLE], capture_output=True, text=True, check=True)
    seconds, peak, before = map(float, ran.stdout.split())
    note(
        "synthetic market with macro and news, 183 instruments, 2015-2025",
        "a fresh process",
        f"{seconds:.2f} s, {peak:.0f} MB at the peak ({before:.0f} MB of it imports)",
        "< 2 s, < 300 MB",
    )
    assert seconds < 2
    assert peak < 300


def test_a_slice(note: Note) -> None:
    history = synthetic_history(0)
    seconds = best(lambda: history.as_of(NOW).prices(60), 5, 200)
    note("view at a time and its 60-day slice of 183 closes", "itself", f"{seconds * 1e6:,.0f} us", "< 1,000 us")
    assert seconds < 1e-3


def test_a_store_on_disk(note: Note, tmp_path: Path) -> None:
    write_snapshot(tmp_path, synthetic_snapshot(0))
    started = time.perf_counter()
    open_history(tmp_path)
    first = time.perf_counter() - started
    again = best(lambda: open_history(tmp_path), 3)
    note(
        "opening a store of 490,797 bars, every file checked",
        "the first opening, which makes the cache",
        f"{again * 1e3:,.0f} ms against {first * 1e3:,.0f} ms",
        "< 1,000 ms",
    )
    stored = open_history(tmp_path)
    np.testing.assert_array_equal(
        stored.as_of(NOW).prices(60).values, synthetic_history(0).as_of(NOW).prices(60).values
    )
    assert isinstance(stored.bars["close"].base, np.memmap)
    seconds = best(lambda: stored.as_of(NOW).prices(60), 5, 200)
    note("the same slice from the memory map of a store", "itself", f"{seconds * 1e6:,.0f} us", "< 1,000 us")
    assert again < 1
    assert seconds < 1e-3


def test_correlation(note: Note) -> None:
    returns = simple_returns(fill_gaps(synthetic_market(0).close))
    frame = pd.DataFrame(returns)
    np.testing.assert_allclose(pairwise_correlation(returns), frame.corr().to_numpy(), atol=1e-12)
    ours, theirs = best(lambda: pairwise_correlation(returns), 5), best(frame.corr, 3)
    note(
        "pairwise-complete correlation, 2,869 x 183",
        "pandas DataFrame.corr",
        f"{theirs / ours:,.0f} x ({ours * 1e3:,.0f} ms against {theirs * 1e3:,.0f} ms)",
        ">= 5 x",
    )
    assert theirs / ours >= 5
