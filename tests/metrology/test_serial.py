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

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import (
    autocorrelations,
    daily_excess,
    effective_size,
    effective_t,
    pair_differences,
    publish_orders,
    season_verbosity,
    serial_contrasts,
)

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


def by_hand(table, i, j):
    """(p, df, se, rho, clusters) of one pair of a table, with loops."""
    agents = sorted(
        {a for one in combinations(range(table.shape[1]), 2) if common(table, *one).size >= 12 for a in one}
    )
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


def common(table, i, j):
    d = table[:, i] - table[:, j]
    return d[~np.isnan(d)]


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(12, 40), st.floats(-0.5, 0.9), st.floats(0, 0.3))
def test_it_is_what_plain_loops_give(seed, agents, clusters, rho, missing):
    rng = np.random.default_rng(seed)
    table = weeks(rng, (clusters, agents), rho) + rng.normal(0, 1, (clusters, 1))
    table[rng.random(table.shape) < missing] = NAN
    found = serial_contrasts(table)
    assert [*found] == [*combinations(range(agents), 2)]
    for pair, one in found.items():
        d = common(table, *pair)
        if d.size < 12:
            assert (one.state, one.p, one.df, one.clusters) == ("cannot be tested", 1.0, None, d.size)
            continue
        expected = by_hand(table, *pair)
        assert (one.p, one.df, one.se, one.rho, one.clusters) == pytest.approx(expected, rel=1e-9)
        assert one.gap == pytest.approx(d.mean())
        assert one.effective == pytest.approx(one.df + 1)
        assert one.block == (1 if one.clusters == d.size else 2)


def test_many_studies_at_once_are_each_alone():
    tables = weeks(np.random.default_rng(1), (4, 25, 3), 0.4)
    found = effective_t(pair_differences(tables), tables)
    for b, table in enumerate(tables):
        for k, one in enumerate(serial_contrasts(table).values()):
            assert (one.p, one.se, one.rho) == pytest.approx((found.p[b, k], found.se[b, k], found.rho[b, k]))
    # Fewer than six blocks are not tested.
    table = weeks(np.random.default_rng(4), (11, 3), 0.0)
    assert set(effective_t(pair_differences(table), table).block.tolist()) == {1}
    # Eleven clusters are not enough.
    table = np.random.default_rng(2).normal(3, 1, (11, 3))
    assert {one.p for one in serial_contrasts(table).values()} == {1.0}
    table = np.vstack([table, [4.0, 4.0, None]]).astype(float)
    assert [one.state for one in serial_contrasts(table).values()] == ["tested", *["cannot be tested"] * 2]
    # Pairs that never meet have no gap.
    table = np.full((14, 2), NAN)
    table[::2, 0] = table[1::2, 1] = 3.0
    (one,) = serial_contrasts(table).values()
    assert (one.gap, one.clusters, one.state) == (None, 0, "cannot be tested")


def test_where_nothing_varies_the_sign_of_the_blocks_speaks():
    table = np.repeat(np.random.default_rng(3).normal(3, 1, (14, 1)), 3, axis=1)
    table[:, 0] += 0.5
    found = serial_contrasts(table)
    assert (found[0, 1].p, found[0, 1].se, found[0, 1].df, found[0, 1].block) == (2**-6, 0.0, None, 2)
    assert (found[1, 2].p, found[1, 2].gap) == (1.0, 0.0)
    # Slow swings count for few clusters.
    slow = np.sin(np.arange(30) / 5)
    found = serial_contrasts(np.stack([3 + slow, np.full(30, 3.0)], axis=1))[0, 1]
    assert found.rho == 0.9
    assert found.effective == 2.5
    assert effective_size(12, 0.5) == 4.0


@pytest.mark.parametrize("agents", [2, 4])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_equal_agents_that_depend_on_the_week_before_get_few_false_orders(agents, rho):
    tables = weeks(np.random.default_rng(agents), (3000, 24, agents), rho)
    found = effective_t(pair_differences(tables), tables)
    false = publish_orders(found.gap, found.p, 0.05).published.any(axis=1).mean()
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 3000)
    if rho:  # which a test that takes the weeks as independent does not hold
        gaps = pair_differences(tables)
        plain = stats.ttest_1samp(gaps, 0, axis=1).pvalue
        assert (plain.min(axis=1) <= 0.05).mean() > 0.15


def test_a_large_difference_is_found_in_a_season():
    tables = weeks(np.random.default_rng(5), (500, 36, 3), 0.0)
    tables[:, :, 0] += 1.2 * math.sqrt(2)
    found = effective_t(pair_differences(tables), tables)
    assert (publish_orders(found.gap, found.p, 0.05).first == 0).mean() > 0.85
    # Autocorrelations of two agents are those of their difference.
    table = weeks(np.random.default_rng(6), (40, 2), 0.6)
    found, limit = autocorrelations(table, lags=6)
    assert found == pytest.approx(acf(table[:, 0] - table[:, 1], nlags=6)[1:].tolist())
    assert limit == pytest.approx(1.645 / math.sqrt(39) - 1 / 40)
    # Weeks that are good for all agents do not count.
    rng = np.random.default_rng(7)
    table = rng.normal(0, 1, (60, 4))
    swings = table + 5 * weeks(rng, (60, 1), 0.9)
    assert autocorrelations(swings)[0] == pytest.approx(autocorrelations(table)[0])
    # Independent clusters are flagged once in twenty.
    rng = np.random.default_rng(8)
    found = [autocorrelations(rng.normal(0, 1, (24, 5)), lags=1) for _ in range(1500)]
    assert np.mean([lags[0] > limit for lags, limit in found]) == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize(
    "table", [np.full((9, 3), 3.0), np.zeros((9, 1)), [[1.0, 2.0], [2.0, 1.0]], np.full((9, 3), NAN)]
)
def test_without_agents_clusters_or_differences_there_are_no_autocorrelations(table):
    assert autocorrelations(table) == ([], None)


def test_holes_are_left_out_and_short_tables_have_few_lags():
    table = weeks(np.random.default_rng(9), (8, 3), 0.5)
    table[[1, 5], [0, 2]] = NAN
    assert autocorrelations(table) == autocorrelations(table[[0, 2, 3, 4, 6, 7]])
    assert len(autocorrelations(table[:4])[0]) == 2


@pytest.mark.parametrize("call", [serial_contrasts, autocorrelations])
@pytest.mark.parametrize(
    ("table", "message"),
    [([1.0, 2.0], "2 axes"), ([[]], "at least one"), ([[1.0, math.inf]], "finite"), ([["a"]], "numbers")],
)
def test_what_is_wrong_is_said(call, table, message):
    with pytest.raises(InputError, match=message):
        call(table)


def test_lags_start_at_one():
    with pytest.raises(InputError, match="at least 1"):
        autocorrelations(np.zeros((9, 2)), lags=0)


# What an agent earned over a baseline a day, with an interval that keeps its word


def paths(seed: int, days: int = 80, edge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, 3])
    market = rng.normal(0.0005, 0.01, days)
    return market + rng.normal(edge, 0.004, days), market


def test_it_is_the_mean_of_the_differences():
    own, market = paths(1)
    found = daily_excess(own, market, rng=np.random.default_rng(1))
    assert found.value == pytest.approx((own - market).mean())
    assert found.n == 80
    assert found.low < found.value < found.high
    assert found.value - found.low == pytest.approx(found.high - found.value)
    # What both share changes nothing.
    own, market = paths(2)
    one = daily_excess(own, market, rng=np.random.default_rng(1))
    two = daily_excess(own + 0.02, market + 0.02, rng=np.random.default_rng(1))
    assert (one.value, one.low, one.p) == (pytest.approx(two.value), pytest.approx(two.low), pytest.approx(two.p))
    # The standard error of independent days is the usual one.
    own, market = paths(3, days=250)
    found = daily_excess(own, market, rng=np.random.default_rng(1), resamples=4000)
    usual = (own - market).std(ddof=1) / np.sqrt(250)
    assert found.block < 3
    assert (found.high - found.low) / (2 * 1.97) == pytest.approx(usual, rel=0.1)
    # The interval excludes zero exactly where p is small.
    for seed in range(30):
        own, market = paths(seed, edge=0.001)
        found = daily_excess(own, market, rng=np.random.default_rng(seed), resamples=300)
        assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_p_has_no_floor():
    """A p-value that is a share of resamples could not survive Holm over fifty agents."""
    own, market = paths(4, edge=0.004)
    assert daily_excess(own, market, rng=np.random.default_rng(1), resamples=200).p < 1e-6
    # No edge is rarely found.
    rejected = []
    for seed in range(200):
        own, market = paths(seed)
        rejected.append(daily_excess(own, market, rng=np.random.default_rng(seed), resamples=200).p <= 0.05)
    assert 0.01 <= np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    # The same generator makes the same interval.
    own, market = paths(5)
    one, two = (daily_excess(own, market, rng=np.random.default_rng(9)) for _ in range(2))
    assert one == two
    # What cannot be measured is said.
    own, market = paths(6)
    with pytest.raises(NotMeasurableError, match="10 days"):
        daily_excess(own[:9], market[:9], rng=np.random.default_rng(1))
    with pytest.raises(NotMeasurableError, match="does not vary"):
        daily_excess(market, market, rng=np.random.default_rng(1))
    with pytest.raises(InputError, match="one return for each of the 80 days"):
        daily_excess(own, market[1:], rng=np.random.default_rng(1))
    with pytest.raises(InputError):
        daily_excess([*own[1:], np.nan], market, rng=np.random.default_rng(1))


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
    found = season_verbosity(own, others, tokens, agents, periods)
    design = np.column_stack([np.log2(tokens), *(np.array(agents) == name for name in sorted(set(agents)))]).astype(
        float
    )
    (slope, *_), *_ = np.linalg.lstsq(design, own - others, rcond=None)
    assert found.slope == pytest.approx(slope)
    assert (found.items, found.periods) == (AGENTS * PERIODS, PERIODS)
    # Without a level for each agent the taste of 10 points would pass for a slope.
    found = [season_verbosity(*world(seed, 0.0)) for seed in range(40)]
    assert np.mean([one.slope for one in found]) == pytest.approx(0.0, abs=0.2)
    assert sum(one.low is not None and one.low > 0 for one in found) <= 4
    # The interval is a jackknife over periods.
    own, others, tokens, agents, periods = world(2, 1.0)
    found = season_verbosity(own, others, tokens, agents, periods)
    left = []
    for gone in sorted(set(periods)):
        kept = np.array([one != gone for one in periods])
        part = [np.asarray(x)[kept] for x in (own, others, tokens)]
        left.append(season_verbosity(*part, list(np.array(agents)[kept]), list(np.array(periods)[kept])).slope)
    error = np.sqrt((PERIODS - 1) / PERIODS * np.square(np.array(left) - np.mean(left)).sum())
    assert found.low is not None
    assert found.slope - found.low == pytest.approx(2.200985 * error, rel=1e-5)
    # Lengths that do not differ are not measured.
    with pytest.raises(NotMeasurableError, match="differ in length"):
        season_verbosity([60, 62, 50, 51], [60, 60, 50, 50], [100, 100, 300, 300], list("aabb"), list("1212"))
    with pytest.raises(NotMeasurableError):
        season_verbosity([60, 50], [60, 50], [100, 300], ["a", "a"], ["1", "1"])


def test_two_periods_have_a_slope_and_no_interval():
    found = season_verbosity([60, 64], [60, 60], [100, 200], ["a", "a"], ["1", "2"])
    assert (found.slope, found.low, found.high) == (pytest.approx(4.0), None, None)


@pytest.mark.parametrize(
    ("own", "tokens"), [([60.0, 61.0], [100, 0]), ([60.0, np.nan], [100, 200]), ([60.0], [100, 200])]
)
def test_values_that_do_not_fit_are_refused(own: list[float], tokens: list[int]):
    with pytest.raises(InputError):
        season_verbosity(own, [50.0] * len(own), tokens, ["a"] * len(tokens), ["1", "2"][: len(tokens)])
