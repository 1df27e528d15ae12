"""Risk parity: the shares themselves are the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from assaymark.errors import InputError, NotMeasurableError
from assaymark.portfolio import equal_risk_contribution, inverse_volatility, risk_shares
from assaymark.portfolio import optimisers as risk_parity

Floats = NDArray[np.float64]


def covariance(seed: int, n: int, days: int) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.standard_t(5, (days, 1)) * rng.uniform(0.5, 1.5, n) + rng.standard_t(5, (days, n))
    return np.cov(x * rng.uniform(0.001, 0.04, n), rowvar=False)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "days"), [(183, 60), (81, 60), (20, 400), (1 + 1, 10)])
def test_every_asset_contributes_the_same(seed: int, n: int, days: int) -> None:
    cov = covariance(seed, n, days)
    found = equal_risk_contribution(cov)
    assert found.status == "optimal"
    parts = found.weights * (cov @ found.weights)
    assert np.abs(parts / parts.sum() - 1 / n).max() < 1e-9 / n
    assert found.residual is not None
    assert found.residual < 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(1e-8, 1e8))
def test_scale_and_order_change_nothing(seed: int, n: int, scale: float) -> None:
    cov = covariance(seed, n, 3 * n)
    order = np.random.default_rng(seed).permutation(n)
    for rule in (equal_risk_contribution, inverse_volatility):
        weights = rule(cov).weights
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(rule(scale * cov).weights, weights, rtol=1e-9)
        np.testing.assert_allclose(rule(cov[np.ix_(order, order)]).weights, weights[order], rtol=1e-9)


def test_the_solution_is_the_minimum_of_the_convex_form() -> None:
    cov = covariance(2, 5, 40) * 1e4

    def form(log: Floats) -> float:
        x = np.exp(log)
        return float(0.5 * x @ cov @ x - log.sum())

    other = np.exp(minimize(form, np.zeros(5), method="BFGS", options={"gtol": 1e-7}).x)
    np.testing.assert_allclose(equal_risk_contribution(cov).weights, other / other.sum(), rtol=1e-4)


def test_two_assets_and_no_correlation_have_closed_forms() -> None:
    pair = np.array([[0.04, -0.012], [-0.012, 0.01]])
    np.testing.assert_allclose(equal_risk_contribution(pair).weights, [1 / 3, 2 / 3], rtol=1e-12)
    apart = np.diag([1.0, 4.0, 25.0])
    np.testing.assert_allclose(equal_risk_contribution(apart).weights, inverse_volatility(apart).weights, rtol=1e-12)


def test_perfectly_correlated_assets_are_solved_too() -> None:
    found = equal_risk_contribution(np.ones((4, 4)))
    assert found.status == "optimal"
    np.testing.assert_allclose(found.weights, 0.25)


def test_assets_without_variance_are_left_out_and_named() -> None:
    cov = np.diag([1.0, 0.0, 4.0])
    for rule in (equal_risk_contribution, inverse_volatility):
        found = rule(cov)
        assert found.status == "zero-variance"
        np.testing.assert_allclose(found.weights, [2 / 3, 0.0, 1 / 3])
        nothing = rule(np.zeros((2, 2)))
        assert nothing.status == "zero-variance"
        assert nothing.weights.tolist() == [0.5, 0.5]


def test_a_mix_without_variance_leaves_nothing_to_equalise() -> None:
    found = equal_risk_contribution([[1.0, -1.0], [-1.0, 1.0]])
    assert found.status == "unbounded"
    np.testing.assert_allclose(found.weights, [0.5, 0.5])
    wide = np.random.default_rng(0).normal(size=(10, 60))
    cov = np.cov(wide, rowvar=False)
    mix = equal_risk_contribution(cov)
    assert mix.status == "unbounded"
    assert mix.weights @ cov @ mix.weights < 1e-14


def test_running_out_of_steps_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk_parity, "_LIMIT", 1)
    with pytest.raises(NotMeasurableError, match="did not settle"):
        equal_risk_contribution(covariance(1, 8, 30))


def test_shares_sum_to_one_and_are_undefined_without_variance() -> None:
    cov = covariance(4, 6, 30)
    assert risk_shares(np.full(6, 1 / 6), cov).sum() == pytest.approx(1)
    with pytest.raises(NotMeasurableError, match="no variance"):
        risk_shares([0.5, 0.5], [[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([0.5, np.nan], "finite"),
        ([1.5, -0.5], "negative"),
        ([0.5, np.inf], "finite"),
        ([0.5, 0.4], "must sum to 1"),
        ([1.0], "one entry per asset"),
        ([[0.5, 0.5]], "1 axes"),
    ],
)
def test_wrong_weights_are_refused(weights: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        risk_shares(weights, np.eye(2))
