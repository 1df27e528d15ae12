"""Measurements that an order of agents rests on: every pair under every test, and what may explain the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy import special

from assaymark.errors import NotMeasurableError
from assaymark.metrology.checks import Floats
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.design import detectable_levels
from assaymark.metrology.dimensions import (
    Discriminant,
    DistinctDimension,
    discriminant,
    multitrait_multimethod,
    specific_contrast,
)
from assaymark.metrology.kappa import Estimate
from assaymark.metrology.length import LengthAdjusted, adjusted_pairs, length_p, length_rule, usable_cells
from assaymark.metrology.measure_kappa import ONE_FAMILY
from assaymark.metrology.moderated import FEWEST_CLUSTERS, minimum_detectable_gap
from assaymark.metrology.order_tests import OTHER_MARGINS, OrderPlan, OrderTests
from assaymark.metrology.orders import equivalence_p
from assaymark.metrology.panel import state_of
from assaymark.metrology.recusal import RecusalTest, own_family, recusal_p
from assaymark.metrology.reliability import random_judges
from assaymark.metrology.serial import FEWEST_CONSECUTIVE, autocorrelations
from assaymark.records import JSON, Measurement

if TYPE_CHECKING:
    from assaymark.metrology.paired import PairTests


_COVARIATES: Final[Mapping[str, str]] = {
    "log2": "log2 words", "digits": "digits", "lists": "list items", "hedges": "hedging words"
}  # fmt: skip

Maker = Callable[..., Measurement]


def order_measurements(
    found: Comparisons, plan: OrderPlan, make: Maker, other: PairTests | None = None
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
        yield make(
            "panel.families",
            {},
            value=float(len(set(found.families))),
            n=len(found.judges),
            n_of="judges",
            method="families of judges; a judge without a family counts as one",
            detail={
                "unknown": " and ".join(lacking),
                "own": shared,
                "in_parts": found.in_parts,
                "missing": found.missing,
            },
        )
    if len(found.agents) > 1:
        yield from _contrasts(tests, make, other)
    if found.judged:
        yield from _own_family(tests, make)
        yield from _distinct(tests, make)
    if len(found.agents) > 1:
        yield from _designs(tests, make)


# --- pairs ----------------------------------------------------------------------------------------------------------


def _contrasts(tests: OrderTests, make: Maker, other: PairTests | None) -> Iterator[Measurement]:
    found, panel = tests.found, tests.panel
    half = panel.half(tests.plan.level)
    rows = _OtherRows.of(tests, other)
    for s, name in enumerate(found.names):
        recused = _recused(tests, s)
        families = np.array(found.families)
        means = found.judge_means[s]
        by_family = np.stack([means[:, families == family].mean(axis=1) for family in dict.fromkeys(found.families)])
        equal = _at_equal_length(tests, s)
        for k, pair in enumerate(found.pairs):
            turn = -1.0 if panel.gap[k, s] < 0 else 1.0
            first, second = found.agents[pair[0]], found.agents[pair[1]]
            labels = {
                "dimension": name,
                **({"high": first, "low": second} if turn > 0 else {"high": second, "low": first}),
            }
            yield _contrast(tests, make, labels, k, s, turn, float(half[k, s]), rows)
            yield from _dropped(tests, make, labels, k, s, turn)
            if (one := recused.get(pair)) is not None:
                yield _recusal(tests, make, labels, pair, s, turn, one)
            if equal is not None and pair in equal.adjusted:
                yield _length(tests, make, labels, pair, s, turn, equal)
            if len(by_family) > 2:
                yield _others(tests, make, labels, pair, turn, by_family)


def cannot_be_tested(clusters: int, *, consecutive: bool) -> str:
    """Why a pair has no test."""
    shared = f"{clusters} common cluster{'' if clusters == 1 else 's'}"
    if consecutive:
        return f"cannot be tested ({shared} that follow each other in time; {FEWEST_CONSECUTIVE} are needed)"
    return f"cannot be tested ({shared}; {FEWEST_CLUSTERS} are needed, 5 or more to have a chance)"


def _contrast(
    tests: OrderTests, make: Maker, labels: dict[str, str], k: int, s: int, turn: float, half: float, rows: _OtherRows
) -> Measurement:
    found, panel, gaps = tests.found, tests.panel, tests.gaps
    cycles = gaps.cycles[:, k]
    there = cycles > 0
    sums = {
        found.clusters[g]: [turn * float(gaps.means[g, k, s]) * int(cycles[g]) + 0.0, int(cycles[g])]
        for g in np.flatnonzero(there)
    }
    detail = panel.detail(k, s) | {"cluster_sums": sums, "resolved": bool(tests.resolved[k, s])} | rows.of_pair(k, s)
    common: dict[str, Any] = {"n": int(cycles.sum()), "n_of": f"common {tests.plan.cycle}s", "unit": tests.plan.unit}
    value = None if not there.any() else turn * float(panel.gap[k, s]) + 0.0
    if value is None or not panel.testable[k]:
        why = cannot_be_tested(int(panel.clusters[k]), consecutive=found.consecutive)
        method = "mean over clusters of the paired difference within common cycles"
        return make("contrast", labels, value=None, state=why, method=method, detail=detail | {"gap": value}, **common)
    level = tests.plan.level
    if s == 0:
        gap, se, df = (float(column[k, s]) for column in (panel.gap, panel.se, panel.df))
        detail |= _equivalence(gap, se, df, int(panel.clusters[k]), tests)
        # Two one-sided tests at 1 - level go with the interval of 2 level - 1.
        inner = float(special.stdtrit(panel.df[k, s], level) * panel.se[k, s])
        detail["equivalence_interval"] = None if math.isnan(inner) else [value - inner, value + inner]
    elif found.judged and len(found.names) > 2:
        means = turn * tests.gaps.means[:, k, 1:]
        others = np.delete(tests.panel.gap[k, 1:], s - 1)
        specific = specific_contrast(means, np.arange(len(means)), s - 1, consecutive=tests.found.consecutive)
        detail |= {"others": turn * float(others.mean()) + 0.0, "p_specific": float(specific.p_up)}
    known = math.isfinite(half) and half > 0
    return make(
        "contrast",
        labels,
        value=value,
        method=f"mean over clusters of the paired difference within common cycles; {panel.method(k, s)}",
        low=value - half if known else None,
        high=value + half if known else None,
        level=level if known else None,
        detail=detail,
        **common,
    )


def _equivalence(
    gap: float | None, se: float | None, df: float | None, clusters: int, tests: OrderTests
) -> dict[str, JSON]:
    """The p-values of "no further apart than the margin": the plan's, and the margins that are tried beside it."""
    margins = [share * tests.plan.span for share in OTHER_MARGINS]
    other: dict[str, JSON] = {f"{one:g}": equivalence_p(gap, se, df, clusters, one) for one in margins}
    return {"p_equivalence": equivalence_p(gap, se, df, clusters, tests.delta), "p_equivalence_at": other}


def _dropped(
    tests: OrderTests, make: Maker, labels: dict[str, str], k: int, s: int, turn: float
) -> Iterator[Measurement]:
    """The same difference without each family, in the same direction: negative is reversed."""
    for family, one in tests.drops.items():
        comparable = one.clusters[k] > 0
        detail = one.detail(k, s) | {"p_adjusted": float(tests.adjusted_without[family][k, s])}
        if s == 0:
            detail["within"] = bool(abs(one.gap[k, s]) < tests.delta)
        yield make(
            "lofo.contrast",
            {**labels, "dropped": family},
            value=turn * float(one.gap[k, s]) + 0.0 if comparable else None,
            n=int(one.clusters[k]),
            n_of="common clusters",
            method=f"mean over clusters without the family; {one.method(k, s)}"
            if one.testable[k]
            else "mean over clusters without the family",
            state="ok" if comparable else "never compared",
            unit=tests.plan.unit,
            detail=detail,
        )


# --- what may explain a difference ----------------------------------------------------------------------------------


def _recused(tests: OrderTests, s: int) -> Mapping[tuple[int, int], RecusalTest | None]:
    """The contrast of every conflicted pair with judges standing aside for their own family."""
    found = tests.found
    if not found.own.any():
        return {}
    return recusal_p(found.judge_means[s], found.own, borrow=tests.borrow, consecutive=found.consecutive)


def _recusal(
    tests: OrderTests,
    make: Maker,
    labels: dict[str, str],
    pair: tuple[int, int],
    s: int,
    turn: float,
    one: RecusalTest,
) -> Measurement:
    found, level = tests.found, tests.plan.level
    aside = found.own[:, pair[0]] | found.own[:, pair[1]]
    families = sorted({found.families[j] for j in np.flatnonzero(aside)})
    value, detail = _without_interest(tests, one, s, turn)
    detail |= {"families": list(families), "free": [found.judges[j] for j in np.flatnonzero(~aside)]}
    half = None if one.se is None or one.df is None else float(special.stdtrit(one.df, 0.5 + level / 2)) * one.se
    wide = value is not None and half is not None and half > 0
    return make(
        "recusal.contrast",
        labels,
        value=value,
        n=int(one.clusters),
        n_of="clusters",
        method="judges stand aside for agents of their own family: judge + agent fit on the other cells of a cluster",
        state="undefined: every judge shares its family with one of the two" if value is None else "ok",
        low=value - half if wide and value is not None and half is not None else None,
        high=value + half if wide and value is not None and half is not None else None,
        level=level if wide else None,
        unit=tests.plan.unit,
        detail=detail,
    )


@dataclass(frozen=True, slots=True)
class _EqualLength:
    """All pairs of one scale at equal length: the contrasts that gate headlines, and the panel's own with its slope."""

    gating: Mapping[tuple[int, int], RecusalTest]
    adjusted: Mapping[tuple[int, int], LengthAdjusted]


def _at_equal_length(tests: OrderTests, s: int) -> _EqualLength | None:
    found, plan = tests.found, tests.plan
    if found.lengths is None:
        return None
    scores = np.ascontiguousarray(found.cells[..., s].transpose(0, 2, 1))
    gating = length_p(
        scores, found.lengths, found.cluster, found.own, borrow=tests.borrow, consecutive=found.consecutive
    )
    used = usable_cells(found.panel[..., s], found.lengths)
    turned = {
        pair: pair if gap >= 0 else pair[::-1]
        for pair, gap in zip(found.pairs, tests.panel.gap[:, s], strict=True)
        if (used[:, pair[0]] & used[:, pair[1]]).any()
    }
    adjusted = adjusted_pairs(
        found.panel[..., s],
        found.lengths,
        found.cluster,
        list(turned.values()),
        level=plan.level,
        consecutive=found.consecutive,
    )
    return _EqualLength(gating, dict(zip(turned, adjusted, strict=True)))


def _length(
    tests: OrderTests,
    make: Maker,
    labels: dict[str, str],
    pair: tuple[int, int],
    s: int,
    turn: float,
    equal: _EqualLength,
) -> Measurement:
    """The difference at equal length, and how a longer text may explain it."""
    plan, one, adjusted = tests.plan, equal.gating[pair], equal.adjusted[pair]
    contrast = Estimate(
        None if one.difference is None else turn * one.difference, one.se, one.df, None, None, one.p,
        one.p / 2 if (turn * (one.difference or 0.0)) > 0 else 1 - one.p / 2, one.state,
    )  # fmt: skip
    word = "may be length"
    # Unequal clusters can turn the mean over cycles, which then says nothing of what length explains.
    if adjusted.raw.estimate is not None and adjusted.raw.estimate >= 0:
        word = length_rule(adjusted.raw, contrast, adjusted.slopes, adjusted.gap, alpha=plan.inference.alpha)
    slope = adjusted.slopes[0]
    value, detail = _without_interest(tests, one, s, turn)
    detail |= {
        "word": word,
        "covariates": list(plan.claims.covariates),
        "gap": float(adjusted.gap[0]),
        "slope": slope.estimate,
        "slope_p": slope.p,
        "raw": adjusted.raw.estimate,
        "overlap": adjusted.overlap,
    }
    if len(adjusted.slopes) > 1:
        detail["slopes"] = [found.estimate for found in adjusted.slopes]
        detail["gaps"] = [float(gap) for gap in adjusted.gap]
    return make(
        "length.contrast",
        labels,
        value=value,
        n=int(one.clusters),
        n_of="clusters",
        method="contrast at equal length: each judge's own slope on "
        f"{' and '.join(_COVARIATES[name] for name in plan.claims.covariates)}, judges standing aside for their family",
        state="undefined: the two cannot be compared at equal length" if value is None else "ok",
        unit=tests.plan.unit,
        detail=detail,
    )


def _without_interest(tests: OrderTests, one: RecusalTest, s: int, turn: float) -> tuple[float | None, dict[str, JSON]]:
    """A contrast without interested judges, in the panel's direction (None: nothing to compare), and its test."""
    detail: dict[str, JSON] = {"p": float(one.p), "se": one.se, "df": one.df, "clusters": int(one.clusters)}
    if one.difference is None or not one.clusters:
        return None, detail
    if s == 0:
        detail |= _equivalence(one.difference, one.se, one.df, one.clusters, tests)
    return turn * one.difference + 0.0, detail


def _others(
    tests: OrderTests, make: Maker, labels: dict[str, str], pair: tuple[int, int], turn: float, by_family: Floats
) -> Measurement:
    """Whether other judges like these would agree: judge families as a sample."""
    found = tests.found
    contrast = turn * (by_family[:, :, pair[0]] - by_family[:, :, pair[1]])
    one = random_judges(contrast[:, ~np.isnan(contrast).any(axis=0)], level=tests.plan.level,
                        consecutive=found.consecutive)  # fmt: skip
    known = one.estimate is not None and one.state == "ok"
    return make(
        "judges.contrast",
        labels,
        value=one.estimate if known else None,
        n=len(by_family),
        n_of="judge families",
        method="two-way variance of judge families and clusters, and t of the families' own contrasts; the larger p",
        state=one.state,
        low=one.low if known else None,
        high=one.high if known else None,
        level=tests.plan.level if known and one.low is not None else None,
        unit=tests.plan.unit,
        detail={"p": one.p, "df": one.df, "se": one.se},
    )


@dataclass(frozen=True, slots=True)
class _OtherRows:
    """p-values of the other tests of a pair, by the name that they have in a contrast's detail."""

    p: Mapping[str, Floats]

    @classmethod
    def of(cls, tests: OrderTests, other: PairTests | None) -> _OtherRows:
        # Clusters in time order never borrow: the test would be the same.
        found = {} if tests.found.consecutive else {"p_own_variance": tests.tested(tests.gaps, borrow=False).p}
        if other is not None:
            width = len(tests.found.names)
            found |= {f"p_{test.replace('-', '_')}": other.p(test, width) for test in other.tested}
        return cls(found)

    def of_pair(self, k: int, s: int) -> dict[str, JSON]:
        return {name: float(values[k, s]) for name, values in self.p.items()}


# --- judges and dimensions ------------------------------------------------------------------------------------------


def _own_family(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """How much more each judge gives agents of its own family than the other judges do."""
    found = tests.found
    if not found.own.any() or len(found.agents) < 2:
        return
    for s, name in enumerate(found.names):
        result = own_family(found.judge_means[s], found.own, level=tests.plan.level, consecutive=found.consecutive)
        shown = [(found.judges[j], one, p) for j, one, p in zip(
            result.judges, result.by_judge or (), result.p_holm or (), strict=False)]  # fmt: skip
        for judge, one, p in [*shown, ("common", result.common, None)]:
            if one is None:
                continue
            known = one.estimate is not None
            yield make(
                "judge.own_family",
                {"dimension": name, "judge": judge},
                value=one.estimate,
                n=len(found.clusters),
                n_of="clusters",
                method="judge + agent + own family fit in each cluster, t over clusters",
                state="ok" if known else one.state,
                low=one.low,
                high=one.high,
                level=tests.plan.level if one.low is not None else None,
                unit=tests.plan.unit,
                detail={"p": one.p, "p_holm": p},
            )


def _distinct(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """Whether the judges tell each dimension from their overall impression, and the correlations that show it."""
    found, plan = tests.found, tests.plan
    if len(found.names) < 3:
        return
    whole = ~np.isnan(found.cells).any(axis=(2, 3))
    rows, agents = np.nonzero(whole)
    scores = found.cells[rows, agents, :, 1:]
    cluster = found.cluster[rows]
    result, matrix, flat = None, None, ""
    if scores.size and not found.in_parts and len(set(found.families)) > 1:
        try:
            matrix = multitrait_multimethod(scores, cluster)
        except NotMeasurableError as exc:
            flat = state_of(exc)
        result = discriminant(
            scores,
            cluster,
            distinct=plan.claims.distinct,
            level=plan.level,
            consecutive=found.consecutive,
        )
    for d, name in enumerate(found.names[1:]):
        one = None if result is None or result.state != "ok" else result.dimensions[d]
        yield make(
            "dimension.distinct",
            {"dimension": name},
            value=None if one is None else one.phi,
            n=int(rows.size),
            n_of="records",
            method="correlation with the mean of the other dimensions, corrected for disagreement of judges; jackknife",
            state="ok" if one is not None and one.phi is not None else _state_of(found, result, one),
            low=None if one is None else one.low,
            high=None if one is None else one.high,
            level=plan.level if one is not None and one.low is not None else None,
            detail={"p": None if one is None else one.p, "p_holm": None if one is None else one.p_holm,
                    "distinct": plan.claims.distinct},
        )  # fmt: skip
        yield make(
            "dimension.mtmm",
            {"dimension": name},
            n=int(rows.size),
            n_of="records",
            method="mean correlation of two judges' scores of this dimension within clusters (multitrait-multimethod)",
            **({"value": None, "state": flat or _state_of(found, result, None)} if matrix is None
               else _correlations(found, matrix, d)),
        )  # fmt: skip


def _correlations(found: Comparisons, matrix: Floats, d: int) -> dict[str, Any]:
    """One dimension's rows of the matrix [J, D, J, D], and means of the three kinds of correlations in them."""
    other_judge, other = ~np.eye(len(found.judges), dtype=bool), np.arange(matrix.shape[1]) != d
    rows = matrix[:, d]
    detail = {
        "other_judges": float(rows[other_judge][:, other].mean()),
        "same_judge": float(rows[~other_judge][:, other].mean()),
        "matrix": {
            judge: {
                one: dict(zip(found.names[1:], values, strict=True))
                for one, values in zip(found.judges, row, strict=True)
            }
            for judge, row in zip(found.judges, rows.tolist(), strict=True)
        },
    }
    return {"value": float(rows[other_judge][:, d].mean()), "detail": detail}


def _state_of(found: Comparisons, result: Discriminant | None, one: DistinctDimension | None) -> str:
    if found.in_parts:
        return "not measurable: the table was read in parts, of which only sums were kept"
    if len(set(found.families)) < 2:
        return ONE_FAMILY
    if result is None:
        return "not measurable: no record has a grade from every judge on every dimension"
    return result.state if one is None else "undefined: judges share nothing on it"


# --- the design -----------------------------------------------------------------------------------------------------


def _designs(tests: OrderTests, make: Maker) -> Iterator[Measurement]:
    """Dependence of clusters that follow each other, and the smallest gap that this design can find."""
    found = tests.found
    for s, name in enumerate(found.names):
        levels = tests.gaps.levels[:, :, s]
        levels = levels[:, ~np.isnan(levels).all(axis=0)]  # an agent that is nowhere says nothing of those that are
        lags, flag = autocorrelations(levels) if levels.size else ([], None)
        yield make(
            "order.autocorrelation",
            {"dimension": name},
            value=lags[0] if lags else None,
            n=len(found.clusters),
            n_of="clusters",
            method="lag-1 autocorrelation of the agents' cluster means, centred by agent and cluster",
            state="ok" if lags else "undefined: too few clusters",
            detail={"lags": lags, "flagged": bool(lags and flag is not None and lags[0] > flag), "flag": flag,
                    "order": found.order},
        )  # fmt: skip
    plan, panel = tests.plan, tests.panel
    agents = len(tests.found.agents)
    pairs = agents * (agents - 1) // 2
    share = plan.inference.aggregate_share if tests.shared else 1.0
    alpha = share * plan.inference.alpha
    leader, single = detectable_levels(agents, alpha)
    rows = np.flatnonzero(panel.testable & ~np.isnan(panel.df[:, 0]))
    detail: dict[str, JSON] = {
        "alpha_aggregate": alpha,
        "leader": None,
        "pair": None,
        "power": plan.power,
    }
    if rows.size:
        se, df = float(np.median(panel.se[rows, 0])), float(np.median(panel.df[rows, 0]))
        detail |= {
            "leader": minimum_detectable_gap(se, df, leader, power=plan.power),
            "pair": minimum_detectable_gap(se, df, single, power=plan.power),
        }
    yield make(
        "order.detectable",
        {"dimension": tests.found.names[0]},
        value=detail["leader"],
        n=pairs,
        n_of="pairs",
        method="noncentral t with the median standard error and degrees of freedom of the tested pairs",
        state="ok" if rows.size else "undefined: no pair can be tested",
        unit=tests.plan.unit,
        detail=detail,
    )
