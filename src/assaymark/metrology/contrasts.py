"""Is one agent above another? Paired differences, tested over clusters, and corrected for how many were looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from assaymark.metrology import checks
from assaymark.metrology.bootstrap import SMALL_PRODUCT, percentile_ends, resamples_of
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.quantiles import t_quantile

Test = Literal["cluster-t", "bootstrap", "sign-flip"]

EXACT_FLIPS = 16
"""Up to this many clusters every pattern of signs is enumerated (65,536 of them at 16)."""

_COLUMNS = 64  # contrasts whose resampled or turned sums are looked at together
_ROWS = 1 << 14  # patterns looked at together
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
    return _by_draws("bootstrap_contrast", differences, clusters, level, resamples, rng)


def _by_draws(
    source: str, differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], level: float, resamples: int,
    rng: np.random.Generator | None,
) -> Contrast:  # fmt: skip
    sums, counts, n = by_cluster(source, differences, clusters)
    checks.probability(source, "level", level)
    checks.whole(source, "resamples", resamples, least=1)
    tests = bootstrap_tests if source == "bootstrap_contrast" else flip_tests
    return contrast_of(tests([(sums, counts)], resamples, rng, level, [True])[0], 0, n)


@dataclass(frozen=True, slots=True)
class Tested:
    """The same test on K columns of scores: differences, p-values, and interval ends where there are any [K].
    Ends are NaN where no interval can be given; they become None before anybody sees them."""

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
    # Satterthwaite degrees of freedom of the CR2 variance of a mean.
    weight = share**2 / (1 - share)
    df = float(1.0 / (np.square(share).sum() + weight.sum() ** 2 - np.square(weight).sum()))
    flat = error <= _ZERO
    t = difference / np.where(flat, 1.0, error)
    p = np.where(flat, np.where(difference == 0, 1.0, 2.0 ** (1 - g)), 2 * special.stdtr(df, -np.abs(t)))
    half = np.where(flat, np.nan, t_quantile(0.5 + level / 2, df) * error)
    exact = f"clusters differ equally: exact sign flip over {g}"
    method = tuple(exact if same else f"cluster-t, CR2, t({df:.3g}) over {g} clusters" for same in flat)
    return Tested(difference, p, difference - half, difference + half, g, method)


def settle(differences: Floats) -> Floats:
    """Differences with float noise around zero set to zero."""
    return np.where(np.abs(differences) <= _ZERO, 0.0, differences)


def by_cluster(source: str, differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any]) -> tuple[Floats, Ints, int]:
    """Sums [G, 1] and sizes [G] of differences by cluster."""
    values = checks.finite(source, "differences", differences)
    names, codes = checks.labels(source, "clusters", clusters, values.size)
    sums = np.bincount(codes, weights=values, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    return sums[:, None].astype(np.float64, copy=False), counts.astype(np.int64, copy=False), values.size


def sign_flip(
    differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, level: float = 0.95, resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:  # fmt: skip
    """Sign-flip test of a mean paired difference whose items come in clusters (Canay 2017)."""
    return _by_draws("sign_flip", differences, clusters, level, resamples, rng)


Parts = Sequence[tuple[Floats, Ints]]


def bootstrap_tests(
    parts: Parts, resamples: int, rng: np.random.Generator | None, level: float, intervals: Sequence[bool],
    leading: int | None = None,
) -> list[Tested]:  # fmt: skip
    """`bootstrap_contrast` on several pairs (cluster sums [G, K], sizes [G]), all with equal G and on the same
    draws."""
    g = parts[0][1].size
    drawn = tuple(resamples_of(g, resamples, rng, "bootstrap_contrast"))
    size, mass_of_all = sum(chunk.size for chunk in drawn), drawn[0].mass
    # The weight or number of resamples in the smaller tail of every column.
    columns = np.concatenate([sums for sums, _ in parts], axis=1)
    pieces = np.array_split(np.ascontiguousarray(columns.T), max(1, columns.shape[1] // _COLUMNS))
    tails = [np.zeros((2, piece.shape[0])) for piece in pieces]
    rows = max(1, SMALL_PRODUCT // (_COLUMNS * g))

    def weigh(hits: Bools, mass: Floats | None) -> Floats:
        """How many resamples, or how much mass, each row of hits has."""
        return np.count_nonzero(hits, axis=1).astype(np.float64) if mass is None else np.asarray(hits @ mass)

    for chunk in drawn:
        for first, times in enumerate(chunk.blocks(rows)):
            mass = None if chunk.mass is None else chunk.mass[first * rows : (first + 1) * rows]
            for tail, piece in zip(tails, pieces, strict=True):
                totals = piece @ times
                tail[0] += weigh(totals <= _ZERO, mass)
                tail[1] += weigh(totals >= -_ZERO, mass)
    smaller = np.concatenate(tails, axis=1).min(axis=0)
    if mass_of_all is None:
        p = np.minimum(1.0, 2 * (smaller + 1) / (size + 1))
    else:
        p = np.minimum(1.0, np.maximum(2 * smaller, 2.0) / float(g) ** g)

    def ends(sums: Floats, counts: Ints) -> Sequence[Floats]:
        """Percentile ends of one pair's columns; all its resampled means are held at once."""
        parts = ((sums.T @ times) / (counts @ times) for chunk in drawn for times in chunk.blocks(rows))
        return list(percentile_ends(np.concatenate(list(parts), axis=1), mass_of_all, level))

    method = f"cluster bootstrap, {'multinomial:' if mass_of_all is None else 'exact: all'} {size} resamples"
    return _split(parts, p, f"{method} of {g} clusters", intervals, leading, ends)


def flip_tests(
    parts: Parts, resamples: int, rng: np.random.Generator | None, level: float, intervals: Sequence[bool],
    leading: int | None = None,
) -> list[Tested]:  # fmt: skip
    """`sign_flip` on several pairs (cluster sums [G, K], sizes [G]), all with equal G and on the same patterns."""
    g = parts[0][1].size
    exact = g <= EXACT_FLIPS
    if exact:  # every pattern that leaves the last cluster; the first turns none
        turned = (np.arange(2 ** (g - 1))[:, None] >> np.arange(g) & 1).astype(bool)
    elif rng is None:
        many = f"{g} clusters are too many to enumerate (up to {EXACT_FLIPS} are)"
        checks.fail("sign_flip", "rng", f"{many}; pass a generator such as np.random.default_rng(7)")
    else:
        turned = rng.integers(0, 2, size=(resamples, g), dtype=np.uint8).astype(bool)

    def blocks(patterns: Bools, rows: int) -> Iterator[Floats]:
        for start in range(0, patterns.shape[0], rows):
            yield patterns[start : start + rows].astype(np.float64)

    # In how many patterns the total of each column lies at least as far from 0 as it really does.
    columns = np.concatenate([sums for sums, _ in parts], axis=1)
    sum_of_all, hits = columns.sum(axis=0), np.zeros(columns.shape[1])
    least = np.abs(sum_of_all) - _ZERO
    pieces = [slice(start, start + _COLUMNS) for start in range(0, hits.size, _COLUMNS)]
    for block in blocks(turned, max(1, SMALL_PRODUCT // (_COLUMNS * g))):
        for one in pieces:
            far = np.abs(sum_of_all[one] - 2 * (block @ columns[:, one])) >= least[one]
            hits[one] += np.count_nonzero(far, axis=0)
    # Of two opposite patterns only one is enumerated: turning every sign changes no distance from 0.
    total = float(turned.shape[0]) if exact else turned.shape[0] + 1.0

    def ends(sums: Floats, counts: Ints) -> Sequence[Floats]:
        """Ends [K] of the differences that the test keeps, NaN where it keeps all of them."""
        some = turned.any(axis=1) & ~turned.all(axis=1)
        spans = math.floor((1 - level) * total + _ZERO)
        # Drawn patterns that turn all or none speak for every difference; the enumerated one is the test's own.
        need = spans if exact else spans - int((~some).sum())
        if g < 2 or need < 1:
            return [np.full(sums.shape[1], np.nan)] * 2
        means = [
            ((block @ sums) / (block @ counts)[:, None], ((1 - block) @ sums) / ((1 - block) @ counts)[:, None])
            for block in blocks(turned[some], _ROWS)
        ]
        one, other = (np.concatenate(side) for side in zip(*means, strict=True))
        starts, stops = np.minimum(one, other), -np.maximum(one, other)
        return [np.partition(starts, need - 1, axis=0)[need - 1], -np.partition(stops, need - 1, axis=0)[need - 1]]

    method = f"sign flip, exact: all {2**g}" if exact else f"sign flip, drawn: {resamples}"
    p = hits / total if exact else (hits + 1) / total
    return _split(parts, p, f"{method} patterns of {g} clusters", intervals, leading, ends)


def _split(
    parts: Parts, p: Floats, method: str, intervals: Sequence[bool], leading: int | None,
    ends: Callable[[Floats, Ints], Sequence[Floats]],
) -> list[Tested]:  # fmt: skip
    """Each pair's tests, from the p-values of all of their columns, with ``ends`` where intervals are wanted."""
    found, start = [], 0
    for (sums, counts), wanted in zip(parts, intervals, strict=False):
        width = sums.shape[1]
        low, high = np.full((2, width), np.nan)
        if wanted:
            low[:leading], high[:leading] = ends(sums[:, :leading], counts)
        difference = settle(sums.sum(axis=0) / counts.sum())
        found.append(Tested(difference, p[start : start + width], low, high, counts.size, (method,) * width))
        start += width
    return found
