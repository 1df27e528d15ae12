"""The embedded market: its random parts, its shape, its calibration over several seeds, and what its paths are like."""

from __future__ import annotations

import re
from itertools import pairwise

import market_table
import numpy as np
import pytest

from assaymark import market
from assaymark.errors import InputError
from assaymark.market import synthetic
from assaymark.market.instruments import SUBSECTORS

SEEDS = (0, 1, 11)


def equal_weighted(returns: np.ndarray, listings: tuple[market.Listing, ...], name: str) -> np.ndarray:
    return np.nanmean(returns[:, market.class_members(listings)[name]], axis=1)


def test_183_instruments_with_one_name_each():
    listings = market.universe()
    assert len({one.id for one in listings}) == len({one.name for one in listings}) == 183
    assert [sum(SUBSECTORS[name].values()) for name in market.CLASSES] == [126, 15, 16, 12, 10, 4]
    assert all(re.fullmatch(r"[A-Z]{4,6}", one.id) for one in listings)
    assert sum(one.delisted is not None for one in listings) == 3
    assert listings[-1].as_record().group == "money market"


def test_every_target_is_met_for_every_seed_and_the_table_of_the_page_is_the_computed_one():
    assert [row for row in market.calibration(SEEDS) if not all(row[3] <= one <= row[4] for one in row[5])] == []
    page = market_table.PAGE.read_text(encoding="utf-8")
    assert market_table.with_table(page) == page
    assert "| correlation within | EQ | 0.48 |" in page
    table = page.split(market_table.BEGIN)[1].split(market_table.END)[0]
    assert sum(line.startswith("|") for line in table.splitlines()) == 2 + 6 + 5 + 12 + 2


def test_one_seed_is_one_market():
    first = market.synthetic_market(0)
    market.synthetic_market.cache_clear()
    again = market.synthetic_market(0)
    assert again is not first
    for name in ("open", "high", "low", "close", "volume", "spot", "policy"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(market.synthetic_market(1).close[-1], first.close[-1], equal_nan=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_bars_hold_together_and_paths_are_like_those_of_markets(seed):
    made = market.synthetic_market(seed)
    there = np.isfinite(made.close)
    low, high = made.low[there], made.high[there]
    for price in (made.open[there], made.close[there]):
        assert ((low <= price) & (price <= high)).all()
    assert (low > 0).all()
    assert (made.volume[there] >= 0).all()
    for name in ("open", "high", "low", "volume"):
        np.testing.assert_array_equal(np.isfinite(getattr(made, name)), there)
    for column, one in enumerate(made.listings):
        days = made.days[there[:, column]]
        assert np.timedelta64(0, "D") <= days[0] - np.datetime64(one.listed) < np.timedelta64(5, "D")
        assert one.delisted is None or days[-1] <= np.datetime64(one.delisted)
    filled = market.fill_gaps(made.close)
    assert np.isnan(filled[:, :20]).sum() < np.isnan(made.close[:, :20]).sum()
    assert (np.isnan(market.fill_gaps(made.close[1800:2500])) & (np.cumsum(there[1800:2500], axis=0) > 20)).any()

    for window in made.windows:  # the legs of stress are pinned
        (legs,) = (plan.legs for plan in synthetic.STRESS if plan.name == window.name)
        for name, (*_, (_, leg)) in legs.items():
            columns = market.class_members(made.listings)[name]
            start, stop = made.close[window.first - 1, columns], made.close[window.last, columns]
            if np.isfinite(start * stop).all():
                assert np.log(stop / start).mean() == pytest.approx(leg, abs=1e-3)

    returns = market.simple_returns(filled)  # risky classes move together in the windows
    risky = ("EQ", "CO", "RE")
    member = np.array([[one.asset_class == name for name in risky] for one in made.listings], dtype=float)
    calm, stress = (
        market.group_correlations(market.pairwise_correlation(returns[days]), member)[:, 0]
        for days in (made.calm[1:], ~made.calm[1:])
    )
    assert (stress > calm + 0.05).all()

    equity = equal_weighted(returns, made.listings, "EQ")  # fat tails, clusters and leverage
    z = (equity - equity.mean()) / equity.std()
    size = np.abs(z)
    assert (z**4).mean() > 4
    assert np.mean([np.corrcoef(size[lag:], size[:-lag])[0, 1] for lag in range(1, 11)]) > 0.08
    later = np.array([size[lag : lag - 6 or None] for lag in range(1, 6)]).mean(axis=0)
    assert later[z[: later.size] < -1].mean() > later[z[: later.size] > 1].mean()

    steps = np.diff(made.policy)  # the policy rate moves by quarters at few meetings
    assert np.unique(np.abs(steps[steps != 0]) / 0.25 % 1).tolist() == [0.0]
    assert (steps != 0).sum() < 91


def test_windows_move_with_the_seed_and_stay_clear_of_2024():
    days, firsts = market.synthetic_market(0).days, set()
    for seed in range(6):
        windows = synthetic.draw_windows(synthetic.streams(seed)["windows"], days)
        firsts.add(tuple(one.first for one in windows))
        assert days[windows[-1].last] < np.datetime64("2024-01-01")
        assert [one.last - one.first + 1 for one in windows] == [plan.days for plan in synthetic.STRESS]
        assert all(a.last < b.first for a, b in pairwise(windows))
    assert len(firsts) == 6
    assert market.synthetic_market(0).windows == synthetic.draw_windows(synthetic.streams(0)["windows"], days)


def test_crypto_on_seven_days_agrees_with_its_weekday_sample_and_cash_earns_the_policy_rate():
    made = market.synthetic_market(0)
    at = np.isin(made.spot_days, made.days)
    np.testing.assert_array_equal(made.spot[at], made.close[:, market.class_members(made.listings)["CR"]])
    assert np.isfinite(made.spot[~at]).mean() > 0.5
    saturdays = np.flatnonzero((made.spot_days.astype(int) + 3) % 7 == 5)[300:-2]
    moves = np.diff(np.log(made.spot[saturdays[:, None] + np.arange(-1, 3)]), axis=1)
    assert (np.nanstd(moves, axis=(0, 2)) > 0.01).all()
    made = market.synthetic_market(2)
    cash = equal_weighted(market.simple_returns(market.fill_gaps(made.close)), made.listings, "CA")
    assert cash.sum() == pytest.approx(made.policy[1:].sum() / 26_100, abs=0.02)


def test_periods_by_name_a_negative_seed_a_shared_market_and_leverage_is_a_correlation():
    made = market.synthetic_market(0)
    assert made.period("pandemic")[0] == str(made.days[made.windows[1].first])
    with pytest.raises(InputError, match="known"):
        made.period("plague")
    with pytest.raises(InputError, match="0 or more"):
        market.synthetic_market(-1)
    with pytest.raises(ValueError, match="read-only"):
        made.close[0, 0] = 1.0
    with pytest.raises(InputError, match="between -1 and 1"):
        synthetic.two_speed_volatility(np.random.default_rng(0), np.zeros((5, 1)), np.array([-1.0]))


def test_spells_are_semi_markov():
    states = synthetic.semi_markov(np.random.default_rng(0), 400_000)
    edges = np.flatnonzero(np.concatenate([[True], np.diff(states) != 0, [True]]))
    bull, bear = (np.diff(edges)[states[edges[:-1]] == state] for state in (synthetic.BULL, synthetic.BEAR))
    assert (bull.mean(), bear.mean()) == (pytest.approx(210, rel=0.06), pytest.approx(70, rel=0.06))
    # A geometric length, as of a Markov chain, has a standard deviation as large as its mean.
    assert bull.std() / bull.mean() == pytest.approx(0.5, abs=0.05)


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
    again, first = (
        synthetic.two_speed_volatility(np.random.default_rng(4), one, np.array([-0.6])) for one in (changed, shocks)
    )
    np.testing.assert_array_equal(again[:101], first[:101])
    assert again[101, 0] < first[101, 0]


def test_decay_is_the_filter_of_scipy_to_the_last_bit():
    from scipy.signal import lfilter

    draws = np.random.default_rng(5).standard_normal((500, 3))
    for decay in (0.0, 0.5, 0.994):
        scaled = np.vstack([draws[:1], draws[1:] * np.sqrt(1 - decay**2)])
        np.testing.assert_array_equal(synthetic._ar1(draws, decay), lfilter([1.0], [1.0, -decay], scaled, axis=0))
