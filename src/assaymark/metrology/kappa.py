"""Agreement between judges, stability of repeated judging, and sensitivity of rankings to the judge families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import AssayError, InputError, NotMeasurableError, Problem
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.scores import ScoreTable, panel_replicates
from assaymark.plan import TOLERANCE
from assaymark.protocol import Study

Pair = tuple[int, int]

# Blocks of this many ratings fit in the cache; counting a million items at once takes 50 % longer.
_BLOCK = 1 << 14
_SMALL_SCALE = 127


def round_half_up(x: ArrayLike) -> Floats | float:
    """Round to the nearest integer, halves upwards: ``floor(x + 0.5)``.

    The rounding rule for all ratings in a kappa (ValueBlindBench section 3.6 specifies "nearest" without a rule for
    halves). Python, numpy and most spreadsheets round halves to even, databases round them up, and about one mean over
    six dimensions in six is a half. Values are not clipped.

    Parameters
    ----------
    x : float or array of any shape
        Trial-averaged scores.

    Returns
    -------
    float or float array of the same shape

    Raises
    ------
    InputError
        A value that is not finite, or not a number.

    Examples
    --------
    >>> round_half_up(2.5)
    3.0
    >>> round_half_up([0.5, 1.49, 4.5]).tolist()
    [1.0, 1.0, 5.0]
    """
    values = checks.array("round_half_up", "x", x)
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
        checks.fail("round_half_up", "x", f"must be finite numbers (got {x!r:.80})")
    rounded = np.floor(values + 0.5)
    return float(rounded) if values.ndim == 0 else rounded.astype(np.float64, copy=False)


def settled_half_up(scores: Floats) -> Floats:
    """Round scores to nine decimals, because sums of weights can miss a half, then to integers with halves up."""
    return np.asarray(round_half_up(np.round(scores, 9))) if scores.size else scores


def weighted_kappa(a: ArrayLike, b: ArrayLike, *, categories: int = 5) -> float:
    """Compute Cohen's kappa with quadratic weights between two judges.

    1 is full agreement, 0 is what chance would give these two judges, below 0 is less than chance. A 4 against a 5
    costs a sixteenth of a 1 against a 5. All of 1..categories count, whether or not they occur
    (ValueBlindBench section 3.6). A constant judge against one that varies has exactly 0.

    Parameters
    ----------
    a, b : int array of shape (n,)
        Ratings on 1..categories, one per item, in the same item order. Whole-number floats are accepted.
    categories : int
        Size of the ordinal scale.

    Returns
    -------
    float
        Dimensionless, in [-1, 1].

    Raises
    ------
    NotMeasurableError
        Both judges are constant (at one rating, or at two): there is nothing to agree about.
    InputError
        Empty or unequal in length, off the scale, not whole, or not finite.

    References
    ----------
    Cohen, J. (1968). Weighted kappa. Psychological Bulletin 70(4), 213-220.

    Examples
    --------
    >>> weighted_kappa([1, 2, 3, 4], [1, 2, 3, 5])
    0.9285714285714286
    """
    return kappa_of_table(contingency(a, b, categories, "weighted_kappa"))


def contingency(a: ArrayLike, b: ArrayLike, categories: int = 5, source: str = "contingency") -> Ints:
    """Count the items with rating i+1 by judge a and j+1 by judge b, as an array of shape (categories, categories)."""
    size = checks.categories_of(source, categories)
    integers = [x for x in (a, b) if isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == 1]
    if len(integers) == 2 and integers[0].size and integers[0].size == integers[1].size and size <= _SMALL_SCALE:
        # Checked in the same pass. With a power of two above the scale, one reduction finds stray high bits, and other
        # values off the scale (such as 0) fall outside the square of valid cells.
        stride, strays = 1 << size.bit_length(), 0
        counts = np.zeros(stride * stride, dtype=np.int64)
        for start in range(0, integers[0].size, _BLOCK):
            x, y = (column[start : start + _BLOCK] for column in integers)
            strays = (np.bitwise_or.reduce(x) | np.bitwise_or.reduce(y)) & -stride
            if strays:
                break
            counts += np.bincount(x * stride + y, minlength=stride * stride)
        table = counts.reshape(stride, stride)[1 : size + 1, 1 : size + 1]
        if not strays and table.sum() == integers[0].size:
            return table
    first, second = checks.ratings(source, "a", a, size), checks.ratings(source, "b", b, size)
    if first.size != second.size:
        raise InputError(source, [Problem("a, b", f"must be equally long (got {first.size} and {second.size})")])
    return _count(first, second, size)


def kappa_of_table(table: ArrayLike) -> float:
    """Compute quadratic-weighted kappa from a contingency table, in integers up to the last division."""
    cells = np.asarray(table)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or cells.dtype.kind not in "iu" or (cells < 0).any():
        checks.fail("kappa_of_table", "table", f"must be a square of counts (got shape {cells.shape}, {cells.dtype})")
    # From moments of the table: Python integers, exact at every size, up to the last division.
    moments = (cells.ravel() @ _moment_columns(cells.shape[0])).tolist()
    n, sum_a, sum_b, squares, cross, squares_a, squares_b = (int(x) for x in moments)
    if n * squares_a == sum_a * sum_a and n * squares_b == sum_b * sum_b:
        raise NotMeasurableError(f"kappa is undefined: both judges gave one rating to all {n} items")
    observed, expected = n * (squares - 2 * cross), n * squares - 2 * sum_a * sum_b
    return 1.0 - observed / expected


@cache
def _moment_columns(categories: int) -> Ints:
    """Return each table cell's contribution to n, the sums, the sums of squares (both and each), the cross products."""
    a, b = (axis.ravel() for axis in np.indices((categories, categories)))
    return np.stack([np.ones_like(a), a, b, a * a + b * b, a * b, a * a, b * b], axis=1)


def mean_pairwise_kappa(ratings: ArrayLike, *, categories: int = 5) -> float:
    """Compute the arithmetic mean of `weighted_kappa` over all pairs of judges, which the publication gate uses.

    Read it as the agreement of a typical pair. It is a convention of the protocol, not a chance-corrected
    coefficient for J raters (ValueBlindBench section 3.6).

    Parameters
    ----------
    ratings : int array of shape (n, J)
        One rating on 1..categories per item and judge.
    categories : int
        Size of the ordinal scale.

    Returns
    -------
    float
        Dimensionless, in [-1, 1].

    Raises
    ------
    NotMeasurableError
        Fewer than two judges, or a pair of judges that are both constant.
    InputError
        Empty, not two axes, off the scale, not whole, or not finite.

    Examples
    --------
    >>> round(mean_pairwise_kappa([[1, 1, 1], [2, 2, 3], [3, 3, 3], [5, 4, 5]]), 4)
    0.909
    """
    size = checks.categories_of("mean_pairwise_kappa", categories)
    table = checks.ratings("mean_pairwise_kappa", "ratings", ratings, size, ndim=2)
    columns, kappas = np.ascontiguousarray(table.T), []
    for a, b in judge_pairs(table.shape[1]):
        try:
            kappas.append(kappa_of_table(_count(columns[a], columns[b], size)))
        except NotMeasurableError as exc:
            raise NotMeasurableError(f"judges {a + 1} and {b + 1}: {exc}") from None
    return float(np.mean(kappas))


def judge_pairs(judges: int) -> list[Pair]:
    """Return every pair of judge columns; raise NotMeasurableError for a single judge."""
    if judges < 2:
        raise NotMeasurableError(f"agreement needs at least two judges (got {judges})")
    return list(combinations(range(judges), 2))


def fleiss_kappa(ratings: ArrayLike, *, categories: int = 5) -> float:
    """Compute Fleiss' unweighted kappa for J judges.

    1 is full agreement, 0 chance. It weights a 4 against a 5 like a 1 against a 5, so it is reported in addition to the
    weighted mean and never used for a gate (ValueBlindBench section 3.6).

    Parameters
    ----------
    ratings : int array of shape (n, J)
        One rating on 1..categories per item and judge, J of at least two.
    categories : int
        Size of the scale.

    Returns
    -------
    float
        Dimensionless, at most 1.

    Raises
    ------
    NotMeasurableError
        Fewer than two judges, or every rating is the same.
    InputError
        Empty, not two axes, off the scale, not whole, or not finite.

    References
    ----------
    Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological Bulletin 76(5), 378-382.

    Examples
    --------
    >>> round(fleiss_kappa([[1, 1, 1], [2, 2, 3], [3, 3, 3]]), 4)
    0.6538
    """
    size = checks.categories_of("fleiss_kappa", categories)
    table = checks.ratings("fleiss_kappa", "ratings", ratings, size, ndim=2)
    n, judges = table.shape
    if judges < 2:
        raise NotMeasurableError(f"agreement needs at least two judges (got {judges})")
    cells = np.bincount((table + size * np.arange(n)[:, None]).ravel() - 1, minlength=n * size).reshape(n, size)
    if (cells.sum(axis=0) == n * judges).any():
        raise NotMeasurableError(f"Fleiss' kappa is undefined: all {n * judges} ratings are the same")
    observed = float((cells * (cells - 1)).sum()) / (n * judges * (judges - 1))
    chance = float(np.square(cells.sum(axis=0) / (n * judges)).sum())
    return float((observed - chance) / (1.0 - chance))


def _count(a: Ints, b: Ints, categories: int) -> Ints:
    """Count a contingency table; ratings start at 1, so the first categories + 1 bins are empty and dropped."""
    bins = categories * categories + categories + 1
    counts = np.bincount(a[:_BLOCK] * categories + b[:_BLOCK], minlength=bins)
    for start in range(_BLOCK, a.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        counts += np.bincount(a[block] * categories + b[block], minlength=bins)
    return counts[categories + 1 :].reshape(categories, categories)


def repetition_stability(trials: ArrayLike, *, ddof: int = 1) -> float:
    """Compute one minus the variance between trials of one item over the variance of all trials.

    1 means that all trials agree; the protocol requires at least 0.90 before averaging trials (ValueBlindBench section
    3.4). It is a ratio of variances, not an intraclass correlation. The source does not state the divisor of its
    variances, which alone moves some judges across 0.90: ``ddof`` applies to both.

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
    """Compute the Spearman correlation of the agents' rankings with and without each judge family.

    1 means the same order without that family's judges; with four agents any value below 0.9 means a change in order
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
        problem = f"must name one family for each of the {table.shape[1]} judges (got {len(names)})"
        checks.fail("leave_one_family_out", "families", problem)
    drops = drops_of(names)
    if not drops:
        raise NotMeasurableError("leaving a judge family out: one judge family, needs two")
    if table.shape[0] < 2:
        raise NotMeasurableError("a ranking needs at least two agents (got 1)")
    panel = table.mean(axis=1)
    return {family: spearman(panel, table[:, keep].mean(axis=1)) for family, keep in drops.items()}


def drops_of(families: Sequence[str]) -> dict[str, list[int]]:
    """Return, for each judge family, the columns of the other judges; empty with one family."""
    distinct = dict.fromkeys(families)
    return {family: [j for j, f in enumerate(families) if f != family] for family in distinct if len(distinct) > 1}


def averaging(table: ScoreTable, study: Study, ddof: int | None = None) -> dict[str, bool]:
    """Return, for each judge with several trials, whether its trials may be averaged."""
    averaged = {}
    for judge, trials in table.trials.items():
        if trials.shape[1] > 1:
            try:
                value = repetition_stability(trials, ddof=study.inference.ddof if ddof is None else ddof)
            except AssayError:
                value = -np.inf
            averaged[judge] = bool(value >= study.gates.repetition_stability - TOLERANCE)
    return averaged


def gated(table: ScoreTable, study: Study, averaged: Mapping[str, bool] | None = None) -> ScoreTable:
    """Return the table with only the first trial of every judge whose trials may not be averaged."""
    decided = averaging(table, study) if averaged is None else averaged
    treatment = [0 if decided.get(judge, True) else 1 for judge in table.judges]
    if table.mean is None or table.first is None:
        return table  # no judge has a second trial
    opening = np.array(treatment, dtype=bool)[:, None]
    scores = np.where(opening, table.first, table.mean)
    scores.setflags(write=False)
    rest = table.incomplete
    if rest is not None and rest.mean is not None and rest.first is not None:
        rest = dataclasses.replace(rest, values=np.where(opening, rest.first, rest.mean))
        rest.values.setflags(write=False)
    repeats = panel_replicates(table.repeats or {}, treatment)
    return dataclasses.replace(table, scores=scores, replicates=repeats, incomplete=rest)


def spearman(a: Floats, b: Floats) -> float:
    """Compute Spearman's rank correlation, ties at average ranks; levels within 1e-9 tie (float noise)."""
    (rho,) = spearman_columns(a[:, None], b[:, None])
    if rho is None:
        raise NotMeasurableError(f"rank correlation is undefined: all {a.size} agents are tied")
    return rho


def spearman_columns(a: Floats, b: Floats) -> list[float | None]:
    """Compute `spearman` of each column of ``a`` [A, K] with the same column of ``b``; None if one is all ties."""
    first, second = average_ranks(a), average_ranks(b)
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    # Sums of half-integers are exact, so perfect agreement is exactly 1.
    squares = (first * first).sum(axis=0) * (second * second).sum(axis=0)
    rho = (first * second).sum(axis=0) / np.sqrt(np.where(squares > 0, squares, 1.0))
    return [value if defined else None for value, defined in zip(rho.tolist(), (squares > 0).tolist(), strict=True)]


def average_ranks(x: Floats) -> Floats:
    """Compute ranks from 1 in each column [A, K], ties at average ranks; values equal to nine decimals tie."""
    settled = np.round(x, 9)
    below, tied = ((test(settled[None], settled[:, None])).sum(axis=1) for test in (np.less, np.equal))
    return np.asarray(below + (tied + 1) / 2)
