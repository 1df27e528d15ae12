"""The book after the orders of a cell: what can be said of it in numbers, and which rules it breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assaymark.errors import InputError, NotMeasurableError, Problem
from assaymark.portfolio.orders import RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.records import Action, Context


@dataclass(frozen=True, slots=True)
class Book:
    """A settlement, its rules, and the amounts by name; shares and weights are ratios."""

    after: Settlement
    checks: tuple[RuleCheck, ...]
    amounts: Mapping[str, float]
    limits: Mapping[str, float]

    @property
    def broken(self) -> tuple[RuleCheck, ...]:
        """The rules that are not kept."""
        return tuple(check for check in self.checks if not check.kept)


def book_of(context: Context, actions: Sequence[Action]) -> Book:
    """The book of a context after orders.

    Raises
    ------
    NotMeasurableError
        The context has no portfolio, or nothing is left of its equity.
    InputError
        An order cannot be settled, or trades an instrument that the context does not have.
    """
    if context.portfolio is None:
        raise NotMeasurableError("a control cell needs a context with a portfolio (got none)")
    known = {item.id for item in context.instruments}
    unknown = [one.instrument for one in actions if one.instrument and one.instrument not in known]
    if unknown:
        raise InputError("orders", [Problem(name, "is no instrument of the context") for name in unknown])
    after = settle(context.portfolio, prices_of(context), actions, fee_bps=fee_of(context.constraints))
    if after.equity <= 0:
        raise NotMeasurableError(f"the book has no equity left after the orders (got {after.equity:g})")
    return Book(
        after=after,
        checks=audit(after, context.constraints),
        amounts=_amounts(after),
        limits={rule.kind: rule.limit for rule in context.constraints},
    )


def _amounts(after: Settlement) -> dict[str, float]:
    """What a text can say about the book, by the names of `statements_of`."""
    return {
        "cash": after.cash,
        "cost": after.cost,
        "proceeds": -after.cost,
        "residual": after.residual,
        "cash_share": after.residual / after.equity,
        "exposure": after.exposure,
        "exposure_share": after.exposure / after.equity,
        "equity": after.equity,
        "leverage": after.leverage,
        "largest": max(map(abs, after.weights.values()), default=0.0),
    }


def held_values(context: Context, actions: Sequence[Action]) -> list[float]:
    """Every size that the material or the decision holds: facts, book, limits, orders, and differences of one field.

    A number that equals none of them, as printed or in percent, is supported by nothing here.
    """
    found = [abs(float(fact.value)) for fact in context.facts if not isinstance(fact.value, str)]
    by_field: dict[str, list[float]] = {}
    for fact in context.facts:
        if fact.instrument and not isinstance(fact.value, str):
            by_field.setdefault(fact.field, []).append(float(fact.value))
    found += [abs(a - b) for values in by_field.values() for i, a in enumerate(values) for b in values[i + 1 :]]
    found += [rule.limit for rule in context.constraints]
    found += [abs(value) for one in actions for value in (one.quantity, one.price, one.weight) if value is not None]
    if context.portfolio is not None:
        book = context.portfolio
        found += [book.cash, book.nav, *map(abs, book.positions.values())]
        try:
            after = book_of(context, actions)
        except (InputError, NotMeasurableError):
            pass
        else:
            found += [abs(value) for value in after.amounts.values()]
            found += [abs(value) for value in after.after.weights.values()]
    return [value for value in found if math.isfinite(value)]


def is_held(values: Sequence[float], size: float, half: float) -> bool:
    """Whether a printed size equals any value within half a last digit, in any scale of a percentage.

    >>> is_held([0.0312], 3.1, 0.05), is_held([0.0312], 3.2, 0.05)
    (True, False)
    """
    return any(abs(value * scale - size) <= half for value in values for scale in (1.0, 100.0, 0.01))
