"""Differences of agents over periods: paired, over judges that graded both, and without each family."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology.season_contrasts import LEAST_PERIODS, drops, period_contrast

JUDGES, FAMILIES = ("a", "b", "c"), ("north", "south", "west")


def tables(seed: int = 0, periods: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(60, 5, (3, periods)), rng.normal(57, 5, (3, periods))


def test_it_is_the_t_test_on_the_medians_of_paired_differences():
    one, two = tables()
    found = period_contrast(one, two, JUDGES, FAMILIES)
    median = np.median(one - two, axis=0)
    known = stats.ttest_1samp(median, 0.0)
    ends = known.confidence_interval(0.95)
    assert found.difference == pytest.approx(median.mean())
    assert found.p == pytest.approx(known.pvalue)
    assert (found.low, found.high) == (pytest.approx(ends.low), pytest.approx(ends.high))
    assert found.periods == 9


def test_each_family_is_left_out_with_all_its_judges():
    one, two = tables(3)
    found = period_contrast(one, two, JUDGES, ("north", "south", "north"))
    assert set(found.without) == {"a, c", "b"}
    assert found.without["a, c"] == pytest.approx((one - two)[1].mean())
    assert found.without["b"] == pytest.approx(np.median((one - two)[[0, 2]], axis=0).mean())


def test_judges_of_one_family_cannot_be_left_out():
    assert drops(JUDGES, ("north",) * 3) == {}
    assert period_contrast(*tables(), JUDGES, ("north",) * 3).without == {}


def test_a_judge_that_graded_one_of_two_favours_nobody():
    """The harsh judge has no grade of the first in two periods: the others' differences stand there."""
    one, two = np.full((3, 6), 60.0), np.full((3, 6), 50.0)
    one[2], two[2] = 30.0, 20.0
    one[2, :2] = np.nan
    found = period_contrast(one, two, JUDGES, FAMILIES)
    assert found.difference == pytest.approx(10.0)
    assert found.without["a"] == pytest.approx(10.0)


def test_a_period_that_nobody_graded_twice_does_not_count():
    one, two = tables()
    one[:, 0] = np.nan
    two[:, 1] = np.nan
    assert period_contrast(one, two, JUDGES, FAMILIES).periods == 7


def test_without_the_only_judge_of_a_pair_nothing_is_left():
    one, two = tables()
    one[1:] = np.nan
    found = period_contrast(one, two, JUDGES, FAMILIES)
    assert found.without["a"] is None
    assert found.without["b"] == pytest.approx(found.difference)


def test_too_few_periods_are_not_tested():
    one, two = tables(periods=LEAST_PERIODS - 1)
    with pytest.raises(NotMeasurableError, match="3 common periods are needed"):
        period_contrast(one, two, JUDGES, FAMILIES)
    assert period_contrast(*tables(periods=LEAST_PERIODS), JUDGES, FAMILIES).periods == LEAST_PERIODS


@pytest.mark.parametrize(
    ("one", "two", "families"),
    [
        (np.zeros((3, 4)), np.zeros((3, 5)), FAMILIES),
        (np.zeros((2, 4)), np.zeros((2, 4)), FAMILIES),
        (np.zeros(4), np.zeros(4), FAMILIES),
        (np.zeros((3, 4)), np.zeros((3, 4)), ("north", "south")),
    ],
)
def test_tables_that_do_not_fit_are_refused(one: np.ndarray, two: np.ndarray, families: tuple[str, ...]):
    with pytest.raises(InputError):
        period_contrast(one, two, JUDGES, families)


points = arrays(float, (3, 6), elements=st.floats(0, 100))


@given(points, points, st.floats(-20, 20))
def test_swapped_agents_turn_the_sign_and_harsh_judges_change_nothing(one: np.ndarray, two: np.ndarray, harsh: float):
    found, turned = period_contrast(one, two, JUDGES, FAMILIES), period_contrast(two, one, JUDGES, FAMILIES)
    assert found.difference == pytest.approx(-turned.difference, abs=1e-7)
    assert found.p == pytest.approx(turned.p, abs=1e-6)
    shifted = np.array([[harsh], [0.0], [-harsh]])
    again = period_contrast(one + shifted, two + shifted, JUDGES, FAMILIES)
    assert again.difference == pytest.approx(found.difference, abs=1e-7)


@given(points, points)
def test_the_order_of_judges_changes_nothing(one: np.ndarray, two: np.ndarray):
    found = period_contrast(one, two, JUDGES, FAMILIES)
    again = period_contrast(one[::-1], two[::-1], JUDGES[::-1], FAMILIES[::-1])
    assert again.difference == pytest.approx(found.difference, abs=1e-9)
    assert {name: pytest.approx(value) for name, value in found.without.items()} == again.without
