"""Human labels as the reference: contrasts of people, their agreement, and the comparison of each judge with them.

Judges only reduce the variance of the human estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assaymark.metrology import checks, estimates
from assaymark.metrology.bootstrap import KappaSums
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.contrasts import noncentral_tail
from assaymark.metrology.estimates import Estimate, Maker, group_sums, jackknife_estimate, number
from assaymark.metrology.kappa import contingency, settled_half_up
from assaymark.metrology.measure_panel import categories_of
from assaymark.metrology.orders import OrderPlan
from assaymark.metrology.reliability import random_judges
from assaymark.protocol import SCALE, Coefficient, Scale, categories_on
from assaymark.quantiles import t_quantile, wilson_ends
from assaymark.records import AGGREGATE, JSON, Measurement

Status = Literal["confirms", "contradicts", "undecided", "not tested"]

FEWEST_LABELLED = 20
"""Minimum number of labelled cycles for a test of a human contrast; fewer would have almost no power."""

FEWEST_LABELLED_CLUSTERS = 5
"""Minimum number of clusters with labelled cycles."""

ASSUMED_R = 0.6
"""Correlation of people's and judges' differences within a cluster that planning assumes without labels."""

LEAST_RESPONSE = 0.9
"""Minimum share of drawn records that must be graded, because skipped records differ from the others."""

_NO_SPREAD = 1e-12
_SLACK = 1e-9  # tolerance of cutoffs
_CONSTANT = "undefined: a rater is constant"


@dataclass(frozen=True, slots=True)
class AnchorContrast(estimates.Estimate):
    """The estimated contrast of two agents by human graders; see `anchor_contrast`.
    With too few labels the estimates are None with the reason in ``state``, and only the counts are given."""

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
    """``hits`` out of ``n`` with Wilson's interval; no ends if n is 0."""

    hits: int
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class JudgeAgainstHumans:
    """The comparison of one judge with the mean human grade of the same records; see `judge_against_humans`."""

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
    """Estimate the contrast of two agents by human graders, from judges on all cycles and human grades of a random
    sample of them (Angelopoulos 2023)."""
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
    # The number of clusters with labels of the agent that has labels in fewer clusters.
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
    gap = (total[:, 1] - total[:, 2]) / total[:, 0]  # judges on all cycles; people and judges on labelled cycles
    human, sampled = ((total[:, k] / total[:, 3:5]) @ [1.0, -1.0] for k in (slice(5, 7), slice(7, 9)))
    slope = np.array([lam]) if lam is not None else _slopes(judges, people, weight, cells, codes, clusters)
    theta = human + slope * (gap - sampled)
    anchor, alone = (estimates.jackknife_estimate(x[0], x[1:], level, df=of_clusters - 1) for x in (theta, human))
    saving = 1 - (anchor.se / alone.se) ** 2 if anchor.se is not None and alone.state == "ok" and alone.se else None
    judged_alone = estimates.jackknife_estimate(gap[0], gap[1:], level)
    return AnchorContrast(*anchor.parts(), *counts, float(slope[0]), alone, judged_alone, float(human[0] - sampled[0]),
                          saving)  # fmt: skip


def anchor_status(
    anchor: estimates.Estimate | Mapping[str, Any], judge_estimate: float, p_holm: float, alpha: float = 0.05
) -> Status:
    """Classify the human result on a ranking by the judges: confirms, contradicts, undecided or not tested."""
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
    """Return "ok" if enough of the drawn records were graded to count as a random sample, else the reason."""
    checks.integer("anchor_response", "drawn", drawn, least=0)
    if checks.integer("anchor_response", "graded", graded, least=0) > drawn:
        checks.fail("anchor_response", "graded", f"must not exceed drawn = {drawn} (got {graded})")
    if drawn and graded >= LEAST_RESPONSE * drawn - _SLACK:
        return "ok"
    return f"not tested: {graded} of {drawn} drawn records were graded, needs {LEAST_RESPONSE:.0%}"


def anchor_needed(
    effect: float, sd_human: float, r: float, cycles: int, clusters: int, sd_cluster: float = 0.0,
    alpha: float = 0.05, power: float = 0.8,
) -> int | None:  # fmt: skip
    """Compute the number of labelled cycles needed to confirm a contrast of a given size (Angelopoulos 2023)."""
    source = "anchor_needed"
    for name, value in (("effect", effect), ("sd_human", sd_human), ("sd_cluster", sd_cluster)):
        if not (math.isfinite(value) and value >= 0) or (name == "effect" and value == 0):
            least = "above" if name == "effect" else "at least"
            checks.fail(source, name, f"must be a finite number {least} 0 (got {value!r})")
    if not -1 <= r <= 1:
        checks.fail(source, "r", f"must be a correlation (got {r!r})")
    most = checks.integer(source, "cycles", cycles, least=1)
    groups = checks.integer(source, "clusters", clusters, least=1)
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
    below, above = 1, most  # power never decreases with more labels
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if reaches(middle) else (middle, above)
    return above


def judge_against_humans(
    judge: ArrayLike, human: ArrayLike, cluster: Sequence[Any] | NDArray[Any],
    agent_family: Sequence[Any] | NDArray[Any] | None = None, pass_mark: float = 3.5, level: float = 0.95,
    consecutive: bool = False,
) -> JudgeAgainstHumans:  # fmt: skip
    """Compare one judge with people on the records graded by both (McGraw 1996, Cohen 1968)."""
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
        right = int(hits.sum())
        return Rate(right, hits.size, *(wilson_ends(right / hits.size, hits.size, level) if hits.size else (None,) * 2))

    by_family = None
    if agent_family is not None:
        names, family = checks.labels(source, "agent_family", agent_family, x.size)
        by_family = {name: bias(family == k) for k, name in enumerate(names)}
    kappa = _pair_agreement(settled_half_up(x), settled_half_up(y), codes, "kappa", level)
    return JudgeAgainstHumans(kappa, _pair_agreement(x, y, codes, "icc", level), bias(slice(None)), rate(passes[good]),
                              rate(~passes[~good]), by_family)  # fmt: skip


def _slopes(judges: Floats, people: Floats, weight: Floats, cells: Bools, codes: Ints, clusters: int) -> Floats:
    """Compute lambda on all clusters and without each [1 + G], from scores [N, K] in labelled cells."""
    size = cells.sum(axis=1, keepdims=True)
    shares = np.where(cells, weight[:, None], 0.0)

    def slopes(by_cycle: bool) -> Floats:
        x, y = (np.where(cells, scores, 0.0) for scores in (judges, people))
        for values in (x, y):
            values -= values.sum(axis=1, keepdims=True) / np.maximum(size, 1) if by_cycle else values.sum() / size.sum()
        parts = np.stack([cells, shares, shares * x, shares * y, shares * x * x, shares * x * y])
        sums = estimates.leave_out(np.stack([estimates.group_sums(part, codes, clusters) for part in parts], axis=1))
        n, w, sx, sy, xx, xy = sums.transpose(1, 0, 2)
        w = np.where(n > 0.5, w, np.inf)  # an agent without remaining labels has no mean
        spread, shared = (xx - sx * sx / w).sum(axis=1), (xy - sx * sy / w).sum(axis=1)
        flat = spread <= _NO_SPREAD
        return np.where(flat, 0.0, np.clip(shared / np.where(flat, 1.0, spread), 0.0, 1.0))

    # If a labelled cycle has a single agent, subtracting the cycle mean would remove its whole score.
    single = estimates.leave_out(estimates.group_sums((size == 1).astype(np.float64), codes, clusters))[:, 0] > 0.5
    fitted = slopes(by_cycle=not single[0])
    return np.where(single == single[0], fitted, slopes(by_cycle=True)) if (single != single[0]).any() else fitted


def _pair_agreement(x: Floats, y: Floats, codes: Ints, form: Coefficient, level: float) -> estimates.Estimate:
    """Compute quadratic-weighted kappa of two raters, or their intraclass correlation ICC(A,1), with a jackknife."""
    middle = (x.mean() + y.mean()) / 2  # values around 0 keep their precision when squared
    sums = KappaSums.of(np.stack([x, y], axis=1)[:, :, None], codes, int(codes.max()) + 1, [(0, 1)], middle, form)
    left = estimates.leave_out(sums.columns[:, 0].T).T
    n, sx, sy, xx, yy, _ = left
    constant = np.minimum(xx - sx * sx / n, yy - sy * sy / n) <= _NO_SPREAD * np.maximum(xx, yy)
    if constant[0]:
        return estimates.undefined(_CONSTANT)
    if n.size == 1:
        return estimates.undefined(estimates.ONE_CLUSTER)
    if constant.any():
        return estimates.undefined(f"{_CONSTANT} (without one of the clusters)")
    values = sums.kappas(left[:, None])[0, 0]
    return estimates.jackknife_estimate(float(values[0]), values[1:], level)


# Human grades compared with the judges of a run.

NOT_DRAWN: Final = "not tested: the labels are not a random sample of these records"
"""The state of labels that are not a random sample; the reason is appended."""

FEWEST_DOUBLE: Final = 20
"""Minimum number of records graded by two people for measuring their agreement."""

FEWEST_GRADERS: Final = 5
"""Minimum number of people for generalising a confirmation to other people."""

Grades = Mapping[str, Mapping[str, float]]
"""The human grades of one record: by grader, then by dimension, or by ``aggregate`` for an overall grade."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Human grades and their sampling design.
    ``grades`` are by (cycle, agent), ``pi`` has each cycle's inclusion probability, ``units`` the drawn cycles (None if
    a table only gives probabilities), ``refused`` the reason if the labels are not a random sample, and ``design``
    states who fixed the design and when."""

    grades: Mapping[tuple[str, str], Grades]
    pi: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    units: frozenset[str] | None = None
    refused: str = ""
    design: str = ""


class _People:
    """Labels aligned with the judges. ``rows`` has the index of each drawn cycle that has a grade; ``given``
    [L, K, S, R] grades by labelled cycle, agent, scale and grader, ``mean`` [L, K, S] their means, ``panel`` the
    judges' scores there, NaN if missing; ``cluster`` [L] clusters, ``pi`` [C] inclusion probabilities."""

    def __init__(
        self, comparisons: Comparisons, labels: Labels, share: Floats, scale: Scale, level: float, cuts: Sequence[float]
    ) -> None:
        self.found, self.labels, self.level, self.cuts, self.scale = comparisons, labels, level, cuts, scale
        self.categories = len(cuts) + 1 if cuts else categories_on(scale)
        graded, names = {cycle for cycle, _ in labels.grades}, comparisons.names
        units = None if labels.refused else labels.units
        self.rows = {name: k for k, name in enumerate(comparisons.cycles)
                     if name in graded and (units is None or name in units)}  # fmt: skip
        place, agent = ({name: k for k, name in enumerate(of)} for of in (self.rows, comparisons.agents))
        used = {key: by_grader for key, by_grader in labels.grades.items() if key[0] in place and key[1] in agent}
        self.graders = tuple(sorted({name for ratings in used.values() for name in ratings}))
        self.given = np.full((len(place), len(agent), len(names), len(self.graders)), np.nan)
        for (cycle, name), grades in used.items():
            for r, grader in enumerate(self.graders):
                given = grades.get(grader, {})
                parts = np.array([given.get(name, np.nan) for name in names[1:]])
                whole = given.get(AGGREGATE, float(parts @ share) if parts.size else np.nan)
                self.given[place[cycle], agent[name], :, r] = whole, *parts
                if len(parts) == 1 and math.isnan(parts[0]):  # the one criterion is the overall score
                    self.given[place[cycle], agent[name], 1, r] = whole
        there = ~np.isnan(self.given)
        size = there.sum(axis=3)
        self.mean: Floats = np.where(there, self.given, 0).sum(axis=3) / np.where(size, size, np.nan)
        places = list(self.rows.values())
        self.panel, self.cluster = comparisons.panel[places], comparisons.cluster[places]
        self.pi = np.array([labels.pi.get(name, 1.0) for name in comparisons.cycles])

    def rated(self, scores: Floats) -> Ints:
        """Convert scores to categories of kappa: bands that start at ``cuts`` or points of the scale, both from 1, or
        whole numbers on a scale of too many points."""
        if not self.cuts:
            return categories_of(scores, self.scale) if self.categories else settled_half_up(scores).astype(np.int64)
        return np.searchsorted(np.asarray(self.cuts), settled_half_up(scores), side="right") + 1

    def all_cycles(self, s: int) -> Floats:
        """Return mean human grades [C, K] on one scale, NaN outside the sample."""
        values = np.full(self.found.panel.shape[:2], np.nan)
        values[list(self.rows.values())] = self.mean[:, :, s]
        return values

    def graded(self, s: int) -> tuple[int, int, list[str]]:
        """Count drawn and fully graded cycles on one scale; also return the drawn cycles that are not fully graded."""
        there, whole = ~np.isnan(self.found.panel[..., s]), ~np.isnan(self.all_cycles(s))
        if (units := self.labels.units) is None:
            chance = np.array([self.labels.pi.get(name, 0.0) for name in self.found.cycles])
            return max(int(whole.sum()), round(float(chance @ there.sum(axis=1)))), int(whole.sum()), []
        done = {name for k, name in enumerate(self.found.cycles) if name in self.rows and not (there & ~whole)[k].any()}
        return len(units), len(done & units), sorted(units - done)


def people_measurements(
    table: Comparisons, labels: Labels, contrasts: Iterable[Measurement], make: Maker, weights: Floats, plan: OrderPlan,
    scale: Scale = SCALE, pass_mark: float = 3.5, cuts: Sequence[float] = (),
) -> Iterator[Measurement]:  # fmt: skip
    """Measure human contrasts for the rankings in ``contrasts``, human agreement, and each judge against people.

    See ``docs/metrics.md`` for ``human.sample``, ``human.agreement`` and ``human.labels`` of each scale,
    ``human.contrast`` of each pair on it if the labels are a random sample, and ``human.judge`` of each judge. ``cuts``
    are the lower bounds of the bands above the lowest, if agreement is on bands.
    """
    people, level = _People(table, labels, weights, scale, plan.level, cuts), plan.level
    states, unit_of = dict[int, str](), "records" if labels.units is None else "cycles"
    rows, outside = list(people.rows.values()), sorted({cycle for cycle, _ in labels.grades} - set(people.rows))
    families = np.array([(table.agent_families or {}).get(name, name) for name in table.agents])
    cluster = np.repeat(people.cluster[:, None], len(families), axis=1)
    for s, name in enumerate(table.names):
        drawn, graded, lacking = people.graded(s)
        human, labelled = people.mean[:, :, s], {"dimension": name}
        mask = ~np.isnan(human)
        enough = anchor_response(drawn, min(graded, drawn))
        states[s] = (labels.refused and f"{NOT_DRAWN} ({labels.refused})") or ("" if enough == "ok" else enough)
        detail: dict[str, Any] = {
            "graders": list(people.graders), "drawn": drawn, "graded": graded, "ungraded": lacking,
            "records": int(mask.sum()), "outside": outside, "design": labels.design,
        }  # fmt: skip
        share, method = None if states[s] else graded / drawn, f"share of the drawn {unit_of} that people graded"
        count = drawn, f"drawn {unit_of}"
        yield number(make, "human.sample", labelled, share, count, method, states[s] or "ok", detail)
        agreed = _agreement(people, s, make)
        yield agreed
        if mask.any():  # the labelled records themselves, which a certificate contains
            judged, grades = (
                [[*map(estimates.defined, row)] for row in values.tolist()] for values in (people.panel[:, :, s], human)
            )
            detail = {"agents": list(table.agents), "of": [table.clusters[g] for g in people.cluster.tolist()],
                      "pi": people.pi[rows].tolist(), "judged": judged, "people": grades}  # fmt: skip
            yield number(make, "human.labels", labelled, float(mask.sum()), (len(rows), "labelled cycles"),
                         "records that people graded", "ok", detail)  # fmt: skip
        # Each judge against the mean human grade of the same records, with the agreement of two people.
        for j, judge in enumerate(table.judges):
            cells = table.cells[rows][:, :, j, s]
            there: Bools = mask & ~np.isnan(cells)
            if (n := int(there.sum())) < 2:
                continue
            scores, mean, codes = cells[there], human[there], cluster[there]
            fit = judge_against_humans(
                scores, mean, codes, np.broadcast_to(families, there.shape)[there], pass_mark, level, table.consecutive
            )
            if cuts:
                rated = people.rated(scores), people.rated(mean)
                on = judge_against_humans(*rated, codes, None, pass_mark, level, table.consecutive)
                fit = replace(fit, kappa=on.kappa)
            detail = {
                "icc": _stated(fit.icc_a1), "bias": _stated(fit.bias), "tpr": list(fit.tpr), "tnr": list(fit.tnr),
                "bias_by_family": {maker: _stated(bias) for maker, bias in (fit.bias_by_family or {}).items()},
                "ceiling": [agreed.value, agreed.detail.get("icc")], "pass": pass_mark, "drawn": not labels.refused,
            }  # fmt: skip
            yield number(make, "human.judge", labelled | {"judge": judge}, fit.kappa, (n, "records"),
                         "quadratic-weighted kappa of the judge with the mean human grade"
                         f"{' on bands' if cuts else ''}; jackknife over clusters", "ok", detail, None,
                         people.level)  # fmt: skip
    place = {name: s for s, name in enumerate(table.names)}
    for item in contrasts:
        s = place[item.labels["dimension"]]
        if not states[s] and item.value is not None and item.value > 0:
            yield _contrast(people, s, make, item, plan)


def _contrast(people: _People, s: int, make: Maker, item: Measurement, plan: OrderPlan) -> Measurement:
    """Measure the human contrast of one ranking, in the judges' direction."""
    comparisons = people.found
    pair = [comparisons.agents.index(item.labels[end]) for end in ("high", "low")]
    scores, human = comparisons.panel[..., s], people.all_cycles(s)
    gap = anchor_contrast(scores, human, comparisons.cluster, *pair, pi=people.pi, level=people.level,
                          consecutive=comparisons.consecutive)  # fmt: skip
    both: Bools = ~np.isnan(scores[:, pair[0]] + scores[:, pair[1]])
    copied = ("se", "df", "lam", "rectifier", "saving", "cycles", "clusters", "labelled_clusters")
    only, judges = gap.human_only, gap.judge_only
    detail: dict[str, Any] = {name: getattr(gap, name) for name in copied} | {"p": gap.p_up}
    detail["alone"] = None if only is None else [only.estimate, only.low, only.high]
    detail["judges"] = None if judges is None else judges.estimate
    if gap.judge_only is not None and gap.estimate is not None:
        gaps = human[both][:, pair] @ [1.0, -1.0]
        judged = scores[both][:, pair] @ [1.0, -1.0]
        there = ~np.isnan(gaps)
        sd, flat = float(gaps[there].std(ddof=1)), min(float(x[there].std()) for x in (gaps, judged)) <= 0
        r = 0.0 if flat else float(np.clip(np.corrcoef(gaps[there], judged[there])[0, 1], -1, 1))
        spread = DifferenceSpread.of(judged, comparisons.cluster[both], (sd, r))
        needed = needed_labels(gap.judge_only.estimate or 0.0, spread, plan.inference.alpha, plan.power)
        detail |= {"sd": sd, "r": r, "needed": needed}
        # Each person's difference in each cluster [R, G], if there are enough people to generalise to others.
        each = people.given[:, pair[0], s] - people.given[:, pair[1], s]
        each = each[:, ~np.isnan(each).all(axis=0)]
        if each.shape[1] >= FEWEST_GRADERS:
            weight = np.where(np.isnan(each), 0.0, 1 / people.pi[list(people.rows.values())][:, None])
            totals, weights = (
                group_sums(x, people.cluster, len(comparisons.clusters)) for x in (weight * np.nan_to_num(each), weight)
            )
            apart = np.asarray(totals / np.where(weights > 0, weights, np.nan)).T
            many = random_judges(apart, people.level, comparisons.consecutive)
            detail["p_graders"] = many.p if (many.estimate or 0) > 0 else 1.0
    rest = both.copy()
    rest[list(people.rows.values())] = False
    detail["rest"] = {
        comparisons.clusters[g]: [int(here.sum()), *scores[here][:, pair].sum(axis=0).tolist()]
        for g in np.unique(comparisons.cluster[rest]).tolist()
        if (here := rest & (comparisons.cluster == g)).any()
    }
    method = "mean human grade, made sharper by the judges on all cycles; jackknife over clusters (prediction-powered)"
    return number(make, "human.contrast", item.labels, gap, (gap.labelled, "labelled cycles"), method, "ok", detail,
                  None, plan.level, plan.unit)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DifferenceSpread:
    """Planning inputs for a difference of two agents: the standard deviation of people's differences between cycles
    (``sd``) and between clusters (``between``), their correlation ``r`` with the judges', and the sample sizes."""

    sd: float
    cycles: int
    clusters: int
    r: float = ASSUMED_R
    between: float = 0.0
    assumed: bool = True

    @classmethod
    def of(cls, judged: Floats, cluster: Ints, people: tuple[float, float] | None = None) -> DifferenceSpread:
        """Estimate from the judges' differences [N]; ``people`` are ``sd`` and ``r`` of human grades, by default the
        judges' deviation and `ASSUMED_R`."""
        groups, codes = np.unique(cluster, return_inverse=True)
        between = 0.0
        if judged.size > groups.size > 1:  # the variance between clusters, from the judges on all cycles
            size = np.bincount(codes)
            means = np.bincount(codes, judged) / size
            inside = float(((judged - means[codes]) ** 2).sum() / (judged.size - groups.size))
            between = math.sqrt(max(0.0, float(means.var(ddof=1)) - inside * float((1 / size).mean())))
        sd, r = people or (float(judged.std(ddof=1)) if judged.size > 1 else 0.0, ASSUMED_R)
        return cls(sd, judged.size, groups.size, r, between, people is None)


def needed_labels(effect: float, spread: DifferenceSpread, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Compute the labelled cycles needed to confirm ``effect``, at least `FEWEST_LABELLED`; None if impossible."""
    if effect <= 0 or spread.cycles < FEWEST_LABELLED or spread.clusters < FEWEST_LABELLED_CLUSTERS:
        return None
    inside = math.sqrt(max(0.0, spread.sd**2 - spread.between**2))
    cycles = anchor_needed(effect, inside, spread.r, spread.cycles, spread.clusters, spread.between, alpha, power)
    return None if cycles is None else max(cycles, FEWEST_LABELLED)


def most_needed(
    comparisons: Comparisons, scale: int, pairs: Iterable[tuple[str, str]], effect: float,
    measurements: Iterable[Measurement], alpha: float = 0.05, power: float = 0.8,
) -> tuple[int | None, DifferenceSpread | None]:  # fmt: skip
    """Return the largest number of labelled cycles that any of the pairs needs for ``effect``, with its spread."""
    measured = {
        frozenset((measurement.labels["high"], measurement.labels["low"])): (
            float(measurement.detail["sd"]),
            float(measurement.detail["r"]),
        )
        for measurement in measurements
        if measurement.name == "human.contrast"
        and measurement.value is not None
        and measurement.labels["dimension"] == comparisons.names[scale]
    }
    worst: tuple[int | None, DifferenceSpread | None] = (0, None)
    for pair in pairs:
        judged = comparisons.panel[:, [comparisons.agents.index(name) for name in pair], scale] @ [1.0, -1.0]
        if not (both := ~np.isnan(judged)).any():
            continue
        spread = DifferenceSpread.of(judged[both], comparisons.cluster[both], measured.get(frozenset(pair)))
        needed = needed_labels(effect, spread, alpha, power)
        if worst[1] is None or (worst[0] is not None and (needed is None or needed > worst[0])):
            worst = needed, spread
    return worst if worst[1] is not None else (None, None)


def _agreement(people: _People, s: int, make: Maker) -> Measurement:
    """Measure the agreement of people on the records graded by at least two of them, by the coefficient of
    `judge_against_humans`, whichever the plan has for judges."""
    codes = np.repeat(people.cluster, people.given.shape[1])
    values = people.given[:, :, s].reshape(codes.size, len(people.graders))
    two = (~np.isnan(values)).sum(axis=1) > 1
    values, codes, n = values[two], codes[two], int(two.sum())
    labels, count = {"dimension": people.found.names[s]}, (n, "records graded by two people")
    method = f"mean pairwise quadratic-weighted kappa of people{' on bands' if people.cuts else ''}"
    if n < FEWEST_DOUBLE:
        reason = f"not measurable: {n} records were graded by two people, needs {FEWEST_DOUBLE}"
        return number(make, "human.agreement", labels, None, count, method, state=reason)
    graded = dict[str, tuple[Floats, Ints]]()  # the grades of each pair of people [n, 2], and their clusters
    for a, b in combinations(range(len(people.graders)), 2):
        if (both := ~np.isnan(values[:, [a, b]]).any(axis=1)).any():
            graded[f"{people.graders[a]}|{people.graders[b]}"] = values[both][:, [a, b]], codes[both]
    if min(len(rows) for rows, _ in graded.values()) < FEWEST_DOUBLE:  # too few per pair: people are interchangeable
        rows = np.concatenate([part for rows, _ in graded.values() for part in (rows, rows[:, ::-1])])
        graded = {"people|people": (rows, np.concatenate([np.tile(places, 2) for _, places in graded.values()]))}
        method += ", over both orders of all pairs"
    # Each pair on all clusters, then without each [1 + G]; a pair without records is left out of the mean.
    form = "tables" if people.categories else "sums"
    detail: dict[str, Any] = {"pairs": {}, "coefficient": "kappa", form: {}, "icc": None}
    by_pair, sizes, correlations, groups = [], [], [], np.unique(codes)
    for name, (rows, places) in graded.items():
        at = np.searchsorted(groups, places)
        raw = KappaSums.of(rows[:, :, None], at, groups.size, [(0, 1)], 0.0, "icc")
        rated = people.rated(rows)
        sums = KappaSums.of(rated[:, :, None], at, groups.size, [(0, 1)])
        if people.categories:
            detail[form][name] = contingency(rated[:, 0], rated[:, 1], people.categories).tolist()
        else:
            (detail[form][name],) = sums.of_pairs(0)
        left = estimates.leave_out(sums.columns[:, 0].T).T
        by_pair.append(sums.kappas(left[:, None])[0, 0])
        sizes.append(left[0])
        detail["pairs"][name] = estimates.defined(by_pair[-1][0])
        correlations.append(raw.points()[0])
    there = np.array(sizes) > 0
    overall, *drops = (np.where(there, by_pair, 0.0).sum(axis=0) / there.sum(axis=0)).tolist()
    ends = None
    if drops and not np.isnan([overall, *drops]).any():
        estimate = jackknife_estimate(overall, np.array(drops), people.level)
        ends = (estimate.low, estimate.high)
    if None not in correlations:  # the mean ICC(A,1) of pairs of people
        detail["icc"] = float(np.mean([value for value in correlations if value is not None]))
    return number(
        make, "human.agreement", labels, overall, count, method, "undefined: two people gave one grade each", detail,
        ends, people.level,
    )  # fmt: skip


def _stated(estimate: Estimate) -> dict[str, JSON]:
    """Return an estimate and its interval for a measurement's detail."""
    return {name: value for name, value in asdict(estimate).items() if name in ("estimate", "low", "high", "state")}


def compare_with_people(measurements: Iterable[Measurement], judge: str) -> Iterator[Measurement]:
    """Yield a run's comparison of one judge with people, as datasheet measurements; none without human grades.

    ``human.kappa``, ``.icc``, ``.bias``, ``.tpr`` and ``.tnr`` by dimension, and ``human.ceiling``, two people's kappa.
    """
    agreed = dict[str, Measurement]()
    for item in measurements:
        if item.name == "human.agreement":
            agreed[item.labels["dimension"]] = item
        if item.name != "human.judge" or item.labels["judge"] != judge:
            continue
        two, detail = agreed.get(item.labels["dimension"]), item.detail
        # Name, value, ends, state, n, what it counts and method of each quantity.
        rows = [("kappa", item.value, (item.low, item.high), item.state, item.n, item.n_of, item.method)]
        for name, method in (("icc", "ICC(A,1) with the mean human grade; jackknife"),
                             ("bias", "mean of judge minus mean human grade; jackknife")):  # fmt: skip
            part = detail[name]
            ends = part["low"], part["high"]
            rows.append((name, part["estimate"], ends, str(part.get("state", "ok")), item.n, item.n_of, method))
        for name, passing in (("tpr", "pass"), ("tnr", "fail")):
            hits, n, low, high = detail[name]
            texts = f"records that {passing} with people", f"share that {passing} with the judge too"
            rows.append((name, hits / n if n else None, (low, high), "undefined: no such record", n, *texts))
        if two is not None:
            rows.append(("ceiling", two.value, (two.low, two.high), two.state, two.n, two.n_of, two.method))
        about = {"dimension": item.labels["dimension"]}
        for name, value, between, state, n, n_of, method in rows:
            yield number(Measurement, f"human.{name}", about, value, (n, n_of), method, state, None, between,
                         item.level or 0.95)  # fmt: skip
