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
from assaymark.engine.models import is_outside
from assaymark.engine.models.prices import Prices
from assaymark.protocol import AgentSpec
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
    """The calls of every model, as one reference model would bring them about: it reads prompts, not numbers."""
    plan = locked.plan
    stand_in = ReferenceBenchmarkModel("stubborn")
    reader = AgentSpec(name="stand-in", family="stand-in", model=stand_in.name)
    own = [agent for agent in plan.models if is_outside(agent.model)]
    for name, window in product(plan.pipeline.profiles, locked.data.windows):
        states = [EpisodeState(one, profile_named(name), window, rules_of(plan)) for one in (reader, *own[:1])]
        while (call := states[0].next_call()) is not None:
            numbers = states[-1].next_call()
            for agent in plan.models:
                if is_outside(agent.model) and numbers is not None:
                    yield replace(numbers, model=agent.model, seed=agent.seed, args=agent.args)
                    continue
                yield replace(
                    call,
                    model=agent.model,
                    seed=agent.seed,
                    temperature=agent.temperature,
                    effort=agent.effort,
                    args=agent.args,
                )
            parts = tuple(part.text for message in call.messages if message.role == "user" for part in message.parts)
            reply = Reply(text=stand_in.answer(parts)[0], model="stand-in")
            for state in states:
                state.take(reply)
