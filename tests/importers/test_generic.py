"""The generic importer: a map, strict cells, orders, rounds, nested JSON, and nothing from after the decision."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest
from generic_files import ALONE, COMPLETE, FACTS, HEAD, MAP, ONE, OUTCOMES, TWO, WHOLE, imported, refused, seen

from assaymark.errors import InputError
from assaymark.importers import import_generic, template
from assaymark.records import content_id

BARE = ALONE.replace('context = "seen"', 'context = "seen"\nprompt = "seen"')
MORE = ONE.replace(",A,0.5,A grew 4%.,A may fall.", ",B,0.3,B is cheap.,")


def bare(rows: str, map: str = BARE, head: str = HEAD, **options):
    """The import of decisions alone."""
    return imported(map=map, d=head + rows, f=None, o=None, **options)


def test_a_plain_import():
    result = imported()
    alpha, beta = result.decisions
    assert (alpha.record_id, alpha.cluster, alpha.format) == ("r1/alpha", "2026-W19", "generic")
    assert [(a.instrument, a.kind, a.weight) for a in alpha.actions] == [("A", "target_weight", 0.5)]
    assert [(r.kind, r.text) for r in alpha.rationales] == [("summary", "A grew 4%."), ("risk", "A may fall.")]
    assert [r.kind for r in beta.rationales] == ["summary"]
    ((name, context),) = result.contexts.items()
    assert content_id(context) == name == alpha.context_id == beta.context_id
    assert [(f.id, f.value) for f in context.facts] == [("f1", 0.04), ("f2", "2026-05-20")]
    assert context.cutoff == datetime(2026, 5, 1, 20, tzinfo=UTC)
    assert [(o.record_id, o.value) for o in result.outcomes] == [("r1/alpha", 0.02)]
    missing = result.report.missing
    assert (missing["outcome"].examples, missing["fact value"].count) == (("r1/beta",), 1)
    assert alpha.provenance.licence == "MIT"


def test_the_template_reads_its_own_examples_alone_and_with_everything_switched_on():
    text = template()
    lines = [line.strip("# ") for line in text.splitlines() if line.startswith("#   ")]
    result = import_generic({"map.toml": text.encode(), "decisions.csv": "\n".join([*lines[:2], ""]).encode()})
    (decision,) = result.decisions
    assert [r.kind for r in decision.rationales] == ["summary", "risk"]
    assert (decision.actions[0].kind, decision.actions[0].weight) == ("buy", 1.0)
    assert next(iter(result.contexts.values())).prompt == "Pick one of A and B."
    for off in ('facts = ', 'outcomes = ', '[facts]\n# context = "seen"\n# available_at = "known_at"',
                '[outcomes]\n# episode = "round"'):  # fmt: skip
        text = text.replace(f"# {off}", off.replace("\n# ", "\n"))
    named = zip(("decisions.csv", "facts.csv", "outcomes.csv"), (lines[:2], lines[2:4], lines[4:6]), strict=True)
    result = import_generic({"map.toml": text.encode(), **{n: "\n".join(rows).encode() for n, rows in named}})
    assert (len(result.decisions), len(result.outcomes), result.report.counts["facts"]) == (1, 1, 1)


def test_jsonl_with_lists_weights_and_packed_bytes():
    text = ALONE.replace("d.csv", "d.jsonl").replace('version = "1"', 'version = "1"\nweight_unit = "percent"')
    text = text.replace('instrument = "ticker"\nweight = "size"', 'prompt = "prompt"\nstep = "n"\nreplicate = "run"')
    row = {
        "round": "r1", "n": 2, "run": 2, "at": "2026-05-04T13:30:00+02:00", "agent": "alpha", "maker": "acme",
        "seen": 7, "sure": 0.5, "prompt": "Choose.", "why": "A.", "risks": ["x", "y"], "w_a": 25, "w_b": 0,
    }  # fmt: skip
    given = {"map.toml": (text + '[weights]\nw_a = "A"\nw_b = "B"\n').encode()}
    for at in (row["at"], 1_777_894_200, "1777894200.0", 1_777_894_200_000):  # seconds and milliseconds since 1970
        told = gzip.compress(json.dumps(row | {"at": at}).encode())
        (decision,) = import_generic({**given, "d.jsonl.gz": told}).decisions
        assert decision.decided_at == datetime(2026, 5, 4, 11, 30, tzinfo=UTC)
    assert (decision.record_id, decision.step, decision.replicate) == ("r1/2/alpha/r2", 2, 2)
    assert [(a.instrument, a.weight) for a in decision.actions] == [("A", 0.25)]
    assert [r.text for r in decision.rationales] == ["A.", "x", "y"]
    for wrong, said in (({"why": 7}, r"line 1, why: must be text \(got 7\)"),
                        ({"prompt": ["Choose."]}, r"line 1, prompt: must be text \(got \['Choose"),
                        ({"why": "up \ud83d"}, r"line 1: holds half of a character \(\\ud83d\)"),
                        ({"risks": ["x", 3]}, "risks: must be text or a list of texts")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            import_generic({**given, "d.jsonl.gz": json.dumps(row | wrong).encode()})


@pytest.mark.parametrize(("old", "new", "message"), [
    ("13:30:00Z", "13:30:00", r"d\.csv line 2, at: has no time zone"),
    ("2026-05-04T13:30:00Z", "noon", r"line 2, at: must be a time such as"), ("0.6", '"0,6"', "a decimal point"),
    ("0.6", "1.6", r"line 2, sure: must be a finite number from 0 to 1 \(got '1\.6'\)"),
    ("0.5", "half", r"line 2, size: must be a finite number"), ("0.5", "inf", r"line 2, size: must be a finite number"),
    ("0.5", "1_0", r"line 2, size: must be a finite number"), ("0.5", "４", r"line 2, size: must be a finite number"),
    ("alpha", "", r"line 2, agent: is empty"), ("alpha", "a|b", r"line 2, agent: cannot be a name"),
    ("m1", "m2", r"line 2, seen: a record without a context: no prompt, and no facts for 'm2'"),
    (ONE, ONE + ONE, r"line 3, agent: 'alpha' is named twice in one cycle \(first at d\.csv line 2\)"),
    ("A may fall.", "A, may", r"d\.csv line 2: has 11 cells \(the header has 10\)"),
    ("2026-05-04", "2026-04-04", r"f\.csv line 2, growth: a fact from the future: available 2026-05-01"),
])  # fmt: skip
def test_a_wrong_row_is_named(old, new, message):
    refused(message, d=HEAD + ONE.replace(old, new), o=None, map=MAP.replace('outcomes = "o.csv"\n', ""))


@pytest.mark.parametrize(("changes", "message"), [
    ({"map": None}, r"one column map is needed \(got none\)"), ({"map": "a ="}, r"map\.toml: not TOML"),
    ({"map": MAP.replace("[files]", "[file]")}, r"files: is missing(?s:.*)file: unknown key; did you mean 'f"),
    ({"d": None}, r"d\.csv: missing, though the map names it"),
    ({"d": HEAD.replace("maker", "agent") + ONE}, r"column 'agent' occurs twice"),
    ({"d": b"\xff\xfe"}, r"d\.csv: is text in UTF-16"), ({"d": b"\x1f\x8bnonsense"}, r"d\.csv: damaged gzip"),
    ({"d": HEAD + ONE.replace("A grew", '"A" grew')}, r"d\.csv line 2: not CSV"),
    ({"d": HEAD + ONE + '"r2,\n' + TWO}, r"line 3: not CSV: a quote is opened here and .*; lines 3 to 4 are lost"),
    ({"map": MAP.replace("d.csv", "d.jsonl"), "d.jsonl": b"{,}"}, r"d\.jsonl line 1: not JSON"),
    ({"f": FACTS.replace("available_at", "when")}, r"f\.csv: no column 'available_at'"),
    ({"f": FACTS.replace("0.04", "much")}, r"f\.csv line 2, value: must be a finite number"),
    ({"f": FACTS.replace("20:00:00Z", "20:00:00")}, r"f\.csv line 2, available_at: has no time zone"),
    ({"o": OUTCOMES.replace("alpha", "gamma")}, r"o\.csv line 2: an outcome of no imported decision"),
    ({"o": OUTCOMES.replace("value", "result")}, r"o\.csv: no column 'value'"),
    ({"o": OUTCOMES.replace("0.02", "up")}, r"o\.csv line 2, value: must be a finite number"),
    ({"map": ALONE.replace('"sure"', '"sure"\nprompt = "size"').replace('weight = "size"\n', "")},
     "'m1' already identifies another prompt"),
    ({"map": MAP.replace('confidence = "sure"', 'step = "sure"\naction = "risks"').replace('risk = ["risks"]', "")},
     r"sure: must be a whole number \(got 0\.6\)(?s:.*)risks: must be one of buy"),
])  # fmt: skip
def test_a_wrong_file_is_named(changes, message):
    refused(message, **changes)


def test_a_stated_cutoff_is_used_and_must_not_follow_the_decision():
    text = ALONE.replace("[files]", '[files]\nfacts = "f.csv"').replace('confidence = "sure"', 'cutoff = "sure"')
    (context,) = imported(map=text, d=HEAD + ONE.replace("0.6", "2026-05-02T00:00:00Z")).contexts.values()
    assert (context.cutoff, context.cutoff_source) == (datetime(2026, 5, 2, tzinfo=UTC), "column sure")
    refused("the cutoff is after the decision", map=text, d=HEAD + ONE.replace("0.6", "2026-05-09T00:00:00Z"))


def test_every_bad_row_is_named_the_next_one_read_and_progress_told():
    third, fourth = (TWO.replace("beta", name).replace("bolt", name) for name in ("gamma", "delta"))
    rows = HEAD + ONE.replace("\n", ",x\n") + TWO + third.replace(",0.7", "") + fourth + ONE.replace("0.6", "7")
    refused(r"d\.csv line 2: has 11 cells(?s:.*)d\.csv line 4: has 9 cells(?s:.*)sure: must be", d=rows)
    result = imported(d=rows, keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta", "delta"]
    assert (result.report.good, result.report.bad) == (2, 3)
    told = []
    imported(progress=lambda *seen: told.append(seen))
    assert told == [("facts", 3, 3), ("decisions", 2, 2), ("outcomes", 2, 2)]


def test_only_a_context_that_lost_something_is_partial():
    contexts, report = seen()
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("complete", ())}
    assert "contexts that lost something" not in report.counts
    facts = WHOLE + "m2,A,growth,0.04,ratio,2026-05-01T20:00:00Z\nm2,B,growth,,ratio,2026-05-01T20:00:00Z\n"
    contexts, _ = seen(f=facts, d=HEAD + ONE + TWO.replace("m1", "m2"))
    assert [contexts[name].completeness for name in ("r1/alpha", "r1/beta")] == ["complete", "partial"]


@pytest.mark.parametrize(("facts", "lost"), [
    (FACTS, "growth of B: no value"), (WHOLE.replace("0.04", "much"), "growth of A: refused"),
    (WHOLE.replace("0.04,ratio,2026-05-01T20:00:00Z", "0.04,ratio,noon"), "growth of A: refused"),
    (WHOLE + "m1,A,exit_price,3,usd,2026-05-01T20:00:00Z\n", "exit_price of A: refused"),
    (WHOLE + "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\n", "growth of A: two values"),
    (WHOLE + "m1,A,growth\n", "f.csv: 1 unreadable rows"),
    (WHOLE + ",A,growth,0.04,ratio,2026-05-01T20:00:00Z\n", "growth of A: refused (of no named context)"),
])  # fmt: skip
def test_a_context_that_lost_a_fact_is_partial_and_says_which(facts, lost):
    contexts, report = seen(f=facts)
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}
    assert report.counts["contexts that lost something"] == 1


PROMPTED = COMPLETE.replace('risk = ["risks"]', "").replace('instrument = "ticker"', 'prompt = "risks"')
PROMPTED = PROMPTED.replace('weight = "size"\n', "")


def test_without_its_facts_file_every_context_is_partial_and_a_long_prompt_is_read():
    rows = HEAD + ONE + TWO.replace("B is cheap.,", "B is cheap.,A may fall.")
    for facts in ("", WHOLE.replace("available_at", "when"), WHOLE.replace("unit", "outcome")):
        contexts, _ = seen(map=PROMPTED, f=facts, d=rows)
        assert [c.completeness for c in contexts.values()] == ["partial"] * 2
        assert {c.missing for c in contexts.values()} == {("f.csv: could not be read",)}
    prompt = "Choose A or B. " * 14_000
    contexts, _ = seen(map=PROMPTED, d=HEAD + ONE.replace("A may fall.", prompt))
    assert len(contexts["r1/alpha"].prompt) == len(prompt) > 200_000


# Several orders per decision, rounds by time, a time zone for times without


def test_a_further_row_with_another_instrument_is_an_order_which_may_have_limits_of_its_own():
    result = bare(ONE + MORE + TWO)
    first, second = result.decisions
    assert [(one.instrument, one.weight, one.confidence) for one in first.actions] == [
        ("A", 0.5, None), ("B", 0.3, None),
    ]  # fmt: skip
    assert (first.confidence, second.agent.id, result.report.good, result.report.bad) == (0.6, "beta", 2, 0)
    assert [(one.kind, one.text) for one in first.rationales] == [
        ("summary", "A grew 4%."), ("summary", "B is cheap."), ("risk", "A may fall.")
    ]  # fmt: skip
    text = BARE.replace('weight = "size"', 'weight = "size"\nleverage = "lever"\nstop = "out"\ntarget = "goal"')
    rows = ONE.replace("0.5,", "0.5,10,95,120,") + MORE.replace("0.6", "0.9").replace("0.3,", "0.3,,,,")
    (made,) = bare(rows, text, HEAD.replace("size,", "size,lever,out,goal,")).decisions
    orders = [(one.confidence, one.leverage, one.stop, one.target) for one in made.actions]
    assert (made.confidence, orders) == (None, [(0.6, 10, 95, 120), (0.9, None, None, None)])


def test_orders_that_do_not_go_together_are_refused():
    rows = ONE + ONE.replace("0.5", "0.2") + ONE.replace("r1", "r2") + MORE.replace("acme", "bolt").replace("r1", "r2")
    rows += MORE.replace("r1", "r3") + ONE.replace("r1", "r3").replace("13:30", "13:45")
    alone = {"map": BARE, "f": None, "o": None}
    said = refused(".", d=HEAD + rows, **alone)
    further = "a further order needs another instrument, a further decision another step or replicate"
    assert len(said) == 4
    assert said[0].startswith("d.csv line 5, maker: 'alpha' is of two families")
    assert said[1] == f"d.csv line 3, agent: 'alpha' is named twice in one cycle (first at d.csv line 2); {further}"
    assert said[2].startswith("d.csv line 5, maker: differs from the first order of its decision (got 'bolt', and")
    assert said[3] == (
        "d.csv line 7, at: differs from the first order of its decision (got '2026-05-04T13:45:00Z', and "
        "'2026-05-04T13:30:00Z' at d.csv line 6); leave it empty, or give it another step"
    )
    kept = bare(rows.replace("bolt", "acme"), keep_going=True).report
    assert (kept.good, kept.bad) == (1, 2)
    heavy = HEAD + ONE.replace("0.5", "6") + MORE.replace("0.3", "5")
    refused(r"d\.csv line 2: weights of 11 times net asset value", d=heavy, **alone)


ROUNDS = BARE.replace('episode = "round"\n', "").replace('version = "1"', 'version = "1"\nround = "1h"')


def test_times_are_put_into_rounds_by_which_outcomes_find_their_decision():
    rows = [
        one.replace("13:30", at).replace("13:31", at)
        for one, at in ((ONE, "13:05"), (TWO, "13:59"), (ONE, "13:40"), (TWO, "14:00"), (MORE, "13:40"))
    ]
    result = bare("".join(rows), ROUNDS)
    assert {(one.record_id, one.cycle): len(one.actions) for one in result.decisions} == {
        ("2026-05-04T13:00Z/0/alpha", "2026-05-04T13:00Z#0"): 1, ("2026-05-04T13:00Z/0/beta", "2026-05-04T13:00Z#0"): 1,
        ("2026-05-04T13:00Z/1/alpha", "2026-05-04T13:00Z#1"): 2, ("2026-05-04T14:00Z/0/beta", "2026-05-04T14:00Z#0"): 1,
    }  # fmt: skip
    assert {one.cycle for one in bare(rows[0] + rows[1], ROUNDS.replace("1h", "1d")).decisions} == {"2026-05-04#0"}
    within = ROUNDS.replace('agent = "agent"', 'agent = "agent"\nepisode = "round"')
    assert [one.episode_id for one in bare(ONE, within).decisions] == ["r1/2026-05-04T13:00Z"]
    text = ROUNDS.replace('decisions = "d.csv"', 'decisions = "d.csv"\noutcomes = "o.csv"')
    rows = HEAD + ONE + ONE.replace("13:30", "13:40")
    refused(r"outcomes\.decided_at is needed with round", map=text, d=rows, f=None)
    outcomes = "agent,at,horizon,value\nalpha,2026-05-04T15:40:00+02:00,one week,0.1\n"
    (found,) = imported(map=text + '[outcomes]\ndecided_at = "at"\n', d=rows, f=None, o=outcomes).outcomes
    assert found.record_id == "2026-05-04T13:00Z/1/alpha"


@pytest.mark.parametrize(("text", "said"), [
    (ROUNDS.replace("1h", "1 hour"), r"must be a length such as 15min, 1h, 1d or 1w \(got '1 hour'\)"),
    (ROUNDS.replace('round = "1h"\n', ""), "columns.episode is missing; name the column"),
    (ROUNDS.replace('agent = "agent"', 'agent = "agent"\nstep = "sure"'), "columns.step goes with columns.episode"),
    (BARE.replace('version = "1"', 'time_zone = "Mars/Olympus"'), "must be a time zone such as"),
])  # fmt: skip
def test_a_map_says_what_is_wrong_with_its_rules(text, said):
    refused(said, map=text, d=HEAD + ONE, f=None, o=None)


def test_times_without_a_zone_take_that_of_the_map():
    text = MAP.replace('version = "1"', 'version = "1"\ntime_zone = "America/New_York"')
    facts = "context,instrument,field,value,unit,available_at\nm1,A,growth,0.04,ratio,2026-05-03\n"
    given = {"map": text, "f": facts, "o": "agent,episode,horizon,value\n"}
    for time in ("09:30:00", "13:30:00Z"):  # a zone that is said wins
        result = imported(d=HEAD + ONE.replace("13:30:00Z", time), **given)
        (made,) = result.decisions
        assert made.decided_at.isoformat() == "2026-05-04T13:30:00+00:00"
        (fact,) = result.contexts[made.context_id].facts
        assert fact.available_at.isoformat() == "2026-05-03T04:00:00+00:00"
    for twice in ("2026-11-01T01:30:00", "2026-03-08T02:30:00"):  # an hour that clocks tell twice, or never
        said = r"d\.csv line 2, at: clocks change then in America/New_York \(got '2026"
        refused(said, d=HEAD + ONE.replace("2026-05-04T13:30:00Z", twice), **given)


# Nested JSON

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
    orders = [{"ticker": "A", "side": "BUY", "units": 2}, {"ticker": "B", "side": "sell", "units": 1}]
    return {
        "round": "r1", "agent": {"name": "alpha", "maker": "acme"},
        "call": {"at": "2026-05-04T13:30:00Z", "prompt": "A or B?", "id": 7},
        "reply": {"why": "A grew.", "orders": orders} | reply,
    }  # fmt: skip


def test_objects_in_objects_are_dotted_columns_and_a_list_of_orders_is_a_row_each():
    for name, whole in (("d.jsonl", nested()), ("d.json", [nested()]),
                        ("rows.json", {"made": "today", "rows": [nested()]})):  # fmt: skip
        text = NESTED.replace("d.jsonl", name).encode()
        result = import_generic({"map.toml": text, name: json.dumps(whole).encode()})
        (made,) = result.decisions
        assert [(one.instrument, one.kind, one.quantity) for one in made.actions] == [("A", "buy", 2), ("B", "sell", 1)]
        assert [one.text for one in made.rationales] == ["A grew."]
        assert list(result.report.no_place) == [f"call.id of {name}"]


def test_problems_of_nested_files_name_the_line_and_the_order():
    odd = [
        nested(orders=[{"ticker": "A", "side": "buy", "units": "two"}]), nested(orders=[{"ticker": "A"}, 3]),
        {"call.at": 1} | nested(), nested(why=[1]) | {"round": "r2", "call": {"at": 7, "prompt": "A or B?"}},
    ]  # fmt: skip
    with pytest.raises(InputError) as caught:
        import_generic({"map.toml": NESTED.encode(), "d.jsonl": "\n".join(map(json.dumps, odd)).encode()})
    assert [str(one) for one in caught.value.problems] == [
        "d.jsonl line 2: reply.orders: must hold objects only (item 2 is 3)",
        "d.jsonl line 3: 'call.at' is there twice: with a dot in its name, and as an object in an object",
        "d.jsonl line 1, reply.orders 1, reply.orders.units: must be a finite number (got 'two')",
        "d.jsonl line 4, reply.orders 1, call.at: must be a time such as 2026-05-01T13:30:00Z (got '7')",
        *(f"d.jsonl line 4, reply.orders {at}, reply.why: must be text or a list of texts (got [1])" for at in (1, 2)),
    ]
    with pytest.raises(InputError, match=r"d\.json: must be a list of objects, or an object with one list; write one"):
        import_generic({"map.toml": NESTED.replace("jsonl", "json").encode(), "d.json": b'{"a": 1}'})
