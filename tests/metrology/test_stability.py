"""Repetition stability and dropping judge families."""

from __future__ import annotations

import dataclasses
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import averaging, gated, leave_one_family_out, repetition_stability, score_table
from assaymark.metrology.kappa import average_ranks, spearman, spearman_columns


@pytest.mark.parametrize("ddof", [0, 1])
def test_repetition_stability_is_its_definition(ddof):
    trials = np.random.default_rng(1).normal(size=(20, 3))
    within = np.mean([np.var(row, ddof=ddof) for row in trials])
    assert repetition_stability(trials, ddof=ddof) == pytest.approx(1 - within / np.var(trials.ravel(), ddof=ddof))


def test_the_divisor_can_decide_a_gate():
    rng = np.random.default_rng(4)
    trials = rng.normal(size=(50, 1)) + rng.normal(0, 0.36, (50, 3))
    assert repetition_stability(trials, ddof=1) < 0.9 < repetition_stability(trials, ddof=0)
    assert repetition_stability(trials) == repetition_stability(trials, ddof=1)


def test_planted_repetition_noise_is_recovered():
    rng = np.random.default_rng(2)
    trials = rng.normal(0, 1, (4000, 1)) + rng.normal(0, 0.5, (4000, 3))
    assert repetition_stability(trials) == pytest.approx(1 - 0.25 / 1.25, abs=0.02)


@given(st.integers(0, 1000), st.floats(0.1, 10), st.floats(-5, 5))
def test_repetition_stability_has_no_unit(seed, scale, shift):
    trials = np.random.default_rng(seed).normal(size=(10, 2))
    assert repetition_stability(scale * trials + shift) == pytest.approx(repetition_stability(trials), abs=1e-9)


def test_identical_trials_are_perfectly_stable():
    assert repetition_stability([[1.0, 1.0], [2.0, 2.0]]) == 1.0


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([[1.0], [2.0]], "one trial, needs two"),
        ([[1.0, 2.0]], "one item, needs two"),
        ([[3.0, 3.0], [3.0, 3.0]], "every trial of all 2 items has one score"),
    ],
)
def test_repetition_stability_can_be_undefined(trials, message):
    with pytest.raises(NotMeasurableError, match=message):
        repetition_stability(trials)


@pytest.mark.parametrize(
    ("trials", "ddof", "message"),
    [
        ([1.0, 2.0], 1, "two axes"),
        ([[1.0, math.nan]], 1, "not finite"),
        (np.empty((0, 2)), 1, "empty"),
        ([[1.0, 2.0], [2.0, 3.0]], 2, r"ddof: must be 0 or 1 \(got 2\)"),
        ([[1.0, 2.0], [2.0, 3.0]], True, "ddof"),
    ],
)
def test_repetition_stability_says_what_is_wrong(trials, ddof, message):
    with pytest.raises(InputError, match=message):
        repetition_stability(trials, ddof=ddof)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12))
def test_spearman_agrees_with_scipy(items):
    a, b = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    assume(np.ptp(a) > 0 and np.ptp(b) > 0)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


def test_levels_that_differ_by_float_noise_tie():
    a = np.array([0.1 + 0.2, 0.3, 1.0])
    assert spearman(a, np.array([0.3, 0.3, 2.0])) == 1.0


def test_with_four_agents_any_change_of_order_is_below_nine_tenths():
    base = np.arange(4.0)
    found = {order: spearman(base, np.array(order, dtype=float)) for order in permutations(range(4))}
    assert [order for order, rho in found.items() if rho >= 0.9] == [(0, 1, 2, 3)]


def test_dropping_families_is_ranking_without_their_judges():
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(8, 4))
    found = leave_one_family_out(scores, ["n", "s", "n", "e"])
    assert list(found) == ["n", "s", "e"]
    for family, keep in (("n", [1, 3]), ("s", [0, 2, 3]), ("e", [0, 1, 2])):
        expected = stats.spearmanr(scores.mean(axis=1), scores[:, keep].mean(axis=1)).statistic
        assert found[family] == pytest.approx(expected)


@given(st.permutations(range(5)), st.integers(0, 500))
def test_the_order_in_which_agents_are_listed_does_not_matter(order, seed):
    scores = np.random.default_rng(seed).normal(size=(5, 3))
    one, other = leave_one_family_out(scores, list("abc")), leave_one_family_out(scores[order], list("abc"))
    assert one == pytest.approx(other)


def test_a_halo_for_one_agent_shows_when_its_family_is_dropped():
    scores = np.array([[3.0, 3.0, 5.0], [3.4, 3.4, 3.4], [3.2, 3.2, 3.2]])
    found = leave_one_family_out(scores, ["n", "s", "halo"])
    assert found["halo"] == -0.5
    assert found["n"] == found["s"] == 1.0


@pytest.mark.parametrize(
    ("scores", "families", "message"),
    [
        ([[1.0, 2.0], [2.0, 3.0]], ["n", "n"], "one judge family, needs two"),
        ([[1.0, 2.0]], ["n", "s"], "at least two agents"),
        ([[1.0, 2.0], [1.0, 2.0]], ["n", "s"], "all 2 agents are tied"),
    ],
)
def test_drops_can_be_undefined(scores, families, message):
    with pytest.raises(NotMeasurableError, match=message):
        leave_one_family_out(scores, families)


@pytest.mark.parametrize(
    ("scores", "families", "message"),
    [
        ([[1.0, 2.0], [2.0, 3.0]], ["n"], r"one family for each of the 2 judges \(got 1\)"),
        ([[1.0, 2.0], [2.0, 3.0]], [1, 2], "one family for each"),
        ([[1.0, math.nan], [2.0, 3.0]], ["n", "s"], "not finite"),
        ([1.0, 2.0], ["n", "s"], "two axes"),
    ],
)
def test_drops_say_what_is_wrong(scores, families, message):
    with pytest.raises(InputError, match=message):
        leave_one_family_out(scores, families)


@given(st.integers(0, 500), st.integers(1, 6))
def test_columns_of_ranks_are_scipys(seed, agents):
    x = np.random.default_rng(seed).integers(0, 4, (agents, 3)).astype(float)
    assert average_ranks(x).tolist() == stats.rankdata(x, axis=0).tolist()
    y = np.random.default_rng(seed + 1).integers(0, 4, (agents, 3)).astype(float)
    for k, rho in enumerate(spearman_columns(x, y)):
        if min(np.ptp(x[:, k]), np.ptp(y[:, k])) == 0:
            assert rho is None
        else:
            assert rho == spearman(x[:, k], y[:, k])


# --- the gate on averaging -------------------------------------------------------------------------------------------


def tried(make, study, extra="", **parts):
    decisions, judgments = make(trials=3, **parts)
    return score_table(judgments, decisions), study(extra), judgments


def test_a_judge_below_the_gate_counts_with_its_first_trial_only(make, study):
    table, plan, judgments = tried(make, study)
    assert repetition_stability(table.trials["auditor"]) < 0.9
    assert averaging(table, plan) == {"auditor": False}
    found = gated(table, plan)
    first = {(j.trajectory, j.judge): j.scores for j in judgments if j.trial == 1}
    for row, key in enumerate(found.trajectories):
        for j, judge in enumerate(found.judges):
            assert found.scores[row, j].tolist() == [first[key, judge][d] for d in found.dimensions]
    assert found.digest == table.digest
    assert (gated(found, plan).scores == found.scores).all()


def test_a_judge_that_reaches_the_gate_keeps_its_mean(make, study):
    table, plan, _ = tried(make, study, "gates = {repetition_stability = 0.5}")
    assert averaging(table, plan) == {"auditor": True}
    assert (gated(table, plan).scores == table.scores).all()
    # What was decided on honest records can be applied to cells, and undone.
    first = gated(table, plan, {"auditor": False})
    assert (first.scores != table.scores).any()
    assert (gated(first, plan, {"auditor": True}).scores == table.scores).all()


def test_grades_of_incomplete_records_follow_the_gate(make, study):
    decisions, judgments = make(trials=3)
    gone = {(d.record_id, "reader") for d in decisions[:7]} | {(decisions[9].record_id, "auditor")}
    broken = [
        dataclasses.replace(j, status="invalid", scores={}) if (j.trajectory, j.judge) in gone else j for j in judgments
    ]
    table = score_table(broken, decisions)
    found = gated(table, study(), {"auditor": False})
    assert found.grades.trajectories == table.grades.trajectories
    first = {(j.trajectory, j.judge): j.scores for j in broken if j.trial == 1 and j.status == "ok"}
    for row, key in enumerate(found.grades.trajectories):
        for j, judge in enumerate(found.judges):
            wanted = first.get((key, judge), dict.fromkeys(found.dimensions, math.nan))
            assert found.grades.values[row, j].tolist() == pytest.approx(list(wanted.values()), nan_ok=True)
    back = gated(found, study(), {"auditor": True}).grades.values
    assert np.array_equal(back, table.grades.values, equal_nan=True)
    assert not np.array_equal(back, found.grades.values, equal_nan=True)
    whole = gated(score_table(judgments, decisions), study(), {"auditor": False})
    assert whole.grades.values is whole.scores


def test_the_gate_is_inclusive_and_reads_the_plans_divisor(make, study):
    table, _, _ = tried(make, study)
    sharp, loose = (repetition_stability(table.trials["auditor"], ddof=ddof) for ddof in (1, 0))
    assert sharp < loose
    between = f"gates = {{repetition_stability = {(sharp + loose) / 2}}}"
    assert averaging(table, study(between)) == {"auditor": False}
    assert averaging(table, study(between), ddof=0) == {"auditor": True}
    assert averaging(table, study(f"{between}\ninference = {{ddof = 0}}")) == {"auditor": True}
    assert averaging(table, study(f"gates = {{repetition_stability = {sharp + 1e-10}}}")) == {"auditor": True}


def test_one_trial_is_nothing_to_average(make, study):
    decisions, judgments = make()
    table = score_table(judgments, decisions)
    assert averaging(table, study()) == {}
    assert table.first is table.mean is table.repeats is None
    assert gated(table, study()) is table


def test_a_stability_that_cannot_be_measured_does_not_pass(make, study):
    decisions, judgments = make(trials=2)
    broken = [
        dataclasses.replace(j, status="invalid", scores={}) if (j.judge, j.trial) == ("auditor", 1) else j
        for j in judgments
    ]
    table = score_table(broken, decisions)
    assert averaging(table, study("gates = {repetition_stability = 0.0}")) == {"auditor": False}
    # The first usable trial is the second one; no trajectory is lost.
    assert (gated(table, study()).scores == table.scores).all()


def test_the_noise_floor_follows_the_gate(make, study, one_decision, one_judgment):
    decisions, judgments = make(trials=3)
    again = one_decision("ash", 0, "week00", replicate=2)
    more = [
        one_judgment(again.record_id, judge, {"clarity": s, "evidence": s, "risk": s}, trial=trial)
        for judge, scores in (("auditor", (2.0, 5.0, 5.0)), ("reader", (3.0,)), ("skeptic", (4.0,)))
        for trial, s in enumerate(scores, 1)
    ]
    table = score_table([*judgments, *more], [*decisions, again])
    assert table.replicates["ash"][0][1] == pytest.approx((4.0 + 3.0 + 4.0) / 3)
    assert gated(table, study()).replicates["ash"][0][1] == pytest.approx((2.0 + 3.0 + 4.0) / 3)
