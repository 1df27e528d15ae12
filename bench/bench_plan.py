"""Large plans: a million calls written down, and a run of a hundred thousand taken up again half-way.

Every measurement is a process of its own, so that its peak memory is its own; the start of Python and its imports are
left out. The making of the calls is in it: a million of them take two seconds.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Note = Callable[[str, str, str, str], None]
HERE = Path(__file__).parent
PLANNED, PLAN_S, PLAN_MB = 1_000_000, 20.0, 500.0
RESUMED, RESUME_S = 100_000, 2.0
TURNS = 3


def python(program: str, *arguments: object, ends: int = 0) -> list[float]:
    """The numbers that a program beside this one prints."""
    command = [sys.executable, str(HERE / program), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == ends
    return [float(word) for word in done.stdout.split()]


def test_a_million_calls(tmp_path: Path, note: Note) -> None:
    seconds, megabytes = python("plan_calls.py", PLANNED, tmp_path / "ledger.db")
    note(f"planning {PLANNED:,} calls", "wall clock", f"{seconds:.1f} s", f"< {PLAN_S:.0f} s")
    note(f"planning {PLANNED:,} calls", "resident memory", f"{megabytes:.0f} MB", f"< {PLAN_MB:.0f} MB")
    assert seconds < PLAN_S
    assert megabytes < PLAN_MB


def test_taking_up_a_run(tmp_path: Path, note: Note) -> None:
    where = tmp_path / "ledger.db"
    python("resume_run.py", "half", RESUMED, where)
    # Each of them is killed at its first call, so that the next one takes up a run that somebody was killed in.
    found = min(python("resume_run.py", "rest", RESUMED, where, ends=-signal.SIGKILL)[0] for _ in range(TURNS))
    what = f"taking up a killed run of {RESUMED:,} calls, half of them answered, to its first call"
    note(what, "wall clock", f"{found:.2f} s", f"< {RESUME_S:.0f} s")
    assert found < RESUME_S
