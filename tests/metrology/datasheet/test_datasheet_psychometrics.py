"""Threshold and d' against scikit-learn, scipy and their own definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import d_prime, detection_threshold
from assaymark.metrology.datasheet.ladder import isotonic, thresholds

curves = st.lists(
    st.tuples(st.integers(1, 60), st.floats(0, 1)).map(lambda x: (round(x[0] * x[1]), x[0])), min_size=1, max_size=7
)


@given(curves)
def test_the_fit_is_scikit_learns_isotonic_regression(curve):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1)
    theirs = IsotonicRegression().fit_transform(steps, hits / calls, sample_weight=calls)
    assert isotonic(hits, calls) == pytest.approx(theirs)


@given(curves)
def test_the_fit_is_scipys_isotonic_regression(curve):
    from scipy.optimize import isotonic_regression

    hits, calls = np.array(curve, dtype=float).T
    assert isotonic(hits, calls) == pytest.approx(isotonic_regression(hits / calls, weights=calls).x)


@given(curves, st.floats(0.05, 0.95))
def test_the_threshold_is_where_the_fitted_curve_first_reaches_the_target(curve, target):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1) * 0.5
    fit = isotonic(hits, calls)
    # A rise of a rounding error would be crossed anywhere.
    assume(np.abs(fit - target).min() > 1e-6)
    found = detection_threshold(steps.tolist(), hits / calls, calls, target=target)
    if fit[0] >= target:
        assert (found.value, found.censored) == (steps[0], "left")
    elif fit[-1] < target:
        assert (found.value, found.censored) == (steps[-1], "right")
    else:
        assert found.censored is None
        curve_at = np.interp([found.value - 1e-9, found.value, found.value + 1e-9], steps, fit)
        assert curve_at[1] == pytest.approx(target)
        assert curve_at[0] <= target + 1e-12 <= curve_at[2] + 1e-6


@given(curves, st.randoms(use_true_random=False))
def test_the_order_of_the_steps_does_not_matter(curve, random):
    hits, calls = np.array(curve, dtype=float).T
    steps = np.arange(1.0, len(curve) + 1)
    places = list(range(len(curve)))
    random.shuffle(places)
    expected = detection_threshold(steps.tolist(), hits / calls, calls)
    assert detection_threshold(steps[places].tolist(), (hits / calls)[places], calls[places]) == expected


def test_many_curves_are_fitted_at_once():
    rng = np.random.default_rng(1)
    calls = rng.integers(1, 30, (50, 6)).astype(float)
    hits = rng.binomial(calls.astype(int), 0.6).astype(float)
    together = isotonic(hits, calls)
    assert together == pytest.approx(np.array([isotonic(h, c) for h, c in zip(hits, calls, strict=True)]))
    values, codes = thresholds(together, np.arange(1.0, 7.0))
    for k in range(50):
        found = detection_threshold([1, 2, 3, 4, 5, 6], hits[k] / calls[k], calls[k])
        assert found.value == pytest.approx(values[k])
        assert {None: 0, "left": -1, "right": 1}[found.censored] == codes[k]


def test_a_step_without_calls_takes_what_its_neighbours_say():
    fit = isotonic(np.array([2.0, 0.0, 8.0]), np.array([10.0, 0.0, 10.0]))
    assert fit[0] == pytest.approx(0.2)
    assert 0.2 <= fit[1] <= 0.8
    assert fit[2] == pytest.approx(0.8)
    assert isotonic(np.array([0.0, 3.0]), np.array([0.0, 4.0]))[1] == pytest.approx(0.75)
    assert isotonic(np.array([3.0, 0.0]), np.array([4.0, 0.0]))[0] == pytest.approx(0.75)


def test_a_share_that_just_reaches_the_target_reaches_it():
    assert detection_threshold([1, 2], [0.5, 0.75], [10, 100]).value == 2
    third = detection_threshold([1, 2, 3], [0.1, 0.2, 0.3], [10, 10, 10], target=0.1 + 0.2)
    assert third.censored is None


@pytest.mark.parametrize(
    ("deltas", "shares", "n", "message"),
    [
        ([], [], [], "deltas: is empty"),
        ([1, 1], [0.5, 0.6], [5, 5], "different positive"),
        ([0, 1], [0.5, 0.6], [5, 5], "different positive"),
        ([1, 2], [0.5, 1.1], [5, 5], "shares lie in 0..1"),
        ([1, 2], [0.5, 0.6], [5, 0], "every step needs a call"),
        ([1, 2], [0.5], [5, 5], "equally long"),
        ([1, 2], [0.5, np.nan], [5, 5], "not finite"),
    ],
)
def test_a_ladder_that_makes_no_sense_is_refused(deltas, shares, n, message):
    with pytest.raises(InputError, match=message):
        detection_threshold(deltas, shares, n)


counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, counts)
def test_d_prime_is_the_difference_of_corrected_normal_quantiles(signal, noise):
    expected = stats.norm.ppf((signal[0] + 0.5) / (signal[1] + 1)) - stats.norm.ppf((noise[0] + 0.5) / (noise[1] + 1))
    assert d_prime(*signal, *noise) == pytest.approx(expected, abs=1e-9)


@given(counts, counts)
def test_d_prime_turns_its_sign_with_the_texts(signal, noise):
    assert d_prime(*signal, *noise) == pytest.approx(-d_prime(*noise, *signal), abs=1e-9)


@given(counts, counts)
def test_without_ties_d_prime_is_the_same_from_slot_2(signal, noise):
    hits, signals = signal
    false_alarms, noises = noise
    mirrored = d_prime(noises - false_alarms, noises, signals - hits, signals)
    assert mirrored == pytest.approx(d_prime(hits, signals, false_alarms, noises), abs=1e-9)


def test_d_prime_at_ceiling_counts_each_slot_by_itself():
    assert d_prime(10, 10, 0, 10) == pytest.approx(3.3812, abs=5e-5)


def test_d_prime_of_nothing_is_not_measurable():
    with pytest.raises(NotMeasurableError, match="slot 1 and in slot 2"):
        d_prime(0, 0, 1, 5)
    with pytest.raises(InputError, match="exceed"):
        d_prime(6, 5, 0, 5)
    with pytest.raises(InputError, match="hits"):
        d_prime(-1, 5, 0, 5)
