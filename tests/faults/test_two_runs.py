"""Several runs on one ledger, with clocks that disagree and some of them killed: one result for each key."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

from billed_run import BOUND, LEASE_S

DAY = 86_400.0


def wait_for(study, bills: int) -> None:
    deadline = time.monotonic() + 20
    while len(study.billed()) < bills and time.monotonic() < deadline:
        time.sleep(0.002)


def test_several_runs_with_clocks_a_day_apart_pay_each_call_once(shared_study, note):
    """A lease ends by the clock of the server: a worker whose own is a day fast takes nothing from the others."""
    shifts = (0.0, DAY, -DAY)
    runs = [shared_study.start(shift=shift) for shift in shifts]
    assert [shared_study.wait(run) for run in runs] == [0, 0, 0]
    assert Counter(shared_study.billed()) == dict.fromkeys(shared_study.keys, 1)
    assert shared_study.answered() == set(shared_study.keys)
    made = f"{len(runs)} runs at once on one PostgreSQL ledger of {shared_study.n:,} calls, clocks 0, +1 and -1 day"
    note("clocks a day apart", made, "every call paid once; no lease taken early")


def test_a_run_whose_clock_was_set_back_goes_on(study):
    assert study.signal_after(20, signal.SIGTERM) == 0
    assert study.wait(study.start(shift=-DAY)) == 0
    assert Counter(study.billed()) == dict.fromkeys(study.keys, 1)


def test_killed_runs_among_others_leave_one_result_a_key(shared_study, long, note):
    kills, rng = (40 if long else 3), random.Random(5)
    steady = shared_study.start()
    for n in range(kills):
        victim = shared_study.start(shift=rng.choice([0.0, DAY]))
        wait_for(shared_study, (n + 1) * shared_study.n // (2 * kills))
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(victim, signal.SIGKILL)
        assert shared_study.wait(victim) in (-signal.SIGKILL, 0)
    assert shared_study.wait(steady) == 0
    bills = Counter(shared_study.billed())
    again = sum(bills.values()) - shared_study.n
    assert set(bills) == set(shared_study.keys) == shared_study.answered()
    assert again <= BOUND * kills
    note(
        "kill -9 of one run among two on one PostgreSQL ledger",
        f"{kills} kills, leases of {LEASE_S} s",
        f"0 lost, one result for each key, {again} calls paid twice (at most {BOUND} a kill)",
    )
