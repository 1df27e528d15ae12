"""Agents: their replies as decisions, and that none can see what happened next."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from made_cycles import MODELS, asked, some_cycles, spec
from perturbed import Later

from assaymark import agents
from assaymark.agents import DecisionKey, agent_call, decision_of, parse_answer
from assaymark.engine import Reply
from assaymark.errors import InputError
from assaymark.judging import load_rubric, plan_calls
from assaymark.market import REGIMES, cycles_of, synthetic_minutes
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import canonical_json, content_id, to_json

OFFERED = ("Asset A", "Asset B")


def reply(**changes):
    return json.dumps({"orders": [], "rationale": "Nothing moved.", "confidence": 0.5} | changes)


def order(**changes):
    return {"instrument": "Asset A", "side": "buy", "quantity": 2.5} | changes


def test_a_reply_in_the_form_asked_for_is_taken():
    found = parse_answer(reply(orders=[order(), {"instrument": "Asset B", "side": "close"}]), OFFERED).answer
    taken = [(one.instrument, one.kind, one.quantity) for one in found.orders]
    assert taken == [("Asset A", "buy", 2.5), ("Asset B", "close", None)]
    assert (found.rationale, found.confidence, found.rejected) == ("Nothing moved.", 0.5, ())
    Draft202012Validator(agents.reply_schema()).validate(json.loads(reply(orders=[order()])))


QUANTITY = "order 1: quantity must be above 0 and at most 1e+12"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (order(instrument="XYZ"), "order 1: instrument 'XYZ' is not offered"),
        (order(instrument=["Asset A"]), "order 1: instrument ['Asset A'] is not offered"),
        (order(side="hodl"), "order 1: side must be one of buy, sell, short, cover, close (got 'hodl')"),
        (order(quantity=-1), f"{QUANTITY} (got -1)"), (order(quantity=0), f"{QUANTITY} (got 0)"),
        (order(quantity=1e999), f"{QUANTITY} (got inf)"),
        *((order(quantity=one), f"order 1: quantity must be a number (got {one!r})") for one in ("2", True, None)),
        (order(side="close"), "order 1: close takes no quantity (got 2.5)"),
    ],
)  # fmt: skip
def test_an_order_that_cannot_be_taken_is_rejected_alone(entry, reason):
    text = reply(orders=[entry, order(instrument="Asset B")]).replace("Infinity", "1e999")
    found = parse_answer(text, OFFERED).answer
    assert found.rejected == (reason,)
    assert [one.instrument for one in found.orders] == ["Asset B"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not one JSON object"), ("Buy gold!", "not one JSON object"),
        ("```json\n{}\n```", "keys are missing: 'orders', 'rationale'"),
        ("Here: ```json\n{}\n```", "not one JSON object"), ("[]", "not a JSON object"),
        ("{}", "keys are missing: 'orders', 'rationale'"), (reply(note="x"), "keys are unknown: 'note'"),
        (reply(rationale=""), "rationale must be a text that says something"),
        (reply(rationale=7), "rationale must be a text"),
        (reply(rationale="x" * 40_001), "rationale is longer than 40000 characters"),
        (reply(rationale="\ud800"), "rationale holds half of a surrogate pair"),
        (reply(confidence=1.2), "confidence must be a number from 0 to 1"),
        (reply(confidence=True), "confidence must be a number from 0 to 1"),
        (reply(confidence=float("nan")), "NaN is not JSON"), (reply(orders={}), "orders must be a list"),
        (reply(orders=[order()] * 51), "orders must be a list of at most 50"),
        (reply(orders=["buy"]), "order 1 must be an object"),
        (reply(orders=[order(why="x")]), "order 1: keys are unknown: 'why'"),
        ('{"orders": [], "orders": [], "rationale": "x"}', "key 'orders' comes more than once"),
        ("[" * 200_000, "longer than 200000 characters|nested too deeply"), ("[" * 150_000, "nested too deeply"),
        ('{"orders": [], "rationale": "x", "confidence": ' + "9" * 5000 + "}", "an integer with 5000 digits"),
        ("x" * 50_000_000, "longer than 200000 characters"),
    ],
)  # fmt: skip
def test_a_reply_of_another_form_is_unusable_and_says_why(text, reason):
    found = parse_answer(text, OFFERED)
    assert (found.state, found.answer) == ("invalid", None)
    assert any(part in found.reason for part in reason.split("|"))
    assert len(found.reason) < 300


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=300), st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["orders", "rationale", "confidence", "instrument", "side", "quantity", "usage"]), inner,
        max_size=4,
    ), max_leaves=12,
).map(json.dumps)))  # fmt: skip
def test_nothing_that_comes_back_raises(text):
    if found := parse_answer(text, OFFERED).answer:
        assert all(one.instrument in OFFERED and (one.quantity or 1) > 0 for one in found.orders)


PLACE = DecisionKey("study", "pandemic", 7, "c" * 64)


def decided(text, **values):
    agent = spec("openai/some-model", name="one", seed=3, args={"top_p": 0.9})
    came = Reply(text=text, model="some-model-2026", fingerprint="fp_1", seconds=1.25, output_tokens=40, **values)
    return decision_of(agent, some_cycles()[0].context, PLACE, came, "k" * 64)


def test_a_decision_says_who_when_how_long_and_where_the_raw_reply_is():
    made = decided(reply(orders=[{"instrument": "Asset A", "side": "buy", "quantity": 1.0}]))
    assert (made.record_id, made.cluster, made.cycle) == ("study-pandemic-007-one", "pandemic", "study-pandemic-007#1")
    assert (made.agent.model, made.agent.fingerprint) == ("openai/some-model", "fp_1")
    assert made.agent.params == {"seed": 3, "top_p": 0.9}
    assert (made.call.seconds, made.call.timing_source, made.call.output_tokens) == (1.25, "measured", 40)
    assert (made.call.attempts, made.call.raw_object) == (1, "k" * 64)
    assert made.decided_at > some_cycles()[0].context.cutoff
    assert made.decided_at - some_cycles()[0].context.cutoff < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("text", "values", "flags"),
    [
        ("I cannot help with that", {"finish": "refusal"}, ("refused",)),
        ("buy everything", {}, ("invalid-reply",)),
        ('{"failure": "timeout"}', {"finish": "failed"}, ("no-answer",)),
        (reply(orders=[order(instrument="XYZ")]), {}, ("rejected-order",)),
        (reply(orders=[order(quantity=1e6)]), {}, ("constraint-breach",)),
        (reply(orders=[order(quantity=1e6), order(side="hodl")]), {}, ("rejected-order", "constraint-breach")),
        (reply(orders=[{"instrument": "Asset A", "side": "close"}] * 2), {}, ("constraint-breach",)),
        (reply(), {}, ()),
    ],
)
def test_whatever_came_back_is_a_record(text, values, flags):
    made = decided(text, **values)
    assert made.flags == flags
    assert bool(made.rationales) == (flags not in (("refused",), ("invalid-reply",), ("no-answer",)))
    assert bool(made.missing) == any(flag != "constraint-breach" for flag in flags)


def test_an_agent_outside_is_given_the_context_and_a_model_the_rendered_prompt():
    context = some_cycles()[0].context
    outside = agent_call(spec("http/127.0.0.1:1/decide"), agents.envelope_of(context))
    inside = agent_call(spec("reference/steward"), agents.prompt_of(context))
    whole = json.loads(outside.messages[0].text)
    assert (len(outside.messages), whole["format"]) == (1, "assaymark context 1")
    assert whole["context"]["portfolio"]["cash"] == context.portfolio.cash
    assert [message.role for message in inside.messages] == ["system", "user"]
    shown, named = outside.messages[0].text + inside.messages[1].text, some_cycles()[0].names.values()
    assert not [name for name in named if name in shown]


source_of = cache(synthetic_minutes)
STUDY = Study(name="s", seed=1, judges=(JudgeSpec(name="j", model="reference/auditor", family="f"),))


def cut(regime, seed, source=None):
    return next(cycles_of(source or source_of(1), [regime], cycles=1, bars=60, seed=seed, prompt=agents.task_text()))


def everything(cycle) -> list[str]:
    """Every byte that an agent or a judge can be shown of a cycle, and everything that comes of it."""
    name = content_id(cycle.context)
    found = [agents.prompt_of(cycle.context).text, agents.envelope_of(cycle.context).text]
    decisions = []
    for model in MODELS:
        decision, came = asked(spec(model, model.partition("/")[2], seed=3), cycle)
        decisions.append(decision)
        found.append(came.text)
    for kind in ("cell_a", "cell_b"):
        decisions += agents.cell_decisions(
            [(name, cycle.context, cycle.regime)], kind=kind, count=1, seed=2, family="f"
        )
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
    other = cut(regime, seed, Later(source_of(1), cutoff, noise))
    assert everything(other) == everything(cycle)


def test_a_past_that_is_another_does_change_them():
    cycle = cut("recent", 7)
    other = cut("recent", 7, Later(source_of(1), int(cycle.raw[0].times[-1]) - 60, 1))
    assert agents.prompt_of(other.context).text != agents.prompt_of(cycle.context).text


def test_a_fact_from_the_future_in_a_context_is_refused_before_any_judge_is_asked():
    """A context may come from anywhere; judging looks at it again."""
    cycle = cut("recent", 7)
    late = replace(cycle.context.facts[0], available_at=cycle.context.cutoff + timedelta(hours=1))
    context = replace(cycle.context, facts=(late, *cycle.context.facts[1:]))
    name = content_id(context)
    decision, _ = asked(spec("reference/steward"), replace(cycle, context=context))
    with pytest.raises(InputError, match="after the decision"):
        plan_calls([decision], {name: context}, STUDY, load_rubric("v1.0"))


def test_the_model_probe_dates_a_clock_that_was_left_in_and_guesses_without_one():
    cycle = cut("tightening", 3)
    true = cycle.context.cutoff.replace(year=2021, month=11)
    shift = true - cycle.context.cutoff
    series = tuple(replace(one, times=tuple(when + shift for when in one.times)) for one in cycle.context.series)
    facts = tuple(replace(one, available_at=true, as_of=true) for one in cycle.context.facts)
    dated = replace(cycle.context, cutoff=true, series=series, facts=facts)
    said = agents.read_date(asyncio.run(agents.Dater().complete(agents.date_call("reference/dater", dated))))
    assert said == (2021, 11)
    guesses = {
        agents.read_date(
            asyncio.run(agents.Dater().complete(agents.date_call("reference/dater", cut("tightening", seed).context)))
        )
        for seed in range(12)
    }
    assert len(guesses) > 6
