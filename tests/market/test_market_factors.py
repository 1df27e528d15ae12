"""The random parts of the synthetic market have the properties they are named for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from assaymark.errors import InputError
from assaymark.market.synthetic import (
    BEAR,
    BULL,
    _ar1,
    independent_t,
    loadings,
    multivariate_t,
    recolour,
    semi_markov,
    two_speed_volatility,
)

TARGET = np.array([[1.0, 0.6, -0.2], [0.6, 1.0, 0.1], [-0.2, 0.1, 1.0]])


def spells(states: np.ndarray, state: int) -> np.ndarray:
    edges = np.flatnonzero(np.concatenate([[True], np.diff(states) != 0, [True]]))
    return np.diff(edges)[states[edges[:-1]] == state]


def test_spells_are_semi_markov():
    states = semi_markov(np.random.default_rng(0), 400_000)
    bull, bear = spells(states, BULL), spells(states, BEAR)
    assert bull.mean() == pytest.approx(210, rel=0.06)
    assert bear.mean() == pytest.approx(70, rel=0.06)
    # A geometric length, as of a Markov chain, has a standard deviation as large as its mean.
    assert bull.std() / bull.mean() == pytest.approx(0.5, abs=0.05)


def test_days_recoloured_have_exactly_the_correlation():
    rng = np.random.default_rng(1)
    calm = rng.random(500) < 0.8
    found = recolour(rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)), TARGET, calm)
    np.testing.assert_allclose(found[calm].T @ found[calm] / calm.sum(), TARGET, atol=1e-10)
    np.testing.assert_allclose(found[calm].mean(axis=0), 0, atol=1e-12)


def test_t_draws_have_unit_variance_fat_tails_and_share_bad_days():
    rng = np.random.default_rng(2)
    found = multivariate_t(rng, 400_000, np.eye(2))
    np.testing.assert_allclose(found.var(axis=0), 1, atol=0.05)
    size = np.abs(found) > 3
    assert size.all(axis=1).mean() > 3 * size[:, 0].mean() * size[:, 1].mean()
    assert independent_t(rng, (400_000,)).var() == pytest.approx(1, abs=0.06)


def test_a_fall_raises_the_volatility_of_later_days_only():
    rng = np.random.default_rng(3)
    shocks = rng.standard_normal((50_000, 1))
    speed = two_speed_volatility(rng, shocks, np.array([-0.6]))
    fell = shocks[:-1, 0] < -1.5
    assert speed[1:, 0][fell].mean() > 1.05 * speed[:-1, 0][fell].mean()
    changed = shocks.copy()
    changed[100] = 4.0
    again = two_speed_volatility(np.random.default_rng(4), changed, np.array([-0.6]))
    first = two_speed_volatility(np.random.default_rng(4), shocks, np.array([-0.6]))
    np.testing.assert_array_equal(again[:101], first[:101])
    assert again[101, 0] < first[101, 0]


def test_decay_is_the_filter_of_scipy_to_the_last_bit():
    draws = np.random.default_rng(5).standard_normal((500, 3))
    for decay in (0.0, 0.5, 0.994):
        scaled = np.vstack([draws[:1], draws[1:] * np.sqrt(1 - decay**2)])
        np.testing.assert_array_equal(_ar1(draws, decay), lfilter([1.0], [1.0, -decay], scaled, axis=0))


def test_leverage_is_a_correlation():
    with pytest.raises(InputError, match="between -1 and 1"):
        two_speed_volatility(np.random.default_rng(0), np.zeros((5, 1)), np.array([-1.0]))


@pytest.mark.parametrize(("n", "target", "sub"), [(126, 0.48, 0.08), (15, 0.79, 0.04), (4, 0.21, 0.1)])
def test_loadings_give_the_mean_correlation(n, target, sub):
    found = loadings(np.random.default_rng(0), n, target, sub, 0.2)
    pairs = np.outer(found, found)[~np.eye(n, dtype=bool)]
    assert pairs.mean() == pytest.approx(target - sub * 0.2, abs=1e-6)
    assert (found**2 + sub < 1).all()
