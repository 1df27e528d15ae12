"""Progress for people: bars on a terminal, now and then a line in the log where there is none."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

from assaymark.engine import Ledger
from assaymark.engine.prices import FREE, SHIPPED, Prices, load_prices, prices_of_text, text_of_prices
from assaymark.engine.schema import Answered
from assaymark.report import PaidView, money
from assaymark.workflow.run_folder import RunFolder

# What the replies of a run came to, model by model, at the prices that its calls were asked at.


_PRICES: Final = "prices"


def leave_prices(ledger: Ledger, prices: Prices | None) -> None:
    """Note prices of the user's own in the ledger: the report is made without the file that they are in."""
    if prices is not None and prices.source != SHIPPED:
        ledger.notes.replace(_PRICES, text_of_prices(prices))


def noted_prices(ledger: Ledger) -> Prices:
    """The prices that were noted with the calls of a ledger, else those that come with assaymark."""
    noted = ledger.notes.read(_PRICES)
    return load_prices() if noted is None else prices_of_text(noted)


def paid_views(folder: RunFolder, prices: Prices | None = None) -> tuple[PaidView, ...]:
    """What each model that somebody is paid for has been asked, and what that came to; nothing where none is."""
    if not folder.has_ledger:
        return ()
    found: defaultdict[str, list[Answered]] = defaultdict(list)
    with Ledger.open(folder.ledger, create=False) as ledger:
        for one in ledger.answered(without=FREE):
            found[one.model].append(one)
        batched = ledger.batches.answered_in_batches([one.key for every in found.values() for one in every])
        prices = prices or noted_prices(ledger)
    return tuple(_view(model, found[model], set(batched), prices) for model in sorted(found))


def _view(model: str, answers: list[Answered], batched: set[str], prices: Prices) -> PaidView:
    # In the order of the keys: sums of floats in another order differ in their last digit.
    replies = [(one.key, one.reply) for one in sorted(answers, key=lambda one: one.key)]
    costs = [prices.paid(model, reply, key in batched) for key, reply in replies]
    known = [cost for cost in costs if cost is not None]
    cached = [reply.cached_tokens for _, reply in replies if reply.cached_tokens is not None]
    price = prices.of(model)
    return PaidView(
        model=model,
        calls=len(replies),
        input_tokens=sum(reply.input_tokens or 0 for _, reply in replies),
        cached_tokens=sum(cached) if cached else None,
        output_tokens=sum(reply.output_tokens or 0 for _, reply in replies),
        usd=sum(known),
        unpriced=len(costs) - len(known),
        untold=sum(reply.input_tokens is None or reply.output_tokens is None for _, reply in replies),
        in_batches=sum(key in batched for key, _ in replies),
        price_of=None if price is None else price.as_of.isoformat(),
    )


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

    def rate(self, now: float) -> float | None:
        """How many a second since it began; None before anything is known."""
        seconds = now - self.began
        return (self.done - self.first) / seconds if seconds >= _LEAST_S and self.done > self.first else None

    def state(self, now: float, usd: float) -> str:
        """Count, rate, time left and what was paid, as far as they are known."""
        parts = [f"{self.done:,} of {self.total:,}"]
        if (rate := self.rate(now)) is not None and self.done < self.total:
            left = timedelta(seconds=math.ceil((self.total - self.done) / rate))
            parts += [rate_words(rate), f"{left} left"]
        if usd:
            parts.append(f"{money(usd)} USD")
        return ", ".join(parts)


def rate_words(rate: float) -> str:
    """A rate in the unit in which it is a number above 1, if there is one."""
    if rate >= 1:
        return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"
    return f"{60 * rate:.0f}/min" if rate >= 1 / 60 else f"{3600 * rate:.0f}/h"


class Shown:
    """Progress that people see. It notes how far the last piece of work is, for whoever has to say where it stopped."""

    def __init__(
        self, display: Bars, *, quiet: bool, every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._display, self._quiet, self._every_s, self._clock = display, quiet, every_s, clock
        self._pieces: dict[str, Piece] = {}
        self._last: Piece | None = None
        self.usd = 0.0
        """What replies cost while this was shown."""

    def __call__(self, what: str, done: int, total: int, /) -> None:
        """Note the state of one piece of work."""
        now = self._clock()
        piece = self._pieces.get(what)
        if piece is None or done < piece.done:  # a piece of work may come again, such as a stage of each part
            piece = self._begin(what, done, total, now)
        ended = piece.done < total <= done
        piece.done, piece.total, self._last = done, total, piece
        if piece.task is not None:
            # Redrawing is throttled by rich; the update itself is a dict write.
            self._display.update(piece.task, completed=done, total=total)
        if ended:
            _LOG.info("%s: %s in %.1f s", what, piece.state(now, self.usd), now - piece.began)
        elif piece.task is None and now - piece.told >= self._every_s:
            piece.told = now
            _LOG.info("%s: %s", what, piece.state(now, self.usd))

    def _begin(self, what: str, done: int, total: int, now: float) -> Piece:
        old = self._pieces.get(what)
        piece = self._pieces[what] = Piece(what, done, total, now, done, now, None if old is None else old.task)
        if piece.task is None and not self._display.disable:
            piece.task = self._display.add_task(escape(what), total=total, completed=done, piece=piece)
        elif piece.task is not None:
            self._display.update(piece.task, piece=piece)
        if old is None and done < total:
            _LOG.info("%s: %s", what, piece.state(now, self.usd))
        return piece

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
        if last is None or last.done >= last.total:
            return ""
        return f" at {last.what} ({last.done:,} of {last.total:,})"

    def state(self, piece: Piece) -> str:
        """How far a piece of work is now."""
        return piece.state(self._clock(), self.usd)


class _State(ProgressColumn):
    """Count, rate, time left and cost of a piece of work."""

    def __init__(self, shown: Callable[[], Shown]) -> None:
        super().__init__()
        self._shown = shown

    def render(self, task: Task) -> Text:
        return Text(self._shown().state(task.fields["piece"]))


@contextmanager
def bars(console: Console, *, quiet: bool = False, every_s: float = EVERY_S) -> Iterator[Shown]:
    """Progress on ``console``: a bar for each piece of work on a terminal, and lines that somebody is told in any case."""
    columns = (TextColumn("{task.description}"), BarColumn(_BAR), _State(lambda: shown))
    hidden = quiet or not console.is_terminal
    with Bars(*columns, console=console, transient=True, disable=hidden) as display:
        shown = Shown(display, quiet=quiet, every_s=every_s)
        yield shown
