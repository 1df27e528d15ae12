"""Runs of batches that are killed at any point: the next run resumes, and no call of a batch is billed twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from batch_house import House
from billed_run import IN_BATCHES
from billed_study import say

from assaymark.engine import Ledger

KEYS = [spec.key for spec in IN_BATCHES]
BUSY = {key for key in KEYS if key < "4"}
"""These fail in their first batch."""
POINTS = [
    "before-begin", "after-begin", "before-submit", "after-submit", "before-submitted", "after-submitted",
    "before-state", "before-outcome", "before-end", "after-end",
]  # fmt: skip


class Batches:
    """A ledger, its provider, and runs that die."""

    def __init__(self, folder: Path, forks, labels: bool = True) -> None:
        self.ledger, self.folder, self.labels, self.forks = folder / "ledger.db", folder / "house", labels, forks
        self.folder.mkdir()

    def run(self, point: str = "none", survived: int = 0) -> int:
        job = {"ledger": str(self.ledger), "house": str(self.folder), "labels": self.labels}
        return say(self.forks, {"wait": say(self.forks, {**job, "point": point, "survived": survived})})

    def answered(self) -> set[str]:
        with Ledger.open(self.ledger) as ledger:
            replies = dict(ledger.replies(KEYS))
            ledger.verify()
        assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
        return set(replies)

    def bills(self):
        return House(self.folder).bills()


@pytest.fixture
def study(tmp_path, forks):
    return Batches(tmp_path, forks)


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


@pytest.mark.parametrize("point", ["after-begin", "after-submit", "after-submitted", "before-outcome"])
def test_a_run_that_is_killed_twice_at_one_point_ends_like_any_other(study, point):
    assert study.run(point, 0) == -signal.SIGKILL
    study.run("before-find", 0)
    study.run(point, 0)
    assert study.run() == 0
    assert (study.answered(), study.bills()) == (set(KEYS), BILLS)


@pytest.mark.parametrize("point", ["before-submit", "after-submit"])
def test_where_no_label_is_kept_the_bound_holds(tmp_path, forks, point):
    study = Batches(tmp_path, forks, labels=False)
    assert study.run(point, 0) == -signal.SIGKILL
    assert study.run() == 0
    assert study.answered() == set(KEYS)
    assert study.bills() == BILLS, "what had arrived is taken for ours"
    with Ledger.open(study.ledger) as ledger:
        assert len(ledger.orphaned()) == (5 if point == "before-submit" else 0), "what may have been paid is on record"
