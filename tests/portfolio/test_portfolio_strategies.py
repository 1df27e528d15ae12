"""Classical strategies: from windows to weights, and when they trade."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.portfolio import STRATEGIES, backtest, inverse_volatility, risk_shares, schedule

Floats = NDArray[np.float64]
NAMES = ["equity", "equity", "bond", "commodity", "crypto", "cash"]


def window(seed: int, days: int = 60) -> Floats:
    rng = np.random.default_rng(seed)
    return 0.001 + 0.01 * rng.standard_t(5, (days, 1)) + 0.02 * rng.standard_t(5, (days, 6))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_weights_sum_and_gaps_are_left_out_and_named(name: str, seed: int) -> None:
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
def test_the_order_of_assets_does_not_matter(seed: int, order: list[int], name: str) -> None:
    returns = window(seed)
    weights = STRATEGIES[name].choose(returns, NAMES).weights
    turned = STRATEGIES[name].choose(returns[:, order], [NAMES[i] for i in order]).weights
    np.testing.assert_allclose(turned, weights[order], atol=1e-9)


def test_plain_rules_by_hand() -> None:
    returns = window(0)
    assert STRATEGIES["equal-weight"].choose(returns, NAMES).weights.tolist() == pytest.approx([1 / 6] * 6)
    assert STRATEGIES["60/40"].choose(returns, NAMES).weights.tolist() == [0.3, 0.3, 0.4, 0, 0, 0]
    best = int(np.argmax((1 + returns).prod(axis=0)))
    assert STRATEGIES["momentum"].choose(returns, NAMES).weights[best] == 1.0
    flat = np.zeros((5, 4))
    assert STRATEGIES["momentum"].choose(flat, NAMES[:4]).weights.tolist() == [0.25] * 4


def test_rules_of_risk_keep_their_promise() -> None:
    returns = window(1)
    cov = np.cov(returns, rowvar=False)
    parity = STRATEGIES["equal-risk-contribution"].choose(returns, NAMES).weights
    np.testing.assert_allclose(risk_shares(parity, cov), 1 / 6, rtol=1e-9)
    plain = STRATEGIES["inverse-volatility"].choose(returns, NAMES).weights
    np.testing.assert_allclose(plain, inverse_volatility(cov).weights)
    calm = STRATEGIES["minimum-variance"].choose(returns, NAMES).weights
    assert calm @ cov @ calm <= min(w @ cov @ w for w in (parity, plain, *np.eye(6)))


def test_maximum_sharpe_without_a_winner_is_equal_weight_with_its_status() -> None:
    choice = STRATEGIES["maximum-sharpe"].choose(window(2) - 0.1, NAMES)
    assert choice.status == "no-positive-excess"
    assert choice.weights.tolist() == pytest.approx([1 / 6] * 6)
    assert STRATEGIES["maximum-sharpe"].choose(window(2) + 0.01, NAMES).status == "optimal"


def test_a_signal_sees_nothing_later_and_trades_at_the_next_close() -> None:
    returns = np.vstack([window(s) for s in range(3)])
    found = schedule("minimum-variance", returns, NAMES, [59, 100, 179])
    assert [day for day, _ in found.choices] == [60, 101]
    changed = returns.copy()
    changed[60:] = 0.3 * np.random.default_rng(9).random(changed[60:].shape)
    again = schedule("minimum-variance", changed, NAMES, [59, 100, 179])
    np.testing.assert_array_equal(again.targets[:101], found.targets[:101])
    assert not np.array_equal(again.targets[101], found.targets[101])
    same_day = schedule("minimum-variance", returns, NAMES, [59], delay=0)
    np.testing.assert_array_equal(same_day.targets[59], found.targets[60])
    assert backtest(found.targets, returns).days.tolist() == [60, 101]


def test_buy_and_hold_trades_once() -> None:
    returns = np.vstack([window(s) for s in range(2)])
    found = schedule(STRATEGIES["buy-and-hold"], returns, NAMES, [59, 80, 100])
    assert [day for day, _ in found.choices] == [60]
    assert np.count_nonzero(backtest(found.targets, returns).turnover) == 1


def test_what_cannot_be_chosen_is_an_error() -> None:
    with pytest.raises(NotMeasurableError, match="no asset"):
        STRATEGIES["equal-weight"].choose(np.full((3, 1), np.nan), ["equity"])
    with pytest.raises(NotMeasurableError, match="no bond"):
        STRATEGIES["60/40"].choose(np.zeros((3, 1)), ["equity"])
    with pytest.raises(NotMeasurableError, match="fewer than two days"):
        STRATEGIES["minimum-variance"].choose(np.zeros((1, 1)), ["equity"])
    with pytest.raises(UnknownNameError, match="momentum"):
        schedule("momentun", np.zeros((3, 1)), ["equity"], [1])


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        STRATEGIES["equal-weight"].choose([[np.inf, -2.0]], ["stocks"])
    assert [problem.where for problem in caught.value.problems] == ["window", "window", "classes", "classes"]
    with pytest.raises(InputError, match="window"):
        STRATEGIES["equal-weight"].choose([0.1], ["equity"])
    with pytest.raises(InputError) as caught:
        schedule("equal-weight", np.zeros((5, 1)), ["equity"], [4, 3, 9], window=0, delay=-1)
    assert [problem.where for problem in caught.value.problems] == ["window", "delay", "signals", "signals"]
    with pytest.raises(InputError, match="returns"):
        schedule("equal-weight", [0.1], ["equity"], [0])
