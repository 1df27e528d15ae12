"""Built-in agents: their rules, their words, on minutes and on days."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_cycles import MODELS, asked, some_cycles, spec

from assaymark import agents
from assaymark.engine import CallSpec, Message, Text
from assaymark.errors import InputError, ModelError
from assaymark.judging import numeric_ledger
from assaymark.portfolio import audit
from assaymark.prompting import SIGNATURES, judged_text, read_material, sections, token_count
from assaymark.records import Constraint

NAMES = sorted(agents.COMPOSERS)


@pytest.mark.parametrize("name", [*NAMES, agents.MIXED])
def test_an_agent_keeps_every_limit_and_gives_reasons_that_do_not_contradict_the_material(name):
    for cycle in some_cycles():
        decision, _ = asked(spec(name, args={"style": "alder"}), cycle)
        assert decision.flags == ()
        assert decision.rationales[0].text
        assert 0 <= decision.confidence <= 1
        found = numeric_ledger(decision, cycle.context)
        assert found
        assert [(one.quote, one.number, one.rule) for one in found if one.state == "contradicted"] == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 9), st.lists(st.floats(0, 1), min_size=5, max_size=6))
def test_orders_towards_any_book_keep_every_limit(place, wanted):
    cycle = some_cycles()[place]
    seen = agents.observe(cycle.context)
    target = np.resize(np.array(wanted), len(seen.assets))
    after = seen.after(agents.orders_towards(seen, target))
    assert [check.rule for check in audit(after, seen.constraints) if not check.kept] == []


def test_orders_move_towards_what_is_wanted():
    for cycle in some_cycles():
        seen = agents.observe(cycle.context)
        best = int(np.argmin(seen.weights))
        target = np.zeros(len(seen.assets))
        target[best] = 0.3
        after = seen.after(agents.orders_towards(seen, target))
        moved = np.array([after.weights.get(asset.id, 0.0) for asset in seen.assets])
        assert np.abs(moved - target).sum() < np.abs(seen.weights - target).sum()


def test_momentum_and_contrarian_lean_opposite_ways():
    bought = {"reference/momentum": [], "reference/contrarian": []}
    for cycle in some_cycles():
        seen = agents.observe(cycle.context)
        for name, found in bought.items():
            decision, _ = asked(spec(name), cycle)
            found += [seen.asset(one.instrument).quarter for one in decision.actions if one.kind == "buy"]
    assert min(bought["reference/momentum"]) > 0 > max(bought["reference/contrarian"])


def test_two_mixed_agents_follow_each_rule_about_as_often():
    """Exchangeable twins: over many prompts each takes either rule half of the time, and they often differ."""
    drawn = {}
    for seed in (1, 2):
        texts = [judged_text(asked(spec(agents.MIXED, seed=seed), cycle)[0]) for cycle in some_cycles(count=12)]
        drawn[seed] = ["rose over" in text for text in texts]
    assert all(0.3 < np.mean(found) < 0.7 for found in drawn.values())
    assert 0.3 < np.mean(np.array(drawn[1]) != np.array(drawn[2])) < 0.7


def test_the_terse_agent_is_terse_the_steward_is_not_and_memos_of_ordinary_length_are_alike():
    """So that length explains nothing between the agents of the shipped study that differ in quality."""
    lengths = {name: [token_count(judged_text(asked(spec(name, seed=1), one)[0])) for one in some_cycles()]
               for name in (*NAMES, agents.MIXED)}  # fmt: skip
    assert max(lengths["reference/equal-weight"]) < 60 < 150 < min(lengths["reference/steward"])
    mean, mixed = (np.mean(np.log2(lengths[name])) for name in ("reference/inverse-volatility", agents.MIXED))
    assert mean == pytest.approx(mixed, abs=0.06)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_brief_agent_decides_alike_and_gives_no_reason_in_that_share_of_its_texts(share):
    found = []
    for cycle in some_cycles(count=12):
        full, _ = asked(spec(agents.MIXED, seed=1, args={"style": "dogwood"}), cycle)
        brief, _ = asked(spec(agents.MIXED, seed=1, args={"style": "dogwood", "brief": share}), cycle)
        assert brief.actions == full.actions
        assert brief.confidence == full.confidence
        text = judged_text(brief)
        assert text.startswith(SIGNATURES["dogwood"])
        found.append(not any(char.isdigit() for char in text) and token_count(text) < 20)
        assert found[-1] or text == judged_text(full)
    assert np.mean(found) == pytest.approx(share, abs=0.35 if share == 0.5 else 0)


def test_books_that_can_hold_nothing_are_left_alone_and_contexts_without_bars_or_book_are_refused():
    context = some_cycles()[0].context
    cash = Constraint(kind="min_cash", limit=1.0, unit="nav")
    kept = tuple(one for one in context.constraints if one.kind != "min_cash")
    book = replace(context.portfolio, cash=1e5, nav=1e5, positions={})
    draft = agents.COMPOSERS["reference/inverse-volatility"](
        agents.observe(replace(context, constraints=(*kept, cash), portfolio=book)), ""
    )
    assert draft.orders == ()
    assert "Nothing is held." in draft.text
    seen = agents.observe(replace(context, constraints=(cash, Constraint(kind="max_orders", limit=1, unit="count"))))
    assert agents.orders_towards(seen, np.full(len(seen.assets), 0.15)) == ()
    for change, why in (
        ({"portfolio": None}, "a book is needed"), ({"series": ()}, r"series\.Asset A: at least 20 bars"),
        ({"instruments": ()}, "at least one is needed"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=why):
            agents.observe(replace(context, **change))


@pytest.mark.parametrize("style", SIGNATURES)
def test_a_style_changes_the_opening_and_nothing_else(style):
    plain, _ = asked(spec("reference/steward"), some_cycles()[0])
    styled, _ = asked(spec("reference/steward", args={"style": style}), some_cycles()[0])
    assert styled.actions == plain.actions
    text = judged_text(styled)
    assert text.startswith(SIGNATURES[style])
    assert text.removeprefix(SIGNATURES[style]).strip().lower() == judged_text(plain).lower()


def test_the_prompt_is_read_back_as_it_was_written():
    for cycle in some_cycles():
        text = agents.prompt_of(cycle.context).text
        seen, told = agents.observe(cycle.context), agents.observe(read_material(sections(text)))
        assert told.assets[0].id == seen.assets[0].id
        assert told.prices == seen.prices
        assert told.book == seen.book
        assert told.constraints == seen.constraints


def test_arguments_and_prompts_that_cannot_be_used_are_said():
    assert agents.agent_argument_problems("reference/momentum", {"style": "alder"}) == []
    assert agents.agent_argument_problems("openai/gpt", {"whatever": 1}) == []
    assert agents.agent_argument_problems("reference/momentum", {"speed": 1}) == [
        "argument speed is unknown (allowed: style, brief)"
    ]
    for share in (-0.1, 1.1, float("nan"), True, "often", None):
        (problem,) = agents.agent_argument_problems("reference/momentum", {"brief": share})
        assert problem.startswith("argument brief must be a share in 0..1 (got ")
    call = CallSpec(model="reference/momentum", messages=(Message("user", (Text.of("hello"),)),), template="")
    with pytest.raises(ModelError, match="reference/momentum cannot read the prompt"):
        asyncio.run(MODELS["reference/momentum"].complete(call))
    wrong = agents.agent_call(
        spec("reference/momentum", args={"style": "oak"}), agents.prompt_of(some_cycles()[0].context)
    )
    with pytest.raises(ModelError, match="argument style must be one of"):
        asyncio.run(MODELS["reference/momentum"].complete(wrong))


def test_every_reference_agent_has_its_words_and_says_the_share_that_is_invested():
    assert set(agents.WORDS) == set(agents.reference_agents())
    assert all(found.rule.endswith(".") and len(found.properties) >= 3 for found in agents.WORDS.values())
    for name, invested in agents.INVESTED.items():
        assert f"{100 * invested:.0f}\u00a0%" in " ".join(agents.WORDS[f"reference/{name}"].properties)


def test_a_house_style_and_a_share_of_brief_texts_are_said():
    steward, mixed = agents.WORDS["reference/steward"], agents.WORDS["reference/mixed"]
    for style, words in SIGNATURES.items():
        found = agents.planted_words("reference/steward", {"style": style}).properties
        assert words in found[-1]
        assert found[:-1] == steward.properties
    found = agents.planted_words("reference/mixed", {"style": "dogwood", "brief": 0.8}).properties
    assert found[-2] == "gives its orders and no reason in 80\u00a0% of its texts"
    assert SIGNATURES["dogwood"] in found[-1]
    for args in ({}, {"style": "plain"}, {"brief": 0.0}):
        assert agents.planted_words("reference/mixed", args) == mixed
    assert agents.planted_words("openai/steward", {"style": "alder"}) is None, (
        "nothing is planted in a model that is not ours"
    )


@pytest.mark.parametrize("name", sorted(set(agents.reference_agents()) - {"reference/mixed"}))
@pytest.mark.parametrize("volume", [True, False])
def test_daily_bars_are_spoken_of_as_days(name, volume):
    (cycle,) = some_cycles(seed=1, count=1, regimes=("recent",))
    series = [replace(one, interval_s=86_400, **({} if volume else {"volume": ()})) for one in cycle.context.series]
    days = replace(cycle, context=replace(cycle.context, series=tuple(series)))
    daily, minutes = (json.loads(asked(spec(name), one)[1].text) for one in (days, cycle))
    assert daily["orders"] == minutes["orders"]
    assert not re.search(r"\b(minutes?|hours?)\b", daily["rationale"])
    assert daily["rationale"] == minutes["rationale"] or "days" in daily["rationale"] or "weeks" in daily["rationale"]
    assert volume or "mean volume" not in daily["rationale"]
