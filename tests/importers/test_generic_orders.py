"""The generic importer: several orders per decision, rounds by time, a time zone for times without, nested JSON."""

from __future__ import annotations

import json

import pytest
from generic_files import HEAD, MAP, ONE, TWO, imported

from assaymark.errors import InputError

BARE = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "").replace(
    'context = "seen"', 'context = "seen"\nprompt = "seen"'
)
NOTHING = "agent,episode,horizon,value\n"
FURTHER = "a further order needs another instrument, a further decision another step or replicate"
OTHER = (
    "d.csv line 7, at: differs from the first order of its decision (got '2026-05-04T13:45:00Z', and '2026-05-04T13:30"
)
MORE = ONE.replace(",A,0.5,A grew 4%.,A may fall.", ",B,0.3,B is cheap.,")


def told(error) -> list[str]:
    return [str(one) for one in error.value.problems]


def test_a_further_row_with_another_instrument_is_an_order():
    result = imported(map=BARE, d=HEAD + ONE + MORE + TWO, f=None, o=None)
    first, second = result.decisions
    assert [(one.instrument, one.weight, one.confidence) for one in first.actions] == [
        ("A", 0.5, None), ("B", 0.3, None),
    ]  # fmt: skip
    assert (first.confidence, second.agent.id, result.report.good, result.report.bad) == (0.6, "beta", 2, 0)
    assert [(one.kind, one.text) for one in first.rationales] == [
        ("summary", "A grew 4%."), ("summary", "B is cheap."), ("risk", "A may fall.")
    ]  # fmt: skip


def test_orders_may_have_confidences_and_limits_of_their_own():
    text = BARE.replace('weight = "size"', 'weight = "size"\nleverage = "lever"\nstop = "out"\ntarget = "goal"')
    head = HEAD.replace("size,", "size,lever,out,goal,")
    rows = ONE.replace("0.5,", "0.5,10,95,120,") + MORE.replace("0.6", "0.9").replace("0.3,", "0.3,,,,")
    (made,) = imported(map=text, d=head + rows, f=None, o=None).decisions
    assert (made.confidence, [one.confidence for one in made.actions]) == (None, [0.6, 0.9])
    assert [(one.leverage, one.stop, one.target) for one in made.actions] == [(10, 95, 120), (None, None, None)]


def test_orders_that_do_not_go_together_are_refused():
    rows = ONE + ONE.replace("0.5", "0.2") + ONE.replace("r1", "r2") + MORE.replace("acme", "bolt").replace("r1", "r2")
    rows += MORE.replace("r1", "r3") + ONE.replace("r1", "r3").replace("13:30", "13:45")
    with pytest.raises(InputError) as caught:
        imported(map=BARE, d=HEAD + rows, f=None, o=None)
    assert told(caught)[0].startswith("d.csv line 5, maker: 'alpha' is of two families")
    assert told(caught)[1] == (
        f"d.csv line 3, agent: 'alpha' is named twice in one cycle (first at d.csv line 2); {FURTHER}"
    )
    assert told(caught)[2].startswith(
        "d.csv line 5, maker: differs from the first order of its decision (got 'bolt', and"
    )
    assert told(caught)[3] == f"{OTHER}:00Z' at d.csv line 6); leave it empty, or give it another step"
    assert len(told(caught)) == 4
    kept = imported(map=BARE, d=HEAD + rows.replace("bolt", "acme"), f=None, o=None, keep_going=True).report
    assert (kept.good, kept.bad) == (1, 2)


def test_the_weights_of_all_orders_count_together():
    with pytest.raises(InputError, match=r"d\.csv line 2: weights of 11 times net asset value"):
        imported(map=BARE, d=HEAD + ONE.replace("0.5", "6") + MORE.replace("0.3", "5"), f=None, o=None)


ROUNDS = BARE.replace('episode = "round"\n', "").replace('version = "1"', 'version = "1"\nround = "1h"')


def test_times_are_put_into_rounds():
    rows = [
        one.replace("13:30", at).replace("13:31", at)
        for one, at in ((ONE, "13:05"), (TWO, "13:59"), (ONE, "13:40"), (TWO, "14:00"), (MORE, "13:40"))
    ]
    result = imported(map=ROUNDS, d=HEAD + "".join(rows), f=None, o=None)
    assert {one.record_id: len(one.actions) for one in result.decisions} == {
        "2026-05-04T13:00Z/0/alpha": 1, "2026-05-04T13:00Z/0/beta": 1, "2026-05-04T13:00Z/1/alpha": 2,
        "2026-05-04T14:00Z/0/beta": 1,
    }  # fmt: skip
    assert {one.cycle for one in result.decisions if one.agent.id == "alpha"} == {
        "2026-05-04T13:00Z#0", "2026-05-04T13:00Z#1"
    }  # fmt: skip
    daily = imported(map=ROUNDS.replace("1h", "1d"), d=HEAD + rows[0] + rows[1], f=None, o=None).decisions
    assert {one.cycle for one in daily} == {"2026-05-04#0"}
    within = ROUNDS.replace('agent = "agent"', 'agent = "agent"\nepisode = "round"')
    assert [one.episode_id for one in imported(map=within, d=HEAD + ONE, f=None, o=None).decisions] == [
        "r1/2026-05-04T13:00Z"
    ]


def test_an_outcome_of_a_round_is_found_by_its_time():
    text = ROUNDS.replace('decisions = "d.csv"', 'decisions = "d.csv"\noutcomes = "o.csv"')
    rows = HEAD + ONE + ONE.replace("13:30", "13:40")
    with pytest.raises(InputError, match=r"outcomes\.decided_at is needed with round"):
        imported(map=text, d=rows, f=None)
    outcomes = "agent,at,horizon,value\nalpha,2026-05-04T15:40:00+02:00,one week,0.1\n"
    (found,) = imported(map=text + '[outcomes]\ndecided_at = "at"\n', d=rows, f=None, o=outcomes).outcomes
    assert found.record_id == "2026-05-04T13:00Z/1/alpha"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ROUNDS.replace("1h", "1 hour"), "must be a length such as 15min, 1h, 1d or 1w (got '1 hour')"),
        (ROUNDS.replace('round = "1h"\n', ""), 'columns.episode is missing; name the column'),
        (ROUNDS.replace('agent = "agent"', 'agent = "agent"\nstep = "sure"'), "columns.step goes with columns.episode"),
        (BARE.replace('version = "1"', 'time_zone = "Mars/Olympus"'), "must be a time zone such as"),
    ],
)  # fmt: skip
def test_a_map_says_what_is_wrong_with_its_rules(text, said):
    with pytest.raises(InputError) as caught:
        imported(map=text, d=HEAD + ONE, f=None, o=None)
    assert said in str(caught.value)


def test_times_without_a_zone_take_that_of_the_map():
    text = MAP.replace('version = "1"', 'version = "1"\ntime_zone = "America/New_York"')
    facts = "context,instrument,field,value,unit,available_at\nm1,A,growth,0.04,ratio,2026-05-03\n"
    result = imported(map=text, d=HEAD + ONE.replace("13:30:00Z", "09:30:00"), f=facts, o=NOTHING)
    (made,) = result.decisions
    assert made.decided_at.isoformat() == "2026-05-04T13:30:00+00:00"
    (fact,) = result.contexts[made.context_id].facts
    assert fact.available_at.isoformat() == "2026-05-03T04:00:00+00:00"
    # a zone that is said wins; an hour that clocks tell twice, or never, is refused
    (kept,) = imported(map=text, d=HEAD + ONE, f=facts, o=NOTHING).decisions
    assert kept.decided_at.isoformat() == "2026-05-04T13:30:00+00:00"
    for twice in ("2026-11-01T01:30:00", "2026-03-08T02:30:00"):
        with pytest.raises(InputError, match=r"d\.csv line 2, at: clocks change then in America/New_York \(got '2026"):
            imported(map=text, d=HEAD + ONE.replace("2026-05-04T13:30:00Z", twice), f=facts, o=NOTHING)


NESTED = """
[files]
decisions = "d.jsonl"
[provenance]
source = "mine"
[columns]
episode = "round"
decided_at = "call.at"
agent = "agent.name"
family = "agent.maker"
context = "round"
prompt = "call.prompt"
instrument = "reply.orders.ticker"
action = "reply.orders.side"
quantity = "reply.orders.units"
[rationales]
summary = ["reply.why"]
"""


def nested(**reply) -> dict:
    orders = [{"ticker": "A", "side": "buy", "units": 2}, {"ticker": "B", "side": "sell", "units": 1}]
    return {
        "round": "r1", "agent": {"name": "alpha", "maker": "acme"},
        "call": {"at": "2026-05-04T13:30:00Z", "prompt": "A or B?", "id": 7},
        "reply": {"why": "A grew.", "orders": orders} | reply,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["d.jsonl", "d.json", "rows.json"])
def test_objects_in_objects_are_dotted_columns_and_a_list_of_orders_is_a_row_each(name):
    from assaymark.importers import import_generic

    whole = {"d.jsonl": nested(), "d.json": [nested()], "rows.json": {"made": "today", "rows": [nested()]}}[name]
    files = {"map.toml": NESTED.replace("d.jsonl", name).encode(), name: json.dumps(whole).encode()}
    result = import_generic(files)
    (made,) = result.decisions
    assert [(one.instrument, one.kind, one.quantity) for one in made.actions] == [("A", "buy", 2), ("B", "sell", 1)]
    assert [one.text for one in made.rationales] == ["A grew."]
    assert list(result.report.no_place) == [f"call.id of {name}"]


def test_problems_of_nested_files_name_the_line_and_the_order():
    from assaymark.importers import import_generic

    odd = [
        nested(orders=[{"ticker": "A", "side": "buy", "units": "two"}]), nested(orders=[{"ticker": "A"}, 3]),
        {"call.at": 1} | nested(), nested(why=[1]) | {"round": "r2"},
    ]  # fmt: skip
    lines = "\n".join(json.dumps(one) for one in odd)
    with pytest.raises(InputError) as caught:
        import_generic({"map.toml": NESTED.encode(), "d.jsonl": lines.encode()})
    assert told(caught) == [
        "d.jsonl line 2: reply.orders: must hold objects only (item 2 is int)",
        "d.jsonl line 3: 'call.at' is there twice: with a dot in its name, and as an object in an object",
        "d.jsonl line 1, reply.orders 1, reply.orders.units: must be a finite number (got 'two')",
        *(f"d.jsonl line 4, reply.orders {at}, reply.why: must be text or a list of texts (got [1])" for at in (1, 2)),
    ]
    with pytest.raises(InputError, match=r"d\.json: must be a list of objects, or an object with one list; write one"):
        import_generic({"map.toml": NESTED.replace("jsonl", "json").encode(), "d.json": b'{"a": 1}'})
