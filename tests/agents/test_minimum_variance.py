"""The risk minimiser: least variance within the rules, against slower solvers."""

from __future__ import annotations

import numpy as np
import pytest
from agent_contexts import NAMES, bars, fact, rows, seen
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from assaymark.agents import minimum_variance
from assaymark.agents.minimum_variance import bounded_minimum
from assaymark.errors import NotMeasurableError
from assaymark.records import Constraint

CALM = (0.0, 0.01, 0.02, 0.04, -0.01, 0.1, 0.2)
ROUGH = (0.0, 0.01, 0.02, 0.36, -0.2, 1.2, 0.8)
MIXED = {"Ash": ROUGH, "Beech": CALM, "Cedrel": ROUGH, "Damson": CALM, "Elder": CALM, "Fir": ROUGH}


def random_covariance(seed: int, size: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loads = rng.standard_normal((size, 2)) * 0.1
    return loads @ loads.T + np.diag(rng.uniform(0.01, 0.2, size) ** 2)


def best_of_a_solver(cov: np.ndarray, cap: float) -> float:
    """The least variance that a general solver finds under the same bounds."""
    size = len(cov)
    found = minimize(
        lambda w: w @ cov @ w * 100,
        np.full(size, 1 / size),
        jac=lambda w: 200 * cov @ w,
        bounds=[(0, cap)] * size,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda _: np.ones(size)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return float(found.fun) / 100


def test_uncorrelated_assets_are_weighted_by_inverse_variance():
    sizes = np.array([0.1, 0.2, 0.05])
    inverse = 1 / sizes**2
    assert bounded_minimum(np.diag(sizes**2), 1.0) == pytest.approx(inverse / inverse.sum())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8), st.sampled_from([0.5, 0.7, 1.0]))
def test_no_book_within_the_bounds_is_calmer(seed, size, cap):
    cov = random_covariance(seed, size)
    weights = bounded_minimum(cov, cap)
    variance = float(weights @ cov @ weights)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert weights.min() >= 0
    assert weights.max() <= cap + 1e-9
    assert variance <= best_of_a_solver(cov, cap) * (1 + 1e-6)


def test_a_weight_once_held_at_its_bound_is_let_go_again_where_that_helps():
    cov = random_covariance(33, 5)
    weights = bounded_minimum(cov, 0.5)
    assert weights @ cov @ weights == pytest.approx(best_of_a_solver(cov, 0.5), rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8))
@example(136, 8)  # one weight stops at its bound
def test_without_a_cap_an_interior_solution_has_equal_marginal_variance(seed, size):
    cov = random_covariance(seed, size)
    weights = bounded_minimum(cov, 1.0)
    if np.all(weights > 0):
        marginal = cov @ weights
        assert marginal == pytest.approx(np.full(size, marginal[0]), rel=1e-6)


def test_a_cap_that_leaves_one_book_gives_that_book():
    assert bounded_minimum(np.diag([0.01, 0.04, 0.09, 0.16]), 0.25).tolist() == pytest.approx([0.25] * 4)


def test_the_calm_names_are_held():
    made = minimum_variance.compose(seen(MIXED))
    assert (made.weights > 0).tolist() == [False, True, False, True, True, False]
    assert "Largest risk avoided: Ash, volatility 36.0%, max drawdown -20.0%." in made.portfolio


def test_correlations_of_the_bars_matter():
    rng = np.random.default_rng(3)
    shared = rng.standard_normal((60, 1))
    shocks = np.hstack([shared, shared + 0.05 * rng.standard_normal((60, 1)), rng.standard_normal((60, 1))])
    names = ("Ash", "Beech", "Cedrel")
    series = bars(names, 100 * np.cumprod(1 + 0.01 * shocks, axis=0))
    table = dict.fromkeys(names, (0.0, 0.0, 0.0, 0.15))
    made = minimum_variance.compose(seen(table, series=series))
    assert made.weights[2] > 0.4
    assert "correlations of 59 daily returns shrunk by a fifth" in made.portfolio
    alone = minimum_variance.compose(seen(table))
    assert alone.weights.max() - alone.weights.min() <= 0.05 + 1e-9
    assert "correlations taken as zero" in alone.portfolio


def test_bars_that_never_move_are_not_used_for_correlations():
    table = {"Ash": (0.0, 0.0, 0.0, 0.15), "Beech": (0.0, 0.0, 0.0, 0.0)}
    view = seen(table, series=bars(("Ash", "Beech"), np.column_stack([np.linspace(90, 110, 30), np.full(30, 1.0)])))
    cov = minimum_variance.covariance(view)
    assert cov[0, 1] == 0.0
    assert cov[1, 1] == pytest.approx(1e-8)
    assert "correlations taken as zero" in minimum_variance.compose(view).portfolio
    assert minimum_variance.compose(view).weights.tolist() == [0.0, 1.0]


def test_the_stated_volatility_of_the_book_is_that_of_its_weights():
    view = seen(MIXED)
    made = minimum_variance.compose(view)
    own = np.sqrt(made.weights @ minimum_variance.covariance(view) @ made.weights)
    assert f"Estimated volatility of the book {own:.1%}, ratio to Ash {own / 0.36:.2f}." in made.summary
    assert made.confidence == pytest.approx(min(max(0.8 * (1 - own / 0.36), 0.3), 0.8), abs=0.005)


@pytest.mark.parametrize(("volatility", "state"), [(0.3, "stressed"), (0.15, "elevated"), (0.05, "calm")])
def test_the_state_of_risk_is_read_from_the_benchmark(volatility, state):
    made = minimum_variance.compose(seen({"Ash": (0.0, 0.0, 0.0, volatility), "Beech": CALM}))
    assert f"Risk state {state}: Ash volatility {volatility:.1%}." in made.summary


def test_a_forced_extra_name_is_the_calmest_one_left():
    table = {
        name: (0.0, 0.0, 0.0, size) for name, size in {"Ash": 0.3, "Beech": 0.001, "Cedrel": 0.25, "Fir": 0.2}.items()
    }
    made = minimum_variance.compose(
        seen(table, constraints=(Constraint(kind="min_holdings", limit=2.0, unit="count"),))
    )
    assert made.weights.tolist() == [0.0, 0.95, 0.0, 0.05]


def test_rates_matter_only_to_a_book_with_bonds_and_a_known_rate():
    policy = fact("", "policy_rate", 3.25, "percent")
    made = minimum_variance.compose(seen(MIXED, facts=(*rows(MIXED), policy)))
    bonds = made.weights[1] + made.weights[4]
    assert made.risks[2] == f"Rates: policy rate 3.25%, bonds and bills {bonds:.0%} of NAV."
    assert len(minimum_variance.compose(seen(MIXED)).risks) == 2


@pytest.mark.parametrize(("sizes", "word"), [((0.04, 0.3, 0.3), "high"), ((0.1, 0.1, 0.1, 0.1, 0.1), "moderate")])
def test_concentration_is_the_two_largest_holdings(sizes, word):
    table = {name: (0.0, 0.0, 0.0, size) for name, size in zip(NAMES, sizes, strict=False)}
    made = minimum_variance.compose(seen(table))
    assert made.risks[0].startswith(f"Concentration {word}: ")
    assert f"{np.sort(made.weights)[-2:].sum():.0%} of NAV" in made.risks[0]


def test_a_book_of_one_name_needs_nothing_beside_it():
    made = minimum_variance.compose(seen({"Ash": (0.0, 0.0, 0.0, 0.1)}))
    assert made.weights.tolist() == [1.0]
    assert "avoided" not in made.portfolio
    assert made.risks[0] == "Concentration high: Ash 100% of NAV."
    assert made.confidence == 0.3


def test_an_asset_without_volatility_cannot_be_weighed():
    with pytest.raises(NotMeasurableError, match="no usable volatility for BEECH"):
        minimum_variance.compose(seen({"Ash": CALM, "Beech": (0.1,)}))
