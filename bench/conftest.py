"""Collects the measurements of all benches; the session prints the table and writes it for the documentation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Before numpy is loaded by any bench, as the command line does: ours and the peers calculate in one thread each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

Note = Callable[[str, str, str, str], None]
RESULTS = Path(__file__).with_name("results.json")


@pytest.fixture(scope="session")
def note() -> Iterator[Note]:
    """``note(what, against, measured, wanted)``: one row of the table, written down also where it misses its aim."""
    rows: list[dict[str, str]] = []

    def add(what: str, against: str, measured: str, wanted: str) -> None:
        rows.append({"what": what, "against": against, "measured": measured, "wanted": wanted})
        print(f"\n{what} | {against} | {measured} | wanted {wanted}")

    yield add
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
