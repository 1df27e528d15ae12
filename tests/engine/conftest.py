"""A ledger in a file, one in a database for the tests of workers, and each of them in turn."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from engine_calls import JumpingLoop

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
