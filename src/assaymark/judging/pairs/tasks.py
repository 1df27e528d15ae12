"""Tasks for stimuli: a situation, and the requirements that a good text for it meets. A person writes them as TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import permutations
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assaymark.errors import InputError, Problem
from assaymark.plan import read_model
from assaymark.records import PairCondition, record

# Fixed sentences and words that stimuli are made of beside their tasks: none of them meets anything.

CLOSERS = {
    1: "Noted.",
    2: "Note ends.",
    3: "Note ends here.",
    4: "The note ends here.",
    5: "The whole note ends here.",
    6: "The whole note ends here now.",
    7: "The whole note ends here for now.",
    8: "The whole note ends here for the moment.",
    9: "The whole note ends here, as such notes do.",
    10: "The whole note ends here, as such notes usually do.",
    11: "The whole note ends here, as notes of this kind do.",
    12: "The whole note ends here, as notes of this kind usually do.",
}
"""Sentences by their length in whitespace tokens."""

BEFORE_CLOSERS = ("It was written on the usual form today.", "It was filed in the usual place today.")
"""Sentences of eight tokens that stand before a closer where one closer is too short."""

FILLERS = (
    "As ever, the matter was looked at with great care and from a good many different sides.",
    "It goes without saying that a decision of this kind is never taken lightly by anyone who is involved.",
    "There are, of course, always several ways in which one may look at a question such as this one.",
    "Time will tell, and we remain attentive to all that may turn out to be of relevance here.",
    "In the end it is a question of judgement, of experience, and of a certain calm in the face of noise.",
    "We have given thought to what others may think, and we respect that they may well see it otherwise.",
    "All in all, the picture that emerges is a rounded one, and we feel comfortable with it as a whole.",
    "Needless to say, we shall go on following events with the same attention that we have always given them.",
)
"""Sentences that lengthen a text and say nothing."""

FIXED_SENTENCES = (*CLOSERS.values(), *BEFORE_CLOSERS, *FILLERS)
"""Every sentence above; no requirement may be named by a word of them."""

SYNONYMS = (("whole", "entire"), ("usual", "customary"), ("large", "big"), ("about", "around"), ("because", "since"))
"""Words and what they are swapped for, the first that stands in a text."""

UNITS = (
    (re.compile(r"(?<=\d) %"), " percent"),
    (re.compile(r"(?<=\d)%"), " percent"),
    (re.compile(r"(?<=\d) percent\b"), " %"),
    (re.compile(r"(?<=\d) bps\b"), " bp"),
    (re.compile(r"\$(\d[\d.,]*\d|\d)"), r"\1 dollars"),
)
"""Units and another way to write each, the first that stands in a text; the value stays."""


def closing(tokens: int) -> str:
    """A neutral ending of exactly ``tokens`` words."""
    found: list[str] = []
    while tokens > max(CLOSERS):
        found.append(BEFORE_CLOSERS[len(found) % len(BEFORE_CLOSERS)])
        tokens -= 8
    return " ".join([*found, *([CLOSERS[tokens]] if tokens > 0 else [])])


# A requirement is met by a sentence that names it together with a value, and met in part by one that names it without.
# Tasks are checked with this rule, the gates recount with it, and built-in judges understand nothing else.

MET, PARTLY, MISSING = 1.0, 0.5, 0.0
"""What a requirement earns that is met, named without its value, and not named."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_VALUE = re.compile(r'\d|"[^"\n]+"|“[^”\n]+”')


def sentences(text: str) -> list[str]:
    """The sentences of a text: cut after a full stop, question or exclamation mark, and at line ends."""
    return [one for one in _BREAK.split(text) if one]


def has_value(sentence: str) -> bool:
    """Whether a sentence holds a value: a digit, or words between double quotation marks."""
    return _VALUE.search(sentence) is not None


@lru_cache(maxsize=8192)
def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")


def names(sentence: str, name: str) -> bool:
    """Whether a sentence names a requirement, in any case and as words of its own."""
    lower = sentence.lower()
    # Looking for the words first is what makes a thousand tasks quick: most sentences name one requirement of five.
    return name.lower() in lower and _named(name).search(lower) is not None


@lru_cache(maxsize=8192)
def marks(text: str, requirements: tuple[str, ...]) -> tuple[float, ...]:
    """The mark of each requirement in ``text``: `MET`, `PARTLY` or `MISSING`, in the order of ``requirements``."""
    found = sentences(text)
    naming = ([has_value(one) for one in found if names(one, name)] for name in requirements)
    return tuple(MISSING if not values else MET if any(values) else PARTLY for values in naming)


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
    """A situation with five or more requirements, in the order in which judges read them."""

    name: Annotated[str, Field(max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    question: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f]+$")]
    requirements: Annotated[tuple[Requirement, ...], Field(alias="requirement")]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(one.name for one in self.requirements)


class _Tasks(_Strict):
    tasks: Annotated[tuple[Task, ...], Field(alias="task")]


def load_tasks(text: str, source: str = "tasks.toml") -> tuple[Task, ...]:
    """The tasks in the text of a TOML file (``docs/tasks.md`` describes its form); InputError with all problems."""
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
    """Every sentence of the tasks that is not as its field says; nothing if stimuli can be made of them."""
    called = [task.name for task in tasks]
    problems = [] if called else [Problem("task", "at least one is needed (got 0)")]
    problems += [Problem(f"task {name}", "another task has this name") for name in _twice(called)]
    for task in tasks:
        problems += [Problem(f"task {task.name}", what) for what in _naming_problems(task)]
        for one in task.requirements:
            problems += [Problem(f"task {task.name}, {one.name}", what) for what in _sentence_problems(task, one)]
    return problems


def _twice(found: Sequence[str]) -> list[str]:
    """The entries that occur more than once."""
    return sorted({one for one in found if found.count(one) > 1})


def _naming_problems(task: Task) -> Iterator[str]:
    """Names of requirements that cannot be told apart, or that occur in sentences which meet nothing."""
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
    if len(one.met) < 2 or _twice(one.met):
        yield f"met must hold two or more wordings, all different (got {len(one.met)}, {len(set(one.met))} different)"
    pivot = len(one.met[0].split()) if one.met else len(one.neutral.split())
    for field, sentence in (*(("met", met) for met in one.met), ("partly", one.partly), ("neutral", one.neutral)):
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
        if not SHORTEST * pivot <= (length := len(sentence.split())) <= LONGEST * pivot:
            allowed = f"{SHORTEST:g} to {LONGEST:g} times the {pivot} tokens of the first wording"
            yield f"{field} must have {allowed} (got {length})"


def repeated_tasks(tasks: Sequence[Task], count: int) -> tuple[Task, ...]:
    """``count`` tasks made of a few: the given ones in turn, every further round with other numbers in its wordings.

    The last digit of every number advances with the round, so no two rounds up to ten share a text. For load tests and
    planted studies, where ten tasks are too few; results on them say nothing about more situations.
    """

    def turned(sentence: str, turn: int) -> str:
        return _DIGIT.sub(lambda match: str((int(match.group()) + turn) % 10), sentence)

    made = []
    for at in range(count):
        turn, task = at // len(tasks), tasks[at % len(tasks)]
        if turn:
            requirements = tuple(
                one.model_copy(update={"met": tuple(turned(sentence, turn) for sentence in one.met)})
                for one in task.requirements
            )
            changed = {"name": f"{task.name}-{turn + 1}", "question": f"{task.question} (Case {turn + 1}.)"}
            task = task.model_copy(update={**changed, "requirements": requirements})
        made.append(task)
    return tuple(made)


Order = Literal["uv", "vu"]
"""Which content stands in slot 1: ``uv`` is u."""
Form = Literal["prose", "lines", "paragraphs", "bullets"]
"""How the sentences of a text are set."""

ORDERS: tuple[Order, ...] = ("uv", "vu")
_BETWEEN: dict[Form, str] = {"prose": " ", "lines": "\n", "paragraphs": "\n\n", "bullets": "\n"}
_LEAST_CLOSING = 3


@record
class Stimulus:
    """A candidate text, and the names of the requirements that it meets and that it meets in part."""

    text: str
    met: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Its length in whitespace tokens."""
        return len(self.text.split())


@record
class Brief:
    """What judges are told of a task: the situation, and each requirement's name with what must be there."""

    task: str
    question: str
    requirements: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(name for name, _ in self.requirements)


@record
class Pair:
    """Two candidate texts for one task, and what is known about them.

    ``delta`` is how many requirements ``better`` meets more than the other, a requirement met in part counting half;
    it is 0, and ``better`` None, where neither is better. Which of two texts is u is drawn, except in filler pairs,
    where ``v`` always is the one with extra words. In a ``vacuum`` pair both contents can be the same text: its second
    order is then a second trial of one question, with a call key of its own.
    """

    id: str
    condition: PairCondition
    variant: str
    brief: Brief
    u: Stimulus
    v: Stimulus
    delta: float = 0.0
    better: Literal["u", "v"] | None = None
    orders: tuple[Order, ...] = ORDERS

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.brief.task

    def slots(self, order: Order) -> tuple[str, str]:
        """The texts in slots 1 and 2 under an order."""
        return (self.u.text, self.v.text) if order == "uv" else (self.v.text, self.u.text)


def brief_of(task: Task) -> Brief:
    """What judges are told of a task."""
    listed = tuple((one.name, one.must) for one in task.requirements)
    return Brief(task=task.name, question=task.question, requirements=listed)


@lru_cache(maxsize=65536)
def tokens_of(sentence: str) -> int:
    """The length of a sentence in whitespace tokens."""
    return len(sentence.split())


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the texts of one task, all of one length.

    Every text has one sentence per requirement, the neutral one where the requirement is not met, and a neutral ending
    that brings it to ``tokens`` whitespace tokens. ``wordings`` and ``layout`` are the wording and the order of the
    sentences where nothing else is asked for.
    """

    task: Task
    wordings: tuple[int, ...]
    layout: tuple[int, ...]
    tokens: int

    @classmethod
    def of(cls, task: Task, wordings: Sequence[int], layout: Sequence[int]) -> Writer:
        """A writer whose length every text of the task can reach, bullets included."""
        longest = sum(max(map(tokens_of, (*one.met, one.partly, one.neutral))) for one in task.requirements)
        return cls(task, tuple(wordings), tuple(layout), longest + len(task.requirements) + _LEAST_CLOSING)

    def write(
        self,
        earned: Sequence[float],
        *,
        reworded: bool = False,
        layout: Sequence[int] | None = None,
        form: Form = "prose",
        more: Sequence[str] = (),
        more_at: int = 0,
    ) -> Stimulus:
        """The text that earns ``earned``, one entry per requirement: `MET`, `PARTLY` or `MISSING`.

        ``reworded`` takes the next wording of each requirement; ``more`` are extra sentences, put in before the
        sentence number ``more_at``, by which the text becomes longer than the others.
        """
        requirements = self.task.requirements
        body = []
        for at in layout or self.layout:
            one: Requirement = requirements[at]
            wording = one.met[(self.wordings[at] + reworded) % len(one.met)]
            body.append({MET: wording, PARTLY: one.partly, MISSING: one.neutral}[earned[at]])
        spare = self.tokens - sum(map(tokens_of, body)) - (len(body) if form == "bullets" else 0)
        if form == "bullets":
            body = [f"- {sentence}" for sentence in body]
        body[more_at:more_at] = more
        return Stimulus(
            text=_BETWEEN[form].join([*body, closing(spare)]),
            met=tuple(one.name for one, earns in zip(requirements, earned, strict=True) if earns == MET),
            partly=tuple(one.name for one, earns in zip(requirements, earned, strict=True) if earns == PARTLY),
        )
