"""The tracer is away for the repetitions only, and comes back whatever happens."""

from __future__ import annotations

import sys

import pytest
from repetitions import over_seeds, untraced


def watched(work):
    """What ``work`` does under a tracer of our own, and whether that is still there afterwards."""
    before = sys.gettrace()

    def tracer(*_):
        return None

    sys.settrace(tracer)
    try:
        work()
        return sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_every_seed_is_run_and_the_first_is_traced():
    seen = []
    assert watched(lambda: seen.extend(over_seeds(lambda seed: (seed, sys.gettrace() is not None), range(3, 6))))
    assert seen == [(3, True), (4, False), (5, False)]


def test_the_tracer_returns_after_an_error():
    def fail():
        raise KeyError("x")

    def work():
        with pytest.raises(KeyError, match="x"):
            untraced(fail)

    assert watched(work)
