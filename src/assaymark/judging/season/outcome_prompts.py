"""The outcome call: the only one that is shown outcomes, made after everything else was graded.

One call for both would let hindsight into the grades of the reasons (season methodology v0.3, look-ahead leakage).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assaymark.engine.calls import CallSpec, Message
from assaymark.errors import InputError, Problem
from assaymark.judging.season.horizon_prompts import (
    OUTCOME_TEMPLATE,
    band_words,
    judge_call,
    record_head,
    schema_text,
    season_template,
    shared_text,
)
from assaymark.judging.season.horizon_rendering import deed_text, outcomes_by_step
from assaymark.judging.season.horizon_replies import outcome_schema
from assaymark.judging.season.horizon_scores import HorizonGrades
from assaymark.judging.season.horizon_split import BUDGET, HorizonPart, parts_of
from assaymark.judging.season.horizon_types import Horizon
from assaymark.judging.season.plans import ScoringPlan
from assaymark.protocol import JudgeSpec
from assaymark.records import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOutcomeCall:
    """One outcome call, and whose grades its answer completes."""

    call: CallSpec
    agent: str
    judge: str
    family: str
    trial: int
    part: HorizonPart


def outcome_texts() -> dict[str, str]:
    """Every text that outcome prompts are made from, by name: what a plan hash has to cover."""
    return {
        OUTCOME_TEMPLATE: season_template(OUTCOME_TEMPLATE).text,
        "schema outcome": schema_text(outcome_schema()).text,
    }


def outcome_calls(
    grades: HorizonGrades,
    horizon: Horizon,
    outcomes: Iterable[Outcome],
    judge: JudgeSpec,
    plan: ScoringPlan,
    *,
    budget: int = BUDGET,
) -> list[PlannedOutcomeCall]:
    """The outcome calls of one judge and trial on one agent: one, or one for each part that the budget makes of it.

    The judge is shown what was done and what came of it, and no reasons. Outcomes that are not resolved yet are left
    out; a part without any is not asked about. Without any at all there is no call, and the outcome's share goes to the
    other axes.

    Parameters
    ----------
    grades : HorizonGrades
        What this judge recorded on the same horizon before: its existence is what makes this the later call.
    outcomes : iterable of Outcome
        Of any records; those of other records are left out.

    Raises
    ------
    InputError
        The grades are no answer, or of another judge or horizon.
    """
    who = f"{grades.judge} on {grades.agent}, trial {grades.trial}"
    problems = []
    if grades.state != "ok":
        problems.append(Problem(who, f"has no grades to complete (state {grades.state}: {grades.reason})"))
    if grades.judge != judge.name:
        problems.append(Problem(who, f"are not the grades of {judge.name}"))
    if grades.horizon != horizon.id:
        problems.append(Problem(who, "are grades of another horizon"))
    if problems:
        raise InputError("outcome", problems)
    resolved = outcomes_by_step(horizon.steps, outcomes)
    if not resolved:
        return []
    template = season_template(OUTCOME_TEMPLATE)
    schema = schema_text(outcome_schema())
    system = shared_text(template.filled("system", **band_words(plan), schema=schema.text))
    texts = [deed_text(step, resolved.get(step.number, ())) for step in horizon.steps]
    return [
        PlannedOutcomeCall(
            call=judge_call(
                judge,
                grades.trial,
                (
                    Message("system", (system,)),
                    Message("user", (record_head("", part, template=OUTCOME_TEMPLATE), part.body)),
                ),
                OUTCOME_TEMPLATE,
                schema,
            ),
            agent=grades.agent,
            judge=judge.name,
            family=judge.family,
            trial=grades.trial,
            part=part,
        )
        for part in parts_of(horizon, texts, budget=budget, reserve=0)
        if any(part.first <= number <= part.last for number in resolved)
    ]
