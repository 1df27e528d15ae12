"""Inputs of agents: generated contexts of one hour each, real cycles, and answers to both without a ledger."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np

from assaymark import records
from assaymark.agents import COMPOSERS as RULES
from assaymark.agents import DecisionKey, agent_call, decision_of, observe, prompt_of, reference_agents, task_text
from assaymark.engine import Reply
from assaymark.market import REGIMES, Cycle, cycles_of, synthetic_minutes
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


NOW = datetime(2000, 1, 3, 12, tzinfo=UTC)
CLASSES = ("equity", "bond", "commodity", "crypto", "real_estate")
_BARS = 60


def made_context(seed: int, *, instruments: int = 0) -> Context:
    """The context of a seed: four to six instruments, two or three of them held within the limits."""
    rng = np.random.default_rng([2000, seed])
    size = instruments or int(rng.integers(4, 7))
    names = [f"Asset {letter}" for letter in "ABCDEF"[:size]]
    moves = rng.normal(rng.normal(0, 2e-4, size), 8e-4, (_BARS - 1, size))
    close = np.round(100 * np.cumprod(np.vstack([np.ones(size), 1 + moves]), axis=0), 4)
    volume = rng.lognormal(4, 0.4, (_BARS, size)).round(0)
    limits = (
        records.Constraint(kind="max_weight", limit=float(rng.choice([0.3, 0.35, 0.4])), unit="nav", scope="holding"),
        records.Constraint(kind="min_cash", limit=float(rng.choice([0.02, 0.05, 0.08])), unit="nav"),
        records.Constraint(kind="max_leverage", limit=float(rng.choice([1.0, 1.2, 1.5])), unit="multiple"),
        records.Constraint(kind="max_orders", limit=float(rng.integers(2, 4)), unit="count"),
        records.Constraint(kind="allow_short", limit=float(rng.integers(0, 2)), unit="count"),
        records.Constraint(kind="fee", limit=10.0, unit="bps", scope="order"),
    )
    prices = {name: float(close[-1, at]) for at, name in enumerate(names)}
    held = [str(name) for name in rng.choice(list(prices), size=int(rng.integers(2, 4)), replace=False)]
    shares = rng.uniform(0.4, 0.95, len(held)) * min(limits[0].limit, 0.9 / len(held))
    positions = {name: round(1e5 * float(w) / prices[name], 4) for name, w in zip(held, shares, strict=True)}
    worth = sum(units * prices[name] for name, units in positions.items())
    cash = round(1e5 - worth, 2)
    times = tuple(NOW - timedelta(minutes=_BARS - 1 - at) for at in range(_BARS))
    facts, series = [], []
    for at, name in enumerate(names):
        ends, column = close[:, at], tuple(close[:, at].tolist())
        bars = dict.fromkeys(("open", "high", "low", "close"), column) | {"volume": tuple(volume[:, at].tolist())}
        series.append(records.Series(instrument=name, interval_s=60, times=times, **bars))
        low, high = ends.min(), ends.max()
        for field, unit, value in (
            ("price", "price", ends[-1]),
            *((f"return_{n}m", "ratio", ends[-1] / ends[-n - (n < 60)] - 1) for n in (5, 15, 60)),
            ("volatility_60m", "ratio", (np.diff(ends) / ends[:-1]).std(ddof=1) * np.sqrt(_BARS)),
            ("range_60m", "ratio", (ends[-1] - low) / (high - low)),
            ("volume_15m", "multiple", volume[-15:, at].mean() / volume[:, at].mean()),
        ):
            facts.append(records.Fact(id=f"{name}.{field}", instrument=name, field=field, value=round(float(value), 6),
                              unit=unit, available_at=NOW, as_of=NOW, source="bars"))  # fmt: skip
    return Context(
        completeness="complete", cutoff=NOW, cutoff_source="neutral clock", facts=tuple(facts), series=tuple(series),
        prompt="Decide which orders to give for the book, keep every limit, and explain your reasons.",
        instruments=tuple(
            records.Instrument(id=name, name=name, asset_class=CLASSES[at % 5]) for at, name in enumerate(names)
        ),
        portfolio=records.Portfolio(currency="USD", cash=cash, nav=round(cash + worth, 2), positions=positions),
        constraints=limits,
    )  # fmt: skip


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
