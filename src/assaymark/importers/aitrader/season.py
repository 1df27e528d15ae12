"""One track of an AI-Trader log as a season: its stated books day by day, beside an equal weight and cash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from assaymark.errors import InputError, UnknownNameError
from assaymark.importers.aitrader.log import Step, read_log
from assaymark.importers.aitrader.prices import Prices
from assaymark.importers.report import (
    CASH,
    EQUAL_WEIGHT,
    RecordedBook,
    RecordedCheck,
    RecordedFill,
    RecordedTrack,
    Tally,
)
from assaymark.portfolio import Book, Mismatch, Reconciliation, StatedFill, StatedStep, Tolerance, reconcile
from assaymark.portfolio.broker import RELIABILITY, CheckKind

__all__ = ["season_aitrader"]


# Whether the logged books follow from the logged actions and the prices: one audit for each agent and track.


FLAGS: Mapping[str, str] = {
    "fill-quantity": "fill-mismatch",
    "fill-price": "fill-mismatch",
    "position": "position-mismatch",
    "negative-position": "position-mismatch",
    "cash": "cash-mismatch",
}
"""The flag on a decision for each kind of mismatch at its step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One agent's book on one track, held against its own actions and the track's prices.

    ``records`` are the ids of its decisions, oldest first, as are ``reconciliation.navs``; a mismatch's ``step`` is
    such an id. NAV is that of the stated book after a step, at the opens of the step's bars: the prices at which the
    venue fills.
    """

    track: str
    agent: str
    capital: float
    records: tuple[str, ...]
    reconciliation: Reconciliation

    @property
    def last_nav(self) -> float | None:
        """The last NAV that can be told."""
        return next((nav for nav in reversed(self.reconciliation.navs) if nav is not None), None)

    def mismatches(self, record: str) -> tuple[Mismatch, ...]:
        """What does not fit at one decision."""
        return tuple(one for one in self.reconciliation.mismatches if one.step == record)


def audit_aitrader(files: Mapping[str, bytes]) -> tuple[Audit, ...]:
    """The books in AI-Trader logs, each mismatch with what is stated and what was recomputed.

    Parameters
    ----------
    files : mapping of name to bytes
        As for `import_aitrader`.

    Raises
    ------
    InputError
        Anything in the files is wrong: all of it at once.
    """
    tally = Tally()
    log = read_log(files, tally)
    if tally.problems:
        raise InputError("aitrader", tally.problems)
    return tuple(audit_of(steps, log.prices[track]) for (track, _), steps in log.runs().items())


def audit_of(steps: Sequence[Step], prices: Prices) -> Audit:
    """The audit of one agent's steps on one track, oldest first."""
    track = steps[0].track
    stated = [
        StatedStep(
            name=step.record_id,
            fills=fills_of(step),
            book=None if step.cash is None else Book(step.cash, step.held or {}),
            bars=prices.bars(step.at),
        )
        for step in steps
    ]
    return Audit(
        track=track.name,
        agent=steps[0].agent,
        capital=track.capital,
        records=tuple(step.record_id for step in steps),
        reconciliation=reconcile(Book(track.capital), stated, tolerance=Tolerance(cash=_CASH, units=track.units)),
    )


_CASH = 0.01
"""Amounts of cash are printed to the cent in one track and more finely in the others."""


def fills_of(step: Step) -> tuple[StatedFill, ...]:
    """The logged actions that moved anything: the venue logs an action once it is done."""
    sign = {"buy": 1.0, "sell": -1.0}
    return tuple(
        StatedFill(symbol=one.instrument, quantity=sign[one.kind] * one.quantity, price=one.price)
        for one in step.actions
        if one.kind in sign and one.quantity
    )


_KINDS: Mapping[str, CheckKind] = {
    "fill-quantity": "fill",
    "fill-price": "fill",
    "position": "position",
    "negative-position": "position",
    "cash": "cash",
}


def season_aitrader(files: Mapping[str, bytes], track: str) -> RecordedTrack:
    """One track as its log states it.

    A day is one of the exchange. An agent's book of a day is the one it states after its last step of that day, and
    all books of a day are valued at the opens of the track's last step of that day: the prices at which the venue
    fills. So at the last step NAV is the audit's (`Audit.last_nav`). A fill without a stated price has the open of its
    step. Equal weight buys every symbol that has an open at the track's first step, there, and holds.

    Parameters
    ----------
    files : mapping of name to bytes
        As for `import_aitrader`. Lines that an import refuses are passed over.
    track : str
        Our name of the track, such as ``us``.

    Raises
    ------
    InputError
        A file is missing or damaged as a whole.
    UnknownNameError
        The log has no step of that track.
    """
    log = read_log(files, Tally())
    steps = [one for one in log.steps if one.track.name == track]
    if not steps:
        raise UnknownNameError("track", track, tuple(sorted({one.track.name for one in log.steps})))
    prices = log.prices[steps[0].line.track]
    closing = _closing(steps)
    runs = [found for found in log.runs().values() if found[0].track.name == track]
    return RecordedTrack(
        name=track,
        capital=steps[0].track.capital,
        currency=steps[0].track.currency,
        universe=prices.symbols,
        days={one.record_id: _day(one.at) for one in steps},
        fills=tuple(fill for run in runs for step in run for fill in _fills(step, prices)),
        books=tuple(book for run in runs for book in _books(run, closing, prices)),
        baselines=tuple(_baselines(steps[0].track.capital, min(one.at for one in steps), closing, prices)),
        checks=tuple(one for run in runs for one in _checks(run[0].agent, audit_of(run, prices).reconciliation)),
    )


def _day(at: datetime) -> str:
    return at.strftime("%Y-%m-%d")


def _closing(steps: Sequence[Step]) -> dict[str, datetime]:
    """The last step of each day, whoever made it."""
    found: dict[str, datetime] = {}
    for one in steps:
        day = _day(one.at)
        found[day] = max(found.get(day, one.at), one.at)
    return dict(sorted(found.items()))


def _fills(step: Step, prices: Prices) -> Iterator[RecordedFill]:
    """The logged actions of one step, at their stated price or at the open."""
    opens = prices.opens(step.at)
    for number, one in enumerate(fills_of(step), start=1):
        yield RecordedFill(
            day=_day(step.at),
            agent=step.agent,
            record_id=step.record_id,
            number=number,
            symbol=one.symbol,
            quantity=one.quantity,
            price=opens.get(one.symbol) if one.price is None else one.price,
        )


def _books(run: Sequence[Step], closing: Mapping[str, datetime], prices: Prices) -> Iterator[RecordedBook]:
    """One agent's book on every day of the track from its first step on."""
    steps = {day: list(of) for day, of in groupby(run, key=lambda one: _day(one.at))}
    held = Book(run[0].track.capital)
    for day, at in closing.items():
        if day < _day(run[0].at):
            continue
        made = steps.get(day, [])
        for step in made:
            held = held if step.cash is None else Book(step.cash, step.held or {})
        yield from _valued(run[0].agent, day, held, at, prices, stated=not made or made[-1].cash is not None)


def _baselines(
    capital: float, first: datetime, closing: Mapping[str, datetime], prices: Prices
) -> Iterator[RecordedBook]:
    """An equal weight of everything that can be bought at the first step, and cash."""
    opens = prices.opens(first)
    equal = Book(0.0, {symbol: capital / len(opens) / price for symbol, price in opens.items()})
    for day, at in closing.items():
        yield from _valued(EQUAL_WEIGHT, day, equal, at, prices)
        yield from _valued(CASH, day, Book(capital), at, prices)


def _valued(
    name: str, day: str, book: Book, at: datetime, prices: Prices, *, stated: bool = True
) -> Iterator[RecordedBook]:
    """A book at the opens of a step, what has none there at its last one; nothing where a symbol never had any."""
    opens = prices.opens(at)
    found = {symbol: prices.last_open(symbol, at) for symbol in sorted(book.positions)}
    known = {symbol: price for symbol, price in found.items() if price is not None}
    if len(known) == len(found):
        yield RecordedBook(
            day=day,
            agent=name,
            state="ok" if stated else "not stated",
            cash=book.cash,
            nav=book.nav(known),
            positions={symbol: book.positions[symbol] for symbol in found},
            stale=tuple(symbol for symbol in found if symbol not in opens),
        )


def _checks(agent: str, found: Reconciliation) -> Iterator[RecordedCheck]:
    """Every check that data reliability counts, by kind."""
    for kind in RELIABILITY:
        if found.checks[kind]:
            yield RecordedCheck(
                agent=agent,
                kind=kind,
                checks=found.checks[kind],
                passed=found.passed[kind],
                mismatches=tuple(
                    (one.step, str(one).removeprefix(f"{one.step}: "))
                    for one in found.mismatches
                    if _KINDS[one.kind] == kind
                ),
            )
