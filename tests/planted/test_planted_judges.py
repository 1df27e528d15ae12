"""What is planted in the reference pair judges, recovered from their answers inside the intervals, over many seeds."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from planted_studies import in_band
from repetitions import over_seeds

from assaymark.judging import pairs
from assaymark.judging.pairs import reference
from assaymark.metrology import datasheet
from assaymark.prompting import ReplyForm
from assaymark.protocol import JudgeSpec

SEEDS = 60
ARMS = ("tie-allowed", "strict")
PAIRS = pairs.build_stimuli(pairs.finance_tasks(), 7)


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    """What is the same under every seed is worked out once: prompts and replies taken apart, the planted properties."""
    read = cache(reference.read_pair)
    monkeypatch.setattr(reference, "read_pair", lambda parts: read(tuple(parts)))
    for owner, name in ((reference, "_nearly_same"), (ReplyForm, "parse")):
        monkeypatch.setattr(owner, name, cache(getattr(owner, name)))
    problems = cache(partial(reference.pair_argument_problems, args={}))
    monkeypatch.setattr(reference, "pair_argument_problems", lambda model, _: problems(model))


def covered(model: str, arms: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """How often each planted value lay inside its interval, and how often there was one."""
    inside: dict[str, int] = defaultdict(int)
    made: dict[str, int] = defaultdict(int)
    judge = JudgeSpec(name="j", model=model, family="f", seed=0)
    planned = pairs.plan_pair_calls(PAIRS, judge, arms)
    planted = pairs.planted_values(judge, arms)
    assert planted == pairs.planted_values(judge.model_copy(update={"seed": 1}), arms)

    def one(seed: int) -> list[tuple[str, bool]]:
        found = datasheet.datasheet_measurements(answered(planned, seed), rng=np.random.default_rng(seed))
        limits = [(item.id, item.low, item.high) for item in found if item.id in planted and item.value is not None]
        return [
            (name, low - 1e-9 <= planted[name] <= high + 1e-9)
            for name, low, high in limits
            if low is not None and high is not None
        ]

    for hits in over_seeds(one, range(SEEDS)):
        for name, hit in hits:
            made[name] += 1
            inside[name] += hit
    return inside, made


def answered(planned, seed: int):
    """The calls of one plan, asked of the judge that has this seed."""
    answering = pairs.reference_pair_judges()[planned[0].call.model]

    async def asked():
        return [await answering.complete(replace(each.call, seed=seed)) for each in planned]

    return [pairs.pair_call(each, reply) for each, reply in zip(planned, asyncio.run(asked()), strict=True)]


def test_a_seed_changes_nothing_else_in_a_plan():
    """Why one plan serves all seeds."""
    zero, one = (
        pairs.plan_pair_calls(PAIRS, JudgeSpec(name="j", model="reference/checklist", family="f", seed=seed), ARMS)
        for seed in (0, 1)
    )
    assert [replace(each.call, seed=1) for each in zero] == [each.call for each in one]


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
    assert not short
    assert sum(inside.values()) / sum(made.values()) >= 0.95
