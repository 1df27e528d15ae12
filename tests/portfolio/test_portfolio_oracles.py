"""Optimisers and figures against other people's solvers and libraries, given the same inputs."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csc_matrix

from assaymark.errors import NotMeasurableError
from assaymark.portfolio import (
    STRATEGIES, backtest, equal_risk_contribution, expected_shortfall, inverse_volatility, max_sharpe, min_variance,
    performance, risk_shares, schedule, value_at_risk,
)  # fmt: skip
from assaymark.portfolio import optimisers as risk_parity

Floats = NDArray[np.float64]


@st.composite
def problems(draw) -> tuple[Floats, Floats]:
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


def sample_covariance(x) -> Floats:
    return np.atleast_2d(np.cov(x, rowvar=False))


def solved(cov, linear, total) -> Floats:
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


def sharpe(w, excess, cov) -> float:
    return float(excess @ w / np.sqrt(w @ cov @ w))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_maximum_sharpe_meets_its_conditions_or_names_why_not(problem):
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
def test_least_variance_meets_its_conditions(problem):
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
def test_optimisers_against_an_interior_point_solver(seed, n, days):
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


@pytest.mark.parametrize("seed", range(4))
def test_figures_against_empyrical_and_where_it_differs(seed):
    empyrical = pytest.importorskip("empyrical", reason="empyrical-reloaded, the other library, is not installed")
    returns = 3e-4 + 0.01 * np.random.default_rng(seed).standard_t(4, 500)
    found = performance(np.append(1.0, np.cumprod(1 + returns)), rf=0.04, periods=252)
    mine = (found.total_return, found.cagr, found.max_drawdown, found.calmar)
    theirs = (getattr(empyrical, name)(returns) for name in
              ("cum_returns_final", "annual_return", "max_drawdown", "calmar_ratio"))  # fmt: skip
    assert mine == pytest.approx(tuple(theirs), abs=1e-10)
    assert found.volatility == pytest.approx(empyrical.annual_volatility(returns), rel=1e-10)
    assert found.sharpe == pytest.approx(empyrical.sharpe_ratio(returns, risk_free=0.04 / 252), abs=1e-10)
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


# Risk parity: the shares themselves are the oracle


def covariance(seed, n, days) -> Floats:
    rng = np.random.default_rng(seed)
    x = rng.standard_t(5, (days, 1)) * rng.uniform(0.5, 1.5, n) + rng.standard_t(5, (days, n))
    return np.cov(x * rng.uniform(0.001, 0.04, n), rowvar=False)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "days"), [(183, 60), (81, 60), (20, 400), (1 + 1, 10)])
def test_every_asset_contributes_the_same(seed, n, days):
    cov = covariance(seed, n, days)
    found = equal_risk_contribution(cov)
    assert found.status == "optimal"
    parts = found.weights * (cov @ found.weights)
    assert np.abs(parts / parts.sum() - 1 / n).max() < 1e-9 / n
    assert found.residual is not None
    assert found.residual < 1e-9
    assert risk_shares(np.full(n, 1 / n), cov).sum() == pytest.approx(1)


def test_closed_forms_perfect_correlation_and_assets_without_variance():
    pair = np.array([[0.04, -0.012], [-0.012, 0.01]])
    np.testing.assert_allclose(equal_risk_contribution(pair).weights, [1 / 3, 2 / 3], rtol=1e-12)
    apart = np.diag([1.0, 4.0, 25.0])
    np.testing.assert_allclose(equal_risk_contribution(apart).weights, inverse_volatility(apart).weights, rtol=1e-12)
    found = equal_risk_contribution(np.ones((4, 4)))
    assert found.status == "optimal"
    np.testing.assert_allclose(found.weights, 0.25)
    for rule in (equal_risk_contribution, inverse_volatility):
        found, nothing = rule(np.diag([1.0, 0.0, 4.0])), rule(np.zeros((2, 2)))
        assert found.status == nothing.status == "zero-variance"
        np.testing.assert_allclose(found.weights, [2 / 3, 0.0, 1 / 3])
        assert nothing.weights.tolist() == [0.5, 0.5]


def test_a_mix_without_variance_leaves_nothing_to_equalise_and_running_out_of_steps_is_an_error(monkeypatch):
    found = equal_risk_contribution([[1.0, -1.0], [-1.0, 1.0]])
    assert found.status == "unbounded"
    np.testing.assert_allclose(found.weights, [0.5, 0.5])
    wide = np.random.default_rng(0).normal(size=(10, 60))
    cov = np.cov(wide, rowvar=False)
    mix = equal_risk_contribution(cov)
    assert mix.status == "unbounded"
    assert mix.weights @ cov @ mix.weights < 1e-14
    monkeypatch.setattr(risk_parity, "_LIMIT", 1)
    with pytest.raises(NotMeasurableError, match="did not settle"):
        equal_risk_contribution(covariance(1, 8, 30))


# Classical strategies: from windows to weights, and when they trade

NAMES = ["equity", "equity", "bond", "commodity", "crypto", "cash"]


def window(seed, days=60) -> Floats:
    rng = np.random.default_rng(seed)
    return 0.001 + 0.01 * rng.standard_t(5, (days, 1)) + 0.02 * rng.standard_t(5, (days, 6))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_weights_sum_and_gaps_are_left_out_and_named(name, seed):
    returns = window(seed)
    returns[7, 1] = np.nan
    returns[:, 4] = np.nan
    choice = STRATEGIES[name].choose(returns, NAMES)
    assert choice.left_out == (1, 4)
    assert choice.weights.sum() == pytest.approx(1)
    assert choice.weights.min() >= 0
    assert not choice.weights[[1, 4]].any()
    keep = [0, 2, 3, 5]
    alone = STRATEGIES[name].choose(returns[:, keep], [NAMES[i] for i in keep])
    np.testing.assert_allclose(choice.weights[keep], alone.weights, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.permutations(range(6)), st.sampled_from(list(STRATEGIES)))
def test_the_order_of_assets_does_not_matter(seed, order, name):
    returns = window(seed)
    weights = STRATEGIES[name].choose(returns, NAMES).weights
    turned = STRATEGIES[name].choose(returns[:, order], [NAMES[i] for i in order]).weights
    np.testing.assert_allclose(turned, weights[order], atol=1e-9)


def test_plain_rules_by_hand():
    returns = window(0)
    assert STRATEGIES["equal-weight"].choose(returns, NAMES).weights.tolist() == pytest.approx([1 / 6] * 6)
    assert STRATEGIES["60/40"].choose(returns, NAMES).weights.tolist() == [0.3, 0.3, 0.4, 0, 0, 0]
    best = int(np.argmax((1 + returns).prod(axis=0)))
    assert STRATEGIES["momentum"].choose(returns, NAMES).weights[best] == 1.0
    flat = np.zeros((5, 4))
    assert STRATEGIES["momentum"].choose(flat, NAMES[:4]).weights.tolist() == [0.25] * 4


def test_rules_of_risk_keep_their_promise():
    returns = window(1)
    cov = np.cov(returns, rowvar=False)
    parity = STRATEGIES["equal-risk-contribution"].choose(returns, NAMES).weights
    np.testing.assert_allclose(risk_shares(parity, cov), 1 / 6, rtol=1e-9)
    plain = STRATEGIES["inverse-volatility"].choose(returns, NAMES).weights
    np.testing.assert_allclose(plain, inverse_volatility(cov).weights)
    calm = STRATEGIES["minimum-variance"].choose(returns, NAMES).weights
    assert calm @ cov @ calm <= min(w @ cov @ w for w in (parity, plain, *np.eye(6)))
    # without a winner maximum Sharpe is equal weight
    choice = STRATEGIES["maximum-sharpe"].choose(window(2) - 0.1, NAMES)
    assert choice.status == "no-positive-excess"
    assert choice.weights.tolist() == pytest.approx([1 / 6] * 6)
    assert STRATEGIES["maximum-sharpe"].choose(window(2) + 0.01, NAMES).status == "optimal"


def test_a_signal_sees_nothing_later_and_trades_at_the_next_close():
    returns = np.vstack([window(s) for s in range(3)])
    targets, choices = schedule("minimum-variance", returns, NAMES, [59, 100, 179])
    assert [day for day, _ in choices] == [60, 101]
    changed = returns.copy()
    changed[60:] = 0.3 * np.random.default_rng(9).random(changed[60:].shape)
    again, _ = schedule("minimum-variance", changed, NAMES, [59, 100, 179])
    np.testing.assert_array_equal(again[:101], targets[:101])
    assert not np.array_equal(again[101], targets[101])
    same_day, _ = schedule("minimum-variance", returns, NAMES, [59], delay=0)
    np.testing.assert_array_equal(same_day[59], targets[60])
    assert backtest(targets, returns).days.tolist() == [60, 101]
    targets, choices = schedule(STRATEGIES["buy-and-hold"], returns, NAMES, [59, 80, 100])  # trades once
    assert ([day for day, _ in choices], np.count_nonzero(backtest(targets, returns).turnover)) == ([60], 1)
