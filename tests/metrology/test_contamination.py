"""Post-cutoff against earlier clusters: the t test it is when balanced, planted gaps, error rates, and its states."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.metrology import contamination_measurements, score_table
from assaymark.metrology.probes import cluster_gap

POST = 'contamination = {post_cutoff = ["week04"]}'
SOME = {"BTC": "01234", "SOL": "234"}


def split(records, plan, instruments=None):
    table = score_table(records[1], records[0])
    found = list(contamination_measurements(table, plan, instruments or {}))
    return table, {m.labels["split"]: m for m in found}


def shifted(records, clusters, by):
    decisions, judgments = records
    ids = {d.record_id for d in decisions if d.cluster in clusters}
    return decisions, [
        dataclasses.replace(j, scores={k: min(5.0, max(1.0, s + by)) for k, s in j.scores.items()})
        if j.trajectory in ids
        else j
        for j in judgments
    ]


@pytest.mark.parametrize("post", [(4,), (1, 3), (0, 1, 2)])
def test_balanced_records_are_students_two_sample_test_on_cluster_means(post):
    rng = np.random.default_rng(3)
    agent, cluster = (axis.ravel() for axis in np.indices((4, 50)))
    cluster = cluster // 10
    scores = 3 + 0.4 * agent + rng.normal(0, 0.5, 5)[cluster] + rng.normal(0, 1, agent.size)
    later = np.isin(cluster, post)
    gap = cluster_gap(scores, agent, cluster, later, level=0.9)
    means = np.array([scores[cluster == c].mean() for c in range(5)])
    inside = np.isin(np.arange(5), post)
    oracle = stats.ttest_ind(means[inside], means[~inside]) if len(post) > 1 else None
    assert gap.difference == pytest.approx(scores[later].mean() - scores[~later].mean())
    if oracle is not None:
        ends = oracle.confidence_interval(0.9)
        assert gap.p == pytest.approx(oracle.pvalue)
        assert (gap.low, gap.high) == pytest.approx((ends.low, ends.high))
    else:
        # One more draw from the clusters that there are: Student's prediction interval.
        error = means[~inside].std(ddof=1) * math.sqrt(1 + 1 / 4)
        half = stats.t.ppf(0.95, 3) * error
        assert gap.high - gap.difference == gap.difference - gap.low == pytest.approx(half)
        assert gap.p == pytest.approx(2 * stats.t.sf(abs(gap.difference) / error, 3))
    assert f"t(3), {len(post)} against {5 - len(post)} clusters" in gap.method


def by_regression(scores, agent, post):
    """The coefficient of the side beside a constant for each agent."""
    design = np.concatenate([np.eye(agent.max() + 1)[agent], post[:, None]], axis=1)
    return np.linalg.lstsq(design, scores, rcond=None)[0][-1]


@given(st.integers(0, 5000))
def test_unbalanced_records_are_the_regression_within_agents(seed):
    rng = np.random.default_rng(seed)
    agent = np.concatenate([np.repeat(np.arange(3), 2), rng.integers(0, 3, 30)])
    cluster = np.concatenate([np.tile([0, 4], 3), rng.integers(0, 5, 30)])
    scores, post = rng.normal(size=36), cluster >= 3
    gap = cluster_gap(scores, agent, cluster, post)
    assert gap.difference == pytest.approx(by_regression(scores, agent, post), abs=1e-9)
    assert gap.low < gap.difference < gap.high
    other = cluster_gap(-scores, np.array([2, 0, 1])[agent], 7 - cluster, post)
    assert other.difference == pytest.approx(-gap.difference, abs=1e-9)
    assert other.p == pytest.approx(gap.p)


def test_who_decides_after_the_cutoff_does_not_pass_for_a_gap():
    """A strong agent that mostly joins late lifts the plain mean, and not the gap."""
    rng = np.random.default_rng(5)
    cluster = np.concatenate([np.repeat(np.arange(5), 20), np.repeat(np.arange(5), [2, 2, 2, 2, 40])])
    agent = np.concatenate([np.zeros(100, dtype=int), np.ones(48, dtype=int)])
    scores = 3 + 1.5 * agent + rng.normal(0, 0.2, 148)
    post = cluster == 4
    gap = cluster_gap(scores, agent, cluster, post)
    assert scores[post].mean() - scores[~post].mean() > 0.7
    assert gap.difference == pytest.approx(0.0, abs=0.15)
    assert gap.low < 0 < gap.high


@pytest.mark.parametrize("between", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("post", [1, 2])
def test_true_nulls_are_rejected_at_the_stated_rate(between, post):
    rng, studies, hits = np.random.default_rng(11), 1500, 0
    agent, cluster = (axis.ravel() for axis in np.indices((2, 30)))
    cluster = cluster // 6
    for _ in range(studies):
        scores = agent + between * rng.normal(size=5)[cluster] + rng.normal(size=60)
        hits += cluster_gap(scores, agent, cluster, cluster < post).p <= 0.05
    low, high = stats.binom.ppf([0.0005, 0.9995], studies, 0.05)
    assert low <= hits <= high


def test_a_planted_gap_is_found_and_no_gap_is_bounded(make, study):
    records = make(cycles=20)
    table, found = split(records, study(POST))
    plain = found["all"]
    assert plain.low < 0 < plain.high
    scores, post = table.stacked.mean(axis=1)[:, 0], table.cluster == 4
    assert plain.value == pytest.approx(scores[post].mean() - scores[~post].mean())
    assert plain.detail == {
        "p": plain.detail["p"],
        "n_post": 80,
        "n_earlier": 320,
        "clusters_post": 1,
        "clusters_earlier": 4,
        "absent": [],
        "one_sided": [],
    }
    assert (plain.n, plain.n_of, plain.level, plain.unit) == (400, "trajectories", 0.95, "rubric points")
    assert plain.inputs == table.digest
    _, found = split(shifted(records, {"week04"}, -1.0), study(POST))
    assert found["all"].high < 0
    assert found["all"].detail["p"] < 0.05


def test_splits_by_instrument_and_those_that_are_missing_from_a_side(make, study):
    records = make()
    about = {
        d.record_id: frozenset(name for name, weeks in SOME.items() if d.cluster[-1] in weeks)
        | ({"ETH"} if d.cluster < "week02" else set())
        for d in records[0]
    }
    table, found = split(records, study(POST), about)
    assert list(found) == ["all", "instrument:BTC", "instrument:ETH", "instrument:SOL"]
    assert found["all"].detail["absent"] == ["ETH"]
    assert found["all"].value == found["instrument:BTC"].value
    sol = found["instrument:SOL"]
    assert (sol.detail["n_post"], sol.detail["n_earlier"], sol.detail["clusters_earlier"]) == (40, 80, 2)
    scores, rows = table.stacked.mean(axis=1)[:, 0], table.cluster >= 2
    post = table.cluster == 4
    assert sol.value == pytest.approx(scores[post].mean() - scores[rows & ~post].mean())
    eth = found["instrument:ETH"]
    assert eth.state == "not measurable: no record after the cutoff (clusters week04)"
    assert (eth.value, eth.detail["p"], eth.detail["absent"]) == (None, None, ["ETH"])


def test_agents_on_one_side_only_say_nothing(make, study):
    decisions, judgments = make()
    kept = [d for d in decisions if d.agent.id != "elm" or d.cluster == "week04"]
    ids = {d.record_id for d in kept}
    _, found = split((kept, [j for j in judgments if j.trajectory in ids]), study(POST))
    assert found["all"].detail["one_sided"] == ["elm"]
    assert (found["all"].n, found["all"].detail["n_post"]) == (150, 30)


def test_one_cluster_on_each_side_has_no_test(make, study):
    _, found = split(make(clusters=2), study('contamination = {post_cutoff = ["week01"]}'))
    m = found["all"]
    assert (m.state, m.low, m.level, m.detail["p"]) == ("ok", None, None, 1.0)
    assert m.method.endswith("one cluster on each side cannot be tested, p = 1")


def test_clusters_that_do_not_vary_leave_the_number_of_choices():
    cluster = np.repeat(np.arange(5), 2)
    agent = np.tile([0, 1], 5)
    flat = cluster_gap(np.full(10, 3.0), agent, cluster, cluster == 4)
    assert (flat.difference, flat.p, flat.low) == (0.0, 1.0, None)
    step = cluster_gap(3.0 + (cluster >= 3), agent, cluster, cluster >= 3)
    assert (step.difference, step.p) == (1.0, 0.1)


@pytest.mark.parametrize(
    ("plan", "state"),
    [
        ("", "not measured: the plan names no post-cutoff clusters"),
        ('contamination = {post_cutoff = ["later"]}', "not measurable: no record after the cutoff (clusters later)"),
        (
            'contamination = {post_cutoff = ["week00", "week01", "week02", "week03", "week04"]}',
            "not measurable: no record before the cutoff",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(make, study, plan, state):
    _, found = split(make(cycles=2), study(plan))
    assert [(m.state, m.value) for m in found.values()] == [(state, None)]


def test_no_common_agent_and_no_score_are_states(make, study):
    decisions, judgments = make(cycles=2)
    kept = [d for d in decisions if (d.agent.id == "elm") == (d.cluster == "week04")]
    ids = {d.record_id for d in kept}
    _, found = split((kept, [j for j in judgments if j.trajectory in ids]), study(POST))
    assert found["all"].state == "not measurable: no agent has records on both sides of the cutoff"
    nothing = [dataclasses.replace(j, status="invalid", scores={}) for j in judgments]
    _, found = split((decisions, nothing), study(POST))
    assert found["all"].state == "not measurable: no trajectory has a usable score from every judge"
