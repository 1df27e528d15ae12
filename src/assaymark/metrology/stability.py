"""Does a judge repeat itself, and does the order of the agents depend on who judges?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import AssayError, NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats
from assaymark.metrology.scores import ScoreTable, panel_replicates
from assaymark.protocol import Study

_TOLERANCE = 1e-9  # gates compare with it, so that float noise closes none


def repetition_stability(trials: ArrayLike, *, ddof: int = 1) -> float:
    """One minus the variance between trials of one item over the variance of all trials.

    1 means that asking again changes nothing; the protocol wants at least 0.90 before it averages trials
    (ValueBlindBench section 3.4). It is a ratio of variances, not an intraclass correlation. The source does not say
    which divisor its variances have, and that alone moves some judges across 0.90: ``ddof`` applies to both.

    Parameters
    ----------
    trials : float array of shape (n, T)
        Aggregate score of each item (row) in each trial, two or more of each.
    ddof : 0 or 1
        Variances divide by their count minus this.

    Returns
    -------
    float
        Dimensionless, at most 1; below 0 when items differ less than trials of one item do.

    Raises
    ------
    NotMeasurableError
        One trial, one item, or the same score throughout.
    InputError
        Empty, not two axes, not finite, or another ``ddof``.

    Examples
    --------
    >>> round(repetition_stability([[3.0, 3.1], [4.0, 4.0], [1.9, 2.0]]), 4)
    0.9961
    """
    table = checks.finite("repetition_stability", "trials", trials, ndim=2)
    if isinstance(ddof, bool) or ddof not in (0, 1):
        checks.fail("repetition_stability", "ddof", f"must be 0 or 1 (got {ddof!r})")
    n, repeats = table.shape
    if repeats < 2:
        raise NotMeasurableError("repetition stability is undefined: one trial, needs two")
    if n < 2:
        raise NotMeasurableError("repetition stability is undefined: one item, needs two")
    if np.ptp(table) <= 1e-9:
        raise NotMeasurableError(f"repetition stability is undefined: every trial of all {n} items has one score")
    return float(1.0 - table.var(axis=1, ddof=ddof).mean() / table.var(ddof=ddof))


def leave_one_family_out(scores: ArrayLike, families: Sequence[str]) -> dict[str, float]:
    """Spearman correlation of the agents' ranking with and without each judge family.

    1 is the same order without that family's judges; with four agents anything below 0.9 means some change of order
    (ValueBlindBench sections 3.5 and 5.2). The panel score of an agent is the mean over judges.

    Parameters
    ----------
    scores : float array of shape (A, J)
        Level of each agent (row) under each judge (column), two or more agents.
    families : sequence of J names
        Family of each judge; a family's judges are dropped together.

    Returns
    -------
    dict from family to rho in [-1, 1], in the order of the first judge of each family

    Raises
    ------
    NotMeasurableError
        One judge family, one agent, or a ranking in which all agents tie.
    InputError
        Empty, not two axes, not finite, or not one family for each judge.

    Examples
    --------
    >>> scores = [[4.6, 4.5, 4.4], [4.0, 4.4, 4.2], [4.2, 4.1, 4.1]]
    >>> leave_one_family_out(scores, ["north", "south", "east"])
    {'north': 1.0, 'south': 0.5, 'east': 1.0}
    """
    table = checks.finite("leave_one_family_out", "scores", scores, ndim=2)
    names = list(families)
    if len(names) != table.shape[1] or not all(isinstance(name, str) for name in names):
        what = f"must name one family for each of the {table.shape[1]} judges (got {len(names)})"
        checks.fail("leave_one_family_out", "families", what)
    drops = drops_of(names)
    if not drops:
        raise NotMeasurableError("leaving a judge family out: one judge family, needs two")
    if table.shape[0] < 2:
        raise NotMeasurableError("a ranking needs at least two agents (got 1)")
    panel = table.mean(axis=1)
    return {family: spearman(panel, table[:, keep].mean(axis=1)) for family, keep in drops.items()}


def drops_of(families: Sequence[str]) -> dict[str, list[int]]:
    """For each judge family, the columns of the judges that stay when it is left out; empty with one family."""
    distinct = dict.fromkeys(families)
    return {one: [j for j, f in enumerate(families) if f != one] for one in distinct if len(distinct) > 1}


def averaging(table: ScoreTable, study: Study, *, ddof: int | None = None) -> dict[str, bool]:
    """For each judge that was asked more than once, whether its trials may be averaged."""
    found = {}
    for judge, trials in table.trials.items():
        if trials.shape[1] > 1:
            try:
                value = repetition_stability(trials, ddof=study.inference.ddof if ddof is None else ddof)
            except AssayError:
                value = -np.inf
            found[judge] = bool(value >= study.gates.repetition_stability - _TOLERANCE)
    return found


def gated(table: ScoreTable, study: Study, averaged: Mapping[str, bool] | None = None) -> ScoreTable:
    """The table with the first trial alone of every judge whose trials may not be averaged."""
    decided = averaging(table, study) if averaged is None else averaged
    treatment = [0 if decided.get(judge, True) else 1 for judge in table.judges]
    if table.mean is None or table.first is None:
        return table  # nobody was asked twice
    opening = np.array(treatment, dtype=bool)[:, None]
    scores = np.where(opening, table.first, table.mean)
    scores.setflags(write=False)
    rest = table.incomplete
    if rest is not None and rest.mean is not None and rest.first is not None:
        rest = dataclasses.replace(rest, values=np.where(opening, rest.first, rest.mean))
        rest.values.setflags(write=False)
    replicates = panel_replicates(table.repeats or {}, treatment)
    return dataclasses.replace(table, scores=scores, replicates=replicates, incomplete=rest)


def spearman(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation, ties at average ranks; levels within 1e-9 tie, as float noise is no order."""
    (rho,) = spearman_columns(a[:, None], b[:, None])
    if rho is None:
        raise NotMeasurableError(f"rank correlation is undefined: all {a.size} agents are tied")
    return rho


def spearman_columns(a: Floats, b: Floats) -> list[float | None]:
    """`spearman` of each column of ``a`` [A, K] with the same column of ``b``; None where one of them is all ties."""
    first, second = average_ranks(a), average_ranks(b)
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    # Sums of half-integers are exact, so full agreement is exactly 1.
    squares = (first * first).sum(axis=0) * (second * second).sum(axis=0)
    rho = (first * second).sum(axis=0) / np.sqrt(np.where(squares > 0, squares, 1.0))
    return [value if known else None for value, known in zip(rho.tolist(), (squares > 0).tolist(), strict=True)]


def average_ranks(x: Floats) -> Floats:
    """Ranks from 1 in each column [A, K], ties at their average; what agrees to nine decimals ties."""
    settled = np.round(x, 9)
    below, tied = ((test(settled[None], settled[:, None])).sum(axis=1) for test in (np.less, np.equal))
    return np.asarray(below + (tied + 1) / 2)
