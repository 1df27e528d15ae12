"""The estimate that leave-one-cluster-out gives: against Student's test, brute force, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import Estimate
from assaymark.metrology.estimates import (
    cluster_codes,
    cluster_mean,
    jackknife_estimate,
    leave_out,
    neighbour_blocks,
    scores_of,
    student_estimate,
)


def test_equal_clusters_are_students_test_on_cluster_means():
    values = np.random.default_rng(8).normal(0.2, 1, (6, 10))
    found = cluster_mean(values.ravel(), np.repeat(np.arange(6), 10), level=0.9)
    expected = stats.ttest_1samp(values.mean(axis=1), 0)
    ends = expected.confidence_interval(0.9)
    assert (found.p, found.df, found.state) == (pytest.approx(expected.pvalue, abs=1e-12), 5, "ok")
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert found.p_up == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0, alternative="greater").pvalue)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_unequal_clusters_are_left_out_one_by_one(sizes, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(seed).normal(size=codes.size)
    without = np.array([values[codes != g].mean() for g in range(len(sizes))])
    g = len(sizes)
    se = np.sqrt((g - 1) / g * ((without - values.mean()) ** 2).sum())
    found = cluster_mean(values, codes)
    assert (found.estimate, found.se) == pytest.approx((values.mean(), se), abs=1e-12)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(values.mean() / se), g - 1), abs=1e-12)


@pytest.mark.parametrize(
    ("value", "p", "p_up"), [(0.5, 2**-3, 2**-4), (-0.5, 2**-3, 1.0), (0.0, 1.0, 1.0), (9e-10, 1.0, 1.0)]
)
def test_where_all_clusters_agree_the_sign_test_speaks(value, p, p_up):
    found = cluster_mean(np.full(8, value), np.repeat(np.arange(4), 2))
    assert (found.estimate, found.df, found.low, found.high) == (pytest.approx(value), 3, None, None)
    assert (found.p, found.p_up, found.state) == (p, p_up, "zero variance: sign test")


def test_one_cluster_says_nothing():
    expected = Estimate(pytest.approx(0.6), None, 0, None, None, 1.0, 1.0, "undefined: one cluster, needs two")
    assert cluster_mean(np.array([0.5, 0.7]), np.zeros(2, dtype=int)) == expected
    assert jackknife_estimate(0.6, np.zeros(0)) == expected


def test_a_zero_width_interval_is_never_given_for_large_numbers_either():
    found = student_estimate(1e6, 1e-7, 4)
    assert (found.low, found.state.partition(":")[0]) == (None, "zero variance")
    assert student_estimate(0.1, 1e-7, 4).low is not None


@given(st.floats(-5, 5), st.floats(1e-3, 5), st.integers(1, 60))
def test_both_sides_of_a_test_add_up(estimate, se, df):
    up, down = student_estimate(estimate, se, df), student_estimate(-estimate, se, df)
    assert up.p_up + down.p_up == pytest.approx(1)
    assert up.p == pytest.approx(2 * min(up.p_up, down.p_up))
    assert (up.low > 0 or up.high < 0) == (up.p < 0.05)


@pytest.mark.parametrize(
    ("clusters", "blocks", "last"), [(2, 1, 2), (3, 1, 3), (8, 4, 2), (9, 3, 3), (15, 5, 3), (16, 4, 4), (18, 4, 6),
                                     (20, 5, 4), (21, 4, 6), (47, 9, 7), (48, 8, 6), (104, 8, 13), (110, 8, 19)]
)  # fmt: skip
def test_neighbours_are_left_out_in_blocks(clusters, blocks, last):
    codes = neighbour_blocks(clusters)
    assert (codes[-1] + 1, (codes == codes[-1]).sum()) == (blocks, last)
    assert np.isin(np.diff(codes), (0, 1)).all()


@pytest.mark.parametrize("consecutive", [False, True])
def test_what_is_left_out_is_left_out(consecutive):
    values = np.random.default_rng(1).normal(size=(11, 2))
    units = neighbour_blocks(11) if consecutive else np.arange(11)
    expected = [values.sum(axis=0), *(values[units != unit].sum(axis=0) for unit in range(units[-1] + 1))]
    np.testing.assert_allclose(leave_out(values, consecutive), expected)


def test_clusters_are_numbered_as_they_come():
    assert cluster_codes("", ["week 9", "week 9", "week 10", "week 9"], 4).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0, "a"], "numbers"), ([[1.0], [1.0, 2.0]], "rectangular"), ([np.inf], "finite"), ([], "at least one"),
     ([[1.0]], "1 axis"), ([{}], "numbers")],
)  # fmt: skip
def test_scores_say_what_is_wrong(values, message):
    with pytest.raises(InputError, match=message):
        scores_of("f", "scores", values, 1)


def test_a_missing_score_may_be_none_or_nan():
    np.testing.assert_array_equal(scores_of("f", "scores", [1, None, float("nan")], 1), [1, np.nan, np.nan])
