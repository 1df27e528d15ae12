"""Large replies of many calls at once: each is kept, and only a few are in memory at any time."""

from __future__ import annotations

import asyncio
import json

import pytest
from agent_servers import agent_call, http, serving
from engine_calls import calls

from assaymark.engine import Reply, run_calls
from assaymark.engine.loop import PLACES, Slot, current_slot
from assaymark.engine.providers.http_agent import HttpAgent
from assaymark.errors import ModelError

N = 12


class Large:
    """A model whose every reply is large, and which sees how many of them there are at once."""

    def __init__(self, ledger, fails):
        self._ledger, self._fails, self._failed = ledger, fails, set()
        self.read, self.most = [], 0

    async def complete(self, call):
        place = current_slot()
        await place.take()
        await place.take()
        await asyncio.sleep(0.002)
        if self._fails and call.key not in self._failed:
            self._failed.add(call.key)
            raise ModelError("cut", retryable=True)
        self.read.append(call.key)
        self.most = max(self.most, len(self.read) - sum(1 for _ in self._ledger.replies(self.read)))
        return Reply(text="long", model=call.model)


@pytest.mark.parametrize("fails", [False, True])
def test_only_a_few_are_there_until_they_are_on_the_disk_and_a_failed_attempt_gives_its_place_back(ledger, fails):
    asked = calls(N)
    model = Large(ledger, fails)
    assert run_calls(ledger, asked, {asked[0].model: model}, concurrency=N, backoff_s=0.001).failed == ()
    assert 1 <= model.most <= PLACES
    assert sum(1 for _ in ledger.replies(call.key for call in asked)) == N


def test_a_place_that_is_given_back_before_it_came_is_free():
    async def play():
        room = asyncio.Semaphore(1)
        first, second, third = Slot(room), Slot(room), Slot(room)
        await first.take()
        waiting = asyncio.create_task(second.take())
        await asyncio.sleep(0)
        second.leave()
        first.leave()
        await waiting
        await asyncio.wait_for(third.take(), 1)
        return first.taken, second.taken, third.taken

    assert asyncio.run(play()) == (False, False, True)


def test_long_answers_of_an_agent_are_kept_and_never_asked_again(ledger):
    text = json.dumps({"rationale": "x" * 2_500_000})
    with serving(http(text)) as server:
        asked = [agent_call(server.name, trial=trial) for trial in range(1, 7)]
        models = {server.name: HttpAgent(server.url)}
        for _ in range(2):
            run_calls(ledger, asked, models, concurrency=6)
        assert len(server.requests) == 6
    for _, reply in ledger.replies(call.key for call in asked):
        assert json.loads(reply.text)["failure"] == "too large"
        assert (reply.finish, reply.raw) == ("failed", text)
