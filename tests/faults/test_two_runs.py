"""Several runs on one ledger, with clocks that disagree and some of them killed: one result for each key."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

from billed_run import BOUND, LEASE_S

from assaymark.engine import Ledger

DAY = 86_400.0


def test_several_runs_with_clocks_a_day_apart_pay_each_call_once(shared_study, note):
    """A lease ends by the clock of the server: a worker whose own is a day fast takes nothing from the others."""
    shifts = (0.0, DAY, -DAY)
    # Nobody dies here, so a lease may outlast the pauses of a busy machine.
    runs = [shared_study.start(shift=shift, lease_s=30.0) for shift in shifts]
    assert [shared_study.wait(run) for run in runs] == [0, 0, 0]
    assert Counter(shared_study.billed()) == dict.fromkeys(shared_study.keys, 1)
    assert shared_study.answered() == set(shared_study.keys)
    made = f"{len(runs)} runs at once on one PostgreSQL ledger of {shared_study.n:,} calls, clocks 0, +1 and -1 day"
    note("clocks a day apart", made, "every call paid once; no lease taken early")


def test_a_run_whose_clock_was_set_back_goes_on(study):
    assert study.signal_after(20, signal.SIGTERM) == 0
    assert study.wait(study.start(shift=-DAY)) == 0
    assert Counter(study.billed()) == dict.fromkeys(study.keys, 1)


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


def wait_until(study, process: int, bills: int) -> None:
    """Wait until a process has sent so many bills."""
    deadline = time.monotonic() + 20
    while study.billed_by(process) < bills and time.monotonic() < deadline:
        time.sleep(0.002)
