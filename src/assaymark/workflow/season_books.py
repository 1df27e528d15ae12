"""What becomes of a book on a day: corporate actions, then orders through the paper broker, and its value after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from typing import Any, Final

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.market import CorporateAction
from assaymark.market.clock import Day, Quote
from assaymark.portfolio.broker import Bar, Book, Order, orders_of, settle_day
from assaymark.portfolio.broker.settling import SLACK
from assaymark.records import Decision, canonical_json, parse, to_json
from assaymark.workflow.season_file import Season
from assaymark.workflow.season_records import DELISTED, DIVIDEND, SPLIT, SeasonFill, SeasonNav, SeasonRejection

Marks = Mapping[str, tuple[float, str]]
"""The last known close of each instrument, and its day."""

TOO_MANY: Final = "beyond-count"
UNREAD: Final = "not-taken"
"""The reason of an order that broke the form of a reply."""


@dataclass(frozen=True, slots=True)
class Account:
    """One agent between two days: its book, and the decision whose orders fill next."""

    book: Book
    decision: Decision | None = None

    def to_json(self) -> dict[str, Any]:
        """As the journal keeps it, beside the decision."""
        return {"cash": self.book.cash, "positions": dict(self.book.positions)}


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a day did to one agent's book. ``notes`` say to the agent what was not carried out of its orders.

    ``actions`` tell it of the corporate actions in what it holds.
    """

    book: Book
    nav: SeasonNav
    fills: tuple[SeasonFill, ...] = ()
    rejections: tuple[SeasonRejection, ...] = ()
    notes: tuple[str, ...] = field(default=())
    actions: tuple[str, ...] = field(default=())


def due_actions(name: str, day: Day, marks: Marks) -> tuple[CorporateAction, ...]:
    """The actions that come into force on a day: those since the last close, once there is a bar again."""
    if name not in day.quotes or name not in marks:
        return ()
    return tuple(one for one in day.actions.get(name, ()) if marks[name][1] < str(one.ex_date) <= str(day.date))


def marks_after(marks: Marks, day: Day) -> dict[str, tuple[float, str]]:
    """The last closes once a day is over."""
    now = str(day.date)
    found = {name: (one.close, now) for name, one in day.quotes.items() if one.close is not None}
    return dict(sorted({**marks, **found}.items()))


def settle_account(season: Season, agent: str, account: Account, day: Day, marks: Marks) -> Settlement:
    """Settle the orders of an agent's last decision at the prices of ``day``, and value its book at the close.

    Parameters
    ----------
    marks : mapping
        The last closes before this day.
    """
    last = account.decision
    orders, refused = _orders(season, agent, str(day.date), last)
    orders = [_split_order(season, one, due_actions(one.symbol, day, marks)) for one in orders]
    settled = settle_orders(
        season, agent, account.book, orders, day, marks, source="" if last is None else last.record_id, refused=refused
    )
    return replace(settled, notes=(*_unusable(last), *(one.text for one in settled.rejections)))


def settle_orders(
    season: Season,
    agent: str,
    book: Book,
    orders: Sequence[Order],
    day: Day,
    marks: Marks,
    *,
    source: str = "",
    refused: Sequence[SeasonRejection] = (),
) -> Settlement:
    """Settle orders as `settle_account` does. ``source`` is the decision that they are due to."""
    now = str(day.date)
    book, paid = _paid_out(book, agent, day, marks)
    book, acted, told = _acted(book, agent, day, marks)
    paid, marks = [*paid, *acted], _acted_marks(book, day, marks)
    if not orders:  # nothing for the broker to do
        nav = valued(agent, now, "ok", book, marks_after(marks, day), 0.0)
        return Settlement(book, nav, tuple(paid), tuple(refused), actions=told)
    settled = settle_day(book, orders, _bars(season, book, day, marks), season.rules.broker, universe=day.universe)
    fills = [
        SeasonFill(
            day=now, agent=agent, record_id=source, number=one.order + 1, symbol=one.symbol,
            quantity=one.quantity, price=one.price, cost=one.cost,
        )
        for one in settled.fills
    ]  # fmt: skip
    rejections = [
        SeasonRejection(
            day=now, agent=agent, record_id=source, number=one.order + 1, symbol=one.symbol,
            reason=one.reason, text=one.text, quantity=one.quantity,
        )
        for one in settled.rejections
    ]  # fmt: skip
    after = marks_after(marks, day)
    nav = valued(agent, now, "ok", settled.book, after, settled.costs)
    return Settlement(settled.book, nav, (*paid, *fills), (*refused, *rejections), actions=told)


def unmoved(agent: str, account: Account, day: Day, marks: Marks) -> Settlement:
    """A day without data: nothing is traded, and orders wait for the next one."""
    return Settlement(account.book, valued(agent, str(day.date), "no data", account.book, marks, 0.0))


def restored(raw: Mapping[str, Any], decision: Any) -> Account:
    """An account as the journal keeps it."""
    book = Book(float(raw["cash"]), {name: float(units) for name, units in raw["positions"].items()})
    return Account(book, None if decision is None else read_decision(decision))


def read_decision(raw: Any) -> Decision:
    """A decision as the journal keeps it."""
    return parse(Decision, canonical_json(raw), source="journal of the season")


def written(decision: Decision) -> Any:
    """A decision for the journal."""
    return to_json(decision)


# --- parts ------------------------------------------------------------------------------------------------------------


def _orders(
    season: Season, agent: str, now: str, decision: Decision | None
) -> tuple[Sequence[Order], list[SeasonRejection]]:
    """The orders that the broker is given, and those that never get to it."""
    if decision is None:
        return (), []
    every, most = orders_of(decision.actions), season.rules.max_orders

    def no(number: int, symbol: str, reason: str, text: str) -> SeasonRejection:
        return SeasonRejection(
            day=now, agent=agent, record_id=decision.record_id, number=number, symbol=symbol, reason=reason, text=text
        )

    unread = decision.missing if REJECTED in decision.flags else ()
    refused = [no(0, "", UNREAD, text) for text in unread]
    refused += [
        no(number, one.symbol, TOO_MANY, f"{one}: {len(every)} orders were given and {most} a day are allowed")
        for number, one in enumerate(every[most:], start=most + 1)
    ]
    return every[:most], refused


def _unusable(decision: Decision | None) -> tuple[str, ...]:
    """What an agent is told of a reply that could not be read."""
    if decision is None or not set(decision.flags) & set(NOT_USABLE):
        return ()
    return tuple(f"your last reply could not be used: {reason}" for reason in decision.missing)


def _paid_out(book: Book, agent: str, day: Day, marks: Marks) -> tuple[Book, list[SeasonFill]]:
    """The book without instruments that ended: their last close is paid out, for nobody could ever sell them."""
    ended = [name for name in sorted(book.positions) if name in day.gone and name not in day.quotes]
    if not ended:
        return book, []
    fills = [
        SeasonFill(
            day=str(day.date), agent=agent, record_id="", number=number, symbol=name,
            quantity=-book.positions[name], price=marks[name][0], cost=0.0, kind=DELISTED,
        )
        for number, name in enumerate(ended, start=1)
    ]  # fmt: skip
    cash = book.cash - sum(one.quantity * marks[one.symbol][0] for one in fills)
    return Book(cash, {name: units for name, units in book.positions.items() if name not in ended}), fills


def _acted(book: Book, agent: str, day: Day, marks: Marks) -> tuple[Book, list[SeasonFill], tuple[str, ...]]:
    """The book after the day's corporate actions, a row for each split and dividend, and a sentence for the agent."""
    fills: list[SeasonFill] = []
    told = []
    for name in sorted(book.positions):
        for one in due_actions(name, day, marks):
            before, book = book, book.acted(name, one.split, one.dividend)
            units, paid = book.positions[name], book.cash - before.cash
            changes = [(SPLIT, units - before.positions[name], 0.0, 0.0)] if one.split != 1.0 else []
            changes += [(DIVIDEND, 0.0, one.dividend, -paid)] if one.dividend else []
            fills += [
                SeasonFill(
                    day=str(day.date), agent=agent, record_id="", number=len(fills) + at, symbol=name,
                    quantity=quantity, price=price, cost=cost, kind=kind,
                )
                for at, (kind, quantity, price, cost) in enumerate(changes, start=1)
            ]  # fmt: skip
            cash = f", and {paid:,.2f} was paid into its cash" if one.dividend else ""
            told.append(f"{one}; your book now holds {units:.6g} units{cash}")
    return book, fills, tuple(told)


def _acted_marks(book: Book, day: Day, marks: Marks) -> Marks:
    """The last closes as prices of today's units, for what is held and has no price at which orders fill."""
    if not day.actions:
        return marks
    found = dict(marks)
    for name in book.positions:
        for one in due_actions(name, day, marks):
            price, of = found[name]
            found[name] = (max(price / one.split - one.dividend, 0.0) or price, of)
    return found


def _split_order(season: Season, order: Order, actions: Sequence[CorporateAction]) -> Order:
    """An order that waited through a split, in the units after it; where units are whole, without the odd rest."""
    split = math.prod(one.split for one in actions)
    if split == 1.0 or not isinstance(order.quantity, int | float) or isinstance(order.quantity, bool):
        return order
    lots = order.quantity * split / season.rules.lot
    if not season.rules.fractional and abs(lots) < math.inf:
        lots = float(math.floor(lots * (1 + SLACK)))
    return replace(order, quantity=lots * season.rules.lot)


def _bars(season: Season, book: Book, day: Day, marks: Marks) -> dict[str, Bar]:
    """The day's bars for the broker; what is held and did not trade stands at its last close, too old to fill at."""
    bars = dict(todays_bars(day))
    for name in book.positions:
        if name not in bars or bars[name].at(season.rules.fill) is None:
            bars[name] = _old(day.date, marks[name], day.quotes.get(name))
    return bars


@lru_cache(maxsize=2)
def todays_bars(day: Day) -> dict[str, Bar]:
    """The bars of a day, made once for all agents."""
    return {name: Bar(one.open, one.high, one.low, one.close) for name, one in day.quotes.items()}


def _old(now: date, mark: tuple[float, str], quote: Quote | None) -> Bar:
    price, of = mark
    age = max((now - date.fromisoformat(of)).days, 1)
    return Bar(price, close=price if quote is None else quote.close, age=age)


def valued(agent: str, now: str, state: str, book: Book, marks: Marks, costs: float) -> SeasonNav:
    """The book at the last known closes."""
    positions = dict(sorted(book.positions.items()))
    return SeasonNav(
        day=now,
        agent=agent,
        state=state,
        cash=book.cash,
        nav=Book(book.cash, positions).nav({name: marks[name][0] for name in positions}),
        costs=costs,
        positions=positions,
        stale=tuple(name for name in positions if marks[name][1] != now),
    )
