"""Stage scores and CEPS against slow definitions, their laws, and what they refuse."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.benchmark import SIGNALS, STAGES, ceps, s1_score, s2_score, s4_score, s5_score
from assaymark.errors import InputError

shares = st.floats(0, 1)
five = st.lists(shares, min_size=5, max_size=5)
view = st.floats(-1, 1)
signal = st.sampled_from(SIGNALS)
turnover = st.floats(0, 2)
loss = st.floats(-1, 0.05)


def pairs(one):
    return st.lists(st.tuples(one, one), min_size=1, max_size=12)


@given(five, st.floats(0, 1))
def test_ceps_is_equations_1_to_3(scores, penalty):
    mean = math.fsum(scores) / 5
    drops = math.fsum(max(scores[i] - scores[i + 1], 0) for i in range(4))
    assert ceps(scores, penalty=penalty) == pytest.approx(min(1, max(0, mean - penalty * drops)), abs=1e-12)


@given(five)
def test_ceps_is_below_the_mean_exactly_where_something_drops(scores):
    largest = max(one - other for one, other in itertools.pairwise(scores))
    assert ceps(scores) <= np.mean(scores) - 0.1 * largest + 1e-12
    if largest <= 0:
        assert ceps(scores) == pytest.approx(np.mean(scores), abs=1e-12)


@given(st.lists(five, min_size=2, max_size=6), st.floats(0, 0.2))
def test_mean_ceps_is_never_above_ceps_of_mean_stages(dates, penalty):
    """Concave, and for penalties up to 0.2 never cut off at 0."""
    of_dates = np.mean([ceps(one, penalty=penalty) for one in dates])
    assert of_dates <= ceps(np.mean(dates, axis=0), penalty=penalty) + 1e-12


def test_above_that_penalty_the_cut_breaks_it():
    dates = [[1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]]
    of_dates = np.mean([ceps(one, penalty=1.0) for one in dates])
    assert of_dates > ceps(np.mean(dates, axis=0), penalty=1.0)


@given(five)
def test_ceps_takes_a_mapping_in_any_order(scores):
    named = dict(zip(STAGES, scores, strict=True))
    assert ceps(dict(reversed(named.items()))) == ceps(scores)


def test_a_later_drop_costs_more_than_an_even_start():
    assert ceps([0.8, 0.8, 0.8, 0.2, 0.2]) < ceps([0.2, 0.2, 0.8, 0.8, 0.8])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([0.5] * 4, "must be 5 scores, S1 to S5 .got 4."),
        ([0.5] * 4 + [1.5], "must be from 0 to 1 .1 value.s., first at index 4: 1.5."),
        ([0.5] * 4 + [float("nan")], "must be from 0 to 1"),
        ([[0.5] * 5], "must have 1 axes"),
        ({"S1": 0.5}, "must be S1, S2, S3, S4, S5 .got S1."),
        ({}, "got none"),
    ],
)
def test_ceps_refuses(stages, message):
    with pytest.raises(InputError, match=message):
        ceps(stages)


def test_ceps_tells_both_problems():
    with pytest.raises(InputError, match="2 problems") as told:
        ceps([2.0] * 5, penalty=-0.1)
    assert "penalty: must be from 0 to 1 (got -0.1)" in str(told.value)


@given(pairs(view))
def test_s1_is_equation_4(both):
    said, true = zip(*both, strict=True)
    slow = 1 - math.fsum(abs(v - t) for v, t in both) / (2 * len(both))
    assert s1_score(said, true) == pytest.approx(slow, abs=1e-12)
    assert 0 <= s1_score(said, true) <= 1
    assert s1_score(true, true) == 1
    assert s1_score(said, true) == pytest.approx(s1_score(true, said))


@given(pairs(view), st.randoms(use_true_random=False))
def test_s1_does_not_know_the_order_of_assets(both, random):
    mixed = random.sample(both, len(both))
    assert s1_score(*zip(*mixed, strict=True)) == pytest.approx(s1_score(*zip(*both, strict=True)), abs=1e-12)


def test_s1_is_0_where_everything_is_wrong():
    assert s1_score([1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]) == 0.0


@given(st.dictionaries(st.sampled_from("ABCDEF"), view, min_size=1), st.dictionaries(st.sampled_from("ABCDEFXY"), view))
def test_s1_by_names_is_neutral_where_nothing_was_said(true, said):
    filled = [said.get(name, 0.0) for name in true]
    assert s1_score(said, true) == s1_score(filled, list(true.values()))
    assert s1_score({**said, "another": 1.0}, true) == s1_score(said, true)
    assert s1_score(dict.fromkeys(true), true) == s1_score({}, true)


def test_s1_of_neutral_views_against_evenly_spread_truths():
    assert s1_score(np.zeros(2001), np.linspace(-1, 1, 2001)) == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize(
    ("said", "true", "message"),
    [
        ([0.1], [0.1, 0.2], "must be as many as the truths .got 1 and 2."),
        ([], [], "at least one value"),
        ({"A": 0.1}, {}, "at least one value"),
        ([1.5], [0.0], "must be from -1 to 1 .1 value.s., first at index 0: 1.5."),
        ([0.0], [-2.0], "truth: must be from -1 to 1"),
        ([float("nan")], [0.0], "must be from -1 to 1"),
        (["up"], [0.0], "must be numbers"),
        ({"A": 0.1}, [0.1], "both mappings or both arrays .got dict and list."),
        ([0.1], {"A": 0.1}, "both mappings or both arrays"),
    ],
)
def test_s1_refuses(said, true, message):
    with pytest.raises(InputError, match=message):
        s1_score(said, true)


@given(pairs(signal))
def test_s2_is_the_share_of_right_signals(both):
    said, true = zip(*both, strict=True)
    assert s2_score(said, true) == sum(one == other for one, other in both) / len(both)
    assert s2_score(true, true) == 1.0


@given(
    st.dictionaries(st.sampled_from("ABCDEF"), signal, min_size=1), st.dictionaries(st.sampled_from("ABCDEFXY"), signal)
)
def test_s2_by_names_holds_where_nothing_was_said(true, said):
    filled = [said.get(name, "hold") for name in true]
    assert s2_score(said, true) == s2_score(filled, list(true.values()))
    assert s2_score(dict.fromkeys(true), true) == s2_score(["hold"] * len(true), list(true.values()))


def test_s2_takes_arrays():
    assert s2_score(np.array(["buy", "hold"]), np.array(["buy", "sell"])) == 0.5


@pytest.mark.parametrize(
    ("said", "true", "message"),
    [
        (["buy"], ["buy", "hold"], "got 1 and 2"),
        ([], [], "at least one signal"),
        (["BUY"], ["buy"], "signals: must be buy, hold, sell .1 value.s., first: 'BUY'."),
        (["buy"], ["up"], "truth: must be buy, hold, sell"),
        ([None], ["buy"], "first: None"),
        ({"A": "buy"}, ["buy"], "both mappings or both arrays"),
    ],
)
def test_s2_refuses(said, true, message):
    with pytest.raises(InputError, match=message):
        s2_score(said, true)


@given(turnover, turnover)
def test_s4_is_the_smaller_over_the_larger(one, other):
    low, high = sorted((one, other))
    assert s4_score(one, other) == s4_score(other, one)
    assert s4_score(one, one) == 1.0
    assert s4_score(one, other) == pytest.approx(1 - (high - low) / max(high, 1e-4), abs=1e-12)


def test_s4_of_nothing_traded():
    """Against an oracle that trades 0; against one that trades little the floor of the denominator helps."""
    assert s4_score(0.0, 0.5) == 0.0
    assert s4_score(0.0, 0.0) == 1.0
    assert s4_score(0.0, 1e-5) == pytest.approx(0.9)


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf"), None, True])
def test_s4_refuses(wrong):
    with pytest.raises(InputError, match="turnover_star: must be 0 or more"):
        s4_score(0.1, wrong)


@given(st.booleans(), st.booleans(), loss, loss, loss, loss)
def test_s5_is_equations_13_and_14(said, true, var, var_star, drawdown, drawdown_star):
    error = abs(var - var_star) / max(abs(var_star), 1e-6) + abs(drawdown - drawdown_star) / max(
        abs(drawdown_star), 1e-6
    )
    slow = 0.5 * (said == true) + 0.5 * min(1, max(0, 1 - error / 2))
    found = s5_score(said, true, var, var_star, drawdown, drawdown_star)
    assert found == pytest.approx(slow, abs=1e-12)
    assert s5_score(true, true, var_star, var_star, drawdown_star, drawdown_star) == 1.0


@given(st.booleans(), loss, loss, loss, loss)
def test_a_wrong_alarm_costs_one_half(flag, var, var_star, drawdown, drawdown_star):
    figures = (var, var_star, drawdown, drawdown_star)
    assert s5_score(flag, flag, *figures) - s5_score(flag, not flag, *figures) == pytest.approx(0.5)


def test_s5_takes_numpy_flags():
    assert s5_score(np.bool_(True), True, -0.01, -0.01, -0.02, -0.02) == 1.0


def test_s5_tells_every_problem():
    with pytest.raises(InputError, match="3 problems") as told:
        s5_score("yes", True, float("nan"), -0.01, -0.02, None)
    assert "rebalance: must be True or False (got 'yes')" in str(told.value)
    assert "drawdown_star: must be a finite number (got None)" in str(told.value)
