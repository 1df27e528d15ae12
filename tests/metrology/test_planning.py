"""What a design can conclude: detectable gaps, hopeless plans, and how often equal agents get an order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import minimum_detectable_effect, minimum_detectable_gap, order_analysis, preflight
from assaymark.metrology.contrasts import bootstrap_tests, holm_rows
from assaymark.metrology.design import detectable_levels, dimensions_claimed

AGGREGATE_ONLY = 'claims = {dimensions = ["aggregate"]}'


@given(st.integers(1, 10_000), st.floats(0.1, 5), st.floats(0.001, 0.2), st.floats(0.5, 0.99), st.integers(1, 300))
def test_the_effect_has_the_stated_power(n, sd, alpha, power, comparisons):
    effect = minimum_detectable_effect(n, sd=sd, alpha=alpha, power=power, comparisons=comparisons)
    z = effect * math.sqrt(n) / sd - stats.norm.isf(alpha / 2 / comparisons)
    assert stats.norm.cdf(z) == pytest.approx(power, abs=1e-9)


def test_the_source_prints_its_planning_value_without_its_n():
    """ValueBlindBench section 3.9 prints 0.29; 200 cycles and .05 over 36 contrasts give it."""
    assert minimum_detectable_effect(200, comparisons=36) == pytest.approx(0.2856, abs=5e-5)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"n": 0}, r"n: must be a finite number above 0 \(got 0\)"),
        ({"n": math.nan}, "n: must be"),
        ({"n": 10, "sd": -1.0}, "sd"),
        ({"n": 10, "alpha": 0.0}, "alpha"),
        ({"n": 10, "power": 1.0}, "power"),
        ({"n": 10, "comparisons": 0}, "comparisons"),
        ({"n": 10, "comparisons": 1.5}, "comparisons"),
    ],
)
def test_the_effect_says_what_is_wrong(parts, message):
    with pytest.raises(InputError, match=message):
        minimum_detectable_effect(**parts)


# --- equal agents -----------------------------------------------------------------------------------------------------


def equal_agents(clusters: int, studies: int, seed: int) -> np.ndarray:
    """Cluster means [studies, 6 dimensions, clusters, 4 agents] that differ by chance; half of it in all dimensions."""
    rng = np.random.default_rng(seed)
    own, shared = rng.standard_normal((2, studies, 6, clusters, 4))
    return (own + shared[:, :1]) / math.sqrt(2)


def test_the_sources_bootstrap_finds_an_order_among_equals_in_most_studies_of_five_clusters():
    tables = equal_agents(5, 800, seed=5)
    first, second = np.triu_indices(4, 1)
    sums = (tables[..., first] - tables[..., second]).transpose(2, 0, 1, 3).reshape(5, -1)
    (tested,) = bootstrap_tests([(sums, np.ones(5, dtype=int))], resamples=1, rng=None, level=0.95, intervals=[False])
    rows = tested.p.reshape(800, 36)
    assert 0.78 < (holm_rows(rows) <= 0.05).any(axis=1).mean() < 0.91
    assert 0.83 < (rows > 0.05).mean() < 0.855


@pytest.mark.parametrize("clusters", [5, 20])
def test_the_order_procedure_finds_one_in_at_most_one_of_twenty(clusters):
    """The aggregate and six dimensions together, with and without what pairs lend each other."""
    studies = 400
    for borrow in (True, False):
        false = 0
        for table in equal_agents(clusters, studies, seed=clusters):
            scales = {"aggregate": table.mean(axis=0)} | {f"d{k}": one for k, one in enumerate(table)}
            found = order_analysis(scales, borrow=borrow)
            false += bool(found.order or any(found.dimension_order.values()))
        assert false <= stats.binom.ppf(0.9995, studies, 0.05)


# --- before any judge is called ---------------------------------------------------------------------------------------


def check(plan, agents=4, dimensions=6, clusters=5, cycles=200, **parts):
    pairs = math.comb(agents, 2)
    return preflight(plan, agents, dimensions, [clusters] * pairs, [cycles] * pairs, **parts)


def test_the_default_plan_can_reject(study):
    found = check(study())
    assert not found.can_never_reject
    assert (found.test, found.clusters, found.cycles, found.contrasts) == ("moderated-t", 5, 200, 36)
    assert (found.untestable, found.conflicted, found.hopeless) == (0, 0, ())
    assert found.warnings == ("few clusters (5): the test rests on normal errors",)
    assert check(study(), clusters=6).warnings == ()


def test_the_smallest_gaps_are_those_of_the_noncentral_t(study):
    """Plain cluster t before data: what pairs will lend each other is not known, so it promises no more than that."""
    found, se = check(study(), clusters=12), 1 / math.sqrt(200)
    assert found.alpha_aggregate == pytest.approx(0.04)
    assert found.reach.leader == minimum_detectable_gap(se, 11, 0.02)
    assert found.reach.pair == minimum_detectable_gap(se, 11, 0.02 / 6)
    assert found.reach_half.leader == minimum_detectable_gap(1 / 10, 5, 0.02)
    # As many degrees of freedom as are ever lent: f = 1/2 nu (K - 1 - 1.5) (5 / nu)^2 from five clusters on.
    lent = 0.5 * 11 * 1.5 * (5 / 11) ** 2
    assert found.reach_borrowed.pair == minimum_detectable_gap(se, 11 + lent, 0.02 / 6)
    assert found.reach_borrowed.leader < found.reach.leader < found.reach_half.leader


def test_a_plan_of_ones_own_numbers(study):
    plan = study("inference = {mde_sd = 0.5, mde_power = 0.9, alpha = 0.1, aggregate_share = 0.6}")
    found, se = check(plan, clusters=10, cycles=50), 0.5 / math.sqrt(50)
    assert found.alpha_aggregate == pytest.approx(0.06)
    assert found.reach.leader == minimum_detectable_gap(se, 9, 0.03, power=0.9)


def test_alpha_is_shared_only_where_dimensions_are_claimed(study):
    assert check(study(AGGREGATE_ONLY)).alpha_aggregate == 0.05
    assert check(study(), dimensions=1).alpha_aggregate == 0.05
    assert check(study('claims = {dimensions = ["aggregate", "risk"]}')).alpha_aggregate == pytest.approx(0.04)
    assert [dimensions_claimed(study(extra)) for extra in ("", AGGREGATE_ONLY)] == [True, False]


@pytest.mark.parametrize(
    ("agents", "leader", "pair"),
    [(2, 0.05, 0.05), (3, 0.05 / 3, 0.05 / 3), (4, 0.025, 0.025 / 6), (8, 0.025, 0.025 / 28)],
)
def test_the_levels_of_a_leader_and_of_a_pair(agents, leader, pair):
    assert detectable_levels(agents, 0.05) == pytest.approx((leader, pair))


def test_the_gap_of_a_leader_is_found_as_often_as_stated(study):
    """Differences of 12 clusters with the standard deviation of the plan, tested by Student's t at each level."""
    found, studies = check(study(AGGREGATE_ONLY), clusters=12, cycles=120), 4000
    rng = np.random.default_rng(3)
    for gap, level in ((found.reach.leader, 0.025), (found.reach.pair, 0.025 / 6)):
        d = rng.normal(gap, 1 / math.sqrt(10), (studies, 12))
        low, high = stats.binom.ppf([0.0005, 0.9995], studies, 0.8)
        assert low <= (stats.ttest_1samp(d, 0, axis=1).pvalue <= level).sum() <= high


def test_own_variance_borrows_nothing(study):
    found = check(study('inference = {test = "own-variance"}'), clusters=12)
    assert (found.test, found.reach_borrowed) == ("own-variance", None)
    assert found.reach == check(study(), clusters=12).reach


def test_two_agents_and_three_clusters_have_nothing_to_borrow(study):
    two = check(study(), agents=2, clusters=12)
    assert two.reach_borrowed == two.reach
    assert two.reach.leader == two.reach.pair
    three = check(study(), clusters=3)
    assert three.reach_borrowed == three.reach
    assert three.reach_half is None


def test_two_clusters_are_hopeless(study):
    found = check(study(), clusters=2)
    assert found.hopeless == ("orders",)
    assert found.can_never_reject
    assert found.untestable == 6
    assert found.reach is found.reach_borrowed is found.reach_half is None
    assert found.warnings[0] == "this study cannot rank agents: 2 common clusters, 3 are needed"
    assert check(study(), clusters=1).warnings[0] == "this study cannot rank agents: 1 common cluster, 3 are needed"
    assert not check(study(), clusters=3).can_never_reject


def test_nothing_is_hopeless_where_nobody_claims_an_order(study):
    found = check(study("claims = {first = false, pairs = false}"), clusters=2)
    assert not found.can_never_reject
    assert found.warnings[0].startswith("this study cannot rank agents")


def test_clusters_that_follow_each_other_need_twelve(study):
    plan = study('inference = {cluster_order = "consecutive"}')
    found = check(plan, clusters=11)
    assert found.hopeless == ("orders",)
    assert found.warnings[0] == (
        "this study cannot rank agents: 11 common clusters, 12 that follow each other in time are needed"
    )
    season = check(plan, clusters=24)
    assert not season.can_never_reject
    assert season.reach.leader == minimum_detectable_gap(1 / math.sqrt(200), 11, 0.02)
    assert season.reach_borrowed is None
    assert season.reach_half.leader == minimum_detectable_gap(1 / 10, 5, 0.02)
    assert check(plan, clusters=23).reach_half is None


def test_clusters_with_dates_follow_each_other(study):
    weeks = [f"2026-W{week:02d}" for week in range(1, 12)]
    pairs = [11] * 6
    dated = preflight(study(), 4, 6, pairs, pairs, clusters=weeks)
    assert dated.hopeless == ("orders",)
    assert preflight(study(), 4, 6, pairs, pairs, clusters=[f"item{k}" for k in range(11)]).hopeless == ()
    declared = study('inference = {cluster_order = "exchangeable"}')
    assert preflight(declared, 4, 6, pairs, pairs, clusters=weeks).hopeless == ()


def test_pairs_that_hardly_meet_and_missing_outsiders_are_said(study):
    families = {"a": "north", "b": "south", "c": "east", "d": "x"}
    found = preflight(study(), 4, 6, [0, 1, 5, 5, 5, 5], [0, 4, 20, 20, 20, 20], agent_families=families)
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


def test_one_judge_family_is_said(study):
    (warning,) = check(study(judges={"auditor": "north", "reader": "north"}), clusters=6).warnings
    assert warning == "one judge family: agreement is not measurable, and no order can be claimed"


def test_agents_that_never_meet_detect_nothing(study):
    found = check(study(), clusters=0, cycles=0)
    assert found.reach is None
    assert found.can_never_reject
    lonely = preflight(study(), 1, 6, [], [])
    assert (lonely.contrasts, lonely.reach, lonely.hopeless, lonely.warnings) == (0, None, (), ())


@pytest.mark.parametrize("counts", [[1, 2], [[1, 2, 3]], [1.5, 2, 3], [-1, 2, 3]])
def test_preflight_wants_one_count_for_each_pair(study, counts):
    with pytest.raises(InputError, match="must be 3 counts, one for each pair"):
        preflight(study(), 3, 6, counts, [1, 2, 3])
