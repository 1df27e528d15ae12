"""Texts that were written to break a reader: huge, deep, repetitive. Work grows with length and with nothing else."""

from __future__ import annotations

import math

import pytest
from seen import COMPLETE, INSTRUMENTS, audit, decision, material

from assaymark.judging import numeric_ledger
from assaymark.judging.evidence import Material, extract_numbers
from assaymark.records import canonical_json

HOSTILE = {
    "a huge integer": "7" * 100_000,
    "a huge fraction": "0." + "7" * 100_000,
    "brackets": "(" * 200_000 + "5%" + ")" * 200_000,
    "thousands": "1" + ",000" * 50_000,
    "thousands, broken at the end": "1" + ",000" * 50_000 + "0",
    "dots": "1" + ".1" * 50_000,
    "minus signs": "-" * 200_000 + "5%",
    "dates": "Aug 7-8, " * 20_000,
    "ranges": "1-" * 5_000 + "2%",
    "blanks": "5" + " " * 500_000 + "%",
    "line breaks": "\n" * 300_000 + "5%",
    "one word": "a" * 1_000_000,
    "joined words": "a&" * 300_000,
    "names": "GOLD " * 20_000 + "5%",
    "headers": "GOLD: 5.5%\n" * 2_000,
    "surrogates and nulls": "\x00\ud800 5% \U0001f4c8 " * 2_000,
    "months": "May " * 50_000,
    "wide digits": "１２３４％" * 20_000,
    "superscripts": "²d ³y 5²% " * 1_500,
    "stop words": "over the last " * 20_000,
    "one sentence again and again": "GOLD's 21-day return is 3.1%. " * 15_000,
    "one accusation again and again": "GOLD's 21-day return is 9.9%. " * 15_000,
    "bare numbers": "1 " * 100_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_to_its_end(text):
    found = audit(text)
    for finding in found:
        number = finding.number
        assert text[number.start : number.end] == number.quote
        assert math.isfinite(number.value)


def test_one_long_sentence_full_of_numbers():
    text = "gold up 3.1% and " * 2_000
    assert len(audit(text)) == 2_000


def test_numbers_too_long_for_a_float_stay_out_of_records():
    made = decision("paid $" + "9" * 400 + " and 1" + "0" * 16 + " and 123456789012345 and 1e400")
    found = numeric_ledger(made, None, material=COMPLETE)
    assert canonical_json(found)
    assert [item.number for item in found] == [123456789012345.0]


def test_hostile_material_is_indexed():
    seen = material(prompt="must weight 5% " * 20_000 + "\n" * 1_000)
    assert audit("weights must be 5%", seen)[0].state == "rule"
    assert extract_numbers("") == []
    assert Material.build(facts=[], instruments=INSTRUMENTS).benchmark == -1


def test_deep_stages_do_not_recurse_without_end():
    deep: object = 7.5
    for _ in range(400):
        deep = {"a": [deep]}
    made = decision("weight 7.5%", stages={"deep": deep})
    assert numeric_ledger(made, None, material=COMPLETE)[0].state == "not_verifiable"
