"""Means and differences of models on the same items: against plain definitions, and planted values recovered."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.panel import Design
from assaymark.plan import OrderRules
from assaymark.quantiles import t_quantile


def items(values, clusters=None, parts=None, models="abcdefgh"):
    values = np.asarray(values, dtype=float)
    m, n = values.shape
    return mt.ScoredItems(tuple(models[:m]), values, tuple(clusters or map(str, range(n))), tuple(parts or "p" * n))


def contrasts(boards, **more):
    boards = {"all": boards} if isinstance(boards, mt.ScoredItems) else boards
    found = mt.board_measurements(boards, mt.OrderPlan(OrderRules(), span=1.0, unit="", cycle="item"), **more)
    return [one for one in found if one.name == "contrast"]


def test_a_level_is_a_t_interval_of_the_mean_and_a_difference_a_paired_t_test():
    row = np.random.default_rng(1).normal(0.5, 0.1, 12)
    (one,) = mt.level_measurements("bench.level", items([row]), {"board": "all"}, level=0.9)
    low, high = stats.t.interval(0.9, 11, loc=row.mean(), scale=stats.sem(row))
    assert (one.value, one.low, one.high) == pytest.approx((row.mean(), low, high))
    assert (one.labels, one.n, one.level) == ({"model": "a", "board": "all"}, 12, 0.9)
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 1, 15)
    values = np.stack([shared + rng.normal(0, 0.1, 15), shared + 0.2 + rng.normal(0, 0.1, 15)])
    (one,) = contrasts(items(values))
    peer = stats.ttest_rel(values[1], values[0])
    assert (one.labels["high"], one.labels["low"], one.detail["p"]) == ("b", "a", pytest.approx(peer.pvalue))
    assert (one.low, one.high) == pytest.approx(tuple(peer.confidence_interval(0.95)))
    # Two clusters cannot be tested.
    (one,) = contrasts(items([[0.1, 0.2], [0.8, 0.9]], clusters="xy"))
    assert (one.value, one.detail["p"]) == (None, 1.0)
    assert one.state.startswith("cannot be tested (2 common clusters")
    # Every cluster counts once whatever its size.
    values = np.array([[0.1, 0.2, 0.3, 0.8, 0.5], [0.4, 0.5, 0.6, 0.8, 0.6]])
    (one,) = contrasts(items(values, clusters="xxxyz"))
    assert (one.value, one.n, one.n_of) == (pytest.approx((0.3 + 0.0 + 0.1) / 3), 5, "common items")
    assert one.detail["clusters"] == 3
    levels = mt.board_measurements({"all": items(values, clusters="xxxyz")}, mt.OrderPlan(OrderRules(), span=1.0))
    first = next(one for one in levels if one.name == "bench.level")
    assert (first.value, first.n) == (pytest.approx((0.2 + 0.8 + 0.5) / 3), 5)
    # The tests and adjusted p-values of `order_analysis` on the same tables.
    rng = np.random.default_rng(8)
    parts = {name: items(rng.normal([[0.5], [0.6], [0.7]], 0.1, (3, 9))) for name in ("one", "two")}
    whole = items((parts["one"].values + parts["two"].values) / 2)
    found = contrasts({"all": whole, **parts})
    scales = {"aggregate": whole.values.T} | {name: part.values.T for name, part in parts.items()}
    expected = mt.order_analysis(scales, score_range=(0, 1))
    for one in found:
        scale = "aggregate" if one.labels["dimension"] == "all" else one.labels["dimension"]
        pair = tuple(sorted(map("abc".index, (one.labels["high"], one.labels["low"]))))
        assert one.detail["p"] == pytest.approx(expected.scales[scale][pair].p)


@given(arrays(float, (3, 8), elements=st.floats(0, 1, allow_subnormal=False)),
       st.lists(st.sampled_from("xyz"), min_size=8, max_size=8))  # fmt: skip
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
    turned = items(values[list(order)], "aabbccdde", "xxxyyyzzz", models=["abcd"[at] for at in order])
    plain = items(values, "aabbccdde", "xxxyyyzzz")
    assert {one.id: one.value for one in contrasts(turned)} == {one.id: one.value for one in contrasts(plain)}
    # Window 9 comes before window 10, as it does where numbers are padded with zeros.
    rng = np.random.default_rng(5)
    values = rng.normal(0.5, 0.1, (3, 14)) + 0.1 * np.sin(np.arange(14) / 2) * np.array([[1.0], [-1.0], [0.0]])
    windows = [items(values, [name.format(k) for k in range(14)]) for name in ("window {}", "window {:02d}")]
    one, other = ([one.detail["p"] for one in contrasts(each, order="consecutive")] for each in windows)
    assert one == other


def test_a_planted_rank_correlation_is_in_its_interval():
    """Models whose skill on questions and in the pipeline is known: the interval holds the correlation of skills."""
    hits = 0
    skill = np.linspace(0.2, 0.8, 8)
    for seed in range(60):
        rng = np.random.default_rng([4, seed])
        pipeline = skill[rng.permutation(8)]
        truth = stats.spearmanr(skill, pipeline).statistic
        one, two = (items(each[:, None] + rng.normal(0, 0.15, (8, 80))) for each in (skill, pipeline))
        found = mt.rank_agreement("d", one, two, {}, rng=rng, level=0.95, resamples=400)
        hits += found.low - 1e-9 <= truth <= found.high + 1e-9
    assert hits >= 51  # a true rate of .95 gives fewer once in ten thousand times
    # A rank correlation of ties is not defined.
    flat, other = items([[0.5, 0.5]] * 3), items([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    found = mt.rank_agreement("d", flat, other, {}, rng=np.random.default_rng(1), level=0.95)
    assert (found.value, found.state.startswith("not defined")) == (None, True)
    pair, rng = items([[1.0], [2.0]]), np.random.default_rng(1)
    with pytest.raises(InputError, match="three or more"):
        mt.rank_agreement("d", pair, pair, {}, rng=rng, level=0.9)
    with pytest.raises(InputError, match="finite"):
        mt.level_measurements("bench.level", items([[0.1, np.nan]]), {}, level=0.95)


# Shaffer's step-down and the claim to be first: against brute force, Holm, and by simulation
def p_values(agents):
    return st.lists(st.floats(0, 1), min_size=agents * (agents - 1) // 2, max_size=agents * (agents - 1) // 2)


some_pairs = st.integers(2, 6).flatmap(lambda agents: st.tuples(st.just(agents), p_values(agents)))


def partitions(n, most=None):
    """Every way to write n as a sum of group sizes."""
    if n == 0:
        yield []
    for size in range(min(n, most or n), 0, -1):
        for rest in partitions(n - size, size):
            yield [size, *rest]


def test_equalities_are_those_of_groups_of_equals():
    for agents in range(1, 13):
        every = {sum(math.comb(size, 2) for size in groups) for groups in partitions(agents)}
        assert mt.attainable_equalities(agents) == tuple(sorted(every))


def step_down(p, agents, scales):
    """The pooled procedure as a loop: p of (scale, pair), one at a time."""
    attainable, m = mt.attainable_equalities(agents), math.comb(agents, 2)
    rejected, adjusted, highest = dict.fromkeys(scales, 0), {}, 0.0
    for key in sorted(p, key=lambda one: p[one]):
        factor = sum(max(c for c in attainable if c <= m - rejected[scale]) for scale in scales)
        highest = max(highest, min(1.0, factor * p[key]))
        adjusted[key] = highest
        rejected[key[0]] += 1
    return adjusted


@given(some_pairs)
def test_shaffer_is_the_step_down_as_a_loop(case):
    agents, p = case
    expected, adjusted = step_down({("a", k): value for k, value in enumerate(p)}, agents, ["a"]), mt.shaffer(p, agents)
    assert adjusted == pytest.approx([expected["a", k] for k in range(len(p))], abs=1e-12)
    # One scale is pooled with none; Shaffer is never above Holm and never below p.
    assert mt.shaffer_pooled({"a": p}, agents)["a"].tolist() == adjusted.tolist()
    assert (adjusted <= mt.holm(p) + 1e-15).all()
    assert (adjusted >= np.array(p)).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


@given(st.integers(2, 4).flatmap(lambda k: st.tuples(st.just(k), st.lists(p_values(k), min_size=1, max_size=4))))
def test_scales_are_pooled_as_a_loop_would(case):
    agents, rows = case
    p = {f"d{k}": row for k, row in enumerate(rows)}
    expected = step_down({(name, k): v for name, row in p.items() for k, v in enumerate(row)}, agents, [*p])
    for name, adjusted in mt.shaffer_pooled(p, agents).items():
        assert adjusted == pytest.approx([expected[name, k] for k in range(len(adjusted))], abs=1e-12)


def test_the_factors_of_three_and_four_agents():
    for agents, p, factors in ((3, [0.01] * 3, [3, 3, 3]), (3, [0.001, 0.01, 0.1], [3, 1, 1]),
                               (4, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1], [6, 3, 3, 3, 2, 1])):  # fmt: skip
        assert (mt.shaffer(p, agents) / p).round(9).tolist() == factors
    assert mt.shaffer_pooled({}, 3) == {}


def decide(gap, p, agents, alpha):
    """(first, published, adjusted) of one study by the text of the rule."""
    pairs = list(combinations(range(agents), 2))
    ahead = {x: [one if (g > 0 if x == i else g < 0) else math.inf for (i, j), g, one in zip(pairs, gap, p, strict=True)
                 if x in (i, j)] for x in range(agents)}  # fmt: skip
    kept = 0.5 if agents > 3 else 0.0
    adjusted = np.minimum(1, mt.shaffer(p, agents) / (1 - kept))
    for x, worst in ahead.items():
        if kept and max(worst) <= kept * alpha:
            own = [x in pair for pair in pairs]
            rest = iter(mt.shaffer([one for one, mine in zip(p, own, strict=True) if not mine], agents - 1))
            adjusted = np.array([max(worst) / kept if mine else next(rest) for mine in own])
    published = (adjusted <= alpha) & (np.array(gap) != 0)
    wins = [sum(said and (pair[int(g < 0)] == x) for pair, g, said in zip(pairs, gap, published, strict=True))
            for x in range(agents)]  # fmt: skip
    return wins.index(agents - 1) if agents - 1 in wins else -1, published, adjusted


@given(st.integers(0, 2**32), st.integers(2, 7), st.floats(0, 8))
def test_orders_are_published_by_the_text_of_the_rule(seed, agents, strength):
    rng = np.random.default_rng(seed)
    levels = rng.normal(0, strength, (3, agents))
    first, second = np.triu_indices(agents, 1)
    gap = levels[:, first] - levels[:, second] + rng.normal(0, 0.1, (3, first.size))
    p = np.exp(-np.abs(gap) * rng.uniform(0.5, 2))
    found = mt.publish_orders(gap, p, 0.05)
    for b in range(3):
        expected = decide(gap[b], p[b], agents, 0.05)
        alone = mt.publish_orders(gap[b], p[b], 0.05)
        assert (int(found.first[b]), int(alone.first)) == (expected[0], expected[0])
        assert found.published[b].tolist() == alone.published.tolist() == expected[1].tolist()
        assert found.p_adjusted[b] == pytest.approx(expected[2], abs=1e-12)
        assert alone.p_adjusted.tolist() == found.p_adjusted[b].tolist()


def test_a_leader_is_found_where_no_step_down_would():
    gap, p = [0.5, 0.4, 0.6, 0.1, 0.1, -0.1], [0.025, 0.025, 0.025, 0.3, 0.5, 0.7]
    found = mt.publish_orders(gap, p, 0.05)
    assert (int(found.first), found.published.tolist()) == (0, [True] * 3 + [False] * 3)
    assert found.p_adjusted[:3].tolist() == [0.05] * 3
    assert not mt.publish_orders(gap, [0.02501, *p[1:]], 0.05).published.any()
    # An agent with a pair that cannot be tested is not first.
    found = mt.publish_orders([0.5, 0.4, math.nan, 0.1, 0.1, 0.1], [1e-9, 1e-9, 1.0, 0.9, 0.9, 0.9], 0.05)
    assert (int(found.first), found.published.tolist()) == (-1, [True, True, False, False, False, False])
    # A gap of nothing is no order whatever its p.
    assert mt.publish_orders([0.0], [0.001], 0.05).published.tolist() == [False]
    assert int(mt.publish_orders([], [], 0.05).first) == -1
    # Wrong directions are errors too and stay rare.
    # All agents differ, by next to nothing: a published order is false if its direction is.
    rng = np.random.default_rng(2)
    truth = np.linspace(0.001, 0, 5)
    first, second = np.triu_indices(5, 1)
    means = truth + rng.normal(0, 1, (20_000, 5))
    gap = means[:, first] - means[:, second]
    p = np.array([math.erfc(abs(z) / 2) for z in gap.ravel()]).reshape(gap.shape)
    found = mt.publish_orders(gap, p, 0.05)
    assert (found.published & (gap < 0)).any(axis=1).mean() <= 0.05


def test_what_is_wrong_is_said():
    for call, arguments, message in (
        (mt.shaffer, ([0.1, 0.2], 3), "3 agents have 3 pairs"), (mt.shaffer, ([], 0), "at least 1"),
        (mt.shaffer, ([0.1, 0.2, 1.2], 3), r"0..1 \(first that does not: 1.2"),
        (mt.shaffer, ([0.1, 0.2, math.nan], 3), "p-values lie in 0..1"),
        (mt.shaffer_pooled, ({"a": [0.1]}, 3), "3 agents have 3 pairs"), (mt.attainable_equalities, (0,), "at least 1"),
        (mt.publish_orders, ([0.1, 0.2], [0.1, 0.2], 0.05), "K.K-1./2 pairs"),
        (mt.publish_orders, ([0.1], [0.1, 0.2], 0.05), "one entry for each gap"),
        (mt.publish_orders, ([0.1], [-0.1], 0.05), "p-values lie"),
        (mt.publish_orders, ([0.1], [0.1], 1.0), "strictly between"),
        (mt.agent_effects, ([], [], []), "scores: is empty"),
        (mt.agent_effects, ([math.inf], ["a"], ["x"]), "not finite"),
        (mt.agent_effects, ([1.0, 2.0], ["a"], ["x", "y"]), "agents: must have one entry for each of the 2"),
        (mt.agent_effects, ([1.0, 2.0], ["a", "b"], ["x"]), "cycles: must have one entry"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call(*arguments)


# Least-squares agent levels: raw means when balanced, a slow regression when not, and named when neither
def by_regression(scores, agents, cycles):
    """Dummy-variable least squares with numpy, then the mean prediction of each agent over all cycles."""
    a, c = max(agents) + 1, max(cycles) + 1
    x = np.zeros((len(scores), a + c))
    x[np.arange(len(scores)), agents] = 1
    x[np.arange(len(scores)), a + np.array(cycles)] = 1
    beta = np.linalg.lstsq(x, np.array(scores), rcond=None)[0]
    return beta[:a] + beta[a:].mean()


@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 1000))
def test_balanced_levels_are_raw_means(agents, cycles, seed):
    scores = np.random.default_rng(seed).normal(size=(agents, cycles))
    who, when = (axis.ravel() for axis in np.indices((agents, cycles)))
    result = mt.agent_effects(scores.ravel(), who, when)
    assert result == pytest.approx(dict(enumerate(scores.mean(axis=1).tolist())), abs=1e-10)


@given(st.integers(0, 5000))
def test_unbalanced_levels_are_those_of_a_regression(seed):
    rng = np.random.default_rng(seed)
    agents = np.concatenate([np.arange(4), rng.integers(0, 4, 20)])
    cycles = np.concatenate([np.zeros(4, dtype=int), rng.integers(0, 6, 20)])
    cycles = np.unique(cycles, return_inverse=True)[1]
    scores = rng.normal(size=24)
    result = mt.agent_effects(scores, agents, cycles)
    assert result == pytest.approx(dict(enumerate(by_regression(scores, agents, cycles).tolist())), abs=1e-9)


def test_hard_rounds_do_not_count_against_who_played_them():
    rng = np.random.default_rng(3)
    difficulty, skill = rng.normal(0, 2, 60), {"a": 0.3, "b": 0.0}
    # Agent a mostly joins the harder half.
    rows = [(skill[agent] + difficulty[cycle], agent, cycle) for cycle in range(60) for agent in "ab"
            if agent == "b" or difficulty[cycle] < 0 or cycle % 5 == 0]  # fmt: skip
    scores, agents, cycles = zip(*rows, strict=True)
    result = mt.agent_effects(scores, agents, cycles)
    assert result["a"] - result["b"] == pytest.approx(0.3)
    assert np.mean([score for score, agent, _ in rows if agent == "a"]) < np.mean([s for s, a, _ in rows if a == "b"])
    # Agents that never meet have no common level.
    with pytest.raises(NotMeasurableError, match=r"2 groups without common cycles \(a, b; c\)"):
        mt.agent_effects([1.0, 2.0, 3.0], ["a", "b", "c"], ["x", "x", "y"])
    # Agents that meet through others have one.
    result = mt.agent_effects([1.0, 2.0, 2.0, 4.0], ["a", "b", "b", "c"], ["x", "x", "y", "y"])
    assert np.diff([*result.values()]) == pytest.approx([1.0, 2.0])


def test_leaving_a_cluster_out_is_fitting_without_it():
    rng, cluster = np.random.default_rng(1), np.repeat(np.arange(5), 8)
    chosen = np.argwhere(rng.random((4, 40)) < 0.7)
    scores = rng.normal(size=(len(chosen), 2))
    design = Design.of(scores, chosen[:, 0], chosen[:, 1], cluster, 4)
    levels, low, high = design.levels_with_ends(0.95)
    without = []
    for k in range(5):
        keep = cluster[chosen[:, 1]] != k
        cycles = np.unique(chosen[keep, 1], return_inverse=True)[1]
        without.append([by_regression(scores[keep, col], chosen[keep, 0], cycles) for col in range(2)])
    without = np.array(without)
    error = 2.7764451 * np.sqrt(4 / 5 * np.square(without - levels.T).sum(axis=0)).T
    np.testing.assert_allclose([high - levels, levels - low], [error, error], atol=1e-6)


def test_ends_are_those_of_weights_that_leave_each_cluster_out():
    rng, cluster = np.random.default_rng(5), np.repeat(np.arange(6), 2)
    for density in (0.9, 0.5, 0.3, 0.2) * 5:  # of sparse designs parts are linked through others, or not at all
        chosen = np.argwhere(rng.random((5, 12)) < density)
        design = Design.of(rng.normal(size=(len(chosen), 2)), chosen[:, 0], chosen[:, 1], cluster, 5)
        levels, low, high = design.levels_with_ends(0.95)
        without, g, counts = design.levels(1 - np.eye(design.clusters)), design.clusters, design.own_clusters()
        np.testing.assert_allclose(design.levels(np.ones((1, g)))[0], levels, atol=1e-9)
        error = np.sqrt((g - 1) / g * np.square(without - levels).sum(axis=0))
        half = np.array([t_quantile(0.975, k - 1) if k > 1 else np.nan for k in counts.tolist()])[:, None] * error
        np.testing.assert_allclose([low, high], [levels - half, levels + half], atol=1e-9)


def test_jackknife_ends_hold_the_planted_difference_about_as_often_as_stated():
    rng = np.random.default_rng(17)
    hits, studies = 0, 200
    for _ in range(studies):
        cluster = np.repeat(np.arange(6), 4)
        agent, cycle = (axis.ravel() for axis in np.indices((3, 24)))
        shared = rng.normal(0, 0.5, (3, 6))[agent, cluster[cycle]]
        scores = 3 + 0.2 * agent + shared + rng.normal(0, 0.5, agent.size)
        _, low, high = Design.of(scores[:, None], agent, cycle, cluster, 3).levels_with_ends(0.95)
        hits += bool(low[1, 0] <= 3.2 <= high[1, 0])
    assert 0.90 < hits / studies < 0.985
    # Levels outside the main group and intervals of one cluster are missing.
    agent, cycle = np.array([0, 1, 0, 1, 2, 3]), np.array([0, 0, 1, 1, 2, 1])
    design = Design.of(np.arange(6.0)[:, None], agent, cycle, np.array([0, 1, 1]), 5)
    levels, low, _ = design.levels_with_ends(0.95)
    assert np.isnan(levels[:, 0]).tolist() == [False, False, True, False, True]
    assert design.own_clusters().tolist() == [2, 2, 1, 1, 0]
    # Agents 0 and 1 were in both clusters; agent 3 vanishes with the second one.
    assert np.isnan(low[:, 0]).tolist() == [False, False, True, True, True]
    one = Design.of(np.arange(6.0)[:, None], agent, cycle, np.zeros(3, dtype=np.int64), 5)
    assert np.isnan(one.levels_with_ends(0.95)[1]).all()
    # A design without decisions has no levels.
    nothing = np.empty(0, dtype=np.int64)
    design = Design.of(np.empty((0, 2)), nothing, nothing, nothing, 3)
    assert np.isnan(design.levels_with_ends(0.95)[0]).all()
    assert design.groups() == []
