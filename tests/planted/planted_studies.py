"""Studies with a known truth, and how often the protocol gets it right."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import count

import numpy as np
from made_cells import band
from numpy.typing import NDArray
from scipy import stats

from assaymark.claims import decide_claims
from assaymark.metrology import (
    Comparisons, Composer, Grades, OrderPlan, OrderTests, Panelist, ScoreTable, Spread, Truth, analyse_orders,
    bootstrap_kappa, bootstrap_tests, categories_of, cluster_t, gated, jackknife_kappa, joined, mean_pairwise_kappa,
    simulate_scores, t_test,
)  # fmt: skip
from assaymark.metrology.panel import Panel, panel_of
from assaymark.protocol import Study, parse_study
from assaymark.records import Claim, Measurement, Verdict
from assaymark.workflow import plan_calls_report

AGENTS = ("ash", "birch", "cedar", "elm")
FAMILIES = ("north", "south", "east")
PANEL = tuple(Panelist(f"judge-{family}", family) for family in FAMILIES)
EQUAL = tuple(Composer(name, 3.0) for name in AGENTS)
DIMENSIONS = ("d0", "d1", "d2", "d3", "d4", "d5")
REGIMES = Spread(0.25, 0.0)
"""Agents react differently to regimes, in each dimension on its own: decisions of one cluster are not independent."""

NULL = Truth(
    composers=EQUAL, panel=PANEL, cycle=Spread(0.3, 1.0), interaction=REGIMES, residual=Spread(0.8, 0.0), cycles=6
)
"""Four equal agents. Every order that is claimed about them is false."""

QUIET = replace(
    NULL, dimensions=("d0", "d1"), interaction=Spread(0.15, 0.5), residual=Spread(0.5, 0.3), cycle=Spread(0.2)
)
"""The same with little noise: hardly any score is cut off at an end of the scale, and means stay where planted."""

LEVELS = (3.3, 3.0, 3.0, 2.75)
PLANTED = replace(QUIET, composers=tuple(Composer(name, mean) for name, mean in zip(AGENTS, LEVELS, strict=True)))
"""A leader, a tie class of two, and a last one."""


def study_of(extra: str = "", *, families: tuple[str, ...] = FAMILIES) -> Study:
    """A plan for the panel of these studies."""
    judges = "".join(
        f'[[judges]]\nname = "judge-{family}"\nmodel = "reference/auditor"\nfamily = "{family}"\n'
        for family in families
    )
    return parse_study(f'name = "planted"\nseed = 1\n{extra}\n{judges}')


def generator(*seed: int) -> np.random.Generator:
    """The one generator of a place in a simulation."""
    return np.random.default_rng(list(seed))


# --- rates ------------------------------------------------------------------------------------------------------------


def in_band(count: int, n: int, rate: float) -> bool:
    """Whether a count agrees with a stated rate."""
    low, high = band(n, rate)
    return low <= count <= high


def panels(truth: Truth, studies: int, *, seed: int) -> Iterator[Panel]:
    """Simulated studies, ready for analysis."""
    plan = study_of()
    for number in range(studies):
        yield panel_of(simulate_scores(truth, generator(seed, number)), plan)


# --- contrasts --------------------------------------------------------------------------------------------------------


def contrast_coverage(truth: Truth, studies: int, *, seed: int, test: str = "cluster-t") -> int:
    """In how many studies the interval of the first pair's aggregate contrast contains the planted difference."""
    first, second = truth.means[0], truth.means[1]
    planted = float((first - second) @ truth.shares)
    covered = 0
    for number, panel in enumerate(panels(truth, studies, seed=seed)):
        if test == "moderated-t":
            tested = OrderTests(Comparisons.of_table(panel.table, panel.study), OrderPlan.of(panel.study)).panel
            covered += bool(abs(tested.gap[0, 0] - planted) <= stats.t.ppf(0.975, tested.df[0, 0]) * tested.se[0, 0])
            continue
        sums, sizes = panel.meetings[0][0][:, :1], panel.meetings[0][1]
        if test == "cluster-t":
            found = t_test(sums, sizes)
        else:
            rng = generator(seed, number, 1)
            (found,) = bootstrap_tests([(sums, sizes)], resamples=2000, rng=rng, intervals=True)
        covered += bool(found.low[0] <= planted <= found.high[0])
    return covered


def halo_of(panel: Panel, family: str) -> tuple[float, float, float]:
    """The family's share in the first pair's aggregate contrast, with its cluster t interval."""
    sums, cycles = panel.meetings[0]
    without = panel.block(panel.drops[family]).start
    found = t_test(sums[:, [0]] - sums[:, [without]], cycles)
    return float(found.difference[0]), float(found.low[0]), float(found.high[0])


def terse_effect(table: ScoreTable, agent: int, threshold: int) -> tuple[float, float, float]:
    """Panel score of one agent's short texts minus that of its longer ones, by cluster, with a cluster t interval."""
    score = table.stacked[:, :, 0].mean(axis=1)
    gaps, names = [], []
    for k in range(len(table.clusters)):
        rows = (table.cluster == k) & (table.agent == agent)
        short = rows & (table.lengths < threshold)
        if short.any() and (rows & ~short).any():
            gaps.append(float(score[short].mean() - score[rows & ~short].mean()))
            names.append(k)
    found = cluster_t(gaps, names)
    assert found.low is not None
    assert found.high is not None
    return found.difference, found.low, found.high


# --- agreement --------------------------------------------------------------------------------------------------------


def ratings_of(table: ScoreTable) -> NDArray[np.int64]:
    """Aggregate ratings [n, J] as kappa reads them."""
    return categories_of(table.stacked[:, :, 0])


@cache
def expected_kappa(truth: Truth, *, clusters: int = 3000, seed: int = 99) -> float:
    """Mean pairwise kappa of the aggregate in a study of very many clusters."""
    return mean_pairwise_kappa(ratings_of(simulate_scores(replace(truth, clusters=clusters), generator(seed))))


def kappa_coverage(truth: Truth, studies: int, *, seed: int) -> tuple[int, int]:
    """In how many studies the jackknife and the bootstrap interval of kappa contain the expected kappa."""
    expected, found = expected_kappa(truth), np.zeros(2, dtype=int)
    for number in range(studies):
        table = simulate_scores(truth, generator(seed, number))
        ratings, rng = ratings_of(table), generator(seed, number, 1)
        both = (jackknife_kappa(ratings, table.cluster),
                bootstrap_kappa(ratings, table.cluster, resamples=2000, rng=rng))  # fmt: skip
        found += [one.low <= expected <= one.high for one in both]
    return int(found[0]), int(found[1])


# --- tables with what `simulate_scores` does not plant ----------------------------------------------------------------


def of_families(table: ScoreTable, truth: Truth) -> ScoreTable:
    """The table with the makers of its agents; an agent of no family is its own."""
    return replace(table, agent_families={one.name: one.family or one.name for one in truth.composers})


def liking_length(table: ScoreTable, slope: float) -> ScoreTable:
    """The table of judges that give ``slope`` points more for each doubling of a text."""
    extra = slope * (np.log2(table.lengths) - np.log2(table.lengths).mean())
    return replace(table, scores=np.clip(table.scores + extra[:, None, None], 1, 5))


def refusing(table: ScoreTable, judge: int, rows: NDArray[np.bool_]) -> ScoreTable:
    """The table of a study in which one judge gave some records no usable reply."""
    values = table.scores[rows].copy()
    values[:, judge] = np.nan
    names = np.array(table.trajectories)
    lacking = np.zeros((len(table.judges), len(table.agents)), dtype=np.int64)
    np.add.at(lacking[judge], table.agent[rows], 1)
    return replace(
        table,
        trajectories=tuple(names[~rows].tolist()),
        agent=table.agent[~rows],
        cycle=table.cycle[~rows],
        cluster=table.cluster[~rows],
        format=table.format[~rows],
        scores=table.scores[~rows],
        lengths=table.lengths[~rows],
        left_out=tuple(names[rows].tolist()),
        incomplete=Grades(
            values=values,
            agent=table.agent[rows],
            cycle=table.cycle[rows],
            cluster=table.cluster[rows],
            trajectories=tuple(names[rows].tolist()),
            lengths=table.lengths[rows],
        ),
        lacking=lacking,
    )


# --- verdicts ---------------------------------------------------------------------------------------------------------

Change = Callable[[ScoreTable], ScoreTable]


def simulated(truth: Truth, *seed: int, change: Change = lambda table: table) -> ScoreTable:
    """One study, with the makers of its agents, after a ``change``."""
    return change(of_families(simulate_scores(truth, generator(*seed)), truth))


def unmeasured(table: ScoreTable) -> ScoreTable:
    """Without lengths, which make no difference to whether an order may be claimed at all."""
    return replace(table, lengths=None)


def verdicts_on(table: ScoreTable, plan: Study) -> tuple[Verdict, ...]:
    """What a plan says of orders in a study, from what they rest on alone."""
    return decide_claims(analyse_orders(table, plan, generator(1)), plan, "hash", variants=False)


def asserted(verdicts: Iterable[Verdict], dimension: str | None = None) -> list[Verdict]:
    """The orders that may be claimed (on one scale)."""
    return [one for one in verdicts if one.claim.asserts_order and one.publication_level != "no-claim"
            and dimension in (None, one.claim.dimension)]  # fmt: skip


def claimed(table: ScoreTable, plan: Study) -> list[Verdict]:
    """The orders that may be claimed of a study: none unless the tests of the whole panel alone resolve one."""
    found = Comparisons.of_table(gated(table, plan), plan)
    if plan.claims.dimensions:  # the overall score comes first: without it nothing else is claimed
        records = None if found.records is None else (found.records[0][..., :1], *found.records[1:])
        found = replace(found, names=found.names[:1], cells=found.cells[..., :1], records=records)
    tests = OrderTests(found, OrderPlan.of(plan))
    return asserted(verdicts_on(table, plan)) if tests.resolved.any() else []


def headline_if_passed(verdict: Verdict) -> bool:
    """Whether the claim would be a headline had the panel passed the control cells."""
    others = {cap.field for cap in verdict.caps if not cap.lifted} - {"adversarial"}
    return verdict.publication_level != "no-claim" and not others


# --- planning ---------------------------------------------------------------------------------------------------------


def calibration(
    plan: Study, *, spread: float, pilots: int, studies: int, budget: int, seed: int
) -> tuple[float, float]:
    """Mean predicted and mean real share of extended studies that reach the next level, over pilot studies.
    A pilot has three agents whose levels have the standard deviation ``spread``, and a leader that cannot be claimed
    yet. It is planned by `plan_calls_report` and then extended ``studies`` times from its truth, under the recommended
    one of the options that add cycles."""
    pairs: list[tuple[float, float]] = []
    for number in count(1):
        truth = _random_levels(spread, seed, number)
        table = simulated(truth, seed, number)
        found = analyse_orders(table, plan, generator(seed, number, 1))
        (first,) = (v for v in decide_claims(found, plan, "hash", variants=False) if _is_leader(found, v.claim))
        if first.publication_level != "no-claim":
            continue
        result = plan_calls_report(table, plan, [first], found, budget_calls=budget, seed=number, studies=studies)
        chosen = result.recommended()
        if result.focus is None or chosen is None or "cycles" not in chosen.name:
            continue
        cycles, clusters = (int(word) for word in chosen.words.split() if word.isdigit())
        later = replace(truth, clusters=clusters, cycles=cycles // clusters)
        reached = 0
        for repeat in range(studies):
            rng = generator(seed, number, 2, repeat)
            both = joined(table, simulate_scores(later, rng), rng)
            reached += result.focus.claim.id in {v.claim.id for v in claimed(both, plan)}
        pairs.append((result.prospects[result.focus.claim.id, chosen.name].probability, reached / studies))
        if len(pairs) == pilots:
            break
    one, two = np.array(pairs).T
    return float(one.mean()), float(two.mean())


def _random_levels(spread: float, seed: int, number: int) -> Truth:
    rng = generator(seed, number, 3)
    means = 3.0 + spread * rng.standard_normal(3)
    composers = tuple(Composer(name, mean) for name, mean in zip(AGENTS[:3], means.tolist(), strict=True))
    return replace(QUIET, composers=composers, dimensions=("d0",), cycles=6)


def _is_leader(measurements: Sequence[Measurement], claim: Claim) -> bool:
    """Whether a claim is about the agent with the highest aggregate."""
    levels = {
        item.labels["agent"]: item.value or 0.0
        for item in measurements
        if item.name == "score.effect" and item.labels["dimension"] == claim.dimension == "aggregate"
    }
    return bool(levels) and claim.subjects == (max(levels, key=levels.__getitem__),)
