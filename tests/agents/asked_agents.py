"""Agents asked about real cycles, without a ledger: for tests."""

from __future__ import annotations

import asyncio
from functools import cache

from assaymark.agents import LLMAgent, Place, prompt_of, reference_agents, task_text
from assaymark.engine import Reply
from assaymark.market import REGIMES, Cycle, cycles_of, synthetic_minutes
from assaymark.protocol import AgentSpec
from assaymark.records import Decision, content_id

MODELS = reference_agents()


@cache
def some_cycles(seed: int = 4, count: int = 2, regimes: tuple[str, ...] = REGIMES) -> tuple[Cycle, ...]:
    return tuple(cycles_of(synthetic_minutes(0), regimes, cycles=count, bars=60, seed=seed, prompt=task_text()))


def spec(model: str, name: str = "one", **values) -> AgentSpec:
    return AgentSpec(name=name, family="maker", model=model, **values)


def asked(agent: AgentSpec, cycle: Cycle) -> tuple[Decision, Reply]:
    """What an agent decides on a cycle."""
    one = LLMAgent(agent)
    call = one.call(prompt_of(cycle.context))
    reply = asyncio.run(MODELS[agent.model].complete(call))
    place = Place("test", cycle.regime, cycle.number, content_id(cycle.context))
    return one.decide(cycle.context, place, reply, key=call.key), reply
