"""Value at risk against order statistics, the normal law, and what must hold for any returns."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assaymark.errors import InputError, NotMeasurableError, UnknownNameError
from assaymark.portfolio import expected_shortfall, value_at_risk
from assaymark.portfolio.performance import Method

METHODS: tuple[Method, ...] = ("historical", "normal")
series = st.lists(st.floats(-0.5, 0.5).map(lambda r: round(r, 5)), min_size=2, max_size=80)
levels = st.sampled_from([0.5, 0.9, 0.95, 0.99])


def by_sorting(returns: list[float], level: float) -> float:
    """The quantile written out: between the two order statistics around its place."""
    ordered = sorted(returns)
    place = (len(ordered) - 1) * (1 - level)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return -(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@given(series, levels)
def test_historical_is_the_quantile_written_out(returns: list[float], level: float) -> None:
    found = value_at_risk(returns, level=level)
    assert found == pytest.approx(by_sorting(returns, level), abs=1e-12)
    tail = sorted(returns)[: math.floor(round((len(returns) - 1) * (1 - level), 6)) + 1]
    assert expected_shortfall(returns, level=level) == pytest.approx(-sum(tail) / len(tail), abs=1e-12)
    assert tail[-1] <= -found + 1e-12


@given(series, levels, st.sampled_from(METHODS), st.floats(0.1, 1.0), st.floats(-0.2, 0.2))
def test_laws_of_both_measures(returns: list[float], level: float, method: Method, size: float, shift: float) -> None:
    days = np.array(returns)
    for measure in (value_at_risk, expected_shortfall):
        one = measure(days, level=level, method=method)
        assert measure(size * days, level=level, method=method) == pytest.approx(size * one, abs=1e-12)
        assert measure(days + shift, level=level, method=method) == pytest.approx(one - shift, abs=1e-12)
        assert measure(days[::-1], level=level, method=method) == pytest.approx(one, abs=1e-15)
    worst = expected_shortfall(days, level=level, method=method)
    assert worst >= value_at_risk(days, level=level, method=method) - 1e-12
    if method == "historical":
        assert -days.max() - 1e-12 <= worst <= -days.min() + 1e-12


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_normal_agrees_with_scipy_and_recovers_a_planted_law(level: float) -> None:
    planted = stats.norm(0.001, 0.02)
    days = planted.ppf((np.arange(100_000) + 0.5) / 100_000)
    mean, spread = float(days.mean()), float(days.std(ddof=1))
    loss, tail = -planted.ppf(1 - level), -planted.expect(ub=planted.ppf(1 - level)) / (1 - level)
    for method in METHODS:
        assert value_at_risk(days, level=level, method=method) == pytest.approx(loss, rel=1e-3)
        assert expected_shortfall(days, level=level, method=method) == pytest.approx(tail, rel=1e-3)
    assert value_at_risk(days, level=level, method="normal") == pytest.approx(
        -stats.norm.ppf(1 - level, mean, spread), rel=1e-9
    )


def test_sixty_days_of_a_book_that_only_gains_lose_less_than_nothing() -> None:
    assert value_at_risk(np.linspace(0.01, 0.02, 60)) < 0
    # The third worst of 60 days is place 2 of 0..59; 0.05 * 59 = 2.95.
    days = np.arange(60.0) / 1000 - 0.01
    assert value_at_risk(days) == pytest.approx(-(days[2] + 0.95 * (days[3] - days[2])))
    assert expected_shortfall(days) == pytest.approx(-days[:3].mean())
    # 0.1 of 10 steps is 1 step, although 10 * (1 - 0.9) is a little less in floats.
    assert expected_shortfall(days[:11], level=0.9) == pytest.approx(-days[:2].mean())


def test_one_return_has_a_quantile_but_no_spread() -> None:
    assert value_at_risk([-0.03]) == expected_shortfall([-0.03]) == 0.03
    for measure in (value_at_risk, expected_shortfall):
        with pytest.raises(NotMeasurableError, match="one return has no standard deviation"):
            measure([-0.03], method="normal")


@pytest.mark.parametrize("measure", [value_at_risk, expected_shortfall])
def test_wrong_input_is_refused_all_at_once(measure: Callable[..., float]) -> None:
    for returns, said in (
        ([0.1, math.nan], "must be finite"),
        ([0.1, -math.inf], "must be finite"),
        ([0.1, -1.5], "not be below -1"),
        ([], "at least one value"),
        ([[0.1]], "1 axes"),
        (["a"], "must be numbers"),
    ):
        with pytest.raises(InputError, match=said):
            measure(returns)
    for level in (0.05, 1.0, math.nan, True, "0.95"):
        with pytest.raises(InputError, match=r"from 0\.5 to below 1"):
            measure([0.1], level=level)
    with pytest.raises(InputError) as caught:
        measure([math.nan], level=2)
    assert [problem.where for problem in caught.value.problems] == ["returns", "level"]
    with pytest.raises(UnknownNameError, match="historical"):
        measure([0.1], method="cornish-fisher")
