"""What is rendered reads back: the reference judges lose nothing on the way."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from judged_records import CUTOFF, INSTRUMENTS, context, decision, fact

from assaymark.judging.prompts import decision_blocks, read_decision
from assaymark.prompting.context import material_blocks, read_material
from assaymark.prompting.fences import fence, sections
from assaymark.prompting.texts import judged_rationales
from assaymark.records import Action, Context, Fact, Instrument, Series
from assaymark.text import code_points


def prompt(blocks: list[tuple[str, str]]) -> str:
    return "\n\n".join(fence(label, content) for label, content in blocks)


def back(one: Context) -> Context:
    return read_material(sections(prompt(material_blocks(one))))


def plain(facts: tuple[Fact, ...]) -> set[tuple[object, ...]]:
    return {(f.instrument, f.field, f.value, f.unit, f.as_of, f.source, f.note) for f in facts}


def test_a_context_reads_back():
    one, read = context(profile="Balanced"), back(context(profile="Balanced"))
    for name in ("completeness", "cutoff", "prompt", "series", "instruments", "portfolio", "constraints", "profile"):
        assert getattr(read, name) == getattr(one, name), name
    assert plain(read.facts) == plain(one.facts)
    assert len({fact.id for fact in read.facts}) == len(one.facts)


def test_an_empty_context_reads_back():
    one = Context(completeness="complete", cutoff=CUTOFF, cutoff_source="", prompt="")
    assert replace(back(one), cutoff_source="") == one


words = st.text(max_size=12).map(code_points)  # as prompts show them
numbers = st.floats(allow_nan=False, allow_infinity=False)
made_facts = st.builds(
    lambda instrument, field, value, unit, as_of, source, note: fact(
        "f", instrument, field, value, unit, as_of=as_of, source=source, note=note
    ),
    st.sampled_from(["ENERGY", "GOLD", "", "table", "note", "a\tb"]),
    st.sampled_from(["return_5d", "x [y]", "fact", "\\t"]),
    numbers | words,
    st.sampled_from(["ratio", "percent", "text", "]"]),
    st.sampled_from([None, CUTOFF, CUTOFF - timedelta(days=1)]),
    st.sampled_from(["table.csv", "", "s\n"]),
    st.sampled_from(["", "", "A sentence.", "> two\nlines"]),
)


@settings(max_examples=60)
@given(st.lists(made_facts, max_size=12))
def test_any_facts_read_back_with_every_digit(made):
    assert sorted(map(repr, plain(back(context(facts=tuple(made))).facts))) == sorted(map(repr, plain(tuple(made))))


def test_a_dense_table_is_written_as_one_and_shorter_for_it():
    text = dict(material_blocks(context()))["facts"]
    assert text.splitlines()[1].split("\t") == [
        "instrument", "return_5d [ratio]", "return_30d [ratio]", "volatility_30d [ratio]",
    ]  # fmt: skip
    assert text.count("The ten-year yield closed") == 1


def test_a_note_that_a_column_shares_is_written_once():
    made = tuple(
        fact(f"{name}.{days}", name, f"return_{days}d", 0.01 * days + at, note=f"since day {days}")
        for at, name in enumerate(("ENERGY", "GOLD", "BILLS", "ALPHABET"))
        for days in (5, 30)
    )
    odd = (fact("odd", "GOLD", "return_5d", 0.5, note="as of a Sunday"), fact("plain", "GOLD", "price", 3.0))
    one = context(facts=(*made, *odd))
    text = dict(material_blocks(one))["facts"]
    assert text.splitlines()[:4] == [
        "table\t4\ttable.csv\t2026-03-02T00:00:00Z\tnotes",
        "instrument\treturn_5d [ratio]\treturn_30d [ratio]\tprice [ratio]",
        "note\tsince day 5\tsince day 30\t",
        "ENERGY\t0.05\t0.3\t",
    ]
    assert plain(back(one).facts) == plain(one.facts)


def test_facts_that_would_leave_a_table_mostly_empty_are_listed():
    made = tuple(fact(f"f{n}", f"I{n}", f"field{n}", float(n)) for n in range(6))
    assert not re.search(r"^table\t", dict(material_blocks(context(facts=made)))["facts"], re.MULTILINE)


def test_full_bars_read_back():
    times = (CUTOFF - timedelta(minutes=1), CUTOFF)
    columns = dict.fromkeys(("open", "high", "low", "close"), (1.5, 2.25))
    bars = Series(instrument="BTC\t", interval_s=60, times=times, **columns)
    empty = Series(instrument="ETH", interval_s=60, times=(), close=())
    assert back(context(series=(bars, empty))).series == (bars, empty)


def test_instruments_without_names_read_back():
    bare = (Instrument(id="X"), *INSTRUMENTS)
    assert back(context(instruments=bare)).instruments == bare


def test_a_decision_reads_back():
    one = decision()
    shown = read_decision(sections(prompt(decision_blocks(one, ("ENERGY", "GOLD", "BILLS", "ALPHABET")))))
    assert shown.actions == one.actions
    assert shown.texts == judged_rationales(one)
    assert shown.confidence == 0.6
    assert shown.values["forecast.alpha_pct"] == 0.56
    assert shown.values["selected.2"] == "BILLS"
    assert shown.tables["candidates"] == (
        {"option_id": "ENERGY", "decision": "selected", "forecast_low_pct": -2.0, "forecast_high_pct": 4.0},
        {"option_id": "ALPHABET", "decision": "rejected", "forecast_low_pct": -3.0},
    )


def test_orders_read_back_with_all_their_numbers():
    order = Action(
        instrument="GOLD", kind="buy", quantity=2.0, price=60.5, leverage=1.0, stop=58.0, target=66.0, confidence=0.7
    )
    one = decision(actions=(order, Action(instrument="ENERGY", kind="no_trade")), stages={}, confidence=None)
    shown = read_decision(sections(prompt(decision_blocks(one))))
    assert shown.actions == one.actions
    assert (shown.confidence, shown.values, shown.tables) == (None, {}, {})


def test_a_confidence_that_the_venue_set_is_not_the_agents():
    shown = read_decision(sections(prompt(decision_blocks(decision(stages={"confidence_by": "arena"})))))
    assert shown.confidence is None


def test_of_structured_parts_only_numbers_and_known_words_are_shown():
    stages = {"run": "secret-run", "note": "I am Claude", "mixed": [1, {"deep": True}, None], "words": [{"a": "text"}]}
    text = dict(decision_blocks(decision(stages=stages)))["stated"]
    assert text == "value\tconfidence\t0.6\nvalue\tmixed.0\t1\nvalue\tmixed.1.deep\ttrue"
