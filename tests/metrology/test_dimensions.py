"""Dimensions: covariances between judges by brute force, planted halo, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import discriminant, holm, multitrait_multimethod, specific_contrast
from assaymark.metrology.estimates import neighbour_blocks

SIZES = [9, 14, 11, 10, 6, 13]
CLUSTER = np.repeat(np.arange(6), SIZES)


def study(seed=0, *, dimensions=4, judges=3, own=1.0, halo=1.0, noise=0.5, clusters=CLUSTER):
    """Scores [N, J, D]: an impression per record, an own part per dimension, and noise per judge."""
    rng = np.random.default_rng(seed)
    n = clusters.size
    impression, part = rng.normal(0, halo, (n, 1, 1)), rng.normal(0, 1, (n, 1, dimensions)) * own
    return 3 + impression + part + rng.normal(0, noise, (n, judges, dimensions))


def shared(scores, cluster, d):
    """C_dd, C_rr and C_dr by loops over clusters and ordered pairs of judges."""
    centred = scores.copy()
    for g in np.unique(cluster):
        centred[cluster == g] -= centred[cluster == g].mean(axis=0)
    rest = np.delete(centred, d, axis=2).mean(axis=2)
    judges = range(scores.shape[1])
    pairs = [(j, k) for j in judges for k in judges if j != k]
    return np.mean(
        [
            [
                (centred[:, j, d] * centred[:, k, d]).mean(),
                (rest[:, j] * rest[:, k]).mean(),
                (centred[:, j, d] * rest[:, k]).mean(),
            ]
            for j, k in pairs
        ],
        axis=0,
    )


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_covariances_between_judges_by_brute_force(seed, consecutive):
    scores = study(seed)
    units = neighbour_blocks(6)[CLUSTER] if consecutive else CLUSTER
    count = units[-1] + 1
    found = discriminant(scores, CLUSTER, consecutive=consecutive)
    p = []
    for d, one in enumerate(found.dimensions):
        parts = [shared(scores, CLUSTER, d)]
        parts += [shared(scores[units != u], CLUSTER[units != u], d) for u in range(count)]
        phi = np.array([c / np.sqrt(a * b) for a, b, c in parts])
        margin = np.array([0.95 * np.sqrt(a * b) - c for a, b, c in parts])
        error, spread = (np.sqrt((count - 1) / count * ((v[1:] - v[0]) ** 2).sum()) for v in (phi, margin))
        half = stats.t.ppf(0.975, count - 1) * error
        assert (one.phi, one.low, one.high) == pytest.approx((phi[0], phi[0] - half, phi[0] + half), abs=1e-9)
        p.append(stats.t.sf(margin[0] / spread, count - 1))
        assert one.p == pytest.approx(p[-1], abs=1e-9)
    assert [one.p_holm for one in found.dimensions] == pytest.approx(holm(p).tolist(), abs=1e-9)


def test_copies_of_one_impression_are_not_distinct_and_dimensions_are():
    for seed in range(5):
        copies = discriminant(study(seed, own=0.0), CLUSTER)
        assert not any(one.distinct for one in copies.dimensions)
        assert all(one.low < 1 < one.high for one in copies.dimensions)
        assert all(one.distinct for one in discriminant(study(seed, own=2.0), CLUSTER).dimensions)


def test_copies_are_rarely_called_distinct():
    passed = [
        any(one.distinct for one in discriminant(study(seed, own=0.2, dimensions=3), CLUSTER).dimensions)
        for seed in range(200)
    ]
    assert np.mean(passed) < 0.08


def test_noise_of_a_judge_does_not_hide_a_copy():
    """Disagreement lowers the plain correlation with the overall impression, and not phi."""
    big = np.repeat(np.arange(20), 50)
    loud, quiet = (study(1, own=0.0, noise=noise, clusters=big) for noise in (1.5, 0.1))
    assert discriminant(loud, big).dimensions[0].phi == pytest.approx(1, abs=0.1)
    assert discriminant(quiet, big).dimensions[0].phi == pytest.approx(1, abs=0.01)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_severity_scale_and_clusters_change_no_correlation(seed):
    rng = np.random.default_rng(seed)
    scores = study(seed % 100)
    moved = scores * rng.uniform(0.5, 2) + rng.normal(0, 2, (1, 3, 4)) + rng.normal(0, 2, (6, 3, 4))[CLUSTER]
    for before, after in zip(*(discriminant(s, CLUSTER).dimensions for s in (scores, moved)), strict=True):
        assert (after.phi, after.p) == pytest.approx((before.phi, before.p), abs=1e-8)
    np.testing.assert_allclose(*(multitrait_multimethod(s, CLUSTER) for s in (scores, moved)), atol=1e-9)


def test_a_dimension_on_which_judges_share_nothing_is_not_distinct():
    scores = study(2)
    scores[:, :, 1] = 3
    found = discriminant(scores, CLUSTER).dimensions
    assert (found[1].phi, found[1].low, found[1].p, found[1].distinct) == (None, None, 1.0, False)
    assert found[1].state.startswith("undefined: ")
    assert found[0].state == "ok"
    scores = study(2)
    scores[CLUSTER != 3, :, 1] = 3  # what they share lies in one cluster
    assert discriminant(scores, CLUSTER).dimensions[1].p == 1.0


@pytest.mark.parametrize(
    ("scores", "cluster"),
    [
        (study()[:, :1], CLUSTER),
        (study()[:, :, :1], CLUSTER),
        (study()[:23], CLUSTER[:23]),
        (np.full((6, 2, 2), np.nan), np.arange(6)),
    ],
)
def test_too_little_is_not_measurable(scores, cluster):
    found = discriminant(scores, cluster)
    assert (found.state.partition(":")[0], found.dimensions) == ("not measurable", ())


def test_three_clusters_in_time_order_are_one_block():
    assert discriminant(study()[:34], CLUSTER[:34]).state == "ok"
    assert discriminant(study()[:34], CLUSTER[:34], consecutive=True).state.startswith("not measurable")


def test_records_with_a_missing_score_are_left_out():
    scores = study()
    scores[[3, 30], [0, 2], [1, 1]] = np.nan
    whole = np.delete(np.arange(CLUSTER.size), [3, 30])
    assert discriminant(scores, CLUSTER) == discriminant(scores[whole], CLUSTER[whole])


def test_the_matrix_is_that_of_correlations_within_clusters():
    scores = study(3)
    centred = scores - np.stack([part.mean(axis=0) for part in np.split(scores, np.cumsum(SIZES)[:-1])])[CLUSTER]
    expected = np.corrcoef(centred.reshape(-1, 12).T).reshape(3, 4, 3, 4)
    np.testing.assert_allclose(multitrait_multimethod(scores, CLUSTER), expected, atol=1e-12)
    scores[:, 0, 0] = CLUSTER
    with pytest.raises(NotMeasurableError, match="one score per cluster"):
        multitrait_multimethod(scores, CLUSTER)


def test_specific_is_a_t_test_of_the_difference_between_differences():
    deltas = np.random.default_rng(1).normal(0.3, 0.2, (6, 4))
    for d in range(4):
        rest = deltas[:, d] - np.delete(deltas, d, axis=1).mean(axis=1)
        expected = stats.ttest_1samp(rest, 0, alternative="greater")
        for values, cluster in ((deltas, np.arange(6)), (np.repeat(deltas, 3, axis=0), np.repeat(np.arange(6), 3))):
            found = specific_contrast(values, cluster, d)
            assert (found.estimate, found.p_up, found.df) == pytest.approx((rest.mean(), expected.pvalue, 5))
    assert specific_contrast(deltas, np.arange(6), 0, consecutive=True).df == 2


def test_spill_over_is_smaller_than_on_the_other_dimensions():
    """Under a halo, a dimension with nothing of its own gets part of what another one has."""
    rng = np.random.default_rng(2)
    true = np.array([0.6, 0.0, 0.0])
    seen = 0.5 * true + 0.5 * true.mean() + rng.normal(0, 0.05, (40, 3))
    own, spilled = (specific_contrast(seen, np.repeat(np.arange(8), 5), d) for d in (0, 1))
    assert own.p_up < 0.001
    assert spilled.estimate < 0


def test_specific_needs_two_dimensions_and_a_whole_cycle():
    for deltas in ([[0.3], [0.2]], [[0.3, None], [None, 0.2]]):
        found = specific_contrast(deltas, [0, 1], 0)
        assert (found.estimate, found.p_up, found.state.partition(":")[0]) == (None, 1.0, "not measurable")
    assert specific_contrast([[0.3, 0.1], [None, 0.2], [0.5, 0.2]], [0, 1, 2], 0).df == 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((study(), CLUSTER[:5]), {}, "one entry for each"),
        ((study()[0], CLUSTER), {}, "S: must have 3 axes"),
        ((study() * np.inf, CLUSTER), {}, "finite"),
        ((study(), CLUSTER), {"distinct": 1.0}, "distinct"),
        ((study(), CLUSTER), {"alpha": 0}, "alpha"),
        ((study(), CLUSTER), {"level": 95}, "level"),
    ],
)
def test_wrong_input_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        discriminant(*arguments, **options)


@pytest.mark.parametrize("d", [-1, 2, 0.5])
def test_a_dimension_must_exist(d):
    with pytest.raises(InputError, match="d: must be"):
        specific_contrast([[0.3, 0.1], [0.2, 0.1]], [0, 1], d)
