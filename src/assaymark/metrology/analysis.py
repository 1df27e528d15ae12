"""The complete analysis of a score table, or of its sums, under a plan: one call makes all measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import cast

import numpy as np

from assaymark.metrology import measure_panel
from assaymark.metrology.bootstrap import KappaSums
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.estimates import number
from assaymark.metrology.kappa import averaging, drops_of, gated, judge_pairs
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.measure_people import Labels, people_measurements
from assaymark.metrology.orders import OrderPlan
from assaymark.metrology.panel import (
    Design,
    Levels,
    Panel,
    level_measurements,
    pair_tests,
    panel_of,
    rank_measurements,
    single_measurements,
)
from assaymark.metrology.scores import MISSING_SCORE, CallCounts, ScoreTable
from assaymark.metrology.sums import ScoreSums
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Measurement

Progress = Callable[[str], None] | None
"""A callback that receives the name of each part before the part starts."""


def analyse(
    table: ScoreTable, study: Study, rng: np.random.Generator,
    style: Mapping[str, Mapping[str, float]] | None = None, people: Labels | None = None, *, progress: Progress = None,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Make every measurement of judges and agents that the plan requires; an unmeasurable one has a reason instead.

    A judge whose trials may not be averaged counts with its first trial. ``style`` has the plan's covariates other than
    length, by name and trajectory; ``people`` are human grades. Equal inputs give equal results.
    """
    note = progress or (lambda _part: None)
    panel = panel_of(gated(table, study), study)
    note("agreement")
    comparisons = Comparisons.of_table(panel.table, study, style)
    if study.rubric.coefficient == "alpha":
        measured = list(measure_panel.alpha_agreement(comparisons, study.rubric, panel.level, panel.measure))
    else:
        measured = list(measure_panel.agreement_measurements(panel, rng))
    plan, other = (averaging(panel.table, study, ddof=d) for d in (study.inference.ddof, 1 - study.inference.ddof))
    if plan != other and study.rubric.coefficient != "alpha":
        measured += measure_panel.other_ddof_measurements(panel, gated(panel.table, study, other))
    note("judges")
    measured += measure_panel.judge_measurements(panel)
    note("levels")
    levels = panel.design.levels_with_ends(panel.level)
    whole = panel
    if comparisons.missing and study.rubric.coefficient == "alpha":
        places = {
            0: list(range(len(comparisons.judges))),
            **{panel.drops[family]: keep for family, keep in comparisons.drops.items()},
        }
        patched, first = tuple(part.copy() for part in levels), panel.design
        for place, judges in places.items():
            scores, part = comparisons.fitted(judges)
            row, agent = np.nonzero(~np.isnan(scores[..., 0]))
            _, at, cycle = np.unique(np.stack([row, part[row, agent]]), axis=1, return_index=True, return_inverse=True)
            refit = Design.of(
                scores[row, agent], agent, cycle.ravel(), comparisons.cluster[row[at]], len(comparisons.agents)
            )
            first = first if place else refit
            for into, values in zip(patched, refit.levels_with_ends(panel.level), strict=True):
                into[:, panel.block(place)] = values
        levels, design = (patched[0], patched[1], patched[2]), first
        whole = replace(panel, design=design)
    measured += level_measurements(whole, levels)
    note("contrasts")
    measured += _comparisons(panel, comparisons, levels, rng)
    if people is not None:
        rules, contrasts = study.inference, [measurement for measurement in measured if measurement.name == "contrast"]
        measured += people_measurements(
            comparisons, people, contrasts, panel.measure, panel.table.weights, study.scale,
            study.human.passed_from(*study.scale), study.rubric.coefficient, rules.alpha, panel.level,
            OrderPlan.of(study).unit, power=rules.mde_power,
        )  # fmt: skip
    return tuple(measured)


def analyse_orders(table: ScoreTable, study: Study, rng: np.random.Generator) -> tuple[Measurement, ...]:
    """Make only the measurements of `analyse` needed for verdicts on rankings, for many simulated studies.

    Measurements used by other rules, control conditions and pages are omitted. If the plan makes no claims about
    dimensions, dimensions have no contrasts.
    """
    panel = panel_of(gated(table, study), study)
    (levels,) = panel.design.levels(np.ones((1, panel.design.clusters)))
    comparisons = Comparisons.of_table(panel.table, study)
    if study.claims.dimensions == (AGGREGATE,):  # the first scale alone
        whole = None if comparisons.records is None else (comparisons.records[0][..., :1], *comparisons.records[1:])
        comparisons = replace(comparisons, names=comparisons.names[:1], cells=comparisons.cells[..., :1], records=whole)
    effects = [
        number(panel.measure, "score.effect", {"dimension": name, "agent": agent}, levels[a, s], (1, "level"), "")
        for s, name in enumerate(panel.names)
        for a, agent in enumerate(table.agents)
    ]
    dropped = [
        number(panel.measure, "lofo.rho", {"dimension": AGGREGATE, "dropped": family}, None, (1, "family"), "")
        for family in dict.fromkeys(table.families)
    ]
    agreed = (
        measure_panel.alpha_agreement(comparisons, study.rubric, panel.level, panel.measure)
        if study.rubric.coefficient == "alpha"
        else measure_panel.agreement_measurements(panel, rng)
    )
    judges = measure_panel.judge_measurements(panel)
    return (*agreed, *judges, *effects, *dropped, *order_measurements(comparisons, OrderPlan.of(study), panel.measure))


def _comparisons(panel: Panel, table: Comparisons, levels: Levels, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure contrasts, the results of each judge alone, and the ranks over resamples."""
    tests = pair_tests(panel, rng)
    yield from order_measurements(table, OrderPlan.of(panel.study), panel.measure, tests)
    yield from measure_panel.alpha_measurements(table, panel.level, panel.measure)
    yield from measure_panel.variance_measurements(table, panel.measure)
    yield from single_measurements(panel, levels, tests)
    yield from rank_measurements(panel, rng)


def analyse_sums(
    sums: ScoreSums, study: Study, *, rng: np.random.Generator, progress: Progress = None
) -> tuple[Measurement, ...]:
    """Make the measurements of `analyse` for a table without repeated trials and replicates, from its sums alone."""
    note = progress or (lambda _part: None)
    panel = panel_of_sums(sums, study)
    note("agreement")
    measurements = list(pooled_agreement(panel, sums, rng))
    note("judges")
    measurements += measure_panel.judge_measurements(panel)
    note("levels")
    levels = panel.design.levels_with_ends(panel.level)
    for item in level_measurements(panel, levels):
        if item.name == "score.length_correlation" and sums.lengths is not None and sums.n:
            n, (x, xx, y, yy, xy) = sums.n, sums.lengths
            spread = (n * xx - x * x) * (n * yy - y * y)
            if n < 3 or spread <= 0:
                measurements.append(replace(item, state="undefined: fewer than three trajectories, or no variation"))
            else:
                measurements.append(replace(item, value=(n * xy - x * y) / math.sqrt(spread), state="ok"))
        else:
            measurements.append(item)
    note("contrasts")
    return (*measurements, *_comparisons(panel, Comparisons.of_sums(sums, study), levels, rng))


def pooled_agreement(panel: Panel, sums: ScoreSums, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure `agreement` from contingency tables, with the results of `agreement_measurements` on the ratings."""
    judges, rubric = len(sums.layout.judges), panel.study.rubric
    scale = np.arange(1, sums.layout.categories + 1)

    def rated(table: Ints, rating: Ints) -> Ints:
        """Convert a table of levels [F, G, P, S, S] to a table of ratings; ``rating`` [S] is each level rounded."""
        to = (rating[:, None] == scale).astype(np.int64)
        return np.asarray(to.T @ table @ to)

    # Tables of ratings [K, F, G, P, S, S] over every pair of judges, halves up and halves to even.
    values = [sums.layout.values(k) for k in range(len(sums.tables))]
    rounded = [measure_panel.categories_of(np.rint(np.round(value, 9)), sums.layout.scale) for value in values]
    nearest = [measure_panel.categories_of(value, sums.layout.scale) for value in values]
    up = np.stack([rated(table, rating) for table, rating in zip(sums.tables, nearest, strict=True)])
    even = np.stack([rated(table, rating) for table, rating in zip(sums.tables, rounded, strict=True)])

    def kappa_sums(tables: Ints, x: Ints | Floats) -> KappaSums:
        """Compute the sums for every kappa between judges of different families, from tables [K, G, P, S, S] of all
        pairs, whose levels are ``x`` [S]."""
        pairs, cross_pairs = judge_pairs(judges), measure_panel.cross_family_pairs(panel.table.families)
        margins = np.empty((judges, *tables.shape[:2], x.size), dtype=np.int64)
        for p, (a, b) in enumerate(pairs):
            margins[a], margins[b] = tables[:, :, p].sum(axis=3), tables[:, :, p].sum(axis=2)
        products = [np.einsum("kgij,i,j->kg", tables[:, :, pairs.index(pair)], x, x) for pair in cross_pairs]
        n = tables[:, :, 0].sum(axis=(2, 3))
        columns = np.concatenate([n[None], margins @ x, margins @ (x * x), np.stack(products)])
        return KappaSums(columns.astype(np.float64), judges, tuple(cross_pairs), rubric.coefficient)

    def counted(f: int | None) -> measure_panel.Counted:
        there = np.flatnonzero(sums.sizes.sum(axis=0) if f is None else sums.sizes[f])
        if rubric.coefficient == "icc":
            parts = [
                kappa_sums((table.sum(axis=0) if f is None else table[f])[None, there], level - sum(rubric.scale) / 2)
                for table, level in zip(sums.tables, values, strict=True)
            ]
            columns = np.concatenate([part.columns for part in parts], axis=1)
            return measure_panel.Counted(replace(parts[0], columns=columns), [None] * len(parts), None, there)
        some, halves = ((part.sum(axis=1) if f is None else part[:, f])[:, there] for part in (up, even))
        pairs = judge_pairs(judges)
        places = [pairs.index(pair) for pair in measure_panel.cross_family_pairs(panel.table.families)]
        x = scale - scale[scale.size // 2]
        return measure_panel.Counted(
            kappa_sums(some, x), kappa_sums(halves, x).points(), some.sum(axis=1)[:, places], there
        )

    def fleiss() -> list[float | str]:
        tables = up.sum(axis=(1, 2))
        agree = np.trace(tables, axis1=2, axis2=3).sum(axis=1)
        # Every judge is in J - 1 pairs, so the margins of all pairs count each rating J - 1 times.
        counts = (tables.sum(axis=(1, 3)) + tables.sum(axis=(1, 2))) // (judges - 1)
        return measure_panel.fleiss_values(agree, counts, sums.n, judges)

    def correlation(tables: Ints) -> float | str:
        """Compute the mean Pearson correlation over pairs of judges, from tables [P, S, S] of unrounded levels."""
        levels, rhos = np.arange(tables.shape[1]), []
        spread = np.zeros(judges, dtype=np.int64)
        for table, (a, b) in zip(tables, sums.layout.pairs, strict=True):
            for judge, margin in ((a, table.sum(axis=1)), (b, table.sum(axis=0))):
                spread[judge] = np.ptp(np.flatnonzero(margin))
            # 0 if one of the two does not vary.
            weights: Floats = table / table.sum()
            row_share, other = weights.sum(axis=1), weights.sum(axis=0)
            x, y = levels - row_share @ levels, levels - other @ levels
            squares = float((row_share @ (x * x)) * (other @ (y * y)))
            rhos.append(float(x @ weights @ y) / math.sqrt(squares) if squares > 0 else 0.0)
        if not spread.min():
            return f"undefined: judge {int(spread.argmin()) + 1} gave a single score"
        return float(np.clip(np.mean(rhos), -1, 1))

    yield from measure_panel.agreement(
        panel, rng, sums.sizes, counted, fleiss,
        redundancy=lambda: [correlation(table.sum(axis=(0, 1))) for table in sums.tables],
    )  # fmt: skip


def panel_of_sums(sums: ScoreSums, study: Study) -> Panel:
    """Build the `Panel` that `panel_of` makes from a table, from its sums; it has no scores of single rows."""
    layout, none = sums.layout, np.empty(0, dtype=np.int64)
    present = np.unique(sums.places)
    place, drops, judges = np.searchsorted(present, sums.places), drops_of(layout.families), len(layout.judges)
    # Score sums [R, A, columns] of the whole panel, of each judge alone, and without each family.
    scores = sums.scores.astype(np.float64)
    stacked = np.concatenate([(scores @ layout.share)[..., None], scores], axis=3)
    alone = stacked.reshape(*stacked.shape[:2], -1)
    without = (stacked[:, :, keep].mean(axis=2) for keep in drops.values())
    columns = np.concatenate([stacked.mean(axis=2), alone, *without], axis=2)
    # In a line-up two agents have the same number of decisions in every cycle.
    means, meetings = columns / np.maximum(sums.lineups, 1)[:, :, None], []
    for a, b in combinations(range(len(sums.agents)), 2):
        common = np.flatnonzero((sums.lineups[:, a] > 0) & (sums.lineups[:, b] > 0))
        clusters, which = np.unique(place[common], return_inverse=True)
        gaps, cycles = np.zeros((clusters.size, columns.shape[2])), np.zeros(clusters.size, dtype=np.int64)
        np.add.at(gaps, which, means[common, a] - means[common, b])
        np.add.at(cycles, which, sums.cycles[common])
        meetings.append((gaps, cycles))
    totals = np.zeros((len(sums.agents), max(1, present.size), columns.shape[2]))
    np.add.at(totals.transpose(1, 0, 2), place, columns)
    design = Design(sums.decisions.T.astype(np.float64), columns.sum(axis=1), totals, place,
                          sums.cycles.astype(np.float64))  # fmt: skip
    usable = zip(layout.judges, sums.calls.tolist(), strict=True)
    calls = {judge: CallCounts(ok, bad, 0, {MISSING_SCORE: bad} if bad else {}) for judge, (ok, bad) in usable}
    # The names and counts of the table. Of the trajectories only the number is used.
    table = ScoreTable(
        cast("tuple[str, ...]", range(sums.n)), sums.agents, none, (), none,
        tuple(sums.clusters[k] for k in present), none, sums.formats, none, layout.judges, layout.families,
        layout.dimensions, layout.share, np.empty((0, judges, len(layout.dimensions))),
        {judge: np.broadcast_to(0.0, (call.ok, 1)) for judge, call in calls.items()}, {}, calls, None, (), sums.digest,
        agent_families=sums.agent_families,
    )  # fmt: skip
    return Panel(
        table, study, np.empty((0, judges, 1 + len(layout.dimensions))),
        {family: k for k, family in enumerate(drops, start=1 + judges)}, np.empty((0, columns.shape[2])), design,
        meetings,
    )  # fmt: skip
