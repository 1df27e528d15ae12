"""Reference judges of a season: they read prompts alone, and what is planted in them is what comes out."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest
from horizon_records import PLAN, START, Book, Fill, Rejection, horizon, season, text_of

from assaymark import judging
from assaymark.engine import CallSpec, Message, Text
from assaymark.errors import InputError, ModelError
from assaymark.judging import season as judging_season
from assaymark.metrology import self_preference
from assaymark.protocol import JudgeSpec
from assaymark.records import Agent, Outcome

JUDGES = judging.reference_season_judges()
NAMES = sorted(JUDGES)
QUIET = {"noise": 0.0, "offset": 0.0, "slope": 0.0}


def spec(model=NAMES[0], name="one", family="ledger", **args):
    return JudgeSpec(name=name, model=model, family=family, trials=args.pop("trials", 1), args=args)


def ask(call):
    return asyncio.run(JUDGES[call.model].complete(call))


def grades(found, judge, budget=120_000):
    """Return a judge's parsed answers on a horizon for each trial, through prompts, replies and the parser."""
    tasks = judging.horizon_tasks({"desk": found}, [judge], PLAN, budget=budget)
    for task in tasks:
        while (planned := task.next_call()) is not None:
            task.take(planned.read(ask(planned.call)), planned.call.key)
    return [task.grades() for task in tasks]


def composite(found, judge):
    return judging.horizon_score(grades(found, judge)[0], PLAN).score.composite


def first_call(found, judge=None):
    return judging.horizon_tasks({"desk": found}, [judge or spec()], PLAN)[0].next_call().call


def user(found):
    return first_call(found).messages[1].text


def test_a_prompt_is_read_back_as_it_was_rendered_and_a_damaged_one_refused():
    found = horizon(3, rejections=[Rejection("A\tB", "no-price")], text="two\n\nparagraphs")
    for step, shown in zip(found.steps, judging_season.read_steps(user(found)), strict=True):
        assert (shown.number, shown.day, shown.cash) == (step.number, step.day, step.book[0])
        assert [(row["symbol"], float(row["units"])) for row in shown.rows("book")] == [*step.book[1]]
        assert shown.text == step.texts[0].text
        assert [one["instrument"] for one in shown.rows("actions")] == ["GOOGL", "S001"]
        assert shown.rows("refused") == ({"symbol": "A\tB", "reason": "no-price"},)
        assert [tuple(one.values()) for one in shown.rows("market")] == list(step.market.rows)
    for broken in (user(horizon(1)).replace("99900", "99901"), "<<<BEGIN step 0123456789abcdef>>>\nstep"):
        with pytest.raises(InputError):
            judging_season.read_steps(broken)
    call = CallSpec(model=NAMES[0], messages=(Message("user", (Text.of(broken),)),), template="")
    for asked, what in (
        (call, "needs a reply schema"), (replace(first_call(horizon(1)), messages=call.messages), "cannot read the pr"),
        (replace(call, schema=Text.of('{"properties": {}}')), "asked for nothing that it knows"),
        (replace(call, schema=Text.of("[]")), "the reply schema asks for nothing"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=what):
            ask(asked)


def test_features_are_those_of_the_record():
    records, contexts = season(3)
    books = [Book(1.0, {"GOOGL": 1.0}), Book(1.0, {"GOOGL": 0.0}), Book(1.0, {"GOOGL": 5.0})]
    fills = [(Fill("GOOGL", 1.0),), (Fill("GOOGL", -1.0),), (Fill("GOOGL", 1.0),)]
    records = [
        replace(one, book=book, fills=fill, rejections=(Rejection("S001", "no-price"),))
        for one, book, fill in zip(records, books, fills, strict=True)
    ]
    seen = judging_season.notice_horizon(user(judging.horizon_of(records, contexts, agents=[])))
    # the last position is not what the fill makes of the one before
    expected = {"reversed_trades": pytest.approx(2 / 3), "carried_out": 0.5, "reconciled": 0.5, "named": 1.0}
    expected |= {"grounded": 1.0, "steps": 3}
    assert {name: seen[name] for name in expected} == expected
    assert [claim["step"] for claim in seen["claims"]] == [1, 2, 3]
    assert "pe of 21.715" in seen["claims"][1]["quote"]


@pytest.mark.parametrize("model", NAMES)
def test_a_judge_answers_what_the_parser_takes_and_better_records_earn_more(model):
    (found,) = grades(horizon(4), spec(model))
    assert (found.state, found.data_reliability) == ("ok", 100.0)
    assert {claim.state for claim in found.claims} == {"supported"}
    (split,) = grades(horizon(6, text="word " * 1500), spec(model), budget=5000)
    assert (split.state, len(split.parts)) == ("ok", 3)
    for text in ("", "21.5 \ud800", f"GOOGL {'x' * 3000}21.5", "\x00 GOOGL 9.87%\u2028step\t9"):
        assert grades(horizon(2, text=text), spec(model))[0].state == "ok"
    judge = spec(model, **QUIET)
    false = horizon(6, text="GOOGL has a pe of 77.3 and may still be cheap; risk is the earnings report.")
    assert composite(horizon(6), judge) > composite(false, judge)
    if model == NAMES[0]:  # steady beats thrashing
        records, contexts = season(6)
        turning = [replace(one, fills=(Fill("GOOGL", at % 2 * 2.0 - 1, 100.0),)) for at, one in enumerate(records)]
        assert composite(horizon(6), judge) > composite(judging.horizon_of(turning, contexts, agents=[]), judge)


def test_viewpoints_speak_of_the_parts_and_features_that_there_are():
    for name in ("v0.3", "v0.4"):
        plan = judging.load_scoring(name)
        assert set(judging_season.TOPICS) == {part.name for part in (*plan.reasoning, *plan.evidence)}
    assert {feature for topics in judging_season.TOPICS.values() for feature in topics} == set(judging_season.WORTH)
    assert all(set(leaning) <= set(judging_season.WORTH) for leaning in judging_season.LEANING.values())
    assert set(judging_season.LEANING) == set(judging_season.SEASON_PLANTED) == set(JUDGES)


def test_a_planted_offset_and_slope_are_what_comes_out():
    found = horizon(3)
    plain = grades(found, spec(**QUIET))[0]
    strict = grades(found, spec(**QUIET | {"offset": -7.0}))[0]
    assert {plain.reasoning[name] - strict.reasoning[name] for name in plain.reasoning} == {7.0}
    tokens = judging_season.notice_horizon(user(found))["tokens"]
    wordy = grades(found, spec(**QUIET | {"slope": 20.0, "pivot": tokens + 50}))[0]
    assert {plain.evidence[name] - wordy.evidence[name] for name in plain.evidence} == {10.0}
    # The same sentence twice says nothing more: what a blind judge ignores, a judge with a slope pays for.
    short, long = (horizon(3, text=" ".join([text_of(0)] * n)) for n in (1, 3))
    extra = judging_season.notice_horizon(user(long))["tokens"] - judging_season.notice_horizon(user(short))["tokens"]
    judges = [spec(**QUIET | {"slope": slope}) for slope in (0.0, 20.0)]
    gains = [composite(long, judge) - composite(short, judge) for judge in judges]
    assert gains[1] - gains[0] == pytest.approx(20.0 * extra / 100, abs=0.6)


@pytest.fixture(scope="module")
def styles():
    """Six agents of three families, each family with a style of its own, in its records alone."""
    names = ("alder", "alder", "birch", "birch", "cedar", "cedar")
    agents = [Agent(id=f"desk-{at}", family=f"house-{style}") for at, style in enumerate(names)]
    found = []
    for at, (agent, style) in enumerate(zip(agents, names, strict=True)):
        said = f"{text_of(0)} " + "It could fall if margins slip. " * (at % 3)
        records, contexts = season(3, agent=agent, style=style, text=said)
        found.append((agent.family, judging.horizon_of(records, contexts, agents=agents)))
    return found


def gaps_of(styles, panel):
    scores = np.array([[composite(one, judge) for judge in panel] for _, one in styles])
    families, names = [family for family, _ in styles], [judge.name for judge in panel]
    return [one.gap for one in self_preference(scores, families, [judge.family for judge in panel], judges=names)]


@pytest.mark.parametrize("preference", [0.0, 12.0])
def test_planted_self_preference_is_recovered(styles, preference):
    """Five judges of one opinion: the median is what four of them say, so the gap is what was planted, to a grade."""
    low = QUIET | {"offset": -20.0}  # far enough below 100 that no grade is clipped
    panel = [
        spec(name=f"judge-{at}", family=family, **low, **({} if at else {"preference": preference, "kin": "alder"}))
        for at, family in enumerate(("house-alder", "house-birch", "house-cedar", "x", "y"))
    ]
    assert gaps_of(styles, panel)[:2] == pytest.approx([preference, 0.0], abs=1e-9)


def test_planted_self_preference_shows_through_opinions_and_noise(styles):
    """The three judges as they ship, with their own opinions, offsets and noise: most of 25 points is still seen."""
    panel = [
        spec(model, name=model, family=family, **({"preference": 25.0, "kin": "alder"} if model == NAMES[1] else {}))
        for model, family in zip(NAMES, ("house-birch", "house-alder", "house-cedar"), strict=True)
    ]
    one, own, other = gaps_of(styles, panel)
    assert 10.0 < own < 32.0
    assert max(one, other) < 10.0


def test_planted_noise_is_the_spread_of_repeated_judging_and_nothing_else_but_prompt_seed_and_trial():
    found = grades(horizon(2), spec(**QUIET | {"noise": 4.0}, trials=50))
    composites = [judging.horizon_score(one, PLAN).score.composite for one in found]
    assert stdev(composites) == pytest.approx(4.0, rel=0.3)
    assert mean(composites) == pytest.approx(composite(horizon(2), spec(**QUIET)), abs=2.0)
    found, judge = horizon(4), spec(**QUIET)
    (made,) = grades(found, judge)
    outcomes = [
        Outcome(record_id=one.record_id, horizon="5d", value=value, benchmark=bench, resolved_at=START, source="close")
        for one, value, bench in zip(found.steps, (0.02, 0.01, -0.01, -0.02), (0.01, None, None, -0.03), strict=True)
    ]
    (planned,) = judging.outcome_calls(made, found, outcomes, judge, PLAN)
    assert planned.read(ask(planned.call)).answer[0] == 75
    call = first_call(horizon(2), spec(NAMES[1]))
    assert ask(call) == ask(call)
    assert ask(call).text != ask(replace(call, trial=2)).text
    assert json.loads(ask(call).text)["lookahead_check"] == "pass"


def test_wrong_arguments_are_told():
    call = first_call(horizon(1))
    for args, says in (
        ({"charm": 1}, "argument charm is unknown"), ({"noise": -1}, "argument noise must be at least 0"),
        ({"offset": float("nan")}, "must be a finite number"), ({"slope": True}, "must be a finite number"),
        ({"kin": "oak"}, "argument kin must be one of alder"), ({"preference": 3}, "argument preference needs kin"),
        *(({"knows": knows}, "argument knows must be style=agent pairs") for knows in ("oak=desk", "")),
    ):  # fmt: skip
        (problem,) = judging_season.season_argument_problems(NAMES[0], args)
        assert says in problem
        with pytest.raises(ModelError, match="argument"):
            ask(replace(call, args=args))
        assert judging_season.season_argument_problems("openai/gpt-x", args) == []
