"""The interval of a share of calls or pairs that come in tasks, and what other statistics over tasks use."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import NotMeasurableError
from assaymark.metrology.datasheet import TaskBootstrap, share_interval
from assaymark.metrology.datasheet.estimates import dispersion, widened
from assaymark.quantiles import wilson_ends

SHARE, DIFFERENCE = (1.0, 0.0), (-1.0, 0.0, 1.0)

tables = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=2, max_size=14).filter(
    lambda rows: sum(map(any, rows)) > 1
)


def boot(seed=1, **parts):
    return TaskBootstrap(np.random.default_rng(seed), **parts)


@given(tables, st.sampled_from([(1.0, 0.0, 0.0), (1.0, 0.5, 0.0), DIFFERENCE, (0.0, 0.0, 2.5)]))
def test_the_interval_holds_the_estimate_and_stays_on_the_scale(rows, weights):
    counts, scale = np.array(rows), np.array(weights)
    found = share_interval(counts, scale)
    value = float(scale @ counts.sum(axis=0)) / counts.sum()
    assert scale.min() <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= scale.max()
    assert found.high > found.low


@given(tables)
def test_turning_the_question_around_turns_the_interval_around(rows):
    counts = np.array(rows)
    ours, other = share_interval(counts, [1, 0, 0]), share_interval(counts, [0, 1, 1])
    assert (ours.low, ours.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)
    up, down = share_interval(counts, DIFFERENCE), share_interval(counts, DIFFERENCE[::-1])
    assert (up.low, up.high) == pytest.approx((-down.high, -down.low), abs=1e-9)


@given(tables, st.randoms())
def test_neither_the_order_of_tasks_nor_empty_ones_count(rows, shuffle):
    mixed = [*rows, [0, 0, 0]]
    shuffle.shuffle(mixed)
    one, other = share_interval(rows, [1, 0.5, 0]), share_interval(mixed, [1, 0.5, 0])
    assert (other.low, other.high) == pytest.approx((one.low, one.high))
    assert one.method == other.method


def test_the_ends_are_the_jackknife_of_the_log_odds():
    """By definition, one task after the other, where the tasks differ enough for it to be the wider one."""
    counts = np.array([[9, 1], [1, 9], [7, 3], [2, 8], [5, 5], [8, 2]])

    def odds(table):
        hits, misses = table.sum(axis=0) + 0.5
        return math.log(hits / misses)

    without = [odds(np.delete(counts, g, axis=0)) for g in range(6)]
    error = math.sqrt(5 / 6 * sum((one - odds(counts)) ** 2 for one in without))
    low, high = odds(counts) + stats.t.ppf([0.025, 0.975], 5) * error
    found = share_interval(counts, SHARE)
    assert (found.low, found.high) == pytest.approx((special.expit(low), special.expit(high)))
    assert found.method == "delete-one-task jackknife of the log odds, t(5)"


def test_equal_tasks_are_no_certainty():
    """Where the tasks hardly differ the exact interval of as many independent calls is the wider one."""
    counts = np.array([[3, 7]] * 40)
    found = share_interval(counts, SHARE)
    assert (found.low, found.high) == pytest.approx(proportion_confint(120, 400, method="beta"))


def test_repeated_calls_bring_nothing_new():
    once = np.array([[3, 7], [4, 6], [2, 8], [0, 10]])
    one, thrice = share_interval(once, SHARE), share_interval(3 * once, SHARE, information=1 / 3)
    assert (thrice.low, thrice.high, thrice.effective) == pytest.approx((one.low, one.high, one.effective))
    even = np.array([[3, 7]] * 4)
    assert share_interval(3 * even, SHARE).high < share_interval(even, SHARE).high


@pytest.mark.parametrize("tasks", [2, 5, 60])
def test_at_an_edge_each_task_is_one_unit(tasks):
    none = share_interval([[0, 12]] * tasks, SHARE)
    assert (none.low, none.high) == pytest.approx(proportion_confint(0, tasks, method="beta"))
    assert none.method == f"Clopper-Pearson, each of {tasks} tasks one unit"
    every = share_interval([[12, 0]] * tasks, SHARE)
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1.0))
    nothing = share_interval([[0, 12, 0]] * tasks, DIFFERENCE)
    assert (nothing.low, nothing.high) == pytest.approx((-none.high, none.high))


def test_one_task_has_no_interval():
    found = share_interval([[3, 17], [0, 0]], SHARE)
    assert (found.low, found.high, found.method) == (None, None, "no interval: one task, needs two")
    with pytest.raises(NotMeasurableError):
        share_interval(np.zeros((3, 2)), SHARE)


@pytest.mark.parametrize("tasks", [5, 12, 20, 60])
def test_intervals_hold_what_was_planted(tasks, kept):
    """Tasks with 3 to 12 units and shares of their own, rare and even, of one sign and of two."""
    rng, runs = np.random.default_rng([9, tasks]), 250
    cells = [(SHARE, (p, 1 - p), alike) for p in (0.02, 0.2, 0.5, 0.98) for alike in (0.0, 0.3)]
    cells += [((1.0, 0.5, 0.0), (0.1, 0.1, 0.8), 0.3), (DIFFERENCE, (0.02, 0.88, 0.1), 0.3)]
    held = []
    for weights, shares, alike in cells:
        truth, hits = float(np.dot(weights, shares)), 0
        for _ in range(runs):
            own = rng.dirichlet(np.array(shares) * (1 - alike) / alike, tasks) if alike else shares
            found = share_interval(rng.multinomial(rng.integers(3, 13, tasks), own), weights)
            hits += found.low <= truth <= found.high
        assert kept(hits, runs, 0.93), (weights, shares, alike, hits)
        held.append(hits)
    assert kept(sum(held), runs * len(cells), 0.95)


def test_calls_as_independent_are_far_too_narrow(kept):
    rng, truth = np.random.default_rng(5), 0.4
    held = wilsons = 0
    for _ in range(200):
        hits = rng.binomial(12, rng.beta(truth, 1 - truth, 20))
        found = share_interval(np.stack([hits, 12 - hits], axis=1), SHARE)
        low, high = wilson_ends(hits.sum() / 240, 240, level=0.95)
        held += found.low <= truth <= found.high
        wilsons += low <= truth <= high
    assert kept(held, 200, 0.95)
    assert wilsons < 140


def test_percentiles_are_widened_as_the_t_test_widens():
    """For a mean, the widened normal interval is the t interval of the sample standard deviation."""
    for tasks in (5, 10, 30):
        z = stats.norm.ppf(0.5 + widened(0.95, tasks) / 2)
        assert z * np.sqrt((tasks - 1) / tasks) == pytest.approx(stats.t.ppf(0.975, tasks - 1))


def test_dispersion_is_pearsons_chi_square_over_its_degrees_of_freedom():
    counts = np.random.default_rng(1).integers(1, 20, (8, 3)).astype(float)
    found = stats.chi2_contingency(counts, correction=False)
    assert dispersion(counts) == pytest.approx(max(1.0, found.statistic / found.dof))
    assert dispersion(np.array([[3.0, 4.0]])) == 1.0
    assert dispersion(np.array([[3.0, 0.0], [4.0, 0.0]])) == 1.0


def test_a_statistic_that_is_often_undefined_has_no_interval():
    sums = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]])
    assert boot().ends(sums, lambda s: np.where(s[1] > 0, s[0] / np.where(s[1] > 0, s[1], 1.0), np.nan)) is None
    assert boot().ends(sums[:4], lambda s: s[0]) is None
