"""Whether a record of trading agrees with itself: fills against positions, fills against bars, cash against both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.portfolio.broker.book import Bar, Book, FillAt

CheckKind = Literal["fill", "cash", "position", "nav"]
MismatchKind = Literal["fill-quantity", "fill-price", "cash", "position", "negative-position", "nav"]
Where = Literal["", "at the close", "inside the bar", "outside the bar", "no bar"]

RELIABILITY: Final = ("fill", "cash", "position")
"""The kinds of check that data reliability counts; a stated NAV is checked beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFill:
    """One fill as a record states it: signed units, and its price and cost where they are stated."""

    symbol: str
    quantity: float
    price: float | None = None
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedStep:
    """One step of a record: its fills, the book stated after it, and the bars at which it could trade."""

    name: str
    fills: tuple[StatedFill, ...]
    book: Book | None
    bars: Mapping[str, Bar] = field(default_factory=dict)
    nav: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Differences up to these are the printed precision of the record: ``cash`` in currency, ``units`` in units."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One statement that does not follow from the others: what is stated, and what was recomputed."""

    step: str
    kind: MismatchKind
    symbol: str
    stated: float
    recomputed: float
    where: Where = ""

    def __str__(self) -> str:
        of = f" of {self.symbol}" if self.symbol else ""
        where = f", {self.where}" if self.where else ""
        return f"{self.step}: {self.kind}{of}: stated {self.stated:.10g}, recomputed {self.recomputed:.10g}{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchecked:
    """A check that could not be made, and why."""

    step: str
    kind: CheckKind
    symbol: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Every check of a record, with denominators."""

    checks: Mapping[CheckKind, int]
    passed: Mapping[CheckKind, int]
    mismatches: tuple[Mismatch, ...]
    unchecked: tuple[Unchecked, ...]
    navs: tuple[float | None, ...]

    @property
    def n(self) -> int:
        """How many fill, cash and position checks were made."""
        return sum(self.checks[kind] for kind in RELIABILITY)

    @property
    def data_reliability(self) -> float:
        """100 times the share of fill, cash and position checks that reconcile."""
        if not self.n:
            raise NotMeasurableError("data reliability is undefined: no fill, cash or position could be checked")
        return 100.0 * sum(self.passed[kind] for kind in RELIABILITY) / self.n


def reconcile(
    start: Book,
    steps: Sequence[StatedStep],
    *,
    fill: FillAt = "next_open",
    cost_bps: float = 0.0,
    short: bool = False,
    tolerance: Tolerance | None = None,
) -> Reconciliation:
    """Recompute each step of a record from the book stated before it."""
    run = _Run(start, fill, cost_bps / 1e4, short, tolerance or Tolerance())
    for step in steps:
        run.take(step)
    return run.result()


class _Run:
    """The state of one reconciliation."""

    def __init__(self, start: Book, fill: FillAt, rate: float, short: bool, tolerance: Tolerance) -> None:
        self.before, self.fill, self.rate, self.short, self.tolerance = start, fill, rate, short, tolerance
        self.carried: list[StatedFill] = []
        self.checks: dict[CheckKind, int] = dict.fromkeys((*RELIABILITY, "nav"), 0)
        self.failed: dict[CheckKind, int] = dict(self.checks)
        self.mismatches: list[Mismatch] = []
        self.unchecked: list[Unchecked] = []
        self.navs: list[float | None] = []

    def take(self, step: StatedStep) -> None:
        """Check one step, and stand on its stated book for the next."""
        if step.book is None:
            self._skip(step)
            return
        fills: dict[str, list[StatedFill]] = {}
        for one in (*self.carried, *step.fills):
            fills.setdefault(one.symbol, []).append(one)
        self.carried = []
        explained = {symbol: self._fill_check(step, step.book, symbol, of) for symbol, of in fills.items()}
        for symbol in sorted((set(self.before.positions) | set(step.book.positions)) - set(fills)):
            before, after = self.before.positions.get(symbol, 0.0), step.book.positions.get(symbol, 0.0)
            found: list[Mismatch] = []
            if abs(after - before) > self.tolerance.units:
                found.append(self._mismatch(step, "position", symbol, after, before))
            if after < -self.tolerance.units and not self.short:
                found.append(self._mismatch(step, "negative-position", symbol, after, 0.0))
            self._count("position", found)
        self._cash_check(step, step.book, fills, explained)
        prices = {symbol: self._price(step, symbol) for symbol, units in step.book.positions.items() if units}
        known = {symbol: price for symbol, price in prices.items() if price is not None}
        held = {symbol: units for symbol, units in step.book.positions.items() if units}
        nav = Book(step.book.cash, held).nav(known) if len(known) == len(prices) else None
        self.navs.append(nav)
        if step.nav is not None and nav is None:
            self._note(step, "nav", "", "a held symbol has no price at this step")
        elif step.nav is not None and nav is not None:
            off = _differ(step.nav, nav, self.tolerance.cash)
            self._count("nav", [self._mismatch(step, "nav", "", step.nav, nav)] if off else [])
        self.before = step.book

    def result(self) -> Reconciliation:
        return Reconciliation(
            checks=self.checks,
            passed={kind: n - self.failed[kind] for kind, n in self.checks.items()},
            mismatches=tuple(self.mismatches),
            unchecked=tuple(self.unchecked),
            navs=tuple(self.navs),
        )

    def _skip(self, step: StatedStep) -> None:
        """A step without a stated book: its fills are settled against the next one, at its own prices."""
        why = "the record states no book after this step"
        self.unchecked += [Unchecked(step=step.name, kind=kind, symbol="", why=why) for kind in ("cash", "position")]
        for one in step.fills:
            price = one.price if one.price is not None else self._price(step, one.symbol)
            self.carried.append(StatedFill(symbol=one.symbol, quantity=one.quantity, price=price, cost=one.cost))
        self.navs.append(None)

    def _change(self, book: Book, symbol: str) -> float:
        return book.positions.get(symbol, 0.0) - self.before.positions.get(symbol, 0.0)

    def _price(self, step: StatedStep, symbol: str) -> float | None:
        bar = step.bars.get(symbol)
        return None if bar is None else bar.at(self.fill)

    def _fill_check(self, step: StatedStep, book: Book, symbol: str, fills: Sequence[StatedFill]) -> bool:
        """One symbol's fills; whether they explain its change in units."""
        asked, change = math.fsum(one.quantity for one in fills), self._change(book, symbol)
        explained = abs(asked - change) <= self.tolerance.units * len(fills)
        found: list[Mismatch] = []
        if not explained:
            before = self.before.positions.get(symbol, 0.0)
            found.append(self._mismatch(step, "fill-quantity", symbol, before + change, before + asked))
        found += self._prices(step, symbol, [one for one in fills if one in step.fills])
        self._count("fill", found)
        return explained

    def _prices(self, step: StatedStep, symbol: str, fills: Sequence[StatedFill]) -> list[Mismatch]:
        """The stated prices that are not the price of the rule."""
        rule = self._price(step, symbol)
        found: list[Mismatch] = []
        for one in fills:
            if one.price is None:
                continue
            if rule is None:
                self._note(step, "fill", symbol, "its stated price has no bar to be held against")
            elif _differ(one.price, rule, self.tolerance.cash):
                where = _lies(one.price, [step.bars[symbol]], [1.0], self.tolerance.cash)
                found.append(self._mismatch(step, "fill-price", symbol, one.price, rule, where))
        return found

    def _cash_check(
        self, step: StatedStep, book: Book, fills: Mapping[str, Sequence[StatedFill]], explained: Mapping[str, bool]
    ) -> None:
        """Whether cash changed by what was traded, at the fills' prices or the rule's."""
        priced: list[float] = []
        loose: list[tuple[str, float]] = []  # traded at a price that is not stated
        for symbol in sorted(set(self.before.positions) | set(book.positions) | set(fills)):
            if explained.get(symbol):
                priced += [-one.quantity * one.price for one in fills[symbol] if one.price is not None]
                loose += [(symbol, one.quantity) for one in fills[symbol] if one.price is None and one.quantity]
            elif abs(self._change(book, symbol)) > self.tolerance.units:
                loose.append((symbol, self._change(book, symbol)))
        at_rule = [(units, self._price(step, symbol)) for symbol, units in loose]
        flows = [-units * price for units, price in at_rule if price is not None]
        if len(flows) < len(loose):
            absent = next(symbol for (symbol, _), (_, price) in zip(loose, at_rule, strict=True) if price is None)
            self._note(step, "cash", absent, "it was traded and has no price at this step")
            return
        costs = math.fsum(one.cost for of in fills.values() for one in of)
        costs += self.rate * math.fsum(map(abs, (*priced, *flows)))
        settled = self.before.cash + math.fsum(priced) - costs
        expected = settled + math.fsum(flows)
        found: list[Mismatch] = []
        if _differ(book.cash, expected, self.tolerance.cash):
            bars, units = [step.bars[symbol] for symbol, _ in loose], [-units for _, units in loose]
            where = _lies(book.cash - settled, bars, units, self.tolerance.cash)
            found.append(self._mismatch(step, "cash", "", book.cash, expected, where))
        self._count("cash", found)

    def _count(self, kind: CheckKind, found: list[Mismatch]) -> None:
        self.checks[kind] += 1
        self.failed[kind] += bool(found)
        self.mismatches += found

    def _note(self, step: StatedStep, kind: CheckKind, symbol: str, why: str) -> None:
        self.unchecked.append(Unchecked(step=step.name, kind=kind, symbol=symbol, why=why))

    def _mismatch(
        self, step: StatedStep, kind: MismatchKind, symbol: str, stated: float, recomputed: float, where: Where = ""
    ) -> Mismatch:
        return Mismatch(step=step.name, kind=kind, symbol=symbol, stated=stated, recomputed=recomputed, where=where)


def _differ(stated: float, recomputed: float, slack: float) -> bool:
    """Whether two amounts differ by more than the printed precision and the rounding of floats."""
    return abs(stated - recomputed) > slack + 1e-12 * max(abs(stated), abs(recomputed))


def _lies(amount: float, bars: Sequence[Bar], units: Sequence[float], slack: float) -> Where:
    """How an amount lies to the value of ``units`` within their bars."""
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
