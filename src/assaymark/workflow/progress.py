"""How long work says how far it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

PARTS: Final = 4
"""Parts of an analysis that are told to whoever watches."""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and how much there is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        ...


@runtime_checkable
class Speaking(Progress, Protocol):
    """Progress that can show a line of words too."""

    def say(self, line: str, /) -> None:
        """Show a line."""
        ...


@runtime_checkable
class Paying(Progress, Protocol):
    """Progress that can show what was paid so far too."""

    def pay(self, usd: float, /) -> None:
        """Take account of money that a reply cost, in USD."""
        ...


def saying(progress: Progress) -> Callable[[str], None]:
    """Shows lines where ``progress`` can, and else nobody.

    >>> saying(silent)("nobody hears this")
    """
    return progress.say if isinstance(progress, Speaking) else _unheard


def _unheard(_line: str) -> None:
    """Nobody listens."""


def paying(progress: Progress) -> Callable[[float], None] | None:
    """Takes account of what replies cost where ``progress`` can, and else is None.

    >>> paying(silent)
    """
    return progress.pay if isinstance(progress, Paying) else None


@dataclass(frozen=True, slots=True)
class Within:
    """Progress of calls that are a part of something: ``tell`` is told their counts, the whole hears all else."""

    whole: Progress
    tell: Callable[[int, int], object]

    def __call__(self, _what: str, done: int, total: int, /) -> None:
        """Hand on the counts."""
        self.tell(done, total)

    def say(self, line: str, /) -> None:
        """Hand on a line."""
        saying(self.whole)(line)

    def pay(self, usd: float, /) -> None:
        """Hand on what a reply cost."""
        if (take := paying(self.whole)) is not None:
            take(usd)


def silent(what: str, done: int, total: int, /) -> None:
    """The progress of work that nobody watches."""


def counted(progress: Progress) -> Callable[[object], None]:
    """``progress`` for an analysis, which only says that the next of its parts begins.

    >>> begins = counted(print)
    >>> begins("agreement")
    measuring 0 4
    """
    done = itertools.count()
    return lambda _: progress("measuring", next(done), PARTS)
