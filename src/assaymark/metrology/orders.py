"""Which agent may be said to be ahead, which are within a margin of each other, and which are not resolved."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from assaymark.metrology import checks
from assaymark.metrology.checks import Bools, Floats, Ints
from assaymark.metrology.contrasts import holm_rows, settle
from assaymark.metrology.moderated import (
    ModeratedContrasts,
    PairState,
    difference_moments,
    moderate,
    pair_differences,
    pairs_of,
    table_of,
)
from assaymark.metrology.order_tests import LEVEL_SLACK, publish_scales, require_p

# Ranks that follow from published orders: simultaneous rank intervals, and tiers.


Pair = tuple[int, int]


def rank_intervals(orders: Iterable[Pair], K: int) -> tuple[Pair, ...]:
    """Rank intervals of K agents that hold together, from the orders that may be claimed."""
    above = _above("rank_intervals", orders, K)
    best, worst = 1 + above.sum(axis=0), K - above.sum(axis=1)
    return tuple(zip(best.tolist(), worst.tolist(), strict=True))


def tiers(orders: Iterable[Pair], K: int) -> tuple[tuple[int, ...], ...]:
    """Agents in tiers: a cut runs where every agent above it is claimed above every agent below it, and only there."""
    above = _above("tiers", orders, K)
    # Whoever is above a cut beats more agents than whoever is below it, so a cut can only run along this order.
    line = np.argsort(-above.sum(axis=1), kind="stable")
    beaten = above[np.ix_(line, line)]
    cuts = [s for s in range(1, K) if beaten[:s, s:].all()]
    return tuple(tuple(sorted(line[start:stop].tolist())) for start, stop in zip([0, *cuts], [*cuts, K], strict=True))


def _above(source: str, orders: Iterable[Pair], agents: int) -> Bools:
    """Which agent is claimed above which [K, K]."""
    count = checks.whole(source, "K", agents, least=1)
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
_MARGIN = 0.075  # of the scale's range: .3 on 1-5, from where the source counts a halo as real


@dataclass(frozen=True, slots=True)
class PairTest:
    """The test of one pair on one scale. What a pair that cannot be tested lacks is None."""

    clusters: int
    difference: float | None
    state: PairState
    p: float
    df: float | None
    se: float | None
    prior_df: float | None

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Both ends of the interval of the difference; None where there is none."""
        if self.difference is None or self.se is None or self.df is None:
            return None
        half = float(special.stdtrit(self.df, 0.5 + level / 2)) * self.se
        return self.difference - half, self.difference + half


@dataclass(frozen=True, slots=True)
class ScaleInfo:
    """What the pairs of a scale share: see `assaymark.metrology.ModeratedContrasts`."""

    mean_variance: float
    epsilon: tuple[float, float] | None
    prior_df_estimate: float


@dataclass(frozen=True, slots=True)
class OrderAnalysis:
    """What `order_analysis` found. Tuples of pairs are in the order (0, 1), (0, 2), ..., (1, 2), ..."""

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
    """Decide which orders of agents a study may publish, which pairs lie within a margin, and what ranks remain.
    Source: Berger 1982, Mogstad 2024, Schuirmann 1987, Shaffer 1986."""
    checks.probability(_SOURCE, "alpha", alpha)
    if not 0 < share <= 1:
        checks.fail(_SOURCE, "share", f"must lie above 0, at most 1 (got {share!r})")
    low, high = score_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        checks.fail(_SOURCE, "score_range", f"must be two finite numbers, the lower one first (got {score_range!r})")
    delta = _MARGIN * (high - low) if margin is None else float(margin)
    if not (math.isfinite(delta) and delta > 0):
        checks.fail(_SOURCE, "margin", f"must be a finite number above 0 (got {margin!r})")
    # The tables as arrays of one width, the aggregate among them.
    tables = {name: table_of(_SOURCE, f"scales[{name!r}]", table) for name, table in scales.items()}
    if "aggregate" not in tables:
        checks.fail(_SOURCE, "scales", f"must have an aggregate (got {', '.join(map(repr, tables)) or 'none'})")
    if len({table.shape[1] for table in tables.values()}) > 1:
        widths = ", ".join(f"{name} {table.shape[1]}" for name, table in tables.items())
        checks.fail(_SOURCE, "scales", f"all must have the same agents (got {widths})")
    k = tables["aggregate"].shape[1]
    for name, given in (("differences", differences), ("p_floor", p_floor), ("contrasts", contrasts)):
        unknown = set(given or ()) - set(tables)
        if unknown:
            checks.fail(_SOURCE, name, f"names no scale: {', '.join(sorted(map(str, unknown)))}")
    given_tests, given_gaps, floors = contrasts or {}, differences or {}, p_floor or {}
    tests = {
        name: _given(given_tests[name], k)
        if name in given_tests
        else _tested(given_gaps.get(name), table, borrow=borrow)
        for name, table in tables.items()
    }
    p = {name: np.maximum(test.p, _per_pair("p_floor", floors.get(name), k)) for name, test in tests.items()}
    main = tests["aggregate"]
    dimensions = [name for name in tables if name != "aggregate"]
    gaps = {name: test.gap for name, test in tests.items()}
    orders = publish_scales(gaps, p, alpha, share if dimensions else 1.0)
    published = orders.published["aggregate"]
    ordered = _oriented(main.gap, published, k)
    near = equivalence_tests(main.gap, main.se, main.df, main.clusters, delta)
    near = holm_rows(np.maximum(near, _per_pair("p_eq_floor", p_eq_floor, k))[None])[0]
    within = near <= alpha + LEVEL_SLACK
    ranks = rank_intervals(ordered, k)
    return OrderAnalysis(
        alpha_aggregate=orders.alpha, margin=delta,
        info={name: _info(test) for name, test in tests.items() if name not in given_tests},
        scales={name: _records(test, k) for name, test in tests.items()},
        p_adjusted=tuple(orders.p_adjusted["aggregate"].tolist()), first=orders.first, order=ordered,
        alpha_dimensions=orders.rest if dimensions else None,
        dimension_p_adjusted={name: tuple(orders.p_adjusted[name].tolist()) for name in dimensions},
        dimension_order={name: _oriented(gaps[name], orders.published[name], k) for name in dimensions},
        equivalence_p_adjusted=tuple(near.tolist()),
        equivalent=tuple(pair for pair, small in zip(_pairs(k), within.tolist(), strict=True) if small),
        rank_interval=ranks, top_set=tuple(agent for agent, (best, _) in enumerate(ranks) if best == 1),
        pair_state=tuple(map(_resolution, published.tolist(), within.tolist(), main.tested.tolist())),
    )  # fmt: skip


def equivalence_p(gap: float | None, se: float | None, df: float | None, clusters: int, margin: float) -> float:
    """p of "the two differ by the margin or more": two one-sided t tests, the larger p (Schuirmann 1987)."""
    known = np.array([[np.nan if value is None else value] for value in (gap, se, df)])
    return float(equivalence_tests(known[0], known[1], known[2], np.array([clusters]), margin)[0])


def equivalence_tests(gap: Floats, se: Floats, df: Floats, clusters: Ints, margin: float) -> Floats:
    """`equivalence_p` of arrays; NaN where there is no standard error or, because nothing varies, no df."""
    flat, scale = se == 0, np.where(se > 0, se, 1.0)
    p = np.maximum(special.stdtr(df, -(gap + margin) / scale), special.stdtr(df, -(margin - gap) / scale))
    p = np.where(flat, np.where(np.abs(gap) < margin, 2.0**-clusters, 1.0), p)
    return np.where(np.isnan(p), 1.0, p)


def stability_state(
    difference: float, drops: Mapping[str, Sequence[float | None]], *, alpha: float = 0.05
) -> tuple[Stability, tuple[str, ...]]:
    """Whether a published order survives each judge family being left out."""
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
        left, p, adjusted = (*drop, None)[:3]
        if left is None or math.isnan(left) or abs(left) <= 1e-9 or (left > 0) != (difference > 0):
            lost.append(family)
        elif p is None or not p <= level or (adjusted is not None and not adjusted <= 2 * alpha + LEVEL_SLACK):
            unseen.append(family)
    if lost:
        return "reversed without", tuple(lost)
    return ("rests on", tuple(unseen)) if unseen else ("stable", ())


def _tested(values: Any, table: Floats, *, borrow: bool) -> ModeratedContrasts:
    """The moderated t of every pair, on differences of the table (None) or on those given."""
    found = pair_differences(table) if values is None else _differences(values, table.shape[1])
    return moderate(*difference_moments(found), table, borrow=borrow)


def _given(contrasts: Mapping[Any, Any], agents: int) -> ModeratedContrasts:
    """Tests made elsewhere, from records or mappings with the fields of `SerialContrast`; nothing is borrowed."""
    records = {_pair("contrasts", key, agents): record for key, record in contrasts.items()}
    missing = [pair for pair in _pairs(agents) if pair not in records]
    if missing:
        checks.fail(_SOURCE, "contrasts", f"{len(missing)} pair(s) have none (first: {missing[0]})")

    def column(name: str) -> Floats:
        found = [_field(records[pair], name) for pair in _pairs(agents)]
        return np.array([np.nan if value is None else float(value) for value in found])

    tested = np.array([_field(records[pair], "state") != "cannot be tested" for pair in _pairs(agents)], dtype=bool)
    clusters = np.nan_to_num(column("clusters")).astype(np.int64)
    p, zero = column("p"), np.zeros(())
    require_p(_SOURCE, "contrasts", p)
    prior = np.where(tested, 0.0, np.nan)
    return ModeratedContrasts(
        settle(column("gap")), clusters, tested, p, column("df"), column("se"), prior, zero, None, zero
    )


def _field(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, Mapping) else getattr(record, name)


def _info(tests: ModeratedContrasts) -> ScaleInfo:
    epsilon = None if tests.epsilon is None else (float(tests.epsilon[0]), float(tests.epsilon[1]))
    return ScaleInfo(float(tests.mean_variance), epsilon, float(tests.prior_df_estimate))


def _records(tests: ModeratedContrasts, agents: int) -> dict[Pair, PairTest]:
    """The same as public records."""
    gap, df, se, prior = (
        [None if value != value else value for value in column.tolist()]
        for column in (tests.gap, tests.df, tests.se, tests.prior_df)
    )
    state: list[PairState] = ["tested" if one else "cannot be tested" for one in tests.tested.tolist()]
    rows = zip(tests.clusters.tolist(), gap, state, tests.p.tolist(), df, se, prior, strict=True)
    return {pair: PairTest(*row) for pair, row in zip(_pairs(agents), rows, strict=True)}


def _resolution(published: bool, within: bool, tested: bool) -> Resolution:
    if published:
        return "ordered, by less than the margin" if within else "ordered"
    if within:
        return "within the margin"
    return "not resolved" if tested else "cannot be tested"


def _oriented(gap: Floats, published: Bools, agents: int) -> tuple[Pair, ...]:
    """Published pairs as (high, low)."""
    rows = zip(_pairs(agents), gap.tolist(), published.tolist(), strict=True)
    return tuple((i, j) if one > 0 else (j, i) for (i, j), one, said in rows if said and one)


@cache
def _pairs(agents: int) -> tuple[Pair, ...]:
    first, second = pairs_of(agents)
    return tuple(zip(first.tolist(), second.tolist(), strict=True))


def _pair(name: str, key: Any, agents: int) -> Pair:
    """A pair from (i, j) or "i-j"."""
    try:
        i, j = map(int, key.split("-") if isinstance(key, str) else key)
    except (TypeError, ValueError):
        i, j = -1, -1
    if not 0 <= i < j < agents:
        checks.fail(_SOURCE, name, f"pairs are (i, j) or 'i-j' with 0 <= i < j < {agents} (got {key!r})")
    return i, j


def _per_pair(name: str, values: Mapping[Any, float] | None, agents: int) -> Floats:
    """p-values by pair as an array [pairs], 0 where there is none."""
    found = dict.fromkeys(_pairs(agents), 0.0)
    for key, value in (values or {}).items():
        found[_pair(name, key, agents)] = np.nan if value is None else float(value)
    p = np.fromiter(found.values(), dtype=np.float64, count=len(found))
    require_p(_SOURCE, name, p)
    return p


def _differences(values: Mapping[Any, Mapping[Hashable, float]] | Floats, agents: int) -> Floats:
    """Differences by pair and cluster as an array [clusters, pairs], NaN where there is none."""
    pairs = _pairs(agents)
    if not isinstance(values, Mapping):
        table = np.asarray(values, dtype=np.float64)
        if table.ndim != 2 or not len(table) or table.shape[1] != len(pairs):
            checks.fail(_SOURCE, "differences", f"must be clusters by {len(pairs)} pairs (got shape {table.shape})")
    else:
        columns = {_pair("differences", key, agents): column for key, column in values.items()}
        rows = {name: g for g, name in enumerate({name: None for column in columns.values() for name in column})}
        table = np.full((max(1, len(rows)), len(pairs)), np.nan)
        for k, pair in enumerate(pairs):
            for name, value in columns.get(pair, {}).items():
                table[rows[name], k] = np.nan if value is None else value
    if np.isinf(table).any():
        checks.fail(_SOURCE, "differences", "differences must be finite")
    return table
