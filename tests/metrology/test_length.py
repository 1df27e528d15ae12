"""Length: slopes and contrasts against refitted regressions, planted slopes, causal slopes, and the words."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.length import adjusted_pairs

OWN = np.eye(3, 4, dtype=int)
CLUSTER = np.repeat(np.arange(6), 4)


def study(seed=0, *, clusters=6, cycles=4, judges=3, agents=4, slope=0.3, quality=0.0, longer=1.0, noise=0.3, gaps=0.0):
    """Scores [N, J, K] and log2 lengths [N, K]; the first agent is better by ``quality`` and writes ``longer``."""
    rng = np.random.default_rng(seed)
    n = clusters * cycles
    x = rng.normal(8, 0.5, (n, agents)) + longer * (np.arange(agents) == 0)
    level = 3 + quality * (np.arange(agents) == 0) + rng.normal(0, 0.1, (clusters, agents)).repeat(cycles, axis=0)
    severity = rng.normal(0, 0.3, (1, judges, 1))
    y = (level + slope * (x - 8))[:, None] + severity + rng.normal(0, noise, (n, judges, agents))
    return np.where(rng.random(y.shape) < gaps, np.nan, y), x, np.repeat(np.arange(clusters), cycles)


def usable(y, x):
    known = ~np.isnan(y) & ~np.isnan(x).any(axis=-1)
    return known & (known.sum(axis=1) > 1)[:, None]


def with_more(x, covariates):
    """The lengths with other covariates beside them."""
    return np.stack([x, *np.random.default_rng(9).normal(size=(covariates - 1, *x.shape))], axis=2)


def regression(y, x):
    """Slopes, and agent effects less the first agent's, of score = agent + cycle + slopes x, by statsmodels."""
    cycle, agent = np.nonzero(usable(y, x))
    cycles, agents = np.unique(cycle, return_inverse=True)[1], np.eye(y.shape[1])[agent][:, 1:]
    design = np.concatenate([np.eye(cycles.max() + 1)[cycles], agents, x[cycle, agent]], axis=1)
    params = sm.OLS(y[cycle, agent], design).fit().params
    width = x.shape[2]
    return params[-width:], np.concatenate([[0], params[-width - y.shape[1] + 1 : -width]])


def jackknife(full, without):
    g = len(without)
    return np.sqrt((g - 1) / g * ((np.array(without) - full) ** 2).sum(axis=0))


@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize("covariates", [1, 3])
def test_slopes_and_contrast_are_those_of_a_refitted_regression(gaps, covariates):
    y, x, cluster = study(3, gaps=gaps)
    x = with_more(x, covariates)
    panel = y[:, 0]
    slopes, agents = regression(panel, x)
    without = [regression(panel[cluster != g], x[cluster != g]) for g in range(6)]
    found = mt.length_adjusted(panel, x if covariates > 1 else x[:, :, 0], cluster, 2, 1)
    contrast = agents[2] - agents[1]
    se = jackknife(contrast, [w[1][2] - w[1][1] for w in without])
    assert (found.adjusted.estimate, found.adjusted.se) == pytest.approx((contrast, se), abs=1e-9)
    assert [one.estimate for one in found.slopes] == pytest.approx(slopes.tolist(), abs=1e-9)
    assert [one.se for one in found.slopes] == pytest.approx(jackknife(slopes, [w[0] for w in without]), abs=1e-9)
    both = usable(panel, x)[:, [1, 2]].all(axis=1)
    assert found.raw.estimate == pytest.approx((panel[both, 2] - panel[both, 1]).mean())
    assert found.gap == pytest.approx((x[both, 2] - x[both, 1]).mean(axis=0))


def recused(y, x, cluster, own, a, b):
    """The gating contrast from scratch: slopes by judge, means at equal length, recusal contrast."""
    slopes = np.stack([regression(y[:, j], x)[0] for j in range(y.shape[1])])
    adjusted = y - np.einsum("jq,nkq->njk", slopes, x)
    for j in range(y.shape[1]):
        adjusted[:, j][~usable(y[:, j], x)] = np.nan
    means = np.stack([np.nanmean(adjusted[cluster == g], axis=0) for g in np.unique(cluster)])
    return mt.recusal_contrast(means, own, a, b).estimate, slopes


@pytest.mark.parametrize(("gaps", "covariates"), [(0.0, 1), (0.1, 1), (0.1, 2)])
def test_the_gating_contrast_is_that_of_a_new_fit_without_each_cluster(gaps, covariates):
    y, x, cluster = study(1, gaps=gaps)
    x = with_more(x, covariates)
    for a, b in ((0, 1), (3, 0)):
        full, slopes = recused(y, x, cluster, OWN, a, b)
        without = [recused(y[cluster != g], x[cluster != g], cluster[cluster != g], OWN, a, b)[0] for g in range(6)]
        found = mt.length_recused(y, x, cluster, OWN, a, b)
        assert (found.estimate, found.se) == pytest.approx((full, jackknife(full, without)), abs=1e-9)
        np.testing.assert_allclose(found.slopes, slopes, atol=1e-9)
        assert found.p == pytest.approx(2 * stats.t.sf(abs(full / found.se), 5), abs=1e-9)


@pytest.mark.parametrize("agents", [3, 5])
def test_all_pairs_are_put_to_the_moderated_test(agents):
    y, x, cluster = study(2, agents=agents, gaps=0.05)
    own = np.eye(3, agents, dtype=int)
    pairs = list(combinations(range(agents), 2))
    records = [mt.length_recused(y, x, cluster, own, *pair) for pair in pairs]
    found, plain = (mt.length_p(y, x, cluster, own, borrow=borrow) for borrow in (True, False))
    for pair, record in zip(pairs, records, strict=True):
        assert (plain[pair].p, plain[pair].difference) == pytest.approx((record.p, record.estimate), abs=1e-9)
    adjusted = y - np.array(records[0].slopes)[None] * x[:, None]
    means = np.stack([np.nanmean(adjusted[cluster == g], axis=0) for g in range(6)])
    effects = [
        [0, *(mt.recusal_contrast(means[g : g + 1], own, k, 0).estimate for k in range(1, agents))] for g in range(6)
    ]
    gaps, variances = [r.estimate for r in records], [6 * r.se**2 for r in records]
    tested = mt.moderated_contrasts(gaps, variances, [6] * len(pairs), np.array(effects))
    for place, pair in enumerate(pairs):
        assert (found[pair].p, found[pair].df) == pytest.approx((tested.p[place], tested.df[place]), abs=1e-8)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_what_an_agent_always_writes_more_is_no_slope(seed):
    """A constant added to an agent's lengths moves its contrast by slope times constant, and no slope."""
    y, x, cluster = study(seed % 500)
    before, after = (
        mt.length_adjusted(y[:, 0], lengths, cluster, 0, 1) for lengths in (x, x + np.array([2.0, 0, 0, 0]))
    )
    slope = before.slopes[0].estimate
    moved = (slope, before.adjusted.estimate - 2 * slope, before.gap[0] + 2)
    assert (after.slopes[0].estimate, after.adjusted.estimate, after.gap[0]) == pytest.approx(moved, abs=1e-9)
    # Scores that rise with length by any slope per judge have the contrasts of the scores without it.
    slopes = np.random.default_rng(seed).normal(0, 1, (1, 3, 1))
    before, after = (mt.length_p(scores, x, cluster, OWN) for scores in (y, y + slopes * x[:, None]))
    for pair, one in before.items():
        assert (after[pair].difference, after[pair].p) == pytest.approx((one.difference, one.p), abs=1e-8)


def test_the_slope_of_one_judge_beside_the_others_is_recovered():
    """A judge that gives 0.2 points more for twice the length, over what all give: found, with an interval that covers
    it as often as it says."""
    covered = np.zeros(3)
    for seed in range(150):
        y, x, cluster = study(seed, clusters=20, slope=0.3, noise=0.5)
        y[:, 0] += 0.2 * x
        found = mt.judge_slopes(y.transpose(0, 2, 1), x[..., None], cluster)
        covered += [one.low < real < one.high for one, real in zip(found, (0.2, -0.1, -0.1), strict=True)]
    assert found[0].estimate == pytest.approx(0.2, abs=0.1)
    assert ((covered > 0.9 * 150) & (covered < 0.99 * 150 + 1)).all()
    # The slope of a judge is that of a regression of its excess.
    y, x, cluster = study(3, clusters=8, gaps=0.0)
    for judge, one in enumerate(mt.judge_slopes(y.transpose(0, 2, 1), x[..., None], cluster)):
        excess = y[:, judge] - np.delete(y, judge, axis=1).mean(axis=1)
        parts = [cluster == cluster, *(cluster != g for g in range(8))]
        slope, *without = (regression(excess[keep], x[keep][..., None])[0][0] for keep in parts)
        half = stats.t.ppf(0.975, 7) * jackknife(slope, without)
        assert (one.estimate, (one.high - one.low) / 2) == pytest.approx((slope, half))
    # Texts of one length have no slope by judge.
    cells, same = y.transpose(0, 2, 1), np.full((*y[:, 0].shape, 1), 7.0)
    flat = "texts of one agent on one question do not differ in length from others"
    for groups, state in ((cluster, flat), (0 * cluster, "too few clusters")):
        assert {one.state for one in mt.judge_slopes(cells, same, groups)} == {state}


def test_a_slope_on_length_is_taken_out_and_quality_stays():
    y, x, cluster = study(5, clusters=20, slope=0.4, quality=0.0)
    assert mt.length_adjusted(y.mean(axis=1), x, cluster, 0, 1).raw.p < 1e-6
    found = mt.length_recused(y, x, cluster, OWN, 0, 1)
    assert found.low < 0 < found.high
    y, x, cluster = study(5, clusters=20, slope=0.4, quality=0.5)
    assert mt.length_recused(y, x, cluster, OWN, 0, 1).estimate == pytest.approx(0.5, abs=0.15)
    assert mt.length_p(y, x, cluster, OWN)[0, 1].p < 0.001
    # A length slope makes few false orders.
    rejected = []
    for seed in range(200):
        y, x, cluster = study(seed, clusters=8, slope=0.4)
        rejected.append(mt.length_p(y + 0.5 * OWN, x, cluster, OWN)[0, 3].p <= 0.05)
    assert np.mean(rejected) < 0.08


@pytest.mark.parametrize("same", ["agent", "all"])
def test_a_length_that_never_varies_has_no_slope(same):
    y, x, cluster = study(4)
    x = np.broadcast_to([9.0, 8.0, 8.01, 8.0] if same == "agent" else [8.0] * 4, x.shape)
    found = mt.length_adjusted(y[:, 0], x, cluster, 0, 1)
    assert (found.slopes[0].estimate, found.slopes[0].p) == (0, 1)
    assert found.adjusted.estimate == pytest.approx(found.raw.estimate)
    tests = mt.length_p(y, x, cluster, OWN)
    assert [test.p == 1.0 for test in tests.values()] == [same == "agent" and 0 in pair for pair in tests]
    if same == "agent":
        word = mt.length_rule(found.raw, {"estimate": 0.4, "p_up": 1e-5}, found.slopes[0], found.gap[0])
        assert word == "may be length"
    # Lengths that vary in one cluster only are no reason to fail.
    y, x, cluster = study(4)
    found = mt.length_recused(y, np.where((cluster == 0)[:, None], x, 8.0), cluster, OWN, 0, 1)
    assert np.isfinite([found.estimate, found.se]).all()


def test_causal_slopes_take_the_place_of_fitted_ones():
    y, x, cluster = study(6)
    causal = [(0.2, 0.05, 30), (0.1, 0.02, 3), (0.0, 0.01, 30)]
    slopes = np.array([one[0] for one in causal])
    means, at_equal = (
        np.stack([scores[cluster == g].mean(axis=0) for g in range(6)])
        for scores in (y, y - slopes[:, None] * x[:, None])
    )
    plain = mt.recusal_contrast(means, OWN, 0, 1)
    found = mt.length_recused(y, x, cluster, OWN, 0, 1, causal=causal)
    assert found.estimate == pytest.approx(mt.recusal_contrast(at_equal, OWN, 0, 1).estimate, abs=1e-9)
    # The weight of a judge's mean lengths: what the contrast of lengths is when the others write none.
    lengths = np.stack([x[cluster == g].mean(axis=0) for g in range(6)]).mean(axis=0)
    alone = [np.where(np.arange(3)[:, None] == j, lengths, 0)[None] for j in range(3)]
    weights = [mt.recusal_contrast(one, OWN, 0, 1).estimate for one in alone]
    se = np.sqrt(plain.se**2 + sum((w * one[1]) ** 2 for w, one in zip(weights, causal, strict=True)))
    assert (found.se, found.df) == (pytest.approx(se, abs=1e-9), 3)
    tests, bare = mt.length_p(y, x, cluster, OWN, causal=causal), mt.recusal_p(means, OWN)
    assert (tests[0, 1].difference, tests[0, 1].df) == (pytest.approx(found.estimate), 3)
    assert tests[0, 1].se > bare[0, 1].se
    exact = mt.length_p(y, x, cluster, OWN, causal=[(0.0, 0.0, 1e9)] * 3)
    assert exact[0, 1].p == pytest.approx(bare[0, 1].p, abs=1e-9)


def test_a_pair_is_compared_in_the_clusters_that_both_have():
    y, x, cluster = study(7)
    y[cluster == 2, :, 1] = np.nan
    keep = cluster != 2
    found = mt.length_recused(y, x, cluster, OWN, 0, 1)
    alone = mt.length_recused(y[keep], x[keep], cluster[keep], OWN, 0, 1)
    assert (found.df, found.estimate, found.se) == pytest.approx((4, alone.estimate, alone.se), abs=1e-9)
    tests = mt.length_p(y, x, cluster, OWN)
    assert (tests[0, 1].clusters, tests[0, 2].clusters) == (5, 6)
    adjusted = mt.length_adjusted(y[:, 0], x, cluster, 1, 3)
    assert adjusted == mt.length_adjusted(y[keep, 0], x[keep], cluster[keep], 1, 3)
    assert mt.length_adjusted(y[:, 0], x, cluster, 2, 3).raw.df == 5
    # Many pairs at once are the same pairs.
    y, x, cluster = study(8, gaps=0.1)
    y[cluster == 2, :, 1] = np.nan
    pairs = [(0, 1), (2, 0), (3, 2)]
    found = adjusted_pairs(y[:, 0], x[:, :, None], cluster, pairs, level=0.95, consecutive=False)
    for pair, one in zip(pairs, found, strict=True):
        alone = mt.length_adjusted(y[:, 0], x, cluster, *pair)
        wanted = (alone.adjusted.estimate, alone.adjusted.se, alone.overlap)
        assert (one.adjusted.estimate, one.adjusted.se, one.overlap) == pytest.approx(wanted, abs=1e-9)


def test_clusters_in_time_order_are_left_out_in_blocks():
    y, x, cluster = study(9, clusters=14)
    blocks = mt.neighbour_blocks(14)[cluster]
    names = np.array([f"week {14 - g}" for g in range(14)])[cluster]
    full, _ = recused(y, x[:, :, None], cluster, OWN, 0, 1)
    without = [recused(*(part[blocks != u] for part in (y, x[:, :, None], cluster)), OWN, 0, 1)[0] for u in range(4)]
    found = mt.length_recused(y, x, names, OWN, 0, 1, consecutive=True)
    for one in (found, mt.length_p(y, x, names, OWN, consecutive=True)[0, 1]):
        assert (one.se, one.df) == pytest.approx((jackknife(full, without), 3), abs=1e-9)
        assert one.p == pytest.approx(2 * stats.t.sf(abs(full / one.se), 3), abs=1e-9)
    short = cluster < 11
    assert mt.length_p(y[short], x[short], cluster[short], OWN, consecutive=True)[0, 1].state == "cannot be tested"
    assert mt.length_adjusted(y[:, 0], x, cluster, 0, 1, consecutive=True).adjusted.df == 3


def test_few_clusters_and_nobody_without_an_interest():
    y, x, cluster = study(1, clusters=2)
    assert {test.state for test in mt.length_p(y, x, cluster, OWN).values()} == {"cannot be tested"}
    alone = mt.length_recused(y[:4], x[:4], cluster[:4], OWN, 0, 1)
    assert (alone.se, alone.p, alone.state) == (None, 1.0, "undefined: one cluster, needs two")
    y, x, cluster = study(1, judges=2, agents=2)
    found = mt.length_recused(y, x, cluster, np.eye(2), 0, 1)
    assert (found.estimate, found.p, found.state) == (None, 1.0, mt.recusal_contrast(y, np.eye(2), 0, 1).state)
    assert mt.length_p(y, x, cluster, np.eye(2))[0, 1].clusters == 0
    # Overlap is the smaller share within the other range.
    x = np.array([[1.0, 3.0], [2.0, 4.0], [3.0, 5.0], [4.0, 6.0], [5.0, 9.0]])
    y = np.random.default_rng(0).normal(size=x.shape)
    assert mt.length_adjusted(y, x, [0, 0, 1, 1, 2], 0, 1).overlap == 0.6


@pytest.mark.parametrize(("adjusted", "p_up", "slope_p", "gap", "causal", "word"), [
    (0.1, 0.02, 0.001, 1.0, None, "clear"), (0.1, 0.025, 0.001, 1.0, None, "clear"),
    (0.1, 0.026, 0.001, 1.0, None, "may be length"), (-0.1, 0.9, 0.05, 1.0, None, "length"),
    (-0.1, 0.9, 0.06, 1.0, None, "may be length"), (0.0, 0.5, 0.01, -1.0, None, "length"),
    (-0.1, 0.9, 0.001, 0.03, None, "clear"), (-0.1, 0.9, 0.001, -0.031, None, "length"),
    (-0.1, 0.9, 0.001, [0.01, 2.0], None, "length"), (-0.1, 0.9, 0.001, 0.01, (0.0, 0.01, 30), "clear"),
    (0.1, 0.001, 0.9, 1.0, (0.4, 0.01, 30), "length"), (0.1, 0.001, 0.9, 1.0, (0.3, 0.2, 30), "may be length"),
    (None, 1.0, 0.001, 1.0, None, "may be length")
])  # fmt: skip
def test_one_word_about_length(adjusted, p_up, slope_p, gap, causal, word):
    raw, slope = {"estimate": 0.4, "se": 0.1, "df": 11}, {"estimate": 0.2, "p": slope_p}
    given = [slope, {"estimate": 0.1, "p": 0.9}] if isinstance(gap, list) else slope
    assert mt.length_rule(raw, {"estimate": adjusted, "p_up": p_up}, given, gap, causal) == word


@pytest.mark.parametrize(("change", "message"), [
    ({"X": np.ones((24, 3))}, "X: must hold one value, or up to 3, for each of 24 cycles and 4 agents"),
    ({"X": np.ones((24, 4, 4))}, "up to 3"), ({"cluster": [0] * 23}, "one entry for each of the 24 items"),
    ({"cluster": [0.5] * 24}, "names or whole numbers"), ({"own": np.eye(4)}, "own"),
    ({"a": 7}, "a: must be one of the agents"), ({"b": 0}, "another agent"), ({"causal": [[1, 0, 1]]}, "for 3 judges"),
    ({"causal": [[1, -1, 1]] * 3}, "standard error from 0"), ({"Y": np.full((24, 3, 4), np.inf)}, "finite")
])  # fmt: skip
def test_wrong_input_is_refused(change, message):
    y, x, cluster = study()
    arguments = {"Y": y, "X": x, "cluster": cluster, "own": OWN, "a": 0, "b": 1} | change
    with pytest.raises(InputError, match=message):
        mt.length_recused(**arguments)


def test_agents_that_never_meet_have_no_adjusted_contrast():
    y, x, cluster = study()
    y[::2, :, 0], y[1::2, :, 1] = np.nan, np.nan
    with pytest.raises(NotMeasurableError, match="no cycle in common"):
        mt.length_adjusted(y[:, 0], x, cluster, 0, 1)
    y[:] = np.nan
    assert {test.p for test in mt.length_p(y, x, cluster, OWN).values()} == {1.0}
    with pytest.raises(InputError, match="turn the pair"):
        mt.length_rule({"estimate": -0.4}, {"estimate": 0.1, "p_up": 0.1}, {"estimate": 0.2, "p": 0.1}, 1.0)
