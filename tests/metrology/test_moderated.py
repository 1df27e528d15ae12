"""The moderated cluster t: against a plain loop, Student's test where they must agree, and by simulation."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import median

import numpy as np
import pytest
import statsmodels.stats.weightstats as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import (
    holm,
    moderated_contrasts,
    publish_orders,
    self_preference,
    table_contrasts,
    trigamma_inverse,
)

NAN = math.nan


def by_hand(table: np.ndarray) -> dict[tuple[int, int], tuple[float, float, float]]:
    """(p, df, se) of every pair, written pair by pair with loops."""
    agents = table.shape[1]
    gaps = {}
    for i, j in combinations(range(agents), 2):
        d = [a - b for a, b in zip(table[:, i], table[:, j], strict=True) if not math.isnan(a - b)]
        if len(d) >= 3:
            gaps[i, j] = np.array(d)
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
    expected, found = by_hand(table), table_contrasts(table)
    for k, pair in enumerate(combinations(range(agents), 2)):
        if pair in expected:
            assert (found.p[k], found.df[k], found.se[k]) == pytest.approx(expected[pair], rel=1e-7)
        else:
            assert found.p[k] == 1
            assert not found.tested[k]
            assert np.isnan([found.df[k], found.se[k], found.prior_df[k]]).all()


@pytest.mark.parametrize(("clusters", "agents"), [(12, 2), (3, 2), (3, 8)])
def test_two_agents_or_three_clusters_borrow_nothing(clusters, agents):
    table = np.random.default_rng(3).normal(3, 1, (clusters, agents))
    found = table_contrasts(table)
    expected = [stats.ttest_rel(table[:, i], table[:, j]).pvalue for i, j in combinations(range(agents), 2)]
    assert found.p == pytest.approx(expected, abs=1e-12)
    assert (found.prior_df == 0).all()


def test_without_borrowing_it_is_students_test():
    table = np.random.default_rng(4).normal(3, 1, (9, 5))
    found = table_contrasts(table, borrow=False)
    expected = [stats.ttest_rel(table[:, i], table[:, j]).pvalue for i, j in combinations(range(5), 2)]
    assert found.p == pytest.approx(expected, abs=1e-12)
    assert (found.epsilon, float(found.prior_df_estimate)) == (None, 0.0)


@given(st.integers(0, 2**32), st.integers(4, 60))
def test_a_variance_is_never_taken_below_its_own_and_what_is_lent_fades(seed, clusters):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, rng.uniform(0.1, 2, 6), (clusters, 6))
    gaps = table[:, np.triu_indices(6, 1)[0]] - table[:, np.triu_indices(6, 1)[1]]
    found = table_contrasts(table)
    assert (found.se >= gaps.std(axis=0, ddof=1) / math.sqrt(clusters) - 1e-12).all()
    assert (found.prior_df <= 3.5 * (clusters - 1) * min(1, (5 / (clusters - 1)) ** 2) / 2 + 1e-12).all()
    assert (found.prior_df >= 0).all()


def test_clones_gain_nothing_from_the_others():
    rng = np.random.default_rng(6)
    table = rng.normal(3, 0.5, (6, 5))
    table[:, 1] = table[:, 0] + rng.normal(0.01, 0.001, 6)
    found, plain = table_contrasts(table), table_contrasts(table, borrow=False)
    assert found.se[0] >= plain.se[0]
    assert (found.prior_df_estimate < 3).all()


@given(st.integers(0, 2**32), st.permutations(range(5)))
def test_names_of_agents_and_levels_of_clusters_do_not_matter(seed, order):
    rng = np.random.default_rng(seed)
    table = rng.normal(3, rng.uniform(0.2, 1, 5), (7, 5))
    first, second = np.triu_indices(5, 1)
    one, other = table_contrasts(table), table_contrasts(2 * table[:, list(order)] + rng.normal(0, 1, (7, 1)))
    place = {pair: k for k, pair in enumerate(zip(first.tolist(), second.tolist(), strict=True))}
    mapped = [place[tuple(sorted((order[i], order[j])))] for i, j in zip(first, second, strict=True)]
    assert other.p == pytest.approx(one.p[mapped], rel=1e-6)
    assert other.se == pytest.approx(2 * one.se[mapped], rel=1e-6)


def test_many_studies_at_once_are_each_alone():
    rng = np.random.default_rng(7)
    studies = rng.normal(3, 0.3, (3, 5, 6, 4))
    studies[1, 2, :, 1] = studies[1, 2, :, 0] - 0.5  # a pair that does not vary
    studies[2, 4] = 3.0  # nothing does
    found = table_contrasts(studies)
    for at in np.ndindex(3, 5):
        alone = table_contrasts(studies[at])
        for name in ("gap", "p", "df", "se", "prior_df", "mean_variance", "prior_df_estimate"):
            value = getattr(found, name)[at]
            assert value == pytest.approx(getattr(alone, name), rel=1e-12, nan_ok=True), name
        assert found.epsilon[0][at] == pytest.approx(alone.epsilon[0])
        assert found.epsilon[1][at] == pytest.approx(alone.epsilon[1])
    # It works on sums of any contrast.
    rng = np.random.default_rng(8)
    table = rng.normal(3, 0.4, (8, 4))
    first, second = np.triu_indices(4, 1)
    gaps = table[:, first] - table[:, second]
    effects = table - table.mean(axis=1, keepdims=True)  # a fit gives effects, not levels
    found = moderated_contrasts(gaps.mean(axis=0), gaps.var(axis=0, ddof=1), [8] * 6, effects)
    assert found.p == pytest.approx(table_contrasts(table).p, abs=1e-13)
    # Without effects nothing is borrowed.
    found = moderated_contrasts([0.3, 0.1, -0.2], [0.1, 0.2, 0.05], [5, 5, 5], None)
    assert found.p == pytest.approx(2 * stats.t.sf(np.abs([0.3, 0.1, -0.2]) / np.sqrt([0.02, 0.04, 0.01]), 4))
    assert found.epsilon is None
    # A pair without a contrast leaves its agents out of the comparison of variances.
    rng = np.random.default_rng(9)
    table = rng.normal(3, 0.4, (8, 4))
    table[2:, 3] = NAN
    found, without = table_contrasts(table), table_contrasts(table[:, :3])
    assert found.p[[0, 1, 3]] == pytest.approx(without.p)
    assert found.clusters.tolist() == [8, 8, 2, 8, 2, 2]
    assert found.p[[2, 4, 5]].tolist() == [1, 1, 1]
    assert found.gap[2] == pytest.approx((table[:2, 0] - table[:2, 3]).mean())


def test_where_nothing_varies_the_sign_speaks():
    table = np.arange(1, 6)[:, None] * 0.1 + [0.3, 0.1, 0.1]
    found = table_contrasts(table)
    assert found.p.tolist() == [1 / 16, 1 / 16, 1]
    assert found.se.tolist() == [0, 0, 0]
    assert np.isnan(found.df).all()
    assert found.gap[2] == 0
    assert [float(one) for one in found.epsilon] == [1.0, 1.0]
    # A pair that does not vary may borrow.
    table = np.random.default_rng(5).normal(3, 0.3, (6, 4))
    table[:, 1] = table[:, 0] - 0.2
    found = table_contrasts(table)
    assert found.prior_df[0] > 0
    assert found.se[0] > 0
    assert found.df[0] == pytest.approx(5 + found.prior_df[0])
    # Nothing to compare.
    assert table_contrasts([[3.0], [4.0]]).p.shape == (0,)
    assert table_contrasts([[3.0, 4.0]]).p.tolist() == [1.0]
    apart = table_contrasts([[3.0, NAN], [NAN, 4.0], [3.0, None], [None, 4.0]])
    assert (apart.p.tolist(), apart.clusters.tolist(), float(apart.mean_variance)) == ([1.0], [0], 0.0)
    assert np.isnan(apart.gap).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 0.2], [1, 1], [5, 5], None), "one entry for each"),
        (([0.1] * 3, [1] * 2, [5] * 3, None), "need one entry for each pair"),
        (([0.1] * 3, [1] * 3, [5.5] * 3, None), "whole numbers"),
        (([0.1, NAN, 0.1], [1] * 3, [5] * 3, None), "finite gap"),
        (([0.1] * 3, [1, -1, 1], [5] * 3, None), "finite variance"),
        (([0.1] * 3, [1] * 3, [5] * 3, np.zeros((5, 2))), r"clusters, 3\]"),
        ((np.zeros((2, 3)), np.ones((2, 3)), [5] * 3, np.full((2, 5, 3), NAN)), "complete tables"),
    ],
)
def test_it_says_what_is_wrong(arguments, message):
    with pytest.raises(InputError, match=message):
        moderated_contrasts(*arguments)


@pytest.mark.parametrize("tables", [[1.0, 2.0], np.zeros((0, 3)), [[1.0, math.inf]]])
def test_tables_must_be_tables(tables):
    with pytest.raises(InputError, match=r"\[\.\.\., clusters, agents\]"):
        table_contrasts(tables)


def test_many_studies_must_be_complete():
    with pytest.raises(InputError, match="complete tables"):
        table_contrasts(np.full((2, 5, 3), NAN))


@given(st.floats(1e-10, 1e10))
def test_trigamma_inverse_is_the_inverse(y):
    assert special.polygamma(1, trigamma_inverse(y)) == pytest.approx(y, rel=1e-11)


@pytest.mark.parametrize("y", [0.0, -1.0, math.inf, NAN])
def test_trigamma_has_no_such_value(y):
    with pytest.raises(InputError, match="positive and finite"):
        trigamma_inverse(y)


@pytest.mark.parametrize(("agents", "clusters"), [(3, 4), (4, 5), (8, 5), (8, 12)])
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_equal_agents_get_a_false_order_in_at_most_one_of_twenty_studies(agents, clusters, spread):
    rng = np.random.default_rng(agents * clusters)
    sd = np.ones(agents)
    sd[0] = spread  # an erratic agent
    found = table_contrasts(rng.normal(0, 1, (4000, clusters, agents)) * sd)
    false = publish_orders(found.gap, found.p, 0.05).published.any(axis=1).mean()
    assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)


def test_a_true_leader_among_eight_agents_in_five_clusters_is_found_where_holm_finds_none():
    rng = np.random.default_rng(11)
    studies = rng.normal(0, 0.25, (500, 5, 8))
    studies[:, :, 0] += 0.8
    found = table_contrasts(studies)
    leads = (publish_orders(found.gap, found.p, 0.05).first == 0).mean()
    plain = table_contrasts(studies, borrow=False)
    holm_leads = np.mean([(holm(p)[:7] <= 0.05).all() for p in plain.p])
    assert leads > 0.7
    assert holm_leads < 0.1


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
    found = self_preference(scores, AGENTS, FAMILIES)
    for j, family in enumerate(FAMILIES):
        above = [row[j] - median(row) for row in scores.tolist()]
        own = [value for value, other in zip(above, AGENTS, strict=True) if other == family]
        others = [value for value, other in zip(above, AGENTS, strict=True) if other != family]
        assert found[j].judge == family
        assert found[j].own == pytest.approx(np.mean(own), abs=1e-9)
        assert found[j].others == pytest.approx(np.mean(others), abs=1e-9)
        assert found[j].gap == pytest.approx(np.mean(own) - np.mean(others), abs=1e-9)
        assert (found[j].n_own, found[j].n_others) == (len(own), len(others))


def test_over_clusters_the_interval_is_that_of_their_gaps():
    """With as many agents of each side in every cluster: Student's t of the clusters' gaps."""
    rng = np.random.default_rng(4)
    scores = rng.normal(60, 5, (12, 3, 3))  # clusters, agents, judges
    scores[:, 0, 0] += 20
    families = ["own", "other", "other"]
    found = self_preference(scores.reshape(36, 3), families * 12, ["own", "b", "c"], clusters=np.arange(12).repeat(3))[
        0
    ]
    above = scores[..., 0] - np.median(scores, axis=2)
    gaps = above[:, 0] - above[:, 1:].mean(axis=1)
    low, high = sm.DescrStatsW(gaps).tconfint_mean()
    assert (found.gap, found.low, found.high) == tuple(pytest.approx(value) for value in (gaps.mean(), low, high))
    assert (found.n_own, found.n_others, found.state) == (12, 24, "ok")
    assert found.low > 0
    blocks = self_preference(
        scores.reshape(36, 3), families * 12, ["own", "b", "c"], clusters=np.arange(12).repeat(3), consecutive=True
    )[0]
    assert "blocks of neighbouring clusters" in blocks.method
    assert blocks.gap == found.gap


def test_one_cluster_is_a_single_observation():
    scores = [[80, 70, 71], [60, 61, 59]]
    found = self_preference(scores, ["own", "other"], ["own", "b", "c"], clusters=["w1", "w1"])
    assert (found[0].low, found[0].state) == (None, "single observation")
    assert found[1].state == "no agent of its family"


@given(tables, st.sampled_from([0.5, 0.9, 0.95]))
def test_the_interval_is_the_wider_of_two_known_ones(scores, level):
    found = self_preference(scores, AGENTS, FAMILIES, level=level)
    for j, one in enumerate(found):
        above = scores[:, j] - np.median(scores, axis=1)
        own = np.array([family == FAMILIES[j] for family in AGENTS])
        if own.sum() == 1:
            assert (one.state, one.low, one.high) == ("single observation", None, None)
            continue
        if one.state == "no spread":
            assert np.ptp(above[own]) == pytest.approx(0, abs=1e-6)
            assert np.ptp(above[~own]) == pytest.approx(0, abs=1e-6)
            continue
        means = sm.CompareMeans(sm.DescrStatsW(above[own]), sm.DescrStatsW(above[~own]))
        ends = [means.tconfint_diff(alpha=1 - level, usevar=kind) for kind in ("pooled", "unequal")]
        low, high = max(ends, key=lambda pair: pair[1] - pair[0])
        assert one.state == "ok"
        assert (one.low, one.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)


@given(tables, st.permutations(range(3)), st.permutations(range(len(AGENTS))))
def test_order_and_names_change_nothing(scores, judges, agents):
    before = self_preference(scores, AGENTS, FAMILIES)
    names = {"north": "c", "south": "b", "west": "a", "lone": "d"}
    after = self_preference(
        scores[np.ix_(agents, judges)], [names[AGENTS[k]] for k in agents], [names[FAMILIES[k]] for k in judges],
        judges=[FAMILIES[k] for k in judges],
    )  # fmt: skip
    for place, j in enumerate(judges):
        one, other = before[j], after[place]
        assert (one.judge, one.n_own, one.n_others, one.state) == (
            other.judge, other.n_own, other.n_others, other.state,
        )  # fmt: skip
        for part in ("own", "others", "gap", "low", "high"):
            assert getattr(one, part) == (
                None if getattr(other, part) is None else pytest.approx(getattr(other, part), abs=1e-6)
            )


@given(tables, st.floats(-50, 50))
def test_a_better_agent_is_no_preference(scores, shift):
    lifted = scores + np.linspace(0, shift, len(AGENTS))[:, None]
    for one, other in zip(
        self_preference(scores, AGENTS, FAMILIES), self_preference(lifted, AGENTS, FAMILIES), strict=True
    ):
        assert one.gap == pytest.approx(other.gap, abs=1e-6)


@pytest.mark.parametrize(("preference", "hidden"), [(0.0, 0.0), (40.0, 6 / math.sqrt(math.pi))])
def test_a_planted_preference_is_recovered_less_what_the_median_hides(preference, hidden):
    """The larger of two noises of 6 is on average 6 / sqrt(pi) above 0: that much of the addition is in the median."""
    found, *others = self_preference(*planted(np.random.default_rng(3), preference, 4000, 4000, levels=0.0))
    assert found.gap == pytest.approx(preference - hidden, abs=0.4)
    assert found.low < preference - hidden < found.high
    assert found.high - found.low < 1
    assert all(other.state == "no agent of its family" for other in others)


def test_of_two_judges_half_of_a_preference_shows():
    found, _ = self_preference(*planted(np.random.default_rng(4), 10.0, 4000, 4000, judges=2))
    assert found.gap == pytest.approx(5.0, abs=0.4)


@pytest.mark.parametrize(("own", "others"), [(2, 3), (2, 18), (5, 15)])
@pytest.mark.parametrize("preference", [0.0, 15.0])
def test_the_interval_covers_what_was_planted(own, others, preference):
    rng = np.random.default_rng(own * 100 + others)
    every = [self_preference(*planted(rng, preference, own, others))[0] for _ in range(600)]
    truth = np.mean([self_preference(*planted(rng, preference, 300, 300))[0].gap for _ in range(60)])
    # Of few agents all may lie on the median: no interval, and nothing is claimed.
    ends = [(one.low, one.high) for one in every if one.state == "ok"]
    assert len(ends) > 0.95 * len(every)
    covered = np.mean([low <= truth <= high for low, high in ends])
    assert covered >= 0.92  # of 600 at 0.95, a share below this has a chance under one in a thousand


def test_a_preference_is_found_with_enough_agents_and_a_fair_judge_is_left_alone():
    rng = np.random.default_rng(11)
    found = [self_preference(*planted(rng, 30.0, 5, 15))[0].low > 0 for _ in range(100)]
    fair = [self_preference(*planted(rng, 0.0, 5, 15))[0] for _ in range(400)]
    assert np.mean(found) > 0.95
    assert np.mean([one.low > 0 or one.high < 0 for one in fair]) < 0.06
    # One agent of the family is a single observation however large the gap.
    (found, *_) = self_preference([[90, 50, 50], [50, 50, 50], [40, 45, 50]], ["a", "b", "c"], ["a", "b", "c"])
    assert (found.gap, found.state, found.low, found.high) == (42.5, "single observation", None, None)
    assert str(found) == "a: +42.5 (single observation), 1 of its family against 2"
    # One agent of other families leaves students interval.
    (found, _) = self_preference([[60, 50], [58, 50], [50, 50]], ["a", "a", "b"], ["a", "c"])
    assert found.state == "ok"
    # Distances 5 and 4 against 0: pooled variance 0.5 with one degree of freedom, whose 0.975 quantile is 12.706.
    half = 12.7062 * math.sqrt(0.5 * 1.5)
    assert (found.low, found.high) == pytest.approx((4.5 - half, 4.5 + half), abs=1e-3)


def test_what_is_missing_has_a_name():
    scores = [[60, 50, 55], [58, 50, 52], [50, 50, 51]]
    found = self_preference(scores, ["a", "a", "a"], ["a", "b", "c"])
    assert [one.state for one in found] == [
        "no agent of another family", "no agent of its family", "no agent of its family",
    ]  # fmt: skip
    assert [(one.gap, one.low, one.high) for one in found] == [(None, None, None)] * 3
    assert (found[0].others, found[1].own) == (None, None)
    assert str(found[1]) == "b: no agent of its family"
    flat = self_preference([[50, 50, 50]] * 4, ["a", "a", "b", "b"], ["a", "b", "c"])
    assert [one.state for one in flat] == ["no spread", "no spread", "no agent of its family"]
    assert flat[0].gap == 0
    # Judges of one family can be named.
    found = self_preference(scores, ["a", "b", "c"], ["a", "a", "b"], judges=["one", "two", "three"])
    assert [one.judge for one in found] == ["one", "two", "three"]
    assert [one.judge for one in self_preference(scores, ["a", "b", "c"], ["a", "a", "b"])] == ["a", "a", "b"]


@given(tables)
def test_more_judges_who_agree_leave_a_favourite_standing_out(scores):
    """With a panel that is not swayed, the whole addition shows."""
    assume(np.ptp(scores) > 0)
    calm = np.repeat(scores[:, :1], 5, axis=1)
    swayed = calm.copy()
    swayed[:2, 0] += 12
    (found, *_) = self_preference(swayed, AGENTS, ["north", *"vwxy"])
    assert found.gap == pytest.approx(12)


def test_a_panel_of_one_is_its_own_median():
    with pytest.raises(NotMeasurableError, match="one judge, needs two"):
        self_preference([[1.0], [2.0]], ["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("scores", "agents", "judges", "parts", "says"),
    [
        ([[1, 2], [3, math.nan]], "ab", "ab", {}, r"1 value\(s\) are not finite"), ([1, 2], "ab", "ab", {}, "two axes"),
        ([[1, 2], [3, 4]], "a", "ab", {}, r"one name for each of the 2 agents \(rows of scores\) \(got 1\)"),
        ([[1, 2], [3, 4]], "ab", "abc", {}, r"judge_families: .* 2 judges \(columns of scores\) \(got 3\)"),
        ([[1, 2], [3, 4]], [1, 2], "ab", {}, "agent_families: must be one name"),
        ([[1, 2], [3, 4]], "ab", "ab", {"judges": ["x"]}, "judges: must be one name"),
        ([[1, 2], [3, 4]], "ab", "ab", {"level": 1.0}, "level: must lie strictly between 0 and 1"),
    ],
)  # fmt: skip
def test_bad_input_is_told(scores, agents, judges, parts, says):
    with pytest.raises(InputError, match=says):
        self_preference(scores, list(agents), list(judges), **parts)
