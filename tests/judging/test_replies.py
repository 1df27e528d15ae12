"""Rubrics, and replies by them: a strict parser and a corpus of hostile ones."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files

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


TEXT = (files("assaymark.judging") / "rubrics" / "v1.0.toml").read_text(encoding="utf-8")


def test_v1_0_has_the_six_dimensions_with_thirty_different_anchors():
    rubric = judging.load_rubric("v1.0")
    assert (rubric.names, rubric.version, tomllib.loads(TEXT)["version"]) == (DIMENSIONS, "v1.0", "v1.0")
    anchors = [anchor for dimension in rubric.dimensions for anchor in dimension.anchors]
    assert len(anchors) == len(set(anchors)) == 30
    lines = rubric.text.splitlines()
    assert [sum(line.startswith(f"  {point} = ") for line in lines) for point in range(1, 6)] == [6] * 5
    with pytest.raises(ValueError, match="frozen"):
        rubric.version = "v2"
    with pytest.raises(UnknownNameError, match=r"unknown rubric 'v1\.00'\. Did you mean 'v1\.0'"):
        judging.load_rubric("v1.00")
    assert "v1.0" in judging.rubric_names()


def blocks(name):
    """The lines of each dimension in a rubric's file."""
    raw = (files("assaymark.judging") / "rubrics" / f"{name}.toml").read_text(encoding="utf-8")
    found = raw.split("[[dimension]]\n")[1:]
    return {block.split('"')[1]: block.strip() for block in found}


def test_v1_1_differs_in_the_anchors_of_constraint_awareness_alone_and_v1_2_adds_instructions_and_a_condition():
    first, second, third = (judging.load_rubric(name) for name in ("v1.0", "v1.1", "v1.2"))
    old, new = blocks("v1.0"), blocks("v1.1")
    assert list(old) == list(new) == list(DIMENSIONS)
    assert {name for name in old if old[name] != new[name]} == second.changed(first) == {"constraint_awareness"}
    assert second.dimensions[-1].question == first.dimensions[-1].question
    assert "arithmetic" in second.dimensions[-1].anchors[4]
    assert (blocks("v1.2"), third.changed(first)) == (old, frozenset())
    assert third.text == f"{third.instructions}\n\n{first.text}"
    assert third.pass_condition == "cell_b: no verbosity-bias"


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
    form = judging.rubric_form(rubric)
    score = json.loads(form.schema)["properties"]["scores"]["properties"]["risk"]
    assert score == {"type": "integer", "enum": list(range(11))}
    hundred = re.sub(r"anchors = .*", 'anchors = { 0 = "No.", 100 = "Yes." }', OWN.replace("[0, 10]", "[0, 100]"))
    wide = json.loads(judging.rubric_form(judging.parse_rubric(hundred)).schema)["properties"]["scores"]
    assert wide["properties"]["risk"] == {"type": "integer", "description": "0 to 100"}
    shown = system_text(rubric)
    assert "a whole number from 0 to 10; the texts describe what some numbers mean" in shown
    assert "whole numbers from 0 to 10 as values" in shown
    assert "1 to 5" not in shown
    assert TEMPLATE in judging.plan_texts(rubric)
    assert judging.plan_texts(rubric)[TEMPLATE] != judging.plan_texts(judging.load_rubric("v1.0"))[TEMPLATE]
    reply = {"scores": {"clarity": 0, "risk": 10}, "evidence": [], "lookahead_check": "pass"}
    assert form.parse(json.dumps(reply)).answer.scores == {"clarity": 0, "risk": 10}
    reply["scores"]["risk"] = 11
    assert "risk must be a whole number from 0 to 10 (got 11)" in form.parse(json.dumps(reply)).reason


def test_a_wrong_rubric_is_refused_with_every_problem_in_its_place():
    broken = OWN.replace('10 = "All of it."', '11 = "All of it."').replace('"9", "10"]', '"9"]')
    for wrong, places in (
        ('version = "x"\ntitle = "t"\nextra = 1\n[[dimension]]\nname = "A"\nquestion = "q"\nanchors = ["a"]',
         {"dimension.0.name", "dimension.0.anchors", "extra"}),
        (broken.replace("weight = 1", "weight = -1").replace("version", "Version"),
         {"version", "Version", "dimension.1.anchors", "dimension.1.weight"}),
    ):  # fmt: skip
        with pytest.raises(InputError) as caught:
            judging.parse_rubric(wrong)
        assert {problem.where for problem in caught.value.problems} >= places
    for whole, old, new, says in (
        (TEXT, 'name = "risk_alignment"', 'name = "action_coherence"', "action_coherence more than once"),
        (TEXT, 'name = "risk_alignment"', 'name = "aggregate"', "names the mean over the dimensions"),
        (TEXT, 'title = "', 'title = 3 # "', "must be text"), (TEXT, "[[dimension]]", "[[dimension]", "not TOML"),
        (OWN, '10 = "All of it."', '9 = "All of it."', r"both ends of the scale, 0 and 10 \(not so: clarity\)"),
        (OWN, "weight = 1\n", "", "every dimension has a weight, 0 allowed, or none has \\(missing: risk\\)"),
        (OWN.replace("weight = 1", "weight = 0"), "weight = 2", "weight = 0", "at least one weight must be above 0"),
        (OWN, "[0, 10]", "[10, 0]", "names its lowest and its highest whole score"),
        (OWN, "[0, 10]", "[0, 0.5]", "must be a whole number"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            judging.parse_rubric(whole.replace(old, new, 1))


RUBRIC = judging.load_rubric("v1.0")
FORM = judging.rubric_form(RUBRIC)
SCORES = dict(zip(RUBRIC.names, (1, 2, 3, 4, 5, 3), strict=True))
GOOD = {"scores": SCORES, "evidence": ["+3.1%"], "lookahead_check": "pass", "comment": None}
SAID = json.dumps(GOOD)


def changed(**parts):
    return json.dumps({**GOOD, **parts})


def scored(value):
    """A reply whose first score is this piece of JSON."""
    return SAID.replace('"action_coherence": 1', f'"action_coherence": {value}')


NOT_ONE, WHOLE, LOOK = "not one JSON object", "whole number from 1 to 5", "lookahead_check must be pass, fail or unsure"
HOSTILE = (
    ("", f"{NOT_ONE}: expecting value at character 0"),
    *((text, NOT_ONE) for text in (
        "I would give it a 4.", f"Here it is:\n```json\n{SAID}\n```", f"```python\n{SAID}\n```", f"```json\n{SAID}",
        "```\n```", "\ufeff" + SAID, SAID[:-9], "<script>alert(1)</script>")),
    *((text, f"{NOT_ONE}: extra data") for text in (
        f"```json\n{SAID}\n```\n```json\n{SAID}\n```", f"{SAID}\nHope this helps!", SAID + SAID)),
    *((text, rf"not a JSON object \(got {kind}\)") for text, kind in (
        (f"[{SAID}]", "list"), ("5", "int"), ("null", "NoneType"))),
    *((scored(value), rf"{WHOLE} \(got {shown}\)") for value, shown in (
        ("true", "True"), ("4.0", r"4\.0"), ("1e0", r"1\.0"), ("1e999", "inf"), ('"4"', "'4'"), ("null", "None"),
        ("0", "0"), ("6", "6"), ("-3", "-3"))),
    (f"```json\n{scored('6')}\n```", rf"{WHOLE} \(got 6\)"), (scored("1" * 90_000), "an integer with 90000 digits"),
    (SAID.replace("{", '{"scores": {}, ', 1), "key 'scores' comes more than once"),
    (scored('1, "action_coherence": 5'), "key 'action_coherence' comes more than once"),
    (scored("NaN"), "NaN is not JSON"), (scored("-Infinity"), "-Infinity is not JSON"),
    (changed(scores=[1, 2, 3, 4, 5, 3]), "scores must be an object"),
    (SAID.replace('"action_coherence": 1, ', ""), "dimensions are missing: 'action_coherence'"),
    (scored('1, "overall": 5'), "dimensions are unknown: 'overall'"),
    (json.dumps({"scores": SCORES}), "keys are missing: 'evidence', 'lookahead_check'"),
    (changed(confidence=1), "keys are unknown: 'confidence'"), (changed(comment=4), "comment must be text"),
    (changed(evidence="x"), "evidence must be a list"), (changed(evidence=[3]), "evidence must be text"),
    (changed(evidence=["x"] * 13), "evidence has 13 entries"),
    (changed(evidence=["x" * 2001]), "evidence has 2001 characters"),
    (changed(evidence=["\ud800"]), "half of a surrogate pair"),
    (changed(evidence=["?"]).replace("?", "\udfff"), "half of a surrogate pair"),
    (changed(lookahead_check="yes"), LOOK), (changed(lookahead_check=["pass"]), LOOK),
    (changed(comment="a").replace('"a"', '"a\nb"'), "invalid control character"),
    ("[" * 90_000, "nested too deeply"), ('{"a":' * 15_000, "nested too deeply"),
    ("[" * 200_000, "longer than 100000 characters"), (scored("1" * 100_000), "longer than 100000 characters"),
    ("x" * 50_000_000, r"longer than 100000 characters \(got 50000000\)"),
    (json.dumps({**GOOD, "<b>" * 1000: 1}), "keys are unknown"),
)  # fmt: skip


def test_hostile_replies_are_invalid_for_a_short_printable_reason():
    for text, reason in HOSTILE:
        found = FORM.parse(text)
        assert (found.state, found.answer) == ("invalid", None), text[:99]
        assert re.search(reason, found.reason), found.reason
        assert len(found.reason) < 300
        assert found.reason.isprintable()
        assert found.reason.isascii()


KEYS = st.sampled_from([*GOOD, *SCORES, "x"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8), max_leaves=10,
)  # fmt: skip


@given(json_values | st.fixed_dictionaries(dict.fromkeys(GOOD, json_values)), st.text(max_size=5))
def test_no_reply_raises_and_none_is_guessed(value, tail):
    found = FORM.parse(json.dumps(value) + tail)
    assert found.state == "invalid" or all(
        type(score) is int and 1 <= score <= 5 for score in found.answer.scores.values()
    )


@given(st.binary(max_size=60))
def test_no_bytes_raise(raw):
    assert FORM.parse(raw.decode("utf-8", "surrogateescape")).state == "invalid"


def test_a_good_reply_is_parsed_alone_or_in_one_code_fence_and_the_schema_names_what_is_wanted():
    good = judging.Graded(SCORES, ("+3.1%",), "pass", None)
    without = json.dumps({key: value for key, value in GOOD.items() if key != "comment"})
    turned = changed(scores=dict(reversed(SCORES.items())))
    fences = (f"```json\n{SAID}\n```", f"\n```\n{SAID}\n```\n", f"```JSON \r\n{SAID}\r\n```")
    for reply in (f"\n {SAID}\t", without, turned, *fences):
        found = FORM.parse(reply).answer
        assert found == good
        assert tuple(found.scores) == RUBRIC.names
    assert FORM.parse(changed(comment="fine")).answer == judging.Graded(SCORES, ("+3.1%",), "pass", "fine")
    schema = json.loads(FORM.schema)
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
    found = judging.judgment(call, Reply(text=SAID, model="m"))
    assert found == Judgment(
        trajectory="made-up-run7/record-0", judge="auditor", family="ledger", rubric="v1.0", trial=1, status="ok",
        scores=SCORES, call_key=call.call.key, evidence=("+3.1%",), lookahead_check="pass", reason=None,
    )  # fmt: skip
    assert parse(type(found), json.dumps(to_json(found))) == found
    for text, finish, status, reason in (
        (SAID, "refusal", "refused", "the model refused to answer"),
        (SAID, "length", "invalid", "cut off at the length limit"),
        ("x" * (MOST_CHARACTERS + 1), "stop", "invalid", "longer than 100000 characters (got 100001)"),
    ):
        found = judging.judgment(call, Reply(text=text, model="m", finish=finish))
        assert (found.status, found.scores, found.reason, found.lookahead_check) == (status, {}, reason, None)


def test_only_what_is_no_json_at_all_is_asked_for_again():
    for text in ("I give it a 4.", "", SAID[:-9]):
        assert planned().asks_again(Reply(text=text, model="m"))
    for text, finish in (
        *((text, "stop") for text in (SAID, f"```json\n{SAID}\n```", scored("6"), scored("NaN"), "5", "[" * 90_000,
                                      "x" * (MOST_CHARACTERS + 1))),
        ("I cannot.", "refusal"), (SAID[:-9], "length"),
    ):  # fmt: skip
        assert not planned().asks_again(Reply(text=text, model="m", finish=finish))


def test_the_second_reply_counts_where_the_first_is_no_json():
    call, prose = planned(), Reply(text="I give it a 4.", model="m")
    second = call.again().call
    found = judging.judgment(call, prose, second=Reply(text=SAID, model="m"))
    assert (found.status, found.scores, found.trial) == ("ok", SCORES, 1)
    assert (found.first_key, found.call_key) == (call.call.key, second.key)
    assert second.key != call.call.key
    still = judging.judgment(call, prose, second=prose)
    assert (still.status, still.first_key, still.call_key) == ("invalid", call.call.key, second.key)
    good = judging.judgment(call, Reply(text=SAID, model="m"), second=prose)
    assert (good.status, good.first_key, good.call_key) == ("ok", "", call.call.key)
