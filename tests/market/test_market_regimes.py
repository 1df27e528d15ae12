"""Regimes against a day-by-day definition and on planted paths; pairwise-complete correlation against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market import class_correlations, class_index, drawdown, pairwise_correlation, regimes, universe


def regime_by_definition(path: np.ndarray, crisis: float, window: int, fast: int, slow: int, band: float) -> str:
    if 1 - path[-1] / max(path[-window:]) > crisis:
        return "crisis"
    if path.size < slow:
        return "undefined"
    ratio = np.mean(path[-fast:]) / np.mean(path[-slow:])
    if ratio > 1 + band:
        return "bull"
    return "bear" if ratio < 1 - band else "sideways"


def walk(seed: int, n: int, size: float) -> np.ndarray:
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).standard_normal(n) * size))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 90), st.sampled_from([0.002, 0.01, 0.03]), st.integers(2, 9))
def test_equals_the_definition_day_by_day(seed, n, size, window):
    path = walk(seed, n, size)
    options = {"crisis": 0.05, "window": window, "fast": 5, "slow": 12, "band": 0.01}
    found = regimes(path, **options)
    wanted = [regime_by_definition(path[: day + 1], *options.values()) for day in range(n)]
    assert found.tolist() == wanted


@given(st.integers(0, 1000), st.integers(210, 400))
@settings(max_examples=20, deadline=None)
def test_later_days_change_no_earlier_label(seed, n):
    path = walk(seed, n, 0.02)
    np.testing.assert_array_equal(regimes(path)[:205], regimes(path[:205]))


def test_drawdown_forgets_a_peak_after_the_window():
    path = np.array([100.0, *[80.0] * 252])
    found = drawdown(path)
    assert found[251] == pytest.approx(0.2)
    assert found[252] == 0


def test_without_a_band_no_day_is_sideways():
    path = walk(1, 900, 0.005)
    assert "sideways" not in regimes(path, band=0.0)[199:]
    assert (regimes(path)[199:] == "sideways").mean() > 0.5


def test_a_fall_of_sixteen_percent_is_a_crisis_and_of_fourteen_is_not():
    flat = np.full(300, 100.0)
    assert regimes(np.append(flat, 84.0))[-1] == "crisis"
    assert regimes(np.append(flat, 86.0))[-1] == "sideways"


def test_a_gap_in_the_index_is_refused():
    with pytest.raises(InputError, match="positive index"):
        regimes(np.array([1.0, np.nan]))


def test_class_index_skips_missing_members():
    closes = np.array([[100.0, np.nan], [110.0, 50.0], [121.0, 45.0], [np.nan, np.nan]])
    found = class_index(closes, universe()[:2])["EQ"]
    np.testing.assert_allclose(found, [100, 110, 110, 110])


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
