"""What does not reconcile is said in the language of the page, whatever the record holds."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_season import made_catalogue

from assaymark.claims import languages
from assaymark.portfolio import Mismatch
from assaymark.portfolio.broker import MismatchKind, Where
from assaymark.report.season.decisions import mismatch_words
from assaymark.report.season.index import Words
from assaymark.text import clean

KINDS, PLACES = get_args(MismatchKind), get_args(Where)
NUMBERS = st.floats(-1e9, 1e9).map(lambda value: round(value, 4) + 0.0)
MISMATCHES = st.builds(
    Mismatch,
    step=st.just("day 2"),
    kind=st.sampled_from(KINDS),
    symbol=st.from_regex(r"[A-Z0-9.: -]{0,8}", fullmatch=True).map(str.strip),
    stated=NUMBERS,
    recomputed=NUMBERS,
    where=st.sampled_from(PLACES),
)


def sentence(one: Mismatch) -> str:
    return str(one).removeprefix(f"{one.step}: ")


@given(MISMATCHES)
def test_every_sentence_of_a_reconciliation_is_understood(one):
    english = mismatch_words(Words(made_catalogue()), sentence(one))
    german = mismatch_words(Words(made_catalogue("de")), sentence(one))
    assert clean(sentence(one)) not in (english, german)
    assert "angegeben" in german
    assert " ".join(one.symbol.split()) in german
    for value in (one.stated, one.recomputed):
        written = f"{value:.10g}".replace("-", "\N{MINUS SIGN}")
        assert written in english
        assert written.replace(".", ",") in german


@given(st.text(max_size=60))
def test_any_other_text_is_shown_as_it_is_and_safe(text):
    assert mismatch_words(Words(made_catalogue()), f"odd: {text}") == clean(f"odd: {text}")


@pytest.mark.parametrize("language", languages())
def test_every_kind_has_a_word_in_every_language(language):
    words = Words(made_catalogue(language))
    assert all(words.has(f"model.mismatch.{kind.replace('-', '_')}") for kind in KINDS)
    assert all(words.has(f"model.mismatch.where.{where.replace(' ', '_')}") for where in PLACES if where)


def test_a_move_that_no_action_explains_is_said_in_every_language():
    moved = "price of A on 2024-03-12: 101.5 after 1000 on 2024-03-11, "
    english, german = (Words(made_catalogue(language)) for language in ("en", "de"))
    said = "The price of A went from 1000 on 2024-03-11 to 101.5 on 2024-03-12, which no split or dividend"
    assert mismatch_words(english, f"{moved}explained by no action").startswith(said)
    assert "was kein Split" in mismatch_words(german, f"{moved}explained by no action")
    acted = mismatch_words(english, f"{moved}not explained by A: split of 10 for 1, ex-date 2024-03-12")
    assert acted.endswith("does not explain (A: split of 10 for 1, ex-date 2024-03-12).")
