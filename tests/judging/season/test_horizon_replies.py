"""Replies on horizons: what is an answer, what is not, and that nothing in a reply can break the parser."""

from __future__ import annotations

import json

import pytest
from horizon_records import PLAN, answer, answer_text
from hypothesis import given
from hypothesis import strategies as st

from assaymark.engine.calls import Reply, Text
from assaymark.engine.providers.base import strict_schema
from assaymark.judging import Invalid
from assaymark.judging.season.replies import (
    MOST_CLAIMS,
    MOST_NOTE_TOKENS,
    Asked,
    HorizonAnswer,
    OutcomeAnswer,
    horizon_schema,
    outcome_schema,
    parse_horizon,
    parse_outcome,
    read_horizon_reply,
    read_outcome_reply,
)

ASKED = Asked(PLAN, 1, 5)
PART = Asked(PLAN, 1, 5, notes=True)


def reason(text, asked=ASKED):
    found = parse_horizon(text, asked)
    assert isinstance(found, Invalid)
    assert found.reason.isascii()
    assert found.reason.isprintable()
    return found.reason


def test_an_answer_is_read_whole():
    found = parse_horizon(f"\n {answer_text()} ", ASKED)
    assert isinstance(found, HorizonAnswer)
    assert list(found.reasoning) == [part.name for part in PLAN.reasoning]
    assert set(found.evidence.values()) == {60}
    assert found.claims[0].fields == ("pe",)
    assert (found.lookahead_check, found.data_reliability, found.notes) == ("pass", 90, None)


@given(st.data())
def test_any_answer_in_form_is_read_as_it_stands(data):
    points = st.integers(0, 100)
    graded = {part.name: data.draw(points) for part in (*PLAN.reasoning, *PLAN.evidence)}
    given_ = answer(
        reasoning={part.name: graded[part.name] for part in PLAN.reasoning},
        evidence={part.name: graded[part.name] for part in PLAN.evidence},
        data_reliability=data.draw(points),
        lookahead_check=data.draw(st.sampled_from(["pass", "fail"])),
        lookahead_reason=data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=200)),
    )
    found = parse_horizon(json.dumps(given_), ASKED)
    assert {**found.reasoning, **found.evidence} == graded
    assert found.lookahead_reason == given_["lookahead_reason"]


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser(text):
    assert isinstance(parse_horizon(text, ASKED), Invalid)
    assert isinstance(parse_outcome(text), Invalid)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(answer())), json_values)
def test_no_value_in_any_place_breaks_the_parser(key, value):
    found = parse_horizon(json.dumps(answer(**{key: value})), ASKED)
    if isinstance(found, Invalid):
        assert found.reason.isascii()
    else:
        assert key in ("data_reliability", "claims", "lookahead_check", "lookahead_reason", "verdict", "summary")


@given(st.sampled_from(sorted(answer())))
def test_every_key_is_needed_and_no_other_is_taken(key):
    given_ = answer()
    del given_[key]
    assert reason(json.dumps(given_)) == f"keys are missing: '{key}'"
    assert reason(answer_text(**{f"{key}_": 1})) == f"keys are unknown: '{key}_'"


@pytest.mark.parametrize(
    "points", [-1, 101, 70.0, 70.5, True, "70", None, float("nan"), float("inf"), 10**30], ids=repr
)
@pytest.mark.parametrize("axis", ["reasoning", "evidence"])
def test_a_grade_is_a_whole_number_from_0_to_100(axis, points):
    given_ = answer()
    name = sorted(given_[axis])[0]
    given_[axis] = {**given_[axis], name: points}
    reason(json.dumps(given_))
    reason(answer_text(data_reliability=points))


def test_every_part_needs_a_grade():
    given_ = answer()
    del given_["evidence"]["claim_support"]
    assert reason(json.dumps(given_)) == "parts of evidence are missing: 'claim_support'"
    assert "parts of reasoning are unknown: 'charm'" in reason(
        answer_text(reasoning={**answer()["reasoning"], "charm": 50})
    )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"step": 0}, "step must be a whole number from 1 to 5 (got 0)"),
        ({"step": 6}, "step must be a whole number from 1 to 5 (got 6)"),
        ({"step": True}, "step must be"),
        ({"state": "Supported"}, "state must be one of supported, contradicted, not_verifiable"),
        ({"fields": "pe"}, "fields must be a list"),
        ({"fields": [1]}, "field must be text"),
        ({"quote": None}, "quote must be text"),
        ({"quote": "x" * 2000}, "quote has 2000 characters"),
        ({"quote": "\ud800"}, "half of a surrogate pair"),
        ({"more": 1}, "keys are unknown: 'more'"),
    ],
)
def test_a_claim_has_its_form(changed, says):
    claim = answer()["claims"][0] | changed
    assert says in reason(answer_text(claims=[claim]))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"claims": answer()["claims"] * (MOST_CLAIMS + 1)}, "at most 300 are allowed"),
        ({"claims": {}}, "claims must be a list"),
        ({"lookahead_check": "unsure"}, "must be one of pass, fail"),
        ({"verdict": "  "}, "verdict must be one line"),
        ({"summary": "two\nlines"}, "summary must be one line"),
    ],
)
def test_the_rest_has_its_form(changes, says):
    assert says in reason(answer_text(**changes))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The record is fine.",
        f"Here it is: {answer_text()}",
        f"Here: ```json\n{answer_text()}\n```",
        answer_text()[:-20],
        f"[{answer_text()}]",
        answer_text().replace("90", "NaN"),
        answer_text().replace('"data_reliability"', '"summary": "twice", "data_reliability"'),
        "[" * 100_000,
        " " * 500_000,
    ],
    ids=["empty", "prose", "led", "fenced", "cut", "listed", "nan", "twice", "deep", "long"],
)
def test_what_is_not_the_object_is_no_answer(text):
    reason(text)


def test_notes_are_asked_of_parts_alone():
    assert "notes" in reason(answer_text(), PART)
    assert "unknown: 'notes'" in reason(answer_text(notes="kept"))
    assert parse_horizon(answer_text(notes="kept"), PART).notes == "kept"
    assert "at most 1500" in reason(answer_text(notes="a " * (MOST_NOTE_TOKENS + 1)), PART)


@pytest.mark.parametrize(
    ("finish", "state"), [("refusal", "refused"), ("length", "truncated"), ("failed", "failed"), ("stop", "ok")]
)
def test_how_a_reply_ended_goes_before_what_it_says(finish, state):
    found = read_horizon_reply(Reply(text=answer_text(), model="m", finish=finish), ASKED)
    assert found.state == state
    assert (found.answer is None) == (state != "ok")
    assert (found.reason is None) == (state == "ok")


def test_a_reply_that_is_no_answer_says_why():
    found = read_horizon_reply(Reply(text="No.", model="m"), ASKED)
    assert (found.state, found.answer) == ("invalid", None)
    assert "not one JSON object" in found.reason


def test_an_outcome_is_a_number_and_a_reason():
    found = read_outcome_reply(Reply(text='{"outcome": 61, "reason": "ahead on most days"}', model="m"))
    assert found.answer == OutcomeAnswer(61, "ahead on most days")
    assert read_outcome_reply(Reply(text='{"outcome": 61}', model="m")).state == "invalid"


@pytest.mark.parametrize("schema", [horizon_schema(PLAN), horizon_schema(PLAN, notes=True), outcome_schema()])
def test_providers_take_the_schemas(schema):
    assert strict_schema(Text.of(json.dumps(schema))) == schema
