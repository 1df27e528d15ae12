"""Paired tests over clusters and Holm's correction: oracles, brute force, and how often true nulls are rejected."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from assaymark import metrology as mt
from assaymark.errors import InputError

pvalues = st.lists(st.floats(0, 1), min_size=1, max_size=40)

# Common cycles by week of pairs of agents in a real log of weekly rounds, from two weeks to twelve.
LOG_SIZES = (
    [4, 8], [1, 2, 8], [2, 6, 8], [2, 2, 8, 10], [2, 6, 8, 8, 10], [2, 6, 8, 9, 10, 11], [4, 5, 6, 8, 8, 8, 9, 10, 10],
)  # fmt: skip
LONG = [1, 1, 1, 2, 5, 8, 8, 8, 8, 8, 10, 10]


@settings(max_examples=15)  # the oracle takes a tenth of a second
@given(pvalues)
def test_holm_agrees_with_statsmodels(p):
    assert mt.holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


@given(pvalues, st.randoms(use_true_random=False))
def test_holm_goes_with_its_input_never_lowers_and_keeps_the_order(p, random):
    order, adjusted = list(range(len(p))), mt.holm(p)
    random.shuffle(order)
    assert mt.holm([p[k] for k in order]).tolist() == adjusted[order].tolist()
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    # A contrast that was not tested still costs.
    assert (mt.holm([*p, 1.0])[: len(p)] >= adjusted - 1e-15).all()
    # Rows of families are families of their own.
    assert mt.holm_rows(np.array([p, p[::-1]])).tolist() == [adjusted.tolist(), mt.holm(p[::-1]).tolist()]


@pytest.mark.parametrize(("test", "values", "codes", "message"), [
    (mt.holm, [], (), "empty"), (mt.holm, [0.5, math.nan], (), "not finite"), (mt.holm, 0.5, (), "axis"),
    (mt.holm, [1.2], (), r"lie in 0..1 \(first that does not: 1.2"),
    (mt.bootstrap_contrast, np.ones(9), (np.arange(9),), "rng: 9 clusters"),
    (mt.sign_flip, np.ones(17), (np.arange(17),), "rng: 17 clusters are too many to enumerate"),
    *((test, values, (codes,), said) for test in (mt.cluster_t, mt.bootstrap_contrast, mt.sign_flip)
      for values, codes, said in (
          ([], [], "differences: is empty"), ([1.0, math.nan], [0, 1], "not finite"),
          ([1.0, 2.0], [0], "one entry for each of the 2 items"), ([[1.0]], [0], "one axis"))),
])  # fmt: skip
def test_what_is_wrong_is_said(test, values, codes, message):
    with pytest.raises(InputError, match=message):
        test(values, *codes)


def test_equal_clusters_are_students_test_on_cluster_means():
    values, codes = np.random.default_rng(8).normal(0.2, 1, (6, 10)), np.repeat(np.arange(6), 10)
    expected = stats.ttest_1samp(values.mean(axis=1), 0)
    result = mt.cluster_t(values.ravel(), codes, level=0.9)
    wanted = (expected.pvalue, *expected.confidence_interval(0.9), values.mean())
    assert (result.p, result.low, result.high, result.difference) == pytest.approx(wanted, abs=1e-12)
    assert (result.n, result.clusters, result.method) == (60, 6, "cluster-t, CR2, t(5) over 6 clusters")
    # The smallest p of a t test has no bound.
    assert 0 < mt.cluster_t([0.5, 0.5 + 1e-6, 0.5 - 1e-6], ["a", "b", "c"]).p < 1e-10


def test_unequal_clusters_are_the_bias_reduced_variance_of_a_regression_on_a_constant():
    values = np.array([0.5, 1.0, -0.2, 0.3, 0.9, 0.1, 0.4])
    codes = np.array([0, 0, 0, 1, 1, 2, 3])
    # Bell and McCaffrey's estimator written with matrices: the hat matrix, adjusted residuals, quadratic forms.
    one, hat = np.ones((7, 1)), np.full((7, 7), 1 / 7)
    parts = []
    for c in range(4):
        rows = codes == c
        own = np.eye(rows.sum()) - hat[np.ix_(rows, rows)]
        value, vector = np.linalg.eigh(own)
        root = vector @ np.diag(value**-0.5) @ vector.T
        parts.append((np.eye(7) - hat)[:, rows] @ root @ one[rows] / 7)
    forms = np.concatenate(parts, axis=1)
    gram = forms.T @ forms
    error, df = math.sqrt(np.square(forms.T @ values).sum()), np.trace(gram) ** 2 / np.trace(gram @ gram)
    result = mt.cluster_t(values, codes)
    wanted = (values.mean(), 2 * stats.t.sf(values.mean() / error, df), 2 * stats.t.ppf(0.975, df) * error)
    assert (result.difference, result.p, result.high - result.low) == pytest.approx(wanted)


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-4, 4)), min_size=2, max_size=40))
def test_turning_a_pair_around_turns_the_result_around(items):
    codes, values = zip(*items, strict=True)
    one, other = mt.cluster_t(values, codes), mt.cluster_t([-v for v in values], codes)
    assert (other.difference, other.p) == (-one.difference, pytest.approx(one.p, abs=1e-12))
    assert 0 <= one.p <= 1
    if one.low is not None:
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-9)
        assert one.low <= one.difference <= one.high


def test_one_cluster_cannot_be_tested():
    result = mt.cluster_t([1.0, 2.0, 3.0], ["w"] * 3)
    assert (result.difference, result.p, result.low, result.high) == (2.0, 1.0, None, None)
    assert "one common cluster cannot be tested" in result.method
    assert mt.bootstrap_contrast([1.0, 2.0, 3.0], ["w"] * 3).p == 1.0
    # Clusters that differ equally leave only their sign.
    result = mt.cluster_t([1.0] * 5, list("abcde"))
    assert (result.p, result.low, result.method) == (1 / 16, None, "clusters differ equally: exact sign flip over 5")
    assert mt.cluster_t([0.0] * 5, list("abcde")).p == 1.0
    # 0.1 + 0.2 - 0.3 is not 0 in binary; it is no difference all the same.
    assert mt.cluster_t([0.1 + 0.2 - 0.3] * 5, list("abcde")).difference == 0.0


def null_rejections(sizes, between, studies, rng, test=mt.t_test):
    sizes = np.array(sizes)
    means = rng.standard_normal((sizes.size, studies)) * np.sqrt(between + (1 - between) / sizes)[:, None]
    if test is mt.t_test:
        p = mt.t_test(means * sizes[:, None], sizes).p
    else:
        parts = [(means * sizes[:, None], sizes)]
        p = mt.bootstrap_tests(parts, resamples=2000, rng=rng)[0].p
    return int((p <= 0.05).sum())


@pytest.mark.parametrize("between", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("sizes", [*LOG_SIZES, LONG], ids=str)
def test_cluster_t_rejects_true_nulls_at_two_to_six_percent(sizes, between):
    studies = 20_000
    found = null_rejections(sizes, between, studies, np.random.default_rng(sum(sizes)))
    # The stated range, widened by what 20,000 studies can miss it by (central 99.9 % of the binomial at its ends).
    assert stats.binom.ppf(0.0005, studies, 0.022) <= found <= stats.binom.ppf(0.9995, studies, 0.06)


def test_cluster_t_is_at_its_level_with_equal_clusters_and_the_bootstrap_rejects_too_often():
    # Two clusters can reach p = 0.5 at best once the floor is honoured: the interval, not p, is what misleads.
    for clusters, least, most in ((2, 0, 0), (5, 0.13, 1), (12, 0.07, 1)):
        found = null_rejections([6] * clusters, 0.3, 4000, np.random.default_rng(clusters))
        low, high = stats.binom.ppf([0.0005, 0.9995], 4000, 0.05)
        assert low <= found <= high
        found = null_rejections([6] * clusters, 0.3, 2000, np.random.default_rng(clusters), test=mt.bootstrap_tests)
        assert least <= found / 2000 <= most
    rng = np.random.default_rng(2)
    found = [mt.bootstrap_contrast(rng.standard_normal(2), [0, 1]) for _ in range(400)]
    assert 0.42 < np.mean([not one.low <= 0 <= one.high for one in found]) < 0.58


def brute_force(values, codes):
    groups = [values[codes == c] for c in np.unique(codes)]
    draws = product(groups, repeat=len(groups))
    means = np.sort([np.concatenate(draw).mean() for draw in draws])
    total = len(means)
    tail = min((means <= 1e-9).sum(), (means >= -1e-9).sum())
    ends = tuple(next(v for k, v in enumerate(means, 1) if k >= q * total - 1e-6) for q in (0.025, 0.975))
    return min(1.0, max(2 * tail, 2) / total), ends


@pytest.mark.parametrize("clusters", [2, 3, 4, 5])
def test_enumerated_contrast_is_the_bootstrap_over_all_ordered_draws(clusters):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        codes = np.concatenate([np.arange(clusters), rng.integers(0, clusters, 9)])
        values = rng.integers(-3, 6, codes.size) / 3
        p, ends = brute_force(values, codes)
        result = mt.bootstrap_contrast(values, codes)
        assert (result.p, result.low, result.high) == pytest.approx((p, *ends), abs=1e-12)


def test_drawn_p_is_two_times_k_plus_one_over_b_plus_one():
    rng = np.random.default_rng(6)
    codes = np.repeat(np.arange(12), 4)
    values = rng.normal(0.25, 1, 48)
    sums = np.bincount(codes, weights=values)
    draws = np.random.default_rng(9).integers(0, 12, size=(500, 12))
    means = sums[draws].sum(axis=1) / 48
    k = min((means <= 0).sum(), (means >= 0).sum())
    result = mt.bootstrap_contrast(values, codes, resamples=500, rng=np.random.default_rng(9))
    assert 0 < k < 250
    means.sort()
    # 2.5 % of 500 is 12.5: the thirteenth value is the first to reach it.
    assert (result.p, result.low, result.high) == pytest.approx((2 * (k + 1) / 501, means[12], means[487]))
    assert result.method == "cluster bootstrap, multinomial: 500 resamples of 12 clusters"
    # Blocks and chunks change nothing.
    rng = np.random.default_rng(0)
    values, codes = rng.normal(0.1, 1, 60), np.repeat(np.arange(20), 3)
    result = mt.bootstrap_contrast(values, codes, resamples=120_000, rng=np.random.default_rng(4))
    drawn = np.random.default_rng(4)
    sums = np.bincount(codes, weights=values)
    rows = (1 << 21) // 20
    parts = [drawn.integers(0, 20, size=(size, 20)) for size in (rows, 120_000 - rows)]
    means = np.concatenate([sums[part].sum(axis=1) / 60 for part in parts])
    assert result.p == pytest.approx(2 * (min((means <= 0).sum(), (means >= 0).sum()) + 1) / 120_001)
    assert result.low == pytest.approx(np.sort(means)[2999])


def test_the_smallest_p_is_set_by_the_resamples():
    """All of up to 8 clusters are enumerated; above, 999 draws say no more than 2 in 1,000."""
    one_sided = {"resamples": 999, "rng": np.random.default_rng(1)}
    for clusters, smallest in ((1, 1.0), (2, 0.5), (3, 2 / 27), (5, 2 / 5**5), (8, 2 / 8**8), (9, 2 / 1000)):
        result = mt.bootstrap_contrast(np.ones(clusters), np.arange(clusters), **one_sided)
        assert result.p == pytest.approx(smallest)
    # Sign flips halve with each cluster until patterns are drawn: 17 clusters are as far out as two of 131,072.
    for clusters, smallest in ((1, 1.0), (2, 0.5), (5, 2**-4), (16, 2**-15), (17, 1 / 1000)):
        result = mt.sign_flip(np.ones(clusters), np.arange(clusters), resamples=999, rng=np.random.default_rng(1))
        assert result.p == smallest
    zeros = mt.bootstrap_contrast(np.zeros(20), np.arange(20), resamples=100, rng=np.random.default_rng(1))
    assert zeros.p == mt.sign_flip([0.0] * 5, list("abcde")).p == 1.0


clustered = st.lists(st.tuples(st.integers(0, 6), st.integers(-8, 8)), min_size=1, max_size=30)


def flip_p(values, codes, shift=0.0):
    """All 2^G sign patterns, one after the other."""
    values = np.asarray(values, dtype=float) - shift
    sums = [values[codes == c].sum() for c in np.unique(codes)]
    totals = [abs(np.dot(signs, sums)) for signs in product((1, -1), repeat=len(sums))]
    return np.mean([t >= abs(sum(sums)) - 1e-9 for t in totals])


@given(clustered)
def test_the_sign_flip_is_its_definition_and_a_multiple_of_one_pattern(items):
    codes, values = (np.array(column) for column in zip(*items, strict=True))
    result = mt.sign_flip(values / 4, codes)
    g = np.unique(codes).size
    assert (result.p, (result.p * 2**g) % 1) == (flip_p(values / 4, codes), 0)
    assert result.p >= 2.0 ** (1 - g)
    assert result.difference == pytest.approx(values.mean() / 4, abs=1e-9)
    other = mt.sign_flip(-values / 4, codes)
    assert (other.difference, other.p) == (-result.difference, result.p)


@settings(max_examples=60)
@given(clustered, st.sampled_from([0.5, 0.8, 0.95]))
def test_the_sign_flip_interval_holds_what_the_test_does_not_reject(items, level):
    codes, values = (np.array(column) for column in zip(*items, strict=True))
    result = mt.sign_flip(values, codes, level=level)
    g = np.unique(codes).size
    if result.low is None:
        assert 2.0 ** (1 - g) > 1 - level - 1e-9
        return
    assert result.low <= result.difference <= result.high
    for inside in (result.low, result.high, (result.low + result.difference) / 2):
        assert flip_p(values, codes, inside) > 1 - level
    for outside in (result.low - 1e-3, result.high + 1e-3):
        assert flip_p(values, codes, outside) <= 1 - level + 1e-12


def test_drawn_patterns_come_close_to_all_of_them():
    result = mt.sign_flip([1.0, 2.0, 3.0, 4.0, 5.0], list("abcde"))
    assert (result.p, result.low, mt.sign_flip([1.0, 2.0], ["w", "w"]).p) == (0.0625, None, 1.0)
    rng = np.random.default_rng(3)
    sums, counts = rng.normal(0.4, 1, (16, 6)), np.ones(16, dtype=int)
    parts = {"level": 0.9, "intervals": True}
    (exact,) = mt.flip_tests([(sums, counts)], resamples=1, rng=None, **parts)
    more = np.concatenate([sums, np.zeros((1, 6))])  # a cluster that differs by nothing changes no total
    (drawn,) = mt.flip_tests([(more, np.ones(17, dtype=int))], resamples=20_000, rng=rng, **parts)
    assert drawn.p == pytest.approx(exact.p, abs=0.012)
    assert drawn.method[0] == "sign flip, drawn: 20000 patterns of 17 clusters"
    assert np.isfinite(drawn.low).all()
    assert (drawn.low < drawn.difference).all()
    # Drawn ends are where the drawn p crosses.
    values, codes = np.random.default_rng(1).normal(0.3, 1, 18), np.arange(18)

    def drawn_of(shift):
        return mt.sign_flip(values - shift, codes, resamples=999, rng=np.random.default_rng(5))

    result = drawn_of(0)
    for end, way in ((result.low, -1), (result.high, 1)):
        kept, gone = (drawn_of(end + by * way * 1e-6).p for by in (-1, 1))
        assert gone <= 0.05 < kept
    # Too few draws bound nothing.
    assert mt.sign_flip(np.ones(18), np.arange(18), resamples=10, rng=np.random.default_rng(1)).low is None


def test_the_sign_flip_is_at_its_level_with_unequal_clusters():
    rng, studies = np.random.default_rng(8), 4000
    sizes = np.array([2, 6, 8, 9, 10, 11])
    sums = rng.standard_normal((6, studies)) * np.sqrt(sizes)[:, None]
    (tested,) = mt.flip_tests([(sums, sizes)], resamples=1, rng=None)
    low, high = stats.binom.ppf([0.0005, 0.9995], studies, 1 / 32)
    assert low <= (tested.p <= 0.05).sum() <= high
