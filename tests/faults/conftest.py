"""Faults: a few of each kind in every run of the tests, and all of them with ``--long-faults``.

The notes of a long run are in ``results.json`` beside this file; ``docs/generate.py faults`` makes a page of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from billed_study import Study

RESULTS = Path(__file__).with_name("results.json")
RUNS = Path(__file__).with_name("billed_run.py")
ENGINE = Path(__file__).parents[1] / "engine"


@pytest.fixture(scope="session")
def long(pytestconfig) -> bool:
    """True if the faults are made in full."""
    return bool(pytestconfig.getoption("--long-faults", default=False))


@pytest.fixture(scope="session")
def note(long):
    """``note(fault, made, found)``: one row of the page; written down by a long run only."""
    rows: list[dict[str, str]] = []

    def add(fault: str, made: str, found: str) -> None:
        rows.append({"fault": fault, "made": made, "found": found})

    yield add
    if long and rows:
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
        new = {row["fault"] for row in rows}
        rows = sorted([*rows, *(row for row in kept if row["fault"] not in new)], key=lambda row: row["fault"])
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


@pytest.fixture(scope="session")
def forks():
    """A process that does jobs in forks."""
    paths = os.pathsep.join([str(ENGINE), *filter(None, [os.environ.get("PYTHONPATH")])])
    made = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(RUNS)], env={**os.environ, "PYTHONPATH": paths}, **made) as server:
        yield server
        server.stdin.close()


@pytest.fixture(params=["file", "database"])
def study(request, tmp_path, forks, long):
    """A ledger of each kind with nothing in it."""
    where = str(tmp_path / "ledger.db") if request.param == "file" else request.getfixturevalue("database")
    return Study(tmp_path, where, 4000 if long else 300, forks)


@pytest.fixture
def shared_study(tmp_path, database, forks, long):
    """A ledger that several runs can work on."""
    return Study(tmp_path, database, 4000 if long else 300, forks)
