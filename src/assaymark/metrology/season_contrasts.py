"""Is one agent of a season graded above another, over its periods, and whoever judges?

The periods of a season (weeks, months) are what repeats in it: what the agents share in a period cancels in a paired
difference, and how much the differences vary says how firm their mean is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from assaymark.errors import NotMeasurableError
from assaymark.metrology import checks
from assaymark.metrology.checks import Floats
from assaymark.metrology.contrasts import cluster_t

LEAST_PERIODS: Final = 3
"""With fewer the difference of two agents is not tested: its spread would rest on a single difference."""


@dataclass(frozen=True, slots=True)
class PeriodContrast:
    """The difference of two agents over their common periods.

    Attributes
    ----------
    difference : float
        Mean over periods of the median over judges of what each gave one more than the other, points.
    low, high : float or None
        Ends of its interval.
    p : float
        Two-sided, for no difference.
    periods : int
    without : mapping of judges to float or None
        The difference when the judges of one family are left out, by their names; None where nobody is left. Empty
        where all judges are of one family.
    method : str
    """

    difference: float
    low: float | None
    high: float | None
    p: float
    periods: int
    without: Mapping[str, float | None]
    method: str


def period_contrast(
    first: ArrayLike,
    second: ArrayLike,
    judges: Sequence[str],
    families: Sequence[str],
    *,
    level: float = 0.95,
) -> PeriodContrast:
    """The mean difference of two agents over periods, tested by paired t, and without each judge family.

    In each period every judge that graded both agents is compared with itself, and the median over judges of these
    differences counts. So it does not matter how harsh the judge is that happens to be the median, and one judge that
    favours an agent moves the median little. (The difference of two panel medians jumps from one judge to the next: one
    judge's favour of 15 points, among judges 4 to 5 points apart, moved it by 5, and this by 1 to 2.)

    Periods are taken to be independent of each other. Where one period carries over to the next (one thesis over
    months) the interval is too narrow; months in place of weeks make it wider.

    Parameters
    ----------
    first, second : float arrays of shape (J, G)
        Composite of each judge in each period, points; NaN where there is none.
    judges, families : sequences of J names
    level : float
        Coverage of the interval.

    Returns
    -------
    PeriodContrast

    Raises
    ------
    NotMeasurableError
        Fewer than three periods in which some judge graded both.
    InputError
        Shapes or names that do not fit.

    Examples
    --------
    >>> ash = [[70, 74, 71, 69], [66, 71, 70, 64], [80, 79, 83, 77]]
    >>> birch = [[61, 66, 62, 60], [63, 66, 64, 60], [70, 72, 73, 68]]
    >>> found = period_contrast(ash, birch, ["a", "b", "c"], ["north", "south", "west"])
    >>> f"{found.difference:.2f}, p = {found.p:.4f}", found.without["c"]
    ('8.50, p = 0.0004', 6.625)
    """
    above = _above(first, second, judges, families)
    difference = _medians(above)
    kept = difference[~np.isnan(difference)]
    if kept.size < LEAST_PERIODS:
        raise NotMeasurableError(f"{LEAST_PERIODS} common periods are needed (got {kept.size})")
    tested = cluster_t(kept, range(kept.size), level=level)
    return PeriodContrast(
        difference=tested.difference,
        low=tested.low,
        high=tested.high,
        p=tested.p,
        periods=tested.n,
        without=dict(_without(above, judges, families)),
        method=f"median over judges of paired differences, over periods; {tested.method}",
    )


def drops(judges: Sequence[str], families: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What may be left out: the judges of each family, by their names as a sentence has them.

    Empty where all judges are of one family: nobody would be left.

    >>> drops(["a", "b", "c"], ["north", "south", "north"])
    {'a, c': ('a', 'c'), 'b': ('b',)}
    """
    of: dict[str, list[str]] = {}
    for judge, family in zip(judges, families, strict=True):
        of.setdefault(family, []).append(judge)
    return {", ".join(names): tuple(names) for names in of.values()} if len(of) > 1 else {}


def _above(first: ArrayLike, second: ArrayLike, judges: Sequence[str], families: Sequence[str]) -> Floats:
    """What each judge gave the first more than the second in each period [J, G]; NaN where it did not grade both."""
    tables = [np.asarray(table, dtype=float) for table in (first, second)]
    if any(table.ndim != 2 or table.shape != (len(judges), tables[0].shape[-1]) for table in tables):
        shapes = " and ".join(str(table.shape) for table in tables)
        checks.fail("period_contrast", "first, second", f"must be ({len(judges)} judges, G periods) (got {shapes})")
    if len(families) != len(judges):
        checks.fail("period_contrast", "families", f"one for each of {len(judges)} judges (got {len(families)})")
    above: Floats = tables[0] - tables[1]
    return above


def _medians(above: Floats) -> Floats:
    """Median over judges in each period [G], NaN where no judge graded both."""
    gone = np.isnan(above)
    if not gone.any():
        return np.asarray(np.median(above, axis=0))
    there = ~gone.all(axis=0)
    found = np.full(above.shape[1], np.nan)
    if there.any():
        found[there] = np.nanmedian(above[:, there], axis=0)
    return found


def _without(above: Floats, judges: Sequence[str], families: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    for label, names in drops(judges, families).items():
        left = _medians(above[np.array([judge not in names for judge in judges])])
        known = left[~np.isnan(left)]
        yield label, float(known.mean()) if known.size else None
