"""People as the anchor: a slow definition, planted worlds in which all judges err together, judges beside people."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark import metrology as mt
from assaymark.errors import InputError

N = None


def world(seed, *, gap=0.3, bias=0.5, clusters=12, cycles=8, share=0.4, agents=3, noise=0.3, spread=0.2, missing=0.0):
    """Panel means F and human grades H: judges share a liking of the first agent, people grade a random sample."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), cycles)
    n = cluster.size
    quality = np.array([gap, *[0.0] * (agents - 1)])
    quality = 3 + quality + rng.normal(0, spread, (clusters, agents))[cluster] + rng.normal(0, 0.4, (n, 1))
    quality = quality + rng.normal(0, 0.5, (n, agents))
    F = quality + rng.normal(0, noise, (n, agents))
    F[:, 0] += bias
    H = quality + rng.normal(0, noise, (n, agents))
    F[rng.random(F.shape) < missing] = np.nan
    H[rng.permutation(n) >= round(share * n)] = np.nan
    return F, H, cluster


def slow_theta(F, H, a, b, w=None, lam=None):
    """Estimate, lambda and parts from their definition, on the cycles that are given."""
    both = ~np.isnan(F[:, [a, b]]).any(axis=1)
    F, H, w = F[both], H[both], np.ones(both.sum()) if w is None else w[both]
    cells = ~np.isnan(F) & ~np.isnan(H)
    if lam is None:
        x, y = np.where(cells, F, np.nan), np.where(cells, H, np.nan)
        some = cells.any(axis=1)
        x, y, v, k = x[some], y[some], w[some], cells[some]
        if (k.sum(axis=1) >= 2).all():
            x, y = (z - np.nanmean(z, axis=1, keepdims=True) for z in (x, y))
        top = bottom = 0.0
        for agent in range(F.shape[1]):
            own = k[:, agent]
            if own.any():
                xs, ys, ws = x[own, agent], y[own, agent], v[own]
                xs, ys = xs - np.average(xs, weights=ws), ys - np.average(ys, weights=ws)
                top, bottom = top + (ws * xs * ys).sum(), bottom + (ws * xs * xs).sum()
        lam = min(1.0, max(0.0, top / bottom)) if bottom > 1e-12 else 0.0

    def mean(agent, weight):
        own = cells[:, agent]
        return weight * F[:, agent].mean() + np.average(H[own, agent] - weight * F[own, agent], weights=w[own])

    return mean(a, lam) - mean(b, lam), lam, mean(a, 0) - mean(b, 0), mean(a, 1) - mean(b, 1)


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.0, 0.15]), st.booleans(),
       st.sampled_from([None, 0.0, 0.7]))  # fmt: skip
@settings(max_examples=40)
def test_the_contrast_is_its_definition_with_every_cluster_left_out(seed, whole_cycles, missing, weighted, lam):
    F, H, cluster = world(seed, clusters=8, cycles=10, share=0.7, missing=missing)
    rng = np.random.default_rng(seed)
    if not whole_cycles:
        H[rng.random(H.shape) < 0.2] = np.nan
    pi = rng.uniform(0.2, 1, len(F)) if weighted else None
    found = mt.anchor_contrast(F, H, cluster, 0, 2, pi=pi, lam=lam)
    w = np.ones(len(F)) if pi is None else 1 / pi
    full = slow_theta(F, H, 0, 2, w, lam)
    rest = [slow_theta(*(x[cluster != g] for x in (F, H)), 0, 2, w[cluster != g], lam) for g in range(8)]
    both = ~np.isnan(F[:, [0, 2]]).any(axis=1)
    judges = (F[both, 0] - F[both, 2]).mean()
    estimates = [found.estimate, found.lam, found.human_only.estimate, found.judge_only.estimate, found.rectifier]
    assert estimates == pytest.approx([*full[:3], judges, full[3] - judges], abs=1e-10)
    errors = [math.sqrt(7 / 8 * sum((x[k] - full[k]) ** 2 for x in rest)) for k in (0, 2)]
    assert [found.se, found.human_only.se] == pytest.approx(errors, rel=1e-8)
    saving = pytest.approx(1 - (errors[0] / errors[1]) ** 2, abs=1e-8)
    assert (found.saving, found.cycles, found.state) == (saving, both.sum(), "ok")


def test_people_alone_are_the_classic_t_test():
    F, H, cluster = world(1, share=1.0, cycles=4)
    found = mt.anchor_contrast(F, H, cluster, 0, 1)
    means = (H[:, 0] - H[:, 1]).reshape(12, 4).mean(axis=1)
    t = stats.ttest_1samp(means, 0)
    assert (found.human_only.p, found.human_only.df) == (pytest.approx(t.pvalue), 11)
    assert [found.human_only.low, found.human_only.high] == pytest.approx(list(t.confidence_interval()))
    # Lambda 0 is people alone and lambda 1 adds what they see beyond the judges.
    F, H, cluster = world(2)
    none, full = (mt.anchor_contrast(F, H, cluster, 0, 1, lam=lam) for lam in (0.0, 1.0))
    people = none.human_only
    assert (none.estimate, none.se, none.saving) == pytest.approx((people.estimate, people.se, 0))
    assert full.estimate == pytest.approx(full.judge_only.estimate + full.rectifier)
    # A bias that judges share cancels.
    F, H, cluster = world(3, bias=0.0)
    plain = mt.anchor_contrast(F, H, cluster, 0, 1)
    biased = mt.anchor_contrast(F + np.array([0.8, 0.0, -0.3]), H, cluster, 0, 1)
    assert (biased.estimate, biased.se, biased.lam) == pytest.approx((plain.estimate, plain.se, plain.lam))
    moved = (plain.judge_only.estimate + 0.8, plain.rectifier - 0.8)
    assert (biased.judge_only.estimate, biased.rectifier) == pytest.approx(moved)
    # The severity of whoever graded a cycle cancels.
    F, H, cluster = world(4)
    severe = H + np.random.default_rng(4).normal(0, 1, (len(H), 1))
    one, other = (mt.anchor_contrast(F, x, cluster, 0, 1) for x in (H, severe))
    assert (other.estimate, other.se, other.lam) == pytest.approx((one.estimate, one.se, one.lam))
    # Turned agents turn the contrast.
    one, turned = mt.anchor_contrast(F, H, cluster, 0, 1), mt.anchor_contrast(F, H, cluster, 1, 0)
    assert (turned.estimate, turned.p_up) == pytest.approx((-one.estimate, 1 - one.p_up))


def words(found):
    return [mt.anchor_status(one, one.judge_only.estimate, one.p_up) for one in found]


def test_planted_contrasts_are_covered_and_confirmed():
    """Judges see .8 where people see .3; over 300 studies of 32 labelled cycles in 12 clusters."""
    found = [mt.anchor_contrast(*world(seed, share=1 / 3), 0, 1) for seed in range(300)]
    assert 0.92 <= np.mean([one.low <= 0.3 <= one.high for one in found]) <= 0.985
    assert np.mean([one.judge_only.low <= 0.3 <= one.judge_only.high for one in found]) < 0.1
    estimate, rectifier, se, by_people = np.mean(
        [(one.estimate, one.rectifier, one.se, one.human_only.se) for one in found], axis=0
    )
    assert (estimate, rectifier) == pytest.approx((0.3, -0.5), abs=0.03)
    assert se < by_people
    # Equal agents that judges tell apart are rarely confirmed.
    found = [mt.anchor_contrast(*world(seed, gap=0.0), 0, 1) for seed in range(1000, 1300)]
    assert words(found).count("confirms") <= 14  # 2.5 % are expected
    assert words(found).count("contradicts") > 100
    assert np.mean([one.judge_only.p < 0.05 for one in found]) > 0.95
    # A real order is confirmed.
    found = [mt.anchor_contrast(*world(seed, gap=0.6, bias=0.0), 0, 1) for seed in range(60)]
    assert words(found).count("confirms") > 50


def test_unequal_chances_to_be_drawn_are_weighed():
    """Cycles that people are more likely to see favour the first agent; the weights take that off."""
    estimates = []
    for seed in range(150):
        F, H, cluster = world(seed, share=1.0, noise=0.6)
        rng = np.random.default_rng(seed)
        better = rng.random(len(F)) < 0.5
        F[better, 0] += 1.0
        H[better, 0] += 1.0
        pi = np.where(better, 0.8, 0.3)
        H[rng.random(len(F)) >= pi] = np.nan
        estimates.append([mt.anchor_contrast(F, H, cluster, 0, 1, pi=p, lam=0.0).estimate for p in (pi, None)])
    weighed, plain = np.mean(estimates, axis=0)
    assert (weighed, plain > 0.95) == (pytest.approx(0.8, abs=0.04), True)


def test_too_few_labels_are_not_tested():
    for clusters, labelled, state in (
        (4, 40, "too few labels: 40 cycles in 4 clusters, needs 20 in 5"),
        (10, 19, "too few labels: 19 cycles in 10 clusters, needs 20 in 5"),
        (10, 0, "too few labels: 0 cycles in 0 clusters, needs 20 in 5"), (5, 20, "ok"),
    ):  # fmt: skip
        F, H, _ = world(7, share=1.0, clusters=10, cycles=4)
        H[labelled:] = np.nan
        found = mt.anchor_contrast(F, H, np.arange(40) % clusters, 0, 1)
        assert (found.state, found.cycles, found.labelled, found.clusters) == (state, 40, labelled, clusters)
        if state != "ok":
            assert (found.estimate, found.p, found.lam, found.human_only, found.judge_only) == (N, 1.0, N, N, N)
            assert mt.anchor_status(found, 0.5, found.p) == "not tested"


def test_which_labels_and_which_clusters_count():
    F, H, cluster = world(8, share=1.0)
    H[:70, 1] = np.nan
    found = mt.anchor_contrast(F, H, cluster, 0, 1)
    assert (found.labelled, found.labelled_clusters, found.df) == (26, 4, None)
    F[::2, 0] = np.nan
    assert mt.anchor_contrast(F, H, cluster, 0, 2).cycles == 48
    assert mt.anchor_contrast(np.full_like(F, np.nan), H, cluster, 0, 1).cycles == 0
    # Judges without spread are not used.
    F, H, cluster = world(6)
    found = mt.anchor_contrast(np.full_like(F, 3.0), H, cluster, 0, 1)
    assert (found.lam, found.estimate) == (0.0, pytest.approx(found.human_only.estimate))
    assert found.judge_only.state.startswith("zero variance")

    def jackknife(F, H, units):
        """The standard error over units that are left out one by one."""
        left = [slow_theta(F[units != k], H[units != k], 0, 1)[0] for k in np.unique(units)]
        g, full = len(left), slow_theta(F, H, 0, 1)[0]
        return pytest.approx(math.sqrt((g - 1) / g * sum((x - full) ** 2 for x in left)), rel=1e-9)

    # An agent with labels in one cluster only is left out of lambda with it.
    F, H, cluster = world(9, share=1.0)
    H[8:, 2] = np.nan
    found = mt.anchor_contrast(F, H, cluster, 0, 1, pi=np.full(len(F), 1 / 3))
    assert found.se == jackknife(F, H, cluster)
    # Blocks of neighbours are left out where clusters follow each other.
    F, H, cluster = world(10, share=0.8)
    found = mt.anchor_contrast(F, H, cluster, 0, 1, consecutive=True)
    assert (found.df, found.clusters, found.labelled_clusters) == (3, 12, 12)
    assert found.se == jackknife(F, H, mt.neighbour_blocks(12)[cluster])
    F, H, cluster = world(11, clusters=24, share=1.0)
    H[40:] = np.nan
    states = [mt.anchor_contrast(F, H, cluster, 0, 1, consecutive=after).state for after in (False, True)]
    assert states == ["ok", "too few labels: all 40 cycles in one block of neighbours"]


def test_grades_that_do_not_go_together_are_refused():
    good = {"F": [[1.0, 2.0]] * 3, "H": [[1.0, N]] * 3, "cluster": ["w1", "w1", "w2"], "a": 0, "b": 1}
    mt.anchor_contrast(**good)
    for change, what in (
        ({"H": [[1.0, 2.0]]}, "shape of F"), ({"F": [[1.0, math.inf]] * 3}, "finite"),
        ({"F": [["x", "y"]] * 3}, "numbers"), ({"F": []}, "axes"), ({"b": 2}, "one of the agents"),
        ({"b": 0}, "another agent"), ({"a": -1}, "whole number"), ({"cluster": ["w1"]}, "one entry for each"),
        ({"pi": [0.5, 0.0, 0.5]}, "above 0"), ({"pi": [0.5]}, "each of the 3 cycles"),
        ({"pi": [0.5, math.nan, 0.5]}, "finite"), ({"lam": 1.5}, "0..1"), ({"level": 95}, "between 0 and 1"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            mt.anchor_contrast(**good | change)
    good = {"judge": [1, 2, 3], "human": [1, 2, 4], "cluster": [0, 1, 2]}
    mt.judge_against_humans(**good)
    for change in (
        {"judge": []}, {"judge": [1, 2, N]}, {"human": [1.0, 2.0]}, {"human": [1.0, math.nan, 2.0]},
        {"cluster": [0, 1]}, {"agent_family": ["x"]}, {"pass_mark": math.nan}, {"level": 0.0},
    ):  # fmt: skip
        with pytest.raises(InputError):
            mt.judge_against_humans(**good | change)


def test_the_word_for_an_order():
    for estimate, high, p, word in (
        (0.4, 0.6, 0.025, "confirms"), (0.4, 0.6, 0.025 + 5e-10, "confirms"), (0.4, 0.6, 0.026, "undecided"),
        (0.1, 0.24, 0.01, "confirms"), (0.1, 0.24, 0.2, "contradicts"), (0.1, 0.25, 0.2, "undecided"),
        (0.1, 0.25 - 5e-10, 0.2, "undecided"), (-0.4, -0.1, 1.0, "contradicts"), (-0.4, 0.3, 0.9, "undecided"),
        (-0.4, None, 1.0, "undecided"), (None, None, 1.0, "not tested"),
    ):  # fmt: skip
        record = mt.Estimate(estimate, 0.1, 9, None, high, 2 * min(p, 0.5), p, "ok")
        for one in (record, {"estimate": estimate, "high": high}):
            assert mt.anchor_status(one, 0.5, p) == word, (estimate, high, p)
    assert mt.anchor_status({"estimate": 0.4, "high": 0.6}, 0.5, 0.02, alpha=0.01) == "undecided"
    # A contrast must be turned before people are asked.
    for bad, chance in ((0.0, 0.5), (-0.2, 0.5), (math.nan, 0.5), (0.5, 1.5)):
        with pytest.raises(InputError):
            mt.anchor_status({"estimate": 0.4, "high": 0.6}, bad, chance)


def test_nine_in_ten_must_have_been_graded():
    assert all(mt.anchor_response(10 * k, 9 * k) == mt.anchor_response(k, k) == "ok" for k in range(1, 200))
    assert mt.anchor_response(40, 35) == "not tested: 35 of 40 drawn records were graded, needs 90%"
    assert mt.anchor_response(0, 0).startswith("not tested: ")
    for drawn, graded in ((10, 11), (-1, 0), (10, 3.5)):
        with pytest.raises(InputError):
            mt.anchor_response(drawn, graded)


@given(
    st.floats(0.2, 1.5), st.floats(0.1, 1.5), st.floats(-0.9, 0.9), st.integers(2, 60), st.integers(2, 20),
    st.floats(0, 0.3),
)  # fmt: skip
def test_the_smallest_number_of_labels_is_the_first_with_power(effect, sd, r, cycles, clusters, between):
    def power(n):
        df = min(n, clusters) - 1
        error = math.sqrt(between**2 / clusters + sd**2 * ((1 - r**2) / n + r**2 / cycles))
        value = stats.nct.sf(stats.t.ppf(0.975, df), df, effect / error)
        # At one degree of freedom and a large shift the library's tail is not a number; it is then near 1.
        return 1.0 if math.isnan(value) else value

    slow = next((n for n in range(2, cycles + 1) if power(n) >= 0.8), None)
    assert mt.anchor_needed(effect, sd, r, cycles, clusters, sd_cluster=between) == slow


def test_more_labels_for_smaller_effects_and_none_for_the_smallest():
    found = [mt.anchor_needed(effect, 1.0, 0.6, 200, 12, sd_cluster=0.1) for effect in (1.0, 0.6, 0.4, 0.05)]
    assert (found[:3], found[3], mt.anchor_needed(0.5, 1.0, 0.6, 200, 1)) == (sorted(found[:3]), None, None)
    assert mt.anchor_needed(0.5, 0.0, 0.6, 200, 5) == 2
    assert mt.anchor_needed(0.4, 1.0, 0.6, 200, 12, power=0.9) > found[2]
    for bad in (
        {"effect": 0.0}, {"effect": math.inf}, {"sd_human": -1.0}, {"sd_cluster": math.nan}, {"r": 1.2},
        {"r": math.nan}, {"cycles": 0}, {"clusters": 2.5}, {"alpha": 0.0}, {"power": 1.0},
    ):  # fmt: skip
        with pytest.raises(InputError):
            mt.anchor_needed(**{"effect": 0.5, "sd_human": 1.0, "r": 0.6, "cycles": 100, "clusters": 10} | bad)


def graded(seed, *, clusters=8, each=6, bias=0.0):
    rng, n = np.random.default_rng(seed), clusters * each
    true = rng.normal(3, 1, n)
    people = np.clip(np.floor(2 * (true + rng.normal(0, 0.4, n)) + 0.5) / 2, 1, 5)
    judge = np.clip(np.floor(true + bias + rng.normal(0, 0.5, n) + 0.5), 1, 5)
    return judge, people, np.repeat(np.arange(clusters), each)


@given(st.integers(0, 10_000))
@settings(max_examples=25)
def test_a_judge_beside_people_is_kappa_icc_and_bias_with_every_cluster_left_out(seed):
    judge, people, cluster = graded(seed)
    found = mt.judge_against_humans(judge, people, cluster)

    def values(keep):
        x, y = judge[keep], people[keep]
        kappa = mt.weighted_kappa(mt.round_half_up(x), mt.round_half_up(y))
        return np.array([kappa, mt.icc(np.stack([x, y], axis=1)).icc_a1, (x - y).mean()])

    full = values(cluster >= 0)
    errors = np.sqrt(7 / 8 * sum((values(cluster != g) - full) ** 2 for g in range(8)))
    found = [(one.estimate, one.se, one.low) for one in (found.kappa, found.icc_a1, found.bias)]
    expected = np.stack([full, errors, full - stats.t.ppf(0.975, 7) * errors], axis=1)
    assert np.array(found) == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_means_of_six_criteria_that_miss_a_half_are_halves():
    """Judge and people give the same sum over six criteria, in other orders; float sums of sixths miss some halves."""
    rng, share = np.random.default_rng(4), np.full(6, 1 / 6)
    people = np.array([row for row in rng.integers(1, 6, (4000, 6)) if row.sum() % 6 == 3][:60])
    judge, given = rng.permuted(people, axis=1) @ share, people @ share
    assert (judge != given).any()
    assert mt.judge_against_humans(judge, given, np.arange(60) % 6).kappa.estimate == 1.0
    cells = np.stack([judge, given], axis=1)
    found = mt.cell_agreement(cells, np.arange(60) % 6, cells, np.arange(60) % 6, ["north", "south"])
    assert found.pooled_kappa == 1.0


def test_rates_at_the_pass_mark():
    judge, people, cluster = graded(1)
    found = mt.judge_against_humans(judge, people, cluster, pass_mark=3.0)
    good = people >= 3
    rates = ((found.tpr, judge >= 3, good), (found.tnr, judge < 3, ~good))
    for rate, passed, among in rates:
        hits, n = int((passed & among).sum()), int(among.sum())
        assert rate == (hits, n, *mt.wilson(hits, n))
    assert mt.judge_against_humans(judge, people, cluster, pass_mark=6).tpr == (0, 0, None, None)
    # A mean of thirds that is the mark up to float noise passes.
    assert mt.judge_against_humans([0.1 + 0.2], [0.3], ["a"], pass_mark=0.3 + 1e-12).tpr[:2] == (1, 1)


def test_bias_by_agent_family():
    judge, people, cluster = graded(2)
    family = np.where(np.arange(judge.size) % 3 == 0, "north", "south")
    before = mt.judge_against_humans(judge, people, cluster, agent_family=family).bias_by_family
    judge = judge + 0.5 * (family == "north")
    found = mt.judge_against_humans(judge, people, cluster, agent_family=family)
    own = family == "north"
    alone = mt.judge_against_humans(judge[own], people[own], cluster[own]).bias
    assert found.bias_by_family == {"north": alone, "south": before["south"]}
    assert alone.estimate == pytest.approx(before["north"].estimate + 0.5)
    means = (judge - people)[own].reshape(8, 2).mean(axis=1)
    assert alone.p == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert mt.judge_against_humans(judge, people, cluster).bias_by_family is None
    found = mt.judge_against_humans([4, 3, 2, 3], [3, 3, 2, 2], [0, 0, 1, 1], agent_family=["x", "y", "y", "y"])
    assert found.bias_by_family["x"].state == "undefined: one cluster, needs two"
    assert (found.bias_by_family["x"].estimate, found.bias_by_family["y"].df) == (1.0, 1)


def test_a_planted_bias_is_covered_and_constant_raters_have_no_agreement():
    found = [mt.judge_against_humans(*graded(seed, bias=0.3)).bias for seed in range(200)]
    middle = np.mean([one.estimate for one in found])
    assert middle == pytest.approx(0.29, abs=0.03)  # the ends of the scale take a little
    assert np.mean([one.low <= middle <= one.high for one in found]) > 0.9
    # Constant raters and single clusters have no agreement.
    same = mt.judge_against_humans([3, 3, 4, 4], [3, 3, 3, 3], [0, 0, 1, 1])
    assert (same.kappa, same.kappa.estimate, same.kappa.state) == (same.icc_a1, None, "undefined: a rater is constant")
    assert same.bias.state == "ok"
    one = mt.judge_against_humans([3, 2, 4, 5], [3, 3, 4, 4], ["w"] * 4)
    assert (one.kappa.estimate, one.kappa.state, one.bias.estimate) == (None, "undefined: one cluster, needs two", 0.0)
    left = mt.judge_against_humans([3, 3, 4, 5], [3, 3, 4, 4], [0, 0, 1, 1])
    assert left.kappa.state == "undefined: a rater is constant (without one of the clusters)"
    rounded = mt.judge_against_humans([2.6, 3.4, 2.7, 3.3], [3, 2, 4, 3], [0, 0, 1, 1])
    assert (rounded.kappa.estimate is None, rounded.icc_a1.estimate is None) == (True, False)
    # Two people give the ceiling.
    _, people, cluster = graded(3)
    perfect = mt.judge_against_humans(people, people, cluster)
    assert (perfect.kappa.estimate, perfect.icc_a1.estimate, perfect.bias.p) == pytest.approx((1, 1, 1.0))


def test_a_common_shift_changes_no_agreement():
    judge, people, cluster = graded(4)
    near, far = (mt.judge_against_humans(judge + by, people + by, cluster) for by in (0, 1e6))
    assert (far.icc_a1.estimate, far.kappa.se) == pytest.approx((near.icc_a1.estimate, near.kappa.se), abs=1e-9)
    # Neighbours are left out together where clusters follow each other.
    judge, people, cluster = graded(5)
    found = mt.judge_against_humans(judge, people, cluster, consecutive=True)
    assert found == mt.judge_against_humans(judge, people, mt.neighbour_blocks(8)[cluster])
    assert replace(found, tpr=None) != replace(mt.judge_against_humans(judge, people, cluster), tpr=None)
