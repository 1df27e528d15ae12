"""Truths of both conventions: by their definitions, against other solvers, and by their laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench_worlds import world
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assaymark import benchmark as bench
from assaymark.benchmark import AGGRESSIVE, BALANCED, CONSERVATIVE, PROFILES, ahead_of, oracle_weights, risk_of
from assaymark.errors import InputError, NotMeasurableError
from assaymark.market import synthetic_history
from assaymark.portfolio import RISK_FREE, max_drawdown, max_sharpe, value_at_risk

NAMES = ("normal", "china-2015", "covid-2020", "crypto-2022")


def window(name: str = "normal", pace: str = "monthly") -> bench.MarketWindow:
    return world(name, pace, 40)


def truths(name="normal", at=0, *, buys=None, **changes):
    one = window(name)
    buys = np.ones(40, dtype=bool) if buys is None else buys
    return one.truths(one.decisions[at], buys=buys, held=one.start().weights, **{"profile": BALANCED, **changes})


@pytest.mark.parametrize("name", NAMES)
def test_paper_views_look_ahead_of_the_decision_and_signals_follow(name):
    one = window(name)
    for at, row in enumerate(one.rows.tolist()):
        found, part = truths(name, at), one.known(one.decisions[at]).part
        ahead = one.market.closes[row + 21, part] / one.market.closes[row, part] - 1
        assert found.views[part] == pytest.approx(np.clip(ahead / 0.10, -1, 1))
        outside = np.setdiff1d(np.arange(40), part)
        assert not found.views[outside].any()
        assert not found.weights[outside].any()
        for view, signal in zip(found.views, found.signals, strict=True):
            assert signal == ("buy" if view > 0.2 else "sell" if view < -0.2 else "hold")


def test_reference_views_are_the_past_and_its_oracle_does_not_ask_the_model():
    """The authors' code takes the trailing 60-day return for the truth."""
    one = window()
    row, part, closes = int(one.rows[3]), one.known(one.decisions[3]).part, one.market.closes
    trailing = closes[row, part] / closes[row - 60, part] - 1
    assert truths(at=3, convention="reference").views[part] == pytest.approx(np.clip(trailing / 0.10, -1, 1))
    first, other = (truths(at=2, convention="reference", buys=buys) for buys in (None, np.zeros(40, dtype=bool)))
    assert first.weights.tobytes() == other.weights.tobytes()
    assert {one for one, w in zip(first.signals, first.weights, strict=True) if w > 0} == {"buy"}
    # views are clipped, and the threshold itself holds
    assert bench.views_of(np.array([0.02, 0.2, -0.2])).tolist() == pytest.approx([0.2, 1.0, -1.0])
    assert bench.signals_of(np.array([0.2, -0.2, 0.2001, -0.2001])) == ("hold", "hold", "buy", "sell")


def test_the_horizon_is_after_the_decision_and_for_the_reference_begins_on_it():
    for pace, days in (("weekly", 5), ("monthly", 21), ("quarterly", 63)):
        one = window(pace=pace)
        row, returns = int(one.rows[0]), one.market.returns
        assert one.horizon == days
        paper, other = (ahead_of(one.market, row, days, convention=name) for name in ("paper", "reference"))
        assert paper[1].tobytes() == returns[row + 1 : row + 1 + days].tobytes()
        assert other[1].tobytes() == returns[row : row + days].tobytes()
        assert np.prod(1 + paper[1], axis=0) - 1 == pytest.approx(paper[0])
    one = window()
    ends = r"a horizon of 21 days is needed \(the store ends on 2025-12-31, 10 days after"
    with pytest.raises(InputError, match=ends):
        ahead_of(one.market, one.market.days.size - 11, 21)
    with pytest.raises(InputError, match="window normal: 2024-01-02 is not one of its decision dates"):
        one.known(one.decisions[0].replace(day=2))


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_is_the_maximum_over_what_the_model_buys(name):
    """Equation 7: no other weights over the buys do better. In a fall it is the one asset of the least bad ratio."""
    one, rng = window(name), np.random.default_rng(5)
    buys = rng.random(40) < 0.6
    found, known = truths(name, 1, buys=buys), one.known(one.decisions[1])
    mean = one.market.returns[known.row + 1 : known.row + 22][:, known.part].mean(axis=0)
    w = found.weights[known.part]
    assert found.weights.sum() == pytest.approx(1)
    assert not found.weights[~buys].any()
    assert found.weights_status in ("optimal", "no-positive-excess")
    own = np.flatnonzero(buys[known.part])
    spread = np.zeros((300 + own.size, known.part.size))
    spread[:, own] = [*rng.dirichlet(np.full(own.size, 0.2), 300), *np.eye(own.size)]
    others = np.concatenate([w[None], *((1 - share) * w + share * spread for share in (1e-3, 0.1, 1.0))])
    ratios = (others @ mean - RISK_FREE) / np.sqrt(np.einsum("ij,jk,ik->i", others, known.covariance, others))
    assert (ratios <= ratios[0] + 1e-9).all()


def test_no_buys_or_no_answer_of_a_solver_mean_equal_weights(monkeypatch):
    found, part = truths(buys=np.zeros(40, dtype=bool)), window().known(window().decisions[0]).part
    assert found.weights_status == "empty"
    assert found.weights[part] == pytest.approx(1 / part.size)

    def none(*args, **kwargs):
        raise NotMeasurableError("no answer")

    monkeypatch.setattr("assaymark.benchmark.episode.max_sharpe", none)
    weights, status = oracle_weights(np.ones(3), np.eye(3), np.array([True, False, True]))
    assert (weights.tolist(), status) == ([0.5, 0.0, 0.5], "not-solved")


def test_slsqp_agrees_with_the_exact_solver_on_an_easy_problem():
    allowed = np.array([True, True, False, True, True, True])
    for seed in range(6):
        moves = np.random.default_rng(seed).normal(0.0005, 0.01, (250, 6))
        mean, cov = np.abs(moves.mean(axis=0)) + 1e-4, np.cov(moves, rowvar=False)
        weights, status = oracle_weights(mean, cov, allowed, convention="reference")
        assert status == "slsqp"
        assert weights == pytest.approx(max_sharpe(mean, cov, allowed=allowed).weights, abs=2e-3)


@st.composite
def portfolios(draw):
    raw = draw(hnp.arrays(float, 5, elements=st.floats(0.0, 1.0)))
    weights = raw / raw.sum() if raw.sum() > 0 else np.full(5, 0.2)
    return weights, draw(hnp.arrays(float, (60, 5), elements=st.floats(-0.2, 0.2)))


@given(portfolios(), st.sampled_from(sorted(PROFILES)))
def test_risk_by_its_definitions(book, name):
    weights, returns = book
    found, daily = risk_of(weights, returns, PROFILES[name]), returns @ weights
    assert found.var == pytest.approx(-value_at_risk(daily), abs=1e-12)
    nav = np.concatenate([[1.0], np.cumprod(1 + daily)])
    assert found.drawdown == pytest.approx(max_drawdown(nav).depth, abs=1e-12)
    units = weights * np.prod(1 + returns, axis=0)
    assert found.drift == pytest.approx(np.abs(units / units.sum() - weights).max(), abs=1e-9)
    assert found.rebalance == (found.drift > 0.05 or found.var < PROFILES[name].var_limit)
    other = risk_of(weights, returns, BALANCED, convention="reference")  # concentration
    assert other.drift == pytest.approx(np.abs(weights - 0.2).max())
    assert other.rebalance == (other.drift > 0.05 or -other.drawdown > 0.20)


def test_drift_of_figure_28_and_what_raises_the_flag():
    """Figure 28 prints a drift of 33.2 % for a largest weight of .344 over 81 assets: .344 - 1/81, concentration."""
    weights, still = np.zeros(81), np.zeros((60, 81))
    weights[:3] = 0.344, 0.175, 0.129
    weights[3:16] = (1 - weights.sum()) / 13
    assert risk_of(weights, still, BALANCED, convention="reference").drift == pytest.approx(0.332, abs=5e-4)
    assert risk_of(weights, still, BALANCED).drift == 0.0
    # value at risk alone raises the flag, and in the reference does not
    returns, even = np.zeros((60, 2)), np.array([0.5, 0.5])
    returns[::10] = -0.03
    assert [risk_of(even, returns, one).rebalance for one in (CONSERVATIVE, AGGRESSIVE)] == [True, False]
    assert not risk_of(even, returns, BALANCED, convention="reference").rebalance
    # money takes part in the drift
    once = np.zeros((60, 1))
    once[0] = 1.0
    assert risk_of(np.array([0.5]), once, BALANCED).drift == pytest.approx(1 / 1.5 - 0.5)


@settings(max_examples=10)
@given(st.permutations(range(12)))
def test_the_order_of_the_store_changes_no_truth(order):
    history = synthetic_history(0)
    ids = bench.choose_universe(history, 12).ids
    columns = [next(at for at, one in enumerate(history.listings) if one.id == name) for name in ids]

    def found(order):
        picked = [columns[at] for at in order]
        bars = {name: one[:, picked] for name, one in history.bars.items()}
        listings, known_at = tuple(history.listings[at] for at in picked), history.known_at[:, picked]
        store = replace(history, listings=listings, bars=bars, known_at=known_at)
        market = bench.BenchMarket(store, bench.choose_universe(store, [ids[at] for at in order]))
        year = bench.MarketWindow(market, bench.windows_of(store)[0], "quarterly")
        one = year.truths(year.decisions[1], buys=np.ones(12, bool), held=year.start().weights, profile=BALANCED)
        return dict(zip(year.tickers, one.weights, strict=True)), one.turnover, one.risk.var, one.risk.drift

    straight, shuffled = found(range(12)), found(order)
    assert shuffled[0] == pytest.approx(straight[0], abs=1e-9)
    assert shuffled[1:] == pytest.approx(straight[1:], abs=1e-9)
