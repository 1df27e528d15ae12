"""A ledger in PostgreSQL keeps what a ledger in a file keeps, and says as plainly what is wrong."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
import sqlalchemy as sa
from batch_house import House
from engine_calls import RUBRIC, Places, Scripted, answer, call, calls, echo

from assaymark.engine import (
    INLINE_BYTES,
    CallSpec,
    CircuitBreakerPolicy,
    End,
    Ledger,
    Message,
    Reply,
    Text,
    run_batches,
    run_calls,
    run_worker,
)
from assaymark.engine.database import _see_to_durability
from assaymark.errors import LedgerError, ModelError

CALL = call()
SECRET = "canary-4711"


def change(url, statement):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement)).rowcount != 0
    engine.dispose()


def test_calls_and_replies_come_back_as_they_were(shared):
    spec = CallSpec(
        model="a/b\x00",
        messages=(Message("system", (RUBRIC,)), Message("user", (Text.of("\ud800 x"), Text.of("y\x00")))), template="t",
        seed=2**70, schema=Text.of('{"type": "object"}'), args={"bad \udfff": "\x00"},
    )  # fmt: skip
    assert (shared.plan([spec, CALL]), shared.plan([spec, *calls(3)])) == (2, 2)
    assert shared.call(spec.key) == spec
    hostile = "nul \x00 \ud800 \udfff 😀 <script>" + "9" * 5000
    reply = answer(shared, [spec], hostile, raw=hostile, fingerprint="\x00\ud800", input_tokens=10**30, seconds=0.1)
    assert shared.reply(spec.key) == reply
    assert shared.pending([spec.key, CALL.key]) == [CALL.key]
    assert shared.pending_models() == {"reference/echo": 3}
    assert shared.pending_of("reference/echo") == sorted(one.key for one in calls(3))
    assert shared.begun()


def test_large_objects_live_in_the_table_and_errors_of_any_content_are_kept(shared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = os.urandom(3 * INLINE_BYTES)
    assert shared.get_object(shared.add_source("x", data, "context")) == data
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("assaymark.engine.database._MOST_BYTES", 1000)
    with pytest.raises(LedgerError, match="an object of 2000 bytes is too large"):
        shared.add_source("x", os.urandom(2000), "context")
    shared.plan([CALL])
    (attempt,) = shared.commit([CALL.key])
    shared.commit(ends=[End(attempt, "failed", "\ud800 nul \x00 " + "x" * 10_000)])
    assert shared.attempt_counts([CALL.key]) == {CALL.key: 1}


def test_sources_and_a_look_over_everything(shared):
    one = shared.add_source("b\x00.jsonl", b"1", "generic")
    shared.add_source("a\udcff.jsonl", b"2", "generic")
    shared.add_source("b\x00.jsonl", b"1", "generic")
    assert [s.path for s in shared.sources()] == ["b\\x00.jsonl", "a\\udcff.jsonl"]
    assert shared.get_object(one) == b"1"
    answer(shared, calls(2), raw="{}")
    assert shared.verify() == 2 + 3 * 2 + 7  # sources; calls, attempts, replies; their bytes, three prompts, two texts


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update objects set bytes = '\\x00' where kind = 'reply'", "object .* is damaged"),
        ("update objects set bytes = null where kind = 'reply'", "its bytes are gone"),
        ("update replies set finished_at = 0", "does not match its seal"),
    ],
)
def test_damage_is_never_silent(shared, database, statement, message):
    answer(shared, [CALL])
    change(database, statement)
    with pytest.raises(LedgerError, match=message):
        shared.reply(CALL.key)


def test_it_is_there_for_the_next_to_open(database):
    with pytest.raises(LedgerError, match="there is no ledger here"):
        Ledger.open(database, create=False)
    with Ledger.open(database) as ledger:
        reply = answer(ledger, [CALL])
        ledger.check_structure()
    with Ledger.open(database, create=False) as again:
        assert again.reply(CALL.key) == reply


def test_strangers_and_other_versions_are_refused(database):
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        connection.execute(sa.text("create table songs (name text)"))
    with pytest.raises(LedgerError, match="is a database but no ledger of ours"):
        Ledger.open(database)
    with engine.begin() as connection:
        connection.execute(sa.text("drop table songs"))
    engine.dispose()
    Ledger.open(database).close()
    change(database, "update meta set value = '0' where name = 'schema'")
    with pytest.raises(LedgerError, match="is a ledger of schema '0'"):
        Ledger.open(database)


def test_an_error_has_no_password_and_says_what_to_do(monkeypatch):
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    for url, what in (
        (f"postgresql://someone:{SECRET}@127.0.0.1:9/study?application_name={SECRET}",
         r"^postgresql://127.0.0.1/study: cannot be reached"),
        (f"postgresql://someone:{SECRET}@host:port/study", "the URL of the ledger cannot be read"),
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

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        pass

    def execute(self, statement):
        self.told.append(statement)

    def fetchone(self):
        return self.settings

    def commit(self):
        pass


def test_a_server_that_can_lose_commits_is_refused():
    with pytest.raises(LedgerError, match="fsync = off"):
        _see_to_durability(Answering("off", "on"), None)
    hasty, careful = Answering("on", "off"), Answering("on", "remote_apply")
    _see_to_durability(hasty, None)
    _see_to_durability(careful, None)
    assert hasty.told[-1] == "SET synchronous_commit = on"
    assert len(careful.told) == 1


# Claims on the calls of a shared ledger: one holder at a time, by the server's clock, and a late one does no harm

KEYS = sorted(spec.key for spec in calls(10))


@pytest.fixture
def leases(shared):
    shared.plan(calls(10))
    return shared.leases


def reply(attempt, text="fine"):
    return End(attempt, "replied", reply=Reply(text=text, model="m"))


def claim(leases, worker, n, lease_s=60.0, **more):
    return leases.claim(worker, n, lease_s, **more)[0]


def test_a_call_has_one_holder_until_its_lease_ends(leases):
    one, two, three = (
        claim(leases, worker, 4, lease_s) for worker, lease_s in zip("abc", (60.0, 60.0, 0.0), strict=True)
    )
    assert [key for key, _ in one + two + three] == KEYS
    assert {fence for _, fence in one + two + three} == {1}
    # the next claim has a higher fence
    assert claim(leases, "d", 4) == [(key, fence + 1) for key, fence in three]
    assert claim(leases, "e", 4) == []


def test_many_at_once_never_hold_the_same_call(shared, database):
    shared.plan(calls(200))
    held = []

    def take(worker):
        with Ledger.open(database) as ledger:
            while found := claim(ledger.leases, worker, 7):
                held.extend(key for key, _ in found)

    threads = [threading.Thread(target=take, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held) == sorted(spec.key for spec in calls(200))


def test_claims_can_be_limited_to_calls_or_to_a_model(shared, leases):
    shared.plan(calls(3, model="other/x"))
    assert [key for key, _ in claim(leases, "a", 9, keys=KEYS[3:5])] == KEYS[3:5]
    assert len(claim(leases, "a", 99, model="other/x")) == 3
    assert len(claim(leases, "a", 99)) == 8


def test_a_renewed_lease_does_not_end_nor_does_a_moved_clock_steal_it(leases, monkeypatch):
    claim(leases, "a", 10, 0.2)
    assert leases.renew("a", 60.0) == 10
    time.sleep(0.25)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert claim(leases, "b", 10) == []
    assert leases.now() < 4e9
    assert leases.release("a", KEYS[:2]) == 2
    assert [key for key, _ in claim(leases, "b", 10)] == KEYS[:2]
    assert leases.release("a") == 8


@pytest.mark.parametrize("answered", [False, True], ids=["before the answer", "after it"])
def test_a_late_reply_is_refused_and_on_record(shared, leases, answered):
    (old,) = claim(leases, "a", 1, 0.0)
    (late,) = leases.commit([old], [])[0]
    claims, lost = leases.claim("b", 1, 60.0)
    assert lost == 1
    (attempt,) = leases.commit(claims, [])[0]
    assert (late.number, attempt.number) == (1, 2)
    if answered:
        assert leases.commit([], [reply(attempt, "in time")])[1] == 1
    assert leases.commit([], [reply(late, "late")])[1] == 0
    if not answered:
        assert shared.pending([old[0]]) == [old[0]]
        assert leases.commit([], [reply(attempt, "in time")])[1] == 1
    assert shared.reply(old[0]).text == "in time"
    assert shared.attempt_counts([old[0]]) == {old[0]: 2}
    assert shared.orphaned() == []


def test_nothing_begins_under_a_claim_that_is_lost(shared, leases):
    (old,) = claim(leases, "a", 1, 0.0)
    (new,) = claim(leases, "b", 1)
    assert leases.commit([old], [])[0] == [None]
    (attempt,) = leases.commit([new], [])[0]
    leases.commit([], [reply(attempt)])
    assert leases.commit([new], [])[0] == [None]
    assert shared.attempt_counts([old[0]]) == {old[0]: 1}


def test_an_answered_call_is_never_claimed_again(shared, leases):
    claims = claim(leases, "a", 10, 0.0)
    begun = leases.commit(claims, [])[0]
    assert leases.commit([], [reply(attempt) for attempt in begun[:6]])[1] == 6
    shared.plan(calls(10))  # planning again does not open it again
    assert [key for key, _ in claim(leases, "b", 10)] == KEYS[6:]


def test_what_was_given_up_is_left_alone_by_those_who_were_there(leases):
    since = leases.now()
    (held,) = claim(leases, "a", 1)
    (attempt,) = leases.commit([held], [])[0]
    leases.commit([], [End(attempt, "failed", "bad request", final=True)])
    assert KEYS[0] not in [key for key, _ in claim(leases, "b", 10, 0.0, since=since)]
    assert leases.open_keys(KEYS, since) == set(KEYS[1:])
    assert leases.any_left("reference/echo", since)
    assert not leases.any_left("reference/other", since)
    assert claim(leases, "c", 10, since=leases.now())[0][0] == KEYS[0]


def test_a_failure_that_is_not_final_keeps_the_claim(leases):
    (held,) = claim(leases, "a", 1)
    (attempt,) = leases.commit([held], [])[0]
    (again,) = leases.commit([held], [End(attempt, "failed", "busy")])[0]
    assert again.number == 2
    assert held[0] not in [key for key, _ in claim(leases, "b", 10)]


def test_attempts_without_a_claim_work_as_in_a_file_which_has_no_leases(ledger, shared):
    assert ledger.leases is None
    shared.plan([call()])
    begun = [shared.commit([call().key])[0] for _ in range(2)]
    ends = [End(at, "replied", reply=Reply(text=text, model="m")) for at, text in zip(begun, "12", strict=True)]
    shared.commit(ends=ends)
    assert shared.reply(call().key).text == "1"
    assert shared.leases.claim("a", 1, 60.0) == ([], 0)


# Several workers on one plan: each call is answered once, whoever comes, goes or is away for too long

NAME = "reference/echo"
QUICK = {"backoff_s": 0.001, "deadline_s": 5.0}


def together(*works):
    """Do all of these at the same time; what each returned."""
    found = [None] * len(works)

    def do(n):
        found[n] = works[n]()

    threads = [threading.Thread(target=do, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture(params=["file", "database"])
def either(request, tmp_path):
    where = tmp_path / "ledger.db" if request.param == "file" else request.getfixturevalue("database")
    with Ledger.open(where) as ledger:
        yield ledger


def test_a_worker_asks_what_was_planned_for_its_models(either):
    either.plan([*calls(70), *calls(5, model="other/x")])
    run_calls(either, calls(10), {NAME: echo()}, **QUICK)
    model = echo()
    summary = run_worker(either, {NAME: model, "unused/x": echo()}, concurrency=8, **QUICK)
    assert sorted(model.asked) == sorted(spec.key for spec in calls(70)[10:])
    assert (summary.planned, summary.made, summary.left, summary.in_flight_bound) == (60, 60, 0, 8)
    assert either.reply(calls(70)[69].key).text == "I buy fund 69."
    assert run_worker(either, {NAME: model}, **QUICK).planned == 0
    assert run_worker(either, {"other/x": model}, **QUICK).made == 5


def test_a_worker_that_meets_a_dead_address_goes_on_with_the_others_of_the_model(either):
    dead, alive = "http://dead:1/v1", "http://alive:1/v1"
    asked = [replace(one, args={"base_url": address}) for address in (dead, alive) for one in calls(60)]
    model = Places(lambda args: ModelError("down", retryable=True) if args["base_url"] == dead else "fine")
    either.plan(asked)
    summary = run_worker(either, {NAME: model}, concurrency=16, patience=CircuitBreakerPolicy(5, 0.01), **QUICK)
    assert (summary.made, summary.left) == (60, 60 - len(summary.failed))
    assert [line.partition(":")[0] for line in summary.stopped] == ["reference at http"]
    assert run_worker(either, {NAME: echo()}, **QUICK).made == 60


def test_what_fails_for_good_is_given_up_and_asked_by_the_next(either):
    broken = {spec.key for spec in calls(3)}
    model = Scripted(lambda call: ModelError("bad", retryable=False) if call.key in broken else "fine")
    either.plan(calls(20))
    summary = run_worker(either, {NAME: model}, concurrency=4, **QUICK)
    assert (summary.made, {failure.key for failure in summary.failed}, summary.left) == (17, broken, 0)
    assert len(model.asked) == 20
    assert run_calls(either, calls(20), {NAME: echo()}, **QUICK).made == 3


def test_two_workers_and_a_run_share_one_plan(shared, database):
    model = Scripted(lambda call: call.messages[-1].text, wait=0.003)
    shared.plan(calls(150))

    def work(asked):
        def go():
            with Ledger.open(database) as ledger:
                if asked is None:
                    return run_worker(ledger, {NAME: model}, concurrency=5, **QUICK)
                return run_calls(ledger, asked, {NAME: model}, concurrency=5, **QUICK)

        return go

    found = together(work(None), work(None), work(calls(150)), work(calls(200)[:100]))
    assert Counter(model.asked) == dict.fromkeys((spec.key for spec in calls(150)), 1)
    assert sum(summary.made for summary in found) == 150
    assert [summary.left for summary in found] == [0] * 4
    assert shared.pending(spec.key for spec in calls(150)) == []
    assert all(one.made + one.elsewhere + one.already == one.planned for one in found)


def test_a_worker_that_was_away_for_too_long_changes_nothing(shared, database):
    """Its event loop stands still for longer than its lease; meanwhile another answers."""
    (asked,) = calls(1)
    under_way, answered = threading.Event(), threading.Event()

    class Frozen:
        async def complete(self, call):
            under_way.set()
            answered.wait(30)
            return Reply(text="late", model="m")

    def first():
        with Ledger.open(database) as ledger:
            return run_calls(ledger, [asked], {NAME: Frozen()}, lease_s=0.2, **QUICK)

    def second():
        under_way.wait(30)
        try:
            return run_calls(shared, [asked], {NAME: echo()}, lease_s=0.2, **QUICK)
        finally:
            answered.set()

    late, right = together(first, second)
    assert (right.made, right.orphaned, late.made, late.elsewhere) == (1, 1, 0, 1)
    assert shared.reply(asked.key).text == "I buy fund 0."
    assert shared.attempt_counts([asked.key]) == {asked.key: 2}


def test_a_long_call_keeps_its_lease(shared, database):
    slow = Scripted(lambda _call: "slow", wait=1.5)

    def work():
        with Ledger.open(database) as ledger:
            return run_worker(ledger, {NAME: slow}, lease_s=0.6, **QUICK)

    shared.plan(calls(2))
    found = together(work, work)
    assert len(slow.asked) == 2
    assert sum(summary.made for summary in found) == 2


def test_what_a_stopped_provider_leaves_is_free_for_others(shared):
    broke = Scripted(lambda _call: ModelError("no money", retryable=False, quota=True))
    shared.plan(calls(30))
    summary = run_worker(shared, {NAME: broke}, concurrency=2, **QUICK)
    assert summary.left == 30 - len(summary.failed) >= 28
    assert len(shared.leases.claim("next", 99, 60.0)[0]) == 30


def test_a_server_that_goes_away_is_one_plain_error(shared, monkeypatch):
    model = Scripted(lambda _call: "fine", wait=0.05)

    def gone(*_args, **_more):
        raise LedgerError("the server is gone")

    for name in ("renew", "claim"):  # a lost renewal ends the run
        monkeypatch.setattr(shared.leases, name, gone)
        with pytest.raises(LedgerError, match="the server is gone"):
            run_calls(shared, calls(200), {NAME: model}, concurrency=2, lease_s=0.15, **QUICK)
        assert shared.pending(model.asked) == []


# Batches of a ledger that workers share: what is in a batch is nobody else's to ask

ASKED = calls(6, model="house/one")
SHARED_BATCHES_KEYS = [spec.key for spec in ASKED]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def run(ledger, house, asked=ASKED, **more):
    terms = {"poll_s": 0.001, "settle_s": 0.0, "most_items": 3} | more
    return run_batches(ledger, asked, {"house": house.maker}, **terms)


def test_workers_leave_a_batch_alone_and_its_results_are_kept(shared, house):
    house.polls = 10**6
    model = Scripted(lambda spec: f"reply to {spec.key}")
    assert run(shared, house, ASKED[:4], deadline_s=0.05).under_way == 4
    assert shared.leases.claim("somebody", 4, 60.0, keys=SHARED_BATCHES_KEYS[:4]) == ([], 0)
    assert run_calls(shared, ASKED[4:], {"house/one": model}).made == 2
    assert sorted(model.asked) == sorted(SHARED_BATCHES_KEYS[4:])
    house.polls = 0
    house.verdict = lambda key, times: "busy" if key == SHARED_BATCHES_KEYS[0] and times == 1 else None
    done = run(shared, house)
    assert (done.already, done.made, done.failed, done.left) == (2, 4, (), 0)
    assert house.bills() == {key: 2 if key == SHARED_BATCHES_KEYS[0] else 1 for key in SHARED_BATCHES_KEYS[:4]}
    assert {reply.text for _, reply in shared.replies(SHARED_BATCHES_KEYS)} == {
        f"reply to {key}" for key in SHARED_BATCHES_KEYS
    }
    assert shared.verify() > 0
    assert shared.pending_models() == {}


def test_what_others_hold_is_not_in_a_batch(shared, house):
    shared.plan(ASKED)
    claims, _ = shared.leases.claim("somebody", 2, 60.0)
    done = run(shared, house)
    assert (done.made, done.left, sum(house.sizes())) == (4, 2, 4)
    assert not {key for key, _ in claims} & set(house.bills())


def test_one_run_of_batches_at_a_time(shared, database, house):
    refused = pytest.raises(LedgerError, match="somebody else is at work on its batches")
    with Ledger.open(database) as other, other.batches.alone(), refused:
        run(shared, house)
    assert run(shared, house).made == 6
