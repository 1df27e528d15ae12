"""Nothing dated after a decision can change what its agent is asked, what it answers, or what its judges are shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from asked_agents import MODELS, spec
from hypothesis import given, settings
from hypothesis import strategies as st
from perturbed import Later

from assaymark.agents import Dater, LLMAgent, Place
from assaymark.agents.controls import cell_decisions
from assaymark.agents.date_probe import date_call, read_date
from assaymark.agents.llm import envelope_of, prompt_of, task_text
from assaymark.errors import InputError
from assaymark.judging import load_rubric, plan_calls
from assaymark.market.cycles import REGIMES, cycles_of, synthetic_minutes
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import canonical_json, content_id, to_json

SOURCE = synthetic_minutes(1)
STUDY = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/auditor", family="f"),))


def cut(regime, seed, source=SOURCE):
    return next(cycles_of(source, [regime], cycles=1, bars=60, seed=seed, prompt=task_text()))


def everything(cycle) -> list[str]:
    """Every byte that an agent or a judge can be shown of a cycle, and everything that comes of it."""
    name = content_id(cycle.context)
    place = Place("study", cycle.regime, 1, name)
    found = [prompt_of(cycle.context).text, envelope_of(cycle.context).text]
    decisions = []
    for model, agent in MODELS.items():
        call = LLMAgent(spec(model, name=model.partition("/")[2], seed=3)).call(prompt_of(cycle.context))
        reply = asyncio.run(agent.complete(call))
        decisions.append(LLMAgent(spec(model, name=model.partition("/")[2], seed=3)).decide(
            cycle.context, place, reply, key=call.key))  # fmt: skip
        found += [call.key, reply.text]
    for kind in ("cell_a", "cell_b"):
        decisions += cell_decisions([(name, cycle.context, cycle.regime)], kind=kind, count=1, seed=2, family="f")
    found += [canonical_json(to_json(one)) for one in decisions]
    study = STUDY.model_copy(update={"records": STUDY.records.model_copy(
        update={"derivations": ("honest", "cell_a", "cell_b")})})  # fmt: skip
    planned = plan_calls(decisions, {name: cycle.context}, study, load_rubric("v1.0"))
    return [*found, *(one.call.key for one in planned), *(part.text for one in planned for part in one.call.texts)]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from(REGIMES))
def test_a_future_that_is_another_changes_no_prompt_no_decision_and_no_judge_call(seed, noise, regime):
    cycle = cut(regime, seed)
    cutoff = int(cycle.raw[0].times[-1])
    other = cut(regime, seed, Later(SOURCE, cutoff, noise))
    assert everything(other) == everything(cycle)


def test_a_past_that_is_another_does_change_them():
    cycle = cut("recent", 7)
    other = cut("recent", 7, Later(SOURCE, int(cycle.raw[0].times[-1]) - 60, 1))
    assert everything(other)[0] != everything(cycle)[0]


def test_a_fact_from_the_future_in_a_context_is_refused_before_any_judge_is_asked():
    """A context may come from anywhere; judging looks at it again."""
    cycle = cut("recent", 7)
    late = replace(cycle.context.facts[0], available_at=cycle.context.cutoff + timedelta(hours=1))
    context = replace(cycle.context, facts=(late, *cycle.context.facts[1:]))
    name = content_id(context)
    place = Place("study", "recent", 1, name)
    agent = LLMAgent(spec("reference/steward"))
    call = agent.call(prompt_of(context))
    decision = agent.decide(context, place, asyncio.run(MODELS["reference/steward"].complete(call)), key=call.key)
    with pytest.raises(InputError, match="after the decision"):
        plan_calls([decision], {name: context}, STUDY, load_rubric("v1.0"))


def test_the_model_probe_dates_a_clock_that_was_left_in_and_guesses_without_one():
    cycle = cut("tightening", 3)
    true = cycle.context.cutoff.replace(year=2021, month=11)
    shift = true - cycle.context.cutoff
    series = tuple(replace(one, times=tuple(when + shift for when in one.times)) for one in cycle.context.series)
    facts = tuple(replace(one, available_at=true, as_of=true) for one in cycle.context.facts)
    dated = replace(cycle.context, cutoff=true, series=series, facts=facts)
    said = read_date(asyncio.run(Dater().complete(date_call("reference/dater", dated))))
    assert (said.year, said.month) == (2021, 11)
    guesses = {
        read_date(asyncio.run(Dater().complete(date_call("reference/dater", cut("tightening", seed).context))))
        for seed in range(12)
    }
    assert len(guesses) > 6
