"""Measurements that an order of agents rests on: every pair under every test, and what may explain the difference."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from scipy import special

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.bootstrap import percentile_ends
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import Comparisons, natural
from assaymark.metrology.contrasts import Test, cluster_t
from assaymark.metrology.design import detectable_levels
from assaymark.metrology.estimates import IN_PARTS, NEVER, ONE_FAMILY, Ends, Estimate, Maker, number, state_of
from assaymark.metrology.kappa import spearman_columns
from assaymark.metrology.length import LengthAdjusted, adjusted_pairs, judge_slopes, length_p, length_rule, usable_cells
from assaymark.metrology.moderated import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, autocorrelations, minimum_detectable_gap
from assaymark.metrology.orders import OTHER_MARGINS, OrderPlan, OrderTests, equivalence_p
from assaymark.metrology.recusal import RecusalTest, own_family, recusal_p
from assaymark.metrology.reliability import discriminant, multitrait_multimethod, random_judges, specific_contrast
from assaymark.plan import ClusterOrder
from assaymark.records import JSON, Measurement

_COVARIATES: Final[Mapping[str, str]] = {
    "log2": "log2 words", "digits": "digits", "lists": "list items", "hedges": "hedging words"
}  # fmt: skip
_MEAN: Final = "mean over clusters of the paired difference within common cycles"

Pair = tuple[int, int]


def order_measurements(
    found: Comparisons, plan: OrderPlan, make: Maker, other: dict[Test, Floats] | None = None
) -> Iterator[Measurement]:
    """Every measurement that claims about orders rest on."""
    tests = OrderTests(found, plan)
    if found.judged:
        # Which judges share a family with which agents, and whose families the table does not give.
        lacking = [] if found.families_known else ["judges"]
        lacking += [] if found.agent_families is not None else ["agents"]
        shared = {
            judge: [agent for agent, own in zip(found.agents, row, strict=True) if own]
            for judge, row in zip(found.judges, found.own.tolist(), strict=True)
        }
        detail: dict[str, Any] = {"unknown": " and ".join(lacking), "own": shared, "in_parts": found.in_parts}
        yield number(make, "panel.families", {}, len(set(found.families)), (len(found.judges), "judges"),
                     "families of judges; a judge without a family counts as one",
                     detail=detail | {"missing": found.missing})  # fmt: skip
    if len(found.agents) > 1:
        yield from _contrasts(tests, make, other)
    if found.judged:
        yield from _of_judges(tests, make)
        yield from _distinct(tests, make)
    if len(found.agents) > 1:
        yield from _designs(tests, make)


def cannot_be_tested(clusters: int, consecutive: bool) -> str:
    """Why a pair has no test."""
    shared = f"{clusters} common cluster{'' if clusters == 1 else 's'}"
    if consecutive:
        return f"cannot be tested ({shared} that follow each other in time; {FEWEST_CONSECUTIVE} are needed)"
    return f"cannot be tested ({shared}; {FEWEST_CLUSTERS} are needed, 5 or more to have a chance)"


def _contrasts(tests: OrderTests, make: Maker, other: dict[Test, Floats] | None) -> Iterator[Measurement]:
    """Every pair on every scale, without each family, and what may explain its difference."""
    found, panel, names = tests.found, tests.panel, tests.found.names
    half = panel.half(tests.plan.level)
    # p-values of the other tests by their name in the detail. Clusters in time order never borrow: it would be the
    # same.
    beside = {} if found.consecutive else {"p_own_variance": tests.tested(tests.gaps, borrow=False).p}
    if other is not None:
        beside |= {f"p_{test.replace('-', '_')}": p[:, : len(names)] for test, p in other.items()}
    families = np.array(found.families)
    for s, name in enumerate(names):
        recused: Mapping[Pair, RecusalTest | None] = {}
        if found.own.any():
            means = found.judge_means[s]
            recused = recusal_p(means, found.own, tests.borrow, found.consecutive)
        means = found.judge_means[s]
        by_family = [means[:, families == family].mean(axis=1) for family in dict.fromkeys(found.families)]
        equal = _at_equal_length(tests, s)
        for k, pair in enumerate(found.pairs):
            turn = -1.0 if panel.gap[k, s] < 0 else 1.0
            # The larger mean is higher, and by name where there is no difference (agents are sorted).
            high, low = (found.agents[a] for a in (pair if turn > 0 else pair[::-1]))
            labels = {"dimension": name, "high": high, "low": low}
            rows = {test: float(p[k, s]) for test, p in beside.items()}
            yield _contrast(tests, make, labels, k, s, turn, float(half[k, s]), rows)
            for family, one in tests.drops.items():
                comparable = one.clusters[k] > 0
                detail = one.detail(k, s) | {"p_adjusted": float(tests.adjusted_without[family][k, s])}
                if s == 0:
                    detail["within"] = bool(abs(one.gap[k, s]) < tests.delta)
                method = "mean over clusters without the family"
                yield number(
                    make, "lofo.contrast", {**labels, "dropped": family},
                    turn * float(one.gap[k, s]) + 0.0 if comparable else None, (one.clusters[k], "common clusters"),
                    f"{method}; {one.method(k, s)}" if one.testable[k] else method, NEVER, detail, unit=tests.plan.unit,
                )  # fmt: skip
            if (alone := recused.get(pair)) is not None:
                yield _recusal(tests, make, labels, pair, s, turn, alone)
            if equal is not None and pair in equal[1]:
                yield _length(tests, make, labels, s, turn, equal[0][pair], equal[1][pair])
            if len(by_family) > 2:
                # Whether other judges like these would agree: judge families as a sample.
                contrast = turn * np.stack([means[:, pair[0]] - means[:, pair[1]] for means in by_family])
                whole = contrast[:, ~np.isnan(contrast).any(axis=0)]
                many = random_judges(whole, tests.plan.level, found.consecutive)
                method = "two-way variance of judge families and clusters, and t of the families' own contrasts; "
                method += "the larger p"
                yield number(
                    make, "judges.contrast", labels, many.estimate if many.state == "ok" else None,
                    (len(by_family), "judge families"), method, many.state, {"p": many.p, "df": many.df, "se": many.se},
                    (many.low, many.high), tests.plan.level, tests.plan.unit,
                )  # fmt: skip


def _contrast(
    tests: OrderTests, make: Maker, labels: dict[str, str], k: int, s: int, turn: float, half: float,
    rows: Mapping[str, float],
) -> Measurement:  # fmt: skip
    """One pair on one scale under the plan's test."""
    found, panel, gaps, plan = tests.found, tests.panel, tests.gaps, tests.plan
    cycles = gaps.cycles[:, k]
    there = np.flatnonzero(cycles)
    sums = {
        found.clusters[g]: [turn * float(gaps.means[g, k, s]) * int(cycles[g]) + 0.0, int(cycles[g])] for g in there
    }
    detail = panel.detail(k, s) | {"cluster_sums": sums, "resolved": bool(tests.resolved[k, s])} | dict(rows)
    count = int(cycles.sum()), f"common {plan.cycle}s"
    gap, se, df = (float(column[k, s]) for column in (panel.gap, panel.se, panel.df))
    value = turn * gap + 0.0 if there.size else None
    if value is None or not panel.testable[k]:
        why = cannot_be_tested(int(panel.clusters[k]), found.consecutive)
        return number(make, "contrast", labels, None, count, _MEAN, state=why, unit=plan.unit,
                      detail=detail | {"gap": value})  # fmt: skip
    if s == 0:
        detail |= _equivalence(gap, se, df, int(panel.clusters[k]), tests)
        # Two one-sided tests at 1 - level go with the interval of 2 level - 1.
        inner = float(special.stdtrit(df, plan.level) * se)
        detail["equivalence_interval"] = None if math.isnan(inner) else [value - inner, value + inner]
    elif found.judged and len(found.names) > 2:
        # The same pair on the other dimensions: their mean difference, and whether this one's is larger.
        means, others = turn * gaps.means[:, k, 1:], np.delete(panel.gap[k, 1:], s - 1)
        specific = specific_contrast(means, np.arange(len(means)), s - 1, consecutive=found.consecutive)
        detail |= {"others": turn * float(others.mean()) + 0.0, "p_specific": float(specific.p_up)}
    ends = (value - half, value + half) if math.isfinite(half) and half > 0 else None
    return number(
        make, "contrast", labels, value, count, f"{_MEAN}; {panel.method(k, s)}", "ok", detail, ends, plan.level,
        plan.unit,
    )  # fmt: skip


def _equivalence(
    gap: float | None, se: float | None, df: float | None, clusters: int, tests: OrderTests
) -> dict[str, JSON]:
    """The p-values of "no further apart than the margin": the plan's, and the margins that are tried beside it."""
    margins = [share * tests.plan.span for share in OTHER_MARGINS]
    other: dict[str, JSON] = {f"{margin:g}": equivalence_p(gap, se, df, clusters, margin) for margin in margins}
    return {"p_equivalence": equivalence_p(gap, se, df, clusters, tests.delta), "p_equivalence_at": other}


def _without_interest(tests: OrderTests, one: RecusalTest, s: int, turn: float) -> tuple[float | None, dict[str, JSON]]:
    """A contrast without interested judges, in the panel's direction (None: nothing to compare), and its test."""
    detail: dict[str, JSON] = {"p": float(one.p), "se": one.se, "df": one.df, "clusters": int(one.clusters)}
    if one.difference is None or not one.clusters:
        return None, detail
    if s == 0:
        detail |= _equivalence(one.difference, one.se, one.df, one.clusters, tests)
    return turn * one.difference + 0.0, detail


def _recusal(
    tests: OrderTests, make: Maker, labels: dict[str, str], pair: Pair, s: int, turn: float, one: RecusalTest
) -> Measurement:
    """The contrast of a conflicted pair with judges standing aside for their own family."""
    found, level = tests.found, tests.plan.level
    aside = found.own[:, pair[0]] | found.own[:, pair[1]]
    value, detail = _without_interest(tests, one, s, turn)
    detail["families"] = [*sorted({found.families[j] for j in np.flatnonzero(aside)})]
    detail["free"] = [found.judges[j] for j in np.flatnonzero(~aside)]
    half = 0.0 if one.se is None or one.df is None else float(special.stdtrit(one.df, 0.5 + level / 2)) * one.se
    ends: Ends | None = (value - half, value + half) if value is not None and half > 0 else None
    method = "judges stand aside for agents of their own family: judge + agent fit on the other cells of a cluster"
    return number(
        make, "recusal.contrast", labels, value, (one.clusters, "clusters"), method,
        "undefined: every judge shares its family with one of the two", detail, ends, level, tests.plan.unit,
    )  # fmt: skip


def _at_equal_length(
    tests: OrderTests, s: int
) -> tuple[Mapping[Pair, RecusalTest], Mapping[Pair, LengthAdjusted]] | None:
    """All pairs of one scale at equal length: the contrasts that gate headlines, and the panel's own with its slope."""
    found, lengths = tests.found, tests.found.lengths
    if lengths is None:
        return None
    scores, panel = np.ascontiguousarray(found.cells[..., s].transpose(0, 2, 1)), found.panel[..., s]
    gating = length_p(scores, lengths, found.cluster, found.own, borrow=tests.borrow, consecutive=found.consecutive)
    used = usable_cells(panel, lengths)
    turned = {
        pair: pair if gap >= 0 else pair[::-1]
        for pair, gap in zip(found.pairs, tests.panel.gap[:, s], strict=True)
        if (used[:, pair[0]] & used[:, pair[1]]).any()
    }
    adjusted = adjusted_pairs(panel, lengths, found.cluster, list(turned.values()), tests.plan.level, found.consecutive)
    return gating, dict(zip(turned, adjusted, strict=True))


def _length(
    tests: OrderTests, make: Maker, labels: dict[str, str], s: int, turn: float, one: RecusalTest,
    adjusted: LengthAdjusted,
) -> Measurement:  # fmt: skip
    """The difference at equal length, and how a longer text may explain it."""
    plan, turned = tests.plan, None if one.difference is None else turn * one.difference
    p_up = one.p / 2 if (turned or 0.0) > 0 else 1 - one.p / 2
    contrast = Estimate(turned, one.se, one.df, None, None, one.p, p_up, one.state)
    raw, word = adjusted.raw, "may be length"
    # Unequal clusters can turn the mean over cycles, which then says nothing of what length explains.
    if raw.estimate is not None and raw.estimate >= 0:
        word = length_rule(raw, contrast, adjusted.slopes, adjusted.gap, alpha=plan.inference.alpha)
    slope, covariates = adjusted.slopes[0], plan.claims.covariates
    value, detail = _without_interest(tests, one, s, turn)
    detail |= {"word": word, "covariates": list(covariates), "gap": float(adjusted.gap[0]), "slope": slope.estimate,
               "slope_p": slope.p, "raw": raw.estimate, "overlap": adjusted.overlap}  # fmt: skip
    if len(adjusted.slopes) > 1:
        detail["slopes"] = [found.estimate for found in adjusted.slopes]
        detail["gaps"] = [float(gap) for gap in adjusted.gap]
    named = " and ".join(_COVARIATES[name] for name in covariates)
    method = f"contrast at equal length: each judge's own slope on {named}, judges standing aside for their family"
    return number(make, "length.contrast", labels, value, (one.clusters, "clusters"), method,
                  "undefined: the two cannot be compared at equal length", detail, unit=plan.unit)  # fmt: skip


def _of_judges(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """How much more than the others each judge gives agents of its own family, and for a text of twice the length."""
    found, plan = tests.found, tests.plan
    count = len(found.clusters), "clusters"
    for s, name in enumerate(found.names if found.own.any() and len(found.agents) > 1 else ()):
        result = own_family(found.judge_means[s], found.own, plan.level, found.consecutive)
        each = zip(result.judges, result.by_judge or (), result.p_holm or (), strict=False)
        for judge, one, p in [*((found.judges[j], one, p) for j, one, p in each), ("common", result.common, None)]:
            if one is not None:
                yield number(make, "judge.own_family", {"dimension": name, "judge": judge}, one.estimate, count,
                             "judge + agent + own family fit in each cluster, t over clusters", one.state,
                             {"p": one.p, "p_holm": p}, (one.low, one.high), plan.level, plan.unit)  # fmt: skip
    if found.lengths is None or len(found.judges) < 2 or plan.claims.covariates[:1] != ("log2",):
        return
    slopes = judge_slopes(found.cells[..., 0], found.lengths, found.cluster, plan.level, found.consecutive)
    for judge, one in zip(found.judges, slopes, strict=True):
        yield number(make, "judge.length", {"dimension": found.names[0], "judge": judge}, one.estimate, count,
                     "slope of score minus the other judges' mean on log2 words, within agents and cycles; jackknife",
                     one.state, {}, (one.low, one.high), plan.level, plan.unit)  # fmt: skip


def _distinct(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """Whether the judges tell each dimension from their overall impression, and the correlations that show it."""
    found, plan = tests.found, tests.plan
    names, judges = found.names[1:], found.judges
    if len(names) < 2:
        return
    rows, agents = np.nonzero(~np.isnan(found.cells).any(axis=(2, 3)))
    scores, cluster = found.cells[rows, agents, :, 1:], found.cluster[rows]
    result, matrix = None, None
    state = IN_PARTS if found.in_parts else "not measurable: no record has a grade from every judge on every dimension"
    if not found.in_parts and len(set(found.families)) < 2:
        state = ONE_FAMILY
    flat = state
    if scores.size and not found.in_parts and len(set(found.families)) > 1:
        result = discriminant(scores, cluster, plan.claims.distinct, level=plan.level,
                              consecutive=found.consecutive)  # fmt: skip
        flat = state = result.state
        try:
            matrix = multitrait_multimethod(scores, cluster)
        except NotMeasurableError as exc:
            flat = state_of(exc)
    count, other_judge = (rows.size, "records"), ~np.eye(len(judges), dtype=bool)
    for d, name in enumerate(names):
        one = None if result is None or result.state != "ok" else result.dimensions[d]
        ends = None if one is None else (one.low, one.high)
        detail: dict[str, JSON] = {"p": None if one is None else one.p, "p_holm": None if one is None else one.p_holm}
        yield number(
            make, "dimension.distinct", {"dimension": name}, None if one is None else one.phi, count,
            "correlation with the mean of the other dimensions, corrected for disagreement of judges; jackknife",
            state if one is None else "undefined: judges share nothing on it",
            detail | {"distinct": plan.claims.distinct}, ends, plan.level,
        )  # fmt: skip
        agreed, more = None, dict[str, Any]()
        if matrix is not None:
            # One dimension's rows of the matrix [J, D, J, D], and means of the three kinds of correlations in them.
            row, other = matrix[:, d], np.arange(len(names)) != d
            agreed = float(row[other_judge][:, d].mean())
            more["other_judges"] = float(row[other_judge][:, other].mean())
            more["same_judge"] = float(row[~other_judge][:, other].mean())
            more["matrix"] = {
                judge: {one: dict(zip(names, values, strict=True)) for one, values in zip(judges, part, strict=True)}
                for judge, part in zip(judges, row.tolist(), strict=True)
            }
        yield number(make, "dimension.mtmm", {"dimension": name}, agreed, count,
                     "mean correlation of two judges' scores of this dimension within clusters "
                     "(multitrait-multimethod)",
                     state=flat, detail=more)  # fmt: skip


def _designs(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """Dependence of clusters that follow each other, and the smallest gap that this design can find."""
    found, plan, panel = tests.found, tests.plan, tests.panel
    for s, name in enumerate(found.names):
        levels = tests.gaps.levels[:, :, s]
        levels = levels[:, ~np.isnan(levels).all(axis=0)]  # an agent that is nowhere says nothing of those that are
        lags, flag = autocorrelations(levels) if levels.size else ([], None)
        detail: dict[str, Any] = {"lags": lags, "flagged": bool(lags and flag is not None and lags[0] > flag)}
        yield number(make, "order.autocorrelation", {"dimension": name}, lags[0] if lags else None,
                     (len(found.clusters), "clusters"),
                     "lag-1 autocorrelation of the agents' cluster means, centred by agent and cluster",
                     state="undefined: too few clusters", detail=detail | {"flag": flag, "order": found.order},
        )  # fmt: skip
    agents = len(found.agents)
    alpha = (plan.inference.aggregate_share if tests.shared else 1.0) * plan.inference.alpha
    rows = np.flatnonzero(panel.testable & ~np.isnan(panel.df[:, 0]))
    leader = pair = None
    if rows.size:
        se, df = float(np.median(panel.se[rows, 0])), float(np.median(panel.df[rows, 0]))
        levels_ = detectable_levels(agents, alpha)
        leader, pair = (minimum_detectable_gap(se, df, level, plan.power) for level in levels_)
    detail = {"alpha_aggregate": alpha, "leader": leader, "pair": pair, "power": plan.power}
    yield number(make, "order.detectable", {"dimension": found.names[0]}, leader, (agents * (agents - 1) // 2, "pairs"),
                 "noncentral t with the median standard error and degrees of freedom of the tested pairs",
                 "undefined: no pair can be tested", detail, unit=plan.unit)  # fmt: skip


RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ScoredItems:
    """What several models scored on the same items."""

    models: tuple[str, ...]
    values: Floats
    clusters: tuple[str, ...]
    parts: tuple[str, ...]
    unscored: Mapping[str, str] = field(default_factory=dict)

    def table(self, clusters: Sequence[str] | None = None) -> Floats:
        """Cluster means [G, m], in the order of ``clusters`` (default: by name)."""
        names = sorted(set(self.clusters)) if clusters is None else clusters
        place = {name: g for g, name in enumerate(names)}
        member = np.eye(len(place))[[place[name] for name in self.clusters]]
        return np.asarray((self.values @ member / member.sum(axis=0)).T)

    def of(self, models: Sequence[str]) -> ScoredItems:
        """The same items with these of the models, in their order."""
        return dataclasses.replace(self, models=tuple(models), values=self.values[[*map(self.models.index, models)]])

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have a score."""
        return tuple(model for model in self.models if model not in self.unscored)

    def without(self, part: str) -> ScoredItems:
        """The items of all other parts."""
        kept = [k for k, name in enumerate(self.parts) if name != part]
        clusters, parts = (tuple(each[k] for k in kept) for each in (self.clusters, self.parts))
        return dataclasses.replace(self, values=self.values[:, kept], clusters=clusters, parts=parts)

    def gap(self, high: str, low: str) -> float:
        """Mean over clusters of what one model scored more than another."""
        level = self.table().mean(axis=0)
        return float(level[self.models.index(high)] - level[self.models.index(low)])


def level_measurements(name: str, items: ScoredItems, labels: Mapping[str, str], level: float) -> list[Measurement]:
    """The mean score of each model, with a cluster-t interval where there are two clusters or more."""
    found = []
    for model, row in zip(items.models, items.values, strict=True):
        about, count = {"model": model, **labels}, (row.size, "items")
        if model in items.unscored:
            state = f"no score: {items.unscored[model]}"
            found.append(number(Measurement, name, about, None, count, "mean", state))
            continue
        tested = cluster_t(row, items.clusters, level)
        ends = None if tested.low is None or tested.high is None else (max(0.0, tested.low), min(1.0, tested.high))
        found.append(number(Measurement, name, about, tested.difference, count, tested.method, ends=ends, level=level))
    return found


def board_measurements(
    boards: Mapping[str, ScoredItems], plan: OrderPlan, others: Mapping[str, ScoredItems] = MappingProxyType({}),
    *, order: ClusterOrder = "exchangeable",
) -> Iterator[Measurement]:  # fmt: skip
    """Levels of models on leaderboards, and every measurement that orders of them rest on."""
    first = next(iter(boards.values()))
    clusters = tuple(sorted(set(first.clusters), key=natural if order == "consecutive" else None))
    models, counts = tuple(sorted(first.models)), Counter(first.clusters)
    for name, items in boards.items():
        table = items.table(clusters)
        each = ScoredItems(items.models, table.T, clusters, clusters, items.unscored)
        for measurement in level_measurements("bench.level", each, {"board": name}, plan.level):
            yield dataclasses.replace(measurement, n=len(items.clusters))
    cells = np.stack([items.of(models).table(clusters) for items in boards.values()], axis=2)[:, :, None]
    found = Comparisons(
        names=tuple(boards), agents=models, judges=("score",), families=("score",), agent_families=None,
        clusters=clusters, cluster=np.arange(len(clusters)), weight=np.array([counts[cluster] for cluster in clusters]),
        cells=cells, lengths=None, order=order, judged=False,
    )  # fmt: skip

    def make(name: str, labels: Mapping[str, str], **parts: Any) -> Measurement:
        made = Measurement(name=name, labels=labels, **parts)
        if name != "contrast":
            return made
        board, pair = labels["dimension"], (labels["high"], labels["low"])
        items, detail = boards[board], dict(made.detail)
        if lacking := sorted(set(pair) & set(items.unscored)):
            return dataclasses.replace(
                made, state="; ".join(f"{one} has no score: {items.unscored[one]}" for one in lacking)
            )
        if board in others and not set(pair) & set(others[board].unscored):
            detail["other"] = others[board].gap(*pair)
        if len(windows := sorted(set(items.parts))) > 1:
            detail["without"] = {part: items.without(part).gap(*pair) for part in windows}
        return dataclasses.replace(made, detail=detail)

    yield from order_measurements(found, plan, make)


def rank_agreement(
    name: str, one: ScoredItems, two: ScoredItems, labels: Mapping[str, str], *, rng: np.random.Generator, level: float,
    resamples: int = RESAMPLES,
) -> Measurement:  # fmt: skip
    """Spearman's rank correlation of the models' means on two sets of items, with an interval for these models."""
    if one.models != two.models or len(one.models) < 3:
        checks.fail("rank_agreement", "models", "the same three or more in both sets are needed")
    names = [model for model in one.scored if model not in two.unscored]
    one, two = one.of(names), two.of(names)
    method = f"Spearman's rank correlation; {resamples} draws of clusters of either set, percentile"
    state, rho, ends, detail = f"not defined: needs three models with a score (got {len(names)})", None, None, {}
    if len(names) > 2:
        (rho,) = spearman_columns(one.values.mean(axis=1)[:, None], two.values.mean(axis=1)[:, None])
        state = "not defined: all models are tied in one of the two"
    if rho is not None:
        drawn = spearman_columns(_redrawn(one, rng, resamples), _redrawn(two, rng, resamples))
        known = np.array([value for value in drawn if value is not None])
        detail = {"undefined": resamples - len(known)}
        if len(known) >= level * resamples:
            low, high = percentile_ends(known[None], None, level)[:, 0].tolist()
            ends = low, high
    return number(Measurement, name, labels, rho, (len(names), "models"), method, state, detail, ends, level)


def _redrawn(items: ScoredItems, rng: np.random.Generator, resamples: int) -> Floats:
    """Means [m, R] of every model over clusters drawn with replacement."""
    names, codes = np.unique(np.array(items.clusters), return_inverse=True)
    member = np.eye(len(names))[codes]
    sums, counts = items.values @ member, member.sum(axis=0)
    times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples).T.astype(float)
    return np.asarray((sums @ times) / (counts @ times))
