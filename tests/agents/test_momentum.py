"""The trend follower: what it buys, what it expects, and which sentence it chooses."""

from __future__ import annotations

import numpy as np
import pytest
from agent_contexts import fact, rows, seen

from assaymark.agents import momentum
from assaymark.errors import NotMeasurableError
from assaymark.records import Constraint

STRONG = (0.02, 0.06, 0.15, 0.2, -0.05, 1.1, 0.9)
MILD = (0.01, 0.02, 0.04, 0.1, -0.02, 0.5, 0.5)
QUIET = (0.0, 0.001, 0.003, 0.002, 0.0, 0.0, 0.0)
WEAK = (-0.02, -0.06, -0.12, 0.3, -0.2, 0.9, 0.7)
BULL = {"Ash": MILD, "Beech": STRONG, "Cedrel": MILD, "Damson": QUIET, "Elder": WEAK, "Fir": QUIET}
BEAR = {"Ash": WEAK, "Beech": WEAK, "Cedrel": (0.01, *WEAK[1:]), "Damson": QUIET, "Elder": WEAK}


def composed(table, **changes):
    return momentum.compose(seen(table, **changes))


def test_the_strongest_gets_the_most_and_the_weak_nothing():
    made = composed(BULL)
    assert int(np.argmax(made.weights)) == 1
    assert made.weights[4] == 0
    assert made.weights[0] == made.weights[2]


def test_the_forecast_is_a_quarter_of_the_mean_daily_pace_for_five_sessions():
    made = composed(BULL)
    pace = (0.06 / 21 + 0.15 / 63) / 2
    assert made.forecast[1] == round(100 * 0.25 * 5 * pace, 2)
    assert made.book_forecast == round(sum(w * f for w, f in zip(made.weights, made.forecast, strict=True)), 2)
    assert f"I expect {made.book_forecast:.2f}% from this book" in made.portfolio


def test_confidence_is_the_share_of_returns_that_are_positive():
    assert composed({"Ash": STRONG}).confidence == 0.8
    assert "because all three trailing returns" in composed({"Ash": STRONG}).portfolio
    half = composed({"Ash": (-0.01, 0.05, 0.1), "Beech": (-0.01, 0.05, 0.1)})
    assert half.confidence == pytest.approx(0.4 + 0.4 * 4 / 6, abs=0.005)
    assert "since only four of the six trailing returns" in half.portfolio


def test_a_falling_market_is_met_by_what_still_holds():
    made = composed(BEAR)
    assert "Most of the market is falling: only one of the five" in made.summary
    assert int(np.argmax(made.weights)) == 3


def test_rules_that_ask_for_more_names_are_met_by_the_next_best():
    rule = (
        Constraint(kind="min_holdings", limit=3.0, unit="count"),
        Constraint(kind="max_weight", limit=0.5, unit="nav"),
    )
    less_weak = (-0.01, -0.03, -0.05, 0.2)
    made = composed({"Ash": WEAK, "Beech": less_weak, "Cedrel": MILD, "Damson": WEAK}, constraints=rule)
    assert made.weights[2] == 0.5
    assert made.weights[1] > 0
    assert "held for want of anything stronger" in made.portfolio
    everything_falls = composed(dict.fromkeys(("Ash", "Beech", "Cedrel", "Damson"), WEAK), constraints=rule)
    assert "Even the best of them, Ash Holdings, is down 12.0%" in everything_falls.summary
    assert "So is Beech Holdings" in everything_falls.portfolio


@pytest.mark.parametrize(
    ("returns", "said"),
    [
        ((0.01, 0.02, 0.03), "because every window points the same way: up 1.0% over 5 sessions"),
        ((-0.01, 0.02, 0.03), "has paused, yet the larger move is intact: down 1.0%"),
        ((0.01, -0.001, 0.03), "has shaken off a setback"),
        ((0.01, 0.09, -0.03), "has not yet made up its earlier loss"),
        ((0.01, -0.02, -0.03), "held for want of anything stronger"),
        ((0.0001, 0.02, 0.03), "unchanged over 5 sessions"),
    ],
)
def test_a_holding_is_described_by_its_windows(returns, said):
    assert said in composed({"Ash": returns}).portfolio


def test_what_has_been_said_is_said_more_briefly_the_next_time():
    made = composed({"Ash": STRONG, "Beech": STRONG})
    assert made.portfolio.count("because every window points the same way") == 1
    assert "Beech Holdings rises in every window too" in made.portfolio
    assert made.portfolio.count("tolerable") == 1


@pytest.mark.parametrize(
    ("volatility", "said"),
    [(0.30, "must be left quickly"), (0.12, "tolerable"), (0.03, "steadies the rest")],
)
def test_volatility_is_weighed(volatility, said):
    text = composed({"Ash": (0.01, 0.02, 0.03, volatility)}).portfolio
    assert f"Ash volatility is {volatility:.1%}, " in text
    assert said in text


@pytest.mark.parametrize(("beta", "said"), [(0.95, "undiluted"), (0.4, "part of any fall"), (0.1, "in each name")])
def test_the_common_shock_is_read_from_beta(beta, said):
    made = composed({"Ash": STRONG, "Beech": (*STRONG[:5], beta)})
    assert f"Beech Holdings has a beta of {beta:.2f} to Ash Holdings" in made.risks[1]
    assert said in made.risks[1]


@pytest.mark.parametrize(
    ("economy", "said"),
    [
        ({"credit_spread": 310.0, "inflation_yoy": 6.0, "policy_rate": 3.0}, "a credit spread of 310 bps"),
        ({"credit_spread": 90.0, "inflation_yoy": 6.0, "policy_rate": 3.0}, "inflation at 6.0%"),
        ({"credit_spread": 90.0, "inflation_yoy": 2.0, "policy_rate": 3.0}, "policy rate stands at 3.00%"),
        ({}, None),
    ],
)
def test_the_economic_risk_is_the_one_that_presses_most(economy, said):
    facts = tuple(fact("", name, value, "percent") for name, value in economy.items())
    made = composed(BULL, facts=rows(BULL) + facts)
    assert len(made.risks) == (3 if said else 2)
    assert said is None or said in made.risks[-1]


def test_the_exit_rule_fits_the_holding():
    assert "when its return over 21 sessions turns negative" in composed({"Ash": STRONG}).risks[0]
    assert "is not positive, so I would cut it" in composed({"Ash": WEAK}).risks[0]


def test_a_single_window_is_enough_to_follow():
    made = composed({"Ash": (0.02,), "Beech": (-0.03,)})
    assert made.weights.tolist() == [1.0, 0.0]
    assert "latest swing" not in made.summary
    assert "Beech Holdings was considered and left out" in made.portfolio


def test_without_returns_there_is_nothing_to_follow():
    with pytest.raises(NotMeasurableError, match="no trailing return for BEECH"):
        composed({"Ash": STRONG, "Beech": ()})


@pytest.mark.parametrize(
    ("swing", "said"), [(0.01, "confirms its direction"), (-0.01, "runs against its trend"), (0, "")]
)
def test_the_latest_swing_of_the_benchmark_is_weighed(swing, said):
    summary = composed({"Ash": (swing, 0.02, 0.03)}).summary
    assert said in summary
    assert ("latest swing" in summary) == bool(said)
