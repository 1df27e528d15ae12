"""What the tests of pairs share: tasks, pairs, and a way to put pairs before a reference judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from assaymark.judging.pairs import (
    PAIR_PROMPTS,
    Pair,
    Task,
    build_stimuli,
    finance_tasks,
    pair_call,
    plan_pair_calls,
    reference_pair_judges,
    repeated_tasks,
)
from assaymark.protocol import JudgeSpec
from assaymark.records import PairCall

Ask = Callable[..., list[PairCall]]


@pytest.fixture(scope="session")
def tasks() -> tuple[Task, ...]:
    return finance_tasks()


@pytest.fixture(scope="session")
def pairs(tasks) -> tuple[Pair, ...]:
    return build_stimuli(tasks, 7)


@pytest.fixture(scope="session")
def many(tasks) -> tuple[Pair, ...]:
    """The pairs of sixty tasks: enough to see a planted share."""
    return build_stimuli(repeated_tasks(tasks, 60), 11)


@pytest.fixture(scope="session")
def spec() -> Callable[..., JudgeSpec]:
    """``spec(model, trials=.., seed=.., **args)``: a reference judge as a plan names it."""

    def made(model: str = "reference/checklist", *, trials: int = 1, seed: int = 5, **args: Any) -> JudgeSpec:
        name = model.partition("/")[2]
        return JudgeSpec(name=name, model=model, family="reference", trials=trials, seed=seed, args=args)

    return made


@pytest.fixture(scope="session")
def ask() -> Ask:
    """``ask(pairs, judge, prompts)``: the records of all calls."""
    judges = reference_pair_judges()

    def asked(pairs: Sequence[Pair], judge: JudgeSpec, prompts: Sequence[str] = PAIR_PROMPTS) -> list[PairCall]:
        async def every() -> list[PairCall]:
            planned = plan_pair_calls(pairs, judge, prompts)
            return [pair_call(one, await judges[one.call.model].complete(one.call)) for one in planned]

        return asyncio.run(every())

    return asked
