"""Bull, bear, sideways or crisis, per asset class and day (PortBench section B.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.errors import InputError, NotMeasurableError
from assaymark.market.calendar import simple_returns
from assaymark.market.instruments import AssetClass, Listing, class_members

REGIMES = ("bull", "sideways", "bear", "crisis")
"""The four labels."""

UNDEFINED = "undefined"
"""The label of days with too little history for the slow average, unless the drawdown already says crisis."""


def class_index(closes: np.ndarray, listings: Sequence[Listing]) -> dict[AssetClass, np.ndarray]:
    """Equal-weight index of each class, 100 at the start, from the returns that exist on each day."""
    returns = simple_returns(closes)
    there = np.isfinite(returns)
    known = np.where(there, returns, 0.0)
    found: dict[AssetClass, np.ndarray] = {}
    for name, members in class_members(listings).items():
        count = there[:, members].sum(axis=1)
        mean = known[:, members].sum(axis=1) / np.maximum(count, 1)
        found[name] = 100.0 * np.concatenate([[1.0], np.cumprod(1.0 + mean)])
    return found


def drawdown(index: np.ndarray, *, window: int = 252) -> np.ndarray:
    """Fall from the highest value of the last ``window`` days, today included, as a share in [0, 1)."""
    from scipy.ndimage import maximum_filter1d  # here, because it takes 50 ms and few need it

    peak = maximum_filter1d(index, window, origin=(window - 1) // 2, mode="nearest")
    found: np.ndarray = np.round(1.0 - index / peak, 12)
    return found


def regimes(
    index: np.ndarray, *, crisis: float = 0.15, window: int = 252, fast: int = 50, slow: int = 200, band: float = 0.05
) -> np.ndarray:
    """The regime of each day of one class, from that day and earlier days only (PortBench section B.3)."""
    if not (np.isfinite(index).all() and (index > 0).all()):
        raise InputError("index", ["regimes need a positive index without gaps"])
    found = np.full(index.size, UNDEFINED, dtype="U9")
    if index.size >= slow:
        ratio = _average(index, fast)[slow - fast :] / _average(index, slow)
        found[slow - 1 :] = np.where(ratio > 1 + band, "bull", np.where(ratio < 1 - band, "bear", "sideways"))
    found[drawdown(index, window=window) > crisis] = "crisis"
    return found


def _average(index: np.ndarray, days: int) -> np.ndarray:
    """The mean of each ``days`` values in a row, shape (n - days + 1,)."""
    total = np.concatenate([[0.0], np.cumsum(index)])
    found: np.ndarray = (total[days:] - total[:-days]) / days
    return found


# Pairwise-complete Pearson correlation by masked matrix products (PortBench section B.3).
#
# Every pair uses the days on which both have a return, so that a late listing costs nobody else a day. The price: the
# matrix need not be positive semidefinite. It describes; it must not be handed to an optimiser.


@dataclass(frozen=True, slots=True)
class Correlations:
    """Correlations of every pair with the number of days behind each."""

    values: np.ndarray
    overlap: np.ndarray
    defined: np.ndarray


def pairwise_correlation(returns: np.ndarray, *, min_overlap: int = 2) -> Correlations:
    """Pearson correlation of every pair of columns over the rows in which both are present."""
    mask = np.isfinite(returns)
    x, flat = _standardised(returns, mask)
    m = mask.astype(float)
    overlap = m.T @ m
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, squares = x.T @ m, (x * x).T @ m
        spread = squares - sums * sums / overlap
        values = (x.T @ x - sums * sums.T / overlap) / np.sqrt(spread * spread.T)
        # Where a column hardly moves on the common days, the difference above has lost its digits.
        lost = spread < 1e-3 * squares
    defined = (overlap >= max(min_overlap, 2)) & ~(flat[:, None] | flat[None, :])
    for i, j in zip(*np.nonzero(np.triu((lost | lost.T) & defined)), strict=True):
        both = mask[:, i] & mask[:, j]
        exact = _pearson(returns[both, i], returns[both, j])
        values[i, j] = values[j, i] = np.nan if exact is None else exact
        defined[i, j] = defined[j, i] = exact is not None
    values = np.where(defined, np.clip(values, -1.0, 1.0), np.nan)
    own = np.arange(values.shape[0])
    values[own, own] = np.where(defined[own, own], 1.0, np.nan)
    return Correlations(values, overlap.astype(int), defined)


def _standardised(returns: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns centred and scaled, zero where missing; and which columns never move."""
    count = np.maximum(mask.sum(axis=0), 1)
    known = np.where(mask, returns, 0.0)
    top = np.where(mask, returns, -np.inf).max(axis=0, initial=-np.inf)
    bottom = np.where(mask, returns, np.inf).min(axis=0, initial=np.inf)
    flat = ~(top > bottom)
    scale = np.where(flat, 1.0, np.maximum(np.abs(known).max(axis=0, initial=0.0), np.finfo(float).tiny))
    known = known / scale  # first by the largest, so that squares of tiny numbers do not vanish
    centred = np.where(mask, known - known.sum(axis=0) / count, 0.0)
    deviation = np.sqrt((centred * centred).sum(axis=0) / count)
    return centred / np.where(flat | (deviation == 0), 1.0, deviation), flat


def _pearson(a: np.ndarray, b: np.ndarray) -> float | None:
    """Two-pass correlation of one pair, None where one of the two does not move."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum())) * float(np.sqrt((b * b).sum()))
    return float((a * b).sum()) / norm if norm > 0 else None


def class_correlations(found: Correlations, listings: Sequence[Listing]) -> dict[tuple[AssetClass, AssetClass], float]:
    """Mean correlation within each class and between each two, over the defined pairs."""
    usable = found.defined & ~np.eye(found.values.shape[0], dtype=bool)
    members = class_members(listings)
    means: dict[tuple[AssetClass, AssetClass], float] = {}
    for a, rows in members.items():
        for b, columns in members.items():
            block = np.ix_(rows, columns)
            if usable[block].any():
                means[a, b] = float(found.values[block][usable[block]].mean())
    if not means:
        raise NotMeasurableError("no pair of instruments has enough common days that move")
    return means
