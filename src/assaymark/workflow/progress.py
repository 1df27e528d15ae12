"""How long work says how far it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, runtime_checkable

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

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


def saying(progress: Progress) -> Callable[[str], None]:
    """Shows lines where ``progress`` can, and else nobody.

    >>> saying(silent)("nobody hears this")
    """
    return progress.say if isinstance(progress, Speaking) else _unheard


def _unheard(_line: str) -> None:
    """Nobody listens."""


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


@contextmanager
def bars(console: Console) -> Iterator[Progress]:
    """Progress bars on ``console``, one per piece of work, and none when it is not a terminal; lines in any case."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as display:
        yield _Shown(display)


class _Shown:
    """Progress on a terminal."""

    def __init__(self, display: Bars) -> None:
        self._display = display
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int, /) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._display.add_task(what, total=total)
        # Redrawing is throttled by rich; the update itself is a dict write.
        self._display.update(self._tasks[what], completed=done, total=total)

    def say(self, line: str, /) -> None:
        self._display.console.print(escape(line), soft_wrap=True, highlight=False)
