"""What becomes of a book on a day: corporate actions, then orders through the paper broker, and its value after."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assaymark.agents.llm import NOT_USABLE, REJECTED
from assaymark.claims.season_plan import Season
from assaymark.importers.report import CASH, EQUAL_WEIGHT, NEXT, WHOLE
from assaymark.market import CorporateAction
from assaymark.market.history import Day
from assaymark.market.instruments import weekdays
from assaymark.portfolio.broker import (
    RELIABILITY,
    SLACK,
    Bar,
    Book,
    Order,
    StatedFill,
    StatedStep,
    orders_of,
    reconcile,
    settle_day,
)
from assaymark.records import Decision, Outcome, canonical_json, parse
from assaymark.workflow.tracks.season_lock import SeasonData
from assaymark.workflow.tracks.season_records import (
    DELISTED,
    DIVIDEND,
    SPLIT,
    SeasonFill,
    SeasonNav,
    SeasonRejection,
)

if TYPE_CHECKING:
    from assaymark.workflow.tracks.season_day import Entry
    from assaymark.workflow.tracks.season_lock import LockedSeason


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


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a day did to one agent's book. ``notes`` say to the agent what was not carried out of its orders."""

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
    """Settle the orders of an agent's last decision at the prices of ``day``, and value its book at the close."""
    last, most = account.decision, season.rules.max_orders
    if last is None:
        return settle_orders(season, agent, account.book, (), day, marks)
    every = orders_of(last.actions)
    unread = last.missing if REJECTED in last.flags else ()
    beyond = f"{len(every)} orders were given and {most} a day are allowed"
    refused = [
        SeasonRejection(str(day.date), agent, last.record_id, number, symbol, why, text)
        for number, symbol, why, text in (
            *((0, "", UNREAD, text) for text in unread),
            *((at, one.symbol, TOO_MANY, f"{one}: {beyond}") for at, one in enumerate(every[most:], start=most + 1)),
        )
    ]
    orders = []
    for one in every[:most]:  # one that waited through a split is in the units after it
        split = math.prod(action.split for action in due_actions(one.symbol, day, marks))
        if split != 1.0 and isinstance(one.quantity, int | float) and not isinstance(one.quantity, bool):
            lots = one.quantity * split / season.rules.lot
            if not season.rules.fractional and abs(lots) < math.inf:  # units are whole: without the odd rest
                lots = float(math.floor(lots * (1 + SLACK)))
            one = replace(one, quantity=lots * season.rules.lot)
        orders.append(one)
    settled = settle_orders(season, agent, account.book, orders, day, marks, source=last.record_id, refused=refused)
    unusable = set(last.flags) & set(NOT_USABLE)
    notes = [f"your last reply could not be used: {reason}" for reason in last.missing] if unusable else []
    return replace(settled, notes=(*notes, *(rejection.text for rejection in settled.rejections)))


def settle_orders(
    season: Season, agent: str, book: Book, orders: Sequence[Order], day: Day, marks: Marks, *, source: str = "",
    refused: Sequence[SeasonRejection] = (),
) -> Settlement:  # fmt: skip
    """Settle orders as `settle_account` does. ``source`` is the decision that they are due to."""
    now = str(day.date)
    book, made, told = _acted(book, agent, day, marks)
    marks = dict(marks)
    for name in book.positions if day.actions else ():  # prices of today's units, where no order can fill
        for action in due_actions(name, day, marks):
            price, of = marks[name]
            marks[name] = (max(price / action.split - action.dividend, 0.0) or price, of)
    after = marks_after(marks, day)
    if not orders:  # nothing for the broker to do
        nav = valued(agent, now, "ok", book, after, 0.0)
        return Settlement(book, nav, tuple(made), tuple(refused), actions=told)
    bars = dict(todays_bars(day))
    for name in book.positions:
        if name not in bars or bars[name].at(season.rules.fill) is None:
            (price, of), quote = marks[name], day.quotes.get(name)
            age = max((day.date - date.fromisoformat(of)).days, 1)
            bars[name] = Bar(price, close=price if quote is None else quote.close, age=age)
    settled = settle_day(book, orders, bars, season.rules.broker, day.universe)
    made += [
        SeasonFill(now, agent, source, fill.order + 1, fill.symbol, fill.quantity, fill.price, fill.cost)
        for fill in settled.fills
    ]
    rejections = [
        SeasonRejection(
            now,
            agent,
            source,
            rejection.order + 1,
            rejection.symbol,
            rejection.reason,
            rejection.text,
            rejection.quantity,
        )
        for rejection in settled.rejections
    ]
    nav = valued(agent, now, "ok", settled.book, after, settled.costs)
    return Settlement(settled.book, nav, tuple(made), (*refused, *rejections), actions=told)


def read_decision(raw: Any) -> Decision:
    """A decision as the journal keeps it."""
    return parse(Decision, canonical_json(raw), source="journal of the season")


def _acted(book: Book, agent: str, day: Day, marks: Marks) -> tuple[Book, list[SeasonFill], tuple[str, ...]]:
    """The book after what nobody ordered: instruments that ended, splits and dividends, with a sentence for the agent.

    What ended is paid out at its last close, for nobody could ever sell it.
    """
    fills: list[SeasonFill] = []
    own, told = (str(day.date), agent, ""), []
    ended = [name for name in sorted(book.positions) if name in day.gone and name not in day.quotes]
    for number, name in enumerate(ended, start=1):
        fills.append(SeasonFill(*own, number, name, -book.positions[name], marks[name][0], 0.0, DELISTED))
    if ended:
        cash = book.cash - sum(fill.quantity * marks[fill.symbol][0] for fill in fills)
        book = Book(cash, {name: units for name, units in book.positions.items() if name not in ended})
    for name in sorted(book.positions):
        for action in due_actions(name, day, marks):
            before, book = book, book.acted(name, action.split, action.dividend)
            units, paid = book.positions[name], book.cash - before.cash
            changes = [(SPLIT, units - before.positions[name], 0.0, 0.0)] if action.split != 1.0 else []
            changes += [(DIVIDEND, 0.0, action.dividend, -paid)] if action.dividend else []
            first = len(fills) - len(ended) + 1
            for number, (kind, quantity, price, cost) in enumerate(changes, start=first):
                fills.append(SeasonFill(*own, number, name, quantity, price, cost, kind))
            money = f", and {paid:,.2f} was paid into its cash" if action.dividend else ""
            told.append(f"{action}; your book now holds {units:.6g} units{money}")
    return book, fills, tuple(told)


@lru_cache(maxsize=2)
def todays_bars(day: Day) -> dict[str, Bar]:
    """The bars of a day, made once for all agents."""
    return {name: Bar(one.open, one.high, one.low, one.close) for name, one in day.quotes.items()}


def valued(agent: str, now: str, state: str, book: Book, marks: Marks, costs: float) -> SeasonNav:
    """The book at the last known closes."""
    positions = dict(sorted(book.positions.items()))
    nav = Book(book.cash, positions).nav({name: marks[name][0] for name in positions})
    stale = tuple(name for name in positions if marks[name][1] != now)
    return SeasonNav(now, agent, state, book.cash, nav, costs, positions, stale)


SIXTY_FORTY: Final = "60/40"
_CLASSES: Final = {"EQ": 0.6, "BO": 0.4}
_SOURCE: Final = "books of the season at its closes"
MOVE: Final = "price of "
"""How a sentence of `unexplained` begins."""

_JUMP: Final = math.log(4 / 3)
_TIMES_USUAL: Final = 10.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A book that nobody decides about, and the weights that it buys on the next day with data."""

    book: Book
    wanted: Mapping[str, float] = field(default_factory=dict)


def new_baselines(season: Season, classes: Mapping[str, str]) -> dict[str, Baseline]:
    """The baselines before the first day: equal weight, cash, and 60/40 where there are equities and bonds."""
    names = [EQUAL_WEIGHT, *([SIXTY_FORTY] if set(_CLASSES) <= set(classes.values()) else []), CASH]
    return {name: Baseline(Book(season.capital)) for name in names}


def begun(name: str, one: Baseline, classes: Mapping[str, str], day: Day) -> Baseline:
    """A baseline on the first day with data: it wants its weights of what trades on that day."""
    there = [symbol for symbol in day.universe if symbol in day.quotes]
    if name == EQUAL_WEIGHT:
        return Baseline(one.book, {symbol: 1.0 / len(there) for symbol in there})
    if name == SIXTY_FORTY:
        members = {kind: [symbol for symbol in there if classes[symbol] == kind] for kind in _CLASSES}
        wanted = {symbol: _CLASSES[kind] / len(of) for kind, of in members.items() for symbol in of}
        return Baseline(one.book, wanted)
    return one


def settle_baseline(season: Season, name: str, one: Baseline, day: Day, marks: Marks) -> tuple[Baseline, SeasonNav]:
    """A baseline after a day: it buys once, as an agent would on its second day, and holds."""
    rules = season.rules.model_copy(update={"excess": "cut"})
    cost = 1.0 + season.rules.cost_bps / 1e4  # what is bought and its cost make up the weight, so that cash lasts
    orders = [Order(symbol=symbol, side="buy", weight=share / cost) for symbol, share in sorted(one.wanted.items())]
    ruled = season.model_copy(update={"rules": rules})
    settled = settle_orders(ruled, name, one.book, orders, day, marks)
    return Baseline(settled.book), settled.nav


def checked(
    season: Season, before: Book, after: Settlement, day: Day, record_id: str, marks: Marks | None = None
) -> dict[str, Any]:
    """One agent's stated fills and book of a day held against each other and the day's bars, for the journal."""
    marks = marks or {}
    fills = tuple(
        StatedFill(fill.symbol, fill.quantity, fill.price, fill.cost)
        for fill in after.fills
        if fill.kind not in (SPLIT, DIVIDEND)
    )
    held = sorted(before.positions)
    for one in (one for name in held for one in due_actions(name, day, marks)):
        before = before.acted(one.instrument, one.split, one.dividend)
    stated = Book(after.nav.cash, after.nav.positions)
    step = StatedStep(record_id, fills, book=stated, bars=todays_bars(day))
    found = reconcile(before, [step], season.rules.fill, short=season.rules.short)
    counts = {kind: [found.checks[kind], found.passed[kind]] for kind in RELIABILITY if found.checks[kind]}
    kinds = {"negative-position": "position"}
    mismatches = [
        [kinds.get(mismatch.kind, mismatch.kind.partition("-")[0]), str(mismatch).removeprefix(f"{record_id}: ")]
        for mismatch in found.mismatches
    ]
    failed, traded = {mismatch.symbol for mismatch in found.mismatches}, {fill.symbol for fill in fills}
    for name in held:
        if sentence := unexplained(name, day, marks):
            kind = "fill" if name in traded else "position"
            mismatches.append([kind, sentence])
            counts[kind][1] -= name not in failed
    return {"record_id": record_id, "counts": counts, "mismatches": mismatches}


def unexplained(name: str, day: Day, marks: Marks) -> str:
    """What is wrong with a move of the price since the last close that no corporate action explains; else nothing."""
    if name not in day.quotes or name not in marks:
        return ""
    price, of = marks[name]
    close = day.quotes[name].close or price
    worth, actions = Book(0.0, {name: 1.0}), due_actions(name, day, marks)
    for action in actions:
        worth = worth.acted(name, action.split, action.dividend)
    move = abs(math.log(worth.nav({name: close}) / price))
    if move <= _JUMP:  # nearly always, so that the usual move is seldom needed
        return ""
    closes = day.bars["close"][:, day.universe.index(name)]
    moves = np.abs(np.diff(np.log(closes[np.isfinite(closes)])))
    if moves.size and move <= _TIMES_USUAL * float(np.median(moves)):
        return ""
    known = "; ".join(map(str, actions))
    why = f"not explained by {known}" if known else "explained by no action"
    return f"{MOVE}{name} on {day.date}: {close:.10g} after {price:.10g} on {of}, {why}"


def outcomes_of(season: Season, entries: Sequence[Entry]) -> Iterator[Outcome]:
    """What each agent's book earned from a decision to the next one, and at the last one since the season began."""
    days = [entry for entry in entries if entry.record["state"] == "ok"]

    def nav(entry: Entry, agent: str | None = None) -> float:
        row = entry.record["baselines"][EQUAL_WEIGHT] if agent is None else entry.record["agents"][agent]
        return float(row["nav"]["nav"])

    def earned(before: float, after: float) -> float | None:
        return after / before - 1.0 if before > 0 else None

    for agent in season.agents:
        own = [
            next(one for one in day.record["decisions"] if one["agent"]["id"] == agent.name and one["replicate"] == 1)
            for day in days
        ]
        rows: list[tuple[int, str, float | None, float | None, Entry]] = [
            (at, NEXT, earned(nav(early, agent.name), nav(late, agent.name)), earned(nav(early), nav(late)), late)
            for at, (early, late) in enumerate(pairwise(days))
        ]
        if len(days) > 1:
            last = days[-1]
            rows.append(
                (-1, WHOLE, nav(last, agent.name) / season.capital - 1.0, nav(last) / season.capital - 1.0, last)
            )
        for at, horizon, value, benchmark, day in rows:
            if value is not None:
                yield Outcome(
                    record_id=str(own[at]["record_id"]), horizon=horizon, value=value, benchmark=benchmark,
                    resolved_at=day.moment, source=_SOURCE,
                )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The days that are due, each with the market that it is run on, and what is said of days without data."""

    days: tuple[tuple[date, SeasonData], ...]
    reached: date | None
    lost: tuple[date, ...] = ()
    waiting: date | None = None
    deadline: datetime | None = None
    overdue: bool = False
    later: bool = False

    def until(self, day: date) -> Arrivals:
        """The days up to one that somebody named."""
        days = tuple(one for one in self.days if one[0] <= day)
        return Arrivals(days, self.reached, tuple(one for one in self.lost if one <= day))

    @property
    def first(self) -> Arrivals:
        """The first day alone: a step of a replay."""
        return Arrivals(self.days[:1], self.reached)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each thing that somebody has to look at."""
        lines = [
            f"{day}: its data did not come in time; the day is recorded without, nobody was asked, and orders waited"
            for day in self.lost
        ]
        if self.overdue:
            there = "there are no data" if self.reached is None else f"the data end on {self.reached}"
            lines.append(f"{self.waiting}: its data are overdue since {_shown(self.deadline)}; {there}")
        return tuple(lines)

    @property
    def announced(self) -> str:
        """What is waited for in good time, and until when."""
        if self.waiting is None or self.overdue:
            return ""
        then = "; the days after it are there and follow in order" if self.later else ""
        return f"waiting for the data of {self.waiting} until {_shown(self.deadline)}{then}"


def arrivals(locked: LockedSeason, done: date | None, now: datetime) -> Arrivals:
    """The days after ``done`` that can be done at ``now``."""
    season, newest = locked.season, locked.data
    clock = newest.clock(season)
    if not season.market.live:
        return Arrivals(tuple((day, newest) for day in clock.due(done)), clock.reached)
    days: list[date] = weekdays(clock.first, clock.last).astype(object).tolist()
    due = set(clock.due(done, now))  # first, because it refuses a time without a zone
    due |= {day for day in days if (done is None or day > done) and clock.moment(day) <= now}
    sources = [(clock, newest)]

    def holding(day: date) -> SeasonData | None:
        """The market that was retrieved last and knows bars of a day; older ones are opened where no newer does."""
        if found := next((data for clock, data in sources if clock.knows(day)), None):
            return found
        while older := sources[-1][1].older(season, day):
            sources.append((older.clock(season), older))
            if sources[-1][0].knows(day):
                return older
        return None

    def reached() -> date | None:
        return max((one.reached for one, _ in sources if one.reached), default=None)

    found: list[tuple[date, SeasonData]] = []
    lost: list[date] = []
    for day in sorted(due):
        market = holding(day)
        deadline = clock.moment(day) + timedelta(hours=season.calendar.late_after_h)
        later = (end := reached()) is not None and end > day
        if market is None and (now < deadline or not later):
            return Arrivals(tuple(found), end, tuple(lost), day, deadline, now >= deadline, later)
        if market is None:
            lost.append(day)
        found.append((day, market or newest))
    return Arrivals(tuple(found), reached(), tuple(lost))


def _shown(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"
