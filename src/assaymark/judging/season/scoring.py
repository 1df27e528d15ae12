"""What a judge said of a horizon, as a record: grades of its parts put together, capped, and made a score."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.season.calls import grader_version, next_call
from assaymark.judging.season.ledger import CappedPart, HorizonLedger, LedgerDisagreement, capped, ledger_disagreement
from assaymark.judging.season.plans import PORTFOLIO, PROCESS, TEMPORAL, ScoringPlan, SubComponent, load_scoring
from assaymark.judging.season.record import Horizon, HorizonPart
from assaymark.judging.season.replies import (
    HorizonAnswer,
    HorizonClaim,
    LookaheadCheck,
    OutcomeAnswer,
    Read,
    ReplyState,
)
from assaymark.records import CallFacts, record

if TYPE_CHECKING:
    from assaymark.judging.season.calls import HorizonTask, PlannedHorizonCall


# How long an agent takes for a decision, from measured times only.


TimeState = Literal["ok", "no measured time"]


@dataclass(frozen=True, slots=True)
class DecisionTime:
    """The median seconds of an agent's decisions, with how many were measured and how many were left out.

    ``seconds`` is None, and ``state`` says so, where none was measured.
    """

    seconds: float | None
    measured: int
    left_out: int
    state: TimeState


def decision_time(calls: Iterable[CallFacts]) -> DecisionTime:
    """The median over the measured times of an agent's usable decisions.

    Answers that could not be used are not handed in: a connection that is refused at once is no fast decision.

    A median, so that a slow call now and then moves it little. Times that were derived (from time stamps of a log, for
    instance) include what nobody knows and are left out even beside measured ones.

    Parameters
    ----------
    calls : iterable of CallFacts
        One for each usable decision; ``seconds`` are those of one attempt.

    Examples
    --------
    >>> stamped = CallFacts(seconds=90.0, timing_source="derived")
    >>> decision_time([CallFacts(seconds=4.0, timing_source="measured"), stamped])
    DecisionTime(seconds=4.0, measured=1, left_out=1, state='ok')
    """
    every = list(calls)
    seconds = [call.seconds for call in every if call.timing_source == "measured" and call.seconds is not None]
    if not seconds:
        return DecisionTime(None, 0, len(every), "no measured time")
    return DecisionTime(float(median(seconds)), len(seconds), len(every) - len(seconds), "ok")


# From the grades of judges to a total: axes, composite, median, efficiency, bands (season methodology v0.3 and v0.4).
#
# Every score is in points from 0 to 100 and more is better. A mean never leaves the range of what it is a mean of, and
# raising any grade never lowers what follows from it, in floats too.


Band = Literal["strong", "mixed", "weak"]
BandState = Literal["agreed", "contested", "single judge"]

HIGHEST = 100.0
_DIGITS = 9  # 66.5 that a sum made 66.49999999999999 is 66.5


@dataclass(frozen=True, slots=True)
class BandStanding:
    """The band of a panel's median, and whether the judges agree on it.

    Attributes
    ----------
    band : "strong", "mixed" or "weak"
        Of the median.
    lowest, highest : bands
        Of the lowest and of the highest judge.
    judges : int
    state : "agreed", "contested" or "single judge"
        Contested where lowest and highest differ. One judge can neither agree nor disagree.
    """

    band: Band
    lowest: Band
    highest: Band
    judges: int
    state: BandState

    @property
    def contested(self) -> bool:
        """Whether the judges straddle a boundary."""
        return self.state == "contested"


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """What one judge gave one agent for a whole horizon. ``outcome`` is None where none could be resolved.

    ``grader`` and ``plan`` (a digest) say by which rules; scores under other rules are other quantities.
    """

    judge: str
    reasoning: float
    evidence: float
    process: float
    outcome: float | None
    composite: float
    band: Band
    grader: str
    plan: str


def band(score: float, *, plan: ScoringPlan | None = None) -> Band:
    """The band of a score, after rounding half up to a whole number.

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
    whole = math.floor(round(points_of("band", {"score": score})["score"], _DIGITS) + 0.5)
    bounds = _plan(plan).bands
    if whole >= bounds.strong:
        return "strong"
    return "mixed" if whole >= bounds.mixed else "weak"


def contested_band(judge_scores: Sequence[float], *, plan: ScoringPlan | None = None) -> BandStanding:
    """The band of the judges' median, and whether the judges straddle a boundary.

    A band is a claim too: where one judge says strong and another mixed, the band of the median is contested. The
    season pages call bands stable, and all five contestants of their agreement table straddle one.

    Parameters
    ----------
    judge_scores : sequence of J floats
        Points, 0..100, one for each judge, in any order.

    Raises
    ------
    InputError
        Empty, or a score that is not a number in 0..100.

    Examples
    --------
    >>> found = contested_band([57, 81, 83])
    >>> found.band, found.lowest, found.state
    ('strong', 'mixed', 'contested')
    """
    scores = _scores("contested_band", judge_scores)
    low, high = band(min(scores), plan=plan), band(max(scores), plan=plan)
    state: BandState = "single judge" if len(scores) == 1 else "agreed" if low == high else "contested"
    return BandStanding(band(median(scores), plan=plan), low, high, len(scores), state)


def weighted_axis(sub_scores: Mapping[str, float], parts: Sequence[SubComponent]) -> float:
    """An axis from its parts: their mean, weighted as the plan says.

    Parameters
    ----------
    sub_scores : mapping of part to float
        Points, 0..100, for exactly the parts of the axis.
    parts : sequence of SubComponent
        ``plan.reasoning`` or ``plan.evidence``.

    Returns
    -------
    float in 0..100

    Raises
    ------
    InputError
        Parts that are missing or unknown, and scores off the scale: all at once.

    Examples
    --------
    >>> parts = load_scoring("v0.4").evidence
    >>> grades = dict.fromkeys((part.name for part in parts), 60) | {"claim_support": 80}
    >>> weighted_axis(grades, parts)
    65.0
    """
    names = [part.name for part in parts]
    problems = [Problem(name, "no score; every part of the axis needs one") for name in names if name not in sub_scores]
    unknown = [name for name in sub_scores if name not in names]
    problems += [Problem(name, f"no part of this axis (its parts: {', '.join(names)})") for name in unknown]
    scores = points_of("weighted_axis", {name: sub_scores[name] for name in names if name in sub_scores}, problems)
    return _mean([(scores[part.name], part.weight) for part in parts])


def process_score(temporal: float, portfolio: float, *, plan: ScoringPlan | None = None) -> float:
    """Process quality: temporal consistency and portfolio discipline by their weights in reasoning, scaled to 100.

    The shipped plans weigh both alike, which makes it their mean. The methodology names no parts of process; these are
    the two whose names its component carries.

    Raises
    ------
    InputError
        A score that is not a number in 0..100.

    Examples
    --------
    >>> process_score(40, 60)
    50.0
    """
    scores = points_of("process_score", {TEMPORAL: temporal, PORTFOLIO: portfolio})
    weights = {part.name: part.weight for part in _plan(plan).reasoning}
    return _mean([(scores[name], weights[name]) for name in PROCESS])


def composite(
    reasoning: float,
    evidence: float,
    process: float,
    outcome: float | None = None,
    *,
    plan: ScoringPlan | None = None,
) -> float:
    """One judge's composite: 40 % reasoning, 35 % evidence, 15 % process, 10 % outcome.

    Without an outcome its tenth goes to reasoning and evidence in proportion 40 to 35: neither 0 nor a guess stands in
    for it. (The methodology redistributes "across" the two and does not say how.)

    Parameters
    ----------
    reasoning, evidence, process, outcome : float
        Points, 0..100. ``outcome`` None: not resolvable yet.

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
    given = {"reasoning": reasoning, "evidence": evidence, "process": process}
    scores = points_of("composite", given if outcome is None else {**given, "outcome": outcome})
    shares = _plan(plan).composite.shares(outcome=outcome is not None)
    return _mean([(scores[name], share) for name, share in shares.items()])


def judge_score(
    judge: str,
    reasoning: Mapping[str, float],
    evidence: Mapping[str, float],
    outcome: float | None = None,
    *,
    plan: ScoringPlan | None = None,
) -> JudgeScore:
    """One judge's axes and composite from the parts that it graded.

    Parameters
    ----------
    reasoning, evidence : mapping of part to float
        Points, 0..100, for exactly the parts of the plan.
    outcome : float, optional
        From the separate call that alone is shown outcomes.

    Raises
    ------
    InputError
        As for `weighted_axis` and `composite`.

    Examples
    --------
    >>> plan = load_scoring("v0.4")
    >>> grades = [dict.fromkeys((part.name for part in axis), 70) for axis in (plan.reasoning, plan.evidence)]
    >>> found = judge_score("auditor", *grades)
    >>> found.composite, found.band, found.outcome
    (70.0, 'strong', None)
    """
    rules = _plan(plan)
    axes = weighted_axis(reasoning, rules.reasoning), weighted_axis(evidence, rules.evidence)
    process = process_score(reasoning[TEMPORAL], reasoning[PORTFOLIO], plan=rules)
    whole = composite(*axes, process, outcome, plan=rules)
    given = None if outcome is None else float(outcome)
    return JudgeScore(judge, *axes, process, given, whole, band(whole, plan=rules), rules.grader, rules.digest)


def total_score(
    judge_composites: Sequence[float], efficiency: float | None = None, *, plan: ScoringPlan | None = None
) -> float:
    """The total: 90 % the median of the judges' composites, 10 % efficiency; without a timing the median alone.

    A plan for a single judge has no panel to take a median of and refuses more than one composite. A plan whose
    efficiency weighs nothing ignores it.

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
        what = f"plan {rules.version} is for a single judge (got {len(scores)} composites); use a plan with a panel"
        raise InputError("total_score", [Problem("judge_composites", what)])
    middle = float(median(scores))
    share = rules.efficiency.weight
    if efficiency is None or not share:
        return middle
    quick = points_of("total_score", {"efficiency": efficiency})["efficiency"]
    return _mean([(middle, HIGHEST - share), (quick, share)])


def efficiency(
    quality: Sequence[float], seconds: Sequence[float | None], *, plan: ScoringPlan | None = None
) -> list[float | None]:
    """Quality for the time that deciding takes: ``q * min(1, reference / max(s, 1))``, the reference being 60 seconds.

    The methodology names the quantity and gives no formula; this one is ours. Its scale is absolute: no agent changes
    another's, and an agent gains nothing by being faster than the reference. With ``scale = "relative"`` in the plan
    it is ``q / max(s, 1)``, scaled so that the best of the season has 100. That scale has a weakness: a rule that
    decides in milliseconds leaves every model close to 0, which is a tenth of each total.

    Parameters
    ----------
    quality : sequence of A floats
        The agents' panel-median composites, points, 0..100.
    seconds : sequence of A floats or None
        Median measured seconds of a decision: one attempt, without queueing and retries. (Version 0.4 times end to end,
        with retries and network.) None or NaN where nothing was measured; times that were derived from something else
        are never mixed with measured ones and belong here as None. See `decision_time`.

    Returns
    -------
    list of A floats in 0..100 or None
        None without a measured time; on the relative scale also for all where the best quality is 0.

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
        what = f"needs one entry for each of the {len(quality)} agents (got {len(seconds)}); None without a timing"
        raise InputError("efficiency", [Problem("seconds", what)])
    # An array of floats can say "no timing" only by NaN.
    known = [None if s is None or s != s else s for s in seconds]
    problems = [
        Problem(f"seconds[{k}]", f"must be a finite number from 0, or None without a timing (got {s!r:.80})")
        for k, s in enumerate(known)
        if s is not None and not (_is_number(s) and s >= 0)
    ]
    points = list(points_of("efficiency", {f"quality[{k}]": q for k, q in enumerate(quality)}, problems).values())
    rule = _plan(plan).efficiency
    counted = [None if s is None else max(float(s), rule.least_seconds) for s in known]
    if rule.scale == "absolute":
        return [None if s is None else q * min(1.0, rule.reference_s / s) for q, s in zip(points, counted, strict=True)]
    rates = [None if s is None else q / s for q, s in zip(points, counted, strict=True)]
    best = max((rate for rate in rates if rate is not None), default=0.0)
    return [None if rate is None or not best else HIGHEST * (rate / best) for rate in rates]


def _plan(plan: ScoringPlan | None) -> ScoringPlan:
    return load_scoring() if plan is None else plan


def _mean(pairs: Sequence[tuple[float, float]]) -> float:
    """The weighted mean of (score, weight), within the range of the scores."""
    scores = [score for score, _ in pairs]
    # fsum rounds once, which keeps the mean monotone; the quotient may still leave the range by one float.
    mean = math.fsum(score * weight for score, weight in pairs) / math.fsum(weight for _, weight in pairs)
    return min(max(mean, min(scores)), max(scores))


def _scores(source: str, values: Sequence[float]) -> list[float]:
    """The scores of one judge or more."""
    if not len(values):
        raise InputError(source, [Problem("judges", "at least one judge's score is needed (got none)")])
    return list(points_of(source, {f"judges[{k}]": value for k, value in enumerate(values)}).values())


def points_of(source: str, given: Mapping[str, Any], problems: Sequence[Problem] = ()) -> dict[str, float]:
    """Named scores on the scale, as floats; what is off it, and the problems found before, raised together."""
    off = [
        Problem(name, f"must be a number in 0..100 (got {value!r:.80})")
        for name, value in given.items()
        if not (_is_number(value) and 0 <= value <= HIGHEST)
    ]
    if problems or off:
        raise InputError(source, [*problems, *off])
    return {name: float(value) for name, value in given.items()}


def _is_number(value: Any) -> bool:
    """Whether it is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


@record
class GradedPart:
    """One part of a split horizon as it was asked and answered.

    ``first_key`` is the call whose reply was no JSON, where the judge was asked once more: ``call_key`` is then the
    second call.
    """

    first: int
    last: int
    tokens: int
    over: bool
    call_key: str
    state: ReplyState
    first_key: str = ""

    @property
    def size(self) -> int:
        """The number of steps."""
        return self.last - self.first + 1


@record
class HorizonGrades:
    """What one judge gave one agent's horizon in one trial, before any outcome was shown.

    ``state`` is that of the first reply that is no answer, else ok; ``reason`` says which and why. Grades stand only
    where it is ok. Those of several parts are means weighted by their steps; ``parts`` says how the horizon was split.
    Look-ahead fails if it fails in any part; verdict and summary are those of the last, which knows of the others.
    """

    agent: str
    judge: str
    family: str
    trial: int
    horizon: str
    grader: str
    state: ReplyState
    parts: tuple[GradedPart, ...]
    reason: str | None = None
    reasoning: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, float] = field(default_factory=dict)
    data_reliability: float | None = None
    claims: tuple[HorizonClaim, ...] = ()
    lookahead_check: LookaheadCheck | None = None
    lookahead_reason: str = ""
    verdict: str = ""
    summary: str = ""

    @property
    def split(self) -> bool:
        """Whether the horizon was too long for one reading."""
        return len(self.parts) > 1


@record
class OutcomeGrade:
    """What the outcome call gave: points where ``state`` is ok, else why there are none."""

    state: ReplyState
    outcome: float | None = None
    reason: str | None = None


@record
class HorizonScore:
    """One judge's score of one agent: the grades, what the numeric ledger made of them, the outcome, the composite.

    ``score`` is None exactly where the grades are no answer. ``capped`` keeps the judge's own figures.
    """

    grades: HorizonGrades
    capped: tuple[CappedPart, ...]
    disagreement: LedgerDisagreement | None
    outcome: OutcomeGrade | None
    score: JudgeScore | None
    grader: str


def horizon_grades(task: HorizonTask, asked: Sequence[tuple[PlannedHorizonCall, Read[HorizonAnswer]]]) -> HorizonGrades:
    """The replies to the calls of a task, put together.

    Parameters
    ----------
    asked : sequence of (call, what its reply amounts to)
        In the order of the parts. They must go as far as `next_call` does.

    Raises
    ------
    InputError
        Calls are missing, out of order, or of another task.
    """
    _refuse(task, asked)
    parts = tuple(
        GradedPart(
            first=call.part.first,
            last=call.part.last,
            tokens=call.part.tokens,
            over=call.part.over,
            call_key=call.call.key,
            state=read.state,
        )
        for call, read in asked
    )
    last = asked[-1][1]
    answers = [read.answer for _, read in asked if read.answer is not None]
    return HorizonGrades(
        agent=task.agent,
        judge=task.judge.name,
        family=task.judge.family,
        trial=task.trial,
        horizon=task.horizon,
        grader=grader_version(task.plan),
        state=last.state,
        parts=parts,
        **(_together(answers, parts) if last.state == "ok" else {"reason": _why(last, task, len(asked))}),
    )


def _together(answers: Sequence[HorizonAnswer], parts: Sequence[GradedPart]) -> dict[str, Any]:
    """The answers on the parts as one: grades averaged by steps."""
    sizes = [part.size for part in parts]
    last = answers[-1]
    failed = [one for one in answers if one.lookahead_check == "fail"]
    told = failed or [last]
    return {
        "reasoning": {
            name: _horizon_scores_mean([one.reasoning[name] for one in answers], sizes) for name in last.reasoning
        },
        "evidence": {
            name: _horizon_scores_mean([one.evidence[name] for one in answers], sizes) for name in last.evidence
        },
        "data_reliability": _horizon_scores_mean([one.data_reliability for one in answers], sizes),
        "claims": tuple(claim for one in answers for claim in one.claims),
        "lookahead_check": "fail" if failed else "pass",
        "lookahead_reason": " ".join(one.lookahead_reason for one in told).strip(),
        "verdict": last.verdict,
        "summary": last.summary,
    }


def _horizon_scores_mean(points: Sequence[float], sizes: Sequence[int]) -> float:
    """The mean weighted by steps, never outside of what it is a mean of."""
    mean = sum(point * size for point, size in zip(points, sizes, strict=True)) / sum(sizes)
    return min(max(mean, min(points)), max(points))


def _why(last: Read[HorizonAnswer], task: HorizonTask, asked: int) -> str:
    """Why there are no grades, and where."""
    where = f"part {asked} of {len(task.parts)}: " if len(task.parts) > 1 else ""
    return f"{where}{last.reason}"


def _refuse(task: HorizonTask, asked: Sequence[tuple[PlannedHorizonCall, Read[HorizonAnswer]]]) -> None:
    """Calls that do not make the task."""
    who = f"{task.judge.name} on {task.agent}, trial {task.trial}"
    problems = [
        Problem(who, f"call {at} is not that for part {at}")
        for at, (call, _) in enumerate(asked, start=1)
        if call.task != task or call.part.at != at
    ]
    if next_call(task, [read for _, read in asked]) is not None:
        problems.append(Problem(who, f"has {len(task.parts)} parts to answer (got {len(asked)})"))
    if problems:
        raise InputError("horizon grades", problems)


def outcome_grade(parts: Sequence[HorizonPart], reads: Sequence[Read[OutcomeAnswer]]) -> OutcomeGrade:
    """The replies to the outcome calls of one judge and trial, put together by the steps of their parts."""
    if not reads or len(reads) != len(parts):
        raise InputError(
            "outcome", [Problem("replies", f"one for each of {len(parts)} parts is needed (got {len(reads)})")]
        )
    bad = next((read for read in reads if read.answer is None), None)
    if bad is not None:
        return OutcomeGrade(state=bad.state, reason=bad.reason)
    answers = [read.answer for read in reads if read.answer is not None]
    points = _horizon_scores_mean([one.outcome for one in answers], [part.size for part in parts])
    return OutcomeGrade(state="ok", outcome=points, reason=" ".join(one.reason for one in answers))


def horizon_score(
    grades: HorizonGrades,
    plan: ScoringPlan,
    *,
    horizon: Horizon | None = None,
    ledger: HorizonLedger | None = None,
    outcome: OutcomeGrade | None = None,
) -> HorizonScore:
    """The score that the grades of one judge make, with the numeric ledger as a cap and the outcome where there is one.

    Parameters
    ----------
    horizon, ledger : optional
        The horizon and its numeric ledger; without them nothing is capped, and no disagreement is reported.
    outcome : OutcomeGrade, optional
        One without points redistributes the outcome's share, like none at all, and stays on the record.

    Raises
    ------
    InputError
        The grades were made under another plan or template.
    """
    if grades.grader != grader_version(plan):
        what = f"made by {grades.grader!r}, not by {grader_version(plan)!r}; use the plan it was graded with"
        raise InputError("horizon score", [Problem(f"{grades.judge} on {grades.agent}", what)])
    if grades.state != "ok":
        return HorizonScore(
            grades=grades, capped=(), disagreement=None, outcome=outcome, score=None, grader=grades.grader
        )
    caps = capped(grades.evidence, ledger)
    evidence = {**grades.evidence, **{one.part: one.counted for one in caps}}
    return HorizonScore(
        grades=grades,
        capped=caps,
        disagreement=ledger_disagreement(grades.claims, horizon, ledger) if horizon and ledger else None,
        outcome=outcome,
        score=judge_score(grades.judge, grades.reasoning, evidence, outcome.outcome if outcome else None, plan=plan),
        grader=grades.grader,
    )
