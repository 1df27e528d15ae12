"""The cluster bootstrap as re-weighting: resampling clusters only changes how often each one's sums are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.agreement import Pair, judge_pairs
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.intervals import Interval, inverse_distribution, t_quantile

Counts = NDArray[np.uint16]

EXACT_CLUSTERS = 8
"""Up to this many clusters every resample is enumerated (6,435 of them at 8) and no randomness is left."""

SMALL_PRODUCT = 1 << 18
"""Multiplications up to which BLAS keeps a matrix product on one thread: on a busy machine several wait for each other
longer than the product takes."""

_CHUNK = 1 << 21  # draws held in memory at a time
_ORIGIN = 3  # the middle of the usual scale


@dataclass(frozen=True, slots=True)
class Resamples:
    """How often each cluster is drawn in each resample [R, G], and the probability mass of each resample [R]."""

    times: Counts
    mass: Floats | None

    @property
    def size(self) -> int:
        """Number of resamples R."""
        return int(self.times.shape[0])

    @property
    def exact(self) -> bool:
        """Whether these are all resamples there are, each with its multinomial weight."""
        return self.mass is not None


@cache
def all_resamples(clusters: int) -> Resamples:
    """All C(2G-1, G) ways to draw G clusters with replacement, order aside, each with its share of the G^G draws.

    >>> table = all_resamples(5)
    >>> table.times.shape, float(table.mass.sum()) == 5**5
    ((126, 5), True)
    """
    draws = np.array(list(combinations_with_replacement(range(clusters), clusters)))
    times = _tally(draws, clusters)
    factorial = np.array([math.factorial(k) for k in range(clusters + 1)], dtype=np.float64)
    mass = factorial[clusters] / factorial[times].prod(axis=1)
    times.setflags(write=False)
    mass.setflags(write=False)
    return Resamples(times, mass)


def resamples_of(clusters: int, resamples: int, rng: np.random.Generator | None, source: str) -> Iterator[Resamples]:
    """Every resample at once where they can be enumerated, else ``resamples`` multinomial draws in chunks."""
    if clusters <= EXACT_CLUSTERS:
        yield all_resamples(clusters)
        return
    if rng is None:
        checks.fail(
            source,
            "rng",
            f"{clusters} clusters are too many to enumerate (up to {EXACT_CLUSTERS} are); "
            "pass a generator such as np.random.default_rng(7)",
        )
    rows = max(1, _CHUNK // clusters)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        yield Resamples(_tally(rng.integers(0, clusters, size=(size, clusters)), clusters), None)


def bootstrap_kappa(
    ratings: ArrayLike,
    clusters: Sequence[Any] | NDArray[Any],
    *,
    categories: int = 5,
    level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Percentile interval of the mean pairwise kappa from a cluster bootstrap.

    Clusters (regimes, rounds, weeks) are drawn with replacement; items never leave their cluster. With up to 8
    clusters all C(2G-1, G) resamples are enumerated with their multinomial weights and the interval is exact; above,
    ``resamples`` are drawn. The ends are the inverse weighted distribution function at (1-level)/2 and (1+level)/2
    (ValueBlindBench section 3.9). With few clusters it is too narrow: `jackknife_kappa` is its companion.

    A resample in which some pair of judges is constant has no kappa. Such resamples are left out and ``method`` says
    how many and with what share of the mass; when that share exceeds ``1 - level``, the ends would be decided by what
    was left out, and there is no interval.

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
    checks.whole("bootstrap_kappa", "resamples", resamples, least=1)
    sums = KappaSums.of(table, codes, len(names), judge_pairs(table.shape[1]))
    sums.require_defined()
    return sums.bootstrap(level=level, resamples=resamples, rng=rng)


def jackknife_kappa(
    ratings: ArrayLike, clusters: Sequence[Any] | NDArray[Any], *, categories: int = 5, level: float = 0.95
) -> Interval:
    """Delete-one-cluster jackknife interval of the mean pairwise kappa, with Student's t on G-1 degrees of freedom.

    The few-cluster companion of `bootstrap_kappa`: wider, and closer to its level with five clusters. Ends are cut
    at -1 and 1.

    Parameters
    ----------
    ratings, clusters, categories, level
        As for `bootstrap_kappa`.

    Raises
    ------
    NotMeasurableError
        One cluster, or kappa is undefined, in all data or without one of the clusters.
    InputError
        Wrong shapes, or ratings off the scale.

    Examples
    --------
    >>> ratings = [[1, 1], [2, 3], [4, 4], [5, 4], [3, 3], [2, 2]]
    >>> print(jackknife_kappa(ratings, ["w1", "w1", "w2", "w2", "w3", "w3"]))
    [0.6717, 1.0000] (delete-one-cluster jackknife, t(2))
    """
    size = checks.categories_of("jackknife_kappa", categories)
    table = checks.ratings("jackknife_kappa", "ratings", ratings, size, ndim=2)
    names, codes = checks.labels("jackknife_kappa", "clusters", clusters, table.shape[0])
    checks.probability("jackknife_kappa", "level", level)
    sums = KappaSums.of(table, codes, len(names), judge_pairs(table.shape[1]))
    sums.require_defined()
    return sums.jackknife(level=level)


@dataclass(frozen=True, slots=True)
class KappaSums:
    """Per cluster, the sums from which the kappa of every resample follows.

    ``columns`` [1 + 2J + P, G] holds, for each cluster, the items, each judge's sum and sum of squares, and each pair's
    sum of products. All are whole numbers, counted from a point inside the scale so that products of them stay exact.
    """

    columns: Floats
    judges: int
    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, ratings: Ints, codes: Ints, clusters: int, pairs: Sequence[Pair]) -> KappaSums:
        """Sums from good ratings [n, J] and cluster codes [n]; each item is looked at once."""
        x = (ratings.T - _ORIGIN).astype(np.float64)
        left, right = np.array(pairs).T
        parts = np.concatenate([np.ones((1, x.shape[1])), x, x * x, x[left] * x[right]])
        columns = np.stack([np.bincount(codes, weights=row, minlength=clusters) for row in parts])
        return cls(columns.astype(np.float64, copy=False), ratings.shape[1], tuple(pairs))

    @property
    def clusters(self) -> int:
        """Number of clusters G."""
        return int(self.columns.shape[1])

    @property
    def n(self) -> int:
        """Number of items."""
        return int(self.columns[0].sum())

    def kappas(self, sums: Floats) -> Floats:
        """Kappa of every pair [P, R] from summed columns [K, R]; NaN where both judges are constant."""
        left, right = np.array(self.pairs).T
        n, total, squares = sums[0], sums[1 : 1 + self.judges], sums[1 + self.judges : 1 + 2 * self.judges]
        varies = n * squares > total * total
        both = n * (squares[left] + squares[right])
        with np.errstate(invalid="ignore", divide="ignore"):
            kappa = 1.0 - (both - 2 * n * sums[1 + 2 * self.judges :]) / (both - 2 * total[left] * total[right])
        kappa[~(varies[left] | varies[right])] = np.nan
        return np.asarray(kappa)

    def means(self, sums: Floats) -> Floats:
        """Mean pairwise kappa [R] from summed columns [K, R]; NaN where some pair has none."""
        return np.asarray(self.kappas(sums).mean(axis=0))

    def point(self) -> float | None:
        """Mean pairwise kappa of all data, or None where some pair has none."""
        value = float(self.means(self.columns.sum(axis=1, keepdims=True))[0])
        return None if math.isnan(value) else value

    def require_defined(self) -> float:
        """The mean pairwise kappa, or the reason that an interval around it makes no sense."""
        value = self.point()
        if value is None:
            raise NotMeasurableError(f"kappa is undefined: a pair of judges gave one rating each to all {self.n} items")
        if self.clusters < 2:
            raise NotMeasurableError("an interval over clusters needs at least two of them (got 1)")
        return value

    def bootstrap(self, *, level: float, resamples: int, rng: np.random.Generator | None) -> Interval:
        """Percentile interval; see `bootstrap_kappa`."""
        drawn = list(resamples_of(self.clusters, resamples, rng, "bootstrap_kappa"))
        rows = SMALL_PRODUCT // self.columns.size + 1
        values = np.concatenate(
            [
                self.means(self.columns @ chunk.times[start : start + rows].T.astype(np.float64))
                for chunk in drawn
                for start in range(0, chunk.size, rows)
            ]
        )
        mass, defined = drawn[0].mass, ~np.isnan(values)
        kind = "exact: all" if mass is not None else "multinomial:"
        method = f"cluster bootstrap, {kind} {values.size} resamples of {self.clusters} clusters"
        if not defined.all():
            share = 1 - float(np.average(defined, weights=mass))
            method += f"; {int((~defined).sum())} without a kappa left out ({share:.3%} of the mass)"
            if share > 1 - level + 1e-9:
                raise NotMeasurableError(f"no interval: {method}, more than {1 - level:.3%}")
            values, mass = values[defined], None if mass is None else mass[defined]
        tail = (1 - level) / 2
        low, high = (inverse_distribution(values, mass, q) for q in (tail, 1 - tail))
        return Interval(low, high, method)

    def jackknife(self, *, level: float) -> Interval:
        """Delete-one-cluster interval; see `jackknife_kappa`."""
        total = self.columns.sum(axis=1, keepdims=True)
        centre = float(self.means(total)[0])
        without = self.means(total - self.columns)
        missing = np.isnan(without)
        if missing.any():
            raise NotMeasurableError(
                f"no jackknife: kappa is undefined without {int(missing.sum())} of the {self.clusters} clusters"
            )
        g = self.clusters
        spread = math.sqrt((g - 1) / g * float(np.square(without - without.mean()).sum()))
        half = t_quantile(0.5 + level / 2, g - 1) * spread
        method = f"delete-one-cluster jackknife, t({g - 1})"
        return Interval(max(-1.0, centre - half), min(1.0, centre + half), method)


def _tally(draws: Ints, clusters: int) -> Counts:
    """How often each cluster occurs in each row of ``draws``."""
    rows = draws.shape[0]
    places = draws + np.arange(0, clusters * rows, clusters)[:, None]
    return np.bincount(places.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.uint16)
