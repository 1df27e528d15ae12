"""Limits a minute, and when a provider is not asked any more: states of the breaker, at times that the test sets."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from contextlib import closing
from itertools import count

import pytest
from engine_calls import Scripted, call, calls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assaymark.engine import (
    CallSpec,
    CircuitBreakerPolicy,
    Ledger,
    Limits,
    Message,
    Reply,
    Text,
    provider_of,
    run_calls,
    run_worker,
)
from assaymark.engine.rate_limits import Breaker, asked_wait_s, tokens_expected
from assaymark.errors import LedgerError, ModelError

NAME = "reference/echo"
NUMBERS = count()


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("assaymark.engine.database._PRAGMAS", ("synchronous=OFF",))  # nothing here is about the disk
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def short(monkeypatch):
    """Minutes of 0.4 seconds."""
    for name, value in {"_WINDOW_S": 0.4, "_SLACK_S": 0.3, "_BUCKET_S": 0.02}.items():
        monkeypatch.setattr(f"assaymark.engine.rate_limits.{name}", value)


def at(ledger, clock):
    """Let the clock of the ledger stand."""
    ledger._store.now = lambda _connection: clock


def ask(ledger, n, limits, *, tokens=1, corrections=None, provider="acme"):
    return ledger.reserve(provider, limits, [tokens] * n, corrections or {})


def most_in_a_window(times, seconds):
    return max(sum(start <= at < start + seconds for at in times) for start in times)


def test_what_there_is_room_for_is_granted_in_order(ledger):
    at(ledger, 1000.0)
    limits = Limits(requests_per_minute=5)
    assert ask(ledger, 3, limits)[0] == 3
    grant = ask(ledger, 4, limits)
    assert grant[:2] == (2, 1000)
    assert 62 < grant[2] < 64
    assert ask(ledger, 4, limits)[0] == 0
    assert ledger.reserve("other", limits, [1], {})[0] == 1
    at(ledger, 1000.0 + grant[2])
    assert ask(ledger, 9, limits)[0] == 5


def test_tokens_count_too_and_a_reply_corrects_them(ledger):
    at(ledger, 1000.0)
    limits = Limits(tokens_per_minute=1000)
    first = ask(ledger, 4, limits, tokens=300)
    assert first[0] == 3
    assert ask(ledger, 1, limits, tokens=300, corrections={first[1]: -500})[0] == 1
    assert ask(ledger, 1, limits, tokens=1, corrections={first[1]: 400})[0] == 0


def test_a_call_that_is_larger_than_a_minute_goes_alone_and_no_clock_blocks_for_long(ledger):
    for clock in (1000.0, 1070.0, 1070.0 - 86_400):
        at(ledger, clock)
        assert ask(ledger, 2, Limits(tokens_per_minute=100), tokens=5000)[0] == 1
    at(ledger, 1e6)
    assert ask(ledger, 5, Limits(requests_per_minute=5))[0] == 5
    at(ledger, 1e6 - 86_400)  # it was set back
    assert ask(ledger, 5, Limits(requests_per_minute=5))[0] == 5


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.floats(0, 40), st.integers(1, 4)), min_size=1, max_size=10), st.integers(1, 6))
def test_no_minute_gets_more_than_its_limit(ledger, asks, limit):
    clock, sent, provider = 1000.0, [], f"p{next(NUMBERS)}"
    for after, n in asks:
        clock += after
        at(ledger, clock)
        sent += [clock] * ask(ledger, n, Limits(requests_per_minute=limit), provider=provider)[0]
    assert most_in_a_window(sent, 60) <= limit


def test_an_earlier_ledger_gets_its_table_when_limits_are_set(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as opened:
        assert ask(opened, 1, Limits(requests_per_minute=1))[0] == 1
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as raw:
        assert raw.execute("select count(*) from windows").fetchone() == (2,)


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        (Limits, {"requests_per_minute": 0}, "requests_per_minute"),
        (Limits, {"tokens_per_minute": 0}, "tokens_per_minute"),
        (CircuitBreakerPolicy, {"failures": 0}, "failures"),
        (CircuitBreakerPolicy, {"failures": 1, "cool_down_s": -1}, "cool_down_s"),
    ],
)
def test_a_limit_or_patience_out_of_range_is_refused(kind, given, name):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        kind(**given)


def test_tokens_are_guessed_from_the_prompt_and_the_most_that_may_come():
    spec = CallSpec(model="a/b", messages=(Message("user", (Text.of("x" * 300),)),), template="t")
    assert tokens_expected(spec) == 100 + 1024
    asked = CallSpec(model="a/b", messages=spec.messages, template="t", args={"max_tokens": 50})
    assert tokens_expected(asked) == 150


class Timed(Scripted):
    def __init__(self):
        super().__init__(lambda _call: "fine")
        self.times = []

    async def complete(self, call):
        self.times.append(time.monotonic())
        reply = await super().complete(call)
        return Reply(text=reply.text, model="m", input_tokens=10, output_tokens=10)


def test_a_run_stays_below_its_limits(ledger, short):
    model, free = Timed(), Timed()
    limits = {"reference": Limits(requests_per_minute=8)}
    asked = [*calls(14), *calls(5, model="other/x")]
    summary = run_calls(ledger, asked, {NAME: model, "other/x": free}, limits=limits)
    assert summary.made == 19
    assert most_in_a_window(model.times, 0.4) <= 8
    assert free.times[-1] < model.times[8]


def test_where_there_is_room_nobody_waits(ledger, monkeypatch):
    async def wait(_gate, seconds):
        raise AssertionError(f"waited {seconds} s")

    monkeypatch.setattr("assaymark.engine.rate_limits.Gate.pause", wait)
    limits = {"reference": Limits(requests_per_minute=200)}
    assert run_calls(ledger, calls(100), {NAME: Timed()}, concurrency=3, limits=limits).made == 100


def test_tokens_that_were_not_taken_make_room(ledger, monkeypatch):
    """Without it this would take three minutes more than it does."""
    monkeypatch.setattr("assaymark.engine.rate_limits._LOOK_AGAIN_S", 0.01)
    model, limits = Timed(), {"reference": Limits(tokens_per_minute=3 * tokens_expected(call()))}
    assert run_calls(ledger, calls(12), {NAME: model}, concurrency=2, limits=limits).made == 12
    assert model.times[-1] - model.times[0] < 60


def test_an_unwritable_ledger_ends_the_run(ledger, monkeypatch):
    def broken(*_args):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "reserve", broken)
    with pytest.raises(LedgerError, match="the disk is full"):
        run_calls(ledger, calls(5), {NAME: Timed()}, limits={"reference": Limits(requests_per_minute=8)})


def test_two_workers_together_stay_below_the_limit(database, short):
    model, limits = Timed(), {"reference": Limits(requests_per_minute=10)}
    with Ledger.open(database) as one, Ledger.open(database) as two:
        one.plan(calls(18))
        made = []

        def work(ledger):
            made.append(run_worker(ledger, {NAME: model}, concurrency=6, limits=limits).made)

        threads = [threading.Thread(target=work, args=(ledger,)) for ledger in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(made) == 18 == len(model.times)
    assert most_in_a_window(model.times, 0.4) <= 10


BUSY = ModelError("busy (503)", retryable=True)
BROKE = ModelError("no credit left", retryable=False, quota=True)
WRONG = ModelError("bad request", retryable=False)


def breaker(failures=3, cool_down_s=10.0):
    return Breaker("acme", CircuitBreakerPolicy(failures, cool_down_s))


def fail(one, times, *, now=0.0, error=BUSY):
    for _ in range(times):
        one.failed(error, trial=False, now=now)


def test_a_row_of_failures_is_followed_by_a_rest_and_one_trial():
    one = breaker()
    fail(one, 2)
    assert one.take(0.0) is False
    fail(one, 1, now=5.0)
    assert one.wait_s(6.0) == 9.0
    assert one.take(14.9) is None
    assert one.take(15.0) is True
    assert one.take(15.0) is None
    assert one.wait_s(15.0) == math.inf
    one.answered()
    assert one.take(15.0) is False
    assert one.stopped is None


def test_a_failed_trial_is_the_end_and_a_late_failure_is_none():
    one, other = breaker(), breaker()
    for made in (one, other):
        fail(made, 3)
        assert made.take(20.0) is True
    fail(other, 2, now=21.0)
    assert other.stopped is None
    other.give_back(trial=False)  # what is not sent is free for another
    assert other.take(20.0) is None
    other.give_back(trial=True)
    assert other.take(20.0) is True
    one.failed(BUSY, trial=True, now=21.0)
    assert one.stopped == (
        "acme: 4 calls in a row failed (last: busy (503)); stopped asking it; every reply so far is kept, "
        "run the same command to go on"
    )
    assert one.take(1e9) is None
    one.answered()  # what was under way may still come back
    assert one.take(1e9) is None


@pytest.mark.parametrize("between", [None, WRONG], ids=["a reply", "a refusal"])
def test_anything_else_breaks_the_row(between):
    one = breaker()
    fail(one, 2)
    one.answered() if between is None else one.failed(between, trial=False, now=0.0)
    fail(one, 2)
    assert one.take(0.0) is False


def test_no_credit_stops_at_once():
    one = breaker()
    one.failed(BROKE, trial=False, now=0.0)
    fail(one, 5)
    assert one.stopped == (
        "acme: no credit left; stopped asking it; every reply so far is kept, run the same command to go on"
    )


def test_a_wait_that_was_asked_for_holds_everybody_and_counts_for_nothing():
    one = breaker(failures=1)
    fail(one, 9, error=ModelError("busy", retryable=True, retry_after=7.0), now=1.0)
    fail(one, 1, error=ModelError("busy", retryable=True, retry_after=2.0), now=2.0)
    assert one.wait_s(3.0) == 5.0
    assert (one.take(7.9), one.take(8.0)) == (None, False)


@pytest.mark.parametrize(
    ("asked", "waited"), [(None, 0.0), (-5.0, 0.0), (2.5, 2.5), (1e9, 300.0), (math.inf, 300.0), (math.nan, 300.0)]
)
def test_a_wait_is_never_longer_than_five_minutes(asked, waited):
    assert asked_wait_s(ModelError("busy", retryable=True, retry_after=asked)) == waited


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("openai/gpt/x", "openai"), ("reference/auditor", "reference"), ("https/example.org/a/b", "https/example.org"),
        ("python/mine:agent", "python/mine:agent"), ("alone", "alone"),
    ],
)  # fmt: skip
def test_the_provider_is_in_the_name(model, provider):
    assert provider_of(model) == provider
