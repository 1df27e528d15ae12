"""The author probe: what is asked, what is a guess, and how accuracy stands against chance."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from horizon_records import horizon
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from assaymark.engine import Reply
from assaymark.errors import InputError
from assaymark.judging import author_probe, probe_calls, reference_season_judges
from assaymark.judging.season.calls import parse_guess, read_guess
from assaymark.judging.season.plans import Read
from assaymark.protocol import JudgeSpec
from assaymark.records import Agent

OPTIONS = ("desk-0", "desk-1", "desk-2", "desk-3")
STYLES = ("alder", "birch", "cedar", "dogwood")


def judge(trials=1, **args):
    return JudgeSpec(name="reader", model="reference/season-reader", family="prose", trials=trials, args=args)


def horizons():
    agents = [Agent(id=name, family="made-up") for name in OPTIONS]
    return {
        one.id: horizon(2, agent=one, agents=agents, style=style) for one, style in zip(agents, STYLES, strict=True)
    }


def asked(spec, of=None):
    """Probes and their replies from a reference judge."""
    model = reference_season_judges()[spec.model]
    calls = probe_calls(of or horizons(), [spec])
    return [(probe, read_guess(asyncio.run(model.complete(probe.call)), probe)) for probe in calls]


def test_a_probe_lists_the_agents_and_shows_the_record_without_them():
    (first, *_) = probes = probe_calls(horizons(), [judge()])
    assert [probe.author for probe in probes] == list(OPTIONS)
    system, user = (message.text for message in first.call.messages)
    assert all(f'- "{name}"' in system for name in OPTIONS)
    assert not any(name in user for name in OPTIONS)
    assert first.shown == (1, 2)
    assert len({probe.call.messages[0].text for probe in probes}) == 1


def test_of_a_split_horizon_the_first_part_is_shown():
    long = {name: horizon(6, text="word " * 1500) for name in OPTIONS}
    (probe, *_) = probe_calls(long, [judge()], budget=5000)
    assert probe.shown == (1, 3)


def test_a_judge_that_knows_the_styles_is_above_chance():
    known = ",".join(f"{style}={name}" for style, name in zip(STYLES, OPTIONS, strict=True))
    (found,) = author_probe(asked(judge(trials=3, knows=known)))
    assert (found.hits, found.guesses, found.asked, found.accuracy, found.chance) == (12, 12, 12, 1.0, 0.25)
    assert found.state == "above chance"
    assert found.hits_of["desk-2"] == (3, 3)
    assert str(found) == "reader: 12 of 12 right [76%, 100%] against 25% by chance, above chance"


def test_one_known_agent_is_told_apart():
    (found,) = author_probe(asked(judge(trials=5, knows="birch=desk-1")))
    assert found.hits_of["desk-1"] == (5, 5)
    assert found.hits_of["desk-0"][0] < 5


def test_a_judge_that_knows_nobody_is_near_chance():
    (found,) = author_probe(asked(judge(trials=50)))
    assert found.guesses == 200
    assert found.low < 0.25 < found.high
    assert found.state == "not above chance"


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_interval_is_wilson_s(n, data, level):
    hits = data.draw(st.integers(0, n))
    (probe, *_) = probe_calls(horizons(), [judge()])
    answered = [
        (
            replace(probe, call=replace(probe.call, trial=trial + 1)),
            Read("ok", parse_guess(f'{{"author": "{OPTIONS[trial >= hits]}", "reason": ""}}', OPTIONS)),
        )
        for trial in range(n)
    ]
    (found,) = author_probe(answered, level=level)
    low, high = proportion_confint(hits, n, alpha=1 - level, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert found.accuracy == hits / n


def test_what_is_no_guess_is_counted_and_left_out():
    (probe, *_) = probe_calls(horizons(), [judge()])
    texts = [
        "I cannot say.",
        '{"author": "desk-9", "reason": ""}',
        '{"author": "desk-0"}',
        '{"author": 1, "reason": ""}',
    ]
    answered = [
        (replace(probe, call=replace(probe.call, trial=at)), read_guess(Reply(text=text, model="m"), probe))
        for at, text in enumerate(texts, start=1)
    ]
    assert {read.state for _, read in answered} == {"invalid"}
    (found,) = author_probe(answered)
    assert (found.guesses, found.asked, found.accuracy, found.state) == (0, 4, None, "no guess")
    assert str(found) == "reader: no guess in 4 replies"


def test_what_makes_no_accuracy_is_refused():
    with pytest.raises(InputError, match=r"at least two are needed \(got 1\)"):
        probe_calls({"desk": horizon(1)}, [judge()])
    answered = asked(judge())
    other = [(replace(probe, options=OPTIONS[:2], trial=2, author="x"), read) for probe, read in answered[:1]]
    with pytest.raises(InputError) as caught:
        author_probe([*answered, answered[0], *other], level=1.0)
    said = str(caught.value)
    assert "answered 2 times" in said
    assert "among different agents" in said
    assert "strictly between 0 and 1" in said
