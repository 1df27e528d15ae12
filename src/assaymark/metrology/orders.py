"""Rankings of agents: the orders that may be published together, equivalent pairs, rank intervals and tiers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.comparisons import Comparisons, Gaps
from assaymark.metrology.contrasts import (
    ModeratedContrasts,
    agents_of,
    difference_moments,
    holm_rows,
    moderate,
    occurring,
    pair_differences,
    pair_list,
    pairs_of,
    serial_tests,
    snap_to_zero,
)
from assaymark.metrology.estimates import Ends, Estimate, Maker, defined, number, scores_of
from assaymark.metrology.recusal import PairTest, pair_records
from assaymark.plan import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, BiasRules, OrderRules
from assaymark.protocol import SCALE, Study
from assaymark.records import AGGREGATE, JSON, Measurement

# Orders that may be published together: Shaffer's step-down over all pairs, and the claim to rank first.


LEVEL_SLACK = 1e-12
"""Tolerance of every comparison of a p-value with its level."""


@dataclass(frozen=True, slots=True)
class PublishedOrders:
    """Decisions on all pairs of many studies at once."""

    first: Ints
    published: Bools
    p_adjusted: Floats


def publish_orders(gaps: ArrayLike, p: ArrayLike, alpha: float) -> PublishedOrders:
    """Decide which orders of many studies are published, from every pair's difference and p-value (Gutmann 1987)."""
    gap, values = np.asarray(gaps, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if gap.shape != values.shape or not values.ndim:
        checks.fail("publish_orders", "p", f"must have one entry for each gap (got {values.shape} for {gap.shape})")
    k = agents_of("publish_orders", "p", values.shape[-1])
    require_p("publish_orders", "p", values)
    checks.probability("publish_orders", "alpha", alpha)
    lead = values.shape[:-1]
    rows = math.prod(lead)
    gap, values = gap.reshape(rows, values.shape[-1]), values.reshape(rows, values.shape[-1])
    null_share = 0.5 if k > 3 else 0.0
    adjusted = np.minimum(1.0, shaffer_rows(values, k) / (1 - null_share))
    pairs, sign, others = _pairs_of_agent(k)
    ahead = gap[:, pairs] * sign > 0
    if null_share:
        worst = np.where(ahead, values[:, pairs], np.inf).max(axis=2) / null_share
        study, leader = np.nonzero(worst <= alpha + LEVEL_SLACK)  # at most one agent per study is ahead of all others
        if study.size:
            adjusted[study[:, None], pairs[leader]] = worst[study, leader][:, None]
            remaining = values[study[:, None], others[leader]]
            adjusted[study[:, None], others[leader]] = shaffer_rows(remaining, k - 1)
    published = (adjusted <= alpha + LEVEL_SLACK) & (np.abs(gap) > 0)
    wins: Bools = np.all(published[:, pairs] & ahead, axis=2)
    first = np.where(wins.any(axis=1), wins.argmax(axis=1), -1) if k > 1 else np.full(rows, -1)
    shape = (*lead, values.shape[-1])
    return PublishedOrders(first.reshape(lead), published.reshape(shape), adjusted.reshape(shape))


@lru_cache(maxsize=256)
def attainable_equalities(K: int) -> tuple[int, ...]:
    """Return the attainable numbers of simultaneously equal pairs of K agents, used by Shaffer's procedure."""
    # Bit x of sums[n] is set if groups of n agents can have x equal pairs.
    sums = [1]
    for n in range(1, checks.integer("attainable_equalities", "K", K, least=1) + 1):
        sizes = 0
        for j in range(1, n + 1):
            sizes |= sums[n - j] << (j * (j - 1) // 2)
        sums.append(sizes)
    return tuple(x for x in range(sums[K].bit_length()) if sums[K] >> x & 1)


def shaffer(p: ArrayLike, K: int) -> Floats:
    """Adjust the p-values of all pairs of K agents by Shaffer's step-down procedure S1 (Shaffer 1986)."""
    return np.asarray(shaffer_rows(_all_pairs("shaffer", "p", p, K)[None], K)[0])


def shaffer_rows(p: Floats, agents: int) -> Floats:
    """Apply `shaffer` to each row [B, pairs] of checked p-values."""
    order = np.argsort(p, axis=1, kind="stable")
    steps = np.take_along_axis(p, order, axis=1) * _bounds(agents)[:-1]
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(steps, axis=1), 1.0), axis=1)
    return adjusted


def shaffer_pooled(p: Mapping[str, ArrayLike], K: int) -> dict[str, Floats]:
    """Adjust K agents' pairs on several scales in one step-down: `shaffer` with summed bounds (Goeman 2010)."""
    if not p:
        return {}
    rows = np.array([_all_pairs("shaffer_pooled", name, values, K) for name, values in p.items()])
    flat = rows.ravel()
    order = np.argsort(flat, kind="stable")
    here = order[:, None] // max(1, rows.shape[1]) == np.arange(len(rows))
    steps = flat[order] * _bounds(K)[np.cumsum(here, axis=0) - here].sum(axis=1)
    adjusted = np.empty_like(flat)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return dict(zip(p, adjusted.reshape(rows.shape), strict=True))


def publish_scales(
    gaps: Mapping[str, Floats], p: Mapping[str, Floats], alpha: float, level: float, *, main: str = "aggregate"
) -> tuple[int | None, dict[str, Bools], dict[str, Floats], float]:
    """Apply `publish_orders` to the main scale at its ``level``, then one step-down to all others."""
    rest, first = alpha, None
    published: dict[str, Bools] = {}
    adjusted: dict[str, Floats] = {}
    others = {name: values for name, values in p.items() if name != main}
    if main in p:
        orders = publish_orders(gaps[main], p[main], level)
        published[main], adjusted[main] = orders.published, orders.p_adjusted
        first = None if orders.first < 0 else int(orders.first)
        rest = alpha if orders.published.all() else alpha - level
    if others:
        agents = agents_of("publish_scales", "p", next(iter(others.values())).size)
        adjusted |= shaffer_pooled(others, agents)
        published |= {
            name: (adjusted[name] <= rest + LEVEL_SLACK) & (rest > 0) & (np.abs(gaps[name]) > 0) for name in others
        }
    return first, published, adjusted, rest


@cache
def _bounds(agents: int) -> Floats:
    """Return the maximum number of equal pairs [pairs + 1] after 0, 1, ... pairs are known to differ."""
    pairs = agents * (agents - 1) // 2
    attainable = np.array(attainable_equalities(agents))
    bounds = attainable[np.searchsorted(attainable, np.arange(pairs, -1, -1), side="right") - 1].astype(np.float64)
    bounds.setflags(write=False)
    return bounds


@cache
def _pairs_of_agent(agents: int) -> tuple[Ints, Ints, Ints]:
    """Return each agent's pairs [K, K-1], its sign in each of them, and the pairs of the other agents [K, rest]."""
    first, second = pairs_of(agents)
    about = (first == np.arange(agents)[:, None]) | (second == np.arange(agents)[:, None])
    pairs_of_each = np.nonzero(about)[1].reshape(agents, agents - 1)
    sign = np.where(first[pairs_of_each] == np.arange(agents)[:, None], 1, -1)
    return pairs_of_each, sign, np.nonzero(~about)[1].reshape(agents, -1)


def _all_pairs(source: str, name: str, p: ArrayLike, agents: int) -> Floats:
    """Check p-values and their number, one for each pair of agents."""
    count = checks.integer(source, "K", agents, least=1)
    values = np.asarray(p, dtype=np.float64)
    if values.shape != (count * (count - 1) // 2,):
        checks.fail(source, name, f"{count} agents have {count * (count - 1) // 2} pairs (got shape {values.shape})")
    require_p(source, name, values)
    return values


def require_p(source: str, name: str, p: Floats) -> None:
    """Raise unless all values are p-values."""
    if not (inside := (p >= 0) & (p <= 1)).all():
        checks.fail(source, name, f"p-values lie in 0..1 (first that does not: {float(p[~inside][0])!r})")


def dimensions_claimed(study: Study) -> bool:
    """Return True if the plan makes claims about dimensions beside the aggregate, which then share alpha with it."""
    dimensions = study.claims.dimensions
    return dimensions is None or {AGGREGATE} < {*dimensions}


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """The rules for testing rankings, from the plan of a study, season or benchmark.
    ``span`` is the number of points between the ends of the scale, ``unit`` their name, ``level`` the coverage of
    intervals and ``power`` that of minimum detectable differences. ``dimensions`` is True if orders are also claimed on
    dimensions, which then share alpha with the aggregate; ``cycle`` is the word for a cycle in counts."""

    inference: OrderRules
    claims: BiasRules = field(default_factory=BiasRules)
    level: float = 0.95
    power: float = 0.8
    span: float = SCALE[1] - SCALE[0]
    unit: str = "rubric points"
    dimensions: bool = True
    cycle: str = "cycle"

    @classmethod
    def of(cls, study: Study) -> OrderPlan:
        """Return the rules in the plan of a study."""
        inference = study.inference
        claimed = dimensions_claimed(study)
        return cls(inference, study.claims, inference.level, inference.mde_power, study.points, dimensions=claimed)


@dataclass(frozen=True)
class OrderTests:
    """The plan's tests of every pair of agents, for the whole panel and without each judge family.
    Arrays are [pairs, scales], pairs in the order of `pairs_of`."""

    found: Comparisons
    plan: OrderPlan
    make: Maker = Measurement

    def number(
        self, name: str, labels: Mapping[str, str], value: float | Estimate | None, count: tuple[int, str],
        method: str, state: str = "ok", detail: Mapping[str, JSON] | None = None, ends: Ends | None = None,
    ) -> Measurement:  # fmt: skip
        """Make a measurement in the plan's unit, with the plan's level for intervals."""
        plan = self.plan
        return number(self.make, name, labels, value, count, method, state, detail, ends, plan.level, plan.unit)

    @property
    def delta(self) -> float:
        """The equivalence margin in points."""
        return self.plan.inference.margin * self.plan.span

    @property
    def shared(self) -> bool:
        """True if the aggregate shares alpha with dimensions; a single dimension is the aggregate."""
        return self.plan.dimensions and len(self.found.names) > 2

    @property
    def borrow(self) -> bool:
        """True if pairs borrow variance from each other."""
        return self.plan.inference.test == "moderated-t"

    @cached_property
    def gaps(self) -> Gaps:
        """The differences by the whole panel."""
        return self.found.gaps()

    @cached_property
    def panel(self) -> PairTests:
        """The tests of the whole panel."""
        return self.tested(self.gaps)

    @cached_property
    def drops(self) -> dict[str, tuple[PairTests, Floats]]:
        """The tests without each judge family, and their p-values after Shaffer's correction [P, S]: of the aggregate,
        and of all dimensions together."""
        agents, names, found = len(self.found.agents), self.found.names[1:], {}
        for family, chosen in self.found.drops.items():
            drop = self.tested(self.found.gaps(chosen))
            pooled = shaffer_pooled({name: drop.p[:, s] for s, name in enumerate(names, start=1)}, agents)
            adjusted = np.stack([shaffer(drop.p[:, 0], agents), *(pooled[name] for name in names)], axis=1)
            found[family] = drop, adjusted
        return found

    @cached_property
    def resolved(self) -> Bools:
        """True for pairs that the order procedure publishes by their contrasts alone [P, S]."""
        names, inference = self.found.names, self.plan.inference
        gaps, p = (dict(zip(names, columns.T, strict=True)) for columns in (self.panel.gap, self.panel.p))
        level = inference.level_of(AGGREGATE, self.shared)
        published: dict[str, Bools] = {}
        for part in [names] if self.shared else [names[:1], names[1:]]:
            some = {name: p[name] for name in part}
            published |= publish_scales(gaps, some, inference.alpha, level, main=names[0])[1]
        return np.stack([published[name] for name in names], axis=1)

    def tested(self, gaps: Gaps, borrow: bool | None = None) -> PairTests:
        """Test every pair on every scale by the plan's test."""
        return PairTests.of(gaps, self.found.consecutive, self.borrow if borrow is None else borrow)


@dataclass(frozen=True, slots=True)
class PairTests:
    """Tests of all pairs on all scales [P, S]; ``testable`` [P]. ``se`` and ``df`` are NaN without a test.
    ``variance`` is the pair's own, ``mean_variance`` [S] the mean of all pairs, ``prior`` the degrees of freedom
    borrowed from it. Clusters in time order have ``rho``, their autocorrelation, and ``effective``, their effective
    number."""

    gap: Floats
    p: Floats
    se: Floats
    df: Floats
    variance: Floats
    prior: Floats
    mean_variance: Floats
    clusters: Floats
    testable: Bools
    rho: Floats | None = None
    effective: Floats | None = None

    @classmethod
    def of(cls, gaps: Gaps, consecutive: bool, borrow: bool) -> PairTests:
        """Test by moderated cluster t on each scale; for clusters in time order, by t with their effective number."""
        # Difference of every pair on every scale [P, S], each cluster counting once, and its variance between clusters.
        (g, *shape), clusters = gaps.means.shape, np.asarray((gaps.cycles > 0).sum(axis=0))
        moments = difference_moments(gaps.means.reshape(g, math.prod(shape)))
        difference, variance = (np.reshape(values, shape) for values in (snap_to_zero(moments[0]), moments[1]))
        testable = clusters >= (FEWEST_CONSECUTIVE if consecutive else FEWEST_CLUSTERS)
        counts = clusters.astype(np.float64)
        if consecutive:
            scales = range(difference.shape[1])
            each = [serial_tests(gaps.means[:, :, s], gaps.levels[:, :, s]) for s in scales]
            p, se, df, rho, effective = (np.stack([getattr(test, name) for test in each], axis=1)
                                         for name in ("p", "se", "df", "rho", "effective"))  # fmt: skip
            of_pairs = variance[testable].mean(axis=0) if testable.any() else np.zeros(len(each))
            return cls(
                difference, p, se, df, variance, np.zeros_like(difference), of_pairs, counts, testable, rho, effective
            )
        # All scales at once, in the clusters that have every agent of a tested pair on every scale.
        complete = ~np.isnan(gaps.levels[:, occurring(testable, gaps.levels.shape[1])]).any(axis=(1, 2))
        tests = moderate(difference.T, variance.T, clusters, gaps.levels[complete].transpose(2, 0, 1), borrow)
        return cls(difference, tests.p.T, tests.se.T, tests.df.T, variance, tests.prior_df.T, tests.mean_variance,
                   counts, testable)  # fmt: skip

    def detail(self, k: int, s: int) -> dict[str, JSON]:
        """Return the inputs from which a reader can recompute the p-value of one pair."""
        values: dict[str, JSON] = {
            "p": float(self.p[k, s]), "se": defined(self.se[k, s]), "df": defined(self.df[k, s]),
            "clusters": int(self.clusters[k]), "variance": defined(self.variance[k, s]),
            "mean_variance": float(self.mean_variance[s]), "prior_df": defined(self.prior[k, s]),
        }  # fmt: skip
        if self.rho is not None and self.effective is not None:
            values |= {"rho": defined(self.rho[k, s]), "effective": defined(self.effective[k, s])}
        return values

    def method(self, k: int, s: int) -> str:
        """Describe the test."""
        clusters = int(self.clusters[k])
        if math.isnan(self.df[k, s]):
            return f"sign of {clusters} equal cluster differences"
        over = f"t({self.df[k, s]:.1f}) over {clusters} clusters"
        if self.effective is not None:
            return f"cluster t for clusters in time order, {over} worth {self.effective[k, s]:.1f} independent ones"
        # Rounded first, so that float noise cannot round a half up in one run and down in another.
        variance, mean = round(float(self.variance[k, s]), 12), round(float(self.mean_variance[s]), 12)
        kind = "moderated cluster t" if self.prior[k, s] > 0 else "cluster t"
        return f"{kind}, {over} (own variance {variance:.3g}, mean of pairs {mean:.3g})"


# Ranks implied by published orders: simultaneous rank intervals, and tiers.


Pair = tuple[int, int]


def rank_intervals(orders: Iterable[Pair], K: int) -> tuple[Pair, ...]:
    """Compute simultaneous rank intervals of K agents from the orders that may be claimed."""
    above = _above("rank_intervals", orders, K)
    best, worst = 1 + above.sum(axis=0), K - above.sum(axis=1)
    return tuple(zip(best.tolist(), worst.tolist(), strict=True))


def tiers(orders: Iterable[Pair], K: int) -> tuple[tuple[int, ...], ...]:
    """Split agents into tiers; every agent of a tier is claimed above every agent of all lower tiers."""
    above = _above("tiers", orders, K)
    # Agents above a cut beat more agents than those below it, so cuts can only occur along this order.
    line = np.argsort(-above.sum(axis=1), kind="stable")
    beaten = above[np.ix_(line, line)]
    cuts = [s for s in range(1, K) if beaten[:s, s:].all()]
    return tuple(tuple(sorted(line[start:stop].tolist())) for start, stop in zip([0, *cuts], [*cuts, K], strict=True))


def _above(source: str, orders: Iterable[Pair], agents: int) -> Bools:
    """Return the matrix [K, K] of claims, True if the row's agent is claimed above the column's."""
    count = checks.integer(source, "K", agents, least=1)
    above = np.zeros((count, count), dtype=bool)
    pairs = np.array([*orders], dtype=np.int64).reshape(-1, 2)
    if ((pairs < 0) | (pairs >= count)).any():
        checks.fail(source, "orders", f"agents are 0..{count - 1} (got {pairs.min()} to {pairs.max()})")
    above[pairs[:, 0], pairs[:, 1]] = True
    if (above & above.T).any():
        i, j = np.argwhere(above & above.T)[0].tolist()
        checks.fail(source, "orders", f"{i} cannot be above {j} and below it")
    return above


Resolution = Literal[
    "ordered", "ordered, by less than the margin", "within the margin", "not resolved", "cannot be tested"
]
Stability = Literal["stable", "rests on", "reversed without", "not measurable"]

_SOURCE = "order_analysis"
_MARGIN = 0.075  # share of the scale's range: .3 on 1-5, the source's threshold for self-preference


@dataclass(frozen=True, slots=True)
class ScaleInfo:
    """Values common to all pairs of a scale; see `assaymark.metrology.ModeratedContrasts`."""

    mean_variance: float
    epsilon: tuple[float, float] | None
    prior_df_estimate: float


@dataclass(frozen=True, slots=True)
class OrderAnalysis:
    """The result of `order_analysis`. Tuples of pairs are in the order (0, 1), (0, 2), ..., (1, 2), ..."""

    alpha_aggregate: float
    margin: float
    info: dict[str, ScaleInfo]
    scales: dict[str, dict[Pair, PairTest]]
    p_adjusted: tuple[float, ...]
    first: int | None
    order: tuple[Pair, ...]
    alpha_dimensions: float | None
    dimension_p_adjusted: dict[str, tuple[float, ...]]
    dimension_order: dict[str, tuple[Pair, ...]]
    equivalence_p_adjusted: tuple[float, ...]
    equivalent: tuple[Pair, ...]
    rank_interval: tuple[Pair, ...]
    top_set: tuple[int, ...]
    pair_state: tuple[Resolution, ...]


def order_analysis(
    scales: Mapping[str, ArrayLike], *, alpha: float = 0.05, borrow: bool = True, share: float = 0.8,
    score_range: tuple[float, float] = (1, 5), margin: float | None = None,
    differences: Mapping[str, Mapping[Any, Mapping[Hashable, float]] | Floats] | None = None,
    p_floor: Mapping[str, Mapping[Any, float]] | None = None, contrasts: Mapping[str, Mapping[Any, Any]] | None = None,
    p_eq_floor: Mapping[Any, float] | None = None,
) -> OrderAnalysis:  # fmt: skip
    """Decide which orders of agents a study may publish and which pairs are equivalent, with rank intervals (Berger
    1982, Mogstad 2024, Schuirmann 1987, Shaffer 1986)."""
    checks.probability(_SOURCE, "alpha", alpha)
    if not 0 < share <= 1:
        checks.fail(_SOURCE, "share", f"must lie above 0, at most 1 (got {share!r})")
    low, high = score_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        checks.fail(_SOURCE, "score_range", f"must be two finite numbers, the lower one first (got {score_range!r})")
    delta = _MARGIN * (high - low) if margin is None else float(margin)
    if not (math.isfinite(delta) and delta > 0):
        checks.fail(_SOURCE, "margin", f"must be a finite number above 0 (got {margin!r})")
    # The tables as arrays of one width, including the aggregate.
    tables = {name: scores_of(_SOURCE, f"scales[{name!r}]", table, 2) for name, table in scales.items()}
    if "aggregate" not in tables:
        checks.fail(_SOURCE, "scales", f"must have an aggregate (got {', '.join(map(repr, tables)) or 'none'})")
    if len({table.shape[1] for table in tables.values()}) > 1:
        widths = ", ".join(f"{name} {table.shape[1]}" for name, table in tables.items())
        checks.fail(_SOURCE, "scales", f"all must have the same agents (got {widths})")
    k = tables["aggregate"].shape[1]
    for name, entries in (("differences", differences), ("p_floor", p_floor), ("contrasts", contrasts)):
        unknown = set(entries or ()) - set(tables)
        if unknown:
            checks.fail(_SOURCE, name, f"names no scale: {', '.join(sorted(map(str, unknown)))}")
    given_tests, given_gaps, floors = contrasts or {}, differences or {}, p_floor or {}
    tests = {}
    for name, table in tables.items():
        if name in given_tests:
            tests[name] = _from_given(given_tests[name], k)
        else:
            pair_gaps = given_gaps.get(name)
            pair_gaps = pair_differences(table) if pair_gaps is None else _differences(pair_gaps, k)
            tests[name] = moderate(*difference_moments(pair_gaps), table, borrow)
    p = {name: np.maximum(test.p, _per_pair("p_floor", floors.get(name), k)) for name, test in tests.items()}

    def records(test: ModeratedContrasts) -> list[PairTest]:
        columns = test.p, test.gap, test.df, test.se, test.prior_df
        return pair_records(test.clusters, test.tested, *columns, absent="cannot be tested")

    main = tests["aggregate"]
    dimensions = [name for name in tables if name != "aggregate"]
    gaps = {name: test.gap for name, test in tests.items()}
    level = share * alpha if dimensions else alpha
    first, on_scales, adjusted, rest = publish_scales(gaps, p, alpha, level)
    published = on_scales["aggregate"]
    ordered = _oriented(main.gap, published, k)
    equal = equivalence_tests(main.gap, main.se, main.df, main.clusters, delta)
    equal = holm_rows(np.maximum(equal, _per_pair("p_eq_floor", p_eq_floor, k))[None])[0]
    within = equal <= alpha + LEVEL_SLACK
    ranks = rank_intervals(ordered, k)
    return OrderAnalysis(
        alpha_aggregate=level, margin=delta,
        info={name: ScaleInfo(float(test.mean_variance),
                              None if test.epsilon is None else (float(test.epsilon[0]), float(test.epsilon[1])),
                              float(test.prior_df_estimate))
              for name, test in tests.items() if name not in given_tests},
        scales={name: dict(zip(pair_list(k), records(test), strict=True)) for name, test in tests.items()},
        p_adjusted=tuple(adjusted["aggregate"].tolist()), first=first, order=ordered,
        alpha_dimensions=rest if dimensions else None,
        dimension_p_adjusted={name: tuple(adjusted[name].tolist()) for name in dimensions},
        dimension_order={name: _oriented(gaps[name], on_scales[name], k) for name in dimensions},
        equivalence_p_adjusted=tuple(equal.tolist()),
        equivalent=tuple(pair for pair, small in zip(pair_list(k), within.tolist(), strict=True) if small),
        rank_interval=ranks, top_set=tuple(agent for agent, (best, _) in enumerate(ranks) if best == 1),
        pair_state=tuple(
            ("ordered, by less than the margin" if equal else "ordered") if apart else "within the margin" if equal
            else "not resolved" if tested else "cannot be tested"
            for apart, equal, tested in zip(published.tolist(), within.tolist(), main.tested.tolist(), strict=True)
        ),
    )  # fmt: skip


def equivalence_p(gap: float | None, se: float | None, df: float | None, clusters: int, margin: float) -> float:
    """Compute the equivalence p-value: the larger p of two one-sided t tests against the margin (Schuirmann 1987)."""
    columns = np.array([[np.nan if value is None else value] for value in (gap, se, df)])
    return float(equivalence_tests(columns[0], columns[1], columns[2], np.array([clusters]), margin)[0])


def equivalence_tests(gap: Floats, se: Floats, df: Floats, clusters: Ints, margin: float) -> Floats:
    """Compute `equivalence_p` of arrays; NaN without a standard error or, if nothing varies, without df."""
    flat, scale = se == 0, np.where(se > 0, se, 1.0)
    p = np.maximum(scipy.special.stdtr(df, -(gap + margin) / scale), scipy.special.stdtr(df, -(margin - gap) / scale))
    p = np.where(flat, np.where(np.abs(gap) < margin, 2.0**-clusters, 1.0), p)
    return np.where(np.isnan(p), 1.0, p)


def stability_state(
    difference: float, drops: Mapping[str, Sequence[float | None]], alpha: float = 0.05
) -> tuple[Stability, tuple[str, ...]]:
    """Classify the robustness of a published order to leaving out each judge family; also return the families."""
    checks.probability("stability_state", "alpha", alpha)
    if len(drops) < 2:
        return "not measurable", ()
    level = 2 * alpha / min(len(drops), 3) + LEVEL_SLACK
    lost, unseen = [], []
    for family, drop in drops.items():
        if len(drop) not in (2, 3):
            checks.fail(
                "stability_state", f"drops[{family!r}]", f"must be (difference, p[, p_adjusted]) (got {drop!r})"
            )
        remaining, p, adjusted = (*drop, None)[:3]
        if remaining is None or math.isnan(remaining) or abs(remaining) <= 1e-9 or (remaining > 0) != (difference > 0):
            lost.append(family)
        elif p is None or not p <= level or (adjusted is not None and not adjusted <= 2 * alpha + LEVEL_SLACK):
            unseen.append(family)
    if lost:
        return "reversed without", tuple(lost)
    return ("rests on", tuple(unseen)) if unseen else ("stable", ())


def _from_given(contrasts: Mapping[Any, Any], agents: int) -> ModeratedContrasts:
    """Convert given tests (records or mappings with the fields of `SerialContrast`); no variance is borrowed."""
    records = _by_pair("contrasts", contrasts, agents)
    missing = [pair for pair in pair_list(agents) if pair not in records]
    if missing:
        checks.fail(_SOURCE, "contrasts", f"{len(missing)} pair(s) have none (first: {missing[0]})")

    def each(name: str) -> list[Any]:
        rows = (records[pair] for pair in pair_list(agents))
        return [row.get(name) if isinstance(row, Mapping) else getattr(row, name) for row in rows]

    def column(name: str) -> Floats:
        return np.array([np.nan if value is None else float(value) for value in each(name)])

    tested = np.array([state != "cannot be tested" for state in each("state")], dtype=bool)
    clusters = np.nan_to_num(column("clusters")).astype(np.int64)
    p, zero = column("p"), np.zeros(())
    require_p(_SOURCE, "contrasts", p)
    prior = np.where(tested, 0.0, np.nan)
    return ModeratedContrasts(
        snap_to_zero(column("gap")), clusters, tested, p, column("df"), column("se"), prior, zero, None, zero
    )


def _oriented(gap: Floats, published: Bools, agents: int) -> tuple[Pair, ...]:
    """Return the published pairs as (high, low)."""
    rows = zip(pair_list(agents), gap.tolist(), published.tolist(), strict=True)
    return tuple((i, j) if sign > 0 else (j, i) for (i, j), sign, published in rows if published and sign)


def _by_pair(name: str, values: Mapping[Any, Any], agents: int) -> dict[Pair, Any]:
    """Parse the keys of a mapping: pairs (i, j), or "i-j"."""
    found = {}
    for key, value in values.items():
        try:
            i, j = map(int, key.split("-") if isinstance(key, str) else key)
        except (TypeError, ValueError):
            i, j = -1, -1
        if not 0 <= i < j < agents:
            checks.fail(_SOURCE, name, f"pairs are (i, j) or 'i-j' with 0 <= i < j < {agents} (got {key!r})")
        found[i, j] = value
    return found


def _per_pair(name: str, values: Mapping[Any, float] | None, agents: int) -> Floats:
    """Convert p-values by pair to an array [pairs], 0 if missing."""
    given = _by_pair(name, values or {}, agents)
    p = np.array([given.get(pair, 0.0) for pair in pair_list(agents)], dtype=np.float64)
    require_p(_SOURCE, name, p)
    return p


def _differences(values: Mapping[Any, Mapping[Hashable, float]] | Floats, agents: int) -> Floats:
    """Convert differences by pair and cluster to an array [clusters, pairs], NaN if missing."""
    pairs = pair_list(agents)
    if not isinstance(values, Mapping):
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2 or not len(table) or table.shape[1] != len(pairs):
            checks.fail(_SOURCE, "differences", f"must be clusters by {len(pairs)} pairs (got shape {table.shape})")
    else:
        columns = _by_pair("differences", values, agents)
        rows = {name: g for g, name in enumerate({name: None for column in columns.values() for name in column})}
        table = np.full((max(1, len(rows)), len(pairs)), np.nan)
        for k, pair in enumerate(pairs):
            for name, value in columns.get(pair, {}).items():
                table[rows[name], k] = np.nan if value is None else value
    if np.isinf(table).any():
        checks.fail(_SOURCE, "differences", "differences must be finite")
    return table
