"""Pairwise-complete correlation against pandas, to 1e-12."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import NotMeasurableError
from assaymark.market.instruments import universe
from assaymark.market.regimes import class_correlations, pairwise_correlation


def with_holes(seed: int, days: int, n: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = (rng.standard_normal((days, n)) + rng.standard_normal(n)) * 10.0 ** rng.uniform(-5, 1, n)
    found[rng.random(found.shape) < share] = np.nan
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 80), st.integers(1, 12), st.floats(0, 0.9))
def test_equals_pandas(seed, days, n, share):
    returns = with_holes(seed, days, n, share)
    wanted = pd.DataFrame(returns).corr(min_periods=2).to_numpy()
    found = pairwise_correlation(returns)
    off = ~np.eye(n, dtype=bool)  # two points are always perfectly correlated; the diagonal is 1 by definition
    np.testing.assert_array_equal(np.isnan(found.values[off]), np.isnan(wanted[off]))
    np.testing.assert_allclose(found.values[off], wanted[off], atol=1e-12, rtol=0)


def test_equals_pandas_on_late_listings_and_the_whole_size():
    returns = with_holes(3, 2000, 60, 0.02)
    returns[:1500, 5], returns[1700:, 6] = np.nan, np.nan
    wanted = pd.DataFrame(returns).corr().to_numpy()
    np.testing.assert_allclose(pairwise_correlation(returns).values, wanted, atol=1e-12, rtol=0)


def test_a_column_constant_on_the_common_days_is_undefined():
    returns = np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [np.nan, 5.0], [np.nan, 2.0]])
    found = pairwise_correlation(returns)
    assert not found.defined[0, 1]
    assert np.isnan(found.values[0, 1])
    assert found.defined[1, 1]
    assert found.overlap[0, 1] == 3


def test_nearly_constant_on_the_common_days_keeps_its_digits():
    rng = np.random.default_rng(5)
    returns = rng.standard_normal((200, 2))
    returns[:50, 0] = 3.0 + 1e-7 * rng.standard_normal(50)
    returns[50:, 1] = np.nan
    wanted = np.corrcoef(returns[:50].T)[0, 1]
    assert pairwise_correlation(returns).values[0, 1] == pytest.approx(wanted, abs=1e-8)


@given(st.integers(0, 1000), st.integers(3, 30))
def test_scale_and_shift_change_nothing(seed, days):
    returns = with_holes(seed, days, 4, 0.1)
    there = pairwise_correlation(returns)
    moved = pairwise_correlation(returns * np.array([2.0, 3.0, 0.5, 100.0]) + 1.0)
    np.testing.assert_allclose(moved.values[there.defined], there.values[there.defined], atol=1e-6)


def test_too_few_common_days():
    assert not pairwise_correlation(np.ones((1, 2))).defined.any()
    assert not pairwise_correlation(with_holes(0, 10, 3, 0.0), min_overlap=11).defined.any()


def test_class_means_leave_out_the_diagonal():
    listings = (universe()[0], universe()[1], universe()[130])
    returns = with_holes(1, 50, 3, 0.0)
    values = pairwise_correlation(returns).values
    found = class_correlations(pairwise_correlation(returns), listings)
    assert found["EQ", "EQ"] == pytest.approx(values[0, 1])
    assert found["BO", "EQ"] == pytest.approx(values[2, :2].mean())
    assert ("BO", "BO") not in found


def test_nothing_defined_is_an_error():
    with pytest.raises(NotMeasurableError, match="common days"):
        class_correlations(pairwise_correlation(np.ones((5, 2))), universe()[:2])
