"""The generic importer: what it refuses or leaves out, told once; constraints, and control cells."""

from __future__ import annotations

import pytest
from generic_files import COMPLETE, FACTS, HEAD, MAP, ONE, OUTCOMES, TWO, WHOLE, files, imported, problems, seen

from assaymark.errors import InputError
from assaymark.importers import import_generic, parse_map


@pytest.mark.parametrize("field", ["exit_price", "realized_return_1w", "outcome_7d", "return_after_1w", "Fwd Return"])
def test_a_field_that_names_an_outcome_is_refused_once(field):
    rows = "".join(f"m1,{name},{field},0.1,ratio,2026-05-01T20:00:00Z\n" for name in "ABC")
    with pytest.raises(InputError, match="outcome offered as context") as caught:
        imported(f=FACTS + rows)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"f.csv line 5, field: outcome offered as context: {field!r} names what happened")
    assert "(3 rows); give it in files.outcomes" in str(problem)


@pytest.mark.parametrize(
    "field", ["next_meeting", "forward_pe", "price_to_forward_earnings", "realized_volatility", "after_hours_change",
              "expected_return_next_year", "exit_polls", "future_orders"],
)  # fmt: skip
def test_a_field_that_was_known_before_is_a_fact(field):
    rows = f"m1,A,{field},0.1,ratio,2026-05-01T20:00:00Z\n"
    (context,) = imported(f=FACTS + rows).contexts.values()
    assert field in [fact.field for fact in context.facts]


def test_an_agent_of_two_families_is_left_out_and_told_once():
    rows = HEAD + ONE + ONE.replace("r1", "r2").replace("acme", "bolt") + ONE.replace("r1", "r3") + TWO
    with pytest.raises(InputError, match="is of two families") as caught:
        imported(d=rows)
    (problem,) = caught.value.problems
    assert str(problem) == (
        "d.csv line 3, maker: 'alpha' is of two families (got 'bolt', and 'acme' at d.csv line 2); "
        "an agent has one in all of its decisions"
    )
    result = imported(d=rows, keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta"]
    assert (result.report.bad, result.report.counts["outcomes of decisions that were left out"]) == (3, 1)


def test_a_decision_with_a_second_prompt_is_left_out():
    text = MAP.replace('facts = "f.csv"\noutcomes = "o.csv"\n', "").replace('risk = ["risks"]', "")
    text = text.replace('weight = "size"', 'prompt = "risks"').replace('instrument = "ticker"\n', "")
    rows = HEAD + ONE + TWO.replace("cheap.,", "cheap.,B may fall.")
    result = imported(map=text, d=rows, keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["alpha"]
    assert result.report.bad == 1


def test_an_outcome_told_twice_or_with_a_problem_is_refused_and_not_kept():
    told = OUTCOMES + "alpha,r1,one week,0.03\nalpha,r1,one month,0.05\n"
    said = r"o\.csv line 4, horizon: a second outcome of 'r1/alpha' for 'one week' \(fir"
    with pytest.raises(InputError, match=said):
        imported(o=told)
    result = imported(o=told, keep_going=True)
    assert [(o.horizon, o.value) for o in result.outcomes] == [("one month", 0.05)]
    text = MAP + '[outcomes]\nresolved_at = "when"\n'
    told = "agent,episode,horizon,value,when\nalpha,r1,one week,0.02,noon\n"
    assert imported(map=text, o=told, keep_going=True).outcomes == ()
    # that of a replicate is its own
    text = MAP.replace('confidence = "sure"', 'replicate = "sure"') + '[outcomes]\nreplicate = "run"\n'
    rows = HEAD + ONE.replace("0.6", "1") + ONE.replace("0.6", "2")
    told = "agent,episode,run,horizon,value\nalpha,r1,1,one week,0.1\nalpha,r1,2,one week,0.2\n"
    result = imported(map=text, d=rows, o=told)
    assert [(o.record_id, o.value) for o in result.outcomes] == [("r1/alpha", 0.1), ("r1/alpha/r2", 0.2)]


def test_two_values_for_one_cell_are_refused_and_told_once():
    more = "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\nm1,A,growth,0.08,ratio,2026-05-01T20:00:00Z\n"
    with pytest.raises(InputError, match="two values") as caught:
        imported(f=FACTS + more)
    (problem,) = caught.value.problems
    assert str(problem).startswith(
        "f.csv line 5, value: two values for growth of A in 'm1' (got '0.07 ratio', and '0.04 ratio' at f.csv line 2)"
    )
    again = "m1,A,growth,0.04,ratio,2026-05-01T20:00:00Z\n"
    texts = "".join(f"m1,A,headline,{word},text,2026-05-01T20:00:00Z\n" for word in ("one", "two"))
    assert imported(f=FACTS + again + texts).report.counts["facts"] == 5
    # a cell has a value for each day
    rows = (
        "context,instrument,field,value,unit,available_at,day\n"
        "m1,A,price,1,usd,2026-05-01T20:00:00Z,2026-04-30T00:00:00Z\n"
        "m1,A,price,2,usd,2026-05-01T20:00:00Z,2026-05-01T00:00:00Z\n"
    )
    assert imported(map=MAP + '[facts]\nas_of = "day"\n', f=rows).report.counts["facts"] == 2


@pytest.mark.parametrize("weight", ["60", "-60", "10.5"])
def test_a_weight_beyond_leverage_is_refused_with_advice(weight):
    said = rf"size: must be a finite number from -10 to 10 \(got '{weight}'\); if your weights are in percent, say "
    with pytest.raises(InputError, match=said):
        imported(d=HEAD + ONE.replace("0.5", weight))
    percent = MAP.replace('version = "1"', 'weight_unit = "percent"')
    decision, *_ = imported(map=percent, d=HEAD + ONE.replace("0.5", weight) + TWO).decisions
    assert decision.actions[0].weight == float(weight) / 100


def test_weights_that_add_up_beyond_leverage_are_refused():
    text = MAP.replace('instrument = "ticker"\nweight = "size"\n', "").replace('confidence = "sure"\n', "")
    text += '[weights]\nsure = "A"\nsize = "B"\n'
    row = ONE.replace("0.6", "-6").replace("0.5", "6")
    with pytest.raises(
        InputError, match=r"line 2: weights of 12 times net asset value \(allowed at most 10\); if your"
    ):
        imported(map=text, d=HEAD + row)


def test_a_record_without_text_to_judge_says_so():
    result = imported(d=HEAD + ONE + TWO.replace("B is cheap.", ""))
    assert [d.missing for d in result.decisions] == [(), ("text",)]
    assert result.report.no_text == ("r1/beta",)


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ("", "d.csv: empty: a header row is needed"), (HEAD, "d.csv: holds no decision: no row below the header"),
        (HEAD + "x,y\n", "d.csv line 2: has 2 cells (the header has 10)"),
        (HEAD.replace("why", "thesis") + ONE + TWO, "d.csv: no column 'why' (got round, at, agent, maker, seen, "),
    ],
)  # fmt: skip
def test_an_unreadable_decisions_file_is_one_problem(rows, cause):
    with pytest.raises(InputError, match=r"d\.csv") as caught:
        imported(d=rows)
    (problem,) = caught.value.problems
    assert str(problem).startswith(cause)


def test_a_future_fact_is_told_once_for_all_its_decisions():
    rows = HEAD + "".join(ONE.replace("alpha", f"a{n}").replace("05-04", "04-04") for n in range(5))
    with pytest.raises(InputError, match="a fact from the future") as caught:
        imported(d=rows, f=FACTS.partition("m1,,")[0], o=OUTCOMES.replace("alpha", "a1").replace("beta", "a2"))
    (problem,) = caught.value.problems
    assert str(problem) == (
        "f.csv line 2, growth: a fact from the future: available 2026-05-01T20:00:00+00:00, used by the decision of "
        "2026-04-04T13:30:00+00:00 (d.csv line 2) and 4 more"
    )


def test_decisions_whose_facts_were_refused_are_told_once():
    with pytest.raises(InputError, match="2 decisions") as caught:
        imported(f=FACTS.replace("available_at", "when"))
    assert [str(p).partition(" (")[0] for p in caught.value.problems] == [
        "f.csv: no column 'available_at'",
        "d.csv: 2 decisions without a context: no prompt, and their facts were refused or without value",
    ]


def test_outcomes_of_decisions_left_out_are_counted_and_others_named():
    told = OUTCOMES + "nobody,r1,one week,0.1\n"
    result = imported(d=HEAD + ONE.replace("0.6", "6") + TWO, o=told, keep_going=True)
    assert problems(result.report).splitlines()[1:] == [
        "o.csv line 4: an outcome of no imported decision (got episode 'r1', agent 'nobody')"
    ]
    assert result.report.counts["outcomes of decisions that were left out"] == 1
    # beside unreadable decisions they are told together
    result = imported(d=HEAD + "x,y\n" + TWO, o=told, keep_going=True)
    assert problems(result.report).endswith(
        "\no.csv line 2: 2 outcomes of no imported decision (the first has episode 'r1', agent 'alpha'); "
        "1 rows of d.csv were unreadable"
    )
    assert len(result.report.problems) == 2


RULED = COMPLETE.replace('facts = "f.csv"', 'facts = "f.csv"\nconstraints = "c.csv"') + '[constraints]\nscope = "on"\n'
RULES = (
    "context,kind,limit,unit,on\nm1,max_weight,0.5,nav,holding\nm1,max_holdings,5,count,\nm2,max_holdings,9,count,\n"
)


def test_constraints_are_part_of_their_context():
    contexts, _ = seen(**{"map.toml": RULED, "c.csv": RULES})
    context = contexts["r1/alpha"]
    assert [(c.kind, c.limit, c.unit, c.scope) for c in context.constraints] == [
        ("max_weight", 0.5, "nav", "holding"), ("max_holdings", 5.0, "count", "portfolio"),
    ]  # fmt: skip
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
        imported(map=RULED, f=WHOLE, c=RULES + row)
    contexts, _ = seen(**{"map.toml": RULED, "c.csv": RULES + row})
    assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}


def test_constraints_are_no_place_for_outcomes():
    with pytest.raises(InputError, match=r"files\.constraints: 'outcomes\.csv' names outcomes"):
        parse_map(RULED.replace("c.csv", "outcomes.csv"))
    with pytest.raises(InputError, match=r"c\.csv: no column 'limit'"):
        imported(map=RULED, c=RULES.replace("limit", "bound"))


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
        CELL_ONE + CELL_TWO + cell(ONE, "paraphrase") + cell(TWO, "cell_b", known="5")
        + cell(TWO, "fact_flip", "r1/beta")
    )  # fmt: skip
    result = imported(map=CELL_MAP, d=CELL_HEAD + rows)
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
        imported(map=CELL_MAP, d=CELL_HEAD + CELL_ONE + CELL_TWO + row)
    kept = imported(map=CELL_MAP, d=CELL_HEAD + CELL_ONE + CELL_TWO + row, keep_going=True)
    assert [d.record_id for d in kept.decisions] == ["r1/alpha", "r1/beta"]


LATE = "A,growth,0.1,ratio,2026-05-01T20:00:00Z\n"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"f.csv": f"{FACTS}m3,{LATE}m3,{LATE}"},
            "f.csv line 5, context: no decision saw this (2 rows): unknown context 'm3'. Known: m1",
        ),
        (
            {"map.toml": RULED, "c.csv": "context,kind,limit,unit,on\nm1,cap,1,ratio,\nzz,cap,1,ratio,\n"},
            "c.csv line 3, context: no decision saw this (1 rows): unknown context 'zz'. Known: m1",
        ),
    ],
)
def test_material_of_a_context_that_no_decision_names_is_a_problem(changes, says):
    with pytest.raises(InputError) as caught:
        import_generic(files(**changes))
    assert [str(one) for one in caught.value.problems] == [says]
    kept = import_generic(files(**changes), keep_going=True)
    assert (len(kept.decisions), [str(one) for one in kept.report.problems]) == (2, [says])


def test_material_of_decisions_that_have_a_problem_of_their_own_is_no_further_one():
    other = ONE.replace("m1", "m3").replace("r1", "r2").replace("2026-05-04", "someday")
    facts = f"{FACTS}m3,{LATE}"
    report = imported(d=HEAD + ONE + TWO + other, f=facts, keep_going=True).report
    assert [str(one).partition(":")[0] for one in report.problems] == ["d.csv line 4, at"]
