"""Candidate texts: what is known about one, what a pair of them is, and how a text is written from requirements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from assaymark.judging.pairs.marking import MET, MISSING, PARTLY
from assaymark.judging.pairs.tasks import Requirement, Task
from assaymark.judging.pairs.wording import closing
from assaymark.records import PairCondition, record

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
    return Brief(
        task=task.name,
        question=task.question,
        requirements=tuple((one.name, one.must) for one in task.requirements),
    )


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
        body = [self._sentence(at, earned[at], reworded) for at in layout or self.layout]
        spare = self.tokens - sum(map(tokens_of, body)) - (len(body) if form == "bullets" else 0)
        if form == "bullets":
            body = [f"- {sentence}" for sentence in body]
        body[more_at:more_at] = more
        requirements = self.task.requirements
        return Stimulus(
            text=_BETWEEN[form].join([*body, closing(spare)]),
            met=tuple(one.name for one, earns in zip(requirements, earned, strict=True) if earns == MET),
            partly=tuple(one.name for one, earns in zip(requirements, earned, strict=True) if earns == PARTLY),
        )

    def _sentence(self, at: int, earns: float, reworded: bool) -> str:
        """The sentence of one requirement."""
        one: Requirement = self.task.requirements[at]
        if earns == MISSING:
            return one.neutral
        return one.met[(self.wordings[at] + reworded) % len(one.met)] if earns == MET else one.partly
