"""Every form a number can take on a page: the table of examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.records import Measurement
from assaymark.report import text as f

NB = f.NBSP


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (f.number(0.64), "0.64"),
        (f.number(-0.235, 3), "−0.235"),
        (f.number(-0.0001), "0.00"),
        (f.number(14500.5, 1), "14,500.5"),
        (f.signed(0.02), "+0.02"),
        (f.signed(-0.02), "−0.02"),
        (f.signed(0.001), "0.00"),
        (f.interval(0.64, 0.6, 0.67), "0.64 (0.60 to 0.67)"),
        (f.interval(-0.1, -0.2, 0.0), "−0.10 (−0.20 to 0.00)"),
        (f.interval(0.64, None, 0.67), "0.64 (no interval)"),
        (f.percent(0.84), f"84{NB}%"),
        (f.percent(0.006, 1), f"0.6{NB}%"),
        (f.percent(0.00001), f"<{NB}1{NB}%"),
        (f.percent(0.0002, 1), f"<{NB}0.1{NB}%"),
        (f.percent(0.999), f">{NB}99{NB}%"),
        (f.percent(0.0), f"0{NB}%"),
        (f.percent(1.0), f"100{NB}%"),
        (f.p_value(0.0004), "p < .001"),
        (f.p_value(0.041), "p = .041"),
        (f.p_value(1.0), "p = 1"),
        (f.alpha(0.05), ".05"),
        (f.alpha(0.001), ".001"),
        (f.words(12), "twelve"),
        (f.words(13), "13"),
        (f.plural(1, "family", "families"), "one family"),
        (f.plural(1250, "decision"), "1,250 decisions"),
        (f.counted(0, "claim"), "0 claims"),
        (f.listing([]), ""),
        (f.listing(["a", "b", "c"], last="or"), "a, b or c"),
        (f.ordinal_span(3, 3), "3"),
        (f.ordinal_span(2, 4), "2 to 4"),
        (f.hash_groups("a" * 20), "aaaaaaaa aaaaaaaa aaaa"),
        (f.short_hash("abc"), "abc"),
        (f.sentence("  "), ""),
        (f.sentence("it is late"), "It is late."),
        (f.clean("a\x00b\u202ec\ud800d"), "a�b[U+202E]c�d"),
        (f.prose("the panel's score"), "the panel’s score"),
        (f.prose("the judges' <b>"), "the judges’ <b>"),
        (f.prose("first of the one agents"), "first of the one agent"),
        (f.prose("4 records in 1 clusters"), "4 records in 1 cluster"),
        (f.prose("0.1 points, 21 clusters, 1,001 records"), "0.1 points, 21 clusters, 1,001 records"),
        (f.prose("3 of the 3 agents that it met"), "all 3 agents that it met"),
        (f.prose("3 of the 13 agents that it met"), "3 of the 13 agents that it met"),
        (f.clean(" two \n lines "), "two lines"),
        (f.clean("é" * 30, 5), "éééé…"),
    ],
)
def test_examples(made, shown):
    assert made == shown


def measurement(state: str, value: float | None = None) -> Measurement:
    return Measurement(name="m", labels={}, value=value, n=1, n_of="", method="", state=state)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("undefined: one trial, needs two", "not defined: one trial, needs two"),
        ("never compared", "never compared"),
        ("not measurable: one judge family, needs two", "not measurable: one judge family, needs two"),
        ("ok", "not measured"),
        ("", "not measured"),
    ],
)
def test_undefined_is_said_in_words(state, words):
    assert f.shown(measurement(state)) == words


def test_a_defined_value_is_a_number():
    assert f.shown(measurement("ok", 0.5)) == "0.50"


@given(st.floats(-1e9, 1e9), st.integers(0, 4))
def test_no_number_has_a_hyphen_or_a_negative_zero(value, digits):
    shown = f.number(value, digits)
    assert "-" not in shown
    assert not (shown.startswith("−") and not shown.strip("−0.,"))


@given(st.floats(0, 1))
def test_only_none_and_all_are_0_and_100_percent(share):
    shown = f.percent(share)
    assert (shown == f"0{NB}%") == (share == 0)
    assert (shown == f"100{NB}%") == (share == 1)


@given(st.text())
def test_clean_text_is_one_safe_line(text):
    cleaned = f.clean(text)
    cleaned.encode("utf-8")
    assert "\n" not in cleaned
    assert "\x1b" not in cleaned
    assert f.clean(cleaned) == cleaned


@given(st.text(), st.floats(0, 400), st.sampled_from([12.0, 13.0]))
def test_fitted_text_fits_or_is_one_mark(text, width, size):
    fitted = f.fit(text, width, size)
    assert f.text_width(fitted, size) <= width or fitted == "…"


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8, unique=True), st.floats(60, 300))
def test_shortened_names_fit_and_stay_apart(names, width):
    cut = f.shortened(names, width, 12)
    assert len(set(cut)) == len(names)
    assert all(f.text_width(text, 12) <= width for text in cut)
    assert all(text == name for text, name in zip(cut, names, strict=True) if f.text_width(name, 12) <= width / 3)


def test_names_that_differ_in_the_middle_alone_are_numbered():
    names = ["a" * 40 + middle + "b" * 40 for middle in "xyz"]
    assert f.shortened(names, 80, 12) == ("aaaaaaaa… 1", "aaaaaaaa… 2", "aaaaaaaa… 3")
