"""Clusters that follow each other: the t test with their effective number, against loops and by simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.tsa.stattools import acf

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

NAN = math.nan


def weeks(rng, shape, rho):
    """Stationary first-order autoregressions of variance 1 along the second last axis."""
    values = rng.normal(0, 1, shape)
    for t in range(1, shape[-2]):
        values[..., t, :] = rho * values[..., t - 1, :] + math.sqrt(1 - rho * rho) * values[..., t, :]
    return values


def blocks(rows, size):
    if size == 1:
        return rows
    starts = range(0, 2 * (len(rows) // 2), 2)
    return np.array([rows[s : s + 2 if s + 3 != len(rows) else len(rows)].mean(axis=0) for s in starts])


def bound(table, width):
    """Raised autocorrelation of the centred columns of a table."""
    n = len(table)
    r = sum(table[t] @ table[t + 1] for t in range(n - 1)) / sum(row @ row for row in table)
    r = (r + 1 / n) / (1 - 3 / n)
    return r + math.sqrt(max(1 - min(r * r, 0.95**2), 0.05) / (n * width)) / 4


def centred(table):
    return table - table.mean(axis=1)[:, None] - table.mean(axis=0) + table.mean()


def common(table, i, j):
    d = table[:, i] - table[:, j]
    return d[~np.isnan(d)]


def by_hand(table, i, j):
    """(p, df, se, rho, clusters) of one pair of a table, with loops."""
    pairs = [one for one in combinations(range(table.shape[1]), 2) if common(table, *one).size >= 12]
    agents = sorted({agent for pair in pairs for agent in pair})
    whole = table[:, agents][~np.isnan(table[:, agents]).any(axis=1)]
    d, found = common(table, i, j), []
    for size in (1, 2):
        rows = blocks(d, size)
        n = rows.size
        rho = bound((rows - rows.mean())[:, None], 1)
        if len(whole) >= 12:
            rho = max(rho, bound(centred(blocks(whole, size)), len(agents) - 1))
        rho = min(max(rho, 0.0), 0.9)
        effective = max(2.5, n * (1 - rho) / (1 + rho))
        variance = rows.var(ddof=1) / max(0.2, 1 - ((1 + rho) / (1 - rho) - 1) / (n - 1))
        se = math.sqrt(variance / effective)
        found.append((2 * stats.t.sf(abs(d.mean()) / se, effective - 1), effective - 1, se, rho, n))
    return max(found, key=lambda one: one[0])


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(12, 40), st.floats(-0.5, 0.9), st.floats(0, 0.3))
def test_it_is_what_plain_loops_give(seed, agents, clusters, rho, missing):
    rng = np.random.default_rng(seed)
    table = weeks(rng, (clusters, agents), rho) + rng.normal(0, 1, (clusters, 1))
    table[rng.random(table.shape) < missing] = NAN
    found = mt.serial_contrasts(table)
    assert [*found] == [*combinations(range(agents), 2)]
    for pair, one in found.items():
        d = common(table, *pair)
        if d.size < 12:
            assert (one.state, one.p, one.df, one.clusters) == ("cannot be tested", 1.0, None, d.size)
            continue
        expected = by_hand(table, *pair)
        assert (one.p, one.df, one.se, one.rho, one.clusters) == pytest.approx(expected, rel=1e-9)
        assert (one.gap, one.effective) == (pytest.approx(d.mean()), pytest.approx(one.df + 1))
        assert one.block == (1 if one.clusters == d.size else 2)


def test_many_studies_at_once_are_each_alone():
    tables = weeks(np.random.default_rng(1), (4, 25, 3), 0.4)
    found = mt.effective_t(mt.pair_differences(tables), tables)
    for b, table in enumerate(tables):
        for k, one in enumerate(mt.serial_contrasts(table).values()):
            assert (one.p, one.se, one.rho) == pytest.approx((found.p[b, k], found.se[b, k], found.rho[b, k]))
    # Fewer than six blocks are not tested.
    # Fewer than six blocks are not tested, and eleven clusters are not enough.
    table = weeks(np.random.default_rng(4), (11, 3), 0.0)
    assert set(mt.effective_t(mt.pair_differences(table), table).block.tolist()) == {1}
    assert {one.p for one in mt.serial_contrasts(table).values()} == {1.0}
    table = np.vstack([table, [4.0, 4.0, None]]).astype(float)
    assert [one.state for one in mt.serial_contrasts(table).values()] == ["tested", *["cannot be tested"] * 2]
    # Pairs that never meet have no gap.
    table = np.full((14, 2), NAN)
    table[::2, 0] = table[1::2, 1] = 3.0
    (one,) = mt.serial_contrasts(table).values()
    assert (one.gap, one.clusters, one.state) == (None, 0, "cannot be tested")

    # Where nothing varies the sign of the blocks speaks.
    table = np.repeat(np.random.default_rng(3).normal(3, 1, (14, 1)), 3, axis=1)
    table[:, 0] += 0.5
    found = mt.serial_contrasts(table)
    assert (found[0, 1].p, found[0, 1].se, found[0, 1].df, found[0, 1].block) == (2**-6, 0.0, None, 2)
    assert (found[1, 2].p, found[1, 2].gap) == (1.0, 0.0)
    # Slow swings count for few clusters.
    slow = np.sin(np.arange(30) / 5)
    found = mt.serial_contrasts(np.stack([3 + slow, np.full(30, 3.0)], axis=1))[0, 1]
    assert (found.rho, found.effective, mt.effective_size(12, 0.5)) == (0.9, 2.5, 4.0)


@pytest.mark.parametrize("agents", [2, 4])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_equal_agents_that_depend_on_the_week_before_get_few_false_orders(agents, rho):
    tables = weeks(np.random.default_rng(agents), (3000, 24, agents), rho)
    gaps = mt.pair_differences(tables)
    found = mt.effective_t(gaps, tables)
    false = mt.publish_orders(found.gap, found.p, 0.05).published.any(axis=1).mean()
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 3000)
    # A test that takes the weeks as independent does not hold that.
    plain = stats.ttest_1samp(gaps, 0, axis=1).pvalue.min(axis=1)
    assert rho == 0 or (plain <= 0.05).mean() > 0.15


def test_a_large_difference_is_found_in_a_season():
    tables = weeks(np.random.default_rng(5), (500, 36, 3), 0.0)
    tables[:, :, 0] += 1.2 * math.sqrt(2)
    found = mt.effective_t(mt.pair_differences(tables), tables)
    assert (mt.publish_orders(found.gap, found.p, 0.05).first == 0).mean() > 0.85

    # Autocorrelations of two agents are those of their difference.
    table = weeks(np.random.default_rng(6), (40, 2), 0.6)
    found, limit = mt.autocorrelations(table, lags=6)
    assert found == pytest.approx(acf(table[:, 0] - table[:, 1], nlags=6)[1:].tolist())
    assert limit == pytest.approx(1.645 / math.sqrt(39) - 1 / 40)
    # Weeks that are good for all agents do not count.
    rng = np.random.default_rng(7)
    table = rng.normal(0, 1, (60, 4))
    swings = table + 5 * weeks(rng, (60, 1), 0.9)
    assert mt.autocorrelations(swings)[0] == pytest.approx(mt.autocorrelations(table)[0])
    # Independent clusters are flagged once in twenty.
    rng = np.random.default_rng(8)
    found = [mt.autocorrelations(rng.normal(0, 1, (24, 5)), lags=1) for _ in range(1500)]
    assert np.mean([lags[0] > limit for lags, limit in found]) == pytest.approx(0.05, abs=0.02)

    # Holes are left out and short tables have few lags; without agents, clusters or differences there are none.
    table = weeks(np.random.default_rng(9), (8, 3), 0.5)
    table[[1, 5], [0, 2]] = NAN
    assert mt.autocorrelations(table) == mt.autocorrelations(table[[0, 2, 3, 4, 6, 7]])
    assert len(mt.autocorrelations(table[:4])[0]) == 2
    for none in (np.full((9, 3), 3.0), np.zeros((9, 1)), [[1.0, 2.0], [2.0, 1.0]], np.full((9, 3), NAN)):
        assert mt.autocorrelations(none) == ([], None)


def test_what_is_wrong_is_said():
    for table, message in (
        ([1.0, 2.0], "2 axes"), ([[]], "at least one"), ([[1.0, math.inf]], "finite"), ([["a"]], "numbers")
    ):  # fmt: skip
        for call in (mt.serial_contrasts, mt.autocorrelations):
            with pytest.raises(InputError, match=message):
                call(table)
    with pytest.raises(InputError, match="at least 1"):
        mt.autocorrelations(np.zeros((9, 2)), lags=0)


# What an agent earned over a baseline a day, with an interval that keeps its word
def paths(seed: int, days: int = 80, edge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 3])
    market = rng.normal(0.0005, 0.01, days)
    return market + rng.normal(edge, 0.004, days), market


def excess(own, market, seed=1, **more):
    return mt.daily_excess(own, market, rng=np.random.default_rng(seed), **more)


def test_it_is_the_mean_of_the_differences():
    own, market = paths(1)
    found = excess(own, market)
    assert found == excess(own, market)
    assert (found.value, found.n, found.high) == pytest.approx(((own - market).mean(), 80, 2 * found.value - found.low))
    assert found.low < found.value
    # What both share changes nothing.
    two = excess(own + 0.02, market + 0.02)
    assert (found.value, found.low, found.p) == pytest.approx((two.value, two.low, two.p))
    # The standard error of independent days is the usual one.
    own, market = paths(3, days=250)
    found = excess(own, market, resamples=4000)
    assert found.block < 3
    assert (found.high - found.low) / (2 * 1.97) == pytest.approx((own - market).std(ddof=1) / np.sqrt(250), rel=0.1)
    # The interval excludes zero exactly where p is small.
    for seed in range(30):
        found = excess(*paths(seed, edge=0.001), seed, resamples=300)
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)
    # A p-value that is a share of resamples could not survive Holm over fifty agents.
    assert excess(*paths(4, edge=0.004), resamples=200).p < 1e-6


def test_no_edge_is_rarely_found_and_what_cannot_be_measured_is_said():
    rejected = [excess(*paths(seed), seed, resamples=200).p <= 0.05 for seed in range(200)]
    assert 0.01 <= np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    own, market = paths(6)
    for one, other, error, message in (
        (own[:9], market[:9], NotMeasurableError, "10 days"), (market, market, NotMeasurableError, "does not vary"),
        (own, market[1:], InputError, "one return for each of the 80 days"),
        ([*own[1:], np.nan], market, InputError, "finite"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            excess(one, other)


# What a judge gives for length: a slope within agents, against the other judges
AGENTS, PERIODS = 5, 12


def world(seed: int, slope: float, *, noise: float = 2.0, taste: float = 10.0):
    """A judge with a taste for long-winded agents, and a slope within them."""
    rng = np.random.default_rng(seed)
    agents = np.repeat(np.arange(AGENTS), PERIODS)
    periods = np.tile(np.arange(PERIODS), AGENTS)
    doublings = agents + rng.normal(0, 1, agents.size)
    tokens = 100 * 2**doublings
    others = rng.normal(55, 6, agents.size)
    own = others + taste * agents + slope * doublings + noise * rng.normal(size=agents.size)
    return own, others, tokens, [f"a{a}" for a in agents], [f"w{p}" for p in periods]


def test_it_is_least_squares_with_a_level_for_each_agent():
    own, others, tokens, agents, periods = world(1, 3.0)
    found = mt.season_verbosity(own, others, tokens, agents, periods)
    levels = [np.array(agents) == name for name in sorted(set(agents))]
    design = np.column_stack([np.log2(tokens), *levels]).astype(float)
    (slope, *_), *_ = np.linalg.lstsq(design, own - others, rcond=None)
    assert (found.estimate, found.df) == (pytest.approx(slope), PERIODS - 1)
    # Without a level for each agent the taste of 10 points would pass for a slope.
    found = [mt.season_verbosity(*world(seed, 0.0)) for seed in range(40)]
    assert np.mean([one.estimate for one in found]) == pytest.approx(0.0, abs=0.2)
    assert sum(one.low is not None and one.low > 0 for one in found) <= 4
    # The interval is a jackknife over periods.
    own, others, tokens, agents, periods = map(np.array, world(2, 1.0))

    def fitted(kept):
        return mt.season_verbosity(own[kept], others[kept], tokens[kept], list(agents[kept]), list(periods[kept]))

    left = [fitted(periods != gone).estimate for gone in sorted(set(periods))]
    error = np.sqrt((PERIODS - 1) / PERIODS * np.square(np.array(left) - np.mean(left)).sum())
    found = fitted(periods == periods)
    assert found.estimate - found.low == pytest.approx(2.200985 * error, rel=1e-5)


def test_what_has_no_slope_or_no_interval():
    # Lengths that do not differ are not measured.
    with pytest.raises(NotMeasurableError, match="differ in length"):
        mt.season_verbosity([60, 62, 50, 51], [60, 60, 50, 50], [100, 100, 300, 300], list("aabb"), list("1212"))
    with pytest.raises(NotMeasurableError):
        mt.season_verbosity([60, 50], [60, 50], [100, 300], ["a", "a"], ["1", "1"])
    # Two periods have a slope and no interval.
    found = mt.season_verbosity([60, 64], [60, 60], [100, 200], ["a", "a"], ["1", "2"])
    assert (found.estimate, found.low, found.high) == (pytest.approx(4.0), None, None)
    for own, tokens in (([60.0, 61.0], [100, 0]), ([60.0, np.nan], [100, 200]), ([60.0], [100, 200])):
        with pytest.raises(InputError):
            mt.season_verbosity(own, [50.0] * len(own), tokens, ["a", "a"], ["1", "2"])
