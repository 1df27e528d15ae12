"""Judges as a sample of judges: would others say the same, how reliable are the ratings, and who pulls them down?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.kappa import (
    Estimate,
    cluster_codes,
    jackknife_estimate,
    leave_out,
    neighbour_blocks,
    scores_of,
    student_estimate,
    undefined,
)
from assaymark.metrology.moderated import FLAT_VARIANCE

AlphaMetric = Literal["interval", "ordinal", "nominal"]

FEWEST_FAMILIES = 3
"""With fewer judge families nothing can be said about judges that did not take part."""

_NO_SAMPLE = "not measurable: needs three judge families and two clusters"
_NO_ALPHA = "undefined: no item with two ratings, or no two ratings that differ"
_ROUNDING = 1e-12  # relative; a spread below it is what subtraction leaves of equal numbers


@dataclass(frozen=True, slots=True)
class RandomJudges(Estimate):
    """A contrast with judges and clusters both taken as samples; see `random_judges`.

    Attributes
    ----------
    judges, clusters : int
        Families, and clusters in which each of them scored both agents.
    ms_judge, ms_cluster, ms_error : float or None
        Mean squares of judge families, clusters and their interaction, in squared score points.
    var_judge, var_cluster : float or None
        Variance components of the contrast between judge families and between clusters, not below 0.
    """

    judges: int
    clusters: int
    ms_judge: float | None = None
    ms_cluster: float | None = None
    ms_error: float | None = None
    var_judge: float | None = None
    var_cluster: float | None = None


@dataclass(frozen=True, slots=True)
class Icc:
    """Intraclass correlations of a complete table of items by raters, in the notation of McGraw and Wong (1996).

    None where the denominator is not above 0: items do not differ, or by less than chance.

    Attributes
    ----------
    icc_a1, icc_ak : float or None
        Absolute agreement of one rater, and of the mean of the k raters.
    icc_c1, icc_ck : float or None
        Consistency: the same with raters' severities taken off.
    msr, msc, mse : float
        Mean squares of items (rows), raters (columns) and residual.
    """

    icc_a1: float | None
    icc_ak: float | None
    icc_c1: float | None
    icc_ck: float | None
    msr: float
    msc: float
    mse: float


@dataclass(frozen=True, slots=True)
class WithoutRater:
    """Alpha without one rater (None where undefined), what it gains, and whether the gain is above chance."""

    alpha: float | None
    gain: Estimate
    pulls_down: bool


@dataclass(frozen=True, slots=True)
class AlphaReport:
    """Krippendorff's alpha of a panel with its interval, and without each rater by column number."""

    alpha: Estimate
    without: Mapping[int, WithoutRater]


def random_judges(d: ArrayLike, *, level: float = 0.95, consecutive: bool = False) -> RandomJudges:
    """Contrast of two agents that would hold for other judges and clusters like these, not only for these.

    Judge families and clusters are both random in the two-way table of contrasts. Two tests must reject, and the
    record has the larger p with its error and degrees of freedom, and the wider interval of the two. The first takes
    the variance of the mean from the two-way mean squares, ``(MS_J + MS_G - MS_JG) / (J G)``, on Satterthwaite degrees
    of freedom and at most G - 1; it is too lenient for three families. The second is Student's t of the J families'
    own contrasts; it is too lenient for judges that do not differ. With three families little can be shown: "not for
    other judges" means not shown.

    Parameters
    ----------
    d : float array [J, G]
        Contrast of each judge family in each cluster, in score points. Clusters in which a family has none (None or
        NaN) are left out.
    level : float
        Coverage of the interval.
    consecutive : bool
        The clusters follow each other in time: their blocks of neighbours are what counts as a cluster.

    Returns
    -------
    RandomJudges
        With fewer than three families or two clusters ``state`` says "not measurable", and p is 1.

    Raises
    ------
    InputError
        Not two axes, or infinite values.

    References
    ----------
    Brennan, R. L. (2001). Generalizability Theory. Springer, section 6.2.
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components. Biometrics
    Bulletin 2(6), 110-114.

    Examples
    --------
    >>> found = random_judges([[0.5, 0.7, 0.6, 0.4], [0.3, 0.6, 0.4, 0.3], [0.4, 0.9, 0.6, 0.5]])
    >>> f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}] p={found.p:.3f}"
    '0.52 [0.21, 0.83] p=0.013'
    """
    source = "random_judges"
    checks.probability(source, "level", level)
    given = checks.array(source, "d", d)
    table = given.astype(np.float64) if given.ndim == 2 and not given.size else scores_of(source, "d", d, 2)
    table = table[:, ~np.isnan(table).any(axis=0)]
    families, clusters = table.shape
    if consecutive and clusters:
        blocks = neighbour_blocks(clusters)
        counts = np.bincount(blocks)
        table = np.add.reduceat(table, np.cumsum(counts) - counts, axis=1) / counts
    units = table.shape[1]
    mean = float(table.mean()) if table.size else None
    if mean is None or families < FEWEST_FAMILIES or units < 2:
        return RandomJudges(**undefined(_NO_SAMPLE, mean).parts(), judges=families, clusters=clusters)
    judge, cluster, error = (0.0 if x <= FLAT_VARIANCE else float(x) for x in two_way(table))
    cells = families * units
    total = judge + cluster - error
    if total <= max(judge, cluster):
        total, df = max((judge, families - 1), (cluster, units - 1))
    else:
        df = total**2 / (judge**2 / (families - 1) + cluster**2 / (units - 1) + error**2 / (families - 1) / (units - 1))
    tests = [
        student_estimate(mean, np.sqrt(total / cells), min(df, units - 1), level=level),
        student_estimate(mean, np.sqrt(judge / cells), families - 1, level=level),
    ]
    found = max(tests, key=lambda test: test.p)
    if found.low is not None:
        wide = max(tests, key=lambda test: -1.0 if test.low is None else mean - test.low)
        found = replace(found, low=wide.low, high=wide.high)
    return RandomJudges(
        **found.parts(),
        judges=families,
        clusters=clusters,
        ms_judge=judge,
        ms_cluster=cluster,
        ms_error=error,
        var_judge=max(0.0, (judge - error) / units),
        var_cluster=max(0.0, (cluster - error) / families),
    )


def judge_agent_variance(M: ArrayLike) -> float:
    """Variance of judges' likings of single agents (judge x agent), from cluster means.

    For each pair of agents the component between judges of its contrast, ``max(0, (MS_J - MS_JG) / G)``, half of it
    for each agent, averaged over pairs. The judges' reactions to an agent in one cluster (judge x agent x cluster) are
    part of MS_JG and do not inflate it, which they do where trajectories are taken as independent.

    Parameters
    ----------
    M : float array [G, J, K]
        Mean score of each cluster, judge and agent. Of each pair the clusters count in which every judge has both.

    Returns
    -------
    float
        In squared score points, from 0.

    Raises
    ------
    NotMeasurableError
        No pair of agents has two judges and two such clusters.
    InputError
        Not three axes, or infinite values.

    References
    ----------
    Brennan, R. L. (2001). Generalizability Theory. Springer, section 3.4.

    Examples
    --------
    >>> likes = np.array([[0.3, 0.0], [-0.3, 0.0], [0.0, 0.0]])
    >>> round(judge_agent_variance(np.stack([likes, likes + 1.0])), 4)
    0.045
    """
    means = scores_of("judge_agent_variance", "M", M, 3)
    groups: dict[bytes, list[Floats]] = {}
    for a in range(means.shape[2] - 1):
        gaps = (means[:, :, a, None] - means[:, :, a + 1 :]).transpose(2, 1, 0)
        whole = ~np.isnan(gaps).any(axis=1)
        for gap, keep in zip(gaps, np.asarray(whole), strict=True):
            groups.setdefault(keep.tobytes(), []).append(gap[:, keep])
    # Pairs with the same clusters go through one computation.
    found = []
    for tables in groups.values():
        stack = np.stack(tables)
        if min(stack.shape[1:]) >= 2:
            judge, _, error = two_way(stack)
            found.append(np.maximum(0.0, (judge - error) / stack.shape[2]) / 2)
    if not found:
        raise NotMeasurableError("judge x agent is undefined: no two judges scored two agents in two common clusters")
    return float(np.concatenate(found).mean())


def two_way(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean squares of rows, columns and residual of complete tables [..., R, C], two of each or more."""
    rows, columns = table.shape[-2:]
    rest = table - table.mean(axis=(-2, -1), keepdims=True)
    by_row, by_column = rest.mean(axis=-1, keepdims=True), rest.mean(axis=-2, keepdims=True)
    rest = rest - by_row - by_column
    return (
        columns * np.square(by_row).sum(axis=(-2, -1)) / (rows - 1),
        rows * np.square(by_column).sum(axis=(-2, -1)) / (columns - 1),
        np.square(rest).sum(axis=(-2, -1)) / ((rows - 1) * (columns - 1)),
    )


def icc(Y: ArrayLike) -> Icc:
    """Intraclass correlations of ratings in a two-way table.

    The share of the variance of a rating that is the items'. Absolute agreement (A) counts differences of raters'
    levels as error, consistency (C) does not; "1" is the reliability of one rater, "k" that of the mean of all k.
    1 is perfect; 0 and below is no reliability.

    Parameters
    ----------
    Y : float array [n, k]
        One rating for each of n items by each of k raters, two of each or more, none missing.

    Returns
    -------
    Icc

    Raises
    ------
    NotMeasurableError
        Fewer than two items or raters.
    InputError
        Empty, not two axes, or not finite.

    References
    ----------
    McGraw, K. O. and Wong, S. P. (1996). Forming inferences about some intraclass correlation coefficients.
    Psychological Methods 1(1), 30-46, table 4.
    Shrout, P. E. and Fleiss, J. L. (1979). Intraclass correlations: uses in assessing rater reliability. Psychological
    Bulletin 86(2), 420-428.

    Examples
    --------
    >>> ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    >>> found = icc(ratings)
    >>> f"{found.icc_a1:.2f} {found.icc_c1:.2f} {found.icc_ak:.2f} {found.icc_ck:.2f}"
    '0.29 0.71 0.62 0.91'
    """
    table = checks.finite("icc", "Y", Y, ndim=2)
    n, k = table.shape
    if min(n, k) < 2:
        raise NotMeasurableError(f"intraclass correlations need two items and two raters (got {n} and {k})")
    msr, msc, mse = (float(x) for x in two_way(table))

    def share(denominator: float) -> float | None:
        return (msr - mse) / denominator if denominator > _ROUNDING * (msr + msc + mse) else None

    return Icc(
        icc_a1=share(msr + (k - 1) * mse + k / n * (msc - mse)),
        icc_ak=share(msr + (msc - mse) / n),
        icc_c1=share(msr + (k - 1) * mse),
        icc_ck=share(msr),
        msr=msr,
        msc=msc,
        mse=mse,
    )


def krippendorff_alpha(Y: ArrayLike, *, metric: AlphaMetric = "interval") -> float | None:
    """Krippendorff's alpha: agreement of any number of raters, with ratings missing.

    1 minus observed over expected disagreement: 1 is full agreement, 0 what pairing ratings at random would give.

    Parameters
    ----------
    Y : float array [n, J]
        Ratings of n items by J raters; None or NaN where there is none. Items with one rating say nothing.
    metric : "interval", "ordinal" or "nominal"
        Disagreement of two ratings: their squared difference; the squared number of ratings that lie between them
        (half of those at either end counted); or 1 unless they are equal.

    Returns
    -------
    float or None
        At most 1. None where no item has two ratings, or all ratings are equal.

    Raises
    ------
    InputError
        Empty, not two axes, infinite values, or another metric.

    References
    ----------
    Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania,
    Annenberg School for Communication, section E.

    Examples
    --------
    >>> round(krippendorff_alpha([[1, 1, None], [2, 2, 3], [3, 3, 3], [5, 4, 5], [None, 2, 2]]), 4)
    0.9091
    """
    ratings = _ratings("krippendorff_alpha", Y, metric)
    value = float(ratings.alphas(np.zeros(len(ratings.codes), dtype=np.int64), 1)[0])
    return None if np.isnan(value) else value


def alpha_report(
    Y: ArrayLike,
    cluster: Sequence[Any] | NDArray[Any],
    *,
    metric: AlphaMetric = "interval",
    level: float = 0.95,
    consecutive: bool = False,
) -> AlphaReport:
    """Krippendorff's alpha with an interval over clusters, and what it would be without each rater.

    The interval is the delete-one-cluster jackknife on Student's t (the percentile bootstrap covers 78 % instead of
    95 % at five clusters). A rater pulls the panel down where the interval of the gain without it lies above 0. Ends
    are not cut at 1.

    Parameters
    ----------
    Y, metric
        As for `krippendorff_alpha`.
    cluster : sequence of n names or whole numbers
        The cluster of each item.
    level : float
        Coverage of the intervals.
    consecutive : bool
        The clusters follow each other in time: the jackknife leaves out blocks of neighbours.

    Returns
    -------
    AlphaReport
        ``without`` is keyed by column. Where alpha is undefined, in full or without one of the clusters, the state
        says so and there is no interval.

    Raises
    ------
    InputError
        As for `krippendorff_alpha`, or lengths that differ.

    References
    ----------
    Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.
    Cameron, A. C. and Miller, D. L. (2015). A practitioner's guide to cluster-robust inference. J. Human Resources
    50(2), 317-372, equation 12.

    Examples
    --------
    >>> ratings = [[1, 1, 3], [2, 2, 1], [4, 5, 2], [5, 5, 4], [3, 3, 5], [1, 2, 1], [4, 4, 5], [2, 2, 4]]
    >>> found = alpha_report(ratings, ["a", "a", "b", "b", "c", "c", "d", "d"])
    >>> round(found.alpha.estimate, 3), round(found.without[2].alpha, 3), found.without[2].pulls_down
    (0.567, 0.941, True)
    """
    source = "alpha_report"
    ratings = _ratings(source, Y, metric)
    codes = cluster_codes(source, cluster, len(ratings.codes))
    checks.probability(source, "level", level)
    units = int(codes.max()) + 1
    if consecutive:
        codes = neighbour_blocks(units)[codes]
        units = int(codes.max()) + 1
    full = ratings.alphas(codes, units)
    without = {}
    for rater in range(ratings.codes.shape[1]):
        rest = ratings.without(rater).alphas(codes, units)
        gain = _jackknifed(rest - full, level=level)
        alpha = None if np.isnan(rest[0]) else float(rest[0])
        without[rater] = WithoutRater(alpha, gain, gain.low is not None and gain.low > 0)
    return AlphaReport(_jackknifed(full, level=level), without)


def _jackknifed(values: Floats, *, level: float) -> Estimate:
    """The record of alphas (or differences of them) on all clusters, then without each [1 + G]; NaN: undefined."""
    full = float(values[0])
    if np.isnan(full):
        return undefined(_NO_ALPHA)
    if values.size == 1:
        return student_estimate(full, 0.0, 0)
    if np.isnan(values).any():
        return undefined(f"{_NO_ALPHA} (without one of the clusters)", full)
    return jackknife_estimate(full, values[1:], level=level)


@dataclass(frozen=True, slots=True)
class _Ratings:
    """Ratings as codes [n, J] of their sorted values [V], -1 where missing."""

    codes: Ints
    values: Floats
    metric: AlphaMetric

    def without(self, rater: int) -> _Ratings:
        """The ratings of the other raters."""
        return _Ratings(np.delete(self.codes, rater, axis=1), self.values, self.metric)

    def alphas(self, cluster: Ints, clusters: int) -> Floats:
        """Alpha of all items, then without each of two or more clusters [1 + G]; NaN where undefined."""
        size = (self.codes >= 0).sum(axis=1)
        pairable = size >= 2
        size, cluster, codes = size[pairable], cluster[pairable], self.codes[pairable]
        if self.metric == "interval":
            x = np.where(codes >= 0, self.values[codes], 0.0)
            sums, powers = x.sum(axis=1), np.square(x).sum(axis=1)
            apart = 2 * (size * powers - np.square(sums)) / (size - 1)
            columns = [np.bincount(cluster, values, clusters) for values in (size, sums, powers, apart)]
            n, total, squares, observed = leave_out(np.stack(columns, axis=1).astype(np.float64)).T
            expected = 2 * (n * squares - total**2)
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(expected <= _ROUNDING * n * squares, np.nan, 1 - (n - 1) * observed / expected)
        item, rater = np.nonzero(codes >= 0)
        code = codes[item, rater]
        width = self.values.size
        # How often each item got each value [n, V].
        times = sparse.csr_array((np.ones(code.size), (item, code)), shape=(size.size, width))

        def disagreement(scale: Floats) -> Floats:
            """Sum of squared differences over ordered pairs within each item, over m - 1 [n, R]; ``scale`` [V, R]."""
            m = size[:, None]
            return np.asarray(2 * (m * (times @ np.square(scale)) - np.square(times @ scale)) / (m - 1))

        def by_cluster(values: Floats) -> Floats:
            return np.bincount(cluster, weights=values, minlength=clusters).astype(np.float64, copy=False)

        place = cluster[item] * width + code
        counts = leave_out(np.bincount(place, minlength=clusters * width).reshape(clusters, width).astype(float))
        n = counts.sum(axis=1)
        flat = np.count_nonzero(counts, axis=1) < 2
        if self.metric == "nominal":
            expected = n**2 - np.square(counts).sum(axis=1)
            same = np.asarray(times.power(2).sum(axis=1)).ravel()
            observed = leave_out(by_cluster((size**2 - same) / (size - 1)))
        else:
            # Ratings that lie between two values are the difference of the values' mid-ranks.
            ranks = np.cumsum(counts, axis=1) - counts / 2
            expected = 2 * (n * (counts * ranks**2).sum(axis=1) - (counts * ranks).sum(axis=1) ** 2)
            each = disagreement(ranks.T)
            observed = each.sum(axis=0)
            if observed.size > 1:
                observed[1:] -= by_cluster(each[np.arange(size.size), 1 + cluster])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(flat, np.nan, 1 - (n - 1) * observed / expected)


def _ratings(source: str, Y: ArrayLike, metric: AlphaMetric) -> _Ratings:
    table = scores_of(source, "Y", Y, 2)
    if metric not in ("interval", "ordinal", "nominal"):
        checks.fail(source, "metric", f"must be interval, ordinal or nominal (got {metric!r})")
    present = ~np.isnan(table)
    values, place = np.unique(table[present], return_inverse=True)
    codes = np.full(table.shape, -1, dtype=np.int64)
    codes[present] = place
    # Equal shifts change nothing, and numbers around 0 keep their digits when squared.
    return _Ratings(codes, values - values.mean() if values.size else values, metric)
