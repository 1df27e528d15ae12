"""Horizons: what they hold, what blinding does to them, and what is refused."""

from __future__ import annotations

import asyncio
import re
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


def alone(of, **changes):
    """The horizon of one step in this context."""
    return horizon_of([step(0, of, **changes)], {content_id(of): of}, agents=AGENTS)


def symbols(one):
    return [line[0] for line in one.market.rows]


def test_a_horizon_holds_its_steps_in_order_with_the_market_of_what_is_held_or_traded():
    found = horizon(5)
    assert [one.number for one in found.steps] == [1, 2, 3, 4, 5]
    assert (found.first, found.last, found.before[0]) == (1, 5, 100_000.0)
    first, one, *_ = found.steps
    assert (one.day, one.record_id, one.fills[0][2]) == ("2026-01-06", "season-1/run7/0001", 100.0)
    assert one.book[1] == (("GOOGL", 2.0), ("S001", 3.0))
    assert [action.kind for action in one.actions] == ["buy", "hold"]
    assert symbols(first) == ["GOOGL", "S001"]
    lines = [dict(zip(shown.market.columns, shown.market.rows[0][1:], strict=True)) for shown in (first, one)]
    assert [line["pe [ratio]"] for line in lines] == ["21.5", "21.715"]
    assert first.market.rows[1][-1] == "12.5"  # the last close of the series
    part = found.between(3, 4)  # a part knows the book it begins with
    assert ([one.number for one in part.steps], part.before) == ([3, 4], one.book)
    assert found.between(1, 5) == found
    with pytest.raises(InputError, match=r"none from 9 to 12 \(has 1\.\.5\)"):
        found.between(9, 12)


def test_a_traded_symbol_is_shown_for_a_few_steps_and_of_a_field_that_comes_twice_the_latest():
    records, contexts = season(8)
    quiet = {"fills": (), "book": Book(10.0)}
    records = [
        replace(one, **quiet, decision=replace(one.decision, actions=())) if at else replace(one, book=Book(10.0))
        for at, one in enumerate(records)
    ]
    found = horizon_of(records, contexts, agents=AGENTS, recent=3)
    assert [symbols(one) for one in found.steps][:6] == [["GOOGL", "S001"], *[["GOOGL"]] * 3, [], []]
    of = context()
    new = replace(of.facts[0], id="again", value=99.0, available_at=of.facts[0].available_at + timedelta(minutes=1))
    for facts in ((new, *of.facts), (*of.facts, new)):
        shown = judging_season.market_lines(replace(of, facts=facts), ["GOOGL"])
        assert dict(zip(shown.columns, shown.rows[0][1:], strict=True))["pe [ratio]"] == "99.0"
    assert judging_season.market_lines(of, []).text == ""


def test_a_record_without_books_is_a_horizon_too_and_a_stated_book_is_shown_once():
    found = alone(context(portfolio=None), book=None, fills=())
    assert (found.before, found.steps[0].book, symbols(found.steps[0])) == (None, None, ["GOOGL", "S001"])
    stages = {"holdings": {"GOOGL": 2.0}, "cash_after": 10.0, "rank": 3}
    once, bare = (alone(context(), stages=stages, **more).steps[0] for more in ({}, {"book": None}))
    assert once.book is not None
    assert [[name for name in stages if name in one.stated] for one in (once, bare)] == [["rank"], [*stages]]


def test_names_become_tokens_and_what_is_traded_stays():
    found = horizon(2, text="As Claude I hold Google and envy zephyr-9b; GOOGL is in run season-1/run7/0000.")
    said = "As [agent A] I hold Google and envy [agent B]; GOOGL is in run [id]."
    assert [one.texts[0].text for one in found.steps] == [said] * 2
    audit = {(line.name, line.state): line.count for line in found.audit}
    assert (audit["Claude", "replaced"], audit["Google", "kept"], audit["[id]", "replaced"]) == (2, 2, 2)
    assert all(line.why for line in found.audit)
    # a maker that is held keeps its name though the records know its ticker only
    said, of = "I hold Google, not Gemini on Vertex AI.", context()
    bare = replace(of, instruments=(), facts=tuple(replace(one, instrument="GOOG") for one in of.facts))
    assert alone(bare, text=said).steps[0].texts[0].text == "I hold Google, not [agent A] on [agent B]."
    other = replace(of, instruments=(), facts=(), series=(), portfolio=None)
    assert "Google" not in alone(other, text=said).steps[0].texts[0].text


def test_an_order_for_a_name_and_words_in_facts_are_blinded_like_a_text():
    one = horizon(
        1, actions=(Action(instrument="Claude", kind="buy", quantity=1.0),), fills=(Fill("GPT-5", 1.0),),
        rejections=(Rejection("Claude Opus", "unknown-symbol"),), book=Book(1.0, {"Gemini": 2.0}),
    ).steps[0]  # fmt: skip
    shown = [one.actions[0].instrument, one.fills[0][0], one.rejections[0][0], one.book[1][0][0]]
    assert all(name.startswith("[agent ") for name in shown)
    of = context()
    note = Fact(id="n", instrument="GOOGL", field="note", value="Claude likes it", unit="text", available_at=of.cutoff)
    texts = tuple(Rationale(text=kind, kind=kind) for kind in ("arena", "holding", "risk", "summary"))
    (one,) = alone(replace(of, facts=(*of.facts, note)), rationales=texts).steps
    assert "[agent A] likes it" in one.market.rows[0]
    assert [text.text for text in one.texts] == ["summary", "risk"]  # those that judges see


@given(st.permutations(AGENTS))
def test_the_order_of_the_agents_changes_nothing(agents):
    said = "Claude, Gemini and zephyr agree."
    assert horizon(2, agents=agents, text=said) == horizon(2, text=said)


def test_every_problem_is_told_at_once():
    records, contexts = season(3)
    bad = [
        records[1], records[0], replace(records[0], book=Book(float("nan")), fills=(Fill("A", float("inf")),)),
        replace(records[2], decision=replace(records[2].decision, agent=AGENTS[1], context_id="0" * 64)),
    ]  # fmt: skip
    with pytest.raises(InputError) as caught:
        horizon_of(bad, contexts, agents=AGENTS, recent=-1)
    for words in ("of one agent", "not after record", "comes more than once", "cash", "fill of A",
                  "not among them", "recent"):  # fmt: skip
        assert words in str(caught.value)
    with pytest.raises(InputError, match="at least one is needed"):
        horizon_of([], {}, agents=AGENTS)
    of = context()
    late = replace(of.facts[0], id="late", available_at=of.cutoff + timedelta(days=1))
    with pytest.raises(InputError, match=r"fact late: available at .*, after the decision"):
        alone(replace(of, facts=(*of.facts, late)))


# The author probe: what is asked, what is a guess, and how accuracy stands against chance

STYLES = {"desk-0": "alder", "desk-1": "birch", "desk-2": "cedar", "desk-3": "dogwood"}
DESKS = [Agent(id=name, family="made-up") for name in STYLES]
HORIZONS = {one.id: horizon(2, agent=one, agents=DESKS, style=STYLES[one.id]) for one in DESKS}


def judge(trials=1, **args):
    return JudgeSpec(name="reader", model="reference/season-reader", family="prose", trials=trials, args=args)


def test_a_probe_lists_the_agents_and_shows_the_record_without_them():
    (first, *_) = probes = probe_calls(HORIZONS, [judge()])
    assert [probe.about[0] for probe in probes] == list(STYLES)
    system, user = (message.text for message in first.call.messages)
    assert all(f'- "{name}"' in system and name not in user for name in STYLES)
    assert len({probe.call.messages[0].text for probe in probes}) == 1
    long = {name: horizon(6, text="word " * 1500) for name in STYLES}
    (probe, *_) = probe_calls(long, [judge()], budget=5000)  # of a split horizon the first part
    (whole, *_) = probe_calls(long, [judge()], budget=10**6)
    steps = [
        re.findall(r"<<<BEGIN step.*?<<<END step", one.call.messages[1].text, re.S) for one in (first, probe, whole)
    ]
    assert [len(one) for one in steps] == [2, 3, 6]
    assert steps[1] == steps[2][:3]
    with pytest.raises(InputError, match=r"at least two are needed \(got 1\)"):
        probe_calls({"desk": horizon(1)}, [judge()])
    for text in ("I cannot say.", '{"author": "desk-9", "reason": ""}', '{"author": "desk-0"}',
                 '{"author": 1, "reason": ""}'):  # fmt: skip
        assert first.read(Reply(text=text, model="m")).state == "invalid"


def right(spec):
    """Count a built-in judge's correct guesses, by author."""
    model, found = reference_season_judges()[spec.model], Counter()
    for probe in probe_calls(HORIZONS, [spec]):
        read = probe.read(asyncio.run(model.complete(probe.call)))
        found[probe.about[0]] += bool(read.answer and read.answer[0] == probe.about[0])
    return found


def test_a_judge_names_the_agents_whose_style_it_knows_and_draws_among_the_others():
    known = ",".join(f"{style}={name}" for name, style in STYLES.items())
    assert right(judge(trials=3, knows=known)) == dict.fromkeys(STYLES, 3)
    one = right(judge(trials=5, knows="birch=desk-1"))
    assert one["desk-1"] == 5 > one["desk-0"]
    low, high = proportion_confint(right(judge(trials=50)).total(), 200, method="wilson")
    assert low < 0.25 < high
