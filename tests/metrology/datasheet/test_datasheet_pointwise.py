"""The datasheet of a judge that scores single texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology.datasheet import pointwise_measurements


def measured(scores, tasks, levels, seed=1, **vacuum):
    found = pointwise_measurements(
        scores, tasks, levels, judge="j", dimension="risk", rng=np.random.default_rng(seed), **vacuum
    )
    return {m.name: m for m in found}


def ladder(rng, tasks, slope=0.6, noise=0.4):
    names = [f"t{t}" for t in range(tasks) for _ in range(6)]
    levels = np.tile(np.arange(6.0), tasks)
    base = np.repeat(rng.normal(1, 0.5, tasks), 6)
    return base + slope * levels + rng.normal(0, noise, levels.size), names, levels


def test_the_slope_is_the_mean_of_the_tasks_slopes():
    scores, names, levels = ladder(np.random.default_rng(1), 8)
    found = measured(scores, names, levels)["point.slope"]
    slopes = [stats.linregress(levels[k : k + 6], scores[k : k + 6]).slope for k in range(0, 48, 6)]
    assert found.value == pytest.approx(np.mean(slopes))
    expected = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert (found.n, found.n_of) == (8, "tasks")


def test_a_planted_slope_is_recovered(in_band):
    held = 0
    for seed in range(200):
        found = measured(*ladder(np.random.default_rng(seed), 10))["point.slope"]
        held += found.low <= 0.6 <= found.high
    assert in_band(held, 200, 0.95)


def test_a_planted_vacuum_score_is_recovered(in_band):
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([9, seed])
        tasks = np.repeat(np.arange(8), 3)
        scores = 1.4 + rng.normal(0, 0.2, 8)[tasks] + rng.normal(0, 0.3, 24)
        names = [f"t{t}" for t in tasks]
        found = measured([1.0], ["t"], [0.0], vacuum_scores=scores, vacuum_tasks=names)["point.vacuum_score"]
        held += found.low <= 1.4 <= found.high
    assert in_band(held, 200, 0.95)


def test_order_counts_neighbours_and_halves_ties():
    found = measured([1, 2, 2, 1, 3, 5], ["a"] * 4 + ["b"] * 2, [0, 1, 2, 3, 0, 1])["point.order"]
    assert found.value == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert (found.detail["right"], found.detail["tied"], found.detail["wrong"], found.n) == (2, 1, 1, 4)
    repeats = measured([1, 3, 2.5, 2.5], ["a"] * 4, [0, 0, 1, 1])["point.order"]
    assert repeats.value == 1.0


def test_planted_order_is_recovered(in_band):
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([8, seed])
        steps = rng.choice([-1.0, 0.0, 1.0], p=[0.2, 0.2, 0.6], size=(10, 5))
        scores = np.concatenate([np.zeros((10, 1)), steps.cumsum(axis=1)], axis=1).ravel()
        names = [f"t{k}" for k in range(10) for _ in range(6)]
        found = measured(scores, names, np.tile(np.arange(6), 10), seed)["point.order"]
        held += found.low <= 0.7 <= found.high
    assert in_band(held, 200, 0.95)


def test_a_judge_that_gives_one_score_sees_nothing_and_says_so():
    found = measured([3.0] * 12, ["a"] * 6 + ["b"] * 6, list(range(6)) * 2)
    assert found["point.slope"].value == 0
    assert found["point.slope"].low is None
    assert "no interval" in found["point.slope"].method
    assert found["point.order"].value == 0.5


def test_what_is_missing_is_a_state():
    found = measured([1.0, 2.0], ["a", "b"], [1.0, 1.0])
    assert found["point.vacuum_score"].state == "not measured: no rationales without content were scored"
    assert found["point.slope"].state == "undefined: every task was scored at one level, needs two"
    assert found["point.order"].state == "undefined: every task was scored at one level, needs two"
    empty = measured([], [], [], vacuum_scores=[1.0, 2.0], vacuum_tasks=["a", "b"])
    assert empty["point.slope"].state == "not measured: no ladder rationales were scored"
    assert empty["point.vacuum_score"].value == 1.5


@pytest.mark.parametrize(
    ("scores", "tasks", "levels", "message"),
    [
        ([1.0, np.nan], ["a", "b"], [0, 1], "not finite"),
        ([1.0, 2.0], ["a"], [0, 1], "tasks"),
        ([1.0, 2.0], ["a", "b"], [0], "equally long"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(scores, tasks, levels, message):
    with pytest.raises(InputError, match=message):
        measured(scores, tasks, levels)
