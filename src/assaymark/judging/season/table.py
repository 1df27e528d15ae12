"""The table of a season: totals with their bands, how much the judges agree, and which ranks the noise allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Final, Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.season.plans import ScoringPlan, load_scoring
from assaymark.judging.season.scoring import HIGHEST, BandStanding, contested_band, efficiency, points_of, total_score
from assaymark.quantiles import t_quantile

# How far a total moves when nothing has changed, and which totals are therefore one class.
#
# Two things are repeated: the agent's decision on identical input, which shows the agent's own noise, and the judges'
# grading of one record, which shows theirs. Neither says what other days would have brought: that an agent is better
# than another is a claim over the periods of a season, and a rank that clears its floor has cleared only the first
# hurdle.


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


RowState = Literal["graded", "graded by part of the panel", "not graded", "no usable answer"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """What is known of one agent before it is ranked.

    ``composites`` are points by judge; a judge without a usable grade is left out. ``seconds`` is the median measured
    time of a decision, None without one. ``floor`` is the agent's own noise. ``answered`` is whether it gave any usable
    answer: what judges grade of an agent without one is an empty record, and it has no total.
    """

    name: str
    composites: Mapping[str, float]
    seconds: float | None = None
    floor: NoiseFloor = field(default=UNKNOWN)
    answered: bool = True


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """Lowest, median and highest composite of one contestant over its judges, and the band that they make of it."""

    contestant: str
    low: float
    median: float
    high: float
    judges: int
    standing: BandStanding

    @property
    def spread(self) -> float:
        """Highest less lowest, in points."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class SeasonRow:
    """One contestant in the table.

    Attributes
    ----------
    state : "graded", "graded by part of the panel", "not graded" or "no usable answer"
        The last two have no numbers and no place: nobody graded it, or it never gave a usable answer.
    agreement : AgreementRow or None
    total : float or None
        Points.
    standing : BandStanding or None
        Band of the total, and whether the totals that single judges would make straddle a boundary.
    efficiency : float or None
        Points; None without a measured time, and under a plan that has none.
    absent : names of judges
        Of the season's panel, those without a usable grade for it.
    first, last : int or None
        Places of its tie class: any order between them is noise.
    """

    contestant: str
    state: RowState
    agreement: AgreementRow | None
    total: float | None
    standing: BandStanding | None
    efficiency: float | None
    absent: tuple[str, ...]
    first: int | None = None
    last: int | None = None

    @property
    def tied(self) -> bool:
        """Whether it shares its place."""
        return self.first != self.last


@dataclass(frozen=True, slots=True)
class SeasonTable:
    """Rows by falling total, those without one at the end; ``gaps[k]`` lies between the totals of rows k and k + 1."""

    rows: tuple[SeasonRow, ...]
    gaps: tuple[RankGap, ...]
    grader: str
    plan: str
    level: float


def agreement_row(contestant: str, composites: Mapping[str, float], *, plan: ScoringPlan | None = None) -> AgreementRow:
    """How far the judges of one contestant agree.

    Parameters
    ----------
    contestant : str
    composites : mapping of judge to float
        Points, 0..100, of one judge or more.

    Raises
    ------
    InputError
        No judge, or a composite that is not a number in 0..100.

    Examples
    --------
    >>> row = agreement_row("ash", {"auditor": 57, "reader": 81, "skeptic": 83})
    >>> row.low, row.median, row.high, row.standing.state
    (57.0, 81.0, 83.0, 'contested')
    """
    named = points_of("agreement_row", {f"{contestant}, {judge}": value for judge, value in composites.items()})
    scores = sorted(named.values())
    standing = contested_band(scores, plan=plan)
    return AgreementRow(contestant, scores[0], float(median(scores)), scores[-1], len(scores), standing)


def season_table(
    contestants: Sequence[Contestant],
    *,
    judges: NoiseFloor = UNKNOWN,
    plan: ScoringPlan | None = None,
) -> SeasonTable:
    """The table of a season under a scoring plan.

    Totals are in order, and places say which of that order may be read: contestants whose totals the noise cannot tell
    apart share theirs. Where nothing was repeated the noise is unknown, and everybody shares one place.

    Parameters
    ----------
    contestants : sequence of Contestant
        In any order.
    judges : NoiseFloor
        Of the panel's totals when the same records are graded again.
    plan : ScoringPlan, optional
        Default: the shipped v0.4.

    Returns
    -------
    SeasonTable

    Raises
    ------
    InputError
        Two contestants of one name, composites off the scale, several judges under a plan for one.

    Examples
    --------
    >>> calm = NoiseFloor(0.5, 9, 10, 1, "ok")
    >>> table = season_table(
    ...     [
    ...         Contestant("ash", {"auditor": 60, "reader": 70, "skeptic": 66}, 4.0, calm),
    ...         Contestant("birch", {"auditor": 80, "reader": 82, "skeptic": 75}, 8.0, calm),
    ...         Contestant("cedar", {"auditor": 66, "reader": 64, "skeptic": 65}, 4.0, calm),
    ...     ],
    ...     judges=calm,
    ... )
    >>> [(row.contestant, round(row.total, 1), row.first, row.last) for row in table.rows]
    [('birch', 80.0, 1, 1), ('ash', 66.0, 2, 3), ('cedar', 65.0, 2, 3)]
    """
    rules = load_scoring() if plan is None else plan
    _check(contestants)
    graded = [one for one in contestants if one.composites and one.answered]
    agreements = [agreement_row(one.name, one.composites, plan=rules) for one in graded]
    quick: list[float | None] = [None] * len(graded)
    if rules.efficiency.weight:
        quick = efficiency([row.median for row in agreements], [one.seconds for one in graded], plan=rules)
    panel = {judge for one in contestants for judge in one.composites}
    rows = [
        _row(one, agreement, share, panel, rules)
        for one, agreement, share in zip(graded, agreements, quick, strict=True)
    ]
    floors = {one.name: one.floor for one in contestants}
    ranked, gaps = _ranked(rows, floors, judges, rules.ties.level)
    without = sorted((one for one in contestants if one not in graded), key=lambda one: one.name)
    rest = [_placeless(one, panel) for one in without]
    return SeasonTable((*ranked, *rest), gaps, rules.grader, rules.digest, rules.ties.level)


def _placeless(one: Contestant, panel: set[str]) -> SeasonRow:
    """The row of a contestant without a total."""
    state: RowState = "not graded" if one.answered else "no usable answer"
    return SeasonRow(one.name, state, None, None, None, None, tuple(sorted(panel - set(one.composites))))


def _check(contestants: Sequence[Contestant]) -> None:
    """Refuse names that occur twice and composites off the scale."""
    names = [one.name for one in contestants]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [Problem(name, "more than one contestant has this name") for name in twice]
    given = {f"{one.name}, {judge}": value for one in contestants for judge, value in one.composites.items()}
    points_of("season_table", given, problems)


def _row(
    one: Contestant, agreement: AgreementRow, share: float | None, panel: set[str], plan: ScoringPlan
) -> tuple[float, SeasonRow]:
    """The total of a contestant, and its row."""
    scores = list(one.composites.values())
    total = total_score(scores, share, plan=plan)
    alone = [total_score([score], share, plan=plan) for score in scores]
    absent = tuple(sorted(panel - set(one.composites)))
    state: RowState = "graded by part of the panel" if absent else "graded"
    return total, SeasonRow(one.name, state, agreement, total, contested_band(alone, plan=plan), share, absent)


def _ranked(
    rows: Sequence[tuple[float, SeasonRow]], floors: Mapping[str, NoiseFloor], judges: NoiseFloor, level: float
) -> tuple[list[SeasonRow], tuple[RankGap, ...]]:
    """The rows by falling total with the places of their classes, and the gaps between them."""
    ordered = sorted(rows, key=lambda row: (-row[0], row[1].contestant))
    noise = [floors[row.contestant] for _, row in ordered]
    ties = tie_classes([total for total, _ in ordered], noise, judges, level=level)
    places = zip(ordered, ties.first, ties.last, strict=True)
    return [replace(row, first=first, last=last) for (_, row), first, last in places], ties.gaps
