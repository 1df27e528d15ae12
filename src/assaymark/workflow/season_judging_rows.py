"""The tables of a judged season: grades, guesses, what blinding did, and every number beside its material."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from assaymark.judging.season.author_probe import AuthorGuess
from assaymark.judging.season.horizon_prompts import grader_version
from assaymark.judging.season.horizon_replies import Read, ReplyState
from assaymark.judging.season.horizon_scores import (
    GradedPart,
    HorizonGrades,
    HorizonScore,
    OutcomeGrade,
    horizon_score,
)
from assaymark.judging.season.plans import ScoringPlan
from assaymark.records import Evidence, Judgment, JudgmentStatus
from assaymark.report.formats import counted
from assaymark.workflow.season_judging_parts import Probe, SeasonPart
from assaymark.workflow.season_records import SeasonGrade, SeasonGuess, SeasonReplaced
from assaymark.workflow.unusable import again_line

_STATUS: Final[dict[ReplyState, JudgmentStatus]] = {
    "ok": "ok",
    "refused": "refused",
    "invalid": "invalid",
    "truncated": "invalid",
    "failed": "invalid",
}


def grade_row(part: SeasonPart, score: HorizonScore) -> SeasonGrade:
    """One judge's score of one part."""
    grades = score.grades
    return SeasonGrade(
        agent=part.agent,
        judge=grades.judge,
        family=grades.family,
        trial=grades.trial,
        scope=part.scope,
        period=part.period,
        replicate=part.replicate,
        first=part.first,
        last=part.last,
        steps=len(part.horizon.steps),
        score=score,
    )


def human_rows(
    judgments: Iterable[Judgment], parts: Iterable[SeasonPart], plan: ScoringPlan, judges: Collection[str]
) -> Iterator[SeasonGrade]:
    """What people of the panel gave whole records and periods, as grades; the numeric ledger caps them like any other.

    Grades of records that the season does not have, or of others than ``judges``, are left out, and so are those of
    parts that are not applicable. A record of which some part of ``plan`` was not graded is invalid.
    """
    names = [each.name for each in (*plan.reasoning, *plan.evidence)]
    known = {f"{one.agent}/{one.period}" if one.period else one.agent: one for one in parts if one.scope != "replicate"}
    for one in judgments:
        part = known.get(one.trajectory)
        if part is None or one.judge not in judges:
            continue
        lacking = [name for name in names if name not in one.scores]
        graded = one.status == "ok" and not lacking
        grades = HorizonGrades(
            agent=part.agent,
            judge=one.judge,
            family=one.family,
            trial=one.trial,
            horizon=part.horizon.id,
            grader=grader_version(plan),
            state="ok" if graded else "invalid",
            parts=(GradedPart(first=1, last=len(part.horizon.steps), tokens=0, over=False, call_key=one.call_key,
                              state="ok" if graded else "invalid"),),
            reason=None if graded else one.reason or f"not graded: {', '.join(lacking)}",
            reasoning={each.name: one.scores[each.name] for each in plan.reasoning} if graded else {},
            evidence={each.name: one.scores[each.name] for each in plan.evidence} if graded else {},
            data_reliability=one.scores.get("data_reliability"),
        )  # fmt: skip
        points = one.scores.get("outcome")
        outcome = None if points is None or part.period else OutcomeGrade(state="ok", outcome=points)
        yield grade_row(part, horizon_score(grades, plan, horizon=part.horizon, ledger=part.ledger, outcome=outcome))


def guess_row(probe: Probe, read: Read[AuthorGuess]) -> SeasonGuess:
    """One guess at an author."""
    planned = probe.planned
    return SeasonGuess(
        author=planned.author,
        judge=planned.judge,
        trial=planned.trial,
        period=probe.period,
        options=len(planned.options),
        state=read.state,
        guess=None if read.answer is None else read.answer.author,
        call_key=planned.call.key,
    )


def replaced_rows(parts: Iterable[SeasonPart]) -> Iterator[SeasonReplaced]:
    """What blinding did in the whole records."""
    for part in parts:
        if part.scope == "whole":
            for line in part.horizon.audit:
                yield SeasonReplaced(agent=part.agent, name=line.name, state=line.state, count=line.count, why=line.why)


def evidence_rows(parts: Iterable[SeasonPart]) -> Iterator[Evidence]:
    """Every number in the reasons of the whole records. ``part`` and ``start`` are places in the blinded texts."""
    for part in parts:
        if part.scope == "whole":
            for found in part.ledger.steps.values():
                yield from found


def judgment_row(grade: SeasonGrade) -> Judgment:
    """A grade as a judgment: what is graded is the agent, with its period or replicate behind a slash.

    A reply that was cut off, or never came, counts as invalid; the reason says which.
    """
    grades, score = grade.score.grades, grade.score.score
    within = grade.period or (f"r{grade.replicate}" if grade.scope == "replicate" else "")
    scores = {} if score is None else {
        "reasoning": score.reasoning,
        "evidence": score.evidence,
        "process": score.process,
        "composite": score.composite,
        **({} if score.outcome is None else {"outcome": score.outcome}),
    }  # fmt: skip
    return Judgment(
        trajectory=f"{grade.agent}/{within}" if within else grade.agent,
        judge=grade.judge,
        family=grade.family,
        rubric=grades.grader,
        trial=grade.trial,
        status=_STATUS[grades.state],
        scores=scores,
        call_key=grades.parts[-1].call_key,
        first_key=grades.parts[-1].first_key,
        lookahead_check=grades.lookahead_check,
        reason=grades.reason,
    )


# --- lines ------------------------------------------------------------------------------------------------------------


def judged_lines(
    name: str, grades: Sequence[SeasonGrade], guesses: Sequence[SeasonGuess], last: str, over: bool, period: str
) -> list[str]:
    """What was graded and what was not, for whoever called."""
    agents, judges = ({one.agent for one in grades}, {one.judge for one in grades})
    soon = "" if over else "; the season is not over, and is graded anew when it has gone on"
    lines = [f"{name}: {counted(len(agents), 'agent')} graded by {counted(len(judges), 'judge')} up to {last}{soon}"]
    counts = [
        _share(what, [one.score.grades.state for one in grades if one.scope == scope])
        for scope, what in (("whole", "whole records"), ("period", f"{period}s"), ("replicate", "replicates"))
    ]
    outcomes = [one.score.outcome.state for one in grades if one.score.outcome is not None]
    counts += [_share("outcomes", outcomes), _share("author identification", [one.state for one in guesses])]
    return [*lines, ", ".join(one for one in counts if one), *_again(grades), *_useless(grades, guesses)]


def _again(grades: Sequence[SeasonGrade]) -> Iterator[str]:
    """A line for each judge that was asked once more."""
    replies = [(one.judge, part.first_key, part.state) for one in grades for part in one.score.grades.parts]
    for judge in sorted({judge for judge, _, _ in replies}):
        states = [state for name, first, state in replies if name == judge and first]
        if states:
            yield again_line(judge, len(states), sum(one == judge for one, _, _ in replies), states.count("ok"))


def _share(what: str, states: Sequence[str]) -> str:
    return f"{what} {sum(one == 'ok' for one in states):,} of {len(states):,}" if states else ""


def _useless(grades: Sequence[SeasonGrade], guesses: Sequence[SeasonGuess]) -> Iterator[str]:
    """A line for each judge and kind of reply that nothing can be made of."""
    replies = [(one.judge, one.score.grades.state, one.score.grades.reason) for one in grades]
    replies += [(one.judge, one.score.outcome.state, one.score.outcome.reason) for one in grades if one.score.outcome]
    replies += [(one.judge, _state(one.state), None) for one in guesses]
    for judge in sorted({judge for judge, _, _ in replies}):
        of = [(state, reason) for name, state, reason in replies if name == judge]
        for state, words in _KINDS.items():
            bad = [reason for found, reason in of if found == state]
            if bad:
                first = next((f" (first: {reason})" for reason in bad if reason), "")
                yield f"{judge}: {len(bad):,} of {len(of):,} replies {words[0]}{first}; {words[1]}"


def _state(state: str) -> ReplyState:
    return next(one for one in _STATUS if one == state)


_STAYS: Final = "stored verbatim and not retried"
_KINDS: Final[dict[ReplyState, tuple[str, str]]] = {
    "invalid": ("do not have the form that was asked for", _STAYS),
    "refused": ("are refusals", _STAYS),
    "truncated": ("were cut off", _STAYS),
    "failed": ("never came", "recorded, and retried by the same command"),
}
