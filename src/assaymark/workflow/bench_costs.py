"""What a benchmark would ask and cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from assaymark.benchmark.episode import EpisodeState
from assaymark.benchmark.plan import parse_plan
from assaymark.benchmark.profiles import profile_named
from assaymark.benchmark.reference import ReferenceBenchmarkModel
from assaymark.engine import CallSpec, Reply
from assaymark.engine.models.prices import Prices
from assaymark.workflow.bench_episodes import rules_of
from assaymark.workflow.bench_plan import LockedBench, fingerprint, open_data
from assaymark.workflow.bench_questions import planned_questions
from assaymark.workflow.costs import Forecast, Stage, forecast
from assaymark.workflow.folder import RunFolder, require_version_2


def expected(folder: RunFolder, text: str, source: str, questions: bool, prices: Prices) -> Forecast:
    """What the questions, or the pipeline, of a plan would ask and cost. Nothing is sent or written.

    Raises
    ------
    InputError
        The plan or its market is wrong.
    """
    require_version_2(folder)
    plan = parse_plan(text, source=source)
    data = open_data(plan)
    locked = LockedBench(plan, fingerprint(plan, data), "", data)
    if questions:
        stage = Stage("questions", [one.call for one in planned_questions(locked)])
        return forecast([stage], folder, None, prices)
    found = forecast([Stage("pipeline", list(_pipeline(locked)))], folder, None, prices)
    return found.noting(
        "calls after the first of a window show what was answered before: reference replies stand in for that"
    )


def _pipeline(locked: LockedBench) -> Iterator[CallSpec]:
    """The calls of every model, as one reference model would bring them about."""
    plan = locked.plan
    stand_in = ReferenceBenchmarkModel("stubborn")
    for name, window in product(plan.pipeline.profiles, locked.data.windows):
        state = EpisodeState(plan.models[0], profile_named(name), window, rules_of(plan))
        while (call := state.next_call()) is not None:
            for agent in plan.models:
                yield replace(
                    call,
                    model=agent.model,
                    seed=agent.seed,
                    temperature=agent.temperature,
                    effort=agent.effort,
                    args=agent.args,
                )
            parts = tuple(part.text for message in call.messages if message.role == "user" for part in message.parts)
            state.take(Reply(text=stand_in.answer(parts)[0], model="stand-in"))
