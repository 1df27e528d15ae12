"""How long work says how far it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

PARTS: Final = 4
"""Parts of an analysis that are told to whoever watches."""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and how much there is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        ...


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
    """Progress bars on ``console``, one per piece of work; nothing when it is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as display:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int, /) -> None:
            if what not in tasks:
                tasks[what] = display.add_task(what, total=total)
            # Redrawing is throttled by rich; the update itself is a dict write.
            display.update(tasks[what], completed=done, total=total)

        yield show
