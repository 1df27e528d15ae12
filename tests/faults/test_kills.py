"""Whatever kills a run: nothing acknowledged is lost, and only what was under way is paid again."""

from __future__ import annotations

import random
import signal
from collections import Counter

from billed_run import BOUND
from billed_study import Study

from assaymark.engine import Ledger

NAMED = ("before-plan:0", "before-commit:0", "after-commit:0", "before-commit:9", "after-commit:6")


def kill_somewhere(study: Study, where: str | int) -> None:
    if isinstance(where, int):
        status = study.signal_after(where, signal.SIGKILL)
    else:
        point, survived = where.split(":")
        status = study.wait(study.start(point, int(survived)))
    assert status == -signal.SIGKILL


def kills_of(study: Study, long: bool) -> list[str | int]:
    """Where to kill, in a fixed disorder."""
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
        bills_before = len(study.billed())
        kill_somewhere(study, where)
        assert not safe & set(study.billed()[bills_before:]), "a committed call was paid again"
        answered = study.answered()
        assert safe <= answered, "a committed reply was lost"
        assert answered <= set(study.billed())
        safe = answered
    bills_before = len(study.billed())
    assert study.wait(study.start()) == 0
    summary = study.summary()
    assert not safe & set(study.billed()[bills_before:])
    found = (summary["already"], summary["already"] + summary["made"], summary["in_flight_bound"])
    assert found == (len(safe), study.n, BOUND)
    bills = Counter(study.billed())
    again = sum(bills.values()) - study.n
    assert set(bills) == set(study.keys) == study.answered()
    assert again <= BOUND * len(kills)
    check_attempts(study, bills)
    note(
        f"kill -9, ledger in {study.kind}",
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
    assert study.wait(study.start()) == 0
    assert Counter(study.billed()) == dict.fromkeys(study.keys, 1)
    note(f"SIGTERM, ledger in {study.kind}", f"{len(stops)} stop requests", "0 calls paid twice, 0 lost")
