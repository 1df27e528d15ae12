"""The five baselines: their rules on the lookback, their path through the sandbox, cash in and out."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from assaymark.benchmark.episode import BASELINES, MarketWindow, baseline_weights, run_baselines
from assaymark.benchmark.market import BenchMarket, choose_universe, window_named, windows_of
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.market import synthetic_history
from assaymark.portfolio import Strategy, performance, risk_shares


@cache
def window(name: str) -> MarketWindow:
    history = synthetic_history(0)
    return MarketWindow(
        BenchMarket(history, choose_universe(history, 40)), window_named(name, windows_of(history)), "monthly"
    )


@cache
def results(cash: bool = False):
    return {(one.name, one.window): one for one in run_baselines([window("normal"), window("covid-2020")], cash=cash)}


def test_every_baseline_runs_through_every_window():
    found = results()
    assert list(found) == [(name, where) for where in ("normal", "covid-2020") for name in BASELINES]
    for (_, where), one in found.items():
        assert one.dates == window(where).decisions
        assert one.nav[0] == 1.0
        assert one.nav.shape == one.days.shape
        assert str(one.days[0]) == str(one.dates[0])
        assert str(one.days[-1]) == str(window(where).spec.last)
        assert one.weights.sum(axis=1) == pytest.approx(1)
        assert (one.weights >= 0).all()
        assert set(one.statuses) == {"optimal"}
        assert np.isfinite(performance(one.nav).volatility)


@pytest.mark.parametrize("cash", [False, True])
def test_weights_by_the_rules_of_the_seed(cash):
    """Seed 002, section C.3: w = 1/n, a fixed class heuristic, w ~ 1/sigma, equal risk contribution, least variance."""
    day = window("normal").decisions[4]
    known = window("normal").known(day)
    part = [at for at, one in enumerate(known.classes) if cash or one != "cash"]
    found = {name: baseline_weights(name, known, 40, cash=cash)[0][known.part] for name in BASELINES}
    for name in BASELINES:
        assert not np.delete(found[name], part).any(), name
    own = {name: w[part] for name, w in found.items()}
    cov = known.covariance[np.ix_(part, part)]
    assert own["EqW"] == pytest.approx(1 / len(part))
    inverse = 1 / np.sqrt(np.diag(cov))
    assert own["RP"] == pytest.approx(inverse / inverse.sum())
    assert risk_shares(own["CRP"], cov) == pytest.approx(1 / len(part))
    variance = own["MinVar"] @ cov @ own["MinVar"]
    assert all(variance <= w @ cov @ w + 1e-18 for w in own.values())
    classes = np.array(known.classes)
    assert found["60/40"][classes == "equity"].sum() == pytest.approx(0.6)
    assert found["60/40"][classes == "bond"].sum() == pytest.approx(0.4)


def test_with_cash_minimum_variance_is_cash():
    """The spec: with cash its volatility collapses to about 0.2 %."""
    with_cash = performance(results(cash=True)["MinVar", "normal"].nav).volatility
    without = performance(results()["MinVar", "normal"].nav).volatility
    assert with_cash < 0.005
    assert without > 0.02


def test_the_first_trade_is_from_equal_weights():
    one = results(cash=True)["EqW", "normal"]
    assert one.turnover[0] == pytest.approx(0.0, abs=1e-12)
    without = results()["EqW", "normal"]
    assert without.turnover[0] == pytest.approx(2 * window("normal").classes.count("cash") / 40, rel=0.05)


def test_the_path_of_equal_weights_by_hand():
    one, year = results(cash=True)["EqW", "normal"], window("normal")
    nav, held, path = 1.0, year.start().weights, [1.0]
    rows = [*year.rows.tolist(), int(np.searchsorted(year.market.days, year.days[-1]))]
    for at, row in enumerate(rows[:-1]):
        part = year.known(year.decisions[at]).part
        target = np.zeros(40)
        target[part] = 1 / part.size
        nav *= 1 - 0.0015 * np.abs(target - held).sum()
        held = target
        for day in range(row + 1, rows[at + 1] + 1):
            grown = held * (1 + year.market.returns[day])
            nav *= grown.sum()
            held = grown / grown.sum()
            path.append(nav)
    assert one.nav == pytest.approx(np.array(path))


def test_costs_cost_and_the_reference_convention_is_another_path():
    year = [window("normal")]
    plain = run_baselines(year, names=["MinVar"])[0]
    free = run_baselines(year, names=["MinVar"], cost_bps=0.0)[0]
    other = run_baselines(year, names=["MinVar"], convention="reference")[0]
    assert free.nav[-1] > plain.nav[-1]
    at = int(np.searchsorted(other.days, np.datetime64(other.dates[1])))
    assert other.nav[at] == other.nav[at - 1]
    assert plain.nav[at] != plain.nav[at - 1]


def test_a_baseline_without_an_answer_holds_what_there_is(monkeypatch):
    def none(*args, **kwargs):
        raise NotMeasurableError("the risk shares did not settle")

    monkeypatch.setattr(Strategy, "choose", none)
    found = run_baselines([window("covid-2020")], names=["CRP"])[0]
    assert set(found.statuses) == {"held: the risk shares did not settle"}
    assert not found.turnover.any()


def test_an_unknown_baseline_is_named_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="unknown baseline 'MaxSharpe'"):
        run_baselines([window("normal")], names=["MaxSharpe"])
