"""The smallest detectable gap: against numerical integration, another library, and its own meaning."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError
from assaymark.metrology import minimum_detectable_gap
from assaymark.metrology.moderated import noncentral_tail


def power(gap, df, alpha):
    critical = stats.t.ppf(1 - alpha / 2, df)
    return noncentral_tail(critical, df, gap) + noncentral_tail(critical, df, -gap)


@given(st.floats(1, 300), st.floats(1e-3, 0.2), st.floats(0.3, 0.99))
def test_the_gap_is_found_with_the_power_asked_for(df, alpha, wanted):
    assert power(minimum_detectable_gap(1.0, df, alpha, power=wanted), df, alpha) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("df", [1, 1.5, 2.5, 4, 11, 40, 400])
@pytest.mark.parametrize("critical", [1.5, 4.0, 60.0])
@pytest.mark.parametrize("share", [-0.1, 0.0, 0.6, 1.0, 1.7])
def test_the_tail_is_the_integral_over_the_chi_variable(df, critical, share):
    shift = share * critical
    u = np.linspace(-60, 3, 1_000_001)  # the logarithm of the chi variable
    density = stats.chi(df, scale=1 / math.sqrt(df)).pdf(np.exp(u)) * np.exp(u)
    value = (density * stats.norm.cdf(shift - critical * np.exp(u))).sum() * (63 / 1_000_000)
    assert noncentral_tail(critical, df, shift) == pytest.approx(value, abs=1e-11)


@pytest.mark.parametrize(
    ("df", "critical", "shift"), [(4, 2.776, 3.0), (11, 2.2, 2.9), (60, 2.0, 0.5), (1e5, 1.96, 2.8)]
)
def test_the_tail_is_that_of_another_library_where_it_has_one(df, critical, shift):
    assert noncentral_tail(critical, df, shift) == pytest.approx(stats.nct.sf(critical, df, shift), abs=1e-9)


@pytest.mark.parametrize(("clusters", "short"), [(4, 0.34), (5, 0.26), (12, 0.09), (60, 0.02)])
def test_the_normal_approximation_asks_for_too_little(clusters, short):
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert 1 - z / minimum_detectable_gap(1.0, clusters - 1, 0.05) == pytest.approx(short, abs=0.006)


def test_with_many_degrees_of_freedom_it_is_the_normal_one():
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert minimum_detectable_gap(1.0, 1e7, 0.05) == pytest.approx(z, abs=1e-5)


def test_it_is_found_by_simulation():
    gap = minimum_detectable_gap(1.0, 5, 0.01)
    values = np.random.default_rng(1).normal(gap, math.sqrt(6), (40_000, 6))
    p = stats.ttest_1samp(values, 0, axis=1).pvalue
    assert (p <= 0.01).mean() == pytest.approx(0.8, abs=0.008)


def test_it_is_in_the_unit_of_the_standard_error_and_grows_with_what_is_asked():
    assert minimum_detectable_gap(0.2, 7, 0.05) == pytest.approx(2 * minimum_detectable_gap(0.1, 7, 0.05))
    assert minimum_detectable_gap(1, 7, 0.05, power=0.9) > minimum_detectable_gap(1, 7, 0.05)
    assert minimum_detectable_gap(1, 7, 0.01) > minimum_detectable_gap(1, 7, 0.05)
    assert minimum_detectable_gap(1, 5, 0.05) > minimum_detectable_gap(1, 7, 0.05)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"se": 0.0}, "se"),
        ({"se": math.nan}, "se"),
        ({"df": -1.0}, "df"),
        ({"df": math.inf}, "df"),
        ({"alpha": 0.0}, "alpha"),
        ({"power": 1.0}, "power"),
        ({"power": 0.05}, "above alpha"),
    ],
)
def test_what_is_wrong_is_said(arguments, name):
    with pytest.raises(InputError, match=name):
        minimum_detectable_gap(**{"se": 0.1, "df": 4.0, "alpha": 0.05, "power": 0.8} | arguments)
