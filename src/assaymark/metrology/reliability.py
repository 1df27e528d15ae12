"""Reliability of judges as a random sample: intraclass correlation, alpha, variance and discriminant validity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, estimates
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import FLAT_VARIANCE, holm
from assaymark.metrology.estimates import Estimate, cluster_codes, jackknife_estimate, leave_out, scores_of, undefined
from assaymark.plan import TOLERANCE

AlphaMetric = Literal["interval", "ordinal", "nominal"]

FEWEST_FAMILIES = 3
"""Minimum number of judge families for generalising to other judges."""

_NO_SAMPLE = "not measurable: needs three judge families and two clusters"
_NO_ALPHA = "undefined: no item with two ratings, or no two ratings that differ"
_ROUNDING = 1e-12  # relative; a smaller spread is the rounding error of equal numbers


@dataclass(frozen=True, slots=True)
class RandomJudges(Estimate):
    """A contrast with both judges and clusters treated as random samples; see `random_judges`."""

    judges: int
    clusters: int
    ms_judge: float | None = None
    ms_cluster: float | None = None
    ms_error: float | None = None
    var_judge: float | None = None
    var_cluster: float | None = None


@dataclass(frozen=True, slots=True)
class Icc:
    """Intraclass correlations of items by raters (McGraw 1996); None if items do not differ beyond chance."""

    icc_a1: float | None
    icc_ak: float | None
    icc_c1: float | None
    icc_ck: float | None
    msr: float
    msc: float
    mse: float


@dataclass(frozen=True, slots=True)
class WithoutRater:
    """Alpha without one rater (None if undefined), its gain, and whether the gain is above chance."""

    alpha: float | None
    gain: Estimate
    pulls_down: bool


@dataclass(frozen=True, slots=True)
class AlphaReport:
    """Krippendorff's alpha of a panel with its interval, and alpha without each rater by column index."""

    alpha: Estimate
    without: Mapping[int, WithoutRater]


def random_judges(d: ArrayLike, level: float = 0.95, consecutive: bool = False) -> RandomJudges:
    """Estimate a contrast of two agents that generalises to similar judges and clusters (Brennan 2001)."""
    source = "random_judges"
    checks.probability(source, "level", level)
    raw = checks.array(source, "d", d)
    table = raw.astype(np.float64) if raw.ndim == 2 and not raw.size else scores_of(source, "d", d, 2)
    table = table[:, ~np.isnan(table).any(axis=0)]
    families, clusters = table.shape
    if consecutive and clusters:
        counts = np.bincount(estimates.neighbour_blocks(clusters))
        table = np.add.reduceat(table, np.cumsum(counts) - counts, axis=1) / counts
    units = table.shape[1]
    mean = float(table.mean()) if table.size else None
    if mean is None or families < FEWEST_FAMILIES or units < 2:
        return RandomJudges(*undefined(_NO_SAMPLE, mean).parts(), families, clusters)
    judge, cluster, error = (0.0 if x <= FLAT_VARIANCE else float(x) for x in two_way(table))
    cells = families * units
    total = judge + cluster - error
    if total <= 0 or total < (1 - TOLERANCE) * max(judge, cluster):
        total, df = max((judge, families - 1), (cluster, units - 1))
    else:  # Satterthwaite (1946)
        df = total**2 / (judge**2 / (families - 1) + cluster**2 / (units - 1) + error**2 / (families - 1) / (units - 1))
    tests = [
        estimates.student_estimate(mean, np.sqrt(square / cells), freedom, level)
        for square, freedom in ((total, min(df, units - 1)), (judge, families - 1))
    ]
    worst = max(tests, key=lambda test: test.p)
    if worst.low is not None:
        wide = max(tests, key=lambda test: -1.0 if test.low is None else mean - test.low)
        worst = replace(worst, low=wide.low, high=wide.high)
    between = max(0.0, (judge - error) / units), max(0.0, (cluster - error) / families)
    return RandomJudges(*worst.parts(), families, clusters, judge, cluster, error, *between)


def judge_agent_variance(M: ArrayLike) -> float:
    """Estimate the judge-by-agent interaction variance from cluster means (Brennan 2001)."""
    means = scores_of("judge_agent_variance", "M", M, 3)
    groups: dict[bytes, list[Floats]] = {}
    for a in range(means.shape[2] - 1):
        gaps = (means[:, :, a, None] - means[:, :, a + 1 :]).transpose(2, 1, 0)
        complete = ~np.isnan(gaps).any(axis=1)
        for gap, keep in zip(gaps, np.asarray(complete), strict=True):
            groups.setdefault(keep.tobytes(), []).append(gap[:, keep])
    # Pairs with the same clusters share one computation.
    variances = []
    for tables in groups.values():
        stack = np.stack(tables)
        if min(stack.shape[1:]) >= 2:
            judge, _, error = two_way(stack)
            variances.append(np.maximum(0.0, (judge - error) / stack.shape[2]) / 2)
    if not variances:
        raise NotMeasurableError("judge x agent is undefined: no two judges scored two agents in two common clusters")
    return float(np.concatenate(variances).mean())


def two_way(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute mean squares of rows, columns and residual of complete tables [..., R, C] with R, C >= 2."""
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
    """Compute the intraclass correlations of ratings in a two-way table (McGraw 1996, Shrout 1979)."""
    table = checks.finite("icc", "Y", Y, ndim=2)
    n, k = table.shape
    if min(n, k) < 2:
        raise NotMeasurableError(f"intraclass correlations need two items and two raters (got {n} and {k})")
    msr, msc, mse = (float(x) for x in two_way(table))
    total = msr + (k - 1) * mse
    below = total + k / n * (msc - mse), msr + (msc - mse) / n, total, msr
    a1, ak, c1, ck = ((msr - mse) / part if part > _ROUNDING * (msr + msc + mse) else None for part in below)
    return Icc(a1, ak, c1, ck, msr, msc, mse)


def krippendorff_alpha(Y: ArrayLike, *, metric: AlphaMetric = "interval") -> float | None:
    """Compute Krippendorff's alpha, the agreement of any number of raters with missing ratings (Krippendorff 2011)."""
    ratings, values = _ratings("krippendorff_alpha", Y, metric)
    return estimates.defined(_alphas(ratings, values, metric, np.zeros(len(ratings), dtype=np.int64), 1)[0])


def alpha_report(
    Y: ArrayLike, cluster: Sequence[Any] | NDArray[Any], level: float = 0.95, consecutive: bool = False, *,
    metric: AlphaMetric = "interval",
) -> AlphaReport:  # fmt: skip
    """Compute alpha with an interval over clusters, and without each rater (Krippendorff 2011, Cameron 2015)."""
    source = "alpha_report"
    ratings, values = _ratings(source, Y, metric)
    codes = cluster_codes(source, cluster, len(ratings), consecutive)
    checks.probability(source, "level", level)
    units = int(codes.max()) + 1

    def report(alphas: Floats) -> Estimate:
        """Jackknife alphas (or their differences) on all clusters, then without each [1 + G]; NaN: undefined."""
        overall = float(alphas[0])
        if np.isnan(overall):
            return undefined(_NO_ALPHA)
        if alphas.size > 1 and np.isnan(alphas).any():
            return undefined(f"{_NO_ALPHA} (without one of the clusters)", overall)
        return jackknife_estimate(overall, alphas[1:], level)

    full, without = _alphas(ratings, values, metric, codes, units), {}
    for rater in range(ratings.shape[1]):
        rest = _alphas(np.delete(ratings, rater, axis=1), values, metric, codes, units)
        gain, alpha = report(rest - full), estimates.defined(rest[0])
        without[rater] = WithoutRater(alpha, gain, gain.low is not None and gain.low > 0)
    return AlphaReport(report(full), without)


def alpha_of_sums(n: ArrayLike, total: ArrayLike, squares: ArrayLike, apart: ArrayLike) -> Floats:
    """Compute alpha of items with at least two ratings from the results of `alpha_sums`; NaN if no ratings differ."""
    n, total, squares = (np.asarray(x, dtype=np.float64) for x in (n, total, squares))
    expected = 2 * (n * squares - total**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected <= _ROUNDING * n * squares, np.nan, 1 - (n - 1) * np.asarray(apart) / expected)


def alpha_sums(grades: Floats) -> tuple[Floats, Bools]:
    """Compute count, sum, squares and disagreement of the grades [N, J] of pairable items, and the items' mask."""
    paired = (~np.isnan(grades)).sum(axis=1) > 1
    return _item_sums(grades[paired]).sum(axis=0), paired


def _item_sums(grades: Floats) -> Floats:
    """Return count, sum, squares and disagreement of the grades [N, J] of each pairable item [N, 4]."""
    size, x = (~np.isnan(grades)).sum(axis=1), np.nan_to_num(grades)
    sums, squares = x.sum(axis=1), np.square(x).sum(axis=1)
    return np.stack([size, sums, squares, 2 * (size * squares - np.square(sums)) / (size - 1)], axis=1)


def _ratings(source: str, Y: ArrayLike, metric: AlphaMetric) -> tuple[Ints, Floats]:
    """Convert ratings to codes [n, J] of their sorted values [V], -1 if missing."""
    table = scores_of(source, "Y", Y, 2)
    if metric not in ("interval", "ordinal", "nominal"):
        checks.fail(source, "metric", f"must be interval, ordinal or nominal (got {metric!r})")
    present = ~np.isnan(table)
    values, place = np.unique(table[present], return_inverse=True)
    codes = np.full(table.shape, -1, dtype=np.int64)
    codes[present] = place
    # A common shift changes nothing, and values around 0 keep their precision when squared.
    return codes, values - values.mean() if values.size else values


def _alphas(codes: Ints, levels: Floats, metric: AlphaMetric, cluster: Ints, clusters: int) -> Floats:
    """Compute alpha of all items, then without each of two or more clusters [1 + G]; NaN if undefined."""
    size = (codes >= 0).sum(axis=1)
    pairable = size >= 2
    size, cluster, codes = size[pairable], cluster[pairable], codes[pairable]
    if metric == "interval":
        columns = _item_sums(np.where(codes >= 0, levels[codes], np.nan))
        return alpha_of_sums(*leave_out(estimates.group_sums(columns, cluster, clusters)).T)
    item, rater = np.nonzero(codes >= 0)
    code, width = codes[item, rater], levels.size
    # Counts of each value by item [n, V].
    times = scipy.sparse.csr_array((np.ones(code.size), (item, code)), shape=(size.size, width))

    def by_cluster(values: Floats) -> Floats:
        return np.bincount(cluster, weights=values, minlength=clusters).astype(np.float64, copy=False)

    place = cluster[item] * width + code
    counts = leave_out(np.bincount(place, minlength=clusters * width).reshape(clusters, width).astype(float))
    n = counts.sum(axis=1)
    flat = np.count_nonzero(counts, axis=1) < 2
    if metric == "nominal":
        expected = n**2 - np.square(counts).sum(axis=1)
        same: Floats = np.asarray(times.power(2).sum(axis=1)).ravel()
        observed = leave_out(by_cluster((size**2 - same) / (size - 1)))
    else:
        # The number of ratings between two values is the difference of the values' mid-ranks.
        ranks = np.cumsum(counts, axis=1) - counts / 2
        expected = 2 * (n * (counts * ranks**2).sum(axis=1) - (counts * ranks).sum(axis=1) ** 2)
        # Sum of squared differences over ordered pairs within each item, divided by m - 1 [n, R].
        m, sums = size[:, None], np.asarray(times @ ranks.T)
        each = 2 * (m * np.asarray(times @ np.square(ranks.T)) - np.square(sums)) / (m - 1)
        observed = each.sum(axis=0)
        if observed.size > 1:
            observed[1:] -= by_cluster(each[np.arange(size.size), 1 + cluster])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(flat, np.nan, 1 - (n - 1) * observed / expected)


PARTS = ("agent_cluster", "residual", "judge_agent", "judge_agent_cluster", "disagreement", "trial")
"""The variance components of a contrast of two agents, in squared score points."""


def dstudy_variance(v: Mapping[str, float], G: int, C: int, J: int, T: int, random: bool = True) -> float:
    """Compute the variance of a contrast in a design of clusters, cycles, judges and trials (Brennan 2001)."""
    parts = components_of("dstudy_variance", v)
    for name, value in (("G", G), ("C", C), ("J", J), ("T", T)):
        checks.integer("dstudy_variance", name, value, least=1)
    judge, cluster, error = effects_of(parts, C, T, random)
    return float(judge / J + cluster / G + error / (J * G))


def generalizability(
    agent: float, v: Mapping[str, float], G: int, C: int, J: int, T: int, *, random: bool = True
) -> float:
    """Compute the generalizability coefficient: the agents' share of the variance of agent means (Brennan 2001)."""
    if not (math.isfinite(agent) and agent >= 0):
        checks.fail("generalizability", "agent", f"must be a finite number from 0 (got {agent!r})")
    total = agent + dstudy_variance(v, G, C, J, T, random) / 2
    if total == 0:
        raise NotMeasurableError("the generalizability coefficient is undefined: agents and errors have no variance")
    return agent / total


def contrast_components(
    cells: Floats, cluster: Ints, liking: Floats
) -> tuple[dict[str, Floats], dict[str, Floats], float, float] | None:
    """Estimate the variance components of a contrast of two agents by the method of moments."""
    complete: Bools = np.asarray(~np.isnan(cells).any(axis=(2, 3)))
    judges, scales = cells.shape[2:]
    squares, levels, within = np.zeros((3, scales)), np.zeros(scales), np.zeros((2, scales))
    freedom, pairs, clusters, inverse = 0, 0, 0, 0.0
    for a, b in combinations(range(cells.shape[1]), 2):
        common = complete[:, a] & complete[:, b]
        _, starts, code, sizes = np.unique(cluster[common], return_index=True, return_inverse=True, return_counts=True)
        if sizes.size < 2 or judges < 2:
            continue
        differences = cells[common, a] - cells[common, b]
        means = np.add.reduceat(differences, starts) / sizes[:, None, None]
        squares += two_way(means.transpose(2, 1, 0))
        levels += np.square(means.mean(axis=(0, 1)))
        inside = differences - means[code]
        rows = judges * np.square(inside.mean(axis=1)).sum(axis=0)
        within += rows, np.square(inside).sum(axis=(0, 1)) - rows
        freedom += code.size - sizes.size
        pairs, clusters, inverse = pairs + 1, clusters + sizes.size, inverse + float((1 / sizes).mean())
    if not pairs:
        return None
    judge, between, error = squares / pairs
    inverse, size = inverse / pairs, clusters / pairs
    # The difference of two agents has twice the variance of one agent.
    disagreement = residual = np.full(scales, np.nan)
    if freedom:
        noise = within[1] / (freedom * (judges - 1))
        disagreement, residual = noise / 2, (within[0] / freedom - noise) / (2 * judges)
    reaction, both = (between - error) / (2 * judges), error / 2
    chance = (judge + between - error) / (judges * size)
    nested = freedom > 0
    raw = {
        "agent": (levels / pairs - chance) / 2, "agent_cluster": reaction - residual * inverse if nested else reaction,
        "residual": residual, "judge_agent": liking,
        "judge_agent_cluster": both - disagreement * inverse if nested else both, "disagreement": disagreement,
    }  # fmt: skip
    none = np.zeros(scales)
    means_of = dict.fromkeys(PARTS, none) | {
        "agent_cluster": np.maximum(reaction, 0.0), "judge_agent": liking, "judge_agent_cluster": both
    }  # fmt: skip
    return {name: np.maximum(value, 0.0) for name, value in raw.items()}, means_of, size, 1 / inverse


def components_of(source: str, v: Mapping[str, float]) -> dict[str, float]:
    """Check that exactly the required components are given, and return them."""
    if set(v) != set(PARTS) or not all(math.isfinite(x) and x >= 0 for x in v.values()):
        checks.fail(source, "v", f"must have finite variances from 0 of {', '.join(PARTS)} (got {dict(v)!r})")
    return dict(v)


def effects_of(
    parts: Mapping[str, float], cycles: Floats | float, trials: Floats | float, random: bool
) -> tuple[float, Floats | float, Floats | float]:
    """Compute the variance of a contrast between judges, between clusters, and of one judge in one cluster."""
    cluster = 2 * (parts["agent_cluster"] + parts["residual"] / cycles)
    error = 2 * (parts["judge_agent_cluster"] + (parts["disagreement"] + parts["trial"] / trials) / cycles)
    return 2 * parts["judge_agent"] if random else 0.0, cluster, error


DISTINCT = 0.95
"""Correlation with the overall impression at which a dimension counts as not distinct from it."""

_NOTHING = 1e-12  # a covariance below this is float noise
_TOO_FEW = "not measurable: needs two judges, two dimensions and three clusters"


@dataclass(frozen=True, slots=True)
class DistinctDimension:
    """Correlation of one dimension with the overall impression, with its test; see `discriminant`."""

    phi: float | None
    low: float | None
    high: float | None
    p: float
    state: str
    p_holm: float
    distinct: bool


@dataclass(frozen=True, slots=True)
class Discriminant:
    """The test results of all dimensions; empty unless ``state`` is "ok"."""

    state: str
    dimensions: tuple[DistinctDimension, ...] = ()


def discriminant(
    S: ArrayLike, cluster: Sequence[Any] | NDArray[Any], distinct: float = DISTINCT, level: float = 0.95,
    consecutive: bool = False, *, alpha: float = 0.05,
) -> Discriminant:  # fmt: skip
    """Test each dimension's discriminant validity against the overall impression (Campbell 1959, Henseler 2015)."""
    for name, value in (("distinct", distinct), ("alpha", alpha), ("level", level)):
        checks.probability("discriminant", name, value)
    products, counts, (judges, dimensions) = _products("discriminant", S, cluster)
    if judges < 2 or dimensions < 2 or counts.size < 3:
        return Discriminant(_TOO_FEW)
    covariances = leave_out(products, consecutive) / leave_out(counts, consecutive)[:, None, None]
    if len(covariances) == 1:
        return Discriminant("not measurable: clusters that follow each other make one block, needs two")
    # Sums over judge pairs of covariances [L, D]: of d, of the mean of the other dimensions, and between the two.
    table = covariances.reshape(-1, judges, dimensions, judges, dimensions)
    between = table.sum(axis=(1, 3)) - np.einsum("ljdje->lde", table)
    diagonal = np.diagonal(between, axis1=1, axis2=2)
    row, total, others = between.sum(axis=2), between.sum(axis=(1, 2)), dimensions - 1
    rest, cross = (total[:, None] - 2 * row + diagonal) / others**2, (row - diagonal) / others
    defined = np.asarray((np.minimum(diagonal, rest) > _NOTHING).all(axis=0))
    middle = np.sqrt(np.where(defined, diagonal * rest, 1.0))
    phi, margin = cross / middle, distinct * middle - cross
    tests = [jackknife_estimate(margin[0, d], margin[1:, d]).p_up if defined[d] else 1.0 for d in range(dimensions)]
    results = []
    for d, (p, p_holm) in enumerate(zip(tests, holm(tests).tolist(), strict=True)):
        test = undefined("undefined: judges share nothing on it, or on the other dimensions")
        if defined[d]:
            test = jackknife_estimate(float(phi[0, d]), phi[1:, d], level)
        passed = bool(defined[d]) and p_holm <= alpha + 1e-9
        results.append(DistinctDimension(test.estimate, test.low, test.high, p, test.state, p_holm, passed))
    return Discriminant("ok", tuple(results))


def multitrait_multimethod(S: ArrayLike, cluster: Sequence[Any] | NDArray[Any]) -> Floats:
    """Compute the correlations between all judges' scores on all dimensions (Campbell and Fiske 1959)."""
    products, _, (judges, dimensions) = _products("multitrait_multimethod", S, cluster)
    covariance = products.sum(axis=0)
    spread = np.sqrt(np.diagonal(covariance))
    if not spread.size or (spread <= 1e-9).any():
        raise NotMeasurableError("correlations are undefined: a judge gives a dimension one score per cluster")
    return np.asarray((covariance / np.outer(spread, spread)).reshape(judges, dimensions, judges, dimensions))


def specific_contrast(
    cycle_delta: ArrayLike, cluster: Sequence[Any] | NDArray[Any], d: int, level: float = 0.95,
    consecutive: bool = False,
) -> Estimate:  # fmt: skip
    """Estimate the excess of two agents' difference on one dimension over their mean difference on the others."""
    source = "specific_contrast"
    deltas = scores_of(source, "cycle_delta", cycle_delta, 2)
    codes = cluster_codes(source, cluster, deltas.shape[0])
    checks.probability(source, "level", level)
    dimensions = deltas.shape[1]
    if checks.integer(source, "d", d, least=0) >= dimensions:
        checks.fail(source, "d", f"must be one of the dimensions 0..{dimensions - 1} (got {d})")
    complete = ~np.isnan(deltas).any(axis=1)
    if dimensions < 2 or not complete.any():
        return undefined("not measurable: needs two dimensions and a cycle that has both")
    deltas = deltas[complete]
    units = codes if complete.all() else np.unique(codes[complete], return_inverse=True)[1]
    if consecutive:
        units = estimates.neighbour_blocks(int(units.max()) + 1)[units]
    others = (deltas.sum(axis=1) - deltas[:, d]) / (dimensions - 1)
    return estimates.cluster_mean(deltas[:, d] - others, units, level)


def _products(source: str, S: ArrayLike, cluster: Sequence[Any] | NDArray[Any]) -> tuple[Floats, Ints, tuple[int, int]]:
    """Compute cross products [G, J*D, J*D] of each cluster's centred scores; also its records [G], and J and D."""
    scores = scores_of(source, "S", S, 3)
    records, judges, dimensions = scores.shape
    codes = cluster_codes(source, cluster, records)
    columns = scores.reshape(records, judges * dimensions)
    rows = np.flatnonzero(~np.isnan(columns).any(axis=1))
    order = rows[np.argsort(codes[rows], kind="stable")]
    _, starts, counts = np.unique(codes[order], return_index=True, return_counts=True)
    parts = [columns[order[start : start + count]] for start, count in zip(starts, counts, strict=True)]
    centred = [part - part.mean(axis=0) for part in parts]
    products = np.array([part.T @ part for part in centred]).reshape(counts.size, columns.shape[1], columns.shape[1])
    return products, counts.astype(np.int64), (judges, dimensions)
