"""The arithmetic of orders: what a book is after them, and which numeric rules it then keeps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.records import Action, Constraint, Context, Portfolio

SIDES: Final[Mapping[str, int]] = MappingProxyType({"buy": 1, "cover": 1, "sell": -1, "short": -1})
"""The kinds of action that trade, and the sign of the units that they add."""

SLACK: Final = 1e-6
"""A limit is kept if it is missed by no more than this, relative to its unit: amounts are printed in cents."""

ORDER_RULES: Final = ("max_weight", "min_cash", "max_leverage", "max_orders", "allow_short")
"""The kinds of constraint that `audit` decides; ``fee`` enters the settlement."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """A book after its orders, at the prices given. Amounts are in the book's currency."""

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
        """Exposure over equity; infinite where nothing is left of the equity."""
        return self.exposure / self.equity if self.equity > 0 else math.inf

    @property
    def cost(self) -> float:
        """What the orders take out of cash: purchases less sales, and fees."""
        return self.bought - self.sold + self.fees


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One rule held against a settlement: ``value`` is what was compared with ``limit``."""

    rule: str
    limit: float
    value: float
    kept: bool
    subject: str = ""


def settle(
    portfolio: Portfolio, prices: Mapping[str, float], actions: Sequence[Action], *, fee_bps: float = 0.0
) -> Settlement:
    """The book after its orders, all of them at ``prices``."""
    needed = dict.fromkeys((*portfolio.positions, *(one.instrument for one in actions if one.kind in SIDES)))
    problems = [
        Problem(f"prices.{name}", f"a positive price is needed (got {prices.get(name)})")
        for name in needed
        if not 0 < prices.get(name, math.nan) < math.inf
    ]
    for number, action in enumerate(actions, start=1):
        where = f"order {number}"
        if action.kind == "target_weight":
            problems.append(Problem(where, "is a target weight and no order of units"))
        elif action.kind in SIDES and not 0 < (action.quantity or 0.0) < math.inf:
            problems.append(Problem(where, f"needs a positive finite quantity (got {action.quantity})"))
        elif action.kind == "close" and not portfolio.positions.get(action.instrument):
            problems.append(Problem(where, f"closes {action.instrument!r}, which is not held"))
    if problems:
        raise InputError("orders", problems)
    units: dict[str, float] = defaultdict(float, portfolio.positions)
    bought = sold = 0.0
    orders = 0
    for action in actions:
        # the units that an action adds to a position; negative where it takes some away
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
    values = {name: held * prices[name] for name, held in units.items() if abs(held) > 1e-12}
    equity = residual + math.fsum(values.values())
    weights = {name: value / equity if equity > 0 else math.inf for name, value in values.items()}
    exposure, positions = math.fsum(map(abs, values.values())), {name: units[name] for name in values}
    return Settlement(portfolio.cash, bought, sold, fees, residual, positions, exposure, equity, weights, orders)


def prices_of(context: Context) -> dict[str, float]:
    """The price at which orders on a context settle: the fact ``price`` of an instrument, else its last close."""
    found = {one.instrument: one.close[-1] for one in context.series if one.close}
    for fact in context.facts:
        if fact.field == "price" and fact.instrument and not isinstance(fact.value, str):
            found[fact.instrument] = float(fact.value)
    return found


def fee_of(constraints: Iterable[Constraint]) -> float:
    """The fee in bps that the constraints state; 0 if they state none."""
    return next((rule.limit for rule in constraints if rule.kind == "fee" and rule.unit == "bps"), 0.0)


def audit(after: Settlement, constraints: Iterable[Constraint]) -> tuple[RuleCheck, ...]:
    """Every numeric rule of `ORDER_RULES` held against a settlement, in the order of the constraints."""
    found = []
    for rule in constraints:
        name, limit = "", rule.limit
        if rule.kind == "max_weight":
            name = max(after.weights, key=lambda weight: abs(after.weights[weight]), default="")
            value = abs(after.weights[name]) if name else 0.0
            kept = value <= limit + SLACK
        elif rule.kind == "min_cash":
            value = after.residual / after.equity if after.equity > 0 else -math.inf
            kept = value >= limit - SLACK
        elif rule.kind == "max_leverage":
            value, kept = after.leverage, after.leverage <= limit + SLACK
        elif rule.kind == "max_orders":
            value, kept = after.orders, after.orders <= limit
        elif rule.kind == "allow_short" and not limit:
            worst = min(after.positions, key=lambda position: after.positions[position], default="")
            value = after.positions[worst] if worst else 0.0
            kept = value >= -SLACK
            name = "" if kept else worst
        else:
            continue
        found.append(RuleCheck(rule.kind, limit, value, kept, name))
    return tuple(found)
