"""The moderated cluster t: against a plain loop, Student's test where they must agree, and by simulation."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import combinations
from statistics import median

import numpy as np
import pytest
import statsmodels.stats.weightstats as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

NAN = math.nan


def by_hand(table: np.ndarray) -> dict[tuple[int, int], tuple[float, float, float]]:
    """(p, df, se) of every pair, written pair by pair with loops."""
    every = {(i, j): table[:, i] - table[:, j] for i, j in combinations(range(table.shape[1]), 2)}
    gaps = {pair: d[~np.isnan(d)] for pair, d in every.items() if (~np.isnan(d)).sum() >= 3}
    if not gaps:
        return {}
    variances = {pair: d.var(ddof=1) for pair, d in gaps.items()}
    mean = np.mean([*variances.values()])
    names = sorted({agent for pair in gaps for agent in pair})
    whole = [row for row in table[:, names].tolist() if not any(map(math.isnan, row))]
    h = f = 0.0
    k, g = len(names), len(whole)
    if k >= 3 and g >= 3:
        # Epsilon from the eigenvalues of the covariance of orthonormal contrasts.
        covariance = np.cov(np.array(whole).T)
        contrasts = np.linalg.svd(np.eye(k) - 1 / k)[0][:, : k - 1]
        eigenvalues = np.linalg.eigvalsh(contrasts.T @ covariance @ contrasts)
        low = eigenvalues.sum() ** 2 / ((k - 1) * np.square(eigenvalues).sum())
        left = g - 1 - (k - 1) * low
        high = (g * (k - 1) * low - 2) / ((k - 1) * left) if left > 1e-9 else 1.0
        h = max(0.0, min(1.0, max(low, high)) * (k - 1) - 1.5)
        logs, chance = [], []
        for pair, d in gaps.items():
            half = (d.size - 1) / 2
            logs.append(math.log(variances[pair]) - special.digamma(half) + math.log(half))
            chance.append(float(special.polygamma(1, half)))
        excess = np.var(logs, ddof=1) * (k + 1) / k - np.mean(chance) if len(logs) > 2 else None
        f = 0.0 if excess is None else math.inf
        if excess is not None and excess > 1e-12:
            ends = [1e-9, 1e13]
            for _ in range(400):
                middle = math.sqrt(ends[0] * ends[1])
                ends[int(special.polygamma(1, middle) < excess)] = middle
            f = 2 * ends[0]
    found = {}
    for pair, d in gaps.items():
        n, nu = d.size, d.size - 1
        lent = min(f, nu * h * min(1, (n - 3) / 2) * min(1, (5 / nu) ** 2) / 2)
        v = max(variances[pair], (lent * mean + nu * variances[pair]) / (lent + nu))
        se = math.sqrt(v / n)
        found[pair] = (2 * stats.t.sf(abs(d.mean()) / se, nu + lent), nu + lent, se)
    return found


@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(3, 24), st.floats(0, 0.4))
def test_it_is_what_a_plain_loop_gives(seed, agents, clusters, missing):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, rng.uniform(0.1, 1, agents), (clusters, agents)) + rng.normal(0, 1, (clusters, 1))
    table[rng.random(table.shape) < missing] = NAN
    expected, found = by_hand(table), mt.table_contrasts(table)
    for k, pair in enumerate(combinations(range(agents), 2)):
        if pair in expected:
            assert (found.p[k], found.df[k], found.se[k]) == pytest.approx(expected[pair], rel=1e-7)
        else:
            assert (found.p[k], found.tested[k]) == (1, False)
            assert np.isnan([found.df[k], found.se[k], found.prior_df[k]]).all()


def students(table):
    """The p-values of Student's paired test."""
    pairs = combinations(range(table.shape[1]), 2)
    return pytest.approx([stats.ttest_rel(table[:, i], table[:, j]).pvalue for i, j in pairs], abs=1e-12)


def test_without_borrowing_it_is_students_test():
    """Two agents and three clusters borrow nothing either."""
    for clusters, agents in ((12, 2), (3, 2), (3, 8)):
        table = np.random.default_rng(3).normal(3, 1, (clusters, agents))
        found = mt.table_contrasts(table)
        assert (found.p, found.prior_df.any()) == (students(table), False)
    table = np.random.default_rng(4).normal(3, 1, (9, 5))
    found = mt.table_contrasts(table, borrow=False)
    assert (found.p, found.epsilon, float(found.prior_df_estimate)) == (students(table), None, 0.0)
    # Without effects nothing is borrowed.
    found = mt.moderated_contrasts([0.3, 0.1, -0.2], [0.1, 0.2, 0.05], [5, 5, 5], None)
    assert found.p == pytest.approx(2 * stats.t.sf(np.abs([0.3, 0.1, -0.2]) / np.sqrt([0.02, 0.04, 0.01]), 4))
    assert found.epsilon is None


@given(st.integers(0, 2**32), st.integers(4, 60))
def test_a_variance_is_never_taken_below_its_own_and_what_is_lent_fades(seed, clusters):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, rng.uniform(0.1, 2, 6), (clusters, 6))
    gaps = table[:, np.triu_indices(6, 1)[0]] - table[:, np.triu_indices(6, 1)[1]]
    found = mt.table_contrasts(table)
    assert (found.se >= gaps.std(axis=0, ddof=1) / math.sqrt(clusters) - 1e-12).all()
    assert (found.prior_df <= 3.5 * (clusters - 1) * min(1, (5 / (clusters - 1)) ** 2) / 2 + 1e-12).all()
    assert (found.prior_df >= 0).all()


@given(st.integers(0, 2**32), st.permutations(range(5)))
def test_names_of_agents_and_levels_of_clusters_do_not_matter(seed, order):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, rng.uniform(0.2, 1, 5), (7, 5))
    pairs = list(combinations(range(5), 2))
    one, other = mt.table_contrasts(table), mt.table_contrasts(2 * table[:, list(order)] + rng.normal(0, 1, (7, 1)))
    mapped = [pairs.index(tuple(sorted((order[i], order[j])))) for i, j in pairs]
    assert (other.p, other.se) == (pytest.approx(one.p[mapped], rel=1e-6), pytest.approx(2 * one.se[mapped], rel=1e-6))


def test_many_studies_at_once_are_each_alone():
    rng = np.random.default_rng(7)
    studies = rng.normal(3, 0.3, (3, 5, 6, 4))
    studies[1, 2, :, 1] = studies[1, 2, :, 0] - 0.5  # a pair that does not vary
    studies[2, 4] = 3.0  # nothing does
    found = mt.table_contrasts(studies)
    for at in np.ndindex(3, 5):
        alone = mt.table_contrasts(studies[at])
        for name in ("gap", "p", "df", "se", "prior_df", "mean_variance", "prior_df_estimate"):
            assert getattr(found, name)[at] == pytest.approx(getattr(alone, name), rel=1e-12, nan_ok=True), name
        assert [one[at] for one in found.epsilon] == pytest.approx([float(one) for one in alone.epsilon])
    # It works on sums of any contrast.
    table = np.random.default_rng(8).normal(3, 0.4, (8, 4))
    first, second = np.triu_indices(4, 1)
    gaps = table[:, first] - table[:, second]
    effects = table - table.mean(axis=1, keepdims=True)  # a fit gives effects, not levels
    found = mt.moderated_contrasts(gaps.mean(axis=0), gaps.var(axis=0, ddof=1), [8] * 6, effects)
    assert found.p == pytest.approx(mt.table_contrasts(table).p, abs=1e-13)
    # A pair without a contrast leaves its agents out of the comparison of variances.
    table = np.random.default_rng(9).normal(3, 0.4, (8, 4))
    table[2:, 3] = NAN
    found, without = mt.table_contrasts(table), mt.table_contrasts(table[:, :3])
    assert (found.p[[0, 1, 3]], found.clusters.tolist()) == (pytest.approx(without.p), [8, 8, 2, 8, 2, 2])
    assert found.p[[2, 4, 5]].tolist() == [1, 1, 1]
    assert found.gap[2] == pytest.approx((table[:2, 0] - table[:2, 3]).mean())


def test_where_nothing_varies_the_sign_speaks():
    table = np.arange(1, 6)[:, None] * 0.1 + [0.3, 0.1, 0.1]
    found = mt.table_contrasts(table)
    assert (found.p.tolist(), found.se.tolist()) == ([1 / 16, 1 / 16, 1], [0, 0, 0])
    assert (np.isnan(found.df).all(), found.gap[2], [*map(float, found.epsilon)]) == (True, 0, [1.0, 1.0])
    # A pair that does not vary may borrow.
    table = np.random.default_rng(5).normal(3, 0.3, (6, 4))
    table[:, 1] = table[:, 0] - 0.2
    found = mt.table_contrasts(table)
    assert min(found.prior_df[0], found.se[0]) > 0
    assert found.df[0] == pytest.approx(5 + found.prior_df[0])
    # Clones gain nothing from the others.
    rng = np.random.default_rng(6)
    table = rng.normal(3, 0.5, (6, 5))
    table[:, 1] = table[:, 0] + rng.normal(0.01, 0.001, 6)
    found = mt.table_contrasts(table)
    assert found.se[0] >= mt.table_contrasts(table, borrow=False).se[0]
    assert (found.prior_df_estimate < 3).all()
    # Nothing to compare.
    assert (mt.table_contrasts([[3.0], [4.0]]).p.shape, mt.table_contrasts([[3.0, 4.0]]).p.tolist()) == ((0,), [1.0])
    apart = mt.table_contrasts([[3.0, NAN], [NAN, 4.0], [3.0, None], [None, 4.0]])
    assert (apart.p.tolist(), apart.clusters.tolist(), float(apart.mean_variance)) == ([1.0], [0], 0.0)
    assert np.isnan(apart.gap).all()


def test_it_says_what_is_wrong():
    gaps, ones, fives = [0.1] * 3, [1] * 3, [5] * 3
    for call, arguments, message in (
        (mt.moderated_contrasts, ([0.1, 0.2], [1, 1], [5, 5], None), "one entry for each"),
        (mt.moderated_contrasts, (gaps, [1] * 2, fives, None), "need one entry for each pair"),
        (mt.moderated_contrasts, (gaps, ones, [5.5] * 3, None), "whole numbers"),
        (mt.moderated_contrasts, ([0.1, NAN, 0.1], ones, fives, None), "finite gap"),
        (mt.moderated_contrasts, (gaps, [1, -1, 1], fives, None), "finite variance"),
        (mt.moderated_contrasts, (gaps, ones, fives, np.zeros((5, 2))), r"clusters, 3\]"),
        (mt.moderated_contrasts, (np.zeros((2, 3)), np.ones((2, 3)), fives, np.full((2, 5, 3), NAN)),
         "complete tables"),
        *((mt.table_contrasts, (tables,), r"\[\.\.\., clusters, agents\]") for tables in (
            [1.0, 2.0], np.zeros((0, 3)), [[1.0, math.inf]])),
        (mt.table_contrasts, (np.full((2, 5, 3), NAN),), "complete tables"),
        *((mt.trigamma_inverse, (none,), "positive and finite") for none in (0.0, -1.0, math.inf, NAN)),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call(*arguments)


@given(st.floats(1e-10, 1e10))
def test_trigamma_inverse_is_the_inverse(y):
    assert special.polygamma(1, mt.trigamma_inverse(y)) == pytest.approx(y, rel=1e-11)


@pytest.mark.parametrize(("agents", "clusters"), [(3, 4), (4, 5), (8, 5), (8, 12)])
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_equal_agents_get_a_false_order_in_at_most_one_of_twenty_studies(agents, clusters, spread):
    rng = np.random.default_rng(agents * clusters)
    sd = np.array([spread, *[1.0] * (agents - 1)])  # an erratic agent
    found = mt.table_contrasts(rng.normal(0, 1, (4000, clusters, agents)) * sd)
    false = mt.publish_orders(found.gap, found.p, 0.05).published.any(axis=1).mean()
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)


def test_a_true_leader_among_eight_agents_in_five_clusters_is_found_where_holm_finds_none():
    rng = np.random.default_rng(11)
    studies = rng.normal(0, 0.25, (500, 5, 8))
    studies[:, :, 0] += 0.8
    found = mt.table_contrasts(studies)
    leads = (mt.publish_orders(found.gap, found.p, 0.05).first == 0).mean()
    assert leads > 0.7
    plain = mt.table_contrasts(studies, borrow=False)
    assert np.mean([(mt.holm(p)[:7] <= 0.05).all() for p in plain.p]) < 0.1


# Self-preference: planted gaps, the coverage of its interval, laws, and what it says when it has too little
FAMILIES = ("north", "south", "west")
AGENTS = ("north", "north", "south", "south", "south", "west", "lone", "lone")

tables = arrays(np.float64, (len(AGENTS), 3), elements=st.floats(0, 100).map(lambda x: round(x, 1)))


def planted(rng, preference, own, others, judges=3, levels=4.0):
    """Scores [A, J]: qualities, the judges' levels, noise of 6, and what the first judge adds for its family."""
    scores = rng.normal(60, 8, (own + others, 1)) + rng.normal(0, levels, judges)
    scores = scores + rng.normal(0, 6, (own + others, judges))
    scores[:own, 0] += preference
    return scores, ["own"] * own + ["other"] * others, ["own", *(f"j{k}" for k in range(1, judges))]


@given(tables)
def test_the_gap_is_its_definition(scores):
    found = mt.self_preference(scores, AGENTS, FAMILIES)
    for j, family in enumerate(FAMILIES):
        above = [row[j] - median(row) for row in scores.tolist()]
        own = [value for value, other in zip(above, AGENTS, strict=True) if other == family]
        others = [value for value, other in zip(above, AGENTS, strict=True) if other != family]
        one, values = found[j], (np.mean(own), np.mean(others), np.mean(own) - np.mean(others))
        assert (one.judge, one.n_own, one.n_others) == (family, len(own), len(others))
        assert (one.own, one.others, one.gap) == pytest.approx(values, abs=1e-9)


def test_over_clusters_the_interval_is_that_of_their_gaps():
    """With as many agents of each side in every cluster: Student's t of the clusters' gaps."""
    rng = np.random.default_rng(4)
    scores = rng.normal(60, 5, (12, 3, 3))  # clusters, agents, judges
    scores[:, 0, 0] += 20
    every = (scores.reshape(36, 3), ["own", "other", "other"] * 12, ["own", "b", "c"])
    found, blocks = (
        mt.self_preference(*every, clusters=np.arange(12).repeat(3), consecutive=after)[0] for after in (False, True)
    )
    above = scores[..., 0] - np.median(scores, axis=2)
    gaps = above[:, 0] - above[:, 1:].mean(axis=1)
    assert (found.gap, found.low, found.high) == pytest.approx((gaps.mean(), *sm.DescrStatsW(gaps).tconfint_mean()))
    assert (found.n_own, found.n_others, found.state, found.low > 0) == (12, 24, "ok", True)
    assert (blocks.gap, "blocks of neighbouring clusters" in blocks.method) == (found.gap, True)
    # One cluster is a single observation.
    scores = [[80, 70, 71], [60, 61, 59]]
    found = mt.self_preference(scores, ["own", "other"], ["own", "b", "c"], clusters=["w1", "w1"])
    assert (found[0].low, found[0].state, found[1].state) == (None, "single observation", "no agent of its family")


@given(tables, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_is_the_wider_of_two_known_ones(scores, level):
    found = mt.self_preference(scores, AGENTS, FAMILIES, level=level)
    for j, one in enumerate(found):
        above = scores[:, j] - np.median(scores, axis=1)
        own = np.array([family == FAMILIES[j] for family in AGENTS])
        if own.sum() == 1:
            assert (one.state, one.low, one.high) == ("single observation", None, None)
        elif one.state == "no spread":
            assert (np.ptp(above[own]), np.ptp(above[~own])) == pytest.approx((0, 0), abs=1e-6)
        else:
            means = sm.CompareMeans(sm.DescrStatsW(above[own]), sm.DescrStatsW(above[~own]))
            ends = [means.tconfint_diff(alpha=1 - level, usevar=kind) for kind in ("pooled", "unequal")]
            widest = max(ends, key=lambda pair: pair[1] - pair[0])
            assert (one.state, (one.low, one.high)) == ("ok", pytest.approx(widest, rel=1e-6, abs=1e-6))


@given(tables, st.permutations(range(3)), st.permutations(range(len(AGENTS))), st.floats(-50, 50))
def test_order_and_names_change_nothing_and_a_better_agent_is_no_preference(scores, judges, agents, shift):
    before = mt.self_preference(scores, AGENTS, FAMILIES)
    names = {"north": "c", "south": "b", "west": "a", "lone": "d"}
    after = mt.self_preference(
        scores[np.ix_(agents, judges)], [names[AGENTS[k]] for k in agents], [names[FAMILIES[k]] for k in judges],
        judges=[FAMILIES[k] for k in judges],
    )  # fmt: skip
    for other, j in zip(after, judges, strict=True):
        assert asdict(before[j]) == pytest.approx(asdict(other), abs=1e-6)
    lifted = mt.self_preference(scores + np.linspace(0, shift, len(AGENTS))[:, None], AGENTS, FAMILIES)
    assert [one.gap for one in before] == pytest.approx([one.gap for one in lifted], abs=1e-6)


@pytest.mark.parametrize(("preference", "hidden"), [(0.0, 0.0), (40.0, 6 / math.sqrt(math.pi))])
def test_a_planted_preference_is_recovered_less_what_the_median_hides(preference, hidden):
    """The larger of two noises of 6 is on average 6 / sqrt(pi) above 0: that much of the addition is in the median."""
    found, *others = mt.self_preference(*planted(np.random.default_rng(3), preference, 4000, 4000, levels=0.0))
    assert found.gap == pytest.approx(preference - hidden, abs=0.4)
    assert found.low < preference - hidden < found.high
    assert found.high - found.low < 1
    assert all(other.state == "no agent of its family" for other in others)
    # Of two judges half of a preference shows.
    found, _ = mt.self_preference(*planted(np.random.default_rng(4), 10.0, 4000, 4000, judges=2))
    assert found.gap == pytest.approx(5.0, abs=0.4)


@pytest.mark.parametrize(("own", "others"), [(2, 3), (2, 18), (5, 15)])
@pytest.mark.parametrize("preference", [0.0, 15.0])
def test_the_interval_covers_what_was_planted(own, others, preference):
    rng = np.random.default_rng(own * 100 + others)
    every = [mt.self_preference(*planted(rng, preference, own, others))[0] for _ in range(600)]
    truth = np.mean([mt.self_preference(*planted(rng, preference, 300, 300))[0].gap for _ in range(60)])
    # Of few agents all may lie on the median: no interval, and nothing is claimed.
    ends = [(one.low, one.high) for one in every if one.state == "ok"]
    assert len(ends) > 0.95 * len(every)
    covered = np.mean([low <= truth <= high for low, high in ends])
    assert covered >= 0.92  # of 600 at 0.95, a share below this has a chance under one in a thousand


def test_a_preference_is_found_with_enough_agents_and_a_fair_judge_is_left_alone():
    rng = np.random.default_rng(11)
    found = [mt.self_preference(*planted(rng, 30.0, 5, 15))[0].low > 0 for _ in range(100)]
    fair = [mt.self_preference(*planted(rng, 0.0, 5, 15))[0] for _ in range(400)]
    assert np.mean(found) > 0.95
    assert np.mean([one.low > 0 or one.high < 0 for one in fair]) < 0.06


def test_few_agents_and_what_is_missing_have_names():
    # One agent of the family is a single observation however large the gap.
    (found, *_) = mt.self_preference([[90, 50, 50], [50, 50, 50], [40, 45, 50]], ["a", "b", "c"], ["a", "b", "c"])
    assert (found.gap, found.state, found.low, found.high) == (42.5, "single observation", None, None)
    assert str(found) == "a: +42.5 (single observation), 1 of its family against 2"
    # One agent of other families leaves students interval.
    (found, _) = mt.self_preference([[60, 50], [58, 50], [50, 50]], ["a", "a", "b"], ["a", "c"])
    assert found.state == "ok"
    # Distances 5 and 4 against 0: pooled variance 0.5 with one degree of freedom, whose 0.975 quantile is 12.706.
    half = 12.7062 * math.sqrt(0.5 * 1.5)
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half), abs=1e-3)

    # What is missing has a name.
    scores = [[60, 50, 55], [58, 50, 52], [50, 50, 51]]
    found = mt.self_preference(scores, ["a", "a", "a"], ["a", "b", "c"])
    states = ["no agent of another family", "no agent of its family", "no agent of its family"]
    assert [(one.state, one.gap, one.low, one.high) for one in found] == [(state, None, None, None) for state in states]
    assert (found[0].others, found[1].own, str(found[1])) == (None, None, "b: no agent of its family")
    flat = mt.self_preference([[50, 50, 50]] * 4, ["a", "a", "b", "b"], ["a", "b", "c"])
    assert [one.state for one in flat] == ["no spread", "no spread", "no agent of its family"]
    assert flat[0].gap == 0
    # Judges of one family can be named.
    found = mt.self_preference(scores, ["a", "b", "c"], ["a", "a", "b"], judges=["one", "two", "three"])
    assert [one.judge for one in found] == ["one", "two", "three"]
    assert [one.judge for one in mt.self_preference(scores, ["a", "b", "c"], ["a", "a", "b"])] == ["a", "a", "b"]


@given(tables)
def test_more_judges_who_agree_leave_a_favourite_standing_out(scores):
    """With a panel that is not swayed, the whole addition shows."""
    assume(np.ptp(scores) > 0)
    calm = np.repeat(scores[:, :1], 5, axis=1)
    swayed = calm.copy()
    swayed[:2, 0] += 12
    (found, *_) = mt.self_preference(swayed, AGENTS, ["north", *"vwxy"])
    assert found.gap == pytest.approx(12)


def test_bad_input_is_told():
    two = [[1, 2], [3, 4]]
    for scores, agents, judges, parts, says in (
        ([[1, 2], [3, math.nan]], "ab", "ab", {}, r"1 value\(s\) are not finite"), ([1, 2], "ab", "ab", {}, "two axes"),
        (two, "a", "ab", {}, r"one name for each of the 2 agents \(rows of scores\) \(got 1\)"),
        (two, "ab", "abc", {}, r"judge_families: .* 2 judges \(columns of scores\) \(got 3\)"),
        (two, [1, 2], "ab", {}, "agent_families: must be one name"),
        ([[1.0], [2.0]], "ab", "a", {}, "one judge, needs two"),
        (two, "ab", "ab", {"judges": ["x"]}, "judges: must be one name"),
        (two, "ab", "ab", {"level": 1.0}, "level: must lie strictly between 0 and 1"),
    ):  # fmt: skip
        with pytest.raises((InputError, NotMeasurableError), match=says):
            mt.self_preference(scores, list(agents), list(judges), **parts)
