"""What a judge said of a horizon, as a record: grades of its parts put together, capped, and made a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from assaymark.errors import InputError, Problem
from assaymark.judging.season.horizon_ledger import (
    CappedPart,
    HorizonLedger,
    LedgerDisagreement,
    capped,
    ledger_disagreement,
)
from assaymark.judging.season.horizon_prompts import HorizonTask, PlannedHorizonCall, grader_version, next_call
from assaymark.judging.season.horizon_replies import (
    HorizonAnswer,
    HorizonClaim,
    LookaheadCheck,
    OutcomeAnswer,
    Read,
    ReplyState,
)
from assaymark.judging.season.horizon_split import HorizonPart
from assaymark.judging.season.horizon_types import Horizon
from assaymark.judging.season.plans import ScoringPlan
from assaymark.judging.season.scores import JudgeScore, judge_score
from assaymark.records import record


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
        "reasoning": {name: _mean([one.reasoning[name] for one in answers], sizes) for name in last.reasoning},
        "evidence": {name: _mean([one.evidence[name] for one in answers], sizes) for name in last.evidence},
        "data_reliability": _mean([one.data_reliability for one in answers], sizes),
        "claims": tuple(claim for one in answers for claim in one.claims),
        "lookahead_check": "fail" if failed else "pass",
        "lookahead_reason": " ".join(one.lookahead_reason for one in told).strip(),
        "verdict": last.verdict,
        "summary": last.summary,
    }


def _mean(points: Sequence[float], sizes: Sequence[int]) -> float:
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
    """The replies to the outcome calls of one judge and trial, put together by the steps of their parts.

    Raises
    ------
    InputError
        There is not one reply for each part, or none at all.
    """
    if not reads or len(reads) != len(parts):
        raise InputError(
            "outcome", [Problem("replies", f"one for each of {len(parts)} parts is needed (got {len(reads)})")]
        )
    bad = next((read for read in reads if read.answer is None), None)
    if bad is not None:
        return OutcomeGrade(state=bad.state, reason=bad.reason)
    answers = [read.answer for read in reads if read.answer is not None]
    points = _mean([one.outcome for one in answers], [part.size for part in parts])
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
