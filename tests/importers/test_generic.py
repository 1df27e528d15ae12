"""The generic importer: a map, strict cells, and nothing from after the decision."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest

from assaymark.errors import InputError
from assaymark.importers import import_generic, template
from assaymark.importers.generic import parse_map
from assaymark.records import content_id

MAP = """
version = "1"
[files]
decisions = "d.csv"
facts = "f.csv"
outcomes = "o.csv"
[provenance]
source = "mine"
licence = "MIT"
[columns]
episode = "round"
decided_at = "at"
agent = "agent"
family = "maker"
context = "seen"
confidence = "sure"
instrument = "ticker"
weight = "size"
[rationales]
summary = ["why"]
risk = ["risks"]
"""
HEAD = "round,at,agent,maker,seen,sure,ticker,size,why,risks\n"
ONE = "r1,2026-05-04T13:30:00Z,alpha,acme,m1,0.6,A,0.5,A grew 4%.,A may fall.\n"
TWO = "r1,2026-05-04T13:31:00Z,beta,bolt,m1,0.7,B,1.0,B is cheap.,\n"
FACTS = (
    "context,instrument,field,value,unit,available_at\n"
    "m1,A,growth,0.04,ratio,2026-05-01T20:00:00Z\n"
    "m1,,next_meeting,2026-05-20,date,2026-05-01T20:00:00Z\n"
    "m1,B,growth,,ratio,2026-05-01T20:00:00Z\n"
)
OUTCOMES = "agent,episode,horizon,value\nalpha,r1,one week,0.02\nbeta,r1,one week,\n"


def files(**changes: str | bytes | None) -> dict[str, bytes]:
    given = {"map.toml": MAP, "d.csv": HEAD + ONE + TWO, "f.csv": FACTS, "o.csv": OUTCOMES} | changes
    return {name: text.encode() if isinstance(text, str) else text for name, text in given.items() if text is not None}


def test_a_plain_import():
    result = import_generic(files())
    alpha, beta = result.decisions
    assert (alpha.record_id, alpha.cluster, alpha.format) == ("r1/alpha", "2026-W19", "generic")
    assert [(a.instrument, a.kind, a.weight) for a in alpha.actions] == [("A", "target_weight", 0.5)]
    assert [(r.kind, r.text) for r in alpha.rationales] == [("summary", "A grew 4%."), ("risk", "A may fall.")]
    assert [r.kind for r in beta.rationales] == ["summary"]
    assert alpha.context_id == beta.context_id
    ((name, seen),) = result.contexts.items()
    assert content_id(seen) == name
    assert [(f.id, f.value) for f in seen.facts] == [("f1", 0.04), ("f2", "2026-05-20")]
    assert seen.cutoff == datetime(2026, 5, 1, 20, tzinfo=UTC)
    assert [(o.record_id, o.value) for o in result.outcomes] == [("r1/alpha", 0.02)]
    assert result.report.missing["outcome"].examples == ("r1/beta",)
    assert result.report.missing["fact value"].count == 1
    assert alpha.provenance.licence == "MIT"


def test_the_template_reads_its_own_examples():
    lines = [line.strip("# ") for line in template().splitlines() if line.startswith("#   ")]
    data = "\n".join(lines[:2]) + "\n"
    result = import_generic({"map.toml": template().encode(), "decisions.csv": data.encode()})
    (decision,) = result.decisions
    assert [r.kind for r in decision.rationales] == ["summary", "risk"]
    assert (decision.actions[0].kind, decision.actions[0].weight) == ("buy", 1.0)
    assert next(iter(result.contexts.values())).prompt == "Pick one of A and B."


def test_the_template_with_everything_switched_on_reads_its_own_examples():
    text = template()
    for line in ("facts = ", "outcomes = "):
        text = text.replace(f"# {line}", line)
    text = text.replace(
        '# [facts]\n# context = "seen"\n# available_at = "known_at"', '[facts]\ncontext="seen"\navailable_at="known_at"'
    )
    text = text.replace('# [outcomes]\n# episode = "round"', '[outcomes]\nepisode = "round"')
    lines = [line.strip("# ") for line in template().splitlines() if line.startswith("#   ")]
    named = zip(("decisions.csv", "facts.csv", "outcomes.csv"), (lines[:2], lines[2:4], lines[4:6]), strict=True)
    result = import_generic({"map.toml": text.encode(), **{n: "\n".join(rows).encode() for n, rows in named}})
    assert (len(result.decisions), len(result.outcomes), result.report.counts["facts"]) == (1, 1, 1)


def test_jsonl_with_lists_weights_and_packed_bytes():
    text = MAP.replace("d.csv", "d.jsonl").replace('facts = "f.csv"\noutcomes = "o.csv"\n', "")
    text = text.replace(
        'instrument = "ticker"\nweight = "size"\n', 'prompt = "prompt"\nstep = "n"\nreplicate = "run"\n'
    )
    text = text.replace('version = "1"', 'version = "1"\nweight_unit = "percent"') + '[weights]\nw_a = "A"\nw_b = "B"\n'
    row = {
        "round": "r1", "n": 2, "run": 2, "at": "2026-05-04T13:30:00+02:00", "agent": "alpha", "maker": "acme",
        "seen": "m", "sure": 0.5, "prompt": "Choose.", "why": "A.", "risks": ["x", "y"], "w_a": 25, "w_b": 0,
    }  # fmt: skip
    given = {"map.toml": text.encode(), "d.jsonl.gz": gzip.compress(json.dumps(row).encode())}
    (decision,) = import_generic(given).decisions
    assert (decision.record_id, decision.step, decision.replicate) == ("r1/2/alpha/r2", 2, 2)
    assert [(a.instrument, a.weight) for a in decision.actions] == [("A", 0.25)]
    assert [r.text for r in decision.rationales] == ["A.", "x", "y"]
    assert decision.decided_at == datetime(2026, 5, 4, 11, 30, tzinfo=UTC)
    given["d.jsonl.gz"] = json.dumps({**row, "why": 7}).encode()
    with pytest.raises(InputError, match=r"line 1, why: must be text \(got 7\)"):
        import_generic(given)
    row["risks"] = ["x", 3]
    given["d.jsonl.gz"] = json.dumps(row).encode()
    with pytest.raises(InputError, match="risks: must be text or a list of texts"):
        import_generic(given)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ONE.replace("13:30:00Z", "13:30:00"), r"d\.csv line 2, at: has no time zone"),
        (ONE.replace("2026-05-04T13:30:00Z", "noon"), r"line 2, at: must be a time such as"),
        (ONE.replace("0.6", "1.6"), r"line 2, sure: must be a finite number from 0 to 1 \(got '1\.6'\)"),
        (ONE.replace("0.5", "half"), r"line 2, size: must be a finite number"),
        (ONE.replace("0.5", "inf"), r"line 2, size: must be a finite number"),
        (ONE.replace("alpha", ""), r"line 2, agent: is empty"),
        (ONE.replace("alpha", "a|b"), r"line 2, agent: cannot be a name"),
        (ONE.replace("m1", "m2"), r"line 2, seen: a record without a context: no prompt, and no facts for 'm2'"),
        (ONE + ONE, r"line 3, agent: 'alpha' is named twice in one cycle \(first at d\.csv line 2\)"),
        (ONE.replace("A may fall.", "A, may"), r"d\.csv line 2: has 11 cells \(the header has 10\)"),
        (
            ONE.replace("2026-05-04", "2026-04-04"),
            r"f\.csv line 2, growth: a fact from the future: available 2026-05-01",
        ),
    ],
)
def test_a_wrong_row_is_named(row, message):
    with pytest.raises(InputError, match=message):
        import_generic(
            files(**{"d.csv": HEAD + row, "o.csv": None, "map.toml": MAP.replace('outcomes = "o.csv"\n', "")})
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"map.toml": None}, r"one column map is needed \(got none\)"),
        ({"map.toml": "a ="}, r"map\.toml: not TOML"),
        (
            {"map.toml": MAP.replace("[files]", "[file]")},
            r"files: is missing; a value is needed(?s:.*)file: unknown key \(allowed: version, files, ",
        ),
        ({"d.csv": None}, r"d\.csv: missing, though the map names it"),
        ({"d.csv": HEAD.replace("why", "thesis") + ONE}, r"d\.csv: no column 'why'"),
        ({"d.csv": ""}, r"d\.csv: .*empty: a header row is needed"),
        ({"d.csv": HEAD.replace("maker", "agent") + ONE}, r"column 'agent' stands twice"),
        ({"d.csv": b"\xff\xfe"}, r"d\.csv: line 1: not UTF-8"),
        ({"d.csv": HEAD + ONE.replace("A grew", '"A" grew')}, r"d\.csv line 2: not CSV"),
        ({"d.csv": b"\x1f\x8bnonsense"}, r"d\.csv: damaged gzip"),
        ({"f.csv": FACTS.replace("available_at", "when")}, r"f\.csv: no column 'available_at'"),
        ({"f.csv": FACTS.replace("0.04", "much")}, r"f\.csv line 2, value: must be a finite number"),
        ({"f.csv": FACTS.replace("20:00:00Z", "20:00:00")}, r"f\.csv line 2, available_at: has no time zone"),
        ({"o.csv": OUTCOMES.replace("alpha", "gamma")}, r"o\.csv line 2: an outcome of no imported decision"),
        ({"o.csv": OUTCOMES.replace("value", "result")}, r"o\.csv: no column 'value'"),
        ({"o.csv": OUTCOMES.replace("0.02", "up")}, r"o\.csv line 2, value: must be a finite number"),
    ],
)
def test_a_wrong_file_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        import_generic(files(**changes))


def test_prices_of_the_exit_are_refused_by_name_and_by_content():
    named = MAP.replace("f.csv", "exit_prices.csv")
    with pytest.raises(InputError, match=r"'exit_prices\.csv' names outcomes; give it in files\.outcomes"):
        import_generic(files(**{"map.toml": named, "exit_prices.csv": FACTS}))
    disguised = MAP + (
        '[facts]\ncontext = "round"\ninstrument = "option_id"\nfield = "symbol"\nvalue = "close"\nunit = "source"\n'
        'available_at = "date"\n'
    )
    prices = "round,option_id,symbol,date,close,source\nm1,GOLD,IAU,2026-06-10,76.79,price\n"
    with pytest.raises(InputError, match=r"date: dated 2026-06-10, after the decision .* an outcome is never context"):
        import_generic(files(**{"map.toml": disguised, "f.csv": prices}))


@pytest.mark.parametrize("column", ["outcome", "return_after_1w", "exit_price", "fwd_return", "realized_pnl"])
def test_an_outcome_column_is_never_a_fact_or_a_text(column):
    head, _, rest = FACTS.partition("\n")
    more = "\n".join(f"{line},1" for line in rest.splitlines())
    with pytest.raises(InputError, match=f"column '{column}' names an outcome; outcomes are declared"):
        import_generic(files(**{"f.csv": f"{head},{column}\n{more}\n"}))
    with pytest.raises(InputError, match=f"column '{column}' names an outcome"):
        parse_map(MAP.replace('"why"', f'"{column}"'))


def test_a_dated_row_from_after_the_decision_is_an_outcome():
    head, _, rest = FACTS.partition("\n")
    more = "\n".join(f"{line},2026-05-11" for line in rest.splitlines())
    with pytest.raises(InputError, match=r"day: dated 2026-05-11, after the decision .*an outcome is never context"):
        import_generic(files(**{"f.csv": f"{head},day\n{more}\n"}))


def test_two_prompts_for_one_context_are_refused():
    text = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "").replace('"sure"', '"sure"\nprompt = "size"')
    with pytest.raises(InputError, match="'m1' already stands for another prompt"):
        import_generic(files(**{"map.toml": text.replace('weight = "size"\n', "")}))


def test_a_stated_cutoff_is_used_and_must_not_follow_the_decision():
    text = MAP.replace('confidence = "sure"', 'cutoff = "sure"')
    row = ONE.replace("0.6", "2026-05-02T00:00:00Z")
    given = files(**{"map.toml": text.replace('outcomes = "o.csv"\n', ""), "d.csv": HEAD + row})
    (seen,) = import_generic(given).contexts.values()
    assert (seen.cutoff, seen.cutoff_source) == (datetime(2026, 5, 2, tzinfo=UTC), "column sure")
    given["d.csv"] = (HEAD + ONE.replace("0.6", "2026-05-09T00:00:00Z")).encode()
    with pytest.raises(InputError, match="the cutoff is after the decision"):
        import_generic(given)


def test_whole_numbers_and_actions_are_checked():
    text = MAP.replace('confidence = "sure"', 'step = "sure"\naction = "risks"').replace('risk = ["risks"]', "")
    with pytest.raises(InputError, match=r"sure: must be a whole number \(got 0\.6\)(?s:.*)risks: must be one of buy"):
        import_generic(files(**{"map.toml": text}))


def test_keep_going_counts_both():
    result = import_generic(files(**{"d.csv": HEAD + ONE + TWO.replace("0.7", "7")}), keep_going=True)
    assert (result.report.good, result.report.bad) == (1, 1)
    assert any("sure: must be" in str(p) for p in result.report.problems)


def test_an_unreadable_json_line_is_named():
    text = MAP.replace("d.csv", "d.jsonl")
    with pytest.raises(InputError, match=r"d\.jsonl line 1: not JSON"):
        import_generic(files(**{"map.toml": text, "d.jsonl": b"{,}"}))


def test_progress_is_told():
    told = []
    import_generic(files(), progress=lambda *seen: told.append(seen))
    assert told == [("facts", 3, 3), ("decisions", 2, 2), ("outcomes", 2, 2)]


# --- what was lost --------------------------------------------------------------------------------------------------

COMPLETE = MAP.replace('version = "1"', 'version = "1"\ncompleteness = "complete"')
WHOLE = FACTS.replace("m1,B,growth,,", "m1,B,growth,0.01,")


def seen(**changes: str | bytes | None):
    result = import_generic(files(**({"map.toml": COMPLETE, "f.csv": WHOLE} | changes)), keep_going=True)
    return {d.record_id: result.contexts[d.context_id] for d in result.decisions}, result.report


def problems(report) -> str:
    return "\n".join(map(str, report.problems))


def test_a_context_that_lost_nothing_stays_complete():
    contexts, report = seen()
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("complete", ())}
    assert "contexts that lost something" not in report.counts


@pytest.mark.parametrize(
    ("facts", "lost"),
    [
        (FACTS, "growth of B: no value"),
        (WHOLE.replace("0.04", "much"), "growth of A: refused"),
        (WHOLE.replace("0.04,ratio,2026-05-01T20:00:00Z", "0.04,ratio,noon"), "growth of A: refused"),
        (WHOLE + "m1,A,exit_price,3,usd,2026-05-01T20:00:00Z\n", "exit_price of A: refused"),
        (WHOLE + "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\n", "growth of A: two values"),
        (WHOLE + "m1,A,growth\n", "f.csv: 1 unreadable rows"),
        (WHOLE + ",A,growth,0.04,ratio,2026-05-01T20:00:00Z\n", "growth of A: refused (of no named context)"),
    ],
)
def test_a_context_that_lost_a_fact_is_partial_and_says_which(facts, lost):
    contexts, report = seen(**{"f.csv": facts})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}
    assert report.counts["contexts that lost something"] == 1


def test_an_empty_value_alone_makes_a_context_partial():
    result = import_generic(files(**{"map.toml": COMPLETE}))
    (context,) = result.contexts.values()
    assert (context.completeness, context.missing) == ("partial", ("growth of B: no value",))


def test_only_the_context_that_lost_something_is_partial():
    facts = WHOLE + "m2,A,growth,0.04,ratio,2026-05-01T20:00:00Z\nm2,B,growth,,ratio,2026-05-01T20:00:00Z\n"
    contexts, _ = seen(**{"f.csv": facts, "d.csv": HEAD + ONE + TWO.replace("m1", "m2")})
    assert [contexts[name].completeness for name in ("r1/alpha", "r1/beta")] == ["complete", "partial"]


@pytest.mark.parametrize("facts", ["", WHOLE.replace("available_at", "when"), WHOLE.replace("unit", "outcome")])
def test_without_its_facts_file_every_context_is_partial(facts):
    text = COMPLETE.replace('risk = ["risks"]', "").replace('instrument = "ticker"', 'prompt = "risks"')
    rows = HEAD + ONE + TWO.replace("B is cheap.,", "B is cheap.,A may fall.")
    contexts, _ = seen(**{"map.toml": text.replace('weight = "size"\n', ""), "f.csv": facts, "d.csv": rows})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", ("f.csv: could not be read",))}
    assert len(contexts) == 2


# --- long cells and bad rows ----------------------------------------------------------------------------------------


def test_a_prompt_of_two_hundred_thousand_characters_is_read():
    text = MAP.replace('outcomes = "o.csv"\n', "").replace('risk = ["risks"]', "")
    text = text.replace('weight = "size"', 'prompt = "risks"').replace('instrument = "ticker"\n', "")
    prompt = "Choose A or B. " * 14_000
    result = import_generic(files(**{"map.toml": text, "d.csv": HEAD + ONE.replace("A may fall.", prompt)}))
    (context,) = result.contexts.values()
    assert len(context.prompt) == len(prompt) > 200_000


def test_every_bad_row_is_named_and_the_next_one_read():
    third, fourth = (TWO.replace("beta", name).replace("bolt", name) for name in ("gamma", "delta"))
    rows = HEAD + ONE.replace("\n", ",x\n") + TWO + third.replace(",0.7", "") + fourth
    with pytest.raises(InputError, match=r"d\.csv line 2: has 11 cells(?s:.*)d\.csv line 4: has 9 cells"):
        import_generic(files(**{"d.csv": rows}))
    result = import_generic(files(**{"d.csv": rows}), keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta", "delta"]
    assert (result.report.good, result.report.bad) == (2, 2)


# --- what was accepted silently -------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["exit_price", "realized_return_1w", "outcome_7d", "return_after_1w", "Fwd Return"])
def test_a_field_that_names_an_outcome_is_refused_once(field):
    rows = "".join(f"m1,{name},{field},0.1,ratio,2026-05-01T20:00:00Z\n" for name in "ABC")
    with pytest.raises(InputError, match="outcome offered as context") as caught:
        import_generic(files(**{"f.csv": FACTS + rows}))
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"f.csv line 5, field: outcome offered as context: {field!r} names what happened")
    assert "(3 rows); give it in files.outcomes" in str(problem)


@pytest.mark.parametrize(
    "field", ["next_meeting", "forward_pe", "price_to_forward_earnings", "realized_volatility", "after_hours_change",
              "expected_return_next_year", "exit_polls", "future_orders"],
)  # fmt: skip
def test_a_field_that_was_known_before_is_a_fact(field):
    rows = f"m1,A,{field},0.1,ratio,2026-05-01T20:00:00Z\n"
    (context,) = import_generic(files(**{"f.csv": FACTS + rows})).contexts.values()
    assert field in [fact.field for fact in context.facts]


def test_an_agent_of_two_families_is_left_out_and_told_once():
    rows = HEAD + ONE + ONE.replace("r1", "r2").replace("acme", "bolt") + ONE.replace("r1", "r3") + TWO
    with pytest.raises(InputError, match="is of two families") as caught:
        import_generic(files(**{"d.csv": rows}))
    (problem,) = caught.value.problems
    assert str(problem) == (
        "d.csv line 3, maker: 'alpha' is of two families (got 'bolt', and 'acme' at d.csv line 2); "
        "an agent has one in all of its decisions"
    )
    result = import_generic(files(**{"d.csv": rows}), keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta"]
    assert (result.report.bad, result.report.counts["outcomes of decisions that were left out"]) == (3, 1)


def test_a_decision_with_a_second_prompt_is_left_out():
    text = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "").replace('risk = ["risks"]', "")
    text = text.replace('weight = "size"', 'prompt = "risks"').replace('instrument = "ticker"\n', "")
    rows = HEAD + ONE + TWO.replace("cheap.,", "cheap.,B may fall.")
    result = import_generic(files(**{"map.toml": text, "d.csv": rows}), keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["alpha"]
    assert result.report.bad == 1


def test_an_outcome_told_twice_is_refused_and_neither_kept():
    told = OUTCOMES + "alpha,r1,one week,0.03\nalpha,r1,one month,0.05\n"
    with pytest.raises(
        InputError, match=r"o\.csv line 4, horizon: a second outcome of 'r1/alpha' for 'one week' \(fir"
    ):
        import_generic(files(**{"o.csv": told}))
    result = import_generic(files(**{"o.csv": told}), keep_going=True)
    assert [(o.horizon, o.value) for o in result.outcomes] == [("one month", 0.05)]


def test_an_outcome_with_a_problem_is_not_kept():
    text = MAP + '[outcomes]\nresolved_at = "when"\n'
    told = "agent,episode,horizon,value,when\nalpha,r1,one week,0.02,noon\n"
    result = import_generic(files(**{"map.toml": text, "o.csv": told}), keep_going=True)
    assert result.outcomes == ()


def test_the_outcome_of_a_replicate_is_its_own():
    text = MAP.replace('confidence = "sure"', 'replicate = "sure"') + '[outcomes]\nreplicate = "run"\n'
    rows = HEAD + ONE.replace("0.6", "1") + ONE.replace("0.6", "2")
    told = "agent,episode,run,horizon,value\nalpha,r1,1,one week,0.1\nalpha,r1,2,one week,0.2\n"
    result = import_generic(files(**{"map.toml": text, "d.csv": rows, "o.csv": told}))
    assert [(o.record_id, o.value) for o in result.outcomes] == [("r1/alpha", 0.1), ("r1/alpha/r2", 0.2)]


def test_two_values_for_one_cell_are_refused_and_told_once():
    more = "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\nm1,A,growth,0.08,ratio,2026-05-01T20:00:00Z\n"
    with pytest.raises(InputError, match="two values") as caught:
        import_generic(files(**{"f.csv": FACTS + more}))
    (problem,) = caught.value.problems
    assert str(problem).startswith(
        "f.csv line 5, value: two values for growth of A in 'm1' (got '0.07 ratio', and '0.04 ratio' at f.csv line 2)"
    )
    again = "m1,A,growth,0.04,ratio,2026-05-01T20:00:00Z\n"
    texts = "".join(f"m1,A,headline,{word},text,2026-05-01T20:00:00Z\n" for word in ("one", "two"))
    assert import_generic(files(**{"f.csv": FACTS + again + texts})).report.counts["facts"] == 5


def test_one_cell_has_a_value_for_each_day():
    text = MAP + '[facts]\nas_of = "day"\n'
    rows = (
        "context,instrument,field,value,unit,available_at,day\n"
        "m1,A,price,1,usd,2026-05-01T20:00:00Z,2026-04-30T00:00:00Z\n"
        "m1,A,price,2,usd,2026-05-01T20:00:00Z,2026-05-01T00:00:00Z\n"
    )
    assert import_generic(files(**{"map.toml": text, "f.csv": rows})).report.counts["facts"] == 2


@pytest.mark.parametrize("weight", ["60", "-60", "10.5"])
def test_a_weight_beyond_leverage_is_refused_with_advice(weight):
    said = rf"size: must be a finite number from -10 to 10 \(got '{weight}'\); if your weights are in percent, say "
    with pytest.raises(InputError, match=said):
        import_generic(files(**{"d.csv": HEAD + ONE.replace("0.5", weight)}))
    percent = MAP.replace('version = "1"', 'weight_unit = "percent"')
    decision, *_ = import_generic(
        files(**{"map.toml": percent, "d.csv": HEAD + ONE.replace("0.5", weight) + TWO})
    ).decisions
    assert decision.actions[0].weight == float(weight) / 100


def test_weights_that_add_up_beyond_leverage_are_refused():
    text = MAP.replace('instrument = "ticker"\nweight = "size"\n', "").replace('confidence = "sure"\n', "")
    text += '[weights]\nsure = "A"\nsize = "B"\n'
    row = ONE.replace("0.6", "-6").replace("0.5", "6")
    with pytest.raises(
        InputError, match=r"line 2: weights of 12 times net asset value \(allowed at most 10\); if your"
    ):
        import_generic(files(**{"map.toml": text, "d.csv": HEAD + row}))


def test_a_record_without_text_to_judge_says_so():
    result = import_generic(files(**{"d.csv": HEAD + ONE + TWO.replace("B is cheap.", "")}))
    assert [d.missing for d in result.decisions] == [(), ("text",)]
    assert result.report.no_text == ("r1/beta",)


# --- one cause, told once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ("", "d.csv: empty: a header row is needed"),
        (HEAD, "d.csv: holds no decision: no row below the header"),
        (HEAD + "x,y\n", "d.csv line 2: has 2 cells (the header has 10)"),
        (HEAD.replace("why", "thesis") + ONE + TWO, "d.csv: no column 'why' (got round, at, agent, maker, seen, "),
    ],
)
def test_an_unreadable_decisions_file_is_one_problem(rows, cause):
    with pytest.raises(InputError, match=r"d\.csv") as caught:
        import_generic(files(**{"d.csv": rows}))
    (problem,) = caught.value.problems
    assert str(problem).startswith(cause)


def test_a_future_fact_is_told_once_for_all_its_decisions():
    rows = HEAD + "".join(ONE.replace("alpha", f"a{n}").replace("05-04", "04-04") for n in range(5))
    with pytest.raises(InputError, match="a fact from the future") as caught:
        import_generic(
            files(
                **{
                    "d.csv": rows,
                    "f.csv": FACTS.partition("m1,,")[0],
                    "o.csv": OUTCOMES.replace("alpha", "a1").replace("beta", "a2"),
                }
            )
        )
    (problem,) = caught.value.problems
    assert str(problem) == (
        "f.csv line 2, growth: a fact from the future: available 2026-05-01T20:00:00+00:00, used by the decision of "
        "2026-04-04T13:30:00+00:00 (d.csv line 2) and 4 more"
    )


def test_decisions_whose_facts_were_refused_are_told_once():
    with pytest.raises(InputError, match="2 decisions") as caught:
        import_generic(files(**{"f.csv": FACTS.replace("available_at", "when")}))
    assert [str(p).partition(" (")[0] for p in caught.value.problems] == [
        "f.csv: no column 'available_at'",
        "d.csv: 2 decisions without a context: no prompt, and their facts were refused or without value",
    ]


def test_outcomes_of_decisions_left_out_are_counted_and_others_named():
    told = OUTCOMES + "nobody,r1,one week,0.1\n"
    result = import_generic(files(**{"d.csv": HEAD + ONE.replace("0.6", "6") + TWO, "o.csv": told}), keep_going=True)
    assert problems(result.report).splitlines()[1:] == [
        "o.csv line 4: an outcome of no imported decision (got episode 'r1', agent 'nobody')"
    ]
    assert result.report.counts["outcomes of decisions that were left out"] == 1


def test_outcomes_beside_unreadable_decisions_are_told_together():
    told = OUTCOMES + "nobody,r1,one week,0.1\n"
    result = import_generic(files(**{"d.csv": HEAD + "x,y\n" + TWO, "o.csv": told}), keep_going=True)
    assert problems(result.report).endswith(
        "\no.csv line 2: 2 outcomes of no imported decision (the first has episode 'r1', agent 'alpha'); "
        "1 rows of d.csv were unreadable"
    )
    assert len(result.report.problems) == 2


# --- constraints ----------------------------------------------------------------------------------------------------

RULED = COMPLETE.replace('facts = "f.csv"', 'facts = "f.csv"\nconstraints = "c.csv"') + '[constraints]\nscope = "on"\n'
RULES = (
    "context,kind,limit,unit,on\nm1,max_weight,0.5,nav,holding\nm1,max_holdings,5,count,\nm2,max_holdings,9,count,\n"
)


def test_constraints_are_part_of_their_context():
    contexts, _ = seen(**{"map.toml": RULED, "c.csv": RULES})
    context = contexts["r1/alpha"]
    assert [(c.kind, c.limit, c.unit, c.scope) for c in context.constraints] == [
        ("max_weight", 0.5, "nav", "holding"),
        ("max_holdings", 5.0, "count", "portfolio"),
    ]
    assert context.completeness == "complete"


@pytest.mark.parametrize(
    ("row", "said", "lost"),
    [
        ("m1,max_loss,,nav,\n", r"c\.csv line 5, limit: is empty", "constraint max_loss: refused"),
        ("m1,max_loss,low,nav,\n", r"c\.csv line 5, limit: must be a finite number", "constraint max_loss: refused"),
        ("m1,,1,nav,\n", r"c\.csv line 5, kind: is empty", "constraint (unnamed): refused"),
        ("m1,max_holdings,6,count,\n", r"two values for max_holdings in 'm1'", "constraint max_holdings: two values"),
    ],
)
def test_a_wrong_constraint_is_named_and_its_context_partial(row, said, lost):
    with pytest.raises(InputError, match=said):
        import_generic(files(**{"map.toml": RULED, "f.csv": WHOLE, "c.csv": RULES + row}))
    contexts, _ = seen(**{"map.toml": RULED, "c.csv": RULES + row})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}


def test_constraints_are_no_place_for_outcomes():
    with pytest.raises(InputError, match=r"files\.constraints: 'outcomes\.csv' names outcomes"):
        parse_map(RULED.replace("c.csv", "outcomes.csv"))
    with pytest.raises(InputError, match=r"c\.csv: no column 'limit'"):
        import_generic(files(**{"map.toml": RULED, "c.csv": RULES.replace("limit", "bound")}))


def test_a_map_is_refused_in_our_words():
    with pytest.raises(InputError, match=r"map\.toml: not TOML: a number with too many digits"):
        parse_map(MAP + f"x = {'1' * 5000}\n")
    with pytest.raises(InputError, match=r"^map\.toml: column 'exit_text' names an outcome: what happened") as caught:
        parse_map(MAP.replace('"why"', '"exit_text"'))
    assert "got" not in str(caught.value)
    with pytest.raises(InputError, match=r"weight_unit: must be 'fraction' or 'percent' \(got 'bps'\)"):
        parse_map(MAP.replace('version = "1"', 'weight_unit = "bps"'))


CELL_MAP = MAP.replace(
    'size"', 'size"\nderivation = "made"\nparent = "of"\n[known_scores]\nsizing = "position_sizing"', 1
)
CELL_HEAD = HEAD.replace("\n", ",made,of,sizing\n")
CELL_ONE, CELL_TWO = (line.replace("\n", ",,,\n") for line in (ONE, TWO))


def cell(row: str, made: str, parent: str = "", known: str = "") -> str:
    return row.replace("\n", f",{made},{parent},{known}\n")


def test_control_cells_are_records_of_their_own_beside_the_honest_ones():
    rows = (
        CELL_ONE
        + CELL_TWO
        + cell(ONE, "paraphrase")
        + cell(TWO, "cell_b", known="5")
        + cell(TWO, "fact_flip", "r1/beta")
    )
    result = import_generic(files(**{"map.toml": CELL_MAP, "d.csv": CELL_HEAD + rows}))
    made = {d.record_id: d.derivation for d in result.decisions}
    assert list(made) == ["r1/alpha", "r1/beta", "r1/alpha~paraphrase", "r1/beta~cell_b", "r1/beta~fact_flip"]
    assert [one.kind for one in made.values()] == ["honest", "honest", "paraphrase", "cell_b", "fact_flip"]
    assert [one.parent for one in made.values()] == [None, None, "r1/alpha", None, "r1/beta"]
    assert made["r1/beta~cell_b"].known_scores == {"position_sizing": 5.0}
    assert {o.record_id for o in result.outcomes} == {"r1/alpha"}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (cell(ONE, "cell_c"), r"line 4, made: must be one of honest, cell_a.*got 'cell_c'"),
        (
            cell(ONE, "paraphrase", "r9/alpha"),
            r"line 4, of: made from an honest record that was not imported .*r9/alpha",
        ),
        (cell(ONE, "cell_b", known="6"), r"line 4, sizing: .*6"),
        (cell(ONE.replace("r1", "r2", 1), "honest", known="4"), r"line 4, sizing: an honest record has no known score"),
    ],
)
def test_a_wrong_control_cell_is_named(row, says):
    with pytest.raises(InputError, match=says):
        import_generic(files(**{"map.toml": CELL_MAP, "d.csv": CELL_HEAD + CELL_ONE + CELL_TWO + row}))
    kept = import_generic(
        files(**{"map.toml": CELL_MAP, "d.csv": CELL_HEAD + CELL_ONE + CELL_TWO + row}), keep_going=True
    )
    assert [d.record_id for d in kept.decisions] == ["r1/alpha", "r1/beta"]
