"""Season scores from judges' grades: axes, composite, median, efficiency, total, bands, ranks within noise.

Every score is in points from 0 to 100, and more is better. A mean never leaves the range of its inputs, and raising a
grade never lowers a result computed from it, also in floating point.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Real
from statistics import median
from typing import Any, Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.season import plans
from assaymark.judging.season.plans import ScoringPlan
from assaymark.quantiles import t_quantile
from assaymark.records import IDENTICAL, duplicates


@dataclass(frozen=True, slots=True)
class DecisionTime:
    """The median seconds of an agent's decisions, with the numbers of measured and of excluded decisions."""

    seconds: float | None
    measured: int
    left_out: int


def decision_time(seconds: Iterable[float | None]) -> DecisionTime:
    """Compute the median of the measured times of an agent's usable decisions, one attempt each; None if unmeasured."""
    every = list(seconds)
    known = [each for each in every if each is not None]
    return DecisionTime(float(median(known)) if known else None, len(known), len(every) - len(known))


Band = Literal["strong", "mixed", "weak"]
BandState = Literal["agreed", "contested", "single judge"]

HIGHEST = 100.0
_DIGITS = 9  # so that a sum of 66.49999999999999 counts as 66.5


@dataclass(frozen=True, slots=True)
class BandStanding:
    """A panel's lowest, median and highest points, the band of each, and the agreement of the outer two."""

    low: float
    median: float
    high: float
    band: Band
    lowest: Band
    highest: Band
    judges: int
    state: BandState

    @property
    def contested(self) -> bool:
        """True if the judges' scores fall in different bands."""
        return self.state == "contested"


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """One judge's scores of one agent for a whole horizon. ``outcome`` is None if none could be resolved."""

    judge: str
    reasoning: float
    evidence: float
    process: float
    outcome: float | None
    composite: float
    band: Band
    grader: str
    plan: str


def band(score: float, plan: ScoringPlan | None = None) -> Band:
    """Return the band of a score, after rounding half up to a whole number.

    Parameters
    ----------
    score : float
        Points, 0..100.
    plan : ScoringPlan, optional
        Default: the shipped v0.4, in which 67 to 100 is strong and 45 to 66 mixed.

    Raises
    ------
    InputError
        Not a number in 0..100.

    Examples
    --------
    >>> band(66.5), band(66.4), band(44.4)
    ('strong', 'mixed', 'weak')
    """
    whole = math.floor(round(check_points("band", {"score": score})["score"], _DIGITS) + 0.5)
    bounds = _plan(plan).bands
    if whole >= bounds.strong:
        return "strong"
    return "mixed" if whole >= bounds.mixed else "weak"


def contested_band(judge_scores: Sequence[float], plan: ScoringPlan | None = None) -> BandStanding:
    """Return the band of the judges' median, and whether the judges' scores fall in different bands."""
    scores = _scores("contested_band", judge_scores)
    points = min(scores), float(median(scores)), max(scores)
    low, middle, high = (band(point, plan) for point in points)
    state: BandState = "single judge" if len(scores) == 1 else "agreed" if low == high else "contested"
    return BandStanding(*points, middle, low, high, len(scores), state)


def weighted_axis(sub_scores: Mapping[str, float], parts: Sequence[plans.SubComponent]) -> float:
    """Compute an axis as the weighted mean of exactly its parts (``plan.reasoning`` or ``plan.evidence``)."""
    names = [part.name for part in parts]
    problems = [Problem(name, "no score; every part of the axis needs one") for name in names if name not in sub_scores]
    unknown = [name for name in sub_scores if name not in names]
    problems += [Problem(name, f"no part of this axis (its parts: {', '.join(names)})") for name in unknown]
    scores = check_points("weighted_axis", {name: sub_scores[name] for name in names if name in sub_scores}, problems)
    return weighted_mean([(scores[part.name], part.weight) for part in parts])


def process_score(temporal: float, portfolio: float, *, plan: ScoringPlan | None = None) -> float:
    """Compute process quality: the mean of temporal consistency and portfolio discipline, weighted as in reasoning."""
    scores = check_points("process_score", {plans.TEMPORAL: temporal, plans.PORTFOLIO: portfolio})
    weights = {part.name: part.weight for part in _plan(plan).reasoning}
    return weighted_mean([(scores[name], weights[name]) for name in plans.PROCESS])


def composite(
    reasoning: float, evidence: float, process: float, outcome: float | None = None, *, plan: ScoringPlan | None = None
) -> float:
    """Compute one judge's composite: 40 % reasoning, 35 % evidence, 15 % process, 10 % outcome.

    Without an outcome its tenth is split between reasoning and evidence in proportion 40 to 35; no 0 or guess replaces
    it. (The methodology redistributes it "across" the two without a rule.)

    Parameters
    ----------
    reasoning, evidence, process, outcome : float
        Points, 0..100. ``outcome`` is None if it cannot be resolved yet.

    Returns
    -------
    float in 0..100

    Raises
    ------
    InputError
        Scores that are not numbers in 0..100, all at once.

    Examples
    --------
    >>> composite(60, 50, 40, 80), round(composite(60, 50, 40), 2)
    (55.5, 53.03)
    """
    points = {"reasoning": reasoning, "evidence": evidence, "process": process}
    scores = check_points("composite", points if outcome is None else {**points, "outcome": outcome})
    shares = _plan(plan).composite.shares(outcome=outcome is not None)
    return weighted_mean([(scores[name], share) for name, share in shares.items()])


def judge_score(
    judge: str, reasoning: Mapping[str, float], evidence: Mapping[str, float], outcome: float | None = None,
    plan: ScoringPlan | None = None,
) -> JudgeScore:  # fmt: skip
    """Compute one judge's axes and composite from its graded parts and the outcome grade of the outcome call."""
    rules = _plan(plan)
    axes = weighted_axis(reasoning, rules.reasoning), weighted_axis(evidence, rules.evidence)
    process = process_score(reasoning[plans.TEMPORAL], reasoning[plans.PORTFOLIO], plan=rules)
    whole = composite(*axes, process, outcome, plan=rules)
    points = None if outcome is None else float(outcome)
    return JudgeScore(judge, *axes, process, points, whole, band(whole, plan=rules), rules.grader, rules.digest)


def total_score(
    judge_composites: Sequence[float], efficiency: float | None = None, *, plan: ScoringPlan | None = None
) -> float:
    """Compute the total: 90 % median of the judges' composites, 10 % efficiency; without a timing the median alone.

    A plan for a single judge rejects more than one composite. With an efficiency weight of 0 only the median counts.

    Parameters
    ----------
    judge_composites : sequence of J floats
        Points, 0..100, in any order. Of an even number the median is the mean of the middle two.
    efficiency : float, optional
        Points, 0..100, from `efficiency`.

    Returns
    -------
    float in 0..100

    Raises
    ------
    InputError
        No judge, several under a plan for one, or numbers off the scale.

    Examples
    --------
    >>> total_score([57, 81, 83], 51), total_score([57, 81, 83])
    (78.0, 81.0)
    """
    rules = _plan(plan)
    scores = _scores("total_score", judge_composites)
    if rules.panel == "single" and len(scores) > 1:
        problem = f"plan {rules.version} is for a single judge (got {len(scores)} composites); use a plan with a panel"
        raise InputError("total_score", [Problem("judge_composites", problem)])
    middle = float(median(scores))
    share = rules.efficiency.weight
    if efficiency is None or not share:
        return middle
    quick = check_points("total_score", {"efficiency": efficiency})["efficiency"]
    return weighted_mean([(middle, HIGHEST - share), (quick, share)])


def efficiency(
    quality: Sequence[float], seconds: Sequence[float | None], *, plan: ScoringPlan | None = None
) -> list[float | None]:
    """Compute quality relative to decision time: ``q * min(1, reference / max(s, 1))``, with a reference of 60 seconds.

    The methodology names the quantity without a formula; this one is assaymark's. Its scale is absolute: agents do not
    affect each other, and being faster than the reference gains nothing. With ``scale = "relative"`` in the plan it is
    ``q / max(s, 1)``, scaled so that the best of the season is 100. The weakness of that scale: one rule that decides
    in milliseconds brings every model close to 0, which costs a tenth of each total.

    Parameters
    ----------
    quality : sequence of A floats
        The agents' panel-median composites, points, 0..100.
    seconds : sequence of A floats or None
        Median measured seconds of a decision: one attempt, without queueing and retries. (Version 0.4 times end to end,
        with retries and network.) None or NaN if nothing was measured; times derived from other data must be given as
        None, because they are not comparable with measured ones. See `decision_time`.

    Returns
    -------
    list of A floats in 0..100 or None
        None without a measured time; on the relative scale also for all agents if the best quality is 0.

    Raises
    ------
    InputError
        Lengths that differ, quality off its scale, seconds that are negative or not finite: all at once.

    Examples
    --------
    >>> efficiency([80, 40, 70], [120, 2, None])
    [40.0, 40.0, None]
    """
    if len(quality) != len(seconds):
        problem = f"needs one entry for each of the {len(quality)} agents (got {len(seconds)}); None without a timing"
        raise InputError("efficiency", [Problem("seconds", problem)])
    # An array of floats can only represent "no timing" as NaN.
    times = [None if s is None or s != s else s for s in seconds]
    problems = [
        Problem(f"seconds[{k}]", f"must be a finite number from 0, or None without a timing (got {s!r:.80})")
        for k, s in enumerate(times)
        if s is not None and not (_is_number(s) and s >= 0)
    ]
    points = list(check_points("efficiency", {f"quality[{k}]": q for k, q in enumerate(quality)}, problems).values())
    rule = _plan(plan).efficiency
    counted = [None if s is None else max(float(s), rule.least_seconds) for s in times]
    if rule.scale == "absolute":
        return [None if s is None else q * min(1.0, rule.reference_s / s) for q, s in zip(points, counted, strict=True)]
    rates = [None if s is None else q / s for q, s in zip(points, counted, strict=True)]
    best = max((rate for rate in rates if rate is not None), default=0.0)
    return [None if rate is None or not best else HIGHEST * (rate / best) for rate in rates]


def _plan(plan: ScoringPlan | None) -> ScoringPlan:
    return plans.load_scoring() if plan is None else plan


def weighted_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """Compute the weighted mean of (score, weight) pairs, clipped to the range of the scores."""
    scores = [score for score, _ in pairs]
    # fsum rounds once, which keeps the mean monotone; the quotient may still exceed the range by rounding.
    mean = math.fsum(score * weight for score, weight in pairs) / math.fsum(weight for _, weight in pairs)
    return min(max(mean, min(scores)), max(scores))


def _scores(source: str, values: Sequence[float]) -> list[float]:
    """Check the scores of one or more judges and return them as floats."""
    if not len(values):
        raise InputError(source, [Problem("judges", "at least one judge's score is needed (got none)")])
    return list(check_points(source, {f"judges[{k}]": value for k, value in enumerate(values)}).values())


def check_points(source: str, scores: Mapping[str, Any], problems: Sequence[Problem] = ()) -> dict[str, float]:
    """Return named scores as floats; raise InputError with those outside the scale and the given problems."""
    off = [
        Problem(name, f"must be a number in 0..100 (got {value!r:.80})")
        for name, value in scores.items()
        if not (_is_number(value) and 0 <= value <= HIGHEST)
    ]
    if problems or off:
        raise InputError(source, [*problems, *off])
    return {name: float(value) for name, value in scores.items()}


def _is_number(value: Any) -> bool:
    """Return True for a finite number within the range of a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


# The noise floor. Two things are repeated: the agent's decision on identical input, which measures the agent's noise,
# and the judges' grading of one record, which measures the judges' noise. Neither measures variation between days: a
# claim that one agent is better than another needs the periods of a season.

FloorState = Literal["ok", "no replicates", "identical repetitions"]

_ZERO = 1e-9  # points; totals are sums of floats, whose last digits must not decide a ranking


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
            text = f"needs a value in 0..100 points with a freedom of 1 or more (got {self.value!r}, {self.freedom!r})"
            raise InputError("NoiseFloor", [Problem("value", text)])


UNKNOWN = NoiseFloor(None, 0, 0, 0, "no replicates")
"""The floor without repetitions. It is not 0; no two totals can then be ranked."""


def noise_floor(groups: Sequence[Sequence[float]]) -> NoiseFloor:
    """Compute the pooled standard deviation of totals (0..100 points) within groups of repetitions."""
    check_points("noise_floor", {f"groups[{g}][{k}]": x for g, group in enumerate(groups) for k, x in enumerate(group)})
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
    """Compute the bound that a difference of two totals by noise alone stays below with probability ``level``."""
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
) -> list[tuple[int, int]]:
    """Compute the best and the worst rank that the noise permits for each total, in descending order of totals."""
    if len(floors) != len(totals):
        raise InputError("tie_classes", [Problem("floors", f"one for each of {len(totals)} (got {len(floors)})")])
    if any(b > a for a, b in pairwise(totals)):
        raise InputError("tie_classes", [Problem("totals", "must be in falling order")])
    n = len(totals)

    def apart(i: int, j: int) -> bool:
        limit = gap_floor(floors[i], floors[j], judges, level)
        return limit is not None and totals[i] - totals[j] > limit + _ZERO

    first, last, furthest = [1] * n, [n] * n, 0
    for k in range(1, n):
        # The last rank that is within noise of any rank above this boundary.
        furthest = max([furthest, k - 1, *(j for j in range(k, n) if not apart(k - 1, j))])
        first[k] = k + 1 if furthest < k else first[k - 1]
    for k in reversed(range(n - 1)):
        last[k] = last[k + 1] if first[k + 1] == first[k] else k + 1
    return list(zip(first, last, strict=True))


RowState = Literal["graded", "graded by part of the panel", "not graded", "no usable answer"]


@dataclass(frozen=True, slots=True)
class Contestant:
    """The inputs for ranking one agent: composites by judge, decision seconds, noise floor."""

    name: str
    composites: Mapping[str, float]
    seconds: float | None = None
    floor: NoiseFloor = field(default=UNKNOWN)
    answered: bool = True


@dataclass(frozen=True, slots=True)
class SeasonRow:
    """One contestant in the table: ``agreement`` compares the judges' composites, ``standing`` the judges' totals."""

    contestant: str
    state: RowState
    agreement: BandStanding | None
    total: float | None
    standing: BandStanding | None
    efficiency: float | None
    absent: tuple[str, ...]
    first: int | None = None
    last: int | None = None


def season_table(
    contestants: Sequence[Contestant], judges: NoiseFloor = UNKNOWN, plan: ScoringPlan | None = None
) -> tuple[SeasonRow, ...]:
    """Compute the table of a season under a scoring plan, by descending total, rows without a total last."""
    rules, names = _plan(plan), [contestant.name for contestant in contestants]
    twice = duplicates(names)
    problems = [Problem(name, "more than one contestant has this name") for name in twice]
    points = {f"{one.name}, {judge}": value for one in contestants for judge, value in one.composites.items()}
    check_points("season_table", points, problems)
    graded = [contestant for contestant in contestants if contestant.composites and contestant.answered]
    agreements = [contested_band([*contestant.composites.values()], rules) for contestant in graded]
    quick: list[float | None] = [None] * len(graded)
    if rules.efficiency.weight:
        quick = efficiency([row.median for row in agreements], [one.seconds for one in graded], plan=rules)
    panel = {judge for contestant in contestants for judge in contestant.composites}

    def absent(contestant: Contestant) -> tuple[str, ...]:
        return tuple(sorted(panel - set(contestant.composites)))

    rows: list[tuple[float, NoiseFloor, SeasonRow]] = []
    for one, agreement, share in zip(graded, agreements, quick, strict=True):
        scores = list(one.composites.values())
        total = total_score(scores, share, plan=rules)
        standing = contested_band([total_score([score], share, plan=rules) for score in scores], plan=rules)
        state: RowState = "graded by part of the panel" if absent(one) else "graded"
        rows.append((total, one.floor, SeasonRow(one.name, state, agreement, total, standing, share, absent(one))))
    rows.sort(key=lambda row: (-row[0], row[2].contestant))
    places = tie_classes([row[0] for row in rows], [row[1] for row in rows], judges, rules.ties.level)
    ranked = [replace(row, first=first, last=last) for (_, _, row), (first, last) in zip(rows, places, strict=True)]
    for contestant in sorted((each for each in contestants if each not in graded), key=lambda each: each.name):
        state = "not graded" if contestant.answered else "no usable answer"
        ranked.append(SeasonRow(contestant.name, state, None, None, None, None, absent(contestant)))
    return tuple(ranked)


# Thrashing: assets that are bought and sold again, or sold and bought again, within a few days. In the season
# methodology judges penalise it as part of temporal consistency; this count of trades is reported with their grade.

_NOTHING = 1e-9  # units, relative to the trade: the remainder of 0.3 - 0.1 - 0.2 is not a position

RoundTrip = tuple[str, Literal["buy", "sell"], int, int, float]
"""A trade that reverses earlier ones in the same asset: symbol, side of the first trade, the day of the earliest
reversed trade and the day of the reversal, counted from 0, and the quantity, which is above 0."""


def thrashing(fills: Sequence[Iterable[tuple[str, float]]], within: int = 5) -> tuple[tuple[RoundTrip, ...], int]:
    """Find an agent's round trips within so many days; also count its trades, one per asset, day and direction."""
    traded: list[list[tuple[str, float]]] = []
    for day in fills:
        # Consecutive fills of one asset in one direction are one trade.
        trades, last = list[tuple[str, float]](), dict[str, int]()
        for symbol, units in day:
            if (place := last.get(symbol)) is not None and trades[place][1] * units > 0:
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
    trips: list[RoundTrip] = []
    for at, trades in enumerate(traded):
        for symbol, quantity in trades:
            lots, rest, opened, nothing = open_trades[symbol], abs(quantity), at, _NOTHING * abs(quantity)
            while lots and lots[-1][1] * quantity < 0 and at - lots[-1][0] <= within and rest > nothing:
                opened, units = lots.pop()
                reversed_units = min(rest, abs(units))
                rest -= reversed_units
                if abs(units) - reversed_units > _NOTHING * abs(units):
                    lots.append((opened, math.copysign(abs(units) - reversed_units, units)))
            if back := abs(quantity) - rest:
                trips.append((symbol, "sell" if quantity > 0 else "buy", opened, at, back))
            if rest > nothing:
                # Open trades on the other side are too old for any later trade to reverse them.
                if lots and lots[-1][1] * quantity < 0:
                    lots.clear()
                lots.append((at, math.copysign(rest, quantity)))
    return tuple(trips), sum(map(len, traded))
