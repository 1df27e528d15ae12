"""Optimisers and figures against other people's solvers and libraries, given the same inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, root
from scipy.sparse import csc_matrix

from assaymark.portfolio import (
    equal_risk_contribution,
    expected_shortfall,
    max_sharpe,
    min_variance,
    performance,
    value_at_risk,
)

Floats = NDArray[np.float64]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Days of returns and expected excess: full rank or not, with copies, leveraged copies, cash and few gains."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    days, n = draw(st.integers(2, 24)), draw(st.integers(1, 8))
    x = rng.standard_t(4, (days, n)) + draw(st.sampled_from([0.0, 1.0, 5.0])) * rng.standard_t(4, (days, 1))
    x = x * rng.uniform(0.002, 0.03, n)
    excess = x.mean(axis=0) + draw(st.sampled_from([-0.02, 0.0, 0.005])) + 1e-3 * rng.normal(size=n)
    for kind in draw(st.lists(st.sampled_from(["twin", "leveraged", "opposite", "cash"]), max_size=4)):
        j = int(rng.integers(n))
        size = {"twin": 1.0, "leveraged": 2.0, "opposite": -1.0, "cash": 0.0}[kind]
        x = np.column_stack([x, size * x[:, j]])
        excess = np.append(excess, excess[j] if kind == "twin" else excess[j] * rng.uniform(-1, 1))
    return x, excess


def sample_covariance(x: Floats) -> Floats:
    return np.atleast_2d(np.cov(x, rowvar=False))


def solved(cov: Floats, linear: Floats, total: bool) -> Floats:
    """Argmin of w'Sw/2 - q'w over w >= 0 by clarabel's interior point; weights that sum to 1 if ``total``."""
    clarabel = pytest.importorskip("clarabel", reason="clarabel, the other solver, is not installed")
    n = linear.size
    ones = np.ones((1, n)) if total else np.empty((0, n))
    cones = ([clarabel.ZeroConeT(1)] if total else []) + [clarabel.NonnegativeConeT(n)]
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-11
    rows = csc_matrix(np.vstack([ones, -np.eye(n)]))
    limits = np.append(np.ones(len(ones)), np.zeros(n))
    found = clarabel.DefaultSolver(csc_matrix(np.triu(cov)), -linear, rows, limits, cones, chosen).solve()
    return np.asarray(found.x)


def sharpe(w: Floats, excess: Floats, cov: Floats) -> float:
    return float(excess @ w / np.sqrt(w @ cov @ w))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_maximum_sharpe_meets_its_conditions_or_names_why_not(problem: tuple[Floats, Floats]) -> None:
    x, excess = problem
    cov = sample_covariance(x)
    found = max_sharpe(excess, cov)
    w, sizes = found.weights, np.sqrt(np.diag(cov))
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)
    moves = (x - x.mean(axis=0)) / max(sizes.max(), 1e-300)
    gains = excess / np.abs(excess).max()
    # A mix without variance that earns more than cash: then, and only then, there is no largest ratio.
    ray = linprog(-gains, A_eq=np.vstack([moves, np.ones(w.size)]), b_eq=[0.0] * len(x) + [1.0], bounds=(0, None))
    endless = ray.status == 0 and float(ray.fun) < -1e-6  # type: ignore[arg-type]  # a number where it was solved
    if found.status in ("unbounded", "zero-variance"):
        assert endless
        assert np.abs(moves @ w).max() < 1e-6
        assert excess @ w > 0
    elif found.status == "no-positive-excess":
        assert excess[sizes > 0].max(initial=-1.0) <= 0
        assert np.count_nonzero(w) == 1
    else:
        assert not endless
        live = sizes > 0
        slope = (excess - cov @ w * (excess @ w) / (w @ cov @ w))[live] / sizes[live]
        scale = np.abs(excess[live] / sizes[live]).max()
        assert slope.max() < 1e-8 * scale
        assert np.abs(slope[w[live] > 0]).max() < 1e-8 * scale
        assert not w[~live].any()


@settings(max_examples=100, deadline=None)
@given(problems())
def test_least_variance_meets_its_conditions(problem: tuple[Floats, Floats]) -> None:
    x = problem[0]
    cov = sample_covariance(x)
    found = min_variance(cov)
    w = found.weights
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)
    risk = float(w @ cov @ w)
    if found.status == "zero-variance":
        assert risk <= 1e-12 * np.diag(cov).max()
    else:
        slope = cov @ w / risk - 1
        assert slope.min() > -1e-8
        assert np.abs(slope[w > 0]).max() < 1e-8


@pytest.mark.parametrize(("n", "days"), [(12, 200), (40, 60), (60, 30), (183, 60)])
@pytest.mark.parametrize("seed", range(3))
def test_optimisers_against_an_interior_point_solver(seed: int, n: int, days: int) -> None:
    rng = np.random.default_rng([seed, n])
    factor = rng.standard_t(5, (days, 1)) * rng.uniform(0.3, 1.5, n)
    x = 0.01 * (factor + rng.standard_t(5, (days, n)) * rng.uniform(0.3, 3, n)) + 4e-4
    x[:, n // 2] = x[:, 0]
    cov, excess = sample_covariance(x) * 1e4, x.mean(axis=0) * 1e2
    other = solved(cov, excess, total=False)
    found = max_sharpe(excess, cov)
    assert found.status in ("optimal", "duplicates")
    assert sharpe(found.weights, excess, cov) == pytest.approx(sharpe(other, excess, cov), rel=1e-8)
    calm, still = min_variance(cov).weights, solved(cov, np.zeros(n), total=True)
    assert calm @ cov @ calm == pytest.approx(still @ cov @ still, rel=1e-7)
    # Twins make the weights ambiguous, not their sum.
    for own, theirs in ((found.weights, other / other.sum()), (calm, still)):
        merged = [np.append(np.delete(w, [0, n // 2]), w[0] + w[n // 2]) for w in (own, theirs)]
        np.testing.assert_allclose(merged[0], merged[1], atol=1e-5)


@pytest.mark.parametrize(("n", "days"), [(3, 30), (12, 60), (30, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_equal_risk_against_a_root_finder(seed: int, n: int, days: int) -> None:
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(days, 1)) + rng.normal(size=(days, n)) * rng.uniform(0.5, 2, n)
    cov = sample_covariance(x)

    def unequal(amounts: Floats) -> Floats:
        return cov @ amounts - 1 / amounts

    def slopes(amounts: Floats) -> Floats:
        return cov + np.diag(1 / amounts**2)

    other = root(unequal, 1 / np.sqrt(n * np.diag(cov)), jac=slopes, method="hybr", options={"xtol": 1e-14})
    assert (other.x > 0).all()
    w = equal_risk_contribution(cov).weights
    np.testing.assert_allclose(w, other.x / other.x.sum(), rtol=1e-9)
    np.testing.assert_allclose(w * (cov @ w) / (w @ cov @ w), 1 / n, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_figures_against_empyrical_and_where_it_differs(seed: int) -> None:
    empyrical = pytest.importorskip("empyrical", reason="empyrical-reloaded, the other library, is not installed")
    returns = 3e-4 + 0.01 * np.random.default_rng(seed).standard_t(4, 500)
    found = performance(np.append(1.0, np.cumprod(1 + returns)), rf=0.04, periods=252)
    assert found.total_return == pytest.approx(empyrical.cum_returns_final(returns), abs=1e-10)
    assert found.cagr == pytest.approx(empyrical.annual_return(returns), abs=1e-10)
    assert found.volatility == pytest.approx(empyrical.annual_volatility(returns), rel=1e-10)
    assert found.sharpe == pytest.approx(empyrical.sharpe_ratio(returns, risk_free=0.04 / 252), abs=1e-10)
    assert found.max_drawdown == pytest.approx(empyrical.max_drawdown(returns), abs=1e-10)
    assert found.calmar == pytest.approx(empyrical.calmar_ratio(returns), abs=1e-10)
    assert value_at_risk(returns) == pytest.approx(-empyrical.value_at_risk(returns, cutoff=0.05), abs=1e-12)
    assert expected_shortfall(returns) == pytest.approx(
        -empyrical.conditional_value_at_risk(returns, cutoff=0.05), abs=1e-12
    )
    # Its one required return is subtracted above and is the threshold below; ours subtracts rf above and uses 0 below.
    downside = empyrical.downside_risk(returns, required_return=0)
    assert found.sortino == pytest.approx((252 * returns.mean() - 0.04) / downside, abs=1e-10)
    theirs = empyrical.sortino_ratio(returns, required_return=0.04 / 252)
    assert found.sortino != pytest.approx(theirs, rel=1e-3)
    assert found.sortino * downside == pytest.approx(theirs * empyrical.downside_risk(returns, 0.04 / 252), abs=1e-10)
    without = performance(np.append(1.0, np.cumprod(1 + returns)), rf=0.0)
    assert without.sortino == pytest.approx(empyrical.sortino_ratio(returns, required_return=0), abs=1e-10)
