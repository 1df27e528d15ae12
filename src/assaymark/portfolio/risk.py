"""Value at risk and expected shortfall of a series of returns: one sign, one quantile rule, both named."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio.checks import Findings
from assaymark.portfolio.solution import Floats

Method = Literal["historical", "normal"]


def value_at_risk(returns: ArrayLike, *, level: float = 0.95, method: Method = "historical") -> float:
    """The loss that was reached or exceeded in the worst 1 - level of the periods, as a positive share.

    A value of 0.02 at the level 0.95: on the worst 5 % of days at least 2 % were lost. It is the negative of the
    ``1 - level`` quantile of the returns, and so negative itself where even that quantile is a gain; nothing is
    clipped. Seed 002 (task T2 and stage S5, Appendix C) writes the quantile, hence the opposite sign; S5 takes the
    60 days before a decision.

    Parameters
    ----------
    returns : float array of shape (n_days,)
        Simple returns of one portfolio, or of one asset, at least -1.
    level : float
        Confidence, from 0.5 to below 1.
    method : {"historical", "normal"}
        ``historical``: the empirical quantile, linear between the two order statistics around place
        ``(n_days - 1) * (1 - level)``. With 60 days and 0.95 it lies between the third and
        the fourth worst day, next to the fourth.
        ``normal``: ``-(mean + z * std)`` with z the normal quantile at ``1 - level`` and std with ddof 1.

    Returns
    -------
    float
        For the period of the returns; it is not scaled to another one.

    Raises
    ------
    NotMeasurableError
        ``normal`` from a single return, which has no standard deviation.
    UnknownNameError
        A method with another name.
    InputError
        Returns that are missing, infinite or below -1; a level out of range.

    Examples
    --------
    >>> days = [-0.04, -0.01, 0.0, 0.01, 0.02]
    >>> round(value_at_risk(days, level=0.75), 4), round(value_at_risk(days, level=0.75, method="normal"), 4)
    (0.01, 0.0195)
    """
    days = _checked("value_at_risk", returns, level, method)
    if method == "historical":
        return -float(np.quantile(days, 1.0 - level))
    return -float(days.mean()) - NormalDist().inv_cdf(1.0 - level) * _spread(days)


def expected_shortfall(returns: ArrayLike, *, level: float = 0.95, method: Method = "historical") -> float:
    """The mean loss of the periods behind the value at risk, as a positive share (CVaR of PortBench, T2).

    Never less than `value_at_risk` of the same arguments.

    Parameters
    ----------
    returns, level, method
        As in `value_at_risk`. ``historical`` is the plain mean of the worst days up to the place of the quantile,
        ``floor((n_days - 1) * (1 - level)) + 1`` of them: 3 of 60 at 0.95. No day is counted in part.
        ``normal`` is ``-mean + std * pdf(z) / (1 - level)``.

    Raises
    ------
    NotMeasurableError, UnknownNameError, InputError
        As `value_at_risk`.

    Examples
    --------
    >>> round(expected_shortfall([-0.04, -0.01, 0.0, 0.01, 0.02], level=0.75), 4)
    0.025
    """
    days = _checked("expected_shortfall", returns, level, method)
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


def _checked(source: str, returns: ArrayLike, level: float, method: str) -> Floats:
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
