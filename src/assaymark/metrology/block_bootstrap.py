"""Ratios of one history of returns: what another stretch of the same market might have shown.

The days of a history hang together, so single days are not resampled, but blocks of random length (the stationary
bootstrap). Histories that are compared are cut at the same places: what they share cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology.checks import Floats, probability

RESAMPLES = 2000

_FLAT = 1e-12  # relative spread of returns below which they are one number and rounding
_SIGNIFICANT = 2.0  # autocorrelations below this many sqrt(log10(n)/n) count as none (Politis and White, section 3.2)
_AT_ONCE = 8_000_000  # cells of the table of counts made at a time


@dataclass(frozen=True, slots=True)
class Ratio:
    """A Sharpe ratio, or a difference of two, with its interval over resampled histories.

    ``p`` is two-sided, for the value 0. ``block`` is the mean length of a block in days.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    block: float
    method: str


def block_length(values: ArrayLike) -> float:
    """Mean length of the blocks for the stationary bootstrap of a mean, 1 or more.

    Autocorrelations up to the last one that stands out are weighed by a flat-top window, and the length that
    minimises the mean squared error of the variance follows from them.

    Parameters
    ----------
    values : float array of shape (n,)
        In the order of time, 10 or more, not all equal.

    References
    ----------
    Politis, D. and White, H. (2004). Automatic block-length selection for the dependent bootstrap. Econometric Reviews
    23, 53-70; corrected by Patton, Politis and White (2009), Econometric Reviews 28, 372-375.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.standard_normal(1000)
    >>> block_length(noise) < block_length(np.convolve(noise, np.ones(20)))
    True
    """
    series = _series("block_length", np.asarray(values, dtype=float)[None])[0]
    n = series.size
    centred = series - series.mean()
    run = max(5, math.isqrt(int(math.log10(n))))
    lags = min(n - 1, math.ceil(math.sqrt(n)) + run)
    covariance = np.array([centred[lag:] @ centred[: n - lag] for lag in range(lags + 1)]) / n
    small = np.abs(covariance[1:] / covariance[0]) < _SIGNIFICANT * math.sqrt(math.log10(n) / n)
    last = next((m for m in range(lags - run + 1) if small[m : m + run].all()), None)
    width = min(lags, 2 * max(1, last)) if last is not None else lags
    k = np.arange(1, width + 1)
    weight = np.clip(2.0 * (1.0 - k / width), 0.0, 1.0)
    long_run = covariance[0] + 2.0 * (weight * covariance[1 : width + 1]).sum()
    slope = 2.0 * (weight * k * covariance[1 : width + 1]).sum()
    most = math.ceil(min(3.0 * math.sqrt(n), n / 3.0))
    if long_run <= 0:
        return float(most)
    return float(np.clip((n * slope**2 / long_run**2) ** (1.0 / 3.0), 1.0, most))


def sharpe_ratios(
    returns: ArrayLike,
    pairs: Sequence[tuple[int, int]] = (),
    *,
    rng: np.random.Generator,
    rf: float = 0.04,
    periods: int = 252,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    block: float | None = None,
) -> tuple[tuple[Ratio, ...], tuple[Ratio, ...]]:
    """The Sharpe ratio of each history, and differences of two, by the stationary block bootstrap.

    Read an interval as what the ratio might have been in another stretch of the same market. It is symmetric: as wide
    on each side as the share ``level`` of the resampled ratios strays from the observed one at most, so that 0 lies
    outside when ``p`` is below 1 - ``level``.

    Parameters
    ----------
    returns : float array of shape (k, n)
        Simple returns of k histories on the same n days, 10 or more.
    pairs : sequence of (i, j)
        Differences wanted: history i minus history j.
    rng : Generator
    rf : float
        Risk-free rate a year, as in `assaymark.portfolio.performance`.
    periods : int
        Returns a year.
    level : float
        Coverage aimed at. It is about level - .01 at a year of daily returns.
    resamples : int
    block : float, optional
        Mean block length; by default the longest that `block_length` finds for a history or a difference of two.

    Returns
    -------
    (ratios, differences)

    Raises
    ------
    NotMeasurableError
        Fewer than 10 days, or a history that does not vary.
    InputError
        Returns that are missing or infinite; a pair of histories that are not there; a level outside (0, 1).

    References
    ----------
    Politis, D. and Romano, J. (1994). The stationary bootstrap. JASA 89, 1303-1313. Ledoit, O. and Wolf, M. (2008).
    Robust performance hypothesis testing with the Sharpe ratio. Journal of Empirical Finance 15, 850-859.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> market = rng.normal(0.0006, 0.01, 250)
    >>> histories = np.stack([market, market + 0.0005])
    >>> (one, two), (gap,) = sharpe_ratios(histories, [(1, 0)], rng=rng)
    >>> one.low < 0 < one.high, gap.low > 0
    (True, True)
    """
    probability("sharpe_ratios", "level", level)
    series = _series("sharpe_ratios", np.atleast_2d(np.asarray(returns, dtype=float)))
    _check_pairs(pairs, len(series))
    n = series.shape[1]
    length = block if block is not None else _longest(series, pairs)
    observed = _sharpe(series.mean(axis=1), np.square(series).mean(axis=1), n, rf, periods)
    drawn = np.concatenate(
        [
            _sharpe(counts @ series.T / n, counts @ np.square(series).T / n, n, rf, periods)
            for counts in day_counts(n, length, resamples, rng)
        ]
    )
    method = f"stationary block bootstrap, mean block {length:.3g} days, {resamples} resamples, symmetric"

    def ratio(value: float, found: Floats) -> Ratio:
        # A resample of one day again and again has no ratio: it strays without bound.
        strayed = np.where(np.isfinite(found), np.abs(found - value), np.inf)
        half = float(np.sort(strayed)[min(resamples - 1, math.ceil(level * resamples) - 1)])
        p = (1 + int((strayed >= abs(value)).sum())) / (1 + resamples)
        return Ratio(value, value - half, value + half, p, n, length, method)

    singles = tuple(ratio(float(observed[i]), drawn[:, i]) for i in range(len(series)))
    differences = tuple(ratio(float(observed[i] - observed[j]), drawn[:, i] - drawn[:, j]) for i, j in pairs)
    return singles, differences


def _longest(series: Floats, pairs: Sequence[tuple[int, int]]) -> float:
    """The longest block that any history, or any difference that varies, asks for."""
    compared = [series[i] - series[j] for i, j in pairs]
    varying = [one for one in compared if one.std() > _FLAT * (1.0 + np.abs(one).max())]
    return max(block_length(one) for one in [*series, *varying])


def _sharpe(mean: Floats, square: Floats, n: int, rf: float, periods: int) -> Floats:
    """Sharpe ratios from means and mean squares, with the sample variance (ddof 1)."""
    variance = np.maximum(square - np.square(mean), 0.0) * n / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (mean * periods - rf) / np.sqrt(variance * periods)
    return found


def day_counts(n: int, length: float, resamples: int, rng: np.random.Generator) -> Sequence[Floats]:
    """How often each day stands in each resample, in tables of shape (some, n): means and ratios need no more."""
    size = max(1, _AT_ONCE // n)
    return [_drawn(n, length, min(size, resamples - start), rng) for start in range(0, resamples, size)]


def _drawn(n: int, length: float, resamples: int, rng: np.random.Generator) -> Floats:
    begins = rng.random((resamples, n)) < 1.0 / length
    begins[:, 0] = True
    place = np.arange(n)
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    start = np.take_along_axis(rng.integers(0, n, (resamples, n)), first, axis=1)
    days = (start + place - first) % n  # the last day is followed by the first
    flat = (np.arange(resamples)[:, None] * n + days).ravel()
    return np.bincount(flat, minlength=resamples * n).reshape(resamples, n).astype(float)


def _series(source: str, values: Floats) -> Floats:
    if values.ndim != 2:
        raise InputError(source, [Problem("returns", f"must have one row a history (got shape {values.shape})")])
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise InputError(source, [Problem("returns", f"must be finite ({bad} of {values.size} are not)")])
    if values.shape[1] < 10:
        raise NotMeasurableError(f"{source}: a resampled history needs 10 days or more (got {values.shape[1]})")
    spread = values.std(axis=1)
    for row in np.flatnonzero(spread <= _FLAT * (1.0 + np.abs(values).max(axis=1))):
        raise NotMeasurableError(f"{source}: history {row} does not vary")
    return values


def _check_pairs(pairs: Sequence[tuple[int, int]], k: int) -> None:
    wrong = [pair for pair in pairs if not all(0 <= one < k for one in pair)]
    if wrong:
        raise InputError("sharpe_ratios", [Problem("pairs", f"must name histories 0 to {k - 1} (got {wrong[0]})")])
