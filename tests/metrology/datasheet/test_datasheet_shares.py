"""The interval of a share of pairs in tasks, and the parts it is chosen from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import NotMeasurableError
from assaymark.metrology.datasheet import TaskBootstrap, share_interval
from assaymark.metrology.datasheet.shares import dispersion, widened

tables = st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=1, max_size=14).filter(
    lambda rows: sum(map(sum, rows)) > 0
)


def boot(seed=1, **parts):
    return TaskBootstrap(np.random.default_rng(seed), **parts)


@given(tables, st.sampled_from([(1.0, 0.0, 0.0), (1.0, 0.5, 0.0), (-1.0, 0.0, 1.0)]))
def test_the_interval_holds_the_estimate_and_stays_on_the_scale(rows, weights):
    counts, scale = np.array(rows), np.array(weights)
    found = share_interval(counts, scale, boot(resamples=200))
    value = float(scale @ counts.sum(axis=0)) / counts.sum()
    assert scale.min() <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= scale.max()
    assert found.high > found.low


@given(tables)
def test_turning_the_question_around_turns_the_interval_around(rows):
    counts = np.array(rows)
    ours = share_interval(counts, np.array([1.0, 0.0, 0.0]), boot(resamples=200))
    other = share_interval(counts, np.array([0.0, 1.0, 1.0]), boot(resamples=200))
    assert ours.dirichlet == pytest.approx((1 - other.dirichlet[1], 1 - other.dirichlet[0]), abs=1e-9)


def test_of_a_share_the_dirichlet_is_the_beta_posterior():
    counts = np.array([[3, 17]])
    found = share_interval(counts, np.array([1.0, 0.0]), boot())
    assert (found.low, found.high) == pytest.approx(stats.beta(3.5, 17.5).interval(0.95))
    assert "Dirichlet-multinomial over 1 task," in found.method
    assert found.bootstrap is None


def test_edges_are_edges_but_never_without_width():
    none = share_interval(np.array([[0, 6]] * 10), np.array([1.0, 0.0]), boot())
    assert (none.low, none.bootstrap) == (0.0, None)
    assert 0 < none.high < 0.06
    every = share_interval(np.array([[6, 0]] * 10), np.array([1.0, 0.0]), boot())
    assert (every.low, every.high) == pytest.approx((1 - none.high, 1.0))
    with pytest.raises(NotMeasurableError):
        share_interval(np.zeros((3, 2)), np.array([1.0, 0.0]), boot())


def test_the_bootstrap_is_printed_where_it_can_be_trusted():
    counts = np.array([[2, 4], [3, 3], [1, 5], [4, 2], [2, 4], [3, 3], [2, 4], [1, 5], [3, 3], [2, 4]])
    weights = np.array([1.0, 0.0])
    many = share_interval(counts, weights, boot())
    assert many.method == "task-cluster bootstrap, 2000 resamples of 10 tasks, widened percentiles"
    assert (many.low, many.high) == many.bootstrap
    assert "Dirichlet" in share_interval(counts[:9], weights, boot()).method
    assert "Dirichlet" in share_interval(np.clip(counts - [2, 0], 0, None), weights, boot()).method
    six = share_interval(counts[:6], weights, boot())
    assert six.bootstrap is not None
    assert share_interval(counts[:4], weights, boot()).bootstrap is None


def test_empty_tasks_do_not_count():
    counts = np.array([[2, 4], [3, 3], [0, 0], [1, 5]])
    weights = np.array([1.0, 0.0])
    assert share_interval(counts, weights, boot()) == share_interval(counts[[0, 1, 3]], weights, boot())


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
