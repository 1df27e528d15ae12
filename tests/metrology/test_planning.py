"""What a design can conclude: detectable effects, hopeless plans, and simulated error rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import minimum_detectable_effect, preflight, simulate_error_rate


@given(st.integers(1, 10_000), st.floats(0.1, 5), st.floats(0.001, 0.2), st.floats(0.5, 0.99), st.integers(1, 300))
def test_the_effect_has_the_stated_power(n, sd, alpha, power, comparisons):
    effect = minimum_detectable_effect(n, sd=sd, alpha=alpha, power=power, comparisons=comparisons)
    z = effect * math.sqrt(n) / sd - stats.norm.isf(alpha / 2 / comparisons)
    assert stats.norm.cdf(z) == pytest.approx(power, abs=1e-9)


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


def test_a_bootstrap_of_five_clusters_finds_an_order_among_equals_in_most_studies():
    rng = np.random.default_rng(5)
    bootstrap = simulate_error_rate("bootstrap", 5, studies=800, rng=rng)
    t = simulate_error_rate("cluster-t", 5, studies=4000, rng=rng)
    assert 0.78 < bootstrap.family_wise < 0.91
    assert 0.83 < bootstrap.coverage < 0.855
    assert 0.025 < t.family_wise <= 0.05 + 3.3 * math.sqrt(0.05 * 0.95 / 4000)
    assert t.coverage == pytest.approx(0.95, abs=0.005)


def test_a_bootstrap_of_twenty_clusters_covers_better():
    rate = simulate_error_rate("bootstrap", 20, studies=150, rng=np.random.default_rng(5))
    assert 0.91 < rate.coverage < 0.945
    assert rate.family_wise < 0.3


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"clusters": 1}, "clusters"),
        ({"agents": 1}, "agents"),
        ({"studies": 0}, "studies"),
        ({"alpha": 2.0}, "alpha"),
        ({"correlation": 1.0}, r"correlation: must be at least 0 and below 1 \(got 1.0\)"),
    ],
)
def test_the_simulation_says_what_is_wrong(parts, message):
    with pytest.raises(InputError, match=message):
        simulate_error_rate("cluster-t", **{"clusters": 5, "rng": np.random.default_rng(1), **parts})


def check(plan, agents=4, dimensions=6, clusters=5, cycles=200, **parts):
    pairs = math.comb(agents, 2)
    return preflight(
        plan, agents, dimensions, [clusters] * pairs, [cycles] * pairs, rng=np.random.default_rng(1), **parts
    )


def test_the_default_plan_can_reject(study):
    found = check(study())
    assert not found.can_never_reject
    assert found.smallest_adjusted == {"dimensions": 0.0, "aggregate": 0.0, "first": 0.0}
    assert (found.contrasts, found.resamples, found.median_cycles) == (36, 57_600, 200)
    assert found.mde == minimum_detectable_effect(200, alpha=0.025, comparisons=36)
    assert found.error_rate is None
    assert found.warnings == ()


def test_a_plan_that_does_not_share_alpha_has_the_sources_planning_value(study):
    """ValueBlindBench section 3.9 prints 0.29 without its n; 200 cycles and .05 over 36 contrasts give it."""
    found = check(study("inference = {share_alpha = false}"))
    assert found.resamples == 28_800
    assert found.mde == pytest.approx(0.2856, abs=5e-5)


def test_a_thousand_draws_cannot_pass_holm_over_36_contrasts(study):
    found = check(study('inference = {gating_test = "bootstrap", resamples = 1000}'), clusters=25)
    assert found.smallest_adjusted["dimensions"] == pytest.approx(0.0719, abs=5e-5)
    assert found.smallest_adjusted["aggregate"] == pytest.approx(12 / 1001)
    assert found.hopeless == ("dimensions",)
    assert found.can_never_reject
    assert (
        "dimensions contrasts can never be significant: the smallest p-value after Holm is 0.0719" in found.warnings[0]
    )
    assert found.error_rate is None  # 25 clusters are not few


def test_hopeless_contrasts_that_no_claim_rests_on_do_not_matter(study):
    plan = study('inference = {gating_test = "bootstrap", resamples = 1000}\nclaims = {dimensions = ["aggregate"]}')
    assert not check(plan, clusters=25).can_never_reject
    only_first = study('inference = {gating_test = "bootstrap", resamples = 1000}\nclaims = {pairs = false}')
    assert check(only_first, clusters=25).smallest_adjusted == {"first": pytest.approx(6 / 1001)}
    risk = study('claims = {first = false, dimensions = ["risk"]}')
    assert list(check(risk).smallest_adjusted) == ["dimensions"]


def test_three_enumerated_clusters_are_hopeless(study):
    found = check(study('inference = {gating_test = "bootstrap"}'), clusters=3)
    assert found.smallest_p == 2 / 27
    assert found.hopeless == ("dimensions", "aggregate", "first")


def test_a_bootstrap_gate_on_few_clusters_is_simulated_and_told(study):
    found = check(study('inference = {gating_test = "bootstrap"}'))
    assert 0.75 < found.error_rate.family_wise < 0.95
    assert found.warnings[0].startswith("the bootstrap gates 6 pairs with 5 to 5 common clusters; with 5 clusters")
    assert f"in {found.error_rate.family_wise:.0%} of 300 simulated studies (aim: 2.5 %)" in found.warnings[0]


def test_pairs_that_hardly_meet_and_missing_outsiders_are_told(study):
    rng = np.random.default_rng(1)
    found = preflight(study(), 3, 6, [0, 1, 5], [0, 4, 20], agent_families={"north", "south", "east", "x"}, rng=rng)
    assert found.never_met == 1
    assert found.median_cycles == 12
    assert "1 of 3 pairs of agents never meet" in found.warnings[0]
    assert "1 pairs share one cluster only" in found.warnings[1]
    assert "no judge stands apart" in found.warnings[2]
    assert not check(study(), agent_families={"north", "south"}).warnings


def test_one_judge_family_is_told(study):
    (warning,) = check(study(judges={"auditor": "north", "reader": "north"})).warnings
    assert warning.startswith("one judge family: agreement is not measurable")


def test_agents_that_never_meet_detect_nothing(study):
    found = check(study(), clusters=0, cycles=0)
    assert found.mde is None
    assert found.can_never_reject
    lonely = preflight(study(), 1, 6, [], [], rng=np.random.default_rng(1))
    assert (lonely.contrasts, lonely.mde, lonely.smallest_adjusted) == (0, None, {})


FLIP = 'inference = {gating_test = "sign-flip"}'


@pytest.mark.parametrize(
    ("clusters", "hopeless"),
    [(5, ("dimensions", "aggregate", "first")), (9, ("dimensions",)), (11, ("dimensions",)), (12, ())],
)
def test_a_sign_flip_gate_is_hopeless_until_two_to_the_clusters_outgrow_the_family(study, clusters, hopeless):
    found = check(study(FLIP), clusters=clusters)
    floor = 2.0 ** (1 - clusters)
    assert found.smallest_p == floor
    assert found.smallest_adjusted["dimensions"] == min(1.0, 36 * floor)
    assert found.hopeless == hopeless
    assert found.can_never_reject == bool(hopeless)
    if hopeless:
        assert found.warnings[0] == (
            f"{clusters} clusters have {2**clusters} patterns of signs, so no sign flip has a p-value below "
            f"2^(1-{clusters}) = {floor:.4g}, and Holm over 36 contrasts needs 12 common clusters before it can reject "
            "anything at alpha 0.025"
        )
    else:
        assert not found.warnings


def test_a_sign_flip_of_many_clusters_is_limited_by_its_draws(study):
    plan = study('inference = {gating_test = "sign-flip", resamples = 1000}')
    found = check(plan, clusters=17)
    assert found.smallest_p == 1 / 1001
    assert found.hopeless == ("dimensions",)
    assert "more resamples" in found.warnings[0]


def test_the_sign_flip_seldom_orders_equals(study):
    rate = simulate_error_rate("sign-flip", 12, studies=300, rng=np.random.default_rng(2))
    assert rate.family_wise <= stats.binom.ppf(0.9995, 300, 0.05) / 300
    assert rate.coverage == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("counts", [[1, 2], [[1, 2, 3]], [1.5, 2, 3], [-1, 2, 3]])
def test_preflight_wants_one_count_for_each_pair(study, counts):
    with pytest.raises(InputError, match="must be 3 counts, one for each pair"):
        preflight(study(), 3, 6, counts, [1, 2, 3], rng=np.random.default_rng(1))
