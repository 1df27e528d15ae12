"""Tasks for Inspect AI: `inspect eval assaymark/judge` and `inspect eval assaymark/pairs`, found by an entry point.

Whoever runs them chooses the model on Inspect's command line. The prompts are the ones of a study, and the replies are
read by the same strict parsers. Such an eval is no run: nothing of it enters a ledger, and no claim follows from it.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from assaymark.engine import CallSpec, Finish, Reply
from assaymark.engine.providers.inspect import response_schema
from assaymark.errors import InputError, Problem
from assaymark.judging import Invalid, PlannedCall, find_rubric, judgment
from assaymark.judging.pairs import (
    TIE_ALLOWED,
    PlannedPairCall,
    build_stimuli,
    check,
    finance_tasks,
    parse_pair_reply,
    plan_pair_calls,
)
from assaymark.protocol import JudgeSpec
from assaymark.workflow.export import chat_messages, item_names, require_inspect
from assaymark.workflow.lock import open_locked
from assaymark.workflow.progress import silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.study_calls import JudgingSession

Value = dict[str, float]
_ASKED: Final = JudgeSpec(name="asked", model="inspect/asked", family="asked")
_STOPS: Final[dict[str, Finish]] = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}


def judge(run: str, rubric: str = "", trials: int = 1) -> Any:
    """The trajectories of a locked ``run``, graded ``trials`` times by the model under evaluation."""
    folder = RunFolder(Path(run))
    locked = open_locked(folder)
    wanted = find_rubric(rubric) if rubric else locked.rubric
    desk = JudgingSession(folder, locked, {}, silent)
    planned = desk.plan(wanted, [_ASKED])
    names = item_names(desk.shown)
    clusters = {decision.record_id: decision.cluster for decision in desk.decisions}
    samples = [_sample(one.call, names[one.trajectory], {"cluster": clusters[one.trajectory]}) for one in planned]
    about = {"plan_hash": locked.plan_hash, "rubric": wanted.version}
    ordered = sorted(samples, key=lambda sample: str(sample.id))
    return _task(
        "decisions",
        ordered,
        planned,
        _scorers()["graded"]((not rubric and locked.study.rubric.text) or rubric or wanted.version),
        trials,
        about,
    )


def pairs(seed: int = 7, prompt: str = TIE_ALLOWED, trials: int = 1) -> Any:
    """The pairs of a judge datasheet on the finance tasks, each in both orders."""
    stimuli = build_stimuli(finance_tasks(), seed)
    check(stimuli)
    planned = plan_pair_calls(stimuli, _ASKED, [prompt])
    # What is known of a pair in one order: for the scorer and for readers of the log, never for the model.
    samples: list[Any] = []
    for one in planned:
        pair = one.pair
        slot = "" if pair.better is None else str(one.order.index(pair.better) + 1)
        what = {"condition": pair.condition, "variant": pair.variant, "delta": pair.delta, "task": pair.task}
        samples.append(_sample(one.call, f"{one.pair.id} {one.order}", {"better": slot, **what}))
    about = {"seed": seed, "prompt": prompt, "tasks": "finance"}
    return _task("pairs", samples, planned, _scorers()["preferred"](), trials, about)


def graded_value(text: str, stop: str, rubric: str) -> tuple[Value, str | None]:
    """A judge's reply as the values of a score (NaN where it is not usable), and why it carries none."""
    wanted = find_rubric(rubric)
    call = CallSpec(model=_ASKED.model, messages=(), template="")
    planned = PlannedCall(call, trajectory="", judge=_ASKED.name, family=_ASKED.family, trial=1)
    found = judgment(planned, Reply(text=text, model="", finish=_STOPS.get(stop, "stop")), wanted)
    scores = found.scores or dict.fromkeys(wanted.names, math.nan)
    return {"usable": float(found.status == "ok"), **scores}, found.reason


def preferred_value(text: str, stop: str, better: str) -> tuple[Value, str | None]:
    """A judge's reply to a pair as the values of a score, and why it carries none; NaN where that is no question."""
    finish = _STOPS.get(stop)
    found = Invalid(f"the reply ended by {finish}") if finish else parse_pair_reply(text)
    if isinstance(found, Invalid):
        return {"usable": 0.0, "first": math.nan, "right": math.nan}, found.reason
    first = {"1": 1.0, "2": 0.0}.get(found.value, math.nan)
    right = float(found.value == better) if better else math.nan
    return {"usable": 1.0, "first": first, "right": right}, None


def _sample(call: CallSpec, name: str, metadata: dict[str, Any]) -> Any:
    return require_inspect("inspect_ai.dataset").Sample(id=name, input=chat_messages(call), metadata=metadata)


def _task(
    name: str, samples: list[Any], planned: Sequence[PlannedCall | PlannedPairCall], scorer: Any, trials: int,
    metadata: dict[str, Any],
) -> Any:  # fmt: skip  # fmt: skip
    """A task that asks for the form of the reply by the provider's own means, and never answers from a cache."""
    if not planned:
        raise InputError("inspect eval", [Problem("run", "no decision is left to judge")])
    ai, model = require_inspect(), require_inspect("inspect_ai.model")
    return ai.Task(
        dataset=require_inspect("inspect_ai.dataset").MemoryDataset(samples, name=name),
        solver=require_inspect("inspect_ai.solver").generate(cache=False), scorer=scorer, epochs=trials,
        config=model.GenerateConfig(response_schema=response_schema(planned[0].call)), metadata=metadata,
    )  # fmt: skip


def graded(rubric: str) -> Callable[[Any, Any], Awaitable[Any]]:
    """Scores a judge's reply by the strict parser: usable or not, and every dimension of the rubric."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *graded_value(state.output.completion, _stop(state), rubric))

    return score


def preferred() -> Callable[[Any, Any], Awaitable[Any]]:
    """Scores a judge's reply to a pair: usable or not, the slot it prefers, and whether that is the better text's."""

    async def score(state: Any, _target: Any) -> Any:
        return _score(state, *preferred_value(state.output.completion, _stop(state), state.metadata["better"]))

    return score


def _stop(state: Any) -> str:
    return str(state.output.choices[0].stop_reason) if state.output.choices else "unknown"


def _score(state: Any, value: Value, problem: str | None) -> Any:
    reason = None if problem is None else "invalid_response_format"
    made = require_inspect("inspect_ai.scorer").Score
    return made(value=value, answer=state.output.completion, explanation=problem, reason=reason)


_REGISTERED: Final[dict[str, Any]] = {}


def _scorers() -> dict[str, Any]:
    """The scorers as Inspect knows them, registered once."""
    if not _REGISTERED:
        scorer = require_inspect("inspect_ai.scorer")
        # A mean over trajectories says nothing of agents, but in a list of evals it would look as if it did: only the
        # share of usable replies is added up, and for pairs what is known of them.
        _REGISTERED["graded"] = scorer.scorer(metrics={"usable": [scorer.mean()]})(graded)
        shares = {name: [scorer.mean()] for name in ("usable", "first", "right")}
        _REGISTERED["preferred"] = scorer.scorer(metrics=shares)(preferred)
    return _REGISTERED


def register() -> None:
    """Make the tasks and scorers known to Inspect. Importing this module does so, where Inspect is installed."""
    task = require_inspect().task
    for make in (judge, pairs):
        task(make)
    _scorers()


if importlib.util.find_spec("inspect_ai") is not None:
    register()
