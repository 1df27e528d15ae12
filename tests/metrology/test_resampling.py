"""The cluster bootstrap of kappa: enumeration against brute force, draws against enumeration, edges in words."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from arch.bootstrap import optimal_block_length
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import (
    Estimate,
    Interval,
    all_resamples,
    block_length,
    bootstrap_kappa,
    cluster_mean,
    jackknife_estimate,
    jackknife_kappa,
    mean_pairwise_kappa,
    neighbour_blocks,
    percentile_ends,
    rank_intervals,
    sharpe_ratios,
    student_estimate,
    tiers,
    wilson,
)
from assaymark.metrology.estimates import cluster_codes, leave_out, scores_of
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
        try:
            values.append(mean_pairwise_kappa(np.concatenate([groups[g] for g in draw])))
        except NotMeasurableError:
            continue
    values = np.sort(values)

    def first_reaching(q):
        return next(v for k, v in enumerate(values, start=1) if k >= q * len(values) - 1e-6)

    return first_reaching((1 - level) / 2), first_reaching((1 + level) / 2)


@pytest.mark.parametrize("clusters", [2, 3, 4])
@pytest.mark.parametrize("level", [0.95, 0.8, 0.5])
def test_enumeration_is_the_bootstrap_over_all_ordered_draws(clusters, level):
    ratings, codes = panel(clusters, 6, seed=clusters)
    interval = bootstrap_kappa(ratings, codes, level=level)
    assert (interval.low, interval.high) == pytest.approx(brute_force(ratings, codes, level), abs=1e-12)
    assert "exact" in interval.method


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_enumeration_is_right_also_where_some_resamples_have_no_kappa(seed, judges):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(2, 4, (9, judges))
    codes = np.repeat(np.arange(3), 3)
    try:
        interval = bootstrap_kappa(ratings, codes)
    except NotMeasurableError:
        return  # the cases without an interval have tests of their own
    assert (interval.low, interval.high) == pytest.approx(brute_force(ratings, codes, 0.95), abs=1e-12)


@pytest.mark.parametrize("clusters", range(1, 9))
def test_every_resample_is_there_once_with_its_weight(clusters):
    table = all_resamples(clusters)
    assert table.size == math.comb(2 * clusters - 1, clusters)
    assert table.mass.sum() == clusters**clusters
    assert (table.times.sum(axis=1) == clusters).all()
    assert len({tuple(row) for row in table.times.tolist()}) == table.size


def test_five_clusters_have_126_resamples():
    ratings, codes = panel(5, 10)
    assert bootstrap_kappa(ratings, codes).method == "cluster bootstrap, exact: all 126 resamples of 5 clusters"
    # Draws above eight clusters are repeatable and say how many.
    ratings, codes = panel(9, 20)
    first = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(7), resamples=2000)
    again = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(7), resamples=2000)
    assert first == again
    assert first.method == "cluster bootstrap, multinomial: 2000 resamples of 9 clusters"
    assert first.low < mean_pairwise_kappa(ratings) < first.high
    # Draws are the draws of a plain loop.
    ratings, codes = panel(12, 8, seed=4)
    groups = [ratings[codes == c] for c in range(12)]
    draws = np.random.default_rng(3).integers(0, 12, size=(400, 12))
    values = np.sort([mean_pairwise_kappa(np.concatenate([groups[g] for g in row])) for row in draws])
    interval = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(3), resamples=400)
    # 2.5 % of 400 is reached by the tenth value, 97.5 % by the 390th.
    assert (interval.low, interval.high) == pytest.approx((values[9], values[389]), abs=1e-12)
    # More than eight clusters need a generator.
    ratings, codes = panel(9, 4)
    with pytest.raises(InputError, match="rng: 9 clusters are too many to enumerate"):
        bootstrap_kappa(ratings, codes)


def test_names_and_numbers_of_clusters_mean_the_same():
    ratings, codes = panel(4, 7)
    names = [f"week {c}" for c in codes]
    assert bootstrap_kappa(ratings, names) == bootstrap_kappa(ratings, codes)
    assert bootstrap_kappa(ratings, np.array(names, dtype=object)) == bootstrap_kappa(ratings.tolist(), codes)
    order = np.random.default_rng(1).permutation(len(codes))
    assert bootstrap_kappa(ratings[order], codes[order]) == bootstrap_kappa(ratings, codes)
    # Resamples without a kappa are left out and counted.
    ratings = np.array([[3, 3]] * 4 + [[1, 2], [4, 4], [2, 1], [5, 4]] * 3)
    codes = np.repeat(np.arange(4), 4)
    interval = bootstrap_kappa(ratings, codes)
    assert interval.method.endswith("; 1 without a kappa left out (0.391% of the mass)")
    assert (interval.low, interval.high) == pytest.approx(brute_force(ratings, codes, 0.95), abs=1e-12)
    # Too many resamples without a kappa give no interval.
    ratings = np.array([[3, 3]] * 8 + [[1, 2], [4, 4]])
    with pytest.raises(NotMeasurableError, match=r"no interval: .* left out .* more than 5.000%"):
        bootstrap_kappa(ratings, [0] * 4 + [1] * 4 + [2] * 2)
    # No kappa or one cluster has no interval.
    with pytest.raises(NotMeasurableError, match=r"kappa is undefined: .* all 3 items"):
        bootstrap_kappa([[2, 2]] * 3, [0, 1, 1])
    for make in (bootstrap_kappa, jackknife_kappa):
        with pytest.raises(NotMeasurableError, match=r"at least two of them \(got 1\)"):
            make([[1, 2], [3, 3]], ["a", "a"])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"clusters": [0, 1]}, "one entry for each of the 3 items"),
        ({"clusters": [0.5, 1.0, 1.0]}, "names or whole numbers"),
        ({"clusters": [None, "a", "b"]}, "names or whole numbers"),
        ({"ratings": [[1, 2], [3, 4], [5, 6]]}, "off the scale"),
        ({"level": 1.0}, r"level: must lie strictly between 0 and 1 \(got 1.0\)"), ({"level": math.nan}, "level"),
        ({"resamples": 0}, "resamples: must be a whole number of at least 1"), ({"resamples": 10.5}, "resamples"),
    ],
)  # fmt: skip
def test_bootstrap_says_what_is_wrong(parts, message):
    usual = {"ratings": [[1, 2], [3, 4], [5, 5]], "clusters": [0, 1, 1]}
    with pytest.raises(InputError, match=message):
        bootstrap_kappa(**{**usual, **parts})


def test_jackknife_is_its_definition():
    ratings, codes = panel(5, 12, seed=9)
    without = np.array([mean_pairwise_kappa(ratings[codes != c]) for c in range(5)])
    centre = mean_pairwise_kappa(ratings)
    error = math.sqrt(4 / 5 * np.square(without - centre).sum())
    interval = jackknife_kappa(ratings, codes)
    assert interval.low == pytest.approx(centre - 2.7764451 * error, abs=1e-7)
    assert interval.high == pytest.approx(centre + 2.7764451 * error, abs=1e-7)
    assert interval.method == "delete-one-cluster jackknife, t(4)"
    # Jackknife needs a kappa without each cluster.
    with pytest.raises(NotMeasurableError, match="undefined without 1 of the 2 clusters"):
        jackknife_kappa([[3, 3], [3, 3], [1, 2], [4, 4]], [0, 0, 1, 1])
    # An interval without width is none.
    agree = [[k % 5 + 1] * 2 for k in range(12)]
    with pytest.raises(NotMeasurableError, match="no interval: the 3 clusters do not differ"):
        jackknife_kappa(agree, [0, 1, 2] * 4)


def test_jackknife_covers_better_than_the_bootstrap_with_five_clusters():
    """Agreement differs between clusters; the interval should hold the agreement of the population of clusters."""
    rng = np.random.default_rng(21)

    def study(clusters):
        true = rng.integers(1, 6, (clusters, 30, 1))
        noise = rng.uniform(0.2, 1.2, (clusters, 1, 1)) * rng.normal(size=(clusters, 30, 2))
        ratings = np.clip(np.floor(true + noise + 0.5), 1, 5).astype(int).reshape(-1, 2)
        return ratings, np.repeat(np.arange(clusters), 30)

    truth = mean_pairwise_kappa(study(20_000)[0])
    hits = {bootstrap_kappa: 0, jackknife_kappa: 0}
    for _ in range(300):
        ratings, codes = study(5)
        for make in hits:
            interval = make(ratings, codes)
            hits[make] += interval.low <= truth <= interval.high
    assert hits[bootstrap_kappa] < 270  # nominal: 285
    assert hits[jackknife_kappa] > 270


# --- ends of what was resampled --------------------------------------------------------------------------------------


def inverse_distribution(values, mass, q):
    """The definition: the smallest value whose cumulative mass reaches the share ``q``, but for float noise."""
    return min(value for value in values if mass[values <= value].sum() >= (q - 1e-9) * mass.sum())


@given(st.integers(0, 1000), st.sampled_from([0.5, 0.8, 0.95]), st.booleans())
def test_the_ends_of_many_rows_are_by_definition_those_of_each(seed, level, weighted):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, (4, 40)) / 2
    mass = rng.integers(1, 9, 40).astype(float) if weighted else None
    low, high = percentile_ends(values, mass, level)
    tail, each = (1 - level) / 2, np.ones(40) if mass is None else mass
    assert low.tolist() == [inverse_distribution(row, each, tail) for row in values]
    assert high.tolist() == [inverse_distribution(row, each, 1 - tail) for row in values]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_ends_are_numpys_inverted_cdf(values, level):
    x, tail = np.array(values, dtype=float), (1 - level) / 2
    if abs(tail * x.size - round(tail * x.size)) > 1e-6:
        expected = np.quantile(x, [tail, 1 - tail], method="inverted_cdf")
        assert percentile_ends(x[None], None, level)[:, 0].tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=20), st.floats(0.01, 0.99))
def test_mass_is_repetition(items, level):
    values, mass = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    repeated = np.repeat(values, mass.astype(int))[None]
    assert percentile_ends(values[None], mass, level).tolist() == percentile_ends(repeated, None, level).tolist()


def test_a_boundary_that_is_hit_exactly_counts():
    # (1 - 0.95) / 2 is a little more than 0.025 in binary; the 25th of 1,000 must still reach it.
    values = np.arange(1, 1001.0)[None]
    assert percentile_ends(values, None, 0.95)[0] == 25
    assert percentile_ends(values, np.full(1000, 1.0), 0.95)[0] == 25


# Wilson's interval of a count, and what an interval looks like


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_agrees_with_statsmodels(counts, level):
    expected = proportion_confint(*counts, alpha=1 - level, method="wilson")
    assert wilson(*counts, level=level) == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 500))
def test_wilson_reaches_the_edges_exactly(n):
    assert wilson(0, n)[0] == 0.0
    assert wilson(n, n)[1] == 1.0
    assert wilson(n, n)[0] == pytest.approx(1 - wilson(0, n)[1])


@pytest.mark.parametrize(
    ("successes", "n", "level", "message"),
    [
        (5, 4, 0.95, "must not exceed n = 4"), (-1, 4, 0.95, "successes: must be a whole number of at least 0"),
        (1.5, 4, 0.95, "successes"), (1, 4.5, 0.95, "n: must be a whole"), (math.nan, 4, 0.95, "successes"),
        (True, 4, 0.95, "successes"), ([1], 4, 0.95, "successes"), (1, 4, 0, "level"),
    ],
)  # fmt: skip
def test_wilson_says_what_is_wrong(successes, n, level, message):
    with pytest.raises(InputError, match=message):
        wilson(successes, n, level=level)


def test_a_share_of_nothing_is_not_measurable():
    with pytest.raises(NotMeasurableError, match="no items"):
        wilson(0, 0)
    # An interval reads as one.
    assert str(Interval(-0.25, 1.0, "x")) == "[-0.2500, 1.0000] (x)"


# The estimate that leave-one-cluster-out gives: against Student's test, brute force, and at its edges


def test_equal_clusters_are_students_test_on_cluster_means():
    values = np.random.default_rng(8).normal(0.2, 1, (6, 10))
    found = cluster_mean(values.ravel(), np.repeat(np.arange(6), 10), level=0.9)
    expected = stats.ttest_1samp(values.mean(axis=1), 0)
    ends = expected.confidence_interval(0.9)
    assert (found.p, found.df, found.state) == (pytest.approx(expected.pvalue, abs=1e-12), 5, "ok")
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert found.p_up == pytest.approx(stats.ttest_1samp(values.mean(axis=1), 0, alternative="greater").pvalue)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_unequal_clusters_are_left_out_one_by_one(sizes, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(seed).normal(size=codes.size)
    without = np.array([values[codes != g].mean() for g in range(len(sizes))])
    g = len(sizes)
    se = np.sqrt((g - 1) / g * ((without - values.mean()) ** 2).sum())
    found = cluster_mean(values, codes)
    assert (found.estimate, found.se) == pytest.approx((values.mean(), se), abs=1e-12)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(values.mean() / se), g - 1), abs=1e-12)


@pytest.mark.parametrize(
    ("value", "p", "p_up"), [(0.5, 2**-3, 2**-4), (-0.5, 2**-3, 1.0), (0.0, 1.0, 1.0), (9e-10, 1.0, 1.0)]
)
def test_where_all_clusters_agree_the_sign_test_speaks(value, p, p_up):
    found = cluster_mean(np.full(8, value), np.repeat(np.arange(4), 2))
    assert (found.estimate, found.df, found.low, found.high) == (pytest.approx(value), 3, None, None)
    assert (found.p, found.p_up, found.state) == (p, p_up, "zero variance: sign test")


def test_one_cluster_says_nothing():
    expected = Estimate(pytest.approx(0.6), None, 0, None, None, 1.0, 1.0, "undefined: one cluster, needs two")
    assert cluster_mean(np.array([0.5, 0.7]), np.zeros(2, dtype=int)) == expected
    assert jackknife_estimate(0.6, np.zeros(0)) == expected
    # A zero width interval is never given for large numbers either.
    found = student_estimate(1e6, 1e-7, 4)
    assert (found.low, found.state.partition(":")[0]) == (None, "zero variance")
    assert student_estimate(0.1, 1e-7, 4).low is not None


@given(st.floats(-5, 5), st.floats(1e-3, 5), st.integers(1, 60))
def test_both_sides_of_a_test_add_up(estimate, se, df):
    up, down = student_estimate(estimate, se, df), student_estimate(-estimate, se, df)
    assert up.p_up + down.p_up == pytest.approx(1)
    assert up.p == pytest.approx(2 * min(up.p_up, down.p_up))
    assert (up.low > 0 or up.high < 0) == (up.p < 0.05)


@pytest.mark.parametrize(
    ("clusters", "blocks", "last"), [(2, 1, 2), (3, 1, 3), (8, 4, 2), (9, 3, 3), (15, 5, 3), (16, 4, 4), (18, 4, 6),
                                     (20, 5, 4), (21, 4, 6), (47, 9, 7), (48, 8, 6), (104, 8, 13), (110, 8, 19)]
)  # fmt: skip
def test_neighbours_are_left_out_in_blocks(clusters, blocks, last):
    codes = neighbour_blocks(clusters)
    assert (codes[-1] + 1, (codes == codes[-1]).sum()) == (blocks, last)
    assert np.isin(np.diff(codes), (0, 1)).all()


@pytest.mark.parametrize("consecutive", [False, True])
def test_what_is_left_out_is_left_out(consecutive):
    values = np.random.default_rng(1).normal(size=(11, 2))
    units = neighbour_blocks(11) if consecutive else np.arange(11)
    expected = [values.sum(axis=0), *(values[units != unit].sum(axis=0) for unit in range(units[-1] + 1))]
    np.testing.assert_allclose(leave_out(values, consecutive), expected)


def test_clusters_are_numbered_as_they_come():
    assert cluster_codes("", ["week 9", "week 9", "week 10", "week 9"], 4).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [([1.0, "a"], "numbers"), ([[1.0], [1.0, 2.0]], "rectangular"), ([np.inf], "finite"), ([], "at least one"),
     ([[1.0]], "1 axis"), ([{}], "numbers")],
)  # fmt: skip
def test_scores_say_what_is_wrong(values, message):
    with pytest.raises(InputError, match=message):
        scores_of("f", "scores", values, 1)


def test_a_missing_score_may_be_none_or_nan():
    np.testing.assert_array_equal(scores_of("f", "scores", [1, None, float("nan")], 1), [1, np.nan, np.nan])


# Rank intervals and tiers from published orders: by their definitions, written with loops

oriented = st.integers(1, 6).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.sampled_from([0, 1, -1]),
    min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2).map(lambda turns: [pair[::turn] for pair,
    turn in zip(combinations(range(k), 2), turns, strict=True) if turn])))  # fmt: skip


@given(oriented)
def test_every_ranking_that_keeps_the_orders_lies_inside(case):
    agents, orders = case
    found = rank_intervals(orders, agents)
    for ranking in permutations(range(agents)):
        rank = {agent: place + 1 for place, agent in enumerate(ranking)}
        if all(rank[high] < rank[low] for high, low in orders):
            assert all(best <= rank[agent] <= worst for agent, (best, worst) in enumerate(found))
    # Cuts run where all above are published above all below and only there.
    found, said = tiers(orders, agents), set(orders)
    assert sorted(agent for tier in found for agent in tier) == list(range(agents))
    for place in range(1, len(found)):
        upper, lower = [a for t in found[:place] for a in t], [a for t in found[place:] for a in t]
        assert all((high, low) in said for high in upper for low in lower)
    # No cut was missed: no group splits a tier.
    cuts = {frozenset(a for t in found[:place] for a in t) for place in range(1, len(found))}
    for size in range(1, agents):
        for upper in combinations(range(agents), size):
            lower = set(range(agents)) - set(upper)
            if all((high, low) in said for high in upper for low in lower):
                assert frozenset(upper) in cuts


def test_orders_that_run_in_a_circle_leave_one_tier():
    circle = [(0, 1), (1, 2), (2, 0)]
    assert tiers(circle, 3) == ((0, 1, 2),)
    assert rank_intervals(circle, 3) == ((2, 2),) * 3
    # Nothing published leaves every rank open.
    assert rank_intervals([], 3) == ((1, 3),) * 3
    assert tiers([], 3) == ((0, 1, 2),)
    assert (rank_intervals([], 1), tiers([], 1)) == (((1, 1),), ((0,),))
    # An order counts once.
    assert rank_intervals([(0, 1)] * 5, 3) == ((1, 2), (2, 3), (1, 3))


@pytest.mark.parametrize("call", [rank_intervals, tiers])
@pytest.mark.parametrize(
    ("orders", "agents", "message"),
    [
        ([(0, 3)], 3, "agents are 0..2"), ([(-1, 0)], 3, "agents are 0..2"), ([(1, 1)], 3, "1 cannot be above 1"),
        ([(0, 1), (1, 0)], 3, "0 cannot be above 1 and below it"), ([], 0, "at least 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call, orders, agents, message):
    with pytest.raises(InputError, match=message):
        call(orders, agents)


# Sharpe ratios and their differences over resampled histories

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
    # The observed ratio is that of performance.
    returns = market(np.random.default_rng(2))
    nav = np.cumprod(np.concatenate([[1.0], 1 + returns]))
    (found,), _ = sharpe_ratios(returns, rng=np.random.default_rng(0), resamples=50)
    assert found.value == pytest.approx(performance(nav).sharpe, abs=1e-12)
    assert found.n == DAYS
    # 120 years of daily returns with a known ratio of 1: about 95 of 100 intervals hold it.
    sharpe, volatility = 1.0, 0.01 * np.sqrt(252)
    mean = (0.04 + sharpe * volatility) / 252
    rng = np.random.default_rng(11)
    found = [sharpe_ratios(rng.normal(mean, 0.01, DAYS), rng=rng, resamples=400)[0][0] for _ in range(120)]
    held = sum(one.low <= sharpe <= one.high for one in found)
    assert 106 <= held <= 120
    # A planted difference is found and equals are called different at their level.
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
        ([0.01] * 9, NotMeasurableError, "needs 10 days or more"), ([0.01] * 50, NotMeasurableError, "does not vary"),
        ([np.nan] + [0.01, 0.02] * 20, InputError, "must be finite"),
    ],
)  # fmt: skip
def test_what_has_no_interval_is_refused(returns, error, message):
    with pytest.raises(error, match=message):
        sharpe_ratios(returns, rng=np.random.default_rng(0))


def test_a_pair_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="must name histories 0 to 0"):
        sharpe_ratios(market(np.random.default_rng(1)), [(0, 1)], rng=np.random.default_rng(0))
