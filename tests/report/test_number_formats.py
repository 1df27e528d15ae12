"""Every form a number can take on a page: the table of examples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assaymark.records import Measurement
from assaymark.report import text as f
from assaymark.text import NBSP as NB
from assaymark.text import clean, number, percent, prose


def measured(value: float | None, low: float | None = None, high: float | None = None, state="ok") -> Measurement:
    return Measurement(name="m", labels={}, value=value, n=9, n_of="", method="", low=low, high=high, state=state)


EXAMPLES = (
    (number(0.64), "0.64"), (number(-0.235, 3), "−0.235"), (number(-0.0001), "0.00"), (number(14500.5, 1), "14,500.5"),
    (f.signed(0.02), "+0.02"), (f.signed(-0.02), "−0.02"), (f.signed(0.001), "0.00"),
    (f.excerpt("Gold rose. Cash is 500, so 20 units fit. So.", 19, "500", 40),
     ("Cash is ", "500", ", so 20 units fit.")),
    (f.excerpt("Gold rose.", 3, "500", 40), ("", "500", "")),
    (f.moment("2026-11-21T02:00:15.609621Z"), "21 November 2026, 02:00 UTC"),
    (f.moment("2026-03-02"), "2 March 2026"), (f.moment("2 March 2026"), "2 March 2026"),
    (f.cell_title("cell_b"), "Cell B: terse and correct"), (f.cell_title("another_one"), "Another one"),
    (f.fit("Dogwood", 500, 13), "Dogwood"), (f.fit("Dogwood of the northern hills", 60, 13), "Dogwoo…"),
    (f.sentence("What then?"), "What then?"), (f.sentence("  "), ""), (f.sentence("it is late"), "It is late."),
    (f.short_hash("a41f7c029b6e11d45a83f0c7e0d39c2e"), "a41f7c02…e0d39c2e"), (f.short_hash("abc"), "abc"),
    (f.difference(measured(0.5, 0.4, 0.6)), "+0.50 points (0.40 to 0.60)"),
    (f.difference(measured(0.5, 0.4, 0.6), -1), "−0.50 points (−0.60 to −0.40)"),
    (f.interval(0.64, 0.6, 0.67), "0.64 (0.60 to 0.67)"), (f.interval(-0.1, -0.2, 0.0), "−0.10 (−0.20 to 0.00)"),
    (f.interval(0.64, None, 0.67), "0.64 (no interval)"),
    (percent(0.84), f"84{NB}%"), (percent(0.006, 1), f"0.6{NB}%"), (percent(0.00001), f"<{NB}1{NB}%"),
    (percent(0.0002, 1), f"<{NB}0.1{NB}%"), (percent(0.999), f">{NB}99{NB}%"), (percent(0.0), f"0{NB}%"),
    (percent(1.0), f"100{NB}%"),
    (f.p_words(0.0004), "p < .001"), (f.p_words(0.041), "p = .041"), (f.p_words(1.0), "p = 1"),
    (f.alpha(0.05), ".05"), (f.alpha(0.001), ".001"), (f.words(12), "twelve"), (f.words(13), "13"),
    (f.plural(1, "family", "families"), "one family"), (f.plural(1250, "decision"), "1,250 decisions"),
    (f.counted(0, "claim"), "0 claims"), (f.listing([]), ""), (f.listing(["a", "b", "c"], last="or"), "a, b or c"),
    (f.ordinal_span(3, 3), "3"), (f.ordinal_span(2, 4), "2 to 4"),
    (clean("a\x00b\u202ec\ud800d"), "a�b[U+202E]c�d"), (clean(" two \n lines "), "two lines"),
    (clean("é" * 30, 5), "éééé…"),
    (prose("the panel's score"), "the panel’s score"), (prose("the judges' <b>"), "the judges’ <b>"),
    (prose("first of the one agents"), "first of the one agent"),
    (prose("4 records in 1 clusters"), "4 records in 1 cluster"),
    (prose("0.1 points, 21 clusters, 1,001 records"), "0.1 points, 21 clusters, 1,001 records"),
    (prose("3 of the 3 agents that it met"), "all 3 agents that it met"),
    (prose("3 of the 13 agents that it met"), "3 of the 13 agents that it met"),
    # What is undefined is said in words.
    (f.as_text(measured(None, state="undefined: one trial, needs two")), "not defined: one trial, needs two"),
    (f.as_text(measured(None, state="never compared")), "never compared"),
    (f.as_text(measured(None, state="not measurable: one judge family, needs two")),
     "not measurable: one judge family, needs two"),
    (f.as_text(measured(None)), "not measured"), (f.as_text(measured(None, state="")), "not measured"),
    (f.as_text(measured(0.5)), "0.50"),
)  # fmt: skip


def test_examples():
    assert [made for made, _ in EXAMPLES] == [shown for _, shown in EXAMPLES]


@given(st.floats(-1e9, 1e9), st.integers(0, 4), st.floats(0, 1))
def test_no_number_has_a_hyphen_or_a_negative_zero_and_only_none_and_all_are_0_and_100_percent(value, digits, share):
    shown = number(value, digits)
    assert "-" not in shown
    assert not (shown.startswith("−") and not shown.strip("−0.,"))
    assert ((shown := percent(share)) == f"0{NB}%") == (share == 0)
    assert (shown == f"100{NB}%") == (share == 1)


@given(st.text(), st.floats(0, 400), st.sampled_from([12.0, 13.0]))
def test_clean_text_is_one_safe_line_and_fitted_text_fits_or_is_one_mark(text, width, size):
    cleaned, fitted = clean(text), f.fit(text, width, size)
    cleaned.encode("utf-8")
    assert not {"\n", "\x1b"} & set(cleaned)
    assert clean(cleaned) == cleaned
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
