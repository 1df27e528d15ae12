"""Claims on the calls of a shared ledger: one holder at a time, by the server's clock, and a late one does no harm."""

from __future__ import annotations

import threading
import time

import pytest
from engine_calls import call, calls

from assaymark.engine import End, Ledger, Reply

KEYS = sorted(spec.key for spec in calls(10))


@pytest.fixture
def leases(shared):
    shared.plan(calls(10))
    return shared.leases


def reply(attempt, text="fine"):
    return End(attempt, "replied", reply=Reply(text=text, model="m"))


def claim(leases, worker, n, lease_s=60.0, **more):
    return leases.claim(worker, n, lease_s, **more)[0]


def test_a_call_has_one_holder(leases):
    one, two, three = (claim(leases, worker, 4) for worker in "abc")
    assert [c.key for c in one + two + three] == KEYS
    assert {c.fence for c in one + two + three} == {1}
    assert claim(leases, "d", 4) == []


def test_many_at_once_never_hold_the_same_call(shared, database):
    shared.plan(calls(200))
    held = []

    def take(worker):
        with Ledger.open(database) as ledger:
            while found := claim(ledger.leases, worker, 7):
                held.extend(c.key for c in found)

    threads = [threading.Thread(target=take, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held) == sorted(spec.key for spec in calls(200))


def test_claims_can_be_limited_to_calls_or_to_a_model(shared, leases):
    shared.plan(calls(3, model="other/x"))
    assert [c.key for c in claim(leases, "a", 9, keys=KEYS[3:5])] == KEYS[3:5]
    assert len(claim(leases, "a", 99, model="other/x")) == 3
    assert len(claim(leases, "a", 99)) == 8


def test_a_lease_ends_and_the_next_claim_has_a_higher_fence(leases):
    (first,) = claim(leases, "a", 1, 0.0)
    (second,) = claim(leases, "b", 1)
    assert (second.key, second.fence) == (first.key, first.fence + 1)


def test_a_renewed_lease_does_not_end(leases):
    claim(leases, "a", 10, 0.2)
    assert leases.renew("a", 60.0) == 10
    time.sleep(0.25)
    assert claim(leases, "b", 10) == []
    assert leases.release("a", KEYS[:2]) == 2
    assert [c.key for c in claim(leases, "b", 10)] == KEYS[:2]
    assert leases.release("a") == 8


def test_a_moved_clock_steals_no_lease(leases, monkeypatch):
    claim(leases, "a", 10, 5.0)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert claim(leases, "b", 10) == []
    assert leases.now() < 4e9


def test_a_late_reply_is_refused_and_on_record(shared, leases):
    (old,) = claim(leases, "a", 1, 0.0)
    (late,) = leases.commit([old], []).begun
    claims, lost = leases.claim("b", 1, 60.0)
    assert lost == 1
    (attempt,) = leases.commit(claims, []).begun
    assert (late.number, attempt.number) == (1, 2)
    assert leases.commit([], [reply(late, "late")]).answered == 0
    assert shared.pending([old.key]) == [old.key]
    assert leases.commit([], [reply(attempt, "in time")]).answered == 1
    assert shared.reply(old.key).text == "in time"
    assert shared.orphaned() == []


def test_a_late_reply_after_the_answer_is_refused_too(shared, leases):
    (old,) = claim(leases, "a", 1, 0.0)
    (late,) = leases.commit([old], []).begun
    (attempt,) = leases.commit(claim(leases, "b", 1), []).begun
    leases.commit([], [reply(attempt, "in time")])
    assert leases.commit([], [reply(late, "late")]).answered == 0
    assert shared.reply(old.key).text == "in time"
    assert shared.attempt_counts([old.key]) == {old.key: 2}


def test_nothing_begins_under_a_claim_that_is_lost(shared, leases):
    (old,) = claim(leases, "a", 1, 0.0)
    (new,) = claim(leases, "b", 1)
    assert leases.commit([old], []).begun == [None]
    (attempt,) = leases.commit([new], []).begun
    leases.commit([], [reply(attempt)])
    assert leases.commit([new], []).begun == [None]
    assert shared.attempt_counts([old.key]) == {old.key: 1}


def test_an_answered_call_is_never_claimed_again(shared, leases):
    claims = claim(leases, "a", 10, 0.0)
    begun = leases.commit(claims, []).begun
    assert leases.commit([], [reply(attempt) for attempt in begun[:6]]).answered == 6
    shared.plan(calls(10))  # planning again does not open it again
    assert [c.key for c in claim(leases, "b", 10)] == KEYS[6:]


def test_what_was_given_up_is_left_alone_by_those_who_were_there(leases):
    since = leases.now()
    (held,) = claim(leases, "a", 1)
    (attempt,) = leases.commit([held], []).begun
    leases.commit([], [End(attempt, "failed", "bad request", final=True)])
    assert KEYS[0] not in [c.key for c in claim(leases, "b", 10, 0.0, since=since)]
    assert leases.open_keys(KEYS, since) == set(KEYS[1:])
    assert leases.any_left("reference/echo", since)
    assert not leases.any_left("reference/other", since)
    assert claim(leases, "c", 10, since=leases.now())[0].key == KEYS[0]


def test_a_failure_that_is_not_final_keeps_the_claim(leases):
    (held,) = claim(leases, "a", 1)
    (attempt,) = leases.commit([held], []).begun
    (again,) = leases.commit([held], [End(attempt, "failed", "busy")]).begun
    assert again.number == 2
    assert held.key not in [c.key for c in claim(leases, "b", 10)]


def test_a_ledger_in_a_file_has_no_leases(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.leases is None


def test_attempts_without_a_claim_work_as_in_a_file(shared):
    shared.plan([call()])
    (one,), (two,) = shared.begin([call().key]), shared.begin([call().key])
    shared.finish([(one, Reply(text="first", model="m")), (two, Reply(text="second", model="m"))])
    assert shared.reply(call().key).text == "first"
    assert shared.leases.claim("a", 1, 60.0) == ([], 0)
