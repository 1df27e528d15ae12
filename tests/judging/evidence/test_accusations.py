"""When a number may be called contradicted: case by case, and every reason not to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seen import AT, COMPLETE, INSTRUMENTS, PARTIAL, audit, material, only, states

from assaymark.judging.evidence import Material
from assaymark.records import Fact

ACCUSED = [
    "GOLD return over 5d was 4.9%",
    "IAU: 5d return +9.12%",
    "GOLD 5d return -3.12%",
    "Chips volatility over 21 sessions 41.7%",
    "SMH beta 63d spy 2.06",
    "GOLD max drawdown 21d 16.5%",
    "GOLD close $98.87",
]


@pytest.mark.parametrize("text", ACCUSED)
def test_a_clear_misstatement_of_one_cell_is_contradicted(text):
    found = only(text)
    assert (found.state, found.rule) == ("contradicted", "one-cell-differs")
    assert len(found.facts) == 1


@pytest.mark.parametrize("text", ACCUSED)
def test_a_partial_context_accuses_nobody(text):
    found = only(text, PARTIAL)
    assert (found.state, found.rule) == ("not_verifiable", "partial-context")


NOT_ACCUSED = {
    "no subject": "5d return was 4.9%",
    "two subjects": "GOLD and SMH 5d return 4.9%",
    "another owner": "GOLD: SMH 5d return 4.9%",
    "no field": "GOLD 4.9% over 5d",
    "no horizon": "GOLD return 4.9%",
    "horizon without a cell": "GOLD return over 63d 4.9%",
    "a hedge": "GOLD 5d return of roughly 4.9%",
    "a forecast": "GOLD 5d return could be 4.9%",
    "a threshold": "GOLD 5d return above 4.9%",
    "a comparison": "GOLD 5d return beat by 4.9%",
    "two numbers in the clause": "GOLD 5d return 4.9% 5.9%",
    "another unit": "GOLD 5d return $4.90",
    "a list of subjects": "GOLD, SMH 5d return 4.9%",
    "a benchmark the field does not name": "GOLD 5d return with SPY 4.9%",
    "another noun": "GOLD 5d return dispersion 4.9%",
    "another measure": "GOLD 5d return rank 4.9%",
    "a bare integer": "GOLD 5d return 5",
    "one last digit off, rounding": "GOLD 5d return 3.2%",
    "truncation": "GOLD 21d return 8.1%",
    "rounding a rounded display": "EWY 5d return 12.8%",
}


@pytest.mark.parametrize("text", NOT_ACCUSED.values(), ids=NOT_ACCUSED.keys())
def test_any_doubt_acquits(text):
    assert "contradicted" not in states(text)


def test_two_values_of_one_field_accuse_nobody():
    twice = [
        Fact(id=f"f{at}", instrument="GOLD", field="return_5d", value=value, unit="ratio", available_at=AT)
        for at, value in enumerate((0.03, 0.05))
    ]
    seen = Material.build(facts=twice, instruments=INSTRUMENTS, completeness="complete")
    assert states("GOLD 5d return 9.99%", seen) == ["not_verifiable"]


def test_the_more_specific_field_is_the_one_that_was_named():
    facts = [
        Fact(id=field, instrument="GOLD", field=field, value=value, unit="ratio", available_at=AT)
        for field, value in (("return_5d", 0.031), ("active_return_5d", 0.012))
    ]
    seen = Material.build(facts=facts, instruments=INSTRUMENTS, completeness="complete")
    assert only("GOLD active return 5d 8.88%", seen).facts == ("active_return_5d",)


SHARES = st.floats(-0.9, 0.9).filter(lambda share: abs(share) > 1e-6)


@given(SHARES, st.integers(0, 3), st.sampled_from(["round", "cut", "twice"]))
def test_display_rounding_and_truncation_never_accuse(value, decimals, how):
    fact = Fact(id="f", instrument="GOLD", field="return_5d", value=value, unit="ratio", available_at=AT)
    seen = Material.build(facts=[fact], instruments=INSTRUMENTS, completeness="complete")
    shown = value * 100
    if how == "cut":
        shown = int(shown * 10**decimals) / 10**decimals
    elif how == "twice":
        shown = round(shown, decimals + 1)
    text = f"GOLD 5d return {shown:+.{decimals}f}%"
    assert "contradicted" not in states(text, seen)


@given(st.floats(-0.5, 0.5), st.integers(1, 3), st.floats(1.6, 50.0), st.booleans())
def test_anything_well_beyond_the_last_digit_does(value, decimals, steps, up):
    fact = Fact(id="f", instrument="GOLD", field="return_5d", value=value, unit="ratio", available_at=AT)
    seen = Material.build(facts=[fact], instruments=INSTRUMENTS, completeness="complete")
    shown = value * 100 + (steps if up else -steps) * 10**-decimals
    (found,) = audit(f"GOLD 5d return {shown:+.{decimals}f}%", seen)
    printed = float(found.number.value)
    if abs(abs(printed) - abs(value * 100)) > 1.01 * 10**-decimals:
        assert found.state == "contradicted"


def test_words_of_movement_alone_convict_nobody_of_a_wrong_sign():
    assert "contradicted" not in states("GOLD 5d return fell 3.12%")


def test_a_derivable_number_is_no_contradiction():
    assert "contradicted" not in states("EWY 5d return outperformed SPY by 11.48%", COMPLETE)


def test_completeness_is_all_that_separates_the_two_materials():
    text = "GOLD 5d return 9.99%, SMH 21d return 11.11%"
    assert states(text) == ["contradicted", "contradicted"]
    assert states(text, material(completeness="partial")) == ["not_verifiable", "not_verifiable"]
