"""Measurements behind rankings of agents: every pair under every test, and other explanations of a difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import scipy

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks, contrasts, estimates, length, orders, recusal, reliability
from assaymark.metrology.bootstrap import percentile_ends
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import Comparisons, natural
from assaymark.metrology.contrasts import Test
from assaymark.metrology.design import detectable_levels
from assaymark.metrology.estimates import Maker, number
from assaymark.metrology.kappa import spearman_columns
from assaymark.metrology.orders import OrderPlan, OrderTests
from assaymark.metrology.recusal import Pair, PairTest
from assaymark.plan import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, OTHER_MARGINS, ClusterOrder
from assaymark.records import AGGREGATE, JSON, Measurement

_COVARIATES: Final[Mapping[str, str]] = {
    "log2": "log2 words", "digits": "digits", "lists": "list items", "hedges": "hedging words"
}  # fmt: skip
_MEAN: Final = "mean over clusters of the paired difference within common cycles"
_JUDGES: Final = "two-way variance of judge families and clusters, and t of the families' own contrasts; the larger p"


def order_measurements(
    table: Comparisons, plan: OrderPlan, make: Maker, other: dict[Test, Floats] | None = None
) -> Iterator[Measurement]:
    """Make every measurement that claims about rankings use."""
    tests, agents, clusters = OrderTests(table, plan, make), len(table.agents), (len(table.clusters), "clusters")
    detail: dict[str, Any]
    if table.judged:
        # The judges and agents of the same family, and those without a family in the table.
        lacking = [] if table.families_known else ["judges"]
        lacking += [] if table.agent_families is not None else ["agents"]
        shared = {
            judge: [agent for agent, conflict in zip(table.agents, row, strict=True) if conflict]
            for judge, row in zip(table.judges, table.own.tolist(), strict=True)
        }
        detail = {"unknown": " and ".join(lacking), "own": shared, "in_parts": table.in_parts, "missing": table.missing}
        yield number(make, "panel.families", {}, len(set(table.families)), (len(table.judges), "judges"),
                     "families of judges; a judge without a family counts as one", "ok", detail)  # fmt: skip
    if agents > 1:
        yield from _contrasts(tests, other)
    if table.judged:
        # Each judge's self-preference, and its extra points per doubling of length, both relative to the other judges.
        for s, name in enumerate(table.names if table.own.any() and agents > 1 else ()):
            result = recusal.own_family(table.judge_means[s], table.own, plan.level, table.consecutive)
            rows = [*zip((table.judges[j] for j in result.judges), result.by_judge or (), result.p_holm or (),
                         strict=False), ("common", result.common, None)]  # fmt: skip
            for judge, estimate, p in rows:
                if estimate is not None:
                    yield tests.number("judge.own_family", {"dimension": name, "judge": judge}, estimate, clusters,
                                       "judge + agent + own family fit in each cluster, t over clusters",
                                       detail={"p": estimate.p, "p_holm": p})  # fmt: skip
        if table.lengths is not None and len(table.judges) > 1 and plan.claims.covariates[:1] == ("log2",):
            slopes = length.judge_slopes(table.cells[..., 0], table.lengths, table.cluster, plan.level,
                                         table.consecutive)  # fmt: skip
            for judge, estimate in zip(table.judges, slopes, strict=True):
                yield tests.number(
                    "judge.length", {"dimension": table.names[0], "judge": judge}, estimate, clusters,
                    "slope of score minus the other judges' mean on log2 words, within agents and cycles; jackknife",
                )  # fmt: skip
        yield from _distinct(tests)
    if agents < 2:
        return
    # Autocorrelation of consecutive clusters, and the minimum detectable difference of this design.
    for s, name in enumerate(table.names):
        levels = tests.gaps.levels[:, :, s]
        levels = levels[:, ~np.isnan(levels).all(axis=0)]  # an agent without scores must not exclude the others
        lags, flag = contrasts.autocorrelations(levels) if levels.size else ([], None)
        detail = {"lags": lags, "flagged": bool(lags and flag is not None and lags[0] > flag), "flag": flag}
        yield number(make, "order.autocorrelation", {"dimension": name}, lags[0] if lags else None, clusters,
                     "lag-1 autocorrelation of the agents' cluster means, centred by agent and cluster",
                     "undefined: too few clusters", detail | {"order": table.order})  # fmt: skip
    panel, leader, pair = tests.panel, None, None
    alpha = plan.inference.level_of(AGGREGATE, tests.shared)
    tested = np.flatnonzero(panel.testable & ~np.isnan(panel.df[:, 0]))
    if tested.size:
        se, df = float(np.median(panel.se[tested, 0])), float(np.median(panel.df[tested, 0]))
        leader, pair = (
            contrasts.minimum_detectable_gap(se, df, x, plan.power) for x in detectable_levels(agents, alpha)
        )
    detail = {"alpha_aggregate": alpha, "leader": leader, "pair": pair, "power": plan.power}
    yield tests.number("order.detectable", {"dimension": table.names[0]}, leader, (agents * (agents - 1) // 2, "pairs"),
                       "noncentral t with the median standard error and degrees of freedom of the tested pairs",
                       "undefined: no pair can be tested", detail)  # fmt: skip


def cannot_be_tested(clusters: int, consecutive: bool) -> str:
    """Return the reason why a pair has no test."""
    shared = f"{clusters} common cluster{'' if clusters == 1 else 's'}"
    if consecutive:
        return f"cannot be tested ({shared} that follow each other in time; {FEWEST_CONSECUTIVE} are needed)"
    return f"cannot be tested ({shared}; {FEWEST_CLUSTERS} are needed, 5 or more to have a chance)"


def _contrasts(tests: OrderTests, other: dict[Test, Floats] | None) -> Iterator[Measurement]:
    """Measure every pair on every scale, also without each family, with other explanations of the difference."""
    table, panel, names, plan = tests.found, tests.panel, tests.found.names, tests.plan
    with np.errstate(invalid="ignore"):  # half-widths of the intervals [P, S], NaN without an interval
        half = np.asarray(scipy.special.stdtrit(panel.df, 0.5 + plan.level / 2) * panel.se)
    families = np.array(table.families)
    # p-values of the other tests, by their name in the detail. Clusters in time order never borrow variance.
    beside = {} if table.consecutive else {"p_own_variance": tests.tested(tests.gaps, borrow=False).p}
    if other is not None:
        beside |= {f"p_{test.replace('-', '_')}": p[:, : len(names)] for test, p in other.items()}
    for s, name in enumerate(names):
        means, scores, lengths = table.judge_means[s], table.panel[..., s], table.lengths
        aside = recusal.recusal_p(means, table.own, tests.borrow, table.consecutive) if table.own.any() else {}
        by_family = [means[:, families == family].mean(axis=1) for family in dict.fromkeys(table.families)]
        # All pairs at equal length: the contrasts that gate headlines, and the panel's own contrasts with its slope.
        gating, adjusted = dict[Pair, PairTest](), dict[Pair, length.LengthAdjusted]()
        if lengths is not None:
            cells = np.ascontiguousarray(table.cells[..., s].transpose(0, 2, 1))
            gating = length.length_p(cells, lengths, table.cluster, table.own, tests.borrow, table.consecutive)
            used = length.usable_cells(scores, lengths)
            signs = {
                pair: pair if gap >= 0 else pair[::-1]
                for pair, gap in zip(table.pairs, panel.gap[:, s], strict=True)
                if (used[:, pair[0]] & used[:, pair[1]]).any()
            }
            each = length.adjusted_pairs(scores, lengths, table.cluster, [*signs.values()], plan.level,
                                         table.consecutive)  # fmt: skip
            adjusted = dict(zip(signs, each, strict=True))
        for k, pair in enumerate(table.pairs):
            turn = -1.0 if panel.gap[k, s] < 0 else 1.0
            # The agent with the larger mean is ``high``; without a difference, the first by name (agents are sorted).
            high, low = (table.agents[a] for a in (pair if turn > 0 else pair[::-1]))
            labels = {"dimension": name, "high": high, "low": low}
            rows = {test: float(p[k, s]) for test, p in beside.items()}
            yield _contrast(tests, labels, k, s, turn, float(half[k, s]), rows)
            for family, (drop, p_adjusted) in tests.drops.items():
                comparable = drop.clusters[k] > 0
                detail = drop.detail(k, s) | {"p_adjusted": float(p_adjusted[k, s])}
                if s == 0:
                    detail["within"] = bool(abs(drop.gap[k, s]) < tests.delta)
                method = "mean over clusters without the family"
                yield tests.number(
                    "lofo.contrast", {**labels, "dropped": family},
                    turn * float(drop.gap[k, s]) + 0.0 if comparable else None, (drop.clusters[k], "common clusters"),
                    f"{method}; {drop.method(k, s)}" if drop.testable[k] else method, estimates.NEVER, detail,
                )  # fmt: skip
            if (alone := aside.get(pair)) is not None:
                # The recusal contrast of a pair with a judge of the same family.
                conflict = table.own[:, pair[0]] | table.own[:, pair[1]]
                value, detail = _without_interest(tests, alone, s, turn)
                detail["families"] = [*sorted({table.families[j] for j in np.flatnonzero(conflict)})]
                detail["free"] = [table.judges[j] for j in np.flatnonzero(~conflict)]
                ends = alone.interval(plan.level)
                yield tests.number(
                    "recusal.contrast", labels, value, (alone.clusters, "clusters"),
                    "judges stand aside for agents of their own family: judge + agent fit on the other cells of a "
                    "cluster", "undefined: every judge shares its family with one of the two", detail,
                    None if ends is None else (min(turn * end for end in ends), max(turn * end for end in ends)),
                )  # fmt: skip
            if pair in adjusted:
                yield _length(tests, labels, s, turn, gating[pair], adjusted[pair])
            if len(by_family) > 2:
                # Generalisation to other judges: judge families as a sample.
                contrast = turn * np.stack([means[:, pair[0]] - means[:, pair[1]] for means in by_family])
                complete = contrast[:, ~np.isnan(contrast).any(axis=0)]
                many = reliability.random_judges(complete, plan.level, table.consecutive)
                yield tests.number("judges.contrast", labels, None if many.se is None else many,
                                   (len(by_family), "judge families"), _JUDGES, many.state,
                                   {"p": many.p, "df": many.df, "se": many.se})  # fmt: skip


def _contrast(
    tests: OrderTests, labels: dict[str, str], k: int, s: int, turn: float, half: float, rows: Mapping[str, float]
) -> Measurement:
    """Measure one pair on one scale under the plan's test."""
    table, panel, gaps, plan = tests.found, tests.panel, tests.gaps, tests.plan
    cycles = gaps.cycles[:, k]
    sums = {
        table.clusters[g]: [turn * float(gaps.means[g, k, s]) * int(cycles[g]) + 0.0, int(cycles[g])]
        for g in np.flatnonzero(cycles)
    }
    detail = panel.detail(k, s) | {"cluster_sums": sums, "resolved": bool(tests.resolved[k, s])} | dict(rows)
    count = int(cycles.sum()), f"common {plan.cycle}s"
    gap, se, df = (float(column[k, s]) for column in (panel.gap, panel.se, panel.df))
    value = turn * gap + 0.0 if cycles.any() else None
    if value is None or not panel.testable[k]:
        reason = cannot_be_tested(int(panel.clusters[k]), table.consecutive)
        return tests.number("contrast", labels, None, count, _MEAN, reason, detail | {"gap": value})
    if s == 0:
        detail |= _equivalence(gap, se, df, int(panel.clusters[k]), tests)
        # Two one-sided tests at 1 - level correspond to the interval of coverage 2 level - 1.
        inner = float(scipy.special.stdtrit(df, plan.level) * se)
        detail["equivalence_interval"] = None if math.isnan(inner) else [value - inner, value + inner]
    elif table.judged and len(table.names) > 2:
        # The same pair on the other dimensions: their mean difference, and a test that this dimension's is larger.
        means, others = turn * gaps.means[:, k, 1:], np.delete(panel.gap[k, 1:], s - 1)
        specific = reliability.specific_contrast(means, np.arange(len(means)), s - 1, plan.level, table.consecutive)
        detail |= {"others": turn * float(others.mean()) + 0.0, "p_specific": float(specific.p_up)}
    ends = (value - half, value + half) if math.isfinite(half) and half > 0 else None
    return tests.number("contrast", labels, value, count, f"{_MEAN}; {panel.method(k, s)}", "ok", detail, ends)


def _equivalence(
    gap: float | None, se: float | None, df: float | None, clusters: int, tests: OrderTests
) -> dict[str, JSON]:
    """Compute the p-values of equivalence within the plan's margin, and within the alternative margins."""
    margins = [tests.delta, *(share * tests.plan.span for share in OTHER_MARGINS)]
    p_value, *others = (orders.equivalence_p(gap, se, df, clusters, margin) for margin in margins)
    return {
        "p_equivalence": p_value,
        "p_equivalence_at": {f"{margin:g}": p for margin, p in zip(margins[1:], others, strict=True)},
    }


def _without_interest(tests: OrderTests, test: PairTest, s: int, turn: float) -> tuple[float | None, dict[str, JSON]]:
    """Return a contrast without interested judges in the panel's direction (None: not identified), and its test."""
    detail: dict[str, JSON] = {"p": float(test.p), "se": test.se, "df": test.df, "clusters": int(test.clusters)}
    if test.difference is None or not test.clusters:
        return None, detail
    if s == 0:
        detail |= _equivalence(test.difference, test.se, test.df, test.clusters, tests)
    return turn * test.difference + 0.0, detail


def _length(
    tests: OrderTests, labels: dict[str, str], s: int, turn: float, test: PairTest, adjusted: length.LengthAdjusted
) -> Measurement:
    """Measure the difference at equal length, and whether text length can explain the raw difference."""
    plan, raw, word = tests.plan, adjusted.raw, "may be length"
    value, detail = _without_interest(tests, test, s, turn)
    # With unequal clusters the mean over cycles can have the other sign, and is then not comparable.
    if raw.estimate is not None and raw.estimate >= 0:
        equal = {"estimate": value, "p_up": test.p / 2 if (value or 0.0) > 0 else 1 - test.p / 2}
        word = length.length_rule(raw, equal, adjusted.slopes, adjusted.gap, None, plan.inference.alpha)
    slope, covariates = adjusted.slopes[0], plan.claims.covariates
    detail |= {"word": word, "covariates": list(covariates), "gap": float(adjusted.gap[0]), "slope": slope.estimate,
               "slope_p": slope.p, "raw": raw.estimate, "overlap": adjusted.overlap}  # fmt: skip
    if len(adjusted.slopes) > 1:
        detail["slopes"] = [slope.estimate for slope in adjusted.slopes]
        detail["gaps"] = [float(gap) for gap in adjusted.gap]
    named = " and ".join(_COVARIATES[name] for name in covariates)
    method = f"contrast at equal length: each judge's own slope on {named}, judges standing aside for their family"
    return tests.number("length.contrast", labels, value, (test.clusters, "clusters"), method,
                        "undefined: the two cannot be compared at equal length", detail)  # fmt: skip


def _distinct(tests: OrderTests) -> Iterator[Measurement]:
    """Measure whether judges distinguish each dimension from their overall impression, with the correlations."""
    comparisons, plan = tests.found, tests.plan
    names, judges = comparisons.names[1:], comparisons.judges
    if len(names) < 2:
        return
    rows, agents = np.nonzero(~np.isnan(comparisons.cells).any(axis=(2, 3)))
    scores, cluster = comparisons.cells[rows, agents, :, 1:], comparisons.cluster[rows]
    result = matrix = None
    flat = state = "not measurable: no record has a grade from every judge on every dimension"
    if comparisons.in_parts or len(set(comparisons.families)) < 2:
        flat = state = estimates.IN_PARTS if comparisons.in_parts else estimates.ONE_FAMILY
    elif scores.size:
        result = reliability.discriminant(scores, cluster, plan.claims.distinct, plan.level, comparisons.consecutive)
        flat = state = result.state
        try:
            matrix = reliability.multitrait_multimethod(scores, cluster)
        except NotMeasurableError as exc:
            flat = estimates.state_of(exc)
    count, other_judge = (rows.size, "records"), ~np.eye(len(judges), dtype=bool)
    for d, name in enumerate(names):
        test = None if result is None or result.state != "ok" else result.dimensions[d]
        phi, ends, p, p_holm = (None,) * 4 if test is None else (test.phi, (test.low, test.high), test.p, test.p_holm)
        yield number(
            tests.make, "dimension.distinct", {"dimension": name}, phi, count,
            "correlation with the mean of the other dimensions, corrected for disagreement of judges; jackknife",
            state if test is None else "undefined: judges share nothing on it",
            {"p": p, "p_holm": p_holm, "distinct": plan.claims.distinct}, ends, plan.level,
        )  # fmt: skip
        agreed, more = None, dict[str, Any]()
        if matrix is not None:
            # One dimension's rows of the matrix [J, D, J, D], and means of the three kinds of correlations in them.
            row, other = matrix[:, d], np.arange(len(names)) != d
            agreed = float(row[other_judge][:, d].mean())
            more["other_judges"] = float(row[other_judge][:, other].mean())
            more["same_judge"] = float(row[~other_judge][:, other].mean())
            more["matrix"] = {
                judge: {peer: dict(zip(names, values, strict=True)) for peer, values in zip(judges, part, strict=True)}
                for judge, part in zip(judges, row.tolist(), strict=True)
            }
        yield number(tests.make, "dimension.mtmm", {"dimension": name}, agreed, count,
                     "mean correlation of two judges' scores of this dimension within clusters "
                     "(multitrait-multimethod)", flat, more)  # fmt: skip


RESAMPLES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ScoredItems:
    """Scores of several models on the same items."""

    models: tuple[str, ...]
    values: Floats
    clusters: tuple[str, ...]
    parts: tuple[str, ...]
    unscored: Mapping[str, str] = field(default_factory=dict)

    def table(self, clusters: Sequence[str] | None = None) -> Floats:
        """Compute cluster means [G, m], in the order of ``clusters`` (default: by name)."""
        names = sorted(set(self.clusters)) if clusters is None else clusters
        place = {name: g for g, name in enumerate(names)}
        member = np.eye(len(place))[[place[name] for name in self.clusters]]
        return np.asarray((self.values @ member / member.sum(axis=0)).T)

    def of(self, models: Sequence[str]) -> ScoredItems:
        """Select the given models, in the given order."""
        return replace(self, models=tuple(models), values=self.values[[*map(self.models.index, models)]])

    @property
    def scored(self) -> tuple[str, ...]:
        """The models that have a score."""
        return tuple(model for model in self.models if model not in self.unscored)

    def without(self, part: str) -> ScoredItems:
        """Return the items of all parts but one."""
        rows = [k for k, name in enumerate(self.parts) if name != part]
        clusters, parts = (tuple(each[k] for k in rows) for each in (self.clusters, self.parts))
        return ScoredItems(self.models, self.values[:, rows], clusters, parts, self.unscored)

    def gap(self, high: str, low: str) -> float:
        """Compute the mean over clusters of one model's score minus another's."""
        level = self.table().mean(axis=0)
        return float(level[self.models.index(high)] - level[self.models.index(low)])


def level_measurements(name: str, items: ScoredItems, labels: Mapping[str, str], level: float) -> list[Measurement]:
    """Measure the mean score of each model, with a cluster-t interval if there are at least two clusters."""
    levels = []
    for model, row in zip(items.models, items.values, strict=True):
        about, count = {"model": model, **labels}, (row.size, "items")
        if model in items.unscored:
            state = f"no score: {items.unscored[model]}"
            levels.append(number(Measurement, name, about, None, count, "mean", state))
            continue
        tested = contrasts.cluster_t(row, items.clusters, level)
        ends = None if tested.low is None or tested.high is None else (max(0.0, tested.low), min(1.0, tested.high))
        levels.append(number(Measurement, name, about, tested.difference, count, tested.method, "ok", {}, ends, level))
    return levels


def board_measurements(
    boards: Mapping[str, ScoredItems], plan: OrderPlan, others: Mapping[str, ScoredItems] = MappingProxyType({}),
    *, order: ClusterOrder = "exchangeable",
) -> Iterator[Measurement]:  # fmt: skip
    """Measure the levels of models on leaderboards, and everything that claims about their rankings use."""
    first = next(iter(boards.values()))
    clusters = tuple(sorted(set(first.clusters), key=natural if order == "consecutive" else None))
    models, counts = tuple(sorted(first.models)), Counter(first.clusters)
    for name, items in boards.items():
        each = ScoredItems(items.models, items.table(clusters).T, clusters, clusters, items.unscored)
        for measurement in level_measurements("bench.level", each, {"board": name}, plan.level):
            yield replace(measurement, n=len(items.clusters))
    cells = np.stack([items.of(models).table(clusters) for items in boards.values()], axis=2)[:, :, None]
    weight = np.array([counts[cluster] for cluster in clusters])
    table = Comparisons(tuple(boards), models, ("score",), ("score",), None, clusters, np.arange(len(clusters)), weight,
                        cells, None, order, judged=False)  # fmt: skip
    for estimate in order_measurements(table, plan, Measurement):
        if estimate.name != "contrast":
            yield estimate
            continue
        board, pair = estimate.labels["dimension"], (estimate.labels["high"], estimate.labels["low"])
        items, detail = boards[board], dict(estimate.detail)
        if lacking := sorted(set(pair) & set(items.unscored)):
            reason = "; ".join(f"{model} has no score: {items.unscored[model]}" for model in lacking)
            yield replace(estimate, state=reason)
            continue
        if board in others and not set(pair) & set(others[board].unscored):
            detail["other"] = others[board].gap(*pair)
        if len(windows := sorted(set(items.parts))) > 1:
            detail["without"] = {part: items.without(part).gap(*pair) for part in windows}
        yield replace(estimate, detail=detail)


def rank_agreement(
    name: str, one: ScoredItems, two: ScoredItems, labels: Mapping[str, str], *, rng: np.random.Generator, level: float,
    resamples: int = RESAMPLES,
) -> Measurement:  # fmt: skip
    """Measure Spearman's correlation of the models' means on two sets of items, with an interval for these models."""
    if one.models != two.models or len(one.models) < 3:
        checks.fail("rank_agreement", "models", "the same three or more in both sets are needed")
    names = [model for model in one.scored if model not in two.unscored]
    one, two = one.of(names), two.of(names)
    state, rho, ends, detail = f"not defined: needs three models with a score (got {len(names)})", None, None, {}
    if len(names) > 2:
        (rho,) = spearman_columns(one.values.mean(axis=1)[:, None], two.values.mean(axis=1)[:, None])
        state = "not defined: all models are tied in one of the two"
    if rho is not None:
        means = []
        for items in (one, two):  # means [m, R] of every model over clusters drawn with replacement
            clusters, codes = np.unique(np.array(items.clusters), return_inverse=True)
            member, g = np.eye(len(clusters))[codes], len(clusters)
            times = rng.multinomial(g, np.full(g, 1 / g), size=resamples).T.astype(float)
            means.append(np.asarray(((items.values @ member) @ times) / (member.sum(axis=0) @ times)))
        rhos = np.array([value for value in spearman_columns(*means) if value is not None])
        detail = {"undefined": resamples - len(rhos)}
        if len(rhos) >= level * resamples:
            ends = tuple[float, float](percentile_ends(rhos[None], None, level)[:, 0].tolist())
    method = f"Spearman's rank correlation of means over items; {resamples} draws of clusters of either set, percentile"
    return number(Measurement, name, labels, rho, (len(names), "models"), method, state, detail, ends, level)
