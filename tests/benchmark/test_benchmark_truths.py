"""Truths of both conventions: by their definitions, against other solvers, and by their laws."""

# ruff: noqa: I001

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from bench_worlds import world
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assaymark.benchmark import (
    AGGRESSIVE, BALANCED, CONSERVATIVE, PROFILES, BenchMarket, MarketWindow, ahead_of, choose_universe, oracle_weights,
    risk_of, s1_score, s2_score, s4_score, s5_score, signals_of, views_of, weight_accuracy, windows_of,
)  # fmt: skip
from assaymark.errors import InputError, NotMeasurableError
from assaymark.market import synthetic_history
from assaymark.portfolio import RISK_FREE, max_drawdown, max_sharpe, value_at_risk

NAMES = ("normal", "china-2015", "covid-2020", "crypto-2022")


def window(name: str = "normal", pace: str = "monthly") -> MarketWindow:
    return world(name, pace, 40)


def truths(name="normal", at=0, *, buys=None, profile=BALANCED, convention="paper", **changes):
    one = window(name)
    everything = np.ones(40, dtype=bool)
    return one.truths(
        one.decisions[at], buys=everything if buys is None else buys, held=one.start().weights, profile=profile,
        convention=convention, **changes,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_paper_views_look_ahead_of_the_decision_and_signals_follow(name):
    one = window(name)
    closes = one.market.closes
    for at, row in enumerate(one.rows.tolist()):
        found = truths(name, at)
        part = one.known(one.decisions[at]).part
        ahead = closes[row + 21, part] / closes[row, part] - 1
        assert found.views[part] == pytest.approx(np.clip(ahead / 0.10, -1, 1))
        outside = np.setdiff1d(np.arange(40), part)
        assert not found.views[outside].any()
        assert not found.weights[outside].any()
        assert {found.signals[i] for i in outside} <= {"hold"}
        for view, signal in zip(found.views, found.signals, strict=True):
            assert signal == ("buy" if view > 0.2 else "sell" if view < -0.2 else "hold")


def test_reference_views_are_the_past():
    """The authors' code takes the trailing 60-day return for the truth."""
    one = window()
    row = int(one.rows[3])
    part = one.known(one.decisions[3]).part
    closes = one.market.closes
    trailing = closes[row, part] / closes[row - 60, part] - 1
    assert truths(at=3, convention="reference").views[part] == pytest.approx(np.clip(trailing / 0.10, -1, 1))


@pytest.mark.parametrize("pace", ["weekly", "monthly", "quarterly"])
def test_the_horizon_is_after_the_decision_and_for_the_reference_begins_on_it(pace):
    one = window(pace=pace)
    row, days = int(one.rows[0]), one.horizon
    assert days == {"weekly": 5, "monthly": 21, "quarterly": 63}[pace]
    paper = ahead_of(one.market, row, days)
    assert paper[1].tobytes() == one.market.returns[row + 1 : row + 1 + days].tobytes()
    other = ahead_of(one.market, row, days, convention="reference")
    assert other[1].tobytes() == one.market.returns[row : row + days].tobytes()
    assert np.prod(1 + paper[1], axis=0) - 1 == pytest.approx(paper[0])


def test_a_horizon_behind_the_end_and_a_day_without_a_decision_are_refused():
    one = window()
    ends = r"a horizon of 21 days is needed \(the store ends on 2025-12-31, 10 days after"
    with pytest.raises(InputError, match=ends):
        ahead_of(one.market, one.market.days.size - 11, 21)
    with pytest.raises(InputError, match="window normal: 2024-01-02 is no decision date of it"):
        one.known(one.decisions[0].replace(day=2))


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_the_maximum_over_what_the_model_buys(name):
    """Equation 7: no other weights over the buys do better. In a fall it is the one asset of the least bad ratio."""
    one = window(name)
    rng = np.random.default_rng(5)
    buys = rng.random(40) < 0.6
    found = truths(name, 1, buys=buys)
    known = one.known(one.decisions[1])
    row = known.row
    mean = one.market.returns[row + 1 : row + 22][:, known.part].mean(axis=0)
    w = found.weights[known.part]
    assert found.weights.sum() == pytest.approx(1)
    assert not found.weights[~buys].any()
    assert found.weights_status in ("optimal", "no-positive-excess")

    def ratio(weights):
        return (weights @ mean - RISK_FREE) / np.sqrt(weights @ known.covariance @ weights)

    best = ratio(w)
    own = np.flatnonzero(buys[known.part])
    others = rng.dirichlet(np.full(own.size, 0.2), 300)
    for other in (*others, *np.eye(own.size)):
        spread = np.zeros(known.part.size)
        spread[own] = other
        for share in (1e-3, 0.1, 1.0):
            assert ratio((1 - share) * w + share * spread) <= best + 1e-9


def test_no_buys_or_no_answer_of_a_solver_mean_equal_weights(monkeypatch):
    found = truths(buys=np.zeros(40, dtype=bool))
    part = window().known(window().decisions[0]).part
    assert found.weights_status == "empty"
    assert found.weights[part] == pytest.approx(1 / part.size)

    def none(*args, **kwargs):
        raise NotMeasurableError("no answer")

    monkeypatch.setattr("assaymark.benchmark.episode.max_sharpe", none)
    weights, status = oracle_weights(np.ones(3), np.eye(3), np.array([True, False, True]))
    assert (weights.tolist(), status) == ([0.5, 0.0, 0.5], "not-solved")


@pytest.mark.parametrize("seed", range(6))
def test_slsqp_agrees_with_the_exact_solver_on_an_easy_problem(seed):
    rng = np.random.default_rng(seed)
    moves = rng.normal(0.0005, 0.01, (250, 6))
    mean, cov = np.abs(moves.mean(axis=0)) + 1e-4, np.cov(moves, rowvar=False)
    allowed = np.array([True, True, False, True, True, True])
    weights, status = oracle_weights(mean, cov, allowed, convention="reference")
    assert status == "slsqp"
    assert weights == pytest.approx(max_sharpe(mean, cov, allowed=allowed).weights, abs=2e-3)


def test_the_reference_oracle_does_not_ask_the_model():
    first = truths(at=2, convention="reference")
    other = truths(at=2, convention="reference", buys=np.zeros(40, dtype=bool))
    assert first.weights.tobytes() == other.weights.tobytes()
    bought = {one for one, w in zip(first.signals, first.weights, strict=True) if w > 0}
    assert bought == {"buy"}


@st.composite
def portfolios(draw):
    raw = draw(hnp.arrays(float, 5, elements=st.floats(0.0, 1.0)))
    weights = raw / raw.sum() if raw.sum() > 0 else np.full(5, 0.2)
    returns = draw(hnp.arrays(float, (60, 5), elements=st.floats(-0.2, 0.2)))
    return weights, returns


@given(portfolios(), st.sampled_from(sorted(PROFILES)))
def test_risk_by_its_definitions(book, name):
    weights, returns = book
    found, daily = risk_of(weights, returns, PROFILES[name]), returns @ weights
    assert found.var == pytest.approx(-value_at_risk(daily), abs=1e-12)
    nav = np.concatenate([[1.0], np.cumprod(1 + daily)])
    assert found.drawdown == pytest.approx(max_drawdown(nav).depth, abs=1e-12)
    units = weights.copy()
    for day in returns:
        units = units * (1 + day)
    assert found.drift == pytest.approx(np.abs(units / units.sum() - weights).max(), abs=1e-9)
    assert found.rebalance == (found.drift > 0.05 or found.var < PROFILES[name].var_limit)
    other = risk_of(weights, returns, BALANCED, convention="reference")  # concentration
    assert other.drift == pytest.approx(np.abs(weights - 0.2).max())
    assert other.rebalance == (other.drift > 0.05 or -other.drawdown > 0.20)


def test_drift_of_figure_28_and_what_raises_the_flag():
    """Figure 28 prints a drift of 33.2 % for a largest weight of .344 over 81 assets: .344 - 1/81, concentration."""
    weights = np.zeros(81)
    weights[:3] = 0.344, 0.175, 0.129
    weights[3:16] = (1 - weights.sum()) / 13
    still = np.zeros((60, 81))
    assert risk_of(weights, still, BALANCED, convention="reference").drift == pytest.approx(0.332, abs=5e-4)
    assert risk_of(weights, still, BALANCED).drift == 0.0
    # value at risk alone raises the flag, and in the reference does not
    returns, even = np.zeros((60, 2)), np.array([0.5, 0.5])
    returns[::10] = -0.03
    assert risk_of(even, returns, CONSERVATIVE).rebalance
    assert not risk_of(even, returns, AGGRESSIVE).rebalance
    assert not risk_of(even, returns, BALANCED, convention="reference").rebalance
    # money takes part in the drift
    once = np.zeros((60, 1))
    once[0] = 1.0
    assert risk_of(np.array([0.5]), once, BALANCED).drift == pytest.approx(1 / 1.5 - 0.5)


@pytest.mark.parametrize("convention", ["paper", "reference"])
@pytest.mark.parametrize("name", NAMES)
def test_the_truth_in_gives_every_score_1_out(name, convention):
    for at, day in enumerate(window(name).decisions):
        first = truths(name, at, convention=convention)
        buys = np.array([one == "buy" for one in first.signals])
        found = truths(name, at, buys=buys, convention=convention)
        risk = window(name).risk(day, found.weights, BALANCED, convention=convention)
        assert s1_score(found.views, first.views) == 1
        assert s2_score(signals_of(found.views), first.signals) == 1
        assert weight_accuracy(found.weights, found.weights) == 1
        turnover = float(np.abs(found.weights - window(name).start().weights).sum())
        assert s4_score(turnover, found.turnover) == pytest.approx(1)
        truth = found.risk
        assert risk == truth
        assert s5_score(risk.rebalance, truth.rebalance, risk.var, truth.var, risk.drawdown, truth.drawdown) == 1


@settings(max_examples=10)
@given(st.permutations(range(12)))
def test_the_order_of_the_store_changes_no_truth(order):
    history = synthetic_history(0)
    ids = choose_universe(history, 12).ids
    columns = [next(at for at, one in enumerate(history.listings) if one.id == name) for name in ids]

    def found(order):
        picked = [columns[at] for at in order]
        store = dataclasses.replace(
            history, listings=tuple(history.listings[at] for at in picked),
            bars={name: one[:, picked] for name, one in history.bars.items()}, known_at=history.known_at[:, picked],
        )  # fmt: skip
        market = BenchMarket(store, choose_universe(store, [ids[at] for at in order]))
        year = MarketWindow(market, windows_of(store)[0], "quarterly")
        one = year.truths(
            year.decisions[1], buys=np.ones(12, bool), held=year.start().weights, profile=BALANCED
        )  # fmt: skip
        return dict(zip(year.tickers, one.weights, strict=True)), one.turnover, one.risk.var, one.risk.drift

    straight, shuffled = found(range(12)), found(order)
    assert shuffled[0] == pytest.approx(straight[0], abs=1e-9)
    assert shuffled[1:] == pytest.approx(straight[1:], abs=1e-9)


def test_views_are_clipped_and_the_threshold_itself_holds():
    assert views_of(np.array([0.02, 0.2, -0.2])).tolist() == pytest.approx([0.2, 1.0, -1.0])
    assert signals_of(np.array([0.2, -0.2, 0.2001, -0.2001])) == ("hold", "hold", "buy", "sell")
