"""What the tests of pairs share: tasks, pairs, and a way to put pairs before a reference judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from assaymark.judging import pairs as judge_pairs
from assaymark.protocol import JudgeSpec
from assaymark.records import PairCall

Ask = Callable[..., list[PairCall]]


@pytest.fixture(scope="session")
def tasks() -> tuple[judge_pairs.Task, ...]:
    return judge_pairs.finance_tasks()


@pytest.fixture(scope="session")
def pairs(tasks) -> tuple[judge_pairs.Pair, ...]:
    return judge_pairs.build_stimuli(tasks, 7)


@pytest.fixture(scope="session")
def many(tasks) -> tuple[judge_pairs.Pair, ...]:
    """The pairs of sixty tasks: enough to see a planted share."""
    return judge_pairs.build_stimuli(judge_pairs.repeated_tasks(tasks, 60), 11)


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
    judges = judge_pairs.reference_pair_judges()

    def asked(
        pairs: Sequence[judge_pairs.Pair], judge: JudgeSpec, prompts: Sequence[str] = judge_pairs.PAIR_PROMPTS
    ) -> list[PairCall]:
        async def every() -> list[PairCall]:
            planned = judge_pairs.plan_pair_calls(pairs, judge, prompts)
            return [judge_pairs.pair_call(one, await judges[one.call.model].complete(one.call)) for one in planned]

        return asyncio.run(every())

    return asked
