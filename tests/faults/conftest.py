"""Faults: a few of each kind in every run of the tests, and all of them with ``--long-faults``, which notes what it saw.

The notes of a long run are in ``results.json`` beside this file; ``docs/generate.py faults`` makes a page of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

RESULTS = Path(__file__).with_name("results.json")


@pytest.fixture(scope="session")
def long(pytestconfig) -> bool:
    """Whether the faults are to be made in full."""
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
