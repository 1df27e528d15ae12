"""Reference agents before daily bars: the same rules by bars, and no sentence about minutes or hours."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from assaymark.agents import reference_agents
from assaymark.agents.llm import agent_call, prompt_of
from assaymark.market.cycles import cycles_of, synthetic_minutes
from assaymark.protocol import AgentSpec

CONTEXT = next(cycles_of(synthetic_minutes(0), ["recent"], cycles=1, bars=60, seed=1)).context


def reply(name: str, context) -> dict:
    spec = AgentSpec(name="one", family="reference", model=name)
    call = agent_call(spec, prompt_of(context))
    return json.loads(asyncio.run(reference_agents()[name].complete(call)).text)


@pytest.mark.parametrize("name", sorted(set(reference_agents()) - {"reference/mixed"}))
@pytest.mark.parametrize("volume", [True, False])
def test_daily_bars_are_spoken_of_as_days(name, volume):
    series = [replace(one, interval_s=86_400, **({} if volume else {"volume": ()})) for one in CONTEXT.series]
    daily = reply(name, replace(CONTEXT, series=tuple(series)))
    minutes = reply(name, CONTEXT)
    assert daily["orders"] == minutes["orders"]
    assert not re.search(r"\b(minutes?|hours?)\b", daily["rationale"])
    assert daily["rationale"] == minutes["rationale"] or "days" in daily["rationale"] or "weeks" in daily["rationale"]
    assert volume or "mean volume" not in daily["rationale"]
