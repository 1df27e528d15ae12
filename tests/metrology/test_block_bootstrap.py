"""Sharpe ratios and their differences over resampled histories."""

from __future__ import annotations

import numpy as np
import pytest
from arch.bootstrap import optimal_block_length
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.bootstrap import block_length, sharpe_ratios
from assaymark.portfolio import performance

DAYS = 252


def autoregressive(n: int, phi: float, rng: np.random.Generator) -> np.ndarray:
    shocks = rng.standard_normal(n)
    found = np.empty(n)
    found[0] = shocks[0] / np.sqrt(1 - phi**2)
    for t in range(1, n):
        found[t] = phi * found[t - 1] + shocks[t]
    return found


def market(rng: np.random.Generator, mean: float = 0.0005) -> np.ndarray:
    return rng.normal(mean, 0.01, DAYS)


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6, 0.9])
def test_the_block_length_is_that_of_another_library(phi):
    """There the window of lags is one longer than in the source, so lengths agree to a fifth and not exactly."""
    values = autoregressive(2000, phi, np.random.default_rng([7, int(10 * phi)]))
    theirs = float(optimal_block_length(values)["stationary"].iloc[0])
    assert block_length(values) == pytest.approx(max(1.0, theirs), rel=0.2)


def test_the_block_length_is_what_theory_says_of_an_autoregression():
    """For AR(1) the best length is (2 G^2 / D n)^(1/3) with G and D in closed form."""
    phi, n = 0.5, 200_000
    spectrum = 1 / (1 - phi) ** 2
    slope = 2 * phi / ((1 - phi) ** 2 * (1 - phi**2))
    wanted = (n * slope**2 / spectrum**2) ** (1 / 3)
    assert block_length(autoregressive(n, phi, np.random.default_rng(3))) == pytest.approx(wanted, rel=0.05)


def test_the_observed_ratio_is_that_of_performance():
    returns = market(np.random.default_rng(2))
    nav = np.cumprod(np.concatenate([[1.0], 1 + returns]))
    (found,), _ = sharpe_ratios(returns, rng=np.random.default_rng(0), resamples=50)
    assert found.value == pytest.approx(performance(nav).sharpe, abs=1e-12)
    assert found.n == DAYS


def test_a_planted_ratio_is_covered():
    """120 years of daily returns with a known ratio of 1: about 95 of 100 intervals hold it."""
    sharpe, volatility = 1.0, 0.01 * np.sqrt(252)
    mean = (0.04 + sharpe * volatility) / 252
    rng = np.random.default_rng(11)
    found = [sharpe_ratios(rng.normal(mean, 0.01, DAYS), rng=rng, resamples=400)[0][0] for _ in range(120)]
    held = sum(one.low <= sharpe <= one.high for one in found)
    assert 106 <= held <= 120


def test_a_planted_difference_is_found_and_equals_are_called_different_at_their_level():
    rng = np.random.default_rng(5)
    false = found = 0
    for _ in range(150):
        common = market(rng)
        histories = common + rng.normal(0.0, 0.003, (3, DAYS))
        histories[2] += 0.001
        _, (same, apart) = sharpe_ratios(histories, [(0, 1), (2, 0)], rng=rng, resamples=300)
        false += same.p < 0.05
        found += apart.p < 0.05
    assert false <= 15  # .05 of 150 is 7.5
    assert found >= 120


def test_correlated_days_are_told_apart_from_independent_ones():
    """Returns that trend make a ratio less certain: its interval is wider than if days were independent."""
    slow = 0.01 * autoregressive(DAYS, 0.6, np.random.default_rng(4)) + 0.0005
    (blocks,), _ = sharpe_ratios(slow, rng=np.random.default_rng(1))
    (days,), _ = sharpe_ratios(slow, rng=np.random.default_rng(1), block=1.0)
    assert blocks.high - blocks.low > 1.4 * (days.high - days.low)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_laws(seed):
    """A history against itself is exactly nothing; turned round, a difference changes its sign and nothing else."""
    rng = np.random.default_rng(seed)
    histories = np.stack([market(rng), market(rng)])
    ratios, (there, back, self_) = sharpe_ratios(
        histories, [(0, 1), (1, 0), (0, 0)], rng=np.random.default_rng(seed), resamples=100
    )
    assert there.value == -back.value == ratios[0].value - ratios[1].value
    assert (there.low, there.high) == (-back.high, -back.low)
    assert there.p == back.p
    assert (self_.value, self_.low, self_.high, self_.p) == (0.0, 0.0, 0.0, 1.0)
    assert (there.low <= 0 <= there.high) or there.p <= 0.06


def test_equal_seeds_make_equal_intervals():
    histories = np.stack([market(np.random.default_rng(i)) for i in range(2)])
    first, second = (sharpe_ratios(histories, [(0, 1)], rng=np.random.default_rng(9)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("returns", "error", "message"),
    [
        ([0.01] * 9, NotMeasurableError, "needs 10 days or more"),
        ([0.01] * 50, NotMeasurableError, "does not vary"),
        ([np.nan] + [0.01, 0.02] * 20, InputError, "must be finite"),
    ],
)
def test_what_has_no_interval_is_refused(returns, error, message):
    with pytest.raises(error, match=message):
        sharpe_ratios(returns, rng=np.random.default_rng(0))


def test_a_pair_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="must name histories 0 to 0"):
        sharpe_ratios(market(np.random.default_rng(1)), [(0, 1)], rng=np.random.default_rng(0))
