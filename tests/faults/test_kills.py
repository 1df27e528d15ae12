"""Whatever kills a run: nothing acknowledged is lost, and only what was under way is paid again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from billed_run import BOUND
from engine_calls import calls

from assaymark.engine import Ledger

SCRIPT = Path(__file__).with_name("billed_run.py")
ENGINE = Path(__file__).parents[1] / "engine"
NAMED = ("before-plan:0", "before-commit:0", "after-commit:0", "before-commit:9", "after-commit:6")


class Study:
    """A ledger, the bills of the provider beside it, and a process that runs it in forks."""

    def __init__(self, folder: Path, ledger: str, n: int, server: subprocess.Popen[str]) -> None:
        self.ledger, self.bills, self.told = ledger, folder / "bills", folder / "told"
        self.n, self.keys, self.server = n, [spec.key for spec in calls(n)], server
        self.bills.touch()

    def billed(self) -> list[str]:
        return self.bills.read_text().split("\n")[:-1]

    def answered(self) -> set[str]:
        with Ledger.open(self.ledger) as ledger:
            replies = dict(ledger.replies(self.keys))
        assert all(reply.text == f"reply to {key}" for key, reply in replies.items())
        return set(replies)

    def say(self, line: str) -> int:
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def start(self, point: str = "none", survived: int = 0) -> int:
        files = {name: str(getattr(self, name)) for name in ("ledger", "bills", "told")}
        return self.say(json.dumps({**files, "n": self.n, "point": point, "survived": survived}))

    def wait(self) -> int:
        return self.say("wait")

    def signal_after(self, bills: int, number: signal.Signals) -> int:
        """Start a run and send it a signal when it has sent so many bills; its status."""
        until = self.bills.stat().st_size + 65 * bills
        process, deadline = self.start(), time.monotonic() + 20
        while self.bills.stat().st_size < until and time.monotonic() < deadline:
            time.sleep(0.0005)
        os.kill(process, number)
        return self.wait()

    def summary(self) -> dict[str, int]:
        return json.loads(self.told.read_text())


@pytest.fixture(scope="module")
def forks():
    """A process that does jobs in forks."""
    paths = os.pathsep.join([str(ENGINE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(SCRIPT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": paths}) as server:  # fmt: skip
        yield server
        server.stdin.close()


@pytest.fixture(params=["file", "database"])
def study(request, tmp_path, forks, long):
    where = str(tmp_path / "ledger.db") if request.param == "file" else request.getfixturevalue("database")
    return Study(tmp_path, where, 4000 if long else 300, forks)


def kill_somewhere(study: Study, where: str | int) -> None:
    if isinstance(where, int):
        status = study.signal_after(where, signal.SIGKILL)
    else:
        point, survived = where.split(":")
        study.start(point, int(survived))
        status = study.wait()
    assert status == -signal.SIGKILL


def kills_of(study: Study, long: bool) -> list[str | int]:
    """Where to kill, in a fixed disorder."""
    rng = random.Random(11)
    named = [*NAMED, "after-claim:0"] if "://" in study.ledger else [*NAMED]
    kills: list[str | int] = [*named, rng.randrange(1, 40), rng.randrange(1, 40)]
    if long:
        kills = [*named * 6, *(rng.randrange(1, 60) for _ in range(100 - 6 * len(named)))]
    rng.shuffle(kills)
    return kills


def test_after_any_kill_nothing_is_lost_and_little_is_paid_twice(study, long, note):
    kills, safe = kills_of(study, long), set[str]()
    for where in kills:
        bills_before = len(study.billed())
        kill_somewhere(study, where)
        assert not safe & set(study.billed()[bills_before:]), "a committed call was paid again"
        answered = study.answered()
        assert safe <= answered, "a committed reply was lost"
        assert answered <= set(study.billed())
        safe = answered
    bills_before = len(study.billed())
    study.start()
    assert study.wait() == 0
    summary = study.summary()
    assert not safe & set(study.billed()[bills_before:])
    found = (summary["already"], summary["already"] + summary["made"], summary["in_flight_bound"])
    assert found == (len(safe), study.n, BOUND)
    bills = Counter(study.billed())
    again = sum(bills.values()) - study.n
    assert set(bills) == set(study.keys) == study.answered()
    assert again <= BOUND * len(kills)
    check_attempts(study, bills)
    kind = "PostgreSQL" if "://" in study.ledger else "SQLite"
    note(
        f"kill -9, ledger in {kind}",
        f"{len(kills)} kills at named and random points of a run of {study.n:,} calls",
        f"0 replies lost, 0 calls with two replies, 0 committed calls paid again; {again} of those under way paid "
        f"twice (at most {BOUND} a kill)",
    )


def check_attempts(study: Study, bills: Counter[str]) -> None:
    """Every bill has its attempt on record; what was under way at a kill is on record as lost."""
    with Ledger.open(study.ledger) as ledger:
        orphaned = Counter(attempt.key for attempt in ledger.orphaned())
        assert max(orphaned.values()) >= 1
        assert all(count - 1 <= orphaned[key] for key, count in bills.items()), "paid twice and not on record"
        assert ledger.attempt_counts(study.keys) == {key: 1 + orphaned[key] for key in study.keys}
        assert ledger.verify() > 4 * study.n


def test_a_stop_request_pays_nothing_twice(study, long, note):
    stops = [random.Random(3).randrange(1, 60) for _ in range(20)] if long else [5, 40]
    for bills in stops:
        assert study.signal_after(bills, signal.SIGTERM) == 0
        summary = study.summary()
        assert (summary["interrupted"], summary["orphaned"]) == (True, 0)
        assert 0 < summary["already"] + summary["made"] < study.n
        assert len(study.billed()) == summary["already"] + summary["made"]
    study.start()
    assert study.wait() == 0
    assert Counter(study.billed()) == dict.fromkeys(study.keys, 1)
    kind = "PostgreSQL" if "://" in study.ledger else "SQLite"
    note(f"SIGTERM, ledger in {kind}", f"{len(stops)} stop requests", "0 calls paid twice, 0 lost")
