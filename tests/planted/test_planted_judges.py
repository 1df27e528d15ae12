"""What is planted in the reference pair judges, recovered from their answers inside the intervals, over 200 seeds."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import numpy as np
import pytest
from planted_studies import in_band

from assaymark.judging.pairs import (
    build_stimuli,
    finance_tasks,
    pair_call,
    plan_pair_calls,
    planted_values,
    reference_pair_judges,
)
from assaymark.metrology.datasheet import datasheet_measurements
from assaymark.protocol import JudgeSpec

SEEDS = 200
ARMS = ("tie-allowed", "strict")
PAIRS = build_stimuli(finance_tasks(), 7)
BOTH_ORDERS_GO_TOGETHER = ("delta0.raw", "delta0.tie_rate")
# Shares close to 0 or 1 on few decided pairs: their intervals fall short, by what the floor below allows.
SHORT = {
    "delta0.flip_rate[condition=different_subset,judge=j,prompt=tie-allowed]",
    "criterion.shift[condition=ladder,delta=3,judge=j]",
}
FLOOR = 0.85


def ends(item) -> tuple[float | None, float | None]:
    """The interval that keeps its level: of calls whose two orders go together, the one that says so."""
    if item.name in BOTH_ORDERS_GO_TOGETHER:
        return item.detail["by_task"]["low"], item.detail["by_task"]["high"]
    return item.low, item.high


def covered(model: str, arms: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """How often each planted value lay inside its interval, and how often there was one."""
    inside: dict[str, int] = defaultdict(int)
    made: dict[str, int] = defaultdict(int)
    answering = reference_pair_judges()[model]
    loop = asyncio.new_event_loop()
    try:
        for seed in range(SEEDS):
            judge = JudgeSpec(name="j", model=model, family="f", seed=seed)
            planned = plan_pair_calls(PAIRS, judge, arms)

            async def answers(planned=planned):
                return [await answering.complete(one.call) for one in planned]

            replies = loop.run_until_complete(answers())
            calls = [pair_call(one, reply) for one, reply in zip(planned, replies, strict=True)]
            planted = planted_values(judge, arms)
            for item in datasheet_measurements(calls, rng=np.random.default_rng(seed)):
                low, high = ends(item) if item.id in planted and item.value is not None else (None, None)
                if low is not None and high is not None:
                    made[item.id] += 1
                    inside[item.id] += low - 1e-9 <= planted[item.id] <= high + 1e-9
    finally:
        loop.close()
    return inside, made


@pytest.mark.parametrize(
    ("model", "arms"),
    [("reference/slot-biased", ARMS[:1]), ("reference/surface-swayed", ARMS[:1]), ("reference/checklist", ARMS)],
)
def test_every_planted_value_is_recovered_at_the_stated_rate(model, arms):
    """At least the stated 95 %: no count below the central 99.9 % band; shares that are nearly exact lie above it."""
    inside, made = covered(model, arms)
    assert len(made) > 50 * len(arms)
    short = {
        name: inside[name] / n
        for name, n in made.items()
        if not in_band(inside[name], n, 0.95) and inside[name] < 0.95 * n
    }
    assert set(short) <= SHORT, short
    assert all(rate >= FLOOR for rate in short.values())
    assert sum(inside.values()) / sum(made.values()) >= 0.95
