"""Quantiles against scipy's distributions, and Wilson's interval against its neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.metrology import wilson
from assaymark.quantiles import normal_quantile, t_quantile, wilson_ends


def test_quantiles_are_scipys():
    assert normal_quantile(0.975) == pytest.approx(stats.norm.ppf(0.975))
    assert t_quantile(0.975, 4) == pytest.approx(stats.t.ppf(0.975, 4))


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.99))
def test_the_interval_of_a_share_is_that_of_its_count(counts, level):
    k, n = counts
    assert wilson_ends(k / n, n, level=level) == wilson(k, n, level=level)


def test_the_interval_of_a_share_lies_between_its_neighbours():
    below, above = wilson(4, 10), wilson(5, 10)
    low, high = wilson_ends(0.45, 10, level=0.95)
    assert below[0] < low < above[0]
    assert below[1] < high < above[1]
    assert wilson_ends(0.0, 7.5, level=0.95)[0] == 0.0
    assert wilson_ends(1.0, 7.5, level=0.95)[1] == 1.0
