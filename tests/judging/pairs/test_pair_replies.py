"""Replies: what is a verdict, and that everything else is recorded as invalid with its reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from assaymark.engine.calls import Reply
from assaymark.judging import Invalid
from assaymark.judging.pairs import ParsedPair, pair_call, pair_schema, parse_pair_reply, plan_pair_calls


def said(verdict, reason="Both name the stop."):
    return json.dumps({"verdict": verdict, "reason": reason})


@pytest.mark.parametrize("verdict", ["1", "2", "tie", "abstain"])
def test_the_four_verdicts(verdict):
    assert parse_pair_reply(f" \n{said(verdict)}\t") == ParsedPair(verdict, "Both name the stop.")
    Draft202012Validator(pair_schema()).validate(json.loads(said(verdict)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one JSON object"),
        ("1", "not a JSON object"),
        ("[]", "not a JSON object"),
        ('"1"', "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "keys are missing: 'verdict', 'reason'"),
        ('{"verdict": "1"}', "keys are missing: 'reason'"),
        ('{"verdict": "1", "reason": "a", "score": 3}', "keys are unknown: 'score'"),
        ('{"verdict": "1", "verdict": "2", "reason": "a"}', "'verdict' comes more than once"),
        ('{"verdict": 1, "reason": "a"}', "verdict must be"),
        ('{"verdict": "Tie", "reason": "a"}', "verdict must be"),
        ('{"verdict": " 1", "reason": "a"}', "verdict must be"),
        ('{"verdict": "candidate 1", "reason": "a"}', "verdict must be"),
        ('{"verdict": null, "reason": "a"}', "verdict must be"),
        ('{"verdict": true, "reason": "a"}', "verdict must be"),
        ('{"verdict": ["1"], "reason": "a"}', "verdict must be"),
        ('{"verdict": {"verdict": "1"}, "reason": "a"}', "verdict must be"),
        ('{"verdict": NaN, "reason": "a"}', "NaN is not JSON"),
        ('{"verdict": -Infinity, "reason": "a"}', "-Infinity is not JSON"),
        (f'{{"verdict": {"9" * 9000}, "reason": "a"}}', "an integer with 9000 digits"),
        ('{"verdict": "1", "reason": null}', "reason must be text"),
        ('{"verdict": "1", "reason": ["a"]}', "reason must be text"),
        (said("1", "x" * 2001), "reason has 2001 characters"),
        ('{"verdict": "1", "reason": "\\ud800"}', "half of a surrogate pair"),
        ("x" * 20_001, "longer than 20000 characters"),
        ("[" * 15_000, "nested too deeply"),
        (f"It is:\n```json\n{said('1')}\n```", "not one JSON object"),
        (f"{said('1')} I hope this helps.", "not one JSON object"),
        (f"{said('1')}{said('1')}", "not one JSON object"),
        ("My verdict is 1.", "not one JSON object"),
        ("\ufeff" + said("1"), "not one JSON object"),
    ],
)
def test_everything_else_is_invalid_and_says_why(text, why):
    found = parse_pair_reply(text)
    assert isinstance(found, Invalid)
    assert why in found.reason
    assert len(found.reason) < 200
    assert found.reason.isprintable()


@given(st.text() | st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists).map(json.dumps))
def test_no_reply_raises(text):
    assert isinstance(parse_pair_reply(text), Invalid | ParsedPair)


CONTRADICTIONS = [
    ("1", "Candidate 2 is better."),
    ("1", "candidate 2 is better"),
    ("1", "Both are short. Candidate 2 is the better text."),
    ("1", "Candidate 2 is better because it names the stop."),
    ("1", "Candidate 2 is better, because it names the stop."),
    ("1", "Candidate 2 is better than candidate 1."),
    ("2", "So candidate 1 is stronger overall."),
    ("2", "Therefore, Candidate 1 wins."),
    ("2", "Candidate 1 is clearly better: it states the size."),
    ("2", "Both are fine;\nCandidate 1 is the stronger candidate."),
]
CONSISTENT = [
    ("2", "Candidate 2 is better."),
    ("1", "Candidate 2 is better worded, but candidate 1 states the size."),
    ("1", "Candidate 2 is better at style."),
    ("1", "Candidate 2 is better in style only."),
    ("1", "I do not think that candidate 2 is better."),
    ("1", "If the stop mattered most, candidate 2 is better."),
    ("1", "It is not so that candidate 2 is better."),
    ("1", "Candidate 2 is not better."),
    ("1", "Candidate 2 is hardly better."),
    ("1", "Is candidate 2 better? Candidate 1 names the stop."),
    ("1", "Candidate 2 is better? No."),
    ("1", "Candidate 2 is better on cash. Candidate 1 is better."),
    ("1", "Candidate 2 is better. On reflection: Candidate 1 is better."),
    ("tie", "Candidate 2 is better. But only in wording."),
    ("abstain", "Candidate 1 is better."),
    ("1", "Candidate 2 wins on style, candidate 1 on substance."),
    ("1", ""),
]


@pytest.mark.parametrize(("verdict", "reason"), CONTRADICTIONS)
def test_a_reason_that_names_the_other_slot_is_not_guessed_at(verdict, reason):
    found = parse_pair_reply(said(verdict, reason))
    other = "2" if verdict == "1" else "1"
    assert found == Invalid(f"the verdict is {verdict}, but the reason names candidate {other} as the better one")


@pytest.mark.parametrize(("verdict", "reason"), CONSISTENT)
def test_the_rule_is_narrow(verdict, reason):
    assert parse_pair_reply(said(verdict, reason)) == ParsedPair(verdict, reason)


# --- records ----------------------------------------------------------------------------------------------------------


def test_a_record_says_what_was_asked_and_answered(pairs, spec):
    ladder = next(pair for pair in pairs if pair.delta == 3)
    _, planned = plan_pair_calls([ladder], spec(), ["strict"])
    found = pair_call(planned, Reply(text=said("2"), model="m"))
    assert (found.pair, found.condition, found.task, found.variant) == (
        ladder.id,
        "ladder",
        ladder.task,
        ladder.variant,
    )
    assert (found.order, found.verdict, found.delta, found.better) == ("vu", "2", 3.0, ladder.better)
    assert (found.judge, found.prompt, found.trial, found.reason) == ("checklist", "strict", 1, None)
    assert found.call_key == planned.call.key


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(text=said("1"), model="m", finish="refusal"), "the model refused to answer"),
        (Reply(text=said("1"), model="m", finish="length"), "cut off at the length limit"),
        (Reply(text="no", model="m"), "not one JSON object: expecting value at character 0"),
    ],
)
def test_what_is_no_answer_is_invalid(pairs, spec, reply, why):
    (planned, _) = plan_pair_calls(pairs[:1], spec())
    found = pair_call(planned, reply)
    assert (found.verdict, found.reason) == ("invalid", why)
