"""Classical strategies: from a window of returns to weights, and from weights to a schedule of trades.

The baselines of PortBench (section 3.1, Appendix C.3) under its names: EqW is ``equal-weight``, 60/40 is ``60/40``,
RiskPar is ``inverse-volatility``, CovRiskPar is ``equal-risk-contribution``, MinVar is ``minimum-variance``.
Buy-and-hold, maximum Sharpe ratio and momentum are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio.checks import Findings
from assaymark.portfolio.optimisers import max_sharpe, min_variance
from assaymark.portfolio.risk_parity import equal_risk_contribution, inverse_volatility
from assaymark.portfolio.solution import Bools, Floats, Solution, Status, spread

Classes = NDArray[np.str_]
Rule = Callable[[Floats, Classes], tuple[Floats, Status]]
"""From returns without gaps (n_days, n_listed) and the classes of their assets to weights (n_listed,)."""

CLASSES = ("equity", "bond", "commodity", "real_estate", "crypto", "cash")
"""The asset classes of PortBench."""

RISK_FREE = 0.04 / 252
"""Risk-free return a day: 4 % a year (PortBench, Appendix C.1), which is not compounded."""

WINNERS = 0.2
"""The share of assets that momentum holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The weights that a strategy chose on one window.

    Attributes
    ----------
    weights : float array of shape (n_assets,)
        At least 0, sum to 1; 0 for what was left out.
    status : Status
        That of the optimiser; ``optimal`` for a plain rule. Maximum Sharpe holds equal weight if no asset is expected
        to earn more than cash, and says ``no-positive-excess``.
    left_out : tuple of int
        Assets with a missing return in the window (unlisted, or a gap).
    """

    weights: Floats
    status: Status
    left_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named rule; one that does not rebalance trades at its first signal only."""

    name: str
    rule: Rule
    rebalances: bool = True

    def choose(self, window: ArrayLike, classes: Sequence[str]) -> Choice:
        """Weights from a window of returns.

        Parameters
        ----------
        window : float array of shape (n_days, n_assets)
            Simple returns; an asset with a missing one (NaN) is left out and named.
        classes : sequence of n_assets str
            Asset classes, each one of `CLASSES`.

        Raises
        ------
        NotMeasurableError
            No asset is without gaps; 60/40 lacks one of its classes; a covariance is asked of fewer than two days.
        InputError
            Returns that are infinite or below -1; classes that do not fit or are not known.
        """
        found = Findings(self.name)
        returns = found.array("window", window, (2,))
        names = np.asarray(classes, dtype=np.str_)
        if returns is not None:
            found.none_of(np.isinf(returns), "window", "returns must be finite, or NaN where there is none", returns)
            found.none_of(returns < -1, "window", "returns must not be below -1", returns)
            if names.shape != returns.shape[1:]:
                found.add("classes", f"must have one name per asset (got {names.size} for {returns.shape[1]})")
        for name in sorted(set(names.ravel().tolist()) - set(CLASSES)):
            found.add("classes", f"{name!r} is not a class (known: {', '.join(CLASSES)})")
        found.settle()
        assert returns is not None
        return self._among_listed(returns, names)

    def _among_listed(self, returns: Floats, names: Classes) -> Choice:
        listed: Bools = np.asarray(~np.isnan(returns).any(axis=0))
        if not listed.any():
            raise NotMeasurableError(f"{self.name}: no asset has a return on every day of the window")
        weights = np.zeros(listed.size)
        weights[listed], status = self.rule(returns[:, listed], names[listed])
        weights.flags.writeable = False
        return Choice(weights, status, tuple(np.flatnonzero(~listed).tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Targets for `backtest`, and the choice behind each.

    Attributes
    ----------
    targets : float array of shape (n_days, n_assets)
        Weights on the days of trades, NaN on all others.
    choices : tuple of (day of the trade, Choice)
        In order.
    """

    targets: Floats
    choices: tuple[tuple[int, Choice], ...]


def schedule(
    strategy: Strategy | str,
    returns: ArrayLike,
    classes: Sequence[str],
    signals: Sequence[int],
    *,
    window: int = 60,
    delay: int = 1,
) -> Schedule:
    """What a strategy wants to hold, traded at the close ``delay`` days after each signal.

    A signal on day s sees the returns of the ``window`` days up to and including s, and nothing later.

    Parameters
    ----------
    strategy : Strategy or str
        A strategy, or its name in `STRATEGIES`.
    returns : float array of shape (n_days, n_assets)
        Simple returns; NaN where there is none.
    classes : sequence of n_assets str
        Asset classes.
    signals : sequence of int
        Days of decision, increasing, each with a full window behind it. A trade that would fall behind the last day
        is left out.
    window, delay : int
        At least 1 day of window; at least 0 days of delay (0 trades at the very close that the signal has seen).

    Raises
    ------
    UnknownNameError
        No strategy has this name.
    InputError
        Signals out of range or not increasing; a window or delay out of range; anything `Strategy.choose` refuses.
    NotMeasurableError
        As `Strategy.choose`.

    Examples
    --------
    >>> found = schedule("equal-weight", np.zeros((5, 2)), ["equity", "bond"], [2], window=2)
    >>> found.targets[:, 0].tolist()
    [nan, nan, nan, 0.5, nan]
    """
    chosen = named(strategy) if isinstance(strategy, str) else strategy
    found = Findings("schedule")
    table = found.array("returns", returns, (2,))
    found.number("window", window, 1, np.inf, "at least 1")
    found.number("delay", delay, 0, np.inf, "at least 0")
    days = [int(day) for day in signals]
    if table is not None:
        for day in days:
            if not window - 1 <= day < table.shape[0]:
                allowed = f"{window - 1}..{table.shape[0] - 1}, so that a full window lies behind it"
                found.add("signals", f"day {day} must be within {allowed}")
    if any(later <= earlier for earlier, later in pairwise(days)):
        found.add("signals", "must increase")
    found.settle()
    assert table is not None
    used = days if chosen.rebalances else days[:1]
    choices = tuple(
        (day + delay, chosen.choose(table[day + 1 - window : day + 1], classes))
        for day in used
        if day + delay < table.shape[0]
    )
    targets = np.full_like(table, np.nan)
    for day, choice in choices:
        targets[day] = choice.weights
    return Schedule(targets, choices)


def named(name: str) -> Strategy:
    """The strategy of this name; UnknownNameError if there is none."""
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, tuple(STRATEGIES))
    return STRATEGIES[name]


def _equal(_returns: Floats, classes: Classes) -> tuple[Floats, Status]:
    return spread(classes.size, np.arange(classes.size)), "optimal"


def _sixty_forty(_returns: Floats, classes: Classes) -> tuple[Floats, Status]:
    """60 % equally over the equities, 40 % equally over the bonds."""
    weights = np.zeros(classes.size)
    for name, share in (("equity", 0.6), ("bond", 0.4)):
        members = classes == name
        if not members.any():
            raise NotMeasurableError(f"60/40 is undefined: no {name} has a return on every day of the window")
        weights[members] = share / np.count_nonzero(members)
    return weights, "optimal"


def _momentum(returns: Floats, _classes: Classes) -> tuple[Floats, Status]:
    """Equal weight over the fifth of the assets with the largest return over the window; ties at the edge stay in."""
    grown = np.prod(1.0 + returns, axis=0)
    count = max(1, round(WINNERS * grown.size))
    return spread(grown.size, grown >= np.sort(grown)[-count]), "optimal"


def _max_sharpe(returns: Floats, classes: Classes) -> tuple[Floats, Status]:
    found = max_sharpe(returns.mean(axis=0), _covariance(returns), rf=RISK_FREE)
    if found.status == "no-positive-excess":
        return _equal(returns, classes)[0], found.status
    return found.weights, found.status


def _by_covariance(optimiser: Callable[[Floats], Solution]) -> Rule:
    def rule(returns: Floats, _classes: Classes) -> tuple[Floats, Status]:
        found = optimiser(_covariance(returns))
        return found.weights, found.status

    return rule


def _covariance(returns: Floats) -> Floats:
    """Sample covariance (ddof 1) over days that all assets share, so never indefinite."""
    if returns.shape[0] < 2:
        raise NotMeasurableError("a covariance of fewer than two days is undefined")
    return np.atleast_2d(np.cov(returns, rowvar=False))


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            Strategy("equal-weight", _equal),
            Strategy("buy-and-hold", _equal, rebalances=False),
            Strategy("60/40", _sixty_forty),
            Strategy("inverse-volatility", _by_covariance(inverse_volatility)),
            Strategy("equal-risk-contribution", _by_covariance(equal_risk_contribution)),
            Strategy("minimum-variance", _by_covariance(min_variance)),
            Strategy("maximum-sharpe", _max_sharpe),
            Strategy("momentum", _momentum),
        )
    }
)
"""Every strategy by name."""
