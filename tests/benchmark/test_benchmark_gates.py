"""The drawdown gate, its score, and the least CEPS of each stress scenario."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import PROFILES, risk_safe, stress_gate, stress_score
from assaymark.errors import InputError, UnknownNameError

depths = st.lists(st.floats(-1, 0), min_size=1, max_size=4)
tolerances = st.floats(0.01, 1)


@given(depths, tolerances)
def test_the_gate_looks_at_the_deepest(drawdowns, tolerance):
    passed = stress_gate(drawdowns, tolerance)
    assert passed == all(stress_gate([one], tolerance) for one in drawdowns)
    assert passed == stress_gate([-one for one in drawdowns], tolerance)
    assert passed == stress_gate(dict(enumerate(drawdowns)), tolerance)


@given(depths)
def test_a_wider_profile_never_fails_what_a_narrower_one_passes(drawdowns):
    passed = [stress_gate(drawdowns, one.drawdown_tolerance) for one in PROFILES.values()]
    assert passed == sorted(passed)


def test_a_drawdown_of_just_the_tolerance_passes():
    assert stress_gate([0.3 - 0.2], 0.1)
    assert stress_gate([-0.1 - 9e-10], 0.1)
    assert not stress_gate([-0.1 - 2e-9], 0.1)


@given(st.floats(-1, 1), tolerances)
def test_the_score_is_0_where_the_tolerance_is_used_up(drawdown, tolerance):
    score = stress_score(drawdown, tolerance)
    assert 0 <= score <= 1
    assert score == pytest.approx(max(0, 1 - abs(drawdown) / tolerance))
    assert score == 0 or stress_gate([drawdown], tolerance)


def test_no_loss_scores_1():
    assert stress_score(0.0, 0.1) == 1.0


@pytest.mark.parametrize(
    ("drawdowns", "tolerance", "message"),
    [
        ([], 0.1, "at least one value"),
        ([-12.38], 0.1, "must be shares from -1 to 1, not percentages .1 value.s., first at index 0: -12.38."),
        ([float("nan")], 0.1, "must be shares"),
        ([-0.1], 0.0, "tolerance: must be above 0 and at most 1"),
        ([-0.1], 10.0, "tolerance: must be above 0 and at most 1"),
        ([-10.0], 10.0, "2 problems"),
    ],
)
def test_the_gate_refuses(drawdowns, tolerance, message):
    with pytest.raises(InputError, match=message):
        stress_gate(drawdowns, tolerance)


@pytest.mark.parametrize(("scenario", "least"), [("china-2015", 0.40), ("covid-2020", 0.45), ("crypto-2022", 0.50)])
def test_risk_safe_from_its_threshold_on(scenario, least):
    assert risk_safe(scenario, least)
    assert risk_safe(scenario, 1.0)
    assert not risk_safe(scenario, least - 1e-6)


def test_risk_safe_refuses():
    with pytest.raises(UnknownNameError, match=r"unknown stress scenario 'covid'\. Did you mean 'covid-2020'"):
        risk_safe("covid", 0.5)
    with pytest.raises(InputError, match="ceps: must be from 0 to 1"):
        risk_safe("covid-2020", 1.5)
    with pytest.raises(
        InputError, match=r"scenario: must be the name of a stress scenario: china-2015, .* \(got 0.45\)"
    ):
        risk_safe(0.45, "covid-2020")
