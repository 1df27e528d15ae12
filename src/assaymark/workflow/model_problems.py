"""What is wrong with the models that a plan names, before anything is written: nobody has them, or their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assaymark.agents import agent_argument_problems, reference_agents
from assaymark.engine import Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.engine.providers.registry import Models, check_ready, provider_argument_problems
from assaymark.errors import ModelError, Problem, UnknownNameError
from assaymark.judging import argument_problems
from assaymark.judging.season.reference import SEASON_PLANTED, season_argument_problems
from assaymark.protocol import AgentSpec, JudgeSpec


def unknown_model(name: str, models: Mapping[str, Model] | None) -> str | None:
    """Why nobody provides a model, in words; None if somebody does, or nobody is to be asked."""
    if isinstance(models, Models):
        return models.problem(name)
    return None if models is None or name in models else str(UnknownNameError("model", name, tuple(models)))


def agent_problems(place: str, agent: AgentSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with an agent; ``place`` is where the file names it."""
    known, what = reference_agents(), "cannot decide; built-in models that can"
    found = list(_problems(place, agent, models, agent_argument_problems, known, what))
    yield from found
    if is_outside(agent.model) and not any(one.where == f"{place}.model" for one in found):
        said = [name for name in ("seed", "temperature", "effort") if getattr(agent, name) is not None]
        yield from (Problem(f"{place}.{name}", "is not sent to an agent of its own; leave it out") for name in said)


def absent_problems(place: str, agent: AgentSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """That an agent of one's own does not answer: nobody at its address, or its callable cannot be imported."""
    if models is None or not is_outside(agent.model) or unknown_model(agent.model, models) is not None:
        return
    try:
        check_ready(models[agent.model], agent.args)
    except ModelError as exc:
        yield Problem(f"{place}.model", str(exc))


def judge_problems(place: str, judge: JudgeSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with a judge of single decisions; nothing with a person."""
    if not judge.human:
        yield from _problems(place, judge, models, argument_problems)


def season_judge_problems(place: str, judge: JudgeSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with a judge of seasons; nothing with a person."""
    if not judge.human:
        what = "cannot read whole records; reference models that can"
        yield from _problems(place, judge, models, season_argument_problems, SEASON_PLANTED, what)


def _problems(
    place: str, asked: AgentSpec | JudgeSpec, models: Mapping[str, Model] | None,
    argument_problems: Callable[[str, Mapping[str, Any]], Iterable[str]], known: Iterable[str] | None = None,
    what: str = "",
) -> Iterator[Problem]:  # fmt: skip
    """That nobody has a model, that it is built in and none of those ``known`` here, or what its arguments lack."""
    model = asked.model
    if (unknown := unknown_model(model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
    elif known is not None and model.startswith("reference/") and model not in (names := sorted(known)):
        yield Problem(f"{place}.model", f"{model} {what}: {', '.join(names)}")
    else:
        found = (*argument_problems(model, asked.args), *provider_argument_problems(model, asked.args))
        yield from (Problem(f"{place}.args", one) for one in found)
