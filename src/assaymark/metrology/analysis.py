"""The whole analysis of a score table under a plan: one call, all measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from assaymark.metrology.measure_agents import contrast_measurements, level_measurements
from assaymark.metrology.measure_agreement import agreement_measurements, judge_measurements
from assaymark.metrology.panel import panel_of
from assaymark.metrology.table import ScoreTable
from assaymark.protocol import Study
from assaymark.records import Measurement


def analyse(
    table: ScoreTable,
    study: Study,
    *,
    rng: np.random.Generator,
    progress: Callable[[str], None] | None = None,
) -> tuple[Measurement, ...]:
    """Every measurement of the judges and the agents that the plan asks for.

    Agreement (kappa pooled and by format, Fleiss, redundancy), judges (repetition stability, unusable calls), agents
    (levels, contrasts, who is first, noise floor), and levels, contrasts and ranks without each judge family. What
    cannot be measured is there too, with its state in words. Equal tables, plans and generators give equal numbers.

    Parameters
    ----------
    table : ScoreTable
        From `score_table`.
    study : Study
        The locked plan: gates, tests, levels.
    rng : numpy Generator
        For bootstraps over more than 8 clusters.
    progress : callable, optional
        Told the name of each part before it starts.

    Returns
    -------
    tuple of Measurement, ids unique
    """
    panel = panel_of(table, study)
    parts: dict[str, Callable[[], Iterable[Measurement]]] = {
        "agreement": lambda: agreement_measurements(panel, rng),
        "judges": lambda: judge_measurements(panel),
        "levels": lambda: level_measurements(panel),
        "contrasts": lambda: contrast_measurements(panel, rng),
    }
    found: list[Measurement] = []
    for name, measure in parts.items():
        if progress is not None:
            progress(name)
        found += measure()
    return tuple(found)
