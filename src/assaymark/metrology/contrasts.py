"""Tests of differences between agents: paired differences, tested over clusters, with multiplicity corrections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from assaymark.metrology import checks
from assaymark.metrology.bootstrap import SMALL_PRODUCT, percentile_ends, resampled, resamples_of
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.estimates import scores_of
from assaymark.plan import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE
from assaymark.quantiles import t_quantile

Test = Literal["cluster-t", "bootstrap", "sign-flip"]

EXACT_FLIPS = 16
"""Up to this many clusters every pattern of signs is enumerated (65,536 of them at 16)."""

_COLUMNS = 64  # contrasts whose resampled or sign-flipped sums are computed together
_ROWS = 1 << 14  # patterns processed together
_ZERO = 1e-9  # scores are means of small integers; a smaller difference is float noise


@dataclass(frozen=True, slots=True)
class Contrast:
    """A mean paired difference with its test. ``low`` and ``high`` are None if no interval can be given."""

    difference: float
    low: float | None
    high: float | None
    p: float
    n: int
    clusters: int
    method: str


def holm(p: ArrayLike) -> Floats:
    """Adjust p-values by Holm's step-down procedure, so that each can be compared with alpha.

    Parameters
    ----------
    p : float array of shape (m,)
        Unadjusted p-values in 0..1, in any order. A contrast that could not be tested must be included with p = 1.

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
    """Apply `holm` to each row [R, m] of checked p-values; each row is a separate family."""
    order = np.argsort(p, axis=1, kind="stable")
    factors = np.arange(p.shape[1], 0, -1)
    steps = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, axis=1) * factors, axis=1), 1.0)
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, steps, axis=1)
    return adjusted


def cluster_t(differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], level: float = 0.95) -> Contrast:
    """Test a mean paired difference of clustered items by a two-sided t test (Bell 2002)."""
    sums, counts, n = by_cluster("cluster_t", differences, clusters)
    checks.probability("cluster_t", "level", level)
    return to_contrast(t_test(sums, counts, level), 0, n)


def bootstrap_contrast(
    differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, level: float = 0.95, resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:  # fmt: skip
    """Test a mean paired difference by a percentile cluster bootstrap, as in ValueBlindBench (section 3.9)."""
    return _by_draws("bootstrap_contrast", differences, clusters, level, resamples, rng)


def _by_draws(
    source: str, differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], level: float, resamples: int,
    rng: np.random.Generator | None,
) -> Contrast:  # fmt: skip
    sums, counts, n = by_cluster(source, differences, clusters)
    checks.probability(source, "level", level)
    checks.integer(source, "resamples", resamples, least=1)
    tests = bootstrap_tests if source == "bootstrap_contrast" else flip_tests
    return to_contrast(tests([(sums, counts)], resamples, rng, level, True)[0], 0, n)


@dataclass(frozen=True, slots=True)
class TestSet:
    """The same test on K columns of scores: differences, p-values, and interval ends [K].
    Ends are NaN if no interval can be given; public results have None instead."""

    difference: Floats
    p: Floats
    low: Floats
    high: Floats
    clusters: int
    method: tuple[str, ...]


def to_contrast(tests: TestSet, column: int, n: int) -> Contrast:
    """Convert one column of several tests to the public result."""
    bounded = not np.isnan(tests.low[column])
    low, high = (float(tests.low[column]), float(tests.high[column])) if bounded else (None, None)
    difference, p = float(tests.difference[column]), float(tests.p[column])
    return Contrast(difference, low, high, p, n, tests.clusters, tests.method[column])


def t_test(sums: Floats, counts: Ints, level: float = 0.95) -> TestSet:
    """Compute `cluster_t` from cluster sums [G, K] and cluster sizes [G]."""
    g, n = counts.size, counts.sum()
    mean = sums.sum(axis=0) / n
    difference = snap_to_zero(mean)
    if g < 2:
        nothing = np.full_like(difference, np.nan)
        method = ("cluster-t: one common cluster cannot be tested, p = 1",) * difference.size
        return TestSet(difference, np.ones_like(difference), nothing, nothing, g, method)
    share = counts / n
    error = np.sqrt(np.square(sums / n - share[:, None] * mean).T @ (1 / (1 - share)))
    # Satterthwaite degrees of freedom of the CR2 variance of a mean.
    weight = share**2 / (1 - share)
    df = float(1.0 / (np.square(share).sum() + weight.sum() ** 2 - np.square(weight).sum()))
    flat = error <= _ZERO
    t = difference / np.where(flat, 1.0, error)
    p = np.where(flat, np.where(difference == 0, 1.0, 2.0 ** (1 - g)), 2 * scipy.special.stdtr(df, -np.abs(t)))
    half = np.where(flat, np.nan, t_quantile(0.5 + level / 2, df) * error)
    exact = f"clusters differ equally: exact sign flip over {g}"
    method = tuple(exact if same else f"cluster-t, CR2, t({df:.3g}) over {g} clusters" for same in flat)
    return TestSet(difference, p, difference - half, difference + half, g, method)


def snap_to_zero(differences: Floats) -> Floats:
    """Set differences within float noise of zero to zero."""
    return np.where(np.abs(differences) <= _ZERO, 0.0, differences)


def by_cluster(source: str, differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any]) -> tuple[Floats, Ints, int]:
    """Check differences and clusters; return cluster sums [G, 1], cluster sizes [G] and the number of items."""
    values = checks.finite(source, "differences", differences)
    names, codes = checks.labels(source, "clusters", clusters, values.size)
    sums = np.bincount(codes, weights=values, minlength=len(names))
    counts = np.bincount(codes, minlength=len(names))
    return sums[:, None].astype(np.float64, copy=False), counts.astype(np.int64, copy=False), values.size


def sign_flip(
    differences: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, level: float = 0.95, resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Contrast:  # fmt: skip
    """Test a mean paired difference of clustered items by sign flips (Canay 2017)."""
    return _by_draws("sign_flip", differences, clusters, level, resamples, rng)


Parts = Sequence[tuple[Floats, Ints]]


def bootstrap_tests(
    parts: Parts, resamples: int, rng: np.random.Generator | None, level: float = 0.95, intervals: bool = False
) -> list[TestSet]:
    """Compute `bootstrap_contrast` of several pairs (cluster sums [G, K], sizes [G]) with equal G, on common draws."""
    g = parts[0][1].size
    drawn = tuple(resamples_of(g, resamples, rng, "bootstrap_contrast"))
    size, mass_of_all = sum(chunk.size for chunk in drawn), drawn[0].mass
    # The mass or the number of resamples in the smaller tail of every column.
    columns = np.concatenate([sums for sums, _ in parts], axis=1)
    pieces = np.array_split(np.ascontiguousarray(columns.T), max(1, columns.shape[1] // _COLUMNS))
    tails = [np.zeros((2, piece.shape[0])) for piece in pieces]
    rows = max(1, SMALL_PRODUCT // (_COLUMNS * g))

    def weigh(hits: Bools, mass: Floats | None) -> Floats:
        """Return the number of resamples, or their probability mass, in each row of hits."""
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
        """Compute the percentile ends of one pair's columns, with all its resampled means in memory."""
        means = resampled(np.concatenate([sums.T, counts[None]]), drawn, lambda totals: totals[:-1] / totals[-1])
        return list(percentile_ends(means, mass_of_all, level))

    method = f"cluster bootstrap, {'multinomial:' if mass_of_all is None else 'exact: all'} {size} resamples"
    return _split(parts, p, f"{method} of {g} clusters", ends if intervals else None)


def flip_tests(
    parts: Parts, resamples: int, rng: np.random.Generator | None, level: float = 0.95, intervals: bool = False
) -> list[TestSet]:
    """Compute `sign_flip` of several pairs (cluster sums [G, K], sizes [G]), all with equal G and the same patterns."""
    g = parts[0][1].size
    exact = g <= EXACT_FLIPS
    if exact:  # every pattern that does not flip the last cluster; the first pattern flips none
        flipped = (np.arange(2 ** (g - 1))[:, None] >> np.arange(g) & 1).astype(bool)
    elif rng is None:
        many = f"{g} clusters are too many to enumerate (up to {EXACT_FLIPS} are)"
        checks.fail("sign_flip", "rng", f"{many}; pass a generator such as np.random.default_rng(7)")
    else:
        flipped = rng.integers(0, 2, size=(resamples, g), dtype=np.uint8).astype(bool)

    def blocks(patterns: Bools, rows: int) -> Iterator[Floats]:
        for start in range(0, patterns.shape[0], rows):
            yield patterns[start : start + rows].astype(np.float64)

    # The number of patterns in which each column's total is at least as far from 0 as the observed total.
    columns = np.concatenate([sums for sums, _ in parts], axis=1)
    sum_of_all, hits = columns.sum(axis=0), np.zeros(columns.shape[1])
    least = np.abs(sum_of_all) - _ZERO
    pieces = [slice(start, start + _COLUMNS) for start in range(0, hits.size, _COLUMNS)]
    for block in blocks(flipped, max(1, SMALL_PRODUCT // (_COLUMNS * g))):
        for piece in pieces:
            extreme = np.abs(sum_of_all[piece] - 2 * (block @ columns[:, piece])) >= least[piece]
            hits[piece] += np.count_nonzero(extreme, axis=0)
    # Only one of two opposite patterns is enumerated: flipping every sign does not change the distance from 0.
    total = float(flipped.shape[0]) if exact else flipped.shape[0] + 1.0

    def ends(sums: Floats, counts: Ints) -> Sequence[Floats]:
        """Compute the ends [K] of the differences that the test does not reject, NaN if it rejects none."""
        some = flipped.any(axis=1) & ~flipped.all(axis=1)
        spans = math.floor((1 - level) * total + _ZERO)
        # Drawn patterns that flip all signs or none count for every difference; the enumerated one is the observed.
        need = spans if exact else spans - int((~some).sum())
        if g < 2 or need < 1:
            return [np.full(sums.shape[1], np.nan)] * 2
        means = [
            ((block @ sums) / (block @ counts)[:, None], ((1 - block) @ sums) / ((1 - block) @ counts)[:, None])
            for block in blocks(flipped[some], _ROWS)
        ]
        first, other = (np.concatenate(side) for side in zip(*means, strict=True))
        starts, stops = np.minimum(first, other), -np.maximum(first, other)
        return [np.partition(starts, need - 1, axis=0)[need - 1], -np.partition(stops, need - 1, axis=0)[need - 1]]

    method = f"sign flip, exact: all {2**g}" if exact else f"sign flip, drawn: {resamples}"
    p = hits / total if exact else (hits + 1) / total
    return _split(parts, p, f"{method} patterns of {g} clusters", ends if intervals else None)


def _split(
    parts: Parts, p: Floats, method: str, ends: Callable[[Floats, Ints], Sequence[Floats]] | None
) -> list[TestSet]:
    """Split the p-values of all columns into each pair's tests, with intervals if there are ``ends``."""
    tests, start = [], 0
    for sums, counts in parts:
        width = sums.shape[1]
        low, high = ends(sums, counts) if ends else np.full((2, width), np.nan)
        difference = snap_to_zero(sums.sum(axis=0) / counts.sum())
        tests.append(TestSet(difference, p[start : start + width], low, high, counts.size, (method,) * width))
        start += width
    return tests


# All pairs at once: a t test whose variance borrows from all pairs, also for consecutive clusters.

PairState = Literal["tested", "cannot be tested"]

FLAT_VARIANCE = 1e-18
"""A variance up to this is float noise and counts as 0."""

_BORROWED_FULLY = 5  # degrees of freedom above which the weight of the pairs' mean variance decreases
_FEWEST_BLOCKS = 6
_LARGEST_RHO = 0.9
_FEWEST_EFFECTIVE = 2.5


@dataclass(frozen=True, slots=True)
class ModeratedContrasts:
    """Every pair of agents tested by the moderated cluster t; arrays [..., pairs] in the order of `pairs_of`.
    If a pair has fewer than three clusters, p is 1 and ``df``, ``se`` and ``prior_df`` are NaN. If its differences do
    not vary and no variance can be borrowed, ``se`` is 0 and ``df`` NaN."""

    gap: Floats
    clusters: Ints
    tested: Bools
    p: Floats
    df: Floats
    se: Floats
    prior_df: Floats
    mean_variance: Floats
    epsilon: tuple[Floats, Floats] | None
    prior_df_estimate: Floats


@cache
def pairs_of(agents: int) -> tuple[Ints, Ints]:
    """Return the first and the second agent of every pair: (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(agents, 1)
    first.setflags(write=False)
    second.setflags(write=False)
    return first, second


@cache
def pair_list(agents: int) -> tuple[tuple[int, int], ...]:
    """Return `pairs_of` as tuples."""
    first, second = pairs_of(agents)
    return tuple(zip(first.tolist(), second.tolist(), strict=True))


def agents_of(source: str, name: str, pairs: int) -> int:
    """Return the number of agents that make this number of pairs."""
    agents = (1 + math.isqrt(1 + 8 * pairs)) // 2
    if agents * (agents - 1) // 2 != pairs:
        checks.fail(source, name, f"must have one entry for each of the K(K-1)/2 pairs of K agents (got {pairs})")
    return agents


def moderated_contrasts(
    gaps: ArrayLike, variances: ArrayLike, counts: ArrayLike, effects: ArrayLike | None, *, borrow: bool = True
) -> ModeratedContrasts:
    """Compute the cluster t of every pair, with variances moderated towards their mean (Smyth 2004, Huynh 1976)."""
    source = "moderated_contrasts"
    gap, variance = np.asarray(gaps, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    count = np.asarray(counts)
    agents = agents_of(source, "counts", count.size)
    if count.ndim != 1 or (count.size and count.dtype.kind not in "iu"):
        checks.fail(source, "counts", f"must be whole numbers [pairs] (got {count.dtype}, shape {count.shape})")
    if gap.shape != variance.shape or gap.shape[-1:] != count.shape:
        shapes = f"{gap.shape}, {variance.shape} and {count.shape}"
        checks.fail(source, "gaps", f"gaps, variances and counts need one entry for each pair (got shapes {shapes})")
    sound = np.isfinite(gap) & np.isfinite(variance) & (variance >= 0)
    if not sound[..., count >= FEWEST_CLUSTERS].all():
        checks.fail(source, "gaps", "a pair with 3 clusters or more needs a finite gap and a finite variance from 0")
    table = None
    if effects is not None:
        table = np.asarray(effects, dtype=np.float64)
        if table.ndim != gap.ndim + 1 or table.shape[:-2] != gap.shape[:-1] or table.shape[-1] != agents:
            checks.fail(source, "effects", f"must be [..., clusters, {agents}] beside the gaps (got {table.shape})")
    return moderate(gap, variance, count, table, borrow)


def table_contrasts(tables: ArrayLike, *, borrow: bool = True) -> ModeratedContrasts:
    """Compute `moderated_contrasts` from tables of cluster means, for many studies at once."""
    values = np.asarray(tables, dtype=np.float64)
    if values.ndim < 2 or not min(values.shape[-2:]) or np.isinf(values).any():
        checks.fail("table_contrasts", "tables", f"must be finite values [..., clusters, agents] (got {values.shape})")
    return moderate(*difference_moments(pair_differences(values)), values, borrow)


def pair_differences(tables: Floats) -> Floats:
    """Compute first agent minus second for every pair [..., G, pairs], NaN if one of them is absent."""
    first, second = pairs_of(tables.shape[-1])
    return np.asarray(tables[..., first] - tables[..., second])


def difference_moments(differences: Floats) -> tuple[Floats, Floats, Ints]:
    """Compute mean, sample variance (0 below two clusters) and count of each pair's cluster values [..., G, pairs]."""
    holes = np.isnan(differences)
    if holes.any() or not len(differences):  # no mean of no clusters
        if differences.ndim > 2:
            checks.fail("table_contrasts", "tables", "many studies at once need complete tables")
        counts = np.count_nonzero(~holes, axis=0)
        with np.errstate(invalid="ignore"):  # a pair without a common cluster has no mean
            gaps = np.where(holes, 0.0, differences).sum(axis=0) / counts
        rest = np.where(holes, 0.0, differences - gaps)
    else:
        counts = np.full(differences.shape[-1], differences.shape[-2])
        gaps = differences.mean(axis=-2)
        rest = differences - gaps[..., None, :]
    return gaps, np.square(rest).sum(axis=-2) / np.maximum(counts - 1, 1), counts


def moderate(
    gaps: Floats, variances: Floats, counts: Ints, effects: Floats | None, borrow: bool = True
) -> ModeratedContrasts:
    """Compute `moderated_contrasts` of checked input."""
    tested = counts >= FEWEST_CLUSTERS
    n = counts[tested].astype(np.float64)
    nu = n - 1
    gap, variance = snap_to_zero(gaps), variances[..., tested]
    variance = np.where(variance <= FLAT_VARIANCE, 0.0, variance)
    lead = gap.shape[:-1]
    mean = variance.mean(axis=-1) if n.size else np.zeros(lead)
    epsilon, estimate, prior, table = None, np.zeros(lead), np.zeros_like(variance), effects if borrow else None
    if table is not None:
        # The agents in tested pairs, in the clusters that have all of them.
        if not tested.all():
            table = table[..., occurring(tested, table.shape[-1])]
        holes = np.isnan(table).any(axis=-1)
        if holes.any():
            if table.ndim > 2:
                checks.fail("moderated_contrasts", "effects", "many studies at once need complete tables")
            table = table[~holes]
    if table is not None and min(table.shape[-2:]) >= 3:
        # Greenhouse-Geisser and Huynh-Feldt epsilon of complete tables [..., G, K].
        g, k = table.shape[-2:]
        rest = _double_centred(table)
        # tr(C) and the sum of squares of C are equal to those of the clusters' matrix, which may be smaller.
        transposed = np.swapaxes(rest, -1, -2)
        squares = np.square(transposed @ rest if k <= g else rest @ transposed).sum(axis=(-1, -2))
        total = np.square(rest).sum(axis=(-1, -2))
        varies = total > FLAT_VARIANCE * (g - 1)
        low = np.where(varies, total**2 / ((k - 1) * np.where(varies, squares, 1.0)), 1.0)
        remainder = g - 1 - (k - 1) * low
        open_ = remainder > 1e-9
        high = np.where(open_, (g * (k - 1) * low - 2) / ((k - 1) * np.where(open_, remainder, 1.0)), 1.0)
        epsilon = low, np.clip(high, low, 1.0)
        estimate = _prior_df(variance, nu, k)
        freedom = np.maximum(0.0, epsilon[1] * (k - 1) - 1.5)
        ramp = np.minimum(1.0, (n - FEWEST_CLUSTERS) / 2) * np.minimum(1.0, (_BORROWED_FULLY / nu) ** 2)
        prior = np.minimum(estimate[..., None], freedom[..., None] * (nu * ramp / 2))
    df = nu + prior
    variance = np.maximum(variance, (prior * mean[..., None] + nu * variance) / df)
    error = np.sqrt(variance / n)
    p = t_p(gap[..., tested], error, df, n)
    df = np.where(error == 0, np.nan, df)
    if not tested.all():  # arrays over all pairs, NaN for pairs that are not tested
        full = np.full((4, *gap.shape), np.nan)
        full[..., tested] = np.stack([p, df, error, prior])
        p, df, error, prior = full
        p[..., ~tested] = 1.0
    return ModeratedContrasts(gap, counts, tested, p, df, error, prior, np.asarray(mean), epsilon, estimate)


def occurring(tested: Bools, agents: int) -> Bools:
    """Return True for agents in a tested pair [K]."""
    (first, second), occurs = pairs_of(agents), np.zeros(agents, dtype=bool)
    occurs[first[tested]] = occurs[second[tested]] = True
    return occurs


def t_p(gap: Floats, error: Floats, df: Floats, clusters: Floats) -> Floats:
    """Compute the two-sided p of Student's t; without variation, the p of the sign test."""
    flat = error == 0
    p = 2 * scipy.special.stdtr(df, -np.abs(gap) / np.where(flat, 1.0, error))
    return np.where(flat, np.where(gap == 0, 1.0, 2.0 ** (1 - clusters)), p) if flat.any() else np.asarray(p)


def trigamma_inverse(y: ArrayLike) -> Floats:
    """Invert the trigamma function at ``y`` by Newton's method on its reciprocal (Smyth 2004, appendix)."""
    values = np.asarray(y, dtype=np.float64)
    if not (np.isfinite(values) & (values > 0)).all():
        checks.fail("trigamma_inverse", "y", "must be positive and finite")
    return _trigamma_inverse(values)


def _trigamma_inverse(y: Floats) -> Floats:
    # Trigamma is zeta(2, x) and its slope -2 zeta(3, x): about 1 / (x - 1/2) for large x, 1 / x^2 for small.
    x = np.where(y > 4, 1 / np.sqrt(y), 0.5 + 1 / y)
    for _ in range(20):
        trigamma = scipy.special.zeta(2.0, x)
        step = trigamma * (1 - trigamma / y) / (-2 * scipy.special.zeta(3.0, x))
        x = x + step
        if (np.abs(step) <= 1e-9 * x).all():  # the error is squared in each step
            break
    return np.asarray(x)


def _prior_df(variances: Floats, nu: Floats, agents: int) -> Floats:
    """Estimate the degrees of freedom of the mean variance from the excess spread of the log variances over chance."""
    use = variances > 0
    count = use.sum(axis=-1)
    logs = np.log(np.where(use, variances, 1.0)) - scipy.special.psi(nu / 2) + np.log(nu / 2)
    if use.all():
        mean, chance = logs.mean(axis=-1), scipy.special.zeta(2.0, nu / 2).mean()
    else:
        some = np.maximum(count, 1)
        mean = np.where(use, logs, 0.0).sum(axis=-1) / some
        chance = np.where(use, scipy.special.zeta(2.0, nu / 2), 0.0).sum(axis=-1) / some
    squares = np.where(use, np.square(logs - np.expand_dims(mean, -1)), 0.0).sum(axis=-1)
    # Pairs that share an agent are dependent, so that their variances spread less than independent ones.
    excess = squares / np.maximum(count - 1, 1) * (agents + 1) / agents - chance
    unequal = excess > 1e-12
    df = np.where(unequal, 2 * _trigamma_inverse(np.where(unequal, excess, 1.0)), np.inf)
    return np.where(count < 3, 0.0, df)


# The minimum detectable difference of a t test: the noncentral t distribution by quadrature.

_WIDE = 9.0  # standard deviations that contain a normal variable up to 1e-18
_TAIL = 1e-18

# Double-exponential rule on 0..1, which handles a singular density at 0 (one degree of freedom and less).
_STEPS = np.linspace(-4.2, 4.2, 211)
# Bit-identical to scipy's logistic function, whose import would add a fifth of a second to every command.
_NODES, _LEFT = (1 / (1 + np.array([math.exp(s * x) for x in np.pi * np.sinh(_STEPS)])) for s in (-1, 1))
_WEIGHTS = np.pi * np.cosh(_STEPS) * _NODES * _LEFT * (_STEPS[1] - _STEPS[0])


def minimum_detectable_gap(se: float, df: float, alpha: float, power: float = 0.8) -> float:
    """Compute the smallest true difference that a two-sided t test detects with the given power (Johnson 1940)."""
    source = "minimum_detectable_gap"
    for name, value in (("se", se), ("df", df)):
        if not (math.isfinite(value) and value > 0):
            checks.fail(source, name, f"must be a finite number above 0 (got {value!r})")
    checks.probability(source, "alpha", alpha)
    checks.probability(source, "power", power)
    if power <= alpha:
        checks.fail(source, "power", f"must lie above alpha, what is found without a difference (got {power!r})")
    return se * _detectable_ratio(float(df), float(alpha), float(power))


@lru_cache(maxsize=1024)
def _detectable_ratio(df: float, alpha: float, power: float) -> float:
    """Compute `minimum_detectable_gap` in standard errors."""
    critical = t_quantile(1 - alpha / 2, df)
    low, high = 0.0, critical * math.sqrt(2 / df * scipy.special.gammainccinv(df / 2, _TAIL)) + _WIDE
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if noncentral_tail(critical, df, middle) + noncentral_tail(critical, df, -middle) < power:
            low = middle
        else:
            high = middle
    return high


def noncentral_tail(critical: float, df: float, shift: float) -> float:
    """Compute P(T > critical), critical > 0, of the noncentral t with ``df`` and noncentrality ``shift``."""
    half, special = df / 2, scipy.special
    least = math.sqrt(special.gammaincinv(half, _TAIL) / half)
    most = math.sqrt(special.gammainccinv(half, _TAIL) / half)
    start, stop = max(least, (shift - _WIDE) / critical), min(most, (shift + _WIDE) / critical)
    below = float(special.gammainc(half, half * min(start, most) ** 2))  # where Phi is 1
    if stop <= start:
        return below if shift > 0 else 0.0
    s = start + (stop - start) * _NODES
    log_density = math.log(2) + half * math.log(half) - special.gammaln(half) + (df - 1) * np.log(s) - half * s * s
    return below + (stop - start) * float(_WEIGHTS @ (np.exp(log_density) * special.ndtr(shift - critical * s)))


@dataclass(frozen=True, slots=True)
class SerialContrast:
    """The test of one pair over consecutive clusters. Undefined values are None."""

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
    """The arrays [..., pairs] behind `SerialContrast`; undefined values are NaN."""

    gap: Floats
    block: Floats
    rho: Floats
    clusters: Floats
    effective: Floats
    df: Floats
    se: Floats
    p: Floats


def serial_contrasts(table: ArrayLike) -> dict[tuple[int, int], SerialContrast]:
    """Test every pair over clusters that are consecutive in time (Bartlett 1935, Kendall 1954, Zieba 2011)."""
    scores = scores_of("serial_contrasts", "table", table, 2)
    tests = serial_tests(pair_differences(scores), scores)
    columns = [[None if x != x else x for x in getattr(tests, field.name).tolist()] for field in fields(EffectiveT)]
    return {
        pair: SerialContrast("cannot be tested" if block is None else "tested", gap, None if block is None else
                             1 if block == 1 else 2, rho, int(clusters), *rest)
        for pair, (gap, block, rho, clusters, *rest) in zip(
            pair_list(scores.shape[1]), zip(*columns, strict=True), strict=True)
    }  # fmt: skip


def serial_tests(differences: Floats, effects: Floats) -> EffectiveT:
    """Compute `effective_t` of the agents' contrasts [G, pairs], NaN if missing; p is 1 for too few clusters."""
    present = ~np.isnan(differences)
    counts = present.sum(axis=0)
    tested = counts >= FEWEST_CONSECUTIVE
    table = effects[:, occurring(tested, effects.shape[1])]
    table = table[~np.isnan(table).any(axis=1)]
    tests = EffectiveT(*np.full((8, counts.size), np.nan))
    tests.clusters[:], tests.p[:] = counts, 1.0
    for k in np.flatnonzero(~tested & (counts > 0)).tolist():
        tests.gap[k] = snap_to_zero(differences[present[:, k], k].mean())
    # Pairs with the same clusters are tested together: all at once if nothing is missing.
    patterns, pattern = np.unique(present[:, tested], axis=1, return_inverse=True)
    for p, rows in enumerate(patterns.T):
        columns = np.flatnonzero(tested)[pattern.ravel() == p]
        result = effective_t(differences[np.ix_(rows, columns)], table)
        for field in fields(EffectiveT):
            getattr(tests, field.name)[columns] = getattr(result, field.name)
    return tests


def effective_t(differences: Floats, table: Floats) -> EffectiveT:
    """Test each column of complete differences [..., n, pairs] by t with the effective number of clusters."""
    gap, best = snap_to_zero(differences.mean(axis=-2)), None
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
        candidate = np.stack([gap, np.full(p.shape, block), rho, np.full(p.shape, n), effective, df, error, p])
        # The test with the larger p for each pair; the first if they are equal.
        best = candidate if best is None else np.where(candidate[-1] > best[-1], candidate, best)
    assert best is not None
    return EffectiveT(*best)


def effective_size(rows: float, rho: ArrayLike) -> Floats:
    """Compute the effective number of rows for a lag-1 autocorrelation of ``rho``, at least 2.5."""
    r = np.asarray(rho, dtype=np.float64)
    return np.maximum(_FEWEST_EFFECTIVE, rows * (1 - r) / (1 + r))


def autocorrelations(table: ArrayLike, *, lags: int = 4) -> tuple[list[float], float | None]:
    """Compute the autocorrelations over clusters of the differences between agents, and the critical value of lag 1."""
    scores = scores_of("autocorrelations", "table", table, 2)
    longest = checks.integer("autocorrelations", "lags", lags, least=1)
    scores = scores[~np.isnan(scores).any(axis=1)]
    clusters, agents = scores.shape
    rest = _double_centred(scores) if clusters else scores
    total = float(np.square(rest).sum())
    if agents < 2 or clusters < 3 or total <= FLAT_VARIANCE * rest.size:
        return [], None
    values = [float(_lagged(rest, lag).sum()) / total for lag in range(1, min(longest, clusters - 1) + 1)]
    return values, 1.645 / math.sqrt((clusters - 1) * (agents - 1)) - 1 / clusters


def _blocks(values: Floats, size: int) -> Floats:
    """Average blocks of ``size`` consecutive rows [..., n, columns]; a short last block joins the one before."""
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
    """Compute the lag-1 autocorrelation of n rows, bias-corrected and raised by a quarter of its error; 0 if flat."""
    varies = squares > FLAT_VARIANCE * (n - 1)
    r = (products / np.where(varies, squares, 1.0) + 1 / n) / (1 - 3 / n)
    raised = r + np.sqrt(np.maximum(1 - np.minimum(np.square(r), 0.95**2), 0.05) / (n * width)) / 4
    return np.where(varies, raised, 0.0)
