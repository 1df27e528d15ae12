"""Rank shares over cluster resamples: against refitting every ordered draw, their laws, and their states."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from assaymark import metrology as mt
from assaymark.errors import InputError
from assaymark.metrology.panel import Design, rank_shares

AGENTS = ("ash", "birch", "cedar", "elm")


def shares_of(scores, agent, cycle, cluster, agents, **more):
    design = Design.of(scores[:, None], agent, cycle, cluster, agents)
    found, *rest = rank_shares(design, np.arange(agents), slice(0, 1), **{"resamples": 1, "rng": None, **more})
    return found[:, :, 0], *rest


def drawn_records(seed, *, agents=3, clusters=3, cycles=3, attend=0.8):
    """Scores in halves, so that ties occur; every agent decides in the first cycle of every cluster."""
    rng = np.random.default_rng(seed)
    agent, cycle = (axis.ravel() for axis in np.indices((agents, clusters * cycles)))
    keep = (rng.random(agent.size) < attend) | (cycle % cycles == 0)
    scores = rng.integers(2, 9, agent.size) / 2
    cluster = np.repeat(np.arange(clusters), cycles)
    return scores[keep], agent[keep], cycle[keep], cluster


def by_refitting(scores, agent, cycle, cluster, agents):
    """Draw clusters in every order, give each copy cycles of its own, fit, rank."""
    g = int(cluster.max()) + 1
    shares = np.zeros((agents, agents))
    for draw in product(range(g), repeat=g):
        rows = [(k, np.flatnonzero(cluster[cycle] == c)) for k, c in enumerate(draw)]
        chosen = np.concatenate([found for _, found in rows])
        rounds = np.concatenate([1000 * k + cycle[found] for k, found in rows])
        levels = np.round([*mt.agent_effects(scores[chosen], agent[chosen], rounds).values()], 9)
        for a in range(agents):
            above, tied = int((levels > levels[a]).sum()), int((levels == levels[a]).sum())
            shares[a, above : above + tied] += 1 / tied
    return shares / g**g


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_enumerated_shares_are_those_of_refitting_every_draw(seed):
    scores, agent, cycle, cluster = drawn_records(seed)
    found, drawn, exact, apart = shares_of(scores, agent, cycle, cluster, 3)
    assert (exact, drawn, apart) == (True, 10, 0.0)
    np.testing.assert_allclose(found, by_refitting(scores, agent, cycle, cluster, 3), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 5), st.permutations(range(4)))
def test_shares_sum_to_one_and_do_not_depend_on_names(seed, clusters, order):
    scores, agent, cycle, cluster = drawn_records(seed, agents=4, clusters=clusters)
    one, other = (shares_of(scores, who, cycle, cluster, 4)[0] for who in (agent, np.array(order)[agent]))
    assert (one.sum(axis=0), one.sum(axis=1)) == (pytest.approx(1), pytest.approx(1))
    np.testing.assert_allclose(other[list(order)], one, atol=1e-12)


def test_drawn_shares_come_close_to_drawing_means():
    scores, agent, cycle, cluster = drawn_records(4, clusters=9, attend=1.0)
    more = {"resamples": 20_000, "rng": np.random.default_rng(1)}
    found, drawn, exact, apart = shares_of(scores, agent, cycle, cluster, 3, **more)
    assert (exact, drawn, apart) == (False, 20_000, 0.0)
    sums = scores.reshape(3, 9, 3).sum(axis=2)
    totals = np.round(sums @ np.random.default_rng(2).multinomial(9, np.full(9, 1 / 9), 20_000).T, 9)
    best = totals == totals.max(axis=0)
    assert found[:, 0] == pytest.approx((best / best.sum(axis=0)).mean(axis=1), abs=0.02)
    # Resamples that leave agents apart do not count: the second agent was in the first two of three clusters only, so
    # that 1 draw in 27 holds none of them.
    agent, cycle = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1])
    found, _, _, apart = shares_of(np.array([3.0, 3.0, 3.0, 2.0, 4.0]), agent, cycle, np.arange(3), 2)
    assert (apart, found.tolist()) == (pytest.approx(1 / 27), [[pytest.approx(0.5)] * 2] * 2)


def first(records, study, extra="", **parts):
    table = mt.score_table(records[1], records[0])
    found = mt.analyse(table, study(extra), rng=np.random.default_rng(1))
    return {(m.labels["dimension"], m.labels["agent"]): m for m in found if m.name == "rank.first"}


def test_a_planted_leader_is_first_in_every_resample(make, study):
    found = first(make(effects=(0.9, 0.1, 0.05, 0.0)), study)
    leader = found["aggregate", "ash"]
    assert (leader.value, leader.n, leader.n_of) == (1.0, 5, "clusters")
    assert leader.detail == {"shares": [1.0, 0.0, 0.0, 0.0], "resamples": 126, "exact": True, "left_out": 0.0}
    assert "exact: all 126 resamples of 5 clusters" in leader.method
    rest = [found["aggregate", agent] for agent in AGENTS[1:]]
    assert [m.value for m in rest] == [0.0] * 3
    assert sum(m.detail["shares"][1] for m in rest) == pytest.approx(1.0)


@pytest.mark.parametrize("clusters", [5, 10])
def test_first_ranks_of_a_dimension_sum_to_one(make, study, clusters):
    found = first(make(clusters=clusters, cycles=4, attend=0.7), study, "inference = {resamples = 1000}")
    for name in ("aggregate", "clarity", "evidence", "risk"):
        assert sum(found[name, agent].value for agent in AGENTS) == pytest.approx(1.0)
    assert found["risk", "elm"].detail["exact"] is (clusters == 5)
    # Equal scores share every rank.
    decisions, judgments = make(clusters=3, cycles=2)
    found = first((decisions, [replace(j, scores=dict.fromkeys(j.scores, 3.0)) for j in judgments]), study)
    assert {m.value for m in found.values()} == {0.25}


def test_what_cannot_be_ranked_says_why(make, study):
    one = {"agents": ("ash",), "effects": (0.0,)}
    for parts, state in (({"clusters": 1, "cycles": 4}, "one cluster, needs two"), (one, "one agent, needs two")):
        found = first(make(**parts), study)
        assert {(m.state, m.value) for m in found.values()} == {(f"undefined: {state}", None)}


def test_agents_that_are_mostly_apart_are_not_ranked(one_decision, one_judgment, study):
    def graded(decisions):
        judgments = [one_judgment(d.record_id, judge, {"risk": 1.0 + k % 5}) for k, d in enumerate(decisions)
                     for judge in ("auditor", "reader")]  # fmt: skip
        return first((decisions, judgments), study)["risk", "ash"]

    # Birch was in one cluster of four, which (3/4)^4 of the draws miss.
    ash = [one_decision("ash", c, f"w{c}") for c in range(4)]
    cedar = [one_decision("cedar", c, f"w{c}") for c in range(3)]
    found = graded([*ash, one_decision("birch", 0, "w0"), *cedar])
    assert (found.state, found.detail["left_out"]) == ("ok", pytest.approx((3 / 4) ** 4))
    assert "31.641% of them left out: agents apart" in found.method
    # Three agents in one cluster each: only draws with all three of them put everybody on one scale.
    lonely = graded([*ash, *(one_decision(agent, k, f"w{k}") for k, agent in enumerate(("birch", "elm", "yew")))])
    assert lonely.state.startswith("undefined: in 77% of the resamples some agents share no cycle")


# The whole procedure for orders: gates, floors, equivalence, stability, and what is said of each pair
NAN = math.nan


def scores(seed, clusters=8, agents=4, *, lead=0.0, sd=0.2):
    table = np.random.default_rng(seed).normal(3, sd, (clusters, agents))
    table[:, 0] += lead
    return table


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(2, 12), st.floats(0, 1.5), st.floats(0, 0.2))
def test_one_analysis_is_the_sum_of_its_parts(seed, agents, clusters, lead, missing):
    table = scores(seed, clusters, agents, lead=lead)
    table[np.random.default_rng(seed).random(table.shape) < missing] = NAN
    found, tests = mt.order_analysis({"aggregate": table}), mt.table_contrasts(table)
    orders = mt.publish_orders(tests.gap, tests.p, 0.05)
    pairs = [*combinations(range(agents), 2)]
    assert {pair: one.p for pair, one in found.scales["aggregate"].items()} == dict(zip(pairs, tests.p, strict=True))
    assert found.p_adjusted == tuple(orders.p_adjusted.tolist())
    assert found.first == (None if orders.first < 0 else int(orders.first))
    turned = [pair if gap > 0 else pair[::-1] for pair, gap in zip(pairs, tests.gap, strict=True)]
    said = {pair for pair, published in zip(turned, orders.published, strict=True) if published}
    assert (set(found.order), found.rank_interval) == (said, mt.rank_intervals(found.order, agents))
    assert found.top_set == tuple(a for a in range(agents) if found.rank_interval[a][0] == 1)
    within = set(found.equivalent)
    for pair, state in zip(pairs, found.pair_state, strict=True):
        assert state.startswith("ordered") == (pair in said or pair[::-1] in said)
        assert (state in ("within the margin", "ordered, by less than the margin")) == (pair in within)
        assert (state == "cannot be tested") == (found.scales["aggregate"][pair].state != "tested")
    assert (found.alpha_dimensions, found.dimension_order, found.dimension_p_adjusted) == (None, {}, {})


def test_dimensions_share_alpha_until_every_pair_of_the_aggregate_is_published():
    flat, steep = scores(1), np.tile([4.0, 3.0, 2.0, 1.0], (8, 1)) + scores(2) / 10
    shut = mt.order_analysis({"aggregate": flat, "risk": steep, "tone": flat})
    assert (shut.alpha_aggregate, shut.alpha_dimensions) == pytest.approx((0.04, 0.01))
    assert (len(shut.dimension_order["risk"]), shut.dimension_order["tone"]) == (6, ())
    opened = mt.order_analysis({"aggregate": steep, "risk": steep, "tone": flat})
    assert opened.alpha_dimensions == 0.05
    assert mt.order_analysis({"aggregate": steep, "risk": steep}, share=0.5).alpha_aggregate == 0.025
    p = {name: [one.p for one in shut.scales[name].values()] for name in ("risk", "tone")}
    assert {name: tuple(values) for name, values in mt.shaffer_pooled(p, 4).items()} == shut.dimension_p_adjusted
    # With all of alpha for the aggregate dimensions wait for the gate.
    waiting = mt.order_analysis({"aggregate": flat, "risk": steep}, share=1)
    assert (waiting.alpha_aggregate, waiting.alpha_dimensions, waiting.dimension_order["risk"]) == (0.05, 0.0, ())
    assert len(mt.order_analysis({"aggregate": steep, "risk": steep}, share=1).dimension_order["risk"]) == 6
    # A floor stops an order and leaves the test as it is.
    table = scores(3, lead=1.0)
    free = mt.order_analysis({"aggregate": table})
    held = mt.order_analysis({"aggregate": table}, p_floor={"aggregate": {(0, 2): 0.3, "0-3": 1e-9}})
    assert (free.first, held.first, set(held.order), held.scales) == (0, None, {(0, 1), (0, 3)}, free.scales)
    assert held.equivalence_p_adjusted == free.equivalence_p_adjusted


def analysed(table, **more):
    return mt.order_analysis({"aggregate": table}, **more)


def test_differences_of_records_replace_those_of_the_table():
    rng = np.random.default_rng(4)
    records = [(f"w{g}", c, a, float(rng.normal(3 + a / 2, 0.3))) for g in range(6) for c in range(4) for a in range(3)]
    table = np.zeros((6, 3))
    for cluster, _, agent, score in records:
        table[int(cluster[1:]), agent] += score / 4
    differences = mt.cluster_differences(records, 3)
    plain, same = (
        analysed(table, **more).scales["aggregate"] for more in ({}, {"differences": {"aggregate": differences}})
    )
    for pair, one in plain.items():
        assert (one.p, one.se, one.df) == pytest.approx((same[pair].p, same[pair].se, same[pair].df))
    given = mt.cluster_differences([record for record in records if record[:3] != ("w0", 0, 2)], 3)
    missing = analysed(table, differences={"aggregate": given})
    assert missing.scales["aggregate"][0, 1] == same[0, 1]
    assert missing.scales["aggregate"][1, 2].difference != same[1, 2].difference
    array = np.array([[given[pair][f"w{g}"] for pair in combinations(range(3), 2)] for g in range(6)])
    assert analysed(table, differences={"aggregate": array}) == missing
    assert set(analysed(table, differences={"aggregate": {}}).pair_state) == {"cannot be tested"}


def test_tests_over_time_replace_the_moderated_one():
    table = scores(5, 20, 3, lead=0.6)
    tests = mt.serial_contrasts(table)
    found = analysed(table, contrasts={"aggregate": tests})
    assert [one.p for one in found.scales["aggregate"].values()] == [one.p for one in tests.values()]
    assert (found.info, found.first) == ({}, 0)
    within = [mt.equivalence_p(one.gap, one.se, one.df, one.clusters, 0.3) for one in tests.values()]
    assert found.equivalence_p_adjusted == tuple(mt.holm(within))
    names = ("gap", "p", "df", "se", "clusters")
    as_text = {f"{i}-{j}": {name: getattr(one, name) for name in names} for (i, j), one in tests.items()}
    assert analysed(table, contrasts={"aggregate": as_text}) == found
    short = analysed(table[:8], contrasts={"aggregate": mt.serial_contrasts(table[:8])})
    assert set(short.pair_state) == {"cannot be tested"}


def test_equivalence_is_that_of_another_library():
    table = scores(6, 12, 2, sd=0.15)
    _, lower, upper = ttost_paired(table[:, 0], table[:, 1], -0.3, 0.3)
    found = analysed(table)
    assert (found.equivalence_p_adjusted, found.equivalent) == (pytest.approx([max(lower[1], upper[1])]), ((0, 1),))
    # Equivalence may need another p to be small too.
    table = scores(7, 12, 3, sd=0.1)
    assert len(analysed(table).equivalent) == 3
    assert (0, 2) not in analysed(table, p_eq_floor={(0, 2): 0.06}).equivalent
    assert analysed(table, margin=0.001).equivalent == ()
    # Equivalence without spread is by sign.
    p = [
        mt.equivalence_p(*one)
        for one in ((0.2, 0.0, None, 6, 0.3), (0.3, 0.0, NAN, 6, 0.3), (None, None, None, 2, 0.3))
    ]
    assert p == [2**-6, 1, 1]
    # The margin is a share of the range.
    margins = [analysed(table, **more).margin for more in ({}, {"score_range": (0, 100)}, {"margin": 0.2})]
    assert margins == pytest.approx([0.3, 7.5, 0.2])


def test_intervals_are_students_and_one_two_or_equal_agents():
    table = scores(9, 6, 2)
    ends = stats.ttest_rel(table[:, 0], table[:, 1]).confidence_interval(0.9)
    same, never = [[3, 2]] * 4, [[3, None], [None, 2]]
    one, same, never = (analysed(each).scales["aggregate"][0, 1] for each in (table, same, never))
    assert one.interval(0.9) == pytest.approx(tuple(ends))
    assert (same.interval(), same.p, same.se, same.df) == (None, 0.125, 0.0, None)
    assert (never.interval(), never.difference, never.clusters, never.p) == (None, None, 0, 1.0)
    # One agent has no order, and two agents are one t test.
    found = analysed([[3.0], [4.0]])
    assert (found.first, found.order, found.rank_interval, found.top_set) == (None, (), ((1, 1),), (0,))
    assert found.scales == {"aggregate": {}}
    table = scores(10, 6, 2, lead=0.4)
    found = analysed(table)
    assert found.p_adjusted == pytest.approx([stats.ttest_rel(table[:, 0], table[:, 1]).pvalue])
    assert (found.first, found.rank_interval) == (0, ((1, 1), (2, 2)))
    # All scores equal give no order.
    five, eight = (analysed(np.full((clusters, 4), 3.0)) for clusters in (5, 8))
    assert (set(five.p_adjusted), five.first, five.order) == ({1.0}, None, ())
    assert (len(five.equivalent), len(eight.equivalent)) == (0, 6)  # 2^-5 over six pairs is no evidence yet


@pytest.mark.parametrize(("drops", "expected"), [
    ({}, ("not measurable", ())), ({"a": (0.4, 0.001)}, ("not measurable", ())),
    ({"a": (0.4, 0.05), "b": (0.4, 0.01)}, ("stable", ())),
    ({"a": (0.4, 0.051), "b": (0.4, 0.01)}, ("rests on", ("a",))),
    ({"a": (0.4, 0.034), "b": (0.4, 0.01), "c": (0.4, 0.033)}, ("rests on", ("a",))),
    ({"a": (0.4, 0.034), "b": (0.4, 0.2), "c": (0.4, 0.033), "d": (0.4, 0.033)}, ("rests on", ("a", "b"))),
    ({"a": (0.4, 0.01, 0.1), "b": (0.4, 0.01, 0.1)}, ("stable", ())),
    ({"a": (0.4, 0.01, 0.101), "b": (0.4, 0.01, None)}, ("rests on", ("a",))),
    ({"a": (-0.01, 0.9), "b": (0.4, 0.9)}, ("reversed without", ("a",))),
    ({"a": (0.0, 1.0), "b": (1e-10, 1.0)}, ("reversed without", ("a", "b"))),
    ({"a": (None, None), "b": (0.4, 0.01)}, ("reversed without", ("a",))),
    ({"a": (NAN, 1.0), "b": (0.4, 0.01)}, ("reversed without", ("a",))),
    ({"a": (0.4, NAN), "b": (0.4, 0.01)}, ("rests on", ("a",)))
])  # fmt: skip
def test_a_published_order_survives_every_family_or_says_on_whom_it_rests(drops, expected):
    assert mt.stability_state(0.4, drops) == expected
    turned = {name: (None if drop[0] is None else -drop[0], *drop[1:]) for name, drop in drops.items()}
    assert mt.stability_state(-0.4, turned) == expected
    # The levels go with alpha.
    drops = {"a": (0.4, 0.008), "b": (0.4, 0.001)}
    assert mt.stability_state(0.4, drops, alpha=0.01) == ("stable", ())
    assert mt.stability_state(0.4, drops, alpha=0.007) == ("rests on", ("a",))
    with pytest.raises(InputError, match="difference, p"):
        mt.stability_state(0.4, {"a": (0.3,), "b": (0.3, 0.1)})


TABLE = scores(11)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"scales": {}}, "must have an aggregate"), ({"scales": {"risk": TABLE}}, "must have an aggregate"),
    ({"scales": {"aggregate": []}}, "at least one element"),
    ({"scales": {"aggregate": [[1, 2], [1]]}}, "array of numbers"),
    ({"scales": {"aggregate": [["a", "b"]]}}, "array of numbers"),
    ({"scales": {"aggregate": [[math.inf, 1]]}}, "finite"),
    ({"scales": {"aggregate": TABLE, "risk": TABLE[:, :2]}}, "same agents"), ({"alpha": 0}, "alpha"),
    ({"share": 0}, "share"), ({"margin": -0.1}, "margin"), ({"score_range": (5, 1)}, "score_range"),
    ({"p_floor": {"risk": {}}}, "names no scale: risk"),
    ({"p_floor": {"aggregate": {(1, 0): 0.5}}}, r"pairs are \(i, j\)"),
    ({"p_floor": {"aggregate": {"a-b": 0.5}}}, r"pairs are \(i, j\)"),
    ({"p_floor": {"aggregate": {(0, 1): 1.5}}}, "lie in 0..1"), ({"p_eq_floor": {(0, 1): None}}, "lie in 0..1"),
    ({"p_eq_floor": {(0, 4): 0.5}}, r"0 <= i < j < 4"),
    ({"differences": {"aggregate": np.zeros((5, 3))}}, "by 6 pairs"),
    ({"differences": {"aggregate": {(0, 1): {"w": math.inf}}}}, "finite"),
    ({"contrasts": {"aggregate": {(0, 1): {"p": 0.5, "gap": 0.1}}}}, r"5 pair\(s\) have none"),
    ({"contrasts": {"aggregate": {p: {"p": 2} for p in combinations(range(4), 2)}}}, "lie in 0..1")
])  # fmt: skip
def test_what_is_wrong_is_said(arguments, message):
    with pytest.raises(InputError, match=message):
        mt.order_analysis(**{"scales": {"aggregate": TABLE}} | arguments)


@pytest.mark.parametrize("clusters", [5, 12])
def test_one_truth_in_many_studies_is_covered_by_the_rank_intervals(clusters):
    rng = np.random.default_rng(clusters)
    truth = np.array([0.5, 0.5, 0.3, 0.0, 0.0])
    rank = [(int((truth > one).sum()) + 1, int((truth >= one).sum())) for one in truth]
    wrong = 0
    for _ in range(400):
        found = analysed(truth + rng.normal(0, 0.25, (clusters, 5))).rank_interval
        wrong += any(low < best or worst < high for (best, worst), (low, high) in zip(found, rank, strict=True))
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
