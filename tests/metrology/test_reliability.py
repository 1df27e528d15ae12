"""Judges as a sample: published examples, slow definitions, planted raters, and designs by brute force."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

N = None
KRIPPENDORFF = [
    [1, 1, N, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [N, 5, 5, 5], [N, N, 1, 1], [N, N, 3, N],
]  # fmt: skip
"""Four observers of twelve units: Krippendorff (2011), section C."""

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Four judges of six targets: Shrout and Fleiss (1979), table 2."""

METRICS = ("interval", "ordinal", "nominal")
PARTS = {
    "agent_cluster": 0.04, "residual": 0.3, "judge_agent": 0.01, "judge_agent_cluster": 0.01, "disagreement": 0.3,
    "trial": 0.1,
}  # fmt: skip

ratings = arrays(np.float64, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=st.sampled_from(
    [1.0, 2.0, 2.5, 4.0, 5.0, math.nan]
))  # fmt: skip


def test_alpha_of_the_published_example():
    for metric, published in (("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)):
        assert mt.krippendorff_alpha(KRIPPENDORFF, metric=metric) == pytest.approx(published, abs=5e-4)


def slow_alpha(table, metric):
    """Krippendorff's definition: every pair of ratings within units, and every pair of pairable ratings."""
    units = [row for row in ([x for x in row if not math.isnan(x)] for row in table) if len(row) > 1]
    pool = [x for row in units for x in row]
    counts = {value: pool.count(value) for value in sorted(set(pool))}

    def apart(x, y):
        between = sum(count for value, count in counts.items() if min(x, y) <= value <= max(x, y))
        ordinal = (between - (counts[x] + counts[y]) / 2) ** 2
        return {"nominal": float(x != y), "interval": (x - y) ** 2, "ordinal": ordinal}[metric]

    if len(counts) < 2:
        return None
    n = len(pool)
    observed = sum(2 * apart(x, y) / (len(row) - 1) for row in units for x, y in combinations(row, 2)) / n
    expected = sum(2 * apart(x, y) for x, y in combinations(pool, 2)) / (n * (n - 1))
    return pytest.approx(1 - observed / expected, abs=1e-12)


@given(ratings, st.sampled_from(METRICS))
def test_alpha_is_its_definition(table, metric):
    assert mt.krippendorff_alpha(table, metric=metric) == slow_alpha(table.tolist(), metric)


@given(ratings, st.sampled_from(METRICS), st.data())
def test_a_report_is_alpha_recomputed_without_each_rater_and_cluster(table, metric, data):
    n, raters = table.shape
    cluster = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    found = mt.alpha_report(table, cluster, metric=metric)
    full = mt.krippendorff_alpha(table, metric=metric)
    assert found.alpha.estimate == (None if full is None else pytest.approx(full, abs=1e-12))
    names = np.unique(cluster)
    for rater in range(raters) if raters > 1 else ():
        rest, one, gains = np.delete(table, rater, axis=1), found.without[rater], []
        for keep in [cluster == cluster, *(cluster != name for name in names)]:
            pair = [mt.krippendorff_alpha(x[keep], metric=metric) if keep.any() else None for x in (rest, table)]
            gains.append(math.nan if None in pair else pair[0] - pair[1])
        expected = mt.krippendorff_alpha(rest, metric=metric)
        assert one.alpha == (None if expected is None else pytest.approx(expected, abs=1e-12))
        assert one.gain.estimate == (None if math.isnan(gains[0]) else pytest.approx(gains[0], abs=1e-12))
        if one.gain.state == "ok":
            g = names.size
            se = math.sqrt((g - 1) / g * sum((x - gains[0]) ** 2 for x in gains[1:]))
            assert (one.gain.se, one.gain.df) == (pytest.approx(se, abs=1e-12), g - 1)
            assert one.pulls_down == (gains[0] - stats.t.ppf(0.975, g - 1) * se > 0)
        else:
            assert (one.pulls_down, one.gain.low) == (False, None)


def panel(rng, *, bad, n=60, raters=5, clusters=12):
    """Raters that see the quality of an item with noise; one with much more of it."""
    noise = np.where(np.arange(raters) == raters - 1, bad, 0.5)
    scores = rng.normal(3, 1, (n, 1)) + rng.normal(0, 1, (n, raters)) * noise
    return np.clip(np.floor(scores + 0.5), 1, 5), np.arange(n) % clusters


def test_a_planted_bad_rater_is_found_and_the_others_are_not():
    rates = {}
    for bad, seed, reports, options in ((2.5, 5, 60, {"metric": "ordinal"}), (0.5, 6, 100, {})):
        rng = np.random.default_rng(seed)
        found = [mt.alpha_report(*panel(rng, bad=bad), **options).without.values() for _ in range(reports)]
        rates[bad] = np.mean([[one.pulls_down for one in report] for report in found], axis=0)
    assert rates[2.5][-1] > 0.95
    assert rates[2.5][:-1].mean() < 0.02
    assert rates[0.5].mean() <= 0.05  # equal raters are rarely accused, each at one-sided 2.5 %


def test_alpha_over_blocks_and_without_anything_to_compare():
    # Blocks of neighbours take the place of clusters that follow each other.
    table, _ = panel(np.random.default_rng(1), bad=1.0)
    weeks = np.repeat(np.arange(12), 5)
    assert mt.alpha_report(table, weeks, consecutive=True) == mt.alpha_report(table, mt.neighbour_blocks(12)[weeks])
    for table, metric in (([[1, N], [N, 2]], "interval"), ([[N, N]], "nominal"), ([[3, 3], [3, 3]], "ordinal"),
                          ([[0.1, 0.1, 0.1]] * 2, "interval")):  # fmt: skip
        assert mt.krippendorff_alpha(table, metric=metric) is None
    alone = mt.alpha_report([[1, 2], [3, 3]], ["a", "a"])
    assert (alone.alpha.state, alone.alpha.p) == ("undefined: one cluster, needs two", 1.0)
    assert (alone.alpha.estimate is None, alone.without[0].alpha) == (False, None)
    constant = mt.alpha_report([[1, 2], [3, 3], [3, 3]], ["a", "b", "b"])
    assert (constant.alpha.estimate is None, constant.alpha.state.partition(":")[0]) == (False, "undefined")


def test_icc_of_the_textbook_example():
    found = mt.icc(SHROUT_FLEISS)
    # ICC(2,1), ICC(2,4), ICC(3,1), ICC(3,4) of Shrout and Fleiss (1979), table 4.
    assert [found.icc_a1, found.icc_ak, found.icc_c1, found.icc_ck] == pytest.approx([0.29, 0.62, 0.71, 0.91], abs=5e-3)
    assert [found.msr, found.msc, found.mse] == pytest.approx([11.24, 32.49, 1.02], abs=5e-3)


@given(arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(2, 5)), elements=st.integers(1, 5)))
def test_icc_is_the_same_for_shifted_raters_in_consistency(table):
    found, shifted = mt.icc(table), mt.icc(table + np.arange(table.shape[1]))
    assert shifted.icc_c1 == (None if found.icc_c1 is None else pytest.approx(found.icc_c1, abs=1e-9))
    assert found.icc_c1 is None or found.icc_c1 <= 1 + 1e-12


def test_mean_squares_are_those_of_the_analysis_of_variance():
    table = np.random.default_rng(2).normal(size=(7, 4))
    rows, columns = np.indices(table.shape).reshape(2, -1)
    frame = pd.DataFrame({"y": table.ravel(), "row": rows, "column": columns})
    squares = pytest.approx(anova_lm(ols("y ~ C(row) + C(column)", frame).fit())["mean_sq"].tolist(), rel=1e-10)
    items, judges = mt.icc(table), mt.random_judges(table)
    assert [items.msr, items.msc, items.mse] == [judges.ms_judge, judges.ms_cluster, judges.ms_error] == squares
    # Icc without spread is none and one rater is refused.
    flat = mt.icc([[3, 3], [3, 3]])
    assert (flat.icc_a1, flat.icc_ak, flat.icc_c1, flat.icc_ck) == (None, None, None, None)


def test_the_second_test_is_the_t_test_of_the_families_own_contrasts():
    """With families that differ a lot and little else it has the larger p."""
    rng = np.random.default_rng(3)
    table = rng.normal(0.3, 0.5, (4, 1)) + rng.normal(0, 0.05, (4, 10))
    found = mt.random_judges(table)
    t = stats.ttest_1samp(table.mean(axis=1), 0)
    assert (found.p, found.df) == (pytest.approx(t.pvalue, rel=1e-9), 3)
    assert [found.low, found.high] == pytest.approx(list(t.confidence_interval(0.95)), rel=1e-9)
    # Clusters that differ most, and the same clusters for all families: the families' t alone would be too sure.
    rng = np.random.default_rng(4)
    table = 0.4 + rng.normal(0, 0.5, (1, 6)) + rng.normal(0, 0.1, (3, 6)) + rng.normal(0, 0.1, (3, 1))
    found = mt.random_judges(table)
    judge, cluster, error = found.ms_judge, found.ms_cluster, found.ms_error
    total = judge + cluster - error
    df = min(total**2 / (judge**2 / 2 + cluster**2 / 5 + error**2 / 10), 5)
    assert (found.se, found.df) == (pytest.approx(math.sqrt(total / 18)), pytest.approx(df))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(found.estimate) / found.se, df))
    assert found.var_judge == pytest.approx(max(0, (judge - error) / 6))
    assert found.var_cluster == pytest.approx((cluster - error) / 3)


@given(arrays(np.float64, st.tuples(st.integers(3, 6), st.integers(2, 6)), elements=st.floats(-2, 2, width=32)))
def test_both_tests_must_reject(table):
    found = mt.random_judges(table)
    assert 0 <= found.p <= 1
    spread = table.mean(axis=1).std(ddof=1)
    if spread > 1e-6:
        alone = stats.t.sf(abs(table.mean()) / spread * math.sqrt(len(table)), len(table) - 1) * 2
        assert found.p >= alone - 1e-9
    assert found.low is None or found.low <= found.estimate <= found.high
    turned = mt.random_judges(-table)
    assert (turned.estimate, turned.p) == (pytest.approx(-found.estimate), pytest.approx(found.p))
    assert found.p_up + turned.p_up == pytest.approx(1) or found.state != "ok"


def test_judges_that_like_agents_at_random_are_rarely_taken_for_an_order():
    """Three families with likings of their own, no true difference: the clusters alone would reject in most studies."""
    rng = np.random.default_rng(7)
    tables = rng.normal(0, 0.3, (1500, 3, 1)) + rng.normal(0, 0.2, (1500, 1, 12)) + rng.normal(0, 0.3, (1500, 3, 12))
    assert np.mean([mt.random_judges(table).p <= 0.05 for table in tables]) < 0.062
    assert np.mean(stats.ttest_1samp(tables.mean(axis=1), 0, axis=1).pvalue <= 0.05) > 0.3


def test_what_judges_as_a_sample_leave_out():
    # Clusters that some family lacks are left out.
    table = np.random.default_rng(8).normal(size=(3, 6))
    holed = table.copy()
    holed[1, 2] = math.nan
    assert mt.random_judges(holed) == mt.random_judges(np.delete(table, 2, axis=1))
    assert mt.random_judges(holed.tolist()).clusters == 5
    # Too few judges or clusters are not measurable.
    for table in ([[0.1, 0.2, 0.3]] * 2, [[0.1], [0.2], [0.3]], np.empty((3, 0)), [[N, 1.0], [1.0, N], [2.0, 2.0]]):
        found = mt.random_judges(table)
        assert found.state == "not measurable: needs three judge families and two clusters"
        assert (found.p, found.p_up, found.se, found.ms_judge) == (1.0, 1.0, None, None)
    assert mt.random_judges([[0.1], [0.2], [0.3]]).estimate == pytest.approx(0.2)
    tied = np.array([[2, 1, 3, 0], [3, 0, 2, 2], [3, 1, 3, 2]])  # judges and errors have one mean square, on any scale
    assert {round(mt.random_judges(tied * scale).p, 9) for scale in (0.1, 0.3, 0.7, 1.0, 1.1)} == {0.039588846}
    assert mt.random_judges(np.empty((3, 0))).estimate is None
    # Contrasts without variance speak by their sign.
    found = mt.random_judges([[0.3] * 4] * 5)
    assert found.state.startswith("zero variance: ")
    assert (found.p, found.low, found.high, mt.random_judges(np.zeros((3, 4))).p) == (2.0**-3, None, None, 1.0)
    # Clusters that follow each other count as blocks.
    table = np.random.default_rng(9).normal(size=(3, 9))
    blocks = np.stack([table[:, mt.neighbour_blocks(9) == k].mean(axis=1) for k in range(3)], axis=1)
    found, plain = mt.random_judges(table, consecutive=True), mt.random_judges(blocks)
    assert (found.p, found.se, found.clusters) == (pytest.approx(plain.p), pytest.approx(plain.se), 9)


def test_planted_likings_are_recovered():
    """Judge x agent .09 beside judge x agent x cluster and noise; the estimate is of these judges' own likings."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(600):
        likes = rng.normal(0, 0.3, (5, 4))
        means = rng.normal(3, 0.5, (10, 1, 4)) + likes + rng.normal(0, 0.2, (10, 5, 4))
        found.append(mt.judge_agent_variance(means))
    assert np.mean(found) == pytest.approx(0.09, abs=3 * np.std(found) / math.sqrt(600))
    # Likings are those of single contrasts.
    rng = np.random.default_rng(11)
    means = rng.normal(3, 0.5, (6, 3, 4))
    means[0, 1, 2] = means[3, 0, 0] = math.nan
    pairs = [mt.random_judges((means[:, :, a] - means[:, :, b]).T).var_judge / 2 for a, b in combinations(range(4), 2)]
    assert mt.judge_agent_variance(means) == pytest.approx(np.mean(pairs), rel=1e-12)


def test_the_variance_of_a_design_is_that_of_simulated_contrasts():
    rng, g, c, j, t = np.random.default_rng(12), 4, 3, 3, 2
    sizes = {"agent_cluster": g, "residual": g * c, "judge_agent": j, "judge_agent_cluster": j * g,
             "disagreement": j * g * c, "trial": j * t * g * c}  # fmt: skip
    mean = sum(rng.normal(0, math.sqrt(PARTS[name]), (20_000, 2, n)).mean(-1) for name, n in sizes.items())
    assert mt.dstudy_variance(PARTS, g, c, j, t) == pytest.approx((mean[:, 0] - mean[:, 1]).var(), rel=0.04)


def slow_design(effect, cost, agents, *, random, most_clusters, most_cycles):
    """Cost of the cheapest design by trying all of them, with scipy's noncentral t."""
    best = math.inf
    for g, c, j, t in product(range(2, most_clusters + 1), range(1, most_cycles + 1), range(2, 9), range(1, 4)):
        judge = 2 * PARTS["judge_agent"] * random
        cluster = 2 * (PARTS["agent_cluster"] + PARTS["residual"] / c)
        error = 2 * (PARTS["judge_agent_cluster"] + (PARTS["disagreement"] + PARTS["trial"] / t) / c)
        variance, df = mt.dstudy_variance(PARTS, g, c, j, t, random=random), g - 1
        if random:
            rows, columns = error + g * judge, error + j * cluster
            free = (rows + columns - error) ** 2
            free /= rows**2 / (j - 1) + columns**2 / (g - 1) + error**2 / (j - 1) / (g - 1)
            df = min(df, j - 1 if judge / j > variance / 2 else free)
        spent = g * c * agents * (cost["record"] + j * t * cost["call"])
        if spent < best and stats.nct.sf(stats.t.ppf(0.975, df), df, effect / math.sqrt(variance)) >= 0.8:
            best = spent
    return best


@pytest.mark.parametrize("random", [True, False])
@pytest.mark.parametrize("call", [0.2, 2.0])
def test_no_design_is_cheaper(random, call):
    cost, most = {"record": 1.0, "call": call}, {"most_clusters": 14, "most_cycles": 4}
    found = mt.dstudy(PARTS, 0.9, cost, 4, random=random, **most)
    assert found.cost == pytest.approx(slow_design(0.9, cost, 4, random=random, **most))
    assert found.variance == pytest.approx(mt.dstudy_variance(PARTS, found.G, found.C, found.J, found.T, random=random))
    tail = stats.nct.sf(stats.t.ppf(0.975, found.df), found.df, 0.9 / math.sqrt(found.variance))
    assert found.power == pytest.approx(tail, abs=1e-9)
    assert found.power >= 0.8


def test_a_design_for_these_judges_has_the_power_it_promises():
    found = mt.dstudy(PARTS, 0.5, {"record": 1.0, "call": 0.2}, 4, random=False)
    rng = np.random.default_rng(13)
    means = rng.normal(0.5, math.sqrt(found.variance * found.G), (4000, found.G))
    t = means.mean(axis=1) / means.std(axis=1, ddof=1) * math.sqrt(found.G)
    assert np.mean(t > stats.t.ppf(0.975, found.G - 1)) == pytest.approx(found.power, abs=0.02)
    # Both tests have to reject there, which costs a little of the power that the plan counts with.
    found, rng = mt.dstudy(PARTS, 0.5, {"record": 1.0, "call": 0.2}, 4), np.random.default_rng(14)
    sd = {"judge": 0.01, "cluster": 0.04 + 0.3 / found.C, "error": 0.01 + (0.3 + 0.1 / found.T) / found.C}
    shapes = {"judge": (400, found.J, 1), "cluster": (400, 1, found.G), "error": (400, found.J, found.G)}
    tables = 0.5 + sum(rng.normal(0, math.sqrt(2 * sd[name]), shape) for name, shape in shapes.items())
    power = np.mean([mt.random_judges(table).p_up <= 0.025 for table in tables])
    assert found.power - 0.1 < power < found.power + 0.05


def test_the_next_best_buy_is_the_derivative_by_money():
    cost = {"record": 1.0, "call": 0.2}
    found = mt.dstudy(PARTS, 0.4, cost, 4)
    size = {"G": found.G, "C": found.C, "J": found.J, "T": found.T}

    def spent(G, C, J, T):
        return G * C * 4 * (cost["record"] + J * T * cost["call"])

    # Every part falls as 1/size: the derivative times the size is minus what half of it would add.
    for name, value in size.items():
        doubled = size | {name: 2 * value}
        saved = 2 * (mt.dstudy_variance(PARTS, **size) - mt.dstudy_variance(PARTS, **doubled))
        assert found.per_cost[name] == pytest.approx(-saved / (spent(**doubled) - spent(**size)), rel=1e-9)
    free = mt.dstudy(PARTS, 0.4, {"record": 1.0, "call": 0.0}, 4)
    assert (free.per_cost["J"], free.per_cost["T"]) == (None, None)


def test_people_enter_the_price_of_a_design_and_some_are_out_of_reach():
    cost = {"record": 1.0, "call": 0.2}
    found = mt.dstudy(PARTS, 0.5, cost | {"human": 3.0}, 4)
    within, between = 2 * (0.3 + (0.3 + 0.1 / found.T) / found.J), 2 * (0.04 + 0.01 / found.J)
    needed = mt.anchor_needed(0.5, math.sqrt(within), 0.6, found.G * found.C, found.G, sd_cluster=math.sqrt(between))
    assert found.labelled == max(needed, 20)
    judged = found.G * found.C * 4 * (1.0 + found.J * found.T * 0.2)
    assert found.cost == pytest.approx(judged + found.labelled * 4 * 3.0)
    assert found.cost > mt.dstudy(PARTS, 0.5, cost, 4).cost
    # Out of reach is none.
    judges = PARTS | {"judge_agent": 1.0}
    assert mt.dstudy(judges, 0.1, cost, 4) is mt.dstudy(PARTS, 0.3, cost, 4, most_clusters=5) is None
    assert mt.dstudy(judges, 0.1, cost, 4, random=False) is not None
    # A study without variance needs the smallest design.
    found = mt.dstudy(dict.fromkeys(PARTS, 0.0), 0.1, cost, 2)
    assert (found.G, found.C, found.J, found.T, found.power) == (2, 1, 2, 1, 1.0)
    # Generalizability is the agents share.
    half = mt.dstudy_variance(PARTS, 5, 4, 3, 1) / 2
    assert mt.generalizability(0.2, PARTS, 5, 4, 3, 1) == pytest.approx(0.2 / (0.2 + half))
    assert mt.generalizability(0.0, PARTS, 5, 4, 3, 1) == 0.0
    assert mt.generalizability(0.2, PARTS, 5, 4, 3, 1, random=False) > mt.generalizability(0.2, PARTS, 5, 4, 3, 1)


ONE = {"record": 1, "call": 1}


@pytest.mark.parametrize(("call", "arguments", "more"), [
    *((mt.krippendorff_alpha, (table,), {}) for table in ([], [1, 2, 3], [[1, math.inf]], [["a", "b"]], [[1, 2], [1]])),
    (mt.krippendorff_alpha, ([[1, 2]],), {"metric": "ratio"}), (mt.alpha_report, ([[1, 2], [2, 2]], ["a"]), {}),
    (mt.alpha_report, ([[1, 2], [2, 2]], ["a", "b"]), {"level": 1.0}), (mt.icc, ([[1, N], [2, 3]],), {}),
    *((mt.random_judges, (table,), {}) for table in (
        3.0, [1, 2], [[1, 2], [1]], [[1, math.inf], [1, 2], [3, 4]], [["x", "y"]] * 3)),
    (mt.judge_agent_variance, (np.zeros((3, 4)),), {}), (mt.dstudy_variance, ({"residual": 1.0}, 5, 4, 3, 1), {}),
    *((mt.dstudy_variance, (PARTS | other, 5, 4, 3, 1), {}) for other in ({"other": 1.0}, {"trial": -0.1})),
    (mt.dstudy_variance, (PARTS, 0, 4, 3, 1), {}), (mt.dstudy_variance, (PARTS, 5, 4, 2.5, 1), {}),
    (mt.generalizability, (-0.1, PARTS, 5, 4, 3, 1), {}),
    *((mt.dstudy, (PARTS, *arguments), {}) for arguments in (
        (0.0, ONE, 4), (math.nan, ONE, 4), (0.3, {"record": 1}, 4), (0.3, ONE | {"call": -1}, 4),
        (0.3, ONE | {"paper": 1}, 4), (0.3, ONE, 1))),
    (mt.dstudy, (PARTS, 0.3, ONE, 4), {"power": 1.0}), (mt.dstudy, (PARTS, 0.3, ONE, 4), {"most_clusters": 1}),
])  # fmt: skip
def test_what_is_none_is_refused(call, arguments, more):
    with pytest.raises(InputError):
        call(*arguments, **more)


def test_what_cannot_be_measured_is_said():
    for call, message in (
        (lambda: mt.icc([[1], [2]]), "two items and two raters"),
        (lambda: mt.judge_agent_variance(np.zeros((1, 3, 4))), "no two judges"),
        (lambda: mt.generalizability(0.0, dict.fromkeys(PARTS, 0.0), 5, 4, 3, 1), "no variance"),
    ):
        with pytest.raises(NotMeasurableError, match=message):
            call()
