"""Several workers on one plan: each call is answered once, whoever comes, goes or is away for too long."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest
from engine_calls import Places, Scripted, calls, echo

from assaymark.engine import Ledger, Patience, Reply, run_calls, run_worker
from assaymark.errors import LedgerError, ModelError

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
    summary = run_worker(either, {NAME: model}, concurrency=16, patience=Patience(5, 0.01), **QUICK)
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
    slow = Scripted(lambda _call: "slow", wait=0.5)

    def work():
        with Ledger.open(database) as ledger:
            return run_worker(ledger, {NAME: slow}, lease_s=0.2, **QUICK)

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
    model = Scripted(lambda _call: "fine", wait=0.01)

    def gone(*_args, **_more):
        raise LedgerError("the server is gone")

    monkeypatch.setattr(shared.leases, "claim", gone)
    with pytest.raises(LedgerError, match="the server is gone"):
        run_calls(shared, calls(5), {NAME: model}, **QUICK)


def test_a_lost_renewal_ends_the_run(shared, monkeypatch):
    def gone(*_args):
        raise LedgerError("the server is gone")

    monkeypatch.setattr(shared.leases, "renew", gone)
    model = Scripted(lambda _call: "fine", wait=0.05)
    with pytest.raises(LedgerError, match="the server is gone"):
        run_calls(shared, calls(200), {NAME: model}, concurrency=2, lease_s=0.15, **QUICK)
    assert shared.pending(model.asked) == []
