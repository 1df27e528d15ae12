"""Power of a design: detectable differences, underpowered plans, and the rate of orders between equal agents."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark import metrology as mt
from assaymark.errors import InputError, NotMeasurableError

AGGREGATE_ONLY = 'claims = {dimensions = ["aggregate"]}'


@given(st.integers(1, 10_000), st.floats(0.1, 5), st.floats(0.001, 0.2), st.floats(0.5, 0.99), st.integers(1, 300))
def test_the_effect_has_the_stated_power(n, sd, alpha, power, comparisons):
    effect = mt.minimum_detectable_effect(n, sd=sd, alpha=alpha, power=power, comparisons=comparisons)
    z = effect * math.sqrt(n) / sd - stats.norm.isf(alpha / 2 / comparisons)
    assert stats.norm.cdf(z) == pytest.approx(power, abs=1e-9)
    # ValueBlindBench section 3.9 prints 0.29 without its n; 200 cycles and .05 over 36 contrasts give it.
    assert mt.minimum_detectable_effect(200, comparisons=36) == pytest.approx(0.2856, abs=5e-5)


GAP = {"se": 0.1, "df": 4.0, "alpha": 0.05, "power": 0.8}
WRONG = {
    mt.minimum_detectable_effect: [
        ({"n": 0}, r"n: must be a finite number above 0 \(got 0\)"), ({"n": math.nan}, "n: must be"),
        ({"n": 10, "sd": -1.0}, "sd"), ({"n": 10, "alpha": 0.0}, "alpha"), ({"n": 10, "power": 1.0}, "power"),
        ({"n": 10, "comparisons": 0}, "comparisons"), ({"n": 10, "comparisons": 1.5}, "comparisons")],
    mt.minimum_detectable_gap: [(GAP | parts, said) for parts, said in (
        ({"se": 0.0}, "se"), ({"se": math.nan}, "se"), ({"df": -1.0}, "df"), ({"df": math.inf}, "df"),
        ({"alpha": 0.0}, "alpha"), ({"power": 1.0}, "power"), ({"power": 0.05}, "above alpha"))],
}  # fmt: skip


@pytest.mark.parametrize(("function", "parts", "message"), [(f, *one) for f, cases in WRONG.items() for one in cases])
def test_what_is_wrong_is_said(function, parts, message):
    with pytest.raises(InputError, match=message):
        function(**parts)


def equal_agents(clusters: int, studies: int, seed: int) -> np.ndarray:
    """Cluster means [studies, 6 dimensions, clusters, 4 agents] that differ by chance; half of it in all dimensions."""
    rng = np.random.default_rng(seed)
    own, shared = rng.standard_normal((2, studies, 6, clusters, 4))
    return (own + shared[:, :1]) / math.sqrt(2)


def test_the_sources_bootstrap_finds_an_order_among_equals_in_most_studies_of_five_clusters():
    tables = equal_agents(5, 800, seed=5)
    first, second = np.triu_indices(4, 1)
    sums = (tables[..., first] - tables[..., second]).transpose(2, 0, 1, 3).reshape(5, -1)
    (tested,) = mt.bootstrap_tests([(sums, np.ones(5, dtype=int))], resamples=1, rng=None)
    rows = tested.p.reshape(800, 36)
    assert 0.78 < (mt.holm_rows(rows) <= 0.05).any(axis=1).mean() < 0.91
    assert 0.83 < (rows > 0.05).mean() < 0.855


@pytest.mark.parametrize("clusters", [5, 20])
@pytest.mark.parametrize("borrow", [True, False])
def test_the_order_procedure_finds_one_in_at_most_one_of_twenty(clusters, borrow):
    """The aggregate and six dimensions together, with and without what pairs lend each other; all studies at once."""
    studies, tables = 400, equal_agents(clusters, 400, seed=clusters)
    scales = np.concatenate([tables.mean(axis=1, keepdims=True), tables], axis=1)
    found = mt.table_contrasts(scales, borrow=borrow)
    main = mt.publish_orders(found.gap[:, 0], found.p[:, 0], 0.8 * 0.05)
    rest = np.where(main.published.all(axis=1), 0.05, 0.01)
    least = np.array([min(map(min, mt.shaffer_pooled(dict(enumerate(p)), 4).values())) for p in found.p[:, 1:]])
    false = main.published.any(axis=1) | (least <= rest)
    assert false.sum() <= stats.binom.ppf(0.9995, studies, 0.05)
    for k in [*range(10), *np.flatnonzero(false)[:10].tolist()]:
        one = mt.order_analysis(
            {"aggregate": scales[k, 0], **{f"d{d}": x for d, x in enumerate(tables[k])}}, borrow=borrow
        )
        assert bool(one.order or any(one.dimension_order.values())) is bool(false[k])


def check(plan, agents=4, dimensions=6, clusters=5, cycles=200, **parts):
    pairs = math.comb(agents, 2)
    return mt.preflight(plan, agents, dimensions, [clusters] * pairs, [cycles] * pairs, **parts)


def test_the_default_plan_can_reject(study):
    found = check(study())
    assert (found.test, found.clusters, found.cycles, found.contrasts) == ("moderated-t", 5, 200, 36)
    assert (found.untestable, found.conflicted, found.hopeless) == (0, 0, ())
    assert found.warnings == ("few clusters (5): the test rests on normal errors",)
    assert check(study(), clusters=6).warnings == ()
    # Plain cluster t before data: what pairs will lend each other is not known, so it promises no more than that.
    found, se = check(study(), clusters=12), 1 / math.sqrt(200)
    assert (found.alpha_aggregate, found.reach.leader) == (pytest.approx(0.04), mt.minimum_detectable_gap(se, 11, 0.02))
    assert found.reach.pair == mt.minimum_detectable_gap(se, 11, 0.02 / 6)
    assert found.reach_half.leader == mt.minimum_detectable_gap(1 / 10, 5, 0.02)
    # As many degrees of freedom as are ever lent: f = 1/2 nu (K - 1 - 1.5) (5 / nu)^2 from five clusters on.
    lent = mt.minimum_detectable_gap(se, 11 + 0.5 * 11 * 1.5 * (5 / 11) ** 2, 0.02 / 6)
    assert (found.reach_borrowed.pair, found.reach_borrowed.leader < found.reach.leader) == (lent, True)
    assert found.reach.leader < found.reach_half.leader
    # A plan of ones own numbers.
    plan = study("inference = {mde_sd = 0.5, mde_power = 0.9, alpha = 0.1, aggregate_share = 0.6}")
    found, se = check(plan, clusters=10, cycles=50), 0.5 / math.sqrt(50)
    leader = mt.minimum_detectable_gap(se, 9, 0.03, power=0.9)
    assert (found.alpha_aggregate, found.reach.leader) == (pytest.approx(0.06), leader)
    # Alpha is shared only where dimensions are claimed.
    assert (check(study(AGGREGATE_ONLY)).alpha_aggregate, check(study(), dimensions=1).alpha_aggregate) == (0.05, 0.05)
    assert check(study('claims = {dimensions = ["aggregate", "risk"]}')).alpha_aggregate == pytest.approx(0.04)
    assert [mt.dimensions_claimed(study(extra)) for extra in ("", AGGREGATE_ONLY)] == [True, False]
    for agents, leader, pair in ((2, 1, 1), (3, 1 / 3, 1 / 3), (4, 1 / 2, 1 / 12), (8, 1 / 2, 1 / 56)):
        assert mt.detectable_levels(agents, 0.05) == pytest.approx((0.05 * leader, 0.05 * pair))


def test_the_gap_of_a_leader_is_found_as_often_as_stated(study):
    """Differences of 12 clusters with the standard deviation of the plan, tested by Student's t at each level."""
    found, studies = check(study(AGGREGATE_ONLY), clusters=12, cycles=120), 4000
    rng = np.random.default_rng(3)
    for gap, level in ((found.reach.leader, 0.025), (found.reach.pair, 0.025 / 6)):
        d = rng.normal(gap, 1 / math.sqrt(10), (studies, 12))
        low, high = stats.binom.ppf([0.0005, 0.9995], studies, 0.8)
        assert low <= (stats.ttest_1samp(d, 0, axis=1).pvalue <= level).sum() <= high
    # Own variance borrows nothing.
    found = check(study('inference = {test = "own-variance"}'), clusters=12)
    assert (found.test, found.reach_borrowed, found.reach) == ("own-variance", None, check(study(), clusters=12).reach)
    # Two agents and three clusters have nothing to borrow.
    two, three = check(study(), agents=2, clusters=12), check(study(), clusters=3)
    assert (two.reach_borrowed, two.reach.leader) == (two.reach, two.reach.pair)
    assert (three.reach_borrowed, three.reach_half, three.hopeless) == (three.reach, None, ())


def test_hopeless_plans_are_said(study):
    found = check(study(), clusters=2)
    assert (found.hopeless, found.untestable) == (("orders",), 6)
    assert found.reach is found.reach_borrowed is found.reach_half is None
    for clusters, common in ((1, "1 common cluster"), (2, "2 common clusters")):
        (said, *_) = check(study(), clusters=clusters).warnings
        assert said == f"this study cannot rank agents: {common}, 3 are needed"
    # Nothing is hopeless where nobody claims an order.
    found = check(study("claims = {first = false, pairs = false}"), clusters=2)
    assert (found.hopeless, found.warnings[0].startswith("this study cannot rank agents")) == ((), True)
    # Clusters that follow each other need twelve.
    plan = study('inference = {cluster_order = "consecutive"}')
    found, season = check(plan, clusters=11), check(plan, clusters=24)
    said = "this study cannot rank agents: 11 common clusters, 12 that follow each other in time are needed"
    assert (found.hopeless, found.warnings[0], season.hopeless) == (("orders",), said, ())
    assert season.reach.leader == mt.minimum_detectable_gap(1 / math.sqrt(200), 11, 0.02)
    assert (season.reach_borrowed, season.reach_half.leader) == (None, mt.minimum_detectable_gap(1 / 10, 5, 0.02))
    assert check(plan, clusters=23).reach_half is None
    # Clusters with dates follow each other, unless the plan says that they do not.
    weeks, items = [f"2026-W{week:02d}" for week in range(1, 12)], [f"item{k}" for k in range(11)]
    declared = study('inference = {cluster_order = "exchangeable"}')
    for plan, names, hopeless in ((study(), weeks, ("orders",)), (study(), items, ()), (declared, weeks, ())):
        assert mt.preflight(plan, 4, 6, [11] * 6, [11] * 6, clusters=names).hopeless == hopeless


def test_pairs_that_hardly_meet_and_missing_outsiders_are_said(study):
    families = {"a": "north", "b": "south", "c": "east", "d": "x"}
    found = mt.preflight(study(), 4, 6, [0, 1, 5, 5, 5, 5], [0, 4, 20, 20, 20, 20], agent_families=families)
    assert (found.untestable, found.clusters, found.cycles) == (2, 5, 20)
    assert found.warnings == (
        "1 of 6 pairs of agents cannot be tested: fewer than 3 common clusters",
        "1 of 6 pairs of agents share no cycle: they cannot be ranked",
        "few clusters (5): the test rests on normal errors",
        "every judge family also has an agent under judgment: no judge is without an interest",
    )
    assert found.conflicted == 6
    some = check(study(), clusters=6, agent_families={"a": "north", "b": "other", "c": "c", "d": "d"})
    assert (some.conflicted, some.warnings) == (3, ())
    # One judge family is said.
    (warning,) = check(study(judges={"auditor": "north", "reader": "north"}), clusters=6).warnings
    assert warning == "one judge family: agreement is not measurable, and no ranking can be claimed"
    # Agents that never meet detect nothing.
    found, lonely = check(study(), clusters=0, cycles=0), mt.preflight(study(), 1, 6, [], [])
    assert (found.reach, found.hopeless) == (None, ("orders",))
    assert (lonely.contrasts, lonely.reach, lonely.hopeless, lonely.warnings) == (0, None, (), ())
    for counts in ([1, 2], [[1, 2, 3]], [1.5, 2, 3], [-1, 2, 3]):
        with pytest.raises(InputError, match="must be 3 counts, one for each pair"):
            mt.preflight(study(), 3, 6, counts, [1, 2, 3])


# The smallest detectable gap: against numerical integration, another library, and its own meaning
@given(st.floats(1, 300), st.floats(1e-3, 0.2), st.floats(0.3, 0.99))
def test_the_gap_is_found_with_the_power_asked_for(df, alpha, wanted):
    gap, critical = mt.minimum_detectable_gap(1.0, df, alpha, power=wanted), stats.t.ppf(1 - alpha / 2, df)
    power = sum(mt.noncentral_tail(critical, df, shift) for shift in (gap, -gap))
    assert power == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("df", [1, 1.5, 2.5, 4, 11, 40, 400])
def test_the_tail_is_the_integral_over_the_chi_variable_and_that_of_another_library(df):
    u = np.linspace(-60, 3, 20_001)  # the logarithm of the chi variable: a smooth density is summed to the last digits
    density = stats.chi(df, scale=1 / math.sqrt(df)).pdf(np.exp(u)) * np.exp(u)
    for critical in (1.5, 4.0, 60.0):
        for shift in np.array([-0.1, 0.0, 0.6, 1.0, 1.7]) * critical:
            value = (density * stats.norm.cdf(shift - critical * np.exp(u))).sum() * (63 / 20_000)
            assert mt.noncentral_tail(critical, df, shift) == pytest.approx(value, abs=1e-11), (critical, shift)
    for df, critical, shift in ((4, 2.776, 3.0), (11, 2.2, 2.9), (60, 2.0, 0.5), (1e5, 1.96, 2.8)):
        assert mt.noncentral_tail(critical, df, shift) == pytest.approx(stats.nct.sf(critical, df, shift), abs=1e-9)


def test_the_normal_approximation_asks_for_too_little():
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    for clusters, short in ((4, 0.34), (5, 0.26), (12, 0.09), (60, 0.02)):
        assert 1 - z / mt.minimum_detectable_gap(1.0, clusters - 1, 0.05) == pytest.approx(short, abs=0.006)
    assert mt.minimum_detectable_gap(1.0, 1e7, 0.05) == pytest.approx(z, abs=1e-5)
    # The gap is found by simulation.
    gap = mt.minimum_detectable_gap(1.0, 5, 0.01)
    values = np.random.default_rng(1).normal(gap, math.sqrt(6), (40_000, 6))
    assert (stats.ttest_1samp(values, 0, axis=1).pvalue <= 0.01).mean() == pytest.approx(0.8, abs=0.008)
    # It is in the unit of the standard error and grows with what is asked.
    assert mt.minimum_detectable_gap(0.2, 7, 0.05) == pytest.approx(2 * mt.minimum_detectable_gap(0.1, 7, 0.05))
    for se, df, alpha, power in ((1, 7, 0.05, 0.9), (1, 7, 0.01, 0.8), (1, 5, 0.05, 0.8)):
        assert mt.minimum_detectable_gap(se, df, alpha, power=power) > mt.minimum_detectable_gap(1, 7, 0.05)


# Records extended for planning: what is there stays, and what is added looks like it
AUDITOR = mt.Panelist("auditor", "north", severity=0.1, trials=2, trial_noise=mt.Spread(0.6, 0.0))
READER = mt.Panelist("reader", "south", severity=-0.1)
TRUTH = mt.Truth(
    composers=(mt.Composer("ash", 3.3), mt.Composer("birch", 3.0), mt.Composer("cedar", 2.8)), clusters=20, cycles=20,
    panel=(AUDITOR, READER, mt.Panelist("skeptic", "east", disagreement=mt.Spread(0.6, 0.3))),
    dimensions=("clarity", "evidence", "risk"),
)  # fmt: skip


@pytest.fixture(scope="module")
def records():
    table = mt.simulate_scores(TRUTH, np.random.default_rng(1))
    components = mt.variance_components(table)
    return table, components, mt.fitted_truth(table, components)


def kappa(table):
    return mt.mean_pairwise_kappa(mt.categories_of(table.stacked[:, :, 0]))


def test_the_fit_is_near_the_truth(records):
    table, components, fitted = records
    for part in ("cycle", "interaction", "residual"):
        found, planted = getattr(fitted, part), getattr(TRUTH, part)
        np.testing.assert_allclose(found.sd, planted.sd, atol=0.06)
    np.testing.assert_allclose(fitted.means, TRUTH.means, atol=0.15)
    for judge, planted in zip(fitted.panel, TRUTH.panel, strict=True):
        np.testing.assert_allclose(judge.disagreement.sd, planted.disagreement.sd, atol=0.06)
        assert judge.severity == pytest.approx(planted.severity, abs=0.05)
    assert (fitted.panel[0].trial_noise.sd, fitted.clusters, fitted.cycles) == (pytest.approx(0.6, abs=0.05), 20, 20)
    # A study from the fit agrees as much as the records.
    assert kappa(mt.simulate_scores(fitted, np.random.default_rng(2))) == pytest.approx(kappa(table), abs=0.05)
    # Agents without common cycles cannot be fitted.
    keep = (table.agent == 0) == (table.cluster < 10)
    parts = {name: getattr(table, name)[keep] for name in ("agent", "cycle", "cluster", "scores", "mean")}
    with pytest.raises(NotMeasurableError, match="without common cycles"):
        mt.fitted_truth(replace(table, **parts), components)
    with pytest.raises(NotMeasurableError, match="no scored trajectory of elm"):
        mt.fitted_truth(replace(table, agents=(*table.agents, "elm")), components)
    # Levels are drawn as widely as they are uncertain.
    draws = np.array([mt.drawn_truth(table, fitted, components, np.random.default_rng(k)).means for k in range(400)])
    np.testing.assert_allclose(draws.mean(axis=0), fitted.means, atol=0.03)
    at_least = np.sqrt(fitted.interaction.sd[0] ** 2 / 20 + fitted.residual.sd[0] ** 2 / 400)
    assert at_least * 0.9 < draws[:, 0, 0].std() < at_least * 1.4


def test_levels_that_differ_by_chance_are_pulled_together():
    equal = replace(TRUTH, composers=tuple(replace(one, means=3.0) for one in TRUTH.composers), clusters=3, cycles=4)
    for seed in range(20):
        few = mt.simulate_scores(equal, np.random.default_rng(seed))
        components = mt.variance_components(few)
        fitted = mt.fitted_truth(few, components)
        drawn = [mt.drawn_truth(few, fitted, components, np.random.default_rng(k)).means for k in range(50)]
        spread = np.ptp(np.mean(drawn, axis=0).mean(axis=1))
        assert spread < np.ptp(fitted.means.mean(axis=1)) + 0.1
        if components.part("agent").variance == 0:
            assert spread < 1e-9
    # One agent keeps its level.
    table = mt.simulate_scores(replace(TRUTH, composers=TRUTH.composers[:1]), np.random.default_rng(1))
    alone = (table, mt.fitted_truth(table, mt.variance_components(table)), mt.variance_components(table))
    assert mt.drawn_truth(*alone, np.random.default_rng(1)).means == pytest.approx(alone[1].means, abs=0.2)


def test_new_cycles_go_below_the_records(records):
    table, _, fitted = records
    more = mt.simulate_scores(replace(fitted, clusters=3, cycles=4), np.random.default_rng(3))
    both = mt.joined(table, more, np.random.default_rng(4))
    assert both.n == table.n + 36
    np.testing.assert_array_equal(both.scores[: table.n], table.scores)
    np.testing.assert_array_equal(both.first[table.n :], more.first)
    assert (len(both.clusters), both.trials["auditor"].shape) == (23, (both.n, 2))
    assert len(set(both.cycles)) == len(both.cycles) == both.cycle.max() + 1
    assert len(set(both.trajectories)) == both.n
    with pytest.raises(InputError, match="joined: agents: must be the same in both tables"):
        mt.joined(table, replace(more, agents=("x", "y", "z")), np.random.default_rng(1))
    # New records have formats that their agents used.
    mixed = replace(table, formats=("v1", "v2"), format=(table.agent == 1).astype(np.int64))
    more = mt.simulate_scores(replace(fitted, clusters=1, cycles=5), np.random.default_rng(3))
    both = mt.joined(mixed, more, np.random.default_rng(4))
    assert both.format[table.n :].tolist() == (more.agent == 1).astype(int).tolist()


def test_another_judge_agrees_as_the_panel_does(records):
    table, components, fitted = records
    wider = mt.with_judge(table, fitted, components, "bystander", "west", np.random.default_rng(5))
    judges = (("auditor", "north"), ("bystander", "west"), ("reader", "south"), ("skeptic", "east"))
    assert tuple(zip(wider.judges, wider.families, strict=True)) == judges
    np.testing.assert_array_equal(wider.scores[:, [0, 2, 3]], table.scores)
    ratings = mt.categories_of(wider.stacked[:, :, 0])
    with_it = [mt.mean_pairwise_kappa(ratings[:, [1, j]]) for j in (0, 2, 3)]
    assert np.mean(with_it) == pytest.approx(kappa(table), abs=0.06)
    with pytest.raises(InputError, match="must be a new one"):
        mt.with_judge(table, fitted, components, "reader", "west", np.random.default_rng(5))
    # More trials average out what changes between them.
    longer = mt.with_trials(table, fitted, "auditor", 8, np.random.default_rng(6))
    assert longer.trials["auditor"].shape == (table.n, 10)
    np.testing.assert_array_equal(longer.scores[:, 1:], table.scores[:, 1:])
    real = mt.simulate_scores(
        replace(TRUTH, panel=(replace(AUDITOR, trials=10), *TRUTH.panel[1:])), np.random.default_rng(7)
    )
    spreads = [[kappa(one), one.scores[:, 0].std()] for one in (longer, real)]
    assert spreads[0] == pytest.approx(spreads[1], abs=0.05)
    assert kappa(longer) > kappa(table)
    # Missing trials are drawn again.
    some = replace(table, trials={**table.trials, "auditor": table.trials["auditor"][:10]})
    assert mt.with_trials(some, fitted, "auditor", 1, np.random.default_rng(8)).trials["auditor"].shape == (table.n, 3)


# Simulated studies: their form is that of a judged one, and what is planted is there
NORTH, SOUTH, EAST = (mt.Panelist("auditor", "north"), mt.Panelist("reader", "south"), mt.Panelist("skeptic", "east"))
ASH, BIRCH = mt.Composer("ash", 3.4), mt.Composer("birch", 3.0)
PLAIN = mt.Truth(composers=(ASH, BIRCH), panel=(NORTH, SOUTH, EAST), dimensions=("clarity", "risk"))


def simulated(truth, seed=1):
    return mt.simulate_scores(truth, np.random.default_rng(seed))


def test_it_is_the_table_that_its_judgments_would_give(one_decision, one_judgment):
    """The same scores, handed over as records, make the same table and the same analysis."""
    table = simulated(replace(PLAIN, panel=(EAST, SOUTH, NORTH), composers=(BIRCH, ASH), cycles=4))
    decisions, judgments = [], []
    for i in range(table.n):
        agent, cycle = table.agents[table.agent[i]], 100 + int(table.cycle[i])
        decisions.append(one_decision(agent, cycle, f"week{table.cluster[i]:02d}", format="simulated"))
        for j, judge in enumerate(table.judges):
            scores = dict(zip(table.dimensions, table.scores[i, j].tolist(), strict=True))
            judgments.append(one_judgment(decisions[-1].record_id, judge, scores, family=table.families[j]))
    other = mt.score_table(judgments, decisions)
    for name in ("agents", "judges", "families", "dimensions", "agent", "cycle", "cluster", "scores", "weights"):
        np.testing.assert_array_equal(getattr(other, name), getattr(table, name), err_msg=name)
    for judge in table.judges:
        np.testing.assert_allclose(other.trials[judge], table.trials[judge])


def test_names_are_sorted_and_columns_go_with_them():
    composers = (mt.Composer("elm", (4.0, 2.0)), mt.Composer("ash", (2.0, 4.0)))
    truth = replace(PLAIN, composers=composers, dimensions=("risk", "clarity"), weights=(3.0, 1.0),
                    residual=mt.Spread(0.1), cycle=mt.Spread(0.0))  # fmt: skip
    table = simulated(truth)
    assert (table.agents, table.dimensions, list(table.weights)) == (("ash", "elm"), ("clarity", "risk"), [0.25, 0.75])
    assert table.scores[table.agent == 0].mean(axis=(0, 1)) == pytest.approx([4.0, 2.0], abs=0.2)
    # Equal seeds give equal tables and digests.
    one, other, third = simulated(PLAIN), simulated(PLAIN), simulated(PLAIN, 2)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert one.digest == other.digest != third.digest


@given(st.integers(0, 10_000), st.floats(0, 3), st.floats(-3, 3))
@settings(max_examples=30, deadline=None)
def test_every_call_is_a_whole_score_on_the_scale(seed, noise, severity):
    judge = mt.Panelist("auditor", "north", severity=severity, disagreement=mt.Spread(noise), trials=3)
    table = simulated(replace(PLAIN, panel=(judge,)), seed)
    assert np.abs(table.scores * 3 - np.rint(table.scores * 3)).max() < 1e-9
    assert 1 <= table.scores.min() <= table.scores.max() <= 5
    assert (table.trials["auditor"].shape, table.mean is table.scores) == ((table.n, 3), True)
    assert (table.first == np.rint(table.first)).all()


def test_severities_halos_and_bonuses_are_added():
    noise = mt.Spread(0.3)
    panel = (replace(NORTH, severity=-0.5, disagreement=noise), replace(SOUTH, halo=0.4, disagreement=noise),
             replace(EAST, bonus=(("birch", 0.3),), disagreement=noise))  # fmt: skip
    composers = (mt.Composer("ash", 3.0, family="south"), mt.Composer("birch", 3.0, family="west"))
    table = simulated(replace(PLAIN, panel=panel, composers=composers, clusters=200, interaction=mt.Spread(0.0)))
    found = np.array([table.scores[table.agent == a].mean(axis=(0, 2)) for a in range(2)])
    expected = np.array([[2.5, 3.4, 3.0], [2.5, 3.0, 3.3]])
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=0.05)
    # Terse texts are marked down.
    composer = mt.Composer("ash", 3.5, tokens=60.0, token_spread=0.5)
    truth = replace(PLAIN, composers=(composer,), panel=(replace(NORTH, terse_penalty=1.0),), clusters=200)
    table = simulated(truth)
    terse, score = table.lengths < truth.terse_tokens, table.scores.mean(axis=(1, 2))
    assert terse.mean() == pytest.approx(0.5, abs=0.05)
    assert score[terse].mean() - score[~terse].mean() == pytest.approx(-1.0, abs=0.1)
    # Agents attend as often as planted.
    table = simulated(replace(PLAIN, composers=(replace(ASH, attendance=0.3), BIRCH), clusters=100))
    counts = np.bincount(table.agent)
    within = pytest.approx(300, abs=3.3 * math.sqrt(1000 * 0.3 * 0.7))
    assert (counts[1], counts[0], len(table.cycles)) == (1000, within, 1000)
    # Cycles that nobody attended are not there.
    table = simulated(replace(PLAIN, composers=(mt.Composer("ash", 3.0, attendance=0.1),)))
    assert len(table.cycles) == table.n == len(np.unique(table.cycle))
    assert table.cluster.max() == len(table.clusters) - 1


def test_shared_draws_move_all_dimensions_together(study):
    together = mt.Spread(0.7, 1.0).draw(np.random.default_rng(1), (50,), 3)
    assert np.ptp(together, axis=1).max() < 1e-12
    half = mt.Spread((0.5, 1.0), 0.5).draw(np.random.default_rng(1), (40_000,), 2)
    np.testing.assert_allclose(half.std(axis=0), [0.5, 1.0], rtol=0.02)
    assert np.corrcoef(half.T)[0, 1] == pytest.approx(0.5, abs=0.02)
    # Equal levels are tie classes.
    truth = replace(PLAIN, composers=(mt.Composer("a", 3.0), mt.Composer("b", 2.0), mt.Composer("c", (3.0, 3.0))))
    assert (truth.tie_classes(), truth.calls) == ((("a", "c"),), 5 * 10 * 3 * 3)
    # It can be analysed.
    names = {item.name for item in mt.analyse(simulated(PLAIN), study(), rng=np.random.default_rng(1))}
    assert {"kappa.mean_pairwise", "contrast", "lofo.rho"} <= names


@pytest.mark.parametrize(("parts", "message"), [
    ({"composers": ()}, r"composers: at least one is needed \(got 0\)"),
    ({"panel": (mt.Panelist("a", "x"), mt.Panelist("a", "y"))}, "panel: each needs a unique name"),
    ({"clusters": 0}, r"clusters: must be at least 1 \(got 0\)"), ({"cycles": -1}, "cycles"),
    ({"residual": mt.Spread(-0.1)}, r"residual.sd: must be finite and at least 0 \(got -0.1\)"),
    ({"cycle": mt.Spread(0.1, 1.5)}, "cycle.correlation: must lie in 0..1"),
    ({"interaction": mt.Spread((0.1, 0.2, 0.3))}, "interaction.sd: must have one entry for each of the 2 dimensions"),
    ({"composers": (mt.Composer("a", (3.0,)),)}, "a.means: must be one number or one for each of the 2 dimensions"),
    ({"composers": (mt.Composer("a", math.nan),)}, "a.means: must be finite"),
    ({"composers": (mt.Composer("a", attendance=0.0),)}, "a.attendance: must lie above 0 and up to 1"),
    ({"composers": (mt.Composer("a", tokens=0.0),)}, "tokens must be above 0"),
    ({"panel": (mt.Panelist("a", "x", trials=0),)}, "a.trials: must be at least 1"),
    ({"panel": (mt.Panelist("a", "x", trial_noise=mt.Spread(math.inf)),)}, "a.trial_noise.sd"),
    ({"weights": (1.0,)}, "weights: must be 2 finite numbers"), ({"weights": (0.0, 0.0)}, "weights")
])  # fmt: skip
def test_a_truth_says_what_is_wrong_with_it(parts, message):
    with pytest.raises(InputError, match=message):
        replace(PLAIN, **parts)
    with pytest.raises(InputError, match="3 problems"):
        replace(PLAIN, clusters=0, cycles=0, residual=mt.Spread(-1.0))
