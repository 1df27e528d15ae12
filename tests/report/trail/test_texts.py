"""Texts on a page: the last character can be read back, and nothing of them is markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_pages import raw_texts

from assaymark.report import records as record_pages

ANY = st.text(st.one_of(st.characters(), st.sampled_from("\r\n\t\x00\x1b<>&\"'\u202e\u200b\ud800\ufeff")))


def on_a_page(markup: str) -> str:
    return f'<section class="call" id="x"><pre class="raw">\n{markup}</pre></section>'


@given(ANY)
def test_a_text_can_be_read_back_to_the_last_character(text):
    assert raw_texts(on_a_page(record_pages.visible(text))) == {"x": [text]}


@given(ANY)
def test_nothing_of_a_text_is_markup_or_unseen(text):
    shown = re.sub(r'<i class="u">U\+[0-9A-F]{4,6}</i>', "", record_pages.visible(text))
    assert not set("<>") & set(shown)
    assert all(char.isprintable() or char in "\n\t" or char.isspace() for char in shown)
    assert "\r" not in shown


def test_a_text_that_looks_like_a_mark_of_ours_is_not_taken_for_one():
    text = '<i class="u">U+0041</i>'
    assert raw_texts(on_a_page(record_pages.visible(text))) == {"x": [text]}


@pytest.mark.parametrize("text", ["x" * 3000, "\x00" * 3000, "&" * 3000, "中" * 3000, "😀" * 3000])
def test_a_long_text_is_cut_in_its_middle_and_says_by_how_much(text):
    found, left_out = record_pages.shown_text(text, 1000)
    kept = re.split(r"<b class=\"cut\">\[[\d,]+ characters are left out here\]</b>", found)
    head, tail = (raw_texts(on_a_page(part))["x"][0] for part in kept)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 0 < len(tail) < len(head)
    assert left_out == len(text) - len(head) - len(tail)
    assert len(found.encode()) < 1000 + 100


@given(ANY, st.integers(0, 60))
def test_only_a_text_above_the_limit_is_cut(text, limit):
    _, left_out = record_pages.shown_text(text, limit)
    assert (left_out == 0) == (len(record_pages.visible(text).encode()) <= limit or not text)
