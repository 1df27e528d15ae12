"""Who a text speaks of."""

from __future__ import annotations

import pytest
from seen import INSTRUMENTS, PARTIAL, audit, only

from assaymark.judging.evidence.words import SpokenHorizons, canonical, index_subjects, words_of
from assaymark.records import Instrument


def named(text, instruments=INSTRUMENTS):
    subjects = index_subjects(instruments)
    return [subjects.ids[m.row] for m in subjects.mentions(text, words_of(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IAU and SMH", ["GOLD", "CHIPS"]),
        ("gold rallied", ["GOLD"]),
        ("South Korea", ["SOUTH_KOREA"]),
        ("Korea alone", ["SOUTH_KOREA"]),
        ("SOUTH_KOREA", ["SOUTH_KOREA"]),
        ("semis and chips", ["CHIPS", "CHIPS"]),
        ("spy_return_5d", ["SP500"]),
        ("smh 21d", ["CHIPS"]),
        ("smh in lower case is a word", []),
        ("large equities", []),
        ("看好SMH的21日回报", ["CHIPS"]),
        ("IAU和Gold都上涨", ["GOLD", "GOLD"]),
        ("ＳＭＨ", []),
    ],
)
def test_names_symbols_ids_and_unique_words(text, expected):
    assert named(text) == expected


def test_a_name_that_two_share_names_nobody():
    twins = (Instrument(id="A1", name="World Fund"), Instrument(id="A2", name="World Fund"))
    assert named("World Fund, or A1", twins) == ["A1"]


def test_a_name_in_a_script_without_blanks_needs_no_boundary_there():
    people = (
        Instrument(id="G", name="黄金ETF", aliases=("黄金",)),
        Instrument(id="S", name="标普500"),
        Instrument(id="X", name="同名"),
        Instrument(id="Y", name="同名"),
    )
    assert named("看好黄金上涨, 黄金ETF也好", people) == ["G", "G"]
    assert named("认为标普500的回报", people) == ["S"]
    assert named("标普5001, 同名的", people) == []


def test_a_ticker_that_is_a_word_is_found_in_upper_case_only():
    it = (Instrument(id="TECH", symbol="IT"),)
    assert named("it fell, IT rose", it) == ["TECH"]


def test_digits_inside_a_name_are_no_figure():
    assert audit("Equal weight in the S&P 500 and Vision 2100 Fund") != []
    found = index_subjects((Instrument(id="V", name="Vision 2100 Fund"),))
    assert found.mentions("Vision 2100 Fund", words_of("Vision 2100 Fund"))[0].end == 16


@pytest.mark.parametrize("head", ["GOLD: ", "IAU (selected)\nEvidence: ", "- Gold Trust | ", "GOLD — "])
def test_a_line_that_begins_with_a_name_is_about_it(head):
    assert only(f"{head}up 3.1% lately", PARTIAL).subject == "GOLD"


def test_later_lines_inherit_the_header():
    found = audit("GOLD (rejected)\nEvidence: 3.12% gain\nCHIPS (selected)\nEvidence: down 5.47%", PARTIAL)
    assert [(f.subject, f.state) for f in found] == [("GOLD", "supported"), ("CHIPS", "supported")]


def test_a_sentence_that_merely_contains_a_name_is_no_header():
    found = audit("Gold rose.\nThe rest lost 9.99%.", PARTIAL)
    assert [f.subject for f in found] == [""]


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("payrolls", "payroll"),
        ("52wk", "52w"),
        ("21s", "21d"),
        ("gas", "gas"),
        ("basis", "basis"),
        ("vol", "volatility"),
    ],
)
def test_canonical_forms(word, form):
    assert canonical(word) == form


def test_horizons_in_two_words():
    text = "over five sessions, 6 months and a 52-week range"
    assert SpokenHorizons(text).within(0, len(text)) == {"5d", "6m", "52w"}


def test_horizons_in_a_script_without_blanks():
    text = "21日, 5个交易日, 3个月, 2周, 1年; 2025年3月2日"
    assert SpokenHorizons(text).within(0, len(text)) == {"21d", "5d", "3m", "2w", "1y"}


def test_letters_that_change_length_in_lower_case_move_no_offset():
    text = "İİİ gold 5%"
    read = words_of(text)
    assert text[read.starts[1] : read.end(1)] == "gold"
