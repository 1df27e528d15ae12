"""A ledger in PostgreSQL: leases on calls, several workers on one plan, and error messages as plain as for a file."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
import sqlalchemy as sa
from batch_house import House, run_at
from engine_calls import NAME, QUICK, Scripted, answer, call, calls, echo, together

from assaymark.engine import INLINE_BYTES, CircuitBreakerPolicy, End, Ledger, Reply, run_calls, run_worker
from assaymark.engine.database import PostgresStore
from assaymark.errors import LedgerError, ModelError

CALL = call()
KEYS = sorted(spec.key for spec in calls(10))
SECRET = "canary-4711"


def change(url, *statements):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            assert connection.execute(sa.text(statement)).rowcount != 0
    engine.dispose()


def test_large_objects_live_in_the_table_and_damage_is_never_silent(shared, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = os.urandom(3 * INLINE_BYTES)
    assert shared.get_object(shared.add_source("x", data, "context")) == data
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("assaymark.engine.database._MOST_BYTES", 1000)
    with pytest.raises(LedgerError, match="an object of 2000 bytes is too large"):
        shared.add_source("x", os.urandom(2000), "context")
    answer(shared, [CALL])
    for statement, message in (
        ("update objects set bytes = '\\x00' where kind = 'reply'", "object .* is damaged"),
        ("update objects set bytes = null where kind = 'reply'", "its bytes are gone"),
        ("update replies set finished_at = 0", "does not match its seal"),
    ):
        change(database, statement)
        with pytest.raises(LedgerError, match=message):
            shared.reply(CALL.key)


def test_it_is_there_for_the_next_to_open_and_strangers_and_other_versions_are_refused(database):
    with pytest.raises(LedgerError, match="there is no call log here"):
        Ledger.open(database, create=False)
    change(database, "create table songs (name text)")
    with pytest.raises(LedgerError, match="is a database but not a call log"):
        Ledger.open(database)
    change(database, "drop table songs")
    with Ledger.open(database) as ledger:
        reply = answer(ledger, [CALL])
        ledger.check_structure()
    with Ledger.open(database, create=False) as again:
        assert again.reply(CALL.key) == reply
    change(database, "update meta set value = '0' where name = 'schema'")
    with pytest.raises(LedgerError, match="is a call log of schema '0'"):
        Ledger.open(database)


def test_an_error_has_no_password_and_says_what_to_do(monkeypatch):
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    for url, what in (
        (f"postgresql://someone:{SECRET}@127.0.0.1:9/study?application_name={SECRET}",
         r"^postgresql://127.0.0.1/study: cannot be reached"),
        (f"postgresql://someone:{SECRET}@host:port/study", "the URL of the call log cannot be read"),
        ("mysql://host/study", r"a file or a database postgresql.* URL of 'mysql'"),
    ):  # fmt: skip
        with pytest.raises(LedgerError, match=what) as caught:
            Ledger.open(url)
        assert SECRET not in str(caught.value)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'assaymark\[postgres\]'"):
        Ledger.open("postgresql://127.0.0.1/study")


class Answering:
    """As much of a connection as is looked at: what the server says of itself, and what it is told."""

    def __init__(self, *settings):
        self.settings, self.told = settings, []
        self.cursor = lambda: self
        self.execute, self.fetchone, self.commit = self.told.append, lambda: settings, lambda: None

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        pass


def test_a_server_that_can_lose_commits_is_refused():
    with pytest.raises(LedgerError, match="fsync = off"):
        PostgresStore.see_to_durability(Answering("off", "on"), None)
    hasty, careful = Answering("on", "off"), Answering("on", "remote_apply")
    PostgresStore.see_to_durability(hasty, None)
    PostgresStore.see_to_durability(careful, None)
    assert (hasty.told[-1], len(careful.told)) == ("SET synchronous_commit = on", 1)


# Claims on the calls of a shared ledger: one holder at a time, by the server's clock, and a late one does no harm


@pytest.fixture
def leases(shared):
    shared.plan(calls(10))
    return shared.leases


def reply(attempt, text="fine"):
    return End(attempt, "replied", reply=Reply(text=text, model="m"))


def claim(leases, worker, n, lease_s=60.0, of=NAME, **more):
    return leases.claim(worker, n, lease_s, of, **more)[0]


def held(claims):
    return [key for key, _ in claims]


def test_a_call_has_one_holder_until_its_lease_ends(shared, leases, monkeypatch):
    one, two, three = (claim(leases, *asked) for asked in (("a", 4, 60.0), ("b", 4, 60.0), ("c", 4, 0.0)))
    assert held(one + two + three) == KEYS
    assert {fence for _, fence in one + two + three} == {1}
    assert claim(leases, "d", 4) == [(key, fence + 1) for key, fence in three]  # the next claim has a higher fence
    assert claim(leases, "e", 4) == []
    assert leases.release("a", KEYS[:2]) == 2
    assert held(claim(leases, "f", 10, 0.2)) == KEYS[:2]
    assert leases.renew("f", 60.0) == 2
    time.sleep(0.25)
    monkeypatch.setattr(time, "time", lambda: 4e9)  # a moved clock steals nothing
    assert claim(leases, "g", 10) == []
    assert shared.batches.now() < 4e9
    assert [leases.release(worker) for worker in "abdf"] == [2, 4, 2, 2]
    shared.plan(calls(3, model="other/x"))  # claims can be limited to calls or to a model
    assert held(claim(leases, "a", 9, of=KEYS[3:5])) == KEYS[3:5]
    assert [len(claim(leases, "a", 99, of=of)) for of in ("other/x", NAME)] == [3, 8]


@pytest.mark.parametrize("answered", [False, True], ids=["before the answer", "after it"])
def test_a_late_reply_is_refused_and_on_record(shared, leases, answered):
    (old,) = claim(leases, "a", 1, 0.0)
    (late,) = shared.commit([old], [])[0]
    claims, lost = leases.claim("b", 1, 60.0, NAME)
    assert lost == 1
    assert shared.commit([old], [])[0] == [None]  # nothing begins under a claim that is lost
    (attempt,) = shared.commit(claims, [])[0]
    assert (late.number, attempt.number) == (1, 2)
    if answered:
        assert shared.commit([], [reply(attempt, "in time")])[1] == 1
    assert shared.commit([], [reply(late, "late")])[1] == 0
    if not answered:
        assert shared.pending([old[0]]) == [old[0]]
        assert shared.commit([], [reply(attempt, "in time")])[1] == 1
    assert shared.commit(claims, [])[0] == [None]  # nor under one that is answered
    assert shared.reply(old[0]).text == "in time"
    assert shared.attempt_counts([old[0]]) == {old[0]: 2}
    assert shared.orphaned() == []


def test_what_is_answered_is_never_claimed_again_and_what_was_given_up_only_by_who_comes_later(shared, leases):
    begun = shared.commit(claim(leases, "a", 6, 0.0), [])[0]
    assert shared.commit([], [reply(attempt) for attempt in begun])[1] == 6
    shared.plan(calls(10))  # planning again does not open it again
    since = shared.batches.now()
    (mine,) = claim(leases, "b", 1)
    (attempt,) = shared.commit([mine], [])[0]
    (again,) = shared.commit([mine], [End(attempt, "failed", "busy")])[0]  # a failure that is not final keeps the claim
    assert (mine[0], again.number) == (KEYS[6], 2)
    assert held(claim(leases, "c", 10, 0.0)) == KEYS[7:]
    shared.commit([], [End(again, "failed", "bad request", final=True)])
    assert held(claim(leases, "d", 10, 0.0, since=since)) == KEYS[7:]
    assert leases.open_keys(KEYS, since) == set(KEYS[7:])
    assert leases.any_left(NAME, since)
    assert not leases.any_left("reference/other", since)
    assert held(claim(leases, "e", 10, since=shared.batches.now())) == KEYS[6:]


def test_attempts_without_a_claim_work_as_in_a_file_which_has_no_leases(ledger, shared):
    assert ledger.leases is None
    answer(shared, [CALL])
    assert shared.leases.claim("a", 1, 60.0, NAME) == ([], 0)


# Several workers on one plan: each call is answered once, whoever comes, goes or is away for too long


def test_a_worker_asks_what_was_planned_for_its_models(either):
    either.plan([*calls(70), *calls(5, model="other/x")])
    run_calls(either, calls(10), {NAME: echo()}, **QUICK)
    model = echo()
    summary = run_worker(either, {NAME: model, "unused/x": echo()}, concurrency=8, **QUICK)
    assert sorted(model.asked) == sorted(spec.key for spec in calls(70)[10:])
    assert (summary.planned, summary.made, summary.left, summary.in_flight_bound) == (60, 60, 0, 8)
    assert either.reply(calls(70)[69].key).text == "I buy fund 69."
    assert run_worker(either, {NAME: model}, **QUICK).planned == 0
    broken = {spec.key for spec in calls(3, model="other/x")}
    model = Scripted(lambda call: ModelError("bad", retryable=False) if call.key in broken else "fine")
    summary = run_worker(either, {"other/x": model}, concurrency=4, **QUICK)
    assert (summary.made, {failure.key for failure in summary.failed}, summary.left) == (2, broken, 0)
    assert len(model.asked) == 5
    assert run_calls(either, calls(5, model="other/x"), {"other/x": echo()}, **QUICK).made == 3  # the next asks it


def test_a_worker_that_meets_a_dead_address_goes_on_with_the_others_of_the_model(either):
    dead, alive = "http://dead:1/v1", "http://alive:1/v1"
    asked = [replace(one, args={"base_url": address}) for address in (dead, alive) for one in calls(60)]
    model = Scripted(lambda call: ModelError("down", retryable=True) if call.args["base_url"] == dead else "fine")
    either.plan(asked)
    summary = run_worker(either, {NAME: model}, concurrency=16, patience=CircuitBreakerPolicy(5, 0.01), **QUICK)
    assert (summary.made, summary.left) == (60, 60 - len(summary.failed))
    assert [line.partition(":")[0] for line in summary.stopped] == ["reference at http"]
    assert run_worker(either, {NAME: echo()}, **QUICK).made == 60


def test_two_workers_and_a_run_share_one_plan(shared, database):
    model = Scripted(lambda call: call.messages[-1].text, wait=0.003)
    shared.plan(calls(150))

    def work(asked=None):
        with Ledger.open(database) as ledger:
            if asked is None:
                return run_worker(ledger, {NAME: model}, concurrency=5, **QUICK)
            return run_calls(ledger, asked, {NAME: model}, concurrency=5, **QUICK)

    found = together(work, work, lambda: work(calls(150)), lambda: work(calls(200)[:100]))
    assert Counter(model.asked) == dict.fromkeys((spec.key for spec in calls(150)), 1)
    assert sum(summary.made for summary in found) == 150
    assert shared.pending(spec.key for spec in calls(150)) == []
    assert all(one.made + one.elsewhere + one.already == one.planned and one.left == 0 for one in found)


def test_a_worker_that_was_away_for_too_long_changes_nothing(shared, database):
    """Its event loop stands still for longer than its lease; meanwhile another answers."""
    under_way, answered = threading.Event(), threading.Event()

    class Frozen:
        async def complete(self, call):
            under_way.set()
            answered.wait(30)
            return Reply(text="late", model="m")

    def first():
        with Ledger.open(database) as ledger:
            return run_calls(ledger, [CALL], {NAME: Frozen()}, lease_s=0.2, **QUICK)

    def second():
        under_way.wait(30)
        try:
            return run_calls(shared, [CALL], {NAME: echo()}, lease_s=0.2, **QUICK)
        finally:
            answered.set()

    late, right = together(first, second)
    assert (right.made, right.orphaned, late.made, late.elsewhere) == (1, 1, 0, 1)
    assert shared.reply(CALL.key).text == "I buy fund 0."
    assert shared.attempt_counts([CALL.key]) == {CALL.key: 2}


def test_a_long_call_keeps_its_lease(shared, database):
    slow = Scripted(lambda _call: "slow", wait=1.5)

    def work():
        with Ledger.open(database) as ledger:
            return run_worker(ledger, {NAME: slow}, lease_s=0.6, **QUICK)

    shared.plan(calls(2))
    assert sum(summary.made for summary in together(work, work)) == len(slow.asked) == 2


def test_what_a_stopped_provider_leaves_is_free_for_others_and_a_lost_server_is_one_plain_error(shared, monkeypatch):
    broke = Scripted(lambda _call: ModelError("no money", retryable=False, quota=True))
    shared.plan(calls(30))
    summary = run_worker(shared, {NAME: broke}, concurrency=2, **QUICK)
    assert summary.left == 30 - len(summary.failed) >= 28
    assert len(claim(shared.leases, "next", 99, 0.0)) == 30

    def gone(*_args, **_more):
        raise LedgerError("the server is gone")

    model = Scripted(lambda _call: "fine", wait=0.05)
    for name in ("renew", "claim"):  # a lost renewal ends the run
        monkeypatch.setattr(shared.leases, name, gone)
        with pytest.raises(LedgerError, match="the server is gone"):
            run_calls(shared, calls(200), {NAME: model}, concurrency=2, lease_s=0.15, **QUICK)
        assert shared.pending(model.asked) == []


# Batches of a ledger that workers share: what is in a batch is nobody else's to ask

ASKED = calls(6, model="house/one")
run = partial(run_at, asked=ASKED, most_items=3)


def test_workers_leave_a_batch_alone_and_its_results_are_kept(shared, tmp_path):
    house = House(tmp_path, polls=10**6)
    keys = [spec.key for spec in ASKED]
    model = Scripted(lambda spec: f"reply to {spec.key}")
    assert run(shared, house, asked=ASKED[:4], deadline_s=0.05).under_way == 4
    assert shared.leases.claim("somebody", 4, 60.0, keys[:4]) == ([], 0)
    assert run_calls(shared, ASKED[4:], {"house/one": model}).made == 2
    assert sorted(model.asked) == sorted(keys[4:])
    house.polls = 0
    house.verdict = lambda key, times: "busy" if key == keys[0] and times == 1 else None
    done = run(shared, house)
    assert (done.already, done.made, done.failed, done.left) == (2, 4, (), 0)
    assert house.bills() == {key: 2 if key == keys[0] else 1 for key in keys[:4]}
    assert {reply.text for _, reply in shared.replies(keys)} == {f"reply to {key}" for key in keys}
    assert shared.verify() > 0
    assert shared.pending_models() == {}


def test_what_others_hold_is_not_in_a_batch_and_one_run_of_batches_is_at_work_at_a_time(shared, database, tmp_path):
    house = House(tmp_path)
    shared.plan(ASKED)
    claims = claim(shared.leases, "somebody", 2, of="house/one")
    refused = pytest.raises(LedgerError, match="another process is collecting its batches")
    with Ledger.open(database) as other, other.batches.exclusive(), refused:
        run(shared, house)
    done = run(shared, house)
    assert (done.made, done.left, sum(house.sizes())) == (4, 2, 4)
    assert not set(held(claims)) & set(house.bills())
