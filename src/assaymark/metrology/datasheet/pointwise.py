"""The datasheet of a judge that scores one text at a time: no slots, so dark current becomes a score for nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.datasheet.recorder import Recorder
from assaymark.metrology.datasheet.shares import TaskBootstrap
from assaymark.records import Measurement

_NONE = 1e-12


def pointwise_measurements(
    scores: ArrayLike,
    tasks: Sequence[str],
    levels: ArrayLike,
    *,
    judge: str,
    dimension: str,
    vacuum_scores: ArrayLike = (),
    vacuum_tasks: Sequence[str] = (),
    level: float = 0.95,
    rng: np.random.Generator,
) -> tuple[Measurement, ...]:
    """What a rubric judge gives to nothing, and what it gives for each requirement met.

    ``point.vacuum_score`` is the mean score of rationales without content: the floor that every other score stands on.
    ``point.slope`` is the mean over tasks of the least-squares slope of score on requirements met: points per
    requirement, 0 for a judge that does not see them. ``point.order`` is the share of neighbouring ladder steps that
    the judge puts in the right order, ties counting half; 0.5 is chance.

    Parameters
    ----------
    scores : float array of shape (n,)
        Scores of ladder rationales; repeats of a level are averaged for the order, not for the slope.
    tasks : sequence of n names
        The task of each.
    levels : float array of shape (n,)
        Requirements met.
    judge, dimension : str
        Labels.
    vacuum_scores, vacuum_tasks : arrays of shape (m,)
        Scores of rationales without content and their tasks; empty where vacuum was not run.
    level : float
        Coverage of the intervals, over tasks.
    rng : numpy Generator
        Draws of tasks.

    Returns
    -------
    tuple of Measurement
        ``point.vacuum_score``, ``point.slope``, ``point.order``.

    Raises
    ------
    InputError
        Not finite, or lengths that differ.

    Examples
    --------
    >>> found = pointwise_measurements([1, 2, 3, 1, 3, 3], ["a"] * 3 + ["b"] * 3, [0, 1, 2, 0, 1, 2],
    ...     judge="auditor", dimension="risk", rng=np.random.default_rng(1))
    >>> [(m.name, m.value) for m in found]
    [('point.vacuum_score', None), ('point.slope', 1.0), ('point.order', 0.875)]
    """
    recorder = Recorder(judge, TaskBootstrap(rng, checks.probability("pointwise_measurements", "level", level)))
    labels = {"dimension": dimension}
    nothing = checks.array("pointwise_measurements", "vacuum_scores", vacuum_scores)
    vacuum = _vacuum(recorder, labels, nothing, vacuum_tasks)
    given = checks.array("pointwise_measurements", "scores", scores)
    if not given.size:
        state = "not measured: no ladder rationales were scored"
        missing = (recorder.missing(name, labels, state, n_of="tasks") for name in ("point.slope", "point.order"))
        return vacuum, *missing
    values = checks.finite("pointwise_measurements", "scores", scores)
    steps = checks.finite("pointwise_measurements", "levels", levels)
    if steps.size != values.size:
        where = "scores, levels"
        checks.fail("pointwise_measurements", where, f"must be equally long (got {values.size} and {steps.size})")
    _, codes = checks.labels("pointwise_measurements", "tasks", tasks, values.size)
    return vacuum, _slope(recorder, labels, values, codes, steps), _order(recorder, labels, values, codes, steps)


def _vacuum(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Sequence[str]) -> Measurement:
    """Mean score of rationales without content."""
    if not scores.size:
        state = "not measured: no rationales without content were scored"
        return recorder.missing("point.vacuum_score", labels, state, n_of="rationales")
    values = checks.finite("pointwise_measurements", "vacuum_scores", scores)
    found = cluster_t(values, tasks, level=recorder.level)
    return recorder.number(
        "point.vacuum_score",
        labels,
        float(values.mean()),
        n=values.size,
        n_of="rationales",
        method=f"mean score of rationales without content, {_method(found.low, found.method)}",
        ends=None if found.low is None or found.high is None else (found.low, found.high),
        unit="score points",
        detail={"tasks": found.clusters, "lowest": float(values.min()), "highest": float(values.max())},
    )


def _slope(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Ints, levels: Floats) -> Measurement:
    """Mean over tasks of the slope of score on requirements met; tasks of one level have none."""
    slopes = []
    for task in range(int(tasks.max()) + 1):
        rows = tasks == task
        away = levels[rows] - levels[rows].mean()
        spread = float(away @ away)
        if spread > _NONE:
            slopes.append(float(away @ scores[rows]) / spread)
    left_out = int(tasks.max()) + 1 - len(slopes)
    if not slopes:
        state = "undefined: every task was scored at one level, needs two"
        return recorder.missing("point.slope", labels, state, n_of="tasks", detail={"tasks_of_one_level": left_out})
    found = cluster_t(slopes, list(range(len(slopes))), level=recorder.level)
    return recorder.number(
        "point.slope",
        labels,
        float(np.mean(slopes)),
        n=len(slopes),
        n_of="tasks",
        method=f"mean over tasks of the least-squares slope, {_method(found.low, found.method)}",
        ends=None if found.low is None or found.high is None else (found.low, found.high),
        unit="score points per requirement",
        detail={"tasks_of_one_level": left_out, "rationales": scores.size, "slopes": slopes},
    )


def _order(recorder: Recorder, labels: dict[str, str], scores: Floats, tasks: Ints, levels: Floats) -> Measurement:
    """Share of neighbouring steps in the right order; counts by task of wrong, tied and right steps."""
    counts = np.zeros((int(tasks.max()) + 1, 3), dtype=np.int64)
    for task in range(counts.shape[0]):
        rows = tasks == task
        steps, place = np.unique(levels[rows], return_inverse=True)
        means = np.bincount(place, weights=scores[rows]) / np.bincount(place)
        rise = np.diff(means[: steps.size])
        counts[task] = [(rise < -_NONE).sum(), (np.abs(rise) <= _NONE).sum(), (rise > _NONE).sum()]
    if not counts.sum():
        state = "undefined: every task was scored at one level, needs two"
        return recorder.missing("point.order", labels, state, n_of="ladder steps")
    wrong, tied, right = counts.sum(axis=0).tolist()
    return recorder.classes(
        "point.order",
        labels,
        counts,
        np.array([0.0, 0.5, 1.0]),
        "neighbouring ladder steps scored in the right order, ties half",
        n_of="ladder steps",
        detail={"right": right, "tied": tied, "wrong": wrong},
    )


def _method(low: float | None, method: str) -> str:
    return method if low is not None else f"no interval: {method}"
