"""Partitions of one table of scores, summed here, in two processes, and on Ray: the same sums, and the time of each.

Here each partition is read by two threads, one partition after the other. Elsewhere two are read at once, each by one.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from assaymark.metrology import ScoreSums
from assaymark.workflow import Computing
from assaymark.workflow.score_files import folder_sums
from make_scores import AGENTS, DIMENSIONS, JUDGES, make_scores

Note = Callable[[str, str, str, str], None]
TRAJECTORIES, PARTS, WORKERS = 10_000_000, 8, 2
_CYCLE = len(AGENTS) * len(JUDGES)  # rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("many")
    one = made / "one.table"
    make_scores(one, TRAJECTORIES)
    rows = TRAJECTORIES * len(JUDGES) // PARTS // _CYCLE * _CYCLE
    table = pq.read_table(one)
    for k in range(PARTS):
        path = made / f"part={k:04}" / "scores.parquet"
        path.parent.mkdir()
        part = table.slice(k * rows, rows if k < PARTS - 1 else None)
        pq.write_table(part, path, compression="zstd", row_group_size=1_000_000)
    one.unlink()
    return made


def timed(folder: Path, computing: Computing, kept: Path | None = None) -> tuple[float, ScoreSums]:
    started = time.perf_counter()
    sums = folder_sums(folder, None, computing, kept, DIMENSIONS)
    return time.perf_counter() - started, sums


def test_partitions(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: Note) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    ways = [Computing("serial"), Computing("processes", WORKERS)]
    if importlib.util.find_spec("ray") is not None:
        ways.append(Computing("ray", WORKERS))
    # In turns, so that a busy minute of the machine falls on all of them.
    runs = [[timed(folder, way) for way in ways] for _ in range(3)]
    best = [min(run[k][0] for run in runs) for k in range(len(ways))]
    assert len({sums.digest for run in runs for _, sums in run}) == 1
    what = f"sums of {TRAJECTORIES:,} trajectories in {PARTS} partitions"
    note(what, "here, two threads", f"{best[0]:.1f} s", "none set")
    for way, seconds in zip(ways[1:], best[1:], strict=True):
        against = f"here; {WORKERS} {'processes' if way.how == 'processes' else 'workers of Ray'}, start included"
        note(what, against, f"{best[0] / seconds:.2f} x ({seconds:.1f} s)", "none set")
    timed(folder, ways[0], tmp_path)
    seconds, _ = timed(folder, ways[0], tmp_path)
    note(what, "here; all of them kept from a run before", f"{best[0] / seconds:.1f} x ({seconds:.2f} s)", "none set")
    assert seconds < best[0]
