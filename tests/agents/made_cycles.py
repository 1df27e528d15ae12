"""Inputs of agents: generated contexts of one hour each, real cycles, and answers to both without a ledger."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import cache

import numpy as np

from assaymark import records
from assaymark.agents import COMPOSERS as RULES
from assaymark.agents import DecisionKey, agent_call, decision_of, observe, prompt_of, reference_agents, task_text
from assaymark.engine import Reply
from assaymark.market import REGIMES, Bars, Cycle, cycles, cycles_of, synthetic_minutes
from assaymark.prompting import signature
from assaymark.protocol import AgentSpec
from assaymark.records import Context, Decision

MODELS = reference_agents()


@cache
def some_cycles(seed: int = 4, count: int = 2, regimes: tuple[str, ...] = REGIMES) -> tuple[Cycle, ...]:
    return tuple(cycles_of(synthetic_minutes(0), regimes, cycles=count, bars=60, seed=seed, prompt=task_text()))


def spec(model: str, name: str = "one", **values) -> AgentSpec:
    return AgentSpec(name=name, family="maker", model=model, **values)


def asked(agent: AgentSpec, cycle: Cycle) -> tuple[Decision, Reply]:
    """Return an agent's decision on a cycle, and its reply."""
    call = agent_call(agent, prompt_of(cycle.context))
    reply = asyncio.run(MODELS[agent.model].complete(call))
    place = DecisionKey("test", cycle.regime, cycle.number, records.content_id(cycle.context))
    return decision_of(agent, cycle.context, place, reply, call.key), reply


CLASSES = ("equity", "bond", "commodity", "crypto", "real_estate")
_BARS = 60


def made_context(seed: int) -> Context:
    """The context of a seed: an hour of four to six instruments, two or three of them held within the limits."""
    rng = np.random.default_rng([2000, seed])
    size = int(rng.integers(4, 7))
    moves = rng.normal(rng.normal(0, 2e-4, size), 8e-4, (_BARS - 1, size))
    closes = np.round(100 * np.cumprod(np.vstack([np.ones(size), 1 + moves]), axis=0), 4)
    volumes = rng.lognormal(4, 0.4, (_BARS, size)).round(0)
    times = 60 * np.arange(1 - _BARS, 1)
    bars = [Bars(f"Asset {letter}", times, *[close] * 4, volume)
            for letter, close, volume in zip("ABCDEF", closes.T, volumes.T, strict=False)]  # fmt: skip
    classes = {bar.instrument: CLASSES[at % 5] for at, bar in enumerate(bars)}
    return cycles.context_of(bars, classes, rng, task_text())


COMPOSERS = ("momentum", "contrarian", "minimum-variance", "equal-weight", "steward")
STYLES = ("alder", "birch", "cedar", "dogwood", "elder")


def honest_decision(seed: int, agent: str = "momentum", *, text: str | None = None) -> tuple[Context, Decision]:
    """Return the context of a seed and a built-in agent's decision on it, with another ``text`` if given."""
    context = made_context(seed)
    draft = RULES[f"reference/{agent}"](observe(context), signature(STYLES[COMPOSERS.index(agent)]))
    decision = Decision(
        record_id=f"{agent}-{seed}", episode_id=f"made-{seed}", step=1, cluster=f"regime {seed % 5}",
        decided_at=context.cutoff + timedelta(seconds=5), agent=records.Agent(id=agent, family=f"ref-{agent}"),
        context_id=records.content_id(context), actions=draft.orders, format="orders-v1",
        rationales=(records.Rationale(text=draft.text if text is None else text, kind="summary"),),
        provenance=records.Provenance(source="test"), confidence=draft.confidence,
    )  # fmt: skip
    return context, decision
