"""Horizons as judge calls: the prompt with the rubric of a scoring plan, and the call for each part of a horizon.

Outcomes never reach these prompts: no function here takes one. They are shown in `outcome_prompts` alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.judging.season.horizon_rendering import book_text, rules_text
from assaymark.judging.season.horizon_replies import (
    MOST_CLAIMS,
    MOST_FIELDS,
    MOST_NOTE_TOKENS,
    MOST_QUOTED,
    Asked,
    HorizonAnswer,
    Read,
    horizon_schema,
)
from assaymark.judging.season.horizon_split import BUDGET, HorizonPart, split_horizon
from assaymark.judging.season.horizon_types import Horizon
from assaymark.judging.season.plans import ScoringPlan, SubComponent
from assaymark.prompting.fences import fence
from assaymark.prompting.templates import PromptTemplate, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.records import JSON

HORIZON_TEMPLATE: Final = "horizon-v1.txt"
"""The prompt template in use."""

OUTCOME_TEMPLATE: Final = "outcome-v1.txt"
"""The template of outcome calls (`outcome_prompts`). It stands here because it is part of the grader's version."""


def season_template(name: str) -> PromptTemplate:
    """A template for judges of seasons, such as `HORIZON_TEMPLATE`."""
    return prompt_template("assaymark.judging.season", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonTask:
    """One judge, one trial, one agent's horizon: as many calls as the horizon has parts, one after the other.

    ``agent`` is who made the record. It is for the score; no prompt has it.
    """

    agent: str
    horizon: str
    mandate: str
    parts: tuple[HorizonPart, ...]
    plan: ScoringPlan
    judge: JudgeSpec
    trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedHorizonCall:
    """One call to be made, and which part of which task its answer is about."""

    call: CallSpec
    task: HorizonTask
    part: HorizonPart

    @property
    def judge(self) -> str:
        """The name of who is asked."""
        return self.task.judge.name

    @property
    def asked(self) -> Asked:
        """What the reply is held to."""
        return Asked(self.task.plan, self.part.first, self.part.last, notes=_notes(self.part))


@lru_cache(maxsize=16)
def grader_version(plan: ScoringPlan) -> str:
    """What stands on every score: the grader of the plan, and by digest the two prompt templates and the plan.

    >>> from assaymark.judging.season.plans import load_scoring
    >>> [word.partition("@")[0] for word in grader_version(load_scoring("v0.4")).split()]
    ['grounded_financial_reasoning_judge_v0.4', 'horizon-v1.txt', 'outcome-v1.txt', 'plan']
    """
    made_of = [(name, season_template(name).sha256) for name in (HORIZON_TEMPLATE, OUTCOME_TEMPLATE)]
    made_of.append(("plan", plan.digest))
    return " ".join([plan.grader, *(f"{name}@{digest[:12]}" for name, digest in made_of)])


def horizon_texts(plan: ScoringPlan) -> dict[str, str]:
    """Every text that the prompts of a plan are made from, by name: what a plan hash has to cover."""
    return {
        HORIZON_TEMPLATE: season_template(HORIZON_TEMPLATE).text,
        f"scoring {plan.version}": plan.text,
        f"schema {plan.version}": schema_text(horizon_schema(plan)).text,
        f"schema {plan.version}, part": schema_text(horizon_schema(plan, notes=True)).text,
    }


def horizon_tasks(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], plan: ScoringPlan, *, budget: int = BUDGET
) -> list[HorizonTask]:
    """Every judge and trial for every agent's horizon, by agent, then judge, then trial.

    Parameters
    ----------
    horizons : mapping of agent to Horizon
        The whole records, or those of a period (`Horizon.between`).
    judges : sequence of JudgeSpec
        Those that are models.
    budget : int
        See `split_horizon`; a number of the season's plan.

    Raises
    ------
    InputError
        As for `split_horizon`.
    """
    tasks = []
    for agent, horizon in horizons.items():
        parts = split_horizon(horizon, budget=budget)
        tasks += [
            HorizonTask(
                agent=agent,
                horizon=horizon.id,
                mandate=horizon.mandate,
                parts=parts,
                plan=plan,
                judge=judge,
                trial=trial,
            )
            for judge in judges
            for trial in range(1, judge.trials + 1)
        ]
    return tasks


def next_call(task: HorizonTask, answered: Sequence[Read[HorizonAnswer]] = ()) -> PlannedHorizonCall | None:
    """The call for the next part, given what became of those before; None where there is nothing left to ask.

    A part whose reply is no answer ends the task: without its notes and grades the rest would be graded by another
    rule. So does the last part.
    """
    if len(answered) >= len(task.parts) or any(one.answer is None for one in answered):
        return None
    part = task.parts[len(answered)]
    before = answered[-1].answer.notes if answered and answered[-1].answer else None
    system = system_text(task.plan, part)
    schema = _schema(task.plan, _notes(part))
    messages = (Message("system", (system,)), Message("user", (record_head(task.mandate, part, before), part.body)))
    call = judge_call(task.judge, task.trial, messages, HORIZON_TEMPLATE, schema)
    return PlannedHorizonCall(call=call, task=task, part=part)


def judge_call(judge: JudgeSpec, trial: int, messages: tuple[Message, ...], template: str, schema: Text) -> CallSpec:
    """A call to a judge under one of the templates."""
    return CallSpec(
        model=judge.model,
        messages=messages,
        template=season_template(template).sha256,
        trial=trial,
        seed=judge.seed,
        temperature=judge.temperature,
        effort=judge.effort,
        schema=schema,
        args=dict(judge.args),
    )


def record_head(mandate: str, part: HorizonPart, notes: str | None = None, *, template: str = HORIZON_TEMPLATE) -> Text:
    """What stands before the steps: the mandate, and from the second part on the notes, the rules and the book."""
    found = season_template(template)
    blocks = [fence("mandate", mandate)] if mandate else []
    carried = ""
    if part.at > 1:
        kept = [fence("notes", notes)] if notes is not None else []
        kept += [text for text in (rules_text(part.rules), book_text(part.before)) if text]
        if "carried" in found.parts:
            carried = (
                found.filled("carried", first=part.first, before=part.first - 1, blocks="\n\n".join(kept)) + "\n\n"
            )
    elif part.before is not None:
        blocks.append(book_text(part.before))
    whole = {"least": part.whole[0], "most": part.whole[1]}
    head = found.filled("record", first=part.first, last=part.last, blocks="\n\n".join(blocks), **whole)
    return Text.of(f"{carried}{head}".rstrip("\n"))


def _notes(part: HorizonPart) -> bool:
    """Whether notes are asked for: another part follows."""
    return part.at < part.of


@lru_cache(maxsize=64)
def shared_text(text: str) -> Text:
    """A text that many calls share, hashed once."""
    return Text.of(text)


@lru_cache(maxsize=16)
def _schema(plan: ScoringPlan, notes: bool) -> Text:
    """The reply schema of a plan as text; a season has thousands of calls and two of these."""
    return schema_text(horizon_schema(plan, notes=notes))


def schema_text(schema: Mapping[str, JSON]) -> Text:
    """A reply schema as it is shown and sent."""
    return shared_text(json.dumps(schema, indent=1))


def system_text(plan: ScoringPlan, part: HorizonPart) -> Text:
    """The system message: the task, the rubric of the plan, and the form of the answer."""
    return _system(plan, part.of > 1, _notes(part))


@lru_cache(maxsize=16)
def _system(plan: ScoringPlan, more: bool, notes: bool) -> Text:
    template = season_template(HORIZON_TEMPLATE)
    return Text.of(
        template.filled(
            "system",
            **band_words(plan),
            reasoning=rubric_text(plan.reasoning, "reasoning"),
            evidence=rubric_text(plan.evidence, "evidence"),
            left_out=_left_out(plan),
            most_claims=MOST_CLAIMS,
            most_fields=MOST_FIELDS,
            most_quoted=MOST_QUOTED,
            more=template.filled("more") if more else "",
            notes_key=template.filled("notes_key", most_notes=MOST_NOTE_TOKENS) if notes else "",
            schema=_schema(plan, notes).text,
        )
    )


def _left_out(plan: ScoringPlan) -> str:
    """The parts that are not applicable to the season, or nothing."""
    if not plan.not_applicable:
        return ""
    parts = "; ".join(part.title for part in plan.not_applicable)
    return season_template(HORIZON_TEMPLATE).filled("left_out", parts=parts)


def band_words(plan: ScoringPlan) -> dict[str, int]:
    """The bounds of the bands, for templates."""
    strong, mixed = plan.bands.strong, plan.bands.mixed
    return {"strong": strong, "mixed": mixed, "below_strong": strong - 1, "below_mixed": mixed - 1}


def rubric_text(parts: Iterable[SubComponent], axis: str) -> str:
    """The parts of an axis as judges read them: name, title, weight and question.

    A part of a plan of your own that the template has no words for stands by its title.
    """
    words = dict(line.split(": ", 1) for line in season_template(HORIZON_TEMPLATE).part("words").split("\n"))
    return "\n".join(
        f"- {part.name} ({part.title}, {part.weight:.4g} % of {axis})"
        + (f": {words[part.name]}" if part.name in words else "")
        for part in parts
    )
