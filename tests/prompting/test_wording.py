from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.judging.reference.lexicon import LEXICON
from assaymark.prompting.wording import CONFIDENT, HEDGES, UNSPACED_HEDGES, confident_in, hedges_in


def test_every_hedge_of_the_reference_judges_is_a_hedge_here():
    assert LEXICON["hedge"] <= HEDGES | set(UNSPACED_HEDGES)


@pytest.mark.parametrize("text", ["It MAY rise", "odds are", "more or less", "涨势可能持续", "perhaps.", "(could)"])
def test_a_hedge_is_found_in_any_case_and_script(text):
    assert len(hedges_in(text)) == 1


@pytest.mark.parametrize("text", ["Mayor", "the dismay of many", "coulder", "mighty", "no hedge at all", ""])
def test_a_hedge_inside_another_word_is_none(text):
    assert hedges_in(text) == ()


def test_no_confident_phrase_hedges():
    assert [phrase for phrase in CONFIDENT if hedges_in(phrase)] == []


def test_uncertain_is_not_confident():
    assert confident_in("uncertain and unproven") == ()


@given(st.lists(st.sampled_from(sorted(CONFIDENT)), max_size=6))
def test_confident_phrases_are_counted_where_they_stand(phrases):
    assert list(confident_in(". ".join(phrases))) == phrases
