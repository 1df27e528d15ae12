"""The anchor probe: a fair subsample, and what changes when the same records are graded under another rubric."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import anchor_measurements, cluster_t, stratified

Scores = dict[str, dict[str, float]]


def band(n: int, rate: float) -> tuple[int, int]:
    """Central 99.9 % of a binomial count."""
    low, high = stats.binom.ppf([0.0005, 0.9995], n, rate)
    return int(low), int(high)


@pytest.fixture
def plan(study):
    return study()


# --- the subsample --------------------------------------------------------------------------------------------------

sizes = st.dictionaries(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["w1", "w2", "w3"])), st.integers(1, 40), min_size=1
)


def strata_of(counts: dict[tuple[str, str], int]) -> dict[str, tuple[str, str]]:
    return {f"{agent}-{cluster}-{k:03d}": (agent, cluster) for (agent, cluster), n in counts.items() for k in range(n)}


@given(sizes, st.integers(1, 300), st.integers(0, 99))
def test_a_subsample_is_fair(counts, size, seed):
    strata = strata_of(counts)
    sample = stratified(strata, size, np.random.default_rng(seed))
    assert len(sample) == len(set(sample)) == min(size, len(strata))
    assert set(sample) <= set(strata)
    assert list(sample) == sorted(sample)
    places = Counter(strata[name] for name in sample)
    if size >= len(counts):
        assert set(places) == set(counts)
    for one, other in ((a, b) for a in counts for b in counts if counts[a] >= counts[b]):
        assert places[one] >= places[other] - 1  # a larger stratum never gets clearly less


@given(sizes, st.integers(1, 300), st.integers(0, 99))
def test_a_subsample_depends_on_the_generator_alone(counts, size, seed):
    strata = strata_of(counts)
    backwards = dict(reversed(strata.items()))
    assert stratified(strata, size, np.random.default_rng(seed)) == stratified(
        backwards, size, np.random.default_rng(seed)
    )


def test_shares_of_the_seed_design():
    """Four agents in five regimes, 50 cycles each: 120 trajectories are 6 of every stratum (section 5.6)."""
    strata = strata_of({(agent, cluster): 50 for agent in "abcd" for cluster in ("w1", "w2", "w3", "w4", "w5")})
    sample = stratified(strata, 120, np.random.default_rng(1))
    assert set(Counter(strata[name] for name in sample).values()) == {6}


def test_proportions_are_kept():
    strata = strata_of({("a", "w1"): 600, ("b", "w1"): 300, ("c", "w1"): 100})
    sample = stratified(strata, 100, np.random.default_rng(1))
    assert Counter(strata[name][0] for name in sample) == {"a": 60, "b": 30, "c": 10}


def test_every_trajectory_of_a_stratum_is_as_likely():
    strata = strata_of({("a", "w1"): 5, ("b", "w1"): 5})
    drawn = Counter(name for seed in range(2000) for name in stratified(strata, 4, np.random.default_rng(seed)))
    low, high = band(2000, 0.4)
    assert all(low <= drawn[name] <= high for name in strata)


def test_left_over_places_favour_nobody():
    """Three strata, four places: each gets the fourth in a third of the draws, whatever its name."""
    strata = strata_of({(agent, "w1"): 10 for agent in "abc"})
    extra: Counter[str] = Counter()
    for seed in range(900):
        places = Counter(strata[name][0] for name in stratified(strata, 4, np.random.default_rng(seed)))
        extra.update(agent for agent, n in places.items() if n == 2)
    low, high = band(900, 1 / 3)
    assert all(low <= extra[agent] <= high for agent in "abc")


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_a_subsample_needs_a_size(size):
    with pytest.raises(InputError, match="size: must be a whole number of at least 1"):
        stratified({"a": ("x", "w")}, size, np.random.default_rng(1))


# --- the shift ------------------------------------------------------------------------------------------------------


def graded(
    rng: np.random.Generator, shift: float = -0.4, *, clusters: int = 5, each: int = 24, own: float = 0.1
) -> tuple[Scores, Scores, dict[str, str], dict[str, str]]:
    """One judge on two dimensions under two rubrics; only ``limits`` moves, by an amount that varies by cluster."""
    before, after, agents, groups = {}, {}, {}, {}
    by_cluster = rng.normal(0, own, clusters)
    for k in range(clusters * each):
        name = f"t{k:04d}"
        agents[name], groups[name] = "abcd"[k % 4], f"w{k // each}"
        quality = 3.5 + rng.normal(0, 0.5)
        before[name] = {"limits": quality, "clarity": quality}
        moved = quality + shift + by_cluster[k // each] + rng.normal(0, 0.4)
        after[name] = {"limits": moved, "clarity": quality + rng.normal(0, 0.2)}
    return before, after, agents, groups


def run(before: Scores, after: Scores, agents: dict[str, str], groups: dict[str, str], plan: object) -> dict:
    found = anchor_measurements(before, after, agents, groups, frozenset({"limits"}), "auditor", "v1.1", plan)
    return {m.labels["dimension"]: m for m in found if m.name == "anchor.shift"}


def test_the_shift_is_a_paired_cluster_t_test(plan):
    before, after, agents, groups = graded(np.random.default_rng(1))
    found = run(before, after, agents, groups, plan)
    gaps = [after[name]["limits"] - before[name]["limits"] for name in before]
    expected = cluster_t(gaps, list(groups.values()))
    shift = found["limits"]
    assert (shift.value, shift.low, shift.high) == pytest.approx((expected.difference, expected.low, expected.high))
    assert (shift.detail["p"], shift.n, shift.unit) == (pytest.approx(expected.p), 120, "rubric points")
    assert (shift.detail["judge"], shift.detail["rubric"]) == ("auditor", "v1.1")
    assert {name: m.detail["changed"] for name, m in found.items()} == {
        "aggregate": True,
        "limits": True,
        "clarity": False,
    }
    assert found["aggregate"].value == pytest.approx((shift.value + found["clarity"].value) / 2)


def test_the_aggregate_has_the_plans_weights(study):
    before, after, agents, groups = graded(np.random.default_rng(2))
    found = run(before, after, agents, groups, study("[rubric.weights]\nlimits = 3\nclarity = 1"))
    assert found["aggregate"].value == pytest.approx(0.75 * found["limits"].value + 0.25 * found["clarity"].value)


def test_an_aggregate_handed_in_is_not_a_dimension(plan):
    before, after, agents, groups = graded(np.random.default_rng(3))
    with_it = {name: {**scores, "aggregate": 1.0} for name, scores in before.items()}
    assert run(with_it, after, agents, groups, plan) == run(before, after, agents, groups, plan)


def test_spread_order_and_flips(plan):
    levels = {"a": (4.0, 3.0), "b": (3.5, 3.6), "c": (3.0, 3.5), "d": (2.0, 2.0)}
    before, after, agents, groups = {}, {}, {}, {}
    for k, (agent, (old, new)) in enumerate(levels.items()):
        for cluster in range(3):
            name = f"{agent}{cluster}"
            agents[name], groups[name] = agent, f"w{cluster}"
            wobble = 0.1 * ((cluster + k) % 3 - 1)
            before[name], after[name] = {"limits": old + wobble}, {"limits": new - 2 * wobble}
    detail = run(before, after, agents, groups, plan)["limits"].detail
    assert detail["order_before"] == ["a", "b", "c", "d"]
    assert detail["order_after"] == ["b", "c", "a", "d"]
    assert detail["flips"] == 2
    old, new = (np.array([scores[name]["limits"] for name in scores]) for scores in (before, after))
    assert (detail["sd_before"], detail["sd_after"]) == pytest.approx((old.std(ddof=1), new.std(ddof=1)))
    assert detail["sd_ratio_low"] < new.std() / old.std() < detail["sd_ratio_high"]


def test_agents_that_tie_have_no_order_to_turn(plan):
    names = ["a0", "a1", "b0", "b1"]
    agents, groups = {n: n[0] for n in names}, {n: f"w{n[1]}" for n in names}
    before = {n: {"limits": 0.1 + 0.2 if n[0] == "a" else 0.3} for n in names}
    after = {n: {"limits": 1.0 if n[0] == "a" else 2.0} for n in names}
    detail = run(before, after, agents, groups, plan)["limits"].detail
    assert (detail["order_before"], detail["order_after"], detail["flips"]) == (["a", "b"], ["b", "a"], 0)


def test_only_trajectories_with_both_gradings_count(plan):
    before, after, agents, groups = graded(np.random.default_rng(4))
    lone = {**before, "only-before": {"limits": 1.0, "clarity": 1.0}}
    more = {**after, "only-after": {"limits": 5.0, "clarity": 5.0}}
    assert run(lone, more, agents, groups, plan) == run(before, after, agents, groups, plan)


def test_nothing_graded_twice_is_a_state(plan):
    found = run({"t": {"limits": 3.0}}, {}, {}, {}, plan)
    assert list(found) == ["aggregate", "limits"]
    for m in found.values():
        assert (m.value, m.state) == (None, "not measured: no trajectory was graded under both rubrics")


@pytest.mark.parametrize("n", [1, 2])
def test_one_cluster_has_no_interval(plan, n):
    names = [f"t{k}" for k in range(n)]
    scores = {name: {"limits": 3.0 + k} for k, name in enumerate(names)}
    found = run(scores, scores, dict.fromkeys(names, "a"), dict.fromkeys(names, "w"), plan)["limits"]
    assert (found.value, found.low, found.high, found.detail["p"]) == (0.0, None, None, 1.0)
    assert (found.detail["sd_ratio_low"], found.detail["sd_ratio_high"]) == (None, None)
    assert (found.detail["sd_before"] is None) == (n == 1)


def test_a_judge_that_gives_one_grade_has_no_spread_ratio(plan):
    before, after, agents, groups = graded(np.random.default_rng(5))
    constant = {name: {"limits": 3.0, "clarity": 3.0} for name in before}
    detail = run(constant, after, agents, groups, plan)["limits"].detail
    assert (detail["sd_before"], detail["sd_ratio_low"], detail["sd_ratio_high"]) == (0.0, None, None)


def test_gradings_must_name_the_same_dimensions(plan, study):
    before, after, agents, groups = graded(np.random.default_rng(6))
    after["t0001"] = {"limits": 3.0}
    with pytest.raises(InputError, match="t0001: both gradings must name clarity, limits"):
        run(before, after, agents, groups, plan)
    before, after, agents, groups = graded(np.random.default_rng(6))
    with pytest.raises(InputError, match="weights: must be one for each of clarity, limits"):
        run(before, after, agents, groups, study("[rubric.weights]\nlimits = 1"))


def test_planted_shift_and_spread_are_recovered_at_the_stated_rate(plan):
    shift = ratio = 0
    truth = np.sqrt((0.5**2 + 0.4**2 + 0.1**2) / 0.5**2)
    for seed in range(200):
        found = run(*graded(np.random.default_rng([61, seed])), plan)["limits"]
        shift += found.low <= -0.4 <= found.high
        ratio += found.detail["sd_ratio_low"] <= truth <= found.detail["sd_ratio_high"]
    low, high = band(200, 0.95)
    assert low <= shift <= high
    assert low <= ratio <= high


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.floats(-1, 1))
def test_a_shift_of_both_gradings_changes_nothing(study, seed, by):
    before, after, agents, groups = graded(np.random.default_rng(seed))
    moved = [{name: {d: s + by for d, s in one.items()} for name, one in scores.items()} for scores in (before, after)]
    for name, m in run(*moved, agents, groups, study()).items():
        other = run(before, after, agents, groups, study())[name]
        assert (m.value, m.low, m.high) == pytest.approx((other.value, other.low, other.high), abs=1e-9)
        assert (m.detail["order_after"], m.detail["flips"]) == (other.detail["order_after"], other.detail["flips"])
