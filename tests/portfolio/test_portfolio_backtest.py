"""The segment backtest against a loop that does one day of one strategy at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from assaymark.errors import InputError
from assaymark.portfolio import backtest, simple_returns

Floats = NDArray[np.float64]


def day_by_day(targets: Floats, returns: Floats, cost_bps: float) -> tuple[list[float], list[float], list[Floats]]:
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


def made_up(seed: int, days: int, n: int, count: int) -> tuple[Floats, Floats]:
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
def test_same_as_day_by_day(seed: int, days: int, n: int, count: int, cost_bps: float) -> None:
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


def test_a_long_history_matches_to_a_billionth() -> None:
    targets, returns = made_up(1, 2500, 183, 1)
    targets[0] = np.nan
    targets[0, ::21] = np.random.default_rng(2).dirichlet(np.ones(183), size=len(range(0, 2500, 21)))
    returns = returns * 0.3
    nav, _, _ = day_by_day(targets[0], returns, 15.0)
    np.testing.assert_allclose(backtest(targets[0], returns).nav, nav, rtol=1e-9)


def test_the_return_of_the_rebalance_day_belongs_to_the_old_weights() -> None:
    targets = [[1.0, 0.0], [0.0, 1.0], [np.nan, np.nan]]
    returns = [[0.5, 0.5], [0.1, 0.0], [0.0, 0.2]]
    found = backtest(targets, returns, cost_bps=0)
    np.testing.assert_allclose(found.nav, [1.0, 1.1, 1.32])
    np.testing.assert_allclose(found.turnover, [1.0, 2.0, 0.0])


def test_the_first_purchase_pays_and_costs_are_charged_once() -> None:
    found = backtest([[0.5, 0.5], [np.nan, np.nan]], np.zeros((2, 2)))
    np.testing.assert_allclose(found.nav, [0.9985, 0.9985])
    np.testing.assert_allclose(found.cost, [0.0015, 0.0])


def test_a_strategy_that_never_trades_stays_in_cash() -> None:
    found = backtest(np.full((3, 2), np.nan), np.full((3, 2), 0.1))
    assert found.nav.tolist() == [1.0, 1.0, 1.0]
    assert found.days.size == 0


def test_targets_equal_to_the_drifted_weights_trade_nothing() -> None:
    targets = [[0.5, 0.5], [0.55 / 1.05, 0.5 / 1.05]]
    found = backtest(targets, [[0.0, 0.0], [0.1, 0.0]])
    np.testing.assert_allclose(found.turnover, [1.0, 0.0], atol=1e-15)


def test_a_total_loss_stays_at_nothing() -> None:
    targets = np.array([[1.0, 0.0], [np.nan, np.nan], [0.0, 1.0], [np.nan, np.nan]])
    returns = np.array([[0.0, 0.0], [-1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    found = backtest(targets, returns)
    assert found.nav[1:].tolist() == [0.0, 0.0, 0.0]
    assert found.turnover[1:].tolist() == [0.0, 0.0, 0.0]


def test_a_missing_return_matters_only_where_the_asset_is_held() -> None:
    returns = np.array([[0.0, np.nan], [0.1, np.nan], [0.1, 0.2], [0.0, np.nan]])
    hold = [np.nan, np.nan]
    fine = backtest([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0], hold], returns, cost_bps=0)
    np.testing.assert_allclose(fine.nav, [1.0, 1.1, 1.1 * 1.15, 1.1 * 1.15])
    with pytest.raises(InputError, match="asset 1 is held on day 3, but has no return"):
        backtest([[1.0, 0.0], [0.5, 0.5], hold, hold], returns)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ([0.5, np.nan], "all NaN"),
        ([1.5, -0.5], "negative"),
        ([np.inf, 0.0], "finite"),
        ([0.8, 0.8], "at most 1"),
        ([1.0], "days and assets"),
    ],
)
def test_wrong_targets_are_refused(target: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        backtest([target], [[0.0, 0.0]])


def test_targets_in_six_decimals_are_brought_to_1() -> None:
    hold = [np.nan] * 3
    given, exact = ([weights, hold] for weights in ([0.333334] * 3, [1 / 3] * 3))
    returns = [[0.0, 0.0, 0.0], [0.1, 0.0, -0.2]]
    assert backtest(given, returns).nav.tolist() == pytest.approx(backtest(exact, returns).nav.tolist(), abs=1e-12)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        backtest([[2.0, -1.0]], [[np.inf, -2.0]], cost_bps=9000)
    assert [problem.where for problem in caught.value.problems] == ["cost_bps", "returns", "returns", "targets"]
    for cost in (True, "1", np.nan, -1.0):
        with pytest.raises(InputError, match="cost_bps"):
            backtest([[1.0]], [[0.0]], cost_bps=cost)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="2 or 3 axes"):
        backtest([1.0], [[0.0]])


def test_returns_of_prices() -> None:
    found = simple_returns([[100.0, np.nan], [110.0, 50.0], [99.0, 60.0]])
    np.testing.assert_allclose(found, [[np.nan, np.nan], [0.1, np.nan], [-0.1, 0.2]])
    with pytest.raises(InputError) as caught:
        simple_returns([[1.0, -1.0], [0.0, np.inf]])
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="2 axes"):
        simple_returns([1.0])
