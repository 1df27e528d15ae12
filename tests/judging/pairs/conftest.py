"""Fixtures for tests of pairs: tasks, pairs, and calls of a built-in pair judge."""

from __future__ import annotations

import asyncio

import pytest

from assaymark.judging import pairs as judge_pairs
from assaymark.protocol import JudgeSpec


@pytest.fixture(scope="session")
def tasks():
    return judge_pairs.finance_tasks()


@pytest.fixture(scope="session")
def pairs(tasks):
    return judge_pairs.build_stimuli(tasks, 7)


@pytest.fixture(scope="session")
def many(tasks):
    """The pairs of sixty tasks: enough to see a planted share."""

    def case(task, n):
        return task.model_copy(update={"name": f"{task.name}-{n}", "question": f"{task.question} (Case {n}.)"})

    return judge_pairs.build_stimuli([case(task, n) for n in range(6) for task in tasks], 11)


@pytest.fixture(scope="session")
def spec():
    """``spec(model, trials=.., seed=.., **args)``: a reference judge as a plan names it."""

    def made(model="reference/checklist", *, trials=1, seed=5, **args):
        name = model.partition("/")[2]
        return JudgeSpec(name=name, model=model, family="reference", trials=trials, seed=seed, args=args)

    return made


@pytest.fixture(scope="session")
def ask():
    """``ask(pairs, judge, prompts)``: the records of all calls."""
    judges = judge_pairs.reference_pair_judges()

    async def every(planned):
        return [judge_pairs.pair_call(one, await judges[one.call.model].complete(one.call)) for one in planned]

    return lambda pairs, judge, prompts=judge_pairs.PAIR_PROMPTS: asyncio.run(
        every(judge_pairs.plan_pair_calls(pairs, judge, prompts))
    )
