"""A rendered pair prompt read back: all that a reference judge knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from assaymark.errors import InputError
from assaymark.prompting.fences import cells, sections


@dataclass(frozen=True, slots=True)
class ShownTask:
    """The situation and the requirements of a prompt: each requirement's name with what must be there."""

    question: str
    requirements: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the requirements."""
        return tuple(name for name, _ in self.requirements)


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A prompt as a judge sees it: the task, and the texts in slots 1 and 2."""

    task: ShownTask
    first: str
    second: str


def read_pair(parts: Sequence[str]) -> ShownPair:
    """The pair of a prompt, from the texts of its user parts: the task, then the candidates.

    Raises
    ------
    InputError
        The parts are not a task and two candidates in the form in which this package renders them.
    """
    if len(parts) != 2:
        raise InputError("prompt", [f"a task and a pair of candidates are needed (got {len(parts)} parts)"])
    found = sections(parts[1])
    if [one.label for one in found] != ["candidate", "candidate"]:
        raise InputError("prompt", [f"two candidates are needed (got {len(found)} sections)"])
    return ShownPair(_read_task(parts[0]), found[0].content, found[1].content)


@lru_cache(maxsize=1024)
def _read_task(text: str) -> ShownTask:
    """The task of a prompt; all pairs of a task share its text."""
    content = {section.label: section.content for section in reversed(sections(text))}
    rows = [cells(line) for line in content.get("requirements", "").split("\n")]
    if "question" not in content or any(len(one) != 2 for one in rows):
        raise InputError("prompt", ["holds no situation with requirements"])
    return ShownTask(content["question"], tuple((name, must) for name, must in rows))
