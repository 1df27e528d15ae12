"""Limits per minute, waits that providers request, and circuit breakers that stop a provider."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math
import os
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count

import pytest
from engine_calls import NAME, QUICK, Scripted, call, calls, echo, together
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assaymark.engine import (
    CallSpec, CircuitBreakerPolicy, Ledger, Limits, Message, Reply, Text, endpoint_of, provider_of, run_calls,
    run_worker,
)  # fmt: skip
from assaymark.engine.rate_limits import Breaker, requested_wait_s, tokens_expected
from assaymark.errors import LedgerError, ModelError

NUMBERS = count()


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("synchronous=OFF",))  # nothing here is about the disk
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


def at(ledger, clock):
    """Let the clock of the ledger stand."""
    ledger._store.now = lambda _connection: clock


def ask(ledger, n, *, tokens=1, corrections=None, provider="acme", **limits):
    return ledger.reserve(provider, Limits(**limits), [tokens] * n, corrections or {})


def most_in_a_window(times, seconds):
    return max(sum(start <= at < start + seconds for at in times) for start in times)


def test_what_there_is_room_for_is_granted_in_order_and_no_clock_blocks_for_long(ledger):
    at(ledger, 1000.0)
    assert ask(ledger, 3, requests_per_minute=5)[0] == 3
    grant = ask(ledger, 4, requests_per_minute=5)
    assert (grant[:2], 62 < grant[2] < 64) == ((2, 1000), True)
    assert ask(ledger, 4, requests_per_minute=5)[0] == 0
    assert ask(ledger, 1, requests_per_minute=5, provider="other")[0] == 1
    at(ledger, 1000.0 + grant[2])
    assert ask(ledger, 9, requests_per_minute=5)[0] == 5
    at(ledger, 1000.0 - 86_400)  # it was set back
    assert ask(ledger, 5, requests_per_minute=5)[0] == 5


def test_tokens_count_too_and_a_reply_corrects_them(ledger):
    at(ledger, 1000.0)
    limits = {"tokens_per_minute": 1000}
    first = ask(ledger, 4, **limits, tokens=300)
    assert first[0] == 3
    assert ask(ledger, 1, **limits, tokens=300, corrections={first[1]: -500})[0] == 1
    assert ask(ledger, 1, **limits, tokens=1, corrections={first[1]: 400})[0] == 0
    for clock in (2000.0, 2070.0, 2070.0 - 86_400):  # a call that is larger than a minute goes alone
        at(ledger, clock)
        assert ask(ledger, 2, tokens_per_minute=100, tokens=5000)[0] == 1
    spec = CallSpec(model="a/b", messages=(Message("user", (Text.of("x" * 300),)),), template="t")
    assert [tokens_expected(one) for one in (spec, replace(spec, args={"max_tokens": 50}))] == [100 + 1024, 150]


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.floats(0, 40), st.integers(1, 4)), min_size=1, max_size=10), st.integers(1, 6))
def test_no_minute_gets_more_than_its_limit(ledger, asks, limit):
    clock, sent, provider = 1000.0, [], f"p{next(NUMBERS)}"
    for after, n in asks:
        clock += after
        at(ledger, clock)
        sent += [clock] * ask(ledger, n, requests_per_minute=limit, provider=provider)[0]
    assert most_in_a_window(sent, 60) <= limit


def test_an_earlier_ledger_gets_its_table_and_a_limit_out_of_range_is_refused(ledger, tmp_path):
    assert ask(ledger, 1, requests_per_minute=1)[0] == 1
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as raw:
        assert raw.execute("select count(*) from windows").fetchone() == (2,)
    for kind, name, value in (
        (Limits, "requests_per_minute", 0), (Limits, "tokens_per_minute", 0), (CircuitBreakerPolicy, "failures", 0),
        (CircuitBreakerPolicy, "cool_down_s", -1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name}(?s:.)*(must be at least|greater than or equal to)"):
            kind(**{"failures": 1} | {name: value} if kind is CircuitBreakerPolicy else {name: value})


# What a run does


class Timed(Scripted):
    """Notes when it was asked; its replies are short."""

    def __init__(self, clock, answer=lambda _call: "fine", **more):
        super().__init__(answer, **more)
        self.clock, self.times = clock, []

    async def complete(self, call):
        self.times.append(self.clock())
        reply = await super().complete(call)
        return Reply(text=reply.text, model="m", input_tokens=10, output_tokens=10)


@pytest.fixture
def minutes(ledger, clock):
    """The clock of a run and of its ledger, whose minutes take none of ours."""
    ledger._store.now = lambda _connection: 1000.0 + clock()
    return clock


def test_a_run_stays_below_its_limits(ledger, minutes):
    model, free = Timed(minutes), Timed(minutes)
    limits = {"reference": Limits(requests_per_minute=8)}
    asked = [*calls(14), *calls(5, model="other/x")]
    assert run_calls(ledger, asked, {NAME: model, "other/x": free}, limits=limits).made == 19
    assert most_in_a_window(model.times, 60) <= 8
    assert free.times[-1] < model.times[8] < 70


def test_where_there_is_room_nobody_waits_and_tokens_that_were_not_taken_make_room(ledger, minutes, monkeypatch):
    limits = {"reference": Limits(tokens_per_minute=3 * tokens_expected(call()))}
    model = Timed(minutes)  # it would take three minutes more than it does
    assert run_calls(ledger, calls(12), {NAME: model}, concurrency=2, limits=limits).made == 12
    assert model.times[-1] - model.times[0] < 60

    async def wait(_gate, seconds):
        raise AssertionError(f"waited {seconds} s")

    monkeypatch.setattr("assaymark.engine.rate_limits.Throttle.pause", wait)
    limits, asked = {"other": Limits(requests_per_minute=200)}, calls(100, model="other/x")
    assert run_calls(ledger, asked, {"other/x": echo()}, concurrency=3, limits=limits).made == 100


def test_an_unwritable_ledger_ends_the_run(ledger, monkeypatch):
    def broken(*_args):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "reserve", broken)
    with pytest.raises(LedgerError, match="the disk is full"):
        run_calls(ledger, calls(5), {NAME: echo()}, limits={"reference": Limits(requests_per_minute=8)})


def test_two_workers_together_stay_below_the_limit(database, monkeypatch):
    for name, value in {"_WINDOW_S": 0.4, "_SLACK_S": 0.3, "_BUCKET_S": 0.02}.items():  # minutes of 0.4 seconds
        monkeypatch.setattr(f"assaymark.engine.rate_limits.{name}", value)
    model, limits = Timed(time.monotonic), {"reference": Limits(requests_per_minute=10)}
    with Ledger.open(database) as one, Ledger.open(database) as two:
        one.plan(calls(18))
        work = partial(run_worker, models={NAME: model}, concurrency=6, limits=limits)
        made = [summary.made for summary in together(partial(work, one), partial(work, two))]
    assert sum(made) == 18 == len(model.times)
    assert most_in_a_window(model.times, 0.4) <= 10


def test_a_wait_that_was_asked_for_is_kept_is_no_failure_and_ends_too(ledger, clock, monkeypatch):
    def busy(times, retry_after):
        seen = Counter()
        error = ModelError("rate limited (429)", retryable=True, retry_after=retry_after)
        return lambda call: seen.update([call.key]) or (error if seen[call.key] <= times else "fine")

    model, once = Timed(clock, busy(6, 40.0)), CircuitBreakerPolicy(1, 0.0)
    summary = run_calls(ledger, [call()], {NAME: model}, attempts=2, patience=once, **QUICK)
    assert (summary.made, summary.failed, summary.deferred, summary.retried) == (1, (), 6, 6)
    assert min(after - before for before, after in zip(model.times, model.times[1:], strict=False)) >= 40
    assert ledger.attempt_counts([call().key]) == {call().key: 7}
    monkeypatch.setattr("assaymark.engine.runner._MOST_PUT_OFF", 3)
    (failure,) = run_calls(ledger, [call(1)], {NAME: Scripted(busy(99, 0.0))}, **QUICK).failed
    assert (failure.attempts, failure.reason) == (4, "rate limited (429)")


def test_while_a_provider_asks_to_wait_nobody_asks_it(ledger, clock):
    first, turned = call(0).key, []

    def answer(call):
        if call.key == first and not turned:
            turned.append(clock())
            return ModelError("busy (503)", retryable=True, retry_after=15.0)
        return "fine"

    model = Timed(clock, answer, wait=0.01)
    assert run_calls(ledger, calls(30), {NAME: model, "other/x": echo()}, concurrency=2, **QUICK).made == 30
    # the other worker may have passed the gate just before
    assert len([at for at in model.times if turned[0] < at < turned[0] + 15]) <= 1


def test_an_outage_that_is_over_after_the_rest_costs_nothing(ledger, clock):
    failed = []

    def answer(call):
        if len(failed) == 5:
            return "fine"
        failed.append(clock())
        return ModelError("overloaded (503)", retryable=True)

    model, patience = Timed(clock, answer), CircuitBreakerPolicy(5, 60.0)
    summary = run_calls(ledger, calls(20), {NAME: model}, concurrency=5, patience=patience, **QUICK)
    assert (summary.made, summary.stopped, summary.failed) == (20, (), ())
    assert min(at for at in model.times if at > failed[-1]) >= failed[-1] + 60


def test_a_provider_that_keeps_failing_or_has_no_credit_is_not_asked_any_more_and_the_others_are(ledger, clock):
    broken = Scripted(lambda _call: ModelError("overloaded (503)", retryable=True), wait=0.001)
    broke = Scripted(lambda _call: ModelError("the account is empty", retryable=False, quota=True), wait=0.001)
    models = {"acme/x": broken, "acme/y": broken, "bank/x": broke, NAME: echo()}
    asked = [*calls(100, model="acme/x"), *calls(100, model="acme/y"), *calls(50, model="bank/x"), *calls(50)]
    summary = run_calls(ledger, asked, models, concurrency=4, patience=CircuitBreakerPolicy(10, 0.05), **QUICK)
    assert (summary.made, len(broke.asked), summary.interrupted) == (50, 4, False)
    acme, bank = sorted(summary.stopped)
    kept = "stopped asking it; every reply so far is kept; run the same command to resume"
    assert acme.startswith("acme: ")
    assert acme.endswith(f"calls in a row failed (last: overloaded (503)); {kept}")
    assert bank == f"bank: the account is empty; {kept}"
    assert 11 <= len(broken.asked) <= 10 + 8 + 1
    assert summary.left == 250 - len(summary.failed) > 236
    assert ledger.orphaned() == []
    again = run_calls(ledger, asked, dict.fromkeys(models, echo()), **QUICK)
    assert (again.made, again.stopped) == (250, ())


def of(address, n, **more):
    return [replace(one, args={"base_url": f"http://{address}/v1"} | more) for one in calls(n)]


def test_a_dead_address_or_a_wrong_key_does_not_stop_another_of_the_same_model(ledger, clock):
    down = ModelError("no connection", retryable=True)
    model = Scripted(lambda call: down if "dead" in call.args["base_url"] else "fine")
    asked = [*of("dead:1", 60), *of("alive:1", 60)]
    summary = run_calls(ledger, asked, {NAME: model}, concurrency=4, patience=CircuitBreakerPolicy(5, 0.3), **QUICK)
    assert summary.made == 60
    assert [line.partition(": ")[0] for line in summary.stopped] == ["reference at http://dead:1/v1"]
    assert model.asked[-1] in {one.key for one in asked[:60]}  # all others had their turn before it was tried once more
    assert run_calls(ledger, asked, {NAME: echo()}, **QUICK).made == 60
    wrong = ModelError("wrong key (401)", retryable=False, quota=True)
    model = Scripted(lambda call: wrong if call.args["api_key_env"] == "OLD_KEY" else "fine")
    asked = [*of("one:1", 30, api_key_env="OLD_KEY"), *of("one:1", 30, api_key_env="NEW_KEY")]
    summary = run_calls(ledger, asked, {NAME: model}, concurrency=4, **QUICK)
    assert summary.made == 30
    assert [line.partition(";")[0] for line in summary.stopped] == ["reference at http://one:1/v1: wrong key (401)"]


def test_a_limit_is_kept_over_all_addresses_of_a_provider(ledger):
    model, limits = Scripted(lambda _call: "fine"), {"reference": Limits(requests_per_minute=4)}

    def stop(done, _planned):
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    asked = [*of("a:1", 4), *of("b:1", 4)]
    summary = run_calls(ledger, asked, {NAME: model}, limits=limits, progress=stop, **QUICK)
    assert (summary.interrupted, summary.made, len(model.asked)) == (True, 4, 4)


def test_the_provider_is_in_the_name_and_no_address_that_is_none_is_shown():
    for model, provider in (
        ("openai/gpt/x", "openai"), ("reference/auditor", "reference"), ("https/example.org/a/b", "https/example.org"),
        ("python/mine:agent", "python/mine:agent"), ("alone", "alone"),
    ):  # fmt: skip
        assert provider_of(model) == provider
    door = endpoint_of(replace(call(), args={"base_url": "http://me:word@host/v1", "api_key_env": ["x"]}))
    assert str(door) == "reference at another address"
    assert endpoint_of(replace(call(), args={"base_url": 7})).address == "7"


# States of the breaker, at times that the test sets

BUSY = ModelError("busy (503)", retryable=True)
STOPPED = "stopped asking it; every reply so far is kept; run the same command to resume"


def failing(times, *, failures=3, now=0.0, error=BUSY):
    """A breaker after so many failures."""
    one = Breaker("acme", CircuitBreakerPolicy(failures, 10.0))
    for _ in range(times):
        one.failed(error, trial=False, now=now)
    return one


def test_a_row_of_failures_is_followed_by_a_rest_and_one_trial_whose_failure_is_the_end():
    one = failing(2)
    assert one.take(0.0) is False
    one.failed(BUSY, trial=False, now=5.0)
    assert (one.wait_s(6.0), one.take(14.9), one.take(15.0), one.take(15.0)) == (9.0, None, True, None)
    assert one.wait_s(15.0) == math.inf
    one.answered()
    assert (one.take(15.0), one.stopped) == (False, None)
    one, other = failing(3), failing(3)
    assert [one.take(20.0), other.take(20.0)] == [True, True]
    for _ in range(2):
        other.failed(BUSY, trial=False, now=21.0)
    assert other.stopped is None
    other.give_back(trial=False)  # what is not sent is free for another
    assert other.take(20.0) is None
    other.give_back(trial=True)
    assert other.take(20.0) is True
    one.failed(BUSY, trial=True, now=21.0)
    assert one.stopped == f"acme: 4 calls in a row failed (last: busy (503)); {STOPPED}"
    assert one.take(1e9) is None
    one.answered()  # what was under way may still come back
    assert one.take(1e9) is None


def test_anything_else_breaks_the_row_and_no_credit_stops_at_once():
    for between in (None, ModelError("bad request", retryable=False)):
        one = failing(2)
        one.answered() if between is None else one.failed(between, trial=False, now=0.0)
        for _ in range(2):
            one.failed(BUSY, trial=False, now=0.0)
        assert one.take(0.0) is False
    one = failing(1, error=ModelError("no credit left", retryable=False, quota=True))
    for _ in range(5):
        one.failed(BUSY, trial=False, now=0.0)
    assert one.stopped == f"acme: no credit left; {STOPPED}"


def test_a_wait_that_was_asked_for_holds_everybody_counts_for_nothing_and_is_never_longer_than_five_minutes():
    one = failing(9, failures=1, error=ModelError("busy", retryable=True, retry_after=7.0), now=1.0)
    one.failed(ModelError("busy", retryable=True, retry_after=2.0), trial=False, now=2.0)
    assert (one.wait_s(3.0), one.take(7.9), one.take(8.0)) == (5.0, None, False)
    asked = (None, -5.0, 2.5, 1e9, math.inf, math.nan)
    waited = [requested_wait_s(ModelError("busy", retryable=True, retry_after=one)) for one in asked]
    assert waited == [0.0, 0.0, 2.5, 300.0, 300.0, 300.0]
