"""How a run bears with its providers: it waits when asked to, stops asking who fails, and goes on with the others."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from dataclasses import replace

from engine_calls import Places, Scripted, call, calls, echo

from assaymark.engine import CircuitBreakerPolicy, Limits, endpoint_of, run_calls
from assaymark.errors import ModelError

NAME = "reference/echo"
QUICK = {"backoff_s": 0.001, "deadline_s": 5.0}


class Clocked(Scripted):
    """Notes when it was asked."""

    def __init__(self, answer, **more):
        super().__init__(answer, **more)
        self.times = []

    async def complete(self, call):
        self.times.append(time.monotonic())
        return await super().complete(call)


def busy_until(times, retry_after):
    """Turns each call away so many times, with a time to wait."""
    seen = Counter()

    def answer(call):
        seen[call.key] += 1
        turned_away = ModelError("rate limited (429)", retryable=True, retry_after=retry_after)
        return turned_away if seen[call.key] <= times else "fine"

    return answer


def test_a_wait_that_was_asked_for_is_kept_is_no_failure_and_ends_too(ledger, monkeypatch):
    model = Clocked(busy_until(6, 0.04))
    summary = run_calls(ledger, [call()], {NAME: model}, attempts=2, patience=CircuitBreakerPolicy(1, 0.0), **QUICK)
    assert (summary.made, summary.failed, summary.put_off, summary.retried) == (1, (), 6, 6)
    gaps = [after - before for before, after in zip(model.times, model.times[1:], strict=False)]
    assert min(gaps) >= 0.04
    assert ledger.attempt_counts([call().key]) == {call().key: 7}
    monkeypatch.setattr("assaymark.engine.runner._MOST_PUT_OFF", 3)
    (failure,) = run_calls(ledger, [call(1)], {NAME: Clocked(busy_until(99, 0.0))}, **QUICK).failed
    assert (failure.attempts, failure.reason) == (4, "rate limited (429)")


def test_while_a_provider_asks_to_wait_nobody_asks_it(ledger):
    first = call(0).key
    turned = []

    def answer(call):
        if call.key == first and not turned:
            turned.append(time.monotonic())
            return ModelError("busy (503)", retryable=True, retry_after=0.15)
        return "fine"

    model = Clocked(answer, wait=0.01)
    summary = run_calls(ledger, calls(30), {NAME: model, "other/x": echo()}, concurrency=2, **QUICK)
    assert summary.made == 30
    meanwhile = [at for at in model.times if turned[0] < at < turned[0] + 0.15]
    assert len(meanwhile) <= 1  # the other worker may have passed the gate just before


def test_a_provider_that_keeps_failing_is_not_asked_any_more_and_the_others_are(ledger):
    broken = Scripted(lambda _call: ModelError("overloaded (503)", retryable=True), wait=0.001)
    models = {"acme/x": broken, "acme/y": broken, NAME: echo()}
    asked = [*calls(100, model="acme/x"), *calls(100, model="acme/y"), *calls(50)]
    summary = run_calls(ledger, asked, models, concurrency=4, patience=CircuitBreakerPolicy(10, 0.05), **QUICK)
    assert summary.made == 50
    (line,) = summary.stopped
    assert line.startswith("acme: ")
    assert line.endswith(
        "calls in a row failed (last: overloaded (503)); stopped asking it; every reply so far is kept, "
        "run the same command to go on"
    )
    assert 11 <= len(broken.asked) <= 10 + 8 + 1
    assert summary.left == 200 - len(summary.failed) > 190
    assert not summary.interrupted
    assert ledger.orphaned() == []
    again = run_calls(ledger, asked, {"acme/x": echo(), "acme/y": echo(), NAME: echo()}, **QUICK)
    assert (again.made, again.stopped) == (200, ())


def test_an_outage_that_is_over_after_the_rest_costs_nothing(ledger):
    failed = []

    def answer(call):
        if len(failed) < 5:
            failed.append(time.monotonic())
            return ModelError("overloaded (503)", retryable=True)
        return "fine"

    model = Clocked(answer)
    summary = run_calls(ledger, calls(20), {NAME: model}, concurrency=5, patience=CircuitBreakerPolicy(5, 0.1), **QUICK)
    assert (summary.made, summary.stopped, summary.failed) == (20, (), ())
    assert min(at for at in model.times if at > failed[-1]) >= failed[-1] + 0.1


def test_without_credit_nothing_more_is_sent(ledger):
    broke = Scripted(lambda _call: ModelError("the account is empty", retryable=False, quota=True), wait=0.001)
    models = {"acme/x": broke, NAME: echo()}
    summary = run_calls(ledger, [*calls(50, model="acme/x"), *calls(9)], models, concurrency=3, **QUICK)
    assert (summary.made, len(broke.asked), len(summary.failed), summary.left) == (9, 3, 3, 47)
    assert summary.stopped[0].startswith("acme: the account is empty; stopped asking it")


def at(address, n, **more):
    return [replace(one, args={"base_url": f"http://{address}/v1"} | more) for one in calls(n)]


def down(args):
    return ModelError("no connection", retryable=True) if "dead" in args["base_url"] else "fine"


def test_a_dead_address_does_not_stop_another_of_the_same_model(ledger):
    model = Places(down)
    asked = [*at("dead:1", 60), *at("alive:1", 60)]
    summary = run_calls(ledger, asked, {NAME: model}, concurrency=4, patience=CircuitBreakerPolicy(5, 0.3), **QUICK)
    assert summary.made == 60
    (line,) = summary.stopped
    assert line.startswith("reference at http://dead:1/v1: ")
    assert "dead" in model.asked[-1]["base_url"]  # all others had their turn before it was tried once more
    assert run_calls(ledger, asked, {NAME: echo()}, **QUICK).made == 60


def test_a_wrong_key_does_not_stop_another_key_at_the_same_address(ledger):
    wrong = ModelError("wrong key (401)", retryable=False, quota=True)
    model = Places(lambda args: wrong if args["api_key_env"] == "OLD_KEY" else "fine")
    asked = [*at("one:1", 30, api_key_env="OLD_KEY"), *at("one:1", 30, api_key_env="NEW_KEY")]
    summary = run_calls(ledger, asked, {NAME: model}, concurrency=4, **QUICK)
    assert summary.made == 30
    assert [line.partition(";")[0] for line in summary.stopped] == ["reference at http://one:1/v1: wrong key (401)"]


def test_a_limit_is_kept_over_all_addresses_of_a_provider(ledger):
    model, limits = Places(lambda _args: "fine"), {"reference": Limits(requests_per_minute=4)}

    def stop(done, _planned):
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    asked = [*at("a:1", 4), *at("b:1", 4)]
    summary = run_calls(ledger, asked, {NAME: model}, limits=limits, progress=stop, **QUICK)
    assert summary.interrupted
    assert summary.made == len(model.asked) == 4


def test_no_address_that_is_none_is_shown():
    door = endpoint_of(replace(call(), args={"base_url": "http://me:word@host/v1", "api_key_env": ["x"]}))
    assert str(door) == "reference at another address"
    assert endpoint_of(replace(call(), args={"base_url": 7})).address == "7"
