"""The embedded market: its random parts, its shape, its calibration over several seeds, and what its paths are like."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import lfilter

from assaymark.errors import InputError
from assaymark.market import (
    CLASSES,
    calibration,
    calibration_table,
    class_correlations,
    class_members,
    fill_gaps,
    pairwise_correlation,
    simple_returns,
    synthetic,
    synthetic_market,
    universe,
)
from assaymark.market.instruments import SUBSECTORS

SEEDS = (0, 1, 11)


def test_183_instruments_with_one_name_each():
    listings = universe()
    assert len({one.id for one in listings}) == len({one.name for one in listings}) == 183
    assert [sum(SUBSECTORS[name].values()) for name in CLASSES] == [126, 15, 16, 12, 10, 4]
    assert all(re.fullmatch(r"[A-Z]{4,6}", one.id) for one in listings)
    assert sum(one.delisted is not None for one in listings) == 3
    assert listings[-1].as_record().group == "money market"


def test_every_target_is_met_for_every_seed_and_has_a_row():
    assert [row for row in calibration(SEEDS) if not all(row[3] <= value <= row[4] for value in row[5])] == []
    table = calibration_table((0,))
    assert table.count("\n") == 2 + 6 + 5 + 12 + 2
    assert "| correlation within | EQ | 0.48 |" in table


def test_one_seed_is_one_market():
    first = synthetic_market(3)
    synthetic_market.cache_clear()
    again = synthetic_market(3)
    assert again is not first
    for name in ("open", "high", "low", "close", "volume", "spot", "policy"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(synthetic_market(4).close[-1], first.close[-1], equal_nan=True)


@pytest.fixture(scope="module", params=SEEDS)
def market(request):
    return synthetic_market(request.param)


@pytest.fixture(scope="module")
def returns(market):
    return simple_returns(fill_gaps(market.close))


def test_bars_hold_together_within_their_listing_and_have_gaps(market):
    there = np.isfinite(market.close)
    low, high = market.low[there], market.high[there]
    for price in (market.open[there], market.close[there]):
        assert ((low <= price) & (price <= high)).all()
    assert (low > 0).all()
    assert (market.volume[there] >= 0).all()
    for name in ("open", "high", "low", "volume"):
        np.testing.assert_array_equal(np.isfinite(getattr(market, name)), there)
    for column, one in enumerate(market.listings):
        days = market.days[there[:, column]]
        assert days[0] >= np.datetime64(one.listed)
        assert days[0] - np.datetime64(one.listed) < np.timedelta64(5, "D")
        assert one.delisted is None or days[-1] <= np.datetime64(one.delisted)
    assert np.isnan(fill_gaps(market.close[:, :20])).sum() < np.isnan(market.close[:, :20]).sum()
    inside = np.isnan(fill_gaps(market.close[1800:2500])) & (np.cumsum(there[1800:2500], axis=0) > 20)
    assert inside.any()


def test_legs_are_pinned(market):
    for window in market.windows:
        (legs,) = (plan.legs for plan in synthetic.STRESS if plan.name == window.name)
        for name, (*_, (_, leg)) in legs.items():
            columns = class_members(market.listings)[name]
            start, stop = market.close[window.first - 1, columns], market.close[window.last, columns]
            both = np.isfinite(start) & np.isfinite(stop)
            if both.sum() == columns.size:
                assert np.log(stop / start).mean() == pytest.approx(leg, abs=1e-3)


def test_risky_classes_move_together_in_the_windows(market, returns):
    calm = class_correlations(pairwise_correlation(returns[market.calm[1:]]), market.listings)
    stress = class_correlations(pairwise_correlation(returns[~market.calm[1:]]), market.listings)
    for name in ("EQ", "CO", "RE"):
        assert stress[name, "EQ"] > calm[name, "EQ"] + 0.05


def test_returns_have_fat_tails_clusters_and_leverage(market, returns):
    equity = np.nanmean(returns[:, class_members(market.listings)["EQ"]], axis=1)
    z = (equity - equity.mean()) / equity.std()
    assert (z**4).mean() > 4
    size = np.abs(z)
    assert np.mean([np.corrcoef(size[lag:], size[:-lag])[0, 1] for lag in range(1, 11)]) > 0.08
    later = np.array([size[lag : lag - 6 or None] for lag in range(1, 6)]).mean(axis=0)
    fell = z[: later.size] < -1
    rose = z[: later.size] > 1
    assert later[fell].mean() > later[rose].mean()


def test_windows_move_with_the_seed_and_stay_clear_of_2024():
    firsts = {tuple(one.first for one in synthetic_market(seed).windows) for seed in range(6)}
    assert len(firsts) == 6
    for seed in range(6):
        market = synthetic_market(seed)
        ends = [one.last for one in market.windows]
        assert market.days[ends[-1]] < np.datetime64("2024-01-01")
        assert [one.last - one.first + 1 for one in market.windows] == [plan.days for plan in synthetic.STRESS]
        assert all(a.last < b.first for a, b in zip(market.windows, market.windows[1:], strict=False))


def test_crypto_on_seven_days_agrees_with_its_weekday_sample():
    market = synthetic_market(0)
    at = np.isin(market.spot_days, market.days)
    np.testing.assert_array_equal(market.spot[at], market.close[:, class_members(market.listings)["CR"]])
    weekend = market.spot[~at]
    assert np.isfinite(weekend).mean() > 0.5
    saturdays = np.flatnonzero((market.spot_days.astype(int) + 3) % 7 == 5)[300:-2]
    moves = np.diff(np.log(market.spot[saturdays[:, None] + np.arange(-1, 3)]), axis=1)
    assert (np.nanstd(moves, axis=(0, 2)) > 0.01).all()


def test_cash_earns_the_policy_rate_which_moves_by_quarters_at_few_meetings(market):
    steps = np.diff(market.policy)
    assert np.unique(np.abs(steps[steps != 0]) / 0.25 % 1).tolist() == [0.0]
    assert (steps != 0).sum() < 91
    two = synthetic_market(2)
    cash = np.nanmean(simple_returns(fill_gaps(two.close))[:, class_members(two.listings)["CA"]], axis=1)
    assert cash.sum() == pytest.approx(two.policy[1:].sum() / 26_100, abs=0.02)


def test_periods_by_name_a_negative_seed_and_a_shared_market():
    market = synthetic_market(0)
    assert market.period("pandemic")[0] == str(market.days[market.windows[1].first])
    with pytest.raises(InputError, match="known"):
        market.period("plague")
    with pytest.raises(InputError, match="0 or more"):
        synthetic_market(-1)
    with pytest.raises(ValueError, match="read-only"):
        market.close[0, 0] = 1.0


TARGET = np.array([[1.0, 0.6, -0.2], [0.6, 1.0, 0.1], [-0.2, 0.1, 1.0]])


def spells(states: np.ndarray, state: int) -> np.ndarray:
    edges = np.flatnonzero(np.concatenate([[True], np.diff(states) != 0, [True]]))
    return np.diff(edges)[states[edges[:-1]] == state]


def test_spells_are_semi_markov():
    states = synthetic.semi_markov(np.random.default_rng(0), 400_000)
    bull, bear = spells(states, synthetic.BULL), spells(states, synthetic.BEAR)
    assert bull.mean() == pytest.approx(210, rel=0.06)
    assert bear.mean() == pytest.approx(70, rel=0.06)
    # A geometric length, as of a Markov chain, has a standard deviation as large as its mean.
    assert bull.std() / bull.mean() == pytest.approx(0.5, abs=0.05)


def test_days_recoloured_have_exactly_the_correlation():
    rng = np.random.default_rng(1)
    calm = rng.random(500) < 0.8
    found = synthetic.recolour(rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)), TARGET, calm)
    np.testing.assert_allclose(found[calm].T @ found[calm] / calm.sum(), TARGET, atol=1e-10)
    np.testing.assert_allclose(found[calm].mean(axis=0), 0, atol=1e-12)


def test_t_draws_have_unit_variance_fat_tails_and_share_bad_days():
    rng = np.random.default_rng(2)
    found = synthetic.multivariate_t(rng, 400_000, np.eye(2))
    np.testing.assert_allclose(found.var(axis=0), 1, atol=0.05)
    size = np.abs(found) > 3
    assert size.all(axis=1).mean() > 3 * size[:, 0].mean() * size[:, 1].mean()
    assert synthetic.independent_t(rng, (400_000,)).var() == pytest.approx(1, abs=0.06)


def test_a_fall_raises_the_volatility_of_later_days_only():
    rng = np.random.default_rng(3)
    shocks = rng.standard_normal((50_000, 1))
    speed = synthetic.two_speed_volatility(rng, shocks, np.array([-0.6]))
    fell = shocks[:-1, 0] < -1.5
    assert speed[1:, 0][fell].mean() > 1.05 * speed[:-1, 0][fell].mean()
    changed = shocks.copy()
    changed[100] = 4.0
    again = synthetic.two_speed_volatility(np.random.default_rng(4), changed, np.array([-0.6]))
    first = synthetic.two_speed_volatility(np.random.default_rng(4), shocks, np.array([-0.6]))
    np.testing.assert_array_equal(again[:101], first[:101])
    assert again[101, 0] < first[101, 0]


def test_decay_is_the_filter_of_scipy_to_the_last_bit():
    draws = np.random.default_rng(5).standard_normal((500, 3))
    for decay in (0.0, 0.5, 0.994):
        scaled = np.vstack([draws[:1], draws[1:] * np.sqrt(1 - decay**2)])
        np.testing.assert_array_equal(synthetic._ar1(draws, decay), lfilter([1.0], [1.0, -decay], scaled, axis=0))


def test_leverage_is_a_correlation():
    with pytest.raises(InputError, match="between -1 and 1"):
        synthetic.two_speed_volatility(np.random.default_rng(0), np.zeros((5, 1)), np.array([-1.0]))


@pytest.mark.parametrize(("n", "target", "sub"), [(126, 0.48, 0.08), (15, 0.79, 0.04), (4, 0.21, 0.1)])
def test_loadings_give_the_mean_correlation(n, target, sub):
    found = synthetic.loadings(np.random.default_rng(0), n, target, sub, 0.2)
    pairs = np.outer(found, found)[~np.eye(n, dtype=bool)]
    assert pairs.mean() == pytest.approx(target - sub * 0.2, abs=1e-6)
    assert (found**2 + sub < 1).all()


PAGE_MAKER = Path(__file__).resolve().parents[2] / "docs" / "market_table.py"


def test_the_calibration_table_is_the_computed_one():
    spec = importlib.util.spec_from_file_location("market_table", PAGE_MAKER)
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = maker.PAGE.read_text(encoding="utf-8")
    assert maker.with_table(page) == page
