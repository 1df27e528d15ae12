"""Regimes against a day-by-day definition, and on planted paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.market.instruments import universe
from assaymark.market.regimes import class_index, drawdown, regimes


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
