"""Rubrics, and replies by them: a strict parser and a corpus of hostile ones."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged_records import by_id, context, decision, study

from assaymark import judging
from assaymark.engine import Reply
from assaymark.errors import InputError, UnknownNameError
from assaymark.judging.prompts import MOST_CHARACTERS, TEMPLATE, system_text
from assaymark.records import Judgment, parse, to_json

DIMENSIONS = (
    "action_coherence", "risk_alignment", "uncertainty_handling", "position_sizing", "information_use",
    "constraint_awareness",
)  # fmt: skip


def text() -> str:
    return (files("assaymark.judging") / "rubrics" / "v1.0.toml").read_text(encoding="utf-8")


def test_v1_0_has_the_six_dimensions_with_thirty_different_anchors():
    rubric = judging.load_rubric("v1.0")
    assert (rubric.names, rubric.version, tomllib.loads(text())["version"]) == (DIMENSIONS, "v1.0", "v1.0")
    anchors = [anchor for dimension in rubric.dimensions for anchor in dimension.anchors]
    assert len(anchors) == len(set(anchors)) == 30
    lines = rubric.text.splitlines()
    assert [sum(line.startswith(f"  {point} = ") for line in lines) for point in range(1, 6)] == [6] * 5
    with pytest.raises(ValueError, match="frozen"):
        rubric.version = "v2"
    with pytest.raises(UnknownNameError, match=r"unknown rubric 'v1\.00'\. Did you mean 'v1\.0'"):
        judging.load_rubric("v1.00")
    assert "v1.0" in judging.rubric_names()


def test_every_problem_of_a_rubric_is_named_at_once():
    with pytest.raises(InputError) as caught:
        judging.parse_rubric(
            'version = "x"\ntitle = "t"\nextra = 1\n[[dimension]]\nname = "A"\nquestion = "q"\nanchors = ["a"]'
        )
    wrong = {problem.where for problem in caught.value.problems}
    assert wrong >= {"dimension.0.name", "dimension.0.anchors", "extra"}


@pytest.mark.parametrize(("old", "new", "says"), [
    ('name = "risk_alignment"', 'name = "action_coherence"', "action_coherence more than once"),
    ('name = "risk_alignment"', 'name = "aggregate"', "names the mean over the dimensions"),
    ('title = "', 'title = 3 # "', "must be text"),
    ("[[dimension]]", "[[dimension]", "not TOML"),
])  # fmt: skip
def test_a_wrong_rubric_is_refused(old, new, says):
    with pytest.raises(InputError, match=says):
        judging.parse_rubric(text().replace(old, new, 1))


def blocks(name: str) -> dict[str, str]:
    """The lines of each dimension in a rubric's file."""
    raw = (files("assaymark.judging") / "rubrics" / f"{name}.toml").read_text(encoding="utf-8")
    found = raw.split("[[dimension]]\n")[1:]
    return {block.split('"')[1]: block.strip() for block in found}


def test_v1_1_differs_from_v1_0_in_the_anchors_of_constraint_awareness_and_in_no_other_byte():
    old, new = blocks("v1.0"), blocks("v1.1")
    assert list(old) == list(new) == list(DIMENSIONS)
    assert {name for name in old if old[name] != new[name]} == {"constraint_awareness"}
    assert judging.load_rubric("v1.1").changed(judging.load_rubric("v1.0")) == {"constraint_awareness"}
    question = judging.load_rubric("v1.0").dimensions[-1].question
    assert judging.load_rubric("v1.1").dimensions[-1].question == question
    assert "arithmetic" in judging.load_rubric("v1.1").dimensions[-1].anchors[4]


def test_v1_2_adds_instructions_on_length_and_a_condition_and_changes_no_anchor():
    assert blocks("v1.2") == blocks("v1.0")
    rubric = judging.load_rubric("v1.2")
    assert rubric.text == f"{rubric.instructions}\n\n{judging.load_rubric('v1.0').text}"
    assert rubric.pass_condition == "cell_b: no verbosity-bias"
    assert rubric.changed(judging.load_rubric("v1.0")) == frozenset()


OWN = """
version = "house-2"
title = "How we grade here"
scale = [0, 10]
instructions = "Grade the argument.\\nNothing else."

[[dimension]]
name = "clarity"
title = "Clear words"
question = "Is it clear?"
weight = 2
anchors = { 0 = "Not at all.", 5 = "Half of it.", 10 = "All of it." }

[[dimension]]
name = "risk"
question = "Are risks named?"
weight = 1
anchors = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
"""


def test_a_rubric_of_ones_own_is_shown_and_answered_on_its_scale():
    rubric = judging.parse_rubric(OWN)
    above, clarity, _ = rubric.text.split("\n\n")
    assert above == "Grade the argument.\nNothing else."
    assert clarity == "clarity\n  Is it clear?\n  0 = Not at all.\n  5 = Half of it.\n  10 = All of it."
    assert (rubric.weights, rubric.scale) == ({"clarity": 2, "risk": 1}, (0, 10))
    score = judging.reply_schema(rubric)["properties"]["scores"]["properties"]["risk"]
    assert score == {"type": "integer", "enum": list(range(11))}
    assert judging.reply_schema(judging.parse_rubric(hundred()))["properties"]["scores"]["properties"]["risk"] == {
        "type": "integer", "description": "0 to 100",
    }  # fmt: skip
    shown = system_text(rubric)
    assert "a whole number from 0 to 10; the texts describe what some numbers mean" in shown
    assert "whole numbers from 0 to 10 as values" in shown
    assert "1 to 5" not in shown
    assert TEMPLATE in judging.plan_texts(rubric)
    assert judging.plan_texts(rubric)[TEMPLATE] != judging.plan_texts(judging.load_rubric("v1.0"))[TEMPLATE]
    reply = {"scores": {"clarity": 0, "risk": 10}, "evidence": [], "lookahead_check": "pass"}
    assert judging.parse_reply(json.dumps(reply), rubric).scores == {"clarity": 0, "risk": 10}
    reply["scores"]["risk"] = 11
    assert "risk must be a whole number from 0 to 10 (got 11)" in judging.parse_reply(json.dumps(reply), rubric).reason


def hundred() -> str:
    end = 'anchors = { 0 = "No.", 100 = "Yes." }'
    return re.sub(r"anchors = .*", end, OWN.replace("[0, 10]", "[0, 100]"))


def test_every_problem_of_a_rubric_of_ones_own_has_its_place():
    broken = OWN.replace('10 = "All of it."', '11 = "All of it."').replace('"9", "10"]', '"9"]')
    with pytest.raises(InputError) as caught:
        judging.parse_rubric(broken.replace("weight = 1", "weight = -1").replace("version", "Version"))
    assert {problem.where for problem in caught.value.problems} >= {
        "version", "Version", "dimension.1.anchors", "dimension.1.weight",
    }  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), [
    ('10 = "All of it."', '9 = "All of it."', r"both ends of the scale, 0 and 10 \(not so: clarity\)"),
    ("weight = 1\n", "", "every dimension has a weight, 0 allowed, or none has \\(missing: risk\\)"),
    ("weight = 2", "weight = 0", "at least one weight must be above 0"),
    ("[0, 10]", "[10, 0]", "names its lowest and its highest whole score"),
    ("[0, 10]", "[0, 0.5]", "must be a whole number"),
])  # fmt: skip
def test_a_wrong_rubric_of_ones_own_is_refused(old, new, says):
    with pytest.raises(InputError, match=says):
        judging.parse_rubric(
            OWN.replace(old, new).replace("weight = 1", "weight = 0" if "above 0" in says else "weight = 1")
        )


RUBRIC = judging.load_rubric("v1.0")


SCORES = dict(zip(RUBRIC.names, (1, 2, 3, 4, 5, 3), strict=True))


GOOD: dict[str, Any] = {"scores": SCORES, "evidence": ["+3.1%"], "lookahead_check": "pass", "comment": None}


TEXT = json.dumps(GOOD)


def changed(**parts: Any) -> str:
    return json.dumps({**GOOD, **parts})


def scored(value: str) -> str:
    """A reply whose first score is this piece of JSON."""
    return TEXT.replace('"action_coherence": 1', f'"action_coherence": {value}')


def test_a_good_reply_is_parsed_alone_or_in_one_code_fence():
    good = judging.Parsed(SCORES, ("+3.1%",), "pass", None)
    without = json.dumps({key: value for key, value in GOOD.items() if key != "comment"})
    turned = changed(scores=dict(reversed(SCORES.items())))
    fences = (f"```json\n{TEXT}\n```", f"\n```\n{TEXT}\n```\n", f"```JSON \r\n{TEXT}\r\n```")
    for reply in (f"\n {TEXT}\t", without, turned, *fences):
        found = judging.parse_reply(reply, RUBRIC)
        assert found == good
        assert tuple(found.scores) == RUBRIC.names
    assert judging.parse_reply(changed(comment="fine"), RUBRIC) == judging.Parsed(SCORES, ("+3.1%",), "pass", "fine")


HOSTILE = {
    "empty": ("", "not one JSON object: expecting value at character 0"),
    "prose": ("I would give it a 4.", "not one JSON object"),
    "two fences": (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "not one JSON object: extra data"),
    "prose and a fence": (f"Here it is:\n```json\n{TEXT}\n```", "not one JSON object"),
    "fence of another language": (f"```python\n{TEXT}\n```", "not one JSON object"),
    "open fence": (f"```json\n{TEXT}", "not one JSON object"), "empty fence": ("```\n```", "not one JSON object"),
    "strict in a fence": (f"```json\n{scored('6')}\n```", r"whole number from 1 to 5 \(got 6\)"),
    "prose after": (f"{TEXT}\nHope this helps!", "not one JSON object: extra data"),
    "two objects": (TEXT + TEXT, "not one JSON object: extra data"),
    "byte order mark": ("\ufeff" + TEXT, "not one JSON object"), "cut": (TEXT[:-9], "not one JSON object"),
    "list": (f"[{TEXT}]", r"not a JSON object \(got list\)"), "number": ("5", r"not a JSON object \(got int\)"),
    "null": ("null", r"not a JSON object \(got NoneType\)"),
    "duplicate key": (TEXT.replace("{", '{"scores": {}, ', 1), "key 'scores' comes more than once"),
    "duplicate score": (scored('1, "action_coherence": 5'), "key 'action_coherence' comes more than once"),
    "NaN": (scored("NaN"), "NaN is not JSON"), "Infinity": (scored("-Infinity"), "-Infinity is not JSON"),
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
    "brackets": ("[" * 90_000, "nested too deeply"), "braces": ('{"a":' * 15_000, "nested too deeply"),
    "200k brackets": ("[" * 200_000, "longer than 100000 characters"),
    "100k digits": (scored("1" * 100_000), "longer than 100000 characters"),
    "50 MB": ("x" * 50_000_000, r"longer than 100000 characters \(got 50000000\)"),
    "long key": (json.dumps({**GOOD, "<b>" * 1000: 1}), "keys are unknown"),
    "script": ("<script>alert(1)</script>", "not one JSON object"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_are_invalid_for_a_short_printable_reason(name):
    text, reason = HOSTILE[name]
    found = judging.parse_reply(text, RUBRIC)
    assert isinstance(found, judging.Invalid)
    with pytest.raises(ValueError, match=reason):
        raise ValueError(found.reason)
    assert len(found.reason) < 300
    assert found.reason.isprintable()
    assert found.reason.isascii()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, *SCORES, "x"]), inner, max_size=8)
    ),
    max_leaves=10,
)


@given(json_values | st.fixed_dictionaries(dict.fromkeys(GOOD, json_values)), st.text(max_size=5))
def test_no_reply_raises_and_none_is_guessed(value, tail):
    found = judging.parse_reply(json.dumps(value) + tail, RUBRIC)
    assert isinstance(found, judging.Invalid) or all(
        type(score) is int and 1 <= score <= 5 for score in found.scores.values()
    )


@given(st.binary(max_size=60))
def test_no_bytes_raise(raw):
    assert isinstance(judging.parse_reply(raw.decode("utf-8", "surrogateescape"), RUBRIC), judging.Invalid)


def test_the_schema_names_exactly_what_the_parser_wants():
    schema = judging.reply_schema(RUBRIC)
    assert set(schema["required"]) == set(GOOD)
    assert tuple(schema["properties"]["scores"]["required"]) == RUBRIC.names
    objects = [schema, schema["properties"]["scores"]]
    assert all(
        one["additionalProperties"] is False and set(one["required"]) == set(one["properties"]) for one in objects
    )


def planned():
    return judging.plan_calls([decision()], by_id(context()), study(), RUBRIC)[0]


def test_a_judgment_carries_the_reply_or_says_why_it_has_no_scores():
    call = planned()
    found = judging.judgment(call, Reply(text=TEXT, model="m"), RUBRIC)
    assert found == Judgment(
        trajectory="made-up-run7/record-0", judge="auditor", family="ledger", rubric="v1.0", trial=1, status="ok",
        scores=SCORES, call_key=call.call.key, evidence=("+3.1%",), lookahead_check="pass", reason=None,
    )  # fmt: skip
    assert parse(type(found), json.dumps(to_json(found))) == found
    for text, finish, status, reason in (
        (TEXT, "refusal", "refused", "the model refused to answer"),
        (TEXT, "length", "invalid", "cut off at the length limit"),
        ("x" * (MOST_CHARACTERS + 1), "stop", "invalid", "longer than 100000 characters (got 100001)"),
    ):
        found = judging.judgment(call, Reply(text=text, model="m", finish=finish), RUBRIC)
        assert (found.status, found.scores, found.reason, found.lookahead_check) == (status, {}, reason, None)


@pytest.mark.parametrize(("text", "finish", "again"), [
    ("I give it a 4.", "stop", True), ("", "stop", True), (TEXT[:-9], "stop", True), (TEXT, "stop", False),
    (f"```json\n{TEXT}\n```", "stop", False), (scored("6"), "stop", False), (scored("NaN"), "stop", False),
    ("5", "stop", False), ("[" * 90_000, "stop", False), ("x" * (MOST_CHARACTERS + 1), "stop", False),
    ("I cannot.", "refusal", False), (TEXT[:-9], "length", False),
])  # fmt: skip
def test_only_what_is_no_json_at_all_is_asked_for_again(text, finish, again):
    assert judging.asks_again(Reply(text=text, model="m", finish=finish)) == again


def test_the_second_reply_counts_where_the_first_is_no_json():
    call, prose = planned(), Reply(text="I give it a 4.", model="m")
    second = judging.second_call(call.call)
    found = judging.judgment(call, prose, RUBRIC, second=Reply(text=TEXT, model="m"))
    assert (found.status, found.scores, found.trial) == ("ok", SCORES, 1)
    assert (found.first_key, found.call_key) == (call.call.key, second.key)
    assert second.key != call.call.key
    still = judging.judgment(call, prose, RUBRIC, second=prose)
    assert (still.status, still.first_key, still.call_key) == ("invalid", call.call.key, second.key)
    good = judging.judgment(call, Reply(text=TEXT, model="m"), RUBRIC, second=prose)
    assert (good.status, good.first_key, good.call_key) == ("ok", "", call.call.key)
