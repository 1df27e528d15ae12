"""Pairs as judge calls: the prompt in its two variants, and the plan of all calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from assaymark.engine.calls import CallSpec, Message, Text
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.judging.pairs.replies import pair_schema
from assaymark.judging.pairs.texts import Brief, Order, Pair
from assaymark.prompting.fences import fence, row
from assaymark.prompting.templates import PromptTemplate, prompt_template
from assaymark.protocol import JudgeSpec
from assaymark.records import sha256_text

PairPrompt = Literal["tie-allowed", "strict"]

TIE_ALLOWED: PairPrompt = "tie-allowed"
"""The base instruction: a judge names the better text, or says that neither is."""

STRICT: PairPrompt = "strict"
"""The instruction that asks for a tie wherever only the surface differs."""

PAIR_PROMPTS: tuple[PairPrompt, ...] = (TIE_ALLOWED, STRICT)
"""The variants of the instruction, the base first."""

PAIR_TEMPLATE = "pair-v1.txt"
"""The prompt template in use."""

_CRITERIA: Mapping[PairPrompt, str] = {TIE_ALLOWED: "allowed", STRICT: "strict"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPairCall:
    """One call to be made, and which pair, order, instruction, judge and trial its answer will count for."""

    call: CallSpec
    pair: Pair
    order: Order
    prompt: PairPrompt
    judge: str
    family: str
    trial: int


def pair_template() -> PromptTemplate:
    """The prompt template."""
    return prompt_template("assaymark.judging.pairs", PAIR_TEMPLATE)


@cache
def _schema_text() -> str:
    """The reply schema as it is shown and sent."""
    return json.dumps(pair_schema(), indent=1)


def criterion_text(prompt: PairPrompt) -> str:
    """The paragraph about ties, by which alone the variants differ.

    >>> criterion_text("tie-allowed")
    'The two candidates may be equally good. If they are, answer "tie".'
    """
    return pair_template().part(_CRITERIA[prompt])


@cache
def pair_system_text(prompt: PairPrompt) -> str:
    """The system message: the question, the criterion, and the form of the answer."""
    return pair_template().filled("system", criterion=criterion_text(prompt), schema=_schema_text())


@lru_cache(maxsize=4096)
def task_text(brief: Brief) -> str:
    """The user block that all pairs of one task share: the situation and the requirements, each fenced."""
    listed = "\n".join(row(one) for one in brief.requirements)
    blocks = (fence("question", brief.question), fence("requirements", listed))
    return pair_template().filled("task", blocks="\n\n".join(blocks))


def candidates_text(first: str, second: str) -> str:
    """The user block with the candidates in slots 1 and 2.

    Both fences have one label, so a text looks the same in either slot and the order changes nothing else.
    """
    return pair_template().filled("candidates", first=fence("candidate", first), second=fence("candidate", second))


def pair_texts(pair: Pair, order: Order, prompt: PairPrompt) -> tuple[str, str, str]:
    """Everything that a judge is shown of a pair: system message, task block, candidates block.

    They are made of the situation, the requirements and the two texts, and of nothing else of the pair.
    """
    return pair_system_text(prompt), task_text(pair.brief), candidates_text(*pair.slots(order))


def pair_prompt_hashes(prompts: Sequence[str] = PAIR_PROMPTS) -> dict[str, str]:
    """sha256 of each variant's instruction together with the template and the reply schema.

    >>> len(pair_prompt_hashes(["strict"])["strict"])
    64
    """
    known = _checked(prompts)
    return {one: sha256_text("\n".join((pair_system_text(one), pair_template().text))) for one in known}


def plan_pair_calls(
    pairs: Sequence[Pair],
    judge: JudgeSpec,
    variants: Sequence[str] = (TIE_ALLOWED,),
    trials: int | None = None,
) -> list[PlannedPairCall]:
    """Every call of one judge: by pair, then prompt variant, then order, then trial.

    Parameters
    ----------
    pairs : sequence of Pair
        Checked with `gates.check` before; planning does not look at them again.
    judge : JudgeSpec
        Who is asked; its seed, temperature, effort and arguments go into each call.
    variants : sequence of str
        Of `PAIR_PROMPTS`.
    trials : int, optional
        How often each question is asked; default: the judge's own number.

    Returns
    -------
    list of PlannedPairCall
        All call keys differ, also where both texts of a pair are the same: the order is part of the key, so the second
        order of an identical pair is a second trial of one question.

    Raises
    ------
    UnknownNameError
        A variant is not one of `PAIR_PROMPTS`.
    InputError
        The judge is a person, a variant is named twice, or ``trials`` is not at least 1.
    """
    prompts = _checked(variants)
    times = judge.trials if trials is None else trials
    problems = [Problem(judge.name, "a person answers no calls; a datasheet needs a model")] if judge.human else []
    if times < 1:
        problems.append(Problem("trials", f"must be at least 1 (got {times})"))
    if problems:
        raise InputError("datasheet", problems)
    schema = Text.of(_schema_text())
    systems = {prompt: Message("system", (Text.of(pair_system_text(prompt)),)) for prompt in prompts}
    tasks: dict[Brief, Text] = {}
    planned = []
    for pair in pairs:
        if pair.brief not in tasks:
            tasks[pair.brief] = Text.of(task_text(pair.brief))
        users = {
            order: Message("user", (tasks[pair.brief], Text.of(candidates_text(*pair.slots(order)))))
            for order in pair.orders
        }
        planned += [
            _planned(pair, order, prompt, judge, trial, (systems[prompt], users[order]), schema)
            for prompt in prompts
            for order in pair.orders
            for trial in range(1, times + 1)
        ]
    return planned


def _checked(prompts: Sequence[str]) -> tuple[PairPrompt, ...]:
    """The variants, each known and named once."""
    found: list[PairPrompt] = []
    for name in prompts:
        known = next((prompt for prompt in PAIR_PROMPTS if prompt == name), None)
        if known is None:
            raise UnknownNameError("prompt variant", name, PAIR_PROMPTS)
        found.append(known)
    if len(set(found)) < len(found):
        raise InputError("datasheet", [Problem("variants", f"each is named once (got {', '.join(found)})")])
    return tuple(found)


def _planned(
    pair: Pair,
    order: Order,
    prompt: PairPrompt,
    judge: JudgeSpec,
    trial: int,
    messages: tuple[Message, ...],
    schema: Text,
) -> PlannedPairCall:
    """One call."""
    call = CallSpec(
        model=judge.model,
        messages=messages,
        template=pair_template().sha256,
        trial=trial,
        order=pair.orders.index(order),
        seed=judge.seed,
        temperature=judge.temperature,
        effort=judge.effort,
        schema=schema,
        args=dict(judge.args),
    )
    return PlannedPairCall(
        call=call, pair=pair, order=order, prompt=prompt, judge=judge.name, family=judge.family, trial=trial
    )
