"""The arithmetic of one episode's portfolio: drift with the market, trades with costs, NAV by the day.

A decision is carried out at the close it was made at: the return of that day belongs to what was held before, and the
new weights earn from the day after (PortBench, Appendix C.3). The convention ``reference`` loses the return of every
rebalance day, as the authors' code does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assaymark.benchmark.stages import Convention
from assaymark.errors import InputError, Problem
from assaymark.portfolio.checks import brought_to_one
from assaymark.portfolio.solution import Floats

COST_BPS = 15.0
"""Of the traded value: 10 slippage and 5 commission (Appendix C.3)."""

_ROUNDING = 1e-9
_NOTHING = 1e-15  # a sum of weights and money that rounding alone keeps from 0


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """A portfolio at one close, before any trade at it.

    Attributes
    ----------
    nav : float
        Net asset value as a multiple of the first.
    weights : float array of shape (n_assets,)
        At least 0; what is missing to 1 is money, which earns nothing.
    peak : float
        The highest NAV so far.
    """

    nav: float
    weights: Floats
    peak: float

    @property
    def drawdown(self) -> float:
        """The fall from the peak, at most 0."""
        return self.nav / self.peak - 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Trade:
    """A trade: the portfolio after it, its two-sided turnover, and its cost, both as shares of the NAV before it."""

    after: Position
    turnover: float
    cost: float


def equal_start(part: np.ndarray, size: int) -> Position:
    """NAV 1 in equal weights over the instruments at the places ``part`` of ``size`` (figure 25).

    >>> equal_start(np.array([0, 2]), 3).weights.tolist()
    [0.5, 0.0, 0.5]
    """
    weights = np.zeros(size)
    weights[part] = 1.0 / part.size
    weights.setflags(write=False)
    return Position(1.0, weights, 1.0)


def turnover_between(held: ArrayLike, target: ArrayLike) -> float:
    """Bought plus sold as a share of NAV: the sum of absolute changes of weight.

    >>> turnover_between([0.5, 0.5], [1.0, 0.0])
    1.0
    """
    return float(np.abs(np.asarray(target) - np.asarray(held)).sum())


def trade(position: Position, target: Floats | None, *, cost_bps: float = COST_BPS) -> Trade:
    """Trade to the target weights and pay; None holds what there is and costs nothing.

    Parameters
    ----------
    position : Position
    target : float array of shape (n_assets,) or None
        At least 0, sum at most 1; a sum within 1e-4 of 1 is brought to 1.
    cost_bps : float
        Basis points of the traded value.

    Raises
    ------
    InputError
        Weights that are negative, not finite, or sum to more than 1, or not one for each asset.

    Examples
    --------
    >>> done = trade(equal_start(np.arange(2), 2), np.array([1.0, 0.0]))
    >>> done.turnover, round(done.cost, 6), round(done.after.nav, 6)
    (1.0, 0.0015, 0.9985)
    """
    if target is None or position.nav <= 0:
        return Trade(position, 0.0, 0.0)
    target = brought_to_one(target)
    _check(target, position.weights.shape)
    moved = turnover_between(position.weights, target)
    cost = cost_bps * 1e-4 * moved
    weights = target.copy()
    weights.setflags(write=False)
    return Trade(Position(position.nav * (1.0 - cost), weights, position.peak), moved, cost)


def hold(
    position: Position, returns: Floats, *, to_decision: bool, convention: Convention = "paper"
) -> tuple[Position, Floats]:
    """Let a portfolio drift through the days after a close, without trades.

    Parameters
    ----------
    position : Position
        After the trade.
    returns : float array of shape (n_days, n_assets)
        Simple returns of the days that follow, at least -1.
    to_decision : bool
        Whether the last of them is the day of the next decision; ``reference`` drops its return.
    convention : {"paper", "reference"}

    Returns
    -------
    Position
        At the last close.
    float array of shape (n_days,)
        NAV at each close.

    Examples
    --------
    >>> moves = np.array([[0.1, 0.0], [0.1, 0.0]])
    >>> hold(equal_start(np.arange(2), 2), moves, to_decision=True)[1].round(4).tolist()
    [1.05, 1.105]
    >>> hold(equal_start(np.arange(2), 2), moves, to_decision=True, convention="reference")[1].round(4).tolist()
    [1.05, 1.05]
    """
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


def _check(target: Floats, shape: tuple[int, ...]) -> None:
    """Refuse what cannot be held."""
    problems = []
    if target.shape != shape:
        problems.append(Problem("target", f"must have the shape {shape} (got {target.shape})"))
    elif not np.isfinite(target).all():
        problems.append(Problem("target", "weights must be finite"))
    else:
        if (low := float(target.min())) < -_ROUNDING:
            problems.append(Problem("target", f"weights must be at least 0 (got {low:g})"))
        if (total := float(target.sum())) > 1.0 + _ROUNDING:
            problems.append(Problem("target", f"weights must sum to at most 1 (got {total:g})"))
    if problems:
        raise InputError("sandbox", problems)
