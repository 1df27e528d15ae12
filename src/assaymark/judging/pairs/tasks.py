"""Tasks for stimuli: a situation, and the requirements that a good text for it meets. A person writes them as TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import permutations
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assaymark.errors import InputError, Problem
from assaymark.judging.pairs.marking import has_value, names, sentences
from assaymark.judging.pairs.wording import FIXED_SENTENCES
from assaymark.plan import read_model

LEAST_REQUIREMENTS = 5
"""A ladder has five steps, so a task needs at least as many requirements."""
SHORTEST, LONGEST = 0.6, 1.6
"""How long the other sentences of a requirement may be, as a multiple of its first wording in whitespace tokens."""

_Line = Annotated[str, Field(min_length=1, max_length=400, pattern=r"^\S(?:[^\x00-\x1f]*\S)?$")]
_DIGIT = re.compile(r"(\d)(?!\d)")


class _Strict(BaseModel):
    """Base of the parts of a task file: immutable, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Requirement(_Strict):
    """One thing that a good text does, and the sentences that do it, do it in part, and do not.

    ``name`` is what a sentence has to call it, and ``must`` what judges are told. ``met`` holds at least two wordings
    with the name and a value, ``partly`` the name without a value, and ``neutral`` stands where it is not met.
    """

    name: Annotated[str, Field(max_length=60, pattern=r"^[a-z][a-z0-9]*(?:[ -][a-z0-9]+)*$")]
    must: _Line
    met: tuple[_Line, ...]
    partly: _Line
    neutral: _Line


class Task(_Strict):
    """A situation with five or more requirements, in the order in which judges read them.

    >>> task = finance_tasks()[0]
    >>> task.name, len(task.requirements)
    ('copper-breakout', 5)
    """

    name: Annotated[str, Field(max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    question: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f]+$")]
    requirements: Annotated[tuple[Requirement, ...], Field(alias="requirement")]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(one.name for one in self.requirements)


class _Tasks(_Strict):
    """A whole task file."""

    tasks: Annotated[tuple[Task, ...], Field(alias="task")]


def load_tasks(text: str, source: str = "tasks.toml") -> tuple[Task, ...]:
    """The tasks in the text of a TOML file; ``docs/tasks.md`` describes its form.

    Raises
    ------
    InputError
        Not TOML; or fields that are wrong, missing or unknown; or sentences that do not do what their field says
        (`task_problems`). All problems of one kind come at once.

    Examples
    --------
    >>> load_tasks("[[task]]\\nname = 'a'")
    Traceback (most recent call last):
        ...
    assaymark.errors.InputError: tasks.toml: 2 problems
      task.0.question: is missing
      task.0.requirement: is missing
    """
    tasks = read_model(_Tasks, text, source=source).tasks
    if problems := task_problems(tasks):
        raise InputError(source, problems)
    return tasks


@cache
def finance_tasks() -> tuple[Task, ...]:
    """The ten tasks that come with the package: notes that go with an investment decision."""
    text = (files("assaymark.judging.pairs") / "finance.toml").read_text(encoding="utf-8")
    return load_tasks(text, "finance.toml")


def task_problems(tasks: Sequence[Task]) -> list[Problem]:
    """What in the sentences of tasks is not as their fields say; nothing if stimuli can be made of them."""
    called = [task.name for task in tasks]
    problems = [] if called else [Problem("task", "at least one is needed (got 0)")]
    problems += [Problem(f"task {name}", "another task has this name") for name in _twice(called)]
    for task in tasks:
        problems += [Problem(f"task {task.name}", what) for what in _naming_problems(task)]
        for one in task.requirements:
            problems += [Problem(f"task {task.name}, {one.name}", what) for what in _sentence_problems(task, one)]
    return problems


def _twice(found: Sequence[str]) -> list[str]:
    """What comes more than once."""
    return sorted({one for one in found if found.count(one) > 1})


def _naming_problems(task: Task) -> Iterator[str]:
    """Names of requirements that cannot be told apart, or that stand in sentences which meet nothing."""
    if len(task.requirements) < LEAST_REQUIREMENTS:
        yield f"at least {LEAST_REQUIREMENTS} requirements are needed (got {len(task.requirements)})"
    for name in _twice(task.names):
        yield f"two requirements are called {name!r}"
    for inner, outer in permutations(dict.fromkeys(task.names), 2):
        if names(outer, inner):
            yield f"a sentence about {outer!r} also names {inner!r}; give one of them another name"
    for name in task.names:
        if any(names(sentence, name) for sentence in FIXED_SENTENCES):
            yield f"{name!r} is a word of the sentences that lengthen a text; give the requirement another name"
    for sentence in _twice([one.neutral for one in task.requirements]):
        yield f"two requirements share a neutral sentence: {sentence!r}"


def _sentence_problems(task: Task, one: Requirement) -> Iterator[str]:
    """What is wrong with the sentences of one requirement."""
    if len(one.met) < 2 or _twice(one.met):
        yield f"met must hold two or more wordings, all different (got {len(one.met)}, {len(set(one.met))} different)"
    pivot = len(one.met[0].split()) if one.met else len(one.neutral.split())
    for field, sentence in _fields(one):
        others = [name for name in task.names if name != one.name and names(sentence, name)]
        if len(sentences(sentence)) != 1 or sentence[-1] not in ".!?":
            yield f"{field} must be one sentence with a stop at its end (got {sentence!r})"
        if others:
            yield f"{field} names another requirement, {others[0]!r} (got {sentence!r})"
        if names(sentence, one.name) != (field != "neutral"):
            yield f"{field} must {'not ' if field == 'neutral' else ''}name {one.name!r} (got {sentence!r})"
        if field != "neutral" and has_value(sentence) != (field != "partly"):
            must = "no value: no digit, no" if field == "partly" else "a value: a digit or a"
            yield f"{field} must hold {must} quotation (got {sentence!r})"
        if not SHORTEST * pivot <= len(sentence.split()) <= LONGEST * pivot:
            yield (
                f"{field} must have {SHORTEST:g} to {LONGEST:g} times the {pivot} tokens of the first wording "
                f"(got {len(sentence.split())})"
            )


def _fields(one: Requirement) -> Iterator[tuple[str, str]]:
    """The sentences of a requirement with the name of their field."""
    for sentence in one.met:
        yield "met", sentence
    yield "partly", one.partly
    yield "neutral", one.neutral


def repeated_tasks(tasks: Sequence[Task], count: int) -> tuple[Task, ...]:
    """``count`` tasks made of a few: the given ones in turn, every further round with other numbers in its wordings.

    The last digit of every number is turned on by the number of the round, so no two rounds up to ten share a text; a
    situation says which round it is. For load tests and planted studies, where ten tasks are too few; the situations
    stay the ten, so results on them say nothing about more situations.

    >>> [task.name for task in repeated_tasks(finance_tasks()[:1], 3)]
    ['copper-breakout', 'copper-breakout-2', 'copper-breakout-3']
    """
    return tuple(_perturbed(tasks[at % len(tasks)], at // len(tasks)) for at in range(count))


def _perturbed(task: Task, turn: int) -> Task:
    """A task in a later round."""
    if not turn:
        return task
    requirements = tuple(
        one.model_copy(update={"met": tuple(_turned(sentence, turn) for sentence in one.met)})
        for one in task.requirements
    )
    changed = {"name": f"{task.name}-{turn + 1}", "question": f"{task.question} (Case {turn + 1}.)"}
    return task.model_copy(update={**changed, "requirements": requirements})


def _turned(sentence: str, turn: int) -> str:
    """A sentence with the last digit of every run of digits turned on."""
    return _DIGIT.sub(lambda match: str((int(match.group()) + turn) % 10), sentence)
