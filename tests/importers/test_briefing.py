"""Numbers in briefings: values and units, and what only looks like one."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.importers import context_id
from assaymark.importers.capitalbench_rounds import briefing_facts, numbers_in, stated_cutoff
from assaymark.records import Context, Fact, Instrument, Series, content_id

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(("text", "expected"), [
    ("rose 0.4%", [(0.4, "percent")]), ("decreased 0.4%", [(-0.4, "percent")]),
    ("fell by 23,000", [(-23000, "count")]), ("fell to 4.1%", [(4.1, "percent")]),
    ("was 0.7% lower", [(-0.7, "percent")]), ("0.0%", [(0.0, "percent")]),
    ("-1.25%, +2%, −3%", [(-1.25, "percent"), (2, "percent"), (-3, "percent")]),
    ("down 1.0% for the session and 1.6% for the week", [(-1.0, "percent"), (-1.6, "percent")]),
    ("down 1.0% and the yield was 4.2%", [(-1.0, "percent"), (4.2, "percent")]),
    ("3.50%-3.75%", [(3.5, "percent"), (3.75, "percent")]), ("3.5 to 3.75%", [(3.5, "percent"), (3.75, "percent")]),
    ("a 25-basis-point rise, 8 bps", [(25, "bps"), (8, "bps")]), ("up 0.5 percentage points", [(0.5, "percent")]),
    ("$768.6 billion and $1.29T", [(768.6e9, "usd"), (1.29e12, "usd")]),
    ("NT$1,961.804 billion, €2.5 million, -$3", [(1961.804e9, "twd"), (2.5e6, "eur"), (-3, "usd")]),
    ("7.6 million openings", [(7.6e6, "count")]), ("21.1x earnings", [(21.1, "multiple")]),
    ("at 7,483.24, up 0.01 point", [(7483.24, "index"), (0.01, "index")]),
])  # fmt: skip
def test_values_and_units(text, expected):
    assert [(n.value, n.unit) for n in numbers_in(text)] == [(pytest.approx(v), u) for v, u in expected]


@pytest.mark.parametrize("text", [
    "July 28-29", "on July 17, 2026", "2026-06-10", "2026-06-16T00:10:00Z", "8:30 a.m. ET", "in 2026", "1972-2025",
    "Q1 2026", "the S&P 500", "Russell 2000", "Nasdaq 100", "Nikkei 225", "over 12 months", "52-week high",
    "200-DMA", "2-, 5-, 10-, and 30-year", "the 30th", "H.15", "G7", "COVID-19", "M2", "https://a.b/123?c=4", "7d",
    "no digits at all", "3-month", "a_7 b7c", "9" * 400,
])  # fmt: skip
def test_what_is_no_value(text):
    assert numbers_in(text) == ()


@given(st.text(max_size=120), st.floats(min_value=0.01, max_value=999, allow_nan=False).map(lambda x: round(x, 2)))
def test_any_text_is_read_places_are_true_and_a_planted_percentage_is_recovered(text, value):
    for number in numbers_in(text):
        assert 0 <= number.start < number.end <= len(text)
        assert math.isfinite(number.value)
    (number,) = numbers_in(f"Industrial output rose {value:.2f}% from April.")
    assert number.value == pytest.approx(value)


def facts(text: str, **options: str) -> list[Fact]:
    return list(briefing_facts(text, options, NOON))


def test_rows_are_about_an_option_where_they_name_its_id():
    head = "| option_id | symbol | as_of_price_date | return_7d |\n|---|---|---|---|\n"
    (fact,) = facts(f"{head}| GOLD | IAU | 2026-05-15 | -3.10% |\n", GOLD="GOLD", IAU="GOLD")
    assert (fact.instrument, fact.field, fact.value, fact.unit) == ("GOLD", "return_7d", -3.1, "percent")
    assert fact.note == "GOLD | IAU | 2026-05-15 | -3.10%"
    (fact,) = facts("| item | value | unit |\n|---|---|---|\n| Gold | 4,425.50 | USD per ounce |\n", GOLD="GOLD")
    assert (fact.instrument, fact.field, fact.unit) == ("", "Gold, value", "usd")
    text = "## 3 things\n\n**Core** fell \\-0.5%. The U.S. rate was 4%.\n\n| 7% | 8% |\n- 9%"
    found = [(f.id, f.value, f.field) for f in facts(text)]
    told = ((-0.5, "Core fell"), (4, "The U.S. rate was"), (8, "7%"), (9, "3 things"))
    assert found == [(f"b{n}", *one) for n, one in enumerate(told, 1)]
    assert facts(text)[1].note == "The U.S. rate was 4%."


@pytest.mark.parametrize(("cell", "unit", "value", "of"), [
    ("7.75", "$ trillion", 7.75e12, "usd"), ("172", "thousand", 172e3, "count"),
    ("830296", "USD millions", 830296e6, "usd"), ("0.6", "% MoM", 0.6, "percent"), ("25.9", "ratio", 25.9, "multiple"),
    ("12", "basis points", 12, "bps"), ("17.19", "index points", 17.19, "index"), ("5%", "index", 5, "percent"),
    ("34.3", "hours", 34.3, "index"),
])  # fmt: skip
def test_a_unit_column_gives_bare_numbers_their_unit(cell, unit, value, of):
    (fact,) = facts(f"| item | latest | unit |\n|---|---|---|\n| x | {cell} | {unit} |\n")
    assert (fact.value, fact.unit) == (pytest.approx(value), of)


@pytest.mark.parametrize(("text", "at"), [
    ("Research cutoff: July 17, 2026 at 10:15 UTC.", (7, 17, 10, 15)),
    ("Research cutoff: July 22, 2026 at 00:36:24 UTC", (7, 22, 0, 36, 24)),
    ("Research cutoff: 2026-08-07 09:00 UTC.", (8, 7, 9)),
    ("**Research cutoff:** 2026-08-11 09:14:14 UTC", (8, 11, 9, 14, 14)),
    ("Research cutoff: **2026-08-18T04:47:05Z**. Decision deadline: **2026-08-18T13:25:00Z**", (8, 18, 4, 47, 5)),
    ("| research cutoff | 2026-05-29T22:45:00Z |", (5, 29, 22, 45)),
    ("facts use public information available through 2026-07-03T06:47:08Z.", (7, 3, 6, 47, 8)),
    ("## 1. Research Cutoff\n\nSunday, May 17, 2026, at 2:01 AM America/Toronto.", (5, 17, 6, 1)),
    ("Research cutoff: 2026-05-17T02:01:00-04:00", (5, 17, 6, 1)),
    ("Research cutoff: May 17, 2026 at 12:30 PM UTC", (5, 17, 12, 30)),
    ("Decision deadline: 2026-08-18T13:25:00Z", None),
    ("Research cutoff: see below. Decision deadline: 2026-08-18T13:25:00Z", None),
    ("Research cutoff: 2026-08-18T13:25:00", None), ("Research cutoff: Smarch 13, 2026 at 10:00 UTC", None),
    ("Research cutoff: May 17, 2026 at 10:00 Middle/Earth", None), ("# Research cutoff", None),
    ("The survey cutoff was 2026-07-22T00:00:00Z", None),
])  # fmt: skip
def test_a_cutoff_in_its_many_forms_and_none_is_guessed(text, at):
    found = stated_cutoff(text)
    assert (found and found[0]) == (at and datetime(2026, *at, tzinfo=UTC))


TEXTS = st.text(max_size=20)
ROW = st.tuples(TEXTS, TEXTS, st.floats(allow_nan=False, allow_infinity=False) | TEXTS, TEXTS)


@given(st.lists(ROW, max_size=5), TEXTS)
def test_the_fast_name_of_a_context_is_its_content_id(rows, prompt):
    made = tuple(
        Fact(id=a, instrument=b, field=b, value=value, unit="ratio", available_at=NOON, note=note)
        for a, b, value, note in rows
    )
    funds = tuple(Instrument(id=a, name=b) for a, b, *_ in rows)
    bars = tuple(Series(instrument=a, interval_s=1, times=(NOON,), close=(1.5,)) for a, *_ in rows)
    seen = Context(completeness="partial", cutoff=NOON, cutoff_source="x", prompt=prompt + '"facts":[]', facts=made,
                   instruments=funds, series=bars)  # fmt: skip
    shared = {}
    for one in (seen, replace(seen, series=(), facts=made[::-1]), seen):
        assert context_id(one, shared, {}) == content_id(one)


@pytest.mark.parametrize("text", [
    "1 " * 8_000, "research cutoff " * 20_000, "# research cutoff\n" * 20_000, "1," * 40_000,
])  # fmt: skip
def test_an_endless_line_is_read_to_its_end(text):
    stated_cutoff(text)
    assert all(len(fact.note) <= 2000 for fact in facts(text))
