"""Rank shares over cluster resamples: against refitting every ordered draw, their laws, and their states."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assaymark.metrology import agent_effects, analyse, score_table
from assaymark.metrology.panel import Design, rank_shares

AGENTS = ("ash", "birch", "cedar", "elm")


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
        levels = np.round(agent_effects(scores[chosen], agent[chosen], rounds).levels, 9)
        for a in range(agents):
            above, tied = int((levels > levels[a]).sum()), int((levels == levels[a]).sum())
            shares[a, above : above + tied] += 1 / tied
    return shares / g**g


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_enumerated_shares_are_those_of_refitting_every_draw(seed):
    scores, agent, cycle, cluster = drawn_records(seed)
    design = Design.of(scores[:, None], agent, cycle, cluster, 3)
    found = rank_shares(design, np.arange(3), slice(0, 1), resamples=1, rng=None)
    assert (found.exact, found.resamples, found.left_out) == (True, 10, 0.0)
    np.testing.assert_allclose(found.shares[:, :, 0], by_refitting(scores, agent, cycle, cluster, 3), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 5), st.permutations(range(4)))
def test_shares_sum_to_one_and_do_not_depend_on_names(seed, clusters, order):
    scores, agent, cycle, cluster = drawn_records(seed, agents=4, clusters=clusters)
    found = [
        rank_shares(
            Design.of(scores[:, None], who, cycle, cluster, 4), np.arange(4), slice(0, 1), resamples=1, rng=None
        ).shares[:, :, 0]
        for who in (agent, np.array(order)[agent])
    ]
    assert found[0].sum(axis=0) == pytest.approx(1)
    assert found[0].sum(axis=1) == pytest.approx(1)
    np.testing.assert_allclose(found[1][list(order)], found[0], atol=1e-12)


def test_drawn_shares_come_close_to_drawing_means():
    scores, agent, cycle, cluster = drawn_records(4, clusters=9, attend=1.0)
    design = Design.of(scores[:, None], agent, cycle, cluster, 3)
    found = rank_shares(design, np.arange(3), slice(0, 1), resamples=20_000, rng=np.random.default_rng(1))
    assert (found.exact, found.resamples, found.left_out) == (False, 20_000, 0.0)
    sums = scores.reshape(3, 9, 3).sum(axis=2)
    totals = np.round(sums @ np.random.default_rng(2).multinomial(9, np.full(9, 1 / 9), 20_000).T, 9)
    best = totals == totals.max(axis=0)
    assert found.shares[:, 0, 0] == pytest.approx((best / best.sum(axis=0)).mean(axis=1), abs=0.02)


def test_resamples_that_leave_agents_apart_do_not_count():
    # The second agent was in the first two of three clusters only: 1 draw in 27 holds none of them.
    agent, cycle = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1])
    design = Design.of(np.array([[3.0], [3.0], [3.0], [2.0], [4.0]]), agent, cycle, np.arange(3), 2)
    found = rank_shares(design, np.arange(2), slice(0, 1), resamples=1, rng=None)
    assert found.left_out == pytest.approx(1 / 27)
    assert found.shares[:, :, 0].tolist() == [[pytest.approx(0.5)] * 2] * 2


def first(records, study, extra="", **parts):
    table = score_table(records[1], records[0])
    found = analyse(table, study(extra), rng=np.random.default_rng(1))
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


def test_equal_scores_share_every_rank(make, study):
    decisions, judgments = make(clusters=3, cycles=2)
    flat = [dataclasses.replace(j, scores=dict.fromkeys(j.scores, 3.0)) for j in judgments]
    found = first((decisions, flat), study)
    assert {m.value for m in found.values()} == {0.25}


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ({"clusters": 1, "cycles": 4}, "undefined: one cluster, needs two"),
        ({"agents": ("ash",), "effects": (0.0,)}, "undefined: one agent, needs two"),
    ],
)
def test_what_cannot_be_ranked_says_why(make, study, parts, state):
    found = first(make(**parts), study)
    assert {m.state for m in found.values()} == {state}
    assert {m.value for m in found.values()} == {None}


def test_agents_that_are_mostly_apart_are_not_ranked(one_decision, one_judgment, study):
    # Birch was in one cluster of four, which (3/4)^4 of the draws miss.
    decisions = [one_decision("ash", c, f"w{c}") for c in range(4)] + [one_decision("birch", 0, "w0")]
    decisions += [one_decision("cedar", c, f"w{c}") for c in range(3)]
    judgments = [
        one_judgment(d.record_id, judge, {"risk": 1.0 + k % 5})
        for k, d in enumerate(decisions)
        for judge in ("auditor", "reader")
    ]
    found = first((decisions, judgments), study)
    assert found["risk", "ash"].state == "ok"
    assert found["risk", "ash"].detail["left_out"] == pytest.approx((3 / 4) ** 4)
    assert "31.641% of them left out: agents apart" in found["risk", "ash"].method
    # Three agents in one cluster each: only draws with all three of them put everybody on one scale.
    others = [one_decision(agent, k, f"w{k}") for k, agent in enumerate(("birch", "elm", "yew"))]
    lonely = [*decisions[:4], *others]
    judgments = [
        one_judgment(d.record_id, judge, {"risk": 1.0 + k % 5})
        for k, d in enumerate(lonely)
        for judge in ("auditor", "reader")
    ]
    found = first((lonely, judgments), study)
    assert found["risk", "ash"].state.startswith("undefined: in 77% of the resamples some agents share no cycle")
