"""Progress for people: bars on a terminal, now and then a line in the log where there is none."""

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
"""Parts of an analysis that are told to whoever watches."""


class Progress(Protocol):
    """Called with what is being done, how much of it is done, and how much there is."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        ...


def silent(what: str, done: int, total: int, /) -> None:
    """The progress of work that nobody watches."""


_WATCHING: Final[ContextVar[Progress]] = ContextVar("watching", default=silent)
_SHOWN: Final[ContextVar[Shown | None]] = ContextVar("shown", default=None)


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Have the counts of the work in the block noted by ``progress``; lines and costs go where they went before.

    It holds for this thread. Runners that call back from others are handed `counts` or `watching`.
    """
    before = _WATCHING.set(progress)
    try:
        yield
    finally:
        _WATCHING.reset(before)


def watching() -> Progress:
    """Whoever notes the counts of the work on this thread now."""
    return _WATCHING.get()


def note(what: str, done: int, total: int) -> None:
    """Note the state of one piece of work."""
    _WATCHING.get()(what, done, total)


def counts(what: str) -> Callable[[int, int], None]:
    """Notes the state of one piece of work, from any thread, where it would be noted now."""
    progress = _WATCHING.get()
    return lambda done, total: progress(what, done, total)


def parts() -> Callable[[object], None]:
    """Notes the parts of an analysis, which only says that the next of them begins."""
    measuring, done = counts("measuring"), itertools.count()
    return lambda _: measuring(next(done), PARTS)


def say(line: str) -> None:
    """Show a line to people, if any watch."""
    if (shown := _SHOWN.get()) is not None:
        shown.say(line)


def paying() -> Callable[[float], None] | None:
    """Takes account, from any thread, of what replies cost in USD; None where nobody watches."""
    shown = _SHOWN.get()
    return None if shown is None else shown.pay


EVERY_S: Final = 10.0
"""Seconds between two lines about one piece of work, where there is no terminal."""

_LOG: Final = logging.getLogger(__name__)
_BAR: Final = 16
_LEAST_S: Final = 1.0  # of work before a rate is believed


@dataclass(slots=True)
class Piece:
    """One piece of work: where it began, when, and how far it is."""

    what: str
    first: int
    total: int
    began: float
    done: int
    told: float
    task: TaskID | None = None

    def state(self, now: float, usd: float) -> str:
        """Count, rate, time left and what was paid, as far as they are known."""
        parts = [f"{self.done:,} of {self.total:,}"]
        seconds, did = now - self.began, self.done - self.first
        if seconds >= _LEAST_S and did > 0 and self.done < self.total:
            rate = did / seconds
            # In the unit in which it is a number above 1, if there is one.
            words = f"{60 * rate:.0f}/min" if rate >= 1 / 60 else f"{3600 * rate:.0f}/h"
            if rate >= 1:
                words = f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"
            parts += [words, f"{timedelta(seconds=math.ceil((self.total - self.done) / rate))} left"]
        if usd:
            parts.append(f"{money(usd)} USD")
        return ", ".join(parts)


class Shown:
    """Progress that people see. It notes how far the last piece of work is, for whoever has to say where it stopped."""

    def __init__(self, display: Bars, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._display, self._quiet, self._clock = display, quiet, clock
        self._pieces: dict[str, Piece] = {}
        self._last: Piece | None = None
        self.usd = 0.0
        """What replies cost while this was shown."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        now, piece = self._clock(), self._pieces.get(what)
        if piece is None or done < piece.done:  # a piece of work may come again, such as a stage of each part
            old, piece = piece, Piece(what, done, total, now, done, now, None if piece is None else piece.task)
            self._pieces[what] = piece
            if piece.task is not None:
                self._display.update(piece.task, piece=piece)
            elif not self._display.disable:
                piece.task = self._display.add_task(escape(what), total=total, completed=done, piece=piece)
            if old is None and done < total:
                _LOG.info("%s: %s", what, piece.state(now, self.usd))
        ended = piece.done < total <= done
        piece.done, piece.total, self._last = done, total, piece
        if piece.task is not None:
            # Redrawing is throttled by rich; the update itself is a dict write.
            self._display.update(piece.task, completed=done, total=total)
        if ended:
            _LOG.info("%s: %s in %.1f s", what, piece.state(now, self.usd), now - piece.began)
        elif piece.task is None and now - piece.told >= EVERY_S:
            piece.told = now
            _LOG.info("%s: %s", what, piece.state(now, self.usd))

    def say(self, line: str, /) -> None:
        """Show a line, unless nobody wants to hear any."""
        if not self._quiet:
            self._display.console.print(escape(line), soft_wrap=True, highlight=False)

    def pay(self, usd: float, /) -> None:
        """Take account of what a reply cost."""
        self.usd += usd

    def where(self) -> str:
        """Where the work is, for a sentence that begins with "stopped"; empty where nothing was counted."""
        last = self._last
        return f" at {last.what} ({last.done:,} of {last.total:,})" if last and last.done < last.total else ""

    def state(self, piece: Piece) -> str:
        """How far a piece of work is now."""
        return piece.state(self._clock(), self.usd)


class _State(ProgressColumn):
    """Count, rate, time left and cost of a piece of work."""

    shown: Shown

    def render(self, task: Task) -> Text:
        return Text(self.shown.state(task.fields["piece"]))


@contextmanager
def bars(console: Console, quiet: bool = False) -> Iterator[Shown]:
    """Progress of the work in the block on ``console``: a bar for each piece on a terminal, and lines in any case."""
    state = _State()
    columns = (TextColumn("{task.description}"), BarColumn(_BAR), state)
    hidden = quiet or not console.is_terminal
    with Bars(*columns, console=console, transient=True, disable=hidden) as display:
        state.shown = shown = Shown(display, quiet)
        before = _SHOWN.set(shown)
        try:
            with watched(shown):
                yield shown
        finally:
            _SHOWN.reset(before)
