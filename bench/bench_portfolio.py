"""Optimisers and backtest against their peers, as ratios measured in one session on one machine.

Run ``just bench``: prints the ratios, and fails where one is below its promise. Peers that are not installed
(clarabel, skfolio, vectorbt) are noted as such. What a peer is timed on is said where it is called.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

from assaymark.portfolio import backtest, equal_risk_contribution, max_sharpe, min_variance, risk_shares

Note = Callable[[str, str, str, str], None]
Floats = NDArray[np.float64]
ASSETS, DAYS, RATE = 183, 60, 0.04 / 252
YEARS, STRATEGIES, EVERY = 11, 5, 21


def best(function: Callable[[], object], repeats: int, number: int = 1) -> float:
    """Seconds of one call: the best of ``repeats`` means over ``number`` calls."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(number):
            function()
        found.append((time.perf_counter() - started) / number)
    return min(found)


def ratio(note: Note, what: str, against: str, ours: float, theirs: float, promised: str) -> float:
    """Note how many times faster ours is."""
    found = theirs / ours
    note(what, against, f"{found:,.0f} x ({ours * 1e3:,.2f} ms against {theirs * 1e3:,.1f} ms)", promised)
    return found


def peer(note: Note, what: str, name: str, promised: str, module: str | None = None) -> ModuleType:
    """The peer's module; where it is not installed, a row that says so."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module or name)
    except ModuleNotFoundError:
        note(what, name, "not measured: not installed", promised)
        pytest.skip(f"{name} is not installed")


def window(seed: int = 7) -> Floats:
    """60 days of returns of 183 fat-tailed assets with one factor."""
    rng = np.random.default_rng(seed)
    factor = 0.01 * rng.standard_t(5, (DAYS, 1)) * rng.uniform(0.2, 1.5, ASSETS)
    return np.asarray(3e-4 + factor + rng.standard_t(5, (DAYS, ASSETS)) * rng.uniform(0.003, 0.03, ASSETS))


def moments(seed: int = 7) -> tuple[Floats, Floats]:
    """Mean and singular covariance of the window."""
    x = window(seed)
    return x.mean(axis=0), np.cov(x, rowvar=False)


def ratio_of(w: Floats, mu: Floats, cov: Floats) -> float:
    return float((w @ mu - RATE) / np.sqrt(w @ cov @ w))


def slsqp(mu: Floats, cov: Floats) -> Floats:
    """The obvious implementation: minimise the negative yearly Sharpe ratio, with its gradient, from equal weight."""
    yearly, risk = 252 * (mu - RATE), 252 * cov

    def value(w: Floats) -> tuple[float, Floats]:
        out, spread = risk @ w, float(np.sqrt(w @ risk @ w))
        top = float(yearly @ w)
        return -top / spread, -(yearly / spread - top * out / spread**3)

    total = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(w.size)}
    start = np.full(mu.size, 1 / mu.size)
    options = {"maxiter": 1000, "ftol": 1e-12}
    found = minimize(
        value, start, jac=True, method="SLSQP", bounds=[(0, 1)] * mu.size, constraints=total, options=options
    )
    return np.asarray(found.x)


def test_max_sharpe_against_slsqp(note: Note) -> None:
    mu, cov = moments()
    found = max_sharpe(mu, cov, rf=RATE)
    assert found.status == "optimal"
    assert found.residual is not None
    assert found.residual < 1e-9
    assert ratio_of(found.weights, mu, cov) >= ratio_of(slsqp(mu, cov), mu, cov) - 1e-9
    ours = best(lambda: max_sharpe(mu, cov, rf=RATE), 7, 20)
    theirs = best(lambda: slsqp(mu, cov), 2)
    what = f"maximum Sharpe, {ASSETS} assets, {DAYS} days"
    assert ratio(note, what, "scipy SLSQP with gradient", ours, theirs, ">= 200 x") >= 200


def test_max_sharpe_against_clarabel(note: Note) -> None:
    what = f"maximum Sharpe, {ASSETS} assets, {DAYS} days"
    clarabel = peer(note, what, "clarabel", ">= 15 x")
    mu, cov = moments()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    upper, minus = sparse.csc_matrix(np.triu(252 * cov)), sparse.csc_matrix(-np.eye(ASSETS))
    excess, zeros = 252 * (mu - RATE), np.zeros(ASSETS)

    def direct() -> Floats:
        cone = [clarabel.NonnegativeConeT(ASSETS)]
        return np.asarray(clarabel.DefaultSolver(upper, -excess, minus, zeros, cone, settings).solve().x)

    w = direct()
    assert ratio_of(max_sharpe(mu, cov, rf=RATE).weights, mu, cov) >= ratio_of(w / w.sum(), mu, cov) - 1e-9
    ours, theirs = best(lambda: max_sharpe(mu, cov, rf=RATE), 7, 20), best(direct, 5)
    assert ratio(note, what, "clarabel, the quadratic program direct", ours, theirs, ">= 15 x") >= 15


def test_max_sharpe_against_skfolio(note: Note) -> None:
    """Both start from the window of returns and take its mean and covariance themselves."""
    what = f"maximum Sharpe, {ASSETS} assets, {DAYS} days"
    optimization = peer(note, what, "skfolio", ">= 40 x", "skfolio.optimization")
    skfolio = importlib.import_module("skfolio")
    x = window()
    mu, cov = moments()
    model = optimization.MeanRisk(
        objective_function=optimization.ObjectiveFunction.MAXIMIZE_RATIO,
        risk_measure=skfolio.RiskMeasure.VARIANCE,
        risk_free_rate=RATE,
    )

    def fitted() -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it mends the singular covariance
            return np.asarray(model.fit(x).weights_)

    def own() -> Floats:
        return max_sharpe(x.mean(axis=0), np.cov(x, rowvar=False), rf=RATE).weights

    best_ratio = ratio_of(own(), mu, cov)
    assert best_ratio - 1e-9 >= ratio_of(fitted(), mu, cov) - 1e-8 >= 0.999 * best_ratio
    ours, theirs = best(own, 7, 20), best(fitted, 4)
    assert ratio(note, what, "skfolio MeanRisk, from returns", ours, theirs, ">= 40 x") >= 40


def test_exactness_of_the_other_optimisers(note: Note) -> None:
    cov = moments()[1]
    found = equal_risk_contribution(cov)
    assert found.status == "optimal"
    error = float(np.abs(risk_shares(found.weights, cov) - 1 / ASSETS).max())
    calm = best(lambda: min_variance(cov), 7, 20)
    parity = best(lambda: equal_risk_contribution(cov), 7, 20)
    note(f"minimum variance, {ASSETS} assets, {DAYS} days", "none", f"{calm * 1e3:,.2f} ms", "none set")
    what = f"equal risk contribution, {ASSETS} assets, {DAYS} days"
    note(what, "risk shares of 1/n", f"off by {error:.1e} at most, {parity * 1e3:,.2f} ms", "<= 1e-9")
    assert error <= 1e-9


def day_by_day(targets: Floats, returns: Floats, cost_bps: float) -> Floats:
    """The obvious implementation: loop over the days of one strategy, with numpy over its assets."""
    held, cash, nav = np.zeros(returns.shape[1]), 1.0, np.empty(returns.shape[0])
    for t in range(returns.shape[0]):
        held = held * (1 + returns[t])
        value = held.sum() + cash
        if not np.isnan(targets[t, 0]):
            value *= 1 - cost_bps * 1e-4 * np.abs(targets[t] - held / value).sum()
            held, cash = targets[t] * value, value * (1 - targets[t].sum())
        nav[t] = value
    return nav


def book() -> tuple[Floats, Floats]:
    """Monthly targets of five strategies over eleven years, and the returns."""
    rng = np.random.default_rng(7)
    days = YEARS * 252
    returns = 0.01 * rng.standard_t(5, (days, ASSETS))
    targets = np.full((STRATEGIES, days, ASSETS), np.nan)
    targets[:, ::EVERY] = rng.dirichlet(np.ones(ASSETS), size=(STRATEGIES, len(range(0, days, EVERY))))
    return targets, returns


BACKTEST = f"backtest, {STRATEGIES} strategies x {YEARS * 252:,} days x {ASSETS} assets, monthly"


def test_backtest_against_a_loop_over_days(note: Note) -> None:
    targets, returns = book()

    def loop() -> Floats:
        return np.array([day_by_day(own, returns, 15.0) for own in targets])

    np.testing.assert_allclose(backtest(targets, returns).nav, loop(), rtol=1e-9)
    ours, theirs = best(lambda: backtest(targets, returns), 5, 3), best(loop, 3)
    ratio(note, BACKTEST, "loop over days in numpy, same values to 1e-9", ours, theirs, "none set")


def test_backtest_against_vectorbt(note: Note) -> None:
    """Warm, that is compiled. Its fees come out of the cash while it buys: only without costs are values the same."""
    vectorbt = peer(note, BACKTEST, "vectorbt", ">= 10 x")
    pandas = importlib.import_module("pandas")
    targets, returns = book()
    closes = pandas.DataFrame(np.tile(np.cumprod(1 + returns, axis=0), (1, STRATEGIES)))
    size = np.concatenate(list(targets), axis=1)
    groups = np.repeat(np.arange(STRATEGIES), ASSETS)

    def orders(fees: float) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = vectorbt.Portfolio.from_orders(
                closes,
                size,
                size_type="targetpercent",
                group_by=groups,
                cash_sharing=True,
                call_seq="auto",
                fees=fees,
                init_cash=1.0,
            )
            return np.asarray(found.value()).T

    np.testing.assert_allclose(backtest(targets, returns, cost_bps=0).nav, orders(0.0), rtol=1e-6)
    np.testing.assert_allclose(backtest(targets, returns).nav, orders(15e-4), rtol=5e-3)
    ours, theirs = best(lambda: backtest(targets, returns), 5, 3), best(lambda: orders(15e-4), 3)
    assert ratio(note, BACKTEST, "vectorbt from_orders and value, warm", ours, theirs, ">= 10 x") >= 10
