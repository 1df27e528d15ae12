"""Thrashing, counted: names that are bought and sold again, or sold and bought again, within a few days.

The season methodology lets judges mark it down as part of temporal consistency. This count stands beside their grade.
It sees trades only: whether the reasons were opposite too is for the decisions of the two days to show.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from assaymark.errors import InputError, Problem

_NOTHING = 1e-9  # units, relative to the trade: what is left of 0.3 after 0.1 and 0.2 is no position


class Traded(Protocol):
    """A fill: signed units of a name, above 0 bought."""

    @property
    def symbol(self) -> str:
        """What was traded."""
        ...

    @property
    def quantity(self) -> float:
        """Units; below 0 sold."""
        ...


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A trade that takes back earlier ones of the same name.

    ``first`` says which way it began. ``opened`` and ``closed`` are days of the season, counted from 0; ``opened`` is
    the earliest that was taken back. ``quantity`` are the units taken back, above 0.
    """

    symbol: str
    first: Literal["buy", "sell"]
    opened: int
    closed: int
    quantity: float

    @property
    def days(self) -> int:
        """How long it took."""
        return self.closed - self.opened


@dataclass(frozen=True, slots=True)
class Thrashing:
    """The round trips of one agent. ``trades`` are purchases and sales, those of one name, day and direction as one."""

    trips: tuple[RoundTrip, ...]
    within: int
    days: int
    trades: int

    @property
    def by_symbol(self) -> dict[str, int]:
        """Round trips of each name that has any, most first."""
        return dict(sorted(Counter(trip.symbol for trip in self.trips).items(), key=lambda item: (-item[1], item[0])))

    def __str__(self) -> str:
        said = f"{len(self.trips)} round trips within {self.within} days"
        return f"{said}, of {self.trades} trades on {self.days} days"


def thrashing(fills: Sequence[Iterable[Traded]], *, within: int = 5) -> Thrashing:
    """Count the round trips of one agent that took at most ``within`` days.

    A trade takes back the latest opposite trades of its name first; what they leave of it can be taken back in turn.
    Units that are older than ``within`` days are a position and no longer a trip. So a purchase counts once however
    many orders it came in, and a slow rotation not at all.

    Parameters
    ----------
    fills : sequence of days, each an iterable of fills
        Every day of the season in order, those without fills as well; the fills of a day in their order.
    within : int
        Days of the season (not of the calendar) between the two trades, at most; 0 counts trips within a day.

    Returns
    -------
    Thrashing

    Raises
    ------
    InputError
        A fill without units or with units that are not finite, or ``within`` below 0: all at once.

    Examples
    --------
    >>> from assaymark.portfolio.broker import StatedFill
    >>> days = [[StatedFill(symbol="A", quantity=10)], [], [StatedFill(symbol="A", quantity=-4)]]
    >>> print(thrashing(days, within=2))
    1 round trips within 2 days, of 2 trades on 3 days
    >>> thrashing(days, within=1).trips
    ()
    """
    traded = [_merged(day) for day in fills]
    _check(traded, within)
    open_trades: dict[str, list[tuple[int, float]]] = defaultdict(list)
    trips = []
    for day, trades in enumerate(traded):
        for symbol, quantity in trades:
            trip = _take_back(open_trades[symbol], symbol, quantity, day, within)
            trips += [trip] if trip else []
    return Thrashing(tuple(trips), within, len(traded), sum(map(len, traded)))


def _take_back(lots: list[tuple[int, float]], symbol: str, quantity: float, day: int, within: int) -> RoundTrip | None:
    """Take a trade out of the opposite ones that are open; what is left of it is open itself."""
    rest, opened = abs(quantity), day
    while lots and lots[-1][1] * quantity < 0 and day - lots[-1][0] <= within and rest > _NOTHING * abs(quantity):
        opened, units = lots.pop()
        taken = min(rest, abs(units))
        rest -= taken
        if abs(units) - taken > _NOTHING * abs(units):
            lots.append((opened, math.copysign(abs(units) - taken, units)))
    back = abs(quantity) - rest
    if rest > _NOTHING * abs(quantity):
        # What is open on the other side is too old to be taken back by anything that follows.
        if lots and lots[-1][1] * quantity < 0:
            lots.clear()
        lots.append((day, math.copysign(rest, quantity)))
    return RoundTrip(symbol, "sell" if quantity > 0 else "buy", opened, day, back) if back else None


def _merged(day: Iterable[Traded]) -> list[tuple[str, Any]]:
    """The trades of a day: neighbouring fills of one name in one direction are one."""
    found: list[tuple[str, Any]] = []
    last: dict[str, int] = {}
    for fill in day:
        place = last.get(fill.symbol)
        if place is not None and found[place][1] * fill.quantity > 0:
            found[place] = (fill.symbol, found[place][1] + fill.quantity)
        else:
            last[fill.symbol] = len(found)
            found.append((fill.symbol, fill.quantity))
    return found


def _check(traded: Sequence[Sequence[tuple[str, Any]]], within: int) -> None:
    problems = [
        Problem(f"day {day}, {symbol}", f"a fill trades a finite number of units, not 0 (got {quantity!r:.80})")
        for day, trades in enumerate(traded)
        for symbol, quantity in trades
        if not math.isfinite(quantity) or not quantity
    ]
    if within < 0:
        problems.append(Problem("within", f"must be a number of days from 0 (got {within!r})"))
    if problems:
        raise InputError("thrashing", problems)
