"""Numbers and names in prose: what is found, what is none, and texts that are hostile."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen import COMPLETE, INSTRUMENTS, PARTIAL, audit, built, decision, material, only

from assaymark.judging import evidence, numeric_ledger
from assaymark.judging.evidence.words import SpokenHorizons, canonical, index_subjects, words_of
from assaymark.records import Instrument, canonical_json

UNITS = {
    "percent": {
        "up 4.5%": [4.5], "up 4.5 percent": [4.5], "by 3.45 percentage points": [3.45], "by 3.3 points": [3.3],
        "rates at 3.5-3.75%": [3.5, 3.75], "from 3.50% to 3.75%": [3.5, 3.75], "between 2 and 3%": [2.0, 3.0],
        "low/base/high -2.0/1.0/3.0%": [-2.0, 1.0, 3.0], "down −3.2%": [-3.2], "down –2%": [-2.0], "SMH-12.5%": [12.5],
        "上涨3.5%": [3.5], "３.１％": [3.1], "3,1 % and 5,12%": [3.1, 5.12], "3,125 %": [3125.0],
        "Briar的21日回报率为3.1%": [3.1],
    },
    "none": {"lost 300 points": [300.0], "beta .18": [0.18], "closed at 7,757.64": [7757.64]},
    "bps": {"cut by 25 bps": [25.0], "a 25-basis-point cut": [25.0]},
    "usd": {
        "at $91.01": [91.01], "a $1.5T budget": [1.5e12], "$70–75": [70.0, 75.0], "$1.2-1.5B": [1.2e9, 1.5e9],
        "$-7.6B and -$7.6B": [-7.6e9, -7.6e9],
    },
    "count": {
        "payrolls of 115k": [115_000.0], "2.0 million barrels": [2e6], "exports of 16.1 mb/d": [16.1e6],
        "1.4M barrels": [1.4e6],
    },
    "multiple": {"trades at 5.4x": [5.4]},
}  # fmt: skip


def test_dates_horizons_names_and_identifiers_are_no_numbers():
    for text in (
        "on Aug 7-8 and July 28 and 29, 2026", "12 August, 2026-08-10T10:00:00Z, 8:30 a.m., 6/17, 7/17/2026",
        "Q3 FY27, 2Q26, H2 2026, fiscal 2027, 3Q", "30日", "21个交易日, 3个月, 2025年3月2日", "7d/30d, 2s10s, 5y5y", "",
        "S&P 500, S&P500, Russell 2000, Nasdaq 100, Nikkei 225, FTSE 100, NASDAQ-100", "version 1.2.3",
        "30d, 52-week, 63-session, 10-year, 21 trading days, 6M, 1-3 years, 21- and 63-day, 10yr",
        "COVID-19, F-35, GPT-5, H100, 10-K, Section 232, v2.2, 5G, HBM4", "\n1. first\n2) second\n[3] third",
        "the 3rd and 80th, #1, top 3", "return_5s and prior_16s_active",
    ):  # fmt: skip
        assert evidence.extract_numbers(text) == [], text


def test_units_signs_scales_ranges_and_precision():
    for unit, texts in UNITS.items():
        for text, values in texts.items():
            found = evidence.extract_numbers(text)
            assert [one.value for one in found] == pytest.approx(values), text
            assert {one.unit for one in found} == {unit}, text
    for text, values in {
        "+1.10% over 5 sessions, +0.17% over 21; next": [1.10, 0.17],  # the second horizon needs no unit word
        "IAU 5d +0.72% but 21d -3.16%": [0.72, -3.16], "order 12345678901234567890": [],  # an identifier
        "0.02354818566571848233": [0.02354818566571848233], "0." + "1" * 26: [],
        "－１，２００ and ＋１．５％": [-1200.0, 1.5], "1,2345 and 5,12% and 1,,2 and ..5": [1.0, 5.12, 1.0, 2.0, 0.5],
    }.items():  # fmt: skip
        assert [one.value for one in evidence.extract_numbers(text)] == pytest.approx(values), text
    found = evidence.extract_numbers("4.60%, 57k, 2.0 million, 7,509")
    assert [n.step for n in found] == [pytest.approx(step) for step in (0.01, 1000.0, 1e5, 1.0)]
    found = evidence.extract_numbers("245 advancing, 1,200 falling, +3 net, 7 %")
    assert [(n.value, n.bare) for n in found] == [(245.0, True), (1200.0, False), (3.0, False), (7.0, False)]


ALPHABET = st.sampled_from([*"0123456789.,-+−–$%xkMBT/() abcSPmd\n:年%", "bps", "million", "Aug ", "to ", "and "])


@given(st.lists(ALPHABET, max_size=80).map("".join) | st.text(max_size=200))
def test_offsets_quote_any_text(text):
    last = 0
    for number in evidence.extract_numbers(text):
        assert text[number.start : number.end] == number.quote
        assert number.start >= last
        assert math.isfinite(number.value)
        assert number.step > 0
        last = number.end


@given(st.integers(0, 10**7), st.integers(0, 6), st.sampled_from(["", "+", "-", "−"]))
def test_what_is_printed_is_read_back(digits, decimals, sign):
    size = digits / 10**decimals
    (number,) = evidence.extract_numbers(f"return {sign}{size:,.{decimals}f}% today")
    assert abs(number.value) == pytest.approx(size)
    assert (number.decimals, number.signed) == (decimals, bool(sign))
    assert (number.value < 0) == (sign in ("-", "−") and digits > 0)


def named(text, instruments=INSTRUMENTS):
    subjects = index_subjects(instruments)
    return [subjects.ids[m.row] for m in subjects.mentions(text, words_of(text))]


def test_names_symbols_ids_and_unique_words():
    for text, expected in {
        "IAU and SMH": ["GOLD", "CHIPS"], "gold rallied": ["GOLD"], "South Korea": ["SOUTH_KOREA"],
        "Korea alone": ["SOUTH_KOREA"], "SOUTH_KOREA": ["SOUTH_KOREA"], "semis and chips": ["CHIPS", "CHIPS"],
        "spy_return_5d": ["SP500"], "smh 21d": ["CHIPS"], "smh in lower case is a word": [], "large equities": [],
        "看好SMH的21日回报": ["CHIPS"], "IAU和Gold都上涨": ["GOLD", "GOLD"], "ＳＭＨ": [],
    }.items():  # fmt: skip
        assert named(text) == expected, text
    people = (  # a name in a script without blanks needs no boundary there
        Instrument(id="G", name="黄金ETF", aliases=("黄金",)), Instrument(id="S", name="标普500"),
        Instrument(id="X", name="同名"), Instrument(id="Y", name="同名"),
    )  # fmt: skip
    assert named("看好黄金上涨, 黄金ETF也好", people) == ["G", "G"]
    assert named("认为标普500的回报", people) == ["S"]
    assert named("标普5001, 同名的", people) == []
    twins = (Instrument(id="A1", name="World Fund"), Instrument(id="A2", name="World Fund"))
    assert named("World Fund, or A1", twins) == ["A1"]  # a name that two share names nobody
    assert named("it fell, IT rose", (Instrument(id="TECH", symbol="IT"),)) == ["TECH"]
    assert audit("Equal weight in the S&P 500 and Vision 2100 Fund") != []  # digits inside a name are no figure
    found = index_subjects((Instrument(id="V", name="Vision 2100 Fund"),))
    assert found.mentions("Vision 2100 Fund", words_of("Vision 2100 Fund"))[0].end == 16


def test_lines_that_begin_with_a_name_canonical_forms_and_horizons():
    for head in ("GOLD: ", "IAU (selected)\nEvidence: ", "- Gold Trust | ", "GOLD — "):
        assert only(f"{head}up 3.1% lately", PARTIAL).subject == "GOLD", head
    found = audit("GOLD (rejected)\nEvidence: 3.12% gain\nCHIPS (selected)\nEvidence: down 5.47%", PARTIAL)
    assert [(f.subject, f.state) for f in found] == [("GOLD", "supported"), ("CHIPS", "supported")]
    assert [f.subject for f in audit("Gold rose.\nThe rest lost 9.99%.", PARTIAL)] == [""]
    forms = {"payrolls": "payroll", "52wk": "52w", "21s": "21d", "gas": "gas", "basis": "basis", "vol": "volatility"}
    assert {word: canonical(word) for word in forms} == forms
    for text, found in (
        ("over five sessions, 6 months and a 52-week range", {"5d", "6m", "52w"}),
        ("21日, 5个交易日, 3个月, 2周, 1年; 2025年3月2日", {"21d", "5d", "3m", "2w", "1y"}),
    ):
        assert SpokenHorizons(text).within(0, len(text)) == found
    text = "İİİ gold 5%"  # letters that change their length in lower case move no offset
    read = words_of(text)
    assert text[read.starts[1] : read.end(1)] == "gold"


HOSTILE = {
    "a huge integer": "7" * 100_000, "a huge fraction": "0." + "7" * 100_000,
    "brackets": "(" * 200_000 + "5%" + ")" * 200_000, "thousands": "1" + ",000" * 50_000,
    "thousands, broken at the end": "1" + ",000" * 50_000 + "0", "dots": "1" + ".1" * 50_000,
    "minus signs": "-" * 200_000 + "5%", "dates": "Aug 7-8, " * 20_000, "ranges": "1-" * 5_000 + "2%",
    "blanks": "5" + " " * 500_000 + "%", "line breaks": "\n" * 300_000 + "5%", "one word": "a" * 1_000_000,
    "joined words": "a&" * 300_000, "names": "GOLD " * 20_000 + "5%", "headers": "GOLD: 5.5%\n" * 2_000,
    "surrogates and nulls": "\x00\ud800 5% \U0001f4c8 " * 2_000, "months": "May " * 50_000,
    "wide digits": "１２３４％" * 6_000, "superscripts": "²d ³y 5²% " * 1_500, "stop words": "over the last " * 20_000,
    "one sentence again and again": "GOLD's 21-day return is 3.1%. " * 5_000,
    "one accusation again and again": "GOLD's 21-day return is 9.9%. " * 5_000, "bare numbers": "1 " * 25_000,
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_to_its_end(text):
    for one in audit(text):
        assert text[one.start : one.start + len(one.quote)] == one.quote
        assert math.isfinite(one.number)


def test_one_long_sentence_numbers_too_long_for_a_float_deep_stages_and_hostile_material_are_read():
    assert len(audit("gold up 3.1% and " * 2_000)) == 2_000
    made = decision("paid $" + "9" * 400 + " and 1" + "0" * 16 + " and 123456789012345 and 1e400")
    found = numeric_ledger(made, None, material=COMPLETE)
    assert canonical_json(found)
    assert [item.number for item in found] == [123456789012345.0]
    seen = material(prompt="must weight 5% " * 20_000 + "\n" * 1_000)
    assert audit("weights must be 5%", seen)[0].state == "rule"
    assert built().benchmark == -1
    deep: object = 7.5
    for _ in range(400):
        deep = {"a": [deep]}
    made = decision("weight 7.5%", stages={"deep": deep})
    assert numeric_ledger(made, None, material=COMPLETE)[0].state == "not_found"
