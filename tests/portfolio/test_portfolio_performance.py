"""Performance against the formulas written out with the standard library."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.errors import InputError
from assaymark.portfolio import Drawdown, max_drawdown, performance
from assaymark.portfolio.performance import FIGURES

paths = st.lists(st.floats(-0.3, 0.3).map(lambda r: round(r, 4)), min_size=2, max_size=60)


def compounded(returns: list[float], start: float = 1.0) -> list[float]:
    nav = [start]
    for r in returns:
        nav.append(nav[-1] * (1 + r))
    return nav


@given(paths, st.sampled_from([0.0, 0.04]), st.sampled_from([252, 12]))
def test_formulas_by_hand(returns: list[float], rf: float, periods: int) -> None:
    nav = compounded(returns)
    found = performance(nav, rf=rf, periods=periods)
    excess = statistics.fmean(returns) * periods - rf
    deepest = min(low / high - 1 for i, high in enumerate(nav) for low in nav[i:])
    below = math.sqrt(sum(min(r, 0) ** 2 for r in returns) / len(returns) * periods)
    spread = statistics.stdev(returns) * math.sqrt(periods)
    cagr = nav[-1] ** (periods / len(returns)) - 1
    assert found.n == len(returns)
    assert found.total_return == pytest.approx(nav[-1] - 1, abs=1e-12)
    assert found.cagr == pytest.approx(cagr, rel=1e-9, abs=1e-12)
    assert found.volatility == pytest.approx(spread, abs=1e-9)
    assert found.max_drawdown == pytest.approx(deepest, abs=1e-12)
    assert found.hit_rate == sum(r > 0 for r in returns) / len(returns)
    if len(set(returns)) > 1:
        assert found.sharpe == pytest.approx(excess / spread, rel=1e-6)
    else:
        assert found.sharpe is None
    if below > 0:
        assert found.sortino == pytest.approx(excess / below, rel=1e-9)
        assert found.calmar == pytest.approx(cagr / abs(deepest), rel=1e-9)
    else:
        assert found.sortino is None
        assert found.calmar is None
    nothing = {name for name in FIGURES if getattr(found, name) is None}
    assert nothing == set(found.undefined)
    assert all(reason.startswith("undefined: ") for reason in found.undefined.values())


@given(paths, st.floats(1e-3, 1e6))
def test_the_currency_does_not_matter(returns: list[float], start: float) -> None:
    one, other = performance(compounded(returns)), performance(compounded(returns, start))
    assert one.max_drawdown == pytest.approx(other.max_drawdown, abs=1e-12)
    assert one.volatility == pytest.approx(other.volatility, abs=1e-9)
    assert set(one.undefined) == set(other.undefined)


@given(paths)
def test_the_places_of_the_drawdown(returns: list[float]) -> None:
    nav = compounded(returns)
    found = max_drawdown(nav)
    if found.trough is None:
        assert found == Drawdown(0.0, None, None, None)
        assert nav == sorted(nav)
        return
    assert found.peak is not None
    assert nav[found.peak] == max(nav[: found.trough + 1])
    assert nav[found.trough] / nav[found.peak] - 1 == found.depth < 0
    if found.recovery is None:
        assert max(nav[found.trough :]) < nav[found.peak]
    else:
        assert nav[found.recovery] >= nav[found.peak] > max(nav[found.trough : found.recovery])


def test_the_first_value_counts_as_a_high() -> None:
    assert max_drawdown([1.0, 0.8, 0.9]) == Drawdown(pytest.approx(-0.2), 0, 1, None)  # type: ignore[arg-type]


def test_one_value_defines_nothing() -> None:
    found = performance([1.0])
    assert all(getattr(found, name) is None for name in FIGURES)
    assert set(found.undefined) == set(FIGURES)


def test_one_return_has_no_spread() -> None:
    found = performance([1.0, 0.9])
    assert set(found.undefined) == {"volatility", "sharpe"}
    assert found.max_drawdown == pytest.approx(-0.1)


def test_steady_growth_has_no_sharpe_sortino_or_calmar() -> None:
    found = performance([1.001**t for t in range(400)])
    assert set(found.undefined) == {"sharpe", "sortino", "calmar"}
    assert found.volatility == 0.0
    assert found.max_drawdown == 0.0
    assert found.hit_rate == 1.0


def test_growth_beyond_all_floats_is_undefined() -> None:
    found = performance([1.0, 0.5, 1e6])
    assert set(found.undefined) == {"cagr", "calmar"}


@pytest.mark.parametrize(
    ("nav", "said"),
    [
        ([1.0, -1.0], "greater than 0"),
        ([1.0, 0.0], "greater than 0"),
        ([1.0, math.nan], "finite"),
        ([1.0, math.inf], "finite"),
        ([], "at least one value"),
        ([[1.0]], "1 axes"),
    ],
)
def test_wrong_values_are_refused(nav: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        performance(nav)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        performance([0.0], rf=math.nan, periods=0)
    assert [problem.where for problem in caught.value.problems] == ["nav", "rf", "periods"]
