"""What the judges of a season gave, as its site shows it: one view of each judge on each agent's whole record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from assaymark.judging.season.horizon_types import AuditLine, AuditState
from assaymark.judging.season.scores import JudgeScore
from assaymark.report.season.inputs import SeasonGradeView
from assaymark.workflow.season_records import SeasonGrade, SeasonReplaced


def grade_views(grades: Iterable[SeasonGrade], built_in: Collection[str] = ()) -> tuple[SeasonGradeView, ...]:
    """The grades of whole records, by agent and then judge.

    Points of several trials are their means. Words are those of the first trial that has any; look-ahead fails where it
    fails in any. An agent and judge without a usable trial keep the state and reason of the first. Data reliability is
    the judge's own figure: what is computed is a measurement. Judges that are ``built_in`` do not look for knowledge of
    the future, so that they have no check of it whatever their replies hold.
    """
    found: dict[tuple[str, str], list[SeasonGrade]] = defaultdict(list)
    for one in sorted(grades, key=lambda one: (one.agent, one.judge, one.trial)):
        if one.scope == "whole":
            found[one.agent, one.judge].append(one)
    views = map(_view, found.values())
    return tuple(replace(one, lookahead=None, lookahead_reason="") if one.judge in built_in else one for one in views)


def blinding_of(rows: Iterable[SeasonReplaced]) -> dict[str, tuple[AuditLine, ...]]:
    """What blinding did in each agent's record."""
    found: dict[str, list[AuditLine]] = defaultdict(list)
    for one in sorted(rows, key=lambda one: (one.agent, one.state, -one.count, one.name)):
        state: AuditState = "replaced" if one.state == "replaced" else "kept"
        found[one.agent].append(AuditLine(one.name, state, one.count, one.why))
    return {agent: tuple(lines) for agent, lines in found.items()}


def _view(trials: Sequence[SeasonGrade]) -> SeasonGradeView:
    first = trials[0]
    good = [(one.score.grades, one.score.score, one) for one in trials if one.score.score is not None]
    if not good:
        grades = first.score.grades
        return SeasonGradeView(
            agent=first.agent,
            judge=first.judge,
            state=grades.state,
            reason=grades.reason or "",
            parts=len(grades.parts),
        )
    scores = [score for _, score, _ in good if score is not None]
    words = good[0][0]
    failed = next((grades for grades, _, _ in good if grades.lookahead_check == "fail"), None)
    outcomes = [score.outcome for score in scores if score.outcome is not None]
    return SeasonGradeView(
        agent=first.agent,
        judge=first.judge,
        state="ok",
        composite=fmean(score.composite for score in scores),
        axes=_axes(scores),
        reasoning=_means([grades.reasoning for grades, _, _ in good]),
        evidence=_means([_counted(one) for _, _, one in good]),
        capped=_given([one for _, _, one in good]),
        outcome=fmean(outcomes) if outcomes else None,
        outcome_state=_outcome_state([one for _, _, one in good]),
        data_reliability=_reliability([grades.data_reliability for grades, _, _ in good]),
        lookahead=(failed or words).lookahead_check,
        lookahead_reason=(failed or words).lookahead_reason,
        verdict=words.verdict,
        summary=words.summary,
        parts=len(words.parts),
    )


def _axes(scores: Sequence[JudgeScore]) -> dict[str, float]:
    return {name: fmean(getattr(one, name) for one in scores) for name in ("reasoning", "evidence", "process")}


def _reliability(given: Sequence[float | None]) -> float | None:
    points = [one for one in given if one is not None]
    return fmean(points) if points else None


def _means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in points) for name in points[0]}


def _counted(one: SeasonGrade) -> dict[str, float]:
    """The parts of evidence as they count: those of the judge, but for what the numeric ledger lowered."""
    return {**one.score.grades.evidence, **{part.part: part.counted for part in one.score.capped}}


def _given(trials: Sequence[SeasonGrade]) -> dict[str, float]:
    """What the judge had given to parts that were lowered in some trial."""
    lowered = {part.part for one in trials for part in one.score.capped if part.counted < part.given}
    return {name: fmean(one.score.grades.evidence[name] for one in trials) for name in sorted(lowered)}


def _outcome_state(trials: Sequence[SeasonGrade]) -> str:
    """``ok``, ``unresolved`` where nobody could be asked, or why the judge's replies are no grade."""
    outcomes = [one.score.outcome for one in trials if one.score.outcome is not None]
    if not outcomes:
        return "unresolved"
    return next((one.state for one in outcomes if one.state == "ok"), outcomes[0].state)
