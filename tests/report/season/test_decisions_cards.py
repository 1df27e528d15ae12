"""Cards of decisions: what each is found by, what came of it, and texts of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_season import made_catalogue, made_season

from assaymark.agents import NOT_USABLE, REJECTED
from assaymark.claims import languages
from assaymark.portfolio.broker import Reason
from assaymark.records import RationaleKind
from assaymark.report import Group, environment
from assaymark.report.season import SeasonRefusal, SeasonStep, SeasonTrade
from assaymark.report.season.decisions import (
    FILTERS,
    QUIET,
    REFUSED,
    SILENT,
    TRADED,
    WRONG,
    decision_bytes,
    decision_filters,
    decision_group,
    decision_keys,
    decision_parts,
    decisions_answer,
)
from assaymark.report.season.index import AgentIndex, SeasonIndex, Words

FILL = SeasonTrade(symbol="NVX", quantity=-4.0, price=101.5, cost=0.4)
REFUSAL = SeasonRefusal(symbol="ORL", reason="beyond-cash", text="Buying 40 needs 9,000.")
STEPS = st.builds(
    SeasonStep,
    number=st.just(1),
    day=st.just("2026-01-05"),
    record_id=st.just("r"),
    orders=st.lists(st.text(max_size=12), max_size=4).map(tuple),
    texts=st.lists(st.tuples(st.sampled_from(get_args(RationaleKind)), st.text(max_size=80)), max_size=3).map(tuple),
    fills=st.sampled_from([(), (FILL,), (FILL, replace(FILL, kind="delisted", price=None))]),
    refusals=st.sampled_from([(), (REFUSAL,)]),
    flags=st.sets(st.sampled_from([*NOT_USABLE, REJECTED, "replayed"])).map(tuple),
    problem=st.sampled_from(["", "timed out"]),
    seconds=st.none() | st.floats(0, 900),
    nav=st.none() | st.floats(-1e6, 1e9),
    mismatches=st.sampled_from([(), ("Cash 1 is stated.",)]),
)


def book_of(*steps: SeasonStep, language: str = "en") -> AgentIndex:
    run = replace(made_season(1, 2), steps={"Alder": steps})
    return AgentIndex(SeasonIndex.of(run, Words(made_catalogue(language))), run.plan.agents[0])


def html_of(group: Group) -> str:
    """A decision as its page shows it."""
    blocks = environment().get_template("blocks.html").make_module({"root": ""})
    return str(blocks.group(group))


def card(**values) -> str:
    step = SeasonStep(**{"number": 3, "day": "2026-01-07", "record_id": "r"} | values)
    return html_of(decision_group(book_of(step), step))


@given(STEPS)
def test_a_decision_is_found_by_all_that_came_of_it(step):
    keys = decision_keys(step)
    assert list(keys) == [key for key in FILTERS if key in keys]
    assert (TRADED in keys) == bool(step.fills)
    assert (REFUSED in keys) == (bool(step.refusals) or REJECTED in step.flags)
    assert (WRONG in keys) == bool(step.mismatches)
    assert (QUIET in keys) == (not {*keys} & {TRADED, REFUSED, SILENT})
    if {*NOT_USABLE} & {*step.flags}:
        assert SILENT in keys


@given(st.lists(STEPS, min_size=1, max_size=6))
def test_buttons_count_the_cards_that_they_show(steps):
    book = book_of(*steps)
    found = [decision_group(book, one) for one in steps]
    buttons = {one.key: int(one.count) for one in decision_filters(Words(made_catalogue()), steps)}
    assert buttons.pop("") == len(steps)
    keys = [{one.key, *one.also.split()} for one in found]
    assert buttons == {key: n for key in FILTERS if (n := sum(key in one for one in keys))}


@given(STEPS)
def test_the_size_of_a_card_is_about_its_bytes(step):
    # Generous for empty cards, and never so small that a page of them could pass a megabyte.
    assert len(html_of(decision_group(book_of(step), step)).encode()) < 1.6 * decision_bytes(step)


def test_the_newest_decision_is_first():
    (shown,) = decision_parts("agents/Alder.html", made_season(1, 9).steps["Alder"]).values()
    assert [step.number for step in shown] == [9, 8, 7, 6, 5, 4, 3, 2, 1]


def test_the_reason_that_the_agent_was_shown_stands_in_quotation_marks():
    html = card(refusals=(REFUSAL,))
    assert "<b>ORL</b>: more than the cash" in html
    assert "The agent was shown: “Buying 40 needs 9,000.”" in html


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (FILL, "sold 4 NVX at 101.50, cost 0.40"),
        (replace(FILL, quantity=1234.5678, cost=0.0), "bought 1,234.57 NVX at 101.50<"),
        (replace(FILL, price=None), "sold 4 NVX, price not recorded"),
        (replace(FILL, kind="delisted", quantity=-2), "paid out 2 NVX, which ended at 101.50"),
    ],
)
def test_a_fill_says_what_was_traded(fill, said):
    assert said in card(fills=(fill,))


def test_a_day_without_an_answer_says_so_and_why():
    html = card(flags=("no-answer",), problem="the provider timed out")
    assert "No usable answer. The agent holds." in html
    assert "the provider timed out" in html
    assert 'data-k="no-answer"' in html


def test_a_long_text_is_folded_and_a_very_long_one_is_cut_with_its_count():
    assert "<details" not in card(texts=(("summary", "short"),))
    assert "<details" in card(texts=(("summary", "word " * 200),))
    assert "1500 more characters are not shown." in card(texts=(("summary", "x" * 7500),))


def test_lines_of_a_text_are_kept():
    assert "first\nsecond" in card(texts=(("summary", "first\r\n\r\n  second"),))


def test_kinds_of_texts_are_named_where_there_are_several():
    assert "Risk" not in card(texts=(("risk", "a"),))
    html = card(texts=(("risk", "a"), ("risk", "b"), ("summary", "c"), ("risk", "d")))
    assert html.count('<p class="hd">Risk</p>') == 2
    assert html.count('<p class="hd">Summary</p>') == 1


def test_holding_is_no_order_and_an_order_is_none_beside_it():
    assert "No order" in card(orders=("no_trade",))
    assert "no_trade" not in card(orders=("no_trade",))
    assert "No order" in card(orders=("hold NVX",))
    assert "hold NVX" in card(orders=("hold NVX",))
    assert "No order" not in card(orders=("hold NVX", "buy ORL"))


def test_every_fixed_word_is_in_every_language():
    for language in languages():
        words = Words(made_catalogue(language))
        for group, names in (
            ("refusal", get_args(Reason)), ("text", get_args(RationaleKind)), ("flag", (*NOT_USABLE, REJECTED)),
            ("filter", FILTERS),
        ):  # fmt: skip
            assert all(words.has(f"model.{group}.{name.replace('-', '_')}") for name in names), (language, group)


def test_the_section_counts_days():
    run = made_season(1, 61)
    book = AgentIndex(SeasonIndex.of(run), run.plan.agents[0])
    silent = sum(bool(step.problem) for step in run.steps["Alder"])
    assert decisions_answer(book) == f"61 decisions. With a trade: 61. Without a usable answer: {silent}."
