"""Means and differences of models on the same items: against plain definitions, and planted values recovered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import order_analysis
from assaymark.metrology.measure_orders import ScoredItems, board_measurements, level_measurements, rank_agreement
from assaymark.metrology.orders import OrderPlan
from assaymark.plan import OrderRules


def items(values, clusters=None, parts=None):
    values = np.asarray(values, dtype=float)
    m, n = values.shape
    return ScoredItems(
        tuple("abcdefgh"[:m]),
        values,
        tuple(clusters) if clusters is not None else tuple(map(str, range(n))),
        tuple(parts) if parts is not None else ("p",) * n,
    )


def test_a_level_is_a_t_interval_of_the_mean_where_each_item_is_its_own_cluster():
    rng = np.random.default_rng(1)
    row = rng.normal(0.5, 0.1, 12)
    (one,) = level_measurements("bench.level", items([row]), {"board": "all"}, level=0.9)
    low, high = stats.t.interval(0.9, 11, loc=row.mean(), scale=stats.sem(row))
    assert (one.value, one.low, one.high) == pytest.approx((row.mean(), low, high))
    assert one.labels == {"model": "a", "board": "all"}
    assert one.n == 12
    assert one.level == 0.9


def contrasts(boards, **more):
    if isinstance(boards, ScoredItems):
        boards = {"all": boards}
    found = board_measurements(boards, OrderPlan(OrderRules(), span=1.0, unit="", cycle="item"), **more)
    return [one for one in found if one.name == "contrast"]


def test_a_difference_is_a_paired_t_test():
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 1, 15)
    values = np.stack([shared + rng.normal(0, 0.1, 15), shared + 0.2 + rng.normal(0, 0.1, 15)])
    (one,) = contrasts(items(values))
    peer = stats.ttest_rel(values[1], values[0])
    assert (one.labels["high"], one.labels["low"]) == ("b", "a")
    assert one.detail["p"] == pytest.approx(peer.pvalue)
    assert (one.low, one.high) == pytest.approx(tuple(peer.confidence_interval(0.95)))


def test_two_clusters_cannot_be_tested():
    (one,) = contrasts(items([[0.1, 0.2], [0.8, 0.9]], clusters="xy"))
    assert one.value is None
    assert one.state.startswith("cannot be tested (2 common clusters")
    assert one.detail["p"] == 1.0


def test_every_cluster_counts_once_whatever_its_size():
    values = np.array([[0.1, 0.2, 0.3, 0.8, 0.5], [0.4, 0.5, 0.6, 0.8, 0.6]])
    (one,) = contrasts(items(values, clusters="xxxyz"))
    assert one.value == pytest.approx((0.3 + 0.0 + 0.1) / 3)
    assert (one.n, one.n_of, one.detail["clusters"]) == (5, "common items", 3)
    levels = board_measurements({"all": items(values, clusters="xxxyz")}, OrderPlan(OrderRules(), span=1.0))
    (first, *_) = [one for one in levels if one.name == "bench.level"]
    assert (first.value, first.n) == (pytest.approx((0.2 + 0.8 + 0.5) / 3), 5)


def test_boards_of_one_family_are_dimensions_of_the_first():
    """The tests and adjusted p-values of `order_analysis` on the same tables."""
    rng = np.random.default_rng(8)
    parts = {name: items(rng.normal([[0.5], [0.6], [0.7]], 0.1, (3, 9))) for name in ("one", "two")}
    whole = items((parts["one"].values + parts["two"].values) / 2)
    found = contrasts({"all": whole, **parts})
    scales = {"aggregate": whole.values.T} | {name: part.values.T for name, part in parts.items()}
    expected = order_analysis(scales, score_range=(0, 1))
    for one in found:
        scale = "aggregate" if one.labels["dimension"] == "all" else one.labels["dimension"]
        pair = tuple(sorted(map("abc".index, (one.labels["high"], one.labels["low"]))))
        assert one.detail["p"] == pytest.approx(expected.scales[scale][pair].p)


@given(
    arrays(float, (3, 8), elements=st.floats(0, 1, allow_subnormal=False)),
    st.lists(st.sampled_from("xyz"), min_size=8, max_size=8),
)
def test_leaving_out_and_the_other_convention_are_in_the_direction_of_the_whole(values, parts):
    other = items(values[:, ::-1] * 0.5, parts=parts)
    for one in contrasts(items(values, parts=parts), others={"all": other}):
        high, low = "abc".index(one.labels["high"]), "abc".index(one.labels["low"])
        assert one.value >= 0
        assert one.detail["other"] == pytest.approx((other.values[high] - other.values[low]).mean(), abs=1e-12)
        seen = one.detail.get("without", {})
        assert set(seen) == (set(parts) if len(set(parts)) > 1 else set())
        for part, left in seen.items():
            keep = [at for at, name in enumerate(parts) if name != part]
            assert left == pytest.approx((values[high] - values[low])[keep].mean(), abs=1e-12)


@given(st.permutations(range(4)))
def test_the_order_of_the_models_changes_no_difference(order):
    values = np.random.default_rng(3).normal(0, 1, (4, 9))
    names = tuple("abcd"[at] for at in order)
    turned = ScoredItems(names, values[list(order)], tuple("aabbccdde"), tuple("xxxyyyzzz"))
    plain = ScoredItems(tuple("abcd"), values, turned.clusters, turned.parts)
    found = {one.id: one.value for one in contrasts(turned)}
    assert found == {one.id: one.value for one in contrasts(plain)}


def test_a_planted_rank_correlation_is_in_its_interval():
    """Models whose skill on questions and in the pipeline is known: the interval holds the correlation of skills."""
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        skill = np.linspace(0.2, 0.8, 8)
        pipeline = skill[rng.permutation(8)]
        truth = stats.spearmanr(skill, pipeline).statistic
        one = items(skill[:, None] + rng.normal(0, 0.15, (8, 80)))
        two = items(pipeline[:, None] + rng.normal(0, 0.15, (8, 80)))
        found = rank_agreement("d", one, two, {}, rng=rng, level=0.95, resamples=400)
        hits += found.low - 1e-9 <= truth <= found.high + 1e-9
    assert hits >= 51  # a true rate of .95 gives fewer once in ten thousand times


def test_a_rank_correlation_of_ties_is_not_defined():
    flat, other = items([[0.5, 0.5]] * 3), items([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = rank_agreement("d", flat, other, {}, rng=np.random.default_rng(1), level=0.95)
    assert found.value is None
    assert found.state.startswith("not defined")


def test_a_rank_correlation_needs_three_models_in_both():
    with pytest.raises(InputError, match="three or more"):
        rank_agreement("d", items([[1.0], [2.0]]), items([[1.0], [2.0]]), {}, rng=np.random.default_rng(1), level=0.95)


def test_missing_scores_are_refused():
    with pytest.raises(InputError, match="finite"):
        level_measurements("bench.level", items([[0.1, np.nan]]), {}, level=0.95)


def test_windows_that_follow_each_other_are_in_the_order_of_their_numbers():
    """Window 9 comes before window 10, as it does where numbers are padded with zeros."""
    rng = np.random.default_rng(5)
    values = rng.normal(0.5, 0.1, (3, 14)) + 0.1 * np.sin(np.arange(14) / 2) * np.array([[1.0], [-1.0], [0.0]])

    def contrasts(name):
        names = tuple(name.format(k) for k in range(14))
        items = ScoredItems(("a", "b", "c"), values, names, ("p",) * 14)
        found = board_measurements({"all": items}, OrderPlan(OrderRules(), span=1.0), order="consecutive")
        return [one.detail["p"] for one in found if one.name == "contrast"]

    assert contrasts("window {}") == contrasts("window {:02d}")
