"""When a provider is not asked any more: states of the breaker, at times that the test sets."""

from __future__ import annotations

import math

import pytest

from assaymark.engine import Patience, provider_of
from assaymark.engine.rate_limits import Breaker, asked_wait_s
from assaymark.errors import ModelError

BUSY = ModelError("busy (503)", retryable=True)
BROKE = ModelError("no credit left", retryable=False, quota=True)
WRONG = ModelError("bad request", retryable=False)


def breaker(failures=3, cool_down_s=10.0):
    return Breaker("acme", Patience(failures, cool_down_s))


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


def test_a_failed_trial_is_the_end():
    one = breaker()
    fail(one, 3)
    assert one.take(20.0) is True
    one.failed(BUSY, trial=True, now=21.0)
    assert one.stopped == (
        "acme: 4 calls in a row failed (last: busy (503)); stopped asking it; every reply so far is kept, "
        "run the same command to go on"
    )
    assert one.take(1e9) is None
    one.answered()  # what was under way may still come back
    assert one.take(1e9) is None


def test_a_late_failure_is_not_the_trial():
    one = breaker()
    fail(one, 3)
    assert one.take(20.0) is True
    fail(one, 2, now=21.0)
    assert one.stopped is None


def test_a_trial_that_is_not_sent_is_free_for_another():
    one = breaker()
    fail(one, 3)
    assert one.take(20.0) is True
    one.give_back(trial=False)
    assert one.take(20.0) is None
    one.give_back(trial=True)
    assert one.take(20.0) is True


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


@pytest.mark.parametrize(("failures", "cool_down_s", "name"), [(0, 1, "failures"), (1, -1, "cool_down_s")])
def test_a_patience_out_of_range_is_refused(failures, cool_down_s, name):
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        Patience(failures, cool_down_s)


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("openai/gpt/x", "openai"),
        ("reference/auditor", "reference"),
        ("https/example.org/a/b", "https/example.org"),
        ("python/mine:agent", "python/mine:agent"),
        ("alone", "alone"),
    ],
)
def test_the_provider_is_in_the_name(model, provider):
    assert provider_of(model) == provider
