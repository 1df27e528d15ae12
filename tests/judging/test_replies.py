"""Replies: a strict parser and a corpus of hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_records import by_id, context, decision, study

from assaymark.engine.calls import Reply
from assaymark.judging import (
    Invalid,
    Parsed,
    asks_again,
    judgment,
    load_rubric,
    parse_reply,
    plan_calls,
    reply_schema,
    second_call,
)
from assaymark.judging.replies import MOST_CHARACTERS
from assaymark.records import parse, to_json

RUBRIC = load_rubric("v1.0")
SCORES = dict(zip(RUBRIC.names, (1, 2, 3, 4, 5, 3), strict=True))
GOOD: dict[str, Any] = {"scores": SCORES, "evidence": ["+3.1%"], "lookahead_check": "pass", "comment": None}
TEXT = json.dumps(GOOD)


def changed(**parts: Any) -> str:
    return json.dumps({**GOOD, **parts})


def scored(value: str) -> str:
    """A reply whose first score is this piece of JSON."""
    return TEXT.replace('"action_coherence": 1', f'"action_coherence": {value}')


def test_a_good_reply_is_parsed():
    assert parse_reply(f"\n {TEXT}\t", RUBRIC) == Parsed(SCORES, ("+3.1%",), "pass", None)


def test_the_comment_is_optional():
    without = {key: value for key, value in GOOD.items() if key != "comment"}
    assert parse_reply(json.dumps(without), RUBRIC) == parse_reply(TEXT, RUBRIC)
    assert parse_reply(changed(comment="fine"), RUBRIC) == Parsed(SCORES, ("+3.1%",), "pass", "fine")


def test_scores_come_in_the_order_of_the_rubric():
    parsed = parse_reply(changed(scores=dict(reversed(SCORES.items()))), RUBRIC)
    assert isinstance(parsed, Parsed)
    assert tuple(parsed.scores) == RUBRIC.names


HOSTILE = {
    "empty": ("", "not one JSON object: expecting value at character 0"),
    "prose": ("I would give it a 4.", "not one JSON object"),
    "two fences": (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "not one JSON object: extra data"),
    "prose and a fence": (f"Here it is:\n```json\n{TEXT}\n```", "not one JSON object"),
    "fence of another language": (f"```python\n{TEXT}\n```", "not one JSON object"),
    "open fence": (f"```json\n{TEXT}", "not one JSON object"),
    "empty fence": ("```\n```", "not one JSON object"),
    "strict in a fence": (f"```json\n{scored('6')}\n```", r"whole number from 1 to 5 \(got 6\)"),
    "prose after": (f"{TEXT}\nHope this helps!", "not one JSON object: extra data"),
    "two objects": (TEXT + TEXT, "not one JSON object: extra data"),
    "byte order mark": ("\ufeff" + TEXT, "not one JSON object"),
    "cut": (TEXT[:-9], "not one JSON object"),
    "list": (f"[{TEXT}]", r"not a JSON object \(got list\)"),
    "number": ("5", r"not a JSON object \(got int\)"),
    "null": ("null", r"not a JSON object \(got NoneType\)"),
    "duplicate key": (TEXT.replace("{", '{"scores": {}, ', 1), "key 'scores' comes more than once"),
    "duplicate score": (scored('1, "action_coherence": 5'), "key 'action_coherence' comes more than once"),
    "NaN": (scored("NaN"), "NaN is not JSON"),
    "Infinity": (scored("-Infinity"), "-Infinity is not JSON"),
    "boolean": (scored("true"), r"whole number from 1 to 5 \(got True\)"),
    "float": (scored("4.0"), r"whole number from 1 to 5 \(got 4\.0\)"),
    "exponent": (scored("1e0"), r"whole number from 1 to 5 \(got 1\.0\)"),
    "huge exponent": (scored("1e999"), r"whole number from 1 to 5 \(got inf\)"),
    "string": (scored('"4"'), r"whole number from 1 to 5 \(got '4'\)"),
    "null score": (scored("null"), r"whole number from 1 to 5 \(got None\)"),
    "zero": (scored("0"), r"whole number from 1 to 5 \(got 0\)"),
    "six": (scored("6"), r"whole number from 1 to 5 \(got 6\)"),
    "negative": (scored("-3"), r"whole number from 1 to 5 \(got -3\)"),
    "many digits": (scored("1" * 90_000), "an integer with 90000 digits"),
    "a list of scores": (changed(scores=[1, 2, 3, 4, 5, 3]), "scores must be an object"),
    "missing dimension": (TEXT.replace('"action_coherence": 1, ', ""), "dimensions are missing: 'action_coherence'"),
    "extra dimension": (scored('1, "overall": 5'), "dimensions are unknown: 'overall'"),
    "missing key": (json.dumps({"scores": SCORES}), "keys are missing: 'evidence', 'lookahead_check'"),
    "extra key": (changed(confidence=1), "keys are unknown: 'confidence'"),
    "evidence text": (changed(evidence="x"), "evidence must be a list"),
    "evidence number": (changed(evidence=[3]), "evidence must be text"),
    "much evidence": (changed(evidence=["x"] * 13), "evidence has 13 entries"),
    "long evidence": (changed(evidence=["x" * 2001]), "evidence has 2001 characters"),
    "lone surrogate": (changed(evidence=["\ud800"]), "half of a surrogate pair"),
    "raw surrogate": (changed(evidence=["?"]).replace("?", "\udfff"), "half of a surrogate pair"),
    "comment number": (changed(comment=4), "comment must be text"),
    "look-ahead": (changed(lookahead_check="yes"), "lookahead_check must be pass, fail or unsure"),
    "look-ahead list": (changed(lookahead_check=["pass"]), "lookahead_check must be pass, fail or unsure"),
    "control characters": (changed(comment="a").replace('"a"', '"a\nb"'), "invalid control character"),
    "brackets": ("[" * 90_000, "nested too deeply"),
    "braces": ('{"a":' * 15_000, "nested too deeply"),
    "200k brackets": ("[" * 200_000, "longer than 100000 characters"),
    "100k digits": (scored("1" * 100_000), "longer than 100000 characters"),
    "50 MB": ("x" * 50_000_000, r"longer than 100000 characters \(got 50000000\)"),
    "script": ("<script>alert(1)</script>", "not one JSON object"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_are_invalid_for_a_short_printable_reason(name):
    text, reason = HOSTILE[name]
    found = parse_reply(text, RUBRIC)
    assert isinstance(found, Invalid)
    with pytest.raises(ValueError, match=reason):
        raise ValueError(found.reason)
    assert len(found.reason) < 300
    assert found.reason.isprintable()
    assert found.reason.isascii()


def test_a_hostile_key_is_cut_in_the_reason():
    found = parse_reply(json.dumps({**GOOD, "<b>" * 1000: 1}), RUBRIC)
    assert isinstance(found, Invalid)
    assert len(found.reason) < 100


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, *SCORES, "x"]), inner, max_size=8)
    ),
    max_leaves=10,
)


@given(json_values | st.fixed_dictionaries(dict.fromkeys(GOOD, json_values)), st.text(max_size=5))
def test_no_reply_raises_and_none_is_guessed(value, tail):
    found = parse_reply(json.dumps(value) + tail, RUBRIC)
    assert isinstance(found, Invalid) or all(type(score) is int and 1 <= score <= 5 for score in found.scores.values())


@given(st.binary(max_size=60))
def test_no_bytes_raise(raw):
    assert isinstance(parse_reply(raw.decode("utf-8", "surrogateescape"), RUBRIC), Invalid)


def test_the_schema_names_exactly_what_the_parser_wants():
    schema = reply_schema(RUBRIC)
    assert set(schema["required"]) == set(GOOD)
    assert tuple(schema["properties"]["scores"]["required"]) == RUBRIC.names
    objects = [schema, schema["properties"]["scores"]]
    assert all(
        one["additionalProperties"] is False and set(one["required"]) == set(one["properties"]) for one in objects
    )


def planned():
    return plan_calls([decision()], by_id(context()), study(), RUBRIC)[0]


def test_a_judgment_carries_the_reply():
    call = planned()
    found = judgment(call, Reply(text=TEXT, model="m"), RUBRIC)
    assert (found.status, found.scores, found.evidence, found.lookahead_check) == ("ok", SCORES, ("+3.1%",), "pass")
    assert (found.trajectory, found.judge, found.family) == ("made-up-run7/record-0", "auditor", "ledger")
    assert (found.rubric, found.trial, found.call_key, found.reason) == ("v1.0", 1, call.call.key, None)
    assert parse(type(found), json.dumps(to_json(found))) == found


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        (Reply(text=TEXT, model="m", finish="refusal"), "refused", "the model refused to answer"),
        (Reply(text=TEXT, model="m", finish="length"), "invalid", "cut off at the length limit"),
        (Reply(text="x" * (MOST_CHARACTERS + 1), model="m"), "invalid", "longer than 100000 characters (got 100001)"),
    ],
)
def test_a_judgment_without_scores_says_why(reply, status, reason):
    found = judgment(planned(), reply, RUBRIC)
    assert (found.status, found.scores, found.reason, found.lookahead_check) == (status, {}, reason, None)


def test_a_reply_in_one_code_fence_is_read():
    for fenced in (f"```json\n{TEXT}\n```", f"\n```\n{TEXT}\n```\n", f"```JSON \r\n{TEXT}\r\n```"):
        assert parse_reply(fenced, RUBRIC) == parse_reply(TEXT, RUBRIC)


@pytest.mark.parametrize(
    ("reply", "again"),
    [
        (Reply(text="I give it a 4.", model="m"), True),
        (Reply(text="", model="m"), True),
        (Reply(text=TEXT[:-9], model="m"), True),
        (Reply(text=TEXT, model="m"), False),
        (Reply(text=f"```json\n{TEXT}\n```", model="m"), False),
        (Reply(text=scored("6"), model="m"), False),
        (Reply(text=scored("NaN"), model="m"), False),
        (Reply(text="5", model="m"), False),
        (Reply(text="[" * 90_000, model="m"), False),
        (Reply(text="x" * (MOST_CHARACTERS + 1), model="m"), False),
        (Reply(text="I cannot.", model="m", finish="refusal"), False),
        (Reply(text=TEXT[:-9], model="m", finish="length"), False),
    ],
)
def test_only_what_is_no_json_at_all_is_asked_for_again(reply, again):
    assert asks_again(reply) == again


def test_the_second_reply_counts_where_the_first_is_no_json():
    call, prose = planned(), Reply(text="I give it a 4.", model="m")
    second = second_call(call.call)
    found = judgment(call, prose, RUBRIC, second=Reply(text=TEXT, model="m"))
    assert (found.status, found.scores, found.trial) == ("ok", SCORES, 1)
    assert (found.first_key, found.call_key) == (call.call.key, second.key)
    assert second.key != call.call.key
    still = judgment(call, prose, RUBRIC, second=prose)
    assert (still.status, still.first_key, still.call_key) == ("invalid", call.call.key, second.key)
    good = judgment(call, Reply(text=TEXT, model="m"), RUBRIC, second=prose)
    assert (good.status, good.first_key, good.call_key) == ("ok", "", call.call.key)
