"""Pairwise-complete Pearson correlation by masked matrix products (PortBench section B.3).

Every pair uses the days on which both have a return, so that a late listing costs nobody else a day. The price: the
matrix need not be positive semidefinite. It describes; it must not be handed to an optimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.market.instruments import AssetClass, Listing, class_members


@dataclass(frozen=True, slots=True)
class Correlations:
    """Correlations of every pair with the number of days behind each.

    ``values`` is (n, n), symmetric; a pair is NaN exactly where ``defined`` is False: fewer common days than asked
    for, or one of the two does not move on them. ``overlap`` counts common days.
    """

    values: np.ndarray
    overlap: np.ndarray
    defined: np.ndarray


def pairwise_correlation(returns: np.ndarray, *, min_overlap: int = 2) -> Correlations:
    """Pearson correlation of every pair of columns over the rows in which both are present.

    Parameters
    ----------
    returns : float array of shape (n_days, n_instruments)
        NaN where there is no return.
    min_overlap : int
        Pairs with fewer common days are undefined.

    Returns
    -------
    Correlations
        Values dimensionless in [-1, 1].

    Examples
    --------
    >>> found = pairwise_correlation(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, np.nan], [4.0, 8.0]]))
    >>> float(round(found.values[0, 1], 12)), int(found.overlap[0, 1])
    (1.0, 3)
    """
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
    """Mean correlation within each class and between each two, over the defined pairs.

    ``(c, c)`` is the mean over pairs of different instruments of one class; the two interfaces of PortBench's snapshot
    are ``(c, c)`` and ``(c, "EQ")``.

    Raises
    ------
    NotMeasurableError
        No pair of any two classes is defined.
    """
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
