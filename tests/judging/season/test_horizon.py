"""Horizons: what they hold, what blinding does to them, and what is refused."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from horizon_records import AGENTS, Book, Fill, Rejection, context, horizon, season, step
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from assaymark.engine import Reply
from assaymark.errors import InputError
from assaymark.judging import horizon_of, probe_calls, reference_season_judges
from assaymark.judging import season as judging_season
from assaymark.protocol import JudgeSpec
from assaymark.records import Action, Agent, Fact, Rationale, content_id


def test_a_horizon_holds_its_steps_in_order_with_the_market_of_what_is_held_or_traded():
    found = horizon(3)
    assert [one.number for one in found.steps] == [1, 2, 3]
    assert (found.first, found.last, found.before[0]) == (1, 3, 100_000.0)
    one = found.steps[1]
    assert (one.day, one.record_id, one.fills[0][2]) == ("2026-01-06", "season-1/run7/0001", 100.0)
    assert one.book[1] == (("GOOGL", 2.0), ("S001", 3.0))
    assert [action.kind for action in one.actions] == ["buy", "hold"]
    lines = [dict(zip(("symbol", *one.market.columns), one.market.rows[0], strict=True)) for one in found.steps[:2]]
    assert [line[0] for line in found.steps[0].market.rows] == ["GOOGL", "S001"]
    assert [line["pe [ratio]"] for line in lines] == ["21.5", "21.715"]
    assert found.steps[0].market.rows[1][-1] == "12.5"  # the last close of the series


def test_a_traded_symbol_is_shown_for_a_few_steps_and_then_no_longer():
    records, contexts = season(8)
    quiet = {"fills": (), "book": Book(10.0)}
    records = [
        replace(one, **quiet, decision=replace(one.decision, actions=())) if at else replace(one, book=Book(10.0))
        for at, one in enumerate(records)
    ]
    found = horizon_of(records, contexts, agents=AGENTS, recent=3)
    assert [[line[0] for line in one.market.rows] for one in found.steps][:6] == [
        ["GOOGL", "S001"], ["GOOGL"], ["GOOGL"], ["GOOGL"], [], [],
    ]  # fmt: skip


def test_of_a_field_that_comes_twice_the_latest_is_shown():
    of = context()
    old = of.facts[0]
    new = replace(old, id="again", value=99.0, available_at=old.available_at + timedelta(minutes=1))
    for facts in ((new, *of.facts), (*of.facts, new)):
        shown = judging_season.market_lines(replace(of, facts=facts), ["GOOGL"])
        assert dict(zip(shown.columns, shown.rows[0][1:], strict=True))["pe [ratio]"] == "99.0"
    assert judging_season.market_lines(of, []).text == ""


def test_a_record_without_books_is_a_horizon_too_and_a_stated_book_is_shown_once():
    of = context(portfolio=None)
    found = horizon_of([step(0, of, book=None, fills=())], {content_id(of): of}, agents=AGENTS)
    assert (found.before, found.steps[0].book) == (None, None)
    assert [line[0] for line in found.steps[0].market.rows] == ["GOOGL", "S001"]
    stages = {"holdings": {"GOOGL": 2.0}, "cash_after": 10.0, "rank": 3}
    of = context()
    shown = [step(0, of, stages=stages), step(0, of, stages=stages, book=None)]
    once, alone = (horizon_of([one], {content_id(of): of}, agents=AGENTS).steps[0] for one in shown)
    assert once.book is not None
    assert [name for name in stages if name in once.stated] == ["rank"]
    assert [name for name in stages if name in alone.stated] == [*stages]


def test_names_become_tokens_and_what_is_traded_stays():
    said = "As Claude I hold Google and envy zephyr-9b; GOOGL is in run season-1/run7/0000."
    found = horizon(2, text=said)
    assert [one.texts[0].text for one in found.steps] == [
        "As [agent A] I hold Google and envy [agent B]; GOOGL is in run [id]."
    ] * 2
    audit = {(line.name, line.state): line.count for line in found.audit}
    assert audit["Claude", "replaced"] == 2
    assert audit["Google", "kept"] == 2
    assert audit["[id]", "replaced"] == 2
    assert all(line.why for line in found.audit)


def test_a_maker_that_is_held_keeps_its_name_though_the_records_know_its_ticker_only():
    said = "I hold Google, not Gemini on Vertex AI."
    of = context()
    bare = replace(of, instruments=(), facts=tuple(replace(one, instrument="GOOG") for one in of.facts))
    found = horizon_of([step(0, bare, text=said)], {content_id(bare): bare}, agents=AGENTS)
    assert found.steps[0].texts[0].text == "I hold Google, not [agent A] on [agent B]."
    other = replace(of, instruments=(), facts=(), series=(), portfolio=None)
    found = horizon_of([step(0, other, text=said)], {content_id(other): other}, agents=AGENTS)
    assert "Google" not in found.steps[0].texts[0].text


def test_an_order_for_a_name_and_words_in_facts_are_blinded_like_a_text():
    extra = {
        "actions": (Action(instrument="Claude", kind="buy", quantity=1.0),), "fills": (Fill("GPT-5", 1.0),),
        "rejections": (Rejection("Claude Opus", "unknown-symbol"),), "book": Book(1.0, {"Gemini": 2.0}),
    }  # fmt: skip
    one = horizon(1, **extra).steps[0]
    shown = [one.actions[0].instrument, one.fills[0][0], one.rejections[0][0], one.book[1][0][0]]
    assert all(name.startswith("[agent ") for name in shown)
    of = context()
    note = Fact(id="n", instrument="GOOGL", field="note", value="Claude likes it", unit="text", available_at=of.cutoff)
    of = replace(of, facts=(*of.facts, note))
    found = horizon_of([step(0, of)], {content_id(of): of}, agents=AGENTS)
    assert "[agent A] likes it" in found.steps[0].market.rows[0]
    texts = tuple(Rationale(text=kind, kind=kind) for kind in ("arena", "holding", "risk", "summary"))
    found = horizon_of([step(0, of, rationales=texts)], {content_id(of): of}, agents=AGENTS)
    assert [text.text for text in found.steps[0].texts] == ["summary", "risk"]  # those that judges see


@given(st.permutations(AGENTS))
def test_the_order_of_the_agents_changes_nothing(agents):
    said = "Claude, Gemini and zephyr agree."
    assert horizon(2, agents=agents, text=said) == horizon(2, text=said)


def test_a_part_knows_the_book_it_begins_with():
    found = horizon(5)
    part = found.between(3, 4)
    assert [one.number for one in part.steps] == [3, 4]
    assert part.before == found.steps[1].book
    assert found.between(1, 5) == found
    with pytest.raises(InputError, match=r"none from 9 to 12 \(has 1\.\.5\)"):
        found.between(9, 12)


def test_every_problem_is_told_at_once():
    records, contexts = season(3)
    bad = [
        records[1],
        records[0],
        replace(records[0], book=Book(float("nan")), fills=(Fill("A", float("inf")),)),
        replace(records[2], decision=replace(records[2].decision, agent=AGENTS[1], context_id="0" * 64)),
    ]
    with pytest.raises(InputError) as caught:
        horizon_of(bad, contexts, agents=AGENTS, recent=-1)
    for words in ("of one agent", "not after record", "comes more than once", "cash", "fill of A",
                  "not among them", "recent"):  # fmt: skip
        assert words in str(caught.value)
    with pytest.raises(InputError, match="at least one is needed"):
        horizon_of([], {}, agents=AGENTS)
    of = context()
    late = replace(of.facts[0], id="late", available_at=of.cutoff + timedelta(days=1))
    of = replace(of, facts=(*of.facts, late))
    with pytest.raises(InputError, match=r"fact late: available at .*, after the decision"):
        horizon_of([step(0, of)], {content_id(of): of}, agents=AGENTS)


# The author probe: what is asked, what is a guess, and how accuracy stands against chance

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
    return [(probe, judging_season.read_guess(asyncio.run(model.complete(probe.call)), probe)) for probe in calls]


def test_a_probe_lists_the_agents_and_shows_the_record_without_them():
    (first, *_) = probes = probe_calls(horizons(), [judge()])
    assert [probe.agent for probe in probes] == list(OPTIONS)
    system, user = (message.text for message in first.call.messages)
    assert all(f'- "{name}"' in system for name in OPTIONS)
    assert not any(name in user for name in OPTIONS)
    assert len({probe.call.messages[0].text for probe in probes}) == 1
    long = {name: horizon(6, text="word " * 1500) for name in OPTIONS}
    (probe, *_) = probe_calls(long, [judge()], budget=5000)  # of a split horizon the first part
    assert [(one.part.first, one.part.last) for one in (first, probe)] == [(1, 2), (1, 3)]
    with pytest.raises(InputError, match=r"at least two are needed \(got 1\)"):
        probe_calls({"desk": horizon(1)}, [judge()])


def right(spec):
    """How many guesses name the author, by author."""
    return Counter(probe.agent for probe, read in asked(spec) if read.answer and read.answer.value == probe.agent)


def test_a_judge_names_the_agents_whose_style_it_knows_and_draws_among_the_others():
    known = ",".join(f"{style}={name}" for style, name in zip(STYLES, OPTIONS, strict=True))
    assert right(judge(trials=3, knows=known)) == dict.fromkeys(OPTIONS, 3)
    one = right(judge(trials=5, knows="birch=desk-1"))
    assert one["desk-1"] == 5 > one["desk-0"]
    low, high = proportion_confint(right(judge(trials=50)).total(), 200, method="wilson")
    assert low < 0.25 < high


@pytest.mark.parametrize(
    "text",
    ["I cannot say.", '{"author": "desk-9", "reason": ""}', '{"author": "desk-0"}', '{"author": 1, "reason": ""}'],
)
def test_what_names_none_of_the_agents_is_no_guess(text):
    (probe, *_) = probe_calls(horizons(), [judge()])
    assert judging_season.read_guess(Reply(text=text, model="m"), probe).state == "invalid"
