# ruff: noqa: I001

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.records import (
    Action, Agent, CallFacts, Claim, Constraint, Context, Decision, Evidence, Fact, Instrument, Judgment,
    Measurement, Outcome, Portfolio, Provenance, Rationale, Series, Verdict, canonical_json, content_id, parse,
    sha256_text, to_json,
)  # fmt: skip

NOW = datetime(2026, 3, 2, 14, 30, tzinfo=UTC)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
when = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=6,
)  # fmt: skip

facts = st.builds(
    Fact, id=text, instrument=text, field=text, value=number | text, unit=text, available_at=when,
    as_of=st.none() | when, source=text, note=text,
)  # fmt: skip
contexts = st.builds(
    Context, completeness=st.sampled_from(["complete", "partial"]), cutoff=when, cutoff_source=text, prompt=text,
    facts=st.lists(facts, max_size=3).map(tuple),
    series=st.builds(
        Series, instrument=text, interval_s=st.integers(1, 86400), times=st.just((NOW,)), close=st.just((1.5,))
    ).map(lambda item: (item,)),
    instruments=st.builds(Instrument, id=text, symbol=st.none() | text).map(lambda item: (item,)),
    portfolio=st.none() | st.builds(Portfolio, currency=text, cash=number, nav=number),
    constraints=st.builds(Constraint, kind=text, limit=number, unit=text).map(lambda item: (item,)),
)  # fmt: skip
decisions = st.builds(
    Decision, record_id=text, episode_id=text, step=st.integers(0, 100), cluster=text, decided_at=when,
    agent=st.builds(Agent, id=text, family=text, params=st.dictionaries(text, plain, max_size=2)), context_id=text,
    actions=st.builds(Action, instrument=text, kind=st.just("buy"), weight=st.none() | number).map(
        lambda item: (item,)
    ),
    rationales=st.builds(Rationale, text=text, kind=st.sampled_from(["summary", "arena"])).map(lambda item: (item,)),
    format=text, provenance=st.builds(Provenance, source=text), stages=st.dictionaries(text, plain, max_size=2),
    call=st.builds(CallFacts, seconds=st.none() | number, timing_source=st.just("measured")),
    flags=st.lists(text, max_size=2).map(tuple),
)  # fmt: skip
others = st.one_of(
    st.builds(
        Outcome, record_id=text, horizon=text, value=number, benchmark=st.none() | number, resolved_at=st.none(),
        source=text,
    ),
    st.builds(
        Judgment, trajectory=text, judge=text, family=text, rubric=text, trial=st.integers(1, 5), status=st.just("ok"),
        scores=st.dictionaries(text, number, max_size=2), call_key=text,
    ),
    st.builds(
        Evidence, decision=text, part=st.integers(0, 9), kind=st.just("risk"), start=st.integers(0, 9), quote=text,
        number=number, unit=text, subject=text, state=st.just("supported"), facts=st.just(("f1",)), rule=text,
    ),
    st.builds(
        Measurement, name=text, labels=st.dictionaries(text, text, max_size=2), value=st.none() | number,
        n=st.integers(0, 99), n_of=text, method=text, detail=st.dictionaries(text, plain, max_size=2),
    ),
    st.builds(
        Verdict,
        claim=st.builds(
            Claim, id=text, scope=st.just("pairwise-contrast"), statement=text, subjects=st.just(("a", "b")),
            dimension=text, asserts_order=st.booleans(),
        ),
        agreement_status=st.just("publish"), stability_status=st.just("stable"),
        adversarial_status=st.just("not tested"), publication_level=st.just("qualified"), reasons=st.just(("r",)),
        binding=st.just(()), measurements=st.just(()), plan_hash=text,
    ),
)  # fmt: skip


@given(contexts | decisions | others)
def test_record_to_json_to_record_is_identity(record):
    assert parse(type(record), canonical_json(record)) == record


@given(contexts | decisions)
def test_equal_records_have_equal_bytes_whatever_the_order_of_keys(record):
    again = parse(type(record), json.dumps(to_json(record), indent=2))
    assert canonical_json(again) == canonical_json(record)
    assert content_id(again) == content_id(record)


def test_every_problem_of_a_record_is_named_at_once():
    wrong = {"record_id": 3, "horizon": "1W", "value": "0.1", "benchmark": None, "resolved_at": None, "sauce": "x"}
    with pytest.raises(InputError) as caught:
        parse(Outcome, json.dumps(wrong), source="outcomes, row 7")
    message = str(caught.value)
    assert message.startswith("outcomes, row 7: 4 problems")
    for part in ("record_id: must be text (got 3)", "value", "source", "sauce"):
        assert part in message


def test_what_is_no_record_is_refused_and_a_long_wrong_value_is_cut():
    for bad in ("", "{", "[1]", "NaN", '{"record_id": "\\ud800"}'):
        with pytest.raises(InputError, match="record"):
            parse(Outcome, bad)
    with pytest.raises(InputError, match=r"\.\.\.\)"):
        parse(Outcome, json.dumps({"record_id": [1] * 500}))


def test_what_has_no_json_form_is_refused_and_times_are_written_in_utc():
    for value, error, told in (
        (math.nan, ValueError, "no JSON form"), (math.inf, ValueError, "no JSON form"),
        (-math.inf, ValueError, "no JSON form"), (datetime(2026, 1, 1), ValueError, "no time zone"),
        ({1}, TypeError, "set has no JSON form"),
    ):  # fmt: skip
        with pytest.raises(error, match=told):
            canonical_json({"x": value})
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    assert canonical_json(NOW.astimezone(kathmandu)) == '"2026-03-02T14:30:00Z"'
    assert sha256_text("\ud800") != sha256_text("\ud801")


def test_a_cycle_is_the_question_not_the_agent():
    cycles = {
        Decision(record_id=agent, episode_id="round-1", step=2, cluster="w1", decided_at=NOW, context_id="c",
                 agent=Agent(id=agent, family="f"), actions=(), rationales=(), format="x",
                 provenance=Provenance(source="test")).cycle
        for agent in ("a", "b")
    }  # fmt: skip
    assert cycles == {"round-1#2"}
