"""The table of a season: totals with their bands, how much the judges agree, and which ranks the noise allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from assaymark.errors import Problem
from assaymark.judging.season.noise import UNKNOWN, NoiseFloor, RankGap, tie_classes
from assaymark.judging.season.plans import ScoringPlan, load_scoring
from assaymark.judging.season.scores import BandStanding, contested_band, efficiency, points_of, total_score

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
