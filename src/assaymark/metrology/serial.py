"""Clusters that follow each other in time: how far they depend on each other, and a t test that allows for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import settle
from assaymark.metrology.moderated import FLAT_VARIANCE, PairState, pair_differences, pairs_of, t_p, table_of

FEWEST_CONSECUTIVE = 12
"""With fewer common clusters a pair that is compared over time cannot be tested."""

_FEWEST_BLOCKS = 6
_LARGEST_RHO = 0.9
_FEWEST_EFFECTIVE = 2.5


@dataclass(frozen=True, slots=True)
class SerialContrast:
    """One pair over clusters that follow each other. What it lacks is None."""

    state: PairState
    gap: float | None
    block: Literal[1, 2] | None
    rho: float | None
    clusters: int
    effective: float | None
    df: float | None
    se: float | None
    p: float


@dataclass(frozen=True, slots=True)
class EffectiveT:
    """The arrays [..., pairs] behind `SerialContrast`."""

    gap: Floats
    block: Ints
    rho: Floats
    clusters: Ints
    effective: Floats
    df: Floats
    se: Floats
    p: Floats


def serial_contrasts(table: ArrayLike) -> dict[tuple[int, int], SerialContrast]:
    """Test every pair of agents over clusters that follow each other in time. Source: Bartlett 1935, Kendall 1954,
    Zieba 2011."""
    scores = table_of("serial_contrasts", "table", table)
    return serial_tests(pair_differences(scores), scores)


def serial_tests(differences: Floats, effects: Floats) -> dict[tuple[int, int], SerialContrast]:
    """`serial_contrasts` of any contrasts of agents."""
    agents = effects.shape[1]
    present = ~np.isnan(differences)
    counts = present.sum(axis=0)
    tested = counts >= FEWEST_CONSECUTIVE
    first, second = pairs_of(agents)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    occurs = np.zeros(agents, dtype=bool)
    occurs[first[tested]] = occurs[second[tested]] = True
    table = effects[:, occurs]
    table = table[~np.isnan(table).any(axis=1)]
    found: dict[tuple[int, int], SerialContrast] = {}
    for k in np.flatnonzero(~tested).tolist():
        gap = float(settle(differences[present[:, k], k].mean())) if counts[k] else None
        found[pairs[k]] = SerialContrast("cannot be tested", gap, None, None, int(counts[k]), None, None, None, 1.0)
    # Pairs that have the same clusters are tested together: all of them at once where nothing is missing.
    patterns, pattern = np.unique(present[:, tested], axis=1, return_inverse=True)
    for p, rows in enumerate(patterns.T):
        columns = np.flatnonzero(tested)[pattern.ravel() == p]
        result = effective_t(differences[np.ix_(rows, columns)], table)
        for place, k in enumerate(columns.tolist()):
            df = float(result.df[place])
            found[pairs[k]] = SerialContrast(
                state="tested", gap=float(result.gap[place]), block=1 if result.block[place] == 1 else 2,
                rho=float(result.rho[place]), clusters=int(result.clusters[place]),
                effective=float(result.effective[place]), df=None if math.isnan(df) else df, se=float(result.se[place]),
                p=float(result.p[place]),
            )  # fmt: skip
    return {pair: found[pair] for pair in pairs}


def effective_t(differences: Floats, table: Floats) -> EffectiveT:
    """t test with the effective number of clusters of each column of differences [..., n, pairs], none missing."""
    gap = settle(differences.mean(axis=-2))
    best: EffectiveT | None = None
    for block in (1, 2):
        values = _blocks(differences, block)
        n = values.shape[-2]
        if block > 1 and n < _FEWEST_BLOCKS:
            break
        rest = values - values.mean(axis=-2, keepdims=True)
        squares = np.square(rest).sum(axis=-2)
        rho = _bound(_lagged(rest, 1), squares, n, 1)
        if min(table.shape[-2] - FEWEST_CONSECUTIVE, table.shape[-1] - 2) >= 0:
            common = _double_centred(_blocks(table, block))
            total = np.square(common).sum(axis=(-2, -1))
            shared = _bound(_lagged(common, 1).sum(axis=-1), total, common.shape[-2], common.shape[-1] - 1)
            rho = np.maximum(rho, shared[..., None])
        rho = np.clip(rho, 0.0, _LARGEST_RHO)
        effective = effective_size(n, rho)
        variance = squares / (n - 1)
        variance = np.where(variance <= FLAT_VARIANCE, 0.0, variance)
        # Dependent rows vary too little around their mean.
        variance /= np.maximum(0.2, 1 - ((1 + rho) / (1 - rho) - 1) / (n - 1))
        error = np.sqrt(variance / effective)
        df = np.where(error == 0, np.nan, effective - 1)
        p = t_p(gap, error, effective - 1, n)
        rows = np.broadcast_to(np.int64(n), p.shape)
        found = EffectiveT(gap, np.full(p.shape, block), rho, rows, effective, df, error, p)
        best = found if best is None else _larger_p(best, found)
    assert best is not None
    return best


def effective_size(rows: float, rho: ArrayLike) -> Floats:
    """How many independent rows so many with a lag-1 autocorrelation ``rho`` are worth, at least 2.5."""
    r = np.asarray(rho, dtype=np.float64)
    return np.maximum(_FEWEST_EFFECTIVE, rows * (1 - r) / (1 + r))


def autocorrelations(table: ArrayLike, *, lags: int = 4) -> tuple[list[float], float | None]:
    """How far clusters resemble those before them: autocorrelations of the differences between agents."""
    scores = table_of("autocorrelations", "table", table)
    longest = checks.whole("autocorrelations", "lags", lags, least=1)
    scores = scores[~np.isnan(scores).any(axis=1)]
    clusters, agents = scores.shape
    rest = _double_centred(scores) if clusters else scores
    total = float(np.square(rest).sum())
    if agents < 2 or clusters < 3 or total <= FLAT_VARIANCE * rest.size:
        return [], None
    found = [float(_lagged(rest, lag).sum()) / total for lag in range(1, min(longest, clusters - 1) + 1)]
    return found, 1.645 / math.sqrt((clusters - 1) * (agents - 1)) - 1 / clusters


def _blocks(values: Floats, size: int) -> Floats:
    """Means of ``size`` neighbours along the rows [..., n, columns]; a short last block joins the one before."""
    n = values.shape[-2]
    if size == 1:
        return values
    starts = np.arange(n // size) * size
    lengths = np.diff(np.append(starts, n))
    return np.asarray(np.add.reduceat(values, starts, axis=-2) / lengths[:, None])


def _double_centred(table: Floats) -> Floats:
    rest = table - table.mean(axis=-1, keepdims=True)
    return np.asarray(rest - rest.mean(axis=-2, keepdims=True))


def _lagged(rest: Floats, lag: int) -> Floats:
    return np.asarray((rest[..., lag:, :] * rest[..., :-lag, :]).sum(axis=-2))


def _bound(products: Floats, squares: Floats, n: int, width: int) -> Floats:
    """Lag-1 autocorrelation of n rows, corrected for its bias and raised by a quarter of its error; 0 if flat."""
    varies = squares > FLAT_VARIANCE * (n - 1)
    r = (products / np.where(varies, squares, 1.0) + 1 / n) / (1 - 3 / n)
    raised = r + np.sqrt(np.maximum(1 - np.minimum(np.square(r), 0.95**2), 0.05) / (n * width)) / 4
    return np.where(varies, raised, 0.0)


def _larger_p(first: EffectiveT, second: EffectiveT) -> EffectiveT:
    """The one with the larger p, pair by pair; the first where they are equal."""
    later: Bools = second.p > first.p
    return EffectiveT(*(np.where(later, getattr(second, name), getattr(first, name)) for name in EffectiveT.__slots__))
