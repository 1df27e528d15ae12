"""Performance by the standard library; value at risk against order statistics, the normal law and its own laws."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from assaymark.errors import InputError
from assaymark.portfolio import (
    FIGURES, Drawdown, Method, backtest, expected_shortfall, max_drawdown, performance, simple_returns, value_at_risk,
)  # fmt: skip

paths = st.lists(st.floats(-0.3, 0.3).map(lambda r: round(r, 4)), min_size=2, max_size=60)


def compounded(returns, start=1.0) -> list[float]:
    nav = [start]
    for r in returns:
        nav.append(nav[-1] * (1 + r))
    return nav


@given(paths, st.sampled_from([0.0, 0.04]), st.sampled_from([252, 12]))
def test_formulas_by_hand(returns, rf, periods):
    nav = compounded(returns)
    found = performance(nav, rf=rf, periods=periods)
    excess = statistics.fmean(returns) * periods - rf
    deepest = min(low / high - 1 for i, high in enumerate(nav) for low in nav[i:])
    below = math.sqrt(sum(min(r, 0) ** 2 for r in returns) / len(returns) * periods)
    spread = statistics.stdev(returns) * math.sqrt(periods)
    cagr = nav[-1] ** (periods / len(returns)) - 1
    assert (found.n, found.hit_rate) == (len(returns), sum(r > 0 for r in returns) / len(returns))
    assert (found.total_return, found.max_drawdown) == pytest.approx((nav[-1] - 1, deepest), abs=1e-12)
    assert found.cagr == pytest.approx(cagr, rel=1e-9, abs=1e-12)
    assert found.volatility == pytest.approx(spread, abs=1e-9)
    varies, falls = len(set(returns)) > 1, below > 0
    assert found.sharpe == (pytest.approx(excess / spread, rel=1e-6) if varies else None)
    assert found.sortino == (pytest.approx(excess / below, rel=1e-9) if falls else None)
    assert found.calmar == (pytest.approx(cagr / abs(deepest), rel=1e-9) if falls else None)
    nothing = {name for name in FIGURES if getattr(found, name) is None}
    assert nothing == set(found.undefined)
    assert all(reason.startswith("undefined: ") for reason in found.undefined.values())


@given(paths, st.floats(1e-3, 1e6))
def test_the_currency_does_not_matter(returns, start):
    one, other = performance(compounded(returns)), performance(compounded(returns, start))
    assert one.max_drawdown == pytest.approx(other.max_drawdown, abs=1e-12)
    assert one.volatility == pytest.approx(other.volatility, abs=1e-9)
    assert set(one.undefined) == set(other.undefined)


@given(paths)
def test_the_places_of_the_drawdown(returns):
    nav = compounded(returns)
    found = max_drawdown(nav)
    if found.trough is None:
        assert found == Drawdown(0.0, None, None, None)
        assert nav == sorted(nav)
        return
    assert found.peak is not None
    assert nav[found.peak] == max(nav[: found.trough + 1])
    assert nav[found.trough] / nav[found.peak] - 1 == found.depth < 0
    if found.recovery is None:
        assert max(nav[found.trough :]) < nav[found.peak]
    else:
        assert nav[found.recovery] >= nav[found.peak] > max(nav[found.trough : found.recovery])


@pytest.mark.parametrize(
    ("nav", "undefined"),
    [
        ([1.0], {*FIGURES}),
        ([1.0, 0.9], {"volatility", "sharpe"}),
        ([1.001**t for t in range(400)], {"sharpe", "sortino", "calmar"}),
        ([1.0, 0.5, 1e6], {"cagr", "calmar"}),
    ],
)
def test_what_few_values_steady_growth_and_growth_beyond_all_floats_leave_undefined(nav, undefined):
    found = performance(nav)
    assert set(found.undefined) == undefined == {name for name in FIGURES if getattr(found, name) is None}
    if len(nav) == 400:
        assert (found.volatility, found.max_drawdown, found.hit_rate) == (0.0, 0.0, 1.0)
    # The first value counts as a high.
    assert max_drawdown([1.0, 0.8, 0.9]) == Drawdown(pytest.approx(-0.2), 0, 1, None)  # type: ignore[arg-type]


METHODS: tuple[Method, ...] = ("historical", "normal")
series = st.lists(st.floats(-0.5, 0.5).map(lambda r: round(r, 5)), min_size=2, max_size=80)
levels = st.sampled_from([0.5, 0.9, 0.95, 0.99])


def by_sorting(returns, level) -> float:
    """The quantile written out: between the two order statistics around its place."""
    ordered = sorted(returns)
    place = (len(ordered) - 1) * (1 - level)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return -(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@given(series, levels)
def test_historical_is_the_quantile_written_out(returns, level):
    found = value_at_risk(returns, level=level)
    assert found == pytest.approx(by_sorting(returns, level), abs=1e-12)
    tail = sorted(returns)[: math.floor(round((len(returns) - 1) * (1 - level), 6)) + 1]
    assert expected_shortfall(returns, level=level) == pytest.approx(-sum(tail) / len(tail), abs=1e-12)
    assert tail[-1] <= -found + 1e-12


@given(series, levels, st.sampled_from(METHODS), st.floats(0.1, 1.0), st.floats(-0.2, 0.2))
def test_laws_of_both_measures(returns, level, method, size, shift):
    days = np.array(returns)
    for measure in (value_at_risk, expected_shortfall):
        one = measure(days, level=level, method=method)
        assert measure(size * days, level=level, method=method) == pytest.approx(size * one, abs=1e-12)
        assert measure(days + shift, level=level, method=method) == pytest.approx(one - shift, abs=1e-12)
        assert measure(days[::-1], level=level, method=method) == pytest.approx(one, abs=1e-15)
    worst = expected_shortfall(days, level=level, method=method)
    assert worst >= value_at_risk(days, level=level, method=method) - 1e-12
    if method == "historical":
        assert -days.max() - 1e-12 <= worst <= -days.min() + 1e-12


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_normal_agrees_with_scipy_and_recovers_a_planted_law(level):
    planted = stats.norm(0.001, 0.02)
    days = planted.ppf((np.arange(100_000) + 0.5) / 100_000)
    mean, spread = float(days.mean()), float(days.std(ddof=1))
    loss, tail = -planted.ppf(1 - level), -planted.expect(ub=planted.ppf(1 - level)) / (1 - level)
    for method in METHODS:
        assert value_at_risk(days, level=level, method=method) == pytest.approx(loss, rel=1e-3)
        assert expected_shortfall(days, level=level, method=method) == pytest.approx(tail, rel=1e-3)
    assert value_at_risk(days, level=level, method="normal") == pytest.approx(
        -stats.norm.ppf(1 - level, mean, spread), rel=1e-9
    )


def test_quantiles_by_hand():
    assert value_at_risk(np.linspace(0.01, 0.02, 60)) < 0, "a book that only gains loses less than nothing"
    # The third worst of 60 days is place 2 of 0..59; 0.05 * 59 = 2.95.
    days = np.arange(60.0) / 1000 - 0.01
    assert value_at_risk(days) == pytest.approx(-(days[2] + 0.95 * (days[3] - days[2])))
    assert expected_shortfall(days) == pytest.approx(-days[:3].mean())
    # 0.1 of 10 steps is 1 step, although 10 * (1 - 0.9) is a little less in floats.
    assert expected_shortfall(days[:11], level=0.9) == pytest.approx(-days[:2].mean())
    # One return has a quantile and no spread.
    assert value_at_risk([-0.03]) == expected_shortfall([-0.03]) == 0.03


# The segment backtest against a loop that does one day of one strategy at a time

Floats = NDArray[np.float64]


def day_by_day(targets, returns, cost_bps) -> tuple[list[float], list[float], list[Floats]]:
    """Amounts of money, one day after the other: earn, then trade and pay."""
    held, cash = np.zeros(returns.shape[1]), 1.0
    nav, turnover, before = [], [], []
    for target, earned in zip(targets, returns, strict=True):
        held = np.array([h * (1 + r) if h else 0.0 for h, r in zip(held, earned, strict=True)])
        value, traded = float(held.sum()) + cash, 0.0
        if not np.isnan(target[0]) and value > 0:
            before.append(held / value)
            traded = float(np.abs(target - held / value).sum())
            value -= value * traded * cost_bps / 10_000
            held, cash = target * value, value * (1 - target.sum())
        nav.append(value)
        turnover.append(traded)
    return nav, turnover, before


def made_up(seed, days, n, count) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    returns = np.maximum(0.02 * rng.standard_t(3, (days, n)), -0.9)
    targets = np.full((count, days, n), np.nan)
    for k in range(count):
        for day in np.flatnonzero(rng.random(days) < rng.choice([0.02, 0.2, 1.0])):
            targets[k, day] = rng.dirichlet(np.ones(n)) * rng.choice([1.0, 0.7, 0.0])
    return targets, returns


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 6), st.integers(1, 4), st.sampled_from([0, 15, 200.0])
)
def test_same_as_day_by_day(seed, days, n, count, cost_bps):
    targets, returns = made_up(seed, days, n, count)
    found = backtest(targets, returns, cost_bps=cost_bps)
    for k in range(count):
        nav, turnover, before = day_by_day(targets[k], returns, cost_bps)
        np.testing.assert_allclose(found.nav[k], nav, atol=1e-9, rtol=1e-9)
        np.testing.assert_allclose(found.turnover[k], turnover, atol=1e-9)
        np.testing.assert_allclose(found.cost[k], found.turnover[k] * cost_bps / 1e4)
        own = ~np.isnan(targets[k, found.days, 0])
        np.testing.assert_allclose(found.before[k, own], np.reshape(before, (-1, n)), atol=1e-9)
        alone = backtest(targets[k], returns, cost_bps=cost_bps)
        np.testing.assert_allclose(alone.nav, found.nav[k], rtol=1e-12)


def test_a_long_history_matches_to_a_billionth():
    targets, returns = made_up(1, 2500, 183, 1)
    targets[0] = np.nan
    targets[0, ::21] = np.random.default_rng(2).dirichlet(np.ones(183), size=len(range(0, 2500, 21)))
    returns = returns * 0.3
    nav, _, _ = day_by_day(targets[0], returns, 15.0)
    np.testing.assert_allclose(backtest(targets[0], returns).nav, nav, rtol=1e-9)


HOLD = [np.nan, np.nan]
BY_HAND = [
    # the return of the rebalance day belongs to the old weights
    ([[1.0, 0.0], [0.0, 1.0], HOLD], [[0.5, 0.5], [0.1, 0.0], [0.0, 0.2]], 0, [1.0, 1.1, 1.32], [1.0, 2.0, 0.0]),
    # the first purchase pays, and costs are charged once
    ([[0.5, 0.5], HOLD], np.zeros((2, 2)), 15, [0.9985, 0.9985], [1.0, 0.0]),
    # a strategy that never trades stays in cash
    ([HOLD] * 3, np.full((3, 2), 0.1), 15, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    # targets equal to the drifted weights trade nothing
    ([[0.5, 0.5], [0.55 / 1.05, 0.5 / 1.05]], [[0.0, 0.0], [0.1, 0.0]], 0, [1.0, 1.05], [1.0, 0.0]),
    # a total loss stays at nothing
    ([[1.0, 0.0], HOLD, [0.0, 1.0], HOLD], [[0.0, 0.0], [-1.0, 0.0], [0.5, 0.5], [0.5, 0.5]], 0, [1.0, 0.0, 0.0, 0.0],
     [1.0, 0.0, 0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("targets", "returns", "cost_bps", "nav", "turnover"), BY_HAND)
def test_backtests_by_hand(targets, returns, cost_bps, nav, turnover):
    found = backtest(targets, returns, cost_bps=cost_bps)
    np.testing.assert_allclose(found.nav, nav, atol=1e-15)
    np.testing.assert_allclose(found.turnover, turnover, atol=1e-15)
    np.testing.assert_allclose(found.cost, np.array(turnover) * cost_bps / 1e4, atol=1e-15)
    assert (found.days.size == 0) == (not any(turnover))


def test_a_missing_return_matters_only_where_the_asset_is_held():
    returns = np.array([[0.0, np.nan], [0.1, np.nan], [0.1, 0.2], [0.0, np.nan]])
    fine = backtest([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0], HOLD], returns, cost_bps=0)
    np.testing.assert_allclose(fine.nav, [1.0, 1.1, 1.1 * 1.15, 1.1 * 1.15])
    with pytest.raises(InputError, match="asset 1 is held on day 3, but has no return"):
        backtest([[1.0, 0.0], [0.5, 0.5], HOLD, HOLD], returns)


def test_targets_in_six_decimals_are_brought_to_1():
    hold = [np.nan] * 3
    given, exact = ([weights, hold] for weights in ([0.333334] * 3, [1 / 3] * 3))
    returns = [[0.0, 0.0, 0.0], [0.1, 0.0, -0.2]]
    assert backtest(given, returns).nav.tolist() == pytest.approx(backtest(exact, returns).nav.tolist(), abs=1e-12)


def test_returns_of_prices():
    found = simple_returns([[100.0, np.nan], [110.0, 50.0], [99.0, 60.0]])
    np.testing.assert_allclose(found, [[np.nan, np.nan], [0.1, np.nan], [-0.1, 0.2]])
