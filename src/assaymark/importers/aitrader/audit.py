"""Whether the logged books follow from the logged actions and the prices: one audit for each agent and track."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assaymark.errors import InputError
from assaymark.importers.aitrader.lines import Step
from assaymark.importers.aitrader.prices import Prices
from assaymark.importers.aitrader.reading import read_log
from assaymark.importers.report import Tally
from assaymark.portfolio import Book, Mismatch, Reconciliation, StatedFill, StatedStep, Tolerance, reconcile

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
