"""The cluster bootstrap of kappa: enumeration against brute force, draws against enumeration, edges in words."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import bootstrap_kappa, jackknife_kappa, mean_pairwise_kappa
from assaymark.metrology.bootstrap import all_resamples, percentile_ends


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


def test_draws_above_eight_clusters_are_repeatable_and_say_how_many():
    ratings, codes = panel(9, 20)
    first = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(7), resamples=2000)
    again = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(7), resamples=2000)
    assert first == again
    assert first.method == "cluster bootstrap, multinomial: 2000 resamples of 9 clusters"
    assert first.low < mean_pairwise_kappa(ratings) < first.high


def test_draws_are_the_draws_of_a_plain_loop():
    ratings, codes = panel(12, 8, seed=4)
    groups = [ratings[codes == c] for c in range(12)]
    draws = np.random.default_rng(3).integers(0, 12, size=(400, 12))
    values = np.sort([mean_pairwise_kappa(np.concatenate([groups[g] for g in row])) for row in draws])
    interval = bootstrap_kappa(ratings, codes, rng=np.random.default_rng(3), resamples=400)
    # 2.5 % of 400 is reached by the tenth value, 97.5 % by the 390th.
    assert (interval.low, interval.high) == pytest.approx((values[9], values[389]), abs=1e-12)


def test_more_than_eight_clusters_need_a_generator():
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


def test_resamples_without_a_kappa_are_left_out_and_counted():
    ratings = np.array([[3, 3]] * 4 + [[1, 2], [4, 4], [2, 1], [5, 4]] * 3)
    codes = np.repeat(np.arange(4), 4)
    interval = bootstrap_kappa(ratings, codes)
    assert interval.method.endswith("; 1 without a kappa left out (0.391% of the mass)")
    assert (interval.low, interval.high) == pytest.approx(brute_force(ratings, codes, 0.95), abs=1e-12)


def test_too_many_resamples_without_a_kappa_give_no_interval():
    ratings = np.array([[3, 3]] * 8 + [[1, 2], [4, 4]])
    with pytest.raises(NotMeasurableError, match=r"no interval: .* left out .* more than 5.000%"):
        bootstrap_kappa(ratings, [0] * 4 + [1] * 4 + [2] * 2)


def test_no_kappa_or_one_cluster_has_no_interval():
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
        ({"level": 1.0}, r"level: must lie strictly between 0 and 1 \(got 1.0\)"),
        ({"level": math.nan}, "level"),
        ({"resamples": 0}, "resamples: must be a whole number of at least 1"),
        ({"resamples": 10.5}, "resamples"),
    ],
)
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


def test_jackknife_needs_a_kappa_without_each_cluster():
    with pytest.raises(NotMeasurableError, match="undefined without 1 of the 2 clusters"):
        jackknife_kappa([[3, 3], [3, 3], [1, 2], [4, 4]], [0, 0, 1, 1])


def test_an_interval_without_width_is_none():
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
