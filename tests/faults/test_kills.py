"""Whatever kills a run: nothing acknowledged is lost, and only what was under way is paid again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from billed_run import BOUND, LEASE_S
from billed_study import Study
from made_records import OWN

from assaymark.cli import main
from assaymark.engine import Ledger

NAMED = ("before-plan:0", "before-commit:0", "after-commit:0", "before-commit:9", "after-commit:6")
DAY = 86_400.0


def kills_of(study: Study, long: bool) -> list[str | int]:
    """Return the kill points in a fixed random order: named points, and numbers of bills."""
    rng = random.Random(11)
    named = [*NAMED, "after-claim:0"] if study.kind == "PostgreSQL" else [*NAMED]
    kills: list[str | int] = [*named, rng.randrange(1, 40), rng.randrange(1, 40)]
    if long:
        kills = [*named * 6, *(rng.randrange(1, 60) for _ in range(100 - 6 * len(named)))]
    rng.shuffle(kills)
    return kills


def test_after_any_kill_nothing_is_lost_and_little_is_paid_twice(study, long, note):
    kills, safe = kills_of(study, long), set[str]()
    for where in kills:
        before = len(study.billed())
        if isinstance(where, int):
            status = study.signal_after(where, signal.SIGKILL)
        else:
            point, survived = where.split(":")
            status = study.wait(study.start(point, int(survived)))
        assert status == -signal.SIGKILL
        assert not safe & set(study.billed()[before:]), "a committed call was paid again"
        answered = study.answered()
        assert safe <= answered, "a committed reply was lost"
        assert answered <= set(study.billed())
        safe = answered
    before = len(study.billed())
    assert study.wait(study.start()) == 0
    summary = study.summary()
    assert not safe & set(study.billed()[before:])
    found = (summary["already"], summary["already"] + summary["made"], summary["in_flight_bound"])
    assert found == (len(safe), study.n, BOUND)
    bills = Counter(study.billed())
    again = sum(bills.values()) - study.n
    assert set(bills) == set(study.keys) == study.answered()
    assert again <= BOUND * len(kills)
    # Every bill has its attempt on record; what was under way at a kill is on record as lost.
    with Ledger.open(study.ledger) as ledger:
        orphaned = Counter(attempt.key for attempt in ledger.orphaned())
        assert max(orphaned.values()) >= 1
        assert all(count - 1 <= orphaned[key] for key, count in bills.items()), "paid twice and not on record"
        assert ledger.attempt_counts(study.keys) == {key: 1 + orphaned[key] for key in study.keys}
        assert ledger.verify() > 4 * study.n
    note(
        f"kill -9, ledger in {study.kind}",
        f"{len(kills)} kills at named and random points of a run of {study.n:,} calls",
        f"0 replies lost, 0 calls with two replies, 0 committed calls paid again; {again} of those under way paid "
        f"twice (at most {BOUND} a kill)",
    )


def test_a_stop_request_pays_nothing_twice_though_the_clock_be_set_back(study, long, note):
    stops = [random.Random(3).randrange(1, 60) for _ in range(20)] if long else [5, 40]
    for bills in stops:
        assert study.signal_after(bills, signal.SIGTERM) == 0
        summary = study.summary()
        assert (summary["interrupted"], summary["orphaned"]) == (True, 0)
        assert len(study.billed()) == summary["already"] + summary["made"]
        assert 0 < len(study.billed()) < study.n
    assert study.wait(study.start(shift=-DAY)) == 0
    assert Counter(study.billed()) == dict.fromkeys(study.keys, 1)
    note(f"SIGTERM, ledger in {study.kind}", f"{len(stops)} stop requests", "0 calls paid twice, 0 lost")


# --- several runs on one ledger, with clocks that disagree ------------------------------------------------------------


def test_several_runs_with_clocks_a_day_apart_pay_each_call_once(shared_study, note):
    """A lease ends by the clock of the server: a worker whose own is a day fast takes nothing from the others."""
    # Nobody dies here, so a lease may outlast the pauses of a busy machine.
    runs = [shared_study.start(shift=shift, lease_s=30.0) for shift in (0.0, DAY, -DAY)]
    assert [shared_study.wait(run) for run in runs] == [0, 0, 0]
    assert Counter(shared_study.billed()) == dict.fromkeys(shared_study.keys, 1)
    assert shared_study.answered() == set(shared_study.keys)
    made = f"{len(runs)} runs at once on one PostgreSQL ledger of {shared_study.n:,} calls, clocks 0, +1 and -1 day"
    note("clocks a day apart", made, "every call paid once; no lease taken early")


def test_killed_workers_lose_nothing_and_pay_little_twice(shared_study, long, note):
    """Workers come and are killed in the midst of their calls, some with a clock a day fast; a run goes on beside."""
    kills, rng = (40 if long else 2), random.Random(5)
    steady = shared_study.start(slow=10.0)
    wait_until(shared_study, steady, 1)
    for _ in range(kills):
        victim = shared_study.start(shift=rng.choice([0.0, DAY]), slow=10.0, worker=True)
        wait_until(shared_study, victim, rng.randrange(3, 20))
        os.kill(victim, signal.SIGKILL)
        assert shared_study.wait(victim) == -signal.SIGKILL
    assert shared_study.wait(steady) == 0
    bills = Counter(shared_study.billed())
    again = sum(bills.values()) - shared_study.n
    assert set(bills) == set(shared_study.keys) == shared_study.answered()
    assert 1 <= again <= BOUND * kills
    assert shared_study.summary()["orphaned"] <= BOUND * kills
    with Ledger.open(shared_study.ledger) as ledger:
        attempts = ledger.attempt_counts(shared_study.keys)
        assert all(attempts[key] >= bills[key] for key in shared_study.keys), "paid and not on record"
        assert ledger.verify() > 3 * shared_study.n
    note(
        "kill -9 of workers beside a run, one PostgreSQL ledger",
        f"{kills} kills in the midst of calls, leases of {LEASE_S} s",
        f"0 lost, one result for each key; {again} calls paid twice (at most {BOUND} a kill), all on record",
    )


def wait_until(study: Study, process: int, bills: int) -> None:
    deadline = time.monotonic() + 20
    while study.billed_by(process) < bills and time.monotonic() < deadline:
        time.sleep(0.002)


# --- a whole study, its ledger in a database; for one in a file, workflow/test_flow.py --------------------------------


def outcome(folder: Path) -> dict[str, bytes]:
    """The files that no clock enters: neither the seconds of an agent nor those of a judge are in them."""
    tables = ("judgments", "anchor", "probe", "evidence", "verdicts")
    names = ["verdicts.json", *(f"tables/{name}.parquet" for name in tables)]
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
