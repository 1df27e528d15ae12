"""Runs of batches that are killed at any point: the next run resumes, and no call of a batch is billed twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from batch_house import House
from batched_run import ASKED

from assaymark.engine import Ledger

KEYS = [spec.key for spec in ASKED]
BUSY = {key for key in KEYS if key < "4"}
"""These fail in their first batch."""
POINTS = [
    "before begin", "after begin", "before submit", "after submit", "before submitted", "after submitted", "polling",
    "reading", "before end", "after end",
]  # fmt: skip


@pytest.fixture(scope="module")
def forker():
    command = [sys.executable, str(Path(__file__).with_name("batched_run.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


class Study:
    """A ledger, its provider, and runs that die."""

    def __init__(self, folder: Path, forker, labels: bool = True) -> None:
        self.ledger, self.folder, self.labels, self.forker = folder / "ledger.db", folder / "house", labels, forker
        self.folder.mkdir()

    def run(self, point: str = "never", passes: int = 0) -> int:
        line = [str(self.ledger), str(self.folder), self.labels, point, passes]
        self.forker.stdin.write(json.dumps(line) + "\n")
        self.forker.stdin.flush()
        return int(self.forker.stdout.readline())

    def answered(self) -> set[str]:
        with Ledger.open(self.ledger) as ledger:
            replies = dict(ledger.replies(KEYS))
            ledger.verify()
        assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
        return set(replies)

    def bills(self):
        return House(self.folder).bills()


@pytest.fixture
def study(tmp_path, forker):
    return Study(tmp_path, forker)


BILLS = {key: 2 if key in BUSY else 1 for key in KEYS}


def test_nothing_that_kills_a_run_makes_a_call_be_paid_twice(study):
    """Every point, early and late, one after the other on one study; each run goes on where the last was killed."""
    safe: set[str] = set()
    killed = 0
    for passes in (0, 1):
        for point in POINTS:
            status = study.run(point, passes)
            assert status in (0, -signal.SIGKILL), point
            killed += status != 0
            answered = study.answered()
            assert safe <= answered, point
            safe = answered
    assert killed >= 10
    assert study.run() == 0
    assert (study.answered(), study.bills()) == (set(KEYS), BILLS)
    with Ledger.open(study.ledger) as ledger:
        assert ledger.orphaned() == []
        assert ledger.batches.under_way() == []


@pytest.mark.parametrize("point", ["after begin", "after submit", "after submitted", "reading"])
def test_a_run_that_is_killed_twice_at_one_point_ends_like_any_other(study, point):
    assert study.run(point, 0) == -signal.SIGKILL
    study.run("looking for it", 0)
    study.run(point, 0)
    assert study.run() == 0
    assert (study.answered(), study.bills()) == (set(KEYS), BILLS)


@pytest.mark.parametrize("point", ["before submit", "after submit"])
def test_where_no_label_is_kept_the_bound_holds(tmp_path, forker, point):
    study = Study(tmp_path, forker, labels=False)
    assert study.run(point, 0) == -signal.SIGKILL
    assert study.run() == 0
    assert study.answered() == set(KEYS)
    assert study.bills() == BILLS, "what had arrived is taken for ours"
    with Ledger.open(study.ledger) as ledger:
        assert len(ledger.orphaned()) == (5 if point == "before submit" else 0), "what may have been paid is on record"
