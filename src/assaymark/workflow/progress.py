"""Progress for people: bars on a terminal, else a line in the log from time to time."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from assaymark.text import money

PARTS: Final = 4
"""The number of parts of an analysis that are reported."""


class Progress(Protocol):
    """A callback for progress: the name of the work, how much is done, and the total."""

    def __call__(self, work: str, done: int, total: int, /) -> None:
        """Report the progress of one piece of work."""
        ...


def silent(work: str, done: int, total: int, /) -> None:
    """Ignore progress."""


_WATCHING: Final[ContextVar[Progress]] = ContextVar("watching", default=silent)
_SHOWN: Final[ContextVar[ProgressDisplay | None]] = ContextVar("shown", default=None)


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Report the progress of work in the block to ``progress``; messages and costs still go to the display.

    It applies to this thread. Runners that call back from other threads are given `counts` or `watching`.
    """
    before = _WATCHING.set(progress)
    try:
        yield
    finally:
        _WATCHING.reset(before)


def watching() -> Progress:
    """Return the progress callback of this thread."""
    return _WATCHING.get()


def note(work: str, done: int, total: int) -> None:
    """Report the progress of one piece of work to this thread's callback."""
    _WATCHING.get()(work, done, total)


def counts(work: str) -> Callable[[int, int], None]:
    """Return a function of (done, total) that reports to this thread's callback from any thread."""
    progress = _WATCHING.get()
    return lambda done, total: progress(work, done, total)


def count_parts() -> Callable[[object], None]:
    """Return a callback for an analysis that calls it at the start of each part."""
    measuring, done = counts("measuring"), itertools.count()
    return lambda _: measuring(next(done), PARTS)


def say(line: str) -> None:
    """Print a line on the progress display; without one, nothing."""
    if (shown := _SHOWN.get()) is not None:
        shown.say(line)


def cost_callback() -> Callable[[float], None] | None:
    """Return a function that adds USD to the displayed cost, from any thread; None without a display."""
    shown = _SHOWN.get()
    return None if shown is None else shown.pay


EVERY_S: Final = 10.0
"""Seconds between two log lines about one piece of work, when there is no terminal."""

_LOG: Final = logging.getLogger(__name__)
_BAR: Final = 16
_LEAST_S: Final = 1.0  # seconds of work before a rate is shown


@dataclass(slots=True)
class Piece:
    """One piece of work: its start, and its progress."""

    what: str
    first: int
    total: int
    began: float
    done: int
    logged: float
    task: TaskID | None = None

    def state(self, now: float, usd: float) -> str:
        """Return count, rate, time left and cost, as far as they are known."""
        parts = [f"{self.done:,} of {self.total:,}"]
        seconds, did = now - self.began, self.done - self.first
        if seconds >= _LEAST_S and did > 0 and self.done < self.total:
            rate = did / seconds
            # In the first unit of second, minute and hour in which the rate is at least 1.
            words = f"{60 * rate:.0f}/min" if rate >= 1 / 60 else f"{3600 * rate:.0f}/h"
            if rate >= 1:
                words = f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"
            parts += [words, f"{timedelta(seconds=math.ceil((self.total - self.done) / rate))} left"]
        if usd:
            parts.append(f"{money(usd)} USD")
        return ", ".join(parts)


class ProgressDisplay:
    """A progress display. It remembers the last piece of work, so that a message can say where a command stopped."""

    def __init__(self, display: Bars, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._display, self._quiet, self._clock = display, quiet, clock
        self._pieces: dict[str, Piece] = {}
        self._last: Piece | None = None
        self.usd = 0.0
        """The cost of replies while this was displayed."""

    def __call__(self, work: str, done: int, total: int, /) -> None:
        """Show the progress of one piece of work."""
        now, piece = self._clock(), self._pieces.get(work)
        if piece is None or done < piece.done:  # a piece of work may start again, such as a stage that each part has
            old, piece = piece, Piece(work, done, total, now, done, now, None if piece is None else piece.task)
            self._pieces[work] = piece
            if piece.task is not None:
                self._display.update(piece.task, piece=piece)
            elif not self._display.disable:
                piece.task = self._display.add_task(escape(work), total=total, completed=done, piece=piece)
            if old is None and done < total:
                _LOG.info("%s: %s", work, piece.state(now, self.usd))
        ended = piece.done < total <= done
        piece.done, piece.total, self._last = done, total, piece
        if piece.task is not None:
            # rich throttles redrawing; the update itself is a dict write.
            self._display.update(piece.task, completed=done, total=total)
        if ended:
            _LOG.info("%s: %s in %.1f s", work, piece.state(now, self.usd), now - piece.began)
        elif piece.task is None and now - piece.logged >= EVERY_S:
            piece.logged = now
            _LOG.info("%s: %s", work, piece.state(now, self.usd))

    def say(self, line: str, /) -> None:
        """Print a line, unless the display is quiet."""
        if not self._quiet:
            self._display.console.print(escape(line), soft_wrap=True, highlight=False)

    def pay(self, usd: float, /) -> None:
        """Add the cost of a reply."""
        self.usd += usd

    def where(self) -> str:
        """Return the last piece of work, to follow the word "stopped"; empty if it is finished or there is none."""
        last = self._last
        return f" at {last.what} ({last.done:,} of {last.total:,})" if last and last.done < last.total else ""

    def state(self, piece: Piece) -> str:
        """Return the count, rate, time left and cost of a piece of work."""
        return piece.state(self._clock(), self.usd)


class _State(ProgressColumn):
    """The column with count, rate, time left and cost of a piece of work."""

    shown: ProgressDisplay

    def render(self, task: Task) -> Text:
        return Text(self.shown.state(task.fields["piece"]))


@contextmanager
def bars(console: Console, quiet: bool = False) -> Iterator[ProgressDisplay]:
    """Display the progress of the block on ``console``: bars on a terminal, and log lines in any case."""
    state = _State()
    columns = (TextColumn("{task.description}"), BarColumn(_BAR), state)
    hidden = quiet or not console.is_terminal
    with Bars(*columns, console=console, transient=True, disable=hidden) as display:
        state.shown = shown = ProgressDisplay(display, quiet)
        before = _SHOWN.set(shown)
        try:
            with watched(shown):
                yield shown
        finally:
            _SHOWN.reset(before)
