"""A whole study with its ledger in a database, killed again and again: it ends in the files of one that was left alone.

The same for a ledger in a file is in ``workflow/test_flow.py``, in every run of the tests.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_records import OWN

from assaymark.cli import main

TABLES = ("judgments", "anchor", "probe", "evidence", "verdicts")


def outcome(folder: Path) -> dict[str, bytes]:
    """The files that no clock enters: neither the seconds of an agent nor those of a judge are in them."""
    names = ["verdicts.json", *(f"tables/{name}.parquet" for name in TABLES)]
    names += [str(path.relative_to(folder)) for path in sorted((folder / "certificates").iterdir())]
    return {name: (folder / name).read_bytes() for name in names}


def test_a_study_that_is_killed_ends_where_another_does(tmp_path, request, long, note):
    if not long:
        pytest.skip("takes a minute: --long-faults")
    database = request.getfixturevalue("database")  # not before: a server is not started to be skipped
    undisturbed, killed, rng, kills = tmp_path / "undisturbed", tmp_path / "killed", random.Random(2), 0
    assert main(["run", str(OWN), "--out", str(undisturbed)]) == 0
    command = ["run", str(OWN), "--out", str(killed), "--ledger", database]
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-m", "assaymark", *command],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # fmt: skip
            deadline = time.monotonic() + rng.uniform(0.8, 3.0)
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            process.kill()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 2
    assert main(command) == 0
    assert outcome(killed) == outcome(undisturbed)
    note(
        "kill -9 of a whole study, ledger in PostgreSQL", f"{kills} kills at random times",
        "verdicts, certificates, grades and evidence are byte for byte those of a run that was left alone",
    )  # fmt: skip
