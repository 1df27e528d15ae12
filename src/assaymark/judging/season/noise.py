"""How far a total moves when nothing has changed, and which totals are therefore one class.

Two things are repeated: the agent's decision on identical input, which shows the agent's own noise, and the judges'
grading of one record, which shows theirs. Neither says what other days would have brought: that an agent is better than
another is a claim over the periods of a season, and a rank that clears its floor has cleared only the first hurdle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.season.scores import HIGHEST, points_of
from assaymark.quantiles import t_quantile

FloorState = Literal["ok", "no replicates", "identical repetitions"]
GapState = Literal["apart", "tie", "tie through others", "floor unknown"]

_ZERO = 1e-9  # points; totals are sums of floats, and their last digits are no order


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The standard deviation of totals between repetitions, in points.

    ``value`` is None where nothing was repeated (``state`` "no replicates"), and where every repetition came out the
    same ("identical repetitions"): what always answers alike shows no noise to take a floor from, and a copy of an
    earlier answer looks the same. ``freedom`` is how many independent differences it rests on: k repetitions of one
    thing give k - 1.

    Raises
    ------
    InputError
        A value without freedom, or not in 0..100.
    """

    value: float | None
    freedom: int
    replicates: int
    groups: int
    state: FloorState

    def __post_init__(self) -> None:
        if self.value is not None and not (self.freedom > 0 and 0 <= self.value <= HIGHEST):
            what = f"needs a value in 0..100 points with a freedom of 1 or more (got {self.value!r}, {self.freedom!r})"
            raise InputError("NoiseFloor", [Problem("value", what)])


IDENTICAL: Final = "identical repetitions"
"""State of the floor of what came out the same each time it was repeated."""

UNKNOWN = NoiseFloor(None, 0, 0, 0, "no replicates")
"""The floor of what was never repeated. It is not 0: nothing can be said to be apart."""


@dataclass(frozen=True, slots=True)
class RankGap:
    """Two totals that follow each other.

    ``floor`` is what the gap had to exceed, None where a floor is unknown. "tie through others": the two are apart, but
    the boundary between them is not one, since a total above it cannot be told from a total below it.
    """

    gap: float
    floor: float | None
    state: GapState


@dataclass(frozen=True, slots=True)
class Ties:
    """Totals in falling order as classes: ``first`` and ``last`` place of each, and the gap to the next."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    gaps: tuple[RankGap, ...]


def noise_floor(groups: Sequence[Sequence[float]]) -> NoiseFloor:
    """Pooled standard deviation of totals within groups of repetitions.

    Parameters
    ----------
    groups : sequence of groups, each a sequence of totals
        Points, 0..100. One group for each thing that was repeated: replicate decisions on one input, or gradings of one
        record. A group of one says nothing and is left out.

    Returns
    -------
    NoiseFloor

    Raises
    ------
    InputError
        Totals that are not numbers in 0..100, all at once.

    Examples
    --------
    >>> noise_floor([[60, 62], [51, 51], [70]])
    NoiseFloor(value=1.0, freedom=2, replicates=4, groups=2, state='ok')
    >>> noise_floor([[60, 60]]).state
    'identical repetitions'
    """
    points_of("noise_floor", {f"groups[{g}][{k}]": x for g, group in enumerate(groups) for k, x in enumerate(group)})
    repeated = [[float(value) for value in group] for group in groups if len(group) > 1]
    if not repeated:
        return UNKNOWN
    replicates = sum(map(len, repeated))
    freedom = replicates - len(repeated)
    squares = math.fsum((x - math.fsum(group) / len(group)) ** 2 for group in repeated for x in group)
    if squares <= _ZERO**2:
        return NoiseFloor(None, freedom, replicates, len(repeated), IDENTICAL)
    return NoiseFloor(math.sqrt(squares / freedom), freedom, replicates, len(repeated), "ok")


def gap_floor(first: NoiseFloor, second: NoiseFloor, judges: NoiseFloor, *, level: float = 0.95) -> float | None:
    """The gap that the noise alone of two totals stays below with probability ``level``; None where a floor is unknown.

    The variances of both agents and, for each total, of the judges add up. Few repetitions make the floor higher: it is
    read on Student's t with Satterthwaite degrees of freedom. Where every replicate decision was graded anew, the noise
    of the agents holds that of the judges too, and the floor is a little too high: it errs towards a tie. Repetitions
    that are all identical add nothing, and where nothing else is known either there is no floor.

    Examples
    --------
    >>> one, judges = noise_floor([[60, 62, 61]]), noise_floor([[60, 60.5], [70, 69.5]])
    >>> round(gap_floor(one, one, judges), 2)
    3.88
    >>> gap_floor(one, UNKNOWN, judges) is None
    True
    """
    parts = []
    for floor, times in ((first, 1), (second, 1), (judges, 2)):
        if floor.state == IDENTICAL:
            continue
        if floor.value is None:
            return None
        parts.append((times * floor.value**2, floor.freedom))
    if not parts:
        return None
    variance = math.fsum(part for part, _ in parts)
    if variance <= _ZERO**2:
        return 0.0
    freedom = variance**2 / math.fsum(part**2 / df for part, df in parts)
    return t_quantile(0.5 + level / 2, freedom) * math.sqrt(variance)


def tie_classes(
    totals: Sequence[float], floors: Sequence[NoiseFloor], judges: NoiseFloor, *, level: float = 0.95
) -> Ties:
    """Classes of totals between which the noise allows no order.

    A boundary between two ranks is one where every total above it clears every total below it. So a noisy agent joins
    the classes on both of its sides, and a gap that only its neighbours clear is none.

    Parameters
    ----------
    totals : sequence of A floats
        Points, in falling order.
    floors : sequence of A NoiseFloor
        Of the agents, in the same order.
    judges : NoiseFloor
        Of the panel.
    level : float

    Returns
    -------
    Ties
        Places count from 1.

    Raises
    ------
    InputError
        Totals that are not in falling order, or lengths that differ.

    Examples
    --------
    >>> calm, noisy = noise_floor([[60, 61], [50, 51], [40, 41]]), noise_floor([[60, 70], [50, 42], [40, 49]])
    >>> found = tie_classes([90, 62, 60, 45], [calm, noisy, calm, calm], calm)
    >>> found.first, found.last
    ((1, 2, 2, 2), (1, 4, 4, 4))
    """
    if len(floors) != len(totals):
        raise InputError("tie_classes", [Problem("floors", f"one for each of {len(totals)} (got {len(floors)})")])
    if any(b > a for a, b in pairwise(totals)):
        raise InputError("tie_classes", [Problem("totals", "must be in falling order")])
    n = len(totals)
    limits: dict[tuple[int, int], float | None] = {
        (i, j): gap_floor(floors[i], floors[j], judges, level=level) for i in range(n) for j in range(i + 1, n)
    }
    reach = _reach(totals, limits)
    first, last, gaps = [1] * n, [n] * n, []
    for k in range(1, n):
        boundary = reach[k - 1] < k
        first[k] = k + 1 if boundary else first[k - 1]
        gaps.append(_gap(totals[k - 1] - totals[k], limits[k - 1, k], boundary=boundary))
    for k in reversed(range(n - 1)):
        last[k] = last[k + 1] if first[k + 1] == first[k] else k + 1
    return Ties(tuple(first), tuple(last), tuple(gaps))


def _reach(totals: Sequence[float], limits: Mapping[tuple[int, int], float | None]) -> list[int]:
    """For each rank, the last rank that it or any rank above cannot be told from."""
    reach, furthest = [], 0
    for i in range(len(totals)):
        tied = [j for j in range(i + 1, len(totals)) if not _apart(totals[i] - totals[j], limits[i, j])]
        furthest = max([furthest, i, *tied])
        reach.append(furthest)
    return reach


def _apart(gap: float, floor: float | None) -> bool:
    return floor is not None and gap > floor + _ZERO


def _gap(gap: float, floor: float | None, *, boundary: bool) -> RankGap:
    if floor is None:
        return RankGap(gap, None, "floor unknown")
    if not _apart(gap, floor):
        return RankGap(gap, floor, "tie")
    return RankGap(gap, floor, "apart" if boundary else "tie through others")
