"""The generic importer: a map, strict cells, and nothing from after the decision."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pytest
from generic_files import COMPLETE, FACTS, HEAD, MAP, ONE, OUTCOMES, TWO, WHOLE, files, imported, seen

from assaymark.errors import InputError
from assaymark.importers import import_generic, parse_map, template
from assaymark.records import content_id


def test_a_plain_import():
    result = imported()
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
        (ONE.replace("0.5", "1_0"), r"line 2, size: must be a finite number"),
        (ONE.replace("0.5", "４"), r"line 2, size: must be a finite number"),
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
        imported(d=HEAD + row, o=None, map=MAP.replace('outcomes = "o.csv"\n', ""))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"map.toml": None}, r"one column map is needed \(got none\)"), ({"map.toml": "a ="}, r"map\.toml: not TOML"),
        ({"map.toml": MAP.replace("[files]", "[file]")}, r"files: is missing(?s:.*)file: unknown key; did you mean 'f"),
        ({"d.csv": None}, r"d\.csv: missing, though the map names it"),
        ({"d.csv": HEAD.replace("why", "thesis") + ONE}, r"d\.csv: no column 'why'"),
        ({"d.csv": ""}, r"d\.csv: .*empty: a header row is needed"),
        ({"d.csv": HEAD.replace("maker", "agent") + ONE}, r"column 'agent' stands twice"),
        ({"d.csv": b"\xff\xfe"}, r"d\.csv: is text in UTF-16"),
        ({"d.csv": HEAD + ONE.replace("A grew", '"A" grew')}, r"d\.csv line 2: not CSV"),
        ({"d.csv": b"\x1f\x8bnonsense"}, r"d\.csv: damaged gzip"),
        ({"f.csv": FACTS.replace("available_at", "when")}, r"f\.csv: no column 'available_at'"),
        ({"f.csv": FACTS.replace("0.04", "much")}, r"f\.csv line 2, value: must be a finite number"),
        ({"f.csv": FACTS.replace("20:00:00Z", "20:00:00")}, r"f\.csv line 2, available_at: has no time zone"),
        ({"o.csv": OUTCOMES.replace("alpha", "gamma")}, r"o\.csv line 2: an outcome of no imported decision"),
        ({"o.csv": OUTCOMES.replace("value", "result")}, r"o\.csv: no column 'value'"),
        ({"o.csv": OUTCOMES.replace("0.02", "up")}, r"o\.csv line 2, value: must be a finite number"),
    ],
)  # fmt: skip
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
        imported(map=disguised, f=prices)


def test_an_outcome_column_or_a_row_dated_after_the_decision_is_never_a_fact_or_a_text():
    head, _, rest = FACTS.partition("\n")

    def with_column(name, cell):
        return "\n".join([f"{head},{name}", *(f"{line},{cell}" for line in rest.splitlines()), ""])

    for column in ("outcome", "return_after_1w", "exit_price", "fwd_return", "realized_pnl"):
        with pytest.raises(InputError, match=f"column '{column}' names an outcome; outcomes are declared"):
            imported(f=with_column(column, 1))
        with pytest.raises(InputError, match=f"column '{column}' names an outcome"):
            parse_map(MAP.replace('"why"', f'"{column}"'))
    with pytest.raises(InputError, match=r"day: dated 2026-05-11, after the decision .*an outcome is never context"):
        imported(f=with_column("day", "2026-05-11"))


def test_two_prompts_for_one_context_are_refused():
    text = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "").replace('"sure"', '"sure"\nprompt = "size"')
    with pytest.raises(InputError, match="'m1' already stands for another prompt"):
        imported(map=text.replace('weight = "size"\n', ""))


def test_a_stated_cutoff_is_used_and_must_not_follow_the_decision():
    text = MAP.replace('confidence = "sure"', 'cutoff = "sure"')
    row = ONE.replace("0.6", "2026-05-02T00:00:00Z")
    given = files(**{"map.toml": text.replace('outcomes = "o.csv"\n', ""), "d.csv": HEAD + row})
    (seen,) = import_generic(given).contexts.values()
    assert (seen.cutoff, seen.cutoff_source) == (datetime(2026, 5, 2, tzinfo=UTC), "column sure")
    given["d.csv"] = (HEAD + ONE.replace("0.6", "2026-05-09T00:00:00Z")).encode()
    with pytest.raises(InputError, match="the cutoff is after the decision"):
        import_generic(given)


def test_keep_going_counts_both_progress_is_told_and_an_unreadable_line_named():
    result = imported(d=HEAD + ONE + TWO.replace("0.7", "7"), keep_going=True)
    assert (result.report.good, result.report.bad) == (1, 1)
    assert any("sure: must be" in str(p) for p in result.report.problems)
    told = []
    imported(progress=lambda *seen: told.append(seen))
    assert told == [("facts", 3, 3), ("decisions", 2, 2), ("outcomes", 2, 2)]
    with pytest.raises(InputError, match=r"d\.jsonl line 1: not JSON"):
        import_generic(files(**{"map.toml": MAP.replace("d.csv", "d.jsonl"), "d.jsonl": b"{,}"}))
    text = MAP.replace('confidence = "sure"', 'step = "sure"\naction = "risks"').replace('risk = ["risks"]', "")
    with pytest.raises(InputError, match=r"sure: must be a whole number \(got 0\.6\)(?s:.*)risks: must be one of buy"):
        imported(map=text)


def test_only_a_context_that_lost_something_is_partial():
    contexts, report = seen()
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("complete", ())}
    assert "contexts that lost something" not in report.counts
    (context,) = imported(map=COMPLETE).contexts.values()  # an empty value alone is enough
    assert (context.completeness, context.missing) == ("partial", ("growth of B: no value",))
    facts = WHOLE + "m2,A,growth,0.04,ratio,2026-05-01T20:00:00Z\nm2,B,growth,,ratio,2026-05-01T20:00:00Z\n"
    contexts, _ = seen(**{"f.csv": facts, "d.csv": HEAD + ONE + TWO.replace("m1", "m2")})
    assert [contexts[name].completeness for name in ("r1/alpha", "r1/beta")] == ["complete", "partial"]


@pytest.mark.parametrize(
    ("facts", "lost"),
    [
        (FACTS, "growth of B: no value"), (WHOLE.replace("0.04", "much"), "growth of A: refused"),
        (WHOLE.replace("0.04,ratio,2026-05-01T20:00:00Z", "0.04,ratio,noon"), "growth of A: refused"),
        (WHOLE + "m1,A,exit_price,3,usd,2026-05-01T20:00:00Z\n", "exit_price of A: refused"),
        (WHOLE + "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\n", "growth of A: two values"),
        (WHOLE + "m1,A,growth\n", "f.csv: 1 unreadable rows"),
        (WHOLE + ",A,growth,0.04,ratio,2026-05-01T20:00:00Z\n", "growth of A: refused (of no named context)"),
    ],
)  # fmt: skip
def test_a_context_that_lost_a_fact_is_partial_and_says_which(facts, lost):
    contexts, report = seen(**{"f.csv": facts})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}
    assert report.counts["contexts that lost something"] == 1


@pytest.mark.parametrize("facts", ["", WHOLE.replace("available_at", "when"), WHOLE.replace("unit", "outcome")])
def test_without_its_facts_file_every_context_is_partial(facts):
    text = COMPLETE.replace('risk = ["risks"]', "").replace('instrument = "ticker"', 'prompt = "risks"')
    rows = HEAD + ONE + TWO.replace("B is cheap.,", "B is cheap.,A may fall.")
    contexts, _ = seen(**{"map.toml": text.replace('weight = "size"\n', ""), "f.csv": facts, "d.csv": rows})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", ("f.csv: could not be read",))}
    assert len(contexts) == 2


def test_a_prompt_of_two_hundred_thousand_characters_is_read():
    text = MAP.replace('outcomes = "o.csv"\n', "").replace('risk = ["risks"]', "")
    text = text.replace('weight = "size"', 'prompt = "risks"').replace('instrument = "ticker"\n', "")
    prompt = "Choose A or B. " * 14_000
    result = imported(map=text, d=HEAD + ONE.replace("A may fall.", prompt))
    (context,) = result.contexts.values()
    assert len(context.prompt) == len(prompt) > 200_000


def test_every_bad_row_is_named_and_the_next_one_read():
    third, fourth = (TWO.replace("beta", name).replace("bolt", name) for name in ("gamma", "delta"))
    rows = HEAD + ONE.replace("\n", ",x\n") + TWO + third.replace(",0.7", "") + fourth
    with pytest.raises(InputError, match=r"d\.csv line 2: has 11 cells(?s:.*)d\.csv line 4: has 9 cells"):
        imported(d=rows)
    result = imported(d=rows, keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta", "delta"]
    assert (result.report.good, result.report.bad) == (2, 2)
