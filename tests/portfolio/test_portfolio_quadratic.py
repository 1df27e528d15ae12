"""The non-negative quadratic kernel, and the two portfolios it gives, against oracles that share no code with it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from assaymark.errors import NotMeasurableError
from assaymark.portfolio import (
    STATUSES,
    Solution,
    equal_risk_contribution,
    inverse_volatility,
    max_sharpe,
    min_variance,
)  # fmt: skip
from assaymark.portfolio import optimisers as kernel

Floats = NDArray[np.float64]


def market(seed, n=183, days=60) -> tuple[Floats, Floats]:
    """Mean and covariance of fat-tailed returns with one factor: singular where days <= n."""
    rng = np.random.default_rng(seed)
    factor = 0.01 * rng.standard_t(5, (days, 1)) * rng.uniform(0.2, 1.5, n)
    x = 3e-4 + factor + rng.standard_t(5, (days, n)) * rng.uniform(0.001, 0.03, n)
    return x.mean(axis=0), np.cov(x, rowvar=False)


def sharpe_violation(w, q, cov) -> float:
    """Return the violation of the conditions for maximal Sharpe, which are sufficient for a positive excess."""
    sizes = np.sqrt(np.diag(cov))
    slope = (q - cov @ w * (q @ w) / (w @ cov @ w)) / sizes / np.abs(q / sizes).max()
    return float(max(slope.max(), np.abs(slope[w > 0]).max()))


def variance_violation(w, cov) -> float:
    """Return the violation of the conditions for least variance, relative to the variance."""
    slope = cov @ w / (w @ cov @ w) - 1
    return float(max((-slope).max(), np.abs(slope[w > 0]).max()))


def by_supports(cov, q) -> float:
    """The least of y'Sy/2 - q'y over y >= 0 by trying every support (-inf: falls without end)."""
    n = q.size
    ray = linprog(np.zeros(n), A_eq=np.vstack([cov, q]), b_eq=np.append(np.zeros(n), 1.0), bounds=(0, None))
    if ray.status == 0:
        return -np.inf
    least = 0.0
    for size in range(1, n + 1):
        for held in map(list, combinations(range(n), size)):
            y, *_ = np.linalg.lstsq(cov[np.ix_(held, held)], q[held], rcond=None)
            if (y >= 0).all() and np.allclose(cov[np.ix_(held, held)] @ y, q[held]):
                least = min(least, -0.5 * float(q[held] @ y))
    return least


whole = st.integers(2, 7).flatmap(
    lambda n: st.tuples(
        st.integers(1, 8).flatmap(lambda days: arrays(np.int64, (days, n), elements=st.integers(-3, 3))),
        arrays(np.int64, n, elements=st.integers(-3, 6)),
    )
)


@settings(max_examples=150, deadline=None)
@given(whole)
def test_small_problems_against_all_supports(problem):
    x, mu = problem
    cov, q = (x.T @ x).astype(float), mu.astype(float)
    found = max_sharpe(q, cov)
    w = found.weights
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    least = by_supports(cov, q)
    if found.status in ("optimal", "duplicates"):
        # The best Sharpe ratio r and the least value v of the quadratic go together: v = -r^2 / 2.
        assert least == pytest.approx(-0.5 * (q @ w) ** 2 / (w @ cov @ w), rel=1e-8)
    elif found.status in ("unbounded", "zero-variance"):
        assert least == -np.inf
        assert w @ cov @ w == pytest.approx(0, abs=1e-9)
        assert q @ w > 0
    else:
        assert found.status == "no-positive-excess"
        assert q[np.diag(cov) > 0].max(initial=-1) <= 0


@settings(max_examples=100, deadline=None)
@given(whole)
def test_least_variance_against_nnls(problem):
    x = problem[0].astype(float)
    found = min_variance(x.T @ x)
    # min |Xw|^2 with sum 1 is the limit of least squares with a heavy row of ones.
    heavy = 1e5
    other, _ = nnls(np.vstack([x, np.full(x.shape[1], heavy)]), np.append(np.zeros(x.shape[0]), heavy))
    other /= other.sum()
    w = found.weights
    assert np.sum((x @ w) ** 2) == pytest.approx(np.sum((x @ other) ** 2), abs=1e-6)
    assert (found.status == "zero-variance") == (np.sum((x @ w) ** 2) < 1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "days"), [(183, 60), (40, 300), (81, 60)])
def test_conditions_hold_at_real_sizes(seed, n, days):
    mu, cov = market(seed, n, days)
    best, calm = max_sharpe(mu, cov, rf=0.04 / 252), min_variance(cov)
    assert best.status == calm.status == "optimal"
    assert sharpe_violation(best.weights, mu - 0.04 / 252, cov) < 1e-9
    assert variance_violation(calm.weights, cov) < 1e-9
    assert best.residual is not None
    assert best.residual < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_no_common_factor_and_few_days_leave_a_mix_without_variance(seed):
    x = np.random.default_rng(seed).normal(size=(20, 120))
    cov = np.cov(x, rowvar=False)
    moves = x - x.mean(axis=0)
    mix = linprog(np.zeros(120), A_eq=np.vstack([moves, np.ones(120)]), b_eq=[0.0] * 20 + [1.0], bounds=(0, None))
    assert mix.status == 0
    calm = min_variance(cov)
    assert calm.status == "zero-variance"
    assert np.abs(moves @ calm.weights).max() < 1e-7
    best = max_sharpe(np.full(120, 0.01), cov)
    assert best.status == "unbounded"
    assert np.abs(moves @ best.weights).max() < 1e-7


def test_support_that_must_pass_the_rank():
    # Rank 2. Assets 0 and 1 are taken first and span it; asset 2 adds no risk direction, yet belongs in the optimum.
    x = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, -1.0]])
    cov = x.T @ x
    q = np.array([2.0, 2.0, 5.0, 0.1])
    found = max_sharpe(q, cov)
    assert found.status == "optimal"
    assert sharpe_violation(found.weights, q, cov) < 1e-12
    assert -0.5 * (q @ found.weights) ** 2 / (found.weights @ cov @ found.weights) == pytest.approx(by_supports(cov, q))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(4, 30))
def test_planted_optimum_of_low_rank(seed, rank, n):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rank, n))
    x[0] = np.abs(x[0]) + 0.1
    x /= np.linalg.norm(x, axis=0)
    cov = x.T @ x
    planted = np.where(rng.random(n) < 0.5, rng.exponential(size=n), 0.0)
    planted[0] = 1.0
    linear = cov @ planted - np.where(planted > 0, 0.0, rng.exponential(size=n))
    assume(np.abs(linear).max() > 1e-3)
    found = kernel.minimise(cov, linear)
    value = 0.5 * planted @ cov @ planted - linear @ planted
    assert found.bounded
    assert found.residual < 1e-9
    assert 0.5 * found.point @ cov @ found.point - linear @ found.point == pytest.approx(value, rel=1e-8, abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(1e-6, 1e6), st.floats(1e-8, 1e8))
def test_scale_and_order_of_assets_change_nothing(seed, n, a, b):
    mu, cov = market(seed, n, 40)
    order = np.random.default_rng(seed).permutation(n)
    turned = cov[np.ix_(order, order)]
    for rule in (min_variance, equal_risk_contribution, inverse_volatility):
        weights = rule(cov).weights
        np.testing.assert_allclose(rule(b * cov).weights, weights, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(rule(turned).weights, weights[order], rtol=1e-9, atol=1e-10)
    assume((mu > 1e-4).any())
    best = max_sharpe(mu, cov).weights
    np.testing.assert_allclose(max_sharpe(a * mu, b * cov).weights, best, atol=1e-10)
    np.testing.assert_allclose(max_sharpe(mu[order], turned).weights, best[order], atol=1e-10)


def test_twins_share_equally_wherever_they_stand():
    mu, cov = market(3, 10, 40)
    held = int(np.argmax(max_sharpe(mu, cov).weights))
    one = max_sharpe(mu, cov)
    places = [*range(10), held, held]
    many = max_sharpe(mu[places], cov[np.ix_(places, places)])
    assert many.status == "duplicates"
    np.testing.assert_allclose(many.weights[[held, 10, 11]], one.weights[held] / 3, atol=1e-12)
    calm = min_variance(cov[np.ix_([*range(10), *range(10)], [*range(10), *range(10)])])
    assert calm.status == "duplicates"
    np.testing.assert_allclose(calm.weights[:10], min_variance(cov).weights / 2, atol=1e-12)


def test_an_unheld_twin_and_a_perfect_leveraged_copy_are_no_duplicates():
    assert max_sharpe([0.1, -0.1, -0.1], [[1, 0, 0], [0, 1, 1], [0, 1, 1]]).status == "optimal"
    assert min_variance([[1.0, 2.0], [2.0, 4.0]]).status == "optimal"
    # The same risk with less return is no twin.
    assert max_sharpe([0.2, 0.1], [[1.0, 1.0], [1.0, 1.0]]).weights.tolist() == [1.0, 0.0]


def test_each_status_is_reached():
    eye = np.eye(2)
    cash = np.diag([0.04, 0.0])
    hedge = np.array([[1.0, -1.0], [-1.0, 1.0]])
    reached: dict[str, Solution] = {
        "optimal": max_sharpe([0.1, 0.1], eye), "duplicates": max_sharpe([0.1, 0.1], np.ones((2, 2))),
        "no-positive-excess": max_sharpe([-0.1, -0.2], np.diag([1.0, 25.0])),
        "zero-variance": max_sharpe([0.1, 0.05], cash, rf=0.04), "unbounded": max_sharpe([0.1, 0.1], hedge),
        "empty": max_sharpe([0.1, 0.1], eye, allowed=[False, False]),
    }  # fmt: skip
    assert {name: found.status for name, found in reached.items()} == {name: name for name in STATUSES}
    weights = {name: found.weights.tolist() for name, found in reached.items()}
    assert weights["no-positive-excess"] == [0.0, 1.0]  # -0.2 / 5 beats -0.1 / 1
    assert weights["zero-variance"] == [0.0, 1.0]
    assert weights["unbounded"] == [0.5, 0.5]
    assert weights["empty"] == [0.5, 0.5]
    assert min_variance(cash).weights.tolist() == [0.0, 1.0]
    assert min_variance(hedge).status == "zero-variance"
    assert min_variance(np.zeros((3, 3))).weights.tolist() == pytest.approx([1 / 3] * 3)


def test_cash_that_earns_the_risk_free_rate_is_no_arbitrage():
    rate = 0.04 / 252
    found = max_sharpe([0.001, np.mean([rate] * 7)], np.diag([1e-4, 0.0]), rf=rate)
    assert (found.status, found.weights.tolist()) == ("optimal", [1.0, 0.0])
    only = max_sharpe([rate, rate / 2], np.zeros((2, 2)), rf=rate)
    assert (only.status, only.weights.tolist()) == ("no-positive-excess", [1.0, 0.0])


def test_what_is_not_allowed_is_not_held():
    mu, cov = market(1, 20, 60)
    allowed = np.arange(20) % 2 == 0
    inside = max_sharpe(mu[allowed], cov[np.ix_(allowed, allowed)])
    found = max_sharpe(mu, cov, allowed=allowed)
    np.testing.assert_allclose(found.weights[allowed], inside.weights)
    assert not found.weights[~allowed].any()
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0] = 1.0


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-8, 0.0])
@pytest.mark.parametrize("seed", range(40))
def test_almost_singular_matrices_give_the_optimum_or_a_mix_without_risk(noise, seed):
    rng = np.random.default_rng(seed)
    n, days, rank = rng.integers([3, 2, 1], [40, 60, 4]).tolist()
    x = rng.normal(size=(days, rank)) @ rng.normal(0.5, 1, (rank, n)) + noise * rng.normal(size=(days, n))
    x = x[:, rng.integers(0, n, n)]
    cov, mu = np.cov(x, rowvar=False), x.mean(axis=0) + 1e-3 * rng.normal(size=n)
    best, calm = max_sharpe(mu, cov), min_variance(cov)
    for found in (best, calm):
        assert found.weights.min() >= 0
        assert found.weights.sum() == pytest.approx(1)
    sizes = np.sqrt(np.diag(cov))
    for found in (best, calm):
        if found.status in ("optimal", "duplicates"):
            assert found.residual is not None
            assert found.residual < 1e-6
        elif found.status in ("unbounded", "zero-variance"):
            amounts = found.weights * sizes
            assert found.weights @ cov @ found.weights <= 1e-8 * (amounts @ amounts)
    if best.status == "optimal":
        assert sharpe_violation(best.weights, mu, cov) < 1e-3


def test_what_does_not_settle_is_an_error_and_no_answer(monkeypatch):
    with pytest.raises(NotMeasurableError, match="within 1 steps on 3 assets"):
        kernel.minimise(np.eye(3), np.ones(3), limit=1)
    monkeypatch.setattr(kernel, "_WORST", -1.0)
    with pytest.raises(NotMeasurableError, match="conditions violated"):
        kernel.minimise(np.eye(3), np.ones(3))
    support = kernel.Support(np.ones((3, 3)))  # leaves out what is already spanned
    support.keep(np.array([2, 0, 1]))
    assert support.held.tolist() == [2]


def test_rounding_in_the_symmetry_is_no_problem():
    mu, cov = market(5, 6, 30)
    crooked = cov.copy()
    crooked[0, 1] *= 1 + 1e-14
    np.testing.assert_allclose(max_sharpe(mu, crooked).weights, max_sharpe(mu, cov).weights, atol=1e-10)
