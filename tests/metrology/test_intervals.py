"""Wilson's interval of a count, and what an interval looks like."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from assaymark.errors import InputError, NotMeasurableError
from assaymark.metrology import Interval, wilson


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


def test_an_interval_reads_as_one():
    assert str(Interval(-0.25, 1.0, "x")) == "[-0.2500, 1.0000] (x)"
