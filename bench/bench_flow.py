"""Whole runs of the command line: wall clock on this machine, and the peak memory of their processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


# Asked from a process of its own: a child inherits the high-water mark of whoever forks it, and this one has others.
WATCHED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
"""


def run(*arguments: str | Path) -> tuple[float, float]:
    """Seconds of wall clock, and the largest resident set in MB of any process of the command."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "assaymark", *map(str, arguments)]
    watched = subprocess.run([sys.executable, "-c", WATCHED, *command], check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - started, float(watched.stdout)


@pytest.fixture
def records() -> Path:
    named = os.environ.get("ASSAYMARK_SHARED")
    folder = (Path(named) if named else ROOT.parent / "shared") / "data" / "capitalbench"
    if not folder.is_dir():
        pytest.skip(f"needs the CapitalBench records: {folder} is not there")
    return folder


def test_demo(tmp_path: Path, note: Callable[..., None]) -> None:
    seconds, peak = run("demo", "--out", tmp_path / "demo")
    note(
        "assaymark demo, from nothing to its page", "wall clock, start of Python included", f"{seconds:.1f} s", "< 10 s"
    )
    note("assaymark demo, largest process", "resident memory", f"{peak:.0f} MB", "none set")
    assert seconds < 10


def test_capitalbench(tmp_path: Path, records: Path, note: Callable[..., None]) -> None:
    imported, first = run("import", "capitalbench", records, "--out", tmp_path / "run")
    ran, second = run("run", ROOT / "studies" / "capitalbench.toml", "--out", tmp_path / "run")
    peak = max(first, second)
    note("CapitalBench: import of 719 decisions", "wall clock", f"{imported:.1f} s", "none set")
    note("CapitalBench: run of the whole protocol, to its pages", "wall clock", f"{ran:.1f} s", "< 20 s")
    note("CapitalBench: both", "wall clock", f"{imported + ran:.1f} s", "< 20 s")
    note("CapitalBench: largest process", "resident memory", f"{peak:.0f} MB", "< 500 MB")
    assert ran < 20
    assert peak < 500


def test_valueblind(tmp_path: Path, note: Callable[..., None]) -> None:
    seconds, peak = run("run", ROOT / "studies" / "valueblind.toml", "--out", tmp_path / "run")
    what = "valueblind: 1,100 trajectories, 5,500 judge calls, datasheets, from nothing to its pages"
    note(what, "wall clock, start of Python included", f"{seconds:.1f} s", "< 30 s")
    note("valueblind: largest process", "resident memory", f"{peak:.0f} MB", "< 1,024 MB")
    assert seconds < 30
    assert peak < 1024


def test_a_run_of_reference_calls(tmp_path: Path, note: Callable[..., None]) -> None:
    """The same study as far as its judgments: the market, the decisions, the calls, and every number looked up."""
    run("lock", ROOT / "studies" / "valueblind.toml", "--out", tmp_path / "run")
    seconds, _ = run("judge", tmp_path / "run")
    what = "valueblind as far as its 5,500 judge calls, the decisions and the ledger of numbers included"
    note(what, "wall clock, start of Python included", f"{seconds:.1f} s", "< 15 s")
    assert seconds < 15
