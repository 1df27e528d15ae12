"""A ledger in a file, one in a database for the tests of workers, and each of them in turn."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from engine_calls import JumpingLoop
from provider_cases import CHAT, CLAUDE, GEMINI, OPENAI, bench_of

from assaymark.engine import Ledger, rate_limits


@pytest.fixture
def ledger(tmp_path):
    """An empty ledger in a file."""
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def shared(database):
    """An empty ledger that workers can share."""
    with Ledger.open(database) as opened:
        yield opened


@pytest.fixture(params=["ledger", "shared"])
def either(request):
    """An empty ledger in a file, and one in a database."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def clock(monkeypatch):
    """``clock()``: the time of runs, whose waits take none of ours."""
    loops = []

    def now():
        return loops[-1].now if loops else 0.0

    def made():
        loop = JumpingLoop(now())
        loops.append(loop)
        return loop

    monkeypatch.setattr(asyncio, "new_event_loop", made)
    monkeypatch.setattr(rate_limits, "time", SimpleNamespace(monotonic=now))
    return now


@pytest.fixture(scope="module")
def benches():
    """The four APIs, each with a server and a client."""
    with bench_of(OPENAI) as a, bench_of(CHAT) as b, bench_of(CLAUDE) as c, bench_of(GEMINI) as d:
        yield {bench.case: bench for bench in (a, b, c, d)}


@pytest.fixture
def bench(benches, case):
    return benches[case]
