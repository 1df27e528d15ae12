"""The cost of a judge datasheet's stimuli: pairs of a thousand tasks with manifest and gates, and a whole run.

The thousand tasks are the ten that come with the package, repeated with other numbers. A run is the 900 calls of ten
tasks, in process: plan, answer, parse.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from assaymark.judging.pairs import (
    Task,
    build_stimuli,
    check,
    finance_tasks,
    manifest_of,
    pair_call,
    plan_pair_calls,
    reference_pair_judges,
)
from assaymark.protocol import JudgeSpec

TASKS, BUDGET_S = 1_000, 2.0
JUDGE = JudgeSpec(name="clean", model="reference/checklist", family="reference", seed=1)


def timed(work: Callable[[], object]) -> tuple[float, str]:
    """CPU seconds of ``work``, and those with its wall seconds in words."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu, f"{cpu:.2f} s ({wall:.2f} s on the clock)"


def repeated(count: int) -> tuple[Task, ...]:
    """The tasks of the package again and again, each repetition with other digits in the sentences of its texts."""
    tasks, repeats = finance_tasks(), list[Task]()
    for at in range(count):
        turn, task = at // len(tasks), tasks[at % len(tasks)]
        requirements = tuple(
            requirement.model_copy(update={"met": tuple(
                re.sub(r"\d", lambda digit, turn=turn: str((int(digit[0]) + turn) % 10), sentence)
                for sentence in requirement.met
            )})
            for requirement in task.requirements
        )  # fmt: skip
        named = {"name": f"{task.name}-{turn + 1}", "question": f"{task.question} (Case {turn + 1}.)"} if turn else {}
        repeats.append(task.model_copy(update={**named, "requirements": requirements}))
    return tuple(repeats)


def test_stimuli(note: Callable[..., None]) -> None:
    tasks = repeated(TASKS)
    cpu, measured = timed(lambda: manifest_of(build_stimuli(tasks, 1), 1))
    what = f"stimuli of {TASKS:,} tasks (45,000 pairs) with their manifest"
    note(what, "CPU time", measured, f"<= {BUDGET_S:g} s")
    assert cpu <= BUDGET_S


def test_gates(note: Callable[..., None]) -> None:
    pairs = build_stimuli(finance_tasks(), 1)
    _, measured = timed(lambda: check(pairs))
    note(f"the gates of {len(pairs)} pairs", "CPU time", measured, "none set")


def test_reference_run(note: Callable[..., None]) -> None:
    pairs = build_stimuli(finance_tasks(), 1)
    model = reference_pair_judges()[JUDGE.model]

    async def run() -> None:
        for planned in plan_pair_calls(pairs, JUDGE):
            pair_call(planned, await model.complete(planned.call))

    _, measured = timed(lambda: asyncio.run(run()))
    note("900 calls of a reference pair judge: plan, answer, parse", "CPU time", measured, "none set")
