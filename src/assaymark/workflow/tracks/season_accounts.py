"""One day of a portfolio: corporate actions, orders through the paper broker, and its value at the close."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assaymark.agents.llm import REJECTED, is_unanswered
from assaymark.claims.season_plan import Season
from assaymark.importers.report import EQUAL_WEIGHT, NEXT, WHOLE
from assaymark.market import CorporateAction
from assaymark.market.history import Day
from assaymark.market.instruments import weekdays
from assaymark.portfolio import broker
from assaymark.portfolio.broker import Account, Order
from assaymark.records import Bar, Decision, Outcome
from assaymark.workflow.tracks.season_lock import SeasonData
from assaymark.workflow.tracks.season_records import DELISTED, DIVIDEND, SPLIT, SeasonFill, SeasonNav, SeasonRejection

if TYPE_CHECKING:
    from assaymark.workflow.tracks.season_day import DayEntry
    from assaymark.workflow.tracks.season_lock import LockedSeason


Marks = Mapping[str, tuple[float, str]]
"""The last known close of each instrument, with its day."""

Baseline = tuple[Account, Mapping[str, float]]
"""The portfolio of a baseline, and the weights that it buys on the next day with data."""

TOO_MANY: Final = "beyond-count"
UNREAD: Final = "not-taken"
"""The reason code of an order that violated the reply format."""

SIXTY_FORTY: Final = "60/40"
MOVE: Final = "price of "
"""The beginning of a mismatch line on an unexplained price move."""

SIXTY_FORTY_OF: Final = {"EQ": 0.6, "BO": 0.4}
"""The asset classes of 60/40, with their weights."""
_JUMP: Final = math.log(4 / 3)
_TIMES_USUAL: Final = 10.0


@dataclass(frozen=True, slots=True)
class AccountDay:
    """The effect of one day on an agent's portfolio. ``notes`` tell the agent which of its orders were not executed."""

    book: Account
    nav: SeasonNav
    fills: tuple[SeasonFill, ...] = ()
    rejections: tuple[SeasonRejection, ...] = ()
    notes: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


def due_actions(name: str, day: Day, marks: Marks) -> tuple[CorporateAction, ...]:
    """Return the corporate actions due on a day: those since the last close, on days with a bar."""
    if name not in day.actions or name not in day.quotes or name not in marks:
        return ()
    return tuple(one for one in day.actions[name] if marks[name][1] < str(one.ex_date) <= str(day.date))


def marks_after(marks: Marks, day: Day) -> dict[str, tuple[float, str]]:
    """Return the last closes after a day."""
    closes = {name: (bar.close, str(day.date)) for name, bar in day.quotes.items() if bar.close is not None}
    return dict(sorted({**marks, **closes}.items()))


def settle_account(
    season: Season, agent: str, account: Account, last: Decision | None, day: Day, marks: Marks
) -> AccountDay:
    """Settle the orders of an agent's last decision at the prices of ``day``, and value its portfolio at the close."""
    most, whole = season.rules.max_orders, season.rules.broker.whole
    if last is None:
        return settle_orders(season, agent, account, (), day, marks)
    ordered = broker.orders_of(last.actions)
    unread = last.missing if REJECTED in last.flags else ()
    beyond = f"{len(ordered)} orders were given and {most} a day are allowed"
    causes = [(0, "", UNREAD, text) for text in unread]
    causes += [(at, one.symbol, TOO_MANY, f"{one}: {beyond}") for at, one in enumerate(ordered[most:], start=most + 1)]
    refused = [SeasonRejection(str(day.date), agent, last.record_id, *cause) for cause in causes]
    orders = []
    for order in ordered[:most]:  # an order given before a split is converted to units after it
        split = math.prod(action.split for action in due_actions(order.symbol, day, marks))
        if split != 1.0 and order.quantity is not None:
            units, held = order.quantity * split, abs(account.positions.get(order.symbol, 0.0))
            if not math.isclose(order.quantity, held):  # all that is held stays all of it
                # whole lots lose the fraction that the split makes of them; an order of other units is refused as it is
                units = whole(units) or units if math.isclose(order.quantity, whole(order.quantity)) else order.quantity
            order = replace(order, quantity=units)
        orders.append(order)
    settled = settle_orders(season, agent, account, orders, day, marks, last.record_id, refused)
    notes = [f"your last reply could not be used: {reason}" for reason in last.missing if is_unanswered(last)]
    return replace(settled, notes=(*notes, *(rejection.text for rejection in settled.rejections)))


def settle_orders(
    season: Season, agent: str, book: Account, orders: Sequence[Order], day: Day, marks: Marks, source: str = "",
    refused: Sequence[SeasonRejection] = (),
) -> AccountDay:  # fmt: skip
    """Settle orders as `settle_account` does; ``source`` is the id of their decision."""
    now, notes = str(day.date), list[str]()
    # positions in delisted instruments, which cannot be sold any more, are paid out at the last close
    ended = [name for name in sorted(book.positions) if name in day.gone and name not in day.quotes]
    fills = [
        SeasonFill(now, agent, "", number, name, -book.positions[name], marks[name][0], 0.0, DELISTED)
        for number, name in enumerate(ended, start=1)
    ]
    if ended:
        cash = book.cash - sum(fill.quantity * marks[fill.symbol][0] for fill in fills)
        book = Account(cash, {name: units for name, units in book.positions.items() if name not in ended})
    # splits and dividends, each with a sentence for the agent
    for name, action in [(held, action) for held in sorted(book.positions) for action in due_actions(held, day, marks)]:
        before, book = book, book.acted(name, action.split, action.dividend)
        units, paid = book.positions[name], book.cash - before.cash
        changes = [(SPLIT, units - before.positions[name], 0.0, 0.0)] if action.split != 1.0 else []
        changes += [(DIVIDEND, 0.0, action.dividend, -paid)] if action.dividend else []
        for number, (kind, quantity, price, cost) in enumerate(changes, start=len(fills) - len(ended) + 1):
            fills.append(SeasonFill(now, agent, "", number, name, quantity, price, cost, kind))
        money = f", and {paid:,.2f} was paid into its cash" if action.dividend else ""
        notes.append(f"{action}; your book now holds {units:.6g} units{money}")
    marks = dict(marks)
    for name in book.positions if day.actions else ():  # in today's units, for positions without a bar
        for action in due_actions(name, day, marks):
            price, marked_on = marks[name]
            marks[name] = (max(price / action.split - action.dividend, 0.0) or price, marked_on)
    after = marks_after(marks, day)
    if not orders:  # no need for the broker
        nav = value_account(agent, now, "ok", book, after)
        return AccountDay(book, nav, tuple(fills), tuple(refused), actions=tuple(notes))
    bars = dict(day.quotes)
    for name in book.positions:
        if name not in bars or bars[name].at(season.rules.fill) is None:
            (price, marked_on), quote = marks[name], day.quotes.get(name)
            age = max((day.date - date.fromisoformat(marked_on)).days, 1)
            bars[name] = Bar(price, close=price if quote is None else quote.close, age=age)
    settled = broker.settle_day(book, orders, bars, season.rules.broker, day.universe)
    for fill in settled.fills:
        fills.append(SeasonFill(now, agent, source, fill.order + 1, fill.symbol, fill.quantity, fill.price, fill.cost))
    rejections = [
        SeasonRejection(now, agent, source, one.order + 1, one.symbol, one.reason, one.text, one.quantity)
        for one in settled.rejections
    ]
    nav = value_account(agent, now, "ok", settled.book, after, settled.costs)
    return AccountDay(settled.book, nav, tuple(fills), (*refused, *rejections), actions=tuple(notes))


def value_account(agent: str, now: str, state: str, account: Account, marks: Marks, costs: float = 0.0) -> SeasonNav:
    """Value a portfolio at the last known closes."""
    positions = dict(sorted(account.positions.items()))
    nav = Account(account.cash, positions).nav({name: marks[name][0] for name in positions})
    stale = tuple(name for name in positions if marks[name][1] != now)
    return SeasonNav(now, agent, state, account.cash, nav, costs, positions, stale)


def settle_baseline(
    season: Season, name: str, baseline: Baseline, day: Day, marks: Marks, classes: Mapping[str, str], begins: bool
) -> tuple[Baseline, SeasonNav]:
    """Settle a baseline: on the first day with data it chooses weights, buys on the next one, and then holds."""
    account, weights = baseline
    cost = 1.0 + season.rules.cost_bps / 1e4  # the weight covers purchase and cost, so that cash suffices
    orders = [Order(symbol, "buy", weight=share / cost) for symbol, share in sorted(weights.items())]
    ruled = season.model_copy(update={"rules": season.rules.model_copy(update={"excess": "cut"})})
    settled = settle_orders(ruled, name, account, orders, day, marks)
    tradable = [symbol for symbol in day.universe if symbol in day.quotes] if begins else []
    shares: Mapping[str, float] = {}
    if name == EQUAL_WEIGHT:
        shares = {symbol: 1.0 / len(tradable) for symbol in tradable}
    elif name == SIXTY_FORTY:
        members = {kind: [symbol for symbol in tradable if classes[symbol] == kind] for kind in SIXTY_FORTY_OF}
        shares = {symbol: SIXTY_FORTY_OF[kind] / len(group) for kind, group in members.items() for symbol in group}
    return (settled.book, shares), settled.nav


def audit_day(
    season: Season, before: Account, after: AccountDay, day: Day, record_id: str, marks: Marks | None = None
) -> dict[str, Any]:
    """Reconcile an agent's fills and portfolio of a day with each other and with the day's bars, for the journal."""
    marks, symbols = marks or {}, sorted(before.positions)
    fills = tuple(
        broker.StatedFill(fill.symbol, fill.quantity, fill.price, fill.cost)
        for fill in after.fills
        if fill.kind not in (SPLIT, DIVIDEND)
    )
    for event in (action for name in symbols for action in due_actions(name, day, marks)):
        before = before.acted(event.instrument, event.split, event.dividend)
    step = broker.StatedStep(record_id, fills, book=Account(after.nav.cash, after.nav.positions), bars=day.quotes)
    result = broker.reconcile(before, [step], season.rules.fill, short=season.rules.short)
    counts = {kind: [result.checks[kind], result.passed[kind]] for kind in broker.RELIABILITY if result.checks[kind]}
    kinds = {"negative-position": "position"}
    mismatches = [
        [kinds.get(mismatch.kind, mismatch.kind.partition("-")[0]), str(mismatch).removeprefix(f"{record_id}: ")]
        for mismatch in result.mismatches
    ]
    failed, traded = {mismatch.symbol for mismatch in result.mismatches}, {fill.symbol for fill in fills}
    for name in (symbol for symbol in symbols if symbol in day.quotes and symbol in marks):
        # a price move since the last close that no corporate action explains
        price, marked = marks[name]
        close = day.quotes[name].close or price
        worth, actions = Account(0.0, {name: 1.0}), due_actions(name, day, marks)
        for action in actions:
            worth = worth.acted(name, action.split, action.dividend)
        move = abs(math.log((worth.nav({name: close}) if actions else close) / price))
        if move <= _JUMP:  # nearly always, so that the median move is rarely computed
            continue
        closes = day.bars["close"][:, day.universe.index(name)]
        moves = np.abs(np.diff(np.log(closes[np.isfinite(closes)])))
        if moves.size and move <= _TIMES_USUAL * float(np.median(moves)):
            continue
        reason = f"not explained by {'; '.join(map(str, actions))}" if actions else "explained by no action"
        kind = "fill" if name in traded else "position"
        mismatches.append([kind, f"{MOVE}{name} on {day.date}: {close:.10g} after {price:.10g} on {marked}, {reason}"])
        counts[kind][1] -= name not in failed
    return {"record_id": record_id, "counts": counts, "mismatches": mismatches}


def outcomes_of(season: Season, entries: Sequence[DayEntry]) -> Iterator[Outcome]:
    """Yield the return of each agent's portfolio from each decision to the next, and over the whole season."""
    days = [entry for entry in entries if entry.record["state"] == "ok"]
    if len(days) < 2:
        return
    for agent in season.agents:
        agent_navs, even = (
            [float(day.record[group][name]["nav"]["nav"]) for day in days]
            for group, name in (("agents", agent.name), ("baselines", EQUAL_WEIGHT))
        )
        ids = [
            next(row for row in day.record["decisions"] if row["agent"]["id"] == agent.name and row["replicate"] == 1)
            for day in days
        ]
        spans = [(at, NEXT, agent_navs[at], even[at], late) for at, late in pairwise(range(len(days)))]
        spans.append((-1, WHOLE, season.capital, season.capital, len(days) - 1))
        for at, horizon, worth, base, late in spans:
            if worth > 0:
                yield Outcome(
                    str(ids[at]["record_id"]), horizon, value=agent_navs[late] / worth - 1.0,
                    benchmark=even[late] / base - 1.0 if base > 0 else None, resolved_at=days[late].moment,
                    source="books of the season at its closes",
                )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DueDays:
    """The days that are due, each with its market data, and messages on days without data.

    ``waiting`` is the first day with missing data: ``announced`` before its deadline, ``overdue`` after it.
    """

    days: tuple[tuple[date, SeasonData], ...]
    reached: date | None
    lost: tuple[date, ...] = ()
    waiting: date | None = None
    announced: str = ""
    overdue: str = ""


def find_due_days(locked: LockedSeason, done: date | None, now: datetime) -> DueDays:
    """Return the days after ``done`` that can be done at ``now``."""
    season, newest = locked.season, locked.data
    clock = newest.clock(season)
    if not season.market.live:
        return DueDays(tuple((day, newest) for day in clock.due(done)), clock.reached)
    days: list[date] = weekdays(clock.first, clock.last).astype(object).tolist()
    due = set(clock.due(done, now))  # first, because it refuses a time without a zone
    due |= {day for day in days if (done is None or day > done) and clock.moment(day) <= now}
    sources, ready, lost = [(clock, newest)], list[tuple[date, SeasonData]](), list[date]()
    for day in sorted(due):
        # The newest market with bars of the day; an older one is opened only if no newer one has any.
        market = next((data for clock, data in sources if clock.knows(day)), None)
        while market is None and (older := sources[-1][1].older(season, day)):
            sources.append((older.clock(season), older))
            market = older if sources[-1][0].knows(day) else None
        end = max((clock.reached for clock, _ in sources if clock.reached), default=None)
        deadline = clock.moment(day) + timedelta(hours=season.calendar.late_after_h)
        later, by = end is not None and end > day, f"{deadline:%Y-%m-%d %H:%M} UTC"
        if market is None and (now < deadline or not later):
            then = "; the days after it are there and follow in order" if later else ""
            state = "there are no data" if end is None else f"the data end on {end}"
            announced, overdue = f"waiting for the data of {day} until {by}{then}", ""
            if now >= deadline:
                announced, overdue = "", f"{day}: its data are overdue since {by}; {state}"
            return DueDays(tuple(ready), end, tuple(lost), day, announced, overdue)
        if market is None:
            lost.append(day)
        ready.append((day, market or newest))
    end = max((clock.reached for clock, _ in sources if clock.reached), default=None)
    return DueDays(tuple(ready), end, tuple(lost))
