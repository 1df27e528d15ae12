"""From target weights to net asset value: drift between trades, costs at trades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError, check_known
from assaymark.portfolio.optimisers import (
    STATUSES,
    Bools,
    Floats,
    Solution,
    Status,
    Validator,
    equal_risk_contribution,
    evenly,
    inverse_volatility,
    max_sharpe,
    min_variance,
)

Days = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Result of a backtest. ``...`` is the leading axis of strategies, absent if the targets had none.

    Attributes
    ----------
    nav : float array of shape (..., n_days)
        Net asset value at each close, after that day's costs. It was 1 before the first day.
    turnover : float array of shape (..., n_days)
        Two-sided turnover of each close: the sum over assets of the absolute change of weight, bought plus sold, as a
        share of the value before costs; 0 where nothing was traded. Cash does not count.
    cost : float array of shape (..., n_days)
        Costs of each close as a share of the value before them.
    days : int array of shape (n_trades,)
        The closes at which any strategy traded.
    before : float array of shape (..., n_trades, n_assets)
        The drifted weights just before the trade at ``days``; the remainder to 1 is cash.
    """

    nav: Floats
    turnover: Floats
    cost: Floats
    days: Days
    before: Floats


def backtest(targets: ArrayLike, returns: ArrayLike, *, cost_bps: float = 15.0) -> Backtest:
    """Hold target weights, let them drift, trade and pay (PortBench, Appendix C.3).

    The portfolio starts as 1.0 in cash. Row t of ``targets`` is traded at the close of day t: the return of day t
    still belongs to what was held before, and the new weights earn from day t+1. The cost, ``cost_bps`` of the
    two-sided turnover, is charged once, at the trade, also for the first purchase. Cash earns nothing.

    Parameters
    ----------
    targets : float array of shape (n_days, n_assets) or (n_strategies, n_days, n_assets)
        Weights of at least 0 that sum to at most 1, the rest being cash; a sum within 1e-4 of 1 is brought to 1. A row
        of NaN holds what there is. `schedule` makes them from a strategy.
    returns : float array of shape (n_days, n_assets)
        Simple returns, at least -1. NaN where there is none: such an asset cannot be held on that day.
    cost_bps : float
        Cost in basis points of the traded value, from 0 to below 5,000. Default: 10 slippage and 5 commission.

    Returns
    -------
    Backtest
        A portfolio that has lost everything stays at 0 and trades no more.

    Raises
    ------
    InputError
        Weights that are negative, infinite, partly missing or sum to more than 1; returns that are infinite, below -1,
        or missing while the asset is held; shapes that do not fit; a cost out of range.

    Examples
    --------
    >>> hold = [np.nan, np.nan]
    >>> found = backtest([[0.5, 0.5], hold, [1.0, 0.0]], [[0.0, 0.0], [0.2, 0.0], [0.0, 0.1]], cost_bps=0)
    >>> found.nav.round(4).tolist()
    [1.0, 1.1, 1.15]
    >>> found.before[1].round(4).tolist()
    [0.5217, 0.4783]
    """
    checker = Validator("backtest")
    checker.number("cost_bps", cost_bps, 0.0, 5000.0, "from 0 to below 5000")
    desired, earned = checker.array("targets", targets, 2, 3), checker.array("returns", returns, 2)
    checker.forbid(np.isinf(earned), "returns", "must be finite, or NaN where there is none", earned)
    checker.forbid(earned < -1, "returns", "must not be below -1", earned)
    missing = np.isnan(desired)
    empty: Bools = np.asarray(missing.all(axis=-1))
    part = missing & ~empty[..., None] if missing.sum() > empty.sum() * desired.shape[-1] else np.zeros(1, np.bool_)
    if checker.forbid(part, "targets", "a row is either all NaN (hold) or has no NaN", desired):
        desired = checker.weights("targets", desired, rows=~empty, least=0.0)
    if desired.size and earned.size and desired.shape[-2:] != earned.shape:
        checker.add("targets", f"must have the days and assets of returns {earned.shape} (got {desired.shape})")
    checker.raise_for_errors()
    single = desired.ndim == 2
    stacked = desired[None] if single else desired
    trades = ~np.isnan(stacked[..., 0])
    days = np.flatnonzero(trades.any(axis=0))
    count, n_days, n_assets = stacked.shape
    # Each day of trades with the last day that its weights drift through
    stretches = list(zip(days.tolist(), [*days.tolist()[1:], n_days - 1], strict=True)) if days.size else []
    gaps, holds = np.isnan(earned), np.zeros((count, n_assets), dtype=np.bool_)
    for day, end in stretches if gaps.any() else ():
        # A return that is missing while its asset is held is an error: any substitute would be invented.
        holds = np.where(trades[:, day, None], stacked[:, day] > 0, holds)
        for asset in np.flatnonzero(gaps[day + 1 : end + 1].any(axis=0) & holds.any(axis=0)):
            first = day + 1 + int(np.argmax(gaps[day + 1 : end + 1, asset]))
            checker.add("returns", f"asset {asset} is held on day {first}, but has no return there")
    checker.raise_for_errors()
    nav, turnover = np.ones((count, n_days)), np.zeros((count, n_days))
    before = np.zeros((count, days.size, n_assets))
    weights, value = np.zeros((count, n_assets)), np.ones(count)
    factors = 1.0 + np.where(gaps, 0.0, earned)  # an asset without a return is not held, as checked above
    for k, (day, end) in enumerate(stretches):
        before[:, k] = weights
        trading = trades[:, day] & (value > 0)
        goal = np.where(trading[:, None], stacked[:, day], weights)
        turnover[:, day] = np.abs(goal - weights).sum(axis=1)
        value = value * (1.0 - cost_bps * 1e-4 * turnover[:, day])
        nav[:, day] = value
        weights = goal
        if end > day:
            growth = np.cumprod(factors[day + 1 : end + 1], axis=0)
            grown = goal @ growth.T + (1.0 - goal.sum(axis=1))[:, None]
            # A cash share of 1 - 1 = -1e-16 must not turn a total loss into a negative value.
            grown = np.where(grown > 1e-15, grown, 0.0)
            nav[:, day + 1 : end + 1] = value[:, None] * grown
            last = grown[:, -1:]
            weights = np.where(last > 0, goal * growth[-1] / np.where(last > 0, last, 1.0), 0.0)
            value = nav[:, end].copy()
    cost = cost_bps * 1e-4 * turnover
    if single:
        return Backtest(nav[0], turnover[0], cost[0], days, before[0])
    return Backtest(nav, turnover, cost, days, before)


# The baselines of PortBench (section 3.1, Appendix C.3) under its names: EqW is ``equal-weight``, 60/40 is ``60/40``,
# RiskPar is ``inverse-volatility``, CovRiskPar is ``equal-risk-contribution``, MinVar is ``minimum-variance``.
# Buy-and-hold, maximum Sharpe ratio and momentum are not part of PortBench.


CLASSES = ("equity", "bond", "commodity", "real_estate", "crypto", "cash")
"""The asset classes of PortBench."""

RISK_FREE = 0.04 / 252
"""Risk-free return a day: 4 % a year (PortBench, Appendix C.1), which is not compounded."""

WINNERS = 0.2
"""The share of assets that momentum holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Weights that a strategy chose on one window of returns."""

    weights: Floats
    status: Status
    left_out: tuple[int, ...]


_BY_COVARIANCE: Mapping[str, Callable[[ArrayLike], Solution]] = {
    "inverse-volatility": inverse_volatility, "equal-risk-contribution": equal_risk_contribution,
    "minimum-variance": min_variance,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named allocation rule; a rule that does not rebalance trades at its first signal only."""

    name: str
    rebalances: bool = True

    def choose(self, window: ArrayLike, classes: Sequence[str]) -> Choice:
        """Weights from a window of returns."""
        checker = Validator(self.name)
        table, names = checker.array("window", window, 2), np.asarray(classes, dtype=np.str_)
        checker.forbid(np.isinf(table), "window", "returns must be finite, or NaN where there is none", table)
        checker.forbid(table < -1, "window", "returns must not be below -1", table)
        if table.size and names.shape != table.shape[1:]:
            checker.add("classes", f"must have one name per asset (got {names.size} for {table.shape[1]})")
        for name in sorted(set(names.ravel().tolist()) - set(CLASSES)):
            checker.add("classes", f"{name!r} is not a class (known: {', '.join(CLASSES)})")
        checker.raise_for_errors()
        listed: Bools = np.asarray(~np.isnan(table).any(axis=0))
        if not listed.any():
            raise NotMeasurableError(f"{self.name}: no asset has a return on every day of the window")
        returns, names, n = table[:, listed], names[listed], int(np.count_nonzero(listed))
        part, status = evenly(n, np.arange(n)), STATUSES[0]
        if self.name == "60/40":  # 60 % equally over the equities, 40 % equally over the bonds
            part = np.zeros(n)
            for kind, share in (("equity", 0.6), ("bond", 0.4)):
                members = names == kind
                if not members.any():
                    raise NotMeasurableError(f"60/40 is undefined: no {kind} has a return on every day of the window")
                part[members] = share / np.count_nonzero(members)
        elif (
            self.name == "momentum"
        ):  # the fifth of the assets that grew most, in equal parts; ties at the edge stay in
            grown = np.prod(1.0 + returns, axis=0)
            part = evenly(n, grown >= np.sort(grown)[-max(1, round(WINNERS * n))])
        elif self.name in (*_BY_COVARIANCE, "maximum-sharpe"):
            if returns.shape[0] < 2:
                raise NotMeasurableError("a covariance of fewer than two days is undefined")
            # Of the sample (ddof 1) over days that all assets share, so never indefinite
            cov = np.atleast_2d(np.cov(returns, rowvar=False))
            if self.name == "maximum-sharpe":
                best = max_sharpe(returns.mean(axis=0), cov, rf=RISK_FREE)
            else:
                best = _BY_COVARIANCE[self.name](cov)
            part, status = part if best.status == "no-positive-excess" else best.weights, best.status
        weights = np.zeros(listed.size)
        weights[listed] = part
        weights.flags.writeable = False
        return Choice(weights, status, tuple(np.flatnonzero(~listed).tolist()))


STRATEGIES: Mapping[str, Strategy] = {
    name: Strategy(name, name != "buy-and-hold")
    for name in ("equal-weight", "buy-and-hold", "60/40", *_BY_COVARIANCE, "maximum-sharpe", "momentum")
}
"""Every strategy by name."""


def schedule(
    strategy: Strategy | str, returns: ArrayLike, classes: Sequence[str], signals: Sequence[int], *, window: int = 60,
    delay: int = 1,
) -> tuple[Floats, tuple[tuple[int, Choice], ...]]:  # fmt: skip
    """Compute a strategy's target weights for `backtest`, traded at the close ``delay`` days after each signal, and
    the choice behind each trade."""
    if isinstance(strategy, str):
        check_known("strategy", STRATEGIES, strategy)
        strategy = STRATEGIES[strategy]
    checker = Validator("schedule")
    table = checker.array("returns", returns, 2)
    checker.number("window", window, 1, np.inf, "at least 1")
    checker.number("delay", delay, 0, np.inf, "at least 0")
    days = [int(day) for day in signals]
    for day in days if table.size else ():
        if not window - 1 <= day < table.shape[0]:
            allowed = f"{window - 1}..{table.shape[0] - 1}, so that a full window lies behind it"
            checker.add("signals", f"day {day} must be within {allowed}")
    if any(later <= earlier for earlier, later in pairwise(days)):
        checker.add("signals", "must increase")
    checker.raise_for_errors()
    used = [day for day in (days if strategy.rebalances else days[:1]) if day + delay < table.shape[0]]
    choices = tuple((day + delay, strategy.choose(table[day + 1 - window : day + 1], classes)) for day in used)
    targets = np.full_like(table, np.nan)
    for day, choice in choices:
        targets[day] = choice.weights
    return targets, choices


# Performance of a net asset value: one convention each, named, since libraries differ by up to 15 %

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Drawdown:
    """A maximum drawdown: the largest fall below an earlier high."""

    depth: float
    peak: int | None
    trough: int | None
    recovery: int | None


@dataclass(frozen=True, slots=True)
class Performance:
    """Performance figures; ``None`` is undefined, and ``undefined`` has the reason. Shares, not percent.

    Attributes
    ----------
    total_return : float or None
        Last value over first, minus 1.
    cagr : float or None
        Yearly growth that compounds to the total return over n / periods years.
    volatility : float or None
        Standard deviation of the returns (ddof 1) times sqrt(periods).
    sharpe : float or None
        (mean * periods - rf) / volatility, the mean being arithmetic.
    sortino : float or None
        (mean * periods - rf) / downside deviation; the latter is the root of the mean of min(return, 0)^2 over all
        days, times sqrt(periods): about 0, not about rf.
    max_drawdown : float or None
        Depth of the largest drawdown, at most 0; the first value counts as a high.
    calmar : float or None
        cagr / |max_drawdown|.
    hit_rate : float or None
        Share of returns above 0.
    drawdown : Drawdown or None
        The largest drawdown with the indices of its peak, trough and recovery.
    n : int
        Number of returns.
    undefined : mapping of str to str
        For each figure that is None, the reason.
    """

    total_return: float | None
    cagr: float | None
    volatility: float | None
    sharpe: float | None
    sortino: float | None
    max_drawdown: float | None
    calmar: float | None
    hit_rate: float | None
    drawdown: Drawdown | None
    n: int
    undefined: Mapping[str, str]


FIGURES = ("total_return", "cagr", "volatility", "sharpe", "sortino", "max_drawdown", "calmar", "hit_rate")
"""The figures of a Performance, in order."""


def performance(nav: ArrayLike, *, rf: float = 0.04, periods: int = 252) -> Performance:
    """Total return, growth, volatility, Sharpe, Sortino, drawdown, Calmar and hit rate of one net asset value.

    The attributes of `Performance` state the conventions. Returns are simple returns between consecutive values;
    anything before the first value (such as the cost of a first purchase) is not included.

    Parameters
    ----------
    nav : float array of shape (n_days,)
        Values greater than 0.
    rf : float
        Risk-free rate a year; it enters Sharpe and Sortino as a plain difference of yearly arithmetic means.
    periods : int
        Returns a year.

    Returns
    -------
    Performance
        Undefined are: everything for a single value; volatility and Sharpe for a single return; Sharpe where the
        returns do not vary; Sortino without a negative return; Calmar without a drawdown; growth too large to state.

    Raises
    ------
    InputError
        A value is missing, infinite, 0 or negative; ``rf`` is not finite; ``periods`` is below 1.

    Examples
    --------
    >>> found = performance([1.0, 1.1, 0.99, 1.2])
    >>> round(found.total_return, 3), round(found.max_drawdown, 3), found.drawdown.recovery
    (0.2, -0.1, 3)
    >>> performance([1.0, 1.0, 1.0]).undefined["sharpe"]
    'undefined: the returns do not vary'
    """
    values = _check_nav(nav, rf, periods)
    n = values.size - 1
    if n == 0:
        reasons = dict.fromkeys(FIGURES, "undefined: one value has no return")
        return Performance(None, None, None, None, None, None, None, None, None, 0, MappingProxyType(reasons))
    returns = values[1:] / values[:-1] - 1.0
    excess = float(returns.mean()) * periods - rf
    undefined: dict[str, str] = {}
    total = float(values[-1] / values[0]) - 1.0
    cagr: float | None = None
    try:
        cagr = float(float(values[-1] / values[0]) ** (periods / n)) - 1.0
    except OverflowError:
        undefined["cagr"] = "undefined: the growth of so few days, compounded over a year, is too large to state"
    volatility: float | None = None
    sharpe: float | None = None
    if n == 1:
        undefined["volatility"] = undefined["sharpe"] = "undefined: one return has no standard deviation"
    else:
        spread = float(returns.std(ddof=1))
        # The same growth every day still leaves rounding in the returns.
        if spread <= _ROUNDING * (1.0 + float(np.abs(returns).max())):
            undefined["sharpe"], volatility = "undefined: the returns do not vary", 0.0
        else:
            volatility = spread * float(np.sqrt(periods))
            sharpe = excess / volatility
    downside = float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2))) * float(np.sqrt(periods))
    if downside == 0:
        undefined["sortino"] = "undefined: no return is negative"
    fall = _drawdown(values)
    if fall.peak is None or cagr is None:
        undefined["calmar"] = "undefined: there is no drawdown" if fall.peak is None else undefined["cagr"]
    sortino = None if downside == 0 else excess / downside
    calmar = None if cagr is None or fall.peak is None else cagr / abs(fall.depth)
    hits, causes = float(np.mean(returns > 0)), MappingProxyType(undefined)
    return Performance(total, cagr, volatility, sharpe, sortino, fall.depth, calmar, hits, fall, n, causes)


def max_drawdown(nav: ArrayLike) -> Drawdown:
    """Compute the maximum drawdown and its position; the first value counts as a high."""
    return _drawdown(_check_nav(nav, 0.0, 1))


def _drawdown(values: Floats) -> Drawdown:
    highs = np.maximum.accumulate(values)
    falls = values / highs - 1.0
    trough = int(np.argmin(falls))
    if falls[trough] == 0:
        return Drawdown(0.0, None, None, None)
    peak = int(np.argmax(values[:trough]))
    again = np.flatnonzero(values[trough:] >= values[peak])
    return Drawdown(float(falls[trough]), peak, trough, trough + int(again[0]) if again.size else None)


def _check_nav(nav: ArrayLike, rf: float, periods: int) -> Floats:
    checker = Validator("performance")
    values = checker.array("nav", nav, 1)
    if checker.forbid(~np.isfinite(values), "nav", "must be finite", values):
        checker.forbid(values <= 0, "nav", "must be greater than 0", values)
    checker.number("rf", rf, -1e9, 1e9, "a finite number")
    checker.number("periods", periods, 1, 1e9, "at least 1")
    checker.raise_for_errors()
    return values


Method = Literal["historical", "normal"]


def value_at_risk(returns: ArrayLike, level: float = 0.95, *, method: Method = "historical") -> float:
    """Compute the loss that the worst 1 - level of the periods reached or exceeded, as a positive share."""
    days = _check_returns("value_at_risk", returns, level, method)
    if method == "historical":
        return -float(np.quantile(days, 1.0 - level))
    return -float(days.mean()) - NormalDist().inv_cdf(1.0 - level) * float(days.std(ddof=1))


def expected_shortfall(returns: ArrayLike, *, level: float = 0.95, method: Method = "historical") -> float:
    """Compute the mean loss of the periods beyond the value at risk, as a positive share (CVaR of PortBench, T2)."""
    days = _check_returns("expected_shortfall", returns, level, method)
    if method == "historical":
        # A place that is a whole number up to rounding is that number: 0.1 of 10 steps is 1 step.
        count = int((days.size - 1) * (1.0 - level) + 1e-9) + 1
        return -float(np.sort(days)[:count].mean())
    normal = NormalDist()
    return -float(days.mean()) + float(days.std(ddof=1)) * normal.pdf(normal.inv_cdf(level)) / (1.0 - level)


def _check_returns(source: str, returns: ArrayLike, level: float, method: str) -> Floats:
    """Return the checked returns, or raise one error that lists everything wrong with them."""
    check_known("method", get_args(Method), method)
    checker = Validator(source)
    days = checker.array("returns", returns, 1)
    if checker.forbid(~np.isfinite(days), "returns", "must be finite", days):
        checker.forbid(days < -1, "returns", "must not be below -1", days)
    checker.number("level", level, 0.5, 1.0, "from 0.5 to below 1 (0.95 looks at the worst 5 %)")
    checker.raise_for_errors()
    if method == "normal" and days.size == 1:
        raise NotMeasurableError("a normal loss is undefined: one return has no standard deviation")
    return days
