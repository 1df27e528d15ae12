"""Is one agent above another? Paired differences, tested over clusters, and corrected for how many were looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from assaymark.metrology import checks
from assaymark.metrology.bootstrap import (
    RESAMPLES,
    SMALL_PRODUCT,
    Resamples,
    block_length,
    day_counts,
    percentile_ends,
    resamples_of,
)
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.quantiles import t_quantile

Test = Literal["cluster-t", "bootstrap", "sign-flip"]

EXACT_FLIPS = 16
"""Up to this many clusters every pattern of signs is enumerated (65,536 of them at 16)."""

_COLUMNS = 64  # contrasts whose resampled or turned sums are looked at together
_ZERO = 1e-9  # scores are means of small whole numbers; below this a difference is float noise


@dataclass(frozen=True, slots=True)
class Contrast:
    """A mean paired difference with its test. ``low`` and ``high`` are None where no interval can be given."""

    difference: float
    low: float | None
    high: float | None
    p: float
    n: int
    clusters: int
    method: str


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment: p-values that may be compared with alpha after looking at all of them.

    Parameters
    ----------
    p : float array of shape (m,)
        Unadjusted p-values in 0..1, in any order. A contrast that could not be tested keeps its place with p = 1.

    Returns
    -------
    float array of shape (m,)
        Adjusted p-values in the order of the input, in 0..1.

    Raises
    ------
    InputError
        Empty, not finite, or outside 0..1.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scand. J. Statist. 6(2), 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = checks.finite("holm", "p", p)
    if (values < 0).any() or (values > 1).any():
        bad = values[(values < 0) | (values > 1)]
        checks.fail("holm", "p", f"p-values lie in 0..1 (first that does not: {float(bad[0])!r})")
    return np.asarray(holm_rows(values[None])[0])


def holm_rows(p: Floats) -> Floats:
    """`holm` of each row [R, m] of good p-values, each row a family of its own."""
    order = np.argsort(p, axis=1, kind="stable")
    factors = np.arange(p.shape[1], 0, -1)
    steps = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, axis=1) * factors, axis=1), 1.0)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, steps, axis=1)
    return adjusted


def cluster_t(differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], level: float = 0.95) -> Contrast:
    """Two-sided t test of a mean paired difference whose items come in clusters (Bell 2002)."""
    sums, counts, n = by_cluster("cluster_t", differences, clusters)
    checks.probability("cluster_t", "level", level)
    return contrast_of(t_test(sums, counts, level), 0, n)


def bootstrap_contrast(
    differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, level: float = 0.95, resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:  # fmt: skip
    """Percentile cluster bootstrap of a mean paired difference: ValueBlindBench's own test (section 3.9)."""
    sums, counts, n = by_cluster("bootstrap_contrast", differences, clusters)
    checks.probability("bootstrap_contrast", "level", level)
    checks.whole("bootstrap_contrast", "resamples", resamples, least=1)
    (test,) = bootstrap_tests([(sums, counts)], resamples, rng, level, intervals=[True])
    return contrast_of(test, 0, n)


@dataclass(frozen=True, slots=True)
class Tested:
    """The same test on K columns of scores: differences, p-values, and interval ends where there are any [K].

    Ends are NaN where no interval can be given; they become None before anybody sees them.
    """

    difference: Floats
    p: Floats
    low: Floats
    high: Floats
    clusters: int
    method: tuple[str, ...]


def contrast_of(tests: Tested, column: int, n: int) -> Contrast:
    """One column of several tests as the public result."""
    known = not np.isnan(tests.low[column])
    low, high = (float(tests.low[column]), float(tests.high[column])) if known else (None, None)
    difference, p = float(tests.difference[column]), float(tests.p[column])
    return Contrast(difference, low, high, p, n, tests.clusters, tests.method[column])


def t_test(sums: Floats, counts: Ints, level: float = 0.95) -> Tested:
    """`cluster_t` on cluster sums [G, K] and cluster sizes [G]."""
    g, n = counts.size, counts.sum()
    mean = sums.sum(axis=0) / n
    difference = settle(mean)
    if g < 2:
        nothing = np.full_like(difference, np.nan)
        method = ("cluster-t: one common cluster cannot be tested, p = 1",) * difference.size
        return Tested(difference, np.ones_like(difference), nothing, nothing, g, method)
    share = counts / n
    error = np.sqrt(np.square(sums / n - share[:, None] * mean).T @ (1 / (1 - share)))
    df = effective_df(share)
    flat = error <= _ZERO
    t = difference / np.where(flat, 1.0, error)
    p = np.where(flat, np.where(difference == 0, 1.0, 2.0 ** (1 - g)), 2 * special.stdtr(df, -np.abs(t)))
    half = np.where(flat, np.nan, t_quantile(0.5 + level / 2, df) * error)
    usual, exact = (
        f"cluster-t, CR2, t({df:.3g}) over {g} clusters",
        f"clusters differ equally: exact sign flip over {g}",
    )
    method = tuple(exact if same else usual for same in flat)
    return Tested(difference, p, difference - half, difference + half, g, method)


def effective_df(share: Floats) -> float:
    """Satterthwaite degrees of freedom of the CR2 variance of a mean, from the share of items in each cluster."""
    weight = share**2 / (1 - share)
    return float(1.0 / (np.square(share).sum() + weight.sum() ** 2 - np.square(weight).sum()))


def bootstrap_tests(
    parts: Sequence[tuple[Floats, Ints]], resamples: int, rng: np.random.Generator | None, level: float,
    intervals: Sequence[bool], leading: int | None = None,
) -> list[Tested]:  # fmt: skip
    """`bootstrap_contrast` on several pairs (cluster sums [G, K], sizes [G]), all with equal G and on the same
    draws."""
    g = parts[0][1].size
    drawn = tuple(resamples_of(g, resamples, rng, "bootstrap_contrast"))
    size = sum(chunk.size for chunk in drawn)
    kind = "multinomial:" if drawn[0].mass is None else "exact: all"
    method = f"cluster bootstrap, {kind} {size} resamples of {g} clusters"
    places = np.cumsum([0, *(sums.shape[1] for sums, _ in parts)])
    p = _tails(np.concatenate([sums for sums, _ in parts], axis=1), drawn, size)
    found = []
    for (sums, counts), wanted, start, stop in zip(parts, intervals, places, places[1:], strict=False):
        width = sums.shape[1]
        low, high = np.full((2, width), np.nan)
        if wanted:
            low[:leading], high[:leading] = _ends(sums[:, :leading], counts, drawn, size, level)
        found.append(Tested(settle(sums.sum(axis=0) / counts.sum()), p[start:stop], low, high, g, (method,) * width))
    return found


def _tails(sums: Floats, drawn: Sequence[Resamples], size: int) -> Floats:
    """Two-sided p of every column [G, W], from the weight or number of resamples in its smaller tail."""
    g, exact = sums.shape[0], drawn[0].exact
    parts = np.array_split(np.ascontiguousarray(sums.T), max(1, sums.shape[1] // _COLUMNS))
    tails = [np.zeros((2, part.shape[0])) for part in parts]
    for _, times, mass in _blocks(drawn):
        for tail, part in zip(tails, parts, strict=True):
            totals = part @ times
            tail[0] += _weigh(totals <= _ZERO, mass)
            tail[1] += _weigh(totals >= -_ZERO, mass)
    return _tail_p(np.concatenate(tails, axis=1).min(axis=0), g, None if exact else size)


def _ends(sums: Floats, counts: Ints, drawn: Sequence[Resamples], size: int, level: float) -> tuple[Floats, Floats]:
    """Percentile ends of one pair's columns; all its resampled means are held at once."""
    means = np.empty((sums.shape[1], size))
    for start, times, _ in _blocks(drawn):
        means[:, start : start + times.shape[1]] = (sums.T @ times) / (counts @ times)
    low, high = percentile_ends(means, drawn[0].mass, level)
    return low, high


def _blocks(drawn: Sequence[Resamples]) -> Iterator[tuple[int, Floats, Floats | None]]:
    """The resamples as [G, rows] floats in blocks, each with its first row and its mass."""
    start = 0
    for chunk in drawn:
        rows = max(1, SMALL_PRODUCT // (_COLUMNS * chunk.times.shape[1]))
        for first in range(0, chunk.size, rows):
            times = chunk.times[first : first + rows].T.astype(np.float64)
            yield start, times, None if chunk.mass is None else chunk.mass[first : first + rows]
            start += times.shape[1]


def _weigh(hits: Bools, mass: Floats | None) -> Floats:
    """How many resamples, or how much mass, each row of hits has."""
    return np.count_nonzero(hits, axis=1).astype(np.float64) if mass is None else np.asarray(hits @ mass)


def settle(differences: Floats) -> Floats:
    """Differences with float noise around zero set to zero."""
    return np.where(np.abs(differences) <= _ZERO, 0.0, differences)


def _tail_p(tail: Floats, clusters: int, drawn: int | None) -> Floats:
    """Two-sided p from the smaller tail: its weight where resamples were enumerated, else its number of draws."""
    if drawn is None:
        draws = float(clusters) ** clusters
        return np.minimum(1.0, np.maximum(2 * tail, 2.0) / draws)
    return np.minimum(1.0, 2 * (tail + 1) / (drawn + 1))


def by_cluster(source: str, differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any]) -> tuple[Floats, Ints, int]:
    """Sums [G, 1] and sizes [G] of differences by cluster."""
    values = checks.finite(source, "differences", differences)
    names, codes = checks.labels(source, "clusters", clusters, values.size)
    sums = np.bincount(codes, weights=values, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    return sums[:, None].astype(np.float64, copy=False), counts.astype(np.int64, copy=False), values.size


# The sign-flip test: had the agents been equal, each cluster could as well have come out the other way round.


_ROWS = 1 << 14  # patterns looked at together


def sign_flip(
    differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, level: float = 0.95, resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:  # fmt: skip
    """Sign-flip test of a mean paired difference whose items come in clusters (Canay 2017)."""
    sums, counts, n = by_cluster("sign_flip", differences, clusters)
    checks.probability("sign_flip", "level", level)
    checks.whole("sign_flip", "resamples", resamples, least=1)
    (test,) = flip_tests([(sums, counts)], resamples, rng, level, intervals=[True])
    return contrast_of(test, 0, n)


def flip_tests(
    parts: Sequence[tuple[Floats, Ints]], resamples: int, rng: np.random.Generator | None, level: float,
    intervals: Sequence[bool], leading: int | None = None,
) -> list[Tested]:  # fmt: skip
    """`sign_flip` on several pairs (cluster sums [G, K], sizes [G]), all with equal G and on the same patterns."""
    g = parts[0][1].size
    exact = g <= EXACT_FLIPS
    turned = _all_patterns(g) if exact else _drawn_patterns(g, resamples, rng)
    hits = _far(np.concatenate([sums for sums, _ in parts], axis=1), turned)
    # Of two opposite patterns only one is enumerated: turning every sign changes no distance from 0.
    total = float(turned.shape[0]) if exact else turned.shape[0] + 1.0
    p = hits / total if exact else (hits + 1) / total
    method = f"sign flip, exact: all {2**g}" if exact else f"sign flip, drawn: {resamples}"
    found, start = [], 0
    for (sums, counts), wanted in zip(parts, intervals, strict=True):
        width = sums.shape[1]
        low, high = np.full((2, width), np.nan)
        if wanted and g > 1:
            spans = math.floor((1 - level) * total + _ZERO)
            low[:leading], high[:leading] = _flips_ends(sums[:, :leading], counts, turned, spans, exact)
        difference = settle(sums.sum(axis=0) / counts.sum())
        said = (f"{method} patterns of {g} clusters",) * width
        found.append(Tested(difference, p[start : start + width], low, high, g, said))
        start += width
    return found


@cache
def _all_patterns(clusters: int) -> Bools:
    """Which clusters are turned round [2^(G-1), G] in every pattern that leaves the last one; the first turns none."""
    patterns = (np.arange(2 ** (clusters - 1))[:, None] >> np.arange(clusters) & 1).astype(bool)
    patterns.setflags(write=False)
    return patterns


def _drawn_patterns(clusters: int, resamples: int, rng: np.random.Generator | None) -> Bools:
    """Which clusters are turned round [R, G], each with probability one half."""
    if rng is None:
        checks.fail(
            "sign_flip",
            "rng",
            f"{clusters} clusters are too many to enumerate (up to {EXACT_FLIPS} are); "
            "pass a generator such as np.random.default_rng(7)",
        )
    return rng.integers(0, 2, size=(resamples, clusters), dtype=np.uint8).astype(bool)


def _flips_blocks(turned: Bools, rows: int) -> Iterator[Floats]:
    for start in range(0, turned.shape[0], rows):
        yield turned[start : start + rows].astype(np.float64)


def _far(sums: Floats, turned: Bools) -> Floats:
    """In how many patterns the total of each column [G, W] lies at least as far from 0 as it really does [W]."""
    total = sums.sum(axis=0)
    least = np.abs(total) - _ZERO
    hits = np.zeros(sums.shape[1])
    parts = [slice(start, start + _COLUMNS) for start in range(0, hits.size, _COLUMNS)]
    for block in _flips_blocks(turned, max(1, SMALL_PRODUCT // (_COLUMNS * sums.shape[0]))):
        for part in parts:
            hits[part] += np.count_nonzero(np.abs(total[part] - 2 * (block @ sums[:, part])) >= least[part], axis=0)
    return hits


def _flips_ends(sums: Floats, counts: Ints, turned: Bools, spans: int, exact: bool) -> tuple[Floats, Floats]:
    """Ends [K] of the differences that the test keeps, NaN where it keeps all of them."""
    some = turned.any(axis=1) & ~turned.all(axis=1)
    # Drawn patterns that turn all or none speak for every difference; the enumerated one is the test's own.
    need = spans if exact else spans - int((~some).sum())
    if need < 1:
        return np.full(sums.shape[1], np.nan), np.full(sums.shape[1], np.nan)
    means = [
        ((block @ sums) / (block @ counts)[:, None], ((1 - block) @ sums) / ((1 - block) @ counts)[:, None])
        for block in _flips_blocks(turned[some], _ROWS)
    ]
    one, other = (np.concatenate(side) for side in zip(*means, strict=True))
    starts, stops = np.minimum(one, other), -np.maximum(one, other)
    return np.partition(starts, need - 1, axis=0)[need - 1], -np.partition(stops, need - 1, axis=0)[need - 1]


# What an agent earned over a baseline a day: what another stretch of the same season might have shown.


@dataclass(frozen=True, slots=True)
class DailyExcess:
    """A mean daily difference with its interval. ``p`` is two-sided, for none; ``block`` is in days."""

    mean: float
    low: float
    high: float
    p: float
    n: int
    block: float
    method: str


def daily_excess(
    returns: ArrayLike, baseline: ArrayLike, *, rng: np.random.Generator, level: float = 0.95,
    resamples: int = RESAMPLES,
) -> DailyExcess:  # fmt: skip
    """The mean daily difference of two return series, by the stationary block bootstrap."""
    source = "daily_excess"
    own = checks.finite(source, "returns", returns)
    other = checks.finite(source, "baseline", baseline)
    if own.size != other.size:
        checks.fail(source, "baseline", f"must have one return for each of the {own.size} days (got {other.size})")
    checks.probability(source, "level", level)
    difference = own - other
    block = block_length(difference)
    n = difference.size
    drawn = np.concatenate([counts @ difference / n for counts in day_counts(n, block, resamples, rng)])
    # Resampled means vary about the sample with n in the denominator, as a variance with ddof 0 does.
    error = float(drawn.std()) * math.sqrt(n / (n - 1))
    freedom = max(1.0, n / block - 1)
    mean = float(difference.mean())
    half = t_quantile(0.5 + level / 2, freedom) * error
    p = float(2 * special.stdtr(freedom, -abs(mean) / error))
    method = f"stationary block bootstrap, mean block {block:.3g} days, {resamples} resamples, t({freedom:.3g})"
    return DailyExcess(mean, mean - half, mean + half, p, n, block, method)
