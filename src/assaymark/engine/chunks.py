"""Chunks of a computation: what each one is, its key, and how whoever is handed one answers."""

from __future__ import annotations

import hashlib
import importlib
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from assaymark import __version__
from assaymark.encoding import JSON, canonical_json
from assaymark.errors import AssayError, InputError

Arguments = Mapping[str, JSON]
Function = Callable[[Arguments], bytes]
"""What is run on chunks: pure, importable by its name, from plain JSON values to bytes."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One part of a computation. The function is called with the fields of ``what`` and ``how`` together.

    ``name`` is what messages call it. ``what`` decides the result and makes the chunk's key; ``how`` does not change
    the result, such as the place where a file lies whose sha256 is in ``what``.
    """

    name: str
    what: Arguments
    how: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk without a result, and everything that is wrong with it."""

    name: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.problems)}"


class ChunkError(AssayError):
    """Some chunks have no result. ``results`` are those of the others that were finished, by their place.

    ``of_data`` says that the function itself refused the chunks named, and that every other one was finished.
    """

    def __init__(
        self, failures: Sequence[Failure], results: Mapping[int, bytes] | None = None, *, of_data: bool = False
    ) -> None:
        self.failures, self.results, self.of_data = tuple(failures), dict(results or {}), of_data
        super().__init__("; ".join(map(str, failures)))


@dataclass(frozen=True, slots=True)
class Task:
    """A chunk on its way to whoever runs it: its place, and what is called with what."""

    index: int
    name: str
    target: str
    arguments: Arguments
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a chunk."""

    index: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """The function found the chunk wrong, and said so by one of our errors."""

    index: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Defect:
    """The function failed in a way that is not foreseen; another attempt would fail in the same way."""

    index: int
    what: str
    trace: str


Ended = Done | Refused | Defect


def target_of(function: Function) -> str:
    """The name that a function is imported by elsewhere.

    Raises
    ------
    ValueError
        It has none: a lambda, a method, or something inside another function.

    Examples
    --------
    >>> from assaymark.durable import sync_folder
    >>> target_of(sync_folder)
    'assaymark.durable:sync_folder'
    """
    target = f"{function.__module__}:{getattr(function, '__qualname__', '')}"
    try:
        known = _imported(target)
    except (ImportError, AttributeError):
        known = None
    if known is not function:
        raise ValueError(f"{target} cannot be imported by its name; give a function of a module")
    return target


def chunk_key(target: str, version: str, chunk: Chunk) -> str:
    """sha256 over the function's name, the version of what it computes, and the chunk, as 64 hex digits.

    >>> one, other = (Chunk(name, {"rows": [0, 9]}, {"threads": k}) for k, name in enumerate(("a", "b")))
    >>> chunk_key("sums:of", "1", one) == chunk_key("sums:of", "1", other)
    True
    >>> chunk_key("sums:of", "1", one) == chunk_key("sums:of", "2", one)
    False
    """
    return hashlib.sha256(canonical_json([target, version, chunk.what]).encode()).hexdigest()


def answer(task: Task) -> Ended:
    """Run a task here and say how it ended. Nothing that the function raises leaves this call."""
    try:
        if task.version != __version__:
            what = f"it was sent by assaymark {task.version} to a node that has {__version__}; install the same on all"
            return Defect(task.index, what, "")
        data = _imported(task.target)(task.arguments)
        if not isinstance(data, bytes):
            raise TypeError(f"{task.target} must return bytes (got {type(data).__name__})")
    except InputError as exc:
        return Refused(task.index, tuple(map(str, exc.problems)))
    except AssayError as exc:
        return Refused(task.index, (str(exc),))
    except Exception as exc:
        said = " ".join(f"{type(exc).__name__}: {exc}".split())
        return Defect(task.index, said, traceback.format_exc())
    return Done(task.index, data)


class Turns:
    """Which tasks wait for a turn. One that was lost gets another turn after the others, a bounded number of times."""

    def __init__(self, tasks: Iterable[Task], attempts: int) -> None:
        self.waiting = deque(tasks)
        self._attempts = attempts
        self._lost: Counter[int] = Counter()

    def lost(self, task: Task, why: str) -> None:
        """Note that whoever had this task is gone.

        Raises
        ------
        ChunkError
            It was lost as often as it may be.
        """
        self._lost[task.index] += 1
        times = self._lost[task.index]
        if times >= self._attempts:
            raise ChunkError([Failure(task.name, (f"given up after {times} attempts; at last {why}",))])
        self.waiting.append(task)


def _imported(target: str) -> Function:
    module, _, name = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return cast(Function, found)
