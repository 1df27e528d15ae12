"""The cluster bootstrap of kappa: enumeration against brute force, draws against enumeration, edges in words."""

from __future__ import annotations

import contextlib
import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from arch.bootstrap import optimal_block_length
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.signal import lfilter
from statsmodels.stats.proportion import proportion_confint

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError
from assaymark.portfolio import performance


def panel(clusters, per_cluster, seed=0, judges=3):
    rng = np.random.default_rng(seed)
    n = clusters * per_cluster
    true = rng.integers(1, 6, (n, 1))
    return np.clip(true + rng.integers(-1, 2, (n, judges)), 1, 5), np.repeat(np.arange(clusters), per_cluster)


def brute_force(ratings, clusters, level):
    """All G^G ordered draws, kappa recomputed from the ratings each time."""
    groups = [ratings[clusters == c] for c in np.unique(clusters)]
    values = []
    for draw in product(range(len(groups)), repeat=len(groups)):
        with contextlib.suppress(NotMeasurableError):
            values.append(mt.mean_pairwise_kappa(np.concatenate([groups[g] for g in draw])))
    values.sort()

    def first_reaching(q):
        return next(v for k, v in enumerate(values, start=1) if k >= q * len(values) - 1e-6)

    return pytest.approx((first_reaching((1 - level) / 2), first_reaching((1 + level) / 2)), abs=1e-12)


@pytest.mark.parametrize("clusters", [2, 3, 4])
def test_enumeration_is_the_bootstrap_over_all_ordered_draws(clusters):
    ratings, codes = panel(clusters, 6, seed=clusters)
    for level in (0.95, 0.8, 0.5):
        interval = mt.bootstrap_kappa(ratings, codes, level=level)
        assert (interval.low, interval.high) == brute_force(ratings, codes, level)
        assert "exact" in interval.method


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_enumeration_is_right_also_where_some_resamples_have_no_kappa(seed, judges):
    rng = np.random.default_rng(seed)
    ratings, codes = rng.integers(2, 4, (9, judges)), np.repeat(np.arange(3), 3)
    with contextlib.suppress(NotMeasurableError):  # the cases without an interval have tests of their own
        interval = mt.bootstrap_kappa(ratings, codes)
        assert (interval.low, interval.high) == brute_force(ratings, codes, 0.95)


def test_every_resample_is_there_once_with_its_weight():
    for clusters in range(1, 9):
        table = mt.all_resamples(clusters)
        assert (table.size, table.mass.sum()) == (math.comb(2 * clusters - 1, clusters), clusters**clusters)
        assert (table.times.sum(axis=1) == clusters).all()
        assert len({tuple(row) for row in table.times.tolist()}) == table.size


def test_five_clusters_have_126_resamples():
    ratings, codes = panel(5, 10)
    assert mt.bootstrap_kappa(ratings, codes).method == "cluster bootstrap, exact: all 126 resamples of 5 clusters"
    # Draws above eight clusters are repeatable and say how many.
    ratings, codes = panel(9, 20)
    first, again = (mt.bootstrap_kappa(ratings, codes, rng=np.random.default_rng(7), resamples=2000) for _ in range(2))
    assert (first, first.method) == (again, "cluster bootstrap, multinomial: 2000 resamples of 9 clusters")
    assert first.low < mt.mean_pairwise_kappa(ratings) < first.high
    # Draws are the draws of a plain loop.
    ratings, codes = panel(12, 8, seed=4)
    groups = [ratings[codes == c] for c in range(12)]
    draws = np.random.default_rng(3).integers(0, 12, size=(400, 12))
    values = np.sort([mt.mean_pairwise_kappa(np.concatenate([groups[g] for g in row])) for row in draws])
    interval = mt.bootstrap_kappa(ratings, codes, rng=np.random.default_rng(3), resamples=400)
    # 2.5 % of 400 is reached by the tenth value, 97.5 % by the 390th.
    assert (interval.low, interval.high) == pytest.approx((values[9], values[389]), abs=1e-12)
    # More than eight clusters need a generator.
    with pytest.raises(InputError, match="rng: 9 clusters are too many to enumerate"):
        mt.bootstrap_kappa(*panel(9, 4))


def test_names_of_clusters_and_resamples_without_a_kappa():
    ratings, codes = panel(4, 7)
    names, expected = [f"week {c}" for c in codes], mt.bootstrap_kappa(ratings, codes)
    assert mt.bootstrap_kappa(ratings, names) == expected
    assert mt.bootstrap_kappa(ratings.tolist(), np.array(names, dtype=object)) == expected
    order = np.random.default_rng(1).permutation(len(codes))
    assert mt.bootstrap_kappa(ratings[order], codes[order]) == expected
    # Resamples without a kappa are left out and counted.
    ratings, codes = np.array([[3, 3]] * 4 + [[1, 2], [4, 4], [2, 1], [5, 4]] * 3), np.repeat(np.arange(4), 4)
    interval = mt.bootstrap_kappa(ratings, codes)
    assert interval.method.endswith("; 1 without a kappa left out (0.391% of the mass)")
    assert (interval.low, interval.high) == brute_force(ratings, codes, 0.95)


@pytest.mark.parametrize(("make", "ratings", "clusters", "message"), [
    (mt.bootstrap_kappa, [[3, 3]] * 8 + [[1, 2], [4, 4]], [0] * 4 + [1] * 4 + [2] * 2, "left out .* more than 5.000%"),
    (mt.bootstrap_kappa, [[2, 2]] * 3, [0, 1, 1], "kappa is undefined: .* all 3 items"),
    (mt.bootstrap_kappa, [[1, 2], [3, 3]], ["a", "a"], r"at least two of them \(got 1\)"),
    (mt.jackknife_kappa, [[1, 2], [3, 3]], ["a", "a"], r"at least two of them \(got 1\)"),
    (mt.jackknife_kappa, [[3, 3], [3, 3], [1, 2], [4, 4]], [0, 0, 1, 1], "undefined without 1 of the 2 clusters"),
    (mt.jackknife_kappa, [[k % 5 + 1] * 2 for k in range(12)], [0, 1, 2] * 4, "the 3 clusters do not differ"),
])  # fmt: skip
def test_where_there_is_no_interval(make, ratings, clusters, message):
    with pytest.raises(NotMeasurableError, match=message):
        make(ratings, clusters)


@pytest.mark.parametrize(("parts", "message"), [
    ({"clusters": [0, 1]}, "one entry for each of the 3 items"),
    ({"clusters": [0.5, 1.0, 1.0]}, "names or whole numbers"),
    ({"clusters": [None, "a", "b"]}, "names or whole numbers"),
    ({"ratings": [[1, 2], [3, 4], [5, 6]]}, "off the scale"),
    ({"level": 1.0}, r"level: must lie strictly between 0 and 1 \(got 1.0\)"), ({"level": math.nan}, "level"),
    ({"resamples": 0}, "resamples: must be a whole number of at least 1"), ({"resamples": 10.5}, "resamples")
])  # fmt: skip
def test_bootstrap_says_what_is_wrong(parts, message):
    usual = {"ratings": [[1, 2], [3, 4], [5, 5]], "clusters": [0, 1, 1]}
    with pytest.raises(InputError, match=message):
        mt.bootstrap_kappa(**{**usual, **parts})


def test_jackknife_is_its_definition():
    ratings, codes = panel(5, 12, seed=9)
    without = np.array([mt.mean_pairwise_kappa(ratings[codes != c]) for c in range(5)])
    centre = mt.mean_pairwise_kappa(ratings)
    error = 2.7764451 * math.sqrt(4 / 5 * np.square(without - centre).sum())
    interval = mt.jackknife_kappa(ratings, codes)
    assert (interval.low, interval.high) == pytest.approx((centre - error, centre + error), abs=1e-7)
    assert interval.method == "delete-one-cluster jackknife, t(4)"


def test_jackknife_covers_better_than_the_bootstrap_with_five_clusters():
    """Agreement differs between clusters; the interval should hold the agreement of the population of clusters."""
    rng = np.random.default_rng(21)

    def study(clusters):
        true = rng.integers(1, 6, (clusters, 30, 1))
        noise = rng.uniform(0.2, 1.2, (clusters, 1, 1)) * rng.normal(size=(clusters, 30, 2))
        ratings = np.clip(np.floor(true + noise + 0.5), 1, 5).astype(int).reshape(-1, 2)
        return ratings, np.repeat(np.arange(clusters), 30)

    truth = mt.mean_pairwise_kappa(study(20_000)[0])
    hits = np.zeros(2)
    for _ in range(300):
        data = study(5)
        found = [make(*data) for make in (mt.bootstrap_kappa, mt.jackknife_kappa)]
        hits += [one.low <= truth <= one.high for one in found]
    assert hits[0] < 270 < hits[1]  # nominal: 285


@given(st.integers(0, 1000), st.sampled_from([0.5, 0.8, 0.95, 0.99]), st.booleans())
def test_the_ends_of_many_rows_are_by_definition_those_of_each(seed, level, weighted):
    """The smallest value whose cumulative mass reaches the share, but for float noise."""
    rng, tail = np.random.default_rng(seed), (1 - level) / 2
    values = rng.integers(0, 9, (4, 40)) / 2
    mass = rng.integers(1, 9, 40).astype(float) if weighted else None
    each = np.ones(40) if mass is None else mass
    expected = [[min(value for value in row if each[row <= value].sum() >= (q - 1e-9) * each.sum()) for row in values]
                for q in (tail, 1 - tail)]  # fmt: skip
    assert np.array_equal(mt.percentile_ends(values, mass, level), expected)
    # Mass is repetition, and the ends are numpy's inverted distribution.
    mass = each.astype(int)
    repeated = np.stack([np.repeat(row, mass) for row in values])
    assert np.array_equal(mt.percentile_ends(repeated, None, level), mt.percentile_ends(values, each, level))
    size = repeated.shape[1]
    if abs(tail * size - round(tail * size)) > 1e-6:
        expected = np.quantile(repeated, [tail, 1 - tail], method="inverted_cdf", axis=1)
        assert np.array_equal(mt.percentile_ends(repeated, None, level), expected)
    # (1 - 0.95) / 2 is a little more than 0.025 in binary; the 25th of 1,000 must still reach it.
    for mass in (None, np.full(1000, 1.0)):
        assert mt.percentile_ends(np.arange(1, 1001.0)[None], mass, 0.95)[0] == 25


# Wilson's interval of a count, and what an interval looks like
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_agrees_with_statsmodels(counts, level):
    expected = proportion_confint(*counts, alpha=1 - level, method="wilson")
    assert mt.wilson(*counts, level=level) == pytest.approx(expected, abs=1e-9)
    n = counts[1]
    assert (mt.wilson(0, n)[0], mt.wilson(n, n)[1]) == (0.0, 1.0)
    assert mt.wilson(n, n)[0] == pytest.approx(1 - mt.wilson(0, n)[1])


@pytest.mark.parametrize(("successes", "n", "level", "message"), [
    (5, 4, 0.95, "must not exceed n = 4"), (-1, 4, 0.95, "successes: must be a whole number of at least 0"),
    (1.5, 4, 0.95, "successes"), (1, 4.5, 0.95, "n: must be a whole"), (math.nan, 4, 0.95, "successes"),
    (True, 4, 0.95, "successes"), ([1], 4, 0.95, "successes"), (1, 4, 0, "level")
])  # fmt: skip
def test_wilson_says_what_is_wrong(successes, n, level, message):
    with pytest.raises(InputError, match=message):
        mt.wilson(successes, n, level=level)
    with pytest.raises(NotMeasurableError, match="no items"):
        mt.wilson(0, 0)
    assert str(mt.Interval(-0.25, 1.0, "x")) == "[-0.2500, 1.0000] (x)"


# The estimate that leave-one-cluster-out gives: against Student's test, brute force, and at its edges
def test_equal_clusters_are_students_test_on_cluster_means():
    values = np.random.default_rng(8).normal(0.2, 1, (6, 10))
    found = mt.cluster_mean(values.ravel(), np.repeat(np.arange(6), 10), level=0.9)
    means = values.mean(axis=1)
    expected, up = stats.ttest_1samp(means, 0), stats.ttest_1samp(means, 0, alternative="greater")
    wanted = (expected.pvalue, up.pvalue, *expected.confidence_interval(0.9))
    assert (found.p, found.p_up, found.low, found.high) == pytest.approx(wanted, abs=1e-12)
    assert (found.df, found.state) == (5, "ok")


@given(st.lists(st.integers(1, 6), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_unequal_clusters_are_left_out_one_by_one(sizes, seed):
    g, codes = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(seed).normal(size=codes.size)
    without = np.array([values[codes != k].mean() for k in range(g)])
    se = np.sqrt((g - 1) / g * ((without - values.mean()) ** 2).sum())
    p = 2 * stats.t.sf(abs(values.mean() / se), g - 1)
    found = mt.cluster_mean(values, codes)
    assert (found.estimate, found.se, found.p) == pytest.approx((values.mean(), se, p), abs=1e-12)


def test_where_all_clusters_agree_the_sign_test_speaks():
    for value, p, p_up in ((0.5, 2**-3, 2**-4), (-0.5, 2**-3, 1.0), (0.0, 1.0, 1.0), (9e-10, 1.0, 1.0)):
        found = mt.cluster_mean(np.full(8, value), np.repeat(np.arange(4), 2))
        assert (found.estimate, found.df, found.low, found.high) == (pytest.approx(value), 3, None, None)
        assert (found.p, found.p_up, found.state) == (p, p_up, "zero variance: sign test")
    # One cluster says nothing.
    expected = mt.Estimate(pytest.approx(0.6), None, 0, None, None, 1.0, 1.0, "undefined: one cluster, needs two")
    assert mt.cluster_mean(np.array([0.5, 0.7]), np.zeros(2, dtype=int)) == expected
    assert mt.jackknife_estimate(0.6, np.zeros(0)) == expected
    # A zero width interval is never given for large numbers either.
    found = mt.student_estimate(1e6, 1e-7, 4)
    assert (found.low, found.state.partition(":")[0]) == (None, "zero variance")
    assert mt.student_estimate(0.1, 1e-7, 4).low is not None


@given(st.floats(-5, 5), st.floats(1e-3, 5), st.integers(1, 60))
def test_both_sides_of_a_test_add_up(estimate, se, df):
    up, down = mt.student_estimate(estimate, se, df), mt.student_estimate(-estimate, se, df)
    assert (up.p_up + down.p_up, up.p) == (pytest.approx(1), pytest.approx(2 * min(up.p_up, down.p_up)))
    assert (up.low > 0 or up.high < 0) == (up.p < 0.05)


def test_neighbours_are_left_out_in_blocks():
    for clusters, blocks, last in ((2, 1, 2), (3, 1, 3), (8, 4, 2), (9, 3, 3), (15, 5, 3), (16, 4, 4), (18, 4, 6),
            (20, 5, 4), (21, 4, 6), (47, 9, 7), (48, 8, 6), (104, 8, 13), (110, 8, 19)):  # fmt: skip
        codes = mt.neighbour_blocks(clusters)
        assert (codes[-1] + 1, (codes == codes[-1]).sum()) == (blocks, last)
        assert np.isin(np.diff(codes), (0, 1)).all()


# Rank intervals and tiers from published orders: by their definitions, written with loops
@st.composite
def oriented(draw):
    """Draw a number of agents and some pairs of them, each with the higher one first."""
    agents = draw(st.integers(1, 6))
    turns = [(pair, draw(st.sampled_from([0, 1, -1]))) for pair in combinations(range(agents), 2)]
    return agents, [pair[::turn] for pair, turn in turns if turn]


@given(oriented())
def test_every_ranking_that_keeps_the_orders_lies_inside(case):
    agents, orders = case
    found = mt.rank_intervals(orders, agents)
    for ranking in permutations(range(agents)):
        rank = {agent: place + 1 for place, agent in enumerate(ranking)}
        if all(rank[high] < rank[low] for high, low in orders):
            assert all(best <= rank[agent] <= worst for agent, (best, worst) in enumerate(found))
    # Cuts run where all above are published above all below and only there.
    found, said = mt.tiers(orders, agents), set(orders)
    assert sorted(agent for tier in found for agent in tier) == list(range(agents))
    cuts = [frozenset(a for t in found[:place] for a in t) for place in range(1, len(found))]
    assert all((high, low) in said for upper in cuts for high in upper for low in set(range(agents)) - upper)
    # No cut was missed: no group splits a tier.
    for size in range(1, agents):
        for upper in combinations(range(agents), size):
            lower = set(range(agents)) - set(upper)
            if all((high, low) in said for high in upper for low in lower):
                assert frozenset(upper) in cuts


def test_orders_that_run_in_a_circle_leave_one_tier():
    circle = [(0, 1), (1, 2), (2, 0)]
    assert (mt.tiers(circle, 3), mt.rank_intervals(circle, 3)) == (((0, 1, 2),), ((2, 2),) * 3)
    # Nothing published leaves every rank open.
    assert (mt.rank_intervals([], 3), mt.tiers([], 3)) == (((1, 3),) * 3, ((0, 1, 2),))
    assert (mt.rank_intervals([], 1), mt.tiers([], 1)) == (((1, 1),), ((0,),))
    # An order counts once.
    assert mt.rank_intervals([(0, 1)] * 5, 3) == ((1, 2), (2, 3), (1, 3))
    # What is wrong is said.
    for orders, agents, message in (
            ([(0, 3)], 3, "agents are 0..2"), ([(-1, 0)], 3, "agents are 0..2"), ([], 0, "at least 1"),
            ([(1, 1)], 3, "1 cannot be above 1"), ([(0, 1), (1, 0)], 3, "0 cannot be above 1 and below")):  # fmt: skip
        for call in (mt.rank_intervals, mt.tiers):
            with pytest.raises(InputError, match=message):
                call(orders, agents)


# Sharpe ratios and their differences over resampled histories
DAYS = 252


def autoregressive(n: int, phi: float, rng: np.random.Generator) -> np.ndarray:
    shocks = rng.standard_normal(n)
    return lfilter([1.0], [1.0, -phi], np.concatenate([[shocks[0] / np.sqrt(1 - phi**2)], shocks[1:]]))


def market(rng: np.random.Generator, mean: float = 0.0005) -> np.ndarray:
    return rng.normal(mean, 0.01, DAYS)


def test_the_block_length_is_that_of_another_library_and_of_theory():
    """There the window of lags is one longer than in the source, so lengths agree to a fifth and not exactly."""
    for phi in (0.0, 0.3, 0.6, 0.9):
        values = autoregressive(2000, phi, np.random.default_rng([7, int(10 * phi)]))
        theirs = float(optimal_block_length(values)["stationary"].iloc[0])
        assert mt.block_length(values) == pytest.approx(max(1.0, theirs), rel=0.2)
    # For AR(1) the best length is (2 G^2 / D n)^(1/3) with G and D in closed form.
    phi, n = 0.5, 200_000
    spectrum, slope = 1 / (1 - phi) ** 2, 2 * phi / ((1 - phi) ** 2 * (1 - phi**2))
    wanted = (n * slope**2 / spectrum**2) ** (1 / 3)
    assert mt.block_length(autoregressive(n, phi, np.random.default_rng(3))) == pytest.approx(wanted, rel=0.05)
    # Returns that trend make a ratio less certain: its interval is wider than if days were independent.
    slow = 0.01 * autoregressive(DAYS, 0.6, np.random.default_rng(4)) + 0.0005
    (blocks,), (days,) = (
        mt.sharpe_ratios(slow, rng=np.random.default_rng(1), **more)[0] for more in ({}, {"block": 1.0})
    )
    assert blocks.high - blocks.low > 1.4 * (days.high - days.low)


def test_planted_ratios_and_their_differences_are_recovered():
    # The observed ratio is that of performance.
    returns = market(np.random.default_rng(2))
    nav = np.cumprod(np.concatenate([[1.0], 1 + returns]))
    (found,), _ = mt.sharpe_ratios(returns, rng=np.random.default_rng(0), resamples=50)
    assert (found.value, found.n) == (pytest.approx(performance(nav).sharpe, abs=1e-12), DAYS)
    # 120 years of daily returns with a known ratio of 1: about 95 of 100 intervals hold it.
    rng, mean = np.random.default_rng(11), (0.04 + 0.01 * np.sqrt(252)) / 252
    found = [mt.sharpe_ratios(rng.normal(mean, 0.01, DAYS), rng=rng, resamples=400)[0][0] for _ in range(120)]
    assert 106 <= sum(one.low <= 1.0 <= one.high for one in found) <= 120
    # A planted difference is found and equals are called different at their level.
    rng = np.random.default_rng(5)
    called = np.zeros(2)
    for _ in range(150):
        common = market(rng)
        histories = common + rng.normal(0.0, 0.003, (3, DAYS))
        histories[2] += 0.001
        _, tests = mt.sharpe_ratios(histories, [(0, 1), (2, 0)], rng=rng, resamples=300)
        called += [one.p < 0.05 for one in tests]
    assert called[0] <= 15  # .05 of 150 is 7.5
    assert called[1] >= 120


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_laws(seed):
    """A history against itself is exactly nothing; turned round, a difference changes its sign and nothing else."""
    histories, pairs = np.random.default_rng(seed).normal(0.0005, 0.01, (2, DAYS)), [(0, 1), (1, 0), (0, 0)]
    rngs = (np.random.default_rng(seed) for _ in range(2))
    first, again = (mt.sharpe_ratios(histories, pairs, rng=rng, resamples=100) for rng in rngs)
    assert first == again
    ratios, (there, back, self_) = first
    assert there.value == -back.value == ratios[0].value - ratios[1].value
    assert (there.low, there.high, there.p) == (-back.high, -back.low, back.p)
    assert (self_.value, self_.low, self_.high, self_.p) == (0.0, 0.0, 0.0, 1.0)
    assert (there.low <= 0 <= there.high) or there.p <= 0.06


@pytest.mark.parametrize(("returns", "pairs", "error", "message"), [
    ([0.01] * 9, [], NotMeasurableError, "needs 10 days or more"),
    ([0.01] * 50, [], NotMeasurableError, "does not vary"),
    ([np.nan] + [0.01, 0.02] * 20, [], InputError, "must be finite"),
    ([0.01, 0.02] * 20, [(0, 1)], InputError, "must name histories 0 to 0"),
])  # fmt: skip
def test_what_has_no_interval_is_refused(returns, pairs, error, message):
    with pytest.raises(error, match=message):
        mt.sharpe_ratios(returns, pairs, rng=np.random.default_rng(0))
