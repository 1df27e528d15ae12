"""People as the anchor: what they would have said of a contrast, with judges used only to make the answer sharper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.metrology import checks, estimates
from assaymark.metrology.bootstrap import wilson
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import noncentral_tail
from assaymark.metrology.kappa import round_half_up
from assaymark.quantiles import t_quantile

Status = Literal["confirms", "contradicts", "undecided", "not tested"]

FEWEST_LABELLED = 20
"""Labelled cycles below which a contrast of people is not tested: it would hardly ever be decided."""

FEWEST_LABELLED_CLUSTERS = 5
"""Clusters that the labelled cycles must come from."""

ASSUMED_R = 0.6
"""Correlation of people's and judges' differences within a cluster that planning assumes before there are labels."""

LEAST_RESPONSE = 0.9
"""Share of the drawn records that must be graded: those that people passed over are not like the others."""

_NO_SPREAD = 1e-12
_SLACK = 1e-9  # of cutoffs, in favour of the record
_CONSTANT = "undefined: a rater is constant"


@dataclass(frozen=True, slots=True)
class AnchorContrast(estimates.Estimate):
    """The contrast of two agents that people would have given; see `anchor_contrast`.
    With too few labels ``state`` says so, the estimates are None and only the counts are given."""

    cycles: int
    labelled: int
    clusters: int
    labelled_clusters: int
    lam: float | None = None
    human_only: estimates.Estimate | None = None
    judge_only: estimates.Estimate | None = None
    rectifier: float | None = None
    saving: float | None = None


class Rate(NamedTuple):
    """``hits`` of ``n`` with Wilson's interval; no ends where n is 0."""

    hits: int
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class JudgeAgainstHumans:
    """One judge beside the mean human grade of the same records; see `judge_against_humans`."""

    kappa: estimates.Estimate
    icc_a1: estimates.Estimate
    bias: estimates.Estimate
    tpr: Rate
    tnr: Rate
    bias_by_family: Mapping[Any, estimates.Estimate] | None


def anchor_contrast(
    F: ArrayLike, H: ArrayLike, cluster: Sequence[Any] | NDArray[Any], a: int, b: int, *, pi: ArrayLike | None = None,
    lam: float | None = None, level: float = 0.95, consecutive: bool = False,
) -> AnchorContrast:  # fmt: skip
    """Contrast of two agents that human graders would have given, from grades of a random sample of the cycles
    (Angelopoulos 2023)."""
    source = "anchor_contrast"
    judges, people = estimates.scores_of(source, "F", F, 2), estimates.scores_of(source, "H", H, 2)
    if judges.shape != people.shape:
        checks.fail(source, "H", f"must have the shape of F {judges.shape} (got {people.shape})")
    n, agents = judges.shape
    checks.two_agents(source, a, b, agents)
    pair = [int(a), int(b)]
    weight = np.ones(n)
    if pi is not None:
        chance = checks.finite(source, "pi", pi)
        if chance.shape != (n,) or (chance <= 0).any() or (chance > 1).any():
            checks.fail(source, "pi", f"must be one probability above 0 for each of the {n} cycles")
        weight = 1 / chance
    if lam is not None:
        checks.probability(source, "lam", lam, inclusive=True)
    checks.probability(source, "level", level)
    codes = estimates.cluster_codes(source, cluster, n)
    both = ~np.isnan(judges[:, pair]).any(axis=1)
    judges, people, weight = judges[both], people[both], weight[both]
    codes = np.unique(codes[both], return_inverse=True)[1].astype(np.int64)
    clusters = int(codes.max(initial=-1)) + 1
    cells = ~np.isnan(judges) & ~np.isnan(people)
    shown = cells[:, pair]
    # Clusters with labels of the agent that has them in fewer.
    labelled, of_clusters = (int(shown.sum(axis=0).min()),
                             min(np.unique(codes[column]).size for column in shown.T) if clusters else 0)  # fmt: skip
    counts = codes.size, labelled, clusters, of_clusters
    few = f"{labelled} cycles in {of_clusters} clusters, needs {FEWEST_LABELLED} in {FEWEST_LABELLED_CLUSTERS}"
    enough = labelled >= FEWEST_LABELLED and of_clusters >= FEWEST_LABELLED_CLUSTERS
    if enough and consecutive:
        codes = estimates.neighbour_blocks(clusters)[codes]
        clusters = int(codes.max()) + 1
        of_clusters = min(np.unique(codes[column]).size for column in shown.T)
        few, enough = f"all {labelled} cycles in one block of neighbours", of_clusters > 1
    if not enough:
        return AnchorContrast(*estimates.undefined(f"too few labels: {few}").parts(), *counts)
    shares = np.where(shown, weight[:, None], 0.0)
    judged, graded = judges[:, pair], np.where(shown, people[:, pair], 0.0)
    sums = np.concatenate([np.ones((codes.size, 1)), judged, shares, shares * graded, shares * judged], axis=1)
    total = estimates.leave_out(estimates.group_sums(sums, codes, clusters))
    gap = (total[:, 1] - total[:, 2]) / total[:, 0]  # of judges on all cycles; then of people and judges on labelled
    human, sampled = ((total[:, k] / total[:, 3:5]) @ [1.0, -1.0] for k in (slice(5, 7), slice(7, 9)))
    slope = np.array([lam]) if lam is not None else _slopes(judges, people, weight, cells, codes, clusters)
    theta = human + slope * (gap - sampled)
    found, alone = (estimates.jackknife_estimate(x[0], x[1:], level, df=of_clusters - 1) for x in (theta, human))
    saving = 1 - (found.se / alone.se) ** 2 if found.se is not None and alone.state == "ok" and alone.se else None
    judged_alone = estimates.jackknife_estimate(gap[0], gap[1:], level)
    return AnchorContrast(*found.parts(), *counts, float(slope[0]), alone, judged_alone, float(human[0] - sampled[0]),
                          saving)  # fmt: skip


def anchor_status(
    anchor: estimates.Estimate | Mapping[str, Any], judge_estimate: float, p_holm: float, alpha: float = 0.05
) -> Status:
    """What people say of an order that the judges see."""
    checks.probability("anchor_status", "p_holm", p_holm, inclusive=True)
    checks.probability("anchor_status", "alpha", alpha)
    if not judge_estimate > 0:
        checks.fail("anchor_status", "judge_estimate", f"must be above 0: turn the contrast (got {judge_estimate!r})")
    record = anchor if isinstance(anchor, Mapping) else {"estimate": anchor.estimate, "high": anchor.high}
    estimate, high = record["estimate"], record["high"]
    if estimate is None:
        return "not tested"
    if p_holm <= alpha / 2 + _SLACK and estimate > 0:
        return "confirms"
    # Half of a positive contrast is above 0, so that this covers limits below 0 as well.
    if high is not None and high < judge_estimate / 2 - _SLACK:
        return "contradicts"
    return "undecided"


def anchor_response(drawn: int, graded: int) -> str:
    """Whether enough of the drawn records were graded for the labels to be a random sample."""
    checks.whole("anchor_response", "drawn", drawn, least=0)
    if checks.whole("anchor_response", "graded", graded, least=0) > drawn:
        checks.fail("anchor_response", "graded", f"must not exceed drawn = {drawn} (got {graded})")
    if drawn and graded >= LEAST_RESPONSE * drawn - _SLACK:
        return "ok"
    return f"not tested: {graded} of {drawn} drawn records were graded, needs {LEAST_RESPONSE:.0%}"


def anchor_needed(
    effect: float, sd_human: float, r: float, cycles: int, clusters: int, sd_cluster: float = 0.0,
    alpha: float = 0.05, power: float = 0.8,
) -> int | None:  # fmt: skip
    """Labelled cycles that people need to confirm a contrast of a given size (Angelopoulos 2023)."""
    source = "anchor_needed"
    for name, value in (("effect", effect), ("sd_human", sd_human), ("sd_cluster", sd_cluster)):
        if not (math.isfinite(value) and value >= 0) or (name == "effect" and value == 0):
            least = "above" if name == "effect" else "at least"
            checks.fail(source, name, f"must be a finite number {least} 0 (got {value!r})")
    if not -1 <= r <= 1:
        checks.fail(source, "r", f"must be a correlation (got {r!r})")
    most = checks.whole(source, "cycles", cycles, least=1)
    groups = checks.whole(source, "clusters", clusters, least=1)
    checks.probability(source, "alpha", alpha)
    checks.probability(source, "power", power)

    def reaches(n: int) -> bool:
        df = min(n, groups) - 1
        variance = sd_cluster**2 / groups + sd_human**2 * ((1 - r * r) / n + r * r / most)
        if variance == 0:
            return True
        return noncentral_tail(t_quantile(1 - alpha / 2, df), df, effect / math.sqrt(variance)) >= power

    if min(most, groups) < 2 or not reaches(most):
        return None
    below, found = 1, most  # more labels never lose power
    while found - below > 1:
        middle = (below + found) // 2
        below, found = (below, middle) if reaches(middle) else (middle, found)
    return found


def judge_against_humans(
    judge: ArrayLike, human: ArrayLike, cluster: Sequence[Any] | NDArray[Any],
    agent_family: Sequence[Any] | NDArray[Any] | None = None, pass_mark: float = 3.5, level: float = 0.95,
    consecutive: bool = False,
) -> JudgeAgainstHumans:  # fmt: skip
    """How one judge compares with people on the records that both graded (McGraw 1996, Cohen 1968)."""
    source = "judge_against_humans"
    x, y = checks.finite(source, "judge", judge), checks.finite(source, "human", human)
    if x.size != y.size:
        checks.fail(source, "human", f"must be as long as judge (got {y.size} and {x.size})")
    codes = estimates.cluster_codes(source, cluster, x.size, consecutive)
    checks.probability(source, "level", level)
    if not math.isfinite(pass_mark):
        checks.fail(source, "pass_mark", f"must be finite (got {pass_mark!r})")
    passes, good = x >= pass_mark - _SLACK, y >= pass_mark - _SLACK

    def bias(rows: Any) -> estimates.Estimate:
        return estimates.cluster_mean(
            x[rows] - y[rows], np.unique(codes[rows], return_inverse=True)[1].astype(np.int64), level
        )

    def rate(hits: Bools) -> Rate:
        found = int(hits.sum())
        return Rate(found, hits.size, *(wilson(found, hits.size, level=level) if hits.size else (None, None)))

    by_family = None
    if agent_family is not None:
        names, family = checks.labels(source, "agent_family", agent_family, x.size)
        by_family = {name: bias(family == k) for k, name in enumerate(names)}
    kappa = _agreement(np.asarray(round_half_up(x)), np.asarray(round_half_up(y)), codes, False, level)
    return JudgeAgainstHumans(kappa, _agreement(x, y, codes, True, level), bias(slice(None)), rate(passes[good]),
                              rate(~passes[~good]), by_family)  # fmt: skip


def _slopes(judges: Floats, people: Floats, weight: Floats, cells: Bools, codes: Ints, clusters: int) -> Floats:
    """Lambda on all clusters and without each [1 + G], from scores [N, K] in labelled cells."""
    size = cells.sum(axis=1, keepdims=True)
    shares = np.where(cells, weight[:, None], 0.0)

    def slopes(by_cycle: bool) -> Floats:
        x, y = (np.where(cells, scores, 0.0) for scores in (judges, people))
        for values in (x, y):
            values -= values.sum(axis=1, keepdims=True) / np.maximum(size, 1) if by_cycle else values.sum() / size.sum()
        parts = np.stack([cells, shares, shares * x, shares * y, shares * x * x, shares * x * y])
        sums = estimates.leave_out(np.stack([estimates.group_sums(part, codes, clusters) for part in parts], axis=1))
        n, w, sx, sy, xx, xy = sums.transpose(1, 0, 2)
        w = np.where(n > 0.5, w, np.inf)  # an agent whose labels are all left out has no mean
        spread, shared = (xx - sx * sx / w).sum(axis=1), (xy - sx * sy / w).sum(axis=1)
        flat = spread <= _NO_SPREAD
        return np.where(flat, 0.0, np.clip(shared / np.where(flat, 1.0, spread), 0.0, 1.0))

    # Where a labelled cycle has a single agent, cycle means would take its whole score away.
    single = estimates.leave_out(estimates.group_sums((size == 1).astype(np.float64), codes, clusters))[:, 0] > 0.5
    found = slopes(by_cycle=not single[0])
    return np.where(single == single[0], found, slopes(by_cycle=True)) if (single != single[0]).any() else found


def _agreement(x: Floats, y: Floats, codes: Ints, of_sample: bool, level: float) -> estimates.Estimate:
    """Quadratic-weighted kappa of two raters, or (``of_sample``) their ICC(A,1), from moments of each cluster."""
    middle = (x.mean() + y.mean()) / 2  # numbers around 0 keep their digits when squared
    x, y = x - middle, y - middle
    parts = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1)
    n, sx, sy, xx, yy, xy = estimates.leave_out(estimates.group_sums(parts, codes, int(codes.max()) + 1)).T
    constant = np.minimum(xx - sx * sx / n, yy - sy * sy / n) <= _NO_SPREAD * np.maximum(xx, yy)
    if constant[0]:
        return estimates.undefined(_CONSTANT)
    if n.size == 1:
        return estimates.undefined(estimates.ONE_CLUSTER)
    if constant.any():
        return estimates.undefined(f"{_CONSTANT} (without one of the clusters)")
    apart = xx + yy - 2 * sx * sy / n - of_sample * (xx + yy - 2 * xy) / n
    values = 2 * (xy - sx * sy / n) / apart
    return estimates.jackknife_estimate(float(values[0]), values[1:], level)
