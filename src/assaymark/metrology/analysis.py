"""The complete analysis of a score table, or of its sums, under a plan: one call makes all measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from assaymark.metrology import measure_panel
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.estimates import number
from assaymark.metrology.kappa import averaging, gated
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
    panel_of_sums,
    rank_measurements,
    single_measurements,
)
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.sums import ScoreSums
from assaymark.protocol import Study
from assaymark.records import AGGREGATE, Measurement

Progress = Callable[[str], None] | None
"""A callback that receives the name of each part before the part starts."""


def analyse(
    table: ScoreTable | ScoreSums, study: Study, rng: np.random.Generator,
    style: Mapping[str, Mapping[str, float]] | None = None, people: Labels | None = None, *, progress: Progress = None,
) -> tuple[Measurement, ...]:  # fmt: skip
    """Make every measurement of judges and agents that the plan requires; an unmeasurable one has a reason instead.

    A judge whose trials may not be averaged counts with its first trial. ``style`` has the plan's covariates other than
    length, by name and trajectory; ``people`` are human grades. Sums of a large table, without repeated trials and
    replicates, give the measurements of its rows, except those that need single records. Equal inputs give equal
    results.
    """
    note, by_alpha = progress or (lambda _part: None), study.rubric.coefficient == "alpha"
    if isinstance(table, ScoreSums):
        panel, comparisons = panel_of_sums(table, study), Comparisons.of_sums(table, study)
    else:
        panel = panel_of(gated(table, study), study)
        comparisons = Comparisons.of_table(panel.table, study, style)
    note("agreement")
    measured = list(_agreement(panel, comparisons, rng))
    plan, other = (averaging(panel.table, study, ddof=d) for d in (study.inference.ddof, 1 - study.inference.ddof))
    if plan != other and not by_alpha:
        measured += measure_panel.other_ddof_measurements(panel, gated(panel.table, study, other))
    note("judges")
    measured += measure_panel.judge_measurements(panel)
    note("levels")
    levels = panel.design.levels_with_ends(panel.level)
    whole = panel
    if comparisons.missing and by_alpha:
        whole, levels = _refitted(panel, comparisons, levels)
    measured += level_measurements(whole, levels)
    note("contrasts")
    tests = pair_tests(panel, rng)
    measured += order_measurements(comparisons, OrderPlan.of(study), panel.measure, tests)
    measured += measure_panel.alpha_measurements(comparisons, panel.level, panel.measure)
    measured += measure_panel.variance_measurements(comparisons, panel.measure)
    measured += single_measurements(panel, levels, tests)
    measured += rank_measurements(panel, rng)
    if people is not None:
        contrasts = [measurement for measurement in measured if measurement.name == "contrast"]
        measured += people_measurements(
            comparisons, people, contrasts, panel.measure, panel.table.weights, OrderPlan.of(study), study.scale,
            study.human.passed_from(*study.scale),
        )  # fmt: skip
    return tuple(measured)


def _agreement(panel: Panel, comparisons: Comparisons, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure the agreement of judges by the plan's coefficient."""
    if panel.study.rubric.coefficient == "alpha":
        return measure_panel.alpha_agreement(comparisons, panel.study.rubric, panel.level, panel.measure)
    return measure_panel.agreement_measurements(panel, rng)


def _refitted(panel: Panel, comparisons: Comparisons, levels: Levels) -> tuple[Panel, Levels]:
    """Return the panel and its levels with the scores of all records, also those that some judges did not grade."""
    places = {
        0: list(range(len(comparisons.judges))),
        **{panel.drops[family]: keep for family, keep in comparisons.drops.items()},
    }
    patched, first = (levels[0].copy(), levels[1].copy(), levels[2].copy()), panel.design
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
    return replace(panel, design=first), patched


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
    agreed = _agreement(panel, comparisons, rng)
    judges = measure_panel.judge_measurements(panel)
    return (*agreed, *judges, *effects, *dropped, *order_measurements(comparisons, OrderPlan.of(study), panel.measure))
