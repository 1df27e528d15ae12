"""Against Inspect AI's `eval`: the same prompts to the same judge function, in one process on either side.

Each side is a process of its own, in turns. Both are timed from the finished list of calls to the end of the run, with
64 calls under way at once; imports and a first small run are left out. Ours is `run_calls`: the plan, each attempt and
each reply are on the disk before the next call of a worker is sent. Inspect writes one log, and beside it the buffer
that its viewer reads; it does more for each sample than we do (events, a transcript, limits, hooks), and does not sync
every reply to the disk. Nothing is scored on either side. Where a model takes seconds, neither is what one waits for.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Note = Callable[[str, str, str, str], None]
CALLS, CONCURRENCY, TURNS, RATIO = 500, 64, 3, 20.0
HERE = Path(__file__).parent


def seconds(program: str, folder: Path) -> float:
    """Run a program in another process, and return the seconds that it prints for all calls."""
    home = {"XDG_DATA_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}  # where Inspect leaves its traces
    command = [sys.executable, str(HERE / program), str(CALLS), str(CONCURRENCY)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | home, cwd=folder)
    return float(done.stdout.split()[-1])


def test_against_eval(tmp_path: Path, note: Note) -> None:
    what = f"a judge's calls in one process, {CONCURRENCY} under way, written down"
    against, wanted = "Inspect AI, eval", f">= {RATIO:.0f} x"
    if importlib.util.find_spec("inspect_ai") is None:
        note(what, against, "not measured: not installed", wanted)
        pytest.skip("inspect-ai is not installed (the extra [inspect])")
    # In turns, so that a busy minute of the machine falls on both.
    turns = [(seconds("ask_ours.py", tmp_path), seconds("ask_inspect.py", tmp_path)) for _ in range(TURNS)]
    ours, theirs = (min(side) / CALLS for side in zip(*turns, strict=True))
    found = theirs / ours
    note(what, against, f"{found:,.0f} x ({ours * 1e3:.2f} ms against {theirs * 1e3:.1f} ms a call)", wanted)
    assert found >= RATIO
