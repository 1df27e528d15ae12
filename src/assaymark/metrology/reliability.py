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
from assaymark.metrology.estimates import (
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
    """A contrast with judges and clusters both taken as samples; see `random_judges`."""

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
    """Contrast of two agents that would hold for other judges and clusters like these, not only for these. Source:
    Brennan 2001, Satterthwaite 1946."""
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
        **found.parts(), judges=families, clusters=clusters, ms_judge=judge, ms_cluster=cluster, ms_error=error,
        var_judge=max(0.0, (judge - error) / units), var_cluster=max(0.0, (cluster - error) / families),
    )  # fmt: skip


def judge_agent_variance(M: ArrayLike) -> float:
    """Variance of judges' likings of single agents (judge x agent), from cluster means. Source: Brennan 2001."""
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
    """Intraclass correlations of ratings in a two-way table. Source: McGraw 1996, Shrout 1979."""
    table = checks.finite("icc", "Y", Y, ndim=2)
    n, k = table.shape
    if min(n, k) < 2:
        raise NotMeasurableError(f"intraclass correlations need two items and two raters (got {n} and {k})")
    msr, msc, mse = (float(x) for x in two_way(table))

    def share(denominator: float) -> float | None:
        return (msr - mse) / denominator if denominator > _ROUNDING * (msr + msc + mse) else None

    return Icc(
        icc_a1=share(msr + (k - 1) * mse + k / n * (msc - mse)), icc_ak=share(msr + (msc - mse) / n),
        icc_c1=share(msr + (k - 1) * mse), icc_ck=share(msr), msr=msr, msc=msc, mse=mse,
    )  # fmt: skip


def krippendorff_alpha(Y: ArrayLike, *, metric: AlphaMetric = "interval") -> float | None:
    """Krippendorff's alpha: agreement of any number of raters, with ratings missing. Source: Krippendorff 2011."""
    ratings = _ratings("krippendorff_alpha", Y, metric)
    value = float(ratings.alphas(np.zeros(len(ratings.codes), dtype=np.int64), 1)[0])
    return None if np.isnan(value) else value


def alpha_report(
    Y: ArrayLike, cluster: Sequence[Any] | NDArray[Any], *, metric: AlphaMetric = "interval", level: float = 0.95,
    consecutive: bool = False,
) -> AlphaReport:  # fmt: skip
    """Krippendorff's alpha with an interval over clusters, and what it would be without each rater. Source:
    Krippendorff 2011, Cameron 2015."""
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
