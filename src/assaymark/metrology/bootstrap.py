"""Bootstrap intervals: cluster bootstrap of kappas, and block bootstrap of Sharpe ratios.

Days of a return history are dependent, so blocks of random length are resampled instead of single days (the stationary
bootstrap). Histories that are compared use the same blocks, so that their common movements cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints, probability
from assaymark.metrology.estimates import cluster_codes, jackknife_se, neighbour_blocks
from assaymark.metrology.kappa import Pair, judge_pairs
from assaymark.protocol import AGREEMENT, Coefficient
from assaymark.quantiles import t_quantile, wilson_ends

# Intervals in general, and the interval of a share.


@dataclass(frozen=True, slots=True)
class Interval:
    """The two ends of an interval and its method. ``method`` contains ``exact`` if every resample was enumerated.

    >>> print(Interval(0.25, 0.5, "by hand"))
    [0.2500, 0.5000] (by hand)
    """

    low: float
    high: float
    method: str

    def __str__(self) -> str:
        return f"[{self.low:.4f}, {self.high:.4f}] ({self.method})"


def wilson(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Compute Wilson's score interval for a share.

    Both ends are in 0..1, and the interval of a share of 0 or 1 has positive width.

    Parameters
    ----------
    successes, n : int
        Number of successes and of trials.
    level : float
        Nominal coverage, strictly between 0 and 1.

    Returns
    -------
    (low, high) : shares

    Raises
    ------
    NotMeasurableError
        ``n`` is 0.
    InputError
        Not whole numbers with 0 <= successes <= n.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.

    Examples
    --------
    >>> low, high = wilson(211, 250)
    >>> f"{low:.3f} {high:.3f}"
    '0.794 0.884'
    """
    total = checks.integer("wilson", "n", n, least=0)
    hits = checks.integer("wilson", "successes", successes, least=0)
    checks.probability("wilson", "level", level)
    if hits > total:
        checks.fail("wilson", "successes", f"must not exceed n = {total} (got {hits})")
    if total == 0:
        raise NotMeasurableError("a share of no items is undefined (n = 0)")
    return wilson_ends(hits / total, total, level)


# The cluster bootstrap as re-weighting: resampling clusters only changes the multiplicity of each cluster's sums.


Counts = NDArray[np.uint16]

EXACT_CLUSTERS = 8
"""Up to this many clusters every resample is enumerated (6,435 of them at 8), without randomness."""

SMALL_PRODUCT = 1 << 18
"""Multiplications up to which BLAS computes a matrix product on one thread: on a busy machine several threads wait for
each other longer than the product takes."""

_CHUNK = 1 << 21  # draws held in memory at a time
_ORIGIN = 3  # the middle of the usual scale
_FLAT = 1e-12  # a standard error, or a relative spread of returns, up to this is float noise


@dataclass(frozen=True, slots=True)
class Resamples:
    """The count of each cluster in each resample [R, G], and the probability mass of each resample [R]."""

    times: Counts
    mass: Floats | None

    @property
    def size(self) -> int:
        """Number of resamples R."""
        return int(self.times.shape[0])

    @property
    def exact(self) -> bool:
        """True if these are all possible resamples, each with its multinomial probability."""
        return self.mass is not None

    def blocks(self, rows: int) -> Iterator[Floats]:
        """Yield the resamples as float blocks [G, at most ``rows``]."""
        for start in range(0, self.size, rows):
            yield self.times[start : start + rows].T.astype(np.float64)


@cache
def all_resamples(clusters: int) -> Resamples:
    """Enumerate the C(2G-1, G) unordered draws of G clusters with replacement, with their shares of the G^G draws."""
    draws = np.array(list(combinations_with_replacement(range(clusters), clusters)))
    times = _count_draws(draws, clusters)
    factorial = np.array([math.factorial(k) for k in range(clusters + 1)], dtype=np.float64)
    mass = factorial[clusters] / factorial[times].prod(axis=1)
    times.setflags(write=False)
    mass.setflags(write=False)
    return Resamples(times, mass)


def resamples_of(clusters: int, resamples: int, rng: np.random.Generator | None, source: str) -> Iterator[Resamples]:
    """Yield all resamples at once if they can be enumerated, else ``resamples`` multinomial draws in chunks."""
    if clusters <= EXACT_CLUSTERS:
        yield all_resamples(clusters)
        return
    if rng is None:
        many = f"{clusters} clusters are too many to enumerate (up to {EXACT_CLUSTERS} are)"
        checks.fail(source, "rng", f"{many}; pass a generator such as np.random.default_rng(7)")
    rows = max(1, _CHUNK // clusters)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        yield Resamples(_count_draws(rng.integers(0, clusters, size=(size, clusters)), clusters), None)


def resampled(columns: Floats, drawn: Iterable[Resamples], statistic: Callable[[Floats], Floats]) -> Floats:
    """Compute a statistic [..., R] of every resample from the columns [K, G] summed over it [K, R]."""
    rows = SMALL_PRODUCT // columns.size + 1
    parts = [statistic(columns @ times) for chunk in drawn for times in chunk.blocks(rows)]
    return np.concatenate(parts, axis=-1)


def bootstrap_kappa(
    ratings: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, categories: int = 5, level: float = 0.95,
    resamples: int = 10_000, rng: np.random.Generator | None = None,
) -> Interval:  # fmt: skip
    """Compute the percentile interval of the mean pairwise kappa from a cluster bootstrap.

    Clusters (regimes, rounds, weeks) are drawn with replacement; items never leave their cluster. With up to 8
    clusters all C(2G-1, G) resamples are enumerated with their multinomial weights and the interval is exact; above,
    ``resamples`` are drawn. The ends are the inverse weighted distribution function at (1-level)/2 and (1+level)/2
    (ValueBlindBench section 3.9). With few clusters it is too narrow: `jackknife_kappa` is the interval to print.

    A resample in which some pair of judges is constant has no kappa. Such resamples are omitted, and ``method`` states
    their number and share of the mass; if that share exceeds ``1 - level``, the omitted resamples would determine the
    ends, and there is no interval.

    Parameters
    ----------
    ratings : int array of shape (n, J)
        One rating on 1..categories per item and judge.
    clusters : sequence of n names or whole numbers
        The cluster of each item.
    categories : int
        Size of the scale.
    level : float
        Coverage aimed at.
    resamples : int
        Number of draws when enumeration is out of reach.
    rng : numpy Generator, optional
        Source of the draws; required above 8 clusters, not used up to there.

    Returns
    -------
    Interval

    Raises
    ------
    NotMeasurableError
        Kappa itself is undefined, there is only one cluster, or too many resamples have no kappa.
    InputError
        Wrong shapes, ratings off the scale, or no ``rng`` where one is needed.

    Examples
    --------
    >>> ratings = [[1, 1], [2, 3], [4, 4], [5, 4], [3, 3], [1, 2]]
    >>> print(bootstrap_kappa(ratings, ["w1", "w1", "w2", "w2", "w3", "w3"]))
    [0.0000, 0.8696] (cluster bootstrap, exact: all 10 resamples of 3 clusters)
    """
    size = checks.categories_of("bootstrap_kappa", categories)
    table = checks.ratings("bootstrap_kappa", "ratings", ratings, size, ndim=2)
    names, codes = checks.labels("bootstrap_kappa", "clusters", clusters, table.shape[0])
    checks.probability("bootstrap_kappa", "level", level)
    checks.integer("bootstrap_kappa", "resamples", resamples, least=1)
    sums = KappaSums.of(table[:, :, None], codes, len(names), judge_pairs(table.shape[1]))
    return sums.interval(lambda: sums.bootstrap(level, resamples, rng))


def jackknife_kappa(
    ratings: ArrayLike, clusters: Sequence[Any] | NDArray[Any], categories: int = 5, level: float = 0.95,
    consecutive: bool = False,
) -> Interval:  # fmt: skip
    """Compute the delete-one-cluster jackknife interval of the mean pairwise kappa, by t with G-1 df (Cameron 2015)."""
    size = checks.categories_of("jackknife_kappa", categories)
    table = checks.ratings("jackknife_kappa", "ratings", ratings, size, ndim=2)
    codes = cluster_codes("jackknife_kappa", clusters, table.shape[0], name="clusters")
    checks.probability("jackknife_kappa", "level", level)
    sums = KappaSums.of(table[:, :, None], codes, int(codes.max()) + 1, judge_pairs(table.shape[1]))
    return sums.interval(lambda: sums.jackknife(level, neighbour_blocks(sums.clusters) if consecutive else None))


def intraclass(
    n: ArrayLike, sum_a: ArrayLike, sum_b: ArrayLike, squares_a: ArrayLike, squares_b: ArrayLike, products: ArrayLike
) -> Floats:
    """Compute the intraclass correlation of two judges from sums over n common items; NaN if both are constant."""
    n, a, b = (np.asarray(x, dtype=np.float64) for x in (n, sum_a, sum_b))
    own_a, own_b = n * np.asarray(squares_a) - a * a, n * np.asarray(squares_b) - b * b
    # A constant judge leaves float noise here, which must not count as variance.
    own_a, own_b = (np.where(variance <= _FLAT * x * x, 0.0, variance) for variance, x in ((own_a, a), (own_b, b)))
    shared = np.where((own_a > 0) & (own_b > 0), n * np.asarray(products) - a * b, 0.0)
    apart = own_a + own_b - 2 * shared
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = 2 * shared / (own_a + own_b + ((n - 1) * (a - b) ** 2 - apart) / n)
    return np.where((own_a > 0) | (own_b > 0), rho, np.nan)


@dataclass(frozen=True, slots=True)
class KappaSums:
    """Sufficient sums per cluster for the kappas of every resample, for K columns of ratings at once.
    ``columns`` [1 + 2J + P, K, G] has, for each cluster, the number of items, each judge's sum and sum of squares, and
    each pair's sum of products. All are integers relative to a point inside the scale, so that their products stay
    exact. With ``form`` "icc" they are sums of scores, and "kappa" in the methods means `intraclass`."""

    columns: Floats
    judges: int
    pairs: tuple[Pair, ...]
    form: Coefficient = "kappa"

    @classmethod
    def of(
        cls, ratings: Ints | Floats, codes: Ints, clusters: int, pairs: Sequence[Pair], origin: float = _ORIGIN,
        form: Coefficient = "kappa",
    ) -> KappaSums:  # fmt: skip
        """Compute the sums from checked ratings [n, J, K] and cluster codes [n], in one pass over the items."""
        n, judges, width = ratings.shape
        order = np.argsort(codes, kind="stable")
        x = (np.ascontiguousarray(ratings[order].transpose(1, 2, 0)) - origin).astype(np.float64)
        left, right = np.array(pairs).T
        parts = np.concatenate([np.ones((1, width, n)), x, x * x, x[left] * x[right]])
        counts = np.bincount(codes, minlength=clusters)
        present = np.flatnonzero(counts)
        columns = np.zeros((parts.shape[0], width, clusters))
        if n:
            columns[:, :, present] = np.add.reduceat(parts, (np.cumsum(counts) - counts)[present], axis=2)
        return cls(columns, judges, tuple(pairs), form)

    @classmethod
    def of_tables(
        cls, tables: Sequence[Ints], levels: Sequence[Floats | Ints], judges: int, pairs: Sequence[Pair],
        form: Coefficient = "kappa",
    ) -> KappaSums:  # fmt: skip
        """Compute the sums from the contingency tables [G, ., S, S] of every pair of judges for each column of ratings;
        ``levels`` has the rating of each level [S]."""
        every, columns = judge_pairs(judges), []
        places = [every.index(pair) for pair in pairs]
        for table, x in zip(tables, levels, strict=True):
            margins = np.empty((judges, len(table), x.size))
            for p, (a, b) in enumerate(every):
                margins[a], margins[b] = table[:, p].sum(axis=2), table[:, p].sum(axis=1)
            products = (table[:, places] @ x @ x).T
            n = table[:, :1].sum(axis=(2, 3)).T
            columns.append(np.concatenate([n, margins @ x, margins @ (x * x), products]).astype(np.float64))
        return cls(np.stack(columns, axis=1), judges, tuple(pairs), form)

    @property
    def clusters(self) -> int:
        """Number of clusters G."""
        return int(self.columns.shape[2])

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.columns[0, 0].sum())

    def kappas(self, sums: Floats) -> Floats:
        """Compute each pair's kappa [P, K, R] from summed columns [1 + 2J + P, K, R]; NaN if both are constant."""
        left, right = np.array(self.pairs).T
        n, total, squares = sums[0], sums[1 : 1 + self.judges], sums[1 + self.judges : 1 + 2 * self.judges]
        if self.form == "icc":
            products = sums[1 + 2 * self.judges :]
            return intraclass(n, total[left], total[right], squares[left], squares[right], products)
        varies = n * squares > total * total
        both = n * (squares[left] + squares[right])
        with np.errstate(invalid="ignore", divide="ignore"):
            kappa = 1.0 - (both - 2 * n * sums[1 + 2 * self.judges :]) / (both - 2 * total[left] * total[right])
        kappa[~(varies[left] | varies[right])] = np.nan
        return np.asarray(kappa)

    def means(self, sums: Floats) -> Floats:
        """Compute the mean pairwise kappa [K, R] from summed columns; NaN if any pair has none."""
        return np.asarray(self.kappas(sums).mean(axis=0))

    def of_all(self) -> Floats:
        """Compute the kappa of every pair [P, K] on all data; NaN if both judges are constant."""
        return self.kappas(self.columns.sum(axis=2, keepdims=True))[:, :, 0]

    def of_pairs(self, column: int) -> list[list[float]]:
        """Return the arguments of `intraclass` or `kappa_of_sums` for every pair [P] of one column, on all data."""
        n, *rest = self.columns[:, column].sum(axis=1).tolist()
        total, squares = rest[: self.judges], rest[self.judges : 2 * self.judges]
        return [
            [n, total[a], total[b], squares[a], squares[b], products]
            for (a, b), products in zip(self.pairs, rest[2 * self.judges :], strict=True)
        ]

    def points(self) -> list[float | None]:
        """Compute the mean pairwise kappa of each column on all data; None if any pair has none."""
        return [None if math.isnan(value) else value for value in self.of_all().mean(axis=0).tolist()]

    def interval(self, make: Callable[[], list[Interval | str]]) -> Interval:
        """Return the interval of the first column, or raise an error with the reason why there is none."""
        if self.points()[0] is None:
            raise NotMeasurableError(
                f"{AGREEMENT[self.form]} is undefined: a pair of judges gave one rating each to all {self.n} items"
            )
        if self.clusters < 2:
            raise NotMeasurableError("an interval over clusters needs at least two of them (got 1)")
        if isinstance(result := make()[0], str):
            raise NotMeasurableError(result)
        return result

    def bootstrap(self, level: float, resamples: int, rng: np.random.Generator | None) -> list[Interval | str]:
        """Compute each column's percentile interval, or the reason for none; see `bootstrap_kappa`. Shares draws."""
        drawn = list(resamples_of(self.clusters, resamples, rng, "bootstrap_kappa"))
        shape, flat = self.columns.shape[:2], self.columns.reshape(-1, self.clusters)
        values = resampled(flat, drawn, lambda sums: self.means(sums.reshape(*shape, -1)))
        mass, size = drawn[0].mass, values.shape[1]
        kind = "exact: all" if mass is not None else "multinomial:"
        method = f"cluster bootstrap, {kind} {size} resamples of {self.clusters} clusters"
        ends = percentile_ends(values, mass, level).tolist()
        defined = ~np.isnan(values)
        intervals: list[Interval | str] = []
        for low, high, row, finite in zip(*ends, values, defined, strict=True):
            if finite.all():
                intervals.append(Interval(low, high, method))
                continue
            # The interval over the resamples with a kappa, unless too many have none.
            share, lost = 1 - float(np.average(finite, weights=mass)), int((~finite).sum())
            text = f"{method}; {lost} without a {AGREEMENT[self.form]} left out ({share:.3%} of the mass)"
            if share > 1 - level + 1e-9:
                intervals.append(f"no interval: {text}, more than {1 - level:.3%}")
            else:
                bounds = percentile_ends(row[finite][None], None if mass is None else mass[finite], level)
                low, high = bounds[:, 0].tolist()
                intervals.append(Interval(low, high, text))
        return intervals

    def jackknife(self, level: float, blocks: Ints | None = None) -> list[Interval | str]:
        """Compute each column's delete-one-cluster interval, or the reason for none; see `jackknife_kappa`."""
        parts = self.columns
        if blocks is not None:
            parts = parts @ (blocks[:, None] == np.arange(blocks.max() + 1)).astype(np.float64)
        g, unit = parts.shape[2], "cluster" if blocks is None else "block"
        if g < 2:
            return [f"no interval: one {unit}, needs two"] * parts.shape[1]
        total = parts.sum(axis=2, keepdims=True)
        centres = self.means(total)[:, 0]
        without = self.means(total - parts)
        missing = np.isnan(without).sum(axis=1).tolist()
        spread = jackknife_se(centres, without.T)
        half = t_quantile(0.5 + level / 2, g - 1) * spread
        low, high = np.maximum(-1.0, centres - half).tolist(), np.minimum(1.0, centres + half).tolist()
        method = f"delete-one-{unit} jackknife, t({g - 1})"
        results: list[Interval | str] = []
        for a, b, gone, se in zip(low, high, missing, spread.tolist(), strict=True):
            if gone:
                results.append(f"no interval: {AGREEMENT[self.form]} is undefined without {gone} of the {g} {unit}s")
            else:
                results.append(Interval(a, b, method) if se > _FLAT else f"no interval: the {g} {unit}s do not differ")
        return results


def kappa_of_sums(*sums: float) -> float:
    """Compute the kappa of two judges from the sums that `KappaSums.of_pairs` returns; NaN if both are constant."""
    return float(KappaSums(np.reshape(sums, (6, 1, 1)), 2, ((0, 1),)).of_all()[0, 0])


def percentile_ends(values: Floats, mass: Floats | None, level: float) -> Floats:
    """Compute the ends [2, K] of the central ``level`` of each row [K, R], by the inverse (weighted) distribution."""
    shares = ((1 - level) / 2, 1 - (1 - level) / 2)
    size = values.shape[1]
    if mass is None:
        # The 1e-9 ensures that an exactly hit boundary (0.025 of 1,000) is not missed by rounding.
        places = [max(0, math.ceil(q * size - 1e-9) - 1) for q in shares]
        return np.ascontiguousarray(np.partition(values, places, axis=1)[:, places].T)
    order = np.argsort(values, axis=1, kind="stable")
    reached = np.cumsum(mass[order], axis=1)
    rows = np.arange(values.shape[0])
    places = [(reached < (q - 1e-9) * reached[:, -1:]).sum(axis=1) for q in shares]
    return np.stack([values[rows, order[rows, np.minimum(place, size - 1)]] for place in places])


def _count_draws(draws: Ints, clusters: int) -> Counts:
    """Count each cluster in each row of ``draws``."""
    rows = draws.shape[0]
    places = draws + np.arange(0, clusters * rows, clusters)[:, None]
    return np.bincount(places.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.uint16)


RESAMPLES = 2000

_SIGNIFICANT = 2.0  # autocorrelations below this many sqrt(log10(n)/n) count as none (Politis and White, section 3.2)
_AT_ONCE = 8_000_000  # cells of the table of counts made at a time


@dataclass(frozen=True, slots=True)
class OverTime:
    """A Sharpe ratio, a difference of two, or a mean daily difference, with its interval over resampled histories.
    ``p`` is two-sided, for the value 0. ``block`` is the mean length of a block in days."""

    value: float
    low: float
    high: float
    p: float
    n: int
    block: float
    method: str


def daily_excess(
    returns: ArrayLike, baseline: ArrayLike, rng: np.random.Generator, level: float = 0.95,
    *, resamples: int = RESAMPLES,
) -> OverTime:  # fmt: skip
    """Compute the mean daily difference of two return series with a stationary block bootstrap interval."""
    source = "daily_excess"
    first, second = checks.finite(source, "returns", returns), checks.finite(source, "baseline", baseline)
    if first.size != second.size:
        checks.fail(source, "baseline", f"must have one return for each of the {first.size} days (got {second.size})")
    checks.probability(source, "level", level)
    difference, n = first - second, first.size
    block = block_length(difference)
    drawn = np.concatenate([counts @ difference / n for counts in day_counts(n, block, resamples, rng)])
    # The variance of resampled means about the sample has n in the denominator, like a variance with ddof 0.
    error = float(drawn.std()) * math.sqrt(n / (n - 1))
    freedom = max(1.0, n / block - 1)
    mean = float(difference.mean())
    half = t_quantile(0.5 + level / 2, freedom) * error
    p = float(2 * scipy.special.stdtr(freedom, -abs(mean) / error))
    method = f"stationary block bootstrap, mean block {block:.3g} days, {resamples} resamples, t({freedom:.3g})"
    return OverTime(mean, mean - half, mean + half, p, n, block, method)


def block_length(values: ArrayLike) -> float:
    """Compute the mean block length for the stationary bootstrap of a mean, 1 or more."""
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
    returns: ArrayLike, pairs: Sequence[tuple[int, int]] = (), *, rng: np.random.Generator, rf: float = 0.04,
    periods: int = 252, level: float = 0.95, resamples: int = RESAMPLES, block: float | None = None,
) -> tuple[tuple[OverTime, ...], tuple[OverTime, ...]]:  # fmt: skip
    """Compute each history's Sharpe ratio, and differences of two, with stationary block bootstrap intervals."""
    probability("sharpe_ratios", "level", level)
    series = _series("sharpe_ratios", np.atleast_2d(np.asarray(returns, dtype=float)))
    k, n = series.shape
    wrong = [pair for pair in pairs if not all(0 <= place < k for place in pair)]
    if wrong:
        raise InputError("sharpe_ratios", [Problem("pairs", f"must name histories 0 to {k - 1} (got {wrong[0]})")])
    if block is None:  # the longest required by any history, or by any difference that varies
        compared = [series[i] - series[j] for i, j in pairs]
        varying = [row for row in compared if row.std() > _FLAT * (1.0 + np.abs(row).max())]
        block = max(block_length(row) for row in [*series, *varying])

    def sharpe(mean: Floats, square: Floats) -> Floats:
        """Compute Sharpe ratios from means and mean squares, with the sample variance (ddof 1)."""
        variance = np.maximum(square - np.square(mean), 0.0) * n / (n - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((mean * periods - rf) / np.sqrt(variance * periods))

    observed = sharpe(series.mean(axis=1), np.square(series).mean(axis=1))
    counted = day_counts(n, block, resamples, rng)
    drawn = np.concatenate([sharpe(row @ series.T / n, row @ np.square(series).T / n) for row in counted])
    method = f"stationary block bootstrap, mean block {block:.3g} days, {resamples} resamples, symmetric"

    def ratio(value: float, draws: Floats) -> OverTime:
        # A resample that repeats a single day has no ratio: it is unbounded.
        strayed = np.where(np.isfinite(draws), np.abs(draws - value), np.inf)
        half = float(np.sort(strayed)[min(resamples - 1, math.ceil(level * resamples) - 1)])
        p = (1 + int((strayed >= abs(value)).sum())) / (1 + resamples)
        return OverTime(value, value - half, value + half, p, n, block, method)

    singles = tuple(ratio(float(observed[i]), drawn[:, i]) for i in range(len(series)))
    differences = tuple(ratio(float(observed[i] - observed[j]), drawn[:, i] - drawn[:, j]) for i, j in pairs)
    return singles, differences


def day_counts(n: int, length: float, resamples: int, rng: np.random.Generator) -> list[Floats]:
    """Count each day in each resample, in tables of shape (rows, n); the counts suffice for means and ratios."""
    counts, size, place = [], max(1, _AT_ONCE // n), np.arange(n)
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        begins = rng.random((rows, n)) < 1.0 / length
        begins[:, 0] = True
        first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
        begin = np.take_along_axis(rng.integers(0, n, (rows, n)), first, axis=1)
        days = (begin + place - first) % n  # the last day is followed by the first
        flat = (np.arange(rows)[:, None] * n + days).ravel()
        counts.append(np.bincount(flat, minlength=rows * n).reshape(rows, n).astype(float))
    return counts


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
