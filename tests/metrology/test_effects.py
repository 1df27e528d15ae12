"""Least-squares agent levels: raw means when balanced, a slow regression when not, and named when neither."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import agent_effects
from assaymark.metrology.panel import Design


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
    result = agent_effects(scores.ravel(), np.repeat(np.arange(agents), cycles), np.tile(np.arange(cycles), agents))
    assert result.levels == pytest.approx(scores.mean(axis=1).tolist(), abs=1e-10)
    assert result.raw_means == pytest.approx(result.levels, abs=1e-10)
    assert (result.agents, result.cycles, result.decisions) == (tuple(range(agents)), cycles, (cycles,) * agents)


@given(st.integers(0, 5000))
def test_unbalanced_levels_are_those_of_a_regression(seed):
    rng = np.random.default_rng(seed)
    agents = np.concatenate([np.arange(4), rng.integers(0, 4, 20)])
    cycles = np.concatenate([np.zeros(4, dtype=int), rng.integers(0, 6, 20)])
    cycles = np.unique(cycles, return_inverse=True)[1]
    scores = rng.normal(size=24)
    result = agent_effects(scores, agents, cycles)
    assert result.levels == pytest.approx(by_regression(scores, agents, cycles).tolist(), abs=1e-9)


def test_hard_rounds_do_not_count_against_who_played_them():
    rng = np.random.default_rng(3)
    difficulty, skill = rng.normal(0, 2, 60), {"a": 0.3, "b": 0.0}
    rows = [
        (skill[agent] + difficulty[cycle], agent, cycle)
        for cycle in range(60)
        for agent in "ab"
        # Agent a mostly joins the harder half.
        if agent == "b" or difficulty[cycle] < 0 or cycle % 5 == 0
    ]
    scores, agents, cycles = zip(*rows, strict=True)
    result = agent_effects(scores, agents, cycles)
    assert result.levels[0] - result.levels[1] == pytest.approx(0.3)
    assert result.raw_means[0] < result.raw_means[1]


def test_agents_that_never_meet_have_no_common_level():
    with pytest.raises(NotMeasurableError, match=r"2 groups without common cycles \(a, b; c\)"):
        agent_effects([1.0, 2.0, 3.0], ["a", "b", "c"], ["x", "x", "y"])


def test_agents_that_meet_through_others_have_one():
    result = agent_effects([1.0, 2.0, 2.0, 4.0], ["a", "b", "b", "c"], ["x", "x", "y", "y"])
    assert np.diff(result.levels) == pytest.approx([1.0, 2.0])


@pytest.mark.parametrize(
    ("scores", "agents", "cycles", "message"),
    [
        ([], [], [], "scores: is empty"),
        ([math.inf], ["a"], ["x"], "not finite"),
        ([1.0, 2.0], ["a"], ["x", "y"], "agents: must have one entry for each of the 2"),
        ([1.0, 2.0], ["a", "b"], ["x"], "cycles: must have one entry"),
    ],
)
def test_effects_say_what_is_wrong(scores, agents, cycles, message):
    with pytest.raises(InputError, match=message):
        agent_effects(scores, agents, cycles)


def make_design(seed, agents=4, clusters=5, cycles=8, attend=0.7):
    rng = np.random.default_rng(seed)
    chosen = np.argwhere(rng.random((agents, clusters * cycles)) < attend)
    scores = rng.normal(size=(len(chosen), 2))
    cluster = np.repeat(np.arange(clusters), cycles)
    return Design.of(scores, chosen[:, 0], chosen[:, 1], cluster, agents), scores, chosen, cluster


def test_leaving_a_cluster_out_is_fitting_without_it():
    design, scores, chosen, cluster = make_design(1)
    levels, low, high = design.levels_with_ends(0.95)
    without = []
    for k in range(5):
        keep = cluster[chosen[:, 1]] != k
        cycles = np.unique(chosen[keep, 1], return_inverse=True)[1]
        without.append([by_regression(scores[keep, col], chosen[keep, 0], cycles) for col in range(2)])
    without = np.array(without)
    error = np.sqrt(4 / 5 * np.square(without - without.mean(axis=0)).sum(axis=0)).T
    assert high - levels == pytest.approx(2.7764451 * error, abs=1e-6)
    assert levels - low == pytest.approx(2.7764451 * error, abs=1e-6)


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


def test_levels_outside_the_main_group_and_intervals_of_one_cluster_are_missing():
    agent, cycle = np.array([0, 1, 0, 1, 2, 3]), np.array([0, 0, 1, 1, 2, 1])
    design = Design.of(np.arange(6.0)[:, None], agent, cycle, np.array([0, 1, 1]), 5)
    levels, low, _ = design.levels_with_ends(0.95)
    assert np.isnan(levels[:, 0]).tolist() == [False, False, True, False, True]
    assert design.own_clusters().tolist() == [2, 2, 1, 1, 0]
    # Agents 0 and 1 were in both clusters; agent 3 vanishes with the second one.
    assert np.isnan(low[:, 0]).tolist() == [False, False, True, True, True]
    one = Design.of(np.arange(6.0)[:, None], agent, cycle, np.zeros(3, dtype=np.int64), 5)
    assert np.isnan(one.levels_with_ends(0.95)[1]).all()


def test_a_design_without_decisions_has_no_levels():
    nothing = np.empty(0, dtype=np.int64)
    design = Design.of(np.empty((0, 2)), nothing, nothing, nothing, 3)
    assert np.isnan(design.levels_with_ends(0.95)[0]).all()
    assert design.groups() == []
