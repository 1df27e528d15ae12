"""Performance of a net asset value: one convention each, named, since libraries differ by up to 15 %."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio.optimisers import Findings
from assaymark.portfolio.qp import Floats

_ROUNDING = 8 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Drawdown:
    """The deepest fall below an earlier high."""

    depth: float
    peak: int | None
    trough: int | None
    recovery: int | None


@dataclass(frozen=True, slots=True)
class Performance:
    """Performance figures; ``None`` is undefined, and ``undefined`` says why. Shares, not percent.

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
        Depth of the deepest drawdown, at most 0; the first value counts as a high.
    calmar : float or None
        cagr / |max_drawdown|.
    hit_rate : float or None
        Share of returns above 0.
    drawdown : Drawdown or None
        The deepest drawdown with its places.
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

    The conventions stand at the attributes of `Performance`. Returns are simple returns between consecutive values;
    what happened before the first value (such as the cost of a first purchase) is not seen.

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
    values = _checked(nav, rf, periods)
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
    fall = _deepest(values)
    if fall.peak is None or cagr is None:
        undefined["calmar"] = "undefined: there is no drawdown" if fall.peak is None else undefined["cagr"]
    return Performance(
        total_return=total,
        cagr=cagr,
        volatility=volatility,
        sharpe=sharpe,
        sortino=None if downside == 0 else excess / downside,
        max_drawdown=fall.depth,
        calmar=None if cagr is None or fall.peak is None else cagr / abs(fall.depth),
        hit_rate=float(np.mean(returns > 0)),
        drawdown=fall,
        n=n,
        undefined=MappingProxyType(undefined),
    )


def max_drawdown(nav: ArrayLike) -> Drawdown:
    """The deepest fall below an earlier high, and where it lies; the first value counts as a high."""
    return _deepest(_checked(nav, 0.0, 1))


def _deepest(values: Floats) -> Drawdown:
    highs = np.maximum.accumulate(values)
    falls = values / highs - 1.0
    trough = int(np.argmin(falls))
    if falls[trough] == 0:
        return Drawdown(0.0, None, None, None)
    peak = int(np.argmax(values[:trough]))
    again = np.flatnonzero(values[trough:] >= values[peak])
    return Drawdown(float(falls[trough]), peak, trough, trough + int(again[0]) if again.size else None)


def _checked(nav: ArrayLike, rf: float, periods: int) -> Floats:
    found = Findings("performance")
    values = found.array("nav", nav, (1,))
    if values is not None and found.none_of(~np.isfinite(values), "nav", "must be finite", values):
        found.none_of(values <= 0, "nav", "must be greater than 0", values)
    found.number("rf", rf, -1e9, 1e9, "a finite number")
    found.number("periods", periods, 1, 1e9, "at least 1")
    found.settle()
    assert values is not None
    return values


Method = Literal["historical", "normal"]


def value_at_risk(returns: ArrayLike, *, level: float = 0.95, method: Method = "historical") -> float:
    """The loss that was reached or exceeded in the worst 1 - level of the periods, as a positive share."""
    days = _risk_checked("value_at_risk", returns, level, method)
    if method == "historical":
        return -float(np.quantile(days, 1.0 - level))
    return -float(days.mean()) - NormalDist().inv_cdf(1.0 - level) * _spread(days)


def expected_shortfall(returns: ArrayLike, *, level: float = 0.95, method: Method = "historical") -> float:
    """The mean loss of the periods behind the value at risk, as a positive share (CVaR of PortBench, T2)."""
    days = _risk_checked("expected_shortfall", returns, level, method)
    if method == "historical":
        # A place that is a whole number up to rounding is that number: 0.1 of 10 steps is 1 step.
        count = int((days.size - 1) * (1.0 - level) + 1e-9) + 1
        return -float(np.sort(days)[:count].mean())
    normal = NormalDist()
    return -float(days.mean()) + _spread(days) * normal.pdf(normal.inv_cdf(level)) / (1.0 - level)


def _spread(days: Floats) -> float:
    """Standard deviation with ddof 1."""
    if days.size == 1:
        raise NotMeasurableError("a normal loss is undefined: one return has no standard deviation")
    return float(days.std(ddof=1))


def _risk_checked(source: str, returns: ArrayLike, level: float, method: str) -> Floats:
    """The returns, or an error with everything that is wrong with them."""
    if method not in get_args(Method):
        raise UnknownNameError("method", method, get_args(Method))
    found = Findings(source)
    days = found.array("returns", returns, (1,))
    if days is not None and found.none_of(~np.isfinite(days), "returns", "must be finite", days):
        found.none_of(days < -1, "returns", "must not be below -1", days)
    found.number("level", level, 0.5, 1.0, "from 0.5 to below 1 (0.95 looks at the worst 5 %)")
    found.settle()
    assert days is not None
    return days
