"""The table of a season: totals with their bands, how much the judges agree, and which ranks the noise allows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.season.plans import ScoringPlan, load_scoring
from assaymark.judging.season.scoring import HIGHEST, BandStanding, contested_band, efficiency, points_of, total_score
from assaymark.quantiles import t_quantile
from assaymark.records import IDENTICAL

# The noise floor. Two things are repeated: the agent's decision on identical input, which shows the agent's own noise,
# and the judges' grading of one record, which shows theirs. Neither says what other days would have brought: that an
# agent is better than another is a claim over the periods of a season.

FloorState = Literal["ok", "no replicates", "identical repetitions"]
GapState = Literal["apart", "tie", "tie through others", "floor unknown"]

_ZERO = 1e-9  # points; totals are sums of floats, and their last digits are no order


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The standard deviation of totals between repetitions, in points."""

    value: float | None
    freedom: int
    replicates: int
    groups: int
    state: FloorState

    def __post_init__(self) -> None:
        if self.value is not None and not (self.freedom > 0 and 0 <= self.value <= HIGHEST):
            what = f"needs a value in 0..100 points with a freedom of 1 or more (got {self.value!r}, {self.freedom!r})"
            raise InputError("NoiseFloor", [Problem("value", what)])


UNKNOWN = NoiseFloor(None, 0, 0, 0, "no replicates")
"""The floor of what was never repeated. It is not 0: nothing can be said to be apart."""


@dataclass(frozen=True, slots=True)
class RankGap:
    """Two totals that follow each other."""

    gap: float
    floor: float | None
    state: GapState


def noise_floor(groups: Sequence[Sequence[float]]) -> NoiseFloor:
    """Pooled standard deviation of totals (0..100 points) within groups of repetitions."""
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


def gap_floor(first: NoiseFloor, second: NoiseFloor, judges: NoiseFloor, level: float = 0.95) -> float | None:
    """The gap that the noise alone of two totals stays below with probability ``level``."""
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
    totals: Sequence[float], floors: Sequence[NoiseFloor], judges: NoiseFloor, level: float = 0.95
) -> tuple[list[tuple[int, int]], tuple[RankGap, ...]]:
    """The first and last place of each total, in falling order, and the gap to the next: the noise allows no more."""
    if len(floors) != len(totals):
        raise InputError("tie_classes", [Problem("floors", f"one for each of {len(totals)} (got {len(floors)})")])
    if any(b > a for a, b in pairwise(totals)):
        raise InputError("tie_classes", [Problem("totals", "must be in falling order")])
    n = len(totals)
    limits = {(i, j): gap_floor(floors[i], floors[j], judges, level) for i in range(n) for j in range(i + 1, n)}

    def apart(i: int, j: int) -> bool:
        limit = limits[i, j]
        return limit is not None and totals[i] - totals[j] > limit + _ZERO

    first, last, gaps, furthest = [1] * n, [n] * n, [], 0
    for k in range(1, n):
        # The last rank that any rank above this boundary cannot be told from.
        furthest = max([furthest, k - 1, *(j for j in range(k, n) if not apart(k - 1, j))])
        boundary = furthest < k
        first[k] = k + 1 if boundary else first[k - 1]
        state: GapState = "apart" if boundary else "tie through others"
        if limits[k - 1, k] is None:
            state = "floor unknown"
        elif not apart(k - 1, k):
            state = "tie"
        gaps.append(RankGap(totals[k - 1] - totals[k], limits[k - 1, k], state))
    for k in reversed(range(n - 1)):
        last[k] = last[k + 1] if first[k + 1] == first[k] else k + 1
    return list(zip(first, last, strict=True)), tuple(gaps)


RowState = Literal["graded", "graded by part of the panel", "not graded", "no usable answer"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """What is known of one agent before it is ranked."""

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


@dataclass(frozen=True, slots=True)
class SeasonRow:
    """One contestant in the table."""

    contestant: str
    state: RowState
    agreement: AgreementRow | None
    total: float | None
    standing: BandStanding | None
    efficiency: float | None
    absent: tuple[str, ...]
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class SeasonTable:
    """Rows by falling total, those without one at the end; ``gaps[k]`` lies between the totals of rows k and k + 1."""

    rows: tuple[SeasonRow, ...]
    gaps: tuple[RankGap, ...]
    grader: str
    plan: str
    level: float


def agreement_row(contestant: str, composites: Mapping[str, float], *, plan: ScoringPlan | None = None) -> AgreementRow:
    """How far the judges of one contestant agree."""
    named = points_of("agreement_row", {f"{contestant}, {judge}": value for judge, value in composites.items()})
    scores = sorted(named.values())
    standing = contested_band(scores, plan)
    return AgreementRow(contestant, scores[0], float(median(scores)), scores[-1], len(scores), standing)


def season_table(
    contestants: Sequence[Contestant], judges: NoiseFloor = UNKNOWN, plan: ScoringPlan | None = None
) -> SeasonTable:
    """The table of a season under a scoring plan."""
    rules = load_scoring() if plan is None else plan
    names = [contestant.name for contestant in contestants]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [Problem(name, "more than one contestant has this name") for name in twice]
    given = {
        f"{contestant.name}, {judge}": value
        for contestant in contestants
        for judge, value in contestant.composites.items()
    }
    points_of("season_table", given, problems)
    graded = [contestant for contestant in contestants if contestant.composites and contestant.answered]
    agreements = [agreement_row(one.name, one.composites, plan=rules) for one in graded]
    quick: list[float | None] = [None] * len(graded)
    if rules.efficiency.weight:
        quick = efficiency([row.median for row in agreements], [one.seconds for one in graded], plan=rules)
    panel = {judge for contestant in contestants for judge in contestant.composites}

    def absent(one: Contestant) -> tuple[str, ...]:
        return tuple(sorted(panel - set(one.composites)))

    rows: list[tuple[float, NoiseFloor, SeasonRow]] = []
    for one, agreement, share in zip(graded, agreements, quick, strict=True):
        scores = list(one.composites.values())
        total = total_score(scores, share, plan=rules)
        standing = contested_band([total_score([score], share, plan=rules) for score in scores], plan=rules)
        state: RowState = "graded by part of the panel" if absent(one) else "graded"
        rows.append((total, one.floor, SeasonRow(one.name, state, agreement, total, standing, share, absent(one))))
    rows.sort(key=lambda row: (-row[0], row[2].contestant))
    totals, floors = [total for total, _, _ in rows], [floor for _, floor, _ in rows]
    places, gaps = tie_classes(totals, floors, judges, rules.ties.level)
    ranked = [replace(row, first=first, last=last) for (_, _, row), (first, last) in zip(rows, places, strict=True)]
    rest = []
    for one in sorted(
        (contestant for contestant in contestants if contestant not in graded), key=lambda contestant: contestant.name
    ):
        state = "not graded" if one.answered else "no usable answer"
        rest.append(SeasonRow(one.name, state, None, None, None, None, absent(one)))
    return SeasonTable((*ranked, *rest), gaps, rules.grader, rules.digest, rules.ties.level)


# Thrashing: names that are bought and sold again, or sold and bought again, within a few days. The season methodology
# lets judges mark it down as part of temporal consistency; this count stands beside their grade. It sees trades only.

_NOTHING = 1e-9  # units, relative to the trade: what is left of 0.3 after 0.1 and 0.2 is no position


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A trade that takes back earlier ones of the same name; days are counted from 0, ``quantity`` is above 0."""

    symbol: str
    first: Literal["buy", "sell"]
    opened: int
    """The day of the earliest trade that was taken back."""
    closed: int
    quantity: float


def thrashing(fills: Sequence[Iterable[tuple[str, float]]], within: int = 5) -> tuple[tuple[RoundTrip, ...], int]:
    """The round trips of one agent within so many days, and its trades, those of one name, day and direction as one."""
    traded: list[list[tuple[str, float]]] = []
    for day in fills:
        # Neighbouring fills of one name in one direction are one trade.
        trades: list[tuple[str, float]] = []
        last: dict[str, int] = {}
        for symbol, units in day:
            place = last.get(symbol)
            if place is not None and trades[place][1] * units > 0:
                trades[place] = (symbol, trades[place][1] + units)
            else:
                last[symbol] = len(trades)
                trades.append((symbol, units))
        traded.append(trades)
    problems = [
        Problem(f"day {at}, {symbol}", f"a fill trades a finite number of units, not 0 (got {quantity!r:.80})")
        for at, trades in enumerate(traded)
        for symbol, quantity in trades
        if not math.isfinite(quantity) or not quantity
    ]
    if within < 0:
        problems.append(Problem("within", f"must be a number of days from 0 (got {within!r})"))
    if problems:
        raise InputError("thrashing", problems)
    open_trades: dict[str, list[tuple[int, float]]] = defaultdict(list)
    trips = []
    for at, trades in enumerate(traded):
        for symbol, quantity in trades:
            lots, rest, opened, nothing = open_trades[symbol], abs(quantity), at, _NOTHING * abs(quantity)
            while lots and lots[-1][1] * quantity < 0 and at - lots[-1][0] <= within and rest > nothing:
                opened, units = lots.pop()
                taken = min(rest, abs(units))
                rest -= taken
                if abs(units) - taken > _NOTHING * abs(units):
                    lots.append((opened, math.copysign(abs(units) - taken, units)))
            if back := abs(quantity) - rest:
                trips.append(RoundTrip(symbol, "sell" if quantity > 0 else "buy", opened, at, back))
            if rest > nothing:
                # What is open on the other side is too old to be taken back by anything that follows.
                if lots and lots[-1][1] * quantity < 0:
                    lots.clear()
                lots.append((at, math.copysign(rest, quantity)))
    return tuple(trips), sum(map(len, traded))
