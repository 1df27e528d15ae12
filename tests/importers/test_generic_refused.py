"""The generic importer: rejected and left-out records, each reported once; constraints, and control cells."""

from __future__ import annotations

import pytest
from generic_files import ALONE, COMPLETE, FACTS, HEAD, MAP, ONE, OUTCOMES, TWO, WHOLE, imported, refused, seen

from assaymark.errors import InputError
from assaymark.importers import parse_map


def told(report) -> list[str]:
    return [str(one) for one in report.problems]


def test_a_field_that_names_an_outcome_is_refused_once_and_one_that_was_known_before_is_a_fact():
    for field in ("exit_price", "realized_return_1w", "outcome_7d", "return_after_1w", "Fwd Return"):
        rows = "".join(f"m1,{name},{field},0.1,ratio,2026-05-01T20:00:00Z\n" for name in "ABC")
        (said,) = refused("outcome offered as context", f=FACTS + rows)
        assert said.startswith(f"f.csv line 5, field: outcome offered as context: {field!r} names what happened")
        assert "(3 rows); give it in files.outcomes" in said
    for field in ("next_meeting", "forward_pe", "price_to_forward_earnings", "realized_volatility",
                  "after_hours_change", "expected_return_next_year", "exit_polls", "future_orders"):  # fmt: skip
        (context,) = imported(f=f"{FACTS}m1,A,{field},0.1,ratio,2026-05-01T20:00:00Z\n").contexts.values()
        assert field in [fact.field for fact in context.facts]


def test_an_outcome_by_the_name_of_its_file_or_column_or_by_its_day_is_never_a_fact_or_a_text():
    said = r"'exit_prices\.csv' names outcomes; give it in files\.outcomes"
    refused(said, map=MAP.replace("f.csv", "exit_prices.csv"), **{"exit_prices.csv": FACTS})
    disguised = '[facts]\ncontext = "round"\ninstrument = "option_id"\nfield = "symbol"\nvalue = "close"\n'
    disguised = f'{MAP}{disguised}unit = "source"\navailable_at = "date"\n'
    prices = "round,option_id,symbol,date,close,source\nm1,GOLD,IAU,2026-06-10,76.79,price\n"
    refused(r"date: dated 2026-06-10, after the decision .* an outcome is never context", map=disguised, f=prices)
    head, _, rest = FACTS.partition("\n")

    def with_column(name, cell):
        return "\n".join([f"{head},{name}", *(f"{line},{cell}" for line in rest.splitlines()), ""])

    for column in ("outcome", "return_after_1w", "exit_price", "fwd_return", "realized_pnl"):
        refused(f"column '{column}' names an outcome; outcomes are declared", f=with_column(column, 1))
        with pytest.raises(InputError, match=f"column '{column}' names an outcome"):
            parse_map(MAP.replace('"why"', f'"{column}"'))
    said = r"day: dated 2026-05-11, after the decision .*an outcome is never context"
    refused(said, f=with_column("day", "2026-05-11"))


def test_an_agent_of_two_families_and_a_decision_with_a_second_prompt_are_left_out():
    rows = HEAD + ONE + ONE.replace("r1", "r2").replace("acme", "bolt") + ONE.replace("r1", "r3") + TWO
    for name in ("Alpha", '"alpha "', "ＡＬＰＨＡ"):  # blinding and readers would take them for one agent
        refused("and 'alpha' differ in case, spaces or encoding alone", d=HEAD + ONE + TWO.replace("beta", name))
    (said,) = refused("is of two families", d=rows)
    assert said == (
        "d.csv line 3, maker: 'alpha' is of two families (got 'bolt', and 'acme' at d.csv line 2); "
        "an agent has one in all of its decisions"
    )
    result = imported(d=rows, keep_going=True)
    assert [d.agent.id for d in result.decisions] == ["beta"]
    assert (result.report.bad, result.report.counts["outcomes of decisions that were left out"]) == (3, 1)
    text = ALONE.replace('risk = ["risks"]', "").replace('weight = "size"', 'prompt = "risks"')
    rows = HEAD + ONE + TWO.replace("cheap.,", "cheap.,B may fall.")
    result = imported(map=text.replace('instrument = "ticker"\n', ""), d=rows, keep_going=True)
    assert ([d.agent.id for d in result.decisions], result.report.bad) == (["alpha"], 1)


def test_an_outcome_told_twice_or_with_a_problem_is_refused_and_not_kept():
    twice = OUTCOMES + "alpha,r1,one week,0.03\nalpha,r1,one month,0.05\n"
    refused(r"o\.csv line 4, horizon: a second outcome of 'r1/alpha' for 'one week' \(fir", o=twice)
    result = imported(o=twice, keep_going=True)
    assert [(o.horizon, o.value) for o in result.outcomes] == [("one month", 0.05)]
    noon = "agent,episode,horizon,value,when\nalpha,r1,one week,0.02,noon\n"
    assert imported(map=MAP + '[outcomes]\nresolved_at = "when"\n', o=noon, keep_going=True).outcomes == ()
    # that of a replicate is its own
    text = MAP.replace('confidence = "sure"', 'replicate = "sure"') + '[outcomes]\nreplicate = "run"\n'
    rows = HEAD + ONE.replace("0.6", "1") + ONE.replace("0.6", "2")
    runs = "agent,episode,run,horizon,value\nalpha,r1,1,one week,0.1\nalpha,r1,2,one week,0.2\n"
    result = imported(map=text, d=rows, o=runs)
    assert [(o.record_id, o.value) for o in result.outcomes] == [("r1/alpha", 0.1), ("r1/alpha/r2", 0.2)]


def test_two_values_for_one_cell_are_refused_and_told_once():
    more = "m1,A,growth,0.07,ratio,2026-05-01T20:00:00Z\nm1,A,growth,0.08,ratio,2026-05-01T20:00:00Z\n"
    (said,) = refused("two values", f=FACTS + more)
    assert said.startswith(
        "f.csv line 5, value: two values for growth of A in 'm1' (got '0.07 ratio', and '0.04 ratio' at f.csv line 2)"
    )
    again = "m1,A,growth,0.04,ratio,2026-05-01T20:00:00Z\n"
    texts = "".join(f"m1,A,headline,{word},text,2026-05-01T20:00:00Z\n" for word in ("one", "two"))
    assert imported(f=FACTS + again + texts).report.counts["facts"] == 5
    # a cell has a value for each day
    rows = "context,instrument,field,value,unit,available_at,day\n" + "".join(
        f"m1,A,price,{n},usd,2026-05-01T20:00:00Z,{day}T00:00:00Z\n"
        for n, day in ((1, "2026-04-30"), (2, "2026-05-01"))
    )
    assert imported(map=MAP + '[facts]\nas_of = "day"\n', f=rows).report.counts["facts"] == 2


def test_weights_beyond_leverage_are_refused_with_advice():
    percent = MAP.replace('version = "1"', 'weight_unit = "percent"')
    for weight in ("60", "-60", "10.5"):
        rows = HEAD + ONE.replace("0.5", weight) + TWO
        said = rf"size: must be a finite number from -10 to 10 \(got '{weight}'\); if your weights are in percent, say "
        refused(said, d=rows)
        assert imported(map=percent, d=rows).decisions[0].actions[0].weight == float(weight) / 100
    text = MAP.replace('instrument = "ticker"\nweight = "size"\n', "").replace('confidence = "sure"\n', "")
    row = HEAD + ONE.replace("0.6", "-6").replace("0.5", "6")
    said = r"line 2: weights of 12 times net asset value \(allowed at most 10\); if your"
    refused(said, map=text + '[weights]\nsure = "A"\nsize = "B"\n', d=row)


def test_an_unreadable_decisions_file_is_one_problem_and_a_record_without_text_to_judge_says_so():
    for rows, cause in (
        ("", "d.csv: empty: a header row is needed"), (HEAD, "d.csv: contains no decision: no row below the header"),
        (HEAD + "x,y\n", "d.csv line 2: has 2 cells (the header has 10)"),
        (HEAD.replace("why", "thesis") + ONE + TWO, "d.csv: no column 'why' (got round, at, agent, maker, seen, "),
    ):  # fmt: skip
        (said,) = refused(r"d\.csv", d=rows)
        assert said.startswith(cause)
    result = imported(d=HEAD + ONE + TWO.replace("B is cheap.", ""))
    assert [d.missing for d in result.decisions] == [(), ("text",)]
    assert result.report.no_text == ("r1/beta",)


def test_what_concerns_many_decisions_is_told_once():
    rows = HEAD + "".join(ONE.replace("alpha", f"a{n}").replace("05-04", "04-04") for n in range(5))
    facts, outcomes = FACTS.partition("m1,,")[0], OUTCOMES.replace("alpha", "a1").replace("beta", "a2")
    (said,) = refused("a fact from the future", d=rows, f=facts, o=outcomes)
    assert said == (
        "f.csv line 2, growth: a fact from the future: available 2026-05-01T20:00:00+00:00, used by the decision of "
        "2026-04-04T13:30:00+00:00 (d.csv line 2) and 4 more"
    )
    said = refused("2 decisions", f=FACTS.replace("available_at", "when"))
    assert [one.partition(" (")[0] for one in said] == [
        "f.csv: no column 'available_at'",
        "d.csv: 2 decisions without a context: no prompt, and their facts were refused or without value",
    ]
    outcomes = OUTCOMES + "nobody,r1,one week,0.1\n"
    report = imported(d=HEAD + ONE.replace("0.6", "6") + TWO, o=outcomes, keep_going=True).report
    assert told(report)[1:] == ["o.csv line 4: an outcome of no imported decision (got episode 'r1', agent 'nobody')"]
    assert report.counts["outcomes of decisions that were left out"] == 1
    # beside unreadable decisions outcomes of no decision are told together
    report = imported(d=HEAD + "x,y\n" + TWO, o=outcomes, keep_going=True).report
    _, said = told(report)
    assert said == (
        "o.csv line 2: 2 outcomes of no imported decision (the first has episode 'r1', agent 'alpha'); "
        "1 rows of d.csv were unreadable"
    )


RULED = COMPLETE.replace('facts = "f.csv"', 'facts = "f.csv"\nconstraints = "c.csv"') + '[constraints]\nscope = "on"\n'
RULES = (
    "context,kind,limit,unit,on\nm1,max_weight,0.5,nav,holding\nm1,max_holdings,5,count,\nm2,max_holdings,9,count,\n"
)


def test_constraints_are_part_of_their_context_and_no_place_for_outcomes():
    context = seen(map=RULED, c=RULES)[0]["r1/alpha"]
    assert [(c.kind, c.limit, c.unit, c.scope) for c in context.constraints] == [
        ("max_weight", 0.5, "nav", "holding"), ("max_holdings", 5.0, "count", "portfolio"),
    ]  # fmt: skip
    assert context.completeness == "complete"
    with pytest.raises(InputError, match=r"files\.constraints: 'outcomes\.csv' names outcomes"):
        parse_map(RULED.replace("c.csv", "outcomes.csv"))
    refused(r"c\.csv: no column 'limit'", map=RULED, c=RULES.replace("limit", "bound"))
    for row, said, lost in (
        ("m1,max_loss,,nav,\n", r"c\.csv line 5, limit: is empty", "constraint max_loss: refused"),
        ("m1,max_loss,low,nav,\n", r"c\.csv line 5, limit: must be a finite number", "constraint max_loss: refused"),
        ("m1,,1,nav,\n", r"c\.csv line 5, kind: is empty", "constraint (unnamed): refused"),
        ("m1,max_holdings,6,count,\n", r"two values for max_holdings in 'm1'", "constraint max_holdings: two values"),
    ):
        refused(said, map=RULED, f=WHOLE, c=RULES + row)
        contexts, _ = seen(map=RULED, c=RULES + row)
        assert {(c.completeness, c.missing) for c in contexts.values()} == {("partial", (lost,))}


def test_a_map_is_refused_in_our_words():
    for text, said in (
        (MAP + f"x = {'1' * 5000}\n", r"map\.toml: not TOML: a number with too many digits"),
        (MAP + f"x = {'[' * 9999}\n", r"map\.toml: not TOML: .* or tables too deep"),
        (MAP.replace('"why"', '"exit_text"'), r"^(?!.*got)map\.toml: column 'exit_text' names an outcome: wh"),
        (MAP.replace('version = "1"', 'weight_unit = "bps"'),
         r"weight_unit: must be 'fraction' or 'percent' \(got 'bps'\)"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            parse_map(text)


CELL_MAP = MAP.replace(
    'size"', 'size"\nderivation = "made"\nparent = "of"\n[known_scores]\nsizing = "position_sizing"', 1
)
CELLS = HEAD.replace("\n", ",made,of,sizing\n") + (ONE + TWO).replace("\n", ",,,\n")


def cell(row: str, made: str, parent: str = "", known: str = "") -> str:
    return row.replace("\n", f",{made},{parent},{known}\n")


def test_control_cells_are_records_of_their_own_beside_the_honest_ones():
    rows = cell(ONE, "paraphrase") + cell(TWO, "cell_b", known="5") + cell(TWO, "fact_flip", "r1/beta")
    result = imported(map=CELL_MAP, d=CELLS + rows)
    made = {d.record_id: (d.derivation.kind, d.derivation.parent) for d in result.decisions}
    assert made == {
        "r1/alpha": ("honest", None), "r1/beta": ("honest", None), "r1/alpha~paraphrase": ("paraphrase", "r1/alpha"),
        "r1/beta~cell_b": ("cell_b", None), "r1/beta~fact_flip": ("fact_flip", "r1/beta"),
    }  # fmt: skip
    assert result.decisions[3].derivation.known_scores == {"position_sizing": 5.0}
    assert {o.record_id for o in result.outcomes} == {"r1/alpha"}


@pytest.mark.parametrize(("row", "says"), [
    (cell(ONE, "cell_c"), r"line 4, made: must be one of honest, cell_a.*got 'cell_c'"),
    (cell(ONE, "paraphrase", "r9/alpha"), r"line 4, of: made from an honest record that was not imported .*r9/alpha"),
    (cell(ONE, "cell_b", known="6"), r"line 4, sizing: .*6"),
    (cell(ONE.replace("r1", "r2", 1), "honest", known="4"), r"line 4, sizing: an honest record has no known score"),
])  # fmt: skip
def test_a_wrong_control_cell_is_named(row, says):
    refused(says, map=CELL_MAP, d=CELLS + row)
    kept = imported(map=CELL_MAP, d=CELLS + row, keep_going=True)
    assert [d.record_id for d in kept.decisions] == ["r1/alpha", "r1/beta"]


LATE = "A,growth,0.1,ratio,2026-05-01T20:00:00Z\n"


def test_material_of_a_context_that_no_decision_names_is_a_problem_unless_its_decision_has_one():
    for changes, says in (
        ({"f": f"{FACTS}m3,{LATE}m3,{LATE}"},
         "f.csv line 5, context: no decision saw this (2 rows): unknown context 'm3'. Known: m1"),
        ({"map": RULED, "c": "context,kind,limit,unit,on\nm1,cap,1,ratio,\nzz,cap,1,ratio,\n"},
         "c.csv line 3, context: no decision saw this (1 row): unknown context 'zz'. Known: m1"),
    ):  # fmt: skip
        assert refused(".", **changes) == [says]
        kept = imported(**changes, keep_going=True)
        assert (len(kept.decisions), told(kept.report)) == (2, [says])
    other = ONE.replace("m1", "m3").replace("r1", "r2").replace("2026-05-04", "someday")
    report = imported(d=HEAD + ONE + TWO + other, f=f"{FACTS}m3,{LATE}", keep_going=True).report
    assert [one.partition(":")[0] for one in told(report)] == ["d.csv line 4, at"]
