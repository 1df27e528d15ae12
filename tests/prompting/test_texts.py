"""Which texts are judged, and their length."""

from __future__ import annotations

import pytest
from judged_records import RISK, SUMMARY, decision

from assaymark.prompting import judged_rationales, judged_text, token_count
from assaymark.records import Rationale


def test_summary_comes_before_risk_and_the_venues_text_is_left_out():
    assert judged_text(decision()) == f"{SUMMARY}\n\n{RISK}"


def test_texts_of_one_kind_keep_their_order_and_stages_are_judged():
    kinds = ("stage", "candidate", "portfolio", "candidate", "holding")
    texts = tuple(Rationale(text=str(at), kind=kind) for at, kind in enumerate(kinds))
    assert [text.text for text in judged_rationales(decision(rationales=texts))] == ["2", "1", "3", "0"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("  two\n words ", 2),
        ("naïve café costs 3 €", 5),
        ("沪深三百上涨", 6),
        ("买入 XLE，因为。", 5),
        ("한국어 두 단어", 3),
        ("ราคา", 4),
    ],
)
def test_token_count(text, tokens):
    assert token_count(text) == tokens
