"""Does a judge repeat itself, and does the order of the agents depend on who judges?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats


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
    if table.shape[0] < 2:
        raise NotMeasurableError("a ranking needs at least two agents (got 1)")
    panel = table.mean(axis=1)
    return {family: spearman(panel, table[:, keep].mean(axis=1)) for family, keep in drops.items()}


def drops_of(families: Sequence[str]) -> dict[str, list[int]]:
    """For each judge family, the columns of the judges that stay when it is left out."""
    distinct = dict.fromkeys(families)
    if len(distinct) < 2:
        raise NotMeasurableError("leaving a judge family out: one judge family, needs two")
    return {family: [j for j, other in enumerate(families) if other != family] for family in distinct}


def spearman(a: Floats, b: Floats) -> float:
    """Spearman's rank correlation, ties at average ranks; levels within 1e-9 tie, as float noise is no order.

    >>> spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 4.0, 3.0]))
    0.8
    """
    first, second = _ranks(np.round(a, 9)), _ranks(np.round(b, 9))
    if min(np.ptp(first), np.ptp(second)) == 0:
        raise NotMeasurableError(f"rank correlation is undefined: all {first.size} agents are tied")
    first, second = first - first.mean(), second - second.mean()
    # Sums of half-integers are exact, so full agreement is exactly 1.
    return float((first @ second) / np.sqrt((first @ first) * (second @ second)))


def _ranks(x: Floats) -> Floats:
    """Average ranks, from 1."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place], dtype=np.float64)
