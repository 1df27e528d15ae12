"""What an agent earned over a baseline a day, with an interval that keeps its word."""

from __future__ import annotations

import numpy as np
import pytest

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.contrasts import daily_excess


def paths(seed: int, days: int = 80, edge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 3])
    market = rng.normal(0.0005, 0.01, days)
    return market + rng.normal(edge, 0.004, days), market


def test_it_is_the_mean_of_the_differences():
    own, market = paths(1)
    found = daily_excess(own, market, rng=np.random.default_rng(1))
    assert found.mean == pytest.approx((own - market).mean())
    assert found.n == 80
    assert found.low < found.mean < found.high
    assert found.mean - found.low == pytest.approx(found.high - found.mean)


def test_what_both_share_changes_nothing():
    own, market = paths(2)
    one = daily_excess(own, market, rng=np.random.default_rng(1))
    two = daily_excess(own + 0.02, market + 0.02, rng=np.random.default_rng(1))
    assert (one.mean, one.low, one.p) == (pytest.approx(two.mean), pytest.approx(two.low), pytest.approx(two.p))


def test_the_standard_error_of_independent_days_is_the_usual_one():
    own, market = paths(3, days=250)
    found = daily_excess(own, market, rng=np.random.default_rng(1), resamples=4000)
    usual = (own - market).std(ddof=1) / np.sqrt(250)
    assert found.block < 3
    assert (found.high - found.low) / (2 * 1.97) == pytest.approx(usual, rel=0.1)


def test_the_interval_excludes_zero_exactly_where_p_is_small():
    for seed in range(30):
        own, market = paths(seed, edge=0.001)
        found = daily_excess(own, market, rng=np.random.default_rng(seed), resamples=300)
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_p_has_no_floor():
    """A p-value that is a share of resamples could not survive Holm over fifty agents."""
    own, market = paths(4, edge=0.004)
    assert daily_excess(own, market, rng=np.random.default_rng(1), resamples=200).p < 1e-6


def test_no_edge_is_rarely_found():
    rejected = []
    for seed in range(200):
        own, market = paths(seed)
        rejected.append(daily_excess(own, market, rng=np.random.default_rng(seed), resamples=200).p <= 0.05)
    assert 0.01 <= np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_the_same_generator_makes_the_same_interval():
    own, market = paths(5)
    one, two = (daily_excess(own, market, rng=np.random.default_rng(9)) for _ in range(2))
    assert one == two


def test_what_cannot_be_measured_is_said():
    own, market = paths(6)
    with pytest.raises(NotMeasurableError, match="10 days"):
        daily_excess(own[:9], market[:9], rng=np.random.default_rng(1))
    with pytest.raises(NotMeasurableError, match="does not vary"):
        daily_excess(market, market, rng=np.random.default_rng(1))
    with pytest.raises(InputError, match="one return for each of the 80 days"):
        daily_excess(own, market[1:], rng=np.random.default_rng(1))
    with pytest.raises(InputError):
        daily_excess([*own[1:], np.nan], market, rng=np.random.default_rng(1))
