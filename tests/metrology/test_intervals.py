"""Wilson's interval, the inverse distribution function, and quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import Interval, wilson
from assaymark.metrology.intervals import inverse_distribution, normal_quantile, t_quantile


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_agrees_with_statsmodels(counts, level):
    expected = proportion_confint(*counts, alpha=1 - level, method="wilson")
    assert wilson(*counts, level=level) == pytest.approx(expected, abs=1e-9)


@given(st.integers(1, 500))
def test_wilson_reaches_the_edges_exactly(n):
    assert wilson(0, n)[0] == 0.0
    assert wilson(n, n)[1] == 1.0
    assert wilson(n, n)[0] == pytest.approx(1 - wilson(0, n)[1])


@pytest.mark.parametrize(
    ("successes", "n", "level", "message"),
    [
        (5, 4, 0.95, "must not exceed n = 4"),
        (-1, 4, 0.95, "successes: must be a whole number of at least 0"),
        (1.5, 4, 0.95, "successes"),
        (1, 4.5, 0.95, "n: must be a whole"),
        (math.nan, 4, 0.95, "successes"),
        (True, 4, 0.95, "successes"),
        ([1], 4, 0.95, "successes"),
        (1, 4, 0, "level"),
    ],
)
def test_wilson_says_what_is_wrong(successes, n, level, message):
    with pytest.raises(InputError, match=message):
        wilson(successes, n, level=level)


def test_a_share_of_nothing_is_not_measurable():
    with pytest.raises(NotMeasurableError, match="no items"):
        wilson(0, 0)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.floats(0, 1))
def test_the_inverse_distribution_is_numpys_inverted_cdf(values, q):
    x = np.array(values, dtype=float)
    boundary = q * x.size
    if abs(boundary - round(boundary)) > 1e-6:
        assert inverse_distribution(x, None, q) == np.quantile(x, q, method="inverted_cdf")


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=20), st.floats(0.001, 1))
def test_mass_is_repetition(items, q):
    values, mass = (np.array(column, dtype=float) for column in zip(*items, strict=True))
    assert inverse_distribution(values, mass, q) == inverse_distribution(np.repeat(values, mass.astype(int)), None, q)


def test_a_boundary_that_is_hit_exactly_counts():
    # (1 - 0.95) / 2 is a little more than 0.025 in binary; the 25th of 1,000 must still reach it.
    assert inverse_distribution(np.arange(1, 1001.0), None, (1 - 0.95) / 2) == 25
    assert inverse_distribution(np.arange(1, 1001.0), np.full(1000, 1.0), (1 - 0.95) / 2) == 25
    assert inverse_distribution(np.arange(5.0), None, 1.0) == 4


def test_quantiles_are_scipys():
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975))
    assert t_quantile(0.975, 4) == pytest.approx(stats.t.ppf(0.975, 4))


def test_an_interval_reads_as_one():
    assert str(Interval(-0.25, 1.0, "x")) == "[-0.2500, 1.0000] (x)"
