"""The book that a decision made of orders leaves behind, worked out from the prompt alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assaymark.errors import InputError
from assaymark.portfolio.orders import ORDER_RULES, SIDES, RuleCheck, Settlement, audit, fee_of, prices_of, settle
from assaymark.records import Action, Context

NAV_SLACK = 0.001
"""Maximum relative distance of the stated NAV from cash and holdings at the prices: all three are printed rounded."""

_UNTRADED = ("hold", "no_trade", "close")


@dataclass(frozen=True, slots=True)
class Book:
    """A portfolio after orders. ``after`` is None where the orders cannot be carried out; no rule counts as kept then.

    ``checks`` are the rules of the task that `portfolio.orders.audit` decides.
    """

    after: Settlement | None
    checks: tuple[RuleCheck, ...]

    @property
    def legality(self) -> float | None:
        """The share of the rules that are kept: 0 for orders that cannot be carried out, None without any rule."""
        if self.after is None:
            return 0.0
        return sum(check.kept for check in self.checks) / len(self.checks) if self.checks else None

    @property
    def kept(self) -> bool:
        """Whether the orders can be carried out and every rule holds afterwards."""
        return self.after is not None and all(check.kept for check in self.checks)

    @property
    def holdings(self) -> dict[str, float]:
        """Absolute weights of what is held afterwards, by instrument; of all exposure where no equity is left."""
        if self.after is None:
            return {}
        if self.after.equity > 0:
            return {name: abs(weight) for name, weight in self.after.weights.items()}
        return dict.fromkeys(self.after.positions, 1.0 / max(len(self.after.positions), 1))


def made_of_orders(actions: Sequence[Action]) -> bool:
    """Whether a decision trades units: at least one action, no weight, a quantity wherever it buys or sells."""
    return bool(actions) and all(
        action.weight is None and (action.kind in _UNTRADED or (action.kind in SIDES and action.quantity is not None))
        for action in actions
    )


def book_of(context: Context, actions: Sequence[Action]) -> Book | None:
    """The book after the orders of a decision, worked out from the prompt alone, and the rules held against it.

    A decision without any action is one of orders where the task sets rules for a book (`portfolio.ORDER_RULES`): it
    leaves the book as it is. None where the decision is not made of orders, where there is no portfolio, where a
    holding or an instrument of the material that is traded has no price, or where cash and holdings at these prices
    are not the stated NAV within `NAV_SLACK`: nothing can be worked out then, through no fault of the decision. Orders
    of instruments that the material does not know, of quantities that are no positive number, or of positions that are
    not there make a `Book` whose ``after`` is None.
    """
    portfolio = context.portfolio
    ruled = any(rule.kind in ORDER_RULES for rule in context.constraints)
    if portfolio is None or not (made_of_orders(actions) or (ruled and not actions)):
        return None
    prices, fee = prices_of(context), fee_of(context.constraints)
    known = {item.id for item in context.instruments}
    if any(one.kind in SIDES and one.instrument in known - prices.keys() for one in actions):
        return None

    def settled(orders: Sequence[Action]) -> Settlement | None:
        try:
            after = settle(portfolio, prices, orders, fee_bps=fee)
        # Amounts beyond what a float holds make sums of infinities, which fsum refuses.
        except (InputError, ValueError, OverflowError):
            return None
        return after if math.isfinite(after.equity) and math.isfinite(after.exposure) else None

    before = settled(())
    if before is None or abs(before.equity - portfolio.nav) > NAV_SLACK * abs(portfolio.nav):
        return None
    after = settled(actions)
    return Book(after, () if after is None else audit(after, context.constraints))
