"""The records of a season as their pages show them: grades, guesses and decisions, by the keys of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assaymark.protocol import HUMAN_FAMILY
from assaymark.records import Decision
from assaymark.report.trail.season import SeasonRecord
from assaymark.workflow.season_judging_rows import judgment_row
from assaymark.workflow.season_records import SeasonGrade, SeasonGuess
from assaymark.workflow.season_view_run import SeasonJudgments


def season_records(
    judged: SeasonJudgments, decisions: Iterable[Decision], *, decided_here: bool
) -> tuple[SeasonRecord, ...]:
    """Every record of a judged season. The call about an outcome is not kept with its grade, and so not named.

    With ``decided_here`` the agents were asked in this run, so that a decision names the key of its call.
    """
    return (
        *(_grade(one) for one in judged.grades),
        *(_guess(one) for one in judged.guesses),
        *_decisions(decisions, decided_here=decided_here),
    )


def _grade(one: SeasonGrade) -> SeasonRecord:
    row = judgment_row(one)
    what = {"whole": "the whole record", "replicate": f"replicate {one.replicate}"}.get(one.scope, one.period)
    scores = ", ".join(f"{name} {value:.2f}" for name, value in row.scores.items())
    trial = f", trial {one.trial}" if one.trial > 1 else ""
    return SeasonRecord(
        kind="grades",
        who=one.judge,
        of=f"{one.agent}, {what}, {one.first} to {one.last}{trial}",
        said=scores if row.status == "ok" else f"{row.status}: {row.reason or 'no reason was kept'}",
        usable=row.status == "ok",
        keys=()
        if one.family == HUMAN_FAMILY
        else tuple(key for part in one.score.grades.parts for key in (part.first_key, part.call_key) if key),
        about=one.agent,
    )


def _guess(one: SeasonGuess) -> SeasonRecord:
    trial = f", trial {one.trial}" if one.trial > 1 else ""
    right = "right" if one.guess == one.author else "wrong"
    return SeasonRecord(
        kind="guesses",
        who=one.judge,
        of=f"{one.author}, {one.period or 'the whole record'}{trial}",
        said=f"{one.guess}, {right} of {one.options}" if one.guess is not None else one.state,
        usable=one.guess is not None,
        keys=(one.call_key,),
        about=one.author,
    )


def _decisions(decisions: Iterable[Decision], *, decided_here: bool) -> Iterator[SeasonRecord]:
    for one in decisions:
        orders = ", ".join(f"{action.kind.replace('_', ' ')} {action.instrument}" for action in one.actions)
        yield SeasonRecord(
            kind="decisions",
            who=one.agent.id,
            of=f"{one.decided_at:%Y-%m-%d %H:%M}, {one.record_id}",
            said=orders or "no order",
            keys=(one.call.raw_object,) if decided_here and one.call.raw_object else (),
        )
