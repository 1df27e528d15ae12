"""One episode's portfolio, and what its answers are scored against (PortBench, Appendix C.1 and C.3).

Only this module looks at what came after a decision. The two conventions differ in

================  =============================================  ==================================================
truth             ``paper``                                      ``reference``
================  =============================================  ==================================================
S1 views          return over the horizon after the decision     return over the lookback before it
S2 signals        of these views                                 of these views
S3 oracle, mean   of the horizon, from the day after             of the horizon, from the decision day on
S3, covariance    of the lookback                                of the horizon
S3, risk-free     4 % a year                                     none
S3, allowed       what the model says to buy                     what is truly to buy
S3, solver        exact                                          SLSQP; equal weight where it does not converge
S5 drift          largest change of a weight held through the    largest distance of a weight from equal weight
                  lookback
S5 flag           drift, or VaR beyond the profile's limit       drift, or drawdown beyond the profile's tolerance
================  =============================================  ==================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.benchmark.market import BenchMarket, Known
from assaymark.benchmark.profiles import Profile
from assaymark.benchmark.stages import Convention, Position, Signal, Truths
from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.portfolio import max_sharpe
from assaymark.portfolio.backtest import RISK_FREE
from assaymark.portfolio.optimisers import brought_to_one
from assaymark.portfolio.qp import Bools, Floats, spread

COST_BPS = 15.0
"""Of the traded value: 10 slippage and 5 commission (Appendix C.3)."""

VIEW_SCALE: Final = 0.10
"""The return that makes a view of 1."""

SIGNAL_AT: Final = 0.2
"""A view above it is a buy, one below its negative a sell."""

VAR_LEVEL: Final = 0.95

DRIFT_LIMIT: Final = 0.05
"""Drift that passes without a flag, as a share of NAV."""

NOT_SOLVED = "not-solved"
"""The status of oracle weights that are equal because a solver gave none."""

_ROUNDING = 1e-9
_NOTHING = 1e-15  # a sum of weights and money that rounding alone keeps from 0


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """A trade: the portfolio after it, its two-sided turnover, and its cost, both as shares of the NAV before it."""

    after: Position
    turnover: float
    cost: float


def equal_start(part: np.ndarray, size: int) -> Position:
    """NAV 1 in equal weights over the instruments at the places ``part`` of ``size`` (figure 25)."""
    weights = np.zeros(size)
    weights[part] = 1.0 / part.size
    weights.setflags(write=False)
    return Position(1.0, weights, 1.0)


def turnover_between(held: ArrayLike, target: ArrayLike) -> float:
    """Bought plus sold as a share of NAV: the sum of absolute changes of weight."""
    return float(np.abs(np.asarray(target) - np.asarray(held)).sum())


def trade(position: Position, target: Floats | None, *, cost_bps: float = COST_BPS) -> Trade:
    """Trade to the target weights and pay; None holds what there is and costs nothing."""
    if target is None or position.nav <= 0:
        return Trade(position, 0.0, 0.0)
    target = brought_to_one(target)
    problems = []
    if target.shape != position.weights.shape:
        problems.append(f"must have the shape {position.weights.shape} (got {target.shape})")
    elif not np.isfinite(target).all():
        problems.append("weights must be finite")
    else:
        if (low := float(target.min())) < -_ROUNDING:
            problems.append(f"weights must be at least 0 (got {low:g})")
        if (total := float(target.sum())) > 1.0 + _ROUNDING:
            problems.append(f"weights must sum to at most 1 (got {total:g})")
    if problems:
        raise InputError("sandbox", [Problem("target", what) for what in problems])
    moved = turnover_between(position.weights, target)
    cost = cost_bps * 1e-4 * moved
    weights = target.copy()
    weights.setflags(write=False)
    return Trade(Position(position.nav * (1.0 - cost), weights, position.peak), moved, cost)


def hold(
    position: Position, returns: Floats, *, to_decision: bool, convention: Convention = "paper"
) -> tuple[Position, Floats]:
    """Let a portfolio drift through the days after a close, without trades."""
    if not returns.shape[0]:
        return position, np.empty(0)
    factors = 1.0 + returns
    if to_decision and convention == "reference":
        factors[-1] = 1.0
    growth = np.cumprod(factors, axis=0)
    worth = growth @ position.weights + (1.0 - float(position.weights.sum()))
    worth = np.where(worth > _NOTHING, worth, 0.0)
    # what was lost wholly does not come back
    worth = np.where(np.minimum.accumulate(worth) > 0, worth, 0.0)
    nav = position.nav * worth
    weights = position.weights * growth[-1] / worth[-1] if worth[-1] > 0 else np.zeros_like(position.weights)
    weights.setflags(write=False)
    return Position(float(nav[-1]), weights, max(position.peak, float(nav.max()))), nav


def ahead_of(market: BenchMarket, row: int, horizon: int, *, convention: Convention = "paper") -> tuple[Floats, Floats]:
    """What came after the close of a row: total returns, shape (n_assets,), and the daily ones of the oracle."""
    if row + horizon >= market.days.size:
        last = f"{market.days[-1]}, {market.days.size - 1 - row} days after {market.days[row]}"
        raise InputError("market", [f"a horizon of {horizon} days is needed (the store ends on {last})"])
    first = row if convention == "reference" else row + 1
    total = market.closes[row + horizon] / market.closes[row] - 1.0
    return np.where(np.isfinite(total), total, 0.0), market.returns[first : first + horizon]


def views_of(returns: Floats) -> Floats:
    """Returns as views: 10 % is 1, and nothing is above 1."""
    return np.clip(returns / VIEW_SCALE, -1.0, 1.0)


def signals_of(views: Floats) -> tuple[Signal, ...]:
    """Views as signals."""
    return tuple("buy" if one > SIGNAL_AT else "sell" if one < -SIGNAL_AT else "hold" for one in views.tolist())


def oracle_weights(
    mean: Floats, covariance: Floats, allowed: Bools, *, convention: Convention = "paper"
) -> tuple[Floats, str]:
    """The oracle's weights (equation 7) and how they were found.

    Equal weights over all where nothing is allowed, and over what is allowed where the solver has no answer.
    """
    if not allowed.any():
        return spread(mean.size, np.arange(mean.size)), "empty"
    if convention == "reference":
        return _slsqp(mean, covariance, np.flatnonzero(allowed))
    try:
        found = max_sharpe(mean, covariance, rf=RISK_FREE, allowed=allowed)
    except NotMeasurableError:
        return spread(mean.size, allowed), NOT_SOLVED
    return found.weights, found.status


def _slsqp(mean: Floats, covariance: Floats, allowed: np.ndarray) -> tuple[Floats, str]:
    """Largest ratio of mean to volatility by SLSQP from equal weights, as the authors' code does it."""
    count = allowed.size
    drift, matrix = mean[allowed], covariance[np.ix_(allowed, allowed)]

    def size(w: Floats) -> float:
        return max(float(np.sqrt(max(w @ matrix @ w, 0.0))), 1e-10)

    def minus_ratio(w: Floats) -> float:
        return -float(w @ drift) / size(w)

    def slope(w: Floats) -> Floats:
        return np.asarray(-drift / size(w) + float(w @ drift) * (matrix @ w) / size(w) ** 3)

    found = scipy.optimize.minimize(
        minus_ratio, np.full(count, 1.0 / count), jac=slope, method="SLSQP", bounds=[(0.0, 1.0)] * count,
        constraints=scipy.optimize.LinearConstraint(np.ones((1, count)), 1.0, 1.0), options={"maxiter": 500},
    )  # fmt: skip
    weights = np.zeros(mean.size)
    chosen = np.clip(found.x, 0.0, None)
    solved = bool(found.success) and np.isfinite(chosen).all() and float(chosen.sum()) > 0
    weights[allowed] = chosen / chosen.sum() if solved else 1.0 / count
    return weights, "slsqp" if solved else NOT_SOLVED


@dataclass(frozen=True, slots=True)
class Risk:
    """S5 of some weights: VaR and drawdown (negative, of the lookback), drift, and whether a limit is broken."""

    var: float
    drawdown: float
    drift: float
    rebalance: bool


def risk_of(
    weights: Floats, returns: Floats, profile: Profile, *, drift_limit: float = DRIFT_LIMIT,
    convention: Convention = "paper",
) -> Risk:  # fmt: skip
    """Value at risk, drawdown, drift and flag of weights over the lookback.

    VaR is the 5 % quantile of the daily returns of the weights; it and the drawdown are signed as in Table 7: a loss
    is negative.
    """
    daily = returns @ weights
    var = float(np.quantile(daily, 1.0 - VAR_LEVEL))
    worth = np.concatenate([[1.0], np.cumprod(1.0 + daily)])
    drawdown = float((worth / np.maximum.accumulate(worth) - 1.0).min())
    if convention == "reference":
        drift = float(np.abs(weights - 1.0 / weights.size).max())
        return Risk(var, drawdown, drift, drift > drift_limit or -drawdown > profile.drawdown_tolerance)
    grown = weights * np.prod(1.0 + returns, axis=0)
    money = 1.0 - float(weights.sum())
    # what rounding leaves of a sum must not outweigh assets that have lost nearly everything
    total = float(grown.sum()) + (money if money > 1e-12 else 0.0)
    drift = float(np.abs(grown / total - weights).max()) if total > 0 else float(weights.max())
    return Risk(var, drawdown, drift, drift > drift_limit or var < profile.var_limit)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The part of a date's truths that is the same for every model and profile; arrays are of what takes part.

    ``mean`` and ``covariance`` are what the oracle is given; ``fixed`` is its answer where that does not depend on
    what the model says to buy.
    """

    known: Known
    size: int
    convention: Convention
    views: Floats
    mean: Floats
    covariance: Floats
    fixed: tuple[Floats, str] | None


def scene_on(market: BenchMarket, row: int, horizon: int, *, convention: Convention = "paper") -> Scene:
    """What came of the market after the close of a row."""
    known, size = market.known(row), market.universe.size
    total, daily = (part[..., known.part] for part in ahead_of(market, row, horizon, convention=convention))
    mean = daily.mean(axis=0)
    if convention == "paper":
        return Scene(known, size, convention, views_of(total), mean, known.covariance, None)
    views = views_of(np.prod(1.0 + known.returns, axis=0) - 1.0)
    covariance = np.atleast_2d(np.cov(daily, rowvar=False))
    buys = np.array([one == "buy" for one in signals_of(views)])
    fixed = oracle_weights(mean, covariance, buys, convention=convention)
    return Scene(known, size, convention, views, mean, covariance, fixed)


def truths_of(scene: Scene, *, buys: Bools, held: Floats, profile: Profile, drift_limit: float = DRIFT_LIMIT) -> Truths:
    """The truths of a decision; what takes no part has the view 0, the signal hold and the weight 0."""
    known, size = scene.known, scene.size
    weights, status = scene.fixed or oracle_weights(scene.mean, scene.covariance, buys[known.part])
    risk = risk_of(weights, known.returns, profile, drift_limit=drift_limit, convention=scene.convention)
    target, views = known.spread(weights, size), known.spread(scene.views, size)
    moved = turnover_between(held, target)
    return Truths(views, signals_of(views), target, status, moved, risk.var, risk.drawdown, risk.drift, risk.rebalance)
