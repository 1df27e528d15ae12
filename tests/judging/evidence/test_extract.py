"""Numbers in prose: what is one, what only looks like one, and in which unit it was printed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging.evidence import extract_numbers

UNITS = [
    ("up 4.5%", [(4.5, "percent")]),
    ("up 4.5 percent", [(4.5, "percent")]),
    ("by 3.45 percentage points", [(3.45, "percent")]),
    ("by 3.3 points", [(3.3, "percent")]),
    ("lost 300 points", [(300.0, "none")]),
    ("cut by 25 bps", [(25.0, "bps")]),
    ("a 25-basis-point cut", [(25.0, "bps")]),
    ("at $91.01", [(91.01, "usd")]),
    ("a $1.5T budget", [(1.5e12, "usd")]),
    ("payrolls of 115k", [(115_000.0, "count")]),
    ("2.0 million barrels", [(2e6, "count")]),
    ("exports of 16.1 mb/d", [(16.1e6, "count")]),
    ("trades at 5.4x", [(5.4, "multiple")]),
    ("beta .18", [(0.18, "none")]),
    ("closed at 7,757.64", [(7757.64, "none")]),
    ("rates at 3.5-3.75%", [(3.5, "percent"), (3.75, "percent")]),
    ("from 3.50% to 3.75%", [(3.5, "percent"), (3.75, "percent")]),
    ("between 2 and 3%", [(2.0, "percent"), (3.0, "percent")]),
    ("low/base/high -2.0/1.0/3.0%", [(-2.0, "percent"), (1.0, "percent"), (3.0, "percent")]),
    ("$70–75", [(70.0, "usd"), (75.0, "usd")]),
    ("$1.2-1.5B", [(1.2e9, "usd"), (1.5e9, "usd")]),
    ("down −3.2%", [(-3.2, "percent")]),
    ("down –2%", [(-2.0, "percent")]),
    ("SMH-12.5%", [(12.5, "percent")]),
    ("$-7.6B and -$7.6B", [(-7.6e9, "usd"), (-7.6e9, "usd")]),
    ("上涨3.5%", [(3.5, "percent")]),
    ("1.4M barrels", [(1.4e6, "count")]),
    ("３.１％", [(3.1, "percent")]),
    ("－１，２００ and ＋１．５％", [(-1200.0, "none"), (1.5, "percent")]),
    ("3,1 % and 5,12%", [(3.1, "percent"), (5.12, "percent")]),
    ("3,125 %", [(3125.0, "percent")]),
    ("Briar的21日回报率为3.1%", [(3.1, "percent")]),
]


@pytest.mark.parametrize(("text", "expected"), UNITS, ids=[text for text, _ in UNITS])
def test_units_signs_scales_and_ranges(text, expected):
    found = [(number.value, number.unit) for number in extract_numbers(text)]
    assert found == [(pytest.approx(value), unit) for value, unit in expected]


NOT_NUMBERS = [
    "on Aug 7-8 and July 28 and 29, 2026",
    "12 August, 2026-08-10T10:00:00Z, 8:30 a.m., 6/17, 7/17/2026",
    "Q3 FY27, 2Q26, H2 2026, fiscal 2027, 3Q",
    "S&P 500, S&P500, Russell 2000, Nasdaq 100, Nikkei 225, FTSE 100, NASDAQ-100",
    "30d, 52-week, 63-session, 10-year, 21 trading days, 6M, 1-3 years, 21- and 63-day, 10yr",
    "7d/30d, 2s10s, 5y5y",
    "COVID-19, F-35, GPT-5, H100, 10-K, Section 232, v2.2, 5G, HBM4",
    "\n1. first\n2) second\n[3] third",
    "the 3rd and 80th, #1, top 3",
    "return_5s and prior_16s_active",
    "version 1.2.3",
    "30日",
    "21个交易日, 3个月, 2025年3月2日",
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_dates_horizons_names_and_identifiers_are_no_numbers(text):
    assert extract_numbers(text) == []


def test_the_second_horizon_of_a_list_needs_no_unit_word():
    assert [n.value for n in extract_numbers("+1.10% over 5 sessions, +0.17% over 21; next")] == [1.10, 0.17]


def test_a_number_after_a_horizon_keeps_its_sign():
    assert [(n.quote, n.value) for n in extract_numbers("IAU 5d +0.72% but 21d -3.16%")] == [
        ("+0.72%", 0.72),
        ("-3.16%", -3.16),
    ]


def test_a_bare_integer_is_marked():
    assert [(n.value, n.bare) for n in extract_numbers("245 advancing, 1,200 falling, +3 net, 7 %")] == [
        (245.0, True),
        (1200.0, False),
        (3.0, False),
        (7.0, False),
    ]


def test_precision_is_the_worth_of_the_last_printed_digit():
    found = extract_numbers("4.60%, 57k, 2.0 million, 7,509")
    assert [n.step for n in found] == [pytest.approx(step) for step in (0.01, 1000.0, 1e5, 1.0)]


def test_digit_strings_beyond_any_measure_are_identifiers():
    assert extract_numbers("order 12345678901234567890") == []
    assert [n.value for n in extract_numbers("0.02354818566571848233")] == [pytest.approx(0.0235481856657)]
    assert extract_numbers("0." + "1" * 26) == []


def test_mangled_separators_do_not_raise():
    assert [n.value for n in extract_numbers("1,2345 and 5,12% and 1,,2 and ..5")] == [1.0, 5.12, 1.0, 2.0, 0.5]


ALPHABET = st.sampled_from([*"0123456789.,-+−–$%xkMBT/() abcSPmd\n:年%", "bps", "million", "Aug ", "to ", "and "])


@given(st.lists(ALPHABET, max_size=80).map("".join))
def test_offsets_quote_the_text(text):
    last = 0
    for number in extract_numbers(text):
        assert text[number.start : number.end] == number.quote
        assert number.start >= last
        assert math.isfinite(number.value)
        assert number.step > 0
        last = number.end


@given(st.text(max_size=200))
def test_any_text_is_read(text):
    for number in extract_numbers(text):
        assert text[number.start : number.end] == number.quote


@given(st.integers(0, 10**7), st.integers(0, 6), st.sampled_from(["", "+", "-", "−"]))
def test_what_is_printed_is_read_back(digits, decimals, sign):
    size = digits / 10**decimals
    (number,) = extract_numbers(f"return {sign}{size:,.{decimals}f}% today")
    assert abs(number.value) == pytest.approx(size)
    assert number.decimals == decimals
    assert number.signed == bool(sign)
    assert (number.value < 0) == (sign in ("-", "−") and digits > 0)
