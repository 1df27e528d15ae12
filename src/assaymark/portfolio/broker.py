"""Order execution: a day at a paper broker, a decision at its stated prices, and reconciliation of trading records."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.records import Action, Bar, Constraint, Context, FillAt, Portfolio, grouped

# One day at a paper broker: a portfolio and orders in, fills and rejections with reasons out; it has no dates

Excess = Literal["reject", "cut"]
Reason = Literal[
    "bad-order", "bad-quantity", "unknown-symbol", "no-price", "stale-price", "short-forbidden", "not-held", "fraction",
    "beyond-holding", "beyond-cash", "beyond-weight", "beyond-exposure",
]  # fmt: skip

_ASKED: Final = ("buy", "sell", "short", "cover", "close", "target")
"""The actions that make an order. ``close`` sells or covers the whole position, ``target`` brings it to a weight."""


@dataclass(frozen=True, slots=True)
class Account:
    """An account: cash in its currency, and the units held of each symbol (negative for a short position)."""

    cash: float
    positions: Mapping[str, float] = field(default_factory=dict)

    def nav(self, prices: Mapping[str, float]) -> float:
        """Net asset value: cash plus the positions at ``prices``, which must cover every held symbol."""
        return self.cash + math.fsum(units * prices[symbol] for symbol, units in self.positions.items())

    def acted(self, symbol: str, split: float = 1.0, dividend: float = 0.0) -> Account:
        """Return the account after a split, a dividend, or both."""
        units = self.positions.get(symbol, 0.0) * split
        if not units:
            return self
        return Account(self.cash + units * dividend, {**self.positions, symbol: units})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRules:
    """The rules of a season's paper broker; each is a field of the season's plan."""

    fill: FillAt = "next_open"
    cost_bps: float = 0.0
    fractional: bool = True
    lot: float = 1.0
    short: bool = False
    max_weight: float | None = None
    max_exposure: float = 1.0
    excess: Excess = "reject"
    max_age: int = 0

    def __post_init__(self) -> None:
        problems = [
            Problem(f"rules.{name}", f"must be {allowed} (got {value!r})")
            for name, value, good, allowed in (
                ("fill", self.fill, self.fill in ("next_open", "close"), "next_open or close"),
                ("cost_bps", self.cost_bps, 0 <= self.cost_bps < 10_000, "from 0 to below 10000"),
                ("lot", self.lot, 0 < self.lot < math.inf, "positive and finite"),
                ("max_weight", self.max_weight, self.max_weight is None or 0 < self.max_weight <= 10, "in (0, 10]"),
                ("max_exposure", self.max_exposure, 0 < self.max_exposure <= 10, "in (0, 10]"),
                ("excess", self.excess, self.excess in ("reject", "cut"), "reject or cut"),
                ("max_age", self.max_age, self.max_age >= 0, "0 or more"),
            )
            if not good
        ]
        if problems:
            raise InputError("broker", problems)

    def whole(self, units: float) -> float:
        """Round ``units`` towards zero to a multiple of the lot, unless fractions are allowed."""
        return units if self.fractional else math.trunc(units / self.lot * (1 + SLACK)) * self.lot


@dataclass(frozen=True, slots=True)
class Order:
    """One order of an agent, in units (``quantity``) or as a fraction of NAV (``weight``), not both."""

    symbol: str
    side: str
    quantity: float | None = None
    weight: float | None = None

    def __str__(self) -> str:
        size = "" if self.quantity is None else f" {format_value(self.quantity)}"
        share = "" if self.weight is None else f" at weight {format_value(self.weight)}"
        return f"{self.side!s:.20}{size} {self.symbol!s:.40}{share}"


def orders_of(actions: Iterable[Action]) -> tuple[Order, ...]:
    """Return the orders among the actions of a decision; ``hold`` and ``no_trade`` make no order."""
    traded = (action for action in actions if action.kind not in ("hold", "no_trade"))
    return tuple(
        Order(one.instrument, "target" if one.kind == "target_weight" else one.kind, one.quantity, one.weight)
        for one in traded
    )


@dataclass(frozen=True, slots=True)
class Fill:
    """The trade for the order at index ``order``: signed units, their price, and the cost in cash."""

    order: int
    symbol: str
    quantity: float
    price: float
    cost: float

    @property
    def cash(self) -> float:
        """The change in cash; negative for a purchase."""
        return -self.quantity * self.price - self.cost


@dataclass(frozen=True, slots=True)
class Rejection:
    """The unfilled part of the order at index ``order``, with the reason."""

    order: int
    symbol: str
    reason: Reason
    text: str
    quantity: float | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of one day's orders. Amounts are in the account's currency, at the prices at which orders fill."""

    book: Account
    fills: tuple[Fill, ...]
    rejections: tuple[Rejection, ...]
    nav_before: float
    nav: float
    costs: float
    stale: tuple[str, ...] = ()


def format_value(value: object) -> str:
    """Format a number from an agent's reply, which may be any value."""
    if isinstance(value, int) and abs(value) >= 1e15:
        return "a number of more than 15 digits"  # too long to convert to a float or to text
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else f"{value!r:.40}"


SLACK: Final = 1e-9
"""Relative excess over a limit that counts as rounding: such an order is filled up to the limit, not rejected."""

_NOTHING: Final = 1e-12
_MOST: Final = 1e15


def settle_day(
    account: Account, orders: Sequence[Order], bars: Mapping[str, Bar], rules: BrokerRules,
    universe: Collection[str] | None = None,
) -> Settled:  # fmt: skip
    """Execute one day's orders and return the fills, the rejections and the account after them."""
    day = _DaySettler(account, bars, rules, frozenset(bars) if universe is None else frozenset(universe))
    first = {number: day.reading(order) for number, order in enumerate(orders)}
    for number, order in sorted(enumerate(orders), key=lambda item: first[item[0]] > 0):
        day.take(number, order)
    positions = dict(sorted(day.units.items()))
    after, costs = Account(day.cash, positions), math.fsum(fill.cost for fill in day.fills)
    refused = tuple(sorted(day.rejections, key=lambda rejection: rejection.order))
    stale = tuple(symbol for symbol in positions if bars[symbol].age > 0)
    return Settled(after, tuple(day.fills), refused, day.nav_before, after.nav(day.marks), costs, stale)


class _Unfillable(Exception):
    """An order that cannot be filled at all."""

    def __init__(self, reason: Reason, text: str, quantity: float | None = None) -> None:
        self.reason, self.text, self.quantity = reason, text, quantity


class _DaySettler:
    """The working state of `settle_day`."""

    def __init__(self, start: Account, bars: Mapping[str, Bar], rules: BrokerRules, universe: frozenset[str]) -> None:
        self.bars, self.rules, self.universe, self.rate = bars, rules, universe, rules.cost_bps / 1e4
        # The price of every held symbol when orders fill; all problems of the account are reported together.
        problems = [] if abs(start.cash) < math.inf else [Problem("book.cash", f"must be finite (got {start.cash!r})")]
        marks: dict[str, float] = {}
        for symbol, units in start.positions.items():
            if not abs(units) < math.inf:
                problems.append(Problem(f"book.positions.{symbol}", f"must be finite units (got {units!r})"))
            bar = bars.get(symbol)
            price = None if bar is None else bar.at(rules.fill)
            if price is None:
                problem = "is held and has no price; give its last one with its age"
                problems.append(Problem(f"bars.{symbol}", problem))
            else:
                marks[symbol] = price
        if problems:
            raise InputError("broker", problems)
        self.marks, self.cash = marks, start.cash
        self.units = {symbol: units for symbol, units in start.positions.items() if units}
        self.nav_before = start.nav(self.marks)
        self.fills: list[Fill] = []
        self.rejections: list[Rejection] = []

    def reading(self, order: Order) -> float:
        """Return the units that an order requests at the current account; 0 for an order that will be rejected."""
        try:
            return self._asked(order, self._price(order))
        except _Unfillable:
            return 0.0

    def take(self, number: int, order: Order) -> None:
        """Fill or reject one order."""
        allowed, refused = 0.0, None
        try:
            price = self._price(order)
            asked = self._asked(order, price)
            allowed, refusal = self._allowed(order, asked, price)
            if refusal is not None and (self.rules.excess == "reject" or not allowed):
                raise _Unfillable(*refusal, asked)
            if refusal is not None:
                refused = _Unfillable(refusal[0], f"{refusal[1]}; {abs(allowed):g} units were filled", asked - allowed)
        except _Unfillable as exc:
            allowed, refused = 0.0, exc
        if allowed:
            symbol, cost = order.symbol, abs(allowed) * price * self.rate
            fill = Fill(number, symbol, allowed, price, cost)
            remaining = self.units.get(symbol, 0.0) + allowed
            if abs(remaining) <= _NOTHING * max(1.0, abs(allowed)):
                self.units.pop(symbol, None)
            else:
                self.units[symbol] = remaining
            self.marks.setdefault(symbol, price)
            self.cash += fill.cash
            self.fills.append(fill)
        if refused is not None:
            text = f"{order}: {refused.text}"
            self.rejections.append(Rejection(number, order.symbol, refused.reason, text, refused.quantity))

    def _price(self, order: Order) -> float:
        """Return the price at which the order would fill, or raise `_Unfillable`."""
        if order.side not in _ASKED:
            raise _Unfillable("bad-order", f"side must be one of {', '.join(_ASKED)} (got {order.side!r:.40})")
        if not isinstance(order.symbol, str) or order.symbol not in self.universe:
            raise _Unfillable("unknown-symbol", "not in the universe of this season")
        bar = self.bars.get(order.symbol)
        price = None if bar is None else bar.at(self.rules.fill)
        if bar is None or price is None:
            raise _Unfillable("no-price", "has no price today")
        if bar.age > self.rules.max_age:
            raise _Unfillable("stale-price", f"its last price is {bar.age} days old (allowed {self.rules.max_age})")
        return price

    def _asked(self, order: Order, price: float) -> float:
        """Return the signed units that the order requests."""
        units = self.units.get(order.symbol, 0.0)
        if order.side == "close":
            if not units:
                raise _Unfillable("not-held", "nothing of it is held")
            return -units
        amounts = [value for value in (order.quantity, order.weight) if value is not None]
        if len(amounts) != 1 or (order.side == "target" and order.weight is None):
            choice = "a weight" if order.side == "target" else "either a quantity or a weight"
            raise _Unfillable("bad-order", f"needs {choice}")
        value = amounts[0]
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MOST:
            raise _Unfillable("bad-quantity", f"must be a number up to {_MOST:g} (got {format_value(value)})")
        if order.side != "target" and value <= 0:
            raise _Unfillable("bad-quantity", f"must be above 0 (got {value:g})")
        if order.weight is not None and value and self.nav_before <= 0:
            raise _Unfillable("bad-quantity", f"a weight of a NAV of {self.nav_before:,.2f} is no amount")
        size = float(value) if order.weight is None else float(value) * self.nav_before / price
        if not abs(size) < math.inf:
            raise _Unfillable("bad-quantity", "is more than can be counted")
        if order.side == "target":  # one that is met but for rounding requests nothing
            change = 0.0 if math.isclose(size, units, rel_tol=SLACK) else self.rules.whole(size - units)
            return change if size else -units
        if order.weight is not None:
            # a weight is seldom a whole number of lots; it requests the whole lots within it
            size = self.rules.whole(size)
            if not size:
                raise _Unfillable("fraction", f"is less than one lot of {self.rules.lot:g} units")
        return size if order.side in ("buy", "cover") else -size

    def _allowed(self, order: Order, asked: float, price: float) -> tuple[float, tuple[Reason, str] | None]:
        """Return the units that may be filled and, if they are fewer than requested, the reason."""
        units = self.units.get(order.symbol, 0.0)
        if order.side == "short" and not self.rules.short:
            raise _Unfillable("short-forbidden", "short positions are not allowed", asked)
        if order.side == "cover" and units >= 0:
            raise _Unfillable("not-held", "nothing of it is short", asked)
        if order.side == "sell" and units <= 0:
            raise _Unfillable("not-held", "nothing of it is held", asked)
        closes = math.isclose(asked, -units, rel_tol=SLACK) and units != 0
        if not closes and not math.isclose(asked, self.rules.whole(asked), rel_tol=SLACK):
            raise _Unfillable("fraction", f"only multiples of {self.rules.lot:g} units can be traded", asked)
        allowed, refusal = asked, None
        for limit, reason, text in self._limits(order, asked, price, units):
            if abs(allowed) > abs(limit) * (1 + SLACK):
                refusal = refusal or (reason, text)
                # what rounding leaves of a limit that is used up is nothing
                left = 0.0 if abs(limit) * price <= SLACK * abs(self.nav_before) else self.rules.whole(limit)
                allowed = limit if limit == -units else left
            elif abs(allowed) > abs(limit):
                allowed = limit
        return allowed, refusal

    def _limits(self, order: Order, asked: float, price: float, held: float) -> list[tuple[float, Reason, str]]:
        """Return the limits on an order's units, with reasons; each has the sign of the requested units, or is 0."""
        limits: list[tuple[float, Reason, str]] = []
        if order.side in ("sell", "cover"):
            limits.append((-held, "beyond-holding", f"{abs(held):g} units are held"))
        elif not self.rules.short and held + asked < 0:
            limits.append((-held, "short-forbidden", f"{held:g} units are held and short positions are not allowed"))
        if asked > 0:
            need, rate = asked * price * (1 + self.rate), price * (1 + self.rate)
            most = max(self.cash, 0.0) / rate
            limits.append((most, "beyond-cash", f"costs {need:,.2f} and cash is {self.cash:,.2f}"))
        if abs(held + asked) <= abs(held):
            return limits  # an order that does not make the position larger has no limit on its size after
        nav = self.cash + math.fsum(units * self.marks[name] for name, units in self.units.items())
        others = math.fsum(abs(units) * self.marks[name] for name, units in self.units.items() if name != order.symbol)
        sign = math.copysign(1.0, asked)

        def room(share: float, beside: float) -> float:
            # The largest change in the order's direction that keeps the position and the others within a share of
            # NAV after cost; closing an opposite position first never increases exposure.
            largest = (share * nav - beside - sign * held * price) / (price * (1 + share * self.rate))
            return sign * max(largest, -sign * held, 0.0)

        if (cap := self.rules.max_weight) is not None:
            limits.append((room(cap, 0.0), "beyond-weight", f"allowed is {cap:.2%} of NAV in one position"))
        text = f"allowed is {self.rules.max_exposure:.2f} times NAV in all positions together"
        limits.append((room(self.rules.max_exposure, others), "beyond-exposure", text))
        return limits


CheckKind = Literal["fill", "cash", "position", "nav"]
MismatchKind = Literal["fill-quantity", "fill-price", "cash", "position", "negative-position", "nav"]
Where = Literal["", "at the close", "inside the bar", "outside the bar", "no bar"]

RELIABILITY: Final = ("fill", "cash", "position")
"""The kinds of check that data reliability counts; a stated NAV is also checked, but not counted."""


@dataclass(frozen=True, slots=True)
class StatedFill:
    """One fill stated by a record: signed units, and the price and cost if stated."""

    symbol: str
    quantity: float
    price: float | None = None
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class StatedStep:
    """One step of a record: its fills, the account stated after it, and the bars at which it could trade."""

    name: str
    fills: tuple[StatedFill, ...]
    book: Account | None
    bars: Mapping[str, Bar] = field(default_factory=dict)
    nav: float | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Maximum differences due to the record's printed precision: ``cash`` in currency, ``units`` in units."""

    cash: float = 0.01
    units: float = 1e-6

    def __post_init__(self) -> None:
        problems = [
            Problem(f"tolerance.{name}", f"must be finite and not negative (got {value!r})")
            for name, value in (("cash", self.cash), ("units", self.units))
            if not 0 <= value < math.inf
        ]
        if problems:
            raise InputError("reconcile", problems)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One stated value that differs from the value recomputed from the other statements."""

    step: str
    kind: MismatchKind
    symbol: str
    stated: float
    recomputed: float
    where: Where = ""

    def __str__(self) -> str:
        of = f" of {self.symbol}" if self.symbol else ""
        location = f", {self.where}" if self.where else ""
        return f"{self.step}: {self.kind}{of}: stated {self.stated:.10g}, recomputed {self.recomputed:.10g}{location}"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that could not be made, with the reason."""

    step: str
    kind: CheckKind
    symbol: str
    why: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The results of all checks of a record, with their denominators."""

    checks: Mapping[CheckKind, int]
    passed: Mapping[CheckKind, int]
    mismatches: tuple[Mismatch, ...]
    unchecked: tuple[Unchecked, ...]
    navs: tuple[float | None, ...]

    @property
    def n(self) -> int:
        """The number of fill, cash and position checks made."""
        return sum(self.checks[kind] for kind in RELIABILITY)

    @property
    def data_reliability(self) -> float:
        """The percentage of fill, cash and position checks that reconcile."""
        if not self.n:
            raise NotMeasurableError("data reliability is undefined: no fill, cash or position could be checked")
        return 100.0 * sum(self.passed[kind] for kind in RELIABILITY) / self.n


def reconcile(
    start: Account, steps: Sequence[StatedStep], fill: FillAt = "next_open", *, cost_bps: float = 0.0,
    short: bool = False, tolerance: Tolerance | None = None,
) -> Reconciliation:  # fmt: skip
    """Recompute each step of a record from the account stated before it."""
    run = _Reconciler(start, fill, cost_bps / 1e4, short, tolerance or Tolerance())
    for step in steps:
        run.take(step)
    passed = {kind: n - run.failed[kind] for kind, n in run.checks.items()}
    return Reconciliation(run.checks, passed, tuple(run.mismatches), tuple(run.unchecked), tuple(run.navs))


class _Reconciler:
    """The working state of `reconcile`."""

    def __init__(self, start: Account, fill: FillAt, rate: float, short: bool, tolerance: Tolerance) -> None:
        self.before, self.fill, self.rate, self.short, self.tolerance = start, fill, rate, short, tolerance
        self.carried: list[StatedFill] = []
        self.checks: dict[CheckKind, int] = dict.fromkeys((*RELIABILITY, "nav"), 0)
        self.failed: dict[CheckKind, int] = dict(self.checks)
        self.mismatches: list[Mismatch] = []
        self.unchecked: list[Unchecked] = []
        self.navs: list[float | None] = []

    def take(self, step: StatedStep) -> None:
        """Check one step; the next step starts from the account that it states."""
        name, account = step.name, step.book
        if account is None:
            # The fills of a step without a stated account are checked at the next step, at the prices of their own.
            reason = "the record states no book after this step"
            self.unchecked += [Unchecked(name, "cash", "", reason), Unchecked(name, "position", "", reason)]
            for fill in step.fills:
                price = fill.price if fill.price is not None else self._price(step, fill.symbol)
                self.carried.append(StatedFill(fill.symbol, fill.quantity, price, fill.cost))
            self.navs.append(None)
            return
        fills = grouped((*self.carried, *step.fills), lambda fill: fill.symbol)
        self.carried = []
        explained = {symbol: self._fill_check(step, account, symbol, of) for symbol, of in fills.items()}
        for symbol in sorted((set(self.before.positions) | set(account.positions)) - set(fills)):
            before, after = self.before.positions.get(symbol, 0.0), account.positions.get(symbol, 0.0)
            mismatches: list[Mismatch] = []
            if abs(after - before) > self.tolerance.units:
                mismatches.append(Mismatch(name, "position", symbol, after, before))
            if after < -self.tolerance.units and not self.short:
                mismatches.append(Mismatch(name, "negative-position", symbol, after, 0.0))
            self.check("position", mismatches)
        self._cash_check(step, account, fills, explained)
        holdings = {symbol: units for symbol, units in account.positions.items() if units}
        prices = {symbol: self._price(step, symbol) for symbol in holdings}
        priced = {symbol: price for symbol, price in prices.items() if price is not None}
        nav = Account(account.cash, holdings).nav(priced) if len(priced) == len(prices) else None
        self.navs.append(nav)
        if step.nav is not None and nav is None:
            self.unchecked.append(Unchecked(name, "nav", "", "a held symbol has no price at this step"))
        elif step.nav is not None and nav is not None:
            off = _differ(step.nav, nav, self.tolerance.cash)
            self.check("nav", [Mismatch(name, "nav", "", step.nav, nav)] if off else [])
        self.before = account

    def check(self, kind: CheckKind, mismatches: list[Mismatch]) -> None:
        """Count one check and store its mismatches."""
        self.checks[kind] += 1
        self.failed[kind] += bool(mismatches)
        self.mismatches += mismatches

    def _price(self, step: StatedStep, symbol: str) -> float | None:
        bar = step.bars.get(symbol)
        return None if bar is None else bar.at(self.fill)

    def _fill_check(self, step: StatedStep, account: Account, symbol: str, fills: Sequence[StatedFill]) -> bool:
        """Check one symbol's fills and their stated prices; True if they explain its change in units."""
        asked, before = math.fsum(fill.quantity for fill in fills), self.before.positions.get(symbol, 0.0)
        change, rule = account.positions.get(symbol, 0.0) - before, self._price(step, symbol)
        explained = abs(asked - change) <= self.tolerance.units * len(fills)
        mismatches: list[Mismatch] = []
        if not explained:
            mismatches.append(Mismatch(step.name, "fill-quantity", symbol, before + change, before + asked))
        for fill in fills:
            if fill not in step.fills or fill.price is None:
                continue
            if rule is None:
                reason = "its stated price has no bar to be held against"
                self.unchecked.append(Unchecked(step.name, "fill", symbol, reason))
            elif _differ(fill.price, rule, self.tolerance.cash):
                location = _locate(fill.price, [step.bars[symbol]], [1.0], self.tolerance.cash)
                mismatches.append(Mismatch(step.name, "fill-price", symbol, fill.price, rule, location))
        self.check("fill", mismatches)
        return explained

    def _cash_check(
        self, step: StatedStep, after: Account, fills: Mapping[str, Sequence[StatedFill]], explained: Mapping[str, bool]
    ) -> None:
        """Check that cash changed by the value traded, at the fills' prices or else at those of the fill rule."""
        priced: list[float] = []
        loose: list[tuple[str, float]] = []  # traded at a price that is not stated
        for symbol in sorted(set(self.before.positions) | set(after.positions) | set(fills)):
            if explained.get(symbol):
                priced += [-fill.quantity * fill.price for fill in fills[symbol] if fill.price is not None]
                loose += [(symbol, fill.quantity) for fill in fills[symbol] if fill.price is None and fill.quantity]
            else:
                change = after.positions.get(symbol, 0.0) - self.before.positions.get(symbol, 0.0)
                loose += [(symbol, change)] if abs(change) > self.tolerance.units else []
        at_rule = [(units, self._price(step, symbol)) for symbol, units in loose]
        flows = [-units * price for units, price in at_rule if price is not None]
        if len(flows) < len(loose):
            absent = next(symbol for (symbol, _), (_, price) in zip(loose, at_rule, strict=True) if price is None)
            self.unchecked.append(Unchecked(step.name, "cash", absent, "it was traded and has no price at this step"))
            return
        costs = math.fsum(fill.cost for of in fills.values() for fill in of)
        costs += self.rate * math.fsum(map(abs, (*priced, *flows)))
        settled = self.before.cash + math.fsum(priced) - costs
        expected = settled + math.fsum(flows)
        mismatches: list[Mismatch] = []
        if _differ(after.cash, expected, self.tolerance.cash):
            bars, units = [step.bars[symbol] for symbol, _ in loose], [-units for _, units in loose]
            location = _locate(after.cash - settled, bars, units, self.tolerance.cash)
            mismatches.append(Mismatch(step.name, "cash", "", after.cash, expected, location))
        self.check("cash", mismatches)


def _differ(stated: float, recomputed: float, slack: float) -> bool:
    """Return True if two amounts differ by more than the printed precision and floating-point rounding."""
    return abs(stated - recomputed) > slack + 1e-12 * max(abs(stated), abs(recomputed))


def _locate(amount: float, bars: Sequence[Bar], units: Sequence[float], slack: float) -> Where:
    """Locate an amount relative to the value of ``units`` at the closes and the high-low ranges of their bars."""
    if not bars:
        return ""
    parts = [(bar.close, bar.low, bar.high, of) for bar, of in zip(bars, units, strict=True)]
    if any(close is None or low is None or high is None for close, low, high, _ in parts):
        return "no bar"
    close = math.fsum(of * (price or 0.0) for price, _, _, of in parts)
    if abs(amount - close) <= slack:
        return "at the close"
    least = math.fsum(min(of * (low or 0.0), of * (high or 0.0)) for _, low, high, of in parts)
    most = math.fsum(max(of * (low or 0.0), of * (high or 0.0)) for _, low, high, of in parts)
    return "inside the bar" if least - slack <= amount <= most + slack else "outside the bar"


SIDES: Final[Mapping[str, int]] = MappingProxyType({"buy": 1, "cover": 1, "sell": -1, "short": -1})
"""The sign of the units added by each kind of action that trades."""

_CENTS: Final = 1e-6
"""Tolerance of a limit, relative to its unit, because amounts are printed in cents."""

ORDER_RULES: Final = ("max_weight", "min_cash", "max_leverage", "max_orders", "allow_short")
"""The kinds of constraint that `audit` checks; ``fee`` enters the settlement."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """An account after its orders, at the given prices. Amounts are in the account's currency."""

    cash: float
    bought: float
    sold: float
    fees: float
    residual: float
    positions: Mapping[str, float]
    exposure: float
    equity: float
    weights: Mapping[str, float]
    orders: int

    @property
    def leverage(self) -> float:
        """Exposure divided by equity; infinite if no equity is left."""
        return self.exposure / self.equity if self.equity > 0 else math.inf

    @property
    def cost(self) -> float:
        """The cash that the orders use: purchases less sales, plus fees."""
        return self.bought - self.sold + self.fees


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """The check of one rule against a settlement, which compares ``value`` with ``limit``."""

    rule: str
    limit: float
    value: float
    kept: bool
    subject: str = ""


def settle(
    portfolio: Portfolio, prices: Mapping[str, float], actions: Sequence[Action], *, fee_bps: float = 0.0
) -> Settlement:
    """Compute the account after its orders, all of them executed at ``prices``."""
    needed = dict.fromkeys((*portfolio.positions, *(action.instrument for action in actions if action.kind in SIDES)))
    problems = [
        Problem(f"prices.{name}", f"a positive price is needed (got {prices.get(name)})")
        for name in needed
        if not 0 < prices.get(name, math.nan) < math.inf
    ]
    for number, action in enumerate(actions, start=1):
        label = f"order {number}"
        if action.kind == "target_weight":
            problems.append(Problem(label, "is a target weight and no order of units"))
        elif action.kind in SIDES and not 0 < (action.quantity or 0.0) < math.inf:
            problems.append(Problem(label, f"needs a positive finite quantity (got {action.quantity})"))
        elif action.kind == "close" and not portfolio.positions.get(action.instrument):
            problems.append(Problem(label, f"closes {action.instrument!r}, which is not held"))
    if problems:
        raise InputError("orders", problems)
    units: dict[str, float] = defaultdict(float, portfolio.positions)
    bought = sold = 0.0
    orders = 0
    for action in actions:
        # the units that an action adds to a position; negative if it reduces the position
        change = SIDES.get(action.kind, 0) * (action.quantity or 0.0)
        change = -units[action.instrument] if action.kind == "close" else change
        if not action.instrument or not change:
            continue
        orders += 1
        value = abs(change) * prices[action.instrument]
        bought, sold = (bought + value, sold) if change > 0 else (bought, sold + value)
        units[action.instrument] += change
    fees = (bought + sold) * fee_bps / 1e4
    residual = portfolio.cash - bought + sold - fees
    values = {name: amount * prices[name] for name, amount in units.items() if abs(amount) > 1e-12}
    equity = residual + math.fsum(values.values())
    weights = {name: value / equity if equity > 0 else math.inf for name, value in values.items()}
    exposure, positions = math.fsum(map(abs, values.values())), {name: units[name] for name in values}
    return Settlement(portfolio.cash, bought, sold, fees, residual, positions, exposure, equity, weights, orders)


def prices_of(context: Context) -> dict[str, float]:
    """Return the price at which orders settle: the fact ``price`` of each instrument, else its last close."""
    prices = {series.instrument: series.close[-1] for series in context.series if series.close}
    for fact in context.facts:
        if fact.field == "price" and fact.instrument and not isinstance(fact.value, str):
            prices[fact.instrument] = float(fact.value)
    return prices


def fee_of(constraints: Iterable[Constraint]) -> float:
    """Return the fee in bps that the constraints state; 0 if they state none."""
    return next((rule.limit for rule in constraints if rule.kind == "fee" and rule.unit == "bps"), 0.0)


def audit(after: Settlement, constraints: Iterable[Constraint]) -> tuple[RuleCheck, ...]:
    """Check a settlement against every numeric rule of `ORDER_RULES`, in the order of the constraints."""
    results = []
    for rule in constraints:
        name, limit = "", rule.limit
        if rule.kind == "max_weight":
            name = max(after.weights, key=lambda weight: abs(after.weights[weight]), default="")
            value = abs(after.weights[name]) if name else 0.0
            within = value <= limit + _CENTS
        elif rule.kind == "min_cash":
            value = after.residual / after.equity if after.equity > 0 else -math.inf
            within = value >= limit - _CENTS
        elif rule.kind == "max_leverage":
            value, within = after.leverage, after.leverage <= limit + _CENTS
        elif rule.kind == "max_orders":
            value, within = after.orders, after.orders <= limit
        elif rule.kind == "allow_short" and not limit:
            worst = min(after.positions, key=lambda position: after.positions[position], default="")
            value = after.positions[worst] if worst else 0.0
            within = value >= -_CENTS
            name = "" if within else worst
        else:
            continue
        results.append(RuleCheck(rule.kind, limit, value, within, name))
    return tuple(results)
