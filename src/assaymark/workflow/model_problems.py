"""What is wrong with the models that a plan names, before anything is written: nobody has them, or their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    if (unknown := unknown_model(agent.model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
        return
    if agent.model.startswith("reference/") and agent.model not in (known := reference_agents()):
        what = f"{agent.model} cannot decide; built-in models that can: {', '.join(sorted(known))}"
        yield Problem(f"{place}.model", what)
        return
    found = (*agent_argument_problems(agent.model, agent.args), *provider_argument_problems(agent.model, agent.args))
    yield from (Problem(f"{place}.args", what) for what in found)
    if is_outside(agent.model):
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
    if judge.human:
        return
    if (unknown := unknown_model(judge.model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
        return
    found = (*argument_problems(judge.model, judge.args), *provider_argument_problems(judge.model, judge.args))
    yield from (Problem(f"{place}.args", what) for what in found)


def season_judge_problems(place: str, judge: JudgeSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """What is wrong with a judge of seasons; nothing with a person."""
    if judge.human:
        return
    if (unknown := unknown_model(judge.model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
    elif judge.model.startswith("reference/") and judge.model not in SEASON_PLANTED:
        known = ", ".join(sorted(SEASON_PLANTED))
        yield Problem(f"{place}.model", f"{judge.model} cannot read whole records; reference models that can: {known}")
    else:
        found = [
            *season_argument_problems(judge.model, judge.args),
            *provider_argument_problems(judge.model, judge.args),
        ]
        yield from (Problem(f"{place}.args", what) for what in found)
