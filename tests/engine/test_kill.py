"""Whatever kills a run: nothing acknowledged is lost, and only what was under way is paid again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from engine_calls import calls

from assaymark.engine import Ledger

CALLS, BOUND = 400, 8
KEYS = [spec.key for spec in calls(CALLS)]
SCRIPT = Path(__file__).with_name("billed_run.py")


class Study:
    """A ledger and the bills of the provider beside it."""

    def __init__(self, folder: Path) -> None:
        self.ledger, self.bills = folder / "ledger.db", folder / "bills"
        self.bills.touch()

    def billed(self) -> list[str]:
        return [line for line in self.bills.read_text().split("\n") if line]

    def answered(self) -> set[str]:
        with Ledger.open(self.ledger) as ledger:
            replies = dict(ledger.replies(KEYS))
        assert all(reply.text.startswith(f"reply to {key}") for key, reply in replies.items())
        return set(replies)

    def start(self, point: str = "none", survived: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPT), str(self.ledger), str(self.bills), str(CALLS), point, str(survived)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def signal_after(self, bills: int, number: signal.Signals) -> tuple[int, str]:
        """Start a run and send it a signal when it has sent so many bills; its status and what it printed."""
        until = len(self.billed()) + bills
        with self.start() as process:
            while len(self.billed()) < until and process.poll() is None:
                time.sleep(0.0005)
            process.send_signal(number)
            printed, _ = process.communicate(timeout=30)
        return process.returncode, printed

    def finish(self) -> list[int]:
        """A run that nothing disturbs; the figures of its summary."""
        with self.start() as process:
            printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return json.loads(printed)


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def kill_somewhere(study: Study, where: str | int) -> None:
    if isinstance(where, int):
        status, _ = study.signal_after(where, signal.SIGKILL)
    else:
        point, survived = where.split(":")
        with study.start(point, int(survived)) as process:
            process.communicate(timeout=30)
        status = process.returncode
    assert status == -signal.SIGKILL


def test_after_any_kill_nothing_is_lost_and_little_is_paid_twice(study):
    rng = random.Random(11)
    points = ["before-plan:0", "before-commit:0", "after-commit:0", "before-commit:9", "after-commit:6"]
    kills: list[str | int] = [*points, *(rng.randrange(1, 60) for _ in range(3))]
    rng.shuffle(kills)
    safe: set[str] = set()
    for where in kills:
        bills_before = len(study.billed())
        kill_somewhere(study, where)
        assert not safe & set(study.billed()[bills_before:]), "a committed call was paid again"
        answered = study.answered()
        assert safe <= answered, "a committed reply was lost"
        assert answered <= set(study.billed())
        safe = answered
    bills_before = len(study.billed())
    already, made, _, _, bound = study.finish()
    assert not safe & set(study.billed()[bills_before:])
    assert (already, already + made, bound) == (len(safe), CALLS, BOUND)
    bills = Counter(study.billed())
    assert set(bills) == set(KEYS) == study.answered()
    assert sum(bills.values()) - CALLS <= BOUND * len(kills)
    with Ledger.open(study.ledger) as ledger:
        orphaned = Counter(attempt.key for attempt in ledger.orphaned())
        assert max(orphaned.values()) >= 1
        assert all(count - 1 <= orphaned[key] for key, count in bills.items()), "paid twice and not on record"
        assert ledger.attempt_counts(KEYS) == {key: 1 + orphaned[key] for key in KEYS}


def test_sigterm_pays_nothing_twice(study):
    for bills in (5, 40):
        status, printed = study.signal_after(bills, signal.SIGTERM)
        already, made, interrupted, orphaned, _ = json.loads(printed)
        assert (status, interrupted, orphaned) == (0, True, 0)
        assert 0 < already + made < CALLS
        assert len(study.billed()) == already + made
    study.finish()
    assert Counter(study.billed()) == dict.fromkeys(KEYS, 1)
