"""The whole analysis of a score table under a plan: one call, all measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.measure_agents import Levels, level_measurements, levels_of
from assaymark.metrology.measure_orders import order_measurements
from assaymark.metrology.measure_panel import (
    agreement_measurements,
    alpha_measurements,
    judge_measurements,
    other_ddof_measurements,
    variance_measurements,
)
from assaymark.metrology.order_tests import OrderPlan
from assaymark.metrology.paired import pair_tests
from assaymark.metrology.panel import Panel, panel_of
from assaymark.metrology.ranks import rank_measurements, single_measurements
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.stability import averaging, gated
from assaymark.protocol import Study
from assaymark.records import Measurement


def analyse(
    table: ScoreTable,
    study: Study,
    *,
    rng: np.random.Generator,
    style: Mapping[str, Mapping[str, float]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[Measurement, ...]:
    """Every measurement of the judges and the agents that the plan asks for."""
    panel = panel_of(gated(table, study), study)
    levels = levels_of(panel)
    parts: dict[str, Callable[[], Iterable[Measurement]]] = {
        "agreement": lambda: _agreement(panel, rng),
        "judges": lambda: judge_measurements(panel),
        "levels": lambda: level_measurements(panel, levels),
        "contrasts": lambda: _comparisons(panel, levels, rng, style),
    }
    found: list[Measurement] = []
    for name, measure in parts.items():
        if progress is not None:
            progress(name)
        found += measure()
    return tuple(found)


def _agreement(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Agreement, and what it would have been where the other divisor decides otherwise whose trials are averaged."""
    yield from agreement_measurements(panel, rng)
    plan, other = (
        averaging(panel.table, panel.study, ddof=d)
        for d in (panel.study.inference.ddof, 1 - panel.study.inference.ddof)
    )
    if plan != other:
        yield from other_ddof_measurements(panel, gated(panel.table, panel.study, other))


def _comparisons(
    panel: Panel, levels: Levels, rng: np.random.Generator, style: Mapping[str, Mapping[str, float]] | None
) -> Iterator[Measurement]:
    """Contrasts, what each judge alone would have found, and how ranks come out over resamples."""
    tests = pair_tests(panel, rng)
    found = Comparisons.of_table(panel.table, panel.study, style)
    yield from order_measurements(found, OrderPlan.of(panel.study), panel.measure, tests)
    yield from alpha_measurements(found, panel.study.inference.level, panel.measure)
    yield from variance_measurements(found, panel.measure)
    yield from single_measurements(panel, levels, tests)
    yield from rank_measurements(panel, rng)
